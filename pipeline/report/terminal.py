"""A logged hand as text: street by street, who did what, and what agents would have played in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.acpc import Hand
from pipeline.cards import SUIT_SIGNS, parse_cards
from pipeline.decisions import STREETS, observation
from pipeline.errors import PipelineError
from pipeline.game import Game, actions
from pipeline.rules import RAISE

__all__ = ["hand_text", "mix_text"]

WIDTH = 24
SIGNS = str.maketrans(SUIT_SIGNS)


class Asked(Protocol):
    """Gives probabilities for what the acting player sees."""

    def probabilities(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Float64 (rows, labels)."""


def cards_text(cards: str) -> str:
    """Cards with the signs of their suits.

    >>> cards_text("9cKh")
    '9♣ K♥'
    """
    return " ".join(cards[i : i + 2].translate(SIGNS) for i in range(0, len(cards), 2))


def mix_text(mix: npt.NDArray[np.floating], labels: str) -> str:
    """A mix as percentages and as a bar of letters.

    >>> mix_text(np.array([0.0, 0.25, 0.75]), "fcr")
    'ccccccrrrrrrrrrrrrrrrrrr  c 25 r 75'
    """
    ends = np.round(np.cumsum(mix) * WIDTH).astype(int)
    bar = "".join(letter * int(n) for letter, n in zip(labels, np.diff(ends, prepend=0), strict=True))
    said = " ".join(f"{label} {100 * share:.0f}" for label, share in zip(labels, mix, strict=True) if share >= 0.005)
    return f"{bar.ljust(WIDTH)}  {said}"


def _did(action: int, size: int, facing: int) -> str:
    """An action in words."""
    if action == RAISE:
        return ("raises" if facing else "bets") + (f" to {size}" if size else "")
    return ("folds", "calls" if facing else "checks")[action]


def hand_text(hand: Hand, game: Game, asked: Sequence[tuple[str, Asked]] = ()) -> str:
    """The whole hand; under each decision of a player the mix of every agent asked."""
    if len(hand.names) != game.players:
        raise PipelineError(f"hand {hand.number} has {len(hand.names)} players, {game.name} has {game.players}")
    seats = ["big blind", "button"] if game.players == 2 and game.is_holdem else [f"position {i}" for i in range(9)]
    lines = [f"hand {hand.number} of {game.name}"]
    for name, seat, hole, payoff in zip(hand.names, seats, hand.holes, hand.payoffs, strict=False):
        lines.append(f"  {name} ({seat})  {cards_text(hole)}  {payoff:+g}")
    state = game.start()
    shown = -1
    width = max(len(name) for name in (*hand.names, *(who for who, _ in asked)))
    for action, size in actions(hand.betting):
        if state.round != shown:
            shown = state.round
            board = "".join(hand.board[:shown])
            lines.append(f"{STREETS[shown] if game.is_holdem else f'round {shown + 1}'}  {cards_text(board)}".rstrip())
        actor, betting = state.actor, state.betting
        lines.append(f"  {hand.names[actor].ljust(width)}  {_did(action, size, state.to_call)}  (pot {state.pot})")
        board_cards = parse_cards("".join(hand.board[:shown]))
        for who, agent in asked:
            row = observation(game, betting, actor, parse_cards(hand.holes[actor]), board_cards)
            lines.append(f"  {who.rjust(width)}  {mix_text(agent.probabilities(row)[0], game.labels)}")
        state = state.apply(action, size)
    return "\n".join(lines)
