"""Text is UTF-8 whatever the locale: the sources name it at every file, and commands do the same under `LC_ALL=C`."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASCII = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}


def lacks_encoding(call: ast.Call) -> bool:
    """Whether a call opens, reads or writes a text file in whatever encoding the locale has."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if any(word.arg == "encoding" for word in call.keywords):
        return False
    if name == "read_text" and call.args:
        return False  # a path's only argument is the encoding; an installed package's is the name of its file
    if name in ("read_text", "write_text"):
        return isinstance(call.func, ast.Attribute)  # the function of this name in `runtime.files` writes UTF-8
    if name != "open":
        return False
    arguments = call.args if isinstance(call.func, ast.Attribute) else call.args[1:]
    modes = [*arguments[:1], *(word.value for word in call.keywords if word.arg == "mode")]
    if not modes:
        return True
    mode = modes[0].value if isinstance(modes[0], ast.Constant) else None
    return isinstance(mode, str) and set(mode) <= set("rwaxt+")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("path.read_text()", True),
        ("path.write_text(text)", True),
        ("path.open()", True),
        ("path.open('w', newline='')", True),
        ("open(path)", True),
        ("open(path, mode='a')", True),
        ("path.open('rb')", False),
        ("open(path, 'rb')", False),
        ("archive.open(member)", False),
        ("os.open(path, os.O_RDONLY)", False),
        ("write_text(path, text)", False),
        ("path.read_text(encoding='utf-8')", False),
    ],
)
def test_a_call_without_an_encoding_is_noticed(call: str, expected: bool) -> None:
    (found,) = (node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call))
    assert lacks_encoding(found) is expected


@pytest.mark.parametrize("room", ["pipeline", "benchmarks", "tools"])
def test_every_text_file_is_opened_with_its_encoding(room: str) -> None:
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and lacks_encoding(node)
    ]
    assert places == []


def test_commands_write_and_read_the_same_under_the_locale_c(tmp_path: Path) -> None:
    def run(*words: str, environment: dict[str, str]) -> str:
        command = [sys.executable, "-m", "pipeline", *words]
        done = subprocess.run(command, capture_output=True, env=environment, cwd=folder, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    usual = {**os.environ, "LC_ALL": "C.UTF-8"}
    written = []
    for name, environment in (("utf-8", usual), ("ascii", ASCII)):
        folder = tmp_path / name
        folder.mkdir()
        run("match", "@call", "@random", "--hands", "60", "--log", "é/m", "--no-adjusted", environment=environment)
        ingest = ("ingest", "é/m.0.log", "é/m.1.log", "--out", "é/rows", "--no-strength", "--json")
        run(*ingest, environment=environment)
        files = sorted(path for path in (folder / "é").rglob("*") if path.suffix in (".log", ".parquet"))
        written.append({path.relative_to(folder): path.read_bytes() for path in files})
        for other in (ASCII, usual):
            assert "files are whole" in run("info", "é/rows", "--verify", environment=other)
            assert json.loads(run(*ingest, environment=other))["hands"] == 60
    assert len(written[0]) == 8
    assert written[0] == written[1]
