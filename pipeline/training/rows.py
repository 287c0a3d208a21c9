"""A dataset's decisions as the examples of one model: read, divided into training and validation rows.

It is a room of its own because it alone of all training reads a dataset (and so needs pyarrow); everything behind it
works on arrays. The rows of a single street are read file by file into arrays made once, since a street of a large
dataset would not fit into memory twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import dataset
from pipeline.decisions import OBSERVATION, STREETS
from pipeline.files import Progress, quiet
from pipeline.training.tasks import Examples

__all__ = ["read_examples"]


def read_examples(
    data: Path,
    agents: Sequence[str],
    streets: Sequence[int],
    game: str | None = None,
    progress: Progress = quiet,
    *,
    cards: bool = False,
) -> tuple[Examples, Examples]:
    """The training and the validation rows of some streets.

    Parameters: `agents` whose decisions, none for everyone's; `streets` their numbers; `game` the game's name, where
    the data holds several; `cards` to leave out rows of players whose cards nobody knows. Rows of a hand and agent
    follow one another.
    """
    chosen = (data, agents or None, [STREETS[street] for street in streets])
    if len(streets) == 1:
        pieces = dataset.pieces(*chosen, game=game)
        return _divided(dataset.count(*chosen, game=game), pieces, slice(None), progress, cards)
    found = dataset.load(*chosen, game=game)
    order = np.lexsort((found.k, found.line, found.file, found.agent))
    return _divided(len(found), [found], order, progress, cards)


def _divided(
    size: int, pieces: Iterable[dataset.Decisions], every: Any, progress: Progress, cards: bool
) -> tuple[Examples, Examples]:
    """Both sides of some decisions with a number per hand; validation rows fill the arrays from behind."""
    rows, taken, hand = np.empty(size, OBSERVATION), np.empty(size, np.uint8), np.empty(size, np.int32)
    low, high, hands = 0, size, 0
    for piece in pieces:
        order = every
        if cards and not piece.known.all():
            order = np.arange(len(piece))[every]
            order = order[piece.known[order]]
        places = [place[order] for place in (piece.agent, piece.file, piece.line)]
        count = len(places[0])
        new = np.append(True, np.any([np.diff(place) != 0 for place in places], axis=0))[:count]
        number = np.cumsum(new, dtype=np.int32) + np.int32(hands)
        hands += int(new.sum())
        validation = piece.validation[order]
        held = int(validation.sum())
        for kept, part in (
            (~validation, slice(low, low + count - held)),
            (validation, slice(high - held, high)),
        ):
            rows[part], taken[part], hand[part] = piece.rows[order][kept], piece.action[order][kept], number[kept]
        low, high = low + count - held, high - held
        progress(size - (high - low), size)
    return Examples(rows[:low], taken[:low], hand[:low]), Examples(rows[high:], taken[high:], hand[high:])
