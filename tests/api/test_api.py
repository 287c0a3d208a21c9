"""`import pipeline as p`: every public name is there, is documented, and nothing heavy is loaded before it is used."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import pipeline as p
from pipeline.cli.main import group

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "bundles" / "loglinear.zip"
FLOP = "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c"
HEAVY = ("numpy", "numba", "pandas", "pyarrow", "sklearn", "scipy", "click", "duckdb")


def python(code: str) -> str:
    """What a fresh interpreter prints for `code`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    played = p.match("@chump:gambler", "@chump:rock", hands=400, seed=3, log=folder / "logs" / "gambler.rock")
    assert [log.name for log in played.logs] == ["gambler.rock.0.log", "gambler.rock.1.log"]
    p.ingest(str(folder / "logs"), str(folder / "rows"), strength=False, workers=1)
    return folder / "rows"


def test_importing_the_package_loads_nothing_heavy() -> None:
    shown = python(f"import sys, pipeline; print([name for name in {HEAVY} if name in sys.modules])")
    assert shown.strip() == "[]"


def test_frames_alone_import_pandas() -> None:
    code = (
        "import sys, pipeline as p\n"
        "p.agent('@call'); p.find_game('kuhn.limit.2p'); p.match; p.load; p.train; p.evaluate\n"
        "print([name for name in ('pandas', 'sklearn', 'pyarrow') if name in sys.modules])"
    )
    assert python(code).strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert dir(p) == sorted([*p.__all__, "sklearn"])
    assert p.sklearn.MaxEntClassifier.__name__ == "MaxEntClassifier"
    for name in p.__all__:
        assert getattr(p, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = p.trian


def test_a_prior_by_an_agents_name_needs_no_import_of_agents() -> None:
    code = (
        "from pipeline.models.prior import find_agent\n"
        "from pipeline.poker.game import find_game\n"
        "print(type(find_agent('@call', find_game('kuhn.limit.2p'))).__module__)"
    )
    assert python(code).startswith("pipeline.agents")


def test_type_checkers_and_python_read_the_same_list_of_names() -> None:
    lines = (ROOT / "pipeline" / "__init__.pyi").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(p.__all__) + 1  # and the module `sklearn`
    for name in p.__all__:
        assert any(line.endswith(f" import {name} as {name}") for line in lines), name


def test_a_public_function_stays_one_when_its_module_is_imported() -> None:
    code = (
        "import pipeline.training.run, pipeline.ingestion, pipeline.evaluation, pipeline\n"
        "from pipeline.training.run import train_bundles\n"
        "assert all(callable(getattr(pipeline, name)) for name in ('train', 'ingest', 'evaluate'))\n"
        "print(pipeline.training.run.__name__, train_bundles.__module__)"
    )
    assert python(code).split() == ["pipeline.training.run"] * 2


@pytest.mark.parametrize("name", [name for name in p.__all__ if inspect.isroutine(getattr(p, name))])
def test_every_public_function_says_what_goes_in_and_out(name: str) -> None:
    text = inspect.getdoc(getattr(p, name)) or ""
    for part in ("Parameters\n---", "Returns\n---", "Examples\n---", ">>> "):
        assert part in text, f"{name} lacks {part}"
    for parameter in inspect.signature(getattr(p, name)).parameters.values():
        if name != "write_report":
            assert f"{parameter.name}" in text, f"{name} does not explain {parameter.name}"


def test_decisions_are_a_readable_frame(rows: Path) -> None:
    found = p.load(rows, agent="chump-gambler", street=["flop", "turn"])
    frame = found.frame()
    assert len(frame) == len(found) > 0
    assert set(frame["street"]) == {"flop", "turn"}
    assert set(frame["action"]) <= set("fcr")
    assert (frame["board"].str.len() == np.where(frame["street"] == "flop", 6, 8)).all()
    assert (frame["hole"].str.len() == 4).all()
    hands = {text for text in frame["start"] if text[0] == text[1]}
    assert all(len(text) == 2 for text in hands)
    assert "chump-gambler" in repr(found)
    assert len(repr(found)) < 200


def test_decisions_are_read_hand_by_hand_sliced_and_indexed(rows: Path) -> None:
    decisions = p.load(rows, agent="chump-gambler")
    frame = decisions.frame()
    hands = list(decisions.hands())
    assert sum(map(len, hands)) == len(decisions) == len(list(decisions))
    assert len(hands) == len(frame.drop_duplicates(["file", "line"]))
    places = [(hand.last.file, hand.last.line) for hand in hands]
    assert places == sorted(places, key=lambda place: (decisions.files.index(place[0]), place[1]))
    assert all(hand.decisions == tuple(sorted(hand.decisions, key=lambda one: one.k)) for hand in hands)
    sql = f"SELECT betting, payoffs, names FROM hands WHERE file = '{places[0][0]}' AND line = {places[0][1]}"
    (betting, payoffs, names), *_ = p.query(rows, sql).rows
    assert betting.startswith(hands[0].betting)
    assert hands[0].last.result == float(payoffs.split("|")[names.split("|").index("chump-gambler")])
    last = decisions[-1]
    assert (last.action, last.street, last.hole) == tuple(frame.iloc[-1][["action", "street", "hole"]])
    assert decisions[10:20].frame().equals(frame.iloc[10:20].reset_index(drop=True))
    raises = decisions[decisions.action == 2]
    assert set(raises.frame()["action"]) == {"r"}
    assert [one.k for one in raises[:3]] == raises.k[:3].tolist()
    with pytest.raises(IndexError):
        decisions[len(decisions)]
    assert "chump-gambler" in repr(hands[0])


def test_strengths_are_columns_of_the_frame(rows: Path, tmp_path: Path) -> None:
    p.ingest(rows.parent / "logs", tmp_path / "rows", workers=1)
    decisions = p.load(tmp_path / "rows", strength=True)
    frame = decisions.frame().set_index("street")
    names = ["ihs", "ehs", "ehs2", *(f"q{i}" for i in range(1, 9))]
    assert frame.loc["preflop", names].isna().all(axis=None)
    assert frame.loc[["flop", "turn", "river"], names].notna().all(axis=None)
    assert (frame.loc["river", "ihs"] == frame.loc["river", "ehs"]).all()
    assert frame.loc["river", [f"ochs{i}" for i in range(1, 9)]].notna().all(axis=None)
    assert frame.loc[["preflop", "flop", "turn"], "ochs1"].isna().all()
    flop = decisions[decisions.rows["street"] == 1]
    stored = p.query(tmp_path / "rows", "SELECT sum(flop_ehs) FROM decisions WHERE street = 'flop'").rows[0][0]
    assert flop.frame()["ehs"].sum() * 65535 == pytest.approx(stored)


def test_a_mix_a_description_and_a_state_have_fields(copy: p.OpenBundle, rows: Path) -> None:
    mix = copy.predict(FLOP)
    assert mix.fold + mix.call + mix.aggressive == pytest.approx(1)
    assert mix[mix.likeliest] == max(mix.values())
    described = p.describe(rows)
    assert (described.kind, described.agents) == ("dataset", ("chump-gambler", "chump-rock"))
    assert described["hands"] == 400
    assert described.frame()["decisions"].sum() == described["decisions"]
    assert p.describe(copy).frame()["algorithm"].tolist()[-1] == "frequency"
    state = p.find_game("holdem.nolimit.2p").start().apply(2, 300).apply(1)
    assert repr(state) == (
        "<State of holdem.nolimit.2p.reverse_blinds after 'r300c/': round 2, pot 600, spent 300 and 300, "
        "position 0 to act, 0 to call>"
    )
    assert repr(state.apply(2, 900).apply(0)).endswith("position 1 folded, finished>")


def test_what_a_notebook_shows_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    (tmp_path / "a.log").write_text(
        "#  GAMEDEF\n" + "".join(f"STATE:{n}:rc/cc/cc/cc:AsKs|QdQh/2c3c4c/9d/7d:-20|20:{evil}|b\n" for n in range(60))
    )
    p.ingest(tmp_path / "a.log", tmp_path / "rows", game="holdem.limit.2p", strength=False)
    decisions = p.load(tmp_path / "rows")
    shown = [decisions, next(decisions.hands()), p.profile(tmp_path / "rows", style=False), p.score(tmp_path / "rows")]
    shown += [p.describe(tmp_path / "rows"), p.query(tmp_path / "rows", "SELECT names FROM hands"), decisions[0:1]]
    for result in shown:
        text = result._repr_html_()
        assert "<table>" in text
        assert "<script" not in text
        assert "&lt;script" in text


def test_a_frame_agrees_with_the_stored_columns(rows: Path) -> None:
    frame = p.load(rows, "chump-rock", "river").frame().sort_values(["file", "line", "k"], ignore_index=True)
    sql = "SELECT preflop, river, pot, label, start FROM decisions WHERE agent = 'chump-rock' AND street = 'river' "
    stored = p.query(rows, sql + "ORDER BY file, line, k").frame()
    assert frame["river"].tolist() == stored["river"].tolist()
    assert frame["start"].tolist() == stored["start"].tolist()
    assert frame["action"].tolist() == stored["label"].tolist()
    assert frame["pot"].tolist() == stored["pot"].tolist()


def test_train_evaluate_and_play_take_texts_for_paths(rows: Path, tmp_path: Path) -> None:
    made = p.train(str(rows), str(tmp_path / "copy"), agent="chump-gambler", algorithm="frequency", workers=1)
    bundle = made.bundle()
    mix = bundle.predict(FLOP)
    assert sum(mix.values()) == pytest.approx(1)
    assert mix == pytest.approx(p.predict([str(tmp_path / "copy:threshold=0")], FLOP)[0].probabilities)
    assert set(made.frame()["street"]) == {"flop", "turn", "river"}
    scores = p.evaluate(str(rows), str(tmp_path / "copy"))
    assert isinstance(scores.frame(), pd.DataFrame)
    assert {"model", "street", "error", "log_loss"} <= set(scores.frame().columns)
    played = p.match(bundle.agent(mode="argmax"), "@call", hands=200)
    assert played.hands == 200
    assert played.frame()["mbb_per_hand"].sum() == pytest.approx(0)
    for shown in (made, bundle, scores, played):
        assert len(repr(shown)) < 300
        assert "\n" not in repr(shown)


@pytest.fixture(scope="module")
def copy(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> p.OpenBundle:
    out = tmp_path_factory.mktemp("copy") / "copy"
    return p.train(rows, out, agent="chump-gambler", algorithm="frequency", workers=1).bundle()


def test_a_bundle_is_an_agent_wherever_an_agents_name_may_stand(copy: p.OpenBundle, rows: Path, tmp_path: Path) -> None:
    name = str(copy.path)
    assert p.match(copy, "@call", hands=100).payoffs.tolist() == p.match(name, "@call", hands=100).payoffs.tolist()
    assert set(p.tournament("@call", copy, hands=100).frame()["agent"]) == {"copy", "call"}
    assert p.predict(copy, FLOP) == p.predict([name], FLOP)
    assert p.evaluate(rows, copy).frame().equals(p.evaluate(rows, name).frame())
    judged = p.identify(rows.parent / "logs", copy, "@call", player="chump-gambler")[0]
    assert judged == p.identify(rows.parent / "logs", name, "@call", player="chump-gambler")[0]
    assert p.ship(copy, tmp_path / "bot.zip").is_file()
    assert p.describe(copy)["agents"] == ["chump-gambler"]
    assert p.agent(copy).name == copy.name == "copy"
    row = p.load(rows, street="flop").rows[:5]
    assert (copy.probabilities(row) == p.agent(name).probabilities(row)).all()


def test_any_object_that_plays_is_scored_and_a_bundle_with_options_is_named_by_its_path(
    copy: p.OpenBundle, rows: Path
) -> None:
    by_object = p.evaluate(rows, p.agent("@call"), agent="chump-rock").frame()
    by_name = p.evaluate(rows, "@call", agent="chump-rock").frame()
    assert by_object["model"].iloc[0] == "call"
    assert by_object["log_loss"].tolist() == by_name["log_loss"].tolist()
    with pytest.raises(p.PipelineError, match="name the bundle's path"):
        p.evaluate(rows, copy.agent(mode="argmax"))
    with pytest.raises(p.PipelineError, match="plays leduc"):
        p.evaluate(rows, p.agent("@call", "leduc.limit.2p"), agent="chump-rock")


def test_a_solution_and_a_counter_to_it_sit_at_a_table(tmp_path: Path) -> None:
    solution = p.solve("kuhn.limit.2p", iterations=2_000)
    game = solution.game
    even = p.match(solution.agent(), "@teacher", game=game, hands=20_000, seed=1)
    assert abs(even.adjusted_mbb_per_hand()) < 5 + even.adjusted_ci95()
    counter = p.counter(tmp_path / "counter", against="@call", game=game, method="best")
    won = p.match(counter, "@call", game=game, hands=4_000).adjusted_mbb_per_hand()
    assert won == pytest.approx(counter.counter.tradeoff.winnings, abs=30)
    assert won == pytest.approx(p.exploit("@call", game=game).exploitability, abs=30)
    assert counter.frame()["chosen"].sum() == 1
    assert p.match(counter.agent(), "@call", hands=100).names == ("counter", "call")
    with pytest.raises(p.PipelineError, match="name the opponent"):
        p.counter(tmp_path / "none")


def test_profiles_scores_samples_and_exports_are_those_of_the_command_line(rows: Path, tmp_path: Path) -> None:
    def printed(*words: str) -> list[dict]:
        return json.loads(CliRunner().invoke(group, [*words, "--json"]).stdout)

    profiles = p.profile(rows)
    assert json.loads(json.dumps([one.json() for one in profiles])) == printed("profile", "--data", str(rows))
    assert profiles.frame()["agent"].tolist() == [one.agent for one in profiles]
    scores = p.score(rows)
    assert [(one.agent, one.winnings) for one in scores] == [
        (one.agent, one.winnings) for one in p.score([rows.parent / "logs"])
    ]
    made = p.sample(tmp_path / "logs", "@call", "@raise", hands=40)
    assert made.hands == 40
    assert (tmp_path / "logs" / "sample.probs.parquet").is_file()
    assert p.export(rows, tmp_path / "hands.phhs", form="phh").hands == 400


def test_every_cell_of_every_frame_is_flat(copy: p.OpenBundle, rows: Path, tmp_path: Path) -> None:
    trained = p.train(rows, tmp_path / "blend", agent="chump-gambler", street="flop", max_iterations=3, rounds=3)
    results = [
        p.ingest(rows.parent / "logs", tmp_path / "rows", strength=False),
        p.load(rows),
        p.chart(rows, "chump-rock"),
        trained,
        copy,
        p.evaluate(rows, copy, "@call", agent=["chump-gambler", "chump-rock"]),
        p.match(copy, "@call", hands=20),
        p.tournament(copy, "@call", hands=20),
        p.identify(rows, "@chump:rock", "@chump:gambler"),
        p.profile(rows, by="position"),
        p.score(rows),
        p.solve("leduc.limit.2p", iterations=5),
        p.query(rows, "SELECT agent, count(*) AS n FROM decisions GROUP BY ALL"),
    ]
    for result in results:
        frame = result.frame()
        assert len(frame) > 0, result
        nested = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, (dict, list, tuple))).any()]
        assert nested == [], result
    assert any(name.startswith("parts_log_loss_") for name in trained.frame())


