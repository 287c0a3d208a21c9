"""Adjust results: payoffs go in, the same payoffs with most of the luck taken out and the same mean come out.

Hands come in any number of pieces, in order; adjusted payoffs are in chips by position like the payoffs. The weights of
the control variates (`pipeline.arena.variance.terms`) are fitted on the first `FIT_HANDS` hands of each table (set of
agents) and used for the later ones too. The work on a piece (`Adjuster.prepare`) may be done in threads; the result
does not depend on the pieces.

The weights are those of a ridge regression of results on terms. The result of a hand less its terms times any weights
has the same mean as the result, as long as the weights do not depend on the hand: so the deals are cut into `FOLDS`
parts, and each part's weights are fitted on the others (cross-fitting).

Whatever happened before an event, its terms have mean zero: so terms of different events are uncorrelated, and the
regression falls apart into one for each kind of event (a group of columns). The groups are fitted one after another,
each to the residuals of those before it; more `SWEEPS` over them would lead to the solution of the whole system, which
costs a multiple and brings no more.

The penalty is that of weights of the order of one (results are in big blinds, terms are pots times changes of chances)
under noise of the results' variance: it makes the weights of a short match stay near zero, that is, near what is
subtracted at once (see `pipeline.arena.variance.terms`). Groups that too few hands have are left out.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.terms import Terms, build_terms, join_terms, subtract_terms
from pipeline.poker.game import Game
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
"""passes over the groups"""
PreparedHands: TypeAlias = tuple[Terms, Array]
"""the terms of a piece of hands, results by agent, and their deals"""

FIT_HANDS = 40_000
"""hands that weights are fitted on: more bring little and take time and memory"""


class Weights(NamedTuple):
    """Weights of terms, in big blinds per unit."""

    groups: Array
    """(groups,) int64: the first columns of the groups that have weights, ascending"""
    places: Array
    """(groups,) int64: where the weights of each group begin"""
    values: Array
    """(FOLDS + 1, used columns, agents): those for each fold, and last those from all deals"""


class EventGroups(NamedTuple):
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
def _hash_deals(deals: Array, out: Array) -> None:
    for i in range(deals.shape[0]):
        out[i] = hash64(deals[i]) >> np.uint64(33)


def fold_of(deals: Array) -> Array:
    """Return (hands,) int64 the fold, below `FOLDS`, that each hand's deal belongs to."""
    out = np.empty(len(deals), np.int64)
    _hash_deals(np.ascontiguousarray(deals, np.uint64), out)
    return out % FOLDS


def _group_events(terms: Terms, folds: Array) -> EventGroups:
    """Return the groups of columns with enough hands outside of each fold."""
    counts = np.bincount(terms.columns)
    columns = np.flatnonzero(counts)
    group_of = np.zeros(len(counts), np.int16 if len(columns) < 1 << 15 else np.int64)  # small numbers sort faster
    group_of[columns] = np.arange(len(columns))
    group_number, counts = group_of[terms.columns], counts[columns]
    hands = np.repeat(np.arange(terms.hands), np.diff(terms.ends))
    in_fold = np.stack(
        [np.bincount(group_number[folds[hands] == fold], minlength=len(columns)) for fold in range(FOLDS)]
    )
    order = np.argsort(group_number, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(counts)])
    widths = np.diff(terms.starts)[order[firsts[:-1]]]
    is_enough = np.flatnonzero((counts - in_fold >= HANDS_PER_COLUMN * widths).all(axis=0))
    events = [order[firsts[group] : firsts[group + 1]] for group in is_enough]
    used_events = np.concatenate(events) if events else np.zeros(0, np.int64)
    return EventGroups(
        columns[is_enough].astype(np.int64),
        np.cumsum([0, *widths[is_enough]], dtype=np.int64),
        np.cumsum([0, *map(len, events)], dtype=np.int64),
        used_events,
        hands[used_events],
    )


@kernel(leaf=True)
def _add_grams(terms: Terms, groups: EventGroups, group: int, folds: Array, grams: Array) -> None:
    """Add up the products of a group's terms by fold, in the lower triangle of `grams` (folds, width, width)."""
    for k in range(groups.ends[group], groups.ends[group + 1]):
        values = terms.values[terms.starts[groups.events[k]] : terms.starts[groups.events[k] + 1]]
        gram = grams[folds[groups.hands[k]]]
        for a in range(values.shape[0]):
            value = values[a]
            # a term that is zero adds nothing: spare it the inner loop
            if value != 0.0:
                for b in range(a + 1):
                    gram[a, b] += value * values[b]


