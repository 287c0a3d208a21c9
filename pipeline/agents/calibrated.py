"""@calibrated:AGGRESSION,RATIONALITY: the bots of a student report on profiling, rates in percent.

Each decision weighs two wishes for the hand's total stake, in percent of the starting stack. The aggressive wish
follows from the calibration alone: aggression 0-50 stakes 0-25, 50-80 stakes 25-60, 80-100 stakes 60-100. The
rational wish follows from the chance to win: 0-30 stakes 0-10, 31-50 stakes 11-25, 51-69 stakes 26-65, 70-100
stakes 66-100. Stakes double from street to street up to the wish (an eighth, a quarter, half, all of it). A wish
folds when calling goes more than 10% beyond it, raises when the street's part of it allows the smallest raise (10%
off at most), else calls.

With the chance RATIONALITY the rational wish is heeded, else any legal action stands in for it. The two actions are
then merged in the proportion of the two rates: two raises or a raise and a check or call raise by the weighted
mean; raise and fold make a call (a bet, where there is nothing to fold to); call and fold are drawn by lot.

`stakes` and `label_of_stake` serve every agent whose rules were written in shares of a stack (@bearl too), in limit
games as well. A limit game sets no stack; the most a player can put in by the rules (24 big blinds in heads-up limit
hold'em) stands for it. Amounts become labels: in limit games any raise is `r`; in no-limit games a raise is classed by
its size relative to the pot (see `game`), 90% of the stack or more is all-in, and the nearest legal class is taken,
smaller first.

`fit_style` goes the other way: from decisions whose hole cards are known to the calibration under which they are most
likely. Likelihoods are smoothed: `SMOOTHING` of them is uniform over the legal actions, so that no single decision
rules a style out. The likelihood is searched on ever finer grids; how far `log_loss` is below `guess`, that of
drawing any legal action, says how much of the play the style explains: a player whose log-loss is hardly below
the guess has another style than any calibrated player.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.equity import equities
from pipeline.agents.names import parse_numbers, plain_name
from pipeline.agents.protocol import Agent
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL, CLASS_LIMITS, FOLD, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bit_table


class Stakes(NamedTuple):
    """Chips in front of and around the acting player at each row."""

    staked: Array
    """own chips in the pot"""
    behind: Array
    """own chips not in the pot"""
    to_call: Array
    least: Array
    """the smallest amount beyond the call that a raise adds"""


def start_stack(game: Game) -> float:
    """Return the stack at the start of a hand, or the most that limit rules let a player put in."""
    if game.nolimit:
        return float(min(game.stacks))
    return float(game.big_blind + sum(n * size for n, size in zip(game.max_raises, game.raise_sizes, strict=True)))


def stakes(game: Game, rows: Array) -> Stakes:
    """Return the stakes of each row; own chips in the pot are an estimate with more than two players."""
    to_call = rows["to_call"].astype(np.float64)
    if game.nolimit:
        behind = rows["stack"].astype(np.float64)
        return Stakes(start_stack(game) - behind, behind, to_call, np.maximum(game.big_blind, to_call))
    staked = np.maximum(rows["pot"] - to_call, 0.0) / rows["players"]
    return Stakes(staked, start_stack(game) - staked, to_call, np.array(game.raise_sizes, float)[rows["street"]])


@kernel(leaf=True)
def label_of_stake(row: Any, kind: int, beyond: float, labels: int, nolimit: bool) -> int:
    """Return the label of one action: `kind` FOLD, CALL or RAISE by `beyond` chips more than the call.

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
        # half a class more for larger ones, so that of two equally near the smaller is taken
        distance = float(wanted - label) if label <= wanted else label - wanted + 0.5
        if (legal >> label) & 1 == 1 and distance < nearest:
            nearest = distance
            chosen = label
    return chosen


STREET_SHARES = 0.5 ** (3.0 - np.arange(4))
"""the part of a wish that may be staked by each street of hold'em"""


