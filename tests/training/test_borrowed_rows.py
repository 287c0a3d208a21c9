"""Priors and charts bring rows along: a bundle says which, and those that it must not know are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeline as p
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.split import Split
from pipeline.models import trained_on
from pipeline.models.bundle import load_bundle
from pipeline.models.trained_on import name_digests
from pipeline.runtime.errors import PipelineError

HISTORY = {"algorithm": "l-bfgs", "pattern": "thesis", "max_iterations": 3, "street": "flop"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of three agents, ingested with deals and with players held out, and those of a fourth agent alone."""
    folder = tmp_path_factory.mktemp("borrowed")
    p.match("@chump:maniac", "@call", hands=300, log=folder / "logs" / "a")
    p.match("@chump:rock", "@call", hands=300, seed=2, log=folder / "logs" / "b")
    p.match("@chump:gambler", "@raise", hands=300, seed=3, log=folder / "elsewhere" / "c")
    for name in ("logs", "elsewhere"):
        p.ingest(folder / name, folder / f"{name}-rows", strength=False)
    p.ingest(folder / "logs", folder / "players", hold_out="players", strength=False)
    train(folder / "logs-rows", folder / "everybody")
    train(folder / "logs-rows", folder / "others", without="chump-maniac")
    return folder


def train(rows: Path, out: Path, **options: Any) -> p.Training:
    return p.train(rows, out, **{**HISTORY, **options})


def forget(bundle: Path, target: Path) -> Path:
    """A copy of a bundle as earlier versions wrote it, without what it was trained on."""
    shutil.copytree(bundle, target)
    manifest = json.loads((target / "manifest.json").read_text())
    del manifest["trained_on"], manifest["files"]["trained_on.safetensors"]
    (target / "trained_on.safetensors").unlink()
    manifest["about"]["data"] = "0" * 32
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def test_a_bundle_says_which_logs_and_players_it_was_trained_on(place: Path) -> None:
    (own,) = load_bundle(place / "others").trained_on
    assert own.split == Split()
    assert own.is_complete
    assert own.shared(read_manifest(place / "players").logs) == [
        log.label for log in read_manifest(place / "players").logs
    ]
    assert own.shared(read_manifest(place / "elsewhere-rows").logs) == []
    np.testing.assert_array_equal(own.players, name_digests(["call", "chump-rock"], {}))


def test_players_are_known_by_their_names_in_the_logs() -> None:
    renamed = name_digests(["slumbot"], {"Slumbot_2012": "slumbot", "Slumbot_2013": "x"})
    np.testing.assert_array_equal(renamed, name_digests(["slumbot", "Slumbot_2012"], {}))


def test_an_agent_is_left_out_of_a_pooled_training_by_name(place: Path) -> None:
    assert load_bundle(place / "others").agents == ("call", "chump-rock")
    with pytest.raises(PipelineError, match=r"'chump-mania'.*did you mean chump-maniac"):
        train(place / "logs-rows", place / "none", without="chump-mania")
    with pytest.raises(PipelineError, match="leaves no agent to imitate"):
        train(place / "logs-rows", place / "none", agent="call", without="call")


def test_a_prior_that_holds_the_agents_own_rows_is_refused_with_the_option_that_leaves_it_out(place: Path) -> None:
    with pytest.raises(
        PipelineError, match=r"everybody has learned from the rows of chump-maniac in .*a.0.log"
    ) as caught:
        train(place / "logs-rows", place / "none", agent="chump-maniac", prior=str(place / "everybody"))
    assert "again with --without chump-maniac" in str(caught.value)
    train(place / "logs-rows", place / "offset", agent="chump-maniac", prior=str(place / "others"))


def test_the_agent_to_leave_out_is_called_as_in_the_priors_own_dataset(place: Path, tmp_path: Path) -> None:
    p.ingest(place / "logs", tmp_path / "rows", alias=["chump-maniac=weak"], strength=False)
    train(tmp_path / "rows", tmp_path / "everybody")
    with pytest.raises(PipelineError, match=r"again with --without weak$"):
        train(place / "logs-rows", tmp_path / "none", agent="chump-maniac", prior=str(tmp_path / "everybody"))


