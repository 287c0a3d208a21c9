"""Ingest: the whole command and its kernel beside a bare loop of the documented regular expression.

The logs are those of `slumbot19.tar.bz2` in the folder of corpora (720,000 hands of heads-up limit hold'em), unpacked
beforehand; the hand histories are those of `phh/handhq_sample.tar.xz` (80,320 hands of people), beside PokerKit reading
some of the same hands. A whole collection of histories is ingested where one is named. What is not there is skipped.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._collection import collection_figures
from benchmarks._figures import Figure, bench_data
from benchmarks._reading import history_figures
from benchmarks._watching import peak_memory, started
from pipeline.dataset.load import load_decisions
from pipeline.formats.acpc import HAND
from pipeline.ingestion.hand_buffers import Lineups
from pipeline.ingestion.hands import LogMatch, scan_lines
from pipeline.poker.game import find_game

LOOP = "re.fullmatch loop"


def run() -> list[Figure]:
    """All figures; empty without the logs."""
    return [*_logs(), *history_figures(), *collection_figures()]


def _logs() -> list[Figure]:
    """The figures on ACPC logs."""
    data = bench_data()
    if data is None or not (data / "slumbot19.tar.bz2").exists():
        print("skipped: no slumbot19.tar.bz2 in the folder of corpora", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(data / "slumbot19.tar.bz2") as archive:
            archive.extractall(Path(scratch) / "logs", filter="data")
        logs = sorted((Path(scratch) / "logs").rglob("*.log"))
        return [*_kernel(logs), *_whole(logs, Path(scratch))]


def _loop(logs: Sequence[Path]) -> tuple[float, int]:
    """Seconds that the bare loop takes for all hand lines, and their number."""
    lines = [line for path in logs for line in path.read_text().splitlines() if line.startswith("STATE")]
    match = HAND.fullmatch
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        for line in lines:
            match(line)
        best = min(best, time.perf_counter() - start)
    return best, len(lines)


def _kernel(logs: Sequence[Path]) -> list[Figure]:
    """The parser kernel alone on one core, legality and showdown included."""
    loop, lines = _loop(logs)
    game = find_game("holdem.limit.2p.reverse_blinds")
    match = LogMatch(game, 0)
    texts = [np.fromfile(path, dtype=np.uint8) for path in logs]
    best = np.inf
    for _ in range(4):
        start = time.perf_counter()
        for text in texts:
            scan_lines(text, 1, match, Lineups(), lambda header, rest: match)
        best = min(best, time.perf_counter() - start)
    return [
        Figure("parser kernel, one core", lines / best, "lines/s", LOOP, lines / loop, loop / best, "at least 5x"),
    ]


def _seconds(logs: Sequence[Path], out: Path, cache: Path | None = None) -> float:
    """How long the command takes, start-up included."""
    start = time.perf_counter()
    if started(logs, out, cache).wait():
        raise RuntimeError("ingest failed")
    return time.perf_counter() - start


def _whole(logs: Sequence[Path], scratch: Path) -> list[Figure]:
    """The whole command, at several sizes, first run included."""
    (scratch / "one").mkdir()
    one = scratch / "one" / "2pl.log"
    one.write_bytes(b"".join(logs[0].read_bytes().splitlines(keepends=True)[:6]))
    first = _seconds([one], scratch / "first", scratch / "cache")
    start_up = min(_seconds([one], scratch / f"again{i}", scratch / "cache") for i in range(3))
    times = {part: min(_seconds(logs[::part], scratch / f"rows{part}.{i}") for i in range(3)) for part in (4, 2, 1)}
    memory = peak_memory(logs, scratch / "watched")
    loop, _ = _loop(logs)
    begin = time.perf_counter()
    rows: Any = load_decisions(scratch / "rows1.0")
    loading = time.perf_counter() - begin
    decisions = len(rows)
    per_hand = {part: (times[part] - start_up) * part for part in times}
    return [
        Figure("whole ingest, 2 workers", times[1], "s", LOOP, loop, times[1] / loop, "at most 4x, aim 2x"),
        Figure("  rows without start-up", decisions / (times[1] - start_up), "rows/s", target="at least 1.5 million"),
        Figure("  start-up", start_up, "s"),
        Figure("  peak memory (PSS)", memory, "MB", target="under 1000"),
        Figure(
            "  time per log, all against a quarter",
            per_hand[1],
            "s",
            "a quarter",
            per_hand[4],
            per_hand[1] / per_hand[4],
        ),
        Figure("first run: compiling", first - start_up, "s", target="at most 20"),
        Figure("load all rows", loading, "s"),
    ]
