"""The betting tree of a limit game as tables, for solvers and stored strategies.

A vector of rules goes in (see `rules`), a `BettingTree` comes out: every situation that betting can reach, with where
each action leads. Limit betting for two is small enough (hold'em: 16,584 situations, 6,378 of them decisions), no-limit
betting is not. That of three players is not either (hold'em: 24 million situations), so `merge_states` keeps one node
for situations that differ only in how earlier rounds came to the same chips, the same players left and the same last
raiser (hold'em for three: 12,570 nodes, 10,506 of them decisions).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.poker.rules import (
    R_NOLIMIT,
    R_PLAYERS,
    S_AGGRESSOR,
    S_FINISHED,
    S_FOLDED,
    S_ROUND,
    S_SPENT,
    STATE_SIZE,
    apply,
    is_legal,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


@kernel(leaf=True)
def _grow(rules: Array, states: Array, child: Array) -> int:
    """Fill the betting tree of a limit game breadth first; return the number of nodes, or -1 when it does not fit."""
    start(rules, states[0])
    count = 1
    node = 0
    while node < count:
        for action in range(3):
            child[node, action] = -1
        if states[node, S_FINISHED] == 0:
            for action in range(3):
                if is_legal(rules, states[node], action, rules[R_NOLIMIT]):
                    # appended behind all nodes so far: a node always comes before those it leads to
                    if count >= states.shape[0]:
                        return -1
                    for i in range(states.shape[1]):
                        states[count, i] = states[node, i]
                    apply(rules, states[count], action, rules[R_NOLIMIT])
                    child[node, action] = count
                    count += 1
        node += 1
    return count


@dataclass(frozen=True)
class BettingTree:
    """The betting of a limit game as tables: node 0 is the start, and every node comes before those it leads to."""

    states: Array
    """(nodes, STATE_SIZE) int64: the state vector at each node"""
    child: Array
    """(nodes, 3) int32: where fold, call and raise lead; -1 when illegal or finished"""

    @property
    def terminal(self) -> Array:
        """Return which nodes end the hand."""
        return np.asarray(self.states[:, S_FINISHED] != 0)


def grow_tree(rules: Array, most: int) -> BettingTree | None:
    """Write out the tree of a limit game with at most `most` nodes; return None when it has more."""
    capacity = 0
    while capacity < most:
        capacity = min(max(4 * capacity, 1 << 12), most)
        states = np.zeros((capacity, STATE_SIZE), dtype=np.int64)
        child = np.zeros((capacity, 3), dtype=np.int32)
        count = _grow(rules, states, child)
        if count >= 0:
            return BettingTree(states[:count].copy(), child[:count].copy())
    return None


def merge_states(rules: Array) -> BettingTree:
    """Write out the betting of a limit game, with situations merged that differ only in the course of earlier rounds.

    Two situations are one if the betting of their round is the same letter by letter, and so are the chips that each
    player has put in, the players who have folded and the one who raised last. The same choices follow and the same
    chips are won from there on; what is forgotten is what earlier raises told about somebody's cards. Several nodes may
    lead to one, so this is no tree, but nodes still come before those they lead to.
    """
    spent = slice(S_SPENT, S_SPENT + int(rules[R_PLAYERS]))
    first = np.zeros(STATE_SIZE, dtype=np.int64)
    start(rules, first)
    states, betting, child = [first], [""], list[list[int]]()
    numbers: dict[tuple[Any, ...], int] = {}
    while len(child) < len(states):
        before, word = states[len(child)], betting[len(child)]
        child.append([-1, -1, -1])
        if before[S_FINISHED]:
            continue
        for action in range(3):
            if not is_legal(rules, before, action, rules[R_NOLIMIT]):
                continue
            after = before.copy()
            apply(rules, after, action, rules[R_NOLIMIT])
            goes_on = not after[S_FINISHED] and after[S_ROUND] == before[S_ROUND]
            round_betting = word + "fcr"[action] if goes_on else ""
            here = (-1, -1) if after[S_FINISHED] else (int(after[S_ROUND]), int(after[S_AGGRESSOR]))
            key = (*here, round_betting, int(after[S_FOLDED]), *after[spent].tolist())
            if key not in numbers:
                numbers[key] = len(states)
                states.append(after)
                betting.append(round_betting)
            child[-1][action] = numbers[key]
    table = np.array(states)
    depth = np.array([len(word) for word in betting])
    order = np.lexsort((depth, table[:, S_ROUND], table[:, S_FINISHED]))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    leads = np.array(child, dtype=np.int32)[order]
    return BettingTree(table[order], np.where(leads >= 0, place[leads], -1).astype(np.int32))
