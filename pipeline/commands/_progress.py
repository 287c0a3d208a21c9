"""What commands show on stderr while they work: a progress bar, and that functions are being compiled.

In a terminal a line is drawn over and over; elsewhere there is a line now and then.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.files import Progress

__all__ = ["Compiling", "bar"]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Compiling(logging.Handler):
    """Draws what `pipeline.kernels` tells: `compiling for this machine, first run only: 12 of 40`."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.seconds = 0, 0.0

    def emit(self, record: logging.LogRecord) -> None:
        terminal = sys.stderr.isatty()
        if not hasattr(record, "count"):
            if not terminal or not record.getMessage().startswith("compiling"):
                sys.stderr.write(record.getMessage() + "\n")
        else:
            self.count, self.seconds = record.count, getattr(record, "seconds", 0.0)
            if terminal:
                total = getattr(record, "total", None)
                of_all = f" of {total}" if total else ""
                text = f"compiling for this machine, first run only: {self.count}{of_all}"
                sys.stderr.write("\r\x1b[K" + ("" if getattr(record, "ended", False) else text))
        sys.stderr.flush()

    def close(self) -> None:
        """Say how long it took, if it was long enough to be noticed."""
        if self.seconds >= 2.0:
            sys.stderr.write(f"compiled {self.count} functions for this machine in {self.seconds:.0f} s (kept)\n")
        self.seconds = 0.0
        super().close()


@contextmanager
def bar(label: str, unit: str = "") -> Iterator[Progress]:
    """A `Progress` that draws `label  42%  1.2 M hands/s  0:12 left`; silent when the work takes under a second.

    Speed and time left do not count the seconds of compiling, which come once.
    """
    from pipeline.kernels import seconds_compiling

    terminal = sys.stderr.isatty()
    start = time.monotonic()
    compiled = seconds_compiling()
    shown = start
    drawn = False

    def progress(done: int, total: int) -> None:
        nonlocal shown, drawn
        now = time.monotonic()
        if now - shown < (0.1 if terminal else 10.0) or now - start < 1.0:
            return
        shown = now
        share = done / total if total else 0.0
        worked = max(now - start - (seconds_compiling() - compiled), 0.001)
        left = f"{_clock(worked * (1 - share) / share)} left" if share > 0 else ""
        speed = f"{done / worked:,.0f} {unit}/s" if unit else ""
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
