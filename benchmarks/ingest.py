"""Ingest: the whole command and its kernel beside a bare loop of the documented regular expression.

The logs are those of `slumbot19.tar.bz2` in the folder of corpora (720,000 hands of heads-up limit hold'em), unpacked
beforehand; the hand histories are those of `phh/handhq_sample.tar.xz` (80,320 hands of people), beside PokerKit reading
some of the same hands. A whole collection of histories is ingested where one is named. What is not there is skipped.

Reading hand histories: hands a second beside PokerKit's, the whole command, and its memory on many files.

The hands are those of `phh/handhq_sample.tar.xz` (80,320 hands of people), unpacked beforehand. Reading means: text to
hands, played by the rules and settled. PokerKit reads an evenly spread part of the same hands without playing them, on
one core. Both are compiled and imported before; times are the clock's. The command is started anew for each figure; its
start-up, measured on one hand, is taken off. For the memory the sample is repeated, with a comment of its own in each
copy of a file so that none is known already.

A whole collection of hand histories in one go: hands a second, peak memory, and what was refused.

The folder is that of `--collection`, such as `data/handhq` of the public collection (16 GB, 21.6 million hands). Rows
(10 GB of it) go to the folder for temporary files, which TMPDIR names. It is measured apart from the sample because
what grows with the number of files and players shows only there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks._figures import Figure, Settings, unpack
from pipeline.dataset.load import load_decisions
from pipeline.formats.acpc import HAND
from pipeline.formats.histories.notation import sections
from pipeline.formats.histories.scan import scan_histories
from pipeline.ingestion.hand_buffers import Lineups
from pipeline.ingestion.hands import LogMatch, scan_lines
from pipeline.poker.game import find_game
from pipeline.runtime.diskcache import cache_root


def started(
    logs: Sequence[Path], out: Path, cache: Path | None = None, summary: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Return the command with two workers; its summary goes to the file `summary`, if there is one."""
    command = [sys.executable, "-m", "pipeline", "ingest", *map(str, logs), "--out", str(out), "--no-strength"]
    environment = {**os.environ, "PIPELINE_CACHE": str(cache or cache_root())}
    return subprocess.Popen(
        [*command, "--workers", "2", "--json"], env=environment, stdout=summary or subprocess.DEVNULL
    )


def peak_memory(logs: Sequence[Path], out: Path) -> float:
    """Return the command's peak memory in MB, in a run of its own: looking slows it down."""
    return watch(started(logs, out), 0.02)


def watch(process: subprocess.Popen[bytes], pause: float) -> float:
    """Wait for a command; the most memory in MB (PSS) that it and its children took, looked at every `pause` s."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_pss, [process.pid, *_children(process.pid)])))
        time.sleep(pause)
    if process.returncode:
        raise RuntimeError("ingest failed")
    return peak / 1024


def _children(pid: int) -> list[int]:
    """Return the processes that a process started, those they started included."""
    children: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, listed.read_text(encoding="utf-8").split())
        except OSError:
            continue
    return [below for child in children for below in (child, *_children(child))]


def _pss(pid: int) -> int:
    """Kilobytes of memory of a process, shared pages counted by share."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


# Hand histories


SAMPLE = "handhq_sample.tar.xz"
REPEATED = 20
"""copies of the sample whose memory is watched: 57 MB each, the whole collection is about 280 of them"""
POKERKIT_HANDS = 2_000
"""hands that PokerKit reads"""


def history_figures(settings: Settings) -> list[Figure]:
    """Measure reading and ingesting hand histories; nothing without them."""
    archive = settings.corpus("phh", SAMPLE)
    if archive is None:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = unpack(archive, folder / "hands")
        return [*_reading([path.read_bytes() for path in files]), *_command(files, folder)]


def _reading(files: Sequence[bytes]) -> list[Figure]:
    """Measure hands a second on one core and on two, beside PokerKit."""
    scan_histories(files[0])
    theirs = _pokerkit(files)
    figures = []
    for threads, target in ((1, ""), (2, "at least 150,000 and 20x")):
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                hands = sum(len(found.records) for found, _ in pool.map(scan_histories, files))
            best = min(best, time.perf_counter() - start)
        rate, cores = hands / best, "one core" if threads == 1 else "2 cores"
        name = f"hand histories read and played, {cores}"
        figures.append(Figure(name, rate, "hands/s", "PokerKit only reading", theirs, rate / theirs, target))
    return figures


