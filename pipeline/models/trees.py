"""Boosted trees that play: LightGBM's trees as arrays, walked by a kernel.

All nodes of all trees lie one after the other: `column`, `threshold`, `left`, `right`; a child below 0 is the leaf
number -1 - child. Tree t adds the value of the leaf a row ends in to the score of label t mod labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.arrays import LARGEST, expect, whole
from pipeline.features import read_only
from pipeline.features.columns import Column
from pipeline.kernels import kernel
from pipeline.models.matrix import from_json, matrix, to_json
from pipeline.models.softmax import softmax

__all__ = ["Trees"]


@dataclass(frozen=True)
class Trees:
    """Probabilities by a softmax over summed leaf values."""

    columns: tuple[Column, ...]
    roots: NDArray[np.int32]
    """a tree's first node; a tree that is one leaf has that instead, as a child below 0"""
    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    children: NDArray[np.int32]
    leaves: NDArray[np.float64]
    labels: int

    @property
    def width(self) -> int:
        """The number of labels."""
        return self.labels

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """(rows, labels) probabilities, 0 for what is not legal."""
        out = np.zeros((len(rows), self.labels))
        _walk(
            matrix(rows, self.columns),
            read_only(self.roots),
            read_only(self.column),
            read_only(self.threshold),
            read_only(self.children),
            read_only(self.leaves),
            out,
        )
        softmax(out, rows["legal"])
        return out

    def to_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {"columns": to_json(self.columns), "labels": self.labels}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What the model's file keeps."""
        names = ("roots", "column", "threshold", "children", "leaves")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def load(cls, kept: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Trees:
        """The inverse of `to_json` and `to_arrays`; trees that point outside of themselves raise `ValueError`.

        A child comes after its node (or is a leaf), so that every walk ends.
        """
        columns, labels = from_json(kept["columns"]), whole(kept["labels"], "labels", 2, 255)
        leaves = expect(arrays, "leaves", np.float64, (None,), -LARGEST, LARGEST)
        column = expect(arrays, "column", np.int32, (None,), 0, len(columns) - 1)
        threshold = expect(arrays, "threshold", np.float64, (len(column),))
        children = expect(arrays, "children", np.int32, (len(column), 2), -len(leaves), len(column) - 1)
        roots = expect(arrays, "roots", np.int32, (None,), -len(leaves), len(column) - 1)
        if not ((children > np.arange(len(column))[:, None]) | (children < 0)).all():
            raise ValueError("a tree's child comes before its parent")
        return cls(columns, roots, column, threshold, children, leaves, labels)


@kernel
def _walk(
    values: NDArray[np.float32],
    roots: NDArray[np.int32],
    column: NDArray[np.int32],
    threshold: NDArray[np.float64],
    children: NDArray[np.int32],
    leaves: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for row in range(len(values)):
        for t in range(len(roots)):
            node = roots[t]
            while node >= 0:
                node = children[node, 0 if values[row, column[node]] <= threshold[node] else 1]
            out[row, t % out.shape[1]] += leaves[-1 - node]
