"""Where a model fails, its worst hands, and whether the agent changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decision_rows import Known, made_up

from pipeline.evaluation.inspection import CUTS, breakdown, starting_charts, stationarity, worst_disagreements
from pipeline.evaluation.scoring import Candidate, score_all
from pipeline.models.measures import Bootstrap
from pipeline.report import tables


@pytest.fixture(scope="module")
def scored():
    sample = made_up()
    return score_all([Candidate("near", "near", ("teacher",), Known(sample.truth, 0.1))], sample)[0]


@pytest.mark.parametrize("cut", list(CUTS))
def test_the_parts_of_a_street_make_up_the_street(scored, cut: str) -> None:
    found = breakdown(scored, cut, Bootstrap(scored.sample.deal), min_rows=1)
    for score in scored.scores[:-1]:
        parts = [part for part in found if part.street == score.street]
        assert sum(part.rows for part in parts) == score.rows
        assert sum(part.share for part in parts) == pytest.approx(1.0)
        whole = sum(part.rows * part.log_loss.value for part in parts) / score.rows
        assert whole == pytest.approx(score.measures["log_loss"].value)
        floor = sum(part.rows * part.floor_error for part in parts) / score.rows
        assert floor == pytest.approx(score.floors["error"])
    assert len(tables.parts(found, cut, "fcr").rows) == len(found)


def test_small_parts_are_left_out_and_data_without_strength_has_no_strength_cut(scored) -> None:
    draws = Bootstrap(scored.sample.deal)
    assert breakdown(scored, "position", draws, min_rows=10_000) == []
    assert breakdown(replace(scored, sample=replace(scored.sample, strength=None)), "strength", draws) == []


def test_the_worst_hands_are_those_furthest_from_the_agent() -> None:
    sample = made_up()
    truth = sample.truth.copy()
    planted = 301
    truth[planted] = [0.0, 1e-6, 1 - 1e-6] if truth[planted].argmax() == 1 else [0.0, 1 - 1e-6, 1e-6]
    scored = score_all([Candidate("m", "m", (), Known(sample.truth, 0.3))], replace(sample, truth=truth))[0]
    found = worst_disagreements(scored, 3, by_pot=False)
    assert planted in found
    assert len(found) == 6
    unknown = replace(sample, truth=None)
    found = worst_disagreements(score_all([Candidate("m", "m", (), Known(sample.truth, 0.3))], unknown)[0], 2)
    assert len(found) == 4


def test_charts_hold_the_true_mix_or_the_counts(scored) -> None:
    found = starting_charts(scored)
    assert {chart.situation for chart in found} == {"-", "r", "c"}
    assert sum(chart.rows for chart in found) == 4000
    for chart in found:
        seen = chart.seen > 0
        assert chart.agent[seen].sum(axis=1) == pytest.approx(1.0)
        assert chart.model[seen].sum(axis=1) == pytest.approx(1.0)
        assert np.abs(chart.agent - chart.model).max() < 0.11
    counted = starting_charts(replace(scored, sample=replace(scored.sample, truth=None)))
    first = counted[0]
    assert (np.round(first.agent * first.seen[:, None], 6) % 1 == 0).all()


def test_an_agent_that_changes_in_mid_match_is_found_out() -> None:
    sample = made_up()
    rows = sample.rows.copy()
    rows["hole"], rows["board"], rows["street"], rows["betting_codes"] = [51, 50], 255, 0, 0
    rows["pot"], rows["to_call"], rows["position"], rows["legal"] = 15, 5, 1, 0b111
    late = sample.hand > sample.hand.max() / 2
    random = np.random.default_rng(3)
    steady = random.integers(0, 3, len(rows)).astype(np.uint8)
    changed = np.where(late, 2, steady).astype(np.uint8)
    calm = stationarity(replace(sample, rows=rows, taken=steady))
    assert [one.between for one in calm] == ["early and late hands", "left and right"]
    found = stationarity(replace(sample, rows=rows, taken=changed))
    assert found[0].change.distance.low > 0
    assert found[1].change.distance.low <= 0
    assert tables.stationary(found).rows[0][-1] == "changes"
    assert tables.stationary(calm).rows[1][-1] == "no sign of change"
