"""An agent on an ACPC dealer's socket (protocol 2.0.0).

`Player` turns each line from the dealer into an answer or silence: it follows the hand by the rules of the game, asks
its agent for probabilities in the very form it was trained on (`decisions.observation`), rolls the dice and keeps the
score. `connect` carries lines over TCP: they may come split, merged, repeated or between comments; hand numbers are
only compared, never counted on.

Time is a budget as in the competition: so much for an answer, so much on average for a hand. A watch answers with a
call when the agent is still thinking shortly before the time is up, and an agent without time left is not asked.
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
import numpy.typing as npt

from pipeline.acpc import MATCH_STATE, hand_values, parse_match_state
from pipeline.agents import Agent, FinishedHands, Learner
from pipeline.agents.rules import Rule
from pipeline.cards import NO_CARD, parse_cards
from pipeline.decisions import observation
from pipeline.errors import PipelineError
from pipeline.game import Game, State, Walk, actions
from pipeline.rules import CALL, RAISE, STATE_SIZE
from pipeline.sockets import limit

__all__ = ["Player", "Summary", "Turn", "connect", "start_script"]

Array = npt.NDArray[Any]

VERSION = b"VERSION:2.0.0\r\n"
MAX_LINE = 65_536
MARGIN = 0.9
"""the share of the time allowed after which an answer is sent without the agent"""
MOST_KNOWN = 1 << 16
"""bettings that are remembered"""
MOST_FINISHED = 32
"""hands that wait to be counted"""


def pick(probabilities: list[float], luck: float) -> int:
    """The label that `luck` in [0, 1) falls on.

    >>> pick([0.25, 0.75, 0.0], 0.2), pick([0.25, 0.75, 0.0], 0.999999)
    (0, 1)
    """
    last = CALL
    for label, probability in enumerate(probabilities):
        if probability > 0:
            last = label
            luck -= probability
            if luck < 0:
                break
    return last


class Turn(NamedTuple):
    """A state in which the player is to act."""

    line: str
    position: int
    state: State
    cards: str
    """as the line has them"""

    def reply(self, action: str) -> str:
        """The line repeated with an action (`f`, `c`, `r` or `r<n>`)."""
        return f"{self.line}:{action}"


class Summary(NamedTuple):
    """What a match came to, as far as its player knows."""

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


class _Seen(NamedTuple):
    """A finished hand, kept for an agent that learns."""

    position: int
    state: State
    holes: list[list[int]]
    board: list[int]
    payoffs: tuple[float, ...]


class Player:
    """An agent at the wire."""

    def __init__(self, agent: Agent, seed: int | None = None) -> None:
        self.agent = agent
        self.game: Game = agent.game
        self.hands = 0
        self.begun = 0
        self.ignored = 0
        self.between_hands = True
        self.mix: list[float] = []
        """the probabilities of the last decision"""
        self._chips = 0.0
        self._hand = ""
        self._last = ""
        self._answer: str | None = None
        """to the last line: a repeated state gets the same one"""
        self._luck = np.random.default_rng(seed)
        self._dice: list[float] = []
        self._blind = agent.table.tolist() if isinstance(agent, Rule) else None
        """the probabilities of an agent that looks at nothing but what is legal"""
        self._learner = agent if isinstance(agent, Learner) else None
        self._finished: list[Turn] = []
        """hands not counted yet"""
        self._kept: list[_Seen] = []
        self._walk = Walk(agent.game)
        self._known: dict[str, State] = {}
        """states by their betting, as far as lines have had it"""
        if self._learner:
            self._learner.begin()

    @property
    def chips(self) -> float:
        """What was won, less what was lost."""
        self.settle()
        return self._chips

    def warm_up(self) -> None:
        """Act once on every street, so that everything is loaded before the first hand."""
        deck = self.game.deck.tolist()
        state = self.game.start()
        while not state.finished:
            board = deck[2 : 2 + self.game.visible(state.round)]
            rows = observation(self.game, state.betting, state.actor, deck[: self.game.hole_cards], board)
            self.agent.probabilities(rows)
            state.choose(max(CALL, state.legal_labels.bit_length() - 1))
            state = state.apply(CALL)
        state.payoffs(range(self.game.players))
        holes, board = ("AsAh"[: 2 * self.game.hole_cards],), ("KsQsJsTs9s"[: 2 * self.game.visible(state.round)],)
        hand_values(self.game, holes, board)

    def hear(self, line: str) -> Turn | None:
        """Take a line from the dealer; a turn if this player is to act on it."""
        words = line.split(":")
        state = self._known.get(words[3]) if MATCH_STATE.fullmatch(line) else None
        if state is None or words[4].count("|") != self.game.players - 1:
            state = self._check(line)  # also for a betting that is new
            if state is None:
                return None
        _, place, hand, _, cards = words
        position = int(place)
        if position >= self.game.players:
            raise PipelineError(f"{line!r} is for player {position} of {self.game.players}: see --game")
        if line != self._last:
            if self.between_hands or hand != self._hand:
                self.begun += 1
            if state.finished:
                self.hands += 1
                self._finished.append(Turn(line, position, state, cards))
                if self._learner or len(self._finished) >= MOST_FINISHED:
                    self.settle()
            self._last, self._hand, self._answer = line, hand, None
        self.between_hands = state.finished
        return Turn(line, position, state, cards) if state.actor == position else None

    def _check(self, line: str) -> State | None:
        """The state of a line; none for comments and what is no match state."""
        if line.startswith(("#", ";")) or not line:
            return None
        try:
            seen = parse_match_state(line)
        except PipelineError:
            self.ignored += 1
            return None
        if len(seen.holes) != self.game.players:
            raise PipelineError(
                f"{line!r} is not of {self.game.name}, which has {self.game.players} players: see --game"
            )
        try:
            state = self._walk.at(seen.betting)
        except PipelineError as error:
            raise PipelineError(f"{error}: the dealer plays another game than {self.game.name}, see --game") from None
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[seen.betting] = state
        return state

    def decide(self, turn: Turn) -> str:
        """The agent's answer: the state repeated with an action."""
        if self._answer is not None:
            return self._answer
        state = turn.state
        self.mix = self._blind[state.legal_labels] if self._blind else self._asked(turn)
        if not self._dice:
            self._dice = self._luck.random(256).tolist()[::-1]
        label = pick(self.mix, self._dice.pop())
        action, size = state.choose(label if state.legal_labels >> label & 1 else CALL)
        self._answer = turn.reply("fcr"[action] + (str(size) if action == RAISE and self.game.nolimit else ""))
        return self._answer

    def _asked(self, turn: Turn) -> list[float]:
        """What the agent says."""
        holes, *board = turn.cards.split("/")
        hole = parse_cards(holes.split("|")[turn.position], self.game.hole_cards)
        rows = observation(self.game, turn.state.betting, turn.position, hole, parse_cards("".join(board)))
        mix: list[float] = self.agent.probabilities(rows)[0].tolist()
        return mix

    def settle(self) -> None:
        """Count the hands that have been finished: many at once, which takes half the time."""
        for _, position, state, cards in self._finished:
            first, *board = cards.split("/")
            holes = first.split("|")
            values = [0] * self.game.players
            if state.showdown:
                shown = [p for p, hole in enumerate(holes) if hole]
                worth = hand_values(self.game, tuple(holes[p] for p in shown), tuple(board))
                for p, value in zip(shown, worth, strict=True):
                    values[p] = value
            payoffs = state.payoffs(values)
            self._chips += payoffs[position]
            if self._learner:
                numbers = [parse_cards(hole).tolist() for hole in holes]
                self._kept.append(_Seen(position, state, numbers, parse_cards("".join(board)).tolist(), payoffs))
                if len(self._kept) >= self._learner.interval:
                    self._learner.seen(_hands(self.game, self._kept))
                    self._kept = []
        self._finished = []


