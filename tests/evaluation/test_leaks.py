"""Leaks: a planted mistake costs what it costs at the table, and a player without one has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mixing_agents import Hashed

from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import betting_code
from pipeline.evaluation.leaks import DecisionSpot, Leaks, find_leaks
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

LEDUC = builtin("leduc.limit.2p")
SPOT = DecisionSpot("flop", "position 1", 0, "-")


class Planted:
    """The reference, except that it bets half the time whatever it holds, first to act on an unraised flop."""

    name = "planted"

    def __init__(self, reference: Agent) -> None:
        self.reference, self.game = reference, reference.game

    def probabilities(self, rows: Array) -> Array:
        mixes = self.reference.probabilities(rows).copy()
        unraised = rows["betting_codes"][:, 0] == betting_code("cc")
        here = (rows["street"] == 1) & (rows["position"] == 0) & unraised & (rows["betting_codes"][:, 1] == 0)
        mixes[here] = (0.0, 0.5, 0.5)
        return mixes


@pytest.fixture(scope="module")
def reference() -> Agent:
    """The agent that has no leak."""
    return resolve("@teacher", LEDUC)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, reference: Agent) -> Path:
    """A dataset of a match between the planted player and an opponent that mixes."""
    folder = tmp_path_factory.mktemp("leaks")
    play_match([Planted(reference), Hashed(LEDUC, 5)], LEDUC, hands=60_000, seed=1, log=folder / "logs" / "m")
    ingest([str(folder / "logs")], folder / "rows", options())
    return folder / "rows"


@pytest.fixture(scope="module")
def leaks(rows: Path, reference: Agent) -> Leaks:
    return find_leaks(rows, "planted", reference)


def test_the_planted_spot_comes_first_and_is_the_only_certain_one(leaks: Leaks) -> None:
    assert leaks.spots[0].spot == SPOT
    assert [leak.spot for leak in leaks.spots if leak.is_certain] == [SPOT]
    assert leaks.spots[0].played["r"] == pytest.approx(0.5, abs=0.02)
    assert len(leaks.spots[0].examples) == 3


def test_a_leak_costs_what_it_costs_at_the_table(leaks: Leaks, reference: Agent) -> None:
    """The planted player differs in this spot alone, so the difference of two matches is the leak's cost."""
    opponent = Hashed(LEDUC, 5)
    results = [
        play_match([player, opponent], LEDUC, hands=400_000, seed=2, adjusted=True)
        for player in (Planted(reference), reference)
    ]
    lost = results[0].adjusted_mbb_per_hand(0) - results[1].adjusted_mbb_per_hand(0)
    noise = results[0].adjusted_ci95(0) + results[1].adjusted_ci95(0)
    leak = leaks.spots[0].difference
    assert lost < -2 * noise, "the mistake is too small to be seen at all"
    assert abs(leak.value - lost) < 1.5 * leak.ci95 + noise


def test_a_player_compared_with_itself_has_no_leak(rows: Path, reference: Agent) -> None:
    leaks = find_leaks(rows, "planted", Planted(reference))
    assert not any(leak.is_certain for leak in leaks.spots)
    inside = sum(abs(leak.difference.value) <= leak.difference.ci95 for leak in leaks.spots)
    assert inside >= 0.85 * len(leaks)


def test_decisions_that_were_never_tried_are_said_to_be_unknown(tmp_path: Path, reference: Agent) -> None:
    play_match(
        [resolve("@call", LEDUC), resolve("@random", LEDUC)], LEDUC, hands=4_000, seed=3, log=tmp_path / "l" / "m"
    )
    ingest([str(tmp_path / "l")], tmp_path / "rows", options())
    leaks = find_leaks(tmp_path / "rows", "call", reference)
    assert all(leak.untried == pytest.approx(leak.reference["r"]) for leak in leaks.spots)


def test_holdem_hands_are_compared_by_strength(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    match = [resolve("@equity", game), resolve("@random", game)]
    play_match(match, game, hands=3_000, seed=4, log=tmp_path / "l" / "m")
    ingest([str(tmp_path / "l")], tmp_path / "rows", options())
    leaks = find_leaks(tmp_path / "rows", "random", resolve("@equity", game))
    assert any(group.hands.startswith("strength") for leak in leaks.spots for group in leak.groups)
    assert all(leak.difference.ci95 for leak in leaks.spots)
    assert json.dumps(leaks.json(), allow_nan=False)
    assert len(leaks.frame()) == len(leaks)


def test_what_cannot_be_compared_is_refused(rows: Path, reference: Agent) -> None:
    with pytest.raises(PipelineError, match="fewer than 10000000 decisions in every spot"):
        find_leaks(rows, "planted", reference, min_decisions=10_000_000)
    with pytest.raises(PipelineError, match="nobodyhere"):
        find_leaks(rows, "nobodyhere", reference)
    drawing = Planted(reference)
    drawing.draws = True
    with pytest.raises(PipelineError, match="draws its actions"):
        find_leaks(rows, "planted", drawing)
