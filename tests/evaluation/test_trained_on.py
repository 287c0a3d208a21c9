"""A score is of rows that the model never learned from, or says that it is not: splits, logs, priors and charts."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pipeline as p
from pipeline.cli.main import group
from pipeline.features.patterns import parse_pattern
from pipeline.models.bundle import load_bundle
from pipeline.models.trained_on import TrainedOn
from pipeline.runtime.errors import PipelineError
from pipeline.training.requests import Request
from pipeline.training.run import train_text

COUNTS = {"algorithm": "majority", "pattern": "thesis", "street": "flop"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of two matches, datasets of them by every split, and bundles trained on one of them."""
    folder = tmp_path_factory.mktemp("trained_on")
    p.match("@chump:maniac", "@chump:rock", hands=300, log=folder / "logs" / "a")
    p.match("@chump:maniac", "@chump:rock", hands=300, seed=2, log=folder / "fresh" / "b")
    p.ingest(folder / "logs", folder / "rows", strength=False)
    p.ingest(folder / "logs", folder / "players", hold_out="players", strength=False)
    p.ingest(folder / "fresh", folder / "fresh-rows", strength=False)
    p.train(folder / "rows", folder / "copy", **COUNTS)
    return folder


def evaluate(data: Path, *arguments: object) -> str:
    """What `evaluate` prints; its error is raised."""
    words = ["evaluate", "--data", str(data), *map(str, arguments)]
    done = CliRunner().invoke(group, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def forget(bundle: Path, target: Path, **about: Any) -> Path:
    """A copy of a bundle as earlier versions wrote it, without what it was trained on."""
    shutil.copytree(bundle, target)
    manifest = json.loads((target / "manifest.json").read_text())
    del manifest["trained_on"], manifest["files"]["trained_on.safetensors"]
    (target / "trained_on.safetensors").unlink()
    manifest["about"] = about
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def test_deals_held_out_in_training_and_players_in_scoring_are_refused_by_both_names(place: Path) -> None:
    message = "copy was trained with one deal in ten held out, .*players holds out one player in ten"
    with pytest.raises(PipelineError, match=message) as caught:
        p.evaluate(place / "players", place / "copy")
    assert "--hold-out" in str(caught.value)


def test_aliases_count_where_they_decide_whether_a_player_is_held_out(place: Path, tmp_path: Path) -> None:
    for number, hold_out in enumerate(("deals", "players")):
        renamed = tmp_path / f"rows-{number}"
        p.ingest(place / "logs", renamed, hold_out=hold_out, alias=["chump-rock=rock"], strength=False)
    assert p.evaluate(tmp_path / "rows-0", place / "copy", agent="chump-maniac").scores
    p.train(place / "players", tmp_path / "copy", **COUNTS)
    with pytest.raises(PipelineError, match="with the alias chump-rock=rock"):
        p.evaluate(tmp_path / "rows-1", tmp_path / "copy", agent="chump-maniac")


def test_the_same_logs_in_another_folder_a_larger_set_or_an_archive_are_not_new(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "logs", tmp_path / "moved" / "elsewhere")
    shutil.copytree(place / "fresh", tmp_path / "moved" / "more")
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "moved", "logs")
    for source in ("moved", "all.tar.gz"):
        p.ingest(tmp_path / source, tmp_path / f"rows-{source}", strength=False)
        with pytest.raises(PipelineError, match=r"trained on .*elsewhere/a\.0\.log, .*/a\.1\.log of") as caught:
            p.evaluate(tmp_path / f"rows-{source}", place / "copy", all_rows=True)
        assert "b.0.log" not in str(caught.value)
    assert p.evaluate(place / "fresh-rows", place / "copy", all_rows=True).json()[0]["overlap"] == 0


