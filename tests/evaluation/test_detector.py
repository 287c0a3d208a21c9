"""The practical detector: features that hide what a spectator does not see, and sessions that tell more than hands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixing_agents import Copy, Hashed

from benchmarks._classifier import auc, detection_auc, hand_features, play_records
from pipeline.agents.names import resolve
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError

KUHN = builtin("kuhn.limit.2p")
LIMIT = builtin("holdem.limit.2p.reverse_blinds")


def test_a_copy_is_told_better_the_more_hands_there_are_and_the_source_never() -> None:
    source = Hashed(KUHN)
    copy = Copy(source, Hashed(KUHN, 1), 0.3)
    plays = [play_records([agent, source], KUHN, 4000, seed) for agent, seed in ((source, 0), (copy, 1), (source, 2))]
    areas = detection_auc(plays[0], plays[1], hands=2000)
    assert list(areas) == [1, 10, 100]
    assert 0.5 < areas[1] < areas[10] < areas[100]
    assert areas[100] > 0.85
    by_chance = detection_auc(plays[0], plays[2], hands=2000)
    assert abs(by_chance[1] - 0.5) < 0.03


def test_cards_that_were_not_shown_change_no_feature() -> None:
    agents = [resolve("@equity", LIMIT), resolve("@random", LIMIT)]
    records = play_records(agents, LIMIT, 400, 0)
    features = hand_features(records, 0)
    rows = np.arange(len(records))
    position = (records.seats == 0).argmax(axis=1)
    showdown = features[:, 4] == 1
    assert 20 < showdown.sum() < 380
    hole = records.hole.copy()
    hole[rows, position] = (hole[rows, position] + 4) % 52
    hole[rows, 1 - position] = 255
    other = hand_features(replace(records, hole=hole), 0)
    np.testing.assert_array_equal(features[~showdown], other[~showdown])
    assert (features[showdown] != other[showdown]).any(axis=1).all()


def test_blocks_of_a_match_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [resolve("@random", LIMIT), resolve("@random", LIMIT)]
    whole = play_records(agents, LIMIT, 200, 3)
    monkeypatch.setattr("benchmarks._classifier.BLOCK_HANDS", 64)
    parts = play_records(agents, LIMIT, 200, 3)
    np.testing.assert_array_equal(hand_features(whole, 1), hand_features(parts, 1))
    assert len(np.unique(parts.deals)) == 100


def test_a_detector_without_other_hands_to_be_judged_on_is_refused() -> None:
    records = play_records([Hashed(KUHN), Hashed(KUHN)], KUHN, 100, 0)
    with pytest.raises(PipelineError, match="needs more to be judged on: there are 100 and 100"):
        detection_auc(records, records, hands=100)


def test_the_area_under_the_curve_is_that_of_all_pairs() -> None:
    random = np.random.default_rng(0)
    low, high = random.integers(0, 9, 200).astype(float), random.integers(3, 12, 300).astype(float)
    pairs = (high[:, None] > low).mean() + (high[:, None] == low).mean() / 2
    assert auc(low, high) == pytest.approx(pairs)
