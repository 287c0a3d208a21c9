"""A hand in the terminal."""

from __future__ import annotations

import pytest

from pipeline.acpc import parse_hand
from pipeline.agents import resolve
from pipeline.errors import PipelineError
from pipeline.game import find_game
from pipeline.report.terminal import hand_text

LINE = "STATE:0:rrc/rc/crc/crf:9cKc|7s8d/6dJs5c/7d/Ts:-60|60:slumbot|entropy"


def test_a_hand_is_told_street_by_street() -> None:
    told = hand_text(parse_hand(LINE), find_game("holdem.limit.2p.reverse_blinds"))
    lines = told.splitlines()
    assert lines[1] == "  slumbot (big blind)  9♣ K♣  -60"
    assert [line for line in lines if not line.startswith(" ")] == [
        "hand 0 of holdem.limit.2p.reverse_blinds",
        "preflop",
        "flop  6♦ J♠ 5♣",
        "turn  6♦ J♠ 5♣ 7♦",
        "river  6♦ J♠ 5♣ 7♦ T♠",
    ]
    assert lines[-1].split() == ["slumbot", "folds", "(pot", "140)"]
    assert "  slumbot  bets  (pot 60)" in lines


def test_an_agent_is_asked_at_every_decision() -> None:
    game = find_game("holdem.limit.2p.reverse_blinds")
    told = hand_text(parse_hand(LINE), game, [("@call", resolve("@call", game))])
    assert told.count("c 100") == 11


def test_a_hand_of_another_game_is_refused() -> None:
    with pytest.raises(PipelineError, match="2 players"):
        hand_text(parse_hand(LINE), find_game("holdem.limit.3p"))
