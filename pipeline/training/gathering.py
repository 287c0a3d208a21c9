"""Parts of a training in this process or on a cluster, and sums over them.

Both walk the same functions of `parts` and add along the same `SumTree`, so the bytes are the same. Here parts are in
memory: threads make them side by side and walk them one after the other. On a cluster each part lies on the disk of a
worker, weights are sent to all workers once per evaluation (sparse after L1 has set most to zero), and each worker adds
what of the tree it holds before anything is sent. A part whose worker was lost is made again on another one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.parallel import SumTree, Workers
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training import parts
from pipeline.training.objective import Weights, shares
from pipeline.training.parts import CorpusPart, Pass, Sums, WeightPoint

LOCAL_NODES = 8
"""most sums of nodes that are brought here and added; more are added on the workers"""


class Gathering(Protocol):
    """The place of a training's parts, which works on them and adds up sums."""

    on_disk: bool

    def map(
        self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Progress = no_progress
    ) -> list[Any]:
        """Call `function(*item)` for each item; the handles given back may be arguments of another call."""

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values behind handles."""

    def release(self, handles: Sequence[Any]) -> None:
        """Forget what stands behind handles."""

    def sums(self, placed: Sequence[Any], weights: Weights, plain: bool) -> Sums:
        """Return the sum of log Z over all rows, and the expected label counts."""

    def scores(self, placed: Sequence[Any], weights: Weights) -> list[tuple[int, float, float]]:
        """Return `parts.score_part` of each part."""

    def passes(self, placed: Sequence[Any], given: Pass) -> list[tuple[Weights, Weights, float]]:
        """Return `parts.descend_part` of each part."""


class LocalParts:
    """Parts in the memory of this process."""

    on_disk = False

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._arrays: dict[str, NDArray[np.float64]] = {}

    def map(
        self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Progress = no_progress
    ) -> list[Any]:
        counter, lock = count(1), Lock()

        def work(item: tuple[Any, ...]) -> Any:
            result = function(*item)
            with lock:
                progress(next(counter), len(items))
            return result

        return self.workers.map(work, items)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return list(handles)

    def release(self, handles: Sequence[Any]) -> None:
        pass

    def sums(self, placed: Sequence[CorpusPart], weights: Weights, plain: bool) -> Sums:
        pieces, values = shares(len(weights)), weights
        if plain:
            values = self._array("values", weights.shape)
            self.workers.map(lambda piece: np.exp(weights[piece], out=values[piece]), pieces)
        point = WeightPoint(weights, values, plain)
        workspace = self._array("workspace", (max(map(parts.workspace_size, placed)),))

        def total(node: SumTree, counts: Weights) -> float:
            """Add the counts of a node to `counts`, which are zero unless it is a single part; its sum of log Z."""
            if node.size == 1:
                return parts.part_sums(placed[node.first], point, self.workers, counts, workspace)[0]
            first, *second = node.halves
            loss = total(first, counts)
            for half in second:
                if half.size == 1:
                    loss += total(half, counts)
                else:
                    others = zeros(half.size)  # free again when the tree is walked on: one of each size is enough
                    loss += total(half, others)
                    self.workers.map(
                        lambda piece, more=others: np.add(counts[piece], more[piece], counts[piece]), pieces
                    )
            return loss

        def zeros(size: int) -> Weights:
            array = self._array(f"counts {size}", weights.shape)
            self.workers.map(lambda piece: array[piece].fill(0), pieces)
            return array

        root = SumTree.root(len(placed))
        whole = zeros(2 * root.size)
        return total(root, whole), whole

    def _array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array used again in every evaluation: touching fresh memory costs more than the sums themselves."""
        if name not in self._arrays or self._arrays[name].shape != shape:
            self._arrays[name] = np.empty(shape)
        return self._arrays[name]

    def scores(self, placed: Sequence[CorpusPart], weights: Weights) -> list[tuple[int, float, float]]:
        return [parts.score_part(part, weights, self.workers) for part in placed]

    def passes(self, placed: Sequence[CorpusPart], given: Pass) -> list[tuple[Weights, Weights, float]]:
        numbered = list(enumerate(placed))
        return self.workers.map(lambda one: parts.descend_part(one[1], one[0], given), numbered)


class PackedWeights(NamedTuple):
    """Weights as they are sent: whole, or if most are zero the others and their places."""

    token: str
    shape: tuple[int, int]
    places: NDArray[np.int32] | None
    values: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Weights) -> PackedWeights:
        flat = weights.reshape(-1)
        used = int(np.count_nonzero(flat))
        if 3 * used < 2 * len(flat) and len(flat) < 2**31:  # 12 bytes each instead of 8
            places = np.flatnonzero(flat).astype(np.int32)
            return cls(uuid.uuid4().hex, weights.shape, places, flat[places])
        return cls(uuid.uuid4().hex, weights.shape, None, flat.copy())

    def unpack(self) -> Weights:
        """Return the weights."""
        if self.places is None:
            return self.values.reshape(self.shape)
        out = np.zeros(self.shape)
        out.reshape(-1)[self.places] = self.values
        return out


class _PointKey(NamedTuple):
    """Weights by their token, so that the tasks of a worker compute exponentials once."""

    token: str
    plain: bool
    packed: PackedWeights

    def __hash__(self) -> int:
        return hash((self.token, self.plain))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PointKey) and (self.token, self.plain) == (other.token, other.plain)


@lru_cache(maxsize=1)
def _point(key: _PointKey) -> WeightPoint:
    return WeightPoint.of(key.packed.unpack(), key.plain)


