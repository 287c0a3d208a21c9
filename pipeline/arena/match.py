"""Duplicate matches: agents, a game, a number of hands and a seed go in, a `MatchResult` and its logs come out.

Every deal is played once per seating (`pipeline.arena.seatings`), so that the luck of the cards is shared; the interval
is over deals, whose seatings together are one sample. The same seed gives the same match whatever the size of the
blocks or the number of threads. `pipeline.arena.lockstep` plays the hands, `pipeline.arena.transcript` writes the logs.

With `shared_luck` the seatings of a deal also share the luck of the agents' own mixing: two agents that would play
alike take the same action where they meet the same situation. That shortens the interval of their difference (its
mean stays the same), but the hands of the seatings are no longer independent: such logs are poor training data.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.agents import Agent, Learner
from pipeline.arena.lockstep import Block
from pipeline.arena.seatings import seatings
from pipeline.arena.transcript import Pages, Transcript
from pipeline.errors import PipelineError
from pipeline.files import Progress, quiet
from pipeline.game import Game

__all__ = ["MatchResult", "distinct", "play_match"]

Array = npt.NDArray[Any]
T = TypeVar("T")

BLOCK = 16384
"""hands in lockstep: enough to ask models in bulk, few enough for the processor's cache"""


@dataclass(frozen=True, repr=False)
class MatchResult:
    """What came of a match."""

    game: Game
    names: tuple[str, ...]
    payoffs: Array
    """(deals, seatings, agents): net chips"""
    seconds: float
    logs: tuple[Path, ...] = ()

    @property
    def hands(self) -> int:
        """Hands played, all seatings counted."""
        return int(self.payoffs.shape[0] * self.payoffs.shape[1])

    @property
    def samples_mbb(self) -> Array:
        """(deals, agents): thousandths of a big blind per hand, mean over a deal's seatings."""
        return np.asarray(self.payoffs.mean(axis=1) * (1000.0 / self.game.big_blind))

    def mbb_per_hand(self, agent: int = 0) -> float:
        """What an agent won, in thousandths of a big blind per hand."""
        return float(self.samples_mbb[:, agent].mean())

    def ci95(self, agent: int = 0) -> float:
        """Half the width of the 95% interval of `mbb_per_hand`, deals as samples; infinite for a single deal."""
        samples = self.samples_mbb[:, agent]
        return float(1.96 * samples.std(ddof=1) / np.sqrt(len(samples))) if len(samples) > 1 else float("inf")

    def frame(self) -> Any:
        """A pandas DataFrame with a row per agent: mbb_per_hand and half its 95% interval."""
        import pandas as pd

        rows = [(name, self.mbb_per_hand(i), self.ci95(i)) for i, name in enumerate(self.names)]
        return pd.DataFrame(rows, columns=["agent", "mbb_per_hand", "ci95"])

    def __repr__(self) -> str:
        said = ", ".join(
            f"{name} {self.mbb_per_hand(i):+.1f} ± {self.ci95(i):.1f}" for i, name in enumerate(self.names)
        )
        return f"<{self.hands:,} hands of {self.game.name}: {said} mbb/h>"


def play_match(
    agents: Sequence[Agent],
    game: Game,
    *,
    hands: int,
    seed: int = 0,
    log: Path | str | None = None,
    probabilities: Path | str | bool = False,
    shared_luck: bool = False,
    threads: int = 2,
    block: int = BLOCK,
    progress: Progress = quiet,
) -> MatchResult:
    """Play at least `hands` hands (whole deals in all seatings); write `log`'s files if named.

    Parameters: one agent per player of `game`; `log` x or x.log gives x.0.log, x.1.log, one per seating, and
    `probabilities` names the Parquet file of the agents' true probabilities (True: x.probs.parquet beside the logs).
    Returns what each agent won.

    >>> from pipeline.agents import resolve
    >>> from pipeline.game import builtin
    >>> kuhn = builtin("kuhn.limit.2p")
    >>> play_match([resolve("@raise", kuhn), resolve("@fold", kuhn)], kuhn, hands=100)
    <100 hands of kuhn.limit.2p: raise +1000.0 ± 0.0, fold -1000.0 ± 0.0 mbb/h>
    """
    log = Path(log) if log is not None else None
    probabilities = Path(probabilities) if isinstance(probabilities, str) else probabilities
    _check(agents, game, hands, log, probabilities)
    began = time.perf_counter()
    order = seatings(game.players)
    deals = -(-hands // len(order))
    names = distinct([agent.name for agent in agents])
    payoffs = np.empty((deals, *order.shape))
    learners = [(i, agent) for i, agent in enumerate(agents) if isinstance(agent, Learner)]
    size = max(1, min([block, *(agent.interval for _, agent in learners)]) // len(order))
    for _, agent in learners:
        agent.begin()

    with ExitStack() as stack:
        transcript = (
            stack.enter_context(Transcript(log, game, names, order, deals, seed, probabilities)) if log else None
        )

        def play(first: int) -> tuple[Block, Pages | None]:
            made = Block.dealt(game, seed, first, min(size, deals - first), order, shared_luck)
            made.play(agents, keep=bool(probabilities))
            return made, transcript.render(made) if transcript is not None else None

        for made, pages in _in_order(play, range(0, deals, size), 1 if learners else threads):
            payoffs[made.first : made.first + size] = made.by_agent()
            for i, agent in learners:
                agent.seen(made.seen_by(i))
            if transcript is not None and pages is not None:
                transcript.write(pages)
            progress(min(made.first + size, deals) * len(order), deals * len(order))
    seconds = time.perf_counter() - began
    return MatchResult(game, names, payoffs, seconds, transcript.logs if transcript is not None else ())


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
