"""Checks: what it costs that every file is compared with its checksum before it is used.

Each figure is the computing time of the checked way beside that of the same work without the comparison, the smaller
of several alternating runs of each, so that a busy moment of the machine falls on both. The rows are those of slumbot19
where the folder of corpora has it, else of the bundled sample; ingest's are the sums over all that it wrote and read,
beside the whole of it.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from benchmarks._figures import Figure, Settings, seconds, unpack
from pipeline.dataset import opening
from pipeline.dataset.load import load_decisions
from pipeline.dataset.manifest import read_manifest
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle

TIMES = 5
SAMPLE = Path("data/sample")
BUNDLE = Path("models/teacher")
TARGET = "at most 1.05x"


def run(settings: Settings) -> list[Figure]:
    """Measure all figures."""
    with tempfile.TemporaryDirectory() as scratch:
        archive, logs = settings.corpus("slumbot19.tar.bz2"), SAMPLE
        if archive is not None:
            logs = Path(scratch) / "logs"
            unpack(archive, logs)
        rows = Path(scratch) / "rows"
        whole = _processor_seconds(lambda: ingest([logs], rows, options(strength=False), workers=1))
        sums = seconds(lambda: _sum_all(logs, rows), TIMES, time.process_time)
        figures = [
            Figure("ingest with checksums", whole, "s", "without them", whole - sums, whole / (whole - sums), TARGET)
        ]
        checked, plain = _loading(rows)
        figures.append(Figure("rows loaded, CRC-32 compared", checked, "s", "not", plain, checked / plain, TARGET))
    if BUNDLE.exists():
        load_bundle(BUNDLE)
        whole = seconds(lambda: load_bundle(BUNDLE), TIMES, time.process_time)
        sums = seconds(lambda: [_sum(path) for path in BUNDLE.iterdir()], TIMES, time.process_time)
        figures.append(
            Figure("bundle opened, SHA-256 compared", whole, "s", "not", whole - sums, whole / (whole - sums))
        )
    return figures


def _processor_seconds(work: Callable[[], object]) -> float:
    return seconds(work, clock=time.process_time)


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sum_all(logs: Path, rows: Path) -> None:
    """Return the checksums that ingest makes: of the logs, and two of every file it writes."""
    for path in logs.rglob("*.log"):
        _sum(path)
    for file in read_manifest(rows).files:
        data = (rows / file.path).read_bytes()
        hashlib.sha256(data).hexdigest()
        zlib.crc32(data)


def _loading(rows: Path) -> tuple[float, float]:
    """Return the computing times of loading all rows, with the comparison of checksums and without it."""
    compared, checked, plain = opening._checksum_fits, [], []
    load_decisions(rows)
    try:
        for _ in range(TIMES):
            opening._checksum_fits = compared
            checked.append(_processor_seconds(lambda: load_decisions(rows)))
            opening._checksum_fits = lambda *_: True
            plain.append(_processor_seconds(lambda: load_decisions(rows)))
    finally:
        opening._checksum_fits = compared
    return min(checked), min(plain)
