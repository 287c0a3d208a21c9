"""Counter-strategies in bucketed limit hold'em: restricted Nash and data-biased responses by the solver's traversals.

In: a model of an opponent as a bucketed strategy (see `layout`), how far it is trusted, and a dealer of buckets. Out: a
bucketed strategy for both seats. The opponent keeps to the model in a share of the hands, or at a share of the times
that it comes to each decision, and learns to play against us the rest of the time (`small_counter` says more of both
and finds the same answers exactly in small games). Where the model is always in force, `response.best_response` is the
answer.

Each seat is a run of its own, because the opponent's free part learns against that seat alone. Both players may start
from a known strategy, so that decisions which few deals come to are played by it rather than by guesses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipeline.files import Progress, quiet
from pipeline.solve.holdem import CHUNK, Dealer, Model, Solver, resume, save
from pipeline.solve.layout import Floats, Layout
from pipeline.solve.response import best_response, rows_of

__all__ = ["respond_in_buckets"]

HEAD_START = 50.0
"""chips of regret that the strategy both players start from is given, shared among its actions"""
SAVE_EVERY = 64
"""chunks between checkpoints"""


def respond_in_buckets(
    layout: Layout,
    dealer: Dealer,
    model: Floats,
    *,
    deals: int,
    hands: float = 0.0,
    sure: Floats | None = None,
    start: Floats | None = None,
    seed: int = 1,
    workers: int = 2,
    folder: Path | None = None,
    about: dict[str, Any] | None = None,
    progress: Progress = quiet,
) -> Floats:
    """A counter-strategy to `model`.

    Parameters
    ----------
    model: (rows, 3) the opponent's probabilities.
    deals: how many are traversed for each seat.
    hands: the share of hands in which the opponent keeps to the model throughout.
    sure: (rows,) the share of times that it keeps to the model at a decision, in the other hands.
    start: (rows, 3) a strategy that both players start from.
    folder: where checkpoints are kept; a run that was interrupted goes on from them. `about` must be the same then.

    Returns
    -------
    (rows, 3) probabilities.
    """
    if hands == 1:
        return best_response(layout, dealer, model, deals=deals, seed=seed, progress=progress)
    out = np.zeros((layout.rows, 3), np.float32)
    chunks = -(-deals // CHUNK)
    trusted = np.zeros(0, np.float32) if sure is None else np.ascontiguousarray(sure, np.float32)
    for seat in range(2):
        bound = Model(1 - seat, np.ascontiguousarray(model, np.float32), float(hands), trusted)
        solver = Solver(layout, dealer, seed, model=bound)
        if start is not None:
            solver.regret[:] = HEAD_START * start
            solver.average[:] = 1e-3 * start
        known = {"seat": seat, "deals": deals, "hands": hands, **(about or {})}
        if folder is not None:
            resume(solver, folder / f"seat-{seat}", known)
        while solver.chunks < chunks:
            solver.run(min(chunks, solver.chunks + SAVE_EVERY), workers=workers)
            if folder is not None:
                save(solver, folder / f"seat-{seat}", known)
            progress(seat * chunks + solver.chunks, 2 * chunks)
        mine = rows_of(layout, seat)
        out[mine] = solver.strategy()[mine]
    return out
