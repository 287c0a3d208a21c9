"""One schema for results: what `mbb_per_hand`, `ci95` and `interval` mean in every command's JSON and every frame."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pipeline as p
from pipeline.cli.main import group

GAME = "leduc.limit.2p"
KINDS = ("", "adjusted_", "capped_")
WINNINGS = {f"{kind}{key}" for kind in KINDS for key in ("mbb_per_hand", "ci95", "interval")}


def run(*arguments: object) -> Any:
    """Return what a command prints as JSON."""
    done = CliRunner().invoke(group, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout, parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs of a small game, a dataset of them, bundles of two algorithms and a saved cross table."""
    folder = tmp_path_factory.mktemp("schema")
    run("match", "@equity", "@call", "--hands", 600, "--sample", folder / "logs", "--game", GAME, "--json")
    run("ingest", folder / "logs", "--out", folder / "rows", "--no-strength", "--json")
    named = ("--algorithm", "frequency", "--algorithm", "majority")
    run("train", "--data", folder / "rows", "--agent", "equity", "--out", folder / "models", *named, "--json")
    table = ("--out", folder / "table.csv", "--hands", 200, "--game", GAME)
    run("tournament", "@equity", "@call", "@raise", *table, "--json")
    return folder


COMMANDS = {
    "match": "match @equity @call --hands 60 --game {game}",
    "match, plain": "match @equity @call --hands 60 --game {game} --no-adjusted",
    "match, one deal": "match @equity @call --hands 2 --game {game}",
    "match, learner": "match @equity @adaptive --hands 60 --game {game}",
    "tournament": "tournament @equity @call @raise --hands 60 --game {game}",
    "tournament, plain": "tournament @equity @call --hands 60 --game {game} --no-adjusted --cap 0",
    "tournament, three": "tournament @call @raise @random @fold --hands 60 --game kuhn.limit.3p",
    "tournament, table": "tournament --table {place}/table.csv",
    "match, dataset": "match --data {place}/rows",
    "match, logs": "match --from {place}/logs --game {game}",
    "profile": "profile --data {place}/rows",
    "evaluate": "evaluate {place}/models/frequency --data {place}/rows",
    "match, sample": "match @equity @call --hands 8 --sample {place}/again --game {game}",
    "counter, judge": "counter --judge @call --game {game}",
    "counter": "counter --against @call --game {game} --out {place}/counter",
    "counter, logs": "counter --data {place}/rows --agent equity --out {place}/counter-of-logs",
    "counter, hold'em": "counter --against @equity --deals 24000 --table-hands 100 --method best --out {place}/holdem",
    "solve": "solve holdem --deals 24000 --sizes 5,5,5 --out {place}/solved",
}
LONG = ("counter, hold'em", "solve")
FRAMES = {
    "match": lambda place: p.match("@equity", "@call", hands=60, game=GAME).frame(),
    "match, plain": lambda place: p.match("@equity", "@call", hands=60, game=GAME, adjusted=False).frame(),
    "tournament": lambda place: p.tournament("@equity", "@call", "@raise", hands=60, game=GAME).frame(),
    "evaluate": lambda place: p.evaluate(place / "rows", place / "models" / "frequency").frame(),
}


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside some JSON."""
    if isinstance(value, dict):
        yield value
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inside)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_half(half: Any, ends: Any, mean: Any = None) -> None:
    """Check a half width with the pair that belongs to it, and that the pair lies about the value."""
    assert half is None or (is_number(half) and half >= 0)
    if ends is None:
        assert half is None
        return
    low, high = ends
    assert half == pytest.approx((high - low) / 2, abs=1e-9)
    if is_number(mean):
        assert low - 1e-9 <= mean <= high + 1e-9


def check_object(found: dict[str, Any]) -> None:
    """Check the keys of one object that hold winnings or intervals."""
    if "mbb_per_hand" in found:
        assert set(found) >= WINNINGS
        for kind in KINDS:
            mean, half, ends = (found[f"{kind}{key}"] for key in ("mbb_per_hand", "ci95", "interval"))
            assert mean is None or is_number(mean)
            assert mean is not None or (half, ends) == (None, None)
            check_half(half, ends, mean)
    for key, pairs in found.items():
        if key.endswith("interval"):
            assert all(
                pair is None or len(pair) == 2 for pair in (pairs.values() if isinstance(pairs, dict) else [pairs])
            )
    for key, half in found.items():
        if not key.endswith("ci95"):
            continue
        ends = found[key.removesuffix("ci95") + "interval"]
        if isinstance(half, dict):
            assert isinstance(ends, dict)
            assert list(half) == list(ends)
            for name, width in half.items():
                check_half(width, ends[name], found.get(name))
        else:
            check_half(half, ends, None if key == "ci95" else found.get(key.removesuffix("_ci95")))


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, id=name, marks=[pytest.mark.long] * (name in LONG)) for name, words in COMMANDS.items()],
)
def test_keys_of_results_mean_the_same_in_the_json_of_every_command(words: str, place: Path) -> None:
    found = run(*words.format(game=GAME, place=place).split(), "--json")
    for result in objects(found):
        check_object(result)


def test_a_counter_says_where_its_winnings_were_measured(place: Path) -> None:
    for name, where in {"counter": "agent", "counter, logs": "copy"}.items():
        found = run(*COMMANDS[name].format(game=GAME, place=place).split(), "--json")
        assert {tradeoff["measured_at"] for tradeoff in objects(found) if "winnings" in tradeoff} == {where}


@pytest.mark.long
def test_a_counter_of_an_agent_that_sees_more_than_buckets_is_measured_at_the_table(place: Path) -> None:
    found = run(*COMMANDS["counter, hold'em"].format(place=place).split(), "--json")
    for tradeoff in (found, *found["curve"]):
        assert tradeoff["measured_at"] == "table"
        assert tradeoff["over_buckets"] != tradeoff["winnings"]


def nested(row: dict[str, Any]) -> dict[str, Any]:
    """Put the flat cells of a frame together again, so that pairs and dictionaries are those of JSON."""
    result: dict[str, Any] = {}
    for column, value in row.items():
        key, cell = column, value
        for first, second in (("_1", "_2"), ("_low", "_high")):
            if column.endswith(first) and column.removesuffix(first) + second in row:
                pair = [value, row[column.removesuffix(first) + second]]
                key, cell = column.removesuffix(first), None if None in pair else pair
                key = key.removesuffix("mbb_per_hand") + "interval" if first == "_low" else key
            elif column.endswith(second) and column.removesuffix(second) + first in row:
                key = ""
        name, _, measure = key.partition("_")
        if name in ("ci95", "interval") and measure:
            result.setdefault(name, {})[measure] = cell
        elif key and result.get(key) is None:
            result[key] = cell
    return result


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_keys_of_results_mean_the_same_in_every_frame(make: Any, place: Path) -> None:
    rows = make(place).to_dict("records")
    assert rows
    for row in rows:
        # pandas writes NaN where there is none
        check_object(
            nested(
                {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
            )
        )


@pytest.mark.parametrize(("cap", "ranked_by"), [(50, "capped_mbb_per_hand"), (0, "adjusted_mbb_per_hand")])
def test_a_ranking_names_the_winnings_that_order_it(place: Path, cap: int, ranked_by: str) -> None:
    words = ("@equity", "@call", "@raise", "--hands", 60, "--game", GAME, "--cap", cap)
    ranking = run("tournament", *words, "--json")["total_bankroll"]
    assert ranking["ranked_by"] == ranked_by
    values = [standing[ranked_by] for standing in ranking["standings"]]
    assert values == sorted(values, reverse=True)
    assert all(abs(value) <= cap for value in values) == (cap > 0)


def test_a_table_that_was_written_keeps_the_kind_of_its_winnings(place: Path) -> None:
    standing = run("tournament", "--table", place / "table.csv", "--json")["total_bankroll"]["standings"][0]
    assert standing["mbb_per_hand"] is None
    assert is_number(standing["adjusted_mbb_per_hand"])
    published = place / "published.csv"
    published.write_text(",a,b\na,,20±3\nb,-20±3,\n", encoding="utf-8")
    found = run("tournament", "--table", published, "--json")
    assert found["lineups"][0]["results"][0]["ci95"] == pytest.approx(3.0, rel=1e-6)
    assert found["total_bankroll"]["standings"][0]["adjusted_mbb_per_hand"] is None


def test_the_first_agent_of_a_match_is_on_top_and_the_tables_of_csv_have_both_ends(place: Path) -> None:
    found = run(*COMMANDS["match"].format(game=GAME).split(), "--json")
    assert {key: found[key] for key in WINNINGS} == {key: found["agents"][0][key] for key in WINNINGS}
    text = CliRunner().invoke(group, ["profile", "--data", str(place / "rows"), "--format", "csv"]).stdout
    assert {"mbb_per_hand_low", "mbb_per_hand_high", "ci95"} <= set(text.splitlines()[0].split(","))
