"""Arrow tables as records: the columns of one street's decisions become fields of `decisions.OBSERVATION`.

In goes the table of some rows of one street; out come observations, arrays of their metadata (place, action, result)
and hand strengths.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import LETTERS_LIMIT, LETTERS_NOLIMIT, NO_AGGRESSOR, NO_START, STREETS, betting_code
from pipeline.dataset.schema import CARD_TEXTS, CARDS, DECISIONS
from pipeline.poker.cards import LETTERS, NO_CARD, RANKS, class_text, hand_names
from pipeline.poker.game import Game
from pipeline.poker.rules import MAX_PLAYERS
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array

BLOCK_ROWS = 8192
"""rows filled at a time, few enough to stay in the processor's cache"""

METADATA = {
    "line": np.int32,
    "hand": np.int32,
    "k": np.uint8,
    "deal": np.uint64,
    "result": np.float64,
    "amount": np.int32,
    "known": np.bool_,
    "validation": np.bool_,
    "action": np.uint8,
    "opponent": np.int32,
    "file": np.int32,
    "agent": np.int32,
}
"""arrays beside the observations: where a decision stands, what was done and what came of it"""
_PLAIN = {
    "position": "position",
    "players": "players",
    "raises": "raises",
    "to_call": "to_call",
    "pot": "pot",
    "stack": "stack",
    "in_hand": "in_hand",
    "to_act": "to_act",
    "relative_position": "behind",
    "aggressor": "aggressor",
    "effective_stack": "effective",
    "big_blind": "big_blind",
}
"""columns of numbers and the fields of OBSERVATION that they fill"""
_MISSING = {"aggressor": NO_AGGRESSOR, "stack": 0, "effective_stack": 0, "amount": 0, "result": np.nan}
"""values of fields where the column is null"""
_UNREAD = ("street", "agent", "game", "action", "effective_stack_bb", "stack_to_pot", "faced")


def column_names(strength_streets: int) -> list[str]:
    """Return the columns that `fill_rows` reads, and those of hand strength on so many streets after the first."""
    columns = [name for name in DECISIONS if name not in _UNREAD]
    columns += [f"{street}_{part}" for street in STREETS[1 : strength_streets + 1] for part in STRENGTH.names or ()]
    return columns + (["river_ochs"] if strength_streets == 3 else [])


def _array(column: Any, missing: float | None = None) -> Array:
    """Return a column of numbers, not copied if it has no nulls.

    Arrow's own `to_numpy` and `fill_null` import pandas, which takes a second.
    """
    import pyarrow as pa

    if not (pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ValueError(f"a column of {column.type} where numbers belong")
    if column.null_count:
        if missing is None:
            raise ValueError(f"{column.null_count} rows without a value where each has one")
        empty = np.from_dlpack(column.is_null().cast(pa.uint8())) == 1
        values = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], offset=column.offset)
        filled = _array(values).copy()
        filled[empty] = missing
        return filled
    return np.from_dlpack(column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column)


def _lookup(column: Any, code: Callable[[str], int], dtype: Any) -> Array:
    """Return the code of each row of a dictionary column; each text is coded once."""
    table = np.array([code(text) for text in column.dictionary.to_pylist()], dtype=dtype)
    codes: Array = table[_array(column.indices)]
    return codes


@cache
def _pattern_code(text: str) -> int:
    """Return the packed form of a suit pattern."""
    return int("".join(str(LETTERS.index(letter)) for letter in text), 8)


class _Codes(NamedTuple):
    """Numbers of the texts of ranks, cards, starting hands and made hands."""

    ranks: dict[str, int]
    cards: dict[str, int]
    starts: dict[str, int]
    made: dict[str, int]


@cache
def _codes(hole_cards: int) -> _Codes:
    ranks = {**{rank: i for i, rank in enumerate(RANKS)}, "-": NO_CARD}
    cards = {**{text: i for i, text in enumerate(CARD_TEXTS[:-1])}, "-": NO_CARD}
    starts = {**{class_text(i): i for i in range(169)}, "-": NO_START} if hole_cards == 2 else ranks
    return _Codes(ranks, cards, starts, {text: i for i, text in enumerate(hand_names())})


