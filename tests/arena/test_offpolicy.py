"""Off-policy estimates: exact expectations in Kuhn, and what logs of Leduc say of a strategy that never played."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest

from pipeline.agents.names import resolve
from pipeline.agents.protocol import EstimatedMixes
from pipeline.arena import offpolicy
from pipeline.arena.adjusting import block_records
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.match import play_match
from pipeline.arena.offpolicy import estimate_off_policy, weigh_hands
from pipeline.arena.variance.records import HandRecords
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import Game, builtin
from pipeline.poker.rules import S_ACTOR, S_FINISHED
from pipeline.runtime.errors import PipelineError
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.counter import winnings
from pipeline.solving.groups import from_small_game, small_layout
from pipeline.solving.hindsight import HindsightEstimator, ObservedHands, pack_sketches, small_cards
from pipeline.solving.lookup import SmallTeacher
from pipeline.solving.small import SmallGame

KUHN, LEDUC = builtin("kuhn.limit.2p"), builtin("leduc.limit.2p")


@cache
def equilibrium(game: Game) -> np.ndarray:
    solver = ExactSolver(game)
    solver.run(500)
    return solver.strategy()


def random_mix(game: Game, seed: int) -> np.ndarray:
    small = SmallGame(game)
    legal = np.repeat(small.tree.child >= 0, small.infos, axis=0)
    mix = (0.1 + np.random.default_rng(seed).random(legal.shape)) * legal
    total = mix.sum(axis=1, keepdims=True)
    return np.where(total > 0, mix / np.where(total > 0, total, 1), 0.0)


def mix_with_raises(mix: np.ndarray) -> np.ndarray:
    """Return which decisions of Kuhn poker may raise."""
    small = SmallGame(KUHN)
    return np.repeat(small.tree.child[:, 2] >= 0, small.infos) & (mix.sum(axis=1) > 0)


def every_hand(mixes: tuple[np.ndarray, np.ndarray], number: int) -> tuple[HandRecords, np.ndarray]:
    """All hands of Kuhn poker with player `number` at position 0, and how likely each is by the positions' mixes."""
    small = SmallGame(KUHN)
    tree, deck = small.tree, [int(card) for card in KUHN.deck]
    rows: list[tuple[tuple[int, int], list[int], float]] = []
    for cards in permutations(deck, 2):
        pending: list[tuple[int, list[int], float]] = [(0, [], 1 / 6)]
        while pending:
            node, labels, chance = pending.pop()
            if tree.states[node, S_FINISHED] != 0:
                rows.append((cards, labels, chance))
                continue
            actor = int(tree.states[node, S_ACTOR])
            at = small.row_at(node, (cards[actor] >> 2) - (13 - KUHN.ranks), -1)
            for label, child in enumerate(tree.child[node].tolist()):
                if child >= 0:
                    pending.append((child, [*labels, label + 1], chance * float(mixes[actor][at, label])))
    count, longest = len(rows), max(len(labels) for _, labels, _ in rows)
    hole, played = np.full((count, 2, 2), NO_CARD, np.uint8), np.zeros((count, longest), np.uint8)
    for i, (cards, labels, _) in enumerate(rows):
        hole[i, :, 0] = cards
        played[i, : len(labels)] = labels
    seats = np.tile([number, 1 - number], (count, 1))
    records = HandRecords(
        KUHN,
        hole,
        np.full((count, 5), NO_CARD, np.uint8),
        played,
        np.zeros(played.shape, np.int64),
        np.zeros((count, 2)),
        seats,
        np.arange(count, dtype=np.uint64),
        np.arange(count, dtype=np.uint64),
    )
    return records, np.array([chance for _, _, chance in rows])


@pytest.mark.parametrize("holdings_each", [1, 6])
@pytest.mark.parametrize("position", [0, 1])
def test_the_expectation_is_what_the_target_wins_exactly(position: int, holdings_each: int) -> None:
    behaviour, target, opponent = (random_mix(KUHN, seed) for seed in (1, 2, 3))
    mixes = (behaviour, opponent) if position == 0 else (opponent, behaviour)
    records, chance = every_hand(mixes, 0)
    agents = [SmallTeacher(name, KUHN, mix) for name, mix in (("target", target), ("behaviour", behaviour))]
    won, weights = weigh_hands(records, position, *agents, holdings_each=holdings_each)
    assert chance.sum() == pytest.approx(1)
    assert (chance * weights).sum() == pytest.approx(1, abs=1e-12)
    there = [every_hand(pair, 0) for pair in ((target, opponent), (opponent, target))][position]
    mine = SmallTeacher("target", KUHN, target)
    exact = (there[1] * weigh_hands(there[0], position, mine, mine, holdings_each=1)[0]).sum()
    assert (chance * won).sum() == pytest.approx(exact, abs=1e-12)
    if position == 0:
        other = every_hand((opponent, target), 0)
        second = (other[1] * weigh_hands(other[0], 1, mine, mine, holdings_each=1)[0]).sum()
        assert (exact + second) / 2 == pytest.approx(winnings(KUHN, target, opponent), abs=1e-12)


