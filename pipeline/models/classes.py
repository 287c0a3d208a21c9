"""A model of learned hand classes: codebooks of hands that its source treats alike, and a strategy for each class.

A hand is a point: some strength columns, standardised. A codebook is a list of centroids and a weight for each column
(the metric g); the membership of a point x in class k is

    a_k = exp(-|g (x - c_k)|^2) / the same summed over the nearest classes of the codebook.

Label j scores the sum, over the contexts of a row (its betting, from coarse to exact) and over all classes, of
a_k w[context, class, j], plus a weight of each context alone. Memberships are nearly hard after training, so only the
`NEAREST` centroids of each codebook count. `training.classes` learns centroids, metric and weights together.

Weights are stored by context: `starts` has the first cell of each context, `members` the class of each cell in
ascending order (the number of classes itself stands for the context alone), `weights` the cell's addend to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.matrix import columns_from_json, columns_to_json, read_codes
from pipeline.models.softmax import softmax
from pipeline.runtime.array_types import Singles
from pipeline.runtime.arrays import MAX_WEIGHT, expect, expect_ascending, whole_number
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash_rows, lower_bound

NEAREST = 4
"""classes of a codebook that a hand may belong to"""
MISSING = -1.0
MOST_CLASSES = 65_535


class Readings(NamedTuple):
    """Points and contexts of rows."""

    points: Singles
    """(rows, columns) as read, not yet standardised"""
    contexts: NDArray[np.uint64]
    """(rows, contexts) hashes"""


def read_hands(rows: Any, columns: Sequence[Column], contexts: Sequence[Sequence[Column]]) -> Readings:
    """Read the columns of hands and hash those of each context."""
    values = read_codes(rows, (*columns, *(column for context in contexts for column in context)))
    points = np.maximum(values[:, : len(columns)], int(MISSING)).astype(np.float32)
    hashes = np.empty((len(values), len(contexts)), np.uint64)
    first = len(columns)
    for number, context in enumerate(contexts):
        words = np.empty((len(values), 1 + len(context)), np.uint64)
        words[:, 0] = number + 1
        words[:, 1:] = values[:, first : first + len(context)].view(np.uint64)
        hashes[:, number] = hash_rows(words)
        first += len(context)
    return Readings(points, hashes)


def number_contexts(keys: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the place of each hash among the sorted keys, -1 for one that is not there."""
    if len(keys) == 0:
        return np.full(hashes.shape, -1, np.int32)
    places = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
    return np.where(keys[places] == hashes, places, -1).astype(np.int32)


