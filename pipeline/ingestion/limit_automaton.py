"""The quick reader of heads-up limit hands.

Limit betting is finite: the rules of `game` are played out once into an automaton of all betting (20,000 states), which
the kernel then walks byte by byte. It takes the lines that almost all logs consist of (`STATE`, whole payoffs, no
suffix) and leaves every other to `scan`, wrong ones included: what it accepts is right, the rest it does not judge.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pipeline.ingestion.grammar import (
    BAR,
    COLON,
    LOW_C,
    LOW_F,
    LOW_R,
    MINUS,
    NEWLINE,
    NINE,
    RETURN,
    SLASH,
    STATE_LINE,
    ZERO,
    line_kind,
)
from pipeline.ingestion.hand_buffers import (
    C_ACTIONS,
    C_LINE,
    C_NAMES,
    F_BETTING,
    F_CARDS,
    F_COMMON,
    F_EXPECTED,
    F_HAND,
    F_LINEUP,
    F_PAID,
    F_SHOWDOWN,
    F_TOKENS,
    NO_NAMES_YET,
    Automaton,
    HandBuffer,
    KernelContext,
    LineScratch,
    LineupTable,
    find_lineup,
    keep,
)
from pipeline.poker.cards import holding_value
from pipeline.poker.game import Game
from pipeline.poker.rules import NO_STACK, S_ACTOR, S_FINISHED, S_ROUND, is_showdown, settle
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel

FINISHED, SHOWDOWN = 1, 2


MOST_NODES = 100_000
"""Betting with more nodes is not written out: ACPC's has 6,378 in heads-up limit."""

_NONE = Automaton(
    child=np.zeros((0, 3), dtype=np.int32),
    place=np.zeros(0, dtype=np.uint8),
    kind=np.zeros(0, dtype=np.uint8),
    due=np.zeros((0, 3), dtype=np.int64),
)


@kernel(leaf=True)
def _payoffs(rules: Array, states: Array, values: Array, result: Array, kind: Array, due: Array) -> bool:
    """Fill kinds and payoffs of finished nodes; whether all of these are whole numbers."""
    for n in range(states.shape[0]):
        kind[n] = 0
        if states[n, S_FINISHED] == 0:
            continue
        kind[n] = FINISHED | (SHOWDOWN if is_showdown(rules, states[n]) else 0)
        for outcome in range(3):
            values[0] = outcome
            values[1] = 1
            settle(rules, states[n], values, result)
            due[n, outcome] = int(result[0])
            if result[0] != due[n, outcome] or result[1] != -result[0]:
                return False
    return True


@cache
def automaton(game: Game | None) -> Automaton:
    """The betting of heads-up limit hold'em; an empty one for any other game."""
    if game and game.is_holdem and not game.nolimit and game.players == 2 and set(game.stacks) == {NO_STACK}:
        try:
            tree = game.betting_tree(MOST_NODES)
        except PipelineError:  # a game with many raises: its lines are replayed by the rules like those of other games
            return _NONE
        nodes = len(tree.child)
        kind, due = np.zeros(nodes, dtype=np.uint8), np.zeros((nodes, 3), dtype=np.int64)
        if _payoffs(game.rules, tree.states, np.zeros(2, dtype=np.int64), np.zeros(2), kind, due):
            actor = np.maximum(tree.states[:, S_ACTOR], 0)
            place = (tree.states[:, S_ROUND] << 2 | actor << 4).astype(np.uint8)
            return Automaton(tree.child, place, kind, due)
    return _NONE


@kernel(leaf=True)
def _whole(data: Array, i: int, end: int) -> tuple[int, int]:
    """A whole number, perhaps negative, and the place after it or -1."""
    negative = i < end and data[i] == MINUS
    if negative:
        i += 1
    first = i
    value = 0
    while i < end and ZERO <= data[i] <= NINE:
        value = value * 10 + (data[i] - ZERO)
        i += 1
    if not 1 <= i - first <= 9:
        return 0, -1
    return (-value if negative else value), i


@kernel(leaf=True)
def _dealt(data: Array, i: int, card_of: Array) -> int:
    """The card written at a place, or -1."""
    rank = card_of[data[i]]
    suit = card_of[data[i + 1]]
    return rank + suit - 64 if 0 <= rank < 64 <= suit else -1


@kernel(leaf=True)
def _betting(data: Array, i: int, end: int, betting: Automaton, places: Array, at: int) -> tuple[int, int, int]:
    """Walk through the betting at `i`; the node it ends in, the place of the colon after it and the number of actions.

    The node is -1 when the betting is illegal, unfinished or written in another form.
    """
    node = 0
    count = 0
    street = 0
    while i < end and data[i] != COLON:
        byte = data[i]
        move = 1 if byte == LOW_C else 2 if byte == LOW_R else 0 if byte == LOW_F else 3
        if move == 3:
            return -1, i, count
        i += 1
        places[at + count] = betting.place[node] | move
        count += 1
        node = betting.child[node, move]
        if node < 0:
            return -1, i, count
        now = (betting.place[node] >> 2) & 3
        if now != street:
            if i >= end or data[i] != SLASH:
                return -1, i, count
            i += 1
            street = now
    if betting.kind[node] == 0:
        return -1, i, count
    return node, i, count


