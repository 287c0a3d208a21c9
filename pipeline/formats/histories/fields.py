"""Grammar of the byte kernel: the text of one hand in the common form becomes the arrays that `replay.play` takes.

The common form is that of the public collections: one field per line, `key = value`, a space on each side of the sign,
strings in single quotes and ASCII, lists on one line with `, ` between entries, no comments. Everything here either
understands a text completely or says that it does not (-1, False); `notation` then decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.formats.ascii import (
    BAR,
    CLOSE,
    COLON,
    COMMA,
    EQUALS,
    LOW_A,
    LOW_Z,
    MINUS,
    NEWLINE,
    NINE,
    ONE,
    OPEN,
    POINT,
    QUESTION,
    QUOTE,
    RETURN,
    SPACE,
    UNDERSCORE,
    ZERO,
)
from pipeline.formats.histories.history import MAX_AMOUNT, MOST_HISTORY_PLAYERS
from pipeline.formats.histories.packing import (
    ANTES,
    BLINDS,
    CALLS,
    DEAL_BOARD,
    DEAL_HOLE,
    FINISHING,
    FOLDS,
    MOST_ENTRIES,
    MUCKS,
    RAISES,
    SHOWS,
    STACKS,
    WINNINGS,
    Outcome,
    PackedHand,
    outcome,
    packed,
)
from pipeline.poker.cards import NO_CARD
from pipeline.poker.rules import MAX_PLAYERS, NO_STACK
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


def _key(word: str) -> int:
    """Return a field's name as one number, as `read_fields` computes it."""
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

# A bit for each field that was read, so that none is read twice
SEEN_ACTIONS, SEEN_PLAYERS, SEEN_VARIANT, SEEN_TRIMMED = (1 << k for k in range(4))
SEEN_ANTES, SEEN_BLINDS, SEEN_STACKS, SEEN_WINNINGS, SEEN_FINISHING = (1 << k for k in range(4, 9))
SEEN_MIN_BET, SEEN_SMALL_BET, SEEN_BIG_BET = (1 << k for k in range(9, 12))
SEEN_VENUE, SEEN_TABLE, SEEN_HAND, SEEN_SEATS, SEEN_TIME = (1 << k for k in range(12, 17))
FIRST_NUMBER_BIT, FIRST_TEXT_BIT = 17, 22

# HistoryScratch.spans, a row each
VENUE, TABLE, HAND_NAME = range(3)

PROGRESS = np.dtype(
    [
        ("seen", np.int64),  # a bit per field
        ("count", np.int64),  # length of the lists so far: the number of players
    ]
)


class HistoryScratch(NamedTuple):
    """Arrays that the kernel works in."""

    hand: PackedHand
    out: Outcome
    spans: Array
    """(3, 2) int64: where venue, table and hand name begin and end"""
    progress: Array
    """(1,) PROGRESS"""
    named: Array
    """(players, 2) int64: where each name begins and ends"""
    row: Array
    """(MAX_PLAYERS,) int64: a list of numbers nobody needs"""


def history_scratch() -> HistoryScratch:
    """Return a fresh set of working arrays."""
    return HistoryScratch(
        packed(),
        outcome(),
        np.zeros((3, 2), np.int64),
        np.zeros(1, PROGRESS),
        np.zeros((MOST_HISTORY_PLAYERS, 2), np.int64),
        np.zeros(MAX_PLAYERS, np.int64),
    )


# Amounts, strings, cards and entries: each function reads one thing and returns where it ends, -1 for another form


