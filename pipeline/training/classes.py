"""Learning the source's own classes of hands: codebooks, metric and strategies together, by passes over the rows.

In: a task of one street after the flop of a hold'em game. Out: a `models.classes.Classes`. Centroids start from k-means
of the training hands, first of few classes with every column weighing the same, which teaches the metric roughly.
Columns that the metric hardly weighs are then left out, round by round, as long as the loss on the way does not rise:
what the source does not look at only blurs its classes. Last come codebooks of the wanted sizes in the metric found.
Steps shrink to nothing over a fixed number of passes, so no curve has to be read to know when to stop. Penalties are of
the size of a prior on weights and do not depend on the number of rows; the number of classes does.

While it is learned the model has its weights in full, (contexts, classes + 1, labels), the last class standing for
the context alone. A pass visits rows one by one: the weights that a row touches take a step of AdaGrad at once (Duchi
and others 2011), while the slopes of centroids and metric are gathered over a batch and then take a step of Adam
(Kingma and Ba 2015); the metric moves by its logarithm, so it stays positive. The L2 penalty of a cell is spread over
the rows that touch it, by their share of its mass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.classes import (
    NEAREST,
    Classes,
    find_nearest,
    number_contexts,
    read_hands,
    spread_centroids,
)
from pipeline.runtime.array_types import Singles
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Progress
from pipeline.training.loop import Context
from pipeline.training.tasks import Corpora, Task, Trained, finish

LEAST_MEMBERSHIP = 1e-3
"""the membership below which a class learns nothing from a row"""
FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.99, 1e-8
"""Adam's"""


class Sample(NamedTuple):
    """Rows to learn from."""

    points: Singles
    """(rows, columns), standardised"""
    near: NDArray[np.int32]
    """(rows, codebooks x NEAREST) candidates for their class"""
    contexts: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[np.int64]


class Parameters(NamedTuple):
    """The parameters that are learned."""

    metric: Singles
    """(codebooks, columns)"""
    centroids: Singles
    """(classes, columns)"""
    weights: Singles
    """(contexts, classes + 1, labels)"""


class Moments(NamedTuple):
    """State of the optimisers: AdaGrad's sums of squares of each cell, Adam's moments of centroids and metric."""

    squares: Singles
    masses: Singles
    """(contexts, classes + 1) rows that belong to each cell"""
    centroid_means: Singles
    centroid_squares: Singles
    metric_means: Singles
    metric_squares: Singles


class PassSettings(NamedTuple):
    """Sizes of steps, and penalties."""

    weight_step: float
    centroid_step: float
    metric_step: float
    """of the metric's logarithms"""
    batch: int
    penalties: Singles
    """(contexts of a row,) of classes"""
    alone: Singles
    """(contexts of a row,) of contexts alone"""


@kernel(leaf=True)
def _memberships(sample: Sample, row: int, parameters: Parameters, out: Singles) -> None:
    """Write the membership of a row in each of its candidates."""
    for book in range(len(parameters.metric)):
        least = np.float32(np.inf)
        for m in range(book * NEAREST, (book + 1) * NEAREST):
            k = sample.near[row, m]
            distance = np.float32(0)
            for column in range(sample.points.shape[1]):
                gap = (sample.points[row, column] - parameters.centroids[k, column]) * parameters.metric[book, column]
                distance += gap * gap
            out[m] = distance
            least = min(least, distance)
        total = np.float32(0)
        # relative to the nearest class, whose exponential is 1: the sum is never 0
        for m in range(book * NEAREST, (book + 1) * NEAREST):
            out[m] = np.exp(least - out[m])
            total += out[m]
        for m in range(book * NEAREST, (book + 1) * NEAREST):
            out[m] /= total


