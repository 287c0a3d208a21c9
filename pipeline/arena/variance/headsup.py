"""Compute the equities of two hands of hold'em on each street, and their changes beyond expectation.

Deals go in (both hands, the board, the last street that was dealt); for every street come out both equities and
strengths, and by how much they and their products changed when the street was dealt, less the mean over the cards that
could have come. Before the flop equities are looked up (`pipeline.poker.starting_hands`); on the flop all 990 pairs of
turn and river are ranked once, which also gives the equity after every turn card and the winner after every river
card. The strength (the chance against one more hand) after each next card is that against a few random rivals, the same
ones for every card. Flops are too many: the mean there is over `FLOPS` random ones.

Every random number comes from the deal's stream, which knows nothing of the board and the betting, and a mean over the
cards that could have come is taken with the very rivals that the card itself meets: so the changes have mean zero.
Only two players are cheap enough to enumerate; `pipeline.arena.variance.equities` samples for more.
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

MONOMIALS = 14
"""monomials of the first player's equity e and both strengths a and b, each less 1/2: e, a, b, ee, ea, eb, aa, ab, bb,
eaa, eab, ebb, aab, abb"""
FLOPS = 16
"""flops drawn for the mean"""
FLOP_SHUFFLES = 2
"""shuffles of the 48 unseen cards into 12 rivals of four cards (a run-out and a hand)"""
TURN_SHUFFLES = 1
"""how often the 45 unseen cards make up 15 rivals of three cards (a river card and a hand)"""
RIVER_SHUFFLES = 1
"""how often the 44 unseen cards make up 22 hands"""
STRENGTH_SHUFFLES = 6
"""how often they make up rivals behind a strength on the flop or turn"""
MOST_RIVALS = 96
PAIRS = comb(45, 2)
"""hands that one opponent may hold on the river"""


class DealBuffers(NamedTuple):
    """Arrays that a deal is computed in."""

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
    """(MONOMIALS,)"""


@kernel(leaf=True)
def _add_monomials(equity: float, first: float, second: float, weight: float, out: Array) -> None:
    """Add `weight` times the 14 centred monomials of equity and strengths."""
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
def _add_flop_monomials(key: int, bits: int, tables: Ranking, buffers: DealBuffers, weight: float, out: Array) -> None:
    """Add the monomials of one flop, estimated with the rivals that hold none of its cards."""
    equity, first, second, rival_count = 0.0, 0.0, 0.0, 0
    totals, ranks, rivals = buffers.totals, buffers.ranks, buffers.rivals
    for k in range(12 * FLOP_SHUFFLES):
        if rivals[k, 3] & bits:
            continue
        rival_count += 1
        run_key, rank_bits = key + rivals[k, 0], bits | rivals[k, 1]
        first_value = set_value(totals[0] + run_key, ranks[0] | rank_bits, tables)
        second_value = set_value(totals[1] + run_key, ranks[1] | rank_bits, tables)
        other = set_value(totals[2] + key + rivals[k, 2], bits | rivals[k, 3], tables)
        equity += pot_share(first_value, second_value)
        first += pot_share(first_value, other)
        second += pot_share(second_value, other)
    if rival_count > 0:
        _add_monomials(equity / rival_count, first / rival_count, second / rival_count, weight, out)


@kernel(leaf=True)
def _write_flop_change(
    hole: Array, board: Array, stream: Any, tables: Ranking, buffers: DealBuffers, out: Array
) -> None:
    """Write the monomials after the flop, less their mean over random flops."""
    cards, rivals = buffers.cards, buffers.rivals
    unseen_count = unseen(card_bits(hole[0], 2) | card_bits(hole[1], 2), cards)
    add_up_hands(hole, board, 0, tables, buffers.totals, buffers.ranks)
    for k in range(12 * FLOP_SHUFFLES):
        # a shuffled deck cut into rivals uses every card equally often: less noise than rivals drawn one by one
        if k % 12 == 0:
            stream = draw(stream, cards, unseen_count, unseen_count - 1)
        rival_cards = cards[4 * (k % 12) : 4 * (k % 12) + 4]
        rivals[k, 0], rivals[k, 1] = add_up(rival_cards, 2, tables)
        rivals[k, 2], rivals[k, 3] = add_up(rival_cards, 4, tables)
    # the flop that came (-1) and those that might have come meet the same rivals
    for k in range(-1, FLOPS):
        if k >= 0:
            stream = draw(stream, cards, unseen_count, 3)
        key, bits = add_up(board if k < 0 else cards, 3, tables)
        _add_flop_monomials(key, bits, tables, buffers, 1.0 if k < 0 else -1.0 / FLOPS, out)


@kernel(leaf=True)
def _rank_run_outs(unseen_count: int, tables: Ranking, buffers: DealBuffers) -> float:
    """Rank both hands with every turn and river; return the first hand's equity on the flop."""
    cards, totals, ranks, values, won = buffers.cards, buffers.totals, buffers.ranks, buffers.values, buffers.won
    won[:] = 0.0
    for i in range(1, unseen_count):
        first, second = totals[0] + tables.keys[cards[i]], totals[1] + tables.keys[cards[i]]
        bit = rank_bit(cards[i])
        for j in range(i):
            key, bits = tables.keys[cards[j]], bit | rank_bit(cards[j])
            first_value = set_value(first + key, ranks[0] | bits, tables)
            second_value = set_value(second + key, ranks[1] | bits, tables)
            # stored both ways round, so that (turn, river) needs no order
            values[0, i, j] = first_value
            values[0, j, i] = first_value
            values[1, i, j] = second_value
            values[1, j, i] = second_value
            share = pot_share(first_value, second_value)
            won[i] += share
            won[j] += share
    total = 0.0
    for i in range(unseen_count):
        total += won[i]
        won[i] /= unseen_count - 1
    return total / (unseen_count * (unseen_count - 1))


