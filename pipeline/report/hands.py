"""A decision drawn: the cards, the betting so far, what the agent did and what models say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.dataset.decisions import STREETS
from pipeline.poker.cards import NO_CARD, RANKS, SUIT_SIGNS, SUITS
from pipeline.report.markup import escape
from pipeline.report.plots import mix_bar
from pipeline.report.words import WORDS


def card(number: int) -> str:
    """One card, drawn; a card not seen is a dashed back."""
    if number == NO_CARD:
        return '<span class="card back">?</span>'
    suit = SUITS[number & 3]
    look = "card red" if suit in "dh" else "card"
    return f'<span class="{look}">{RANKS[number >> 2]}{SUIT_SIGNS[suit]}\ufe0e</span>'


def hand(
    row: Any,
    labels: str,
    *,
    title: str,
    taken: int,
    mixes: Sequence[tuple[str, npt.NDArray[np.floating]]],
    betting: Sequence[str] = (),
    note: str = "",
    amount: int = 0,
) -> str:
    """One OBSERVATION row as a panel; `mixes` are (whose, probabilities), `betting` a line per street.

    `amount` is the total that the agent raised to, 0 where it did not or the game has no amounts.
    """
    street = int(row["street"])
    cuts = (0, 3, 4, 5)
    groups = [("hole", [int(c) for c in row["hole"] if c != NO_CARD])]
    for i in range(1, street + 1):
        cards = [int(c) for c in row["board"][cuts[i - 1] : cuts[i]] if c != NO_CARD]
        if cards:
            groups.append((STREETS[i], cards))
    shown = "".join(
        f"<div><small>{name}</small>{''.join(card(number) for number in cards)}</div>" for name, cards in groups
    )
    bars = "".join(f'<div class="said">{escape(whose)}</div>{mix_bar(mix, labels, WORDS)}' for whose, mix in mixes)
    done = WORDS.get(labels[taken], labels[taken]) + (f" to {amount:,}" if amount else "")
    return (
        f'<div class="hand"><h4>{escape(title)}</h4><div class="said">{escape(note)}</div>'
        f'<div class="cards">{shown}</div>'
        f'<div class="bet">{"<br/>".join(escape(line) for line in betting)}</div>'
        f'<div class="said">pot {int(row["pot"])}, {int(row["to_call"])} to call; '
        f"the agent did: <b>{escape(done)}</b></div>{bars}</div>"
    )
