"""The byte kernel: lines of a log in, checked hands out.

`scan` reads lines as `acpc`'s regular expressions describe them, plays each hand by the rules of `game`, and comes to
the verdict of `acpc.verdict` on every line, some hundred times faster. Hands go into arrays, everything else is counted
or listed with its reason.

The kernel stops at a header (another game or seed may begin) and at a line-up of players it does not remember; `hands`
answers and lets it go on.
"""

from __future__ import annotations

from typing import Any

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
from pipeline.cards import Ranking
from pipeline.ingest.grammar import (
    BLIND_MOVE,
    COLON,
    F_BETTING,
    F_BOARD,
    F_COMMON,
    F_EXPECTED,
    F_FOREIGN,
    F_HOLES,
    F_LINEUP,
    F_NAMED,
    F_NAMES,
    F_PAYOFFS,
    F_SHOWDOWN,
    F_STREETS,
    F_TOKENS,
    F_TWICE,
    F_UNEVEN,
    HASH,
    NEWLINE,
    RETURN,
    SCORE_LINE,
    SEMICOLON,
    SLASH,
    SLASH_MOVE,
    hand_line,
    names,
    numbers,
    prefix,
    tail,
)
from pipeline.ingest.hand_buffers import (
    C_ACTIONS,
    C_AT,
    C_COMMENTS,
    C_LINE,
    C_NAMES,
    C_NAMES_END,
    C_REJECTED,
    C_SCORES,
    C_SET,
    Found,
    Scratch,
    keep,
)
from pipeline.ingest.limit_automaton import Automaton, quick_hands
from pipeline.kernels import kernel
from pipeline.rules import (
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
    apply,
    is_legal,
    is_showdown,
    settle,
    showdown_value,
    start,
)

Array = npt.NDArray[Any]

REJECTED = np.dtype([("line", np.int32), ("begin", np.int32), ("end", np.int32), ("code", np.int32)])

# Why `scan` returns
DONE, AT_HEADER, AT_LINEUP = range(3)


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
        move = moves[t] + 0  # int64: the rules are compiled for one type
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
    state: Array,
    common: int,
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
def _judge(
    rules: Array, work: Scratch, ring_info: Array, match: int, places: Array, totals: Array, tables: Ranking
) -> int:
    """The verdict on a hand line whose grammar is right and whose line-up is known."""
    fields, state = work.fields, work.state
    same = ring_info[fields[F_LINEUP], 2]
    if same < 0:
        return SAME_NAME
    if match >= 0 and match != same:
        return OTHER_NAMES
    if fields[F_UNEVEN] != 0:
        return HOLE_COUNT
    if fields[F_FOREIGN] != 0:
        return NOT_IN_DECK
    if fields[F_TWICE] != 0:
        return CARD_TWICE
    code = _play(rules, fields, work.moves, work.sizes, state, places, totals)
    if code != VALID:
        return code
    if fields[F_STREETS] != state[S_ROUND]:
        return BOARD_COUNT
    common = rules[R_BOARD]
    for r in range(1, state[S_ROUND] + 1):
        common += rules[R_BOARD + r]
        if fields[F_BOARD + r] != rules[R_BOARD + r]:
            return BOARD_COUNT
    fields[F_COMMON] = common
    last = (places[fields[F_TOKENS] - 1] >> 2) & 3
    judged = _paid(rules, state, common, last, work.hole, work.board, work.payoffs, tables, work.values, work.due)
    fields[F_SHOWDOWN] = is_showdown(rules, state)
    fields[F_EXPECTED] = judged
    return PAYOFF if judged == 2 else VALID


@kernel(leaf=True)
def scan(
    data: Array,
    rules: Array,
    deck: int,
    seed: int,
    betting: Automaton,
    card_of: Array,
    tables: Ranking,
    ring: Array,
    ring_info: Array,
    counters: Array,
    found: Found,
    rejected: Array,
    work: Scratch,
) -> int:
    """Read lines from `counters[C_AT]` on; why it stopped. `rules[R_PLAYERS]` is 0 when no game is known."""
    end = data.shape[0]
    players = rules[R_PLAYERS]
    fields = work.fields
    a = counters[C_AT]
    while a < end:
        if betting.child.shape[0] > 0:
            a = quick_hands(data, a, rules, seed, betting, card_of, tables, ring, ring_info, counters, found, work)
            if a >= end:
                break
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
        elif prefix(data, a, b) == SCORE_LINE:
            code = GRAMMAR
            i = numbers(data, a + 6, b, fields, work.payoffs)
            if i >= 0 and i < b and data[i] == COLON:
                i = names(data, i + 1, b, fields)
                if i >= 0 and tail(data, i, b):
                    counters[C_SCORES] += 1
                    counters[C_LINE] += 1
                    counters[C_SET] = -1
                    a = b + 1
                    continue
        elif not hand_line(
            data,
            a,
            b,
            deck,
            rules[R_HOLE],
            card_of,
            fields,
            work.moves,
            work.sizes,
            work.hole,
            work.board,
            work.payoffs,
        ):
            code = GRAMMAR
        elif players == 0:
            code = NO_GAME
        elif not (players == fields[F_HOLES] and players == fields[F_PAYOFFS] and players == fields[F_NAMES]):
            code = PLAYERS
        else:
            fields[F_LINEUP] = _remembered(data, fields[F_NAMED], fields[F_NAMED + 1], ring, ring_info)
            if fields[F_LINEUP] < 0:
                counters[C_AT] = a
                counters[C_NAMES] = fields[F_NAMED]
                counters[C_NAMES_END] = fields[F_NAMED + 1]
                return AT_LINEUP
            first = counters[C_ACTIONS]
            code = _judge(rules, work, ring_info, counters[C_SET], found.places[first:], found.totals[first:], tables)
            if code == VALID:
                keep(rules, seed, work, ring_info, counters, found)
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
    for slot in range(ring.shape[0]):
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
