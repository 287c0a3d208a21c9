"""Buckets that learn together: few deals teach much, and what nobody learnt is played as it was at the start.

In: the group of every bucket on each street and a strategy to start from (`Learning`). Out: `Sharing` for the solver:
the regrets of a group are kept once, and every bucket adds a head start in proportion to the strategy that it starts
from. Of a million deals a river bucket of the teacher's sees a few dozen at each node, too few to tell actions apart; a
group of ten sees hundreds. So a run learns how an opponent wants to be played differently by group, and keeps the
finer strategy that it started from where there is nothing to gain.

Flop and turn buckets are grouped by their centroids (`similar`, k-means), which tell hands that may improve from made
ones of the same strength; river buckets, which are steps of strength, by neighbourhood (`neighbours`). The more deals
there are to learn from, the more groups (`groups_for`), until every bucket learns by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.solving.holdem import Sharing
from pipeline.solving.layout import Floats, Layout

ROUNDS = 30
"""of k-means, at most"""
PER_MILLION = (50, 50, 30)
"""groups of flop, turn and river buckets for each million deals"""
HEAD_START = 200.0
"""chips of regret, at the weight of the last deals, that the actions of the strategy at the start share"""


def neighbours(buckets: int, groups: int) -> Array:
    """(buckets,) the group of each bucket, so many in a row.

    >>> neighbours(6, 3).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    return np.arange(buckets) * min(groups, buckets) // buckets


def similar(centroids: Array, groups: int) -> Array:
    """(buckets,) the group of each bucket by k-means over centroids (buckets, 8), in order of strength at the start."""
    points = centroids.astype(np.float64)
    member = neighbours(len(points), groups)
    count = int(member.max()) + 1
    for _ in range(ROUNDS):
        sizes = np.bincount(member, minlength=count)
        middle = np.stack([np.bincount(member, column, count) for column in points.T], axis=1)
        middle = np.where(sizes[:, None] > 0, middle / np.maximum(sizes, 1)[:, None], np.inf)
        nearest = np.square(points[:, None] - middle).sum(axis=2).argmin(axis=1)
        if (nearest == member).all():
            break
        member = nearest
    return np.unique(member, return_inverse=True)[1]


def groups_for(deals: int, sizes: tuple[int, ...], centroids: tuple[Array, Array]) -> tuple[Array, ...]:
    """For each street (buckets,): the group of each bucket where so many deals are learnt from.

    Parameters: `sizes`, the buckets of each street; `centroids` of those on flop and turn.
    """
    flop, turn, river = (max(each, each * deals // 1_000_000) for each in PER_MILLION)
    alone = np.arange(sizes[0])  # starting hands never learn together
    return alone, similar(centroids[0], flop), similar(centroids[1], turn), neighbours(sizes[3], river)


@dataclass(frozen=True)
class Learning:
    """Which buckets learn together, and what is played until something is learnt."""

    groups: tuple[Array, ...]
    """for each street (buckets,): the group of each bucket"""
    start: Floats
    """(rows, 3) a strategy"""

    def sharing(self, layout: Layout, chunks: float) -> Sharing:
        """What rows share in a run whose regrets grow by so many chunks: one set of regrets for each group and node."""
        rows = np.empty(layout.rows, np.int32)
        used = 0
        for street, member in enumerate(self.groups):
            for player in range(2):
                first, nodes = int(layout.offsets[street, player]), int(layout.counts[street, player])
                part = used + member[:, None] * nodes + np.arange(nodes)
                rows[first : first + part.size] = part.ravel()
                used += (int(member.max()) + 1) * nodes
        return Sharing(rows, np.asarray(HEAD_START * chunks * self.start, np.float32))
