"""Hand clusters: holdings with similar distributions of strength at the river, by k-means under earth mover's distance.

A holding's distribution is kept as the means of its eighths (`q` of `strength`); the earth mover's distance between two
holdings is the sum of |differences| of these, divided by 8. Centroids are medians by component, which is what
minimises that distance within a group; they are bytes, like the points. The start is k-means++ (Arthur and
Vassilvitskii 2007) on a weighted sample, the best of ten where points are few; every holding weighs as many deals as it
stands for. Equal points are merged first and sums are of whole numbers: the same seed gives the same centroids
whatever the number of threads.

On the river a holding is one number, its strength: centroids are (k, 1) words, otherwise (k, 8) bytes. Centroids are in
ascending order of their mean, so cluster 0 is the weakest. Since the distance is at least the difference of the sums,
the nearest centroid is found by looking outwards from the point's own sum.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import class_combos
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.board_tables import ensure_tables, river_strengths
from pipeline.poker.strength.boards import HOLDINGS, boards
from pipeline.poker.strength.equity import group_strengths
from pipeline.poker.strength.rows import STRENGTH
from pipeline.poker.strength.win_counts import FULL_STRENGTH
from pipeline.runtime.array_types import Bytes, Counts, Words
from pipeline.runtime.diskcache import cache_root, load_bytes, store_bytes
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import lower_bound
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import Progress, no_progress

STREETS = ("preflop", "flop", "turn", "river")
VERSION = 1
"""of cached clusters; those of another version are made again"""
SAMPLE = 100_000
STARTS = 10
"""descents of which the best is taken, where there are fewer than SAMPLE points"""
PIECE = 1 << 17
MOST_TRIED = 150
"""clusters that may be tried for a hand on average: of 1,000 by k-means 29 are"""
SPREAD_SAMPLE = 1_000
"""hands by which that average is estimated"""


class HandClusters(NamedTuple):
    """Centroids of one street, weakest first."""

    street: int
    centroids: npt.NDArray[Any]
    """(k, 8) uint8 means of eighths; on the river (k, 1) uint16 strengths"""
    seed: int
    cost: float
    """mean distance of a deal to its centroid, in strength"""

    def to_bytes(self) -> bytes:
        """Return the clusters as a .safetensors file: the same clusters, the same bytes."""
        from safetensors.numpy import save

        about = {"cost": repr(self.cost), "seed": str(self.seed), "street": STREETS[self.street]}
        data = save({"centroids": self.centroids}, about)  # its header has the entries of `about` in any order
        header, arrays = _split_header(data)
        sorted_header = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        sorted_header += b" " * (-len(sorted_header) % 8)
        return len(sorted_header).to_bytes(8, "little") + sorted_header + arrays

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> HandClusters:
        """Read what `to_bytes` returned; `where` is named in the error about anything else."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            centroids = load(data)["centroids"]
            about = _split_header(data)[0]["__metadata__"]
            street = STREETS.index(about["street"])
            clusters = cls(street, centroids, int(about["seed"]), float(about["cost"]))
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise PipelineError(
                f"{where} does not hold clusters ({error}); make it with `python -m tools.clusters ... --out`"
            ) from None
        width, kind = (1, np.uint16) if street == 3 else (8, np.uint8)
        if centroids.ndim != 2 or centroids.shape[1] != width or centroids.dtype != kind or len(centroids) == 0:
            raise PipelineError(
                f"{where} has centroids of {centroids.dtype} {centroids.shape}, not of {STREETS[street]}"
            )
        if (np.diff(centroids.sum(1, dtype=np.int64)) < 0).any():
            raise PipelineError(
                f"{where} has centroids that do not ascend; make it with `python -m tools.clusters ... --out`"
            )
        return clusters

    def save(self, path: Path) -> None:
        """Write to a .safetensors file."""
        with replacing(path) as temporary:
            temporary.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> HandClusters:
        """Read what `save` wrote."""
        return cls.from_bytes(path.read_bytes(), str(path))


