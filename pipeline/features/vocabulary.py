"""Numbers for features: in training each new hash gets the next number; a model looks its own sorted hashes up.

Hashes of features (see `encoding`) go in, their numbers come out, -1 for a template that does not fire or a feature
that training did not see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.kernels import kernel

Hashes = NDArray[np.uint64]


class Numbering:
    """Numbers features in order of appearance, in a hash table with open addressing."""

    def __init__(self) -> None:
        self._slots = np.zeros(1 << 16, np.uint64)
        self._numbers = np.zeros(1 << 16, np.int32)
        self.size = 0

    def __call__(self, hashes: Hashes, out: NDArray[np.int32]) -> None:
        """Write the numbers of hashes (rows, templates) to `out`, -1 for 0; unseen ones get new numbers."""
        row = 0
        while True:
            row, self.size = _number(hashes, row, self._slots, self._numbers, self.size, out)
            if row == len(hashes):
                return
            slots, numbers = self._slots, self._numbers
            self._slots, self._numbers = np.zeros(2 * len(slots), np.uint64), np.zeros(2 * len(slots), np.int32)
            _rehash(slots, numbers, self._slots, self._numbers)

    def keys(self) -> Hashes:
        """Return the hash of each number."""
        used = self._slots != 0
        keys = np.empty(self.size, np.uint64)
        keys[self._numbers[used]] = self._slots[used]
        return keys


@kernel
def _number(
    hashes: Hashes, row: int, slots: Hashes, numbers: NDArray[np.int32], size: int, out: NDArray[np.int32]
) -> tuple[int, int]:
    """Number rows from `row` on until the table is half full; return the next row and the size."""
    mask = len(slots) - 1
    while row < len(hashes):
        if 2 * (size + hashes.shape[1]) > len(slots):
            return row, size
        for t in range(hashes.shape[1]):
            key = hashes[row, t]
            if key == 0:
                out[row, t] = -1
                continue
            slot = np.int64(key) & mask  # keys are hashes already: their low bits do
            while slots[slot] != 0 and slots[slot] != key:
                slot = (slot + 1) & mask
            if slots[slot] == 0:
                slots[slot] = key
                numbers[slot] = size
                size += 1
            out[row, t] = numbers[slot]
        row += 1
    return row, size


@kernel
def _rehash(slots: Hashes, numbers: NDArray[np.int32], new_slots: Hashes, new_numbers: NDArray[np.int32]) -> None:
    mask = len(new_slots) - 1
    for i in range(len(slots)):
        if slots[i] != 0:
            slot = np.int64(slots[i]) & mask
            while new_slots[slot] != 0:
                slot = (slot + 1) & mask
            new_slots[slot] = slots[i]
            new_numbers[slot] = numbers[i]


class Vocabulary:
    """Sorted hashes of the features a model knows; `find` gives their numbers."""

    def __init__(self, keys: Hashes) -> None:
        self.keys = read_only(keys)
        # Hashes are uniform, so a table over their leading bits leads to about one candidate: no binary search
        bits = max(1, len(keys).bit_length())
        self._shift = 64 - bits
        self._starts = np.empty((1 << bits) + 1, np.int32)
        _index(self.keys, np.uint64(self._shift), self._starts)

    def find(self, hashes: Hashes) -> NDArray[np.int32]:
        """Return the numbers of hashes, -1 for what the model does not know."""
        out = np.empty(hashes.shape, np.int32)
        _find(hashes, self.keys, np.uint64(self._shift), self._starts, out)
        return out


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: one type for kernels, whether an array is in memory or mapped."""
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def _index(keys: Hashes, shift: Any, starts: NDArray[np.int32]) -> None:
    """Fill in where the hashes with the same leading bits start."""
    first = 0
    for bucket in range(len(starts) - 1):
        while first < len(keys) and np.int64(keys[first] >> shift) < bucket:
            first += 1
        starts[bucket] = first
    starts[-1] = len(keys)


@kernel
def _find(hashes: Hashes, keys: Hashes, shift: Any, starts: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    for row in range(hashes.shape[0]):
        for t in range(hashes.shape[1]):
            key = hashes[row, t]
            number = -1
            bucket = np.int64(key >> shift)
            for at in range(starts[bucket], starts[bucket + 1]):
                if keys[at] == key:
                    number = at
                    break
            out[row, t] = number
