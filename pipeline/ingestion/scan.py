"""The byte kernel: lines of a log in, checked hands and their decisions out.

`scan` reads lines as `acpc`'s regular expressions describe them and plays each hand by the rules of `poker`, to the
same verdict as those rules in Python, some hundred times faster. A hand is played once: the rows of its decisions are
written as its betting is checked, and stay if the hand is valid. Everything else is counted or listed with its reason.

Who plays a match is said by its first hand line after the header (or after a score): a hand of others that comes later
is rejected. Lines without a header before them may name anybody.

The kernel stops at a header (another game or seed may begin), when the table of line-ups is full, and when the buffer
may not hold another hand's decisions; `hands` then reads the header or makes room, and calls it again.

The functions of the grammar take the bytes and a place, and return the place after what they have read, or -1.
"""

from __future__ import annotations

import numpy as np

from pipeline.dataset.decisions import record_action, record_cards
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
from pipeline.formats.ascii import (
    BAR,
    BLIND,
    COLON,
    HASH,
    MINUS,
    NEWLINE,
    ONE,
    POINT,
    RETURN,
    SEMICOLON,
    SLASH,
    SPACE,
    STREET_END,
    ZERO,
    read_betting,
    read_digits,
)
from pipeline.ingestion.hand_buffers import (
    NO_NAMES_YET,
    HandBuffer,
    KernelContext,
    LineScratch,
    LineupTable,
    add_lineup,
    append_hand,
    find_lineup,
)
from pipeline.poker.allin import expected_payoffs
from pipeline.poker.cards import Ranking
from pipeline.poker.rules import (
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
    is_legal,
    is_showdown,
    settle,
    start,
)
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

STATE_LINE, SCORE_LINE = 1, 2

REJECTED = np.dtype(
    [
        *((name, np.int32) for name in ("line", "begin", "end", "code")),
        ("hand", np.int32),  # its number in the log, -1 for none
        ("number", np.int32, (2,)),  # where the hand's number or name in a hand history begins and ends
    ]
)

DONE, AT_HEADER, LINEUPS_FULL, BUFFER_FULL = range(4)
"""why `scan` returns"""


def card_codes() -> Array:
    """Return per byte 4 * rank for a rank's letter, 64 + suit for a suit's, -1 for any other."""
    codes = np.full(256, -1, dtype=np.int64)
    for rank, letter in enumerate("23456789TJQKA"):
        codes[ord(letter)] = 4 * rank
    for suit, letter in enumerate("cdhs"):
        codes[ord(letter)] = 64 + suit
    return codes


# Grammar


@kernel(leaf=True)
def _read_number(data: Array, i: int, end: int) -> tuple[float, int]:
    """Read a number of chips; return it and the place after it, -1 when there is none."""
    negative = i < end and data[i] == MINUS
    if negative:
        i += 1
    whole, after = read_digits(data, i, end)
    if not i < after <= i + 12:
        return 0.0, -1
    value = float(whole)
    if after < end and data[after] == POINT:
        i = after + 1
        part, after = read_digits(data, i, end)
        if after <= i:
            return 0.0, -1
        value += part / 10.0 ** (after - i)  # perhaps a bit off: payoffs are compared with a tolerance
    return (-value if negative else value), after


@kernel(leaf=True)
def _read_payoffs(data: Array, i: int, end: int, work: LineScratch) -> int:
    """Read two or more numbers between bars into `work.payoffs`."""
    count = 0
    while True:
        value, i = _read_number(data, i, end)
        if i < 0:
            return -1
        if count < MAX_PLAYERS:  # more are counted only: the line will be rejected for its number of players
            work.payoffs[count] = value
        count += 1
        if i >= end or data[i] != BAR:
            break
        i += 1
    work.line[0].payoffs = count
    return i if count >= 2 else -1


@kernel(leaf=True)
def _read_names(data: Array, i: int, end: int, work: LineScratch) -> int:
    """Read two or more names between bars."""
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
    work.line[0].names = count
    return i if count >= 2 else -1


@kernel(leaf=True)
def _is_suffix(data: Array, i: int, end: int) -> bool:
    """Return whether nothing but the suffixes of real logs is left."""
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
        if i < end and data[i] == POINT:
            _, after = read_digits(data, i + 1, end)
            if not i + 1 < after <= i + 13:
                return False
            i = after
    return i == end


