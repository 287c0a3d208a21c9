"""Likelihoods of finished hands under known opponents, and estimates of what other strategies would have won.

In: finished hands as one of their two players saw them (the other's cards only where a showdown showed them), sketches
of opponents and of the own strategies (see `groups`), and which of these was played. Out, for every hand:

- the likelihood of the opponent's actions under each known opponent. Cards that were shown count as they are; hidden
  ones are summed out over all hands that the opponent could have held;
- what each own strategy would have won there, an estimate that is right on average but for two approximations. The
  betting that happened would also have come about with other own cards, so the estimate takes all own hands that could
  have been held, weighed by how likely the strategy would have bet so with each, divided by the same sum for the
  strategy that was played (importance sampling; the "imaginary observations" of Bowling, Johanson, Burch and Szafron,
  2008). Hands that would have been folded at an earlier decision are counted with what folding there costs, whatever
  was done.

The approximations: importance weights over `MAX_WEIGHT` are clipped, and where the opponent's cards stay hidden, own
hands are imagined as if these cards could be anything. Clipping takes variance away and brings a bias towards 0: what a
strategy wins or loses where it bets as the one that was played hardly ever does is counted too small, and the mean
weight falls below 1 by as much, which tells how much is missing. Unclipped (`max_weight` infinite), and with all cards
shown, the estimate is unbiased wherever the strategy that was played may go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.cards import NO_CARD, Ranking, ranking, start_class
from pipeline.poker.showdown import ranks_value
from pipeline.poker.strength.boards import canonical, holding
from pipeline.poker.strength.win_counts import count_below, rank_holdings, sort_holdings
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.solving.buckets import Buckets
from pipeline.solving.groups import SPREADS, HandGroups
from pipeline.solving.layout import SHOWDOWN, T_ACTOR, T_CHIPS, T_FOLD, T_ROUND, T_SLOT, Layout, LayoutTables

SCALE = 250
"""a probability is stored as a whole number from 0 to this"""
MAX_WEIGHT = 20.0
"""the largest importance weight of a hand: rare betting must not decide alone"""


class ObservedHands(NamedTuple):
    """Finished hands as one of their players saw them."""

    position: Array
    """(hands,) uint8: where the player sat"""
    labels: Array
    """(hands, actions) uint8: label + 1, 0 beyond the last"""
    hole: Array
    """(hands, 2, 2) uint8: NO_CARD where not shown"""
    board: Array
    """(hands, 5) uint8: NO_CARD where not dealt"""

    @classmethod
    def of(cls, hands: Any) -> ObservedHands:
        """Take these fields of hands that have more, in the one form that the kernels are compiled for."""
        return cls(*(np.ascontiguousarray(getattr(hands, field), np.uint8) for field in cls._fields))


class SketchCards(NamedTuple):
    """The tables by which kernels find a hand's row in a sketch."""

    small: int
    """ranks of a game with one hole card; 0 in hold'em"""
    deck: Array
    groups: Buckets
    """tables of groups of hands, of which `SPREADS` in a row are a band"""


class HandScratch(NamedTuple):
    """Buffers for one hand, an entry for each pair of cards that somebody could hold."""

    cards: Array
    """(pairs, 2)"""
    bands: Array
    """(streets, pairs)"""
    values: Array
    """(pairs,) at the showdown"""
    strengths: Array
    """(pairs,) the strength of each pair on the river"""
    items: Array
    """for sorting, as is `spare`"""
    spare: Array
    own: Array
    """(pairs, strategies): how likely each strategy would have bet so"""
    other: Array
    """(pairs, opponents)"""
    paid: Array
    """(pairs, strategies): in parts of what a fold costs or a showdown is about"""
    sums: Array
    """(strategies, 2): of `own`, and of what it pays"""


