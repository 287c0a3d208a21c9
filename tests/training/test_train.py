"""From logs to bundles that play, and the commands around it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions
from pipeline.features import reading
from pipeline.features.patterns import find_pattern, parse_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.models.charts import parse_chart
from pipeline.models.loglinear import LogLinear
from pipeline.poker.game import find_game
from pipeline.poker.strength.queries import find_strengths
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks
from pipeline.training.config import LENGTHS, TrainConfig
from pipeline.training.requests import Request, add_comparisons
from pipeline.training.run import FOLDS_EXPECTED, pattern_of_model, score_text, train_bundles, train_text
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import ALGORITHMS, train_model

THESIS = find_pattern("thesis")
SHORT = TrainConfig(max_iterations=8, patience=0, min_weight=0)


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    """Logs of two agents: one that raises as often as it can, one that rolls dice."""
    folder = tmp_path_factory.mktemp("logs")
    game = find_game("holdem.limit.2p.reverse_blinds")
    agents = [resolve("@chump:maniac", game), resolve("@random", game)]
    return play_match(agents, game, hands=600, seed=3, workers=1, log=folder / "m").logs


@pytest.fixture(scope="session")
def data(logs, tmp_path_factory):
    """The rows of these logs, without strengths."""
    folder = tmp_path_factory.mktemp("train")
    ingest(logs, folder / "rows", options(strength=False))
    return folder / "rows"


def request(data: Path, out: Path, **changes: object) -> Request:
    """A request for little work: each algorithm is limited by the settings that it reads."""
    algorithms = changes.get("algorithms", ("l-bfgs",))
    read = {setting for name in algorithms for setting in ALGORITHMS[name].settings}
    short = {**dict.fromkeys(LENGTHS, 8), "patience": 0, "min_weight": 0}
    config = TrainConfig(**{name: value for name, value in short.items() if name in read})
    return replace(Request(data, out, ("random",), pattern=THESIS, config=config), **changes)


def run(*arguments: object) -> tuple[int, str]:
    """A command's exit status and all it printed."""
    done = CliRunner().invoke(group, [str(argument) for argument in arguments])
    if isinstance(done.exception, PipelineError):
        return 1, str(done.exception)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_bundle_has_a_chart_and_a_model_per_later_street(data, tmp_path):
    results = train_bundles(request(data, tmp_path / "b"))
    bundle = load_bundle(tmp_path / "b")
    assert [part.name for part in bundle.parts] == ["chart", "flop", "turn", "river"]
    assert sorted(bundle.models) == [0, 1, 2, 3]
    assert bundle.agents == ("random",)
    assert [result.street for result in results] == ["flop", "turn", "river"]
    held = load_decisions(data, ["random"], ["flop"], "validation")
    assert results[0].validation_rows == len(held)
    chances = bundle.models[1].predict(held.rows)
    error = float((chances.argmax(axis=1) != held.action).mean())
    assert results[0].trained.error == pytest.approx(error)
    assert bundle.parts[1].about["error"] == results[0].trained.error
    assert (
        "betting" in (tmp_path / "b" / "flop.features.txt").read_text()
        or "word" in (tmp_path / "b" / "flop.features.txt").read_text()
    )


def test_one_model_for_all_streets_several_agents_and_several_algorithms(data, tmp_path):
    results = train_bundles(
        request(data, tmp_path / "b", agents=(), streets=("all", "preflop"), algorithms=("frequency", "crf", "rprop"))
    )
    assert [(r.street, r.algorithm) for r in results] == [
        (street, algorithm) for street in ("all", "preflop") for algorithm in ("frequency", "crf", "rprop")
    ]
    bundle = load_bundle(tmp_path / "b" / "crf")
    assert len(bundle.agents) == 2
    assert bundle.models[1] is bundle.models[3]
    assert bundle.models[0] is bundle.chart
    assert bundle.preflop_model is not bundle.chart
    assert results[0].rows == sum(
        len(load_decisions(data, None, [street], "train")) for street in ("flop", "turn", "river")
    )


def test_logs_of_hands_that_all_saw_a_flop_are_remarked_upon(logs, data, tmp_path):
    lines = [line for log in logs for line in Path(log).read_text().splitlines()]
    seen = [line for line in lines if line.startswith("#") or "/" in line.split(":")[2]]
    (tmp_path / "flops.log").write_text("\n".join(seen) + "\n")
    ingest([tmp_path / "flops.log"], tmp_path / "rows", options(strength=False))
    few = {"agents": (), "streets": ("flop",), "algorithms": ("majority",)}
    (cut,) = train_bundles(request(tmp_path / "rows", tmp_path / "cut", **few))
    (whole,) = train_bundles(request(data, tmp_path / "whole", **few))
    assert any("there is no fold" in remark and "saw one" in remark for remark in cut.remarks)
    assert not any("there is no fold" in remark for remark in whole.remarks)


