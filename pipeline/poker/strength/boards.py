"""Boards that differ only by the names of suits are one board: canonical boards and a number for every holding on them.

Sort the suits by their set of board ranks, largest first, and rename them c d h s in that order: the result is the
board's canonical form. There are 1,755 canonical flops, 16,432 turns and 134,459 rivers (boards are sets of cards; the
order of dealing does not matter). Suits with equal sets are interchangeable.

`entry_number` numbers a holding: canonical board x pair of the cards that are left, renamed by the same rule. Two
holdings with one entry are equal up to names of suits (the reverse holds except for interchangeable suits), so a
table over entries answers for every deal: 2,063,880 flop, 18,535,296 turn and 145,350,179 river entries.
"""

from __future__ import annotations

from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.runtime.array_types import Bytes
from pipeline.runtime.kernels import kernel

BOARD_CARDS = (0, 3, 4, 5)
"""board cards by street"""
HOLDINGS = tuple(comb(52 - count, 2) for count in BOARD_CARDS)
"""pairs of the cards left, by street: 1326, 1176, 1128, 1081"""


class Boards(NamedTuple):
    """The canonical boards of one street, and the index that finds them."""

    find: npt.NDArray[np.uint32]
    """by `board_index`: canonical number << 8 | renaming of suits, two bits each"""
    cards: Bytes
    """(boards, 3-5): canonical boards, cards ascending"""
    weights: npt.NDArray[np.int64]
    """number of boards that each canonical board stands for"""


@kernel(leaf=True)
def board_index(board: Bytes, count: int) -> int:
    """Return the number of a set of 3-5 cards among all sets of its size (colexicographic)."""
    a, b, c = int(board[0]), int(board[1]), int(board[2])
    d = int(board[3]) if count > 3 else 64
    e = int(board[4]) if count > 4 else 64
    # A sorting network.
    a, b = (a, b) if a < b else (b, a)
    c, d = (c, d) if c < d else (d, c)
    a, c = (a, c) if a < c else (c, a)
    b, d = (b, d) if b < d else (d, b)
    b, c = (b, c) if b < c else (c, b)
    d, e = (d, e) if d < e else (e, d)
    c, d = (c, d) if c < d else (d, c)
    b, c = (b, c) if b < c else (c, b)
    a, b = (a, b) if a < b else (b, a)
    index = a + b * (b - 1) // 2 + c * (c - 1) * (c - 2) // 6
    if count > 3:
        index += d * (d - 1) * (d - 2) * (d - 3) // 24
    if count > 4:
        index += e * (e - 1) * (e - 2) * (e - 3) * (e - 4) // 120
    return index


@kernel(leaf=True)
def renaming(board: Bytes, count: int) -> int:
    """Return the new name of each suit, two bits per suit: the largest set of board ranks first."""
    ranks = 0
    for i in range(count):
        ranks |= 1 << (16 * int(board[i] & 3) + int(board[i] >> 2))
    names = 0
    for suit in range(4):
        mine = ranks >> (16 * suit) & 0x1FFF
        before = 0
        for other in range(4):
            others = ranks >> (16 * other) & 0x1FFF
            # suits with equal sets may take either name: the board is the same
            if others > mine or (others == mine and other < suit):
                before += 1
        names |= before << (2 * suit)
    return names


@kernel(leaf=True)
def rename_suit(card: int, names: int) -> int:
    """Return a card with its suit renamed."""
    return (card & ~3) | (names >> (2 * (card & 3)) & 3)


@kernel
def _number_boards(find: npt.NDArray[np.uint32], cards: Bytes, weights: npt.NDArray[np.int64], count: int) -> int:
    """Go through all boards in order of `board_index`; return how many canonical ones there are."""
    board = np.empty(count, np.uint8)
    for i in range(count):
        board[i] = i
    renamed_board = np.empty(count, np.uint8)
    numbers = np.empty(len(find), np.int64)  # by index of the canonical form
    numbers[:] = -1
    canonical_count = 0
    for index in range(len(find)):
        names = renaming(board, count)
        for i in range(count):
            renamed_board[i] = rename_suit(int(board[i]), names)
        form = board_index(renamed_board, count)
        if numbers[form] < 0:
            numbers[form] = canonical_count
            for i in range(count):
                place = 0
                for j in range(count):
                    if renamed_board[j] < renamed_board[i]:
                        place += 1
                cards[canonical_count, place] = renamed_board[i]
            canonical_count += 1
        number = numbers[form]
        weights[number] += 1
        find[index] = number << 8 | names
        i = 0  # the next set of cards: the lowest that can move up moves, those below it return
        while i + 1 < count and board[i] + 1 == board[i + 1]:
            board[i] = i
            i += 1
        board[i] += 1
    return canonical_count


@cache
def boards(street: int) -> Boards:
    """Return the canonical boards of a street (1 flop, 2 turn, 3 river)."""
    count = BOARD_CARDS[street]
    find = np.empty(comb(52, count), np.uint32)
    size = (0, 1_755, 16_432, 134_459)[street]
    cards = np.empty((size, count), np.uint8)
    weights = np.zeros(size, np.int64)
    canonical_count = _number_boards(find, cards, weights, count)
    assert canonical_count == size
    for table in (find, cards, weights):
        table.flags.writeable = False
    return Boards(find, cards, weights)


@kernel(leaf=True)
def canonical(board: Bytes, count: int, find: npt.NDArray[np.uint32]) -> tuple[int, int]:
    """Return the number of a board's canonical form, and the renaming of suits that leads to it."""
    packed = int(find[board_index(board, count)])
    return packed >> 8, packed & 0xFF


@kernel(leaf=True)
def holding(first: int, second: int, board: Bytes, count: int, names: int) -> int:
    """Return the number of a pair of cards among those not on the board, when suits are renamed."""
    a, b = rename_suit(first, names), rename_suit(second, names)
    a_place, b_place = a, b
    for i in range(count):
        card = rename_suit(int(board[i]), names)
        if card < a:
            a_place -= 1
        if card < b:
            b_place -= 1
    high = max(a_place, b_place)
    return high * (high - 1) // 2 + min(a_place, b_place)


@kernel(leaf=True)
def entry_number(hole: Bytes, board: Bytes, count: int, find: npt.NDArray[np.uint32]) -> int:
    """Return the number of a holding: canonical board * pairs not on it + pair."""
    number, names = canonical(board, count, find)
    unseen = 52 - count
    return number * (unseen * (unseen - 1) // 2) + holding(int(hole[0]), int(hole[1]), board, count, names)


@kernel(leaf=True)
def _entries(hole: Bytes, board: Bytes, count: int, find: npt.NDArray[np.uint32], out: npt.NDArray[np.int64]) -> None:
    for row in range(len(hole)):
        out[row] = entry_number(hole[row], board[row], count, find)


def entry_numbers(street: int, hole: Bytes, board: Bytes) -> npt.NDArray[np.int64]:
    """Return the entry of each row of (2) hole and (5) board cards on a street."""
    out = np.empty(len(hole), np.int64)
    _entries(hole, board, BOARD_CARDS[street], boards(street).find, out)
    return out
