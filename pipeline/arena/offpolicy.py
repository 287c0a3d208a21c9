"""Estimate from logs what an agent would have won in a player's place: off-policy evaluation by importance sampling.

In: finished hands with all cards, an agent that is to be judged (the target), and one that stands for the player of the
logs (the behaviour: that player's own strategy, or a copy of it). Out: an `OffPolicyEstimate` of the target's winnings
from the same opponents. Nobody saw the player's cards, so a hand is evidence for every holding it could have had, not
only for the real one. With b(h) and t(h) the probabilities that behaviour and target take the player's actions while
holding h, and v(h) the hand's payoff with h, the hand counts

    sum over h of t(h) v(h)  /  sum over h of b(h)

(Bowling, Johanson, Burch and Szafron, 2008). Its expectation is what the target wins, if the behaviour is right and
gives every action of the target some probability. Agents that draw their actions themselves are refused: what is needed
are probabilities. A hand's importance weight, with 1 in v's place, has the mean 1: the
distance of the mean weight from 1 shows which of the target's hands the logs lack. The effective sample size,
(sum of weights)^2 / sum of weights^2, is how many of the target's own hands the logs are worth.

`mean` is the plain mean, without bias but wide; `normalised` divides by the mean weight, which is narrower and slightly
biased with few hands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, draws_actions
from pipeline.arena.adjusting import draw_holdings, holding_payoffs, reach_probabilities
from pipeline.arena.variance.records import HandRecords, has_all_cards
from pipeline.models.measures import STANDARD_ERRORS_95
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress

HOLDINGS_PER_HAND = 64
"""holdings of each hand: the real one and others at random; all of them in small games"""
HANDS_AT_ONCE = 2_000
"""hands whose holdings are asked for together"""


class OffPolicyEstimate(NamedTuple):
    """The target's winnings in the player's place, in thousandths of a big blind per hand."""

    hands: int
    mean: float
    ci95: float
    normalised: float
    """the mean divided by that of the weights"""
    normalised_ci95: float
    weight: float
    """the mean weight of a hand: 1 but for chance, if the behaviour is right and covers the target"""
    effective: float
    """the number of hands of the target's own play that are worth as much"""


def weigh_hands(
    records: HandRecords,
    number: int,
    target: Agent,
    behaviour: Agent,
    *,
    holdings_each: int = HOLDINGS_PER_HAND,
    first: int = 0,
) -> tuple[Array, Array]:
    """Return (hands,) each hand's weighted payoff in chips, and (hands,) its importance weight.

    Parameters: `number`, in the records' seats, of the player in whose place the target is judged; `first`, how many
    hands came before these, for the message that refuses one.
    """
    hands, possible = draw_holdings(records, number, holdings_each)
    behaviour_reach, target_reach = (
        reach_probabilities(behaviour, hands, possible),
        reach_probabilities(target, hands, possible),
    )
    payoffs = holding_payoffs(records.game, hands, possible)
    own_payoffs = np.take_along_axis(payoffs, hands.position[:, None, None], axis=2)[:, :, 0]
    behaviour_sum = behaviour_reach.sum(axis=1)
    if (behaviour_sum <= 0).any():
        hand = first + int(np.argmax(behaviour_sum <= 0)) + 1
        cards = "with its cards" if holdings_each == 1 else f"with any of {holdings_each} hands of cards tried for it"
        raise PipelineError(f"hand {hand} of the logs cannot have been played by {behaviour.name} {cards}")
    return (target_reach * own_payoffs).sum(axis=1) / behaviour_sum, target_reach.sum(axis=1) / behaviour_sum


def estimate_off_policy(
    records: HandRecords,
    number: int,
    target: Agent,
    behaviour: Agent,
    *,
    holdings_each: int = HOLDINGS_PER_HAND,
    progress: Progress = no_progress,
) -> OffPolicyEstimate:
    """Estimate the winnings of `target` in the place of player `number`, with 95 % intervals over deals.

    Parameters: `number`, the player's in the records' seats; `behaviour`, the strategy that played for it.
    """
    for agent in (target, behaviour):
        if draws_actions(agent):
            raise PipelineError(
                f"{agent.name} gives no probabilities: an estimate from logs needs those of both agents"
            )
    if len(records) < 2 or not has_all_cards(records):
        raise PipelineError("an estimate from logs needs at least two hands, with all players' cards")
    winnings, weights = np.empty(len(records)), np.empty(len(records))
    for first in range(0, len(records), HANDS_AT_ONCE):
        part = slice(first, first + HANDS_AT_ONCE)
        winnings[part], weights[part] = weigh_hands(
            records.take(part), number, target, behaviour, holdings_each=holdings_each, first=first
        )
        progress(min(first + HANDS_AT_ONCE, len(records)), len(records))
    winnings *= 1000.0 / records.game.big_blind
    # hands of one deal share their luck: deals are the independent samples
    _, deal = np.unique(records.deals, return_inverse=True)
    deal_hands = np.bincount(deal).astype(float)
    mean, weight = float(winnings.mean()), float(weights.mean())
    ratio = mean / weight if weight > 0 else 0.0
    return OffPolicyEstimate(
        len(records),
        mean,
        _half_width(np.bincount(deal, winnings) - mean * deal_hands, deal_hands),
        ratio,
        _half_width(np.bincount(deal, winnings - ratio * weights), weight * deal_hands) if weight > 0 else float("inf"),
        weight,
        float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300)),
    )


def _half_width(residuals: Array, sizes: Array) -> float:
    """Return half the 95 % interval of a mean or ratio, from the residuals of deals and their denominators."""
    return float(STANDARD_ERRORS_95 * np.sqrt((residuals**2).sum()) / sizes.sum())
