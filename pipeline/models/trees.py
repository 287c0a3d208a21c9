"""Boosted trees that play: LightGBM's trees as arrays, walked by a kernel.

All nodes of all trees lie one after the other: the `column` that a node looks at, its `threshold`, and its two
`children`, the lower one first; a child below 0 is the leaf number -1 - child. `roots` says where each tree begins.
Tree t adds the value of the leaf that a row ends in to the score of label t mod labels.

For playing, nodes and leaves are laid out once more, in one table of whole numbers (`Layout`): columns hold whole
numbers, so a threshold may be rounded down, and a leaf leads to itself, so that four rows can go down a tree side by
side without waiting for one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.arrays import LARGEST, expect, whole
from pipeline.features.columns import Column
from pipeline.kernels import kernel
from pipeline.models.matrix import from_json, to_json, whole_numbers
from pipeline.models.softmax import softmax

__all__ = ["Trees"]


# Columns of `Layout.nodes`
COLUMN, THRESHOLD, LOWER, HIGHER = range(4)
ROWS_TOGETHER = 64
"""rows that go through all trees before the next ones: their values stay in the processor's cache"""
MOST = np.iinfo(np.int32).max


class Layout(NamedTuple):
    """Trees as the kernel walks them: inner nodes first, then the leaves."""

    nodes: NDArray[np.int32]
    """(nodes and leaves, 4): a column, the greatest value that goes to the lower child, both children"""
    inner: int
    """how many are inner nodes"""
    roots: NDArray[np.int32]
    leaves: NDArray[np.float64]


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
        _walk(whole_numbers(rows, self.columns), self.layout, out)
        softmax(out, rows["legal"])
        return out

    @cached_property
    def layout(self) -> Layout:
        """The trees laid out for walking."""
        inner, leaves = len(self.column), len(self.leaves)
        nodes = np.empty((inner + leaves, 4), np.int32)
        nodes[:inner, COLUMN] = self.column
        nodes[:inner, THRESHOLD] = np.clip(np.floor(self.threshold), -1 - MOST, MOST - 1)
        nodes[:inner, LOWER:] = np.where(self.children < 0, inner - 1 - self.children, self.children)
        nodes[inner:, COLUMN], nodes[inner:, THRESHOLD] = 0, MOST
        nodes[inner:, LOWER] = nodes[inner:, HIGHER] = np.arange(inner, inner + leaves)
        roots = np.where(self.roots < 0, inner - 1 - self.roots, self.roots).astype(np.int32)
        return Layout(nodes, inner, roots, np.array(self.leaves))

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


@kernel(leaf=True)
def _next(nodes: NDArray[np.int32], node: int, values: NDArray[np.int32], row: int) -> int:
    """The child of a node that a row goes to; a leaf is its own."""
    higher = values[row, nodes[node, COLUMN]] > nodes[node, THRESHOLD]
    return int(nodes[node, HIGHER] if higher else nodes[node, LOWER])


@kernel
def _walk(values: NDArray[np.int32], trees: Layout, out: NDArray[np.float64]) -> None:
    nodes, inner, leaves = trees.nodes, trees.inner, trees.leaves
    for first in range(0, len(values), ROWS_TOGETHER):
        last = min(len(values), first + ROWS_TOGETHER)
        for t in range(len(trees.roots)):
            root, label = int(trees.roots[t]), t % out.shape[1]
            row = first
            while row + 4 <= last:  # one row waits for memory at each node, four do so at the same time
                a, b, c, d = root, root, root, root
                while min(min(a, b), min(c, d)) < inner:
                    a = _next(nodes, a, values, row)
                    b = _next(nodes, b, values, row + 1)
                    c = _next(nodes, c, values, row + 2)
                    d = _next(nodes, d, values, row + 3)
                out[row, label] += leaves[a - inner]
                out[row + 1, label] += leaves[b - inner]
                out[row + 2, label] += leaves[c - inner]
                out[row + 3, label] += leaves[d - inner]
                row += 4
            while row < last:
                a = root
                while a < inner:
                    a = _next(nodes, a, values, row)
                out[row, label] += leaves[a - inner]
                row += 1
