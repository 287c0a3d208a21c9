"""A limit betting tree and its bucketed strategies as flat tables, and the value of one strategy against others.

In: a limit game and the number of buckets (groups of hands) on each street. Out: `Layout`, whose `tree` has a row per
betting node (for three players of `betting_tree.merge_states`) and which gives each (street, player, bucket, node) a
row of three numbers, for fold, call and raise, in one flat table. Rows are bucket-major with nodes in depth-first
order: a traversal knows its bucket on each street, and the few nodes of one betting round then lie together in memory.

A dealt hand is, to a bucketed strategy, for each player in turn a bucket on each street, and then for each player its
place at a showdown (the higher wins, equals share). The value of one strategy against others on a deal is summed over
the whole tree, exactly, so that only the cards are sampled.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.models.measures import STANDARD_ERRORS_95, Estimate
from pipeline.poker.betting_tree import BettingTree, merge_states
from pipeline.poker.game import Game
from pipeline.poker.rules import NO_STACK, S_ACTOR, S_FINISHED, S_FOLDED, S_MAX_SPENT, S_ROUND, S_SPENT
from pipeline.runtime.array_types import Array, Singles
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bit_table

# Columns of `Layout.tree`
T_ACTOR, T_ROUND, T_SLOT, T_FOLD, T_CALL, T_RAISE, T_CHIPS = range(7)
SHOWDOWN, FOLDED = -1, -2
"""Actors of finished nodes; T_CHIPS, which is for two players only, is what each has in at a showdown, what position 0
wins after a fold."""
MOST_PLAYERS = 3
"""of a bucketed strategy"""

P_FOLDED, P_POT, P_SPENT = range(3)
"""Columns of `Layout.payoffs`: a bit for each player who folded, all chips, and what each player has put in."""


class LayoutTables(NamedTuple):
    """A layout as kernels read it (see the properties of `Layout`)."""

    tree: Array
    children: Array
    payoffs: Array
    offsets: Array
    counts: Array


class DecisionBlock(NamedTuple):
    """The decisions of one player on one street."""

    street: int
    player: int
    rows: slice
    """their rows in the strategy: bucket-major, nodes as in `nodes`"""
    buckets: int
    nodes: Array


@dataclass(frozen=True)
class Layout:
    """The row of each decision of a bucketed strategy in one flat table."""

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
        """Return the betting: every sequence of two players, merged situations of more."""
        return self.game.betting_tree() if self.game.players == 2 else merge_states(self.game.rules)

    @cached_property
    def tree(self) -> npt.NDArray[np.int32]:
        """Return (nodes, 8) int32 in the order of `betting` (see the `T_` columns)."""
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
        visited = np.zeros(len(states), dtype=bool)
        while pending:
            node = pending.pop()
            if not finished[node] and not visited[node]:
                visited[node] = True
                place = int(tree[node, T_ROUND]), int(tree[node, T_ACTOR])
                tree[node, T_SLOT] = count[place]
                count[place] += 1
                pending.extend(int(c) for c in child[node][::-1] if c >= 0)
        return tree

    @cached_property
    def children(self) -> npt.NDArray[np.int32]:
        """Return (nodes, 3): where fold, call and raise lead, -1 nowhere."""
        return np.ascontiguousarray(self.tree[:, T_FOLD : T_RAISE + 1])

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Return (rounds, players): decision nodes of each round and player."""
        open_ = self.tree[self.tree[:, T_ACTOR] >= 0]
        counts = np.zeros((self.game.rounds, self.game.players), dtype=np.int64)
        np.add.at(counts, (open_[:, T_ROUND], open_[:, T_ACTOR]), 1)
        return counts

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Return (rounds, players): the first row of each round and player."""
        rows = (self.counts * np.array(self.sizes)[:, None]).ravel()
        return np.asarray((np.cumsum(rows) - rows).reshape(-1, self.game.players))

    @property
    def rows(self) -> int:
        """Count the decisions: one row of (fold, call, raise) each."""
        return int((self.counts * np.array(self.sizes)[:, None]).sum())

    @property
    def deal_size(self) -> int:
        """Count the columns of a deal: each player's bucket on each street, then its place at the showdown."""
        return self.game.players * (self.game.rounds + 1)

    @cached_property
    def blocks(self) -> tuple[DecisionBlock, ...]:
        """Return the decisions by street and player; the rows of each have the shape (buckets, nodes)."""
        blocks = []
        for street, player in np.ndindex(*self.counts.shape):
            nodes = np.flatnonzero((self.tree[:, T_ROUND] == street) & (self.tree[:, T_ACTOR] == player))
            nodes = nodes[np.argsort(self.tree[nodes, T_SLOT])]
            start, buckets = int(self.offsets[street, player]), self.sizes[street]
            blocks.append(DecisionBlock(street, player, slice(start, start + buckets * len(nodes)), buckets, nodes))
        return tuple(blocks)

    @cached_property
    def tables(self) -> LayoutTables:
        """Return the layout as kernels read it."""
        return LayoutTables(self.tree, self.children, self.payoffs, self.offsets, self.counts)

    @cached_property
    def payoffs(self) -> npt.NDArray[np.int32]:
        """Return (nodes, 2 + players): how each betting node would be paid out (see the `P_` columns)."""
        spent = self.betting.states[:, S_SPENT : S_SPENT + self.game.players]
        folded = self.betting.states[:, S_FOLDED]
        return np.column_stack([folded, spent.sum(axis=1), spent]).astype(np.int32)

    @cached_property
    def longest_queue(self) -> int:
        """Count the nodes that a traversal for a player visits at most: all its own actions, one of the others'."""
        actors, children = self.tree[:, T_ACTOR].tolist(), self.children.tolist()
        most = []
        for player in range(self.game.players):
            visits = [0] * len(actors)
            for node in range(len(actors) - 1, -1, -1):  # nodes come before those they lead to
                if actors[node] >= 0:
                    below = [visits[child] for child in children[node] if child >= 0]
                    visits[node] = 1 + (sum(below) if actors[node] == player else max(below))
            most.append(visits[0])
        return max(most)

    def seat_rows(self, player: int) -> Array:
        """Return (rows,) whether a decision is that player's."""
        mine = np.zeros(self.rows, bool)
        for block in self.blocks:
            mine[block.rows] = block.player == player
        return mine

    @property
    def equal_mix(self) -> Array:
        """Return (rows, 3) equal shares of the legal actions."""
        bits = bit_table(self.legal, 3)
        return np.asarray(bits / bits.sum(axis=1, keepdims=True))

    @cached_property
    def legal(self) -> npt.NDArray[np.uint8]:
        """Return (rows,) a bit per legal action."""
        out = np.zeros(self.rows, dtype=np.uint8)
        for block in self.blocks:
            bits = ((self.children[block.nodes] >= 0) * np.array([1, 2, 4])).sum(axis=1)
            out[block.rows] = np.tile(bits, block.buckets)
        return out


