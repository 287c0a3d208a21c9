"""What `chart`, `show chart` and `solve preflop` have in common: a chart written to a file, drawn or as an object.

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
"""what a chart can be written as: a picture, the text that `parse_chart` reads (two names), an object"""


def check_chart_file(path: Path | None) -> None:
    """Refuse a file that a chart cannot be written to, before any work is done."""
    if path is not None:
        file_kind(path, *KINDS)


def chart_dict(chart: Chart, situations: Sequence[int]) -> dict[str, Any]:
    """A chart for `--json`: for each situation how often each class took each action."""
    import numpy as np

    from pipeline.dataset.decisions import word_text
    from pipeline.report.grids import name_of

    labels = list(chart.labels)
    return {
        "labels": labels,
        "situations": [
            {
                "after": word_text(chart.words[at], len(labels) > 3),
                "decisions": float(chart.counts[at].sum()),
                "classes": {
                    name_of(int(index), chart.counts.shape[1]): chart.counts[at][index].tolist()
                    for index in np.flatnonzero(chart.counts[at].sum(axis=1))
                },
            }
            for at in situations
        ],
    }


def write_chart(chart: Chart, path: Path, *, situations: int, title: str) -> None:
    """Write a chart as its file's extension says; a picture has the largest situations, other kinds have all."""
    from pipeline.report.grids import largest, picture

    kind = file_kind(path, *KINDS)
    if kind == ".svg":
        text = picture(chart, largest(chart, situations), title=title)
    elif kind == ".json":
        text = json.dumps(chart_dict(chart, range(len(chart.words)))) + "\n"
    else:
        text = chart.to_text()
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def draw_situations(chart: Chart, situations: Sequence[int], reached: Sequence[bool] | None = None) -> str:
    """Grids for the terminal, below each other."""
    from pipeline.report.grids import chart_text

    colour, columns = sys.stdout.isatty(), shutil.get_terminal_size((80, 24)).columns
    known = [True] * len(situations) if reached is None else reached
    return "\n\n".join(
        chart_text(chart, at, colour=colour, columns=columns, reached=seen)
        for at, seen in zip(situations, known, strict=True)
    )
