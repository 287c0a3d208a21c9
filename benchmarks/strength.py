"""Ranking, hand strength, its tables and clusters: speed beside what an off-the-shelf evaluator does."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._figures import Figure, Settings, seconds, unpack
from pipeline.poker.cards import _rank_rows, ranking
from pipeline.poker.strength.board_tables import ensure_tables, table_folder
from pipeline.poker.strength.hand_clusters import assign_clusters, fit_clusters, load_clusters
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.rows import STRENGTH, enumerate_row
from pipeline.poker.strength.win_counts import doubled_wins
from pipeline.runtime.diskcache import cache_root
from pipeline.runtime.kernels import kernel

BUILD = """
import resource, time
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.poker.strength.queries import find_strengths
find_strengths(1, [[0, 1]], [[2, 3, 4, 255, 255]])
start = time.perf_counter()
ensure_tables()
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def deals(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return rows of seven different cards."""
    rng = np.random.default_rng(0)
    return np.concatenate(
        [np.argsort(rng.random((min(100_000, count - i), 52)), axis=1)[:, :7] for i in range(0, count, 100_000)]
    ).astype(np.uint8)


@kernel
def _river_strengths(dealt: Any, tables: Any) -> int:
    total = 0
    for row in range(len(dealt)):
        total += doubled_wins(dealt[row, :2], dealt[row, 2:], 5, tables)
    return total


def run(settings: Settings) -> list[Figure]:
    """Measure; the strength tables are built in a folder of their own."""
    dealt = np.tile(deals(250_000), (8, 1))
    values = np.empty(len(dealt), np.uint16)
    _rank_rows(dealt[:1], ranking(), values)
    rank_speed = len(dealt) / seconds(lambda: _rank_rows(dealt, ranking(), values), 5) / 1e6
    by_call = _calls_per_second(dealt)
    figures = [
        Figure(
            *("seven-card hands ranked, one core", rank_speed, "M/s", "phevaluator, per call", by_call / 1e6),
            *(rank_speed * 1e6 / by_call if by_call else None, ">= 50"),
        )
    ]
    sample = dealt[:20_000]
    _river_strengths(sample[:1], ranking())
    river_speed = len(sample) / seconds(lambda: _river_strengths(sample, ranking()), 5)
    figures.append(
        Figure(
            *("river strength, any hands, one core", river_speed, "hands/s", "990 phevaluator calls", by_call / 991),
            *(river_speed / (by_call / 991) if by_call else None, ">= 150,000"),
        )
    )
    row = np.empty(7, np.uint16)

    def flops() -> None:
        for hand in sample[:50]:
            enumerate_row(hand[:2], hand[2:], 3, ranking(), row)

    flops()
    figures.append(Figure("flop distribution without tables", seconds(flops, 5) * 1e3 / 50, "ms/hand", target="<= 6"))
    return [*figures, *_tables(), *_clusters(dealt[:1_000_000]), *_ingest(settings)]


def _calls_per_second(dealt: np.ndarray[Any, np.dtype[np.uint8]]) -> float:
    """Return the hands a second that phevaluator ranks, one a call; 0 where it is not installed (a test dependency)."""
    if importlib.util.find_spec("phevaluator") is None:
        return 0.0
    evaluate_cards = importlib.import_module("phevaluator").evaluate_cards
    rows = dealt[:20_000].tolist()
    return len(rows) / seconds(lambda: [evaluate_cards(*hand) for hand in rows], 3)


def _tables() -> list[Figure]:
    """Build the tables in a new folder, with this machine's compiled code."""
    ensure_tables()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernels").symlink_to(cache_root() / "kernels")
        environment = {**os.environ, "PIPELINE_CACHE": folder}
        build = subprocess.run(
            [sys.executable, "-c", BUILD], env=environment, capture_output=True, text=True, check=True
        )
        seconds, megabytes = map(float, build.stdout.split())
        size = sum(path.stat().st_size for path in Path(folder, "strength").iterdir()) / 1e6
    return [
        Figure("flop and turn tables, all cores", seconds, "s", target="<= 75"),
        Figure("  peak memory", megabytes, "MB", target="< 2,000"),
        Figure("  on disk", size, "MB", target="< 320"),
    ]


def _clusters(dealt: np.ndarray[Any, np.dtype[np.uint8]]) -> list[Figure]:
    start = time.perf_counter()
    for street in (1, 2):
        fit_clusters(street, 200)
    made = time.perf_counter() - start
    rows = np.load(table_folder() / "turn.npy", mmap_mode="r", allow_pickle=False)
    assert rows.dtype == STRENGTH
    thousand = load_clusters(2, 1000)
    assigned = seconds(lambda: assign_clusters(thousand, rows))
    hole, board = dealt[:, :2].copy(), dealt[:, 2:].copy()
    looked = [seconds(partial(find_strengths, street, hole, board), 3) for street in (1, 2, 3)]
    return [
        Figure("200 flop + 200 turn clusters", made, "s", target="<= 180"),
        Figure("all turn entries to 1,000 centroids", assigned, "s", target="<= 60"),
        *(
            Figure(f"{name} strengths looked up, tables built, all cores", len(hole) / seconds / 1e6, "M/s")
            for name, seconds in zip(("flop", "turn", "river"), looked, strict=True)
        ),
    ]


def _ingest(settings: Settings) -> list[Figure]:
    """Measure ingest of real logs with strength columns beside ingest without; empty without the logs."""
    archive = settings.corpus("slumbot19.tar.bz2")
    if archive is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        unpack(archive, Path(folder, "logs"))

        def ingest(*options: str) -> float:
            command = [sys.executable, "-m", "pipeline", "ingest", f"{folder}/logs", "--workers", "2", "--json"]
            with tempfile.TemporaryDirectory(dir=folder) as out:
                run = partial(subprocess.run, capture_output=True, check=True)
                return seconds(lambda: run([*command, "--out", f"{out}/rows", *options]))

        pairs = [(ingest(), ingest("--no-strength")) for _ in range(3)]
    with_strength, without = (min(times) for times in zip(*pairs, strict=True))
    return [
        Figure(
            *("ingest of 720,000 hands with strength", with_strength, "s", "without strength", without),
            *(with_strength / without, "<= 3x"),
        )
    ]
