"""Deal matches over TCP as an ACPC dealer: the server side of protocol 2.0.0.

In goes a `MatchPlan` (a game, names, a number of hands and a seed) and a listening socket per seat; players connect
over TCP. The cards are those that the official dealer deals from the seed (its generator, the Mersenne Twister, is
numpy's first one). Everybody is sent every state, the final one with what a showdown reveals; the acting player repeats
it and adds its action. Out comes the log that the official dealer would write from the same seed and actions, so that
the two can be compared line by line. Cards, states and log lines need no network: the table in the terminal and the one
in a browser use them too.

The player who must act is sent the state first. With several cores the others are sent it at once, to read it while
the actor thinks. On a single core they are sent it after a hundredth of a second, or, when the answer is there before,
together with the state that comes next: between quick players that halves the packets. The log's line of the last hand
is written while the actor thinks, too.

A bad answer is treated as by the official dealer: an illegal or unknown action becomes a call, a size out of
range is moved into it, anything that is not to the state asked about is passed over (`answers`); each is a warning. A
player that leaves, is too slow, sends too much or does not read ends the match: finished hands stay in the log, there
is no SCORE line. Where the official dealer waits for ever (a client that connects and says nothing, or never stops
talking), this one stops after the time allowed.

The transaction log has a line `ACTION HAND SENT RECEIVED` per action. A match is taken up again from it: the recorded
actions are played first, with the times that they took, and the log is written anew. Without being asked to take it up,
the dealer does not write into a transaction log or beside it into a log that has something in it.
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
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from pipeline.arena.wire.answers import after_state, parse_answer
from pipeline.arena.wire.sockets import SPIN_S, Limits, PlayerLostError, Seat
from pipeline.formats.acpc import Hand, Header, Score, check_player_names, hand_values
from pipeline.poker.cards import card_text, ranking
from pipeline.poker.game import CACHED_STATES, Game, State, StateCache, actions
from pipeline.poker.rules import RAISE
from pipeline.poker.showdown import showdown_values
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors
from pipeline.runtime.progress import Progress, no_progress

HANDS_AT_ONCE = 64
"""hands that are dealt together: one alone takes as long as five"""


class MatchPlan(NamedTuple):
    """Settings of a match: names are in seat order; positions rotate with each hand unless `fixed`."""

    game: Game
    names: tuple[str, ...]
    hands: int
    seed: int
    title: str = "match"
    fixed: bool = False
    limits: Limits = Limits()


class Deal(NamedTuple):
    """The cards of a hand: hole cards by position, and the board's cards of each street after the first."""

    holes: tuple[str, ...]
    board: tuple[str, ...]
    values: tuple[int, ...] = ()
    """showdown values of the players' cards on the whole board; empty where not computed"""


def deals(game: Game, seed: int) -> Iterator[Deal]:
    """Yield the hands that the official dealer deals from this seed, without end."""
    ranks, suits = range(13 - game.ranks, 13), range(4 - game.suits, 4)
    fresh = np.array([4 * rank + suit for suit in suits for rank in ranks], dtype=np.uint8)
    texts = np.array([card_text(card) for card in range(52)])
    streets = (*(game.hole_cards,) * game.players, *game.board_cards[1:])
    starts = [0, *itertools.accumulate(streets)]
    hole_count = game.players * game.hole_cards
    generator = np.random.RandomState(seed)  # seeded by one number: init_genrand of the 2002 reference code
    hand_index = np.arange(HANDS_AT_ONCE)
    while True:
        numbers = generator.randint(0, 1 << 32, size=(HANDS_AT_ONCE, starts[-1]), dtype=np.uint32)
        decks, drawn = np.tile(fresh, (HANDS_AT_ONCE, 1)), np.empty(numbers.shape, dtype=np.uint8)
        for card, remaining in enumerate(range(len(fresh), len(fresh) - starts[-1], -1)):
            # the remainder and the last card moved into the gap are the official dealer's: its cards are ours
            place = numbers[:, card] % remaining
            drawn[:, card] = decks[hand_index, place]
            decks[hand_index, place] = decks[:, remaining - 1]
        worth = np.empty((HANDS_AT_ONCE, game.players), dtype=np.int64)
        showdown_values(drawn[:, :hole_count], game.hole_cards, drawn[:, hole_count:], ranking(), worth)
        for words, values in zip(texts[drawn].tolist(), worth.tolist(), strict=True):
            groups = tuple("".join(words[start:end]) for start, end in itertools.pairwise(starts))
            yield Deal(groups[: game.players], groups[game.players :], tuple(values))


