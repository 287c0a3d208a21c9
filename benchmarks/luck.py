"""Adjusted results: how many times fewer hands they need than plain play for the same interval, and what they cost.

Beside them in the same run: duplicate play alone. Every figure is a ratio of variances per hand: plain hands against
the means of a deal's seatings, adjusted, and against single adjusted hands. "cards" takes only the luck of the cards
out, "cards and dice" that of both sides' own mixing too; what the cards alone could bring at best is plain play's
variance by that of the dice, as far as these are explained. The cost is the processor time of an adjusted match beside
the plain one. The interval of a local best response is compared with that of plain results of the same time.

Blocks of few hands of real logs (`--data`) show whether adjusted results are worse than plain ones there: the standard
deviation of adjusted results by that of plain ones, over all blocks of a size and in the worst block. Settings
were chosen on matches of the 2012 competition in which azure_sky, dcubot, hyperborean or tartanian5 plays; figures are
of the other matches and of the log of 2016.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, Settings
from benchmarks._play import teacher_rows
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.adjusting import block_records
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.match import play_match
from pipeline.arena.variance.estimator import adjust
from pipeline.arena.variance.records import HandRecords
from pipeline.dataset.manifest import read_manifest
from pipeline.evaluation.winnings import dataset_records
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import builtin, parse_game
from pipeline.training.config import TrainConfig
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

GAME = builtin("holdem.limit.2p.reverse_blinds")
PAIRS = (
    ("@teacher", "@equity"),
    ("@teacher", "@calibrated:70,70"),
    ("@equity", "@calibrated:70,70"),
    ("@equity", "@call"),
)
HANDS = 60_000
COST_HANDS = 60_000
RESPONSE_HANDS = 16_000
CHOSEN = {"azure_sky", "dcubot", "hyperborean", "tartanian5"}
"""agents of 2012 on whose matches settings were chosen"""
CORPORA = {
    "2012": ("real", "acpc2012_2pn_monotone_flops.tar.bz2"),
    "2016": ("real", "2016.2pn.act1_2pn_2016.hitcz_2pn_2016.0.1.log"),
}
BLOCKS = (50, 100, 200, 500)
"""hands of a block"""
IMAGINED_HANDS = 8_000


def _first_agent(hands: HandRecords, payoffs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(hands,): what agent 0 won, in big blinds."""
    return np.take_along_axis(payoffs, np.argsort(hands.seats, axis=1), axis=1)[:, 0] / GAME.big_blind


