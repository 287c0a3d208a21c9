"""Baselines to compare models with: mixes that do not look at the cards, counted on the training rows.

    (uniform)   every legal action alike
    (street)    how often the agent takes each action on the street
    (betting)   the same by street, position and the whole betting so far

In go an agent's training rows, out come `Candidate`s that are scored as models are. `BASELINES` explains them to
readers of tables. (`train --algorithm frequency` is a bundle that can play; these are only scored.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.dataset.decisions import STREETS
from pipeline.evaluation.scoring import BASELINE, Candidate
from pipeline.models.policy import masked
from pipeline.runtime.array_types import Array, Floats
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


def baselines(agent: str, labels: str, rows: Array, taken: Array) -> list[Candidate]:
    """Count the baselines of an agent on its training rows; uniform play needs none.

    Counts are smoothed: each street by one decision that takes every action alike, each betting by one of its street.
    """
    count = len(labels)
    players = {"(uniform)": _CountedMixes(np.ones((len(STREETS), count)))}
    if len(rows) > 0:
        hot = np.eye(count)[taken.astype(np.int64)]
        by_street = np.zeros((len(STREETS), count))
        np.add.at(by_street, rows["street"], hot)
        by_street = (by_street + 1.0 / count) / (by_street + 1.0 / count).sum(axis=1, keepdims=True)
        keys, inverse = np.unique(_betting(rows), return_inverse=True)
        counts = np.stack([np.bincount(inverse, weights=hot[:, label]) for label in range(count)], axis=1)
        street = np.zeros(len(keys), dtype=np.int64)
        street[inverse] = rows["street"]
        by_betting = (counts + by_street[street]) / (counts.sum(axis=1, keepdims=True) + 1.0)
        players |= {"(street)": _CountedMixes(by_street), "(betting)": _CountedMixes(by_street, keys, by_betting)}
    return [Candidate(name, BASELINE, (agent,), player) for name, player in players.items()]