def _check_possible(fields: dict[str, Array]) -> None:
    """Refuse numbers that no game has: readers of rows divide by some and index seats with others."""
    players, in_hand = fields["players"], fields["in_hand"]
    no_aggressor = fields["aggressor"] == NO_AGGRESSOR
    if (
        any(values.dtype.kind not in "iu" or (values.size and values.min() < 0) for values in fields.values())
        or ((players < 2) | (players > MAX_PLAYERS) | (in_hand < 2) | (in_hand > players)).any()
        or any((fields[name] >= players).any() for name in ("position", "to_act", "behind"))
        or ((fields["aggressor"] >= players) & ~no_aggressor).any()
    ):
        raise ValueError("numbers of players, positions or chips that cannot be")


def fill_rows(
    table: Any, street: int, game: Game, rows: Array, metadata: dict[str, Array]
) -> tuple[list[str], list[str]]:
    """Write a table's decisions to records and metadata; return the texts that opponents and files are numbers into."""
    letters = LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT
    ranks, cards, starts, hand_names = _codes(game.hole_cards)
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name in ("line", "hand", "k", "deal", "result", "amount", "known", "validation"):
        metadata[name][:] = _array(column[name], _MISSING.get(name))
    metadata["action"][:] = _lookup(column["label"], game.labels.index, np.uint8)
    metadata["opponent"][:] = _array(column["opponents"].indices)
    metadata["file"][:] = _array(column["file"].indices)
    fields = {to: _array(column[name], _MISSING.get(name)) for name, to in _PLAIN.items()}
    _check_possible(fields)
    for name, code, dtype in (
        ("legal", lambda text: sum(1 << game.labels.index(letter) for letter in text), np.uint8),
        ("previous", letters.index, np.uint8),
        ("high", ranks.__getitem__, np.uint8),
        ("low", ranks.__getitem__, np.uint8),
        ("start", starts.__getitem__, np.uint8),
        ("pattern", _pattern_code, np.uint16),
        ("flush", _pattern_code, np.uint16),
        ("name", hand_names.__getitem__, np.uint16),
    ):
        fields[name] = _lookup(column[name], code, dtype)
    betting = [_lookup(column[name], lambda text: betting_code(text, game.nolimit), np.int64) for name in STREETS]
    cards_dealt = [_lookup(column[name], cards.__getitem__, np.uint8) for name in CARDS]
    boards = column["ranks"].dictionary.to_pylist()
    board_ranks = np.full((len(boards), 5), NO_CARD, dtype=np.uint8)
    for i, text in enumerate(boards):
        for j, rank in enumerate(text.strip("-")):
            board_ranks[i, j] = ranks[rank]
    board = _array(column["ranks"].indices)
    for first in range(0, len(rows), BLOCK_ROWS):
        part = slice(first, first + BLOCK_ROWS)
        block = rows[part]
        block["street"] = street
        for name, values in fields.items():
            block[name] = values[part]
        for i in range(4):
            block["betting_codes"][:, i] = betting[i][part]
        for i in range(2):
            block["hole"][:, i] = cards_dealt[i][part]
        for i in range(5):
            block["board"][:, i] = cards_dealt[i + 2][part]
        block["ranks"] = board_ranks[board[part]]
    return column["opponents"].dictionary.to_pylist(), column["file"].dictionary.to_pylist()


def fill_strength(table: Any, street: int, out: Array) -> None:
    """Write the strength columns of the streets up to this one to records, zeros where cards are not known."""
    for i, name in enumerate(STREETS[1 : street + 1]):
        for part in ("ihs", "ehs", "ehs2"):
            out[part][:, i] = _array(table.column(f"{name}_{part}").combine_chunks(), 0)
        out["q"][:, i] = _eight_bytes(table.column(f"{name}_q"))


def fill_ochs(table: Any, out: Array) -> None:
    """Write the strengths on the river against groups of opponents, zeros where cards are not known."""
    out[:] = _eight_bytes(table.column("river_ochs"))


def _eight_bytes(column: Any) -> Array:
    """Return a column of eight bytes a row as (rows, 8), zeros for null."""
    packed = column.combine_chunks()
    if packed.null_count:
        packed = packed.fill_null(bytes(8))
    values: Array = np.frombuffer(packed.buffers()[1], dtype=np.uint8).reshape(-1, 8)
    return values[packed.offset : packed.offset + len(packed)]
