"""Hashes, searches, random numbers and sets of bits, for compiled code and for arrays.

Separate module: features, deals, simulations and solvers share these definitions, because stored hashes and seeded
streams must agree everywhere.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.runtime.kernels import kernel

RandomState: TypeAlias = npt.NDArray[np.uint64]
"""the state of a random stream: one 64-bit word, owned by the caller"""

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio, an odd number whose multiples are spread evenly"""


@kernel(leaf=True)
def hash64(value: Any) -> Any:
    """Return a 64-bit hash of a 64-bit number (splitmix64, Steele and others 2014)."""
    z = np.uint64(value) + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel(leaf=True)
def hash_with(value: Any, word: Any) -> Any:
    """Add one more 64-bit word to the hash so far, `value`: quicker than `hash64`, for keys of many words."""
    z = (np.uint64(value) ^ np.uint64(word)) * np.uint64(GOLDEN)
    return z ^ (z >> np.uint64(29))


@kernel(leaf=True)
def _hash_rows(words: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64]) -> None:
    for i in range(words.shape[0]):
        out[i] = words[i, 0]
        for j in range(1, words.shape[1]):
            out[i] = hash_with(out[i], words[i, j])


def hash_rows(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each row of 64-bit words (rows, words): equal rows get equal numbers.

    The first word must be the same in all rows, or a hash itself: of two small first words only their exclusive or
    would count.
    """
    out = np.empty(len(words), np.uint64)
    _hash_rows(np.ascontiguousarray(words), out)
    return out


@kernel(leaf=True)
def hash_text(data: Any, begin: int, end: int, seed: Any) -> Any:
    """Return a hash of bytes: eight at a time, mixed with `seed` and the length."""
    value = np.uint64(seed) ^ np.uint64(end - begin)
    i = begin
    while i < end:
        word = np.uint64(0)
        for k in range(min(8, end - i)):
            word |= np.uint64(data[i + k]) << np.uint64(8 * k)
        value = hash64(value ^ word)
        i += 8
    return hash64(value)


def hash_name(name: str) -> int:
    """Return the hash that stands for a player's name."""
    text = np.frombuffer(name.encode(), dtype=np.uint8)
    return int(hash_text(text, 0, len(text), np.uint64(2)))


# Searches in compiled code: `np.searchsorted` there would make every start import scipy, as numba's code for it does


@kernel(leaf=True)
def lower_bound(values: Any, value: Any) -> int:
    """Return how many of the ascending values are below `value`."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(leaf=True)
def upper_bound(values: Any, value: Any) -> int:
    """Return how many of the ascending values are not above `value`."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


# Random streams in compiled code: xorshift64* (Vigna 2016)


def random_state(seed: int, index: int) -> RandomState:
    """Return the first state of a random stream, another one for each (seed, index); never zero.

    >>> int(random_state(0, 1)[0]) != int(random_state(1, 0)[0])
    True
    """
    # another odd factor for each of the two; GOLDEN is taken off because `hash64` adds it first
    number = seed * GOLDEN + index * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019 - GOLDEN
    return np.array([int(hash64(np.uint64(number % 2**64))) or 1], dtype=np.uint64)


@kernel(leaf=True)
def random_bits(state: RandomState) -> Any:
    """Draw the next 64 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@kernel(leaf=True)
def uniform(state: RandomState) -> Any:
    """Draw a float32 in [0, 1) with 24 random bits."""
    # float32 holds 24 bits exactly: with more, the largest would be rounded to 1
    return np.float32(np.int64(random_bits(state) >> np.uint64(40))) * np.float32(1 / 16777216)


@kernel(leaf=True)
def bits_below(bits: Any, bound: int) -> int:
    """Return a whole number from 0 to before `bound`, which must be below 2^32, from 64 random bits."""
    # the upper half times the bound, shifted back: as even as a remainder (Lemire 2019), without a division
    return int(((np.uint64(bits) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel(leaf=True)
def random_below(state: RandomState, bound: int) -> int:
    """Draw a whole number from 0 to before `bound`, which must be below 2^32."""
    return bits_below(random_bits(state), bound)


# Sets of bits


def bit_table(sets: npt.NDArray[Any], width: int) -> npt.NDArray[np.bool_]:
    """Return the bits of each number as a row of truth values, the lowest bit first.

    Parameters: `sets` (rows,) whole numbers, such as a row's legal labels; `width`, how many bits of each.
    Returns: (rows, width).

    >>> bit_table(np.array([0b110, 0b011]), 3).tolist()
    [[False, True, True], [True, True, False]]
    """
    return np.asarray((sets[:, None] >> np.arange(width)) & 1, np.bool_)
