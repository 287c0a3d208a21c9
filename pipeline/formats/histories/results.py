"""What everybody won in a hand of a history: by the cards, by the source, or not known.

Who wins at a showdown is known when the players who may win have shown their cards; players who showed none have
given up. The chips that a source says were won or left are used where they are given and not all zero. What they lack
to the pot is the house's rake; between nothing and a tenth of the pot is believed, anything else flags the hand.
"""

from __future__ import annotations

from pipeline.formats.histories.packing import (
    BY_RULES,
    BY_SOURCE,
    FINISHING,
    H_FINISHING,
    H_WINNINGS,
    O_FLAGGED,
    O_OPENED,
    O_PARTIAL,
    O_POT,
    O_RAKE,
    O_SHOWDOWN,
    O_SHOWN,
    O_SOURCE,
    STACKS,
    WINNINGS,
    Outcome,
    Packed,
)
from pipeline.poker.cards import Ranking
from pipeline.poker.rules import (
    NO_STACK,
    R_ANTE,
    R_PLAYERS,
    S_FOLDED,
    S_SPENT,
    settle,
)
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.kernels import kernel


@kernel(leaf=True)
def _settled(out: Outcome, tables: Ranking) -> bool:
    """Fill `out.due` with the net chips that rules and shown cards give; whether they do."""
    rules, state, facts = out.rules, out.state, out.facts
    n = rules[R_PLAYERS]
    folded = state[S_FOLDED]
    if facts[O_PARTIAL] != 0:
        return False
    if facts[O_SHOWDOWN] != 0:
        if facts[O_OPENED] < 5:
            return False
        most, lost = -1, -1
        for p in range(n):
            put = state[S_SPENT + p]
            if (folded >> p) & 1 != 0:
                continue
            if (facts[O_SHOWN] >> p) & 1 != 0:
                most = max(most, put)
            else:
                lost = max(lost, put)
        if most < 0 or lost > most:
            return False
        for p in range(n):
            if (facts[O_SHOWN] >> p) & 1 != 0:
                out.values[p] = showdown_value(out.hole[p], 2, out.board, 5, tables)
            else:
                state[S_FOLDED] |= 1 << p
    else:
        for p in range(n):
            out.values[p] = 0
    settle(rules, state, out.values, out.due)
    state[S_FOLDED] = folded
    return True


@kernel(leaf=True)
def find_results(hand: Packed, out: Outcome, tables: Ranking) -> None:
    """Decide what everybody won: by the source where it says so and the rules allow it, else by the rules."""
    rules, state, facts = out.rules, out.state, out.facts
    n = rules[R_PLAYERS]
    pot, highest, second, largest = 0, 0, 0, 0
    for p in range(n):
        put = state[S_SPENT + p] + rules[R_ANTE + p]
        pot += put
        if state[S_SPENT + p] > highest:
            highest, second, largest = state[S_SPENT + p], highest, p
        elif state[S_SPENT + p] > second:
            second = state[S_SPENT + p]
    facts[O_POT] = pot
    settled = _settled(out, tables)
    if settled:
        facts[O_SOURCE] = BY_RULES
        for p in range(n):
            out.result[p] = out.due[p]
    if facts[O_PARTIAL] != 0:
        return
    if hand.head[H_FINISHING] != 0:
        _believe(hand, out, FINISHING, settled, pot, 0, largest)
    elif hand.head[H_WINNINGS] != 0 and not _believe(hand, out, WINNINGS, settled, pot, highest - second, largest):
        facts[O_FLAGGED] = 0
        _believe(hand, out, WINNINGS, settled, pot, 0, largest)


@kernel(leaf=True)
def _believe(hand: Packed, out: Outcome, which: int, settled: bool, pot: int, returned: int, largest: int) -> bool:
    """Take the results of the source if they are possible, else flag the hand; whether they were possible.

    Winnings are chips taken out of the pot. Some sites leave out the part of a bet that nobody called, `returned` to
    the player `largest`.
    """
    rules, state, facts = out.rules, out.state, out.facts
    n = rules[R_PLAYERS]
    any_chips, total = False, 0
    for p in range(n):
        given = hand.chips[which, p]
        any_chips = any_chips or given != 0
        net = given - state[S_SPENT + p] - rules[R_ANTE + p]
        if which == FINISHING:
            if hand.chips[STACKS, p] == NO_STACK:
                return True
            net = given - hand.chips[STACKS, p]
        elif p == largest:
            net += returned
        out.values[p] = net
        total += net
    if not any_chips:
        return True
    rake = -total
    fine = rake >= 0 and 10 * rake <= pot - returned
    for p in range(n):
        put = state[S_SPENT + p] + rules[R_ANTE + p]
        net = out.values[p]
        fine = fine and -put <= net <= pot - put
        if (state[S_FOLDED] >> p) & 1 != 0:
            fine = fine and net == -put
        if settled:
            fine = fine and net <= out.due[p] + 1.0 and net >= out.due[p] - rake - 1.0
    if not fine:
        facts[O_FLAGGED] = 1
        return False
    facts[O_SOURCE] = BY_SOURCE
    facts[O_RAKE] = rake
    for p in range(n):
        out.result[p] = out.values[p]
    return True
