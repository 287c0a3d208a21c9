"""How close predicted probabilities are to an agent's decisions: plain functions of arrays.

Throughout, `p` is what a model would play, shape (rows, labels), each row summing to 1; `y` the label the agent
took; `q`, where known, the agent's own probabilities. A measure of a row is a number whose mean is reported:

    error      1 if argmax p != y                     floor  1 - max q
    mismatch   1 - p[y], mean 1 - sum p q:            floor  1 - sum q^2  (the agent against its own twin)
               how often a sampled action differs
    log_loss   -ln p[y], in nats                      floor  H(q) = -sum q ln q
    brier      sum (p - [y])^2                        floor  1 - sum q^2
    kl         KL(q || p) = sum q ln(q / p)           the part of log_loss above its floor
    tv         sum |p - q| / 2                        total variation

Played probabilities are never exactly 0 on a legal action (`played`), so log-loss and KL are finite.

Intervals are by cluster bootstrap: all decisions of a deal, twins included, are drawn together. Deals are first
dealt out at random to at most 1,024 groups and whole groups are drawn with replacement: a mean is then a ratio of
sums over groups, a thousand replicates of it one small matrix product, and a million rows take milliseconds.
Every measure of one `Bootstrap` sees the same draws, so differences between models are paired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "FLOOR",
    "Bins",
    "Bootstrap",
    "Interval",
    "calibration_bins",
    "centred",
    "confusion",
    "floors",
    "frequencies",
    "percentile",
    "played",
    "row_measures",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FLOOR = 1e-6
"""The least probability a legal action is given before a logarithm is taken."""


class Interval(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


def played(p: npt.NDArray[np.floating], legal: Bools, floor: float = FLOOR) -> Floats:
    """Probabilities as played: 0 where illegal, at least `floor` where legal, rows summing to 1.

    >>> played(np.array([[0.0, 0.5, 0.5]]), np.array([[True, True, False]]), floor=0.01).round(4).tolist()
    [[0.0099, 0.9901, 0.0]]
    """
    kept = np.where(legal, p, 0.0)
    total = kept.sum(axis=1, keepdims=True)
    even = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    kept = np.where(total > 0, kept / np.where(total > 0, total, 1.0), even)
    kept = np.where(legal, np.maximum(kept, floor), 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True), dtype=np.float64)


def _log(values: Floats) -> Floats:
    """ln, with 0 for 0: 0 ln 0 = 0 in every sum here."""
    return np.log(np.where(values > 0, values, 1.0))


def row_measures(p: Floats, y: npt.NDArray[np.integer], q: npt.NDArray[np.floating] | None = None) -> dict[str, Floats]:
    """Every measure of every row by name; `kl`, `tv` and `excess` (max q - q[argmax p]) where `q` is known.

    >>> found = row_measures(np.array([[0.2, 0.5, 0.3]]), np.array([2]))
    >>> {name: round(float(values[0]), 4) for name, values in found.items()}
    {'error': 1.0, 'mismatch': 0.7, 'log_loss': 1.204, 'brier': 0.78}
    """
    rows = np.arange(len(y))
    taken = p[rows, y]
    best = p.argmax(axis=1)
    found = {
        "error": (best != y).astype(np.float64),
        "mismatch": 1.0 - taken,
        "log_loss": -np.log(np.maximum(taken, np.finfo(np.float64).tiny)),
        "brier": (p * p).sum(axis=1) - 2.0 * taken + 1.0,
    }
    if q is not None:
        true = _normal(q)
        found["kl"] = np.maximum((true * (_log(true) - _log(p))).sum(axis=1), 0.0)
        found["tv"] = 0.5 * np.abs(true - p).sum(axis=1)
        found["excess"] = true.max(axis=1) - true[rows, best]
    return found


def _normal(q: npt.NDArray[np.floating]) -> Floats:
    """Rows divided by their sums: files carry rounded probabilities."""
    true = q.astype(np.float64)
    return np.asarray(true / true.sum(axis=1, keepdims=True))


def floors(q: npt.NDArray[np.floating]) -> dict[str, Floats]:
    """What the agent's own probabilities would score on each row, in expectation over its dice.

    >>> {name: round(float(values[0]), 4) for name, values in floors(np.array([[0.0, 0.25, 0.75]])).items()}
    {'error': 0.25, 'mismatch': 0.375, 'log_loss': 0.5623, 'brier': 0.375}
    """
    true = _normal(q)
    spread = 1.0 - (true * true).sum(axis=1)
    return {
        "error": 1.0 - true.max(axis=1),
        "mismatch": spread,
        "log_loss": -(true * _log(true)).sum(axis=1),
        "brier": spread,
    }


def confusion(p: Floats, y: npt.NDArray[np.integer]) -> Ints:
    """Counts by label taken (rows) and label most probable (columns)."""
    labels = p.shape[1]
    codes = y.astype(np.int64) * labels + p.argmax(axis=1)
    return np.bincount(codes, minlength=labels * labels).reshape(labels, labels).astype(np.int64)


class Bootstrap:
    """Draws of whole deals, shared by all measures of the same rows."""

    def __init__(
        self, deals: npt.NDArray[np.integer], *, replicates: int = 1000, groups: int = 1024, seed: int = 0
    ) -> None:
        _, cluster = np.unique(deals, return_inverse=True)
        count = int(cluster.max()) + 1 if len(cluster) else 1
        random = np.random.default_rng(seed)
        self.groups = min(groups, count)
        self.group = (random.permutation(count) % self.groups)[cluster]
        even = np.full(self.groups, 1.0 / self.groups)
        self.weights = random.multinomial(self.groups, even, size=replicates).astype(np.float64)

    def sums(self, values: npt.NDArray[np.floating], where: Bools | None = None) -> Floats:
        """The sums of the columns of `values` (all rows, or the rows `where`) in each group."""
        group = self.group if where is None else self.group[where]
        return np.stack([_total(group, values[:, i], self.groups) for i in range(values.shape[1])], axis=1)

    def mean(
        self,
        values: npt.NDArray[np.floating],
        where: Bools | None = None,
        weights: npt.NDArray[np.floating] | None = None,
    ) -> tuple[Floats, Floats]:
        """The (weighted) means of the columns of `values`, and their replicates (replicates, columns).

        `values` and `weights` hold only the rows `where`.
        """
        one = np.ones(len(values)) if weights is None else weights
        sums = self.sums(np.column_stack([values * one[:, None], one]), where)
        total, drawn = sums.sum(axis=0), self.weights @ sums
        value = total[:-1] / total[-1] if total[-1] > 0 else np.full(len(total) - 1, np.nan)
        return value, _ratio(drawn[:, :-1], drawn[:, -1:])

    def intervals(
        self,
        values: Mapping[str, npt.NDArray[np.floating]],
        where: Bools | None = None,
        weights: npt.NDArray[np.floating] | None = None,
    ) -> dict[str, Interval]:
        """The (weighted) mean of each named column with its 95% interval."""
        means, drawn = self.mean(np.column_stack(list(values.values())), where, weights)
        return {name: percentile(float(means[i]), drawn[:, i]) for i, name in enumerate(values)}

    def interval(
        self,
        values: npt.NDArray[np.floating],
        where: Bools | None = None,
        weights: npt.NDArray[np.floating] | None = None,
    ) -> Interval:
        """The (weighted) mean with its 95% interval."""
        return self.intervals({"": values}, where, weights)[""]

    def frequency_gap(self, p: Floats, y: npt.NDArray[np.integer], where: Bools | None = None) -> Interval:
        """Total variation between how often each label is played and how often the agent took it."""
        gaps, drawn = self.mean(p - (y[:, None] == np.arange(p.shape[1])), where)
        return centred(0.5 * float(np.abs(gaps).sum()), 0.5 * np.abs(drawn).sum(axis=1))

    def calibration(self, bins: list[Bins], where: Bools | None = None) -> Interval:
        """Class-wise calibration error: mean over labels of the rows' mean |played - taken| by bin."""
        value, drawn = 0.0, np.zeros(len(self.weights))
        for one in bins:
            group = self.group if where is None else self.group[where]
            cells = group[one.rows] * one.count + one.bin
            shape = (self.groups, one.count)
            gaps = np.bincount(cells, weights=one.gap, minlength=shape[0] * shape[1]).reshape(shape)
            rows = np.bincount(group[one.rows], minlength=self.groups)
            value += one.error / len(bins)
            drawn += _ratio(np.abs(self.weights @ gaps).sum(axis=1), self.weights @ rows) / len(bins)
        return centred(value, drawn)


