"""Groups of buckets: coarser hands, for portfolios that must be small and for learning from few deals.

In: the centroids of a strategy's flop and turn buckets (see `strategy`) and its tables (see `buckets`). Out:
`HandGroups`, the layout and tables of the same game with fewer buckets. Flop and turn buckets are put in order of mean
strength and cut into `BANDS` bands, each band by how far its strengths are spread into `SPREADS` groups (a made hand
and a draw of the same mean are played differently); the river has equal steps of strength; starting hands are left as
they are.
Counter-strategies of a portfolio are solved over groups. A known opponent is stored over bands alone, as its *sketch*:
a table of the probabilities of all its play.

In Kuhn and Leduc every hand is a group and a band of its own.

For learning from few deals `learning_groups` puts buckets together by k-means over their centroids, which tell hands
that may improve from made ones of the same strength; river buckets, which are steps of strength, by neighbourhood. The
more deals there are to learn from, the more groups, until every bucket learns by itself. The two ways differ because
the groups of a portfolio are fixed and nested in bands, and those of a run change with its deals. What logs show is too
little for either: it is counted in `strength_groups`, ten steps of strength.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.poker.game import Game
from pipeline.poker.starting_hands import class_matchups
from pipeline.runtime.array_types import Array, Singles, Words
from pipeline.solving.buckets import Buckets, equal_steps, river_steps
from pipeline.solving.layout import Layout
from pipeline.solving.lookup import project_on_buckets
from pipeline.solving.preflop import CLASSES
from pipeline.solving.small import SmallGame
from pipeline.solving.strategy import StoredStrategy

BANDS = 25
SPREADS = 4


def group_numbers(centroids: Array) -> Words:
    """Return (clusters,) the group of each cluster, from its centroid of 8 quantiles.

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
    """Renumber the buckets of tables: `flop` and `turn` hold the group of each, `river` is the number of groups."""
    return tables._replace(flop=flop[tables.flop], turn=turn[tables.turn], steps=river_steps(river))


@dataclass(frozen=True)
class HandGroups:
    """Groups and bands of hands over the buckets of a stored strategy."""

    stored: StoredStrategy
    tables: Buckets

    @cached_property
    def flop(self) -> Words:
        """Return (flop buckets,) the group of each."""
        return group_numbers(self.stored.flop)

    @cached_property
    def turn(self) -> Words:
        """Return (turn buckets,) the group of each."""
        return group_numbers(self.stored.turn)

    @cached_property
    def layout(self) -> Layout:
        """Return the layout with a row for each decision and group."""
        count = BANDS * SPREADS
        return Layout(self.stored.layout.game, (CLASSES, count, count, count))

    @cached_property
    def bands(self) -> Layout:
        """Return the layout with a row for each decision and band."""
        return Layout(self.stored.layout.game, (CLASSES, BANDS, BANDS, BANDS))

    @cached_property
    def grouped(self) -> Buckets:
        """Return the tables of the groups."""
        return group_tables(self.tables, self.flop, self.turn, BANDS * SPREADS)

    @cached_property
    def banded(self) -> Buckets:
        """Return the tables of the bands."""
        near, far = (np.asarray(numbers // SPREADS, np.uint16) for numbers in (self.flop, self.turn))
        return group_tables(self.tables, near, far, BANDS)

    def project(self, probabilities: Callable[[Array], Array], *, samples: int = 4) -> Singles:
        """Project an agent's play on groups: the mean over `samples` hands of every group."""
        return project_on_buckets(probabilities, self.layout, self.grouped, samples=samples)

    def sketch(self, probabilities: Callable[[Array], Array], *, samples: int = 8) -> Singles:
        """Project an agent's play on bands."""
        return project_on_buckets(probabilities, self.bands, self.banded, samples=samples)

    def sketch_strategy(self, strategy: Singles) -> Singles:
        """Project a strategy over groups on bands: the mean of each band's groups."""
        out = np.empty((self.bands.rows, 3), np.float32)
        for fine, coarse in zip(self.layout.blocks, self.bands.blocks, strict=True):
            part = strategy[fine.rows].reshape(coarse.buckets, -1, len(fine.nodes), 3).mean(axis=1)
            out[coarse.rows] = part.reshape(-1, 3)
        return out


def small_layout(game: Game) -> Layout:
    """Lay a small game out as a bucketed one, whose buckets are the own card's rank, then also the board's."""
    small = SmallGame(game)
    boards = [game.ranks if game.visible(street) > 0 else 1 for street in range(game.rounds)]
    return Layout(small.game, tuple(game.ranks * count for count in boards))


def from_small_game(layout: Layout, strategy: Array) -> Singles:
    """Reorder a strategy of a small game (see `small`) by the rows of its bucketed layout."""
    game = layout.game
    small = SmallGame(game)
    out = np.empty((layout.rows, 3), np.float32)
    for block in layout.blocks:
        board, card = np.divmod(np.arange(block.buckets)[:, None], game.ranks)
        small_rows = small.row_at(block.nodes, card, board if game.visible(block.street) > 0 else -1)
        out[block.rows] = strategy[small_rows.ravel()]
    return out


# Groups that learn together

KMEANS_ROUNDS = 30
"""at most"""
STRENGTH_GROUPS = 10
"""groups in which the hands of a street are counted in logs: single buckets are seen too rarely"""
GROUPS_PER_MILLION = (50, 50, 30)
"""groups of flop, turn and river buckets for each million deals"""


def kmeans_groups(centroids: Array, groups: int) -> Array:
    """Group buckets by k-means over centroids (buckets, 8), which starts from the order of strength: (buckets,)."""
    points = centroids.astype(np.float64)
    member = equal_steps(len(points), groups)
    count = int(member.max()) + 1
    for _ in range(KMEANS_ROUNDS):
        sizes = np.bincount(member, minlength=count)
        middle = np.stack([np.bincount(member, column, count) for column in points.T], axis=1)
        # an emptied group is put infinitely far away, so that no bucket joins it again and the result stays the same
        middle = np.where(sizes[:, None] > 0, middle / np.maximum(sizes, 1)[:, None], np.inf)
        nearest = np.square(points[:, None] - middle).sum(axis=2).argmin(axis=1)
        if (nearest == member).all():
            break
        member = nearest
    return np.unique(member, return_inverse=True)[1]


def learning_groups(deals: int, sizes: tuple[int, ...], centroids: tuple[Array, Array]) -> tuple[Array, ...]:
    """Return for each street (buckets,) the group of each bucket in a run of `deals` deals.

    Parameters: `sizes`, the buckets of each street; `centroids` of those on flop and turn.
    """
    flop, turn, river = (max(rate, rate * deals // 1_000_000) for rate in GROUPS_PER_MILLION)
    starting_hands = np.arange(sizes[0])  # these never learn together
    return (
        starting_hands,
        kmeans_groups(centroids[0], flop),
        kmeans_groups(centroids[1], turn),
        equal_steps(sizes[3], river),
    )


def strength_groups(buckets: int) -> Array:
    """Return (buckets,) the group of each bucket by strength; all but starting hands are numbered by strength."""
    groups = equal_steps(buckets, STRENGTH_GROUPS)
    if buckets != CLASSES:
        return groups
    win, tie, _ = class_matchups().against_random().T
    return groups[(win + tie / 2).argsort().argsort()]
