"""The arena: hands per second of duplicate matches in process, two threads, one block after another.

Rule agents first; then two bundles trained here on hands of the built-in teacher, with the thesis's pattern and with
ours. The baseline is the same rules played hand by hand through `State`, as one would write it without lockstep.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._figures import Figure, Settings
from benchmarks._play import match_speed, teacher_rows
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.features.patterns import find_pattern
from pipeline.poker.cards import rank_hands
from pipeline.poker.game import builtin
from pipeline.training.config import TrainConfig
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

GAME = builtin("holdem.limit.2p.reverse_blinds")


def _figures(name: str, agents: list[Agent], hands: int, plain: float, target: str = "") -> list[Figure]:
    """Return hands per second and per CPU second of a match."""
    wall, processor = match_speed(agents, GAME, hands)
    return [
        Figure(name, wall, "hands/s", "hand by hand in Python", plain, wall / plain, target),
        Figure(f"{name}, per CPU second", processor, "hands/CPU s"),
    ]


def _hand_by_hand(hands: int) -> float:
    """Return hands per second of random play, one hand at a time through `State`."""
    luck = np.random.default_rng(0)
    began = time.perf_counter()
    for _ in range(hands):
        cards = luck.permutation(52)[:9].astype(np.uint8)
        state = GAME.start()
        while not state.finished:
            legal = [label for label in range(3) if state.legal_labels >> label & 1]
            state = state.apply(*state.choose(int(luck.choice(legal))))
        state.payoffs(rank_hands(np.stack([np.r_[cards[:2], cards[4:]], cards[2:]])))
    return hands / (time.perf_counter() - began)


def _bundles(folder: Path, hands: int) -> dict[str, Path]:
    """Return a bundle per pattern, trained on hands of the teacher."""
    rows = teacher_rows(folder, hands)
    bundles = {}
    for name in ("thesis", "default"):
        bundles[name] = folder / name
        config = TrainConfig(max_iterations=15, patience=0, min_weight=0)
        train_bundles(Request(rows, bundles[name], pattern=find_pattern(name), config=config))
    return bundles


def run(_: Settings) -> list[Figure]:
    """Measure matches of rule agents and of bundles."""
    plain = _hand_by_hand(500)
    figures = []
    for a, b in (("@random", "@random"), ("@call", "@raise")):
        agents = [resolve(a, GAME), resolve(b, GAME)]
        figures += _figures(f"match {a} {b}", agents, 400_000, plain, "200,000 hands/s")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in _bundles(Path(folder), 40_000).items():
            target = "50,000 hands/s" if name == "thesis" else "20,000 hands/s"
            figures += _figures(f"match of two {name} bundles", [resolve(str(path), GAME)] * 2, 100_000, plain, target)
    return figures
