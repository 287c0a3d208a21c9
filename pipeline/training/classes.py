"""Learning the source's own classes of hands: codebooks, metric and strategies together, by passes over the rows.

In: a task of one street after the flop of a hold'em game. Out: a `models.classes.Classes`. Centroids start from k-means
of the training hands, first of few classes with every column weighing the same, which teaches the metric roughly, then
of the wanted sizes in that metric. Steps shrink to nothing over a fixed number of passes, so no curve has to be read to
know when to stop. Penalties are of the size of a prior on weights and do not depend on the number of rows; the number
of classes does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PipelineError
from pipeline.features.columns import Column
from pipeline.models.classes import (
    NEAREST,
    Classes,
    find_nearest,
    number_contexts,
    read_hands,
    spread_centroids,
)
from pipeline.parallel import Workers
from pipeline.training.class_kernels import Moments, Parameters, Sample, Settings, add_masses, one_pass
from pipeline.training.tasks import Corpora, Task, Trained, Watch
from pipeline.training.trainers import finish

__all__ = ["codebook_sizes", "contexts_for", "hand_columns", "is_possible", "train"]

Floats = NDArray[np.float32]

PASSES = 8
FIRST_CLASSES, FIRST_PASSES = 100, 3
"""of the start that teaches the metric"""
STEP, MOVE = 0.3, 0.02
PENALTY, ALONE = 5.0, 0.1
"""L2 of a class in a context and of a context alone, where the context is the whole line of betting"""
COARSER = (0.1, 0.3, 1.0, 1.5, 2.0)
"""times the penalty, from the coarsest context to the whole betting"""
ROWS_PER_CLASS, FEWEST, MOST = 140, 30, 1000
COARSE = 0.12
"""classes of the coarse codebook for each of the fine one"""
CELLS = 150_000_000
"""contexts x classes that weights are held for at most"""
HARDNESS = 0.6
"""mean membership of a hand in its nearest class at the start"""
SAMPLED = 60_000
ROUNDS = 12
"""of k-means, on at most so many hands"""
RIVER = 3


def hand_columns(street: int) -> tuple[Column, ...]:
    """What hands of a street are measured by: all that is known about the distribution of their strength."""

    def distribution(where: int) -> list[Column]:
        found = [Column("fifth", where, part) for part in range(1, 6)]
        found += [Column("eighth", where, part) for part in range(1, 9)]
        return found + [Column(name, where) for name in ("ihs", "ehs", "ehs2")]

    if street == 1:
        return (*distribution(1), Column("ehs", 0))
    if street == RIVER - 1:
        return (*distribution(2), Column("ehs", 1), Column("ehs2", 1))
    groups = [Column("ochs", argument=part) for part in range(1, 9)]
    turn = [Column("fifth", 2, part) for part in range(1, 6)]
    return (Column("ihs", RIVER), *groups, *turn, Column("ehs", 2), Column("ehs2", 2), Column("ehs", 1))


def contexts_for(street: int) -> tuple[tuple[Column, ...], ...]:
    """The bettings that strategies are kept for, coarse to exact: rare lines lean on what they have in common."""
    word, pot = Column("word", street), Column("pot")
    found = [(Column("legal"), Column("raises")), (word,), (word, pot)]
    found += [(Column("word", street - 1), word)] if street > 1 else []
    return (*found, (Column("betting"),))


def is_possible(task: Task) -> bool:
    """Whether classes can be learned: of one street after the flop, where both own cards are known."""
    rows: Any = task.examples.rows
    return len(task.streets) == 1 and task.streets[0] > 0 and len(rows) > 0 and bool((rows["hole"][:, :2] < 52).all())


def codebook_sizes(rows: int) -> tuple[int, int]:
    """How many classes so many rows can teach: of a coarse codebook and of a fine one.

    >>> codebook_sizes(56_000)
    (48, 400)
    """
    fine = min(max(rows // ROWS_PER_CLASS, FEWEST), MOST)
    return max(round(COARSE * fine), 2 * NEAREST), fine


def train(task: Task, corpora: Corpora, watch: Watch) -> Trained:
    """Learn codebooks and strategies."""
    task.check_decisions("classes")
    if not is_possible(task):
        raise PipelineError("classes of hands are learned for one street after the flop of hold'em: name --street")
    watch.stage("reading hands")
    learner = _Learner.of(task)
    seed, passes = task.config.seed, task.config.iterations or PASSES
    progress = watch.stage("learning classes")
    total = passes + FIRST_PASSES
    first = learner.learn((min(FIRST_CLASSES, codebook_sizes(len(task.examples))[1]),), FIRST_PASSES, None, seed)
    progress(FIRST_PASSES, total)
    sizes = _fitting(codebook_sizes(len(task.examples)), len(learner.keys))
    found = learner.learn(sizes, passes, first.metric[0], seed, lambda done: progress(FIRST_PASSES + done, total))
    model = learner.model(found, sizes, task.config.min_weight)
    return finish(task, model, passes, len(model.members))._replace(looks_at=tuple(model.looks_at()))


def _fitting(sizes: tuple[int, ...], contexts: int) -> tuple[int, ...]:
    """Codebooks whose weights fit into memory."""
    share = min(1.0, CELLS / max(1, contexts * sum(sizes)))
    return tuple(max(NEAREST, int(share * size)) for size in sizes)


@dataclass(frozen=True)
class _Learner:
    """The rows of a street as points and numbered contexts."""

    columns: tuple[Column, ...]
    contexts: tuple[tuple[Column, ...], ...]
    centre: Floats
    scale: Floats
    points: Floats
    keys: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[np.int64]
    labels: int
    workers: Workers

    @classmethod
    def of(cls, task: Task) -> _Learner:
        """Read the training rows of a task."""
        street = task.streets[0]
        columns, contexts = hand_columns(street), contexts_for(street)
        read = read_hands(task.examples.rows, columns, contexts)
        keys = np.unique(read.contexts)
        centre = read.points.mean(axis=0, dtype=np.float64).astype(np.float32)
        scale = np.maximum(read.points.std(axis=0, dtype=np.float64), 1e-3).astype(np.float32)
        return cls(
            columns,
            contexts,
            centre,
            scale,
            (read.points - centre) / scale,
            keys,
            number_contexts(keys, read.contexts),
            np.ascontiguousarray(task.examples.legal),
            task.examples.targets.astype(np.int64),
            len(task.labels),
            task.workers,
        )

    def learn(
        self, sizes: tuple[int, ...], passes: int, metric: Floats | None, seed: int, told: Any = lambda done: None
    ) -> Parameters:
        """Learn codebooks of some sizes from a metric (None: all columns weigh the same)."""
        luck = np.random.default_rng([seed, *sizes])
        start = np.ones(len(self.columns), np.float32) if metric is None else metric
        start = (start / np.sqrt((start.astype(np.float64) ** 2).mean())).astype(np.float32)
        books = [self._start(size, start, luck) for size in sizes]
        shape = (len(self.keys), sum(sizes) + 1)
        parameters = Parameters(
            np.stack([one[0] for one in books]),
            np.concatenate([one[1] for one in books]),
            np.zeros((*shape, self.labels), np.float32),
        )
        moments = Moments(
            np.zeros(shape, np.float32),
            np.empty(shape, np.float32),
            *(np.zeros_like(parameters.centroids) for _ in range(2)),
            *(np.zeros_like(parameters.metric) for _ in range(2)),
        )
        weaker = np.array((*COARSER[: len(self.contexts) - 1], COARSER[-1]), np.float32)
        batch, batches = int(np.clip(len(self.points) // 100, 64, 2048)), 0
        for done in range(passes):
            rest = 1 - done / passes
            sample = Sample(self.points, self._near(parameters, sizes), self.numbers, self.legal, self.targets)
            moments.masses[:] = 1e-3
            add_masses(sample, parameters, moments.masses)
            settings = Settings(STEP * rest, MOVE * rest, batch, PENALTY * weaker, ALONE * PENALTY * weaker)
            order = luck.permutation(len(self.points))
            _, batches = one_pass(order, sample, parameters, moments, settings, batches)
            told(done + 1)
        return parameters

    def _near(self, parameters: Parameters, sizes: tuple[int, ...]) -> NDArray[np.int32]:
        """The candidates of all rows, found in threads."""
        spread, bounds = spread_centroids(parameters.metric, parameters.centroids, sizes)
        parts = self.workers.map(
            lambda part: find_nearest(self.points[part], parameters.metric, spread, bounds)[0],
            self.workers.slices(len(self.points)),
        )
        return np.concatenate(parts)

    def _start(self, size: int, metric: Floats, luck: np.random.Generator) -> tuple[Floats, Floats]:
        """A codebook's metric and centroids by k-means, the metric as steep as `HARDNESS` says."""
        some = luck.choice(len(self.points), min(len(self.points), SAMPLED), replace=False)
        scaled = self.points[some] * metric
        centroids = _k_means(scaled, size, luck, self.workers)
        few = scaled[: min(len(scaled), 1000)]
        one = np.ones((1, len(metric)), np.float32)
        _, away = find_nearest(few, one, *spread_centroids(one, centroids, (size,)))
        low, high = 1e-2, 1e3
        for _ in range(30):
            steep = np.sqrt(low * high)
            shares = np.exp(steep**2 * (away[:, :1].astype(np.float64) - away))
            if (1 / shares.sum(axis=1)).mean() < HARDNESS:
                low = steep
            else:
                high = steep
        return (metric * np.float32(steep)), (centroids / metric).astype(np.float32)

    def model(self, found: Parameters, sizes: tuple[int, ...], least: float) -> Classes:
        """What plays: cells whose weights are all smaller than `least` are left out."""
        kept = (np.abs(found.weights) >= max(least, 1e-6)).any(axis=2)
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
        members = np.nonzero(kept)[1].astype(np.int32)
        return Classes(
            self.columns,
            self.contexts,
            sizes,
            self.centre,
            self.scale,
            found.metric,
            found.centroids,
            self.keys,
            starts,
            members,
            np.ascontiguousarray(found.weights[kept]),
        )


def _k_means(points: Floats, size: int, luck: np.random.Generator, workers: Workers) -> Floats:
    """Centroids by Lloyd's algorithm from points chosen at random; an empty one starts again at a random point."""
    centroids = points[luck.choice(len(points), size, replace=len(points) < size)].astype(np.float32)
    one = np.ones((1, points.shape[1]), np.float32)
    for _ in range(ROUNDS):
        spread, bounds = spread_centroids(one, centroids, (size,))
        near = workers.map(
            lambda part, spread=spread, bounds=bounds: find_nearest(points[part], one, spread, bounds)[0][:, 0],
            workers.slices(len(points)),
        )
        nearest = np.concatenate(near)
        count = np.bincount(nearest, minlength=size)
        sums = np.stack([np.bincount(nearest, column, size) for column in points.T], axis=1)
        fresh = points[luck.integers(len(points), size=size)]
        means = sums / np.maximum(count, 1)[:, None]
        centroids = np.where(count[:, None] > 0, means, fresh).astype(np.float32)
    return centroids
