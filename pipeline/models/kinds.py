"""Kinds of models: the class of each, and the one way to open a model from a manifest's entry and its arrays.

A model has the methods of `Model` and a class method `load(entry, arrays)`, which restores it from what `to_json` and
`to_arrays` returned; anybody may have written these, so arrays that no training could have written, or that do not fit
each other, raise `ValueError`. Classes are imported when a model of their kind is opened, so that a bot imports only
the kinds that it plays.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.array_types import Array

KINDS = {
    "loglinear": ("pipeline.models.loglinear", "LogLinear"),
    "trees": ("pipeline.models.trees", "Trees"),
    "classes": ("pipeline.models.classes", "Classes"),
    "blend": ("pipeline.models.blend", "Blend"),
    "chart": ("pipeline.models.charts", "Chart"),
    "tilted": ("pipeline.models.prior", "PriorTimesFeatures"),
    "agent": ("pipeline.models.prior", "AgentPrior"),
}
"""module and class of each kind, by the name that manifests have for it"""


class Model(Protocol):
    """A model of the decisions of one or more streets."""

    @property
    def width(self) -> int:
        """Number of labels."""

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """Return probabilities (rows, labels), 0 for illegal labels."""

    def to_json(self) -> dict[str, Any]:
        """Return the model's entry in a manifest."""

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays of the model's file."""


def kind_of(model: Any) -> str:
    """Return the name of a model's kind."""
    return next(kind for kind, (_, name) in KINDS.items() if name == type(model).__name__)


def load_model(kind: str, entry: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    """Open a model of a kind from its entry in a manifest and its arrays; unsound ones raise `ValueError`."""
    module, name = KINDS[kind]
    return getattr(import_module(module), name).load(entry, arrays)


def add_prefix(prefix: object, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays of a part of a model, named for the file of the whole.

    >>> list(add_prefix("prior 0", {"keys": np.zeros(1)}))
    ['prior 0 keys']
    """
    return {f"{prefix} {name}": array for name, array in arrays.items()}


def remove_prefix(prefix: object, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of one part from those of the whole: the inverse of `add_prefix`."""
    start = f"{prefix} "
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
