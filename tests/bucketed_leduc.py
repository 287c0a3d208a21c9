"""Leduc as a bucketed game whose buckets lose nothing, so that the bucketed solvers can be held to exact answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.game import find_game
from pipeline.solve.cfr import ExactSolver
from pipeline.solve.layout import T_ACTOR, T_ROUND, T_SLOT, Layout
from pipeline.solve.small import SmallGame

LEDUC = find_game("leduc.limit.2p")
LAYOUT = Layout(LEDUC, (3, 9))


def deal_leduc(random: Any, deals: Any) -> None:
    """Leduc's cards as buckets."""
    rng = np.random.default_rng(int(random[0]))
    cards = rng.permuted(np.tile(np.arange(6) // 2, (len(deals), 1)), axis=1)[:, :3]
    for p in range(2):
        deals[:, 2 * p] = cards[:, p]
        deals[:, 2 * p + 1] = cards[:, p] * 3 + cards[:, 2]
    value = cards[:, :2] + 10 * (cards[:, :2] == cards[:, 2:])
    deals[:, 4] = np.sign(value[:, 0] - value[:, 1])


def leduc_dealer() -> Any:
    """`deal_leduc`, as a worker of a cluster makes it."""
    return deal_leduc


def exploitability(strategy: Any) -> float:
    """Of a bucketed Leduc strategy, by the exact best response."""
    exact = ExactSolver(LEDUC)
    small = SmallGame(LEDUC)
    for node in np.flatnonzero(LAYOUT.tree[:, T_ACTOR] >= 0):
        street, player, slot = (int(LAYOUT.tree[node, column]) for column in (T_ROUND, T_ACTOR, T_SLOT))
        for bucket in range(LAYOUT.sizes[street]):
            card, board = (bucket, -1) if street == 0 else divmod(bucket, 3)
            at = LAYOUT.offsets[street, player] + bucket * LAYOUT.counts[street, player] + slot
            exact._learnt.average[small.row_at(int(node), card, board)] = strategy[at]
    found = exact.point()[0].exploitability
    assert found is not None
    return found
