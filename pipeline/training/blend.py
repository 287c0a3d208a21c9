"""Training of a blend: boosted trees and max-ent by the pattern, then the exponents that join them.

Both parts are trained without an inner tenth of the training deals, which tells each of them when to stop, and on which
the exponents are fitted afterwards; the validation rows take no part. It is a room of its own because it trains
by other algorithms instead of an optimiser.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.blend import Blend, logs
from pipeline.models.softmax import softmax
from pipeline.training.boosting import held_inside
from pipeline.training.loop import scores
from pipeline.training.tasks import Corpora, Examples, Task, Trained, Watch
from pipeline.training.trainers import corpora_for, finish, train_model

__all__ = ["fit_exponents", "train"]

PARTS = ("boosting", "l-bfgs")
STEPS = 30
"""Newton's steps at most"""
ENOUGH = 1e-6
"""a step that changes nothing"""
MOST = 4.0
"""exponents are at most this, and never negative: a part may be left out, not believed to be wrong"""
RIDGE = 1.0
"""how strongly exponents are held at one share each: as much as so many rows say"""


def train(task: Task, corpora: Corpora, watch: Watch) -> Trained:
    """Train the parts, then fit their exponents on the deals that the parts have not seen."""
    task.check_decisions("blend")
    inner = held_inside(task.examples)
    less = replace(task, examples=task.examples.some(~inner), validation=task.examples.some(inner))
    if not inner.any() or not less.is_learnable:  # too few rows to leave some out
        less = replace(task, validation=task.examples)
    judges = less.validation
    assert judges is not None
    boosted = train_model(PARTS[0], replace(task, validation=None), watch=watch)
    fitted = train_model(PARTS[1], less, corpora_for([PARTS[1]], less, watch, corpora.interrupts), watch=watch)
    parts = (boosted.model, fitted.model)
    watch.stage("joining")
    exponents = fit_exponents([part.predict(judges.rows) for part in parts], judges)
    found = finish(task, Blend(parts, exponents), boosted.iterations, boosted.active + fitted.active)
    found = found._replace(interrupted=fitted.interrupted)
    if found.log_loss is None or task.validation is None:
        return found
    alone = [scores(part.predict(task.validation.rows), task.validation.targets)[1] for part in parts]
    return found._replace(parts=tuple(zip(PARTS, alone, strict=True)))


def fit_exponents(chances: list[NDArray[np.float64]], examples: Examples) -> NDArray[np.float64]:
    """The exponents with the lowest log-loss on some rows, by Newton's method: the loss is convex in them.

    Parameters: `chances` the parts' probabilities, each (rows, labels); `examples` what was done in these rows.
    """
    parts = np.stack([logs(one) for one in chances])  # (parts, rows, labels)
    rows: Any = examples.rows
    legal, taken = rows["legal"], examples.targets.astype(np.int64)
    at = np.arange(len(taken))
    start = np.full(len(chances), 1.0 / len(chances))

    def mixed(exponents: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """The blend's probabilities and its objective."""
        mix = np.tensordot(exponents, parts, axes=1)
        softmax(mix, legal)
        loss = -float(logs(mix)[at, taken].sum())
        return mix, loss + RIDGE / 2 * float(((exponents - start) ** 2).sum())

    exponents = start
    mix, lowest = mixed(exponents)
    for _ in range(STEPS):
        expected = (parts * mix).sum(axis=2)
        slope = (expected - parts[:, at, taken]).sum(axis=1) + RIDGE * (exponents - start)
        spread = parts - expected[:, :, None]
        curve = np.einsum("arl,brl,rl->ab", spread, spread, mix) + RIDGE * np.eye(len(chances))
        step = np.linalg.solve(curve, slope)
        tried, loss = mixed(exponents - step)
        while loss > lowest and np.abs(step).max() > ENOUGH:  # too far: half the way
            step /= 2
            tried, loss = mixed(exponents - step)
        if loss >= lowest or np.abs(step).max() < ENOUGH:
            break
        exponents, mix, lowest = exponents - step, tried, loss
    return np.clip(exponents, 0.0, MOST)
