"""A dataset's decisions as the examples of one model: read, divided into training and validation rows.

It is a room of its own because it alone of all training reads a dataset (and so needs pyarrow); everything behind it
works on arrays. The rows of a single street are read file by file into arrays made once, since a street of a large
dataset would not fit into memory twice. Where a pattern looks at hand strength and the dataset has stored it, it is
read with the rows (14 bytes a row and street more), so that only what is not stored is computed from the cards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, STREETS
from pipeline.dataset.load import Decisions, decision_pieces, load_decisions, wanted_files
from pipeline.dataset.manifest import read_manifest
from pipeline.features.patterns import Pattern
from pipeline.features.rated import RatedRows
from pipeline.features.reading import Needs
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
    """The training and the validation rows of some streets.

    Parameters: `agents` whose decisions, none for everyone's; `streets` their numbers; `game` the game's name, where
    the data holds several; `pattern` what will be read off the rows: if it looks at cards, rows of players whose cards
    nobody knows are left out; `files` of the dataset, all by default. Rows of a hand and agent follow one another.
    """
    chosen = (data, agents or None, [STREETS[street] for street in streets])
    needs = Needs.of(pattern.columns(streets))
    stored = read_manifest(data).options.strength and bool(needs.streets) and max(streets) > 0
    if len(streets) == 1:
        pieces: Iterable[Decisions] = decision_pieces(*chosen, game=game, strength=stored, files=files)
        size = sum(rows for path, rows in wanted_files(*chosen, game=game) if files is None or path in files)
        order: Any = slice(None)
    else:
        found = load_decisions(*chosen, game=game, strength=stored, files=files)
        pieces, size = [found], len(found)
        order = np.lexsort((found.k, found.line, found.file, found.agent))
    both = _Sides(size, needs.groups)
    for piece in pieces:
        both.add(piece, order, pattern.reads_cards)
        progress(both.filled, size)
    return both.examples()


class _Sides:
    """Training rows fill the arrays from the front, validation rows from behind."""

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
        """Rows that are there."""
        return self.size - (self.high - self.low)

    def add(self, piece: Decisions, every: Any, cards: bool) -> None:
        """Take the rows of a piece in an order; those without known cards are left out where `cards` are needed."""
        order = every
        if cards and not piece.known.all():
            order = np.arange(len(piece))[every]
            order = order[piece.known[order]]
        places = [place[order] for place in (piece.agent, piece.file, piece.line)]
        count = len(places[0])
        new = np.append(True, np.any([np.diff(place) != 0 for place in places], axis=0))[:count]
        found = {"rows": piece.rows[order], "action": piece.action[order], "deal": piece.deal[order]}
        found["hand"] = np.cumsum(new, dtype=np.int32) + np.int32(self.hands)
        self.hands += int(new.sum())
        if piece.strength is not None:
            found["strength"] = piece.strength[order]
            self.arrays.setdefault("strength", np.empty((self.size, piece.strength.shape[1]), STRENGTH))
        if piece.ochs is not None and self.groups:
            found["ochs"] = piece.ochs[order]
            self.arrays.setdefault("ochs", np.empty((self.size, 8), np.uint8))
        validation = piece.validation[order]
        held = int(validation.sum())
        low, high = self.low + count - held, self.high - held
        sides = (
            (np.flatnonzero(~validation), slice(self.low, low)),
            (np.flatnonzero(validation), slice(high, self.high)),
        )
        for name, values in found.items():
            for taken, part in sides:  # `take` copies whole records, 40 times as fast as a mask, which goes by fields
                np.take(values, taken, axis=0, out=self.arrays[name][part], mode="clip")
        self.low, self.high = low, high

    def examples(self) -> tuple[Examples, Examples]:
        """Both sides, with stored strengths beside the rows if there are any."""
        return self._examples(slice(0, self.low)), self._examples(slice(self.high, None))

    def _examples(self, part: slice) -> Examples:
        found = {name: array[part] for name, array in self.arrays.items()}
        rows = found["rows"]
        if "strength" in found:
            rows = RatedRows(rows, found["strength"], found.get("ochs"))
        return Examples(rows, found["action"], found["hand"], deal=found["deal"])
