"""Boosted trees that play: LightGBM's trees as arrays, walked by a kernel.

All nodes of all trees lie one after the other: the `column` that a node tests, its `threshold`, and its two
`children`, the lower one first; a child below 0 is the leaf number -1 - child. `roots` has the first node of each tree.
Tree t adds the value of the leaf that a row ends in to the score of label t mod labels.

For playing, trees are laid out once more (`TreeLayout`): label by label, the nodes of a tree level by level with
siblings side by side, a node in eight bytes. Thresholds are numbers of *bins*: a row's values are cut once at all
thresholds of their column, so that a few bytes of a row meet a few bytes of a tree and both stay in the processor's
nearest cache.

Rows are sorted so that neighbours are alike: by the labels that they may take, by their betting, then by the column
that most nodes test. Some hundred of them, with the same legal labels, go down every tree together until their ways
part, then sixteen of them at a time, often down to a leaf, and only from there each by itself. Sixteen walks go down
side by side, since a single one waits for memory at every node; a leaf leads to itself until the last of them has
arrived. Trees of labels that a group may not take are not walked. A row's leaf values are added tree by tree whatever
the group, so that its probabilities depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.matrix import columns_from_json, columns_to_json, read_matrix
from pipeline.models.softmax import legal_masks, softmax
from pipeline.runtime.arrays import MAX_WEIGHT, expect, whole_number
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash_rows

PIECE = 1024
"""rows whose columns are read together"""
GROUP = 256
"""rows that go down a tree together; fewer agree for longer, but fetch every tree anew"""
LANES = 16
"""walks side by side"""
MOST_BINS = 2**16 - 1
MASK_16 = 2**16 - 1
BIN_SHIFT, CHILD_SHIFT = 16, 32
"""the first bits of a node's bin and of its first child; its column comes first"""
FARTHEST = 2**53
"""thresholds beyond this are beyond every value"""


class TreeLayout(NamedTuple):
    """Trees in the kernel's order."""

    edges: NDArray[np.int64]
    """the different thresholds of each column, ascending, column after column"""
    edge_starts: NDArray[np.int64]
    """the first threshold of each column, and the end of the last ones"""
    nodes: NDArray[np.uint64]
    """a column, the highest bin that goes to the first child, and that child, which the second one follows"""
    values: NDArray[np.float64]
    """a leaf's addend to the score; 0 for inner nodes"""
    roots: NDArray[np.int64]
    """the first node of each tree, label by label"""
    label_starts: NDArray[np.int64]
    """each label's first tree among the roots, and the end of the last ones"""
    busiest: int
    """the column that most nodes test"""


