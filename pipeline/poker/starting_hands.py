"""Starting hands of hold'em against each other: exact results over all boards, computed once and bundled.

Two hands of two cards that share no card make 47,008 match-ups that differ by more than the names of the suits and by
which hand comes first. `headsup_counts` looks up on how many of the 1,712,304 boards each of two hands wins, suits
included, in less than a microsecond where walking over the boards takes milliseconds. `class_matchups` has the same
summed by the 169 starting classes, with card removal, and `preflop_rows` each class's strength against a random hand.

The tables are `resources/headsup.npz`, sorted by a code of the four cards, and `resources/preflop.npz`;
`tools/tables.py` makes them.
"""

from __future__ import annotations

import itertools
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np

from pipeline.runtime.array_types import Array, Counts, Floats, Words
from pipeline.runtime.arrays import bundled_arrays
from pipeline.runtime.kernels import kernel

PREFLOP_BOARDS = comb(48, 5)
"""boards that may follow two starting hands"""


# Two hands, suits included


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


@cache
def headsup_table() -> HeadsUp:
    """Return the bundled results of all match-ups."""
    return HeadsUp(**bundled_arrays("pipeline.poker", "headsup.npz"), suits=suit_names())


def suit_names() -> Array:
    """Return the 24 ways to name the suits, (24, 4)."""
    return np.array(list(itertools.permutations(range(4))), np.uint8)


@kernel(leaf=True)
def _hand_code(first: int, second: int, suits: Array, way: int) -> int:
    """Return the code of two cards with their suits renamed, the higher one in the upper six bits."""
    a = (first >> 2) * 4 + suits[way, first & 3]
    b = (second >> 2) * 4 + suits[way, second & 3]
    return int(max(a, b)) * 64 + int(min(a, b))


@kernel(leaf=True)
def matchup_code(a0: int, a1: int, b0: int, b1: int, suits: Array) -> tuple[int, bool]:
    """Return the smallest code of a match-up over all names of the suits, and whether the second hand leads in it."""
    best = 1 << 30
    exchanged = False
    # the least code over all names of the suits is the same for match-ups that differ by these names only
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
def headsup_counts(a0: int, a1: int, b0: int, b1: int, table: HeadsUp) -> tuple[int, int]:
    """Return on how many boards the hand (a0, a1) wins against (b0, b1), and on how many they split.

    The four cards must differ.
    """
    code, exchanged = matchup_code(a0, a1, b0, b1, table.suits)
    low = 0
    high = table.codes.shape[0]
    # a bisection: 16 steps through 190 kB, which stay in the processor's cache
    while high - low > 1:
        middle = (low + high) // 2
        if table.codes[middle] <= code:
            low = middle
        else:
            high = middle
    ties = int(table.ties[low])
    wins = int(table.wins[low])
    # the table has one order of the two hands; in the other, wins are the boards that are neither lost nor split
    return (PREFLOP_BOARDS - wins - ties if exchanged else wins), ties


# The 169 classes


class ClassMatchups(NamedTuple):
    """Row class against column class, summed over pairs of holdings without a common card."""

    pairs: Counts
    """pairs of holdings: the weights of card removal"""
    win: Counts
    """pairs x boards that the row wins"""
    tie: Counts

    @property
    def equity(self) -> Floats:
        """Return the row's share of the pot against the column, ties halved."""
        return np.asarray((self.win + self.tie / 2) / (self.pairs * PREFLOP_BOARDS))

    def against_random(self) -> Floats:
        """Return the chances that each class wins, ties and loses against a random hand, (169, 3)."""
        total = self.pairs.sum(1) * PREFLOP_BOARDS
        return np.stack([part.sum(1) / total for part in (self.win, self.tie, self.win.T)], axis=1)


@cache
def class_matchups() -> ClassMatchups:
    """Return the bundled match-ups of the 169 starting classes."""
    stored = bundled_arrays("pipeline.poker", "preflop.npz")
    win, tie = stored["win"].astype(np.int64), stored["tie"].astype(np.int64)
    return ClassMatchups((win + tie + win.T) // PREFLOP_BOARDS, win, tie)


@cache
def preflop_rows() -> Words:
    """Return the bundled strength of each starting class, (169, 7) words of `pipeline.poker.strength.rows.STRENGTH`."""
    rows: Words = bundled_arrays("pipeline.poker", "preflop.npz")["strength"]
    rows.flags.writeable = False
    return rows
