"""Stochastic gradient descent with an L1 penalty (sgd-l1): one row at a time, an average of the passes as the result.

The penalty is the cumulative one of Tsuruoka and others (2009), here with rho2 as well. Rows in one corpus are passed
over one after the other; rows in several parts are passed over part by part from a common point (see `sharded`), by the
same `sgd_pass`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.models.softmax import legal_masks
from pipeline.runtime.kernels import kernel
from pipeline.training.iterates import Iterate, State
from pipeline.training.objective import Problem, Weights

RATE, DECAY, USUAL_FEATURES = 0.8, 0.85, 8.0
"""first step if rows fire at most `USUAL_FEATURES`, what a pass multiplies it by, and that number of features"""


def sgd_l1(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Yield iterates of stochastic descent; a problem in parts averages over its parts after each pass."""
    return getattr(problem, "averaged_passes", partial(_passes, problem))(state, seed)


def _passes(problem: Problem, state: State, seed: int) -> Iterator[Iterate]:
    """Yield iterates of stochastic descent, rows in a new random order every pass: the last weights or an average.

    A step moves a row's score once per feature that the row fires, so with fifty of them the usual first step would
    overshoot: it is divided by how many times `USUAL_FEATURES` features a row fires on average. An average of the
    passes that weighs pass k by k is taken where its objective is lower; a weight that the penalty holds at zero in the
    last pass is zero in the average.
    """
    masks = legal_masks(problem.labels)
    ids, legal, mass, order, fired = repeated_rows(*problem.corpus.rows())
    first_step = first_rate(fired, len(order))
    weights = state.get("point", np.zeros(problem.shape)).copy()
    average = state.get("average", np.zeros(problem.shape)).copy()
    applied = state.get("applied", np.zeros(problem.shape)).copy()
    budgets = state.get("budgets", np.zeros(problem.shape[0])).copy()
    passes = int(state["passes"][0]) if "passes" in state else 0
    budget = float(state["budget"][0]) if "budget" in state else 0.0
    while True:
        order_now = np.random.default_rng([seed, passes]).permutation(order)
        rates = first_step * DECAY ** (passes + np.arange(len(order)) / len(order))
        lazy = Lazy(problem.rho1, problem.rho2, weights, applied, budgets)
        budget = sgd_pass(ids, legal, mass, order_now, rates, masks, lazy, budget, len(order))
        passes += 1
        next_state = {"average": average, "point": weights, "applied": applied, "budgets": budgets}
        yield after_pass(problem, next_state | {"passes": np.array([passes]), "budget": np.array([budget])})


def after_pass(problem: Problem, state: State) -> Iterate:
    """Return the iterate after a pass: the average of the passes so far, or the last point if that is better."""
    average, weights = state["average"], state["point"]
    average += 2 / (int(state["passes"][0]) + 1) * (weights - average)
    average[weights == 0] = 0
    best = min((average, weights), key=problem.objective)
    return Iterate(best, problem.objective(best), {"weights": best} | state)


def repeated_rows(
    ids: NDArray[np.int32], legal: NDArray[np.uint8], mass: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32], NDArray[np.int32], int]:
    """Return merged rows with the mass of one each, each row's number as often as it occurs, and the features fired."""
    copies = np.maximum(1, np.ceil(mass.sum(1))).astype(np.int64)
    mass /= copies[:, None].astype(np.float32)
    order = np.repeat(np.arange(len(ids), dtype=np.int32), copies)
    return ids, legal, mass, order, int((ids >= 0).sum(axis=1) @ copies)


def first_rate(fired: int, rows: int) -> float:
    """Return the first step if `rows` rows fire so many features."""
    return RATE / max(1.0, fired / rows / USUAL_FEATURES)


class Lazy(NamedTuple):
    """Weights whose penalties are taken only when a row fires them: what was taken and what is still owed.

    The budget is the sum of all steps so far divided by the number of rows. The L1 penalty that a weight could have had
    is rho1 times the budget (Tsuruoka et al. 2009), `applied` is what it had; the L2 penalty shrinks a weight by
    exp(-rho2 x budget since `budgets`, when the weight was last looked at).
    """

    rho1: NDArray[np.float64]
    rho2: NDArray[np.float64]
    weights: Weights
    applied: Weights
    budgets: NDArray[np.float64]


@kernel
def _settle(lazy: Lazy, feature: int, budget: float) -> None:
    """Take the penalties that a feature's weights owe."""
    owed = budget * lazy.rho1[feature]
    shrink = np.exp(-lazy.rho2[feature] * (budget - lazy.budgets[feature]))
    lazy.budgets[feature] = budget
    for j in range(lazy.weights.shape[1]):
        w = lazy.weights[feature, j] * shrink
        settled = w
        if w > 0.0:
            settled = max(0.0, w - (owed + lazy.applied[feature, j]))
        elif w < 0.0:
            settled = min(0.0, w + (owed - lazy.applied[feature, j]))
        lazy.weights[feature, j] = settled
        lazy.applied[feature, j] += settled - w


@kernel
def sgd_pass(
    ids: NDArray[np.int32],
    legal: NDArray[np.uint8],
    mass: NDArray[np.float32],
    order: NDArray[np.int32],
    rates: NDArray[np.float64],
    masks: NDArray[np.float64],
    lazy: Lazy,
    budget: float,
    rows: int,
) -> float:
    """Pass once over some of all `rows`; at the end no weight owes a penalty. Returns the new budget."""
    weights = lazy.weights
    labels = weights.shape[1]
    chance = np.zeros(labels)
    for i in range(len(order)):
        row = order[i]
        total = 0.0
        for j in range(labels):
            chance[j] = masks[legal[row], j]
            total += mass[row, j]
        for t in range(ids.shape[1]):
            feature = ids[row, t]
            if feature >= 0:
                _settle(lazy, feature, budget)
                for j in range(labels):
                    chance[j] += weights[feature, j]
        top = chance.max()
        z = 0.0
        for j in range(labels):
            chance[j] = np.exp(chance[j] - top)
            z += chance[j]
        budget += rates[i] / rows
        for j in range(labels):
            chance[j] = rates[i] * (total * chance[j] / z - mass[row, j])
        for t in range(ids.shape[1]):
            feature = ids[row, t]
            if feature >= 0:
                for j in range(labels):
                    weights[feature, j] -= chance[j]
                _settle(lazy, feature, budget)
    for feature in range(weights.shape[0]):
        _settle(lazy, feature, budget)
    return budget
