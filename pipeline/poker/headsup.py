"""Two starting hands against each other: exactly how many of the 1,712,304 boards each wins, suits included.

Two hands of two cards that share no card make 47,008 match-ups that differ by more than the names of the suits and by
which hand comes first. Their results are bundled (resources/headsup.npz), sorted by a code of the four cards, so that
a match-up before the flop is looked up in less than a microsecond where walking over its boards takes milliseconds.
It lies below everything that meets all-in hands: the rules' expectations, and adjusted results. `build` makes the
file again in a few minutes (`cache headsup --out FILE`).
"""

from __future__ import annotations

import itertools
from functools import cache
from importlib.resources import as_file, files
from math import comb
from typing import NamedTuple

import numpy as np

from pipeline.poker.cards import FLUSH_BITS, NO_SUITS, Ranking, flush_suit, ranking, sum_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import Progress, no_progress

BOARDS = comb(48, 5)
STEP = 100
"""match-ups that a thread plays at a time"""


class HeadsUp(NamedTuple):
    """The results of all match-ups, in order of their codes."""

    codes: Array
    """(47008) uint32: six bits a card, the higher card of each hand first"""
    wins: Array
    """(47008) uint32: boards that the first hand wins"""
    ties: Array
    """(47008) uint32: boards that are split"""
    suits: Array
    """(24, 4) uint8: the ways to name the suits"""


def _suit_names() -> Array:
    return np.array(list(itertools.permutations(range(4))), np.uint8)


@cache
def headsup() -> HeadsUp:
    """The bundled results, read once."""
    with (
        as_file(files("pipeline.poker").joinpath("resources", "headsup.npz")) as path,
        np.load(path, allow_pickle=False) as stored,
    ):
        return HeadsUp(stored["codes"], stored["wins"], stored["ties"], _suit_names())


@kernel(leaf=True)
def _hand_code(first: int, second: int, suits: Array, way: int) -> int:
    """Two cards with their suits renamed, the higher one in the upper six bits."""
    one = (first >> 2) * 4 + suits[way, first & 3]
    two = (second >> 2) * 4 + suits[way, second & 3]
    return int(max(one, two)) * 64 + int(min(one, two))


@kernel(leaf=True)
def _code(a0: int, a1: int, b0: int, b1: int, suits: Array) -> tuple[int, bool]:
    """The smallest code of a match-up over all names of the suits, and whether the second hand comes first in it."""
    best = 1 << 30
    exchanged = False
    for way in range(suits.shape[0]):
        a = _hand_code(a0, a1, suits, way)
        b = _hand_code(b0, b1, suits, way)
        if a * 4096 + b < best:
            best = a * 4096 + b
            exchanged = False
        if b * 4096 + a < best:
            best = b * 4096 + a
            exchanged = True
    return best, exchanged


@kernel(leaf=True)
def matchup(a0: int, a1: int, b0: int, b1: int, table: HeadsUp) -> tuple[int, int]:
    """How many boards the hand (a0, a1) wins against (b0, b1), and how many are split; four different cards."""
    code, exchanged = _code(a0, a1, b0, b1, table.suits)
    low = 0
    high = table.codes.shape[0]
    while high - low > 1:
        middle = (low + high) // 2
        if table.codes[middle] <= code:
            low = middle
        else:
            high = middle
    ties = int(table.ties[low])
    wins = int(table.wins[low])
    return (BOARDS - wins - ties if exchanged else wins), ties


@kernel
def _all_codes(suits: Array, out: Array) -> int:
    """Write the code of every match-up, in order; returns how many there are."""
    found = 0
    for a0 in range(1, 52):
        for a1 in range(a0):
            for b0 in range(1, 52):
                for b1 in range(b0):
                    if b0 in (a0, a1) or b1 in (a0, a1):
                        continue
                    code = (a0 * 64 + a1) * 4096 + b0 * 64 + b1
                    if _code(a0, a1, b0, b1, suits)[0] == code:
                        out[found] = code
                        found += 1
    return found


@kernel(leaf=True)
def _value(total: int, ranks_held: Array, ranks_shown: Array, tables: Ranking) -> int:
    """The value of a hand and a board from the sum of their keys and the ranks of each suit."""
    if total & FLUSH_BITS:
        suit = flush_suit(total)
        return int(tables.flushes[ranks_held[suit] | ranks_shown[suit]])
    return sum_value(total, tables)


@kernel
def _play(codes: Array, first: int, last: int, tables: Ranking, wins: Array, ties: Array) -> None:
    """Count the boards of some match-ups that the first hand wins and that are split."""
    deck = np.empty(48, np.uint8)
    keys = np.empty(48, np.int64)
    held = np.empty((2, 4), np.int64)
    shown = np.empty(4, np.int64)
    picks = np.empty(5, np.int64)
    for number in range(first, last):
        cards = (codes[number] >> 18, (codes[number] >> 12) & 63, (codes[number] >> 6) & 63, codes[number] & 63)
        held[:] = 0
        sums = np.full(2, NO_SUITS)
        for i in range(4):
            held[i // 2, cards[i] & 3] |= 1 << (cards[i] >> 2)
            sums[i // 2] += tables.keys[cards[i]]
        left = 0
        for card in range(52):
            if card not in cards:
                deck[left] = card
                keys[left] = tables.keys[card]
                left += 1
        won = split = 0
        for i in range(4, 48):
            for j in range(3, i):
                for k in range(2, j):
                    for m in range(1, k):
                        four = keys[i] + keys[j] + keys[k] + keys[m]
                        for n in range(m):
                            a = sums[0] + four + keys[n]
                            b = sums[1] + four + keys[n]
                            if (a | b) & FLUSH_BITS:
                                picks[0], picks[1], picks[2], picks[3], picks[4] = i, j, k, m, n
                                shown[:] = 0
                                for pick in picks:
                                    shown[deck[pick] & 3] |= 1 << (deck[pick] >> 2)
                                mine = _value(a, held[0], shown, tables)
                                other = _value(b, held[1], shown, tables)
                            else:
                                mine = sum_value(a, tables)
                                other = sum_value(b, tables)
                            if mine > other:
                                won += 1
                            elif mine == other:
                                split += 1
        wins[number] = won
        ties[number] = split


def build(progress: Progress = no_progress) -> dict[str, Array]:
    """The arrays of resources/headsup.npz: `codes`, `wins` and `ties`."""
    room = np.empty(1 << 16, np.int64)
    codes = room[: _all_codes(_suit_names(), room)].copy()
    wins, ties = np.zeros(len(codes), np.uint32), np.zeros(len(codes), np.uint32)
    in_threads(lambda first, last: _play(codes, first, last, ranking(), wins, ties), len(codes), STEP, progress)
    return {"codes": codes.astype(np.uint32), "wins": wins, "ties": ties}
