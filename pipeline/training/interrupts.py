"""Ctrl-C while compiled code runs: put off to a moment at which nothing is half done.

Python raises `KeyboardInterrupt` between any two steps of the interpreter: in the middle of an iteration, when the
optimiser's arrays belong to no iterate, or inside the compiler, which turns it into a `SystemError` nobody can read.
While an `Interrupts` is entered, Ctrl-C inside `hold()` is only noted; whoever holds looks at `requested` when it is
done. A second Ctrl-C does not wait. Outside of `hold()` it ends the work at once, as ever.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Ctrl-C as a request, between `__enter__` and `__exit__`; without effect in other threads than the main one."""

    def __init__(self) -> None:
        self.requests = 0
        self._held = False
        self._before: Any = None

    @property
    def requested(self) -> bool:
        """Whether there was a Ctrl-C."""
        return self.requests > 0

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if kind is not None and issubclass(kind, SystemError) and self.requested:
            raise KeyboardInterrupt from None  # Ctrl-C met the compiler

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requests += 1
        if not self._held or self.requests > 1:
            raise KeyboardInterrupt

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Put off the first Ctrl-C to the end of the block, where `requested` tells of it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
