"""Seat agents by the duplicate format, and hold the result of such a match.

Numbers of players and chips by deal go in; seatings, means and intervals come out. Each deal is played once per
seating, so that the luck of the cards is shared. With two or three players all orders of the agents are played: two, or
six, so that each agent acts before and after each other one. With more players (Kuhn poker takes up to 12) the orders
are too many, and only the rotations of one order are played.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.models.measures import BATCHES, Estimate, Winnings, half_width, plot_winnings
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import check_name
from pipeline.runtime.tabular import Tabular

if TYPE_CHECKING:
    from pipeline.runtime.pictures import Picture


def seatings(players: int) -> Array:
    """Return the orders in which a deal is played.

    Parameters: the number of players. Returns: int64 (seatings, players), the agent in each seat; at position p of hand
    h sits the agent of seat (p + h) mod players, as in ACPC matches. The rotations of the first order come first.

    >>> seatings(2).tolist()
    [[0, 1], [1, 0]]
    >>> seatings(3).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]]
    """
    # up to three players: every order that begins with agent 0, each followed by its rotations
    starts = list(permutations(range(players))) if players <= 3 else [tuple(range(players))]
    orders = [start[i:] + start[:i] for start in starts if start[0] == 0 for i in range(players)]
    return np.array(orders, dtype=np.int64)


def positions(order: Array, first: int, hands: int) -> Array:
    """Return (hands, agents) the position of each agent in hands that begin with deal `first`, deal by deal."""
    deal, seating = np.divmod(np.arange(hands), len(order))
    return np.asarray((np.argsort(order, axis=1)[seating] - first - deal[:, None]) % order.shape[1])


def by_agent(chips: Array, order: Array, first: int = 0) -> Array:
    """Return (deals, seatings, agents) from the payoffs of hands by position (hands, players)."""
    won = np.take_along_axis(chips, positions(order, first, len(chips)), axis=1)
    return won.reshape(-1, *order.shape)


def seating_logs(log: Path, count: int) -> tuple[Path, ...]:
    """Return the logs of a match in `count` seatings: x.0.log, x.1.log ... for x or x.log."""
    check_name(log)
    if log.exists() and not (log.is_file() or log.is_dir()):
        raise PipelineError(f"{log} is a device: name the start of the logs' names, like {Path('logs', 'x')}")
    if not log.name.isprintable():  # rows of true probabilities and match headers name the log
        raise PipelineError(f"{log.name!r} has characters that cannot be printed: give the logs another name")
    base = log.name.removesuffix(".log")
    return tuple(log.with_name(f"{base}.{seating}.log") for seating in range(count))


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, with `.2`, `.3` ... behind those that came before.

    >>> distinct(["call", "raise", "call"])
    ('call', 'raise', 'call.2')
    """
    distinct_names: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in distinct_names:
            number += 1
            candidate = f"{name}.{number}"
        distinct_names.append(candidate)
    return tuple(distinct_names)


@dataclass(frozen=True, repr=False)
class MatchResult(Tabular):
    """The result of a match: what each agent won on every deal, and the logs that were written."""

    game: Game
    names: tuple[str, ...]
    payoffs: Array
    """(deals, seatings, agents): net chips"""
    seconds: float
    logs: tuple[Path, ...] = ()
    adjusted: Array | None = None
    """(deals, seatings, agents): net chips with the luck taken out, where that was asked for and is possible"""
    learning: bool = False
    """whether an agent learned from hand to hand: the samples of intervals are then batches of consecutive deals"""

    @property
    def hands(self) -> int:
        """Hands played, all seatings counted."""
        return int(self.payoffs.shape[0] * self.payoffs.shape[1])

    @property
    def samples_mbb(self) -> Array:
        """Return (deals, agents) thousandths of a big blind per hand, mean over a deal's seatings."""
        return self._samples(self.payoffs)

    @property
    def adjusted_samples_mbb(self) -> Array | None:
        """Return `samples_mbb` with the luck taken out; None where the match was not adjusted."""
        return None if self.adjusted is None else self._samples(self.adjusted)

    @property
    def best_samples_mbb(self) -> Array:
        """Return the adjusted samples where there are any, else the plain ones: both have the same mean."""
        return self._samples(self.payoffs if self.adjusted is None else self.adjusted)

    def _samples(self, chips: Array) -> Array:
        return np.asarray(chips.mean(axis=1) * (1000.0 / self.game.big_blind))

    def mbb_per_hand(self, agent: int = 0) -> float:
        """Return the mean win of an agent, in thousandths of a big blind per hand."""
        return float(self.samples_mbb[:, agent].mean())

    def ci95(self, agent: int = 0) -> float:
        """Return half the width of the 95% interval of `mbb_per_hand`; infinite for a single deal.

        Deals are the samples, or batches of deals where an agent was learning (`pipeline.models.measures.half_width`).
        """
        return half_width(self.samples_mbb[:, agent], learning=self.learning)

    def adjusted_mbb_per_hand(self, agent: int = 0) -> float | None:
        """Return the mean win with the luck taken out; None where the match was not adjusted."""
        samples = self.adjusted_samples_mbb
        return None if samples is None else float(samples[:, agent].mean())

    def adjusted_ci95(self, agent: int = 0) -> float | None:
        """Return half the width of the 95% interval of `adjusted_mbb_per_hand`."""
        samples = self.adjusted_samples_mbb
        return None if samples is None else half_width(samples[:, agent], learning=self.learning)

    def winnings(self, agent: int = 0) -> Winnings:
        """Return an agent's mean wins with their intervals, plain and adjusted."""
        adjusted, width = self.adjusted_mbb_per_hand(agent), self.adjusted_ci95(agent)
        return Winnings(
            Estimate.around(self.mbb_per_hand(agent), self.ci95(agent)),
            None if adjusted is None or width is None else Estimate.around(adjusted, width),
        )

    @property
    def batches(self) -> int | None:
        """Return over how many batches of deals the intervals are; None where deals are the samples."""
        return min(BATCHES, len(self.payoffs)) if self.learning else None

    def json(self, typed: Sequence[str]) -> dict[str, Any]:
        """Return every agent's winnings, the first one's also on top; `typed` are the agents as they were named."""
        rows = [self.winnings(i).json() for i in range(len(typed))]
        return {
            **dict(zip("abcdefghijklm", typed, strict=False)),
            "hands": self.hands,
            **rows[0],
            "interval_batches": self.batches,
            "seconds": self.seconds,
            "agents": [
                {"agent": agent, "name": name, **row} for agent, name, row in zip(typed, self.names, rows, strict=True)
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per agent: its name and the cells of `Winnings`."""
        return [{"agent": name, **self.winnings(i).row()} for i, name in enumerate(self.names)]

    def plot(self) -> Picture:
        """Return a picture of the winnings with their intervals."""
        return plot_winnings(self.names, [self.winnings(i) for i in range(len(self.names))])

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {self.winnings(i).text()}" for i, name in enumerate(self.names))
        return f"<{self.hands:,} hands of {self.game.name}: {figures} mbb/h>"
