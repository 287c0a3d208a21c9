"""Compute the equities of a hand's players on each street, and what the next cards did to them.

Hands with all hole cards and the board go in; for every street come out each player's equity (the share of the pot when
all who are left see the showdown) and strength (the chance against one more random hand), and by how much these and
their products changed against their expectation when the street was dealt.

Two hands of hold'em are enumerated once for all hands of a deal (`headsup`). Games of one hole card are enumerated
throughout. With three players and more in hold'em, means of random run-outs are taken: equity and strength do not
change on average when cards are dealt, so an unbiased estimate before and after is all that their changes need
(`STREET_SAMPLES` run-outs). For their products the next cards are enumerated (turn and river) or drawn (flop), with
rough strengths against a few random hands that are the same for every next card. Every random number comes from the
hand's stream, which knows nothing of the board or the betting: that keeps the adjusted results unbiased.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pipeline.arena.variance.headsup import MONOMIALS, headsup_equities
from pipeline.arena.variance.records import HandRecords
from pipeline.poker.card_sets import add_up, add_up_hands, card_bits, draw, pot_share, rank_bit, set_value, unseen
from pipeline.poker.cards import Ranking, ranking, start_class
from pipeline.poker.game import Game
from pipeline.poker.rules import R_BOARD, R_PLAYERS, R_ROUNDS
from pipeline.poker.showdown import showdown_value
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.rows import STRENGTH
from pipeline.poker.strength.win_counts import FULL_STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
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


class StreetEquities(NamedTuple):
    """Equity of each player, then strength of each player (2 x players numbers), on each street that was dealt.

    Hands of one deal may share a row.
    """

    rows: Array
    """(hands,) int64: the row of each hand in the arrays below"""
    equities: Array
    """(rows, rounds, 2 players): when the street is dealt, among the players then left"""
    second_estimate: Array
    """(rows, rounds, 2 players): the same; where `equities` are sampled, an estimate from other random numbers"""
    shift: Array
    """(rows, rounds, players): how the dealt street changed each equity among the players left, with mean zero"""
    changes: Array
    """(rows, rounds, changes): equities, strengths and products after the street, less their expectation before it"""


def change_count(game: Game) -> int:
    """Return how many numbers `StreetEquities.changes` has: all but the last player's equity, and their products."""
    if game.is_holdem and game.players == 2:
        return MONOMIALS
    return (2 * game.players - 1) * (game.players + 1)


def is_adjustable(game: Game) -> bool:
    """Return whether a game's results can be adjusted: hold'em, or one hole card and at most one board card."""
    return game.is_holdem or (game.hole_cards == 1 and sum(game.board_cards) <= 1)


# One hole card: enumeration


@kernel(leaf=True)
def _add_products(players: int, live: int, equities: Array, weight: float, out: Array) -> None:
    """Add `weight` times all products of two of a street's centred equities and strengths to `out`.

    The last player's equity is left out: it follows from the others.
    """
    count = 2 * players - 1
    place = 0
    for i in range(count):
        first = _centred_number(players, live, equities, i)
        for j in range(i, count):
            out[place] += weight * first * _centred_number(players, live, equities, j)
            place += 1


@kernel(leaf=True)
def _centred_number(players: int, live: int, equities: Array, i: int) -> float:
    """Return number i of the equities of all players but the last, then strengths, less their means.

    It is zero for a player who has folded.
    """
    if i < players - 1:
        return float(equities[i] - 1.0 / players) if live >> i & 1 else 0.0
    return float(equities[i + 1] - 0.5) if live >> (i - players + 1) & 1 else 0.0