@kernel(leaf=True)
def _deal(data: Array, first: int, common: int, card_of: Array, work: LineScratch) -> bool:
    """Read two pairs of hole cards at `first` and so many board cards; whether all are there and different."""
    hole, board = work.hole, work.board
    seen = 0
    for j in range(4):
        card = _dealt(data, first + 2 * j + (1 if j > 1 else 0), card_of)
        if card < 0 or (seen >> card) & 1 != 0:
            return False
        seen |= 1 << card
        hole[j >> 1, j & 1] = card
    i = first + 9
    for j in range(common):
        if j == 0 or j > 2:
            if data[i] != SLASH:
                return False
            i += 1
        card = _dealt(data, i, card_of)
        if card < 0 or (seen >> card) & 1 != 0:
            return False
        seen |= 1 << card
        board[j] = card
        i += 2
    return True


@kernel(leaf=True)
def _paid(data: Array, i: int, end: int, due: int) -> int:
    """The place of the colon after the payoffs at `i` if they are `due` and its opposite, else -1."""
    paid, i = _whole(data, i, end)
    if i < 0 or paid != due or i >= end or data[i] != BAR:
        return -1
    paid, i = _whole(data, i + 1, end)
    if i < 0 or paid != -due or i >= end or data[i] != COLON:
        return -1
    return i


@kernel(inline=True, leaf=True)
def _hand(
    data: Array, a: int, end: int, game: KernelContext, lineups: LineupTable, places: Array, at: int, work: LineScratch
) -> int:
    """Read a hand at `a`; the place of its newline, or -1 when the line is left to others.

    Actions go to `places` from `at` on (action, street and actor packed), what else there is to `work`.
    """
    fields, betting = work.fields, game.betting
    if end - a < 24 or line_kind(data, a, end) != STATE_LINE:
        return -1
    number, i = _whole(data, a + 6, end)
    if i < 0 or number < 0 or data[a + 6] == MINUS or i >= end or data[i] != COLON:
        return -1
    fields[F_BETTING] = i + 1
    node, i, count = _betting(data, i + 1, end, betting, places, at)
    if node < 0:
        return -1
    fields[F_BETTING + 1] = i
    first = i + 1
    street = (betting.place[node] >> 2) & 3
    common = street + 2 if street > 0 else 0
    last = first + 9 + (2 * common + street if street > 0 else 0)
    if last + 6 > end or data[first + 4] != BAR or data[last] != COLON:
        return -1
    if not _deal(data, first, common, game.card_of, work):
        return -1
    outcome = 1
    if betting.kind[node] & SHOWDOWN != 0:
        mine = holding_value(work.hole[0], work.board, common, game.tables)
        other = holding_value(work.hole[1], work.board, common, game.tables)
        outcome = 2 if mine > other else 1 if mine == other else 0
    due = betting.due[node, outcome]
    i = _paid(data, last + 1, end, due)
    if i < 0:
        return -1
    stop = i + 1
    while stop < end and data[stop] != NEWLINE and data[stop] != RETURN:
        stop += 1
    after = stop + 1 if stop < end and data[stop] == RETURN else stop
    if after < end and data[after] != NEWLINE:
        return -1
    lineup = find_lineup(data, i + 1, stop, lineups)
    if lineup < 0:
        return -1
    work.payoffs[0] = due
    work.payoffs[1] = -due
    fields[F_HAND] = number
    fields[F_TOKENS] = count
    fields[F_LINEUP] = lineup
    fields[F_COMMON] = common
    fields[F_SHOWDOWN] = betting.kind[node] >> 1
    fields[F_EXPECTED] = 0
    fields[F_CARDS] = first
    fields[F_CARDS + 1] = last
    fields[F_PAID] = last + 1
    fields[F_PAID + 1] = i
    return after


@kernel(leaf=True)
def quick_hands(
    data: Array,
    a: int,
    game: KernelContext,
    lineups: LineupTable,
    counters: Array,
    found: HandBuffer,
    work: LineScratch,
) -> int:
    """Read hands from `a` on, as long as they come; the place of the first line that is left to others."""
    end = data.shape[0]
    while a < end:
        b = _hand(data, a, end, game, lineups, found.places, counters[C_ACTIONS], work)
        if b < 0:
            break
        names = lineups.sets[work.fields[F_LINEUP]]
        if counters[C_NAMES] >= 0 and counters[C_NAMES] != names:
            break
        if counters[C_NAMES] == NO_NAMES_YET:
            counters[C_NAMES] = names
        keep(game, work, counters, found)
        counters[C_LINE] += 1
        a = b + 1
    return a
