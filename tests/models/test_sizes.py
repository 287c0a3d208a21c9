"""The amounts that agents bet: always legal, found again from their logs, in agreement with the labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.agents.guests import Guest
from pipeline.agents.names import resolve
from pipeline.agents.predictions import predict
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.match import play_match
from pipeline.arena.wire.player import Player
from pipeline.dataset.decisions import observation
from pipeline.dataset.load import load_decisions, select_rows
from pipeline.evaluation.findings import bettings_of
from pipeline.evaluation.samples import read_samples
from pipeline.evaluation.sizing import SIZE_EDGES, size_curves, size_measures
from pipeline.ingestion.options import Options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import Bundle, load_bundle, save_bundle
from pipeline.models.policy import Policy
from pipeline.models.sizes import Amounts, Sizes, SizeTable, draw_amounts, fixed_amounts, no_sizes, raised_by
from pipeline.poker.game import Game, builtin
from pipeline.poker.rules import ALL_IN, RAISE
from pipeline.runtime.arrays import write_arrays
from pipeline.runtime.errors import PipelineError
from pipeline.training.sizing import fit_sizes, raises_of

NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
NOLIMIT3 = builtin("holdem.nolimit.3p")
GAMES = [NOLIMIT, NOLIMIT3, replace(NOLIMIT, stacks=(350, 1234)), replace(NOLIMIT3, stacks=(20, 5000, 777))]


def situations(game: Game, seed: int, count: int = 20):
    """Random states of a game with what the player to act sees."""
    luck = np.random.default_rng(seed)
    deck = luck.permutation(52)
    state = game.start()
    for _ in range(count):
        if state.finished:
            state = game.start()
        row = observation(game, state.betting, state.actor, deck[:2], deck[2 : 2 + game.visible(state.round)])
        yield state, row
        low, high = state.raise_range
        if high > 0 and luck.random() < 0.6:
            state = state.apply(2, int(low + (high - low) * luck.random() ** 3))
        else:
            state = state.apply(1)


class Uniform:
    """Takes every legal label alike."""

    def predict(self, rows):
        return np.ones((len(rows), 7))


def random_sizes(game: Game, seed: int) -> Sizes:
    """Amounts that make no sense, in all units, for whatever contexts some rows have."""
    luck = np.random.default_rng(seed)
    rows = np.concatenate([row for _, row in situations(game, seed, 40)])
    labels = luck.integers(RAISE, ALL_IN, len(rows))
    totals = luck.integers(1, max(game.stacks) + 1, len(rows))
    made = fit_sizes(game, np.repeat(rows, 2), np.repeat(labels, 2), np.repeat(totals, 2))
    made = made or no_sizes(game)
    table = made.table._replace(
        units=luck.integers(0, 5, len(made.table.units)).astype(np.uint8),
        values=made.table.values * luck.choice([0.0, 0.5, 1.0, 40.0], len(made.table.values)),
    )
    return replace(made, table=table)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(GAMES))
def test_amounts_are_legal_agree_with_their_label_and_are_never_just_short_of_all_in(seed: int, game: Game) -> None:
    sizes = random_sizes(game, seed)
    policy = Policy("random", game, (Uniform(),) * 4, sizes=sizes, all_in=sizes)
    for state, row in situations(game, seed):
        mix = policy.probabilities(row)[0]
        assert abs(mix.sum() - 1) < 1e-9
        for label in np.flatnonzero(mix):
            assert state.legal_labels >> label & 1
            found = policy.amounts(row, np.array([label]))
            assert found is not None
            if not RAISE <= label < ALL_IN:
                assert len(found.by) == 0
                continue
            by = [*found.by.tolist(), *([] if len(found.by) else [-1])]
            for one in by:
                action, size = state.choose(int(label), one)
                assert state.is_legal(action, size)
                assert state.label_of(action, size) == label
                assert game.stacks[state.actor] - size >= 2, (state.betting, size)
            assert len(found.by) == 0 or abs(found.share.sum() - 1) < 1e-9


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(GAMES))
def test_the_fixed_amounts_of_rows_are_those_of_the_rules(seed: int, game: Game) -> None:
    for state, row in situations(game, seed):
        for label in range(RAISE, ALL_IN):
            if state.legal_labels >> label & 1:
                by = int(fixed_amounts(row, np.array([label]))[0])
                assert state.choose(label, by) == state.choose(label)


class Known:
    """Raises in a known way: 300 before the flop, 0.7 pots on the flop, three times the bet faced later or 0.9 pots."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, situation):
        after = situation.pot + situation.to_call
        total = situation.spent + situation.to_call
        if "h" not in situation.legal and "p" not in situation.legal:
            return "c"
        if situation.street == 0:
            return {"r300": 0.5, "c": 0.5} if situation.to_call < 200 else "c"
        if situation.street == 1:
            return {f"r{total + round(0.7 * after)}": 0.6, "c": 0.4}
        if situation.to_call:
            return {f"r{total + 2 * situation.to_call}": 0.3, "c": 0.7}
        return {f"r{total + round(0.9 * after)}": 0.5, "c": 0.5}


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> tuple[Path, Sizes]:
    """A dataset of an agent with known sizes, and the table made from it."""
    folder = tmp_path_factory.mktemp("sizes")
    agents = [Guest("known", NOLIMIT, "python:known", Known(NOLIMIT)), resolve("@random", NOLIMIT)]
    play_match(agents, NOLIMIT, hands=3000, seed=5, log=folder / "known", workers=1)
    ingest(sorted(folder.glob("*.log")), folder / "data", Options(strength=False))
    sizes = fit_sizes(NOLIMIT, *raises_of(piece for _, piece in select_rows(folder / "data", ["known"]).pieces()))
    assert sizes is not None
    return folder / "data", sizes


