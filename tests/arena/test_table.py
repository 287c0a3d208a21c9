"""The table for people: what is offered, what typed words mean, and the log that is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from line_verdict import verdict
from phevaluator import evaluate_cards
from played import parse_score

from pipeline.agents.names import resolve
from pipeline.arena.table import TerminalTable, parse_action
from pipeline.cli.main import group, main
from pipeline.formats.acpc import VALID, parse_hand, parse_header
from pipeline.poker.allin import showdown_shares
from pipeline.poker.cards import RANKS, SUITS, parse_cards
from pipeline.poker.game import Game, State, actions, builtin
from pipeline.poker.rules import CALL, FOLD, RAISE
from pipeline.poker.spoken import action_words, name_with_kickers, sentence
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
NOLIMIT3 = builtin("holdem.nolimit.3p")
KUHN = builtin("kuhn.limit.2p")


def after(game: Game, betting: str) -> State:
    state = game.start()
    for action, size in actions(betting):
        state = state.apply(action, size)
    return state


def typed(*words: str) -> Callable[[str], str]:
    """Answers that a person types, one after another, who then leaves."""
    left: Iterator[str] = iter(words)

    def ask(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return ask


def seated(game: Game, agent: str, *words: str, **options: Any) -> tuple[TerminalTable, str]:
    """A table that has been played at, and all that was shown."""
    shown: list[str] = []
    bots = [resolve(agent, game) for _ in range(game.players - 1)]
    names = ("you", "bot", "other")[: game.players]
    table = TerminalTable(game, bots, names, seed=5, show=shown.append, ask=typed(*words), **options)
    table.play()
    return table, "\n".join(shown)


@pytest.mark.parametrize(
    ("game", "betting", "word", "meant"),
    [
        (LIMIT, "", "f", (FOLD, 0)),
        (LIMIT, "", " Call ", (CALL, 0)),
        (LIMIT, "c", "check", (CALL, 0)),
        (LIMIT, "c", "r", (RAISE, 0)),
        (NOLIMIT, "", "r 300", (RAISE, 300)),
        (NOLIMIT, "", "300", (RAISE, 300)),
        (NOLIMIT, "", "raise to 300", (RAISE, 300)),
        (NOLIMIT, "", "p", (RAISE, 300)),
        (NOLIMIT, "", "a", (RAISE, 20000)),
    ],
)
def test_words_mean_actions(game: Game, betting: str, word: str, meant: tuple[int, int]) -> None:
    assert parse_action(word, after(game, betting)) == meant


@pytest.mark.parametrize(
    ("game", "betting", "word", "reason"),
    [
        (LIMIT, "c", "f", "nothing to fold"),
        (LIMIT, "rrr", "r", "no raise"),
        (LIMIT, "", "300", "not an action"),
        (LIMIT, "", "", "not an action"),
        (LIMIT, "", "hm", "not an action"),
        (NOLIMIT, "", "r", "how much"),
        (NOLIMIT, "", "150", "200 up to 20,000"),
        (NOLIMIT, "", "s", "not possible"),
        (NOLIMIT, "r20000", "a", "not possible"),
        (NOLIMIT, "r20000", "r 5", "no raise"),
    ],
)
def test_words_that_mean_nothing_legal_say_why(game: Game, betting: str, word: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        parse_action(word, after(game, betting))


def test_a_hand_is_drawn_offered_and_scored() -> None:
    table, shown = seated(LIMIT, "@call", "c", "what", "c", "c", "c", "p", "e", "")
    (hand,) = table.hands
    assert hand.betting == "cc/cc/cc/cc"
    assert "│ 3♥ ││ 7♦ │" in shown
    assert "── hand 1 ── you +0   bot +0 ── you post 10, bot posts 5" in shown
    assert "'what' is not an action" in shown
    assert "bot with 6dQc after -:  *c 100%" in shown
    assert "result:   you -10   bot +10" in shown
    assert "3h7d" in shown  # equity: all cards known
    assert "100.0%" in shown


def test_positions_rotate_and_the_score_adds_up() -> None:
    table, _ = seated(NOLIMIT3, "@call", "f", "", "f", "", "c", "c", "c", "c", "")
    assert [hand.names[0] for hand in table.hands] == ["you", "bot", "other"]
    assert [hand.payoffs[hand.names.index("you")] for hand in table.hands[:2]] == [-50, 0]
    assert sum(table.totals) == 0


def test_what_was_played_can_be_ingested(tmp_path: Path) -> None:
    log = tmp_path / "mine.log"
    seated(NOLIMIT, "@random", *["c", "c", "c", "c", ""] * 10, log_file=log)
    lines = log.read_text().splitlines()
    header = parse_header(lines[0])
    assert header is not None
    hands = [parse_hand(line) for line in lines[4:-1]]
    assert header.hands == len(hands) > 0
    assert {verdict(line, NOLIMIT).code for line in lines[4:-1]} == {VALID}
    assert parse_score(lines[-1]).totals[0] == sum(hand.payoffs[hand.names.index("you")] for hand in hands)


def test_leaving_in_mid_hand_leaves_the_hand_out(tmp_path: Path) -> None:
    table, _ = seated(LIMIT, "@call", "c", "q", log_file=tmp_path / "mine.log")
    assert table.hands == []
    assert not (tmp_path / "mine.log").exists()


def test_a_log_that_exists_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.log").write_text("precious")
    with pytest.raises(PipelineError, match="exists"):
        seated(LIMIT, "@call", log_file=tmp_path / "mine.log")


def test_equity_is_the_share_of_the_pot_over_the_boards_to_come() -> None:
    holes, board = ("TcJc", "AsKs"), ["2d", "Ts", "Kh"]
    left = [rank + suit for rank in RANKS for suit in SUITS if rank + suit not in (*board, "Tc", "Jc", "As", "Ks")]
    shares = []
    for rest in combinations(left, 2):
        first, second = (evaluate_cards(*hole, *board, *rest) for hole in (("Tc", "Jc"), ("As", "Ks")))
        shares.append(1.0 if first < second else 0.5 if first == second else 0.0)  # there, lower is better
    assert showdown_shares(LIMIT, holes, "2dTsKh", [False, False])[0] == pytest.approx(sum(shares) / 990)
    assert showdown_shares(LIMIT, holes, "2dTsKh4cTd", [False, False]) == [1, 0]
    assert showdown_shares(LIMIT, holes, "2dTsKh4cTd", [True, False]) == [0, 1]


def test_aces_win_five_times_in_six_against_kings() -> None:
    aces, _ = showdown_shares(LIMIT, ("AsAh", "KdKc"), "", [False, False])
    assert aces == pytest.approx(0.82, abs=0.01)


def test_equity_of_one_card_games() -> None:
    assert showdown_shares(KUHN, ("Ks", "As"), "", [False, False]) == [0, 1]


def test_the_play_command_ends_with_the_score(tmp_path: Path) -> None:
    log = tmp_path / "mine.log"
    arguments = ["play", "@call", "--seed", "5", "--hands", "1", "--log", str(log)]
    result = CliRunner().invoke(group, arguments, input="c\nc\nc\nc\n\n", catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output.endswith(f"1 hands: you -10   call +10; 1 hands in {log}\n")


@pytest.mark.parametrize(
    ("game", "betting", "action", "said"),
    [
        (LIMIT, "", "r", "you raise to 20"),  # over the blinds
        (LIMIT, "c", "r", "you raise to 20"),
        (LIMIT, "cc", "r", "you bet 10"),
        (LIMIT, "rrc/r", "r", "you raise to 20"),
        (LIMIT, "cc/cc", "r", "you bet 20"),
        (NOLIMIT, "r300c", "r900", "you bet 600"),
        (NOLIMIT, "r300c/r900", "r2100", "you raise to 1,800"),
        (NOLIMIT, "r300c/r900", "r20000", "you raise to 19,700, all-in"),
        (NOLIMIT, "r300c/r900", "c", "you call 600"),
        (NOLIMIT, "r300c", "c", "you check"),
        (KUHN, "", "r", "you bet 1"),
    ],
)
def test_actions_are_called_as_players_call_them(game: Game, betting: str, action: str, said: str) -> None:
    ((kind, size),) = actions(action)
    assert sentence("you", *action_words(after(game, betting), kind, size)) == said


def test_amounts_typed_are_those_of_the_street() -> None:
    flop = after(NOLIMIT, "r300c")
    assert parse_action("600", flop) == (RAISE, 900)
    assert parse_action("bet 600", flop) == (RAISE, 900)
    with pytest.raises(PipelineError, match=r"50 is not possible: bet 100 up to 19,700"):
        parse_action("50", flop)


@pytest.mark.parametrize(
    ("hole", "board", "text"),
    [
        ("AsKd", "Ah7c5d9s2c", "Pair of Aces, kickers K 9 7"),
        ("AsKd", "Ah7c5d", "Pair of Aces, kickers K 7 5"),
        ("AsKd", "AhKc5d9s2c", "Two Pair, Aces and Kings, kicker 9"),
        ("7s7d", "7hAc5d9s2c", "Three of a Kind, Sevens, kickers A 9"),
        ("7s7d", "7h7c5d9s2c", "Four of a Kind, Sevens, kicker 9"),
        ("AsKd", "Qh7c5d9s2c", "Ace High, with K Q 9 7"),
        ("AsKs", "2s7s9sTsJd", "Ace-High Flush, with K T 9 7"),
        ("AsKs", "QsJsTs2d3d", "Royal Flush"),
        ("7s7d", "7hAcAd9s2c", "Sevens full of Aces"),
        ("6s7d", "8h9cTd2s2c", "Ten-High Straight"),
    ],
)
def test_kickers_are_named(hole: str, board: str, text: str) -> None:
    said = name_with_kickers(parse_cards(hole), parse_cards(board))
    assert said == text or (text.startswith("Sevens full") and "kicker" not in said and "with" not in said)


def test_the_menu_names_the_sizes_and_questions_are_answered_everywhere() -> None:
    prompts: list[str] = []
    words = iter(["?", "p", "?", "c", "c", "c", "?", ""])

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(words)
        except StopIteration:
            raise EOFError from None

    shown: list[str] = []
    TerminalTable(NOLIMIT, [resolve("@call", NOLIMIT)], ("you", "bot"), seed=5, show=shown.append, ask=ask).play()
    assert prompts[0] == "   [c]heck   [r]aise to 200-20,000   [h] 200   [p] 300   [o] 500   [a] 20,000   ?   > "
    assert prompts[2].startswith("   [c]heck   [r] bet 100-19,700   [s] 150   [h] 300   [p] 600")
    assert sum("bet 300, or raise to 300 on this street" in text for text in shown) == 2
    assert any("the next hand is dealt" in text for text in shown)


def test_results_are_told_from_the_persons_side_wherever_they_sit() -> None:
    table, shown = seated(LIMIT, "@call", "f", "", "c", "c", "c", "c", "", "f", "")
    results = [line for line in shown.splitlines() if "result:" in line]
    assert len(results) >= 2
    assert all(line.startswith("   result:   you ") for line in results)
    assert table.hands[1].names[0] == "bot"


@pytest.mark.parametrize("width", [40, 60, 69, 100])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    prompts: list[str] = []
    shown: list[str] = []
    words = iter(["?", "p", "hm", "c", "c", "c", "?", "p", "e", "hm", ""])

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(words)
        except StopIteration:
            raise EOFError from None

    bots = [resolve("@random", NOLIMIT3)] * 2
    TerminalTable(NOLIMIT3, bots, ("you", "bot", "other"), seed=5, show=shown.append, ask=ask, width=width).play(3)
    lines = "\n".join([*shown, *prompts]).split("\n")
    assert [line for line in lines if len(line.rstrip()) > width] == []


def test_no_color_means_no_colours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("builtins.input", typed("c", "c", "c", "c", ""))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    main(["play", "@call", "--seed", "5", "--hands", "1"])
    assert "\x1b" not in capsys.readouterr().out
