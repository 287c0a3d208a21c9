"""The work on one part of the rows of a training: read, encode, sort, and then a share of each sum.

A part is some of a dataset's files (`PartRows`); everything here takes one part and plain arguments, so that it can run
in this process or on any worker of a cluster that sees the same paths, and be done again if a worker is lost. In the
order of the work: `survey_part` counts and samples rows, `encode_part` turns them into numbers of features that hold
within the part, `sort_part` makes the corpus, and `place_part` learns the numbers that features have in the whole. Then
`part_sums` gives the part's expected label counts, `score_part` its share of the validation scores, `descend_part` one
pass of stochastic descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.encoding import FITTED_ROWS, Features, cut_values
from pipeline.features.patterns import Pattern
from pipeline.features.vocabulary import Numbering, Vocabulary
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.models.softmax import legal_masks, probabilities
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import Corpus, RowChunk, build_corpus
from pipeline.training.objective import Weights, expected_counts, shares
from pipeline.training.remarks import BASELINE_ROWS
from pipeline.training.rows import read_examples
from pipeline.training.stochastic import DECAY, Lazy, repeated_rows, sgd_pass
from pipeline.training.stored import StoredArrays, scratch_folder
from pipeline.training.tasks import DESCRIBED_ROWS, Examples

CHUNK_ARRAYS = ("stream", "change", "legal", "mass", "total")


@dataclass(frozen=True)
class PartRows:
    """The rows of a dataset that make one part."""

    data: Path
    files: tuple[str, ...]
    agents: tuple[str, ...]
    streets: tuple[int, ...]
    game: str
    pattern: Pattern
    labels: int
    total: int | None
    """rows of all parts, both sides; None for one that is alone"""

    def read(self) -> tuple[Examples, Examples]:
        """Read its training and its validation rows."""
        return read_examples(
            self.data, self.agents, self.streets, self.game, pattern=self.pattern, files=frozenset(self.files)
        )

    def sampled(self, examples: Examples, count: int) -> Examples:
        """Take this part's share of about `count` rows, evenly spread."""
        return examples.strided(max(1, (len(examples) if self.total is None else self.total) // count))


class Survey(NamedTuple):
    """Counts and samples of a part's rows, taken before they are encoded."""

    rows: int
    validation_rows: int
    values: NDArray[np.int64]
    """of terms that are cut into bins, for a sample of the training rows"""
    described: Examples
    """training rows to describe features by"""
    counted: tuple[Examples, Examples]
    """training and validation rows for the baseline"""


def survey_part(rows: PartRows, pattern: Pattern) -> Survey:
    """Count the rows of a part and take samples; `pattern` is the one that will be fitted."""
    train, validation = rows.read()
    size = len(train) if rows.total is None else rows.total
    binned: Any = train.rows[:: max(1, size // FITTED_ROWS)]
    return Survey(
        len(train),
        len(validation),
        cut_values(pattern, binned),
        rows.sampled(train, DESCRIBED_ROWS),
        (rows.sampled(train, BASELINE_ROWS), rows.sampled(validation, BASELINE_ROWS)),
    )


def encode_part(rows: PartRows, features: Features, on_disk: bool) -> StoredArrays:
    """Number the features that a part's rows fire by first appearance; of validation rows keep the hashes.

    `on_disk` says whether arrays are kept on disk rather than in memory, here and below.
    """
    train, validation = rows.read()
    templates = len(features.pattern.templates)
    numbering = Numbering()
    ids = np.empty((len(train), templates), np.int32)
    for part, hashes in features.pieces(train.rows):
        numbering(hashes, ids[part])
    hashes = np.empty((len(validation), templates), np.uint64)
    for part, more_hashes in features.pieces(validation.rows):
        hashes[part] = more_hashes
    keys = numbering.keys()
    seen = np.zeros(len(keys), np.int64)
    template = np.zeros(len(keys), np.int32)
    for number, column in enumerate(ids.T):
        fired = column[column >= 0]
        seen += np.bincount(fired, minlength=len(keys))
        template[fired] = number
    arrays: dict[str, NDArray[Any]] = {
        "ids": ids,
        "legal": train.legal,
        "targets": train.targets,
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


def sort_part(encoded: StoredArrays, rows: PartRows, wanted_path: Path | None, on_disk: bool) -> CorpusPart:
    """Build a part's corpus from the features whose hashes are in the sorted array at `wanted_path` (None: all)."""
    with encoded.opened() as arrays:
        ids, keys = arrays["ids"], arrays["keys"]
        if wanted_path is not None:
            wanted: Any = np.load(wanted_path, mmap_mode="r")
            is_wanted = wanted[np.minimum(np.searchsorted(wanted, keys), max(0, len(wanted) - 1))] == keys
            number = np.append(np.where(is_wanted, np.cumsum(is_wanted) - 1, -1), -1).astype(np.int32)
            ids, keys = number[ids], keys[is_wanted]
        chunks: tuple[RowChunk, ...] = ()
        counts, template = np.zeros((0, rows.labels)), np.zeros(0, np.int32)
        if len(ids):
            made = build_corpus(
                ids, arrays["targets"], features=len(keys), labels=rows.labels, legal=arrays["legal"], whole=False
            )
            chunks, counts, template = made.chunks, made.counts, made.template
            keys = keys[np.argsort(made.number)]
        stored = {
            f"{name} {index}": getattr(chunk, name) for index, chunk in enumerate(chunks) for name in CHUNK_ARRAYS
        }
        stored |= {"keys": keys, "counts": counts, "template": template}
        stored |= {name: array for name, array in arrays.items() if name.startswith("held ")}
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


def outline_part(part: CorpusPart) -> Outline:
    """Return the outline of a part."""
    with part.corpus.opened() as arrays:
        copies = [np.maximum(1, np.ceil(arrays[f"mass {at}"].sum(1))) for at in range(part.chunks)]
        rows = int(sum(chunk.sum() for chunk in copies))
        counts = arrays["counts"].copy()
        return Outline(arrays["keys"].copy(), counts, arrays["template"].copy(), rows, round(float(counts.sum())))


@lru_cache(maxsize=2)
def _lookup(keys: Path) -> tuple[NDArray[np.int32], Vocabulary]:
    """Load the hashes at `keys` as a vocabulary, with the number of each; kept, as parts share them."""
    feature_keys = np.load(keys)
    order = np.argsort(feature_keys).astype(np.int32)
    return order, Vocabulary(feature_keys[order])


def place_part(part: CorpusPart, keys: Path, on_disk: bool) -> CorpusPart:
    """Add the numbers that a part's features, also of validation rows, have in the array at `keys`."""
    order, vocabulary = _lookup(keys)

    def numbers(hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        found = vocabulary.find(hashes)
        return np.where(found < 0, -1, order[found]).astype(np.int32)

    with part.corpus.opened() as arrays:
        placement = {"number": numbers(arrays["keys"][:, None])[:, 0], "held ids": numbers(arrays["held hashes"])}
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


def score_part(part: CorpusPart, weights: Weights, workers: Workers) -> tuple[int, float, float]:
    """Score a part's validation rows: return their number, the argmax errors and the sum of log-losses."""
    assert part.placement is not None
    with part.corpus.opened() as arrays, part.placement.opened() as placement:
        targets = arrays["held targets"]
        if len(targets) == 0:
            return 0, 0.0, 0.0
        chances = probabilities(placement["held ids"], arrays["held legal"], weights.astype(np.float32), workers)
        logs = np.log(np.maximum(chances, LEAST_PROBABILITY))[np.arange(len(targets)), targets]
        wrong = np.count_nonzero(chances.argmax(axis=1) != targets)
        return len(targets), float(wrong), float(-np.add.reduce(logs))


class Pass(NamedTuple):
    """Arguments of one pass of stochastic descent, the same for every part."""

    lazy: Lazy
    budget: float
    first_rate: float
    passes: int
    """passes before this one"""
    rows: int
    """of all parts"""
    seed: int
    is_single: bool
    """whether there is one part only"""


def descend_part(part: CorpusPart, number: int, given: Pass) -> tuple[Weights, Weights, float]:
    """Pass over a part's rows from a common point; return weights, penalties taken and budget of its features."""
    assert part.placement is not None
    with part.corpus.opened() as arrays, part.placement.opened() as placement:
        feature_numbers = placement["number"]
        chunks = tuple(RowChunk(*(arrays[f"{name} {i}"] for name in CHUNK_ARRAYS)) for i in range(part.chunks))
        lazy = Lazy(*(np.take(array, feature_numbers, axis=0) for array in given.lazy))
        if part.chunks == 0:
            return lazy.weights, lazy.applied, given.budget
        none = np.empty(0, np.int32)
        rows = Corpus(chunks, part.templates, np.empty((0, part.labels)), none, none).rows()
        ids, legal, mass, order, _ = repeated_rows(*rows)
        seeds = [given.seed, given.passes, *([] if given.is_single else [number])]
        order_now = np.random.default_rng(seeds).permutation(order)
        rates = given.first_rate * DECAY ** (given.passes + np.arange(len(order)) / len(order))
        masks = legal_masks(part.labels)
        budget = sgd_pass(ids, legal, mass, order_now, rates, masks, lazy, given.budget, given.rows)
        return lazy.weights, lazy.applied, budget
