"""Functions of two players' starting cards, each less its mean over all deals.

A game goes in; a table comes out: for every pair of classes of starting cards, numbers that say how well both are dealt
(equity, strengths, their products, traits). The room is its own because this is all that is known about a deal before
anybody acts.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from pipeline.poker.allin import board_counts
from pipeline.poker.cards import start_class
from pipeline.poker.game import Game
from pipeline.poker.starting_hands import class_matchups
from pipeline.runtime.array_types import Array


class Deals(NamedTuple):
    """Functions of two players' starting hands."""

    classes: Array
    """the class of two cards, [52, 52]; of one card in the first column"""
    functions: Array
    """(classes, classes, functions), each with mean zero over all deals"""


@lru_cache(maxsize=8)
def deal_functions(game: Game) -> Deals:
    """The deal's functions: products of up to three of the equity between the two and both strengths, and traits."""
    if game.is_holdem:
        match = class_matchups()
        weights, equity = match.pairs / match.pairs.sum(), match.equity
        classes = np.array([[start_class(a, b) for b in range(52)] for a in range(52)])
    else:
        deck = game.deck
        classes = np.zeros((52, 52), np.int64)
        classes[deck] = np.arange(len(deck))[:, None]
        weights = (1.0 - np.eye(len(deck))) / (len(deck) * (len(deck) - 1))
        equity = _single_card_equity(game)
    strength = (weights * equity).sum(axis=1) / weights.sum(axis=1)
    e = equity - 0.5
    a, b = np.broadcast_arrays((strength - 0.5)[:, None], (strength - 0.5)[None, :])
    raw = [e, a, b, e * e, e * a, e * b, a * a, b * b, a * b, e * e * e, a * a * b, b * b * a]
    if game.is_holdem:
        for trait in _traits():
            raw += [np.broadcast_to(trait[:, None], e.shape), np.broadcast_to(trait[None, :], e.shape)]
    return Deals(classes, np.stack([f - (weights * f).sum() for f in raw], axis=-1))


def _traits() -> list[Array]:
    """What strength alone does not tell of the 169 classes: pair, suited, high and low rank (0 to 1), closeness."""
    row, column = np.divmod(np.arange(169), 13)
    high, low = 1.0 - np.minimum(row, column) / 12, 1.0 - np.maximum(row, column) / 12
    pair, suited = (row == column) * 1.0, (row < column) * 1.0
    return [
        pair,
        suited,
        high,
        low,
        high * high,
        low * low,
        suited * high,
        np.maximum(0.0, low - high + 0.4) - 0.4 * pair,
    ]


def _single_card_equity(game: Game) -> Array:
    """Return the equity of row card against column card of the deck in a game of one hole card, over all boards."""
    size = len(game.deck)
    equity = np.full((size, size), 0.5)
    for i, j in permutations(range(size), 2):
        wins, ties, losses = board_counts(game, [game.deck[i]], [game.deck[j]], [])
        equity[i, j] = (wins + ties / 2) / (wins + ties + losses)
    return equity
