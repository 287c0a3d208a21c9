"""Lines of logs and messages of the wire."""

from __future__ import annotations

import random
from itertools import combinations

import played
import pytest
from hypothesis import given
from hypothesis import strategies as st
from line_verdict import verdict

from pipeline.formats.acpc import (
    REASONS,
    SCORE,
    Hand,
    Header,
    MatchState,
    Score,
    hand_values,
    parse_hand,
    parse_header,
    parse_match_state,
)
from pipeline.poker.allin import expected_result
from pipeline.poker.cards import card_text
from pipeline.poker.game import Game, actions, find_game, game_names, parse_game
from pipeline.runtime.errors import PipelineError

LIMIT = find_game("holdem.limit.2p.reverse_blinds")
NOLIMIT = find_game("holdem.nolimit.2p.reverse_blinds")

OFFICIAL = {
    "holdem.limit.2p.reverse_blinds": [
        "STATE:0:crrc/crc/rrc/crf:8dJd|Td4d/As9d6s/3d/6c:-80|80:Alice|Bob",
        "STATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice",
        "STATE:2997:crrc/crc/rrc/cc:ThAd|8s8c/TcQcJh/6d/Ks:80|-80:unamur_tbr|liacc",
    ],
    "holdem.nolimit.2p.reverse_blinds": [
        "STATE:2:r481c/r9212r18646c/r19926r20000f:8d9h|9s6d/TsQh8c/Ah:-19926|19926:Alice|Bob",
        "STATE:0:r19686r20000c///:5d5c|9hQd/8dAs8s/4h/6d:20000|-20000:p1|p2",
    ],
    "holdem.limit.3p": ["STATE:0:crcrfrc/crf:8dJd|Td4d|As9d/6s3d6c:-20|-40|60:Alice|Bob|Carol"],
    "kuhn.limit.3p": ["STATE:3:ccrcc:Qs|As|Ks:-2|4|-2:Alice|Bob|Carol"],
    "leduc.limit.2p": ["STATE:1:rrc/rrc:Ah|Kh/Qs:13|-13:CFR_trained|Random_1"],
}


@pytest.mark.parametrize(("game", "line"), [(game, line) for game, lines in OFFICIAL.items() for line in lines])
def test_hands_of_real_logs_are_valid_and_written_back(game: str, line: str) -> None:
    assert REASONS[verdict(line, find_game(game)).code] == ""
    assert str(parse_hand(line)) == line


@pytest.mark.parametrize("suffix", ["", "\r", " 0", " 1\r", " # 1479132064.35509", " 0 # 12"])
def test_suffixes_of_real_logs_are_accepted(suffix: str) -> None:
    assert verdict("STATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice" + suffix, LIMIT).code == 0


def test_names_may_have_dots_hyphens_and_underscores() -> None:
    line = "STATE:5:crf:2d3c|Js2s:10|-10:Hyperborean-2011-2p-limit-iro|little_rock.v2"
    assert parse_hand(line).names == ("Hyperborean-2011-2p-limit-iro", "little_rock.v2")
    assert verdict(line, LIMIT).code == 0


