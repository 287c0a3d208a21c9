"""Agents that never look at their cards: @fold, @call, @raise, @random and @chump.

@fold folds when there is a bet and checks otherwise; @call never folds nor raises; @raise raises whenever it may
(in no-limit games by the pot, or the size named as in `@raise:h`; the nearest smaller legal size, else larger);
@random takes every legal label with the same probability.

A chump plays one mix of fold, call and raise whatever its cards, like the weak entrants of total-bankroll tournaments
that it pays to exploit. `@chump:station` calls nearly everything, `@chump:rock` folds nearly everything,
`@chump:maniac` raises, `@chump:gambler` calls and raises without folding, `@chump:20,50,30` is any other mix in
percent. In no-limit games the raise's share is split evenly over the legal sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.agents.names import parse_numbers, plain_name
from pipeline.models.policy import masked
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest


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
    """Return the table that takes the first legal label of `order`, else calls."""
    table = np.zeros((1 << len(game.labels), len(game.labels)))
    for legal in range(len(table)):
        table[legal, next((label for label in order if legal >> label & 1), CALL)] = 1.0
    return table


def mix_of(game: Game, weights: Sequence[float]) -> Array:
    """Return the table that takes legal labels in proportion to `weights`; calls where all of them are 0."""
    sets = np.arange(1 << len(game.labels))
    return masked(np.tile(np.array(weights, np.float64), (len(sets), 1)), sets)


CHUMP_STYLES = {
    "station": (3.0, 92.0, 5.0),
    "rock": (75.0, 22.0, 3.0),
    "maniac": (5.0, 15.0, 80.0),
    "gambler": (0.0, 50.0, 50.0),
}
"""by style: percent of fold, call and raise"""


def chump_mix(arguments: str, game: Game) -> Array:
    """Return the table of a chump's style, or of three percentages."""
    if not arguments or arguments[0].isalpha():
        style = arguments or "station"
        if style not in CHUMP_STYLES:
            raise PipelineError(f"no style @chump:{style}{nearest(style, CHUMP_STYLES)}")
        shares = CHUMP_STYLES[style]
    else:
        fold, call, raise_ = parse_numbers(arguments, 3, "@chump:FOLD,CALL,RAISE in percent")
        shares = fold, call, raise_
    if min(shares) < 0 or sum(shares) <= 0:
        raise PipelineError(f"@chump:{arguments}: shares must not be negative nor all 0")
    fold, call, raise_ = shares
    table = mix_of(game, [fold, call, *[raise_] * (len(game.labels) - RAISE)])
    for legal, row in enumerate(table):
        raises = (legal >> RAISE).bit_count()
        if raises > 1:
            row[RAISE:] /= raises
            row /= row.sum()
    return table


def make(name: str, arguments: str, game: Game) -> Rule:
    """Return the agent of one of the names above."""
    text = plain_name(f"@{name}:{arguments}")
    if name == "chump":
        return Rule(text, game, chump_mix(arguments, game))
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
