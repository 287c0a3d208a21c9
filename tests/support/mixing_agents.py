"""Agents that mix at every decision by a hash of what they see, and imperfect copies of agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.models.policy import masked
from pipeline.poker.game import Game
from pipeline.runtime.numeric import hash_rows


@dataclass(frozen=True)
class Hashed:
    """Mixes by a hash of the betting and the ranks it sees; another `seed` is another strategy."""

    game: Game
    seed: int = 0
    name: str = "hashed"

    def probabilities(self, rows: Any) -> Any:
        """Return weights between 0.1 and 1.1 for each legal label, scaled to sum to 1."""
        seen = [rows["betting_codes"][:, street] for street in range(4)]
        seen += [rows["high"], rows["ranks"][:, 0], np.full(len(rows), self.seed)]
        weights = []
        for label in range(len(self.game.labels)):
            keys = np.stack([*seen, np.full(len(rows), label)], axis=1).astype(np.uint64)
            weights.append(0.1 + (hash_rows(keys) >> np.uint64(11)).astype(np.float64) / 2.0**53)
        return masked(np.stack(weights, axis=1), rows["legal"])


@dataclass(frozen=True)
class Copy:
    """Plays like an agent in `1 - bend` of its mix and like another in the rest."""

    source: Agent
    other: Agent
    bend: float
    name: str = "copy"

    @property
    def game(self) -> Game:
        """Return the game of both."""
        return self.source.game

    def probabilities(self, rows: Any) -> Any:
        """Return the mean of both mixes by weight."""
        return (1 - self.bend) * self.source.probabilities(rows) + self.bend * self.other.probabilities(rows)
