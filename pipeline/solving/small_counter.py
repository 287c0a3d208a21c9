"""Counter-strategies in small games: best, restricted Nash and data-biased responses in Kuhn and Leduc.

In: what is believed of an opponent (`Belief`). Out: a strategy for both seats, what it wins from the opponent, and what
a best response wins from it. The opponent is made to play the model part of the time and plays freely, against us,
the rest:

- in a share of the hands, from beginning to end: restricted Nash response (Johanson, Zinkevich and Bowling 2007). No
  strategy that is exploitable no more than this one wins more from the model;
- in these hands only at a share of the times it comes to a decision, by how sure the model is there: data-biased
  response (Johanson and Bowling 2009). They let one number by decision say both how sure the data are and how much is
  risked; here the risk is by hand as above, because a player who may leave the model at every decision anew soon has
  left it in nearly all hands, and what such an opponent is worth costs more risk.

Both are solved by CFR+ (see `cfr`): our regrets are those against the mixture, the opponent's those of its free part.
What they win and lose is computed exactly. That CFR+ finds them is proved for the first; in the second, where the
opponent's regrets come from hands of both kinds, it is not.
With the model always in force the answer is the best response, found by one walk back through the tree; with the model
never in force it is an equilibrium. Each seat is a game of its own, as the opponent learns against that seat alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.poker.game import Game
from pipeline.poker.rules import S_ACTOR
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.cfr import ExactSolver, Learnt, best_response, match_all, sweep, tables_of
from pipeline.solving.small import SmallGame

ITERATIONS = 4_000
FORGOTTEN = 4
"""the first of so many parts of the iterations is left out of the average: traces of first guesses would stay in it"""


@dataclass(frozen=True)
class Belief:
    """What is believed of an opponent."""

    model: Floats
    """(rows, 3) its probabilities at each decision"""
    hands: float = 0.0
    """the share of the hands in which it plays the model; in the others it is free throughout"""
    decisions: Floats | None = None
    """(rows,) in those hands, the share of the times that it plays the model at each decision; None is always"""

    def __post_init__(self) -> None:
        if not 0 <= self.hands <= 1:
            raise PipelineError(f"the share of hands that follow the model is 0 to 1, not {self.hands}")

    @property
    def always(self) -> bool:
        """Whether the opponent is never free."""
        return self.hands == 1 and self.decisions is None


class Response(NamedTuple):
    """A counter-strategy and what it is worth."""

    strategy: Floats
    """(rows, 3), both seats"""
    winnings: float
    """chips per hand from the model, the mean of both seats"""
    exploitability: float
    """chips per hand that a best response wins from it, the mean of both seats"""


def respond(game: Game, belief: Belief, *, iterations: int = ITERATIONS, progress: Progress = no_progress) -> Response:
    """The counter-strategy to what is believed of the opponent."""
    small = SmallGame(game)
    if game.players != 2 or not small.enumerable:
        raise PipelineError(
            f"{game.name}: counter-strategies are found in games of two players whose deals can be listed"
        )
    strategy = np.zeros_like(belief.model)
    match_all(strategy, small.tree.child, small.infos, False, strategy)
    for seat in range(2):
        mine = _rows_of(small, seat)
        found = _best(small, belief, seat) if belief.always else _restricted(small, belief, seat, iterations)
        strategy[mine] = found[mine]
        progress(seat + 1, 2)
    return Response(strategy, winnings(game, strategy, belief.model), ExactSolver(game).exploitability(strategy))


def winnings(game: Game, one: Floats, other: Floats) -> float:
    """Chips per hand that strategy `one` wins from `other`, the mean of both seats."""
    small = SmallGame(game)
    deals, weights = small.deals
    total = 0.0
    for seat in range(2):
        mix = np.where(_rows_of(small, seat)[:, None], one, other)
        total += sweep(tables_of(small), deals, weights, seat, 0.0, False, Learnt(mix, mix, mix, mix))
    return total / 2


def _rows_of(small: SmallGame, seat: int) -> Array:
    """(rows,) whether a decision is that seat's."""
    return np.repeat(small.tree.states[:, S_ACTOR] == seat, small.infos)


def _best(small: SmallGame, belief: Belief, seat: int) -> Floats:
    """The best response of a seat to the model."""
    deals, weights = small.deals
    answer = np.zeros_like(belief.model)
    match_all(answer, small.tree.child, small.infos, False, answer)  # what no deal comes to: any legal action
    best_response(tables_of(small), deals, weights, seat, np.ascontiguousarray(belief.model), answer)
    return answer


def _restricted(small: SmallGame, belief: Belief, seat: int, iterations: int) -> Floats:
    """Our average strategy at a seat against an opponent that is free part of the time."""
    tables, (deals, weights) = tables_of(small), small.deals
    theirs = _rows_of(small, 1 - seat)[:, None]
    sure = np.ones(len(belief.model)) if belief.decisions is None else belief.decisions
    share = np.where(theirs, sure[:, None], 0.0)
    regret, average, chosen, gained = (np.zeros_like(belief.model) for _ in range(4))

    def walk(player: int, mix: Floats, part: float, t: int, into: Floats = regret) -> None:
        """Add the regrets of a share of the hands."""
        if part > 0:
            sweep(tables, deals, weights * part, player, float(t), False, Learnt(into, average, mix, chosen))

    for t in range(1, iterations + 1):
        if t == iterations // FORGOTTEN:
            average[:] = 0.0
        match_all(regret, small.tree.child, small.infos, True, chosen)
        walk(seat, share * belief.model + (1 - share) * chosen, belief.hands, t)
        walk(seat, chosen, 1 - belief.hands, t)
        match_all(regret, small.tree.child, small.infos, True, chosen)
        if belief.decisions is not None:  # by how often it is free at each decision
            gained[:] = 0.0
            walk(1 - seat, share * belief.model + (1 - share) * chosen, belief.hands, t, gained)
            regret += (1 - share) * gained
        walk(1 - seat, chosen, 1 - belief.hands, t)
    out = np.empty_like(average)
    match_all(average, small.tree.child, small.infos, False, out)
    return out
