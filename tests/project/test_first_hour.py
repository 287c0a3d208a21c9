"""The newcomer's walk: README's commands in README's order, in a fresh folder, none in the way of another.

The logs are the first hands of the bundled sample, so that the whole walk takes seconds; everything else is what a
fresh clone holds.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_docs import ROOT, blocks, commands, quick

from pipeline.cli.main import group
from pipeline.runtime import bundled

HANDS = 150


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a newcomer has: data, models, examples; the logs cut short, as `sample:` too."""
    root = tmp_path_factory.mktemp("newcomer")
    for name in ("models", "examples"):
        shutil.copytree(ROOT / name, root / name)
    (root / "data").mkdir()
    shutil.copytree(ROOT / "data" / "sample", root / "data" / "sample")
    for log in (root / "data" / "sample").glob("*.log"):
        log.write_text("".join(log.read_text().splitlines(keepends=True)[: HANDS + 4]))
    (root / "resources").mkdir()
    (root / "resources" / "sample").symlink_to(root / "data" / "sample")
    (root / "resources" / "teacher").symlink_to(root / "models" / "teacher")
    return root


def test_the_readme_works_from_top_to_bottom(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone)
    monkeypatch.setattr(bundled, "RESOURCES", clone / "resources")
    space: dict[str, object] = {}
    done: list[str] = []
    page = ROOT / "README.md"
    for block in sorted([*blocks("sh"), *blocks("python")], key=lambda block: block.line):
        if block.page != page:
            continue
        if block.kind == "python":
            exec(compile(block.body, str(block), "exec"), space)
            continue
        for words in commands(block.body):
            shown = CliRunner().invoke(group, quick(words), input="c\n\n" * 100)
            assert shown.exit_code == 0, f"pipeline {shlex.join(words)}: {shown.output[-800:]} {shown.exception!r}"
            assert shown.output.strip(), f"pipeline {shlex.join(words)} says nothing"
            done.append(words[0])
    assert {"info", "match", "predict", "ingest", "train", "evaluate", "report", "ship", "query"} <= set(done)
    assert (clone / "out" / "teacher.html").stat().st_size > 10_000
    assert "nan" not in str(space["copy"])


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("train_and_score.py", ["data/sample", "teacher", "out/example"]),
        ("own_agent.py", ["@random", "400"]),
        ("analyse_logs.py", ["data/sample", "out/analysis"]),
    ],
)
def test_the_examples_run(script: str, arguments: list[str], clone: Path) -> None:
    command = [sys.executable, "-W", "error", f"examples/{script}", *arguments]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    shown = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) >= 3


def test_every_example_is_run_here() -> None:
    run = {"train_and_score.py", "own_agent.py", "analyse_logs.py", "careful.py"}  # the last one by docs/playing.md
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == run


def python_of_version(folder: Path, version: str) -> Path:
    """A program that says it is this Python, and writes down everything else that it is asked to do."""
    program = folder / f"python{version}"
    check = f"import sys; sys.version_info = ({version.replace('.', ', ')}, 0); exec(sys.argv[1])"
    asked = shlex.quote(str(folder / "asked"))
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exec {shlex.quote(sys.executable)} -c {shlex.quote(check)} "$2"\n'
        f'echo "$@" >> {asked}\nmkdir -p "$3/bin" && cp "$0" "$3/bin/python"\n'
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_make_refuses_other_pythons_in_a_sentence(tmp_path: Path, version: str) -> None:
    python = python_of_version(tmp_path, version)
    command = ["make", f"VENV={tmp_path}/v", f"PYTHON={python}", "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"error: {python} is not Python 3.11, 3.12 or 3.13" in done.stdout
    assert not (tmp_path / "asked").exists()


def test_make_installs_the_packages_of_the_tests_for_the_tests_alone(tmp_path: Path) -> None:
    def packages(target: str) -> set[str]:
        command = ["make", "-n", f"VENV={tmp_path}/v", f"PYTHON={sys.executable}", target]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return {line.split()[-1] for line in done.stdout.splitlines() if " pip install " in line}

    for target in ("demo", "ingest"):
        assert packages(target) == {"'.[all]'"}
    for target in ("setup", "check", "test-long"):
        assert packages(target) == {"'.[all]'", "'.[all,test]'"}


def test_make_keeps_logs_apart_and_trains_again_only_when_something_changed(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        log = (ROOT / "data" / "sample" / "teacher.random.1.0.log").read_text().splitlines(keepends=True)
        (tmp_path / name / "x.log").write_text("".join(log[: HANDS + 4] if name == "one" else log[: HANDS // 2]))

    def make(*words: str) -> str:
        settings = [f"VENV={tmp_path}/.venv", f"OUT={tmp_path}/out", f"LOGS={tmp_path}/one"]
        done = subprocess.run(
            ["make", *settings, *words], cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert f" {HANDS:,} hands" in make("ingest")
    assert f" {HANDS:,} hands" not in make("ingest", f"LOGS={tmp_path}/two")
    assert " train " in make("train", "TRAIN=--algorithm majority")
    assert " train " not in make("train", "TRAIN=--algorithm majority")
    (bundle,) = (tmp_path / "out").glob("one-*/teacher/manifest.json")
    found = json.loads(bundle.read_text())
    bundle.write_text(json.dumps({**found, "missing": ["river"]}))  # as an interrupted training leaves it
    assert " train " in make("train", "TRAIN=--algorithm majority")
    assert "missing" not in json.loads(bundle.read_text())
    assert " train " in make("train", "TRAIN=--algorithm frequency")