@kernel(leaf=True)
def _enumerate_card(
    rules: Array,
    deck: Array,
    hole: Array,
    live: int,
    card: int,
    tables: Ranking,
    boards: Array,
    values: Array,
    out: Array,
) -> None:
    """Write equities and strengths in a game of one hole card; `card` is the open board card, -1 for none."""
    players = rules[R_PLAYERS]
    board_count = 0
    for r in range(rules[R_ROUNDS]):
        board_count += rules[R_BOARD + r]
    taken = 0
    for p in range(players):
        taken |= 1 << int(hole[p, 0])
    out[:] = 0.0
    board_total = 0
    for b in range(len(deck) if board_count > 0 and card < 0 else 1):
        boards[0] = deck[b] if board_count > 0 and card < 0 else max(card, 0)
        if board_count > 0 and taken >> int(boards[0]) & 1:
            continue
        board_total += 1
        best = -1
        winners = 0
        for p in range(players):
            if live >> p & 1:
                values[p] = showdown_value(hole[p], 1, boards, board_count, tables)
                winners = 1 if values[p] > best else winners + 1 if values[p] == best else winners
                best = max(best, values[p])
        for p in range(players):
            if live >> p & 1 and values[p] == best:
                out[p] += 1.0 / winners
        rival_count = 0
        for d in range(len(deck)):
            rival_count += 0 if taken >> int(deck[d]) & 1 or (board_count > 0 and deck[d] == boards[0]) else 1
        for d in range(len(deck)):
            if taken >> int(deck[d]) & 1 or (board_count > 0 and deck[d] == boards[0]):
                continue
            other = showdown_value(deck[d : d + 1], 1, boards, board_count, tables)
            for p in range(players):
                if live >> p & 1:
                    out[players + p] += pot_share(values[p], other) / rival_count
    for i in range(2 * players):
        out[i] /= board_total


@kernel
def enumerated_equities(
    rules: Array,
    deck: Array,
    hole: Array,
    board: Array,
    live: Array,
    tables: Ranking,
    buffers: tuple[Array, Array, Array],
) -> None:
    """Write equities in games of one hole card and at most one board card: after a street, before it, products."""
    after, before, changes = buffers
    players = rules[R_PLAYERS]
    boards = np.zeros(1, np.uint8)
    values = np.empty(players, np.int64)
    equities = np.empty(2 * players)
    for i in range(hole.shape[0]):
        taken = 0
        for p in range(players):
            taken |= 1 << int(hole[i, p, 0])
        card = -1
        for street in range(live.shape[1]):
            mask = live[i, street]
            if mask == 0:
                break
            if street > 0:
                _enumerate_card(rules, deck, hole[i], mask, card, tables, boards, values, before[i, street])
            if rules[R_BOARD + street] > 0:
                card_count = len(deck) - players
                for d in range(len(deck)):
                    if taken >> int(deck[d]) & 1 == 0:
                        _enumerate_card(rules, deck, hole[i], mask, int(deck[d]), tables, boards, values, equities)
                        _add_products(players, mask, equities, -1.0 / card_count, changes[i, street])
                card = int(board[i, 0])
                _enumerate_card(rules, deck, hole[i], mask, card, tables, boards, values, equities)
                _add_products(players, mask, equities, 1.0, changes[i, street])
            _enumerate_card(rules, deck, hole[i], mask, card, tables, boards, values, after[i, street])


# Hold'em with three players and more: random run-outs


class StreetBuffers(NamedTuple):
    """Arrays of `StreetEquities` that are filled, and the equities before each street."""

    equities: Array
    before: Array
    second_estimate: Array
    changes: Array
    """(hands, rounds, products)"""


class HandBuffers(NamedTuple):
    """A hand, and the arrays that its equities are computed in."""

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
def _add_shares(hand: HandBuffers, live: int, key: int, bits: int, tables: Ranking, out: Array) -> None:
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
def _add_strengths(hand: HandBuffers, live: int, other: int, out: Array) -> None:
    """Add the live players' points against one more hand's value."""
    players = len(hand.values)
    for p in range(players):
        if live >> p & 1:
            out[players + p] += pot_share(hand.values[p], other)


