"""Players and dealers that misbehave on the wire: whatever they send or leave unread, the other side ends in time.

Every case runs on real sockets. The time limits are small; where a number of bytes is the bound, the time limits are
long, so that only that bound can end the match.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest

from pipeline.agents.names import resolve
from pipeline.arena.wire import sockets
from pipeline.arena.wire.client import MatchSummary, connect_agent
from pipeline.arena.wire.dealer import MatchOutcome, MatchPlan, deals, listen, run_match
from pipeline.arena.wire.sockets import Limits
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
HELLO = b"VERSION:2.0.0\r\n"
LONG = Limits(response_ms=20_000, hand_ms=20_000, per_hand_ms=20_000, start_ms=20_000)
QUICK = LONG._replace(response_ms=60)
MOST_SENT = 1 << 28
"""a flood that is not ended by the other side ends here, and the test fails"""


def flood(link: socket.socket, chunk: bytes) -> None:
    """Send without pause, never read, until the other side ends it."""
    sent = 0
    with contextlib.suppress(OSError):
        while sent < MOST_SENT:
            link.sendall(chunk)
            sent += len(chunk)


def reset(link: socket.socket) -> None:
    """Break the connection off instead of closing it."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


# Players that misbehave at our dealer


@contextlib.contextmanager
def dealt(limits: Limits, hands: int = 3) -> Iterator[tuple[socket.socket, socket.socket, Future[MatchOutcome]]]:
    """A dealer beside the test and two players by hand; the second one acts first."""
    listeners = listen([0, 0])
    ports = [listener.getsockname()[1] for listener in listeners]
    plan = MatchPlan(LIMIT, ("Alice", "Bob"), hands, 7, limits=limits)
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
        outcome = pool.submit(run_match, plan, listeners)
        links = []
        for port in ports:
            link = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            link.sendall(HELLO)
            links.append(link)
        yield links[0], links[1], outcome


ASKED = f"MATCHSTATE:1:0::|{next(deals(LIMIT, 7)).holes[1]}".encode()
FLOODS = {
    "comments": b"# I am still thinking\r\n" * 2000,
    "remarks for a screen": b";so be it\n" * 4000,
    "blank lines": b"\n" * 40_000,
    "blank lines with carriage returns": b"\r\n" * 20_000,
    "garbage": b"la la la\n" * 4000,
    "zero bytes": b"\0" * 40_000,
    "bytes that are no text": b"\xff\xfe\xfd\n" * 10_000,
    "a line without end": b"x" * 40_000,
    "an answer to another hand without end": ASKED.replace(b":0:", b":9:") + b":" + b"c" * 40_000,
    "long lines": (b"x" * 4095 + b"\n") * 10,
    "answers to an earlier hand": b"MATCHSTATE:1:9999::|AsAc:c\r\n" * 1500,
    "answers of another player": b"MATCHSTATE:0:0::AsAc|:c\r\n" * 1500,
    "answers to betting that was not": ASKED.replace(b"::", b":rrr:") + b":c\r\n",
    "states of another hand with something else behind": (ASKED.replace(b":0:", b":9:") + b"x:c\r\n") * 1000,
    "the version again": HELLO * 3000,
    "half of the state": (ASKED[:20] + b"\n") * 2000,
    "actions without a state": b":c\r\nc\r\ncall\r\n" * 3000,
    "requests for a web page": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000,
}


@pytest.mark.parametrize("chunk", FLOODS.values(), ids=FLOODS)
def test_a_player_that_floods_the_dealer_is_out_of_time(chunk: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "MOST_RECEIVED", 1 << 40)
    with dealt(QUICK) as (_, bob, outcome):
        flood(bob, chunk)
        with pytest.raises(
            PipelineError, match=r"^seat 2 \(Bob\) did not answer within 0\.06 s: .* after 0 of 3 hands$"
        ):
            outcome.result(20)


