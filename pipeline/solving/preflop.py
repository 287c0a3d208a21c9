"""Hold'em with no betting after the flop, solved exactly: Selby's game on the ACPC's three-raise tree.

In: heads-up limit hold'em; its first round is played by the rules, then all five board cards come and the better
hand wins. Out: a `Preflop`: a mix of fold, call and raise for each betting sequence and each of the 169 classes of
starting hands. With the exact 169 x 169 results and the number of pairs of hands without a common card
(card-removal weights, `class_matchups`) nothing is sampled or abstracted, so CFR+ (Tammelin 2014) comes as close to an
equilibrium as is wanted; alternating updates, averages weighed by the iteration.

Selby's own tree allowed more raises than the ACPC's three, and optima are not unique: values can be compared, cells
cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import betting_code
from pipeline.models.charts import Chart
from pipeline.poker.betting_tree import BettingTree
from pipeline.poker.cards import class_combos
from pipeline.poker.game import Game
from pipeline.poker.rules import S_ACTOR, S_FINISHED, S_FOLDED, S_MAX_SPENT, S_SPENT
from pipeline.poker.starting_hands import PREFLOP_BOARDS, class_matchups
from pipeline.runtime.array_types import Floats
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress

CLASSES = 169
MIN_REACH = 1e-5
"""a situation that comes up more rarely than this when both players keep to the solution counts as never reached"""
MIN_HAND_REACH = 1e-3
"""a hand whose own player brings it into a situation more rarely than this is not shown there"""


def preflop_game(game: Game) -> Game:
    """Return the first round of a game, as a game of its own."""
    if not game.is_holdem or game.nolimit or game.players != 2:
        raise PipelineError(f"{game.name}: the preflop game is solved for heads-up limit hold'em only")
    return replace(
        game,
        name=f"{game.name}.preflop",
        rounds=1,
        board_cards=(0,),
        raise_sizes=game.raise_sizes[:1],
        first=game.first[:1],
        max_raises=game.max_raises[:1],
    )


class Preflop(NamedTuple):
    """A solution of the preflop game; values in thousandths of a big blind per hand."""

    strategy: dict[str, Floats]
    """by betting sequence: (169, 3) probabilities of fold, call and raise"""
    value_mbb: float
    """of the small blind (position 1)"""
    exploitability_mbb: float
    iterations: int

    def json(self) -> dict[str, Any]:
        """Return the object that `solve preflop --json` prints, without the game's name and the seconds."""
        return {
            "players": 2,
            "iterations": self.iterations,
            "value": [-self.value_mbb, self.value_mbb],
            "exploitability": self.exploitability_mbb,
            "reached": reach(self),
        }


@dataclass
class PreflopSolver:
    """A run of CFR+: the betting tree, the match-ups of classes and the tables of regrets and averages."""

    game: Game

    def __post_init__(self) -> None:
        self.tree: BettingTree = self.game.betting_tree()
        results = class_matchups()
        pairs = results.pairs.sum()
        # card removal: of two classes with cards in common fewer pairs of hands can be dealt
        self.weights = results.pairs / pairs
        self.edge = (results.win - results.win.T) / PREFLOP_BOARDS / pairs
        nodes = len(self.tree.states)
        self.regret = np.zeros((nodes, CLASSES, 3))
        self.average = np.zeros((nodes, CLASSES, 3))

    def mixes(self, table: Floats) -> Floats:
        """Match regrets: shares of the positive parts, equal shares of the legal actions where there are none."""
        legal = (self.tree.child >= 0)[:, None, :]
        positive = np.maximum(table, 0.0) * legal
        total = positive.sum(axis=2, keepdims=True)
        equal = legal / np.maximum(legal.sum(axis=2, keepdims=True), 1)
        return np.where(total > 0, positive / np.where(total > 0, total, 1.0), equal)

    def values(self, mix: Floats, player: int, *, best: bool = False) -> tuple[Floats, Floats]:
        """Return for each node and class of `player` its value times the other's reach probability, and its own reach.

        With `best` the player answers as well as it can instead of by its mix.
        """
        states, child = self.tree.states, self.tree.child
        reach = np.ones((len(states), 2, CLASSES))
        for node in range(len(states)):
            for action in range(3):
                if child[node, action] >= 0:
                    reach[child[node, action]] = reach[node]
                    reach[child[node, action], states[node, S_ACTOR]] *= mix[node, :, action]
        value = np.zeros((len(states), CLASSES))
        for node in range(len(states) - 1, -1, -1):
            state, other = states[node], reach[node, 1 - player]
            if state[S_FINISHED] and state[S_FOLDED]:
                lost = state[S_FOLDED] == 1 << player
                chips = -state[S_SPENT + player] if lost else state[S_SPENT + 1 - player]
                value[node] = chips * (self.weights @ other)
            elif state[S_FINISHED]:
                value[node] = state[S_MAX_SPENT] * (self.edge @ other)
            elif state[S_ACTOR] != player:
                value[node] = value[child[node][child[node] >= 0]].sum(axis=0)
            elif best:  # a class is an information set of its own, so its best action is a plain maximum
                value[node] = value[child[node][child[node] >= 0]].max(axis=0)
            else:
                for action in range(3):
                    if child[node, action] >= 0:
                        value[node] += mix[node, :, action] * value[child[node, action]]
        return value, reach[:, player]

    def improve(self, player: int, weight: float) -> None:
        """Update the regrets and averages of a player by CFR+."""
        mix = self.mixes(self.regret)
        value, own = self.values(mix, player)
        for node in np.flatnonzero((self.tree.states[:, S_ACTOR] == player) & (self.tree.states[:, S_FINISHED] == 0)):
            for action in range(3):
                child = self.tree.child[node, action]
                if child >= 0:
                    # values carry the other's reach already; regrets below 0 are forgotten (CFR+)
                    regret = self.regret[node, :, action] + value[child] - value[node]
                    self.regret[node, :, action] = np.maximum(regret, 0.0)
            self.average[node] += weight * own[node][:, None] * mix[node]

    def texts(self) -> dict[int, str]:
        """Return the betting sequence that leads to each decision node."""
        texts = {0: ""}
        for node in range(len(self.tree.states)):
            for action in range(3):
                if self.tree.child[node, action] >= 0:
                    texts[int(self.tree.child[node, action])] = texts[node] + "fcr"[action]
        return {node: text for node, text in texts.items() if self.tree.states[node, S_FINISHED] == 0}

    def measure(self) -> tuple[float, float]:
        """Measure the value of the small blind and the exploitability of the average, in chips."""
        mix = self.mixes(self.average)
        best = [float(self.values(mix, player, best=True)[0][0].sum()) for player in range(2)]
        return float(self.values(mix, 1)[0][0].sum()), sum(best) / 2


