"""Who sits where when every deal is played several times.

In a duplicate match each deal is played once per seating, so that the luck of the cards is shared. With two or three
players all orders of the agents are played: two, or six, so that everybody has everybody on either side. With more
players (Kuhn poker takes up to 12) the orders are too many, and only the rotations of one order are played.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt


def seatings(players: int) -> npt.NDArray[Any]:
    """The orders in which a deal is played.

    Parameters: the number of players. Returns: int64 (seatings, players), the agent in each seat; at position p of hand
    h sits the agent of seat (p + h) mod players, as in ACPC matches. The rotations of the first order come first.

    >>> seatings(2).tolist()
    [[0, 1], [1, 0]]
    >>> seatings(3).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]]
    """

    def rotations(order: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [order[i:] + order[:i] for i in range(players)]

    found = rotations(tuple(range(players)))
    if players <= 3:
        found += [
            order
            for one in permutations(range(players))
            if one not in found and one[0] == 0
            for order in rotations(one)
        ]
    return np.array(found, dtype=np.int64)
