"""Exact hand strength and its distribution at the river, against one opponent with random cards.

The strength of a hand is the share of opponents' hands it beats, ties counting half. For a holding on a board:

- `ihs`: immediate strength, with the board as it is;
- `ehs`, `ehs2`: mean of the strength at the river, and of its square, over all boards still possible;
- `q`: the distribution of the strength at the river as the means of its eighths, weakest first. The earth mover's
  distance between two distributions is (in eighths) the sum of |differences| of these; their mean is `ehs`.

Everything is exact by enumeration, then rounded: 65535 or 255 stands for 1. Before the flop there is no made hand:
`ihs` is `ehs`, the chance against a random hand. On the river all are the one strength.

Two ways lead to the same numbers (see `holdings`). All holdings of a board at once: canonical rivers are ranked once
and shared by all flops and turns; this makes tables of all flop and turn entries (see `boards`; 290 MB in the user's
cache folder, memory-mapped). One holding at a time: needs no tables, and takes about 1 ms on the flop.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.cards import Ranking, cards_text, ranking, start_class
from pipeline.errors import PipelineError
from pipeline.files import Progress, quiet
from pipeline.kernels import cache_root, kernel
from pipeline.parallel import in_threads
from pipeline.strength.boards import BOARD_CARDS, HOLDINGS, boards, canonical, entries, renamed
from pipeline.strength.diskcache import keep, locked, open_kept
from pipeline.strength.win_counts import ONE, count_below, doubled_wins, rank_holdings, scaled, sort_holdings

__all__ = [
    "ONE",
    "STRENGTH",
    "Tables",
    "check_deals",
    "ensure_tables",
    "lookup",
    "preflop_rows",
    "river_strengths",
    "run_out",
    "run_out_board",
    "table_folder",
    "tables",
]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint16]
Counts: TypeAlias = npt.NDArray[np.int64]

STRENGTH = np.dtype([("ihs", "<u2"), ("ehs", "<u2"), ("ehs2", "<u2"), ("q", "u1", (8,))])
VERSION = 1
COLUMNS = 7  # a row of STRENGTH as 16-bit words
MANY = {1: 20_000, 2: 400_000}  # rows by street from which building the tables is quicker
_untabled = {1: 0, 2: 0}  # rows by street answered so far without tables


# One holding


@kernel(leaf=True)
def summarise(total: int, squares: int, histogram: Counts, lowest: int, highest: int, count: int, out: Words) -> None:
    """Write `ehs`, `ehs2` and `q` of `count` river strengths to a row, from their sums and 256-bin histogram.

    The histogram, empty outside `lowest` to `highest`, is empty afterwards.
    """
    out[1] = (2 * total + count) // (2 * count)
    out[2] = (2 * squares + ONE * count) // (2 * ONE * count)
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
def describe(strengths: Words, count: int, histogram: Counts, out: Words) -> None:
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
    out[2] = (2 * strength * strength + ONE) // (2 * ONE)
    for i in range(3, COLUMNS):
        out[i] = level << 8 | level


@kernel
def run_out(hole: Bytes, board: Bytes, count: int, tables: Ranking, strengths: Words) -> int:
    """Write the strength of one holding on every river that may follow a flop or turn; how many there are."""
    full = np.empty(5, np.uint8)
    taken = 1 << int(hole[0]) | 1 << int(hole[1])
    for i in range(count):
        full[i] = board[i]
        taken |= 1 << int(board[i])
    runouts = 0
    for first in range(52):
        if taken >> first & 1:
            continue
        full[count] = first
        for second in range(first + 1, 52) if count == 3 else range(1):
            if count == 3:
                if taken >> second & 1:
                    continue
                full[4] = second
            strengths[runouts] = scaled(doubled_wins(hole, full, 5, tables), 45)
            runouts += 1
    return runouts


@kernel
def enumerate_row(hole: Bytes, board: Bytes, count: int, tables: Ranking, out: Words) -> None:
    """Write the row of one holding on the flop or turn by enumeration."""
    strengths = np.empty(1081, np.uint16)
    runouts = run_out(hole, board, count, tables, strengths)
    describe(strengths, runouts, np.zeros(256, np.int64), out)
    out[0] = scaled(doubled_wins(hole, board, count, tables), 50 - count)


# All holdings of a board


@kernel
def _fill_rivers(cards: Bytes, first: int, last: int, tables: Ranking, out: Words) -> None:
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    items = np.empty(1326, np.uint32)
    spare = np.empty(1326, np.uint32)
    for number in range(first, last):
        left = rank_holdings(cards[number], 5, tables, deck, values)
        sort_holdings(values, left, items, spare)
        count_below(items, left, out[number * 1081 : (number + 1) * 1081])


@kernel(leaf=True)
def _add_runout(
    full: Bytes,
    deck: Bytes,
    left: int,
    find: npt.NDArray[np.uint32],
    rivers: Words,
    places: Counts,
    filled: Counts,
    strengths: Words,
) -> None:
    """Append the strength on one full board of every pair of `deck` to the pair's row of `strengths`."""
    number, names = canonical(full, 5, find)
    for i in range(left):  # where the canonical river's row has this card, -1 if it is on the board
        card = renamed(int(deck[i]), names)
        places[i] = card
        for j in range(5):
            other = renamed(int(full[j]), names)
            if other < card:
                places[i] -= 1
            elif other == card:
                places[i] = -52
    row = number * 1081
    pair = 0
    for i in range(1, left):
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
    cards: Bytes, deck: Bytes, left: int, find: npt.NDArray[np.uint32], rivers: Words, strengths: Words
) -> None:
    """Write the strengths of every pair of `deck` (all cards but a flop's or turn's) on every river that may follow."""
    count = len(cards)
    full = np.empty(5, np.uint8)
    places = np.empty(52, np.int64)
    filled = np.zeros(1326, np.int64)
    for i in range(count):
        full[i] = cards[i]
    for i in range(left):
        full[count] = deck[i]
        if count == 4:
            _add_runout(full, deck, left, find, rivers, places, filled, strengths)
        else:
            for j in range(i):
                full[4] = deck[j]
                _add_runout(full, deck, left, find, rivers, places, filled, strengths)


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
        left = rank_holdings(cards[number], count, tables, deck, values)
        sort_holdings(values, left, items, spare)
        count_below(items, left, now)
        run_out_board(cards[number], deck, left, find, rivers, strengths)
        pairs = left * (left - 1) // 2
        for pair in range(pairs):
            describe(strengths[pair], strengths.shape[1], histogram, out[number * pairs + pair])
            out[number * pairs + pair, 0] = now[pair]


