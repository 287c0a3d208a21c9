"""Coarser hands: the buckets of a strategy put together in groups, for what must be small or learnt from little.

In: the centroids of a strategy's flop and turn buckets (see `strategy`) and its tables (see `buckets`). Out: `Groups`,
the layout and tables of the same game with fewer buckets. Flop and turn buckets are put in order of mean strength and
cut into `BANDS` bands, each band by how far its strengths are spread into `SPREADS` groups (a made hand and a draw of
the same mean are played differently); the river has equal steps of strength; before the flop nothing is put together.
Counter-strategies of a portfolio are solved over groups. What is known of an opponent is kept over bands alone: its
*sketch*, a table of probabilities that an agent's whole play is put down in.

In Kuhn and Leduc every hand is a group and a band of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array, Words
from pipeline.solving.buckets import Buckets, river_steps
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Floats, Layout
from pipeline.solving.response import bucketed
from pipeline.solving.small import SmallGame
from pipeline.solving.strategy import StoredStrategy

BANDS = 25
SPREADS = 4


def group_numbers(centroids: Array) -> Words:
    """(clusters,): the group of each cluster, from its centroid of 8 quantiles.

    >>> group_numbers(np.repeat(np.arange(200)[:, None], 8, axis=1))[:8].tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    count = len(centroids)
    wide = centroids.astype(np.int64)
    by_strength = np.argsort(wide.sum(axis=1), kind="stable")
    spread = wide[:, -1] - wide[:, 0]
    out = np.empty(count, np.uint16)
    for band in range(BANDS):
        members = by_strength[band * count // BANDS : (band + 1) * count // BANDS]
        members = members[np.argsort(spread[members], kind="stable")]
        out[members] = band * SPREADS + np.arange(len(members)) * SPREADS // max(len(members), 1)
    return out


def group_tables(tables: Buckets, flop: Words, turn: Words, river: int) -> Buckets:
    """Tables whose buckets are put together: `flop` and `turn` have the new number of each, `river` says how many."""
    return tables._replace(flop=flop[tables.flop], turn=turn[tables.turn], steps=river_steps(river))


@dataclass(frozen=True)
class Groups:
    """The groups of hands over the buckets of a stored strategy."""

    stored: StoredStrategy
    tables: Buckets

    @cached_property
    def flop(self) -> Words:
        """(flop buckets,) group of each."""
        return group_numbers(self.stored.flop)

    @cached_property
    def turn(self) -> Words:
        """(turn buckets,) group of each."""
        return group_numbers(self.stored.turn)

    @cached_property
    def layout(self) -> Layout:
        """A row for each decision with each group."""
        count = BANDS * SPREADS
        return Layout(self.stored.layout.game, (169, count, count, count))

    @cached_property
    def bands(self) -> Layout:
        """A row for each decision with each band."""
        return Layout(self.stored.layout.game, (169, BANDS, BANDS, BANDS))

    @cached_property
    def grouped(self) -> Buckets:
        """The tables of the groups."""
        return group_tables(self.tables, self.flop, self.turn, BANDS * SPREADS)

    @cached_property
    def banded(self) -> Buckets:
        """The tables of the bands."""
        near, far = (np.asarray(numbers // SPREADS, np.uint16) for numbers in (self.flop, self.turn))
        return group_tables(self.tables, near, far, BANDS)

    def project(self, probabilities: Callable[[Array], Array], *, each: int = 4) -> Floats:
        """An agent's play over groups: the mean over `each` hands of every group."""
        return bucketed(probabilities, self.layout, self.grouped, each=each)

    def sketch(self, probabilities: Callable[[Array], Array], *, each: int = 8) -> Floats:
        """An agent's play over bands."""
        return bucketed(probabilities, self.bands, self.banded, each=each)

    def outline(self, strategy: Floats) -> Floats:
        """The sketch of a strategy over groups: the mean of each band's groups."""
        out = np.empty((self.bands.rows, 3), np.float32)
        for street, size in enumerate(self.bands.sizes):
            merged = self.layout.sizes[street] // size
            for player in range(2):
                nodes = int(self.layout.counts[street, player])
                fine, coarse = int(self.layout.offsets[street, player]), int(self.bands.offsets[street, player])
                part = strategy[fine : fine + size * merged * nodes].reshape(size, merged, nodes, 3).mean(axis=1)
                out[coarse : coarse + size * nodes] = part.reshape(-1, 3)
        return out


def small_layout(game: Game) -> Layout:
    """A small game as a bucketed one: the own card's rank, then also the board's, is the bucket."""
    small = SmallGame(game)
    shown = [game.visible(street) > 0 for street in range(game.rounds)]
    return Layout(small.game, tuple(game.ranks * (game.ranks if seen else 1) for seen in shown))


def from_small(layout: Layout, strategy: Array) -> Floats:
    """A strategy of a small game (see `small`), row by row of its bucketed layout."""
    game = layout.game
    small, tree = SmallGame(game), layout.tree
    out = np.empty((layout.rows, 3), np.float32)
    for node in np.flatnonzero(tree[:, T_ACTOR] >= 0):
        street, player = int(tree[node, T_ROUND]), int(tree[node, T_ACTOR])
        for bucket in range(layout.sizes[street]):
            board, card = divmod(bucket, game.ranks)
            place = small.row_at(int(node), card, board if game.visible(street) > 0 else -1)
            at = layout.offsets[street, player] + bucket * layout.counts[street, player] + tree[node, T_SLOT]
            out[at] = strategy[place]
    return out
