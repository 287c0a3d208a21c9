"""The grammar of log lines over bytes, for the kernels of `scan`.

The same language as `acpc`'s regular expressions describe: every function takes the bytes and a place, and returns
the place after what it has read, or -1. A hand line's content goes into a `LineScratch`: a vector of fields (`F_*`),
tokens of betting, cards and numbers. It knows no rules: the form of a line, not its truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.ingestion.hand_buffers import (
    F_BETTING,
    F_BOARD,
    F_CARDS,
    F_FOREIGN,
    F_HAND,
    F_HOLES,
    F_NAMED,
    F_NAMES,
    F_PAID,
    F_PAYOFFS,
    F_STREETS,
    F_TOKENS,
    F_TWICE,
    F_UNEVEN,
    KernelContext,
    LineScratch,
)
from pipeline.poker.rules import MAX_PLAYERS, MAX_ROUNDS, R_HOLE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

STATE_LINE, SCORE_LINE = 1, 2
SLASH_MOVE, BLIND_MOVE = 3, 4
"""tokens of betting beside fold, call and raise"""

COLON, BAR, SLASH, MINUS, DOT, SPACE, HASH, RETURN, NEWLINE = (ord(c) for c in ":|/-. #\r\n")
SEMICOLON, ZERO, ONE, NINE = (ord(c) for c in ";019")
LOW_B, LOW_C, LOW_F, LOW_R = (ord(c) for c in "bcfr")


def card_codes() -> Array:
    """Per byte: 4 * rank for a rank's letter, 64 + suit for a suit's, -1 for any other."""
    codes = np.full(256, -1, dtype=np.int64)
    for rank, letter in enumerate("23456789TJQKA"):
        codes[ord(letter)] = 4 * rank
    for suit, letter in enumerate("cdhs"):
        codes[ord(letter)] = 64 + suit
    return codes


@kernel(leaf=True)
def read_digits(data: Array, i: int, end: int) -> tuple[int, int]:
    """A whole number of at most 17 read_digits and the place after it; -1 when it is longer."""
    value: Any = np.int64(0)
    first = i
    while i < end and ZERO <= data[i] <= NINE:
        if i - first == 17:
            return value, -1
        value = value * 10 + (data[i] - ZERO)
        i += 1
    return value, i


@kernel(leaf=True)
def _number(data: Array, i: int, end: int) -> tuple[float, int]:
    """A number of chips and the place after it, -1 when there is none."""
    negative = i < end and data[i] == MINUS
    if negative:
        i += 1
    whole, after = read_digits(data, i, end)
    if not i < after <= i + 12:
        return 0.0, -1
    value = float(whole)
    if after < end and data[after] == DOT:
        i = after + 1
        part, after = read_digits(data, i, end)
        if after <= i:
            return 0.0, -1
        value += part / 10.0 ** (after - i)
    return (-value if negative else value), after


@kernel(leaf=True)
def numbers(data: Array, i: int, end: int, fields: Array, payoffs: Array) -> int:
    """Two or more numbers between bars; the place after them or -1."""
    count = 0
    while True:
        value, i = _number(data, i, end)
        if i < 0:
            return -1
        if count < MAX_PLAYERS:
            payoffs[count] = value
        count += 1
        if i >= end or data[i] != BAR:
            break
        i += 1
    fields[F_PAYOFFS] = count
    return i if count >= 2 else -1


@kernel(leaf=True)
def names(data: Array, i: int, end: int, fields: Array) -> int:
    """Two or more names between bars; the place after them or -1."""
    count = 0
    while True:
        first = i
        while i < end and 33 <= data[i] <= 126 and data[i] != COLON and data[i] != BAR:
            i += 1
        if not 1 <= i - first <= 64:
            return -1
        count += 1
        if i >= end or data[i] != BAR:
            break
        i += 1
    fields[F_NAMES] = count
    return i if count >= 2 else -1


@kernel(leaf=True)
def is_suffix(data: Array, i: int, end: int) -> bool:
    """Whether nothing but the suffixes of real logs is left."""
    if end > i and data[end - 1] == RETURN:
        end -= 1
    if i + 1 < end and data[i] == SPACE and ZERO <= data[i + 1] <= ONE:
        i += 2
    if i + 2 < end and data[i] == SPACE and data[i + 1] == HASH:
        i += 2
        if data[i] == SPACE:
            i += 1
        _, after = read_digits(data, i, end)
        if not i < after <= i + 12:
            return False
        i = after
        if i < end and data[i] == DOT:
            _, after = read_digits(data, i + 1, end)
            if not i + 1 < after <= i + 13:
                return False
            i = after
    return i == end


@kernel(leaf=True)
def _betting(data: Array, i: int, end: int, names_first: bool, fields: Array, moves: Array, sizes: Array) -> int:
    """The actions as tokens; the place of the colon after them or -1."""
    count = 0
    while i < end and data[i] != COLON:
        byte = data[i]
        i += 1
        size = -1
        if byte in (LOW_C, LOW_R):
            move = 1 if byte == LOW_C else 2
            if byte == LOW_R or names_first:
                value, after = read_digits(data, i, end)
                if not i <= after <= i + 9:
                    return -1
                if after > i:
                    size = value
                    i = after
        elif byte == LOW_F:
            move = 0
        elif byte == SLASH:
            move = SLASH_MOVE
        elif byte == LOW_B and names_first and (count == 0 or moves[count - 1] == BLIND_MOVE):
            move = BLIND_MOVE
            size, after = read_digits(data, i, end)
            if not i < after <= i + 9:
                return -1
            i = after
        else:
            return -1
        moves[count] = move
        sizes[count] = size
        count += 1
    fields[F_TOKENS] = count
    return i if i < end else -1


@kernel(leaf=True)
def _cards(data: Array, i: int, end: int, game: KernelContext, work: LineScratch) -> int:
    """The cards; the place after them or -1. What the game cannot have is noted in `work.fields`."""
    fields, hole, board, card_of = work.fields, work.hole, work.board, game.card_of
    fields[F_UNEVEN] = fields[F_FOREIGN] = fields[F_TWICE] = 0
    seen = 0
    holes = 0
    street = 0
    on_board = 0
    held = 0
    while True:
        if i + 1 >= end:
            return -1
        rank = card_of[data[i]]
        suit = card_of[data[i + 1]]
        if rank < 0 or rank >= 64 or suit < 64:
            return -1
        card = rank + suit - 64
        i += 2
        bit = 1 << card
        if game.deck & bit == 0:
            fields[F_FOREIGN] = 1
        if seen & bit != 0:
            fields[F_TWICE] = 1
        seen |= bit
        if street == 0:
            if held < 2 and holes < MAX_PLAYERS:
                hole[holes, held] = card
        elif on_board < 5:
            board[on_board] = card
        if street > 0:
            on_board += 1
        held += 1
        after = data[i] if i < end else 0
        if after in (BAR, SLASH):
            if after == BAR and street > 0:
                return -1
            i += 1
        elif card_of[after] >= 0:
            continue
        if street == 0:
            holes += 1
            if held != game.rules[R_HOLE]:
                fields[F_UNEVEN] = 1
        elif street < MAX_ROUNDS:
            fields[F_BOARD + street] = held
        if after == SLASH:
            street += 1
        elif after != BAR:
            break
        held = 0
    fields[F_HOLES] = holes
    fields[F_STREETS] = street
    return i


@kernel(leaf=True)
def read_hand(data: Array, a: int, b: int, game: KernelContext, work: LineScratch) -> bool:
    """Read a hand of either form; whether its grammar is right."""
    fields = work.fields
    names_first = line_kind(data, a, b) != STATE_LINE
    i = a + 6
    if names_first:
        fields[F_NAMED] = a
        i = names(data, a, b, fields)
        if i < 0 or i >= b or data[i] != COLON:
            return False
        fields[F_NAMED + 1] = i
        i += 1
    number, after = read_digits(data, i, b)
    if not i < after <= i + 9 or after >= b or data[after] != COLON:
        return False
    fields[F_HAND] = number
    fields[F_BETTING] = after + 1
    i = _betting(data, after + 1, b, names_first, fields, work.moves, work.sizes)
    if i < 0:
        return False
    fields[F_BETTING + 1] = i
    fields[F_CARDS] = i + 1
    i = _cards(data, i + 1, b, game, work)
    if i < 0 or i >= b or data[i] != COLON:
        return False
    fields[F_CARDS + 1] = i
    fields[F_PAID] = i + 1
    i = numbers(data, i + 1, b, fields, work.payoffs)
    if i < 0:
        return False
    fields[F_PAID + 1] = i
    if not names_first:
        if i >= b or data[i] != COLON:
            return False
        fields[F_NAMED] = i + 1
        i = names(data, i + 1, b, fields)
        if i < 0:
            return False
        fields[F_NAMED + 1] = i
    return is_suffix(data, i, b)


@kernel(leaf=True)
def line_kind(data: Array, a: int, b: int) -> int:
    """STATE_LINE or SCORE_LINE if a line begins so, else 0."""
    if b - a <= 6 or data[a] != 83 or data[a + 4] != 69 or data[a + 5] != COLON:
        return 0
    if data[a + 1] == 84 and data[a + 2] == 65 and data[a + 3] == 84:
        return STATE_LINE
    if data[a + 1] == 67 and data[a + 2] == 79 and data[a + 3] == 82:
        return SCORE_LINE
    return 0


@kernel(leaf=True)
def hand_number(data: Array, a: int, b: int) -> int:
    """The hand's number in a line of either form, whatever else is wrong with it; -1 where there is none."""
    if line_kind(data, a, b) == SCORE_LINE:
        return -1
    i = a
    while i < b and data[i] != COLON:  # after STATE, or after the names
        i += 1
    number, after = read_digits(data, i + 1, b)
    return number if i + 1 < after <= i + 10 and after < b and data[after] == COLON else -1
