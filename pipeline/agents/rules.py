"""Agents that never look at their cards: @fold, @call, @raise and @random.

@fold folds when there is a bet and checks otherwise; @call never folds nor raises; @raise raises whenever it may
(in no-limit games by the pot, or the size named as in `@raise:h`; the nearest smaller legal size, else larger);
@random takes every legal label with the same probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.agents import plain_name
from pipeline.errors import PipelineError
from pipeline.game import CALL, RAISE, Game
from pipeline.policy import masked

__all__ = ["Preference", "Rule", "make"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rule:
    """Plays a fixed mix of labels, whatever its cards: the weights of the legal ones, made to sum to 1."""

    name: str
    game: Game
    weights: tuple[float, ...]

    def probabilities(self, rows: Array) -> Array:
        return masked(np.broadcast_to(np.array(self.weights), (len(rows), len(self.weights))), rows["legal"])


@dataclass(frozen=True)
class Preference:
    """Takes the first legal label of a list that ends with call."""

    name: str
    game: Game
    order: tuple[int, ...]

    @cached_property
    def _table(self) -> Array:
        """The probabilities for each set of legal labels."""
        table = np.zeros((1 << len(self.game.labels), len(self.game.labels)))
        for legal in range(len(table)):
            table[legal, next((label for label in self.order if legal >> label & 1), CALL)] = 1.0
        return table

    def probabilities(self, rows: Array) -> Array:
        return np.asarray(self._table[rows["legal"]])


def make(name: str, arguments: str, game: Game) -> Rule | Preference:
    """The agent of one of the names above."""
    text = plain_name(f"@{name}:{arguments}")
    if name == "random":
        _refuse(name, arguments)
        return Rule(text, game, (1.0,) * len(game.labels))
    if name != "raise":
        _refuse(name, arguments)
        return Preference(text, game, (0,) if name == "fold" else ())
    sizes = game.labels[RAISE:]
    size = arguments or ("p" if game.nolimit else "r")
    if size not in sizes or len(size) != 1:
        raise PipelineError(f"@raise:{arguments}: the raises of {game.name} are {', '.join(sizes)}")
    first = game.labels.index(size)
    return Preference(text, game, (*range(first, RAISE - 1, -1), *range(first + 1, len(game.labels))))


def _refuse(name: str, arguments: str) -> None:
    if arguments:
        raise PipelineError(f"@{name} takes no arguments; leave out {arguments!r}")
