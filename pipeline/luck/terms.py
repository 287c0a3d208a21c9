"""Control variates of finished hands: numbers whose mean is zero whoever plays, and that move with the luck.

Hands go in (`HandRecords`); out comes a sparse row per hand. Three kinds of events give terms:

- the deal: functions of two players' starting hands less their mean over all deals;
- the cards of a street: pot x (standing after - standing before), equities and strengths and their products, by
  street, players left and raises so far (see `pipeline.luck.standings`);
- an action whose probabilities are known: pot x f(standings) x (1[action was a] - p(a)) for every label a but call,
  by actor, street, bet faced and raises.

Any weights of such terms may be taken off a result without changing its mean. Two weighted sums are taken off at once:
that of the value function "all call and check from here on", which is AIVAT (Burch and others, 2018) with the pot times
the equity as its value, and in limit hold'em for two that of weights found among typical agents, so that short matches
have good ones. `pipeline.luck.regression` finds what is left for the weights from other deals, as MIVAT does (White and
Bowling, 2009). The room is its own because only here it is decided which luck is looked at.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.cards import ranking, start_class
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.luck.records import HandRecords
from pipeline.luck.single_card import products
from pipeline.luck.standings import standings
from pipeline.rules import (
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
from pipeline.showdown import showdown_value
from pipeline.strength.matchups import matchups

__all__ = ["Terms", "take_off", "terms"]

Array = npt.NDArray[Any]

ACTION_SHAPES = 12
"""functions of the standings that each action's terms are multiplied with"""
RAISE_LEVELS = 10
"""raises in the hand that chance terms tell apart"""
BET_LEVELS = 5
"""raises on the street that action terms tell apart"""


class Terms(NamedTuple):
    """The terms of hands as sparse rows."""

    ends: Array
    """(hands + 1,) int64: where each hand's entries begin and the last one's end"""
    columns: Array
    """(entries,) int32"""
    values: Array
    """(entries,) float64"""
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
        return Terms(
            self.ends[first : last + 1] - low,
            self.columns[low:high],
            self.values[low:high],
            self.results[first:last],
            self.lineups[first:last],
        )


class _Deals(NamedTuple):
    """Functions of two players' starting hands, by class."""

    classes: Array
    """the class of two cards, [52, 52]; of one card in the first column"""
    functions: Array
    """(functions, classes, classes), each with mean zero over all deals"""


@lru_cache(maxsize=8)
def _deal_functions(game: Game) -> _Deals:
    """The deal's functions: products of up to three of the equity between the two and both strengths, and traits."""
    if game.is_holdem:
        match = matchups()
        weights, equity = match.pairs / match.pairs.sum(), match.equity
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
    raw = [e, a, b, e * e, e * a, e * b, a * a, b * b, a * b, e * e * e, a * a * b, b * b * a]
    if game.is_holdem:
        for trait in _traits():
            raw += [np.broadcast_to(trait[:, None], e.shape), np.broadcast_to(trait[None, :], e.shape)]
    return _Deals(classes, np.stack([f - (weights * f).sum() for f in raw]))


def _traits() -> list[Array]:
    """What strength alone does not tell of the 169 classes: pair, suited, high and low rank (0 to 1), closeness."""
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
    """Row card against column card of the deck in a game of one hole card, over all board cards."""
    deck, shown = game.deck, sum(game.board_cards)
    tables, size = ranking(), len(game.deck)
    equity = np.full((size, size), 0.5)
    for i in range(size):
        for j in range(size):
            boards = [k for k in range(size) if k not in (i, j)] if shown else [0]
            if i != j:
                values = [
                    [showdown_value(deck[c : c + 1], 1, deck[k : k + 1], shown, tables) for c in (i, j)] for k in boards
                ]
                equity[i, j] = np.mean([1.0 if x > y else 0.5 if x == y else 0.0 for x, y in values])
    return equity


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
def _put(at: int, column: int, value: float, columns: Array, values: Array) -> int:
    """Write an entry unless it is zero; returns where the next goes."""
    if value != 0.0:
        columns[at] = column
        values[at] = value
        return at + 1
    return at


