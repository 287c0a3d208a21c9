"""The command `ingest` started as a user would, and the memory it takes: what the figures on ingest share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pipeline.runtime.diskcache import cache_root


def started(
    logs: Sequence[Path], out: Path, cache: Path | None = None, said: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """The command with two workers; its summary goes to the file `said`, if there is one."""
    command = [sys.executable, "-m", "pipeline", "ingest", *map(str, logs), "--out", str(out), "--no-strength"]
    environment = {**os.environ, "PIPELINE_CACHE": str(cache or cache_root())}
    return subprocess.Popen([*command, "--workers", "2", "--json"], env=environment, stdout=said or subprocess.DEVNULL)


def peak_memory(logs: Sequence[Path], out: Path) -> float:
    """The command's peak memory in MB, in a run of its own: looking slows it down."""
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
    """The processes that a process started, those they started included."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, listed.read_text().split())
        except OSError:
            continue
    return [one for child in found for one in (child, *_children(child))]


def _pss(pid: int) -> int:
    """Kilobytes of memory of a process, shared pages counted by share."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
