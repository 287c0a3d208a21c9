"""Inner rows: how training rows are divided to choose on, and that validation rows choose nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from played_histories import random_history
from training_rows import decisions

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.dataset.load import load_decisions, select_rows
from pipeline.features.patterns import parse_pattern
from pipeline.formats.histories.notation import histories_text
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import ModelPrior
from pipeline.poker.game import builtin, find_game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import hash_name
from pipeline.runtime.progress import Callbacks, Step
from pipeline.training import inner, streets, tasks
from pipeline.training.config import LENGTHS, TrainConfig
from pipeline.training.inner import InnerSplit, choose_inner, count_inner, hash_groups, split_inner
from pipeline.training.loop import Context, discard_checkpoint
from pipeline.training.requests import Request
from pipeline.training.rows import LEAST_PLAYERS, read_examples
from pipeline.training.run import train_bundles, train_text
from pipeline.training.tasks import Corpora, Examples, Task
from pipeline.training.trainers import ALGORITHMS, check_settings, train_model

BETTING = parse_pattern("legal\nbetting")


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    """Hands of sixty people, one in ten of whom is held out."""
    folder = tmp_path_factory.mktemp("people")
    hands = [random_history(number, 0.0) for number in range(300)]
    hands = [
        replace(hand, players=tuple(f"player {(number * 7 + p) % 60}" for p in range(hand.count)), hand=str(number))
        for number, hand in enumerate(hands)
        if hand.nolimit
    ]
    (folder / "all.phhs").write_text("".join(histories_text(hands)))
    ingest([folder / "all.phhs"], folder / "rows", options(strength=False, hold_out="players"))
    return folder / "rows"


def test_inner_rows_are_those_of_whole_players_where_players_are_held_out(people):
    """Choices would else be made on players that the model has seen, and be scored on players that it has not."""
    train, _ = read_examples(select_rows(people, None, ["preflop"]), (0,), BETTING)
    known = load_decisions(people, None, ["preflop"], "train")
    rows_of_player = {hash_name(name): int((known.agent == at).sum()) for at, name in enumerate(known.agents)}
    inner = choose_inner(train.groups)
    sides = [
        {player: int((train.groups[side] == player).sum()) for player in rows_of_player} for side in (inner, ~inner)
    ]
    for player, rows in rows_of_player.items():
        assert sorted(side[player] for side in sides) == [0, rows]
    assert 0 < inner.sum() < len(inner)


def test_inner_rows_of_few_players_are_chosen_by_deal(people):
    known = load_decisions(people)
    some = known.agents[: LEAST_PLAYERS - 1]
    train, validation = read_examples(select_rows(people, some, ["preflop"]), (0,), BETTING)
    deals = load_decisions(people, some, ["preflop"]).deal
    assert set(train.groups.tolist()) | set(validation.groups.tolist()) == set(deals.tolist())


def test_ten_groups_are_enough_to_hold_one_out_and_rows_in_parts_are_divided_alike():
    for seed in range(20):
        group = np.random.default_rng(seed).integers(1 << 60, size=12).astype(np.uint64).repeat(3)
        inner = choose_inner(group, 20)
        assert 0 < inner.sum() < len(group)
        assert (inner.reshape(-1, 3) == inner.reshape(-1, 3)[:, :1]).all()
        numbers = hash_groups(group)
        split = split_inner([count_inner(numbers[:30]), count_inner(numbers[30:])], 20)
        assert isinstance(split, InnerSplit)
        assert (split.chosen(numbers) == inner).all()
    assert not choose_inner(np.zeros(5)).any()


def flop_task(*, patience: int | None = None, **settings: Any) -> Task:
    """Flop decisions of a player who often raises high cards, with features enough to learn them by heart."""
    game, rows, labels, hand = decisions(300)
    flop = rows["street"] == 1
    rows, labels, hand = rows[flop], labels[flop], hand[flop]
    raised = (rows["high"] > 8) & (rows["legal"] & 4 > 0) & (np.random.default_rng(0).random(len(rows)) < 0.9)
    labels = np.where(raised, 2, labels).astype(np.uint8)
    cut = int(0.8 * len(rows))
    sides = [Examples(rows[part], labels[part], hand[part]) for part in (slice(cut), slice(cut, None))]
    pattern = parse_pattern("[rho1 = 0, rho2 = 0.01]\nbetting * high * low\nhigh * low")
    config = TrainConfig(patience=patience, min_weight=0, **settings)
    return Task(*sides, pattern, tuple(game.labels), (1,), config)


def with_other_validation(task: Task) -> Task:
    """The task with validation rows on which every action taken is another one."""
    assert task.validation is not None
    others = replace(task.validation, targets=np.where(task.validation.legal & 4, 2, 1).astype(np.uint8))
    return replace(task, validation=others)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_validation_rows_decide_nothing_about_a_model(algorithm):
    task = flop_task(**dict.fromkeys(LENGTHS, 30 if ALGORITHMS[algorithm].chooses else 3))
    if algorithm == "classes":
        task = replace(task, examples=task.examples.subset((task.examples.rows["hole"] < 52).all(axis=1)))
    one, other = (train_model(algorithm, some) for some in (task, with_other_validation(task)))
    assert one.log_loss != other.log_loss
    first, second = one.model.to_arrays(), other.model.to_arrays()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    if ALGORITHMS[algorithm].chooses:
        assert one.kept_iteration is not None
        assert one.kept_iteration < 30
        assert one.inner_rows == int(choose_inner(task.examples.groups).sum())


@pytest.mark.parametrize("patience", [None, 3])
def test_validation_rows_decide_nothing_against_priors_either(patience):
    uniform = LogLinear.of(*(lambda prepared: (prepared.features, prepared.keys))(Corpora(flop_task(), [False]).get()),
                           np.zeros((len(Corpora(flop_task(), [False]).get().keys), 3)))  # fmt: skip
    task = replace(flop_task(patience=patience, max_iterations=30), priors=(ModelPrior("nothing", {1: uniform}),))
    one, other = (train_model("l-bfgs", some) for some in (task, with_other_validation(task)))
    rows = task.examples.rows
    assert np.array_equal(one.model.predict(rows), other.model.predict(rows))
    assert (one.inner_rows > 0) == (patience is not None)
    assert task.priors[0].predict(rows[:0]).shape == (0, 3)


def test_all_rows_are_learned_from_once_the_inner_ones_have_chosen():
    task = flop_task()
    found = train_model("l-bfgs", task)
    length = {"max_iterations": found.kept_iteration, "patience": 0}
    whole = train_model("l-bfgs", replace(task, config=replace(task.config, **length)))
    assert np.array_equal(found.model.weights, whole.model.weights)
    assert (found.best_log_loss, whole.best_log_loss, whole.inner_rows) == (pytest.approx(1, abs=0.6), None, 0)


def test_a_training_killed_in_its_second_fit_goes_on_there(tmp_path):
    task = flop_task(checkpoint_seconds=0)
    undisturbed = train_model("rprop", task)
    steps: list[Step] = []

    def kill(street: str, algorithm: str, step: Step) -> None:
        steps.append(step)
        if step.log_loss is None and step.iteration == 3:
            raise SystemError("killed")

    checkpoint = tmp_path / "state"
    with pytest.raises(SystemError, match="killed"):
        train_model("rprop", task, context=Context(Callbacks(kill), checkpoint=checkpoint))
    first = len(steps) - 3
    assert first > undisturbed.kept_iteration
    resumed: list[Step] = []
    watched = Context(Callbacks(lambda street, algorithm, step: resumed.append(step)), checkpoint=checkpoint)
    found = train_model("rprop", task, context=watched)
    again = [step.iteration for step in resumed if step.log_loss is None]
    assert again == list(range(3, undisturbed.kept_iteration + 1))
    assert len(resumed) - len(again) <= 1
    assert np.array_equal(found.model.weights, undisturbed.model.weights)
    discard_checkpoint(checkpoint)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def matches(tmp_path_factory) -> Path:
    """Rows of two agents in a dataset of several parts."""
    folder = tmp_path_factory.mktemp("matches")
    game = find_game("holdem.limit.2p.reverse_blinds")
    agents = [resolve("@chump:maniac", game), resolve("@random", game)]
    for seed in range(3):
        play_match(agents, game, hands=300, seed=seed, workers=1, log=folder / "logs" / f"m{seed}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("pipeline.ingestion.plan"), "SMALLEST", 10_000)
        patch.setattr(import_module("pipeline.ingestion.plan"), "LARGEST", 20_000)
        ingest([folder / "logs"], folder / "rows", options(strength=False))
    return folder / "rows"


@pytest.mark.parametrize("retrained_rows", [0, 100_000])
@pytest.mark.parametrize("algorithm", ["rprop", "sgd-l1"])
def test_rows_in_parts_choose_as_rows_in_memory(algorithm, retrained_rows, matches, tmp_path, monkeypatch):
    for module in (tasks, streets, inner):
        monkeypatch.setattr(module, "RETRAINED_ROWS", retrained_rows)
    pattern = parse_pattern("[rho1 = 0.01, rho2 = 0.01]\nbetting * high * low\nhigh * low")
    found = {}
    for part_rows in (10**6, 100):
        config = TrainConfig(part_rows=part_rows, max_iterations=30)
        wanted = Request(matches, tmp_path / "b", ("random",), ("flop",), (algorithm,), pattern, config=config)
        game = find_game("holdem.limit.2p.reverse_blinds")
        opened = streets.OpenRequest(replace(wanted, game=game.name), game, (), Context())
        openings = {"in parts": streets._open_parts(opened, "flop", (1,)),
                    "in memory": streets._open_whole(opened, "flop", (1,), [algorithm])}  # fmt: skip
        for name, opening in openings.items():
            with opening as street:
                found[part_rows, name] = train_model(algorithm, street.task, street.corpora)
    one, whole, several = found[10**6, "in parts"], found[10**6, "in memory"], found[100, "in parts"]
    assert np.array_equal(one.model.weights, whole.model.weights)
    assert one._replace(model=None) == whole._replace(model=None)
    assert several.inner_rows == whole.inner_rows > 0
    assert whole.kept_iteration < 30
    if algorithm == "rprop":
        assert several.best_log_loss == pytest.approx(whole.best_log_loss, abs=1e-6)
        assert several.log_loss == pytest.approx(whole.log_loss, abs=1e-6)


def test_text_rows_choose_on_inner_rows_where_patience_is_asked_for(tmp_path):
    luck = np.random.default_rng(0)
    lines = [f"{luck.integers(30)} {luck.integers(30)} {'fcr'[luck.integers(3)]}" for _ in range(600)]
    (tmp_path / "train.txt").write_text("\n\n".join(lines) + "\n")
    pattern = parse_pattern("U:%x[0,0]/%x[0,1]\nU:%x[0,0]")
    found = {}
    for name, action in (("even", "f"), ("odd", "c")):
        (tmp_path / name).write_text(f"1 2 {action}\n\n3 4 r\n")
        for patience in (None, 3):
            config = TrainConfig(rho1=0.0, patience=patience)
            wanted = Request(tmp_path / "train.txt", tmp_path / f"{name}{patience}", algorithms=("l-bfgs",),
                             pattern=pattern, validation_file=tmp_path / name, config=config)  # fmt: skip
            found[name, patience] = train_text(wanted)[0].trained
    for patience, some in ((None, 0), (3, 1)):
        one, other = found["even", patience], found["odd", patience]
        assert np.array_equal(one.model.weights, other.model.weights)
        assert one.log_loss != other.log_loss
        assert (one.inner_rows > 0) == (some > 0)


def test_how_long_is_trained_has_a_name_for_each_algorithm_and_is_refused_elsewhere(matches, tmp_path):
    wanted = Request(matches, tmp_path / "b", ("random",), ("flop",), ("frequency",), BETTING)
    for length, algorithm in (("max_iterations", "frequency"), ("rounds", "l-bfgs"), ("passes", "boosting")):
        config = TrainConfig(**{length: 2})
        with pytest.raises(PipelineError, match=f"there is no --{length.replace('_', '-')} to set"):
            train_bundles(replace(wanted, algorithms=(algorithm,), config=config))
    (boosted,) = train_bundles(replace(wanted, algorithms=("boosting",), config=TrainConfig(rounds=3)))
    assert boosted.trained.iterations <= 3
    old = {"iterations": 7, "rho1": 0.1}
    assert TrainConfig.from_json(old, "l-bfgs") == TrainConfig(rho1=0.1, max_iterations=7)
    for number in (0, 2.5, True, "5"):
        with pytest.raises(PipelineError, match="is not a whole number of 1 or more"):
            TrainConfig(**{length: number})
    assert TrainConfig.from_json(old, "blend") == TrainConfig(rho1=0.1, max_iterations=7, rounds=7, passes=7)
    assert TrainConfig.from_json(old, "majority") == TrainConfig(rho1=0.1)


@pytest.mark.parametrize(
    ("algorithm", "setting"),
    [("boosting", name) for name in ("rho1", "rho2", "tolerance", "patience", "min_weight")]
    + [("crf", "tolerance"), ("logistic", "rho1"), ("classes", "patience"), ("frequency", "min_weight")],
)
def test_settings_that_no_algorithm_reads_are_refused(algorithm: str, setting: str, matches, tmp_path) -> None:
    config = TrainConfig(**{setting: 3})
    wanted = Request(matches, tmp_path / "b", ("random",), ("flop",), (algorithm,), BETTING, config=config)
    with pytest.raises(PipelineError, match=f"{algorithm}: there is no --{setting.replace('_', '-')} to set"):
        train_bundles(wanted)
    check_settings([algorithm, "rprop"], config, builtin("kuhn.limit.2p"), BETTING)


def test_settings_are_refused_where_the_game_or_the_pattern_leaves_them_without_use() -> None:
    limit, *others = map(
        builtin, ("holdem.limit.2p.reverse_blinds", "holdem.nolimit.2p.reverse_blinds", "holdem.limit.3p")
    )
    passes, penalty = TrainConfig(passes=3), TrainConfig(rho1=0.1)
    check_settings(["blend"], passes, limit, BETTING)
    for game in others:
        with pytest.raises(PipelineError, match=r"no --passes to set .blend has no classes in this game"):
            check_settings(["blend"], passes, game, BETTING)
        check_settings(["blend", "classes"], passes, game, BETTING)
    own = parse_pattern("[rho1 = 0]\nbetting\nhigh * low")
    with pytest.raises(PipelineError, match=r"no --rho1 to set .each template of the pattern sets it"):
        check_settings(["l-bfgs", "blend"], penalty, limit, own)
    check_settings(["l-bfgs"], penalty, limit, parse_pattern("high\n[rho1 = 0]\nbetting"))
    check_settings(["l-bfgs"], TrainConfig(rho2=1.0), limit, own)


def test_an_algorithm_whose_package_is_missing_is_refused_before_any_work(matches, tmp_path, monkeypatch):
    """The blend once left trees out without a remark: other bytes from the same rows and seed."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(PipelineError, match=r"blend: .*lightgbm.*pip install .*\[train\]'.*l-bfgs"):
        train_bundles(Request(matches, tmp_path / "b", ("random",)))
    assert list(tmp_path.iterdir()) == []
