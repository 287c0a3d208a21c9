"""`ingest`: logs to decision rows."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pipeline.commands._progress import bar


@click.command(epilog="Example: python -m pipeline ingest logs/ archive.tar.bz2 --out out/rows --agent slumbot")
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the dataset; it may exist.")
@click.option("--agent", "agents", multiple=True, help="Keep decisions of this agent only (repeatable).")
@click.option("--alias", "aliases", multiple=True, metavar="OLD=NEW", help="Rename a player (repeatable).")
@click.option("--game", help="A .game file or the name of a built-in game, for all logs.")
@click.option("--validation", multiple=True, metavar="GLOB", help="Hold out these files instead of one deal in ten.")
@click.option("--no-strength", is_flag=True, help="Leave out the hand strength columns.")
@click.option("--strict", is_flag=True, help="Fail if any line is rejected.")
@click.option("--workers", type=click.IntRange(1), help="Threads to use; all processors by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(
    logs: tuple[str, ...],
    out: Path,
    agents: tuple[str, ...],
    aliases: tuple[str, ...],
    game: str | None,
    validation: tuple[str, ...],
    no_strength: bool,
    strict: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """Turn ACPC logs (files, folders, patterns, archives, - for standard input) into a dataset of decision rows."""
    from pipeline.ingest import ingest, options

    chosen = options(agents=agents, aliases=aliases, validation=validation, game=game, strength=not no_strength)
    with bar("ingest", "hands") as progress:
        summary = ingest(logs, out, chosen, workers=workers, strict=strict, progress=progress)
    if as_json:
        click.echo(json.dumps(summary.json()))
        return
    click.echo(f"files {summary.files}")