@kernel(leaf=True)
def _deal_small(board: Array, cards: SketchCards, scratch: HandScratch) -> int:
    """Write the single cards of a small game to the buffers; return how many there are."""
    count, lowest = 0, int(cards.deck[0]) >> 2
    for card in cards.deck:
        if card == board[0]:
            continue
        rank = (int(card) >> 2) - lowest
        scratch.cards[count, 0] = card
        scratch.cards[count, 1] = NO_CARD
        scratch.bands[0, count] = rank
        if board[0] == NO_CARD:
            scratch.values[count] = ranks_value(rank, 1)
        else:
            board_rank = (int(board[0]) >> 2) - lowest
            scratch.bands[1, count] = board_rank * cards.small + rank
            scratch.values[count] = ranks_value(rank | board_rank << 4, 2)
        count += 1
    return count


@kernel
def _deal_holdem(board: Array, cards: SketchCards, ranks: Ranking, scratch: HandScratch) -> int:
    """Write all pairs of cards that do not lie open to the buffers; return how many there are."""
    tables = cards.groups
    open_cards = 0
    while open_cards < 5 and board[open_cards] != NO_CARD:
        open_cards += 1
    deck = np.empty(52, np.uint8)
    free_cards = 0
    for card in range(52):
        unseen = True
        for k in range(open_cards):
            unseen = unseen and card != board[k]
        if unseen:
            deck[free_cards] = card
            free_cards += 1
    flop, names = canonical(board, 3, tables.flop_boards) if open_cards >= 3 else (0, 0)
    turn, far_names = canonical(board, 4, tables.turn_boards) if open_cards >= 4 else (0, 0)
    count = 0
    for high in range(1, free_cards):
        for low in range(high):
            first, second = int(deck[high]), int(deck[low])
            scratch.cards[count, 0], scratch.cards[count, 1] = first, second
            scratch.bands[0, count] = start_class(first, second)
            if open_cards >= 3:
                place = int(flop) * 1176 + holding(first, second, board, 3, int(names))
                scratch.bands[1, count] = tables.flop[place] // SPREADS
            if open_cards >= 4:
                place = int(turn) * 1128 + holding(first, second, board, 4, int(far_names))
                scratch.bands[2, count] = tables.turn[place] // SPREADS
            count += 1
    # all pairs are ranked and sorted once for a board: every strategy and opponent looks the same values up
    if open_cards == 5:
        rank_holdings(board, 5, ranks, deck, scratch.values)
        sort_holdings(scratch.values, free_cards, scratch.items, scratch.spare)
        count_below(scratch.items, free_cards, scratch.strengths)
        for pair in range(count):
            scratch.bands[3, pair] = tables.steps[scratch.strengths[pair]] // SPREADS
    return count


@kernel(leaf=True)
def _share_card(cards: Array, other: Array) -> bool:
    """Return whether two holdings share a card."""
    for k in range(2):
        for j in range(2):
            if cards[k] != NO_CARD and cards[k] == other[j]:
                return True
    return False


@kernel(leaf=True)
def _same_cards(cards: Array, other: Array) -> bool:
    """Return whether two holdings are the same, in either order."""
    if cards[0] == other[0] and cards[1] == other[1]:
        return True
    return bool(cards[0] == other[1] and cards[1] == other[0])


@kernel(leaf=True)
def _add_up(count: int, unit: float, paid: Array, by_strategy: bool, scratch: HandScratch) -> None:
    """Sum over all own hands, by strategy: how likely it would have bet so, and the same times what that pays.

    `paid` is by hand and strategy, or by hand alone where not `by_strategy`; in parts of `unit`.
    """
    sums, strategies = scratch.sums, scratch.own.shape[1]
    sums[:] = 0.0
    for h in range(count):
        for s in range(strategies):
            weight = scratch.own[h, s]
            sums[s, 0] += weight
            sums[s, 1] += weight * paid[h, s if by_strategy else 0] * unit


