"""Ridge regression of results on terms, each deal's weights found from other deals.

Terms and results go in; weights come out. The result of a hand less its terms times any weights has the same mean as
the result, as long as the weights do not depend on the hand: so the deals are cut into `FOLDS` parts, and each part's
weights come from the others.

Whatever happened before an event, its terms have mean zero: so terms of different events are uncorrelated, and the
regression falls apart into one for each kind of event (a group of columns). The groups are fitted one after another,
each to what those before it leave over; more `SWEEPS` over them would lead to the solution of the whole system, which
costs a multiple and brings no more.

The penalty is that of weights of the order of one (results are in big blinds, terms are pots times changes of chances)
under noise of the results' variance: it makes the weights of a short match stay near zero, that is, near what is taken
off at once (see `pipeline.arena.variance.terms`). Groups that too few hands have are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.arena.variance.terms import Terms, take_off
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64
from pipeline.runtime.parallel import Workers

FOLDS = 5
FITS = FOLDS + 1
"""one for each fold, without its deals, and one from all deals"""
PENALTY = 5.0
"""the results' variance by that of a weight"""
HANDS_PER_COLUMN = 2
"""a group needs so many hands for each of its columns outside of each fold"""
SWEEPS = 1


class Weights(NamedTuple):
    """What terms are worth, in big blinds per unit."""

    groups: Array
    """(groups,) int64: the first columns of the groups that have weights, ascending"""
    places: Array
    """(groups,) int64: where the weights of each group begin"""
    values: Array
    """(FOLDS + 1, used columns, agents): those for each fold, and last those from all deals"""


class Groups(NamedTuple):
    """The groups that have weights, and their events."""

    columns: Array
    """(groups,) int64: the first columns"""
    places: Array
    """(groups + 1,) int64: where the weights of each begin"""
    ends: Array
    """(groups + 1,) int64: where the events of each begin"""
    events: Array
    """(events,) int64: the events, group by group"""
    hands: Array
    """(events,) int64: the hand of each of these"""


@kernel(leaf=True)
def _hash_all(deals: Array, out: Array) -> None:
    for i in range(deals.shape[0]):
        out[i] = hash64(deals[i]) >> np.uint64(33)


def fold_of(deals: Array) -> Array:
    """(hands,) int64: the part, below `FOLDS`, that each hand's deal belongs to."""
    out = np.empty(len(deals), np.int64)
    _hash_all(np.ascontiguousarray(deals, np.uint64), out)
    return out % FOLDS


def _groups(terms: Terms, folds: Array) -> Groups:
    """The groups with enough hands outside of each fold."""
    counts = np.bincount(terms.columns)
    columns = np.flatnonzero(counts)
    place = np.zeros(len(counts), np.int16 if len(columns) < 1 << 15 else np.int64)  # small numbers sort faster
    place[columns] = np.arange(len(columns))
    number, counts = place[terms.columns], counts[columns]
    hands = np.repeat(np.arange(terms.hands), np.diff(terms.ends))
    inside = np.stack([np.bincount(number[folds[hands] == fold], minlength=len(columns)) for fold in range(FOLDS)])
    order = np.argsort(number, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(counts)])
    widths = np.diff(terms.starts)[order[firsts[:-1]]]
    enough = np.flatnonzero((counts - inside >= HANDS_PER_COLUMN * widths).all(axis=0))
    events = [order[firsts[group] : firsts[group + 1]] for group in enough]
    chosen = np.concatenate(events) if events else np.zeros(0, np.int64)
    return Groups(
        columns[enough].astype(np.int64),
        np.cumsum([0, *widths[enough]], dtype=np.int64),
        np.cumsum([0, *map(len, events)], dtype=np.int64),
        chosen,
        hands[chosen],
    )


@kernel(leaf=True)
def _products(terms: Terms, groups: Groups, group: int, folds: Array, grams: Array) -> None:
    """Add up the products of a group's terms by fold, in the lower triangle of `grams` (folds, width, width)."""
    for k in range(groups.ends[group], groups.ends[group + 1]):
        values = terms.values[terms.starts[groups.events[k]] : terms.starts[groups.events[k] + 1]]
        gram = grams[folds[groups.hands[k]]]
        for a in range(values.shape[0]):
            value = values[a]
            if value != 0.0:
                for b in range(a + 1):
                    gram[a, b] += value * values[b]


