"""Quantiles of the strength at the river: the medians of its fifths, at 10, 30, 50, 70 and 90 %.

The means that `rows` computes say how much a hand is worth; these say what it may become. A draw that one river card in
nine completes moves a mean a little, and a quantile from one end to the other: agents that group hands by quantiles, as
many solvers do, tell such hands apart, and so must a copy of such an agent.

Of n strengths in ascending order the quantile at level x is number int(x (n - 1) + 1/2), from 0; 255 stands for 1. As
for the means there are tables of all flop and turn entries (100 MB in the user's cache folder, made when a pattern
first asks for many rows), few rows are answered by enumeration, and on the river all five are the one strength.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.strength.board_tables import river_strengths, run_out_board, table_folder
from pipeline.poker.strength.boards import BOARD_CARDS, HOLDINGS, boards, entry_numbers
from pipeline.poker.strength.queries import check_deals
from pipeline.poker.strength.queries import find_strengths as strengths_of
from pipeline.poker.strength.rows import run_out
from pipeline.poker.strength.win_counts import rank_holdings
from pipeline.runtime.array_types import Bytes, Counts, Words
from pipeline.runtime.diskcache import locked, open_array, store_array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import no_progress

FIFTHS = 5
VERSION = 1
NAMES = ("", "fifths-flop.npy", "fifths-turn.npy")
TABLE_ROWS = 20_000
"""rows from which on building the tables is quicker than enumeration"""


@kernel
def _quantiles(strengths: Words, count: int, histogram: Counts, out: Bytes) -> None:
    """Write the medians of the fifths of the first `count` strengths; the histogram is empty before and after."""
    for k in range(count):
        histogram[(int(strengths[k]) + 128) // 257] += 1
    level = -1
    below = 0
    for fifth in range(FIFTHS):
        # int(x (count - 1) + 1/2) at x = 10, 30 ... 90 %, in whole numbers
        place = ((2 * fifth + 1) * (count - 1) + 5) // 10
        while below <= place:
            level += 1
            below += histogram[level]
        out[fifth] = level
    histogram[:] = 0


@kernel
def _enumerate(hole: Bytes, board: Bytes, count: int, tables: Ranking, out: Bytes) -> None:
    """Write rows of holdings on the flop or turn, without tables."""
    strengths = np.empty(1081, np.uint16)
    histogram = np.zeros(256, np.int64)
    for row in range(len(hole)):
        runouts = run_out(hole[row], board[row], count, tables, strengths)
        _quantiles(strengths, runouts, histogram, out[row])


@kernel
def _fill(
    cards: Bytes, find: npt.NDArray[np.uint32], rivers: Words, tables: Ranking, out: Bytes, first: int, last: int
) -> None:
    """Write the rows of all pairs on the canonical flops or turns from `first` to before `last`."""
    count = cards.shape[1]
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    strengths = np.empty((1326, 46 if count == 4 else 1081), np.uint16)
    histogram = np.zeros(256, np.int64)
    for number in range(first, last):
        deck_size = rank_holdings(cards[number], count, tables, deck, values)
        run_out_board(cards[number], deck, deck_size, find, rivers, strengths)
        pairs = deck_size * (deck_size - 1) // 2
        for pair in range(pairs):
            _quantiles(strengths[pair], strengths.shape[1], histogram, out[number * pairs + pair])


@cache
def _load_table(folder: Path, street: int) -> Bytes | None:
    shape = (len(boards(street).cards) * HOLDINGS[street], FIFTHS)
    return open_array(folder / NAMES[street], VERSION, lambda table: table.dtype == np.uint8 and table.shape == shape)


def _make_tables(folder: Path) -> None:
    """Make the tables that are not stored."""
    with locked(folder):
        _load_table.cache_clear()
        missing = [street for street in (1, 2) if _load_table(folder, street) is None]
        rivers = river_strengths() if missing else np.empty(0, np.uint16)
        for street in missing:
            cards = boards(street).cards
            table = np.zeros((len(cards) * HOLDINGS[street], FIFTHS), np.uint8)
            fill = partial(_fill, cards, boards(3).find, rivers, ranking(), table)
            in_threads(fill, len(cards), 5 if street == 1 else 100, no_progress)
            store_array(folder / NAMES[street], table, VERSION)
    _load_table.cache_clear()


def find_quantiles(street: int, hole: Bytes, board: Bytes) -> Bytes:
    """Return (rows, 5) medians of fifths of each row of 2 hole and 5 board cards, from the flop on."""
    if street == 3:
        return np.ascontiguousarray(strengths_of(3, hole, board)["q"][:, :FIFTHS])
    hole, board = check_deals(street, hole, board)
    if len(hole) >= TABLE_ROWS and _load_table(table_folder(), street) is None:
        _make_tables(table_folder())
    table = _load_table(table_folder(), street)
    if table is not None:
        return np.asarray(table[entry_numbers(street, hole, board)])
    out = np.empty((len(hole), FIFTHS), np.uint8)
    in_threads(
        lambda a, b: _enumerate(hole[a:b], board[a:b], BOARD_CARDS[street], ranking(), out[a:b]),
        len(hole),
        max(-(-len(hole) // 16), 4),
        no_progress,
    )
    return out