@kernel(leaf=True)
def _read_cards(data: Array, i: int, end: int, context: KernelContext, work: LineScratch) -> int:
    """Read the cards; what the game cannot have is noted in `work.line`."""
    line, hole, board, card_of = work.line[0], work.hole, work.board, context.card_of
    line.wrong_holes = line.foreign = line.repeated = False
    seen = 0
    holes = 0
    street = 0
    on_board = 0
    in_group = 0  # cards since the last bar or slash
    while True:
        if i + 1 >= end:
            return -1
        rank = card_of[data[i]]
        suit = card_of[data[i + 1]]
        if rank < 0 or rank >= 64 or suit < 64:  # see `card_codes`: ranks and suits share one table
            return -1
        card = rank + suit - 64
        i += 2
        bit = 1 << card
        # faults of cards are noted, not returned: the grammar of the whole line is judged before them
        if context.deck & bit == 0:
            line.foreign = True
        if seen & bit != 0:
            line.repeated = True
        seen |= bit
        if street == 0:
            if in_group < 2 and holes < MAX_PLAYERS:
                hole[holes, in_group] = card
        elif on_board < 5:
            board[on_board] = card
        if street > 0:
            on_board += 1
        in_group += 1
        after = data[i] if i < end else 0
        if after in (BAR, SLASH):
            if after == BAR and street > 0:
                return -1
            i += 1
        elif card_of[after] >= 0:
            continue
        if street == 0:
            holes += 1
            if in_group != context.rules[R_HOLE]:
                line.wrong_holes = True
        elif street < MAX_ROUNDS:
            line.board_cards[street] = in_group
        if after == SLASH:
            street += 1
        elif after != BAR:
            break
        in_group = 0
    line.holes = holes
    line.streets = street
    return i


@kernel(leaf=True)
def _read_hand(data: Array, a: int, b: int, context: KernelContext, work: LineScratch) -> bool:
    """Read a hand line of either form; return whether its grammar is right."""
    line = work.line[0]
    line.names_first = _line_kind(data, a, b) != STATE_LINE
    i = a + 6
    if line.names_first:
        line.names_span[0] = a
        i = _read_names(data, a, b, work)
        if i < 0 or i >= b or data[i] != COLON:
            return False
        line.names_span[1] = i
        i += 1
    number, after = read_digits(data, i, b)
    if not i < after <= i + 9 or after >= b or data[after] != COLON:
        return False
    line.number = number
    line.betting_span[0] = after + 1
    line.count, i = read_betting(data, after + 1, b, line.names_first, work.moves, work.sizes)
    if i < 0 or i >= b:
        return False
    line.betting_span[1] = i
    line.cards_span[0] = i + 1
    i = _read_cards(data, i + 1, b, context, work)
    if i < 0 or i >= b or data[i] != COLON:
        return False
    line.cards_span[1] = i
    line.payoffs_span[0] = i + 1
    i = _read_payoffs(data, i + 1, b, work)
    if i < 0:
        return False
    line.payoffs_span[1] = i
    if not line.names_first:
        if i >= b or data[i] != COLON:
            return False
        line.names_span[0] = i + 1
        i = _read_names(data, i + 1, b, work)
        if i < 0:
            return False
        line.names_span[1] = i
    return _is_suffix(data, i, b)


@kernel(leaf=True)
def _line_kind(data: Array, a: int, b: int) -> int:
    """Return STATE_LINE or SCORE_LINE if a line begins so, else 0."""
    if b - a <= 6 or data[a] != 83 or data[a + 4] != 69 or data[a + 5] != COLON:  # S...E:
        return 0
    if data[a + 1] == 84 and data[a + 2] == 65 and data[a + 3] == 84:
        return STATE_LINE
    if data[a + 1] == 67 and data[a + 2] == 79 and data[a + 3] == 82:
        return SCORE_LINE
    return 0


@kernel(leaf=True)
def _hand_number(data: Array, a: int, b: int) -> int:
    """Return the hand's number in a line of either form, whatever else is wrong with it; -1 where there is none."""
    if _line_kind(data, a, b) == SCORE_LINE:
        return -1
    i = a
    while i < b and data[i] != COLON:  # after STATE, or after the names
        i += 1
    number, after = read_digits(data, i + 1, b)
    return number if i + 1 < after <= i + 10 and after < b and data[after] == COLON else -1


