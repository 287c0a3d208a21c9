"""The shipped tables are what `tools/tables.py` makes of the rules, or samples of it are."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from pipeline.poker.cards import hand_value, ranking, start_class
from pipeline.poker.starting_hands import class_matchups, headsup_table, preflop_rows, suit_names
from pipeline.poker.strength.boards import boards
from tools.tables import matchup_codes, play_matchups, play_rivers, preflop_tables, write


def test_the_codes_are_all_match_ups_in_order():
    buffer = np.empty(1 << 16, np.int64)
    assert buffer[: matchup_codes(suit_names(), buffer)].tolist() == headsup_table().codes.tolist()


def test_a_walk_over_all_boards_gives_what_is_bundled():
    table = headsup_table()
    picked = [0, 20_000, 47_007]
    codes = table.codes[picked].astype(np.int64)
    wins, ties = np.zeros(3, np.uint32), np.zeros(3, np.uint32)
    play_matchups(codes, 0, 3, ranking(), wins, ties)
    assert wins.tolist() == table.wins[picked].tolist()
    assert ties.tolist() == table.ties[picked].tolist()


def test_a_board_is_played_as_by_every_pair_of_holdings():
    number = 4_321
    cards = boards(3).cards[number]
    results, sums = np.zeros((2, 169, 169), np.int64), np.zeros((169, 2), np.int64)
    histograms = np.zeros((169, 256), np.int64)
    play_rivers(boards(3).cards, boards(3).weights, number, number + 1, ranking(), results, sums, histograms)
    left = [card for card in range(52) if card not in cards]
    holdings = list(combinations(left, 2))
    values = [hand_value(np.array([*pair, *cards], np.uint8), 7, ranking()) for pair in holdings]
    expected = np.zeros((2, 169, 169), np.int64)
    for (first, mine), (second, other) in combinations(zip(holdings, values, strict=True), 2):
        if set(first) & set(second):
            continue
        a, b = start_class(*first), start_class(*second)
        expected[0, a, b] += mine > other
        expected[0, b, a] += mine < other
        expected[1, a, b] += mine >= other
        expected[1, b, a] += mine <= other
    np.testing.assert_array_equal(results, expected * boards(3).weights[number])
    assert histograms.sum() == comb(47, 2) * boards(3).weights[number]


@pytest.mark.long
def test_the_bundled_match_ups_are_what_enumeration_gives():
    built = preflop_tables()
    np.testing.assert_array_equal(built["win"], class_matchups().win)
    np.testing.assert_array_equal(built["tie"], class_matchups().tie)
    np.testing.assert_array_equal(built["strength"], preflop_rows())


def test_the_ranking_tables_are_what_the_rules_give(tmp_path):
    write("ranking", tmp_path / "ranking.npz")
    with np.load(tmp_path / "ranking.npz") as written:
        for name, shipped in ranking()._asdict().items():
            np.testing.assert_array_equal(written[name], shipped)
    assert sum(table.nbytes for table in ranking()) < 1_000_000
