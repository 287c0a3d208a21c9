"""`chart`: count an agent's starting-hand chart."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli._charts import check_chart_file, draw_situations, situations_option, write_chart
from pipeline.cli._options import (
    DATA_GAME,
    data_option,
    game_option,
    json_option,
    open_option,
    open_written,
    out_option,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json


@click.command()
@data_option()
@click.option("--agent", "agents", multiple=True, help="Whose chart; several are pooled.  [default: everyone]")
@game_option(DATA_GAME)
@out_option("Write a picture (FILE.svg), the counts (.txt, .chart) or both (.json).", required=False)
@situations_option
@open_option
@json_option
def command(
    data: Path, agents: tuple[str, ...], game: str | None, out: Path | None, situations: int, as_json: bool
) -> None:
    """Count what agents do before the flop, per betting situation and starting class; draw the largest.

    Training rows are counted, as `train` does; held-out rows are not.

    Example: pipeline chart --data out/rows --agent teacher --out out/teacher.svg
    """
    check_chart_file(out)
    with bar("chart"):
        from pipeline.models.charts import read_chart_counts
        from pipeline.report.grids import largest

        chart, decisions = read_chart_counts(data, agents, game=game)
    if out is not None:
        title = (
            f"What {' and '.join(decisions.agents)} {'does' if len(decisions.agents) == 1 else 'do'} before the flop"
        )
        write_chart(chart, out, situations=situations, title=title)
    situations_drawn = largest(chart, situations)
    if as_json:
        print_json({"agents": decisions.agents, "game": decisions.game.name, **chart.json(situations_drawn)})
        return
    click.echo(draw_situations(chart, situations_drawn))
    if out is not None:
        click.echo(f"\nwritten to {out}")
        open_written(out)
