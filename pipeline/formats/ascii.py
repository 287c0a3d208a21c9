"""Text as byte kernels read it: characters by name, and the readers of digits and betting that kernels share.

Each reader takes bytes (uint8) and a place in them, and returns the place after what it has read, or -1 if it stands
for nothing. Regular expressions in `acpc` and `histories.notation` define the texts; kernels must agree with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

TAB, NEWLINE, RETURN, SPACE, QUOTE, DOUBLE_QUOTE, HASH = (ord(c) for c in "\t\n\r '\"#")
COMMA, MINUS, POINT, SLASH, COLON, SEMICOLON, EQUALS = (ord(c) for c in ",-./:;=")
OPEN, CLOSE, UNDERSCORE, BAR, QUESTION = (ord(c) for c in "[]_|?")
ZERO, ONE, NINE, LOW_A, LOW_Z = (ord(c) for c in "019az")
LOW_B, LOW_C, LOW_F, LOW_R = (ord(c) for c in "bcfr")

STREET_END, BLIND = 3, 4
"""what `read_betting` finds beside the actions fold, call and raise of `rules`"""


@kernel(leaf=True)
def read_digits(data: Array, i: int, end: int) -> tuple[int, int]:
    """Read a whole number of at most 17 digits; return it and the place after it, -1 when it is longer."""
    value: Any = np.int64(0)
    first = i
    while i < end and ZERO <= data[i] <= NINE:
        if i - first == 17:
            return value, -1
        value = value * 10 + (data[i] - ZERO)
        i += 1
    return value, i


@kernel(leaf=True)
def read_betting(data: Array, i: int, end: int, of_2009: bool, moves: Array, sizes: Array) -> tuple[int, int]:
    """Read betting up to a colon or the end as `moves`, and `sizes` with -1 for none.

    Returns how many there are and the place after them. Logs of 2009 begin with blinds (`b50`) and write totals after
    calls too; a size has at most nine digits, so that totals fit 32 bits.
    """
    count = 0
    while i < end and data[i] != COLON:
        byte = data[i]
        i += 1
        size = -1
        if byte in (LOW_C, LOW_R):
            move = 1 if byte == LOW_C else 2
            if byte == LOW_R or of_2009:
                value, after = read_digits(data, i, end)
                if not i <= after <= i + 9:
                    return count, -1
                if after > i:
                    size = value
                    i = after
        elif byte == LOW_F:
            move = 0
        elif byte == SLASH:
            move = STREET_END
        elif byte == LOW_B and of_2009 and (count == 0 or moves[count - 1] == BLIND):
            move = BLIND
            size, after = read_digits(data, i, end)
            if not i < after <= i + 9:
                return count, -1
            i = after
        else:
            return count, -1
        moves[count] = move
        sizes[count] = size
        count += 1
    return count, i
