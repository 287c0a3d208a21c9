"""`chart`: count an agent's starting-hand chart."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pipeline.cli._options import DATA_GAME, data_option, game_option, json_option, open_option, open_written
from pipeline.cli._progress import bar


@click.command()
@data_option()
@click.option("--agent", "agents", multiple=True, help="Whose chart; several are pooled.  [default: everyone]")
@game_option(DATA_GAME)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write a picture (FILE.svg), the counts (.txt, .chart) or both (.json).",
)
@click.option("--situations", type=click.IntRange(1), default=4, show_default=True, help="Draw so many, largest first.")
@open_option
@json_option
def command(
    data: Path, agents: tuple[str, ...], game: str | None, out: Path | None, situations: int, as_json: bool
) -> None:
    """Count what agents do before the flop, per betting situation and starting class; draw the largest.

    Training rows are counted, as `train` does; held-out rows are not.

    Example: pipeline chart --data out/rows --agent teacher --out out/teacher.svg
    """
    from pipeline.cli._charts import chart_dict, check_chart_file, draw_situations, write_chart

    check_chart_file(out)
    with bar("chart"):
        from pipeline.dataset.decisions import STREETS
        from pipeline.dataset.load import load_decisions
        from pipeline.models.charts import count_chart
        from pipeline.report.grids import largest

        decisions = load_decisions(data, agents or None, [STREETS[0]], "train", game=game)
        chart = count_chart(decisions.rows, decisions.action, decisions.game.labels)
    if out is not None:
        title = (
            f"What {' and '.join(decisions.agents)} {'does' if len(decisions.agents) == 1 else 'do'} before the flop"
        )
        write_chart(chart, out, situations=situations, title=title)
    situations_drawn = largest(chart, situations)
    if as_json:
        about = {"agents": list(decisions.agents), "game": decisions.game.name, **chart_dict(chart, situations_drawn)}
        click.echo(json.dumps(about))
        return
    click.echo(draw_situations(chart, situations_drawn))
    if out is not None:
        click.echo(f"\nwritten to {out}")
        open_written(out)
