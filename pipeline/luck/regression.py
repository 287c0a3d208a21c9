"""Ridge regression of results on terms, each deal's weights found from other deals.

Sparse terms and results go in; weights come out. The result of a hand less its terms times any weights has the same
mean as the result, as long as the weights do not depend on the hand: so the deals are cut into `FOLDS` parts, and each
part's weights come from the others. The penalty is that of weights of the order of one (results are in big blinds,
terms are pots times changes of chances) under noise of the results' variance. It makes the weights of a short match
stay near zero, that is, near what is taken off at once (see `pipeline.luck.terms`). Columns that too few of the
hands behind the weights have are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.kernels import kernel
from pipeline.luck.terms import Terms, take_off
from pipeline.numeric import hash64
from pipeline.parallel import Workers

__all__ = ["FOLDS", "Weights", "cross_fit", "fold_of", "less"]

Array = npt.NDArray[Any]

FOLDS = 5
PENALTY = 5.0
"""the results' variance by that of a weight"""
LEAST_HANDS = 30
"""a column needs so many hands, and one hand in `LEAST_SHARE`"""
LEAST_SHARE = 500
MOST_COLUMNS = 1600
"""the columns that most hands have are taken: more would take time and memory"""


class Weights(NamedTuple):
    """What terms are worth, in big blinds per unit."""

    columns: Array
    """(used,) int64: the columns that have weights, ascending"""
    values: Array
    """(parts, used, agents): those for each fold, and last those from all deals"""


@kernel(leaf=True)
def _hash_all(deals: Array, out: Array) -> None:
    for i in range(deals.shape[0]):
        out[i] = hash64(deals[i]) >> np.uint64(33)


def fold_of(deals: Array) -> Array:
    """(hands,) int64: the part, below `FOLDS`, that each hand's deal belongs to."""
    out = np.empty(len(deals), np.int64)
    _hash_all(np.ascontiguousarray(deals, np.uint64), out)
    return out % FOLDS


@kernel(leaf=True)
def _add_up(
    ends: Array, columns: Array, values: Array, targets: Array, folds: Array, fold: int, gram: Array, cross: Array
) -> None:
    """Add the products of the terms of one fold's hands to `gram` and `cross`; columns below 0 are left out."""
    for i in range(folds.shape[0]):
        if folds[i] != fold:
            continue
        for a in range(ends[i], ends[i + 1]):
            row = columns[a]
            value = values[a]
            if row >= 0:
                for t in range(targets.shape[1]):
                    cross[row, t] += value * targets[i, t]
                for b in range(ends[i], ends[i + 1]):
                    if columns[b] >= 0:
                        gram[row, columns[b]] += value * values[b]


def cross_fit(terms: Terms, deals: Array, threads: int = 2) -> Weights:
    """Weights for each fold from the hands of the others, and from all hands.

    Parameters: `terms` of all hands to fit on, results by agent; `deals` (hands,), ascending, each in one fold.
    With two players a deal's hands are one observation, their mean: that is what a duplicate match's interval is about.
    """
    if terms.results.shape[1] == 2:
        terms, deals = _by_deal(terms, deals)
    folds = fold_of(deals)
    players, width = terms.results.shape[1], int(terms.columns.max(initial=-1)) + 1
    of_entry = np.repeat(folds, np.diff(terms.ends))
    counts = np.stack([np.bincount(terms.columns[of_entry == fold], minlength=width) for fold in range(FOLDS)])
    others = np.vstack([counts.sum(axis=0) - counts, counts.sum(axis=0)])
    common = np.sort(others, axis=1)[:, -min(MOST_COLUMNS, width)] if width else np.zeros(FOLDS + 1)
    enough = others >= np.maximum(common, max(LEAST_HANDS, len(folds) // LEAST_SHARE))[:, None]
    used = np.flatnonzero(enough.any(axis=0))
    place = np.full(width, -1, np.int64)
    place[used] = np.arange(len(used))
    columns = place[terms.columns]
    grams = np.zeros((FOLDS + 1, len(used), len(used)))
    crosses = np.zeros((FOLDS + 1, len(used), players))
    Workers(threads).map(
        lambda fold: _add_up(terms.ends, columns, terms.values, terms.results, folds, fold, grams[fold], crosses[fold]),
        range(FOLDS),
    )
    gram, cross = grams.sum(axis=0), crosses.sum(axis=0)
    found = np.zeros((FOLDS + 1, len(used), players))
    for fold in range(FOLDS + 1):
        known = np.flatnonzero(enough[fold, used])
        if len(known) == 0:
            continue
        inside, outside = terms.results[folds != fold], of_entry != fold
        sums = np.bincount(terms.columns[outside], terms.values[outside], minlength=width)[used]
        right = cross - crosses[fold] - sums[:, None] * inside.mean(axis=0)
        system = (gram - grams[fold])[np.ix_(known, known)]
        system[np.diag_indices(len(known))] += PENALTY * inside.var(axis=0).mean() + 1e-12
        found[fold, known] = np.linalg.solve(system, right[known])
    return Weights(used, found)


def _by_deal(terms: Terms, deals: Array) -> tuple[Terms, Array]:
    """The mean terms and results of each deal, deals ascending; hands must be in the order of their deals."""
    found, first, size = np.unique(deals, return_index=True, return_counts=True)
    share = np.repeat(1.0 / size, size)
    results = np.add.reduceat(terms.results * share[:, None], first, axis=0)
    ends = np.append(terms.ends[first], terms.ends[-1])
    values = terms.values * np.repeat(share, np.diff(terms.ends))
    return Terms(ends, terms.columns, values, results, terms.lineups[first]), found


def less(terms: Terms, weights: Weights, folds: Array) -> Array:
    """(hands, agents): results in big blinds with the terms taken off, each hand with the weights of its fold.

    `folds` (hands,) are folds, or `FOLDS` for hands that the weights were not found from.
    """
    place = np.full(int(terms.columns.max(initial=-1)) + 1, -1, np.int64)
    inside = weights.columns < len(place)
    place[weights.columns[inside]] = np.flatnonzero(inside)
    results = terms.results.copy()
    take_off(terms.ends, place[terms.columns], terms.values, folds, weights.values, results)
    return results
