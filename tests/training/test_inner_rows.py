"""Inner rows: how training rows are divided to choose on, and that validation rows choose nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from played_histories import random_history

from pipeline.dataset.load import load_decisions
from pipeline.features.patterns import parse_pattern
from pipeline.formats.histories.notation import histories_text
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.runtime.numeric import hash_name
from pipeline.training.inner import InnerSplit, choose_inner, count_inner, hash_groups, split_inner
from pipeline.training.rows import LEAST_PLAYERS, read_examples

BETTING = parse_pattern("legal\nbetting")


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    """Hands of sixty people, one in ten of whom is held out."""
    folder = tmp_path_factory.mktemp("people")
    hands = [random_history(number, 0.0) for number in range(300)]
    hands = [
        replace(hand, players=tuple(f"player {(number * 7 + p) % 60}" for p in range(hand.count)), hand=str(number))
        for number, hand in enumerate(hands)
        if hand.nolimit
    ]
    (folder / "all.phhs").write_text("".join(histories_text(hands)))
    ingest([folder / "all.phhs"], folder / "rows", options(strength=False, hold_out="players"))
    return folder / "rows"


def test_inner_rows_are_those_of_whole_players_where_players_are_held_out(people):
    """Choices would else be made on players that the model has seen, and be scored on players that it has not."""
    game = load_decisions(people).game.name
    train, _ = read_examples(people, (), (0,), game, pattern=BETTING)
    known = load_decisions(people, None, ["preflop"], "train")
    rows_of_player = {hash_name(name): int((known.agent == at).sum()) for at, name in enumerate(known.agents)}
    inner = choose_inner(train.groups)
    sides = [
        {player: int((train.groups[side] == player).sum()) for player in rows_of_player} for side in (inner, ~inner)
    ]
    for player, rows in rows_of_player.items():
        assert sorted(side[player] for side in sides) == [0, rows]
    assert 0 < inner.sum() < len(inner)


def test_inner_rows_of_few_players_are_chosen_by_deal(people):
    known = load_decisions(people)
    some = known.agents[: LEAST_PLAYERS - 1]
    train, validation = read_examples(people, some, (0,), known.game.name, pattern=BETTING)
    deals = load_decisions(people, some, ["preflop"]).deal
    assert set(train.groups.tolist()) | set(validation.groups.tolist()) == set(deals.tolist())


def test_ten_groups_are_enough_to_hold_one_out_and_rows_in_parts_are_divided_alike():
    for seed in range(20):
        group = np.random.default_rng(seed).integers(1 << 60, size=12).astype(np.uint64).repeat(3)
        inner = choose_inner(group, 20)
        assert 0 < inner.sum() < len(group)
        assert (inner.reshape(-1, 3) == inner.reshape(-1, 3)[:, :1]).all()
        numbers = hash_groups(group)
        split = split_inner([count_inner(numbers[:30]), count_inner(numbers[30:])], 20)
        assert isinstance(split, InnerSplit)
        assert (split.chosen(numbers) == inner).all()
    assert not choose_inner(np.zeros(5)).any()
