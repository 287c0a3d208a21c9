"""Small games solved: closed values, an independent implementation, and best responses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as spiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

from pipeline.poker.game import find_game, kuhn
from pipeline.runtime.errors import PipelineError
from pipeline.solving.cfr import METHODS, ExactSolver, Solution
from pipeline.solving.small import SmallGame, Spot, kuhn_game


@pytest.fixture(scope="module")
def kuhn2() -> Solution:
    return ExactSolver(kuhn(2), "plus").solve(1000, points=4, watch=[Spot("", "Q"), Spot("cr", "K")])


@pytest.fixture(scope="module")
def leduc() -> Solution:
    return ExactSolver(find_game("leduc.limit.2p"), "plus").solve(500)


def as_spiel(found: Solution, name: str) -> tuple[Any, Any]:
    """A solution as a policy of the independent implementation."""
    game = pyspiel.load_game(name)
    small = SmallGame(found.game)
    leduc = found.game.suits == 2

    def mix(state: Any) -> dict[int, float]:
        player, node, cards, board = state.current_player(), 0, [], -1
        for who, action in ((item.player, item.action) for item in state.full_history()):
            if who < 0 and len(cards) < found.game.players:
                cards.append(action // found.game.suits)
            elif who < 0:
                board = action // found.game.suits
            else:
                node = int(small.tree.child[node, moves(node)[action]])
        row = found.strategy[small.row_at(node, cards[player], board)]
        return {action: float(row[moves(node)[action]]) for action in state.legal_actions()}

    def moves(node: int) -> dict[int, int]:
        facing = small.tree.child[node, 0] >= 0
        return {0: 0, 1: 1, 2: 2} if leduc else {0: 0, 1: 1} if facing else {0: 1, 1: 2}

    return game, spiel_policy.tabular_policy_from_callable(game, mix)


def test_kuhn_is_worth_a_loss_of_one_eighteenth_to_the_first_player(kuhn2: Solution) -> None:
    assert kuhn2.value == pytest.approx((-1 / 18, 1 / 18), abs=1e-4)
    assert kuhn2.exploitability is not None
    assert 0 <= kuhn2.exploitability < 1e-3


def test_kuhn_solutions_are_of_the_alpha_family(kuhn2: Solution) -> None:
    alpha = kuhn2.mix(Spot("", "Q"))[2]
    assert -1e-3 <= alpha <= 1 / 3 + 1e-3
    assert kuhn2.mix(Spot("", "A"))[2] == pytest.approx(3 * alpha, abs=0.02)
    assert kuhn2.mix(Spot("cr", "K"))[1] == pytest.approx(alpha + 1 / 3, abs=0.02)
    assert kuhn2.mix(Spot("c", "Q"))[2] == pytest.approx(1 / 3, abs=0.02)
    assert kuhn2.mix(Spot("r", "K"))[1] == pytest.approx(1 / 3, abs=0.02)


def test_the_curve_ends_where_the_solution_is_and_watches_spots(kuhn2: Solution) -> None:
    assert [point.iteration for point in kuhn2.curve] == [10, 46, 215, 1000]
    assert kuhn2.curve[-1].exploitability == kuhn2.exploitability
    assert kuhn2.curve[-1].frequencies[1] == pytest.approx(kuhn2.mix(Spot("cr", "K")))


@pytest.mark.parametrize("players", [2, 3])
def test_kuhn_values_and_exploitability_are_those_of_an_independent_implementation(players: int) -> None:
    found = ExactSolver(kuhn(players), "vanilla").solve(50)
    game, policy = as_spiel(found, f"kuhn_poker(players={players})")
    assert found.exploitability == pytest.approx(exploitability.nash_conv(game, policy) / players, abs=1e-9)
    value = expected_game_score.policy_value(game.new_initial_state(), [policy] * players)
    assert found.value == pytest.approx(value, abs=1e-9)


def test_leduc_value_and_exploitability_are_those_of_an_independent_implementation(leduc: Solution) -> None:
    game, policy = as_spiel(leduc, "leduc_poker")
    assert leduc.exploitability == pytest.approx(exploitability.exploitability(game, policy), abs=1e-9)
    assert leduc.exploitability is not None
    assert leduc.exploitability < 0.002
    assert leduc.value[0] == pytest.approx(-0.0856, abs=0.002)  # known value of Leduc for the first player


@pytest.mark.parametrize(
    ("method", "iterations"), [("vanilla", 500), ("plus", 200), ("chance", 20_000), ("external", 50_000)]
)
def test_every_method_comes_near_the_value(method: str, iterations: int) -> None:
    found = ExactSolver(kuhn(2), method, seed=3).solve(iterations)
    assert found.value[0] == pytest.approx(-1 / 18, abs=5e-3)
    assert found.exploitability is not None
    assert found.exploitability < 0.02
    assert method in METHODS


def test_four_players_share_one_game_and_gains_are_reported() -> None:
    found = ExactSolver(kuhn(4), "plus").solve(60)
    assert sum(found.value) == pytest.approx(0, abs=1e-9)
    assert found.gains is not None
    assert all(0 <= gain < 0.01 for gain in found.gains)
    assert found.value == pytest.approx((-0.013, -0.019, -0.008, 0.039), abs=0.015)  # a report's, for another run


def test_many_players_are_sampled() -> None:
    with pytest.raises(PipelineError, match="too many deals"):
        ExactSolver(kuhn(9), "plus")
    found = ExactSolver(kuhn_game(13), "external", seed=1).solve(20)
    assert found.exploitability is None
    assert sum(found.value) == pytest.approx(0, abs=1e-9)


def test_the_same_seed_gives_the_same_strategy() -> None:
    one, two = (ExactSolver(kuhn(3), "external", seed=5).solve(1500).strategy for _ in range(2))
    assert np.array_equal(one, two)


def test_spots_name_decisions() -> None:
    small = SmallGame(find_game("leduc.limit.2p"))
    rows = [small.row(spot) for spot in small.spots()]
    assert len(set(rows)) == len(rows)
    assert str(Spot.parse("cc/r:QA")) == "cc/r:QA"
    for text, reason in (
        ("cr", "is not BETTING"),
        ("ff:Q", "betting sequence"),
        (":2", "no card"),
        ("r/:Q", "no player acts"),
    ):
        with pytest.raises(PipelineError, match=reason):
            small.row(Spot.parse(text))


def test_larger_games_are_refused() -> None:
    with pytest.raises(PipelineError, match="one hole card"):
        ExactSolver(find_game("holdem.limit.2p.reverse_blinds"))
