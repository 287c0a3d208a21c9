"""What an agent is: whatever gives probabilities for what a player sees.

An agent is asked in bulk: `probabilities(rows)` takes an array of OBSERVATION and gives one row per decision, one
column per label of its game, 0 on illegal actions, rows summing to 1. It keeps nothing between calls, except a
`Learner`, which is told of finished hands in order and may play the next ones differently. A learner whose looking
back takes longer than a decision may has an attribute `background`: where it is set, because a clock runs, `seen` hands
the work to a thread and returns; where it is not, in the arena, the same hands give the same play.

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
        """What logs call it."""

    @property
    def game(self) -> Game:
        """The game it plays."""

    def probabilities(self, rows: Array) -> Array:
        """Float64 (rows, labels): 0 on illegal labels, each row summing to 1."""


class FinishedHands(NamedTuple):
    """Finished hands as one of their players saw them: others' cards only where a showdown showed them."""

    position: Array
    """(n) uint8: where the player sat"""
    seats: Array
    """(n, players) uint8: who sat at each position; the player itself is 0, the others keep their numbers"""
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
        """How many hands it plays between two looks at what happened."""

    def begin(self) -> None:
        """A new match starts: forget."""

    def seen(self, hands: FinishedHands) -> None:
        """Hands that have just been finished."""


def set_background(agent: Learner, background: bool) -> None:
    """Let a learner that can look back in a thread while it decides, or not, from the next match on."""
    if hasattr(agent, "background"):
        agent.background = background


def amounts_of(agent: Agent, rows: Array, labels: Array) -> Amounts | None:
    """How much an agent bets with each row's label; none where it names no amounts."""
    ask = getattr(agent, "amounts", None)
    if ask is None or not agent.game.nolimit:
        return None
    amounts: Amounts | None = ask(rows, labels)
    return amounts
