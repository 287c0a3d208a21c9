"""Decision rows as Arrow tables: the room where a stored column is written.

Records become columns in one pass; texts are dictionary-encoded straight from integer codes, so no string is made per
row. The columns are those that `dataset.schema` describes, the same for all streets.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import LETTERS_LIMIT, LETTERS_NOLIMIT, NO_AGGRESSOR, STREETS, betting_text
from pipeline.dataset.schema import CARD_TEXTS, CARDS
from pipeline.ingestion.arrow_columns import (
    arrow_table,
    coded,
    constant,
    dictionary,
    eights,
    nullable,
    number_column,
    repeated,
)
from pipeline.poker.cards import RANKS, class_text, name_text, pattern_text
from pipeline.poker.game import Game
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

_CARD_TEXTS = tuple(CARD_TEXTS)
_START_TEXTS = (*(class_text(i) for i in range(169)), "-")

# Where `spread` puts the fields. Coded columns hold numbers that each stand for a text
(B_POSITION, B_RAISES, B_LEGAL, B_PREVIOUS, B_HIGH, B_LOW, B_START, B_K, B_LABEL, B_VALIDATION, B_HOLE, B_BOARD) = (
    *range(11),
    12,
)
B_IN_HAND, B_TO_ACT, B_BEHIND, B_AGGRESSOR, B_PLAYERS = range(17, 22)
BYTES = 22
(I_TO_CALL, I_POT, I_STACK, I_LINE, I_HAND, I_FILE, I_EFFECTIVE, I_AMOUNT, I_BIG_BLIND) = range(9)
INTS = 9
(N_WORDS, N_RANKS, N_PATTERN, N_FLUSH, N_NAME, N_OPPONENTS, N_ACTION) = (0, *range(4, 10))
NUMBERS = 10
(F_BIG_BLINDS, F_TO_POT, F_FACED) = range(3)
FLOATS = 3


class Columns(NamedTuple):
    """Rows as columns: small numbers and codes, chips and places, numbers that stand for texts, ratios."""

    bytes: Array
    ints: Array
    numbers: Array
    floats: Array
    deals: Array
    results: Array


@kernel(leaf=True)
def fill_columns(seen: Array, taken: Array, players: int, nolimit: bool, to: Columns) -> None:
    """Write records to columns; cards and ranks that are not there get the next number."""
    bytes_, ints, numbers, floats = to.bytes, to.ints, to.numbers, to.floats
    for n in range(seen.shape[0]):
        row = seen[n]
        other = taken[n]
        bytes_[B_POSITION, n] = row.position
        bytes_[B_RAISES, n] = row.raises
        bytes_[B_LEGAL, n] = row.legal
        bytes_[B_PREVIOUS, n] = row.previous
        bytes_[B_HIGH, n] = min(row.high, 13)
        bytes_[B_LOW, n] = min(row.low, 13)
        bytes_[B_START, n] = row.start
        bytes_[B_K, n] = other.k
        bytes_[B_LABEL, n] = other.label
        bytes_[B_VALIDATION, n] = other.validation
        for j in range(2):
            bytes_[B_HOLE + j, n] = min(row.hole[j], 52)
        ranks = 1
        for j in range(5):
            bytes_[B_BOARD + j, n] = min(row.board[j], 52)
            if row.ranks[j] < 13:
                ranks = ranks * 13 + row.ranks[j]
        ints[I_STACK, n] = row.stack
        ints[I_TO_CALL, n] = row.to_call
        ints[I_POT, n] = row.pot
        ints[I_LINE, n] = other.line
        ints[I_HAND, n] = other.hand
        ints[I_FILE, n] = other.file
        for j in range(4):
            numbers[N_WORDS + j, n] = row.betting_codes[j]
        numbers[N_RANKS, n] = ranks
        numbers[N_PATTERN, n] = row.pattern
        numbers[N_FLUSH, n] = row.flush
        numbers[N_NAME, n] = row.name
        bytes_[B_IN_HAND, n] = row.in_hand
        bytes_[B_TO_ACT, n] = row.to_act
        bytes_[B_BEHIND, n] = row.behind
        bytes_[B_AGGRESSOR, n] = row.aggressor
        bytes_[B_PLAYERS, n] = row.players
        pot, to_call, effective = int(row.pot), int(row.to_call), int(row.effective)
        if nolimit:
            floats[F_BIG_BLINDS, n] = effective / max(int(row.big_blind), 1)
            floats[F_TO_POT, n] = effective / max(pot, 1)
        floats[F_FACED, n] = to_call / max(pot - to_call, 1)
        ints[I_EFFECTIVE, n] = effective
        ints[I_AMOUNT, n] = other.size
        ints[I_BIG_BLIND, n] = row.big_blind
        numbers[N_OPPONENTS, n] = other.lineup * players + row.position
        numbers[N_ACTION, n] = other.size if other.size > 0 and nolimit else -1 - other.action
        to.deals[n] = other.deal
        to.results[n] = other.result


def legal_text(bits: int, labels: str) -> str:
    """The letters of the labels whose bits are set."""
    return "".join(letter for i, letter in enumerate(labels) if bits >> i & 1)


@cache
def _ranks_text(code: int) -> str:
    """Ranks from digits of base 13, with a 1 before them."""
    text = ""
    while code > 1:
        text = RANKS[code % 13] + text
        code //= 13
    return text or "-"


def _action_text(code: int) -> str:
    return f"r{code}" if code > 0 else "fcr"[-1 - code]


_reused = threading.local()


def _room(name: str, columns: int, rows: int, dtype: Any) -> Array:
    """A matrix whose memory the thread uses again and again (fresh pages cost as much as filling them)."""
    kept: Array | None = getattr(_reused, name, None)
    if kept is None or kept.size < columns * rows:
        kept = np.empty(2 * columns * rows, dtype=dtype)  # what is never touched costs nothing
        setattr(_reused, name, kept)
    return kept[: columns * rows].reshape(columns, rows)


def decision_table(
    seen: Array,
    taken: Array,
    game: Game,
    street: int,
    agents: dict[str, int],
    files: Sequence[str],
    lineups: Sequence[Sequence[str]],
    strength: bool = False,
) -> Any:
    """Decision rows of one game and street as an Arrow table.

    `seen` and `taken` are OBSERVATION and hands.TAKEN rows, sorted by agent; `agents` says how many rows each has,
    `lineups` are names in position order. The table is good until the same thread makes its next.
    """
    count = len(seen)
    (deals,), (results,) = _room("deals", 1, count, np.uint64), _room("results", 1, count, np.float64)
    bytes_ = _room("bytes", BYTES, count, np.uint8)
    ints = _room("ints", INTS, count, np.int32)
    numbers = _room("numbers", NUMBERS, count, np.int64)
    floats = _room("floats", FLOATS, count, np.float32)
    codes = _room("codes", NUMBERS, count, np.int32)
    fill_columns(seen, taken, game.players, game.nolimit, Columns(bytes_, ints, numbers, floats, deals, results))
    labels = game.labels

    def opponents(code: int) -> str:
        names, position = lineups[code // game.players], code % game.players
        return "|".join((*names[position + 1 :], *names[:position]))

    columns: dict[str, Any] = {
        "agent": dictionary(repeated(agents.values()), list(agents)),
        "file": dictionary(ints[I_FILE], files),
        "line": ints[I_LINE],
        "hand": ints[I_HAND],
        "k": bytes_[B_K],
        "game": constant(count, game.name),
        "opponents": coded(numbers[N_OPPONENTS], opponents, codes[N_OPPONENTS]),
        "position": bytes_[B_POSITION],
        "deal": deals,
    }
    for i, name in enumerate(STREETS):
        columns[name] = (
            coded(numbers[N_WORDS + i], lambda word: betting_text(word, game.nolimit), codes[N_WORDS + i])
            if i <= street
            else constant(count, "-")
        )
    columns |= {
        "raises": bytes_[B_RAISES],
        "to_call": ints[I_TO_CALL],
        "pot": ints[I_POT],
        "stack": nullable(ints[I_STACK], ints[I_STACK] > 0 if game.nolimit else True),
        "legal": dictionary(bytes_[B_LEGAL], tuple(legal_text(bits, labels) for bits in range(1 << len(labels)))),
        "previous": dictionary(bytes_[B_PREVIOUS], tuple(LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT)),
    }
    columns |= _card_columns(bytes_, numbers, codes, game, street)
    columns |= _situation_columns(bytes_, ints, floats, game)
    columns |= {
        "action": coded(numbers[N_ACTION], _action_text, codes[N_ACTION]),
        "label": dictionary(bytes_[B_LABEL], tuple(labels)),
        "amount": nullable(ints[I_AMOUNT], ints[I_AMOUNT] > 0),
        "result": nullable(results, ~np.isnan(results)),
        "known": bytes_[B_HOLE] < 52,
        "validation": bytes_[B_VALIDATION].view(np.bool_),
    }
    if strength:
        columns |= _strength_columns(bytes_[B_HOLE : B_HOLE + 7], street if game.is_holdem else 0)
    return arrow_table(columns, _NULLABLE)


_NULLABLE = {"aggressor", "stack", "effective_stack", "effective_stack_bb", "stack_to_pot", "amount", "result"} | {
    f"{street}_{part}" for street in STREETS[1:] for part in (*(STRENGTH.names or ()), "ochs")
}


def _card_columns(bytes_: Array, numbers: Array, codes: Array, game: Game, street: int) -> dict[str, Any]:
    """The cards of each row, in words and as dealt."""
    ranks = (*RANKS, "-")
    columns = {
        "high": dictionary(bytes_[B_HIGH], ranks),
        "low": dictionary(bytes_[B_LOW], ranks),
        "start": dictionary(bytes_[B_START], _START_TEXTS if game.hole_cards == 2 else ranks),
        "ranks": coded(numbers[N_RANKS], _ranks_text, codes[N_RANKS]),
        "pattern": coded(numbers[N_PATTERN], pattern_text, codes[N_PATTERN]),
        "flush": coded(numbers[N_FLUSH], pattern_text, codes[N_FLUSH]),
        "name": coded(numbers[N_NAME], name_text, codes[N_NAME]),
    }
    for i in range(7):
        dealt = i < 2 or i - 2 < game.visible(street)
        columns[CARDS[i]] = (
            dictionary(bytes_[B_HOLE + i], _CARD_TEXTS) if dealt else constant(bytes_.shape[1], "-", np.uint8)
        )
    return columns


def _situation_columns(bytes_: Array, ints: Array, floats: Array, game: Game) -> dict[str, Any]:
    """Who is left and for how much they play."""
    effective = ints[I_EFFECTIVE]
    there = effective > 0 if game.nolimit else False
    return {
        "players": bytes_[B_PLAYERS],
        "big_blind": ints[I_BIG_BLIND],
        "in_hand": bytes_[B_IN_HAND],
        "to_act": bytes_[B_TO_ACT],
        "relative_position": bytes_[B_BEHIND],
        "aggressor": nullable(bytes_[B_AGGRESSOR], bytes_[B_AGGRESSOR] != NO_AGGRESSOR),
        "effective_stack": nullable(effective, there),
        "effective_stack_bb": nullable(floats[F_BIG_BLINDS], there),
        "stack_to_pot": nullable(floats[F_TO_POT], there),
        "faced": floats[F_FACED],
    }


def _strength_columns(cards: Array, street: int) -> dict[str, Any]:
    """The strength of each row's holding on the streets from the flop on, null after this one; `cards` is (7, rows)."""
    import pyarrow as pa

    from pipeline.poker.strength.hand_clusters import ochs

    columns: dict[str, Any] = {}
    count = cards.shape[1]
    known = cards[0] < 52
    if not known.all():
        return _strength_where(cards, street, known)
    hole, board = np.ascontiguousarray(cards[:2].T), np.ascontiguousarray(cards[2:].T)
    for i in range(1, 4):
        found = find_strengths(i, hole, board) if i <= street else None
        for part in ("ihs", "ehs", "ehs2"):
            columns[f"{STREETS[i]}_{part}"] = (
                pa.nulls(count, pa.uint16()) if found is None else np.ascontiguousarray(found[part])
            )
        columns[f"{STREETS[i]}_q"] = pa.nulls(count, pa.binary(8)) if found is None else eights(found["q"])
    columns["river_ochs"] = pa.nulls(count, pa.binary(8)) if street < 3 else eights(ochs(hole, board))
    return columns


def _strength_where(cards: Array, street: int, known: Array) -> dict[str, Any]:
    """`_strength_columns` of rows whose own cards are not all known: null where they are not."""
    import pyarrow as pa

    found = _strength_columns(np.ascontiguousarray(cards[:, known]), street)
    places = np.cumsum(known) - 1
    taken = pa.array([int(place) if there else None for place, there in zip(places, known, strict=True)], pa.int64())
    arrays = {
        name: number_column(column) if isinstance(column, np.ndarray) else column for name, column in found.items()
    }
    return {name: column.take(taken) for name, column in arrays.items()}
