"""An ACPC dealer: the server side of protocol 2.0.0.

A match is a game, names, a number of hands and a seed; players connect over TCP, one port per seat. Everybody is sent
every state, the final one with what a showdown reveals; the acting player repeats it and adds its action. The same
seed deals the same cards as the official dealer (its generator, the Mersenne Twister, is numpy's first one), so that
the two can be compared line by line.

The one who must act is told first. The others are told after a hundredth of a second, or, when the answer is there
before, together with the state that comes next: between quick players that halves the packets.

What a bad answer does is the official dealer's rule too: an illegal or unknown action becomes a call, a size out of
range is moved into it, anything that does not repeat the state asked about is passed over; each is a warning. A player
that leaves or is too slow ends the match: finished hands stay in the log, there is no SCORE line. Where the official
dealer waits for ever (a client that connects and says nothing), this one stops after the time allowed for the start.

The transaction log has a line `ACTION HAND SENT RECEIVED` per action. A match is taken up again from it: the recorded
actions are played first, the log is written anew.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from pipeline.acpc import Hand, Header, Score, hand_values
from pipeline.cards import card_text
from pipeline.errors import PipelineError
from pipeline.files import Progress, quiet
from pipeline.game import Game, State, Walk, actions
from pipeline.rules import CALL, FOLD, RAISE
from pipeline.sockets import LostError, Seat

__all__ = [
    "Deal",
    "Limits",
    "MatchPlan",
    "Outcome",
    "deals",
    "finished_hand",
    "header_lines",
    "listen",
    "run_match",
    "view",
]

ANSWER = re.compile(rb":\s*([fFcCkKrRbB])\s*(-?\d{1,9})?")


class Limits(NamedTuple):
    """Times allowed, in milliseconds."""

    response_ms: int = 600_000
    """for one action"""
    hand_ms: int = 600_000
    """for a player's actions of one hand"""
    per_hand_ms: int = 7_000
    """times the match's hands: for all actions of a player"""
    start_ms: int = 600_000
    """until every player has connected and named its version"""


class MatchPlan(NamedTuple):
    """What is played: names are in seat order; positions rotate with each hand unless `fixed`."""

    game: Game
    names: tuple[str, ...]
    hands: int
    seed: int
    title: str = "match"
    fixed: bool = False
    limits: Limits = Limits()


class Outcome(NamedTuple):
    """How a match ended, in seat order."""

    score: Score
    hands: int
    warnings: int
    seconds: float


class Deal(NamedTuple):
    """The cards of a hand: hole cards by position, and the board's cards of each street after the first."""

    holes: tuple[str, ...]
    board: tuple[str, ...]


def deals(game: Game, seed: int) -> Iterator[Deal]:
    """The hands that the official dealer deals from this seed, without end."""
    ranks, suits = range(13 - game.ranks, 13), range(4 - game.suits, 4)
    fresh = [card_text(4 * rank + suit) for suit in suits for rank in ranks]
    streets = (*(game.hole_cards,) * game.players, *game.board_cards[1:])
    ends = list(itertools.accumulate(streets))

    def deal(numbers: list[int]) -> Deal:
        deck, drawn = fresh.copy(), []
        for number in numbers:
            place = number % len(deck)
            drawn.append(deck[place])
            deck[place] = deck[-1]
            deck.pop()
        groups = tuple("".join(drawn[end - count : end]) for count, end in zip(streets, ends, strict=True))
        return Deal(groups[: game.players], groups[game.players :])

    generator = np.random.RandomState(seed)  # seeded by one number: init_genrand of the 2002 reference code
    while True:  # 64 at a time: in the middle of a match one alone takes as long as five
        numbers = generator.randint(0, 1 << 32, size=(64, ends[-1]), dtype=np.uint32).tolist()
        yield from [deal(drawn) for drawn in numbers]


def view(number: int, deal: Deal, state: State, position: int) -> str:
    """The match state of hand `number` as one player may see it."""
    if state.showdown:
        shown = "|".join(hole if p == position or not state.folded[p] else "" for p, hole in enumerate(deal.holes))
    else:
        shown = "|" * position + deal.holes[position] + "|" * (len(deal.holes) - 1 - position)
    return f"MATCHSTATE:{position}:{number}:{state.betting}:{'/'.join((shown, *deal.board[: state.round]))}"


def listen(ports: Sequence[int], host: str = "127.0.0.1") -> list[socket.socket]:
    """A listening socket for each seat; port 0 takes a free one."""
    listeners: list[socket.socket] = []
    try:
        for port in ports:
            listeners.append(socket.create_server((host, port), backlog=8))
    except (OSError, OverflowError) as error:
        for listener in listeners:
            listener.close()
        reason = error.strerror if isinstance(error, OSError) else "ports go from 0 to 65535"
        raise PipelineError(f"cannot listen on {host} port {port}: {reason}; port 0 takes a free one") from None
    return listeners


