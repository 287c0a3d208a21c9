"""Arrays of the byte kernels: working memory of a line, buffers for hands, the table of line-ups.

`grammar`, `limit_automaton` and `scan` leave a line's numbers and flags in a `LineScratch` (the vector `fields`, at the
places `F_*`); `keep` adds a valid hand to the `HandBuffer`. Line-ups (players' names in position order) are kept in a
hash table that grows, so a log of a hundred thousand names is read as fast as one of two. They are made here because a
kernel must not make arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.dataset.decisions import deal_hash
from pipeline.formats.acpc import MAX_LINE
from pipeline.poker.allin import PayoffBuffers, payoff_buffers
from pipeline.poker.cards import NO_CARD, Ranking
from pipeline.poker.rules import MAX_PLAYERS, MAX_ROUNDS, R_HOLE, R_PLAYERS, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

# What the grammar finds in a hand line: numbers, flags, and where fields begin and end
F_HAND, F_TOKENS, F_HOLES, F_UNEVEN, F_FOREIGN, F_TWICE, F_STREETS, F_PAYOFFS, F_NAMES = range(9)
F_BETTING, F_CARDS, F_PAID, F_NAMED = 9, 11, 13, 15
F_LINEUP, F_SHOWDOWN, F_EXPECTED, F_COMMON = range(17, 21)
F_BOARD = 21
FIELDS = F_BOARD + MAX_ROUNDS

HAND = np.dtype(
    [
        ("deal", np.uint64),
        ("first", np.int64),  # of its actions in `places` and `totals`
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

# Counters of a scan; C_NAMES is the hash of the match's names, or one of the two below
C_AT, C_LINE, C_COMMENTS, C_SCORES, C_HANDS, C_REJECTED, C_ACTIONS, C_NAMES = range(8)
COUNTERS = 8
NO_NAMES_YET = -1
"""the next hand line of the match says who plays it"""
ANY_NAMES = -2
"""lines without a header before them: whoever they name may play"""


# Line-ups


class LineupTable(NamedTuple):
    """Line-ups by number, and a hash table from their bytes to their numbers."""

    slots: Array
    """numbers by hash, -1 where there is none; a power of two of them"""
    spans: Array
    """(line-ups, 2): where each begins and ends in `text`"""
    sets: Array
    """per line-up: a hash of its names whatever their order"""
    text: Array
    used: Array
    """(2,): line-ups and bytes of text so far"""


def empty_lineup_table(slots: int) -> LineupTable:
    """An empty table for half as many line-ups as it has slots."""
    return LineupTable(
        slots=np.full(slots, -1, dtype=np.int32),
        spans=np.zeros((slots // 2, 2), dtype=np.int64),
        sets=np.zeros(slots // 2, dtype=np.int64),
        text=np.zeros(slots * 16 + MAX_PLAYERS * 65, dtype=np.uint8),
        used=np.zeros(2, dtype=np.int64),
    )


@kernel(leaf=True)
def text_hash(data: Array, a: int, b: int, seed: int) -> int:
    """FNV-1a of some bytes, in 32 bits."""
    value = 2166136261 ^ seed
    for i in range(a, b):
        value = ((value ^ int(data[i])) * 16777619) & 0xFFFFFFFF
    return value


@kernel(leaf=True)
def names_hash(data: Array, a: int, b: int) -> int:
    """A hash of the names between bars in some bytes: the same in any order, never negative."""
    low = 0
    high = 0
    first = a
    for i in range(a, b + 1):
        if i == b or data[i] == 124:
            low += text_hash(data, first, i, 0)
            high += text_hash(data, first, i, 97)
            first = i + 1
    return ((high & 0x3FFFFFFF) << 32) | (low & 0xFFFFFFFF)


@kernel(leaf=True)
def find_lineup(data: Array, a: int, b: int, lineups: LineupTable) -> int:
    """The number of the line-up that some bytes name; -1 - (its free slot) when it is not in the table."""
    mask = lineups.slots.shape[0] - 1
    slot = text_hash(data, a, b, 0) & mask
    while lineups.slots[slot] >= 0:
        number = lineups.slots[slot]
        begin = lineups.spans[number, 0]
        if lineups.spans[number, 1] - begin == b - a:
            same = True
            for i in range(b - a):
                if lineups.text[begin + i] != data[a + i]:
                    same = False
                    break
            if same:
                return int(number)
        slot = (slot + 1) & mask
    return -1 - slot


@kernel(leaf=True)
def add_lineup(data: Array, a: int, b: int, slot: int, lineups: LineupTable) -> int:
    """Put a new line-up in its slot; its number, or -1 when the table must grow first."""
    number = lineups.used[0]
    at = lineups.used[1]
    if number >= lineups.spans.shape[0] or at + b - a > lineups.text.shape[0]:
        return -1
    for i in range(b - a):
        lineups.text[at + i] = data[a + i]
    lineups.spans[number, 0] = at
    lineups.spans[number, 1] = at + b - a
    lineups.sets[number] = names_hash(data, a, b)
    lineups.slots[slot] = number
    lineups.used[0] = number + 1
    lineups.used[1] = at + b - a
    return int(number)


@kernel(leaf=True)
def move_lineups(old: LineupTable, new: LineupTable) -> None:
    """Put all line-ups of a table in a larger one, with the same numbers."""
    for number in range(old.used[0]):
        a, b = old.spans[number, 0], old.spans[number, 1]
        add_lineup(old.text, a, b, -1 - find_lineup(old.text, a, b, new), new)


class Lineups:
    """The line-ups met so far, numbered as they come."""

    def __init__(self) -> None:
        self.table = empty_lineup_table(64)

    def __len__(self) -> int:
        return int(self.table.used[0])

    def grow(self) -> None:
        """Make room for four times as many."""
        larger = empty_lineup_table(4 * len(self.table.slots))
        move_lineups(self.table, larger)
        self.table = larger

    def texts(self) -> list[str]:
        """The line-ups as logs write them, by number."""
        count, size = map(int, self.table.used)
        text = self.table.text[:size].tobytes().decode("ascii")
        return [text[a:b] for a, b in self.table.spans[:count].tolist()]


# What kernels take


class Automaton(NamedTuple):
    """All betting of a game, by node; without nodes for games it does not serve (see `limit_automaton`)."""

    child: Array
    """(nodes, 3): where fold, call and raise lead, -1 when illegal"""
    place: Array
    """street << 2 | actor << 4 of the decision at a node"""
    kind: Array
    """0, or FINISHED, with SHOWDOWN if cards decide"""
    due: Array
    """(nodes, 3): player 0's chips when it loses, ties and wins"""


