"""Sets of cards as kernels take them: the cards that are left, draws from them, and values from sums.

A set of cards has two forms. As a bit per card (`card_bits`) it says which cards are taken and which are left. As the
sum of its cards' keys (see `pipeline.poker.cards`) and its ranks by suit, 16 bits for each suit (`add_up`), it enters
a showdown: both parts add up, so one more card costs an addition and an `or`, and `set_value` is a look-up or two.
Whatever walks over boards or draws them is made of these: all-in payoffs, strengths, simulation, variance reduction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.poker.cards import FLUSH_BITS, NO_CARD, NO_SUITS, Ranking, flush_suit, sum_value
from pipeline.runtime.array_types import Array, Bytes
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bits_below, hash64

# Which cards are left


@kernel(leaf=True)
def card_bits(cards: Array, count: int) -> int:
    """Return a bit for each of the first `count` cards; NO_CARD has none."""
    taken = 0
    for i in range(count):
        if cards[i] != NO_CARD:
            taken |= 1 << int(cards[i])
    return taken


@kernel(leaf=True)
def unseen(taken: int, deck: Bytes) -> int:
    """Write the cards whose bit is not in `taken` to `deck`, ascending; return how many."""
    count = 0
    for card in range(52):
        if taken >> card & 1 == 0:
            deck[count] = card
            count += 1
    return count


@kernel(leaf=True)
def not_in_deck(ranks: int, suits: int) -> int:
    """Return a bit for each card that is not in a deck of the highest `ranks` and the last `suits`."""
    missing = 0
    for card in range(52):
        if card >> 2 < 13 - ranks or card & 3 < 4 - suits:
            missing |= 1 << card
    return missing


@kernel
def run_outs(taken: int, cards: int) -> Bytes:
    """Return all sets of `cards` (0 to 2) cards whose bits are not in `taken`, one per row, higher card first."""
    deck = np.empty(52, np.uint8)
    count = unseen(taken, deck)
    out = np.empty((1 if cards == 0 else count if cards == 1 else count * (count - 1) // 2, cards), np.uint8)
    row = 0
    for i in range(count if cards > 0 else 0):
        for j in range(i if cards > 1 else 1):
            out[row, 0] = deck[i]
            if cards > 1:
                out[row, 1] = deck[j]
            row += 1
    return out


@kernel(leaf=True)
def draw(stream: Any, deck: Array, size: int, count: int) -> Any:
    """Shuffle `count` random cards of the first `size` to the front; return the advanced random stream.

    A partial Fisher-Yates shuffle: the deck may be in any order before, so it need not be restored between draws.
    """
    for k in range(count):
        stream = hash64(stream + np.uint64(1))
        other = k + bits_below(stream, size - k)
        deck[k], deck[other] = deck[other], deck[k]
    return stream


# Values from sums


@kernel(leaf=True)
def rank_bit(card: int) -> int:
    """Return a card's bit in a set of ranks by suit."""
    return 1 << (16 * (int(card) & 3) + (int(card) >> 2))


@kernel(leaf=True)
def add_up(cards: Array, count: int, tables: Ranking) -> tuple[int, int]:
    """Return the sum of the keys of the first `count` cards, and their ranks by suit."""
    total = 0
    ranks = 0
    for i in range(count):
        total += tables.keys[cards[i]]
        ranks |= rank_bit(cards[i])
    return total, ranks


@kernel(leaf=True)
def set_value(total: int, ranks: int, tables: Ranking) -> int:
    """Return the value of five to seven cards from NO_SUITS plus their keys, and their ranks by suit."""
    # the ranks by suit are needed for flushes only; without one the sum alone says all
    if total & FLUSH_BITS:
        return int(tables.flushes[(ranks >> (16 * flush_suit(total))) & 0x1FFF])
    return sum_value(total, tables)


@kernel(leaf=True)
def pot_share(mine: int, other: int) -> float:
    """Return the share of the pot of one value against another: 1, half or 0."""
    return 1.0 if mine > other else 0.5 if mine == other else 0.0


@kernel(leaf=True)
def add_up_hands(hole: Array, board: Array, count: int, tables: Ranking, totals: Array, ranks: Array) -> None:
    """Write the sum (from NO_SUITS) and the ranks of each player's cards with the first `count` board cards.

    The entry after the last player's is that of the board alone.
    """
    players = hole.shape[0]
    board_sum, board_ranks = add_up(board, count, tables)
    totals[players] = NO_SUITS + board_sum
    ranks[players] = board_ranks
    for p in range(players):
        hand_sum, hand_ranks = add_up(hole[p], 2, tables)
        totals[p] = totals[players] + hand_sum
        ranks[p] = board_ranks | hand_ranks
