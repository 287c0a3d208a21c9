"""Runs of an optimiser: progress, early stopping, checkpoints, Ctrl-C.

In: a `Problem`, the name of an optimiser, a `TrainConfig` and optionally `judges`: rows outside of the problem on which
each iteration is scored for early stopping. They are never the validation rows, since a score on rows that chose the
iteration is biased (`training.inner` has the rows to choose on). Out: a `Fit`, the weights and the scores on the way. A
run stops when the objective has fallen by less than a millionth part in ten iterations, after its last iteration, or
when the log-loss on `judges` has not improved for a while (then its best weights are kept). Ctrl-C ends it with the
best weights so far. With a checkpoint file the optimiser's state is written to it now and then, and at Ctrl-C; a run
that finds one of the same problem goes on from there and ends as if it had never been interrupted. The caller deletes
the file once the result is saved.

Python raises `KeyboardInterrupt` between any two steps of the interpreter: in the middle of an iteration, when the
optimiser's arrays belong to no iterate, or inside the compiler, which turns it into an unreadable `SystemError`.
While an `Interrupts` is entered, Ctrl-C inside `hold()` is therefore only noted; the caller looks at `requested` after
the block. A second Ctrl-C does not wait. Outside of `hold()` it ends the work at once, as ever.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.models.softmax import probabilities
from pipeline.runtime.arrays import read_arrays, write_arrays
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import NO_CALLBACKS, Callbacks, Step
from pipeline.training.config import TrainConfig
from pipeline.training.corpus import Weights
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS, Iterate, State


class Interrupts:
    """Ctrl-C as a request, between `__enter__` and `__exit__`; without effect in other threads than the main one."""

    def __init__(self) -> None:
        self.requests = 0
        self._is_held = False
        self._previous_handler: Any = None

    @property
    def requested(self) -> bool:
        """Return whether there was a Ctrl-C."""
        return self.requests > 0

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous_handler = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
        if kind is not None and issubclass(kind, SystemError) and self.requested:
            raise KeyboardInterrupt from None  # Ctrl-C met the compiler

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requests += 1
        if not self._is_held or self.requests > 1:
            raise KeyboardInterrupt

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Put off the first Ctrl-C to the end of the block, where `requested` tells of it."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False


@dataclass(frozen=True)
class Context:
    """Callbacks, Ctrl-C and checkpoint of a model's training; they decide nothing about what is learned."""

    callbacks: Callbacks = NO_CALLBACKS
    interrupts: Interrupts = field(default_factory=Interrupts)
    """puts off a Ctrl-C to the end of an iteration"""
    checkpoint: Path | None = None
    """a file for the state of the optimiser"""

    @property
    def inner(self) -> Context:
        """Return the context of a training that only chooses an iteration for another: it has its own checkpoint."""
        return replace(self, checkpoint=None if self.checkpoint is None else inner_checkpoint(self.checkpoint))


def inner_checkpoint(path: Path) -> Path:
    """Return the file for the state of an optimiser that only learns from the rows that are not inner."""
    return path.with_name(f"{path.name}.inner")


def discard_checkpoint(path: Path) -> None:
    """Delete a checkpoint and that of the training which chose its iteration."""
    for file in (path, inner_checkpoint(path)):
        file.unlink(missing_ok=True)


ITERATIONS = {"l-bfgs": 1000, "rprop": 1000, "sgd-l1": 50, "bcd": 100}
STALL_WINDOW = 10


@dataclass(frozen=True)
class ScoredRows:
    """Rows to score on: ids in the numbering of the training features, legal bits, targets."""

    ids: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[Any]

    def __len__(self) -> int:
        return len(self.targets)

    def score(self, problem: Problem, weights: Weights) -> tuple[float, float]:
        """Return error and log-loss of the model as it would be played."""
        played = weights[problem.corpus.number].astype(np.float32)
        chances = probabilities(self.ids, self.legal, played, problem.workers)
        return scores(chances, self.targets)


def scores(chances: NDArray[np.float64], targets: NDArray[Any]) -> tuple[float, float]:
    """Return argmax error and log-loss of probabilities against labels or label distributions."""
    best, losses = chances.argmax(axis=1), log_losses(chances, targets)
    if targets.ndim == 1:
        return float((best != targets).mean()), float(losses.mean())
    return float(1 - targets[np.arange(len(chances)), best].mean()), float(losses.mean())


