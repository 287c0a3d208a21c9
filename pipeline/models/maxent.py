"""Log-linear (max-ent) models of arrays: the penalised likelihood with its gradient, and prediction.

A row fires features f; label j scores s_j = sum of w[f, j]; p_j = exp(s_j) / sum over legal labels. The objective is
Wapiti's and CRFsuite's: sum of -log p of what was done + rho1 |w|_1 + rho2 / 2 |w|^2, with the strengths given per
feature. The gradient of the smooth part is (expected - observed) label counts of each feature + rho2 w.

The kernels walk a `Corpus`: partial sums of scores go down the templates, sums of probabilities come back up, so a
feature shared by neighbouring rows is read and written once. Each thread has its own gradient; they are added in
order of the threads, so that results depend on their number but not on scheduling.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from pipeline.features import read_only
from pipeline.kernels import kernel
from pipeline.models.corpus import Corpus, Workers

__all__ = ["Problem", "Weights", "legal_masks", "probabilities", "softmax"]

Weights = NDArray[np.float64]
NEVER = -1e30


class Problem:
    """What an optimiser minimises: `smooth` (value and gradient without the L1 part) and the penalties."""

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
        features, self.labels = corpus.counts.shape
        self.rho1 = np.ascontiguousarray(np.broadcast_to(np.asarray(rho1, float), features))[:, None]
        self.rho2 = np.ascontiguousarray(np.broadcast_to(np.asarray(rho2, float), features))[:, None]
        self.masks = legal_masks(self.labels)
        self._parts = [np.empty((features, self.labels)) for _ in corpus.chunks]

    @property
    def shape(self) -> tuple[int, int]:
        """(features, labels)."""
        return self.corpus.counts.shape[0], self.labels

    @property
    def rows(self) -> float:
        """The summed weight of all rows."""
        return float(sum(chunk.mass.sum(dtype=np.float64) for chunk in self.corpus.chunks))

    def smooth(self, weights: Weights) -> tuple[float, Weights]:
        """Negative log-likelihood plus the L2 penalty, and its gradient."""
        losses = self.workers.map(
            lambda chunk, part: _gradient(
                chunk.stream,
                chunk.change,
                chunk.legal,
                chunk.mass,
                self.masks,
                weights,
                part,
                (0,) * self.labels,
                self.corpus.templates,
            ),
            self.corpus.chunks,
            self._parts,
        )
        gradient = np.empty_like(weights)
        pieces = self.workers.slices(len(weights))
        extra = self.workers.map(lambda piece: self._collect(piece, weights, gradient), pieces)
        return sum(losses) + sum(extra), gradient

    def _collect(self, piece: slice, weights: Weights, gradient: Weights) -> float:
        """Add the threads' parts and the penalty for a range of features."""
        w, g = weights[piece], gradient[piece]
        np.subtract(self._parts[0][piece], self.corpus.counts[piece], out=g)
        for part in self._parts[1:]:
            g += part[piece]
        shrink = self.rho2[piece] * w
        g += shrink
        return float(0.5 * np.vdot(shrink, w) - np.vdot(self.corpus.counts[piece], w))

    def penalty(self, weights: Weights) -> float:
        """The L1 part of the objective."""
        return float(np.vdot(self.rho1, np.abs(weights).sum(1)))

    def objective(self, weights: Weights) -> float:
        """The whole objective."""
        return self.smooth(weights)[0] + self.penalty(weights)

    def pseudo_gradient(self, weights: Weights, gradient: Weights) -> Weights:
        """The objective's steepest ascent: at a weight of zero the L1 term takes the side that helps, or holds it."""
        held = np.sign(gradient) * np.maximum(np.abs(gradient) - self.rho1, 0)
        return np.where(weights == 0, held, gradient + self.rho1 * np.sign(weights))


@cache
def legal_masks(labels: int) -> NDArray[np.float64]:
    """What to add to the scores for each byte of legal bits: nothing, or what makes a label impossible."""
    bits = np.arange(256)[:, None] >> np.minimum(np.arange(labels), 8)
    masks = np.where(bits & 1, 0.0, NEVER)
    masks[255] = 0
    return masks


