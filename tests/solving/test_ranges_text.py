"""Ranges as players write them."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.poker.cards import class_combos, class_text, pair_index, parse_cards
from pipeline.runtime.errors import PipelineError
from pipeline.solving.ranges_text import parse_range


def weight(range_of: str, hand: str) -> float:
    return float(parse_range(range_of)[pair_index(*parse_cards(hand).tolist())])


def test_each_class_has_as_many_holdings_as_combinations() -> None:
    for index in range(169):
        assert parse_range(class_text(index)).sum() == class_combos(index)


def test_a_plus_takes_all_higher_pairs_or_kickers_below_the_high_card() -> None:
    assert np.array_equal(parse_range("TT+"), parse_range("TT,JJ,QQ,KK,AA"))
    assert np.array_equal(parse_range("KTo+"), parse_range("KTo,KJo,KQo"))
    assert np.array_equal(parse_range("A2s+"), parse_range("AKs-A2s"))


def test_spans_go_over_pairs_kickers_or_connectors() -> None:
    assert np.array_equal(parse_range("TT-77"), parse_range("77,88,99,TT"))
    assert np.array_equal(parse_range("A5s-A2s"), parse_range("A2s,A3s,A4s,A5s"))
    assert np.array_equal(parse_range("T9s-76s"), parse_range("T9s,98s,87s,76s"))


def test_later_items_replace_earlier_ones_and_weights_follow_a_colon() -> None:
    assert weight("random,AA:0.25", "AsAh") == 0.25
    assert weight("AA:0.25,22+", "AsAh") == 1
    assert weight("AhKd:0.5,QQ", "KdAh") == 0.5
    assert weight("AhKd:0.5,QQ", "KhAd") == 0


def test_a_class_without_a_letter_is_suited_and_offsuit() -> None:
    assert np.array_equal(parse_range("AK"), parse_range("KAs,AKo"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty range"),
        ("AA,1K", "'1K' is not part of a range"),
        ("AAs", "'AAs' is not part of a range"),
        ("AK:1.5", "'AK:1.5': a weight is a number from 0 to 1"),
        ("AK:x", "a weight is a number"),
        ("AA-KQ", "'AA-KQ' goes between hands that are not of one kind"),
        ("A5s-K2s", "not of one kind"),
        ("AhAh", "'AhAh' has the same card twice"),
        ("AA:0", "gives every hand the weight 0"),
    ],
)
def test_a_bad_range_is_refused_with_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(PipelineError, match=problem):
        parse_range(text)