def _hands(game: Game, kept: list[_Seen]) -> FinishedHands:
    """Finished hands as agents that learn take them."""
    count, players = len(kept), game.players
    most = max(len(list(actions(hand.state.betting))) for hand in kept)
    made = FinishedHands(
        position=np.array([hand.position for hand in kept], dtype=np.uint8),
        seats=np.array([[(p - hand.position) % players for p in range(players)] for hand in kept], dtype=np.uint8),
        states=np.zeros((count, STATE_SIZE), dtype=np.int64),
        labels=np.zeros((count, most), dtype=np.uint8),
        sizes=np.zeros((count, most), dtype=np.int64),
        hole=np.full((count, players, 2), NO_CARD, dtype=np.uint8),
        board=np.full((count, 5), NO_CARD, dtype=np.uint8),
        payoffs=np.array([hand.payoffs for hand in kept]),
    )
    for i, hand in enumerate(kept):
        made.states[i] = hand.state.vector
        state = game.start()
        for k, (action, size) in enumerate(actions(hand.state.betting)):
            made.labels[i, k] = state.label_of(action, size) + 1
            made.sizes[i, k] = size
            state = state.apply(action, size)
        for p, hole in enumerate(hand.holes):
            made.hole[i, p, : len(hole)] = hole
        made.board[i, : len(hand.board)] = hand.board
    return made