def test_the_amounts_of_an_agent_with_known_sizes_are_found_again(known) -> None:
    data, sizes = known
    held = load_decisions(data, ["known"], side="validation")
    raised = (held.action >= RAISE) & (held.action < ALL_IN)
    rows, by = held.rows[raised], raised_by(NOLIMIT, held.rows[raised], held.amount[raised])
    found = sizes.amounts(rows, held.action[raised], whole_mix=True)
    played = draw_amounts(found, np.random.default_rng(0).random(len(rows)))
    assert len(rows) > 200
    assert (played == by).mean() > 0.95
    assert np.abs((played - by) / (rows["pot"] + rows["to_call"])).mean() < 0.01


def test_a_line_never_seen_falls_back_on_what_the_agent_does_elsewhere(known) -> None:
    _, sizes = known
    row = observation(NOLIMIT, "r260c/c", 1, [0, 1], [8, 13, 22])
    found = sizes.amounts(row, np.array([3]))
    assert found.by.tolist() == [round(0.7 * 520)]


def test_the_amounts_of_a_bundle_are_played_predicted_and_kept(known, tmp_path) -> None:
    _, sizes = known
    fixed = Bundle(NOLIMIT, tuple(NOLIMIT.labels), ("known",), (), {})
    save_bundle(tmp_path / "b", replace(fixed, sizes=sizes))
    opened = load_bundle(tmp_path / "b").sizes
    assert opened is not None
    for before, after in zip(sizes.table, opened.table, strict=True):
        assert (before == after).all()
    assert opened.about == sizes.about
    policy = Policy("p", NOLIMIT, (Halves(),) * 4, sizes=opened, all_in=opened)
    block = HandBlock.dealt(NOLIMIT, 3, 0, 500, seatings(2), False)
    block.play([policy, policy])
    flop = block.hands.sizes[:, 2][(block.hands.labels[:, :2] == 2).all(axis=1) & (block.hands.labels[:, 2] == 4)]
    assert set(flop.tolist()) == {100 + 140}
    state = "MATCHSTATE:0:0:cc/:AsKd|/7c2h9s"
    [said] = predict([policy], state)
    assert said.amounts[3] == 240
    assert said.sizes == [{"label": "h", "amount": 240, "probability": 0.5}]
    answers = {Player(policy, seed).decide(Player(policy, seed).hear(state)).rpartition(":")[2] for seed in range(20)}
    assert answers == {"c", "r240"}


class TwoAmounts:
    """Bets 100 or 300 more than the highest bet."""

    game = NOLIMIT

    def amounts(self, rows, labels):
        count = len(rows)
        return Amounts(np.arange(count + 1) * 2, np.tile([300, 100], count), np.tile([0.25, 0.75], count))


