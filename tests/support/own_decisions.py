"""A player's own decisions of a hand, walked again from the betting of the last one's row."""

from __future__ import annotations

import numpy as np

from pipeline.dataset.decisions import MOST_ACTIONS, OBSERVATION, extend_betting, observe
from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import RAISE, S_ACTOR, STATE_SIZE, apply, is_legal, size_of, start
from pipeline.runtime.array_types import Array


def _own_decisions(rules: Array, row: Array, tables: Ranking, state: Array, rows: Array, labels: Array) -> int:
    """Fill `rows` with the player's own decisions of the hand up to `row[0]`, the last; return their number or -1."""
    codes = np.zeros(4, dtype=np.int64)
    position = int(row[0]["position"])
    previous = 0
    count = 0
    start(rules, state)
    for street in range(int(row[0]["street"]) + 1):
        code = row[0]["betting_codes"][street]
        length = 0
        while length < 21 and (code >> (3 * length)) != 0:
            length += 1
        for i in range(length - 1, -1, -1):
            label = ((code >> (3 * i)) & 7) - 1
            action = min(label, RAISE)
            if state[S_ACTOR] == position:
                observe(rules, state, codes, previous, row[0]["hole"], row[0]["board"], tables, rows, count)
                labels[count] = label
                count += 1
                previous = label + 1
            codes[street] = extend_betting(codes[street], label)
            size = size_of(rules, state, label) if action == RAISE else 0
            if not is_legal(rules, state, action, size):
                return -1
            apply(rules, state, action, size)
    rows[count] = row[0]
    return count + 1


def own_decisions(game: Game, row: Array) -> tuple[Array, Array]:
    """Return a player's own decisions of a hand, the one in `row` (one OBSERVATION row) last, and the labels taken.

    The labels are one fewer than the rows. In no-limit games earlier amounts are those that the labels stand for.
    """
    rows = np.zeros(MOST_ACTIONS, dtype=OBSERVATION)
    labels = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    count = _own_decisions(game.rules, row, ranking(), state, rows, labels)
    if count < 0:  # amounts that the labels cannot reproduce: the decision stands alone
        return row.copy(), labels[:0]
    return rows[:count], labels[: count - 1]
