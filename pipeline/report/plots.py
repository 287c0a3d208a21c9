"""Small drawings from arrays: intervals beside a floor, calibration and learning curves, confusion tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.measures import Interval
from pipeline.report.markup import escape, number, tag

__all__ = ["Curve", "calibration", "confusion", "curves", "intervals", "line_key", "mix_bar"]

MARKS = ("circle", "square", "triangle", "diamond", "cross", "circle")


class Curve(NamedTuple):
    """Points of one line; `spread` are half widths of 95% intervals."""

    name: str
    x: Sequence[float] | npt.NDArray[np.float64]
    y: Sequence[float] | npt.NDArray[np.float64]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def _mark(style: int, x: float, y: float, size: float = 3.0) -> str:
    """A point: its shape tells the line as well as its colour."""
    shape = MARKS[style % len(MARKS)]
    look = f"k{style % 6}"
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=size, class_=look)
    outlines: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
        "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
        "cross": [(-1.2, -0.4), (1.2, -0.4), (1.2, 0.4), (-1.2, 0.4)],
    }
    path = "L".join(f"{number(x + a * size)} {number(y + b * size)}" for a, b in outlines[shape])
    return tag("path", d=f"M{path}Z", class_=look)


def line_key(names: Sequence[str]) -> str:
    """Which line is which, by colour, dash and mark."""
    items = "".join(
        f'<span><svg viewBox="0 0 24 10">{tag("path", d="M0 5H24", class_=f"l{i % 6}")}{_mark(i, 12.0, 5.0)}</svg>'
        f"{escape(name)}</span>"
        for i, name in enumerate(names)
    )
    return f'<div class="key">{items}</div>'


def _figure(title: str, width: float, height: float, inside: str) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {number(width)} {number(height)}" '
        f'role="img" aria-label="{escape(title)}">{inside}</svg></figure>'
    )


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends."""
    span = high - low
    if not span > 0:
        return [low]
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def intervals(
    title: str,
    rows: Sequence[tuple[str, Interval]],
    *,
    floor: float | None = None,
    scale: float = 100.0,
    unit: str = "%",
) -> str:
    """A dot with its 95% interval per row, on one axis; `floor` is a dashed line."""
    values = [edge for _, interval in rows for edge in interval if not math.isnan(edge)]
    if floor is not None and not math.isnan(floor):
        values.append(floor)
    low, high = min(values, default=0.0) * scale, max(values, default=1.0) * scale
    margin = max((high - low) * 0.08, 1e-9)
    low, high = low - margin, high + margin
    left, width, step = 96.0, 320.0, 18.0
    bottom = step * len(rows) + 8

    def place(value: float) -> float:
        return left + (value * scale - low) / (high - low) * (width - left - 6)

    drawn = ""
    for tick in _ticks(low, high, 4):
        x = place(tick / scale)
        drawn += tag("path", d=f"M{number(x)} 4V{number(bottom)}", class_="axis")
        drawn += tag("text", escape(f"{tick:.4g} {unit}".strip()), x=x, y=bottom + 12, class_="mid")
    if floor is not None and not math.isnan(floor):
        x = place(floor)
        drawn += tag("path", d=f"M{number(x)} 0V{number(bottom)}", class_="dash")
        drawn += tag("text", "floor", x=x + 3, y=6.0)
    for i, (name, interval) in enumerate(rows):
        y = 14 + step * i
        drawn += tag(
            "text", escape(name if len(name) <= 17 else name[:16] + "…"), x=left - 6, y=y + 3.5, class_="end ink"
        )
        if not math.isnan(interval.low):
            drawn += tag(
                "path",
                d=f"M{number(place(interval.low))} {number(y)}H{number(place(interval.high))}",
                class_=f"l{i % 6}",
                style="stroke-dasharray:none",
            )
        if not math.isnan(interval.value):
            drawn += _mark(i, place(interval.value), y, 3.4)
    return _figure(title, width, bottom + 16, drawn)


def curves(
    title: str,
    lines: Sequence[Curve],
    *,
    floor: float | None = None,
    log_x: bool = False,
    x_label: str = "",
    y_label: str = "",
) -> str:
    """Lines over one axis, logarithmic where asked, with intervals where known."""
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for part in (line.y, line.low or (), line.high or ()) for y in part if not math.isnan(y)]
    if floor is not None and not math.isnan(floor):
        ys.append(floor)
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    margin = max((high - low) * 0.06, 1e-6)
    low, high = low - margin, high + margin
    change = math.log10 if log_x else float
    first, last = change(min(xs, default=1.0)), change(max(xs, default=10.0))
    last = last if last > first else first + 1.0
    left, top, width, height = 40.0, 6.0, 320.0, 190.0
    floor_y, edge = height - 30, width - 8

    def at(x: float, y: float) -> tuple[float, float]:
        across = (change(x) - first) / (last - first)
        return left + across * (edge - left), floor_y - (y - low) / (high - low) * (floor_y - top)

    drawn = ""
    for tick in _ticks(low, high):
        y = at(10**first if log_x else first, tick)[1]
        drawn += tag("path", d=f"M{number(left)} {number(y)}H{number(edge)}", class_="axis")
        drawn += tag("text", f"{tick:.4g}", x=left - 4, y=y + 3.5, class_="end")
    taken = -math.inf
    for x in sorted(set(xs)):
        across = at(x, low)[0]
        if across - taken >= 34:
            drawn += tag("text", _short(x), x=across, y=floor_y + 12, class_="mid")
            taken = across
    if floor is not None and not math.isnan(floor):
        y = at(10**first if log_x else first, floor)[1]
        drawn += tag("path", d=f"M{number(left)} {number(y)}H{number(edge)}", class_="dash")
        drawn += tag("text", "floor", x=edge, y=y - 3, class_="end")
    for i, line in enumerate(lines):
        points = [at(x, y) for x, y in zip(line.x, line.y, strict=True) if not math.isnan(y)]
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        drawn += tag("path", d=f"M{path}", class_=f"l{i % 6}") if points else ""
        for x, low_y, high_y in zip(line.x, line.low or (), line.high or (), strict=False):
            across, bottom = at(x, low_y)
            drawn += tag(
                "path",
                d=f"M{number(across)} {number(bottom)}V{number(at(x, high_y)[1])}",
                class_=f"l{i % 6}",
                style="stroke-dasharray:none;stroke-width:1",
            )
        drawn += "".join(_mark(i, x, y) for x, y in points)
    drawn += tag("text", escape(x_label), x=(left + edge) / 2, y=height - 4, class_="mid")
    drawn += tag("text", escape(y_label), x=0.0, y=0.0) if y_label else ""
    return _figure(title, width, height, drawn)


