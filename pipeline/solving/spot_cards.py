"""The cards of a spot: the boards that may come, each player's holdings on them, and maps from street to street.

In go the open board and a weight for each of the 1,326 holdings of both players. Out comes a `BoardSet` per street: for
each board and player the holdings with a weight that the board leaves possible, on the river sorted by the value of the
hand, so that a showdown is one walk over two sorted lists.

Boards that differ only in the names of suits are solved once (suit isomorphism). A renaming of suits is a symmetry of a
board if it leaves the board and both ranges as they are; of cards that a symmetry carries into each other only the
lowest, the representative, is dealt. A deal of another card of its orbit is a map from holdings with that card open to
holdings with the representative open. The betting of earlier streets stays part of a board, so a turn and a river in
two orders are two boards.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.poker.cards import cards_text, rank_hands
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError

PAIRS = np.array([(high, low) for high in range(52) for low in range(high)], np.uint8)
"""(1326, 2) the cards of each holding, by `pair_index`"""


class BoardArrays(NamedTuple):
    """All boards of a street, for kernels; the holdings of player 0 on all boards stand before those of player 1."""

    start: Array
    """(2, boards + 1) int64: each board's first holding, by player, in the arrays below"""
    high: Array
    """(holdings,) uint8"""
    low: Array
    """(holdings,) uint8"""
    value: Array
    """(holdings,) uint16: value of the hand on the river, ascending; 0 before"""
    same: Array
    """(holdings,) int16: place of the same cards in the other player's list of this board, -1 if not there"""
    deals: Array
    """(boards + 1,) int32: the first of the deals that lead to a board from its parent, the identical one first"""
    parent: Array
    """(boards,) int32: the board of the street before"""
    maps_at: Array
    """(deals, 2) int64: where each player's map of a deal begins"""
    maps: Array
    """int16: by holding of the parent's list the place in this board's list, -1 if the card dealt is in it"""


class Child(NamedTuple):
    """Where a card leads: to a board, by a deal, with the suits renamed."""

    board: int
    deal: int
    order: tuple[int, ...]
    """the new name of each suit"""