def log_losses(chances: NDArray[np.float64], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log-loss of each row against labels or label distributions."""
    logs = np.log(np.maximum(chances, LEAST_PROBABILITY))
    if targets.ndim == 1:
        return -logs[np.arange(len(chances)), targets]
    return -np.sum(targets * logs, axis=1)


@dataclass(frozen=True)
class Fit:
    """Weights (in the problem's numbering) and how they were reached."""

    weights: Weights
    steps: tuple[Step, ...]
    chosen: Step
    """the iteration whose weights these are"""
    interrupted: bool

    @property
    def best(self) -> Step:
        """Return the iteration with the lowest log-loss on the judges, the last one if nothing was scored."""
        scored = [step for step in self.steps if step.log_loss is not None]
        return min(scored, key=lambda step: step.log_loss or 0.0) if scored else self.steps[-1]


Best = tuple[Step, Weights]


def minimise(
    problem: Problem,
    optimizer: str,
    config: TrainConfig,
    judges: ScoredRows | None = None,
    context: Context | None = None,
) -> Fit:
    """Minimise the problem's objective.

    Parameters: `optimizer` a name of `OPTIMIZERS`; `judges` rows to score each iteration on, no validation rows.
    Returns the weights, `interrupted` if Ctrl-C ended the run after at least one iteration; before that,
    `KeyboardInterrupt` goes on to the caller.
    """
    if optimizer not in OPTIMIZERS:
        raise PipelineError(f"{optimizer!r} is no optimiser{nearest(optimizer, OPTIMIZERS)}")
    context = context or Context()
    interrupts, checkpoint = context.interrupts, context.checkpoint
    mark = _problem_mark(problem, optimizer, config)
    state, steps, best = _resume(checkpoint, mark)
    weights, saved = state.get("weights"), time.monotonic()
    max_iterations = config.max_iterations or ITERATIONS[optimizer]
    complete: Iterate | None = None  # the last iterate, except while its arrays are being changed
    started = interrupted = False
    try:
        iterates = OPTIMIZERS[optimizer](problem, state, config.seed)
        while len(steps) < max_iterations and not _is_done(steps, best, config):
            with interrupts.hold() if started else nullcontext():  # Ctrl-C need not wait for the compiler
                complete, start = None, time.perf_counter()
                iterate = next(iterates)
                seconds = time.perf_counter() - start
            started = True
            if not np.isfinite(iterate.objective):
                raise PipelineError("the objective is not a finite number any more: give a larger rho2 or other rows")
            with interrupts.hold():
                weights = iterate.weights
                error, log_loss = judges.score(problem, weights) if judges is not None else (None, None)
                active = int(np.count_nonzero(weights))
                steps.append(Step(len(steps) + 1, iterate.objective, active, error, log_loss, seconds))
                if best is None or _selection_score(steps[-1]) < _selection_score(best[0]):
                    best = steps[-1], weights.copy()
                complete = iterate
            context.callbacks.step(steps[-1])
            if interrupts.requested:
                raise KeyboardInterrupt
            if checkpoint and time.monotonic() - saved >= config.checkpoint_seconds:
                _save(checkpoint, mark, complete.state, steps, best)
                saved = time.monotonic()
    except KeyboardInterrupt:
        interrupted = True
        if checkpoint and complete is not None and best is not None:
            _save(checkpoint, mark, complete.state, steps, best)
    if best is None or weights is None:
        raise KeyboardInterrupt
    if interrupted or config.stall:
        return Fit(best[1], tuple(steps), best[0], interrupted)
    return Fit(weights, tuple(steps), steps[-1], interrupted)


def _selection_score(step: Step) -> float:
    """Return the score that picks the best iteration: the log-loss on `judges`, or the objective without any."""
    return step.objective if step.log_loss is None else step.log_loss


def _is_done(steps: list[Step], best: Best | None, config: TrainConfig) -> bool:
    if config.stall and best and len(steps) - best[0].iteration >= config.stall:
        return True
    if len(steps) <= STALL_WINDOW:
        return False
    before, now = steps[-1 - STALL_WINDOW].objective, steps[-1].objective
    return abs(before - now) <= config.tolerance * abs(now)


def _problem_mark(problem: Problem, optimizer: str, config: TrainConfig) -> str:
    """Hash what a checkpoint must agree with: rows, penalties, optimiser, seed and parts."""
    digest = hashlib.sha256(f"{optimizer} {config.seed} {config.part_rows}".encode())
    for array in (problem.corpus.counts, problem.corpus.number, problem.rho1, problem.rho2):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _save(path: Path, mark: str, state: State, steps: list[Step], best: Best) -> None:
    table = np.array([[np.nan if value is None else value for value in step] for step in steps], np.float64)
    arrays = {f"state {name}": array for name, array in state.items()}
    arrays |= {"steps": table, "best weights": best[1], "best": np.array([best[0].iteration])}
    arrays |= {"mark": np.frombuffer(bytes.fromhex(mark), np.uint8)}
    with replacing(path) as beside:
        write_arrays(beside, arrays)


def _resume(path: Path | None, mark: str) -> tuple[State, list[Step], Best | None]:
    """Read a checkpoint of the same problem; empty if there is none, or it is another problem's or damaged."""
    try:
        arrays = read_arrays(path.read_bytes()) if path else {}
        if not arrays or arrays["mark"].tobytes().hex() != mark:
            return {}, [], None
        steps = [_step(row) for row in arrays["steps"]]
        state = {
            name.removeprefix("state "): array.copy() for name, array in arrays.items() if name.startswith("state ")
        }
        return state, steps, (steps[int(arrays["best"][0]) - 1], arrays["best weights"].copy())
    except (OSError, ValueError, KeyError, IndexError):
        return {}, [], None


def _step(row: NDArray[np.float64]) -> Step:
    error, log_loss = (None if np.isnan(value) else float(value) for value in row[3:5])
    return Step(int(row[0]), float(row[1]), int(row[2]), error, log_loss, float(row[5]))
