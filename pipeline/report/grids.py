"""Starting-hand charts as 13 x 13 grids, the mix of actions drawn in each cell.

Aces first, suited hands above the diagonal. In a cell the most aggressive action is on the left and folding on the
right, each as wide as its probability. A class that never came up is hatched. The 169 names are drawn once on the
page (`names_once`) and reused by every chart; each action of a chart is one path, so a chart takes about 20 kB.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.cards import class_text
from pipeline.report.markup import escape, tag

__all__ = ["chart", "key", "names_once"]

CELL = 20


def names_once() -> str:
    """The names of the classes and the hatching, for all charts of the page."""
    names = "".join(
        f'<text x="{column * CELL + 10}" y="{row * CELL + 13}">{class_text(row * 13 + column)}</text>'
        for row in range(13)
        for column in range(13)
    )
    lines = "".join(f"M0 {i * CELL}H260M{i * CELL} 0V260" for i in range(14))
    hatch = (
        '<pattern id="none" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0V5" stroke="#9aa1ad" stroke-width="1.2"/></pattern>'
    )
    return (
        '<svg width="0" height="0" style="position:absolute;width:0" aria-hidden="true"><defs>'
        f'{hatch}<g id="names" class="chart"><path class="edge" d="{lines}"/>{names}</g></defs></svg>'
    )


def key(labels: str, words: dict[str, str]) -> str:
    """What the colours mean, in the order they are drawn."""
    items = "".join(
        f'<span><i class="b{i}"></i>{escape(words.get(labels[i], labels[i]))}</span>'
        for i in reversed(range(len(labels)))
    )
    return f'<div class="key">{items}</div>'


def chart(
    mix: npt.NDArray[np.floating],
    labels: str,
    title: str,
    *,
    count: npt.NDArray[np.integer] | None = None,
    titles: bool = True,
) -> str:
    """One chart of `mix` (169, labels); a row of zeros or NaN was never seen."""
    paths = [""] * len(labels)
    empty, hits = "", ""
    for index in range(169):
        y, x = divmod(index, 13)
        row = np.nan_to_num(mix[index])
        total = float(row.sum())
        at = 0.0
        if total <= 0:
            empty += f"M{x * CELL} {y * CELL}h20v20h-20z"
        for label in reversed(range(len(labels))):
            width = round(CELL * float(row[label]) / total, 1) if total > 0 else 0.0
            if width > 0:
                paths[label] += f"M{x * CELL + at:g} {y * CELL}h{width:g}v20h-{width:g}z"
            at = round(at + width, 1)
        if titles:
            said = (
                " ".join(f"{labels[i]} {100 * row[i] / total:.0f}" for i in range(len(labels)) if row[i] > 0)
                if total
                else "never seen"
            )
            seen = f" ({int(count[index])} seen)" if count is not None else ""
            hits += (
                f'<rect class="hit" x="{x * CELL}" y="{y * CELL}" width="20" height="20">'
                f"<title>{class_text(index)}: {said}{seen}</title></rect>"
            )
    drawn = "".join(tag("path", class_=f"f{i}", d=d) for i, d in enumerate(paths) if d)
    if empty:
        drawn += tag("path", class_="none", d=empty)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg class="chart" viewBox="0 0 260 260" role="img" '
        f'aria-label="{escape(title)}">{drawn}<use href="#names"/>{hits}</svg></figure>'
    )