def _saved(first: str, second: str) -> list[Figure]:
    """Measure how many plain hands a hand is worth: in duplicate, without the luck of the cards, and without any."""
    block = HandBlock.dealt(GAME, 7, 0, HANDS // 2, seatings(2), False)
    block.play([resolve(first, GAME), resolve(second, GAME)], keep=True)
    hands = block_records(block, 7)
    raw = _first_agent(hands, hands.payoffs)
    plain = raw.var()
    duplicate = plain / (2 * raw.reshape(-1, 2).mean(axis=1).var())
    figures = [Figure(f"{first} {second}: duplicate", duplicate, "plain hands")]
    adjusted = []
    for name, records, target in (
        ("without the luck of the cards", replace(hands, probabilities=None), 4),
        ("without that of cards and dice", hands, 10),
    ):
        results = _first_agent(hands, adjust(records))
        adjusted.append(results)
        worth = plain / (2 * results.reshape(-1, 2).mean(axis=1).var())
        asked, more = f"at least {target}", worth / duplicate
        figures += [
            Figure(f"{first} {second}: {name}", worth, "plain hands", "duplicate", duplicate, more, asked),
            Figure(f"{first} {second}: the same, single hands", plain / results.var(), "plain hands", target=asked),
        ]
    dice = adjusted[0] - adjusted[1]
    if dice.var() > 0.01 * plain:
        best = plain / dice.reshape(-1, 2).mean(axis=1).var() / 2
        figures.append(Figure(f"{first} {second}: the cards alone at best", best, "plain hands"))
    return figures


def _cost(name: str, agents: list[Agent]) -> Figure:
    """Measure processor seconds of an adjusted match beside those of the plain one."""
    spent = []
    for adjusted in (False, True):
        play_match(agents, GAME, hands=2000, adjusted=adjusted)
        began = time.process_time()
        play_match(agents, GAME, hands=COST_HANDS, seed=1, adjusted=adjusted)
        spent.append(time.process_time() - began)
    ratio = spent[1] / spent[0]
    return Figure(f"{name}: adjusted match", spent[1], "CPU s", "plain match", spent[0], ratio, "at most 2x, bundles")


def _response() -> Figure:
    """Measure the interval of a local best response, beside the plain one of a match that takes the same time."""
    agents = [resolve("@lbr:@teacher", GAME), resolve("@teacher", GAME)]
    play_match(agents, GAME, hands=20, adjusted=True)
    began = time.process_time()
    play_match(agents, GAME, hands=RESPONSE_HANDS, seed=1)
    plain = time.process_time() - began
    began = time.process_time()
    match = play_match(agents, GAME, hands=RESPONSE_HANDS, seed=1, adjusted=True)
    longer = (time.process_time() - began) / plain
    before, after = match.ci95() / np.sqrt(longer), match.adjusted_ci95() or float("nan")
    return Figure("@lbr:@teacher @teacher: interval", after, "mbb/h", "plain", before, after / before, "at most 0.5x")


def _imagined(first: str, second: str, count: int) -> Figure:
    """Measure what the mean over hands that the second agent could have held adds to an adjusted match."""
    agents = [resolve(first, GAME), resolve(second, GAME)]
    widths, spent = [], []
    for adjusted in (True, count):
        play_match(agents, GAME, hands=20, adjusted=adjusted)
        began = time.process_time()
        match = play_match(agents, GAME, hands=IMAGINED_HANDS, seed=1, adjusted=adjusted)
        spent.append(time.process_time() - began)
        widths.append(match.adjusted_ci95() or float("nan"))
    name = f"{first} {second}: interval over {count} imagined hands ({spent[1] / spent[0]:.0f}x the time)"
    return Figure(name, widths[1], "mbb/h", "adjusted", widths[0], widths[1] / widths[0])


def _variance_by_deal(hands: HandRecords, payoffs: npt.NDArray[Any]) -> float:
    """Return the variance of what deals paid, summed over the agents."""
    _, deal = np.unique(hands.deals, return_inverse=True)
    by_agent = np.take_along_axis(payoffs, np.argsort(hands.seats, axis=1), axis=1)
    return sum(float(np.bincount(deal, won - won.mean()).var()) for won in by_agent.T)


def _real_blocks(settings: Settings, corpus: str) -> list[Figure]:
    """Measure the standard deviation of adjusted results by that of plain ones in blocks of a corpus's hands."""
    path = settings.corpus(*CORPORA[corpus])
    if path is None:
        return []
    tables: list[HandRecords] = []
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows"
        ingest([path], rows, options(strength=False))
        for name, text in read_manifest(rows).games.items():
            records, names = dataset_records(rows, parse_game(text, name))
            records = records.take((records.hole[:, :, : records.game.hole_cards] != NO_CARD).all(axis=(1, 2)))
            members = np.sort(records.seats, axis=1)
            for table in np.unique(members, axis=0):
                if not CHOSEN & {names[agent] for agent in table}:
                    hands = records.take((members == table).all(axis=1))
                    tables.append(hands.take(np.argsort(hands.deals, kind="stable")))
    figures = []
    for size in BLOCKS:
        blocks = [hands.take(slice(i, i + size)) for hands in tables for i in range(0, len(hands) - size + 1, size)]
        if not blocks:
            continue
        spread = np.array([[_variance_by_deal(b, won) for won in (adjust(b), b.payoffs)] for b in blocks])
        ratios = np.sqrt(spread[:, 0] / np.maximum(spread[:, 1], 1e-9))
        label = f"{corpus}, {len(blocks)} blocks of {size} hands"
        whole = float(np.sqrt(spread[:, 0].sum() / spread[:, 1].sum()))
        figures += [
            Figure(f"{label}: adjusted deviation", whole, "x plain", target="at most 1"),
            Figure(f"{label}: blocks above 1.05", float((ratios > 1.05).mean()), "of blocks"),
            Figure(f"{label}: worst block", float(ratios.max()), "x plain"),
        ]
    return figures


def run(settings: Settings) -> list[Figure]:
    """Measure what adjusting saves and costs."""
    figures = [figure for corpus in CORPORA for figure in _real_blocks(settings, corpus)]
    figures += [figure for pair in PAIRS for figure in _saved(*pair)]
    with tempfile.TemporaryDirectory() as folder:
        rows = teacher_rows(Path(folder), 20_000)
        config = TrainConfig(max_iterations=15, patience=0, min_weight=0)
        train_bundles(Request(rows, Path(folder) / "bundle", config=config))
        bundle = resolve(str(Path(folder) / "bundle"), GAME)
        figures.append(_cost("two default bundles", [bundle, bundle]))
    figures.append(_cost("@teacher @equity", [resolve("@teacher", GAME), resolve("@equity", GAME)]))
    return [*figures, _response(), _imagined("@teacher", "@calibrated:70,70", 16)]
