"""Ranges as players write them: text to a weight for each of the 1,326 holdings.

A range is a list of items separated by commas or spaces, each with an optional weight after a colon:

    AA        a pair                      AA-TT, A5s-A2s   all between two of a kind
    AKs AKo   suited, offsuit             22+              this pair and all higher ones
    AK        both                        A2s+, KTo+       this kicker and all up to the high card
    AhKd      one holding                 random           every holding

`AKs:0.5` gives each of the four holdings the weight 0.5; without a colon the weight is 1. A later item replaces what an
earlier one said of the same holding. Holdings are numbered by `pair_index` of `pipeline.poker.cards`.
"""

from __future__ import annotations

import re

import numpy as np

from pipeline.poker.cards import NUMBERS, RANKS, SUITS, pair_index
from pipeline.runtime.array_types import Floats
from pipeline.runtime.errors import PipelineError

HOLDINGS = 1326
_CLASS = re.compile(rf"([{RANKS}])([{RANKS}])([so]?)")
_HOLDING = re.compile(rf"([{RANKS}][{SUITS}])([{RANKS}][{SUITS}])")
_FORMS = "write AA, AKs, AKo, AK, AhKd, 22+, A2s+, AA-TT, A5s-A2s or random, each with an optional weight like AKs:0.5"


def parse_range(text: str) -> Floats:
    """Return the weight of each holding, (1326,).

    >>> [float(parse_range(text).sum()) for text in ("AA-TT,AKs", "22+", "A5s-A2s:0.5", "KTo+", "AhKd", "random")]
    [34.0, 78.0, 8.0, 36.0, 1.0, 1326.0]
    """
    weights = np.zeros(HOLDINGS)
    items = re.split(r"[,\s]+", text.strip())
    if items == [""]:
        raise PipelineError(f"an empty range holds no hand; {_FORMS}")
    for item in items:
        hands, colon, share = item.partition(":")
        weights[_holdings(hands, item)] = _weight(share, item) if colon else 1.0
    if not weights.any():
        raise PipelineError(f"the range {text!r} gives every hand the weight 0")
    return weights


def _weight(text: str, item: str) -> float:
    """Return a weight from 0 to 1."""
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 1:
        raise PipelineError(f"{item!r}: a weight is a number from 0 to 1, not {text!r}")
    return weight


def _holdings(text: str, item: str) -> list[int]:
    """Return the numbers of the holdings that an item without its weight names."""
    if text == "random":
        return list(range(HOLDINGS))
    single = _HOLDING.fullmatch(text)
    if single:
        if single[1] == single[2]:
            raise PipelineError(f"{item!r} has the same card twice")
        return [pair_index(NUMBERS[single[1]], NUMBERS[single[2]])]
    first, dash, last = text.partition("-")
    if dash:
        return _between(_parse_class(first, item), _parse_class(last, item), item)
    high, low, kind = _parse_class(text.removesuffix("+"), item)
    if not text.endswith("+"):
        return _of_class(high, low, kind)
    if high == low:
        return [number for rank in range(high, 13) for number in _of_class(rank, rank, kind)]
    return [number for kicker in range(low, high) for number in _of_class(high, kicker, kind)]


def _parse_class(text: str, item: str) -> tuple[int, int, str]:
    """Return the ranks of a class of hands, the higher first, and `s`, `o` or neither."""
    match = _CLASS.fullmatch(text)
    if match is None or (match[1] == match[2] and match[3]):
        raise PipelineError(f"{item!r} is not part of a range; {_FORMS}")
    high, low = sorted((RANKS.index(match[1]), RANKS.index(match[2])), reverse=True)
    return high, low, match[3]


def _between(first: tuple[int, int, str], last: tuple[int, int, str], item: str) -> list[int]:
    """Return the holdings of all classes between two, which must be pairs or share suitedness and high card or gap."""
    (high, low, kind), (other_high, other_low, other_kind) = max(first, last), min(first, last)
    fixed_high, fixed_gap = high == other_high, high - low == other_high - other_low
    if kind != other_kind or (high == low) != (other_high == other_low) or not (fixed_high or fixed_gap):
        raise PipelineError(f"{item!r} goes between hands that are not of one kind; write AA-TT, A5s-A2s or T9s-54s")
    steps = range(low - other_low + 1)
    return [
        number
        for step in steps
        for number in _of_class(high if fixed_high else other_high + step, other_low + step, kind)
    ]


def _of_class(high: int, low: int, kind: str) -> list[int]:
    """Return the holdings of two ranks: suited, offsuit or both."""
    return [
        pair_index(4 * high + suit, 4 * low + other)
        for suit in range(4)
        for other in range(suit if high == low else 4)
        if not (kind == "s" and suit != other) and not (kind == "o" and suit == other)
    ]
