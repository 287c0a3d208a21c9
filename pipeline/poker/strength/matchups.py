"""Starting hands against each other: exact results of the 169 x 169 match-ups and each class's strength.

Every canonical river (see `boards`) is ranked once. Going up through its holdings by value, with a count per class of
the holdings passed and, per card, of those that hold it, gives for each holding how many of each class it beats: those
passed less those that share a card. Summed over boards, times the boards each stands for, these are exact counts over
all pairs of holdings that share no card and all 1,712,304 boards; `pairs` holds how many such pairs there are (the
card-removal weights). The result is bundled (resources/preflop.npz); `build` makes it again in half a minute.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import Ranking, class_combos, ranking, start_class
from pipeline.poker.strength.boards import boards
from pipeline.poker.strength.rows import STRENGTH, summarise
from pipeline.poker.strength.win_counts import count_below, rank_holdings, sort_holdings
from pipeline.runtime.array_types import Counts
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import Progress, no_progress

BOARDS = comb(48, 5)


class Matchups(NamedTuple):
    """Row class against column class, summed over pairs of holdings without a common card."""

    pairs: Counts
    win: Counts
    """pairs x boards that the row wins"""
    tie: Counts

    @property
    def equity(self) -> npt.NDArray[np.float64]:
        """The row's share of the pot against the column, ties halved."""
        return np.asarray((self.win + self.tie / 2) / (self.pairs * BOARDS))

    def against_random(self) -> npt.NDArray[np.float64]:
        """(169, 3): chance that each class wins, ties and loses against a random hand."""
        total = self.pairs.sum(1) * BOARDS
        return np.stack([part.sum(1) / total for part in (self.win, self.tie, self.win.T)], axis=1)


@cache
def matchups() -> Matchups:
    """The bundled match-ups."""
    with (
        as_file(files("pipeline.poker").joinpath("resources", "preflop.npz")) as path,
        np.load(path, allow_pickle=False) as stored,
    ):
        win, tie = stored["win"].astype(np.int64), stored["tie"].astype(np.int64)
    return Matchups((win + tie + win.T) // BOARDS, win, tie)


@kernel
def _play_boards(
    cards: npt.NDArray[np.uint8],
    weights: Counts,
    first: int,
    last: int,
    tables: Ranking,
    results: Counts,
    sums: Counts,
    histograms: Counts,
) -> None:
    """Add to `results` (2, 169, 169: beaten, not better) and to each class's sums and histogram of strength."""
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    items = np.empty(1326, np.uint32)
    spare = np.empty(1326, np.uint32)
    strengths = np.empty(1326, np.uint16)
    counted = np.empty((2, 169, 169), np.int16)
    for number in range(first, last):
        left = rank_holdings(cards[number], 5, tables, deck, values)
        sort_holdings(values, left, items, spare)
        count_below(items, left, strengths)
        pairs = left * (left - 1) // 2
        below = np.zeros(169, np.int16)
        below_with = np.zeros((52, 169), np.int16)
        counted[:] = 0
        start = 0
        while start < pairs:
            end = start
            while end < pairs and items[end] >> 12 == items[start] >> 12:
                end += 1
            for side in range(2):
                for k in range(start, end):
                    high = int(items[k] >> 6 & 63)
                    low = int(items[k] & 63)
                    mine = start_class(int(deck[high]), int(deck[low]))
                    row = counted[side, mine]
                    with_high = below_with[high]
                    with_low = below_with[low]
                    for other in range(169):
                        row[other] += below[other] - with_high[other] - with_low[other]
                    row[mine] += side  # itself, taken off twice
                if side == 0:
                    for k in range(start, end):
                        high = int(items[k] >> 6 & 63)
                        low = int(items[k] & 63)
                        mine = start_class(int(deck[high]), int(deck[low]))
                        below[mine] += 1
                        below_with[high, mine] += 1
                        below_with[low, mine] += 1
            start = end
        for side in range(2):
            for mine in range(169):
                for other in range(169):
                    results[side, mine, other] += weights[number] * counted[side, mine, other]
        pair = 0
        for high in range(1, left):
            for low in range(high):
                mine = start_class(int(deck[high]), int(deck[low]))
                strength = int(strengths[pair])
                sums[mine, 0] += weights[number] * strength
                sums[mine, 1] += weights[number] * strength * strength
                histograms[mine, (strength + 128) // 257] += weights[number]
                pair += 1


def build(progress: Progress = no_progress) -> dict[str, npt.NDArray[Any]]:
    """The arrays of resources/preflop.npz: `win`, `tie` and the `strength` rows of the 169 classes."""
    rivers = boards(3)
    step = 2_000
    pieces = -(-len(rivers.cards) // step)
    results = np.zeros((pieces, 2, 169, 169), np.int64)
    sums = np.zeros((pieces, 169, 2), np.int64)
    histograms = np.zeros((pieces, 169, 256), np.int64)

    def play(first: int, last: int) -> None:
        piece = first // step
        _play_boards(
            *(rivers.cards, rivers.weights, first, last, ranking()),
            *(results[piece], sums[piece], histograms[piece]),
        )

    in_threads(play, len(rivers.cards), step, progress)
    beaten, not_better = results.sum(0)
    strength = np.zeros((169, STRENGTH.itemsize // 2), np.uint16)
    for index in range(169):
        count = class_combos(index) * comb(50, 5)
        total, squares = (int(part) for part in sums.sum(0)[index])
        summarise(total, squares, histograms.sum(0)[index], 0, 255, count, strength[index])
    strength[:, 0] = strength[:, 1]
    return {
        "win": beaten.astype(np.uint32),
        "tie": (not_better - beaten).astype(np.uint32),
        "strength": strength,
    }
