"""Where the parts of a training are, and how sums over them come together: in this process, or on a cluster.

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
from pipeline.training.parts import Part, Pass, Point, Sums

FEW_NODES = 8
"""sums of nodes that are brought here and added; more are added on the workers"""


class Gathering(Protocol):
    """Parts somewhere."""

    spill: bool

    def each(
        self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Progress = no_progress
    ) -> list[Any]:
        """`function(*item)` for the part of each item; what is given back may be an argument of another call."""

    def get(self, found: Sequence[Any]) -> list[Any]:
        """The values of what `each` gave back, brought here."""

    def let_go(self, found: Sequence[Any]) -> None:
        """Forget what `each` gave back."""

    def sums(self, placed: Sequence[Any], weights: Weights, plain: bool) -> Sums:
        """The sum of log Z over all rows, and the expected label counts."""

    def scores(self, placed: Sequence[Any], weights: Weights) -> list[tuple[int, float, float]]:
        """`parts.score` of each part."""

    def passes(self, placed: Sequence[Any], given: Pass) -> list[tuple[Weights, Weights, float]]:
        """`parts.descend` of each part."""


class Here:
    """Parts in the memory of this process."""

    spill = False

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._arrays: dict[str, NDArray[np.float64]] = {}

    def each(
        self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Progress = no_progress
    ) -> list[Any]:
        done, telling = count(1), Lock()

        def work(item: tuple[Any, ...]) -> Any:
            found = function(*item)
            with telling:
                progress(next(done), len(items))
            return found

        return self.workers.map(work, items)

    def get(self, found: Sequence[Any]) -> list[Any]:
        return list(found)

    def let_go(self, found: Sequence[Any]) -> None:
        pass

    def sums(self, placed: Sequence[Part], weights: Weights, plain: bool) -> Sums:
        cut, values = shares(len(weights)), weights
        if plain:
            values = self._array("values", weights.shape)
            self.workers.map(lambda piece: np.exp(weights[piece], out=values[piece]), cut)
        point = Point(weights, values, plain)
        room = self._array("room", (max(map(parts.room_of, placed)),))

        def total(node: SumTree, counts: Weights) -> float:
            """Add the counts of a node to `counts`, which are zero unless it is a single part; its sum of log Z."""
            if node.size == 1:
                return parts.expect(placed[node.first], point, self.workers, counts, room)[0]
            first, *second = node.halves
            loss = total(first, counts)
            for half in second:
                if half.size == 1:
                    loss += total(half, counts)
                else:
                    others = zeros(half.size)  # free again when the tree is walked on: one of each size is enough
                    loss += total(half, others)
                    self.workers.map(lambda piece, more=others: np.add(counts[piece], more[piece], counts[piece]), cut)
            return loss

        def zeros(size: int) -> Weights:
            found = self._array(f"counts {size}", weights.shape)
            self.workers.map(lambda piece: found[piece].fill(0), cut)
            return found

        root = SumTree.root(len(placed))
        whole = zeros(2 * root.size)
        return total(root, whole), whole

    def _array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """An array that is kept from one evaluation to the next: fresh memory costs more than what is done in it."""
        if name not in self._arrays or self._arrays[name].shape != shape:
            self._arrays[name] = np.empty(shape)
        return self._arrays[name]

    def scores(self, placed: Sequence[Part], weights: Weights) -> list[tuple[int, float, float]]:
        return [parts.score(part, weights, self.workers) for part in placed]

    def passes(self, placed: Sequence[Part], given: Pass) -> list[tuple[Weights, Weights, float]]:
        numbered = list(enumerate(placed))
        return self.workers.map(lambda one: parts.descend(one[1], one[0], given), numbered)


class Packed(NamedTuple):
    """Weights on the wire: whole, or where most are zero the others and their places."""

    token: str
    shape: tuple[int, int]
    at: NDArray[np.int32] | None
    values: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Weights) -> Packed:
        flat = weights.reshape(-1)
        used = int(np.count_nonzero(flat))
        if 3 * used < 2 * len(flat) and len(flat) < 2**31:  # 12 bytes each instead of 8
            at = np.flatnonzero(flat).astype(np.int32)
            return cls(uuid.uuid4().hex, weights.shape, at, flat[at])
        return cls(uuid.uuid4().hex, weights.shape, None, flat.copy())

    def opened(self) -> Weights:
        """The weights."""
        if self.at is None:
            return self.values.reshape(self.shape)
        out = np.zeros(self.shape)
        out.reshape(-1)[self.at] = self.values
        return out


class _Key(NamedTuple):
    """A point by its name, so that the tasks of a worker compute exponentials once."""

    token: str
    plain: bool
    packed: Packed

    def __hash__(self) -> int:
        return hash((self.token, self.plain))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (self.token, self.plain) == (other.token, other.plain)


@lru_cache(maxsize=1)
def _point(key: _Key) -> Point:
    return Point.at(key.packed.opened(), key.plain)


def _sum_node(node: SumTree, held: Sequence[Part], packed: Packed, plain: bool) -> Sums:
    """On a worker: the sums of a node all of whose parts are at hand."""
    point, one = _point(_Key(packed.token, plain, packed)), Workers(1)

    def leaf(inner: SumTree) -> Sums | None:
        return parts.expect(held[inner.first - node.first], point, one) if inner.size == 1 else None

    return node.sum(leaf, parts.add)


def _score_parts(held: Sequence[Part], packed: Packed) -> list[tuple[int, float, float]]:
    """On a worker: the scores of parts."""
    weights, one = packed.opened(), Workers(1)
    return [parts.score(part, weights, one) for part in held]


class There:
    """Parts on the workers of a cluster."""

    spill = True

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._sent: tuple[Weights, Any] | None = None

    def each(
        self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Progress = no_progress
    ) -> list[Any]:
        homes = [worker for worker, threads in self.cluster.workers().items() for _ in range(threads)]
        pinned = [
            {"workers": [homes[at * len(homes) // len(items)]], "allow_other_workers": True} if homes else {}
            for at in range(len(items))
        ]
        tasks = [self.cluster.submit(function, *item, **options) for item, options in zip(items, pinned, strict=True)]
        self.cluster.wait(tasks, progress)
        return tasks

    def get(self, found: Sequence[Any]) -> list[Any]:
        return self.cluster.results(found)

    def let_go(self, found: Sequence[Any]) -> None:
        self.cluster.release(found)

    def sums(self, placed: Sequence[Any], weights: Weights, plain: bool) -> Sums:
        return self._again(lambda: self._sums(placed, weights, plain))

    def scores(self, placed: Sequence[Any], weights: Weights) -> list[tuple[int, float, float]]:
        return self._again(lambda: self._scores(placed, weights))

    def passes(self, placed: Sequence[Any], given: Pass) -> list[tuple[Weights, Weights, float]]:
        return self._again(lambda: self._passes(placed, given))

    def _again(self, evaluate: Callable[[], Any]) -> Any:
        return self.cluster.retry_when_lost(evaluate, self._forget)

    def _forget(self) -> None:
        self._sent = None

    def _send(self, weights: Weights) -> Any:
        """Weights on every worker; those that were sent last are not sent again."""
        if self._sent is None or not np.array_equal(self._sent[0], weights):
            if self._sent is not None:
                self.cluster.release([self._sent[1]])
            self._sent = weights.copy(), self.cluster.broadcast(Packed.of(weights))
        return self._sent[1]

    def _homes(self, placed: Sequence[Any]) -> dict[str, list[int]]:
        """The numbers of the parts that each worker holds."""
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
                held = list(placed[node.first : node.first + node.size])
                tasks[node] = self.cluster.submit(_sum_node, node, held, sent, plain, **pinned)
        try:
            if len(tasks) <= FEW_NODES:
                found = dict(zip(tasks, self.cluster.results(list(tasks.values())), strict=True))
                return root.sum(lambda node: _writable(found.get(node)), parts.add)
            more: list[Any] = []

            def add(one: Any, other: Any) -> Any:
                more.append(self.cluster.submit(_added, one, other))
                return more[-1]

            whole = root.sum(tasks.get, add)
            (sums,) = self.cluster.results([whole])
            self.cluster.release(more)
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
            found = self.cluster.results(tasks)
        finally:
            self.cluster.release(tasks)
        by_part = {
            n: one for ns, scores in zip(homes.values(), found, strict=True) for n, one in zip(ns, scores, strict=True)
        }
        return [by_part[number] for number in range(len(placed))]

    def _passes(self, placed: Sequence[Any], given: Pass) -> list[tuple[Weights, Weights, float]]:
        sent = self.cluster.broadcast(given)
        tasks = [self.cluster.submit(parts.descend, part, number, sent) for number, part in enumerate(placed)]
        try:
            return self.cluster.results(tasks)
        finally:
            self.cluster.release([*tasks, sent])


def _writable(sums: Sums | None) -> Sums | None:
    """What came over the wire may be read-only; sums are added in place."""
    if sums is None or sums[1].flags.writeable:
        return sums
    return sums[0], sums[1].copy()


def _added(one: Sums, other: Sums) -> Sums:
    """On a worker: the sum of two nodes; neither is changed, as dask may need them again."""
    return one[0] + other[0], one[1] + other[1]
