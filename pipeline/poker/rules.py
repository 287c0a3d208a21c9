"""The betting rules, once, as kernels over two small int64 vectors: a game's rules (`R_*`) and a hand's state (`S_*`).

Ingest, arena, client, dealer and solvers all use these same functions. There are two rule sets, and `R_RULE_SET` names
the one that a vector is for. `ACPC` is protocol 2.0.0 of the competition: calling is always valid; folding only when
there is something to call; a raise puts the player all-in or raises by at least the big blind and the largest raise of
the round; a round ends when all players with chips have called; no raise when no other player has chips left to call
it.

`PHH` is what the replayers of hand history files do (people's games, two to ten players). It differs in five points:
folding is always valid; the smallest raise is the larger of the minimum bet (`R_RAISE` of the round) and the largest
raise of the round; an all-in raise below it does not let players raise again who have acted since the last full raise,
unless several such raises add up to a full one; a player whose raise no opponent could call is not asked before the
flop; and there are antes (`R_ANTE`), which are chips of the pot but no bets: `R_STACK` and all amounts of the state
leave them out.

Amounts are totals put in over the whole hand. Every distinct amount spent makes a pot of its own; ties split it. Antes
are a pot of their own for everybody still in the hand, or, where they are trimmed (`R_TRIMMED`), the first chips spent.

No-limit raises are classed by size for learning (`LABELS_NOLIMIT`), by x = (raise_to - highest bet) / (pot after
calling): `s`mall, `h`alf, `p`ot and `o`ver end where `CLASS_LIMITS` says, and `a` is all-in whatever its size.

`pipeline.poker.showdown` says what cards are worth at a showdown.
"""

from __future__ import annotations

from pipeline.poker.cards import Ranking
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

MAX_PLAYERS = 13
MAX_ROUNDS = 4
MOST_CHIPS = 2**31 - 1
"""the largest amount in a game: datasets and ACPC's own programs store totals of a hand in 32 bits"""
NO_STACK = MOST_CHIPS
"""the stack where a game file names none"""

FOLD, CALL, RAISE = 0, 1, 2
LABELS_LIMIT = "fcr"
LABELS_NOLIMIT = "fcshpoa"
ALL_IN = LABELS_NOLIMIT.index("a")
CLASS_LIMITS = ((2, 5), (3, 4), (3, 2))
"""upper ends of the classes `s`, `h` and `p` of raises, as fractions of the pot after calling"""
CLASS_SIZES = (1, 2, 4, 8)
"""sizes that raises of the classes `s`, `h`, `p` and `o` stand for, in quarters of the pot after calling"""

# The rules vector
R_NOLIMIT, R_PLAYERS, R_ROUNDS, R_SUITS, R_RANKS, R_HOLE = range(6)
R_BOARD, R_RAISE, R_MAX_RAISES, R_FIRST = 6, 10, 14, 18
R_BLIND, R_STACK = 22, 22 + MAX_PLAYERS
R_RULE_SET, R_TRIMMED, R_DEAD = range(R_STACK + MAX_PLAYERS, R_STACK + MAX_PLAYERS + 3)
R_ANTE = R_DEAD + 1
R_BIG_BLIND = R_ANTE + MAX_PLAYERS
RULES_SIZE = R_BIG_BLIND + 1
"""`R_DEAD` is the sum of the antes, `R_BIG_BLIND` the chips that amounts are compared with"""

ACPC, PHH = 0, 1
"""the rule sets"""

# The state vector. WAITING has a bit for each player who must still act in this round; AGGRESSOR is the position that
# raised last in this hand, -1 before the first raise. Only PHH uses the three after it: LAST_RAISE is the largest raise
# of the round, SHORT the sum of all-in raises below it since the last full raise, ACTED a bit for each player who has
# acted since then.
S_ROUND, S_ACTOR, S_FINISHED, S_RAISES, S_WAITING, S_MAX_SPENT, S_MIN_RAISE_TO, S_FOLDED, S_ACTIONS = range(9)
S_AGGRESSOR, S_LAST_RAISE, S_SHORT, S_ACTED = range(9, 13)
S_SPENT = 13
STATE_SIZE = S_SPENT + MAX_PLAYERS


