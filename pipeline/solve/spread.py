"""The hold'em solver on a cluster: rounds in which workers learn from the same tables, then join what they learnt.

In: a `BucketSolver` and how a worker makes its dealer. Out: the same solver some chunks of deals further. A round is
divided into a fixed number of lanes of consecutive chunks, each walked by one thread from the tables as they were when
the round began. Then regrets are the mean of what the lanes have, and averages the sum of what each has added. (The sum
of the lanes' regrets would answer the same mistake once per lane, and swing ever wider.) So the bytes do not depend on
the number of workers, but they are not those of a run in one process, whose threads see each other's regrets at once:
in Leduc it comes as near an equilibrium as such a run on about half of the deals. Rounds grow with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pipeline.cluster import Cluster
from pipeline.files import Progress, quiet
from pipeline.solve.holdem import BucketSolver, Dealer, Restriction
from pipeline.solve.layout import Floats, Layout

__all__ = ["Spread", "run_spread"]

LANES = 8
"""of a round"""
LONGEST = 16
"""chunks of a lane, at most"""


@dataclass(frozen=True)
class Spread:
    """A cluster, and what makes the dealer on its workers: a function with plain arguments, called once in each."""

    cluster: Cluster
    make: Callable[..., Dealer]
    arguments: tuple[Any, ...]


def run_spread(solver: BucketSolver, chunks: int, spread: Spread, progress: Progress = quiet) -> None:
    """Go on until `chunks` chunks are done; an interruption leaves the rounds that ended."""
    first = solver.chunks
    while solver.chunks < chunks:
        length = max(1, min(LONGEST, solver.chunks // (2 * LANES)))
        stop = min(chunks, solver.chunks + LANES * length)
        lanes = [range(low, min(low + length, stop)) for low in range(solver.chunks, stop, length)]
        sent = spread.cluster.broadcast((solver.regret, solver.average, solver.model))
        given = (spread.make, spread.arguments, solver.layout.game, solver.layout.sizes, solver.seed, solver.players)
        tasks = [spread.cluster.submit(_learn, given, sent, lane) for lane in lanes]
        try:
            regret, average = np.zeros_like(solver.regret), solver.average.copy()
            for task in tasks:
                ((learnt, added),) = spread.cluster.results([task])
                regret += learnt
                average += added
            regret /= np.float32(len(lanes))
        finally:
            spread.cluster.release([*tasks, sent])
        solver.regret, solver.average, solver.chunks = regret, average, stop
        progress(stop - first, chunks - first)


@lru_cache(maxsize=1)
def _dealer(make: Callable[..., Dealer], arguments: tuple[Any, ...]) -> Dealer:
    return make(*arguments)


def _learn(given: Any, tables: tuple[Floats, Floats, Restriction], lane: range) -> tuple[Floats, Floats]:
    """On a worker: the regrets after the chunks of a lane, and what these add to averages."""
    make, arguments, game, sizes, seed, players = given
    before, average, model = tables
    solver = BucketSolver(
        Layout(game, sizes), _dealer(make, arguments), seed, lane.start, before.copy(), average.copy(), players, model
    )
    solver.run(lane.stop, workers=1)
    return solver.regret, np.subtract(solver.average, average)
