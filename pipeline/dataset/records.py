"""Arrow tables of a dataset's files as records: every column's texts and numbers become fields of OBSERVATION.

In goes the table of some rows of one street, out come `decisions.OBSERVATION` rows, arrays of what stands beside them,
and hand strengths. It is a room of its own because only here is known which column fills which field.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import LETTERS_LIMIT, LETTERS_NOLIMIT, NO_START, NOBODY, STREETS, word_code
from pipeline.dataset.schema import CARD_TEXTS, CARDS, DECISIONS
from pipeline.poker.cards import LETTERS, NO_CARD, RANKS, class_text, names
from pipeline.poker.game import Game
from pipeline.poker.rules import MAX_PLAYERS
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array

BLOCK = 8192
"""rows turned into records at a time: they stay in the processor's cache"""

PLACES = {
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
"""what is beside the observation"""
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
_MISSING = {"aggressor": NOBODY, "stack": 0, "effective_stack": 0, "amount": 0, "result": np.nan}
"""what stands for null"""
_UNREAD = ("street", "agent", "game", "action", "effective_stack_bb", "stack_to_pot", "faced")


def column_names(strength_streets: int) -> list[str]:
    """The columns that `fill_rows` reads, and those of hand strength on so many streets after the first."""
    columns = [name for name in DECISIONS if name not in _UNREAD]
    columns += [f"{street}_{part}" for street in STREETS[1 : strength_streets + 1] for part in STRENGTH.names or ()]
    return columns + (["river_ochs"] if strength_streets == 3 else [])


def _array(column: Any, missing: float | None = None) -> Array:
    """A column of numbers, not copied without nulls; Arrow's `to_numpy` and `fill_null` import pandas: a second."""
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
    found: Array = np.from_dlpack(column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column)
    return found


def _lookup(column: Any, code: Callable[[str], int], dtype: Any) -> Array:
    """The codes of a dictionary column."""
    table = np.array([code(text) for text in column.dictionary.to_pylist()], dtype=dtype)
    found: Array = table[_array(column.indices)]
    return found


@cache
def _pattern_code(text: str) -> int:
    """The packed form of a suit pattern."""
    return int("".join(str(LETTERS.index(letter)) for letter in text), 8)


class _Codes(NamedTuple):
    """The numbers that texts of cards, starting hands and made hands stand for; one table serves all pieces."""

    ranks: dict[str, int]
    cards: dict[str, int]
    starts: dict[str, int]
    made: dict[str, int]


@cache
def _codes(hole_cards: int) -> _Codes:
    ranks = {**{rank: i for i, rank in enumerate(RANKS)}, "-": NO_CARD}
    cards = {**{text: i for i, text in enumerate(CARD_TEXTS[:-1])}, "-": NO_CARD}
    starts = {**{class_text(i): i for i in range(169)}, "-": NO_START} if hole_cards == 2 else ranks
    return _Codes(ranks, cards, starts, {text: i for i, text in enumerate(names())})


def _check_possible(fields: dict[str, Array]) -> None:
    """Refuse numbers that no table has: what reads rows divides by some and counts seats with others."""
    players, present = fields["players"], fields["in_hand"]
    nobody = fields["aggressor"] == NOBODY
    if (
        any(values.dtype.kind not in "iu" or (values.size and values.min() < 0) for values in fields.values())
        or ((players < 2) | (players > MAX_PLAYERS) | (present < 2) | (present > players)).any()
        or any((fields[name] >= players).any() for name in ("position", "to_act", "behind"))
        or ((fields["aggressor"] >= players) & ~nobody).any()
    ):
        raise ValueError("numbers of players, positions or chips that cannot be")


def fill_rows(
    table: Any, street: int, game: Game, rows: Array, places: dict[str, Array]
) -> tuple[list[str], list[str]]:
    """Write a table's decisions to records and arrays; the texts that opponents and files are numbers into."""
    letters = LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT
    ranks, cards, starts, made = _codes(game.hole_cards)
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name in ("line", "hand", "k", "deal", "result", "amount", "known", "validation"):
        places[name][:] = _array(column[name], _MISSING.get(name))
    places["action"][:] = _lookup(column["label"], game.labels.index, np.uint8)
    places["opponent"][:] = _array(column["opponents"].indices)
    places["file"][:] = _array(column["file"].indices)
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
        ("name", made.__getitem__, np.uint16),
    ):
        fields[name] = _lookup(column[name], code, dtype)
    words = [_lookup(column[name], lambda text: word_code(text, game.nolimit), np.int64) for name in STREETS]
    dealt = [_lookup(column[name], cards.__getitem__, np.uint8) for name in CARDS]
    boards = column["ranks"].dictionary.to_pylist()
    board_ranks = np.full((len(boards), 5), NO_CARD, dtype=np.uint8)
    for i, text in enumerate(boards):
        for j, rank in enumerate(text.strip("-")):
            board_ranks[i, j] = ranks[rank]
    board = _array(column["ranks"].indices)
    for first in range(0, len(rows), BLOCK):
        part = slice(first, first + BLOCK)
        block = rows[part]
        block["street"] = street
        for name, values in fields.items():
            block[name] = values[part]
        for i in range(4):
            block["betting_codes"][:, i] = words[i][part]
        for i in range(2):
            block["hole"][:, i] = dealt[i][part]
        for i in range(5):
            block["board"][:, i] = dealt[i + 2][part]
        block["ranks"] = board_ranks[board[part]]
    return column["opponents"].dictionary.to_pylist(), column["file"].dictionary.to_pylist()


def fill_strength(table: Any, street: int, out: Array) -> None:
    """Write the strength columns of the streets up to this one to records, zeros where cards are not known."""
    for i, name in enumerate(STREETS[1 : street + 1]):
        for part in ("ihs", "ehs", "ehs2"):
            out[part][:, i] = _array(table.column(f"{name}_{part}").combine_chunks(), 0)
        out["q"][:, i] = _eights(table.column(f"{name}_q"))


def fill_ochs(table: Any, out: Array) -> None:
    """Write the strengths on the river against groups of opponents, zeros where cards are not known."""
    out[:] = _eights(table.column("river_ochs"))


def _eights(column: Any) -> Array:
    """A column of eight bytes a row, zeros for null."""
    packed = column.combine_chunks()
    if packed.null_count:
        packed = packed.fill_null(bytes(8))
    found: Array = np.frombuffer(packed.buffers()[1], dtype=np.uint8).reshape(-1, 8)
    return found[packed.offset : packed.offset + len(packed)]