def river_strengths(progress: Progress = quiet) -> Words:
    """The strength of every river entry, in order of entries (290 MB, some seconds)."""
    rivers = boards(3)
    out = np.empty(len(rivers.cards) * HOLDINGS[3], np.uint16)
    in_threads(
        lambda first, last: _fill_rivers(rivers.cards, first, last, ranking(), out), len(rivers.cards), 500, progress
    )
    return out


# Kept tables


class Tables(NamedTuple):
    """The kept rows of all entries as words, (entries, 7); without rows where none are kept."""

    flop: Words
    turn: Words


def table_folder() -> Path:
    """Where the tables are kept."""
    return cache_root() / "strength"


NAMES = ("", "flop", "turn")


def _kept(street: int) -> Words | None:
    table = open_kept(table_folder() / f"{NAMES[street]}.npy", VERSION)
    rows = len(boards(street).cards) * HOLDINGS[street]
    if table is None or table.dtype != STRENGTH or table.shape != (rows,):
        return None
    return table.view("<u2").reshape(rows, COLUMNS)


def ensure_tables(progress: Progress = quiet) -> Tables:
    """Build the flop and turn tables unless they are kept already (a minute on two cores)."""
    with locked(table_folder()):
        missing = [street for street in (1, 2) if _kept(street) is None]
        if missing:
            rivers = river_strengths(lambda done, total: progress(5 * done, 100 * total))
            for street in missing:
                keep(table_folder() / f"{NAMES[street]}.npy", _build(street, rivers, progress), VERSION)
    _tables_in.cache_clear()
    return tables()


def _build(street: int, rivers: Words, progress: Progress) -> npt.NDArray[Any]:
    """All rows of a street."""
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


def tables() -> Tables:
    """What is kept, opened once; streets without a kept table have no rows."""
    return _tables_in(table_folder())


@cache
def _tables_in(folder: Path) -> Tables:
    none = np.empty((0, COLUMNS), np.uint16)
    none.flags.writeable = False
    kept = (_kept(street) for street in (1, 2))
    return Tables(*(none if table is None else table for table in kept))


@cache
def preflop_rows() -> Words:
    """The row of each starting class, bundled."""
    with (
        as_file(files("pipeline").joinpath("resources", "preflop.npz")) as path,
        np.load(path, allow_pickle=False) as stored,
    ):
        rows: Words = stored["strength"]
    rows.flags.writeable = False
    return rows


