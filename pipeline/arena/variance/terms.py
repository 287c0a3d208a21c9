"""Compute the control variates of finished hands: numbers with mean zero for any agents, correlated with the luck.

Hands go in (`HandRecords`); out comes a list of events per hand, each with a few numbers (terms). Three kinds of events
have terms:

- the deal: functions of two players' starting hands less their mean over all deals (`deal_functions`);
- the cards of a street: pot x (x - its expectation), for x equities and strengths and their products, by street,
  players left, raises so far and who raised last (see `pipeline.arena.variance.equities`);
- an action whose probabilities are known: pot x f(equities) x (1[action was a] - p(a)) for every label a but call,
  by actor, street, bet faced and raises.

Any weighted sum of such terms may be subtracted from a result without changing its mean. Two need no fitting (`luck`):
that of the value function "all call and check from here on", which is AIVAT (Burch and others, 2018) with the pot times
the equity as its value, and in hold'em for two one whose weights were fitted among typical agents, for short matches.
`pipeline.arena.variance.estimator` finds the shares of these that help, and fits the remaining weights on other deals,
as MIVAT does (White and Bowling, 2009). In no-limit games the pot in the terms is reduced where little can still be
bet (`_stake`).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from pipeline.arena.variance.equities import StreetEquities, change_count, street_equities
from pipeline.arena.variance.records import HandRecords
from pipeline.poker.allin import board_counts
from pipeline.poker.cards import start_class
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    CALL,
    FOLD,
    R_NOLIMIT,
    R_PLAYERS,
    R_ROUNDS,
    R_STACK,
    RAISE,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_MAX_SPENT,
    S_RAISES,
    S_ROUND,
    STATE_SIZE,
    apply,
    pot,
    start,
    to_call,
)
from pipeline.poker.starting_hands import class_matchups
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import bundled_arrays
from pipeline.runtime.kernels import kernel

LUCK = 4
"""estimates of luck: by the check-down value that of the cards and that of the agents' dice, then by typical weights"""
ACTION_SHAPES = 12
"""functions of equities and strengths that each action has a term for"""
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
    """(hands, players): payoffs by position in big blinds"""
    luck: Array
    """(hands, LUCK, players): each estimate of the luck in `results`, with mean zero; they add up"""
    lineups: Array
    """(hands,) int64: the number of each hand's line-up (who sat where)"""

    @property
    def hands(self) -> int:
        """Return the number of hands."""
        return len(self.lineups)

    def slice(self, first: int, last: int) -> Terms:
        """Return the terms of the hands `first` to before `last`."""
        low, high = self.ends[first], self.ends[last]
        begin, end = self.starts[low], self.starts[high]
        return Terms(
            self.ends[first : last + 1] - low,
            self.columns[low:high],
            self.starts[low : high + 1] - begin,
            self.values[begin:end],
            self.results[first:last],
            self.luck[first:last],
            self.lineups[first:last],
        )


def join_terms(pieces: list[Terms]) -> Terms:
    """Join pieces one after another."""
    columns, *rest = (np.concatenate([piece[index] for piece in pieces]) for index in (1, 3, 4, 5, 6))
    ends, starts = (_chain_ends([piece[index] for piece in pieces]) for index in (0, 2))
    return Terms(ends, columns, starts, *rest)


def _chain_ends(ends: list[Array]) -> Array:
    """Join lists of ends, each of which starts from 0."""
    firsts = np.cumsum([0] + [int(part[-1]) for part in ends])
    return np.concatenate(
        [np.zeros(1, np.int64), *(part[1:] + first for part, first in zip(ends, firsts, strict=False))]
    )


# The deal: functions of two players' starting cards


class DealFunctions(NamedTuple):
    """Functions of two players' starting cards: all that is known about a deal before anybody acts."""

    classes: Array
    """the class of two cards, [52, 52]; of one card in the first column"""
    functions: Array
    """(classes, classes, functions), each with mean zero over all deals"""


