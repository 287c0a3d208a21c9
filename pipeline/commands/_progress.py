"""A progress bar on stderr for long work: shown in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.files import Progress

__all__ = ["bar"]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@contextmanager
def bar(label: str, unit: str = "") -> Iterator[Progress]:
    """A `Progress` that draws `label  42%  1.2 M hands/s  0:12 left`; silent when the work takes under a second."""
    terminal = sys.stderr.isatty()
    start = time.monotonic()
    shown = start
    drawn = False

    def progress(done: int, total: int) -> None:
        nonlocal shown, drawn
        now = time.monotonic()
        if now - shown < (0.1 if terminal else 10.0) or now - start < 1.0:
            return
        shown = now
        share = done / total if total else 0.0
        left = f"{_clock((now - start) * (1 - share) / share)} left" if share > 0 else ""
        speed = f"{done / (now - start):,.0f} {unit}/s" if unit else ""
        text = "  ".join(part for part in (label, f"{share:4.0%}", speed, left) if part)
        sys.stderr.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
        sys.stderr.flush()
        drawn = True

    try:
        yield progress
    finally:
        if terminal and drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