def _sum_node(node: SumTree, node_parts: Sequence[CorpusPart], packed: PackedWeights, plain: bool) -> Sums:
    """Return, on a worker, the sums of a node all of whose parts are at hand."""
    point, worker = _point(_PointKey(packed.token, plain, packed)), Workers(1)

    def leaf(inner: SumTree) -> Sums | None:
        return parts.part_sums(node_parts[inner.first - node.first], point, worker) if inner.size == 1 else None

    return node.sum(leaf, parts.add_sums)


def _score_parts(node_parts: Sequence[CorpusPart], packed: PackedWeights) -> list[tuple[int, float, float]]:
    """Score parts on a worker."""
    weights, worker = packed.unpack(), Workers(1)
    return [parts.score_part(part, weights, worker) for part in node_parts]


class ClusterParts:
    """Parts on the workers of a cluster."""

    on_disk = True

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._sent: tuple[Weights, Any] | None = None

    def map(
        self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Progress = no_progress
    ) -> list[Any]:
        homes = [worker for worker, threads in self.cluster.workers().items() for _ in range(threads)]
        pinned = [
            {"workers": [homes[index * len(homes) // len(items)]], "allow_other_workers": True} if homes else {}
            for index in range(len(items))
        ]
        tasks = [self.cluster.submit(function, *item, **options) for item, options in zip(items, pinned, strict=True)]
        self.cluster.wait(tasks, progress)
        return tasks

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return self.cluster.results(handles)

    def release(self, handles: Sequence[Any]) -> None:
        self.cluster.release(handles)

    def sums(self, placed: Sequence[Any], weights: Weights, plain: bool) -> Sums:
        return self._retried(lambda: self._sums(placed, weights, plain))

    def scores(self, placed: Sequence[Any], weights: Weights) -> list[tuple[int, float, float]]:
        return self._retried(lambda: self._scores(placed, weights))

    def passes(self, placed: Sequence[Any], given: Pass) -> list[tuple[Weights, Weights, float]]:
        return self._retried(lambda: self._passes(placed, given))

    def _retried(self, evaluate: Callable[[], Any]) -> Any:
        return self.cluster.retry_when_lost(evaluate, self._forget)

    def _forget(self) -> None:
        self._sent = None

    def _send(self, weights: Weights) -> Any:
        """Send weights to every worker, unless they are those that were sent last."""
        if self._sent is None or not np.array_equal(self._sent[0], weights):
            if self._sent is not None:
                self.cluster.release([self._sent[1]])
            self._sent = weights.copy(), self.cluster.broadcast(PackedWeights.of(weights))
        return self._sent[1]

    def _homes(self, placed: Sequence[Any]) -> dict[str, list[int]]:
        """Return the numbers of the parts that each worker holds."""
        where = self.cluster.holders(placed)
        homes: dict[str, list[int]] = {}
        lost = next(iter(where.values()), "")
        for number, part in enumerate(placed):
            homes.setdefault(where.get(part, lost), []).append(number)
        return homes

    def _sums(self, placed: Sequence[Any], weights: Weights, plain: bool) -> Sums:
        sent, root = self._send(weights), SumTree.root(len(placed))
        tasks: dict[SumTree, Any] = {}
        for worker, numbers in self._homes(placed).items():
            pinned = {"workers": [worker], "allow_other_workers": True} if worker else {}
            for node in root.largest_within(frozenset(numbers)):
                node_parts = list(placed[node.first : node.first + node.size])
                tasks[node] = self.cluster.submit(_sum_node, node, node_parts, sent, plain, **pinned)
        try:
            if len(tasks) <= LOCAL_NODES:
                node_sums = dict(zip(tasks, self.cluster.results(list(tasks.values())), strict=True))
                return root.sum(lambda node: _writable_sums(node_sums.get(node)), parts.add_sums)
            partial_sums: list[Any] = []

            def add(one: Any, other: Any) -> Any:
                partial_sums.append(self.cluster.submit(_add_nodes, one, other))
                return partial_sums[-1]

            whole = root.sum(tasks.get, add)
            (sums,) = self.cluster.results([whole])
            self.cluster.release(partial_sums)
            loss, counts = sums
            return loss, counts
        finally:
            self.cluster.release(tasks.values())

    def _scores(self, placed: Sequence[Any], weights: Weights) -> list[tuple[int, float, float]]:
        sent, homes = self._send(weights), self._homes(placed)
        tasks = [
            self.cluster.submit(
                _score_parts,
                [placed[number] for number in numbers],
                sent,
                **({"workers": [worker], "allow_other_workers": True} if worker else {}),
            )
            for worker, numbers in homes.items()
        ]
        try:
            worker_scores = self.cluster.results(tasks)
        finally:
            self.cluster.release(tasks)
        by_part = {
            part_index: part_score
            for part_numbers, scores in zip(homes.values(), worker_scores, strict=True)
            for part_index, part_score in zip(part_numbers, scores, strict=True)
        }
        return [by_part[number] for number in range(len(placed))]

    def _passes(self, placed: Sequence[Any], given: Pass) -> list[tuple[Weights, Weights, float]]:
        sent = self.cluster.broadcast(given)
        tasks = [self.cluster.submit(parts.descend_part, part, number, sent) for number, part in enumerate(placed)]
        try:
            return self.cluster.results(tasks)
        finally:
            self.cluster.release([*tasks, sent])


def _writable_sums(sums: Sums | None) -> Sums | None:
    """Copy sums that came over the wire read-only, as they will be added in place."""
    if sums is None or sums[1].flags.writeable:
        return sums
    return sums[0], sums[1].copy()


def _add_nodes(one: Sums, other: Sums) -> Sums:
    """Add two nodes on a worker without changing either, as dask may need them again."""
    return one[0] + other[0], one[1] + other[1]
