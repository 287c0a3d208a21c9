"""All-in expectations: what each player wins on average over the boards still to come, all hole cards known.

Some servers settle a hand whose players are all-in before the last street by this expectation instead of by the board
that was dealt. `expected_payoffs` is exact: it walks over every board that completes the cards lying open, except that
two hold'em hands before the flop (two million boards) are looked up in `headsup`. It stands between the rules and the
log lines because both the plain verdict of `acpc` and the byte kernel of `ingest` ask it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.poker.cards import FLUSH_BITS, NO_CARD, NO_SUITS, Ranking, parse_cards, ranking, sum_value
from pipeline.poker.game import State
from pipeline.poker.headsup import BOARDS, HeadsUp, headsup, matchup
from pipeline.poker.rules import (
    MAX_PLAYERS,
    R_BOARD,
    R_HOLE,
    R_PLAYERS,
    R_RANKS,
    R_ROUNDS,
    R_SUITS,
    S_FOLDED,
    settle,
)
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

MOST_BOARD = 5
OUTCOMES = 27
"""who may beat whom among three players"""


class BoardRoom(NamedTuple):
    """Arrays that `expected_payoffs` works in, one set per thread."""

    deck: Array
    """the cards that may still come"""
    picks: Array
    """indices into the deck of the cards drawn, one per depth"""
    sums: Array
    """the open board's keys plus those of the cards drawn so far, one per depth"""
    board: Array
    held: Array
    """per player: NO_SUITS plus the keys of the hole cards"""
    values: Array
    outcomes: Array
    """boards by who beats whom, for two or three players"""
    due: Array
    mean: Array
    """the answer: net chips per player"""
    headsup: HeadsUp
    """results of two hands before the flop, shared by all threads"""