@kernel(leaf=True)
def _add_up_known(hand: HandBuffers, board_count: int, tables: Ranking) -> int:
    """Add up the players' cards with the first board cards; return how many cards are left in `hand.cards`."""
    add_up_hands(hand.hole, hand.board, board_count, tables, hand.totals, hand.ranks)
    taken = card_bits(hand.board, board_count)
    for p in range(len(hand.values)):
        taken |= card_bits(hand.hole[p], 2)
    return unseen(taken, hand.cards)


@kernel(leaf=True)
def _sample_equities(
    hand: HandBuffers, live: int, board_count: int, stream: Any, samples: int, tables: Ranking, out: Array
) -> None:
    """Estimate equity and strength of the live players by random run-outs, each with one random hand more."""
    players, cards = len(hand.values), hand.cards
    unseen_count = _add_up_known(hand, board_count, tables)
    missing = 5 - board_count
    out[:] = 0.0
    for _ in range(samples):
        stream = draw(stream, cards, unseen_count, missing + 2)
        key, bits = add_up(cards, missing, tables)
        _add_shares(hand, live, key, bits, tables, out)
        key, bits = add_up(cards, missing + 2, tables)
        _add_strengths(hand, live, set_value(hand.totals[players] + key, hand.ranks[players] | bits, tables), out)
    for i in range(2 * players):
        out[i] /= samples


@kernel(leaf=True)
def _enumerate_last_card(hand: HandBuffers, live: int, board_count: int, tables: Ranking, out: Array) -> None:
    """Overwrite the equities in `out` by the exact ones, with one board card or none to come."""
    players, cards = len(hand.values), hand.cards
    unseen_count = _add_up_known(hand, board_count, tables)
    out[:players] = 0.0
    if board_count == 5:
        _add_shares(hand, live, 0, 0, tables, out)
        return
    for k in range(unseen_count):
        _add_shares(hand, live, tables.keys[cards[k]], rank_bit(cards[k]), tables, out)
    for p in range(players):
        out[p] /= unseen_count


@kernel(leaf=True)
def _rough_equities(
    hand: HandBuffers, live: int, key: int, bits: int, count: int, last: bool, tables: Ranking, out: Array
) -> None:
    """Write equities and strengths after new cards, against the first `count` rivals that hold none of them.

    On the `last` street there is no run-out, and the equity is settled.
    """
    players, rivals = len(hand.values), hand.rivals
    out[:] = 0.0
    rival_count = 0
    if last:
        _add_shares(hand, live, key, bits, tables, out)
    for k in range(count):
        if rivals[k, 3] & bits:
            continue
        rival_count += 1
        if not last:
            _add_shares(hand, live, key + rivals[k, 0], bits | rivals[k, 1], tables, out)
        total = hand.totals[players] + key + rivals[k, 2]
        _add_strengths(hand, live, set_value(total, hand.ranks[players] | bits | rivals[k, 3], tables), out)
    for p in range(players):
        if rival_count > 0:
            out[players + p] /= rival_count
            out[p] /= 1 if last else rival_count
        elif live >> p & 1:
            out[players + p] = 0.5
            out[p] = out[p] if last else 1.0 / players


@kernel(leaf=True)
def _draw_rivals(hand: HandBuffers, unseen_count: int, missing: int, stream: Any, count: int, tables: Ranking) -> Any:
    """Draw run-outs of `missing` cards, each with one more hand."""
    cards, rivals = hand.cards, hand.rivals
    for k in range(count):
        stream = draw(stream, cards, unseen_count, missing + 2)
        rivals[k, 0], rivals[k, 1] = add_up(cards, missing, tables)
        rivals[k, 2], rivals[k, 3] = add_up(cards, missing + 2, tables)
    return stream


