"""Counter-strategies: best, restricted Nash and data-biased responses to a model of an opponent.

In: a model of an opponent and, where it comes from logs, how often each decision was seen (`Evidence`). Out: a
`Counter`: a strategy for both seats, what it wins from the model, and what a best response wins from it.

Three methods; each trusts the model to a share from 0 to 1, and 0 is an equilibrium, whatever the method:

    best    the best response to the model: share 1
    rnr     restricted Nash response (Johanson, Zinkevich and Bowling 2007): in this share of the hands the opponent
            plays the model from beginning to end; in the others it is free and learns to play against us. No strategy
            that is exploitable no more than this one wins more from the model
    dbr     data-biased response (Johanson and Bowling 2009): in this share of the hands the opponent plays the model
            at n / (n + `half`) of the times that it comes to a decision which the logs show n times. In the paper one
            number by decision says both how sure the data are and how much is risked; here the risk is by hand as in
            rnr, because a player who may leave the model at every decision anew has soon left it in nearly all hands

Without a share, `choose_counter` takes the one that wins most from the model at no more than `risk` above the
exploitability of the equilibrium; `curve` has all that were tried. Where winnings are sampled, those of the largest are
too large on average, so the winnings of the chosen one are measured once more, on deals that it was not chosen by.

Small games are solved exactly, by CFR+ (see `cfr`): our regrets are those against the mixture, the opponent's those of
its free part. That this converges is proved for rnr; for dbr, where the opponent's regrets come from hands of both
kinds, it is not. Limit hold'em is solved over buckets by the traversals of `holdem`, and what a strategy wins and
risks is sampled. An agent that does not play over these buckets is answered by its projection on them, but what a
strategy wins is measured in matches against the agent itself (`BucketSetting.at_table`). In both each seat is a run of
its own, because the opponent's free part learns against that seat alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from pipeline.models.measures import Estimate
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array, Floats, Singles
from pipeline.runtime.diskcache import cache_root, load_bytes, store_bytes
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, deal_hands, dealer_of
from pipeline.solving.cfr import (
    ExactSolver,
    SolverArrays,
    exact_best_response,
    match_regrets,
    to_mixes,
    value_of,
    walk_deals,
)
from pipeline.solving.groups import STRENGTH_GROUPS, learning_groups, strength_groups
from pipeline.solving.holdem import (
    CHUNK,
    NO_SHARING,
    BucketSolver,
    ClusterWorkers,
    Dealer,
    Restriction,
    SharedLearning,
    best_response,
    regret_depth,
    resume_checkpoint,
    run_chunks,
    save_checkpoint,
)
from pipeline.solving.layout import HeadToHead, Layout, versus
from pipeline.solving.lookup import betting_paths, small_rows
from pipeline.solving.small import SmallGame
from pipeline.solving.strategy import dequantise, quantise

METHODS = ("best", "rnr", "dbr")
ITERATIONS = 4_000
WARM_UP_PART = 4
"""k, where the first k-th part of the iterations is left out of the average, as it has traces of first guesses"""


@dataclass(frozen=True)
class Belief:
    """A model of an opponent and how far it is trusted."""

    model: Floats
    """(rows, 3) its probabilities at each decision"""
    hand_share: float = 0.0
    """the share of the hands in which it plays the model; in the others it is free throughout"""
    decision_share: Floats | None = None
    """(rows,) in those hands, the share of the times that it plays the model at each decision; None is always"""

    def __post_init__(self) -> None:
        if not 0 <= self.hand_share <= 1:
            raise PipelineError(f"the share of hands that follow the model is 0 to 1, not {self.hand_share}")

    @property
    def is_pure_model(self) -> bool:
        """Return whether the opponent plays the model always and is never free."""
        return self.hand_share == 1 and self.decision_share is None


DEFAULT_HALF = 1.0
"""the default of `Evidence.half`"""
PRIOR_WEIGHT = 2.0
"""decisions of the equilibrium that are added to those that the logs show"""
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""tried where answers cost little, up to the first that risks too much ..."""
HALVINGS = 4
"""... and then shares tried by bisection between that one and the one before"""
FIRST_SHARE, LARGEST_SHARE, MAX_TRIES = 0.25, 0.95, 4
"""where answers are costly: the share that is tried first, the largest one, and how many are tried at most"""
TARGET_RISK, ENOUGH_RISK = 0.95, 0.85
"""the part of the allowed risk that a share is meant to take, and the part from which on no other is tried"""
RISK_POWER = 1.5
"""the risk of a counter is taken to grow with its share to this power, until two shares have shown how it grows"""
LARGEST_STEP = 3.0
"""the next share is at most this factor above or below a share that was tried"""
LEAST_POWER = 0.1
"""the least such power when the share is lowered: solving has errors, which are a risk at every share"""
RISK_FLOOR = 0.01
"""a measured risk under this part of what is allowed is noise, and is raised to it"""


