"""Leduc as a bucketed game whose buckets lose nothing, so that the bucketed solvers can be held to exact answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.poker.game import Game, find_game
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Layout
from pipeline.solving.small import SmallGame

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
    deals[:, 4:] = value > value.min(axis=1, keepdims=True)


def leduc_dealer() -> Any:
    """`deal_leduc`, as a worker of a cluster makes it."""
    return deal_leduc


def rows_of_leduc() -> tuple[np.ndarray, np.ndarray]:
    """The rows of `LAYOUT`, and the same decisions' rows of the small game."""
    small, ours, exact = SmallGame(LEDUC), [], []
    for node in np.flatnonzero(LAYOUT.tree[:, T_ACTOR] >= 0):
        street, player, slot = (int(LAYOUT.tree[node, column]) for column in (T_ROUND, T_ACTOR, T_SLOT))
        for bucket in range(LAYOUT.sizes[street]):
            card, board = (bucket, -1) if street == 0 else divmod(bucket, 3)
            ours.append(int(LAYOUT.offsets[street, player] + bucket * LAYOUT.counts[street, player] + slot))
            exact.append(small.row_at(int(node), card, board))
    return np.array(ours), np.array(exact)


def random_strategy(game: Game, seed: int) -> np.ndarray:
    """A random strategy of a small game."""
    small = SmallGame(game)
    legal = np.repeat(small.tree.child >= 0, small.infos, axis=0)
    mix = np.random.default_rng(seed).random(legal.shape) * legal
    total = mix.sum(axis=1, keepdims=True)
    return np.where(total > 0, mix / np.where(total > 0, total, 1), 0.0)


def exploitability(strategy: Any) -> float:
    """Of a bucketed Leduc strategy, by the exact best response."""
    ours, exact = rows_of_leduc()
    solver = ExactSolver(LEDUC)
    solver._learnt.average[exact] = strategy[ours]
    found = solver.point()[0].exploitability
    assert found is not None
    return found
