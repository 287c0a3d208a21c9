"""The jobs of the nightly workflow: together they run each long test once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]


def long_tests() -> list[str]:
    """Return the ids of the long tests, as pytest collects them."""
    words = ["-m", "pytest", "--collect-only", "-m", "long", "-p", "no:cacheprovider", "tests"]
    collected = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in collected.splitlines() if "::" in line]


def runs(tests: str, test: str) -> bool:
    """Return whether pytest runs a test that is given the paths and ids in a text."""
    return any(test == path or test.startswith((f"{path}/", f"{path}::", f"{path}[")) for path in tests.split())


def test_each_long_test_is_in_one_nightly_job() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8"))
    long = workflow["jobs"]["long"]
    jobs = {job["name"]: job["tests"] for job in long["strategy"]["matrix"]["include"]}
    assert long["steps"][-1]["run"] == 'make test-long LONG="${{ matrix.tests }}"'
    tests = long_tests()
    assert len(tests) > 400
    wrong = {test: names for test in tests if len(names := [n for n in jobs if runs(jobs[n], test)]) != 1}
    assert not wrong
    sizes = Counter(name for name in jobs for test in tests if runs(jobs[name], test))
    assert set(sizes) == set(jobs), "a job has no test"


def test_make_runs_the_long_tests_that_are_named() -> None:
    words = ["make", "-n", "test-long", "LONG=tests/arena tests/runtime"]
    printed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "pytest -m long tests/arena tests/runtime" in printed
