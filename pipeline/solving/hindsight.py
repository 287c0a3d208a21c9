"""What finished hands say: how likely known opponents would have played so, and what other strategies would have won.

In: finished hands as one of their two players saw them (the other's cards only where a showdown showed them), sketches
of opponents and of the own strategies (see `coarse_hands`), and which of these was played. Out, for every hand:

- the likelihood of the opponent's actions under each known opponent. Cards that were shown count as they are; hidden
  ones are summed out over all hands that the opponent could have held;
- what each own strategy would have won there, an estimate that is right on average. The betting that happened would
  also have come about with other own cards, so the estimate takes all own hands that could have been held, weighed by
  how likely the strategy would have bet so with each, divided by the same sum for the strategy that was played
  (importance sampling; the "imaginary observations" of Bowling, Johanson, Burch and Szafron, 2008). Hands that would
  have been folded at an earlier decision are counted with what folding there costs, whatever was done.

Where the opponent's cards stay hidden, own hands are imagined as if these cards could be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.poker.cards import NO_CARD, Ranking, ranking, start_class
from pipeline.poker.showdown import ranks_value
from pipeline.poker.strength.boards import canonical, holding
from pipeline.poker.strength.win_counts import count_below, rank_holdings, sort_holdings
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.solving.buckets import Buckets, river_steps
from pipeline.solving.coarse_hands import BANDS, SPREADS, Groups
from pipeline.solving.layout import SHOWDOWN, T_ACTOR, T_CHIPS, T_FOLD, T_ROUND, T_SLOT, Layout

SCALE = 250
"""a probability is kept as a number of so many parts"""
MOST_WEIGHT = 20.0
"""a hand counts at most so often: rare betting must not decide alone"""


class Hands(NamedTuple):
    """Finished hands as one of their players saw them."""

    position: Array
    """(hands,) uint8: where the player sat"""
    labels: Array
    """(hands, actions) uint8: label + 1, 0 beyond the last"""
    hole: Array
    """(hands, 2, 2) uint8: NO_CARD where not shown"""
    board: Array
    """(hands, 5) uint8: NO_CARD where not dealt"""


class Cards(NamedTuple):
    """What the kernels read to find a hand's row in a sketch."""

    small: int
    """ranks of a game with one hole card; 0 in hold'em"""
    deck: Array
    tables: Buckets
    near: Array
    """(flop buckets,) band"""
    far: Array
    """(turn buckets,) band"""
    river: Array
    """(65536,) band of a strength"""


class Tree(NamedTuple):
    """The layout of sketches as the kernels read it."""

    tree: Array
    offsets: Array
    counts: Array


class Room(NamedTuple):
    """Room for one hand: what is known of each pair of cards that somebody could hold."""

    cards: Array
    """(pairs, 2)"""
    bands: Array
    """(streets, pairs)"""
    values: Array
    """(pairs,) at the showdown"""
    words: Array
    """(pairs,) the strength of each pair on the river"""
    items: Array
    """room for sorting, as is `spare`"""
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
def _deal_small(board: Array, cards: Cards, room: Room) -> int:
    """Fill the room with the single cards of a small game; returns how many there are."""
    count, lowest = 0, int(cards.deck[0]) >> 2
    for card in cards.deck:
        if card == board[0]:
            continue
        rank = (int(card) >> 2) - lowest
        room.cards[count, 0] = card
        room.cards[count, 1] = NO_CARD
        room.bands[0, count] = rank
        if board[0] == NO_CARD:
            room.values[count] = ranks_value(rank, 1)
        else:
            shown = (int(board[0]) >> 2) - lowest
            room.bands[1, count] = shown * cards.small + rank
            room.values[count] = ranks_value(rank | shown << 4, 2)
        count += 1
    return count


@kernel
def _deal_holdem(board: Array, cards: Cards, ranks: Ranking, room: Room) -> int:
    """Fill the room with all pairs of cards that do not lie open; returns how many there are."""
    tables = cards.tables
    shown = 0
    while shown < 5 and board[shown] != NO_CARD:
        shown += 1
    deck = np.empty(52, np.uint8)
    left = 0
    for card in range(52):
        free = True
        for k in range(shown):
            free = free and card != board[k]
        if free:
            deck[left] = card
            left += 1
    flop, names = canonical(board, 3, tables.flop_boards) if shown >= 3 else (0, 0)
    turn, far_names = canonical(board, 4, tables.turn_boards) if shown >= 4 else (0, 0)
    count = 0
    for high in range(1, left):
        for low in range(high):
            first, second = int(deck[high]), int(deck[low])
            room.cards[count, 0], room.cards[count, 1] = first, second
            room.bands[0, count] = start_class(first, second)
            if shown >= 3:
                place = int(flop) * 1176 + holding(first, second, board, 3, int(names))
                room.bands[1, count] = cards.near[tables.flop[place]]
            if shown >= 4:
                place = int(turn) * 1128 + holding(first, second, board, 4, int(far_names))
                room.bands[2, count] = cards.far[tables.turn[place]]
            count += 1
    if shown == 5:
        rank_holdings(board, 5, ranks, deck, room.values)
        sort_holdings(room.values, left, room.items, room.spare)
        count_below(room.items, left, room.words)
        for pair in range(count):
            room.bands[3, pair] = cards.river[room.words[pair]]
    return count