def _short(value: float) -> str:
    """A count in few characters."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{number(value / size, 1)}{letter}"
    return number(value, 1)


def calibration(
    title: str, lines: Sequence[Curve], sizes: Sequence[npt.NDArray[np.integer]], styles: Sequence[int]
) -> str:
    """How often an action was taken (up) by how often it is played (across); the diagonal is perfect."""
    side, left, top = 170.0, 26.0, 4.0
    drawn = tag("path", d=f"M{number(left)} {number(top + side)}L{number(left + side)} {number(top)}", class_="dash")
    drawn += tag("path", d=f"M{number(left)} {number(top)}V{number(top + side)}H{number(left + side)}", class_="axis")
    for share in (0.0, 0.5, 1.0):
        drawn += tag("text", f"{100 * share:.0f}", x=left - 4, y=top + side * (1 - share) + 3.5, class_="end")
        drawn += tag("text", f"{100 * share:.0f}", x=left + side * share, y=top + side + 12, class_="mid")
    for i, line, size in zip(styles, lines, sizes, strict=True):
        points = [(left + side * x, top + side * (1 - y)) for x, y in zip(line.x, line.y, strict=True)]
        if len(points) > 1:
            path = "L".join(f"{number(x, 1)} {number(y, 1)}" for x, y in points)
            drawn += tag("path", d=f"M{path}", class_=f"l{i % 6}", style="stroke-width:1.1")
        for (x, y), rows, share in zip(points, size, line.y, strict=True):
            half = 1.96 * math.sqrt(max(share * (1 - share), 1e-9) / max(int(rows), 1)) * side
            if half > 2:
                drawn += tag(
                    "path",
                    d=f"M{number(x, 1)} {number(y - half, 1)}V{number(y + half, 1)}",
                    class_=f"l{i % 6}",
                    style="stroke-dasharray:none;stroke-width:.8",
                )
            drawn += _mark(i, x, y, 2.2)
    return _figure(title, left + side + 6, top + side + 16, drawn)


def confusion(title: str, counts: npt.NDArray[np.integer], labels: str) -> str:
    """Label taken (rows) by label most probable (columns), as shares of the rows, darker for more."""
    size = len(labels)
    cell = 190.0 / max(size, 3)
    left = 24.0
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    drawn = ""
    for i in range(size):
        drawn += tag("text", escape(labels[i]), x=left - 8, y=16 + cell * (i + 0.5) + 3, class_="ink mid")
        drawn += tag("text", escape(labels[i]), x=left + cell * (i + 0.5), y=10.0, class_="ink mid")
        for j in range(size):
            x, y = left + cell * j, 16 + cell * i
            drawn += tag(
                "rect",
                x=x,
                y=y,
                width=cell - 1,
                height=cell - 1,
                fill="var(--m0)" if i == j else "var(--m1)",
                fill_opacity=0.06 + 0.55 * float(share[i, j]),
            )
            drawn += tag(
                "text",
                f"{100 * share[i, j]:.0f} %" if counts[i].any() else "–",
                x=x + cell / 2,
                y=y + cell / 2,
                class_="mid ink",
            )
            if size <= 4:
                drawn += tag("text", f"{int(counts[i, j]):,}", x=x + cell / 2, y=y + cell / 2 + 12, class_="mid")
    return _figure(title, left + cell * size + 2, 18 + cell * size, drawn)


def mix_bar(mix: npt.NDArray[np.floating], labels: str, words: dict[str, str]) -> str:
    """A mix of actions as one bar, most aggressive first as in the charts."""
    spans = "".join(
        f'<span class="b{i}" style="width:{100 * float(mix[i]):.1f}%" title="{escape(words.get(labels[i], labels[i]))} '
        f'{100 * float(mix[i]):.1f} %">{f"{labels[i]} {100 * float(mix[i]):.0f}" if mix[i] >= 0.12 else ""}</span>'
        for i in reversed(range(len(labels)))
        if mix[i] >= 0.002
    )
    return f'<div class="mix">{spans}</div>'
