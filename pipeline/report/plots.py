"""Drawings as SVG text: tags, style sheets and picture files, and plots made of them.

In go arrays and words, out comes markup: intervals beside a floor, calibration and learning curves, confusion tables,
mixes of actions and cards for a page, and whole SVG files. Attributes are escaped. Colours are those of Okabe and Ito,
told apart with any kind of colour blindness, and never the only sign: mixes are always drawn in the same order, lines
have their own marks and dashes. Light or dark follows the reader's system.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.models.measures import Interval, wilson
from pipeline.poker.cards import NO_CARD, RANKS, SUIT_SIGNS, SUITS

ACTION_COLOURS = ("#b9bec7", "#56b4e9", "#e8894a", "#f0c419", "#de8ab9", "#b391d9", "#e8574f")
"""fold, call, then raises from small to all in; dark text on each has a contrast of at least 4.5"""

RESOURCES = Path(str(files("pipeline.report"))) / "resources"
"""style sheets and templates of pages"""

LINES = 7
"""lines of one plot that colour, dash and mark tell apart"""


def _rules(name: str) -> str:
    """Return the rules of a style sheet of resources/ in one line."""
    return (RESOURCES / name).read_text(encoding="utf-8").replace("\n", "")


def _drawings() -> str:
    """Return the rules of drawings with a fill per action, and a stroke, dash and mark per line."""
    dashes = ("none", "6 3", "2 2", "8 3 2 3", "1 3", "12 3", "4 2 1 2 1 2")
    fills = "".join(f".f{i}{{fill:var(--a{i})}}" for i in range(len(ACTION_COLOURS)))
    fills += "".join(
        f".l{i}{{fill:none;stroke-width:1.6;stroke:var(--m{i});stroke-dasharray:{dashes[i]}}}.k{i}{{fill:var(--m{i})}}"
        for i in range(LINES)
    )
    return _rules("drawings.css").replace("FILLS", fills)


def style_sheet() -> str:
    """Return the style sheet in one line, with the colours of the actions."""
    actions = "".join(f"--a{i}:{colour};" for i, colour in enumerate(ACTION_COLOURS))
    return _rules("page.css").replace("DRAWINGS", _drawings()).replace("ACTIONS", actions)


def picture_file(drawn: str, width: float, height: float) -> str:
    """Return drawings as an SVG file of their own, on a white background so that they are readable everywhere.

    The page's light colours are written out: programs other than browsers do not know the variables of a style sheet.
    """
    style = style_sheet()
    colours = dict(re.findall(r"(--\w+):([^;}]+)", style[style.index(":root{") : style.index("}")]))
    rules = re.sub(r"var\((--\w+)\)", lambda variable: colours[variable[1]], _drawings())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{trim(width)}" height="{trim(height)}" '
        f'viewBox="0 0 {trim(width)} {trim(height)}"><style>{rules}svg .title{{font-size:17px;font-weight:600}}'
        "svg .head{font-size:12px}</style>"
        f'<rect x=".5" y=".5" width="{trim(width - 1)}" height="{trim(height - 1)}" rx="8" fill="#fff" '
        f'stroke="{colours["--line"]}"/>{drawn}</svg>\n'
    )


def escape(text: object) -> str:
    """Return text for between tags or inside an attribute."""
    return html.escape(str(text))


def tag(name: str, *inside: str, **attributes: object) -> str:
    """Return an element; `class_` gives class, other underscores give hyphens; numbers are written short.

    >>> tag("rect", x=1.50, width=2.0, class_="f0")
    '<rect x="1.5" width="2" class="f0"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{trim(value) if isinstance(value, float) else escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not inside and name in ("rect", "path", "line", "circle", "use", "meta", "polyline"):
        return f"<{name}{written}/>"
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def trim(value: float, digits: int = 2) -> str:
    """Return a number without needless zeros.

    >>> trim(1.50), trim(-0.001), trim(12.0)
    ('1.5', '0', '12')
    """
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def percent_with_sign(value: float, digits: int = 1) -> str:
    """Return a share in percent with its sign, or a dash where unknown.

    >>> percent_with_sign(0.1886), percent_with_sign(float("nan"))
    ('18.9\xa0%', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{100 * value:.{digits}f}\xa0%"


MARKS = ("circle", "square", "triangle", "diamond", "bar", "plus", "star")
"""one per line, so that lines differ without their colours"""


class Curve(NamedTuple):
    """Points of one line; `low` and `high` are the ends of their 95% intervals."""

    name: str
    x: Sequence[float] | npt.NDArray[np.float64]
    y: Sequence[float] | npt.NDArray[np.float64]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def _mark(line: int, x: float, y: float, size: float = 3.0) -> str:
    """Draw a point: its shape tells the line as well as its colour."""
    shape = MARKS[line % len(MARKS)]
    style = f"k{line % LINES}"
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=size, class_=style)
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
    path = "L".join(f"{trim(x + a * size)} {trim(y + b * size)}" for a, b in outlines[shape])
    return tag("path", d=f"M{path}Z", class_=style)


def line_key(names: Sequence[str]) -> str:
    """Draw a key of lines by colour, dash and mark."""
    items = "".join(
        f'<span><svg viewBox="0 0 24 10">{tag("path", d="M0 5H24", class_=f"l{i % LINES}")}{_mark(i, 12.0, 5.0)}</svg>'
        f"{escape(name)}</span>"
        for i, name in enumerate(names)
    )
    return f'<div class="key">{items}</div>'


def figure(title: str, width: float, height: float, drawn: str) -> str:
    """Frame a drawing as a figure of the page."""
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {trim(width)} {trim(height)}" '
        f'role="img" aria-label="{escape(title)}">{drawn}</svg></figure>'
    )


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two ends."""
    span = high - low
    if not span > 0:
        return [low]
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def interval_plot(
    title: str,
    rows: Sequence[tuple[str, Interval]],
    *,
    floor: float | None = None,
    scale: float = 100.0,
    unit: str = "%",
) -> str:
    """Draw a dot with its 95% interval per row, on one axis; `floor` is a dashed line."""
    values = [edge for _, interval in rows for edge in interval if not math.isnan(edge)]
    if floor is not None and not math.isnan(floor):
        values.append(floor)
    low, high = min(values, default=0.0) * scale, max(values, default=1.0) * scale
    margin = max((high - low) * 0.08, 1e-9)
    low, high = low - margin, high + margin
    edge, width, step = 96.0, 320.0, 18.0
    bottom = step * len(rows) + 8

    def place(value: float) -> float:
        return edge + (value * scale - low) / (high - low) * (width - edge - 6)

    drawn = ""
    for tick in _ticks(low, high, 4):
        x = place(tick / scale)
        drawn += tag("path", d=f"M{trim(x)} 4V{trim(bottom)}", class_="axis")
        drawn += tag("text", escape(f"{tick:.4g} {unit}".strip()), x=x, y=bottom + 12, class_="mid")
    if floor is not None and not math.isnan(floor):
        x = place(floor)
        drawn += tag("path", d=f"M{trim(x)} 0V{trim(bottom)}", class_="dash")
        drawn += tag("text", "floor", x=x + 3, y=6.0)
    for i, (name, interval) in enumerate(rows):
        y = 14 + step * i
        drawn += tag(
            "text", escape(name if len(name) <= 17 else name[:16] + "…"), x=edge - 6, y=y + 3.5, class_="end ink"
        )
        if not math.isnan(interval.low):
            drawn += tag(
                "path",
                d=f"M{trim(place(interval.low))} {trim(y)}H{trim(place(interval.high))}",
                class_=f"l{i % LINES}",
                style="stroke-dasharray:none",
            )
        if not math.isnan(interval.value):
            drawn += _mark(i, place(interval.value), y, 3.4)
    return figure(title, width, bottom + 16, drawn)


