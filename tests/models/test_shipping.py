"""Shipped bots: what the zip carries, and that it plays on a machine that has only Python."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email.parser import Parser
from pathlib import Path

import pytest

import pipeline
from pipeline.agents.names import resolve
from pipeline.arena.wire.client import connect_agent
from pipeline.arena.wire.dealer import MatchPlan, listen, run_match
from pipeline.arena.wire.sockets import Limits
from pipeline.cli.main import main
from pipeline.models.artifacts import describe_start, start_script
from pipeline.models.wheel import PYTHON, REQUIREMENTS, WHEEL_NAME, core_wheel
from pipeline.poker.game import builtin

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "models" / "teacher"
LIMIT = builtin("holdem.limit.2p.reverse_blinds")
PATIENCE = Limits(response_ms=120_000, hand_ms=120_000, per_hand_ms=120_000, start_ms=120_000)


def unpacked(folder: Path) -> Path:
    """The folder of a bot that was shipped as a zip file and unpacked by a program that keeps no modes."""
    main(["ship", str(BUNDLE), "--out", str(folder / "bot.zip")])
    with zipfile.ZipFile(folder / "bot.zip") as archive:
        archive.extractall(folder / "bot")
    return folder / "bot"


def plays(bot: Path, environment: dict[str, str], command: tuple[str, ...] = ("sh", "start.sh")) -> None:
    """Let the start script of a bot play a match on our dealer."""
    listeners = listen([0, 0])
    ports = [listener.getsockname()[1] for listener in listeners]
    plan = MatchPlan(LIMIT, ("bot", "call"), 40, 7, limits=PATIENCE)
    with ThreadPoolExecutor(2) as pool:
        outcome = pool.submit(run_match, plan, listeners)
        pool.submit(connect_agent, resolve("@call", LIMIT), "127.0.0.1", ports[1])
        words = [*command, "127.0.0.1", str(ports[0])]
        done = subprocess.run(words, cwd=bot, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("40 hands, ")
        assert outcome.result(60).hands == 40


def test_the_wheel_of_the_core_is_valid() -> None:
    about = WHEEL_NAME.removesuffix("-py3-none-any.whl") + ".dist-info"
    with zipfile.ZipFile(io.BytesIO(core_wheel())) as wheel:
        rows = list(csv.reader(io.StringIO(wheel.read(f"{about}/RECORD").decode())))
        assert [name for name, _, _ in rows] == wheel.namelist()
        for name, digest, size in rows[:-1]:
            data = wheel.read(name)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={hashed}", len(data))
        assert rows[-1] == [f"{about}/RECORD", "", ""]
        metadata = Parser().parsestr(wheel.read(f"{about}/METADATA").decode())
        modules = {name for name in wheel.namelist() if name.endswith(".py")}
        assert wheel.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert not [name for name in wheel.namelist() if "__pycache__" in name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (metadata["Name"], metadata["Version"]) == (project["name"], pipeline.__version__)
    assert metadata.get_all("Requires-Dist") == list(REQUIREMENTS) == project["dependencies"]
    assert metadata["Requires-Python"] == project["requires-python"] == f">={PYTHON[0]}.{PYTHON[1]}"
    assert modules == {path.relative_to(ROOT).as_posix() for path in (ROOT / "pipeline").rglob("*.py")}


def test_the_same_bot_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        main(["ship", str(BUNDLE), "--out", str(tmp_path / name / "bot.zip")])
    assert (tmp_path / "a" / "bot.zip").read_bytes() == (tmp_path / "b" / "bot.zip").read_bytes()


def test_a_shipped_bot_plays_by_the_package_in_its_wheel(tmp_path: Path) -> None:
    bot, packages = unpacked(tmp_path), tmp_path / "packages"
    install = ["-m", "pip", "install", "--no-index", "--no-deps", "--no-compile", "-q", "--target", packages]
    subprocess.run([sys.executable, *install, bot / WHEEL_NAME], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(packages), "PYTHON": sys.executable}
    where = subprocess.run(
        [sys.executable, "-c", "import pipeline; print(pipeline.__file__)"],
        cwd=bot,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(packages)
    plays(bot, environment)


def test_the_start_script_takes_host_and_port(tmp_path: Path) -> None:
    (tmp_path / "play.sh").write_text(start_script())
    words = ["sh", tmp_path / "play.sh", "localhost", "18791"]
    run = subprocess.run(words, env={**os.environ, "PYTHON": "echo"}, capture_output=True, text=True, check=True)
    assert run.stdout == "-m pipeline connect localhost 18791 .\n"


def test_the_start_script_says_what_is_lacking(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')  # no package that is installed
    bare.chmod(0o755)
    (tmp_path / "start.sh").write_text(start_script())
    words = ["sh", tmp_path / "start.sh", "localhost", "1"]
    run = subprocess.run(words, env={**os.environ, "PYTHON": str(bare)}, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert " lacks click, numba, numpy, safetensors, pipeline; " in run.stderr
    assert f"python3 -m venv .venv && .venv/bin/pip install ./{WHEEL_NAME}" in run.stderr


@pytest.mark.long
def test_the_two_commands_of_the_readme_start_a_bot_where_there_is_only_python(tmp_path: Path) -> None:
    bot = unpacked(tmp_path)
    readme = (bot / "README.md").read_text()
    assert "\n".join(describe_start()) in readme
    install, start = re.findall(r"^    (.+)$", readme, re.M)[:2]
    assert start == "./start.sh HOST PORT"
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHON")}
    subprocess.run(["sh", "-c", install], cwd=bot, env=environment, check=True, capture_output=True)
    (bot / "start.sh").chmod(0o755)
    plays(bot, environment, ("./start.sh",))
