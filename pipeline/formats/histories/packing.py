"""Hands of histories as plain arrays: what the kernels take and what they leave.

Both readers fill a `Packed`, `pack` from a `History` and the byte kernel straight from the text; `replay.play` turns it
into an `Outcome`. The arrays are made once and used for hand after hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.formats.histories.history import History, HistoryError
from pipeline.poker.cards import NO_CARD, NUMBERS
from pipeline.poker.rules import MAX_PLAYERS, NO_STACK, RULES_SIZE, STATE_SIZE
from pipeline.runtime.array_types import Array

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
