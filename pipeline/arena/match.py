"""Duplicate matches: agents, a game, a number of hands and a seed go in, a `MatchResult` and its logs come out.

Every deal is played once per seating (`pipeline.arena.seatings`), so that the luck of the cards is shared; the interval
is over deals, whose seatings together are one sample. The same seed gives the same match whatever the size of the
blocks or the number of threads. `pipeline.arena.lockstep` plays the hands, `pipeline.arena.transcript` writes the logs.

With `shared_luck` the seatings of a deal also share the luck of the agents' own mixing: two agents that would play
alike take the same action where they meet the same situation. That shortens the interval of their difference (its
mean stays the same), but the hands of the seatings are no longer independent: such logs are poor training data.

With `adjusted` most of the luck of cards and dice is taken out of the results too (`pipeline.arena.variance`): the mean
stays the same, and the interval is that of many more hands. It takes some 30 us of a processor per hand. Results can
also be averaged over the hands that one of the agents could have held (`pipeline.arena.imagining`), which asks it about
all of these: in a match of @lbr they are, over its opponent's.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipeline.agents.protocol import Agent, Learner, look_back_beside
from pipeline.arena.blocks import MatchPlan, Table, play_blocks
from pipeline.arena.imagining import whom
from pipeline.arena.seatings import seatings
from pipeline.arena.variance.standings import supports
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import seconds_compiling
from pipeline.runtime.progress import Progress, no_progress

T = TypeVar("T")

BLOCK = 16384
"""hands in lockstep: enough to ask models in bulk, few enough for the processor's cache"""
LEAST_BLOCK = 1024
"""a short match is not cut into smaller blocks to share it between threads"""


@dataclass(frozen=True, repr=False)
class MatchResult:
    """The result of a match: what each agent won on every deal, and the logs that were written."""

    game: Game
    names: tuple[str, ...]
    payoffs: Array
    """(deals, seatings, agents): net chips"""
    seconds: float
    logs: tuple[Path, ...] = ()
    adjusted: Array | None = None
    """(deals, seatings, agents): net chips with the luck taken out, where that was asked for and is possible"""

    @property
    def hands(self) -> int:
        """Hands played, all seatings counted."""
        return int(self.payoffs.shape[0] * self.payoffs.shape[1])

    @property
    def samples_mbb(self) -> Array:
        """(deals, agents): thousandths of a big blind per hand, mean over a deal's seatings."""
        return self._samples(self.payoffs)

    @property
    def adjusted_samples_mbb(self) -> Array | None:
        """As `samples_mbb`, with the luck taken out; None where the match was not adjusted."""
        return None if self.adjusted is None else self._samples(self.adjusted)

    @property
    def best_samples_mbb(self) -> Array:
        """The adjusted samples where there are any, else the plain ones: both have the same mean."""
        return self._samples(self.payoffs if self.adjusted is None else self.adjusted)

    def _samples(self, chips: Array) -> Array:
        return np.asarray(chips.mean(axis=1) * (1000.0 / self.game.big_blind))

    def mbb_per_hand(self, agent: int = 0) -> float:
        """What an agent won, in thousandths of a big blind per hand."""
        return float(self.samples_mbb[:, agent].mean())

    def ci95(self, agent: int = 0) -> float:
        """Half the width of the 95% interval of `mbb_per_hand`, deals as samples; infinite for a single deal."""
        return half_width(self.samples_mbb[:, agent])

    def adjusted_mbb_per_hand(self, agent: int = 0) -> float | None:
        """What an agent won with the luck taken out; None where the match was not adjusted."""
        samples = self.adjusted_samples_mbb
        return None if samples is None else float(samples[:, agent].mean())

    def adjusted_ci95(self, agent: int = 0) -> float | None:
        """Half the width of the 95% interval of `adjusted_mbb_per_hand`."""
        samples = self.adjusted_samples_mbb
        return None if samples is None else half_width(samples[:, agent])

    def row(self, agent: int = 0) -> dict[str, float | None]:
        """What an agent won, plain and adjusted, for JSON; null where there is no such figure."""
        widths = [self.ci95(agent), self.adjusted_ci95(agent)]
        finite = [width if width is not None and width < float("inf") else None for width in widths]
        return {
            "mbb_per_hand": self.mbb_per_hand(agent),
            "ci95": finite[0],
            "adjusted_mbb_per_hand": self.adjusted_mbb_per_hand(agent),
            "adjusted_ci95": finite[1],
        }

    def frame(self) -> Any:
        """A pandas DataFrame with a row per agent: mbb_per_hand and half its 95% interval, plain and adjusted."""
        import pandas as pd

        columns = ["agent", "mbb_per_hand", "ci95", "adjusted_mbb_per_hand", "adjusted_ci95"]
        rows = [
            (name, self.mbb_per_hand(i), self.ci95(i), self.adjusted_mbb_per_hand(i), self.adjusted_ci95(i))
            for i, name in enumerate(self.names)
        ]
        frame = pd.DataFrame(rows, columns=columns)
        return frame if self.adjusted is not None else frame[columns[:3]]

    def __repr__(self) -> str:
        luckless = self.adjusted is not None
        said = ", ".join(
            f"{name} {self.mbb_per_hand(i):+.1f} ± {self.ci95(i):.1f}"
            + (f" (adjusted {self.adjusted_mbb_per_hand(i):+.1f} ± {self.adjusted_ci95(i):.1f})" if luckless else "")
            for i, name in enumerate(self.names)
        )
        return f"<{self.hands:,} hands of {self.game.name}: {said} mbb/h>"


