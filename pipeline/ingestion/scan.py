"""The byte kernel: lines of a log in, checked hands out.

`scan` reads lines as `acpc`'s regular expressions describe them, plays each hand by the rules of `game`, and comes to
the verdict of `acpc.verdict` on every line, some hundred times faster. Hands go into arrays, everything else is counted
or listed with its reason.

Who plays a match is said by its first hand line after the header (or after a score): a hand of others that comes later
is rejected. Lines without a header before them may name anybody.

The kernel stops at a header (another game or seed may begin) and when the table of line-ups is full; `hands` then reads
the header or makes a larger table, and calls the kernel again.
"""

from __future__ import annotations

import numpy as np

from pipeline.formats.acpc import (
    AFTER_END,
    BLINDS,
    BOARD_COUNT,
    CALL_SIZE,
    CARD_TWICE,
    EXPECTED_TOLERANCE,
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
    SIZE,
    STREETS,
    TOLERANCE,
    TOO_LONG,
    TOO_MANY,
    UNFINISHED,
    VALID,
)
from pipeline.ingestion.grammar import (
    BLIND_MOVE,
    COLON,
    HASH,
    NEWLINE,
    RETURN,
    SCORE_LINE,
    SEMICOLON,
    SLASH,
    SLASH_MOVE,
    hand_number,
    is_suffix,
    line_kind,
    names,
    numbers,
    read_hand,
)
from pipeline.ingestion.hand_buffers import (
    C_ACTIONS,
    C_AT,
    C_COMMENTS,
    C_LINE,
    C_NAMES,
    C_REJECTED,
    C_SCORES,
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
    NO_NAMES_YET,
    HandBuffer,
    KernelContext,
    LineScratch,
    LineupTable,
    add_lineup,
    find_lineup,
    keep,
)
from pipeline.ingestion.limit_automaton import quick_hands
from pipeline.poker.allin import expected_payoffs
from pipeline.poker.cards import Ranking
from pipeline.poker.rules import (
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
    start,
)
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

REJECTED = np.dtype(
    [
        *((name, np.int32) for name in ("line", "begin", "end", "code")),
        ("hand", np.int32),  # its number in the log, -1 for none
        ("number", np.int32, (2,)),  # where the hand's number or name in a hand history begins and ends
    ]
)

# Why `scan` returns
DONE, AT_HEADER, FULL = range(3)


@kernel(leaf=True)
def _posted(rules: Array, sizes: Array, count: int) -> bool:
    """Whether the first `count` sizes are the game's blinds, in any order."""
    posted = 0
    for p in range(rules[R_PLAYERS]):
        blind = rules[R_BLIND + p]
        if blind > 0:
            posted += 1
            balance = 0
            for q in range(rules[R_PLAYERS]):
                balance += 1 if rules[R_BLIND + q] == blind else 0
            for t in range(count):
                balance -= 1 if sizes[t] == blind else 0
            if balance != 0:
                return False
    return posted == count


@kernel(leaf=True)
def _play(rules: Array, work: LineScratch, places: Array, totals: Array) -> int:
    """Play the tokens; actions go to the front of `places` (action, street, actor packed) and `totals`."""
    fields, moves, sizes, state = work.fields, work.moves, work.sizes, work.state
    start(rules, state)
    tokens = fields[F_TOKENS]
    first = 0
    while first < tokens and moves[first] == BLIND_MOVE:
        first += 1
    if first > 0 and not _posted(rules, sizes, first):
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
def _paid(rules: Array, last: int, tables: Ranking, work: LineScratch) -> int:
    """0 when the payoffs are right, 1 when they are all-in expectations, 2 when they are wrong.

    `last` is the street of the last action.
    """
    state, payoffs, due = work.state, work.payoffs, work.due
    n = rules[R_PLAYERS]
    common = work.fields[F_COMMON]
    showdown = is_showdown(rules, state)
    for p in range(n):
        work.values[p] = showdown_value(work.hole[p], rules[R_HOLE], work.board, common, tables) if showdown else 0
    settle(rules, state, work.values, due)
    right = True
    for p in range(n):
        if abs(payoffs[p] - due[p]) > TOLERANCE:
            right = False
    if right:
        return 0
    if not showdown or last >= state[S_ROUND] or not _possible(rules, state, payoffs):
        return 2
    seen = 0
    for r in range(last + 1):
        seen += rules[R_BOARD + r]
    expected_payoffs(rules, state, work.hole, work.board, seen, tables, work.boards)
    for p in range(n):
        if abs(payoffs[p] - work.boards.mean[p]) > EXPECTED_TOLERANCE:
            return 2
    return 1