def test_logs_of_leduc_without_folds_are_no_selection_of_hands(tmp_path):
    game = find_game("leduc.limit.2p")
    agents = [resolve("@call", game), resolve("@raise", game)]
    ingest(play_match(agents, game, hands=600, seed=1, workers=1, log=tmp_path / "m").logs, tmp_path / "rows")
    wanted = request(tmp_path / "rows", tmp_path / "b", agents=(), streets=("flop",), algorithms=("majority",))
    (result,) = train_bundles(replace(wanted, pattern=find_pattern("default")))
    assert len(load_decisions(tmp_path / "rows", None, ["preflop"], "train")) > FOLDS_EXPECTED
    assert not any("fold" in remark for remark in result.remarks)


def test_a_model_that_is_worse_than_counting_is_called_so(data, tmp_path):
    held_at_zero = {"pattern": parse_pattern("high"), "config": replace(SHORT, rho2=1e6)}
    (bad,) = train_bundles(request(data, tmp_path / "bad", agents=("chump-maniac",), streets=("flop",), **held_at_zero))
    assert bad.trained.log_loss > bad.baseline_log_loss
    assert any("worse than" in remark and "counting betting alone" in remark for remark in bad.remarks)
    sound = {"pattern": parse_pattern("legal\nraises"), "config": replace(SHORT, max_iterations=60)}
    wanted = request(data, tmp_path / "good", agents=("chump-maniac",), streets=("flop",), **sound)
    counted, good = train_bundles(replace(wanted, algorithms=("frequency", "l-bfgs")))
    assert counted.baseline_log_loss == pytest.approx(counted.trained.log_loss)
    assert not any("worse than" in remark for remark in (*counted.remarks, *good.remarks)), good
    few = ("--agent", "random", "--street", "flop", "--algorithm", "l-bfgs", "--out", tmp_path / "few")
    said = run("train", "--data", data, *few)[1]
    assert said.count("compare with `--algorithm boosting`") == 1
    assert re.search(r"flop: the max-ent weights are those of iteration \d+", said)


@pytest.mark.parametrize("algorithm", ["l-bfgs", "memm", "crf"])
def test_a_model_can_be_trained_again_from_its_bundle_alone(algorithm, data, tmp_path):
    """The pattern's own penalties and minimum were once lost, and the previous action came in twice."""
    pattern = parse_pattern("legal\n[rho1 = 0.25, rho2 = 3, minimum = 2]\nbetting\nhigh * low")
    wanted = request(data, tmp_path / "b", streets=("flop",), algorithms=(algorithm,), pattern=pattern)
    train_bundles(replace(wanted, config=replace(wanted.config, rho1=0.75)))
    part = load_bundle(tmp_path / "b").parts[1]
    kept = part.model.features.pattern.templates[1]
    assert (kept.rho1, kept.rho2, kept.minimum) == (0.25, 3.0, 2)
    known = load_decisions(data, ["random"], ["flop"], "train")
    examples = Examples(known.rows, known.action, known.file.astype(np.int64) << 32 | known.line)
    config = replace(TrainConfig.from_json(part.about["parameters"]), patience=0)
    assert config.rho1 == 0.75
    again = train_model(algorithm, Task(examples, None, pattern_of_model(part), tuple("fcr"), (1,), config)).model
    assert [t.name for t in again.features.pattern.templates] == [t.name for t in part.model.features.pattern.templates]
    assert again.predict(known.rows) == pytest.approx(part.model.predict(known.rows), abs=1e-6)


def test_results_and_requests_are_shown_in_a_line(data, tmp_path):
    wanted = request(str(data), str(tmp_path / "b"), streets=("turn",), algorithms=("majority",))
    (found,) = train_bundles(wanted)
    for shown in (wanted, found, load_bundle(tmp_path / "b")):
        assert len(repr(shown)) < 300
    assert wanted.out == tmp_path / "b"


def test_the_same_rows_give_the_same_bytes(data, tmp_path):
    for name in "ab":
        train_bundles(request(data, tmp_path / name, streets=("turn",), algorithms=("sgd-l1",)))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("algorithm", [*sorted({*ALGORITHMS} - {"majority", "frequency"})])
