"""Play matches between agents: agents, a game, a number of hands and a seed go in, a `MatchResult` and logs come out.

Every deal is played once per seating (`pipeline.arena.duplicate`), so that the luck of the cards is shared; the
interval is over deals, whose seatings together are one sample. A match is cut into blocks of deals: each is dealt and
played (`pipeline.arena.lockstep`), written (`pipeline.arena.transcript`) and made ready for the results by itself, in
threads here or by the workers of a cluster. Hands do not depend on the block they are played in, so the same seed
gives the same match whatever the size of the blocks and wherever they are played. A match with a program
(`exec:./start.sh`) is dealt over sockets instead (`pipeline.arena.wire.matches`).

With `shared_luck` the seatings of a deal also share the luck of the agents' own mixing: two agents that would play
alike take the same action where they meet the same situation. That shortens the interval of their difference (its
mean stays the same), but the hands of the seatings are no longer independent: such logs are poor training data.

With `adjusted` most of the luck of cards and dice is taken out of the results too, by control variates
(`pipeline.arena.variance`): the mean stays the same, and the interval is that of many more hands. It takes some 30 us
of a processor per hand. Results can also be averaged over the hands that one of the agents could have held
(`pipeline.arena.adjusting`), which asks it about all of these: in a match of @lbr they are, over its opponent's.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from pipeline.agents.guests import Guest, Program
from pipeline.agents.names import bundle_options, is_bundle, resolve
from pipeline.agents.protocol import Agent, Learner, set_background
from pipeline.arena.adjusting import block_records, imagine, select_imagined
from pipeline.arena.duplicate import MatchResult, by_agent, distinct, seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.transcript import RenderedBlock, Transcript
from pipeline.arena.variance.equities import is_adjustable
from pipeline.arena.variance.estimator import Adjuster, PreparedHands
from pipeline.arena.wire.matches import play_over_sockets
from pipeline.poker.game import Game, parse_game
from pipeline.runtime.array_types import Array
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import is_compiled, prepare, seconds_compiling
from pipeline.runtime.progress import Progress, no_progress

T = TypeVar("T")

BLOCK_HANDS = 16384
"""hands in lockstep at most: enough to ask models in bulk, few enough for the processor's cache"""
LEAST_BLOCK_HANDS = 1024
"""a short match is not cut into smaller blocks to share it between threads"""
THREADS = 2
"""threads of a match by default, with a cluster too"""


@dataclass(frozen=True)
class ClusterTable:
    """Agents as a cluster's workers open them: by the texts that were typed, once for all their blocks."""

    cluster: Cluster
    texts: tuple[str, ...]
    trusted: bool = False

    @classmethod
    def of(cls, cluster: Cluster | None, texts: Sequence[str], trusted: bool = False) -> ClusterTable | None:
        """Return the table of a cluster, with paths that hold anywhere; None without a cluster."""
        if cluster is None:
            return None
        for text in texts:
            if text.startswith("exec:"):
                raise PipelineError(f"{text} plays on this machine only: leave out --cluster")
        return cls(cluster, tuple(map(with_absolute_path, texts)), trusted)


def with_absolute_path(text: str) -> str:
    """Return an agent's text with the whole path of its bundle."""
    if not is_bundle(text):
        return text
    path = str(bundle_options(text)[0])
    return str(Path(path).resolve()) + text.removeprefix(path) if text.startswith(path) else text


