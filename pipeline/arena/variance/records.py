"""Finished hands with all hole cards, as results are adjusted from them, and whether stated probabilities fit them.

The room holds what goes in: `HandRecords`, made by the arena from its blocks and by `pipeline.arena.variance.logs` from
logs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

LIMIT_OF_DOUBT = 5.0
"""standard errors beyond which stated probabilities are not those that were played: chance does it once in 10^6"""


@dataclass(frozen=True)
class HandRecords:
    """Finished hands; all arrays have a row per hand."""

    game: Game
    hole: Array
    """(hands, players, 2) uint8: everybody's cards, by position"""
    board: Array
    """(hands, 5) uint8: the board cards that were dealt"""
    labels: Array
    """(hands, actions) uint8: label + 1 of each action in order, 0 beyond the last"""
    sizes: Array
    """(hands, actions) int64: the total each raise was to (0 in limit games)"""
    payoffs: Array
    """(hands, players) float64: net chips by position"""
    seats: Array
    """(hands, players) int64: the number of the agent at each position"""
    deals: Array
    """(hands,) uint64: hands with the same number share their cards and are never used to adjust each other"""
    streams: Array
    """(hands,) uint64: seeds that know nothing of the board and of the play"""
    probabilities: Array | None = None
    """(hands, actions, labels): the actor's mix at each action, NaN where it is not known"""
    share: Array | None = None
    """(rows,): where rows are imagined holdings of a hand, how likely each is; those of a hand add up to 1"""
    of: Array | None = None
    """(rows,) int64: the number of the hand that an imagined row belongs to; its rows lie side by side"""

    def __post_init__(self) -> None:
        players = self.game.players
        if self.hole.shape[1:] != (players, 2) or self.payoffs.shape != (len(self.hole), players):
            raise PipelineError(
                f"{self.game.name} has {players} players; the hole cards have shape {self.hole.shape} and the payoffs "
                f"{self.payoffs.shape}"
            )

    def __len__(self) -> int:
        return len(self.hole)

    @property
    def firsts(self) -> Array:
        """(hands,) int64: the first row of each hand; every row's number unless holdings are imagined."""
        if self.of is None:
            return np.arange(len(self))
        return np.flatnonzero(np.diff(self.of, prepend=-1))

    def take(self, rows: Any) -> HandRecords:
        """Some of the hands: a slice, a mask or row numbers."""
        parts: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "game"}
        taken: dict[str, Any] = {name: part if part is None else part[rows] for name, part in parts.items()}
        return replace(self, **taken)


def misfit(labels: Array, probabilities: Array) -> float:
    """How many standard errors the actions taken are from the mixes that are said to be behind them; infinite if an
    action was taken that had no chance.

    Under the stated mix p each of these sums has mean zero: of 1[taken = a] - p(a) for every label a, and of
    log p(taken) - sum p log p, which notices rows that belong to other decisions. The largest in standard errors is
    returned; `LIMIT_OF_DOUBT` is far beyond what chance gives.

    Parameters: `labels` (decisions,), the label taken, from 0; `probabilities` (decisions, labels), without NaN.

    >>> mixes = np.tile([0.25, 0.5, 0.25], (400, 1))
    >>> round(misfit(np.array([0, 1, 1, 2] * 100), mixes), 6)
    0.0
    >>> misfit(np.array([0, 0, 1, 2] * 100), mixes) > LIMIT_OF_DOUBT
    True
    """
    if len(labels) == 0:
        return 0.0
    mixes = np.asarray(probabilities, np.float64)
    taken = mixes[np.arange(len(labels)), labels]
    if bool((taken <= 1e-12).any()):
        return float("inf")
    found = [0.0]
    for label in range(mixes.shape[1]):
        spread = (mixes[:, label] * (1.0 - mixes[:, label])).sum()
        if spread > 1.0:
            found.append(((labels == label) - mixes[:, label]).sum() / np.sqrt(spread))
    logs = np.log(np.maximum(mixes, 1e-12))
    mean = (mixes * logs).sum(axis=1)
    spread = (mixes * logs**2).sum(axis=1) - mean**2
    if spread.sum() > 0.1:
        found.append((np.log(taken) - mean).sum() / np.sqrt(spread.sum()))
    return float(np.abs(found).max())
