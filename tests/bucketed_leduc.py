"""Leduc as a bucketed game whose buckets lose nothing, so that the bucketed solvers can be held to exact answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.game import find_game
from pipeline.solve.layout import Layout

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
