"""Starting-hand charts of `show chart` and `solve preflop`: drawn in the terminal or written to a file.

In goes a counted `Chart` and the numbers of its situations, out comes text for the terminal, or a file of the kind that
its extension names.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli._options import file_kind
from pipeline.runtime.files import write_text

if TYPE_CHECKING:
    from pipeline.models.charts import Chart

KINDS = (".svg", ".txt", ".chart", ".json")
"""kinds of files of a chart: a picture, the text that `parse_chart` reads (two endings), an object"""


def check_chart_file(path: Path | None) -> None:
    """Refuse a file that a chart cannot be written to, before any work is done."""
    if path is not None:
        file_kind(path, *KINDS)


def write_chart(chart: Chart, path: Path, situations: Sequence[int], *, title: str) -> None:
    """Write a chart as its file's extension says; a picture has the named situations, other kinds have all."""
    from pipeline.report.grids import chart_picture

    kind = file_kind(path, *KINDS)
    if kind == ".svg":
        text = chart_picture(chart, situations, title=title)
    elif kind == ".json":
        text = json.dumps(chart.json(range(len(chart.words)))) + "\n"
    else:
        text = chart.to_text()
    write_text(path, text)


def draw_situations(chart: Chart, situations: Sequence[int], reached: Sequence[bool] | None = None) -> str:
    """Draw grids for the terminal, below each other."""
    from pipeline.report.grids import chart_text

    colour, columns = sys.stdout.isatty(), shutil.get_terminal_size((80, 24)).columns
    flags = [True] * len(situations) if reached is None else reached
    return "\n\n".join(
        chart_text(chart, situation, colour=colour, columns=columns, reached=is_reached)
        for situation, is_reached in zip(situations, flags, strict=True)
    )
