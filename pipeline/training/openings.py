"""Counts over the preflop rows: the starting-hand chart, how many rows have known cards, and which games were played.

In: a request. Out: `PreflopCounts`. Each part of the rows has its own and they add up, so that never all rows are in
memory; on a cluster its workers read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions
from pipeline.models.charts import Chart, count_chart
from pipeline.models.policy import HISTORY_GAMES
from pipeline.poker.game import Game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.training.parts import PartRows
from pipeline.training.requests import Request
from pipeline.training.sharded import plan_parts


@dataclass(frozen=True)
class PreflopCounts:
    """Counts over the training rows before the flop; those of several parts add up."""

    rows: int = 0
    known: int = 0
    """rows whose cards are known"""
    counted: Chart | None = None
    players: tuple[int, int] | None = None
    """the fewest and the most"""
    deep: tuple[float, float] | None = None
    """the smallest and the largest effective stack in big blinds"""

    def __add__(self, other: PreflopCounts) -> PreflopCounts:
        return PreflopCounts(
            self.rows + other.rows,
            self.known + other.known,
            _add_charts(self.counted, other.counted),
            _hull(self.players, other.players),
            _hull(self.deep, other.deep),
        )

    @property
    def chart(self) -> Chart | None:
        """Return the chart of all rows; None if the cards of some are not known."""
        return self.counted if self.rows and self.known == self.rows else None

    def range(self, game: Game) -> dict[str, Any]:
        """Return the games that a bundle of hand histories may play: the players and stacks that its rows have."""
        if game.name not in HISTORY_GAMES or self.rows == 0:
            return {}
        stacks = None if self.deep is None else [float(np.floor(self.deep[0])), float(np.ceil(self.deep[1]))]
        return {"range": {"players": list(self.players or ()), "stacks_bb": stacks}}


def count_preflop(request: Request, game: Game, cluster: Cluster | None = None) -> PreflopCounts:
    """Count all preflop training rows of a request."""
    planned = plan_parts(request, (0,), len(game.labels))
    counts = [_count_part(rows) for rows in planned] if cluster is None else cluster.map(_count_part, planned)
    return reduce(PreflopCounts.__add__, counts, PreflopCounts())


def _count_part(rows: PartRows) -> PreflopCounts:
    """Count the preflop rows of one part."""
    decisions = load_decisions(
        rows.data, rows.agents or None, [STREETS[0]], "train", game=rows.game, files=frozenset(rows.files)
    )
    if len(decisions) == 0:
        return PreflopCounts()
    seen, known_rows = decisions.rows, int(decisions.known.sum())
    deep = seen["effective"][seen["effective"] > 0] / seen["big_blind"][seen["effective"] > 0]
    return PreflopCounts(
        len(decisions),
        known_rows,
        count_chart(seen, decisions.action, decisions.game.labels) if known_rows == len(decisions) else None,
        (int(seen["players"].min()), int(seen["players"].max())),
        (float(deep.min()), float(deep.max())) if len(deep) else None,
    )


def _hull(first: Any, second: Any) -> Any:
    """Return the smallest range around two ranges, of which either may be missing."""
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])


def _add_charts(first: Chart | None, second: Chart | None) -> Chart | None:
    """Add the counts of two charts."""
    if first is None or second is None:
        return first or second
    words = np.union1d(first.words, second.words)
    counts = np.zeros((len(words), max(first.counts.shape[1], second.counts.shape[1]), first.counts.shape[2]))
    for chart in (first, second):
        counts[np.searchsorted(words, chart.words), : chart.counts.shape[1]] += chart.counts
    return Chart(words, counts, first.labels)
