"""The wire: hands per second of our dealer with two of our clients on loopback, decision times, time to be ready.

Dealer and clients are processes of their own, as in a match, here on one core: only one of them has something to do
at a time, and on some machines waking another core takes longer than an answer. The baseline of a match is the same
number of messages sent and answered by bare Python sockets that look at nothing.

`--dealer` names the official dealer (the program `dealer` of the ACPC's server, not part of this
project): the same clients then play on it and on ours in turn, and the median ratio of the pairs is printed, for all
cores and for one.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks._figures import Figure, Settings
from pipeline.arena.wire.dealer import MatchPlan, listen, run_match
from pipeline.arena.wire.sockets import Limits
from pipeline.poker.game import Game, builtin
from pipeline.runtime.parallel import processors

GAME = builtin("holdem.limit.2p.reverse_blinds")
BUNDLE = "models/teacher"
NO_LIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
ECHO = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as link:
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := link.recv(4096):
        if data.endswith(b"!"):
            link.sendall(data)
"""


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process and those it starts on one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _client(port: int, agent: str, errors: int | None = None, game: Game = GAME) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pipeline", "connect", "localhost", str(port), agent, "--json"]
    command += ["--game", game.name] if game is not GAME else []
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def match_on_wire(agents: tuple[str, str], hands: int, game: Game = GAME) -> tuple[float, float, list[dict[str, Any]]]:
    """Return hands and actions per second from the first hand's end to the last's, and what the clients say."""
    listeners = listen([0, 0])
    ports = [listener.getsockname()[1] for listener in listeners]
    clients = [_client(port, agent, game=game) for port, agent in zip(ports, agents, strict=True)]
    marks: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "bench.log"
        run_match(
            MatchPlan(game, ("a", "b"), hands, 1, limits=Limits(start_ms=60_000)),
            listeners,
            log_file=log,
            progress=lambda done, total: marks.append(time.perf_counter()),
        )
        played = [
            line.split(":")[2].replace("/", "")
            for line in log.read_text(encoding="utf-8").splitlines()
            if line[0] == "S"
        ]
    told = [json.loads(client.communicate(timeout=60)[0]) for client in clients]
    seconds = marks[-1] - marks[0]
    return (hands - 1) / seconds, sum(map(len, played[1:-1])) / seconds, told


def _transactions(dealer: list[str], folder: str) -> float:
    """Measure hands per second of a dealer with two of our clients, from the first state sent to the last answer."""
    with subprocess.Popen(dealer, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        clients = [_client(int(port), "@call") for port in process.stdout.readline().split()]
        process.stdout.read()
        for client in clients:
            client.communicate(timeout=60)
    lines = [line.split() for line in (Path(folder) / "bench.tlog").read_text(encoding="utf-8").splitlines()]
    return (int(lines[-1][1]) + 1) / (float(lines[-1][3]) - float(lines[0][2]))


def _beside_official(official: str, where: str, hands: int = 2000, pairs: int = 6) -> Figure:
    """Our dealer and the official one with the same clients, in turn."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(pairs):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bench.game").write_text(GAME.text, encoding="utf-8")
            start = ["bench.game", "--hands", str(hands), "--seed", "1", "--transactions", "bench.tlog"]
            command = [sys.executable, "-m", "pipeline", "deal", start[0], "a", "b", *start[1:], "--log", "bench.log"]
            ours.append(_transactions(command, folder))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bench.game").write_text(GAME.text, encoding="utf-8")
            command = [official, "bench", "bench.game", str(hands), "1", "a", "b", "-p", "0,0", "-T", "-q"]
            theirs.append(_transactions(command, folder))
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    value, other = statistics.median(ours), statistics.median(theirs)
    return Figure(
        f"wire: our dealer with @call, alternating, {where}",
        value,
        "hands/s",
        "of the official dealer",
        other,
        ratio,
        "1x",
    )


def _bare(actions: int = 20_000) -> float:
    """Actions per second when states go to two bare sockets and one of them answers."""
    with ExitStack() as stack:
        links = []
        for _ in range(2):
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            child = subprocess.Popen([sys.executable, "-c", ECHO, str(listener.getsockname()[1])])
            stack.callback(child.wait)
            link = stack.enter_context(listener.accept()[0])
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            links.append(link)
        start = time.perf_counter()
        for k in range(actions):
            links[k % 2].sendall(b"x" * 60 + b"!")
            links[(k + 1) % 2].sendall(b"x" * 60 + b".")
            links[k % 2].recv(4096)
        return actions / (time.perf_counter() - start)


def _ready(agent: str, times: int = 3) -> float:
    """Return the least time from a client's start to its first word, seconds."""
    spent = []
    for _ in range(times):
        with socket.create_server(("127.0.0.1", 0)) as server:
            start = time.perf_counter()
            client = _client(server.getsockname()[1], agent, subprocess.DEVNULL)  # it will be left alone
            link, _ = server.accept()
            with link:
                link.recv(100)
                spent.append(time.perf_counter() - start)
            client.communicate()
    return min(spent)


def run(settings: Settings) -> list[Figure]:
    """Measure matches of @call, of a bundle, and of two agents that think longer."""
    with _one_core():
        bare = _bare()
    figures = []
    bundle = next(iter(settings.bundles), BUNDLE)
    for agent, hands, target in (("@call", 5000, "1,000"), (bundle, 2000, "300")):
        title = agent if agent.startswith("@") else "a bundle"
        with _one_core():
            rate, actions, told = match_on_wire((agent, agent), hands)
        p99 = max(client["p99_ms"] for client in told)
        figures += [
            Figure(f"wire: {title} against itself", rate, "hands/s", "of bare sockets", bare, actions / bare, target),
            Figure(f"wire: decision of {title}, 99%", p99, "ms", target="5"),
            Figure(f"wire: {title} ready after its start", _ready(agent), "s", target="2"),
        ]
    with _one_core():
        rate, _, _ = match_on_wire(("@calibrated:70,70", "@bearl"), 1000, NO_LIMIT)
    figures.append(Figure("wire: @calibrated:70,70 against @bearl, no-limit", rate, "hands/s", target="300"))
    if settings.dealer is not None:
        program = str(settings.dealer.resolve())
        figures.append(_beside_official(program, f"{processors()} cores"))
        if hasattr(os, "sched_setaffinity"):
            with _one_core():
                figures.append(_beside_official(program, "one core"))
    return figures
