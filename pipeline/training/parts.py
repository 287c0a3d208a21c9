"""The work on one part of the rows of a training: read, encode, sort, and then a share of each sum.

A part is some of a dataset's files (`PartRows`); everything here takes one part and plain arguments, so that it can run
in this process or on any worker of a cluster that sees the same paths, and be done again if a worker is lost. In the
order of the work: `survey_part` counts and samples rows, `encode_part` turns them into numbers of features that hold
within the part, `sort_part` makes the corpus, and `place_part` learns the numbers that features have in the whole. Then
`part_sums` gives the part's expected label counts, `score_part` its share of the validation scores, `descend_part` one
pass of stochastic descent.

A part's arrays are `StoredArrays`. On a worker they lie in one file and are mapped when they are used; afterwards their
pages are given back to the system, which caches them as long as memory allows: a process that walks more rows than fit
stays small. In this process they stay in memory.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.encoding import FITTED_ROWS, Features, cut_values
from pipeline.features.patterns import Pattern
from pipeline.models.softmax import probabilities
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import Corpus, RowChunk, Weights, build_corpus
from pipeline.training.inner import InnerCounts, InnerSplit, count_inner, hash_groups
from pipeline.training.loop import log_losses
from pipeline.training.objective import expected_counts, shares
from pipeline.training.rows import PartRows
from pipeline.training.stochastic import Lazy, Pass, PassResult, RepeatedRows
from pipeline.training.tasks import (
    DESCRIBED_ROWS,
    Examples,
    FeatureNumbers,
    count_features,
    keep_features,
    number_all_rows,
)
from pipeline.training.trainers import BASELINE_ROWS

ALIGNMENT = 64
"""arrays begin at multiples of so many bytes"""

Arrays = Mapping[str, NDArray[Any]]


def scratch_folder() -> Path | None:
    """Return the folder in which a worker of a cluster keeps arrays on disk; None outside of a worker."""
    from distributed import get_worker

    with suppress(ValueError, AttributeError):
        return Path(str(get_worker().local_directory))
    return None


class StoredArrays:
    """Named arrays in a file that is deleted with them; in memory without a folder."""

    def __init__(self, arrays: Arrays, folder: Path | None) -> None:
        self._in_memory: Arrays | None = None
        self._path: Path | None = None
        self._places: dict[str, tuple[int, str, tuple[int, ...]]] = {}
        if folder is None:
            self._in_memory = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            return
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix="part-", delete=False) as file:
                self._path = Path(file.name)
                self._write(arrays, file)
        except OSError as error:
            raise PipelineError(
                f"a worker cannot keep its rows in {folder} ({error.strerror or error}): free some space there, or "
                "start it with another --local-directory"
            ) from None

    def _write(self, arrays: Arrays, file: IO[bytes]) -> None:
        position = 0
        for name, array in arrays.items():
            self._places[name] = position, array.dtype.str, array.shape
            file.write(np.ascontiguousarray(array).data)  # not `tofile`, which hides why it failed
            position += array.nbytes
            padding = -position % ALIGNMENT
            file.write(bytes(padding))
            position += padding
        if position == 0:
            file.write(bytes(ALIGNMENT))

    @contextmanager
    def opened(self) -> Iterator[Arrays]:
        """Open the arrays, to be read while the block lasts."""
        if self._in_memory is not None:
            yield self._in_memory
            return
        assert self._path is not None
        with self._path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # compiled code takes writable arrays
        yield {
            name: np.frombuffer(mapped, dtype, int(np.prod(shape)), position).reshape(shape)
            for name, (position, dtype, shape) in self._places.items()
        }
        # else the pages count as this process's memory, of which a worker may have a limited amount
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)

    def __getstate__(self) -> Arrays:
        with self.opened() as arrays:
            return {name: array.copy() for name, array in arrays.items()}

    def __setstate__(self, arrays: Arrays) -> None:
        self.__init__(arrays, scratch_folder())  # type: ignore[misc]

    def __del__(self) -> None:
        path = getattr(self, "_path", None)
        if path is not None:
            path.unlink(missing_ok=True)


CHUNK_ARRAYS = ("stream", "change", "legal", "mass", "total")


class Survey(NamedTuple):
    """Counts and samples of a part's rows, taken before they are encoded."""

    sizes: tuple[int, int]
    """training and validation rows"""
    values: NDArray[np.int64]
    """of terms that are cut into bins, for a sample of the training rows"""
    described: Examples
    """training rows to describe features by"""
    counted: tuple[Examples, Examples]
    """training and validation rows for the baseline"""
    inner: InnerCounts
    """of the training rows"""


