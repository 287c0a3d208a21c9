"""Limit games of three players in buckets: the sampling of `holdem` where all learn, and results at a table.

In: a `Layout` of more than two players and a dealer. Out: an average strategy, as `holdem` gives for two. Each deal is
traversed once for each player: all actions of that player are tried, those of both others are drawn from their
current strategies. Beyond two players nothing promises that the average is an equilibrium, nor that it loses nothing
against any others: it has to prove itself in matches.

Left to themselves three players soon fold so much that situations after three calls or raises are hardly ever learnt,
and whoever always raises would win from the result. So in a share of the hands each of the others is *careless*: it
plays one mix of fold, call and raise, drawn anew for that hand, whatever its cards (see `SeveralSolver.careless`).

A deal is, for each player in turn, a bucket on each street, and then for each player its place at a showdown (the
higher wins, equals share).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.poker.rules import S_FOLDED, S_SPENT
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import random_state, uniform
from pipeline.solving.holdem import CHUNK, HOPELESS, PRUNED, BucketSolver, TraversalScratch, matched, value_back
from pipeline.solving.layout import T_ACTOR, T_FOLD, T_ROUND, T_SLOT, Floats, HeadToHead, Layout, bases

E_FOLDED, E_POT, E_SPENT = range(3)
"""columns of `ends`: a bit for each player who folded, all chips, and what each player has put in"""


def deal_size(layout: Layout) -> int:
    """Columns of a deal: buckets of each player and street, then places at the showdown."""
    return layout.game.players * (layout.game.rounds + 1)


def ends(layout: Layout) -> npt.NDArray[np.int32]:
    """(nodes, 2 + players): how each betting node would be paid out (see the `E_` columns)."""
    states, players = layout.betting.states, layout.game.players
    spent = states[:, S_SPENT : S_SPENT + players]
    return np.column_stack([states[:, S_FOLDED], spent.sum(axis=1), spent]).astype(np.int32)


def longest_queues(layout: Layout) -> list[int]:
    """The most nodes that a traversal for each player can visit: all its own actions, one of the others'."""
    found = []
    for player in range(layout.game.players):
        visits = np.zeros(len(layout.tree), dtype=np.int64)
        for node in range(len(layout.tree) - 1, -1, -1):  # nodes come before those they lead to
            if layout.tree[node, T_ACTOR] >= 0:
                next_ = visits[[child for child in layout.children[node] if child >= 0]]
                visits[node] = 1 + (next_.sum() if layout.tree[node, T_ACTOR] == player else next_.max())
        found.append(int(visits[0]))
    return found


@kernel(leaf=True)
def _shares(places: Array, player: int, out: Floats) -> None:
    """The share of the pot that `player` gets for each set of players who have folded (a bit for each)."""
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
def _paid(end: Array, share: Floats, player: int) -> Any:
    """What `player` wins or loses at a finished node."""
    return share[end[E_FOLDED]] * np.float32(end[E_POT]) - np.float32(end[E_SPENT + player])


@kernel(leaf=True)
def _draw_styles(chance: float, random: Array, styles: Floats) -> None:
    """Who is careless in this hand, and by which mix; the first number of the others' is -1.

    The cubes of three exponential numbers: often nearly all is one action, at times it is a mixture.
    """
    for player in range(len(styles)):
        styles[player, 0] = np.float32(-1.0)
        if chance > 0 and uniform(random) < chance:
            total = 0.0
            for action in range(3):
                drawn = -(np.log(1.0 - uniform(random)) ** 3)
                styles[player, action] = drawn
                total += drawn
            for action in range(3):
                styles[player, action] /= np.float32(total)


@kernel(leaf=True)
def _traverse(
    tree: Array,
    paid: Array,
    player: int,
    base: Array,
    share: Floats,
    steps: tuple[Any, Any],
    learnt: tuple[Floats, Floats, Floats],
    random: Array,
    s: TraversalScratch,
) -> None:
    """One external-sampling traversal for `player`.

    `steps` are the weight and the regret under which actions are skipped, `learnt` the regrets, the averages and the
    mixes of careless players.
    """
    weight, floor = steps
    regret, average, styles = learnt
    mix, values = s.mix, s.values
    no_head_start = regret[:0]
    s.queue[0] = 0
    s.parent[0] = 0
    count = 1
    at = 0
    while at < count:
        node = s.queue[at]
        actor = tree[node, T_ACTOR]
        row = base[tree[node, T_ROUND], actor] + tree[node, T_SLOT]
        fold_legal, raise_legal = tree[node, T_FOLD] >= 0, tree[node, T_FOLD + 2] >= 0
        careless = actor != player and styles[actor, 0] >= 0
        if careless:
            p0 = styles[actor, 0] if fold_legal else np.float32(0.0)
            p2 = styles[actor, 2] if raise_legal else np.float32(0.0)
            p1 = np.float32(1.0) - p0 - p2
        else:
            p0, p1, p2 = matched(regret, row, row, no_head_start, fold_legal, raise_legal)
        if actor == player:
            s.rows[at] = row
            mix[at, 0], mix[at, 1], mix[at, 2] = p0, p1, p2
            for action in range(3):
                child = tree[node, T_FOLD + action]
                values[at, action] = np.float32(np.nan)
                if child < 0 or (regret[row, action] < floor and mix[at, action] == 0):
                    continue
                if tree[child, T_ACTOR] < 0:
                    values[at, action] = _paid(paid[child], share, player)
                else:
                    s.queue[count] = child
                    s.parent[count] = at * 4 + action
                    count += 1
        else:
            s.rows[at] = -1
            if not careless:
                average[row, 0] += weight * p0
                average[row, 1] += weight * p1
                average[row, 2] += weight * p2
            draw = uniform(random)
            action = 1
            if draw < p0:
                action = 0
            elif draw >= p0 + p1 and raise_legal:
                action = 2
            child = tree[node, T_FOLD + action]
            if tree[child, T_ACTOR] < 0:
                values[at, 0] = _paid(paid[child], share, player)
            else:
                s.queue[count] = child
                s.parent[count] = at * 4
                count += 1
        at += 1
    value_back(count, weight, regret, s)


