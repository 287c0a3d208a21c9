"""Spots once more: slowly, plainly and without a line of `pipeline`, to be compared with the solver.

A spot's betting is walked by recursion, hands are compared pair by pair with another evaluator, every card is dealt and
no symmetry is used. `value_by_linear_program` solves the sequence form (Koller, Megiddo and von Stengel 1994);
`response_value` is what a player can have at best against a strategy. Values are shares of the pot less a half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from phevaluator import evaluate_cards
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, vstack

DECK = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
Strategy = Callable[[str, tuple[str, ...]], Any]
"""called with the line and the cards dealt: (holdings, actions) probabilities"""


class Place(NamedTuple):
    """A public state."""

    line: str = ""
    dealt: tuple[str, ...] = ()
    chips: tuple[float, float] = (0.0, 0.0)
    player: int = 0
    raises: int = 0
    step: float = 0.0
    acted: bool = False
    folded: int | None = None
    closed: bool = False


@dataclass
class SlowSpot:
    """A spot with one menu of sizes for bets and raises."""

    board: list[str]
    hands: tuple[list[tuple[str, str]], list[tuple[str, str]]]
    weights: tuple[list[float], list[float]]
    pot: float
    stack: float
    sizes: tuple[float, ...]
    max_raises: int
    silent: tuple[bool, bool] = (False, False)
    """players who never bet"""
    values: dict[Any, int] = field(default_factory=dict)

    def actions(self, place: Place) -> Iterator[tuple[str, Place]]:
        mine, theirs = place.chips[place.player], place.chips[1 - place.player]
        if theirs > mine:
            yield "f", place._replace(folded=place.player)
        if theirs > mine or place.acted:
            level = max(mine, theirs)
            yield "c", place._replace(chips=(level, level), closed=True)
        else:
            yield "c", place._replace(player=1 - place.player, acted=True)
        level = max(mine, theirs)
        if level >= self.stack or place.raises > self.max_raises or self.silent[place.player]:
            return
        totals = set()
        for size in self.sizes:
            total = max(level + size * (self.pot + 2 * level), level + place.step)
            left = self.stack - total
            totals.add(self.stack if left <= 0.15 * (self.pot + 2 * total) else total)
        for total in sorted(totals):
            chips = (total, theirs) if place.player == 0 else (theirs, total)
            yield (
                f"r{total:.10g}",
                place._replace(
                    chips=chips, player=1 - place.player, raises=place.raises + 1, step=total - level, acted=True
                ),
            )

    def children(self, place: Place) -> list[Place]:
        return [child._replace(line=place.line + word) for word, child in self.actions(place)]

    def next_cards(self, place: Place) -> list[str]:
        return [card for card in DECK if card not in self.board and card not in place.dealt]

    def is_over(self, place: Place) -> bool:
        return place.folded is not None or (place.closed and len(self.board) + len(place.dealt) == 5)

    def after_deal(self, place: Place, card: str) -> Place:
        all_in = max(place.chips) >= self.stack
        return Place(place.line + "/", (*place.dealt, card), place.chips, closed=all_in)

    def chance(self, place: Place) -> float:
        return 1 / (52 - 4 - len(self.board) - len(place.dealt))

    def payoffs(self, place: Place) -> Any:
        """(hands of 0, hands of 1) what player 0 wins, in pots; 0 where the cards cannot all be dealt."""
        stake = 0.5 + min(place.chips) / self.pot
        table = np.zeros((len(self.hands[0]), len(self.hands[1])))
        for i, first in enumerate(self.hands[0]):
            for j, second in enumerate(self.hands[1]):
                if len({*first, *second, *place.dealt, *self.board}) < 4 + len(place.dealt) + len(self.board):
                    continue
                if place.folded is not None:
                    table[i, j] = stake if place.folded == 1 else -stake
                else:
                    one, other = (self.value(hand, place.dealt) for hand in (first, second))
                    table[i, j] = stake * (np.sign(other - one))
        return table

    def value(self, hand: tuple[str, str], dealt: tuple[str, ...]) -> int:
        """A hand's rank, the best one lowest."""
        key = (hand, dealt)
        if key not in self.values:
            self.values[key] = evaluate_cards(*self.board, *dealt, *hand)
        return self.values[key]

    def pairs(self) -> float:
        return sum(
            self.weights[0][i] * self.weights[1][j]
            for i, first in enumerate(self.hands[0])
            for j, second in enumerate(self.hands[1])
            if len({*first, *second}) == 4
        )


