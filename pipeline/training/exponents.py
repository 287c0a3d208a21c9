"""The exponents that join models' probabilities, fitted by log-loss on rows that none of the models has learned from.

In: probabilities of several models at some rows, and the actions taken there. Out: the exponent of each model in their
product (a log-linear pool, see `models.blend`), and the slope of that exponent over the frequency of a line of betting
where that is asked for. Blends of algorithms and of forests share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.blend import floor_logs
from pipeline.models.softmax import softmax
from pipeline.training.tasks import Examples

LEAST_EXPONENT = 0.02
"""the exponent under which a part is left out"""
MAX_STEPS = 30
"""Newton's steps at most"""
LEAST_STEP = 1e-6
"""a step that changes nothing"""
MAX_EXPONENT = 4.0
"""exponents are at most this, and never negative: a part may be left out, not believed to be wrong"""
RIDGE = 1.0
"""L2 penalty that pulls the exponents towards equal shares"""
SLOPE_RIDGE = 10.0
"""the same of slopes, which are pulled towards 0"""


def used_exponents(chances: Sequence[NDArray[np.float64]], judges: Examples) -> NDArray[np.float64]:
    """Fit exponents, set those below `LEAST_EXPONENT` to 0 and fit the others again without them.

    If no part improves log-loss on the judges, all parts are weighed equally.
    """
    exponents = fit_exponents(chances, judges)
    used = exponents >= LEAST_EXPONENT
    if used.all():
        return exponents
    if not used.any():
        return np.full(len(chances), 1.0 / len(chances))
    out = np.zeros(len(chances))
    out[used] = fit_exponents([part for part, is_used in zip(chances, used, strict=True) if is_used], judges)
    return out


def fit_exponents(chances: Sequence[NDArray[np.float64]], examples: Examples) -> NDArray[np.float64]:
    """Fit the exponents with the lowest log-loss on some rows.

    Parameters: `chances` the parts' probabilities, each (rows, labels); `examples` what was done in these rows.
    """
    start = np.full(len(chances), 1.0 / len(chances))
    return np.clip(_fit(np.stack([floor_logs(one) for one in chances]), examples, start, RIDGE), 0.0, MAX_EXPONENT)


def fit_slopes(
    chances: Sequence[NDArray[np.float64]], frequency: NDArray[np.float64], examples: Examples
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit exponents at a frequency of 0, and what a unit of frequency adds to them.

    Parameters: `frequency` of each row's line of betting (see `models.blend`); the others as above.
    """
    count = len(chances)
    parts = np.stack([floor_logs(one) for one in chances])
    both = np.concatenate([parts, frequency[None, :, None] * parts])
    start = np.concatenate([np.full(count, 1.0 / count), np.zeros(count)])
    ridge = np.repeat([RIDGE, SLOPE_RIDGE], count)
    fitted = np.clip(_fit(both, examples, start, ridge), -MAX_EXPONENT, MAX_EXPONENT)
    return fitted[:count], fitted[count:]


def _fit(parts: NDArray[np.float64], examples: Examples, start: NDArray[np.float64], ridge: Any) -> NDArray[np.float64]:
    """Fit the exponents of some scores, (scores, rows, labels), by Newton's method: the loss is convex in them."""
    rows: Any = examples.rows
    legal, taken = rows["legal"], examples.targets.astype(np.int64)
    row_index = np.arange(len(taken))

    def mixed(exponents: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the blend's probabilities and its objective."""
        mix = np.tensordot(exponents, parts, axes=1)
        softmax(mix, legal)
        loss = -float(floor_logs(mix)[row_index, taken].sum())
        return mix, loss + float((ridge * (exponents - start) ** 2).sum()) / 2

    exponents = start
    mix, lowest = mixed(exponents)
    for _ in range(MAX_STEPS):
        expected = (parts * mix).sum(axis=2)
        slope = (expected - parts[:, row_index, taken]).sum(axis=1) + ridge * (exponents - start)
        spread = parts - expected[:, :, None]
        # the Hessian of a log-linear model is the covariance of its scores under the mix, plus the ridge
        curve = np.einsum("arl,brl,rl->ab", spread, spread, mix) + ridge * np.eye(len(start))
        step = np.linalg.solve(curve, slope)
        tried, loss = mixed(exponents - step)
        while loss > lowest and np.abs(step).max() > LEAST_STEP:  # the step went too far: take half of it
            step /= 2
            tried, loss = mixed(exponents - step)
        if loss >= lowest or np.abs(step).max() < LEAST_STEP:
            break
        exponents, mix, lowest = exponents - step, tried, loss
    return exponents
