"""The explorer: how soon its first page is there, how long a spot and a filter take, and whether it stays small.

The server runs as a process of its own, started as a user starts it. Spots are asked for on boards drawn at random, so
that none was asked for before; beside them stands what asking the agent hand by hand takes. The list of hands is that
of the dataset that `--rows` names (one with 720,000 hands for the figure of the page), else the bundled
sample's; beside it stands the same filter over the Parquet files.
"""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np

from benchmarks._figures import Figure, Settings
from pipeline.agents.names import resolve
from pipeline.dataset.decisions import observation
from pipeline.poker.cards import cards_text, parse_cards
from pipeline.poker.game import builtin
from pipeline.web.app import assets

GAME = builtin("holdem.limit.2p.reverse_blinds")
BUNDLE = Path(__file__).parents[1] / "models" / "teacher"
SAMPLE = Path(__file__).parents[1] / "data" / "sample"
SPOTS = {"preflop": ("r", 0), "flop": ("rc/cr", 3), "turn": ("rc/cc/r", 4), "river": ("rc/crc/cc/r", 5)}
TIMES = 15
"""spots of a street, starts of the server"""
REQUESTS = 10_000


class Running:
    """A server process, and one connection to it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.host = urlsplit(address).netloc
        self.connection = http.client.HTTPConnection(self.host, timeout=300)

    def get(self, path: str) -> bytes:
        """Return an answer; one that is no 200 is an error."""
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:200]!r}")
        return body

    def milliseconds(self, path: str) -> float:
        """Measure how long an answer takes."""
        began = time.perf_counter()
        self.get(path)
        return 1000 * (time.perf_counter() - began)

    @property
    def megabytes(self) -> float:
        """Memory of the process."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        return int(found[1]) / 1024 if found else float("nan")


