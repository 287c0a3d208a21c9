"""Floors from pairs of decisions in the same information set, for agents whose probabilities are unknown.

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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.models.measures import Interval
from pipeline.poker.cards import NO_CARD
from pipeline.runtime.array_types import Array, Bools, Floats
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash_with

PARTS = 32
"""parts of the deals that the jackknife leaves out in turn"""
QUANTILE = 2.040
"""97.5 % point of Student's distribution with `PARTS` - 1 degrees of freedom"""


class Disagreement(NamedTuple):
    """The Brier floor over the rows that have a partner in another deal."""

    brier: Interval
    coverage: float
    covered: Bools


class BehaviourChange(NamedTuple):
    """Difference between the actions of two sides in the same information sets."""

    rows: int
    coverage: float
    within: float
    across: float
    distance: Interval
    """sum (q1 - q2)^2 / 2, mean over rows; its interval holds 0 when there is no sign of a change."""


@kernel
def _add_disagreement(counts: Array, inside: Array, sided: bool, sums: Array, sign: float) -> None:
    """Add the weight of one information set, and its disagreement within and across sides, to `sums`.

    Nothing is added where a side, or the two together, have no pair of decisions from different deals.

    `counts` (2, labels) are decisions by side; `inside` (3, 2) the pairs inside one deal, to be left out, and those of
    them that agree: first side, second side, across.
    """
    labels = counts.shape[1]
    within, across = 0.0, 0.0
    total = 0.0
    for which in range(3 if sided else 1):
        a, b = (0, 1) if which == 2 else (which, which)
        size_a, size_b, alike = 0.0, 0.0, -inside[which, 1]
        for label in range(labels):
            size_a += counts[a, label]
            size_b += counts[b, label]
            alike += counts[a, label] * counts[b, label]
        # ordered pairs, each decision with itself among them; those inside one deal, itself included, are taken off
        pairs = size_a * size_b - inside[which, 0]
        if pairs <= 0.0:
            return
        rate = 1.0 - alike / pairs
        if which == 2:
            across = rate
            total = size_a + size_b
        else:
            within += rate / 2.0 if sided else rate
            total = size_a
    sums[0] += sign * total
    sums[1] += sign * total * within
    sums[2] += sign * total * across


@kernel
def _sum_disagreements(
    key: Array,
    deal: Array,
    label: Array,
    side: Array,
    part: Array,
    labels: int,
    sided: bool,
    covered: Array,
    sums: Array,
) -> None:
    """Sum weight and disagreement within and across sides, over all deals and with each part of the deals left out.

    The rows are sorted by (key, deal).

    `sums` is (1 + parts, 3); row 0 is over all deals, row 1 + i holds the correction for leaving part i out.
    """
    parts = len(sums) - 1
    counts = np.zeros((parts + 1, 2, labels))  # of each part, then of all
    inside = np.zeros((parts + 1, 3, 2))
    deal_counts = np.zeros((2, labels))
    first = 0
    while first < len(key):
        last = first + 1
        while last < len(key) and key[last] == key[first]:
            last += 1
        if deal[first] == deal[last - 1]:  # all in one deal: no independent pair
            first = last
            continue
        counts[:] = 0.0
        inside[:] = 0.0
        position = first
        while position < last:
            deal_counts[:] = 0.0
            start = position
            while position < last and deal[position] == deal[start]:
                deal_counts[side[position], label[position]] += 1.0
                covered[position] = True
                position += 1
            for row in (part[start], parts):
                for which in range(3):
                    a, b = (0, 1) if which == 2 else (which, which)
                    size_a, size_b = 0.0, 0.0
                    for j in range(labels):
                        size_a += deal_counts[a, j]
                        size_b += deal_counts[b, j]
                        inside[row, which, 1] += deal_counts[a, j] * deal_counts[b, j]
                    inside[row, which, 0] += size_a * size_b
                for j in range(labels):
                    counts[row, 0, j] += deal_counts[0, j]
                    counts[row, 1, j] += deal_counts[1, j]
        _add_disagreement(counts[parts], inside[parts], sided, sums[0], 1.0)
        # without a part of the deals: this set's term is taken off the sums of all and added as it is without them
        for left_out in range(parts):
            if inside[left_out, 0, 0] + inside[left_out, 1, 0] > 0.0:  # other parts leave this set's estimate as it is
                _add_disagreement(counts[parts], inside[parts], sided, sums[1 + left_out], -1.0)
                for i in range(2):
                    for j in range(labels):
                        counts[left_out, i, j] = counts[parts, i, j] - counts[left_out, i, j]
                for i in range(3):
                    for j in range(2):
                        inside[left_out, i, j] = inside[parts, i, j] - inside[left_out, i, j]
                _add_disagreement(counts[left_out], inside[left_out], sided, sums[1 + left_out], 1.0)
        first = last


def _pairs(
    keys: npt.NDArray[np.integer],
    deals: npt.NDArray[np.integer],
    y: npt.NDArray[np.integer],
    side: Bools | None,
    labels: int,
    seed: int,
) -> tuple[Floats, Bools]:
    """Return the sums (row 0: all deals, row 1 + i: without part i), and flags of the rows that have a partner."""
    order = np.lexsort((deals, keys))
    names, deal = np.unique(deals[order], return_inverse=True)
    part = (np.random.default_rng(seed).permutation(len(names)) % PARTS)[deal]
    sides = np.zeros(len(order), np.uint8) if side is None else side[order].astype(np.uint8)
    sums, covered = np.zeros((1 + PARTS, 3)), np.zeros(len(order), dtype=bool)
    taken = np.ascontiguousarray(y[order], np.uint8)
    key = np.ascontiguousarray(keys[order]).astype(np.uint64)
    _sum_disagreements(key, deal, taken, sides, part, labels, side is not None, covered, sums)
    sums[1:] += sums[0]
    unsorted = np.zeros(len(order), dtype=bool)
    unsorted[order] = covered
    return sums, unsorted


