"""Hands of histories played by the rules: betting, cards and results, or the first thing that is wrong.

A hand comes as the arrays of `packing`. `play` builds the hand's rules vector (its own stacks, blinds and antes; rule
set `PHH`), takes one entry after the other and leaves betting, cards and results in an `Outcome`. `replay` does this
for one `History`.

The order of entries must be that of the game: hole cards before the betting (those not mentioned are unknown), board
cards when a street's betting has ended, shows when all betting has. A hand may stop anywhere: then it is *partial*.

The winner at a showdown is known when the players who may win have shown their cards; players who showed none have
given up. Winnings or finishing stacks in the source are used where they are given and not all zero. What they lack to
the pot is the house's rake; between nothing and a tenth of the pot is believed, anything else flags the hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.formats.acpc import MOST_ACTIONS
from pipeline.formats.histories.history import History, HistoryError
from pipeline.formats.histories.packing import (
    ANTES,
    BLINDS,
    BY_RULES,
    BY_SOURCE,
    CALLS,
    DEAL_BOARD,
    DEAL_HOLE,
    FINISHING,
    FOLDS,
    MUCKS,
    SHOWS,
    STACKS,
    UNKNOWN,
    WINNINGS,
    Outcome,
    PackedHand,
    outcome,
    pack,
)
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
    settle,
    start,
)
from pipeline.poker.showdown import showdown_value
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
def history_rules(hand: PackedHand, rules: Array) -> None:
    """Fill the rules vector of a hand: rule set `PHH` with the hand's own stacks, blinds and antes."""
    head = hand.head[0]
    n = head.players
    for i in range(RULES_SIZE):
        rules[i] = 0
    rules[R_NOLIMIT] = head.nolimit
    rules[R_PLAYERS] = n
    rules[R_ROUNDS], rules[R_SUITS], rules[R_RANKS], rules[R_HOLE] = 4, 4, 13, 2
    rules[R_BOARD + 1], rules[R_BOARD + 2], rules[R_BOARD + 3] = 3, 1, 1
    for r in range(4):
        rules[R_RAISE + r] = head.small_bet if r < 2 else head.big_bet
        rules[R_MAX_RAISES + r] = 255 if head.nolimit != 0 else 4
    rules[R_RULE_SET] = PHH
    rules[R_BIG_BLIND] = head.small_bet
    rules[R_TRIMMED] = head.trimmed
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
        if head.trimmed != 0:
            ante = min(ante, second)  # nobody matches more
        rules[R_ANTE + p] = ante
        rules[R_DEAD] += ante
        rules[R_STACK + p] = stack if stack == NO_STACK else stack - ante
        bet = rules[R_BLIND + p] if blind >= 0 else -rules[R_BLIND + p]
        if bet >= highest:
            highest, opener = bet, (p + 1) % n
    rules[R_FIRST] = opener


@kernel(leaf=True)
def _deal(hand: PackedHand, entry: int, out: Outcome, used: int, dealt: int) -> tuple[int, int, int]:
    """Take a deal to a player; return the code, the cards used and the counts of cards dealt, two bits per player."""
    p = int(hand.who[entry])
    have = (dealt >> (2 * p)) & 3
    count = int(hand.counts[entry])
    if count < 1 or have + count > 2:
        return HOLE_COUNT, used, dealt
    for i in range(count):
        card = int(hand.cards[entry, i])
        out.hole[p, have + i] = card
        if card != NO_CARD:
            if (used >> card) & 1 != 0:
                return CARD_TWICE, used, dealt
            used |= 1 << card
    if have + count == 2 and (out.hole[p, 0] == NO_CARD) != (out.hole[p, 1] == NO_CARD):
        return HOLE_COUNT, used, dealt
    return VALID, used, dealt + (count << (2 * p))


@kernel(leaf=True)
def _show(hand: PackedHand, entry: int, out: Outcome, used: int) -> tuple[int, int]:
    """Take a show or a muck after the betting; return the code and the cards used."""
    p = int(hand.who[entry])
    facts = out.facts[0]
    bit = 1 << p
    if out.state[S_FINISHED] == 0 or (out.state[S_FOLDED] | facts.shown | facts.mucked) & bit != 0:
        return NOT_SHOWN, used
    showdown = is_showdown(out.rules, out.state)
    if hand.kinds[entry] == MUCKS:
        if not showdown or facts.opened < 5:
            return NOT_SHOWN, used
        facts.mucked |= bit
        return VALID, used
    first, second = int(hand.cards[entry, 0]), int(hand.cards[entry, 1])
    count = int(hand.counts[entry])
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
    facts.shown |= bit
    return VALID, used