@lru_cache(maxsize=8)
def deal_functions(game: Game) -> DealFunctions:
    """Return the deal's functions: products of up to three of the two's equity and both strengths, and traits."""
    if game.is_holdem:
        matchups = class_matchups()
        weights, equity = matchups.pairs / matchups.pairs.sum(), matchups.equity
        classes = np.array([[start_class(a, b) for b in range(52)] for a in range(52)])
    else:
        deck = game.deck
        classes = np.zeros((52, 52), np.int64)
        classes[deck] = np.arange(len(deck))[:, None]
        weights = (1.0 - np.eye(len(deck))) / (len(deck) * (len(deck) - 1))
        equity = _single_card_equity(game)
    strength = (weights * equity).sum(axis=1) / weights.sum(axis=1)
    e = equity - 0.5
    a, b = np.broadcast_arrays((strength - 0.5)[:, None], (strength - 0.5)[None, :])
    functions = [e, a, b, e * e, e * a, e * b, a * a, b * b, a * b, e * e * e, a * a * b, b * b * a]
    if game.is_holdem:
        for trait in _traits():
            functions += [np.broadcast_to(trait[:, None], e.shape), np.broadcast_to(trait[None, :], e.shape)]
    return DealFunctions(classes, np.stack([f - (weights * f).sum() for f in functions], axis=-1))


def _traits() -> list[Array]:
    """Return traits of the 169 classes other than strength: pair, suited, high and low rank (0 to 1), closeness."""
    row, column = np.divmod(np.arange(169), 13)
    high, low = 1.0 - np.minimum(row, column) / 12, 1.0 - np.maximum(row, column) / 12
    pair, suited = (row == column) * 1.0, (row < column) * 1.0
    return [
        pair,
        suited,
        high,
        low,
        high * high,
        low * low,
        suited * high,
        np.maximum(0.0, low - high + 0.4) - 0.4 * pair,
    ]


def _single_card_equity(game: Game) -> Array:
    """Return the equity of row card against column card of the deck in a game of one hole card, over all boards."""
    size = len(game.deck)
    equity = np.full((size, size), 0.5)
    for i, j in permutations(range(size), 2):
        wins, ties, losses = board_counts(game, [game.deck[i]], [game.deck[j]], [])
        equity[i, j] = (wins + ties / 2) / (wins + ties + losses)
    return equity


# Columns and events


class ColumnLayout(NamedTuple):
    """Places of the columns: for each line-up those of deals, then streets, then actions."""

    deal_width: int
    """numbers of a deal's event"""
    street_width: int
    """numbers of a street's event"""
    action_width: int
    """numbers of an action's event"""
    first_street: int
    """the first column of streets"""
    first_action: int
    """the first column of actions"""
    lineup_width: int
    """columns of a line-up"""


