"""Draw the 13 x 13 grid of starting hands: as SVG for the page and for picture files, and as text for a terminal.

In go mixes of actions or numbers for the 169 starting classes (in games of one card: for the 13 ranks), out comes
markup or text. Every drawing of starting hands is made here, so that the page, `show chart --out x.svg` and the
terminal have the same order, colours and legend: aces first, pairs on the diagonal, suited hands above it. In a cell of
the SVG the most aggressive action is on the left and folding on the right, each as wide as its probability; a class
that never came up is hatched. On a page the 169 names are drawn once (`names_once`) and reused by every chart; each
action of a chart is one path, so a chart takes about 20 kB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pipeline.dataset.decisions import betting_text
from pipeline.models.charts import Chart
from pipeline.poker.cards import RANKS, class_text
from pipeline.report.plots import escape, picture_file, tag
from pipeline.report.words import WORDS, situation_words

CELL = 20
CLASSES = 169
SIDE = 13 * CELL
GAP = 24
TERMINAL = (90, 36, 33, 93, 95, 35, 31)
"""ANSI colours of the labels in a terminal, the nearest to those of the page"""
TEXT_WIDTH = 68
"""columns of a 13 x 13 grid with shares; a narrower terminal is shown the letters alone"""


def _name(place: int, classes: int) -> str:
    """Return the name of the class at a place of the grid: from the top left, aces first."""
    return class_text(place) if classes == CLASSES else RANKS[12 - place]


def _definitions(classes: int = CLASSES) -> str:
    """Draw the names of the classes, the lines between cells and the hatching."""
    rows = classes // 13
    names = "".join(
        f'<text x="{column * CELL + 10}" y="{row * CELL + 13}">{_name(row * 13 + column, classes)}</text>'
        for row in range(rows)
        for column in range(13)
    )
    lines = "".join(f"M0 {i * CELL}H{SIDE}" for i in range(rows + 1))
    lines += "".join(f"M{i * CELL} 0V{rows * CELL}" for i in range(14))
    hatch = (
        '<pattern id="none" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0H5V5H0z" fill="#eef0f3"/><path d="M0 0V5" stroke="#c3c8d1" stroke-width="1.6"/></pattern>'
    )
    return f'{hatch}<g id="names" class="chart"><path class="edge" d="{lines}"/>{names}</g>'


def names_once() -> str:
    """Draw the names of the classes and the hatching, for all charts of the page."""
    return (
        '<svg width="0" height="0" style="position:absolute;width:0" aria-hidden="true">'
        f"<defs>{_definitions()}</defs></svg>"
    )


def key(labels: str, words: dict[str, str] = WORDS, *, never: bool = False) -> str:
    """Draw a legend of the colours in the order of the bars; with `never`, of the hatching too."""
    items = "".join(
        f'<span><i class="b{i}"></i>{escape(words.get(labels[i], labels[i]))}</span>'
        for i in reversed(range(len(labels)))
    )
    items += '<span><i class="hatched"></i>never came up</span>' if never else ""
    return f'<div class="key">{items}</div>'


def _cells(mix: npt.NDArray[np.floating], labels: str, count: npt.NDArray[np.integer] | None, titles: bool) -> str:
    """Draw the coloured cells of one grid: a path per action, one for the classes never seen, a tip per class."""
    paths = [""] * len(labels)
    empty, tips = "", ""
    for index in range(len(mix)):
        y, x = divmod(index, 13)
        row = np.nan_to_num(mix[index])
        total = float(row.sum())
        offset = 0.0
        if total <= 0:
            empty += f"M{x * CELL} {y * CELL}h20v20h-20z"
        for label in reversed(range(len(labels))):
            width = round(CELL * float(row[label]) / total, 1) if total > 0 else 0.0
            if width > 0:
                paths[label] += f"M{x * CELL + offset:g} {y * CELL}h{width:g}v20h-{width:g}z"
            # ends are rounded as widths are, so that neighbouring colours meet without a gap
            offset = round(offset + width, 1)
        if titles:
            mix_words = (
                " ".join(f"{labels[i]} {100 * row[i] / total:.0f}" for i in range(len(labels)) if row[i] > 0)
                if total
                else "never seen"
            )
            seen = f" ({int(count[index]):,} seen)" if count is not None else ""
            tips += (
                f'<rect class="hit" x="{x * CELL}" y="{y * CELL}" width="20" height="20">'
                f"<title>{_name(index, len(mix))}: {mix_words}{seen}</title></rect>"
            )
    drawn = "".join(tag("path", class_=f"f{i}", d=d) for i, d in enumerate(paths) if d)
    if empty:
        drawn += tag("path", class_="none", d=empty)
    return f'{drawn}<use href="#names"/>{tips}'


def chart(
    mix: npt.NDArray[np.floating],
    labels: str,
    title: str,
    *,
    count: npt.NDArray[np.integer] | None = None,
    titles: bool = True,
) -> str:
    """Draw one chart of a page.

    Parameters: `mix` (169, labels), a row of zeros or NaN was never seen; `count` (169) how often each class came up;
    `titles` whether a cell shows its mix when pointed at. Returns a figure that needs `names_once` on the same page.
    """
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg class="chart" viewBox="0 0 {SIDE} {SIDE}" role="img" '
        f'aria-label="{escape(title)}">{_cells(mix, labels, count, titles)}</svg></figure>'
    )


def largest(counted: Chart, most: int) -> list[int]:
    """Return the numbers of the `most` situations with the most decisions, largest first."""
    return [int(row) for row in np.argsort(-counted.counts.sum(axis=(1, 2)), kind="stable")[:most]]


def chart_picture(counted: Chart, situations: Sequence[int] | None = None, *, title: str = "") -> str:
    """Draw a chart as one SVG file: a grid per situation, title and legend, on a background of its own.

    Parameters: `situations` are rows of `counted.counts` in the order to draw (default: all, largest first).
    The same cells, colours and legend as on the page; readable on light and dark backgrounds alike.
    """
    drawn_rows = largest(counted, len(counted.words)) if situations is None else list(situations)
    classes, labels = counted.counts.shape[1], counted.labels
    across = min(len(drawn_rows), 3 if len(drawn_rows) != 4 else 2)
    width = max(across * (SIDE + GAP) + GAP, 2 * (SIDE + GAP) + GAP)
    has_gaps = bool((counted.counts[drawn_rows].sum(axis=2) == 0).any())
    drawn, end = _legend(labels, 50 if title else 26, has_gaps, width)
    top, step = end + 20, classes // 13 * CELL + 42
    height = top + -(-len(drawn_rows) // max(across, 1)) * step
    if title:
        drawn += f'<text class="title ink" x="{GAP}" y="30">{escape(title)}</text>'
    for place, row in enumerate(drawn_rows):
        x, y = GAP + place % across * (SIDE + GAP), top + place // across * step
        counts = counted.counts[row] if classes == CLASSES else counted.counts[row][::-1]
        betting = situation_words(betting_text(counted.words[row], len(labels) > 3))
        caption = f"{betting}: {counts.sum():,.0f} decisions"
        drawn += f'<text class="head ink" x="{x}" y="{y + 12}">{escape(caption)}</text>'
        cells = _cells(counts, labels, counts.sum(axis=1).astype(np.int64), True)
        drawn += f'<g class="chart" transform="translate({x} {y + 18})">{cells}</g>'
    return picture_file(f"<defs>{_definitions(classes)}</defs>{drawn}", width, height)


def _legend(labels: str, y: int, never: bool, width: int) -> tuple[str, int]:
    """Draw the legend of a picture file: a coloured square and a word per action, in the order they are drawn.

    The first of its lines stands at `y`, none is wider than the picture; returns the markup and where the last stands.
    """
    items = [(f'class="f{i}"', WORDS.get(labels[i], labels[i])) for i in reversed(range(len(labels)))]
    items += [('class="none"', "never came up")] if never else []
    drawn, x = "", GAP
    for look, word in items:
        item = 34 + round(6.6 * len(word))
        if x > GAP and x + item > width:
            x, y = GAP, y + 20
        drawn += f'<rect {look} x="{x}" y="{y - 10}" width="12" height="12" rx="2"/>'
        drawn += f'<text class="head ink" x="{x + 17}" y="{y}">{escape(word)}</text>'
        x += item
    return drawn, y


def _grid_text(cell: Callable[[int], str], width: int, rows: int = 13) -> list[str]:
    """Return the lines of a grid in a terminal: ranks above and on the left, `cell(place)` padded by itself."""
    names = list(reversed(RANKS))
    lines = ["   " + " ".join(f"{name:>{width}}" for name in names)]
    for row in range(rows):
        cells = " ".join(cell(13 * row + column) for column in range(13))
        lines.append(f"{names[row] if rows > 1 else ' '}  {cells}")
    return lines


def _coloured(text: str, colour: int, wanted: bool) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if wanted else text


def chart_text(
    counted: Chart, situation: int, *, colour: bool = False, columns: int = TEXT_WIDTH, reached: bool = True
) -> str:
    """Return a situation's grid for a terminal: the likeliest action of each cell with its share in percent.

    `..` is a class that was never seen here. A terminal narrower than 68 `columns` is shown the letters alone. With
    `reached=False` the title says that nobody gets into this situation if both players keep to the chart.
    """
    counts = counted.counts[situation]
    seen = counts.sum(axis=1)
    shares = counts.sum(axis=0) / max(1.0, seen.sum())
    narrow = columns < TEXT_WIDTH
    width = 2 if narrow else 4

    def cell(place: int) -> str:
        mix = counts[place if len(counts) == CLASSES else 12 - place]
        total = float(mix.sum())
        if total == 0:
            return "..".rjust(width)
        best = int(mix.argmax())
        letter = counted.labels[best]
        shown = letter.rjust(width) if narrow else f"{letter}{100 * mix[best] / total:3.0f}"
        return _coloured(shown, TERMINAL[best], colour)

    betting = betting_text(counted.words[situation], len(counted.labels) > 3)
    title = f"{situation_words(betting)} ({betting}): {seen.sum():,.0f} decisions, "
    title += "  ".join(f"{label} {share:.1%}" for label, share in zip(counted.labels, shares, strict=True))
    title += "" if reached else "  (never reached)"
    return "\n".join([title, *_grid_text(cell, width, len(counts) // 13)])


def numbers_text(numbers: npt.NDArray[np.integer], *, colour: bool = False) -> str:
    """Return a number per starting class, such as its cluster, as a grid for a terminal, coloured by number."""
    width = max(2, len(str(int(numbers.max(initial=0)))))

    def cell(place: int) -> str:
        number = int(numbers[place])
        return _coloured(f"{number:>{width}}", 31 + number % 6 + (60 if number // 6 % 2 else 0), colour)

    return "\n".join(_grid_text(cell, width))
