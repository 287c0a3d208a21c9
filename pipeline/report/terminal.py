"""Write a logged hand as text for the terminal: each street, each player's actions, and what agents would play.

In goes a `HandStory`, out come lines. What an agent says stands below the decision, indented and with an arrow, so that
it is not taken for a player of the hand.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.hand_story import HandStory, SeatStory
from pipeline.poker.cards import SUIT_SIGNS

WIDTH = 24
SIGNS = str.maketrans(SUIT_SIGNS)


def cards_with_signs(cards: str) -> str:
    """Return cards with the signs of their suits.

    >>> cards_with_signs("9cKh")
    '9♣ K♥'
    """
    return " ".join(cards[i : i + 2].translate(SIGNS) for i in range(0, len(cards), 2))


def mix_text(mix: npt.NDArray[np.floating], labels: str) -> str:
    """Return a mix as percentages and as a bar of letters.

    >>> mix_text(np.array([0.0, 0.25, 0.75]), "fcr")
    'ccccccrrrrrrrrrrrrrrrrrr  c 25 r 75'
    """
    ends = np.round(np.cumsum(mix) * WIDTH).astype(int)
    bar = "".join(letter * int(n) for letter, n in zip(labels, np.diff(ends, prepend=0), strict=True))
    percentages = " ".join(
        f"{label} {100 * share:.0f}" for label, share in zip(labels, mix, strict=True) if share >= 0.005
    )
    return f"{bar.ljust(WIDTH)}  {percentages}"


def hand_text(story: HandStory) -> str:
    """Return the whole hand: players and cards, every street, and who won with what."""
    lines = [f"hand {story.number} of {story.game}"]
    width = max(len(seat.name) + len(seat.position) + 3 for seat in story.seats)
    for seat in story.seats:
        lines.append(
            f"  {f'{seat.name} ({seat.position})'.ljust(width)}  {cards_with_signs(seat.cards)}  {seat.won:+g}"
        )
    street = ""
    action_width = max((len(decision.action) for decision in story.decisions), default=0)
    for decision in story.decisions:
        if decision.street != street:
            street = decision.street
            lines.append(f"{street}  {cards_with_signs(decision.board)}".rstrip())
        who = f"{decision.player} ({decision.position})".ljust(width)
        lines.append(f"  {who}  {decision.action.ljust(action_width)}  pot {decision.pot}")
        lines += [f"      → {name} would play  {_mix(mix, story.labels)}" for name, mix in decision.mixes.items()]
    if story.showdown:
        lines.append(f"showdown  {cards_with_signs(story.board)}".rstrip())
        for seat in story.seats:
            if not seat.folded:
                line = f"  {f'{seat.name} ({seat.position})'.ljust(width)}  {cards_with_signs(seat.cards)}"
                lines.append(line + (f"  {seat.hand}" if seat.hand else ""))
    lines.append(_result(story))
    return "\n".join(lines)


def _mix(mix: Mapping[str, float], labels: str) -> str:
    return mix_text(np.array([mix[label] for label in labels]), labels)


def _result(story: HandStory) -> str:
    """Return who won how much, and why."""
    if not story.winners:
        return "the pot is split"

    def won(seat: SeatStory) -> str:
        return f"{seat.name} wins {seat.won:g}" + (f" with {seat.hand}" if seat.hand else "")

    folded = [seat.name for seat in story.seats if seat.folded]
    why = f": {' and '.join(folded)} folded" if folded and not story.showdown else ""
    return ", ".join(won(seat) for seat in story.winners) + why
