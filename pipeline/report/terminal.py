"""A logged hand as text for the terminal: street by street, who did what, and what agents would have played.

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
    """Cards with the signs of their suits.

    >>> cards_with_signs("9cKh")
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


def hand_text(story: HandStory) -> str:
    """The whole hand: players and cards, every street, and who won with what."""
    lines = [f"hand {story.number} of {story.game}"]
    width = max(len(seat.name) + len(seat.position) + 3 for seat in story.seats)
    for seat in story.seats:
        lines.append(
            f"  {f'{seat.name} ({seat.position})'.ljust(width)}  {cards_with_signs(seat.cards)}  {seat.won:+g}"
        )
    street = ""
    deed = max((len(one.action) for one in story.decisions), default=0)
    for one in story.decisions:
        if one.street != street:
            street = one.street
            lines.append(f"{street}  {cards_with_signs(one.board)}".rstrip())
        who = f"{one.player} ({one.position})".ljust(width)
        lines.append(f"  {who}  {one.action.ljust(deed)}  pot {one.pot}")
        lines += [f"      → {name} would play  {_mix(mix, story.labels)}" for name, mix in one.mixes.items()]
    if story.showdown:
        lines.append(f"showdown  {cards_with_signs(story.board)}".rstrip())
        for seat in story.seats:
            if not seat.folded:
                shown = f"  {f'{seat.name} ({seat.position})'.ljust(width)}  {cards_with_signs(seat.cards)}"
                lines.append(shown + (f"  {seat.hand}" if seat.hand else ""))
    lines.append(_result(story))
    return "\n".join(lines)


def _mix(mix: Mapping[str, float], labels: str) -> str:
    return mix_text(np.array([mix[label] for label in labels]), labels)


def _result(story: HandStory) -> str:
    """Who won how much, and why."""
    if not story.winners:
        return "the pot is split"

    def won(seat: SeatStory) -> str:
        return f"{seat.name} wins {seat.won:g}" + (f" with {seat.hand}" if seat.hand else "")

    folded = [seat.name for seat in story.seats if seat.folded]
    why = f": {' and '.join(folded)} folded" if folded and not story.showdown else ""
    return ", ".join(won(seat) for seat in story.winners) + why