@kernel(leaf=True)
def start(rules: Array, state: Array) -> None:
    """Put the blinds in and name the first actor."""
    for i in range(STATE_SIZE):
        state[i] = 0
    state[S_AGGRESSOR] = -1
    for p in range(rules[R_PLAYERS]):
        spent = min(rules[R_BLIND + p], rules[R_STACK + p])
        state[S_SPENT + p] = spent
        state[S_MAX_SPENT] = max(state[S_MAX_SPENT], spent)
        if spent < rules[R_STACK + p]:
            state[S_WAITING] |= 1 << p
    if rules[R_RULE_SET] == ACPC:
        state[S_MIN_RAISE_TO] = max(1, 2 * state[S_MAX_SPENT])
    else:
        state[S_MIN_RAISE_TO] = state[S_MAX_SPENT] + rules[R_RAISE]
        _excuse(rules, state)
    state[S_ACTOR] = _next(rules, state, rules[R_FIRST] - 1)


@kernel(leaf=True)
def _excuse(rules: Array, state: Array) -> None:
    """Skip players before the flop whose raise no opponent could call (PHH); end the betting if all are skipped."""
    n = rules[R_PLAYERS]
    largest, second = 0, 0
    for p in range(n):
        stack = rules[R_STACK + p]
        if stack > largest:
            largest, second = stack, largest
        elif stack > second:
            second = stack
    waiting, asked = 0, 0
    for p in range(n):
        if (state[S_WAITING] >> p) & 1 != 0 and second > state[S_SPENT + p]:
            waiting |= 1 << p
            asked += 1
    if asked == 1:
        for p in range(n):
            if waiting == 1 << p and state[S_SPENT + p] >= state[S_MAX_SPENT]:
                waiting = 0
    state[S_WAITING] = waiting
    if waiting == 0:
        state[S_FINISHED] = 1
        state[S_ROUND] = rules[R_ROUNDS] - 1


@kernel(leaf=True)
def _next(rules: Array, state: Array, after: int) -> int:
    """Return the next player after `after` who must still act; -1 if there is none."""
    n = rules[R_PLAYERS]
    for step in range(1, n + 1):
        p = (after + step) % n
        if (state[S_WAITING] >> p) & 1 != 0:
            return p
    return -1


@kernel(leaf=True)
def count_active(rules: Array, state: Array) -> int:
    """Count the players who have chips and have not folded."""
    count = 0
    for p in range(rules[R_PLAYERS]):
        if (state[S_FOLDED] >> p) & 1 == 0 and state[S_SPENT + p] < rules[R_STACK + p]:
            count += 1
    return count


@kernel(leaf=True)
def to_call(rules: Array, state: Array) -> int:
    """Return the chips that the actor must add to call."""
    p = state[S_ACTOR]
    return min(state[S_MAX_SPENT], rules[R_STACK + p]) - state[S_SPENT + p]


@kernel(leaf=True)
def pot(rules: Array, state: Array) -> int:
    """Return all chips put in so far, antes included."""
    total = rules[R_DEAD]
    for p in range(rules[R_PLAYERS]):
        total += state[S_SPENT + p]
    return total


@kernel(leaf=True)
def can_fold(rules: Array, state: Array) -> bool:
    """Return whether the actor may fold: under ACPC rules it must face a bet."""
    return rules[R_RULE_SET] != ACPC or to_call(rules, state) > 0


@kernel(leaf=True)
def raise_range(rules: Array, state: Array) -> tuple[int, int]:
    """Return the smallest and largest total the actor may raise to; (0, 0) when no raise is legal."""
    if rules[R_RULE_SET] != ACPC:
        return _phh_raise_range(rules, state)
    p = state[S_ACTOR]
    if state[S_RAISES] >= rules[R_MAX_RAISES + state[S_ROUND]] or count_active(rules, state) <= 1:
        return 0, 0
    stack = rules[R_STACK + p]
    if rules[R_NOLIMIT] == 0:
        size = min(state[S_MAX_SPENT] + rules[R_RAISE + state[S_ROUND]], stack)
        return size, size
    if state[S_MIN_RAISE_TO] > stack:
        if state[S_MAX_SPENT] >= stack:
            return 0, 0
        return stack, stack
    return state[S_MIN_RAISE_TO], stack


