"""All-in expectations: each player's winnings on average over the boards still to come, all hole cards known.

Some servers settle a hand whose players are all-in before the last street by this expectation instead of by the board
that was dealt. `expected_payoffs` is exact: it walks over every board that completes the cards lying open, except that
two hold'em hands before the flop (1.7 million boards) are looked up in `starting_hands`. `board_counts` is the same
walk for two hands of any game: boards won, tied and lost, of which equities in small games are made. `showdown_shares`
is the same for the shares of a pot among any number of players.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.poker.card_sets import add_up, card_bits, not_in_deck, unseen
from pipeline.poker.cards import FLUSH_BITS, NO_CARD, NO_SUITS, Ranking, parse_cards, ranking, sum_value
from pipeline.poker.game import Game, State
from pipeline.poker.rules import (
    MAX_PLAYERS,
    R_BOARD,
    R_HOLE,
    R_PLAYERS,
    R_RANKS,
    R_ROUNDS,
    R_SUITS,
    S_FINISHED,
    S_FOLDED,
    S_MAX_SPENT,
    S_SPENT,
    STATE_SIZE,
    settle,
)
from pipeline.poker.showdown import showdown_value
from pipeline.poker.starting_hands import PREFLOP_BOARDS, HeadsUp, headsup_counts, headsup_table
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

BOARD_SIZE = 5
"""the most board cards of any game"""
OUTCOMES = 27
"""results of comparing three players pair by pair"""


class PayoffBuffers(NamedTuple):
    """Arrays that `expected_payoffs` works in, one set per thread."""

    deck: Array
    """the cards that may still come"""
    picks: Array
    """indices into the deck of the cards drawn, one per depth"""
    sums: Array
    """the open board's keys plus those of the cards drawn so far, one per depth"""
    board: Array
    hand_sums: Array
    """per player: NO_SUITS plus the keys of the hole cards"""
    values: Array
    outcomes: Array
    """boards by outcome (see `_outcome`), for two or three players"""
    due: Array
    mean: Array
    """the answer: net chips per player"""
    headsup: HeadsUp
    """results of two hands before the flop, shared by all threads"""