@kernel(leaf=True)
def _bet(hand: PackedHand, entry: int, out: Outcome, base: int) -> int:
    """Take a fold, call or raise; `base` are the most chips a player had put in when the street began."""
    rules, state, facts = out.rules, out.state, out.facts[0]
    if state[S_FINISHED] != 0:
        return AFTER_END
    if facts.opened < (0 if state[S_ROUND] == 0 else 2 + state[S_ROUND]):
        return BEFORE_DEAL
    actor = state[S_ACTOR]
    if hand.who[entry] != actor:
        return TURN
    kind = hand.kinds[entry]
    action = FOLD if kind == FOLDS else CALL if kind == CALLS else RAISE
    total = base + hand.amounts[entry]
    if not is_legal(rules, state, action, total):
        return ILLEGAL
    if action == RAISE and rules[R_NOLIMIT] == 0 and total != raise_range(rules, state)[0]:
        return ILLEGAL
    count = facts.actions
    if count == MOST_ACTIONS:
        return TOO_MANY
    out.places[count] = action | (state[S_ROUND] << 2) | (actor << 4)
    out.totals[count] = total if action == RAISE and rules[R_NOLIMIT] != 0 else 0
    facts.actions = count + 1
    apply(rules, state, action, total)
    return VALID


@kernel(leaf=True)
def _board(hand: PackedHand, entry: int, out: Outcome, used: int) -> tuple[int, int]:
    """Take board cards; return the code and the cards used."""
    state, facts = out.state, out.facts[0]
    opened = facts.opened
    street, remaining = (0, 3 - opened) if opened < 3 else (opened - 2, 1)
    reached = state[S_ROUND]
    if state[S_FINISHED] != 0:
        reached = 3 if is_showdown(out.rules, state) else 0
    count = hand.counts[entry]
    if street >= reached or count < 1 or count > remaining:
        return BOARD_TIME, used
    for i in range(count):
        card = int(hand.cards[entry, i])
        if card == NO_CARD:
            return BOARD_TIME, used
        if (used >> card) & 1 != 0:
            return CARD_TWICE, used
        used |= 1 << card
        out.board[opened + i] = card
    facts.opened = opened + count
    return VALID, used


@kernel(leaf=True)
def play(hand: PackedHand, out: Outcome, tables: Ranking) -> int:
    """Play a hand; return `VALID` or an index of `REASONS`. `out` holds everything up to the first fault."""
    rules, state, facts = out.rules, out.state, out.facts[0]
    history_rules(hand, rules)
    start(rules, state)
    facts.actions = 0
    facts.opened = 0
    facts.partial = 0
    facts.showdown = 0
    facts.shown = 0
    facts.mucked = 0
    facts.source = 0
    facts.flagged = 0
    facts.rake = 0
    facts.pot = 0
    for p in range(MAX_PLAYERS):
        out.hole[p, 0] = NO_CARD
        out.hole[p, 1] = NO_CARD
        out.result[p] = 0.0
    for i in range(5):
        out.board[i] = NO_CARD
    used, dealt, base, street = 0, 0, 0, 0  # `used` has a bit per card seen, `base` the highest total of streets before
    code = VALID
    for entry in range(hand.head[0].entries):
        kind = hand.kinds[entry]
        if kind == DEAL_HOLE:
            if facts.actions > 0 or facts.opened > 0 or facts.shown != 0:
                return HOLE_TIME
            code, used, dealt = _deal(hand, entry, out, used, dealt)
        elif kind == DEAL_BOARD:
            code, used = _board(hand, entry, out, used)
        elif kind >= SHOWS:
            code, used = _show(hand, entry, out, used)
        else:
            code = _bet(hand, entry, out, base)
            if state[S_ROUND] != street:
                street = state[S_ROUND]
                base = state[S_MAX_SPENT]
        if code != VALID:
            return code
    if dealt & 0x5555555 != 0:  # the low bit of each pair: somebody has one card
        return HOLE_COUNT
    facts.partial = 1 if state[S_FINISHED] == 0 else 0
    facts.showdown = 1 if state[S_FINISHED] != 0 and is_showdown(rules, state) else 0
    find_results(hand, out, tables)
    return VALID


# Who won what


