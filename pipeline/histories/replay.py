"""Hands of histories played by the rules: what each player put in, saw and won, or the first thing that is wrong.

A hand comes as plain arrays, `Packed`, which both readers fill: `pack` from a `History`, the byte kernel straight from
the text. `play` builds the hand's rules vector (its own stacks, blinds and antes; rule set `PHH`), takes one entry
after the other and leaves betting, cards and results in an `Outcome`. `replay` is the face for one hand.

The order of entries must be that of the game: hole cards before the betting (those not mentioned are unknown), board
cards when a street's betting has ended, shows when all betting has. A hand may stop anywhere: then it is *partial*.

Who wins at a showdown is known when the players who may win have shown their cards; players who showed none have
given up. The chips that a source says were won or left are used where they are given and not all zero. What they lack
to the pot is the house's rake; between nothing and a tenth of the pot is believed, anything else flags the hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.cards import NO_CARD, NUMBERS, Ranking, ranking
from pipeline.histories.history import History, HistoryError
from pipeline.kernels import kernel
from pipeline.rules import (
    CALL,
    FOLD,
    MAX_PLAYERS,
    NO_STACK,
    PHH,
    R_ANTE,
    R_BLIND,
    R_BOARD,
    R_DEAD,
    R_FIRST,
    R_HOLE,
    R_MAX_RAISES,
    R_NOLIMIT,
    R_PLAYERS,
    R_RAISE,
    R_RANKS,
    R_ROUNDS,
    R_RULE_SET,
    R_STACK,
    R_SUITS,
    R_TRIMMED,
    RAISE,
    RULES_SIZE,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_MAX_SPENT,
    S_ROUND,
    S_SPENT,
    STATE_SIZE,
    apply,
    is_legal,
    is_showdown,
    raise_range,
    settle,
    showdown_value,
    start,
)

__all__ = ["REASONS", "Outcome", "Packed", "Replay", "history_rules", "outcome", "pack", "packed", "play", "replay"]

Array = npt.NDArray[Any]

MOST_ENTRIES = 512
MOST_ACTIONS = 256

# The entries of a hand
DEAL_HOLE, DEAL_BOARD, FOLDS, CALLS, RAISES, SHOWS, MUCKS = range(7)

# Packed.head
H_NOLIMIT, H_PLAYERS, H_TRIMMED, H_SMALL, H_BIG, H_ENTRIES, H_WINNINGS, H_FINISHING = range(8)
HEAD = 8
# Packed.chips, a row each
ANTES, BLINDS, STACKS, WINNINGS, FINISHING = range(5)

# Outcome.facts
(
    O_ACTIONS,
    O_OPENED,
    O_PARTIAL,
    O_SHOWDOWN,
    O_SHOWN,
    O_MUCKED,
    O_SOURCE,
    O_FLAGGED,
    O_RAKE,
    O_POT,
) = range(10)
FACTS = 10
# where results come from
UNKNOWN, BY_RULES, BY_SOURCE = range(3)

(
    VALID,
    HOLE_TIME,
    HOLE_COUNT,
    BOARD_TIME,
    CARD_TWICE,
    NOT_SHOWN,
    OTHER_CARDS,
    TURN,
    ILLEGAL,
    AFTER_END,
    BEFORE_DEAL,
    TOO_MANY,
) = range(12)
REASONS = (
    "",
    "cards: hole cards dealt after the betting began",
    "cards: a player is dealt one card or more than two, or one that is known and one that is not",
    "cards: board cards where the rules deal none or fewer",
    "cards: one occurs twice",
    "cards: shown by a player who has nothing to show",
    "cards: shown cards are not those dealt",
    "betting: another player's turn",
    "betting: an illegal action",
    "betting: goes on after the end of the hand",
    "betting: goes on before the street's cards are dealt",
    f"betting: more than {MOST_ACTIONS} actions",
)


class Packed(NamedTuple):
    """A hand as arrays: what its fields say."""

    head: Array
    """(HEAD,) int64: variant, players, trimming, bets, number of entries, which results are given"""
    chips: Array
    """(5, MAX_PLAYERS) int64, as written: antes, blinds, stacks (`NO_STACK`: unknown), winnings, finishing stacks"""
    kinds: Array
    """(MOST_ENTRIES,) uint8: what each entry does"""
    who: Array
    """(MOST_ENTRIES,) uint8: the player it names"""
    amounts: Array
    """(MOST_ENTRIES,) int64: what a raise goes to on its street"""
    cards: Array
    """(MOST_ENTRIES, 3) uint8: cards dealt or shown, `NO_CARD` where unknown"""
    counts: Array
    """(MOST_ENTRIES,) uint8: how many of them"""


class Outcome(NamedTuple):
    """What playing a hand leaves."""

    rules: Array
    state: Array
    facts: Array
    """(FACTS,) int64"""
    hole: Array
    """(MAX_PLAYERS, 2) uint8"""
    board: Array
    """(5,) uint8"""
    places: Array
    """(MOST_ACTIONS,) uint8: action | street << 2 | actor << 4"""
    totals: Array
    """(MOST_ACTIONS,) int64: what no-limit raises go to over the whole hand"""
    result: Array
    """(MAX_PLAYERS,) float64: net chips"""
    due: Array
    values: Array


def packed() -> Packed:
    """Empty arrays for a hand."""
    return Packed(
        head=np.zeros(HEAD, dtype=np.int64),
        chips=np.zeros((5, MAX_PLAYERS), dtype=np.int64),
        kinds=np.zeros(MOST_ENTRIES, dtype=np.uint8),
        who=np.zeros(MOST_ENTRIES, dtype=np.uint8),
        amounts=np.zeros(MOST_ENTRIES, dtype=np.int64),
        cards=np.zeros((MOST_ENTRIES, 3), dtype=np.uint8),
        counts=np.zeros(MOST_ENTRIES, dtype=np.uint8),
    )


def outcome() -> Outcome:
    """Empty arrays for what a hand leaves."""
    return Outcome(
        rules=np.zeros(RULES_SIZE, dtype=np.int64),
        state=np.zeros(STATE_SIZE, dtype=np.int64),
        facts=np.zeros(FACTS, dtype=np.int64),
        hole=np.zeros((MAX_PLAYERS, 2), dtype=np.uint8),
        board=np.zeros(5, dtype=np.uint8),
        places=np.zeros(MOST_ACTIONS, dtype=np.uint8),
        totals=np.zeros(MOST_ACTIONS, dtype=np.int64),
        result=np.zeros(MAX_PLAYERS, dtype=np.float64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
    )


@kernel(leaf=True)
def history_rules(hand: Packed, rules: Array) -> None:
    """Fill the rules vector of a hand: rule set `PHH` with the hand's own stacks, blinds and antes."""
    head = hand.head
    n = head[H_PLAYERS]
    for i in range(RULES_SIZE):
        rules[i] = 0
    rules[R_NOLIMIT] = head[H_NOLIMIT]
    rules[R_PLAYERS] = n
    rules[R_ROUNDS], rules[R_SUITS], rules[R_RANKS], rules[R_HOLE] = 4, 4, 13, 2
    rules[R_BOARD + 1], rules[R_BOARD + 2], rules[R_BOARD + 3] = 3, 1, 1
    for r in range(4):
        rules[R_RAISE + r] = head[H_SMALL] if r < 2 else head[H_BIG]
        rules[R_MAX_RAISES + r] = 255 if head[H_NOLIMIT] != 0 else 4
    rules[R_RULE_SET] = PHH
    rules[R_TRIMMED] = head[H_TRIMMED]
    highest, opener = -NO_STACK, 0
    for p in range(n):
        listed = 1 - p if n == 2 else p
        stack = hand.chips[STACKS, p]
        ante = min(hand.chips[ANTES, listed], stack)
        blind = hand.chips[BLINDS, listed]
        rules[R_ANTE + p] = ante
        rules[R_DEAD] += ante
        rules[R_STACK + p] = stack if stack == NO_STACK else stack - ante
        rules[R_BLIND + p] = min(abs(blind), rules[R_STACK + p])
        bet = rules[R_BLIND + p] if blind >= 0 else -rules[R_BLIND + p]
        if bet >= highest:
            highest, opener = bet, (p + 1) % n
    rules[R_FIRST] = opener


