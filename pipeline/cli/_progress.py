"""What commands show on stderr while they work: a progress bar, and that functions are being compiled.

In a terminal it is one line (`LINE`), cut to the terminal's width and drawn over and over: once a second it tells how
long it has not changed, so that nobody takes long work for a program that hangs. Elsewhere a line is written now and
then.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.runtime.progress import Progress

WORK, COMPILING = 0, 1
"""what the line may tell; compiling hides the work, which waits for it"""


class Line:
    """The last line of a terminal, which says what goes on and, from the second second on, for how long.

    It is written to the file descriptor itself: a thread that used `sys.stderr` while the program ends would break it.
    """

    def __init__(self, descriptor: int = 2, every: float = 1.0) -> None:
        self._descriptor, self._every = descriptor, every
        self._lock = threading.Lock()
        self._texts: dict[int, tuple[str, float]] = {}
        self._ticking = False

    def show(self, what: int, text: str, *, now: bool = True) -> None:
        """Say `text` about WORK or COMPILING: at once, or only if it is still so at the next tick."""
        with self._lock:
            self._texts[what] = text, time.monotonic()
            if now:
                self._draw()
            if not self._ticking:
                self._ticking = True
                threading.Thread(target=self._tick, daemon=True).start()

    def clear(self, what: int) -> None:
        """Nothing more to say about it."""
        with self._lock:
            if self._texts.pop(what, None) is not None:
                self._draw()

    def _tick(self) -> None:
        while True:
            time.sleep(self._every)
            with self._lock:
                if not self._texts:
                    self._ticking = False
                    return
                self._draw()

    def _draw(self) -> None:
        text = ""
        if self._texts:
            said, since = self._texts[max(self._texts)]
            seconds = int(time.monotonic() - since)
            waiting = f"  {seconds} s" if seconds >= 2 else ""
            text = said[: max(shutil.get_terminal_size().columns - 1 - len(waiting), 0)] + waiting
        os.write(self._descriptor, f"\r\x1b[K{text}".encode())


LINE = Line()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Compiling(logging.Handler):
    """Draws what `pipeline.runtime.kernels` tells: `compiling for this machine, first run only: 12 of 40`."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.seconds = 0, 0.0
        self.active = False
        """whether a function is being compiled now"""
        self.kept = True
        """whether what was compiled could be written to the cache"""

    def emit(self, record: logging.LogRecord) -> None:
        terminal = sys.stderr.isatty()
        self.kept = self.kept and getattr(record, "kept", True)
        if not hasattr(record, "count"):
            if not terminal or not record.getMessage().startswith("compiling"):
                sys.stderr.write(record.getMessage() + "\n")
        else:
            self.count, self.seconds = record.count, getattr(record, "seconds", 0.0)
            self.active = not getattr(record, "ended", False)
            if terminal:
                total = getattr(record, "total", None)
                of_all = f" of {total}" if total else ""
                if getattr(record, "ended", False):
                    LINE.clear(COMPILING)
                else:
                    begun = getattr(record, "begun", self.count)
                    LINE.show(COMPILING, f"compiling for this machine, first run only: {begun}{of_all}")
        sys.stderr.flush()

    def close(self) -> None:
        """Say how long it took, if it was long enough to be noticed."""
        if self.seconds >= 2.0:
            kept = " (kept)" if self.kept else ""
            sys.stderr.write(f"compiled {self.count} functions for this machine in {self.seconds:.0f} s{kept}\n")
        self.seconds = 0.0
        super().close()


@contextmanager
def bar(label: str, unit: str = "") -> Iterator[Progress]:
    """A `Progress` that draws `label  42%  1.2 M hands/s  0:12 left`; silent when the work takes under a second.

    Speed and time left count neither the seconds of compiling, which come once, nor what went before a report that
    nothing is done yet: waiting for players, for instance.
    """
    from pipeline.runtime.kernels import seconds_compiling

    terminal = sys.stderr.isatty()
    start = shown = began = time.monotonic()
    compiled = seconds_compiling()
    if terminal:
        LINE.show(WORK, label, now=False)

    def progress(done: int, total: int) -> None:
        nonlocal shown, began, compiled
        now = time.monotonic()
        if done == 0:
            began, compiled = now, seconds_compiling()
        if now - shown < (0.1 if terminal else 10.0) or now - start < 1.0:
            return
        shown = now
        share = done / total if total else 0.0
        worked = max(now - began - (seconds_compiling() - compiled), 0.001)
        left = f"{_clock(worked * (1 - share) / share)} left" if share > 0 else ""
        speed = f"{done / worked:,.0f} {unit}/s" if unit and done >= worked else ""
        text = "  ".join(part for part in (label, f"{share:4.0%}", speed, left) if part)
        if terminal:
            LINE.show(WORK, text)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    try:
        yield progress
    finally:
        if terminal:
            LINE.clear(WORK)
