"""Rows as a matrix of numbers, for models that take numbers: trees and nets.

The columns are what a player would look at: position, stakes, the betting action by action, ranks, flush letters,
and in hold'em the strength on this street and those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PipelineError
from pipeline.features import Rows
from pipeline.features.columns import ABSENT, Column
from pipeline.features.reading import codes, cuts
from pipeline.features.stored import column_from_json
from pipeline.features.textrows import TextRows

__all__ = ["matrix", "matrix_columns"]

ACTS = 6
"""as many actions of a street as columns hold"""


def matrix_columns(streets: Sequence[int], holdem: bool) -> tuple[Column, ...]:
    """The columns for a model of these streets."""
    last = max(streets)
    plain = ["street", "position", "players", "raises", "bets", "to_call", "pot", "stack", "odds", "legal", "previous"]
    plain += ["high", "low", "pattern", "flush", "name"]
    found = [Column(name) for name in plain] + [Column("rank", argument=rank) for rank in range(1, 6)]
    for street in range(last + 1):
        found += [Column("act", street, place) for place in range(1, ACTS + 1)]
        if holdem:
            found += [Column(name, street) for name in ("ihs", "ehs", "ehs2")]
            found += [Column("eighth", street, part) for part in range(1, 9)] if 0 < street < 3 else []
    return tuple(found)


def matrix(rows: Rows, columns: Sequence[Column]) -> NDArray[np.float32]:
    """(rows, columns) numbers, -1 for what a row does not have."""
    if isinstance(rows, TextRows):
        raise PipelineError("trees and nets need decision rows with numbers: text rows have only words")
    found = codes(rows, columns, cuts(columns, [np.empty(0, np.int64)] * len(columns), {}))
    found[found == ABSENT] = -1
    return found.astype(np.float32)


def to_json(columns: Sequence[Column]) -> list[list[Any]]:
    """Columns for a manifest."""
    return [list(column) for column in columns]


def from_json(kept: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    """Columns from a manifest; what is no column raises `ValueError`."""
    return tuple(column_from_json(fields) for fields in kept)