@kernel(leaf=True)
def _deal(hand: Packed, at: int, out: Outcome, used: int, dealt: int) -> tuple[int, int, int]:
    """Take the cards of a deal to a player; the code, the cards used and the count of cards dealt, two bits each."""
    p = int(hand.who[at])
    have = (dealt >> (2 * p)) & 3
    count = int(hand.counts[at])
    if count < 1 or have + count > 2:
        return HOLE_COUNT, used, dealt
    for i in range(count):
        card = int(hand.cards[at, i])
        out.hole[p, have + i] = card
        if card != NO_CARD:
            if (used >> card) & 1 != 0:
                return CARD_TWICE, used, dealt
            used |= 1 << card
    if have + count == 2 and (out.hole[p, 0] == NO_CARD) != (out.hole[p, 1] == NO_CARD):
        return HOLE_COUNT, used, dealt
    return VALID, used, dealt + (count << (2 * p))


@kernel(leaf=True)
def _show(hand: Packed, at: int, out: Outcome, used: int) -> tuple[int, int]:
    """Take a show or a muck after the betting; the code and the cards used."""
    p = int(hand.who[at])
    facts = out.facts
    bit = 1 << p
    if out.state[S_FINISHED] == 0 or (out.state[S_FOLDED] | facts[O_SHOWN] | facts[O_MUCKED]) & bit != 0:
        return NOT_SHOWN, used
    showdown = is_showdown(out.rules, out.state)
    if hand.kinds[at] == MUCKS:
        if not showdown or facts[O_OPENED] < 5:
            return NOT_SHOWN, used
        facts[O_MUCKED] |= bit
        return VALID, used
    first, second = int(hand.cards[at, 0]), int(hand.cards[at, 1])
    count = int(hand.counts[at])
    if count == 1 and first == second == NO_CARD:  # `sm -`: what was dealt
        first, second = int(out.hole[p, 0]), int(out.hole[p, 1])
        if first == NO_CARD:
            return NOT_SHOWN, used
    elif count != 2 or (first == NO_CARD) != (second == NO_CARD):
        return NOT_SHOWN, used
    if first == NO_CARD:
        return VALID if showdown else NOT_SHOWN, used
    have, other = int(out.hole[p, 0]), int(out.hole[p, 1])
    if have == NO_CARD:
        if first == second or ((used >> first) | (used >> second)) & 1 != 0:
            return CARD_TWICE, used
        used |= (1 << first) | (1 << second)
        out.hole[p, 0], out.hole[p, 1] = first, second
    elif not ((have == first and other == second) or (have == second and other == first)):
        return OTHER_CARDS, used
    facts[O_SHOWN] |= bit
    return VALID, used


