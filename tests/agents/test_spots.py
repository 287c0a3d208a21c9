"""Spots of real hands: pots, ranges and locks from agents and a line of betting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from pipeline.agents.names import resolve
from pipeline.agents.ranges import range_at
from pipeline.agents.spots import in_game, lock_agent, range_of, real_spot, spot_of_state
from pipeline.models.sizes import Amounts
from pipeline.poker.cards import class_text, parse_cards, start_class
from pipeline.poker.game import Game, builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.solving.spot import PostflopSpot, SpotSolver
from pipeline.solving.spot_cards import PAIRS
from pipeline.solving.spot_tree import parse_menu

GAME = builtin("holdem.nolimit.2p.reverse_blinds")
BOARD = parse_cards("2c7d9hTsJs")


@dataclass(frozen=True)
class Fixed:
    """Plays one mix over labels wherever it is legal."""

    mix: tuple[float, ...]
    name: str = "fixed"
    game: Game = GAME

    def probabilities(self, rows: Array) -> Array:
        legal = (rows["legal"][:, None] >> np.arange(len(self.mix))) & 1
        mix = legal * np.array(self.mix)
        return np.asarray(mix / mix.sum(axis=1, keepdims=True))


def test_the_spot_of_a_betting_has_its_pot_stack_and_positions() -> None:
    spot = real_spot(GAME, "r300c/cc/cc/", BOARD)
    assert (spot.pot, spot.stack, spot.spent, spot.played) == (600, 19700, 300, {})
    assert GAME.start().apply(2, 300).apply(1).actor == spot.positions[0]


def test_a_street_under_way_puts_its_actions_on_the_menu() -> None:
    spot = spot_of_state(GAME, "MATCHSTATE:0:7:r300c/cc/cc/cr500r1500:AsKs|/2c7d9h/Ts/Js")
    assert spot.before == "r300c/cc/cc/"
    assert spot.board.tolist() == BOARD.tolist()
    assert spot.played == {"c": 200.0, "cr200": 1200.0}
    ranges = np.ones((2, 1326))
    menu = parse_menu(["1"])
    tree = PostflopSpot(spot.board, ranges, spot.pot, spot.stack, menu, chip=1, min_bet=100, played=spot.played).tree()
    assert "cr200r1200" in tree.index
    few = PostflopSpot(spot.board, ranges, spot.pot, spot.stack, parse_menu(["none"], (), 0), played=spot.played).tree()
    assert list(few.index) == ["", "c", "cr200", "cr200r1200"]  # more raises than the menu has, and no other sizes
    assert in_game("cr200r1200", spot.spent) == "cr500r1500"


@pytest.mark.parametrize(
    ("game", "betting", "board", "problem"),
    [
        ("holdem.nolimit.2p.reverse_blinds", "r300", "", "no street after the flop is being played"),
        ("holdem.nolimit.2p.reverse_blinds", "r300c/cr600f", "2c7d9h", "no street after the flop is being played"),
        ("holdem.nolimit.2p.reverse_blinds", "r300c/", "2c7d", "3 board cards are open, not 2c7d"),
        ("leduc.limit.2p", "cc/", "Ks", "spots are solved in heads-up hold'em"),
    ],
)
def test_a_betting_without_a_spot_is_refused(game: str, betting: str, board: str, problem: str) -> None:
    with pytest.raises(PipelineError, match=problem):
        real_spot(builtin(game), betting, parse_cards(board))


def test_a_range_is_what_the_agent_gets_there_with() -> None:
    agent = resolve("@equity", GAME)
    spot = real_spot(GAME, "cc/cc/cc/", BOARD)
    for player in range(2):
        weights = range_of(agent, spot, player)
        own = range_at(agent, spot.before, spot.board, spot.positions[player])
        for hole, reach in zip(own.holes.tolist(), own.reach, strict=True):
            number = int(np.flatnonzero((sorted(hole, reverse=True) == PAIRS).all(axis=1))[0])
            assert weights[number] == pytest.approx(reach / own.reach.max())
        assert weights[np.isin(PAIRS, BOARD).any(axis=1)].sum() == 0


def test_an_agent_that_never_gets_there_has_no_range() -> None:
    with pytest.raises(PipelineError, match="call never plays 'r300c/cc/cc/' from position 1"):
        range_of(resolve("@call", GAME), real_spot(GAME, "r300c/cc/cc/", BOARD), 1)


def test_a_locked_player_plays_the_agents_mix_with_the_nearest_amounts() -> None:
    spot = real_spot(GAME, "r300c/cc/cc/", BOARD)
    # fold, call, raises of about a quarter, half, one and two pots, all-in
    agent = Fixed((0.1, 0.4, 0.0, 0.2, 0.2, 0.0, 0.1))
    solver = SpotSolver(
        PostflopSpot(
            spot.board, np.ones((2, 1326)), spot.pot, spot.stack, parse_menu(["0.5,1,a"], max_raises=0), chip=1
        ),
        locks=(None, lock_agent(agent, spot, 1)),
    )
    tree = solver.tree
    free, faced = tree.index["c"], tree.index["r600"]
    assert tree.actions(free) == ["c", "r300", "r600", "r19700"]
    labels = GAME.labels
    assert len(labels) == len(agent.mix), labels
    mixes = solver.entries(0, free).T
    assert np.allclose(mixes, np.array([0.4, 0.2, 0.2, 0.1]) / 0.9, atol=1e-6)
    assert tree.actions(faced) == ["f", "c"]
    assert np.allclose(solver.entries(0, faced).T, [0.1, 0.9], atol=1e-6)  # raises that the tree lacks are calls
    assert solver.tree.nodes.locked[free] == 1
    assert solver.tree.nodes.locked[tree.index[""]] == 0


@dataclass(frozen=True)
class Sized(Fixed):
    """Bets 250 or 700 chips with the label of half a pot, the first three times as often, except with small pairs."""

    def amounts(self, rows: Array, labels: Array) -> Amounts:
        sized = (labels == 3) & (rows["hole"][:, 0] >> 2 > 4)
        starts = np.concatenate([[0], np.cumsum(2 * sized)])
        return Amounts(starts, np.tile([250, 700], sized.sum()), np.tile([0.75, 0.25], sized.sum()))


def test_amounts_that_an_agent_names_go_to_the_nearest_of_the_tree() -> None:
    spot = real_spot(GAME, "r300c/cc/cc/", BOARD)
    menu = parse_menu(["0.33,0.5,1,2"], (), 0)
    solver = SpotSolver(
        PostflopSpot(spot.board, np.ones((2, 1326)), spot.pot, spot.stack, menu, chip=1),
        locks=(None, lock_agent(Sized((0.0, 0.6, 0.0, 0.4, 0.0, 0.0, 0.0)), spot, 1)),
    )
    node = solver.tree.index["c"]
    assert solver.tree.actions(node) == ["c", "r198", "r300", "r600", "r1200"]
    highs = PAIRS[solver.streets[0].holdings(1, 0), 0] >> 2
    mixes = solver.entries(0, node).T
    assert np.allclose(mixes[highs > 4], [0.6, 0, 0.3, 0.1, 0], atol=1e-6)
    assert np.allclose(mixes[highs <= 4], [0.6, 0, 0.4, 0, 0], atol=1e-6)


def test_a_lock_differs_by_hand_where_the_agent_does() -> None:
    spot = real_spot(GAME, "cc/cc/cc/", BOARD)
    agent = resolve("@equity", GAME)
    solver = SpotSolver(
        PostflopSpot(spot.board, np.ones((2, 1326)), spot.pot, spot.stack, parse_menu(["1"], max_raises=0), chip=1),
        locks=(None, lock_agent(agent, spot, 1)),
    )
    mix = solver.entries(0, solver.tree.index["r200"]).T
    classes = [class_text(start_class(*PAIRS[n].tolist())) for n in solver.streets[0].holdings(1, 0)]
    folds = {name: row[0] for name, row in zip(classes, mix.tolist(), strict=True)}
    assert folds["TT"] < 0.5 < folds["43o"]


def test_a_lock_to_an_agent_of_a_limit_game_or_on_too_large_a_tree_is_refused() -> None:
    spot = real_spot(GAME, "cc/", BOARD[:3])
    with pytest.raises(PipelineError, match="a lock is an agent of a no-limit game"):
        lock_agent(resolve("@call", builtin("holdem.limit.2p.reverse_blinds")), spot, 0)
    with pytest.raises(PipelineError, match=r"asks for [\d,]+ mixes and 20,000,000 are allowed"):
        SpotSolver(
            PostflopSpot(spot.board, np.ones((2, 1326)), spot.pot, 400, parse_menu(["1"], max_raises=0), chip=1),
            locks=(lock_agent(resolve("@call", GAME), spot, 0), None),
        )