@dataclass(frozen=True)
class Evidence:
    """Knowledge of an opponent's strategy, a row per decision (see `layout` and `small`)."""

    model: Array
    """(rows, 3) probabilities"""
    times_seen: Array | None = None
    """(rows,) how often the logs show each decision; None where the opponent's strategy itself is known"""
    half: float = DEFAULT_HALF
    """a decision that the logs show so often is trusted half as much as one that they show without end"""
    added: float = 0.0
    """decisions of the equilibrium that were added to those that the logs show, the same number at each"""

    @property
    def certainty(self) -> Array | None:
        """Return (rows,) the share of each decision that the logs decide; None where the strategy is known."""
        return None if self.times_seen is None else np.asarray(self.times_seen / (self.times_seen + self.half))

    def belief(self, method: str, share: float) -> Belief:
        """Return the belief of a method: the model is trusted in a share of the hands, with `dbr` by decision too."""
        return Belief(self.model, share, self.certainty if method == "dbr" else None)


AGENT, TABLE, COPY, PROJECTION = "agent", "table", "copy", "projection"
MEASURED_AT = {
    AGENT: "from the agent's own strategy",
    TABLE: "at the table, from the agent itself",
    COPY: "from the copy of the logs",
    PROJECTION: "from the copy's projection on buckets",
}
"""where a counter's winnings may be measured, in words"""


class Tradeoff(NamedTuple):
    """Winnings from the opponent and exploitability of a strategy, in the setting's unit."""

    share: float
    winnings: float
    winnings_ci95: float
    exploitability: float
    exploitability_ci95: float
    measured_at: str = AGENT
    """where the winnings were measured, see `MEASURED_AT`"""
    over_buckets: float | None = None
    """what it wins over buckets from the model, in hold'em: the projection of an agent, or of a copy from logs"""
    over_buckets_ci95: float | None = None

    def json(self) -> dict[str, Any]:
        """Return its entry in `--json` and in the manifest."""
        entry = self._asdict()
        for name in ("winnings", "exploitability", "over_buckets"):
            value, half = entry[name], entry.pop(f"{name}_ci95")
            entry |= (Estimate(0.0) if value is None else Estimate.around(value, half)).ends_json(f"{name}_")
        return entry


@dataclass(frozen=True)
class Counter:
    """A counter-strategy and how it was chosen."""

    method: str
    strategy: Array
    tradeoff: Tradeoff
    equilibrium: Tradeoff
    """of the strategy at a share of 0"""
    curve: tuple[Tradeoff, ...]

    def json(self) -> dict[str, Any]:
        """Return what `--json` and the manifest hold."""
        return {
            "method": self.method,
            **self.tradeoff.json(),
            "equilibrium": self.equilibrium.json(),
            "curve": [tradeoff.json() for tradeoff in self.curve],
        }