@kernel(leaf=True)
def _bet(hand: Packed, at: int, out: Outcome, base: int) -> int:
    """Take a fold, call or raise; `base` is what players had put in when the street began."""
    rules, state, facts = out.rules, out.state, out.facts
    if state[S_FINISHED] != 0:
        return AFTER_END
    if facts[O_OPENED] < (0 if state[S_ROUND] == 0 else 2 + state[S_ROUND]):
        return BEFORE_DEAL
    actor = state[S_ACTOR]
    if hand.who[at] != actor:
        return TURN
    kind = hand.kinds[at]
    action = FOLD if kind == FOLDS else CALL if kind == CALLS else RAISE
    total = base + hand.amounts[at]
    if not is_legal(rules, state, action, total):
        return ILLEGAL
    if action == RAISE and rules[R_NOLIMIT] == 0 and total != raise_range(rules, state)[0]:
        return ILLEGAL
    count = facts[O_ACTIONS]
    if count == MOST_ACTIONS:
        return TOO_MANY
    out.places[count] = action | (state[S_ROUND] << 2) | (actor << 4)
    out.totals[count] = total if action == RAISE and rules[R_NOLIMIT] != 0 else 0
    facts[O_ACTIONS] = count + 1
    apply(rules, state, action, total)
    return VALID