def test_amounts_are_scored_by_hit_error_and_crps(known) -> None:
    data, sizes = known
    [sample] = read_samples(data, ["known"])
    raised = (sample.taken >= RAISE) & (sample.taken < ALL_IN)
    after = (sample.rows["pot"] + sample.rows["to_call"])[raised]
    by = raised_by(NOLIMIT, sample.rows[raised], sample.amount[raised])
    fixed = fixed_amounts(sample.rows[raised], sample.taken[raised])
    found = size_measures(Policy("p", NOLIMIT, ()), sample)
    assert np.isnan(found["size_error"][~raised]).all()
    np.testing.assert_allclose(found["size_error"][raised], np.abs(fixed - by) / after)
    np.testing.assert_allclose(found["size_crps"][raised], np.abs(fixed - by) / after)
    learned = size_measures(Policy("p", NOLIMIT, (), sizes=sizes), sample)
    assert np.nanmean(learned["size_hit"]) > 0.95 > np.nanmean(found["size_hit"])
    two = size_measures(TwoAmounts(), sample)
    np.testing.assert_array_equal(two["size_hit"][raised], by == 100)
    np.testing.assert_allclose(two["size_error"][raised], np.abs(by - 100) / after)
    expected = 0.75 * np.abs(by - 100) + 0.25 * np.abs(by - 300) - 0.75 * 0.25 * 200
    np.testing.assert_allclose(two["size_crps"][raised], expected / after, atol=1e-12)


def test_the_sizes_of_a_copy_are_drawn_beside_those_of_its_agent(known) -> None:
    data, sizes = known
    [sample] = read_samples(data, ["known"])
    mix = np.eye(7)[sample.taken.astype(int)]
    curves = size_curves(Policy("p", NOLIMIT, (), sizes=sizes), mix, sample)
    assert [curve.street for curve in curves] == ["preflop", "flop", "turn", "river"]
    for curve in curves:
        assert (np.diff(curve.taken) >= 0).all()
        np.testing.assert_allclose(curve.played, curve.taken, atol=0.05)
    flop = curves[1]
    at = SIZE_EDGES.tolist().index(0.7)
    assert flop.taken[at - 1] < 0.1
    assert flop.taken[at + 1] > 0.9


def test_every_decision_of_a_hand_is_told_with_its_amounts(known) -> None:
    data, _ = known
    [sample] = read_samples(data, ["known"])
    _, first, count = np.unique(sample.hand, return_index=True, return_counts=True)
    row = int(first[count > 1][0])
    rows = np.flatnonzero(sample.hand == sample.hand[row]).tolist()
    found = bettings_of(data, sample, rows)
    assert len(rows) > 1
    assert found.keys() == set(rows)
    assert len(set(found.values())) == 1


class Halves:
    """Checks or bets half the pot."""

    def predict(self, rows):
        return np.tile([0, 0.5, 0, 0.5, 0, 0, 0], (len(rows), 1))


@pytest.mark.parametrize(
    "change",
    [
        {"keys": np.array([5, 5], np.uint64)},
        {"keys": np.array([1.0, 2.0])},
        {"starts": np.array([0, 2, 9])},
        {"starts": np.array([0, 0, 3])},
        {"units": np.array([0, 5], np.uint8)},
        {"values": np.array([1.0, np.nan, 2.0])},
        {"values": np.array([1.0, -1.0, 2.0])},
        {"shares": np.array([0.5, 0.4, 1.0])},
        {"shares": np.array([0.5, 0.5])},
        {"shares": np.array([1.0, 0.0, 1.0])},
    ],
)
def test_a_damaged_table_of_amounts_is_refused(change, tmp_path) -> None:
    arrays = {
        "keys": np.array([3, 7], np.uint64),
        "starts": np.array([0, 2, 3]),
        "units": np.array([0, 1], np.uint8),
        "values": np.array([0.5, 1.0, 2.0]),
        "shares": np.array([0.5, 0.5, 1.0]),
    }
    sound = Sizes(SizeTable(**arrays), np.array(NOLIMIT.stacks))
    assert Sizes.load(sound.to_json(), sound.to_arrays(), NOLIMIT).table.keys.tolist() == [3, 7]
    with pytest.raises(ValueError, match=r"keys|starts|units|values|shares|amounts"):
        Sizes.load(sound.to_json(), arrays | change, NOLIMIT)
    broken = replace(sound, table=SizeTable(**(arrays | change)))
    save_bundle(tmp_path / "b", Bundle(NOLIMIT, tuple(NOLIMIT.labels), (), (), {}, sizes=broken))
    with pytest.raises(PipelineError, match="train it again"):
        load_bundle(tmp_path / "b")


