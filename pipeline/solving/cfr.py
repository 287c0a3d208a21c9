"""Counterfactual regret minimisation on small games given by their rules: Kuhn poker for 2 to 13 players, Leduc.

In: a limit game with one hole card and at most one board card. Out: a `Solution`: average strategy, value of the
game for each player, exploitability and their curves. A decision is (betting node, own card's rank, board card's
rank); `Spot` names it.

At a decision the regret of action a is the sum over iterations of (value of a - value of the mix), weighted by the
chance that the others and the cards come here; the next mix is proportional to the positive regrets (Zinkevich and
others 2007). `vanilla` walks all deals and the whole tree; `plus` (Tammelin 2014) also forgets negative regret and
weighs iteration t by t in the average; `chance` draws one deal and walks the tree; `external` draws the deal and
the others' actions. Players take turns within an iteration. With more than two players there is no promise of an
equilibrium.

The best response of a player is exact: over all deals, with its choice shared by the deals it cannot tell apart.
Exploitability is the sum of the players' gains by best response divided by their number. In chips (antes).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.poker.game import Game
from pipeline.poker.rules import S_ACTOR, S_FINISHED
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.small import NO_BOARD, SmallGame, Spot, seen, settle_deal

METHODS = ("vanilla", "plus", "chance", "external")
SAMPLED_HANDS = 200_000
"""Hands played out to estimate values where deals are not enumerated."""


class GameTables(NamedTuple):
    """A small game as the kernels walk it."""

    rules: Array
    states: Array
    """(nodes, ...) the betting state at each node"""
    child: Array
    """(nodes, 3) where fold, call and raise lead; -1 where an action is not legal"""
    board_round: int
    """the round in which the board card is open, or `NO_BOARD`"""
    ranks: int


class Learnt(NamedTuple):
    """What a run changes, each (rows, 3)."""

    regret: Floats
    average: Floats
    """the sums that make the average strategy"""
    mix: Floats
    """what is played now"""
    chosen: Floats
    """what the players would play of their own choice, which regrets are measured from: `mix` itself, unless somebody
    is made to play something else part of the time (see `small_counter`)"""


def tables_of(small: SmallGame) -> GameTables:
    """A small game as the kernels take it."""
    visible = [r for r in range(small.game.rounds) if small.game.visible(r)]
    board_round = visible[0] if visible else NO_BOARD
    return GameTables(small.game.rules, small.tree.states, small.tree.child, board_round, small.game.ranks)


@kernel
def _match(regret: Floats, child: Array, row: int, node: int, mix: Floats) -> None:
    """Regret matching at one decision."""
    total = 0.0
    legal = 0
    for a in range(3):
        if child[node, a] >= 0:
            legal += 1
            total += max(regret[row, a], 0.0)
    for a in range(3):
        mix[row, a] = 0.0
        if child[node, a] >= 0:
            mix[row, a] = max(regret[row, a], 0.0) / total if total > 0 else 1.0 / legal


@kernel
def match_all(regret: Floats, child: Array, infos: int, floor: bool, mix: Floats) -> None:
    """Regret matching at every decision, into `mix`; with `floor` negative regrets are forgotten first."""
    for row in range(len(regret)):
        if floor:
            for a in range(3):
                regret[row, a] = max(regret[row, a], 0.0)
        _match(regret, child, row, row // infos, mix)


@kernel
def sweep(
    small: GameTables,
    deals: Array,
    weights: Floats,
    player: int,
    share: float,
    fresh: bool,
    learnt: Learnt,
) -> float:
    """Walk all deals given for one player's regrets (a player under 0: values only); the value of its own mix.

    `share` is the iteration's weight in the average; `fresh` matches regrets on the way (for a single deal).
    """
    rules, states, child, board_round, ranks = small
    regret, average, mix, chosen = learnt
    nodes, players = len(states), deals.shape[1] - 1
    reach = np.empty((nodes, players))
    value = np.empty(nodes)
    result = np.empty(players)
    hands = np.empty(players, dtype=np.int64)
    total = 0.0
    for d in range(len(deals)):
        reach[0] = 1.0
        for node in range(nodes):
            if states[node, S_FINISHED] != 0:
                continue
            row = seen(node, states, deals[d], board_round, ranks)
            if fresh:
                _match(regret, child, row, node, mix)
            actor = states[node, S_ACTOR]
            for a in range(3):
                if child[node, a] >= 0:
                    reach[child[node, a]] = reach[node]
                    reach[child[node, a], actor] *= mix[row, a]
        for node in range(nodes - 1, -1, -1):
            if states[node, S_FINISHED] != 0:
                settle_deal(rules, states[node], deals[d], hands, result)
                value[node] = result[player]
                continue
            row = seen(node, states, deals[d], board_round, ranks)
            value[node] = 0.0
            for a in range(3):
                if child[node, a] >= 0:
                    value[node] += mix[row, a] * value[child[node, a]]
            if share > 0 and states[node, S_ACTOR] == player:
                others = weights[d]
                for p in range(players):
                    if p != player:
                        others *= reach[node, p]
                own = 0.0
                for a in range(3):
                    if child[node, a] >= 0:
                        own += chosen[row, a] * value[child[node, a]]
                for a in range(3):
                    if child[node, a] >= 0:
                        regret[row, a] += others * (value[child[node, a]] - own)
                        average[row, a] += share * weights[d] * reach[node, player] * mix[row, a]
        total += weights[d] * value[0]
    return total


@kernel
def _external(
    small: GameTables,
    deals: Array,
    draws: Floats,
    learnt: Learnt,
) -> None:
    """External sampling: for each deal and player, all of its actions and one of each other player's."""
    rules, states, child, board_round, ranks = small
    regret, average, mix, _ = learnt
    nodes, players = len(states), deals.shape[1] - 1
    queue = np.empty(nodes, dtype=np.int64)
    parent = np.empty(nodes, dtype=np.int64)
    values = np.empty((nodes, 3))
    result = np.empty(players)
    hands = np.empty(players, dtype=np.int64)
    drawn = 0
    for d in range(len(deals)):
        for player in range(players):
            queue[0], parent[0], count, at = 0, 0, 1, 0
            while at < count:
                node = queue[at]
                if states[node, S_FINISHED] == 0:
                    row = seen(node, states, deals[d], board_round, ranks)
                    _match(regret, child, row, node, mix)
                    other = states[node, S_ACTOR] != player
                    left = draws[drawn % len(draws)]
                    drawn += 1 if other else 0
                    for a in range(3):
                        if child[node, a] < 0:
                            continue
                        if other:
                            average[row, a] += mix[row, a]
                            chosen = 0 <= left < mix[row, a]
                            left -= mix[row, a]
                        if not other or chosen:
                            queue[count] = child[node, a]
                            parent[count] = at * 3 + a
                            count += 1
                at += 1
            values[:count] = 0.0
            for at in range(count - 1, -1, -1):
                node = queue[at]
                gained = 0.0
                if states[node, S_FINISHED] != 0:
                    settle_deal(rules, states[node], deals[d], hands, result)
                    gained = result[player]
                elif states[node, S_ACTOR] != player:
                    gained = values[at].sum()
                else:
                    row = seen(node, states, deals[d], board_round, ranks)
                    for a in range(3):
                        gained += mix[row, a] * values[at, a]
                    for a in range(3):
                        if child[node, a] >= 0:
                            regret[row, a] += values[at, a] - gained
                if at > 0:
                    values[parent[at] // 3, parent[at] % 3] = gained


@kernel
def best_response(
    small: GameTables,
    deals: Array,
    weights: Floats,
    player: int,
    mix: Floats,
    answer: Floats,
) -> float:
    """The value to `player` of the best answer to the others' mixes; the answer is written to its rows of `answer`."""
    rules, states, child, board_round, ranks = small
    nodes, players = len(states), deals.shape[1] - 1
    value = np.zeros((nodes, len(deals)))
    reach = np.empty(nodes)
    result = np.empty(players)
    hands = np.empty(players, dtype=np.int64)
    for d in range(len(deals)):
        reach[0] = weights[d]
        for node in range(nodes):
            if states[node, S_FINISHED] != 0:
                settle_deal(rules, states[node], deals[d], hands, result)
                value[node, d] = reach[node] * result[player]
                continue
            row = seen(node, states, deals[d], board_round, ranks)
            for a in range(3):
                if child[node, a] >= 0:
                    chance = 1.0 if states[node, S_ACTOR] == player else mix[row, a]
                    reach[child[node, a]] = reach[node] * chance
    infos = ranks * (1 if board_round == NO_BOARD else ranks + 1)
    gain = np.empty((infos, 3))
    for node in range(nodes - 1, -1, -1):
        if states[node, S_FINISHED] != 0:
            continue
        if states[node, S_ACTOR] == player:
            gain[:] = 0.0
            for d in range(len(deals)):
                info = seen(node, states, deals[d], board_round, ranks) - node * infos
                for a in range(3):
                    gain[info, a] += value[child[node, a], d] if child[node, a] >= 0 else -np.inf
            for d in range(len(deals)):
                row = seen(node, states, deals[d], board_round, ranks)
                best = np.argmax(gain[row - node * infos])
                answer[row] = 0.0
                answer[row, best] = 1.0
                value[node, d] = value[child[node, best], d]
        else:
            for a in range(3):
                if child[node, a] >= 0:
                    value[node] += value[child[node, a]]
    return value[0].sum()


@kernel
def _play_out(small: GameTables, deals: Array, draws: Floats, mix: Floats) -> Floats:
    """Mean net chips of each player over hands played by the mix."""
    rules, states, child, board_round, ranks = small
    players = deals.shape[1] - 1
    total, result, hands = np.zeros(players), np.empty(players), np.empty(players, dtype=np.int64)
    drawn = 0
    for d in range(len(deals)):
        node = 0
        while states[node, S_FINISHED] == 0:
            row = seen(node, states, deals[d], board_round, ranks)
            left = draws[drawn % len(draws)]
            drawn += 1
            chosen = -1
            for a in range(3):
                if child[node, a] >= 0 and (chosen < 0 or left >= 0):
                    chosen = a
                    left -= mix[row, a]
            node = child[node, chosen]
        settle_deal(rules, states[node], deals[d], hands, result)
        total += result
    return total / len(deals)


class Point(NamedTuple):
    """Where a run stood after some iterations: one point of its learning curve."""

    iteration: int
    value: tuple[float, ...]
    """net chips per hand of each player when all play the average strategy"""
    exploitability: float | None
    """None where the deals are too many to enumerate"""
    frequencies: tuple[tuple[float, float, float], ...]
    """fold, call and raise at each of the spots watched"""


@dataclass(frozen=True, repr=False)
class Solution:
    """The result of a run: the average strategy, its value, what best responses gain, and the learning curve."""

    game: Game
    iterations: int
    strategy: Floats
    """(rows, 3) average strategy"""
    value: tuple[float, ...]
    gains: tuple[float, ...] | None
    """what each player could win more by a best response"""
    curve: tuple[Point, ...]

    def __repr__(self) -> str:
        value = ", ".join(f"{chips:+.4f}" for chips in self.value)
        return f"<Solution of {self.game.name} after {self.iterations:,} iterations: value {value}>"

    @property
    def exploitability(self) -> float | None:
        """The mean of what best responses gain; None where they were not computed."""
        return None if self.gains is None else sum(self.gains) / self.game.players

    def mix(self, spot: Spot) -> tuple[float, float, float]:
        """The probabilities of fold, call and raise at a spot."""
        fold, call, raise_ = self.strategy[SmallGame(self.game).row(spot)]
        return float(fold), float(call), float(raise_)


@dataclass
class ExactSolver:
    """A run of one method on one game."""

    game: Game
    method: str = "plus"
    seed: int = 0
    iterations: int = 0
    small: SmallGame = field(init=False)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise PipelineError(f"no method {self.method!r}{nearest(self.method, METHODS)}")
        self.small = SmallGame(self.game)
        if self.method in ("vanilla", "plus") and not self.small.enumerable:
            raise PipelineError(
                f"{self.game.name} has too many deals for {self.method!r}: take the method 'chance' or 'external'"
            )
        rows = len(self.small.tree.states) * self.small.infos
        self._rng = np.random.default_rng(self.seed)
        mix = np.zeros((rows, 3))
        self._learnt = Learnt(np.zeros((rows, 3)), np.zeros((rows, 3)), mix, mix)
        self._tables = tables_of(self.small)

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        if self.method == "external":
            for done in range(0, iterations, 1000):
                deals = self.small.draw(self._rng, min(1000, iterations - done))
                draws = self._rng.random(65_521)
                _external(self._tables, deals, draws, self._learnt)
        else:
            for t in range(self.iterations + 1, self.iterations + iterations + 1):
                self._iterate(t)
        self.iterations += iterations

    def _iterate(self, t: int) -> None:
        sampled, plus = self.method == "chance", self.method == "plus"
        deals, weights = (self.small.draw(self._rng, 1), np.ones(1)) if sampled else self.small.deals
        for player in range(self.game.players):
            if not sampled:
                match_all(self._learnt.regret, self.small.tree.child, self.small.infos, plus, self._learnt.mix)
            sweep(self._tables, deals, weights, player, float(t if plus else 1), sampled, self._learnt)

    def strategy(self) -> Floats:
        """The average strategy so far; equal shares where nothing was learnt."""
        out = np.empty_like(self._learnt.average)
        match_all(self._learnt.average, self.small.tree.child, self.small.infos, False, out)
        return out

    def point(self, watch: Iterable[Spot] = ()) -> tuple[Point, tuple[float, ...] | None]:
        """Where the average strategy stands, and each player's gain by best response."""
        mix, gains = self.strategy(), None
        if self.small.enumerable:
            value, gains = self._exact(mix)
        else:
            rng = np.random.default_rng(self.seed)
            value = _play_out(self._tables, self.small.draw(rng, SAMPLED_HANDS), rng.random(1_000_003), mix).tolist()
        shown = tuple(tuple(map(float, mix[self.small.row(spot)])) for spot in watch)
        exploitability = None if gains is None else sum(gains) / len(gains)
        return Point(self.iterations, tuple(map(float, value)), exploitability, shown), gains  # type: ignore[arg-type]

    def exploitability(self, weights: Floats) -> float:
        """What best responses win on average against a strategy, given as weights (rows, 3) of the actions."""
        mix = np.empty_like(weights)
        match_all(weights, self.small.tree.child, self.small.infos, False, mix)
        gains = self._exact(mix)[1]
        return sum(gains) / len(gains)

    def _exact(self, mix: Floats) -> tuple[list[float], tuple[float, ...]]:
        """The value of a mix to each player, and what a best response would win more."""
        deals, weights = self.small.deals
        played, answer = Learnt(mix, mix, mix, mix), np.empty_like(mix)
        value = [sweep(self._tables, deals, weights, p, 0.0, False, played) for p in range(self.game.players)]
        best = [best_response(self._tables, deals, weights, p, mix, answer) for p in range(self.game.players)]
        return value, tuple(float(b - v) for b, v in zip(best, value, strict=True))

    def solve(
        self, iterations: int, *, points: int = 1, watch: Iterable[Spot] = (), progress: Progress = no_progress
    ) -> Solution:
        """Run, taking `points` points of the curve at growing distances, the last at the end."""
        spots = tuple(watch)
        stops = sorted({round(x) for x in np.geomspace(min(10, iterations), iterations, max(points, 1))} | {iterations})
        curve, gains = [], None
        for stop in stops[-max(points, 1) :]:
            while self.iterations < stop:
                self.run(min(stop - self.iterations, max(1, iterations // 100)))
                progress(self.iterations, iterations)
            found, gains = self.point(spots)
            curve.append(found)
        return Solution(self.game, self.iterations, self.strategy(), curve[-1].value, gains, tuple(curve))
