"""evaluate, report, tournament, tools.selection and show hand, from logs of agents whose probabilities are known."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.dataset.load import load_decisions
from pipeline.evaluation.findings import read_match
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.poker.game import find_game
from pipeline.runtime.errors import PipelineError
from pipeline.training.config import TrainConfig
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles
from tools.selection import command as selection_command


def run(*arguments: object) -> str:
    """What a command prints; its error is raised."""
    done = CliRunner().invoke(group, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Logs of @random against @call with true probabilities, two datasets of them, and bundles trained on one."""
    folder = tmp_path_factory.mktemp("evaluation")
    game = find_game("holdem.limit.2p.reverse_blinds")
    agents = [resolve("@random", game), resolve("@call", game)]
    play_match(agents, game, hands=1200, seed=3, log=folder / "logs" / "x.log", probabilities=True)
    chosen = options(strength=False)
    ingest([folder / "logs"], folder / "rows", chosen)
    ingest([folder / "logs"], folder / "by-file", options(strength=False, validation=["x.1.log"]))
    for streets, name in (((), "per-street"), (("all",), "joint")):
        request = Request(
            data=folder / "rows",
            out=folder / name,
            agents=("random",),
            streets=streets,
            algorithms=("majority", "frequency"),
            pattern=find_pattern("thesis"),
        )
        train_bundles(request)
    train_bundles(
        Request(
            data=folder / "rows",
            out=folder / "flop-only",
            agents=("random",),
            streets=("flop",),
            algorithms=("majority",),
            pattern=find_pattern("thesis"),
        )
    )
    return folder


def write_probabilities(path: Path) -> Path:
    """True probabilities of a log that is not there."""
    columns = {"file": ["y.0.log"], "hand": [0], "k": [0], "f": [0.0], "c": [1.0], "r": [0.0]}
    pq.write_table(pa.table(columns), path)
    return path


def scores(place: Path, *arguments: object) -> dict[tuple[str, str], dict]:
    found = json.loads(run("evaluate", "--data", place / "rows", "--json", *arguments))
    return {(row["model"], row["street"]): row for row in found}


def test_scores_are_printed_as_json_with_exact_floors(place: Path) -> None:
    found = scores(place, place / "per-street", "--probabilities", place / "logs" / "x.probs.parquet")
    assert {model for model, _ in found} == {"majority", "frequency", "(uniform)", "(street)", "(betting)"}
    preflop = found["(uniform)", "preflop"]
    assert preflop["kl"] == pytest.approx(0.0, abs=1e-5)
    assert preflop["log_loss"] == pytest.approx(preflop["floor_log_loss"], abs=1e-5)
    assert 1 / 3 <= preflop["floor_error"] <= 2 / 3
    assert found["majority", "all"]["rows"] == sum(
        row["rows"] for (model, street), row in found.items() if model == "majority" and street != "all"
    )
    assert found["majority", "flop"]["kl"] > 0


def test_without_probabilities_the_floor_comes_from_pairs(place: Path) -> None:
    found = scores(place, place / "per-street" / "frequency")
    row = found["frequency", "preflop"]
    assert row["floor_error"] is None
    assert row["kl"] is None
    pairs = row["pair_floor_brier"]
    assert pairs["interval"][0] <= 2 / 3
    assert pairs["error_bounds"][0] == pytest.approx(pairs["value"] / 2)


def test_the_table_is_printed_for_people_and_programs(place: Path) -> None:
    also = ("--also", "details", "--also", "differences", "--also", "stationary")
    told = run("evaluate", "--data", place / "rows", place / "per-street", *also)
    assert told.splitlines()[1].split()[:3] == ["agent", "street", "rows"]
    assert "Every legal action is given at least 1e-06" in told
    assert "no sign of change" in told
    cut = run("evaluate", "--data", place / "rows", place / "per-street", "--by", "position", "--format", "markdown")
    assert "| agent | street | rows |" in cut
    assert "| big blind |" in cut
    values = run("evaluate", "--data", place / "rows", place / "per-street", "--format", "csv").splitlines()
    assert values[0].startswith("model,algorithm,agent,street,rows,error,log_loss")
    crossed = run("evaluate", "--data", place / "rows", place / "per-street", "--also", "cross")
    assert "Log-loss of each model on each agent" in crossed


