"""Adjusted results: payoffs with most of the luck taken out, and the same mean.

Hands in any number of pieces go in, in order; adjusted payoffs come out, in chips by position like the payoffs. The
first `FIT_HANDS` hands of each table (set of agents) find the weights, each deal's from other deals; later hands use
these weights. The work on a piece (`Adjuster.prepare`) may be done in threads; what comes out does not depend on the
pieces.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.regression import FOLDS, Weights, cross_fit, fold_of, less
from pipeline.arena.variance.terms import Terms, join, terms
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array

Prepared: TypeAlias = tuple[Terms, Array]
"""the terms of a piece of hands, results by agent, and their deals"""

FIT_HANDS = 40_000
"""hands that weights are found from: more bring little and take time and memory"""


class Adjuster:
    """Adjusts the results of one table of agents, piece by piece; hands come in the order of their deals."""

    def __init__(self, game: Game, lineups: Array, fit_hands: int = FIT_HANDS, threads: int = 2) -> None:
        """`lineups` (lineups, players): the agents by position in every order that comes up."""
        self.game, self.fit_hands, self.threads = game, fit_hands, threads
        self.lineups = {tuple(map(int, lineup)): number for number, lineup in enumerate(lineups)}
        self._positions = np.argsort(np.asarray(lineups), axis=1)
        self._waiting: list[Prepared] = []
        self._kept = 0
        self._weights: Weights | None = None
        self._done: list[tuple[Array, Array]] = []

    def prepare(self, hands: HandRecords) -> Prepared:
        """The terms of a piece: the costly part, which changes nothing here."""
        found, number = np.unique(hands.seats, axis=0, return_inverse=True)
        numbers = np.array([self.lineups[tuple(map(int, lineup))] for lineup in found], np.int64)
        made = terms(hands, numbers[number.ravel()])
        by_agent = np.take_along_axis(made.results, self._positions[made.lineups], axis=1)
        return made._replace(results=by_agent), hands.deals[hands.firsts]

    def add(self, prepared: Prepared) -> None:
        """Take the next piece, in the order of the hands."""
        piece, deals = prepared
        room = 0 if self._weights is not None else min(piece.hands, self.fit_hands - self._kept)
        while 0 < room < piece.hands and deals[room] == deals[room - 1]:
            room -= 1  # all hands of a deal are on one side
        if room:
            self._waiting.append((piece.slice(0, room), deals[:room]))
            self._kept += room
        if room < piece.hands:
            rest, weights = piece.slice(room, piece.hands), self._fitted()
            self._done.append((less(rest, weights, np.full(rest.hands, FOLDS)), rest.lineups))

    def _fitted(self) -> Weights:
        """The weights, found when they are first needed."""
        if self._weights is None:
            joined = join([piece for piece, _ in self._waiting])
            deals = np.concatenate([part for _, part in self._waiting])
            self._weights = cross_fit(joined, deals, self.threads)
            self._waiting = []
            self._done.append((less(joined, self._weights, fold_of(deals)), joined.lineups))
        return self._weights

    def payoffs(self) -> Array:
        """(hands, players): the adjusted payoffs of all pieces by position, in chips."""
        if self._kept == 0:
            return np.zeros((0, self.game.players))
        self._fitted()
        results, lineups = (np.concatenate([done[at] for done in self._done]) for at in range(2))
        back = np.argsort(self._positions, axis=1)[lineups]
        return np.take_along_axis(results, back, axis=1) * self.game.big_blind


def adjust(hands: HandRecords, *, fit_hands: int = FIT_HANDS, threads: int = 2) -> Array:
    """The adjusted payoffs of hands of any number of tables.

    Parameters: `hands`, all hole cards known; probabilities where they are known bring the action terms.
    Returns: (hands, players) net chips by position whose mean is that of the payoffs, with less spread; imagined rows
    of a hand (`HandRecords.share`) give one row.
    """
    tables, number = np.unique(np.sort(hands.seats, axis=1), axis=0, return_inverse=True)
    number = number.ravel()
    adjusted, first = np.empty((len(hands.firsts), hands.game.players)), np.zeros(len(hands), np.int64)
    first[hands.firsts[1:]] = 1
    hand = np.cumsum(first)
    for table in range(len(tables)):
        rows = np.flatnonzero(number == table)
        rows = rows[np.argsort(hands.deals[rows], kind="stable")]
        one = hands.take(rows)
        adjuster = Adjuster(hands.game, np.unique(one.seats, axis=0), fit_hands, threads)
        adjuster.add(adjuster.prepare(one))
        adjusted[hand[rows[one.firsts]]] = adjuster.payoffs()
    return adjusted