def test_hands_of_2009_have_names_first_and_blinds_and_totals_in_the_betting() -> None:
    line = "Bob|Alice:5:b50b100c100r300f:2d3c|Js2s:300|-300:x"
    assert verdict(line.removesuffix(":x"), NOLIMIT).code != 0  # 300 is more than Alice put in
    assert verdict("Bob|Alice:5:b50b100c100r300f:2d3c|Js2s:100|-100", NOLIMIT).code == 0
    assert REASONS[verdict("Bob|Alice:5:b50b100c200r300f:2d3c|Js2s:100|-100", NOLIMIT).code].startswith("betting")
    assert "blinds" in REASONS[verdict("Bob|Alice:5:b5b10c100r300f:2d3c|Js2s:100|-100", NOLIMIT).code]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("STATE:5:crf:2d3c|Js2s:10|-10:Bob", "grammar"),
        ("STATE:5:cr", "grammar"),
        ("", "grammar"),
        ("STATE:5:crf:2d3c|Js2s|4c4d:10|-10:Bob|Alice", "players"),
        ("STATE:5:crf:2d3c4c|Js2s:10|-10:Bob|Alice", "wrong number of hole cards"),
        ("STATE:5:crf:2d3c|Js2d:10|-10:Bob|Alice", "one occurs twice"),
        ("STATE:5:cr200f:2d3c|Js2s:10|-10:Bob|Alice", "with a size"),
        ("STATE:5:crff:2d3c|Js2s:10|-10:Bob|Alice", "after the end"),
        ("STATE:5:cf:2d3c|Js2s:10|-10:Bob|Alice", "an illegal action"),
        ("STATE:5:rrrrf:2d3c|Js2s:10|-10:Bob|Alice", "an illegal action"),
        ("STATE:5:cr:2d3c|Js2s:10|-10:Bob|Alice", "not finished"),
        ("STATE:5:cccc:2d3c|Js2s/4c5c6c:10|-10:Bob|Alice", "not separated"),
        ("STATE:5:cc/crf:2d3c|Js2s:10|-10:Bob|Alice", "does not fit the street"),
        ("STATE:5:cc/crf:2d3c|Js2s/4c5c6c/7c:10|-10:Bob|Alice", "does not fit the street"),
        ("STATE:5:crf:2d3c|Js2s:20|-20:Bob|Alice", "payoffs"),
        ("STATE:5:crf:2d3c|Js2s:-10|10:Bob|Alice", "payoffs"),
        ("STATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice " + "x" * 20_000, "longer than"),
    ],
)
def test_what_is_wrong_is_named(line: str, reason: str) -> None:
    assert reason in REASONS[verdict(line, LIMIT).code]


def test_cards_that_the_deck_lacks_are_named() -> None:
    game = find_game("leduc.limit.2p")
    assert "deck" in REASONS[verdict("STATE:0:rf:2h|As:1|-1:a|b", game).code]


