"""How three players and more stand in hold'em: means of random run-outs.

Hands go in; equities, strengths and what moved them come out, as `pipeline.arena.variance.standings` says. Equity and
strength do not change on average when cards are dealt, so an unbiased estimate before and after is all that their
changes need: `STREET_SAMPLES` random run-outs. For their products the next cards are enumerated (turn and river) or
drawn (flop), with rough strengths against a few random hands that are the same for every next card. Every random number
comes from the hand's stream, which knows nothing of the board or the betting: that keeps the adjusted results unbiased.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.single_card import add_products
from pipeline.poker.card_sets import add_up, add_up_hands, card_bits, draw, pot_share, rank_bit, set_value, unseen
from pipeline.poker.cards import Ranking, ranking
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

STREET_SAMPLES = np.array([128, 128, 64, 64])
"""run-outs for equity and strength on each street"""
GUESS_SAMPLES = 48
"""run-outs of the second estimate on the flop"""
FLOPS = 16
"""flops drawn for the expected products"""
RIVALS = np.array([0, 20, 10, 12])
"""random hands behind a rough strength, by street"""


class Found(NamedTuple):
    """What is filled: see `pipeline.arena.variance.standings`."""

    standing: Array
    before: Array
    guess: Array
    moved: Array
    """(hands, rounds, products)"""


class Hand(NamedTuple):
    """The hand at work, and the room for it."""

    hole: Array
    board: Array
    cards: Array
    """(52,) uint8: the cards that are left"""
    totals: Array
    """(players + 1,) keys of each player's cards with the board; last those of the board alone"""
    ranks: Array
    """(players + 1,) their ranks by suit"""
    values: Array
    """(players,): the players' values with the cards last added"""
    rivals: Array
    """(rivals, 4): keys and ranks of a run-out, and of run-out and hand together"""


@kernel(leaf=True)
def _share(hand: Hand, live: int, key: int, bits: int, tables: Ranking, out: Array) -> None:
    """Rank the live players with more cards (their keys and ranks); add the pot's shares to `out`."""
    best = -1
    winners = 0
    for p in range(len(hand.values)):
        if live >> p & 1:
            hand.values[p] = set_value(hand.totals[p] + key, hand.ranks[p] | bits, tables)
            if hand.values[p] > best:
                best = hand.values[p]
                winners = 1
            elif hand.values[p] == best:
                winners += 1
    for p in range(len(hand.values)):
        if live >> p & 1 and hand.values[p] == best:
            out[p] += 1.0 / winners


@kernel(leaf=True)
def _meet(hand: Hand, live: int, other: int, out: Array) -> None:
    """Add the points of the live players against one more hand's value."""
    players = len(hand.values)
    for p in range(players):
        if live >> p & 1:
            out[players + p] += pot_share(hand.values[p], other)


@kernel(leaf=True)
def _open(hand: Hand, known: int, tables: Ranking) -> int:
    """Add up the players' cards with the first `known` board cards; return how many cards are left in `hand.cards`."""
    add_up_hands(hand.hole, hand.board, known, tables, hand.totals, hand.ranks)
    taken = card_bits(hand.board, known)
    for p in range(len(hand.values)):
        taken |= card_bits(hand.hole[p], 2)
    return unseen(taken, hand.cards)


@kernel(leaf=True)
def _sample(hand: Hand, live: int, known: int, stream: Any, samples: int, tables: Ranking, out: Array) -> None:
    """Estimate equity and strength of the live players by random run-outs, each with one random hand more."""
    players, cards = len(hand.values), hand.cards
    left = _open(hand, known, tables)
    need = 5 - known
    out[:] = 0.0
    for _ in range(samples):
        stream = draw(stream, cards, left, need + 2)
        key, bits = add_up(cards, need, tables)
        _share(hand, live, key, bits, tables, out)
        key, bits = add_up(cards, need + 2, tables)
        _meet(hand, live, set_value(hand.totals[players] + key, hand.ranks[players] | bits, tables), out)
    for i in range(2 * players):
        out[i] /= samples


@kernel(leaf=True)
def _enumerate_equity(hand: Hand, live: int, known: int, tables: Ranking, out: Array) -> None:
    """The exact equity of the live players with one board card or none to come, over the first entries of `out`."""
    players, cards = len(hand.values), hand.cards
    left = _open(hand, known, tables)
    out[:players] = 0.0
    if known == 5:
        _share(hand, live, 0, 0, tables, out)
        return
    for k in range(left):
        _share(hand, live, tables.keys[cards[k]], rank_bit(cards[k]), tables, out)
    for p in range(players):
        out[p] /= left


