"""`chart`: count an agent's starting-hand chart."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline import dataset
from pipeline.charts import count_chart
from pipeline.decisions import STREETS
from pipeline.files import replacing
from pipeline.report.grids import chart_text, largest, picture


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="A dataset's folder.")
@click.option("--agent", "agents", multiple=True, help="Whose chart; several are pooled.  [default: everyone]")
@click.option("--game", help="The game's name, where the data holds several.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the counts as text, or a picture to FILE.svg.")
@click.option("--situations", type=click.IntRange(1), default=4, show_default=True, help="Draw so many, largest first.")
def command(data: Path, agents: tuple[str, ...], game: str | None, out: Path | None, situations: int) -> None:
    """Count what agents do before the flop, per betting situation and starting class; draw the largest.

    Example: python -m pipeline chart --data out/rows --agent teacher --out out/teacher.txt
    """
    found = dataset.load(data, agents or None, [STREETS[0]], game=game)
    chart = count_chart(found.rows, found.action, found.game.labels)
    if out is not None:
        with replacing(out) as beside:
            beside.write_text(picture(chart) if out.suffix == ".svg" else chart.to_text(), encoding="utf-8")
    shown = largest(chart, situations)
    click.echo("\n\n".join(chart_text(chart, at, colour=sys.stdout.isatty()) for at in shown))
