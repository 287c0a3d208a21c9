"""`info`, `predict` and `query`: what they say, and what a query cannot do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from limited_memory import limited

from pipeline.agents.predictions import predict
from pipeline.api.overview import describe
from pipeline.cli._output import echo_drawing
from pipeline.cli.main import group, main
from pipeline.cli.query import command as query_command
from pipeline.dataset.sql import SECONDS, query
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.run import ingest
from pipeline.runtime.errors import PipelineError

LOGS = Path(__file__).parents[2] / "data" / "sample"
BUNDLES = Path(__file__).parents[1] / "fixtures" / "bundles"
FLOP = "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of four short logs."""
    from pipeline.ingestion.options import options

    logs = tmp_path_factory.mktemp("logs")
    for name in ("teacher.call.1.0.log", "teacher.call.1.1.log", "teacher.random.1.0.log", "teacher.random.1.1.log"):
        lines = (LOGS / name).read_text().splitlines(keepends=True)
        (logs / name).write_text("".join(line for line in lines if not line.startswith("SCORE"))[:20_000])
    out = tmp_path_factory.mktemp("data") / "rows"
    ingest([str(logs)], out, options(strength=True), workers=1)
    return out


def run(*arguments: str | Path) -> Any:
    shown = CliRunner().invoke(group, [str(argument) for argument in arguments], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.output


def test_info_counts_what_the_dataset_holds(rows: Path) -> None:
    found = json.loads(run("info", rows, "--json", "--verify"))
    counted = query(rows, "SELECT count(*), count(DISTINCT agent) FROM decisions").rows[0]
    assert found["kind"] == "dataset"
    assert (found["decisions"], len(found["agents"])) == counted
    assert found["hands"] == query(rows, "SELECT count(*) FROM hands").rows[0][0]
    assert found["rejected"] == query(rows, "SELECT count(*) FROM rejected").rows[0][0]
    assert sum(found["streets"].values()) == found["decisions"]
    assert "teacher" in run("info", rows)


def test_info_verify_finds_a_damaged_file(rows: Path, tmp_path: Path) -> None:
    copy = tmp_path / "rows"
    shutil.copytree(rows, copy)
    file = next((copy / "decisions").rglob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 64] = bytes(64)
    file.write_bytes(bytes(data))
    assert describe(copy)["decisions"] > 0
    with pytest.raises(PipelineError, match=r"damaged|rows"):
        describe(copy, verify=True)


@pytest.mark.parametrize("name", ["loglinear", "trees"])
def test_info_describes_every_kind_of_bundle(name: str) -> None:
    found = json.loads(run("info", BUNDLES / f"{name}.zip", "--json"))
    assert found["kind"] == "bundle"
    assert found["streets"]
    assert name in {model["kind"] for model in found["models"]}
    assert found["bytes"] > 0


def test_info_names_the_streets_that_an_unfinished_bundle_lacks(tmp_path: Path) -> None:
    copy = tmp_path / "unfinished"
    shutil.copytree(LOGS.parents[1] / "models" / "teacher", copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["models"] = [model for model in manifest["models"] if model["name"] != "river"]
    manifest["missing"] = ["river"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert json.loads(run("info", copy, "--json"))["missing"] == ["river"]
    assert "missing    river: run the same `train` command again" in run("info", copy)


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"schema": 2}', '{"models": 3, "format": 1, "files": {}}', "[" * 9**5]
)
def test_info_of_a_foreign_manifest_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(PipelineError):
        describe(tmp_path)


def test_predict_shows_agents_side_by_side() -> None:
    shown = run("predict", "@call", "@raise", "@chump:rock", FLOP)
    assert shown.splitlines()[0].split() == ["fold", "check", "bet"]
    assert len(shown.splitlines()) == 4
    found = json.loads(run("predict", "@call", "@raise", FLOP, "--json"))
    assert [one["probabilities"] for one in found] == [{"f": 0.0, "c": 1.0, "r": 0.0}, {"f": 0.0, "c": 0.0, "r": 1.0}]


def test_predict_of_no_limit_names_the_totals() -> None:
    state = "MATCHSTATE:0:0:cc/:9cKc|/6dJs5c"
    found = json.loads(run("predict", "@call", state, "--game", "holdem.nolimit.2p.reverse_blinds", "--json"))
    assert found[0]["amounts"][-1] == 20_000
    assert len(found[0]["amounts"]) == len(found[0]["probabilities"])


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("MATCHSTATE:0:0:rc/:|9cKc/6dJs5c", "no cards for position 0"),
        ("MATCHSTATE:0:0:rc/:6dKc|/6dJs5c", "a card twice"),
        ("MATCHSTATE:1:0:rc/:|9cKc/6dJs5c", "not to act"),
        ("MATCHSTATE:2:0:rc/:||9cKc/6dJs5c", "players"),
        ("MATCHSTATE:0:0:rc/:9cKc|", "board cards are open"),
        ("MATCHSTATE:0:0:rrrrrr:9cKc|", "not legal"),
        ("MATCHSTATE", "not a match state"),
    ],
)
def test_an_impossible_situation_is_one_sentence(state: str, reason: str) -> None:
    from pipeline.poker.game import builtin

    with pytest.raises(PipelineError, match=reason):
        predict(["@call"], state, game=builtin("holdem.limit.2p.reverse_blinds"))


