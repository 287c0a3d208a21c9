"""Threads over compiled code: how many there are, pieces of work for them, and results in the order of the work.

Kernels run without the interpreter's lock, so plain threads are enough. Whatever stops one piece of work (an error,
Ctrl-C) stops the pieces that have not begun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise
from threading import Semaphore
from typing import Any, TypeVar

from pipeline.files import Progress, quiet

__all__ = ["Workers", "in_threads", "processors"]

R = TypeVar("R")


def processors() -> int:
    """How many processors this process may use; systems that cannot tell (macOS) count all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[int, int], Any], size: int, step: int, progress: Progress = quiet) -> None:
    """Call `work(first, last)` on pieces of `range(size)` that are `step` long, in a thread per processor.

    Returns when all is done; `progress` hears of each piece. An error or Ctrl-C leaves out the pieces not begun.
    """
    pieces = [(first, min(first + step, size)) for first in range(0, size, step)]
    if len(pieces) <= 1:
        work(0, size)
        progress(1, 1)
        return
    pool = ThreadPoolExecutor(processors())
    try:
        running = [pool.submit(work, first, last) for first, last in pieces]
        for done, future in enumerate(as_completed(running), start=1):
            future.result()
            progress(done, len(pieces))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Workers:
    """A fixed number of threads, the caller's among them; results come in the order of the work."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def map(self, work: Callable[..., R], *arguments: Iterable[Any]) -> list[R]:
        """Call `work` on each tuple of arguments; a thread that is free takes the next, and none is waited for.

        The first error is raised once the calls under way have ended; calls not begun are left out then.
        """
        items = list(zip(*arguments, strict=True))
        if self._pool is None or len(items) == 1:
            return [work(*item) for item in items]
        turns, found, done = iter(range(len(items))), {}, Semaphore(0)
        failed: list[BaseException] = []

        def help_out() -> None:
            for at in turns:
                try:
                    if not failed:
                        found[at] = work(*items[at])
                except BaseException as error:
                    failed.append(error)
                done.release()

        for _ in range(min(self.threads, len(items)) - 1):
            self._pool.submit(help_out)
        help_out()
        for _ in items:
            done.acquire()
        if failed:
            raise failed[0]
        return [found[at] for at in range(len(items))]

    def slices(self, size: int, least: int = 1, parts: int | None = None) -> list[slice]:
        """Split `range(size)` into `parts` slices (default: one per thread) of at least `least` items.

        >>> Workers(2).slices(10), Workers(2).slices(10, least=6)
        ([slice(0, 5, None), slice(5, 10, None)], [slice(0, 10, None)])
        """
        count = max(1, min(parts or self.threads, size // max(1, least)))
        bounds = [size * part // count for part in range(count + 1)]
        return [slice(low, high) for low, high in pairwise(bounds)]
