"""How two hands of hold'em stand on each street: exact equities, and what each card did beyond its expectation.

Deals go in (both hands, the board, the last street that was dealt); for every street come out both equities and
strengths, and by how much they and their products moved when the street was dealt, less the mean over the cards that
could have come. Before the flop equities are looked up (`pipeline.poker.starting_hands`); on the flop all 990 pairs of
turn and river are ranked once, which also gives the equity after every turn card and the winner after every river
card. The strength (the chance against one more hand) after each next card is that against a few random rivals, the same
ones for every card. Flops are too many: the mean there is over `FLOPS` random ones.

Every random number comes from the deal's stream, which knows nothing of the board and the betting, and a mean over the
cards that could have come is taken with the very rivals that the card itself meets: so what comes out has mean zero.
The room is its own because only two players are cheap enough to enumerate.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.card_sets import (
    add_up,
    add_up_hands,
    card_bits,
    draw,
    pot_share,
    rank_bit,
    set_value,
    unseen,
)
from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.starting_hands import PREFLOP_BOARDS, HeadsUp, headsup_counts, headsup_table
from pipeline.poker.strength.win_counts import doubled_wins
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

CHANGES = 14
"""numbers whose change is told: equity of the first player e, strengths a and b, ee, ea, eb, aa, ab, bb, eaa, eab, ebb,
aab, abb"""
FLOPS = 16
"""flops drawn for the mean"""
FLOP_SHUFFLES = 2
"""how often the 48 unseen cards make up 12 rivals of four cards (a run-out and a hand)"""
TURN_SHUFFLES = 1
"""how often the 45 unseen cards make up 15 rivals of three cards (a river card and a hand)"""
RIVER_SHUFFLES = 1
"""how often the 44 unseen cards make up 22 hands"""
STRENGTH_SHUFFLES = 6
"""how often they make up rivals behind a strength that is looked at after the flop or turn"""
MOST_RIVALS = 96
PAIRS = comb(45, 2)
"""hands that one opponent may hold on the river"""


class Room(NamedTuple):
    """What a deal is worked out in."""

    cards: Array
    """(52,) uint8: the cards that are left"""
    totals: Array
    """(3,) keys of both hands with the board, and of the board alone"""
    ranks: Array
    """(3,) their ranks by suit"""
    values: Array
    """(2, 45, 45) uint16: both hands' values with each turn and river"""
    won: Array
    """(45,): the first hand's equity after each turn card"""
    rivals: Array
    """(rivals, 4): keys and ranks of a run-out, and of run-out and hand together"""
    places: Array
    """(52,) uint8: numbers of cards in a random order"""
    mean: Array
    """(CHANGES,)"""


@kernel(leaf=True)
def _add(equity: float, first: float, second: float, weight: float, out: Array) -> None:
    """Add `weight` times the numbers whose change is told; all are taken from their middles."""
    e, a, b = equity - 0.5, first - 0.5, second - 0.5
    out[0] += weight * e
    out[1] += weight * a
    out[2] += weight * b
    out[3] += weight * e * e
    out[4] += weight * e * a
    out[5] += weight * e * b
    out[6] += weight * a * a
    out[7] += weight * a * b
    out[8] += weight * b * b
    out[9] += weight * e * a * a
    out[10] += weight * e * a * b
    out[11] += weight * e * b * b
    out[12] += weight * a * a * b
    out[13] += weight * a * b * b


@kernel(leaf=True)
def _flop_standing(key: int, bits: int, tables: Ranking, room: Room, weight: float, out: Array) -> None:
    """Add the numbers of one flop, found with the rivals that hold none of its cards."""
    equity, first, second, met = 0.0, 0.0, 0.0, 0
    totals, ranks, rivals = room.totals, room.ranks, room.rivals
    for k in range(12 * FLOP_SHUFFLES):
        if rivals[k, 3] & bits:
            continue
        met += 1
        run, shown = key + rivals[k, 0], bits | rivals[k, 1]
        mine = set_value(totals[0] + run, ranks[0] | shown, tables)
        theirs = set_value(totals[1] + run, ranks[1] | shown, tables)
        other = set_value(totals[2] + key + rivals[k, 2], bits | rivals[k, 3], tables)
        equity += pot_share(mine, theirs)
        first += pot_share(mine, other)
        second += pot_share(theirs, other)
    if met > 0:
        _add(equity / met, first / met, second / met, weight, out)


@kernel(leaf=True)
def _flop_moved(hole: Array, board: Array, stream: Any, tables: Ranking, room: Room, out: Array) -> None:
    """What the flop did, less the mean over random flops."""
    cards, rivals = room.cards, room.rivals
    left = unseen(card_bits(hole[0], 2) | card_bits(hole[1], 2), cards)
    add_up_hands(hole, board, 0, tables, room.totals, room.ranks)
    for k in range(12 * FLOP_SHUFFLES):
        if k % 12 == 0:
            stream = draw(stream, cards, left, left - 1)
        four = cards[4 * (k % 12) : 4 * (k % 12) + 4]
        rivals[k, 0], rivals[k, 1] = add_up(four, 2, tables)
        rivals[k, 2], rivals[k, 3] = add_up(four, 4, tables)
    for k in range(-1, FLOPS):
        if k >= 0:
            stream = draw(stream, cards, left, 3)
        key, bits = add_up(board if k < 0 else cards, 3, tables)
        _flop_standing(key, bits, tables, room, 1.0 if k < 0 else -1.0 / FLOPS, out)


