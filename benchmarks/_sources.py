"""Solved agents that nobody tuned anything on, to be copied: part of `bench fidelity`.

Two strategies of heads-up limit hold'em, over other groups of hands than the teacher's: `squares` sees the expected
square of a hand's strength in steps, `few` sees fewer clusters of another seed. Each is an agent in memory, kept as an
array between runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents.teacher import Teacher
from pipeline.poker.game import builtin
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.poker.strength.hand_clusters import clusters
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.files import replacing
from pipeline.solving.buckets import Buckets, dealer_of, make_buckets, with_rivers, without_rivers
from pipeline.solving.holdem import CHUNK, BucketSolver
from pipeline.solving.layout import Layout
from pipeline.solving.strategy import Stored, quantise

GAME = builtin("holdem.limit.2p.reverse_blinds")


@dataclass(frozen=True)
class Source:
    """How a source groups hands: numbers of groups on flop, turn and river."""

    name: str
    sizes: tuple[int, int, int]
    seed: int
    by_squares: bool

    def buckets(self) -> Buckets:
        """The group of every holding."""
        flop, turn, river = self.sizes
        if not self.by_squares:
            return make_buckets(clusters(1, flop, self.seed), clusters(2, turn, self.seed), river)
        tables = ensure_tables()
        near, far = (
            _steps(table.view(STRENGTH).ravel()["ehs2"], size)
            for table, size in ((tables.flop, flop), (tables.turn, turn))
        )
        return with_rivers(without_rivers(near, far, river))


SOURCES = (Source("squares", (400, 400, 300), 21, True), Source("few", (300, 300, 200), 22, False))


def _steps(values: Any, size: int) -> Any:
    """Values cut into groups of about the same number of holdings."""
    cuts = np.unique(np.quantile(values, np.arange(1, size) / size))
    return np.searchsorted(cuts, values, side="right").astype(np.uint16)


def solved_source(source: Source, deals: int, folder: Path) -> Teacher:
    """The agent, solved with so many deals; its steps are kept in the folder."""
    tables = source.buckets()
    layout = Layout(GAME, (169, *source.sizes))
    file = folder / f"{source.name}.npy"
    if not file.is_file():
        solver = BucketSolver(layout, dealer_of(tables), source.seed)
        solver.run(-(-deals // CHUNK), workers=2)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as beside, beside.open("wb") as out:
            np.save(out, quantise(solver.strategy()))
    nothing = np.empty((0, 8), np.uint8)
    return Teacher(source.name, GAME, Stored(layout, np.load(file), nothing, nothing, "", {}), tables)
