"""Models trained again on parts of their deals: what copies from halves bound is known, because the source is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from mixing_agents import Hashed

import pipeline as p
from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.evaluation.hands_to_tell import hands_to_tell, hands_to_tell_at_most
from pipeline.evaluation.retraining import half_mixes, train_again
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import SCORED, load_bundle
from pipeline.models.measures import row_measures
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A dataset of self-play in Leduc, a bundle trained on it, and the true probabilities."""
    folder = tmp_path_factory.mktemp("leduc")
    source = Hashed(builtin("leduc.limit.2p"))
    match = play_match([source, source], source.game, hands=3000, log=folder / "logs" / "x", probabilities=True)
    ingest(match.logs, folder / "rows", options(agents=["hashed"], strength=False))
    train_bundles(Request(folder / "rows", folder / "copy", ("hashed",)))
    return folder / "rows", folder / "copy", folder / "logs" / "x.probs.parquet"


def test_the_bound_is_no_less_than_the_hands_of_the_copies_that_it_is_about(copied: tuple[Path, Path, Path]) -> None:
    rows, bundle, truth = copied
    evaluation = evaluate_models(rows, [str(bundle)], Scope(probabilities=[truth]))
    sample, opened = evaluation.samples[0], evaluation.models[0]
    assert opened.bundle is not None
    assert sample.dealt is not None
    mixes = half_mixes(opened.bundle, rows, sample, name="copy")
    at_most = hands_to_tell_at_most(*mixes, sample.dealt)
    assert at_most is not None
    kl = [row_measures(mix, sample.taken, sample.truth)["kl"] for mix in mixes]
    exact = hands_to_tell((kl[0] + kl[1]) / 2, sample.dealt)
    assert exact is not None
    assert exact.hands is not None
    assert exact.hands < at_most < 50 * exact.hands
    bounded = train_again(evaluation, halves=True)
    assert bounded.scored[0][0].scores[-1].tell_at_most == at_most
    assert all(score.tell_at_most is None for model in bounded.scored[0][1:] for score in model.scores)


def test_the_bound_needs_no_true_probabilities(copied: tuple[Path, Path, Path]) -> None:
    rows, bundle, truth = copied
    arguments = ["evaluate", "--data", str(rows), str(bundle), "--also", "halves"]
    printed = [
        json.loads(CliRunner().invoke(group, [*arguments, "--json", *more], catch_exceptions=False).stdout)
        for more in ([], ["--probabilities", str(truth)])
    ]
    unknown, known = (next(row for row in json_rows if row["street"] == "all") for json_rows in printed)
    assert unknown["hands_to_tell"] is None
    assert unknown["hands_to_tell_at_most"] == known["hands_to_tell_at_most"] > 0
    table = CliRunner().invoke(group, arguments, catch_exceptions=False).output
    assert "half the deals, at most" in table


def test_what_cannot_be_trained_on_halves_is_refused(copied: tuple[Path, Path, Path]) -> None:
    rows, bundle, _ = copied
    with pytest.raises(PipelineError, match="needs a trained bundle"):
        train_again(evaluate_models(rows, ["@call"], Scope(["hashed"])), halves=True)
    for trained_again in ("halves", "learning"):
        arguments = [
            "evaluate",
            "--data",
            str(rows),
            str(bundle),
            "--all-rows",
            "--allow-overlap",
            "--also",
            trained_again,
        ]
        with pytest.raises(PipelineError, match="trains models on rows of"):
            CliRunner().invoke(group, arguments, catch_exceptions=False)
    evaluation = evaluate_models(rows, [str(bundle)])
    opened, sample = evaluation.models[0], evaluation.samples[0]
    assert opened.bundle is not None
    without = replace(opened.bundle, parts=opened.bundle.parts[:1])
    with pytest.raises(PipelineError, match="copy has no model for some street"):
        half_mixes(without, rows, sample, name="copy")


