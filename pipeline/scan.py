"""The byte kernel: lines of a log in, checked hands out.

`scan` reads lines as `acpc`'s regular expressions describe them, plays each hand by the rules of `game`, and comes to
the verdict of `acpc.verdict` on every line, some hundred times faster. Hands go into arrays, everything else is counted
or listed with its reason.

The kernel stops at a header (another game or seed may begin) and at a line-up of players it does not remember; `hands`
answers and lets it go on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.acpc import (
    AFTER_END,
    BLINDS,
    BOARD_COUNT,
    CALL_SIZE,
    CARD_TWICE,
    GRAMMAR,
    HOLE_COUNT,
    ILLEGAL,
    MAX_LINE,
    MOST_ACTIONS,
    NO_GAME,
    NOT_IN_DECK,
    OTHER_NAMES,
    PAYOFF,
    PLAYERS,
    SAME_NAME,
    SIZE,
    STREETS,
    TOLERANCE,
    TOO_LONG,
    TOO_MANY,
    UNFINISHED,
    VALID,
)
from pipeline.cards import NO_CARD, Ranking, showdown_value
from pipeline.decisions import deal_hash
from pipeline.game import (
    MAX_PLAYERS,
    MAX_ROUNDS,
    R_BLIND,
    R_BOARD,
    R_HOLE,
    R_NOLIMIT,
    R_PLAYERS,
    RAISE,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_ROUND,
    S_SPENT,
    STATE_SIZE,
    apply,
    is_legal,
    is_showdown,
    settle,
    start,
)
from pipeline.kernels import kernel

Array = npt.NDArray[Any]

HAND = np.dtype(
    [
        ("deal", np.uint64),
        ("first", np.int64),  # of its actions in `moves` and `sizes`
        ("count", np.int32),
        ("line", np.int32),
        ("number", np.int32),
        ("lineup", np.int32),
        ("betting", np.int32, (2,)),  # where the fields stand in the bytes
        ("cards", np.int32, (2,)),
        ("payoffs", np.int32, (2,)),
        ("showdown", np.bool_),
        ("expected", np.bool_),
    ],
    align=True,
)
REJECTED = np.dtype([("line", np.int32), ("begin", np.int32), ("end", np.int32), ("code", np.int32)])

# Counters of a scan
C_AT, C_LINE, C_COMMENTS, C_SCORES, C_HANDS, C_REJECTED, C_ACTIONS, C_SET, C_NAMES, C_NAMES_END = range(10)
COUNTERS = 10

# Why `scan` returns
DONE, AT_HEADER, AT_LINEUP = range(3)

# What the grammar finds in a line
F_HAND, F_TOKENS, F_HOLES, F_UNEVEN, F_FOREIGN, F_TWICE, F_STREETS, F_PAYOFFS, F_NAMES = range(9)
F_BETTING, F_CARDS, F_PAID, F_NAMED = 9, 11, 13, 15
F_BOARD = 17
FIELDS = F_BOARD + MAX_ROUNDS

SLASH_MOVE, BLIND_MOVE = 3, 4

RING = 16
"""how many line-ups of a match the kernel remembers"""
RING_BYTES = MAX_PLAYERS * 65

COLON, BAR, SLASH, MINUS, DOT, SPACE, HASH, RETURN, NEWLINE = (ord(c) for c in ":|/-. #\r\n")
SEMICOLON, ZERO, ONE, NINE = (ord(c) for c in ";019")
LOW_B, LOW_C, LOW_F, LOW_R = (ord(c) for c in "bcfr")


class Scratch(NamedTuple):
    """Arrays the kernel works in, one set per thread."""

    fields: Array
    moves: Array
    sizes: Array
    hole: Array
    board: Array
    payoffs: Array
    state: Array
    values: Array
    due: Array


def scratch() -> Scratch:
    """A fresh set of working arrays."""
    return Scratch(
        fields=np.zeros(FIELDS, dtype=np.int64),
        moves=np.zeros(MAX_LINE + 1, dtype=np.uint8),
        sizes=np.zeros(MAX_LINE + 1, dtype=np.int64),
        hole=np.zeros((MAX_PLAYERS, 2), dtype=np.uint8),
        board=np.zeros(5, dtype=np.uint8),
        payoffs=np.zeros(MAX_PLAYERS, dtype=np.float64),
        state=np.zeros(STATE_SIZE, dtype=np.int64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
    )


@kernel(leaf=True)
def _digits(data: Array, i: int, end: int, most: int) -> tuple[int, int]:
    """A whole number of at most `most` digits and the place after it, -1 when it is longer."""
    value = 0
    first = i
    while i < end and ZERO <= data[i] <= NINE:
        if i - first == most:
            return 0, -1
        value = value * 10 + (data[i] - ZERO)
        i += 1
    return value, i


@kernel(leaf=True)
def _number(data: Array, i: int, end: int) -> tuple[float, int]:
    """A number of chips and the place after it, -1 when there is none."""
    negative = i < end and data[i] == MINUS
    if negative:
        i += 1
    whole, after = _digits(data, i, end, 12)
    if after <= i:
        return 0.0, -1
    value = float(whole)
    if after < end and data[after] == DOT:
        i = after + 1
        part, after = _digits(data, i, end, 17)
        if after <= i:
            return 0.0, -1
        value += part / 10.0 ** (after - i)
    return (-value if negative else value), after


@kernel(leaf=True)
def _numbers(data: Array, i: int, end: int, fields: Array, payoffs: Array) -> int:
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
def _names(data: Array, i: int, end: int, fields: Array) -> int:
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
def _tail(data: Array, i: int, end: int) -> bool:
    """Whether nothing but the suffixes of real logs is left."""
    if end > i and data[end - 1] == RETURN:
        end -= 1
    if i + 1 < end and data[i] == SPACE and ZERO <= data[i + 1] <= ONE:
        i += 2
    if i + 2 < end and data[i] == SPACE and data[i + 1] == HASH:
        i += 2
        if data[i] == SPACE:
            i += 1
        _, after = _digits(data, i, end, 12)
        if after <= i:
            return False
        i = after
        if i < end and data[i] == DOT:
            _, after = _digits(data, i + 1, end, 12)
            if after <= i + 1:
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
                value, after = _digits(data, i, end, 9)
                if after < 0:
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
            size, after = _digits(data, i, end, 9)
            if after <= i:
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
def _cards(
    data: Array, i: int, end: int, deck: int, per_player: int, card_of: Array, fields: Array, hole: Array, board: Array
) -> int:
    """The cards; the place after them or -1. What the game cannot have is noted in `fields`."""
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
        if deck & bit == 0:
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
            if held != per_player:
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
def _hand_line(
    data: Array,
    a: int,
    b: int,
    deck: int,
    per_player: int,
    card_of: Array,
    fields: Array,
    moves: Array,
    sizes: Array,
    hole: Array,
    board: Array,
    payoffs: Array,
) -> bool:
    """Read a hand of either form; whether its grammar is right."""
    names_first = not _starts(data, a, b, 83, 84, 65, 84, 69)
    i = a + 6
    if names_first:
        fields[F_NAMED] = a
        i = _names(data, a, b, fields)
        if i < 0 or i >= b or data[i] != COLON:
            return False
        fields[F_NAMED + 1] = i
        i += 1
    number, after = _digits(data, i, b, 9)
    if after <= i or after >= b or data[after] != COLON:
        return False
    fields[F_HAND] = number
    fields[F_BETTING] = after + 1
    i = _betting(data, after + 1, b, names_first, fields, moves, sizes)
    if i < 0:
        return False
    fields[F_BETTING + 1] = i
    fields[F_CARDS] = i + 1
    i = _cards(data, i + 1, b, deck, per_player, card_of, fields, hole, board)
    if i < 0 or i >= b or data[i] != COLON:
        return False
    fields[F_CARDS + 1] = i
    fields[F_PAID] = i + 1
    i = _numbers(data, i + 1, b, fields, payoffs)
    if i < 0:
        return False
    fields[F_PAID + 1] = i
    if not names_first:
        if i >= b or data[i] != COLON:
            return False
        fields[F_NAMED] = i + 1
        i = _names(data, i + 1, b, fields)
        if i < 0:
            return False
        fields[F_NAMED + 1] = i
    return _tail(data, i, b)


@kernel(leaf=True)
def _starts(data: Array, a: int, b: int, c0: int, c1: int, c2: int, c3: int, c4: int) -> bool:
    """Whether a line begins with these five letters and a colon."""
    return (
        b - a > 6
        and data[a] == c0
        and data[a + 1] == c1
        and data[a + 2] == c2
        and data[a + 3] == c3
        and data[a + 4] == c4
        and data[a + 5] == COLON
    )


@kernel(leaf=True)
def _play(rules: Array, fields: Array, moves: Array, sizes: Array, state: Array, places: Array, totals: Array) -> int:
    """Play the tokens; actions go to the front of `places` (action, street, actor packed) and `totals`."""
    start(rules, state)
    tokens = fields[F_TOKENS]
    first = 0
    while first < tokens and moves[first] == BLIND_MOVE:
        first += 1
    if first > 0:
        posted = 0
        for p in range(rules[R_PLAYERS]):
            blind = rules[R_BLIND + p]
            if blind > 0:
                posted += 1
                balance = 0
                for q in range(rules[R_PLAYERS]):
                    balance += 1 if rules[R_BLIND + q] == blind else 0
                for t in range(first):
                    balance -= 1 if sizes[t] == blind else 0
                if balance != 0:
                    return BLINDS
        if posted != first:
            return BLINDS
    nolimit = rules[R_NOLIMIT] != 0
    street = 0
    count = 0
    for t in range(first, tokens):
        move = int(moves[t])
        if move == SLASH_MOVE:
            street += 1
            if street > state[S_ROUND]:
                return STREETS
            continue
        if state[S_FINISHED] != 0:
            return AFTER_END
        if street < state[S_ROUND]:
            return STREETS
        size = sizes[t]
        if move == RAISE and (size >= 0) != nolimit and not (fields[F_NAMED] < fields[F_BETTING] and not nolimit):
            return SIZE
        if not is_legal(rules, state, move, size):
            return ILLEGAL
        if count == MOST_ACTIONS:
            return TOO_MANY
        actor = state[S_ACTOR]
        places[count] = move | (state[S_ROUND] << 2) | (actor << 4)
        totals[count] = size if move == RAISE and nolimit else 0
        count += 1
        apply(rules, state, move, size)
        if size >= 0 and state[S_SPENT + actor] != size:
            return CALL_SIZE
    fields[F_TOKENS] = count
    if state[S_FINISHED] == 0:
        return UNFINISHED
    return VALID if street == state[S_ROUND] else STREETS


@kernel(leaf=True)
def _paid(
    rules: Array,
    fields: Array,
    state: Array,
    last: int,
    hole: Array,
    board: Array,
    payoffs: Array,
    tables: Ranking,
    values: Array,
    due: Array,
) -> int:
    """0 when the payoffs are right, 1 when they may be all-in expectations, 2 when they are wrong."""
    n = rules[R_PLAYERS]
    showdown = is_showdown(rules, state)
    common = 0
    for r in range(state[S_ROUND] + 1):
        common += rules[R_BOARD + r]
    for p in range(n):
        values[p] = showdown_value(hole[p], rules[R_HOLE], board, common, tables) if showdown else 0
    settle(rules, state, values, due)
    right = True
    for p in range(n):
        if abs(payoffs[p] - due[p]) > TOLERANCE:
            right = False
    if right:
        return 0
    if not showdown or last >= state[S_ROUND]:
        return 2
    total = 0.0
    pot = 0
    for p in range(n):
        total += payoffs[p]
        pot += state[S_SPENT + p]
    if abs(total) > 0.01:
        return 2
    for p in range(n):
        spent = state[S_SPENT + p]
        if (state[S_FOLDED] >> p) & 1 != 0:
            if abs(payoffs[p] + spent) > TOLERANCE:
                return 2
        elif payoffs[p] < -spent - TOLERANCE or payoffs[p] > pot - spent + TOLERANCE:
            return 2
    return 1


@kernel(leaf=True)
def scan(
    data: Array,
    end: int,
    rules: Array,
    deck: int,
    seed: int,
    card_of: Array,
    tables: Ranking,
    ring: Array,
    ring_info: Array,
    counters: Array,
    hands: Array,
    holes: Array,
    boards: Array,
    paid: Array,
    places: Array,
    totals: Array,
    rejected: Array,
    work: Scratch,
) -> int:
    """Read lines from `counters[C_AT]` on; why it stopped. `rules[R_PLAYERS]` is 0 when no game is known."""
    fields, moves, sizes = work.fields, work.moves, work.sizes
    hole, board, payoffs = work.hole, work.board, work.payoffs
    state, values, due = work.state, work.values, work.due
    players = rules[R_PLAYERS]
    a = counters[C_AT]
    while a < end:
        b = a
        while b < end and data[b] != NEWLINE:
            b += 1
        code = VALID
        if b - a > MAX_LINE:
            code = TOO_LONG
        elif b == a or data[a] == HASH or data[a] == SEMICOLON or (b == a + 1 and data[a] == RETURN):
            if b - a > 11 and data[a + 2] == 110 and data[a + 6] == SLASH and data[a + 11] == SLASH:
                counters[C_AT] = a
                return AT_HEADER
            counters[C_COMMENTS] += 1
            counters[C_LINE] += 1
            a = b + 1
            continue
        elif _starts(data, a, b, 83, 67, 79, 82, 69):
            i = _numbers(data, a + 6, b, fields, payoffs)
            if i >= 0 and i < b and data[i] == COLON:
                i = _names(data, i + 1, b, fields)
                if i >= 0 and _tail(data, i, b):
                    counters[C_SCORES] += 1
                    counters[C_LINE] += 1
                    counters[C_SET] = -1
                    a = b + 1
                    continue
            code = GRAMMAR
        elif not _hand_line(data, a, b, deck, rules[R_HOLE], card_of, fields, moves, sizes, hole, board, payoffs):
            code = GRAMMAR
        elif players == 0:
            code = NO_GAME
        elif not (players == fields[F_HOLES] and players == fields[F_PAYOFFS] and players == fields[F_NAMES]):
            code = PLAYERS
        else:
            lineup = _remembered(data, fields[F_NAMED], fields[F_NAMED + 1], ring, ring_info)
            if lineup < 0:
                counters[C_AT] = a
                counters[C_NAMES] = fields[F_NAMED]
                counters[C_NAMES_END] = fields[F_NAMED + 1]
                return AT_LINEUP
            same = ring_info[lineup, 2]
            if same < 0:
                code = SAME_NAME
            elif counters[C_SET] >= 0 and counters[C_SET] != same:
                code = OTHER_NAMES
            elif fields[F_UNEVEN] != 0:
                code = HOLE_COUNT
            elif fields[F_FOREIGN] != 0:
                code = NOT_IN_DECK
            elif fields[F_TWICE] != 0:
                code = CARD_TWICE
            else:
                first = counters[C_ACTIONS]
                code = _play(rules, fields, moves, sizes, state, places[first:], totals[first:])
                if code == VALID:
                    if fields[F_STREETS] != state[S_ROUND]:
                        code = BOARD_COUNT
                    for r in range(1, state[S_ROUND] + 1):
                        if code == VALID and fields[F_BOARD + r] != rules[R_BOARD + r]:
                            code = BOARD_COUNT
                if code == VALID:
                    count = fields[F_TOKENS]
                    last = (places[first + count - 1] >> 2) & 3
                    judged = _paid(rules, fields, state, last, hole, board, payoffs, tables, values, due)
                    if judged == 2:
                        code = PAYOFF
                    else:
                        n = counters[C_HANDS]
                        common = 0
                        for r in range(state[S_ROUND] + 1):
                            common += rules[R_BOARD + r]
                        for p in range(players):
                            paid[n, p] = payoffs[p]
                            holes[n, p, 0] = hole[p, 0]
                            holes[n, p, 1] = hole[p, 1] if rules[R_HOLE] == 2 else NO_CARD
                        for i in range(5):
                            boards[n, i] = board[i] if i < common else NO_CARD
                        hand = hands[n]
                        hand.deal = deal_hash(rules, holes[n], seed, fields[F_HAND])
                        hand.first = first
                        hand.count = count
                        hand.line = counters[C_LINE]
                        hand.number = fields[F_HAND]
                        hand.lineup = ring_info[lineup, 1]
                        for j in range(2):
                            hand.betting[j] = fields[F_BETTING + j]
                            hand.cards[j] = fields[F_CARDS + j]
                            hand.payoffs[j] = fields[F_PAID + j]
                        hand.showdown = is_showdown(rules, state)
                        hand.expected = judged == 1
                        counters[C_ACTIONS] = first + count
                        counters[C_HANDS] = n + 1
                        counters[C_SET] = same
        if code != VALID:
            bad = rejected[counters[C_REJECTED]]
            bad.line = counters[C_LINE]
            bad.begin = a
            bad.end = b
            bad.code = code
            counters[C_REJECTED] += 1
        counters[C_LINE] += 1
        a = b + 1
    counters[C_AT] = a
    return DONE


@kernel(leaf=True)
def _remembered(data: Array, a: int, b: int, ring: Array, ring_info: Array) -> int:
    """The place in the ring of the line-up written in the bytes, -1 when it is not there."""
    for slot in range(RING):
        if ring_info[slot, 0] != b - a:
            continue
        same = True
        for i in range(b - a):
            if ring[slot, i] != data[a + i]:
                same = False
                break
        if same:
            return slot
    return -1