@kernel(leaf=True)
def _run_outs(left: int, tables: Ranking, room: Room) -> float:
    """Rank both hands with every turn and river; returns the first hand's equity on the flop."""
    cards, totals, ranks, values, won = room.cards, room.totals, room.ranks, room.values, room.won
    won[:] = 0.0
    for i in range(1, left):
        first, second = totals[0] + tables.keys[cards[i]], totals[1] + tables.keys[cards[i]]
        bit = rank_bit(cards[i])
        for j in range(i):
            key, bits = tables.keys[cards[j]], bit | rank_bit(cards[j])
            mine = set_value(first + key, ranks[0] | bits, tables)
            theirs = set_value(second + key, ranks[1] | bits, tables)
            values[0, i, j] = mine
            values[0, j, i] = mine
            values[1, i, j] = theirs
            values[1, j, i] = theirs
            share = pot_share(mine, theirs)
            won[i] += share
            won[j] += share
    total = 0.0
    for i in range(left):
        total += won[i]
        won[i] /= left - 1
    return total / (left * (left - 1))


@kernel(leaf=True)
def _strengths(stream: Any, turn: int, left: int, tables: Ranking, room: Room, out: Array) -> Any:
    """Both hands' strengths on the flop (`turn` -1) or turn, against rivals with a random run-out each."""
    places, cards, values = room.places, room.cards, room.values
    size = 4 if turn < 0 else 3
    first, second, met = 0.0, 0.0, 0
    for _ in range(STRENGTH_SHUFFLES):
        stream = draw(stream, places, left, left - 1)
        for k in range(0, left - size + 1, size):
            x, y, r = int(places[k]), int(places[k + 1]), int(places[k + 2])
            t = int(places[k + 3]) if turn < 0 else turn
            if x == turn or y == turn or r == turn:
                continue
            met += 1
            key = tables.keys[cards[t]] + tables.keys[cards[r]] + tables.keys[cards[x]] + tables.keys[cards[y]]
            bits = rank_bit(cards[t]) | rank_bit(cards[r]) | rank_bit(cards[x]) | rank_bit(cards[y])
            other = set_value(room.totals[2] + key, room.ranks[2] | bits, tables)
            first += pot_share(int(values[0, t, r]), other)
            second += pot_share(int(values[1, t, r]), other)
    out[2] = first / met
    out[3] = second / met
    return stream


@kernel(leaf=True)
def _turn_moved(stream: Any, turn: int, left: int, tables: Ranking, room: Room, out: Array) -> Any:
    """What the turn card did, less the mean over all turn cards."""
    places, cards, values, rivals = room.places, room.cards, room.values, room.rivals
    for k in range(15 * TURN_SHUFFLES):
        if k % 15 == 0:
            stream = draw(stream, places, left, left - 1)
        for c in range(3):
            rivals[k, c] = places[3 * (k % 15) + c]
    room.mean[:] = 0.0
    for t in range(left):
        first, second, met = 0.0, 0.0, 0
        total, shown = room.totals[2] + tables.keys[cards[t]], room.ranks[2] | rank_bit(cards[t])
        for k in range(15 * TURN_SHUFFLES):
            r, x, y = rivals[k, 0], rivals[k, 1], rivals[k, 2]
            if t in (r, x, y):
                continue
            met += 1
            key = tables.keys[cards[r]] + tables.keys[cards[x]] + tables.keys[cards[y]]
            bits = rank_bit(cards[r]) | rank_bit(cards[x]) | rank_bit(cards[y])
            other = set_value(total + key, shown | bits, tables)
            first += pot_share(int(values[0, t, r]), other)
            second += pot_share(int(values[1, t, r]), other)
        if met > 0:
            first, second = first / met, second / met
        if t == turn:
            _add(room.won[t], first, second, 1.0, out)
        _add(room.won[t], first, second, 1.0 / left, room.mean)
    for i in range(CHANGES):
        out[i] -= room.mean[i]
    return stream


