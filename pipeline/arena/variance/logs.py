"""Hands as logs tell them (`acpc.Hand`) made into `HandRecords`.

Text goes in, arrays come out; the room is its own because the estimator itself never sees text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pipeline.arena.variance.records import HandRecords
from pipeline.formats.acpc import Hand
from pipeline.poker.cards import NO_CARD, parse_cards
from pipeline.poker.game import Game, Walk, actions
from pipeline.runtime.array_types import Array
from pipeline.runtime.numeric import hash_rows


def records_of(game: Game, hands: Sequence[Hand], deals: Array) -> tuple[HandRecords, list[str]]:
    """The records of hands, and the names of the players that their `seats` number.

    Parameters: `deals` (hands,) uint64, the same for hands of the same cards.

    Raises `ValueError` for hands that cannot have been dealt: kernels take the cards as numbers into tables.
    """
    walk, count, players = Walk(game), len(hands), game.players
    played = lru_cache(maxsize=1 << 16)(lambda betting: _labels(walk, betting))
    names: dict[str, int] = {}
    longest = max((len(hand.betting) for hand in hands), default=0)
    hole, board = np.full((count, players, 2), NO_CARD, np.uint8), np.full((count, 5), NO_CARD, np.uint8)
    labels, sizes = np.zeros((count, longest), np.uint8), np.zeros((count, longest), np.int64)
    seats = np.zeros((count, players), np.int64)
    for i, hand in enumerate(hands):
        if len(hand.names) != players or len(hand.holes) != players:
            raise ValueError(f"hand {hand.number} is not one of {players} players")
        for p, text in enumerate(hand.holes):
            cards = parse_cards(text)
            hole[i, p, : len(cards)] = cards
        shown = parse_cards("".join(hand.board))
        board[i, : len(shown)] = shown
        taken, totals, visible = played(hand.betting)
        if len(shown) < visible:
            raise ValueError(f"hand {hand.number} has {len(shown)} cards on the board where {visible} were seen")
        labels[i, : len(taken)], sizes[i, : len(taken)] = taken, totals
        seats[i] = [names.setdefault(name, len(names)) for name in hand.names]
    dealt = np.sort(np.concatenate([hole.reshape(count, -1), board], axis=1), axis=1)
    twice = (dealt[:, 1:] == dealt[:, :-1]) & (dealt[:, 1:] != NO_CARD)
    if twice.any():
        raise ValueError(f"a card of hand {hands[int(np.argmax(twice.any(axis=1)))].number} was dealt twice")
    numbers = np.array([hand.number for hand in hands], np.int64).astype(np.uint64)
    payoffs = np.array([hand.payoffs for hand in hands], np.float64).reshape(count, players)
    if not np.isfinite(payoffs).all():
        raise ValueError("a hand has results that are no numbers")
    records = HandRecords(
        game=game,
        hole=hole,
        board=board,
        labels=labels,
        sizes=sizes,
        payoffs=payoffs,
        seats=seats,
        deals=deals,
        streams=hash_rows(np.stack([deals, numbers], axis=1)),
    )
    return records, list(names)


def complete(records: HandRecords) -> bool:
    """Whether everybody's hole cards are known in all hands."""
    return bool((records.hole[:, :, : records.game.hole_cards] != NO_CARD).all())


def _labels(walk: Walk, betting: str) -> tuple[list[int], list[int], int]:
    """Label + 1 and total of each action of a hand's betting, and how many cards of the board were seen in the end."""
    state, labels, sizes = walk.start, [], []
    for action, size in actions(betting):
        labels.append(state.label_of(action, size) + 1)
        sizes.append(size)
        state = walk.after(state, action, size)
    return labels, sizes, state.game.visible(state.round)