@kernel(leaf=True)
def _evaluate_hand(
    i: int,
    hands: ObservedHands,
    count: int,
    layout: LayoutTables,
    opponents: Array,
    members: Array,
    playing: int,
    scratch: HandScratch,
    likelihood: Array,
    worth: Array,
    max_weight: float,
) -> None:
    """Follow one hand's betting; fills `likelihood` (opponents,) and adds to `worth` (strategies, 2)."""
    me = int(hands.position[i])
    their_cards, own_cards = hands.hole[i, 1 - me], hands.hole[i, me]
    cards_shown = their_cards[0] != NO_CARD
    strategies, opponent_count = members.shape[2], opponents.shape[2]
    paid = scratch.paid
    # hands that clash with cards that are seen weigh nothing; the rest start alike and are weighed action by action
    for h in range(count):
        scratch.own[h] = 0.0 if cards_shown and _share_card(scratch.cards[h], their_cards) else 1.0
        scratch.other[h] = 0.0 if _share_card(scratch.cards[h], own_cards) else 1.0
    node = 0
    for k in range(hands.labels.shape[1]):
        if hands.labels[i, k] == 0:
            break
        action, actor, street = int(hands.labels[i, k]) - 1, layout.tree[node, T_ACTOR], layout.tree[node, T_ROUND]
        first, step = layout.offsets[street, actor] + layout.tree[node, T_SLOT], layout.counts[street, actor]
        if actor == me:
            # what a fold here costs is known without the cards, so each own decision tells of all strategies that
            # would have ended the hand at it, whatever was done
            folded = layout.tree[node, T_FOLD]
            if folded >= 0:
                for h in range(count):
                    row = first + scratch.bands[street, h] * step
                    for s in range(strategies):
                        paid[h, s] = members[row, 0, s]
                chips = (1.0 if me == 0 else -1.0) * layout.tree[folded, T_CHIPS]
                _add_up(count, 1 / SCALE, paid, True, scratch)
                _settle(playing, chips, True, scratch, worth, max_weight)
            for h in range(count):
                row = first + scratch.bands[street, h] * step
                for s in range(strategies):
                    scratch.own[h, s] *= members[row, action, s] * np.float32(1 / SCALE)
        else:
            for h in range(count):
                row = first + scratch.bands[street, h] * step
                for t in range(opponent_count):
                    scratch.other[h, t] *= opponents[row, action, t] * np.float32(1 / SCALE)
        node = layout.tree[node, T_FOLD + action]
    _finish(node, me, count, layout, their_cards, cards_shown, playing, scratch, worth, max_weight)
    _likelihoods(count, their_cards, own_cards, cards_shown, scratch, likelihood)


@kernel(leaf=True)
def _settle(playing: int, chips: float, folds: bool, scratch: HandScratch, worth: Array, max_weight: float) -> None:
    """Add what each strategy would have been paid, by how often it would have come there, and how often that is."""
    reached = scratch.sums[playing, 0]
    if reached <= 0.0:
        return
    for s in range(worth.shape[0]):
        if scratch.sums[s, 0] > 0.0:
            # importance weight: how much likelier the strategy makes this betting than the one that was played, both
            # summed over all own hands, which varies far less than the ratio at the hand that was really held
            weight = min(scratch.sums[s, 0] / reached, max_weight)
            share = weight * scratch.sums[s, 1] / scratch.sums[s, 0]
            worth[s, 0] += share * chips
            worth[s, 1] += share if folds else weight


@kernel(leaf=True)
def _finish(
    node: int,
    me: int,
    count: int,
    layout: LayoutTables,
    their_cards: Array,
    cards_shown: bool,
    playing: int,
    scratch: HandScratch,
    worth: Array,
    max_weight: float,
) -> None:
    """Add what the end of a hand pays with every own hand; an own fold has been counted at its decision."""
    side = 1.0 if me == 0 else -1.0
    paid, chips = scratch.paid, float(layout.tree[node, T_CHIPS])
    if layout.tree[node, T_ACTOR] == SHOWDOWN:
        if not cards_shown:  # it is unknown who would have won
            return
        value = 0
        for h in range(count):
            if _same_cards(scratch.cards[h], their_cards):
                value = scratch.values[h]
        for h in range(count):
            paid[h, 0] = 1.0 if scratch.values[h] > value else 0.0 if scratch.values[h] == value else -1.0
        side = 1.0
    elif side * chips > 0:
        for h in range(count):
            paid[h, 0] = 1.0
    else:
        return
    _add_up(count, 1.0, paid, False, scratch)
    _settle(playing, side * chips, False, scratch, worth, max_weight)


