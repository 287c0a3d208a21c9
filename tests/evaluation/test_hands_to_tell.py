"""Hands to tell: the exact number of small games, sequential tests that stop after it, and the bound of two copies."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mixing_agents import Copy, Hashed
from sequential_tests import evidence_by_hand, run_sequential_tests

from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import observation
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.evaluation.findings import collect_findings
from pipeline.evaluation.hands_to_tell import (
    EVIDENCE,
    LEAST_EVIDENCE,
    bhattacharyya,
    dealt_hands,
    hands_to_tell,
    hands_to_tell_at_most,
)
from pipeline.evaluation.samples import DecisionSample, read_samples
from pipeline.evaluation.scoring import Candidate, score_all
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.measures import LEAST_PROBABILITY, row_measures
from pipeline.poker.game import Game, State, builtin
from pipeline.poker.rules import RAISE
from pipeline.report import tables
from pipeline.report.pages import build_page

GAMES = {"kuhn.limit.2p": 0.4, "leduc.limit.2p": 0.3, "holdem.limit.2p.reverse_blinds": 0.2}
"""games, and by how much the copy bends"""

NO_LIMIT = "holdem.nolimit.2p.reverse_blinds"


def self_play(folder: Path, agent: Agent, hands: int, seed: int = 0) -> DecisionSample:
    """The decisions of an agent in both seats, with its probabilities, of a dataset below `folder`."""
    match = play_match(
        [agent, agent], agent.game, hands=hands, seed=seed, log=folder / "logs" / "x", probabilities=True
    )
    ingest(match.logs, folder / "rows", options(aliases=[f"{match.names[1]}={match.names[0]}"], strength=False))
    [sample] = read_samples(folder / "rows", side=None, truths=[folder / "logs" / "x.probs.parquet"])
    return sample


def strategies(game: Game) -> tuple[Agent, Agent]:
    """A source and its copy."""
    source = resolve("@teacher", game) if game.is_holdem else Hashed(game)
    return source, Copy(source, Hashed(game, seed=1), GAMES[game.name])


def mix_after(agent: Agent, betting: str, position: int, hole: list[int], board: list[int]) -> Any:
    """What an agent plays at one decision."""
    return agent.probabilities(observation(agent.game, betting, position, hole, board))[0]


def kuhn_kl(source: Agent, copy: Agent, state: State, cards: tuple[int, int]) -> float:
    """KL from source to copy of both players' decisions from a state on, the source playing both."""
    if state.finished:
        return 0.0
    args = (state.betting, state.actor, [cards[state.actor]], [])
    q, p = mix_after(source, *args), mix_after(copy, *args)
    total = 0.0
    for label in np.flatnonzero(q):
        after = state.apply(int(label), 0) if label < RAISE else state.apply(RAISE)
        total += q[label] * (math.log(q[label] / p[label]) + kuhn_kl(source, copy, after, cards))
    return total


