"""Cards that are left, random draws among them, and who wins with more cards: what the kernels of standings share.

Hands enter as sums of keys and sets of ranks by suit, so that a card more costs two additions and a look-up. The room
is its own because two players are enumerated (`two_hands`) and more are sampled (`standings`), with the same cards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.poker.cards import FLUSH_BITS, NO_SUITS, Ranking, flush_suit, sum_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64


@kernel(leaf=True)
def card_bit(card: int) -> int:
    """A card's place in a set of ranks by suit, 16 bits for each suit."""
    return 1 << (16 * (int(card) & 3) + (int(card) >> 2))


@kernel(leaf=True)
def value_of(total: int, ranks: int, tables: Ranking) -> int:
    """The value of a hand from its cards' keys and its ranks by suit."""
    if total & FLUSH_BITS:
        return int(tables.flushes[(ranks >> (16 * flush_suit(total))) & 0x1FFF])
    return sum_value(total, tables)


@kernel(leaf=True)
def points(mine: int, other: int) -> float:
    """1 for the higher value, half for a split pot."""
    return 1.0 if mine > other else 0.5 if mine == other else 0.0


@kernel(leaf=True)
def draw(stream: Any, cards: Array, left: int, count: int) -> Any:
    """Shuffle `count` random cards of the first `left` to the front; the stream goes on."""
    for k in range(count):
        stream = hash64(stream + np.uint64(1))
        other = k + int(((stream >> np.uint64(32)) * np.uint64(left - k)) >> np.uint64(32))
        cards[k], cards[other] = cards[other], cards[k]
    return stream


@kernel(leaf=True)
def unseen(hole: Array, board: Array, known: int, cards: Array) -> int:
    """Write the cards that nobody holds and that do not lie open to `cards`; returns how many."""
    used = 0
    for p in range(hole.shape[0]):
        used |= 1 << int(hole[p, 0]) | 1 << int(hole[p, 1])
    for k in range(known):
        used |= 1 << int(board[k])
    left = 0
    for card in range(52):
        if used >> card & 1 == 0:
            cards[left] = card
            left += 1
    return left


@kernel(leaf=True)
def add_up(hole: Array, board: Array, known: int, tables: Ranking, totals: Array, ranks: Array) -> None:
    """Keys and ranks of each player's cards with the open board; the entry after the last player is the board alone."""
    players = hole.shape[0]
    totals[players] = NO_SUITS
    ranks[players] = 0
    for k in range(known):
        totals[players] += tables.keys[board[k]]
        ranks[players] |= card_bit(board[k])
    for p in range(players):
        totals[p] = totals[players] + tables.keys[hole[p, 0]] + tables.keys[hole[p, 1]]
        ranks[p] = ranks[players] | card_bit(hole[p, 0]) | card_bit(hole[p, 1])
