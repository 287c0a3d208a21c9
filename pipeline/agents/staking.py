"""Stakes as shares of a stack, for agents whose rules were written that way, in limit games too.

A limit game sets no stack; the most a player can put in by the rules (24 big blinds in heads-up limit hold'em)
stands for it. Amounts become labels: in limit games any raise is `r`; in no-limit games a raise is classed by its
size beside the pot (see `game`), 90% of the stack or more is all-in, and the nearest legal class is taken, smaller
first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.game import Game
from pipeline.rules import CALL, CLASS_LIMITS, RAISE

__all__ = ["Stakes", "labels_of", "stakes", "start_stack"]

Array = npt.NDArray[Any]


class Stakes(NamedTuple):
    """What a decision is about, in chips."""

    staked: Array
    """own chips in the pot"""
    left: Array
    """own chips behind"""
    to_call: Array
    least: Array
    """the smallest amount beyond the call that a raise adds"""


def start_stack(game: Game) -> float:
    """The stack at the start of a hand, or the most that limit rules let a player put in."""
    if game.nolimit:
        return float(min(game.stacks))
    return float(game.big_blind + sum(n * size for n, size in zip(game.max_raises, game.raise_sizes, strict=True)))


def stakes(game: Game, rows: Array) -> Stakes:
    """The stakes of each row; own chips in the pot are an estimate with more than two players."""
    to_call = rows["to_call"].astype(np.float64)
    if game.nolimit:
        left = rows["stack"].astype(np.float64)
        return Stakes(start_stack(game) - left, left, to_call, np.maximum(game.big_blind, to_call))
    staked = np.maximum(rows["pot"] - to_call, 0.0) / rows["players"]
    return Stakes(staked, start_stack(game) - staked, to_call, np.array(game.raise_sizes, float)[rows["street"]])


def labels_of(game: Game, rows: Array, kind: Array, beyond: Array) -> Array:
    """The label of each action: `kind` 0 fold, 1 call, 2 raise by `beyond` chips more than the call.

    Folding when nothing is to be called is a check; a raise that no rule allows is a call.
    """
    legal = rows["legal"].astype(np.int64)
    chosen = np.where((kind == 0) & (legal & 1 == 1), 0, CALL)
    if not game.nolimit:
        return np.asarray(np.where((kind == 2) & (legal >> RAISE & 1 == 1), RAISE, chosen))
    after = np.maximum(rows["pot"] + rows["to_call"], 1)
    wanted = RAISE + np.searchsorted([part / whole for part, whole in CLASS_LIMITS], beyond / after, side="right")
    wanted = np.where(beyond + rows["to_call"] >= 0.9 * rows["stack"], len(game.labels) - 1, wanted)
    best, distance = chosen, np.full(len(rows), np.inf)
    for label in range(RAISE, len(game.labels)):
        away = np.where(label <= wanted, wanted - label, label - wanted + 0.5)
        better = (legal >> label & 1 == 1) & (away < distance) & (kind == 2)
        best, distance = np.where(better, label, best), np.where(better, away, distance)
    return np.asarray(best)
