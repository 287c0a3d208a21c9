"""Rows of a dataset for training: the examples of one model, parts of a large dataset, counts of the preflop rows.

This module alone of all training reads a dataset (and so needs pyarrow); all others work on arrays. The rows of a
single street are read file by file into arrays made once, since a street of a large dataset would not fit into memory
twice. Where a pattern looks at hand strength and the dataset has stored it, it is read with the rows (14 bytes a row
and street more), so that only what is not stored is computed from the cards.

`plan_parts` divides rows into parts by the manifest alone, so that they need never all be in memory. `count_preflop`
makes what comes from the preflop rows of all parts: the starting-hand chart, the share of rows with known cards, and
the games that were played.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, STREETS
from pipeline.dataset.load import Decisions, SelectedRows, select_rows
from pipeline.dataset.opening import RowRange
from pipeline.features.patterns import Pattern
from pipeline.features.reading import Needs, RatedRows
from pipeline.models.charts import Chart, count_chart
from pipeline.models.policy import HISTORY_GAMES
from pipeline.poker.game import Game
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.numeric import hash_name
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training.requests import Request
from pipeline.training.tasks import Examples

LEAST_PLAYERS = 20
"""players from which on inner rows are chosen by player; of fewer, one more player held out would be missed too much"""


def read_examples(
    selected: SelectedRows, streets: Sequence[int], pattern: Pattern, progress: Progress = no_progress
) -> tuple[Examples, Examples]:
    """Read the training and the validation rows among some of these streets.

    If the pattern looks at cards, rows of players whose cards nobody knows are left out. Rows of a hand and agent
    follow one another.
    """
    needs = Needs.of(pattern.columns(streets))
    stored = selected.options.strength and bool(needs.streets) and max(streets) > 0
    size = selected.size
    if len(streets) == 1:
        pieces: Iterable[Decisions] = (piece for _, piece in selected.pieces(strength=stored))
        order: Any = slice(None)
    else:
        decisions = selected.load(strength=stored)
        pieces = [decisions]
        order = np.lexsort((decisions.k, decisions.line, decisions.file, decisions.agent))
    both = _Sides(size, needs.groups, groups_by_player(selected))
    for piece in pieces:
        both.add(piece, order, pattern.reads_cards)
        progress(both.filled, size)
    return both.examples()


def groups_by_player(selected: SelectedRows) -> bool:
    """Return whether inner rows are chosen by player: where the dataset holds out players, unless they are few."""
    return selected.options.hold_out == "players" and len(selected.agents) >= LEAST_PLAYERS


class _Sides:
    """Arrays that training rows fill from the front and validation rows from behind."""

    def __init__(self, size: int, groups: bool, by_player: bool) -> None:
        """Room for `size` rows; `groups` says whether strengths against groups of opponents are kept."""
        self.by_player = by_player
        self.arrays: dict[str, Any] = {
            "rows": np.empty(size, OBSERVATION),
            "action": np.empty(size, np.uint8),
            "hand": np.empty(size, np.int32),
            "group": np.empty(size, np.uint64),
        }
        self.groups = groups
        self.low, self.high, self.size, self.hands = 0, size, size, 0

    @property
    def filled(self) -> int:
        """Return the number of rows so far."""
        return self.size - (self.high - self.low)

    def add(self, piece: Decisions, piece_order: Any, cards: bool) -> None:
        """Take the rows of a piece in an order; those without known cards are left out where `cards` are needed."""
        order = piece_order
        if cards and not piece.known.all():
            order = np.arange(len(piece))[piece_order]
            order = order[piece.known[order]]
        places = [place[order] for place in (piece.agent, piece.file, piece.line)]
        count = len(places[0])
        new = np.append(True, np.any([np.diff(place) != 0 for place in places], axis=0))[:count]
        columns = {"rows": piece.rows[order], "action": piece.action[order]}
        columns["group"] = _player_hashes(piece)[order] if self.by_player else piece.deal[order]
        columns["hand"] = np.cumsum(new, dtype=np.int32) + np.int32(self.hands)
        self.hands += int(new.sum())
        if piece.strength is not None:
            columns["strength"] = piece.strength[order]
            self.arrays.setdefault("strength", np.empty((self.size, piece.strength.shape[1]), STRENGTH))
        if piece.ochs is not None and self.groups:
            columns["ochs"] = piece.ochs[order]
            self.arrays.setdefault("ochs", np.empty((self.size, 8), np.uint8))
        validation = piece.validation[order]
        validation_count = int(validation.sum())
        low, high = self.low + count - validation_count, self.high - validation_count
        sides = (
            (np.flatnonzero(~validation), slice(self.low, low)),
            (np.flatnonzero(validation), slice(high, self.high)),
        )
        for name, values in columns.items():
            for taken, part in sides:  # `take` copies whole records, 40 times as fast as a mask, which goes by fields
                np.take(values, taken, axis=0, out=self.arrays[name][part], mode="clip")
        self.low, self.high = low, high

    def examples(self) -> tuple[Examples, Examples]:
        """Return both sides, with stored strengths beside the rows if there are any."""
        return self._examples(slice(0, self.low)), self._examples(slice(self.high, None))

    def _examples(self, part: slice) -> Examples:
        arrays = {name: array[part] for name, array in self.arrays.items()}
        rows = arrays["rows"]
        if "strength" in arrays:
            rows = RatedRows(rows, arrays["strength"], arrays.get("ochs"))
        return Examples(rows, arrays["action"], arrays["hand"], group=arrays["group"])


def _player_hashes(piece: Decisions) -> Any:
    """Return the hash of the player of each row."""
    return np.array([hash_name(name) for name in piece.agents], np.uint64)[piece.agent]


@dataclass(frozen=True)
class PartRows:
    """The rows of a dataset that make one part."""

    selected: SelectedRows
    streets: tuple[int, ...]
    pattern: Pattern
    labels: int
    total: int | None
    """rows of all parts, both sides; None for one that is alone"""

    def read(self) -> tuple[Examples, Examples]:
        """Read its training and its validation rows."""
        return read_examples(self.selected, self.streets, self.pattern)

    def sampled(self, examples: Examples, count: int) -> Examples:
        """Take this part's share of about `count` rows, evenly spread."""
        return examples.strided(max(1, (len(examples) if self.total is None else self.total) // count))


def plan_parts(request: Request, streets: Sequence[int], labels: int) -> list[PartRows]:
    """Divide the rows of some streets into parts: whole files of the dataset, in the order of its own parts."""
    assert request.game is not None
    names = [STREETS[street] for street in streets]
    data = request.data.resolve()
    selected = select_rows(data, request.agents or None, names, game=request.game)
    grouped: list[list[RowRange]] = []
    size = 0
    for part in selected.by_part().values():
        if not grouped or size >= request.config.part_rows:
            grouped.append([])
            size = 0
        grouped[-1] += part.ranges
        size += part.size
    total = selected.size if len(grouped) > 1 else None
    return [
        PartRows(
            selected._replace(ranges=sorted(ranges, key=lambda rows: STREETS.index(rows.file.street or ""))),
            tuple(streets),
            request.pattern,
            labels,
            total,
        )
        for ranges in grouped
    ]


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
    decisions = rows.selected.load("train")
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
