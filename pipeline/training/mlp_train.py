"""Training of a small neural net: Adam on the cross-entropy over the legal labels, in numpy (it plays as `models.mlp`).

In: decision rows with one action each. Out: a `Net`, that of the pass with the lowest validation log-loss. Weights
start as Glorot and Bengio 2010 draw them; the step falls by a fifth after every pass.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.features.textrows import TextRows
from pipeline.models.matrix import columns_for, matrix
from pipeline.models.mlp import Net
from pipeline.models.softmax import legal_masks
from pipeline.runtime.progress import Callbacks
from pipeline.training.loop import scores
from pipeline.training.tasks import Corpora, Task, Trained
from pipeline.training.trainers import finish

HIDDEN = (128, 64)
PASSES = 20
FEW = 8
"""a column with so few different values becomes an indicator per value"""
BATCH = 512
RATE, DECAY, SHRINK = 1e-3, 0.8, 1e-4
"""Adam's step, what is left of it after a pass, the L2 penalty per batch"""
KEEP, KEEP_SQUARE, SMALLEST = 0.9, 0.999, 1e-8
"""how much of the means of slopes and of their squares Adam keeps from one batch to the next"""

Array = NDArray[np.float32]


def train(task: Task, corpora: Corpora, callbacks: Callbacks) -> Trained:
    """Train for some passes; of these the one with the lowest validation log-loss is kept."""
    task.check_decisions("a net")
    examples = task.examples
    callbacks.stage("reading columns")
    bare = _inputs(task)
    inputs = bare.inputs(examples.rows)
    masks = legal_masks(len(task.labels)).astype(np.float32)[examples.legal]
    random = np.random.default_rng(task.config.seed)
    learner = _Adam([inputs.shape[1], *HIDDEN, len(task.labels)], random)
    best, lowest = bare, np.inf
    passes = task.config.iterations or PASSES
    progress = callbacks.stage("optimising")
    judged = task.validation if task.validation is not None and len(task.validation) else examples
    for done in range(passes):
        order = random.permutation(len(inputs))
        for low in range(0, len(order), BATCH):
            part = order[low : low + BATCH]
            learner.step(inputs[part], masks[part], examples.targets[part], RATE * DECAY**done)
        weights, biases = tuple(w.copy() for w in learner.weights), tuple(b.copy() for b in learner.biases)
        now = Net(bare.columns, bare.source, bare.centre, bare.scale, weights, biases)
        loss = scores(now.predict(judged.rows), judged.targets)[1]
        if loss < lowest:
            best, lowest = now, loss
        progress(done + 1, passes)
    return finish(task, best, passes, sum(layer.size for layer in best.weights))


class _Adam:
    """Layers of rectified units under Adam (Kingma and Ba 2015)."""

    def __init__(self, widths: list[int], random: np.random.Generator) -> None:
        bounds = [np.sqrt(6 / (low + high)) for low, high in pairwise(widths)]
        shapes = list(pairwise(widths))
        self.weights = [
            random.uniform(-bound, bound, shape).astype(np.float32) for bound, shape in zip(bounds, shapes, strict=True)
        ]
        self.biases = [np.zeros(width, np.float32) for width in widths[1:]]
        self._means = [np.zeros_like(one) for one in (*self.weights, *self.biases)]
        self._squares = [np.zeros_like(one) for one in (*self.weights, *self.biases)]
        self._steps = 0

    def step(self, inputs: Array, masks: Array, targets: NDArray[np.uint8], rate: float) -> None:
        """One step on a batch: (rows, inputs), what to add to the scores of illegal labels, the labels taken."""
        layers = [inputs]
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.maximum(layers[-1] @ weights + bias, 0))
        slope = layers[-1] @ self.weights[-1] + self.biases[-1] + masks
        slope = np.exp(slope - slope.max(axis=1, keepdims=True))
        slope /= slope.sum(axis=1, keepdims=True)
        slope[np.arange(len(targets)), targets] -= 1
        slope /= len(targets)
        of_weights: list[Array] = []
        of_biases: list[Array] = []
        for at in range(len(self.weights) - 1, -1, -1):
            of_weights.insert(0, layers[at].T @ slope + SHRINK / len(targets) * self.weights[at])
            of_biases.insert(0, slope.sum(axis=0))
            if at:
                slope = (slope @ self.weights[at].T) * (layers[at] > 0)
        self._steps += 1
        rate *= np.sqrt(1 - KEEP_SQUARE**self._steps) / (1 - KEEP**self._steps)
        for value, turn, mean, square in zip(
            (*self.weights, *self.biases), (*of_weights, *of_biases), self._means, self._squares, strict=True
        ):
            mean += (1 - KEEP) * (turn - mean)
            square += (1 - KEEP_SQUARE) * (turn * turn - square)
            value -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(SMALLEST))


def _inputs(task: Task) -> Net:
    """A net without layers: how the training rows' columns become inputs."""
    rows = task.examples.rows
    assert not isinstance(rows, TextRows)
    columns = columns_for(rows, task.streets)
    values = matrix(rows[:: max(1, len(rows) // 100_000)], columns)
    source, centre, scale = [], [], []
    for at, column in enumerate(values.T):
        levels = np.unique(column)
        if len(levels) == 1:
            continue
        if len(levels) <= FEW:
            source += [at] * len(levels)
            centre += levels.tolist()
            scale += [0.0] * len(levels)
        else:
            source.append(at)
            centre.append(float(column.mean()))
            scale.append(1 / float(column.std()))
    return Net(columns, np.array(source, np.int32), np.array(centre, np.float32), np.array(scale, np.float32), (), ())
