"""How the players of a hand stand on each street: chances to win at the showdown, and what the next cards did to them.

All hole cards and the board go in; for every street come out each player's equity (the share of the pot when all who
are left see the showdown) and strength (the chance against one more random hand), and by how much products of these
moved against their expectation when the street was dealt. Equity and strength do not change on average when cards are
dealt, so an unbiased estimate before and after is all that their changes need: `STREET_SAMPLES` random run-outs. For
their products the next cards are enumerated (turn and river) or drawn (flop), with rough strengths against a few
random hands that are the same for every next card. Games of one hole card are enumerated throughout.

Every random number comes from the hand's stream, which knows nothing of the board or the betting: that keeps the
adjusted results unbiased. The room is its own because only this part knows how cards are compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.cards import FLUSH_BITS, NO_SUITS, Ranking, flush_suit, ranking, sum_value
from pipeline.errors import PipelineError
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.luck.single_card import add_products, products, stand_exactly
from pipeline.numeric import hash64

__all__ = ["Standings", "standings", "supports"]

Array = npt.NDArray[Any]

STREET_SAMPLES = np.array([128, 128, 64, 64])
"""run-outs for equity and strength on each street"""
GUESS_SAMPLES = 48
"""run-outs of the second estimate on the flop"""
FLOPS = 16
"""flops drawn for the expected products"""
OPPONENTS = np.array([0, 20, 10, 12])
"""random hands behind a rough strength, by street"""


class Standings(NamedTuple):
    """Equity of each player, then strength of each player (2 x players numbers), at each street that was dealt."""

    after: Array
    """(hands, rounds, 2 players): when the street is dealt, among the players then left"""
    before: Array
    """(hands, rounds, 2 players): the same players with the cards before it"""
    guess: Array
    """(hands, rounds, 2 players): a second estimate of `after`, with luck of its own where `after` is estimated"""
    moved: Array
    """(hands, rounds, products): products of standings after the street, less their expectation before it"""


def supports(game: Game) -> bool:
    """Whether results of a game can be adjusted: hold'em, and games of one hole card and at most one board card."""
    return game.is_holdem or (game.hole_cards == 1 and sum(game.board_cards) <= 1)


@kernel(leaf=True)
def _card_bit(card: int) -> int:
    """A card's place in a set of ranks by suit, 16 bits for each suit."""
    return 1 << (16 * (int(card) & 3) + (int(card) >> 2))


@kernel(leaf=True)
def _value(total: int, ranks: int, tables: Ranking) -> int:
    """The value of a hand from its cards' keys and its ranks by suit."""
    if total & FLUSH_BITS:
        return int(tables.flushes[(ranks >> (16 * flush_suit(total))) & 0x1FFF])
    return sum_value(total, tables)


@kernel(leaf=True)
def _draw(stream: Any, cards: Array, left: int, count: int) -> Any:
    """Shuffle `count` random cards of the first `left` to the front; the stream goes on."""
    for k in range(count):
        stream = hash64(stream + np.uint64(1))
        other = k + int(((stream >> np.uint64(32)) * np.uint64(left - k)) >> np.uint64(32))
        cards[k], cards[other] = cards[other], cards[k]
    return stream


@kernel(leaf=True)
def _unseen(hole: Array, board: Array, known: int, cards: Array) -> int:
    """Write the cards that nobody holds and that do not lie open to `cards`; returns how many."""
    used = 0
    for p in range(hole.shape[0]):
        used |= 1 << int(hole[p, 0]) | 1 << int(hole[p, 1])
    for k in range(known):
        used |= 1 << int(board[k])
    left = 0
    for card in range(52):
        if used >> card & 1 == 0:
            cards[left] = card
            left += 1
    return left


@kernel(leaf=True)
def _sums(hole: Array, board: Array, known: int, tables: Ranking, totals: Array, ranks: Array) -> None:
    """Keys and ranks of each player's cards with the open board; the entry after the last player is the board alone."""
    players = hole.shape[0]
    totals[players] = NO_SUITS
    ranks[players] = 0
    for k in range(known):
        totals[players] += tables.keys[board[k]]
        ranks[players] |= _card_bit(board[k])
    for p in range(players):
        totals[p] = totals[players] + tables.keys[hole[p, 0]] + tables.keys[hole[p, 1]]
        ranks[p] = ranks[players] | _card_bit(hole[p, 0]) | _card_bit(hole[p, 1])


