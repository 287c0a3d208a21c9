"""How close predicted probabilities are to an agent's decisions: plain functions of arrays.

Throughout, `p` is what a model would play, shape (rows, labels), each row summing to 1; `y` the label the agent took;
`q`, where known, the agent's own probabilities. A measure of a row is a number whose mean is reported:

    error      1 if argmax p != y, ties shared        floor  1 - max q
    mismatch   1 - p[y], mean 1 - sum p q:            floor  1 - sum q^2  (the agent against its own twin)
               how often a sampled action differs
    log_loss   -ln p[y], in nats                      floor  H(q) = -sum q ln q
    brier      sum (p - [y])^2                        floor  1 - sum q^2
    kl         KL(q || p) = sum q ln(q / p)           the part of log_loss above its floor
    tv         sum |p - q| / 2                        total variation

Played probabilities are never exactly 0 on a legal action (`played`), so log-loss and KL are finite. Training and
evaluation use the same least probability, `LEAST_PROBABILITY`. Labels that are equally likely share an error: a model
that finds three labels alike is right in a third of the rows where one of them was taken, whatever their order.

Intervals are by cluster bootstrap: all decisions of a deal, twins included, are drawn together. Deals are first dealt
out at random to at most 1,024 groups and whole groups are drawn with replacement: a mean is then a ratio of sums over
groups, a thousand replicates of it one small matrix product, and a million rows take milliseconds. Every measure of one
`Bootstrap` sees the same draws, so differences between models are paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.runtime.array_types import Array, Bools, Floats, Ints
from pipeline.runtime.extras import import_extra
from pipeline.runtime.kernels import kernel

if TYPE_CHECKING:
    from pipeline.runtime.pictures import Picture

Where = Bools | Ints | slice
"""Which of the rows: flags, numbers or a slice."""

ALL_ROWS = slice(None)
ROW_MEASURES = ("error", "mismatch", "log_loss", "brier", "kl", "tv", "excess")

LEAST_PROBABILITY = 1e-6
"""The probability that a legal action is given at least before a logarithm is taken, in training as in evaluation."""
TIE = 1e-9
"""Labels whose probabilities differ by no more than this are equally likely."""


STANDARD_ERRORS_95 = 1.96
"""half a 95 % interval of a normal distribution, in standard errors"""
BATCHES = 20
"""batches of a match in which an agent learns: enough for a stable interval, long enough to hold what it learns in"""
STUDENT_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
)
"""the same of Student's t, by degrees of freedom from 1 to `BATCHES` - 1"""