@kernel
def _add_cross_products(
    terms: Terms, groups: EventGroups, group: int, folds: Array, targets: Array, cross: Array
) -> None:
    """Add the products of a group's terms and the residuals to `cross` (agents, width, FITS).

    `targets` is (hands, agents, FITS): each fit's residuals of the results; a fold's own hands are not part of its fit.
    """
    remainders = np.empty(FITS)
    for k in range(groups.ends[group], groups.ends[group + 1]):
        hand = groups.hands[k]
        begin = terms.starts[groups.events[k]]
        for t in range(targets.shape[1]):
            for fit in range(FITS):
                remainders[fit] = targets[hand, t, fit]
            remainders[folds[hand]] = 0.0
            for a in range(cross.shape[1]):
                value = terms.values[begin + a]
                for fit in range(FITS):
                    cross[t, a, fit] += value * remainders[fit]


@kernel
def _subtract_group(terms: Terms, groups: EventGroups, group: int, weights: Array, targets: Array) -> None:
    """Subtract a group's terms times weights (agents, width, FITS) from the residuals of all hands."""
    subtracted = np.empty(FITS)
    for k in range(groups.ends[group], groups.ends[group + 1]):
        hand = groups.hands[k]
        begin = terms.starts[groups.events[k]]
        for t in range(targets.shape[1]):
            for fit in range(FITS):
                subtracted[fit] = 0.0
            for a in range(weights.shape[1]):
                value = terms.values[begin + a]
                for fit in range(FITS):
                    subtracted[fit] += value * weights[t, a, fit]
            for fit in range(FITS):
                targets[hand, t, fit] -= subtracted[fit]


def _fit_groups(
    terms: Terms, groups: EventGroups, folds: Array, grams: list[Array], penalty: Array, targets: Array, weights: Array
) -> None:
    """Fit every group once to the residuals of the others: add to all `weights`, and subtract from `targets`."""
    for group, (low, high) in enumerate(zip(groups.places, groups.places[1:], strict=False)):
        cross = np.zeros((targets.shape[1], high - low, FITS))
        _add_cross_products(terms, groups, group, folds, targets, cross)
        whole = grams[group].sum(axis=0)
        # products without a fold are all products less the fold's: one pass over the hands serves every fit
        systems = whole - np.concatenate([grams[group], np.zeros((1, *whole.shape))])
        systems += np.tril(systems, -1).transpose(0, 2, 1)
        before = weights[:, low:high].transpose(2, 1, 0)
        # the residuals have this group's old weights subtracted already: put them back before solving for new ones
        right = cross.transpose(2, 1, 0) + systems @ before
        diagonal = np.arange(high - low)
        systems[:, diagonal, diagonal] += penalty[:, None]
        change = np.ascontiguousarray((np.linalg.solve(systems, right) - before).transpose(2, 1, 0))
        weights[:, low:high] += change
        _subtract_group(terms, groups, group, change, targets)


def cross_fit(terms: Terms, deals: Array, threads: int = 2) -> Weights:
    """Fit weights for each fold on the hands of the others, and one set on all hands.

    Parameters: `terms` of all hands to fit on, results by agent; `deals` (hands,), each in one fold.
    """
    folds = fold_of(deals)
    groups = _group_events(terms, folds)
    grams = [np.zeros((FOLDS, width, width)) for width in np.diff(groups.places)]
    Workers(threads).map(lambda group: _add_grams(terms, groups, group, folds, grams[group]), range(len(grams)))
    targets = np.repeat(terms.results[:, :-1, None], FITS, axis=2)
    penalty = np.ones(FITS)
    for fit in range(FITS):
        is_outside = folds != fit
        if is_outside.any():
            # terms have mean zero, so the mean of the results must not be explained by them
            targets[:, :, fit] -= targets[is_outside, :, fit].mean(axis=0)
            penalty[fit] = PENALTY * targets[is_outside, :, fit].var() + 1e-9
    weights = np.zeros((targets.shape[1], int(groups.places[-1]), FITS))
    for _ in range(SWEEPS):
        _fit_groups(terms, groups, folds, grams, penalty, targets, weights)
    last_agent = -weights.sum(axis=0, keepdims=True)  # what the others win, the last one loses
    values = np.concatenate([weights, last_agent]).transpose(2, 1, 0)
    return Weights(groups.columns, groups.places[:-1], np.ascontiguousarray(values))


