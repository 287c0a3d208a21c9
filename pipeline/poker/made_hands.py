"""Made hands and draws on a board as players name them: top pair, overpair, set, flush draw ...

In go hole cards and a board of 3 to 5 cards, out comes a number into `MADE` and one into `DRAWS`. The names of
`cards.hand_name` say which five cards count; these classes say how a player sees them, for grouping a range: a pair in
the hand over the board is another thing than a pair of a low board card, or than one that lies on the board.

A flush draw is four cards of a suit, one at least in the hand. A straight draw counts the ranks that would complete a
straight which the board with that rank alone does not have: one is a gutshot, two or more are open. On the river there
are no draws, and a hand that has a straight or better is not said to draw.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pipeline.poker.cards import CATEGORIES, Ranking, hand_names, holding_value, ranking
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

MADE = (
    "straight flush",
    "four of a kind",
    "full house",
    "flush",
    "straight",
    "set",
    "trips",
    "two pair",
    "overpair",
    "top pair",
    "second pair",
    "weak pair",
    "only the board's pair or trips",
    "ace high",
    "no pair",
)
"""made hands, the strongest first"""
DRAWS = ("flush and straight draw", "flush draw", "open straight draw", "gutshot", "no draw")
NO_CLASS = 255
"""of hands before the flop"""

HIGH, PAIR, TWO_PAIR, THREE, STRAIGHT = range(5)


@cache
def _categories() -> Array:
    """Return the category 0..8 of each hand name id."""
    ends = (" High", "Pair of", "Two Pair", "Three of", "Straight", "Flush", "Full of", "Four of", "Straight Flush")
    categories = np.zeros(len(hand_names()), dtype=np.uint8)
    for number, name in enumerate(hand_names()):
        last = [i for i, word in enumerate(ends) if word in name or (i == 8 and name == "Royal Flush")]
        categories[number] = max(last, default=0)
    assert len(set(categories.tolist())) == len(CATEGORIES)
    return categories


@kernel(leaf=True)
def _has_straight(ranks: int) -> bool:
    """Return whether a set of ranks (bit 0 the deuce, bit 12 the ace) has five in a row; the ace is also low."""
    low = (ranks << 1) | (ranks >> 12)
    return (low & low >> 1 & low >> 2 & low >> 3 & low >> 4) != 0


@kernel(leaf=True)
def _made(hole: Array, board: Array, count: int, category: int) -> int:
    """Return the made hand of two hole cards, given the category of the best five cards."""
    if category >= STRAIGHT:
        return 8 - category
    first, second = int(hole[0] >> 2), int(hole[1] >> 2)
    top, second_rank = -1, -1
    mine_first, mine_second = 0, 0
    for i in range(count):
        rank = int(board[i] >> 2)
        mine_first += rank == first
        mine_second += rank == second
        if rank > top:
            second_rank = top
            top = rank
        elif top > rank > second_rank:
            second_rank = rank
    if category == THREE:
        if first == second and mine_first == 1:
            return 5
        return 6 if mine_first == 2 or mine_second == 2 else 12
    in_hand = first == second
    own = mine_first + mine_second
    if category == TWO_PAIR:
        if own == 2 and not in_hand:
            return 7
        if own == 0 and not in_hand:
            return 12
    if category >= PAIR and in_hand:
        if first > top:
            return 8
        return 10 if first > second_rank else 11
    if category >= PAIR and own > 0:
        rank = first if mine_first > 0 else second
        if rank == top:
            return 9
        return 10 if rank == second_rank else 11
    if category == PAIR:
        return 12
    return 13 if first == 12 or second == 12 else 14


@kernel(leaf=True)
def _draw(hole: Array, board: Array, count: int) -> int:
    """Return the draw of a hand that has no straight or better."""
    if count == 5:
        return 4
    suits, board_ranks = 0, 0
    for i in range(count):
        suits += 1 << (4 * int(board[i] & 3))
        board_ranks |= 1 << int(board[i] >> 2)
    ranks = board_ranks
    for i in range(2):
        suits += 1 << (4 * int(hole[i] & 3))
        ranks |= 1 << int(hole[i] >> 2)
    flush = False
    for i in range(2):
        flush = flush or (suits >> (4 * int(hole[i] & 3))) & 15 == 4
    outs = 0
    for rank in range(13):
        if _has_straight(ranks | 1 << rank) and not _has_straight(board_ranks | 1 << rank):
            outs += 1
    if flush:
        return 0 if outs > 0 else 1
    return 2 if outs > 1 else 3 if outs == 1 else 4


@kernel
def _classify(holes: Array, boards: Array, tables: Ranking, categories: Array, made: Array, draws: Array) -> None:
    for i in range(len(holes)):
        board = boards[i if len(boards) > 1 else 0]
        count = 0
        while count < 5 and board[count] < 52:
            count += 1
        made[i] = 255
        draws[i] = 255
        if count < 3 or holes[i, 0] > 51 or holes[i, 1] > 51:
            continue
        category = int(categories[tables.names[holding_value(holes[i], 2, board, count, tables)]])
        made[i] = _made(holes[i], board, count, category)
        draws[i] = 4 if category >= STRAIGHT else _draw(holes[i], board, count)


def classify(holes: Array, boards: Array) -> tuple[Array, Array]:
    """Return the made hand and the draw of each hand: numbers into `MADE` and `DRAWS`, `NO_CLASS` before the flop.

    Parameters: `holes` (n, 2), `boards` (n, 5) or (1, 5) for all of them, NO_CARD where no card lies yet.

    >>> from pipeline.poker.cards import parse_cards
    >>> board = np.append(parse_cards("Jd8d3c"), [255, 255]).astype(np.uint8)[None]
    >>> made, draw = classify(np.stack([parse_cards("AdTd"), parse_cards("JcTh"), parse_cards("8h8c")]), board)
    >>> [MADE[i] for i in made], [DRAWS[i] for i in draw]
    (['ace high', 'top pair', 'set'], ['flush draw', 'no draw', 'no draw'])
    """
    made, draws = np.empty(len(holes), np.uint8), np.empty(len(holes), np.uint8)
    _classify(
        np.ascontiguousarray(holes, np.uint8), np.ascontiguousarray(boards, np.uint8), ranking(), _categories(),
        made, draws,
    )  # fmt: skip
    return made, draws
