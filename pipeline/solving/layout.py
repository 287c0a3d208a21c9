"""A limit betting tree and its bucketed strategies as flat tables, and what two such strategies win from each other.

In: a limit game and the number of buckets (groups of hands) on each street. Out: `Layout`, whose `tree` has a row per
betting node (with three players those of `betting_tree.merge`) and which gives each (street, player, bucket, node) a
row of three numbers, for fold, call and raise, in one flat table. Rows are bucket-major with nodes in depth-first
order: a traversal knows its bucket on each street, and the few nodes of one betting round then lie beside each other in
memory.

A dealt hand of two players is, to a bucketed strategy, four buckets for each player and who wins the showdown: `Deal`
rows. The value of one strategy against another on a deal is summed over the whole tree, exactly, so that only the
cards are sampled. (`several` has the same for three players.)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.poker.betting_tree import BettingTree, merge
from pipeline.poker.game import Game
from pipeline.poker.rules import NO_STACK, S_ACTOR, S_FINISHED, S_FOLDED, S_MAX_SPENT, S_ROUND, S_SPENT
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bit_table

Floats: TypeAlias = npt.NDArray[np.float32]

# Columns of `Layout.tree`
T_ACTOR, T_ROUND, T_SLOT, T_FOLD, T_CALL, T_RAISE, T_CHIPS = range(7)
SHOWDOWN, FOLDED = -1, -2
"""Actors of finished nodes; T_CHIPS, which is for two players only, is what each has in at a showdown, what position 0
wins after a fold."""
MOST_PLAYERS = 3
"""of a bucketed strategy"""

# Columns of a deal: buckets of position 0, then of position 1, then the sign of position 0's showdown
DEAL_SIZE = 9


@dataclass(frozen=True)
class Layout:
    """Where each decision of a bucketed strategy stands."""

    game: Game
    sizes: tuple[int, ...]
    """buckets per street"""

    def __post_init__(self) -> None:
        if self.game.nolimit or self.game.players > MOST_PLAYERS or len(self.sizes) != self.game.rounds:
            raise PipelineError(
                f"{self.game.name}: a bucketed strategy needs a limit game for two or three and a size per round"
            )
        if self.game.players > 2 and min(self.game.stacks) < NO_STACK:
            raise PipelineError(f"{self.game.name}: a bucketed strategy for three needs a game without stacks")

    @cached_property
    def betting(self) -> BettingTree:
        """The betting: every sequence of two players, merged situations of more."""
        return self.game.betting_tree() if self.game.players == 2 else merge(self.game.rules)

    @cached_property
    def tree(self) -> npt.NDArray[np.int32]:
        """(nodes, 8) int32 in the order of `betting` (see the `T_` columns)."""
        states, child = self.betting.states, self.betting.child
        tree = np.zeros((len(states), 8), dtype=np.int32)
        tree[:, T_ROUND] = states[:, S_ROUND]
        tree[:, T_FOLD : T_RAISE + 1] = child
        finished = states[:, S_FINISHED] != 0
        folded = states[:, S_FOLDED]
        tree[:, T_ACTOR] = np.where(finished, np.where(folded != 0, FOLDED, SHOWDOWN), states[:, S_ACTOR])
        won = np.where(folded == 1, -states[:, S_SPENT], states[:, S_SPENT + 1])
        tree[:, T_CHIPS] = np.where(folded != 0, won, states[:, S_MAX_SPENT])
        count = np.zeros((self.game.rounds, self.game.players), dtype=np.int64)
        pending = [0]
        met = np.zeros(len(states), dtype=bool)
        while pending:
            node = pending.pop()
            if not finished[node] and not met[node]:
                met[node] = True
                place = int(tree[node, T_ROUND]), int(tree[node, T_ACTOR])
                tree[node, T_SLOT] = count[place]
                count[place] += 1
                pending.extend(int(c) for c in child[node][::-1] if c >= 0)
        return tree

    @cached_property
    def children(self) -> npt.NDArray[np.int32]:
        """(nodes, 3): where fold, call and raise lead, -1 nowhere."""
        return np.ascontiguousarray(self.tree[:, T_FOLD : T_RAISE + 1])

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """(rounds, players): decision nodes of each round and player."""
        open_ = self.tree[self.tree[:, T_ACTOR] >= 0]
        counts = np.zeros((self.game.rounds, self.game.players), dtype=np.int64)
        np.add.at(counts, (open_[:, T_ROUND], open_[:, T_ACTOR]), 1)
        return counts

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """(rounds, players): the first row of each round and player."""
        rows = (self.counts * np.array(self.sizes)[:, None]).ravel()
        return np.asarray((np.cumsum(rows) - rows).reshape(-1, self.game.players))

    @property
    def rows(self) -> int:
        """Decisions in all: one row of (fold, call, raise) each."""
        return int((self.counts * np.array(self.sizes)[:, None]).sum())

    @cached_property
    def legal(self) -> npt.NDArray[np.uint8]:
        """(rows,) a bit per legal action."""
        out = np.zeros(self.rows, dtype=np.uint8)
        for r in range(self.game.rounds):
            for p in range(self.game.players):
                here = self.tree[(self.tree[:, T_ROUND] == r) & (self.tree[:, T_ACTOR] == p)]
                here = here[np.argsort(here[:, T_SLOT])]
                bits = ((here[:, T_FOLD : T_RAISE + 1] >= 0) * np.array([1, 2, 4])).sum(axis=1)
                start, size = int(self.offsets[r, p]), self.sizes[r]
                out[start : start + size * len(bits)] = np.tile(bits, size)
        return out


def fixed_strategy(layout: Layout, weights: tuple[float, float, float]) -> Floats:
    """Always the same mix of fold, call and raise, among the legal ones (folding only if the others have no weight)."""
    bits = bit_table(layout.legal, 3)
    table = bits * np.array(weights)
    table[table.sum(axis=1) == 0, 1] = 1.0
    return np.asarray(table / table.sum(axis=1, keepdims=True), dtype=np.float32)


@kernel(leaf=True)
def bases(deal: Array, offsets: Array, counts: Array, out: Array) -> None:
    """The first row of each (street, player) for the buckets of a deal."""
    rounds = counts.shape[0]
    for r in range(rounds):
        for p in range(counts.shape[1]):
            out[r, p] = offsets[r, p] + deal[p * rounds + r] * counts[r, p]


@kernel(leaf=True)
def _walk(tree: Array, first: Floats, second: Floats, base: Array, sign: int, queue: Array, reach: Array) -> float:
    """What position 0 wins when it plays `first` and position 1 `second`, over all ways the betting can go."""
    total = 0.0
    queue[0] = 0
    reach[0] = 1.0
    count = 1
    at = 0
    while at < count:
        node = queue[at]
        here = reach[at]
        at += 1
        actor = tree[node, T_ACTOR]
        if actor < 0:
            total += here * tree[node, T_CHIPS] * (sign if actor == SHOWDOWN else 1)
            continue
        row = base[tree[node, T_ROUND], actor] + tree[node, T_SLOT]
        for action in range(3):
            child = tree[node, T_FOLD + action]
            if child >= 0:
                chance = first[row, action] if actor == 0 else second[row, action]
                if chance > 0.0:
                    queue[count] = child
                    reach[count] = here * chance
                    count += 1
    return total


@kernel
def _duplicate(
    tree: Array, offsets: Array, counts: Array, deals: Array, one: Floats, two: Floats, out: npt.NDArray[np.float64]
) -> None:
    """What `one` wins per hand on each deal played twice, seats swapped."""
    queue = np.empty(len(tree), dtype=np.int32)
    reach = np.empty(len(tree))
    base = np.empty(counts.shape, dtype=np.int64)
    for i in range(len(deals)):
        bases(deals[i], offsets, counts, base)
        sign = deals[i, 2 * counts.shape[0]]
        ahead = _walk(tree, one, two, base, sign, queue, reach)
        behind = _walk(tree, two, one, base, sign, queue, reach)
        out[i] = 0.5 * (ahead - behind)


class HeadToHead(NamedTuple):
    """A duplicate result in thousandths of a big blind per hand."""

    mbb: float
    ci95: float


def versus(layout: Layout, deals: Array, one: Floats, two: Floats) -> HeadToHead:
    """What strategy `one` wins from `two` over `deals`, each played from both seats, with its 95% interval."""
    out = np.empty(len(deals))
    pieces = np.linspace(0, len(deals), 17, dtype=int)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_duplicate, layout.tree, layout.offsets, layout.counts, deals[a:b], one, two, out[a:b])
            for a, b in pairwise(pieces)
        ]
        for job in jobs:
            job.result()
    out *= 1000 / layout.game.big_blind
    return HeadToHead(float(out.mean()), float(1.96 * out.std() / np.sqrt(len(out))))
