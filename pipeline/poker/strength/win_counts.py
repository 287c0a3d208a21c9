"""Counts of the opponents' hands that a holding beats on a board, for one holding or for all of them at once.

One holding: the opponent's hands fall in 91 pairs of ranks, each with a number of combinations; only where the board
has three of a suit do flushes need their suits told apart. All holdings: value every pair of the cards left, sort, and
count the pairs below each by its place in the order, less the pairs that hold one of its own cards.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.poker.card_sets import add_up, card_bits, rank_bit, set_value, unseen
from pipeline.poker.cards import NO_SUITS, Ranking, holding_value, suit_ranks, sum_value
from pipeline.runtime.array_types import Bytes, Words
from pipeline.runtime.kernels import kernel

FULL_STRENGTH = 65535
"""a strength of 1 as a 16-bit word"""


@kernel(leaf=True)
def doubled_wins(hole: Bytes, board: Bytes, count: int, tables: Ranking) -> int:
    """Return twice the opponents' hands that `hole` beats plus those it ties, with the first `count` board cards."""
    mine = holding_value(hole, 2, board, count, tables)
    base = NO_SUITS
    seen = 0  # cards not left to the opponent: a counter per rank
    suits = 0
    for i in range(count):
        base += tables.keys[board[i]]
        seen += 1 << (4 * int(board[i] >> 2))
        suits += 1 << (4 * int(board[i] & 3))
    for i in range(2):
        seen += 1 << (4 * int(hole[i] >> 2))
    suited = 0  # board cards of the suit that may make a flush
    board_suited = 0
    free = 0
    for suit in range(4):
        if suits >> (4 * suit) & 15 >= 3:
            suited = suits >> (4 * suit) & 15
            board_suited = suit_ranks(board, count, suit)
            free = 0x1FFF & ~board_suited & ~suit_ranks(hole, 2, suit)
    doubled = 0
    # 91 pairs of ranks stand for up to 1,081 hands: equal ranks have one value unless a flush is possible
    for first in range(13):
        first_suited = free >> first & 1
        first_other = 4 - (seen >> (4 * first) & 15) - first_suited
        with_first = base + tables.keys[4 * first]
        for second in range(first + 1):
            second_suited = free >> second & 1
            second_other = 4 - (seen >> (4 * second) & 15) - second_suited
            plain = sum_value(with_first + tables.keys[4 * second], tables)
            if first == second:
                neither = first_other * (first_other - 1) // 2
                both = 0
            else:
                neither = first_other * second_other
                both = first_suited * second_suited
            # five of a suit on the board: an opponent with none of that suit plays the board
            if suited == 5:
                doubled += neither * win_points(mine, int(tables.flushes[board_suited]))
            else:
                doubled += neither * win_points(mine, plain)
            if suited == 0:
                continue
            if both:
                doubled += win_points(mine, int(tables.flushes[board_suited | 1 << first | 1 << second]))
            if first_suited:
                # one more card of the suit makes a flush with four on the board, not with three
                value = plain if suited == 3 else int(tables.flushes[board_suited | 1 << first])
                doubled += second_other * win_points(mine, value)
            if second_suited and first != second:
                value = plain if suited == 3 else int(tables.flushes[board_suited | 1 << second])
                doubled += first_other * win_points(mine, value)
    return doubled


@kernel(leaf=True)
def class_points(hole: Bytes, board: Bytes, tables: Ranking, out: npt.NDArray[np.int64]) -> None:
    """Add to out (169, 2) the points won against each starting class on a full board, and twice its holdings left."""
    mine = holding_value(hole, 2, board, 5, tables)
    base = NO_SUITS
    unseen_cards = 0x1FFFFFFFFFFFFF  # a bit per card
    suits = 0
    for i in range(5):
        base += tables.keys[board[i]]
        unseen_cards &= ~(1 << int(board[i]))
        suits += 1 << (4 * int(board[i] & 3))
    unseen_cards &= ~(1 << int(hole[0]) | 1 << int(hole[1]))
    suited = 0
    board_suited = 0
    flush = 0  # bit of the suit that may make a flush, in a rank's four
    for suit in range(4):
        if suits >> (4 * suit) & 15 >= 3:
            suited = suits >> (4 * suit) & 15
            board_suited = suit_ranks(board, 5, suit)
            flush = 1 << suit
    everyone = int(tables.flushes[board_suited]) if suited == 5 else 0
    for first in range(13):
        firsts = unseen_cards >> (4 * first) & 15
        first_flush = 1 if firsts & flush else 0
        first_other = count_bits(firsts) - first_flush
        with_first = int(tables.flushes[board_suited | 1 << first]) if suited >= 4 and first_flush else 0
        for second in range(first + 1):
            seconds = unseen_cards >> (4 * second) & 15
            second_flush = 1 if seconds & flush else 0
            second_other = count_bits(seconds) - second_flush
            plain = max(everyone, sum_value(base + tables.keys[4 * first] + tables.keys[4 * second], tables))
            if first == second:
                cell = (12 - first) * 14
                low = first_other * (first_other - 1) // 2
                out[cell, 0] += low * win_points(mine, plain)
                out[cell, 0] += first_flush * first_other * win_points(mine, max(plain, with_first))
                out[cell, 1] += 2 * (low + first_flush * first_other)
                continue
            cell = (12 - first) * 13 + 12 - second
            low = count_bits(firsts & seconds & ~flush)
            out[cell, 0] += low * win_points(mine, plain)
            out[cell, 1] += 2 * (low + first_flush * second_flush)
            if first_flush and second_flush:
                out[cell, 0] += win_points(mine, int(tables.flushes[board_suited | 1 << first | 1 << second]))
            cell = (12 - second) * 13 + 12 - first
            low = first_other * second_other - low
            out[cell, 0] += low * win_points(mine, plain)
            out[cell, 1] += 2 * (low + first_flush * second_other + second_flush * first_other)
            if first_flush:
                out[cell, 0] += second_other * win_points(mine, max(plain, with_first))
            if second_flush:
                value = int(tables.flushes[board_suited | 1 << second]) if suited >= 4 else 0
                out[cell, 0] += first_other * win_points(mine, max(plain, value))


