"""Baselines to compare models with: mixes that do not look at the cards, counted on the training rows.

    (uniform)   every legal action alike
    (street)    how often the agent takes each action on the street
    (betting)   the same by street, position and the whole betting so far

In go a dataset and its agents, out come `Candidate`s that are scored as models are. `BASELINES` explains them to
readers of tables. (`train --algorithm frequency` is a bundle that can play; these are only scored.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import select_rows
from pipeline.dataset.opening import list_agents
from pipeline.evaluation.scoring import BASELINE, Candidate
from pipeline.models.policy import masked
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array, Floats, Ints
from pipeline.runtime.numeric import hash_rows

BASELINES = {
    "(uniform)": "every legal action alike",
    "(street)": "how often the agent takes each action on the street",
    "(betting)": "how often it takes each action after the same betting, in the same position",
}


@dataclass(frozen=True)
class _CountedMixes:
    """Mixes by the whole betting, with back-off to those by street where a betting was never counted."""

    by_street: Floats
    keys: Array | None = None
    by_betting: Floats | None = None

    def probabilities(self, rows: Array) -> Array:
        mixes = self.by_street[rows["street"]]
        if self.keys is not None and self.by_betting is not None:
            keys = _betting(rows)
            place = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
            mixes = np.where((self.keys[place] == keys)[:, None], self.by_betting[place], mixes)
        return masked(mixes, rows["legal"])


def _betting(rows: Array) -> npt.NDArray[np.uint64]:
    """Hash street, position and the whole betting so far of each row."""
    place = rows["street"].astype(np.uint64) * np.uint64(64) + rows["position"].astype(np.uint64)
    return hash_rows(np.column_stack([place, rows["betting_codes"].astype(np.uint64)]))


@dataclass(frozen=True)
class _BettingCounts:
    """How often each agent took each action after each betting: rows of hash, agent, street and a count per label."""

    key: npt.NDArray[np.uint64]
    agent: Ints
    street: Ints
    counts: Floats
    """(rows, labels)"""

    @classmethod
    def of(cls, key: npt.NDArray[np.uint64], agent: Array, street: Array, counts: Floats) -> _BettingCounts:
        """Add up rows of the same agent and betting."""
        order = np.lexsort((key, agent))
        new = np.flatnonzero((np.diff(key[order], prepend=key[:1] + 1) != 0) | (np.diff(agent[order], prepend=-1) != 0))
        sums = np.add.reduceat(counts[order], new, axis=0) if len(new) else counts
        first = order[new]
        return cls(key[first], agent[first].astype(np.int64), street[first].astype(np.int64), sums)


MERGED_ROWS = 1 << 20
"""rows of counts that are waiting to be added up"""


def count_baselines(
    data: Path, agents: Sequence[str], game: Game, *, with_cards: bool = False
) -> list[list[Candidate]]:
    """Count the baselines of some agents on their training rows, which are read once and in pieces.

    Parameters: `with_cards` to leave out rows whose cards are unknown. Returns the baselines by agent.
    """
    numbers = {agent: number for number, agent in enumerate(agents)}
    everyone = None if len(agents) == len(list_agents(data)) else agents
    nothing = np.zeros(0, np.int64)
    waiting = [_BettingCounts(nothing.astype(np.uint64), nothing, nothing, np.zeros((0, len(game.labels))))]
    for _, piece in select_rows(data, everyone, game=game.name).pieces():
        chosen = np.flatnonzero(~piece.validation & (piece.known | (not with_cards)))
        rows = piece.rows[chosen]
        agent = np.array([numbers[name] for name in piece.agents], np.int64)[piece.agent[chosen]]
        hot = np.eye(len(game.labels))[piece.action[chosen].astype(np.int64)]
        waiting.append(_BettingCounts.of(_betting(rows), agent, rows["street"], hot))
        if sum(len(part.key) for part in waiting) > MERGED_ROWS:
            waiting = [_merge(waiting)]
    counted = _merge(waiting)
    bounds = np.searchsorted(counted.agent, np.arange(len(agents) + 1))
    return [_baselines(agent, counted, slice(*bounds[i : i + 2]), len(game.labels)) for i, agent in enumerate(agents)]


def _merge(parts: Sequence[_BettingCounts]) -> _BettingCounts:
    """Add up the counts of several pieces."""
    columns = zip(*((part.key, part.agent, part.street, part.counts) for part in parts), strict=True)
    return _BettingCounts.of(*map(np.concatenate, columns))


def baselines(agent: str, labels: str, rows: Array, taken: Array) -> list[Candidate]:
    """Count the baselines of an agent on some of its rows; uniform play, the first one, needs none."""
    zeros, hot = np.zeros(len(rows), np.int64), np.eye(len(labels))[taken.astype(np.int64)]
    return _baselines(agent, _BettingCounts.of(_betting(rows), zeros, rows["street"], hot), slice(None), len(labels))


def _baselines(agent: str, counted: _BettingCounts, own: slice, count: int) -> list[Candidate]:
    """Make an agent's baselines of its counts.

    Counts are smoothed: each street by one decision that takes every action alike, each betting by one of its street.
    """
    uniform = Candidate("(uniform)", BASELINE, (agent,), _CountedMixes(np.ones((len(STREETS), count))))
    counts, street = counted.counts[own], counted.street[own]
    if len(counts) == 0:
        return [uniform]
    by_street = np.full((len(STREETS), count), 1.0 / count)
    np.add.at(by_street, street, counts)
    by_street /= by_street.sum(axis=1, keepdims=True)
    by_betting = (counts + by_street[street]) / (counts.sum(axis=1, keepdims=True) + 1.0)
    players = {
        "(street)": _CountedMixes(by_street),
        "(betting)": _CountedMixes(by_street, counted.key[own], by_betting),
    }
    return [uniform, *(Candidate(name, BASELINE, (agent,), mixes) for name, mixes in players.items())]
