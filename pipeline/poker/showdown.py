"""The value of cards at a showdown, in every game that a `.game` file can describe: the one definition.

A player's hole cards and the board go in, a number comes out; the higher number wins, equal numbers split. With five
cards or more it is the value of the best five (`cards`); with fewer, the same order of four of a kind, three of a kind,
two pair, pair and high card. Arena, ingest, dealer, agents and solvers all come here, because two definitions once
gave two winners.
"""

from __future__ import annotations

from pipeline.poker.cards import Ranking, holding_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


@kernel(leaf=True)
def ranks_value(ranks: int, count: int) -> int:
    """Return the value of one to four cards from their `ranks` (four bits each, the first card lowest).

    As among five cards: four of a kind, three of a kind, two pair, pair, high card; then the ranks, those of the larger
    group first. Only values of the same `count` compare. Ranks up to 15 are possible, so games may have more than 13.
    """
    groups = 0  # larger for a better kind of hand: 16, 10, 8, 6, 4 with four cards
    keys = 0  # a byte per card: the size of its group, then its rank
    for i in range(count):
        rank = ranks >> (4 * i) & 15
        size = 0
        for j in range(count):
            size += 1 if ranks >> (4 * j) & 15 == rank else 0
        groups += size
        keys |= (16 * size + rank) << (8 * i)
    value = groups << 16
    for i in range(count):
        # the cards it beats are its place in the order: sorted without an array, so that callers can inline this
        key = keys >> (8 * i) & 255
        behind = 0
        for j in range(count):
            other = keys >> (8 * j) & 255
            behind += 1 if other < key or (other == key and j < i) else 0
        value |= (key & 15) << (4 * behind)
    return value


@kernel(leaf=True)
def showdown_value(hole: Array, hole_count: int, board: Array, count: int, tables: Ranking) -> int:
    """Return the value of the first `hole_count` hole cards with the first `count` board cards; the higher wins.

    This is the one definition of a showdown. Values compare among players of one hand, who see equally many cards.
    """
    if hole_count + count < 5:
        ranks = 0
        for i in range(hole_count):
            ranks |= int(hole[i] >> 2) << (4 * i)
        for i in range(count):
            ranks |= int(board[i] >> 2) << (4 * (hole_count + i))
        return ranks_value(ranks, hole_count + count)
    return holding_value(hole, hole_count, board, count, tables)


@kernel
def showdown_values(holes: Array, hole_count: int, boards: Array, tables: Ranking, out: Array) -> None:
    """Write the value of each player's cards in each hand to `out` (hands x players).

    `holes` (hands x players * hole_count) has the players' cards side by side, `boards` (hands x cards) whole boards.
    """
    for hand in range(out.shape[0]):
        for player in range(out.shape[1]):
            hole = holes[hand, player * hole_count : (player + 1) * hole_count]
            out[hand, player] = showdown_value(hole, hole_count, boards[hand], boards.shape[1], tables)
