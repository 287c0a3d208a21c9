"""The interface of agents: probabilities for what the acting player sees.

An agent is asked in bulk: `probabilities(rows)` takes an array of OBSERVATION and gives one row per decision, one
column per label of its game, 0 on illegal actions, rows summing to 1. It keeps nothing between calls, except a
`Learner`, which is told of finished hands in order and may play the next ones differently. A learner that needs longer
to learn than a decision may take has an attribute `background`: where it is set, because a clock runs, `seen` hands the
work to a thread and returns; where it is not, in the arena, the same hands give the same play.

An agent with an attribute `draws` that is true draws its actions itself: `probabilities` gives 1 to the action that it
has just drawn, and asked again it may give it to another. It plays as well as any, but nothing may be computed from its
probabilities as if they were its mix: `estimated_mixes` asks it repeatedly where that is wanted, and what needs exact
ones (imagined hands, estimates from logs) leaves it out or refuses it. Where the attribute is missing, `probabilities`
is the mix: for the same rows it gives the same numbers.

In no-limit games an agent may also name amounts: `amounts(rows, labels)` says how much it bets with a raise label. An
agent that does not bets what the labels stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from pipeline.models.sizes import Amounts
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array

ASKED_TIMES = 16
"""how often an agent that draws its actions is asked at each decision to estimate its probabilities there"""


class Agent(Protocol):
    """Plays a game: probabilities for what the acting player sees."""

    @property
    def name(self) -> str:
        """Return the agent's name in logs."""

    @property
    def game(self) -> Game:
        """Return the game that it plays."""

    def probabilities(self, rows: Array) -> Array:
        """Return float64 (rows, labels): 0 on illegal labels, each row summing to 1."""


class FinishedHands(NamedTuple):
    """Finished hands as one of their players saw them: others' cards only where a showdown showed them."""

    position: Array
    """(n) uint8: position of the player"""
    seats: Array
    """(n, players) uint8: the player at each position; the one who sees is 0, the others keep their numbers"""
    states: Array
    """(n, STATE_SIZE) int64: the final states"""
    labels: Array
    """(n, actions) uint8: label + 1 of each action in order, 0 beyond the last"""
    sizes: Array
    """(n, actions) int64: the total each raise was to (0 in limit games)"""
    hole: Array
    """(n, players, 2) uint8: NO_CARD where not shown"""
    board: Array
    """(n, 5) uint8: NO_CARD where not dealt"""
    payoffs: Array
    """(n, players) float64: net chips by position"""


@runtime_checkable
class Learner(Agent, Protocol):
    """An agent that keeps a profile of its opponents."""

    @property
    def interval(self) -> int:
        """Return the number of hands between two calls of `seen`."""

    def begin(self) -> None:
        """Forget everything, because a new match starts."""

    def seen(self, hands: FinishedHands) -> None:
        """Learn from hands that have just been finished."""


def draws_actions(agent: Agent) -> bool:
    """Return whether an agent draws its actions itself, so that its probabilities are not its mix."""
    return bool(getattr(agent, "draws", False))


@dataclass(frozen=True)
class EstimatedMixes:
    """An agent that draws its actions, with its probabilities estimated by asking it repeatedly."""

    agent: Agent
    times: int = ASKED_TIMES
    draws: bool = True
    """the estimates differ from one time to the next"""

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def game(self) -> Game:
        return self.agent.game

    def probabilities(self, rows: Array) -> Array:
        """Return how often each action was drawn in `times` answers, as shares."""
        return np.mean([self.agent.probabilities(rows) for _ in range(self.times)], axis=0)


def estimated_mixes(agent: Agent, times: int = ASKED_TIMES) -> Agent:
    """Return the agent itself where it gives its probabilities, else with estimates of them."""
    return EstimatedMixes(agent, times) if draws_actions(agent) else agent


def set_background(agent: Learner, background: bool) -> None:
    """Set whether a learner that can learn in a thread does so, from the next match on."""
    if hasattr(agent, "background"):
        agent.background = background


def amounts_of(agent: Agent, rows: Array, labels: Array) -> Amounts | None:
    """Return the amounts that an agent bets with each row's label; None where it names none."""
    ask = getattr(agent, "amounts", None)
    if ask is None or not agent.game.nolimit:
        return None
    amounts: Amounts | None = ask(rows, labels)
    return amounts
