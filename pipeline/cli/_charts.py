"""Starting-hand charts of `chart`, `show chart` and `solve preflop`: written to a file, drawn, or as an object.

In goes a counted `Chart` and the numbers of its situations, out comes text for the terminal, a file of the kind that
its extension names, or a dictionary for `--json`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.cli._options import file_kind
from pipeline.runtime.files import replacing

if TYPE_CHECKING:
    from pipeline.models.charts import Chart

KINDS = (".svg", ".txt", ".chart", ".json")
"""kinds of files of a chart: a picture, the text that `parse_chart` reads (two endings), an object"""


def check_chart_file(path: Path | None) -> None:
    """Refuse a file that a chart cannot be written to, before any work is done."""
    if path is not None:
        file_kind(path, *KINDS)


def chart_dict(chart: Chart, situations: Sequence[int]) -> dict[str, Any]:
    """Return a chart for `--json`: for each situation the count of each action by class of hand."""
    import numpy as np

    from pipeline.dataset.decisions import betting_text
    from pipeline.report.grids import name_of

    labels = list(chart.labels)
    return {
        "labels": labels,
        "situations": [
            {
                "after": betting_text(chart.words[situation], len(labels) > 3),
                "decisions": float(chart.counts[situation].sum()),
                "classes": {
                    name_of(int(hand_class), chart.counts.shape[1]): chart.counts[situation][hand_class].tolist()
                    for hand_class in np.flatnonzero(chart.counts[situation].sum(axis=1))
                },
            }
            for situation in situations
        ],
    }


def write_chart(chart: Chart, path: Path, *, situations: int, title: str) -> None:
    """Write a chart as its file's extension says; a picture has the largest situations, other kinds have all."""
    from pipeline.report.grids import chart_picture, largest

    kind = file_kind(path, *KINDS)
    if kind == ".svg":
        text = chart_picture(chart, largest(chart, situations), title=title)
    elif kind == ".json":
        text = json.dumps(chart_dict(chart, range(len(chart.words)))) + "\n"
    else:
        text = chart.to_text()
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def draw_situations(chart: Chart, situations: Sequence[int], reached: Sequence[bool] | None = None) -> str:
    """Draw grids for the terminal, below each other."""
    from pipeline.report.grids import chart_text

    colour, columns = sys.stdout.isatty(), shutil.get_terminal_size((80, 24)).columns
    flags = [True] * len(situations) if reached is None else reached
    return "\n\n".join(
        chart_text(chart, situation, colour=colour, columns=columns, reached=is_reached)
        for situation, is_reached in zip(situations, flags, strict=True)
    )
