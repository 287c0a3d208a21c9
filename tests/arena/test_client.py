"""The client: the protocol document's conversation byte by byte, and every way a dealer can misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from pipeline.agents.names import resolve
from pipeline.agents.protocol import FinishedHands
from pipeline.arena.wire import client, matches
from pipeline.arena.wire.client import MatchSummary, connect_agent
from pipeline.arena.wire.player import Player
from pipeline.arena.wire.sockets import Limits
from pipeline.cli.main import main
from pipeline.poker.game import Game, builtin
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
LIMIT3 = builtin("holdem.limit.3p")

# The example of the protocol document (annex 3 of the thesis): S from the server, C from the client
TEXT = """\
S MATCHSTATE:0:0::TdAs|
S MATCHSTATE:0:0:r:TdAs|
C MATCHSTATE:0:0:r:TdAs|:r
S MATCHSTATE:0:0:rr:TdAs|
S MATCHSTATE:0:0:rrc/:TdAs|/2c8c3h
C MATCHSTATE:0:0:rrc/:TdAs|/2c8c3h:r
S MATCHSTATE:0:0:rrc/r:TdAs|/2c8c3h
S MATCHSTATE:0:0:rrc/rc/:TdAs|/2c8c3h/9c
C MATCHSTATE:0:0:rrc/rc/:TdAs|/2c8c3h/9c:c
S MATCHSTATE:0:0:rrc/rc/c:TdAs|/2c8c3h/9c
S MATCHSTATE:0:0:rrc/rc/cr:TdAs|/2c8c3h/9c
C MATCHSTATE:0:0:rrc/rc/cr:TdAs|/2c8c3h/9c:c
S MATCHSTATE:0:0:rrc/rc/crc/:TdAs|/2c8c3h/9c/Kh
C MATCHSTATE:0:0:rrc/rc/crc/:TdAs|/2c8c3h/9c/Kh:c
S MATCHSTATE:0:0:rrc/rc/crc/c:TdAs|/2c8c3h/9c/Kh
S MATCHSTATE:0:0:rrc/rc/crc/cr:TdAs|/2c8c3h/9c/Kh
C MATCHSTATE:0:0:rrc/rc/crc/cr:TdAs|/2c8c3h/9c/Kh:c
S MATCHSTATE:0:0:rrc/rc/crc/crc:TdAs|8hTc/2c8c3h/9c/Kh
S MATCHSTATE:1:1::|Qd7c
C MATCHSTATE:1:1::|Qd7c:r
S MATCHSTATE:1:1:r:|Qd7c
S MATCHSTATE:1:1:rr:|Qd7c
C MATCHSTATE:1:1:rr:|Qd7c:c
S MATCHSTATE:1:1:rrc/:|Qd7c/2h8h5c
S MATCHSTATE:1:1:rrc/r:|Qd7c/2h8h5c
C MATCHSTATE:1:1:rrc/r:|Qd7c/2h8h5c:c
S MATCHSTATE:1:1:rrc/rc/:|Qd7c/2h8h5c/Th
S MATCHSTATE:1:1:rrc/rc/r:|Qd7c/2h8h5c/Th
C MATCHSTATE:1:1:rrc/rc/r:|Qd7c/2h8h5c/Th:f
S MATCHSTATE:1:1:rrc/rc/rf:|Qd7c/2h8h5c/Th
S MATCHSTATE:0:2::9d7s|
S MATCHSTATE:0:2:r:9d7s|
C MATCHSTATE:0:2:r:9d7s|:c
S MATCHSTATE:0:2:rc/:9d7s|/5d2cJc
C MATCHSTATE:0:2:rc/:9d7s|/5d2cJc:c
S MATCHSTATE:0:2:rc/c:9d7s|/5d2cJc
S MATCHSTATE:0:2:rc/cc/:9d7s|/5d2cJc/3d
C MATCHSTATE:0:2:rc/cc/:9d7s|/5d2cJc/3d:c
S MATCHSTATE:0:2:rc/cc/c:9d7s|/5d2cJc/3d
S MATCHSTATE:0:2:rc/cc/cr:9d7s|/5d2cJc/3d
C MATCHSTATE:0:2:rc/cc/cr:9d7s|/5d2cJc/3d:f
S MATCHSTATE:0:2:rc/cc/crf:9d7s|/5d2cJc/3d
"""
CONVERSATION = TEXT.splitlines()
SENT = "".join(f"{line[2:]}\r\n" for line in CONVERSATION if line[0] == "S").encode()
ANSWERED = "".join(f"{line[2:]}\r\n" for line in CONVERSATION if line[0] == "C").encode()
ANSWERS = ANSWERED.count(b"\n")
SCORE = -80 - 40 - 20  # a pair of eights beats an ace; two folds


class Scripted:
    """Takes the labels of a list, one after another, then calls."""

    name = "scripted"

    def __init__(self, game: Game, letters: str = "") -> None:
        self.game = game
        self.asked = 0
        self._letters = iter(letters)

    def probabilities(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self.asked += 1
        return np.eye(len(self.game.labels))[[self.game.labels.index(next(self._letters, "c"))] * len(rows)]


def annex_agent(skipped: int = 0) -> Scripted:
    """Takes the document's actions; the first `skipped` belong to the warming up."""
    return Scripted(LIMIT, "c" * skipped + "".join(line[-1] for line in CONVERSATION if line[0] == "C"))


