"""The exponents that join models' probabilities, fitted by log-loss on rows that none of the models has learned from.

In go what several models say of some rows and what was done in them; out comes the power of each model in their
product (see `models.blend`), and what a line's frequency adds to it where that is asked for. It is a room of its own
because blends of algorithms and of forests share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.blend import logs
from pipeline.models.softmax import softmax
from pipeline.training.tasks import Examples

USED = 0.02
"""the exponent under which a part is left out"""
STEPS = 30
"""Newton's steps at most"""
ENOUGH = 1e-6
"""a step that changes nothing"""
MOST = 4.0
"""exponents are at most this, and never negative: a part may be left out, not believed to be wrong"""
RIDGE = 1.0
"""how strongly exponents are held at one share each: as much as so many rows say"""
SLOPE_RIDGE = 10.0
"""the same of slopes, which are held at 0"""


def used_exponents(chances: Sequence[NDArray[np.float64]], judges: Examples) -> NDArray[np.float64]:
    """The fitted exponents, those of parts that hardly count set to 0 and the others fitted again without them.

    Where none counts, because the few judges contradict all parts, each gets one share.
    """
    found = fit_exponents(chances, judges)
    used = found >= USED
    if used.all():
        return found
    if not used.any():
        return np.full(len(chances), 1.0 / len(chances))
    out = np.zeros(len(chances))
    out[used] = fit_exponents([one for one, kept in zip(chances, used, strict=True) if kept], judges)
    return out


def fit_exponents(chances: Sequence[NDArray[np.float64]], examples: Examples) -> NDArray[np.float64]:
    """The exponents with the lowest log-loss on some rows.

    Parameters: `chances` the parts' probabilities, each (rows, labels); `examples` what was done in these rows.
    """
    start = np.full(len(chances), 1.0 / len(chances))
    return np.clip(_fit(np.stack([logs(one) for one in chances]), examples, start, RIDGE), 0.0, MOST)


def fit_slopes(
    chances: Sequence[NDArray[np.float64]], frequency: NDArray[np.float64], examples: Examples
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exponents at a frequency of 0, and what a unit of frequency adds to them.

    Parameters: `frequency` of each row's line of betting (see `models.blend`); the others as above.
    """
    count = len(chances)
    parts = np.stack([logs(one) for one in chances])
    both = np.concatenate([parts, frequency[None, :, None] * parts])
    start = np.concatenate([np.full(count, 1.0 / count), np.zeros(count)])
    held = np.repeat([RIDGE, SLOPE_RIDGE], count)
    found = np.clip(_fit(both, examples, start, held), -MOST, MOST)
    return found[:count], found[count:]


def _fit(parts: NDArray[np.float64], examples: Examples, start: NDArray[np.float64], held: Any) -> NDArray[np.float64]:
    """The powers of some scores, (scores, rows, labels), by Newton's method: the loss is convex in them."""
    rows: Any = examples.rows
    legal, taken = rows["legal"], examples.targets.astype(np.int64)
    at = np.arange(len(taken))

    def mixed(exponents: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """The blend's probabilities and its objective."""
        mix = np.tensordot(exponents, parts, axes=1)
        softmax(mix, legal)
        loss = -float(logs(mix)[at, taken].sum())
        return mix, loss + float((held * (exponents - start) ** 2).sum()) / 2

    exponents = start
    mix, lowest = mixed(exponents)
    for _ in range(STEPS):
        expected = (parts * mix).sum(axis=2)
        slope = (expected - parts[:, at, taken]).sum(axis=1) + held * (exponents - start)
        spread = parts - expected[:, :, None]
        curve = np.einsum("arl,brl,rl->ab", spread, spread, mix) + held * np.eye(len(start))
        step = np.linalg.solve(curve, slope)
        tried, loss = mixed(exponents - step)
        while loss > lowest and np.abs(step).max() > ENOUGH:  # too far: half the way
            step /= 2
            tried, loss = mixed(exponents - step)
        if loss >= lowest or np.abs(step).max() < ENOUGH:
            break
        exponents, mix, lowest = exponents - step, tried, loss
    return exponents
