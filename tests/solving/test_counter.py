"""Counter-strategies: exact values in Kuhn and Leduc, the same in buckets, the search for a share, storing."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from bucketed_leduc import LAYOUT, deal_leduc, random_strategy, rows_of_leduc
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.cli.counter import METHODS as COMMAND_METHODS
from pipeline.cli.counter import command as counter_command
from pipeline.cli.main import group, main
from pipeline.dataset.load import load_decisions
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.opponents.counters import LOCAL_HANDS, Search, against_player, exploitability, find_counter
from pipeline.poker.game import Game, builtin
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.counter import (
    MAX_RESPONSE_DEALS,
    MAX_TRIES,
    METHODS,
    OTHER_BETTING_WEIGHT,
    PRIOR_WEIGHTS,
    Belief,
    BucketSetting,
    Evidence,
    SmallSetting,
    choose_counter,
    count_similar,
    count_small,
    estimate_evidence,
    join_with_equilibrium,
    next_share,
    respond,
    respond_in_buckets,
    winnings,
)
from pipeline.solving.groups import equal_steps, kmeans_groups, learning_groups
from pipeline.solving.holdem import CHUNK, Dealer, SharedLearning, best_response
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, fixed_strategy
from pipeline.solving.lookup import SmallTeacher, betting_paths, tabulate
from pipeline.solving.small import SmallGame
from pipeline.solving.strategy import load_small_strategy, save_small_strategy, ship_strategy

LEDUC = builtin("leduc.limit.2p")
KUHN = builtin("kuhn.limit.2p")
LIMIT = builtin("holdem.limit.2p.reverse_blinds")
MILLI = 1e-3


@cache
def equilibrium(game: Game) -> np.ndarray:
    solver = ExactSolver(game)
    solver.run(3_000)
    return solver.strategy()


def often_folding(game: Game) -> np.ndarray:
    """The equilibrium, but folding twice as often as it should."""
    mix = equilibrium(game).copy()
    fold = np.minimum(2 * mix[:, 0], 1.0)
    rest = mix[:, 1:].sum(axis=1)
    mix[:, 1:] *= np.where(rest > 0, (1 - fold) / np.where(rest > 0, rest, 1), 0.0)[:, None]
    mix[:, 0] = np.where(rest > 0, fold, mix[:, 0])
    return mix


@pytest.mark.parametrize("game", [KUHN, LEDUC], ids=lambda game: game.name)
def test_a_model_that_is_never_in_force_gives_an_equilibrium(game: Game) -> None:
    found = respond(game, Belief(random_strategy(game, 1), hand_share=0.0))
    assert found.exploitability < 1 * MILLI


@pytest.mark.parametrize("game", [KUHN, LEDUC], ids=lambda game: game.name)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_response_wins_what_the_exploitability_says(game: Game, seed: int) -> None:
    model = random_strategy(game, seed)
    found = respond(game, Belief(model, hand_share=1.0))
    assert found.winnings == pytest.approx(ExactSolver(game).exploitability(model), abs=1e-9)
    assert found.winnings == pytest.approx(winnings(game, found.strategy, model), abs=1e-12)


def test_against_always_calling_in_kuhn_the_best_card_bets_and_the_worst_checks() -> None:
    small = SmallGame(KUHN)
    legal = np.repeat(small.tree.child >= 0, small.infos, axis=0)
    calls = np.zeros(legal.shape)
    calls[legal[:, 1], 1] = 1.0
    found = respond(KUHN, Belief(calls, hand_share=1.0)).strategy
    spots = {str(spot): found[small.row(spot)] for spot in small.spots()}
    assert spots[":A"].tolist() == [0, 0, 1]
    assert spots[":Q"].tolist() == [0, 1, 0]
    assert spots["c:A"].tolist() == [0, 0, 1]


def test_restricted_responses_lie_on_or_above_the_line_between_equilibrium_and_best_response() -> None:
    model = often_folding(LEDUC)
    ends = [respond(LEDUC, Belief(model, hand_share=p)) for p in (0.0, 1.0)]
    before = ends[0]
    for p in (0.25, 0.75, 0.95):
        found = respond(LEDUC, Belief(model, hand_share=p))
        share = (found.exploitability - ends[0].exploitability) / (ends[1].exploitability - ends[0].exploitability)
        line = ends[0].winnings + share * (ends[1].winnings - ends[0].winnings)
        assert found.winnings >= line - MILLI
        assert found.winnings >= before.winnings - MILLI
        assert found.exploitability >= before.exploitability - MILLI
        before = found


def test_sure_everywhere_is_the_best_response_and_sure_nowhere_the_equilibrium() -> None:
    model = often_folding(LEDUC)
    best = respond(LEDUC, Belief(model, hand_share=1.0)).winnings
    sure = respond(LEDUC, Belief(model, 1.0, np.ones(len(model))))
    assert sure.winnings == pytest.approx(best, abs=2 * MILLI)
    unsure = respond(LEDUC, Belief(model, 1.0, np.zeros(len(model))))
    assert unsure.exploitability < 1 * MILLI


def test_where_everything_is_certain_a_data_biased_response_is_the_restricted_one() -> None:
    model = often_folding(LEDUC)
    certain = Evidence(model, np.full(len(model), 1e12))
    biased, restricted = (respond(LEDUC, certain.belief(method, 0.7)) for method in ("dbr", "rnr"))
    assert biased.winnings == pytest.approx(restricted.winnings, abs=1 * MILLI)
    assert biased.exploitability == pytest.approx(restricted.exploitability, abs=2 * MILLI)


def test_a_decision_counts_less_for_those_whose_earlier_betting_was_other() -> None:
    words = betting_paths(LAYOUT)[1]
    acts = LAYOUT.tree[:, T_ACTOR] == 1
    first = np.flatnonzero(acts & (LAYOUT.tree[:, T_ROUND] == 1) & (words[:, 1] == words[acts, 1].max()))
    start, nodes = int(LAYOUT.offsets[1, 1]), int(LAYOUT.counts[1, 1])
    rows = start + 4 * nodes + LAYOUT.tree[first, T_SLOT]  # bucket 4 after every betting before the flop
    seen = count_similar(LAYOUT, np.repeat(rows[:1], 10))
    assert len(rows) > 1
    assert seen[rows].tolist() == pytest.approx([10.0] + [10 * OTHER_BETTING_WEIGHT] * (len(rows) - 1))
    assert seen.sum() == pytest.approx(seen[rows].sum())


def test_a_copy_is_joined_with_the_equilibrium_where_that_foretells_better() -> None:
    random = np.random.default_rng(1)
    start = _grouped_leduc(equilibrium(LEDUC)).start
    far = _grouped_leduc(often_folding(LEDUC)).start
    legal = start.sum(axis=1) > 0
    noise = np.where(start > 0, random.uniform(0.5, 1.5, start.shape), 0)
    errant = np.divide(
        start * noise, (start * noise).sum(axis=1, keepdims=True), where=legal[:, None], out=start.copy()
    )
    places = random.choice(np.flatnonzero(legal), 40_000)

    def joined(played: np.ndarray, copy: np.ndarray) -> Evidence:
        action = (random.random(len(places))[:, None] > played[places].cumsum(axis=1)[:, :2]).sum(axis=1)
        return join_with_equilibrium(LAYOUT, copy, start, places, action, random.random(len(places)) < 0.2)

    near, known = joined(start, errant), joined(far, far)
    assert near.added == max(PRIOR_WEIGHTS)
    assert np.abs(near.model - start).sum() < 0.9 * np.abs(errant - start).sum()
    assert known.added == 0
    assert np.allclose(known.model, far)


def test_a_share_that_is_no_share_is_refused() -> None:
    with pytest.raises(PipelineError, match="0 to 1"):
        Belief(random_strategy(KUHN, 1), hand_share=1.5)
    with pytest.raises(PipelineError, match="two players"):
        respond(builtin("kuhn.limit.3p"), Belief(random_strategy(builtin("kuhn.limit.3p"), 1)))


@pytest.mark.parametrize("hands", [0.0, 0.75, 1.0])
def test_in_buckets_that_lose_nothing_the_answer_is_the_exact_one(hands: float) -> None:
    model = often_folding(LEDUC)
    ours, exact = rows_of_leduc()
    projected = np.zeros((LAYOUT.rows, 3), np.float32)
    projected[ours] = model[exact]
    answer = respond_in_buckets(LAYOUT, deal_leduc, Belief(projected, hands), deals=30 * CHUNK, workers=1).strategy
    strategy = np.zeros_like(model)
    strategy[exact] = answer[ours]
    wanted = respond(LEDUC, Belief(model, hand_share=hands))
    assert winnings(LEDUC, strategy, model) == pytest.approx(wanted.winnings, abs=20 * MILLI)
    assert hands == 1 or ExactSolver(LEDUC).exploitability(strategy) == pytest.approx(
        wanted.exploitability, abs=40 * MILLI
    )


@pytest.mark.parametrize("hands", [0.6, 1.0])
def test_a_model_that_is_sure_in_part_is_answered_alike_in_buckets(hands: float) -> None:
    model = often_folding(LEDUC)
    sure = np.random.default_rng(4).random(len(model))
    ours, exact = rows_of_leduc()
    projected, trusted = np.zeros((LAYOUT.rows, 3), np.float32), np.zeros(LAYOUT.rows, np.float32)
    projected[ours], trusted[ours] = model[exact], sure[exact]
    belief = Belief(projected, hands, trusted)
    answer = respond_in_buckets(LAYOUT, deal_leduc, belief, deals=30 * CHUNK, workers=1).strategy
    strategy = np.zeros_like(model)
    strategy[exact] = answer[ours]
    wanted = respond(LEDUC, Belief(model, hands, sure))
    assert winnings(LEDUC, strategy, model) == pytest.approx(wanted.winnings, abs=20 * MILLI)
    assert ExactSolver(LEDUC).exploitability(strategy) == pytest.approx(wanted.exploitability, abs=40 * MILLI)


def test_the_checkpoint_of_a_counter_to_somebody_else_is_refused(tmp_path: Path) -> None:
    def answered(mix: tuple[int, int, int]) -> np.ndarray:
        belief = Belief(fixed_strategy(LAYOUT, mix), 0.5)
        return respond_in_buckets(LAYOUT, deal_leduc, belief, deals=CHUNK, workers=1, folder=tmp_path).strategy

    first = answered((0, 1, 0))
    assert np.array_equal(answered((0, 1, 0)), first)  # as it was kept
    with pytest.raises(PipelineError, match="checkpoint with another opponent: name"):
        answered((1, 0, 0))
    file = tmp_path / "seat-1" / "checkpoint.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chunks": 2}))
    with pytest.raises(PipelineError, match="past the end of its run"):
        answered((0, 1, 0))


def test_an_agent_is_written_down_decision_by_decision() -> None:
    for game in (KUHN, LEDUC):
        mix = equilibrium(game)
        agent = SmallTeacher("solved", game, mix)
        decisions = [SmallGame(game).row(spot) for spot in SmallGame(game).spots()]
        assert np.array_equal(tabulate(agent.probabilities, game)[decisions], mix[decisions])


def test_the_share_is_chosen_within_the_risk() -> None:
    setting = SmallSetting(LEDUC, Evidence(often_folding(LEDUC)))
    bold, careful = (choose_counter(setting, "rnr", risk=risk) for risk in (1e6, 50.0))
    assert bold.tradeoff.share == 0.98
    assert 30 < careful.tradeoff.exploitability - careful.equilibrium.exploitability <= 50
    assert careful.equilibrium.winnings + 30 < careful.tradeoff.winnings < bold.tradeoff.winnings


@pytest.mark.parametrize("hands", [100, 1_000])
def test_a_data_biased_response_risks_less_than_the_best_one_from_the_same_counts(hands: int, tmp_path: Path) -> None:
    model, prior = often_folding(LEDUC), equilibrium(LEDUC)
    weak = SmallTeacher("weak", LEDUC, model)
    play_match([weak, resolve("@random", LEDUC)], LEDUC, hands=hands, seed=3, log=tmp_path / "match")
    ingest([str(tmp_path)], tmp_path / "rows", options(strength=False), workers=1)
    rows = load_decisions(tmp_path / "rows", ["weak"])
    counts = count_small(LEDUC, rows.rows, rows.action)
    assert counts.sum() == len(rows)
    setting = SmallSetting(LEDUC, estimate_evidence(counts, prior))
    best, biased = (setting.answer(method, 1.0) for method in ("best", "dbr"))
    exact = ExactSolver(LEDUC)
    assert exact.exploitability(biased) <= exact.exploitability(best)
    if hands == 1_000:
        full = respond(LEDUC, Belief(model, hand_share=1.0)).winnings
        assert winnings(LEDUC, biased, model) >= 0.5 * full


def test_a_counter_is_stored_and_plays(tmp_path: Path) -> None:
    out = tmp_path / "counter"
    words = ["counter", "--against", "@call", "--game", LEDUC.name, "--method", "best", "--out", str(out), "--json"]
    found = json.loads(CliRunner().invoke(group, words, catch_exceptions=False).stdout)
    said = json.loads(CliRunner().invoke(group, ["counter", "--judge", "@call", "--game", LEDUC.name, "--json"]).stdout)
    assert said["exact"]
    assert found["winnings"] == pytest.approx(said["exploitability"])
    again = json.loads(
        CliRunner().invoke(group, ["counter", "--judge", str(out), "--json"], catch_exceptions=False).stdout
    )
    assert again["exploitability"] == pytest.approx(found["exploitability"])
    played = play_match([resolve(str(out), LEDUC), resolve("@call", LEDUC)], LEDUC, hands=4_000)
    assert abs(played.mbb_per_hand() - found["winnings"]) < 2 * played.ci95()


def test_a_counter_from_logs(tmp_path: Path) -> None:
    play_match([resolve("@raise", KUHN), resolve("@random", KUHN)], KUHN, hands=400, log=tmp_path / "match")
    ingest([str(tmp_path)], tmp_path / "rows", options(strength=False), workers=1)
    words = ["--data", str(tmp_path / "rows"), "--agent", "raise", "--out", str(tmp_path / "counter")]
    said = CliRunner().invoke(group, ["counter", *words, "--risk", "1000", "--json"], catch_exceptions=False).stdout
    found = json.loads(said)
    assert found["winnings"] > found["equilibrium"]["winnings"] + 100
    assert (tmp_path / "counter" / "manifest.json").is_file()


def test_the_more_often_a_decision_must_be_shown_the_less_the_logs_are_trusted(tmp_path: Path) -> None:
    play_match([resolve("@raise", LEDUC), resolve("@random", LEDUC)], LEDUC, hands=400, log=tmp_path / "match")
    ingest([str(tmp_path)], tmp_path / "rows", options(strength=False), workers=1)
    found = []
    for half in (1.0, 1000.0):
        search = Search(method="dbr", share=1.0, half=half, workers=1)
        setting = against_player(tmp_path / "rows", "raise", search, folder=tmp_path / "work")
        found.append(find_counter(setting, search, tmp_path / str(half), facts={}).json())
    trusting, doubting = found
    assert trusting["winnings"] > doubting["winnings"] > doubting["equilibrium"]["winnings"]
    assert trusting["exploitability"] > doubting["exploitability"] + 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--against", "@call", "--data", "rows", "--agent", "x"], "name the opponent"),
        (["--data", "rows"], "name the opponent"),
        (["--against", "@call", "--game", "kuhn.limit.3p"], "two players"),
        (["--against", "@call", "--game", "holdem.nolimit.2p.reverse_blinds"], "two players"),
        (["--against", "@call", "--game", "leduc.limit.2p", "--share", "2"], "0 to 1"),
        (["--against", "@call", "--game", "leduc.limit.2p", "--method", "best", "--share", "0.3"], "wholly"),
        (["--against", "@call", "--game", "leduc.limit.2p", "--method", "dbr"], "found from logs"),
    ],
)
def test_bad_input_is_a_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["counter", *words, "--out", "nowhere"])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


def test_a_share_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["counter", "--against", "@call", "--game", "leduc.limit.2p", "--share", "nan", "--out", "nowhere"])
    assert ended.value.code == 2
    assert "nan is not a finite number" in capsys.readouterr().err


def _logged(players: list[str], game: Game, hands: int, folder: Path) -> Path:
    """A dataset of a match."""
    match = play_match([resolve(one, game) for one in players], game, hands=hands, seed=1, log=folder / "match")
    ingest(match.logs, folder / "rows", options(strength=False), workers=1)
    return folder / "rows"


@pytest.mark.parametrize(
    ("game", "hands", "agent", "said"),
    [
        (LEDUC, 20, "random", "has 20 hands of random: at least 50 are needed"),
        (builtin("kuhn.limit.3p"), 60, "random", "two players"),
        (LIMIT, 200, "chump-20-0-80", "shows no decision of chump-20-0-80 on the flop"),
        (LIMIT, 200, "fold", "decisions before the flop that"),
        (LEDUC, 60, "nobody", "no decisions of 'nobody'"),
    ],
)
def test_logs_that_tell_too_little_are_a_sentence(
    game: Game, hands: int, agent: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    players = ["@random", "@call", "@fold"][: game.players] if game != LIMIT else ["@chump:20,0,80", "@fold"]
    rows = _logged(players, game, hands, tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["counter", "--data", str(rows), "--agent", agent, "--out", str(tmp_path / "counter")])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "counter").exists()


def test_a_model_without_a_street_and_one_of_another_game_are_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Path(__file__).parents[1] / "fixtures" / "bundles" / "loglinear.zip"
    for words, said in ([], "has no model for the turn"), (["--game", "leduc.limit.2p"], "leduc.limit.2p"):
        with pytest.raises(SystemExit) as ended:
            main(["counter", "--against", str(bundle), *words, "--out", str(tmp_path / "counter")])
        assert ended.value.code == 1
        assert said in capsys.readouterr().err


def test_a_damaged_strategy_of_a_small_game_is_refused(tmp_path: Path) -> None:
    mix = equilibrium(KUHN)
    save_small_strategy(tmp_path / "sound", KUHN, mix, {})
    assert np.array_equal(load_small_strategy(tmp_path / "sound", KUHN), mix)
    wrong = mix.copy()
    wrong[SmallGame(KUHN).row(SmallGame(KUHN).spots()[0])] = 0.7
    save_small_strategy(tmp_path / "sums", KUHN, wrong, {})
    save_small_strategy(tmp_path / "nan", KUHN, np.full_like(mix, np.nan), {})
    save_small_strategy(tmp_path / "shape", KUHN, mix[:-1], {})
    for name in ("sums", "nan", "shape"):
        with pytest.raises(PipelineError):
            load_small_strategy(tmp_path / name, KUHN)
    (tmp_path / "sound" / "strategy.xz").write_bytes(b"damaged")
    with pytest.raises(PipelineError, match="checksum"):
        load_small_strategy(tmp_path / "sound", KUHN)


def _grouped_leduc(start: np.ndarray) -> SharedLearning:
    """Buckets of Leduc that learn for themselves, starting from a strategy of the small game."""
    ours, exact = rows_of_leduc()
    projected = np.zeros((LAYOUT.rows, 3), np.float32)
    projected[ours] = start[exact]
    return SharedLearning(tuple(np.arange(size) for size in LAYOUT.sizes), projected)


def test_learning_by_groups_of_one_bucket_gives_the_exact_answer() -> None:
    model = often_folding(LEDUC)
    ours, exact = rows_of_leduc()
    projected = np.zeros((LAYOUT.rows, 3), np.float32)
    projected[ours] = model[exact]
    answer = best_response(
        LAYOUT, deal_leduc, projected, deals=30 * CHUNK, workers=1, learning=_grouped_leduc(equilibrium(LEDUC))
    )
    strategy = np.zeros_like(model)
    strategy[exact] = answer[ours]
    wanted = respond(LEDUC, Belief(model, hand_share=1.0)).winnings
    assert winnings(LEDUC, strategy, model) == pytest.approx(wanted, abs=10 * MILLI)


def test_buckets_of_a_group_learn_as_one_and_keep_what_they_started_from() -> None:
    learning = SharedLearning((np.zeros(3, int), np.arange(9) // 3), _grouped_leduc(equilibrium(LEDUC)).start)
    sharing = learning.sharing(LAYOUT, 1)
    assert len(np.unique(sharing.regret_row)) == len(sharing.regret_row) // 3
    assert sharing.regret_row.max() + 1 == len(np.unique(sharing.regret_row))
    nobody = best_response(
        LAYOUT,
        deal_leduc,
        learning.start,
        deals=1,
        workers=1,
        learning=SharedLearning(learning.groups, 1e9 * learning.start),
    )
    assert np.array_equal(nobody.argmax(axis=1), learning.start.argmax(axis=1))


def test_centroids_are_grouped_by_likeness_and_every_group_has_members() -> None:
    centroids = np.repeat([[0, 0], [0, 90], [90, 0]], 4, axis=0)
    groups = kmeans_groups(centroids, 3)
    assert len(set(groups)) == 3
    assert all(len(set(groups[at : at + 4])) == 1 for at in (0, 4, 8))
    assert kmeans_groups(centroids, 50).max() < len(centroids)
    assert equal_steps(3, 50).tolist() == [0, 1, 2]


def test_the_more_deals_the_more_groups_until_every_bucket_learns_by_itself() -> None:
    sizes = (169, 1000, 1000, 500)
    centroids = np.repeat(np.arange(1000)[:, None], 8, axis=1)
    for deals, wanted in ((1_000, (50, 50, 30)), (1_000_000, (50, 50, 30)), (4_000_000, (200, 200, 120))):
        starts, flop, turn, river = learning_groups(deals, sizes, (centroids, centroids))
        assert starts.tolist() == list(range(169))
        assert [len(np.unique(street)) for street in (flop, turn, river)] == list(wanted)
    alone = learning_groups(20_000_000, sizes, (centroids, centroids))
    assert [len(np.unique(street)) for street in alone] == list(sizes)


@pytest.mark.parametrize("name", ["bot", "bot.zip"])
def test_a_stored_strategy_ships_and_says_what_it_is(name: str, tmp_path: Path) -> None:
    out, bot = tmp_path / "counter", tmp_path / name
    words = ["counter", "--against", "@raise", "--game", KUHN.name, "--method", "best", "--out", str(out)]
    assert CliRunner().invoke(group, words, catch_exceptions=False).exit_code == 0
    assert CliRunner().invoke(group, ["ship", str(out), "--out", str(bot)], catch_exceptions=False).exit_code == 0
    one, other = resolve(str(out), KUHN), resolve(str(bot), KUHN)
    assert np.array_equal(tabulate(one.probabilities, KUHN), tabulate(other.probabilities, KUHN))
    found = json.loads(CliRunner().invoke(group, ["info", str(bot), "--json", "--verify"]).stdout)
    assert (found["kind"], found["against"], found["games"]) == ("strategy", "raise", [KUHN.name])
    assert found["counter"]["winnings"] == pytest.approx(found["counter"]["curve"][-1]["winnings"])
    said = CliRunner().invoke(group, ["info", str(bot)], catch_exceptions=False).output
    assert "a stored strategy" in said
    assert "raise" in said
    if bot.is_dir():
        readme = (bot / "README.md").read_text()
        assert "start.sh" in readme
        assert "to win from raise" in readme
    again = tmp_path / "again" / name
    assert CliRunner().invoke(group, ["ship", str(bot), "--out", str(again)], catch_exceptions=False).exit_code == 0
    if bot.is_file():
        assert again.read_bytes() == bot.read_bytes()


def test_shipping_refuses_damage_and_the_place_of_something_else(tmp_path: Path) -> None:
    save_small_strategy(tmp_path / "sound", KUHN, equilibrium(KUHN), {"counter": "nonsense", "against": 7})
    assert json.loads(CliRunner().invoke(group, ["info", str(tmp_path / "sound"), "--json"]).stdout)["counter"] is None
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(PipelineError, match="not a stored strategy"):
        ship_strategy(tmp_path / "sound", tmp_path / "full", {})
    with pytest.raises(PipelineError, match="onto itself"):
        ship_strategy(tmp_path / "sound", tmp_path / "sound", {})
    (tmp_path / "sound" / "strategy.xz").write_bytes(b"damaged")
    with pytest.raises(PipelineError, match="checksum"):
        ship_strategy(tmp_path / "sound", tmp_path / "bot", {})
    assert not (tmp_path / "bot").exists()


@pytest.mark.parametrize(
    "harm",
    [
        {"winnings": "many"},
        {"winnings": None},
        {"winnings": 10**400},
        {"exploitability": float("nan")},
        {"equilibrium": {"a": 1}},
        {"equilibrium": [1, 2]},
        {"curve": [{"share": 0, "winnings": float("inf"), "exploitability": 1}]},
        {"curve": None},
    ],
    ids=str,
)
def test_a_damaged_account_of_a_counter_is_neither_shipped_nor_told(
    harm: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = {"share": 0.5, "winnings": 100.0, "exploitability": 20.0}
    for name, counter in ("sound", {**point, "curve": [point]}), ("harmed", {**point, "curve": [point], **harm}):
        facts = {"counter": counter, "against": "call", "seed": float("nan")}
        save_small_strategy(tmp_path / name, KUHN, equilibrium(KUHN), facts)
        said = CliRunner().invoke(group, ["info", str(tmp_path / name), "--json"], catch_exceptions=False).stdout
        found = json.loads(said, parse_constant=pytest.fail)
        assert (found["counter"] is None) == (name == "harmed")
        assert CliRunner().invoke(group, ["info", str(tmp_path / name)]).exit_code == 0
    ship_strategy(tmp_path / "sound", tmp_path / "bot", {})
    assert "| this strategy | 100.0 | 20.0 |" in (tmp_path / "bot" / "README.md").read_text()
    words = ["ship", str(tmp_path / "harmed"), "--out", str(tmp_path / "none")]
    assert "find the counter again" in _refused(words, capsys)
    assert not (tmp_path / "none").exists()


def _refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command ends that refuses its input."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code != 0
    return capsys.readouterr().err.strip().splitlines()[-1]


def _countering(out: Path | str, against: str = "@call") -> list[str]:
    return ["counter", "--against", against, "--game", KUHN.name, "--method", "best", "--out", str(out)]


def test_a_counter_takes_the_place_of_a_strategy_or_an_empty_folder_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("mine")
    for place in ("letters", "letters/letter.txt"):
        assert "is there and is not a stored strategy" in _refused(_countering(tmp_path / place), capsys)
        with pytest.raises(PipelineError, match="is not a stored strategy"):
            find_counter(SmallSetting(KUHN, Evidence(equilibrium(KUHN))), Search(), tmp_path / place, facts={})
    (tmp_path / "empty").mkdir()
    for _ in range(2):
        main_ended = CliRunner().invoke(group, _countering(tmp_path / "empty"), catch_exceptions=False)
        assert main_ended.exit_code == 0
    (tmp_path / "empty" / "letter.txt").write_text("mine")
    assert "holds more than a stored strategy, letter.txt" in _refused(_countering(tmp_path / "empty"), capsys)
    assert (tmp_path / "letters" / "letter.txt").read_text() == (tmp_path / "empty" / "letter.txt").read_text()


def test_a_counter_is_not_written_over_its_opponent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_small_strategy(tmp_path / "sound", KUHN, equilibrium(KUHN), {})
    ship_strategy(tmp_path / "sound", tmp_path / "sound.zip", {})
    for place in (tmp_path / "sound", tmp_path / "sound.zip"):
        for against in (str(place), f"@teacher:{place}"):
            assert "cannot be written onto itself" in _refused(_countering(place, against), capsys)
    inside = str(tmp_path / "sound" / "manifest.json")
    assert "from which it is made" in _refused(_countering(tmp_path / "sound", inside), capsys)
    rows = tmp_path / "rows"
    words = ["counter", "--data", str(rows), "--agent", "x", "--out", str(rows)]
    rows.mkdir()
    assert "cannot be written onto itself" in _refused(words, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["counter", "--out", "x", "--risk", "nan"], "nan is not a finite number"),
        (["counter", "--out", "x", "--risk", "inf"], "inf is not a finite number"),
        (["counter", "--out", "x", "--deals", "1" + 26 * "0"], "1<=x<="),
        (["counter", "--judge", "@call", "--seed", "1" + 20 * "0"], "0<=x<="),
        (["counter", "--judge", "@call", "--hands", "1" + 12 * "0"], "2<=x<="),
        (["counter", "--judge", "@call", "--deals", "1" + 26 * "0"], "1<=x<="),
        (["match", "@call", "@fold", "--hands", "1" + 20 * "0"], "1<=x<="),
    ],
)
def test_numbers_beyond_all_bounds_are_a_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in _refused(words, capsys)


def test_a_risk_without_end_and_a_match_beyond_memory_are_refused() -> None:
    with pytest.raises(PipelineError, match="a finite number from 0 on, not nan"):
        choose_counter(SmallSetting(KUHN, Evidence(equilibrium(KUHN))), "rnr", risk=float("nan"))
    for hands in (10**13, 10**20):
        with pytest.raises(PipelineError, match="play fewer"):
            play_match([resolve("@call", KUHN), resolve("@fold", KUHN)], KUHN, hands=hands)


def test_a_single_deal_has_no_interval_in_json() -> None:
    words = ["counter", "--judge", "@fold", "--game", "holdem.nolimit.2p.reverse_blinds", "--hands", "2"]
    found = json.loads(CliRunner().invoke(group, [*words, "--json"], catch_exceptions=False).stdout)
    assert found["exploitability"] == pytest.approx(750)
    assert found["ci95"] is None
    assert found["at_least"] == 0  # nothing is sure
    text = CliRunner().invoke(group, words, catch_exceptions=False).stdout
    assert "exploitable for 750.0 mbb/h" in text
    assert "single deal" in text
    assert "no bound" in text


def test_the_training_of_a_best_response_tells_how_far_it_has_come() -> None:
    heard: list[tuple[int, int]] = []
    exploitability(
        resolve("@fold", LIMIT), deals=2 * CHUNK, hands=2, table_hands=200, progress=lambda *part: heard.append(part)
    )
    assert heard[-4:] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_picture_does_not_take_the_place_of_the_counter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "counter.svg"
    for picture in (out, out / "curve.svg"):
        said = _refused([*_countering(out), "--picture", str(picture)], capsys)
        assert "name another file" in said
    assert not out.exists()


@pytest.mark.parametrize("out", [".", "/", "", ".."])
def test_a_place_without_a_name_is_a_sentence(out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_small_strategy(tmp_path / "sound", KUHN, equilibrium(KUHN), {})
    bundle = str(Path(__file__).parents[1] / "fixtures" / "bundles" / "loglinear.zip")
    place = ["--out", out]
    for words in (_countering(out), ["ship", str(tmp_path / "sound"), *place]):
        assert "nothing can be written in the place of" in _refused(words, capsys)
    assert _refused(["ship", bundle, *place], capsys).startswith("error: ")
    with pytest.raises(PipelineError, match="nothing can be written"), replacing(out):
        pass


def test_where_answers_are_costly_a_few_shares_are_tried() -> None:
    setting = SmallSetting(LEDUC, Evidence(often_folding(LEDUC)))
    few = choose_counter(replace(setting, costly=True), "rnr", risk=50.0)
    assert few.tradeoff.exploitability <= few.equilibrium.exploitability + 50
    assert len(few.curve) <= 1 + MAX_TRIES
    assert [one.share for one in few.curve] == sorted(one.share for one in few.curve)


@pytest.mark.parametrize("power", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("reached", [0.05, 0.15, 0.5])
@pytest.mark.parametrize("noise", [0, 60, 80])
def test_a_few_shares_come_near_the_allowed_risk(power: float, reached: float, noise: int) -> None:
    found: list[tuple[float, float]] = []
    while (share := next_share(found, 100.0)) is not None:
        found.append((share, noise + (100 - noise) * (share / reached) ** power))
    assert len(found) <= MAX_TRIES
    assert max(risked for _, risked in found if risked <= 100) >= max(noise, 80 if reached > 0.1 else 0)


def test_a_counter_that_risks_nothing_is_trusted_up_to_the_boldest_share_and_without_risk_none_is_tried() -> None:
    found: list[tuple[float, float]] = []
    while (share := next_share(found, 100.0)) is not None:
        found.append((share, -3.0))
    assert [share for share, _ in found] == [0.25, 0.75, 0.95]
    assert next_share([], 0.0) is None


class LeducInBuckets(BucketSetting):
    """Where counters in hold'em are found, for Leduc, whose exact answers are known."""

    @property
    def _dealer(self) -> Dealer:
        return deal_leduc

    def _learning(self, deals: int) -> SharedLearning:
        return SharedLearning(tuple(np.arange(size) for size in LAYOUT.sizes), self.start)

    @property
    def _test_deals(self) -> np.ndarray:  # type: ignore[override]
        deals = np.empty((20_000, 6), np.int16)
        deal_leduc(np.array([9]), deals)
        return deals

    @property
    def _confirming_deals(self) -> np.ndarray:  # type: ignore[override]
        deals = np.empty((20_000, 6), np.int16)
        deal_leduc(np.array([10]), deals)
        return deals


