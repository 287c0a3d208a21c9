"""Made-up decisions of a known agent, for the tests of scores, inspections and the page."""

from __future__ import annotations

from functools import cache

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, betting_code
from pipeline.evaluation.samples import DecisionSample
from pipeline.poker.cards import start_class
from pipeline.poker.game import find_game

CLASSES = np.array([[start_class(a, b) if a != b else 0 for b in range(52)] for a in range(52)], dtype=np.uint8)


class Known:
    """Plays probabilities that lie beside the rows, bent towards uniform by `bend`."""

    def __init__(self, truth: np.ndarray, bend: float = 0.0) -> None:
        self.truth, self.bend = truth, bend

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        return (1 - self.bend) * self.truth + self.bend / self.truth.shape[1]


@cache
def made_up(rows: int = 6000, seed: int = 0) -> DecisionSample:
    """Preflop and flop decisions of an agent that mixes by starting class and betting; two rows a deal."""
    random = np.random.default_rng(seed)
    found = np.zeros(rows, dtype=OBSERVATION)
    cards = np.argsort(random.random((rows, 52)), axis=1)[:, :5].astype(np.uint8)
    flop = np.arange(rows) % 3 == 0
    found["street"] = flop
    found["players"] = 2
    found["position"] = np.arange(rows) % 2
    found["hole"] = cards[:, :2]
    found["board"] = 255
    found["board"][flop, :3] = cards[flop, 2:]
    found["start"] = CLASSES[cards[:, 0], cards[:, 1]]
    found["high"], found["low"] = cards[:, :2].max(axis=1) >> 2, cards[:, :2].min(axis=1) >> 2
    found["name"] = np.where(flop, 1 + found["high"] % 8, 0)
    before = np.array([betting_code(""), betting_code("r"), betting_code("c")])[random.integers(0, 3, rows)]
    found["betting_codes"][:, 0] = np.where(flop, betting_code("rc"), before)
    found["betting_codes"][:, 1] = np.where(flop, before, 0)
    facing = found["betting_codes"][np.arange(rows), found["street"]] == betting_code("r")
    found["legal"] = np.where(facing, 0b111, 0b110)
    found["to_call"] = np.where(facing, 10, 0)
    found["pot"] = np.where(flop, 40, 20) + found["to_call"]
    better = (found["start"] % 13 + found["start"] // 13) / 24.0
    truth = np.stack([np.where(facing, 0.6 * better, 0.0), np.full(rows, 0.3), 1.1 - better], axis=1)
    truth /= truth.sum(axis=1, keepdims=True)
    taken = (random.random((rows, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    sample = DecisionSample(
        agent="teacher",
        game=find_game("holdem.limit.2p.reverse_blinds"),
        rows=found,
        taken=taken.astype(np.uint8),
        deal=(np.arange(rows) // 2).astype(np.uint64) * np.uint64(7919),
        opponent=(np.arange(rows) // 2) % 2,
        opponents=("left", "right"),
        file=np.arange(rows) * 4 // rows,
        files=tuple(f"logs/2pl/2pl.a-long-name-of-an-agent.another-long-name.{i}.0.log" for i in range(4)),
        hand=np.arange(rows) % (rows // 4),
        k=np.zeros(rows, dtype=np.int64),
        strength=1 - better,
        truth=truth,
    )
    return sample.take(np.argsort(found["street"], kind="stable"))
