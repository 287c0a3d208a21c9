"""Three players in buckets: merged betting, the solver held to exact answers in Kuhn and Leduc, and what plays."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.agents.teacher import Teacher
from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.poker.betting_tree import grow_tree, merge_states
from pipeline.poker.game import find_game, parse_game
from pipeline.poker.rules import S_ACTOR, S_FINISHED, S_FOLDED, S_ROUND, S_SPENT, settle
from pipeline.poker.strength.boards import HOLDINGS, boards
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import random_state
from pipeline.solving.buckets import without_rivers
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.holdem import BucketSolver, resume_checkpoint, save_checkpoint
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Layout, fixed_strategy, payoff, pot_shares, versus
from pipeline.solving.small import SmallGame
from pipeline.solving.strategy import StoredStrategy, load_strategy, quantise, save_strategy
from pipeline.solving.teacher import solve_holdem

THREE = find_game("holdem.limit.3p")
KUHN = find_game("kuhn.limit.3p")
LAYOUT = Layout(THREE, (169, 4, 3, 5))
KUHN_LAYOUT = Layout(KUHN, (4,))


def deal_kuhn(random: Any, deals: Any) -> None:
    """Kuhn's cards as buckets; the higher card wins."""
    rng = np.random.default_rng(int(random[0]))
    deals[:, :3] = deals[:, 3:] = rng.permuted(np.tile(np.arange(4), (len(deals), 1)), axis=1)[:, :3]


def gains(strategy: Any) -> tuple[float, ...]:
    """What each player of Kuhn poker gains by the exact best response to the others."""
    exact, small = ExactSolver(KUHN), SmallGame(KUHN)
    pending = [(0, 0)]
    while pending:
        node, merged = pending.pop()
        street, player, slot = (int(KUHN_LAYOUT.tree[merged, column]) for column in (T_ROUND, T_ACTOR, T_SLOT))
        if player < 0:
            continue
        for card in range(4):
            at = KUHN_LAYOUT.offsets[street, player] + card * KUHN_LAYOUT.counts[street, player] + slot
            exact._learnt.average[small.row_at(node, card)] = strategy[at]
        both = zip(small.tree.child[node].tolist(), KUHN_LAYOUT.children[merged].tolist(), strict=True)
        pending += [(child, other) for child, other in both if child >= 0]
    found = exact.point()[1]
    assert found is not None
    return found


@pytest.fixture(scope="module")
def solved() -> BucketSolver:
    solver = BucketSolver(KUHN_LAYOUT, deal_kuhn, seed=1)
    solver.run(12, workers=1)
    return solver


def test_merged_betting_has_the_choices_and_the_chips_of_the_game() -> None:
    merged, rng = LAYOUT.betting, np.random.default_rng(1)
    assert len(merged.states) == 12_570
    for _ in range(400):
        state, node = THREE.start(), 0
        while not state.finished:
            legal = [action for action in range(3) if state.is_legal(action)]
            assert [action for action in range(3) if merged.child[node, action] >= 0] == legal
            assert merged.states[node, S_ACTOR] == state.vector[S_ACTOR]
            assert merged.states[node, S_ROUND] == state.vector[S_ROUND]
            action = int(rng.choice(legal, p=np.array([0.1, 0.5, 0.4])[legal] / np.array([0.1, 0.5, 0.4])[legal].sum()))
            state, node = state.apply(action), int(merged.child[node, action])
        assert merged.states[node, S_FINISHED]
        assert merged.states[node, S_FOLDED] == state.vector[S_FOLDED]
        assert (merged.states[node, S_SPENT : S_SPENT + 3] == state.vector[S_SPENT : S_SPENT + 3]).all()


def test_merged_nodes_come_before_those_they_lead_to() -> None:
    child = LAYOUT.betting.child
    assert ((child > np.arange(len(child))[:, None]) | (child < 0)).all()
    assert LAYOUT.longest_queue > 100


def test_nothing_is_merged_where_a_round_is_the_whole_game() -> None:
    whole, merged = grow_tree(KUHN.rules, 1000), merge_states(KUHN.rules)
    assert whole is not None
    assert (~whole.terminal).sum() == (~merged.terminal).sum() == 12


def test_players_are_paid_as_the_rules_pay() -> None:
    paid, rng, share, result = LAYOUT.payoffs, np.random.default_rng(2), np.empty(8, np.float32), np.zeros(3)
    finished = np.flatnonzero(LAYOUT.betting.terminal)
    for node in rng.choice(finished, 300):
        places = rng.integers(0, 3, 3)
        settle(THREE.rules, LAYOUT.betting.states[node], places, result)
        for player in range(3):
            pot_shares(places, player, share)
            assert payoff(paid[node], share, player) == pytest.approx(result[player], rel=1e-6)


def test_three_players_of_kuhn_come_near_to_where_nobody_gains(solved: BucketSolver) -> None:
    assert max(gains(fixed_strategy(KUHN_LAYOUT, (1, 1, 1)))) > 0.1
    assert max(gains(solved.strategy())) < 0.01


def test_one_worker_gives_the_same_bytes_also_when_resumed(solved: BucketSolver, tmp_path: Path) -> None:
    begun = BucketSolver(KUHN_LAYOUT, deal_kuhn, seed=1)
    begun.run(5, workers=1)
    save_checkpoint(begun, tmp_path / "checkpoint", {"careless": 0.0})
    going_on = BucketSolver(KUHN_LAYOUT, deal_kuhn, seed=1)
    with pytest.raises(PipelineError, match="careless"):
        resume_checkpoint(going_on, tmp_path / "checkpoint", {"careless": 0.1})
    assert resume_checkpoint(going_on, tmp_path / "checkpoint", {"careless": 0.0})
    going_on.run(12, workers=1)
    assert going_on.average.tobytes() == solved.average.tobytes()
    assert going_on.regret.tobytes() == solved.regret.tobytes()


