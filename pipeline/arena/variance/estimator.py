"""Adjust results: payoffs go in, the same payoffs with most of the luck taken out and the same mean come out.

Hands come in any number of pieces, in order; adjusted payoffs are in chips by position like the payoffs. What is
subtracted is fitted on the first `FIT_HANDS` hands of each table (set of agents) and used for the later ones too. The
work on a piece (`Adjuster.prepare`) may be done in threads; the result does not depend on the pieces.

A result less numbers of mean zero times any weights has the mean of the result, as long as the weights do not depend
on the hand: so the deals are cut into `FOLDS` parts, and each part's weights are fitted on the others (cross-fitting).

First come the estimates of luck that need no fitting (`Terms.luck`), one after another, each times a share between 0
and 1: the regression coefficient of what is left of the results on the estimate, over sums of deals, shrunk towards
`PRIOR_SHARES`. A share is 0 where the estimate only added noise to the other deals, so that adjusted results do not
scatter more than plain ones, but for the noise of a few deals.

Then come the terms, with the weights of a ridge regression of the rest. Whatever happened before an event, its terms
have mean zero: so terms of different events are uncorrelated, and the regression falls apart into one for each kind of
event (a group of columns). The groups are fitted one after another, each to the residuals of those before it; more
`SWEEPS` over them would lead to the solution of the whole system, which costs a multiple and brings no more. The
penalty is that of weights of the order of one (results are in big blinds, terms are pots times changes of chances)
under noise of the results' variance. Groups that too few hands have are left out. The fitted terms have a share too:
for part f it is found on the other parts g, whose terms have weights of the parts that are neither f nor g.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.terms import LUCK, Terms, add_terms, build_terms, join_terms
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64
from pipeline.runtime.parallel import Workers

FOLDS = 5
LEFT_OUT = (*((fold,) for fold in range(FOLDS)), (), *combinations(range(FOLDS), 2))
"""by fit, the folds that it leaves out: one, none, or two"""
PENALTY = 5.0
"""the results' variance by that of a weight"""
HANDS_PER_COLUMN = 2
"""hands outside of each fold that a group needs for each of its columns"""
SWEEPS = 1
"""passes over the groups"""
PRIOR_SHARES = (0.5, 0.5, 0.25, 0.25, 0.25)
"""shares of the estimates in `Terms.luck`, and of the fitted terms, before any deal was seen"""
PRIOR_DEALS = 20
"""deals that these count for"""
PreparedHands: TypeAlias = tuple[Terms, Array]
"""the terms of a piece of hands, results by agent, and their deals"""

FIT_HANDS = 40_000
"""hands that weights are fitted on: more bring little and take time and memory"""
PIECE_HANDS = 1 << 14
"""hands whose terms, some kilobytes each, are in memory at a time once weights are fitted"""


class Weights(NamedTuple):
    """Weights of terms, in big blinds per unit, by the fits of `LEFT_OUT`."""

    groups: Array
    """(groups,) int64: the first columns of the groups that have weights, ascending"""
    places: Array
    """(groups,) int64: where the weights of each group begin"""
    values: Array
    """(fits, used columns, agents)"""


class ValueFunction(NamedTuple):
    """All that is subtracted from the results of hands."""

    shares: Array
    """(FOLDS + 1, LUCK + 1): for each fold and for later hands, of the estimates of luck and of the fitted terms"""
    weights: Weights


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
    terms: Terms, groups: EventGroups, group: int, folds: Array, used: Array, targets: Array, cross: Array
) -> None:
    """Add the products of a group's terms and the residuals to `cross` (agents, width, fits).

    `targets` is (hands, agents, fits): each fit's residuals of the results; `used` (folds, fits) is 1 where a fold is
    part of a fit, else 0.
    """
    fits = targets.shape[2]
    remainders = np.empty(fits)
    for k in range(groups.ends[group], groups.ends[group + 1]):
        hand = groups.hands[k]
        begin = terms.starts[groups.events[k]]
        for t in range(targets.shape[1]):
            for fit in range(fits):
                remainders[fit] = targets[hand, t, fit] * used[folds[hand], fit]
            for a in range(cross.shape[1]):
                value = terms.values[begin + a]
                for fit in range(fits):
                    cross[t, a, fit] += value * remainders[fit]


@kernel
def _subtract_group(terms: Terms, groups: EventGroups, group: int, weights: Array, targets: Array) -> None:
    """Subtract a group's terms times weights (agents, width, fits) from the residuals of all hands."""
    fits = targets.shape[2]
    subtracted = np.empty(fits)
    for k in range(groups.ends[group], groups.ends[group + 1]):
        hand = groups.hands[k]
        begin = terms.starts[groups.events[k]]
        for t in range(targets.shape[1]):
            for fit in range(fits):
                subtracted[fit] = 0.0
            for a in range(weights.shape[1]):
                value = terms.values[begin + a]
                for fit in range(fits):
                    subtracted[fit] += value * weights[t, a, fit]
            for fit in range(fits):
                targets[hand, t, fit] -= subtracted[fit]


