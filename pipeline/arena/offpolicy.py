"""What an agent would have won in another's place, estimated from logs: off-policy evaluation by importance sampling.

In: finished hands with all cards, an agent that is to be judged (the target), and one that stands for whoever played
them (the behaviour: that player's own strategy, or a copy of it). Out: an `Estimate` of what the target would have won
from the same opponents. Nobody saw the player's cards, so that a hand tells as much of every holding it could have had
as of the real one. With b(h) and t(h) the chances that behaviour and target would have taken the player's actions while
holding h, and v(h) what the hand pays with h, the hand counts

    sum over h of t(h) v(h)  /  sum over h of b(h)

(Bowling, Johanson, Burch and Szafron, 2008). Its mean is what the target wins, if the behaviour is right and does now
and then what the target does. A hand's weight, with 1 in v's place, has the mean 1: how far the mean weight is from 1
shows what was missed. The effective sample size, (sum of weights)^2 / sum of weights^2, is how many of the target's own
hands the logs are worth.

`mean` is the plain mean, without bias but wide; `normalised` divides by the mean weight, which is narrower and slightly
biased with few hands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.arena.adjusting import chances, holdings, payoffs
from pipeline.arena.variance.logs import complete
from pipeline.arena.variance.records import HandRecords
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress

HOLDINGS = 64
"""holdings of each hand: the real one and others at random; all of them in small games"""
AT_ONCE = 2_000
"""hands whose holdings are asked for together"""


class Estimate(NamedTuple):
    """What the target would have won, in thousandths of a big blind per hand."""

    hands: int
    mean: float
    ci95: float
    normalised: float
    """the mean divided by that of the weights"""
    normalised_ci95: float
    weight: float
    """the mean weight of a hand: 1 but for chance, if the behaviour is right and covers the target"""
    effective: float
    """so many hands of the target's own play are worth as much"""


def counts_of(
    records: HandRecords, number: int, target: Agent, behaviour: Agent, *, holdings_each: int = HOLDINGS
) -> tuple[Array, Array]:
    """(hands,) what each hand counts in chips, and (hands,) its weight.

    Parameters: `number`, in the records' seats, of the player in whose place the target is judged.
    """
    hands, held = holdings(records, number, holdings_each)
    played, wanted = chances(behaviour, hands, held), chances(target, hands, held)
    paid = payoffs(records.game, hands, held)
    mine = np.take_along_axis(paid, hands.position[:, None, None], axis=2)[:, :, 0]
    base = played.sum(axis=1)
    if (base <= 0).any():
        raise PipelineError(
            f"hand {int(np.argmax(base <= 0))} cannot have been played by {behaviour.name}, whatever cards it held"
        )
    return (wanted * mine).sum(axis=1) / base, wanted.sum(axis=1) / base


def estimate(
    records: HandRecords,
    number: int,
    target: Agent,
    behaviour: Agent,
    *,
    holdings_each: int = HOLDINGS,
    progress: Progress = no_progress,
) -> Estimate:
    """What `target` would have won in the place of player `number`, with 95 % intervals over deals."""
    if len(records) < 2 or not complete(records):
        raise PipelineError("an estimate from logs needs at least two hands, with everybody's cards")
    won, weights = np.empty(len(records)), np.empty(len(records))
    for first in range(0, len(records), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        won[part], weights[part] = counts_of(records.take(part), number, target, behaviour, holdings_each=holdings_each)
        progress(min(first + AT_ONCE, len(records)), len(records))
    won *= 1000.0 / records.game.big_blind
    _, deal = np.unique(records.deals, return_inverse=True)
    each = np.bincount(deal).astype(float)
    mean, weight = float(won.mean()), float(weights.mean())
    ratio = mean / weight if weight > 0 else 0.0
    return Estimate(
        len(records),
        mean,
        _half_width(np.bincount(deal, won) - mean * each, each),
        ratio,
        _half_width(np.bincount(deal, won - ratio * weights), weight * each) if weight > 0 else float("inf"),
        weight,
        float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300)),
    )


def _half_width(residuals: Array, sizes: Array) -> float:
    """Half the 95 % interval of a mean or ratio, from the residuals of deals and what these count."""
    return float(1.96 * np.sqrt((residuals**2).sum()) / sizes.sum())
