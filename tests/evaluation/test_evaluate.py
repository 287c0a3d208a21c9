"""Scores, floors, baselines and paired differences on decisions of an agent whose mix is known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from decision_rows import Known, made_up
from sklearn.metrics import log_loss

from pipeline.dataset.decisions import OBSERVATION, STREETS
from pipeline.evaluation.baselines import baselines
from pipeline.evaluation.evaluation import short_names
from pipeline.evaluation.repeat_floor import information_set_keys
from pipeline.evaluation.samples import join_samples
from pipeline.evaluation.scoring import (
    Candidate,
    ModelScore,
    PairedDifference,
    Scored,
    paired_differences,
    pool_scores,
    repeat_floors,
    score_all,
)
from pipeline.models import measures
from pipeline.models.measures import LEAST_PROBABILITY, Interval
from pipeline.poker.game import find_game
from pipeline.report import tables
from pipeline.report.text import TextTable, number
from pipeline.runtime.errors import PipelineError


@pytest.fixture(scope="module")
def scored() -> list[Scored]:
    sample = made_up()
    models = [("exact", 0.0), ("near", 0.1), ("far", 0.5)]
    return score_all([Candidate(n, n, ("teacher",), Known(sample.truth, bend)) for n, bend in models], sample)


def by_street(scored: list[Scored], model: int, street: str) -> ModelScore:
    return next(score for score in scored[model].scores if score.street == street)


def test_each_street_is_scored_and_then_all_together(scored) -> None:
    assert [(score.street, score.rows) for score in scored[0].scores] == [
        ("preflop", 4000),
        ("flop", 2000),
        ("all", 6000),
    ]


def test_a_score_is_that_of_the_masked_probabilities(scored) -> None:
    sample = made_up()
    flop = sample.rows["street"] == 1
    legal = sample.rows["legal"][:, None] >> np.arange(3) & 1 == 1
    p = np.where(legal, scored[2].candidate.player.probabilities(sample.rows), 0.0)
    p /= p.sum(axis=1, keepdims=True)
    found = by_street(scored, 2, "flop")
    assert found.measures["log_loss"].value == pytest.approx(log_loss(sample.taken[flop], p[flop]), rel=1e-5)
    assert found.measures["error"].value == (p[flop].argmax(axis=1) != sample.taken[flop]).mean()
    assert sum(found.played) == pytest.approx(1.0)


def test_the_agents_own_mix_has_no_distance_and_scores_its_floor(scored) -> None:
    for score in scored[0].scores:
        assert score.distance["kl"].value < 1e-5
        assert score.distance["tv"].value < 1e-5
        assert score.distance["excess"].value == pytest.approx(0.0, abs=1e-12)
        for name in ("error", "log_loss", "brier", "mismatch"):
            interval = score.measures[name]
            slack = interval.high - interval.low
            assert abs(interval.value - score.floors[name]) < slack, name
        assert score.known == score.rows


def test_distances_grow_with_the_bend_and_weigh_by_the_pot(scored) -> None:
    sample = made_up()
    for measure in ("kl", "tv"):
        values = [by_street(scored, model, "all").distance[measure].value for model in range(3)]
        assert values[0] < values[1] < values[2]
    tv = scored[2].by_row["tv"]
    weighted = by_street(scored, 2, "all").distance["tv_by_pot"].value
    assert weighted == pytest.approx(np.average(tv, weights=sample.rows["pot"]))


def test_paired_differences_are_narrower_than_their_parts(scored) -> None:
    pairs = [pair for pair in paired_differences(scored) if (pair.street, pair.measure) == ("all", "log_loss")]
    assert {pair.other for pair in pairs} <= {"exact", "near"}
    far = next(pair for pair in pairs if pair.model == "far")
    alone = by_street(scored, 2, "all").measures["log_loss"]
    assert far.difference.low > 0
    assert far.difference.high - far.difference.low < alone.high - alone.low
    assert paired_differences(scored[:1]) == []


def test_without_true_probabilities_pairs_give_the_brier_floor() -> None:
    sample = made_up()
    truth = sample.truth
    twins = replace(sample, rows=sample.rows.copy(), truth=None)
    twins.rows["hole"] = np.array([[51, 50]], dtype=np.uint8)
    twins.rows["betting_codes"], twins.rows["street"], twins.rows["to_call"], twins.rows["pot"] = 0, 0, 0, 0
    twins.rows["position"], twins.rows["board"], twins.rows["legal"] = 0, 255, 0b111
    mix = np.array([0.2, 0.5, 0.3])
    taken = np.random.default_rng(1).choice(3, size=len(twins), p=mix).astype(np.uint8)
    found = score_all([Candidate("m", "m", (), Known(np.tile(mix, (len(truth), 1))))], replace(twins, taken=taken))
    score = found[0].scores[0]
    assert score.floors == {}
    assert score.pairs.coverage == 1.0
    assert score.pairs.brier.low <= 1 - (mix**2).sum() <= score.pairs.brier.high
    assert score.json()["kl"] is None
    assert score.json()["pair_floor_brier"]["brier_on_covered"] == pytest.approx(score.measures["brier"].value)
    assert any("Bounds on those rows, not estimates" in note for note in tables.notes([score]))


def test_floors_are_over_the_rows_whose_mix_is_known() -> None:
    sample = made_up()
    truth = sample.truth.copy()
    truth[1000:] = np.nan
    found = score_all([Candidate("m", "m", (), Known(sample.truth))], replace(sample, truth=truth))[0].scores[-1]
    assert (found.rows, found.known) == (6000, 1000)
    assert found.floors["error"] == pytest.approx((1 - truth[:1000].max(axis=1)).mean())
    assert any("1,000 of 6,000" in note for note in tables.notes([found]))


def test_baselines_count_the_training_rows() -> None:
    sample = made_up()
    uniform, frequency, betting = baselines("teacher", "fcr", sample.rows, sample.taken)
    rows = sample.rows[:50]
    assert uniform.player.probabilities(rows).sum(axis=1) == pytest.approx(1.0)
    flop = sample.rows["street"] == 1
    raised = flop & (sample.rows["legal"] == 0b111)
    by_flop = np.bincount(sample.taken[flop], minlength=3) / flop.sum()
    assert frequency.player.probabilities(sample.rows[raised][:1])[0] == pytest.approx(by_flop, abs=1e-3)
    seat = raised & (sample.rows["position"] == 1)
    by_line = np.bincount(sample.taken[seat], minlength=3) / seat.sum()
    assert betting.player.probabilities(sample.rows[seat][:1])[0] == pytest.approx(by_line, abs=0.01)
    unseen = rows[:1].copy()
    unseen["betting_codes"][0, 0], unseen["street"] = 0o33333, 3
    assert betting.player.probabilities(unseen).sum() == pytest.approx(1.0)
    assert len(baselines("teacher", "fcr", sample.rows[:0], sample.taken[:0])) == 1


def hold(*cards: str) -> np.ndarray:
    """One row with two hole cards and a board."""
    from pipeline.poker.cards import parse_card

    row = np.zeros(1, dtype=OBSERVATION)
    numbers = [parse_card(card) for card in cards]
    row["hole"], row["board"] = numbers[:2], 255
    row["board"][0, : len(numbers) - 2] = numbers[2:]
    return row


def test_renaming_suits_or_reordering_hole_and_flop_keeps_the_information_set() -> None:
    first = information_set_keys(hold("As", "Kd", "2c", "7d", "9s", "Jh"))
    assert information_set_keys(hold("Kh", "Ac", "9c", "2s", "7h", "Jd")) == first
    assert information_set_keys(hold("As", "Kd", "2c", "7d", "Jh", "9s")) != first
    assert information_set_keys(hold("As", "Ks", "2c", "7d", "9s", "Jh")) != first
    betted = hold("As", "Kd", "2c", "7d", "9s", "Jh")
    betted["betting_codes"][0, 0] = 0o3
    assert information_set_keys(betted) != first


def test_tables_are_the_same_in_text_markdown_and_csv(scored) -> None:
    scores = [score for one in scored for score in one.scores]
    made = tables.by_model(scores, "log_loss")
    head, rows = made.head, made.rows
    assert head == ["agent", "street", "rows", "exact", "near", "far", "floor"]
    assert [row[1] for row in rows] == ["preflop", "flop", "all"]
    assert sum(cell.endswith(" *") for cell in rows[2]) == 1
    assert made.text().splitlines()[0].split() == head
    assert made.markdown().count("\n") == len(rows) + 1
    flat = TextTable.of([score.row() for score in scores])
    assert flat.csv().splitlines()[0].startswith("model,algorithm,agent,street,rows,error,log_loss")
    assert len(flat.rows) == len(scores)
    assert len(tables.details(scores).rows) == len(scores)
    assert tables.differences(paired_differences(scored)).rows[0][-1] in ("worse", "no clear difference")
    assert any(f"{LEAST_PROBABILITY:g}" in note for note in tables.notes(scores))
    assert tables.cross([one.scores[-1] for one in scored]).head == ["model", "teacher"]


def test_an_interval_that_nobody_can_tell_is_null_in_json(scored) -> None:
    unknown = Interval(0.5, float("nan"), float("nan"))
    score = replace(scored[0].scores[0], measures=dict.fromkeys(scored[0].scores[0].measures, unknown))
    assert "NaN" not in json.dumps(score.json())
    assert score.json()["ci95"]["error"] is None
    assert score.json()["interval"]["error"] is None
    assert score.row()["error_low"] is None


def test_the_json_form_has_the_fixed_keys_first(scored) -> None:
    found = scored[0].scores[0].json()
    fixed = [
        "model",
        "algorithm",
        "agent",
        "street",
        "rows",
        "error",
        "log_loss",
        "floor_error",
        "floor_log_loss",
        "kl",
        "tv",
    ]
    assert list(found)[: len(fixed)] == fixed
    low, high = found["interval"]["error"]
    assert low <= found["error"] <= high
    assert found["ci95"]["error"] == pytest.approx((high - low) / 2)


def test_the_decisions_of_several_agents_are_also_scored_together() -> None:
    first, second = made_up(), replace(made_up(seed=5), agent="pupil")
    rows = []
    for sample in (first, second):
        models = [Candidate("near", "near", (), Known(sample.truth, 0.1))]
        rows.append(score_all([*models, *baselines(sample.agent, "fcr", sample.rows, sample.taken)], sample))
    found = pool_scores(rows)
    assert [one.candidate.name for one in found] == ["near", "(uniform)", "(street)", "(betting)"]
    for one, mine in zip(found, zip(*rows, strict=True), strict=True):
        assert [score.street for score in one.scores] == ["preflop", "flop", "all"]
        for at, score in enumerate(one.scores):
            parts = [part.scores[at] for part in mine]
            assert score.agent == "(all agents)"
            assert score.rows == sum(part.rows for part in parts)
            for name in ("error", "log_loss", "brier"):
                mean = np.average([part.measures[name].value for part in parts], weights=[part.rows for part in parts])
                assert score.measures[name].value == pytest.approx(mean)
            floor = np.average([part.floors["error"] for part in parts], weights=[part.rows for part in parts])
            assert score.floors["error"] == pytest.approx(floor)


def test_decisions_of_two_agents_are_no_pair_of_repeated_decisions() -> None:
    one = replace(made_up(), truth=None)
    other = replace(one, agent="pupil", taken=np.where(one.taken == 2, 1, 2).astype(np.uint8), deal=one.deal + 1)
    alone = repeat_floors(one)["all"]
    both, _ = join_samples([one, other])
    assert repeat_floors(both)["all"].coverage == pytest.approx(alone.coverage)


def test_an_unknown_floor_is_shown_by_its_bounds() -> None:
    sample = made_up()
    rows = sample.rows.copy()
    rows["hole"], rows["board"] = np.array([[51, 50]], dtype=np.uint8), 255
    twins = replace(sample, rows=rows, truth=None)
    scores = score_all([Candidate("m", "m", (), Known(sample.truth))], twins)[0].scores
    brier = scores[0].pairs.brier.value
    assert tables.by_model(scores, "error").rows[0][4] == f"{50 * brier:.2f}–{100 * brier:.2f}"
    assert tables.by_model(scores, "log_loss").rows[0][4] == f"≥ {-np.log(1 - brier):.4f}"


def test_the_bounds_of_a_floor_say_of_which_rows_they_are() -> None:
    sample = made_up()
    rows, half = sample.rows.copy(), len(sample.rows) // 2
    rows["hole"][:half], rows["board"][:half] = np.array([[51, 50]], dtype=np.uint8), 255
    scores = score_all([Candidate("m", "m", (), Known(sample.truth))], replace(sample, rows=rows, truth=None))[0].scores
    covered = scores[0].pairs.coverage
    assert 0.05 < covered < 1
    assert tables.by_model(scores, "log_loss").rows[0][4].endswith(f"({covered:.0%} of rows)")


def test_a_floor_without_repeats_is_at_most_what_the_best_model_reaches() -> None:
    sample = made_up()
    rows = sample.rows.copy()
    rows["stack"] = np.arange(len(rows))  # no two rows are the same
    alone = replace(sample, rows=rows, truth=None)
    even = np.full(sample.truth.shape, 1 / 3)
    scored = score_all(
        [Candidate("far", "m", (), Known(even)), Candidate("exact", "m", (), Known(sample.truth))], alone
    )
    scores = [score for one in scored for score in one.scores]
    for score in scores:
        assert score.pairs.coverage == 0
        best = by_street(scored, 1, score.street).measures
        assert score.floors_at_most == {name: best[name].high for name in ("error", "log_loss", "brier")}
        at = slice(None) if score.street == "all" else alone.rows["street"] == STREETS.index(score.street)
        assert measures.floors(sample.truth[at])["log_loss"].mean() <= score.floors_at_most["log_loss"]
        assert score.json()["floor_log_loss_at_most"] == score.floors_at_most["log_loss"]
    made = tables.by_model(scores, "log_loss")
    assert made.rows[0][made.head.index("floor")] == f"≤ {scores[0].floors_at_most['log_loss']:.4f}"
    assert any("is a bound, not an estimate" in note for note in tables.notes(scores))


def test_pairs_that_are_alike_differ_in_amounts_alone_and_bound_the_floor_from_above() -> None:
    luck = np.random.default_rng(3)
    sample = made_up()
    rows = sample.rows.copy()
    rows["hole"], rows["board"] = np.array([[51, 50]], dtype=np.uint8), 255
    rows["betting_codes"], rows["street"], rows["position"], rows["legal"] = 0, 0, 0, 0b1111111
    rows["pot"] = np.arange(len(rows))
    large = rows["pot"] % 2 == 1  # plays otherwise at odd amounts
    mixes = np.zeros((len(rows), 7))
    mixes[:, :2] = np.where(large[:, None], [0.9, 0.1], [0.3, 0.7])
    taken = (luck.random(len(rows)) >= mixes[:, 0]).astype(np.uint8)
    nolimit = replace(sample, rows=rows, truth=None, taken=taken, game=find_game("holdem.nolimit.2p.reverse_blinds"))
    score = score_all([Candidate("exact", "m", (), Known(mixes))], nolimit)[0].scores[0]
    assert score.pairs.coverage == 0
    assert score.alike.coverage == 1
    assert score.alike.brier.low > (1 - (mixes**2).sum(axis=1)).mean()
    assert score.json()["alike_floor_brier_at_most"]["coverage"] == 1
    assert any("the same betting in size classes" in note for note in tables.notes([score]))


def test_nothing_is_minus_zero() -> None:
    nothing = Interval(-1e-9, -2e-9, 0.1)
    made = tables.differences([PairedDifference("a", "flop", "log_loss", "m", "n", nothing)])
    assert made.rows[0][5] == "0.0000 [0.0000, +0.1000]"
    assert number(-1e-9) == "0.0000"


def test_models_are_named_by_their_folders_as_far_as_needed() -> None:
    assert short_names(["out/imitator", "out/thesis/l-bfgs"]) == ["imitator", "l-bfgs"]
    assert short_names(["out/a/l-bfgs", "out/b/l-bfgs:mode=argmax"]) == ["l-bfgs", "l-bfgs:mode=argmax"]
    assert short_names(["out/a/rprop.zip", "out/b/rprop", "@call"]) == ["a/rprop", "b/rprop", "@call"]
    with pytest.raises(PipelineError, match="given twice"):
        short_names(["out/a", "out/a"])
