"""The arena: hands per second of duplicate matches in process, two threads, one block after another.

Rule agents first; then two bundles trained here on hands of the built-in teacher, with the thesis's pattern and with
ours. The baseline is the same rules played hand by hand through `State`, as one would write it without lockstep.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from pipeline.agents import Agent, resolve
from pipeline.arena import play_match
from pipeline.bench import Figure
from pipeline.cards import rank_hands
from pipeline.game import Game, builtin
from pipeline.ingest import ingest, options
from pipeline.models.fitting import Settings
from pipeline.patterns import find_pattern
from pipeline.train import Request, train_bundles

__all__ = ["run"]

GAME = builtin("holdem.limit.2p.reverse_blinds")


def _speed(agents: list[Agent], game: Game, hands: int) -> float:
    """Hands per second, the best of three matches."""
    play_match(agents, game, hands=200)
    return max(hands / play_match(agents, game, hands=hands, seed=seed).seconds for seed in range(3))


def _hand_by_hand(hands: int) -> float:
    """Hands per second of random play, one hand at a time through `State`."""
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
    """A bundle per pattern, trained on hands of the teacher."""
    teacher = resolve("@teacher", GAME)
    match = play_match([teacher, teacher], GAME, hands=hands, log=folder / "logs" / "teacher")
    ingest(match.logs, folder / "rows", options(agents=[match.names[0]]))
    found = {}
    for name in ("thesis", "default"):
        found[name] = folder / name
        settings = Settings(iterations=15)
        train_bundles(Request(folder / "rows", found[name], pattern=find_pattern(name), settings=settings))
    return found


def run() -> list[Figure]:
    """Measure matches of rule agents and of bundles."""
    plain = _hand_by_hand(500)
    baseline = "hand by hand in Python"
    figures = []
    for a, b in (("@random", "@random"), ("@call", "@raise")):
        speed = _speed([resolve(a, GAME), resolve(b, GAME)], GAME, 400_000)
        name = f"match {a} {b}"
        figures.append(Figure(name, speed, "hands/s", baseline, plain, speed / plain, "200,000 hands/s"))
    with tempfile.TemporaryDirectory() as folder:
        for name, path in _bundles(Path(folder), 40_000).items():
            asked = "50,000 hands/s" if name == "thesis" else "20,000 hands/s"
            speed = _speed([resolve(str(path), GAME)] * 2, GAME, 100_000)
            figures.append(
                Figure(f"match of two {name} bundles", speed, "hands/s", baseline, plain, speed / plain, asked)
            )
    for name in ("@equity", "@teacher"):
        speed = _speed([resolve(name, GAME)] * 2, GAME, 100_000)
        figures.append(Figure(f"match {name} {name}", speed, "hands/s", baseline, plain, speed / plain))
    return figures
