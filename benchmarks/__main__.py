"""`python -m benchmarks`: print the figures of docs/benchmarks.md, each beside a baseline of the same run."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys

import click

import benchmarks
from benchmarks._figures import Figure
from pipeline.runtime.errors import PipelineError, nearest

TOPICS = sorted(found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name[0] != "_")


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
@click.option("--quick", is_flag=True, help="The small form of topics that have one: fidelity.")
@click.option("--json", "as_json", is_flag=True, help="One list of objects on stdout.")
def command(names: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """Measure this machine: all topics, or those named.

    Figures on real logs need a folder of corpora: PIPELINE_BENCH_DATA names it. `ingest` also takes a whole collection
    of hand histories: PIPELINE_BENCH_COLLECTION names its folder.

    Example: python -m benchmarks ingest strength
    """
    for name in names:
        if name not in TOPICS:
            raise PipelineError(f"no bench {name!r}{nearest(name, TOPICS)}")
    found: list[Figure] = []
    for name in names or TOPICS:
        click.echo(f"bench {name} ...", err=True)
        measure = importlib.import_module(f"benchmarks.{name}").run
        figures = measure(quick=True) if quick and "quick" in inspect.signature(measure).parameters else measure()
        found += figures
        if not as_json:
            for figure in figures:
                click.echo(_line(figure))
    if as_json:
        click.echo(json.dumps([figure._asdict() for figure in found], indent=1))


def main() -> None:
    """Run the command; a mistake is one line and a non-zero exit, as everywhere."""
    try:
        command.main(prog_name="python -m benchmarks")
    except PipelineError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
