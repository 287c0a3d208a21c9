"""Bring your own agent to a match.

    python examples/own_agent.py [OPPONENT] [HANDS]

An agent is any object with a `name`, a `game` and `probabilities(rows)`. It is asked in bulk: `rows` holds one record
per decision, with the fields of `OBSERVATION` in `pipeline/decisions.py`, and the answer has a row per decision and a
column per label (in limit games fold, call, raise).
"""

import sys

import numpy as np

import pipeline as p

FOLD, CALL, RAISE = range(3)


class HighCards:
    """Raises with two cards of ten or higher, folds two low cards to a bet, calls with the rest."""

    name = "high-cards"

    def __init__(self) -> None:
        self.game = p.find_game("holdem.limit.2p.reverse_blinds")

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        ten = 8  # ranks count from 0, the deuce
        may_raise = (rows["legal"] >> RAISE) & 1 == 1
        strong = (rows["low"] >= ten) & may_raise
        weak = (rows["high"] < ten) & (rows["to_call"] > 0)
        choice = np.where(strong, RAISE, np.where(weak, FOLD, CALL))
        return np.eye(3)[choice]


def main(opponent: str = "@random", hands: str = "20000") -> None:
    print(p.match(HighCards(), opponent, hands=int(hands), seed=1))
    print(p.tournament(HighCards(), "@call", "@random", hands=int(hands)).frame().to_string(index=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
