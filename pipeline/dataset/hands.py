"""Decisions one by one and hand by hand, as a person reads them: texts in place of codes.

In go rows of a dataset (`load.Decisions`), out come `Decision`s, and `PlayedHand`s: one player's decisions of one hand,
in their order. Rows become texts some thousands at a time, so that going through a large dataset takes little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import STREETS, betting_text
from pipeline.poker.cards import NO_CARD, RANKS, SUITS
from pipeline.runtime.array_types import Array
from pipeline.runtime.tabular import Tabular

if TYPE_CHECKING:
    from pipeline.dataset.load import Decisions

ROWS_AT_ONCE = 8192
"""rows that become texts together"""


class Decision(NamedTuple):
    """A decision: what the player saw, did, and won in the whole hand."""

    agent: str
    opponents: str
    street: str
    position: int
    hole: str
    board: str
    betting: str
    """the labels of all actions before it, streets separated by `/`"""
    pot: int
    to_call: int
    action: str
    """the label's letter"""
    amount: int | None
    """the total that a raise goes to over the whole hand"""
    result: float
    """the hand's net chips for the agent"""
    validation: bool
    file: str
    line: int
    hand: int
    k: int

    def __str__(self) -> str:
        cards = f"{self.hole} on {self.board}" if self.board else self.hole
        total = "" if self.amount is None else f" to {self.amount}"
        return (
            f"{self.agent}, {self.street}, {cards}, after {self.betting or 'nothing'}, pot {self.pot}, "
            f"{self.to_call} to call: {self.action}{total}"
        )


@dataclass(frozen=True, repr=False)
class PlayedHand(Tabular):
    """One player's decisions of one hand."""

    decisions: tuple[Decision, ...]

    @property
    def last(self) -> Decision:
        """Return the last decision, which has the player, the cards, the result and the place in the logs."""
        return self.decisions[-1]

    @property
    def betting(self) -> str:
        """Return the labels of all actions up to the player's last one."""
        return self.last.betting + self.last.action

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per decision."""
        return [decision._asdict() for decision in self.decisions]

    def __len__(self) -> int:
        return len(self.decisions)

    def __repr__(self) -> str:
        last = self.last
        cards = f"{last.hole} on {last.board}" if last.board else last.hole
        return (
            f"<Hand {last.hand} of {last.file}: {last.agent} against {last.opponents}, {cards}, {self.betting}, "
            f"{last.result:+g} chips>"
        )


def card_texts(cards: Array) -> Array:
    """Return the texts of (n, k) cards, those that are NO_CARD left out."""
    texts = np.array([rank + suit for rank in RANKS for suit in SUITS] + [""], dtype=object)
    codes = np.where(cards == NO_CARD, len(texts) - 1, cards)
    joined = texts[codes[:, 0]]
    for i in range(1, codes.shape[1]):
        joined = joined + texts[codes[:, i]]
    return np.asarray(joined)


def betting_texts(codes: Array, nolimit: bool) -> Array:
    """Return the texts of betting codes; each distinct code is translated once."""
    values, inverse = np.unique(codes, return_inverse=True)
    return np.array([betting_text(int(value), nolimit) for value in values], dtype=object)[inverse]


def _betting_so_far(rows: Array, nolimit: bool) -> list[str]:
    """Return the betting of all streets up to each row's, separated by `/`."""
    by_street = [betting_texts(rows["betting_codes"][:, i], nolimit) for i in range(rows["betting_codes"].shape[1])]
    return [
        "/".join("" if text == "-" else text for text in texts[: street + 1])
        for street, *texts in zip(rows["street"].tolist(), *by_street, strict=True)
    ]


def list_decisions(decisions: Decisions) -> list[Decision]:
    """Return some decisions as texts."""
    rows, game = decisions.rows, decisions.game
    columns = [
        [decisions.agents[number] for number in decisions.agent],
        [decisions.opponents[number] for number in decisions.opponent],
        [STREETS[number] for number in rows["street"]],
        rows["position"].tolist(),
        card_texts(rows["hole"]),
        card_texts(rows["board"]),
        _betting_so_far(rows, game.nolimit),
        rows["pot"].tolist(),
        rows["to_call"].tolist(),
        [game.labels[number] for number in decisions.action],
        [amount or None for amount in decisions.amount.tolist()],
        decisions.result.tolist(),
        decisions.validation.tolist(),
        [decisions.files[number] for number in decisions.file],
        decisions.line.tolist(),
        decisions.hand.tolist(),
        decisions.k.tolist(),
    ]
    return [Decision(*cells) for cells in zip(*columns, strict=True)]


def iterate_decisions(decisions: Decisions, order: Array | None = None) -> Iterator[Decision]:
    """Yield decisions as texts, in their order or in another."""
    for first in range(0, len(decisions), ROWS_AT_ONCE):
        last = first + ROWS_AT_ONCE
        yield from list_decisions(decisions[slice(first, last) if order is None else order[first:last]])


def iterate_hands(decisions: Decisions) -> Iterator[PlayedHand]:
    """Yield each player's hands in the order of the logs."""
    order = np.lexsort((decisions.k, decisions.line, decisions.file, decisions.agent))
    hand: list[Decision] = []
    for decision in iterate_decisions(decisions, order):
        if hand and (decision.agent, decision.file, decision.line) != (hand[0].agent, hand[0].file, hand[0].line):
            yield PlayedHand(tuple(hand))
            hand = []
        hand.append(decision)
    if hand:
        yield PlayedHand(tuple(hand))