def test_a_prior_that_knows_none_of_the_deals_allows_two_halves(tmp_path: Path) -> None:
    p.match("@equity", "@chump:maniac", hands=150, log=tmp_path / "logs" / "a")
    p.ingest(tmp_path / "logs", tmp_path / "rows", agent="equity", strength=False)
    p.train(tmp_path / "rows", tmp_path / "copy", rounds=5, max_iterations=5)  # the blend with @teacher as a prior
    row = p.evaluate(tmp_path / "rows", tmp_path / "copy", halves=True).json()[4]
    assert row["street"] == "all"
    assert row["hands_to_tell_at_most"] > 0
    out = tmp_path / "page.html"
    arguments = [
        "report",
        str(tmp_path / "copy"),
        "--data",
        str(tmp_path / "rows"),
        "--also",
        "halves",
        "--out",
        str(out),
    ]
    assert CliRunner().invoke(group, arguments, catch_exceptions=False).exit_code == 0
    assert "A perfect detector needs at most" in out.read_text()


def test_a_prior_of_the_same_logs_is_in_both_halves(copied: tuple[Path, Path, Path], tmp_path: Path) -> None:
    rows, bundle, _ = copied
    opened = load_bundle(bundle)
    known = replace(opened, trained_on=(*opened.trained_on, replace(opened.trained_on[0], role="prior", name="x")))
    (sample,) = evaluate_models(rows, [str(bundle)]).samples
    with pytest.raises(PipelineError, match="the prior x, which knows or may know deals of both halves"):
        half_mixes(known, rows, sample, name="copy")


def test_a_learning_curve_is_in_json_too(copied: tuple[Path, Path, Path]) -> None:
    rows, bundle, _ = copied
    arguments = ["evaluate", "--data", str(rows), str(bundle), "--also", "learning", "--json"]
    scores = json.loads(CliRunner().invoke(group, arguments, catch_exceptions=False).stdout)
    curves = {score["street"]: score["learning_curve"] for score in scores if score["model"] == "copy"}
    assert curves["all"] is None
    sizes = [point["rows"] for point in curves["flop"]]
    assert sizes == sorted(sizes)
    assert len(sizes) >= 3
    last = curves["flop"][-1]
    assert last["log_loss_interval"][0] < last["log_loss"] < last["log_loss_interval"][1]


def test_recorded_scores_are_shown_by_info_and_shipped(copied: tuple[Path, Path, Path], tmp_path: Path) -> None:
    rows, trained, truth = copied
    bundle = tmp_path / "copy"
    shutil.copytree(trained, bundle)
    scored = p.evaluate(rows, bundle, probabilities=truth).rows()
    (row,) = (row for row in scored if (row["model"], row["street"]) == ("copy", "all"))
    arguments = ["evaluate", str(bundle), "--data", str(rows), "--probabilities", str(truth), "--record"]
    CliRunner().invoke(group, arguments, catch_exceptions=False)
    recorded = p.describe(bundle)["data"]
    assert recorded["scores"][-1] == {key: row[key] for key in SCORED}
    assert row["hands_to_tell"] > 0
    sentence = f"about {row['hands_to_tell']:.3g} hands ({row['hands_to_tell_low']:.3g} "
    printed = CliRunner().invoke(group, ["info", str(bundle)], catch_exceptions=False).output
    assert sentence in " ".join(printed.split())
    for out in (tmp_path / "bot", tmp_path / "bot.zip"):
        CliRunner().invoke(group, ["ship", str(bundle), "--out", str(out)], catch_exceptions=False)
        assert p.describe(out)["data"] == recorded
    readme = (tmp_path / "bot" / "README.md").read_text()
    assert f"A perfect detector needs {sentence}" in readme
    assert f"all: error {row['error']:.4f}, log-loss {row['log_loss']:.4f}; no copy" in readme
    p.train(rows, bundle, agent="hashed", algorithm="frequency")  # other models: their scores are not known
    assert "scores" not in p.describe(bundle)["data"]


def test_scores_are_recorded_of_one_folder_on_new_rows(copied: tuple[Path, Path, Path]) -> None:
    rows, bundle, _ = copied
    for models, more in (
        (["@call"], []),
        ([str(bundle), str(bundle)], []),
        ([f"{bundle}:mode=argmax"], []),
        ([str(bundle)], ["--all-rows", "--allow-overlap"]),
    ):
        with pytest.raises(PipelineError, match="--record is for the folder of one bundle"):
            CliRunner().invoke(
                group, ["evaluate", *models, "--data", str(rows), "--record", *more], catch_exceptions=False
            )
    assert "scores" not in p.describe(bundle)["data"]