def _fit_groups(
    terms: Terms,
    groups: EventGroups,
    folds: Array,
    used: Array,
    grams: list[Array],
    penalties: Array,
    targets: Array,
    weights: Array,
) -> None:
    """Fit every group once to the residuals of the others: add to all `weights`, and subtract from `targets`."""
    for group, (low, high) in enumerate(zip(groups.places, groups.places[1:], strict=False)):
        cross = np.zeros((targets.shape[1], high - low, len(LEFT_OUT)))
        _add_cross_products(terms, groups, group, folds, used, targets, cross)
        # products are added up by fold: one pass over the hands serves every fit
        systems = np.tensordot(used.T, grams[group], axes=1)
        systems += np.tril(systems, -1).transpose(0, 2, 1)
        before = weights[:, low:high].transpose(2, 1, 0)
        # the residuals have this group's old weights subtracted already: put them back before solving for new ones
        right = cross.transpose(2, 1, 0) + systems @ before
        diagonal = np.arange(high - low)
        systems[:, diagonal, diagonal] += penalties[:, None]
        change = np.ascontiguousarray((np.linalg.solve(systems, right) - before).transpose(2, 1, 0))
        weights[:, low:high] += change
        _subtract_group(terms, groups, group, change, targets)


def cross_fit(
    terms: Terms, deals: Array, shares: Array | None = None, *, penalty: float = PENALTY, threads: int = 2
) -> Weights:
    """Fit weights to what estimates of luck leave of the results.

    Parameters: `terms` of all hands to fit on, results by agent; `deals` (hands,), each in one fold; `shares`
    (fits, LUCK) of the estimates that each fit subtracts first, nothing by default.
    """
    folds = fold_of(deals)
    groups = _group_events(terms, folds)
    grams = [np.zeros((FOLDS, width, width)) for width in np.diff(groups.places)]
    Workers(threads).map(lambda group: _add_grams(terms, groups, group, folds, grams[group]), range(len(grams)))
    used = np.array([[float(fold not in left_out) for left_out in LEFT_OUT] for fold in range(FOLDS)])
    targets = np.repeat(terms.results[:, :-1, None], len(LEFT_OUT), axis=2)
    if shares is not None:
        targets -= np.einsum("hka,fk->haf", terms.luck[:, :, :-1], shares)
    penalties = np.ones(len(LEFT_OUT))
    for fit, is_used in enumerate(used.T[:, folds] > 0):
        if is_used.any():
            # terms have mean zero, so the mean of the results must not be explained by them
            targets[:, :, fit] -= targets[is_used, :, fit].mean(axis=0)
            penalties[fit] = penalty * targets[is_used, :, fit].var() + 1e-9
    weights = np.zeros((targets.shape[1], int(groups.places[-1]), len(LEFT_OUT)))
    for _ in range(SWEEPS):
        _fit_groups(terms, groups, folds, used, grams, penalties, targets, weights)
    last_agent = -weights.sum(axis=0, keepdims=True)  # what the others win, the last one loses
    values = np.concatenate([weights, last_agent]).transpose(2, 1, 0)
    return Weights(groups.columns, groups.places[:-1], np.ascontiguousarray(values))


def _share(luck: Array, rest: Array, deals: Array, prior: float) -> float:
    """Return the share of an estimate of luck (hands, agents) that is subtracted from the `rest` of the results.

    It is the regression coefficient over sums of deals, shrunk towards `prior`, which counts less where the estimate
    scatters more than the rest. More than twice the coefficient would add to the variance of these deals.
    """
    centred = rest - rest.mean(axis=0) if len(rest) else rest
    _, number = np.unique(deals, return_inverse=True)
    sums = [np.bincount(number.ravel(), column) for column in (*luck.T, *centred.T)]
    luck_sums, rest_sums = np.array(sums[: luck.shape[1]]), np.array(sums[luck.shape[1] :])
    square, rest_square = float((luck_sums**2).sum()), float((rest_sums**2).sum())
    if square <= 1e-9 * len(deals):
        return 0.0
    slope, count = float((luck_sums * rest_sums).sum()) / square, luck_sums.shape[1]
    guess = prior * min(1.0, rest_square / square)
    return max(0.0, min(1.0, 2 * slope, (count * slope + PRIOR_DEALS * guess) / (count + PRIOR_DEALS)))


