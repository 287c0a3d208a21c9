"""Sequential probability ratio tests over hands: the oracle of the number of hands to tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.evaluation.hands_to_tell import EVIDENCE, DealtHands
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.runtime.array_types import Array, Bools, Floats, Ints


def evidence_by_hand(source: Floats, copy: Floats, taken: Array, dealt: DealtHands) -> Floats:
    """Return ln of how much likelier each hand's actions are under the source's mixes than under the copy's."""
    rows = np.arange(len(taken))
    likelihoods = (np.maximum(mixes[rows, taken], LEAST_PROBABILITY) for mixes in (source, copy))
    return dealt.sums(np.subtract(*map(np.log, likelihoods)))


class SequentialTests(NamedTuple):
    """Sequential tests that were run until they stopped."""

    hands: Ints
    """(tests,) after how many hands each stopped"""
    right: Bools
    """(tests,) whether it named the source"""


def run_sequential_tests(evidence: Floats, boundary: float = EVIDENCE) -> SequentialTests:
    """Run sequential probability ratio tests one after the other over the hands' evidence for the source.

    A test starts at the hand after that at which the last one stopped; the last one, which does not stop, is left out.
    """
    hands, right = [], []
    total, begun = 0.0, 0
    for number, nats in enumerate(evidence.tolist(), start=1):
        total += nats
        if abs(total) >= boundary:
            hands.append(number - begun)
            right.append(total > 0)
            total, begun = 0.0, number
    return SequentialTests(np.array(hands, np.int64), np.array(right, bool))
