"""Compiled code: same results as Python, kept on disk, recompiled when a source behind it changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from pipeline import game, kernels

SCRIPT = """
import numpy as np
from pipeline import game, kernels
kept = kernels.is_kept("pipeline.rules")
state = np.zeros(game.STATE_SIZE, dtype=np.int64)
game.start(game.find_game("kuhn.limit.2p").rules, state)
print(kept, kernels.compiled_count())
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
    kept, count = done.stdout.split()
    return kept == "True", int(count), done.stderr


def test_a_second_process_loads_what_the_first_compiled(tmp_path: Path) -> None:
    kept, first, notice = _compiled(tmp_path)
    assert not kept
    assert first > 0
    assert "compiling" in notice
    assert _compiled(tmp_path) == (True, 0, "")


def test_the_cache_is_keyed_by_the_sources_behind_a_module() -> None:
    path = Path(game.__file__)
    assert Path(kernels.__file__) in kernels._imports(path)
    assert kernels._fingerprint(path) != kernels._fingerprint(Path(kernels.__file__))


def test_compiled_and_interpreted_rules_agree() -> None:
    rules = game.find_game("holdem.nolimit.3p").rules
    fast = np.zeros(game.STATE_SIZE, dtype=np.int64)
    game.start(rules, fast)
    assert game.raise_range(rules, fast) == game.raise_range.py_func(rules, fast)  # type: ignore[attr-defined]
