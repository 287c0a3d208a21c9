"""A measured figure, and the options of `python -m benchmarks`: what every topic takes and returns.

A topic is a module with `run(settings) -> list[Figure]`. Times are those of the least disturbed run.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """One measured figure beside a baseline measured in the same run."""

    name: str
    value: float
    unit: str
    baseline: str = ""
    baseline_value: float | None = None
    ratio: float | None = None
    target: str = ""


class Settings(NamedTuple):
    """Options of the command; a topic reads those that concern it."""

    data: Path | None = None
    """a folder of corpora: logs and hand histories that are not part of this project"""
    collection: Path | None = None
    """a whole collection of hand histories, for `ingest`"""
    rows: Path | None = None
    """a dataset whose list of hands `web` filters"""
    stages: Path = Path(tempfile.gettempdir()) / "pipeline-bench"
    """where long topics store finished parts, so that a run that was stopped goes on"""
    agents: tuple[str, ...] = ()
    """opponents of `counter`, agents of `nolimit`; all where none is named"""
    bundles: tuple[str, ...] = ()
    """bundles that `wire` plays (the first) and `adaptive` plays against"""
    dealer: Path | None = None
    """the program of the official ACPC dealer, for `wire`"""
    workers: int = 2
    quick: bool = False
    """small forms of `fidelity`, `counter`, `cluster` and `memory`, to try them out: their figures mean nothing"""

    def corpus(self, *names: str) -> Path | None:
        """Return a file of the folder of corpora, or None, saying so, where it is not there."""
        path = None if self.data is None else self.data.joinpath(*names)
        if path is not None and path.is_file():
            return path
        print(f"skipped: no {'/'.join(names)} in the folder of corpora (--data)", file=sys.stderr)
        return None

    def stage(self, topic: str) -> Path:
        """Return the folder of a topic's finished parts."""
        return self.stages / (f"{topic}-quick" if self.quick else topic)


def unpack(archive: Path, folder: Path) -> list[Path]:
    """Unpack an archive; return its files in the order of their names."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def seconds(work: Callable[[], Any], repeats: int = 1, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the least seconds of several runs of `work`; `time.process_time` counts processor time instead."""
    spent = []
    for _ in range(repeats):
        began = clock()
        work()
        spent.append(clock() - began)
    return min(spent)
