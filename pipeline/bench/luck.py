"""Adjusted results: how many times fewer hands they need than plain play for the same interval, and what they cost.

Beside them in the same run: duplicate play alone. Every figure is a ratio of variances per hand: plain hands against
the means of a deal's seatings, adjusted. "cards" takes only the luck of the cards out, "cards and dice" that of both
sides' own mixing too. The cost is the processor time of an adjusted match of two bundles beside the plain one.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.agents import Agent, resolve
from pipeline.arena import play_match, seatings
from pipeline.arena.adjusting import block_records
from pipeline.arena.lockstep import Block
from pipeline.bench import Figure
from pipeline.game import builtin
from pipeline.ingest import ingest, options
from pipeline.luck import HandRecords, adjust
from pipeline.train import Request, train_bundles
from pipeline.training.config import TrainConfig

__all__ = ["run"]

GAME = builtin("holdem.limit.2p.reverse_blinds")
PAIRS = (
    ("@teacher", "@equity"),
    ("@teacher", "@calibrated:70,70"),
    ("@equity", "@calibrated:70,70"),
    ("@equity", "@call"),
)
HANDS = 60_000
BUNDLE_HANDS = 40_000
RESPONSE_HANDS = 4_000


def _first_agent(hands: HandRecords, payoffs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(hands,): what agent 0 won, in big blinds."""
    return np.take_along_axis(payoffs, np.argsort(hands.seats, axis=1), axis=1)[:, 0] / GAME.big_blind


def _saved(first: str, second: str) -> list[Figure]:
    """How many plain hands a hand is worth: in duplicate, without the luck of the cards, and without any."""
    block = Block.dealt(GAME, 7, 0, HANDS // 2, seatings(2), False)
    block.play([resolve(first, GAME), resolve(second, GAME)], keep=True)
    hands = block_records(block, 7)
    raw = _first_agent(hands, hands.payoffs)
    plain = raw.var()
    duplicate = plain / (2 * raw.reshape(-1, 2).mean(axis=1).var())
    figures = [Figure(f"{first} {second}: duplicate", duplicate, "plain hands")]
    for name, records, target in (
        ("without the luck of the cards", replace(hands, probabilities=None), 4),
        ("without that of cards and dice", hands, 10),
    ):
        less = _first_agent(hands, adjust(records))
        worth = plain / (2 * less.reshape(-1, 2).mean(axis=1).var())
        figures += [
            Figure(
                f"{first} {second}: {name}",
                worth,
                "plain hands",
                "duplicate",
                duplicate,
                worth / duplicate,
                f"{target} plain hands",
            ),
            Figure(f"{first} {second}: the same, not in duplicate", plain / less.var(), "plain hands"),
        ]
    return figures


def _cost(name: str, agents: list[Agent], hands: int) -> Figure:
    """Processor seconds of an adjusted match beside those of the plain one."""
    spent = []
    for adjusted in (False, True):
        play_match(agents, GAME, hands=200, adjusted=adjusted)
        began = time.process_time()
        play_match(agents, GAME, hands=hands, seed=1, adjusted=adjusted)
        spent.append(time.process_time() - began)
    extra = (spent[1] - spent[0]) / spent[0]
    return Figure(f"{name}: added time", extra, "of the match", "plain match, CPU s", spent[0], None, "at most 2")


def _response() -> Figure:
    """The interval of a local best response, beside the one without adjusting that takes the same time."""
    agents = [resolve("@lbr:@teacher", GAME), resolve("@teacher", GAME)]
    play_match(agents, GAME, hands=20, adjusted=True)
    began = time.process_time()
    play_match(agents, GAME, hands=RESPONSE_HANDS, seed=1)
    plain = time.process_time() - began
    began = time.process_time()
    match = play_match(agents, GAME, hands=RESPONSE_HANDS, seed=1, adjusted=True)
    longer = (time.process_time() - began) / plain
    before, after = match.ci95() / np.sqrt(longer), match.adjusted_ci95() or float("nan")
    return Figure("@lbr:@teacher @teacher: interval", after, "mbb/h", "today's", before, after / before, "at most 0.5x")


def run() -> list[Figure]:
    """Measure what adjusting saves and costs."""
    figures = [figure for pair in PAIRS for figure in _saved(*pair)]
    with tempfile.TemporaryDirectory() as folder:
        teacher = resolve("@teacher", GAME)
        match = play_match([teacher, teacher], GAME, hands=20_000, log=Path(folder) / "logs" / "teacher")
        ingest(match.logs, Path(folder) / "rows", options(agents=[match.names[0]]))
        config = TrainConfig(iterations=15, patience=0, min_weight=0)
        train_bundles(Request(Path(folder) / "rows", Path(folder) / "bundle", config=config))
        bundle = resolve(str(Path(folder) / "bundle"), GAME)
        figures.append(_cost("match of two default bundles", [bundle, bundle], BUNDLE_HANDS))
    return [*figures, _response()]