@kernel(leaf=True)
def _sample_strengths(
    stream: Any, turn: int, unseen_count: int, tables: Ranking, buffers: DealBuffers, out: Array
) -> Any:
    """Write both hands' strengths on the flop (`turn` -1) or turn, against rivals with a random run-out each."""
    places, cards, values = buffers.places, buffers.cards, buffers.values
    size = 4 if turn < 0 else 3
    first, second, rival_count = 0.0, 0.0, 0
    for _ in range(STRENGTH_SHUFFLES):
        stream = draw(stream, places, unseen_count, unseen_count - 1)
        for k in range(0, unseen_count - size + 1, size):
            x, y, r = int(places[k]), int(places[k + 1]), int(places[k + 2])
            t = int(places[k + 3]) if turn < 0 else turn
            if x == turn or y == turn or r == turn:
                continue
            rival_count += 1
            key = tables.keys[cards[t]] + tables.keys[cards[r]] + tables.keys[cards[x]] + tables.keys[cards[y]]
            bits = rank_bit(cards[t]) | rank_bit(cards[r]) | rank_bit(cards[x]) | rank_bit(cards[y])
            other = set_value(buffers.totals[2] + key, buffers.ranks[2] | bits, tables)
            first += pot_share(int(values[0, t, r]), other)
            second += pot_share(int(values[1, t, r]), other)
    out[2] = first / rival_count
    out[3] = second / rival_count
    return stream


@kernel(leaf=True)
def _write_turn_change(
    stream: Any, turn: int, unseen_count: int, tables: Ranking, buffers: DealBuffers, out: Array
) -> Any:
    """Write the monomials after the turn card, less their mean over all turn cards."""
    places, cards, values, rivals = buffers.places, buffers.cards, buffers.values, buffers.rivals
    for k in range(15 * TURN_SHUFFLES):
        if k % 15 == 0:
            stream = draw(stream, places, unseen_count, unseen_count - 1)
        for c in range(3):
            rivals[k, c] = places[3 * (k % 15) + c]
    buffers.mean[:] = 0.0
    for t in range(unseen_count):
        first, second, rival_count = 0.0, 0.0, 0
        total, rank_bits = buffers.totals[2] + tables.keys[cards[t]], buffers.ranks[2] | rank_bit(cards[t])
        for k in range(15 * TURN_SHUFFLES):
            r, x, y = rivals[k, 0], rivals[k, 1], rivals[k, 2]
            if t in (r, x, y):
                continue
            rival_count += 1
            key = tables.keys[cards[r]] + tables.keys[cards[x]] + tables.keys[cards[y]]
            bits = rank_bit(cards[r]) | rank_bit(cards[x]) | rank_bit(cards[y])
            other = set_value(total + key, rank_bits | bits, tables)
            first += pot_share(int(values[0, t, r]), other)
            second += pot_share(int(values[1, t, r]), other)
        if rival_count > 0:
            first, second = first / rival_count, second / rival_count
        # the card that came is one of those that might have come, with the same rivals: so the change has mean zero
        if t == turn:
            _add_monomials(buffers.won[t], first, second, 1.0, out)
        _add_monomials(buffers.won[t], first, second, 1.0 / unseen_count, buffers.mean)
    for i in range(MONOMIALS):
        out[i] -= buffers.mean[i]
    return stream


@kernel(leaf=True)
def _write_river_change(
    stream: Any, turn: int, river: int, unseen_count: int, tables: Ranking, buffers: DealBuffers, out: Array
) -> Any:
    """Write the monomials after the river card, less their mean over all river cards."""
    places, cards, values, rivals = buffers.places, buffers.cards, buffers.values, buffers.rivals
    count = 0
    total, rank_bits = buffers.totals[2] + tables.keys[cards[turn]], buffers.ranks[2] | rank_bit(cards[turn])
    for _ in range(RIVER_SHUFFLES):
        stream = draw(stream, places, unseen_count, unseen_count - 1)
        for k in range(0, unseen_count - 1, 2):
            x, y = int(places[k]), int(places[k + 1])
            if x != turn and y != turn:
                rivals[count, 0], rivals[count, 1] = x, y
                rivals[count, 2] = total + tables.keys[cards[x]] + tables.keys[cards[y]]
                rivals[count, 3] = rank_bits | rank_bit(cards[x]) | rank_bit(cards[y])
                count += 1
    buffers.mean[:] = 0.0
    for r in range(unseen_count):
        if r == turn:
            continue
        first, second, rival_count = 0.0, 0.0, 0
        first_value, second_value = int(values[0, turn, r]), int(values[1, turn, r])
        for k in range(count):
            if r == rivals[k, 0] or r == rivals[k, 1]:
                continue
            rival_count += 1
            other = set_value(rivals[k, 2] + tables.keys[cards[r]], rivals[k, 3] | rank_bit(cards[r]), tables)
            first += pot_share(first_value, other)
            second += pot_share(second_value, other)
        if rival_count > 0:
            first, second = first / rival_count, second / rival_count
        if r == river:
            _add_monomials(pot_share(first_value, second_value), first, second, 1.0, out)
        _add_monomials(pot_share(first_value, second_value), first, second, 1.0 / (unseen_count - 1), buffers.mean)
    for i in range(MONOMIALS):
        out[i] -= buffers.mean[i]
    return stream