def half_width(samples: Array) -> float:
    """Half the width of the 95% interval of the mean of independent samples; infinite for a single one."""
    return float(1.96 * samples.std(ddof=1) / np.sqrt(len(samples))) if len(samples) > 1 else float("inf")


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
    threads: int = 2,
    table: Table | None = None,
    progress: Progress = no_progress,
) -> MatchResult:
    """Play at least `hands` hands (whole deals in all seatings); write `log`'s files if named.

    Parameters: one agent per player of `game`; `log` x or x.log gives x.0.log, x.1.log, one per seating, and
    `probabilities` names the Parquet file of the agents' true probabilities (True: x.probs.parquet beside the logs);
    `adjusted` takes the luck out of the results as well, in games where that is possible; a number from 2 on averages
    them over so many hands that the last agent could have held (with @lbr its opponent, 16 unless told otherwise);
    `table` plays on a cluster, with the same result (here
    where an agent learns from hand to hand). Returns what each agent won.

    >>> from pipeline.agents import resolve
    >>> from pipeline.poker.game import builtin
    >>> kuhn = builtin("kuhn.limit.2p")
    >>> play_match([resolve("@raise", kuhn), resolve("@fold", kuhn)], kuhn, hands=100)
    <100 hands of kuhn.limit.2p: raise +1000.0 ± 0.0, fold -1000.0 ± 0.0 mbb/h>
    """
    log = Path(log) if log is not None else None
    probabilities = Path(probabilities) if isinstance(probabilities, str) else probabilities
    _check(agents, game, hands, log, probabilities)
    began = time.perf_counter() - seconds_compiling()
    order = seatings(game.players)
    deals = -(-hands // len(order))
    names = distinct([agent.name for agent in agents])
    try:
        payoffs = np.empty((deals, *order.shape))
    except (MemoryError, ValueError, OverflowError):
        raise PipelineError(f"no memory for the results of {hands:,} hands: play fewer") from None
    learners = [(i, agent) for i, agent in enumerate(agents) if isinstance(agent, Learner)]
    size = max(1, min([BLOCK, *(agent.interval for _, agent in learners)]) // len(order))
    if learners:
        table = None  # whoever learns from hand to hand plays in one place
    else:
        shared = threads if table is None or probabilities else table.cluster.threads  # the file shows its blocks
        size = _even(deals, size, max(1, LEAST_BLOCK // len(order)), shared)
    for _, agent in learners:
        look_back_beside(agent, False)
        agent.begin()
    imagined, holdings = whom(agents, adjusted)
    plan = MatchPlan(
        *(game, names, deals, size, seed, shared_luck, log, probabilities),
        adjusted=bool(adjusted) and supports(game),
        imagined=imagined,
        holdings=holdings,
    )
    adjuster = plan.adjuster(threads)
    with ExitStack() as stack:
        transcript = plan.transcript()
        if transcript is not None:
            stack.enter_context(transcript)
        if table is not None:
            played = play_blocks(plan, table)
        else:
            play = partial(plan.play, agents, transcript=transcript, adjuster=adjuster)
            played = _in_order(play, range(0, deals, size), 1 if learners else threads)
        for made in played:
            payoffs[made.first : made.first + size] = made.won
            if adjuster is not None and made.prepared is not None:
                adjuster.add(made.prepared)
            for i, agent in learners:
                assert made.block is not None
                agent.seen(made.block.seen_by(i))
            if transcript is not None and made.pages is not None:
                transcript.write(made.pages)
            progress(min(made.first + size, deals) * len(order), deals * len(order))
    chips = _by_agent(adjuster.payoffs(), order) if adjuster is not None else None
    seconds = max(time.perf_counter() - seconds_compiling() - began, 1e-6)  # compiling comes once
    return MatchResult(game, names, payoffs, seconds, transcript.logs if transcript is not None else (), chips)


def _even(deals: int, most: int, least: int, threads: int) -> int:
    """Deals of a block, at most `most`: no thread waits while another plays a last large block.

    >>> _even(10_000, 8192, 512, 2)
    5000
    """
    rounds = -(-deals // (most * max(1, threads)))
    return min(most, max(least, -(-deals // (rounds * max(1, threads)))))


def _by_agent(chips: Array, order: Array) -> Array:
    """(deals, seatings, agents) from what all hands of a match paid by position (hands, players)."""
    players = order.shape[1]
    deal, seating = np.divmod(np.arange(len(chips)), len(order))
    positions = (np.argsort(order, axis=1)[seating] - deal[:, None]) % players
    return np.take_along_axis(chips, positions, axis=1).reshape(-1, len(order), players)


def _check(agents: Sequence[Agent], game: Game, hands: int, log: Path | None, probabilities: Path | bool) -> None:
    """Refuse what cannot be played."""
    if len(agents) != game.players:
        raise PipelineError(f"{game.name} is for {game.players} players, not {len(agents)}: name as many agents")
    if hands < 1:
        raise PipelineError(f"a match has at least one hand, not {hands}")
    if probabilities and log is None:
        raise PipelineError("probabilities are written beside a log: name one with --log")
    for agent in agents:
        if agent.game != game:
            raise PipelineError(f"{agent.name} plays {agent.game.name}, not {game.name}")


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names with `.2`, `.3` ... added to those that came before.

    >>> distinct(["call", "raise", "call"])
    ('call', 'raise', 'call.2')
    """
    found: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name}.{number}"
        found.append(candidate)
    return tuple(found)


def _in_order(work: Callable[[int], T], items: Iterable[int], threads: int) -> Iterator[T]:
    """The results of `work` in the order of `items`, a few items ahead in threads; one thread works item by item."""
    if threads <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