@kernel(leaf=True)
def _meets(cards: Array, other: Array) -> bool:
    """Whether two holdings share a card."""
    for k in range(2):
        for j in range(2):
            if cards[k] != NO_CARD and cards[k] == other[j]:
                return True
    return False


@kernel(leaf=True)
def _add_up(count: int, unit: float, paid: Array, each: bool, room: Room) -> None:
    """Sum over all own hands, by strategy: how likely it would have bet so, and the same times what that pays.

    `paid` is by hand and strategy, or by hand alone where not `each`; in parts of `unit`.
    """
    sums, strategies = room.sums, room.own.shape[1]
    sums[:] = 0.0
    for h in range(count):
        for s in range(strategies):
            weight = room.own[h, s]
            sums[s, 0] += weight
            sums[s, 1] += weight * paid[h, s if each else 0] * unit


@kernel(leaf=True)
def _judge_one(
    i: int,
    hands: Hands,
    count: int,
    tree: Tree,
    opponents: Array,
    members: Array,
    playing: int,
    room: Room,
    likelihood: Array,
    worth: Array,
) -> None:
    """Follow one hand's betting; fills `likelihood` (opponents,) and adds to `worth` (strategies, 2)."""
    me = int(hands.position[i])
    theirs, mine = hands.hole[i, 1 - me], hands.hole[i, me]
    shown = theirs[0] != NO_CARD
    strategies, known = members.shape[2], opponents.shape[2]
    paid = room.paid
    for h in range(count):
        room.own[h] = 0.0 if shown and _meets(room.cards[h], theirs) else 1.0
        room.other[h] = 0.0 if _meets(room.cards[h], mine) else 1.0
    node = 0
    for k in range(hands.labels.shape[1]):
        if hands.labels[i, k] == 0:
            break
        action, actor, street = int(hands.labels[i, k]) - 1, tree.tree[node, T_ACTOR], tree.tree[node, T_ROUND]
        first, step = tree.offsets[street, actor] + tree.tree[node, T_SLOT], tree.counts[street, actor]
        if actor == me:
            folded = tree.tree[node, T_FOLD]
            if folded >= 0:
                for h in range(count):
                    row = first + room.bands[street, h] * step
                    for s in range(strategies):
                        paid[h, s] = members[row, 0, s]
                chips = (1.0 if me == 0 else -1.0) * tree.tree[folded, T_CHIPS]
                _add_up(count, 1 / SCALE, paid, True, room)
                _settle(playing, chips, True, room, worth)
            for h in range(count):
                row = first + room.bands[street, h] * step
                for s in range(strategies):
                    room.own[h, s] *= members[row, action, s] * np.float32(1 / SCALE)
        else:
            for h in range(count):
                row = first + room.bands[street, h] * step
                for t in range(known):
                    room.other[h, t] *= opponents[row, action, t] * np.float32(1 / SCALE)
        node = tree.tree[node, T_FOLD + action]
    _finish(node, me, count, tree, theirs, shown, playing, room, worth)
    _likelihoods(count, theirs, mine, shown, room, likelihood)


@kernel(leaf=True)
def _settle(playing: int, chips: float, folds: bool, room: Room, worth: Array) -> None:
    """Add what each strategy would have been paid, by how often it would have come there, and how often that is."""
    reached = room.sums[playing, 0]
    if reached <= 0.0:
        return
    for s in range(worth.shape[0]):
        if room.sums[s, 0] > 0.0:
            weight = min(room.sums[s, 0] / reached, MOST_WEIGHT)
            share = weight * room.sums[s, 1] / room.sums[s, 0]
            worth[s, 0] += share * chips
            worth[s, 1] += share if folds else weight