def _pokerkit(files: Sequence[bytes]) -> float:
    """Return hands a second that PokerKit reads on one core, without playing them."""
    from pokerkit import HandHistory

    texts = []
    for data in files:
        found = sections(data)
        few = found[:: max(1, len(found) * len(files) // POKERKIT_HANDS)]
        texts += [data[section.begin : section.end].decode() for section in few]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        for text in texts:
            HandHistory.loads(text)
        return len(texts) / (time.perf_counter() - start)


def _command(files: Sequence[Path], folder: Path) -> list[Figure]:
    """Measure the whole command, to rows on disk."""
    single = folder / "one.phhs"
    data = files[0].read_bytes()
    single.write_bytes(data[: sections(data)[0].end])
    hands = sum(len(sections(path.read_bytes())) for path in files)

    def seconds(inputs: Sequence[Path], name: str) -> float:
        start = time.perf_counter()
        if started(inputs, folder / name).wait():
            raise RuntimeError("ingest failed")
        return time.perf_counter() - start

    start_up = min(seconds([single], f"one{i}") for i in range(3))
    whole = min(seconds(files, f"rows{i}") for i in range(3))
    for copy in range(REPEATED):
        for path in files:
            again = folder / "many" / str(copy) / path.relative_to(folder / "hands")
            again.parent.mkdir(parents=True, exist_ok=True)
            again.write_bytes(path.read_bytes() + f"# copy {copy}\n".encode())
    memory = peak_memory([folder / "many"], folder / "watched")
    return [
        Figure("whole ingest of hand histories, 2 workers", hands / (whole - start_up), "hands/s"),
        Figure("  start-up", start_up, "s"),
        Figure(f"  peak memory (PSS), the sample {REPEATED} times", memory, "MB", target="under 1500"),
    ]


# A whole collection


PAUSE = 0.1
"""seconds between two looks at the memory: a look takes milliseconds, and the run takes a quarter of an hour"""


def collection_figures(collection: Path | None) -> list[Figure]:
    """Ingest a whole collection; measure nothing without one."""
    if collection is None:
        print("skipped: a whole collection of hand histories (--collection)", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "said.json").open("w+b") as printed:
        begin = time.perf_counter()
        memory = watch(started([collection], Path(scratch) / "rows", summary=printed), PAUSE)
        spent = time.perf_counter() - begin
        printed.seek(0)
        summary = json.load(printed)
        manifest = sum(path.stat().st_size for path in (Path(scratch) / "rows").rglob("*.json*"))
    hands, rejected = summary["hands"], summary["rejected"]
    return [
        Figure("a whole collection, 2 workers", hands / spent, "hands/s"),
        Figure("  hands taken", hands, "hands", "of all", hands + rejected, hands / (hands + rejected)),
        *(Figure(f"  refused, {reason[:40]}", n, "hands") for reason, n in summary["rejected_by_reason"].items()),
        Figure("  peak memory (PSS)", memory, "MB", target="under 1500"),
        Figure("  its manifest", manifest / 1e6, "MB"),
    ]


# ACPC logs


LOOP = "re.fullmatch loop"


def run(settings: Settings) -> list[Figure]:
    """Measure all figures; empty without the logs."""
    return [*_logs(settings), *history_figures(settings), *collection_figures(settings.collection)]


def _logs(settings: Settings) -> list[Figure]:
    """Measure ingest of ACPC logs."""
    archive = settings.corpus("slumbot19.tar.bz2")
    if archive is None:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        logs = [path for path in unpack(archive, Path(scratch) / "logs") if path.suffix == ".log"]
        return [*_kernel(logs), *_whole(logs, Path(scratch))]


def _loop(logs: Sequence[Path]) -> tuple[float, int]:
    """Return seconds that the bare loop takes for all hand lines, and their number."""
    lines = [
        line for path in logs for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("STATE")
    ]
    match = HAND.fullmatch
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        for line in lines:
            match(line)
        best = min(best, time.perf_counter() - start)
    return best, len(lines)


def _kernel(logs: Sequence[Path]) -> list[Figure]:
    """Measure the kernel on one core: grammar, rules, showdown and the record of every decision."""
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
        Figure("parse, check and record decisions, one core", lines / best, "lines/s", LOOP, lines / loop, loop / best),
    ]


def _seconds(logs: Sequence[Path], out: Path, cache: Path | None = None) -> float:
    """Measure how long the command takes, start-up included."""
    start = time.perf_counter()
    if started(logs, out, cache).wait():
        raise RuntimeError("ingest failed")
    return time.perf_counter() - start


def _whole(logs: Sequence[Path], scratch: Path) -> list[Figure]:
    """Measure the whole command, at several sizes, first run included."""
    (scratch / "one").mkdir()
    short_log = scratch / "one" / "2pl.log"
    short_log.write_bytes(b"".join(logs[0].read_bytes().splitlines(keepends=True)[:6]))
    first = _seconds([short_log], scratch / "first", scratch / "cache")
    start_up = min(_seconds([short_log], scratch / f"again{i}", scratch / "cache") for i in range(3))
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
