"""Cards: numbers and text, ranking of 5-7 cards, hand names, the 169 starting classes and suit patterns.

A card is `rank * 4 + suit` in a byte: ranks 0..12 are 2..A, suits 0..3 are c d h s; `NO_CARD` (255) is a card not
dealt or not seen. A hand's value is 1..7462, higher is better, equal values tie; 0 is no hand.

Ranking adds one 64-bit key per card. The low 16 bits count suits (four nibbles that start at 3: the top bit of a
nibble says flush); the high 32 bits add up to a number that differs for each of the 73,775 multisets of 5-7 ranks.
A flush looks up the ranks of its suit; anything else looks up the sum in a perfect hash (its top 15 bits choose a
displacement that is added to its low 17 bits). `tools/tables.py` makes the tables (0.4 MB, in resources).

The suit pattern of a hand is the thesis's abstraction. Preflop: `a` suited, `bc` otherwise. Later one letter per board
card, high rank first: `a` = suit of suited holes; `b`, `c` = suit of the higher, lower hole card; other suits
`e`, `g`, `i` in order of appearance. Equal board ranks, and `b`/`c` of a pocket pair, are put in the order that gives
the alphabetically smallest string. A suit is live if it can still have three board cards by the river; with no
live suit the pattern is `-`. The coarser `flush` writes `.` for dead suits first. Both are packed in octal, first
letter most significant: `-` 0, `a` 1, `b` 2, `c` 3, `e` 4, `g` 5, `i` 6, `.` 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.runtime.array_types import Bytes
from pipeline.runtime.arrays import bundled_arrays
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel

RANKS = "23456789TJQKA"
SUITS = "cdhs"
SUIT_SIGNS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
"""suits as signs"""
NUMBERS = {rank + suit: 4 * r + s for r, rank in enumerate(RANKS) for s, suit in enumerate(SUITS)}
NO_CARD = 255
CATEGORIES = (
    "high card",
    "pair",
    "two pair",
    "three of a kind",
    "straight",
    "flush",
    "full house",
    "four of a kind",
    "straight flush",
)
NO_SUITS = 0x3333  # three in each suit counter: a fifth card sets its top bit
FLUSH_BITS = 0x8888
SLOT_BITS = 17
SLOT_MASK = (1 << SLOT_BITS) - 1
HIGH_MASK = 0xFFFFFFFF
LETTERS = "-abcegi."


# Text


def parse_card(text: str) -> int:
    """Return the number of a card.

    >>> parse_card("2c"), parse_card("As")
    (0, 51)
    """
    if text not in NUMBERS:
        raise PipelineError(f"{text!r} is not a card; write a rank of {RANKS} and a suit of {SUITS}, as in Th")
    return NUMBERS[text]


def parse_cards(text: str, count: int | None = None) -> Bytes:
    """Return the numbers of cards written one after another, spaces allowed; all must differ.

    >>> parse_cards("2c As").tolist()
    [0, 51]
    """
    packed = text.replace(" ", "")
    if len(packed) % 2:
        raise PipelineError(f"{text!r} has half a card; write each card as rank and suit, as in Th2c")
    words = [packed[i : i + 2] for i in range(0, len(packed), 2)]
    numbers = [NUMBERS[word] if word in NUMBERS else parse_card(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise PipelineError(f"{text!r} has the same card twice")
    if count is not None and len(numbers) != count:
        raise PipelineError(f"{text!r} has {len(numbers)} cards where {count} are needed")
    return np.array(numbers, np.uint8)


def card_text(card: int) -> str:
    """Return the text of a card.

    >>> card_text(51)
    'As'
    """
    if not 0 <= card < 52:
        raise PipelineError(f"{card} is not a card number; they go from 0 (2c) to 51 (As)")
    return RANKS[card // 4] + SUITS[card % 4]


def cards_text(cards: Iterable[int]) -> str:
    """Return the text of several cards, leaving out those not dealt."""
    return "".join(card_text(int(card)) for card in cards if card != NO_CARD)


# Ranking


class Ranking(NamedTuple):
    """Tables that ranking kernels take as one argument."""

    keys: npt.NDArray[np.int64]
    """per card: what it adds to a hand's sum"""
    displacements: npt.NDArray[np.uint16]
    values: npt.NDArray[np.uint16]
    """value by slot of the perfect hash, for hands without a flush"""
    flushes: npt.NDArray[np.uint16]
    """value by set of ranks of the flush's suit"""
    names: npt.NDArray[np.uint16]
    """hand name id by value"""


@cache
def ranking() -> Ranking:
    """Return the ranking tables, read once."""
    return Ranking(**bundled_arrays("pipeline.poker", "ranking.npz"))


@kernel(leaf=True)
def sum_value(total: int, tables: Ranking) -> int:
    """Return the value of a hand without a flush from NO_SUITS plus its cards' keys."""
    high = (total >> 32) & HIGH_MASK
    # each run of 2^17 sums has a displacement that moves them to slots no other sum uses: two loads, no search
    return int(tables.values[(high + tables.displacements[high >> SLOT_BITS]) & SLOT_MASK])


