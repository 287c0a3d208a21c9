"""Rows with the strengths that a dataset has stored for them, so that features need not compute these again.

`RatedRows` goes wherever observation rows go into features and training: it is cut and picked like them, and gives a
field by its name. What is not stored (strength before the flop, the quantiles of the distribution) is still looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:  # playing needs no datasets
    from pipeline.dataset.load import Decisions


@dataclass(frozen=True)
class RatedRows:
    """Observations and, beside each, its stored strengths."""

    rows: NDArray[Any]
    """OBSERVATION"""
    strength: NDArray[Any]
    """(rows, streets) STRENGTH on the flop and so many streets in all, zeros beyond the row's street"""
    ochs: NDArray[Any] | None = None
    """(rows, 8) strength on the river against groups of opponents, zeros before it"""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """A field by its name; otherwise the rows of a slice, a mask or places."""
        if isinstance(key, str):
            return self.rows[key]
        return RatedRows(self.rows[key], self.strength[key], None if self.ochs is None else self.ochs[key])

    def copy(self) -> RatedRows:
        """The same in memory of its own."""
        return RatedRows(self.rows.copy(), self.strength.copy(), None if self.ochs is None else self.ochs.copy())


def rated(decisions: Decisions) -> NDArray[Any] | RatedRows:
    """The rows of decisions, with their strengths if these were loaded."""
    if decisions.strength is None:
        return decisions.rows
    return RatedRows(decisions.rows, decisions.strength, decisions.ochs)
