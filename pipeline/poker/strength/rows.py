"""The strength of one holding: a row of `STRENGTH`, found by enumerating every river that may follow.

A holding and a board go in, a row of seven 16-bit words comes out (see the package for what they mean). Nothing here
needs tables: this is what answers few questions, and what the tables are checked against.
"""

from __future__ import annotations

import numpy as np

from pipeline.poker.card_sets import card_bits, run_outs
from pipeline.poker.cards import Ranking
from pipeline.poker.strength.win_counts import FULL_STRENGTH, doubled_wins, scaled_strength
from pipeline.runtime.array_types import Bytes, Counts, Words
from pipeline.runtime.kernels import kernel

STRENGTH = np.dtype([("ihs", "<u2"), ("ehs", "<u2"), ("ehs2", "<u2"), ("q", "u1", (8,))])
COLUMNS = 7  # a row of STRENGTH as 16-bit words


@kernel(leaf=True)
def summarise(total: int, squares: int, histogram: Counts, lowest: int, highest: int, count: int, out: Words) -> None:
    """Write `ehs`, `ehs2` and `q` of `count` river strengths to a row, from their sums and 256-bin histogram.

    The histogram, empty outside `lowest` to `highest`, is empty afterwards.
    """
    out[1] = (2 * total + count) // (2 * count)
    out[2] = (2 * squares + FULL_STRENGTH * count) // (2 * FULL_STRENGTH * count)
    eighth = 0
    room = count  # each strength weighs 8, each eighth holds `count`
    inside = 0
    for level in range(lowest, highest + 1):
        weight = 8 * histogram[level]
        histogram[level] = 0
        while weight > 0:
            part = weight if weight < room else room
            inside += part * level
            weight -= part
            room -= part
            if room == 0:
                mean = (2 * inside + count) // (2 * count)
                if eighth & 1:
                    out[3 + (eighth >> 1)] |= mean << 8
                else:
                    out[3 + (eighth >> 1)] = mean
                eighth += 1
                room = count
                inside = 0


@kernel(leaf=True)
def summarise_strengths(strengths: Words, count: int, histogram: Counts, out: Words) -> None:
    """Write `ehs`, `ehs2` and `q` of the first `count` river strengths to a row; the histogram is empty."""
    total = 0
    squares = 0
    lowest = 255
    highest = 0
    for k in range(count):
        strength = int(np.int64(strengths[k]))  # squares of words would not add up as whole numbers
        level = (strength + 128) // 257
        total += strength
        squares += strength * strength
        histogram[level] += 1
        if level < lowest:
            lowest = level
        if level > highest:
            highest = level
    summarise(total, squares, histogram, lowest, highest, count, out)


@kernel(leaf=True)
def settled_row(strength: int, out: Words) -> None:
    """Write the row of a holding whose strength is settled."""
    level = (strength + 128) // 257
    out[0] = strength
    out[1] = strength
    out[2] = (2 * strength * strength + FULL_STRENGTH) // (2 * FULL_STRENGTH)
    for i in range(3, COLUMNS):
        out[i] = level << 8 | level


@kernel
def run_out(hole: Bytes, board: Bytes, count: int, tables: Ranking, strengths: Words) -> int:
    """Write the strength of one holding on every river that may follow a flop or turn; return how many there are."""
    full = np.empty(5, np.uint8)
    full[:count] = board[:count]
    cards = run_outs(card_bits(hole, 2) | card_bits(board, count), 5 - count)
    for k in range(len(cards)):
        full[count:] = cards[k]
        strengths[k] = scaled_strength(doubled_wins(hole, full, 5, tables), 45)
    return len(cards)


@kernel
def enumerate_row(hole: Bytes, board: Bytes, count: int, tables: Ranking, out: Words) -> None:
    """Write the row of one holding on the flop or turn by enumeration."""
    strengths = np.empty(1081, np.uint16)
    runouts = run_out(hole, board, count, tables, strengths)
    summarise_strengths(strengths, runouts, np.zeros(256, np.int64), out)
    out[0] = scaled_strength(doubled_wins(hole, board, count, tables), 50 - count)
