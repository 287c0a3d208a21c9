"""A match cut into blocks: each is dealt, played and made ready for the results by itself, here or on a cluster.

In: what decides a match beside its agents (`MatchPlan`) and the number of a block's first deal. Out: a `PlayedBlock`.
Hands do not depend on the block they are played in, so neither threads nor workers change a match. A worker opens the
agents by the names that were typed (`Table`), once for all its blocks; paths must be the same there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from pipeline.agents.names import bundle_options, is_bundle, resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.adjusting import block_records
from pipeline.arena.imagining import imagine
from pipeline.arena.lockstep import Block
from pipeline.arena.seatings import seatings
from pipeline.arena.transcript import Pages, Transcript
from pipeline.arena.variance.estimator import Adjuster, Prepared
from pipeline.poker.game import Game, parse_game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError


class PlayedBlock(NamedTuple):
    """A block of deals that has been played."""

    first: int
    won: npt.NDArray[Any]
    """(deals, seatings, agents): net chips"""
    pages: Pages | None
    prepared: Prepared | None
    block: Block | None = None
    """its hands; None where it was played elsewhere"""


@dataclass(frozen=True)
class MatchPlan:
    """What decides a match, beside its agents."""

    game: Game
    names: tuple[str, ...]
    deals: int
    size: int
    """deals of a block"""
    seed: int
    shared_luck: bool
    log: Path | None
    probabilities: Path | bool
    adjusted: bool
    imagined: int
    """the agent whose holdings are imagined"""
    holdings: int
    """how many of them"""

    def transcript(self) -> Transcript | None:
        """What writes the logs, None without any."""
        if self.log is None:
            return None
        order = seatings(self.game.players)
        return Transcript(self.log, self.game, self.names, order, self.deals, self.seed, self.probabilities)

    def adjuster(self, threads: int = 1) -> Adjuster | None:
        """What takes the luck out of results, None where that is not wanted."""
        return Adjuster(self.game, seatings(self.game.players), threads=threads) if self.adjusted else None

    def play(
        self, agents: Sequence[Agent], first: int, transcript: Transcript | None, adjuster: Adjuster | None
    ) -> PlayedBlock:
        """Play the block whose first deal is number `first`."""
        order = seatings(self.game.players)
        made = Block.dealt(self.game, self.seed, first, min(self.size, self.deals - first), order, self.shared_luck)
        made.play(agents, keep=bool(self.probabilities) or adjuster is not None)
        pages = transcript.render(made) if transcript is not None else None
        prepared = None
        if adjuster is not None:
            records = block_records(made, self.seed)
            if self.holdings > 1:
                records = imagine(records, agents[self.imagined], self.imagined, self.holdings)
            prepared = adjuster.prepare(records)
        return PlayedBlock(first, made.by_agent(), pages, prepared, made)


@dataclass(frozen=True)
class Table:
    """Where a match is played on a cluster, and by whom: the agents as they were typed."""

    cluster: Cluster
    texts: tuple[str, ...]
    trusted: bool = False

    @classmethod
    def of(cls, cluster: Cluster | None, texts: Sequence[str], trusted: bool = False) -> Table | None:
        """The table of a cluster, with paths that hold anywhere; None without a cluster."""
        if cluster is None:
            return None
        for text in texts:
            if text.startswith("exec:"):
                raise PipelineError(f"{text} plays on this machine only: leave out --cluster")
        return cls(cluster, tuple(map(anywhere, texts)), trusted)


def anywhere(text: str) -> str:
    """An agent's text with the whole path of its bundle."""
    if not is_bundle(text):
        return text
    path = str(bundle_options(text)[0])
    return str(Path(path).resolve()) + text.removeprefix(path) if text.startswith(path) else text


def play_blocks(plan: MatchPlan, table: Table) -> Iterator[PlayedBlock]:
    """The blocks of a match in order, played by the workers of a cluster."""
    given = plan.game.text, plan.game.name, table.texts, table.trusted
    items = [(plan, given, first) for first in range(0, plan.deals, plan.size)]
    return table.cluster.ordered(_play_elsewhere, items)


@lru_cache(maxsize=8)
def _seated(game: str, name: str, texts: tuple[str, ...], trusted: bool) -> list[Agent]:
    """The agents of a match, opened once in this process."""
    rules = parse_game(game, name)
    return [resolve(text, rules, trusted=trusted) for text in texts]


def _play_elsewhere(item: tuple[MatchPlan, tuple[str, str, tuple[str, ...], bool], int]) -> PlayedBlock:
    """On a worker: one block, without its hands."""
    plan, given, first = item
    return plan.play(_seated(*given), first, plan.transcript(), plan.adjuster())._replace(block=None)