@kernel(leaf=True)
def _write_changes(
    hand: HandBuffers, live: int, street: int, stream: Any, rivals: int, tables: Ranking, equities: Array, out: Array
) -> None:
    """Write products of rough equities after a street, less their mean over the cards that could have come."""
    players, cards = len(hand.values), hand.cards
    board_before = 0 if street == 1 else 1 + street
    board_after = 2 + street
    unseen_count = _add_up_known(hand, board_before, tables)
    stream = _draw_rivals(hand, unseen_count, 5 - board_after, stream, rivals, tables)
    samples = FLOPS if street == 1 else unseen_count
    out[:] = 0.0
    # the cards that came (-1), then those that could have come: all meet the same rivals
    for k in range(-1, samples):
        if k >= 0 and street == 1:
            stream = draw(stream, cards, unseen_count, 3)
        new = hand.board[board_before:] if k < 0 else cards if street == 1 else cards[k:]
        key, bits = add_up(new, board_after - board_before, tables)
        _rough_equities(hand, live, key, bits, rivals, board_after == 5, tables, equities)
        _add_products(players, live, equities, 1.0 if k < 0 else -1.0 / samples, out)


@kernel
def _fill_street(
    hand: HandBuffers,
    live: Array,
    street: int,
    stream: Any,
    settings: Array,
    tables: Ranking,
    scratch: Array,
    buffers: StreetBuffers,
) -> None:
    """Write one street of one hand; `settings` are the run-outs and the rivals by street."""
    mask = live[street]
    board_count = 0 if street == 0 else 2 + street
    equities, before, second_estimate, changes = buffers
    if street > 0:
        if live[street - 1] == mask:
            # no player has folded since: the equity before this street is that of the street before
            before[street] = equities[street - 1]
        else:
            board_before = 0 if street == 1 else 1 + street
            # a stream of its own for each estimate: their noise must be independent
            estimate_stream = hash64(stream + np.uint64(1))
            _sample_equities(hand, mask, board_before, estimate_stream, settings[0, street], tables, before[street])
            if street == 3:
                _enumerate_last_card(hand, mask, board_before, tables, before[street])
        estimate_stream = hash64(stream + np.uint64(2))
        _write_changes(hand, mask, street, estimate_stream, settings[1, street], tables, scratch, changes[street])
    _sample_equities(hand, mask, board_count, stream, settings[0, street], tables, equities[street])
    if street >= 2:
        _enumerate_last_card(hand, mask, board_count, tables, equities[street])
        second_estimate[street] = equities[street]
    else:
        estimate_stream = hash64(stream + np.uint64(3))
        _sample_equities(hand, mask, board_count, estimate_stream, GUESS_SAMPLES, tables, second_estimate[street])


@kernel
def _fill_hands(
    hole: Array, board: Array, live: Array, streams: Array, settings: Array, tables: Ranking, buffers: StreetBuffers
) -> None:
    """Write the equities of hands; `live` is (hands, rounds), 0 where a street was not dealt."""
    players = hole.shape[1]
    cards, values = np.empty(52, np.uint8), np.empty(players, np.int64)
    totals, ranks = np.empty(players + 1, np.int64), np.empty(players + 1, np.int64)
    rivals, scratch = np.empty((settings[1].max(), 4), np.int64), np.empty(2 * players)
    for i in range(hole.shape[0]):
        hand = HandBuffers(hole[i], board[i], cards, totals, ranks, values, rivals)
        hand_buffers = StreetBuffers(
            buffers.equities[i], buffers.before[i], buffers.second_estimate[i], buffers.changes[i]
        )
        for street in range(live.shape[1]):
            if live[i, street] == 0:
                break
            # streams depend on the street alone, never on the betting: an estimate must not know what will be done
            stream = hash64(streams[i] + np.uint64(16 * street))
            _fill_street(hand, live[i], street, stream, settings, tables, scratch, hand_buffers)


def sampled_equities(hands: HandRecords, live: Array, buffers: StreetBuffers) -> None:
    """Fill `buffers` with the equities of the players of hold'em hands on every street, by random run-outs."""
    settings = np.stack([STREET_SAMPLES, RIVALS])
    _fill_hands(hands.hole, hands.board, live, hands.streams, settings, ranking(), buffers)


# All games