def played(first: np.ndarray, second: np.ndarray, hands: int) -> HandRecords:
    block = HandBlock.dealt(LEDUC, 5, 0, hands // 2, seatings(2), False)
    block.play([SmallTeacher("first", LEDUC, first), SmallTeacher("second", LEDUC, second)], keep=True)
    return block_records(block, 5)


def test_logs_of_leduc_tell_what_another_strategy_would_have_won() -> None:
    behaviour, opponent, target = random_mix(LEDUC, 1), random_mix(LEDUC, 2), equilibrium(LEDUC)
    records = played(behaviour, opponent, 8_000)
    agents = [SmallTeacher("target", LEDUC, target), SmallTeacher("behaviour", LEDUC, behaviour)]
    exact = 1000 * winnings(LEDUC, target, opponent) / LEDUC.big_blind
    alone, all_hands = (estimate_off_policy(records, 0, *agents, holdings_each=count) for count in (1, 8))
    for found in (alone, all_hands):
        assert abs(found.mean - exact) < 1.7 * found.ci95
        assert abs(found.normalised - exact) < 1.7 * found.normalised_ci95
        assert 0 < found.effective <= found.hands == 8_000
    assert all_hands.effective > 1.3 * alone.effective
    assert all_hands.ci95 < 0.9 * alone.ci95


def test_a_player_judged_in_its_own_place_won_what_it_won() -> None:
    behaviour, opponent = random_mix(LEDUC, 1), random_mix(LEDUC, 2)
    records = played(behaviour, opponent, 1_000)
    agent = SmallTeacher("self", LEDUC, behaviour)
    found = estimate_off_policy(records, 0, agent, agent, holdings_each=1)
    chips = np.take_along_axis(records.payoffs, np.argmax(records.seats == 0, axis=1)[:, None], axis=1)
    assert found.mean == pytest.approx(1000 * chips.mean() / LEDUC.big_blind)
    assert found.weight == pytest.approx(1)
    assert found.effective == pytest.approx(1_000)


def test_hands_that_the_behaviour_cannot_have_played_are_refused() -> None:
    records = played(random_mix(LEDUC, 1), random_mix(LEDUC, 2), 200)
    with pytest.raises(PipelineError, match="cannot have been played by call"):
        estimate_off_policy(records, 0, resolve("@random", LEDUC), resolve("@call", LEDUC))
    with pytest.raises(PipelineError, match="at least two hands"):
        estimate_off_policy(records.take(slice(0, 1)), 0, resolve("@random", LEDUC), resolve("@random", LEDUC))


def test_a_hand_that_is_refused_is_numbered_in_all_the_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offpolicy, "HANDS_AT_ONCE", 10)
    records = played(random_mix(LEDUC, 1), random_mix(LEDUC, 2), 40)
    labels = records.labels.copy()
    labels[:, :] = 0
    labels[:, :2] = 2, 2  # everybody checks, but for one hand
    labels[23, :2] = 3, 1
    with pytest.raises(PipelineError, match="hand 24 of the logs cannot have been played by call"):
        estimate_off_policy(
            replace(records, labels=labels), 0, resolve("@random", LEDUC), resolve("@call", LEDUC), holdings_each=8
        )


def test_agents_without_probabilities_are_refused() -> None:
    records = played(random_mix(LEDUC, 1), random_mix(LEDUC, 2), 40)
    drawing = EstimatedMixes(resolve("@random", LEDUC))
    with pytest.raises(PipelineError, match="random gives no probabilities"):
        estimate_off_policy(records, 0, drawing, resolve("@random", LEDUC))


def test_estimates_agree_with_a_match_that_the_target_plays() -> None:
    behaviour, opponent, target = random_mix(LEDUC, 1), random_mix(LEDUC, 2), random_mix(LEDUC, 4)
    records = played(behaviour, opponent, 8_000)
    mine = SmallTeacher("target", LEDUC, target)
    found = estimate_off_policy(records, 0, mine, SmallTeacher("behaviour", LEDUC, behaviour), holdings_each=8)
    match = play_match([mine, SmallTeacher("opponent", LEDUC, opponent)], LEDUC, hands=8_000)
    assert abs(found.normalised - match.mbb_per_hand()) < 1.7 * (found.normalised_ci95 + match.ci95())


def test_hindsight_is_unbiased_without_a_largest_weight_and_too_small_with_one() -> None:
    timid, bold, opponent = (np.rint(250 * random_mix(KUHN, seed)) / 250 for seed in (1, 2, 3))
    for mix in (timid, bold, opponent):
        mix[:, 1] = np.where(mix.sum(axis=1) > 0, 1 - mix[:, 0] - mix[:, 2], 0.0)
    legal = mix_with_raises(timid)
    timid[legal, 1], timid[legal, 2] = 249 / 250 - timid[legal, 0], 1 / 250  # it hardly ever bets
    bold[legal, 1], bold[legal, 2] = 0.04, 0.96 - bold[legal, 0]
    layout = small_layout(KUHN)
    members, known = (
        pack_sketches([from_small_game(layout, mix) for mix in mixes]) for mixes in ((timid, bold), (opponent,))
    )
    records, chance = every_hand((timid, opponent), 0)
    hands = ObservedHands(np.zeros(len(records), np.uint8), records.labels, records.hole, records.board)
    exact_hands, exact_chance = every_hand((bold, opponent), 0)
    mine = SmallTeacher("bold", KUHN, bold)
    exact = (exact_chance * weigh_hands(exact_hands, 0, mine, mine, holdings_each=1)[0]).sum()
    _, won, weight = HindsightEstimator(layout, small_cards(layout), known, members, float("inf")).estimate(hands, 0)
    assert (chance * weight[:, 1]).sum() == pytest.approx(1, abs=1e-5)
    assert (chance * won[:, 1]).sum() == pytest.approx(exact, abs=1e-5)
    _, clipped, weight = HindsightEstimator(layout, small_cards(layout), known, members).estimate(hands, 0)
    assert (chance * weight[:, 1]).sum() < 0.9
    assert (np.abs(clipped) <= np.abs(won) + 1e-12).all()
    assert (chance * np.abs(clipped[:, 1])).sum() < 0.9 * (chance * np.abs(won[:, 1])).sum()