def test_in_kuhn_the_hands_are_those_of_the_whole_tree(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    source, copy = strategies(game)
    deals = list(itertools.permutations(game.deck.tolist(), 2))
    exact = sum(kuhn_kl(source, copy, game.start(), cards) for cards in deals) / len(deals) / 2
    sample = self_play(tmp_path, source, 20_000)
    kl = row_measures(copy.probabilities(sample.rows), sample.taken, sample.truth)["kl"]
    tell = hands_to_tell(kl, dealt_hands(tmp_path / "rows", sample, side=None))
    assert tell is not None
    assert tell.hands
    assert tell.low
    assert tell.high
    assert tell.seats == 40_000
    assert tell.low < tell.hands < tell.high
    assert tell.kl_per_hand.value == pytest.approx(exact, abs=1.5 * (tell.kl_per_hand.high - tell.kl_per_hand.low))
    assert tell.hands == pytest.approx(EVIDENCE / exact, rel=0.05)


@pytest.mark.parametrize("name", GAMES)
def test_sequential_tests_stop_after_about_that_many_hands_and_seldom_err(tmp_path: Path, name: str) -> None:
    source, copy = strategies(builtin(name))
    hands = 10_000 if builtin(name).is_holdem else 20_000
    played_by_source, played_by_copy = (
        self_play(tmp_path / agent.name, agent, hands, seed=3) for agent in (source, copy)
    )
    kl = row_measures(copy.probabilities(played_by_source.rows), played_by_source.taken, played_by_source.truth)["kl"]
    tell = hands_to_tell(kl, dealt_hands(tmp_path / source.name / "rows", played_by_source, side=None))
    assert tell is not None
    assert tell.hands
    for sample, agent, names_source in ((played_by_source, source, True), (played_by_copy, copy, False)):
        dealt = dealt_hands(tmp_path / agent.name / "rows", sample, side=None)
        mixes = source.probabilities(sample.rows), copy.probabilities(sample.rows)
        evidence = evidence_by_hand(*mixes, sample.taken, dealt)
        random = np.random.default_rng(0)
        runs = run_sequential_tests(np.concatenate([random.permutation(evidence) for _ in range(5)]))
        assert len(runs.hands) > 300
        wrong = float((runs.right != names_source).mean())
        assert wrong < 1 / 19 + 3 * math.sqrt(1 / 19 / len(runs.hands))
        if names_source:
            evidence_at_stop = tell.kl_per_hand.value * runs.hands.mean()  # Wald's identity
            assert 0.85 * EVIDENCE < evidence_at_stop < EVIDENCE + np.abs(evidence).max()
            assert runs.hands.mean() == pytest.approx(tell.hands, rel=0.3)


def test_hands_without_a_decision_count_as_hands_without_evidence(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    match = play_match([resolve("@call", game), resolve("@fold", game)], game, hands=40, log=tmp_path / "logs" / "x")
    ingest(match.logs, tmp_path / "rows", options(strength=False))
    call, fold = read_samples(tmp_path / "rows", side=None)
    dealt = dealt_hands(tmp_path / "rows", call, side=None)
    assert len(np.unique(dealt.entry)) == 20  # in the other half the opponent folds before it is to act
    assert len(dealt) == 40
    tell = hands_to_tell((call.rows["street"] == 0).astype(float), dealt)
    assert tell is not None
    assert tell.kl_per_hand.value == 0.5
    assert len(dealt_hands(tmp_path / "rows", fold, side=None)) == 40
    held_out = read_samples(tmp_path / "rows")
    assert sum(len(dealt_hands(tmp_path / "rows", sample)) for sample in held_out[:1]) < 20


def test_hands_with_an_unknown_decision_do_not_count(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    sample = self_play(tmp_path, Hashed(game), 200)
    dealt = dealt_hands(tmp_path / "rows", sample, side=None)
    is_known = np.ones(len(sample), bool)
    is_known[:7] = False
    tell = hands_to_tell(np.ones(len(sample)), dealt, is_known)
    assert tell is not None
    assert tell.seats == 400 - len(np.unique(dealt.entry[:7]))
    assert hands_to_tell(np.ones(len(sample)), dealt, np.zeros(len(sample), bool)) is None


def test_a_perfect_copy_is_never_told(tmp_path: Path) -> None:
    sample = self_play(tmp_path, Hashed(builtin("kuhn.limit.2p")), 100)
    tell = hands_to_tell(np.zeros(len(sample)), dealt_hands(tmp_path / "rows", sample, side=None))
    assert tell is not None
    assert (tell.hands, tell.low, tell.high) == (None, None, None)
    assert hands_to_tell_at_most(sample.truth, sample.truth, dealt_hands(tmp_path / "rows", sample, side=None)) is None


@pytest.mark.parametrize(("game", "name"), [("holdem.limit.2p.reverse_blinds", "@raise"), (NO_LIMIT, "@call")])
def test_a_source_that_never_takes_some_actions_is_not_told_from_itself(tmp_path: Path, game: str, name: str) -> None:
    agent = resolve(name, builtin(game))
    sample = self_play(tmp_path, agent, 100)
    tell = score_all([Candidate(name, name, (), agent)], sample)[0].scores[-1].tell
    assert tell is not None
    assert tell.kl_per_hand.value > LEAST_PROBABILITY
    assert (tell.hands, tell.low, tell.high) == (None, None, None)


def test_the_distance_of_two_copies_bounds_the_mean_of_theirs_from_anybody() -> None:
    random = np.random.default_rng(0)
    source, first, other = random.dirichlet([0.5] * 3, (3, 10_000))
    kl = [(source * np.log(source / copy)).sum(axis=1) for copy in (first, other)]
    between = bhattacharyya(first, other)
    assert (between <= (kl[0] + kl[1]) / 2 + 1e-12).all()
    middle = np.sqrt(first * other)
    middle /= middle.sum(axis=1, keepdims=True)
    kl_of_middle = [(middle * np.log(middle / copy)).sum(axis=1) for copy in (first, other)]
    np.testing.assert_allclose((kl_of_middle[0] + kl_of_middle[1]) / 2, between, atol=1e-9)


def test_evaluate_says_the_hands_to_tell_of_models_of_all_streets(tmp_path: Path) -> None:
    game = builtin("leduc.limit.2p")
    source = resolve("@random", game)
    match = play_match([source, source], game, hands=3000, log=tmp_path / "logs" / "x", probabilities=True)
    ingest(match.logs, tmp_path / "rows", options(strength=False))
    scope = Scope(["random", "random.2"], True, [tmp_path / "logs" / "x.probs.parquet"])
    evaluation = evaluate_models(tmp_path / "rows", ["@random", "@chump:20,50,30"], scope)
    rows = [row for row in evaluation.json() if row["model"].startswith("@")]
    for row in rows:
        if row["street"] != "all":
            assert row["hands_to_tell"] is row["hands_to_tell_interval"] is row["kl_per_hand"] is None
        elif row["model"] == "@random":
            assert row["hands_to_tell"] is None
            assert row["kl_per_hand"] < LEAST_EVIDENCE
        else:
            low, high = row["hands_to_tell_interval"]
            assert low < row["hands_to_tell"] < high
            assert row["hands_to_tell"] == pytest.approx(EVIDENCE / row["kl_per_hand"])
    chump = {row["agent"]: row for row in rows if row["model"] == "@chump:20,50,30" and row["street"] == "all"}
    pooled = (chump["random"]["kl_per_hand"] + chump["random.2"]["kl_per_hand"]) / 2
    assert chump["(all agents)"]["kl_per_hand"] == pytest.approx(pooled)
    table = tables.detection(evaluation.scores)
    assert table is not None
    assert "any number" in table.text()
    lead = build_page(collect_findings(evaluation)).partition("<main>")[0]
    assert "perfect detector" not in lead  # the best model is perfect
    best = evaluate_models(tmp_path / "rows", ["@chump:20,50,30"], scope)
    lead = build_page(collect_findings(best)).partition("<main>")[0]
    assert re.search(
        r"needs about <b>[\d.]+ hands</b> as played in the data \([\d.]+ to [\d.]+\) to tell it from the original", lead
    )


def test_a_model_without_a_street_has_no_hands_to_tell(tmp_path: Path) -> None:
    game = builtin("leduc.limit.2p")
    sample = self_play(tmp_path, Hashed(game), 300)
    known, part = (Candidate("x", "x", (), Hashed(game), streets) for streets in ((0, 1), (0,)))
    assert [scored.scores[-1].tell is not None for scored in score_all([known, part], sample)] == [True, False]