@kernel(leaf=True)
def _phh_raise_range(rules: Array, state: Array) -> tuple[int, int]:
    """Return `raise_range` by the rules of hand history files."""
    p = state[S_ACTOR]
    stack = rules[R_STACK + p]
    highest = state[S_MAX_SPENT]
    if state[S_RAISES] >= rules[R_MAX_RAISES + state[S_ROUND]] or stack <= highest:
        return 0, 0
    if highest - state[S_SPENT + p] < state[S_LAST_RAISE]:
        return 0, 0
    if 0 < state[S_SHORT] < state[S_LAST_RAISE] and (state[S_ACTED] >> p) & 1 != 0:
        return 0, 0
    for q in range(rules[R_PLAYERS]):
        if q != p and (state[S_FOLDED] >> q) & 1 == 0 and rules[R_STACK + q] > highest:
            low = min(stack, state[S_MIN_RAISE_TO])
            return low, stack if rules[R_NOLIMIT] != 0 else low
    return 0, 0


@kernel(leaf=True)
def is_legal(rules: Array, state: Array, action: int, size: int) -> bool:
    """Return whether the actor may take the action; `size` is a raise's total, ignored in limit games."""
    if state[S_FINISHED] != 0:
        return False
    if action == FOLD:
        return can_fold(rules, state)
    if action == CALL:
        return True
    low, high = raise_range(rules, state)
    if high == 0:
        return False
    return rules[R_NOLIMIT] == 0 or low <= size <= high


@kernel(leaf=True)
def _raise(rules: Array, state: Array, size: int) -> None:
    """Put in a raise of the actor and set the next smallest raise."""
    p = state[S_ACTOR]
    step = rules[R_RAISE + state[S_ROUND]]
    stack = rules[R_STACK + p]
    if rules[R_RULE_SET] != ACPC:
        total = size if rules[R_NOLIMIT] != 0 else min(state[S_MIN_RAISE_TO], stack)
        by = total - state[S_MAX_SPENT]
        if by >= state[S_LAST_RAISE]:
            state[S_ACTED] = 0
            state[S_LAST_RAISE] = by
        state[S_SHORT] = state[S_SHORT] + by if total == stack else 0
        if state[S_SHORT] >= state[S_LAST_RAISE]:
            state[S_SHORT] = 0
        state[S_MIN_RAISE_TO] = total + max(state[S_LAST_RAISE], step)
    elif rules[R_NOLIMIT] != 0:
        total = size
        # the next raise is by at least as much as this one
        state[S_MIN_RAISE_TO] = max(state[S_MIN_RAISE_TO], 2 * size - state[S_MAX_SPENT])
    else:
        total = min(state[S_MAX_SPENT] + step, stack)
    state[S_MAX_SPENT] = total
    state[S_SPENT + p] = total
    state[S_RAISES] += 1
    state[S_AGGRESSOR] = p


@kernel(leaf=True)
def apply(rules: Array, state: Array, action: int, size: int) -> None:
    """Take a legal action, in place."""
    p = state[S_ACTOR]
    state[S_ACTIONS] += 1
    if action == FOLD:
        state[S_FOLDED] |= 1 << p
    elif action == CALL:
        state[S_SPENT + p] = min(state[S_MAX_SPENT], rules[R_STACK + p])
    else:
        _raise(rules, state, size)
    state[S_ACTED] |= 1 << p

    n = rules[R_PLAYERS]
    remaining, active, with_chips = 0, 0, 0
    for q in range(n):
        if (state[S_FOLDED] >> q) & 1 == 0:
            remaining += 1
            if state[S_SPENT + q] < rules[R_STACK + q]:
                active += 1
                with_chips |= 1 << q
    # a raise asks everybody with chips again; other actions ask only those not asked yet
    waiting = (with_chips if action == RAISE else state[S_WAITING]) & ~(1 << p)
    if remaining <= 1:
        state[S_FINISHED] = 1
    elif waiting == 0:
        if active <= 1:
            state[S_FINISHED] = 1
            state[S_ROUND] = rules[R_ROUNDS] - 1
        elif state[S_ROUND] + 1 >= rules[R_ROUNDS]:
            state[S_FINISHED] = 1
        else:
            _next_round(rules, state, with_chips)
            return
    state[S_WAITING] = waiting
    state[S_ACTOR] = -1 if state[S_FINISHED] != 0 else _next(rules, state, p)


