"""Tables of the strength of every holding on every flop and turn, stored on this machine (290 MB, memory-mapped).

All holdings of a board at once: canonical rivers (see `boards`) are ranked once and shared by all flops and turns, so
that a table takes a minute where enumeration by holding would take hours. The rows are those of `rows`, bit for bit.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.strength.boards import HOLDINGS, boards, canonical, rename_suit
from pipeline.poker.strength.rows import COLUMNS, STRENGTH, summarise_strengths
from pipeline.poker.strength.win_counts import count_below, rank_holdings, sort_holdings
from pipeline.runtime.array_types import Bytes, Counts, Words
from pipeline.runtime.diskcache import cache_root, load_or_build, open_array, store_array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import Progress, no_progress

VERSION = 1


@kernel
def _fill_rivers(cards: Bytes, first: int, last: int, tables: Ranking, out: Words) -> None:
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    items = np.empty(1326, np.uint32)
    spare = np.empty(1326, np.uint32)
    for number in range(first, last):
        deck_size = rank_holdings(cards[number], 5, tables, deck, values)
        sort_holdings(values, deck_size, items, spare)
        count_below(items, deck_size, out[number * 1081 : (number + 1) * 1081])


@kernel(leaf=True)
def _add_runout(
    full: Bytes,
    deck: Bytes,
    deck_size: int,
    find: npt.NDArray[np.uint32],
    rivers: Words,
    places: Counts,
    filled: Counts,
    strengths: Words,
) -> None:
    """Append the strength on one full board of every pair of `deck` to the pair's row of `strengths`."""
    number, names = canonical(full, 5, find)
    for i in range(deck_size):  # where the canonical river's row has this card, -1 if it is on the board
        card = rename_suit(int(deck[i]), names)
        places[i] = card
        for j in range(5):
            other = rename_suit(int(full[j]), names)
            if other < card:
                places[i] -= 1
            elif other == card:
                places[i] = -52
    row = number * 1081
    pair = 0
    for i in range(1, deck_size):
        mine = places[i]
        if mine < 0:
            pair += i
            continue
        for j in range(i):
            other = places[j]
            if other >= 0:
                high = mine if mine > other else other
                low = mine + other - high
                strengths[pair, filled[pair]] = rivers[row + high * (high - 1) // 2 + low]
                filled[pair] += 1
            pair += 1


@kernel
def run_out_board(
    cards: Bytes, deck: Bytes, deck_size: int, find: npt.NDArray[np.uint32], rivers: Words, strengths: Words
) -> None:
    """Write the strengths of every pair of `deck` (all cards but a flop's or turn's) on every river that may follow."""
    count = len(cards)
    full = np.empty(5, np.uint8)
    places = np.empty(52, np.int64)
    filled = np.zeros(1326, np.int64)
    for i in range(count):
        full[i] = cards[i]
    for i in range(deck_size):
        full[count] = deck[i]
        if count == 4:
            _add_runout(full, deck, deck_size, find, rivers, places, filled, strengths)
        else:
            for j in range(i):
                full[4] = deck[j]
                _add_runout(full, deck, deck_size, find, rivers, places, filled, strengths)


@kernel
def _fill_boards(
    cards: Bytes,
    first: int,
    last: int,
    find: npt.NDArray[np.uint32],
    rivers: Words,
    tables: Ranking,
    out: Words,
) -> None:
    """Write the rows of all pairs on the canonical flops or turns from `first` to before `last`."""
    count = cards.shape[1]
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    items = np.empty(1326, np.uint32)
    spare = np.empty(1326, np.uint32)
    now = np.empty(1326, np.uint16)
    strengths = np.empty((1326, 46 if count == 4 else 1081), np.uint16)
    histogram = np.zeros(256, np.int64)
    for number in range(first, last):
        deck_size = rank_holdings(cards[number], count, tables, deck, values)
        sort_holdings(values, deck_size, items, spare)
        count_below(items, deck_size, now)
        run_out_board(cards[number], deck, deck_size, find, rivers, strengths)
        pairs = deck_size * (deck_size - 1) // 2
        for pair in range(pairs):
            summarise_strengths(strengths[pair], strengths.shape[1], histogram, out[number * pairs + pair])
            out[number * pairs + pair, 0] = now[pair]


def river_strengths(progress: Progress = no_progress) -> Words:
    """Compute the strength of every river entry, in order of entries (290 MB, some seconds)."""
    rivers = boards(3)
    out = np.empty(len(rivers.cards) * HOLDINGS[3], np.uint16)
    in_threads(
        lambda first, last: _fill_rivers(rivers.cards, first, last, ranking(), out), len(rivers.cards), 500, progress
    )
    return out


# Stored tables


class BoardTables(NamedTuple):
    """The stored rows of all entries as words, (entries, 7); without rows where none are stored."""

    flop: Words
    turn: Words


def table_folder() -> Path:
    """Return the folder of the tables."""
    return cache_root() / "strength"


NAMES = ("", "flop", "turn")


def _load_table(street: int) -> Words | None:
    rows = len(boards(street).cards) * HOLDINGS[street]
    path = table_folder() / f"{NAMES[street]}.npy"
    table = open_array(path, VERSION, lambda table: table.dtype == STRENGTH and table.shape == (rows,))
    return None if table is None else table.view("<u2").reshape(rows, COLUMNS)


def ensure_tables(progress: Progress = no_progress) -> BoardTables:
    """Build the flop and turn tables unless they are stored already (a minute on two cores)."""

    def missing() -> list[int]:
        return [street for street in (1, 2) if _load_table(street) is None]

    def make() -> bool:
        # the strengths on all rivers are made once for both streets: they are the costly part
        rivers = river_strengths(lambda done, total: progress(5 * done, 100 * total))
        for street in missing():
            store_array(table_folder() / f"{NAMES[street]}.npy", _build(street, rivers, progress), VERSION)
        return True

    load_or_build(table_folder(), lambda: None if missing() else True, make)
    _tables_in.cache_clear()
    return open_tables()


def _build(street: int, rivers: Words, progress: Progress) -> npt.NDArray[Any]:
    """Compute all rows of a street."""
    cards = boards(street).cards
    table = np.zeros(len(cards) * HOLDINGS[street], STRENGTH)
    words = table.view("<u2").reshape(-1, COLUMNS)
    start, share = (5, 40) if street == 1 else (45, 55)
    in_threads(
        lambda first, last: _fill_boards(cards, first, last, boards(3).find, rivers, ranking(), words),
        len(cards),
        5 if street == 1 else 100,
        lambda done, total: progress(start * total + share * done, 100 * total),
    )
    return table


def open_tables() -> BoardTables:
    """Open the stored tables, once; streets without a stored table have no rows."""
    return _tables_in(table_folder())


@cache
def _tables_in(folder: Path) -> BoardTables:
    none = np.empty((0, COLUMNS), np.uint16)
    none.flags.writeable = False
    stored = (_load_table(street) for street in (1, 2))
    return BoardTables(*(none if table is None else table for table in stored))
