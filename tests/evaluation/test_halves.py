"""Copies from halves of the deals: what they bound is known, because the source is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from mixing_agents import Hashed

from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.evaluation.halves import half_mixes, with_bound
from pipeline.evaluation.hands_to_tell import hands_to_tell, hands_to_tell_at_most
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
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
    bounded = with_bound(evaluation)
    assert bounded.scored[0][0].scores[-1].tell_at_most == at_most
    assert all(score.tell_at_most is None for model in bounded.scored[0][1:] for score in model.scores)


def test_the_bound_needs_no_true_probabilities(copied: tuple[Path, Path, Path]) -> None:
    rows, bundle, truth = copied
    arguments = ["evaluate", "--data", str(rows), str(bundle), "--halves"]
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
        with_bound(evaluate_models(rows, ["@call"], Scope(["hashed"])))
    for trained_again in ("--halves", "--learning"):
        arguments = ["evaluate", "--data", str(rows), str(bundle), "--all-rows", "--allow-overlap", trained_again]
        with pytest.raises(PipelineError, match="models that learn from rows of"):
            CliRunner().invoke(group, arguments, catch_exceptions=False)
    evaluation = evaluate_models(rows, [str(bundle)])
    opened, sample = evaluation.models[0], evaluation.samples[0]
    assert opened.bundle is not None
    without = replace(opened.bundle, parts=opened.bundle.parts[:1])
    with pytest.raises(PipelineError, match="copy has no model for some street"):
        half_mixes(without, rows, sample, name="copy")
