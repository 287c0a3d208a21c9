"""What prints the figures of docs/benchmarks.md: one module per topic, each with `run() -> list[Figure]`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Figure", "bench_data"]


class Figure(NamedTuple):
    """One measured figure beside a baseline measured in the same run."""

    name: str
    value: float
    unit: str
    baseline: str = ""
    baseline_value: float | None = None
    ratio: float | None = None
    target: str = ""


def bench_data() -> Path | None:
    """The folder of benchmark corpora: `$PIPELINE_BENCH_DATA`, else `../shared/data` beside the project, if there."""
    named = os.environ.get("PIPELINE_BENCH_DATA")
    path = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    return path if path.is_dir() else None
