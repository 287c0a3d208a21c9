"""A bundle as a player: chart before the flop, a model per later street, masked to what is legal.

`masked` turns whatever a model or chart says into what can be played: illegal labels get 0, the rest is scaled to
sum to 1, and a row about which nothing is known (all 0, or not finite) checks or calls, which is always legal. So a
policy is defined in every state that can be reached, betting lines never seen in training included.

Modes: `sample` plays the mix as it is; `argmax` always the likeliest label, as the thesis's agent did; `purify`
drops labels below a threshold (0.15 unless `threshold=` says otherwise) and plays the mix of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.game import CALL, Game
from pipeline.kernels import kernel

__all__ = ["MODES", "Policy", "Source", "bundle_game", "load_policy", "masked"]

Array = npt.NDArray[Any]

SAMPLE, ARGMAX, PURIFY = range(3)
MODES = {"sample": SAMPLE, "argmax": ARGMAX, "purify": PURIFY}


class Source(Protocol):
    """A chart or a model: probabilities for decisions of the streets it knows."""

    def predict(self, rows: Array) -> Array:
        """(rows, labels), not yet masked."""


@dataclass(frozen=True)
class Policy:
    """Plays a game with one source of probabilities per street."""

    name: str
    game: Game
    sources: tuple[Source, ...]
    mode: int = SAMPLE
    threshold: float = 0.15

    def probabilities(self, rows: Array) -> Array:
        streets = rows["street"]
        first = int(streets[0]) if len(rows) else 0
        if (streets == first).all():
            return masked(self.sources[first].predict(rows), rows["legal"], self.mode, self.threshold)
        values = np.zeros((len(rows), len(self.game.labels)))
        for street, source in enumerate(self.sources):
            at = np.flatnonzero(streets == street)
            if len(at) > 0:
                values[at] = source.predict(rows[at])
        return masked(values, rows["legal"], self.mode, self.threshold)


@kernel
def _mask(values: Array, legal: Array, mode: int, threshold: float, out: Array) -> None:
    for i in range(values.shape[0]):
        total = 0.0
        best = CALL
        largest = 0.0
        for j in range(values.shape[1]):
            value = values[i, j]
            kept = value if value > 0 and (legal[i] >> j) & 1 == 1 else 0.0
            out[i, j] = kept
            total += kept
            if kept > largest:
                largest = kept
                best = j
        known = total > 0 and total < np.inf
        if known and mode == PURIFY:
            least = min(threshold * total, largest)
            total = 0.0
            for j in range(values.shape[1]):
                if out[i, j] < least:
                    out[i, j] = 0.0
                total += out[i, j]
        if known and mode != ARGMAX:
            for j in range(values.shape[1]):
                out[i, j] /= total
        else:
            out[i, :] = 0.0
            out[i, best if known else CALL] = 1.0


def masked(values: Array, legal: Array, mode: int = SAMPLE, threshold: float = 0.0) -> Array:
    """Probabilities (rows, labels) to play: `values` kept where `legal` has the label's bit, scaled to sum to 1.

    >>> masked(np.array([[0.2, 0.2, 0.6], [0.5, np.nan, 0.0]]), np.array([3, 2])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    """
    out = np.empty(values.shape)
    _mask(np.ascontiguousarray(values, np.float64), np.ascontiguousarray(legal, np.uint8), mode, float(threshold), out)
    return out


def bundle_game(path: Path) -> Game:
    """The game a bundle was trained for."""
    from pipeline.models.bundle import load_bundle

    game: Game = load_bundle(path).game
    return game


def load_policy(path: Path, options: Mapping[str, str], *, game: Game) -> Policy:
    """The policy of a bundle's folder or zip file."""
    from pipeline.models.bundle import load_bundle

    bundle = load_bundle(path)
    return Policy(path.name, game, tuple(bundle.models[street] for street in range(game.rounds)))
