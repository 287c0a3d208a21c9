"""The byte kernel's grammar: the text of one hand in the common form into the arrays that `replay.play` takes.

The common form is that of the public collections: one field per line, `key = value`, a space on each side of the sign,
strings in single quotes and ASCII, lists on one line with `, ` between entries, no comments. Everything here either
understands a text completely or says that it does not (-1, False); `notation` then decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.formats.histories.entries import (
    CLOSE,
    COMMA,
    EQUALS,
    NEWLINE,
    OPEN,
    QUOTE,
    RETURN,
    SPACE,
    read_entries,
    read_number,
    read_numbers,
    read_string,
)
from pipeline.formats.histories.history import MAX_AMOUNT, MOST_HISTORY_PLAYERS
from pipeline.formats.histories.packing import (
    ANTES,
    BLINDS,
    FINISHING,
    H_BIG,
    H_ENTRIES,
    H_FINISHING,
    H_NOLIMIT,
    H_PLAYERS,
    H_SMALL,
    H_TRIMMED,
    H_WINNINGS,
    HEAD,
    STACKS,
    WINNINGS,
    Outcome,
    Packed,
    outcome,
    packed,
)
from pipeline.poker.rules import MAX_PLAYERS, NO_STACK
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


def _key(word: str) -> int:
    """A field's name as one number, as `_field` computes it."""
    value = 0
    for byte in word.encode():
        value = (value * 31 + byte) & 0xFFFFFFFFFFF
    return value


_VARIANT, _TRIMMED, _ANTES, _BLINDS = map(_key, ("variant", "ante_trimming_status", "antes", "blinds_or_straddles"))
_MIN_BET, _SMALL_BET, _BIG_BET, _STACKS = map(_key, ("min_bet", "small_bet", "big_bet", "starting_stacks"))
_ACTIONS, _PLAYERS, _SEATS, _HAND, _TABLE = map(_key, ("actions", "players", "seats", "hand", "table"))
_VENUE, _WINNINGS, _FINISHING, _TIME = map(_key, ("venue", "winnings", "finishing_stacks", "time"))
_NUMBERS = tuple(map(_key, ("day", "month", "year", "seat_count", "level")))
_TEXTS = tuple(
    map(
        _key,
        (
            *("currency", "currency_symbol", "time_zone_abbreviation", "time_zone", "event", "city", "region"),
            *("country", "author", "address", "postal_code", "url"),
        ),
    )
)

# Where fields stand: begin and end of each, and which were met
F_VENUE, F_TABLE, F_HAND, F_SEEN, F_COUNT = 0, 2, 4, 6, 7
FIELDS = 8
SEEN_PLAYERS = 2
"""the bit of `players` among the fields met"""


class HistoryScratch(NamedTuple):
    """Arrays the kernel works in."""

    hand: Packed
    out: Outcome
    fields: Array
    named: Array
    row: Array


def scratch() -> HistoryScratch:
    """A fresh set of working arrays."""
    return HistoryScratch(
        packed(),
        outcome(),
        np.zeros(FIELDS, np.int64),
        np.zeros((MOST_HISTORY_PLAYERS, 2), np.int64),
        np.zeros(MAX_PLAYERS, np.int64),
    )


@kernel(leaf=True)
def _names(data: Array, i: int, end: int, named: Array) -> tuple[int, int]:
    """The list of names: how many, and where it ends, -1 if it is not understood."""
    if i >= end or data[i] != OPEN:
        return 0, -1
    i += 1
    for count in range(MOST_HISTORY_PLAYERS):
        after = read_string(data, i, end, 64)
        if after < 0 or after - i < 3:
            return 0, -1
        for k in range(i, after):
            if data[k] == 124:  # a bar joins names elsewhere
                return 0, -1
        named[count, 0] = i + 1
        named[count, 1] = after - 1
        if after < end and data[after] == CLOSE:
            return count + 1, after + 1
        if after + 1 >= end or data[after] != COMMA or data[after + 1] != SPACE:
            return 0, -1
        i = after + 2
    return 0, -1


