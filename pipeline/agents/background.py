"""Work that a learner does while play goes on: one piece after the other, in a thread while there is any.

Under a clock no decision may wait for a look back at finished hands. The work must keep to what it was given and swap
its result in at one stroke, because decisions are made while it runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Beside:
    """A queue of work and the thread that does it."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, work: Callable[[], None]) -> None:
        """Have something done after all that was put before."""
        with self._lock:
            self._waiting.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Forget what has not been begun."""
        with self._lock:
            self._waiting.clear()

    def wait(self) -> None:
        """Return when nothing is left to do."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                work = self._waiting.popleft()
            try:
                work()
            except BaseException:
                with self._lock:
                    self._thread = None  # so that what comes next is begun by another thread
                raise
