"""Scores to probabilities over the legal labels, shared by all kinds of models.

A row fires features f; label j scores s_j = sum of w[f, j]; p_j = exp(s_j) / the sum of exp(s) over the legal labels.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from pipeline.features.vocabulary import read_only
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers

NEVER = -1e30
"""the score of a label that is not legal"""


@cache
def legal_masks(labels: int) -> NDArray[np.float64]:
    """Return the addend to the scores for each byte of legal bits: 0, or `NEVER` for an illegal label."""
    # a byte has no bit beyond the eighth label: those are legal only where all labels are, which is the byte 255
    bits = np.arange(256)[:, None] >> np.minimum(np.arange(labels), 8)
    masks = np.where(bits & 1, 0.0, NEVER)
    masks[255] = 0
    return masks


def probabilities(
    ids: NDArray[np.int32], legal: NDArray[np.uint8], weights: NDArray[np.float32], workers: Workers | None = None
) -> NDArray[np.float64]:
    """Return the label probabilities of rows given by their feature ids (-1: absent)."""
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


@kernel
def _predict(
    ids: NDArray[np.int32],
    legal: NDArray[np.uint8],
    masks: NDArray[np.float64],
    weights: NDArray[np.float32],
    out: NDArray[np.float64],
) -> None:
    """Fill in the softmax over the legal labels of the summed weights."""
    labels = weights.shape[1]
    for row in range(len(ids)):
        for j in range(labels):
            out[row, j] = masks[legal[row], j]
        for t in range(ids.shape[1]):
            feature = ids[row, t]
            if feature >= 0:
                for j in range(labels):
                    out[row, j] += weights[feature, j]
        # the largest score becomes 0, so that no exponential overflows and their sum is at least 1
        top = out[row, 0]
        for j in range(1, labels):
            top = max(top, out[row, j])
        z = 0.0
        for j in range(labels):
            out[row, j] = np.exp(out[row, j] - top)
            z += out[row, j]
        for j in range(labels):
            out[row, j] /= z