def test_a_model_is_scored_on_the_streets_it_has(place: Path) -> None:
    found = scores(place, place / "flop-only")
    assert {street for model, street in found if model == "flop-only"} == {"preflop", "flop"}


def test_built_in_agents_are_scored_too(place: Path) -> None:
    found = scores(place, "@random", "--agent", "call")
    assert found["@random", "all"]["error"] > 0
    assert found["(uniform)", "all"]["agent"] == "call"


def test_a_learning_curve_trains_on_growing_parts(place: Path) -> None:
    told = run("evaluate", "--data", place / "rows", place / "flop-only", "--also", "learning")
    table = told.split("Log-loss by number of training rows")[1]
    rows = [line.split() for line in table.splitlines() if line.startswith("random  flop")]
    counts = [int(row[3].replace(",", "")) for row in rows]
    assert counts == sorted(counts)
    assert len(counts) >= 3


def test_a_learning_curve_of_the_default_model_in_a_dataset_of_two_games(place: Path, tmp_path: Path) -> None:
    leduc = find_game("leduc.limit.2p")
    agents = [resolve("@random", leduc), resolve("@call", leduc)]
    play_match(agents, leduc, hands=50, seed=3, log=tmp_path / "logs" / "leduc.log")
    ingest([place / "logs", tmp_path / "logs"], tmp_path / "rows", options(strength=False))
    game = "holdem.limit.2p.reverse_blinds"
    config = TrainConfig(max_iterations=20, rounds=5)
    train_bundles(Request(tmp_path / "rows", tmp_path / "copy", ("random",), ("flop",), game=game, config=config))
    assert load_bundle(tmp_path / "copy").parts[1].about["algorithm"] == "blend"
    told = run("evaluate", "--data", tmp_path / "rows", tmp_path / "copy", "--game", game, "--also", "learning")
    rows = [
        line for line in told.split("by number of training rows")[1].splitlines() if line.startswith("random  flop")
    ]
    assert len(rows) >= 3


def test_models_and_data_that_do_not_fit_are_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="held out"):
        run("evaluate", "--data", place / "by-file", place / "per-street")
    with pytest.raises(PipelineError, match="leave out --all-rows"):
        run("evaluate", "--data", place / "rows", place / "per-street", "--all-rows")
    with pytest.raises(PipelineError, match=r"trained on .*x\.0\.log, .*x\.1\.log of .*add --allow-overlap"):
        run("evaluate", "--data", place / "by-file", place / "per-street", "--all-rows")
    with pytest.raises(PipelineError, match="did you mean random"):
        run("evaluate", "--data", place / "rows", place / "per-street", "--agent", "randm")
    with pytest.raises(PipelineError, match="cannot cut by"):
        run("evaluate", "--data", place / "rows", place / "per-street", "--by", "colour")
    with pytest.raises(PipelineError, match="holds none"):
        run("evaluate", "--data", place / "rows", tmp_path)
    kuhn = find_game("kuhn.limit.2p")
    agents = [resolve("@random", kuhn), resolve("@call", kuhn)]
    play_match(agents, kuhn, hands=40, seed=1, log=tmp_path / "logs" / "k.log")
    ingest([tmp_path / "logs"], tmp_path / "rows", options(strength=False))
    with pytest.raises(PipelineError, match="was trained for"):
        run("evaluate", "--data", tmp_path / "rows", place / "per-street")
    wrong = write_probabilities(tmp_path / "other.parquet")
    with pytest.raises(PipelineError, match=r"written for other logs \(such as y.0\).*such as x.0.log; name the file"):
        run("evaluate", "--data", place / "rows", place / "per-street", "--probabilities", wrong)


