"""The command line's edge: every command explains itself; a mistake is one line and a non-zero exit."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from pipeline.cli import COMMANDS, group, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    shown = CliRunner().invoke(group, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "Example" in shown.output


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["ingst"])
    assert end.value.code == 2
    assert "did you mean ingest?" in capsys.readouterr().err


def test_a_mistake_is_one_line_and_a_non_zero_exit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "ingst"])
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean ingest?" in error


def test_the_client_starts_without_the_training_libraries() -> None:
    code = (
        "import sys, pipeline.client, pipeline.policy, pipeline.agents;"
        "heavy = {'pandas', 'pyarrow', 'sklearn', 'scipy.optimize', 'lightgbm', 'pycrfsuite'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
