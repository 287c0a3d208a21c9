"""Ctrl-C put off while compiled code runs, to a moment at which no array is half updated.

Python raises `KeyboardInterrupt` between any two steps of the interpreter: in the middle of an iteration, when the
optimiser's arrays belong to no iterate, or inside the compiler, which turns it into a `SystemError` nobody can read.
While an `Interrupts` is entered, Ctrl-C inside `hold()` is only noted; the caller looks at `requested` after
the block. A second Ctrl-C does not wait. Outside of `hold()` it ends the work at once, as ever.
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
        self._is_held = False
        self._previous_handler: Any = None

    @property
    def requested(self) -> bool:
        """Return whether there was a Ctrl-C."""
        return self.requests > 0

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous_handler = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
        if kind is not None and issubclass(kind, SystemError) and self.requested:
            raise KeyboardInterrupt from None  # Ctrl-C met the compiler

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requests += 1
        if not self._is_held or self.requests > 1:
            raise KeyboardInterrupt

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Put off the first Ctrl-C to the end of the block, where `requested` tells of it."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
