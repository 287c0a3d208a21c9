"""Spots solved: closed forms, a linear program, best responses by other code, locks, symmetries, threads, files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slow_spots import SlowSpot, Strategy, response_value, value_by_linear_program

from pipeline.poker.cards import card_text, cards_text, pair_index, parse_cards
from pipeline.runtime.errors import PipelineError
from pipeline.solving.ranges_text import parse_range
from pipeline.solving.spot import (
    MAX_MEMORY,
    PostflopSpot,
    SpotSolver,
    check_lines,
    linear_plus,
    lock_numbers,
    read_lock,
)
from pipeline.solving.spot_cards import PAIRS, list_boards
from pipeline.solving.spot_kernels import AVERAGE
from pipeline.solving.spot_solution import SpotSolution, describe_solution, load_solution, normalised, run_spot
from pipeline.solving.spot_tree import DECISION, SHOWDOWN, TreeBuilder, parse_menu

TURN, RIVER = "2c7d9hTs", "2c7d9hTsJs"


def spot_of(
    board: str,
    first: str,
    second: str,
    *,
    pot: float = 100,
    stack: float = 300,
    sizes: tuple[str, ...] = ("0.75",),
    max_raises: int = 1,
) -> PostflopSpot:
    menu = parse_menu(sizes, max_raises=max_raises)
    return PostflopSpot(parse_cards(board), np.stack([parse_range(first), parse_range(second)]), pot, stack, menu)


def slow(
    spot: PostflopSpot, sizes: tuple[float, ...], max_raises: int = 1, silent: tuple[bool, bool] = (False, False)
) -> Any:
    numbers = [np.flatnonzero(own).tolist() for own in spot.ranges]
    hands = [[(card_text(int(PAIRS[n, 0])), card_text(int(PAIRS[n, 1]))) for n in own] for own in numbers]
    weights = [spot.ranges[player][numbers[player]].tolist() for player in range(2)]
    board = [card_text(int(card)) for card in spot.board]
    return SlowSpot(
        board, (hands[0], hands[1]), (weights[0], weights[1]), spot.pot, spot.stack, sizes, max_raises, silent
    )


def played(solver: SpotSolver) -> Strategy:
    """The average strategies of a solver without symmetries, as the slow code asks for them."""
    all_numbers = [np.flatnonzero(own) for own in solver.spot.ranges]

    def mix(line: str, dealt: tuple[str, ...]) -> Any:
        node = solver.tree.index[line]
        board, player = 0, int(solver.tree.nodes.player[node])
        for street, card in enumerate(dealt, start=1):
            board = solver.streets[street].children[board][int(parse_cards(card)[0])].board
        own = solver.streets[len(dealt)].holdings(player, board)
        full = np.full((1326, int(solver.tree.nodes.branches[node])), 0.0)
        full[own] = normalised(solver.entries(board, node)).T
        return full[all_numbers[player]]

    return mix


# Known games


def test_the_ace_king_queen_game_has_its_closed_form() -> None:
    # one card each of three, pot 2, the player in position may bet 1 (Chen and Ankenman, The Mathematics of Poker)
    hands = "AsAh,KsKh,QsQh"
    spot = spot_of("2c3d7h8s9c", hands, hands, pot=2, stack=1, sizes=("ip:0.5",), max_raises=0)
    solution = run_spot(spot, target=1e-5)
    bet, call = solution.node("c"), solution.node("cr1")
    mix = {cards_text(PAIRS[n]): row for n, row in zip(bet.holdings[1].tolist(), bet.mix, strict=True)}
    answers = {cards_text(PAIRS[n]): row for n, row in zip(call.holdings[0].tolist(), call.mix, strict=True)}
    assert bet.names == ["check", "bet 1"]
    assert call.names == ["fold", "call"]
    assert mix["AsAh"][1] == pytest.approx(1, abs=1e-3)
    assert mix["KsKh"][1] == pytest.approx(0, abs=1e-3)
    assert mix["QsQh"][1] == pytest.approx(1 / 3, abs=5e-3)  # 1 / (P + 1)
    assert answers["AsAh"][1] == pytest.approx(1, abs=1e-3)
    assert answers["KsKh"][1] == pytest.approx(1 / 3, abs=5e-3)  # (P - 1) / (P + 1)
    assert answers["QsQh"][1] == pytest.approx(0, abs=1e-3)
    assert solution.value[1] == pytest.approx((3 + 1 / 6) / 3 / 2, abs=2e-5)


def uniform_spot() -> tuple[PostflopSpot, int]:
    """Hands of equal likelihood and different strength for both players, none of which takes a card from the other."""
    ranks = [high + low for high, low in itertools.combinations("AKQT9654", 2) if high + low not in ("T9",)]
    first = ",".join(f"{pair[0]}c{pair[1]}d" for pair in ranks)
    second = ",".join(f"{pair[0]}h{pair[1]}s" for pair in ranks)
    return spot_of("2c3d7h8sJc", first, second, pot=1, stack=1, sizes=("ip:1",), max_raises=0), len(ranks)


def test_hands_spread_evenly_are_worth_what_the_half_street_game_on_the_unit_interval_is() -> None:
    # bet of a pot by the player in position: v = 1 / (2 + 2 + a), a = 1/2, gains v^2 + (a v)^2 / 2 = 1 / 18 of the pot
    spot, steps = uniform_spot()
    solution = run_spot(spot, target=1e-5)
    assert solution.equity[1] == pytest.approx(0.5)
    assert solution.value[1] - 0.5 == pytest.approx(1 / 18, abs=0.5 / steps)
    assert solution.node("c").frequencies()[1] == pytest.approx(1 / 3, abs=1 / steps)  # 2/9 for value, 1/9 as a bluff
    assert solution.node("cr1").frequencies()[1] == pytest.approx(4 / 9, abs=2 / steps)


def test_the_unit_interval_in_steps_has_the_value_of_its_linear_program() -> None:
    spot, _ = uniform_spot()
    assert run_spot(spot, target=1e-5).value[0] - 0.5 == pytest.approx(
        value_by_linear_program(slow(spot, (1.0,), 0, (True, False))), abs=5e-5
    )


# Independent code


@pytest.fixture(scope="module")
def small_turn() -> tuple[SpotSolver, SlowSpot]:
    spot = spot_of(TURN, "TdTh,8s8h,AsQs,6c5c", "JcTc,KsQs:0.5,9c9s,Ah8h", sizes=("0.75",), max_raises=1)
    solver = SpotSolver(spot, isomorphism=False)
    solver.run(1e-5, 2000)
    return solver, slow(spot, (0.75,))


def test_a_small_turn_has_the_value_of_its_linear_program(small_turn: tuple[SpotSolver, SlowSpot]) -> None:
    solver, plain = small_turn
    assert solver.measure().value[0] - 0.5 == pytest.approx(value_by_linear_program(plain), abs=1e-4)


@pytest.mark.parametrize("hero", [0, 1])
def test_best_responses_of_two_codes_are_equal(small_turn: tuple[SpotSolver, SlowSpot], hero: int) -> None:
    _, plain = small_turn
    rough = SpotSolver(small_turn[0].spot, isomorphism=False)
    for _ in range(7):
        rough.iterate()
    measured = rough.measure()
    assert measured.best[hero] - 0.5 == pytest.approx(response_value(plain, played(rough), hero), abs=1e-6)
    own = response_value(plain, played(rough), hero, own=played(rough))
    assert measured.value[hero] - 0.5 == pytest.approx(own, abs=1e-6)
    assert measured.exploitability > 0.01


def test_a_river_of_many_hands_is_measured_alike_by_other_code() -> None:
    spot = spot_of(RIVER, "22+,A9s+,KJo", "TT-77,QJs,A8o:0.3", sizes=("0.33,1",), max_raises=2)
    solver = SpotSolver(spot)
    for _ in range(15):
        solver.iterate()
    plain = slow(spot, (0.33, 1.0), 2)
    for hero in range(2):
        assert solver.measure().best[hero] - 0.5 == pytest.approx(response_value(plain, played(solver), hero), abs=1e-6)


def test_a_flop_is_measured_alike_by_other_code() -> None:
    spot = spot_of("2c7d9h", "TdTh,AsQs", "JcTc,9c9s", stack=100, sizes=("1",), max_raises=0)
    solver = SpotSolver(spot, isomorphism=False)
    for _ in range(3):
        solver.iterate()
    assert solver.measure().best[1] - 0.5 == pytest.approx(
        response_value(slow(spot, (1.0,), 0), played(solver), 1), abs=1e-6
    )


# Properties


@pytest.fixture(scope="module")
def river() -> SpotSolution:
    return run_spot(
        spot_of(RIVER, "22+,A2s+,KTo+", "QQ+,AKs:0.5,T8s", sizes=("0.33,0.75,1.5",), max_raises=2), target=1e-3
    )


@pytest.fixture(scope="module")
def turn() -> SpotSolution:
    return run_spot(spot_of(TURN, "22+,A9s+", "QQ+,AKs:0.5,T8s,J8s"), target=5e-3)


def test_the_target_is_reached_and_measured(river: SpotSolution) -> None:
    assert 0 <= river.exploitability <= 1e-3
    assert river.solver.measure().exploitability == pytest.approx(river.exploitability, abs=1e-7)


def test_values_sum_to_the_pot_at_every_decision(river: SpotSolution) -> None:
    for line in river.lines():
        node = river.node(line)
        if min(own.sum() for own in node.reach) > 1e-4:
            total = node.average(0, node.values[0]) + node.average(1, node.values[1])
            assert total == pytest.approx(node.pot, rel=1e-4)


def test_values_sum_to_the_pot_on_later_streets(turn: SpotSolution) -> None:
    for line, cards in (("cc/", "Js"), ("cc/r75", "Js"), ("cr75c/", "2s"), ("r75c/c", "Qd")):
        node = turn.node(line, cards)
        assert node.average(0, node.values[0]) + node.average(1, node.values[1]) == pytest.approx(node.pot, rel=1e-4)
        assert len(node.board) == 5
        assert not any(int(card) in PAIRS[node.holdings[0]] for card in node.board)


def test_the_value_of_a_decision_is_that_of_its_actions(turn: SpotSolution) -> None:
    node, after = turn.node(), [turn.node("c"), turn.node("r75")]
    reached = [np.where(node.mix[:, action] > 0.05, child.values[0], np.nan) for action, child in enumerate(after)]
    paid = [reached[0], reached[1] - 75]
    assert np.nanmax(np.abs(np.nanmax(paid, axis=0) - np.nanmin(paid, axis=0))) < 3  # equal where both are played


def test_equities_are_shares_of_pairs_won(river: SpotSolution) -> None:
    node = river.node()
    assert node.average(0, node.equities[0]) + node.average(1, node.equities[1]) == pytest.approx(1)
    own = node.holdings[0].tolist().index(pair_index(*parse_cards("AhAd").tolist()))
    plain = slow(river.spot, (1.0,))
    table = plain.payoffs(type("Over", (), {"folded": None, "chips": (0, 0), "dealt": ()})())
    hand = plain.hands[0].index(("Ah", "Ad"))
    possible = np.array([len({*plain.hands[0][hand], *other}) == 4 for other in plain.hands[1]])
    weights = np.array(plain.weights[1]) * possible
    assert node.equities[0][own] == pytest.approx((weights * (table[hand] + 0.5)).sum() / weights.sum(), abs=1e-5)


def test_a_frame_has_a_row_per_holding_and_a_column_per_action(river: SpotSolution) -> None:
    frame = river.frame("c")
    assert list(frame.columns[:5]) == ["hand", "class", "reach", "equity", "value"]
    assert list(frame.columns[5:]) == ["check", "bet 33", "bet 75", "bet 150"]
    assert len(frame) == (river.spot.ranges[1] > 0).sum()
    assert np.allclose(frame.iloc[:, 5:].sum(axis=1), 1)
    assert list(river.frame("c", player=0).columns) == ["hand", "class", "reach", "equity", "value"]


@pytest.mark.parametrize("board", ["2c7c9h", "2c7c9c"])
def test_symmetric_suits_change_nothing(board: str) -> None:
    spot = spot_of(board, "TT,AQs", "99:0.2,AJs,KK", sizes=("1",), max_raises=0)
    plain, merged = SpotSolver(spot, isomorphism=False), SpotSolver(spot)
    assert len(merged.streets[2].boards) < len(plain.streets[2].boards)
    for solver in (plain, merged):
        solver.run(0, 2)  # later on rounding decides between actions that are worth the same
    assert merged.measure().value == pytest.approx(plain.measure().value, abs=2e-6)
    assert merged.measure().best == pytest.approx(plain.measure().best, abs=2e-6)
    for line, cards in (("", ""), ("cr100c/", "Ts"), ("cr100c/", "Th"), ("cc/cc/c", "TsQd")):
        nodes = [describe_solution(solver, 0.1, 0.1).node(line, cards) for solver in (plain, merged)]
        for player in range(2):
            assert nodes[0].holdings[player].tolist() == nodes[1].holdings[player].tolist()
            assert np.allclose(nodes[0].reach[player], nodes[1].reach[player], atol=1e-4)
            assert np.allclose(nodes[0].values[player], nodes[1].values[player], atol=0.01, equal_nan=True)
        assert np.allclose(nodes[0].mix, nodes[1].mix, atol=1e-3)


def test_a_solution_with_symmetric_suits_is_as_good_when_every_card_is_dealt() -> None:
    spot = spot_of("2c7c9cTc", "TT,AQs,KJo", "99,AJs,KK,QJo", sizes=("1",), max_raises=1)
    plain, merged = SpotSolver(spot, isomorphism=False), SpotSolver(spot)
    merged.run(1e-4, 500)
    assert len(merged.streets[1].boards) < len(plain.streets[1].boards) == 48
    rivers = merged.boards[1]
    for node in np.flatnonzero(plain.tree.nodes.kind == DECISION).tolist():
        player = int(plain.tree.nodes.player[node])
        if plain.street_of(node) == 0:
            plain.entries(0, node)[:] = merged.entries(0, node)
            continue
        for card, (board, _, _) in plain.streets[1].children[0].items():
            other, deal, _ = merged.streets[1].children[0][card]
            first = rivers.maps_at[deal, player]
            places = rivers.maps[first : first + len(merged.root_reach[player])]
            own = np.searchsorted(plain.streets[0].holdings(player, 0), plain.streets[1].holdings(player, board))
            plain.entries(board, node)[:] = merged.entries(other, node)[:, places[own]]
    assert plain.measure().best == pytest.approx(merged.measure().best, abs=1e-6)
    assert plain.measure().exploitability <= 1.01e-4


def test_ranges_that_tell_suits_apart_have_fewer_symmetries() -> None:
    assert len(list_boards(parse_cards("2c7c9c"), spot_of("2c7c9c", "TT", "99").ranges)[0].symmetries[0]) == 6
    apart = list_boards(parse_cards("2c7c9c"), spot_of("2c7c9c", "TT,AhKh", "99").ranges)
    assert len(apart[0].symmetries[0]) == 2
    assert all(order[2] == 2 for order in apart[0].symmetries[0])


def test_any_number_of_workers_gives_the_same_bytes() -> None:
    spot = spot_of(TURN, "22+,A9s+", "QQ+,AKs,T8s")
    solvers = [SpotSolver(spot, workers=workers) for workers in (1, 2, 3)]
    for solver in solvers:
        for _ in range(5):
            solver.iterate()
    tables = [solver.tables.regret.tobytes() + solver.tables.average.tobytes() for solver in solvers]
    assert tables[0] == tables[1] == tables[2]


def test_discounts_need_fewer_iterations_than_linear_averages() -> None:
    spot = spot_of(RIVER, "22+,A2s+,KTo+", "QQ+,AKs:0.5,T8s", sizes=("0.33,0.75,1.5",), max_raises=2)
    quick, linear = SpotSolver(spot), SpotSolver(spot, discounts=linear_plus)
    for solver in (quick, linear):
        solver.run(2e-3, 2000)
    assert quick.iteration < linear.iteration


# Locks


def test_a_locked_player_is_answered_by_a_best_response() -> None:
    spot = spot_of(RIVER, "22+,A9s+", "QQ+,AKs,T8s", sizes=("0.75",), max_raises=1)
    tree, callers = spot.tree(), {}
    for line, node in tree.index.items():  # the player in position checks, and calls four of five bets
        if tree.nodes.kind[node] == DECISION and tree.nodes.player[node] == 1:
            shares = {"f": 0.2, "c": 0.8} if "f" in tree.actions(node) else {"c": 1.0}
            callers[line] = [shares.get(action, 0.0) for action in tree.actions(node)]
    solution = run_spot(spot, target=1e-6, locks=(None, lock_numbers(callers)))
    best = response_value(slow(spot, (0.75,)), played(solution.solver), 0)
    assert solution.value[0] - 0.5 == pytest.approx(best, abs=1e-5)
    free = run_spot(spot, target=1e-4)
    assert solution.value[0] > free.value[0] + 0.01
    assert solution.locked == (False, True)
    worst, risk = solution.worst_case[0], solution.risk[0]
    assert worst is not None
    assert risk is not None
    assert worst == pytest.approx(0.5 - response_value(slow(spot, (0.75,)), played(solution.solver), 1), abs=1e-5)
    assert risk == pytest.approx(free.value[0] - worst, abs=0.01)
    assert risk > 0.01
    assert solution.risk[1] is None


def test_a_lock_at_one_decision_keeps_the_rest_free() -> None:
    spot = spot_of(RIVER, "22+,A9s+", "QQ+,AKs,T8s")
    lock = lock_numbers({"r75": {"random": [1, 0, 0], "AA": [0, 0.5, 0.5]}})
    solution = run_spot(spot, target=1e-3, locks=(None, lock))
    node = solution.node("r75")
    for number, row in zip(node.holdings[1].tolist(), node.mix, strict=True):
        aces = PAIRS[number, 1] // 4 == 12
        assert row.tolist() == ([0, 0.5, 0.5] if aces else [1, 0, 0])
    assert solution.exploitability <= 1e-3
    assert np.ptp(solution.node("c").mix[:, 1]) > 0.5


@pytest.mark.parametrize(
    ("mixes", "problem"),
    [
        ({"r75": [0.5, 0.5]}, "the lock after 'r75' is not 3 probabilities"),
        ({"r75": [0.5, 0.2, 0.2]}, "the lock after 'r75' is not 3 probabilities that sum to 1"),
        ({"r75": {"AA": [1, 0, 0]}}, "does not name all holdings"),
        ({"r75": [[1, 0, 0]]}, None),
        ({"r75": ["x", 0, 0]}, "is not 3 probabilities"),
    ],
)
def test_a_lock_that_is_no_mix_is_refused(mixes: dict[str, Any], problem: str | None) -> None:
    spot = spot_of(RIVER, "22+,A9s+", "QQ+,AKs,T8s")
    if problem is None:
        assert SpotSolver(spot, locks=(None, lock_numbers(mixes))).tree.nodes.locked.sum() == 1
    else:
        with pytest.raises(PipelineError, match=problem):
            SpotSolver(spot, locks=(None, lock_numbers(mixes)))


def test_a_lock_where_the_player_does_not_act_is_refused(tmp_path: Path) -> None:
    tree = spot_of(RIVER, "AA", "KK").tree()
    with pytest.raises(PipelineError, match="ip does not act after 'cr75' in this spot's tree"):
        check_lines({"cr75": [1, 0]}, tree, 1)
    (tmp_path / "lock.json").write_text("[1, 2]")
    with pytest.raises(PipelineError, match=r"lock\.json is not a lock"):
        read_lock(tmp_path / "lock.json")


# Files


def test_a_saved_solution_opens_with_the_same_figures_and_nodes(turn: SpotSolution, tmp_path: Path) -> None:
    opened = load_solution(turn.save(tmp_path / "spot"))
    assert opened.figures() == turn.figures()
    for line, cards in (("", ""), ("cr75", ""), ("cc/r75", "Js")):
        nodes = turn.node(line, cards), opened.node(line, cards)
        assert np.allclose(nodes[0].mix, nodes[1].mix, atol=2e-5)
        assert np.allclose(nodes[0].values[1], nodes[1].values[1], atol=0.01, equal_nan=True)
        assert nodes[0].names == nodes[1].names


def test_the_same_solution_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    spot = spot_of(RIVER, "22+,A9s+", "QQ+,AKs,T8s")
    for name, workers in (("one", 1), ("two", 2)):
        solution = run_spot(spot, target=0.01, workers=workers)
        solution.seconds = 0.0
        solution.save(tmp_path / name)
    for file in ("manifest.json", "spot.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_damaged_solutions_are_refused(turn: SpotSolution, tmp_path: Path) -> None:
    path = turn.save(tmp_path / "spot")
    data = bytearray((path / "spot.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "spot.safetensors").write_bytes(data)
    with pytest.raises(PipelineError, match="checksum differs"):
        load_solution(path)
    turn.save(path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "pot": "much"}))
    with pytest.raises(PipelineError, match="does not hold the solution of a spot"):
        load_solution(path)
    with pytest.raises(PipelineError, match="there is no solution of a spot at"):
        load_solution(tmp_path / "none")


def test_a_run_goes_on_from_its_checkpoint_to_the_same_bytes(tmp_path: Path) -> None:
    spot = spot_of(TURN, "TT+,A9s+", "QQ+,AKs,T8s")
    whole, first, second = (SpotSolver(spot) for _ in range(3))
    whole.run(0, 20)
    first.run(0, 10)
    first.store(tmp_path / "run")
    second.resume(tmp_path / "run")
    second.run(0, 20)
    assert second.tables.regret.tobytes() == whole.tables.regret.tobytes()
    assert second.tables.average.tobytes() == whole.tables.average.tobytes()


def test_a_foreign_or_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    solver = SpotSolver(spot_of(RIVER, "TT+", "QQ+,T8s"))
    solver.run(0, 10)
    solver.store(path)
    other = SpotSolver(spot_of(RIVER, "TT+", "QQ+,T9s"))
    with pytest.raises(PipelineError, match="is the checkpoint of another spot"):
        other.resume(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PipelineError, match="is no checkpoint of a spot"):
        solver.resume(path)


def test_a_finished_run_leaves_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_spot(spot_of(RIVER, "TT+", "QQ+,T8s"), target=0.01, checkpoint=path, interval=0)
    assert not path.exists()


# Trees


def test_amounts_are_shares_of_the_pot_and_short_stacks_go_all_in() -> None:
    tree = TreeBuilder(parse_menu(["0.5,1,a"]), street=3, pot=100, stack=300).grow()
    assert tree.actions(tree.index[""]) == ["c", "r50", "r100", "r300"]
    assert tree.actions(tree.index["r50"]) == ["f", "c", "r150", "r300"]  # 250 would leave 50 behind a pot of 600
    near = TreeBuilder(parse_menu(["1"], all_in=0.2), street=3, pot=100, stack=150).grow()
    assert near.actions(near.index[""]) == ["c", "r150"]  # 50 behind are a sixth of the pot of 300


def test_raises_are_bounded_and_at_least_as_large_as_the_bet() -> None:
    tree = TreeBuilder(parse_menu(["0.75", "ip:0.1"], max_raises=1), street=3, pot=100, stack=1000).grow()
    assert tree.actions(tree.index["r75"]) == ["f", "c", "r150"]
    assert tree.actions(tree.index["r75r150"]) == ["f", "c"]


def test_sizes_are_named_by_player_and_street() -> None:
    menu = parse_menu(["0.5", "turn:1", "oop:turn:none", "ip:river:2"], ["a"])
    assert menu.bets[0, 1] == menu.bets[1, 1] == menu.bets[0, 3] == (0.5,)
    assert menu.bets[0, 2] == ()
    assert menu.bets[1, 2] == (1.0,)
    assert menu.bets[1, 3] == (2.0,)
    assert menu.raises[0, 1] == (float("inf"),)


def test_players_who_are_all_in_see_the_board_out() -> None:
    tree = TreeBuilder(parse_menu(["a"]), street=1, pot=10, stack=10).grow()
    line = "r10c"
    assert line in tree.index
    assert tree.lines[int(np.flatnonzero((tree.nodes.kind == SHOWDOWN) & (tree.chips[:, 0] == 10))[0])].count("/") == 2
    solution = run_spot(spot_of("2c7d9h", "AA", "KK", pot=10, stack=0), target=1e-4)
    assert solution.value == pytest.approx(solution.equity, abs=1e-5)


# Refusals


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"board": "2c7d"}, "has 2 cards: a spot has 3 to 5"),
        ({"first": "7d7h", "board": "2c7d9h"}, "no holding of the player out of position is possible on 2c7d9h"),
        ({"first": "AsAh", "second": "AsAd"}, "share a card in every pair of hands"),
        ({"pot": 0}, "the pot must be above 0"),
        ({"sizes": ("0.5,b",)}, "has the size 'b'"),
        ({"sizes": ("fold:0.5",)}, "does not name sizes"),
    ],
)
def test_an_impossible_spot_is_refused_with_a_sentence(arguments: dict[str, Any], problem: str) -> None:
    chosen = {"board": RIVER, "first": "AA", "second": "KK", **arguments}
    with pytest.raises(PipelineError, match=problem):
        SpotSolver(spot_of(**chosen))


def test_a_spot_that_needs_too_much_memory_is_refused_before_it_begins() -> None:
    spot = spot_of("2c7d9h", "random", "random", sizes=("0.33,0.75,1.5",), max_raises=3, stack=2000)
    with pytest.raises(PipelineError, match=rf"needs \d+\.\d GB and {MAX_MEMORY:g} GB are allowed"):
        SpotSolver(spot)
    with pytest.raises(PipelineError, match=r"needs 0\.0 GB and 1e-05 GB are allowed"):
        SpotSolver(spot_of(RIVER, "AA,KK", "random"), max_memory=1e-5)


def test_a_tree_of_too_many_nodes_is_refused() -> None:
    spot = spot_of("2c7d9h", "AA", "KK", sizes=("0.1,0.2,0.3,0.4,0.5,0.6,0.7",), max_raises=5, stack=100_000)
    with pytest.raises(PipelineError, match="the betting tree has over 100,000 nodes"):
        SpotSolver(spot)


def test_a_node_that_is_not_there_is_refused(turn: SpotSolution) -> None:
    with pytest.raises(PipelineError, match="the line 'r80' is not in this spot's tree"):
        turn.node("r80")
    with pytest.raises(PipelineError, match="1 cards have come since 2c7d9hTs"):
        turn.node("cc/")
    with pytest.raises(PipelineError, match="other ones than those: Ts will not do"):
        turn.node("cc/", "Ts")


def test_the_memory_of_a_run_is_what_was_estimated() -> None:
    from pipeline.solving.spot import GIGABYTE, memory_needed

    solver = SpotSolver(spot_of(TURN, "22+,A2s+", "22+,K9s+"))
    hands = [[int(street.sizes(player).sum()) for player in range(2)] for street in solver.streets]
    held = solver.tables.regret.nbytes + solver.tables.average.nbytes + solver.results.nbytes
    held += sum(array.nbytes for boards in solver.boards for array in boards)
    assert memory_needed(solver.tree, hands) * GIGABYTE == pytest.approx(held, rel=0.1)


def test_a_pass_of_averages_is_what_the_solution_says(river: SpotSolution) -> None:
    assert river.solver.share(0, AVERAGE) == pytest.approx(river.value[0], abs=1e-7)
    assert river.solver.share(1, AVERAGE) == pytest.approx(river.value[1], abs=1e-6)


def test_a_saved_answer_to_a_lock_keeps_its_risk(tmp_path: Path) -> None:
    spot = spot_of(RIVER, "22+,A9s+", "QQ+,AKs,T8s")
    solution = run_spot(spot, target=0.01, locks=(None, lock_numbers({"r75": [1, 0, 0]})))
    opened = load_solution(solution.save(tmp_path / "spot"))
    assert opened.figures() == solution.figures()
    assert opened.risk[0] is not None
    assert opened.solver.worst_case(0) == pytest.approx(solution.worst_case[0], abs=1e-3)
