"""Play an agent on an ACPC dealer's socket (protocol 2.0.0).

`connect_agent` carries lines between a dealer and a `player.Player` over TCP, until the match ends and a
`MatchSummary` comes out. Lines may come split, merged, repeated or between comments. A dealer that sends nothing new,
or reads nothing, is given up after a bounded time and number of bytes.

Time is a budget as in the competition: so much for an answer, for a hand, and on average over the hands. It runs from
the moment a state arrives, so one thread reads the dealer's lines while another asks the agent. When the agent is
still thinking shortly before the time is up, the reading thread answers with a call, and so it does to the states that
follow, until the agent is back. An agent without time left is not asked.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.arena.wire.player import ActionRequest, Player
from pipeline.arena.wire.sockets import RECEIVE_BYTES, Limits, limit
from pipeline.models.measures import Estimate, Winnings
from pipeline.runtime.errors import PipelineError

VERSION = b"VERSION:2.0.0\r\n"
MAX_LINE = 65_536
MARGIN = 0.9
"""the share of the time allowed after which an answer is sent without the agent"""
MOST_IGNORED_BYTES = 1 << 24
"""bytes that a dealer may send without a new state"""
MOST_WAITING = 256
"""states that may wait for an answer before the dealer is read no further; one that waits for its answers sends one"""
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
    """answers given without the agent, because its time was up"""
    ignored: int
    """lines from the dealer that were neither states nor comments"""
    complete: bool
    """the dealer left after a finished hand"""

    def json(self) -> dict[str, Any]:
        """Return the object that `connect --json` prints; one seating of a match gives winnings without an interval."""
        return {**self._asdict(), **Winnings(Estimate(self.mbb_per_hand)).json()}


@dataclass
class _Clock:
    """A player's time budget and the time used."""

    response_s: float
    hand_s: float
    per_hand_s: float
    used_s: float = 0.0
    hand_used_s: float = 0.0
    """in the last hand begun"""
    begun: int = 0
    overdue: int = 0
    answers: int = 0
    longest_s: float = 0.0

    def __post_init__(self) -> None:
        self.taken_s = array("f")
        self._every = 1

    def allowed_s(self, begun: int) -> float:
        """Return how long the next answer may take after `begun` hands were begun."""
        if begun != self.begun:
            self.begun, self.hand_used_s = begun, 0.0
        return MARGIN * min(self.response_s, self.hand_s - self.hand_used_s, self.per_hand_s * begun - self.used_s)

    def add(self, seconds: float) -> None:
        self.used_s += seconds
        self.hand_used_s += seconds
        self.longest_s = max(self.longest_s, seconds)
        if self.answers % self._every == 0:
            self.taken_s.append(seconds)
            if len(self.taken_s) == MOST_ANSWER_TIMES:
                # thinned evenly over the match, in bounded memory
                self.taken_s, self._every = self.taken_s[::2], 2 * self._every
        self.answers += 1


class _DealerLines:
    """Whole lines from a dealer's socket with the time of their arrival, until the dealer closes it or is lost.

    A dealer that sends, but nothing new (comments, garbage, the same state again), is given up as one that is silent:
    after `idle_s` seconds, or after `MOST_IGNORED_BYTES` bytes.
    """

    def __init__(self, connection: socket.socket, idle_s: float) -> None:
        self._connection = connection
        self._idle_s = idle_s
        self._news_at = self._data_at = time.perf_counter()
        self._ignored_bytes = 0

    def heard_news(self, now: float) -> None:
        """Take note that the last line was a new state: the limits start anew."""
        self._news_at, self._ignored_bytes = now, 0

    def awaits_answer(self, now: float) -> None:
        """Take note that the dealer is silent because it waits for an answer."""
        self._data_at = now

    def heard_nothing(self, line: str, now: float) -> None:
        """Take note that the last line was no new state; give the dealer up at the limits."""
        self._ignored_bytes += len(line) + 1
        if self._ignored_bytes > MOST_IGNORED_BYTES:
            raise PipelineError(
                f"the dealer sent {self._ignored_bytes:,} bytes without a new state: not an ACPC dealer?"
            )
        if now - self._news_at > self._idle_s:
            raise PipelineError(f"the dealer has sent nothing new for {self._idle_s:g} s")

    def __iter__(self) -> Iterator[tuple[float, list[str]]]:
        """Yield the lines that came together, and no lines whenever nothing came for a while."""
        buffer = b""
        while True:
            try:
                data = self._connection.recv(RECEIVE_BYTES)
            except BlockingIOError:
                if (now := time.perf_counter()) - self._data_at > self._idle_s:
                    raise PipelineError(f"the dealer has been silent for {self._idle_s:g} s") from None
                yield now, []
                continue
            except OSError:
                return
            now = self._data_at = time.perf_counter()
            if not data:
                return
            *whole, buffer = (buffer + data).split(b"\n")
            if whole:
                yield now, [line.decode("ascii", "replace").rstrip("\r") for line in whole]
            else:
                self.heard_nothing("", now)
            if len(buffer) > MAX_LINE:
                raise PipelineError(f"the dealer sent a line of more than {MAX_LINE:,} bytes: not an ACPC dealer?")


