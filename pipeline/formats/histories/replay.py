"""Hands of histories played by the rules: what each player put in, saw and won, or the first thing that is wrong.

A hand comes as the arrays of `packing`. `play` builds the hand's rules vector (its own stacks, blinds and antes; rule
set `PHH`), takes one entry after the other and leaves betting, cards and results in an `Outcome`; `results` says who
won. `replay` is the face for one hand.

The order of entries must be that of the game: hole cards before the betting (those not mentioned are unknown), board
cards when a street's betting has ended, shows when all betting has. A hand may stop anywhere: then it is *partial*.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.formats.histories.history import History, HistoryError
from pipeline.formats.histories.packing import (
    ANTES,
    BLINDS,
    BY_SOURCE,
    CALLS,
    DEAL_BOARD,
    DEAL_HOLE,
    FACTS,
    FOLDS,
    H_BIG,
    H_ENTRIES,
    H_NOLIMIT,
    H_PLAYERS,
    H_SMALL,
    H_TRIMMED,
    MOST_ACTIONS,
    MUCKS,
    O_ACTIONS,
    O_FLAGGED,
    O_MUCKED,
    O_OPENED,
    O_PARTIAL,
    O_RAKE,
    O_SHOWDOWN,
    O_SHOWN,
    O_SOURCE,
    SHOWS,
    STACKS,
    UNKNOWN,
    Outcome,
    Packed,
    outcome,
    pack,
)
from pipeline.formats.histories.results import find_results
from pipeline.poker.cards import NO_CARD, NUMBERS, Ranking, ranking
from pipeline.poker.rules import (
    CALL,
    FOLD,
    MAX_PLAYERS,
    NO_STACK,
    PHH,
    R_ANTE,
    R_BIG_BLIND,
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
    apply,
    is_legal,
    is_showdown,
    raise_range,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

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
    rules[R_BIG_BLIND] = head[H_SMALL]
    rules[R_TRIMMED] = head[H_TRIMMED]
    largest, second = 0, 0
    for p in range(n):
        ante = min(hand.chips[ANTES, 1 - p if n == 2 else p], hand.chips[STACKS, p])
        rules[R_ANTE + p] = ante
        if ante > largest:
            largest, second = ante, largest
        elif ante > second:
            second = ante
    highest, opener = -NO_STACK, 0
    for p in range(n):
        blind = hand.chips[BLINDS, 1 - p if n == 2 else p]
        stack = hand.chips[STACKS, p]
        ante = rules[R_ANTE + p]
        rules[R_BLIND + p] = min(abs(blind), stack - ante)
        if head[H_TRIMMED] != 0:
            ante = min(ante, second)  # nobody matches more
        rules[R_ANTE + p] = ante
        rules[R_DEAD] += ante
        rules[R_STACK + p] = stack if stack == NO_STACK else stack - ante
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
    find_results(hand, out, tables)
    return VALID


# One hand


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

    >>> from pipeline.formats.histories.notation import parse_history
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
