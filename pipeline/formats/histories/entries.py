"""The byte kernel's smaller words: amounts, lists of amounts, strings and the entries of `actions`.

Each function reads one thing at a place in the bytes and says where it ends, -1 for what is not written in the common
form that `fields` describes.
"""

from __future__ import annotations

from pipeline.formats.histories.history import MAX_AMOUNT, MOST_HISTORY_PLAYERS
from pipeline.formats.histories.packing import (
    CALLS,
    DEAL_BOARD,
    DEAL_HOLE,
    FOLDS,
    H_ENTRIES,
    MOST_ENTRIES,
    MUCKS,
    RAISES,
    SHOWS,
    Packed,
)
from pipeline.poker.cards import NO_CARD
from pipeline.poker.rules import NO_STACK
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

NEWLINE, RETURN, SPACE, QUOTE, COMMA, POINT, MINUS, OPEN, CLOSE, EQUALS = 10, 13, 32, 39, 44, 46, 45, 91, 93, 61


@kernel(leaf=True)
def read_number(data: Array, i: int, end: int, decimals: int) -> tuple[int, int]:
    """An amount in units and where it ends; -1 for what is not understood. `inf` is NO_STACK."""
    if i + 3 <= end and data[i] == 105 and data[i + 1] == 110 and data[i + 2] == 102:
        return NO_STACK, i + 3
    sign = 1
    if i < end and data[i] == MINUS:
        sign = -1
        i += 1
    first = i
    value = 0
    while i < end and 48 <= data[i] <= 57 and i - first < 12:
        value = value * 10 + (data[i] - 48)
        i += 1
    if i == first or (data[first] == 48 and i > first + 1):
        return 0, -1
    places = 0
    if i < end and data[i] == POINT:
        i += 1
        first = i
        while i < end and 48 <= data[i] <= 57:
            digit = data[i] - 48
            if places < decimals:
                value = value * 10 + digit
                places += 1
            elif digit != 0 or i - first > 12:
                return 0, -1
            i += 1
        if i == first:
            return 0, -1
    while places < decimals:
        value *= 10
        places += 1
    if value > MAX_AMOUNT:
        return 0, -1
    return sign * value, i


@kernel(leaf=True)
def read_numbers(data: Array, i: int, end: int, decimals: int, row: Array, least: int) -> tuple[int, int]:
    """A list of amounts, none below `least`, into `row`; how many, and where it ends, -1 if it is none."""
    if i >= end or data[i] != OPEN:
        return 0, -1
    i += 1
    count = 0
    while count < MOST_HISTORY_PLAYERS:
        value, i = read_number(data, i, end, decimals)
        if i < 0 or value < least:
            return 0, -1
        row[count] = value
        count += 1
        if i < end and data[i] == CLOSE:
            return count, i + 1
        if i + 1 >= end or data[i] != COMMA or data[i + 1] != SPACE:
            return 0, -1
        i += 2
    return 0, -1


@kernel(leaf=True)
def read_string(data: Array, i: int, end: int, longest: int) -> int:
    """Where a string in single quotes ends, -1 if it is none."""
    if i >= end or data[i] != QUOTE:
        return -1
    i += 1
    first = i
    while i < end and data[i] != QUOTE:
        if data[i] < 32 or data[i] > 126:
            return -1
        i += 1
    if i >= end or i - first > longest or (i == first and i + 1 < end and data[i + 1] == QUOTE):
        return -1
    return i + 1


@kernel(leaf=True)
def _card(data: Array, i: int, end: int) -> int:
    """The card written at `i`; NO_CARD for `??`, -1 if there is none."""
    if i + 2 > end:
        return -1
    rank, suit = data[i], data[i + 1]
    if rank == 63 and suit == 63:
        return NO_CARD
    r = -1
    if 50 <= rank <= 57:
        r = rank - 50
    elif rank == 84:
        r = 8
    elif rank == 74:
        r = 9
    elif rank == 81:
        r = 10
    elif rank == 75:
        r = 11
    elif rank == 65:
        r = 12
    s = 0 if suit == 99 else 1 if suit == 100 else 2 if suit == 104 else 3 if suit == 115 else -1
    return -1 if r < 0 or s < 0 else 4 * r + s


