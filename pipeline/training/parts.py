"""What is done with one part of the rows of a training: read, encode, sort, and then a share of each sum.

A part is some of a dataset's files (`PartRows`); everything here takes one part and plain arguments, so that it can run
in this process or on any worker of a cluster that sees the same paths, and be done again if a worker is lost. In the
order of the work: `survey` counts and samples rows, `encode` turns them into numbers of features that hold within the
part, `sort` makes the corpus, and `place` learns the numbers that features have in the whole. Then `expect` gives the
part's expected label counts, `score` its share of the validation scores, `descend` one pass of stochastic descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.encoding import FITTED, Features, cut_values
from pipeline.features.patterns import Pattern
from pipeline.features.vocabulary import Numbering, Vocabulary
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.models.softmax import legal_masks, probabilities
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import RowChunk, Corpus, build_corpus
from pipeline.training.objective import Weights, expected_counts, shares
from pipeline.training.remarks import COUNTED
from pipeline.training.rows import read_examples
from pipeline.training.stochastic import DECAY, Lazy, repeated_rows, sgd_pass
from pipeline.training.stored import Stored, scratch_folder
from pipeline.training.tasks import SHOWN, Examples

CHUNK_ARRAYS = ("stream", "change", "legal", "mass", "total")


@dataclass(frozen=True)
class PartRows:
    """Which rows of a dataset are a part."""

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
        """Its training and its validation rows."""
        return read_examples(
            self.data, self.agents, self.streets, self.game, pattern=self.pattern, files=frozenset(self.files)
        )

    def every(self, examples: Examples, count: int) -> Examples:
        """This part's share of about `count` rows, evenly spread."""
        return examples.each(max(1, (len(examples) if self.total is None else self.total) // count))


class Survey(NamedTuple):
    """What is known of a part before it is encoded."""

    rows: int
    held: int
    """validation rows"""
    values: NDArray[np.int64]
    """of terms that are cut into bins, for a sample of the training rows"""
    shown: Examples
    """training rows to show features by"""
    counted: tuple[Examples, Examples]
    """training and validation rows for the baseline"""


def survey(rows: PartRows, pattern: Pattern) -> Survey:
    """Count the rows of a part and take samples; `pattern` is the one that will be fitted."""
    train, held = rows.read()
    size = len(train) if rows.total is None else rows.total
    some: Any = train.rows[:: max(1, size // FITTED)]
    return Survey(
        len(train),
        len(held),
        cut_values(pattern, some),
        rows.every(train, SHOWN),
        (rows.every(train, COUNTED), rows.every(held, COUNTED)),
    )


def encode(rows: PartRows, features: Features, spill: bool) -> Stored:
    """The features that a part's rows fire: numbers in the order of appearance, and of validation rows the hashes.

    `spill` says whether arrays are kept on disk rather than in memory, here and below.
    """
    train, held = rows.read()
    templates = len(features.pattern.templates)
    numbering = Numbering()
    ids = np.empty((len(train), templates), np.int32)
    for part, hashes in features.pieces(train.rows):
        numbering(hashes, ids[part])
    hashes = np.empty((len(held), templates), np.uint64)
    for part, found in features.pieces(held.rows):
        hashes[part] = found
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
        "held legal": held.legal,
        "held targets": held.targets,
    }
    return Stored(arrays, scratch_folder() if spill else None)


def seen_keys(encoded: Stored) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int32]]:
    """The hashes of a part's features in order of size, how often each was fired, and its template."""
    with encoded.opened() as arrays:
        order = np.argsort(arrays["keys"])
        return arrays["keys"][order], arrays["seen"][order], arrays["template"][order]


class Part(NamedTuple):
    """A part's corpus in numbers of its own, and beside it what these are in the whole once that is known."""

    corpus: Stored
    templates: int
    labels: int
    chunks: int
    placed: Stored | None = None


def sort(encoded: Stored, rows: PartRows, kept: Path | None, spill: bool) -> Part:
    """The corpus of a part; of its features those whose hashes are in the sorted array at `kept`, all without one."""
    with encoded.opened() as arrays:
        ids, keys = arrays["ids"], arrays["keys"]
        if kept is not None:
            wanted: Any = np.load(kept, mmap_mode="r")
            found = wanted[np.minimum(np.searchsorted(wanted, keys), max(0, len(wanted) - 1))] == keys
            number = np.append(np.where(found, np.cumsum(found) - 1, -1), -1).astype(np.int32)
            ids, keys = number[ids], keys[found]
        chunks: tuple[RowChunk, ...] = ()
        counts, template = np.zeros((0, rows.labels)), np.zeros(0, np.int32)
        if len(ids):
            made = build_corpus(
                ids, arrays["targets"], features=len(keys), labels=rows.labels, legal=arrays["legal"], whole=False
            )
            chunks, counts, template = made.chunks, made.counts, made.template
            keys = keys[np.argsort(made.number)]
        stored = {f"{name} {at}": getattr(chunk, name) for at, chunk in enumerate(chunks) for name in CHUNK_ARRAYS}
        stored |= {"keys": keys, "counts": counts, "template": template}
        stored |= {name: array for name, array in arrays.items() if name.startswith("held ")}
        return Part(Stored(stored, scratch_folder() if spill else None), ids.shape[1], rows.labels, len(chunks))


class Outline(NamedTuple):
    """What the whole must know of a part: its features in the part's order, their label counts and templates."""

    keys: NDArray[np.uint64]
    counts: NDArray[np.float64]
    template: NDArray[np.int32]
    rows: int
    """that stochastic descent walks"""
    fired: int
    """features that these fire"""


def outline(part: Part) -> Outline:
    """The outline of a part."""
    with part.corpus.opened() as arrays:
        copies = [np.maximum(1, np.ceil(arrays[f"mass {at}"].sum(1))) for at in range(part.chunks)]
        rows = int(sum(chunk.sum() for chunk in copies))
        counts = arrays["counts"].copy()
        return Outline(arrays["keys"].copy(), counts, arrays["template"].copy(), rows, round(float(counts.sum())))


@lru_cache(maxsize=2)
def _lookup(keys: Path) -> tuple[NDArray[np.int32], Vocabulary]:
    """The numbers of the features whose hashes are in the array at `keys`."""
    found = np.load(keys)
    order = np.argsort(found).astype(np.int32)
    return order, Vocabulary(found[order])


def place(part: Part, keys: Path, spill: bool) -> Part:
    """The part with the numbers that its features have in the array at `keys`, also those of its validation rows."""
    order, vocabulary = _lookup(keys)

    def numbers(hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        found = vocabulary.find(hashes)
        return np.where(found < 0, -1, order[found]).astype(np.int32)

    with part.corpus.opened() as arrays:
        placed = {"number": numbers(arrays["keys"][:, None])[:, 0], "held ids": numbers(arrays["held hashes"])}
    return part._replace(placed=Stored(placed, scratch_folder() if spill else None))


class Point(NamedTuple):
    """Where sums are taken: weights of all features, and whether their exponentials may be multiplied."""

    weights: Weights
    values: Weights
    """the exponentials of the weights if `plain`, else the weights"""
    plain: bool

    @classmethod
    def at(cls, weights: Weights, plain: bool) -> Point:
        return cls(weights, np.exp(weights) if plain else weights, plain)


Sums = tuple[float, Weights]
"""the sum of log Z over rows, and their expected label counts, (features, labels) of the whole"""


def expect(
    part: Part, point: Point, workers: Workers, whole: Weights | None = None, room: NDArray[np.float64] | None = None
) -> Sums:
    """A part's share of the objective and of its gradient, the latter added to `whole` (default: zeros).

    `room` is an array of at least `room_of(part)` numbers to work in, for those who call often.
    """
    whole = np.zeros_like(point.values) if whole is None else whole
    if part.chunks == 0:
        return 0.0, whole
    assert part.placed is not None
    with part.corpus.opened() as arrays, part.placed.opened() as placed:
        chunks = [RowChunk(*(arrays[f"{name} {at}"] for name in CHUNK_ARRAYS)) for at in range(part.chunks)]
        number = placed["number"]
        shape = part.chunks + 1, len(number), whole.shape[1]
        size = int(np.prod(shape))
        values, *_ = both = (np.empty(size) if room is None else room[:size]).reshape(shape)
        sums, pieces = both[1:], shares(len(number))
        workers.map(lambda piece: np.take(point.values, number[piece], 0, values[piece], "clip"), pieces)
        loss = expected_counts(chunks, part.templates, values, point.plain, sums, workers)
        workers.map(lambda piece: _scatter(sums[:, piece], number[piece], whole), pieces)
    return loss, whole


def room_of(part: Part) -> int:
    """How many numbers `expect` works in."""
    if part.placed is None:
        return 0
    with part.placed.opened() as placed:
        return (part.chunks + 1) * len(placed["number"]) * part.labels


@kernel
def _scatter(sums: NDArray[np.float64], number: NDArray[np.int32], whole: Weights) -> None:
    """Add the sums of a part's chunks, in their order, to those of the whole."""
    for f in range(sums.shape[1]):
        for j in range(sums.shape[2]):
            total = 0.0
            for chunk in range(sums.shape[0]):
                total += sums[chunk, f, j]
            whole[number[f], j] += total


def add(one: Sums, other: Sums) -> Sums:
    """Sums of two nodes of the tree; the first's array is used for it."""
    loss, counts = one
    counts += other[1]
    return loss + other[0], counts


def score(part: Part, weights: Weights, workers: Workers) -> tuple[int, float, float]:
    """Of a part's validation rows: how many, in how many the likeliest label was not taken, the sum of log-losses."""
    assert part.placed is not None
    with part.corpus.opened() as arrays, part.placed.opened() as placed:
        targets = arrays["held targets"]
        if len(targets) == 0:
            return 0, 0.0, 0.0
        chances = probabilities(placed["held ids"], arrays["held legal"], weights.astype(np.float32), workers)
        logs = np.log(np.maximum(chances, LEAST_PROBABILITY))[np.arange(len(targets)), targets]
        wrong = np.count_nonzero(chances.argmax(axis=1) != targets)
        return len(targets), float(wrong), float(-np.add.reduce(logs))


class Pass(NamedTuple):
    """One pass of stochastic descent: what every part needs."""

    lazy: Lazy
    budget: float
    first: float
    """the first step"""
    done: int
    """passes before"""
    rows: int
    """of all parts"""
    seed: int
    alone: bool
    """whether there is one part only"""


def descend(part: Part, number: int, given: Pass) -> tuple[Weights, Weights, float]:
    """A pass over a part's rows from a common point: the weights and penalties of its features, and the budget."""
    assert part.placed is not None
    with part.corpus.opened() as arrays, part.placed.opened() as placed:
        at = placed["number"]
        chunks = tuple(RowChunk(*(arrays[f"{name} {i}"] for name in CHUNK_ARRAYS)) for i in range(part.chunks))
        lazy = Lazy(*(np.take(array, at, axis=0) for array in given.lazy))
        if part.chunks == 0:
            return lazy.weights, lazy.applied, given.budget
        none = np.empty(0, np.int32)
        rows = Corpus(chunks, part.templates, np.empty((0, part.labels)), none, none).rows()
        ids, legal, mass, order, _ = repeated_rows(*rows)
        luck = [given.seed, given.done, *([] if given.alone else [number])]
        turn = np.random.default_rng(luck).permutation(order)
        rates = given.first * DECAY ** (given.done + np.arange(len(order)) / len(order))
        masks = legal_masks(part.labels)
        budget = sgd_pass(ids, legal, mass, turn, rates, masks, lazy, given.budget, given.rows)
        return lazy.weights, lazy.applied, budget
