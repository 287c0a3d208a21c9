"""Two starting hands against each other: beside the 169 classes, beside a walk over all boards, and symmetry."""

import itertools

import numpy as np
import pytest

from pipeline.poker.allin import expected_result
from pipeline.poker.cards import parse_cards, ranking, start_class
from pipeline.poker.game import builtin
from pipeline.poker.headsup import BOARDS, _all_codes, _play, _suit_names, headsup, matchup
from pipeline.poker.strength.matchups import matchups
from pipeline.runtime.kernels import kernel


@kernel
def _by_class(table, wins, ties):
    """Add up the results of all pairs of hands that share no card, by starting class."""
    for a0 in range(1, 52):
        for a1 in range(a0):
            for b0 in range(1, 52):
                for b1 in range(b0):
                    if b0 in (a0, a1) or b1 in (a0, a1):
                        continue
                    won, split = matchup(a0, a1, b0, b1, table)
                    wins[start_class(a0, a1), start_class(b0, b1)] += won
                    ties[start_class(a0, a1), start_class(b0, b1)] += split


def test_the_match_ups_add_up_to_those_of_the_169_classes():
    wins, ties = np.zeros((169, 169), np.int64), np.zeros((169, 169), np.int64)
    _by_class(headsup(), wins, ties)
    assert (wins == matchups().win).all()
    assert (ties == matchups().tie).all()


def test_the_codes_are_all_match_ups_in_order():
    room = np.empty(1 << 16, np.int64)
    assert room[: _all_codes(_suit_names(), room)].tolist() == headsup().codes.tolist()


def test_a_walk_over_all_boards_gives_what_is_bundled():
    table = headsup()
    picked = [0, 20_000, 47_007]
    codes = table.codes[picked].astype(np.int64)
    wins, ties = np.zeros(3, np.uint32), np.zeros(3, np.uint32)
    _play(codes, 0, 3, ranking(), wins, ties)
    assert wins.tolist() == table.wins[picked].tolist()
    assert ties.tolist() == table.ties[picked].tolist()


def test_aces_against_kings_depend_on_their_suits():
    shared = matchup(*parse_cards("AsAh"), *parse_cards("KsKh"), headsup())
    apart = matchup(*parse_cards("AsAh"), *parse_cards("KdKc"), headsup())
    assert shared[0] / BOARDS == pytest.approx(0.8236, abs=1e-4)
    assert apart[0] / BOARDS == pytest.approx(0.8106, abs=1e-4)


def test_the_other_hand_wins_what_is_left():
    hands = [parse_cards(text) for text in ("AsAh", "7c2d", "JdTd", "JhTs")]
    for one, other in itertools.combinations(hands, 2):
        won, split = matchup(*one, *other, headsup())
        lost, again = matchup(*other, *one, headsup())
        assert split == again
        assert won + lost + split == BOARDS


def test_an_all_in_before_the_flop_is_settled_by_the_table():
    state = builtin("holdem.nolimit.2p.reverse_blinds").start().apply(2, 20000).apply(1)
    won, split = matchup(*parse_cards("AsAh"), *parse_cards("7c2d"), headsup())
    expected = 20000 * (2 * won + split - BOARDS) / BOARDS
    assert expected_result(state, ("AsAh", "7c2d"), "") == pytest.approx((expected, -expected))
