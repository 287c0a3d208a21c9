"""Hidden hole cards, imputed by iterated sampling from models of all players' actions (stochastic EM).

People's cards are known only where they were shown, and who shows has not folded: a model of those rows alone never
folds. Here every player's hand counts. In: the rows of all streets, numbered by hand of a player, and which of these
hands were shown. Out: hole cards for all of them. The cards of the others are first drawn as they were dealt, any
two equally likely; then, in turns, models are trained on all rows as if the cards were true, and each hidden hand
chooses among its cards and some fresh ones, each as likely as the models say its actions are with them. The shown
hands and the known odds of the deal are what the draws settle on (a stochastic EM algorithm, whose draws are iterated
sampling importance resampling). Models trained on the last draws together are what was looked for.

The models of all streets are needed at once, where all other training goes street by street.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import fill_hole_cards
from pipeline.models.kinds import Model
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.poker.cards import NO_CARD, ranking
from pipeline.runtime.array_types import Array

DECK = 52
DRAW_ROUNDS = 8
"""how often models are trained and cards drawn"""
CANDIDATES = 8
"""cards among which a hidden hand chooses in each round, those it has included"""
KEPT_DRAWS = 3
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
    """Return the street's rows with the hole cards (hands, 2) of their hands."""
    rows = street.rows.copy()
    fill_hole_cards(rules, np.ascontiguousarray(holes[street.hand]), ranking(), rows)
    return rows


def draw_hidden(
    streets: Sequence[HandRows],
    is_shown: NDArray[np.bool_],
    rules: Array,
    fit: Callable[[int, Array], Model],
    *,
    rounds: int = DRAW_ROUNDS,
    tries: int = CANDIDATES,
    seed: int = 1,
) -> list[Array]:
    """Draw hole cards for all hands, several times over.

    Parameters: the rows of each street; whether the cards of each hand in them are known; the game's rules; `fit`,
    which trains the model of a street (its number) on that street's rows; how often and among how many cards to draw.

    Returns the last `KEPT_DRAWS` draws, (hands, 2) each; the cards of shown hands are their own in all of them.
    """
    generator = np.random.default_rng(seed)
    holes_drawn = np.full((len(is_shown), 2), NO_CARD, np.uint8)
    board = np.full((len(is_shown), 5), NO_CARD, np.uint8)
    for street in streets:  # the last street's board is the fullest
        holes_drawn[street.hand], board[street.hand] = street.rows["hole"], street.rows["board"]
    hidden = np.flatnonzero(~is_shown)
    holes_drawn[hidden] = _deal_hole_cards(board[hidden], generator)
    draws = [holes_drawn]
    unseen = [
        street._replace(rows=street.rows[row_numbers], action=street.action[row_numbers], hand=street.hand[row_numbers])
        for street in streets
        for row_numbers in [np.flatnonzero(~is_shown[street.hand])]
    ]
    for _ in range(rounds):
        models = [fit(number, with_cards(rules, street, draws[-1])) for number, street in enumerate(streets)]
        choices = np.repeat(draws[-1][None], tries, axis=0)
        for other in choices[1:]:
            other[hidden] = _deal_hole_cards(board[hidden], generator)
        scores = np.stack([_likelihood(rules, unseen, models, holes) for holes in choices])
        chosen = (scores + generator.gumbel(size=scores.shape)).argmax(axis=0)  # in proportion to the likelihoods
        draws.append(choices[chosen, np.arange(len(is_shown))])
    return draws[-KEPT_DRAWS:]


def _likelihood(rules: Array, streets: Sequence[HandRows], models: Sequence[Model], holes: Array) -> Array:
    """Return (hands,) the logarithm of the probability of all actions of each hand with these cards."""
    total = np.zeros(len(holes))
    for street, model in zip(streets, models, strict=True):
        if len(street.rows):
            chances = model.predict(with_cards(rules, street, holes))[np.arange(len(street.rows)), street.action]
            total += np.bincount(street.hand, np.log(np.maximum(chances, LEAST_PROBABILITY)), len(holes))
    return total


def _deal_hole_cards(boards: Array, generator: np.random.Generator) -> Array:
    """Deal two cards that are not on the board to each row, all pairs equally likely."""
    holes = np.empty((len(boards), 2), np.uint8)
    pending = np.arange(len(boards))
    while len(pending):
        cards = generator.integers(0, DECK, (len(pending), 2)).astype(np.uint8)
        taken = (cards[:, 0] == cards[:, 1]) | (cards[:, :, None] == boards[pending][:, None, :]).any(axis=(1, 2))
        holes[pending[~taken]] = cards[~taken]
        pending = pending[taken]
    return holes
