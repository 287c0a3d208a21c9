"""What a training takes from the preflop rows: the chart, whose cards are known, and which games were played.

In: a request. Out: `Openings`, which parts of the rows have each and which add up, so that never all rows are in
memory; on a cluster its workers read them. It is a room of its own because no model of a street needs it.
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
class Openings:
    """The training rows before the flop, added up."""

    rows: int = 0
    known: int = 0
    """rows whose cards are known"""
    counted: Chart | None = None
    players: tuple[int, int] | None = None
    """the fewest and the most"""
    deep: tuple[float, float] | None = None
    """the smallest and the largest effective stack in big blinds"""

    def __add__(self, other: Openings) -> Openings:
        return Openings(
            self.rows + other.rows,
            self.known + other.known,
            _together(self.counted, other.counted),
            _widest(self.players, other.players),
            _widest(self.deep, other.deep),
        )

    @property
    def chart(self) -> Chart | None:
        """The chart of all rows; None where the cards of some are not known."""
        return self.counted if self.rows and self.known == self.rows else None

    def range(self, game: Game) -> dict[str, Any]:
        """What games a bundle of hand histories may play: the players and stacks that its rows have."""
        if game.name not in HISTORY_GAMES or self.rows == 0:
            return {}
        stacks = None if self.deep is None else [float(np.floor(self.deep[0])), float(np.ceil(self.deep[1]))]
        return {"range": {"players": list(self.players or ()), "stacks_bb": stacks}}


def read_openings(request: Request, game: Game, cluster: Cluster | None = None) -> Openings:
    """The openings of all training rows of a request."""
    planned = plan_parts(request, (0,), len(game.labels))
    found = [_read(rows) for rows in planned] if cluster is None else cluster.map(_read, planned)
    return reduce(Openings.__add__, found, Openings())


def _read(rows: PartRows) -> Openings:
    """The openings of one part."""
    found = load_decisions(
        rows.data, rows.agents or None, [STREETS[0]], "train", game=rows.game, files=frozenset(rows.files)
    )
    if len(found) == 0:
        return Openings()
    seen, known = found.rows, int(found.known.sum())
    deep = seen["effective"][seen["effective"] > 0] / seen["big_blind"][seen["effective"] > 0]
    return Openings(
        len(found),
        known,
        count_chart(seen, found.action, found.game.labels) if known == len(found) else None,
        (int(seen["players"].min()), int(seen["players"].max())),
        (float(deep.min()), float(deep.max())) if len(deep) else None,
    )


def _widest(one: Any, other: Any) -> Any:
    """The range that holds two ranges, of which either may be missing."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _together(one: Chart | None, other: Chart | None) -> Chart | None:
    """A chart with the counts of both."""
    if one is None or other is None:
        return one or other
    words = np.union1d(one.words, other.words)
    counts = np.zeros((len(words), max(one.counts.shape[1], other.counts.shape[1]), one.counts.shape[2]))
    for chart in (one, other):
        counts[np.searchsorted(words, chart.words), : chart.counts.shape[1]] += chart.counts
    return Chart(words, counts, one.labels)
