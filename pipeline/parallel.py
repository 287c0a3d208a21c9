"""Threads over compiled code: a fixed number of them, with results in the order of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Semaphore
from typing import Any, TypeVar

__all__ = ["Workers"]

R = TypeVar("R")


class Workers:
    """A fixed number of threads, the caller's among them; results come in the order of the work."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def map(self, work: Callable[..., R], *arguments: Iterable[Any]) -> list[R]:
        """`work` on each tuple of arguments: whoever is free takes the next, and nobody waits for an idle thread."""
        items = list(zip(*arguments, strict=True))
        if self._pool is None or len(items) == 1:
            return [work(*item) for item in items]
        turns, found, failed, done = iter(range(len(items))), {}, [], Semaphore(0)

        def help_out() -> None:
            for at in turns:
                try:
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
        """`size` things in a range per thread, or in so many parts, or in fewer of at least so many things."""
        count = max(1, min(parts or self.threads, size // max(1, least)))
        bounds = [size * part // count for part in range(count + 1)]
        return [slice(low, high) for low, high in pairwise(bounds)]