@dataclass(frozen=True)
class Classes:
    """Softmax over the weights of a hand's classes in the contexts of its betting."""

    columns: tuple[Column, ...]
    """coordinates of a hand's point"""
    contexts: tuple[tuple[Column, ...], ...]
    sizes: tuple[int, ...]
    """classes of each codebook"""
    centre: Singles
    scale: Singles
    metric: Singles
    """(codebooks, columns)"""
    centroids: Singles
    """(classes, columns) of all codebooks, standardised"""
    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    weights: Singles

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    @cached_property
    def _spread(self) -> tuple[Singles, NDArray[np.int64]]:
        """Centroids laid out for the search for the nearest (see `spread_centroids`)."""
        return spread_centroids(self.metric, self.centroids, self.sizes)

    def _standard(self, points: Singles) -> Singles:
        """Standardise points, clipped so that distances stay within a float whatever scale a file has."""
        return np.clip((points - self.centre) / self.scale, -MAX_WEIGHT, MAX_WEIGHT)

    def predict(self, rows: Any) -> NDArray[np.float64]:
        read = read_hands(rows, self.columns, self.contexts)
        points = self._standard(read.points)
        contexts = number_contexts(self.keys, read.contexts)
        near, away = find_nearest(points, self.metric, *self._spread)
        out = np.zeros((len(points), self.width))
        _score(near, away, contexts, self.starts, self.members, self.weights, len(self.centroids), out)
        softmax(out, rows["legal"])
        return out

    def nearest_class(self, rows: Any) -> NDArray[np.int32]:
        """Return the likeliest class of each row in the last codebook, which is the finest."""
        points = self._standard(read_hands(rows, self.columns, ()).points)
        near, _ = find_nearest(points, self.metric, *self._spread)
        return np.asarray(near[:, -NEAREST])

    def column_shares(self) -> list[tuple[str, float]]:
        """Return the columns that separate classes, by their weights in the finest metric as shares of the largest."""
        share = self.metric[-1] / max(float(self.metric[-1].max()), 1e-30)
        order = np.argsort(-share, kind="stable")
        return [(self.columns[i].written, float(share[i])) for i in order]

    def to_json(self) -> dict[str, Any]:
        contexts = [columns_to_json(context) for context in self.contexts]
        return {"columns": columns_to_json(self.columns), "contexts": contexts, "sizes": list(self.sizes)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        names = ("centre", "scale", "metric", "centroids", "keys", "starts", "members", "weights")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Classes:
        columns = columns_from_json(entry["columns"])
        contexts = tuple(columns_from_json(context) for context in entry["contexts"])
        sizes = tuple(whole_number(size, "a codebook's size", NEAREST, MOST_CLASSES) for size in entry["sizes"])
        width, classes = len(columns), sum(sizes)
        if not sizes or not columns or not contexts:
            raise ValueError("a model of classes has no codebook, column or context")
        keys = expect(arrays, "keys", np.uint64, (None,))
        expect_ascending(keys, "keys")
        members = expect(arrays, "members", np.int32, (None,), 0, classes)
        starts = expect(arrays, "starts", np.int64, (len(keys) + 1,), 0, len(members))
        if (np.diff(starts) < 0).any() or (len(starts) and starts[-1] != len(members)):
            raise ValueError("the cells of its contexts overlap")
        return cls(
            columns,
            contexts,
            sizes,
            expect(arrays, "centre", np.float32, (width,), -MAX_WEIGHT, MAX_WEIGHT),
            expect(arrays, "scale", np.float32, (width,), 1e-6, MAX_WEIGHT),
            expect(arrays, "metric", np.float32, (len(sizes), width), 0, MAX_WEIGHT),
            expect(arrays, "centroids", np.float32, (classes, width), -MAX_WEIGHT, MAX_WEIGHT),
            keys,
            starts,
            members,
            expect(arrays, "weights", np.float32, (len(members), None), -MAX_WEIGHT, MAX_WEIGHT),
        )


def spread_centroids(metric: Singles, centroids: Singles, sizes: Sequence[int]) -> tuple[Singles, NDArray[np.int64]]:
    """Return centroids in their codebook's metric, (columns, classes), and the bounds of each codebook.

    Classes lie side by side, so that the processor measures eight distances at a time.
    """
    bounds = np.cumsum([0, *sizes]).astype(np.int64)
    metric_of_class = np.repeat(metric, np.array(sizes, np.int64), axis=0)
    return np.ascontiguousarray((centroids * metric_of_class).T), bounds


def find_nearest(
    points: Singles, metric: Singles, spread: Singles, bounds: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Singles]:
    """Return the nearest classes (rows, codebooks x NEAREST) of each codebook, nearest first, and squared distances."""
    near = np.empty((len(points), NEAREST * len(metric)), np.int32)
    away = np.empty(near.shape, np.float32)
    _find(np.ascontiguousarray(points, np.float32), np.asarray(metric), spread, bounds, near, away)
    return near, away


@kernel
def _find(
    points: Singles,
    metric: Singles,
    spread: Singles,
    bounds: NDArray[np.int64],
    near: NDArray[np.int32],
    away: Singles,
) -> None:
    """Fill in the nearest classes of each codebook and their squared distances."""
    distance = np.empty(spread.shape[1], np.float32)
    for row in range(len(points)):
        for book in range(len(metric)):
            low, high = bounds[book], bounds[book + 1]
            part = distance[low:high]
            part[:] = 0
            for column in range(points.shape[1]):
                coordinate = points[row, column] * metric[book, column]
                line = spread[column, low:high]
                for k in range(len(part)):
                    gap = coordinate - line[k]
                    part[k] += gap * gap
            # insertion into a list of the nearest so far: nearly all classes fail the first comparison
            first = book * NEAREST
            for m in range(NEAREST):
                away[row, first + m] = np.inf
                near[row, first + m] = low
            for k in range(len(part)):
                value = part[k]
                if value < away[row, first + NEAREST - 1]:
                    place = first + NEAREST - 1
                    while place > first and away[row, place - 1] > value:
                        away[row, place] = away[row, place - 1]
                        near[row, place] = near[row, place - 1]
                        place -= 1
                    away[row, place] = value
                    near[row, place] = low + k


@kernel
def _score(
    near: NDArray[np.int32],
    away: Singles,
    contexts: NDArray[np.int32],
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    weights: Singles,
    classes: int,
    out: NDArray[np.float64],
) -> None:
    """Add the weights of the classes near each row, by membership, and of its contexts alone."""
    shares = np.empty(near.shape[1])
    for row in range(len(near)):
        for first in range(0, near.shape[1], NEAREST):
            total = 0.0
            for m in range(first, first + NEAREST):
                shares[m] = np.exp(np.float64(away[row, first] - away[row, m]))
                total += shares[m]
            for m in range(first, first + NEAREST):
                shares[m] /= total
        for place in range(contexts.shape[1]):
            context = contexts[row, place]
            if context < 0:
                continue
            low, high = starts[context], starts[context + 1]
            for m in range(near.shape[1] + 1):
                wanted = near[row, m] if m < near.shape[1] else classes
                share = shares[m] if m < near.shape[1] else 1.0
                cell = low + lower_bound(members[low:high], wanted)
                if cell < high and members[cell] == wanted:
                    for j in range(out.shape[1]):
                        out[row, j] += share * weights[cell, j]