def board_room() -> BoardRoom:
    """A fresh set of working arrays."""
    return BoardRoom(
        deck=np.zeros(52, dtype=np.uint8),
        picks=np.zeros(MOST_BOARD + 1, dtype=np.int64),
        sums=np.zeros(MOST_BOARD + 1, dtype=np.int64),
        board=np.zeros(MOST_BOARD, dtype=np.uint8),
        held=np.zeros(MAX_PLAYERS, dtype=np.int64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
        outcomes=np.zeros(OUTCOMES, dtype=np.int64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
        mean=np.zeros(MAX_PLAYERS, dtype=np.float64),
        headsup=headsup(),
    )


@kernel(leaf=True)
def _unseen(rules: Array, hole: Array, board: Array, seen: int, deck: Array) -> int:
    """Write the cards that nobody holds and that do not lie open to `deck`; how many there are."""
    count = 0
    for rank in range(13 - rules[R_RANKS], 13):
        for suit in range(4 - rules[R_SUITS], 4):
            card = 4 * rank + suit
            free = True
            for p in range(rules[R_PLAYERS]):
                for i in range(rules[R_HOLE]):
                    free = free and hole[p, i] != card
            for i in range(seen):
                free = free and board[i] != card
            if free:
                deck[count] = card
                count += 1
    return count


@kernel(leaf=True)
def _rank_hands(
    rules: Array, state: Array, hole: Array, shared: int, total: int, tables: Ranking, room: BoardRoom
) -> None:
    """What every player left in the hand shows down on `room.board`, whose keys add up to `total`."""
    for p in range(rules[R_PLAYERS]):
        if (state[S_FOLDED] >> p) & 1 != 0:
            continue
        whole = room.held[p] + total
        if rules[R_HOLE] + shared >= 5 and whole & FLUSH_BITS == 0:
            room.values[p] = sum_value(whole, tables)
        else:
            room.values[p] = showdown_value(hole[p], rules[R_HOLE], room.board, shared, tables)


@kernel(leaf=True)
def _outcome(values: Array, n: int) -> int:
    """Who beats whom among two or three players, as a number: a digit of base 3 per pair."""
    code = 0
    for p in range(n):
        for q in range(p + 1, n):
            code = 3 * code + (2 if values[p] > values[q] else 1 if values[p] == values[q] else 0)
    return code


@kernel(leaf=True)
def _values_of(outcome: int, n: int, values: Array) -> None:
    """Values that have an outcome: two for every player beaten, one for every tie."""
    for p in range(n):
        values[p] = 0
    for p in range(n - 1, -1, -1):
        for q in range(n - 1, p, -1):
            digit = outcome % 3
            values[p] += digit
            values[q] += 2 - digit
            outcome //= 3


@kernel(leaf=True)
def _add_outcome(rules: Array, state: Array, times: int, room: BoardRoom) -> None:
    """Add what `room.values` pay, so many times over."""
    settle(rules, state, room.values, room.due)
    for p in range(rules[R_PLAYERS]):
        room.mean[p] += times * room.due[p]


@kernel(leaf=True)
def _look_up(rules: Array, state: Array, hole: Array, room: BoardRoom) -> None:
    """Net chips of two hold'em players on average over all boards, into `room.mean`."""
    wins, ties = matchup(int(hole[0, 0]), int(hole[0, 1]), int(hole[1, 0]), int(hole[1, 1]), room.headsup)
    room.values[0] = 1
    room.values[1] = 0
    _add_outcome(rules, state, wins, room)
    room.values[1] = 1
    _add_outcome(rules, state, ties, room)
    room.values[0] = 0
    _add_outcome(rules, state, BOARDS - wins - ties, room)
    for p in range(2):
        room.mean[p] /= BOARDS


@kernel(leaf=True)
def expected_payoffs(
    rules: Array, state: Array, hole: Array, board: Array, seen: int, tables: Ranking, room: BoardRoom
) -> None:
    """Net chips of each player of a finished hand on average over all boards, into `room.mean`.

    The first `seen` cards of `board` are given; `hole` is (players, 2), folded players' cards count as seen.
    """
    n = rules[R_PLAYERS]
    shared = 0
    for r in range(rules[R_ROUNDS]):
        shared += rules[R_BOARD + r]
    for p in range(n):
        room.mean[p] = 0.0
        room.values[p] = 0
        room.held[p] = NO_SUITS
    if n == 2 and seen == 0 and rules[R_HOLE] == 2 and shared == 5 and rules[R_RANKS] * rules[R_SUITS] == 52:
        _look_up(rules, state, hole, room)
        return
    cards = _unseen(rules, hole, board, seen, room.deck)
    for p in range(n):
        for i in range(rules[R_HOLE]):
            room.held[p] += tables.keys[hole[p, i]]
    room.sums[0] = 0
    for i in range(seen):
        room.board[i] = board[i]
        room.sums[0] += tables.keys[board[i]]
    missing = shared - seen
    for i in range(OUTCOMES):
        room.outcomes[i] = 0
    boards = 0
    depth = 0
    room.picks[0] = -1
    while depth >= 0:
        if depth == missing:
            _rank_hands(rules, state, hole, shared, room.sums[depth], tables, room)
            if n <= 3:
                room.outcomes[_outcome(room.values, n)] += 1
            else:
                _add_outcome(rules, state, 1, room)
            boards += 1
            depth -= 1
            continue
        room.picks[depth] += 1
        at = room.picks[depth]
        if at > cards - (missing - depth):
            depth -= 1
            continue
        room.board[seen + depth] = room.deck[at]
        room.sums[depth + 1] = room.sums[depth] + tables.keys[room.deck[at]]
        depth += 1
        room.picks[depth] = at
    for outcome in range(OUTCOMES):
        if room.outcomes[outcome] > 0:
            _values_of(outcome, n, room.values)
            _add_outcome(rules, state, room.outcomes[outcome], room)
    for p in range(n):
        room.mean[p] /= boards


def expected_result(state: State, holes: tuple[str, ...], opened: str) -> tuple[float, ...]:
    """Net chips of each player on average over the boards that begin with the cards `opened` (text).

    >>> from pipeline.poker.game import find_game
    >>> state = find_game("holdem.nolimit.2p.reverse_blinds").start().apply(1).apply(1).apply(1).apply(1)
    >>> state = state.apply(2, 20000).apply(1)  # all-in on the turn: 44 rivers, of which two help the kings
    >>> [round(chips, 3) for chips in expected_result(state, ("AsAd", "KsKd"), "2c7d9h4s")]
    [18181.818, -18181.818]
    """
    room, game = board_room(), state.game
    hole = np.full((game.players, 2), NO_CARD, dtype=np.uint8)
    for p, text in enumerate(holes):
        hole[p, : game.hole_cards] = parse_cards(text, game.hole_cards)
    board = parse_cards(opened)
    expected_payoffs(game.rules, state.vector, hole, board, len(board), ranking(), room)
    return tuple(float(x) for x in room.mean[: game.players])