@kernel(leaf=True)
def _digits(data: Array, i: int, end: int, most: int) -> int:
    """Where a whole number without sign ends, -1 if it is none or has more than `most` digits."""
    first = i
    while i < end and 48 <= data[i] <= 57:
        i += 1
    if i == first or i - first > most or (data[first] == 48 and i > first + 1):
        return -1
    return i


@kernel(leaf=True)
def _clock(data: Array, i: int, end: int) -> int:
    """Where a time of day `hh:mm:ss` ends, -1 if it is none."""
    if i + 8 > end:
        return -1
    for part in range(3):
        tens, ones = data[i + 3 * part], data[i + 3 * part + 1]
        if not (48 <= tens <= 57 and 48 <= ones <= 57) or (part < 2 and data[i + 3 * part + 2] != 58):
            return -1
        if (tens - 48) * 10 + (ones - 48) >= (24 if part == 0 else 60):
            return -1
    return i + 8


@kernel(leaf=True)
def _label(data: Array, i: int, end: int, fields: Array, slot: int) -> int:
    """A text or number that names something; where it ends, -1 if it is not understood."""
    if i < end and data[i] == QUOTE:
        after = read_string(data, i, end, 128)
        fields[slot], fields[slot + 1] = i + 1, after - 1
        return after
    after = _digits(data, i, end, 17)
    fields[slot], fields[slot + 1] = i, after
    return after


@kernel(leaf=True)
def _bets(data: Array, i: int, end: int, decimals: int, key: int, hand: Packed) -> int:
    """A minimum, small or big bet; where it ends, -1 if it is not understood."""
    value, i = read_number(data, i, end, decimals)
    if not 0 < value < NO_STACK:
        return -1
    if key != _BIG_BET:
        hand.head[H_SMALL] = value
    if key != _SMALL_BET:
        hand.head[H_BIG] = value
    return i


@kernel(leaf=True)
def _list(data: Array, i: int, end: int, decimals: int, row: int, work: HistoryScratch) -> int:
    """A list of amounts as long as the others; where it ends, -1 if it is not understood."""
    hand, fields = work.hand, work.fields
    least = -MAX_AMOUNT if row % 2 == 1 else 1 if row == STACKS else 0  # blinds and winnings may be negative
    count, i = read_numbers(data, i, end, decimals, hand.chips[row], least)
    if i < 0 or (fields[F_COUNT] != 0 and fields[F_COUNT] != count):
        return -1
    if row != STACKS:
        for p in range(count):
            if hand.chips[row, p] == NO_STACK:
                return -1
    fields[F_COUNT] = count
    hand.head[H_WINNINGS] |= row == WINNINGS
    hand.head[H_FINISHING] |= row == FINISHING
    return i


@kernel(leaf=True)
def _value(data: Array, i: int, end: int, decimals: int, key: int, work: HistoryScratch) -> tuple[int, int]:
    """The value of a field: where it ends, -1 if it is not understood, and the field's bit of those met."""
    hand, fields = work.hand, work.fields
    if key == _ACTIONS:
        return read_entries(data, i, end, decimals, hand), 1
    if key == _PLAYERS:
        count, i = _names(data, i, end, work.named)
        if fields[F_COUNT] != 0 and fields[F_COUNT] != count:
            return -1, 2
        fields[F_COUNT] = count
        return i, 2
    if key == _VARIANT:
        known = i + 4 <= end and data[i] == QUOTE and data[i + 2] == 84 and data[i + 3] == QUOTE
        if not known or (data[i + 1] != 78 and data[i + 1] != 70):
            return -1, 4
        hand.head[H_NOLIMIT] = data[i + 1] == 78
        return i + 4, 4
    if key == _TRIMMED:
        if i + 5 <= end and data[i] == 102 and data[i + 1] == 97 and data[i + 2] == 108 and data[i + 3] == 115:
            return i + 5 if data[i + 4] == 101 else -1, 8
        hand.head[H_TRIMMED] = 1
        known = i + 4 <= end and data[i] == 116 and data[i + 1] == 114 and data[i + 2] == 117 and data[i + 3] == 101
        return i + 4 if known else -1, 8
    if key == _ANTES:
        return _list(data, i, end, decimals, ANTES, work), 16
    if key == _BLINDS:
        return _list(data, i, end, decimals, BLINDS, work), 32
    if key == _STACKS:
        return _list(data, i, end, decimals, STACKS, work), 64
    if key == _WINNINGS:
        return _list(data, i, end, decimals, WINNINGS, work), 128
    if key == _FINISHING:
        return _list(data, i, end, decimals, FINISHING, work), 256
    if key == _MIN_BET:
        return _bets(data, i, end, decimals, key, hand), 512
    if key == _SMALL_BET:
        return _bets(data, i, end, decimals, key, hand), 1024
    if key == _BIG_BET:
        return _bets(data, i, end, decimals, key, hand), 2048
    if key == _VENUE:
        if i < end and data[i] != QUOTE:
            return -1, 4096
        return _label(data, i, end, fields, F_VENUE), 4096
    if key == _TABLE:
        return _label(data, i, end, fields, F_TABLE), 8192
    if key == _HAND:
        return _label(data, i, end, fields, F_HAND), 1 << 14
    return _other_value(data, i, end, key, work)


