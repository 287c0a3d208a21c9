"""Boosted trees that play: LightGBM's trees as arrays, walked by a kernel.

All nodes of all trees lie one after the other: the `column` that a node looks at, its `threshold`, and its two
`children`, the lower one first; a child below 0 is the leaf number -1 - child. `roots` says where each tree begins.
Tree t adds the value of the leaf that a row ends in to the score of label t mod labels.

For playing, trees are laid out once more (`Layout`): label by label, the nodes of a tree level by level with siblings
side by side, a node in eight bytes. Thresholds are numbers of *bins*: a row's values are cut once at all thresholds of
their column, so that a few bytes of a row meet a few bytes of a tree and both stay in the processor's nearest cache.
Sixteen walks go down side by side, since a single one waits for memory at every node; a leaf leads to itself until the
last of them has arrived. Trees of labels that are not legal in a row are not walked.
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
from pipeline.models.softmax import legal_masks, softmax

__all__ = ["Trees"]

PIECE = 1024
"""rows whose columns are read together"""
ROWS_TOGETHER = 256
"""rows that go through a tree before the next tree: their bins stay in the processor's nearest cache"""
LANES = 16
"""walks side by side"""
MOST_BINS = 2**16 - 1
SIXTEEN = 2**16 - 1
BIN_AT, CHILD_AT = 16, 32
"""where a node's bin and first child begin, in bits; its column comes first"""
FARTHEST = 2**53
"""thresholds beyond this are beyond every value"""


class Layout(NamedTuple):
    """Trees as the kernel walks them."""

    edges: NDArray[np.int64]
    """the different thresholds of each column, ascending, column after column"""
    edge_starts: NDArray[np.int64]
    """where each column's thresholds begin, and where the last ones end"""
    nodes: NDArray[np.uint64]
    """a column, the highest bin that goes to the first child, and that child, which the second one follows"""
    values: NDArray[np.float64]
    """what a leaf adds; 0 for inner nodes"""
    roots: NDArray[np.int64]
    """the first node of each tree, label by label"""
    label_starts: NDArray[np.int64]
    """where each label's trees begin among the roots, and where the last ones end"""


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
        masks = legal_masks(self.labels)
        for first in range(0, len(rows), PIECE):
            part = rows[first : first + PIECE]
            values, scores = whole_numbers(part, self.columns), out[first : first + PIECE]
            bins = np.empty(values.shape, np.uint16)
            _cut(values, self.layout, bins)
            _walk(bins, masks[part["legal"]] == 0, self.layout, scores)
            softmax(scores, part["legal"])
        return out

    @cached_property
    def layout(self) -> Layout:
        """The trees laid out for walking."""
        limits = np.floor(self.threshold)  # columns hold whole numbers
        edges = [np.unique(limits[self.column == at]) for at in range(len(self.columns))]
        bins = np.zeros(len(self.column), np.int64)
        for at, found in enumerate(edges):
            here = self.column == at
            bins[here] = np.searchsorted(found, limits[here])
        counts = [len(range(label, len(self.roots), self.labels)) for label in range(self.labels)]
        by_label = np.concatenate([self.roots[label :: self.labels] for label in range(self.labels)])
        size = len(self.roots) + 2 * len(self.column)
        nodes, values = np.zeros(size, np.uint64), np.zeros(size)
        roots = np.empty(len(self.roots), np.int64)
        _lay_out(by_label, self.column, bins, self.children, self.leaves, roots, nodes, values)
        together = np.clip(np.concatenate([np.empty(0), *edges]), -FARTHEST, FARTHEST).astype(np.int64)
        return Layout(together, np.cumsum([0, *map(len, edges)]), nodes, values, roots, np.cumsum([0, *counts]))

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
        parents = np.bincount(np.concatenate([children.ravel(), roots]) + len(leaves), minlength=1)
        if parents.max() > 1:
            raise ValueError("a tree's node has several parents")
        if len(columns) > MOST_BINS or np.bincount(column, minlength=1).max() > MOST_BINS:
            raise ValueError(f"trees have more than {MOST_BINS} columns, or thresholds of one column")
        return cls(columns, roots, column, threshold, children, leaves, labels)