@kernel(leaf=True)
def _residuals(sample: Sample, row: int, parameters: Parameters, shares: Singles, out: Singles) -> float:
    """Write p - 1 at the label taken and p elsewhere, 0 for what is not legal; returns the row's log-loss."""
    weights, last = parameters.weights, parameters.weights.shape[1] - 1
    top = np.float32(-np.inf)
    for j in range(weights.shape[2]):
        out[j] = 0
        if (sample.legal[row] >> j) & 1 == 0:
            continue
        for place in range(sample.contexts.shape[1]):
            context = sample.contexts[row, place]
            out[j] += weights[context, last, j]
            for m in range(len(shares)):
                out[j] += shares[m] * weights[context, sample.near[row, m], j]
        top = max(top, out[j])
    total = np.float32(0)
    for j in range(weights.shape[2]):
        out[j] = np.exp(out[j] - top) if (sample.legal[row] >> j) & 1 else np.float32(0)
        total += out[j]
    taken = sample.targets[row]
    for j in range(weights.shape[2]):
        out[j] /= total
    loss = -np.log(max(np.float64(out[taken]), 1e-9))
    out[taken] -= 1
    return float(loss)


@kernel(leaf=True)
def _gather(
    sample: Sample,
    row: int,
    parameters: Parameters,
    shares: Singles,
    residuals: Singles,
    centroid_slopes: Singles,
    metric_slopes: Singles,
) -> None:
    """Add a row's slopes of its centroids and of the metric's logarithms."""
    weights = parameters.weights
    for book in range(len(parameters.metric)):
        first, end = book * NEAREST, (book + 1) * NEAREST
        mean = np.float32(0)
        for sweep in range(2):  # first the mean of what classes add to the loss, then how each differs from it
            for m in range(first, end):
                adds = np.float32(0)
                for j in range(weights.shape[2]):
                    for place in range(sample.contexts.shape[1]):
                        adds += residuals[j] * weights[sample.contexts[row, place], sample.near[row, m], j]
                if sweep == 0:
                    mean += shares[m] * adds
                    continue
                slope = -shares[m] * (adds - mean)
                if abs(slope) < 1e-6:  # most rows belong to one class: the loop over columns is what costs
                    continue
                k = sample.near[row, m]
                for column in range(sample.points.shape[1]):
                    gap = sample.points[row, column] - parameters.centroids[k, column]
                    scaled = 2 * slope * parameters.metric[book, column] * parameters.metric[book, column] * gap
                    centroid_slopes[k, column] -= scaled
                    metric_slopes[book, column] += scaled * gap


@kernel
def slopes(
    sample: Sample, parameters: Parameters, centroid_slopes: Singles, metric_slopes: Singles, weight_slopes: Singles
) -> float:
    """Return the log-loss of all rows and add up its slopes, as a pass does, without taking a step."""
    shares = np.empty(sample.near.shape[1], np.float32)
    residuals = np.empty(parameters.weights.shape[2], np.float32)
    last = parameters.weights.shape[1] - 1
    loss = 0.0
    for row in range(len(sample.points)):
        _memberships(sample, row, parameters, shares)
        loss += _residuals(sample, row, parameters, shares, residuals)
        _gather(sample, row, parameters, shares, residuals, centroid_slopes, metric_slopes)
        for place in range(sample.contexts.shape[1]):
            context = sample.contexts[row, place]
            for j in range(len(residuals)):
                weight_slopes[context, last, j] += residuals[j]
                for m in range(len(shares)):
                    weight_slopes[context, sample.near[row, m], j] += shares[m] * residuals[j]
    return loss


@kernel
def add_masses(sample: Sample, parameters: Parameters, masses: Singles) -> None:
    """Add the memberships of all rows to the masses of their cells."""
    shares = np.empty(sample.near.shape[1], np.float32)
    for row in range(len(sample.points)):
        _memberships(sample, row, parameters, shares)
        for place in range(sample.contexts.shape[1]):
            context = sample.contexts[row, place]
            masses[context, masses.shape[1] - 1] += 1
            for m in range(len(shares)):
                masses[context, sample.near[row, m]] += shares[m]


@kernel(leaf=True)
def _learn(
    sample: Sample,
    row: int,
    parameters: Parameters,
    moments: Moments,
    settings: PassSettings,
    shares: Singles,
    residuals: Singles,
) -> None:
    """Take a step of AdaGrad for the cells of a row."""
    weights, last = parameters.weights, parameters.weights.shape[1] - 1
    for place in range(sample.contexts.shape[1]):
        context = sample.contexts[row, place]
        for m in range(len(shares) + 1):
            alone = m == len(shares)
            k = last if alone else sample.near[row, m]
            share = np.float32(1) if alone else shares[m]
            if share < LEAST_MEMBERSHIP:
                continue
            pull = settings.alone[place] if alone else settings.penalties[place]
            # the cell's penalty once per pass, spread over its rows by their share of its mass
            pull *= share / moments.masses[context, k]
            square = np.float32(0)
            for j in range(len(residuals)):
                slope = share * residuals[j] + pull * weights[context, k, j]
                square += slope * slope
            moments.squares[context, k] += square
            step = np.float32(settings.weight_step) / np.sqrt(moments.squares[context, k] + np.float32(TINY))
            for j in range(len(residuals)):
                weights[context, k, j] -= step * (share * residuals[j] + pull * weights[context, k, j])