def response_value(spot: SlowSpot, strategy: Strategy, hero: int, *, own: Strategy | None = None) -> float:
    """The hero's value against the other's strategy: by a best response, or by its own strategy where there is one."""

    def walk(place: Place, reach: Any) -> Any:
        if spot.is_over(place):
            table = spot.payoffs(place)
            return table @ reach if hero == 0 else -(reach @ table)
        if place.closed:
            total = np.zeros(len(spot.hands[hero]))
            for card in spot.next_cards(place):
                free = np.array([card not in hand for hand in spot.hands[1 - hero]])
                mine = np.array([card not in hand for hand in spot.hands[hero]])
                total += mine * walk(spot.after_deal(place, card), reach * free)
            return spot.chance(place) * total
        children = spot.children(place)
        if place.player != hero:
            mix = strategy(place.line, place.dealt)
            return sum(walk(child, reach * mix[:, action]) for action, child in enumerate(children))
        values = np.array([walk(child, reach) for child in children])
        if own is None:
            return values.max(axis=0)
        return (values * own(place.line, place.dealt).T).sum(axis=0)

    weights = [np.array(own_weights) for own_weights in spot.weights]
    return float(weights[hero] @ walk(Place(), weights[1 - hero]) / spot.pairs())


def value_by_linear_program(spot: SlowSpot) -> float:
    """The value of the game for player 0."""
    counts, infosets = [1, 1], [0, 0]
    constraints: list[list[tuple[int, int, float]]] = [[], []]
    payoff: dict[tuple[int, int], float] = {}

    def walk(place: Place, sequences: list[list[int]], chance: float) -> None:
        if spot.is_over(place):
            for i, j in np.argwhere(table := spot.payoffs(place)):
                key = sequences[0][i], sequences[1][j]
                likely = chance * spot.weights[0][i] * spot.weights[1][j] / spot.pairs()
                payoff[key] = payoff.get(key, 0.0) + likely * table[i, j]
            return
        if place.closed:
            for card in spot.next_cards(place):
                walk(spot.after_deal(place, card), sequences, chance * spot.chance(place))
            return
        player, children = place.player, spot.children(place)
        later: list[list[int]] = [[] for _ in children]
        for sequence in sequences[player]:
            infosets[player] += 1
            constraints[player].append((infosets[player], sequence, -1.0))
            for action in range(len(children)):
                constraints[player].append((infosets[player], counts[player], 1.0))
                later[action].append(counts[player])
                counts[player] += 1
        for child, own in zip(children, later, strict=True):
            walk(child, [own, sequences[1]] if player == 0 else [sequences[0], own], chance)

    walk(Place(), [[0] * len(own) for own in spot.hands], 1.0)
    forms = []
    for player in range(2):
        rows, columns, numbers = zip(*[(0, 0, 1.0), *constraints[player]], strict=True)
        forms.append(coo_matrix((numbers, (rows, columns)), shape=(infosets[player] + 1, counts[player])))
    rows, columns = zip(*payoff, strict=True)
    table = coo_matrix((list(payoff.values()), (rows, columns)), shape=(counts[0], counts[1]))
    # maximise q[0] over realisation plans x and values q of the other's information sets: F' q <= A' x, E x = e
    upper = hstack([-table.T, forms[1].T])
    equal = hstack([forms[0], coo_matrix((infosets[0] + 1, infosets[1] + 1))])
    right = np.zeros(infosets[0] + 1)
    right[0] = 1.0
    cost = np.zeros(counts[0] + infosets[1] + 1)
    cost[counts[0]] = -1.0
    bounds = [(0, None)] * counts[0] + [(None, None)] * (infosets[1] + 1)
    solved = linprog(
        cost, A_ub=vstack([upper]).tocsr(), b_ub=np.zeros(counts[1]), A_eq=equal.tocsr(), b_eq=right, bounds=bounds
    )
    assert solved.success, solved.message
    return float(-solved.fun)