def test_the_page_is_written_from_bundles_and_matches(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1769817600")
    match = tmp_path / "match.json"
    match.write_text(run("match", "@call", "@random", "--hands", 100, "--json"))
    out = tmp_path / "page.html"
    table = Path(__file__).parents[2] / "data" / "acpc2013" / "runoff.csv"
    run(
        "report",
        "--data",
        place / "rows",
        place / "per-street",
        "--out",
        out,
        "--match",
        match,
        "--table",
        table,
        "--also",
        "cross",
    )
    page = out.read_text(encoding="utf-8")
    for section in ("errors", "calibration", "failures", "charts", "features", "worst", "agents", "matches"):
        assert f'<section id="{section}">' in page
    assert len(page) < 2_000_000
    foot = page[page.index("<footer>") :]
    assert "Made on 2026-01-31 by: pipeline report" in foot
    assert all(word in foot for word in (str(match), str(table), "--also cross", str(place / "per-street")))
    assert re.search(r"Data [0-9a-f]{32}, bootstrap seed 0\.", foot)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": 3}, "not what `match --json` prints"),
        ({"hands": "many"}, "not what `match --json` prints"),
        ({"ci95": None}, "one deal, which has no interval"),
    ],
)
def test_a_file_that_is_no_match_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    sound = {"a": "@call", "b": "@raise", "hands": 4, "mbb_per_hand": 1.5, "ci95": 2}
    path = tmp_path / "match.json"
    path.write_text(json.dumps(sound))
    assert read_match(path) == sound
    path.write_text(json.dumps({**sound, **change}))
    with pytest.raises(PipelineError, match=message):
        read_match(path)
    for text in ("{}", "[" * 9**5):
        path.write_text(text)
        with pytest.raises(PipelineError, match="not what `match --json` prints"):
            read_match(path)


