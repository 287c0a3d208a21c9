"""Pictures for papers and notebooks, drawn with matplotlib (the extra `plot`): error bars, lines, a grid of shares.

Numbers and texts go in, a `Picture` comes out, which a notebook shows and `save` writes as SVG, PDF or PNG. Nothing
here opens a window or touches matplotlib's settings outside of a `with`; the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

KINDS = (".svg", ".pdf", ".png")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
"""Okabe and Ito's colours, which people with colour blindness tell apart"""
STYLE = {"svg.hashsalt": "pipeline", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
DATES = {".svg": "Date", ".pdf": "CreationDate", ".png": "Software"}
"""what a kind of file says of the time or the version of its making, which is left out"""


class Point(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


class Picture(Figure):
    """A drawing that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        return buffer.getvalue()


def new_picture(columns: int = 1, rows: int = 1, *, width: float = 4.2, height: float = 3.0) -> tuple[Picture, Any]:
    """Return a picture and the array (rows, columns) of its axes, of this many inches each."""
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(width * columns, height * rows), layout="constrained")
        return picture, picture.subplots(rows, columns, squeeze=False)


def save(picture: Figure, path: Path) -> None:
    """Write a picture; the end of the file's name says as what."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise PipelineError(f"{path} ends in none of {', '.join(KINDS)}: name a picture's file")
    with replacing(path) as beside, mpl.rc_context(STYLE):
        picture.savefig(beside, format=kind[1:], dpi=200, metadata={DATES[kind]: None})


def draw_points(axes: Any, places: Sequence[str], series: Mapping[str, Sequence[Point | None]], label: str) -> None:
    """Draw values with their intervals at each place, the series side by side; None leaves one out."""
    for number, (name, points) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * min(0.15, 0.7 / len(series))
        present = [(place + shift, point) for place, point in enumerate(points) if point is not None]
        values = [point.value for _, point in present]
        ends = [(max(0.0, point.value - point.low), max(0.0, point.high - point.value)) for _, point in present]
        axes.errorbar(
            [place for place, _ in present],
            values,
            yerr=list(zip(*ends, strict=True)) or None,
            fmt="os^Dv<>"[number % 7],
            color=COLOURS[number % len(COLOURS)],
            markersize=4,
            capsize=2,
            linewidth=1,
            label=name,
        )
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_ylabel(label)
    axes.margins(y=0.15)


def draw_grid(axes: Any, mixes: Any, names: Sequence[str], labels: Sequence[str]) -> None:
    """Draw 13 cells a row, each with its name, filled by the shares of the actions, the last label on the left."""
    for index, (mix, name) in enumerate(zip(mixes, names, strict=True)):
        row, column = divmod(index, 13)
        left = float(column)
        for number in reversed(range(len(labels))):
            share = float(mix[number])
            axes.barh(row, share, left=left, height=1.0, color=_shade(number, len(labels)), linewidth=0)
            left += share
        axes.add_patch(Rectangle((column, row - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=0.6))
        axes.text(column + 0.5, row, name, ha="center", va="center", fontsize=5)
    axes.spines[:].set_visible(False)
    axes.set(xlim=(0, 13), ylim=((len(names) - 1) // 13 + 0.5, -0.5), xticks=[], yticks=[], aspect="equal")
    for number, label in enumerate(labels):
        axes.bar(0, 0, color=_shade(number, len(labels)), label=label)


def _shade(number: int, labels: int) -> str:
    """Return the colour of an action: folds grey, calls green, raises the redder the larger."""
    if number < 2:
        return ("#d5d9e0", "#9fd3b6")[number]
    reds = ("#f2a58e", "#ea8168", "#e05f48", "#d0432f", "#b52a1d")
    return reds[(number - 2) * len(reds) // max(1, labels - 2)]
