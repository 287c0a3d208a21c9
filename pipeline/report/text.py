"""The table type of reports, and numbers in the cells of tables.

In go rows of cells, out come aligned text, Markdown and CSV; the page draws the same `TextTable` (see `pages`).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.models.measures import Interval


@dataclass(frozen=True)
class TextTable:
    """Columns and rows of cells; a cell that ends in ` *` is the best of its row, ± comes before half an interval."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left: Collection[int] = (0,)
    """columns of words, which lie on the left; numbers lie on the right"""
    notes: Mapping[str, str] = field(default_factory=dict)
    """by the head of a column: what stands below it in small print on a page"""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> TextTable:
        """Return a table of dictionaries, a column per key in the order they come; what lacks a key is None."""
        head = list(dict.fromkeys(key for row in rows for key in row))
        return cls(head, [[row.get(key) for key in head] for row in rows])

    def select(self, columns: Sequence[int]) -> TextTable:
        """Return some of the columns, in this order."""
        return replace(
            self,
            head=[self.head[i] for i in columns],
            rows=[[row[i] for i in columns] for row in self.rows],
            left=[place for place, i in enumerate(columns) if i in self.left],
        )

    def without(self, name: str) -> TextTable:
        """Return the table without the columns of one name."""
        return self.select([i for i, head in enumerate(self.head) if head != name])

    def text(self, width: int | None = None) -> str:
        """Return columns padded to their widest cell.

        A table wider than `width` is broken between columns into several below each other, each with the columns of
        words that come first.

        >>> print(TextTable(["street", "error"], [["flop", "18.86"], ["river", "9.7"]]).text())
        street  error
        flop    18.86
        river     9.7
        >>> print(TextTable(["street", "error", "log-loss"], [["flop", "18.86", ".42"]]).text(width=16))
        street  error
        flop    18.86
        <BLANKLINE>
        street  log-loss
        flop         .42
        """
        cells = [self.head, *self.rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.head))]
        fixed = next((i for i in range(len(widths)) if i not in self.left), len(widths))
        pieces: list[list[int]] = [[]]
        used = indent = sum(wide + 2 for wide in widths[:fixed])
        for i in range(fixed, len(widths)):
            if width is not None and pieces[-1] and used + widths[i] > width:
                pieces.append([])
                used = indent
            pieces[-1].append(i)
            used += widths[i] + 2

        def line(row: Sequence[str], columns: Sequence[int]) -> str:
            padded = (row[i].ljust(widths[i]) if i in self.left else row[i].rjust(widths[i]) for i in columns)
            return "  ".join(padded).rstrip()

        return "\n\n".join("\n".join(line(row, [*range(fixed), *piece]) for row in cells) for piece in pieces)

    def markdown(self) -> str:
        """Return a Markdown table.

        >>> print(TextTable(["street", "error"], [["flop", "18.86"]]).markdown())
        | street | error |
        |---|---:|
        | flop | 18.86 |
        """
        marks = ["---" if i in self.left else "---:" for i in range(len(self.head))]
        lines = [f"| {' | '.join(self.head)} |", f"|{'|'.join(marks)}|"]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in self.rows)])

    def csv(self) -> str:
        """Return comma-separated values; None is an empty cell."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return out.getvalue()


def number(value: float | None, digits: int = 4) -> str:
    """Return a number, or a dash where unknown; what rounds to zero has no sign.

    >>> number(0.25), number(None), number(-0.00001)
    ('0.2500', '-', '0.0000')
    """
    return "-" if value is None or math.isnan(value) else f"{value:z.{digits}f}"


def percent(value: float | None, digits: int = 2) -> str:
    """Return a share in percent without the sign, or a dash where unknown.

    >>> percent(0.18861), percent(None)
    ('18.86', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{100 * value:z.{digits}f}"


def half_interval(interval: Interval, scale: float = 1.0, digits: int = 4) -> str:
    """Return half the width of an interval, as in 18.86±0.31."""
    half = (interval.high - interval.low) / 2 * scale
    return "" if math.isnan(half) else f"±{half:.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """Return a number with its sign; what rounds to zero has none.

    >>> signed(0.25, 2), signed(-0.00001), signed(-3, 1)
    ('+0.25', '0.0000', '-3.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text
