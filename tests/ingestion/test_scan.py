"""The byte kernel and the regular expressions with the rules in Python come to the same verdict on every line."""

from __future__ import annotations

import random

import numpy as np
import played
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_verdict import verdict

from pipeline.formats.acpc import HAND, HAND_2009, REASONS, SCORE
from pipeline.ingestion.hand_buffers import NO_NAMES_YET, Lineups
from pipeline.ingestion.hands import LogMatch, scan_lines
from pipeline.poker.game import Game, builtin, find_game, game_names

BREAK = "SCORE:0|0:a|b"
"""between lines it keeps the names of one from binding the next"""


def judge(lines: list[str], game: Game) -> list[str]:
    """What the kernel says of each line."""
    text = "".join(f"{line}\n{BREAK}\n" for line in lines)
    match = LogMatch(game, 1)
    found = scan_lines(
        np.frombuffer(text.encode(), np.uint8), 0, match, Lineups(), lambda *_: match, names=NO_NAMES_YET
    )
    said = ["comment or score"] * len(lines)
    for hands in found.matches:
        for record in hands.records:
            said[record["line"] // 2] = "expected" if record["expected"] else "hand"
    for bad in found.rejected:
        said[bad["line"] // 2] = REASONS[bad["code"]]
    return said


def expected(line: str, game: Game) -> str:
    """What the regular expressions and the rules say of a line."""
    comment = line in ("", "\r") or line[0] in "#;"
    if (comment and not HAND_2009.fullmatch(line)) or SCORE.fullmatch(line):
        return "comment or score"
    code, by_expectation = verdict(line, game)
    return REASONS[code] or ("expected" if by_expectation else "hand")


def assert_same_verdicts(lines: list[str], game: Game) -> None:
    for line, said in zip(lines, judge(lines, game), strict=True):
        assert said == expected(line, game), line


GAMES = [*game_names(), "kuhn.limit.5p"]


@pytest.mark.parametrize("name", GAMES)
def test_hands_played_by_the_rules_are_hands(name: str) -> None:
    game = find_game(name)
    rng = random.Random(name)
    lines = [str(played.hand(game, rng, i)) for i in range(300)]
    assert set(judge(lines, game)) == {"hand"}
    assert_same_verdicts(lines, game)


@pytest.mark.parametrize("name", GAMES)
def test_hands_of_2009_are_hands(name: str) -> None:
    game = find_game(name)
    rng = random.Random(name)
    lines = [played.older(game, played.hand(game, rng, i)) for i in range(100)]
    assert set(judge(lines, game)) == {"hand"}
    assert_same_verdicts(lines, game)


@pytest.mark.parametrize("name", GAMES)
def test_spoiled_lines_get_the_same_verdict(name: str) -> None:
    game = find_game(name)
    rng = random.Random(name)
    hands = [played.hand(game, rng, i) for i in range(60)]
    lines = [played.spoil(str(hand), rng) for hand in hands for _ in range(12)]
    lines += [played.spoil(played.older(game, hand), rng) for hand in hands for _ in range(8)]
    assert_same_verdicts(lines, game)


@pytest.mark.parametrize("name", GAMES)
def test_hands_of_another_game_get_the_same_verdict(name: str) -> None:
    game = find_game(name)
    rng = random.Random(name)
    assert_same_verdicts([str(played.hand(builtin(other), rng)) for other in game_names() for _ in range(20)], game)


BETTING = st.text("fcr/0123456789b", max_size=20)
CARDS = st.text("23456789TJQKAcdhs|/", max_size=30)
FIELDS = st.lists(st.one_of(BETTING, CARDS, st.text("-0123456789.|", max_size=12), st.just("Ann|Bob")), max_size=7)
LINE = st.one_of(
    st.text(st.characters(codec="ascii", exclude_characters="\n"), max_size=80),
    FIELDS.map(":".join),
    FIELDS.map(lambda fields: "STATE:" + ":".join(fields)),
    FIELDS.map(lambda fields: "SCORE:" + ":".join(fields)),
    st.from_regex(HAND, fullmatch=True).filter(lambda line: "\n" not in line),
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINE, min_size=1, max_size=20), name=st.sampled_from(GAMES))
def test_random_lines_get_the_same_verdict(lines: list[str], name: str) -> None:
    assert_same_verdicts(lines, find_game(name))


@pytest.mark.long
@pytest.mark.parametrize("name", ["holdem.limit.2p.reverse_blinds", "holdem.nolimit.3p"])
def test_a_million_lines_get_the_same_verdict(name: str) -> None:
    game = find_game(name)
    rng = random.Random(name)
    for _ in range(1000):
        hands = [played.hand(game, rng, i) for i in range(50)]
        lines = [str(hand) for hand in hands] + [played.older(game, hand) for hand in hands]
        assert_same_verdicts(lines + [played.spoil(rng.choice(lines), rng) for _ in range(400)], game)
