"""Counter-strategies in bucketed limit hold'em: restricted Nash and data-biased responses by the solver's traversals.

In: what is believed of an opponent (`Belief`, whose model is a bucketed strategy, see `layout`), and a dealer of
buckets. Out: a bucketed strategy for both seats. The opponent keeps to the model in a share of the hands, throughout or
at a share of the times that it comes to each decision, and learns to play against us the rest of the time
(`small_counter` says more of both and finds the same answers exactly in small games). Where the model is always in
force, `response.best_response` is the answer.

Each seat is a run of its own, because the opponent's free part learns against that seat alone. Both players may start
from a known strategy and learn by groups of buckets (see `shared_learning`), so that decisions which few deals come to
are played by it rather than by guesses.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.starting_hands import class_matchups
from pipeline.runtime.array_types import Array
from pipeline.runtime.diskcache import cache_root, load_bytes, store_bytes
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, dealer_of
from pipeline.solving.counter import Evidence, Worth
from pipeline.solving.holdem import ALONE, CHUNK, BucketSolver, Dealer, Restriction, resume, save
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Floats, HeadToHead, Layout, versus
from pipeline.solving.preflop import CLASSES
from pipeline.solving.response import best_response, paths, rows_of
from pipeline.solving.shared_learning import Learning, groups_for
from pipeline.solving.small_counter import Belief
from pipeline.solving.spread import Spread, depth, go_on
from pipeline.solving.teacher import deal_hands

VERSION = 1
"""of what is kept on this machine"""
SAVE_EVERY = 64
"""chunks between checkpoints"""
GROUPS = 10
"""hands of a street are counted in so many groups, weakest first: single buckets are seen too rarely"""
ALIKE = 0.1
"""what a decision counts where only the betting of earlier streets was other: a copy learns from such ones too"""
EQUILIBRIUM = (0.0, 10.0, 30.0, 100.0, 300.0)
"""decisions of the equilibrium that may be added to those that logs show"""
UNFORESEEN = 0.01
"""the least probability that a logged decision is thought to have had: a few hands stand for all of a bucket"""
JUDGED = 100_000
"""deals, each played from both seats, on which winnings are measured"""
STRICTER, STRICTEST = 4, 16_000_000
"""the best response that tells what a counter risks is trained on so many times its deals, and on so many at most"""


class Answer(NamedTuple):
    """A counter-strategy and what it was found against, (rows, 3) each."""

    strategy: Floats
    """of both seats"""
    free: Floats
    """what the opponent learnt to play against each seat where it is free; the model, where it never is"""


def respond_in_buckets(
    layout: Layout,
    dealer: Dealer,
    belief: Belief,
    *,
    deals: int,
    learning: Learning | None = None,
    seed: int = 1,
    workers: int | Spread = 2,
    folder: Path | None = None,
    about: dict[str, Any] | None = None,
    progress: Progress = no_progress,
) -> Answer:
    """The counter-strategy to what is believed of the opponent.

    Parameters
    ----------
    belief: the opponent's strategy, row by row of the layout, and how far it is trusted.
    deals: how many are traversed for each seat.
    workers: how many threads learn here, or the cluster whose workers do.
    learning: which buckets learn together, and a strategy that both players start from.
    folder: where checkpoints are kept; a run that was interrupted goes on from them. The belief and `about` must be the
        same then.
    """
    model = np.ascontiguousarray(belief.model, np.float32)
    if belief.always:
        best = best_response(
            layout, dealer, model, deals=deals, seed=seed, workers=workers, learning=learning, progress=progress
        )
        return Answer(best, model)
    found = Answer(*(np.zeros((layout.rows, 3), np.float32) for _ in Answer._fields))
    chunks = -(-deals // CHUNK)
    sure = np.zeros(0) if belief.decisions is None else belief.decisions
    sharing = ALONE if learning is None else learning.sharing(layout, depth(chunks, workers))
    opponent = hashlib.sha256(model.tobytes() + sure.tobytes()).hexdigest()[:16] if folder is not None else ""
    for seat in range(2):
        bound = Restriction(1 - seat, model, float(belief.hands), np.ascontiguousarray(sure, np.float32))
        solver = BucketSolver(layout, dealer, seed, model=bound, sharing=sharing)
        if learning is not None:
            solver.average[:] = 1e-3 * learning.start
        known = {"seat": seat, "deals": deals, "hands": belief.hands, "opponent": opponent, **(about or {})}
        # regrets of a cluster are of another size: neither goes on from a checkpoint of the other
        where = "-cluster" if isinstance(workers, Spread) else ""
        kept = None if folder is None else folder / f"seat-{seat}{where}"
        if kept is not None:
            resume(solver, kept, known)
        while solver.chunks < chunks:
            go_on(solver, min(chunks, solver.chunks + SAVE_EVERY), workers)
            if kept is not None:
                save(solver, kept, known)
            progress(seat * chunks + solver.chunks, 2 * chunks)
        mine, learnt = rows_of(layout, seat), solver.strategy()
        found.strategy[mine], found.free[~mine] = learnt[mine], learnt[~mine]
    return found


def _by_strength(buckets: int) -> Array:
    """(buckets,) the place of each bucket in the order of strength: buckets are numbered so, but for starting hands."""
    if buckets != CLASSES:
        return np.arange(buckets)
    win, tie, _ = class_matchups().against_random().T
    return np.asarray((win + tie / 2).argsort().argsort())


def count_alike(layout: Layout, places: Array) -> Array:
    """(rows of the strategy,) how often decisions like each are among `places`, which are rows of it.

    Those of a hand of the same group with the same betting count whole, those with the same betting on this street but
    other betting before it count `ALIKE`.
    """
    seen = np.bincount(places, minlength=layout.rows).astype(np.float64)
    tree, words = layout.tree, paths(layout)[1]
    for street, size in enumerate(layout.sizes):
        group = _by_strength(size) * GROUPS // size
        for player in range(2):
            here = np.flatnonzero((tree[:, T_ROUND] == street) & (tree[:, T_ACTOR] == player))
            here = here[np.argsort(tree[here, T_SLOT])]
            start, nodes = int(layout.offsets[street, player]), len(here)
            part = seen[start : start + size * nodes].reshape(size, nodes)
            exact = np.zeros((GROUPS, nodes))
            np.add.at(exact, group, part)
            _, word = np.unique(words[here, street], return_inverse=True)
            alike = np.zeros((GROUPS, nodes))
            np.add.at(alike.T, word, exact.T)
            part[:] = ((1 - ALIKE) * exact + ALIKE * alike[:, word])[group]
    return seen


def joined_with_equilibrium(
    layout: Layout, model: Array, start: Array, places: Array, action: Array, held_out: Array
) -> Evidence:
    """A copy of an opponent joined with the equilibrium, as far as this foretells decisions that it was not trained on.

    Where the opponent plays nearly as the equilibrium does, the copy's errors are larger than the difference, and an
    answer to the copy alone would exploit these errors. So decisions of the equilibrium are added to those that the
    logs show: at each row as many, one of `EQUILIBRIUM`, none where the copy foretells best by itself.

    Parameters: `model` and `start`, (rows, 3), the copy and the equilibrium; `places`, `action`, `held_out`, for each
    logged decision its row, what was done, and whether the copy was trained without it.
    """
    seen, before = count_alike(layout, places), count_alike(layout, places[~held_out])
    at, done = places[held_out], action[held_out].astype(np.int64)
    copied, solved, often = model[at, done], start[at, done], before[at]

    def loss(added: float) -> float:
        foretold = (often * copied + added * solved) / (often + added) if added else copied
        return float(-np.log(np.maximum(foretold, UNFORESEEN)).sum())

    added = min(EQUILIBRIUM, key=loss)
    share = (added / np.maximum(seen + added, 1.0))[:, None]
    return Evidence(np.asarray((1 - share) * model + share * start, np.float32), seen, added=added)


@dataclass(frozen=True)
class BucketSetting:
    """Heads-up limit hold'em over the buckets of a solved strategy; values are sampled, in mbb per hand."""

    layout: Layout
    tables: Buckets
    """with rivers"""
    evidence: Evidence
    start: Floats
    """(rows, 3) an equilibrium: what is played at a share of 0, and what every answer starts from"""
    centroids: tuple[Array, Array]
    """of the flop and turn buckets: those that are alike learn together"""
    deals: int
    """traversed for each seat of an answer"""
    seed: int = 1
    workers: int | Spread = 2
    """threads here, or a cluster"""
    folder: Path | None = None
    unit: str = "mbb/h"
    costly: bool = True

    @property
    def _dealer(self) -> Dealer:
        return dealer_of(self.tables)

    def _learning(self, deals: int) -> Learning:
        return Learning(groups_for(deals, self.layout.sizes, self.centroids), self.start)

    def answer(self, method: str, share: float, progress: Progress = no_progress) -> Array:
        if share == 0:
            return self.start
        return respond_in_buckets(
            self.layout,
            self._dealer,
            self.evidence.belief(method, share),
            deals=self.deals,
            learning=self._learning(self.deals),
            seed=self.seed,
            workers=self.workers,
            folder=None if self.folder is None else self.folder / f"{method}-{share:g}",
            about={"method": method, "share": share},
            progress=progress,
        ).strategy

    def worth(self, strategy: Array, share: float, progress: Progress = no_progress) -> Worth:
        won = versus(self.layout, self._fresh, strategy, self.evidence.model.astype(np.float32))
        known = strategy is self.start
        lost = self._kept_exploited(progress) if known else self.exploited(strategy, self._strict, progress)
        return Worth(share, won.mbb, won.ci95, lost.mbb, lost.ci95)

    def ceiling(self, share: float, risk: float) -> HeadToHead:
        """About the most that any strategy over these buckets wins from the model while it risks no more than `risk`.

        Let a strategy win W from the model and lose E to the player who exploits it most. Against an opponent who plays
        the model in a share of the hands and any strategy `free` in the others it wins at least share * W -
        (1 - share) * E, and no more than the best response to that opponent does, V. So W is at most
        (V + (1 - share) * E) / share, whatever the share and `free` are; the bound is close where `free` is what the
        opponent of a restricted Nash response learns. V, and in E what the equilibrium loses, are what responses
        trained on `_strict` deals win, so both are a little low.
        """
        if not 0 < share <= 1:
            raise PipelineError(f"a ceiling is found at a share over 0 and up to 1, not {share:g}")
        model = np.ascontiguousarray(self.evidence.model, np.float32)
        free = respond_in_buckets(
            self.layout,
            self._dealer,
            self.evidence.belief("rnr", share),
            deals=self.deals,
            learning=self._learning(self.deals),
            seed=self.seed,
            workers=self.workers,
        ).free
        best = best_response(
            self.layout,
            self._dealer,
            model,
            deals=self._strict,
            seed=self.seed + 2,
            workers=self.workers,
            learning=self._learning(self._strict),
            otherwise=(free, share),
        )
        won, lost = (versus(self.layout, self._fresh, best, other) for other in (model, free))
        allowed, odds = self._kept_exploited(), (1 - share) / share
        most = won.mbb + odds * (lost.mbb + allowed.mbb + risk)
        return HeadToHead(most, won.ci95 + odds * (lost.ci95 + allowed.ci95))

    def exploited(self, strategy: Array, deals: int, progress: Progress = no_progress) -> HeadToHead:
        """What a best response wins from a strategy that it was trained against on so many deals: a lower bound."""
        answer = best_response(
            self.layout,
            self._dealer,
            strategy,
            deals=deals,
            seed=self.seed + 2,
            workers=self.workers,
            learning=self._learning(deals),
            progress=progress,
        )
        return versus(self.layout, self._fresh, answer, strategy)

    @cached_property
    def _fresh(self) -> Array:
        """Deals that nothing was trained on."""
        return np.asarray(deal_hands(self.tables, self.seed + 1, JUDGED))

    def _kept_exploited(self, progress: Progress = no_progress) -> HeadToHead:
        """What a best response wins from the equilibrium, the same for every opponent: kept on this machine."""
        who = "cluster" if isinstance(self.workers, Spread) else "threads" if self.workers > 1 else "thread"
        strategy = hashlib.sha256(self.start.tobytes()).hexdigest()[:16]
        path = cache_root() / "teacher" / f"exploited-{strategy}-{self._strict}-{self.seed}-{who}.json"
        kept = load_bytes(path, VERSION)
        if kept is not None:
            return HeadToHead(*json.loads(kept))
        found = self.exploited(self.start, self._strict, progress)
        with suppress(OSError):  # a folder that cannot be written only means finding it again
            path.parent.mkdir(parents=True, exist_ok=True)
            store_bytes(path, json.dumps(found).encode(), VERSION)
        return found

    @property
    def _strict(self) -> int:
        """Deals of the best responses that tell what a strategy risks."""
        return min(STRICTER * self.deals, STRICTEST)
