"""The first hour in four chairs (student, bot author, poker player, researcher), outside the clone, with the wheel."""

from __future__ import annotations

import json
import shutil

import pytest
from test_docs import ROOT
from test_wheel import Installation, installed, source, wheel  # noqa: F401 (fixtures)


@pytest.mark.long
def test_a_student_makes_a_copy_and_sees_how_close_it_is(installed: Installation) -> None:  # noqa: F811
    installed.run("ingest", "sample:", "--no-strength", "--out", "student/rows")
    assert "teacher" in installed.run("info", "student/rows")
    train = ("train", "--data", "student/rows", "--agent", "teacher", "--pattern", "thesis", "--max-iterations", "15")
    installed.run(*train, "--out", "student/copy")
    truth = ("--probabilities", "sample:/sample.probs.parquet")
    assert "floor" in installed.run("evaluate", "--data", "student/rows", "student/copy", *truth)
    installed.run("report", "--data", "student/rows", "student/copy", "--out", "student/report.html")
    assert (installed.folder / "student" / "report.html").stat().st_size > 10_000


@pytest.mark.long
def test_a_researcher_compares_models_and_asks_in_sql(installed: Installation) -> None:  # noqa: F811
    installed.run("ingest", "sample:", "--no-strength", "--out", "research/rows")
    rows = json.loads(
        installed.run("evaluate", "--data", "research/rows", "teacher:", "@call", "--agent", "teacher", "--json")
    )
    assert {row["model"] for row in rows} >= {"teacher", "@call"}
    assert "flop" in installed.run("query", "--data", "research/rows", "SELECT street FROM decisions GROUP BY ALL")
    assert "mbb/h" in installed.run("match", "teacher:", "@teacher", "--hands", "2000", "--seed", "1")


@pytest.mark.long
def test_a_player_looks_asks_and_sits_down(installed: Installation) -> None:  # noqa: F811
    assert "A " in installed.run("show", "chart", "teacher:", "--situations", "1")
    assert "bet" in installed.run("predict", "teacher:", "@equity", "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")
    assert "preflop" in installed.run("show", "hand", "sample:/teacher.call.1.0.log", "17", "teacher:")
    installed.run("play", "teacher:", "--hands", "2", "--log", "player.log", given="c\n" * 100)
    assert (installed.folder / "player.log").stat().st_size > 0


@pytest.mark.long
def test_a_bot_author_plays_a_bot_of_his_own_and_ships_the_copy(installed: Installation) -> None:  # noqa: F811
    shutil.copy(ROOT / "examples" / "careful.py", installed.folder)
    assert "Careful" in installed.run("match", "python:./careful.py:Careful", "teacher:", "--hands", "200")
    installed.run("ship", "teacher:", "--out", "bot.zip")
    assert "imitates   teacher" in installed.run("info", "bot.zip")
    assert "mbb/h" in installed.run("match", "bot.zip", "@call", "--hands", "200")
