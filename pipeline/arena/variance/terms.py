"""Control variates of finished hands: numbers whose mean is zero whoever plays, and that move with the luck.

Hands go in (`HandRecords`); out comes a list of events per hand, each with a few numbers. Three kinds give terms:

- the deal: functions of two players' starting hands less their mean over all deals;
- the cards of a street: pot x (standing after - its expectation), equities and strengths and their products, by
  street, players left, raises so far and who raised last (see `pipeline.arena.variance.standings`);
- an action whose probabilities are known: pot x f(standings) x (1[action was a] - p(a)) for every label a but call,
  by actor, street, bet faced and raises.

Any weights of such terms may be taken off a result without changing its mean. Two weighted sums are taken off at once:
that of the value function "all call and check from here on", which is AIVAT (Burch and others, 2018) with the pot times
the equity as its value, and in limit hold'em for two that of weights found among typical agents, so that short matches
have good ones. `pipeline.arena.variance.regression` finds what is left for the weights from other deals, as MIVAT does
(White and Bowling, 2009). The room is its own because only here it is decided which luck is looked at.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pipeline.arena.variance.deals import deal_functions
from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.standings import Standings, changes, standings
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    CALL,
    FOLD,
    R_PLAYERS,
    R_ROUNDS,
    RAISE,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_RAISES,
    S_ROUND,
    STATE_SIZE,
    apply,
    pot,
    start,
    to_call,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import bundled_arrays
from pipeline.runtime.kernels import kernel

ACTION_SHAPES = 12
"""functions of the standings that each action's terms are multiplied with"""
RAISE_LEVELS = 10
"""raises in the hand that chance terms tell apart"""
BET_LEVELS = 5
"""raises on the street that action terms tell apart"""


class Terms(NamedTuple):
    """The terms of hands: each hand has events, each event some numbers in columns side by side."""

    ends: Array
    """(hands + 1,) int64: where each hand's events begin and the last one's end"""
    columns: Array
    """(events,) int64: the first column of each event"""
    starts: Array
    """(events + 1,) int64: where each event's numbers begin and the last one's end"""
    values: Array
    """(numbers,) float64"""
    results: Array
    """(hands, players): payoffs by position in big blinds, the check-down terms already taken off"""
    lineups: Array
    """(hands,) int64: who sat where"""

    @property
    def hands(self) -> int:
        """How many hands there are."""
        return len(self.lineups)

    def slice(self, first: int, last: int) -> Terms:
        """The terms of the hands `first` to before `last`."""
        low, high = self.ends[first], self.ends[last]
        begin, end = self.starts[low], self.starts[high]
        return Terms(
            self.ends[first : last + 1] - low,
            self.columns[low:high],
            self.starts[low : high + 1] - begin,
            self.values[begin:end],
            self.results[first:last],
            self.lineups[first:last],
        )


def join(pieces: list[Terms]) -> Terms:
    """Pieces one after another."""
    columns, values, results, lineups = (np.concatenate([piece[at] for piece in pieces]) for at in (1, 3, 4, 5))
    ends, starts = (_chained([piece[at] for piece in pieces]) for at in (0, 2))
    return Terms(ends, columns, starts, values, results, lineups)


def _chained(ends: list[Array]) -> Array:
    """Lists of ends, each from 0 on, as one."""
    firsts = np.cumsum([0] + [int(one[-1]) for one in ends])
    return np.concatenate([np.zeros(1, np.int64), *(one[1:] + at for one, at in zip(ends, firsts, strict=False))])


class ColumnLayout(NamedTuple):
    """Which columns stand for what: for each line-up deals, then streets, then actions."""

    deal: int
    """numbers of a deal's event"""
    street: int
    """numbers of a street's event"""
    action: int
    """numbers of an action's event"""
    streets: int
    """the first column of streets"""
    actions: int
    """the first column of actions"""
    lineup: int
    """columns of a line-up"""