@kernel(leaf=True)
def _river_moved(stream: Any, turn: int, river: int, left: int, tables: Ranking, room: Room, out: Array) -> Any:
    """What the river card did, less the mean over all river cards."""
    places, cards, values, rivals = room.places, room.cards, room.values, room.rivals
    count = 0
    total, shown = room.totals[2] + tables.keys[cards[turn]], room.ranks[2] | rank_bit(cards[turn])
    for _ in range(RIVER_SHUFFLES):
        stream = draw(stream, places, left, left - 1)
        for k in range(0, left - 1, 2):
            x, y = int(places[k]), int(places[k + 1])
            if x != turn and y != turn:
                rivals[count, 0], rivals[count, 1] = x, y
                rivals[count, 2] = total + tables.keys[cards[x]] + tables.keys[cards[y]]
                rivals[count, 3] = shown | rank_bit(cards[x]) | rank_bit(cards[y])
                count += 1
    room.mean[:] = 0.0
    for r in range(left):
        if r == turn:
            continue
        first, second, met = 0.0, 0.0, 0
        mine, theirs = int(values[0, turn, r]), int(values[1, turn, r])
        for k in range(count):
            if r == rivals[k, 0] or r == rivals[k, 1]:
                continue
            met += 1
            other = set_value(rivals[k, 2] + tables.keys[cards[r]], rivals[k, 3] | rank_bit(cards[r]), tables)
            first += pot_share(mine, other)
            second += pot_share(theirs, other)
        if met > 0:
            first, second = first / met, second / met
        if r == river:
            _add(pot_share(mine, theirs), first, second, 1.0, out)
        _add(pot_share(mine, theirs), first, second, 1.0 / (left - 1), room.mean)
    for i in range(CHANGES):
        out[i] -= room.mean[i]
    return stream


@kernel(leaf=True)
def _place(cards: Array, left: int, card: int) -> int:
    """The number of a card among those left."""
    for i in range(left):
        if cards[i] == card:
            return i
    return -1


@kernel(leaf=True)
def _stand_one(
    hole: Array,
    board: Array,
    last: int,
    stream: Any,
    tables: Ranking,
    table: HeadsUp,
    room: Room,
    out: Array,
    moved: Array,
) -> None:
    """The standings of one deal up to the street `last`, and what moved them."""
    wins, ties = headsup_counts(int(hole[0, 0]), int(hole[0, 1]), int(hole[1, 0]), int(hole[1, 1]), table)
    out[0, 0] = (wins + 0.5 * ties) / PREFLOP_BOARDS
    turn = river = -1
    if last >= 1:
        _flop_moved(hole, board, hash64(stream + np.uint64(1)), tables, room, moved[1])
        left = unseen(card_bits(hole[0], 2) | card_bits(hole[1], 2) | card_bits(board, 3), room.cards)
        add_up_hands(hole, board, 3, tables, room.totals, room.ranks)
        for i in range(left):
            room.places[i] = i
        out[1, 0] = _run_outs(left, tables, room)
        moved[1, 0] = out[1, 0] - out[0, 0]
        stream = _strengths(hash64(stream + np.uint64(2)), -1, left, tables, room, out[1])
    if last >= 2:
        turn = _place(room.cards, left, board[3])
        stream = _turn_moved(stream, turn, left, tables, room, moved[2])
        out[2, 0] = room.won[turn]
        stream = _strengths(stream, turn, left, tables, room, out[2])
    if last >= 3:
        river = _place(room.cards, left, board[4])
        stream = _river_moved(stream, turn, river, left, tables, room, moved[3])
        out[3, 0] = pot_share(int(room.values[0, turn, river]), int(room.values[1, turn, river]))
        out[3, 2] = doubled_wins(hole[0], board, 5, tables) / (2.0 * PAIRS)
        out[3, 3] = doubled_wins(hole[1], board, 5, tables) / (2.0 * PAIRS)
    for street in range(last + 1):
        out[street, 1] = 1.0 - out[street, 0]


@kernel
def _stand_all(
    hole: Array,
    board: Array,
    last: Array,
    streams: Array,
    tables: Ranking,
    table: HeadsUp,
    standing: Array,
    moved: Array,
) -> None:
    """`_stand_one` of every deal."""
    room = Room(
        np.empty(52, np.uint8),
        np.empty(3, np.int64),
        np.empty(3, np.int64),
        np.zeros((2, 45, 45), np.uint16),
        np.empty(45),
        np.empty((MOST_RIVALS, 4), np.int64),
        np.empty(52, np.uint8),
        np.empty(CHANGES),
    )
    for i in range(hole.shape[0]):
        _stand_one(hole[i], board[i], last[i], streams[i], tables, table, room, standing[i], moved[i])


def stand(hole: Array, board: Array, last: Array, streams: Array, start: Array) -> tuple[Array, Array]:
    """The standings of deals of two hands.

    Parameters: `hole` (deals, 2, 2) and `board` (deals, 5) uint8; `last` (deals,) int64, the last street dealt;
    `streams` (deals,) uint64; `start` (deals, 2), the strengths before the flop.
    Returns: (deals, 4, 4) equities and strengths of both players on each street, and (deals, 4, CHANGES) what moved.
    """
    standing, moved = np.zeros((len(hole), 4, 4)), np.zeros((len(hole), 4, CHANGES))
    standing[:, 0, 2:] = start
    _stand_all(hole, board, last, streams, ranking(), headsup_table(), standing, moved)
    return standing, moved