def _total(index: Ints, values: npt.NDArray[np.floating], count: int) -> Floats:
    """The sum of the values at each index."""
    return np.asarray(np.bincount(index, weights=values, minlength=count), dtype=np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Quotient by replicate; NaN where a replicate drew none of the rows."""
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def percentile(value: float, replicates: Floats) -> Interval:
    """The 2.5 and 97.5 percentiles of the replicates."""
    known = replicates[~np.isnan(replicates)]
    if len(known) == 0:
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def centred(value: float, replicates: Floats) -> Interval:
    """The spread of the replicates laid around the value.

    For sums of absolute values: replicates carry the sampling noise twice, so their own percentiles sit too high.
    The interval is for the measure at this number of rows; compare it with its value under perfect calibration.
    """
    low, high = percentile(value, replicates)[1:]
    shift = float(np.nanmean(replicates)) - value if len(replicates) else 0.0
    return Interval(value, max(low - shift, 0.0), high - shift)


@dataclass(frozen=True)
class Bins:
    """One label's rows in bins of equal mass by played probability."""

    label: int
    rows: Ints
    bin: Ints
    gap: Floats
    count: int
    size: Ints
    predicted: Floats
    taken: Floats
    error: float
    perfect: float
    """The error to expect from sampling alone if the played probabilities were the true ones."""


def calibration_bins(p: Floats, y: npt.NDArray[np.integer], legal: Bools, bins: int = 15) -> list[Bins]:
    """For each label that is somewhere a choice: its bins over the rows where it is one, equal values together.

    Class-wise calibration (Kull et al. 2019) with equal-mass bins (Nixon et al. 2019). Under perfect calibration a
    bin's gap is a sum of independent centred draws of variance v = sum p (1 - p); its mean absolute value is taken
    from the Poisson law of rate v, which is right both for few and for many expected events.
    """
    choice = legal.sum(axis=1) > 1
    found = []
    for label in range(p.shape[1]):
        rows = np.flatnonzero(legal[:, label] & choice)
        if len(rows) == 0:
            continue
        played_here = p[rows, label]
        inner = np.quantile(played_here, np.arange(1, bins) / bins, method="lower")
        which = np.searchsorted(np.unique(inner), played_here, side="left")
        _, which = np.unique(which, return_inverse=True)
        gap = played_here - (y[rows] == label)
        size = np.bincount(which)
        total = np.bincount(which, weights=gap)
        noise = _total(which, played_here * (1.0 - played_here), len(size))
        predicted = np.bincount(which, weights=played_here) / size
        found.append(
            Bins(
                label=label,
                rows=rows,
                bin=which,
                gap=gap,
                count=len(size),
                size=size,
                predicted=predicted,
                taken=predicted - total / size,
                error=float(np.abs(total).sum() / len(rows)),
                perfect=float(_poisson_deviation(noise).sum() / len(rows)),
            )
        )
    return found


def _poisson_deviation(rate: Floats) -> Floats:
    """E|X - rate| of a Poisson X: 2 e^-rate rate^(floor(rate)+1) / floor(rate)!."""
    whole = np.floor(rate)
    factorial = np.array([math.lgamma(k + 1.0) for k in whole])
    return np.asarray(2.0 * np.exp(-rate + (whole + 1.0) * np.log(np.maximum(rate, 1e-300)) - factorial))


def frequencies(p: Floats, y: npt.NDArray[np.integer]) -> tuple[Floats, Floats]:
    """How often each label is played on average, and how often the agent took it."""
    return p.mean(axis=0), np.bincount(y, minlength=p.shape[1]) / max(len(y), 1)