@kernel(leaf=True)
def _share(
    live: int,
    players: int,
    totals: Array,
    ranks: Array,
    key: int,
    bits: int,
    tables: Ranking,
    values: Array,
    out: Array,
) -> None:
    """Rank the live players with more cards (their keys and bits) into `values`; add the pot's shares to `out`."""
    best = -1
    winners = 0
    for p in range(players):
        if live >> p & 1:
            values[p] = _value(totals[p] + key, ranks[p] | bits, tables)
            if values[p] > best:
                best = values[p]
                winners = 1
            elif values[p] == best:
                winners += 1
    for p in range(players):
        if live >> p & 1 and values[p] == best:
            out[p] += 1.0 / winners


@kernel(leaf=True)
def _sample(
    hole: Array,
    live: int,
    board: Array,
    known: int,
    stream: Any,
    samples: int,
    tables: Ranking,
    room: tuple[Array, Array, Array, Array],
    out: Array,
) -> None:
    """Estimate equity and strength of the live players by random run-outs, each with one random hand more."""
    cards, totals, ranks, values = room
    players = hole.shape[0]
    left = _unseen(hole, board, known, cards)
    _sums(hole, board, known, tables, totals, ranks)
    need = 5 - known
    out[:] = 0.0
    for _ in range(samples):
        stream = _draw(stream, cards, left, need + 2)
        key = 0
        bits = 0
        for k in range(need):
            key += tables.keys[cards[k]]
            bits |= _card_bit(cards[k])
        _share(live, players, totals, ranks, key, bits, tables, values, out)
        other = _value(
            totals[players] + key + tables.keys[cards[need]] + tables.keys[cards[need + 1]],
            int(ranks[players]) | bits | _card_bit(cards[need]) | _card_bit(cards[need + 1]),
            tables,
        )
        for p in range(players):
            if live >> p & 1:
                out[players + p] += 1.0 if values[p] > other else 0.5 if values[p] == other else 0.0
    for i in range(2 * players):
        out[i] /= samples


@kernel(leaf=True)
def _enumerate_equity(
    hole: Array,
    live: int,
    board: Array,
    known: int,
    tables: Ranking,
    room: tuple[Array, Array, Array, Array],
    out: Array,
) -> None:
    """The exact equity of the live players with one board card or none to come, over the first entries of `out`."""
    cards, totals, ranks, values = room
    players = hole.shape[0]
    left = _unseen(hole, board, known, cards)
    _sums(hole, board, known, tables, totals, ranks)
    out[:players] = 0.0
    if known == 5:
        _share(live, players, totals, ranks, 0, 0, tables, values, out)
        return
    for k in range(left):
        _share(live, players, totals, ranks, tables.keys[cards[k]], _card_bit(cards[k]), tables, values, out)
    for p in range(players):
        out[p] /= left


@kernel(leaf=True)
def _rough(
    live: int,
    players: int,
    totals: Array,
    ranks: Array,
    key: int,
    bits: int,
    rivals: Array,
    count: int,
    last: bool,
    tables: Ranking,
    values: Array,
    out: Array,
) -> None:
    """Equity and strength after new cards, against the `count` rivals that hold none of them.

    A rival is (keys and bits of its run-out, keys and bits of run-out and hand together); on the `last` street there is
    no run-out, and the equity is settled.
    """
    out[:] = 0.0
    met = 0
    if last:
        _share(live, players, totals, ranks, key, bits, tables, values, out)
    for k in range(count):
        if rivals[k, 3] & bits:
            continue
        met += 1
        if not last:
            _share(live, players, totals, ranks, key + rivals[k, 0], bits | rivals[k, 1], tables, values, out)
        other = _value(totals[players] + key + rivals[k, 2], ranks[players] | bits | rivals[k, 3], tables)
        for p in range(players):
            if live >> p & 1:
                out[players + p] += 1.0 if values[p] > other else 0.5 if values[p] == other else 0.0
    for p in range(players):
        if met > 0:
            out[players + p] /= met
            out[p] /= 1 if last else met
        elif live >> p & 1:
            out[players + p] = 0.5
            out[p] = out[p] if last else 1.0 / players


