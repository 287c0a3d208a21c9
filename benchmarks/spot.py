"""Spots: time and memory to a chosen exploitability, beside CFR+ with linear averages and dense showdowns.

Each spot has two full ranges, a stack of three pots and 2 raises a street. A river has bets of a third, three quarters
and one and a half pots, and so has the turn; the flop has one bet of half a pot. The baseline of a spot is the same
solver by CFR+ with linear averages; that of a showdown is the product of a matrix of results with a vector of reach.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks._figures import Figure, Settings, seconds
from pipeline.poker.cards import parse_cards
from pipeline.solving.spot import GIGABYTE, PostflopSpot, SpotSolver, linear_plus
from pipeline.solving.spot_cards import PAIRS
from pipeline.solving.spot_kernels import BEST, PassRule, terminals
from pipeline.solving.spot_tree import SHOWDOWN, parse_menu

SPOTS = (
    ("river", "2c7d9hTsJs", "0.33,0.75,1.5", 0.001, "2 s"),
    ("turn", "2c7d9hTs", "0.33,0.75,1.5", 0.003, "60 s, 1.5 GB"),
    ("flop", "2c7d9h", "0.5", 0.005, "1,800 s, 6 GB"),
)


def run(settings: Settings) -> list[Figure]:
    """All figures; with `--quick` without the flop."""
    figures = _showdowns()
    for name, board, sizes, target, wanted in SPOTS:
        if not settings.quick or name != "flop":
            figures += _spot(name, _solver(board, sizes, settings.workers), target, wanted, settings.workers)
    return figures


def _solver(board: str, sizes: str, workers: int) -> SpotSolver:
    spot = PostflopSpot(parse_cards(board), np.ones((2, len(PAIRS))), 100, 300, parse_menu([sizes]))
    return SpotSolver(spot, workers=workers)


def _spot(name: str, solver: SpotSolver, target: float, wanted: str, workers: int) -> list[Figure]:
    """Time, iterations and memory of a spot."""
    warm = _solver("2c7d9hTsJs"[: 2 * len(solver.spot.board)], "1", workers)
    warm.iterate()  # compiled before the clock starts
    warm.measure()
    began, worked = time.perf_counter(), time.process_time()
    solver.run(target)
    wall, processor = time.perf_counter() - began, time.process_time() - worked
    gigabytes = (solver.tables.regret.nbytes + solver.tables.average.nbytes) / GIGABYTE
    figures = [
        Figure(f"{name}: to {target:.1%} of the pot", wall, "s", target=f"at most {wanted}"),
        Figure(f"{name}: processor time of all threads", processor, "s"),
        Figure(f"{name}: tables", gigabytes, "GB"),
    ]
    if name == "flop":
        return figures
    plain = SpotSolver(solver.spot, workers=workers, discounts=linear_plus)
    worked = time.process_time()
    plain.run(target)
    slow = time.process_time() - worked
    text = "CFR+ with linear averages"
    return [
        *figures,
        Figure(f"{name}: processor time against CFR+", processor, "s", text, slow, processor / slow),
        Figure(f"{name}: iterations", solver.iteration, "", text, plain.iteration, solver.iteration / plain.iteration),
    ]


def _showdowns() -> list[Figure]:
    """Time of a terminal by sorted lists, in a batch as it is met, and by a matrix of the results of all pairs."""
    solver = _solver("2c7d9hTsJs", "0.33,0.75,1.5", 1)
    solver.iterate()
    boards, nodes = solver.boards[0], solver.tree.nodes
    ends = int((nodes.kind > 0).sum())
    rule = PassRule(0, BEST, 1.0, 1.0, 1.0)
    batch = seconds(lambda: terminals(solver.tables, boards, 0, 0, rule, solver.buffers), 200) / ends
    cards = [np.stack([boards.high, boards.low], axis=1)[slice(*boards.start[player])] for player in range(2)]
    values = [boards.value[slice(*boards.start[player])].astype(np.int64) for player in range(2)]
    apart = (cards[0][:, None, :, None] != cards[1][None, :, None, :]).all(axis=(2, 3))
    matrix = (np.sign(values[0][:, None] - values[1][None]) * apart).astype(np.float32)
    reach = solver.root_reach[1]
    dense = seconds(lambda: np.einsum("ij,j->i", matrix, reach), 200)
    return [
        Figure(
            "a terminal of a full river",
            1e6 * batch,
            "us",
            "sum over a matrix of all pairs",
            1e6 * dense,
            batch / dense,
        ),
        Figure("terminals of that river", ends, "", target=f"{int((nodes.kind == SHOWDOWN).sum())} of them showdowns"),
    ]