@kernel
def _lay_out(
    found: NDArray[np.int32],
    column: NDArray[np.int32],
    bins: NDArray[np.int64],
    children: NDArray[np.int32],
    leaves: NDArray[np.float64],
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint64],
    values: NDArray[np.float64],
) -> None:
    """Write the trees that begin at the nodes `found` one after the other, each level by level."""
    source = np.empty(len(nodes), np.int64)  # the node, or the leaf below 0, that a place is for
    end = 0
    for t in range(len(found)):
        roots[t] = at = end
        source[end] = found[t]
        end += 1
        while at < end:
            node = source[at]
            if node < 0:  # it stays where it is: no bin is higher than the highest
                values[at] = leaves[-1 - node]
                nodes[at] = np.uint64(at) << np.uint64(CHILD_AT) | np.uint64(SIXTEEN) << np.uint64(BIN_AT)
            else:
                word = np.uint64(bins[node]) << np.uint64(BIN_AT) | np.uint64(column[node])
                nodes[at] = np.uint64(end) << np.uint64(CHILD_AT) | word
                source[end], source[end + 1] = children[node, 0], children[node, 1]
                end += 2
            at += 1


@kernel
def _cut(values: NDArray[np.int32], trees: Layout, bins: NDArray[np.uint16]) -> None:
    """Count the thresholds of its column that each value is above."""
    edges = trees.edges
    for c in range(values.shape[1]):
        first, last = trees.edge_starts[c], trees.edge_starts[c + 1]
        for row in range(len(values)):
            value, low, size = values[row, c], first, last - first
            while size > 0:
                half = (size + 1) // 2
                low += half if edges[low + half - 1] < value else 0
                size -= half
            bins[row, c] = low - first


@kernel
def _walk(bins: NDArray[np.uint16], legal: NDArray[np.bool_], trees: Layout, out: NDArray[np.float64]) -> None:
    """Add what the trees say of rows to the scores of their legal labels."""
    if len(trees.roots) == 0:
        return
    flat, width = bins.reshape(-1), bins.shape[1]
    some = np.empty(ROWS_TOGETHER, np.int64)
    at, row = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    for first in range(0, len(bins), ROWS_TOGETHER):
        for label in range(out.shape[1]):
            count = 0
            for r in range(first, min(len(bins), first + ROWS_TOGETHER)):
                some[count] = r
                count += legal[r, label]
            t, last, k = trees.label_starts[label], trees.label_starts[label + 1], 0
            while count > 0 and t < last:  # the next rows of this tree, or trees of this row
                lanes = 0
                while lanes < LANES and t < last:
                    at[lanes], row[lanes] = trees.roots[t], some[k]
                    lanes, k = lanes + 1, k + 1
                    if k == count:
                        t, k = t + 1, 0
                _descend(trees.nodes, flat, width, at, row)
                for lane in range(lanes):
                    out[row[lane], label] += trees.values[at[lane]]


@kernel(leaf=True)
def _descend(
    nodes: NDArray[np.uint64], bins: NDArray[np.uint16], width: int, at: NDArray[np.int64], row: NDArray[np.int64]
) -> None:
    """Walk from the nodes `at` to leaves; lanes that hold an earlier walk's leaf stay there."""
    moved = True
    while moved:
        moves = np.int64(0)
        for lane in range(LANES):
            word = nodes[at[lane]]
            value = np.uint64(bins[row[lane] * width + np.int64(word & np.uint64(SIXTEEN))])
            above = value > (word >> np.uint64(BIN_AT) & np.uint64(SIXTEEN))
            child = np.int64(word >> np.uint64(CHILD_AT)) + np.int64(above)
            moves |= child ^ at[lane]
            at[lane] = child
        moved = moves != 0
