"""Stakes as shares of a stack, for agents whose rules were written that way, in limit games too.

A limit game sets no stack; the most a player can put in by the rules (24 big blinds in heads-up limit hold'em)
stands for it. Amounts become labels: in limit games any raise is `r`; in no-limit games a raise is classed by its
size beside the pot (see `game`), 90% of the stack or more is all-in, and the nearest legal class is taken, smaller
first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.game import Game
from pipeline.poker.rules import CALL, CLASS_LIMITS, FOLD, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


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


@kernel(leaf=True)
def label_of_stake(row: Any, kind: int, beyond: float, labels: int, nolimit: bool) -> int:
    """The label of one action: `kind` FOLD, CALL or RAISE by `beyond` chips more than the call.

    Folding when nothing is to be called is a check; a raise that no rule allows is a call; a no-limit raise goes to
    the nearest legal class, smaller ones first.
    """
    legal = np.int64(row.legal)
    if kind == FOLD and legal & 1 == 1:
        return FOLD
    if kind != RAISE:
        return CALL
    if not nolimit:
        return RAISE if (legal >> RAISE) & 1 == 1 else CALL
    share = beyond / max(row.pot + row.to_call, 1)
    wanted = RAISE
    for numerator, denominator in CLASS_LIMITS:
        wanted += share >= numerator / denominator
    if beyond + row.to_call >= 0.9 * row.stack:
        wanted = labels - 1
    chosen = CALL
    nearest = np.inf
    for label in range(RAISE, labels):
        distance = float(wanted - label) if label <= wanted else label - wanted + 0.5
        if (legal >> label) & 1 == 1 and distance < nearest:
            nearest = distance
            chosen = label
    return chosen