@kernel
def _with_targets(terms: Terms, groups: Groups, group: int, folds: Array, targets: Array, cross: Array) -> None:
    """Add the products of a group's terms and what is left of the results to `cross` (agents, width, FITS).

    `targets` is (hands, agents, FITS): what each fit leaves; a fold's own hands are not part of its fit.
    """
    mine = np.empty(FITS)
    for k in range(groups.ends[group], groups.ends[group + 1]):
        hand = groups.hands[k]
        begin = terms.starts[groups.events[k]]
        for t in range(targets.shape[1]):
            for fit in range(FITS):
                mine[fit] = targets[hand, t, fit]
            mine[folds[hand]] = 0.0
            for a in range(cross.shape[1]):
                value = terms.values[begin + a]
                for fit in range(FITS):
                    cross[t, a, fit] += value * mine[fit]


@kernel
def _take(terms: Terms, groups: Groups, group: int, weights: Array, targets: Array) -> None:
    """Take a group's terms times weights (agents, width, FITS) off what is left of the results, of all hands."""
    total = np.empty(FITS)
    for k in range(groups.ends[group], groups.ends[group + 1]):
        hand = groups.hands[k]
        begin = terms.starts[groups.events[k]]
        for t in range(targets.shape[1]):
            for fit in range(FITS):
                total[fit] = 0.0
            for a in range(weights.shape[1]):
                value = terms.values[begin + a]
                for fit in range(FITS):
                    total[fit] += value * weights[t, a, fit]
            for fit in range(FITS):
                targets[hand, t, fit] -= total[fit]


def _sweep(
    terms: Terms, groups: Groups, folds: Array, grams: list[Array], penalty: Array, targets: Array, found: Array
) -> None:
    """Fit every group once to what the others leave over, and take it off `targets`; `found` has all weights."""
    for group, (low, high) in enumerate(zip(groups.places, groups.places[1:], strict=False)):
        cross = np.zeros((targets.shape[1], high - low, FITS))
        _with_targets(terms, groups, group, folds, targets, cross)
        whole = grams[group].sum(axis=0)
        systems = whole - np.concatenate([grams[group], np.zeros((1, *whole.shape))])
        systems += np.tril(systems, -1).transpose(0, 2, 1)
        before = found[:, low:high].transpose(2, 1, 0)
        right = cross.transpose(2, 1, 0) + systems @ before
        places = np.arange(high - low)
        systems[:, places, places] += penalty[:, None]
        change = np.ascontiguousarray((np.linalg.solve(systems, right) - before).transpose(2, 1, 0))
        found[:, low:high] += change
        _take(terms, groups, group, change, targets)


def cross_fit(terms: Terms, deals: Array, threads: int = 2) -> Weights:
    """Weights for each fold from the hands of the others, and from all hands.

    Parameters: `terms` of all hands to fit on, results by agent; `deals` (hands,), each in one fold.
    """
    folds = fold_of(deals)
    groups = _groups(terms, folds)
    grams = [np.zeros((FOLDS, width, width)) for width in np.diff(groups.places)]
    Workers(threads).map(lambda group: _products(terms, groups, group, folds, grams[group]), range(len(grams)))
    targets = np.repeat(terms.results[:, :-1, None], FITS, axis=2)
    penalty = np.ones(FITS)
    for fit in range(FITS):
        outside = folds != fit
        if outside.any():
            targets[:, :, fit] -= targets[outside, :, fit].mean(axis=0)
            penalty[fit] = PENALTY * targets[outside, :, fit].var() + 1e-9
    found = np.zeros((targets.shape[1], int(groups.places[-1]), FITS))
    for _ in range(SWEEPS):
        _sweep(terms, groups, folds, grams, penalty, targets, found)
    last = -found.sum(axis=0, keepdims=True)  # what the others win, the last one loses
    values = np.concatenate([found, last]).transpose(2, 1, 0)
    return Weights(groups.columns, groups.places[:-1], np.ascontiguousarray(values))


def less(terms: Terms, weights: Weights, folds: Array) -> Array:
    """(hands, agents): results in big blinds with the terms taken off, each hand with the weights of its fold.

    `folds` (hands,) are folds, or `FOLDS` for hands that the weights were not found from.
    """
    place = np.full(max(int(terms.columns.max(initial=-1)), int(weights.groups.max(initial=-1))) + 1, -1, np.int64)
    place[weights.groups] = weights.places
    results = terms.results.copy()
    take_off(terms, place[terms.columns], folds, weights.values, results)
    return results