def _split_header(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Split a .safetensors file in its header and the arrays behind it."""
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


# Assignment


@kernel(leaf=True)
def distance(point: Bytes, centroid: Bytes) -> int:
    """Return the sum of |differences| of the eighths."""
    total = 0
    for i in range(8):
        total += int(abs(np.int64(point[i]) - np.int64(centroid[i])))  # bytes would wrap
    return total


@kernel(leaf=True)
def nearest_centroid(point: Bytes, centroids: Bytes, sums: Counts) -> int:
    """Return the number of the centroid nearest to eight bytes (the first of equals); `sums` of centroids ascend."""
    total = 0
    for i in range(8):
        total += int(point[i])
    upper = lower_bound(sums, total)
    lower = upper - 1
    best_gap = 1 << 30
    winner = 0
    while True:
        below = total - sums[lower] if lower >= 0 else 1 << 30
        above = sums[upper] - total if upper < len(sums) else 1 << 30
        # no distance is below the difference of the sums, and these only grow outwards: nothing nearer can follow
        if min(below, above) > best_gap or min(below, above) == 1 << 30:
            return winner
        if below <= above:
            tried = lower
            lower -= 1
        else:
            tried = upper
            upper += 1
        gap = distance(point, centroids[tried])
        if gap < best_gap or (gap == best_gap and tried < winner):
            best_gap = gap
            winner = tried


@kernel(leaf=True)
def _assign(points: Bytes, centroids: Bytes, sums: Counts, out: Words) -> None:
    for row in range(len(points)):
        out[row] = nearest_centroid(points[row], centroids, sums)


def assign_clusters(clusters: HandClusters, rows: npt.NDArray[Any]) -> Words:
    """Return the cluster of each row of STRENGTH."""
    if clusters.street == 3:
        return np.searchsorted(_cuts(clusters.centroids), 2 * rows["ehs"].astype(np.int64), "left").astype(np.uint16)
    points = np.ascontiguousarray(rows["q"])
    _check_spread(clusters, points)
    sums = clusters.centroids.sum(1, dtype=np.int64)
    out = np.empty(len(points), np.uint16)

    def work(first: int, last: int) -> None:
        _assign(points[first:last], clusters.centroids, sums, out[first:last])

    in_threads(work, len(points), PIECE, no_progress)
    return out


def _check_spread(clusters: HandClusters, points: Bytes) -> None:
    """Refuse centroids among which the search outwards from a point's own sum would hardly end before the last one."""
    # centroids may come from anybody's file: with equal sums all of them would be tried for each of 20 million holdings
    if len(clusters.centroids) <= MOST_TRIED:
        return
    centroids = clusters.centroids.astype(np.int16)
    sums, tried = centroids.sum(1), 0
    sample = points[:: max(1, len(points) // SPREAD_SAMPLE)].astype(np.int16)
    for point in sample:
        nearest = np.abs(centroids - point).sum(1).min()
        tried += int(np.count_nonzero(np.abs(sums - point.sum()) <= nearest))
    if tried > MOST_TRIED * len(sample):
        raise PipelineError(
            f"the {len(centroids):,} clusters of {STREETS[clusters.street]} hands lie too close together: to find"
            f" a hand's takes {tried / len(sample):,.0f} comparisons on average, {MOST_TRIED} at most: cluster again"
        )


# Fitting


@kernel(leaf=True)
def _count(points: Bytes, weights: Counts, centroids: Bytes, sums: Counts, histograms: Counts) -> int:
    """Add each point's weight to its cluster's histograms (k, 8, 256); return the weighted sum of distances."""
    cost = 0
    for row in range(len(points)):
        cluster = nearest_centroid(points[row], centroids, sums)
        cost += weights[row] * distance(points[row], centroids[cluster])
        for i in range(8):
            histograms[cluster, i, points[row, i]] += weights[row]
    return cost


@kernel
def _medians(histograms: Counts, centroids: Bytes) -> None:
    """Write the weighted medians of each cluster that has members."""
    for k in range(len(centroids)):
        half = histograms[k, 0].sum()
        if half == 0:
            continue
        for i in range(8):
            passed = 0
            level = -1
            while 2 * passed < half:
                level += 1
                passed += histograms[k, i, level]
            centroids[k, i] = level


def _spread(points: npt.NDArray[Any], chances: npt.NDArray[np.float64]) -> list[int]:
    """Choose centroids by k-means++: the first at random, each next one by its squared distance to those chosen."""
    chosen = [int(chances[0] * len(points))]
    columns = points.astype(np.float32)
    gaps = np.full(len(points), np.inf)
    for chance in chances[1:]:
        gaps = np.minimum(gaps, np.abs(columns - columns[chosen[-1]]).sum(1, dtype=np.float64) ** 2)
        passed = np.cumsum(gaps)
        chosen.append(int(np.searchsorted(passed, chance * passed[-1], "right")))
    return chosen


def _points(street: int, progress: Progress) -> tuple[npt.NDArray[Any], Counts]:
    """Return the different distributions of a street, and how many deals each stands for."""
    if street == 0:
        rows = preflop_rows().view(STRENGTH).ravel()
        weights = np.array([class_combos(index) for index in range(169)], np.int64)
    else:
        tables = ensure_tables(progress)
        rows = (tables.flop if street == 1 else tables.turn).view(STRENGTH).ravel()
        weights = np.repeat(boards(street).weights, HOLDINGS[street])
    packed = np.ascontiguousarray(rows["q"]).view("<u8").ravel()
    order = np.argsort(packed)
    packed = packed[order]
    first = np.flatnonzero(np.append(True, packed[1:] != packed[:-1]))
    return packed[first].view(np.uint8).reshape(-1, 8), np.add.reduceat(weights[order], first)


def _river_points(progress: Progress) -> tuple[npt.NDArray[Any], Counts]:
    """Return the different strengths on the river, and how many deals have each."""
    table = river_strengths(progress).reshape(-1, HOLDINGS[3])
    weights = boards(3).weights
    deals = np.zeros(FULL_STRENGTH + 1, np.int64)
    for weight in np.unique(weights):
        alike = np.flatnonzero(weights == weight)
        for first in range(0, len(alike), 1_000):
            deals += weight * np.bincount(table[alike[first : first + 1_000]].ravel(), minlength=FULL_STRENGTH + 1)
    return np.flatnonzero(deals).astype(np.uint16)[:, None], deals[deals > 0]


def fit_clusters(
    street: int, size: int, *, seed: int = 0, iterations: int = 100, progress: Progress = no_progress
) -> HandClusters:
    """Cluster all holdings of a street in `size` groups, until the cost falls by less than one in ten thousand."""
    points, weights = _river_points(progress) if street == 3 else _points(street, progress)
    if not 1 <= size <= min(len(points), FULL_STRENGTH):
        raise PipelineError(
            f"cannot make {size} clusters of the {STREETS[street]}'s {len(points)} different holdings;"
            f" ask for 1 to {min(len(points), FULL_STRENGTH)}"
        )
    rng = np.random.default_rng(seed)
    starts = STARTS if len(points) < SAMPLE else 1
    descent_progress = progress if starts == 1 else no_progress
    descents = [_descend(street, points, weights, size, rng, iterations, descent_progress) for _ in range(starts)]
    cost, centroids = min(descents, key=lambda pair: pair[0])
    return HandClusters(street, centroids, seed, cost / float(weights.sum()))


def _descend(
    street: int,
    points: npt.NDArray[Any],
    weights: Counts,
    size: int,
    rng: np.random.Generator,
    iterations: int,
    progress: Progress = no_progress,
) -> tuple[float, npt.NDArray[Any]]:
    """Start once and descend; return cost and centroids."""
    move = _river_step if street == 3 else _step
    sample = points
    if len(points) > max(SAMPLE, 20 * size):
        sample = points[rng.choice(len(points), max(SAMPLE, 20 * size), replace=False, p=weights / weights.sum())]
    centroids = _sorted(sample[_spread(sample, rng.random(size))])
    cost = np.inf
    for iteration in range(1, iterations + 1):
        before, (cost, moved) = cost, move(points, weights, centroids)
        progress(iteration, iterations)
        if iteration == iterations or cost > 0.9999 * before:
            break
        centroids = _sorted(moved)
    return cost, centroids


def _sorted(centroids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return centroids[np.argsort(centroids.sum(1, dtype=np.int64), kind="stable")]


def _step(points: Bytes, weights: Counts, centroids: Bytes) -> tuple[float, Bytes]:
    """Return the cost of centroids, and the medians of the points nearest to each."""
    step = -(-len(points) // 4)
    costs = np.zeros(4, np.int64)
    # four pieces whatever the number of threads, and whole numbers: the sums do not depend on who adds them
    histograms = np.zeros((4, *centroids.shape, 256), np.int64)
    sums = centroids.sum(1, dtype=np.int64)

    def work(first: int, last: int) -> None:
        piece = first // step
        costs[piece] = _count(points[first:last], weights[first:last], centroids, sums, histograms[piece])

    in_threads(work, len(points), step, no_progress)
    moved = centroids.copy()
    _medians(histograms.sum(0), moved)
    return float(costs.sum()) / (8 * 255), moved


def _river_step(points: Words, weights: Counts, centroids: Words) -> tuple[float, Words]:
    """Return what `_step` does, for river strengths: points on a line, ascending."""
    values = points[:, 0].astype(np.int64)
    member = np.searchsorted(_cuts(centroids), 2 * values, "left")
    cost = float(weights @ np.abs(values - centroids[member, 0])) / FULL_STRENGTH
    passed = np.cumsum(weights)
    last = np.searchsorted(member, np.arange(len(centroids)), "right") - 1
    upper = passed[last]
    lower = np.append(0, upper[:-1])
    return cost, points[np.searchsorted(passed, lower + (upper - lower + 1) // 2)]


def _cuts(centroids: Words) -> Counts:
    """Return twice the strength up to which each river centroid but the last is nearest."""
    middle = centroids[:, 0].astype(np.int64)
    return middle[:-1] + middle[1:]


# Bundled and cached clusters


@cache
def load_clusters(street: int, size: int, seed: int = 0) -> HandClusters:
    """Return the clusters of a street: bundled ones, else those cached on this machine, else fit and cached."""
    name = f"{STREETS[street]}-{size}-{seed}"
    bundled = files("pipeline.poker").joinpath("resources", "clusters", f"{name}.safetensors")
    if bundled.is_file():
        return HandClusters.from_bytes(bundled.read_bytes(), str(bundled))
    path = cache_root() / "clusters" / f"{name}.clusters"
    data = load_bytes(path, VERSION)
    if data is not None:
        return HandClusters.from_bytes(data, str(path))
    fitted = fit_clusters(street, size, seed=seed)
    store_bytes(path, fitted.to_bytes(), VERSION)
    return fitted


@cache
def starting_groups() -> Bytes:
    """Return the group 0..7 of each starting class, weakest first: the opponents of `equity.group_strengths`."""
    groups = assign_clusters(load_clusters(0, 8), preflop_rows().view(STRENGTH).ravel()).astype(np.uint8)
    groups.flags.writeable = False
    return groups


def ochs(hole: Bytes, board: Bytes) -> Bytes:
    """Compute opponent-cluster hand strength: (n, 8) on the river against each of `starting_groups`, 255 for 1."""
    strengths = group_strengths(3, hole, board, starting_groups())
    return ((strengths.astype(np.uint32) + 128) // 257).astype(np.uint8)