def survey_part(rows: PartRows, pattern: Pattern) -> Survey:
    """Count the rows of a part and take samples; `pattern` is the one that will be fitted."""
    train, validation = rows.read()
    size = len(train) if rows.total is None else rows.total
    binned: Any = train.rows[:: max(1, size // FITTED_ROWS)]
    return Survey(
        (len(train), len(validation)),
        cut_values(pattern, binned),
        rows.sampled(train, DESCRIBED_ROWS),
        (rows.sampled(train, BASELINE_ROWS), rows.sampled(validation, BASELINE_ROWS)),
        count_inner(hash_groups(train.groups)),
    )


def encode_part(rows: PartRows, features: Features, on_disk: bool) -> StoredArrays:
    """Number the features that a part's rows fire by first appearance; of validation rows keep the hashes.

    `on_disk` says whether arrays are kept on disk rather than in memory, here and below.
    """
    train, validation = rows.read()
    templates = len(features.pattern.templates)
    ids, keys = number_all_rows(features, train.rows)
    # validation rows may fire features that only other parts have seen: they get numbers when all parts have
    hashes = np.empty((len(validation), templates), np.uint64)
    for part, more_hashes in features.pieces(validation.rows):
        hashes[part] = more_hashes
    seen, template = count_features(ids, len(keys))
    arrays: dict[str, NDArray[Any]] = {
        "ids": ids,
        "legal": train.legal,
        "targets": train.targets,
        "group": hash_groups(train.groups),
        "keys": keys,
        "seen": seen,
        "template": template,
        "held hashes": hashes,
        "held legal": validation.legal,
        "held targets": validation.targets,
    }
    return StoredArrays(arrays, scratch_folder() if on_disk else None)


def seen_keys(encoded: StoredArrays) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int32]]:
    """Return the hashes of a part's features in ascending order, how often each was fired, and its template."""
    with encoded.opened() as arrays:
        order = np.argsort(arrays["keys"])
        return arrays["keys"][order], arrays["seen"][order], arrays["template"][order]


class CorpusPart(NamedTuple):
    """A part's corpus in numbers of its own, and the same features' numbers in the whole once they are known."""

    corpus: StoredArrays
    templates: int
    labels: int
    chunks: int
    placement: StoredArrays | None = None


def sort_part(
    encoded: StoredArrays, rows: PartRows, wanted_path: Path | None, on_disk: bool, split: InnerSplit | None = None
) -> CorpusPart:
    """Build a part's corpus.

    Parameters: `wanted_path` of the sorted array of the hashes of features to build it from (None: all); `split` says
    which rows are inner and not in the corpus, but judge it.
    """
    with encoded.opened() as arrays:
        ids, keys, targets, legal = (arrays[name] for name in ("ids", "keys", "targets", "legal"))
        if wanted_path is not None:
            wanted: Any = np.load(wanted_path, mmap_mode="r")
            is_wanted = wanted[np.minimum(np.searchsorted(wanted, keys), max(0, len(wanted) - 1))] == keys
            ids, keys = keep_features(ids, keys, is_wanted)
        others = {name: array for name, array in arrays.items() if name.startswith("held ")}
        if split is not None:
            inner = split.chosen(arrays["group"])
            # by hash, as for validation rows: other parts may fire a feature that only inner rows fire in this one
            hashes = np.where(ids[inner] < 0, np.uint64(0), np.append(keys, np.uint64(0))[ids[inner]])
            others |= {"inner hashes": hashes, "inner legal": legal[inner], "inner targets": targets[inner]}
            ids, legal, targets = ids[~inner], legal[~inner], targets[~inner]
            is_fired = np.zeros(len(keys), bool)
            is_fired[ids[ids >= 0]] = True
            ids, keys = keep_features(ids, keys, is_fired)
        chunks: tuple[RowChunk, ...] = ()
        counts, template = np.zeros((0, rows.labels)), np.zeros(0, np.int32)
        if len(ids):
            made = build_corpus(ids, targets, features=len(keys), labels=rows.labels, legal=legal, whole=False)
            chunks, counts, template = made.chunks, made.counts, made.template
            keys = keys[np.argsort(made.number)]
        stored = {
            f"{name} {index}": getattr(chunk, name) for index, chunk in enumerate(chunks) for name in CHUNK_ARRAYS
        }
        stored |= {"keys": keys, "counts": counts, "template": template}
        stored |= others
        return CorpusPart(
            StoredArrays(stored, scratch_folder() if on_disk else None), ids.shape[1], rows.labels, len(chunks)
        )


class Outline(NamedTuple):
    """A part's features in the part's order, with label counts and templates: all that numbering the whole needs."""

    keys: NDArray[np.uint64]
    counts: NDArray[np.float64]
    template: NDArray[np.int32]
    rows: int
    """rows that stochastic descent passes over"""
    fired: int
    """features fired, summed over these rows"""
    inner_rows: int
    """rows that judge"""


def outline_part(part: CorpusPart) -> Outline:
    """Return the outline of a part."""
    with part.corpus.opened() as arrays:
        copies = [np.maximum(1, np.ceil(arrays[f"mass {at}"].sum(1))) for at in range(part.chunks)]
        rows = int(sum(chunk.sum() for chunk in copies))
        counts = arrays["counts"].copy()
        inner_rows = len(arrays["inner targets"]) if "inner targets" in arrays else 0
        fired = round(float(counts.sum()))
        return Outline(arrays["keys"].copy(), counts, arrays["template"].copy(), rows, fired, inner_rows)