@kernel(leaf=True)
def _settle_by_rules(out: Outcome, tables: Ranking) -> bool:
    """Fill `out.due` with the net chips that rules and shown cards give; return whether they decide the hand."""
    rules, state, facts = out.rules, out.state, out.facts[0]
    n = rules[R_PLAYERS]
    folded = state[S_FOLDED]
    if facts.partial != 0:
        return False
    if facts.showdown != 0:
        if facts.opened < 5:
            return False
        most, lost = -1, -1
        for p in range(n):
            put = state[S_SPENT + p]
            if (folded >> p) & 1 != 0:
                continue
            if (facts.shown >> p) & 1 != 0:
                most = max(most, put)
            else:
                lost = max(lost, put)
        # Who shows nothing has given up; but if such a player put in more than all who showed, a side pot is undecided
        if most < 0 or lost > most:
            return False
        for p in range(n):
            if (facts.shown >> p) & 1 != 0:
                out.values[p] = showdown_value(out.hole[p], 2, out.board, 5, tables)
            else:
                state[S_FOLDED] |= 1 << p  # for `settle` alone, undone below
    else:
        for p in range(n):
            out.values[p] = 0
    settle(rules, state, out.values, out.due)
    state[S_FOLDED] = folded
    return True


@kernel(leaf=True)
def find_results(hand: PackedHand, out: Outcome, tables: Ranking) -> None:
    """Decide what everybody won: by the source where it says so and the rules allow it, else by the rules."""
    rules, state, facts = out.rules, out.state, out.facts[0]
    n = rules[R_PLAYERS]
    pot, highest, second, largest = 0, 0, 0, 0
    for p in range(n):
        put = state[S_SPENT + p] + rules[R_ANTE + p]
        pot += put
        if state[S_SPENT + p] > highest:
            highest, second, largest = state[S_SPENT + p], highest, p
        elif state[S_SPENT + p] > second:
            second = state[S_SPENT + p]
    facts.pot = pot
    settled = _settle_by_rules(out, tables)
    if settled:
        facts.source = BY_RULES
        for p in range(n):
            out.result[p] = out.due[p]
    if facts.partial != 0:
        return
    if hand.head[0].finishing != 0:
        _take_results(hand, out, FINISHING, settled, pot, 0, largest)
    elif hand.head[0].winnings != 0 and not _take_results(hand, out, WINNINGS, settled, pot, highest - second, largest):
        facts.flagged = 0
        _take_results(hand, out, WINNINGS, settled, pot, 0, largest)


@kernel(leaf=True)
def _take_results(
    hand: PackedHand, out: Outcome, which: int, settled: bool, pot: int, returned: int, largest: int
) -> bool:
    """Take the results of the source if they are possible, else flag the hand; return whether they were possible.

    Winnings are chips taken out of the pot. Some sites leave out the part of a bet that nobody called, `returned` to
    the player `largest`.
    """
    rules, state, facts = out.rules, out.state, out.facts[0]
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
        facts.flagged = 1
        return False
    facts.source = BY_SOURCE
    facts.rake = rake
    for p in range(n):
        out.result[p] = out.values[p]
    return True


# One hand


@dataclass(frozen=True)
class Replay:
    """A hand as the rules play it."""

    history: History
    spent: tuple[int, ...]
    """chips that each player put in, antes included"""
    folded: tuple[bool, ...]
    hole: tuple[str, ...]
    """each player's cards: four letters, nothing where unknown"""
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
    """Play a hand by the rules; raise `HistoryError` for an illegal one.

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
    n, facts = history.count, out.facts[0]
    letters = {number: text for text, number in NUMBERS.items()}
    places = [int(place) for place in out.places[: facts["actions"]]]
    return Replay(
        history=history,
        spent=tuple(int(x) for x in out.state[S_SPENT : S_SPENT + n] + out.rules[R_ANTE : R_ANTE + n]),
        folded=tuple(bool(out.state[S_FOLDED] >> p & 1) for p in range(n)),
        hole=tuple("".join(letters.get(int(card), "") for card in out.hole[p]) for p in range(n)),
        board="".join(letters[int(card)] for card in out.board[: facts["opened"]]),
        betting=tuple(
            (place >> 4, place >> 2 & 3, place & 3, int(total))
            for place, total in zip(places, out.totals, strict=False)
        ),
        partial=bool(facts["partial"]),
        showdown=bool(facts["showdown"]),
        result=None if facts["source"] == UNKNOWN else tuple(float(x) for x in out.result[:n]),
        by_source=bool(facts["source"] == BY_SOURCE),
        flagged=bool(facts["flagged"]),
        rake=int(facts["rake"]),
    )
