"""What can be had without looking at the cards, to compare models with; counted on the training rows.

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
from pipeline.runtime.array_types import Array, Bools, Floats
from pipeline.runtime.numeric import bit_table, hash_rows

BASELINES = {
    "(uniform)": "every legal action alike",
    "(street)": "how often the agent takes each action on the street",
    "(betting)": "how often it takes each action after the same betting, in the same position",
}


def legal_labels(rows: Array, labels: int) -> Bools:
    """The bits of `legal` as a table (rows, labels)."""
    return bit_table(rows["legal"], labels)


@dataclass(frozen=True)
class _Uniform:
    labels: int

    def probabilities(self, rows: Array) -> Array:
        legal = legal_labels(rows, self.labels)
        return np.asarray(legal / legal.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Counted:
    """Frequencies by key; a key not seen is played as its street is, and a street not seen evenly."""

    keys: Array
    mix: Floats
    by_street: Floats
    betting: bool

    def probabilities(self, rows: Array) -> Array:
        found = self.by_street[rows["street"]]
        if self.betting:
            keys = _betting(rows)
            at = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
            found = np.where((self.keys[at] == keys)[:, None], self.mix[at], found)
        kept = found * legal_labels(rows, self.mix.shape[1])
        total = kept.sum(axis=1, keepdims=True)
        even = _Uniform(self.mix.shape[1]).probabilities(rows)
        return np.asarray(np.where(total > 0, kept / np.where(total > 0, total, 1.0), even))


def _betting(rows: Array) -> npt.NDArray[np.uint64]:
    """A number for street, position and the whole betting so far."""
    place = rows["street"].astype(np.uint64) * np.uint64(64) + rows["position"].astype(np.uint64)
    return hash_rows(np.column_stack([place, rows["betting_codes"].astype(np.uint64)]))


def baselines(agent: str, labels: str, rows: Array, taken: Array) -> list[Candidate]:
    """Uniform play, and what counting the training rows without looking at the cards gives."""
    count = len(labels)
    found = [Candidate("(uniform)", BASELINE, (agent,), _Uniform(count))]
    if len(rows) == 0:
        return found
    hot = np.eye(count)[taken.astype(np.int64)]
    by_street = np.zeros((len(STREETS), count))
    np.add.at(by_street, rows["street"], hot)
    by_street = (by_street + 1.0 / count) / (by_street + 1.0 / count).sum(axis=1, keepdims=True)
    keys, inverse = np.unique(_betting(rows), return_inverse=True)
    mix = np.stack([np.bincount(inverse, weights=hot[:, label]) for label in range(count)], axis=1)
    first = np.zeros(len(keys), dtype=np.int64)
    first[inverse] = rows["street"]
    mix = (mix + by_street[first]) / (mix.sum(axis=1, keepdims=True) + 1.0)
    for name, betting in (("(street)", False), ("(betting)", True)):
        found.append(Candidate(name, BASELINE, (agent,), _Counted(keys, mix, by_street, betting)))
    return found