@lru_cache(maxsize=2)
def _load_numbers(keys: Path) -> FeatureNumbers:
    """Load the numbers of the features whose hashes are in the array at `keys`; kept, as parts share them."""
    return FeatureNumbers(np.load(keys))


def place_part(part: CorpusPart, keys: Path, on_disk: bool) -> CorpusPart:
    """Add the numbers that a part's features, also of rows to score on, have in the array at `keys`."""
    numbers = _load_numbers(keys)
    with part.corpus.opened() as arrays:
        own = numbers.find(arrays["keys"][:, None])[:, 0]
        placement = {"number": own, "held ids": numbers.find(arrays["held hashes"])}
        if "inner hashes" in arrays:
            placement["inner ids"] = numbers.find(arrays["inner hashes"])
    return part._replace(placement=StoredArrays(placement, scratch_folder() if on_disk else None))


class WeightPoint(NamedTuple):
    """Weights of all features at which sums are taken, and whether their exponentials may be multiplied."""

    weights: Weights
    values: Weights
    """the exponentials of the weights if `plain`, else the weights"""
    plain: bool

    @classmethod
    def of(cls, weights: Weights, plain: bool) -> WeightPoint:
        """Take exponentials where they may be multiplied."""
        return cls(weights, np.exp(weights) if plain else weights, plain)


Sums = tuple[float, Weights]
"""the sum of log Z over rows, and their expected label counts, (features, labels) of the whole"""


def part_sums(
    part: CorpusPart,
    point: WeightPoint,
    workers: Workers,
    whole: Weights | None = None,
    workspace: NDArray[np.float64] | None = None,
) -> Sums:
    """Return a part's sum of log Z and its expected label counts, the latter added to `whole` (default: zeros).

    `workspace` is an array of at least `workspace_size(part)` numbers to work in, for callers who call often.
    """
    whole = np.zeros_like(point.values) if whole is None else whole
    if part.chunks == 0:
        return 0.0, whole
    assert part.placement is not None
    with part.corpus.opened() as arrays, part.placement.opened() as placement:
        chunks = [RowChunk(*(arrays[f"{name} {at}"] for name in CHUNK_ARRAYS)) for at in range(part.chunks)]
        number = placement["number"]
        shape = part.chunks + 1, len(number), whole.shape[1]
        size = int(np.prod(shape))
        values, *_ = both = (np.empty(size) if workspace is None else workspace[:size]).reshape(shape)
        sums, pieces = both[1:], shares(len(number))
        workers.map(lambda piece: np.take(point.values, number[piece], 0, values[piece], "clip"), pieces)
        loss = expected_counts(chunks, part.templates, values, point.plain, sums, workers)
        workers.map(lambda piece: _scatter(sums[:, piece], number[piece], whole), pieces)
    return loss, whole


def workspace_size(part: CorpusPart) -> int:
    """Return how many numbers `part_sums` works in."""
    if part.placement is None:
        return 0
    with part.placement.opened() as placement:
        return (part.chunks + 1) * len(placement["number"]) * part.labels


@kernel
def _scatter(sums: NDArray[np.float64], number: NDArray[np.int32], whole: Weights) -> None:
    """Add the sums of a part's chunks, in their order, to those of the whole."""
    for f in range(sums.shape[1]):
        for j in range(sums.shape[2]):
            total = 0.0
            for chunk in range(sums.shape[0]):
                total += sums[chunk, f, j]
            whole[number[f], j] += total


def add_sums(first: Sums, second: Sums) -> Sums:
    """Add the sums of two nodes of the tree, in place of the first."""
    loss, counts = first
    counts += second[1]
    return loss + second[0], counts


def score_part(part: CorpusPart, weights: Weights, workers: Workers, side: str) -> tuple[int, float, float]:
    """Score a part's validation rows (side `held`) or judges (`inner`).

    Returns their number, the argmax errors and the sum of log-losses.
    """
    assert part.placement is not None
    with part.corpus.opened() as arrays, part.placement.opened() as placement:
        targets = arrays[f"{side} targets"]
        if len(targets) == 0:
            return 0, 0.0, 0.0
        chances = probabilities(placement[f"{side} ids"], arrays[f"{side} legal"], weights.astype(np.float32), workers)
        wrong = np.count_nonzero(chances.argmax(axis=1) != targets)
        return len(targets), float(wrong), float(log_losses(chances, targets).sum())


def descend_part(part: CorpusPart, number: int, arguments: Pass) -> PassResult:
    """Pass over a part's rows from a common point; return the result for the part's features, in the part's order."""
    assert part.placement is not None
    with part.corpus.opened() as arrays, part.placement.opened() as placement:
        lazy = Lazy(*(np.take(array, placement["number"], axis=0) for array in arguments.lazy))
        if part.chunks == 0:
            return PassResult(lazy.weights, lazy.applied, arguments.budget)
        chunks = tuple(RowChunk(*(arrays[f"{name} {i}"] for name in CHUNK_ARRAYS)) for i in range(part.chunks))
        none = np.empty(0, np.int32)
        corpus = Corpus(chunks, part.templates, np.empty((0, part.labels)), none, none)
        return RepeatedRows.of(*corpus.rows()).descend(lazy, arguments, number)
