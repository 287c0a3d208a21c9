"""Start-up: how long `import pipeline` and the command line take beyond a bare Python.

Each command is a process of its own, started many times in turn with the bare one, so that a busy moment of the
machine falls on both; the figure is the difference of the medians.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks._figures import Figure, Settings

TIMES = 15
BARE = [sys.executable, "-c", "pass"]
COMMANDS = {
    "import pipeline": ([sys.executable, "-c", "import pipeline"], "50"),
    "pipeline --help": ([sys.executable, "-m", "pipeline", "--help"], ""),
    "pipeline train --help": ([sys.executable, "-m", "pipeline", "train", "--help"], ""),
}


def _milliseconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - began)


def run(_: Settings) -> list[Figure]:
    """Milliseconds beyond a bare interpreter."""
    figures = []
    for name, (command, target) in COMMANDS.items():
        _milliseconds(command)
        pairs = [(_milliseconds(BARE), _milliseconds(command)) for _ in range(TIMES)]
        bare, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
        figures.append(
            Figure(f"startup: {name}", whole - bare, "ms more", "of python -c pass", bare, whole / bare, target)
        )
    return figures
