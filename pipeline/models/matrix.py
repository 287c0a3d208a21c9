"""Rows as a matrix of numbers, for models that take numbers: boosted trees.

The columns are those that a player would look at: position, the table, stakes, the betting action by action, sizes as
shares of the pot, ranks, flush letters, and in hold'em the strength on this street and those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.features.encoding import Rows, column_from_json
from pipeline.features.reading import Cuts, Needs, codes, cuts
from pipeline.features.textrows import TextRows
from pipeline.poker.cards import NO_CARD
from pipeline.runtime.errors import PipelineError

ACTS = 6
"""actions of a street that have a column"""
MISSING = -1
LARGEST_VALUE = np.iinfo(np.int32).max


def matrix_columns(
    streets: Sequence[int], holdem: bool, cards: bool = True, quantiles: bool = False
) -> tuple[Column, ...]:
    """Return the columns for a model of these streets; without `cards` only public ones.

    `quantiles` adds those of the strength at the river to the means of its eighths.
    """
    last = max(streets)
    plain = ["street", "position", "players", "raises", "bets", "to_call", "pot", "stack", "odds", "legal", "previous"]
    plain += ["faced", "stack_to_pot", "effective_bb", "pot_bb", "aggressor", "in_hand", "to_act", "behind"]
    plain += ["high", "low", "start", "pattern", "flush", "name"] if cards else []
    columns = [Column(name) for name in plain] + [Column("rank", argument=rank) for rank in range(1, 6)]
    for street in range(last + 1):
        columns += [Column("act", street, place) for place in range(1, ACTS + 1)]
        if holdem and cards:
            columns += [Column(name, street) for name in ("ihs", "ehs", "ehs2")]
            columns += [Column("eighth", street, part) for part in range(1, 9)] if 0 < street < 3 else []
            columns += [Column("fifth", street, part) for part in range(1, 6)] if quantiles and 0 < street < 3 else []
    return tuple(columns)


def columns_for(rows: Any, streets: Sequence[int], quantiles: bool = False) -> tuple[Column, ...]:
    """Return the columns for a model of these rows: cards only if all are known, strength only in hold'em."""
    has_cards = bool((rows["hole"][:, 0] != NO_CARD).all())
    return matrix_columns(streets, bool(has_cards and (rows["hole"][:, 1] != NO_CARD).all()), has_cards, quantiles)


def read_matrix(rows: Rows, columns: Sequence[Column]) -> NDArray[np.int32]:
    """Return whole numbers (rows, columns), -1 where a row has no value."""
    if isinstance(rows, TextRows):
        raise PipelineError("trees need decision rows with numbers: text rows have only words")
    values = read_codes(rows, tuple(columns))
    np.clip(values, MISSING, LARGEST_VALUE, out=values)  # ABSENT is far below
    return values.astype(np.int32)


def read_codes(rows: Any, columns: tuple[Column, ...]) -> NDArray[np.int64]:
    """Return the codes (rows, columns) of columns as the features room reads them."""
    how, needs = _plan(columns)
    return codes(rows, columns, how, needs)


@lru_cache(maxsize=64)
def _plan(columns: tuple[Column, ...]) -> tuple[Cuts, Needs]:
    """Return the plan for reading columns; memoised: for a live decision it takes as long as the reading."""
    return cuts(columns, [np.empty(0, np.int64)] * len(columns), {}), Needs.of(columns)


def columns_to_json(columns: Sequence[Column]) -> list[list[Any]]:
    """Return columns for a manifest."""
    return [list(column) for column in columns]


def columns_from_json(entry: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    """Restore columns from a manifest; unknown ones raise `ValueError`."""
    return tuple(column_from_json(fields) for fields in entry)