# Verdicts


@kernel(leaf=True)
def _posted(rules: Array, sizes: Array, count: int) -> bool:
    """Return whether the first `count` sizes are the game's blinds, in any order."""
    posted = 0
    # the same multiset: each blind occurs as often among the sizes, and nothing else does
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
def _play(rules: Array, work: LineScratch, buffer: HandBuffer, first: int) -> int:
    """Play the tokens; return the verdict on the betting.

    Its decisions go to the buffer from `first` on, all but the cards of their rows.
    """
    line, moves, sizes, state = work.line[0], work.moves, work.sizes, work.state
    rows, labels = buffer.rows[first:], buffer.labels[first:]
    start(rules, state)
    tokens = line.count
    begin = 0
    while begin < tokens and moves[begin] == BLIND:  # `start` has put them in already
        begin += 1
    if begin > 0 and not _posted(rules, sizes, begin):
        return BLINDS
    nolimit = rules[R_NOLIMIT] != 0
    street = 0
    count = 0
    for t in range(begin, tokens):
        move = moves[t] + 0  # int64: the rules are compiled for one type
        if move == STREET_END:
            street += 1
            if street > state[S_ROUND]:  # the rules end streets; a `/` may only confirm it
                return STREETS
            continue
        if state[S_FINISHED] != 0:
            return AFTER_END
        if street < state[S_ROUND]:
            return STREETS
        size = sizes[t]
        # logs of 2009 write totals in limit games too
        if move == RAISE and (size >= 0) != nolimit and not (line.names_first and not nolimit):
            return SIZE
        if not is_legal(rules, state, move, size):
            return ILLEGAL
        if count == MOST_ACTIONS:
            return TOO_MANY
        actor = state[S_ACTOR]
        buffer.places[first + count] = move | (state[S_ROUND] << 2) | (actor << 4)
        record_action(rules, state, move, size, rows, labels, count)
        buffer.totals[first + count] = state[S_SPENT + actor] if move == RAISE else 0
        count += 1
        if size >= 0 and state[S_SPENT + actor] != size:  # the rules decide the total of a call or limit raise
            return CALL_SIZE
    line.count = count
    if state[S_FINISHED] == 0:
        return UNFINISHED
    return VALID if street == state[S_ROUND] else STREETS


@kernel(leaf=True)
def _check_payoffs(rules: Array, last: int, tables: Ranking, work: LineScratch) -> int:
    """Return 0 when the payoffs are right, 1 when they are all-in expectations, 2 when they are wrong.

    `last` is the street of the last action.
    """
    state, payoffs, due = work.state, work.payoffs, work.due
    n = rules[R_PLAYERS]
    common = work.line[0].common
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
    # The exact expectation enumerates all boards to come, so what no expectation can be is refused before it
    if not showdown or last >= state[S_ROUND] or not _possible(rules, state, payoffs):
        return 2
    seen = 0  # board cards open when the betting ended
    for r in range(last + 1):
        seen += rules[R_BOARD + r]
    expected_payoffs(rules, state, work.hole, work.board, seen, tables, work.boards)
    for p in range(n):
        if abs(payoffs[p] - work.boards.mean[p]) > EXPECTED_TOLERANCE:
            return 2
    return 1


@kernel(leaf=True)
def _possible(rules: Array, state: Array, payoffs: Array) -> bool:
    """Return whether payoffs add up to nothing, cost a folder its chips and win nobody more than there is."""
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
def _judge(context: KernelContext, work: LineScratch, buffer: HandBuffer, first: int) -> int:
    """Return the verdict on a hand line whose grammar is right, whoever plays."""
    rules, line, state = context.rules, work.line[0], work.state
    if line.wrong_holes:
        return HOLE_COUNT
    if line.foreign:
        return NOT_IN_DECK
    if line.repeated:
        return CARD_TWICE
    code = _play(rules, work, buffer, first)
    if code != VALID:
        return code
    if line.streets != state[S_ROUND]:
        return BOARD_COUNT
    common = rules[R_BOARD]
    for r in range(1, state[S_ROUND] + 1):
        common += rules[R_BOARD + r]
        if line.board_cards[r] != rules[R_BOARD + r]:
            return BOARD_COUNT
    line.common = common
    judged = _check_payoffs(rules, (buffer.places[first + line.count - 1] >> 2) & 3, context.tables, work)
    line.showdown = is_showdown(rules, state)
    line.expected = judged == 1
    return PAYOFF if judged == 2 else VALID


