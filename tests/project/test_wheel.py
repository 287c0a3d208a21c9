"""The wheel, built from this tree and installed outside of it, does what README says in any folder.

`installed` is a fresh environment: the wheel alone, and the packages of this Python through a `.pth` file, so that
nothing is fetched. The walk of the four chairs of `first_hour.py` runs there too; it takes minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from test_docs import ROOT, blocks, commands, quick

BUILD = "import sys; from setuptools import build_meta as build; build.build_{}(sys.argv[1])"


class Installation(NamedTuple):
    """An environment outside the clone, and the folder in which its user works."""

    programs: Path
    folder: Path

    def run(self, *words: str, program: str = "pipeline", given: str = "") -> str:
        """What a command prints; it must end well."""
        done = subprocess.run(
            [program, *words],  # found by PATH, as a user calls it
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "PIPELINE_CACHE": os.environ.get("PIPELINE_CACHE", "")}
            | {"HOME": os.environ.get("HOME", "/")},
        )
        assert done.returncode == 0, f"{program} {' '.join(words)}: {done.stdout[-500:]} {done.stderr[-1500:]}"
        return done.stdout


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build the wheel or the sdist of a tree by the installed setuptools."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", BUILD.format(kind), folder], cwd=source, check=True, capture_output=True)
    (made,) = (path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    return made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what Git has of this tree, links included."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pipeline", "data", "models"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    root = tmp_path_factory.mktemp("outside")
    subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True)
    python = root / "venv" / "bin" / "python"
    install = ["-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([python, *install, wheel], check=True)
    (packages,) = (root / "venv").glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (root / "work").mkdir()
    return Installation(root / "venv" / "bin", root / "work")


def contents(paths: list[str]) -> set[str]:
    """The files of the sample and of the ready bundle, by folder and name."""
    return {"/".join(Path(path).parts[-2:]) for path in paths if re.search(r"runtime/resources/\w+/[\w.-]+$", path)}


def test_wheel_and_sdist_hold_the_sample_and_the_ready_bundle_once(wheel: Path, source: Path, tmp_path: Path) -> None:
    expected = {f"sample/{path.name}" for path in (ROOT / "data" / "sample").iterdir()}
    expected |= {f"teacher/{path.name}" for path in (ROOT / "models" / "teacher").iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        assert contents(archive.namelist()) == expected
        assert not [name for name in archive.namelist() if name.startswith(("data/", "models/", "tests/"))]
    with tarfile.open(build("sdist", source, tmp_path / "sdist")) as archive:
        assert contents([entry.name for entry in archive if entry.isfile()]) == expected
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    with zipfile.ZipFile(build("wheel", unpacked, tmp_path / "again")) as archive:
        assert contents(archive.namelist()) == expected


def test_the_page_of_the_package_names_authors_and_versions(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    assert "Author: " in text
    assert "Programming Language :: Python :: 3.13" in text


def test_commands_work_in_any_folder_under_both_names(installed: Installation) -> None:
    place = installed.run("-c", "import pipeline; print(pipeline.__file__)", program="python")
    assert place.startswith(str(installed.programs.parent))
    assert "imitates   teacher" in installed.run("info", "teacher:", program="acpc")
    assert "20,000 hands" in installed.run("ingest", "sample:", "--no-strength", "--out", "rows")
    assert "mbb/h" in installed.run("match", "teacher:", "@call", "--hands", "40", "--seed", "1")
    assert "teacher (button)" in installed.run("show", "hand", "sample:/teacher.call.1.0.log", "17", "teacher:")


@pytest.mark.parametrize(
    ("program", "words", "name"),
    [("acpc", (), "acpc"), ("pipeline", (), "pipeline"), ("python", ("-m", "pipeline"), "python -m pipeline")],
)
def test_help_names_the_command_as_it_was_called(
    installed: Installation, program: str, words: tuple[str, ...], name: str
) -> None:
    line = installed.run(*words, "--help", program=program).splitlines()[0]
    assert re.fullmatch(rf"Usage: \S*{re.escape(name)} \[OPTIONS\] COMMAND \[ARGS\]\.\.\.", line)


def test_a_file_named_pipeline_hides_the_package_from_python_but_not_from_acpc(
    installed: Installation, tmp_path: Path
) -> None:
    (tmp_path / "pipeline.py").write_text("raise SystemExit('the file of the user')\n")
    elsewhere = installed._replace(folder=tmp_path)
    assert "imitates   teacher" in elsewhere.run("info", "teacher:", program="acpc")
    with pytest.raises(AssertionError, match="the file of the user"):
        elsewhere.run("-m", "pipeline", "info", "teacher:", program="python")


@pytest.mark.long
def test_the_readme_works_outside_the_clone(installed: Installation) -> None:
    for block in [block for kind in ("sh", "python") for block in blocks(kind)]:
        if block.page != ROOT / "README.md" or not block.run:
            continue
        if block.kind == "python":
            installed.run("-c", block.body, program="python")
            continue
        for words in commands(block.body):
            installed.run(*quick(words), given="c\n\n" * 200)
    assert (installed.folder / "out" / "teacher.html").stat().st_size > 10_000


@pytest.mark.long
def test_the_demo_works_outside_the_clone(installed: Installation) -> None:
    shown = installed.run("demo", "--size", "small", "--out", "demo", program="acpc")
    assert shown.lstrip().startswith("1. ")
    (line,) = re.findall(r"^  acpc (show hand .*?)    #", shown, re.M)
    assert "preflop" in installed.run(*line.split(), program="acpc")
    assert json.loads((installed.folder / "demo" / "demo.json").read_text())["page"] == "demo/report.html"
