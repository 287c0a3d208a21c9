"""Many players at once: rows read in pieces, baselines counted in one pass, scores of all together; unknown cards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from played_histories import random_history

import pipeline as p
from pipeline.cli.main import group
from pipeline.dataset.load import load_decisions
from pipeline.dataset.opening import list_agents
from pipeline.evaluation.baselines import baselines, count_baselines
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.evaluation.findings import collect_findings
from pipeline.formats.histories.notation import histories_text
from pipeline.report.pages import build_page


def test_many_players_are_scored_together_and_the_largest_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("@call", "@random", "@chump:maniac", "@chump:rock")
    for number, name in enumerate(names[1:]):
        p.match(name, "@call", hands=100 * (number + 1), seed=number, log=tmp_path / "logs" / str(number))
    p.ingest(tmp_path / "logs", tmp_path / "rows", strength=False)
    every = evaluate_models(tmp_path / "rows", ["@random"])
    monkeypatch.setattr("pipeline.evaluation.evaluation.LISTED_AGENTS", 2)
    largest = evaluate_models(tmp_path / "rows", ["@random"])
    assert (every.is_population, largest.is_population) == (False, True)
    assert [sample.agent for sample in largest.samples] == ["call", "chump-rock"]
    # what the others played counts in the pooled rows, as if they had been scored by themselves
    pooled = [[score.json() for model in one.pooled for score in model.scores] for one in (every, largest)]
    assert pooled[0] == pooled[1]
    assert len(evaluate_models(tmp_path / "rows", ["@random"], Scope(["call", "random", "chump-rock"])).scored) == 3
    arguments = ["evaluate", "@random", "--data", str(tmp_path / "rows")]
    text = CliRunner().invoke(group, arguments, catch_exceptions=False).output
    assert "(all agents)" in text
    assert "chump-rock" not in text
    assert "4 players; --by player has rows for the 2 largest" in " ".join(text.split())
    listed = CliRunner().invoke(group, [*arguments, "--by", "player"], catch_exceptions=False).output
    assert listed.index("(all agents)") < listed.index("chump-rock")
    page = build_page(collect_findings(largest))
    assert "Copies of 4 players" in page


def test_only_one_side_of_the_split_is_loaded_and_as_when_all_is(tmp_path: Path) -> None:
    p.match("@equity", "@chump:maniac", hands=300, log=tmp_path / "logs" / "a")
    p.ingest(tmp_path / "logs", tmp_path / "rows")
    everything = load_decisions(tmp_path / "rows", strength=True)
    for side in ("train", "validation"):
        part = load_decisions(tmp_path / "rows", side=side, strength=True)
        chosen = everything.validation == (side == "validation")
        assert part.strength is not None
        assert everything.strength is not None
        for name in ("rows", "action", "deal", "agent", "line", "k", "strength", "ochs"):
            np.testing.assert_array_equal(getattr(part, name), getattr(everything, name)[chosen])
        assert [part.files[i] for i in part.file] == [everything.files[i] for i in everything.file[chosen]]


def test_baselines_counted_in_pieces_are_those_of_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("@random", "@chump:maniac")):
        p.match(name, "@call", hands=200, seed=number, log=tmp_path / "logs" / str(number))
    p.ingest(tmp_path / "logs", tmp_path / "rows", strength=False)
    monkeypatch.setattr("pipeline.evaluation.baselines.MERGED_ROWS", 10)
    agents = list_agents(tmp_path / "rows")
    game = load_decisions(tmp_path / "rows").game
    for agent, counted in zip(agents, count_baselines(tmp_path / "rows", agents, game), strict=True):
        rows = load_decisions(tmp_path / "rows", [agent], side="train")
        whole = baselines(agent, game.labels, rows.rows, rows.action)
        for one, other in zip(counted, whole, strict=True):
            assert one.name == other.name
            np.testing.assert_allclose(one.player.probabilities(rows.rows), other.player.probabilities(rows.rows))


def test_a_model_that_looks_at_cards_is_scored_where_they_are_known(tmp_path: Path) -> None:
    hands = (replace(random_history(seed, 0.3), hand=str(seed), table="t") for seed in range(1000))
    (tmp_path / "all.phhs").write_text("".join(histories_text(hand for hand in hands if hand.nolimit)))
    p.ingest(tmp_path / "all.phhs", tmp_path / "rows", strength=False)
    p.train(tmp_path / "rows", tmp_path / "copy", algorithm="l-bfgs", max_iterations=2)
    evaluation = evaluate_models(tmp_path / "rows", [str(tmp_path / "copy")])
    held_out = load_decisions(tmp_path / "rows", side="validation")
    rows = sum(score.rows for score in evaluation.scores if (score.model, score.street) == ("copy", "all"))
    assert f"Scored on {held_out.known.sum():,} of {len(held_out):,} decisions" in evaluation.notes[0]
    assert 0 < held_out.known.sum() <= rows
