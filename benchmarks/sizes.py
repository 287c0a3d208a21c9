"""Amounts of no-limit raises: how close the learned ones are to those of agents in real logs, and what they cost.

For every agent the amounts are learned from its training rows and scored on its held-out raises after the flop, given
the label that was taken, beside the fixed sizes of the labels. One of the agents is then played: nobody bets
a few chips short of all-in, and how fast is it? Three players are benched by `threeplayers`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks._figures import Figure, Settings
from benchmarks._play import live_decision_us, match_speed
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.dataset.load import select_rows
from pipeline.evaluation.samples import DecisionSample, read_samples
from pipeline.evaluation.sizing import size_measures
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.policy import Policy
from pipeline.poker.game import Game, builtin
from pipeline.poker.rules import ALL_IN, RAISE
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles
from pipeline.training.sizing import fit_sizes, raises_of

CORPORA = {
    "2012": "acpc2012_2pn_monotone_flops.tar.bz2",
    "2016": "2016.2pn.act1_2pn_2016.hitcz_2pn_2016.0.1.log",
    "example bots": "examplebots.dmorrill10.2p.nolimit.h1000.r0.log",
    "example bots, three players": "examplebots.dmorrill10.3p.nolimit.h1000.r0.log",
}
TARGETS = {"hugh": 0.03, "neo_poker_lab": 0.03, "hyperborean": 0.06, "tartanian5": 0.01}
"""mean error in pots after the flop that is aimed for"""
FEW_SIZES = ("hugh", "neo_poker_lab", "hyperborean", "tartanian5", "azure_sky")
"""agents that use few sizes: at least 60 % exact hits are aimed for"""
PLAYED = "tartanian5"
"""the agent that is played"""


def _sized(game: Game, data: Path, agent: str) -> Policy:
    """Return the amounts of an agent as a policy that says nothing else."""
    sizes = fit_sizes(game, *raises_of(piece for _, piece in select_rows(data, [agent], game=game.name).pieces()))
    return Policy(agent, game, (), sizes=sizes)


def _mean(player: object, sample: DecisionSample, at: np.ndarray, name: str) -> float:
    values = size_measures(player, sample)[name][at]
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _closeness(data: Path, corpus: str) -> list[Figure]:
    """Measure error, CRPS and exact hits of every agent of a dataset that has raised on the held-out side."""
    figures = []
    for sample in read_samples(data):
        agent, game = sample.agent, sample.game
        raised = (sample.taken >= RAISE) & (sample.taken < ALL_IN)
        learned, fixed = _sized(game, data, agent), Policy(agent, game, ())
        for when, side in (("after the flop", sample.rows["street"] > 0), ("before it", sample.rows["street"] == 0)):
            rows = raised & side
            if rows.sum() < 20:
                continue
            for name, measure in (("size_error", "mean error"), ("size_crps", "CRPS")):
                ours, plain = (_mean(player, sample, rows, name) for player in (learned, fixed))
                target = ""
                if name == "size_error" and when == "after the flop" and agent in TARGETS:
                    target = f"{TARGETS[agent]}"
                if name == "size_error" and when == "before it" and agent == "hyperborean":
                    target = "0.01"
                ratio = ours / plain if plain > 0 else None
                title = f"{corpus}: {agent} {when}, {measure}"
                figures.append(Figure(title, ours, "pots", "fixed sizes", plain, ratio, target))
            hits, plain = (100 * _mean(player, sample, rows, "size_hit") for player in (learned, fixed))
            target = "60 %" if agent in FEW_SIZES and when == "after the flop" else ""
            ratio = hits / plain if plain > 0 else None
            figures.append(
                Figure(f"{corpus}: {agent} {when}, exact hits", hits, "%", "fixed sizes", plain, ratio, target)
            )
    return figures


def _short_of_all_in(agents: list[Agent], game: Game) -> tuple[int, int]:
    """Measure how many raises leave less than a big blind behind, and how many there are, all players' counted."""
    block = HandBlock.dealt(game, 7, 0, 10_000, seatings(2), False)
    block.play(agents)
    sizes = block.hands.sizes
    stack = game.stacks[0]
    return int(((sizes > stack - game.big_blind) & (sizes < stack)).sum()), int((sizes > 0).sum())


def _played(data: Path, folder: Path) -> list[Figure]:
    """Measure a bundle with amounts at the table: bets just short of all-in, hands per second, a live decision."""
    game = builtin("holdem.nolimit.2p.reverse_blinds")
    train_bundles(Request(data, folder, agents=(PLAYED,), pattern=find_pattern("thesis")))
    clone, fixed = resolve(str(folder), game), resolve(f"{folder}:sizes=fixed", game)
    figures = []
    for other in (resolve("@call", game), clone):
        short, raises = _short_of_all_in([clone, other], game)
        title = f"{PLAYED} against {other.name if other is not clone else 'itself'}: bets leaving under a big blind"
        figures.append(Figure(title, short, f"of {raises:,}", target="0"))
    fast, slow = (match_speed([agent, agent], game, 50_000)[0] for agent in (clone, fixed))
    title = "match of two bundles with amounts (thesis pattern)"
    figures.append(Figure(title, fast, "hands/s", "fixed sizes", slow, fast / slow, "20,000"))
    live, plain = (live_decision_us(agent, ("r300c/", "r300c/cc/", "r300c/cc/cc/")) for agent in (clone, fixed))
    title = "a live decision with amounts, median"
    figures.append(Figure(title, live, "us", "fixed sizes", plain, live / plain, "500"))
    return figures


def run(settings: Settings) -> list[Figure]:
    """Measure the amounts of all agents of the corpora that are there."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as made:
        for corpus, name in CORPORA.items():
            log = settings.corpus("real", name)
            if log is None:
                continue
            data = Path(made) / corpus
            ingest([log], data, options(strength=False))
            figures += _closeness(data, corpus)
            if corpus == "2012":
                figures += _played(data, Path(made) / "bundle")
    return figures
