"""Random numbers inside kernels: xorshift64* (Vigna 2016) over a state of one 64-bit word that the caller keeps."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.kernels import kernel

__all__ = ["below", "random_state", "uniform"]

State: TypeAlias = npt.NDArray[np.uint64]


def random_state(seed: int, index: int) -> State:
    """A state of its own for each (seed, index): splitmix64 (Steele and others 2014) of both, never zero."""
    x = (seed * 0x9E3779B97F4A7C15 + index * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return np.array([(x ^ (x >> 31)) or 1], dtype=np.uint64)


@kernel(leaf=True)
def _next(state: State) -> Any:
    """The next 64 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@kernel(leaf=True)
def uniform(state: State) -> Any:
    """A float32 in [0, 1) with 24 random bits."""
    return np.float32(np.int64(_next(state) >> np.uint64(40))) * np.float32(1 / 16777216)


@kernel(leaf=True)
def below(state: State, bound: int) -> int:
    """A whole number below `bound`, which is small."""
    return int(((_next(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