@kernel(leaf=True)
def _is_score(data: Array, a: int, b: int, work: LineScratch) -> bool:
    """Return whether a line that begins as a score is one."""
    i = _read_payoffs(data, a + 6, b, work)
    if i < 0 or i >= b or data[i] != COLON:
        return False
    i = _read_names(data, i + 1, b, work)
    return i >= 0 and _is_suffix(data, i, b)


@kernel(leaf=True)
def _check_hand(
    data: Array, context: KernelContext, lineups: LineupTable, state: Array, buffer: HandBuffer, work: LineScratch
) -> int:
    """Return the verdict on a hand line whose grammar is right, and keep a valid hand; -1 if line-ups lack room."""
    line, progress = work.line[0], state[0]
    players = context.rules[R_PLAYERS]
    if players == 0:
        return NO_GAME
    if not (players == line.holes and players == line.payoffs and players == line.names):
        return PLAYERS
    a, b = line.names_span[0], line.names_span[1]
    lineup = find_lineup(data, a, b, lineups)
    if lineup < 0:
        lineup = add_lineup(data, a, b, -1 - lineup, lineups)
        if lineup < 0:
            return -1
    line.lineup = lineup
    if progress.names == NO_NAMES_YET:
        progress.names = lineups.sets[lineup]
    code = _judge(context, work, buffer, progress.actions)
    if code == VALID:
        if progress.names >= 0 and progress.names != lineups.sets[lineup]:
            return OTHER_NAMES
        n = progress.hands
        append_hand(context, work, state, buffer)
        hole, board, rows = buffer.holes[n], buffer.boards[n], buffer.rows[buffer.records[n].first :]
        record_cards(context.rules, line.count, hole, board, context.tables, rows)
    return code


@kernel(leaf=True)
def scan(
    data: Array,
    context: KernelContext,
    lineups: LineupTable,
    state: Array,
    buffer: HandBuffer,
    rejected: Array,
    work: LineScratch,
) -> int:
    """Read lines from `state[0].place` on (SCAN_STATE); return why it stopped."""
    progress = state[0]
    end = data.shape[0]
    a = progress.place
    while a < end:
        progress.place = a
        # checked before the line, whatever it is: rows are written while the betting is still being judged
        if progress.actions + MOST_ACTIONS > buffer.rows.shape[0]:
            return BUFFER_FULL
        b = a
        while b < end and data[b] != NEWLINE:
            b += 1
        code = VALID
        kind = _line_kind(data, a, b)
        if b - a > MAX_LINE:
            code = TOO_LONG
        elif b == a or (b == a + 1 and data[a] == RETURN):
            progress.comments += 1
        elif kind == SCORE_LINE and _is_score(data, a, b, work):
            progress.scores += 1
            if progress.names >= 0:  # a score ends the match: the next may be played by others
                progress.names = NO_NAMES_YET
        elif kind != SCORE_LINE and _read_hand(data, a, b, context, work):
            code = _check_hand(data, context, lineups, state, buffer, work)
            if code < 0:
                return LINEUPS_FULL
        elif data[a] == HASH or data[a] == SEMICOLON:
            # `# name/game/...` as far as few bytes tell; Python reads it, since a match has one in thousands of lines
            if b - a > 11 and data[a + 2] == 110 and data[a + 6] == SLASH and data[a + 11] == SLASH:
                return AT_HEADER
            progress.comments += 1
        else:
            code = GRAMMAR
        if code != VALID:
            bad = rejected[progress.rejected]
            bad.line = progress.line
            bad.begin = a
            bad.end = b
            bad.code = code
            bad.hand = _hand_number(data, a, b)
            bad.number[0] = 0
            bad.number[1] = 0
            progress.rejected += 1
        progress.line += 1
        a = b + 1
    progress.place = a
    return DONE
