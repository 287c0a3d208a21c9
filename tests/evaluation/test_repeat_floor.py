"""Pairs of decisions from the same information set: unbiased floors and a test for change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.evaluation.repeat_floor import behaviour_change, disagreement, floor_bounds


def simulate(random: np.random.Generator, sets: int = 400, rows: int = 1200):
    """Rows of an agent with known mixes: keys, deals, labels, truth; a deal has two rows."""
    mixes = random.dirichlet([0.3, 0.3, 0.3], size=sets)
    keys = random.zipf(1.3, size=rows) % sets
    q = mixes[keys]
    y = (random.random((rows, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return keys, np.arange(rows) // 2, y, q


def test_pairs_by_hand() -> None:
    keys = np.array([7, 7, 7, 8, 8, 9])
    deals = np.array([1, 2, 3, 4, 5, 6])
    found = disagreement(keys, deals, np.array([0, 0, 1, 2, 2, 1]), labels=3)
    assert found.brier.value == pytest.approx((3 * 2 / 3 + 2 * 0) / 5)
    assert found.coverage == pytest.approx(5 / 6)
    assert found.covered.tolist() == [True] * 5 + [False]


def test_two_decisions_of_one_deal_are_no_pair() -> None:
    found = disagreement(np.zeros(4, dtype=int), np.array([1, 1, 2, 2]), np.array([0, 1, 0, 1]), labels=2)
    assert found.brier.value == 0.5
    alone = disagreement(np.zeros(2, dtype=int), np.array([1, 1]), np.array([0, 1]), labels=2)
    assert alone.coverage == 0.0
    assert math.isnan(alone.brier.value)


def test_the_estimate_is_unbiased_and_its_interval_covers() -> None:
    random = np.random.default_rng(1)
    off, hits, trials = [], 0, 200
    for _ in range(trials):
        keys, deals, y, q = simulate(random)
        found = disagreement(keys, deals, y, labels=3)
        truth = (1 - (q * q).sum(axis=1))[found.covered].mean()
        off.append(found.brier.value - truth)
        hits += found.brier.low <= truth <= found.brier.high
    assert abs(np.mean(off)) < 3 * np.std(off) / math.sqrt(trials)
    assert 0.91 <= hits / trials <= 1.0


def test_bounds_hold_for_every_mix() -> None:
    random = np.random.default_rng(2)
    for q in random.dirichlet([0.4, 0.4, 0.4, 0.4], size=2000):
        low, high = floor_bounds(1 - (q * q).sum())["error"]
        assert low - 1e-12 <= 1 - q.max() <= high + 1e-12
        assert -(q * np.log(q + 1e-300)).sum() >= floor_bounds(1 - (q * q).sum())["log_loss"][0] - 1e-9


def test_an_agent_that_stays_the_same_shows_no_change() -> None:
    random = np.random.default_rng(3)
    found = []
    for _ in range(100):
        keys, deals, y, _ = simulate(random, sets=40)
        found.append(behaviour_change(keys, deals, y, late=deals >= 300, labels=3).distance)
    values = np.array([one.value for one in found])
    assert abs(values.mean()) < 3 * values.std() / 10
    assert np.mean([one.low <= 0 <= one.high for one in found]) >= 0.88


def test_a_change_is_measured_as_half_the_squared_distance() -> None:
    random = np.random.default_rng(4)
    before, after = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    late = np.arange(20_000) % 2 == 1
    q = np.where(late[:, None], after, before)
    y = (random.random((20_000, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    found = behaviour_change(np.zeros(20_000, dtype=int), np.arange(20_000), y, late=late, labels=3)
    assert found.coverage == 1.0
    assert found.distance.value == pytest.approx(0.5 * ((before - after) ** 2).sum(), abs=0.01)
    assert found.distance.low > 0


def test_sides_without_a_common_information_set_cannot_be_compared() -> None:
    found = behaviour_change(
        np.arange(10) // 5, np.arange(10), np.zeros(10, dtype=int), late=np.arange(10) >= 5, labels=2
    )
    assert found.rows == 0
    assert math.isnan(found.distance.value)