def test_what_python_shows_fits_in_a_line() -> None:
    from pipeline.features.patterns import find_pattern
    from pipeline.training.requests import Request

    bundle = p.load_bundle(FIXTURE)
    shown = [bundle, *bundle.parts, bundle.chart, find_pattern("default"), Request(Path("a"), Path("b"))]
    for one in (*shown, p.solve("kuhn.limit.2p", iterations=5), p.tournament("@call", "@fold", hands=20)):
        assert len(repr(one)) < 250, type(one)
        assert "\n" not in repr(one)


def test_an_option_that_train_does_not_have_is_named(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="patiense"):
        p.train(rows, tmp_path / "copy", patiense=3)


def test_a_bundle_says_which_street_it_lacks() -> None:
    bundle = p.load_bundle(FIXTURE)
    assert sum(bundle.predict(FLOP).values()) == pytest.approx(1)
    with pytest.raises(p.PipelineError, match="turn"):
        bundle.predict("MATCHSTATE:0:0:rc/cc/:9cKc|/6dJs5c/2c")


def test_an_object_with_probabilities_plays() -> None:
    class Caller:
        name = "caller"
        game = p.find_game("holdem.limit.2p.reverse_blinds")

        def probabilities(self, rows: np.ndarray) -> np.ndarray:
            mix = np.zeros((len(rows), 3))
            mix[:, 1] = 1
            return mix

    assert p.match(Caller(), "@call", hands=100).mbb_per_hand() == 0
    assert set(p.tournament(Caller(), "@fold", hands=100).frame()["agent"]) == {"fold", "caller"}