@kernel
def _traverse_all(
    tree: Array,
    paid: Array,
    offsets: Array,
    counts: Array,
    deals: Array,
    steps: tuple[float, float, float],
    learnt: tuple[Floats, Floats],
    room: int,
    random: Array,
) -> None:
    """The traversals of each deal, one for each player; none visits more than `room` nodes.

    `steps` are the weight, the regret under which actions are skipped and the chance that a player is careless.
    """
    scratch = TraversalScratch(
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int64),
        np.empty((room, 3), dtype=np.float32),
        np.empty((room, 4), dtype=np.float32),
    )
    rounds, players = counts.shape
    base = np.empty(counts.shape, dtype=np.int64)
    share = np.empty(1 << players, dtype=np.float32)
    styles = np.empty((players, 3), dtype=np.float32)
    weight = np.float32(steps[0])
    for i in range(len(deals)):
        bases(deals[i], offsets, counts, base)
        least = np.float32(steps[1]) if i % 20 < PRUNED else np.float32(-np.inf)
        for player in range(players):
            _shares(deals[i, rounds * players :], player, share)
            _draw_styles(steps[2], random, styles)
            known = (learnt[0], learnt[1], styles)
            _traverse(tree, paid, player, base, share, (weight, least), known, random, scratch)


@dataclass
class SeveralSolver(BucketSolver):
    """A run of the solver for three players; saved and resumed as that for two."""

    careless: float = 0.0
    """the share of hands in which each of the others is careless"""

    @cached_property
    def _ends(self) -> npt.NDArray[np.int32]:
        return ends(self.layout)

    @cached_property
    def _room(self) -> int:
        return max(longest_queues(self.layout))

    def _chunk(self, index: int) -> None:
        """The deals of one chunk; which they are depends on the seed and the chunk's number only."""
        layout, random = self.layout, random_state(self.seed, index)
        deals = np.empty((CHUNK, deal_size(layout)), dtype=np.int16)
        self.dealer(random, deals)
        steps = (float(index + 1), HOPELESS * (index + 1), self.careless)
        learnt = (self.regret, self.average)
        _traverse_all(layout.tree, self._ends, layout.offsets, layout.counts, deals, steps, learnt, self._room, random)


@kernel
def _seated(
    tree: Array, paid: Array, offsets: Array, counts: Array, deals: Array, one: Floats, two: Floats, out: Array
) -> None:
    """What `one` wins per hand on each deal with all others playing `two`, over its seats; exact but for the cards."""
    rounds, players = counts.shape
    base = np.empty(counts.shape, dtype=np.int64)
    share = np.empty(1 << players, dtype=np.float32)
    reach = np.empty(len(tree))
    for i in range(len(deals)):
        bases(deals[i], offsets, counts, base)
        total = 0.0
        for player in range(players):
            _shares(deals[i, rounds * players :], player, share)
            reach[:] = 0.0
            reach[0] = 1.0
            for node in range(len(tree)):
                here = reach[node]
                if here == 0.0:
                    continue
                actor = tree[node, T_ACTOR]
                if actor < 0:
                    total += here * _paid(paid[node], share, player)
                    continue
                row = base[tree[node, T_ROUND], actor] + tree[node, T_SLOT]
                for action in range(3):
                    child = tree[node, T_FOLD + action]
                    if child >= 0:
                        reach[child] += here * (one[row, action] if actor == player else two[row, action])
        out[i] = total / players


def seated(layout: Layout, deals: Array, one: Floats, two: Floats) -> HeadToHead:
    """What strategy `one` wins where all others play `two`, over `deals`, each from every seat, with its interval."""
    out = np.empty(len(deals))
    _seated(layout.tree, ends(layout), layout.offsets, layout.counts, deals, one, two, out)
    out *= 1000 / layout.game.big_blind
    return HeadToHead(float(out.mean()), float(1.96 * out.std() / np.sqrt(len(out))))