@cache
def leduc_in_buckets() -> LeducInBuckets:
    model, start = (_grouped_leduc(one).start for one in (often_folding(LEDUC), equilibrium(LEDUC)))
    nothing: Any = None
    return LeducInBuckets(LAYOUT, nothing, Evidence(model), start, nothing, 30 * CHUNK, workers=1)


def test_the_search_in_buckets_comes_near_the_risk_and_keeps_what_the_equilibrium_loses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path))
    setting = leduc_in_buckets()
    found = choose_counter(setting, "rnr", risk=100.0)
    exact = SmallSetting(LEDUC, Evidence(often_folding(LEDUC)))
    wanted = exact.measure(exact.answer("rnr", found.tradeoff.share), found.tradeoff.share)
    assert found.tradeoff.exploitability <= found.equilibrium.exploitability + 100
    (chosen,) = (point for point in found.curve if point.share == found.tradeoff.share)
    assert chosen.winnings > found.equilibrium.winnings
    again = setting.confirm(found.strategy, chosen)  # on deals that it was not chosen by
    assert found.tradeoff == again != chosen
    assert found.tradeoff.winnings == pytest.approx(wanted.winnings / LEDUC.big_blind, abs=60)
    (kept,) = (tmp_path / "teacher").iterdir()
    kept.write_bytes(kept.read_bytes()[:-2])  # damaged: found again
    assert setting.measure(setting.start, 0.0) == found.equilibrium
    assert setting.measure(setting.start, 0.0) == found.equilibrium
    other = setting.measure(setting.evidence.model, 0.0)
    assert other.exploitability > found.equilibrium.exploitability + 100


