"""Counter-strategies: how much to trust a model of an opponent, and what that wins and risks.

In: a model of an opponent, and where it comes from logs how often each decision was seen. Out: a `Counter`: a strategy,
what it wins from the model, and what a player who knows it could win from it.

Three methods by one solver (`small_counter` in Kuhn and Leduc, exactly; `bucket_counter` in limit hold'em, over
buckets). Each trusts the model to a share from 0 to 1; 0 is an equilibrium, whatever the method:

    best    the best response to the model: share 1
    rnr     restricted Nash response: the opponent keeps to the model in this share of the hands
    dbr     data-biased response: in this share of the hands it keeps to the model where the logs are certain, less
            where they show little: at n / (n + `half`) of the times at a decision that they show n times

Without a share, the one is chosen that wins most from the model at no more than `risk` above the exploitability of the
equilibrium; `curve` has all that were tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.errors import PipelineError, nearest
from pipeline.files import Progress, quiet
from pipeline.game import Game
from pipeline.solve.places import small_rows
from pipeline.solve.small import SmallGame
from pipeline.solve.small_counter import Belief, respond, winnings

__all__ = ["METHODS", "Counter", "Evidence", "Setting", "SmallSetting", "Worth", "choose", "count_small", "estimate"]

Array: TypeAlias = npt.NDArray[Any]

METHODS = ("best", "rnr", "dbr")
HALF = 1.0
"""of `Evidence.half`, where nothing else is said"""
PRIOR = 2.0
"""so many decisions of the equilibrium are added to those that the logs show"""


@dataclass(frozen=True)
class Evidence:
    """What is known of an opponent, a row per decision (see `layout` and `small`)."""

    model: Array
    """(rows, 3) probabilities"""
    seen: Array | None = None
    """(rows,) how often the logs show each decision; None where the opponent's strategy itself is known"""
    half: float = HALF
    """a decision that the logs show so often is trusted half as much as one that they show without end"""
    added: float = 0.0
    """decisions of the equilibrium that were added to those that the logs show, the same number at each"""

    @property
    def certainty(self) -> Array | None:
        """(rows,) how far the logs tell what is done at each decision; None: everything is known."""
        return None if self.seen is None else np.asarray(self.seen / (self.seen + self.half))

    def belief(self, method: str, share: float) -> Belief:
        """What a method makes of this: the model is trusted in a share of the hands, by decision too with `dbr`."""
        return Belief(self.model, share, self.certainty if method == "dbr" else None)


class Worth(NamedTuple):
    """What a strategy wins from the model and what it risks, in the setting's unit."""

    share: float
    winnings: float
    winnings_ci95: float
    exploitability: float
    exploitability_ci95: float


@dataclass(frozen=True)
class Counter:
    """A counter-strategy and how it was chosen."""

    method: str
    strategy: Array
    worth: Worth
    equilibrium: Worth
    """of the strategy that trusts nothing"""
    curve: tuple[Worth, ...]

    def json(self) -> dict[str, Any]:
        """For `--json` and the manifest."""
        return {
            "method": self.method,
            **self.worth._asdict(),
            "equilibrium": self.equilibrium._asdict(),
            "curve": [worth._asdict() for worth in self.curve],
        }


class Setting(Protocol):
    """A game in which counters are found."""

    @property
    def evidence(self) -> Evidence:
        """What is known of the opponent."""

    @property
    def unit(self) -> str:
        """Of winnings and exploitability."""

    @property
    def shares(self) -> tuple[float, ...]:
        """What is tried where no share is named, from careful to bold."""

    @property
    def costly(self) -> bool:
        """Whether an answer takes so long that few shares are tried."""

    def answer(self, method: str, share: float, progress: Progress) -> Array:
        """The strategy that trusts the evidence to this share."""

    def worth(self, strategy: Array, share: float) -> Worth:
        """What a strategy wins from the model and what it risks."""


def choose(
    setting: Setting,
    method: str,
    *,
    share: float | None = None,
    risk: float,
    progress: Progress = quiet,
    tell: Callable[[Worth], None] = lambda _: None,
) -> Counter:
    """Find a counter-strategy.

    Parameters: `share` names how far the model is trusted; without it the one is kept that wins most among those tried
    whose exploitability stays within `risk` (in the setting's unit) of the equilibrium's. `tell` hears of each.
    """
    if method not in METHODS:
        raise PipelineError(f"no method {method!r}{nearest(method, METHODS)}")
    if share is not None and not 0 <= share <= 1:
        raise PipelineError(f"a share is 0 to 1, not {share}")
    shares = (1.0,) if method == "best" else setting.shares if share is None else (share,)
    parts = 1 + (math.ceil(math.log2(len(shares) + 1)) if setting.costly else len(shares))
    tried: dict[float, tuple[Worth, Array]] = {}

    def attempt(one: float) -> Worth:
        place = len(tried)
        strategy = setting.answer(method, one, lambda done, total: progress(place * total + done, total * parts))
        worth = setting.worth(strategy, one)
        tried[one] = worth, strategy
        tell(worth)
        return worth

    limit = attempt(0.0).exploitability + risk
    if len(shares) == 1:
        kept = shares[0]
        attempt(kept)
    else:
        _attempt_within(attempt, shares, limit, costly=setting.costly)
        kept = max(
            (one for one in tried if tried[one][0].exploitability <= limit), key=lambda one: tried[one][0].winnings
        )
    curve = tuple(tried[one][0] for one in sorted(tried))
    return Counter(method, tried[kept][1], tried[kept][0], tried[0.0][0], curve)


def _attempt_within(
    attempt: Callable[[float], Worth], shares: tuple[float, ...], limit: float, *, costly: bool
) -> None:
    """Try shares up to the first whose exploitability is over the limit; by halving where each is costly."""
    if not costly:
        for one in shares:
            if attempt(one).exploitability > limit:
                return
        return
    low, high = 0, len(shares)
    while low < high:
        middle = (low + high) // 2
        if attempt(shares[middle]).exploitability > limit:
            high = middle
        else:
            low = middle + 1


def estimate(counts: Array, prior: Array, weight: float = PRIOR) -> Evidence:
    """What counts of decisions (rows, 3) say of an opponent that is thought to play `prior` until shown otherwise."""
    seen = counts.sum(axis=1)
    return Evidence((counts + weight * prior) / (seen + weight)[:, None], seen, added=weight)


def count_small(game: Game, rows: Array, action: Array) -> Array:
    """(rows of the game, 3) how often each action was taken at each decision of a small game."""
    small = SmallGame(game)
    counts = np.zeros((len(small.tree.states) * small.infos, 3))
    np.add.at(counts, (small_rows(small, rows), action.astype(np.int64)), 1.0)
    return counts


@dataclass(frozen=True)
class SmallSetting:
    """Kuhn and Leduc: all values are exact. The unit is a thousandth of the ante per hand."""

    game: Game
    evidence: Evidence
    unit: str = "milli-antes per hand"
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
    costly: bool = False

    def answer(self, method: str, share: float, progress: Progress = quiet) -> Array:
        return respond(self.game, self.evidence.belief(method, share), progress=progress).strategy

    def worth(self, strategy: Array, share: float) -> Worth:
        from pipeline.solve.cfr import ExactSolver

        won = winnings(self.game, strategy, self.evidence.model)
        return Worth(share, 1000 * won, 0.0, 1000 * ExactSolver(self.game).exploitability(strategy), 0.0)
