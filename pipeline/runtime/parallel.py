"""Threads over compiled code, with results in the order of the work, and sums in a fixed order.

Kernels run without the interpreter's lock, so plain threads are enough. Whatever stops one piece of work (an error,
Ctrl-C) cancels the pieces that have not begun.

Sums of floating-point numbers depend on the order of addition. `SumTree` fixes it: parts added along the same tree, in
threads here or on the machines of a cluster, give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import pairwise
from threading import Semaphore
from typing import Any, TypeVar

from pipeline.runtime.progress import Progress, no_progress

R = TypeVar("R")


def processors() -> int:
    """Return how many processors this process may use; where the system cannot tell (macOS), all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[int, int], Any], size: int, step: int, progress: Progress = no_progress) -> None:
    """Call `work(first, last)` on pieces of `range(size)` that are `step` long, in a thread per processor.

    Returns when all pieces are finished; `progress` is called after each. An error or Ctrl-C cancels those not begun.
    """
    pieces = [(first, min(first + step, size)) for first in range(0, size, step)]
    if len(pieces) <= 1:
        work(0, size)
        progress(1, 1)
        return
    pool = ThreadPoolExecutor(processors())
    try:
        running = [pool.submit(work, first, last) for first, last in pieces]
        for finished, future in enumerate(as_completed(running), start=1):
            future.result()
            progress(finished, len(pieces))
    finally:
        # not waiting: after Ctrl-C the caller ends at once, without the pieces under way
        pool.shutdown(wait=False, cancel_futures=True)


class Workers:
    """A fixed number of threads, the caller's among them."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def map(self, work: Callable[..., R], *arguments: Iterable[Any]) -> list[R]:
        """Return `work` of each tuple of arguments in their order; a thread that is free takes the next.

        The first error is raised once the calls under way have ended; calls not begun are left out then.
        """
        items = list(zip(*arguments, strict=True))
        if self._pool is None or len(items) == 1:
            return [work(*item) for item in items]
        indices, results, finished = iter(range(len(items))), {}, Semaphore(0)
        failed: list[BaseException] = []

        def run_items() -> None:
            for index in indices:  # next() on a range's iterator is atomic: each index goes to one thread
                try:
                    if not failed:
                        results[index] = work(*items[index])
                except BaseException as error:
                    failed.append(error)
                finished.release()

        for _ in range(min(self.threads, len(items)) - 1):
            self._pool.submit(run_items)
        run_items()
        for _ in items:
            finished.acquire()
        if failed:
            raise failed[0]
        return [results[index] for index in range(len(items))]

    def slices(self, size: int, least: int = 1, parts: int | None = None) -> list[slice]:
        """Split `range(size)` into `parts` slices (default: one per thread) of at least `least` items.

        >>> Workers(2).slices(10), Workers(2).slices(10, least=6)
        ([slice(0, 5, None), slice(5, 10, None)], [slice(0, 10, None)])
        """
        count = max(1, min(parts or self.threads, size // max(1, least)))
        bounds = [size * part // count for part in range(count + 1)]
        return [slice(low, high) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class SumTree:
    """A node of the fixed tree over `count` parts: the sum of those from `first` on, `size` (a power of two) wide."""

    count: int
    first: int
    size: int

    @classmethod
    def root(cls, count: int) -> SumTree:
        """Return the node that sums all parts."""
        return cls(count, 0, 1 << max(0, count - 1).bit_length())

    @property
    def halves(self) -> tuple[SumTree, ...]:
        """Child nodes: two, or one where the parts end in the first half; none for a single part."""
        half = self.size // 2
        firsts = (self.first, self.first + half) if half else ()
        return tuple(SumTree(self.count, first, half) for first in firsts if first < self.count)

    def sum(self, leaf: Callable[[SumTree], R | None], add: Callable[[R, R], R]) -> R:
        """Return the sum, depth first; `leaf` gives sums already computed, at the least that of every single part.

        >>> SumTree.root(3).sum(lambda node: str(node.first) if node.size == 1 else None, lambda a, b: f"({a}+{b})")
        '((0+1)+2)'
        """
        computed = leaf(self)
        if computed is not None:
            return computed
        sums = [half.sum(leaf, add) for half in self.halves]
        return sums[0] if len(sums) == 1 else add(sums[0], sums[1])

    def largest_within(self, parts: Collection[int]) -> list[SumTree]:
        """Return the largest nodes all of whose parts are among `parts`.

        >>> [(node.first, node.size) for node in SumTree.root(6).largest_within({1, 2, 3, 4, 5})]
        [(1, 1), (2, 2), (4, 4)]
        """
        own = range(self.first, min(self.first + self.size, self.count))
        if all(part in parts for part in own):
            return [self]
        return [node for half in self.halves for node in half.largest_within(parts)]