def column_layout(game: Game) -> ColumnLayout:
    """Return the layout of a game's columns."""
    players, kinds = game.players, len(game.labels)
    deal = deal_functions(game).functions.shape[2]
    street = change_count(game) + (players - 1) * (2 * players - 1 + players * (players + 1) // 2)
    action = (kinds - 1) * ACTION_SHAPES
    streets = players * (players - 1) // 2 * deal
    actions = streets + game.rounds * (1 << players) * RAISE_LEVELS * (players + 1) * street
    return ColumnLayout(
        deal, street, action, streets, actions, actions + players * game.rounds * 2 * BET_LEVELS * action
    )


class TermBuffers(NamedTuple):
    """Arrays that terms are written to, and how far they are filled."""

    columns: Array
    starts: Array
    values: Array
    used: Array
    """(2,) int64: events and numbers written"""
    whole: bool
    """whether actions that were certain have events too (of zeros), as rows of one hand need to be alike"""


@kernel
def _players_left(rules: Array, labels: Array, sizes: Array, live: Array) -> None:
    """Replay hands: write which players (bits) were left when each street was dealt, 0 where it was not."""
    state = np.zeros(STATE_SIZE, np.int64)
    all_players = (1 << rules[R_PLAYERS]) - 1
    for i in range(labels.shape[0]):
        start(rules, state)
        live[i, 0] = all_players
        street = 0
        k = 0
        while state[S_FINISHED] == 0 and k < labels.shape[1] and labels[i, k] > 0:
            apply(rules, state, min(int(labels[i, k]) - 1, RAISE), sizes[i, k])
            k += 1
            while street < state[S_ROUND]:
                street += 1
                live[i, street] = all_players & ~state[S_FOLDED]


@kernel(leaf=True)
def _begin_event(rows: TermBuffers, column: int, width: int) -> int:
    """Begin an event of `width` numbers; return the place of the first."""
    event, first = rows.used[0], rows.used[1]
    rows.columns[event] = column
    rows.starts[event + 1] = first + width
    rows.used[0] = event + 1
    rows.used[1] = first + width
    return int(first)


@kernel(leaf=True)
def _write_deal_terms(players: int, classes: Array, functions: Array, column: int, rows: TermBuffers) -> None:
    """Write the terms of a deal: functions of each two players' cards."""
    width = functions.shape[2]
    for p in range(players):
        for q in range(p + 1, players):
            first = _begin_event(rows, column, width)
            for f in range(width):
                rows.values[first + f] = functions[classes[p], classes[q], f]
            column += width


@kernel(leaf=True)
def _stake(rules: Array, state: Array) -> float:
    """Return the pot, in no-limit games reduced where little can still be bet: to 0 where all are all-in.

    Fitted weights say what later betting is worth, and the check-down value is exact once there is none. Half the
    harmonic mean of the pot and the chips that can still be bet is the pot itself with deep stacks.
    """
    total = float(pot(rules, state))
    if rules[R_NOLIMIT] == 0:
        return total
    room, largest, second = 0.0, 0.0, 0.0
    for p in range(rules[R_PLAYERS]):
        if (state[S_FOLDED] >> p) & 1 == 0:
            chips = max(0.0, float(rules[R_STACK + p] - state[S_MAX_SPENT]))
            room += chips
            second = max(second, min(chips, largest))
            largest = max(largest, chips)
    # chips that no opponent can match are not bet
    room += second - largest
    return total * room / (total + room)


@kernel(leaf=True)
def _write_street_terms(
    players: int, stake: float, changes: Array, shift: Array, second_estimate: Array, place: int, out: Array
) -> None:
    """Write the terms of a dealt street: its changes, and changes of equities times the equities before it.

    Those before are `second_estimate`: where equities are sampled, their noise must not be that of the changes.
    """
    for i in range(changes.shape[0]):
        out[place] = stake * changes[i]
        place += 1
    for p in range(players - 1):
        change = stake * shift[p]
        for i in range(players - 1):
            out[place] = change * (second_estimate[i] - 1.0 / players)
            place += 1
        for i in range(players):
            out[place] = change * (second_estimate[players + i] - 0.5)
            place += 1
            for j in range(i, players):
                out[place] = change * (second_estimate[players + i] - 0.5) * (second_estimate[players + j] - 0.5)
                place += 1


@kernel(leaf=True)
def _write_action_terms(own: float, mine: float, theirs: float, weight: float, place: int, out: Array) -> None:
    """Write the terms of one label: `weight` times functions of equity, own strength and the strongest other's."""
    out[place] = weight
    out[place + 1] = weight * own
    out[place + 2] = weight * own * own
    out[place + 3] = weight * mine
    out[place + 4] = weight * theirs
    out[place + 5] = weight * own * theirs
    out[place + 6] = weight * own * mine
    out[place + 7] = weight * mine * theirs
    out[place + 8] = weight * mine * mine
    out[place + 9] = weight * theirs * theirs
    out[place + 10] = weight * own**3
    out[place + 11] = weight * own**4


@kernel(leaf=True)
def _add_check_down(rules: Array, state: Array, label: int, equity: Array, weight: float, luck: Array) -> None:
    """Add `weight` times the value of folding, or of going on, to all players' luck, if all check and call later.

    Raising counts as calling: how a raise is answered is left to the weights.
    """
    players = rules[R_PLAYERS]
    actor = state[S_ACTOR]
    folds = label == FOLD
    equity_sum = 0.0
    players_left = 0
    for p in range(players):
        if (state[S_FOLDED] >> p) & 1 == 0 and not (folds and p == actor):
            equity_sum += equity[p]
            players_left += 1
    call = 0.0 if folds else float(to_call(rules, state))
    total = pot(rules, state) + call
    for p in range(players):
        if (state[S_FOLDED] >> p) & 1 == 0 and not (folds and p == actor):
            # a fold leaves the pot to the others: their equities are scaled to add up to one again
            share = equity[p] / equity_sum if equity_sum > 1e-9 else 1.0 / players_left
            luck[p] += weight * (total * share - (call if p == actor else 0.0))


@kernel(leaf=True)
def _strongest_other(players: int, folded: int, actor: int, equities: Array) -> float:
    """Return the largest strength among the others left."""
    best = 0.0
    for p in range(players):
        if p != actor and (folded >> p) & 1 == 0:
            best = max(best, equities[players + p])
    return best


@kernel(leaf=True)
def _write_decision_terms(
    rules: Array,
    state: Array,
    label: int,
    mix: Array,
    equities: Array,
    big_blind: float,
    first: int,
    rows: TermBuffers,
    luck: Array,
) -> None:
    """Write the terms of a decision whose probabilities are known; `first` is the first column of actions."""
    players, actor = rules[R_PLAYERS], state[S_ACTOR]
    stake = _stake(rules, state) / big_blind
    faces = to_call(rules, state) > 0
    kind = (actor * rules[R_ROUNDS] + state[S_ROUND]) * 2 + (1 if faces else 0)
    kind = kind * BET_LEVELS + min(state[S_RAISES], BET_LEVELS - 1)
    mine = equities[players + actor] - 0.5
    theirs = _strongest_other(players, state[S_FOLDED], actor, equities) - 0.5
    own = equities[actor] - 1.0 / players
    width = (mix.shape[0] - 1) * ACTION_SHAPES
    if mix[label] == 1.0 and not rows.whole:
        return
    place = _begin_event(rows, first + kind * width, width if faces else width - ACTION_SHAPES)
    for other in range(mix.shape[0]):
        # mean zero over the agent's own dice, whatever this is multiplied with that was settled before
        weight = (1.0 if other == label else 0.0) - mix[other]
        if weight != 0.0:
            _add_check_down(rules, state, other, equities, weight, luck)
        if other != CALL and (faces or other != FOLD):  # without a bet there is no fold
            _write_action_terms(own, mine, theirs, weight * stake, place, rows.values)
            place += ACTION_SHAPES


@kernel
def _write_terms(
    rules: Array,
    big_blind: float,
    played: tuple[Array, Array, Array, Array],
    classes: Array,
    functions: Array,
    by_street: StreetEquities,
    offsets: ColumnLayout,
    ends: Array,
    rows: TermBuffers,
    luck: Array,
) -> None:
    """Write the terms of hands one after another; `played` are labels, sizes, mixes and line-ups."""
    labels, sizes, mixes, lineups = played
    players = rules[R_PLAYERS]
    all_players = (1 << players) - 1
    state = np.zeros(STATE_SIZE, np.int64)
    for i in range(labels.shape[0]):
        start(rules, state)
        row = by_street.rows[i]
        equities, first = by_street.equities[row], lineups[i] * offsets.lineup_width
        for p in range(players):
            # AIVAT's correction for the deal: the pot times the equity, less its mean over all deals
            luck[i, 0, p] += pot(rules, state) * (equities[0, p] - 1.0 / players)
        _write_deal_terms(players, classes[i], functions, first, rows)
        raises = 0
        raiser = players
        k = 0
        while state[S_FINISHED] == 0 and k < labels.shape[1] and labels[i, k] > 0:
            actor, street = state[S_ACTOR], state[S_ROUND]
            label = int(labels[i, k]) - 1
            # NaN differs from itself: there the probabilities are not known
            if k < mixes.shape[1] and mixes[i, k, 0] == mixes[i, k, 0]:
                column = first + offsets.first_action
                _write_decision_terms(
                    rules, state, label, mixes[i, k], equities[street], big_blind, column, rows, luck[i, 1]
                )
            apply(rules, state, min(label, RAISE), sizes[i, k])
            if label >= RAISE:
                raises += 1
                raiser = actor
            k += 1
            for dealt in range(street + 1, state[S_ROUND] + 1):
                live = all_players & ~state[S_FOLDED]
                shift = by_street.shift[row, dealt]
                for p in range(players):
                    # and for the street: the value after the cards less that before, whose mean over the cards is zero
                    luck[i, 0, p] += pot(rules, state) * shift[p]
                column = ((dealt << players) + live) * RAISE_LEVELS + min(raises, RAISE_LEVELS - 1)
                column = first + offsets.first_street + (column * (players + 1) + raiser) * offsets.street_width
                begin = _begin_event(rows, column, offsets.street_width)
                stake = _stake(rules, state) / big_blind
                second_estimate = by_street.second_estimate[row, dealt - 1]
                _write_street_terms(
                    players, stake, by_street.changes[row, dealt], shift, second_estimate, begin, rows.values
                )
        luck[i] /= big_blind
        ends[i + 1] = rows.used[0]


def build_terms(hands: HandRecords, lineups: Array, *, typical: bool = True) -> Terms:
    """Return the terms of hands.

    Parameters: `hands`; `lineups` (hands,) int64, a number from 0 for who sat where: each has weights of its own;
    `typical`: subtract the terms times their weights among typical agents, where these are known for the game.
    Returns: events per hand; columns mean the same in every call with the same game.
    """
    game, players = hands.game, hands.game.players
    live = np.zeros((len(hands), game.rounds), np.int64)
    _players_left(game.rules, hands.labels, hands.sizes, live)
    by_street, deals, offsets = street_equities(hands, live), deal_functions(game), column_layout(game)
    classes = deals.classes[hands.hole[:, :, 0], hands.hole[:, :, 1] if game.is_holdem else 0]
    mixes = hands.probabilities
    if mixes is None:
        mixes = np.empty((len(hands), 0, len(game.labels)))
    dealt, acted = int((live[:, 1:] > 0).sum()), int((hands.labels > 0).sum()) if mixes.shape[1] else 0
    pairs = len(hands) * players * (players - 1) // 2
    events, numbers = (
        pairs + dealt + acted,
        pairs * offsets.deal_width + dealt * offsets.street_width + acted * offsets.action_width,
    )
    ends = np.zeros(len(hands) + 1, np.int64)
    columns, starts = np.empty(events, np.int64), np.zeros(events + 1, np.int64)
    rows = TermBuffers(columns, starts, np.empty(numbers), np.zeros(2, np.int64), hands.share is not None)
    results, luck = hands.payoffs / game.big_blind, np.zeros((len(hands), LUCK, players))
    played = hands.labels, hands.sizes, mixes, lineups
    _write_terms(
        game.rules, float(game.big_blind), played, classes, deals.functions, by_street, offsets, ends, rows, luck
    )
    events, numbers = (int(count) for count in rows.used)
    result = Terms(ends, columns[:events], starts[: events + 1], rows.values[:numbers], results, luck, lineups)
    if hands.share is not None:
        result = _average_imagined(result, hands.firsts, hands.share)
    weights = typical_weights(game) if typical else None
    if weights is not None:
        columns = result.columns % offsets.lineup_width
        kind = 2 + (columns >= offsets.first_action).astype(np.int64)
        add_terms(result, columns, kind, np.zeros(result.hands, np.int64), weights, result.luck)
    return result


def _average_imagined(rows: Terms, firsts: Array, share: Array) -> Terms:
    """Return the weighted means of rows that are imagined holdings of the same hands; all have the same events."""
    ends = np.append(firsts, rows.hands)
    events = np.diff(rows.ends)[firsts]
    events_of_hands = np.repeat(rows.ends[firsts] - np.cumsum(events) + events, events) + np.arange(events.sum())
    starts = np.concatenate([[0], np.cumsum(np.diff(rows.starts)[events_of_hands])])
    values = np.zeros(int(starts[-1]))
    results = np.zeros((len(firsts), rows.results.shape[1]))
    luck = np.zeros((len(firsts), *rows.luck.shape[1:]))
    first = np.concatenate([[0], np.cumsum(events)])
    _add_rows(rows, ends, share, starts[first], values, results, luck)
    return Terms(first, rows.columns[events_of_hands], starts, values, results, luck, rows.lineups[firsts])


@kernel(leaf=True)
def _add_rows(
    rows: Terms, ends: Array, share: Array, places: Array, values: Array, results: Array, luck: Array
) -> None:
    """Add the rows of each hand, times their shares, to the hand's values, results and luck."""
    for i in range(ends.shape[0] - 1):
        for row in range(ends[i], ends[i + 1]):
            begin, end = rows.starts[rows.ends[row]], rows.starts[rows.ends[row + 1]]
            for a in range(end - begin):
                values[places[i] + a] += share[row] * rows.values[begin + a]
            for t in range(results.shape[1]):
                results[i, t] += share[row] * rows.results[row, t]
                for kind in range(luck.shape[1]):
                    luck[i, kind, t] += share[row] * rows.luck[row, kind, t]


@kernel(leaf=True)
def add_terms(terms: Terms, columns: Array, kinds: Array, folds: Array, weights: Array, out: Array) -> None:
    """Add each hand's terms times its fold's weights (folds, columns, players) to `out` (hands, kinds, players).

    `columns` (events,) are those of the weights, and events with columns below 0 have none; `kinds` (events,) say where
    in `out` each event belongs.
    """
    for i in range(folds.shape[0]):
        for event in range(terms.ends[i], terms.ends[i + 1]):
            column = columns[event]
            if column < 0:
                continue
            for a in range(terms.starts[event], terms.starts[event + 1]):
                for t in range(out.shape[2]):
                    out[i, kinds[event], t] += terms.values[a] * weights[folds[i], column, t]
                column += 1


@lru_cache(maxsize=8)
def typical_weights(game: Game) -> Array | None:
    """Return the weights of a line-up's terms among typical agents, (1, columns, players); None where not known.

    Bundled for hold'em for two (resources/variance.npz, and variance_nolimit.npz for no-limit; made by
    `tools/tables.py`): results of few hands are adjusted by them.
    """
    if not game.is_holdem or game.players != 2:
        return None
    stored = bundled_arrays("pipeline.arena", "variance_nolimit.npz" if game.nolimit else "variance.npz")
    weights = np.zeros((1, column_layout(game).lineup_width, 2))
    weights[0, stored["columns"]] = stored["weights"]
    return weights