class Setting(Protocol):
    """A game and an opponent in which counter-strategies are found."""

    @property
    def evidence(self) -> Evidence:
        """Return what is known of the opponent."""

    @property
    def unit(self) -> str:
        """Return the unit of winnings and exploitability."""

    @property
    def costly(self) -> bool:
        """Return whether an answer takes so long that few shares are tried."""

    def answer(self, method: str, share: float, progress: Progress) -> Array:
        """Find the strategy that trusts the evidence to this share."""

    def measure(self, strategy: Array, share: float, progress: Progress) -> Tradeoff:
        """Measure what a strategy wins from the model and what a best response wins from it."""

    def confirm(self, strategy: Array, tradeoff: Tradeoff) -> Tradeoff:
        """Measure the winnings of a strategy that was chosen by its `tradeoff` again, on other deals."""


def check_method(method: str, share: float | None) -> None:
    """Refuse an unknown method, and a share that it does not take."""
    if method not in METHODS:
        raise PipelineError(f"no method {method!r}{nearest(method, METHODS)}")
    if share is not None and not 0 <= share <= 1:
        raise PipelineError(f"a share is 0 to 1, not {share}")
    if share is not None and method == "best" and share < 1:
        raise PipelineError(f"a best response trusts the model wholly: a share of {share:g} is for rnr and dbr")


def choose_counter(
    setting: Setting,
    method: str,
    *,
    share: float | None = None,
    risk: float,
    progress: Progress = no_progress,
) -> Counter:
    """Find a counter-strategy.

    Parameters: `share`, how far the model is trusted; without it, of those tried, the one is taken that wins
    most while its exploitability stays within `risk` (in the setting's unit) of the equilibrium's.
    """
    check_method(method, share)
    if not 0 <= risk < math.inf:
        raise PipelineError(f"a risk is a finite number from 0 on, not {risk}")
    fixed_share = 1.0 if method == "best" else share
    parts = 2 * (1 + (1 if fixed_share is not None else MAX_TRIES if setting.costly else len(SHARES) + HALVINGS))
    tried: dict[float, tuple[Tradeoff, Array]] = {}

    def attempt(share: float) -> float:
        """Find the answer at a share; returns how much more exploitable it is than the equilibrium."""

        def part(number: int) -> Progress:
            before = 2 * len(tried) + number
            return lambda done, total: progress(before * total + done, total * parts)

        strategy = setting.answer(method, share, part(0))
        tradeoff = setting.measure(strategy, share, part(1))
        tried[share] = tradeoff, strategy
        return tradeoff.exploitability - tried[0.0][0].exploitability

    attempt(0.0)
    if fixed_share is not None:
        best_share = fixed_share
        if best_share > 0:
            attempt(best_share)
    else:
        _attempt_within(attempt, risk, costly=setting.costly)
        limit = tried[0.0][0].exploitability + risk
        allowed = [share for share in tried if tried[share][0].exploitability <= limit]
        best_share = max(allowed, key=lambda share: tried[share][0].winnings)
    curve = tuple(tried[share][0] for share in sorted(tried))
    tradeoff, strategy = tried[best_share]
    if fixed_share is None:
        tradeoff = setting.confirm(strategy, tradeoff)
    return Counter(method, strategy, tradeoff, tried[0.0][0], curve)


def _attempt_within(attempt: Callable[[float], float], risk: float, *, costly: bool) -> None:
    """Try shares up to the one that takes all of the risk; where answers are costly, a few about that one."""
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
    tried: list[tuple[float, float]] = []
    while (share := next_share(tried, risk)) is not None:
        tried.append((share, attempt(share)))