@kernel(leaf=True)
def _held(data: Array, i: int, hand: Packed, at: int, most: int, end: int) -> int:
    """The cards of an entry, at least one and at most `most`, up to its quote; where it is, -1 if there are none."""
    count = 0
    while i < end and data[i] != QUOTE:
        card = _card(data, i, end)
        if card < 0 or count == most:
            return -1
        hand.cards[at, count] = card
        count += 1
        i += 2
    hand.counts[at] = count
    return i if count > 0 else -1


@kernel(leaf=True)
def _entry(data: Array, i: int, end: int, decimals: int, hand: Packed, at: int) -> int:
    """One entry of `actions` after its opening quote; where its closing quote is, -1 if it is not understood."""
    if i + 5 > end:
        return -1
    dealer = data[i] == 100 and data[i + 1] == SPACE and data[i + 2] == 100
    if dealer and data[i + 3] == 98 and data[i + 4] == SPACE:  # d db
        hand.kinds[at] = DEAL_BOARD
        hand.who[at] = 0
        i = _held(data, i + 5, hand, at, 3, end)
        for c in range(hand.counts[at]):
            if hand.cards[at, c] == NO_CARD:
                return -1
        return i
    if dealer:
        if data[i + 3] != 104 or data[i + 4] != SPACE:  # d dh
            return -1
        i += 5
    if i + 4 > end or data[i] != 112 or not 49 <= data[i + 1] <= 57:  # a player
        return -1
    player = data[i + 1] - 48
    i += 2
    if 48 <= data[i] <= 57:
        player = player * 10 + (data[i] - 48)
        i += 1
    if i >= end or data[i] != SPACE:
        return -1
    hand.who[at] = player - 1
    hand.counts[at] = 0
    hand.amounts[at] = 0
    i += 1
    if dealer:
        hand.kinds[at] = DEAL_HOLE
        return _held(data, i, hand, at, 2, end)
    if i + 4 >= end:
        return -1
    if data[i] == 102 and data[i + 1] == QUOTE:  # f
        hand.kinds[at] = FOLDS
        return i + 1
    if data[i] == 99 and data[i + 1] == 99 and data[i + 2] == QUOTE:  # cc
        hand.kinds[at] = CALLS
        return i + 2
    if data[i] == 99 and data[i + 1] == 98 and data[i + 2] == 114 and data[i + 3] == SPACE:  # cbr
        hand.kinds[at] = RAISES
        value, i = read_number(data, i + 4, end, decimals)
        hand.amounts[at] = value
        return i if 0 <= value < NO_STACK else -1
    if data[i] == 115 and data[i + 1] == 109:  # sm
        hand.kinds[at] = SHOWS
        if data[i + 2] == QUOTE:
            hand.kinds[at] = MUCKS
            return i + 2
        return _held(data, i + 3, hand, at, 2, end) if data[i + 2] == SPACE else -1
    return -1


@kernel(leaf=True)
def read_entries(data: Array, i: int, end: int, decimals: int, hand: Packed) -> int:
    """The list of actions; where it ends, -1 if it is not understood."""
    if i + 1 >= end or data[i] != OPEN:
        return -1
    i += 1
    hand.head[H_ENTRIES] = 0
    if data[i] == CLOSE:
        return i + 1
    for at in range(MOST_ENTRIES):
        if i >= end or data[i] != QUOTE:
            return -1
        i = _entry(data, i + 1, end, decimals, hand, at)
        if i < 0 or i + 2 >= end or data[i] != QUOTE:
            return -1
        hand.head[H_ENTRIES] = at + 1
        if data[i + 1] == CLOSE:
            return i + 2
        if data[i + 1] != COMMA or data[i + 2] != SPACE:
            return -1
        i += 3
    return -1
