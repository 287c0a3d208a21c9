"""@calibrated:AGGRESSION,RATIONALITY: the bots of the profiling report (seed 001), both rates in percent.

Each decision weighs two wishes for the hand's total stake, in percent of the starting stack. The aggressive wish
follows from the calibration alone: aggression 0-50 stakes 0-25, 50-80 stakes 25-60, 80-100 stakes 60-100. The
rational wish follows from the chance to win: 0-30 stakes 0-10, 31-50 stakes 11-25, 51-69 stakes 26-65, 70-100
stakes 66-100. Stakes double from street to street up to the wish (an eighth, a quarter, half, all of it). A wish
folds when calling goes more than 10% beyond it, raises when the street's part of it allows the smallest raise (10%
off at most), else calls.

With the chance RATIONALITY the rational wish is heeded, else any legal action stands in for it. The two actions are
then merged in the proportion of the two rates: two raises or a raise and a check or call raise by the weighted
mean; raise and fold make a call (a bet, where there is nothing to fold to); call and fold are drawn by lot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.agents import numbers, plain_name
from pipeline.agents.equity import equities
from pipeline.agents.staking import Stakes, label_of_stake, stakes, start_stack
from pipeline.errors import PipelineError
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.rules import CALL, FOLD, RAISE

__all__ = ["Calibrated", "make", "rational_stake", "wished_stake"]

Array = npt.NDArray[Any]


def rational_stake(chance: Array) -> Array:
    """Percent of the stack to stake with a chance (percent) to win.

    >>> rational_stake(np.array([15.0, 50.0, 85.0])).tolist()
    [5.0, 25.0, 83.0]
    """
    return np.asarray(np.interp(chance, [0, 30, 31, 50, 51, 69, 70, 100], [0, 10, 11, 25, 26, 65, 66, 100]))


def wished_stake(aggression: float) -> float:
    """Percent of the stack that an aggression (percent) stakes.

    >>> wished_stake(50), wished_stake(65)
    (25.0, 42.5)
    """
    return float(np.interp(aggression, [0, 50, 80, 100], [0, 25, 60, 100]))


class Wish(NamedTuple):
    """An action for each row: FOLD, CALL or RAISE, and the amount beyond the call."""

    kind: Array
    beyond: Array


@kernel
def _merge(
    rows: Array, at: Stakes, bold: Wish, other: Wish, trust: float, weight: Array, nolimit: bool, out: Array
) -> None:
    """Add the merged action of two wishes to `out`, `weight` in all for each row; `trust` is the bold one's share."""
    labels = out.shape[1]
    for i in range(rows.shape[0]):
        row, first, second = rows[i], bold.kind[i], other.kind[i]
        amount = 0.0
        if first == RAISE:
            amount += trust * bold.beyond[i]
        if second == RAISE:
            amount += (1 - trust) * other.beyond[i]
        high, low, free = max(first, second), min(first, second), at.to_call[i] == 0
        if high == CALL and low == FOLD and not free:  # drawn by lot
            out[i, label_of_stake(row, first, amount, labels, nolimit)] += trust * weight[i]
            out[i, label_of_stake(row, second, amount, labels, nolimit)] += (1 - trust) * weight[i]
            continue
        enough = amount >= at.least[i] or high == low or free
        kind = CALL
        if high == RAISE and enough and (low != FOLD or free):
            kind = RAISE
        elif high == FOLD:
            kind = FOLD
        out[i, label_of_stake(row, kind, amount, labels, nolimit)] += weight[i]


@dataclass(frozen=True)
class Calibrated:
    """Plays at a given aggression and rationality."""

    name: str
    game: Game
    aggression: float
    rationality: float

    def probabilities(self, rows: Array) -> Array:
        return self.given(rows, equities(self.game, rows))

    def given(self, rows: Array, chances: Array) -> Array:
        """The probabilities where the chance to win of each row is known already."""
        at = stakes(self.game, rows)
        share = 0.5 ** (3.0 - rows["street"]) if self.game.rounds == 4 else np.ones(len(rows))
        stack = start_stack(self.game)
        bold = self._wish(rows, at, np.full(len(rows), wished_stake(self.aggression) / 100 * stack), share)
        sound = self._wish(rows, at, rational_stake(100 * chances) / 100 * stack, share)
        out = np.zeros((len(rows), len(self.game.labels)))
        heeded = self.rationality / 100
        self._merge(rows, at, bold, sound, np.full(len(rows), heeded), out)
        choices = 1 + (rows["legal"] & 1) + (rows["legal"] >> RAISE > 0)
        for kind in (FOLD, CALL, RAISE):
            can = (rows["legal"] >> kind > 0) if kind == RAISE else (rows["legal"] >> kind & 1 == 1)
            any_ = np.full(len(rows), kind), at.least
            self._merge(rows, at, bold, any_, (1 - heeded) * can / choices, out)
        return out

    def _wish(self, rows: Array, at: Stakes, total: Array, share: Array) -> tuple[Array, Array]:
        """The action that a wish for a total stake leads to: its kind and the amount beyond the call."""
        now = total * share - at.staked
        free = at.to_call == 0
        raises = (at.to_call + at.least <= 1.1 * now) & (rows["legal"] >> RAISE > 0)
        folds = ~free & (at.staked + at.to_call > 1.1 * total)
        kind = np.where(folds, FOLD, np.where(raises, RAISE, CALL))
        return kind, np.maximum(now - at.to_call, at.least)

    def _merge(
        self, rows: Array, at: Stakes, bold: tuple[Array, Array], other: tuple[Array, Array], weight: Array, out: Array
    ) -> None:
        """Add the merged action of two wishes to the probabilities, `weight` in all for each row."""
        total = self.aggression + self.rationality
        trust = self.aggression / total if total > 0 else 0.5
        _merge(rows, at, Wish(*bold), Wish(*other), trust, weight, self.game.nolimit, out)


def make(name: str, arguments: str, game: Game) -> Calibrated:
    """@calibrated:AGGRESSION,RATIONALITY in percent."""
    aggression, rationality = numbers(arguments, 2, "@calibrated:AGGRESSION,RATIONALITY")
    if not (0 <= aggression <= 100 and 0 <= rationality <= 100):
        raise PipelineError(f"@calibrated:{arguments}: aggression and rationality are percentages, 0 to 100")
    return Calibrated(plain_name(f"@{name}:{arguments}"), game, aggression, rationality)