@kernel(leaf=True)
def flush_suit(total: int) -> int:
    """Return the suit whose counter in the sum says flush."""
    suit = 0
    # the counters start at 3, so the fifth card of a suit carries into the top bit of its nibble
    while total >> (4 * suit) & 8 == 0:
        suit += 1
    return suit


@kernel(leaf=True)
def suit_ranks(cards: Bytes, count: int, suit: int) -> int:
    """Return the set of ranks of one suit among the first `count` cards."""
    ranks = 0
    for i in range(count):
        if cards[i] & 3 == suit:
            ranks |= 1 << (cards[i] >> 2)
    return ranks


@kernel(leaf=True)
def hand_value(cards: Bytes, count: int, tables: Ranking) -> int:
    """Return the value of the first `count` (5-7) cards, which must be different cards."""
    total = NO_SUITS
    for i in range(count):
        total += tables.keys[cards[i]]
    # five of a suit leave no room for a full house or four of a kind in seven cards: the flush alone counts
    if total & FLUSH_BITS:
        return int(tables.flushes[suit_ranks(cards, count, flush_suit(total))])
    return sum_value(total, tables)


@kernel(leaf=True)
def holding_value(hole: Bytes, hole_count: int, board: Bytes, count: int, tables: Ranking) -> int:
    """Return the value of the first hole cards with the first board cards, five to seven in all."""
    total = NO_SUITS
    for i in range(hole_count):
        total += tables.keys[hole[i]]
    for i in range(count):
        total += tables.keys[board[i]]
    if total & FLUSH_BITS:
        suit = flush_suit(total)
        return int(tables.flushes[suit_ranks(hole, hole_count, suit) | suit_ranks(board, count, suit)])
    return sum_value(total, tables)


@kernel(leaf=True)
def _rank_rows(cards: Bytes, tables: Ranking, out: npt.NDArray[np.uint16]) -> None:
    for row in range(cards.shape[0]):
        total = NO_SUITS
        for i in range(cards.shape[1]):
            total += tables.keys[cards[row, i]]
        if total & FLUSH_BITS:  # rare: only here is the row cut out, which costs as much as the rest
            out[row] = tables.flushes[suit_ranks(cards[row], cards.shape[1], flush_suit(total))]
        else:
            out[row] = sum_value(total, tables)


def rank_hands(cards: Bytes) -> npt.NDArray[np.uint16]:
    """Return the value of each row of 5-7 card numbers (each row's cards must be different cards).

    >>> rank_hands(np.stack([parse_cards("AsKsQsJsTs"), parse_cards("7s5h4d3c2c")])).tolist()
    [7462, 1]
    """
    if cards.ndim != 2 or not 5 <= cards.shape[1] <= 7:
        raise PipelineError(f"ranking takes rows of 5 to 7 cards, not an array of shape {cards.shape}")
    if cards.size and int(cards.max()) > 51:
        raise PipelineError(f"{int(cards.max())} is not a card number; they go from 0 (2c) to 51 (As)")
    out = np.empty(len(cards), np.uint16)
    _rank_rows(np.ascontiguousarray(cards, np.uint8), ranking(), out)
    return out


# Hand names

_RANK_NAMES = (
    *("Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"),
    *("Jack", "Queen", "King", "Ace"),
)
_PLURALS = [name + ("es" if name == "Six" else "s") for name in _RANK_NAMES]


def score_name(score: tuple[int, ...]) -> str:
    """Return the name of a hand of this (category, ranks...)."""
    category, first = score[:2]
    second = score[2] if len(score) > 2 else 0
    if category == 8 and first == 12:
        return "Royal Flush"
    return (
        f"{_RANK_NAMES[first]} High",
        f"Pair of {_PLURALS[first]}",
        f"Two Pair, {_PLURALS[first]} and {_PLURALS[second]}",
        f"Three of a Kind, {_PLURALS[first]}",
        f"{_RANK_NAMES[first]}-High Straight",
        f"{_RANK_NAMES[first]}-High Flush",
        f"{_PLURALS[first]} Full of {_PLURALS[second]}",
        f"Four of a Kind, {_PLURALS[first]}",
        f"{_RANK_NAMES[first]}-High Straight Flush",
    )[category]


@cache
def hand_names() -> tuple[str, ...]:
    """Return the hand names by id, weakest first; id 0 is '-' (no hand yet)."""
    pairs = [(first, second) for first in range(13) for second in range(13) if first != second]
    ranks: list[Iterable[tuple[int, ...]]] = [
        ((first,) for first in range(5, 13)),
        ((first,) for first in range(13)),
        (pair for pair in pairs if pair[0] > pair[1]),
        ((first,) for first in range(13)),
        ((first,) for first in range(3, 13)),
        ((first,) for first in range(5, 13)),
        pairs,
        ((first,) for first in range(13)),
        ((first,) for first in range(3, 13)),
    ]
    return ("-", *(score_name((category, *rest)) for category in range(9) for rest in ranks[category]))


def name_text(name: int) -> str:
    """Return the text of a hand name id."""
    return hand_names()[name]


