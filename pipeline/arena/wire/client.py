"""Play an agent on an ACPC dealer's socket (protocol 2.0.0).

`connect_agent` carries lines between a dealer and a `player.Player` over TCP, until the match ends and a
`MatchSummary` comes out. Lines may come split, merged, repeated or between comments. A dealer that sends nothing new,
or reads nothing, is given up after a bounded time and number of bytes.

Time is a budget as in the competition: so much for an answer, so much on average for a hand. A background thread
answers with a call when the agent is still thinking shortly before the time is up, and an agent without time left is
not asked.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.arena.wire.player import ActionRequest, Player
from pipeline.arena.wire.sockets import RECEIVE_BYTES, limit
from pipeline.models.measures import Estimate, Winnings
from pipeline.runtime.errors import PipelineError

VERSION = b"VERSION:2.0.0\r\n"
MAX_LINE = 65_536
MARGIN = 0.9
"""the share of the time allowed after which an answer is sent without the agent"""
MOST_IGNORED_BYTES = 1 << 24
"""bytes that a dealer may send without a new state"""
MOST_ANSWER_TIMES = 1 << 16
"""times of answers that the percentile is taken from: of a longer match every second one, then every fourth ..."""


class MatchSummary(NamedTuple):
    """Results and answer times of a match, as far as its player knows them."""

    hands: int
    chips: float
    mbb_per_hand: float
    decisions: int
    mean_ms: float
    p99_ms: float
    longest_ms: float
    overdue: int
    """answers given without the agent, because time was up"""
    ignored: int
    """lines from the dealer that were neither states nor comments"""
    complete: bool
    """the dealer left after a finished hand"""

    def json(self) -> dict[str, Any]:
        """Return the object that `connect --json` prints; one seating of a match gives winnings without an interval."""
        return {**self._asdict(), **Winnings(Estimate(self.mbb_per_hand)).json()}


class _DeadlineGuard(threading.Thread):
    """A thread that answers with a call when the agent's answer would come too late."""

    def __init__(self, send: Callable[[bytes], None], every_s: float) -> None:
        super().__init__(daemon=True)
        self._send = send
        self._every_s = every_s
        self._lock = threading.Lock()
        self._pending: tuple[float, ActionRequest] | None = None
        self._done = threading.Event()
        self.overdue = 0
        self.failed = False
        """an answer could not be sent"""

    def expect(self, request: ActionRequest, deadline: float) -> None:
        """From now on, call at the deadline unless the request is claimed before."""
        self._pending = deadline, request

    def claim(self) -> bool:
        """Take the request from the guard; return False when the guard has answered it already."""
        with self._lock:
            # under the lock, so that agent and guard never both answer one state
            in_time, self._pending = self._pending is not None, None
            return in_time

    def run(self) -> None:
        while not self._done.wait(self._every_s):
            with self._lock:
                if self._pending and time.perf_counter() >= self._pending[0]:
                    request, self._pending = self._pending[1], None
                    self.overdue += 1
                    try:
                        self._send(f"{request.reply('c')}\r\n".encode())
                    except OSError:
                        self.failed = True

    def __enter__(self) -> _DeadlineGuard:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()


@dataclass
class _Clock:
    """A player's time budget and the time used."""

    response_s: float
    per_hand_s: float
    used_s: float = 0.0
    overdue: int = 0
    answers: int = 0
    longest_s: float = 0.0

    def __post_init__(self) -> None:
        self.taken_s = array("f")
        self._every = 1

    def allowed_s(self, hands: int) -> float:
        """Return how long the next answer may take after `hands` hands were begun."""
        return MARGIN * min(self.response_s, self.per_hand_s * hands - self.used_s)

    def add(self, seconds: float) -> None:
        self.used_s += seconds
        self.longest_s = max(self.longest_s, seconds)
        if self.answers % self._every == 0:
            self.taken_s.append(seconds)
            if len(self.taken_s) == MOST_ANSWER_TIMES:
                # thinned evenly over the match, in bounded memory
                self.taken_s, self._every = self.taken_s[::2], 2 * self._every
        self.answers += 1