def _log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return powers of ten between two logarithms; the two ends where there is no power of ten between them."""
    powers = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    powers = powers[:: max(1, math.ceil(len(powers) / most))]
    return [float(power) for power in powers] if len(powers) > 1 else [low, high]


def curve_plot(
    title: str,
    lines: Sequence[Curve],
    *,
    floor: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
    x_label: str = "",
    y_label: str = "",
) -> str:
    """Draw lines over one axis as a figure of the page, logarithmic axes where wanted, with intervals where known."""
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
    """Draw what `curve_plot` frames: axes with titles, grid lines, curves."""
    across = math.log10 if log_x else float

    def up(value: float) -> float:
        return math.log10(max(value, 1e-300)) if log_y else value

    has_floor = floor is not None and not math.isnan(floor)
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for part in (line.y, line.low or (), line.high or ()) for y in part if not math.isnan(y)]
    ys = [up(y) for y in (*ys, *((floor,) if floor is not None and has_floor else ())) if y > 0 or not log_y]
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    margin = max((high - low) * 0.06, 1e-6)
    low, high = low - margin, high + margin
    first, last = across(min(xs, default=1.0)), across(max(xs, default=10.0))
    last = last if last > first else first + 1.0
    width, height = CURVES
    left_edge, top, bottom, right_edge = 58.0, 6.0, height - 36, width - 8

    def right(x: float) -> float:
        return left_edge + (across(x) - first) / (last - first) * (right_edge - left_edge)

    def level(scaled: float) -> float:
        return bottom - (scaled - low) / (high - low) * (bottom - top)

    drawn = ""
    for tick in _log_ticks(low, high) if log_y else _ticks(low, high):
        y = level(tick)
        drawn += tag("path", d=f"M{trim(left_edge)} {trim(y)}H{trim(right_edge)}", class_="axis")
        value = 10**tick if log_y else tick
        drawn += tag(
            "text", f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}", x=left_edge - 4, y=y + 3.5, class_="end"
        )
    label_end = -math.inf
    for x in sorted(set(xs)):
        # labels that would overlap the one before are left out
        if right(x) - label_end >= 34:
            drawn += tag("text", _short(x), x=right(x), y=bottom + 13, class_="mid")
            label_end = right(x)
    if floor is not None and has_floor:
        y = level(up(floor))
        drawn += tag("path", d=f"M{trim(left_edge)} {trim(y)}H{trim(right_edge)}", class_="dash")
        drawn += tag("text", "floor", x=right_edge, y=y - 3, class_="end")
    for i, line in enumerate(lines):
        drawn += _one_curve(i, line, right, lambda y: level(up(y)), log_y)
    drawn += tag("text", escape(x_label), x=(left_edge + right_edge) / 2, y=height - 6, class_="mid") if x_label else ""
    return drawn + (_upright(y_label, 10.0, (top + bottom) / 2) if y_label else "")


def _one_curve(
    style: int, line: Curve, right: Callable[[float], float], level: Callable[[float], float], positive: bool
) -> str:
    """Draw one line with its intervals and marks; on a logarithmic axis what is not above 0 is left out."""
    values = [(x, y) for x, y in zip(line.x, line.y, strict=True) if not math.isnan(y) and (y > 0 or not positive)]
    points = [(right(x), level(y)) for x, y in values]
    path = "L".join(f"{trim(x)} {trim(y)}" for x, y in points)
    drawn = tag("path", d=f"M{path}", class_=f"l{style % LINES}") if points else ""
    for x, low, high in zip(line.x, line.low or (), line.high or (), strict=False):
        if not math.isnan(low + high):
            drawn += tag(
                "path",
                d=f"M{trim(right(x))} {trim(level(low))}V{trim(level(high))}",
                class_=f"l{style % LINES}",
                style="stroke-dasharray:none;stroke-width:1",
            )
    return drawn + "".join(_mark(style, x, y) for x, y in points)


def _upright(text: str, x: float, y: float) -> str:
    """Write the title of a vertical axis, read from below."""
    return tag("text", escape(text), x=x, y=y, class_="mid", transform=f"rotate(-90 {trim(x)} {trim(y)})")


class Panel(NamedTuple):
    """One drawing of a picture file: its title, the drawing (of the size `CURVES`) and the names of its lines."""

    title: str
    drawn: str
    names: Sequence[str] = ()


def curves_picture(title: str, panels: Sequence[Panel]) -> str:
    """Draw curves below each other as one SVG file, each with its title and the names of its lines."""
    width, height = CURVES
    drawn, y = tag("text", escape(title), x=20.0, y=30.0, class_="title ink"), 44.0
    for panel in panels:
        drawn += tag("text", escape(panel.title), x=20.0, y=y + 14, class_="head ink")
        drawn += tag("g", panel.drawn, transform=f"translate(20 {trim(y + 22)})")
        y += height + 30
        x = 24.0
        for i, name in enumerate(panel.names):
            size = 44 + 6.0 * len(name)
            if x + size > width + 20:
                x, y = 24.0, y + 16
            line = tag("path", d=f"M{trim(x)} {trim(y)}h24", class_=f"l{i % LINES}") + _mark(i, x + 12, y)
            drawn += line + tag("text", escape(name), x=x + 28, y=y + 3.5, class_="ink")
            x += size
        y += 18 if panel.names else 0
    return picture_file(drawn, width + 40, y + 8)


def _short(value: float) -> str:
    """Return a number in few characters.

    >>> _short(12_500), _short(0.05), _short(0.125), _short(1.5)
    ('12.5k', '0.05', '0.12', '1.5')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{trim(value / size, 1)}{letter}"
    return trim(value, 1 if value >= 1 else 2)


