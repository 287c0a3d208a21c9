"""Starting-hand charts: counting, playing, text and picture."""

from __future__ import annotations

import numpy as np
import pytest
from training_rows import decisions

from pipeline.dataset.decisions import betting_code
from pipeline.models.charts import Chart, count_chart, parse_chart
from pipeline.poker.cards import class_text
from pipeline.report.grids import chart_text
from pipeline.runtime.errors import PipelineError


def chart() -> Chart:
    _, rows, labels, _ = decisions(300)
    return count_chart(rows, labels, "fcr")


def test_every_preflop_decision_is_counted_once():
    _, rows, labels, _ = decisions(300)
    found = chart()
    before = rows["street"] == 0
    assert found.counts.sum() == before.sum()
    raised = (rows["betting_codes"][:, 0] == betting_code("r")) & before
    assert (
        found.counts[found.words == betting_code("r")].sum(axis=(0, 1)).tolist() == np.bincount(labels[raised]).tolist()
    )


def test_play_follows_the_counts_where_there_are_many():
    counts = np.zeros((1, 169, 3))
    counts[0, 5] = 300, 100, 600
    found = Chart(np.array([0]), counts, "fcr")
    _, rows, _, _ = decisions(300)
    row = rows[(rows["street"] == 0) & (rows["betting_codes"][:, 0] == 0)][:1].copy()
    row["start"] = 5
    row["legal"] = 7
    assert found.predict(row)[0] == pytest.approx([0.3, 0.1, 0.6], abs=0.01)
    row["legal"] = 6
    assert found.predict(row)[0] == pytest.approx([0, 1 / 7, 6 / 7], abs=0.01)


def test_a_class_without_decisions_plays_like_its_neighbours_in_strength():
    counts = np.zeros((1, 169, 3))
    weak, strong = [i for i in range(169) if class_text(i) in ("32o", "42o", "72o")], [0, 14, 28]
    counts[0, weak, 0] = 50
    counts[0, strong, 2] = 50
    mixes = Chart(np.array([0]), counts, "fcr").mixes
    names = {class_text(i): i for i in range(169)}
    assert mixes[0, names["62o"], 0] > 0.9
    assert mixes[0, names["JJ"], 2] > 0.9
    assert (mixes > 0).all()


def test_a_situation_never_seen_is_played_too():
    _, rows, _, _ = decisions(300)
    row = rows[rows["street"] == 0][:1].copy()
    row["betting_codes"][:, 0] = betting_code("rrrrr")
    row["legal"] = 7
    assert chart().predict(row).sum() == pytest.approx(1)


def test_a_one_card_game_has_a_chart_of_ranks():
    _, rows, labels, _ = decisions(200, "kuhn.limit.2p")
    found = count_chart(rows, labels, "fcr")
    assert found.counts.shape[1:] == (13, 3)
    again = parse_chart(found.to_text())
    assert (again.counts == found.counts).all()
    assert found.predict(rows).sum(axis=1) == pytest.approx(1)
    assert "A" in chart_text(found, 0)


def test_a_chart_survives_its_text_and_its_arrays():
    found = chart()
    again = parse_chart(found.to_text())
    assert (again.words == found.words).all()
    assert (again.counts == found.counts).all()
    loaded = Chart.load(found.to_json(), found.to_arrays())
    assert (loaded.counts == found.counts).all()


def test_the_picture_shows_the_likeliest_action_and_its_share():
    counts = np.zeros((1, 169, 3))
    counts[0, 0] = 0, 1, 3
    shown = chart_text(Chart(np.array([betting_code("cr")]), counts, "fcr"), 0).splitlines()
    assert shown[0].startswith("after call, raise (cr): 4 decisions")
    assert len(shown) == 15
    assert shown[2].split()[:3] == ["A", "r", "75"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a chart"),
        ("# situation class f c r\n", "no situation"),
        ("# situation class f c r\nr AA 1 2\n", "chart:2"),
        ("# situation class f c r\nr AA 1 2 -3\n", "chart:2"),
        ("# situation class f c r\nr XX 1 2 3\n", "chart:2"),
        ("# situation class f c r\nq AA 1 2 3\n", "chart:2"),
    ],
)
def test_a_text_that_is_no_chart_is_refused(text, message):
    with pytest.raises(PipelineError, match=message):
        parse_chart(text)


def test_no_preflop_decisions_make_no_chart():
    _, rows, labels, _ = decisions(300)
    with pytest.raises(PipelineError, match="no preflop"):
        count_chart(rows[rows["street"] > 0], labels[rows["street"] > 0], "fcr")
