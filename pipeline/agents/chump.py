"""@chump: opponents that give their chips away, each in its own manner, for total-bankroll tournaments.

A chump plays one mix of fold, call and raise whatever its cards, like the weak entrants that total bankroll rewards
exploiting. `@chump:station` calls nearly everything, `@chump:rock` folds nearly everything, `@chump:maniac` raises,
`@chump:gambler` calls and raises without folding, `@chump:20,50,30` is any other mix in percent. In no-limit games
the raise's share is split evenly over the legal sizes.
"""

from __future__ import annotations

from pipeline.agents.names import numbers, plain_name
from pipeline.agents.rules import Rule, mix_of
from pipeline.poker.game import Game
from pipeline.poker.rules import RAISE
from pipeline.runtime.errors import PipelineError, nearest

STYLES = {
    "station": (3.0, 92.0, 5.0),
    "rock": (75.0, 22.0, 3.0),
    "maniac": (5.0, 15.0, 80.0),
    "gambler": (0.0, 50.0, 50.0),
}
"""Percent of fold, call and raise."""


def make(name: str, arguments: str, game: Game) -> Rule:
    """The chump of a style or of three percentages."""
    if not arguments or arguments[0].isalpha():
        style = arguments or "station"
        if style not in STYLES:
            raise PipelineError(f"no style @chump:{style}{nearest(style, STYLES)}")
        shares = STYLES[style]
    else:
        fold, call, raise_ = numbers(arguments, 3, "@chump:FOLD,CALL,RAISE in percent")
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
    return Rule(plain_name(f"@{name}:{arguments}"), game, table)