def layout(game: Game) -> ColumnLayout:
    """The columns of a game."""
    players, kinds = game.players, len(game.labels)
    deal = deal_functions(game).functions.shape[2]
    street = changes(game) + (players - 1) * (2 * players - 1 + players * (players + 1) // 2)
    action = (kinds - 1) * ACTION_SHAPES
    streets = players * (players - 1) // 2 * deal
    actions = streets + game.rounds * (1 << players) * RAISE_LEVELS * (players + 1) * street
    return ColumnLayout(
        deal, street, action, streets, actions, actions + players * game.rounds * 2 * BET_LEVELS * action
    )


class Rows(NamedTuple):
    """Where terms are written, and how far."""

    columns: Array
    starts: Array
    values: Array
    used: Array
    """(2,) int64: events and numbers written"""
    whole: bool
    """whether actions that were certain have events too (of zeros), as rows of one hand need to be alike"""


@kernel
def _players_left(rules: Array, labels: Array, sizes: Array, live: Array) -> None:
    """Replay hands: which players (bits) were left when each street was dealt, 0 where it was not."""
    state = np.zeros(STATE_SIZE, np.int64)
    everybody = (1 << rules[R_PLAYERS]) - 1
    for i in range(labels.shape[0]):
        start(rules, state)
        live[i, 0] = everybody
        street = 0
        k = 0
        while state[S_FINISHED] == 0 and k < labels.shape[1] and labels[i, k] > 0:
            apply(rules, state, min(int(labels[i, k]) - 1, RAISE), sizes[i, k])
            k += 1
            while street < state[S_ROUND]:
                street += 1
                live[i, street] = everybody & ~state[S_FOLDED]


@kernel(leaf=True)
def _begin(rows: Rows, column: int, width: int) -> int:
    """Begin an event of `width` numbers; returns where the first goes."""
    event, at = rows.used[0], rows.used[1]
    rows.columns[event] = column
    rows.starts[event + 1] = at + width
    rows.used[0] = event + 1
    rows.used[1] = at + width
    return int(at)


@kernel(leaf=True)
def _deal_terms(players: int, classes: Array, functions: Array, column: int, rows: Rows) -> None:
    """The terms of a deal: functions of each two players' cards."""
    width = functions.shape[2]
    for p in range(players):
        for q in range(p + 1, players):
            at = _begin(rows, column, width)
            for f in range(width):
                rows.values[at + f] = functions[classes[p], classes[q], f]
            column += width


@kernel(leaf=True)
def _street_terms(players: int, stake: float, moved: Array, shift: Array, guess: Array, at: int, out: Array) -> None:
    """The terms of a dealt street: what moved, and changes of equities by what stood before."""
    for i in range(moved.shape[0]):
        out[at] = stake * moved[i]
        at += 1
    for p in range(players - 1):
        change = stake * shift[p]
        for i in range(players - 1):
            out[at] = change * (guess[i] - 1.0 / players)
            at += 1
        for i in range(players):
            out[at] = change * (guess[players + i] - 0.5)
            at += 1
            for j in range(i, players):
                out[at] = change * (guess[players + i] - 0.5) * (guess[players + j] - 0.5)
                at += 1


@kernel(leaf=True)
def _action_terms(own: float, mine: float, theirs: float, weight: float, at: int, out: Array) -> None:
    """The terms of one label: `weight` times functions of equity, own strength and the strongest other's."""
    out[at] = weight
    out[at + 1] = weight * own
    out[at + 2] = weight * own * own
    out[at + 3] = weight * mine
    out[at + 4] = weight * theirs
    out[at + 5] = weight * own * theirs
    out[at + 6] = weight * own * mine
    out[at + 7] = weight * mine * theirs
    out[at + 8] = weight * mine * mine
    out[at + 9] = weight * theirs * theirs
    out[at + 10] = weight * own**3
    out[at + 11] = weight * own**4


@kernel(leaf=True)
def _check_down(rules: Array, state: Array, label: int, equity: Array, weight: float, results: Array) -> None:
    """Take `weight` times the value of folding, or of going on, off everybody's result, if all check and call later.

    Raising counts as calling: how a raise is answered is left to the weights.
    """
    players = rules[R_PLAYERS]
    actor = state[S_ACTOR]
    folds = label == FOLD
    left = 0.0
    count = 0
    for p in range(players):
        if (state[S_FOLDED] >> p) & 1 == 0 and not (folds and p == actor):
            left += equity[p]
            count += 1
    call = 0.0 if folds else float(to_call(rules, state))
    total = pot(rules, state) + call
    for p in range(players):
        if (state[S_FOLDED] >> p) & 1 == 0 and not (folds and p == actor):
            share = equity[p] / left if left > 1e-9 else 1.0 / count
            results[p] -= weight * (total * share - (call if p == actor else 0.0))


@kernel(leaf=True)
def _strongest_other(players: int, folded: int, actor: int, standing: Array) -> float:
    """The largest strength among the others left."""
    best = 0.0
    for p in range(players):
        if p != actor and (folded >> p) & 1 == 0:
            best = max(best, standing[players + p])
    return best


@kernel(leaf=True)
def _decision_terms(
    rules: Array,
    state: Array,
    label: int,
    mix: Array,
    standing: Array,
    big: float,
    first: int,
    rows: Rows,
    results: Array,
) -> None:
    """The terms of one decision whose mix is known; `first` is the first column of actions."""
    players, actor = rules[R_PLAYERS], state[S_ACTOR]
    stake = pot(rules, state) / big
    faces = to_call(rules, state) > 0
    kind = (actor * rules[R_ROUNDS] + state[S_ROUND]) * 2 + (1 if faces else 0)
    kind = kind * BET_LEVELS + min(state[S_RAISES], BET_LEVELS - 1)
    mine = standing[players + actor] - 0.5
    theirs = _strongest_other(players, state[S_FOLDED], actor, standing) - 0.5
    own = standing[actor] - 1.0 / players
    width = (mix.shape[0] - 1) * ACTION_SHAPES
    if mix[label] == 1.0 and not rows.whole:
        return
    at = _begin(rows, first + kind * width, width if faces else width - ACTION_SHAPES)
    for other in range(mix.shape[0]):
        weight = (1.0 if other == label else 0.0) - mix[other]
        if weight != 0.0:
            _check_down(rules, state, other, standing, weight, results)
        if other != CALL and (faces or other != FOLD):  # nobody folds without a bet
            _action_terms(own, mine, theirs, weight * stake, at, rows.values)
            at += ACTION_SHAPES


@kernel
def _write(
    rules: Array,
    big: float,
    played: tuple[Array, Array, Array, Array],
    classes: Array,
    functions: Array,
    stood: Standings,
    at: ColumnLayout,
    ends: Array,
    rows: Rows,
    results: Array,
) -> None:
    """Write the terms of hands one after another; `played` are labels, sizes, mixes and line-ups."""
    labels, sizes, mixes, lineups = played
    players = rules[R_PLAYERS]
    everybody = (1 << players) - 1
    state = np.zeros(STATE_SIZE, np.int64)
    for i in range(labels.shape[0]):
        start(rules, state)
        row = stood.rows[i]
        standing, first = stood.standing[row], lineups[i] * at.lineup
        for p in range(players):
            results[i, p] -= pot(rules, state) * (standing[0, p] - 1.0 / players)
        _deal_terms(players, classes[i], functions, first, rows)
        raises = 0
        raiser = players
        k = 0
        while state[S_FINISHED] == 0 and k < labels.shape[1] and labels[i, k] > 0:
            actor, street = state[S_ACTOR], state[S_ROUND]
            label = int(labels[i, k]) - 1
            if k < mixes.shape[1] and mixes[i, k, 0] == mixes[i, k, 0]:
                column = first + at.actions
                _decision_terms(rules, state, label, mixes[i, k], standing[street], big, column, rows, results[i])
            apply(rules, state, min(label, RAISE), sizes[i, k])
            if label >= RAISE:
                raises += 1
                raiser = actor
            k += 1
            for dealt in range(street + 1, state[S_ROUND] + 1):
                live = everybody & ~state[S_FOLDED]
                shift = stood.shift[row, dealt]
                for p in range(players):
                    results[i, p] -= pot(rules, state) * shift[p]
                column = ((dealt << players) + live) * RAISE_LEVELS + min(raises, RAISE_LEVELS - 1)
                column = first + at.streets + (column * (players + 1) + raiser) * at.street
                begin = _begin(rows, column, at.street)
                stake = pot(rules, state) / big
                guess = stood.guess[row, dealt - 1]
                _street_terms(players, stake, stood.moved[row, dealt], shift, guess, begin, rows.values)
        for p in range(players):
            results[i, p] /= big
        ends[i + 1] = rows.used[0]


def terms(hands: HandRecords, lineups: Array, *, typical: bool = True) -> Terms:
    """The terms of hands.

    Parameters: `hands`; `lineups` (hands,) int64, a number from 0 for who sat where: weights are found for each;
    `typical`: take off what the terms are worth among typical agents, where that is known for the game.
    Returns: events per hand; columns mean the same in every call with the same game.
    """
    game, players = hands.game, hands.game.players
    live = np.zeros((len(hands), game.rounds), np.int64)
    _players_left(game.rules, hands.labels, hands.sizes, live)
    stood, deals, at = standings(hands, live), deal_functions(game), layout(game)
    classes = deals.classes[hands.hole[:, :, 0], hands.hole[:, :, 1] if game.is_holdem else 0]
    mixes = hands.probabilities
    if mixes is None:
        mixes = np.empty((len(hands), 0, len(game.labels)))
    dealt, acted = int((live[:, 1:] > 0).sum()), int((hands.labels > 0).sum()) if mixes.shape[1] else 0
    pairs = len(hands) * players * (players - 1) // 2
    events, numbers = pairs + dealt + acted, pairs * at.deal + dealt * at.street + acted * at.action
    ends = np.zeros(len(hands) + 1, np.int64)
    columns, starts = np.empty(events, np.int64), np.zeros(events + 1, np.int64)
    rows = Rows(columns, starts, np.empty(numbers), np.zeros(2, np.int64), hands.share is not None)
    results = np.array(hands.payoffs, np.float64)
    played = hands.labels, hands.sizes, mixes, lineups
    _write(game.rules, float(game.big_blind), played, classes, deals.functions, stood, at, ends, rows, results)
    events, numbers = (int(count) for count in rows.used)
    found = Terms(ends, columns[:events], starts[: events + 1], rows.values[:numbers], results, lineups)
    if hands.share is not None:
        found = _means(found, hands.firsts, hands.share)
    weights = typical_weights(game) if typical else None
    if weights is not None:
        take_off(found, found.columns % at.lineup, np.zeros(found.hands, np.int64), weights, found.results)
    return found


def _means(rows: Terms, firsts: Array, share: Array) -> Terms:
    """The weighted means of rows that are imagined holdings of the same hands; all have the same events."""
    ends = np.append(firsts, rows.hands)
    events = np.diff(rows.ends)[firsts]
    which = np.repeat(rows.ends[firsts] - np.cumsum(events) + events, events) + np.arange(events.sum())
    starts = np.concatenate([[0], np.cumsum(np.diff(rows.starts)[which])])
    values = np.zeros(int(starts[-1]))
    results = np.zeros((len(firsts), rows.results.shape[1]))
    first = np.concatenate([[0], np.cumsum(events)])
    _add_rows(rows, ends, share, starts[first], values, results)
    return Terms(first, rows.columns[which], starts, values, results, rows.lineups[firsts])


@kernel(leaf=True)
def _add_rows(rows: Terms, ends: Array, share: Array, places: Array, values: Array, results: Array) -> None:
    """Add the rows of each hand, times their shares, to the hand's values and results."""
    for i in range(ends.shape[0] - 1):
        for row in range(ends[i], ends[i + 1]):
            begin, end = rows.starts[rows.ends[row]], rows.starts[rows.ends[row + 1]]
            for a in range(end - begin):
                values[places[i] + a] += share[row] * rows.values[begin + a]
            for t in range(results.shape[1]):
                results[i, t] += share[row] * rows.results[row, t]


@kernel(leaf=True)
def take_off(terms: Terms, columns: Array, folds: Array, weights: Array, results: Array) -> None:
    """Take each hand's terms times its fold's weights (folds, columns, players) off its results.

    `columns` (events,) are those of the weights; events with columns below 0 are worth nothing.
    """
    for i in range(folds.shape[0]):
        for event in range(terms.ends[i], terms.ends[i + 1]):
            column = columns[event]
            if column < 0:
                continue
            for a in range(terms.starts[event], terms.starts[event + 1]):
                for t in range(results.shape[1]):
                    results[i, t] -= terms.values[a] * weights[folds[i], column, t]
                column += 1


@lru_cache(maxsize=8)
def typical_weights(game: Game) -> Array | None:
    """What the terms of a line-up are worth among typical agents, (1, columns, players); None where it is not known.

    Bundled for limit hold'em for two (resources/variance.npz, made by `tools/tables.py`): a short match starts from
    them.
    """
    if game.nolimit or not game.is_holdem or game.players != 2:
        return None
    stored = bundled_arrays("pipeline.arena", "variance.npz")
    weights = np.zeros((1, layout(game).lineup, 2))
    weights[0, stored["columns"]] = stored["weights"]
    return weights