def view(number: int, deal: Deal, state: State, position: int) -> str:
    """Return the match state of hand `number` as one player may see it."""
    if state.showdown:
        hole_text = "|".join(hole if p == position or not state.folded[p] else "" for p, hole in enumerate(deal.holes))
    else:
        hole_text = "|" * position + deal.holes[position] + "|" * (len(deal.holes) - 1 - position)
    return f"MATCHSTATE:{position}:{number}:{state.betting}:{'/'.join((hole_text, *deal.board[: state.round]))}"


class Views:
    """Match states of one hand as bytes, by player: only the betting changes from state to state.

    >>> from pipeline.poker.game import builtin
    >>> views = Views(3, Deal(("AsKd", "2c2d"), ("7h8h9h", "Tc", "Jc")))
    >>> views.line(builtin("holdem.limit.2p.reverse_blinds").start(), 1)
    b'MATCHSTATE:1:3::|2c2d'
    """

    def __init__(self, number: int, deal: Deal) -> None:
        self._number, self._deal = number, deal
        last = len(deal.holes) - 1
        boards = [b"", *(b"/" + street.encode() for street in deal.board)]
        self._heads, self._tails = [], []
        for position, hole in enumerate(deal.holes):
            self._heads.append(b"MATCHSTATE:%d:%d:" % (position, number))
            shown = b":" + b"|" * position + hole.encode() + b"|" * (last - position)
            self._tails.append([shown := shown + board for board in boards])

    def line(self, state: State, position: int) -> bytes:
        """Return the match state as the player at `position` may see it, without a line end."""
        if state.showdown:
            return view(self._number, self._deal, state, position).encode()
        return self._heads[position] + state.written + self._tails[position][state.round]


def header_lines(match: MatchPlan) -> str:
    """Return the comment lines that open a log; what cannot be printed of its title is replaced."""
    check_player_names(match.names)
    limits = match.limits
    title = "".join(letter if letter.isprintable() else "?" for letter in match.title)
    header = Header(title, f"{match.game.name}.game", match.hands, match.seed)
    times = ("response", limits.response_ms), ("hand", limits.hand_ms), ("per_hand", limits.per_hand_ms)
    return "".join([f"{header}\n", *(f"#--t_{name} {time_ms}\n" for name, time_ms in times)])


def finished_hand(number: int, deal: Deal, state: State, names: Sequence[str]) -> Hand:
    """Return the log's line of a finished hand; `names` by position."""
    values: Sequence[int] = [0] * state.game.players
    if state.showdown:
        values = deal.values or hand_values(state.game, deal.holes, deal.board)
    payoffs = tuple([round(value, 6) for value in state.payoffs(values)])
    return Hand(number, state.betting, deal.holes, deal.board[: state.round], payoffs, tuple(names))


POLL_S = 0.1
"""how often `waiting` is called while a player has not connected"""


class MatchOutcome(NamedTuple):
    """Score, hands, warnings and duration of a match, in seat order."""

    score: Score
    hands: int
    warnings: int
    seconds: float


def listen(ports: Sequence[int], host: str = "127.0.0.1") -> list[socket.socket]:
    """Open a listening socket for each seat; port 0 takes a free one."""
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