@pytest.mark.parametrize("chunk", FLOODS.values(), ids=FLOODS)
def test_a_player_may_send_only_so_many_bytes_without_an_answer(chunk: bytes) -> None:
    with dealt(LONG) as (_, bob, outcome):
        flood(bob, chunk)
        with pytest.raises(PipelineError, match=r"^seat 2 \(Bob\) sent 26\d,\d\d\d bytes that answer nothing: "):
            outcome.result(20)


@pytest.mark.parametrize("limit", ["response_ms", "hand_ms", "per_hand_ms"])
def test_every_time_limit_ends_a_flood(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "MOST_RECEIVED", 1 << 40)
    reason = {"response_ms": "did not answer within", "hand_ms": "for a hand", "per_hand_ms": "used up"}[limit]
    with dealt(LONG._replace(**{limit: 20})) as (_, bob, outcome):
        flood(bob, b"#\n" * 10_000)
        with pytest.raises(PipelineError, match=rf"seat 2 \(Bob\) .*{reason}"):
            outcome.result(20)


ENDINGS: dict[str, tuple[Callable[[socket.socket], object], str]] = {
    "says nothing": (lambda link: None, "did not answer within"),
    "says half of an answer": (lambda link: link.sendall(ASKED + b":"), "did not answer within"),
    "answers without a line end": (lambda link: link.sendall(ASKED + b":c"), "did not answer within"),
    "answers something else": (lambda link: link.sendall(b"MATCHSTATE:1:1::|AsAc:c\r\n"), "did not answer within"),
    "leaves": (lambda link: link.close(), "left|is gone"),
    "leaves after half of an answer": (lambda link: (link.sendall(ASKED), link.close()), "left|is gone"),
    "breaks off": (reset, "is gone|left"),
    "closes its half": (lambda link: link.shutdown(socket.SHUT_WR), "left|is gone"),
    "reads no more": (lambda link: link.shutdown(socket.SHUT_RD), "did not answer within|is gone|left"),
}


@pytest.mark.parametrize(("act", "reason"), ENDINGS.values(), ids=ENDINGS)
def test_a_player_that_fails_is_named(act: Callable[[socket.socket], object], reason: str) -> None:
    with dealt(QUICK) as (_, bob, outcome):
        act(bob)
        with pytest.raises(PipelineError, match=rf"^seat 2 \(Bob\) ({reason})"):
            outcome.result(20)


def test_noise_below_the_bounds_is_passed_over() -> None:
    with dealt(LONG, hands=1) as (alice, bob, outcome):
        bob.sendall(b"#\n\n\0garbage\n" * 5000 + ASKED + b":f\r\n")
        assert outcome.result(20).score.totals == (5.0, -5.0)
        assert outcome.result().warnings == 2 * 5000
        alice.recv(4096)


@contextlib.contextmanager
def unread() -> Iterator[sockets.Seat]:
    """A seat whose player never reads."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        yield sockets.Seat(1, "Bob", ours)


def test_a_player_that_does_not_read_is_given_up_when_too_much_waits_for_it() -> None:
    def send(seat: sockets.Seat) -> None:
        for sent in count(0, 10_000):
            assert sent <= sockets.MOST_UNREAD + (1 << 18)
            seat.outbox += b"x" * 10_000
            seat.send()  # never waits

    with (
        unread() as bob,
        pytest.raises(sockets.PlayerLostError, match=r"^seat 2 \(Bob\) does not read what it is sent$"),
    ):
        send(bob)


def test_the_last_states_of_a_match_are_waited_for_only_so_long() -> None:
    with unread() as bob:
        bob.outbox = b"x" * 1_000_000
        with pytest.raises(sockets.PlayerLostError, match="does not read what it is sent"):
            bob.flush(0.02)


@pytest.mark.parametrize("opening", [b"", b"VERSION:2.0", b"#" * 100, b"VERSION:2.0.0"])
def test_the_start_of_a_match_is_bounded_too(opening: bytes) -> None:
    listeners = listen([0, 0])
    plan = MatchPlan(LIMIT, ("Alice", "Bob"), 1, 7, limits=LONG._replace(start_ms=60))
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
        ports = [listener.getsockname()[1] for listener in listeners]
        outcome = pool.submit(run_match, plan, listeners)
        for port, words in zip(ports, (opening, HELLO), strict=True):
            with contextlib.suppress(ConnectionError):
                link = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
                link.sendall(words)
        with pytest.raises(PipelineError, match=r"seat 1 \(Alice\) did not (answer|connect) within 0\.06 s"):
            outcome.result(20)


# Dealers that misbehave at our client


def heard(script: Callable[[socket.socket], object], times: int = 1, **limits: int) -> MatchSummary:
    """What `connect_agent` comes to with a dealer that follows a script, once for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)

        def serve() -> None:
            with contextlib.suppress(OSError):
                for _ in range(times):
                    link, _ = server.accept()
                    with link:
                        link.settimeout(20)
                        script(link)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return connect_agent(resolve("@call", LIMIT), "127.0.0.1", server.getsockname()[1], **limits)
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join(20)