MIN_POINT_ROWS = 20
"""decisions of a point of a calibration curve: a point of fewer is joined with its neighbours"""


def _join_points(line: Curve, sizes: npt.NDArray[np.integer]) -> tuple[Curve, npt.NDArray[np.int64]]:
    """Join neighbouring points of a calibration curve until each has `MIN_POINT_ROWS` decisions, if there are so many.

    >>> line, sizes = _join_points(Curve("", [0.1, 0.2, 0.5], [0.0, 0.4, 0.5]), np.array([10, 10, 40]))
    >>> line.x.round(2).tolist(), line.y.round(2).tolist(), sizes.tolist()
    ([0.15, 0.5], [0.2, 0.5], [20, 40])
    """
    starts, rows_so_far = [], MIN_POINT_ROWS
    for place, size in enumerate(sizes):
        if rows_so_far >= MIN_POINT_ROWS and (place == 0 or int(sizes[place:].sum()) >= MIN_POINT_ROWS):
            starts.append(place)
            rows_so_far = 0
        rows_so_far += int(size)
    if not starts:
        return line, sizes.astype(np.int64)
    rows = np.add.reduceat(sizes, starts)
    x, y = (np.add.reduceat(np.asarray(values) * sizes, starts) / rows for values in (line.x, line.y))
    return Curve(line.name, x, y), rows.astype(np.int64)