def test_amounts_belong_to_no_limit_games() -> None:
    limit = builtin("holdem.limit.2p.reverse_blinds")
    empty = no_sizes(NOLIMIT)
    with pytest.raises(ValueError, match="without them"):
        Sizes.load(empty.to_json(), empty.to_arrays(), limit)


class Names:
    """Answers with totals for every label."""

    def probabilities(self, rows):
        legal = rows["legal"][:, None] >> np.arange(7) & 1
        return legal / legal.sum(axis=1, keepdims=True)

    def amounts(self, rows, labels):
        return [{500: 1.0, 700: 1.0} if label == 3 else 10**8 if label == 4 else None for label in labels]


def test_a_guest_names_totals() -> None:
    guest = Guest("g", NOLIMIT, "python:g", Names())
    row = observation(NOLIMIT, "r300c/", 0, [0, 1], [8, 13, 22])
    found = guest.amounts(np.concatenate([row] * 3), np.array([3, 4, 5]))
    assert found is not None
    assert found.starts.tolist() == [0, 2, 3, 3]
    assert found.by.tolist() == [200, 400, 10**8 - 300]
    assert found.share.tolist() == [0.5, 0.5, 1.0]
    block = HandBlock.dealt(NOLIMIT, 1, 0, 200, seatings(2), False)
    block.play([guest, guest])
    bot = Guest("k", NOLIMIT, "python:k", Known(NOLIMIT))
    mix = bot.probabilities(row)[0]
    assert mix.tolist() == [0, 0.4, 0, 0.6, 0, 0, 0]
    assert bot.amounts(row, np.array([3])).by.tolist() == [420]


def test_a_guest_that_names_nonsense_is_told_so() -> None:
    class Wrong(Names):
        def amounts(self, rows, labels):
            return ["much"] * len(rows)

    row = observation(NOLIMIT, "", 1, [0, 1])
    with pytest.raises(PipelineError, match="python:w names no amounts"):
        Guest("w", NOLIMIT, "python:w", Wrong()).amounts(row, np.array([3]))


def test_damaged_arrays_do_not_pass_for_amounts(tmp_path) -> None:
    empty = no_sizes(NOLIMIT)
    save_bundle(tmp_path / "b", Bundle(NOLIMIT, tuple(NOLIMIT.labels), (), (), {}, sizes=empty))
    write_arrays(tmp_path / "b" / "sizes.safetensors", {"keys": np.zeros(1)})
    with pytest.raises(PipelineError, match="damaged"):
        load_bundle(tmp_path / "b")


def test_a_sample_of_a_game_for_three_is_played_by_agents_that_play_it() -> None:
    from pipeline.arena.sampling import AGAINST, DEFAULT_AGENTS, able_to_play

    assert able_to_play(DEFAULT_AGENTS, NOLIMIT3)[0] == "@equity"
    assert able_to_play(DEFAULT_AGENTS, builtin("holdem.limit.2p.reverse_blinds"))[0] == "@teacher"
    assert {"@random", "@call"} <= set(able_to_play(AGAINST, NOLIMIT3))


def test_a_context_with_more_amounts_than_any_training_finds_is_refused() -> None:
    count = 1_001
    values, shares = np.arange(count, dtype=np.float64), np.full(count, 1 / count)
    table = SizeTable(np.array([3], np.uint64), np.array([0, count]), np.zeros(1, np.uint8), values, shares)
    crafted = Sizes(table, np.array(NOLIMIT.stacks))
    with pytest.raises(ValueError, match="more than 1000 amounts"):
        Sizes.load(crafted.to_json(), crafted.to_arrays(), NOLIMIT)
