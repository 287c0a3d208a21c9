"""A shipped bot plays with the core install: click, numpy, numba and safetensors, and what these bring."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from pipeline.cli.ship import command as ship_command
from pipeline.poker.game import find_game
from pipeline.runtime.extras import CORE, EXTRAS, install_command

ROOT = Path(__file__).parents[2]

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
RUN = """
import runpy
runpy.run_module("pipeline", run_name="__main__", alter_sys=True)
"""


def without(packages: Iterable[str], *words: object) -> subprocess.CompletedProcess[str]:
    """A command in a process that cannot import some packages."""
    code = BLOCKED % (set(packages),) + RUN
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False, cwd=ROOT
    )


def without_extras(*words: object) -> subprocess.CompletedProcess[str]:
    """A command in a process that cannot import the packages of any extra."""
    return without(EXTRAS, *words)


def declared() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def package(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower()


def test_the_core_is_four_packages_and_every_extra_is_part_of_all():
    found = declared()
    assert {package(one) for one in found[""]} == set(CORE)
    assert all(">=" in one for name in found if name not in ("all", "test") for one in found[name])
    extras = set(found) - {"", "all", "test"}
    assert set(re.search(r"\[(.*)\]", found["all"][0])[1].split(",")) == extras
    imports = {"python-crfsuite": "pycrfsuite", "scikit-learn": "sklearn"}
    for name in extras:
        for one in found[name]:
            assert EXTRAS[imports.get(package(one), package(one))] == name
    assert set(EXTRAS.values()) == extras


def test_a_bundle_plays_a_match_without_the_packages_of_any_extra(tmp_path):
    done = without_extras("match", ROOT / "models" / "teacher", "@call", "--hands", 20, "--seed", 1)
    assert done.returncode == 0, done.stderr
    assert "mbb/h" in done.stdout


def test_a_counter_and_the_adaptive_agent_play_without_the_packages_of_any_extra(tmp_path):
    counter = tmp_path / "counter"
    made = without_extras(
        "counter", "--against", "@raise", "--game", "kuhn.limit.2p", "--method", "best", "--out", counter
    )
    assert made.returncode == 0, made.stderr
    shipped = without_extras("ship", counter, "--out", tmp_path / "bot.zip")
    assert shipped.returncode == 0, shipped.stderr
    words = ("--game", "kuhn.limit.2p", "--hands", 200, "--seed", 1, "--json")
    done = without_extras("match", tmp_path / "bot.zip", "@adaptive", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["adaptation"][0]["steps"]


def test_every_command_starts_without_the_packages_of_any_extra():
    done = without_extras("--help")
    assert done.returncode == 0
    commands = re.findall(r"^  ([a-z]+)  ", done.stdout, re.MULTILINE)
    assert len(commands) > 15
    code = BLOCKED % (set(EXTRAS),)
    code += f"import importlib\nfor name in {commands!r}: importlib.import_module(f'pipeline.cli.{{name}}')"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_a_command_whose_extra_is_missing_names_it(tmp_path):
    done = without_extras("ingest", "data/sample", "--out", tmp_path / "rows")
    assert done.returncode == 1
    assert re.search(
        r"^error: this needs the package \w+, which is not installed: pip install .*\[data\]'", done.stderr, re.M
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("note", "address", "command"),
    [
        ({"url": "file:///", "dir_info": {"editable": True}}, "", "pip install -e '/[web]'"),
        ({"url": "file:///", "dir_info": {}}, "", "pip install '/[web]'"),
        ({"url": "file:///no/such.whl", "archive_info": {}}, "", "pip install '.[web]' in the folder of the sources"),
        (
            {"url": "file:///no/such.whl"},
            "https://a.example/b",
            "pip install 'acpc-pipeline[web] @ git+https://a.example/b'",
        ),
        (
            {"url": "https://c.example/d", "vcs_info": {}},
            "",
            "pip install 'acpc-pipeline[web] @ git+https://c.example/d'",
        ),
        (None, "", "pip install '.[web]' in the folder of the sources"),
    ],
)
def test_extras_are_installed_from_where_the_package_came_from(tmp_path, note, address, command):
    (tmp_path / "METADATA").write_text("Name: x\n" + (f"Project-URL: Repository, {address}\n" if address else ""))
    if note is not None:
        (tmp_path / "direct_url.json").write_text(json.dumps(note))
    assert install_command("web", Distribution.at(tmp_path)) == command


def test_nothing_names_a_release_that_no_index_has():
    for path in [*(ROOT / "pipeline").rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        assert not re.search(r"pip install '?acpc-pipeline(\[\w+\])?'?(?! @)[\s`'\"]", path.read_text()), path


@pytest.mark.parametrize("package", ["click", "numpy", "numba"])
def test_a_python_without_a_core_package_is_told_how_to_install_it(package):
    done = without([package], "predict", "models/teacher", "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: this needs the package {package}, which is not installed: make setup")
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_the_wheel_in_a_fresh_environment_plays_a_shipped_bot_against_our_dealer(tmp_path):
    """Builds the wheel, installs it with its core dependencies only, and plays shipped bots on our dealer.

    A bundle plays @call; a counter-strategy of hold'em plays @adaptive.
    """
    source = tmp_path / "source"
    shutil.copytree(ROOT / "pipeline", source / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    tool = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = subprocess.run(
        [*tool, "wheel", "--no-deps", "-w", tmp_path, source], capture_output=True, text=True, check=False, env=clean
    )
    if built.returncode:
        pytest.skip(f"pip cannot build a wheel here: {built.stderr.strip().splitlines()[-1]}")
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    done = subprocess.run(
        [*install, "-c", ROOT / "constraints.txt", wheel], capture_output=True, text=True, check=False, env=clean
    )
    if done.returncode:
        pytest.skip(f"pip cannot install packages here: {done.stderr.strip().splitlines()[-1]}")
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True, env=clean
    ).stdout
    assert {line.split("==")[0] for line in listed.split()} <= {*CORE, "acpc-pipeline", "llvmlite", "pip", "setuptools"}
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(python), "PIPELINE_CACHE": str(tmp_path / "cache")}
    run = [str(python), "-m", "pipeline"]
    counter = tmp_path / "counter"
    words = ["--against", "@chump:rock", "--share", "0.5", "--deals", "4096", "--out", counter]
    subprocess.run([*run, "counter", *words], check=True, cwd=tmp_path, env=environment)
    for number, (made, opponent) in enumerate([(ROOT / "models" / "teacher", "@call"), (counter, "@adaptive")]):
        folder = tmp_path / f"match-{number}"
        folder.mkdir()
        ship_command.callback(made, folder / "bot.zip")
        _play_on_the_wire(folder, run, environment, opponent)


def _play_on_the_wire(folder, run, environment, opponent):
    """Unpack `bot.zip` in a folder and have it play some hands on our dealer against an agent."""
    with zipfile.ZipFile(folder / "bot.zip") as archive:
        archive.extractall(folder / "bot")
        assert "README.md" in archive.namelist()
    (folder / "bot" / "start.sh").chmod(0o755)
    warm = [*run, "match", folder / "bot.zip", opponent, "--hands", "40"]  # compiles
    subprocess.run(warm, check=True, cwd=folder, env=environment)
    game = folder / "g.game"
    game.write_text(find_game("holdem.limit.2p.reverse_blinds").text)
    with subprocess.Popen(
        [*run, "deal", game, "bot", "other", "--hands", "60", "--seed", "1", "--log", folder / "log"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    ) as dealer:
        ports = next(re.findall(r"\d+", line) for line in dealer.stdout if re.fullmatch(r"[\d ]+\n", line))
        players = [
            subprocess.Popen([folder / "bot" / "start.sh", "127.0.0.1", ports[0]], env=environment),
            subprocess.Popen([*run, "connect", "127.0.0.1", ports[1], opponent], cwd=folder, env=environment),
        ]
        assert [player.wait() for player in players] == [0, 0]
        dealer.communicate()
    assert dealer.returncode == 0
    assert (folder / "log").read_text().count("STATE:") == 60
