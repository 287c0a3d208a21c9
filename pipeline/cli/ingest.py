"""`ingest`: logs to decision rows."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    cluster_option,
    connected,
    game_option,
    json_option,
    out_option,
    workers_option,
)
from pipeline.cli._output import print_json
from pipeline.cli._progress import bar

if TYPE_CHECKING:
    from pipeline.ingestion.summary import Summary

_HISTORY_WORDS = {
    "unknown_cards": "cards that were not shown",
    "unknown_stacks": "unknown stacks",
    "unknown_result": "an unknown result",
    "partial": "no end",
    "rake": "rake",
    "flagged": "results that the rules do not allow",
}
"""words for the keys of `Summary.histories`"""


@click.command(epilog="Example: pipeline ingest logs/ archive.tar.bz2 --out out/rows --agent slumbot")
@click.argument("logs", nargs=-1, required=True)
@out_option("Folder of the dataset; it may exist.")
@click.option("--agent", "agents", multiple=True, help="Keep decisions of this agent only (repeatable).")
@click.option("--alias", "aliases", multiple=True, metavar="OLD=NEW", help="Rename a player (repeatable).")
@game_option()
@click.option("--validation", multiple=True, metavar="GLOB", help="Hold out these files instead of one deal in ten.")
@click.option(
    "--hold-out",
    type=click.Choice(["deals", "players"]),
    default="deals",
    show_default=True,
    help="Hold out one deal in ten, or one player in ten.",
)
@click.option("--no-strength", is_flag=True, help="Leave out the hand strength columns.")
@click.option("--strict", is_flag=True, help="Fail if any line is rejected.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "wapiti", "wapiti-hands"]),
    default="parquet",
    show_default=True,
    help="wapiti: also write text for Wapiti and CRF++ to OUT/wapiti, with a blank line after each decision, or hand.",
)
@workers_option
@cluster_option
@json_option
def command(
    logs: tuple[str, ...],
    out: Path,
    no_strength: bool,
    strict: bool,
    form: str,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
    **choices: Any,
) -> None:
    """Turn ACPC logs (files, folders, patterns, archives, URLs, - for standard input) into a dataset of decision rows.

    Running it again adds only new and changed files; a killed run is continued.
    """
    click.get_current_context().call_on_close(gc.enable)
    gc.disable()  # nothing here makes garbage in circles, and looking for it takes 0.3 s of the start
    from pipeline.ingestion.options import options
    from pipeline.ingestion.run import ingest

    chosen = options(strength=not no_strength, **choices)
    with connected(cluster) as dask, bar("strength tables") as preparing, bar("ingest", "hands") as progress:
        summary = ingest(
            *(logs, out, chosen),
            workers=workers,
            strict=strict,
            progress=progress,
            preparing=preparing,
            cluster=dask,
        )
    written: list[Path] = []
    if form != "parquet":
        from pipeline.ingestion.wapiti import export_wapiti

        written = export_wapiti(out, by_hand=form == "wapiti-hands")
    if as_json:
        print_json(summary.json())
        return
    _print_summary(summary, out)
    for path in written:
        click.echo(f"  wrote {path}")


def _print_summary(summary: Summary, out: Path) -> None:
    """Print the summary of a run."""
    new_files = [f"{summary.new} new", f"{summary.unchanged} unchanged"]
    if summary.changed:
        new_files.insert(1, f"{summary.changed} changed")
    click.echo(
        f"{out}: {summary.files:,} log{'' if summary.files == 1 else 's'} ({', '.join(new_files)} files given), "
        f"{summary.hands:,} hands, {summary.decisions:,} decisions, {summary.seconds:.1f} s"
    )
    click.echo(
        f"  {summary.lines:,} lines = {summary.comments:,} comments + {summary.scores:,} scores + "
        f"{summary.hands:,} hands + {summary.rejected:,} rejected"
    )
    for reason, count in summary.rejected_by_reason.items():
        click.echo(f"  rejected {count:,}: {reason}")
    if summary.histories:
        unusual = ", ".join(f"{count:,} with {_HISTORY_WORDS[what]}" for what, count in summary.histories.items())
        click.echo(f"  hands of hand histories: {unusual}")
    _print_some("cut short (no score, fewer hands than announced)", summary.truncated)
    _print_some("name lacks a player", [f"{label} ({name})" for label, name in summary.misnamed])
    _print_some("left out", [f"{label} {reason}" for label, reason in summary.skipped])
    _print_some("left out", [f"{label} has the bytes of {other}" for label, other in summary.duplicates])


def _print_some(what: str, items: list[str]) -> None:
    for text in items[:10]:
        click.echo(f"  {what}: {text}", err=True)
    if len(items) > 10:
        click.echo(f"  {what}: {len(items) - 10} more", err=True)