@dataclass(frozen=True)
class BoardSet:
    """All boards of a street."""

    arrays: BoardArrays
    boards: list[tuple[int, ...]]
    symmetries: list[tuple[tuple[int, ...], ...]]
    """by board: the renamings of suits that change neither board nor ranges"""
    children: list[dict[int, Child]]
    """of the street before, by board: what each card leads to"""

    def holdings(self, player: int, board: int) -> Array:
        """Return the numbers of a player's holdings on a board, in the order of its list."""
        first, last = self.arrays.start[player, board : board + 2]
        high, low = self.arrays.high[first:last].astype(np.int64), self.arrays.low[first:last].astype(np.int64)
        return np.asarray(high * (high - 1) // 2 + low)

    def sizes(self, player: int) -> Array:
        """Return how many holdings a player has on each board."""
        return np.asarray(np.diff(self.arrays.start[player]))


def check_ranges(board: Array, ranges: Floats) -> float:
    """Return the total weight of pairs of holdings that can be dealt together; refuse a spot without any.

    Parameters: `ranges` (2, 1326); cards on the board are taken to be excluded already.
    """
    for player, name in enumerate(("out of position", "in position")):
        if not ranges[player].any():
            raise PipelineError(f"no holding of the player {name} is possible on {cards_text(board)}: widen the range")
    total = pair_weight(ranges[0], ranges[1])
    if total <= 0:
        raise PipelineError("the two ranges share a card in every pair of hands, so they cannot be dealt together")
    return total


def pair_weight(first: Floats, second: Floats) -> float:
    """Return the sum of products of weights over pairs of holdings without a common card."""
    by_card = [np.bincount(PAIRS.ravel(), np.repeat(weights, 2), minlength=52) for weights in (first, second)]
    total = first.sum() * second.sum() - (by_card[0] * by_card[1]).sum() + (first * second).sum()
    return float(total) if total > 1e-12 else 0.0


def without_board(weights: Floats, board: Array) -> Floats:
    """Return the weights with 0 for holdings that have a card of the board."""
    is_open = np.zeros(52, np.bool_)
    is_open[board] = True
    return np.where(is_open[PAIRS[:, 0]] | is_open[PAIRS[:, 1]], 0.0, weights)


def list_boards(board: Array, ranges: Floats, *, isomorphism: bool = True) -> list[BoardSet]:
    """Return the boards of the street of `board` and of all later ones.

    Parameters: `ranges` (2, 1326) weights without holdings that the board excludes.
    """
    cards = tuple(int(card) for card in board)
    symmetries = _symmetries(cards, ranges) if isomorphism else ((0, 1, 2, 3),)
    root = _board_set([cards], [symmetries], ranges, None, [], [])
    sets = [root]
    while len(sets[-1].boards[0]) < 5:
        sets.append(_next_street(sets[-1], ranges))
    return sets


def _rename(order: tuple[int, ...]) -> Array:
    """Return the number of each holding when its suits are renamed."""
    cards = (PAIRS >> 2 << 2) + np.array(order, np.uint8)[PAIRS & 3]
    high, low = cards.max(axis=1).astype(np.int64), cards.min(axis=1).astype(np.int64)
    return np.asarray(high * (high - 1) // 2 + low)


def renamed(card: int, order: tuple[int, ...]) -> int:
    """Return a card whose suit has another name."""
    return card // 4 * 4 + order[card % 4]


def _symmetries(board: tuple[int, ...], ranges: Floats) -> tuple[tuple[int, ...], ...]:
    """Return the renamings of suits that change neither a board nor the ranges, the identity first."""
    return tuple(
        order
        for order in itertools.permutations(range(4))
        if {renamed(card, order) for card in board} == set(board)
        and all(np.array_equal(weights[_rename(order)], weights) for weights in ranges)
    )


def _next_street(before: BoardSet, ranges: Floats) -> BoardSet:
    """Return the boards with a card more: a representative of each orbit, and the deals that lead to it."""
    boards: list[tuple[int, ...]] = []
    symmetries, parents = [], []
    deals: list[list[tuple[int, tuple[int, ...]]]] = []
    for number, board in enumerate(before.boards):
        for card in range(52):
            orders = before.symmetries[number]
            if card in board or min(renamed(card, order) for order in orders) < card:
                continue
            boards.append((*board, card))
            symmetries.append(tuple(order for order in orders if renamed(card, order) == card))
            parents.append(number)
            orbit: dict[int, tuple[int, ...]] = {}
            for order in orders:  # each card of the orbit, with a renaming that carries it to the representative
                inverse = tuple(order.index(suit) for suit in range(4))
                orbit.setdefault(renamed(card, order), inverse)
            deals.append(sorted(orbit.items(), key=lambda item: (item[0] != card, item[0])))
    return _board_set(boards, symmetries, ranges, before, parents, deals)


def _board_set(
    boards: list[tuple[int, ...]],
    symmetries: list[tuple[tuple[int, ...], ...]],
    ranges: Floats,
    before: BoardSet | None,
    parents: list[int],
    deals: list[list[tuple[int, tuple[int, ...]]]],
) -> BoardSet:
    """Write the arrays of a street."""
    lists = [[_sorted_holdings(weights, board) for board in boards] for weights in ranges]
    starts = np.zeros((2, len(boards) + 1), np.int64)
    for player in range(2):
        starts[player, 1:] = np.cumsum([len(numbers) for numbers, _ in lists[player]])
    starts[1] += starts[0, -1]
    numbers = np.concatenate([numbers for own in lists for numbers, _ in own])
    values = np.concatenate([values for own in lists for _, values in own])
    same = []
    for player in range(2):
        for board in range(len(boards)):
            place = _places(lists[1 - player][board][0])
            same.append(place[lists[player][board][0]])
    first_deal, maps, size = [0], [], 0
    maps_at: list[list[int]] = []
    children: list[dict[int, Child]] = [{} for _ in (before.boards if before else [])]
    for board, parent in enumerate(parents):
        assert before is not None
        for card, order in deals[board]:
            children[parent][card] = Child(board, len(maps_at), order)
            places = []
            for player in range(2):
                own = before.holdings(player, parent)
                has_card = (PAIRS[own, 0] == card) | (PAIRS[own, 1] == card)
                targets = np.where(has_card, -1, _places(lists[player][board][0])[_rename(order)[own]])
                places.append(size)
                size += len(own)
                maps.append(targets.astype(np.int16))
            maps_at.append(places)
        first_deal.append(len(maps_at))
    arrays = BoardArrays(
        start=starts,
        high=np.ascontiguousarray(PAIRS[numbers, 0]),
        low=np.ascontiguousarray(PAIRS[numbers, 1]),
        value=values.astype(np.uint16),
        same=np.concatenate(same).astype(np.int16),
        deals=np.array(first_deal, np.int32),
        parent=np.array(parents or [0], np.int32),
        maps_at=np.array(maps_at or [[0, 0]], np.int64),
        maps=np.concatenate(maps) if maps else np.zeros(1, np.int16),
    )
    return BoardSet(arrays, boards, symmetries, children)


def _sorted_holdings(weights: Floats, board: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the holdings that a board leaves possible and their values, ascending by value, then by number."""
    numbers = np.flatnonzero(without_board(weights, np.array(board)))
    if len(board) < 5:
        return numbers, np.zeros(len(numbers), np.uint16)
    full = np.broadcast_to(np.array(board, np.uint8), (len(numbers), 5))
    values = rank_hands(np.concatenate([PAIRS[numbers], full], axis=1))
    order = np.argsort(values, kind="stable")
    return numbers[order], values[order]


def _places(numbers: Array) -> Array:
    """Return the place of each of the 1,326 holdings in a list, -1 if it is not there."""
    places = np.full(len(PAIRS), -1, np.int64)
    places[numbers] = np.arange(len(numbers))
    return places
