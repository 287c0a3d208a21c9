"""Reading hand histories: hands a second beside PokerKit's, the whole command, and its memory on many files.

The hands are those of `phh/handhq_sample.tar.xz` (80,320 hands of people), unpacked beforehand. Reading means: text to
hands, played by the rules and settled. PokerKit reads an evenly spread part of the same hands without playing them, on
one core. Both are compiled and imported before; times are the clock's. The command is started anew for each figure; its
start-up, measured on one hand, is taken off. For the memory the sample is repeated, with a comment of its own in each
copy of a file so that none is known already.
"""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks._figures import Figure, bench_data
from benchmarks._watching import peak_memory, started
from pipeline.formats.histories.notation import sections
from pipeline.formats.histories.scan import scan_histories

SAMPLE = "handhq_sample.tar.xz"
REPEATED = int(os.environ.get("PIPELINE_BENCH_REPEATED", "20"))
"""copies of the sample whose memory is watched: 57 MB each, the whole collection is about 280 of them"""
SOME = 2_000
"""hands that PokerKit reads"""


def history_figures() -> list[Figure]:
    """The figures; none without the hands."""
    data = bench_data()
    if data is None or not (data / "phh" / SAMPLE).exists():
        print(f"skipped: no phh/{SAMPLE} in the folder of corpora", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with tarfile.open(data / "phh" / SAMPLE) as archive:
            archive.extractall(folder / "hands", filter="data")
        files = sorted(path for path in (folder / "hands").rglob("*") if path.is_file())
        return [*_reading([path.read_bytes() for path in files]), *_command(files, folder)]


def _reading(files: Sequence[bytes]) -> list[Figure]:
    """Hands a second on one core and on two, beside PokerKit."""
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
    """Hands a second that PokerKit reads on one core, without playing them."""
    from pokerkit import HandHistory

    texts = []
    for data in files:
        found = sections(data)
        few = found[:: max(1, len(found) * len(files) // SOME)]
        texts += [data[section.begin : section.end].decode() for section in few]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        for text in texts:
            HandHistory.loads(text)
        return len(texts) / (time.perf_counter() - start)


def _command(files: Sequence[Path], folder: Path) -> list[Figure]:
    """The whole command, to rows on disk."""
    one = folder / "one.phhs"
    data = files[0].read_bytes()
    one.write_bytes(data[: sections(data)[0].end])
    hands = sum(len(sections(path.read_bytes())) for path in files)

    def seconds(inputs: Sequence[Path], name: str) -> float:
        start = time.perf_counter()
        if started(inputs, folder / name).wait():
            raise RuntimeError("ingest failed")
        return time.perf_counter() - start

    start_up = min(seconds([one], f"one{i}") for i in range(3))
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
