"""The loaded agents, by the name under which pages ask for them, and the games that each of them plays.

In go the texts that a person typed on the command line (bundles, folders of bundles, `@name`), out come agents of a
game. Requests name agents by these names only, so that no path and no code can be asked for over the network.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.agents.names import bundle_options, is_bundle, plain_name, resolve
from pipeline.agents.protocol import Agent, Learner
from pipeline.evaluation.evaluation import bundles_in, short_names
from pipeline.models.bundle import bundle_game, read_bundle_manifest
from pipeline.models.policy import HISTORY_GAMES
from pipeline.poker.game import Game, builtin
from pipeline.runtime.errors import PipelineError, nearest

DEFAULT_AGENTS = ("@teacher", "@equity")
DEFAULT_GAME = "holdem.limit.2p.reverse_blinds"


@dataclass(frozen=True)
class LoadedAgent:
    """One loaded agent."""

    name: str
    """its name on pages"""
    text: str
    """the name that was typed"""
    games: tuple[str, ...]
    """names of the games that it plays"""
    imitates: tuple[str, ...]
    """players whose logs a bundle was trained on"""
    log_name: str
    """its name in logs"""

    def as_dict(self) -> dict[str, Any]:
        """Return what pages show of it: not the path."""
        return {
            "name": self.name,
            "games": list(self.games),
            "imitates": list(self.imitates),
            "kind": "bundle" if is_bundle(self.text) else "built in",
        }


class Roster:
    """Loaded agents.

    Parameters: `texts` as typed (the teacher and a rule-based agent where there are none), `games` to offer beside the
    bundles' own.
    """

    def __init__(self, texts: Sequence[str], games: Sequence[Game] = ()) -> None:
        typed = [bundle for text in texts or DEFAULT_AGENTS for bundle in bundles_in(text)]
        self.games: dict[str, Game] = {game.name: game for game in games}
        own = {text: bundle_game(bundle_options(text)[0]) for text in typed if is_bundle(text)}
        for game in own.values():
            if game.name not in HISTORY_GAMES:
                self.games.setdefault(game.name, game)
        if not self.games:
            self.games[DEFAULT_GAME] = builtin(DEFAULT_GAME)
        self._opened: dict[tuple[str, str], Agent] = {}
        self._lock = threading.Lock()
        self.entries: dict[str, LoadedAgent] = {}
        for name, text in zip(short_names(typed), typed, strict=True):
            self.entries[name] = self._entry(name, text, own.get(text))

    def _entry(self, name: str, text: str, own: Game | None) -> LoadedAgent:
        """Open an agent in every game that it plays; one that plays none of them is refused."""
        wanted = list(self.games.values()) if own is None or own.name in HISTORY_GAMES else [self.games[own.name]]
        refused: PipelineError | None = None
        for game in wanted:
            try:
                self._opened[name, game.name] = resolve(text, game, trusted=True)
            except PipelineError as error:
                refused = refused or error
        playable = tuple(game.name for game in wanted if (name, game.name) in self._opened)
        if not playable:
            raise refused or PipelineError(f"{text} plays no game here")
        imitates: tuple[str, ...] = ()
        if own is not None:
            imitates = tuple(read_bundle_manifest(bundle_options(text)[0]).get("agents", ()))
        return LoadedAgent(name, text, playable, imitates, plain_name(text))

    def game(self, name: str) -> Game:
        """Return a game by its name; without one the first."""
        if not name:
            return next(iter(self.games.values()))
        if name not in self.games:
            raise PipelineError(f"no game {name[:80]!r} is loaded{nearest(name[:80], self.games)}")
        return self.games[name]

    def title(self, game: Game) -> str:
        """Return a game in words; its own name where the words do not tell it apart."""
        words = {name: _title(one) for name, one in self.games.items()}
        return words[game.name] if list(words.values()).count(words[game.name]) == 1 else game.name

    def playing(self, game: Game) -> list[LoadedAgent]:
        """Return the agents that play a game."""
        return [entry for entry in self.entries.values() if game.name in entry.games]

    def entry(self, name: str, game: Game) -> LoadedAgent:
        """Return a loaded agent that plays a game, by its name; without one the first."""
        candidates = {entry.name: entry for entry in self.playing(game)}
        if not name and candidates:
            return next(iter(candidates.values()))
        if name not in candidates:
            raise PipelineError(f"no agent {name[:80]!r} of {game.name} is loaded{nearest(name[:80], candidates)}")
        return candidates[name]

    def agent(self, name: str, game: Game) -> Agent:
        """Return the agent itself, to be asked."""
        return self._opened[self.entry(name, game).name, game.name]

    def mixes(self, game: Game, row: Any) -> list[dict[str, Any]]:
        """Return the mix of every agent that plays a game at one row of OBSERVATION."""
        agents = [(entry.name, self.agent(entry.name, game)) for entry in self.playing(game)]
        return [{"agent": name, "mix": np.round(agent.probabilities(row)[0], 5).tolist()} for name, agent in agents]

    def opponent(self, name: str, game: Game) -> Agent:
        """Return the agent to sit down against: one that learns is opened anew, so that two tables do not mix."""
        agent = self.agent(name, game)
        if not isinstance(agent, Learner):
            return agent
        with self._lock:
            return resolve(self.entry(name, game).text, game, trusted=True)


def _title(game: Game) -> str:
    """Return a game in words.

    >>> _title(builtin("holdem.nolimit.3p")), _title(builtin("leduc.limit.2p"))
    ("No-limit hold'em, 3 players", 'Leduc, 2 players')
    """
    kind = ("No-limit" if game.nolimit else "Limit") + " hold'em" if game.is_holdem else game.name.split(".")[0].title()
    return f"{kind}, {game.players} players"