WARM_UP = 8  # a limit hand checked and called to the end


@contextmanager
def dealing(*scripts: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that runs one script per connection, then closes it; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)

        def serve() -> None:
            for script in scripts:
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(20)
                    script(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def sends(data: bytes, heard: list[bytes] | None = None, size: int = 0, answers: int = ANSWERS) -> Callable[..., None]:
    """A script that sends `data` in packets of `size` bytes and then reads the version and `answers` lines."""

    def script(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(data), size or len(data)):
            connection.sendall(data[start : start + (size or len(data))])
        with connection.makefile("rb") as file:
            lines = [file.readline() for _ in range(1 + answers)]
        if heard is not None:
            heard.extend(lines)

    return script


def lines(*states: str) -> bytes:
    return "".join(f"{state}\r\n" for state in states).encode()


# What it answers


def test_the_protocol_documents_conversation_is_answered_byte_by_byte() -> None:
    heard: list[bytes] = []
    with dealing(sends(SENT, heard)) as port:
        summary = connect_agent(annex_agent(WARM_UP), "localhost", port)
    assert heard[0] == b"VERSION:2.0.0\r\n"  # the document prints 2:0:0, dealers read dots
    assert b"".join(heard[1:]) == ANSWERED
    assert (summary.hands, summary.decisions, summary.complete) == (3, ANSWERS, True)
    assert summary.chips == SCORE


@pytest.mark.parametrize("size", [1, 7, 64])
def test_packets_may_be_split_anywhere(size: int) -> None:
    heard: list[bytes] = []
    with dealing(sends(SENT, heard, size)) as port:
        connect_agent(annex_agent(WARM_UP), "localhost", port)
    assert b"".join(heard[1:]) == ANSWERED


def test_comments_line_feeds_and_garbage_change_nothing() -> None:
    heard: list[bytes] = []
    noisy = b"# welcome\r\n;gui\r\n\r\n" + SENT.replace(b"\r\n", b"\n# so far\n\xff\xfe garbage\nMATCHSTATE:0:0\n")
    with dealing(sends(noisy, heard)) as port:
        summary = connect_agent(annex_agent(WARM_UP), "localhost", port)
    assert b"".join(heard[1:]) == ANSWERED
    assert summary.ignored == 2 * SENT.count(b"\n")
    assert summary.chips == SCORE


def test_a_repeated_state_gets_the_same_answer_and_counts_once() -> None:
    heard: list[bytes] = []
    twice = b"".join(line + line for line in SENT.splitlines(keepends=True))
    with dealing(sends(twice, heard, answers=2 * ANSWERS)) as port:
        summary = connect_agent(annex_agent(WARM_UP), "localhost", port)
    assert b"".join(heard[1:]) == b"".join(line + line for line in ANSWERED.splitlines(keepends=True))
    assert (summary.hands, summary.chips) == (3, SCORE)


def test_hand_numbers_may_start_again() -> None:
    player = Player(resolve("@call", LIMIT))
    for _ in range(3):
        for state in ("MATCHSTATE:0:0::TdAs|", "MATCHSTATE:0:0:f:TdAs|"):
            assert player.hear(state) is None
    assert (player.hands, player.begun, player.chips) == (3, 3, 15)


def test_the_state_is_repeated_as_it_was_written() -> None:
    player = Player(resolve("@call", LIMIT))
    turn = player.hear("MATCHSTATE:01:007::|TdAs")
    assert turn is not None
    assert player.decide(turn) == "MATCHSTATE:01:007::|TdAs:c"


def test_what_only_looks_like_a_known_state_is_ignored() -> None:
    player = Player(resolve("@call", LIMIT))
    assert player.hear("MATCHSTATE:1:0::|TdAs") is not None
    for line in ("MATCHSTATF:1:0::|TdAs", "MATCHSTATE:x:0::|TdAs", "MATCHSTATE:1:0::TdAs:", "MATCHSTATE:1:0:"):
        assert player.hear(line) is None
    for line in ("MATCHSTATE:1:xx::|TdAs", "MATCHSTATE:1:0::|garbage"):
        assert player.hear(line) is None
    assert (player.ignored, player.begun) == (6, 1)
    with pytest.raises(PipelineError, match="player 7 of 2"):
        player.hear("MATCHSTATE:7:1::|TdAs")


def test_no_limit_answers_carry_the_total() -> None:
    player = Player(Scripted(NOLIMIT, "pa"))
    turn = player.hear("MATCHSTATE:1:7::|AsAd")
    assert turn is not None
    assert player.decide(turn) == "MATCHSTATE:1:7::|AsAd:r300"
    turn = player.hear("MATCHSTATE:1:7:r300r900:|AsAd")
    assert turn is not None
    assert player.decide(turn) == "MATCHSTATE:1:7:r300r900:|AsAd:r20000"


def test_an_illegal_choice_becomes_a_call() -> None:
    player = Player(Scripted(LIMIT, "f"))
    turn = player.hear("MATCHSTATE:0:0:c:TdAs|")
    assert turn is not None
    assert player.decide(turn).endswith(":c")


def test_three_players_are_scored_with_the_cards_that_are_shown() -> None:
    player = Player(resolve("@call", LIMIT3))
    assert player.hear("MATCHSTATE:0:4:fcc/cc/cc/cc:AsAd|KsKd|/2c3c4d/8h/9h") is None
    assert (player.hands, player.chips) == (1, 10)


def test_the_same_seed_plays_the_same_match() -> None:
    def play(seed: int) -> list[str]:
        player = Player(resolve("@random", LIMIT), seed)
        return [
            player.decide(turn)
            for hand in range(40)
            if (turn := player.hear(f"MATCHSTATE:1:{hand}::|TdAs")) is not None
        ]

    assert play(1) == play(1) != play(2)


# What it makes of the wrong game


@pytest.mark.parametrize(
    "state",
    ["MATCHSTATE:0:0:r300:TdAs|", "MATCHSTATE:0:0::TdAs||", "MATCHSTATE:0:0:f:TdAs|", "MATCHSTATE:0:0:cc:TdAs|/2c3c4d"],
)
def test_a_state_of_another_game_says_so(state: str) -> None:
    game = LIMIT3 if state.endswith("f:TdAs|") else LIMIT
    with pytest.raises(PipelineError, match="--game"):
        Player(resolve("@call", game)).hear(state)


# When the dealer goes


def test_no_dealer_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(PipelineError, match=rf"no dealer at localhost port {port} .*--reconnect"):
        connect_agent(resolve("@call", LIMIT), "localhost", port)


def test_a_dealer_that_leaves_in_mid_hand_is_noticed() -> None:
    with dealing(sends(lines("MATCHSTATE:0:0:f:TdAs|", "MATCHSTATE:1:1::|TdAs"), answers=1)) as port:
        summary = connect_agent(resolve("@call", LIMIT), "localhost", port)
    assert (summary.hands, summary.complete) == (1, False)


def test_a_dealer_that_says_nothing_is_left_after_the_idle_time() -> None:
    done = threading.Event()
    with dealing(lambda connection: bool(done.wait(20))) as port:
        with pytest.raises(PipelineError, match=r"silent for 0\.05 s"):
            connect_agent(resolve("@call", LIMIT), "localhost", port, idle_ms=50)
        done.set()


def test_a_line_without_end_is_refused() -> None:
    def babble(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(b"x" * 4096)
        except OSError:
            pass

    with dealing(babble) as port, pytest.raises(PipelineError, match="more than 65,536 bytes"):
        connect_agent(resolve("@call", LIMIT), "localhost", port)


def test_reconnect_takes_the_match_up_again() -> None:
    first = sends(lines("MATCHSTATE:0:0:f:TdAs|", "MATCHSTATE:1:1::|TdAs"), answers=1)
    second = sends(lines("MATCHSTATE:1:1::|TdAs", "MATCHSTATE:1:1:f:|TdAs"), answers=1)
    with dealing(first, second) as port:
        summary = connect_agent(resolve("@call", LIMIT), "localhost", port, reconnect_ms=10_000)
    assert (summary.hands, summary.chips, summary.complete) == (2, 0, True)


def test_the_connect_command_ends_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    with dealing(sends(lines("MATCHSTATE:0:0:f:TdAs|"), answers=0)) as port:
        main(["connect", "localhost", str(port), "@call"])
    assert capsys.readouterr().out.startswith("1 hands, +5 chips (+500 mbb/h); 0 decisions")


def test_the_connect_command_fails_when_the_dealer_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    killed = sends(lines("MATCHSTATE:0:0:f:TdAs|", "MATCHSTATE:1:1::|TdAs"), answers=1)
    with dealing(killed) as port, pytest.raises(SystemExit) as end:
        main(["connect", "localhost", str(port), "@call", "--json"])
    assert end.value.code == 1
    shown = capsys.readouterr()
    summary = json.loads(shown.out)
    assert (summary["hands"], summary["mbb_per_hand"], summary["interval"]) == (1, 500, None)
    assert shown.err.endswith("left before the match was over\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["@cal"], "did you mean @call"),
        (["no/such/bundle"], "no/such/bundle"),
        (["@call", "--game", "holdem.limit"], "no game file"),
    ],
)
def test_an_agent_that_cannot_be_found_is_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["connect", "localhost", "1", *arguments])
    assert end.value.code == 1
    shown = capsys.readouterr().err
    assert error in shown
    assert shown.count("\n") == 1