def _greet(match: MatchPlan, listeners: Sequence[socket.socket], closing: contextlib.ExitStack) -> list[Seat]:
    """Wait until every player has connected and named its version."""
    since, allowed = time.perf_counter(), match.limits.start_ms / 1000
    seats = []
    for number, (name, listener) in enumerate(zip(match.names, listeners, strict=True)):
        listener.settimeout(max(since + allowed - time.perf_counter(), 1e-6))
        try:
            accepted, _ = listener.accept()
        except TimeoutError:
            raise LostError(f"seat {number + 1} ({name}) did not connect within {allowed:g} s") from None
        listener.close()
        closing.enter_context(accepted)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seats.append(Seat(number, name, accepted))
    for seat in seats:
        version = seat.line(allowed, since)
        if not re.fullmatch(rb"VERSION:2\.0\.\d+\s*", version):
            raise LostError(f"{seat.title} speaks {version[:40]!r} where VERSION:2.0.0 is needed")
    return seats


@dataclass
class _Table:
    """A match in progress."""

    match: MatchPlan
    seats: list[Seat]
    transactions: IO[str] | None
    recorded: deque[tuple[int, int, int]]
    """(hand, action, size) of the actions taken before the match was interrupted"""
    button: int = 0
    """the seat at position 0"""
    finish: Callable[[], None] = lambda: None
    """writes the last hand down; done while the next one's first player thinks"""

    def __post_init__(self) -> None:
        self.walk = Walk(self.match.game)
        self.read = lru_cache(maxsize=1 << 15)(_read)
        limits = self.match.limits
        self.response_s, self.hand_s = limits.response_ms / 1000, limits.hand_ms / 1000
        self.match_s = limits.per_hand_ms / 1000 * self.match.hands

    def seat_at(self, position: int) -> Seat:
        return self.seats[(position + self.button) % len(self.seats)]

    def tell(self) -> None:
        """Send everybody what has not been sent yet."""
        for seat in self.seats:
            if seat.outbox:
                seat.send(self.response_s)

    def play(self, number: int, deal: Deal) -> State:
        """One hand, from the blinds to its end."""
        for seat in self.seats:
            seat.hand_s = 0.0
        state = self.walk.start
        told = False
        while not state.finished:
            if self.recorded:
                hand, action, size = self.recorded.popleft()
                if hand != number or not state.is_legal(action, size):
                    raise PipelineError(
                        f"the transaction log does not belong to this match: hand {hand}, {'fcr'[action]}{size or ''} "
                        f"where hand {number} has come to {state.betting!r}; give the same game, seed and hands"
                    )
            else:
                action, size = self._turn(number, deal, state)
                told = True
            state = self.walk.after(state, action, size)
        if told:
            for position in range(len(self.seats)):
                self.seat_at(position).outbox += view(number, deal, state, position).encode() + b"\r\n"
        return state

    def _turn(self, number: int, deal: Deal, state: State) -> tuple[int, int]:
        """Show everybody the state and take the actor's answer."""
        count, actor = len(self.seats), state.actor
        asked = view(number, deal, state, actor).encode()
        seat = self.seat_at(actor)
        seat.outbox += asked + b"\r\n"
        sent = time.perf_counter()
        seat.send(self.response_s)
        for position in range(actor + 1 - count, actor):  # while it thinks
            self.seat_at(position % count).outbox += view(number, deal, state, position % count).encode() + b"\r\n"
        self.finish()
        action, size = self._answer(seat, state, asked, sent)
        if self.transactions:
            now = time.time()
            then = now - (time.perf_counter() - sent)
            written = "fcr"[action] + (str(size) if action == RAISE and self.match.game.nolimit else "")
            self.transactions.write(f"{written} {number} {then:.6f} {now:.6f}\n")
        return action, size

    def _answer(self, seat: Seat, state: State, asked: bytes, sent: float) -> tuple[int, int]:
        """The acting player's answer to the state `asked`."""
        while True:
            line = seat.line(self.response_s, sent, self.tell)
            if line.startswith(asked) and line[len(asked) : len(asked) + 1] in (b":", b""):
                break
            if not line.startswith((b"#", b";")):
                stale = line.startswith(b"MATCHSTATE:")
                seat.warn(f"{'un-requested answer' if stale else 'unknown message'} {line[:80]!r} ignored")
        taken = time.perf_counter() - sent
        seat.hand_s += taken
        seat.match_s += taken
        if seat.hand_s > self.hand_s:
            raise LostError(f"{seat.title} took more than {self.hand_s:g} s for a hand")
        if seat.match_s > self.match_s:
            raise LostError(f"{seat.title} used up its {self.match.limits.per_hand_ms / 1000:g} s per hand")
        action, size, warning = self.read(line[len(asked) :], state)
        if warning:
            seat.warn(warning)
        return action, size


class _Read(NamedTuple):
    """What an answer comes to: a legal action, and what had to be changed."""

    action: int
    size: int = 0
    warning: str = ""