@kernel(leaf=True)
def _adam(slope: float, means: Singles, squares: Singles, row: int, column: int, scale: Any) -> float:
    """Return Adam's step for one parameter and bring its moments up to date; `scale` is as `_move` makes it."""
    mean = FIRST_DECAY * means[row, column] + (1 - FIRST_DECAY) * slope
    square = SECOND_DECAY * squares[row, column] + (1 - SECOND_DECAY) * slope * slope
    means[row, column], squares[row, column] = mean, square
    step, first, second = scale
    return step * (mean / first) / (np.sqrt(square / second) + TINY)


@kernel(leaf=True)
def _move(
    parameters: Parameters, moments: Moments, settings: PassSettings, batches: int, centroid: Singles, metric: Singles
) -> None:
    """Take a step of Adam for centroids and metric by the slopes of a batch, which are set to 0."""
    # moments begin at 0: divided by what they may have reached, they are means from the first batch on
    first, second = 1 - FIRST_DECAY**batches, 1 - SECOND_DECAY**batches
    means, squares, scale = moments.centroid_means, moments.centroid_squares, (settings.centroid_step, first, second)
    for k in range(len(centroid)):
        for column in range(centroid.shape[1]):
            slope = centroid[k, column] / settings.batch
            centroid[k, column] = 0
            parameters.centroids[k, column] -= _adam(slope, means, squares, k, column, scale)
    means, squares, scale = moments.metric_means, moments.metric_squares, (settings.metric_step, first, second)
    for book in range(len(metric)):
        for column in range(metric.shape[1]):
            slope = metric[book, column] / settings.batch
            metric[book, column] = 0
            change = _adam(slope, means, squares, book, column, scale)
            # a step of the logarithm: the metric stays positive
            parameters.metric[book, column] *= np.exp(-change)


@kernel
def pass_over_rows(
    order: NDArray[np.int64],
    sample: Sample,
    parameters: Parameters,
    moments: Moments,
    settings: PassSettings,
    batches: int,
) -> tuple[float, int]:
    """Learn from all rows in an order; returns the mean log-loss on the way, and the batches so far."""
    shares = np.empty(sample.near.shape[1], np.float32)
    residuals = np.empty(parameters.weights.shape[2], np.float32)
    centroid = np.zeros(parameters.centroids.shape, np.float32)
    metric = np.zeros(parameters.metric.shape, np.float32)
    loss = 0.0
    for step_number in range(len(order)):
        row = order[step_number]
        _memberships(sample, row, parameters, shares)
        loss += _residuals(sample, row, parameters, shares, residuals)
        _gather(sample, row, parameters, shares, residuals, centroid, metric)
        _learn(sample, row, parameters, moments, settings, shares, residuals)
        if (step_number + 1) % settings.batch == 0:
            batches += 1
            _move(parameters, moments, settings, batches, centroid, metric)
    return loss / max(1, len(order)), batches


