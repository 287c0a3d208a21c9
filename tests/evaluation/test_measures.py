"""Measures of predicted probabilities: hand-computed values, scikit-learn's, and simulated coverage."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, zero_one_loss

from pipeline.models import measures
from pipeline.models.measures import Bootstrap, calibration_bins, played, row_measures
from pipeline.training.loop import scores


def draw(q: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One label per row from its probabilities."""
    return (random.random((len(q), 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, q.shape[1] - 1)


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Model, labels and truth of 2,000 rows."""
    random = np.random.default_rng(3)
    q = random.dirichlet([0.5, 1.0, 1.0], size=2000)
    p = 0.7 * q + 0.3 * random.dirichlet([1.0, 1.0, 1.0], size=2000)
    return p, draw(q, random), q


def test_measures_equal_those_of_scikit_learn(sample) -> None:
    p, y, _ = sample
    found = {name: values.mean() for name, values in row_measures(p, y).items()}
    assert found["error"] == pytest.approx(zero_one_loss(y, p.argmax(axis=1)))
    assert found["log_loss"] == pytest.approx(log_loss(y, p))
    assert found["brier"] == pytest.approx(brier_score_loss(y, p, scale_by_half=False))
    assert (measures.confusion(p, y) == confusion_matrix(y, p.argmax(axis=1))).all()


def test_measures_of_two_rows_by_hand() -> None:
    p = np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])
    q = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    found = row_measures(p, np.array([1, 2]), q)
    assert found["error"].tolist() == [1.0, 0.0]
    assert found["mismatch"].tolist() == [0.75, 0.25]
    assert found["log_loss"] == pytest.approx([np.log(4), np.log(4 / 3)])
    assert found["brier"] == pytest.approx([0.25 + 0.5625 + 0.0625, 0.09375])
    assert found["kl"] == pytest.approx([0.5 * np.log(2), np.log(4 / 3)])
    assert found["tv"] == pytest.approx([0.25, 0.25])
    assert found["excess"].tolist() == [0.0, 0.0]


def test_expected_mismatch_is_one_minus_the_overlap_of_the_mixes(sample) -> None:
    p, _, q = sample
    random = np.random.default_rng(0)
    seen = np.mean([row_measures(p, draw(q, random))["mismatch"].mean() for _ in range(100)])
    assert seen == pytest.approx(1 - (p * q).sum(axis=1).mean(), abs=2e-3)


def test_log_loss_is_its_floor_plus_kl(sample) -> None:
    p, _, q = sample
    cross_entropy = -(q * np.log(p)).sum(axis=1).mean()
    found = row_measures(p, np.zeros(len(p), dtype=int), q)
    assert measures.floors(q)["log_loss"].mean() + found["kl"].mean() == pytest.approx(cross_entropy)


def test_the_true_probabilities_score_their_floors() -> None:
    random = np.random.default_rng(1)
    q = random.dirichlet([0.3, 0.3, 0.3], size=200_000)
    scored = row_measures(q, draw(q, random), q)
    for name, floor in measures.floors(q).items():
        assert scored[name].mean() == pytest.approx(floor.mean(), abs=0.005), name
    assert scored["kl"].max() < 1e-12
    assert scored["tv"].max() < 1e-12


def test_rounded_true_probabilities_are_normalised() -> None:
    assert measures.floors(np.array([[0.5, 0.49999, 0.0]], dtype=np.float32))["brier"][0] == pytest.approx(0.5)


def test_played_probabilities_are_masked_floored_and_sum_to_one() -> None:
    p = np.array([[0.9, 0.1, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    legal = np.array([0b110, 0b111, 0b011])
    found = played(p, legal, floor=1e-3)
    allowed = legal[:, None] >> np.arange(3) & 1 == 1
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert (found[~allowed] == 0).all()
    assert (found[allowed] >= 1e-3 / 1.003).all()
    assert found[2].tolist() == [0.5, 0.5, 0.0]


def test_a_deals_rows_are_drawn_together() -> None:
    deals = np.repeat(np.arange(50), 40)
    values = np.repeat(np.random.default_rng(2).normal(size=50), 40)
    clustered, rowwise = Bootstrap(deals).interval(values), Bootstrap(np.arange(2000)).interval(values)
    ratio = (clustered.high - clustered.low) / (rowwise.high - rowwise.low)
    assert ratio == pytest.approx(np.sqrt(40), rel=0.15)


def test_identical_models_differ_by_exactly_nothing() -> None:
    deals = np.arange(300) // 3
    values = np.random.default_rng(0).random(300)
    draws = Bootstrap(deals)
    drawn = draws.mean([values, values])[1]
    assert (drawn[:, 0] == drawn[:, 1]).all()


def test_intervals_cover_the_true_mean_at_the_stated_rate() -> None:
    random = np.random.default_rng(11)
    hits = {"plain": 0, "weighted": 0, "paired": 0}
    trials = 200
    for trial in range(trials):
        sizes = random.integers(1, 6, size=400)
        deals = np.repeat(np.arange(400), sizes)
        shared = np.repeat(random.normal(size=400), sizes)
        first = shared + random.normal(size=len(deals))
        second = first + 0.3 * random.normal(size=len(deals)) + 0.1
        pot = random.gamma(2.0, size=len(deals))
        draws = Bootstrap(deals, replicates=300, seed=trial)
        low, high = draws.interval(first)[1:]
        hits["plain"] += low <= 0 <= high
        low, high = draws.interval(first, weights=pot)[1:]
        hits["weighted"] += low <= 0 <= high
        mean, drawn = draws.mean([first, second])
        low, high = measures.percentile(mean[1] - mean[0], drawn[:, 1] - drawn[:, 0])[1:]
        hits["paired"] += low <= 0.1 <= high
        assert high - low < 0.1
    for name, count in hits.items():
        assert 0.91 <= count / trials <= 0.985, name


def test_grouping_deals_leaves_the_interval_as_wide() -> None:
    values = np.random.default_rng(5).normal(size=60_000)
    deals = np.arange(60_000) // 2
    grouped = Bootstrap(deals, groups=2000).interval(values)
    exact = 1.96 * values.std() / np.sqrt(60_000)
    assert (grouped.high - grouped.low) / 2 == pytest.approx(exact, rel=0.12)


def test_an_interval_of_some_rows_is_that_of_those_rows_alone() -> None:
    random = np.random.default_rng(8)
    values, where = random.random(5000), random.random(5000) < 0.3
    found = Bootstrap(np.arange(5000) // 2).interval(values[where], where)
    assert found.value == pytest.approx(values[where].mean())
    assert found.low < found.value < found.high


def test_a_perfectly_calibrated_model_scores_what_sampling_alone_gives() -> None:
    random = np.random.default_rng(4)
    q = random.dirichlet([0.2, 1.0, 1.0], size=4000)
    q[: len(q) // 2, 0] = 0.0
    q /= q.sum(axis=1, keepdims=True)
    legal = np.where(np.arange(len(q)) < len(q) // 2, 0b110, 0b111)
    found = [calibration_bins(q, draw(q, random), legal) for _ in range(60)]
    seen = np.mean([[one.error for one in bins] for bins in found], axis=0)
    assert seen == pytest.approx([one.perfect for one in found[0]], rel=0.08)


def test_calibration_by_hand() -> None:
    p = np.array([[0.25, 0.75]] * 4 + [[0.5, 0.5]] * 4)
    y = np.array([0, 0, 1, 1, 0, 0, 0, 1])
    first, second = calibration_bins(p, y, np.full(8, 0b11), group=np.arange(8), groups=8, bins=2)
    assert first.predicted.tolist() == [0.25, 0.5]
    assert first.taken.tolist() == [0.5, 0.75]
    assert first.error == second.error == 0.25
    assert first.gaps.sum(axis=0).tolist() == [-1.0, -1.0]
    interval = Bootstrap(np.arange(8)).calibration([first, second])
    assert interval.value == 0.25


def test_a_label_that_is_no_choice_is_not_calibrated() -> None:
    p = np.array([[0.0, 0.4, 0.6]] * 10)
    found = calibration_bins(p, np.ones(10, dtype=int), np.full(10, 0b110))
    assert [(one.label, int(one.size.sum())) for one in found] == [(1, 10), (2, 10)]
    assert calibration_bins(p, np.ones(10, dtype=int), np.full(10, 0b010)) == []


def test_calibration_and_frequency_intervals_cover_on_simulated_data() -> None:
    random = np.random.default_rng(12)
    true = np.tile([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], (300, 1))
    p = np.tile([[0.3, 0.4, 0.3], [0.4, 0.2, 0.4]], (300, 1))
    legal = np.full(len(p), 0b111)
    gap = 0.5 * np.abs(p.mean(axis=0) - true.mean(axis=0)).sum()
    curve = np.abs(p[:2] - true[:2]).mean(axis=0)
    hits = np.zeros(2)
    for trial in range(200):
        y = draw(true, random)
        draws = Bootstrap(np.arange(600), replicates=300, seed=trial)
        frequency = draws.frequency_gap(p, y)
        bins = calibration_bins(p, y, legal, group=draws.group, groups=draws.groups, bins=2)
        calibration = draws.calibration(bins)
        hits += [
            frequency.low <= gap <= frequency.high,
            calibration.low <= curve.mean() <= calibration.high,
        ]
    assert (hits / 200 > 0.90).all()


def test_frequencies_are_column_means() -> None:
    mean, taken = measures.frequencies(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([1, 1]))
    assert mean.tolist() == [0.7, 0.3]
    assert taken.tolist() == [0.0, 1.0]


def test_labels_that_are_equally_likely_share_the_error():
    even = played(np.ones((3, 3)), np.array([0b111, 0b110, 0b010]))
    found = row_measures(even, np.array([0, 2, 1]), np.array([[0.2, 0.5, 0.3], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0]]))
    assert found["error"] == pytest.approx([2 / 3, 1 / 2, 0.0])
    assert found["excess"] == pytest.approx([0.5 - 1 / 3, 0.0, 0.0])


def test_training_and_evaluation_give_an_impossible_action_the_same_log_loss():
    chances = np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    taken = np.array([0, 1], dtype=np.uint8)
    evaluated = row_measures(played(chances, np.array([0b111, 0b111])), taken)["log_loss"].mean()
    assert scores(chances, taken)[1] == pytest.approx(evaluated, abs=1e-5)
    assert scores(chances, taken)[1] == pytest.approx(-(np.log(measures.LEAST_PROBABILITY) + np.log(0.5)) / 2)
