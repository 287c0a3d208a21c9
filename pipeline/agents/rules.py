"""Agents that never look at their cards: @fold, @call, @raise and @random.

@fold folds when there is a bet and checks otherwise; @call never folds nor raises; @raise raises whenever it may
(in no-limit games by the pot, or the size named as in `@raise:h`; the nearest smaller legal size, else larger);
@random takes every legal label with the same probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.agents.names import plain_name
from pipeline.models.policy import masked
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError


@dataclass(frozen=True)
class Rule:
    """Plays by what is legal and nothing else."""

    name: str
    game: Game
    table: Array = field(repr=False)
    """(sets of legal labels, labels): the probabilities for each set"""

    def probabilities(self, rows: Array) -> Array:
        return np.asarray(self.table[rows["legal"]])


def first_of(game: Game, order: Sequence[int]) -> Array:
    """The table that takes the first legal label of `order`, else calls."""
    table = np.zeros((1 << len(game.labels), len(game.labels)))
    for legal in range(len(table)):
        table[legal, next((label for label in order if legal >> label & 1), CALL)] = 1.0
    return table


def mix_of(game: Game, weights: Sequence[float]) -> Array:
    """The table that takes legal labels in proportion to `weights`; calls where all of them are 0."""
    sets = np.arange(1 << len(game.labels))
    return masked(np.tile(np.array(weights, np.float64), (len(sets), 1)), sets)


def make(name: str, arguments: str, game: Game) -> Rule:
    """The agent of one of the names above."""
    text = plain_name(f"@{name}:{arguments}")
    if name != "raise" and arguments:
        raise PipelineError(f"@{name} takes no arguments; leave out {arguments!r}")
    if name == "random":
        return Rule(text, game, mix_of(game, [1.0] * len(game.labels)))
    if name != "raise":
        return Rule(text, game, first_of(game, [0] if name == "fold" else []))
    sizes = game.labels[RAISE:]
    size = arguments or ("p" if game.nolimit else "r")
    if len(size) != 1 or size not in sizes:
        raise PipelineError(f"@raise:{arguments}: the raises of {game.name} are {', '.join(sizes)}")
    wanted = game.labels.index(size)
    return Rule(text, game, first_of(game, [*range(wanted, RAISE - 1, -1), *range(wanted + 1, len(game.labels))]))