@kernel(leaf=True)
def _move(
    hole: Array,
    live: int,
    board: Array,
    street: int,
    stream: Any,
    opponents: int,
    tables: Ranking,
    room: tuple[Array, Array, Array, Array],
    rivals: Array,
    standing: Array,
    out: Array,
) -> None:
    """Products of rough standings after a street of hold'em, less their mean over the cards that could have come."""
    cards, totals, ranks, values = room
    players = hole.shape[0]
    known = 0 if street == 1 else 1 + street
    shown = 2 + street
    left = _unseen(hole, board, known, cards)
    _sums(hole, board, known, tables, totals, ranks)
    need = 5 - shown
    for k in range(opponents):
        stream = _draw(stream, cards, left, need + 2)
        for part in range(4):
            rivals[k, part] = 0
        for c in range(need + 2):
            rivals[k, 2] += tables.keys[cards[c]]
            rivals[k, 3] |= _card_bit(cards[c])
            if c < need:
                rivals[k, 0] += tables.keys[cards[c]]
                rivals[k, 1] |= _card_bit(cards[c])
    drawn = FLOPS if street == 1 else left
    out[:] = 0.0
    for k in range(-1, drawn):
        key = 0
        bits = 0
        if k < 0:
            for c in range(known, shown):
                key += tables.keys[board[c]]
                bits |= _card_bit(board[c])
        elif street == 1:
            stream = _draw(stream, cards, left, 3)
            for c in range(3):
                key += tables.keys[cards[c]]
                bits |= _card_bit(cards[c])
        else:
            key = tables.keys[cards[k]]
            bits = _card_bit(cards[k])
        _rough(live, players, totals, ranks, key, bits, rivals, opponents, need == 0, tables, values, standing)
        add_products(players, live, standing, 1.0 if k < 0 else -1.0 / drawn, out)


@kernel
def _stand_holdem(
    hole: Array,
    board: Array,
    live: Array,
    streams: Array,
    samples: Array,
    opponents: Array,
    tables: Ranking,
    after: Array,
    before: Array,
    guess: Array,
    moved: Array,
) -> None:
    """Fill the standings of hold'em hands; `live` is (hands, rounds), 0 where a street was not dealt."""
    players = hole.shape[1]
    room = (
        np.empty(52, np.uint8),
        np.empty(players + 1, np.int64),
        np.empty(players + 1, np.int64),
        np.empty(players, np.int64),
    )
    rivals = np.empty((max(1, opponents.max()), 4), np.int64)
    standing = np.empty(2 * players)
    for i in range(hole.shape[0]):
        for street in range(live.shape[1]):
            mask = live[i, street]
            if mask == 0:
                break
            known = 0 if street == 0 else 2 + street
            stream = hash64(streams[i] + np.uint64(16 * street))
            if street > 0:
                if live[i, street - 1] == mask:
                    before[i, street] = after[i, street - 1]
                else:
                    earlier = 0 if street == 1 else 1 + street
                    other = hash64(stream + np.uint64(1))
                    _sample(hole[i], mask, board[i], earlier, other, samples[street], tables, room, before[i, street])
                    if street == 3:
                        _enumerate_equity(hole[i], mask, board[i], earlier, tables, room, before[i, street])
                other = hash64(stream + np.uint64(2))
                _move(
                    hole[i],
                    mask,
                    board[i],
                    street,
                    other,
                    opponents[street],
                    tables,
                    room,
                    rivals,
                    standing,
                    moved[i, street],
                )
            _sample(hole[i], mask, board[i], known, stream, samples[street], tables, room, after[i, street])
            if street >= 2:
                _enumerate_equity(hole[i], mask, board[i], known, tables, room, after[i, street])
                guess[i, street] = after[i, street]
            else:
                other = hash64(stream + np.uint64(3))
                _sample(hole[i], mask, board[i], known, other, GUESS_SAMPLES, tables, room, guess[i, street])


def standings(game: Game, hole: Array, board: Array, live: Array, streams: Array) -> Standings:
    """How the players of each hand stood on every street.

    Parameters: `hole` (hands, players, 2) and `board` (hands, 5), uint8, all that was dealt; `live` (hands, rounds)
    int64, a bit for each player left when the street was dealt, 0 where it was not; `streams` (hands,) uint64, random
    numbers that are independent of the board and of the play.
    Returns: see `Standings`.
    """
    if not supports(game):
        raise PipelineError(
            f"{game.name}: results are adjusted in hold'em and in games of one hole card and at most one board card"
        )
    shape = (*live.shape, 2 * game.players)
    after, before = np.zeros(shape), np.zeros(shape)
    moved = np.zeros((*live.shape, products(game.players)))
    if game.is_holdem:
        guess = np.zeros(shape)
        _stand_holdem(hole, board, live, streams, STREET_SAMPLES, OPPONENTS, ranking(), after, before, guess, moved)
        return Standings(after, before, guess, moved)
    stand_exactly(game.rules, game.deck, hole, board, live, ranking(), after, before, moved)
    return Standings(after, before, after, moved)
