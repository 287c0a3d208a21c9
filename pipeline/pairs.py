"""What pairs of decisions from the same information set tell about an agent whose probabilities are unknown.

Two decisions from one information set in two different deals are independent draws from the same mix q, so they
differ with probability 1 - sum q^2: the rate at which such pairs disagree is an unbiased estimate of the Brier
floor over the rows that have a partner. `coverage` is their share. The other floors are only bounded by it:
with D the disagreement of a row, D / 2 <= 1 - max q <= D, and the mean entropy is at least -ln(1 - mean D).

The same count between two sides (early and late hands, two opponents) tells whether the agent changed: with q1, q2
the mixes of the sides, disagreement across minus the mean disagreement within is sum (q1 - q2)^2 / 2, which is 0
for an agent that plays the same, and its estimate is unbiased too (it may come out slightly negative).

Pairs inside one deal are left out: duplicate twins, or an agent that plays itself, are not independent. Intervals
are by jackknife: the estimate without each 32nd part of the deals in turn.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.kernels import kernel
from pipeline.measures import Bools, Floats, Interval, Ints

__all__ = ["Change", "Disagreement", "change", "disagreement", "floor_bounds", "information"]

Array = npt.NDArray[Any]

PARTS = 32
QUANTILE = 2.040
"""The 97.5% point of Student's law with 31 degrees of freedom."""


class Disagreement(NamedTuple):
    """The Brier floor over the rows that have a partner in another deal."""

    brier: Interval
    coverage: float
    covered: Bools


class Change(NamedTuple):
    """How differently the two sides act in the same information sets."""

    rows: int
    coverage: float
    within: float
    across: float
    distance: Interval
    """sum (q1 - q2)^2 / 2, mean over rows; its interval holds 0 when there is no sign of a change."""


class _Sorted(NamedTuple):
    """Rows of the groups that can form pairs, sorted by (group, deal)."""

    group: Ints
    pair: Ints
    hot: Floats
    part: Ints
    covered: Bools


def _arrange(
    keys: npt.NDArray[np.integer],
    deals: npt.NDArray[np.integer],
    y: npt.NDArray[np.integer],
    labels: int,
    seed: int,
) -> _Sorted:
    order = np.lexsort((deals, keys))
    key, deal = keys[order], deals[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = key[1:] != key[:-1]
    fresh = first.copy()
    fresh[1:] |= deal[1:] != deal[:-1]
    group, pair = np.cumsum(first) - 1, np.cumsum(fresh) - 1
    several = np.bincount(group, weights=fresh)[group] > 1 if len(group) else np.zeros(0, dtype=bool)
    covered = np.zeros(len(order), dtype=bool)
    covered[order] = several
    _, group = np.unique(group[several], return_inverse=True)
    _, pair = np.unique(pair[several], return_inverse=True)
    names, cluster = np.unique(deal[several], return_inverse=True)
    part = (np.random.default_rng(seed).permutation(len(names)) % PARTS)[cluster]
    hot = np.zeros((len(group), labels))
    hot[np.arange(len(group)), y[order][several]] = 1.0
    return _Sorted(group, pair, hot, part, covered)


def _tally(index: Ints, hot: Floats) -> Floats:
    """Label counts of each group; `index` is sorted."""
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    return np.add.reduceat(hot, starts, axis=0)


def _cross(groups: tuple[Floats, Floats], deals: tuple[Floats, Floats], owner: Ints) -> tuple[Floats, Floats]:
    """By group: pairs of decisions (one of each side) in different deals, and those of them that agree."""
    count = len(groups[0])
    same = np.bincount(owner, weights=deals[0].sum(axis=1) * deals[1].sum(axis=1), minlength=count)
    same_agree = np.bincount(owner, weights=(deals[0] * deals[1]).sum(axis=1), minlength=count)
    pairs = groups[0].sum(axis=1) * groups[1].sum(axis=1) - same
    return pairs, (groups[0] * groups[1]).sum(axis=1) - same_agree


def _rate(pairs: Floats, agree: Floats) -> Floats:
    return 1.0 - agree / np.where(pairs > 0, pairs, 1.0)


def _jackknife(value: float, without: list[float]) -> Interval:
    """The 95% interval from the estimates without each part."""
    left = np.array(without)
    left = left[~np.isnan(left)]
    if len(left) < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan)
    half = QUANTILE * math.sqrt((len(left) - 1) / len(left) * float(((left - left.mean()) ** 2).sum()))
    return Interval(value, value - half, value + half)


def disagreement(
    keys: npt.NDArray[np.integer],
    deals: npt.NDArray[np.integer],
    y: npt.NDArray[np.integer],
    *,
    labels: int,
    seed: int = 0,
) -> Disagreement:
    """The rate at which pairs of decisions with equal `keys` in different `deals` differ, each row counting once."""
    rows = _arrange(keys, deals, y, labels, seed)
    if len(rows.group) == 0:
        return Disagreement(Interval(math.nan, math.nan, math.nan), 0.0, rows.covered)
    owner = rows.group[np.flatnonzero(np.diff(rows.pair, prepend=-1))]

    def estimate(kept: Floats) -> float:
        hot = rows.hot * kept[:, None]
        counts, by_deal = _tally(rows.group, hot), _tally(rows.pair, hot)
        pairs, agree = _cross((counts, counts), (by_deal, by_deal), owner)
        weight = np.where(pairs > 0, counts.sum(axis=1), 0.0)
        return float((_rate(pairs, agree) * weight).sum() / weight.sum()) if weight.any() else math.nan

    value = estimate(np.ones(len(rows.part)))
    without = [estimate((rows.part != part).astype(np.float64)) for part in range(PARTS)]
    return Disagreement(_jackknife(value, without), float(rows.covered.mean()), rows.covered)


