"""How the players of a hand stand on each street: chances to win at the showdown, and what the next cards did to them.

Hands with all hole cards and the board go in; for every street come out each player's equity (the share of the pot when
all who are left see the showdown) and strength (the chance against one more random hand), and by how much these and
their products moved against their expectation when the street was dealt.

Three ways lead there. Two hands of hold'em are enumerated (`two_hands`), once for all hands of a deal. With three
players and more equities and strengths are means of random run-outs (`many_hands`). Games of one hole card are
enumerated throughout (`single_card`). The room chooses the way, and is where hands of one deal are found.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from pipeline.arena.variance import many_hands, two_hands
from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.single_card import stand_exactly
from pipeline.poker.cards import ranking, start_class
from pipeline.poker.game import Game
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.rows import STRENGTH
from pipeline.poker.strength.win_counts import ONE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel


class Standings(NamedTuple):
    """Equity of each player, then strength of each player (2 x players numbers), at each street that was dealt.

    Hands of one deal may share a row.
    """

    rows: Array
    """(hands,) int64: the row of each hand in the arrays below"""
    standing: Array
    """(rows, rounds, 2 players): when the street is dealt, among the players then left"""
    guess: Array
    """(rows, rounds, 2 players): the same; where `standing` is estimated, a second estimate with luck of its own"""
    shift: Array
    """(rows, rounds, players): how the dealt street changed each equity among the players left, with mean zero"""
    moved: Array
    """(rows, rounds, changes): standings and their products after the street, less their expectation before it"""


def changes(game: Game) -> int:
    """How many numbers `Standings.moved` has: the standings but the last player's equity, and their products."""
    if game.is_holdem and game.players == 2:
        return two_hands.CHANGES
    return (2 * game.players - 1) * (game.players + 1)


def supports(game: Game) -> bool:
    """Whether results of a game can be adjusted: hold'em, and games of one hole card and at most one board card."""
    return game.is_holdem or (game.hole_cards == 1 and sum(game.board_cards) <= 1)


@cache
def _start_strengths() -> Array:
    """(52, 52): the strength of two cards before the flop."""
    by_class = preflop_rows().view(STRENGTH)["ehs"].reshape(-1) / ONE
    found = np.zeros((52, 52))
    for first in range(52):
        for second in range(52):
            if first != second:
                found[first, second] = by_class[start_class(first, second)]
    return found


@kernel(leaf=True)
def _share_rows(deals: Array, hole: Array, board: Array, last: Array, rows: Array, deepest: Array) -> int:
    """Number the rows: hands side by side with the same cards share one, worked out from the hand that went furthest.

    Writes each hand's row, and each row's hand to `deepest`; returns how many rows there are.
    """
    count = 0
    for i in range(len(deals)):
        same = i > 0 and deals[i] == deals[i - 1]
        if same:
            other = deepest[count - 1]
            for p in range(2):
                same = same and hole[i, p, 0] == hole[other, p, 0] and hole[i, p, 1] == hole[other, p, 1]
            street = min(last[i], last[other])
            for k in range(street + 2 if street > 0 else 0):
                same = same and board[i, k] == board[other, k]
        if not same:
            deepest[count] = i
            count += 1
        elif last[i] > last[deepest[count - 1]]:
            deepest[count - 1] = i
        rows[i] = count - 1
    return count


def _stand_two(hands: HandRecords, live: Array) -> Standings:
    """Two hands of hold'em."""
    last = (live > 0).sum(axis=1) - 1
    rows, deepest = np.empty(len(hands), np.int64), np.empty(len(hands), np.int64)
    count = _share_rows(hands.deals, hands.hole, hands.board, last, rows, deepest)
    deepest = deepest[:count]
    first = np.searchsorted(rows, np.arange(count))  # its stream: which hand goes furthest depends on the play
    hole = np.ascontiguousarray(hands.hole[deepest])
    board = np.ascontiguousarray(hands.board[deepest])
    start = _start_strengths()[hole[:, :, 0], hole[:, :, 1]]
    standing, moved = two_hands.stand(hole, board, last[deepest], hands.streams[first], start)
    shift = np.zeros((count, live.shape[1], 2))
    shift[:, 1:, 0] = moved[:, 1:, 0]
    shift[:, 1:, 1] = -moved[:, 1:, 0]
    return Standings(rows, standing, standing, shift, moved)


def standings(hands: HandRecords, live: Array) -> Standings:
    """How the players of each hand stood on every street.

    Parameters: `live` (hands, rounds) int64, a bit for each player left when the street was dealt, 0 where it was not.
    """
    game, players = hands.game, hands.game.players
    if not supports(game):
        raise PipelineError(
            f"{game.name}: results are adjusted in hold'em and in games of one hole card and at most one board card"
        )
    if game.is_holdem and players == 2:
        return _stand_two(hands, live)
    shape = (*live.shape, 2 * players)
    standing, before = np.zeros(shape), np.zeros(shape)
    moved = np.zeros((*live.shape, changes(game)))
    linear = 2 * players - 1
    guess = standing
    if game.is_holdem:
        guess = np.zeros(shape)
        many_hands.stand(hands, live, many_hands.Found(standing, before, guess, moved[:, :, linear:]))
    else:
        found = standing, before, moved[:, :, linear:]
        stand_exactly(game.rules, game.deck, hands.hole, hands.board, live, ranking(), found)
    change = np.where(live[:, :, None] > 0, standing - before, 0.0)
    change[:, 0] = 0.0
    moved[:, :, :linear] = np.delete(change, players - 1, axis=2)
    rows = np.arange(len(hands), dtype=np.int64)
    return Standings(rows, standing, guess, np.ascontiguousarray(change[:, :, :players]), moved)