@kernel(leaf=True)
def hand_name(hole: Bytes, board: Bytes, count: int, tables: Ranking) -> int:
    """Return the hand name id of two hole cards and `count` board cards; 0 before the flop."""
    return 0 if count < 3 else int(tables.names[holding_value(hole, 2, board, count, tables)])


# Starting hands


@kernel(leaf=True)
def start_class(first: int, second: int) -> int:
    """Return the starting class of two hole cards: its cell in the 13x13 grid, aces first, suited above."""
    high = 12 - max(first >> 2, second >> 2)
    low = 12 - min(first >> 2, second >> 2)
    if first & 3 == second & 3:
        return high * 13 + low
    return low * 13 + high


def class_text(index: int) -> str:
    """Return the usual name of a starting class.

    >>> [class_text(i) for i in (0, 1, 13, 168)]
    ['AA', 'AKs', 'AKo', '22']
    """
    row, column = divmod(index, 13)
    high, low = sorted((RANKS[12 - row], RANKS[12 - column]), key=RANKS.index, reverse=True)
    return high + low + ("" if row == column else "s" if row < column else "o")


def class_combos(index: int) -> int:
    """Return how many of the 1,326 pairs of cards belong to a starting class: 6, 4 or 12."""
    row, column = divmod(index, 13)
    return 6 if row == column else 4 if row < column else 12


@kernel(leaf=True)
def pair_index(first: int, second: int) -> int:
    """Return the number 0..1325 of an unordered pair of different cards: high * (high - 1) / 2 + low."""
    # in this order the pairs of the lowest n cards have the lowest numbers, whatever n is
    high = max(first, second)
    return high * (high - 1) // 2 + min(first, second)


# Suit patterns


@kernel(leaf=True)
def _letters(hole: Bytes, board: Bytes, count: int, ranks: np.int64, dead: np.int64) -> int:
    """Return the packed pattern of a hand after the flop; `ranks` are the sets of `patterns`, `dead` suits become '.'.

    Suits that may swap letters take them in descending order of their set of board ranks: the first rank that only
    one of two suits has is where the strings first differ, and there the smaller letter must stand.
    """
    high, low = int(hole[0]), int(hole[1])
    if low >> 2 > high >> 2:
        high, low = low, high
    high_suit, low_suit = high & 3, low & 3
    if high >> 2 == low >> 2 and ranks >> (16 * low_suit) & 0x1FFF > ranks >> (16 * high_suit) & 0x1FFF:
        high_suit, low_suit = low_suit, high_suit
    taken = dead | 1 << high_suit | 1 << low_suit
    letters = 0  # a digit per suit; 0 sorts dead suits first
    for suit in range(4):
        mine = ranks >> (16 * suit) & 0x1FFF
        digit = 4
        for other in range(4):
            others = ranks >> (16 * other) & 0x1FFF
            ahead = others > mine or (others == mine and other < suit)
            digit += 1 if ahead and taken >> other & 1 == 0 else 0
        digit = 3 if suit == low_suit else digit
        digit = (1 if high_suit == low_suit else 2) if suit == high_suit else digit
        letters |= (0 if dead >> suit & 1 else digit) << (3 * suit)
    keys = 0  # a byte per card: its rank, then its letter backwards
    after = 0  # four bits per card: how many stand after it
    packed = 0
    for i in range(count):
        digit = letters >> (3 * int(board[i] & 3)) & 7
        key = int(board[i] >> 2) * 8 + 7 - digit
        for j in range(i):
            after += 1 << (4 * (j if keys >> (8 * j) & 255 >= key else i))
        keys |= key << (8 * i)
    for i in range(count):
        digit = 7 - (keys >> (8 * i) & 7)
        packed |= (7 if digit == 0 else digit) << (3 * (after >> (4 * i) & 15))
    return packed


@kernel(leaf=True)
def patterns(hole: Bytes, board: Bytes, count: int) -> tuple[int, int]:
    """Return the packed suit pattern of two hole cards and the first `count` (0, 3-5) board cards, and the coarser one.

    The coarser one writes suits that can no longer make a flush '.'; on the flop all still can.
    """
    if count == 0:
        both = 0o1 if hole[0] & 3 == hole[1] & 3 else 0o23
        return both, both
    ranks = none = dead = np.int64(0)  # not literal zeros, for each of which `_letters` would be compiled
    counts = 0
    for i in range(count):
        suit = int(board[i] & 3)
        ranks |= 1 << (16 * suit + int(board[i] >> 2))  # a set of board ranks per suit, 16 bits each
        counts += 1 << (4 * suit)
    for suit in range(4):
        if counts >> (4 * suit) & 15 < count - 2:
            dead |= 1 << suit
    if dead == 15:
        return 0, 0
    fine = _letters(hole, board, count, ranks, none)
    return fine, fine if count == 3 else _letters(hole, board, count, ranks, dead)


def pattern_text(packed: int) -> str:
    """Return the letters of a packed pattern.

    >>> pattern_text(0o4551), pattern_text(0)
    ('egga', '-')
    """
    return "".join(LETTERS[int(digit)] for digit in f"{packed:o}")