@kernel(leaf=True)
def _index_of(cards: Array, card_count: int, card: int) -> int:
    """Return the index of a card among the first `card_count`, -1 if it is not there."""
    for i in range(card_count):
        if cards[i] == card:
            return i
    return -1


@kernel(leaf=True)
def _fill_deal(
    hole: Array,
    board: Array,
    last: int,
    stream: Any,
    tables: Ranking,
    table: HeadsUp,
    buffers: DealBuffers,
    out: Array,
    changes: Array,
) -> None:
    """Write the equities of one deal up to the street `last`, and their changes."""
    wins, ties = headsup_counts(int(hole[0, 0]), int(hole[0, 1]), int(hole[1, 0]), int(hole[1, 1]), table)
    out[0, 0] = (wins + 0.5 * ties) / PREFLOP_BOARDS
    turn = river = -1
    if last >= 1:
        _write_flop_change(hole, board, hash64(stream + np.uint64(1)), tables, buffers, changes[1])
        unseen_count = unseen(card_bits(hole[0], 2) | card_bits(hole[1], 2) | card_bits(board, 3), buffers.cards)
        add_up_hands(hole, board, 3, tables, buffers.totals, buffers.ranks)
        for i in range(unseen_count):
            buffers.places[i] = i
        out[1, 0] = _rank_run_outs(unseen_count, tables, buffers)
        # both sides are exact here: better than the estimate over drawn flops
        changes[1, 0] = out[1, 0] - out[0, 0]
        stream = _sample_strengths(hash64(stream + np.uint64(2)), -1, unseen_count, tables, buffers, out[1])
    if last >= 2:
        turn = _index_of(buffers.cards, unseen_count, board[3])
        stream = _write_turn_change(stream, turn, unseen_count, tables, buffers, changes[2])
        out[2, 0] = buffers.won[turn]
        stream = _sample_strengths(stream, turn, unseen_count, tables, buffers, out[2])
    if last >= 3:
        river = _index_of(buffers.cards, unseen_count, board[4])
        stream = _write_river_change(stream, turn, river, unseen_count, tables, buffers, changes[3])
        out[3, 0] = pot_share(int(buffers.values[0, turn, river]), int(buffers.values[1, turn, river]))
        out[3, 2] = doubled_wins(hole[0], board, 5, tables) / (2.0 * PAIRS)
        out[3, 3] = doubled_wins(hole[1], board, 5, tables) / (2.0 * PAIRS)
    for street in range(last + 1):
        out[street, 1] = 1.0 - out[street, 0]


@kernel
def _fill_deals(
    hole: Array,
    board: Array,
    last: Array,
    streams: Array,
    tables: Ranking,
    table: HeadsUp,
    equities: Array,
    changes: Array,
) -> None:
    """Write the equities of all deals, and their changes."""
    buffers = DealBuffers(
        np.empty(52, np.uint8),
        np.empty(3, np.int64),
        np.empty(3, np.int64),
        np.zeros((2, 45, 45), np.uint16),
        np.empty(45),
        np.empty((MOST_RIVALS, 4), np.int64),
        np.empty(52, np.uint8),
        np.empty(MONOMIALS),
    )
    for i in range(hole.shape[0]):
        _fill_deal(hole[i], board[i], last[i], streams[i], tables, table, buffers, equities[i], changes[i])


def headsup_equities(hole: Array, board: Array, last: Array, streams: Array, start: Array) -> tuple[Array, Array]:
    """Return the equities of deals of two hands on each street, and their changes.

    Parameters: `hole` (deals, 2, 2) and `board` (deals, 5) uint8; `last` (deals,) int64, the last street dealt;
    `streams` (deals,) uint64; `start` (deals, 2), the strengths before the flop.
    Returns: (deals, 4, 4) equities and strengths of both players by street, and (deals, 4, MONOMIALS) their changes.
    """
    equities, changes = np.zeros((len(hole), 4, 4)), np.zeros((len(hole), 4, MONOMIALS))
    equities[:, 0, 2:] = start
    _fill_deals(hole, board, last, streams, ranking(), headsup_table(), equities, changes)
    return equities, changes
