"""What is wrong with a line of an ACPC log, by its grammar and by the rules in plain Python.

`verdict` plays a line's hand by the rules of a game and returns the first fault. The byte kernel of `ingestion/scan.py`
must return the same verdict on every line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.formats.acpc import (
    AFTER_END,
    BLINDS,
    BOARD_COUNT,
    CALL_SIZE,
    CARD_TWICE,
    EXPECTED_TOLERANCE,
    GRAMMAR,
    HAND,
    HAND_2009,
    HOLE_COUNT,
    ILLEGAL,
    MAX_LINE,
    MOST_ACTIONS,
    NOT_IN_DECK,
    PAYOFF,
    PLAYERS,
    SIZE,
    STREETS,
    TOLERANCE,
    TOO_LONG,
    TOO_MANY,
    UNFINISHED,
    VALID,
    Hand,
    due_payoffs,
    parse_hand,
)
from pipeline.poker.allin import expected_result
from pipeline.poker.cards import parse_card
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import RAISE


class Verdict(NamedTuple):
    """`code` is an index of `REASONS`; `expected` marks payoffs that are all-in expectations."""

    code: int
    expected: bool = False


def verdict(line: str, game: Game) -> Verdict:
    """Check a line against the grammar and the game's rules; return VALID or the first reason why it is no hand."""
    if len(line) > MAX_LINE:
        return Verdict(TOO_LONG)
    old = None
    match = HAND.fullmatch(line) or (old := HAND_2009.fullmatch(line))
    if not match:
        return Verdict(GRAMMAR)
    hand = parse_hand(line)
    if not game.players == len(hand.holes) == len(hand.payoffs) == len(hand.names):
        return Verdict(PLAYERS)
    if any(len(hole) != 2 * game.hole_cards for hole in hand.holes):
        return Verdict(HOLE_COUNT)
    text = "".join((*hand.holes, *hand.board))
    cards = [parse_card(text[i : i + 2]) for i in range(0, len(text), 2)]
    if not set(cards) <= set(game.deck.tolist()):
        return Verdict(NOT_IN_DECK)
    if len(set(cards)) < len(cards):
        return Verdict(CARD_TWICE)
    state, code = _play(hand.betting, game, names_first=old is not None)
    if code != VALID:
        return Verdict(code)
    if [len(street) // 2 for street in hand.board] != list(game.board_cards[1 : state.round + 1]):
        return Verdict(BOARD_COUNT)
    return _check_payoffs(hand, state)


def _play(betting: str, game: Game, names_first: bool) -> tuple[State, int]:
    """Return the state after the betting and the code of what is wrong with it."""
    state = game.start()
    if names_first:
        blinds = re.match(r"(?:b\d+)*", betting)
        assert blinds
        posted = sorted(int(word) for word in blinds[0].split("b")[1:])
        if posted and posted != sorted(blind for blind in game.blinds if blind):
            return state, BLINDS
        betting = betting[blinds.end() :]
    street = count = 0
    for token in re.findall(r"[fcr]\d*|/", betting):
        if token == "/":
            street += 1
            if street > state.round:
                return state, STREETS
            continue
        if state.finished:
            return state, AFTER_END
        if street < state.round:
            return state, STREETS
        ((action, size),) = actions(token)
        sized = len(token) > 1
        if action == RAISE and sized != game.nolimit and not (names_first and not game.nolimit):
            return state, SIZE
        if not state.is_legal(action, size):
            return state, ILLEGAL
        if count == MOST_ACTIONS:
            return state, TOO_MANY
        count += 1
        actor = state.actor
        state = state.apply(action, size)
        if sized and int(token[1:]) != state.spent[actor]:
            return state, CALL_SIZE
    if not state.finished:
        return state, UNFINISHED
    return state, VALID if street == state.round else STREETS


def _check_payoffs(hand: Hand, state: State) -> Verdict:
    """Compare a hand's payoffs with those that betting and cards give.

    Where players were all-in before the last street, a log may give the expectation over the boards to come instead
    of what the dealt board gives; it is computed exactly, all hole cards being known, and marked.
    """
    due = due_payoffs(hand, state)
    if all(abs(given - right) <= TOLERANCE for given, right in zip(hand.payoffs, due, strict=True)):
        return Verdict(VALID)
    early = state.showdown and state.rounds[-1] == "" and state.round > 0
    possible = abs(sum(hand.payoffs)) <= 0.01 and all(
        abs(given + spent) <= TOLERANCE if folded else -spent - TOLERANCE <= given <= state.pot - spent + TOLERANCE
        for given, spent, folded in zip(hand.payoffs, state.spent, state.folded, strict=True)
    )
    if not (early and possible):
        return Verdict(PAYOFF)
    acted = max(i for i, word in enumerate(state.rounds) if word)
    mean = expected_result(state, hand.holes, "".join(hand.board)[: 2 * state.game.visible(acted)])
    near = all(abs(given - right) <= EXPECTED_TOLERANCE for given, right in zip(hand.payoffs, mean, strict=True))
    return Verdict(VALID, expected=True) if near else Verdict(PAYOFF)