def probabilities(
    ids: NDArray[np.int32], legal: NDArray[np.uint8], weights: NDArray[np.float32], workers: Workers | None = None
) -> NDArray[np.float64]:
    """The label probabilities of rows given by their feature ids (-1: absent)."""
    out = np.empty((len(ids), weights.shape[1]))
    masks = legal_masks(weights.shape[1])
    weights = read_only(weights)
    workers = workers or Workers(1)
    workers.map(lambda part: _predict(ids[part], legal[part], masks, weights, out[part]), workers.slices(len(ids)))
    return out


def softmax(scores: NDArray[np.float64], legal: NDArray[np.uint8]) -> None:
    """Turn scores (rows, labels) into probabilities over the legal labels, in place."""
    scores += legal_masks(scores.shape[1])[legal]
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)


@kernel(fastmath=True)
def _gradient(
    stream: NDArray[np.int32],
    change: NDArray[np.uint8],
    legal: NDArray[np.uint8],
    mass: NDArray[np.float32],
    masks: NDArray[np.float64],
    weights: Weights,
    gradient: Weights,
    lanes: tuple[int, ...],
    templates: int,
) -> float:
    """Sum of mass * log Z over the rows; their expected label counts into `gradient`. `lanes` has a zero per label."""
    gradient[:] = 0
    score = np.zeros((templates + 1, len(lanes)))
    flow = np.zeros((templates + 1, len(lanes)))
    chance = np.zeros(len(lanes))
    current = np.full(templates, -1, np.int32)
    loss = 0.0
    at = 0
    for row in range(len(change)):
        first = change[row]
        for q in range(templates - 1, first - 1, -1):
            feature = current[q]
            for j in range(len(lanes)):
                flow[q, j] += flow[q + 1, j]
            if feature >= 0:
                for j in range(len(lanes)):
                    gradient[feature, j] += flow[q + 1, j]
            for j in range(len(lanes)):
                flow[q + 1, j] = 0.0
        for q in range(first, templates):
            feature = stream[at]
            at += 1
            current[q] = feature
            if feature >= 0:
                for j in range(len(lanes)):
                    score[q + 1, j] = score[q, j] + weights[feature, j]
            else:
                for j in range(len(lanes)):
                    score[q + 1, j] = score[q, j]
        top = NEVER
        total = 0.0
        for j in range(len(lanes)):
            chance[j] = score[templates, j] + masks[legal[row], j]
            top = max(top, chance[j])
            total += mass[row, j]
        z = 0.0
        for j in range(len(lanes)):
            chance[j] = np.exp(chance[j] - top)
            z += chance[j]
        loss += total * (top + np.log(z))
        total /= z
        for j in range(len(lanes)):
            flow[templates, j] += total * chance[j]
    for q in range(templates - 1, -1, -1):
        for j in range(len(lanes)):
            if current[q] >= 0:
                gradient[current[q], j] += flow[q + 1, j]
            flow[q, j] += flow[q + 1, j]
    return loss


@kernel
def _predict(
    ids: NDArray[np.int32],
    legal: NDArray[np.uint8],
    masks: NDArray[np.float64],
    weights: NDArray[np.float32],
    out: NDArray[np.float64],
) -> None:
    """Softmax over the legal labels of the summed weights."""
    labels = weights.shape[1]
    for row in range(len(ids)):
        for j in range(labels):
            out[row, j] = masks[legal[row], j]
        for t in range(ids.shape[1]):
            feature = ids[row, t]
            if feature >= 0:
                for j in range(labels):
                    out[row, j] += weights[feature, j]
        top = out[row, 0]
        for j in range(1, labels):
            top = max(top, out[row, j])
        z = 0.0
        for j in range(labels):
            out[row, j] = np.exp(out[row, j] - top)
            z += out[row, j]
        for j in range(labels):
            out[row, j] /= z