def test_hand_strength_refuses_what_is_no_hand() -> None:
    assert p.hand_strength("AsAh").equity == pytest.approx(0.852, abs=5e-4)
    for hole, board in (("As", ""), ("AsAs", ""), ("AsAh", "2c3c"), ("AsAh", "As2c3c")):
        with pytest.raises(p.PipelineError):
            p.hand_strength(hole, board)


def test_the_public_face_is_typed(tmp_path: Path) -> None:
    script = tmp_path / "typed.py"
    lines = (ROOT / "tests" / "api" / "consumer.py").read_text(encoding="utf-8").splitlines()
    wrong = ["    wrong: str = p.match('@call', '@raise').hands", "    p.train('rows', 'out', patiense=3)"]
    script.write_text("\n".join([*lines, *wrong]) + "\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    errors = [line.split(": error")[0] for line in done.stdout.splitlines() if "typed.py" in line and ": error" in line]
    assert errors == [f"{script}:{len(lines) + number}" for number in (1, 2)], done.stdout


@pytest.mark.parametrize("adjusted", [True, False])
def test_a_tournament_in_python_is_that_of_the_command_line(adjusted: bool) -> None:
    agents = ("@equity", "@call", "@raise")
    words = ["tournament", *agents, "--hands", "200", "--seed", "3", "--json", *([] if adjusted else ["--no-adjusted"])]
    told = json.loads(CliRunner().invoke(group, words).stdout)
    found = p.tournament(*agents, hands=200, seed=3, adjusted=adjusted)
    standings = [(one.name, one.won.low, one.won.value) for one in found.total_bankroll.standings]
    assert standings == [
        (one["agent"], one["capped_interval"][0], one["capped_mbb_per_hand"])
        for one in told["total_bankroll"]["standings"]
    ]


def test_players_are_held_out_in_python_too(rows: Path, tmp_path: Path) -> None:
    p.ingest(rows.parent / "logs", tmp_path / "rows", hold_out="players", strength=False)
    found = p.load(tmp_path / "rows")
    assert all(len(set(found.validation[found.agent == number])) == 1 for number in range(len(found.agents)))


def test_results_are_drawn_for_papers_with_the_same_bytes_each_time(
    copy: p.OpenBundle, rows: Path, tmp_path: Path
) -> None:
    from pipeline.runtime.pictures import save

    evaluation = p.evaluate(rows, copy)
    texts = [axes.get_ylabel() for axes in evaluation.plot().axes]
    assert texts[:2] == ["argmax error, %", "log-loss, nats"]
    for result in (evaluation, p.chart(rows), p.match(copy, "@call", hands=40), p.tournament(copy, "@call", hands=40)):
        assert result.plot()._repr_png_().startswith(b"\x89PNG")
    for kind, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        words = ["evaluate", "--data", str(rows), str(copy.path), "--picture", str(tmp_path / f"a.{kind}")]
        assert CliRunner().invoke(group, words).exit_code == 0
        save(evaluation.plot(), tmp_path / f"b.{kind}")
        assert (tmp_path / f"a.{kind}").read_bytes().startswith(start)
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    refused = CliRunner().invoke(group, [*words[:-1], str(tmp_path / "a.gif")])
    assert refused.exit_code != 0
    assert not (tmp_path / "a.gif").exists()