def test_stored_strengths_give_the_model_that_computing_them_gives(algorithm, logs, data, tmp_path, monkeypatch):
    """The same bytes, by any algorithm and on all streets together; strengths that are stored are not computed."""
    pattern = parse_pattern(
        "betting * ehs(quantiles=10)\nriver_octiles(4)\n[streets = river]\nochs(1, bins=9) * betting"
    )
    ingest(logs, tmp_path / "rows", options(strength=True))
    changes = {"algorithms": (algorithm,), "pattern": pattern, "streets": ("river",)}
    if algorithm == "l-bfgs":
        changes["streets"] = ("turn", "all")
    train_bundles(request(data, tmp_path / "computed", **changes))

    def before_the_flop(street: int, *cards: np.ndarray) -> np.ndarray:
        assert street == 0, "a stored strength is computed again"
        return find_strengths(street, *cards)

    monkeypatch.setattr(reading, "find_strengths", before_the_flop)
    train_bundles(request(tmp_path / "rows", tmp_path / "stored", **changes))
    computed, stored = contents(tmp_path / "computed"), contents(tmp_path / "stored")
    del computed["manifest.json"], stored["manifest.json"]  # it names the dataset
    assert stored == computed


def test_features_whose_weights_are_all_small_are_left_out(data, tmp_path):
    whole, less = (
        train_bundles(request(data, tmp_path / str(least), streets=("flop",), config=replace(SHORT, min_weight=least)))[
            0
        ]
        for least in (0.0, 0.1)
    )
    large = np.abs(whole.trained.model.weights).max(axis=1) >= 0.1
    assert 0 < large.sum() < len(large)
    assert np.array_equal(less.trained.model.keys, whole.trained.model.keys[large])
    assert np.array_equal(less.trained.model.weights, whole.trained.model.weights[large])


