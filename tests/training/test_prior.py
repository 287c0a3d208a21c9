"""Training against priors: strengths that are recovered, priors that mislead, gradients, bytes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from training_rows import decisions

import pipeline as p
from pipeline.agents.names import resolve
from pipeline.features.patterns import parse_pattern
from pipeline.models.bundle import load_bundle
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import AgentPrior, ModelPrior, PriorTimesFeatures, prior_logs
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import hash64
from pipeline.runtime.parallel import Workers
from pipeline.training.config import TrainConfig
from pipeline.training.inner import LEAST_GROUPS
from pipeline.training.prior import (
    FIXED,
    Choice,
    PriorScoredRows,
    choose_penalties,
    prior_problem,
    prior_rows,
    with_cells,
)
from pipeline.training.tasks import Corpora, Examples, Task, encode, penalties
from pipeline.training.trainers import train_model

PATTERN = parse_pattern("[rho1 = 0, rho2 = 2]\nbetting\nhigh * low\n")


@dataclass(frozen=True)
class Made:
    """A mix that a hash of each situation gives, between almost pure and even."""

    name: str
    seed: int
    digest: str = "made"

    def predict(self, rows: Any) -> NDArray[np.float64]:
        words = rows["betting_codes"][np.arange(len(rows)), rows["street"].astype(int)]
        keys = words * 1000 + rows["high"].astype(int) * 13 + rows["low"] + self.seed * 10_000_019
        seeds = np.array([int(hash64(np.uint64(key))) for key in keys], np.uint64)
        tilt = (seeds[:, None] >> np.array([0, 20, 40], np.uint64) & np.uint64(0xFFFF)) / 65536
        chances = np.exp(3 * tilt) * ((rows["legal"][:, None] >> np.arange(3)) & 1)
        return chances / chances.sum(axis=1, keepdims=True)


def examples(source: Made, hands: int, seed: int) -> Examples:
    """Decisions in which a source chose what to do."""
    _, rows, _, hand = decisions(hands, seed=seed)
    rows, hand = rows[rows["street"] == 1], hand[rows["street"] == 1]
    chances = source.predict(rows)
    luck = np.random.default_rng(seed).random(len(rows))
    taken = (luck[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    return Examples(rows, np.minimum(taken, 2).astype(np.uint8), hand)


def task(source: Made, *priors: Made, hands: int = 1500) -> Task:
    config = TrainConfig(patience=0)
    return Task(
        examples(source, hands, 1), examples(source, 300, 2), PATTERN, ("f", "c", "r"), (1,), config, priors=priors
    )


def test_a_prior_of_the_true_strategy_is_recovered_with_strength_one_and_no_weights() -> None:
    truth = Made("truth", 1)
    found = train_model("l-bfgs", task(truth, truth))
    assert isinstance(found.model, PriorTimesFeatures)
    assert found.priors[0]["strength"] == pytest.approx(1, abs=0.05)
    assert np.abs(found.model.own.weights).max(initial=0) < 0.15
    rows = examples(truth, 300, 2).rows
    assert found.model.predict(rows) == pytest.approx(truth.predict(rows), abs=0.04)
    here = task(truth, truth)
    taught = Examples(here.examples.rows, truth.predict(here.examples.rows), here.examples.hand)  # without any luck
    found = train_model("l-bfgs", replace(here, examples=taught))
    assert found.priors[0]["strength"] == pytest.approx(1, abs=1e-3)
    assert isinstance(found.model, PriorTimesFeatures)
    assert len(found.model.own.weights) == 0


def test_a_misleading_prior_gets_strength_zero_and_is_left_out() -> None:
    truth, other = Made("truth", 1), Made("other", 2)
    plain = train_model("l-bfgs", task(truth))
    found = train_model("l-bfgs", task(truth, other))
    assert found.priors[0]["strength"] < 0.08
    assert found.log_loss is not None
    assert plain.log_loss is not None
    assert found.log_loss < plain.log_loss + 0.005
    both = train_model("l-bfgs", task(truth, other, truth))
    assert [one["strength"] for one in both.priors] == pytest.approx([0, 1], abs=0.06)


def test_few_rows_and_a_good_prior_beat_the_rows_and_the_prior_alone() -> None:
    """The source is the prior with one habit of its own."""

    @dataclass(frozen=True)
    class Habit(Made):
        def predict(self, rows: Any) -> NDArray[np.float64]:
            chances = super().predict(rows) * np.array([1, 1, 3.0])
            return chances / chances.sum(axis=1, keepdims=True)

    base, habit = Made("base", 3), Habit("habit", 3)
    held = examples(habit, 1000, 5)
    few = Task(examples(habit, 60, 4), held, PATTERN, ("f", "c", "r"), (1,), TrainConfig())
    rows = train_model("l-bfgs", few).log_loss
    offset = train_model("l-bfgs", Task(**{**vars(few), "priors": (base,)})).log_loss
    chances = base.predict(held.rows)
    alone = -np.log(np.maximum(chances[np.arange(len(held)), held.targets], 0.001)).mean()
    assert rows is not None
    assert offset is not None
    assert offset < min(rows, alone) - 0.005


@pytest.mark.parametrize("by", ["street", "betting"])
def test_the_gradient_is_that_of_finite_differences(by: str) -> None:
    truth = Made("truth", 1)
    here = task(truth, Made("one", 1), Made("two", 2), hands=60)
    encoded = encode(here, here.pattern)
    offsets = prior_rows(here.priors, here.examples.rows, here.examples.legal)
    rho = penalties(encoded.features, np.zeros(len(encoded.keys), int), here.config)
    problem = prior_problem(encoded, offsets, rho, labels=3, workers=Workers(1), choice=Choice(2.0, by))
    luck = np.random.default_rng(0)
    point = luck.normal(scale=0.1, size=problem.shape)
    point[len(encoded.keys) :, 1:] = 0
    free = problem.rho2 < 1e6
    point[~free] = 0
    _, gradient = problem.smooth(point)
    for feature in [*luck.choice(len(encoded.keys), 5), *np.flatnonzero(free)[-6:], len(encoded.keys) + 2]:
        step = np.zeros(problem.shape)
        step[feature, 0] = 1e-5
        slope = (problem.smooth(point + step)[0] - problem.smooth(point - step)[0]) / 2e-5
        assert gradient[feature, 0] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    ids = with_cells(encoded.ids, offsets, len(encoded.keys))
    scored = PriorScoredRows(ids, encoded.legal, encoded.targets, offsets).score(problem, point)
    penalty = 0.5 * float((problem.rho2[:, None] * point**2).sum())
    assert problem.smooth(point)[0] - penalty == pytest.approx(scored[1] * len(encoded.ids), rel=1e-4)


def test_where_there_is_nothing_to_learn_a_model_plays_its_prior() -> None:
    truth = Made("truth", 1)
    whole = task(truth, truth, hands=40)
    none = Examples(whole.examples.rows[:0], whole.examples.targets[:0], whole.examples.hand)
    same = Examples(whole.examples.rows[:9], np.ones(9, np.uint8), np.arange(9))
    for few in (none, same):
        found = train_model("l-bfgs", Task(**{**vars(whole), "examples": few}))
        assert found.model.predict(whole.examples.rows) == pytest.approx(truth.predict(whole.examples.rows), abs=0.002)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prior")
    p.match("@chump:maniac", "@call", hands=400, log=f"{folder}/logs/a")
    p.match("@chump:rock", "@call", hands=400, seed=2, log=f"{folder}/logs/b")
    p.match("@chump:gambler", "@call", hands=400, seed=3, log=f"{folder}/logs/c")
    p.ingest(folder / "logs", folder / "rows", strength=False)
    return folder / "rows"


@pytest.fixture(scope="module")
def population(rows: Path) -> Path:
    others = rows.parent / "others"
    p.train(rows, others, without=("chump-maniac", "chump-rock"), pattern="thesis", max_iterations=20)
    return others


def train(rows: Path, out: Path, *priors: object, **options: Any) -> p.Training:
    return p.train(rows, out, agent="chump-maniac", pattern="thesis", prior=[str(one) for one in priors], **options)


def test_a_bundle_takes_its_prior_along_and_gives_the_same_bytes(rows: Path, population: Path, tmp_path: Path) -> None:
    one, two = train(rows, tmp_path / "one", population), train(rows, tmp_path / "two", population)
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two")]
    assert files[0] == files[1]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files[0])
    told = one.results[0].to_json()["priors"][0]
    assert told["prior"] == str(population)
    assert 0 <= told["strength"] <= 3
    flop = p.load(rows, agent="chump-maniac", street="flop").rows
    trained = {result.street: result.trained.model for result in two.results}
    population.rename(population.with_name("gone"))  # the copy is whole
    try:
        opened = load_bundle(tmp_path / "one").models[1]
        assert opened.predict(flop) == pytest.approx(trained["flop"].predict(flop), abs=1e-6)
        assert p.match(str(tmp_path / "one"), "@call", hands=50).hands == 50
        assert p.ship(tmp_path / "one", tmp_path / "bot.zip").exists()
        assert p.match(str(tmp_path / "bot.zip"), "@call", hands=50).hands == 50
    finally:
        population.with_name("gone").rename(population)


def test_a_bundle_against_a_prior_can_be_the_prior_of_another(rows: Path, population: Path, tmp_path: Path) -> None:
    train(rows, tmp_path / "one", population, street="flop")
    (result,) = p.train(
        rows, tmp_path / "two", agent="chump-rock", pattern="thesis", street="flop", prior=str(tmp_path / "one")
    ).results
    flop = p.load(rows, agent="chump-rock", street="flop").rows
    opened = load_bundle(tmp_path / "two").models[1]
    assert opened.predict(flop) == pytest.approx(result.trained.model.predict(flop), abs=1e-6)


def test_a_built_in_agent_is_kept_by_name_and_by_what_it_answered(rows: Path, tmp_path: Path) -> None:
    train(rows, tmp_path / "one", "@chump:maniac", street="flop")
    bundle = load_bundle(tmp_path / "one")
    model = bundle.models[1]
    assert isinstance(model, PriorTimesFeatures)
    (prior,) = model.priors
    assert isinstance(prior, AgentPrior)
    flop = p.load(rows, agent="chump-maniac", street="flop").rows
    assert bundle.game is not None
    expected = resolve("@chump:maniac", bundle.game).probabilities(flop)
    assert prior.predict(flop) == pytest.approx(expected)
    changed = AgentPrior(prior.name, prior.game, prior.rows, 1 - prior.answers)
    with pytest.raises(PipelineError, match="answers otherwise"):
        changed.predict(flop)


def test_what_memory_held_between_fields_is_no_part_of_a_bundle() -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    rows = decisions(40, seed=1)[1]
    prior = AgentPrior.of("@call", game, rows)
    littered = np.full(len(prior.rows) * rows.itemsize, 255, np.uint8).view(rows.dtype)
    for field in rows.dtype.names:
        littered[field] = prior.rows[field]
    stored = AgentPrior("@call", game, littered, prior.answers).to_arrays()
    assert littered.tobytes() != prior.rows.tobytes()
    np.testing.assert_array_equal(stored["rows"], prior.to_arrays()["rows"])
    np.testing.assert_array_equal(AgentPrior.load(prior.to_json(), stored).rows, prior.rows)


def test_a_prior_says_the_same_of_every_label_where_it_knows_nothing() -> None:
    _, rows, _, _ = decisions(20)

    class Silent(Made):
        def predict(self, rows: Any) -> NDArray[np.float64]:
            return np.full((len(rows), 3), np.nan)

    logs = prior_logs(Silent("silent", 0), rows, rows["legal"])
    legal = (rows["legal"][:, None] >> np.arange(3)) & 1 == 1
    assert np.allclose(np.exp(logs)[legal], np.repeat(1 / legal.sum(axis=1), legal.sum(axis=1)))
    assert (logs[~legal] == 0).all()


@pytest.mark.parametrize(
    ("prior", "options", "message"),
    [
        ("@nobody", {}, "no built-in agent"),
        ("missing", {}, "there is no bundle"),
        ("exec:./bot.sh", {}, "cannot be a prior"),
        ("@call", {"algorithm": "boosting"}, "boosting cannot start from a prior"),
        ("@call", {"algorithm": "bcd"}, "bcd cannot start from a prior"),
    ],
)
def test_what_cannot_be_a_prior_is_said_in_a_sentence(
    prior: str, options: dict[str, Any], message: str, rows: Path, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=message):
        train(rows, tmp_path / "out", prior, **options)


def test_priors_that_are_none_are_refused_when_a_bundle_is_opened(rows: Path, population: Path, tmp_path: Path) -> None:
    train(rows, tmp_path / "one", population, street="flop")
    manifest = tmp_path / "one" / "manifest.json"
    whole = json.loads(manifest.read_text())
    model = next(one for one in whole["models"] if one["kind"] == "tilted")

    def refused(priors: Any, message: str) -> None:
        changed = dict(whole, models=[dict(one, priors=priors) if one is model else one for one in whole["models"]])
        manifest.write_text(json.dumps(changed))
        with pytest.raises(PipelineError, match=message):
            load_bundle(tmp_path / "one")

    refused([], "0 priors")
    refused(model["priors"] * 40, "priors")
    refused([dict(model["priors"][0], models=[])], "no model")
    refused([{"name": "python:x:y", "hash": "", "agent": whole["game"], "row": ""}], "no built-in agent|missing")
    deep: Any = model["priors"]
    for _ in range(8):
        deep = [dict(deep[0], models=[dict(model, priors=deep)])]
    refused(deep, "deep")


def test_models_and_features_of_a_tilted_model_are_shown(rows: Path, population: Path, tmp_path: Path) -> None:
    train(rows, tmp_path / "one", population, street="flop")
    model = load_bundle(tmp_path / "one").models[1]
    assert isinstance(model, PriorTimesFeatures)
    assert isinstance(model.own, LogLinear)
    assert isinstance(model.priors[0], ModelPrior)
    about = p.load_bundle(tmp_path / "one").frame()
    assert "tilted" in set(about["kind"])


def test_corpora_ask_a_prior_once_for_several_algorithms() -> None:
    truth = Made("truth", 1)
    here = task(truth, truth, hands=60)
    corpora = Corpora(here, [False])
    assert corpora.prior_predictions is not None
    one, two = (train_model(name, here, corpora) for name in ("l-bfgs", "rprop"))
    assert one.log_loss == pytest.approx(two.log_loss, abs=0.01)


def test_penalties_are_chosen_on_whole_groups() -> None:
    """Where players are held out, folds of a player's own hands would say how well a known player is followed."""
    here = task(Made("truth", 1), Made("other", 2), hands=300)
    encoded = encode(here, here.pattern)
    offsets = prior_rows(here.priors, here.examples.rows, here.examples.legal)
    rho = penalties(encoded.features, np.zeros(len(encoded.keys), int), here.config)
    chosen: dict[int, Choice] = {}
    for groups in (LEAST_GROUPS - 1, LEAST_GROUPS):
        group = np.arange(len(here.examples)) % groups
        chosen[groups] = choose_penalties(encoded, offsets, group, rho, labels=3, workers=Workers(1))
    assert chosen[LEAST_GROUPS - 1] == Choice(FIXED, "fixed")
    assert chosen[LEAST_GROUPS].log_loss is not None
    players = np.arange(len(here.examples), dtype=np.uint64) % np.uint64(LEAST_GROUPS - 1)
    few = replace(here, examples=replace(here.examples, group=players))
    predictions = Corpora(few, [False]).prior_predictions
    assert predictions is not None
    assert np.array_equal(predictions.group, players)
    assert train_model("l-bfgs", few).priors[0]["by"] == "fixed"