@kernel(leaf=True)
def read_number(data: Array, i: int, end: int, decimals: int) -> tuple[int, int]:
    """Read an amount in units; return it and where it ends, -1 if it is not understood. `inf` is NO_STACK."""
    if i + 3 <= end and data[i] == 105 and data[i + 1] == 110 and data[i + 2] == 102:
        return NO_STACK, i + 3
    sign = 1
    if i < end and data[i] == MINUS:
        sign = -1
        i += 1
    first = i
    value = 0
    while i < end and ZERO <= data[i] <= NINE and i - first < 12:
        value = value * 10 + (data[i] - ZERO)
        i += 1
    if i == first or (data[first] == ZERO and i > first + 1):
        return 0, -1
    places = 0
    if i < end and data[i] == POINT:
        i += 1
        first = i
        while i < end and ZERO <= data[i] <= NINE:
            digit = data[i] - ZERO
            if places < decimals:
                value = value * 10 + digit
                places += 1
            elif digit != 0 or i - first > 12:
                return 0, -1
            i += 1
        if i == first:
            return 0, -1
    while places < decimals:
        value *= 10
        places += 1
    if value > MAX_AMOUNT:
        return 0, -1
    return sign * value, i


@kernel(leaf=True)
def read_numbers(data: Array, i: int, end: int, decimals: int, row: Array, minimum: int) -> tuple[int, int]:
    """Read a list of amounts, none below `minimum`, into `row`; return their number and where it ends or -1."""
    if i >= end or data[i] != OPEN:
        return 0, -1
    i += 1
    count = 0
    while count < MOST_HISTORY_PLAYERS:
        value, i = read_number(data, i, end, decimals)
        if i < 0 or value < minimum:
            return 0, -1
        row[count] = value
        count += 1
        if i < end and data[i] == CLOSE:
            return count, i + 1
        if i + 1 >= end or data[i] != COMMA or data[i + 1] != SPACE:
            return 0, -1
        i += 2
    return 0, -1


@kernel(leaf=True)
def read_string(data: Array, i: int, end: int, longest: int) -> int:
    """Return where a string in single quotes ends, -1 if it is none."""
    if i >= end or data[i] != QUOTE:
        return -1
    i += 1
    first = i
    while i < end and data[i] != QUOTE:
        if data[i] < 32 or data[i] > 126:
            return -1
        i += 1
    if i >= end or i - first > longest or (i == first and i + 1 < end and data[i + 1] == QUOTE):
        return -1
    return i + 1


@kernel(leaf=True)
def _card(data: Array, i: int, end: int) -> int:
    """Return the card written at `i`; NO_CARD for `??`, -1 if there is none."""
    if i + 2 > end:
        return -1
    rank, suit = data[i], data[i + 1]
    if rank == QUESTION and suit == QUESTION:
        return NO_CARD
    r = -1
    if 50 <= rank <= NINE:
        r = rank - 50
    elif rank == 84:
        r = 8
    elif rank == 74:
        r = 9
    elif rank == 81:
        r = 10
    elif rank == 75:
        r = 11
    elif rank == 65:
        r = 12
    s = 0 if suit == 99 else 1 if suit == 100 else 2 if suit == 104 else 3 if suit == 115 else -1
    return -1 if r < 0 or s < 0 else 4 * r + s


@kernel(leaf=True)
def _read_cards(data: Array, i: int, hand: PackedHand, entry: int, most: int, end: int) -> int:
    """Read one to `most` cards of an entry up to its closing quote; return where that is, -1 if there are none."""
    count = 0
    while i < end and data[i] != QUOTE:
        card = _card(data, i, end)
        if card < 0 or count == most:
            return -1
        hand.cards[entry, count] = card
        count += 1
        i += 2
    hand.counts[entry] = count
    return i if count > 0 else -1