@kernel(leaf=True)
def _street_terms(
    players: int,
    live: int,
    stake: float,
    after: Array,
    before: Array,
    guess: Array,
    moved: Array,
    at: int,
    column: int,
    columns: Array,
    values: Array,
) -> int:
    """The terms of a dealt street: changes of standings, of their products, and of equities by what stood before."""
    for i in range(2 * players):
        if i != players - 1 and live >> (i % players) & 1:
            at = _put(at, column + i, stake * (after[i] - before[i]), columns, values)
    column += 2 * players
    for i in range(moved.shape[0]):
        at = _put(at, column + i, stake * moved[i], columns, values)
    column += moved.shape[0]
    for p in range(players - 1):
        change = stake * (after[p] - before[p])
        for i in range(players - 1):
            at = _put(at, column, change * (guess[i] - 1.0 / players), columns, values)
            column += 1
        for i in range(players):
            at = _put(at, column, change * (guess[players + i] - 0.5), columns, values)
            column += 1
            for j in range(i, players):
                weight = (guess[players + i] - 0.5) * (guess[players + j] - 0.5)
                at = _put(at, column, change * weight, columns, values)
                column += 1
    return at


@kernel(leaf=True)
def _action_terms(
    own: float, mine: float, theirs: float, weight: float, at: int, column: int, columns: Array, values: Array
) -> int:
    """The terms of one label: `weight` times functions of equity, own strength and the strongest other's."""
    at = _put(at, column, weight, columns, values)
    at = _put(at, column + 1, weight * own, columns, values)
    at = _put(at, column + 2, weight * own * own, columns, values)
    at = _put(at, column + 3, weight * mine, columns, values)
    at = _put(at, column + 4, weight * theirs, columns, values)
    at = _put(at, column + 5, weight * own * theirs, columns, values)
    at = _put(at, column + 6, weight * own * mine, columns, values)
    at = _put(at, column + 7, weight * mine * theirs, columns, values)
    at = _put(at, column + 8, weight * mine * mine, columns, values)
    at = _put(at, column + 9, weight * theirs * theirs, columns, values)
    at = _put(at, column + 10, weight * own**3, columns, values)
    return _put(at, column + 11, weight * own**4, columns, values)


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