class _Waiting(NamedTuple):
    """A state that waits for an answer: when it came, and when it is answered without the agent."""

    request: ActionRequest
    heard: float
    deadline: float


class _Conversation:
    """A player's talk with a dealer over one connection: a thread reads, the caller's thread decides.

    States wait in line for their answers. Whoever answers the first one, takes it out of the line, under the lock: the
    caller when the agent has decided, the reading thread when its deadline has come.
    """

    def __init__(self, player: Player, connection: socket.socket, clock: _Clock, idle_s: float) -> None:
        self._player, self._connection, self._clock = player, connection, clock
        self._sending_s = min(idle_s, clock.response_s)
        # so often deadlines are looked at: between MARGIN and the whole of the time there are two looks at least
        shortest_s = min(clock.response_s, clock.hand_s, clock.per_hand_s)
        look_s = min(max(shortest_s * (1 - MARGIN) / 2, 0.005), 0.25, idle_s)
        limit(connection, look_s, self._sending_s)
        self._lines = _DealerLines(connection, idle_s)
        self._look_s = look_s
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Answer the dealer until it leaves."""
        reader = threading.Thread(target=self._read, daemon=True)
        with contextlib.suppress(ConnectionError):
            self._connection.sendall(VERSION)
        reader.start()
        try:
            while (waiting := self._next()) is not None:
                answer = self._player.decide(waiting.request)
                with self._changed:
                    if self._waiting and self._waiting[0] is waiting:  # not answered yet
                        self._answer_first(answer)
        except ConnectionError:
            pass  # the dealer has left
        finally:
            self._ended = True
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            reader.join()
        if self._failure:
            raise self._failure

    def _next(self) -> _Waiting | None:
        """Return the next state that waits for an answer, the hands before it settled; None at the end."""
        player = self._player
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended or player.unsettled)
                self._answer_due()
                first = self._waiting[0] if self._waiting else None
            if player.unsettled:
                player.settle()  # an agent that learns may take its time, so not under the lock
            elif first is not None or self._ended:
                return first

    def _answer_first(self, answer: str) -> None:
        """Send the answer to the first state that waits; the lock is held."""
        waiting = self._waiting.popleft()
        try:
            self._connection.sendall(f"{answer}\r\n".encode())
        except BlockingIOError:
            raise PipelineError(
                f"the dealer does not read: an answer could not be sent for {self._sending_s:g} s"
            ) from None
        now = time.perf_counter()
        self._clock.add(now - waiting.heard)
        self._lines.awaits_answer(now)
        self._changed.notify_all()

    def _read(self) -> None:
        """Put the dealer's states in line and answer those that are due, until it leaves or is given up."""
        try:
            for now, lines in self._lines:
                for line in lines:
                    self._hear(line, now)
                self._answer_due()
                while len(self._waiting) >= MOST_WAITING and not self._ended:
                    with self._changed:
                        self._changed.wait(self._look_s)
                    self._answer_due()
        except ConnectionError:
            pass
        except BaseException as error:
            self._failure = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _hear(self, line: str, now: float) -> None:
        """Take one line from the dealer."""
        player, news = self._player, self._player.news
        request = player.hear(line, settle=False)
        if player.news != news:
            self._lines.heard_news(now)
        else:
            self._lines.heard_nothing(line, now)
        if request is None and not player.unsettled:
            return
        with self._changed:
            if request is not None:
                self._waiting.append(_Waiting(request, now, now + self._clock.allowed_s(player.begun)))
                self._answer_due()  # before the agent can be asked: it may have no time left
            self._changed.notify_all()

    def _answer_due(self) -> None:
        """Call wherever the time is up."""
        if not self._waiting:
            return
        with self._changed:
            now = time.perf_counter()
            while self._waiting and now >= self._waiting[0].deadline:
                self._clock.overdue += 1
                self._answer_first(self._waiting[0].request.reply("c"))
            if self._waiting:
                self._lines.awaits_answer(now)


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
    response_ms: int = Limits().response_ms,
    hand_ms: int = Limits().hand_ms,
    per_hand_ms: int = Limits().per_hand_ms,
    idle_ms: int = 1_800_000,
    reconnect_ms: int = 0,
) -> MatchSummary:
    """Play an agent on a dealer's socket until the match ends.

    When the dealer is not there or leaves in mid-hand, it is tried again for `reconnect_ms`; so it is when it lets the
    player in and leaves at once, without a new state.
    """
    player, clock = Player(agent, seed), _Clock(response_ms / 1000, hand_ms / 1000, per_hand_ms / 1000)
    player.warm_up()
    patience_s = reconnect_ms / 1000
    last_news = time.monotonic()
    while True:
        news = player.news
        with _open_connection(host, port, patience_s) as connection:
            _Conversation(player, connection, clock, idle_ms / 1000).run()
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
