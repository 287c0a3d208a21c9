"""Bucketed solving: held to exact answers on Leduc, where buckets lose nothing; files; preflop hold'em."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from bucketed_leduc import LAYOUT, LEDUC, deal_leduc, exploitability

from pipeline.dataset.decisions import betting_code
from pipeline.models.artifacts import SMALL_BYTES
from pipeline.models.charts import parse_chart
from pipeline.models.policy import find_chart
from pipeline.poker.game import find_game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import random_state
from pipeline.solving import preflop, teacher
from pipeline.solving.holdem import CHUNK, BucketSolver, best_response, resume_checkpoint, save_checkpoint
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, HeadToHead, Layout, fixed_strategy, versus
from pipeline.solving.strategy import (
    LEVELS,
    dequantise,
    load_strategy,
    quantise,
    save_strategy,
    unpack,
    write_checked,
)
from pipeline.solving.teacher import RunReport, result_facts

LIMIT = find_game("holdem.limit.2p.reverse_blinds")


@pytest.fixture(scope="module")
def solved() -> BucketSolver:
    solver = BucketSolver(LAYOUT, deal_leduc, seed=1)
    solver.run(20, workers=1)
    return solver


def test_sampling_comes_near_an_equilibrium_of_leduc(solved: BucketSolver) -> None:
    assert exploitability(fixed_strategy(LAYOUT, (1, 1, 1))) > 1.0
    assert exploitability(solved.strategy()) < 0.06


def test_two_workers_do_as_well_as_one() -> None:
    solver = BucketSolver(LAYOUT, deal_leduc, seed=2)
    solver.run(20, workers=2)
    assert exploitability(solver.strategy()) < 0.06


def test_one_worker_gives_the_same_bytes_also_when_resumed(solved: BucketSolver, tmp_path: Path) -> None:
    begun = BucketSolver(LAYOUT, deal_leduc, seed=1)
    begun.run(7, workers=1)
    save_checkpoint(begun, tmp_path / "checkpoint", {"game": LEDUC.name})
    going_on = BucketSolver(LAYOUT, deal_leduc, seed=1)
    assert resume_checkpoint(going_on, tmp_path / "checkpoint", {"game": LEDUC.name})
    going_on.run(20, workers=1)
    assert going_on.average.tobytes() == solved.average.tobytes()
    assert going_on.regret.tobytes() == solved.regret.tobytes()


def test_a_damaged_checkpoint_is_refused_and_one_moved_aside_is_found_again(tmp_path: Path) -> None:
    begun, folder = BucketSolver(LAYOUT, deal_leduc, seed=1), tmp_path / "checkpoint"
    save_checkpoint(begun, folder, {})
    aside = folder.rename(tmp_path / ".checkpoint.999999999.old")  # as a kill between two renames leaves it
    (tmp_path / ".checkpoint.999999998.part").mkdir()
    assert resume_checkpoint(BucketSolver(LAYOUT, deal_leduc, seed=1), folder, {})
    assert not aside.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    whole = (folder / "regret.npy").read_bytes()
    for harm in (whole[:100], whole[:-4], b"", whole.replace(b"<f4", b"<i4"), whole[:-1] + b"\x41"):
        (folder / "regret.npy").write_bytes(harm)
        with pytest.raises(PipelineError, match="damaged checkpoint"):
            resume_checkpoint(BucketSolver(LAYOUT, deal_leduc, seed=1), folder, {})
    (folder / "regret.npy").write_bytes(whole)
    (folder / "checkpoint.json").write_text("{")
    with pytest.raises(PipelineError, match="damaged checkpoint"):
        resume_checkpoint(BucketSolver(LAYOUT, deal_leduc, seed=1), folder, {})


def test_what_no_run_writes_into_a_checkpoint_is_refused_though_its_sums_are_right(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    for harm in ({"average": -1.0}, {"regret": np.nan}, {"chunks": -1}, {"chunks": "7"}, {"chunks": 10**20}):
        begun = BucketSolver(LAYOUT, deal_leduc, seed=1)
        for name, value in harm.items():
            if name == "chunks":
                begun.chunks = value
            else:
                getattr(begun, name)[3] = value
        save_checkpoint(begun, folder, {})
        with pytest.raises(PipelineError, match="damaged checkpoint"):
            resume_checkpoint(BucketSolver(LAYOUT, deal_leduc, seed=1), folder, {})


def test_a_stored_part_of_a_run_is_refused_unless_it_is_a_strategy_of_its_layout(tmp_path: Path) -> None:
    sound = np.zeros((10, 2), np.uint8)
    for harm in (sound[:9], sound.astype(np.int8), sound + 16, sound.T.copy()):
        np.save(tmp_path / "steps-3.npy", harm)
        with pytest.raises(PipelineError, match="solve again"):
            teacher._steps(tmp_path, 3, 10)
    np.save(tmp_path / "steps-3.npy", sound)
    assert np.array_equal(teacher._steps(tmp_path, 3, 10), sound)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    begun = BucketSolver(LAYOUT, deal_leduc, seed=1)
    assert not resume_checkpoint(begun, tmp_path / "checkpoint", {})
    save_checkpoint(begun, tmp_path / "checkpoint", {})
    with pytest.raises(PipelineError, match="checkpoint with seed 1, not 2"):
        resume_checkpoint(BucketSolver(LAYOUT, deal_leduc, seed=2), tmp_path / "checkpoint", {})


def test_matches_between_strategies_are_fair_and_won_by_the_solved_one(solved: BucketSolver) -> None:
    deals = np.empty((20_000, LAYOUT.deal_size), dtype=np.int16)
    deal_leduc(random_state(9, 0), deals)
    best = solved.strategy()
    assert versus(LAYOUT, deals, best, best).mbb == 0
    ahead = versus(LAYOUT, deals, best, fixed_strategy(LAYOUT, (0, 1, 0)))
    behind = versus(LAYOUT, deals, fixed_strategy(LAYOUT, (0, 1, 0)), best)
    assert ahead.mbb == pytest.approx(-behind.mbb)
    assert ahead.mbb > 5 * ahead.ci95


def test_a_best_response_wins_what_the_exact_one_does() -> None:
    deals = np.empty((50_000, LAYOUT.deal_size), dtype=np.int16)
    deal_leduc(random_state(9, 0), deals)
    for mix in ((1, 1, 1), (0, 1, 0), (0, 0, 1)):
        strategy = fixed_strategy(LAYOUT, mix)
        response = best_response(LAYOUT, deal_leduc, strategy, deals=20 * CHUNK)
        found = versus(LAYOUT, deals, response, strategy)
        exact = 1000 * exploitability(strategy) / LEDUC.big_blind
        assert exact - 40 - found.ci95 < found.mbb < exact + 2 * found.ci95


def test_the_layout_gives_every_decision_a_row_of_its_own() -> None:
    layout = Layout(find_game("holdem.limit.2p.reverse_blinds"), (169, 5, 4, 3))
    assert layout.counts.tolist() == [[4, 4], [35, 35], [315, 315], [2835, 2835]]
    assert layout.rows == 169 * 8 + 5 * 70 + 4 * 630 + 3 * 5670
    places = {tuple(row) for row in layout.tree[layout.tree[:, T_ACTOR] >= 0][:, [T_ROUND, T_ACTOR, T_SLOT]].tolist()}
    assert len(places) == 6378
    assert set(layout.legal.tolist()) == {2 | 4, 1 | 2, 1 | 2 | 4}


def test_a_layout_needs_a_limit_game_and_a_size_per_round() -> None:
    for name, sizes in (("holdem.nolimit.3p", (169, 1, 1, 1)), ("holdem.limit.3p", (169, 1, 1))):
        with pytest.raises(PipelineError, match="limit game for two or three and a size per round"):
            Layout(find_game(name), sizes)


def test_quantised_rows_sum_to_one_and_drop_what_is_small() -> None:
    rng = np.random.default_rng(1)
    mixes = rng.dirichlet([0.3, 0.3, 0.3], 10_000).astype(np.float32)
    steps = quantise(mixes)
    back = dequantise(steps)
    assert (steps.sum(axis=1) <= 30).all()
    assert np.allclose(back.sum(axis=1), 1)
    assert np.abs(back - mixes).max() < 0.09
    assert (back[:, (0, 2)][mixes[:, (0, 2)] < 0.04] == 0).all()


def test_a_strategy_is_read_back_as_it_was_and_damage_is_refused(solved: BucketSolver, tmp_path: Path) -> None:
    steps = quantise(solved.strategy())
    centroids = np.arange(24, dtype=np.uint8).reshape(3, 8)
    save_strategy(tmp_path, LAYOUT, steps, flop=centroids, turn=centroids, facts={"seed": 1})
    stored = load_strategy(tmp_path, LEDUC)
    assert np.array_equal(stored.steps, steps)
    assert np.array_equal(stored.flop, centroids)
    assert stored.facts["seed"] == 1
    with pytest.raises(PipelineError, match="plays leduc"):
        load_strategy(tmp_path, find_game("holdem.limit.2p.reverse_blinds"))
    damaged = bytearray((tmp_path / "strategy.xz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "strategy.xz").write_bytes(damaged)
    with pytest.raises(PipelineError, match="damaged"):
        load_strategy(tmp_path, LEDUC)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(PipelineError, match="no readable manifest"):
        load_strategy(tmp_path, LEDUC)


@pytest.mark.parametrize("sizes", [(65535, 65535, 65535), (100, 100, 4000), (4097, 1, 1)])
def test_a_strategy_of_too_many_decisions_is_refused_before_it_is_solved_or_unpacked(
    sizes: tuple[int, int, int], tmp_path: Path
) -> None:
    facts = {"game": LIMIT.name, "sizes": [169, *sizes], "levels": LEVELS}
    write_checked(tmp_path / "foreign", {"fold": np.zeros(1, np.uint8)}, facts, {})
    with pytest.raises(PipelineError, match="solve with fewer buckets"):
        load_strategy(tmp_path / "foreign")
    with pytest.raises(PipelineError, match="solve with fewer buckets"):
        teacher.solve_holdem(LIMIT, tmp_path / "own", sizes=sizes, deals=1)


def test_a_packed_file_may_not_unpack_to_many_times_its_size() -> None:
    packed = lzma.compress(bytes(SMALL_BYTES + 1), preset=0)
    with pytest.raises(ValueError, match="unpacks to over 67,108,864 bytes"):
        unpack(packed, 10 * SMALL_BYTES)


def test_preflop_holdem_is_solved_to_a_tenth_of_a_thousandth_of_a_blind() -> None:
    found = preflop.solve_preflop(find_game("holdem.limit.2p.reverse_blinds"), below_mbb=0.1)
    assert 0 <= found.exploitability_mbb < 0.1
    assert found.value_mbb == pytest.approx(-21.9, abs=0.2)
    assert set(found.strategy) == {"", "c", "r", "cr", "rr", "crr", "rrr", "crrr"}
    chart = preflop.to_chart(found)
    assert np.array_equal(parse_chart(chart.to_text()).words, chart.words)


def test_the_bundled_chart_is_an_equilibrium() -> None:
    chart = find_chart(Path("selby"))
    run = preflop.PreflopSolver(preflop.preflop_game(find_game("holdem.limit.2p.reverse_blinds")))
    for node, betting in run.texts().items():
        run.average[node] = chart.counts[chart.words == betting_code(betting)][0]
    value, exploitability = run.measure()
    assert 100 * exploitability < 0.01
    assert 100 * value == pytest.approx(-21.9, abs=0.01)


def test_the_preflop_game_is_that_of_heads_up_limit() -> None:
    with pytest.raises(PipelineError, match="heads-up limit"):
        preflop.preflop_game(find_game("holdem.limit.3p"))


def test_a_manifest_does_not_depend_on_how_long_a_run_took() -> None:
    found = [result_facts(RunReport(1, seconds, None, {"raise": HeadToHead(5.0, 1.0)})) for seconds in (1.0, 99.0)]
    assert found[0] == found[1] == {"against_raise": [5.0, 1.0], "against_quarter": None}


def test_a_run_does_not_overwrite_the_manifest_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("mine")
    with pytest.raises(PipelineError, match="something else than a run of this solver"):
        teacher.solve_holdem(find_game("holdem.limit.2p.reverse_blinds"), tmp_path, deals=1)
    assert (tmp_path / "manifest.json").read_text() == "mine"