def next_share(tried: Sequence[tuple[float, float]], risk: float) -> float | None:
    """Return the share to try next, so that a few lead to one that takes nearly all of the risk; None to stop.

    Parameters: `tried`, pairs of a share and its risk; `risk`, what is allowed.

    >>> next_share([], 100)
    0.25
    >>> next_share([(0.25, 180)], 100)
    0.163
    >>> next_share([(0.25, 180), (0.163, 70)], 100)
    0.187
    >>> next_share([(0.25, 180), (0.163, 70), (0.187, 94)], 100) is None
    True
    """
    if not tried:
        return FIRST_SHARE if risk > 0 else None
    if len(tried) == MAX_TRIES or any(ENOUGH_RISK * risk <= risked <= risk for _, risked in tried):
        return None
    points = sorted((share, max(risked, RISK_FLOOR * risk)) for share, risked in tried)
    over = next((i for i, (_, risked) in enumerate(points) if risked > risk), len(points))
    begin = max(min(over - 1, len(points) - 2), 0)
    near = points[begin : begin + 2]
    growth = RISK_POWER
    if len(near) == 2:
        (low, low_risk), (high, high_risk) = near
        growth = max(math.log(high_risk / low_risk) / math.log(high / low), LEAST_POWER if over == 0 else 1.0)
    share, risked = near[0] if over == 0 else near[-1]
    wanted = share * min(max((TARGET_RISK * risk / risked) ** (1 / growth), 1 / LARGEST_STEP), LARGEST_STEP)
    if over == 0 and len(tried) == MAX_TRIES - 1:  # the last one should be within the risk
        wanted = share / LARGEST_STEP
    share = min(float(f"{wanted:.3g}"), LARGEST_SHARE)
    return None if share in dict(tried) else share


# Small games, exactly


class Response(NamedTuple):
    """A counter-strategy in a small game, its winnings and its exploitability."""

    strategy: Floats
    """(rows, 3), both seats"""
    winnings: float
    """chips per hand from the model, the mean of both seats"""
    exploitability: float
    """chips per hand that a best response wins from it, the mean of both seats"""


def respond(game: Game, belief: Belief, *, iterations: int = ITERATIONS, progress: Progress = no_progress) -> Response:
    """Find the counter-strategy to a belief in a small game."""
    small = SmallGame(game)
    if game.players != 2 or not small.enumerable:
        raise PipelineError(
            f"{game.name}: counter-strategies are found in games of two players whose deals can be listed"
        )
    strategy = to_mixes(small, np.zeros_like(belief.model))  # equal shares where no deal comes
    for seat in range(2):
        if belief.is_pure_model:
            exact_best_response(small.tables, *small.deals, seat, np.ascontiguousarray(belief.model), strategy)
        else:
            mine = small.seat_rows(seat)
            strategy[mine] = _restricted_response(small, belief, seat, iterations)[mine]
        progress(seat + 1, 2)
    return Response(strategy, winnings(game, strategy, belief.model), ExactSolver(game).exploitability(strategy))


def winnings(game: Game, strategy: Floats, other: Floats) -> float:
    """Return the chips per hand that `strategy` wins from `other`, the mean of both seats."""
    small = SmallGame(game)
    mixes = [np.where(small.seat_rows(seat)[:, None], strategy, other) for seat in range(2)]
    return sum(value_of(small, mix, seat) for seat, mix in enumerate(mixes)) / 2


def _restricted_response(small: SmallGame, belief: Belief, seat: int, iterations: int) -> Floats:
    """Return our average strategy at a seat against an opponent that is free part of the time."""
    tables, (deals, weights) = small.tables, small.deals
    theirs = small.seat_rows(1 - seat)[:, None]
    decision_share = np.ones(len(belief.model)) if belief.decision_share is None else belief.decision_share
    share = np.where(theirs, decision_share[:, None], 0.0)
    regret, average, chosen, gained = (np.zeros_like(belief.model) for _ in range(4))

    def walk(player: int, mix: Floats, part: float, t: int, into: Floats = regret) -> None:
        """Add the regrets of a share of the hands."""
        if part > 0:
            walk_deals(tables, deals, weights * part, player, float(t), False, SolverArrays(into, average, mix, chosen))

    for t in range(1, iterations + 1):
        if t == iterations // WARM_UP_PART:
            average[:] = 0.0
        match_regrets(regret, small.tree.child, small.infos, True, chosen)
        # we cannot see whether this is a hand in which it keeps to the model: our regrets are over hands of both kinds
        walk(seat, share * belief.model + (1 - share) * chosen, belief.hand_share, t)
        walk(seat, chosen, 1 - belief.hand_share, t)
        match_regrets(regret, small.tree.child, small.infos, True, chosen)
        if belief.decision_share is not None:  # regrets count by how often it is free at each decision
            gained[:] = 0.0
            walk(1 - seat, share * belief.model + (1 - share) * chosen, belief.hand_share, t, gained)
            regret += (1 - share) * gained
        walk(1 - seat, chosen, 1 - belief.hand_share, t)
    return to_mixes(small, average)


