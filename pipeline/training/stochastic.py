"""One pass of stochastic gradient descent with an L1 penalty (sgd-l1), a row at a time.

The penalty is the cumulative one of Tsuruoka and others (2009), here with rho2 as well: what a weight owes is taken
when a row next fires its feature. In: merged rows (`RepeatedRows`) and the weights before the pass. Out: those after
it. `optimizers.sgd_l1` puts passes together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.models.softmax import legal_masks
from pipeline.runtime.kernels import kernel
from pipeline.training.corpus import Weights

RATE, DECAY, USUAL_FEATURES = 0.8, 0.85, 8.0
"""first step if rows fire at most `USUAL_FEATURES`, what a pass multiplies it by, and that number of features"""


class RepeatedRows(NamedTuple):
    """Merged rows with the mass of one each, and how often each occurs."""

    ids: NDArray[np.int32]
    legal: NDArray[np.uint8]
    mass: NDArray[np.float32]
    order: NDArray[np.int32]
    """each row's number, as often as the row occurs"""
    fired: int
    """features fired, summed over `order`"""

    @classmethod
    def of(cls, ids: NDArray[np.int32], legal: NDArray[np.uint8], mass: NDArray[np.float32]) -> RepeatedRows:
        """Divide the masses of merged rows, in place, by how often they occur."""
        # a merged row takes its steps one by one, spread over the pass: a single large step would overshoot
        copies = np.maximum(1, np.ceil(mass.sum(1))).astype(np.int64)
        mass /= copies[:, None].astype(np.float32)
        order = np.repeat(np.arange(len(ids), dtype=np.int32), copies)
        return cls(ids, legal, mass, order, int((ids >= 0).sum(axis=1) @ copies))

    def descend(self, lazy: Lazy, arguments: Pass, part: int = 0) -> PassResult:
        """Pass over the rows in a random order, from the weights in `lazy`, which change."""
        # a generator per pass and part: a run that is resumed draws the orders of an undisturbed one
        seeds = [arguments.seed, arguments.passes, *([] if arguments.is_single else [part])]
        order = np.random.default_rng(seeds).permutation(self.order)
        rates = arguments.first_rate * DECAY ** (arguments.passes + np.arange(len(order)) / len(order))
        masks = legal_masks(lazy.weights.shape[1])
        rows = self.ids, self.legal, self.mass, order
        budget = sgd_pass(*rows, rates, masks, lazy, arguments.budget, arguments.rows)
        return PassResult(lazy.weights, lazy.applied, budget)


class PassResult(NamedTuple):
    """Weights after a pass, the L1 penalties taken from them, and the penalty that every weight has owed by now."""

    weights: Weights
    applied: Weights
    budget: float


class Pass(NamedTuple):
    """Arguments of one pass of stochastic descent, the same for every part."""

    lazy: Lazy
    budget: float
    first_rate: float
    passes: int
    """passes before this one"""
    rows: int
    """of all parts"""
    seed: int
    is_single: bool
    """whether there is one part only"""


def first_rate(fired: int, rows: int) -> float:
    """Return the first step for `rows` rows that fire `fired` features in all."""
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
    # penalties wait until a feature is fired: taking all at every row would cost features x rows
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