@kernel(leaf=True)
def _next_round(rules: Array, state: Array, waiting: int) -> None:
    """Begin the next round, in which the players of the mask `waiting` act."""
    r = state[S_ROUND] + 1
    state[S_ROUND] = r
    state[S_RAISES] = 0
    state[S_WAITING] = waiting
    state[S_LAST_RAISE] = 0
    state[S_SHORT] = 0
    state[S_ACTED] = 0
    smallest = rules[R_RAISE + r]
    if rules[R_RULE_SET] == ACPC:
        smallest = 1
        for q in range(rules[R_PLAYERS]):
            smallest = max(smallest, rules[R_BLIND + q])
    state[S_MIN_RAISE_TO] = state[S_MAX_SPENT] + smallest
    state[S_ACTOR] = _next(rules, state, rules[R_FIRST + r] - 1)


@kernel(leaf=True)
def is_showdown(rules: Array, state: Array) -> bool:
    """Return whether a finished hand was not decided by folds."""
    remaining = 0
    for p in range(rules[R_PLAYERS]):
        remaining += 1 - ((state[S_FOLDED] >> p) & 1)
    return remaining > 1


@kernel(leaf=True)
def _called(rules: Array, state: Array) -> int:
    """Return the second largest amount bet: chips beyond it come back before unequal antes make pots."""
    largest, second = 0, 0
    for p in range(rules[R_PLAYERS]):
        spent = state[S_SPENT + p]
        if spent > largest:
            largest, second = spent, largest
        elif spent > second:
            second = spent
    return second


@kernel(leaf=True)
def settle(rules: Array, state: Array, values: Array, result: Array) -> None:
    """Write the net chips of each player of a finished hand to `result`; `values` rank the hands (higher wins).

    Chips that a player who folded put in beyond everybody left go to the last pot.
    """
    n = rules[R_PLAYERS]
    trimmed = rules[R_TRIMMED]
    called = _called(rules, state) if trimmed != 0 else state[S_MAX_SPENT]
    for p in range(n):
        result[p] = -(min(state[S_SPENT + p], called) + rules[R_ANTE + p])
    below = -1 if rules[R_DEAD] != 0 and trimmed == 0 else 0
    # every distinct amount spent closes a layer of the pot, which the best of those who paid all of it share
    while True:
        level = -1
        highest = 0
        best = values[0]
        for p in range(n):
            put = min(state[S_SPENT + p], called) + trimmed * rules[R_ANTE + p]
            if (state[S_FOLDED] >> p) & 1 == 0 and put > below:
                best = values[p] if level < 0 else max(best, values[p])
                level = put if level < 0 else min(level, put)
                highest = max(highest, put)
        if level < 0:
            return
        layer = 0
        winners = 0
        if below < 0:
            # antes that are not trimmed are the first layer, for everybody who is still in
            layer, level = rules[R_DEAD], 0
        for p in range(n):
            put = min(state[S_SPENT + p], called) + trimmed * rules[R_ANTE + p]
            if below >= 0:
                # the last layer also takes what folded players put in beyond everybody left
                layer += max(0, (min(put, level) if level < highest else put) - below)
            if (state[S_FOLDED] >> p) & 1 == 0 and put >= level and values[p] == best:
                winners += 1
        for p in range(n):
            put = min(state[S_SPENT + p], called) + trimmed * rules[R_ANTE + p]
            if (state[S_FOLDED] >> p) & 1 == 0 and put >= level and values[p] == best:
                result[p] += layer / winners
        below = level