# Agents that learn


class Notes(Scripted):
    """Keeps what it is told."""

    interval = 2

    def begin(self) -> None:
        self.told: list[FinishedHands] = []

    def seen(self, hands: FinishedHands) -> None:
        self.told.append(hands)


def test_a_learning_agent_is_told_of_finished_hands() -> None:
    agent = Notes(LIMIT3)
    player = Player(agent)
    player.hear("MATCHSTATE:1:0:fcc/cc/cc/cc:AsAd|KsKd|/2c3c4d/8h/9h")
    assert agent.told == []
    player.hear("MATCHSTATE:0:1:rff:TsTd||")
    (hands,) = agent.told
    assert hands.position.tolist() == [1, 0]
    assert hands.seats.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert hands.hole.tolist() == [[[51, 49], [47, 45], [255, 255]], [[35, 33], [255, 255], [255, 255]]]
    assert hands.board.tolist() == [[0, 4, 9, 26, 30], [255] * 5]
    assert hands.labels[1].tolist()[:4] == [3, 1, 1, 0]
    assert hands.payoffs.tolist() == [[10, -10, 0], [-5, -10, 15]]


# Time


class Thinker(Scripted):
    """Wants to raise, but only after somebody has answered for it."""

    def __init__(self) -> None:
        super().__init__(LIMIT, "c" * WARM_UP + "r")
        self.answered = threading.Event()

    def probabilities(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.asked == WARM_UP:
            assert self.answered.wait(20)
        return super().probabilities(rows)

    def play(self, **limits: int) -> tuple[MatchSummary, list[bytes]]:
        """A match of one decision."""
        heard: list[bytes] = []
        script = sends(lines("MATCHSTATE:1:0::|TdAs"), heard, answers=1)

        def ask(connection: socket.socket) -> None:
            script(connection)
            self.answered.set()
            connection.sendall(lines("MATCHSTATE:1:0:cr:|TdAs", "MATCHSTATE:1:0:crf:|TdAs"))

        with dealing(ask) as port:
            return connect_agent(self, "localhost", port, **limits), heard


def test_a_late_agent_is_answered_for() -> None:
    agent = Thinker()
    summary, heard = agent.play(response_ms=50)
    assert heard[1] == b"MATCHSTATE:1:0::|TdAs:c\r\n"
    assert (agent.asked, summary.overdue, summary.hands) == (WARM_UP + 2, 1, 1)


def test_an_agent_with_time_enough_is_waited_for() -> None:
    agent = Thinker()
    agent.answered.set()
    summary, heard = agent.play()
    assert heard[1] == b"MATCHSTATE:1:0::|TdAs:r\r\n"
    assert summary.overdue == 0


def test_an_agent_without_time_left_is_not_asked() -> None:
    agent = Thinker()
    summary, heard = agent.play(per_hand_ms=0)
    assert heard[1] == b"MATCHSTATE:1:0::|TdAs:c\r\n"
    assert (agent.asked, summary.overdue) == (WARM_UP, 2)


def test_an_agent_without_time_left_for_the_hand_is_not_asked() -> None:
    agent = Thinker()
    summary, heard = agent.play(hand_ms=0)
    assert heard[1] == b"MATCHSTATE:1:0::|TdAs:c\r\n"
    assert (agent.asked, summary.overdue) == (WARM_UP, 2)


def test_the_time_of_a_hand_is_used_up_by_its_answers_alone() -> None:
    clock = client._Clock(10.0, 4.0, 100.0)
    assert clock.allowed_s(1) == pytest.approx(0.9 * 4)
    clock.add(3)
    assert clock.allowed_s(1) == pytest.approx(0.9 * 1)
    assert clock.allowed_s(2) == pytest.approx(0.9 * 4)


def test_our_agents_keep_the_dealers_time_for_a_hand() -> None:
    agent = Scripted(LIMIT)
    with dealing(sends(lines("MATCHSTATE:1:0::|TdAs"), answers=1)) as port:
        summary = matches._play_agent(agent, port, 1, Limits()._replace(hand_ms=0))
    assert (agent.asked, summary.overdue) == (WARM_UP, 1)


class Absent(Notes):
    """Is not back from one call before three more states have been answered: a decision, or what it learns."""

    def __init__(self, call: str) -> None:
        super().__init__(LIMIT)
        self.interval = 1
        self.call = call
        self.answered = threading.Event()

    def probabilities(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.call == "decide" and self.asked == WARM_UP:
            assert self.answered.wait(20)
        return super().probabilities(rows)

    def seen(self, hands: FinishedHands) -> None:
        if self.call == "learn":
            assert self.answered.wait(20)
        super().seen(hands)


@pytest.mark.parametrize(("call", "asked"), [("decide", 1), ("learn", 0)])
def test_states_are_answered_while_the_agent_is_not_back(call: str, asked: int) -> None:
    agent = Absent(call)
    heard: list[bytes] = []

    def ask(connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            file.readline()
            for hand in range(4):
                last = lines(f"MATCHSTATE:0:{hand - 1}:rf:TdAs|") if hand else lines("MATCHSTATE:1:9:f:|TdAs")
                connection.sendall(last + lines(f"MATCHSTATE:1:{hand}::|TdAs"))
                heard.append(file.readline())
        agent.answered.set()

    with dealing(ask) as port:
        summary = connect_agent(agent, "localhost", port, response_ms=50)
    assert heard == [f"MATCHSTATE:1:{hand}::|TdAs:c\r\n".encode() for hand in range(4)]
    assert agent.asked == WARM_UP + asked  # not about states that are answered
    assert (summary.decisions, summary.overdue, summary.hands) == (4, 4, 4)
    assert len(agent.told) == 4


def test_a_dealer_that_sends_ahead_is_read_no_further_than_the_line_of_states_is_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "MOST_WAITING", 1)
    heard: list[bytes] = []
    with dealing(sends(SENT, heard)) as port:
        summary = connect_agent(annex_agent(WARM_UP), "localhost", port)
    assert b"".join(heard[1:]) == ANSWERED
    assert summary.chips == SCORE