MINE = b"MATCHSTATE:1:0::|TdAs\r\n"
DEALERS_FLOODS = {
    "comments": b"# welcome\r\n" * 4000,
    "remarks for a screen": b";hello\n" * 5000,
    "blank lines": b"\n" * 40_000,
    "garbage": b"la la la\n" * 4000,
    "bytes that are no text": b"\xff\xfe\xfd\n" * 10_000,
    "zero bytes": b"\0\n" * 20_000,
    "states that are none": b"MATCHSTATE:1:0\r\n" * 2000,
    "the same state": b"MATCHSTATE:0:0::TdAs|\r\n" * 2000,
    "the score": b"SCORE:5|-5:Alice|Bob\r\n" * 2000,
    "a web page": b"<html><body>hello</body></html>\n" * 1000,
}


@pytest.mark.parametrize("chunk", DEALERS_FLOODS.values(), ids=DEALERS_FLOODS)
def test_a_dealer_that_sends_nothing_new_is_left_after_the_idle_time(chunk: bytes) -> None:
    with pytest.raises(PipelineError, match=r"the dealer has sent nothing new for 0\.05 s"):
        heard(lambda link: flood(link, chunk), idle_ms=50)


@pytest.mark.parametrize("chunk", DEALERS_FLOODS.values(), ids=DEALERS_FLOODS)
def test_a_dealer_may_send_only_so_many_bytes_without_a_new_state(
    chunk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.arena.wire.client.MOST_IGNORED_BYTES", 200_000)
    with pytest.raises(PipelineError, match=r"the dealer sent 200,\d\d\d bytes without a new state"):
        heard(lambda link: flood(link, chunk))


def test_a_dealer_that_repeats_its_question_and_never_reads_is_left() -> None:
    with pytest.raises(PipelineError, match=r"the dealer (does not read|has sent nothing new)"):
        heard(lambda link: flood(link, MINE * 1000), response_ms=50, idle_ms=2000)


def test_a_dealer_that_deals_on_and_never_reads_is_left() -> None:
    """Every state is new, so that only the answers that nobody reads can end it."""

    def deal_on(link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for start in count(0, 1000):
                hands = range(start, start + 1000)
                link.sendall(b"".join(b"MATCHSTATE:1:%d::|TdAs\r\n" % number for number in hands))

    with pytest.raises(PipelineError, match=r"the dealer does not read: an answer could not be sent for 0\.05 s"):
        heard(deal_on, response_ms=50)


STOPS: dict[str, tuple[Callable[[socket.socket], object], str]] = {
    "says nothing": (lambda link: link.recv(1 << 16) and link.recv(1 << 16), r"silent for 0\.05 s"),
    "says half of a line": (lambda link: (link.sendall(MINE[:9]), link.recv(99), link.recv(99)), r"silent for 0\.05 s"),
    "sends a line without end": (lambda link: flood(link, b"x" * 4096), "more than 65,536 bytes"),
    "deals another game": (lambda link: link.sendall(b"MATCHSTATE:0:0:r300:TdAs|\r\n"), "--game"),
    "deals for three": (lambda link: link.sendall(b"MATCHSTATE:0:0::TdAs||\r\n"), "--game"),
    "speaks to a third player": (lambda link: link.sendall(b"MATCHSTATE:7:0::|TdAs\r\n"), "player 7 of 2"),
}


@pytest.mark.parametrize(("act", "reason"), STOPS.values(), ids=STOPS)
def test_a_dealer_that_fails_is_a_sentence(act: Callable[[socket.socket], object], reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        heard(act, idle_ms=50)


LEAVES: dict[str, Callable[[socket.socket], object]] = {
    "at once": lambda link: None,
    "by breaking off": reset,
    "after the version": lambda link: link.recv(99),
    "after half a state": lambda link: link.sendall(MINE[:12]),
    "before the answer": lambda link: link.sendall(MINE),
    "by breaking off before the answer": lambda link: (link.sendall(MINE), reset(link)),
}


@pytest.mark.parametrize("act", LEAVES.values(), ids=LEAVES)
def test_a_dealer_that_leaves_gives_an_incomplete_match(act: Callable[[socket.socket], object]) -> None:
    said = ""
    try:
        summary = heard(act)
    except PipelineError as error:
        said = str(error)
    if said:  # it broke off before the connection was made
        assert "Connection reset" in said
    else:
        assert (summary.hands, summary.complete) == (0, False)


def test_a_dealer_that_always_hangs_up_is_not_tried_for_ever() -> None:
    summary = heard(lambda link: None, times=1000, reconnect_ms=150)
    assert (summary.hands, summary.complete) == (0, False)


# Many more, for `make test-long`: random mixtures of everything above


@pytest.mark.long
@pytest.mark.parametrize("seed", range(150))
def test_a_dealer_survives_any_mixture_of_noise(seed: int) -> None:
    """Noise ends the match within its bounds, or is passed over and the answer behind it is taken."""
    rng = random.Random(seed)
    chunks = [rng.choice(list(FLOODS.values()))[: rng.randrange(1, 20_000)] for _ in range(rng.randrange(1, 40))]
    with dealt(QUICK, hands=1) as (_, bob, outcome):
        with contextlib.suppress(OSError):
            for chunk in chunks:
                bob.sendall(chunk)
            bob.sendall(b"\r\n" + ASKED + b":f\r\n")
        try:
            assert outcome.result(20).score.names == ("Alice", "Bob")
        except PipelineError as error:
            assert str(error).startswith("seat 2 (Bob) ")  # noqa: PT017
            assert "bytes that answer nothing" in str(error) or "did not answer within" in str(error)  # noqa: PT017


@pytest.mark.long
@pytest.mark.parametrize("seed", range(150))
def test_a_client_survives_any_mixture_of_noise(seed: int) -> None:
    """Noise between two states changes nothing that the client answers or counts."""
    rng = random.Random(seed)
    kinds = [chunk for name, chunk in DEALERS_FLOODS.items() if name != "the same state"]
    noise = b"".join(rng.choice(kinds)[: rng.randrange(1, 5000)] + b"\n" for _ in range(rng.randrange(1, 20)))
    answers: list[bytes] = []

    def deal(link: socket.socket) -> None:
        with link.makefile("rb") as file:
            link.sendall(noise + MINE + noise)
            answers.extend(file.readline() for _ in range(2))
            link.sendall(noise + b"MATCHSTATE:1:0:crf:|TdAs\r\n" + noise)

    summary = heard(deal)
    assert answers == [HELLO, MINE.strip() + b":c\r\n"]
    assert (summary.hands, summary.decisions, summary.complete) == (1, 1, True)
