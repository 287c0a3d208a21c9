"""Small drawings from arrays: intervals beside a floor, calibration and learning curves, confusion tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.models.measures import Interval
from pipeline.poker.cards import NO_CARD, RANKS, SUIT_SIGNS, SUITS
from pipeline.report import markup
from pipeline.report.markup import LINES, escape, number, tag

MARKS = ("circle", "square", "triangle", "diamond", "bar", "plus", "star")
"""one per line, so that lines are told apart without their colours"""


class Curve(NamedTuple):
    """Points of one line; `low` and `high` are the ends of their 95% intervals."""

    name: str
    x: Sequence[float] | npt.NDArray[np.float64]
    y: Sequence[float] | npt.NDArray[np.float64]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def _mark(style: int, x: float, y: float, size: float = 3.0) -> str:
    """A point: its shape tells the line as well as its colour."""
    shape = MARKS[style % len(MARKS)]
    look = f"k{style % LINES}"
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=size, class_=look)
    outlines: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
        "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
        "bar": [(-1.3, -0.4), (1.3, -0.4), (1.3, 0.4), (-1.3, 0.4)],
        "plus": [
            *((-0.4, -1.3), (0.4, -1.3), (0.4, -0.4), (1.3, -0.4), (1.3, 0.4), (0.4, 0.4)),
            *((0.4, 1.3), (-0.4, 1.3), (-0.4, 0.4), (-1.3, 0.4), (-1.3, -0.4), (-0.4, -0.4)),
        ],
        "star": [
            (math.sin(k * math.pi / 5) * (0.6, 1.5)[k % 2 == 0], -math.cos(k * math.pi / 5) * (0.6, 1.5)[k % 2 == 0])
            for k in range(10)
        ],
    }
    path = "L".join(f"{number(x + a * size)} {number(y + b * size)}" for a, b in outlines[shape])
    return tag("path", d=f"M{path}Z", class_=look)


def line_key(names: Sequence[str]) -> str:
    """Which line is which, by colour, dash and mark."""
    items = "".join(
        f'<span><svg viewBox="0 0 24 10">{tag("path", d="M0 5H24", class_=f"l{i % LINES}")}{_mark(i, 12.0, 5.0)}</svg>'
        f"{escape(name)}</span>"
        for i, name in enumerate(names)
    )
    return f'<div class="key">{items}</div>'


def figure(title: str, width: float, height: float, inside: str) -> str:
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
                class_=f"l{i % LINES}",
                style="stroke-dasharray:none",
            )
        if not math.isnan(interval.value):
            drawn += _mark(i, place(interval.value), y, 3.4)
    return figure(title, width, bottom + 16, drawn)


def _log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten between two logarithms; two ends where there is no power of ten between them."""
    powers = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    powers = powers[:: max(1, math.ceil(len(powers) / most))]
    return [float(power) for power in powers] if len(powers) > 1 else [low, high]


def curves(
    title: str,
    lines: Sequence[Curve],
    *,
    floor: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
    x_label: str = "",
    y_label: str = "",
) -> str:
    """Lines over one axis as a figure of the page, logarithmic axes where wanted, with intervals where known."""
    drawn = draw_curves(lines, floor=floor, log_x=log_x, log_y=log_y, x_label=x_label, y_label=y_label)
    return figure(title, *CURVES, drawn)


CURVES = (340.0, 206.0)
"""width and height of a drawing of curves"""


def draw_curves(
    lines: Sequence[Curve],
    *,
    floor: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
    x_label: str = "",
    y_label: str = "",
) -> str:
    """The drawing that `curves` frames: axes with titles, grid lines, curves."""
    across = math.log10 if log_x else float

    def up(value: float) -> float:
        return math.log10(max(value, 1e-300)) if log_y else value

    known = floor is not None and not math.isnan(floor)
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for part in (line.y, line.low or (), line.high or ()) for y in part if not math.isnan(y)]
    ys = [up(y) for y in (*ys, *((floor,) if floor is not None and known else ())) if y > 0 or not log_y]
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    margin = max((high - low) * 0.06, 1e-6)
    low, high = low - margin, high + margin
    first, last = across(min(xs, default=1.0)), across(max(xs, default=10.0))
    last = last if last > first else first + 1.0
    width, height = CURVES
    left, top, bottom, edge = 58.0, 6.0, height - 36, width - 8

    def right(x: float) -> float:
        return left + (across(x) - first) / (last - first) * (edge - left)

    def level(scaled: float) -> float:
        return bottom - (scaled - low) / (high - low) * (bottom - top)

    drawn = ""
    for tick in _log_ticks(low, high) if log_y else _ticks(low, high):
        y = level(tick)
        drawn += tag("path", d=f"M{number(left)} {number(y)}H{number(edge)}", class_="axis")
        value = 10**tick if log_y else tick
        drawn += tag(
            "text", f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}", x=left - 4, y=y + 3.5, class_="end"
        )
    taken = -math.inf
    for x in sorted(set(xs)):
        if right(x) - taken >= 34:
            drawn += tag("text", _short(x), x=right(x), y=bottom + 13, class_="mid")
            taken = right(x)
    if floor is not None and known:
        y = level(up(floor))
        drawn += tag("path", d=f"M{number(left)} {number(y)}H{number(edge)}", class_="dash")
        drawn += tag("text", "floor", x=edge, y=y - 3, class_="end")
    for i, line in enumerate(lines):
        drawn += _one_curve(i, line, right, lambda y: level(up(y)), log_y)
    drawn += tag("text", escape(x_label), x=(left + edge) / 2, y=height - 6, class_="mid") if x_label else ""
    return drawn + (_upright(y_label, 10.0, (top + bottom) / 2) if y_label else "")


