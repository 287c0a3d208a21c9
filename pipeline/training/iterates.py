"""The iterates that an optimiser yields: weights, the objective there, and the state from which it goes on.

A state's `weights` are the iterate's own; it is all that is needed to go on from there, so that an interrupted run ends
as an undisturbed one. The arrays in it belong to the optimiser and change with the next step: copy them to keep them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from pipeline.training.objective import Weights

State = dict[str, NDArray[Any]]


class Iterate(NamedTuple):
    """Weights after an iteration, the objective there, and what is needed to go on."""

    weights: Weights
    objective: float
    state: State
