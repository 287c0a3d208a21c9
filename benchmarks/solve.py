"""Solvers and the teacher: time to known answers, traversals a second, and what the teacher wins."""

from __future__ import annotations

import json
import time
from importlib.resources import files

import numpy as np

from benchmarks._figures import Figure, Settings
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.poker.game import find_game, kuhn
from pipeline.poker.strength.hand_clusters import load_clusters
from pipeline.solving.buckets import dealer_of, make_buckets
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.holdem import CHUNK, BucketSolver
from pipeline.solving.layout import Layout
from pipeline.solving.preflop import solve_preflop

SLUMBOT = "slumbot2019 (C++, its published figure)"
MATCHES = (
    ("@call", 100_000, "at least 480", 531.0),
    ("@raise", 800_000, "at least 400", 464.0),
    ("@random", 300_000, "at least 700", 799.0),
    ("@equity", 300_000, "above 0", None),
    ("@bearl", 150_000, "above 0", None),
    ("@calibrated:70,70", 300_000, "above 0", None),
)
HOLDEM = find_game("holdem.limit.2p.reverse_blinds")


def run(_: Settings) -> list[Figure]:
    """Measure all figures."""
    return [*_small(), *_traversals(), *_teacher()]


def _small() -> list[Figure]:
    ExactSolver(kuhn(2)).solve(1)  # compiled before the clock starts
    start = time.perf_counter()
    solution = ExactSolver(kuhn(2)).solve(300)
    figures = [
        Figure("Kuhn: 300 iterations of CFR+", time.perf_counter() - start, "s", target="under 1 s"),
        Figure("Kuhn: distance from -1/18", abs(solution.value[0] + 1 / 18), "antes", target="within 0.001"),
    ]
    solver, start = ExactSolver(find_game("leduc.limit.2p")), time.perf_counter()
    exploitability = np.inf
    while exploitability >= 0.001:
        solver.run(100)
        exploitability = solver.point()[0].exploitability or 0.0
    figures.append(Figure("Leduc: CFR+ to 1 milli-ante", time.perf_counter() - start, "s", target="at most 10 s"))
    start = time.perf_counter()
    preflop = solve_preflop(HOLDEM)
    return [
        *figures,
        Figure("preflop hold'em: exploitability", preflop.exploitability_mbb, "mbb/h", target="under 0.01"),
        Figure("preflop hold'em: time", time.perf_counter() - start, "s"),
    ]


def _traversals() -> list[Figure]:
    """One player's external-sampling traversals per second of one core, from the start of a run."""
    sizes = (1000, 1000, 500)
    tables = make_buckets(load_clusters(1, sizes[0], 1), load_clusters(2, sizes[1], 1), sizes[2])
    solver = BucketSolver(Layout(HOLDEM, (169, *sizes)), dealer_of(tables), 1)
    solver.run(16, workers=1)
    start, chunks = time.process_time(), 64
    solver.run(16 + chunks, workers=1)
    speed = 2 * chunks * CHUNK / (time.process_time() - start)
    return [
        Figure("hold'em: traversals, dealing included, one core", speed, "1/s", SLUMBOT, 55_000.0, speed / 55_000.0,
               "at least 40,000"),
    ]  # fmt: skip


def _teacher() -> list[Figure]:
    teacher = resolve("@teacher", HOLDEM)
    figures = []
    for text, hands, target, peer in MATCHES:
        match = play_match([teacher, resolve(text, HOLDEM)], HOLDEM, hands=hands, seed=1)
        name = f"@teacher against {text}, ± {match.ci95():.1f}"
        won = match.mbb_per_hand()
        figures.append(Figure(name, won, "mbb/h", SLUMBOT if peer else "", peer, won / peer if peer else None, target))
    made = json.loads(
        (files("pipeline.agents") / "resources" / "teacher" / "manifest.json").read_text(encoding="utf-8")
    )
    figures.append(
        Figure(
            "@teacher against itself at a quarter of its deals", made["against_quarter"][0], "mbb/h", target="under 25"
        )
    )
    return figures