class _DealerLines:
    """Whole lines from a dealer's socket, until the dealer closes it or is lost.

    A dealer that sends, but nothing new (comments, garbage, the same state again), is given up as one that is silent:
    after `idle_s` seconds, or after `MOST_IGNORED_BYTES` bytes.
    """

    def __init__(self, connection: socket.socket, idle_s: float) -> None:
        self._connection = connection
        self._idle_s = idle_s
        self._since = time.perf_counter()
        self._ignored_bytes = 0

    def heard_news(self, now: float) -> None:
        """Take note that the last line was a new state: the limits start anew."""
        self._since, self._ignored_bytes = now, 0

    def heard_nothing(self, line: str, now: float) -> None:
        """Take note that the last line was no new state; give the dealer up at the limits."""
        self._ignored_bytes += len(line) + 1
        if self._ignored_bytes > MOST_IGNORED_BYTES:
            raise PipelineError(
                f"the dealer sent {self._ignored_bytes:,} bytes without a new state: not an ACPC dealer?"
            )
        if now - self._since > self._idle_s:
            raise PipelineError(f"the dealer has sent nothing new for {self._idle_s:g} s")

    def __iter__(self) -> Iterator[str]:
        buffer = b""
        while True:
            try:
                data = self._connection.recv(RECEIVE_BYTES)
            except BlockingIOError:
                raise PipelineError(f"the dealer has been silent for {self._idle_s:g} s") from None
            except OSError:
                return
            if not data:
                return
            *whole, buffer = (buffer + data).split(b"\n")
            for line in whole:
                yield line.decode("ascii", "replace").rstrip("\r")
            if len(buffer) > MAX_LINE:
                raise PipelineError(f"the dealer sent a line of more than {MAX_LINE:,} bytes: not an ACPC dealer?")
            if not whole:
                self.heard_nothing("", time.perf_counter())


def _answer_dealer(player: Player, connection: socket.socket, clock: _Clock, idle_s: float) -> None:
    """Answer the dealer until it leaves."""
    sending_s = min(idle_s, clock.response_s)
    limit(connection, idle_s, sending_s)
    check_s = min(max(min(clock.response_s, clock.per_hand_s) * (1 - MARGIN) / 2, 0.005), 0.25)
    lines, news = _DealerLines(connection, idle_s), player.news
    unread = PipelineError(f"the dealer does not read: an answer could not be sent for {sending_s:g} s")
    with contextlib.suppress(BrokenPipeError, ConnectionError), _DeadlineGuard(connection.sendall, check_s) as guard:
        connection.sendall(VERSION)
        for line in lines:
            heard = time.perf_counter()
            request = player.hear(line)
            if player.news != news:
                news = player.news
                lines.heard_news(heard)
            else:
                lines.heard_nothing(line, heard)
            if request is None:
                continue
            allowed = clock.allowed_s(player.begun)
            guard.expect(request, heard + allowed)
            answer = player.decide(request) if allowed > 0 else request.reply("c")
            clock.overdue += allowed <= 0
            if guard.claim():
                try:
                    connection.sendall(f"{answer}\r\n".encode())
                except BlockingIOError:
                    raise unread from None
            elif guard.failed:
                raise unread
            clock.add(time.perf_counter() - heard)
        clock.overdue += guard.overdue


def _open_connection(host: str, port: int, patience_s: float) -> socket.socket:
    """Connect to the dealer, trying for `patience_s`."""
    until = time.monotonic() + patience_s
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(1.0, min(10.0, patience_s)))
        except OSError as error:
            if time.monotonic() >= until:
                raise PipelineError(
                    f"no dealer at {host} port {port} ({error.strerror or error}); --reconnect-ms waits for one"
                ) from None
            time.sleep(min(0.1, patience_s))
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection


def connect_agent(
    agent: Agent,
    host: str,
    port: int,
    *,
    seed: int | None = None,
    response_ms: int = 600_000,
    per_hand_ms: int = 7_000,
    idle_ms: int = 1_800_000,
    reconnect_ms: int = 0,
) -> MatchSummary:
    """Play an agent on a dealer's socket until the match ends.

    When the dealer is not there or leaves in mid-hand, it is tried again for `reconnect_ms`; so it is when it lets the
    player in and leaves at once, without a new state.
    """
    player, clock = Player(agent, seed), _Clock(response_ms / 1000, per_hand_ms / 1000)
    player.warm_up()
    patience_s = reconnect_ms / 1000
    last_news = time.monotonic()
    while True:
        news = player.news
        with _open_connection(host, port, patience_s) as connection:
            _answer_dealer(player, connection, clock, idle_ms / 1000)
        complete = player.between_hands and player.hands > 0
        now = time.monotonic()
        if player.news != news:
            last_news = now
        if complete or now - last_news >= patience_s:
            return _summary(player, clock, complete)
        if player.news == news:
            time.sleep(min(0.1, patience_s))


def _summary(player: Player, clock: _Clock, complete: bool) -> MatchSummary:
    taken_s = clock.taken_s or [0.0]
    return MatchSummary(
        hands=player.hands,
        chips=player.chips,
        mbb_per_hand=1000 * player.chips / player.game.big_blind / max(player.hands, 1),
        decisions=clock.answers,
        mean_ms=1000 * clock.used_s / max(clock.answers, 1),
        p99_ms=1000 * float(np.percentile(taken_s, 99)),
        longest_ms=1000 * clock.longest_s,
        overdue=clock.overdue,
        ignored=player.ignored,
        complete=complete,
    )


def start_script() -> str:
    """Return a shell script for a bundle's folder, called as the competition calls its players: HOST PORT."""
    return """#!/bin/sh
# Plays the bundle beside this file on an ACPC dealer: HOST PORT [options of `pipeline connect`]
cd "$(dirname "$0")" || exit 1
exec "${PYTHON:-python3}" -m pipeline connect "$@" .
"""