@kernel(leaf=True)
def _likelihoods(
    count: int, their_cards: Array, own_cards: Array, cards_shown: bool, scratch: HandScratch, likelihood: Array
) -> None:
    """Write how likely each known opponent would have acted so: with the cards shown, else averaged over its hands."""
    opponent_count = likelihood.shape[0]
    possible = 0
    likelihood[:] = 0.0
    for h in range(count):
        cards = scratch.cards[h]
        if _same_cards(cards, their_cards) if cards_shown else not _share_card(cards, own_cards):
            possible += 1
            for t in range(opponent_count):
                likelihood[t] += scratch.other[h, t]
    for t in range(opponent_count):
        likelihood[t] /= max(possible, 1)


@kernel
def _evaluate_all(
    hands: ObservedHands,
    cards: SketchCards,
    ranks: Ranking,
    layout: LayoutTables,
    opponents: Array,
    members: Array,
    playing: int,
    likelihood: Array,
    worth: Array,
    max_weight: float,
) -> None:
    """Fill every hand's likelihoods (hands, opponents), and `worth` (hands, strategies, 2)."""
    pairs = 1326
    scratch = HandScratch(
        np.empty((pairs, 2), np.uint8),
        np.empty((4, pairs), np.int64),
        np.empty(pairs, np.int64),
        np.empty(pairs, np.uint16),
        np.empty(pairs, np.uint32),
        np.empty(pairs, np.uint32),
        np.empty((pairs, members.shape[2]), np.float32),
        np.empty((pairs, opponents.shape[2]), np.float32),
        np.empty((pairs, members.shape[2]), np.float32),
        np.empty((members.shape[2], 2), np.float64),
    )
    for i in range(len(hands.position)):
        if cards.small > 0:
            count = _deal_small(hands.board[i], cards, scratch)
        else:
            count = _deal_holdem(hands.board[i], cards, ranks, scratch)
        _evaluate_hand(
            i, hands, count, layout, opponents, members, playing, scratch, likelihood[i], worth[i], max_weight
        )


def pack_sketches(sketches: list[Array]) -> Array:
    """Put sketches (rows, 3) side by side as kernels read them: (rows, 3, sketches) uint8 of `SCALE` parts."""
    out = np.empty((*sketches[0].shape, len(sketches)), np.uint8)
    for number, sketch in enumerate(sketches):
        out[:, :, number] = np.rint(sketch * SCALE)
    return out


def holdem_cards(groups: HandGroups) -> SketchCards:
    """Return the tables by which a hold'em hand finds its row in sketches over the bands."""
    return SketchCards(0, groups.stored.layout.game.deck, groups.grouped)


def small_cards(layout: Layout) -> SketchCards:
    """Return the tables by which a hand of a small game finds its row in sketches."""
    words, boards = np.empty(0, np.uint16), np.empty(0, np.uint32)
    return SketchCards(layout.game.ranks, layout.game.deck, Buckets(boards, boards, boards, words, words, words, words))


@dataclass(frozen=True)
class HindsightEstimator:
    """An estimator over finished hands, with sketches of the known opponents and of the own strategies."""

    layout: Layout
    cards: SketchCards
    opponents: Array
    """(rows, 3, opponents) uint8, see `pack_sketches`"""
    members: Array
    """(rows, 3, strategies) uint8"""
    max_weight: float = MAX_WEIGHT
    """larger importance weights are clipped to this"""

    def estimate(self, hands: ObservedHands, playing: int) -> tuple[Array, Array, Array]:
        """Estimate likelihoods and winnings over hands that were played by the strategy number `playing`.

        Returns (hands, opponents) likelihoods; (hands, strategies) the chips that each strategy would have won; and
        (hands, strategies) how often it would have come where these hands went: on average 1, unless weights were
        clipped or it does what the strategy that was played never does, about which the hands say nothing.
        """
        count = len(hands.position)
        likelihood = np.zeros((count, self.opponents.shape[2]))
        worth = np.zeros((count, self.members.shape[2], 2))
        _evaluate_all(
            *(hands, self.cards, ranking(), self.layout.tables, self.opponents, self.members, playing),
            *(likelihood, worth, float(self.max_weight)),
        )
        return likelihood, worth[:, :, 0], worth[:, :, 1]