class _Watch(threading.Thread):
    """Calls when the answer that is being thought about would come too late."""

    def __init__(self, send: Callable[[bytes], None], every_s: float) -> None:
        super().__init__(daemon=True)
        self._send = send
        self._every_s = every_s
        self._lock = threading.Lock()
        self._pending: tuple[float, Turn] | None = None
        self._done = threading.Event()
        self.overdue = 0

    def expect(self, turn: Turn, deadline: float) -> None:
        """From now on, call at the deadline unless the turn is claimed before."""
        self._pending = deadline, turn

    def claim(self) -> bool:
        """Take over: False when the answer has been sent already."""
        with self._lock:
            in_time, self._pending = self._pending is not None, None
            return in_time

    def run(self) -> None:
        while not self._done.wait(self._every_s):
            with self._lock:
                if self._pending and time.perf_counter() >= self._pending[0]:
                    turn, self._pending = self._pending[1], None
                    self.overdue += 1
                    with contextlib.suppress(OSError):  # the reader finds out
                        self._send(f"{turn.reply('c')}\r\n".encode())

    def __enter__(self) -> _Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()


@dataclass
class _Clock:
    """The time a player has and has used."""

    response_s: float
    per_hand_s: float
    used_s: float = 0.0
    overdue: int = 0

    def __post_init__(self) -> None:
        self.taken_s = array("f")

    def allowed_s(self, hands: int) -> float:
        """What the next answer may take after `hands` hands were begun."""
        return MARGIN * min(self.response_s, self.per_hand_s * hands - self.used_s)

    def add(self, seconds: float) -> None:
        self.used_s += seconds
        self.taken_s.append(seconds)


def _lines(connection: socket.socket, idle_s: float) -> Iterator[str]:
    """Whole lines from a socket until the other side closes it or is lost."""
    buffer = b""
    while True:
        try:
            data = connection.recv(MAX_LINE)
        except BlockingIOError:
            raise PipelineError(f"the dealer has been silent for {idle_s:g} s") from None
        except OSError:
            return
        if not data:
            return
        *whole, buffer = (buffer + data).split(b"\n")
        for line in whole:
            yield line.decode("ascii", "replace").rstrip("\r")
        if len(buffer) > MAX_LINE:
            raise PipelineError(f"the dealer sent a line of more than {MAX_LINE:,} bytes: not an ACPC dealer?")


def _converse(player: Player, connection: socket.socket, clock: _Clock, idle_s: float) -> None:
    """Answer the dealer until it leaves."""
    limit(connection, idle_s)
    every_s = min(max(min(clock.response_s, clock.per_hand_s) * (1 - MARGIN) / 2, 0.005), 0.25)
    with contextlib.suppress(BrokenPipeError, ConnectionError), _Watch(connection.sendall, every_s) as watch:
        connection.sendall(VERSION)
        for line in _lines(connection, idle_s):
            heard = time.perf_counter()
            turn = player.hear(line)
            if turn is None:
                continue
            allowed = clock.allowed_s(player.begun)
            watch.expect(turn, heard + allowed)
            answer = player.decide(turn) if allowed > 0 else turn.reply("c")
            clock.overdue += allowed <= 0
            if watch.claim():
                connection.sendall(f"{answer}\r\n".encode())
            clock.add(time.perf_counter() - heard)
        clock.overdue += watch.overdue


def _open(host: str, port: int, patience_s: float) -> socket.socket:
    """A connection to the dealer, tried for `patience_s`."""
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


def connect(
    agent: Agent,
    host: str,
    port: int,
    *,
    seed: int | None = None,
    response_ms: int = 600_000,
    per_hand_ms: int = 7_000,
    idle_ms: int = 1_800_000,
    reconnect_ms: int = 0,
) -> Summary:
    """Play an agent on a dealer's socket until the match ends.

    When the dealer is not there or leaves in mid-hand, it is tried again for `reconnect_ms`.
    """
    player, clock = Player(agent, seed), _Clock(response_ms / 1000, per_hand_ms / 1000)
    player.warm_up()
    while True:
        with _open(host, port, reconnect_ms / 1000) as connection:
            _converse(player, connection, clock, idle_ms / 1000)
        complete = player.between_hands and player.hands > 0
        if complete or reconnect_ms == 0:
            return _summary(player, clock, complete)


def _summary(player: Player, clock: _Clock, complete: bool) -> Summary:
    taken_ms = np.array(clock.taken_s if clock.taken_s else [0.0]) * 1000
    return Summary(
        hands=player.hands,
        chips=player.chips,
        mbb_per_hand=1000 * player.chips / player.game.big_blind / max(player.hands, 1),
        decisions=len(clock.taken_s),
        mean_ms=float(taken_ms.mean()),
        p99_ms=float(np.percentile(taken_ms, 99)),
        longest_ms=float(taken_ms.max()),
        overdue=clock.overdue,
        ignored=player.ignored,
        complete=complete,
    )


def start_script() -> str:
    """A shell script for a bundle's folder, called as the competition calls its players: HOST PORT."""
    return """#!/bin/sh
# Plays the bundle beside this file on an ACPC dealer: HOST PORT [options of `python -m pipeline connect`]
cd "$(dirname "$0")" || exit 1
exec "${PYTHON:-python3}" -m pipeline connect "$@" --policy .
"""
