"""Intervals of matches in which an agent learns: over many seeds they cover the mean as often as they say."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent, FinishedHands
from pipeline.arena.match import play_match
from pipeline.arena.tournament import play_tournament
from pipeline.cli.main import group
from pipeline.models.measures import BATCHES, STUDENT_95, batches_note, few_batches, half_width
from pipeline.poker.game import builtin
from pipeline.runtime.array_types import Array

LEDUC = builtin("leduc.limit.2p")


@dataclass
class Moody:
    """Plays well or at random, and may change after every 20 hands: neighbouring deals are alike."""

    name: str = "moody"
    game: object = LEDUC
    interval: int = 20
    seed: int = 0
    moods: tuple[Agent, Agent] = field(default_factory=lambda: (resolve("@equity", LEDUC), resolve("@raise", LEDUC)))

    def begin(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.mood = int(self.random.integers(2))

    def seen(self, hands: FinishedHands) -> None:
        self.mood = self.mood if self.random.random() < 0.6 else 1 - self.mood

    def probabilities(self, rows: Array) -> Array:
        return self.moods[self.mood].probabilities(rows)


def coverage(means: list[float], half_widths: list[float]) -> float:
    """Share of the intervals that hold the mean of all matches."""
    return float((np.abs(np.array(means) - np.mean(means)) <= half_widths).mean())


def test_intervals_cover_the_mean_of_a_learner_s_matches_in_95_of_100_and_those_over_deals_do_not() -> None:
    opponent = resolve("@equity", LEDUC)
    matches = [play_match([Moody(seed=seed), opponent], LEDUC, hands=1600, seed=seed) for seed in range(150)]
    means = [match.mbb_per_hand() for match in matches]
    assert 0.90 <= coverage(means, [match.ci95() for match in matches]) <= 0.99
    assert coverage(means, [half_width(match.samples_mbb[:, 0]) for match in matches]) < 0.88


@pytest.mark.long
def test_intervals_of_adaptive_matches_are_as_wide_as_their_means_are_spread() -> None:
    agents = [resolve("@adaptive", LEDUC), resolve("@equity", LEDUC)]
    matches = [play_match(agents, LEDUC, hands=2000, seed=seed, adjusted=True) for seed in range(500)]
    means = [float(match.adjusted_mbb_per_hand() or 0.0) for match in matches]
    half_widths = np.array([match.adjusted_ci95() for match in matches])
    spread = float(np.std(means, ddof=1)) * STUDENT_95[BATCHES - 2]
    assert np.sqrt((half_widths**2).mean()) == pytest.approx(spread, rel=0.08)
    assert 0.92 <= coverage(means, half_widths.tolist()) <= 0.98


def test_a_match_says_whether_its_intervals_are_over_batches() -> None:
    def words(*agents: str) -> list[str]:
        return ["match", *agents, "--hands", "60", "--game", "leduc.limit.2p"]

    for opponent, batches in (("@adaptive", BATCHES), ("@call", None)):
        found = json.loads(CliRunner().invoke(group, [*words("@equity", opponent), "--json"]).stdout)
        assert found["interval_batches"] == batches
        text = CliRunner().invoke(group, words("@equity", opponent)).stdout
        assert ("± over 20 batches" in text) == (batches is not None)


def test_a_tournament_with_a_learner_draws_batches_of_deals() -> None:
    players = {"moody": Moody(seed=3), "equity": resolve("@equity", LEDUC), "call": resolve("@call", LEDUC)}
    ranked = play_tournament(players, LEDUC, hands=2000, adjusted=False)
    assert ranked.json()["interval_batches"] == BATCHES
    for (members_of, _, drawn), members in zip(ranked.results.by_lineup(), ranked.lineups, strict=True):
        if "moody" in (names := [ranked.results.names[i] for i in members_of]):
            assert members[names.index("moody")].plain.ci95 == pytest.approx(drawn[0], rel=0.12)
    steady = play_tournament({name: players[name] for name in ("equity", "call")}, LEDUC, hands=2000, adjusted=False)
    assert steady.json()["interval_batches"] is None


def test_student_s_quantiles_are_those_of_scipy() -> None:
    expected = [stats.t.ppf(0.975, freedom) for freedom in range(1, BATCHES)]
    assert expected == pytest.approx(STUDENT_95, abs=6e-4)


@pytest.mark.parametrize("batches", [5, BATCHES])
def test_percentiles_of_few_batches_are_as_wide_as_student_s_interval(batches: int) -> None:
    values = np.random.default_rng(1).normal(size=batches)
    random = np.random.default_rng(2)
    drawn = random.choice(values, size=(20_000, batches)).mean(axis=1)
    spread = few_batches(batches) * float(np.std(drawn)) * 1.96
    assert spread == pytest.approx(half_width(values, learning=True), rel=0.02)


def test_few_deals_have_the_interval_of_student_and_one_batch_has_none() -> None:
    samples = np.arange(20.0)
    assert half_width(samples) == half_width(samples, learning=True) > 1.96 * samples.std(ddof=1) / np.sqrt(20)
    assert batches_note(2).startswith("± over 2 batches")
    assert batches_note(1) == batches_note(None) == ""