def _accept_players(
    match: MatchPlan, listeners: Sequence[socket.socket], closing: contextlib.ExitStack, waiting: Callable[[], None]
) -> list[Seat]:
    """Wait until every player has connected and named its version."""
    since, allowed = time.perf_counter(), match.limits.start_ms / 1000
    seats = []
    for number, (name, listener) in enumerate(zip(match.names, listeners, strict=True)):
        while True:
            remaining_s = since + allowed - time.perf_counter()
            listener.settimeout(min(max(remaining_s, 1e-6), POLL_S))
            try:
                accepted, _ = listener.accept()
                break
            except TimeoutError:
                if remaining_s <= POLL_S:
                    raise PlayerLostError(f"seat {number + 1} ({name}) did not connect within {allowed:g} s") from None
                waiting()
        listener.close()
        closing.enter_context(accepted)
        # a state is far shorter than a packet: without this the system would wait for more to send with it
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seats.append(Seat(number, name, accepted))
    for seat in seats:
        version = seat.line(since, allowed, waiting)
        if version is None:
            raise PlayerLostError(f"{seat.title} did not answer within {allowed:g} s")
        if not re.fullmatch(rb"VERSION:2\.0\.\d+\s*", version):
            raise PlayerLostError(f"{seat.title} speaks {version[:40]!r} where VERSION:2.0.0 is needed")
    return seats


@dataclass
class _LiveMatch:
    """A match in progress."""

    match: MatchPlan
    seats: list[Seat]
    transactions: IO[bytes] | None
    recorded: deque[_RecordedAction]
    """the actions taken before the match was interrupted, checked"""
    write_down: Callable[[], None]
    """writes the last hand to the log; called while the next one's first player thinks"""
    several_cores: bool
    button: int = 0
    """the seat at position 0"""

    def __post_init__(self) -> None:
        self.walk = StateCache(self.match.game)
        self.apply_answer = lru_cache(maxsize=CACHED_STATES)(self._apply_answer)
        limits = self.match.limits
        self.response_s, self.hand_s = limits.response_ms / 1000, limits.hand_ms / 1000
        self.match_s = limits.per_hand_ms / 1000 * self.match.hands

    def seated(self) -> list[Seat]:
        """Return the seats by position."""
        return self.seats[self.button :] + self.seats[: self.button]

    def send_outboxes(self) -> None:
        """Send everybody what has not been sent yet, as far as the connections take it."""
        for seat in self.seats:
            if seat.outbox:
                seat.send()

    def finish(self) -> None:
        """Send everybody what has not been sent yet, waiting for those who are slow to read."""
        for seat in self.seats:
            seat.flush(self.response_s)

    def play(self, number: int, deal: Deal) -> State:
        """Play one hand, from the blinds to its end; actions that were recorded are taken from the record."""
        seats, views = self.seated(), Views(number, deal)
        for seat in seats:
            seat.hand_s = 0.0
        state = self.walk.start
        is_live = False
        while not state.finished:
            if self.recorded:
                recorded = self.recorded.popleft()
                seats[state.actor].hand_s += recorded.took_s
                seats[state.actor].match_s += recorded.took_s
                state = self.walk.after(state, recorded.action, recorded.size)
            else:
                state = self._take_action(number, views, seats, state)
                is_live = True
        if is_live:
            for position, seat in enumerate(seats):
                seat.outbox += views.line(state, position) + b"\r\n"
        return state

    def _take_action(self, number: int, views: Views, seats: list[Seat], state: State) -> State:
        """Send everybody the state, take the actor's answer and return the state after it."""
        actor = state.actor
        seat, state_line = seats[actor], views.line(state, actor)
        sent = time.perf_counter()
        seat.send(state_line + b"\r\n")
        for position, other in enumerate(seats):  # while the actor thinks
            if position != actor:
                line = views.line(state, position) + b"\r\n"
                if self.several_cores:
                    other.send(line)
                else:
                    other.outbox += line
        self.write_down()
        taken = self.apply_answer(self._answer(seat, state_line, state, sent), state)
        took_s = time.perf_counter() - sent
        seat.quick = self.several_cores and took_s < SPIN_S
        seat.hand_s += took_s
        seat.match_s += took_s
        if taken.warning:
            seat.warn(taken.warning)
        if self.transactions:
            clock = time.time()
            line = b"%b %d %.6f %.6f\n" % (taken.written, number, clock - took_s, clock)
            self.transactions.write(line)  # at once: an action that others hear of is on the record
        return taken.after

    def _answer(self, seat: Seat, state_line: bytes, state: State, sent: float) -> bytes:
        """Return what the acting player adds to the state line that it was sent; other lines are ignored."""
        allowed_s = min(self.response_s, self.hand_s - seat.hand_s, self.match_s - seat.match_s)
        seat.received = 0
        while True:
            line = seat.line(sent, allowed_s, self.send_outboxes)
            if line is None:
                raise PlayerLostError(f"{seat.title} {self._why_late(seat, allowed_s)}")
            if (answer := after_state(line, state_line, state)) is not None:
                return answer
            if not line.startswith((b"#", b";")):
                stale = line.startswith(b"MATCHSTATE:")
                seat.warn(f"{'un-requested answer' if stale else 'unknown message'} {line[:80]!r} ignored")

    def _why_late(self, seat: Seat, allowed_s: float) -> str:
        """Return in words which of the time limits has been reached."""
        if allowed_s == self.response_s:
            return f"did not answer within {self.response_s:g} s"
        if allowed_s == self.hand_s - seat.hand_s:
            return f"took more than {self.hand_s:g} s for a hand"
        return f"used up its {self.match.limits.per_hand_ms / 1000:g} s per hand"

    def _apply_answer(self, answer: bytes, state: State) -> _TakenAction:
        """Return the action that an answer comes to in a state, with the state after it."""
        action, size, warning = parse_answer(answer, state)
        written = "fcr"[action] + (str(size) if action == RAISE and self.match.game.nolimit else "")
        return _TakenAction(self.walk.after(state, action, size), written.encode(), warning)