@kernel(leaf=True)
def _entry(data: Array, i: int, end: int, decimals: int, hand: PackedHand, entry: int) -> int:
    """Read an entry of `actions` after its opening quote; return where its closing quote is, -1 if not understood."""
    if i + 5 > end:
        return -1
    dealer = data[i] == 100 and data[i + 1] == SPACE and data[i + 2] == 100
    if dealer and data[i + 3] == 98 and data[i + 4] == SPACE:  # d db
        hand.kinds[entry] = DEAL_BOARD
        hand.who[entry] = 0
        i = _read_cards(data, i + 5, hand, entry, 3, end)
        for c in range(hand.counts[entry]):
            if hand.cards[entry, c] == NO_CARD:
                return -1
        return i
    if dealer:
        if data[i + 3] != 104 or data[i + 4] != SPACE:  # d dh
            return -1
        i += 5
    if i + 4 > end or data[i] != 112 or not ONE <= data[i + 1] <= NINE:  # a player
        return -1
    player = data[i + 1] - ZERO
    i += 2
    if ZERO <= data[i] <= NINE:
        player = player * 10 + (data[i] - ZERO)
        i += 1
    if i >= end or data[i] != SPACE:
        return -1
    hand.who[entry] = player - 1
    hand.counts[entry] = 0
    hand.amounts[entry] = 0
    i += 1
    if dealer:
        hand.kinds[entry] = DEAL_HOLE
        return _read_cards(data, i, hand, entry, 2, end)
    if i + 4 >= end:
        return -1
    if data[i] == 102 and data[i + 1] == QUOTE:  # f
        hand.kinds[entry] = FOLDS
        return i + 1
    if data[i] == 99 and data[i + 1] == 99 and data[i + 2] == QUOTE:  # cc
        hand.kinds[entry] = CALLS
        return i + 2
    if data[i] == 99 and data[i + 1] == 98 and data[i + 2] == 114 and data[i + 3] == SPACE:  # cbr
        hand.kinds[entry] = RAISES
        value, i = read_number(data, i + 4, end, decimals)
        hand.amounts[entry] = value
        return i if 0 <= value < NO_STACK else -1
    if data[i] == 115 and data[i + 1] == 109:  # sm
        hand.kinds[entry] = SHOWS
        if data[i + 2] == QUOTE:
            hand.kinds[entry] = MUCKS
            return i + 2
        return _read_cards(data, i + 3, hand, entry, 2, end) if data[i + 2] == SPACE else -1
    return -1


@kernel(leaf=True)
def read_entries(data: Array, i: int, end: int, decimals: int, hand: PackedHand) -> int:
    """Read the list of actions; return where it ends, -1 if it is not understood."""
    if i + 1 >= end or data[i] != OPEN:
        return -1
    i += 1
    hand.head[0].entries = 0
    if data[i] == CLOSE:
        return i + 1
    for entry in range(MOST_ENTRIES):
        if i >= end or data[i] != QUOTE:
            return -1
        i = _entry(data, i + 1, end, decimals, hand, entry)
        if i < 0 or i + 2 >= end or data[i] != QUOTE:
            return -1
        hand.head[0].entries = entry + 1
        if data[i + 1] == CLOSE:
            return i + 2
        if data[i + 1] != COMMA or data[i + 2] != SPACE:
            return -1
        i += 3
    return -1


# Fields


@kernel(leaf=True)
def _names(data: Array, i: int, end: int, named: Array) -> tuple[int, int]:
    """Read the list of names; return their number and where it ends, -1 if it is not understood."""
    if i >= end or data[i] != OPEN:
        return 0, -1
    i += 1
    for count in range(MOST_HISTORY_PLAYERS):
        after = read_string(data, i, end, 64)
        if after < 0 or after - i < 3:
            return 0, -1
        for k in range(i, after):
            if data[k] == BAR:  # a bar joins names elsewhere
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
    """Return where a whole number without sign ends, -1 if it is none or has more than `most` digits."""
    first = i
    while i < end and ZERO <= data[i] <= NINE:
        i += 1
    if i == first or i - first > most or (data[first] == ZERO and i > first + 1):
        return -1
    return i


@kernel(leaf=True)
def _clock(data: Array, i: int, end: int) -> int:
    """Return where a time of day `hh:mm:ss` ends, -1 if it is none."""
    if i + 8 > end:
        return -1
    for part in range(3):
        tens, ones = data[i + 3 * part], data[i + 3 * part + 1]
        if not (ZERO <= tens <= NINE and ZERO <= ones <= NINE) or (part < 2 and data[i + 3 * part + 2] != COLON):
            return -1
        if (tens - ZERO) * 10 + (ones - ZERO) >= (24 if part == 0 else 60):
            return -1
    return i + 8