def mean_payoffs(game: Game, betting: str, holes: tuple[str, ...], opened: str) -> list[float]:
    """The expectation over all boards, by going through them one by one."""
    state = game.start()
    for action, size in actions(betting):
        state = state.apply(action, size)
    seen = {hole[i : i + 2] for hole in (*holes, opened) for i in range(0, len(hole), 2)}
    deck = [text for card in game.deck if (text := card_text(int(card))) not in seen]
    total, count = [0.0] * game.players, 0
    for rest in combinations(deck, game.visible(game.rounds - 1) - len(opened) // 2):
        values = hand_values(game, holes, (opened, *rest))
        total = [a + b for a, b in zip(total, state.payoffs(values), strict=True)]
        count += 1
    return [chips / count for chips in total]


def test_all_in_expectations_are_exact_and_marked() -> None:
    turn = "STATE:0:r300c/cc/r20000c/:AsAd|KsKd/2c7d9h/4s/3c:{}:a|b"
    mean = mean_payoffs(NOLIMIT, "r300c/cc/r20000c/", ("AsAd", "KsKd"), "2c7d9h4s")
    assert mean[0] == pytest.approx(20000 * (42 - 2) / 44)
    assert verdict(turn.format("20000|-20000"), NOLIMIT) == (0, False)
    assert verdict(turn.format(f"{mean[0]:.6f}|{mean[1]:.6f}"), NOLIMIT) == (0, True)
    assert verdict(turn.format(f"{mean[0]:.0f}|{mean[1]:.0f}"), NOLIMIT) == (0, True)
    for wrong in (f"{mean[0] - 2}|{mean[1] + 2}", f"{mean[1]:.6f}|{mean[0]:.6f}", "-20000|20000"):
        assert REASONS[verdict(turn.format(wrong), NOLIMIT).code].startswith("payoffs"), wrong
    river = turn.replace("cc/r20000c/:", "cc/cc/r20000c:")
    assert verdict(river.format("20000|-20000"), NOLIMIT) == (0, False)
    assert verdict(river.format(f"{mean[0]:.6f}|{mean[1]:.6f}"), NOLIMIT).code != 0


def test_the_loser_of_an_all_in_before_the_flop_cannot_be_paid() -> None:
    line = "STATE:0:r20000c///:AsAd|7h2c/KcQd9h/4s/3c:{}:a|b"
    assert verdict(line.format("20000|-20000"), NOLIMIT) == (0, False)
    for wrong in ("-20000|20000", "-15000|15000", "0|0", "21000|-21000"):
        assert REASONS[verdict(line.format(wrong), NOLIMIT).code].startswith("payoffs"), wrong
    (mean, _) = expected_result(NOLIMIT.start().apply(2, 20000).apply(1), ("AsAd", "7h2c"), "")
    assert mean == pytest.approx(20000 * (2 * 0.874 - 1), abs=200)  # tables of match-ups say 87 to 88 %
    assert verdict(line.format(f"{mean:.6f}|{-mean:.6f}"), NOLIMIT) == (0, True)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_expectations_with_side_pots_are_those_of_all_boards(players: int) -> None:
    stacks = (300, 120, 700, 500)[:players]
    text = "\n".join(
        [
            *("GAMEDEF", "nolimit", f"numPlayers = {players}", "numRounds = 3", "numSuits = 3", "numRanks = 6"),
            f"stack = {' '.join(map(str, stacks))}",
            "blind = " + " ".join(map(str, (5, 10, 0, 0)[:players])),
            *("firstPlayer = 1 1 1", "numHoleCards = 2", "numBoardCards = 0 3 1", "END GAMEDEF"),
        ]
    )
    game = parse_game(text, "small")
    rng = random.Random(players)
    for opening in (0, 0, 3):
        state = game.start()
        while not state.finished:
            _, high = state.raise_range
            state = state.apply(2, high) if high else state.apply(1)
        deck = [card_text(int(card)) for card in game.deck]
        rng.shuffle(deck)
        holes = tuple(deck.pop() + deck.pop() for _ in range(players))
        opened = "".join(deck[:opening])
        assert expected_result(state, holes, opened) == pytest.approx(mean_payoffs(game, state.betting, holes, opened))


def test_split_pots_may_be_fractions() -> None:
    game = find_game("holdem.limit.3p")
    line = "STATE:0:rfc/cc/cc/cc:9c9d|4c5d|4h5h/AsKsQd/Jh/2c:{}:a|b|c"
    assert verdict(line.format("-5|2.5|2.5"), game).code == 0
    assert verdict(line.format("-5|2|3"), game).code != 0


@given(seed=st.integers(0, 10**6), name=st.sampled_from(game_names()))
def test_formatting_is_the_inverse_of_parsing(seed: int, name: str) -> None:
    rng = random.Random(seed)
    hand = played.hand(find_game(name), rng, rng.randrange(10**9))
    assert parse_hand(str(hand)) == hand
    assert str(parse_hand(str(hand))) == str(hand)
    state = MatchState(0, hand.number, hand.betting, (hand.holes[0], *[""] * (len(hand.holes) - 1)), hand.board)
    assert parse_match_state(str(state)) == state
    header = Header("a match", f"{name}.game", rng.randrange(10**9), rng.randrange(10**19))
    assert parse_header(str(header)) == header
    score = Score(hand.payoffs, hand.names)
    assert played.parse_score(str(score)) == score


def test_payoffs_are_written_as_logs_write_them() -> None:
    hand = Hand(0, "cc", ("Qs", "Ks"), (), (-0.5, 0.5), ("a", "b"))
    assert str(hand) == "STATE:0:cc:Qs|Ks:-0.5|0.5:a|b"


def test_match_states_have_empty_places_for_hidden_cards() -> None:
    state = parse_match_state("MATCHSTATE:1:31:r300r900c/:|JdTc/6dJc9c\r\n")
    assert state == MatchState(1, 31, "r300r900c/", ("", "JdTc"), ("6dJc9c",))
    assert state.reply("r1800") == "MATCHSTATE:1:31:r300r900c/:|JdTc/6dJc9c:r1800"


@pytest.mark.parametrize("line", ["", "#comment", "MATCHSTATE:0:0::9s8h|:x", "MATCHSTATE:0:0:c:9s8|", "STATE:0"])
def test_what_is_no_message_is_refused(line: str) -> None:
    with pytest.raises(PipelineError):
        parse_match_state(line)


def test_comments_are_no_headers_and_other_lines_no_scores() -> None:
    assert parse_header("#--t_response 600000") is None
    assert parse_header("# name/game/hands/seed only three 3") is None
    assert SCORE.fullmatch("SCORE:1:a") is None
    with pytest.raises(PipelineError, match="not a hand"):
        parse_hand("SCORE:1|-1:a|b")
