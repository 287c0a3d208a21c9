"""A measured figure, and the folder of corpora that some figures need: what every topic of the bench uses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from pipeline.runtime.errors import PipelineError


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
    """The folder of benchmark corpora that the environment variable PIPELINE_BENCH_DATA names; None without one."""
    named = os.environ.get("PIPELINE_BENCH_DATA")
    if not named:
        return None
    if not Path(named).is_dir():
        raise PipelineError(f"PIPELINE_BENCH_DATA names {named}, which is not a folder")
    return Path(named)