@kernel(leaf=True)
def _label(data: Array, i: int, end: int, spans: Array, which: int) -> int:
    """Read a text or number that names something; return where it ends, -1 if it is not understood."""
    if i < end and data[i] == QUOTE:
        after = read_string(data, i, end, 128)
        spans[which, 0], spans[which, 1] = i + 1, after - 1
        return after
    after = _digits(data, i, end, 17)
    spans[which, 0], spans[which, 1] = i, after
    return after


@kernel(leaf=True)
def _bets(data: Array, i: int, end: int, decimals: int, key: int, hand: PackedHand) -> int:
    """Read a minimum, small or big bet; return where it ends, -1 if it is not understood."""
    value, i = read_number(data, i, end, decimals)
    if not 0 < value < NO_STACK:
        return -1
    if key != _BIG_BET:
        hand.head[0].small_bet = value
    if key != _SMALL_BET:
        hand.head[0].big_bet = value
    return i


@kernel(leaf=True)
def _list(data: Array, i: int, end: int, decimals: int, row: int, work: HistoryScratch) -> int:
    """Read a list of amounts as long as the others; return where it ends, -1 if it is not understood."""
    hand, progress = work.hand, work.progress[0]
    minimum = -MAX_AMOUNT if row % 2 == 1 else 1 if row == STACKS else 0  # blinds and winnings may be negative
    count, i = read_numbers(data, i, end, decimals, hand.chips[row], minimum)
    if i < 0 or (progress.count != 0 and progress.count != count):
        return -1
    if row != STACKS:
        for p in range(count):
            if hand.chips[row, p] == NO_STACK:
                return -1
    progress.count = count
    if row == WINNINGS:
        hand.head[0].winnings = 1
    if row == FINISHING:
        hand.head[0].finishing = 1
    return i


@kernel(leaf=True)
def _value(data: Array, i: int, end: int, decimals: int, key: int, work: HistoryScratch) -> tuple[int, int]:
    """Read the value of a field; return where it ends, -1 if it is not understood, and the field's bit."""
    hand, progress = work.hand, work.progress[0]
    if key == _ACTIONS:
        return read_entries(data, i, end, decimals, hand), SEEN_ACTIONS
    if key == _PLAYERS:
        count, i = _names(data, i, end, work.named)
        if progress.count != 0 and progress.count != count:
            return -1, SEEN_PLAYERS
        progress.count = count
        return i, SEEN_PLAYERS
    if key == _VARIANT:
        fits = i + 4 <= end and data[i] == QUOTE and data[i + 2] == 84 and data[i + 3] == QUOTE
        if not fits or (data[i + 1] != 78 and data[i + 1] != 70):
            return -1, SEEN_VARIANT
        hand.head[0].nolimit = 1 if data[i + 1] == 78 else 0
        return i + 4, SEEN_VARIANT
    if key == _TRIMMED:
        if i + 5 <= end and data[i] == 102 and data[i + 1] == 97 and data[i + 2] == 108 and data[i + 3] == 115:
            return i + 5 if data[i + 4] == 101 else -1, SEEN_TRIMMED
        hand.head[0].trimmed = 1
        fits = i + 4 <= end and data[i] == 116 and data[i + 1] == 114 and data[i + 2] == 117 and data[i + 3] == 101
        return i + 4 if fits else -1, SEEN_TRIMMED
    if key == _ANTES:
        return _list(data, i, end, decimals, ANTES, work), SEEN_ANTES
    if key == _BLINDS:
        return _list(data, i, end, decimals, BLINDS, work), SEEN_BLINDS
    if key == _STACKS:
        return _list(data, i, end, decimals, STACKS, work), SEEN_STACKS
    if key == _WINNINGS:
        return _list(data, i, end, decimals, WINNINGS, work), SEEN_WINNINGS
    if key == _FINISHING:
        return _list(data, i, end, decimals, FINISHING, work), SEEN_FINISHING
    if key == _MIN_BET:
        return _bets(data, i, end, decimals, key, hand), SEEN_MIN_BET
    if key == _SMALL_BET:
        return _bets(data, i, end, decimals, key, hand), SEEN_SMALL_BET
    if key == _BIG_BET:
        return _bets(data, i, end, decimals, key, hand), SEEN_BIG_BET
    if key == _VENUE:
        if i < end and data[i] != QUOTE:
            return -1, SEEN_VENUE
        return _label(data, i, end, work.spans, VENUE), SEEN_VENUE
    if key == _TABLE:
        return _label(data, i, end, work.spans, TABLE), SEEN_TABLE
    if key == _HAND:
        return _label(data, i, end, work.spans, HAND_NAME), SEEN_HAND
    return _other_value(data, i, end, key, work)


