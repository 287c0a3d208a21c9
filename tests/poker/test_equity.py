"""Outlooks against ranges, groups of opponents, Monte Carlo."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.poker.cards import class_combos, hand_value, pair_index, parse_cards, ranking, start_class
from pipeline.poker.starting_hands import class_matchups
from pipeline.poker.strength.equity import group_strengths, outlook, simulate
from pipeline.poker.strength.hand_clusters import starting_groups
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.win_counts import class_points, doubled_wins
from pipeline.runtime.errors import PipelineError


def row(hole: str, board: str) -> tuple[np.ndarray, np.ndarray]:
    shown = np.full((1, 5), 255, np.uint8)
    shown[0, : len(board) // 2] = parse_cards(board)
    return parse_cards(hole)[None], shown


# Outlook


def test_outlooks_have_the_known_values():
    now = outlook(1, *row("TcJc", "2dTsKh"), cards=0)
    np.testing.assert_array_equal(now.counts[0], np.diag([899, 6, 176]))
    to_river = outlook(1, *row("AsJc", "Tc2h3s"))
    assert to_river.counts.sum() == comb(47, 2) * comb(45, 2)
    assert to_river.win[0] == pytest.approx(0.5246, abs=5e-5)
    assert to_river.tie[0] == pytest.approx(0.0124, abs=5e-5)


@pytest.mark.parametrize(("street", "board"), [(1, "Tc2h3s"), (2, "Tc2h3sTd"), (3, "Tc2h3sTd9d")])
def test_outlook_and_strength_agree(street: int, board: str):
    found = outlook(street, *row("AsJc", board))
    strength = find_strengths(street, *row("AsJc", board))
    assert found.ihs[0] == pytest.approx(strength["ihs"][0] / 65535, abs=1e-5)
    assert found.equity[0] == pytest.approx(strength["ehs"][0] / 65535, abs=2e-5)
    two_sided = found.ihs * (1 - found.npot) + (1 - found.ihs) * found.ppot
    assert two_sided[0] == pytest.approx(found.equity[0])
    assert found.ehs[0] == pytest.approx(found.ihs[0] + (1 - found.ihs[0]) * found.ppot[0])
    assert found.ehs[0] >= found.equity[0]


def test_the_next_card_moves_less_than_two():
    next_card, river = outlook(1, *row("9h8h", "7h2h6c"), cards=1), outlook(1, *row("9h8h", "7h2h6c"))
    assert next_card.counts.sum() == comb(47, 2) * 45
    assert 0 < next_card.ppot[0] < river.ppot[0] < 1
    assert (next_card.ihs == river.ihs).all()


def test_a_range_of_one_holding_is_that_opponent():
    weights = np.zeros(1326)
    weights[pair_index(*map(int, parse_cards("KdKs")))] = 0.25
    mine = outlook(1, *row("AsJc", "Tc2h3s"), weights=weights)
    weights[:] = 0
    weights[pair_index(*map(int, parse_cards("AsJc")))] = 3
    yours = outlook(1, *row("KdKs", "Tc2h3s"), weights=weights)
    assert mine.equity[0] + yours.equity[0] == pytest.approx(1)
    assert mine.counts.sum() == 0.25 * comb(45, 2)
    assert (mine.ihs[0], yours.ihs[0]) == (0, 1)
    blocked = outlook(1, *row("AsJc", "Tc2h3s"), weights=weights)
    assert blocked.equity[0] == blocked.ihs[0] == 0  # nobody else can hold my cards


def test_each_row_may_face_a_range_of_its_own():
    hole, board = (np.repeat(part, 2, axis=0) for part in row("AsJc", "Tc2h3s5d"))
    weights = np.ones((2, 1326))
    weights[1, :600] = 0
    both = outlook(2, hole, board, weights=weights)
    assert both.equity[0] == outlook(2, hole[:1], board[:1]).equity[0]
    assert both.equity[1] == outlook(2, hole[:1], board[:1], weights=weights[1]).equity[0] != both.equity[0]


def test_bad_questions_are_refused():
    with pytest.raises(PipelineError, match="needs a board"):
        outlook(0, *row("AsJc", ""))
    with pytest.raises(PipelineError, match="do not fit"):
        outlook(2, *row("AsJc", "Tc2h3s5d"), cards=2)
    with pytest.raises(PipelineError, match="1326 weights"):
        outlook(2, *row("AsJc", "Tc2h3s5d"), weights=np.ones(169))
    with pytest.raises(PipelineError, match="repeated"):
        outlook(2, *row("AsTc", "Tc2h3s5d"))


# Groups of opponents


def test_eight_groups_of_starting_hands_go_up_in_strength():
    groups = starting_groups()
    assert set(groups) == set(range(8))
    chances = class_matchups().against_random() @ [1, 0.5, 0]
    combos = np.array([class_combos(index) for index in range(169)])
    means = [np.average(chances[groups == group], weights=combos[groups == group]) for group in range(8)]
    assert means == sorted(means)


@given(st.lists(st.integers(0, 51), min_size=7, max_size=7, unique=True), st.integers(0, 5))
@settings(max_examples=30)
def test_points_against_classes_are_those_against_their_holdings(deal: list[int], suited: int):
    clubs = [4 * rank for rank in range(12, 12 - suited, -1)]  # that many on the board
    rest = [card for card in deal if card not in clubs]
    deal = rest[:2] + (clubs + rest[2:])[:5]
    hole, board = np.array(deal[:2], np.uint8), np.array(deal[2:], np.uint8)
    found = np.zeros((169, 2), np.int64)
    class_points(hole, board, ranking(), found)
    expected = np.zeros((169, 2), np.int64)
    mine = hand_value(np.array(deal, np.uint8), 7, ranking())
    for pair in combinations(sorted(set(range(52)) - set(deal)), 2):
        other = hand_value(np.array([*pair, *board], np.uint8), 7, ranking())
        expected[start_class(*pair)] += (2 if mine > other else int(mine == other), 2)
    np.testing.assert_array_equal(found, expected)
    assert found[:, 0].sum() == doubled_wins(hole, board, 5, ranking())


@pytest.mark.parametrize(("street", "board"), [(1, "Tc2h3s"), (2, "Tc2h3sTd"), (3, "Tc2h3sTd9d")])
def test_strength_against_groups_is_that_against_their_ranges(street: int, board: str):
    groups = starting_groups()
    found = group_strengths(street, *row("AsJc", board), groups)[0]
    of_pair = np.array([groups[start_class(high, low)] for high in range(52) for low in range(high)])
    expected = [outlook(street, *row("AsJc", board), weights=(of_pair == group) * 1.0).equity[0] for group in range(8)]
    np.testing.assert_allclose(found / 65535, expected, atol=1e-5)


# Monte Carlo


@pytest.mark.parametrize(("hole", "board"), [("AsJc", "Tc2h3s"), ("TcJc", "2dTsKh9c"), ("7h2c", "7d7s2sKhKd")])
def test_simulation_comes_within_its_own_error(hole: str, board: str):
    holes = np.stack([parse_cards(hole), np.array([255, 255], np.uint8)])
    found = simulate(holes, parse_cards(board), samples=100_000, seed=1)
    exact = outlook(len(board) // 2 - 2, *row(hole, board))
    assert abs(found.equity - exact.equity[0]) < 4 * found.error + 1e-12
    assert found.equity == pytest.approx(found.win + found.tie / 2)
    assert found.samples == 100_000
    assert found.error < 0.002


def test_simulation_repeats_with_its_seed_and_stops_by_the_clock():
    unknown = np.full((6, 2), 255, np.uint8)
    first = simulate(unknown, samples=30_000, seed=5)
    assert first == simulate(unknown, samples=30_000, seed=5) != simulate(unknown, samples=30_000, seed=6)
    assert abs(first.equity - 1 / 6) < 4 * first.error
    assert simulate(unknown, seconds=0.01).samples > 0


def test_more_opponents_leave_a_smaller_share():
    aces = parse_cards("AsAd")
    shares = []
    for opponents in (1, 2, 5, 8):
        holes = np.full((1 + opponents, 2), 255, np.uint8)
        holes[0] = aces
        shares.append(simulate(holes, samples=20_000).equity)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(0.852, abs=0.01)


def test_known_opponents_are_simulated_too():
    holes = np.stack([parse_cards("AsAd"), parse_cards("KsKd")])
    assert simulate(holes, samples=50_000).equity == pytest.approx(0.82, abs=0.01)


def test_simulation_refuses_bad_cards_and_no_end():
    pair = np.stack([parse_cards("AsAd"), parse_cards("KsKd")])
    with pytest.raises(PipelineError, match="repeat"):
        simulate(pair, parse_cards("As2c3c"), samples=10)
    with pytest.raises(PipelineError, match="seconds or samples"):
        simulate(pair)
    with pytest.raises(PipelineError, match="2 to 22"):
        simulate(pair[:1], samples=10)
