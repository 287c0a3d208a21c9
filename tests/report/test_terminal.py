"""A hand in the terminal."""

from __future__ import annotations

import pytest

from pipeline.agents.names import resolve
from pipeline.evaluation.hand_story import replay_hand
from pipeline.formats.acpc import parse_hand
from pipeline.poker.game import find_game
from pipeline.report.terminal import hand_text
from pipeline.runtime.errors import PipelineError

LIMIT = "holdem.limit.2p.reverse_blinds"
FOLDED = "STATE:0:rrc/rc/crc/crf:9cKc|7s8d/6dJs5c/7d/Ts:-60|60:slumbot|entropy"
SHOWN = "STATE:7:cc/cc/rc/cc:9cKc|7s8d/6dJs5c/7d/Ts:-30|30:slumbot|entropy"


def lines(line: str, game: str = LIMIT, *agents: str) -> list[str]:
    played = find_game(game)
    return hand_text(
        replay_hand(parse_hand(line), played, [(name, resolve(name, played)) for name in agents])
    ).splitlines()


def test_a_hand_is_told_street_by_street() -> None:
    told = lines(FOLDED)
    assert told[1].split() == ["slumbot", "(big", "blind)", "9♣", "K♣", "-60"]
    assert [line for line in told if not line.startswith(" ")] == [
        "hand 0 of holdem.limit.2p.reverse_blinds",
        "preflop",
        "flop  6♦ J♠ 5♣",
        "turn  6♦ J♠ 5♣ 7♦",
        "river  6♦ J♠ 5♣ 7♦ T♠",
        "entropy wins 60: slumbot folded",
    ]


def test_the_pot_is_that_after_the_action() -> None:
    told = [" ".join(line.split()) for line in lines(FOLDED) if "pot" in line]
    assert told[:5] == [
        "entropy (button) raises to 20 pot 30",
        "slumbot (big blind) raises to 30 pot 50",
        "entropy (button) calls 10 pot 60",
        "slumbot (big blind) bets 10 pot 70",
        "entropy (button) calls 10 pot 80",
    ]
    assert told[-1] == "slumbot (big blind) folds pot 140"


def test_a_raise_is_to_the_total_of_its_street() -> None:
    told = [" ".join(line.split()) for line in lines("STATE:1:rc/rrc/cc/cc:9cKc|7s8d/6dJs5c/7d/Ts:-40|40:a|b")]
    assert "b (button) raises to 20 pot 70" in told
    nolimit = "STATE:1:r300c/r600r1500c/cc/cc:9cKc|7s8d/6dJs5c/7d/Ts:-1500|1500:a|b"
    told = [" ".join(line.split()) for line in lines(nolimit, "holdem.nolimit.2p.reverse_blinds")]
    assert "a (big blind) bets 300 pot 900" in told
    assert "b (button) raises to 1200 pot 2100" in told


def test_a_showdown_names_the_hands_and_the_winner() -> None:
    told = lines(SHOWN)
    assert told[-4] == "showdown  6♦ J♠ 5♣ 7♦ T♠"
    assert told[-2].split()[:4] == ["entropy", "(button)", "7♠", "8♦"]
    assert "Pair" in told[-2]
    assert told[-1].startswith("entropy wins 30 with ")
    split = lines("STATE:3:cc/cc/cc/cc:2c3d|2d3c/TsJsQs/Ks/As:0|0:a|b")
    assert split[-1] == "the pot is split"


def test_an_agent_is_asked_at_every_decision_and_is_no_seat() -> None:
    told = lines(FOLDED, LIMIT, "@call")
    asked = [line for line in told if "c 100" in line]
    assert len(asked) == 11
    assert all(line.startswith("      → @call would play") for line in asked)


def test_the_story_is_an_object_for_programs() -> None:
    game = find_game(LIMIT)
    found = replay_hand(parse_hand(SHOWN), game, [("@call", resolve("@call", game))]).json()
    assert found["winners"] == ["entropy"]
    assert found["labels"] == ["f", "c", "r"]
    assert found["decisions"][0]["mixes"]["@call"] == {"f": 0.0, "c": 1.0, "r": 0.0}
    assert found["seats"][1]["won"] == 30.0


def test_one_card_games_are_told_too() -> None:
    told = lines("STATE:0:rc:Qs|Ks:-2|2:a|b", "kuhn.limit.2p")
    assert told[-1] == "b wins 2"
    assert "round 1" in told


def test_a_hand_of_another_game_is_refused() -> None:
    with pytest.raises(PipelineError, match="2 players"):
        lines(FOLDED, "holdem.limit.3p")
