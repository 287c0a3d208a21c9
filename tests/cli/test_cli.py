"""The command line's edge: every command explains itself; a mistake is one line and a non-zero exit."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from limited_memory import limited

from benchmarks.__main__ import TOPICS
from pipeline.cli import solve as solve_command
from pipeline.cli.main import COMMANDS, GROUPS, group, main
from pipeline.solving import cfr

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    shown = CliRunner().invoke(group, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "Example" in shown.output


def test_the_help_lists_each_command_once_in_a_group() -> None:
    shown = CliRunner().invoke(group, ["--help"]).output
    for title, commands in GROUPS.items():
        assert f"\n{title}:\n" in shown
        for name, text in commands.items():
            assert shown.count(f"\n  {name:<10}  {text}") == 1
    assert len(COMMANDS) == sum(map(len, GROUPS.values())) <= 23


def test_quiet_goes_with_every_mode(tmp_path: Path) -> None:
    words = [
        "match",
        "@call",
        "@fold",
        "--sample",
        str(tmp_path),
        "--hands",
        "40",
        "--game",
        "kuhn.limit.2p",
        "--quiet",
    ]
    assert CliRunner().invoke(group, words, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize("name", ["chart", "sample", "score", "select", "exploit", "clusters"])
def test_old_names_of_commands_are_gone(name: str) -> None:
    assert CliRunner().invoke(group, [name]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["match", "--sample", "x", "--log", "y"], "--log does nothing with --sample"),
        (["match", "--from", "x", "--hands", "3"], "--hands does nothing with --from"),
        (["match", "--from", "x", "--data", "y"], "--data does nothing with --from"),
        (["match", "--data", "x", "@call"], "leave out @call"),
        (["counter", "--judge", "@call", "--risk", "3"], "--risk does nothing with --judge"),
        (["counter", "--against", "@call", "--out", "x", "--hands", "3"], "--hands are those of --judge"),
        (["show", "chart"], "name either a chart"),
        (["show", "chart", "selby", "--agent", "x"], "--agent and --game are those of --data"),
    ],
)
def test_an_option_of_another_mode_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 1
    assert problem in capsys.readouterr().err


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["ingst"])
    assert end.value.code == 2
    assert "did you mean ingest?" in capsys.readouterr().err


def test_a_mistake_is_one_line_and_a_non_zero_exit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["show", "chart", "selb"])
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean selby?" in error


def test_a_lack_of_memory_is_one_line_and_a_non_zero_exit(tmp_path: Path) -> None:
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(64 << 30)  # a hole: it takes no room on the disk
    done = subprocess.run(limited(4 << 30, "info", tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: not enough memory: give it less at a time")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "closed", "expected"),
    [
        ("match @call @fold --hands 20 --no-adjusted", "2>&-", "20 hands of"),
        ("match @call @fold --hands 20 --no-adjusted", "2>&- <&-", "20 hands of"),
        ("match @call @fold --hands 20 --no-adjusted", ">&-", ""),
        ("ingest {sample} --out {out} --no-strength", "2>&-", "0 rejected"),
        ("play @call --hands 1", "<&-", "0 hands: "),
        ("play @call --hands 1", "<&- 2>&-", "0 hands: "),
    ],
)
def test_a_command_without_input_or_output_does_its_work(
    words: str, closed: str, expected: str, tmp_path: Path
) -> None:
    command = words.format(sample=ROOT / "data" / "sample", out=tmp_path / "rows")
    line = f"{sys.executable} -m pipeline {command} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- 2>&-"])
def test_a_missing_input_is_one_line_where_it_is_needed(closed: str, tmp_path: Path) -> None:
    line = f"{sys.executable} -m pipeline ingest - --out {tmp_path / 'rows'} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ("" if "2>" in closed else "error: standard input is empty\n")


def test_every_topic_of_the_benchmarks_takes_the_settings_of_the_command() -> None:
    assert len(TOPICS) > 8
    for name in TOPICS:
        run = importlib.import_module(f"benchmarks.{name}").run
        assert [one.annotation for one in inspect.signature(run).parameters.values()] == ["Settings"], name


def test_the_client_starts_without_the_training_libraries() -> None:
    code = (
        "import sys, pipeline.arena.wire.client, pipeline.models.policy, pipeline.agents;"
        "heavy = {'pandas', 'pyarrow', 'sklearn', 'scipy.optimize', 'lightgbm', 'pycrfsuite'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_help_waits_for_the_compiler_or_for_the_data_libraries() -> None:
    code = (
        "import sys, click\n"
        "from pipeline.cli.main import group\n"
        "def visit(command, context):\n"
        "    command.get_help(context)\n"
        "    if isinstance(command, click.Group):\n"
        "        for name in command.list_commands(context):\n"
        "            inner = command.get_command(context, name)\n"
        "            visit(inner, click.Context(inner, parent=context, info_name=name))\n"
        "            heavy = {'numpy', 'numba', 'pandas', 'pyarrow', 'scipy'} & set(sys.modules)\n"
        "            assert not heavy, (name, heavy)\n"
        "visit(group, click.Context(group, info_name='pipeline'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_choices_written_down_for_the_help_are_those_of_the_library() -> None:
    assert solve_command.METHODS == cfr.METHODS
