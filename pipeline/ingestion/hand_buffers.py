"""Arrays of the byte kernel: what it knows of a line, buffers for hands and their decisions, the table of line-ups.

A kernel must not make arrays, so they are made here. `scan` leaves a line's numbers and flags in the record `LINE` of a
`LineScratch`; `append_hand` adds a valid hand to the `HandBuffer`, where its decisions have been written as it was
played. Line-ups (players' names in position order) are kept in a hash table that grows, so a log of a hundred thousand
names is read as fast as one of two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, deal_hash
from pipeline.formats.acpc import MAX_LINE
from pipeline.formats.ascii import BAR
from pipeline.poker.allin import PayoffBuffers, payoff_buffers
from pipeline.poker.cards import NO_CARD, Ranking
from pipeline.poker.rules import MAX_PLAYERS, MAX_ROUNDS, R_HOLE, R_PLAYERS, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

LINE = np.dtype(
    [
        ("number", np.int64),  # of the hand in its log
        ("count", np.int64),  # tokens of betting; once the hand is played, its actions
        ("holes", np.int64),  # players whose hole cards are written
        ("payoffs", np.int64),  # players whose payoffs are written
        ("names", np.int64),  # players who are named
        ("streets", np.int64),  # that the board has cards of
        ("board_cards", np.int64, (MAX_ROUNDS,)),  # on each street
        ("wrong_holes", np.bool_),  # somebody has another number of hole cards than the game gives
        ("foreign", np.bool_),  # a card is not in the game's deck
        ("repeated", np.bool_),  # a card occurs twice
        ("names_first", np.bool_),  # the form of 2009
        ("common", np.int64),  # board cards that are open at the end
        ("lineup", np.int64),
        ("showdown", np.bool_),
        ("expected", np.bool_),  # payoffs are all-in expectations
        ("betting_span", np.int64, (2,)),  # where fields begin and end in the bytes
        ("cards_span", np.int64, (2,)),
        ("payoffs_span", np.int64, (2,)),
        ("names_span", np.int64, (2,)),
    ],
    align=True,
)
"""what a hand line holds, as far as its grammar tells, and what playing it adds"""

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

SCAN_STATE = np.dtype(
    [
        ("place", np.int64),  # of the next line in the bytes
        ("line", np.int64),  # its number in the file
        ("comments", np.int64),
        ("scores", np.int64),
        ("hands", np.int64),  # in the buffer
        ("actions", np.int64),  # of hands in the buffer
        ("rejected", np.int64),
        ("names", np.int64),  # hash of the match's names, or one of the two below
    ],
    align=True,
)
"""how far a scan has come"""
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
    """Make an empty table for half as many line-ups as it has slots."""
    return LineupTable(
        slots=np.full(slots, -1, dtype=np.int32),
        spans=np.zeros((slots // 2, 2), dtype=np.int64),
        sets=np.zeros(slots // 2, dtype=np.int64),
        # 32 bytes a line-up, and one with the longest names
        text=np.zeros(slots * 16 + MAX_PLAYERS * 65, dtype=np.uint8),
        used=np.zeros(2, dtype=np.int64),
    )


@kernel(leaf=True)
def text_hash(data: Array, a: int, b: int, seed: int) -> int:
    """Return FNV-1a of some bytes, in 32 bits."""
    value = 2166136261 ^ seed
    for i in range(a, b):
        value = ((value ^ int(data[i])) * 16777619) & 0xFFFFFFFF
    return value


@kernel(leaf=True)
def names_hash(data: Array, a: int, b: int) -> int:
    """Return a hash of the names between bars in some bytes: the same in any order, never negative."""
    low = 0
    high = 0
    first = a
    for i in range(a, b + 1):
        if i == b or data[i] == BAR:
            # sums of hashes do not depend on the order; two seeds make 62 bits of them
            low += text_hash(data, first, i, 0)
            high += text_hash(data, first, i, 97)
            first = i + 1
    return ((high & 0x3FFFFFFF) << 32) | (low & 0xFFFFFFFF)


@kernel(leaf=True)
def find_lineup(data: Array, a: int, b: int, lineups: LineupTable) -> int:
    """Return the number of the line-up that some bytes name; -1 - (its free slot) when it is not in the table."""
    mask = lineups.slots.shape[0] - 1
    # open addressing with linear probing: half of the slots are always free, so a probe ends soon
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
    """Put a new line-up in its slot; return its number, or -1 when the table must grow first."""
    number = lineups.used[0]
    first = lineups.used[1]
    if number >= lineups.spans.shape[0] or first + b - a > lineups.text.shape[0]:
        return -1
    for i in range(b - a):
        lineups.text[first + i] = data[a + i]
    lineups.spans[number, 0] = first
    lineups.spans[number, 1] = first + b - a
    lineups.sets[number] = names_hash(data, a, b)
    lineups.slots[slot] = number
    lineups.used[0] = number + 1
    lineups.used[1] = first + b - a
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
        """Return the line-ups as logs write them, by number."""
        count, size = map(int, self.table.used)
        text = self.table.text[:size].tobytes().decode("ascii")
        return [text[a:b] for a, b in self.table.spans[:count].tolist()]


# Arguments of kernels


class KernelContext(NamedTuple):
    """Context of lines as the kernel takes it: rules (no players when no game is known), deck, seed of the match."""

    rules: Array
    deck: int
    """a bit per card"""
    seed: int
    card_of: Array
    """see `scan.card_codes`"""
    tables: Ranking


class HandBuffer(NamedTuple):
    """Buffers for hands, a row each, and for their decisions, one hand's after the other's."""

    records: Array
    """HAND"""
    holes: Array
    boards: Array
    paid: Array
    places: Array
    """of each decision: action | street << 2 | actor << 4"""
    totals: Array
    """what raises go to, 0 for other actions"""
    labels: Array
    rows: Array
    """OBSERVATION: what the actor saw"""


def hand_buffer(hands: int, players: int, actions: int) -> HandBuffer:
    """Make buffers for so many hands of so many players, and their decisions."""
    return HandBuffer(
        records=np.empty(hands, dtype=HAND),
        holes=np.empty((hands, players, 2), dtype=np.uint8),
        boards=np.empty((hands, 5), dtype=np.uint8),
        paid=np.empty((hands, players), dtype=np.float64),
        places=np.empty(actions, dtype=np.uint8),
        totals=np.empty(actions, dtype=np.int32),
        labels=np.empty(actions, dtype=np.uint8),
        rows=np.empty(actions, dtype=OBSERVATION),
    )


class LineScratch(NamedTuple):
    """Arrays the kernel works in, one set per thread."""

    line: Array
    """(1,) LINE"""
    moves: Array
    sizes: Array
    hole: Array
    board: Array
    payoffs: Array
    state: Array
    values: Array
    due: Array
    boards: PayoffBuffers


def line_scratch() -> LineScratch:
    """Make a set of working arrays."""
    return LineScratch(
        line=np.zeros(1, dtype=LINE),
        moves=np.zeros(MAX_LINE + 1, dtype=np.uint8),  # a token has at least one byte, so a line cannot overrun it
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
def append_hand(context: KernelContext, work: LineScratch, state: Array, buffer: HandBuffer) -> None:
    """Add a valid hand to the buffer, behind which its decisions have been written already."""
    line, rules, progress = work.line[0], context.rules, state[0]
    n = progress.hands
    for p in range(rules[R_PLAYERS]):
        buffer.paid[n, p] = work.payoffs[p]
        buffer.holes[n, p, 0] = work.hole[p, 0]
        buffer.holes[n, p, 1] = work.hole[p, 1] if rules[R_HOLE] == 2 else NO_CARD
    for i in range(5):
        buffer.boards[n, i] = work.board[i] if i < line.common else NO_CARD
    hand = buffer.records[n]
    # from the hole cards alone: logs show of the board only what was dealt, so twins of a duplicate match differ in it
    hand.deal = deal_hash(rules, buffer.holes[n], context.seed, line.number)
    hand.first = progress.actions
    hand.count = line.count
    hand.line = progress.line
    hand.number = line.number
    hand.lineup = line.lineup
    for j in range(2):
        hand.betting[j] = line.betting_span[j]
        hand.cards[j] = line.cards_span[j]
        hand.payoffs[j] = line.payoffs_span[j]
    hand.showdown = line.showdown
    hand.expected = line.expected
    progress.actions += line.count
    progress.hands = n + 1
