"""Compiled code: same results as Python, kept on disk, compiled again when a source changes or a file is damaged."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.poker import game, rules
from pipeline.runtime import kernels
from pipeline.runtime.kernels import kernel, prepare

SCRIPT = """
from pipeline.poker import game
from pipeline.runtime import kernels
kept = kernels.is_compiled("pipeline.poker.rules")
spent = game.find_game("kuhn.limit.2p").start().spent
print(kept, kernels.compiled_count(), sum(spent))
"""


def _compiled(cache: Path) -> tuple[bool, int, str]:
    """Whether rules were kept before, how much a process compiled, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PIPELINE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, count, total = done.stdout.split()
    assert total == "2"  # an ante of each player
    return kept == "True", int(count), done.stderr


def test_a_second_process_loads_what_the_first_compiled(tmp_path: Path) -> None:
    kept, first, notice = _compiled(tmp_path)
    assert not kept
    assert first > 0
    assert "compiling" in notice
    assert _compiled(tmp_path) == (True, 0, "")


def test_running_kept_code_loads_nothing_that_only_compiling_needs(tmp_path: Path) -> None:
    """scipy's linear algebra, which numba's compiler knows how to call, is most of what a start would wait for."""
    script = SCRIPT + "import sys; print('scipy.linalg' in sys.modules)"
    loaded = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PIPELINE_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        loaded.append(done.stdout.split()[1:])
    (compiled, *first), second = loaded
    assert int(compiled) > 0
    assert first == ["2", "True"]
    assert second == ["0", "2", "False"]


def test_damaged_compiled_code_is_compiled_again(tmp_path: Path) -> None:
    _, first, _ = _compiled(tmp_path)
    files = sorted(tmp_path.rglob("*.kernel"))
    assert 0 < len(files) <= first  # numba compiles functions of its own for them too
    for number, path in enumerate(files):
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes([whole[:middle], b"", whole[:middle] + b"\xff\xff" + whole[middle + 2 :]][number % 3])
    assert _compiled(tmp_path)[1] == first
    assert _compiled(tmp_path)[1] == 0


def test_a_folder_that_cannot_be_written_means_compiling_again_never_older_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for _ in range(2):
        kept, count, notice = _compiled(tmp_path / "file")
        assert not kept
        assert count > 0
        assert "cannot be kept" in notice
    assert not list(Path(game.__file__).parent.rglob("*.nbi"))


def test_the_cache_is_keyed_by_the_sources_behind_a_module() -> None:
    path = Path(rules.__file__)
    assert Path(kernels.__file__) in kernels._imports(path)
    assert kernels._fingerprint(path) != kernels._fingerprint(Path(kernels.__file__))


def test_compiled_and_interpreted_rules_agree() -> None:
    vector = game.find_game("holdem.nolimit.3p").rules
    fast = np.zeros(rules.STATE_SIZE, dtype=np.int64)
    rules.start(vector, fast)
    assert rules.raise_range(vector, fast) == rules.raise_range.py_func(vector, fast)  # type: ignore[attr-defined]


@kernel
def _cannot_be_compiled(value):  # type: ignore[no-untyped-def]
    return value.no_such_attribute


@kernel
def _twice(value):  # type: ignore[no-untyped-def]
    return 2 * value


def test_garbage_is_collected_again_after_compiling_fails() -> None:
    assert gc.isenabled()
    with pytest.raises(Exception, match="no_such_attribute"):
        _cannot_be_compiled(1)
    assert gc.isenabled()


@kernel
def _sorted(values: np.ndarray) -> np.ndarray:
    return np.sort(values)


def test_preparing_tells_what_is_compiled_and_seconds_are_counted() -> None:
    heard: list[tuple[int, int]] = []
    before = kernels.seconds_compiling()
    assert prepare(lambda: _twice(21), [__name__], lambda done, total: heard.append((done, total))) > 0
    assert heard == [(1, 3)]  # of the three kernels in this module
    assert kernels.seconds_compiling() > before
    assert prepare(lambda: _twice(21), [__name__], lambda done, total: heard.append((done, total))) >= 0
    assert len(heard) == 1


def test_no_more_is_told_to_be_compiled_than_all(caplog: pytest.LogCaptureFixture) -> None:
    """numba compiles functions of its own beside the kernels: they are counted, but not as a part of the kernels."""
    with caplog.at_level("INFO", "pipeline.runtime.kernels"):
        prepare(lambda: _sorted(np.array([3.0, 1.0, 2.0])), [__name__])
    told = [record for record in caplog.records if getattr(record, "total", None)]
    assert max(record.count for record in told) - min(record.count for record in told) > 1
    assert all(record.begun <= record.total for record in told)


def test_ctrl_c_while_compiling_ends_the_program_with_130(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline", "cache", "build"],
        env={**os.environ, "PIPELINE_CACHE": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        assert "compiling" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert running.returncode == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest


def test_rules_and_ranking_can_be_stepped_through_uncompiled() -> None:
    """The tests of showdowns (but for whole matches), and the ranking of a royal flush, with compiling switched off."""
    script = (
        "import numpy as np, sys, pytest;"
        "from pipeline.poker.cards import parse_cards, rank_hands;"
        "hands = np.stack([parse_cards('AsKsQsJsTs'), parse_cards('7s5h4d3c2c'), parse_cards('AsAhAdAcKs')]);"
        "assert rank_hands(hands).tolist() == [7462, 1, 7452], rank_hands(hands);"
        "test = 'tests/poker/test_showdown.py';"
        "sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', test, '-k', 'not logs']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
