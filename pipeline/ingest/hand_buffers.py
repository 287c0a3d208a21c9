"""Where the hands of a scan go, and what its kernels work with.

`scan` and `quick` find out what a hand line holds and leave it in a `Scratch`; `keep` adds it to the `Found`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.acpc import MAX_LINE
from pipeline.cards import NO_CARD
from pipeline.decisions import deal_hash
from pipeline.ingest.grammar import (
    F_BETTING,
    F_CARDS,
    F_COMMON,
    F_EXPECTED,
    F_HAND,
    F_LINEUP,
    F_PAID,
    F_SHOWDOWN,
    F_TOKENS,
    FIELDS,
)
from pipeline.kernels import kernel
from pipeline.rules import MAX_PLAYERS, R_HOLE, R_PLAYERS, STATE_SIZE

Array = npt.NDArray[Any]

HAND = np.dtype(
    [
        ("deal", np.uint64),
        ("first", np.int64),  # of its actions in `moves` and `sizes`
        ("count", np.int32),
        ("line", np.int32),
        ("number", np.int32),
        ("lineup", np.int32),
        ("betting", np.int32, (2,)),  # where the fields stand in the bytes
        ("cards", np.int32, (2,)),
        ("payoffs", np.int32, (2,)),
        ("showdown", np.bool_),
        ("expected", np.bool_),
    ],
    align=True,
)

# Counters of a scan; C_SET is the set of names of the match so far, -1 for none
C_AT, C_LINE, C_COMMENTS, C_SCORES, C_HANDS, C_REJECTED, C_ACTIONS, C_SET, C_NAMES, C_NAMES_END = range(10)
COUNTERS = 10

RING = 16
"""how many line-ups of a match the kernel remembers"""
RING_BYTES = MAX_PLAYERS * 65


class Found(NamedTuple):
    """Where hands go, a row each; actions one after the other."""

    records: Array
    """HAND"""
    holes: Array
    boards: Array
    paid: Array
    places: Array
    """action | street << 2 | actor << 4"""
    totals: Array
    """what no-limit raises go to"""


class Scratch(NamedTuple):
    """Arrays the kernel works in, one set per thread."""

    fields: Array
    moves: Array
    sizes: Array
    hole: Array
    board: Array
    payoffs: Array
    state: Array
    values: Array
    due: Array


def scratch() -> Scratch:
    """A fresh set of working arrays."""
    return Scratch(
        fields=np.zeros(FIELDS, dtype=np.int64),
        moves=np.zeros(MAX_LINE + 1, dtype=np.uint8),
        sizes=np.zeros(MAX_LINE + 1, dtype=np.int64),
        hole=np.zeros((MAX_PLAYERS, 2), dtype=np.uint8),
        board=np.zeros(5, dtype=np.uint8),
        payoffs=np.zeros(MAX_PLAYERS, dtype=np.float64),
        state=np.zeros(STATE_SIZE, dtype=np.int64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
    )


@kernel(inline=True, leaf=True)
def keep(rules: Array, seed: int, work: Scratch, ring_info: Array, counters: Array, found: Found) -> None:
    """Add a valid hand to those found."""
    fields = work.fields
    n = counters[C_HANDS]
    for p in range(rules[R_PLAYERS]):
        found.paid[n, p] = work.payoffs[p]
        found.holes[n, p, 0] = work.hole[p, 0]
        found.holes[n, p, 1] = work.hole[p, 1] if rules[R_HOLE] == 2 else NO_CARD
    for i in range(5):
        found.boards[n, i] = work.board[i] if i < fields[F_COMMON] else NO_CARD
    hand = found.records[n]
    hand.deal = deal_hash(rules, found.holes[n], seed, fields[F_HAND])
    hand.first = counters[C_ACTIONS]
    hand.count = fields[F_TOKENS]
    hand.line = counters[C_LINE]
    hand.number = fields[F_HAND]
    hand.lineup = ring_info[fields[F_LINEUP], 1]
    for j in range(2):
        hand.betting[j] = fields[F_BETTING + j]
        hand.cards[j] = fields[F_CARDS + j]
        hand.payoffs[j] = fields[F_PAID + j]
    hand.showdown = fields[F_SHOWDOWN] != 0
    hand.expected = fields[F_EXPECTED] != 0
    counters[C_ACTIONS] += fields[F_TOKENS]
    counters[C_HANDS] = n + 1
    counters[C_SET] = ring_info[fields[F_LINEUP], 2]