PASSES = 8
FIRST_CLASSES, FIRST_PASSES = 100, 3
"""of the start that teaches the metric"""
TRIED_ROWS, TRIED_CLASSES, TRIED_PASSES, TRIALS = 140, 1000, 2, 6
"""of each trial of fewer columns: rows per class, classes at most, passes; and how many trials at most"""
KEPT_WEIGHT, MAX_RISE = 0.9, 0.005
"""what the columns of the next trial weigh of the squared metric; by what share the loss of a trial may rise"""
WEIGHT_STEP, CENTROID_STEP, METRIC_STEP = 0.3, 0.005, 0.02
"""of weights, centroids, and the metric's logarithms. A centroid that few rows of a batch touch takes a step by their
noise: with steps of .02 and batches of 2,048 rows, thousands of centroids wander, which cost a tenth of the loss"""
PENALTY, ALONE = 3.0, 0.1
"""L2 of a class in a context and of a context alone, where the context is the whole line of betting"""
COARSER = (0.1, 0.3, 1.0, 1.5, 2.0)
"""times the penalty, from the coarsest context to the whole betting"""
CLASSES, GROWTH, FEWEST_CLASSES, MOST_CLASSES = 0.2, 0.75, 30, 6000
"""the finest codebook has `CLASSES` x rows to the power of `GROWTH` classes, within bounds"""
COARSE = (0.02, 0.14)
"""classes of the coarser codebooks for each of the finest"""
BATCH = 1000
"""rows of a batch at most; as many as the finest classes where these are more"""
CELLS = 150_000_000
"""contexts x classes that weights are held for at most"""
SLICE_CELLS = 1 << 18
"""cells of which the used ones are found at a time"""
HARDNESS = 0.6
"""mean membership of a hand in its nearest class at the start"""
SAMPLED = 60_000
KMEANS_ROUNDS = 12
"""hands that k-means works on at most, and its rounds"""
RIVER = 3


def hand_columns(street: int) -> tuple[Column, ...]:
    """Return the columns that hands of a street are compared by: the whole distribution of their strength."""

    def distribution(street: int) -> list[Column]:
        shape = [Column("fifth", street, part) for part in range(1, 6)]
        shape += [Column("eighth", street, part) for part in range(1, 9)]
        return shape + [Column(name, street) for name in ("ihs", "ehs", "ehs2")]

    if street == 1:
        return (*distribution(1), Column("ehs", 0))
    if street == RIVER - 1:
        return (*distribution(2), Column("ehs", 1), Column("ehs2", 1))
    groups = [Column("ochs", argument=part) for part in range(1, 9)]
    turn_fifths = [Column("fifth", 2, part) for part in range(1, 6)]
    return (Column("ihs", RIVER), *groups, *turn_fifths, Column("ehs", 2), Column("ehs2", 2), Column("ehs", 1))


def contexts_for(street: int) -> tuple[tuple[Column, ...], ...]:
    """Return the contexts of betting that have strategies, coarse to exact: rare lines lean on what they share."""
    word, pot = Column("word", street), Column("pot")
    contexts = [(Column("legal"), Column("raises")), (word,), (word, pot)]
    contexts += [(Column("word", street - 1), word)] if street > 1 else []
    return (*contexts, (Column("betting"),))


def is_possible(task: Task) -> bool:
    """Return whether classes can be learned: the rows are of one street from the flop on, with both own cards known."""
    rows: Any = task.examples.rows
    return len(task.streets) == 1 and task.streets[0] > 0 and len(rows) > 0 and bool((rows["hole"][:, :2] < 52).all())


def codebook_sizes(rows: int) -> tuple[int, ...]:
    """Return how many classes each codebook gets for a number of rows, from coarse to fine.

    >>> codebook_sizes(56_000)
    (15, 102, 728)
    """
    fine = min(max(round(CLASSES * rows**GROWTH), FEWEST_CLASSES), MOST_CLASSES)
    return (*(max(round(share * fine), 2 * NEAREST) for share in COARSE), fine)


def train(task: Task, corpora: Corpora, context: Context) -> Trained:
    """Learn codebooks and strategies."""
    task.check_decisions("classes")
    if not is_possible(task):
        raise PipelineError("classes of hands are learned for one street after the flop of hold'em: name --street")
    stage = context.callbacks.stage
    stage("reading hands")
    learner = _Learner.of(task)
    seed, passes = task.config.seed, task.config.passes or PASSES
    sizes = _fit_into_memory(codebook_sizes(len(task.examples)), len(learner.keys))
    learner, metric = _select_columns(learner, seed, stage("finding what hands are told apart by"))
    progress = stage("learning classes")
    parameters = learner.learn(sizes, passes, metric, seed, lambda done: progress(done, passes)).parameters
    model = learner.model(parameters, sizes, task.config.min_weight)
    return finish(task, model, passes, len(model.members))._replace(looks_at=tuple(model.column_shares()))