def calibration_plot(
    title: str, lines: Sequence[Curve], sizes: Sequence[npt.NDArray[np.integer]], styles: Sequence[int]
) -> str:
    """Draw how often an action was taken (up) by how often it is played (across); the diagonal is perfect."""
    side, edge, top = 170.0, 38.0, 4.0
    drawn = tag("path", d=f"M{trim(edge)} {trim(top + side)}L{trim(edge + side)} {trim(top)}", class_="dash")
    drawn += tag("path", d=f"M{trim(edge)} {trim(top)}V{trim(top + side)}H{trim(edge + side)}", class_="axis")
    for share in (0.0, 0.5, 1.0):
        drawn += tag("text", f"{100 * share:.0f}", x=edge - 4, y=top + side * (1 - share) + 3.5, class_="end")
        drawn += tag("text", f"{100 * share:.0f}", x=edge + side * share, y=top + side + 12, class_="mid")
    joined = [_join_points(line, size) for line, size in zip(lines, sizes, strict=True)]
    for i, (line, size) in zip(styles, joined, strict=True):
        points = [(edge + side * x, top + side * (1 - y)) for x, y in zip(line.x, line.y, strict=True)]
        if len(points) > 1:
            path = "L".join(f"{trim(x, 1)} {trim(y, 1)}" for x, y in points)
            drawn += tag("path", d=f"M{path}", class_=f"l{i % LINES}", style="stroke-width:1.1")
        for (x, y), rows, share in zip(points, size, line.y, strict=True):
            low, high = wilson(share, max(int(rows), 1))
            if (high - low) * side > 4:
                ends = top + side * (1 - high), top + side * (1 - low)
                drawn += tag(
                    "path",
                    d=f"M{trim(x, 1)} {trim(ends[0], 1)}V{trim(ends[1], 1)}",
                    class_=f"l{i % LINES}",
                    style="stroke-dasharray:none;stroke-width:.8",
                )
            drawn += _mark(i, x, y, 2.2)
    drawn += tag("text", "the model says, %", x=edge + side / 2, y=top + side + 26, class_="mid")
    drawn += _upright("the agent does, %", 9.0, top + side / 2)
    return figure(title, edge + side + 8, top + side + 30, drawn)


def confusion_plot(title: str, counts: npt.NDArray[np.integer], labels: str) -> str:
    """Draw label taken (rows) by label most probable (columns), as shares of the rows, darker for more."""
    size = len(labels)
    cell = 190.0 / max(size, 3)
    edge = 24.0
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    drawn = ""
    for i in range(size):
        drawn += tag("text", escape(labels[i]), x=edge - 8, y=16 + cell * (i + 0.5) + 3, class_="ink mid")
        drawn += tag("text", escape(labels[i]), x=edge + cell * (i + 0.5), y=10.0, class_="ink mid")
        for j in range(size):
            x, y = edge + cell * j, 16 + cell * i
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
    return figure(title, edge + cell * size + 2, 18 + cell * size, drawn)


def mix_bar(mix: npt.NDArray[np.floating] | Sequence[float], labels: str, words: dict[str, str]) -> str:
    """Draw a mix of actions as one bar, most aggressive first as in the charts."""
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
