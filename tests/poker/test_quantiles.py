"""Medians of fifths: hands whose rivers are known, and order."""

import numpy as np

from pipeline.poker.cards import parse_cards
from pipeline.poker.strength import quantiles
from pipeline.poker.strength.queries import find_strengths


def deal(hole: str, board: str) -> tuple[np.ndarray, np.ndarray]:
    seen = np.full((1, 5), 255, np.uint8)
    cards = parse_cards(board)
    seen[0, : len(cards)] = cards
    return parse_cards(hole)[None], seen


def test_a_settled_hand_is_five_times_its_strength():
    hole, board = deal("AsAh", "AcAdKs7h2c")
    assert quantiles.find_quantiles(3, hole, board).tolist() == [[255] * 5]


def test_a_flush_draw_is_strong_in_its_best_fifth_and_weak_in_the_middle():
    hole, board = deal("2s3s", "AsKs8d9c")
    found = quantiles.find_quantiles(2, hole, board)[0]
    assert found[4] > 230
    assert found[2] < 60


def test_the_middle_median_lies_between_the_means_of_the_middle_eighths():
    rng = np.random.default_rng(0)
    cards = np.array([rng.permutation(52)[:7] for _ in range(40)], np.uint8)
    hole, board = cards[:, :2], cards[:, 2:]
    for street in (1, 2):
        found = quantiles.find_quantiles(street, hole, board).astype(int)
        means = find_strengths(street, hole, board)["q"].astype(int)
        assert (np.diff(found, axis=1) >= 0).all()
        assert (found[:, 2] >= means[:, 3]).all()
        assert (found[:, 2] <= means[:, 4]).all()


def test_the_order_of_cards_does_not_matter():
    hole, board = deal("Jd3s", "As7d7h2c")
    turned = np.ascontiguousarray(hole[:, ::-1]), board[:, [2, 0, 3, 1, 4]]
    assert (quantiles.find_quantiles(2, hole, board) == quantiles.find_quantiles(2, *turned)).all()
