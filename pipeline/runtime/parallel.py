"""Threads over compiled code: how many there are, pieces of work for them, and results in the order of the work.

Kernels run without the interpreter's lock, so plain threads are enough. Whatever stops one piece of work (an error,
Ctrl-C) stops the pieces that have not begun.

Sums of floating-point numbers depend on the order in which they are added. `Tree` fixes it: whoever adds the parts of
a sum along the same tree, in threads here or on the machines of a cluster, gets the same bytes.
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
    """How many processors this process may use; systems that cannot tell (macOS) count all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[int, int], Any], size: int, step: int, progress: Progress = no_progress) -> None:
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


@dataclass(frozen=True)
class Tree:
    """A node of the fixed tree over `count` parts: the sum of those from `first` on, `size` (a power of two) wide."""

    count: int
    first: int
    size: int

    @classmethod
    def root(cls, count: int) -> Tree:
        """The sum of all parts."""
        return cls(count, 0, 1 << max(0, count - 1).bit_length())

    @property
    def halves(self) -> tuple[Tree, ...]:
        """The nodes whose sums it adds: two, or one where the parts end in the first half; none for a part."""
        half = self.size // 2
        firsts = (self.first, self.first + half) if half else ()
        return tuple(Tree(self.count, first, half) for first in firsts if first < self.count)

    def sum(self, leaf: Callable[[Tree], R | None], add: Callable[[R, R], R]) -> R:
        """The sum, depth first; `leaf` gives those of nodes that are known, of every single part at the least.

        >>> Tree.root(3).sum(lambda node: str(node.first) if node.size == 1 else None, lambda a, b: f"({a}+{b})")
        '((0+1)+2)'
        """
        known = leaf(self)
        if known is not None:
            return known
        found = [half.sum(leaf, add) for half in self.halves]
        return found[0] if len(found) == 1 else add(found[0], found[1])

    def largest(self, held: Collection[int]) -> list[Tree]:
        """The largest nodes all of whose parts are among those `held`.

        >>> [(node.first, node.size) for node in Tree.root(6).largest({1, 2, 3, 4, 5})]
        [(1, 1), (2, 2), (4, 4)]
        """
        parts = range(self.first, min(self.first + self.size, self.count))
        if all(part in held for part in parts):
            return [self]
        return [node for half in self.halves for node in half.largest(held)]
