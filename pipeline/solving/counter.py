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
equilibrium; `curve` has all that were tried. Where answers are costly these are few, each chosen by those before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.places import small_rows
from pipeline.solving.small import SmallGame
from pipeline.solving.small_counter import Belief, respond, winnings

METHODS = ("best", "rnr", "dbr")
HALF = 1.0
"""the default of `Evidence.half`"""
PRIOR = 2.0
"""so many decisions of the equilibrium are added to those that the logs show"""

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""tried where answers cost little, up to the first that risks too much ..."""
HALVINGS = 4
"""... and then so many between that one and the one before"""
FIRST, BOLDEST, TRIES = 0.25, 0.95, 4
"""where answers are costly: the share that is tried first, the largest one, and how many are tried at most"""
WANTED, NEAR = 0.95, 0.85
"""the part of the allowed risk that a share is meant to take, and the part from which on no other is tried"""
STEEP = 1.5
"""the risk of a counter is taken to grow with its share to this power, until two shares have shown how it grows"""
STEP = 3.0
"""the next share is at most so many times a share that was tried, or one part in so many of it"""
FLAT = 0.1
"""the least such power, as far as the share goes down: solving has errors, which are a risk at every share"""
LEAST = 0.01
"""a risk under this part of what is allowed is nothing but noise, and taken for so much"""


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
    def costly(self) -> bool:
        """Whether an answer takes so long that few shares are tried."""

    def answer(self, method: str, share: float, progress: Progress) -> Array:
        """The strategy that trusts the evidence to this share."""

    def worth(self, strategy: Array, share: float, progress: Progress) -> Worth:
        """What a strategy wins from the model and what it risks."""


def check_method(method: str, share: float | None) -> None:
    """Refuse a method that there is not, and a share that it does not take."""
    if method not in METHODS:
        raise PipelineError(f"no method {method!r}{nearest(method, METHODS)}")
    if share is not None and not 0 <= share <= 1:
        raise PipelineError(f"a share is 0 to 1, not {share}")
    if share is not None and method == "best" and share < 1:
        raise PipelineError(f"a best response trusts the model wholly: a share of {share:g} is for rnr and dbr")


def choose(
    setting: Setting,
    method: str,
    *,
    share: float | None = None,
    risk: float,
    progress: Progress = no_progress,
) -> Counter:
    """Find a counter-strategy.

    Parameters: `share` names how far the model is trusted; without it the one is kept that wins most among those tried
    whose exploitability stays within `risk` (in the setting's unit) of the equilibrium's.
    """
    check_method(method, share)
    if not 0 <= risk < math.inf:
        raise PipelineError(f"a risk is a finite number from 0 on, not {risk}")
    named = 1.0 if method == "best" else share
    parts = 2 * (1 + (1 if named is not None else TRIES if setting.costly else len(SHARES) + HALVINGS))
    tried: dict[float, tuple[Worth, Array]] = {}

    def attempt(one: float) -> float:
        """Find the answer at a share; returns how much more exploitable it is than the equilibrium."""

        def part(number: int) -> Progress:
            at = 2 * len(tried) + number
            return lambda done, total: progress(at * total + done, total * parts)

        strategy = setting.answer(method, one, part(0))
        worth = setting.worth(strategy, one, part(1))
        tried[one] = worth, strategy
        return worth.exploitability - tried[0.0][0].exploitability

    attempt(0.0)
    if named is not None:
        kept = named
        if kept > 0:
            attempt(kept)
    else:
        _attempt_within(attempt, risk, costly=setting.costly)
        limit = tried[0.0][0].exploitability + risk
        kept = max(
            (one for one in tried if tried[one][0].exploitability <= limit), key=lambda one: tried[one][0].winnings
        )
    curve = tuple(tried[one][0] for one in sorted(tried))
    return Counter(method, tried[kept][1], tried[kept][0], tried[0.0][0], curve)


def _attempt_within(attempt: Callable[[float], float], risk: float, *, costly: bool) -> None:
    """Try shares up to the one that takes all of the risk; where each is costly, a few about that one."""
    if not costly:
        low = 0.0
        for high in SHARES:
            if attempt(high) > risk:
                break
            low = high
        else:
            return
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if attempt(middle) > risk else (middle, high)
        return
    found: list[tuple[float, float]] = []
    while (share := next_share(found, risk)) is not None:
        found.append((share, attempt(share)))


def next_share(found: Sequence[tuple[float, float]], risk: float) -> float | None:
    """The share to try next, so that a few lead to one that takes nearly all of the risk; None: enough were tried.

    Parameters: `found`, each share that was tried with its risk; `risk`, what is allowed.

    >>> next_share([], 100)
    0.25
    >>> next_share([(0.25, 180)], 100)
    0.163
    >>> next_share([(0.25, 180), (0.163, 70)], 100)
    0.187
    >>> next_share([(0.25, 180), (0.163, 70), (0.187, 94)], 100) is None
    True
    """
    if not found:
        return FIRST if risk > 0 else None
    if len(found) == TRIES or any(NEAR * risk <= one <= risk for _, one in found):
        return None
    points = sorted((share, max(one, LEAST * risk)) for share, one in found)
    over = next((i for i, (_, one) in enumerate(points) if one > risk), len(points))
    begin = max(min(over - 1, len(points) - 2), 0)
    near = points[begin : begin + 2]
    growth = STEEP
    if len(near) == 2:
        (one, risked), (other, more) = near
        growth = max(math.log(more / risked) / math.log(other / one), FLAT if over == 0 else 1.0)
    share, risked = near[0] if over == 0 else near[-1]
    wanted = share * min(max((WANTED * risk / risked) ** (1 / growth), 1 / STEP), STEP)
    if over == 0 and len(found) == TRIES - 1:  # the last one should be within the risk
        wanted = share / STEP
    share = min(float(f"{wanted:.3g}"), BOLDEST)
    return None if share in dict(found) else share


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
    costly: bool = False

    def answer(self, method: str, share: float, progress: Progress = no_progress) -> Array:
        return respond(self.game, self.evidence.belief(method, share), progress=progress).strategy

    def worth(self, strategy: Array, share: float, progress: Progress = no_progress) -> Worth:
        from pipeline.solving.cfr import ExactSolver

        won = winnings(self.game, strategy, self.evidence.model)
        return Worth(share, 1000 * won, 0.0, 1000 * ExactSolver(self.game).exploitability(strategy), 0.0)
