"""ResultList as tables: rows of plain cells, a pandas DataFrame of them, and the HTML that a notebook shows.

A result names its rows (`rows`, a mapping from column to cell for each); everything else follows. Cells are flat:
`flat_row` gives a column to every value inside a dictionary or a list, and escapes nothing; `html_table` escapes all
texts, because names of players and files come from logs that somebody else wrote.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import pandas as pd

SHOWN_ROWS = 30
"""rows that a notebook shows of a longer table"""


def flat_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without nested cells: of a dictionary or list each value has a column, texts are joined.

    >>> flat_row({"error": 0.1, "ci95": {"error": 0.02}, "agents": ["a", "b"], "interval": [1.0, 2.0]})
    {'error': 0.1, 'ci95_error': 0.02, 'agents': 'a, b', 'interval_1': 1.0, 'interval_2': 2.0}
    """
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            cells |= flat_row({f"{name}_{key}": inner for key, inner in value.items()})
        elif isinstance(value, list | tuple) and all(isinstance(inner, str) for inner in value):
            cells[name] = ", ".join(value)
        elif isinstance(value, list | tuple):
            cells |= flat_row({f"{name}_{number}": inner for number, inner in enumerate(value, 1)})
        else:
            cells[name] = value
    return cells


def html_table(caption: str, rows: Sequence[Mapping[str, Any]], total: int | None = None) -> str:
    """Return an HTML table with a caption; `total` is the number of rows where only the first are given.

    >>> html_table("<b>", [{"n": 1}])
    '<p><code>&lt;b&gt;</code></p><table><tr><th>n</th></tr><tr><td>1</td></tr></table>'
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(_cell_text(row.get(name)))}</td>' for name in columns)}</tr>" for row in rows
    )
    further = len(rows) if total is None else total
    note = f"<p>{further - len(rows):,} more rows in <code>frame()</code></p>" if further > len(rows) else ""
    return f"<p><code>{html.escape(caption)}</code></p><table><tr>{head}</tr>{body}</table>{note}"


def _cell_text(value: Any) -> str:
    """Return a cell as people read it: six digits of a number, nothing where there is no value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Tabular:
    """A result with rows, which Python shows as a table."""

    __slots__ = ()

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """Return the rows, a cell per column."""
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame of the rows; its cells are numbers and texts."""
        import pandas as pd

        return pd.DataFrame([flat_row(row) for row in self.rows()])

    def _repr_html_(self) -> str:
        rows = list(self.rows())
        return html_table(repr(self), [flat_row(row) for row in rows[:SHOWN_ROWS]], len(rows))


class _HasRow(Protocol):
    def row(self) -> Mapping[str, Any]:
        """Return the result as a row."""


Row = TypeVar("Row", bound=_HasRow)


class ResultList(Tabular, tuple[Row, ...]):
    """Several results of one kind, in order: a tuple with a row for each."""

    __slots__ = ()

    def rows(self) -> list[Mapping[str, Any]]:
        return [result.row() for result in self]

    def __repr__(self) -> str:
        kind = type(self[0]).__name__ if self else "nothing"
        return f"<{len(self):,} results: {kind}>"