class _TakenAction(NamedTuple):
    """An action that was taken: the state after it, how it is written, and what had to be changed about it."""

    after: State
    written: bytes
    warning: str


@dataclass
class _MatchLog:
    """Writer of the log's lines, with the totals by seat."""

    match: MatchPlan
    file: IO[str] | None
    progress: Progress
    finished: Callable[[Hand], None]
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
        self.finished(hand)
        self.progress(self.done, self.match.hands)


class _RecordedAction(NamedTuple):
    """An action of the transaction log."""

    hand: int
    action: int
    size: int
    took_s: float


def _read_transactions(path: Path, match: MatchPlan) -> tuple[deque[_RecordedAction], int]:
    """Return the recorded actions, and how many bytes hold whole lines (a killed dealer may leave half a line)."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    whole_lines = text[: text.rfind("\n") + 1]
    recorded: deque[_RecordedAction] = deque()
    for number, line in enumerate(whole_lines.splitlines(), 1):
        parts = re.fullmatch(r"([fcr]\d{0,18}) (\d{1,18}) (\d{1,18}\.\d+) (\d{1,18}\.\d+)", line)
        if not parts:
            raise PipelineError(f"{path}, line {number}: {line[:80]!r} is not an action, a hand and two times")
        ((action, size),) = actions(parts[1])
        # a clock that was set back between the two gives no time, as with the official dealer
        recorded.append(_RecordedAction(int(parts[2]), action, size, max(0.0, float(parts[4]) - float(parts[3]))))
    _check_recorded(recorded, match)
    return recorded, len(whole_lines.encode())


def _check_recorded(recorded: deque[_RecordedAction], match: MatchPlan) -> None:
    """Check that actions belong to a match, and that the players took them in time."""
    game, limits = match.game, match.limits
    walk, number, button = StateCache(game), 0, 0
    state, hand_s, match_s = walk.start, [0.0] * game.players, [0.0] * game.players
    for hand, action, size, took_s in recorded:
        if hand != number or number >= match.hands or not state.is_legal(action, size):
            raise PipelineError(
                f"the transaction log does not belong to this match: hand {hand}, {'fcr'[action]}{size or ''} "
                f"where hand {number} has come to {state.betting!r}; give the same game, seed and hands"
            )
        seat = (state.actor + button) % game.players
        hand_s[seat] += took_s
        match_s[seat] += took_s
        for used_s, allowed_ms in (
            (took_s, limits.response_ms),
            (hand_s[seat], limits.hand_ms),
            (match_s[seat], limits.per_hand_ms * match.hands),
        ):
            if used_s > allowed_ms / 1000:
                raise PipelineError(
                    f"seat {seat + 1} ({match.names[seat]}) ran out of time in hand {hand} of the transaction log: "
                    f"{used_s:g} of {allowed_ms / 1000:g} s"
                )
        state = walk.after(state, action, size)
        if state.finished:
            number += 1
            button = 0 if match.fixed else number % game.players
            state, hand_s = walk.start, [0.0] * game.players


def check_unwritten(*files: Path | None) -> None:
    """Refuse to write a match into files that hold another one."""
    for path in files:
        if path and path.is_file() and path.stat().st_size:
            raise PipelineError(f"{path} is not empty: name another file, or go on with its match by --resume")


def run_match(
    match: MatchPlan,
    listeners: Sequence[socket.socket],
    *,
    log_file: Path | None = None,
    transactions: Path | None = None,
    resume: bool = False,
    progress: Progress = no_progress,
    finished: Callable[[Hand], None] = lambda hand: None,
    waiting: Callable[[], None] = lambda: None,
) -> MatchOutcome:
    """Deal a match to the players that connect to `listeners`, which are closed in any case.

    A player that is lost ends the match with an error; what was finished is in the log. `finished` is given every hand
    in turn; `waiting` is called now and then before all players are there, and may give up by an error of its own.
    """
    started = time.perf_counter()
    with contextlib.ExitStack() as closing:
        for listener in listeners:
            closing.enter_context(listener)
        if len(match.names) != match.game.players or len(set(match.names)) < len(match.names):
            raise PipelineError(
                f"{match.game.name} needs {match.game.players} different names, not {' '.join(match.names)}"
            )
        check_player_names(match.names)
        recorded: deque[_RecordedAction] = deque()
        whole = 0
        if transactions and resume:
            recorded, whole = _read_transactions(transactions, match)
        elif transactions:
            check_unwritten(transactions, log_file)
        actions_file = transactions and closing.enter_context(transactions.open("ab", buffering=0))
        if actions_file:
            actions_file.truncate(whole)
        hands_file = log_file and closing.enter_context(log_file.open("w", buffering=1, newline="\n", encoding="utf-8"))
        if hands_file:
            hands_file.write(header_lines(match))
        match_log = _MatchLog(match, hands_file or None, progress, finished)
        dealt = deals(match.game, match.seed)
        first = next(dealt)  # before anybody's time runs: on a first run this compiles
        try:
            seats = _accept_players(match, listeners, closing, waiting)
            progress(0, match.hands)
            live_match = _LiveMatch(match, seats, actions_file or None, recorded, match_log.write, processors() > 1)
            for number, deal in zip(range(match.hands), chain((first,), dealt), strict=False):
                live_match.button = 0 if match.fixed else number % match.game.players
                state = live_match.play(number, deal)
                match_log.write()
                match_log.last = number, deal, state, live_match.seated()
            live_match.finish()
        except PlayerLostError as lost:
            match_log.write()
            raise PipelineError(f"{lost}: the match ended after {match_log.done} of {match.hands} hands") from None
        finally:
            match_log.write()
        score = Score(tuple(round(total, 6) for total in match_log.totals), match.names)
        if hands_file:
            hands_file.write(f"{score}\n")
        return MatchOutcome(
            score, match_log.done, sum(seat.warnings for seat in live_match.seats), time.perf_counter() - started
        )
