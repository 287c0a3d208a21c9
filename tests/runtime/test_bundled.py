"""`sample:` and `teacher:` name what comes with the package, in any folder, wherever a path is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import pipeline as p
from pipeline.cli.main import group
from pipeline.runtime.bundled import RESOURCES, locate, name_path
from pipeline.runtime.errors import PipelineError

ROOT = Path(__file__).parents[2]
LOG = "sample:/teacher.call.1.0.log"
STATE = "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> str:
    shown = CliRunner().invoke(group, words, catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def test_the_names_are_the_folders_of_the_clone() -> None:
    assert locate("sample:").resolve() == ROOT / "data" / "sample"
    assert locate("teacher:").resolve() == ROOT / "models" / "teacher"
    assert locate("sample:x.log") == locate("sample:/x.log") == RESOURCES / "sample" / "x.log"


@pytest.mark.parametrize(
    "text", ["sample", "nothing:", "teachers:", "@teacher:", "exec:./x", "s3://a/b", "out/teacher:"]
)
def test_other_paths_are_as_they_were(text: str) -> None:
    assert locate(text) == Path(text)
    assert name_path(Path(text)) == Path(text)


def test_commands_read_logs_by_name_and_label_them_so() -> None:
    assert "1 log (1 new" in run("ingest", LOG, "--out", "rows", "--no-strength")
    assert json.loads(run("info", "rows", "--json"))["logs"] == [LOG]
    probabilities = ("--probabilities", "sample:/sample.probs.parquet")
    table = run("evaluate", "--data", "rows", "teacher:", "--agent", "teacher", *probabilities)
    assert "floor" in table
    assert "teacher (button)" in run("show", "hand", LOG, "17", "teacher:")


def test_commands_take_the_bundle_by_name_with_options() -> None:
    assert run("info", "teacher:").startswith(f"{locate('teacher:')}: a bundle")
    assert "teacher-mode-argmax" in run("match", "teacher:mode=argmax", "@call", "--hands", "20", "--seed", "1")
    run("ship", "teacher:", "--out", "bot.zip")
    assert p.load_bundle("bot.zip").predict(STATE) == p.load_bundle("teacher:").predict(STATE)


def test_python_takes_the_names_too() -> None:
    assert p.describe("teacher:")["agents"] == ["teacher"]
    assert p.agent("teacher:").name == "teacher"
    assert p.ship("teacher:", "bot.zip").is_file()
    assert p.ingest(LOG, "rows", strength=False).files == 1


@pytest.mark.parametrize("out", ["sample:", "teacher:/new"])
def test_nothing_is_written_among_them(out: str) -> None:
    shown = CliRunner().invoke(group, ["ingest", LOG, "--no-strength", "--out", out])
    assert isinstance(shown.exception, PipelineError)
    assert "comes with the package and is only read" in str(shown.exception)
    assert not (RESOURCES / "teacher" / "new").exists()


def test_a_folder_of_that_name_comes_before_the_bundle_with_options() -> None:
    p.ship("teacher:", "teacher")
    assert p.agent("teacher:mode=argmax").name == p.agent("./teacher:mode=argmax").name == "teacher-mode-argmax"
    with pytest.raises(PipelineError, match="there is no bundle at rows: "):
        run("match", "rows:mode=argmax", "@call")