def test_who_learnt_among_careless_players_wins_more_from_them(solved: BucketSolver) -> None:
    warned = BucketSolver(KUHN_LAYOUT, deal_kuhn, seed=1, careless=0.5)
    warned.run(12, workers=1)
    deals = np.empty((3000, KUHN_LAYOUT.deal_size), np.int16)
    deal_kuhn(random_state(7, 0), deals)
    for weights in ((0, 1, 0), (0, 0, 1), (1, 1, 1)):
        others = fixed_strategy(KUHN_LAYOUT, weights)
        more, less = (versus(KUHN_LAYOUT, deals, one.strategy(), others).mbb for one in (warned, solved))
        assert more > less + 10


def test_results_at_a_table_are_fair_and_exact(solved: BucketSolver) -> None:
    deals = np.empty((500, KUHN_LAYOUT.deal_size), np.int16)
    deal_kuhn(random_state(3, 0), deals)
    itself = versus(KUHN_LAYOUT, deals, solved.strategy(), solved.strategy())
    assert abs(itself.mbb) < 1e-3
    folding, raising = (fixed_strategy(KUHN_LAYOUT, mix) for mix in ((1, 0, 0), (0, 0, 1)))
    assert versus(KUHN_LAYOUT, deals, folding, raising).mbb == pytest.approx(-1000)  # always its ante
    assert versus(KUHN_LAYOUT, deals, raising, folding).mbb == pytest.approx(2000)


def made_up(tmp_path: Path) -> StoredStrategy:
    """A strategy for three over made-up clusters, through its file."""
    rng = np.random.default_rng(1)
    mixes = rng.dirichlet([1, 1, 1], LAYOUT.rows) * (LAYOUT.legal[:, None] >> np.arange(3) & 1)
    steps = quantise((mixes / mixes.sum(axis=1, keepdims=True)).astype(np.float32))
    flop, turn = (np.arange(count * 8).reshape(count, 8).astype(np.uint8) for count in (4, 3))
    save_strategy(tmp_path, LAYOUT, steps, flop=flop, turn=turn, facts={})
    stored = load_strategy(tmp_path, THREE)
    assert (stored.steps == steps).all()
    return stored


def test_a_strategy_for_three_is_stored_and_plays_only_legal_actions(tmp_path: Path) -> None:
    stored = made_up(tmp_path)
    flop, turn = (np.arange(len(boards(s).cards) * HOLDINGS[s]) % LAYOUT.sizes[s] for s in (1, 2))
    tables = without_rivers(flop.astype(np.uint16), turn.astype(np.uint16), LAYOUT.sizes[3])
    agents = [Teacher(name, THREE, stored, tables) for name in "abc"]
    match = play_match(agents, THREE, hands=600, seed=1)  # the arena refuses what is not legal
    assert match.hands == 600
    assert match.payoffs.sum(axis=2).max() == 0


def test_the_strategy_for_three_that_comes_with_the_package_is_whole_and_not_called_an_equilibrium() -> None:
    folder = Path(str(files("pipeline.agents"))) / "resources" / "teacher3"
    stored = load_strategy(folder, THREE)
    shown = CliRunner().invoke(group, ["info", str(folder), "--verify"], catch_exceptions=False)
    assert "no opponent: all players learnt together" in shown.stdout
    assert stored.facts["against_random"][0] > 1000
    assert stored.facts["against_call"][0] > 700


def test_only_limit_holdem_for_two_or_three_is_solved_in_buckets(tmp_path: Path) -> None:
    for name in ("holdem.nolimit.3p", "kuhn.limit.3p"):
        with pytest.raises(PipelineError, match="two or three players is solved in buckets"):
            solve_holdem(find_game(name), tmp_path / "a", deals=1)
    four = THREE.text.replace("numPlayers = 3", "numPlayers = 4").replace("5 10 0", "5 10 0 0")
    with pytest.raises(PipelineError, match="limit game for two or three"):
        Layout(parse_game(four, "four"), (169, 1, 1, 1))
    with pytest.raises(PipelineError, match="without stacks"):
        Layout(parse_game(THREE.text.replace("blind", "stack = 90 90 90\nblind"), "short"), (169, 1, 1, 1))
    words = ["solve", "holdem", "--game", "holdem.limit.3p", "--sizes", "5", "--out", str(tmp_path)]
    with pytest.raises(PipelineError, match="--sizes 5: name buckets"):
        CliRunner().invoke(group, words, catch_exceptions=False)


@pytest.mark.long
def test_a_strategy_for_three_is_solved_and_the_result_plays(tmp_path: Path) -> None:
    options = {"sizes": (20, 20, 10), "deals": 500_000, "workers": 1}

    def stop(done: int, total: int) -> None:
        if done > total // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_holdem(THREE, tmp_path / "a", progress=stop, **options)  # type: ignore[arg-type]
    report = solve_holdem(THREE, tmp_path / "a", **options)  # type: ignore[arg-type]
    solve_holdem(THREE, tmp_path / "b", **options)  # type: ignore[arg-type]
    assert (tmp_path / "a" / "strategy.xz").read_bytes() == (tmp_path / "b" / "strategy.xz").read_bytes()
    assert report.opponents["random"].mbb > 800
    solved, call = resolve(str(tmp_path / "a"), THREE), resolve("@call", THREE)
    match = play_match([solved, call, call], THREE, hands=6000, seed=1)
    assert match.mbb_per_hand(0) > 300
