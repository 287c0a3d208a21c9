"""The whole betting of a limit game written out as tables, for solvers and for reading logs at a glance.

A vector of rules goes in (see `rules`), a `BettingTree` comes out: every situation that betting can reach, with where
each action leads. Limit betting is small enough (heads-up hold'em: some thousand situations), no-limit betting is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.kernels import kernel
from pipeline.rules import R_NOLIMIT, S_FINISHED, STATE_SIZE, apply, is_legal, start

__all__ = ["BettingTree", "grow"]

Array = npt.NDArray[Any]


@kernel(leaf=True)
def _grow(rules: Array, states: Array, child: Array) -> int:
    """Fill the betting tree of a limit game breadth first; returns the number of nodes, or -1 when it does not fit."""
    start(rules, states[0])
    count = 1
    node = 0
    while node < count:
        for action in range(3):
            child[node, action] = -1
        if states[node, S_FINISHED] == 0:
            for action in range(3):
                if is_legal(rules, states[node], action, rules[R_NOLIMIT]):
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
    """The betting of a limit game as tables: node 0 is the start, nodes in breadth-first order."""

    states: Array
    """(nodes, STATE_SIZE) int64: the state vector at each node"""
    child: Array
    """(nodes, 3) int32: where fold, call and raise lead; -1 when illegal or finished"""

    @property
    def terminal(self) -> Array:
        """Which nodes end the hand."""
        return np.asarray(self.states[:, S_FINISHED] != 0)


def grow(rules: Array, most: int) -> BettingTree | None:
    """The tree of a limit game with at most `most` nodes; None when it has more."""
    room = 0
    while room < most:
        room = min(max(4 * room, 1 << 12), most)
        states = np.zeros((room, STATE_SIZE), dtype=np.int64)
        child = np.zeros((room, 3), dtype=np.int32)
        count = _grow(rules, states, child)
        if count >= 0:
            return BettingTree(states[:count].copy(), child[:count].copy())
    return None