def test_no_strategy_wins_more_than_the_ceiling_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path))
    setting, share, risk = leduc_in_buckets(), 0.6, 200.0
    most = setting.ceiling(share, risk)
    exact = SmallSetting(LEDUC, Evidence(often_folding(LEDUC)))
    tried = [exact.measure(exact.answer("rnr", one), one) for one in (0.5, 0.54, 0.56, 0.6)]
    unit = 1 / LEDUC.big_blind
    within = [one.winnings * unit for one in tried if one.exploitability * unit <= risk]
    assert within
    assert max(within) <= most.mbb + most.ci95
    bound = unit * tried[-1].winnings + (1 - share) / share * (risk - unit * tried[-1].exploitability)
    assert most.mbb == pytest.approx(bound, abs=most.ci95)
    with pytest.raises(PipelineError, match="over 0"):
        setting.ceiling(0.0, risk)


@pytest.mark.parametrize("grouped", [True, False])
def test_an_opponent_who_plays_one_of_two_strategies_is_answered_as_their_mixture(grouped: bool) -> None:
    one, other, share = often_folding(LEDUC), random_strategy(LEDUC, 3), 0.6
    ours, exact = rows_of_leduc()
    first, second = (_grouped_leduc(mix).start for mix in (one, other))
    learning = _grouped_leduc(equilibrium(LEDUC)) if grouped else None
    best = best_response(
        LAYOUT, deal_leduc, first, deals=30 * CHUNK, workers=1, learning=learning, otherwise=(second, share)
    )
    answers = [respond(LEDUC, Belief(mix, hand_share=1.0)).strategy for mix in (one, other)]
    found = np.zeros_like(one)
    found[exact] = best[ours]

    def worth(strategy: np.ndarray) -> float:
        return share * winnings(LEDUC, strategy, one) + (1 - share) * winnings(LEDUC, strategy, other)

    assert worth(found) >= max(worth(answer) for answer in answers) - 5 * MILLI


