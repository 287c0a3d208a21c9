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
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.game import Game
from pipeline.poker.rules import S_ACTOR, S_FINISHED
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.tabular import Tabular
from pipeline.solving.lookup import SmallTeacher
from pipeline.solving.small import NO_BOARD, GameTables, SmallGame, Spot, actor_row, settle_deal

METHODS = ("vanilla", "plus", "chance", "external")
SAMPLED_HANDS = 200_000
"""hands played out to estimate values where deals are not enumerated"""


class SolverArrays(NamedTuple):
    """The tables that a run changes, each (rows, 3)."""

    regret: Floats
    average: Floats
    """the sums that make the average strategy"""
    mix: Floats
    """the current strategy"""
    chosen: Floats
    """the mixes that regrets are measured from: `mix` itself, unless a player has to play something else part of the
    time (see `counter`)"""


@kernel
def _match(regret: Floats, child: Array, row: int, node: int, mix: Floats) -> None:
    """Match regrets at one decision."""
    # regret matching: play each action as much as it was missed, any with equal chance where none was
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
def match_regrets(regret: Floats, child: Array, infos: int, floor: bool, mix: Floats) -> None:
    """Match regrets at every decision, into `mix`; with `floor` negative regrets are set to 0 first."""
    for row in range(len(regret)):
        if floor:  # CFR+: an action that turns good is played again at once, without old debts to work off
            for a in range(3):
                regret[row, a] = max(regret[row, a], 0.0)
        _match(regret, child, row, row // infos, mix)


@kernel
def walk_deals(
    small: GameTables,
    deals: Array,
    weights: Floats,
    player: int,
    share: float,
    fresh: bool,
    learnt: SolverArrays,
) -> float:
    """Walk the given deals for one player's regrets; return the value of its mix.

    `share` is the iteration's weight in the average, 0 for values only; `fresh` matches regrets on the way, for a
    single deal.
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
        # nodes come before those they lead to: reach flows forwards, values flow back, and nothing is recursive
        reach[0] = 1.0
        for node in range(nodes):
            if states[node, S_FINISHED] != 0:
                continue
            row = actor_row(node, states, deals[d], board_round, ranks)
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
            row = actor_row(node, states, deals[d], board_round, ranks)
            value[node] = 0.0
            for a in range(3):
                if child[node, a] >= 0:
                    value[node] += mix[row, a] * value[child[node, a]]
            if share > 0 and states[node, S_ACTOR] == player:
                # counterfactual: the chance of coming here without the player's own choices, as if it had tried to
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
                        # by own reach: in the average a mix counts as often as the player itself gets to use it
                        average[row, a] += share * weights[d] * reach[node, player] * mix[row, a]
        total += weights[d] * value[0]
    return total


@kernel
def _external(
    small: GameTables,
    deals: Array,
    draws: Floats,
    learnt: SolverArrays,
) -> None:
    """Sample externally: for each deal and player, walk all of its actions and one of each other player's."""
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
            queue[0], parent[0], count, place = 0, 0, 1, 0
            while place < count:
                node = queue[place]
                if states[node, S_FINISHED] == 0:
                    row = actor_row(node, states, deals[d], board_round, ranks)
                    _match(regret, child, row, node, mix)
                    other = states[node, S_ACTOR] != player
                    # a prime number of draws is used in a cycle, so that deals do not meet the same ones again soon
                    draw = draws[drawn % len(draws)]
                    drawn += 1 if other else 0
                    for a in range(3):
                        if child[node, a] < 0:
                            continue
                        if other:  # it comes here as often as it plays so: its reach probability is in the sampling
                            average[row, a] += mix[row, a]
                            chosen = 0 <= draw < mix[row, a]
                            draw -= mix[row, a]
                        if not other or chosen:
                            queue[count] = child[node, a]
                            parent[count] = place * 3 + a
                            count += 1
                place += 1
            values[:count] = 0.0
            for place in range(count - 1, -1, -1):
                node = queue[place]
                gained = 0.0
                if states[node, S_FINISHED] != 0:
                    settle_deal(rules, states[node], deals[d], hands, result)
                    gained = result[player]
                elif states[node, S_ACTOR] != player:
                    gained = values[place].sum()
                else:
                    row = actor_row(node, states, deals[d], board_round, ranks)
                    for a in range(3):
                        gained += mix[row, a] * values[place, a]
                    # no weight by reach: deals and others' actions were drawn with their own probabilities
                    for a in range(3):
                        if child[node, a] >= 0:
                            regret[row, a] += values[place, a] - gained
                if place > 0:
                    values[parent[place] // 3, parent[place] % 3] = gained


@kernel
def exact_best_response(
    small: GameTables,
    deals: Array,
    weights: Floats,
    player: int,
    mix: Floats,
    answer: Floats,
) -> float:
    """Return the value to `player` of the best response to the others' mixes; write it to its rows of `answer`."""
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
            row = actor_row(node, states, deals[d], board_round, ranks)
            for a in range(3):
                if child[node, a] >= 0:
                    # values carry the others' reach, so that summing them weighs each deal by how likely it is here
                    chance = 1.0 if states[node, S_ACTOR] == player else mix[row, a]
                    reach[child[node, a]] = reach[node] * chance
    infos = ranks * (1 if board_round == NO_BOARD else ranks + 1)
    gain = np.empty((infos, 3))
    for node in range(nodes - 1, -1, -1):
        if states[node, S_FINISHED] != 0:
            continue
        if states[node, S_ACTOR] == player:
            # one choice for each information set: the values of all deals that look alike are added before choosing
            gain[:] = 0.0
            for d in range(len(deals)):
                info = actor_row(node, states, deals[d], board_round, ranks) - node * infos
                for a in range(3):
                    gain[info, a] += value[child[node, a], d] if child[node, a] >= 0 else -np.inf
            for d in range(len(deals)):
                row = actor_row(node, states, deals[d], board_round, ranks)
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
    """Play hands by the mix; return the mean net chips of each player."""
    rules, states, child, board_round, ranks = small
    players = deals.shape[1] - 1
    total, result, hands = np.zeros(players), np.empty(players), np.empty(players, dtype=np.int64)
    drawn = 0
    for d in range(len(deals)):
        node = 0
        while states[node, S_FINISHED] == 0:
            row = actor_row(node, states, deals[d], board_round, ranks)
            draw = draws[drawn % len(draws)]
            drawn += 1
            chosen = -1
            for a in range(3):
                if child[node, a] >= 0 and (chosen < 0 or draw >= 0):
                    chosen = a
                    draw -= mix[row, a]
            node = child[node, chosen]
        settle_deal(rules, states[node], deals[d], hands, result)
        total += result
    return total / len(deals)


def to_mixes(small: SmallGame, weights: Floats) -> Floats:
    """Return the mixes in proportion to weights (rows, 3) of the actions; equal shares where all of them are 0."""
    out = np.empty_like(weights)
    match_regrets(weights, small.tree.child, small.infos, False, out)
    return out


def value_of(small: SmallGame, mix: Floats, player: int) -> float:
    """Return the net chips per hand of a player where all play a mix (rows, 3), over all deals."""
    return float(walk_deals(small.tables, *small.deals, player, 0.0, False, SolverArrays(mix, mix, mix, mix)))


class CurvePoint(NamedTuple):
    """One point of the learning curve of a run."""

    iteration: int
    value: tuple[float, ...]
    """net chips per hand of each player when all play the average strategy"""
    exploitability: float | None
    """None where the deals are too many to enumerate"""
    frequencies: tuple[tuple[float, float, float], ...]
    """fold, call and raise at each of the spots watched"""


@dataclass(frozen=True, repr=False)
class Solution(Tabular):
    """The result of a run: the average strategy, its value, what best responses gain, and the learning curve."""

    game: Game
    iterations: int
    strategy: Floats
    """(rows, 3) average strategy"""
    value: tuple[float, ...]
    gains: tuple[float, ...] | None
    """of each player by a best response"""
    curve: tuple[CurvePoint, ...]
    method: str

    def json(self) -> dict[str, Any]:
        """Return the object that `solve kuhn --json` prints, without the seconds and the spots that were watched."""
        return {
            "game": self.game.name,
            "players": self.game.players,
            "iterations": self.iterations,
            "value": self.value,
            "exploitability": self.exploitability,
            "method": self.method,
            "gains": self.gains,
            "curve": [point._asdict() for point in self.curve],
        }

    def __repr__(self) -> str:
        value = ", ".join(f"{chips:+.4f}" for chips in self.value)
        return f"<Solution of {self.game.name} after {self.iterations:,} iterations: value {value}>"

    @property
    def exploitability(self) -> float | None:
        """Return the mean gain of best responses; None where they were not computed."""
        return None if self.gains is None else sum(self.gains) / self.game.players

    def agent(self, name: str = "solution") -> SmallTeacher:
        """Return an agent that plays the strategy, under this name in logs."""
        return SmallTeacher(name, self.game, self.strategy)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per decision: the betting, the own card, the board, and the mix there."""
        mixes = ((spot, self.mix(spot)) for spot in SmallGame(self.game).spots())
        return [{**spot._asdict(), **dict(zip(("fold", "call", "raise"), mix, strict=True))} for spot, mix in mixes]

    def mix(self, spot: Spot) -> tuple[float, float, float]:
        """Return the probabilities of fold, call and raise at a spot."""
        fold, call, raise_ = self.strategy[SmallGame(self.game).row(spot)]
        return float(fold), float(call), float(raise_)


@dataclass
class ExactSolver:
    """A run of one method on one game."""

    game: Game
    method: str = ""
    """one of `METHODS`; by default `plus`, or `external` where the deals are too many to list"""
    seed: int = 0
    iterations: int = 0
    small: SmallGame = field(init=False)

    def __post_init__(self) -> None:
        self.small = SmallGame(self.game)
        self.method = self.method or ("plus" if self.small.enumerable else "external")
        if self.method not in METHODS:
            raise PipelineError(f"no method {self.method!r}{nearest(self.method, METHODS)}")
        if self.method in ("vanilla", "plus") and not self.small.enumerable:
            raise PipelineError(
                f"{self.game.name} has too many deals for {self.method!r}: take the method 'chance' or 'external'"
            )
        self._rng = np.random.default_rng(self.seed)
        regret, average, mix = (np.zeros((self.small.rows, 3)) for _ in range(3))
        self._learnt = SolverArrays(regret, average, mix, mix)

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        if self.method == "external":
            for done in range(0, iterations, 1000):
                deals = self.small.draw(self._rng, min(1000, iterations - done))
                draws = self._rng.random(65_521)
                _external(self.small.tables, deals, draws, self._learnt)
        else:
            for t in range(self.iterations + 1, self.iterations + iterations + 1):
                self._iterate(t)
        self.iterations += iterations

    def _iterate(self, t: int) -> None:
        sampled, plus = self.method == "chance", self.method == "plus"
        deals, weights = (self.small.draw(self._rng, 1), np.ones(1)) if sampled else self.small.deals
        for player in range(self.game.players):
            if not sampled:
                match_regrets(self._learnt.regret, self.small.tree.child, self.small.infos, plus, self._learnt.mix)
            share = float(t if plus else 1)  # late iterations are better, so `plus` weighs them more
            walk_deals(self.small.tables, deals, weights, player, share, sampled, self._learnt)

    def strategy(self) -> Floats:
        """Return the average strategy so far; equal shares where nothing was learnt."""
        return to_mixes(self.small, self._learnt.average)

    def point(self, watch: Iterable[Spot] = ()) -> tuple[CurvePoint, tuple[float, ...] | None]:
        """Measure the average strategy, and each player's gain by best response."""
        mix, gains = self.strategy(), None
        if self.small.enumerable:
            value, gains = self._exact(mix)
        else:
            rng = np.random.default_rng(self.seed)
            deals = self.small.draw(rng, SAMPLED_HANDS)
            value = _play_out(self.small.tables, deals, rng.random(1_000_003), mix).tolist()
        frequencies = tuple(tuple(map(float, mix[self.small.row(spot)])) for spot in watch)
        exploitability = None if gains is None else sum(gains) / len(gains)
        return CurvePoint(self.iterations, tuple(map(float, value)), exploitability, frequencies), gains  # type: ignore[arg-type]

    def exploitability(self, weights: Floats) -> float:
        """Measure the exploitability of a strategy, given as weights (rows, 3) of the actions."""
        gains = self._exact(to_mixes(self.small, weights))[1]
        return sum(gains) / len(gains)

    def _exact(self, mix: Floats) -> tuple[list[float], tuple[float, ...]]:
        """Return the value of a mix to each player, and the gain of its best response."""
        players, answer = range(self.game.players), np.empty_like(mix)
        value = [value_of(self.small, mix, player) for player in players]
        best = [exact_best_response(self.small.tables, *self.small.deals, player, mix, answer) for player in players]
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
            point, gains = self.point(spots)
            curve.append(point)
        return Solution(self.game, self.iterations, self.strategy(), curve[-1].value, gains, tuple(curve), self.method)
