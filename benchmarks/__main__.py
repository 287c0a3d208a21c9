"""`python -m benchmarks`: print the figures of docs/benchmarks.md, each beside a baseline of the same run."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

import click

import benchmarks
from benchmarks._figures import Figure, Settings
from pipeline.runtime.errors import PipelineError, nearest

TOPICS = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name[0] != "_")
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def _line(figure: Figure) -> str:
    value = f"{figure.value:,.4g}" if abs(figure.value) < 10_000 else f"{figure.value:,.0f}"
    text = f"{figure.name:<58} {value:>12} {figure.unit:<14}"
    if figure.ratio is not None:
        text += f" {figure.ratio:8.3g}x {figure.baseline}"
        if figure.baseline_value is not None:
            text += f" ({figure.baseline_value:,.4g})"
    return f"{text.rstrip()}{f'   target: {figure.target}' if figure.target else ''}"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--data", type=FOLDER, help="Folder of corpora; figures on real logs need it.")
@click.option("--collection", type=FOLDER, help="ingest: folder of a whole collection of hand histories.")
@click.option("--rows", type=FOLDER, help="web: dataset whose hands are filtered.  [default: the bundled sample]")
@click.option(
    "--stages",
    type=click.Path(file_okay=False, path_type=Path),
    default=Settings().stages,
    help="Folder of finished parts; a run that was stopped goes on from them.  [default: a temporary folder]",
)
@click.option("--agent", "agents", multiple=True, help="counter, nolimit: only this opponent or agent (repeatable).")
@click.option("--bundle", "bundles", multiple=True, help="wire: the bundle that plays. adaptive: one more opponent.")
@click.option(
    "--dealer",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="wire: the official dealer's program.",
)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="nolimit: threads of training.")
@click.option("--quick", is_flag=True, help="Small forms of fidelity, counter, cluster and memory, to try them out.")
@click.option("--json", "as_json", is_flag=True, help="One list of objects on stdout.")
def command(names: tuple[str, ...], as_json: bool, **settings: Any) -> None:
    """Measure this machine: all topics, or those named.

    Example: python -m benchmarks ingest strength --data corpora
    """
    for name in names:
        if name not in TOPICS:
            raise PipelineError(f"no benchmark {name!r}{nearest(name, TOPICS)}")
    measured: list[Figure] = []
    for name in names or TOPICS:
        click.echo(f"{name} ...", err=True)
        figures = importlib.import_module(f"benchmarks.{name}").run(Settings(**settings))
        measured += figures
        if not as_json:
            for figure in figures:
                click.echo(_line(figure))
    if as_json:
        click.echo(json.dumps([figure._asdict() for figure in measured], indent=1))


def main() -> None:
    """Run the command; a mistake is one line and a non-zero exit, as everywhere."""
    try:
        command.main(prog_name="python -m benchmarks")
    except PipelineError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
