"""Rows as a matrix of numbers, for models that take numbers: boosted trees.

The columns are what a player would look at: position, the table, stakes, the betting action by action, sizes as shares
of the pot, ranks, flush letters, and in hold'em the strength on this street and those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.features.encoding import Rows
from pipeline.features.reading import Cuts, Needs, codes, cuts
from pipeline.features.stored import column_from_json
from pipeline.features.textrows import TextRows
from pipeline.poker.cards import NO_CARD
from pipeline.runtime.errors import PipelineError

ACTS = 6
"""as many actions of a street as columns hold"""
MISSING = -1
LARGEST = np.iinfo(np.int32).max


def matrix_columns(
    streets: Sequence[int], holdem: bool, cards: bool = True, quantiles: bool = False
) -> tuple[Column, ...]:
    """The columns for a model of these streets; without `cards` only what everybody sees.

    `quantiles` adds those of the strength at the river to the means of its eighths.
    """
    last = max(streets)
    plain = ["street", "position", "players", "raises", "bets", "to_call", "pot", "stack", "odds", "legal", "previous"]
    plain += ["faced", "stack_to_pot", "effective_bb", "pot_bb", "aggressor", "in_hand", "to_act", "behind"]
    plain += ["high", "low", "start", "pattern", "flush", "name"] if cards else []
    found = [Column(name) for name in plain] + [Column("rank", argument=rank) for rank in range(1, 6)]
    for street in range(last + 1):
        found += [Column("act", street, place) for place in range(1, ACTS + 1)]
        if holdem and cards:
            found += [Column(name, street) for name in ("ihs", "ehs", "ehs2")]
            found += [Column("eighth", street, part) for part in range(1, 9)] if 0 < street < 3 else []
            found += [Column("fifth", street, part) for part in range(1, 6)] if quantiles and 0 < street < 3 else []
    return tuple(found)


def columns_for(rows: Any, streets: Sequence[int], quantiles: bool = False) -> tuple[Column, ...]:
    """The columns for a model of these rows: cards only where all of them are known, strength only in hold'em."""
    known = bool((rows["hole"][:, 0] != NO_CARD).all())
    return matrix_columns(streets, bool(known and (rows["hole"][:, 1] != NO_CARD).all()), known, quantiles)


def whole_numbers(rows: Rows, columns: Sequence[Column]) -> NDArray[np.int32]:
    """(rows, columns) whole numbers, -1 for what a row does not have."""
    if isinstance(rows, TextRows):
        raise PipelineError("trees need decision rows with numbers: text rows have only words")
    how, needs = _plan(tuple(columns))
    found = codes(rows, columns, how, needs)
    np.clip(found, MISSING, LARGEST, out=found)  # ABSENT is far below
    return found.astype(np.int32)


@lru_cache(maxsize=64)
def _plan(columns: tuple[Column, ...]) -> tuple[Cuts, Needs]:
    """How columns are read, found once: for a live decision that takes as long as the reading."""
    return cuts(columns, [np.empty(0, np.int64)] * len(columns), {}), Needs.of(columns)


def to_json(columns: Sequence[Column]) -> list[list[Any]]:
    """Columns for a manifest."""
    return [list(column) for column in columns]


def from_json(kept: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    """Columns from a manifest; what is no column raises `ValueError`."""
    return tuple(column_from_json(fields) for fields in kept)