@kernel(leaf=True)
def _other_value(data: Array, i: int, end: int, key: int, work: HistoryScratch) -> tuple[int, int]:
    """Read the value of a field that the rules do not need, as `_value` does."""
    progress = work.progress[0]
    if key == _SEATS:
        count, i = read_numbers(data, i, end, 0, work.row, 0)
        if i < 0 or (progress.count != 0 and progress.count != count):
            return -1, 0
        progress.count = count
        for p in range(count):
            if work.row[p] > 99:
                return -1, 0
        return i, SEEN_SEATS
    if key == _TIME:
        return _clock(data, i, end), SEEN_TIME
    for k in range(len(_NUMBERS)):
        if key == _NUMBERS[k]:
            return _digits(data, i, end, 9), 1 << (FIRST_NUMBER_BIT + k)
    for k in range(len(_TEXTS)):
        if key == _TEXTS[k]:
            return read_string(data, i, end, 4096), 1 << (FIRST_TEXT_BIT + k)
    return -1, 0


@kernel(leaf=True)
def read_fields(data: Array, begin: int, end: int, decimals: int, work: HistoryScratch) -> bool:
    """Fill `work` from a section in the common form; return whether it is one."""
    hand, progress, spans = work.hand, work.progress[0], work.spans
    head = hand.head[0]
    head.nolimit = 0
    head.players = 0
    head.trimmed = 0
    head.small_bet = 0
    head.big_bet = 0
    head.entries = 0
    head.winnings = 0
    head.finishing = 0
    progress.seen = 0
    progress.count = 0
    for k in range(3):
        spans[k, 0] = 0
        spans[k, 1] = 0
    i = begin
    while i < end:
        if data[i] == NEWLINE:
            i += 1
            continue
        if data[i] == RETURN and i + 1 < end and data[i + 1] == NEWLINE:
            i += 2
            continue
        # the field's name as one number, so that one comparison tells it (see `_key`)
        key = 0
        first = i
        while i < end and (LOW_A <= data[i] <= LOW_Z or data[i] == UNDERSCORE):
            key = (key * 31 + data[i]) & 0xFFFFFFFFFFF
            i += 1
        if i == first or i + 3 > end or data[i] != SPACE or data[i + 1] != EQUALS or data[i + 2] != SPACE:
            return False
        i, bit = _value(data, i + 3, end, decimals, key, work)
        if i < 0 or progress.seen & bit != 0:
            return False
        progress.seen |= bit
        if i + 1 < end and data[i] == RETURN:
            i += 1
        if i < end and data[i] != NEWLINE:
            return False
    return _complete(work)


@kernel(leaf=True)
def _complete(work: HistoryScratch) -> bool:
    """Return whether the fields that a hand needs are there and fit each other; set its number of players."""
    hand, progress = work.hand, work.progress[0]
    seen = progress.seen
    limit_bets = SEEN_SMALL_BET | SEEN_BIG_BET
    bets, unwanted = (SEEN_MIN_BET, limit_bets) if hand.head[0].nolimit != 0 else (limit_bets, SEEN_MIN_BET)
    needed = SEEN_ACTIONS | SEEN_VARIANT | SEEN_ANTES | SEEN_BLINDS | SEEN_STACKS | bets
    n = progress.count
    if seen & needed != needed or seen & unwanted != 0 or n < 2:
        return False
    posted = False
    for p in range(n):
        posted = posted or hand.chips[ANTES, p] != 0 or hand.chips[BLINDS, p] != 0
    if not posted:
        return False
    for entry in range(hand.head[0].entries):
        if hand.who[entry] >= n:
            return False
    hand.head[0].players = n
    return True
