"""Cards that nobody saw, drawn again and again from what a model says of them.

People's cards are known only where they were shown, and who shows has not folded: a model of those rows alone never
folds. Here every player's hand counts. In go the rows of all streets, numbered by hand of a player, and which of these
hands were shown; out come hole cards for all of them. The cards of the others are first drawn as they were dealt, any
two equally likely; then, in turns, models are trained on all rows as if the cards were true, and each hidden hand
chooses among its cards and some fresh ones, each as likely as the models say its actions are with them. The shown
hands and the known odds of the deal are what the draws settle on (a stochastic EM algorithm, whose draws are iterated
sampling importance resampling). Models trained on the last draws together are what was looked for.

It is a room of its own because it needs models of all streets at once, where all else trains one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import hold
from pipeline.models.bundle import Model
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.poker.cards import NO_CARD, ranking
from pipeline.runtime.array_types import Array

DECK = 52
ROUNDS = 8
"""how often models are trained and cards drawn"""
TRIES = 8
"""cards among which a hidden hand chooses in each round, those it has included"""
KEPT = 3
"""draws that are given back: the last ones"""


class HandRows(NamedTuple):
    """The rows of a street."""

    rows: Array
    """OBSERVATION of hold'em"""
    action: Array
    """labels taken"""
    hand: Array
    """(rows,) which player's hand each is of: a number into all of them"""


def with_cards(rules: Array, street: HandRows, holes: Array) -> Array:
    """The street's rows with the hole cards (hands, 2) of their hands."""
    rows = street.rows.copy()
    hold(rules, np.ascontiguousarray(holes[street.hand]), ranking(), rows)
    return rows


def draw_hidden(
    streets: Sequence[HandRows],
    shown: NDArray[np.bool_],
    rules: Array,
    fit: Callable[[int, Array], Model],
    *,
    rounds: int = ROUNDS,
    tries: int = TRIES,
    seed: int = 1,
) -> list[Array]:
    """Hole cards of all hands, some times over.

    Parameters: the rows of each street; whether the cards of each hand in them are known; the game's rules; `fit`,
    which trains the model of a street (its number) on that street's rows; how often and among how many cards to draw.

    Returns the last `KEPT` draws, (hands, 2) each; the cards of shown hands are their own in all of them.
    """
    luck = np.random.default_rng(seed)
    own = np.full((len(shown), 2), NO_CARD, np.uint8)
    board = np.full((len(shown), 5), NO_CARD, np.uint8)
    for street in streets:  # the last street's board is the fullest
        own[street.hand], board[street.hand] = street.rows["hole"], street.rows["board"]
    hidden = np.flatnonzero(~shown)
    own[hidden] = _dealt(board[hidden], luck)
    draws = [own]
    unseen = [
        street._replace(rows=street.rows[at], action=street.action[at], hand=street.hand[at])
        for street in streets
        for at in [np.flatnonzero(~shown[street.hand])]
    ]
    for _ in range(rounds):
        models = [fit(number, with_cards(rules, street, draws[-1])) for number, street in enumerate(streets)]
        choices = np.repeat(draws[-1][None], tries, axis=0)
        for other in choices[1:]:
            other[hidden] = _dealt(board[hidden], luck)
        scores = np.stack([_likelihood(rules, unseen, models, holes) for holes in choices])
        chosen = (scores + luck.gumbel(size=scores.shape)).argmax(axis=0)  # in proportion to the likelihoods
        draws.append(choices[chosen, np.arange(len(shown))])
    return draws[-KEPT:]


def _likelihood(rules: Array, streets: Sequence[HandRows], models: Sequence[Model], holes: Array) -> Array:
    """(hands,) the logarithm of the probability of all actions of each hand with these cards."""
    total = np.zeros(len(holes))
    for street, model in zip(streets, models, strict=True):
        if len(street.rows):
            chances = model.predict(with_cards(rules, street, holes))[np.arange(len(street.rows)), street.action]
            total += np.bincount(street.hand, np.log(np.maximum(chances, LEAST_PROBABILITY)), len(holes))
    return total


def _dealt(boards: Array, luck: np.random.Generator) -> Array:
    """Two cards for each board, any two that it leaves equally likely."""
    holes = np.empty((len(boards), 2), np.uint8)
    left = np.arange(len(boards))
    while len(left):
        cards = luck.integers(0, DECK, (len(left), 2)).astype(np.uint8)
        taken = (cards[:, 0] == cards[:, 1]) | (cards[:, :, None] == boards[left][:, None, :]).any(axis=(1, 2))
        holes[left[~taken]] = cards[~taken]
        left = left[taken]
    return holes
