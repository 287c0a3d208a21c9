"""Measurements of agents at the table that several topics share: hands a second, a live decision, logs of @teacher."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.arena.wire.player import Player
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.cards import card_text
from pipeline.poker.game import Game, builtin


def match_speed(agents: list[Agent], game: Game, hands: int) -> tuple[float, float]:
    """Return hands per second and per CPU second, which a busy machine spoils less: the best of three matches."""
    play_match(agents, game, hands=500)
    wall, processor = [], []
    for seed in range(3):
        began = time.process_time()
        wall.append(hands / play_match(agents, game, hands=hands, seed=seed).seconds)
        processor.append(hands / (time.process_time() - began))
    return max(wall), max(processor)


def live_decision_us(agent: Agent, bettings: Sequence[str]) -> float:
    """Return the median microseconds from a dealer's line to the answer, after these bettings (flop, turn, river)."""
    player = Player(agent, seed=0)
    player.warm_up()
    random = np.random.default_rng(0)
    spent = []
    for hand in range(300):
        cards = [card_text(card) for card in random.permutation(52)[:7].tolist()]
        boards = (
            "".join(cards[2:5]),
            "".join(cards[2:5]) + f"/{cards[5]}",
            "/".join(["".join(cards[2:5]), *cards[5:]]),
        )
        for betting, board in zip(bettings, boards, strict=True):
            line = f"MATCHSTATE:0:{hand}:{betting}:{''.join(cards[:2])}|/{board}"
            began = time.perf_counter()
            asked = player.hear(line)
            assert asked is not None
            player.decide(asked)
            spent.append(time.perf_counter() - began)
    return 1e6 * median(spent)


def teacher_rows(folder: Path, hands: int, *, seed: int = 0, strength: bool = True) -> Path:
    """Log a match of @teacher against itself; return a dataset of the first one's decisions.

    The true probabilities are in `folder`/logs/teacher.probs.parquet.
    """
    game = builtin("holdem.limit.2p.reverse_blinds")
    teacher = resolve("@teacher", game)
    log = folder / "logs" / "teacher"
    match = play_match([teacher, teacher], game, hands=hands, seed=seed, log=log, probabilities=True)
    ingest(match.logs, folder / "rows", options(agents=[match.names[0]], strength=strength))
    return folder / "rows"
