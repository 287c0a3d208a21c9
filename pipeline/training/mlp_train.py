"""Training of a small neural net by scikit-learn's multi-layer perceptron; it plays without it (see `net`)."""

from __future__ import annotations

import numpy as np

from pipeline.errors import PipelineError
from pipeline.features.textrows import TextRows
from pipeline.models.matrix import matrix, matrix_columns
from pipeline.models.mlp import Net
from pipeline.training.loop import scores
from pipeline.training.trainers import Task, Trained, finish

__all__ = ["fit_model"]

HIDDEN = (128, 64)
PASSES = 20
FEW = 8


def fit_model(task: Task) -> Trained:
    """Train by Adam for some passes; of these the one with the lowest validation log-loss is kept."""
    from sklearn.neural_network import MLPClassifier

    examples = task.examples
    if isinstance(examples.rows, TextRows) or examples.targets.ndim != 1:
        raise PipelineError("a net needs decision rows with one action each: train max-ent on these rows")
    if len(np.unique(examples.targets)) < 2:
        raise PipelineError(f"all {len(examples):,} rows have the same label: a model needs at least two to tell apart")
    bare = _inputs(task)
    inputs = bare.inputs(examples.rows)
    labels = np.arange(len(task.labels))
    learner = MLPClassifier(HIDDEN, batch_size=min(512, len(inputs)), random_state=task.settings.seed)
    random = np.random.default_rng(task.settings.seed)
    best, lowest = bare, np.inf
    passes = task.settings.iterations or PASSES
    for done in range(passes):
        learner.set_params(learning_rate_init=1e-3 * 0.8**done)
        if done:
            learner._optimizer.learning_rate_init = 1e-3 * 0.8**done
        order = random.permutation(len(inputs))
        for low in range(0, len(order), 1 << 15):
            part = order[low : low + (1 << 15)]
            learner.partial_fit(inputs[part], examples.targets[part], classes=labels)
        now = Net(
            bare.columns,
            bare.source,
            bare.centre,
            bare.scale,
            tuple(layer.astype(np.float32) for layer in learner.coefs_),
            tuple(layer.astype(np.float32) for layer in learner.intercepts_),
        )
        judged = task.validation if task.validation is not None and len(task.validation) else examples
        loss = scores(now.predict(judged.rows), judged.targets)[1]
        if loss < lowest:
            best, lowest = now, loss
    return finish(task, best, passes, sum(layer.size for layer in best.weights))


def _inputs(task: Task) -> Net:
    """A net without layers: how the training rows' columns become inputs."""
    rows = task.examples.rows
    assert not isinstance(rows, TextRows)
    columns = matrix_columns(task.streets, bool((rows["hole"][0] != 255).all()))
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