def _jackknife(value: float, without: Floats) -> Interval:
    """Return the 95% jackknife interval of `value`, from the estimates that leave out one part of the deals each."""
    estimates = without[~np.isnan(without)]
    if len(estimates) < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan)
    half = QUANTILE * math.sqrt(
        (len(estimates) - 1) / len(estimates) * float(((estimates - estimates.mean()) ** 2).sum())
    )
    return Interval(value, value - half, value + half)


def _means(sums: Floats) -> Floats:
    """Return mean disagreement within and across sides from sums (weight, within, across); NaN without any pair."""
    return np.divide(sums[:, 1:], sums[:, :1], out=np.full((len(sums), 2), np.nan), where=sums[:, :1] > 0)


def disagreement(
    keys: npt.NDArray[np.integer],
    deals: npt.NDArray[np.integer],
    y: npt.NDArray[np.integer],
    *,
    labels: int,
    seed: int = 0,
) -> Disagreement:
    """Return the rate at which pairs of decisions with equal `keys` in different `deals` differ, rows counting once."""
    sums, covered = _pairs(keys, deals, y, None, labels, seed)
    within = _means(sums)[:, 0]
    coverage = float(covered.mean()) if len(covered) else 0.0
    return Disagreement(_jackknife(float(within[0]), within[1:]), coverage, covered)


def floor_bounds(brier: float) -> dict[str, tuple[float, float]]:
    """Return bounds, not estimates, of the error and log-loss floors from a mean disagreement rate.

    >>> {name: (round(low, 3), round(high, 3)) for name, (low, high) in floor_bounds(0.2).items()}
    {'error': (0.1, 0.2), 'log_loss': (0.223, inf)}
    """
    return {"error": (brier / 2.0, brier), "log_loss": (-math.log(max(1.0 - brier, 1e-12)), math.inf)}


def behaviour_change(
    keys: npt.NDArray[np.integer],
    deals: npt.NDArray[np.integer],
    y: npt.NDArray[np.integer],
    *,
    late: Bools,
    labels: int,
    seed: int = 0,
) -> BehaviourChange:
    """Compare an agent's actions in the rows marked `late` with the others, in the same information sets.

    Parameters: `keys` (rows) numbers of information sets, `deals` (rows), `y` (rows) labels taken, `late` (rows) flags.
    """
    sums, _ = _pairs(keys, deals, y, late, labels, seed)
    means = _means(sums)
    within, across = (float(value) for value in means[0])
    distance = _jackknife(across - within, means[1:, 1] - means[1:, 0])
    used = int(sums[0, 0])
    return BehaviourChange(used, used / max(len(keys), 1), within, across, distance)


@kernel
def _hash_information_sets(words: Array, cards: Array, amounts: Array, order: Array, keys: Array) -> None:
    """Hash each row's betting, amounts and cards; of the 24 renamings of suits the one with the smallest code."""
    seven = np.empty(7, dtype=np.int64)
    for i in range(len(keys)):
        # names of suits mean nothing: hands that a renaming makes equal get the code of the same, smallest renaming
        smallest = np.uint64(0xFFFFFFFFFFFFFFFF)
        for renaming in range(order.shape[0]):
            for j in range(7):
                card = int(cards[i, j])
                seven[j] = card if card == 255 else (card & ~3) | order[renaming, card & 3]
            if seven[0] > seven[1]:
                seven[0], seven[1] = seven[1], seven[0]
            for a, b in ((2, 3), (3, 4), (2, 3)):
                if seven[a] > seven[b]:
                    seven[a], seven[b] = seven[b], seven[a]
            packed = np.uint64(0)
            for j in range(7):
                packed = (packed << np.uint64(8)) | np.uint64(seven[j])
            smallest = min(smallest, packed)
        value = smallest
        for j in range(words.shape[1]):
            value = hash_with(value, words[i, j])
        for j in range(amounts.shape[1]):
            value = hash_with(value, amounts[i, j])
        keys[i] = value


def information_set_keys(rows: Array, *, amounts: bool = True) -> npt.NDArray[np.uint64]:
    """Hash each row's information set: all that the player knows, up to the names of suits.

    Without `amounts` rows that differ inside the size classes of their betting are taken for the same.

    The order of the flop's cards does not matter; which card came on the turn and which on the river does. A row whose
    hole cards are unknown has a number of its own: its information set cannot be compared.
    """
    order = np.array(list(itertools.permutations(range(4))), dtype=np.int64)
    cards = np.concatenate([rows["hole"], rows["board"]], axis=1)
    names = ("position", "to_call", "pot", "stack") if amounts else ("position",)
    numbers = np.stack([rows[name].astype(np.int64) for name in names], axis=1)
    keys = np.zeros(len(rows), dtype=np.uint64)
    _hash_information_sets(
        np.ascontiguousarray(rows["betting_codes"]), np.ascontiguousarray(cards), numbers, order, keys
    )
    unknown = rows["hole"][:, 0] == NO_CARD
    keys[unknown] = np.flatnonzero(unknown).astype(np.uint64)
    return keys