def floor_bounds(brier: float) -> dict[str, tuple[float, float]]:
    """Bounds, not estimates, of the error and log-loss floors from a mean disagreement rate.

    >>> {name: (round(low, 3), round(high, 3)) for name, (low, high) in floor_bounds(0.2).items()}
    {'error': (0.1, 0.2), 'log_loss': (0.223, inf)}
    """
    return {"error": (brier / 2.0, brier), "log_loss": (-math.log(max(1.0 - brier, 1e-12)), math.inf)}


def change(
    keys: npt.NDArray[np.integer],
    deals: npt.NDArray[np.integer],
    y: npt.NDArray[np.integer],
    *,
    late: Bools,
    labels: int,
    seed: int = 0,
) -> Change:
    """How the rows marked `late` differ from the others in the same information sets."""
    rows = _arrange(keys, deals, y, labels, seed)
    nothing = Change(0, 0.0, math.nan, math.nan, Interval(math.nan, math.nan, math.nan))
    if len(rows.group) == 0:
        return nothing
    owner = rows.group[np.flatnonzero(np.diff(rows.pair, prepend=-1))]
    order = np.lexsort((deals, keys))
    side = late[order][rows.covered[order]].astype(np.float64)[:, None]

    def estimate(kept: Floats) -> tuple[float, float, float]:
        hot = rows.hot * kept[:, None]
        old, new = hot * (1.0 - side), hot * side
        counts = _tally(rows.group, old), _tally(rows.group, new)
        by_deal = _tally(rows.pair, old), _tally(rows.pair, new)
        both = [_cross((counts[a], counts[b]), (by_deal[a], by_deal[b]), owner) for a, b in ((0, 0), (1, 1), (0, 1))]
        usable = np.all([pairs > 0 for pairs, _ in both], axis=0)
        weight = np.where(usable, counts[0].sum(axis=1) + counts[1].sum(axis=1), 0.0)
        total = weight.sum()
        if total == 0:
            return 0.0, math.nan, math.nan
        first, second, across = (_rate(pairs, agree) for pairs, agree in both)
        inside = (0.5 * (first + second) * weight).sum() / total
        return float(total), float(inside), float((across * weight).sum() / total)

    used, within, across = estimate(np.ones(len(rows.part)))
    if used == 0:
        return nothing
    without = [estimate((rows.part != part).astype(np.float64)) for part in range(PARTS)]
    distance = _jackknife(across - within, [one[2] - one[1] for one in without])
    return Change(int(used), used / len(keys), within, across, distance)


@kernel
def _keys(words: Array, cards: Array, amounts: Array, order: Array, keys: Array) -> None:
    """Hash each row's betting, amounts and cards; cards in the smallest of their 24 renamings of suits."""
    seven = np.empty(7, dtype=np.int64)
    for i in range(len(keys)):
        least = np.uint64(0xFFFFFFFFFFFFFFFF)
        for names in range(order.shape[0]):
            for j in range(7):
                card = int(cards[i, j])
                seven[j] = card if card == 255 else (card & ~3) | order[names, card & 3]
            if seven[0] > seven[1]:
                seven[0], seven[1] = seven[1], seven[0]
            for a, b in ((2, 3), (3, 4), (2, 3)):
                if seven[a] > seven[b]:
                    seven[a], seven[b] = seven[b], seven[a]
            packed = np.uint64(0)
            for j in range(7):
                packed = (packed << np.uint64(8)) | np.uint64(seven[j])
            least = min(least, packed)
        value = least
        for j in range(words.shape[1]):
            value = (value ^ np.uint64(words[i, j])) * np.uint64(0x9E3779B97F4A7C15)
            value ^= value >> np.uint64(29)
        for j in range(amounts.shape[1]):
            value = (value ^ np.uint64(amounts[i, j])) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(32)
        keys[i] = value


def information(rows: Array) -> npt.NDArray[np.uint64]:
    """A number for each row's information set: all that the player knows, up to the names of suits.

    The order of the flop's cards does not matter, which card came on the turn and which on the river does.
    """
    order = np.array(list(itertools.permutations(range(4))), dtype=np.int64)
    cards = np.concatenate([rows["hole"], rows["board"]], axis=1)
    amounts = np.stack([rows[name].astype(np.int64) for name in ("position", "to_call", "pot", "stack")], axis=1)
    keys = np.zeros(len(rows), dtype=np.uint64)
    _keys(np.ascontiguousarray(rows["words"]), np.ascontiguousarray(cards), amounts, order, keys)
    return keys