@kernel(leaf=True)
def _board(hand: Packed, at: int, out: Outcome, used: int) -> tuple[int, int]:
    """Take board cards; the code and the cards used."""
    state, facts = out.state, out.facts
    opened = facts[O_OPENED]
    street, left = (0, 3 - opened) if opened < 3 else (opened - 2, 1)
    reached = state[S_ROUND]
    if state[S_FINISHED] != 0:
        reached = 3 if is_showdown(out.rules, state) else 0
    count = hand.counts[at]
    if street >= reached or count < 1 or count > left:
        return BOARD_TIME, used
    for i in range(count):
        card = int(hand.cards[at, i])
        if card == NO_CARD:
            return BOARD_TIME, used
        if (used >> card) & 1 != 0:
            return CARD_TWICE, used
        used |= 1 << card
        out.board[opened + i] = card
    facts[O_OPENED] = opened + count
    return VALID, used


@kernel(leaf=True)
def play(hand: Packed, out: Outcome, tables: Ranking) -> int:
    """Play a hand; `VALID` or an index of `REASONS`. `out` holds everything up to the first fault."""
    rules, state, facts = out.rules, out.state, out.facts
    history_rules(hand, rules)
    start(rules, state)
    for i in range(FACTS):
        facts[i] = 0
    for p in range(MAX_PLAYERS):
        out.hole[p, 0] = NO_CARD
        out.hole[p, 1] = NO_CARD
        out.result[p] = 0.0
    for i in range(5):
        out.board[i] = NO_CARD
    used, dealt, base, street = 0, 0, 0, 0
    code = VALID
    for at in range(hand.head[H_ENTRIES]):
        kind = hand.kinds[at]
        if kind == DEAL_HOLE:
            if facts[O_ACTIONS] > 0 or facts[O_OPENED] > 0 or facts[O_SHOWN] != 0:
                return HOLE_TIME
            code, used, dealt = _deal(hand, at, out, used, dealt)
        elif kind == DEAL_BOARD:
            code, used = _board(hand, at, out, used)
        elif kind >= SHOWS:
            code, used = _show(hand, at, out, used)
        else:
            code = _bet(hand, at, out, base)
            if state[S_ROUND] != street:
                street = state[S_ROUND]
                base = state[S_MAX_SPENT]
        if code != VALID:
            return code
    if dealt & 0x5555555 != 0:  # somebody has one card
        return HOLE_COUNT
    facts[O_PARTIAL] = state[S_FINISHED] == 0
    facts[O_SHOWDOWN] = state[S_FINISHED] != 0 and is_showdown(rules, state)
    _results(hand, out, tables)
    return VALID


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
def _results(hand: Packed, out: Outcome, tables: Ranking) -> None:
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


# One hand