def solve_preflop(
    game: Game, *, below_mbb: float = 0.005, most: int = 20_000, progress: Progress = no_progress
) -> Preflop:
    """Solve until the exploitability is below `below_mbb` or `most` iterations are done."""
    run = PreflopSolver(preflop_game(game))
    scale = 1000 / game.big_blind
    value, exploitability, iteration = 0.0, np.inf, 0
    while iteration < most and exploitability * scale >= below_mbb:
        for iteration in range(iteration + 1, min(iteration + 100, most) + 1):  # noqa: B020
            for player in (1, 0):
                run.improve(player, float(iteration))
        progress(iteration, most)
        value, exploitability = run.measure()
    mix = run.mixes(run.average)
    strategy = {betting: mix[node] for node, betting in run.texts().items()}
    return Preflop(strategy, value * scale, exploitability * scale, iteration)


def reach(solved: Preflop) -> dict[str, float]:
    """Return how likely each betting sequence is when both players keep to the solution, by sequence.

    The players' hands count as independent, which is exact enough to tell what never happens.
    """
    combos = np.array([class_combos(index) for index in range(CLASSES)]) / 1326.0
    return {
        betting: float(np.prod([(combos * own).sum() for own in _reached(solved, betting)]))
        for betting in solved.strategy
    }


def hands_reached(solved: Preflop) -> dict[str, Floats]:
    """Return for each betting sequence (classes,) the reach probability of the player to act with each hand."""
    return {betting: _reached(solved, betting)[len(betting) % 2] for betting in solved.strategy}


def _reached(solved: Preflop, betting: str) -> list[Floats]:
    """Return for each player (classes,) its probability to act as in a betting sequence with each hand."""
    reached: list[Floats] = [np.ones(CLASSES), np.ones(CLASSES)]
    for place, action in enumerate(betting):  # players act in turn
        reached[place % 2] = reached[place % 2] * solved.strategy[betting[:place]][:, "fcr".index(action)]
    return reached


def to_chart(solved: Preflop) -> Chart:
    """Make a starting-hand chart of the solution, with a thousand decisions for each combination of a class."""
    combos = 1000.0 * np.array([class_combos(index) for index in range(CLASSES)])[:, None]
    words = {betting_code(betting): np.round(mix * combos, 1) for betting, mix in solved.strategy.items()}
    order = sorted(words)
    return Chart(np.array(order, dtype=np.int64), np.stack([words[word] for word in order]), "fcr")


def reached_chart(solved: Preflop) -> tuple[Chart, list[bool]]:
    """Return the chart with the hands alone that get into each situation, and which situations come up at all."""
    chart, likely, shares = to_chart(solved), reach(solved), hands_reached(solved)
    bettings = {betting_code(betting): betting for betting in solved.strategy}
    order = [bettings[int(word)] for word in chart.words]
    hands = np.stack([np.where(shares[betting] >= MIN_HAND_REACH, shares[betting], 0.0) for betting in order])
    drawn = replace(chart, counts=chart.counts * hands[:, :, None])
    return drawn, [likely[betting] >= MIN_REACH for betting in order]
