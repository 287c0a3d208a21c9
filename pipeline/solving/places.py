"""Where an observed decision stands in the table of a strategy.

In: rows of OBSERVATION. Out: the row of each in a bucketed strategy (see `layout`) or in that of a small game (see
`small`). A decision is found by walking the betting tree along the row's betting codes, and by its cards. Whoever plays
a strategy looks it up this way, and whoever counts what an opponent did counts it there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.poker.cards import NO_CARD, Ranking, ranking
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.solving.buckets import Buckets, bucket_of_cards
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Layout
from pipeline.solving.small import SmallGame


class Situations(NamedTuple):
    """The fields of rows that a strategy is looked up by, one entry per row."""

    words: Array
    hole: Array
    board: Array
    street: Array
    position: Array


class Entries(NamedTuple):
    """The layout of a bucketed strategy as the kernels read it."""

    tree: Array
    child: Array
    offsets: Array
    counts: Array


def situations(rows: Array) -> Situations:
    """What decisions are looked up by."""
    fields = ("betting_codes", "hole", "board", "street", "position")
    return Situations(*(np.ascontiguousarray(rows[name]) for name in fields))


def entries(layout: Layout) -> Entries:
    """A layout for the kernels."""
    return Entries(layout.tree, layout.children, layout.offsets, layout.counts)


@kernel(leaf=True)
def _node(words: Array, child: Array) -> int:
    """The node that the betting codes of a row lead to; -1 if they are no betting of the game."""
    node = 0
    for street in range(4):
        word = words[street]
        shift = 0
        while word >> shift > 0:
            shift += 3
        while shift > 0:
            shift -= 3
            action = (word >> shift & 7) - 1
            if action < 0 or action > 2:
                return -1
            node = child[node, action]
            if node < 0:
                return -1
    return node


@kernel(leaf=True)
def bucket_row(i: int, rows: Situations, kept: Entries, tables: Buckets, ranks: Ranking) -> int:
    """The row of decision `i` in a bucketed strategy; -1 if it is none of the game's."""
    node = _node(rows.words[i], kept.child)
    round_, player = int(rows.street[i]), int(rows.position[i])
    if node < 0 or kept.tree[node, T_ACTOR] != player or kept.tree[node, T_ROUND] != round_:
        return -1
    bucket = bucket_of_cards(round_, rows.hole[i], rows.board[i], tables, ranks)
    return int(kept.offsets[round_, player] + bucket * kept.counts[round_, player] + kept.tree[node, T_SLOT])


@kernel
def _bucket_rows(rows: Situations, kept: Entries, tables: Buckets, ranks: Ranking, out: Array) -> None:
    for i in range(len(out)):
        out[i] = bucket_row(i, rows, kept, tables, ranks)


@kernel
def _small_rows(rows: Situations, child: Array, ranks: int, lowest: int, infos: int, out: Array) -> None:
    for i in range(len(out)):
        node = _node(rows.words[i], child)
        card = (int(rows.hole[i, 0]) >> 2) - lowest
        board = -1 if rows.board[i, 0] == NO_CARD else (int(rows.board[i, 0]) >> 2) - lowest
        inside = node >= 0 and 0 <= card < ranks and -1 <= board < ranks
        out[i] = node * infos + (board + 1) * ranks + card if inside else -1


def bucket_rows(layout: Layout, tables: Buckets, rows: Array) -> Array:
    """The row of each decision in a bucketed strategy."""
    out = np.empty(len(rows), np.int64)
    _bucket_rows(situations(rows), entries(layout), tables, ranking(), out)
    return _checked(out, layout.game.name)


def small_rows(small: SmallGame, rows: Array) -> Array:
    """The row of each decision in a small game's strategy."""
    out = np.empty(len(rows), np.int64)
    game = small.game
    _small_rows(situations(rows), small.tree.child, game.ranks, 13 - game.ranks, small.infos, out)
    return _checked(out, game.name)


def _checked(places: Array, game: str) -> Array:
    """The places, if every decision has one."""
    if (places < 0).any():
        raise PipelineError(f"row {int(np.argmax(places < 0))} is not a decision of {game}")
    return places
