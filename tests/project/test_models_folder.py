"""`models/teacher` is a small, whole bundle that plays, and what its command makes from the bundled sample."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import pipeline as p
from pipeline.cli.main import group
from pipeline.models.shipping import hands_to_tell_text

ROOT = Path(__file__).parents[2]
READY = ROOT / "models" / "teacher"
SITUATIONS = (
    "MATCHSTATE:1:0::|AsKs",
    "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c",
    "MATCHSTATE:0:0:rc/cc/:9cKc|/6dJs5c/Kd",
    "MATCHSTATE:0:0:rc/cc/cc/:9cKc|/6dJs5c/Kd/2h",
)


def test_it_is_small_whole_and_plays_every_street() -> None:
    found = p.describe(READY, verify=True)
    assert found["bytes"] < 3_000_000
    assert found["agents"] == ["teacher"]
    assert found["streets"] == ["preflop", "flop", "turn", "river"]
    for model in found["models"][1:]:
        assert model["log_loss"] < 0.5
        assert not model["interrupted"]
    bundle = p.load_bundle(READY)
    for state in SITUATIONS:
        assert sum(bundle.predict(state).values()) == pytest.approx(1)


def test_it_says_nothing_of_the_machine_it_was_made_on() -> None:
    text = (READY / "manifest.json").read_text()
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", text)


def test_it_says_itself_that_it_is_not_strong() -> None:
    said = CliRunner().invoke(group, ["info", "teacher:"]).output
    (remark,) = re.findall(r"^  remark +(.*)$", said, re.M)
    (result,) = re.findall(r"adjusted -([\d.]+) ± ([\d.]+)", (ROOT / "models" / "README.md").read_text())
    assert f"{float(result[0]):.0f} ± {float(result[1]):.0f} mbb/h to @teacher" in remark


def test_its_recorded_scores_are_those_of_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "models" / "README.md").read_text()
    (tmp_path / "data").symlink_to(ROOT / "data")
    shutil.copytree(READY, tmp_path / "models" / "teacher")
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^pipeline (?:ingest|evaluate) .*$", page, re.M):
        printed = CliRunner().invoke(group, shlex.split(line)[1:])
        assert printed.exit_code == 0, printed.output
    recorded, now = (p.describe(path)["data"]["scores"] for path in (READY, tmp_path / "models" / "teacher"))
    assert [row["street"] for row in now] == ["preflop", "flop", "turn", "river", "all"]
    for before, after in zip(recorded, now, strict=True):
        assert after == pytest.approx(before)
    assert re.search(r"about [\d.]+ hands \([\d.]+ to [\d.]+\)", page)[0] == hands_to_tell_text(
        p.describe(READY)["data"]
    )


@pytest.mark.long
def test_it_is_what_its_command_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "models" / "README.md").read_text()
    lines = re.findall(r"^pipeline (?:ingest|train) .*$", page, re.M)
    assert len(lines) == 2
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        shown = CliRunner().invoke(group, shlex.split(line)[1:])
        assert shown.exit_code == 0, shown.output
    kept, made = (json.loads((path / "manifest.json").read_text()) for path in (READY, tmp_path / "models" / "teacher"))
    assert [model["name"] for model in made["models"]] == [model["name"] for model in kept["models"]]
    for ours, theirs in zip(made["models"][1:], kept["models"][1:], strict=True):
        assert ours["about"]["rows"] == theirs["about"]["rows"]
        assert ours["about"]["log_loss"] == pytest.approx(theirs["about"]["log_loss"], abs=1e-3)
    before, after = p.load_bundle(READY), p.load_bundle(tmp_path / "models" / "teacher")
    for state in SITUATIONS:
        mixes = [np.array(list(bundle.predict(state).values())) for bundle in (before, after)]
        assert np.abs(mixes[0] - mixes[1]).max() < 0.01