@contextmanager
def served(*words: str) -> Iterator[Running]:
    """`pipeline web` as a process."""
    command = [sys.executable, "-m", "pipeline", "web", *words, "--no-open", "--no-token", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError("the server did not start")
        yield Running(process, address)
    finally:
        process.terminate()
        process.wait(20)


def _spot(agent: str, betting: str, board: str) -> str:
    return f"/api/spot?game={GAME.name}&agent={quote(agent)}&betting={quote(betting)}&board={board}"


def _boards(count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [cards_text(random.permutation(52)[:count]) for _ in range(TIMES)]


def _start() -> Figure:
    """Measure the time from the start of the process to the page with its files and its first spot."""

    def once() -> float:
        began = time.perf_counter()
        with served(str(BUNDLE)) as server:
            page = server.get("/").decode()
            for name in re.findall(r"/assets/[\w.]+", page):
                server.get(name)
            server.get("/api/about")
            server.get(_spot("teacher", "", ""))
            return time.perf_counter() - began

    once()
    bare = [sys.executable, "-c", "import numba"]
    pairs = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(bare, check=True)
        pairs.append((time.perf_counter() - began, once()))
    base, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Figure(
        "web: start to the first page and spot", whole, "s", "python -c 'import numba'", base, whole / base, "2"
    )


def _spots(server: Running) -> list[Figure]:
    """Measure spots on every street, and the same asked hand by hand."""
    figures = []
    for agent, name in (("teacher", "bundle"), ("@teacher", "@teacher")):
        policy = resolve(str(BUNDLE) if agent == "teacher" else agent, GAME)
        for street, (betting, cards) in SPOTS.items():
            boards = _boards(cards, 1 if agent == "teacher" else 2)
            server.get(_spot(agent, betting, boards[0]))
            took = [server.milliseconds(_spot(agent, betting, board)) for board in boards[1:]]
            spot = json.loads(server.get(_spot(agent, betting, boards[0])))
            board_cards = parse_cards(boards[0])
            for _ in range(2):  # the second time everything is compiled
                began = time.perf_counter()
                for hand in spot["hands"]["cards"][::10]:
                    policy.probabilities(observation(GAME, betting, spot["actor"], parse_cards(hand), board_cards))
                single = 1000 * (time.perf_counter() - began) * 10
            middle = statistics.median(took)
            label = f"web: {street} spot of {name}, median"
            figures.append(Figure(label, middle, "ms", "hand by hand", single, middle / single, "150"))
    return figures


def _many(server: Running) -> list[Figure]:
    """Measure fifty at once, and memory over many requests."""

    def one(board: str) -> float:
        other = Running(server.process, f"http://{server.host}/")
        return other.milliseconds(_spot("teacher", "rc/cr", board))

    boards = [cards_text(np.random.default_rng(seed).permutation(52)[:3]) for seed in range(100, 150)]
    with ThreadPoolExecutor(50) as pool:
        took = list(pool.map(one, boards))
    alone = server.milliseconds(_spot("teacher", "rc/cr", "2c3d4h"))
    figures = [
        Figure(
            "web: 50 spots at once, all answered, the slowest", max(took), "ms", "one alone", alone, max(took) / alone
        )
    ]
    after = {}
    for number in range(REQUESTS):
        street, (betting, cards) = list(SPOTS.items())[number % 4]
        board = cards_text(np.random.default_rng(number).permutation(52)[:cards])
        path = _spot("@teacher", betting, board) if street != "preflop" else "/api/about"
        server.get(path)
        if number + 1 in (REQUESTS // 10, REQUESTS):
            after[number + 1] = server.megabytes
    early, late = after[REQUESTS // 10], after[REQUESTS]
    name = f"web: memory after {REQUESTS:,} requests"
    return [*figures, Figure(name, late, "MB", f"after {REQUESTS // 10:,}", early, late / early, "flat")]


def _filters(rows: Path) -> list[Figure]:
    """Measure the list of hands behind filters, and the same filter over the files."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    with served("@call", "--data", str(rows)) as server:
        before = server.megabytes
        while (hands := json.loads(server.get("/api/hands")))["reading"]:
            time.sleep(0.2)
        player = hands["players"][0]
        queries = [
            f"player={quote(player)}&street={n % 3 + 1}&betting={('rc/', 'c', 'r')[n % 3]}" for n in range(TIMES)
        ]
        queries += [f"{query}&sort=pot" for query in queries] + [f"made=set&player={quote(player)}"] * 3
        took = [server.milliseconds(f"/api/hands?{query}") for query in queries]
        began = time.perf_counter()
        wanted = pc.starts_with(ds.field("betting"), "rc/") & (pc.count_substring(ds.field("betting"), "/") >= 1)
        ds.dataset(rows / "hands", format="parquet").to_table(columns=["line"], filter=wanted)
        files = 1000 * (time.perf_counter() - began)
        middle = statistics.median(took)
        label = f"web: filter {hands['hands']:,} hands, median"
        return [
            Figure(label, middle, "ms", "pyarrow over the files", files, middle / files, "300"),
            Figure("web: the same, slowest", max(took), "ms", target="300"),
            Figure(
                f"web: memory after reading and filtering {hands['hands']:,} hands",
                *(server.megabytes, "MB", "before", before, server.megabytes / before, "1000"),
            ),
        ]


def run(settings: Settings) -> list[Figure]:
    """Measure all figures of the explorer."""
    size = sum(len(content) for _, content in assets().values()) / 1000
    figures = [Figure("web: page assets in all", size, "kB", target="200"), _start()]
    with served(str(BUNDLE), "@teacher") as server:
        figures += _spots(server) + _many(server)
    if settings.rows is not None:
        return figures + _filters(settings.rows)
    with tempfile.TemporaryDirectory() as folder:
        from pipeline.api.data import ingest

        ingest(SAMPLE, Path(folder) / "rows", strength=False)
        return figures + _filters(Path(folder) / "rows")
