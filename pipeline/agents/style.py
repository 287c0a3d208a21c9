"""The style of a player: the aggression and rationality of the calibrated player that is most like it.

In: rows whose own cards are known, and what was done there. Out: the `@calibrated:AGGRESSION,RATIONALITY` under
which the decisions are most likely, in percent (see `pipeline.agents.calibrated`; the two rates are those of the
profiling report that the calibrated players come from). A share of each decision, `SLIP`, is put down to chance, so
that no single decision rules a style out. The likelihood is searched on ever finer grids; `log_loss` beside `guess`,
that of drawing any legal action, says how much of the play the style explains: a player whose log-loss is hardly below
the guess has another style than any calibrated player.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.agents.calibrated import Calibrated
from pipeline.agents.equity import equities
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.numeric import bit_table

SLIP = 0.05
"""the share of decisions that are any legal action"""
MOST_ROWS = 6_000
"""decisions that are looked at, evenly spaced"""
FEWEST_ROWS = 100
GRIDS = ((10.0, 100.0), (5.0, 10.0), (2.5, 5.0))
"""steps of the search, and how far from the best so far each goes"""


@dataclass(frozen=True)
class Style:
    """What a player's decisions are most like, in percent."""

    aggression: float
    rationality: float
    log_loss: float
    """nats per decision"""
    guess: float
    """the same of drawing any legal action"""
    rows: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


def fit_style(game: Game, rows: Array, action: Array) -> Style | None:
    """Fit the style behind decisions; None for fewer than `FEWEST_ROWS`.

    Parameters: `rows` (n,) of OBSERVATION whose own cards are known; `action` (n,) labels.
    """
    if len(rows) < FEWEST_ROWS:
        return None
    chosen = np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(np.int64)
    rows, action = rows[chosen], action[chosen].astype(np.int64)
    chances = equities(game, rows)
    legal = bit_table(rows["legal"], len(game.labels)).sum(axis=1)
    row_index = np.arange(len(rows))

    def loss(aggression: float, rationality: float) -> float:
        mix = Calibrated("", game, aggression, rationality).given(rows, chances)
        mix = (1 - SLIP) * mix + SLIP / legal[:, None]
        return float(-np.log(mix[row_index, action]).mean())

    tried: dict[tuple[float, float], float] = {}
    best = (50.0, 50.0)
    for step, reach in GRIDS:
        for aggression in _steps(best[0], step, reach):
            for rationality in _steps(best[1], step, reach):
                if (aggression, rationality) not in tried:
                    tried[aggression, rationality] = loss(aggression, rationality)
        best = min(tried, key=lambda pair: tried[pair])
    return Style(*best, tried[best], float(np.log(legal).mean()), len(rows))


def _steps(middle: float, step: float, reach: float) -> Array:
    """Percentages around the middle."""
    low, high = max(0.0, middle - reach), min(100.0, middle + reach)
    return np.arange(low, high + step / 2, step)