@dataclass(frozen=True)
class Trees:
    """Softmax over summed leaf values."""

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
        return self.labels

    def predict(self, rows: Any) -> NDArray[np.float64]:
        bins = np.empty((len(rows), len(self.columns)), np.uint16)
        for first in range(0, len(rows), PIECE):
            part = slice(first, first + PIECE)
            _cut(read_matrix(rows[part], self.columns), self.layout, bins[part])
        legal = np.ascontiguousarray(rows["legal"])
        out = np.zeros((len(rows), self.labels))
        _walk(bins, self._order(rows, bins), legal, legal_masks(self.labels) == 0, self.layout, out)
        softmax(out, legal)
        return out

    def _order(self, rows: Any, bins: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Return an order of the rows in which neighbours are alike."""
        if len(rows) <= LANES or len(self.column) == 0:
            return np.arange(len(rows))
        facts = [rows["betting_codes"][:, street] for street in range(4)] + [rows["pot"], rows["to_call"]]
        betting = hash_rows(np.stack([fact.astype(np.uint64) for fact in facts], axis=1))
        return np.lexsort((bins[:, self.layout.busiest], betting, rows["legal"]))

    @cached_property
    def layout(self) -> TreeLayout:
        """The trees laid out for walking."""
        limits = np.floor(self.threshold)  # columns hold whole numbers
        edges = [np.unique(limits[self.column == column]) for column in range(len(self.columns))]
        bins = np.zeros(len(self.column), np.int64)
        for column, thresholds in enumerate(edges):
            nodes_of_column = self.column == column
            bins[nodes_of_column] = np.searchsorted(thresholds, limits[nodes_of_column])
        counts = [len(range(label, len(self.roots), self.labels)) for label in range(self.labels)]
        by_label = np.concatenate([self.roots[label :: self.labels] for label in range(self.labels)])
        size = len(self.roots) + 2 * len(self.column)
        nodes, values = np.zeros(size, np.uint64), np.zeros(size)
        roots = np.empty(len(self.roots), np.int64)
        _lay_out(by_label, self.column, bins, self.children, self.leaves, roots, nodes, values)
        together = np.clip(np.concatenate([np.empty(0), *edges]), -FARTHEST, FARTHEST).astype(np.int64)
        busiest = int(np.bincount(self.column, minlength=1).argmax())
        ends = np.cumsum([0, *map(len, edges)])
        return TreeLayout(together, ends, nodes, values, roots, np.cumsum([0, *counts]), busiest)

    def to_json(self) -> dict[str, Any]:
        return {"columns": columns_to_json(self.columns), "labels": self.labels}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        names = ("roots", "column", "threshold", "children", "leaves")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Trees:
        """Restore trees from `to_json` and `to_arrays`; trees that point outside of themselves raise `ValueError`.

        A child comes after its node (or is a leaf), so that every walk ends.
        """
        columns, labels = columns_from_json(entry["columns"]), whole_number(entry["labels"], "labels", 2, 255)
        leaves = expect(arrays, "leaves", np.float64, (None,), -MAX_WEIGHT, MAX_WEIGHT)
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
    firsts: NDArray[np.int32],
    column: NDArray[np.int32],
    bins: NDArray[np.int64],
    children: NDArray[np.int32],
    leaves: NDArray[np.float64],
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint64],
    values: NDArray[np.float64],
) -> None:
    """Write the trees that begin at the nodes `firsts` one after the other, each level by level."""
    source = np.empty(len(nodes), np.int64)  # the node, or the leaf below 0, that a place is for
    end = 0
    for t in range(len(firsts)):
        roots[t] = place = end
        source[end] = firsts[t]
        end += 1
        while place < end:
            node = source[place]
            if node < 0:  # a leaf leads to itself: no bin is higher than the highest
                values[place] = leaves[-1 - node]
                nodes[place] = np.uint64(place) << np.uint64(CHILD_SHIFT) | np.uint64(MASK_16) << np.uint64(BIN_SHIFT)
            else:
                word = np.uint64(bins[node]) << np.uint64(BIN_SHIFT) | np.uint64(column[node])
                nodes[place] = np.uint64(end) << np.uint64(CHILD_SHIFT) | word
                source[end], source[end + 1] = children[node, 0], children[node, 1]
                end += 2
            place += 1


@kernel
def _cut(values: NDArray[np.int32], trees: TreeLayout, bins: NDArray[np.uint16]) -> None:
    """Count the thresholds of its column that each value is above."""
    edges = trees.edges
    for c in range(values.shape[1]):
        first, last = trees.edge_starts[c], trees.edge_starts[c + 1]
        for row in range(len(values)):
            # a binary search without a branch that the processor would have to guess
            value, low, size = values[row, c], first, last - first
            while size > 0:
                half = (size + 1) // 2
                low += half if edges[low + half - 1] < value else 0
                size -= half
            bins[row, c] = low - first


@kernel
def _walk(
    bins: NDArray[np.uint16],
    order: NDArray[np.int64],
    legal: NDArray[np.uint8],
    allowed: NDArray[np.bool_],
    trees: TreeLayout,
    out: NDArray[np.float64],
) -> None:
    """Add the trees' leaf values of rows to the scores of their legal labels.

    Groups are neighbours in `order` with the same byte of legal labels; `allowed` has the labels of each such byte.
    """
    width = bins.shape[1]
    mine, sums = np.empty((GROUP, width), np.uint16), np.empty(GROUP)
    # bounds of the group, then of its parts; a column more than there are, since leaves test one in any case
    low = np.zeros((1 + GROUP // LANES, width + 1), np.uint16)
    high = np.zeros_like(low)
    together, ends = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    walks, place = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    first = 0
    while first < len(bins):
        size, may = 1, legal[order[first]]
        while size < GROUP and first + size < len(bins) and legal[order[first + size]] == may:
            size += 1
        for i in range(size):
            mine[i] = bins[order[first + i]]
        parts = (size + LANES - 1) // LANES
        _bounds(mine[:size], low[0], high[0])
        for part in range(parts):
            _bounds(mine[part * LANES : min(part * LANES + LANES, size)], low[1 + part], high[1 + part])
        for label in range(out.shape[1]):
            if not allowed[may, label]:
                continue
            start, end = trees.label_starts[label], trees.label_starts[label + 1]
            sums[:] = 0.0
            for t in range(start, end, LANES):
                for lane in range(LANES):
                    together[lane] = trees.roots[min(t + lane, end - 1)]
                _descend_together(trees.nodes, low[0], high[0], together)
                for part in range(parts):
                    lanes = slice(part * LANES, min(part * LANES + LANES, size))
                    ends[:] = together
                    if parts > 1:
                        _descend_together(trees.nodes, low[1 + part], high[1 + part], ends)
                    _add_leaves(trees, ends[: end - t], mine[lanes], sums[lanes], walks, place)
            for i in range(size):
                out[order[first + i], label] = sums[i]
        first += size


@kernel
def _bounds(bins: NDArray[np.uint16], low: NDArray[np.uint16], high: NDArray[np.uint16]) -> None:
    """Fill in the lowest and the highest bins of some rows."""
    width = bins.shape[1]
    low[:width], high[:width] = bins[0], bins[0]
    for i in range(1, len(bins)):
        for c in range(width):
            low[c], high[c] = min(low[c], bins[i, c]), max(high[c], bins[i, c])


@kernel(leaf=True)
def _descend_together(
    nodes: NDArray[np.uint64], low: NDArray[np.uint16], high: NDArray[np.uint16], walks: NDArray[np.int64]
) -> None:
    """Walk from the nodes `walks` while rows with bins from `low` to `high` go the same way."""
    moved = True
    while moved:
        moves = np.int64(0)
        for lane in range(LANES):
            word = nodes[walks[lane]]
            column, limit = (
                np.int64(word & np.uint64(MASK_16)),
                np.uint16(word >> np.uint64(BIN_SHIFT) & np.uint64(MASK_16)),
            )
            above = low[column] > limit
            child = np.int64(word >> np.uint64(CHILD_SHIFT)) + np.int64(above)
            # stay where the rows' bins lie on both sides of the limit
            child = child if above or high[column] <= limit else walks[lane]
            moves |= child ^ walks[lane]
            walks[lane] = child
        moved = moves != 0


@kernel
def _add_leaves(
    trees: TreeLayout,
    starts: NDArray[np.int64],
    bins: NDArray[np.uint16],
    sums: NDArray[np.float64],
    walks: NDArray[np.int64],
    place: NDArray[np.int64],
) -> None:
    """Add the leaf of each tree, walked from a node of `starts`, to the sums of a few rows."""
    flat, width, lanes = bins.reshape(-1), bins.shape[1], len(bins)
    for node in starts:
        if np.int64(trees.nodes[node] >> np.uint64(CHILD_SHIFT)) == node:
            sums += trees.values[node]
            continue
        for lane in range(LANES):
            walks[lane], place[lane] = node, min(lane, lanes - 1) * width
        _descend(trees.nodes, flat, walks, place)
        for lane in range(lanes):
            sums[lane] += trees.values[walks[lane]]


@kernel(leaf=True)
def _descend(
    nodes: NDArray[np.uint64], bins: NDArray[np.uint16], walks: NDArray[np.int64], place: NDArray[np.int64]
) -> None:
    """Walk from the nodes `walks` to leaves; the bins of a walk's row begin at `place`."""
    moved = True
    while moved:
        moves = np.int64(0)
        for lane in range(LANES):
            word = nodes[walks[lane]]
            value = np.uint64(bins[place[lane] + np.int64(word & np.uint64(MASK_16))])
            # no branch: the second child follows the first, and a leaf leads to itself
            above = value > (word >> np.uint64(BIN_SHIFT) & np.uint64(MASK_16))
            child = np.int64(word >> np.uint64(CHILD_SHIFT)) + np.int64(above)
            moves |= child ^ walks[lane]
            walks[lane] = child
        moved = moves != 0
