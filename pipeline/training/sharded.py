"""Max-ent on more rows than are wanted in memory at once: in parts, here or on a cluster, with the same bytes.

The files of a dataset are divided into parts of about `TrainConfig.part_rows` rows, by the manifest alone. Each part is
read, encoded and sorted by itself (`parts`). The features of the whole are numbered by merging the parts' sorted
hashes: those of the first part in its order, then the new ones of the second, and so on; no process has all rows. From
then on a `ShardedProblem` is a `Problem` like any other: its sums are taken along a fixed tree of parts. A
single part is numbered, summed and scored exactly as a corpus in memory, so that small data has the bytes it always
had.

Stochastic descent passes over each part from a common point; each feature's weights are then averaged over the parts,
by how often each fired it. Algorithms that read more of a corpus than sums and passes need all rows in one place.

Parts are in the memory of this process (`LocalParts`: threads make them side by side and walk them one after the other)
or on the disks of a cluster's workers (`ClusterParts`: weights are sent to all workers once per evaluation, sparse
after L1 has set most to zero, and each worker adds what of the tree it holds before anything is sent; a part whose
worker was lost is made again on another). Both call the same functions of `parts` and add along the same `SumTree`, so
the bytes are the same.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.features.encoding import Features, fit_values
from pipeline.features.patterns import Pattern
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import SumTree, Workers
from pipeline.runtime.progress import Callbacks, Progress, no_progress
from pipeline.training import parts
from pipeline.training.corpus import Corpus, Weights
from pipeline.training.inner import InnerSplit
from pipeline.training.loop import ScoredRows
from pipeline.training.objective import Descent, Problem, shares
from pipeline.training.parts import CorpusPart, Outline, Sums, WeightPoint
from pipeline.training.rows import PartRows
from pipeline.training.stochastic import Pass, PassResult
from pipeline.training.tasks import CorpusPair, Prepared, Task, feature_minimums

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

    def scores(self, placed: Sequence[Any], weights: Weights, side: str) -> list[tuple[int, float, float]]:
        """Return `parts.score_part` of each part."""

    def passes(self, placed: Sequence[Any], arguments: Pass) -> list[PassResult]:
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

        # the same tree whoever holds the parts: floating-point sums depend on the order of addition
        root = SumTree.root(len(placed))
        whole = zeros(2 * root.size)
        return total(root, whole), whole

    def _array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array used again in every evaluation: touching fresh memory costs more than the sums themselves."""
        if name not in self._arrays or self._arrays[name].shape != shape:
            self._arrays[name] = np.empty(shape)
        return self._arrays[name]

    def scores(self, placed: Sequence[CorpusPart], weights: Weights, side: str) -> list[tuple[int, float, float]]:
        return [parts.score_part(part, weights, self.workers, side) for part in placed]

    def passes(self, placed: Sequence[CorpusPart], arguments: Pass) -> list[PassResult]:
        numbered = list(enumerate(placed))
        return self.workers.map(lambda one: parts.descend_part(one[1], one[0], arguments), numbered)


class PackedWeights(NamedTuple):
    """Weights as they are sent: whole, or if most are zero the others and their places."""

    token: str
    shape: tuple[int, int]
    places: NDArray[np.int32] | None
    values: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Weights) -> PackedWeights:
        # L1 leaves most weights at zero after some iterations: then only the others are sent
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


def _score_parts(node_parts: Sequence[CorpusPart], packed: PackedWeights, side: str) -> list[tuple[int, float, float]]:
    """Score parts on a worker."""
    weights, worker = packed.unpack(), Workers(1)
    return [parts.score_part(part, weights, worker, side) for part in node_parts]


