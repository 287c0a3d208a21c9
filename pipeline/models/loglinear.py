"""A log-linear model that plays: features, their sorted hashes, a weight per feature and label.

Max-ent, MEMM and CRF models, scikit-learn's logistic regression and the counted baselines all end as one of these:
they differ in how the weights were fitted and in whether the pattern knows the player's previous action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.encoding import Features, Rows, from_json, to_arrays, to_json
from pipeline.features.textrows import TextRows
from pipeline.features.vocabulary import Vocabulary
from pipeline.models.softmax import probabilities
from pipeline.runtime.arrays import MAX_WEIGHT, expect, expect_ascending


@dataclass(frozen=True)
class LogLinear:
    """Softmax over the summed weights of the features that a row fires."""

    features: Features
    keys: NDArray[np.uint64]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, features: Features, keys: NDArray[np.uint64], weights: NDArray[Any]) -> LogLinear:
        """Make a model of features in any order; those without a weight are left out."""
        active = np.flatnonzero((weights != 0).any(axis=1))
        active = active[np.argsort(keys[active])]
        return cls(features, keys[active], weights[active].astype(np.float32))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.keys)

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    @property
    def is_for_text(self) -> bool:
        """True if it reads text rows."""
        return self.features.text

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        out = np.empty((len(rows), self.weights.shape[1]))
        legal = rows.legal if isinstance(rows, TextRows) else np.ascontiguousarray(rows["legal"])
        for part, hashes in self.features.pieces(rows):
            out[part] = probabilities(self.vocabulary.find(hashes), legal[part], self.weights)
        return out

    def strongest(self, rows: Rows, count: int) -> list[tuple[int, int, int]]:
        """Return (feature, row, template) of the features fired whose weights differ most between labels."""
        ids = self.vocabulary.find(self.features.hashes(rows))
        fired, example = np.unique(ids, return_index=True)
        has_weight = fired >= 0
        fired, example = fired[has_weight], example[has_weight]
        spread = np.ptp(self.weights[fired], axis=1)
        order = np.argsort(-spread, kind="stable")[:count]
        width = ids.shape[1]
        return [(int(fired[i]), int(example[i]) // width, int(example[i]) % width) for i in order]

    def to_json(self) -> dict[str, Any]:
        return {"features": to_json(self.features)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"keys": self.keys, "weights": self.weights, **to_arrays(self.features)}

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> LogLinear:
        keys = expect(arrays, "keys", np.uint64, (None,))
        expect_ascending(keys, "keys")
        weights = expect(arrays, "weights", np.float32, (len(keys), None), -MAX_WEIGHT, MAX_WEIGHT)
        return cls(from_json(entry["features"], arrays), keys, weights)