def test_select_names_a_winner_for_each_rule_and_correlates_measures(place: Path) -> None:
    def select(*words: object) -> str:
        done = CliRunner().invoke(selection_command, list(map(str, words)), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    found = json.loads(
        select(place / "per-street", place / "joint", "--data", place / "rows", "--hands", 200, "--json")
    )
    assert {cycle["cycle"] for cycle in found["cycles"]} == {1, 2, 3}
    assert Path(found["instant_runoff"]).exists()
    assert Path(found["total_bankroll"]).exists()
    known = {row["measure"] for row in found["rank_correlation"]}
    assert {"error", "log_loss", "brier", "calibration"} <= known
    assert all(-1 <= row["spearman"] <= 1 for row in found["rank_correlation"])
    told = select(place / "per-street", "--hands", 100, "--chart", "own")
    assert "to instant run-off:" in told


def test_what_a_selection_or_report_cannot_use_is_refused_before_any_work(place: Path, tmp_path: Path) -> None:
    select = [str(place / "per-street"), "--cluster", "tcp://127.0.0.1:1"]
    for words, problem in ((["--chart", "selbyy"], "selbyy"), (["--weak", "@nobody"], "@nobody")):
        done = CliRunner().invoke(selection_command, [*select, *words])
        assert isinstance(done.exception, PipelineError)
        assert problem in str(done.exception)
    report = ("report", tmp_path / "no-bundle", "--data", place / "rows", "--out", tmp_path / "x.html")
    with pytest.raises(PipelineError, match=r"missing\.json"):
        run(*report, "--match", tmp_path / "missing.json")


@pytest.mark.parametrize("words", [["tournament"], []])
@pytest.mark.parametrize("cap", ["nan", "inf", "-1"])
def test_a_cap_is_a_finite_number_of_zero_or_more(words: list[str], cap: str) -> None:
    done = CliRunner().invoke(group if words else selection_command, [*words, "@call", "@fold", "--cap", cap])
    assert done.exit_code == 2
    assert "'--cap'" in done.output


def test_the_tournament_command_ranks_and_keeps_its_table(tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    found = json.loads(run("tournament", "@call", "@raise", "@fold", "--hands", 200, "--out", out, "--json"))
    assert found["cap_mbb"] == 750
    assert found["instant_runoff"]["standings"][-1]["agent"] == "fold"
    again = json.loads(run("tournament", "--table", out, "--json"))
    assert [row["agent"] for row in again["total_bankroll"]["standings"]] == [
        row["agent"] for row in found["total_bankroll"]["standings"]
    ]
    assert "instant run-off" in run("tournament", "--table", out)
    with pytest.raises(PipelineError, match="not both"):
        run("tournament", "@call", "--table", out)
    three = json.loads(
        run("tournament", "@call", "@raise", "@fold", "--game", "holdem.limit.3p", "--hands", 90, "--json")
    )
    won = [member["adjusted_mbb_per_hand"] for member in three["lineups"][0]["results"]]
    assert math.isclose(sum(won), 0.0, abs_tol=1e-6)


def test_a_hand_of_a_log_is_shown(place: Path) -> None:
    told = run("show", "hand", place / "logs" / "x.0.log", 2, "@call")
    assert told.startswith("hand 2 of holdem.limit.2p.reverse_blinds")
    assert "c 100" in told
    with pytest.raises(PipelineError, match="no hand 9999"):
        run("show", "hand", place / "logs" / "x.0.log", 9999)


BOT = """
import numpy as np


class Bot:
    name = "caller"

    def __init__(self, game):
        self.game = game

    def probabilities(self, rows):
        return np.tile([0.0, 1.0, 0.0], (len(rows), 1))
"""


def test_a_bot_of_ones_own_is_asked_and_reported(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    bot = tmp_path / "caller.py"
    bot.write_text(BOT)
    told = run("show", "hand", place / "logs" / "x.0.log", 2, f"python:{bot}:Bot")
    assert f"→ python:{bot}:Bot would play" in told
    page = tmp_path / "page.html"
    monkeypatch.setattr("click.launch", lambda url: opened.append(url) or 0)
    run("report", "--data", place / "rows", f"python:{bot}:Bot", "--agent", "call", "--out", page, "--open")
    assert opened == [page.resolve().as_uri()]
    assert "copies <b>call</b>" in page.read_text(encoding="utf-8")


def test_files_are_written_as_their_extension_says_or_refused(place: Path, tmp_path: Path) -> None:
    counted = ("show", "chart", "--data", place / "rows", "--agent", "random", "--out")
    for name, begins in (("c.svg", "<svg"), ("c.txt", "# situation class"), ("c.json", "{")):
        run(*counted, tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begins)
    for words in (
        (*counted, tmp_path / "c.png"),
        (*counted, tmp_path / "c"),
        ("report", "--data", place / "rows", place / "per-street", "--out", tmp_path / "p.pdf"),
    ):
        with pytest.raises(PipelineError, match="end the name in"):
            run(*words)
        assert not Path(str(words[-1])).exists()


def test_charts_and_features_are_told_as_json(place: Path) -> None:
    bundle = place / "per-street" / "frequency"
    counted = json.loads(run("show", "chart", "--data", place / "rows", "--agent", "random", "--json"))
    assert (counted["agents"], counted["labels"]) == (["random"], ["f", "c", "r"])
    kept = json.loads(run("show", "chart", bundle, "--json"))
    assert kept["situations"] == counted["situations"]
    first = kept["situations"][0]
    assert sum(sum(counts) for counts in first["classes"].values()) == first["decisions"]
    fired = json.loads(run("show", "features", bundle, "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c", "--json"))
    assert fired["street"] == "flop"
    assert sum(fired["probabilities"].values()) == pytest.approx(1.0)
    assert any(one["weights"] for one in fired["features"])


def test_a_chart_counts_the_training_rows_only(place: Path) -> None:
    counted = json.loads(
        run("show", "chart", "--data", place / "rows", "--agent", "random", "--situations", 99, "--json")
    )
    rows = load_decisions(place / "rows", ["random"], ["preflop"], "train")
    assert sum(one["decisions"] for one in counted["situations"]) == len(rows)
