"""Agents that play nearly as @teacher does, each departing from it in another way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.agents.teacher import Teacher
from pipeline.models.policy import masked
from pipeline.poker.game import Game
from pipeline.runtime.numeric import hash_rows
from pipeline.solving.lookup import bucket_rows

KINDS = ("pure by cards", "mixed with random", "noise by bucket", "noise by cards", "noise by line")


@dataclass(frozen=True)
class Perturbed:
    """Plays @teacher's probabilities with a change of one of `KINDS`; another `seed` is another agent."""

    teacher: Teacher
    kind: str
    strength: float
    """the share of random play, or the standard deviation of the noise added to logarithms of probabilities"""
    seed: int = 0

    @property
    def name(self) -> str:
        """Return a name that says what was changed."""
        return f"{self.kind.replace(' ', '-')}-{self.strength:g}-{self.seed}"

    @property
    def game(self) -> Game:
        """Return the teacher's game."""
        return self.teacher.game

    def _keys(self, rows: Any) -> Any:
        """Return (rows, n) what the change of a decision depends on."""
        if self.kind == "noise by line":
            return rows["betting_codes"]
        if self.kind == "noise by bucket":
            return bucket_rows(self.teacher.stored.layout, self.teacher.tables, rows)[:, None]
        return np.concatenate([np.sort(rows["hole"][:, :2], axis=1), rows["board"], rows["betting_codes"]], axis=1)

    def _uniform(self, rows: Any, number: int) -> Any:
        """Return a number from 0 to 1 for each row, the same wherever its keys are the same."""
        keys = self._keys(rows).astype(np.uint64)
        salt = np.full((len(rows), 1), 1_000 * self.seed + number, np.uint64)
        return (hash_rows(np.concatenate([keys, salt], axis=1)) >> np.uint64(11)).astype(np.float64) / 2.0**53

    def probabilities(self, rows: Any) -> Any:
        """Return the teacher's probabilities, changed."""
        mix = self.teacher.probabilities(rows)
        if self.kind == "mixed with random":
            uniform = masked(np.ones_like(mix), rows["legal"])
            return (1 - self.strength) * mix + self.strength * uniform
        if self.kind == "pure by cards":
            taken = (mix.cumsum(axis=1) <= self._uniform(rows, 0)[:, None]).sum(axis=1)
            return np.eye(mix.shape[1])[np.minimum(taken, mix.shape[1] - 1)]
        drawn = np.stack([self._uniform(rows, label) for label in range(mix.shape[1])], axis=1)
        noise = np.exp(self.strength * np.sqrt(12) * (drawn - 0.5))
        return masked((mix + 0.02) * noise, rows["legal"])