class Interval(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


class Estimate(NamedTuple):
    """A value with its 95 % interval as JSON, frames and tables have it, None where there is none.

    >>> Estimate.of(Interval(2.0, 1.0, 5.0))
    Estimate(value=2.0, ci95=2.0, interval=(1.0, 5.0))
    """

    value: float
    ci95: float | None = None
    """half the width of the interval"""
    interval: tuple[float, float] | None = None
    """its ends"""

    @classmethod
    def of(cls, interval: Interval) -> Estimate:
        """Return what is written of an interval; without ends (NaN), where there were too few deals for one."""
        half = (interval.high - interval.low) / 2
        return cls(interval.value, half, interval[1:]) if math.isfinite(half) else cls(interval.value)

    @classmethod
    def around(cls, value: float, half: float) -> Estimate:
        """Return what is written of a value with a symmetric interval; an infinite half width is none."""
        return cls(value, half, (value - half, value + half)) if math.isfinite(half) else cls(value)

    def ends_json(self, prefix: str = "") -> dict[str, float | list[float] | None]:
        """Return `ci95` and `interval` behind a prefix, null where there is none."""
        ends = None if self.interval is None else list(self.interval)
        return {f"{prefix}ci95": self.ci95, f"{prefix}interval": ends}


class Winnings(NamedTuple):
    """Winnings of an agent in mbb per hand by each way of counting, None where it was not counted so.

    The only owner of the keys that winnings have in JSON, frames and tables.

    >>> Winnings(Estimate.around(5.0, 2.0)).json()["interval"]
    [3.0, 7.0]
    """

    plain: Estimate | None = None
    """as played"""
    adjusted: Estimate | None = None
    """with the luck taken out"""
    capped: Estimate | None = None
    """of a ranking where a loss counts at most the cap: of adjusted winnings where there are any, else of plain ones"""

    def json(self) -> dict[str, Any]:
        """Return value, half width and interval by each way of counting; every key is there, null where it is none."""
        keys: dict[str, Any] = {}
        for prefix, won in zip(("", "adjusted_", "capped_"), self, strict=True):
            absent = dict.fromkeys((f"{prefix}ci95", f"{prefix}interval"))
            keys[f"{prefix}mbb_per_hand"] = None if won is None else won.value
            keys |= absent if won is None else won.ends_json(prefix)
        return {**keys, "adjustment": self.adjustment}

    @property
    def adjustment(self) -> str:
        """Return `control variates` where adjusted winnings have a shorter interval than plain ones, else `none`.

        >>> Winnings(Estimate.around(5.0, 2.0), Estimate.around(4.0, 2.1)).adjustment
        'none'
        """
        plain, adjusted = (None if won is None else won.ci95 for won in self[:2])
        is_shorter = adjusted is not None and (self.plain is None or (plain is not None and adjusted < plain))
        return "control variates" if is_shorter else "none"

    def row(self) -> dict[str, float | None]:
        """Return the same in flat cells: of an interval its ends, such as `mbb_per_hand_low`."""
        cells = self.json()
        for prefix in ("", "adjusted_", "capped_"):
            low, high = cells.pop(f"{prefix}interval") or (None, None)
            cells |= {f"{prefix}mbb_per_hand_low": low, f"{prefix}mbb_per_hand_high": high}
        return cells

    @property
    def value(self) -> float:
        """Return the mean as played; NaN where it was not counted so."""
        return math.nan if self.plain is None else self.plain.value

    def text(self, unit: str = "", width: int = 0) -> str:
        """Return a line for people: the winnings as played, in `width` characters, and adjusted ones that are better.

        >>> Winnings(Estimate.around(5.0, 2.0), Estimate.around(4.0, 1.0)).text("mbb/h")
        '+5.0 ± 2.0 mbb/h   adjusted +4.0 ± 1.0'
        """
        adjusted = self.adjusted if self.plain is None or self.adjustment != "none" else None
        parts = [
            f"{won.value:+{size}.1f}{f' ± {won.ci95:.1f}' if won.ci95 is not None else ''}"
            for won, size in ((self.plain, width), (adjusted, 0))
            if won is not None
        ]
        note = "   adjusting does not help" if self.adjusted is not None and adjusted is None else ""
        return "   adjusted ".join([f"{parts[0]} {unit}".rstrip(), *parts[1:]]) + note


def plot_winnings(names: Sequence[str], won: Sequence[Winnings]) -> Picture:
    """Draw winnings with their 95 % intervals: as played, and with the luck taken out where that is known."""
    import_extra("matplotlib")
    from pipeline.runtime.pictures import Point, draw_points, new_picture

    picture, axes = new_picture(width=max(4.2, 0.9 * len(names)))
    ways = {"as played": [one.plain for one in won], "luck taken out": [one.adjusted for one in won]}
    series = {
        way: [None if one is None else Point(one.value, *(one.interval or (one.value, one.value))) for one in estimates]
        for way, estimates in ways.items()
        if any(estimates)
    }
    draw_points(axes[0, 0], names, series, "thousandths of a big blind per hand")
    axes[0, 0].axhline(0, color="#999999", linewidth=0.8)
    axes[0, 0].legend(fontsize=7, frameon=False)
    return picture


@kernel
def _play(p: Array, legal: Array, floor: float, out: Array) -> None:
    """Fill in the probabilities as played (see `played`)."""
    labels = p.shape[1]
    for i in range(len(p)):
        total = 0.0
        allowed = 0
        for j in range(labels):
            if legal[i] >> j & 1:
                total += p[i, j]
                allowed += 1
        is_predicted = total > 0.0
        again = 0.0
        for j in range(labels):
            out[i, j] = 0.0
            if legal[i] >> j & 1:
                out[i, j] = max(p[i, j] / total if is_predicted else 1.0 / allowed, floor)
                again += out[i, j]
        for j in range(labels):
            out[i, j] /= again


def played(p: npt.NDArray[np.floating], legal: npt.NDArray[np.integer], floor: float = LEAST_PROBABILITY) -> Floats:
    """Return probabilities as played: 0 where illegal, at least `floor` where legal, rows summing to 1.

    `legal` has a bit per label, as OBSERVATION has.

    >>> played(np.array([[0.0, 0.5, 0.5]]), np.array([0b011]), floor=0.01).round(4).tolist()
    [[0.0099, 0.9901, 0.0]]
    """
    out = np.empty(p.shape)
    _play(np.ascontiguousarray(p, np.float64), np.ascontiguousarray(legal, np.uint8), floor, out)
    return out


@kernel
def _measure(p: Array, y: Array, q: Array, out: Array) -> None:
    """Fill in the measures of each row, in the order of `ROW_MEASURES`."""
    labels = p.shape[1]
    for i in range(len(p)):
        largest = 0.0
        square = 0.0
        for j in range(labels):
            square += p[i, j] * p[i, j]
            largest = max(largest, p[i, j])
        # labels as likely as the first share the error, whatever their order
        alike = 0
        for j in range(labels):
            alike += p[i, j] >= largest - TIE
        taken = p[i, y[i]]
        out[0, i] = 1.0 - 1.0 / alike if taken >= largest - TIE else 1.0
        out[1, i] = 1.0 - taken
        out[2, i] = -np.log(max(taken, LEAST_PROBABILITY))
        out[3, i] = square - 2.0 * taken + 1.0
        if len(q) > 0:
            total = q[i].sum()
            kl, tv, most, chosen = 0.0, 0.0, 0.0, 0.0
            for j in range(labels):
                true = q[i, j] / total
                if true > 0.0:
                    kl += true * np.log(true / max(p[i, j], LEAST_PROBABILITY))
                tv += abs(true - p[i, j])
                most = max(most, true)
                if p[i, j] >= largest - TIE:
                    chosen += true / alike
            out[4, i] = max(kl, 0.0)
            out[5, i] = 0.5 * tv
            out[6, i] = most - chosen


def row_measures(p: Floats, y: npt.NDArray[np.integer], q: npt.NDArray[np.floating] | None = None) -> dict[str, Floats]:
    """Return every measure of every row by name; `kl`, `tv` and `excess` (max q - q[argmax p]) where `q` is known.

    Parameters: `p` (rows, labels) as played, `y` (rows) the labels taken, `q` (rows, labels) the true probabilities.
    Returns arrays (rows) by the names of `ROW_MEASURES`.

    >>> measures = row_measures(np.array([[0.2, 0.5, 0.3]]), np.array([2]))
    >>> {name: round(float(values[0]), 4) for name, values in measures.items()}
    {'error': 1.0, 'mismatch': 0.7, 'log_loss': 1.204, 'brier': 0.78}
    """
    names = ROW_MEASURES if q is not None else ROW_MEASURES[:4]
    out = np.empty((len(names), len(p)))
    true = np.empty((0, p.shape[1])) if q is None else np.ascontiguousarray(q, np.float64)
    _measure(np.ascontiguousarray(p), np.ascontiguousarray(y, np.uint8), true, out)
    return dict(zip(names, out, strict=True))


def floors(q: npt.NDArray[np.floating]) -> dict[str, Floats]:
    """Return the expected score of the agent's own probabilities on each row.

    >>> {name: round(float(values[0]), 4) for name, values in floors(np.array([[0.0, 0.25, 0.75]])).items()}
    {'error': 0.25, 'mismatch': 0.375, 'log_loss': 0.5623, 'brier': 0.375}
    """
    true = np.asarray(q, np.float64)
    true = true / true.sum(axis=1, keepdims=True)
    spread = 1.0 - (true * true).sum(axis=1)
    return {
        "error": 1.0 - true.max(axis=1),
        "mismatch": spread,
        "log_loss": -(true * np.log(np.where(true > 0, true, 1.0))).sum(axis=1),
        "brier": spread,
    }


def confusion(p: Floats, y: npt.NDArray[np.integer]) -> Ints:
    """Count rows by label taken (rows) and label most probable (columns)."""
    labels = p.shape[1]
    codes = y.astype(np.int64) * labels + p.argmax(axis=1)
    return np.bincount(codes, minlength=labels * labels).reshape(labels, labels).astype(np.int64)


def frequencies(p: Floats, y: npt.NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Return the share of each label as played on average, and as the agent took it."""
    return p.mean(axis=0), np.bincount(y, minlength=p.shape[1]) / max(len(y), 1)


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

    def mean(
        self,
        values: Iterable[npt.NDArray[np.floating]],
        where: Where = ALL_ROWS,
        weights: npt.NDArray[np.floating] | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the (weighted) means of some columns of values, and their replicates (replicates, columns).

        The columns and `weights` hold only the rows `where`.
        """
        group = self.group[where]
        sums = [
            np.bincount(group, weights=column if weights is None else column * weights, minlength=self.groups)
            for column in values
        ]
        sums.append(np.bincount(group, weights=weights, minlength=self.groups))
        by_group = np.stack(sums, axis=1).astype(np.float64)
        total, drawn = by_group.sum(axis=0), self.weights @ by_group
        value = total[:-1] / total[-1] if total[-1] > 0 else np.full(len(total) - 1, np.nan)
        return value, _ratio(drawn[:, :-1], drawn[:, -1:])

    def intervals(
        self,
        values: Mapping[str, npt.NDArray[np.floating]],
        where: Where = ALL_ROWS,
        weights: npt.NDArray[np.floating] | None = None,
    ) -> dict[str, Interval]:
        """Return the (weighted) mean of each named column with its 95% interval."""
        means, drawn = self.mean(values.values(), where, weights)
        return {name: percentile(float(means[i]), drawn[:, i]) for i, name in enumerate(values)}

    def interval(
        self,
        values: npt.NDArray[np.floating],
        where: Where = ALL_ROWS,
        weights: npt.NDArray[np.floating] | None = None,
    ) -> Interval:
        """Return the (weighted) mean with its 95% interval."""
        return self.intervals({"": values}, where, weights)[""]

    def frequency_gap(self, p: Floats, y: npt.NDArray[np.integer], where: Where = ALL_ROWS) -> Interval:
        """Return the total variation between the shares of labels as played and as the agent took them."""
        gaps, drawn = self.mean((p[:, label] - (y == label) for label in range(p.shape[1])), where)
        return centred(0.5 * float(np.abs(gaps).sum()), 0.5 * np.abs(drawn).sum(axis=1))

    def calibration(self, bins: Sequence[Bins]) -> Interval:
        """Return the class-wise calibration error: mean over labels of the rows' mean |played - taken| by bin."""
        value = sum(label_bins.error for label_bins in bins) / max(len(bins), 1)
        drawn = np.zeros(len(self.weights))
        for label_bins in bins:
            replicate = self.weights @ np.column_stack([label_bins.gaps, label_bins.rows])
            drawn += _ratio(np.abs(replicate[:, :-1]).sum(axis=1), replicate[:, -1]) / len(bins)
        return centred(value, drawn)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return the quotient of each replicate of the bootstrap; NaN where a replicate drew none of the rows."""
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def mean_by_deal(values: Floats, deals: Array) -> tuple[float, float]:
    """Return the mean of what hands won and half its 95% interval, all hands of a deal together as one sample.

    >>> mean_by_deal(np.array([1.0, -1.0, 3.0, 1.0]), np.array([7, 7, 8, 8]))
    (1.0, 1.96)
    """
    mean = float(values.mean())
    _, number = np.unique(deals, return_inverse=True)
    sums = np.bincount(number.ravel(), values - mean)
    if len(sums) < 2:
        return mean, float("inf")
    return mean, float(STANDARD_ERRORS_95 * np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values))


def half_width(samples: Array, *, learning: bool = False) -> float:
    """Return half the 95 % interval of the mean of samples in the order they were taken; infinite for a single one.

    Samples are independent unless an agent was `learning` while they were taken. Then what it had learned makes
    neighbours alike, and the samples are the means of `BATCHES` batches of consecutive ones (the method of batch means,
    with Student's t for the few batches; a batch each where there are fewer samples than that, learning or not).

    >>> round(half_width(np.array([1.0, 3.0])), 3)
    12.706
    """
    if len(samples) < 2:
        return float("inf")
    if not learning and len(samples) > BATCHES:
        return float(STANDARD_ERRORS_95 * samples.std(ddof=1) / np.sqrt(len(samples)))
    batch = batch_numbers(len(samples))
    sums = np.bincount(batch, samples - samples.mean())
    return float(STUDENT_95[len(sums) - 2] * np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(samples))


def wilson(share: float, count: float) -> tuple[float, float]:
    """Return Wilson's 95% interval of a share of a count; unlike share ± error it stays between 0 and 1 for few rows.

    >>> [round(end, 3) for end in wilson(0.5, 4)]
    [0.15, 0.85]
    >>> [round(end, 3) for end in wilson(1.0, 2)]
    [0.342, 1.0]
    """
    z = STANDARD_ERRORS_95
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def few_batches(batches: int) -> float:
    """Return by how much replicates of so few batches are spread, so that their percentiles are those of Student's t.

    >>> round(few_batches(20), 3)
    1.096
    """
    if batches < 2:
        return float("nan")
    return float(STUDENT_95[batches - 2] / STANDARD_ERRORS_95 * np.sqrt(batches / (batches - 1)))


def batches_note(batches: int | None) -> str:
    """Return a line for people below intervals that are over batches; empty where they are over deals, or none."""
    sentence = f"± over {batches} batches of consecutive deals, because an agent learns from hand to hand"
    return sentence if (batches or 0) > 1 else ""


def batch_numbers(samples: int) -> Ints:
    """Return (samples,) the batch of consecutive ones that each sample belongs to, below `BATCHES`."""
    return np.arange(samples) * min(BATCHES, samples) // max(samples, 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several tests by Holm's method, so that any below 0.05 is wrong in 5 % of such lots at most.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def percentile(value: float, replicates: Floats) -> Interval:
    """Return a value with the 2.5 and 97.5 percentiles of its replicates."""
    finite = replicates[~np.isnan(replicates)]
    if len(finite) == 0:
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(finite, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def centred(value: float, replicates: Floats) -> Interval:
    """Return a value with the spread of its replicates laid around it.

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
    size: Ints
    predicted: Floats
    taken: Floats
    error: float
    perfect: float
    """the error to expect from sampling alone if the played probabilities were the true ones"""
    gaps: Floats
    """(groups, bins): sum of played minus taken"""
    rows: Ints
    """(groups)"""


@kernel
def _fill(
    p: Array, y: Array, legal: Array, label: int, level: Array, bin_of: Array, group: Array, sums: Array, gaps: Array
) -> None:
    """Sum sizes, probabilities, variances and gaps of a label's rows by bin."""
    for i in range(len(p)):
        bits = legal[i]
        if bits >> label & 1 and bits & (bits - 1):
            value = p[i, label]
            where = bin_of[level[i, label]]
            sums[0, where] += 1.0
            sums[1, where] += value
            sums[2, where] += value * (1.0 - value)
            gaps[group[i], where] += value - (1.0 if y[i] == label else 0.0)
            gaps[group[i], -1] += 1.0


def calibration_bins(
    p: Floats,
    y: npt.NDArray[np.integer],
    legal: npt.NDArray[np.integer],
    *,
    group: Ints | None = None,
    groups: int = 1,
    bins: int = 15,
) -> list[Bins]:
    """Return the bins of each label that is somewhere a choice, over the rows where it is one, equal values together.

    Class-wise calibration (Kull et al. 2019) with equal-mass bins (Nixon et al. 2019); values that agree to one part in
    500 count as equal. Under perfect calibration a bin's gap is a sum of independent centred draws of variance
    v = sum p (1 - p); its mean absolute value is taken from the Poisson law of rate v, which is right both for few
    and for many expected events. `group` are those of a `Bootstrap`.
    """
    level = p.astype(np.float32).view(np.int32) >> 14  # the order of floats is that of their bits
    bits = np.ascontiguousarray(legal, np.uint8)
    taken = np.ascontiguousarray(y, np.uint8)
    where = np.zeros(len(p), dtype=np.int64) if group is None else np.ascontiguousarray(group, np.int64)
    choice = bits & (bits - 1) > 0
    all_bins = []
    for label in range(p.shape[1]):
        count = np.bincount(level[choice & (bits >> label & 1 > 0), label], minlength=1)
        total = int(count.sum())
        if total == 0:
            continue
        edges = np.unique(np.searchsorted(np.cumsum(count), total * np.arange(1, bins) / bins))
        bin_of = np.searchsorted(edges, np.arange(len(count)))
        used = np.bincount(bin_of, weights=count) > 0
        bin_of = (np.cumsum(used) - 1)[bin_of]
        sums, gaps = np.zeros((3, int(used.sum()))), np.zeros((groups, int(used.sum()) + 1))
        _fill(p, taken, bits, label, level, bin_of, where, sums, gaps)
        gap = gaps[:, :-1].sum(axis=0)
        all_bins.append(
            Bins(
                label=label,
                size=sums[0].astype(np.int64),
                predicted=sums[1] / sums[0],
                taken=(sums[1] - gap) / sums[0],
                error=float(np.abs(gap).sum() / total),
                perfect=float(_poisson_deviation(sums[2]).sum() / total),
                gaps=gaps[:, :-1],
                rows=gaps[:, -1].astype(np.int64),
            )
        )
    return all_bins


def _poisson_deviation(rate: Floats) -> Floats:
    """Return E|X - rate| of a Poisson X: 2 e^-rate rate^(floor(rate)+1) / floor(rate)!."""
    whole = np.floor(rate)
    factorial = np.array([math.lgamma(k + 1.0) for k in whole])
    return np.asarray(2.0 * np.exp(-rate + (whole + 1.0) * np.log(np.maximum(rate, 1e-300)) - factorial))