def payoff_buffers() -> PayoffBuffers:
    """Return fresh buffers."""
    return PayoffBuffers(
        deck=np.zeros(52, dtype=np.uint8),
        picks=np.zeros(BOARD_SIZE + 1, dtype=np.int64),
        sums=np.zeros(BOARD_SIZE + 1, dtype=np.int64),
        board=np.zeros(BOARD_SIZE, dtype=np.uint8),
        hand_sums=np.zeros(MAX_PLAYERS, dtype=np.int64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
        outcomes=np.zeros(OUTCOMES, dtype=np.int64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
        mean=np.zeros(MAX_PLAYERS, dtype=np.float64),
        headsup=headsup_table(),
    )


@kernel(leaf=True)
def _rank_hands(
    rules: Array, state: Array, hole: Array, shared: int, total: int, tables: Ranking, buffers: PayoffBuffers
) -> None:
    """Write each remaining player's showdown value on `buffers.board`, whose keys add up to `total`."""
    for p in range(rules[R_PLAYERS]):
        if (state[S_FOLDED] >> p) & 1 != 0:
            continue
        whole = buffers.hand_sums[p] + total
        # almost no board makes a flush, and without one the sum alone gives the value
        if rules[R_HOLE] + shared >= 5 and whole & FLUSH_BITS == 0:
            buffers.values[p] = sum_value(whole, tables)
        else:
            buffers.values[p] = showdown_value(hole[p], rules[R_HOLE], buffers.board, shared, tables)


@kernel(leaf=True)
def _outcome(values: Array, n: int) -> int:
    """Return who beats whom among two or three players as a number: a base-3 digit per pair, 2 if the first wins."""
    code = 0
    for p in range(n):
        for q in range(p + 1, n):
            code = 3 * code + (2 if values[p] > values[q] else 1 if values[p] == values[q] else 0)
    return code


@kernel(leaf=True)
def _values_of(outcome: int, n: int, values: Array) -> None:
    """Write values that have an outcome: two for every player beaten, one for every tie."""
    for p in range(n):
        values[p] = 0
    for p in range(n - 1, -1, -1):
        for q in range(n - 1, p, -1):
            digit = outcome % 3
            values[p] += digit
            values[q] += 2 - digit
            outcome //= 3


@kernel(leaf=True)
def _add_payoffs(rules: Array, state: Array, times: int, buffers: PayoffBuffers) -> None:
    """Add the payoffs under `buffers.values` to the mean, `times` times."""
    settle(rules, state, buffers.values, buffers.due)
    for p in range(rules[R_PLAYERS]):
        buffers.mean[p] += times * buffers.due[p]


@kernel(inline=True, leaf=True)
def _walk_boards(
    rules: Array,
    state: Array,
    hole: Array,
    board: Array,
    seen: int,
    shared: int,
    tables: Ranking,
    buffers: PayoffBuffers,
) -> int:
    """Deal every board that begins with the first `seen` cards of `board`; return how many there are.

    Counts them by outcome for two or three players, and for more adds the payoffs of each to the mean.
    """
    n = rules[R_PLAYERS]
    deck, picks, sums = buffers.deck, buffers.picks, buffers.sums
    taken = not_in_deck(rules[R_RANKS], rules[R_SUITS]) | card_bits(board, seen)
    for p in range(n):
        taken |= card_bits(hole[p], rules[R_HOLE])
        buffers.hand_sums[p] = NO_SUITS + add_up(hole[p], rules[R_HOLE], tables)[0]
    cards = unseen(taken, deck)
    sums[0] = add_up(board, seen, tables)[0]
    for i in range(seen):
        buffers.board[i] = board[i]
    missing = shared - seen
    boards = 0
    depth = 0
    picks[0] = -1
    while depth >= 0:  # a depth-first walk, so that a board costs about one addition: those above are kept in `sums`
        if depth == missing:
            _rank_hands(rules, state, hole, shared, sums[depth], tables, buffers)
            # settling costs more than ranking, and two or three players have few different outcomes: count these
            if n <= 3:
                buffers.outcomes[_outcome(buffers.values, n)] += 1
            else:
                _add_payoffs(rules, state, 1, buffers)
            boards += 1
            depth -= 1
            continue
        picks[depth] += 1
        pick = picks[depth]
        if pick > cards - (missing - depth):
            depth -= 1
            continue
        buffers.board[seen + depth] = deck[pick]
        sums[depth + 1] = sums[depth] + tables.keys[deck[pick]]
        depth += 1
        picks[depth] = pick
    return boards


@kernel(leaf=True)
def _board_cards(rules: Array) -> int:
    """Return how many board cards a game deals in all."""
    shared = 0
    for r in range(rules[R_ROUNDS]):
        shared += rules[R_BOARD + r]
    return shared


@kernel(leaf=True)
def expected_payoffs(
    rules: Array, state: Array, hole: Array, board: Array, seen: int, tables: Ranking, buffers: PayoffBuffers
) -> None:
    """Write each player's net chips in a finished hand on average over all boards to `buffers.mean`.

    The first `seen` cards of `board` are given; `hole` is (players, 2), folded players' cards count as seen.
    """
    n = rules[R_PLAYERS]
    shared = _board_cards(rules)
    for p in range(n):
        buffers.mean[p] = 0.0
        buffers.values[p] = 0
    for i in range(OUTCOMES):
        buffers.outcomes[i] = 0
    if n == 2 and seen == 0 and rules[R_HOLE] == 2 and shared == 5 and rules[R_RANKS] * rules[R_SUITS] == 52:
        wins, ties = headsup_counts(int(hole[0, 0]), int(hole[0, 1]), int(hole[1, 0]), int(hole[1, 1]), buffers.headsup)
        boards = PREFLOP_BOARDS
        buffers.outcomes[2], buffers.outcomes[1], buffers.outcomes[0] = wins, ties, boards - wins - ties
    else:
        boards = _walk_boards(rules, state, hole, board, seen, shared, tables, buffers)
    # settled once per outcome instead of once per board
    for outcome in range(OUTCOMES):
        if buffers.outcomes[outcome] > 0:
            _values_of(outcome, n, buffers.values)
            _add_payoffs(rules, state, buffers.outcomes[outcome], buffers)
    for p in range(n):
        buffers.mean[p] /= boards


@kernel
def _count_boards(
    rules: Array, hole: Array, board: Array, seen: int, tables: Ranking, buffers: PayoffBuffers
) -> tuple[int, int, int]:
    """Return on how many boards the first of two hands wins, ties and loses."""
    buffers.outcomes[:] = 0
    _walk_boards(rules, np.zeros(STATE_SIZE, np.int64), hole, board, seen, _board_cards(rules), tables, buffers)
    return buffers.outcomes[2], buffers.outcomes[1], buffers.outcomes[0]


def board_counts(
    game: Game, first: Sequence[int], second: Sequence[int], opened: Sequence[int]
) -> tuple[int, int, int]:
    """Return on how many boards that begin with the cards `opened` one hand beats another, ties and loses.

    >>> from pipeline.poker.game import builtin
    >>> board_counts(builtin("leduc.limit.2p"), [51], [47], [])  # an ace and a king of six cards: a king may come
    (3, 0, 1)
    """
    rules = game.rules.copy()
    rules[R_PLAYERS] = 2
    hole = np.full((2, 2), NO_CARD, np.uint8)
    hole[0, : len(first)], hole[1, : len(second)] = first, second
    return _count_boards(rules, hole, np.array(opened, np.uint8), len(opened), ranking(), payoff_buffers())


def expected_result(state: State, holes: Sequence[str], opened: str) -> tuple[float, ...]:
    """Return each player's net chips on average over the boards that begin with the cards `opened` (text).

    >>> from pipeline.poker.game import find_game
    >>> state = find_game("holdem.nolimit.2p.reverse_blinds").start().apply(1).apply(1).apply(1).apply(1)
    >>> state = state.apply(2, 20000).apply(1)  # all-in on the turn: 44 rivers, of which two help the kings
    >>> [round(chips, 3) for chips in expected_result(state, ("AsAd", "KsKd"), "2c7d9h4s")]
    [18181.818, -18181.818]
    """
    return tuple(_mean_payoffs(state.game, state.vector, holes, opened))


def showdown_shares(game: Game, holes: Sequence[str], opened: str, folded: Sequence[bool]) -> list[float]:
    """Return each player's share of the pot without further betting, over the boards that begin with `opened` (text).

    Those who have folded get nothing, but their cards cannot come.

    >>> from pipeline.poker.game import builtin
    >>> showdown_shares(builtin("leduc.limit.2p"), ["As", "Ks"], "", [False, False])  # one king of four cards pairs up
    [0.75, 0.25]
    """
    state = np.zeros(STATE_SIZE, np.int64)  # everybody has put one chip in: what comes back is the share of them all
    state[S_FINISHED] = state[S_MAX_SPENT] = 1
    state[S_SPENT : S_SPENT + game.players] = 1
    state[S_FOLDED] = sum(1 << p for p, is_out in enumerate(folded) if is_out)
    return [(chips + 1) / game.players for chips in _mean_payoffs(game, state, holes, opened)]


def _mean_payoffs(game: Game, state: Array, holes: Sequence[str], opened: str) -> list[float]:
    """Return each player's net chips in a finished hand on average, cards given as text."""
    buffers = payoff_buffers()
    hole = np.full((game.players, 2), NO_CARD, dtype=np.uint8)
    for p, text in enumerate(holes):
        hole[p, : game.hole_cards] = parse_cards(text, game.hole_cards)
    board = parse_cards(opened)
    expected_payoffs(game.rules, state, hole, board, len(board), ranking(), buffers)
    return [float(chips) for chips in buffers.mean[: game.players]]
