"""Arguments of the public functions: one text or several, paths as texts, games and agents by name or themselves.

A bundle that is open, and all else that lies at a path and plays, is an `os.PathLike`: wherever a path or an agent's
name may stand, so may it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pipeline.agents.names import default_game, resolve
from pipeline.agents.protocol import Agent
from pipeline.poker.game import Game, find_game

AnyPath = str | os.PathLike[str]
Texts = str | Sequence[str]
Paths = AnyPath | Sequence[AnyPath]


def texts(given: Paths) -> tuple[str, ...]:
    """Return one text or path, or several, as a tuple of texts.

    >>> texts("flop"), texts(["flop", "turn"])
    (('flop',), ('flop', 'turn'))
    """
    return tuple(os.fspath(text) for text in ((given,) if isinstance(given, str | os.PathLike) else given))


def named_game(given: Game | AnyPath) -> Game:
    """Return a game itself, or the one of this name."""
    return given if isinstance(given, Game) else find_game(os.fspath(given))


def agent_or_name(given: AnyPath | Agent) -> str | Agent:
    """Return an agent itself, or the name or path of one as a text."""
    return os.fspath(given) if isinstance(given, str | os.PathLike) else given


def rules_for(game: Game | AnyPath | None, agents: Sequence[AnyPath | Agent], table: Sequence[AnyPath | Agent]) -> Game:
    """Return the game that is named, else the first agent object's, else the default of those who sit at a table."""
    if game is not None:
        return named_game(game)
    games = [agent.game for agent in map(agent_or_name, agents) if not isinstance(agent, str)]
    return games[0] if games else default_game([str(agent_or_name(name)) for name in table])


def seat(given: AnyPath | Agent, game: Game) -> Agent:
    """Return an agent itself, or the one of this name, as a player of a game."""
    agent = agent_or_name(given)
    return resolve(agent, game) if isinstance(agent, str) else agent