def test_exploitability_in_no_limit_is_what_the_local_best_response_wins() -> None:
    game = builtin("holdem.nolimit.2p.reverse_blinds")
    found = exploitability(resolve("@call", game), hands=100)
    assert (found.method, found.exact, found.unit) == ("local best response", False, "mbb/h")
    assert found.exploitability - found.ci95 > 5_000


@pytest.mark.parametrize(
    ("agent", "game", "said"),
    [
        ("@call", "holdem.limit.3p", "two players"),
        ("@call", "kuhn.limit.3p", "two players"),
        ("@adaptive", "leduc.limit.2p", "learns from hand to hand"),
    ],
)
def test_who_has_no_strategy_that_could_be_answered_is_refused(agent: str, game: str, said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        exploitability(resolve(agent, builtin(game)), deals=1_000, hands=2)


def test_a_response_that_loses_shows_nothing() -> None:
    found = exploitability(resolve("@teacher", LEDUC))
    assert 0 <= found.exploitability < 1


def test_what_the_command_offers_is_what_the_search_takes() -> None:
    defaults = {one.name: one.default for one in counter_command.params}
    search = Search()
    assert defaults["risk"] == search.risk
    assert COMMAND_METHODS == METHODS
    written = {one.name: one.help for one in counter_command.params if isinstance(one, click.Option)}
    assert f"{search.deals:,}; with --judge {MAX_RESPONSE_DEALS:,}" in written["deals"]
    assert f"{LOCAL_HANDS:,}" in written["hands"]


@pytest.mark.parametrize("name", ["curve.svg", "curve.html"])
def test_the_curve_of_winnings_against_exploitability_is_drawn(name: str, tmp_path: Path) -> None:
    drawn = tmp_path / name
    words = ["--against", "@call", "--game", KUHN.name, "--out", str(tmp_path / "counter"), "--picture", str(drawn)]
    assert CliRunner().invoke(group, ["counter", *words], catch_exceptions=False).exit_code == 0
    text = drawn.read_text()
    assert "Winnings from the model against own exploitability" in text
    assert "kept: trust" in text