@kernel(leaf=True)
def _possible(rules: Array, state: Array, payoffs: Array) -> bool:
    """Whether payoffs add up to nothing, cost a folder its chips and win nobody more than there is."""
    total = 0.0
    pot = 0
    for p in range(rules[R_PLAYERS]):
        total += payoffs[p]
        pot += state[S_SPENT + p]
    if abs(total) > 0.01:
        return False
    for p in range(rules[R_PLAYERS]):
        spent = state[S_SPENT + p]
        if (state[S_FOLDED] >> p) & 1 != 0:
            if abs(payoffs[p] + spent) > TOLERANCE:
                return False
        elif payoffs[p] < -spent - TOLERANCE or payoffs[p] > pot - spent + TOLERANCE:
            return False
    return True


@kernel(leaf=True)
def _judge(rules: Array, work: LineScratch, places: Array, totals: Array, tables: Ranking) -> int:
    """The verdict on a hand line whose grammar is right, whoever plays."""
    fields, state = work.fields, work.state
    if fields[F_UNEVEN] != 0:
        return HOLE_COUNT
    if fields[F_FOREIGN] != 0:
        return NOT_IN_DECK
    if fields[F_TWICE] != 0:
        return CARD_TWICE
    code = _play(rules, work, places, totals)
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
    judged = _paid(rules, (places[fields[F_TOKENS] - 1] >> 2) & 3, tables, work)
    fields[F_SHOWDOWN] = is_showdown(rules, state)
    fields[F_EXPECTED] = judged
    return PAYOFF if judged == 2 else VALID


@kernel(leaf=True)
def _is_score(data: Array, a: int, b: int, work: LineScratch) -> bool:
    """Whether a line that begins as a score is one."""
    i = numbers(data, a + 6, b, work.fields, work.payoffs)
    if i < 0 or i >= b or data[i] != COLON:
        return False
    i = names(data, i + 1, b, work.fields)
    return i >= 0 and is_suffix(data, i, b)


@kernel(leaf=True)
def _hand(
    data: Array, game: KernelContext, lineups: LineupTable, counters: Array, found: HandBuffer, work: LineScratch
) -> int:
    """The verdict on a hand line whose grammar is right; a valid hand is kept. -1 when the line-ups need more room."""
    fields = work.fields
    players = game.rules[R_PLAYERS]
    if players == 0:
        return NO_GAME
    if not (players == fields[F_HOLES] and players == fields[F_PAYOFFS] and players == fields[F_NAMES]):
        return PLAYERS
    a, b = fields[F_NAMED], fields[F_NAMED + 1]
    lineup = find_lineup(data, a, b, lineups)
    if lineup < 0:
        lineup = add_lineup(data, a, b, -1 - lineup, lineups)
        if lineup < 0:
            return -1
    fields[F_LINEUP] = lineup
    if counters[C_NAMES] == NO_NAMES_YET:
        counters[C_NAMES] = lineups.sets[lineup]
    first = counters[C_ACTIONS]
    code = _judge(game.rules, work, found.places[first:], found.totals[first:], game.tables)
    if code == VALID:
        if counters[C_NAMES] >= 0 and counters[C_NAMES] != lineups.sets[lineup]:
            return OTHER_NAMES
        keep(game, work, counters, found)
    return code


@kernel(leaf=True)
def scan(
    data: Array,
    game: KernelContext,
    lineups: LineupTable,
    counters: Array,
    found: HandBuffer,
    rejected: Array,
    work: LineScratch,
) -> int:
    """Read lines from `counters[C_AT]` on; why it stopped."""
    end = data.shape[0]
    a = counters[C_AT]
    while a < end:
        if game.betting.child.shape[0] > 0:
            a = quick_hands(data, a, game, lineups, counters, found, work)
            if a >= end:
                break
        counters[C_AT] = a
        b = a
        while b < end and data[b] != NEWLINE:
            b += 1
        code = VALID
        if b - a > MAX_LINE:
            code = TOO_LONG
        elif b == a or (b == a + 1 and data[a] == RETURN):
            counters[C_COMMENTS] += 1
        elif line_kind(data, a, b) == SCORE_LINE and _is_score(data, a, b, work):
            counters[C_SCORES] += 1
            if counters[C_NAMES] >= 0:
                counters[C_NAMES] = NO_NAMES_YET
        elif line_kind(data, a, b) != SCORE_LINE and read_hand(data, a, b, game, work):
            code = _hand(data, game, lineups, counters, found, work)
            if code < 0:
                return FULL
        elif data[a] == HASH or data[a] == SEMICOLON:
            if b - a > 11 and data[a + 2] == 110 and data[a + 6] == SLASH and data[a + 11] == SLASH:
                return AT_HEADER
            counters[C_COMMENTS] += 1
        else:
            code = GRAMMAR
        if code != VALID:
            bad = rejected[counters[C_REJECTED]]
            bad.line = counters[C_LINE]
            bad.begin = a
            bad.end = b
            bad.code = code
            bad.hand = hand_number(data, a, b)
            bad.number[0] = 0
            bad.number[1] = 0
            counters[C_REJECTED] += 1
        counters[C_LINE] += 1
        a = b + 1
    counters[C_AT] = a
    return DONE