@kernel(leaf=True)
def _finish(
    node: int,
    me: int,
    count: int,
    tree: Tree,
    theirs: Array,
    shown: bool,
    playing: int,
    room: Room,
    worth: Array,
) -> None:
    """Add what the end of a hand pays with every own hand; an own fold has been counted at its decision."""
    side = 1.0 if me == 0 else -1.0
    paid, chips = room.paid, float(tree.tree[node, T_CHIPS])
    if tree.tree[node, T_ACTOR] == SHOWDOWN:
        if not shown:
            return
        value = 0
        for h in range(count):
            if room.cards[h, 0] == theirs[0] and room.cards[h, 1] == theirs[1]:
                value = room.values[h]
            if room.cards[h, 0] == theirs[1] and room.cards[h, 1] == theirs[0]:
                value = room.values[h]
        for h in range(count):
            paid[h, 0] = 1.0 if room.values[h] > value else 0.0 if room.values[h] == value else -1.0
        side = 1.0
    elif side * chips > 0:
        for h in range(count):
            paid[h, 0] = 1.0
    else:
        return
    _add_up(count, 1.0, paid, False, room)
    _settle(playing, side * chips, False, room, worth)


@kernel(leaf=True)
def _likelihoods(count: int, theirs: Array, mine: Array, shown: bool, room: Room, likelihood: Array) -> None:
    """How likely each known opponent would have acted so: with the cards shown, else on average over its hands."""
    known = likelihood.shape[0]
    possible = 0
    likelihood[:] = 0.0
    for h in range(count):
        same = room.cards[h, 0] == theirs[0] and room.cards[h, 1] == theirs[1]
        same = same or (room.cards[h, 0] == theirs[1] and room.cards[h, 1] == theirs[0])
        if same if shown else not _meets(room.cards[h], mine):
            possible += 1
            for t in range(known):
                likelihood[t] += room.other[h, t]
    for t in range(known):
        likelihood[t] /= max(possible, 1)


@kernel
def _judge_all(
    hands: Hands,
    cards: Cards,
    ranks: Ranking,
    tree: Tree,
    opponents: Array,
    members: Array,
    playing: int,
    likelihood: Array,
    worth: Array,
) -> None:
    """Fill every hand's likelihoods (hands, opponents), and `worth` (hands, strategies, 2)."""
    pairs = 1326
    room = Room(
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
            count = _deal_small(hands.board[i], cards, room)
        else:
            count = _deal_holdem(hands.board[i], cards, ranks, room)
        _judge_one(i, hands, count, tree, opponents, members, playing, room, likelihood[i], worth[i])


def pack(sketches: list[Array]) -> Array:
    """Sketches (rows, 3) side by side as the kernels read them: (rows, 3, sketches) uint8 of `SCALE` parts."""
    out = np.empty((*sketches[0].shape, len(sketches)), np.uint8)
    for number, sketch in enumerate(sketches):
        out[:, :, number] = np.rint(sketch * SCALE)
    return out


def holdem_cards(groups: Groups) -> Cards:
    """How a hold'em hand finds its row in sketches over the bands."""
    near, far = (np.asarray(numbers // SPREADS, np.uint8) for numbers in (groups.flop, groups.turn))
    return Cards(0, groups.stored.layout.game.deck, groups.tables, near, far, river_steps(BANDS).astype(np.uint8))


def small_cards(layout: Layout) -> Cards:
    """How a hand of a small game finds its row in sketches."""
    words, boards, none = np.empty(0, np.uint16), np.empty(0, np.uint32), np.empty(0, np.uint8)
    tables = Buckets(boards, boards, boards, words, words, words, words)
    return Cards(layout.game.ranks, layout.game.deck, tables, none, none, none)


@dataclass(frozen=True)
class Judge:
    """Judges finished hands by sketches of the opponents that are known and of the strategies at hand."""

    layout: Layout
    cards: Cards
    opponents: Array
    """(rows, 3, opponents) uint8, see `pack`"""
    members: Array
    """(rows, 3, strategies) uint8"""

    def judge(self, hands: Hands, playing: int) -> tuple[Array, Array, Array]:
        """What hands say that were played by the strategy number `playing`.

        Returns (hands, opponents) likelihoods; (hands, strategies) the chips that each strategy would have won; and
        (hands, strategies) how often it would have come where these hands went: on average 1, unless it does what the
        strategy that was played never does, about which the hands say nothing.
        """
        count = len(hands.position)
        likelihood = np.zeros((count, self.opponents.shape[2]))
        worth = np.zeros((count, self.members.shape[2], 2))
        tree = Tree(self.layout.tree, self.layout.offsets, self.layout.counts)
        _judge_all(hands, self.cards, ranking(), tree, self.opponents, self.members, playing, likelihood, worth)
        return likelihood, worth[:, :, 0], worth[:, :, 1]