def estimate_evidence(counts: Array, prior: Array, weight: float = PRIOR_WEIGHT) -> Evidence:
    """Estimate an opponent from counts of decisions (rows, 3), with a Dirichlet prior about the mix `prior`."""
    times_seen = counts.sum(axis=1)
    return Evidence((counts + weight * prior) / (times_seen + weight)[:, None], times_seen, added=weight)


def count_small(game: Game, rows: Array, action: Array) -> Array:
    """Count how often each action was taken at each decision of a small game: (rows of the game, 3)."""
    small = SmallGame(game)
    counts = np.zeros((small.rows, 3))
    np.add.at(counts, (small_rows(small, rows), action.astype(np.int64)), 1.0)
    return counts


@dataclass(frozen=True)
class SmallSetting:
    """Kuhn and Leduc, with exact values in thousandths of the ante per hand."""

    game: Game
    evidence: Evidence
    unit: str = "milli-antes per hand"
    costly: bool = False

    def answer(self, method: str, share: float, progress: Progress = no_progress) -> Array:
        return respond(self.game, self.evidence.belief(method, share), progress=progress).strategy

    def measure(self, strategy: Array, share: float, progress: Progress = no_progress) -> Tradeoff:
        won = winnings(self.game, strategy, self.evidence.model)
        lost = ExactSolver(self.game).exploitability(strategy)
        return Tradeoff(share, 1000 * won, 0.0, 1000 * lost, 0.0, AGENT if self.evidence.times_seen is None else COPY)

    def confirm(self, strategy: Array, tradeoff: Tradeoff) -> Tradeoff:
        return tradeoff  # it is exact


# Hold'em over buckets

CACHE_VERSION = 1
"""of the cached exploitability of an equilibrium"""
SAVE_EVERY = 64
"""chunks between checkpoints"""
OTHER_BETTING_WEIGHT = 0.1
"""weight of a decision that differs in the betting of earlier streets only: a copy learns from such ones too"""
PRIOR_WEIGHTS = (0.0, 10.0, 30.0, 100.0, 300.0)
"""decisions of the equilibrium that may be added to those that logs show"""
LEAST_PROBABILITY = 0.01
"""probabilities of logged decisions are raised to this: a few hands stand for all of a bucket"""
MEASURED_DEALS = 100_000
"""deals, each played from both seats, on which winnings are measured"""
RESPONSE_FACTOR, MAX_RESPONSE_DEALS = 4, 16_000_000
"""the best response that measures a counter's risk is trained on this multiple of its deals, within a limit"""


class BucketResponse(NamedTuple):
    """A counter-strategy over buckets and the opponent it was found against, (rows, 3) each."""

    strategy: Singles
    """of both seats"""
    free: Singles
    """what the opponent learnt to play against each seat where it is free; the model, where it never is"""


