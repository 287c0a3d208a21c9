"""`show chart`: draw a bundle's or a text file's starting-hand chart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.runtime.errors import PipelineError, nearest

if TYPE_CHECKING:
    from pipeline.models.charts import Chart


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--after", help="Only the situation after this betting, such as `cr`; `-` for none.")
@click.option("--situations", type=click.IntRange(1), default=4, show_default=True, help="Draw so many, largest first.")
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
def command(source: Path, after: str | None, situations: int, as_json: bool) -> None:
    """Draw the chart of a bundle, a chart's text file, or one that comes with the package.

    Each cell has the likeliest action and its share in percent; suited classes are above the diagonal.

    Example: pipeline show chart out/slumbot --after r
    """
    import numpy as np

    from pipeline.cli._charts import chart_dict, draw_situations
    from pipeline.models.bundle import load_bundle
    from pipeline.models.charts import Chart
    from pipeline.models.policy import find_chart
    from pipeline.report.grids import largest

    chart = load_bundle(source).chart if source.is_dir() or source.suffix == ".zip" else find_chart(source)
    if not isinstance(chart, Chart):
        raise PipelineError(f"{source} has no chart: train it again without --chart, or name a chart's file")
    order = largest(chart, situations)
    if after is not None:
        order = np.flatnonzero(chart.words == _word(after, chart)).tolist()
        if not order:
            raise PipelineError(f"the chart has no situation after {after!r}")
    click.echo(json.dumps(chart_dict(chart, order)) if as_json else draw_situations(chart, order))


def _word(text: str, chart: Chart) -> int:
    from pipeline.dataset.decisions import word_code

    unknown = [letter for letter in text if letter not in chart.labels and text != "-"]
    if unknown:
        raise PipelineError(f"{unknown[0]!r} in {text!r} is no action{nearest(unknown[0], chart.labels)}")
    return word_code(text, len(chart.labels) > 3)