def rational_stake(chance: Array) -> Array:
    """Return the percent of the stack to stake with a chance (percent) to win.

    >>> rational_stake(np.array([15.0, 50.0, 85.0])).tolist()
    [5.0, 25.0, 83.0]
    """
    return np.asarray(np.interp(chance, [0, 30, 31, 50, 51, 69, 70, 100], [0, 10, 11, 25, 26, 65, 66, 100]))


def wished_stake(aggression: float) -> float:
    """Return the percent of the stack that an aggression (percent) stakes.

    >>> wished_stake(50), wished_stake(65)
    (25.0, 42.5)
    """
    return float(np.interp(aggression, [0, 50, 80, 100], [0, 25, 60, 100]))


class Calibration(NamedTuple):
    """Stake, weight and obedience of a calibrated bot, in shares and chips."""

    aggressive_stake: float
    """the stake that its aggression wishes for"""
    aggressive_weight: float
    """the weight of that wish in a merged action"""
    rational_share: float
    """how often the rational wish is followed"""
    nolimit: bool


@kernel(leaf=True)
def _wish(chips: Stakes, i: int, can_raise: bool, total: float, share: float) -> tuple[int, float]:
    """Return the kind of action that a wish for a total stake leads to, and the amount beyond the call."""
    now = total * share - chips.staked[i]
    beyond = max(now - chips.to_call[i], chips.least[i])
    if chips.to_call[i] != 0 and chips.staked[i] + chips.to_call[i] > 1.1 * total:
        return FOLD, beyond
    if can_raise and chips.to_call[i] + chips.least[i] <= 1.1 * now:
        return RAISE, beyond
    return CALL, beyond


@kernel(leaf=True)
def _merge(
    row: Any,
    free: bool,
    least: float,
    aggressive: tuple[int, float],
    other: tuple[int, float],
    calibration: Calibration,
    labels: int,
) -> tuple[int, int]:
    """Merge two wishes into labels: one label twice, or those of the aggressive and the other to be drawn by lot."""
    amount = 0.0
    if aggressive[0] == RAISE:
        amount += calibration.aggressive_weight * aggressive[1]
    if other[0] == RAISE:
        amount += (1 - calibration.aggressive_weight) * other[1]
    high, low = max(aggressive[0], other[0]), min(aggressive[0], other[0])
    if high == CALL and low == FOLD and not free:
        return (
            label_of_stake(row, aggressive[0], amount, labels, calibration.nolimit),
            label_of_stake(row, other[0], amount, labels, calibration.nolimit),
        )
    enough = amount >= least or high == low or free
    kind = CALL
    if high == RAISE and enough and (low != FOLD or free):
        kind = RAISE
    elif high == FOLD:
        kind = FOLD
    label = label_of_stake(row, kind, amount, labels, calibration.nolimit)
    return label, label


@kernel
def _mixes(rows: Array, chips: Stakes, rational: Array, shares: Array, calibration: Calibration, out: Array) -> None:
    """Add up the probabilities of each row: the aggressive wish merged with the rational one, then with any action."""
    for i in range(rows.shape[0]):
        row, legal, share = rows[i], int(rows[i].legal), shares[rows[i].street]
        free, can_raise = chips.to_call[i] == 0, legal >> RAISE > 0
        aggressive = _wish(chips, i, can_raise, calibration.aggressive_stake, share)
        choices = 1 + (legal & 1) + (1 if can_raise else 0)
        # -1 stands for the rational wish; the other actions share what is left to chance, which is exact, not drawn
        for kind in range(-1, RAISE + 1):
            if kind < 0:
                other = _wish(chips, i, can_raise, rational[i], share)
                weight = calibration.rational_share
            else:
                other = kind, chips.least[i]
                possible = can_raise if kind == RAISE else legal >> kind & 1 == 1
                weight = (1 - calibration.rational_share) / choices if possible else 0.0
            first, second = _merge(row, free, chips.least[i], aggressive, other, calibration, out.shape[1])
            if first == second:
                out[i, first] += weight
            else:
                out[i, first] += calibration.aggressive_weight * weight
                out[i, second] += (1 - calibration.aggressive_weight) * weight


