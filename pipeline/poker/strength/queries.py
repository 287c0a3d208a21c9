"""The strength of many hands at once, by the quickest way: `find_strengths`.

Rows of hole and board cards go in, rows of `STRENGTH` come out: before the flop from the bundled match-ups, on the flop
and turn from the stored tables or by enumeration, on the river by counting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import Ranking, cards_text, ranking, start_class
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.board_tables import ensure_tables, open_tables
from pipeline.poker.strength.boards import BOARD_CARDS, entry_numbers
from pipeline.poker.strength.rows import COLUMNS, STRENGTH, enumerate_row, settled_row
from pipeline.poker.strength.win_counts import doubled_wins, scaled_strength
from pipeline.runtime.array_types import Bytes, Words
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import Progress, no_progress

TABLE_ROWS = {1: 20_000, 2: 400_000}  # rows by street from which building the tables is quicker
_untabled = {1: 0, 2: 0}  # rows by street answered so far without tables


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
        settled_row(scaled_strength(doubled_wins(hole[row], board[row], 5, tables), 45), out[row])


@kernel
def _enumerated_rows(hole: Bytes, board: Bytes, count: int, tables: Ranking, out: Words) -> None:
    for row in range(len(hole)):
        enumerate_row(hole[row], board[row], count, tables, out[row])


@kernel(leaf=True)
def _first_bad(hole: Bytes, board: Bytes, count: int) -> int:
    """Return the first row with a missing, unknown or repeated card, or -1."""
    for row in range(len(hole)):
        seen = 0
        for i in range(2 + count):
            card = int(hole[row, i]) if i < 2 else int(board[row, i - 2])
            if card > 51 or seen >> card & 1:
                return row
            seen |= 1 << card
    return -1


def check_deals(street: int, hole: Bytes, board: Bytes) -> tuple[Bytes, Bytes]:
    """Return contiguous rows of 2 hole and 5 board cards; refuse missing, unknown and repeated cards."""
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
        texts = [cards_text([c]) if c < 52 else "?" for c in (*hole[bad].tolist(), *board[bad, :count].tolist())]
        raise PipelineError(
            f"row {bad} has a repeated or missing card: it holds {''.join(texts[:2])} on "
            f"{''.join(texts[2:]) or 'no board'}; {count} different board cards are needed on this street"
        )
    return hole, board


def find_strengths(street: int, hole: Bytes, board: Bytes, progress: Progress = no_progress) -> npt.NDArray[Any]:
    """Return STRENGTH of each row of 2 hole and 5 board cards (those beyond the street are ignored).

    Few rows are answered without tables; many rows, in one call or over many, have the tables built first, once.
    """
    hole, board = check_deals(street, hole, board)
    count = BOARD_CARDS[street]
    out = np.empty((len(hole), COLUMNS), np.uint16)
    table = _table_for(street, len(hole), progress) if street in (1, 2) else None

    def work(a: int, b: int) -> None:
        if street == 0:
            numbers = np.empty(b - a, np.int64)
            _classes(hole[a:b], numbers)
            _gather(numbers, preflop_rows(), out[a:b])
        elif street == 3:
            _river_rows(hole[a:b], board[a:b], ranking(), out[a:b])
        elif table is not None:
            _gather(entry_numbers(street, hole[a:b], board[a:b]), table, out[a:b])
        else:
            _enumerated_rows(hole[a:b], board[a:b], count, ranking(), out[a:b])

    least = 4 if street in (1, 2) and table is None else 4096
    in_threads(work, len(hole), max(-(-len(hole) // 16), least), no_progress)
    return out.view(STRENGTH).reshape(len(hole))


def _table_for(street: int, rows: int, progress: Progress) -> Words | None:
    """Return the stored table of a street, built when the rows asked for, now and before, are worth it; or None."""
    table = open_tables()[street - 1]
    if len(table) == 0:
        # many small questions are as much work as one large one: all of this process are counted
        _untabled[street] += rows
        if _untabled[street] < TABLE_ROWS[street]:
            return None
        table = ensure_tables(progress)[street - 1]
    return table