def _read(answer: bytes, state: State) -> _Read:
    """The action that follows the state in an answer; what is not legal is changed as the official dealer does."""
    found = ANSWER.match(answer)
    if not found or (state.game.nolimit and found[1] in b"rRbB" and found[2] is None):
        return _Read(CALL, warning=f"bad action {answer[:40]!r} changed to call")
    action = FOLD if found[1] in b"fF" else CALL if found[1] in b"cCkK" else RAISE
    size = int(found[2]) if action == RAISE and state.game.nolimit else 0
    if state.is_legal(action, size):
        return _Read(action, size)
    low, high = state.raise_range
    if action == RAISE and high > 0:
        nearest_size = min(max(size, low), high)
        return _Read(RAISE, nearest_size, f"raise to {size} changed to {nearest_size}")
    return _Read(CALL, warning=f"illegal action {answer[1:40]!r} changed to call")


def header_lines(match: MatchPlan) -> str:
    """The comment lines that open a log."""
    limits = match.limits
    header = Header(match.title, f"{match.game.name}.game", match.hands, match.seed)
    times = ("response", limits.response_ms), ("hand", limits.hand_ms), ("per_hand", limits.per_hand_ms)
    return "".join([f"{header}\n", *(f"#--t_{name} {time_ms}\n" for name, time_ms in times)])


def finished_hand(number: int, deal: Deal, state: State, names: Sequence[str]) -> Hand:
    """The log's line of a finished hand; `names` by position."""
    values = hand_values(state.game, deal.holes, deal.board) if state.showdown else [0] * state.game.players
    payoffs = tuple(round(value, 6) for value in state.payoffs(values))
    return Hand(number, state.betting, deal.holes, deal.board[: state.round], payoffs, tuple(names))


@dataclass
class _Record:
    """What has been played: the log's lines and the totals by seat."""

    match: MatchPlan
    file: IO[str] | None
    progress: Progress
    done: int = 0
    last: tuple[int, Deal, State, list[Seat]] | None = None
    """a finished hand that is not written yet, with the seats by position"""

    def __post_init__(self) -> None:
        self.totals = [0.0] * self.match.game.players

    def write(self) -> None:
        """Write the last hand down, if it is not written yet."""
        if self.last is None:
            return
        (number, deal, state, seats), self.last = self.last, None
        hand = finished_hand(number, deal, state, [seat.name for seat in seats])
        for seat, payoff in zip(seats, hand.payoffs, strict=True):
            self.totals[seat.number] += payoff
        if self.file:
            self.file.write(f"{hand}\n")
        self.done += 1
        self.progress(self.done, self.match.hands)


def _read_transactions(path: Path) -> tuple[deque[tuple[int, int, int]], int]:
    """The recorded actions, and how many bytes hold whole lines (a killed dealer may leave half a line)."""
    text = path.read_text() if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    recorded: deque[tuple[int, int, int]] = deque()
    for number, line in enumerate(whole.splitlines(), 1):
        found = re.fullmatch(r"([fcr]\d*) (\d+) \S+ \S+", line)
        if not found:
            raise PipelineError(f"{path}, line {number}: {line[:80]!r} is not an action, a hand and two times")
        ((action, size),) = actions(found[1])
        recorded.append((int(found[2]), action, size))
    return recorded, len(whole.encode())


def run_match(
    match: MatchPlan,
    listeners: Sequence[socket.socket],
    *,
    log_file: Path | None = None,
    transactions: Path | None = None,
    resume: bool = False,
    progress: Progress = quiet,
) -> Outcome:
    """Deal a match to the players that connect to `listeners`, which are closed in any case.

    A player that is lost ends the match with an error; what was finished is in the log.
    """
    started = time.perf_counter()
    with contextlib.ExitStack() as closing:
        for listener in listeners:
            closing.enter_context(listener)
        if len(match.names) != match.game.players or len(set(match.names)) < len(match.names):
            raise PipelineError(
                f"{match.game.name} needs {match.game.players} different names, not {' '.join(match.names)}"
            )
        recorded: deque[tuple[int, int, int]] = deque()
        whole = 0
        if resume and transactions:
            recorded, whole = _read_transactions(transactions)
        actions_file = transactions and closing.enter_context(transactions.open("a", buffering=1, newline="\n"))
        if actions_file:
            actions_file.truncate(whole)
        hands_file = log_file and closing.enter_context(log_file.open("w", buffering=1, newline="\n"))
        if hands_file:
            hands_file.write(header_lines(match))
        record = _Record(match, hands_file or None, progress)
        try:
            table = _Table(
                match, _greet(match, listeners, closing), actions_file or None, recorded, finish=record.write
            )
            for number, deal in zip(range(match.hands), deals(match.game, match.seed), strict=False):
                table.button = 0 if match.fixed else number % match.game.players
                state = table.play(number, deal)
                record.write()
                record.last = number, deal, state, [table.seat_at(position) for position in range(match.game.players)]
            table.tell()
        except LostError as lost:
            record.write()
            raise PipelineError(f"{lost}: the match ended after {record.done} of {match.hands} hands") from None
        finally:
            record.write()
        score = Score(tuple(round(total, 6) for total in record.totals), match.names)
        if hands_file:
            hands_file.write(f"{score}\n")
        return Outcome(score, record.done, sum(seat.warnings for seat in table.seats), time.perf_counter() - started)
