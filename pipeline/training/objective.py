"""The objective of a log-linear (max-ent) model: the penalised likelihood and its gradient.

A row fires features f; label j scores s_j = sum of w[f, j]; p_j = exp(s_j) / sum over legal labels. The objective is
Wapiti's and CRFsuite's: sum of -log p of what was done + rho1 |w|_1 + rho2 / 2 |w|^2, with the strengths given per
feature. The gradient of the smooth part is (expected - observed) label counts of each feature + rho2 w.

The kernels walk a `Corpus`: partial sums of scores go down the templates, sums of probabilities come back up, so a
feature shared by neighbouring rows is read and written once. Exponentials are taken of weights, not of scores, as
long as no product of them can leave a double's range. Each chunk has its own gradient; they are added in
order of the chunks, so that results depend neither on the number of threads nor on scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.models.softmax import NEVER, legal_masks
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import SHARE_FEATURES, Corpus, RowChunk, Weights
from pipeline.training.stochastic import Pass, PassResult, RepeatedRows

SAFE = 600.0
"""scores up to this size are computed as products of exponentials: the largest double is exp(709)"""
SMALLEST_PRODUCT, LARGEST_PRODUCT = 1e-120, 1e120


class Descent(NamedTuple):
    """The rows of one part that a stochastic pass goes over, and the features that they fire."""

    rows: int
    fired: int
    """features fired, summed over the rows"""
    number: NDArray[np.int32] | slice
    """of each feature of the part in the whole"""
    mass: Weights
    """(features, 1) label mass of each in this part"""


class Problem:
    """An objective to minimise: `smooth` (value and gradient without the L1 part) and the penalties."""

    def __init__(
        self,
        corpus: Corpus,
        *,
        rho1: float | NDArray[np.float64] = 0.5,
        rho2: float | NDArray[np.float64] = 1e-4,
        workers: Workers | None = None,
    ) -> None:
        self.corpus = corpus
        self.workers = workers or Workers(1)
        features, self.labels = self.shape = corpus.counts.shape
        self.rho1 = np.ascontiguousarray(np.broadcast_to(np.asarray(rho1, float), features))
        self.rho2 = np.ascontiguousarray(np.broadcast_to(np.asarray(rho2, float), features))
        self._pieces = shares(features)
        self._parts = np.empty((len(corpus.chunks), *self.shape))
        self._factors = np.empty(self.shape)

    def smooth(self, weights: Weights) -> tuple[float, Weights]:
        """Return the negative log-likelihood plus the L2 penalty, and its gradient."""
        loss, expected = self.sums(weights, self._is_plain(weights))
        gradient = np.empty_like(weights)
        extra = self.workers.map(
            lambda piece: _collect(
                expected[:, piece], self.corpus.counts[piece], self.rho2[piece], weights[piece], gradient[piece]
            ),
            self._pieces,
        )
        return loss + sum(extra), gradient

    def sums(self, weights: Weights, plain: bool) -> tuple[float, NDArray[np.float64]]:
        """Return the sum of log Z over the rows, and expected label counts (any, features, labels), to be added up."""
        values = self._factors if plain else weights
        if plain:
            self.workers.map(lambda piece: np.exp(weights[piece], out=values[piece]), self._pieces)
        loss = expected_counts(self.corpus.chunks, self.corpus.templates, values, plain, self._parts, self.workers)
        return loss, self._parts

    @cached_property
    def _repeated(self) -> RepeatedRows:
        return RepeatedRows.of(*self.corpus.rows())

    def descents(self) -> list[Descent]:
        """Return the parts that a stochastic pass goes over one by one: here a single one."""
        mass = self.corpus.counts.sum(axis=1, keepdims=True)
        return [Descent(len(self._repeated.order), self._repeated.fired, slice(None), mass)]

    def descend(self, arguments: Pass) -> list[PassResult]:
        """Pass over the rows of each part from a common point."""
        return [self._repeated.descend(arguments.lazy, arguments)]

    def _is_plain(self, weights: Weights) -> bool:
        """Return whether no product of the exponentials of a row's weights can leave a double's range."""
        # a row fires at most one feature per template, so its score is at most the sum of their largest weights
        tops = np.zeros(self.corpus.templates)
        _tops(weights, self.corpus.template, tops)
        return float(tops.sum()) < SAFE

    def penalty(self, weights: Weights) -> float:
        """Return the L1 part of the objective."""
        return float(_penalty(weights, self.rho1))

    def objective(self, weights: Weights) -> float:
        """Return the whole objective."""
        return self.smooth(weights)[0] + self.penalty(weights)

    def pseudo_gradient(self, weights: Weights, gradient: Weights) -> Weights:
        """Return the direction of steepest ascent: at a weight of zero the L1 term takes the side that helps, or 0."""
        out = np.empty_like(weights)
        _pseudo_gradient(weights, gradient, self.rho1, out)
        return out


def shares(features: int) -> list[slice]:
    """Cut features into slices of `SHARE_FEATURES`, each the work of one thread at a time."""
    return [slice(low, min(low + SHARE_FEATURES, features)) for low in range(0, max(features, 1), SHARE_FEATURES)]


def expected_counts(
    chunks: Sequence[RowChunk],
    templates: int,
    values: Weights,
    plain: bool,
    parts: NDArray[np.float64],
    workers: Workers,
) -> float:
    """Return the sum of log Z over chunks; write the expected label counts to `parts` (chunks, features, labels).

    `values` are weights, or their exponentials if `plain`.
    """
    labels = values.shape[1]
    masks, lanes = legal_masks(labels), (0,) * labels
    losses = workers.map(
        lambda chunk, part: _gradient(
            chunk.stream, chunk.change, chunk.legal, chunk.total, masks, values, plain, part, lanes, templates
        ),
        chunks,
        parts,
    )
    return sum(losses)


@kernel(fastmath=True)
def _gradient(
    stream: NDArray[np.int32],
    change: NDArray[np.uint16],
    legal: NDArray[np.uint8],
    total: NDArray[np.float32],
    masks: NDArray[np.float64],
    values: Weights,
    plain: bool,
    gradient: Weights,
    lanes: tuple[int, ...],
    templates: int,
) -> float:
    """Return the sum of total * log Z over the rows; write their expected label counts to `gradient`.

    `values` are exponentials of weights if `plain`, multiplied down the templates: no exponential per row. Otherwise
    they are weights, added up. `lanes` has a zero per label, so that the compiler knows their number.
    """
    gradient[:] = 0
    score = np.full((templates + 1, len(lanes)), 1.0 if plain else 0.0)
    flow = np.zeros((templates + 1, len(lanes)))
    chance = np.zeros(len(lanes))
    current = np.full(templates, -1, np.int32)
    allowed = np.exp(masks)  # 1 or 0
    loss = 0.0
    product = 1.0  # of Z, so that most rows need no logarithm of their own
    position = 0
    for row in range(len(change)):
        first = change[row]
        # features that end with the row before: what flowed down to them is complete, hand it on to the template above
        for q in range(templates - 1, first - 1, -1):
            feature = current[q]
            for j in range(len(lanes)):
                flow[q, j] += flow[q + 1, j]
            if feature >= 0:
                for j in range(len(lanes)):
                    gradient[feature, j] += flow[q + 1, j]
            for j in range(len(lanes)):
                flow[q + 1, j] = 0.0
        # scores of the shared templates stand; only the others are computed anew
        for q in range(first, templates):
            feature = stream[position]
            position += 1
            current[q] = feature
            if feature < 0:
                for j in range(len(lanes)):
                    score[q + 1, j] = score[q, j]
            elif plain:
                for j in range(len(lanes)):
                    score[q + 1, j] = score[q, j] * values[feature, j]
            else:
                for j in range(len(lanes)):
                    score[q + 1, j] = score[q, j] + values[feature, j]
        z = 0.0
        top = 0.0
        if plain:
            for j in range(len(lanes)):
                chance[j] = score[templates, j] * allowed[legal[row], j]
                z += chance[j]
        else:
            top = NEVER
            for j in range(len(lanes)):
                chance[j] = score[templates, j] + masks[legal[row], j]
                top = max(top, chance[j])
            for j in range(len(lanes)):
                chance[j] = np.exp(chance[j] - top)
                z += chance[j]
        share = total[row] / z
        if plain and total[row] == 1.0 and SMALLEST_PRODUCT < z < LARGEST_PRODUCT:
            product *= z
            if not SMALLEST_PRODUCT < product < LARGEST_PRODUCT:
                loss += np.log(product)
                product = 1.0
        else:
            loss += total[row] * (top + np.log(z))
        for j in range(len(lanes)):
            flow[templates, j] += share * chance[j]
    for q in range(templates - 1, -1, -1):
        for j in range(len(lanes)):
            if current[q] >= 0:
                gradient[current[q], j] += flow[q + 1, j]
            flow[q, j] += flow[q + 1, j]
    return loss + np.log(product)


@kernel
def _collect(parts: NDArray[np.float64], counts: Weights, rho2: Weights, weights: Weights, gradient: Weights) -> float:
    """Write expected minus observed counts plus the L2 term; return these features' share of the objective."""
    value = 0.0
    for f in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            expected = 0.0
            for part in range(parts.shape[0]):
                expected += parts[part, f, j]
            shrink = rho2[f] * weights[f, j]
            gradient[f, j] = expected - counts[f, j] + shrink
            # scores of what was done are linear in the weights: their sum needs counts alone, not rows
            value += weights[f, j] * (0.5 * shrink - counts[f, j])
    return value


@kernel
def _tops(weights: Weights, template: NDArray[np.int32], tops: NDArray[np.float64]) -> None:
    """Write the largest absolute weight of each template."""
    for f in range(weights.shape[0]):
        if template[f] >= 0:
            for j in range(weights.shape[1]):
                tops[template[f]] = max(tops[template[f]], abs(weights[f, j]))


@kernel
def _penalty(weights: Weights, rho1: NDArray[np.float64]) -> float:
    value = 0.0
    for f in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            value += rho1[f] * abs(weights[f, j])
    return value


@kernel
def _pseudo_gradient(weights: Weights, gradient: Weights, rho1: NDArray[np.float64], out: Weights) -> None:
    for f in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            out[f, j] = pseudo_slope(weights[f, j], gradient[f, j], rho1[f])


@kernel(leaf=True)
def pseudo_slope(weight: float, slope: float, rho1: float) -> float:
    """Return the slope of the objective in one weight; at zero that of the side on which it falls, or 0."""
    if weight > 0.0 or (weight == 0.0 and slope < -rho1):
        return slope + rho1
    if weight < 0.0 or slope > rho1:
        return slope - rho1
    return 0.0
