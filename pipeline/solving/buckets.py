"""Hands as buckets: the group of hands that a holding falls in on each street, for dealing and for strategies.

In: centroids of flop and turn clusters (see `hand_clusters`) and the number of river buckets. Out: `Buckets`, tables
over all holdings and boards (see `boards`) that a kernel reads: preflop the 169 classes; flop and turn the nearest
centroid; on the river equal steps of strength. `dealer_of` draws hands and gives their buckets and who wins. Players
forget their earlier buckets (imperfect recall).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import Ranking, hand_value, ranking, start_class
from pipeline.poker.strength.board_tables import ensure_tables, river_strengths
from pipeline.poker.strength.boards import boards, entry_number
from pipeline.poker.strength.hand_clusters import HandClusters, assign_clusters
from pipeline.poker.strength.rows import STRENGTH
from pipeline.poker.strength.win_counts import doubled_wins, scaled_strength
from pipeline.runtime.array_types import Array, Words
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import random_below, random_state
from pipeline.runtime.progress import Progress, no_progress

NO_RIVERS = np.empty(0, np.uint16)
NO_BOARDS = np.empty(0, np.uint32)


class Buckets(NamedTuple):
    """The tables by which kernels find a bucket."""

    flop_boards: npt.NDArray[np.uint32]
    turn_boards: npt.NDArray[np.uint32]
    river_boards: npt.NDArray[np.uint32]
    flop: Words
    """(flop entries,): cluster"""
    turn: Words
    """(turn entries,): cluster"""
    river: Words
    """(river entries,): strength; no rows where only strategies are looked up"""
    steps: Words
    """(65536,): river bucket of a strength"""


@kernel(leaf=True)
def bucket(street: int, hole: Array, board: Array, tables: Buckets) -> int:
    """Return the bucket of a holding on a street, from tables (the river's must be there)."""
    if street == 0:
        return start_class(int(hole[0]), int(hole[1]))
    if street == 1:
        return int(tables.flop[entry_number(hole, board, 3, tables.flop_boards)])
    if street == 2:
        return int(tables.turn[entry_number(hole, board, 4, tables.turn_boards)])
    return int(tables.steps[tables.river[entry_number(hole, board, 5, tables.river_boards)]])


@kernel(leaf=True)
def bucket_of_cards(street: int, hole: Array, board: Array, tables: Buckets, ranks: Ranking) -> int:
    """Return the bucket of a holding as `bucket` does, but count the river's strength instead of looking it up."""
    # the table of all 145 million river entries takes 290 MB: for a few hands counting is cheaper than opening it
    if street == 3:
        return int(tables.steps[scaled_strength(doubled_wins(hole, board, 5, ranks), 45)])
    return bucket(street, hole, board, tables)


def find_buckets(street: int, hole: Array, board: Array, tables: Buckets) -> npt.NDArray[np.int64]:
    """Find the bucket of each hand on a street, from (hands, 2) hole cards and (hands, 5) board cards."""
    out = np.empty(len(hole), np.int64)
    _find_buckets(street, np.ascontiguousarray(hole), np.ascontiguousarray(board), tables, ranking(), out)
    return out


@kernel
def _find_buckets(street: int, hole: Array, board: Array, tables: Buckets, ranks: Ranking, out: Array) -> None:
    for i in range(len(hole)):
        out[i] = bucket_of_cards(street, hole[i], board[i], tables, ranks)


@kernel
def _deal(random: Array, tables: Buckets, ranks: Ranking, players: int, out: Array) -> None:
    """Fill rows of deals (see `layout`) with random hands."""
    deck = np.arange(52).astype(np.uint8)
    hand = np.empty(7, np.uint8)
    values = np.empty(players, np.int64)
    for i in range(len(out)):
        # the first steps of a Fisher-Yates shuffle; the deck may stay as the last deal left it
        for k in range(2 * players + 5):
            j = k + random_below(random, 52 - k)
            deck[k], deck[j] = deck[j], deck[k]
        hand[2:] = deck[2 * players : 2 * players + 5]
        for p in range(players):
            hand[0] = deck[2 * p]
            hand[1] = deck[2 * p + 1]
            for street in range(4):
                out[i, 4 * p + street] = bucket(street, hand[:2], hand[2:], tables)
            values[p] = hand_value(hand, 7, ranks)
        # a place is how many players it beats: equal hands get the same, and int16 holds it
        for p in range(players):
            out[i, 4 * players + p] = np.sum(values < values[p])


def dealer_of(tables: Buckets, players: int = 2) -> Callable[[Array, Array], None]:
    """Return the dealer into these buckets (see `holdem.Dealer`); they must have rivers."""
    return partial(_deal_into, tables, players)


def _deal_into(tables: Buckets, players: int, random: Array, out: Array) -> None:
    _deal(random, tables, ranking(), players, out)


def deal_hands(tables: Buckets, seed: int, count: int, players: int = 2) -> Array:
    """Return (count, 5 * players) random hands as buckets (see `layout`)."""
    deals = np.empty((count, 5 * players), dtype=np.int16)
    _deal_into(tables, players, random_state(seed, 0), deals)
    return deals


def make_buckets(
    flop: HandClusters, turn: HandClusters, river: int, *, rivers: bool = True, progress: Progress = no_progress
) -> Buckets:
    """Assign all entries to their clusters; `rivers` also ranks every river entry (290 MB), which dealing needs."""
    strengths = ensure_tables(lambda done, total: progress(60 * done, 100 * total))
    near = assign_clusters(flop, strengths.flop.view(STRENGTH).ravel())
    progress(70, 100)
    far = assign_clusters(turn, strengths.turn.view(STRENGTH).ravel())
    progress(80, 100)
    ranked = river_strengths(lambda done, total: progress(80 * total + 20 * done, 100 * total)) if rivers else NO_RIVERS
    tables = without_rivers(near, far, river)
    return with_rivers(tables, ranked) if rivers else tables


def with_rivers(tables: Buckets, ranked: Words | None = None) -> Buckets:
    """Add the strength of every river entry to tables, which dealing needs; `ranked` where it is known already."""
    return tables._replace(river=river_strengths() if ranked is None else ranked, river_boards=boards(3).find)


def without_rivers(flop: Words, turn: Words, river: int) -> Buckets:
    """Make buckets from assigned flop and turn entries, for looking up strategies."""
    return Buckets(boards(1).find, boards(2).find, NO_BOARDS, flop, turn, NO_RIVERS, river_steps(river))


def river_steps(count: int) -> Words:
    """Return the river bucket of each 16-bit strength: `count` equal steps."""
    return equal_steps(65536, count).astype(np.uint16)


def equal_steps(buckets: int, groups: int) -> Array:
    """Return (buckets,) the group of each bucket, equally many in a row in each.

    >>> equal_steps(6, 3).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    return np.arange(buckets) * min(groups, buckets) // buckets