@kernel(leaf=True)
def _other_value(data: Array, i: int, end: int, key: int, work: HistoryScratch) -> tuple[int, int]:
    """`_value` for fields that the rules do not need."""
    fields = work.fields
    if key == _SEATS:
        count, i = read_numbers(data, i, end, 0, work.row, 0)
        if i < 0 or (fields[F_COUNT] != 0 and fields[F_COUNT] != count):
            return -1, 0
        fields[F_COUNT] = count
        for p in range(count):
            if work.row[p] > 99:
                return -1, 0
        return i, 1 << 15
    if key == _TIME:
        return _clock(data, i, end), 1 << 16
    for k in range(len(_NUMBERS)):
        if key == _NUMBERS[k]:
            return _digits(data, i, end, 9), 1 << (17 + k)
    for k in range(len(_TEXTS)):
        if key == _TEXTS[k]:
            return read_string(data, i, end, 4096), 1 << (22 + k)
    return -1, 0


@kernel(leaf=True)
def read_fields(data: Array, begin: int, end: int, decimals: int, work: HistoryScratch) -> bool:
    """Fill `work` from a section in the common form; whether it is one."""
    hand, fields = work.hand, work.fields
    for k in range(HEAD):
        hand.head[k] = 0
    for k in range(FIELDS):
        fields[k] = 0
    i = begin
    while i < end:
        if data[i] == NEWLINE:
            i += 1
            continue
        if data[i] == RETURN and i + 1 < end and data[i + 1] == NEWLINE:
            i += 2
            continue
        key = 0
        first = i
        while i < end and (97 <= data[i] <= 122 or data[i] == 95):
            key = (key * 31 + data[i]) & 0xFFFFFFFFFFF
            i += 1
        if i == first or i + 3 > end or data[i] != SPACE or data[i + 1] != EQUALS or data[i + 2] != SPACE:
            return False
        i, bit = _value(data, i + 3, end, decimals, key, work)
        if i < 0 or fields[F_SEEN] & bit != 0:
            return False
        fields[F_SEEN] |= bit
        if i + 1 < end and data[i] == RETURN:
            i += 1
        if i < end and data[i] != NEWLINE:
            return False
    return _complete(work)


@kernel(leaf=True)
def _complete(work: HistoryScratch) -> bool:
    """Whether the fields that a hand needs are there and fit each other."""
    hand, fields = work.hand, work.fields
    seen = fields[F_SEEN]
    needed = 1 | 4 | 16 | 32 | 64 | (512 if hand.head[H_NOLIMIT] != 0 else 1024 | 2048)
    unwanted = 1024 | 2048 if hand.head[H_NOLIMIT] != 0 else 512
    n = fields[F_COUNT]
    if seen & needed != needed or seen & unwanted != 0 or n < 2:
        return False
    posted = False
    for p in range(n):
        posted = posted or hand.chips[ANTES, p] != 0 or hand.chips[BLINDS, p] != 0
    if not posted:
        return False
    for at in range(hand.head[H_ENTRIES]):
        if hand.who[at] >= n:
            return False
    hand.head[H_PLAYERS] = n
    return True
