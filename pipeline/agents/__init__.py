"""Agents: whatever gives probabilities for what a player sees, and the one resolver of their names.

An agent is asked in bulk: `probabilities(rows)` takes an array of OBSERVATION and gives one row per decision, one
column per label of its game, 0 on illegal actions, rows summing to 1. It keeps nothing between calls, except a
`Learner`, which is told of finished hands in order and may play the next ones differently.

An agent is written `@name[:arguments]` for those that come with the package, or as a bundle's folder or zip file
with options, `models/x:mode=argmax,chart=selby` (see `pipeline.policy`). A built-in agent's module has
`make(name, arguments, game)` and is imported only when named.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy.typing as npt

from pipeline.errors import PipelineError, nearest
from pipeline.game import Game, builtin
from pipeline.models.bundle import bundle_game
from pipeline.policy import bundle_name, load_policy

__all__ = [
    "BUILTIN",
    "Agent",
    "Hands",
    "Learner",
    "built_in",
    "bundle_options",
    "default_game",
    "numbers",
    "plain_name",
    "resolve",
]

Array = npt.NDArray[Any]

BUILTIN = {
    "fold": "rules",
    "call": "rules",
    "raise": "rules",
    "random": "rules",
    "chump": "chump",
    "equity": "equity",
    "teacher": "teacher",
    "calibrated": "calibrated",
    "bearl": "bearl",
    "lbr": "lbr",
}
"""The module of each built-in agent."""


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


def default_game(texts: Iterable[str]) -> Game:
    """The game of the first bundle named; with none, limit hold'em for as many players."""
    agents = list(texts)
    for text in agents:
        if not text.startswith("@"):
            return bundle_game(bundle_options(text)[0])
    names = {2: "holdem.limit.2p.reverse_blinds", 3: "holdem.limit.3p"}
    if len(agents) not in names:
        raise PipelineError(f"{len(agents)} agents: hold'em here takes 2 or 3; name another game with --game")
    return builtin(names[len(agents)])


def resolve(text: str, game: Game) -> Agent:
    """The agent that `text` names, for a game."""
    return built_in(text, game) if text.startswith("@") else load_policy(*bundle_options(text), game=game)


def built_in(text: str, game: Game) -> Agent:
    """The agent of an `@name[:arguments]`."""
    name, _, arguments = text.removeprefix("@").partition(":")
    if name not in BUILTIN:
        known = [f"@{other}" for other in BUILTIN]
        raise PipelineError(f"no built-in agent {text!r}{nearest(f'@{name}', known)}")
    agent: Agent = importlib.import_module(f"pipeline.agents.{BUILTIN[name]}").make(name, arguments, game)
    return agent


def bundle_options(text: str) -> tuple[Path, dict[str, str]]:
    """The path and the options of `path[:key=value,...]`."""
    found = re.fullmatch(r"(?P<path>.*?)(?::(?P<options>\w+=[^:]*))?", text)
    assert found is not None
    options = {}
    for part in (found["options"] or "").split(","):
        key, equals, value = part.partition("=")
        if part and not equals:
            raise PipelineError(f"{text!r}: {part!r} is not key=value")
        if part:
            options[key.strip()] = value.strip()
    return Path(found["path"]), options


def numbers(arguments: str, count: int, what: str) -> tuple[float, ...]:
    """`count` numbers separated by commas; `what` shows the form in the error.

    >>> numbers("70,20", 2, "@calibrated:AGGRESSION,RATIONALITY")
    (70.0, 20.0)
    """
    parts = arguments.split(",")
    try:
        values = tuple(float(part) for part in parts)
    except ValueError:
        values = ()
    if len(values) != count:
        raise PipelineError(f"{arguments!r} is not {count} numbers; write {what}")
    return values


def plain_name(text: str) -> str:
    """An agent's text as a name that log lines can hold.

    >>> plain_name("@calibrated:70,20"), plain_name("models/slumbot.zip:mode=argmax")
    ('calibrated-70-20', 'slumbot-mode-argmax')
    """
    if not text.startswith("@"):
        return bundle_name(*bundle_options(text))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text.removeprefix("@")).strip("-") or "agent"
