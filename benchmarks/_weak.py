"""A weak player of Leduc whose mistake is known, and what counters learned from its logs are worth, exactly.

`folding_more` makes an equilibrium fold more often than it should. `leduc_figures` answers it with full knowledge and
from logs of different lengths.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure
from pipeline.agents.names import resolve
from pipeline.agents.teacher import SmallTeacher
from pipeline.arena.match import play_match
from pipeline.dataset.load import load_decisions
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import Game, builtin
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.counter import SmallSetting, count_small, estimate
from pipeline.solving.small_counter import Belief, Response, respond, winnings

Array = npt.NDArray[Any]

LEDUC = builtin("leduc.limit.2p")
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
HANDS = (100, 1_000, 10_000, 100_000)
LOGS = 5
"""logs of each length"""
MILLI = 1000.0


def folding_more(mix: Array, times: float = 2.0) -> Array:
    """A strategy (rows, 3) that folds so many times as often, at the cost of its other actions in proportion.

    >>> folding_more(np.array([[0.25, 0.5, 0.25], [0.0, 1.0, 0.0]])).tolist()
    [[0.5, 0.3333333333333333, 0.16666666666666666], [0.0, 1.0, 0.0]]
    """
    fold = np.minimum(times * mix[:, 0], 1.0)
    rest = mix[:, 1:].sum(axis=1)
    scale = np.where(rest > 0, (1 - fold) / np.where(rest > 0, rest, 1.0), 0.0)
    return np.column_stack([np.where(rest > 0, fold, mix[:, 0]), mix[:, 1:] * scale[:, None]])


def _solved(game: Game) -> Array:
    solver = ExactSolver(game)
    solver.run(3_000)
    return solver.strategy()


def _above(one: Response, ends: list[Response]) -> float:
    """How far a response is above the straight line between equilibrium and best response, in milli-antes."""
    wide = ends[1].exploitability - ends[0].exploitability
    along = (one.exploitability - ends[0].exploitability) / wide
    return MILLI * (one.winnings - ends[0].winnings - along * (ends[1].winnings - ends[0].winnings))


def _learned(weak: Array, prior: Array, hands: int, seed: int) -> tuple[float, float, float]:
    """From one log: what the data-biased response wins, its exploitability, and that of the best response."""
    with tempfile.TemporaryDirectory() as folder:
        players = [SmallTeacher("weak", LEDUC, weak), resolve("@random", LEDUC)]
        match = play_match(players, LEDUC, hands=hands, seed=seed, log=Path(folder) / "match")
        ingest(match.logs, Path(folder) / "rows", options(agents=["weak"], strength=False), workers=1)
        rows = load_decisions(Path(folder) / "rows", ["weak"])
        setting = SmallSetting(LEDUC, estimate(count_small(LEDUC, rows.rows, rows.action), prior))
    best, biased = (setting.answer(method, 1.0) for method in ("best", "dbr"))
    exact = ExactSolver(LEDUC)
    return winnings(LEDUC, biased, weak), exact.exploitability(biased), exact.exploitability(best)


def leduc_figures() -> list[Figure]:
    """Exact figures of counters in Leduc, in milli-antes per hand."""
    prior = _solved(LEDUC)
    weak = folding_more(prior)
    ends = [respond(LEDUC, Belief(weak, hands=share)) for share in (0.0, 1.0)]
    least = min(_above(respond(LEDUC, Belief(weak, hands=share)), ends) for share in SHARES)
    unit = "milli-antes"
    zero = MILLI * ends[0].exploitability
    figures = [
        Figure("Leduc, trust 0: exploitability", zero, unit, target="at most 1"),
        Figure("Leduc, any trust: least above the straight line", least, unit, target="at least 0"),
    ]
    base = winnings(LEDUC, ends[0].strategy, weak)
    full = ends[1].winnings - base
    for hands in HANDS:
        found = [_learned(weak, prior, hands, seed) for seed in range(LOGS)]
        more = max(MILLI * (biased - best) for _, biased, best in found)
        said = f"Leduc, {hands:,} hands: most that data-biased is more exploitable than best, {LOGS} logs"
        figures.append(Figure(said, more, unit, target="at most 0"))
        gains = [won - base for won, _, _ in found]
        name = f"Leduc, {hands:,} hands: data-biased gain, mean of {LOGS} logs"
        worst = f" (least {min(gains) / full:.2f})"
        target = ("at least 0.5x" if hands == 1_000 else "") + worst
        share = float(np.mean(gains)) / full
        figures.append(Figure(name, MILLI * float(np.mean(gains)), unit, "full knowledge", MILLI * full, share, target))
    return figures
