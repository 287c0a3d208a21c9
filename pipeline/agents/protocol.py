"""The interface of agents: probabilities for what the acting player sees.

An agent is asked in bulk: `probabilities(rows)` takes an array of OBSERVATION and gives one row per decision, one
column per label of its game, 0 on illegal actions, rows summing to 1. It keeps nothing between calls, except a
`Learner`, which is told of finished hands in order and may play the next ones differently. A learner that needs longer
to learn than a decision may take has an attribute `background`: where it is set, because a clock runs, `seen` hands the
work to a thread and returns; where it is not, in the arena, the same hands give the same play.

In no-limit games an agent may also name amounts: `amounts(rows, labels)` says how much it bets with a raise label. An
agent that does not bets what the labels stand for.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from pipeline.models.sizes import Amounts
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array


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