def respond_in_buckets(
    layout: Layout,
    dealer: Dealer,
    belief: Belief,
    *,
    deals: int,
    learning: SharedLearning | None = None,
    seed: int = 1,
    workers: int | ClusterWorkers = 2,
    folder: Path | None = None,
    about: dict[str, Any] | None = None,
    progress: Progress = no_progress,
) -> BucketResponse:
    """Find the counter-strategy to a belief over buckets, by the solver's traversals.

    Both players may start from a known strategy and learn by groups of buckets (`learning`), so that decisions which
    few deals come to are played by it rather than by guesses.

    Parameters
    ----------
    belief: the opponent's strategy, row by row of the layout, and how far it is trusted.
    deals: how many are traversed for each seat.
    workers: how many threads learn here, or the cluster whose workers do.
    learning: which buckets learn together, and a strategy that both players start from.
    folder: where checkpoints are stored; a run that was interrupted goes on from them, if the belief and
        `about` are the same.
    """
    model = np.ascontiguousarray(belief.model, np.float32)
    if belief.is_pure_model:
        best = best_response(
            layout, dealer, model, deals=deals, seed=seed, workers=workers, learning=learning, progress=progress
        )
        return BucketResponse(best, model)
    response = BucketResponse(*(np.zeros((layout.rows, 3), np.float32) for _ in BucketResponse._fields))
    chunks = -(-deals // CHUNK)
    certainty = np.zeros(0) if belief.decision_share is None else belief.decision_share
    sharing = NO_SHARING if learning is None else learning.sharing(layout, regret_depth(chunks, workers))
    opponent = hashlib.sha256(model.tobytes() + certainty.tobytes()).hexdigest()[:16] if folder is not None else ""
    for seat in range(2):
        restriction = Restriction(
            1 - seat, model, float(belief.hand_share), np.ascontiguousarray(certainty, np.float32)
        )
        solver = BucketSolver(layout, dealer, seed, model=restriction, sharing=sharing)
        if learning is not None:
            solver.average[:] = 1e-3 * learning.start
        settings = {"seat": seat, "deals": deals, "hands": belief.hand_share, "opponent": opponent, **(about or {})}
        # regrets on a cluster have another scale: neither run goes on from a checkpoint of the other
        suffix = "-cluster" if isinstance(workers, ClusterWorkers) else ""
        checkpoint = None if folder is None else folder / f"seat-{seat}{suffix}"
        if checkpoint is not None:
            resume_checkpoint(solver, checkpoint, settings)
        while solver.chunks < chunks:
            run_chunks(solver, min(chunks, solver.chunks + SAVE_EVERY), workers)
            if checkpoint is not None:
                save_checkpoint(solver, checkpoint, settings)
            progress(seat * chunks + solver.chunks, 2 * chunks)
        mine, learnt = layout.seat_rows(seat), solver.strategy()
        response.strategy[mine], response.free[~mine] = learnt[mine], learnt[~mine]
    return response


def count_similar(layout: Layout, rows: Array) -> Array:
    """Count, for each row of the strategy, how many of the decisions at `rows` are like it.

    Those of a hand of the same group with the same betting count whole, those with the same betting on this street but
    other betting before it count `OTHER_BETTING_WEIGHT`.
    """
    counts = np.bincount(rows, minlength=layout.rows).astype(np.float64)
    words = betting_paths(layout)[1]
    for block in layout.blocks:
        group = strength_groups(block.buckets)
        part = counts[block.rows].reshape(block.buckets, len(block.nodes))
        # counts of single buckets are mostly 0 or 1: hands of like strength are taken for the same hand
        exact = np.zeros((STRENGTH_GROUPS, len(block.nodes)))
        np.add.at(exact, group, part)
        _, word = np.unique(words[block.nodes, block.street], return_inverse=True)
        similar = np.zeros_like(exact)
        np.add.at(similar.T, word, exact.T)
        part[:] = ((1 - OTHER_BETTING_WEIGHT) * exact + OTHER_BETTING_WEIGHT * similar[:, word])[group]
    return counts


def join_with_equilibrium(
    layout: Layout, model: Array, start: Array, rows: Array, action: Array, held_out: Array
) -> Evidence:
    """Mix a copy of an opponent with the equilibrium where the mixture predicts held-out decisions better.

    Where the opponent plays nearly as the equilibrium does, the copy's errors are larger than the difference, and an
    answer to the copy alone would exploit these errors. So decisions of the equilibrium are added to those that the
    logs show: at each row as many, one of `PRIOR_WEIGHTS`, none where the copy predicts best by itself.

    Parameters: `model` and `start`, (rows, 3), the copy and the equilibrium; `rows`, `action`, `held_out`, for each
    logged decision its row, what was done, and whether the copy was trained without it.
    """
    times_seen, trained = count_similar(layout, rows), count_similar(layout, rows[~held_out])
    test_rows, taken = rows[held_out], action[held_out].astype(np.int64)
    copied, solved, weight = model[test_rows, taken], start[test_rows, taken], trained[test_rows]

    def loss(added: float) -> float:
        predicted = (weight * copied + added * solved) / (weight + added) if added else copied
        return float(-np.log(np.maximum(predicted, LEAST_PROBABILITY)).sum())

    # chosen on decisions that the copy was not trained on, where its own mistakes show
    added = min(PRIOR_WEIGHTS, key=loss)
    share = (added / np.maximum(times_seen + added, 1.0))[:, None]
    return Evidence(np.asarray((1 - share) * model + share * start, np.float32), times_seen, added=added)


@dataclass(frozen=True)
class BucketSetting:
    """Heads-up limit hold'em over the buckets of a solved strategy; values are sampled, in mbb per hand."""

    layout: Layout
    tables: Buckets
    """with rivers"""
    evidence: Evidence
    start: Singles
    """(rows, 3) an equilibrium: what is played at a share of 0, and what every answer starts from"""
    centroids: tuple[Array, Array]
    """of the flop and turn buckets: those that are alike learn together"""
    deals: int
    """traversed for each seat of an answer"""
    seed: int = 1
    workers: int | ClusterWorkers = 2
    """threads here, or a cluster"""
    folder: Path | None = None
    unit: str = "mbb/h"
    costly: bool = True
    at_table: Callable[[Singles, int], HeadToHead] | None = None
    """measures what a strategy wins from the opponent itself, in a match of a seed; None where the model is exact, or
    where logs are all that is known"""

    @property
    def _dealer(self) -> Dealer:
        return dealer_of(self.tables)

    def _learning(self, deals: int) -> SharedLearning:
        return SharedLearning(learning_groups(deals, self.layout.sizes, self.centroids), self.start)

    def answer(self, method: str, share: float, progress: Progress = no_progress) -> Array:
        if share == 0:
            return self.start
        folder = None if self.folder is None else self.folder / f"{method}-{share:g}"
        # rounded as it is stored, so that what is measured is what plays
        return dequantise(quantise(self._respond(method, share, folder, progress).strategy))

    def _respond(
        self, method: str, share: float, folder: Path | None = None, progress: Progress = no_progress
    ) -> BucketResponse:
        return respond_in_buckets(
            self.layout,
            self._dealer,
            self.evidence.belief(method, share),
            deals=self.deals,
            learning=self._learning(self.deals),
            seed=self.seed,
            workers=self.workers,
            folder=folder,
            about={"method": method, "share": share},
            progress=progress,
        )

    def _best_response(
        self,
        strategy: Array,
        deals: int,
        otherwise: tuple[Singles, float] | None = None,
        progress: Progress = no_progress,
    ) -> Singles:
        return best_response(
            self.layout,
            self._dealer,
            strategy,
            deals=deals,
            seed=self.seed + 2,
            workers=self.workers,
            learning=self._learning(deals),
            otherwise=otherwise,
            progress=progress,
        )

    def measure(self, strategy: Array, share: float, progress: Progress = no_progress) -> Tradeoff:
        won, over_buckets = self._winnings(strategy, self._test_deals, self.seed + 1)
        if strategy is self.start:
            lost = self._equilibrium_loss(progress)
        else:
            lost = self.exploited(strategy, self._response_deals, progress)
        at_strategy = AGENT if self.evidence.times_seen is None else PROJECTION
        measured_at = at_strategy if self.at_table is None else TABLE
        return Tradeoff(share, *won, *lost, measured_at, *over_buckets)

    def confirm(self, strategy: Array, tradeoff: Tradeoff) -> Tradeoff:
        won, over_buckets = self._winnings(strategy, self._confirming_deals, self.seed + 3)
        return tradeoff._replace(
            winnings=won.mbb,
            winnings_ci95=won.ci95,
            over_buckets=over_buckets.mbb,
            over_buckets_ci95=over_buckets.ci95,
        )

    def _winnings(self, strategy: Array, deals: Array, seed: int) -> tuple[HeadToHead, HeadToHead]:
        """Measure what a strategy wins: from the model over deals, or in a match of a seed from the opponent itself.

        Returns also what it wins from the model.
        """
        over_buckets = versus(self.layout, deals, strategy, self.evidence.model.astype(np.float32))
        return (over_buckets if self.at_table is None else self.at_table(strategy, seed)), over_buckets

    def ceiling(self, share: float, risk: float) -> HeadToHead:
        """Estimate the most that a strategy over these buckets wins while it risks no more than `risk`.

        Let a strategy win W from the model and lose E to the player who exploits it most. Against an opponent who plays
        the model in a share of the hands and any strategy `free` in the others it wins at least share * W -
        (1 - share) * E, and no more than the best response to that opponent does, V. So W is at most
        (V + (1 - share) * E) / share, whatever the share and `free` are; this is close where `free` is what the
        opponent of a restricted Nash response learns. It is an estimate that errs on the low side, not an upper bound:
        V, and in E what the equilibrium loses, are what responses trained on `_response_deals` deals win, and against
        an agent that does not play over the buckets the response is trained on its projection. What the response wins
        from such an agent is measured at the table, as its winnings are.
        """
        if not 0 < share <= 1:
            raise PipelineError(f"a ceiling is found at a share over 0 and up to 1, not {share:g}")
        model = np.ascontiguousarray(self.evidence.model, np.float32)
        free = self._respond("rnr", share).free
        best = self._best_response(model, self._response_deals, otherwise=(free, share))
        won, _ = self._winnings(best, self._test_deals, self.seed + 1)
        lost = versus(self.layout, self._test_deals, best, free)
        allowed, odds = self._equilibrium_loss(), (1 - share) / share
        most = won.mbb + odds * (lost.mbb + allowed.mbb + risk)
        return HeadToHead(most, won.ci95 + odds * (lost.ci95 + allowed.ci95))

    def exploited(self, strategy: Array, deals: int, progress: Progress = no_progress) -> HeadToHead:
        """Measure what a best response trained on `deals` deals wins from a strategy: a lower bound."""
        return self.exploit(strategy, deals, progress)[1]

    def exploit(self, strategy: Array, deals: int, progress: Progress = no_progress) -> tuple[Singles, HeadToHead]:
        """Train a best response to a strategy on `deals` deals; return it and what it wins, a lower bound."""
        answer = self._best_response(strategy, deals, progress=progress)
        return answer, versus(self.layout, self._test_deals, answer, strategy)

    @cached_property
    def _test_deals(self) -> Array:
        """Deal hands that nothing was trained on."""
        return np.asarray(deal_hands(self.tables, self.seed + 1, MEASURED_DEALS))

    @cached_property
    def _confirming_deals(self) -> Array:
        """Deal hands that nothing was trained on or chosen by."""
        return np.asarray(deal_hands(self.tables, self.seed + 3, MEASURED_DEALS))

    def _equilibrium_loss(self, progress: Progress = no_progress) -> HeadToHead:
        """Measure what a best response wins from the equilibrium: the same for every opponent, so cached on disk."""
        who = "cluster" if isinstance(self.workers, ClusterWorkers) else "threads" if self.workers > 1 else "thread"
        strategy = hashlib.sha256(self.start.tobytes()).hexdigest()[:16]
        path = cache_root() / "teacher" / f"exploited-{strategy}-{self._response_deals}-{self.seed}-{who}.json"
        cached = load_bytes(path, CACHE_VERSION)
        if cached is not None:
            return HeadToHead(*json.loads(cached))
        loss = self.exploited(self.start, self._response_deals, progress)
        with suppress(OSError):  # a folder that cannot be written only means measuring again
            path.parent.mkdir(parents=True, exist_ok=True)
            store_bytes(path, json.dumps(loss).encode(), CACHE_VERSION)
        return loss

    @property
    def _response_deals(self) -> int:
        """Return how many deals the best responses that measure a risk are trained on."""
        return min(RESPONSE_FACTOR * self.deals, MAX_RESPONSE_DEALS)