def fit_value_function(terms: Terms, deals: Array, threads: int = 2) -> ValueFunction:
    """Fit shares and weights for each fold on the hands of the others, and for later hands on all."""
    folds, shares = fold_of(deals), np.zeros((len(LEFT_OUT), LUCK + 1))
    rests = []
    for fit, left_out in enumerate(LEFT_OUT):
        used, rest = ~np.isin(folds, left_out), terms.results
        for kind in range(LUCK):
            luck = terms.luck[:, kind]
            shares[fit, kind] = _share(luck[used], rest[used], deals[used], PRIOR_SHARES[kind])
            rest = rest - shares[fit, kind] * luck
        rests.append(rest)
    weights = cross_fit(terms, deals, shares[:, :LUCK], threads=threads)
    for fold in range(FOLDS):
        pairs = [
            LEFT_OUT.index((min(fold, other), max(fold, other))) if other != fold else fold for other in range(FOLDS)
        ]
        used = folds != fold
        luck = fitted_luck(terms, weights, np.array(pairs)[folds])
        shares[fold, LUCK] = _share(luck[used], rests[fold][used], deals[used], PRIOR_SHARES[LUCK])
    shares[FOLDS, LUCK] = shares[:FOLDS, LUCK].mean()
    return ValueFunction(shares[: FOLDS + 1], weights)


def fitted_luck(terms: Terms, weights: Weights, fits: Array) -> Array:
    """Return (hands, agents) the weighted terms in big blinds, each hand with the weights of its fit (hands,)."""
    place = np.full(max(int(terms.columns.max(initial=-1)), int(weights.groups.max(initial=-1))) + 1, -1, np.int64)
    place[weights.groups] = weights.places
    luck = np.zeros((terms.hands, 1, terms.results.shape[1]))
    columns = place[terms.columns]
    add_terms(terms, columns, np.zeros(len(columns), np.int64), fits, weights.values, luck)
    return luck[:, 0]


def subtract_luck(terms: Terms, value: ValueFunction, folds: Array) -> Array:
    """Return (hands, agents) results in big blinds less the luck in them, each hand by the fit of its fold.

    `folds` (hands,) are folds, or `FOLDS` for hands that nothing was fitted on.
    """
    shares = value.shares[folds]
    known = np.einsum("hka,hk->ha", terms.luck, shares[:, :LUCK])
    return terms.results - known - shares[:, LUCK:] * fitted_luck(terms, value.weights, folds)


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
        self._value: ValueFunction | None = None
        self._adjusted: list[tuple[Array, Array]] = []

    def prepare(self, hands: HandRecords) -> PreparedHands:
        """Return the terms of a piece: the costly part, which changes nothing here."""
        seatings, lineup_index = np.unique(hands.seats, axis=0, return_inverse=True)
        numbers = np.array([self.lineups[tuple(map(int, lineup))] for lineup in seatings], np.int64)
        hand_terms = build_terms(hands, numbers[lineup_index.ravel()])
        positions = self._positions[hand_terms.lineups]
        results = np.take_along_axis(hand_terms.results, positions, axis=1)
        luck = np.take_along_axis(hand_terms.luck, positions[:, None], axis=2)
        return hand_terms._replace(results=results, luck=luck), hands.deals[hands.firsts]

    def add(self, prepared: PreparedHands) -> None:
        """Take the next piece, in the order of the hands."""
        piece, deals = prepared
        fit_count = 0 if self._value is not None else min(piece.hands, self.fit_hands - self._fit_count)
        while 0 < fit_count < piece.hands and deals[fit_count] == deals[fit_count - 1]:
            fit_count -= 1  # all hands of a deal are on one side
        if fit_count:
            self._fit_pieces.append((piece.slice(0, fit_count), deals[:fit_count]))
            self._fit_count += fit_count
        if fit_count < piece.hands:
            rest, value = piece.slice(fit_count, piece.hands), self._fit()
            self._adjusted.append((subtract_luck(rest, value, np.full(rest.hands, FOLDS)), rest.lineups))

    def _fit(self) -> ValueFunction:
        """Return the value function, fitted when it is first needed."""
        if self._value is None:
            joined = join_terms([piece for piece, _ in self._fit_pieces])
            deals = np.concatenate([part for _, part in self._fit_pieces])
            self._value = fit_value_function(joined, deals, self.threads)
            self._fit_pieces = []
            self._adjusted.append((subtract_luck(joined, self._value, fold_of(deals)), joined.lineups))
        return self._value

    def payoffs(self) -> Array:
        """Return (hands, players) the adjusted payoffs of all pieces by position, in chips."""
        if self._fit_count == 0:
            return np.zeros((0, self.game.players))
        self._fit()
        results, lineups = (np.concatenate([part[index] for part in self._adjusted]) for index in range(2))
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
        adjuster = Adjuster(hands.game, np.unique(hands.seats[rows], axis=0), fit_hands, threads)
        firsts = []
        for piece_rows in np.split(rows, _cuts(hands.deals[rows])):
            piece = hands.take(piece_rows)
            firsts.append(hand[piece_rows[piece.firsts]])
            adjuster.add(adjuster.prepare(piece))
        adjusted[np.concatenate(firsts)] = adjuster.payoffs()
    return adjusted


def _cuts(deals: Array) -> Array:
    """Return where to cut rows in the order of their deals into pieces of about `PIECE_HANDS`, between deals."""
    changes = np.flatnonzero(deals[1:] != deals[:-1]) + 1
    nearest = np.searchsorted(changes, np.arange(PIECE_HANDS, len(deals), PIECE_HANDS))
    return np.unique(changes[nearest[nearest < len(changes)]])