def test_a_query_answers_in_three_forms(rows: Path) -> None:
    sql = "SELECT street, count(*) AS n FROM decisions WHERE agent = 'teacher' GROUP BY ALL ORDER BY n DESC"
    table = run("query", sql, "--data", rows)
    assert table.splitlines()[0].split() == ["street", "n"]
    found = json.loads(run("query", sql, "--data", rows, "--json"))
    assert found[0]["street"] == "preflop"
    csv = run("query", sql, "--data", rows, "--format", "csv").splitlines()
    assert csv[0] == "street,n"
    assert csv[1] == f"preflop,{found[0]['n']}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{other}')",
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM '{other}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_text('{data}/manifest.json')",
        "COPY (SELECT 1) TO '{data}/new.csv'",
        "COPY (SELECT 1) TO '{hands}' (FORMAT parquet)",
        "ATTACH '{folder}/new.db'",
        "CREATE TABLE t AS SELECT 1",
        "SET enable_external_access = true",
        "SELECT 1; COPY (SELECT 1) TO '{data}/new.csv'",
        "INSTALL httpfs",
        "EXPORT DATABASE '{folder}/new'",
        "",
        "SELEC 1",
        "SELECT nothing FROM decisions",
    ],
)
def test_a_query_reads_the_dataset_and_nothing_else(sql: str, rows: Path, tmp_path: Path) -> None:
    other = tmp_path / "secret.csv"
    other.write_text("a,b\n1,2\n")
    before = sorted(path for folder in (rows, tmp_path) for path in folder.rglob("*"))
    hands = next((rows / "hands").glob("*.parquet"))
    bytes_before = hands.read_bytes()
    with pytest.raises(PipelineError):
        query(rows, sql.format(other=other, folder=tmp_path, data=rows, hands=hands))
    assert sorted(path for folder in (rows, tmp_path) for path in folder.rglob("*")) == before
    assert hands.read_bytes() == bytes_before


ENDLESS = "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b, range(1000000) AS c WHERE random() < 0"
GREEDY = "SELECT count(DISTINCT range || repeat('x', 200)) FROM range(20000000)"


@pytest.mark.parametrize(
    ("sql", "limits", "message"),
    [
        (ENDLESS, {"seconds": 1}, r"took more than 1 s: .* \(--seconds\)"),
        (GREEDY, {"memory_mb": 64}, r"needs more than 64 MB of memory: .* `memory_mb`"),
        ("SELECT * FROM range(1000000000000)", {"rows": 1000}, r"has more than 1,000 rows: .* `rows`"),
    ],
    ids=["time", "memory", "rows"],
)
def test_a_query_ends_at_its_limits(sql: str, limits: dict[str, int], message: str, rows: Path) -> None:
    with pytest.raises(PipelineError, match=f"the query {message}"):
        query(rows, sql, **limits)


def test_the_query_command_ends_at_the_limits_by_default(rows: Path) -> None:
    words = ("query", "SELECT * FROM range(1000000000000)", "--data", rows)
    done = subprocess.run(limited(6 << 30, *words), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"error: the query has more than 1,000,000 rows: .*\n", done.stderr), done.stderr


def test_the_limits_of_the_command_are_those_of_the_library() -> None:
    chosen = {option.name: option.default for option in query_command.params}
    assert chosen["seconds"] == SECONDS


def test_an_answer_of_as_many_rows_as_are_allowed_is_given(rows: Path) -> None:
    assert len(query(rows, "SELECT * FROM range(25000)", rows=25_000).rows) == 25_000


def test_a_manifest_cannot_lead_a_query_out_of_the_dataset(rows: Path, tmp_path: Path) -> None:
    copy = tmp_path / "rows"
    shutil.copytree(rows, copy)
    shutil.copy(next((rows / "hands").glob("*.parquet")), tmp_path / "outside.parquet")
    manifest = json.loads((copy / "manifest.json").read_text())
    for part in manifest["parts"]:
        for file in part["files"]:
            if file["path"].startswith("hands/"):
                file["path"] = "hands/../../outside.parquet"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PipelineError, match="is not a file that ingest writes"):
        query(copy, "SELECT count(*) FROM hands")


def test_an_unknown_pattern_names_the_nearest() -> None:
    with pytest.raises(PipelineError, match=r"no pattern is called 'thesi' \(did you mean thesis\?\)"):
        find_pattern("thesi")


def test_no_color_leaves_the_text_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import click

    import pipeline.cli.main as cli

    @click.command()
    def coloured() -> None:
        context = click.get_current_context()
        context.color = context.color is not False  # as in a terminal
        echo_drawing(click.style("red", fg="red"))

    monkeypatch.setitem(cli.COMMANDS, "coloured", "Say red.")
    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda self, ctx, name: coloured)
    main(["coloured"])
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["coloured"])
    assert "\x1b[" not in capsys.readouterr().out


def test_help_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = CliRunner().invoke(group, ["--help"], terminal_width=60)
    assert max(map(len, shown.output.splitlines())) <= 60


def test_what_a_kill_between_two_renames_moved_aside_is_described_all_the_same(tmp_path: Path) -> None:
    shutil.unpack_archive(BUNDLES / "loglinear.zip", tmp_path / ".bundle.999999999.old")
    assert describe(tmp_path / "bundle")["kind"] == "bundle"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_leaks_lists_the_worst_spots_and_hands_to_replay(rows: Path) -> None:
    leaks = json.loads(run("leaks", "--data", rows, "--agent", "random", "--min-decisions", "20", "--json"))
    values = [spot["difference_mbb_per_hand"] for spot in leaks["spots"]]
    assert values == sorted(values)
    assert all(spot["decisions"] >= 20 and len(spot["examples"]) == 3 for spot in leaks["spots"])
    assert f"{len(leaks['spots'])} spots" in run("leaks", "--data", rows, "--agent", "random", "--min-decisions", "20")
