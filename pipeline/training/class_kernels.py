"""The compiled part of learning classes of hands: memberships, slopes, and one pass over the rows.

The model is that of `models.classes` with weights in full, (contexts, classes + 1, labels), the last class standing for
the context alone. A pass visits rows one by one: the weights that a row touches take a step of AdaGrad at once (Duchi
and others 2011), while the slopes of centroids and metric are gathered over a batch and then take a step of Adam
(Kingma and Ba 2015); the metric moves by its logarithm, so it stays positive. The L2 penalty of a cell is spread over
the rows that touch it, by their share of its mass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.models.classes import NEAREST
from pipeline.runtime.kernels import kernel

Floats = NDArray[np.float32]

SMALL = 1e-3
"""a membership under which a class learns nothing from a row"""
FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.99, 1e-8
"""Adam's"""


class Sample(NamedTuple):
    """Rows to learn from."""

    points: Floats
    """(rows, columns), standardised"""
    near: NDArray[np.int32]
    """(rows, codebooks x NEAREST) candidates for their class"""
    contexts: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[np.int64]


class Parameters(NamedTuple):
    """The parameters that are learned."""

    metric: Floats
    """(codebooks, columns)"""
    centroids: Floats
    """(classes, columns)"""
    weights: Floats
    """(contexts, classes + 1, labels)"""


class Moments(NamedTuple):
    """State of the optimisers: AdaGrad's sums of squares of each cell, Adam's moments of centroids and metric."""

    squares: Floats
    masses: Floats
    """(contexts, classes + 1) rows that belong to each cell"""
    centroid_means: Floats
    centroid_squares: Floats
    metric_means: Floats
    metric_squares: Floats


class PassSettings(NamedTuple):
    """Sizes of steps, and penalties."""

    weight_step: float
    centroid_step: float
    metric_step: float
    """of the metric's logarithms"""
    batch: int
    penalties: Floats
    """(contexts of a row,) of classes"""
    alone: Floats
    """(contexts of a row,) of contexts alone"""


@kernel(leaf=True)
def _memberships(sample: Sample, row: int, parameters: Parameters, out: Floats) -> None:
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
        for m in range(book * NEAREST, (book + 1) * NEAREST):
            out[m] = np.exp(least - out[m])
            total += out[m]
        for m in range(book * NEAREST, (book + 1) * NEAREST):
            out[m] /= total


@kernel(leaf=True)
def _residuals(sample: Sample, row: int, parameters: Parameters, shares: Floats, out: Floats) -> float:
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
    shares: Floats,
    residuals: Floats,
    centroid_slopes: Floats,
    metric_slopes: Floats,
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
                if abs(slope) < 1e-6:
                    continue
                k = sample.near[row, m]
                for column in range(sample.points.shape[1]):
                    gap = sample.points[row, column] - parameters.centroids[k, column]
                    scaled = 2 * slope * parameters.metric[book, column] * parameters.metric[book, column] * gap
                    centroid_slopes[k, column] -= scaled
                    metric_slopes[book, column] += scaled * gap


@kernel
def slopes(
    sample: Sample, parameters: Parameters, centroid_slopes: Floats, metric_slopes: Floats, weight_slopes: Floats
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
def add_masses(sample: Sample, parameters: Parameters, masses: Floats) -> None:
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
    shares: Floats,
    residuals: Floats,
) -> None:
    """Take a step of AdaGrad for the cells of a row."""
    weights, last = parameters.weights, parameters.weights.shape[1] - 1
    for place in range(sample.contexts.shape[1]):
        context = sample.contexts[row, place]
        for m in range(len(shares) + 1):
            alone = m == len(shares)
            k = last if alone else sample.near[row, m]
            share = np.float32(1) if alone else shares[m]
            if share < SMALL:
                continue
            pull = settings.alone[place] if alone else settings.penalties[place]
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
def _move(
    parameters: Parameters, moments: Moments, settings: PassSettings, batches: int, centroid: Floats, metric: Floats
) -> None:
    """Take a step of Adam for centroids and metric by the slopes of a batch, which are set to 0."""
    first, second = 1 - FIRST_DECAY**batches, 1 - SECOND_DECAY**batches
    for k in range(len(centroid)):
        for column in range(centroid.shape[1]):
            slope = centroid[k, column] / settings.batch
            centroid[k, column] = 0
            mean = FIRST_DECAY * moments.centroid_means[k, column] + (1 - FIRST_DECAY) * slope
            square = SECOND_DECAY * moments.centroid_squares[k, column] + (1 - SECOND_DECAY) * slope * slope
            moments.centroid_means[k, column], moments.centroid_squares[k, column] = mean, square
            parameters.centroids[k, column] -= (
                settings.centroid_step * (mean / first) / (np.sqrt(square / second) + TINY)
            )
    for book in range(len(metric)):
        for column in range(metric.shape[1]):
            slope = metric[book, column] / settings.batch
            metric[book, column] = 0
            mean = FIRST_DECAY * moments.metric_means[book, column] + (1 - FIRST_DECAY) * slope
            square = SECOND_DECAY * moments.metric_squares[book, column] + (1 - SECOND_DECAY) * slope * slope
            moments.metric_means[book, column], moments.metric_squares[book, column] = mean, square
            change = settings.metric_step * (mean / first) / (np.sqrt(square / second) + TINY)
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
