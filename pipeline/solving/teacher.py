"""Solving limit hold'em: from k-means clusters of hands to a stored strategy, with checkpoints on the way.

In: limit hold'em for two or three, buckets per street, a seed and a number of iterations (deals, each traversed for
every player). Out: a folder with the strategy file and its manifest (see `strategy`). On the way, at a sixteenth and a
quarter of the iterations and at the end, the strategy plays the one a quarter as old over the same deals, and
`report` is called; of three players it sits with two copies of the older one. The same folder holds a checkpoint; a run
that was interrupted goes on from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.models.artifacts import MANIFEST
from pipeline.poker.game import Game
from pipeline.poker.strength.hand_clusters import HandClusters, load_clusters
from pipeline.runtime.arrays import expect, read_npy
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, deal_hands, dealer_of, make_buckets
from pipeline.solving.holdem import (
    CHUNK,
    BucketSolver,
    ClusterWorkers,
    Dealer,
    resume_checkpoint,
    run_chunks,
    save_checkpoint,
)
from pipeline.solving.layout import HeadToHead, Layout, fixed_strategy, versus
from pipeline.solving.strategy import (
    LEVELS,
    check_rows,
    dequantise,
    is_portfolio,
    is_strategy,
    quantise,
    save_strategy,
)

SAVE_EVERY = 300.0
"""seconds between checkpoints"""
COMPARED_DEALS = {2: 50_000, 3: 2_000}
"""deals, each played from all seats, in a comparison, by players"""
SIZES = {2: (1000, 1000, 500), 3: (100, 100, 100)}
"""buckets of flop, turn and river where none are named, by players"""
OPPONENTS = {"call": (0.0, 1.0, 0.0), "raise": (0.0, 0.0, 1.0), "random": (1.0, 1.0, 1.0)}
CARELESS = 0.3
"""how often each of the others plays without looking at its cards while a strategy for three is learnt"""


class RunReport(NamedTuple):
    """Results of the strategy after some chunks of a run."""

    deals: int
    seconds: float
    """of this run so far, all streets' tables included"""
    earlier: HeadToHead | None
    """result against the strategy at a quarter of these deals"""
    opponents: dict[str, HeadToHead]
    """results against agents that do not look at their cards"""

    def json(self) -> dict[str, Any]:
        """Return the results of matches as `solve holdem --json` prints them."""
        return {
            "against": {name: match.json() for name, match in self.opponents.items()},
            "against_quarter": self.earlier.json() if self.earlier else None,
        }


def solve_holdem(
    game: Game,
    folder: Path,
    *,
    sizes: tuple[int, int, int] | None = None,
    seed: int = 1,
    deals: int = 100_000_000,
    workers: int = 2,
    cluster: Cluster | None = None,
    facts: dict[str, Any] | None = None,
    progress: Progress = no_progress,
    report: Callable[[RunReport], None] = lambda _: None,
) -> RunReport:
    """Solve over `sizes` flop, turn and river buckets (`SIZES` unless named) and store the strategy.

    With a `cluster` its workers learn, in rounds (see `holdem`), instead of threads here; for two players only.
    """
    players = game.players
    if game.nolimit or not game.is_holdem or players not in SIZES:
        raise PipelineError(f"{game.name}: limit hold'em for two or three players is solved in buckets, nothing else")
    if cluster is not None and players != 2:
        raise PipelineError(f"{game.name}: only games for two are solved on a cluster; leave --cluster out")
    if (folder / MANIFEST).exists() and (is_portfolio(folder) or not is_strategy(folder)):
        raise PipelineError(f"{folder} holds something else than a run of this solver: name another folder")
    sizes = sizes or SIZES[players]
    began = saved = time.monotonic()
    layout = Layout(game, (169, *sizes))
    check_rows(layout, folder)
    flop, turn, tables = _clusters_and_buckets(sizes, seed)
    careless = CARELESS if players > 2 else 0.0
    solver = BucketSolver(layout, dealer_of(tables, players), seed, careless=careless)
    where = workers if cluster is None else ClusterWorkers(cluster, bucket_dealer, (sizes, seed))
    about = {"game": game.name, "deals": deals} | ({"careless": careless} if careless else {})
    resume_checkpoint(solver, folder / "checkpoint", about)
    chunks = -(-deals // CHUNK)
    marks = [max(1, chunks // 16), max(1, chunks // 4), chunks]
    compared = deal_hands(tables, seed + 1, COMPARED_DEALS[players], players)

    def judge(stop: int) -> RunReport:
        """Measure the strategy after `stop` chunks against its earlier self and against fixed opponents."""
        current = dequantise(_steps(folder, stop, layout.rows))
        before = marks[max(marks.index(stop) - 1, 0)]
        earlier = None
        if stop != marks[0]:
            earlier = versus(layout, compared, current, dequantise(_steps(folder, before, layout.rows)))
        others = {
            name: versus(layout, compared, current, fixed_strategy(layout, mix)) for name, mix in OPPONENTS.items()
        }
        return RunReport(stop * CHUNK, time.monotonic() - began, earlier, others)

    last: RunReport | None = None
    while solver.chunks < chunks:
        stop = min(min(mark for mark in marks if mark > solver.chunks), solver.chunks + 64)
        run_chunks(solver, stop, where)
        progress(solver.chunks * CHUNK, chunks * CHUNK)
        if stop in marks:
            steps = quantise(solver.strategy())
            with replacing(folder / f"steps-{stop}.npy") as temporary, temporary.open("wb") as file:
                np.save(file, steps)
            last = judge(stop)
            report(last)
        if stop in marks or time.monotonic() - saved > SAVE_EVERY:
            save_checkpoint(solver, folder / "checkpoint", about)
            saved = time.monotonic()
    if last is None:  # an earlier run had come to the end
        last = judge(chunks)
    made = {"seed": seed, **about, "deals": chunks * CHUNK, "workers": workers, **(facts or {}), **result_facts(last)}
    save_strategy(folder, layout, quantise(solver.strategy()), flop=flop.centroids, turn=turn.centroids, facts=made)
    return last


def bucket_dealer(sizes: tuple[int, int, int], seed: int) -> Dealer:
    """Return the dealer into the buckets of `solve_holdem`."""
    return dealer_of(_clusters_and_buckets(sizes, seed)[2])


def _clusters_and_buckets(sizes: tuple[int, int, int], seed: int) -> tuple[HandClusters, HandClusters, Buckets]:
    """Return the clusters of flop and turn hands by k-means from a seed, and the buckets that they make."""
    flop, turn = load_clusters(1, sizes[0], seed), load_clusters(2, sizes[1], seed)
    return flop, turn, make_buckets(flop, turn, sizes[2])


def _steps(folder: Path, chunks: int, rows: int) -> Any:
    """Read the strategy that a run stored after `chunks` chunks of deals."""
    path = folder / f"steps-{chunks}.npy"
    try:
        steps = expect({"steps": read_npy(path)}, "steps", np.uint8, (rows, 2), 0, LEVELS)
        if (steps[:, 0] > LEVELS - steps[:, 1]).any():
            raise ValueError("its probabilities sum to more than 1")
        return steps
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path} is damaged ({error}): remove {folder} and solve again") from None


def result_facts(last: RunReport) -> dict[str, Any]:
    """Return the manifest's entries of a finished run: mbb/h over the same deals, each played from all seats.

    How long it took is not among them: the same seed gives the same bytes.
    """
    facts = {f"against_{name}": list(match) for name, match in last.opponents.items()}
    return facts | {"against_quarter": list(last.earlier) if last.earlier else None}