def test_a_prior_of_the_agent_alone_needs_other_logs(place: Path, tmp_path: Path) -> None:
    train(place / "logs-rows", tmp_path / "one", agent="chump-rock")
    with pytest.raises(PipelineError, match="train it on other logs"):
        train(place / "logs-rows", tmp_path / "two", agent="chump-rock", prior=str(tmp_path / "one"))


def test_a_prior_of_other_logs_may_hold_players_of_the_same_name(place: Path, tmp_path: Path) -> None:
    train(place / "elsewhere-rows", tmp_path / "elsewhere")
    train(place / "logs-rows", tmp_path / "copy", agent="call", prior=str(tmp_path / "elsewhere"))
    own, lent = load_bundle(tmp_path / "copy").trained_on
    assert (own.role, lent.role, lent.name) == ("", "prior", str(tmp_path / "elsewhere"))


def test_a_prior_of_a_prior_is_known_too(place: Path, tmp_path: Path) -> None:
    train(place / "logs-rows", tmp_path / "one", agent="chump-maniac", prior=str(place / "others"))
    with pytest.raises(PipelineError, match="one has learned from the rows of chump-rock"):
        train(place / "logs-rows", tmp_path / "two", agent="chump-rock", prior=str(tmp_path / "one"))


@pytest.mark.parametrize("option", ["prior", "chart"])
def test_what_is_borrowed_from_another_split_is_refused(option: str, place: Path, tmp_path: Path) -> None:
    message = f"the {option} .*others was trained with one deal in ten held out, .*players holds out one player in ten"
    with pytest.raises(PipelineError, match=message):
        train(place / "players", tmp_path / "copy", agent="chump-maniac", **{option: str(place / "others")})


def test_a_prior_that_was_trained_on_logs_which_are_held_out_here_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "swapped").mkdir()
    for side, other in ((0, 1), (1, 0)):
        shutil.copy(place / "logs" / f"a.{side}.log", tmp_path / "swapped" / f"a.{other}.log")
    for logs, rows in ((place / "logs", "rows"), (tmp_path / "swapped", "swapped-rows")):
        p.ingest(logs, tmp_path / rows, validation=["a.1.log"], strength=False)
    train(tmp_path / "rows", tmp_path / "prior", agent="chump-rock")
    with pytest.raises(PipelineError, match=r"prior was trained on .*a\.1\.log of .*these are held out here"):
        train(tmp_path / "swapped-rows", tmp_path / "copy", agent="chump-maniac", prior=str(tmp_path / "prior"))


def test_a_borrowed_chart_is_recorded_in_the_bundle(place: Path, tmp_path: Path) -> None:
    train(place / "logs-rows", tmp_path / "copy", agent="chump-maniac", chart=place / "everybody")
    own, lent = load_bundle(tmp_path / "copy").trained_on
    assert (lent.role, lent.name) == ("chart", str(place / "everybody"))
    np.testing.assert_array_equal(own.logs, lent.logs)


def test_a_prior_from_before_bundles_had_records_is_taken_with_a_remark(place: Path, tmp_path: Path) -> None:
    old = forget(place / "everybody", tmp_path / "old")
    (result,) = train(place / "logs-rows", tmp_path / "copy", agent="chump-maniac", prior=str(old)).results
    assert any("unknown whether the prior" in remark and "chump-maniac" in remark for remark in result.remarks)


def test_of_too_many_logs_the_lowest_digests_are_kept(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained_on, "MAX_LOGS", 2)
    train(place / "logs-rows", tmp_path / "copy", agent="chump-rock", algorithm="majority", max_iterations=None)
    (own,) = load_bundle(tmp_path / "copy").trained_on
    assert len(own.logs) == 2
    assert not own.is_complete


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(role="friend"),
        lambda entry: entry.update(logs=7),
        lambda entry: entry.update(split={"validation": 3}),
        lambda entry: entry.update(is_complete="yes"),
        lambda entry: entry.pop("name"),
    ],
)
def test_records_that_are_none_are_refused_when_a_bundle_is_opened(change: Any, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "others", tmp_path / "bundle")
    path = tmp_path / "bundle" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest["trained_on"][0])
    path.write_text(json.dumps(manifest))
    with pytest.raises(PipelineError, match="not a bundle this version can read"):
        load_bundle(tmp_path / "bundle")