@dataclass(frozen=True)
class Calibrated:
    """Plays at a given aggression and rationality."""

    name: str
    game: Game
    aggression: float
    rationality: float

    @cached_property
    def _calibration(self) -> Calibration:
        total = self.aggression + self.rationality
        return Calibration(
            aggressive_stake=wished_stake(self.aggression) / 100 * start_stack(self.game),
            aggressive_weight=self.aggression / total if total > 0 else 0.5,
            rational_share=self.rationality / 100,
            nolimit=self.game.nolimit,
        )

    def probabilities(self, rows: Array) -> Array:
        return self.given(rows, equities(self.game, rows))

    def given(self, rows: Array, chances: Array) -> Array:
        """Return the probabilities where the chance to win of each row is known already."""
        out = np.zeros((len(rows), len(self.game.labels)))
        rational = rational_stake(100 * chances) / 100 * start_stack(self.game)
        shares = STREET_SHARES if self.game.rounds == 4 else np.ones(self.game.rounds)
        _mixes(rows, stakes(self.game, rows), rational, shares, self._calibration, out)
        return out


def make(name: str, arguments: str, game: Game) -> Agent:
    """Return the agent of @calibrated:AGGRESSION,RATIONALITY in percent."""
    aggression, rationality = parse_numbers(arguments, 2, "@calibrated:AGGRESSION,RATIONALITY")
    if not (0 <= aggression <= 100 and 0 <= rationality <= 100):
        raise PipelineError(f"@calibrated:{arguments}: aggression and rationality are percentages, 0 to 100")
    return Calibrated(plain_name(f"@{name}:{arguments}"), game, aggression, rationality)


SMOOTHING = 0.05
"""share of a mix that is uniform over the legal actions when a style is fitted"""
MAX_FIT_ROWS = 6_000
"""decisions that a style is fitted to, evenly spaced"""
MIN_FIT_ROWS = 100
"""decisions below which no style is fitted"""
GRIDS = ((10.0, 100.0), (5.0, 10.0), (2.5, 5.0))
"""step and reach, from the best point so far, of each pass of the search"""


@dataclass(frozen=True)
class Style:
    """The calibrated bot that a player's decisions are most like, in percent."""

    aggression: float
    rationality: float
    log_loss: float
    """nats per decision"""
    guess: float
    """the same of drawing any legal action"""
    rows: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


def fit_style(game: Game, rows: Array, action: Array) -> Style | None:
    """Fit the style behind decisions; None for fewer than `MIN_FIT_ROWS`.

    Parameters: `rows` (n,) of OBSERVATION whose own cards are known; `action` (n,) labels.
    """
    if len(rows) < MIN_FIT_ROWS:
        return None
    chosen = np.linspace(0, len(rows) - 1, min(len(rows), MAX_FIT_ROWS)).astype(np.int64)
    rows, action = rows[chosen], action[chosen].astype(np.int64)
    chances = equities(game, rows)
    legal = bit_table(rows["legal"], len(game.labels)).sum(axis=1)
    row_index = np.arange(len(rows))

    def loss(aggression: float, rationality: float) -> float:
        mix = Calibrated("", game, aggression, rationality).given(rows, chances)
        mix = (1 - SMOOTHING) * mix + SMOOTHING / legal[:, None]
        return float(-np.log(mix[row_index, action]).mean())

    losses: dict[tuple[float, float], float] = {}
    best = (50.0, 50.0)
    for step, reach in GRIDS:
        for aggression in _steps(best[0], step, reach):
            for rationality in _steps(best[1], step, reach):
                if (aggression, rationality) not in losses:
                    losses[aggression, rationality] = loss(aggression, rationality)
        best = min(losses, key=lambda pair: losses[pair])
    return Style(*best, losses[best], float(np.log(legal).mean()), len(rows))


def _steps(middle: float, step: float, reach: float) -> Array:
    """Return the percentages of a grid around the middle."""
    low, high = max(0.0, middle - reach), min(100.0, middle + reach)
    return np.arange(low, high + step / 2, step)