def test_ctrl_c_writes_the_best_so_far(data, tmp_path):
    def interrupt(street, algorithm, step):
        if step.iteration == 5 and street == "turn":
            raise KeyboardInterrupt

    results = train_bundles(request(data, tmp_path / "b"), Callbacks(interrupt))
    assert [result.trained.interrupted for result in results] == [False, True]
    bundle = load_bundle(tmp_path / "b")
    assert [part.name for part in bundle.parts] == ["chart", "flop", "turn"]
    assert bundle.parts[2].about["interrupted"]
    assert bundle.missing == ("turn", "river")
    for words in (
        ("ship", tmp_path / "b", "--out", tmp_path / "bot.zip"),
        ("evaluate", "--data", data, tmp_path / "b"),
    ):
        status, output = run(*words)
        assert status == 1
        assert "before the end of turn, river; run the same `train` command again" in output
    with pytest.raises(PipelineError, match="turn, river"):
        resolve(str(tmp_path / "b"), find_game("holdem.limit.2p.reverse_blinds"))
    train_bundles(request(data, tmp_path / "b"))
    train_bundles(request(data, tmp_path / "undisturbed"))
    assert contents(tmp_path / "b") == contents(tmp_path / "undisturbed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "undisturbed"]


def test_another_chart_can_be_taken(data, tmp_path):
    status, _ = run("show", "chart", "--data", data, "--agent", "chump-maniac", "--out", tmp_path / "c.txt")
    assert status == 0
    chart = parse_chart((tmp_path / "c.txt").read_text())
    train_bundles(request(data, tmp_path / "b", chart=tmp_path / "c.txt", streets=("turn",)))
    assert (load_bundle(tmp_path / "b").chart.counts == chart.counts).all()
    train_bundles(request(data, tmp_path / "d", chart=tmp_path / "b", streets=("turn",)))
    assert (load_bundle(tmp_path / "d").chart.counts == chart.counts).all()


@pytest.mark.parametrize("name", ["leduc.limit.2p", "kuhn.limit.2p"])
def test_train_without_options_learns_games_of_one_card(name, tmp_path):
    """The default pattern needs hold'em's strengths; in other games cards and betting take its place."""
    game = find_game(name)
    agents = [resolve("@equity", game), resolve("@random", game)]
    played = play_match(agents, game, hands=4000, seed=1, workers=1, log=tmp_path / "m")
    ingest(played.logs, tmp_path / "rows")
    code, output = run("train", "--data", tmp_path / "rows", "--agent", "equity", "--out", tmp_path / "copy", "--json")
    assert code == 0, output
    assert {part.name for part in load_bundle(tmp_path / "copy").parts} >= {STREETS[game.rounds - 1]}
    match = play_match([resolve(str(tmp_path / "copy"), game), agents[0]], game, hands=200, seed=2, workers=1)
    assert match.hands == 200
    rows = load_decisions(tmp_path / "rows", ["equity"], [STREETS[game.rounds - 1]], "validation")
    found = resolve(str(tmp_path / "copy"), game).probabilities(rows.rows)
    assert (found.argmax(axis=1) == rows.action).mean() > 0.9


def test_without_options_no_limit_gets_the_blend_and_the_bundle_says_so(tmp_path):
    game = find_game("holdem.nolimit.2p.reverse_blinds")
    agents = [resolve("@calibrated:70,70", game), resolve("@random", game)]
    played = play_match(agents, game, hands=1500, seed=1, workers=1, log=tmp_path / "m")
    ingest(played.logs, tmp_path / "rows", options(strength=False))
    wanted = ("train", "--data", tmp_path / "rows", "--agent", "random", "--street", "preflop", "--max-iterations", 5)
    code, output = run(*wanted, "--out", tmp_path / "copy", "--json")
    assert code == 0, output
    part = next(one for one in load_bundle(tmp_path / "copy").parts if one.name == "preflop")
    assert part.about["algorithm"] == "blend"
    assert part.about["pattern"] == find_pattern("nolimit").source
    assert part.about["parts_log_loss"].keys() == {"boosting", "l-bfgs"}
    grown = part.about["forests"]
    assert [forest["columns"] for forest in grown] == ["all", "few"]
    assert json.loads(output.splitlines()[-1])[0]["forests"] == grown
    code, output = run(*wanted, "--pattern", "thesis", "--out", tmp_path / "named", "--json")
    assert code == 0, output
    assert load_bundle(tmp_path / "named").parts[-1].about["algorithm"] == "l-bfgs"


def test_an_algorithm_that_was_clearly_better_is_named(data, tmp_path):
    pattern = parse_pattern("legal\nraises")
    wanted = request(data, tmp_path / "b", agents=("chump-maniac",), streets=("flop",), pattern=pattern)
    found = train_bundles(replace(wanted, algorithms=("l-bfgs", "rprop"), config=replace(SHORT, max_iterations=60)))
    (one,) = add_comparisons([replace(found[0], algorithm="bcd", trained=found[0].trained._replace(log_loss=9.0))])
    assert not one.remarks
    worse = replace(found[0], trained=found[0].trained._replace(log_loss=9.0))
    assert [len(result.remarks) for result in add_comparisons([worse, replace(found[1], remarks=())])] == [
        len(worse.remarks) + 1,
        0,
    ]
    assert "rprop was clearly better" in add_comparisons([worse, found[1]])[0].remarks[-1]


def test_the_default_pattern_trains_and_plays(data, tmp_path):
    train_bundles(request(data, tmp_path / "b", pattern=find_pattern("default"), streets=("river",)))
    river = load_decisions(data, ["random"], ["river"]).rows
    assert load_bundle(tmp_path / "b").models[3].predict(river).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": ("randon",)}, "did you mean random"),
        ({"streets": ("flopp",)}, "did you mean flop"),
        ({"algorithms": ("l-bgfs",)}, "did you mean l-bfgs"),
        ({"data": Path("/nowhere")}, "no dataset"),
        ({"chart": Path("/nowhere")}, "no chart"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(data, tmp_path, changes, message):
    with pytest.raises(PipelineError, match=message):
        train_bundles(replace(request(data, tmp_path / "b"), **changes))
    assert not (tmp_path / "b").exists()


def text_rows(path: Path, count: int, seed: int) -> Path:
    """Rows whose action follows the second column most of the time, two to a sequence."""
    luck = np.random.default_rng(seed)
    lines = []
    for at in range(count):
        value = luck.integers(0, 3)
        action = "fcr"[value] if luck.random() < 0.8 else "fcr"[luck.integers(0, 3)]
        lines.append(f"s v{value} w{luck.integers(0, 9)} {action}" + ("\n" if at % 2 else ""))
    path.write_text("\n".join(lines))
    return path


def test_text_rows_train_as_they_do_in_wapiti(tmp_path):
    train, devel = (text_rows(tmp_path / f"{name}.txt", 2000, seed) for name, seed in (("a", 1), ("b", 2)))
    pattern = parse_pattern("u1:%x[0,1]\nu2:%x[0,2]/%x[-1,1]\nb")
    found = train_text(
        Request(
            str(train),
            str(tmp_path / "m"),
            algorithms=("l-bfgs", "memm", "crf"),
            pattern=pattern,
            validation_file=devel,
        )
    )
    assert [result.algorithm for result in found] == ["l-bfgs", "memm", "crf"]
    for result in found:
        assert result.trained.error == pytest.approx(0.133, abs=0.02)
        assert result.validation_rows == 2000
    bundle = load_bundle(tmp_path / "m" / "l-bfgs")
    assert bundle.game is None
    status, output = run("evaluate", "--data", devel, tmp_path / "m" / "memm", "--json")
    assert status == 0
    (scored,) = json.loads(output.splitlines()[-1])
    assert scored["error"] == found[1].trained.error
    assert scored["rows"] == 2000
    assert "l-bfgs" in run("evaluate", "--data", devel, tmp_path / "m" / "l-bfgs")[1]
    assert isinstance(bundle.parts[0].model, LogLinear)
    assert scored["overlap"] == 0
    with pytest.raises(PipelineError, match=r"was trained on .*a\.txt: score it on other rows"):
        score_text(train, [tmp_path / "m" / "memm"])
    status, output = run("evaluate", "--data", train, tmp_path / "m" / "memm", "--allow-overlap")
    assert f"was trained on {train}." in output
    with pytest.raises(PipelineError, match="decision rows"):
        train_text(Request(train, tmp_path / "n", algorithms=("boosting",), pattern=pattern))
    with pytest.raises(PipelineError, match="neither agents nor streets"):
        train_text(Request(train, tmp_path / "n", agents=("x",), pattern=pattern))


def test_the_train_command_prints_json_and_a_line_per_iteration(data, tmp_path):
    status, output = run("train", "--data", data, "--agent", "random", "--street", "flop", "--algorithm", "rprop",
                         "--verbose", "--pattern", "thesis", "--max-iterations", 4, "--out", tmp_path / "b",
                         "--json")  # fmt: skip
    assert status == 0
    lines = output.splitlines()
    (found,) = json.loads(lines[-1])
    steps = [line for line in lines if line.startswith("flop rprop")]
    assert [" inner rows: error" in line for line in steps] == [True] * 4 + [False] * found["kept_iteration"]
    assert 0 < found["inner_rows"] < found["rows"]
    keys = "street algorithm agents rows validation_rows objective active error log_loss iterations seconds path"
    assert set(keys.split()) <= set(found)
    status, output = run("train", "--data", data, "--agent", "random", "--street", "flop", "--algorithm", "majority",
                         "--pattern", "thesis", "--out", tmp_path / "b")  # fmt: skip
    assert status == 0
    assert "majority" in output


def test_charts_features_and_shipping_have_commands(data, tmp_path):
    train_bundles(request(data, tmp_path / "b"))
    status, output = run("show", "chart", tmp_path / "b", "--after", "r")
    assert status == 0
    assert output.startswith("after raise (r):")
    state = "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c"
    status, output = run("show", "features", tmp_path / "b", state)
    assert status == 0
    assert "name=King High" in output
    status, output = run("show", "chart", tmp_path / "b", "--after", "x")
    assert status == 1
    status, output = run("ship", tmp_path / "b", "--out", tmp_path / "bot.zip")
    assert status == 0
    assert load_bundle(tmp_path / "bot.zip").models[2]


PLAY = """
import sys
from pathlib import Path
from pipeline.agents.names import resolve
from pipeline.dataset.decisions import observation
from pipeline.models.bundle import load_bundle
game = load_bundle(sys.argv[1]).game
agent = resolve(sys.argv[1], game)
for betting, board in (("r", []), ("rc/", [4, 5, 6]), ("rc/cc/", [4, 5, 6, 7]), ("rc/cc/cc/", [4, 5, 6, 7, 8])):
    assert abs(agent.probabilities(observation(game, betting, 0, [50, 51], board)).sum() - 1) < 1e-9
for name in ("scipy.sparse", "sklearn", "pandas", "pyarrow", "safetensors", "pycrfsuite", "lightgbm"):
    assert name not in sys.modules, name
"""


def test_a_shipped_bundle_plays_with_numpy_and_numba_alone(data, tmp_path):
    train_bundles(request(data, tmp_path / "b", pattern=parse_pattern("betting * ehs(bins=4)\ncluster(30)")))
    run("ship", tmp_path / "b", "--out", tmp_path / "bot.zip")
    done = subprocess.run(
        [sys.executable, "-c", PLAY, tmp_path / "bot.zip"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_existing_folder_that_is_no_bundle_is_not_replaced(data, tmp_path):
    out = shutil.copytree(data, tmp_path / "rows")
    with pytest.raises(PipelineError, match="is not a bundle"):
        train_bundles(request(data, out, streets=("turn",)))
    assert (out / "manifest.json").is_file()