class KernelContext(NamedTuple):
    """What lines are judged by: the game's rules (no players when no game is known), its deck, the match's seed."""

    rules: Array
    deck: int
    """a bit per card"""
    seed: int
    betting: Automaton
    card_of: Array
    """see grammar.card_codes"""
    tables: Ranking


class HandBuffer(NamedTuple):
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


def hand_buffer(hands: int, players: int, actions: int) -> HandBuffer:
    """Room for so many hands of so many players, and their actions."""
    return HandBuffer(
        records=np.empty(hands, dtype=HAND),
        holes=np.empty((hands, players, 2), dtype=np.uint8),
        boards=np.empty((hands, 5), dtype=np.uint8),
        paid=np.empty((hands, players), dtype=np.float64),
        places=np.empty(actions, dtype=np.uint8),
        totals=np.empty(actions, dtype=np.int32),
    )


class LineScratch(NamedTuple):
    """Arrays the kernels work in, one set per thread."""

    fields: Array
    moves: Array
    sizes: Array
    hole: Array
    board: Array
    payoffs: Array
    state: Array
    values: Array
    due: Array
    boards: PayoffBuffers


def scratch() -> LineScratch:
    """A fresh set of working arrays."""
    return LineScratch(
        fields=np.zeros(FIELDS, dtype=np.int64),
        moves=np.zeros(MAX_LINE + 1, dtype=np.uint8),
        sizes=np.zeros(MAX_LINE + 1, dtype=np.int64),
        hole=np.zeros((MAX_PLAYERS, 2), dtype=np.uint8),
        board=np.zeros(5, dtype=np.uint8),
        payoffs=np.zeros(MAX_PLAYERS, dtype=np.float64),
        state=np.zeros(STATE_SIZE, dtype=np.int64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
        boards=payoff_buffers(),
    )


@kernel(inline=True, leaf=True)
def keep(game: KernelContext, work: LineScratch, counters: Array, found: HandBuffer) -> None:
    """Add a valid hand to those found."""
    fields, rules = work.fields, game.rules
    n = counters[C_HANDS]
    for p in range(rules[R_PLAYERS]):
        found.paid[n, p] = work.payoffs[p]
        found.holes[n, p, 0] = work.hole[p, 0]
        found.holes[n, p, 1] = work.hole[p, 1] if rules[R_HOLE] == 2 else NO_CARD
    for i in range(5):
        found.boards[n, i] = work.board[i] if i < fields[F_COMMON] else NO_CARD
    hand = found.records[n]
    hand.deal = deal_hash(rules, found.holes[n], game.seed, fields[F_HAND])
    hand.first = counters[C_ACTIONS]
    hand.count = fields[F_TOKENS]
    hand.line = counters[C_LINE]
    hand.number = fields[F_HAND]
    hand.lineup = fields[F_LINEUP]
    for j in range(2):
        hand.betting[j] = fields[F_BETTING + j]
        hand.cards[j] = fields[F_CARDS + j]
        hand.payoffs[j] = fields[F_PAID + j]
    hand.showdown = fields[F_SHOWDOWN] != 0
    hand.expected = fields[F_EXPECTED] != 0
    counters[C_ACTIONS] += fields[F_TOKENS]
    counters[C_HANDS] = n + 1
