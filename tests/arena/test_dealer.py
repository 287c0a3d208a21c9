"""The dealer: whole matches over TCP, the official dealer's rules for bad answers, and players that fail."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import dealer_answers
import pytest
from line_verdict import verdict
from played import parse_score

from pipeline.agents.names import resolve
from pipeline.arena.wire.client import MatchSummary, connect_agent
from pipeline.arena.wire.dealer import MatchOutcome, MatchPlan, deals, listen, run_match
from pipeline.arena.wire.player import Player
from pipeline.arena.wire.sockets import Limits
from pipeline.cli.main import main
from pipeline.formats.acpc import VALID, parse_hand, parse_header
from pipeline.formats.histories.scan import scan_histories
from pipeline.poker.game import Game, builtin
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
LIMIT3 = builtin("holdem.limit.3p")
NOLIMIT3 = builtin("holdem.nolimit.3p")
KUHN3 = builtin("kuhn.limit.3p")
NAMES = ("Alice", "Bob", "Carol")
PATIENCE = Limits(response_ms=20_000, hand_ms=20_000, per_hand_ms=20_000, start_ms=20_000)


def match(game: Game = LIMIT, hands: int = 1, **changes: Any) -> MatchPlan:
    """A match that waits long enough for any machine."""
    return MatchPlan(game, NAMES[: game.players], hands, 7, **{"limits": PATIENCE, **changes})


@contextlib.contextmanager
def dealt(played: MatchPlan, **options: Any) -> Iterator[tuple[list[int], Future[MatchOutcome]]]:
    """Run a dealer beside the test; gives its ports and its outcome to come."""
    listeners = listen([0] * played.game.players)
    with ThreadPoolExecutor(1) as pool:
        yield (
            [listener.getsockname()[1] for listener in listeners],
            pool.submit(run_match, played, listeners, **options),
        )


def play(played: MatchPlan, *agents: str, **options: Any) -> tuple[MatchOutcome, list[MatchSummary]]:
    """A match of our own clients."""
    with dealt(played, **options) as (ports, outcome), ThreadPoolExecutor(len(ports)) as pool:
        clients = [
            pool.submit(connect_agent, resolve(agent, played.game), "localhost", port, seed=seat)
            for seat, (agent, port) in enumerate(zip(agents, ports, strict=True))
        ]
        return outcome.result(), [client.result() for client in clients]


@dataclass
class Wire:
    """A player by hand: says and hears lines as they are."""

    port: int
    version: bytes = b"VERSION:2.0.0\r\n"
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.file = self.socket.makefile("rb")
        self.say(self.version)

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hear(self) -> str:
        """The next state, without its line end."""
        line = self.file.readline().decode()
        assert line == "" or line.endswith("\r\n")
        self.heard.append(line[:-2])
        return line[:-2]

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@contextlib.contextmanager
def wired(played: MatchPlan, **options: Any) -> Iterator[tuple[list[Wire], Future[MatchOutcome]]]:
    """A dealer with players by hand."""
    with dealt(played, **options) as (ports, outcome):
        wires = [Wire(port) for port in ports]
        try:
            yield wires, outcome
        finally:
            for wire in wires:
                wire.close()


def step(wires: list[Wire], actor: int | None = None, action: str = "") -> None:
    """Everybody hears the next state; the actor, if any, answers it."""
    for wire in wires:
        wire.hear()
    if actor is not None:
        wires[actor].say(f"{wires[actor].heard[-1]}:{action}\r\n".encode())


# Cards


@pytest.mark.parametrize(
    ("game", "seed", "official"),
    [
        (LIMIT, 0, ["5d5c|9hQd/8dAs8s/4h/6d", "6sKs|5dJd/2sTh2h/Qh/8h", "Ah8s|2h4c/Qd7h6c/4s/Jc"]),
        (NOLIMIT3, 0, ["5d5c|9hQd|8dAs/8s4h6d/5s/Js", "Ks6h|Qs5d|Tc4d/Ah3dTd/8c/Qd", "Jh7c|Kd7d|Kh3h/8d2c9h/Ts/Kc"]),
        (KUHN3, 7, ["As|Qs|Ks", "Ks|Qs|As", "As|Ks|Js"]),
    ],
)
def test_the_cards_are_those_of_the_official_dealer(game: Game, seed: int, official: list[str]) -> None:
    assert ["/".join(("|".join(deal.holes), *deal.board)) for deal in islice(deals(game, seed), 3)] == official


# Whole matches


@pytest.mark.parametrize("game", [LIMIT, NOLIMIT, LIMIT3, NOLIMIT3, KUHN3], ids=lambda game: game.name)
def test_a_match_leaves_a_log_without_a_bad_line(game: Game, tmp_path: Path) -> None:
    agents = ("@random", "@call", "@raise")[: game.players]
    outcome, summaries = play(match(game, 60, title="demo"), *agents, log_file=tmp_path / "x.log")
    header, *times, first = (lines := (tmp_path / "x.log").read_text().splitlines())[:5]
    assert header == f"# name/game/hands/seed demo {game.name}.game 60 7"
    assert parse_header(header) is not None
    assert times == ["#--t_response 20000", "#--t_hand 20000", "#--t_per_hand 20000"]
    hands = [parse_hand(line) for line in lines[4:-1]]
    assert [verdict(line, game).code for line in lines[4:-1]] == [VALID] * 60
    assert [hand.number for hand in hands] == list(range(60))
    assert [hands[i].names[0] for i in range(game.players)] == list(NAMES[: game.players])
    assert first.startswith("STATE:0:")
    score = parse_score(lines[-1])
    assert score == outcome.score
    assert outcome.warnings == 0
    for name, total, summary in zip(score.names, score.totals, summaries, strict=True):
        assert total == pytest.approx(sum(hand.payoffs[hand.names.index(name)] for hand in hands), abs=1e-4)
        assert (summary.hands, summary.complete, summary.ignored, summary.overdue) == (60, True, 0, 0)
        assert summary.chips == pytest.approx(total, abs=1e-4)


def test_the_same_seeds_give_the_same_log(tmp_path: Path) -> None:
    for name in ("a", "b"):
        play(match(hands=20), "@random", "@random", log_file=tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("game", [LIMIT, NOLIMIT3], ids=lambda game: game.name)
def test_a_single_core_and_several_give_the_same_log(
    game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cores in (1, 2):
        monkeypatch.setattr("pipeline.arena.wire.dealer.processors", lambda cores=cores: cores)
        outcome, _ = play(match(game, 40), *("@random",) * game.players, log_file=tmp_path / f"{cores}.log")
        assert outcome.warnings == 0
    assert (tmp_path / "1.log").read_bytes() == (tmp_path / "2.log").read_bytes()


def test_fixed_seats_keep_their_positions(tmp_path: Path) -> None:
    play(match(hands=4, fixed=True), "@call", "@call", log_file=tmp_path / "x.log")
    assert {parse_hand(line).names for line in (tmp_path / "x.log").read_text().splitlines()[4:-1]} == {NAMES[:2]}


def test_everybody_sees_every_state_but_only_what_a_showdown_reveals() -> None:
    with wired(match(LIMIT3)) as (wires, outcome):
        for actor, action in [(2, "r"), (0, "f"), (1, "c"), *[(1, "c"), (2, "c")] * 3]:
            step(wires, actor, action)
        step(wires)
        outcome.result()
    alice, bob, carol = next(deals(LIMIT3, 7)).holes
    assert [wire.heard[0] for wire in wires] == [
        f"MATCHSTATE:0:0::{alice}||",
        f"MATCHSTATE:1:0::|{bob}|",
        f"MATCHSTATE:2:0::||{carol}",
    ]
    assert len({wire.heard[4].split(":")[3] for wire in wires}) == 1
    shown = [wire.heard[-1].split(":")[4].split("/")[0] for wire in wires]
    assert shown == [f"{alice}|{bob}|{carol}", f"|{bob}|{carol}", f"|{bob}|{carol}"]


def test_a_fold_shows_nobodys_cards() -> None:
    with wired(match()) as (wires, outcome):
        step(wires, 1, "f")
        step(wires)
        assert outcome.result().score.totals == (5, -5)
    alice, bob = next(deals(LIMIT, 7)).holes
    assert [wire.heard[-1] for wire in wires] == [f"MATCHSTATE:0:0:f:{alice}|", f"MATCHSTATE:1:0:f:|{bob}"]


# Bad answers


@pytest.mark.parametrize(
    ("game", "answer", "betting", "warning"),
    [
        (LIMIT, "{}:x", "c", "bad action"),
        (LIMIT, "{}", "c", "bad action"),
        (LIMIT, "{}:", "c", "bad action"),
        (LIMIT, "{}:r", "r", None),
        (LIMIT, "{}:r500", "r", None),
        (NOLIMIT, "{}:r", "c", "bad action"),
        (NOLIMIT, "{}:r150", "r200", "raise to 150 changed to 200"),
        (NOLIMIT, "{}:r99999", "r20000", "raise to 99999 changed to 20000"),
        (NOLIMIT, "{}:r-5", "r200", "raise to -5 changed to 200"),
        (NOLIMIT, "{}:r200", "r200", None),
        (NOLIMIT, "# thinking\r\n;\r\n{}:c", "c", None),
        (LIMIT, "hello\r\n{}:f", "f", "unknown message"),
        (LIMIT, "\xff\x00\r\n{}:f", "f", "unknown message"),
        (LIMIT, "MATCHSTATE:0:9::AsAc|:r\r\n{}:f", "f", "un-requested"),
        (LIMIT, "x" * 9000 + "\r\n{}:f", "f", "unknown message"),
    ],
)
def test_bad_answers_are_mended_as_the_official_dealer_does(
    game: Game, answer: str, betting: str, warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), wired(match(game, 2)) as (wires, outcome):
        step(wires)
        wires[1].say(answer.format(wires[1].heard[0]).encode("latin-1") + b"\n")
        assert wires[0].hear().split(":")[3] == betting
        wires[0].close()
        with pytest.raises(PipelineError):
            outcome.result()
    assert (warning or "") in caplog.text
    assert bool(caplog.text) == (warning is not None)


@pytest.mark.parametrize("name", dealer_answers.recorded())
def test_every_recorded_answer_comes_to_what_the_official_dealer_makes_of_it(name: str) -> None:
    expected = dealer_answers.recorded()[name]
    asked = [dealer_answers.Asked(betting, template) for betting, rows in expected.items() for template in rows]
    other = {
        question: (official, ours)
        for question, ours in zip(asked, dealer_answers.ours(builtin(name), asked), strict=True)
        if ours != (official := expected[question.betting][question.template])
    }
    # numbers beyond 32 bits keep their value here: all-in, or no size that was bet
    assert {question for question in asked if dealer_answers.is_beyond_32_bits(question)} >= set(other)
    assert {ours for _, ours in other.values()} <= {"r20000", dealer_answers.IGNORED}
    assert len(asked) > 100


def test_a_fold_with_nothing_to_call_becomes_a_check() -> None:
    with wired(match()) as (wires, outcome):
        step(wires, 1, "c")
        step(wires, 0, "f")
        assert wires[1].hear().split(":")[3] == "cc/"
        wires[0].close()
        with pytest.raises(PipelineError, match=r"seat 1 \(Alice\)"):
            outcome.result()


def test_a_raise_beyond_the_cap_becomes_a_call() -> None:
    with wired(match()) as (wires, outcome):
        for turn in range(4):
            step(wires, (turn + 1) % 2, "r")
        assert wires[1].hear().split(":")[3] == "rrrc/"
        wires[0].close()
        with pytest.raises(PipelineError):
            outcome.result()


def test_answers_may_come_in_pieces() -> None:
    with wired(match()) as (wires, outcome):
        step(wires)
        for byte in f"{wires[1].heard[0]}:f\r\n".encode():
            wires[1].say(bytes([byte]))
        assert outcome.result().warnings == 0


# Players that fail: the match ends within the time allowed, finished hands stay


def failed(played: MatchPlan, *wires: bytes | None, **options: Any) -> str:
    """The error of a match whose players only say their opening words (None does not even connect)."""
    with dealt(played, **options) as (ports, outcome), contextlib.ExitStack() as stack:
        for port, words in zip(ports, wires, strict=True):
            if words is not None:
                stack.callback(Wire(port, words).close)
        with pytest.raises(PipelineError) as error:
            outcome.result()
    return str(error.value)


SHORT = Limits(response_ms=50, start_ms=50)
HELLO = b"VERSION:2.0.0\n"


def test_a_player_that_never_connects_ends_the_match() -> None:
    assert "seat 2 (Bob) did not connect within 0.05 s" in failed(match(limits=SHORT), HELLO, None)


def test_a_player_that_never_speaks_ends_the_match() -> None:
    assert "seat 1 (Alice) did not answer within 0.05 s" in failed(match(limits=SHORT), b"", HELLO)


def test_a_player_that_speaks_half_a_line_ends_the_match() -> None:
    assert "seat 1 (Alice) did not answer within 0.05 s" in failed(match(limits=SHORT), b"VERSION", HELLO)


@pytest.mark.parametrize("version", [b"VERSION:1.0.0\n", b"VERSION:2:0:0\n", b"VERSION:2.1.0\n", b"hello\n", b"\n"])
def test_another_version_is_refused(version: bytes) -> None:
    error = failed(match(), version, HELLO)
    assert "needs VERSION:2.0.0" in error or "VERSION:2.0.0 is needed" in error


def test_a_slow_player_ends_the_match() -> None:
    limits = Limits(response_ms=50, start_ms=20_000)
    error = failed(match(limits=limits), HELLO, HELLO)
    assert error == "seat 2 (Bob) did not answer within 0.05 s: the match ended after 0 of 1 hands"


@pytest.mark.parametrize(("limit", "error"), [("hand_ms", "for a hand"), ("per_hand_ms", "used up")])
def test_time_is_a_budget(limit: str, error: str) -> None:
    with wired(match(limits=PATIENCE._replace(**{limit: 0}))) as (wires, outcome):
        step(wires, 1, "c")
        with pytest.raises(PipelineError, match=error):
            outcome.result()


def test_a_player_that_only_babbles_ends_the_match(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(response_ms=50, start_ms=20_000)
    error = failed(match(limits=limits), HELLO, HELLO + b"la\n" * 5000)
    assert "did not answer within 0.05 s" in error
    assert caplog.text.count("la") < 100


def test_finished_hands_stay_when_a_player_leaves(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with wired(match(hands=10), log_file=log) as (wires, outcome):
        step(wires, 1, "f")
        step(wires)
        step(wires, 0, "f")
        step(wires)
        step(wires, 1, "r")
        wires[0].close()
        with pytest.raises(PipelineError, match=r"seat 1 \(Alice\) .*after 2 of 10 hands"):
            outcome.result()
        assert wires[1].file.read().count(b"\n") <= 2  # and is let go
    lines = log.read_text().splitlines()
    assert [verdict(line, LIMIT).code for line in lines[4:]] == [VALID, VALID]


def test_a_port_in_use_is_a_sentence() -> None:
    (first,) = listen([0])
    with first, pytest.raises(PipelineError, match=r"cannot listen on 127\.0\.0\.1 port \d+: Address already in use"):
        listen([0, first.getsockname()[1]])


@pytest.mark.parametrize("names", [("Alice",), ("Alice", "Alice"), ("Alice", "Bob", "Carol")])
def test_a_match_needs_as_many_different_names_as_players(names: tuple[str, ...]) -> None:
    with pytest.raises(PipelineError, match="needs 2 different names"):
        run_match(match()._replace(names=names), listen([0] * len(names)))


# Taking a match up again


@pytest.mark.parametrize("kept", [0, 1, 7, 60])
def test_an_interrupted_match_resumes_from_its_transaction_log(kept: int, tmp_path: Path) -> None:
    played = match(NOLIMIT, 12)
    whole, resumed, record = (tmp_path / name for name in ("whole", "resumed", "record"))
    play(played, "@raise", "@call", log_file=whole, transactions=record)
    lines = record.read_text().splitlines(keepends=True)
    assert all(re.fullmatch(r"(f|c|r\d+) \d+ \d+\.\d{6} \d+\.\d{6}\n", line) for line in lines)
    record.write_text("".join(lines[:kept]) + "r30")  # half a line, as a killed dealer leaves it
    play(played, "@raise", "@call", log_file=resumed, transactions=record, resume=True)
    assert resumed.read_bytes() == whole.read_bytes()
    assert [line.split()[:2] for line in record.read_text().splitlines()] == [line.split()[:2] for line in lines]


def test_the_transaction_log_of_another_match_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text("c 5 1.0 1.0\n")
    log = tmp_path / "x.log"
    log.write_text("hands of a match\n")
    with pytest.raises(PipelineError, match="does not belong to this match"):
        run_match(match(), listen([0, 0]), log_file=log, transactions=record, resume=True)
    assert log.read_text() == "hands of a match\n"
    record.write_text("hello\n")
    with pytest.raises(PipelineError, match="line 1: 'hello'"):
        run_match(match(), listen([0, 0]), transactions=record, resume=True)


@pytest.mark.parametrize("empty", ["record", "log"])
def test_a_match_on_record_is_not_written_over(empty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / name for name in ("record", "log")}
    for name, path in files.items():
        path.write_text("" if name == empty else "c 0 1.000000 2.000000\n")
    ((full, text),) = ((path, path.read_text()) for name, path in files.items() if name != empty)
    words = ["deal", LIMIT.name, "A", "B", "--hands", "1", "--start-ms", "20"]
    with pytest.raises(SystemExit):
        main([*words, "--transactions", str(files["record"]), "--log", str(files["log"])])
    shown = capsys.readouterr()
    assert (shown.out, shown.err.endswith("--resume\n")) == ("", True)
    assert (full.read_text(), files[empty].read_text()) == (text, "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response_ms": 1999}, "2 of 1.999 s"),
        ({"hand_ms": 2999}, "3 of 2.999 s"),
        ({"per_hand_ms": 999}, r"3 of 2.997 s"),
    ],
)
def test_times_on_record_count_when_a_match_is_taken_up_again(
    changes: dict[str, int], reason: str, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    # Bob takes 2 s, then 1 s more; a clock that was set back takes nothing
    record.write_text("r 0 100.0 102.0\nr 0 102.0 99.0\nr 0 200.0 201.0\n")
    played = match(hands=3, limits=PATIENCE._replace(**changes))
    with pytest.raises(PipelineError, match=rf"^seat 2 \(Bob\) ran out of time in hand 0 of the .*: {reason}$"):
        run_match(played, listen([0, 0]), transactions=record, resume=True)


def test_a_player_has_no_fresh_time_after_an_interruption(tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text("r 0 100.0 120.0\nr 0 120.0 121.0\n")  # all that Bob has for the hand
    with (
        wired(match(), transactions=record, resume=True) as (_, outcome),
        pytest.raises(PipelineError, match=r"^seat 2 \(Bob\) took more than 20 s for a hand"),
    ):
        outcome.result()


# The commands


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_killed_client_ends_the_match_and_leaves_the_finished_hands(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with start("deal", LIMIT.name, "A", "B", "--hands", "1000000", "--log", str(log)) as dealer:
        assert dealer.stdout is not None
        ports = dealer.stdout.readline().split()
        player, wire = Player(resolve("@call", LIMIT)), Wire(int(ports[1]))
        with start("connect", "localhost", ports[0], "@call") as client:
            while line := wire.hear():
                turn = player.hear(line)
                if turn is not None:
                    wire.say(f"{player.decide(turn)}\r\n".encode())
                if player.hands == 20:
                    client.kill()
            client.communicate(timeout=60)
        wire.close()
        _, error = dealer.communicate(timeout=60)
        assert dealer.returncode == 1
    assert re.search(r"error: seat 1 \(A\) .*: the match ended after \d+ of 1000000 hands\n$", error)
    lines = log.read_text().splitlines()[4:]
    assert len(lines) >= 20
    assert {verdict(line, LIMIT).code for line in lines} == {VALID}


def test_the_deal_command_prints_ports_and_score_and_writes_histories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [str(server.getsockname()[1]) for server in (free, other)]
    with ThreadPoolExecutor(2) as pool:
        clients = [
            pool.submit(connect_agent, resolve("@call", LIMIT), "localhost", int(port), reconnect_ms=20_000)
            for port in ports
        ]
        written = ["--log", str(tmp_path / "m.phhs")]
        seats = ["--port", ports[0], "--port", ports[1]]
        main(["deal", LIMIT.name, "A", "B", "--hands", "3", "--seed", "7", *seats, *written])
        assert [client.result().hands for client in clients] == [3, 3]
    first, last = capsys.readouterr().out.splitlines()
    assert first == " ".join(ports)
    assert sum(parse_score(last).totals) == 0
    hands, refused = scan_histories((tmp_path / "m.phhs").read_bytes())
    assert (len(hands.records), refused) == (3, [])
    assert not (tmp_path / "m.log").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["holdem.limit.2", "A", "B", "--hands", "1"], "did you mean"),
        ([LIMIT.name, "A", "B", "--hands", "1", "--port", "0"], "one --port per seat"),
        ([LIMIT.name, "A", "B", "--hands", "1", "--resume"], "--transactions FILE"),
        ([LIMIT.name, "A", "--hands", "1"], "needs 2 different names"),
        ([LIMIT.name, "A", "B", "--hands", "1", "--start-ms", "20"], "did not connect"),
        ([LIMIT.name, "A", "B", "--hands", "1", "--log", "no/such/folder/x.log"], "no such file"),
    ],
)
def test_a_match_that_cannot_be_dealt_is_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["deal", *arguments])
    assert end.value.code == 1
    shown = capsys.readouterr().err
    assert error in shown
    assert shown.count("\n") == 1