def _pin(worker: str) -> dict[str, Any]:
    """Return the options that make a worker the first choice for a task; none without a name."""
    return {"workers": [worker], "allow_other_workers": True} if worker else {}


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
        pinned = [_pin(homes[index * len(homes) // len(items)] if homes else "") for index in range(len(items))]
        tasks = [self.cluster.submit(function, *item, **options) for item, options in zip(items, pinned, strict=True)]
        self.cluster.wait(tasks, progress)
        return tasks

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return self.cluster.results(handles)

    def release(self, handles: Sequence[Any]) -> None:
        self.cluster.release(handles)

    def sums(self, placed: Sequence[Any], weights: Weights, plain: bool) -> Sums:
        return self._retried(lambda: self._sums(placed, weights, plain))

    def scores(self, placed: Sequence[Any], weights: Weights, side: str) -> list[tuple[int, float, float]]:
        return self._retried(lambda: self._scores(placed, weights, side))

    def passes(self, placed: Sequence[Any], arguments: Pass) -> list[PassResult]:
        return self._retried(lambda: self._passes(placed, arguments))

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
            for node in root.largest_within(frozenset(numbers)):
                node_parts = list(placed[node.first : node.first + node.size])
                tasks[node] = self.cluster.submit(_sum_node, node, node_parts, sent, plain, **_pin(worker))
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

    def _scores(self, placed: Sequence[Any], weights: Weights, side: str) -> list[tuple[int, float, float]]:
        sent, homes = self._send(weights), self._homes(placed)
        tasks = [
            self.cluster.submit(_score_parts, [placed[number] for number in numbers], sent, side, **_pin(worker))
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

    def _passes(self, placed: Sequence[Any], arguments: Pass) -> list[PassResult]:
        sent = self.cluster.broadcast(arguments)
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


class ShardedCorpora:
    """The corpora of a street in parts, made when they are first asked for (see `tasks.Corpora`)."""

    prior_predictions = None

    def __init__(
        self,
        gathering: Gathering,
        planned: Sequence[PartRows],
        task: Task,
        values: NDArray[np.int64],
        validation_rows: int,
        callbacks: Callbacks,
        folder: Path,
        *,
        split: InnerSplit | None,
        retrains: bool,
    ) -> None:
        """Remember what the corpora are made from.

        Parameters: `values` to cut into bins by, from all parts; `folder` for arrays that all workers read; `split` and
        `retrains` as in `tasks.Corpora`: which rows choose the iteration, and whether all are learned from then.
        """
        self.retrains = retrains
        self._split = split
        self._gathering, self._planned, self._task, self._values = gathering, planned, task, values
        self._validation_rows, self._stage, self._folder = validation_rows, callbacks.stage, folder
        self._pairs: dict[bool, CorpusPair] = {}

    def get(self, previous: bool = False) -> Prepared:
        """Return the corpus of all rows, with the player's previous action among the features or without."""
        whole = self._pair(previous).whole
        assert whole is not None
        return whole

    def choosing(self, previous: bool = False) -> Prepared | None:
        """Return the corpus without the inner rows, which judge it; None if no iteration is to be chosen on them."""
        return self._pair(previous).choosing

    def _pair(self, previous: bool) -> CorpusPair:
        if previous not in self._pairs:
            task, gathering = self._task, self._gathering
            pattern = task.pattern.on(task.streets)
            chosen = pattern.with_previous() if previous else pattern.of_rows()
            progress = self._stage("encoding features")
            features = fit_values(chosen, self._values, task.streets)
            encoded = gathering.map(
                parts.encode_part, [(rows, features, gathering.on_disk) for rows in self._planned], progress
            )
            wanted_path = self._save_wanted(encoded, chosen)
            progress = self._stage("sorting rows")
            choosing = (
                None if self._split is None else self._sort(encoded, features, wanted_path, self._split, progress)
            )
            whole = None
            if choosing is None or self.retrains:
                whole = self._sort(encoded, features, wanted_path, None, progress)
            gathering.release(encoded)
            self._pairs[previous] = CorpusPair(whole, choosing)
        return self._pairs[previous]

    def _sort(
        self,
        encoded: Sequence[Any],
        features: Features,
        wanted_path: Path | None,
        split: InnerSplit | None,
        progress: Progress,
    ) -> Prepared | None:
        """Return a corpus, of all rows or without inner ones; None if the others of these have one label only."""
        gathering, labels = self._gathering, len(self._task.labels)
        pairs = zip(encoded, self._planned, strict=True)
        made = gathering.map(
            parts.sort_part, [(one, rows, wanted_path, gathering.on_disk, split) for one, rows in pairs], progress
        )
        handles = gathering.map(parts.outline_part, [(part,) for part in made])
        outlines = gathering.results(handles)
        gathering.release(handles)
        if split is not None and np.count_nonzero(sum(outline.counts.sum(axis=0) for outline in outlines)) < 2:
            gathering.release(made)
            return None
        keys, counts, template, numbers = number_features(outlines, labels)
        path = self._save("keys", keys)
        placed = gathering.map(parts.place_part, [(part, path, gathering.on_disk) for part in made])
        gathering.release(made)
        identity = np.arange(len(keys), dtype=np.int32)
        about = (len(features.pattern.templates), counts, identity, template)
        corpus = ShardedCorpus((), *about, gathering=gathering, placed=placed, outlines=outlines, numbers=numbers)
        inner_rows = sum(outline.inner_rows for outline in outlines)
        judges = None if split is None else ShardedScoredRows.of("inner", inner_rows)
        validation = ShardedScoredRows.of("held", self._validation_rows) if self._validation_rows else None
        return Prepared(features, keys, corpus, validation, judges, ShardedProblem)

    def _save_wanted(self, encoded: Sequence[Any], pattern: Pattern) -> Path | None:
        """Save the hashes of features fired often enough and return the path; None if the pattern has no minimum."""
        minimums = feature_minimums(pattern)
        if (minimums <= 1).all():
            return None
        handles = self._gathering.map(parts.seen_keys, [(handle,) for handle in encoded])
        keys, seen, template = self._gathering.results(handles[:1])[0]
        for handle in handles[1:]:
            more = self._gathering.results([handle])[0]
            both = [np.concatenate(pair) for pair in zip((keys, seen, template), more, strict=True)]
            order = np.argsort(both[0], kind="stable")
            keys, seen, template = (array[order] for array in both)
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            keys, seen, template = keys[starts], np.add.reduceat(seen, starts), template[starts]
        self._gathering.release(handles)
        return self._save("kept", keys[seen >= minimums[template]])

    def _save(self, name: str, array: NDArray[np.uint64]) -> Path:
        """Save an array for all workers; its name has a hash of it, as they keep what they have read by its path."""
        self._folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:16]
        path = self._folder.resolve() / f"{name}-{digest}.npy"
        np.save(path, array)
        return path


def number_features(
    outlines: Sequence[Outline], labels: int
) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.int32], list[NDArray[np.int32]]]:
    """Number the features of all parts; return hashes, label counts and templates, and each part's numbers."""
    sorted_keys, numbers = np.empty(0, np.uint64), np.empty(0, np.int32)
    ordered: list[NDArray[np.uint64]] = []
    count = 0
    for outline in outlines:
        place = np.minimum(np.searchsorted(sorted_keys, outline.keys), max(0, len(sorted_keys) - 1))
        new = outline.keys[sorted_keys[place] != outline.keys] if len(sorted_keys) else outline.keys
        ordered.append(new)
        # numbers of earlier parts stand, so a single part has the numbers of a corpus in memory
        both = np.concatenate([sorted_keys, new])
        numbers = np.concatenate([numbers, np.arange(count, count + len(new), dtype=np.int32)])
        order = np.argsort(both, kind="stable")
        sorted_keys, numbers = both[order], numbers[order]
        count += len(new)
    counts, template = np.zeros((count, labels)), np.full(count, -1, np.int32)
    by_part = [numbers[np.searchsorted(sorted_keys, outline.keys)] for outline in outlines]
    for outline, number in zip(outlines, by_part, strict=True):
        counts[number] += outline.counts
        template[number] = outline.template
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        raise PipelineError("all rows have the same label: a model needs at least two to tell apart")
    return np.concatenate(ordered), counts, template, by_part


@dataclass(frozen=True)
class ShardedCorpus(Corpus):
    """A corpus whose chunks are in parts elsewhere."""

    gathering: Gathering
    placed: Sequence[Any]
    outlines: Sequence[Outline]
    numbers: Sequence[NDArray[np.int32]]
    """of each part's features in the whole"""


@dataclass(frozen=True)
class ShardedScoredRows(ScoredRows):
    """Rows to score on that lie beside the training rows of their parts."""

    side: str
    """`held`: validation rows; `inner`: judges"""
    rows: int

    @classmethod
    def of(cls, side: str, rows: int) -> ShardedScoredRows:
        """Return the rows of a side, of which there are so many."""
        return cls(np.empty((0, 0), np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8), side, rows)

    def __len__(self) -> int:
        return self.rows

    def score(self, problem: Problem, weights: Weights) -> tuple[float, float]:
        assert isinstance(problem, ShardedProblem)
        part_scores = problem.corpus.gathering.scores(problem.corpus.placed, weights, self.side)
        rows, wrong, loss = (sum(column) for column in zip(*part_scores, strict=True))
        return wrong / rows, loss / rows


class ShardedProblem(Problem):
    """The objective of rows in parts."""

    corpus: ShardedCorpus

    def sums(self, weights: Weights, plain: bool) -> tuple[float, NDArray[np.float64]]:
        """Return the sum of log Z over the rows, and expected label counts (1, features, labels)."""
        loss, expected = self.corpus.gathering.sums(self.corpus.placed, weights, plain)
        return loss, expected[None]

    def descents(self) -> list[Descent]:
        """Return the parts that a stochastic pass goes over one by one."""
        return [
            Descent(outline.rows, outline.fired, number, outline.counts.sum(axis=1, keepdims=True))
            for outline, number in zip(self.corpus.outlines, self.corpus.numbers, strict=True)
        ]

    def descend(self, arguments: Pass) -> list[PassResult]:
        """Pass over the rows of each part from a common point."""
        return self.corpus.gathering.passes(self.corpus.placed, arguments)
