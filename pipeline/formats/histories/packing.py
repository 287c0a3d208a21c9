"""Hands of histories as arrays: the input and the output of the kernels.

Both readers fill a `PackedHand`: `pack` from a `History`, the byte kernel straight from the text. `replay.play` makes
an `Outcome` of it. The arrays are made once and used for hand after hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.formats.acpc import MOST_ACTIONS
from pipeline.formats.histories.history import History, HistoryError
from pipeline.poker.cards import NO_CARD, NUMBERS
from pipeline.poker.rules import MAX_PLAYERS, NO_STACK, RULES_SIZE, STATE_SIZE
from pipeline.runtime.array_types import Array

MOST_ENTRIES = 512
"""entries of a hand's `actions`, deals and shows included"""

# The entries of a hand
DEAL_HOLE, DEAL_BOARD, FOLDS, CALLS, RAISES, SHOWS, MUCKS = range(7)

# PackedHand.chips, a row each
ANTES, BLINDS, STACKS, WINNINGS, FINISHING = range(5)

# where results come from
UNKNOWN, BY_RULES, BY_SOURCE = range(3)

HEAD = np.dtype(
    [
        ("nolimit", np.int64),
        ("players", np.int64),
        ("trimmed", np.int64),
        ("small_bet", np.int64),  # the minimum bet in no-limit
        ("big_bet", np.int64),
        ("entries", np.int64),
        ("winnings", np.int64),  # whether the source gives them
        ("finishing", np.int64),  # whether the source gives finishing stacks
    ]
)
FACTS = np.dtype(
    [
        ("actions", np.int64),  # number of decisions
        ("opened", np.int64),  # board cards
        ("partial", np.int64),
        ("showdown", np.int64),
        ("shown", np.int64),  # a bit per player
        ("mucked", np.int64),  # a bit per player
        ("source", np.int64),  # of the result: UNKNOWN, BY_RULES, BY_SOURCE
        ("flagged", np.int64),
        ("rake", np.int64),
        ("pot", np.int64),
    ]
)


class PackedHand(NamedTuple):
    """A hand as arrays of its fields."""

    head: Array
    """(1,) HEAD"""
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
    """The state after a hand was played: betting, cards and results."""

    rules: Array
    state: Array
    facts: Array
    """(1,) FACTS"""
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


def packed() -> PackedHand:
    """Return empty arrays for a hand."""
    return PackedHand(
        head=np.zeros(1, dtype=HEAD),
        chips=np.zeros((5, MAX_PLAYERS), dtype=np.int64),
        kinds=np.zeros(MOST_ENTRIES, dtype=np.uint8),
        who=np.zeros(MOST_ENTRIES, dtype=np.uint8),
        amounts=np.zeros(MOST_ENTRIES, dtype=np.int64),
        cards=np.zeros((MOST_ENTRIES, 3), dtype=np.uint8),
        counts=np.zeros(MOST_ENTRIES, dtype=np.uint8),
    )


def outcome() -> Outcome:
    """Return empty arrays for the outcome of a hand."""
    return Outcome(
        rules=np.zeros(RULES_SIZE, dtype=np.int64),
        state=np.zeros(STATE_SIZE, dtype=np.int64),
        facts=np.zeros(1, dtype=FACTS),
        hole=np.zeros((MAX_PLAYERS, 2), dtype=np.uint8),
        board=np.zeros(5, dtype=np.uint8),
        places=np.zeros(MOST_ACTIONS, dtype=np.uint8),
        totals=np.zeros(MOST_ACTIONS, dtype=np.int64),
        result=np.zeros(MAX_PLAYERS, dtype=np.float64),
        due=np.zeros(MAX_PLAYERS, dtype=np.float64),
        values=np.zeros(MAX_PLAYERS, dtype=np.int64),
    )


def pack(history: History, into: PackedHand | None = None) -> PackedHand:
    """Return a `History` as the arrays that `play` takes."""
    hand = into or packed()
    if len(history.actions) > MOST_ENTRIES:
        raise HistoryError(f"betting: more than {MOST_ENTRIES} entries")
    small = history.min_bet if history.nolimit else history.small_bet
    big = history.min_bet if history.nolimit else history.big_bet
    given = bool(history.winnings), bool(history.finishing_stacks)
    hand.head[0] = history.nolimit, history.count, history.trimmed, small, big, 0, *given
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
    entry = 0
    for action in history.actions:
        if not action.kind:
            continue
        cards = ["??"] if action.cards == "-" else [action.cards[i : i + 2] for i in range(0, len(action.cards), 2)]
        hand.kinds[entry] = MUCKS if action.kind == "sm" and not cards else kinds[action.kind]
        hand.who[entry] = max(action.player, 0)
        hand.amounts[entry] = action.amount
        hand.counts[entry] = min(len(cards), 4)
        hand.cards[entry] = NO_CARD
        for i, card in enumerate(cards[:3]):
            hand.cards[entry, i] = NUMBERS.get(card, NO_CARD)
        entry += 1
    hand.head[0]["entries"] = entry
    return hand