@kernel(leaf=True)
def count_bits(four: int) -> int:
    """Count how many of four bits are set."""
    return (four & 1) + (four >> 1 & 1) + (four >> 2 & 1) + (four >> 3 & 1)


@kernel(leaf=True)
def win_points(mine: int, other: int) -> int:
    """Return 2 for a win, 1 for a tie, 0 for a loss."""
    return 2 if mine > other else 1 if mine == other else 0


@kernel(leaf=True)
def scaled_strength(doubled: int, unseen_cards: int) -> int:
    """Return the strength for twice the wins plus ties, with `unseen_cards` that the opponent may hold."""
    opponents = unseen_cards * (unseen_cards - 1) // 2
    # half the divisor is added: rounded to the nearest
    return (doubled * FULL_STRENGTH + opponents) // (2 * opponents)


@kernel(leaf=True)
def rank_holdings(board: Bytes, count: int, tables: Ranking, deck: Bytes, values: Words) -> int:
    """Write the cards not on the board to `deck`, the value of each pair of them to `values`; return their number."""
    base, board_ranks = add_up(board, count, tables)
    base += NO_SUITS
    deck_size = unseen(card_bits(board, count), deck)
    pair = 0
    for high in range(1, deck_size):
        with_high = base + tables.keys[deck[high]]
        ranks = board_ranks | rank_bit(deck[high])
        for low in range(high):
            values[pair] = set_value(with_high + tables.keys[deck[low]], ranks | rank_bit(deck[low]), tables)
            pair += 1
    return deck_size


@kernel
def sort_holdings(values: Words, deck_size: int, items: npt.NDArray[np.uint32], spare: npt.NDArray[np.uint32]) -> None:
    """Write value << 12 | high << 6 | low of every pair of places to `items`, by ascending value."""
    pair = 0
    for high in range(1, deck_size):
        for low in range(high):
            spare[pair] = int(values[pair]) << 12 | high << 6 | low
            pair += 1
    # a radix sort by the 13 bits of the value, seven at a time from below: linear, and stable in both passes
    counts = np.zeros(129, np.int64)
    for k in range(pair):
        counts[1 + (spare[k] >> 12 & 127)] += 1
    for k in range(128):
        counts[k + 1] += counts[k]
    for k in range(pair):
        digit = spare[k] >> 12 & 127
        items[counts[digit]] = spare[k]
        counts[digit] += 1
    counts[:] = 0
    for k in range(pair):
        counts[1 + (items[k] >> 19)] += 1
    for k in range(128):
        counts[k + 1] += counts[k]
    for k in range(pair):
        digit = items[k] >> 19
        spare[counts[digit]] = items[k]
        counts[digit] += 1
    for k in range(pair):
        items[k] = spare[k]


@kernel
def count_below(items: npt.NDArray[np.uint32], deck_size: int, out: Words) -> None:
    """Write the strength of every pair of `deck_size` cards, given the pairs by ascending value."""
    pairs = deck_size * (deck_size - 1) // 2
    below = np.zeros(52, np.int64)  # pairs passed so far that hold a card
    beaten = np.empty(pairs, np.int64)
    start = 0
    while start < pairs:
        value = items[start] >> 12
        end = start
        while end < pairs and items[end] >> 12 == value:
            # an opponent cannot hold this pair's cards: take away the weaker pairs that contain one of them
            beaten[end] = start - below[items[end] >> 6 & 63] - below[items[end] & 63]
            end += 1
        for k in range(start, end):
            below[items[k] >> 6 & 63] += 1
            below[items[k] & 63] += 1
        for k in range(start, end):
            high = int(items[k] >> 6 & 63)
            low = int(items[k] & 63)
            # the pair itself has been taken away twice, once for each of its cards
            not_better = end - below[high] - below[low] + 1
            out[high * (high - 1) // 2 + low] = scaled_strength(beaten[k] + not_better, deck_size - 2)
        start = end
