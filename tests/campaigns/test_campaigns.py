"""The campaigns of `torture.py`: a short run of each with every change, long ones with `make test-long`.

Each runs in a process of its own: a crash of compiled code or a lack of memory ends only that.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from slow_rules import RANKS, best_five, value

KINDS = (
    *("bundle", "strategy", "pattern", "chart", "dataset", "manifest", "cache", "history", "tar"),
    *("mixture", "counter", "hands", "request", "portfolio", "checkpoint"),
)
"""of what `mutations` harms"""
TORTURE = Path(__file__).parent / "torture.py"


def torture(name: str, count: int, seed: int, *more: object) -> dict[str, Any]:
    """What a campaign prints; it leaves nothing in the temporary directory."""
    words = [TORTURE, name, "--count", count, "--seed", seed, *more]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder}
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr[-3000:]}"
        assert os.listdir(folder) == [], "a campaign left something in the temporary directory"  # noqa: PTH208
    return json.loads(done.stdout)


def tried(found: dict[str, Any], word: str = ": ") -> int:
    """How many attempts have such an outcome."""
    return sum(times for outcome, times in found.items() if word in outcome)


def test_files_of_every_kind_are_refused_or_change_nothing_when_they_are_harmed() -> None:
    found = torture("mutations", 15, 0)
    assert tried(found) == len(KINDS) * 15
    some = ("cache", "hands", "request")
    for kind in KINDS:
        assert kind in some or tried(found, f"{kind}: refused") >= 5, kind
    assert tried(found, "cache: made again") >= 5
    assert tried(found, "strategy: equal") > 0
    for kind in ("hands", "request"):
        assert tried(found, f"{kind}: refused") >= 3


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_mutations_are_refused_or_change_nothing(kind: str) -> None:
    assert tried(torture("mutations", 5000, 1000, "--only", kind)) == 5000


def test_killed_commands_end_with_the_bytes_of_an_undisturbed_run() -> None:
    only = [word for name in ("ingest", "train", "ship") for word in ("--only", name)]
    found = torture("kills", 10, 1, *only)
    assert tried(found) == 10
    assert tried(found, ": killed") >= 7


@pytest.mark.long
def test_commands_killed_at_every_change_of_the_disk_end_with_the_bytes_of_an_undisturbed_run() -> None:
    found = torture("kills", 520, 1)
    assert tried(found) == 520
    assert tried(found, ": killed") >= 450


def test_a_log_that_changes_while_it_is_read_is_refused_or_read_in_one_of_its_states() -> None:
    found = torture("growing", 12, 3)
    assert sum(count for name, count in found.items() if name.endswith("refused")) > 3


def test_ingest_and_rules_written_a_second_time_say_the_same_of_every_line() -> None:
    found = torture("differential", 4_000, 1)
    assert tried(found, "lines: ") == 4_000
    assert tried(found, "lines: hand") > 1_000
    assert tried(found, "rows: equal") > 4_000


@pytest.mark.long
def test_ingest_and_rules_written_a_second_time_say_the_same_of_millions_of_lines() -> None:
    assert tried(torture("differential", 2_000_000, 7), "lines: ") == 2_000_000


def test_harmed_histories_that_are_accepted_are_replayed_alike_by_pokerkit() -> None:
    found = torture("histories", 250, 1)
    assert tried(found, "histories: ") == 250
    assert tried(found, "both accept") > 80
    assert tried(found, "both refuse") > 80


@pytest.mark.long
def test_thousands_of_harmed_histories_that_are_accepted_are_replayed_alike_by_pokerkit() -> None:
    assert tried(torture("histories", 20_000, 5), "histories: ") == 20_000


def test_whoever_misbehaves_on_the_wire_is_left_in_time() -> None:
    found = torture("misbehaviours", 8, 1)
    assert tried(found, "players: ") == tried(found, "dealers: ") == 8


@pytest.mark.long
def test_a_hundred_misbehaviours_each_way_end_in_time() -> None:
    found = torture("misbehaviours", 100, 1)
    assert tried(found, "players: ") == tried(found, "dealers: ") == 100
    assert tried(found, "players: given up with a sentence") > 50


def test_a_match_over_connections_that_break_leaves_the_same_log() -> None:
    found = torture("resets", 60, 1)
    assert found["hands"] == 60
    assert found["resumed"] > 0


@pytest.mark.long
def test_matches_over_connections_that_break_leave_the_same_logs() -> None:
    found = torture("resets", 100_000, 1)
    assert found["hands"] == 100_000
    assert found["resets"] > 5_000


@pytest.mark.parametrize("count", [2, pytest.param(200, marks=pytest.mark.long)])
def test_matches_while_the_time_of_day_jumps_leave_the_same_logs(count: int) -> None:
    found = torture("clocks", count, 1)
    assert found["matches"] == count
    assert found["readings"] > 100 * count
    assert found["resumed"] > 0


@pytest.mark.parametrize("count", [50, pytest.param(10_000, marks=pytest.mark.long)])
def test_matches_leave_no_files_and_threads_open(count: int) -> None:
    assert torture("descriptors", count, 1)["matches"] == count


def test_lower_bounds_of_exploitability_hold_in_other_matches() -> None:
    found = torture("bounds", 2, 4, "--deals", 50_000, "--hands", 8_000)
    assert found["bounds"] == 2
    assert found["positive"] > 0


@pytest.mark.long
def test_lower_bounds_of_twenty_perturbed_teachers_hold_in_other_matches() -> None:
    found = torture("bounds", 20, 1)
    assert found["bounds"] == 20
    assert found["positive"] > 5


def test_four_matches_at_once_need_no_more_memory_in_the_end() -> None:
    assert torture("soak", 6, 1)["hands"] > 100


@pytest.mark.long
def test_an_hour_of_four_matches_at_once_needs_no_more_memory_in_the_end() -> None:
    found = torture("soak", 3600, 1)
    assert found["hands"] > 100_000


@pytest.mark.parametrize("suits", ["c", "cd", "cdhs"])
def test_seven_cards_ranked_at_once_are_worth_their_best_five(suits: str) -> None:
    deck, luck = [rank + suit for rank in RANKS for suit in suits], random.Random(suits)
    for _ in range(700):
        cards = luck.sample(deck, luck.choice([6, 7]))
        assert value(cards) == best_five(cards)


@pytest.mark.long
def test_the_memory_of_matches_levels_off_with_as_much_remembered_as_ordinarily() -> None:
    assert torture("soak", 2400, 2, "--ordinary")["hands"] > 50_000
