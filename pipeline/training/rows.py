"""A dataset's decisions as the examples of one model: read, divided into training and validation rows.

This module alone of all training reads a dataset (and so needs pyarrow); all others work on arrays. The rows of a
single street are read file by file into arrays made once, since a street of a large dataset would not fit into memory
twice. Where a pattern looks at hand strength and the dataset has stored it, it is read with the rows (14 bytes a row
and street more), so that only what is not stored is computed from the cards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, STREETS
from pipeline.dataset.load import Decisions, decision_pieces, load_decisions, select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.features.patterns import Pattern
from pipeline.features.reading import Needs, RatedRows
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training.tasks import Examples


def read_examples(
    data: Path,
    agents: Sequence[str],
    streets: Sequence[int],
    game: str | None = None,
    progress: Progress = no_progress,
    *,
    pattern: Pattern,
    files: Collection[str] | None = None,
) -> tuple[Examples, Examples]:
    """Read the training and the validation rows of some streets.

    Parameters: `agents` whose decisions, none for everyone's; `streets` their numbers; `game` the game's name, where
    the data holds several; `pattern` what will be read off the rows: if it looks at cards, rows of players whose cards
    nobody knows are left out; `files` of the dataset, all by default. Rows of a hand and agent follow one another.
    """
    chosen = (data, agents or None, [STREETS[street] for street in streets])
    needs = Needs.of(pattern.columns(streets))
    stored = read_manifest(data).options.strength and bool(needs.streets) and max(streets) > 0
    if len(streets) == 1:
        pieces: Iterable[Decisions] = decision_pieces(*chosen, game=game, strength=stored, files=files)
        size = select_rows(*chosen, game=game, files=files).size
        order: Any = slice(None)
    else:
        decisions = load_decisions(*chosen, game=game, strength=stored, files=files)
        pieces, size = [decisions], len(decisions)
        order = np.lexsort((decisions.k, decisions.line, decisions.file, decisions.agent))
    both = _Sides(size, needs.groups)
    for piece in pieces:
        both.add(piece, order, pattern.reads_cards)
        progress(both.filled, size)
    return both.examples()


class _Sides:
    """Arrays that training rows fill from the front and validation rows from behind."""

    def __init__(self, size: int, groups: bool) -> None:
        """Room for `size` rows; `groups` says whether strengths against groups of opponents are kept."""
        self.arrays: dict[str, Any] = {
            "rows": np.empty(size, OBSERVATION),
            "action": np.empty(size, np.uint8),
            "hand": np.empty(size, np.int32),
            "deal": np.empty(size, np.uint64),
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
        columns = {"rows": piece.rows[order], "action": piece.action[order], "deal": piece.deal[order]}
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
        return Examples(rows, arrays["action"], arrays["hand"], deal=arrays["deal"])
