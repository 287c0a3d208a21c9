"""Progress of commands on stderr: a progress bar, and a note that functions are being compiled.

In a terminal it is one line (`LINE`), cut to the terminal's width and drawn over and over: once a second it adds the
seconds since it last changed, which tells long work from a program that hangs. Elsewhere a line is written now and
then. With `--quiet` (`LINE.quiet`) nothing of this is written.
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

from pipeline.cli._output import one_line
from pipeline.runtime.progress import Progress

WORKING, COMPILING = 0, 1
"""channels of the status line; compiling hides the work, which waits for it"""
FORECAST_SHARE = 0.03
"""the share of a piece of work that must be done before the time left is forecast"""


class StatusLine:
    """The last line of a terminal: the work under way and, from the second second on, for how long.

    It is written to the file descriptor itself: a thread that used `sys.stderr` while the program ends would break it.
    """

    def __init__(self, descriptor: int = 2, interval: float = 1.0) -> None:
        self.quiet = False
        """whether the command was started with `--quiet`"""
        self._descriptor, self._interval = descriptor, interval
        self._lock = threading.Lock()
        self._texts: dict[int, tuple[str, float]] = {}
        self._ticking = False

    def show(self, channel: int, text: str, *, now: bool = True) -> None:
        """Show `text` about WORKING or COMPILING: at once, or only if it is still so at the next tick."""
        if self.quiet:
            return
        with self._lock:
            self._texts[channel] = text, time.monotonic()
            if now:
                self._draw()
            if not self._ticking:
                self._ticking = True
                threading.Thread(target=self._tick, daemon=True).start()

    def clear(self, channel: int) -> None:
        """Remove the text of a channel."""
        with self._lock:
            if self._texts.pop(channel, None) is not None:
                self._draw()

    def _tick(self) -> None:
        while True:
            time.sleep(self._interval)
            with self._lock:
                if not self._texts:
                    self._ticking = False
                    return
                self._draw()

    def _draw(self) -> None:
        text = ""
        if self._texts:
            message, since = self._texts[max(self._texts)]
            message = one_line(message)
            seconds = int(time.monotonic() - since)
            waiting = f"  {seconds} s" if seconds >= 2 else ""
            text = message[: max(shutil.get_terminal_size().columns - 1 - len(waiting), 0)] + waiting
        os.write(self._descriptor, f"\r\x1b[K{text}".encode())


LINE = StatusLine()


class CompilingNote(logging.Handler):
    """Log handler that shows the notes of `pipeline.runtime.kernels` about functions being compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.seconds = 0, 0.0
        self.active = False
        """whether a function is being compiled now"""
        self.cached = True
        """whether compiled functions could be written to the cache"""

    def emit(self, record: logging.LogRecord) -> None:
        terminal = sys.stderr.isatty()
        self.cached = self.cached and getattr(record, "kept", True)
        if not hasattr(record, "count"):
            shown_by_line = terminal or LINE.quiet
            if not shown_by_line or not record.getMessage().startswith("compiling"):
                sys.stderr.write(record.getMessage() + "\n")
        else:
            self.count, self.seconds = record.count, 0.0 if LINE.quiet else getattr(record, "seconds", 0.0)
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
        """Print the time it took, if it was long enough to be noticed."""
        if self.seconds >= 2.0:
            suffix = " (kept)" if self.cached else ""
            sys.stderr.write(f"compiled {self.count} functions for this machine in {self.seconds:.0f} s{suffix}\n")
        self.seconds = 0.0
        super().close()


class ProgressText:
    """Text about the work under way on stderr: in a terminal one line that changes, elsewhere a line now and then."""

    def __init__(self) -> None:
        self._terminal, self._last = sys.stderr.isatty(), time.monotonic()

    def show(self, text: str, *, now: bool = False) -> None:
        """Show a text, at once if `now`, else ten times a second at most, outside a terminal every ten seconds."""
        moment = time.monotonic()
        if LINE.quiet or (not now and moment - self._last < (0.1 if self._terminal else 10.0)):
            return
        self._last = moment
        if self._terminal:
            LINE.show(WORKING, text)
        else:
            sys.stderr.write(f"{one_line(text)}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Leave the line to what comes next."""
        if self._terminal:
            LINE.clear(WORKING)


def share_text(label: str, count: int, total: int, seconds: float, unit: str = "") -> str:
    """Return `label  42%  1.2 M hands/s  0:12 left` after some seconds of work; no time left below `FORECAST_SHARE`.

    >>> share_text("flop", 42, 100, 8.4), share_text("flop", 2, 100, 8.4)
    ('flop   42%  0:11 left', 'flop    2%')
    """
    share = count / total if total else 0.0
    left = int(seconds * (1 - share) / share) if share > 0 else 0
    time_left = f"{left // 60}:{left % 60:02d} left" if share >= FORECAST_SHARE else ""
    speed = f"{count / seconds:,.0f} {unit}/s" if unit and count >= seconds > 0 else ""
    return "  ".join(part for part in (label, f"{share:4.0%}", speed, time_left) if part)


@contextmanager
def bar(label: str, unit: str = "") -> Iterator[Progress]:
    """Yield a `Progress` that draws `share_text`; silent when the work takes under a second.

    Speed and time left count neither the seconds of compiling, which come once, nor what went before a report that
    nothing is done yet: waiting for players, for instance.
    """
    from pipeline.runtime.kernels import seconds_compiling

    line, start = ProgressText(), time.monotonic()
    began = start - seconds_compiling()
    if sys.stderr.isatty():
        LINE.show(WORKING, label, now=False)

    def progress(count: int, total: int) -> None:
        nonlocal began
        moment = time.monotonic()
        if count == 0:
            began = moment - seconds_compiling()
        if moment - start >= 1.0:
            worked = max(moment - seconds_compiling() - began, 0.001)
            line.show(share_text(label, count, total, worked, unit))

    try:
        yield progress
    finally:
        line.close()