@kernel
def _write(
    rules: Array,
    big: float,
    labels: Array,
    sizes: Array,
    mixes: Array,
    lineups: Array,
    classes: Array,
    functions: Array,
    standing: tuple[Array, Array, Array, Array],
    firsts: tuple[int, int, int],
    out: tuple[Array, Array, Array, Array],
) -> int:
    """Write the terms of hands one after another; returns how many entries there are.

    `classes` (hands, players) are the starting hands, `firsts` the first columns of street and action terms and
    how many there are for each line-up.
    """
    after, before, guess, moved = standing
    ends, columns, values, results = out
    players, rounds = rules[R_PLAYERS], rules[R_ROUNDS]
    wide = 2 * players + moved.shape[2] + (players - 1) * (2 * players - 1 + players * (players + 1) // 2)
    kinds = mixes.shape[2]
    state = np.zeros(STATE_SIZE, np.int64)
    at = 0
    for i in range(labels.shape[0]):
        start(rules, state)
        first = lineups[i] * firsts[2]
        pair = 0
        for p in range(players):
            results[i, p] -= pot(rules, state) * (after[i, 0, p] - 1.0 / players)
            for q in range(p + 1, players):
                column = first + pair * functions.shape[0]
                for f in range(functions.shape[0]):
                    at = _put(at, column + f, functions[f, classes[i, p], classes[i, q]], columns, values)
                pair += 1
        raises = 0
        k = 0
        while state[S_FINISHED] == 0 and k < labels.shape[1] and labels[i, k] > 0:
            actor, street = state[S_ACTOR], state[S_ROUND]
            label = int(labels[i, k]) - 1
            if k < mixes.shape[1] and mixes[i, k, 0] == mixes[i, k, 0]:
                stake = pot(rules, state) / big
                kind = (actor * rounds + street) * 2 + (1 if to_call(rules, state) > 0 else 0)
                kind = kind * BET_LEVELS + min(state[S_RAISES], BET_LEVELS - 1)
                mine = after[i, street, players + actor] - 0.5
                theirs = _strongest_other(players, state[S_FOLDED], actor, after[i, street]) - 0.5
                own = after[i, street, actor] - 1.0 / players
                for other in range(kinds):
                    weight = (1.0 if other == label else 0.0) - mixes[i, k, other]
                    if weight != 0.0:
                        _check_down(rules, state, other, after[i, street], weight, results[i])
                        if other != CALL:
                            column = kind * (kinds - 1) + (other if other < CALL else other - 1)
                            column = first + firsts[1] + column * ACTION_SHAPES
                            at = _action_terms(own, mine, theirs, weight * stake, at, column, columns, values)
            apply(rules, state, min(label, RAISE), sizes[i, k])
            raises += 1 if label >= RAISE else 0
            k += 1
            for dealt in range(street + 1, state[S_ROUND] + 1):
                live = ((1 << players) - 1) & ~state[S_FOLDED]
                for p in range(players):
                    results[i, p] -= pot(rules, state) * (after[i, dealt, p] - before[i, dealt, p])
                column = dealt * (1 << players) + live
                column = first + firsts[0] + (column * RAISE_LEVELS + min(raises, RAISE_LEVELS - 1)) * wide
                at = _street_terms(
                    players,
                    live,
                    pot(rules, state) / big,
                    after[i, dealt],
                    before[i, dealt],
                    guess[i, dealt - 1],
                    moved[i, dealt],
                    at,
                    column,
                    columns,
                    values,
                )
        for p in range(players):
            results[i, p] /= big
        ends[i + 1] = at
    return at


def _layout(game: Game) -> tuple[int, int, int, int]:
    """How wide a street's terms are, the first columns of street and action terms, and all columns of a line-up."""
    players, kinds = game.players, len(game.labels)
    wide = 2 * players + products(players) + (players - 1) * (2 * players - 1 + players * (players + 1) // 2)
    street_at = players * (players - 1) // 2 * len(_deal_functions(game).functions)
    action_at = street_at + game.rounds * (1 << players) * RAISE_LEVELS * wide
    return wide, street_at, action_at, action_at + players * game.rounds * 2 * BET_LEVELS * (kinds - 1) * ACTION_SHAPES


def terms(hands: HandRecords, lineups: Array, *, typical: bool = True) -> Terms:
    """The terms of hands.

    Parameters: `hands`; `lineups` (hands,) int64, a number from 0 for who sat where: weights are found for each;
    `typical`: take off what the terms are worth among typical agents, where that is known for the game.
    Returns: a sparse row per hand; columns mean the same in every call with the same game.
    """
    game, players = hands.game, hands.game.players
    live = np.zeros((len(hands), game.rounds), np.int64)
    _players_left(game.rules, hands.labels, hands.sizes, live)
    standing = standings(game, hands.hole, hands.board, live, hands.streams)
    deals = _deal_functions(game)
    classes = deals.classes[hands.hole[:, :, 0], hands.hole[:, :, 1] if game.is_holdem else 0]
    mixes = hands.probabilities
    if mixes is None:
        mixes = np.empty((len(hands), 0, len(game.labels)))
    wide, street_at, action_at, block = _layout(game)
    known = (hands.labels > 0).sum(axis=1) if mixes.shape[1] else np.zeros(len(hands), np.int64)
    most = street_at + (live[:, 1:] > 0).sum(axis=1) * wide + known * (mixes.shape[2] - 1) * ACTION_SHAPES
    ends = np.zeros(len(hands) + 1, np.int64)
    columns, values = np.empty(int(most.sum()), np.int32), np.empty(int(most.sum()))
    results = np.array(hands.payoffs, np.float64)
    used = _write(
        game.rules,
        float(game.big_blind),
        hands.labels,
        hands.sizes,
        mixes,
        lineups,
        classes,
        deals.functions,
        (standing.after, standing.before, standing.guess, standing.moved),
        (street_at, action_at, block),
        (ends, columns, values, results),
    )
    found = Terms(ends, columns[:used].copy(), values[:used].copy(), results, lineups)
    weights = typical_weights(game, block, players) if typical else None
    if weights is not None:
        take_off(ends, found.columns % block, found.values, np.zeros(len(hands), np.int64), weights, results)
    return found


@kernel(leaf=True)
def take_off(ends: Array, columns: Array, values: Array, folds: Array, weights: Array, results: Array) -> None:
    """Take each hand's terms times its fold's weights (folds, columns, players) off its results.

    Columns outside of the weights are worth nothing.
    """
    for i in range(folds.shape[0]):
        for a in range(ends[i], ends[i + 1]):
            if 0 <= columns[a] < weights.shape[1]:
                for t in range(results.shape[1]):
                    results[i, t] -= values[a] * weights[folds[i], columns[a], t]


@lru_cache(maxsize=8)
def typical_weights(game: Game, block: int, players: int) -> Array | None:
    """What the terms of a line-up are worth among typical agents, (1, columns, players); None where it is not known.

    Kept in resources/luck.npz for limit hold'em for two; `cache luck` finds them again. A short match starts from them.
    """
    if game.nolimit or not game.is_holdem or players != 2:
        return None
    with (
        as_file(files("pipeline").joinpath("resources", "luck.npz")) as path,
        np.load(path, allow_pickle=False) as stored,
    ):
        weights = np.zeros((1, block, players))
        weights[0, stored["columns"]] = stored["weights"]
    return weights
