"""Dealer and clients under fire: random misbehaviour with a bound in seconds, matches with random resets, and a soak.

Misbehaving peers make the moves of `test_misbehaviour`, in any order. Resets: both clients of a match speak to
the dealer through a relay that breaks connections off after a random number of bytes; the dealer is taken up again from
its transaction log, the clients connect again, and in the end the log is that of a match which nobody disturbed. The
soak lets one process play four matches at once for as long as one likes and watches its memory.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from test_misbehaviour import ASKED, DEALERS_FLOODS, FLOODS, LIMIT, MINE, dealt, flood, heard, reset

from pipeline.arena.wire import dealer, player
from pipeline.arena.wire.client import connect_agent
from pipeline.arena.wire.dealer import MatchPlan, listen, run_match
from pipeline.arena.wire.sockets import Limits
from pipeline.dataset import decisions
from pipeline.poker.game import Game, State, StateCache, builtin
from pipeline.runtime.errors import PipelineError

NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
BOUND_S = 30.0
"""within which a match with a misbehaving peer must be over, also on a machine with much else to do: its time limits
add up to less than one second, the rest is the work that bounded numbers of bytes make"""
SIDE_BY_SIDE = 8
"""matches with resets at once"""
REMEMBERED = 64
"""situations that dealer and players keep during the soak, instead of 8,192"""
HOUR_MS = 3_600_000
PATIENT = Limits(response_ms=HOUR_MS, hand_ms=HOUR_MS, per_hand_ms=HOUR_MS, start_ms=HOUR_MS)
"""for matches that must not go otherwise because their process was held up"""
patient = partial(connect_agent, response_ms=HOUR_MS, per_hand_ms=HOUR_MS, idle_ms=HOUR_MS)
SHORT = Limits(response_ms=60, hand_ms=120, per_hand_ms=120, start_ms=1000)


class Fixed:
    """Plays an action that depends on nothing but the situation, so that two matches can be compared."""

    def __init__(self, name: str, game: Game) -> None:
        self.name, self.game = name, game

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        found = np.zeros((len(rows), len(self.game.labels)))
        for i, row in enumerate(rows):
            labels = [label for label in range(len(self.game.labels)) if int(row["legal"]) >> label & 1]
            seen = b"".join(row[key].tobytes() for key in ("betting_codes", "hole", "board", "position"))
            found[i, labels[hashlib.sha256(self.name.encode() + seen).digest()[0] % len(labels)]] = 1
        return found


# Misbehaviour

MOVES: dict[str, Callable[[socket.socket, random.Random], object]] = {
    "a piece of a flood": lambda link, luck: link.sendall(luck.choice([*FLOODS.values()])[: luck.randrange(1, 5000)]),
    "a flood": lambda link, luck: flood(link, luck.choice([*FLOODS.values()])),
    "an answer": lambda link, luck: link.sendall(ASKED + b":" + luck.choice([b"c", b"f", b"r", b"r9", b"x"]) + b"\r\n"),
    "an answer in pieces": lambda link, luck: [link.sendall(bytes([byte])) for byte in ASKED + b":c\r\n"],
    "half an answer": lambda link, luck: link.sendall(ASKED[: luck.randrange(len(ASKED))]),
    "random bytes": lambda link, luck: link.sendall(luck.randbytes(luck.randrange(1, 9000))),
    "a state of its own": lambda link, luck: link.sendall(MINE),
    "the end of sending": lambda link, luck: link.shutdown(socket.SHUT_WR),
    "the end of reading": lambda link, luck: link.shutdown(socket.SHUT_RD),
    "the end": lambda link, luck: link.close(),
    "a reset": lambda link, luck: reset(link),
}
DEALERS_MOVES: dict[str, Callable[[socket.socket, random.Random], object]] = {
    **{name: move for name, move in MOVES.items() if "flood" not in name and "answer" not in name},
    "a piece of a flood": lambda link, luck: link.sendall(luck.choice([*DEALERS_FLOODS.values()])[:4000]),
    "a flood": lambda link, luck: flood(link, luck.choice([*DEALERS_FLOODS.values()])),
    "states without end": lambda link, luck: flood(link, b"".join(_states(luck))),
    "a state in pieces": lambda link, luck: [link.sendall(bytes([byte])) for byte in MINE],
    "a spoiled state": lambda link, luck: link.sendall(_spoiled(luck)),
}


def _states(luck: random.Random) -> Iterator[bytes]:
    first = luck.randrange(10**6)
    return (b"MATCHSTATE:%d:%d::%s\r\n" % (k % 2, first + k, (b"TdAs|", b"|TdAs")[k % 2]) for k in range(1000))


def _spoiled(luck: random.Random) -> bytes:
    at = luck.randrange(len(MINE))
    return MINE[:at] + bytes([luck.randrange(256)]) + MINE[at + 1 :]


def misbehave(link: socket.socket, moves: dict[str, Any], luck: random.Random) -> None:
    """Some moves in a row, until the other side ends it."""
    with contextlib.suppress(OSError):
        for name in luck.choices([*moves], k=luck.randrange(1, 6)):
            moves[name](link, luck)


def misbehaviours(count: int, seed: int, kept: Path = Path("out/torture")) -> dict[str, Any]:
    """`count` players at our dealer and `count` dealers at our client; how they ended and the longest time."""
    outcomes: Counter[str] = Counter()
    longest = 0.0

    def ended(name: str, number: int, began: float, play: Callable[[], object]) -> None:
        nonlocal longest
        try:
            play()
            outcomes[f"{name}: played to the end"] += 1
        except PipelineError:
            outcomes[f"{name}: given up with a sentence"] += 1
        took = time.monotonic() - began
        assert took < BOUND_S, f"{name} {number} of seed {seed} took {took:.1f} s (seed it by '{seed} {number}')"
        longest = max(longest, took)

    for number in range(count):
        began, luck = time.monotonic(), random.Random(f"{seed} {number}")
        with dealt(SHORT) as (_, bob, outcome):
            misbehave(bob, MOVES, luck)
            ended("players", number, began, lambda outcome=outcome: outcome.result(2 * BOUND_S))
        began, luck = time.monotonic(), random.Random(f"{seed} {number}")
        times = luck.choice([1, 1, 3])
        limits = {"idle_ms": 100, "response_ms": 100, "reconnect_ms": 100 if times > 1 else 0}
        ended(
            "dealers",
            number,
            began,
            lambda luck=luck, times=times, limits=limits: heard(
                lambda link: misbehave(link, DEALERS_MOVES, luck), times, **limits
            ),
        )
    return {**dict(sorted(outcomes.items())), "longest_s": round(longest, 2), "bound_s": BOUND_S}


# Resets


class Relay:
    """A port in front of the dealer's that breaks every connection off after a number of bytes, if there is one."""

    def __init__(self, luck: random.Random, mean: int) -> None:
        self._luck, self._mean = luck, mean
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.to = 0
        self.resets = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.to), timeout=20)
                except OSError:
                    reset(near)  # the dealer is not there yet: the client tries again
                    continue
                for link in (near, far):
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    link.settimeout(None)
                left = [self._luck.randrange(1, 2 * self._mean)]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other, left), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, left: list[int]) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                left[0] -= len(data)
                if left[0] < 0:
                    self.resets += 1
                    other.sendall(data[: len(data) // 2])
                    break
                other.sendall(data)
        for link in (one, other):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                reset(link)

    def close(self) -> None:
        self._server.close()


def _dealt_out(plan: MatchPlan, relays: list[Relay], folder: Path) -> int:
    """Deal a match through the relays, taken up again until it is over; how often."""
    for again in range(100_000):
        listeners = listen([0, 0])
        for relay, listener in zip(relays, listeners, strict=True):
            relay.to = listener.getsockname()[1]
        try:
            run_match(
                plan,
                listeners,
                log_file=folder / "log",
                transactions=folder / "record",
                resume=(folder / "record").exists(),
            )
        except PipelineError:
            continue
        return again
    raise AssertionError("the match did not come to its end")


def _disturbed(plan: MatchPlan, mean: int, luck: random.Random, folder: Path) -> tuple[bytes, int, int]:
    """The log of a match through relays, how often the dealer was taken up again, and how many resets there were."""
    relays = [Relay(luck, mean) for _ in plan.names]
    over = threading.Event()

    def client(name: str, relay: Relay) -> None:
        while not over.is_set():
            with contextlib.suppress(PipelineError):
                patient(Fixed(name, plan.game), "127.0.0.1", relay.port, reconnect_ms=500)

    with ThreadPoolExecutor(3) as pool:
        players = [pool.submit(client, name, relay) for name, relay in zip(plan.names, relays, strict=True)]
        try:
            again = _dealt_out(plan, relays, folder)
        finally:
            over.set()
            for relay in relays:
                relay.close()
        for player in players:
            player.result(60)
    return (folder / "log").read_bytes(), again, sum(relay.resets for relay in relays)


def _compared(seed: int, number: int, hands: int) -> Counter[str]:
    """One match with and without resets: the logs are equal."""
    luck = random.Random(f"{seed} {number}")
    plan = MatchPlan(luck.choice([LIMIT, NOLIMIT]), ("Alice", "Bob"), hands, number, limits=PATIENT)
    folder = Path(tempfile.mkdtemp(prefix="resets-"))
    whole, _, _ = _disturbed(plan, 1 << 40, luck, folder)
    for name in ("record", "log"):
        (folder / name).unlink()
    found, again, broken = _disturbed(plan, luck.choice([2000, 5000, 20_000]), luck, folder)
    assert found == whole, f"match {number} of seed {seed} differs; the disturbed log is {folder / 'log'}"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return Counter(hands=hands, matches=1, resets=broken, resumed=again)


def resets(count: int, seed: int, first: int = 0) -> dict[str, Any]:
    """`count` hands in matches of two hundred, leaving out the `first` matches: with and without resets.

    Matches wait most of the time, for the clients to connect again, so `SIDE_BY_SIDE` of them are played at once.
    """
    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        matches = [
            pool.submit(_compared, seed, first + number, min(200, count - 200 * number))
            for number in range(-(-count // 200))
        ]
        try:
            for match in matches:
                outcomes += match.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return dict(outcomes)


# Clocks


def clocks(count: int, seed: int) -> dict[str, Any]:
    """Play `count` matches of fifty hands, taken up again after resets, while the time of day jumps.

    Each reading of the clock is up to a thousand days off, forwards or backwards, which is beyond every limit of time;
    each log must be that of the match by a clock that is right.
    """
    outcomes: Counter[str] = Counter()
    for number in range(count):
        luck, jumps = random.Random(f"clocks {seed} {number}"), random.Random(number)
        plan = MatchPlan(luck.choice([LIMIT, NOLIMIT]), ("Alice", "Bob"), 50, number, limits=PATIENT)
        right_time, readings = time.time, [0]

        def jumping(
            right_time: Callable[[], float] = right_time, jumps: random.Random = jumps, readings: list[int] = readings
        ) -> float:
            readings[0] += 1
            return right_time() + jumps.uniform(-1000, 1000) * 24 * 3600

        with tempfile.TemporaryDirectory(prefix="clocks-") as name:
            folder = Path(name)
            right, _, _ = _disturbed(plan, 1 << 40, luck, folder)
            for path in folder.iterdir():
                path.unlink()
            with patch("time.time", jumping):
                found, again, broken = _disturbed(plan, 3000, luck, folder)
        assert found == right, f"match {number} of seed {seed} differs where the clock jumps"
        outcomes += Counter(matches=1, readings=readings[0], resets=broken, resumed=again)
    return dict(outcomes)


# Descriptors


def descriptors(count: int, seed: int) -> dict[str, Any]:
    """Play `count` matches of one hand over sockets; each leaves as many files and threads open as the first."""
    game = builtin("kuhn.limit.2p")

    def match(number: int) -> tuple[int, int]:
        listeners = listen([0, 0])
        with ThreadPoolExecutor(2) as pool:
            for name, listener in zip("ab", listeners, strict=True):
                pool.submit(patient, Fixed(name, game), "127.0.0.1", listener.getsockname()[1])
            run_match(MatchPlan(game, ("a", "b"), 1, seed + number, limits=PATIENT), listeners)
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    first = match(0)
    for number in range(1, count):
        last = match(number)
        assert last == first, f"after match {number} of seed {seed} {last} files and threads are open, not {first}"
    return {"matches": count, "files": first[0], "threads": first[1]}


# Soak


def memory_mb() -> float:
    """What this process holds now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS in /proc/self/status")


def remember_little() -> None:
    """Make what dealer and players remember of situations so small that it is full at once: all other growth shows."""
    for module in (dealer, player):
        module.StateCache = partial(StateCache, most=REMEMBERED)
    dealer.lru_cache = lambda maxsize: lru_cache(maxsize=min(maxsize, REMEMBERED))
    player.CACHED_STATES = REMEMBERED
    decisions._action_arrays = lru_cache(maxsize=REMEMBERED)(decisions._action_arrays.__wrapped__)


class TimeUp(Exception):  # noqa: N818  not an error
    """The soak is over."""


def soak(seconds: float, seed: int, ordinary: bool = False, tell: Callable[[str], object] = print) -> dict[str, Any]:
    """Four matches at once in one process: at every eighth of the time the hands, the memory, the states remembered.

    The `seconds` are computing time of this process, so that a run which others hold up does not pass for a long one.
    It may grow by 32 MB after the first quarter; with what is `ordinary` remembered, after the first half.
    """
    if not ordinary:
        remember_little()
    for game in (LIMIT, NOLIMIT):
        player.Player(Fixed("first", game)).warm_up()  # compiling would take from the time, and from the dealers'
    began = time.process_time()
    until = began + seconds
    hands = [0] * 4
    marks: list[float] = []
    played: list[int] = []
    states: list[int] = []

    def match(number: int) -> None:
        game = (LIMIT, NOLIMIT)[number % 2]
        names = f"a{number}", f"b{number}"
        plan = MatchPlan(game, names, 10**8, seed + number, limits=PATIENT)
        listeners = listen([0, 0])

        def count(_: object) -> None:
            hands[number] += 1
            if time.process_time() > until:
                raise TimeUp

        with ThreadPoolExecutor(2) as pool:
            for name, listener in zip(names, listeners, strict=True):
                pool.submit(patient, Fixed(name, game), "127.0.0.1", listener.getsockname()[1])
            with contextlib.suppress(TimeUp):
                run_match(plan, listeners, log_file=Path("/dev/null"), finished=count)

    with ThreadPoolExecutor(4) as pool:
        matches = [pool.submit(match, number) for number in range(4)]
        for part in range(1, 9):
            while time.process_time() < began + seconds * part / 8:
                failed = [one for one in wait(matches, 0.2, FIRST_EXCEPTION).done if one.exception()]
                if failed:
                    until = 0.0  # ends the others
                    failed[0].result()
            marks.append(round(memory_mb(), 1))
            played.append(sum(hands))
            states.append(sum(isinstance(one, State) for one in gc.get_objects()))
            tell(f"{seconds * part / 8:.0f} s of computing: {played[-1]} hands, {marks[-1]} MB, {states[-1]} states")
        for one in matches:
            one.result(120)
    growth = marks[-1] - marks[3 if ordinary else 1]
    assert growth < 32, f"the memory grew by {growth:.0f} MB after a {'half' if ordinary else 'quarter'}: {marks}"
    return {
        "matches": 4,
        "hands": sum(hands),
        "played": played,
        "memory_mb": marks,
        "states": states,
        "growth_mb": round(growth, 1),
        "computing_s": round(time.process_time() - began),
    }
