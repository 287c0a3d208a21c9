"""Distances between the amounts of a model's raises and those of the agent, and the sizes of both, for a plot.

In go the raises of an agent (`DecisionSample`, all-in aside: its size is no choice) and a model; out come, for each
raise, three measures of the amounts that the model would have bet with the label taken: whether the likeliest is right
(`size_hit`), the distance of the median (`size_error`, in pots after calling) and the CRPS, which scores the whole
distribution (`size_crps`, in pots; the error again where there is one amount). A model that names no amounts bets the
size that the label stands for. Labels are scored apart, by the measures of `scoring`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.agents.protocol import amounts_of
from pipeline.dataset.decisions import STREETS
from pipeline.evaluation.samples import DecisionSample
from pipeline.models.sizes import Amounts, fixed_amounts, has_amounts, raised_by
from pipeline.poker.rules import ALL_IN, RAISE
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.kernels import kernel

SIZE_MEASURES = ("size_hit", "size_error", "size_crps")
SIZE_EDGES = np.array(
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 2, 3, 5, 10, 20, 50]
)
"""shares of the pot at which curves of sizes are drawn"""


@dataclass(frozen=True)
class SizeCurve:
    """Shares of all raises on a street, all-in included, that are at most as large as each of `SIZE_EDGES`."""

    street: str
    raises: int
    """how many the agent made"""
    taken: Floats
    played: Floats


@kernel
def _measure(
    starts: Array, chips_named: Array, share: Array, fixed: Array, actual: Array, after: Array, out: Array
) -> None:
    """Write hit, error and CRPS of each raise."""
    for i in range(actual.size):
        first, last = starts[i], starts[i + 1]
        if first == last:
            distance = abs(fixed[i] - actual[i]) / after[i]
            out[0, i] = 1.0 if fixed[i] == actual[i] else 0.0
            out[1, i] = distance
            out[2, i] = distance
            continue
        order = np.argsort(chips_named[first:last])
        below, weighted, distance, spread = 0.0, 0.0, 0.0, 0.0
        likeliest, most, run = 0, 0.0, 0.0
        middle, previous = -1, -1
        for k in range(last - first):
            chips, weight = chips_named[first + order[k]], share[first + order[k]]
            run = run + weight if chips == previous else weight
            previous = chips
            if run > most + 1e-12:
                likeliest, most = chips, run
            # CRPS = E|X - x| - E|X - X'| / 2; in sorted order the second term needs only running sums
            distance += weight * abs(chips - actual[i])
            spread += weight * (chips * below - weighted)
            below += weight
            weighted += weight * chips
            if middle < 0 and below >= 0.5 - 1e-9:
                middle = chips
        out[0, i] = 1.0 if likeliest == actual[i] else 0.0
        out[1, i] = abs(middle - actual[i]) / after[i]
        out[2, i] = (distance - spread) / after[i]


def raise_scores(amounts: Amounts | None, rows: Array, labels: Array, by: Array) -> Array:
    """Return (3, raises): each of `SIZE_MEASURES`, of the labels' own sizes where no amounts are named.

    Parameters: the amounts, the rows, their labels, the chips beyond the highest bet that were bet.
    """
    out = np.zeros((3, len(rows)))
    after = (rows["pot"] + rows["to_call"]).astype(np.float64)
    _measure(*(amounts or _no_amounts(rows)), fixed_amounts(rows, labels), by, after, out)
    return out


def _no_amounts(rows: Array) -> Amounts:
    """Return empty lists of amounts for rows."""
    return Amounts(np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _amounts(player: Any, rows: Array, labels: Array) -> Amounts:
    """Return the amounts that a model bets with each row's label; none for labels of fixed size."""
    return amounts_of(player, rows, labels) or _no_amounts(rows)


def _raised(sample: DecisionSample) -> Array | None:
    """Return the chips beyond the highest bet of each raise; None where the game has no amounts to choose."""
    if sample.beyond is not None:
        return sample.beyond
    if sample.amount is None or not has_amounts(sample.game):
        return None
    return np.asarray(raised_by(sample.game, sample.rows, sample.amount), np.int64)


def size_measures(player: Any, sample: DecisionSample) -> dict[str, Floats]:
    """Return each of `SIZE_MEASURES` by row, NaN where no raise was made; empty where the game has no amounts."""
    chips = _raised(sample)
    if chips is None:
        return {}
    raises = np.flatnonzero((sample.taken >= RAISE) & (sample.taken < ALL_IN) & (chips > 0))
    rows, labels = sample.rows[raises], sample.taken[raises].astype(np.int64)
    measured = {}
    for name, values in zip(
        SIZE_MEASURES, raise_scores(amounts_of(player, rows, labels), rows, labels, chips[raises]), strict=True
    ):
        measured[name] = np.full(len(sample), np.nan)
        measured[name][raises] = values
    return measured


def size_curves(player: Any, played: Floats, sample: DecisionSample) -> list[SizeCurve]:
    """Return the sizes of an agent's raises on each street, and those of a model in the same situations.

    Parameters: `played` (rows, labels) the model's mix.
    """
    chips = _raised(sample)
    if chips is None or (sample.rows["stack"] == 0).any():  # all-in has no size where stacks are unknown
        return []
    pots, weights = [], []
    numbers = np.arange(len(sample))
    by_street: Array = sample.rows["street"]
    origin = []
    for label in range(RAISE, ALL_IN + 1):
        rows_played = np.flatnonzero(played[:, label] > 0)
        rows, labels = sample.rows[rows_played], np.full(len(rows_played), label)
        pot_after = rows["pot"] + rows["to_call"]
        amounts = _amounts(player, rows, labels)
        counts = np.diff(amounts.starts)
        pots += [amounts.by / np.repeat(pot_after, counts)]
        weights += [amounts.share * np.repeat(played[rows_played, label], counts)]
        origin += [np.repeat(numbers[rows_played], counts)]
        unnamed = counts == 0
        behind = rows["stack"] - rows["to_call"]
        single = behind[unnamed] if label == ALL_IN else fixed_amounts(rows[unnamed], labels[unnamed])
        pots += [single / pot_after[unnamed]]
        weights += [played[rows_played[unnamed], label]]
        origin += [numbers[rows_played[unnamed]]]
    size, weight, whose = np.concatenate(pots), np.concatenate(weights), by_street[np.concatenate(origin)]
    raised = sample.taken >= RAISE
    pot_after = (sample.rows["pot"] + sample.rows["to_call"])[raised]
    taken = chips[raised] / pot_after
    curves = []
    for street, name in enumerate(STREETS):
        agent_sizes, model_sizes = taken[by_street[raised] == street], whose == street
        if len(agent_sizes) > 0 and weight[model_sizes].sum() > 0:
            curves.append(
                SizeCurve(
                    name,
                    len(agent_sizes),
                    _curve(agent_sizes, np.ones(len(agent_sizes))),
                    _curve(size[model_sizes], weight[model_sizes]),
                )
            )
    return curves


def _curve(sizes: Array, weights: Array) -> Floats:
    """Return the share of the weight at or below each edge."""
    order = np.argsort(sizes)
    total = np.append(0.0, np.cumsum(weights[order]))
    return np.asarray(total[np.searchsorted(sizes[order], SIZE_EDGES + 1e-9, side="right")] / total[-1])