def _one_curve(
    style: int, line: Curve, right: Callable[[float], float], level: Callable[[float], float], positive: bool
) -> str:
    """One line with its intervals and marks; on a logarithmic axis what is not above 0 is left out."""
    shown = [(x, y) for x, y in zip(line.x, line.y, strict=True) if not math.isnan(y) and (y > 0 or not positive)]
    points = [(right(x), level(y)) for x, y in shown]
    path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    drawn = tag("path", d=f"M{path}", class_=f"l{style % LINES}") if points else ""
    for x, low, high in zip(line.x, line.low or (), line.high or (), strict=False):
        if not math.isnan(low + high):
            drawn += tag(
                "path",
                d=f"M{number(right(x))} {number(level(low))}V{number(level(high))}",
                class_=f"l{style % LINES}",
                style="stroke-dasharray:none;stroke-width:1",
            )
    return drawn + "".join(_mark(style, x, y) for x, y in points)


def _upright(text: str, x: float, y: float) -> str:
    """The title of a vertical axis, read from below."""
    return tag("text", escape(text), x=x, y=y, class_="mid", transform=f"rotate(-90 {number(x)} {number(y)})")


class Panel(NamedTuple):
    """One drawing of a picture file: its title, the drawing (of the size `CURVES`) and the names of its lines."""

    title: str
    drawn: str
    names: Sequence[str] = ()


def picture(title: str, panels: Sequence[Panel]) -> str:
    """Curves below each other as one SVG file, each with its title and the names of its lines."""
    width, height = CURVES
    drawn, y = tag("text", escape(title), x=20.0, y=30.0, class_="title ink"), 44.0
    for panel in panels:
        drawn += tag("text", escape(panel.title), x=20.0, y=y + 14, class_="head ink")
        drawn += tag("g", panel.drawn, transform=f"translate(20 {number(y + 22)})")
        y += height + 30
        x = 24.0
        for i, name in enumerate(panel.names):
            size = 44 + 6.0 * len(name)
            if x + size > width + 20:
                x, y = 24.0, y + 16
            line = tag("path", d=f"M{number(x)} {number(y)}h24", class_=f"l{i % LINES}") + _mark(i, x + 12, y)
            drawn += line + tag("text", escape(name), x=x + 28, y=y + 3.5, class_="ink")
            x += size
        y += 18 if panel.names else 0
    return markup.picture(drawn, width + 40, y + 8)


def _short(value: float) -> str:
    """A number in few characters.

    >>> _short(12_500), _short(0.05), _short(0.125), _short(1.5)
    ('12.5k', '0.05', '0.12', '1.5')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{number(value / size, 1)}{letter}"
    return number(value, 1 if value >= 1 else 2)


def wilson(share: float, rows: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of `rows`; unlike share ± error it stays between 0 and 1 for a few rows.

    >>> [round(end, 3) for end in wilson(0.5, 4)]
    [0.15, 0.85]
    >>> [round(end, 3) for end in wilson(1.0, 2)]
    [0.342, 1.0]
    """
    count, z = max(rows, 1), 1.96
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


FEWEST = 20
"""decisions of a point of a calibration curve: fewer are drawn together with their neighbours"""