def pack(history: History, into: Packed | None = None) -> Packed:
    """A `History` as the arrays that `play` takes."""
    hand = into or packed()
    if len(history.actions) > MOST_ENTRIES:
        raise HistoryError(f"betting: more than {MOST_ENTRIES} entries")
    small = history.min_bet if history.nolimit else history.small_bet
    big = history.min_bet if history.nolimit else history.big_bet
    given = bool(history.winnings), bool(history.finishing_stacks)
    hand.head[:] = history.nolimit, history.count, history.trimmed, small, big, 0, *given
    hand.chips[:] = 0
    for row, amounts in (
        (ANTES, history.antes),
        (BLINDS, history.blinds),
        (STACKS, tuple(NO_STACK if stack is None else stack for stack in history.stacks)),
        (WINNINGS, history.winnings),
        (FINISHING, history.finishing_stacks),
    ):
        hand.chips[row, : len(amounts)] = amounts
    kinds = {"dh": DEAL_HOLE, "db": DEAL_BOARD, "f": FOLDS, "cc": CALLS, "cbr": RAISES, "sm": SHOWS}
    at = 0
    for action in history.actions:
        if not action.kind:
            continue
        cards = ["??"] if action.cards == "-" else [action.cards[i : i + 2] for i in range(0, len(action.cards), 2)]
        hand.kinds[at] = MUCKS if action.kind == "sm" and not cards else kinds[action.kind]
        hand.who[at] = max(action.player, 0)
        hand.amounts[at] = action.amount
        hand.counts[at] = min(len(cards), 4)
        hand.cards[at] = NO_CARD
        for i, card in enumerate(cards[:3]):
            hand.cards[at, i] = NUMBERS.get(card, NO_CARD)
        at += 1
    hand.head[H_ENTRIES] = at
    return hand


@dataclass(frozen=True)
class Replay:
    """A hand played to its end: what the rules make of it."""

    history: History
    spent: tuple[int, ...]
    """chips that each player put in, antes included"""
    folded: tuple[bool, ...]
    hole: tuple[str, ...]
    """what is known of each player's cards: four letters or nothing"""
    board: str
    betting: tuple[tuple[int, int, int, int], ...]
    """(player, street, action, total over the hand without the ante) of each decision"""
    partial: bool
    """the file stops before the betting ends"""
    showdown: bool
    result: tuple[float, ...] | None
    """net chips of each player; None when neither cards nor source tell"""
    by_source: bool
    """whether the result is the source's"""
    flagged: bool
    """whether the source's results contradict the rules"""
    rake: int


def replay(history: History) -> Replay:
    """Play a hand by the rules; an illegal one is a `HistoryError`.

    >>> from pipeline.histories.notation import parse_history
    >>> hand = parse_history(
    ...     "variant='NT'\\nantes=[0,0]\\nblinds_or_straddles=[1,2]\\nmin_bet=2\\nstarting_stacks=[9,9]\\n"
    ...     "actions=['p2 cbr 5', 'p1 f']"
    ... )
    >>> replay(hand).result
    (-2.0, 2.0)
    """
    out = outcome()
    code = play(pack(history), out, ranking())
    if code != VALID:
        raise HistoryError(REASONS[code])
    n, facts = history.count, out.facts
    letters = {number: text for text, number in NUMBERS.items()}
    places = [int(place) for place in out.places[: facts[O_ACTIONS]]]
    return Replay(
        history=history,
        spent=tuple(int(x) for x in out.state[S_SPENT : S_SPENT + n] + out.rules[R_ANTE : R_ANTE + n]),
        folded=tuple(bool(out.state[S_FOLDED] >> p & 1) for p in range(n)),
        hole=tuple("".join(letters.get(int(card), "") for card in out.hole[p]) for p in range(n)),
        board="".join(letters[int(card)] for card in out.board[: facts[O_OPENED]]),
        betting=tuple(
            (place >> 4, place >> 2 & 3, place & 3, int(total))
            for place, total in zip(places, out.totals, strict=False)
        ),
        partial=bool(facts[O_PARTIAL]),
        showdown=bool(facts[O_SHOWDOWN]),
        result=None if facts[O_SOURCE] == UNKNOWN else tuple(float(x) for x in out.result[:n]),
        by_source=bool(facts[O_SOURCE] == BY_SOURCE),
        flagged=bool(facts[O_FLAGGED]),
        rake=int(facts[O_RAKE]),
    )
