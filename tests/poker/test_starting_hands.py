"""Two starting hands, and the 169 classes, against each other: sums, symmetry, published values."""

import itertools
from math import comb

import numpy as np
import pytest

from pipeline.poker.allin import expected_result
from pipeline.poker.cards import class_text, parse_cards, start_class
from pipeline.poker.game import builtin
from pipeline.poker.starting_hands import (
    PREFLOP_BOARDS,
    class_matchups,
    headsup_counts,
    headsup_table,
    preflop_rows,
)
from pipeline.runtime.kernels import kernel

NUMBER = {class_text(index): index for index in range(169)}


@kernel
def _by_class(table, wins, ties):
    """Add up the results of all pairs of hands that share no card, by starting class."""
    for a0 in range(1, 52):
        for a1 in range(a0):
            for b0 in range(1, 52):
                for b1 in range(b0):
                    if b0 in (a0, a1) or b1 in (a0, a1):
                        continue
                    won, split = headsup_counts(a0, a1, b0, b1, table)
                    wins[start_class(a0, a1), start_class(b0, b1)] += won
                    ties[start_class(a0, a1), start_class(b0, b1)] += split


def test_the_match_ups_add_up_to_those_of_the_169_classes():
    wins, ties = np.zeros((169, 169), np.int64), np.zeros((169, 169), np.int64)
    _by_class(headsup_table(), wins, ties)
    assert (wins == class_matchups().win).all()
    assert (ties == class_matchups().tie).all()


def test_aces_against_kings_depend_on_their_suits():
    shared = headsup_counts(*parse_cards("AsAh"), *parse_cards("KsKh"), headsup_table())
    apart = headsup_counts(*parse_cards("AsAh"), *parse_cards("KdKc"), headsup_table())
    assert shared[0] / PREFLOP_BOARDS == pytest.approx(0.8236, abs=1e-4)
    assert apart[0] / PREFLOP_BOARDS == pytest.approx(0.8106, abs=1e-4)


def test_the_other_hand_wins_what_is_left():
    hands = [parse_cards(text) for text in ("AsAh", "7c2d", "JdTd", "JhTs")]
    for one, other in itertools.combinations(hands, 2):
        won, split = headsup_counts(*one, *other, headsup_table())
        lost, again = headsup_counts(*other, *one, headsup_table())
        assert split == again
        assert won + lost + split == PREFLOP_BOARDS


def test_an_all_in_before_the_flop_is_settled_by_the_table():
    state = builtin("holdem.nolimit.2p.reverse_blinds").start().apply(2, 20000).apply(1)
    won, split = headsup_counts(*parse_cards("AsAh"), *parse_cards("7c2d"), headsup_table())
    expected = 20000 * (2 * won + split - PREFLOP_BOARDS) / PREFLOP_BOARDS
    assert expected_result(state, ("AsAh", "7c2d"), "") == pytest.approx((expected, -expected))


@pytest.mark.parametrize(
    ("hand", "win", "equity"),
    [("T9o", 0.4982, None), ("T9s", 0.5238, None), ("AA", None, 0.852), ("72o", None, 0.346)],
)
def test_starting_hands_win_as_often_as_is_known(hand: str, win: float | None, equity: float | None):
    found = class_matchups().against_random()[NUMBER[hand]]
    if win is not None:
        assert found[0] == pytest.approx(win, abs=5e-5)
    if equity is not None:
        assert found[0] + found[1] / 2 == pytest.approx(equity, abs=5e-4)
    assert found.sum() == pytest.approx(1)


def test_match_ups_know_which_pairs_share_no_card():
    found = class_matchups()
    assert found.pairs.sum() == comb(52, 2) * comb(50, 2)
    assert (found.pairs == found.pairs.T).all()
    assert (found.pairs * PREFLOP_BOARDS == found.win + found.tie + found.win.T).all()
    assert found.pairs[NUMBER["AA"], NUMBER["AA"]] == 6
    assert found.pairs[NUMBER["AA"], NUMBER["KK"]] == 36
    assert found.pairs[NUMBER["AKs"], NUMBER["AKs"]] == 12


def test_my_equity_and_yours_are_one():
    equity = class_matchups().equity
    np.testing.assert_allclose(equity + equity.T, 1)
    aces_against_kings = (class_matchups().win + class_matchups().tie / 2)[NUMBER["AA"], NUMBER["KK"]] / (
        36 * PREFLOP_BOARDS
    )
    assert aces_against_kings == pytest.approx(0.8195, abs=5e-4)


def test_match_ups_and_strength_rows_agree():
    chances = class_matchups().against_random() @ [1, 0.5, 0]
    np.testing.assert_allclose(preflop_rows()[:, 1] / 65535, chances, atol=2e-5)