def _joined(line: Curve, sizes: npt.NDArray[np.integer]) -> tuple[Curve, npt.NDArray[np.int64]]:
    """A calibration curve whose neighbouring points are joined until each has `FEWEST` decisions, if there are so many.

    >>> line, sizes = _joined(Curve("", [0.1, 0.2, 0.5], [0.0, 0.4, 0.5]), np.array([10, 10, 40]))
    >>> line.x.round(2).tolist(), line.y.round(2).tolist(), sizes.tolist()
    ([0.15, 0.5], [0.2, 0.5], [20, 40])
    """
    starts, have = [], FEWEST
    for at, size in enumerate(sizes):
        if have >= FEWEST and (at == 0 or int(sizes[at:].sum()) >= FEWEST):
            starts.append(at)
            have = 0
        have += int(size)
    if not starts:
        return line, sizes.astype(np.int64)
    rows = np.add.reduceat(sizes, starts)
    x, y = (np.add.reduceat(np.asarray(values) * sizes, starts) / rows for values in (line.x, line.y))
    return Curve(line.name, x, y), rows.astype(np.int64)


def calibration(
    title: str, lines: Sequence[Curve], sizes: Sequence[npt.NDArray[np.integer]], styles: Sequence[int]
) -> str:
    """How often an action was taken (up) by how often it is played (across); the diagonal is perfect."""
    side, left, top = 170.0, 38.0, 4.0
    drawn = tag("path", d=f"M{number(left)} {number(top + side)}L{number(left + side)} {number(top)}", class_="dash")
    drawn += tag("path", d=f"M{number(left)} {number(top)}V{number(top + side)}H{number(left + side)}", class_="axis")
    for share in (0.0, 0.5, 1.0):
        drawn += tag("text", f"{100 * share:.0f}", x=left - 4, y=top + side * (1 - share) + 3.5, class_="end")
        drawn += tag("text", f"{100 * share:.0f}", x=left + side * share, y=top + side + 12, class_="mid")
    joined = [_joined(line, size) for line, size in zip(lines, sizes, strict=True)]
    for i, (line, size) in zip(styles, joined, strict=True):
        points = [(left + side * x, top + side * (1 - y)) for x, y in zip(line.x, line.y, strict=True)]
        if len(points) > 1:
            path = "L".join(f"{number(x, 1)} {number(y, 1)}" for x, y in points)
            drawn += tag("path", d=f"M{path}", class_=f"l{i % LINES}", style="stroke-width:1.1")
        for (x, y), rows, share in zip(points, size, line.y, strict=True):
            low, high = wilson(share, int(rows))
            if (high - low) * side > 4:
                ends = top + side * (1 - high), top + side * (1 - low)
                drawn += tag(
                    "path",
                    d=f"M{number(x, 1)} {number(ends[0], 1)}V{number(ends[1], 1)}",
                    class_=f"l{i % LINES}",
                    style="stroke-dasharray:none;stroke-width:.8",
                )
            drawn += _mark(i, x, y, 2.2)
    drawn += tag("text", "the model says, %", x=left + side / 2, y=top + side + 26, class_="mid")
    drawn += _upright("the agent does, %", 9.0, top + side / 2)
    return figure(title, left + side + 8, top + side + 30, drawn)


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
                fill_opacity=0.06 + 0.42 * float(share[i, j]),
            )
            drawn += tag(
                "text",
                f"{100 * share[i, j]:.0f}{' %' if size <= 4 else ''}" if counts[i].any() else "–",
                x=x + cell / 2,
                y=y + cell / 2 + (0 if size <= 4 else 3),
                class_="mid ink",
            )
            if size <= 4:
                drawn += tag("text", f"{int(counts[i, j]):,}", x=x + cell / 2, y=y + cell / 2 + 12, class_="mid ink")
    return figure(title, left + cell * size + 2, 18 + cell * size, drawn)


def mix_bar(mix: npt.NDArray[np.floating] | Sequence[float], labels: str, words: dict[str, str]) -> str:
    """A mix of actions as one bar, most aggressive first as in the charts."""
    spans = "".join(
        f'<span class="b{i}" style="width:{100 * float(mix[i]):.1f}%" title="{escape(words.get(labels[i], labels[i]))} '
        f'{100 * float(mix[i]):.1f} %">{f"{labels[i]} {100 * float(mix[i]):.0f}" if mix[i] >= 0.12 else ""}</span>'
        for i in reversed(range(len(labels)))
        if mix[i] >= 0.002
    )
    return f'<div class="mix">{spans}</div>'


def card(number: int) -> str:
    """Draw one card; a card not seen is a dashed back."""
    if number == NO_CARD:
        return '<span class="card back">?</span>'
    suit = SUITS[number & 3]
    look = "card red" if suit in "dh" else "card"
    return f'<span class="{look}">{RANKS[number >> 2]}{SUIT_SIGNS[suit]}\ufe0e</span>'