def test_an_archive_of_what_was_trained_on_unpacked_is_not_new_either(place: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(place / "logs", "logs")
    p.ingest(tmp_path / "all.tar", tmp_path / "packed", strength=False)
    p.train(tmp_path / "packed", tmp_path / "copy", **COUNTS)
    with pytest.raises(PipelineError, match=r"trained on .*a\.0\.log"):
        p.evaluate(place / "rows", tmp_path / "copy", all_rows=True)


def test_an_overlap_that_is_allowed_is_said_in_table_json_and_page(place: Path, tmp_path: Path) -> None:
    options = (place / "copy", "--all-rows", "--allow-overlap")
    table = evaluate(place / "rows", *options)
    assert "copy was trained on" in table
    assert "a.1.log of" in table
    rows = json.loads(evaluate(place / "rows", *options, "--json"))
    assert {row["model"]: row["overlap"] for row in rows} == {"copy": 2, "(uniform)": 0}
    page = p.write_report(
        place / "rows", place / "copy", out=tmp_path / "page.html", all_rows=True, allow_overlap=True
    ).read_text()
    assert "2 of their logs</b>, so that it looks too good" in page
    assert "that it was not trained on" not in page
    assert "a.0.log, " in page


def test_logs_held_out_by_name_are_known_by_their_bytes(place: Path, tmp_path: Path) -> None:
    p.ingest(place / "logs", tmp_path / "rows", validation=["a.1.log"], strength=False)
    p.train(tmp_path / "rows", tmp_path / "copy", **COUNTS)
    assert p.evaluate(tmp_path / "rows", tmp_path / "copy").json()[0]["overlap"] == 0
    (tmp_path / "renamed").mkdir()
    shutil.copy(place / "logs" / "a.0.log", tmp_path / "renamed" / "a.1.log")
    shutil.copy(place / "logs" / "a.1.log", tmp_path / "renamed" / "a.0.log")
    p.ingest(tmp_path / "renamed", tmp_path / "swapped", validation=["a.1.log"], strength=False)
    with pytest.raises(PipelineError, match=r"trained on .*a\.1\.log of"):
        p.evaluate(tmp_path / "swapped", tmp_path / "copy")


def test_logs_that_were_held_out_by_name_are_new_to_the_model(place: Path, tmp_path: Path) -> None:
    p.ingest(place / "logs", tmp_path / "rows", validation=["a.1.log"], strength=False)
    p.train(tmp_path / "rows", tmp_path / "copy", **COUNTS)
    p.ingest(place / "logs" / "a.1.log", tmp_path / "held-out", strength=False)
    assert p.evaluate(tmp_path / "held-out", tmp_path / "copy", all_rows=True).json()[0]["overlap"] == 0


@pytest.mark.parametrize("role", ["prior", "chart"])
def test_what_a_prior_or_a_chart_learned_from_counts_too(role: str, place: Path, tmp_path: Path) -> None:
    p.train(place / "fresh-rows", tmp_path / "lender", algorithm="l-bfgs", pattern="thesis", max_iterations=2)
    options = {"algorithm": "l-bfgs", "pattern": "thesis", "max_iterations": 2, "street": "flop", "agent": "chump-rock"}
    p.train(place / "rows", tmp_path / "copy", **options, **{role: str(tmp_path / "lender")})
    assert p.evaluate(place / "rows", tmp_path / "copy").scores
    with pytest.raises(PipelineError, match=rf"the {role} .*lender of .*copy was trained on .*b\.0\.log"):
        p.evaluate(place / "fresh-rows", tmp_path / "copy", all_rows=True)


def test_a_chart_that_options_borrow_counts_too(place: Path, tmp_path: Path) -> None:
    p.ingest(place / "fresh", tmp_path / "players", hold_out="players", strength=False)
    p.train(tmp_path / "players", tmp_path / "lender", **COUNTS)
    p.train(place / "rows", tmp_path / "copy", algorithm="majority", pattern="thesis")
    assert p.evaluate(place / "rows", f"{tmp_path / 'copy'}:chart=selby").scores
    with pytest.raises(PipelineError, match=r"the chart .*lender of .* was trained with one player in ten held out"):
        p.evaluate(place / "rows", f"{tmp_path / 'copy'}:chart={tmp_path / 'lender'}")


def test_what_an_older_bundle_does_not_say_is_unknown(place: Path, tmp_path: Path) -> None:
    settings = {"agent": [], "alias": {}, "validation": [], "game": None, "strength": False}
    silent = forget(place / "copy", tmp_path / "silent")
    old = forget(place / "copy", tmp_path / "old", data="0" * 32, options=settings)
    assert "It is unknown what was held out when" in evaluate(place / "rows", silent)
    assert "unknown" not in evaluate(place / "rows", old)  # deals were held out, as here
    assert "It is unknown whether" in evaluate(place / "fresh-rows", old, "--all-rows")
    rows = json.loads(evaluate(place / "fresh-rows", old, "--all-rows", "--json"))
    assert {row["overlap"] for row in rows if row["model"] == "old"} == {None}
    with pytest.raises(PipelineError, match="holds out one player in ten"):
        p.evaluate(place / "players", old)


def test_an_older_bundle_of_the_very_dataset_is_still_refused(place: Path, tmp_path: Path) -> None:
    about = load_bundle(place / "copy").about
    old = forget(place / "copy", tmp_path / "old", **about)
    with pytest.raises(PipelineError, match="leave out --all-rows"):
        p.evaluate(place / "rows", old, all_rows=True)


def test_archives_of_an_older_dataset_are_compared_whole(place: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(place / "logs", "logs")
    for name in ("new", "old"):
        p.ingest(tmp_path / "all.tar", tmp_path / name, strength=False)
    path = tmp_path / "old" / "manifest.json"
    content = json.loads(path.read_text())
    for batch in content["batches"]:
        del batch["packed"]
    path.write_text(json.dumps(content))
    p.train(tmp_path / "new", tmp_path / "copy", **COUNTS)
    with pytest.raises(PipelineError, match=r"trained on .*all\.tar of .*old"):
        p.evaluate(tmp_path / "old", tmp_path / "copy", all_rows=True)
    assert "which has archives does not say" in evaluate(tmp_path / "old", place / "copy", "--all-rows")


def test_a_chart_s_file_is_named_once_in_a_sentence() -> None:
    chart = TrainedOn("chart", "a.chart")
    assert chart.words("the chart a.chart") == "the chart a.chart"
    assert chart.words("copy") == "the chart a.chart of copy"


def test_text_rows_are_the_same_compressed_or_not(place: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.txt"
    rows.write_text("a b f\nb b c\na a r\n" * 20)
    pattern = parse_pattern("u1:%x[0,0]\nu2:%x[0,1]\nb")
    train_text(Request(rows, tmp_path / "copy", algorithms=("majority",), pattern=pattern))
    packed = tmp_path / "rows.txt.gz"
    packed.write_bytes(gzip.compress(rows.read_bytes()))
    with pytest.raises(PipelineError, match=r"was trained on .*rows.txt.gz"):
        evaluate(packed, tmp_path / "copy")
    train_text(Request(packed, tmp_path / "packed-copy", algorithms=("majority",), pattern=pattern))
    with pytest.raises(PipelineError, match=r"was trained on .*rows.txt"):
        evaluate(rows, tmp_path / "packed-copy")


def test_what_a_bot_or_a_stored_strategy_was_made_from_is_unknown(place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\n\nclass Bot:\n    def probabilities(self, rows):\n"
        "        legal = rows['legal'][:, None] >> np.arange(3) & 1\n"
        "        return legal / legal.sum(axis=1, keepdims=True)\n\n\ndef make(game):\n    return Bot()\n"
    )
    bot = f"python:{tmp_path}/mine.py:make"
    rows = json.loads(evaluate(place / "rows", bot, "@call", "--agent", "chump-maniac", "--json"))
    assert {row["model"]: row["overlap"] for row in rows if row["model"][0] != "("} == {bot: None, "@call": 0}
    assert "It is unknown whether python:" in evaluate(place / "rows", bot, "--agent", "chump-maniac")