@kernel(leaf=True)
def showdown(rules: Array, hole: Array, board: Array, tables: Ranking, values: Array) -> None:
    """Write the value of each player's `hole` cards (players, 2) with the whole `board` to `values`; higher wins."""
    shared = 0
    for r in range(rules[R_ROUNDS]):
        shared += rules[R_BOARD + r]
    for p in range(rules[R_PLAYERS]):
        values[p] = showdown_value(hole[p], rules[R_HOLE], board, shared, tables)


@kernel(leaf=True)
def pay(rules: Array, state: Array, hole: Array, board: Array, tables: Ranking, values: Array, result: Array) -> None:
    """Write the net chips of each player of a finished hand whose cards are all known; `values` is a buffer."""
    if is_showdown(rules, state):
        showdown(rules, hole, board, tables, values)
    settle(rules, state, values, result)


@kernel(leaf=True)
def class_start(after: int, label: int) -> int:
    """Return the smallest raise over the highest bet of a class (`s` to `o`); `after` is the pot after calling."""
    if label == RAISE:
        return 0
    numerator, denominator = CLASS_LIMITS[label - RAISE - 1]
    return (numerator * after + denominator - 1) // denominator


@kernel(leaf=True)
def _class_range(rules: Array, state: Array, label: int) -> tuple[int, int]:
    """Return the smallest and largest legal total of a raise label (from 2 on); (0, 0) when there are none."""
    low, high = raise_range(rules, state)
    if high == 0 or rules[R_NOLIMIT] == 0:
        return low, high
    stack = rules[R_STACK + state[S_ACTOR]]
    if label == ALL_IN:
        return (stack, stack) if high == stack != NO_STACK else (0, 0)
    base = state[S_MAX_SPENT]
    after = pot(rules, state) + to_call(rules, state)
    first = class_start(after, label)
    last = class_start(after, label + 1) - 1 if label + 1 < ALL_IN else stack
    first = max(base + first, low)
    last = min(base + last, high, stack - 1)
    return (first, last) if first <= last else (0, 0)


@kernel(leaf=True)
def legal_labels(rules: Array, state: Array) -> int:
    """Return a bit per label of the game (`LABELS_LIMIT` or `LABELS_NOLIMIT`) that the actor may choose."""
    bits = 2 | (1 if can_fold(rules, state) else 0)
    last = 7 if rules[R_NOLIMIT] != 0 else 3
    for label in range(2, last):
        if _class_range(rules, state, label)[1] > 0:
            bits |= 1 << label
    return bits


@kernel(leaf=True)
def label_of(rules: Array, state: Array, action: int, size: int) -> int:
    """Return the label of an action about to be taken."""
    if action != RAISE or rules[R_NOLIMIT] == 0:
        return action
    if size >= rules[R_STACK + state[S_ACTOR]]:
        return ALL_IN
    after = pot(rules, state) + to_call(rules, state)
    by = size - state[S_MAX_SPENT]
    label = RAISE
    while label + 1 < ALL_IN and by >= class_start(after, label + 1):
        label += 1
    return label


@kernel(leaf=True)
def size_of(rules: Array, state: Array, label: int) -> int:
    """Return the total a raise label stands for: a quarter, half, one or two pots, kept inside its class and the rules.

    Where the stack is too short for that: the middle between the class's start and all-in, not a chip short of it.
    """
    low, high = _class_range(rules, state, label)
    if rules[R_NOLIMIT] == 0 or label == ALL_IN or high == 0:
        return high
    after = pot(rules, state) + to_call(rules, state)
    base = state[S_MAX_SPENT]
    size = base + CLASS_SIZES[label - RAISE] * after // 4
    if size > high:
        size = base + (class_start(after, label) + high - base) // 2
    return min(max(size, low), high)


@kernel(leaf=True)
def amount_of(rules: Array, state: Array, label: int, by: int) -> int:
    """Return the total of a raise by `by` chips beyond the highest bet, kept inside the label's class and the rules."""
    low, high = _class_range(rules, state, label)
    return min(max(state[S_MAX_SPENT] + by, low), high)