# Queries


@kernel(leaf=True)
def _gather(numbers: npt.NDArray[np.int64], table: Words, out: Words) -> None:
    """Copy rows of a table; apart from the search for their numbers, so that cache misses overlap."""
    for row in range(len(numbers)):
        for i in range(COLUMNS):
            out[row, i] = table[numbers[row], i]


@kernel(leaf=True)
def _classes(hole: Bytes, out: npt.NDArray[np.int64]) -> None:
    for row in range(len(hole)):
        out[row] = start_class(int(hole[row, 0]), int(hole[row, 1]))


@kernel(leaf=True)
def _river_rows(hole: Bytes, board: Bytes, tables: Ranking, out: Words) -> None:
    for row in range(len(hole)):
        settled_row(scaled(doubled_wins(hole[row], board[row], 5, tables), 45), out[row])


@kernel
def _enumerated_rows(hole: Bytes, board: Bytes, count: int, tables: Ranking, out: Words) -> None:
    for row in range(len(hole)):
        enumerate_row(hole[row], board[row], count, tables, out[row])


@kernel(leaf=True)
def _first_bad(hole: Bytes, board: Bytes, count: int) -> int:
    """The first row with a missing, unknown or repeated card, or -1."""
    for row in range(len(hole)):
        seen = 0
        for i in range(2 + count):
            card = int(hole[row, i]) if i < 2 else int(board[row, i - 2])
            if card > 51 or seen >> card & 1:
                return row
            seen |= 1 << card
    return -1


def check_deals(street: int, hole: Bytes, board: Bytes) -> tuple[Bytes, Bytes]:
    """Rows of 2 hole and 5 board cards, contiguous; missing, unknown and repeated cards are refused."""
    if not 0 <= street < 4:
        raise PipelineError(f"{street} is not a street; they are 0 preflop, 1 flop, 2 turn, 3 river")
    hole, board = np.ascontiguousarray(hole, np.uint8), np.ascontiguousarray(board, np.uint8)
    count = BOARD_CARDS[street]
    if hole.ndim != 2 or board.ndim != 2 or hole.shape[1] != 2 or len(hole) != len(board) or board.shape[1] < count:
        raise PipelineError(
            f"hand strength takes rows of 2 hole and 5 board cards, not arrays of {hole.shape} and {board.shape}"
        )
    bad = _first_bad(hole, board, count)
    if bad >= 0:
        shown = [cards_text([c]) if c < 52 else "?" for c in (*hole[bad].tolist(), *board[bad, :count].tolist())]
        raise PipelineError(
            f"row {bad} has a repeated or missing card: it holds {''.join(shown[:2])} on "
            f"{''.join(shown[2:]) or 'no board'}; {count} different board cards are needed on this street"
        )
    return hole, board


def lookup(street: int, hole: Bytes, board: Bytes, progress: Progress = quiet) -> npt.NDArray[Any]:
    """STRENGTH of each row of 2 hole and 5 board cards (those beyond the street are not looked at).

    Few rows are answered without tables; many rows, in one call or over many, have the tables built first, once.
    """
    hole, board = check_deals(street, hole, board)
    count = BOARD_CARDS[street]
    out = np.empty((len(hole), COLUMNS), np.uint16)
    kept = _table_for(street, len(hole), progress) if street in (1, 2) else None

    def work(a: int, b: int) -> None:
        if street == 0:
            numbers = np.empty(b - a, np.int64)
            _classes(hole[a:b], numbers)
            _gather(numbers, preflop_rows(), out[a:b])
        elif street == 3:
            _river_rows(hole[a:b], board[a:b], ranking(), out[a:b])
        elif kept is not None:
            _gather(entries(street, hole[a:b], board[a:b]), kept, out[a:b])
        else:
            _enumerated_rows(hole[a:b], board[a:b], count, ranking(), out[a:b])

    least = 4 if street in (1, 2) and kept is None else 4096
    in_threads(work, len(hole), max(-(-len(hole) // 16), least), quiet)
    return out.view(STRENGTH).reshape(len(hole))


def _table_for(street: int, rows: int, progress: Progress) -> Words | None:
    """The kept table of the flop or turn; built when the rows asked for, now and before, are worth it; else None."""
    kept = tables()[street - 1]
    if len(kept) == 0:
        _untabled[street] += rows
        if _untabled[street] < MANY[street]:
            return None
        kept = ensure_tables(progress)[street - 1]
    return kept
