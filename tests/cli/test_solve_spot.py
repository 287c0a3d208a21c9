"""`solve spot` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import pipeline as p
from pipeline.cli.main import group
from pipeline.runtime.errors import PipelineError

SPOT = ("--board", "2c7d9hTsJs", "--range", "22+,A2s+,KTo+", "--range", "QQ+,AKs:0.5", "--pot", 100, "--stack", 300)


def run(*words: object) -> str:
    result = CliRunner().invoke(group, ["solve", "spot", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_has_the_figures_of_the_spot_and_the_mix_of_its_first_decision() -> None:
    answer = json.loads(run(*SPOT, "--sizes", "0.33,0.75,1.5", "--target", 0.001, "--json"))
    assert 0 <= answer["exploitability"] <= 0.001
    assert answer["seconds"] > 0
    assert sum(answer["value"]) == pytest.approx(1)
    assert sum(answer["equity"]) == pytest.approx(1)
    assert answer["value"][0] == pytest.approx(0.535, abs=0.003)
    assert (answer["board"], answer["pot"], answer["stack"], answer["player"]) == ("2c7d9hTsJs", 100, 300, "oop")
    assert list(answer["actions"]) == ["check", "bet 33", "bet 75", "bet 150"]


def test_the_text_is_a_table_by_class_of_hands_and_a_sentence() -> None:
    lines = run(*SPOT, "--target", 0.01, "--at", "c").splitlines()
    assert lines[0].split()[:5] == ["hand", "of", "range", "equity", "value"]
    assert {line.split()[0] for line in lines[1:-1]} == {"AA", "AKs", "KK", "QQ"}
    assert "exploitability 0." in lines[-1]


def test_hands_are_written_as_csv_or_json(tmp_path: Path) -> None:
    run(*SPOT, "--target", 0.01, "--out", tmp_path / "spot.csv")
    with (tmp_path / "spot.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["hand", "reach", "equity", "value", "check", "bet 33", "bet 75", "bet 150"]
    run(*SPOT, "--target", 0.01, "--out", tmp_path / "spot.json")
    written = json.loads((tmp_path / "spot.json").read_text())
    assert len(written["hands"]) == len(rows)
    assert written["hands"][0]["hand"] == rows[0]["hand"]


def test_a_saved_solution_is_opened_in_python(tmp_path: Path) -> None:
    run(*SPOT, "--target", 0.01, "--out", tmp_path / "spot")
    opened = p.load_spot(tmp_path / "spot")
    again = p.solve_spot("2c7d9hTsJs", ["22+,A2s+,KTo+", "QQ+,AKs:0.5"], pot=100, stack=300, target=0.01)
    assert opened.value == again.value
    assert list(opened.frame().columns) == list(again.frame().columns)


def test_ranges_and_locks_come_from_agents_after_a_betting() -> None:
    hand = ("--after", "MATCHSTATE:0:0:cc/cc/cc/r200:AsKs|/2c7d9h/Ts/Js", "--sizes", "1", "--raises", 1)
    words = ("--range", "@equity", "--range", "random", "--lock", "ip=@equity", "--target", 0.005, "--json")
    answer = json.loads(run(*hand, *words))
    assert answer["locked"] == [False, True]
    assert answer["pot"] == 200
    assert list(answer["actions"])[:2] == ["check", "bet 100"]  # the bet of the hand, beside that of a pot
    assert answer["value"][0] > answer["free_value"][0] > answer["worst_case"][0]
    assert answer["risk"][0] == pytest.approx(answer["free_value"][0] - answer["worst_case"][0])
    assert answer["risk"][1] is None


def test_a_lock_by_numbers_comes_from_a_file(tmp_path: Path) -> None:
    lock = tmp_path / "caller.json"
    lock.write_text(json.dumps({"r75": {"random": [0, 1, 0]}, "c": [1, 0]}))
    text = run(*SPOT, "--sizes", "0.75", "--raises", 1, "--lock", f"ip={lock}")
    assert "it risks" in text.splitlines()[-1]


def test_another_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(PipelineError, match="is not a solution of a spot"):
        run(*SPOT, "--out", tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--board", "2c7d9h", "--range", "AA"), "--range is there 1 times"),
        (("--board", "2c7d9h", "--range", "AA", "--range", "KK"), "a spot needs a board, a pot and a stack"),
        ((*SPOT, "--board", "2c7d9h2c"), "has the same card twice"),
        ((*SPOT, "--lock", "sb=@call"), "--lock sb=@call: write oop=AGENT"),
        ((*SPOT, "--lock", "ip=@call"), "@call is an AGENT, whose play depends on the betting"),
        ((*SPOT, "--out", "spot.txt"), "name a folder, or a file that ends in .csv or .json"),
        ((*SPOT, "--after", "MATCHSTATE:0:0:cc/:|/2c7d9h"), "leave out --board"),
        ((*SPOT, "--at", "r80"), "the line 'r80' is not in this spot's tree"),
        ((*SPOT, "--memory", 1e-6), "GB and 1e-06 GB are allowed"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[object, ...], problem: str) -> None:
    with pytest.raises(PipelineError) as error:
        run(*words)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
