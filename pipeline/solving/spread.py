"""The hold'em solver on a cluster: rounds in which workers learn from the same tables, then join what they learnt.

In: a `BucketSolver` and how a worker makes its dealer. Out: the same solver some chunks of deals further. A round is
divided into a fixed number of lanes of consecutive chunks, each walked by one thread from the tables as they were when
the round began. Then averages are the sum of what the lanes have added. So are regrets against a player who keeps to
its strategy. Where both players learn, the sum would answer the same mistake once per lane and swing ever wider, so
there a lane's regrets count one part in `LANES`; what they are measured by (`Sharing.head_start`) is then for `depth`
chunks. The bytes do not depend on the number of workers, but they are not those of a run in one process, whose threads
see each other's regrets at once: in Leduc an equilibrium comes as near as by such a run on about half of the deals.
Rounds grow with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.holdem import BucketSolver, Dealer, Restriction, Sharing
from pipeline.solving.layout import Floats, Layout

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


def depth(chunks: int, workers: int | Spread) -> float:
    """By how many chunks regrets grow where both players learn from so many, in threads here or on a cluster."""
    return chunks / LANES if isinstance(workers, Spread) else float(chunks)


def go_on(solver: BucketSolver, chunks: int, workers: int | Spread, progress: Progress = no_progress) -> None:
    """Go on until `chunks` chunks are done, in so many threads here or on a cluster."""
    if isinstance(workers, Spread):
        run_spread(solver, chunks, workers, progress)
    else:
        solver.run(chunks, workers=workers, progress=progress)


def run_spread(solver: BucketSolver, chunks: int, spread: Spread, progress: Progress = no_progress) -> None:
    """Go on until `chunks` chunks are done; an interruption leaves the rounds that ended."""
    first, cluster = solver.chunks, spread.cluster
    given = (spread.make, spread.arguments, solver.layout.game, solver.layout.sizes, solver.seed, solver.players)
    fixed: list[Any] = []
    try:
        while solver.chunks < chunks:
            length = max(1, min(LONGEST, solver.chunks // (2 * LANES)))
            stop = min(chunks, solver.chunks + LANES * length)
            lanes = [range(low, min(low + length, stop)) for low in range(solver.chunks, stop, length)]

            def learn(lanes: list[range] = lanes) -> tuple[Floats, Floats]:
                if not fixed:  # what does not change is sent once
                    fixed.append(cluster.broadcast((solver.model, solver.sharing)))
                return _round(solver, given, fixed[0], lanes, cluster)

            solver.regret, solver.average = cluster.retry_when_lost(learn, fixed.clear)
            solver.chunks = stop
            progress(stop - first, chunks - first)
    finally:
        cluster.release(fixed)


def _round(
    solver: BucketSolver, given: tuple[Any, ...], fixed: Any, lanes: list[range], cluster: Cluster
) -> tuple[Floats, Floats]:
    """Regrets and averages after a round."""
    sent = cluster.broadcast(solver.regret)
    tasks = [cluster.submit(_learn, given, fixed, sent, lane) for lane in lanes]
    try:
        regret, average = solver.regret.copy(), solver.average.copy()
        share = np.float32(1.0 if len(solver.players) == 1 else 1.0 / LANES)
        for task in tasks:
            ((learnt, added),) = cluster.results([task])
            regret += share * (learnt - solver.regret)
            if added is not None:
                average += added
        return regret, average
    finally:
        cluster.release([*tasks, sent])


@lru_cache(maxsize=1)
def _dealer(make: Callable[..., Dealer], arguments: tuple[Any, ...]) -> Dealer:
    return make(*arguments)


def _learn(given: Any, fixed: tuple[Restriction, Sharing], before: Floats, lane: range) -> tuple[Floats, Floats | None]:
    """On a worker: the regrets after the chunks of a lane, and what these add to averages, None for nothing."""
    make, arguments, game, sizes, seed, players = given
    layout = Layout(game, sizes)
    added = np.zeros((layout.rows, 3), np.float32)
    solver = BucketSolver(layout, _dealer(make, arguments), seed, lane.start, before.copy(), added, players, *fixed)
    solver.run(lane.stop, workers=1)
    return solver.regret, added if added.any() else None