def fixed_strategy(layout: Layout, weights: tuple[float, float, float]) -> Singles:
    """Return the strategy that always plays one mix, among the legal actions (calling where these have no weight)."""
    bits = bit_table(layout.legal, 3)
    table = bits * np.array(weights)
    table[table.sum(axis=1) == 0, 1] = 1.0
    return np.asarray(table / table.sum(axis=1, keepdims=True), dtype=np.float32)


@kernel(leaf=True)
def bases(deal: Array, offsets: Array, counts: Array, out: Array) -> None:
    """Write the first row of each (street, player) for the buckets of a deal."""
    rounds = counts.shape[0]
    # once a deal instead of once a node: a traversal then finds a row by adding the node's slot
    for r in range(rounds):
        for p in range(counts.shape[1]):
            out[r, p] = offsets[r, p] + deal[p * rounds + r] * counts[r, p]


@kernel(leaf=True)
def pot_shares(places: Array, player: int, out: Singles) -> None:
    """Fill the share of the pot that `player` gets for each set of players who have folded (a bit for each)."""
    # showdowns are compared once for each set of folded players, not at each of the thousands of finished nodes
    for folded in range(len(out)):
        best, winners = -1, 0
        for other in range(len(places)):
            if (folded >> other) & 1 == 0:
                if places[other] > best:
                    best, winners = places[other], 1
                elif places[other] == best:
                    winners += 1
        wins = (folded >> player) & 1 == 0 and places[player] == best
        out[folded] = np.float32(1.0) / np.float32(winners) if wins else np.float32(0.0)


@kernel(leaf=True)
def payoff(row: Array, share: Singles, player: int) -> Any:
    """Return what `player` wins or loses at a finished node, from its row of `Layout.payoffs` and its pot shares."""
    return share[row[P_FOLDED]] * np.float32(row[P_POT]) - np.float32(row[P_SPENT + player])


@kernel
def _from_all_seats(layout: LayoutTables, deals: Array, strategy: Singles, others: Singles, out: Array) -> None:
    """Write what `strategy` wins per hand on each deal with all others playing `others`, over its seats."""
    tree, payoffs, offsets, counts = layout.tree, layout.payoffs, layout.offsets, layout.counts
    rounds, players = counts.shape
    base = np.empty(counts.shape, dtype=np.int64)
    share = np.empty(1 << players, dtype=np.float32)
    reach = np.zeros(len(tree))
    for i in range(len(deals)):
        bases(deals[i], offsets, counts, base)
        out[i] = 0.0
        for player in range(players):
            pot_shares(deals[i, rounds * players :], player, share)
            total = 0.0
            reach[0] = 1.0
            end = 1
            node = 0
            # merged situations have several parents, so chances are summed forwards instead of walked down
            while node < end:  # parents come first, so reach is complete; most nodes are never reached
                here = reach[node]
                if here > 0.0:
                    reach[node] = 0.0
                    actor = tree[node, T_ACTOR]
                    if actor < 0:
                        total += here * payoff(payoffs[node], share, player)
                    else:
                        row = base[tree[node, T_ROUND], actor] + tree[node, T_SLOT]
                        for action in range(3):
                            child = tree[node, T_FOLD + action]
                            if child >= 0:
                                reach[child] += here * (
                                    strategy[row, action] if actor == player else others[row, action]
                                )
                                end = max(end, child + 1)
                node += 1
            out[i] += total
        out[i] /= players


class HeadToHead(NamedTuple):
    """A result over deals played from every seat, in thousandths of a big blind per hand."""

    mbb: float
    ci95: float

    def json(self) -> dict[str, Any]:
        """Return the object that `solve holdem --json` prints of a match."""
        return {"mbb": self.mbb, **Estimate.around(*self).ends_json()}


def versus(layout: Layout, deals: Array, strategy: Singles, others: Singles) -> HeadToHead:
    """Measure what `strategy` wins where all others play `others` over `deals`, each from every seat."""
    out = np.empty(len(deals))
    pieces = np.linspace(0, len(deals), 17, dtype=int)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_from_all_seats, layout.tables, deals[a:b], strategy, others, out[a:b])
            for a, b in pairwise(pieces)
        ]
        for job in jobs:
            job.result()
    out *= 1000 / layout.game.big_blind
    return HeadToHead(float(out.mean()), float(STANDARD_ERRORS_95 * out.std() / np.sqrt(len(out))))
