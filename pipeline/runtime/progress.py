"""Progress of long work: a function that is called as it goes on, and the callbacks of a training.

Work that can be counted takes a `Progress`; by default it is `no_progress`, which ignores every report. A training has
stages with a `Progress` each and iterations with scores: it takes `Callbacks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Progress = Callable[[int, int], None]
"""Called with (done, total) as long work goes on."""


def no_progress(done: int, total: int) -> None:
    """Ignore a report of progress."""


class Step(NamedTuple):
    """Objective and scores after an iteration of an optimiser; the scores are on the inner rows that choose one."""

    iteration: int
    objective: float
    active: int
    error: float | None
    """share of inner rows whose likeliest label was not taken; None where no iteration is chosen"""
    log_loss: float | None
    seconds: float
    """of this iteration, scoring left out"""


class Callbacks(NamedTuple):
    """Functions called during a training, and the street and algorithm that they are called with."""

    on_step: Callable[[str, str, Step], None] = lambda street, algorithm, step: None
    """called with street, algorithm and scores after each iteration"""
    on_stage: Callable[[str, str], Progress] = lambda street, name: no_progress
    """called with street and name of a piece of work when it begins; returns what is called as that work goes on"""
    street: str = ""
    algorithm: str = ""

    def of(self, street: str, algorithm: str = "") -> Callbacks:
        """Return the callbacks for the model of a street."""
        return self._replace(street=street, algorithm=algorithm)

    def stage(self, name: str) -> Progress:
        """Report that a piece of work begins; return what to call as it goes on."""
        return self.on_stage(self.street, name)

    def step(self, step: Step) -> None:
        """Report an iteration."""
        self.on_step(self.street, self.algorithm, step)


NO_CALLBACKS = Callbacks()
