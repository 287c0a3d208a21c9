"""Tables for people and programs: aligned text, Markdown and CSV from the same rows of cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from pipeline.models.measures import Interval


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, width: int | None = None) -> str:
    """Columns padded to their widest cell; the first `left` columns lie left, the others right.

    A table wider than `width` is broken between columns into several below each other, each with the left columns.

    >>> print(aligned(["street", "error"], [["flop", "18.86"], ["river", "9.7"]]))
    street  error
    flop    18.86
    river     9.7
    >>> print(aligned(["street", "error", "log-loss"], [["flop", "18.86", ".42"]], width=16))
    street  error
    flop    18.86
    <BLANKLINE>
    street  log-loss
    flop         .42
    """
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    fixed = sum(wide + 2 for wide in widths[:left])
    pieces: list[list[int]] = [[]]
    used = fixed
    for i in range(left, len(head)):
        if width is not None and pieces[-1] and used + widths[i] > width:
            pieces.append([])
            used = fixed
        pieces[-1].append(i)
        used += widths[i] + 2

    def line(row: Sequence[str], columns: Sequence[int]) -> str:
        return "  ".join(row[i].ljust(widths[i]) if i < left else row[i].rjust(widths[i]) for i in columns).rstrip()

    return "\n\n".join("\n".join(line(row, [*range(left), *piece]) for row in cells) for piece in pieces)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table.

    >>> print(markdown(["street", "error"], [["flop", "18.86"]]))
    | street | error |
    |---|---:|
    | flop | 18.86 |
    """
    marks = ["---" if i < left else "---:" for i in range(len(head))]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(marks)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def as_csv(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Comma-separated values; None is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return out.getvalue()


def number(value: float | None, digits: int = 4) -> str:
    """A number, or a dash where unknown; what rounds to zero has no sign.

    >>> number(0.25), number(None), number(-0.00001)
    ('0.2500', '-', '0.0000')
    """
    return "-" if value is None or math.isnan(value) else f"{value:z.{digits}f}"


def percent(value: float | None, digits: int = 2) -> str:
    """A share in percent without the sign, or a dash where unknown.

    >>> percent(0.18861), percent(None)
    ('18.86', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{100 * value:z.{digits}f}"


def spread(interval: Interval, scale: float = 1.0, digits: int = 4) -> str:
    """Half the width of an interval, as in 18.86±0.31."""
    half = (interval.high - interval.low) / 2 * scale
    return "" if math.isnan(half) else f"±{half:.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign; what rounds to zero has none.

    >>> signed(0.25, 2), signed(-0.00001), signed(-3, 1)
    ('+0.25', '0.0000', '-3.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text