def play_match(
    agents: Sequence[Agent],
    game: Game,
    *,
    hands: int,
    seed: int = 0,
    log: Path | str | None = None,
    probabilities: Path | str | bool = False,
    shared_luck: bool = False,
    adjusted: bool | int = False,
    workers: int | ClusterTable = THREADS,
    progress: Progress = no_progress,
) -> MatchResult:
    """Play at least `hands` hands (whole deals in all seatings); write `log`'s files if named.

    Parameters: one agent per player of `game`; `log` x or x.log gives x.0.log, x.1.log, one per seating, and
    `probabilities` names the Parquet file of the agents' true probabilities (True: x.probs.parquet next to the logs);
    `adjusted` takes the luck out of the results as well, in games where that is possible; a number from 2 on averages
    them over that number of hands that the last agent could have held (with @lbr its opponent, 16 by default);
    `workers` are threads, or a table on a cluster, with the same result (an agent that learns from hand to hand plays
    here, in one thread). Returns what each agent won.

    >>> from pipeline.agents.names import resolve
    >>> from pipeline.poker.game import builtin
    >>> kuhn = builtin("kuhn.limit.2p")
    >>> play_match([resolve("@raise", kuhn), resolve("@fold", kuhn)], kuhn, hands=100)
    <100 hands of kuhn.limit.2p: raise +1000.0 ± 0.0, fold -1000.0 ± 0.0 mbb/h>
    """
    log = Path(log) if log is not None else None
    probabilities = Path(probabilities) if isinstance(probabilities, str) else probabilities
    _check(agents, game, hands, log, probabilities)
    if program := next((agent for agent in agents if isinstance(agent, Program)), None):
        if probabilities or shared_luck:
            option = "--probabilities" if probabilities else "--shared-luck"
            raise PipelineError(f"{program.text} gives no probabilities: leave out {option}")
        if not isinstance(adjusted, bool) and adjusted > 1:
            logging.getLogger(__name__).warning(
                "%s gives no probabilities: no results are averaged over imagined hands", program.text
            )
        return play_over_sockets(
            agents, game, hands=hands, seed=seed, log=log, adjusted=bool(adjusted), progress=progress
        )
    began = time.perf_counter() - seconds_compiling()
    order = seatings(game.players)
    deals = -(-hands // len(order))
    payoffs = _empty_payoffs(deals, order, hands)
    learners = {i: agent for i, agent in enumerate(agents) if isinstance(agent, Learner)}
    for agent in learners.values():
        set_background(agent, False)
        agent.begin()
    imagined_agent, holdings = select_imagined(agents, adjusted)
    plan = _Plan(
        *(game, distinct([agent.name for agent in agents]), deals),
        *(_block_deals(deals, len(order), learners.values(), workers, bool(probabilities)), seed, shared_luck),
        log=log,
        probabilities=probabilities,
        adjusted=bool(adjusted) and is_adjustable(game),
        imagined_agent=imagined_agent,
        holdings=holdings,
    )
    threads = workers if isinstance(workers, int) else THREADS
    adjuster = plan.adjuster(threads)
    with ExitStack() as stack:
        transcript = plan.transcript()
        if transcript is not None:
            stack.enter_context(transcript)
        if isinstance(workers, ClusterTable) and not learners:
            blocks = _play_on_cluster(plan, workers)
        else:
            play = partial(plan.play, agents, transcript=transcript, adjuster=adjuster)
            blocks = _in_order(play, range(0, deals, plan.size), 1 if learners else threads)
        for block in blocks:
            payoffs[block.first : block.first + plan.size] = block.won
            if adjuster is not None and block.prepared is not None:
                adjuster.add(block.prepared)
            for i, agent in learners.items():
                assert block.hands is not None
                agent.seen(block.hands.seen_by(i))
            if transcript is not None and block.rendered is not None:
                transcript.write(block.rendered)
            progress(min(block.first + plan.size, deals) * len(order), deals * len(order))
    chips = by_agent(adjuster.payoffs(), order) if adjuster is not None else None
    seconds = max(time.perf_counter() - seconds_compiling() - began, 1e-6)  # compiling comes once
    logs = transcript.logs if transcript is not None else ()
    return MatchResult(game, plan.names, payoffs, seconds, logs, chips, learning=bool(learners))


def _check(agents: Sequence[Agent], game: Game, hands: int, log: Path | None, probabilities: Path | bool) -> None:
    """Raise an error for a match that cannot be played."""
    if len(agents) != game.players:
        raise PipelineError(f"{game.name} is for {game.players} players, not {len(agents)}: name as many agents")
    if hands < 1:
        raise PipelineError(f"a match has at least one hand, not {hands}")
    if probabilities and log is None:
        raise PipelineError("probabilities belong to a log: name one with --log")
    for agent in agents:
        if agent.game != game:
            raise PipelineError(f"{agent.name} plays {agent.game.name}, not {game.name}")


def _empty_payoffs(deals: int, order: Array, hands: int) -> Array:
    """Return the array of a match's results, to be filled; raise an error where it does not fit in memory."""
    try:
        return np.empty((deals, *order.shape))
    except (MemoryError, ValueError, OverflowError):
        raise PipelineError(f"no memory for the results of {hands:,} hands: play fewer") from None


# Blocks


class _PlayedBlock(NamedTuple):
    """A block of deals that has been played."""

    first: int
    won: Array
    """(deals, seatings, agents): net chips"""
    rendered: RenderedBlock | None
    prepared: PreparedHands | None
    hands: HandBlock | None = None
    """None where it was played elsewhere"""


@dataclass(frozen=True)
class _Plan:
    """Settings of a match, without its agents."""

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
    imagined_agent: int
    """the agent whose holdings are imagined"""
    holdings: int
    """how many of them"""

    def transcript(self) -> Transcript | None:
        """Return the writer of the logs, None without any."""
        if self.log is None:
            return None
        order = seatings(self.game.players)
        return Transcript(self.log, self.game, self.names, order, self.deals, self.seed, self.probabilities)

    def adjuster(self, threads: int = 1) -> Adjuster | None:
        """Return the estimator that takes the luck out of results, None where that is not wanted."""
        return Adjuster(self.game, seatings(self.game.players), threads=threads) if self.adjusted else None

    def play(
        self, agents: Sequence[Agent], first: int, transcript: Transcript | None, adjuster: Adjuster | None
    ) -> _PlayedBlock:
        """Play the block whose first deal is number `first`."""
        order = seatings(self.game.players)
        block = HandBlock.dealt(
            self.game, self.seed, first, min(self.size, self.deals - first), order, self.shared_luck
        )
        block.play(agents, keep=bool(self.probabilities) or adjuster is not None)
        rendered = transcript.render(block) if transcript is not None else None
        prepared = None
        if adjuster is not None:
            records = block_records(block, self.seed)
            if self.holdings > 1:
                records = imagine(records, agents[self.imagined_agent], self.imagined_agent, self.holdings)
            prepared = adjuster.prepare(records)
        return _PlayedBlock(first, block.by_agent(), rendered, prepared, block)


def _block_deals(
    deals: int, seatings: int, learners: Iterable[Learner], workers: int | ClusterTable, probabilities: bool
) -> int:
    """Return how many deals a block has; a learner is shown its hands after each block."""
    most = max(1, min([BLOCK_HANDS, *(agent.interval for agent in learners)]) // seatings)
    if learners:
        return most
    if isinstance(workers, int):
        threads = workers
    else:  # the file of probabilities has a row group per block: it is the same as without a cluster
        threads = THREADS if probabilities else workers.cluster.threads
    return _even(deals, most, max(1, LEAST_BLOCK_HANDS // seatings), threads)


def _even(deals: int, most: int, least: int, threads: int) -> int:
    """Return the deals of a block, at most `most`: no thread waits while another plays a last large block.

    >>> _even(10_000, 8192, 512, 2)
    5000
    """
    rounds = -(-deals // (most * max(1, threads)))
    return min(most, max(least, -(-deals // (rounds * max(1, threads)))))


def _in_order(work: Callable[[int], T], items: Iterable[int], threads: int) -> Iterator[T]:
    """Yield the results of `work` in the order of `items`, a few items ahead in threads; one thread has none ahead."""
    if threads <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                # enough ahead that no thread waits for the writing of a block, few enough that memory stays bounded
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _play_on_cluster(plan: _Plan, table: ClusterTable) -> Iterator[_PlayedBlock]:
    """Yield the blocks of a match in order, played by the workers of a cluster."""
    given = plan.game.text, plan.game.name, table.texts, table.trusted
    items = [(plan, given, first) for first in range(0, plan.deals, plan.size)]
    return table.cluster.map_lazily(_play_elsewhere, items)


@lru_cache(maxsize=8)
def _seated(game: str, name: str, texts: tuple[str, ...], trusted: bool) -> list[Agent]:
    """Open the agents of a match, once in this process."""
    rules = parse_game(game, name)
    return [resolve(text, rules, trusted=trusted) for text in texts]


def _play_elsewhere(item: tuple[_Plan, tuple[str, str, tuple[str, ...], bool], int]) -> _PlayedBlock:
    """Play a block on a worker; its hands stay there."""
    plan, given, first = item
    return plan.play(_seated(*given), first, plan.transcript(), plan.adjuster())._replace(hands=None)


# Compiling before a match

REHEARSAL_HANDS = 200
"""enough to see every street, and to fit weights that take luck out of results"""
_AGENT_KERNELS = {
    "adaptive": ("agents.teacher", "solving.hindsight"),
    "bearl": ("agents.bearl", "agents.calibrated"),
    "calibrated": ("agents.calibrated",),
    "equity": ("poker.strength.queries",),
    "lbr": ("agents.lbr",),
    "teacher": ("agents.teacher",),
    "policy": ("features.encoding", "features.reading", "features.vocabulary", "models.softmax"),
}
"""modules whose compiled functions agents call, by the module of the agent's class"""


def rehearse(agents: Sequence[Agent], game: Game, *, adjusted: bool | int = False, logged: bool = False) -> None:
    """Play a few hands if a match needs something that has not been compiled yet, so that it is compiled in one go.

    Parameters: as for `play_match`, with `logged` where it writes logs. Whoever plays many hands behind a progress bar
    rehearses them, and the bar's estimates are those of playing. Bots from outside are not asked: they may keep what
    they see, so @random sits in for them. Learners forget when the match begins.
    """
    adjusted = adjusted if is_adjustable(game) else False
    used = ["arena.lockstep"]
    used += ["arena.adjusting", "arena.variance.terms", "arena.variance.estimator"] if adjusted else []
    used += ["arena.transcript"] if logged else []
    for agent in agents:
        used += _AGENT_KERNELS.get(type(agent).__module__.rpartition(".")[2], ())
    modules = [f"pipeline.{module}" for module in used]
    if len(agents) != game.players or all(map(is_compiled, modules)):
        return
    seated = [resolve("@random", game) if isinstance(agent, (Guest, Program)) else agent for agent in agents]

    def play_rehearsal() -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "rehearsal" if logged else None
            play_match(seated, game, hands=REHEARSAL_HANDS, adjusted=adjusted, log=log, workers=1)

    prepare(play_rehearsal, modules)