def _select_columns(learner: _Learner, seed: int, progress: Progress) -> tuple[_Learner, Singles]:
    """Return the learner with only the columns that tell classes apart, and their metric.

    Each trial leaves out what the metric of the one before hardly weighs, half of the columns at most; the smallest
    choice whose loss is not above the lowest by more than `MAX_RISE` is taken.
    """
    classes = min(max(len(learner.points) // TRIED_ROWS, FEWEST_CLASSES), TRIED_CLASSES)
    first = learner.learn((min(FIRST_CLASSES, classes),), FIRST_PASSES, None, seed).parameters.metric[0]
    best, lowest = (learner, first), np.inf
    for trial in range(TRIALS):
        progress(trial, TRIALS)
        trial_result = learner.learn((classes,), TRIED_PASSES, first, seed)
        if trial_result.loss > (1 + MAX_RISE) * lowest:
            break
        metric = trial_result.parameters.metric[0]
        best, lowest = (learner, metric), min(lowest, trial_result.loss)
        order = np.argsort(-metric, kind="stable")
        weights = np.cumsum(metric[order].astype(np.float64) ** 2)
        enough = 1 + int(np.searchsorted(weights, KEPT_WEIGHT * weights[-1]))
        chosen = np.sort(order[: max(enough, (len(order) + 1) // 2)])
        if len(chosen) == len(order):
            break
        learner, first = learner.with_columns(chosen), metric[chosen]
    return best


def _fit_into_memory(sizes: tuple[int, ...], contexts: int) -> tuple[int, ...]:
    """Shrink codebooks until their weights fit into memory."""
    share = min(1.0, CELLS / max(1, contexts * sum(sizes)))
    return tuple(max(NEAREST, int(share * size)) for size in sizes)


class _Fitted(NamedTuple):
    """Learned parameters, and the mean log-loss of rows as the last pass came to them."""

    parameters: Parameters
    loss: float


@dataclass(frozen=True)
class _Learner:
    """The rows of a street as points and numbered contexts."""

    columns: tuple[Column, ...]
    contexts: tuple[tuple[Column, ...], ...]
    centre: Singles
    scale: Singles
    points: Singles
    keys: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[np.int64]
    labels: int
    workers: Workers

    def with_columns(self, chosen: NDArray[np.int64]) -> _Learner:
        """Return the same rows with the chosen columns only."""
        columns = tuple(self.columns[number] for number in chosen)
        points = np.ascontiguousarray(self.points[:, chosen])
        return replace(self, columns=columns, centre=self.centre[chosen], scale=self.scale[chosen], points=points)

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
        self,
        sizes: tuple[int, ...],
        passes: int,
        metric: Singles | None,
        seed: int,
        on_pass: Any = lambda pass_number: None,
    ) -> _Fitted:
        """Learn codebooks of some sizes from a metric (None: all columns weigh the same)."""
        generator = np.random.default_rng([seed, *sizes])
        start = np.ones(len(self.columns), np.float32) if metric is None else metric
        start = (start / np.sqrt((start.astype(np.float64) ** 2).mean())).astype(np.float32)
        books = [self._start(size, start, generator) for size in sizes]
        shape = (len(self.keys), sum(sizes) + 1)
        parameters = Parameters(
            np.stack([book[0] for book in books]),
            np.concatenate([book[1] for book in books]),
            np.zeros((*shape, self.labels), np.float32),
        )
        moments = Moments(
            np.zeros(shape, np.float32),
            np.empty(shape, np.float32),
            *(np.zeros_like(parameters.centroids) for _ in range(2)),
            *(np.zeros_like(parameters.metric) for _ in range(2)),
        )
        penalty_factors = np.array((*COARSER[: len(self.contexts) - 1], COARSER[-1]), np.float32)
        batch, batches, loss = int(np.clip(len(self.points) // 100, 64, max(BATCH, max(sizes)))), 0, 0.0
        for pass_number in range(passes):
            remaining = 1 - pass_number / passes
            sample = Sample(self.points, self._near(parameters, sizes), self.numbers, self.legal, self.targets)
            moments.masses[:] = 1e-3
            add_masses(sample, parameters, moments.masses)
            settings = PassSettings(
                WEIGHT_STEP * remaining,
                CENTROID_STEP * remaining,
                METRIC_STEP * remaining,
                batch,
                PENALTY * penalty_factors,
                ALONE * PENALTY * penalty_factors,
            )
            order = generator.permutation(len(self.points))
            loss, batches = pass_over_rows(order, sample, parameters, moments, settings, batches)
            on_pass(pass_number + 1)
        return _Fitted(parameters, loss)

    def _near(self, parameters: Parameters, sizes: tuple[int, ...]) -> NDArray[np.int32]:
        """Find the candidates of all rows, in threads."""
        spread, bounds = spread_centroids(parameters.metric, parameters.centroids, sizes)
        parts = self.workers.map(
            lambda part: find_nearest(self.points[part], parameters.metric, spread, bounds)[0],
            self.workers.slices(len(self.points)),
        )
        return np.concatenate(parts)

    def _start(self, size: int, metric: Singles, generator: np.random.Generator) -> tuple[Singles, Singles]:
        """Start a codebook: centroids by k-means, and the metric as steep as `HARDNESS` asks."""
        sampled = generator.choice(len(self.points), min(len(self.points), SAMPLED), replace=False)
        scaled = self.points[sampled] * metric
        centroids = _k_means(scaled, size, generator, self.workers)
        few = scaled[: min(len(scaled), 1000)]
        unit_metric = np.ones((1, len(metric)), np.float32)
        _, away = find_nearest(few, unit_metric, *spread_centroids(unit_metric, centroids, (size,)))
        # the steepness at which the nearest class has a mean membership of `HARDNESS`, by bisection
        low, high = 1e-2, 1e3
        for _ in range(30):
            steep = np.sqrt(low * high)
            shares = np.exp(steep**2 * (away[:, :1].astype(np.float64) - away))
            if (1 / shares.sum(axis=1)).mean() < HARDNESS:
                low = steep
            else:
                high = steep
        return (metric * np.float32(steep)), (centroids / metric).astype(np.float32)

    def model(self, parameters: Parameters, sizes: tuple[int, ...], min_weight: float) -> Classes:
        """Return the model that plays; cells whose weights are all smaller than `min_weight` are left out."""
        cells = used_cells(parameters.weights, max(min_weight, 1e-6))
        return Classes(
            self.columns,
            self.contexts,
            sizes,
            self.centre,
            self.scale,
            parameters.metric,
            parameters.centroids,
            self.keys,
            *cells,
        )


def used_cells(weights: Singles, least: float) -> tuple[NDArray[np.int64], NDArray[np.int32], Singles]:
    """Return the cells with a weight of at least `least`, up to sign: each context's first one, classes and weights."""
    # slice by slice: the weights in full take 1.8 GB at `CELLS`, and their absolute values as much again
    contexts, classes, labels = weights.shape
    used = np.empty((contexts, classes), bool)
    step = max(1, SLICE_CELLS // classes)
    slices = [slice(first, min(first + step, contexts)) for first in range(0, contexts, step)]
    for part in slices:
        used[part] = (np.abs(weights[part]) >= least).any(axis=2)
    starts = np.append(0, np.cumsum(np.count_nonzero(used, axis=1))).astype(np.int64)
    members, used_weights = np.empty(starts[-1], np.int32), np.empty((starts[-1], labels), np.float32)
    for part in slices:
        cells = slice(starts[part.start], starts[part.stop])
        members[cells] = np.nonzero(used[part])[1]
        used_weights[cells] = weights[part][used[part]]
    return starts, members, used_weights


def _k_means(points: Singles, size: int, generator: np.random.Generator, workers: Workers) -> Singles:
    """Find centroids by Lloyd's algorithm from random points; an empty one starts again at a random point."""
    centroids = points[generator.choice(len(points), size, replace=len(points) < size)].astype(np.float32)
    unit_metric = np.ones((1, points.shape[1]), np.float32)
    for _ in range(KMEANS_ROUNDS):
        spread, bounds = spread_centroids(unit_metric, centroids, (size,))
        near = workers.map(
            lambda part, spread=spread, bounds=bounds: find_nearest(points[part], unit_metric, spread, bounds)[0][:, 0],
            workers.slices(len(points)),
        )
        nearest = np.concatenate(near)
        count = np.bincount(nearest, minlength=size)
        sums = np.stack([np.bincount(nearest, column, size) for column in points.T], axis=1)
        fresh = points[generator.integers(len(points), size=size)]
        means = sums / np.maximum(count, 1)[:, None]
        centroids = np.where(count[:, None] > 0, means, fresh).astype(np.float32)
    return centroids