@kernel(leaf=True)
def _rough(hand: Hand, live: int, key: int, bits: int, count: int, last: bool, tables: Ranking, out: Array) -> None:
    """Equity and strength after new cards, against the first `count` rivals that hold none of them.

    On the `last` street there is no run-out, and the equity is settled.
    """
    players, rivals = len(hand.values), hand.rivals
    out[:] = 0.0
    met = 0
    if last:
        _share(hand, live, key, bits, tables, out)
    for k in range(count):
        if rivals[k, 3] & bits:
            continue
        met += 1
        if not last:
            _share(hand, live, key + rivals[k, 0], bits | rivals[k, 1], tables, out)
        total = hand.totals[players] + key + rivals[k, 2]
        _meet(hand, live, set_value(total, hand.ranks[players] | bits | rivals[k, 3], tables), out)
    for p in range(players):
        if met > 0:
            out[players + p] /= met
            out[p] /= 1 if last else met
        elif live >> p & 1:
            out[players + p] = 0.5
            out[p] = out[p] if last else 1.0 / players


@kernel(leaf=True)
def _draw_rivals(hand: Hand, left: int, need: int, stream: Any, count: int, tables: Ranking) -> Any:
    """Draw run-outs of `need` cards, each with one more hand."""
    cards, rivals = hand.cards, hand.rivals
    for k in range(count):
        stream = draw(stream, cards, left, need + 2)
        rivals[k, 0], rivals[k, 1] = add_up(cards, need, tables)
        rivals[k, 2], rivals[k, 3] = add_up(cards, need + 2, tables)
    return stream


@kernel(leaf=True)
def _move(
    hand: Hand, live: int, street: int, stream: Any, rivals: int, tables: Ranking, standing: Array, out: Array
) -> None:
    """Products of rough standings after a street, less their mean over the cards that could have come."""
    players, cards = len(hand.values), hand.cards
    known = 0 if street == 1 else 1 + street
    shown = 2 + street
    left = _open(hand, known, tables)
    stream = _draw_rivals(hand, left, 5 - shown, stream, rivals, tables)
    drawn = FLOPS if street == 1 else left
    out[:] = 0.0
    for k in range(-1, drawn):
        if k >= 0 and street == 1:
            stream = draw(stream, cards, left, 3)
        new = hand.board[known:] if k < 0 else cards if street == 1 else cards[k:]
        key, bits = add_up(new, shown - known, tables)
        _rough(hand, live, key, bits, rivals, shown == 5, tables, standing)
        add_products(players, live, standing, 1.0 if k < 0 else -1.0 / drawn, out)


@kernel
def _stand_street(
    hand: Hand, live: Array, street: int, stream: Any, settings: Array, tables: Ranking, scratch: Array, found: Found
) -> None:
    """Fill one street of one hand; `settings` are the run-outs and the rivals by street."""
    mask = live[street]
    known = 0 if street == 0 else 2 + street
    standing, before, guess, moved = found
    if street > 0:
        if live[street - 1] == mask:
            before[street] = standing[street - 1]
        else:
            earlier = 0 if street == 1 else 1 + street
            other = hash64(stream + np.uint64(1))
            _sample(hand, mask, earlier, other, settings[0, street], tables, before[street])
            if street == 3:
                _enumerate_equity(hand, mask, earlier, tables, before[street])
        other = hash64(stream + np.uint64(2))
        _move(hand, mask, street, other, settings[1, street], tables, scratch, moved[street])
    _sample(hand, mask, known, stream, settings[0, street], tables, standing[street])
    if street >= 2:
        _enumerate_equity(hand, mask, known, tables, standing[street])
        guess[street] = standing[street]
    else:
        other = hash64(stream + np.uint64(3))
        _sample(hand, mask, known, other, GUESS_SAMPLES, tables, guess[street])


@kernel
def _stand_all(
    hole: Array, board: Array, live: Array, streams: Array, settings: Array, tables: Ranking, found: Found
) -> None:
    """Fill the standings of hands; `live` is (hands, rounds), 0 where a street was not dealt."""
    players = hole.shape[1]
    cards, values = np.empty(52, np.uint8), np.empty(players, np.int64)
    totals, ranks = np.empty(players + 1, np.int64), np.empty(players + 1, np.int64)
    rivals, scratch = np.empty((settings[1].max(), 4), np.int64), np.empty(2 * players)
    for i in range(hole.shape[0]):
        hand = Hand(hole[i], board[i], cards, totals, ranks, values, rivals)
        one = Found(found.standing[i], found.before[i], found.guess[i], found.moved[i])
        for street in range(live.shape[1]):
            if live[i, street] == 0:
                break
            stream = hash64(streams[i] + np.uint64(16 * street))
            _stand_street(hand, live[i], street, stream, settings, tables, scratch, one)


def stand(hands: HandRecords, live: Array, found: Found) -> None:
    """Fill `found` with how the players of hold'em hands stood on every street; see
    `pipeline.arena.variance.standings`."""
    settings = np.stack([STREET_SAMPLES, RIVALS])
    _stand_all(hands.hole, hands.board, live, hands.streams, settings, ranking(), found)