def subtract_fitted(terms: Terms, weights: Weights, folds: Array) -> Array:
    """Return (hands, agents) results in big blinds less the weighted terms, each hand with the weights of its fold.

    `folds` (hands,) are folds, or `FOLDS` for hands that the weights were not fitted on.
    """
    place = np.full(max(int(terms.columns.max(initial=-1)), int(weights.groups.max(initial=-1))) + 1, -1, np.int64)
    place[weights.groups] = weights.places
    results = terms.results.copy()
    subtract_terms(terms, place[terms.columns], folds, weights.values, results)
    return results


# Piece by piece


class Adjuster:
    """Estimator of the adjusted results of one table of agents, piece by piece in the order of the deals."""

    def __init__(self, game: Game, lineups: Array, fit_hands: int = FIT_HANDS, threads: int = 2) -> None:
        """`lineups` (lineups, players): the agents by position in every order that comes up."""
        self.game, self.fit_hands, self.threads = game, fit_hands, threads
        self.lineups = {tuple(map(int, lineup)): number for number, lineup in enumerate(lineups)}
        self._positions = np.argsort(np.asarray(lineups), axis=1)
        self._fit_pieces: list[PreparedHands] = []
        self._fit_count = 0
        self._weights: Weights | None = None
        self._adjusted: list[tuple[Array, Array]] = []

    def prepare(self, hands: HandRecords) -> PreparedHands:
        """Return the terms of a piece: the costly part, which changes nothing here."""
        seatings, lineup_index = np.unique(hands.seats, axis=0, return_inverse=True)
        numbers = np.array([self.lineups[tuple(map(int, lineup))] for lineup in seatings], np.int64)
        hand_terms = build_terms(hands, numbers[lineup_index.ravel()])
        by_agent = np.take_along_axis(hand_terms.results, self._positions[hand_terms.lineups], axis=1)
        return hand_terms._replace(results=by_agent), hands.deals[hands.firsts]

    def add(self, prepared: PreparedHands) -> None:
        """Take the next piece, in the order of the hands."""
        piece, deals = prepared
        fit_count = 0 if self._weights is not None else min(piece.hands, self.fit_hands - self._fit_count)
        while 0 < fit_count < piece.hands and deals[fit_count] == deals[fit_count - 1]:
            fit_count -= 1  # all hands of a deal are on one side
        if fit_count:
            self._fit_pieces.append((piece.slice(0, fit_count), deals[:fit_count]))
            self._fit_count += fit_count
        if fit_count < piece.hands:
            rest, weights = piece.slice(fit_count, piece.hands), self._fit()
            self._adjusted.append((subtract_fitted(rest, weights, np.full(rest.hands, FOLDS)), rest.lineups))

    def _fit(self) -> Weights:
        """Return the weights, fitted when they are first needed."""
        if self._weights is None:
            joined = join_terms([piece for piece, _ in self._fit_pieces])
            deals = np.concatenate([part for _, part in self._fit_pieces])
            self._weights = cross_fit(joined, deals, self.threads)
            self._fit_pieces = []
            self._adjusted.append((subtract_fitted(joined, self._weights, fold_of(deals)), joined.lineups))
        return self._weights

    def payoffs(self) -> Array:
        """Return (hands, players) the adjusted payoffs of all pieces by position, in chips."""
        if self._fit_count == 0:
            return np.zeros((0, self.game.players))
        self._fit()
        results, lineups = (np.concatenate([done[index] for done in self._adjusted]) for index in range(2))
        agent_positions = np.argsort(self._positions, axis=1)[lineups]
        return np.take_along_axis(results, agent_positions, axis=1) * self.game.big_blind


def adjust(hands: HandRecords, *, fit_hands: int = FIT_HANDS, threads: int = 2) -> Array:
    """Return the adjusted payoffs of hands of any number of tables.

    Parameters: `hands`, all hole cards known; probabilities where they are known bring the action terms.
    Returns: (hands, players) net chips by position whose mean is that of the payoffs, with less spread; imagined rows
    of a hand (`HandRecords.share`) give one row.
    """
    tables, table_number = np.unique(np.sort(hands.seats, axis=1), axis=0, return_inverse=True)
    table_number = table_number.ravel()
    adjusted, first = np.empty((len(hands.firsts), hands.game.players)), np.zeros(len(hands), np.int64)
    first[hands.firsts[1:]] = 1
    hand = np.cumsum(first)
    for table in range(len(tables)):
        rows = np.flatnonzero(table_number == table)
        rows = rows[np.argsort(hands.deals[rows], kind="stable")]
        table_hands = hands.take(rows)
        adjuster = Adjuster(hands.game, np.unique(table_hands.seats, axis=0), fit_hands, threads)
        adjuster.add(adjuster.prepare(table_hands))
        adjusted[hand[rows[table_hands.firsts]]] = adjuster.payoffs()
    return adjusted