@cache
def _preflop_strengths() -> Array:
    """Return (52, 52) the strength of two cards before the flop."""
    by_class = preflop_rows().view(STRENGTH)["ehs"].reshape(-1) / FULL_STRENGTH
    strengths = np.zeros((52, 52))
    for first in range(52):
        for second in range(52):
            if first != second:
                strengths[first, second] = by_class[start_class(first, second)]
    return strengths


@kernel(leaf=True)
def _share_rows(deals: Array, hole: Array, board: Array, last: Array, rows: Array, deepest: Array) -> int:
    """Number the rows: hands side by side with the same cards share one, computed from the hand that went furthest.

    Writes each hand's row, and each row's hand to `deepest`; returns how many rows there are.
    """
    count = 0
    for i in range(len(deals)):
        is_same = i > 0 and deals[i] == deals[i - 1]
        if is_same:
            other = deepest[count - 1]
            for p in range(2):
                is_same = is_same and hole[i, p, 0] == hole[other, p, 0] and hole[i, p, 1] == hole[other, p, 1]
            street = min(last[i], last[other])
            for k in range(street + 2 if street > 0 else 0):
                is_same = is_same and board[i, k] == board[other, k]
        if not is_same:
            deepest[count] = i
            count += 1
        elif last[i] > last[deepest[count - 1]]:
            deepest[count - 1] = i
        rows[i] = count - 1
    return count


def _equities_by_deal(hands: HandRecords, live: Array) -> StreetEquities:
    """Return the equities of two hands of hold'em, once for all hands of a deal."""
    last = (live > 0).sum(axis=1) - 1
    rows, deepest = np.empty(len(hands), np.int64), np.empty(len(hands), np.int64)
    count = _share_rows(hands.deals, hands.hole, hands.board, last, rows, deepest)
    deepest = deepest[:count]
    first = np.searchsorted(rows, np.arange(count))  # its stream: which hand goes furthest depends on the play
    hole = np.ascontiguousarray(hands.hole[deepest])
    board = np.ascontiguousarray(hands.board[deepest])
    start = _preflop_strengths()[hole[:, :, 0], hole[:, :, 1]]
    equities, changes = headsup_equities(hole, board, last[deepest], hands.streams[first], start)
    shift = np.zeros((count, live.shape[1], 2))
    shift[:, 1:, 0] = changes[:, 1:, 0]
    shift[:, 1:, 1] = -changes[:, 1:, 0]
    return StreetEquities(rows, equities, equities, shift, changes)


def street_equities(hands: HandRecords, live: Array) -> StreetEquities:
    """Return the equities of the players of each hand on every street.

    Parameters: `live` (hands, rounds) int64, a bit for each player left when the street was dealt, 0 where it was not.
    """
    game, players = hands.game, hands.game.players
    if not is_adjustable(game):
        raise PipelineError(
            f"{game.name}: results are adjusted in hold'em and in games of one hole card and at most one board card"
        )
    if game.is_holdem and players == 2:
        return _equities_by_deal(hands, live)
    shape = (*live.shape, 2 * players)
    equities, before = np.zeros(shape), np.zeros(shape)
    changes = np.zeros((*live.shape, change_count(game)))
    linear = 2 * players - 1
    second_estimate = equities
    if game.is_holdem:
        second_estimate = np.zeros(shape)
        sampled_equities(hands, live, StreetBuffers(equities, before, second_estimate, changes[:, :, linear:]))
    else:
        buffers = equities, before, changes[:, :, linear:]
        enumerated_equities(game.rules, game.deck, hands.hole, hands.board, live, ranking(), buffers)
    change = np.where(live[:, :, None] > 0, equities - before, 0.0)
    change[:, 0] = 0.0
    changes[:, :, :linear] = np.delete(change, players - 1, axis=2)
    rows = np.arange(len(hands), dtype=np.int64)
    return StreetEquities(rows, equities, second_estimate, np.ascontiguousarray(change[:, :, :players]), changes)
