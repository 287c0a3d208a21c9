"""Four ways to minimise a `Problem`: l-bfgs, rprop, sgd-l1, bcd.

Each is a generator: given a problem and a state (empty, or that of an earlier iterate), it yields an `Iterate` after
every pass over the rows, without end; the caller decides when to stop (see `loop`).

- l-bfgs: two-loop recursion (Nocedal 1980) with backtracking; orthant-wise (Andrew & Gao 2007) where there is L1.
- rprop: iRprop+ (Igel & Huesken 2000) on the pseudo-gradient. A weight that would cross zero stops
  there, and what holds it there is the pseudo-gradient of zero: so the L1 optimum is a fixed point.
- sgd-l1: stochastic descent with the cumulative L1 penalty (Tsuruoka and others 2009); an average of the passes.
- bcd: block coordinate descent (Sokolovska et al. 2010; Lavergne et al. 2010), a block being the weights of a
  feature. Features of one template never share a row, so they are updated at once and exactly.

A state's `weights` are the iterate's own; it is all that is needed to go on from there, so that an interrupted run ends
as an undisturbed one. The arrays in it belong to the optimiser and change with the next step: copy them to keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.models.softmax import legal_masks
from pipeline.runtime.kernels import kernel
from pipeline.training.corpus import Weights
from pipeline.training.objective import Problem, pseudo_slope, shares
from pipeline.training.stochastic import Lazy, Pass, first_rate

HISTORY, SMOOTH_HISTORY = 10, 5
STEP_MIN, STEP_MAX, STEP_START, STEP_UP, STEP_DOWN = 1e-8, 50.0, 0.1, 1.2, 0.5
CURVATURE = 0.05
"""of a row's likelihood in a weight, typically"""
STIFFNESS = 1.5
"""factor on the curvature, so that a step that moves all labels of a feature at once does not overshoot"""


State = dict[str, NDArray[Any]]


class Iterate(NamedTuple):
    """Weights after an iteration, the objective there, and what is needed to go on."""

    weights: Weights
    objective: float
    state: State


def l_bfgs(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Yield iterates of limited-memory BFGS; orthant-wise where a weight has an L1 penalty."""
    weights = state.get("weights", np.zeros(problem.shape))
    penalised = np.broadcast_to(problem.rho1[:, None] > 0, problem.shape)
    is_smooth = not problem.rho1.any()
    history = _History(problem, state)
    value, gradient = problem.smooth(weights)
    objective = value + problem.penalty(weights)
    while True:
        slope = gradient if is_smooth else problem.pseudo_gradient(weights, gradient)
        direction = history.descent(slope)
        if not is_smooth:
            # orthant-wise: a weight moves only downhill by its own slope, and none crosses zero within a step
            direction[penalised & (direction * slope >= 0)] = 0
            side = np.where(weights != 0, np.sign(weights), -np.sign(slope))
        length = 1.0 if history.order else history.first_length(slope)
        while True:
            trial = weights + length * direction
            if not is_smooth:
                trial[penalised & (trial * side < 0)] = 0
            move = trial - weights
            value, trial_gradient = problem.smooth(trial)
            trial_objective = value + problem.penalty(trial)
            if trial_objective <= objective + 1e-4 * _dot(slope, move) or length < 1e-10:
                break
            length *= 0.5
        if trial_objective > objective:  # the line search found nothing lower: stay, and forget the history
            history.order.clear()
        else:
            history.add(move, np.subtract(trial_gradient, gradient, out=gradient))
            weights, gradient, objective = trial, trial_gradient, trial_objective
        yield Iterate(weights, objective, {"weights": weights} | history.state())


class _History:
    """The last moves and the changes of the gradient over them, in arrays used again and again.

    Without L1 the first guess of the inverse Hessian is its diagonal, estimated from the counts of features: with
    features seen from once to in every row this takes a third of the iterations.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self.size = HISTORY if problem.rho1.any() else SMOOTH_HISTORY
        self.moves = state.get("moves", np.zeros((self.size, *problem.shape)))
        self.gradient_changes = state.get("turns", np.zeros((self.size, *problem.shape)))
        self.order: list[int] = state.get("order", np.empty(0, np.int64)).tolist()
        """the slots in use, oldest first"""
        self.templates = problem.corpus.templates
        self.diagonal = np.ones((problem.shape[0], 1))
        if not problem.rho1.any():
            self.diagonal /= problem.rho2[:, None] + CURVATURE * problem.corpus.counts.sum(axis=1, keepdims=True) + 1e-9

    def state(self) -> State:
        return {"moves": self.moves, "turns": self.gradient_changes, "order": np.array(self.order, np.int64)}

    def first_length(self, slope: Weights) -> float:
        return 1.0 / max(1.0, _dot(self.diagonal * slope, self.diagonal * slope) ** 0.5)

    def add(self, move: Weights, gradient_change: Weights) -> None:
        """Store a step, unless its curvature is not positive (then the inverse Hessian would not be either)."""
        if _dot(move, gradient_change) > 1e-12 * _dot(gradient_change, gradient_change):
            slot = self.order.pop(0) if len(self.order) == self.size else len(self.order)
            self.moves[slot], self.gradient_changes[slot] = move, gradient_change
            self.order.append(slot)

    def descent(self, slope: Weights) -> Weights:
        """Return minus the inverse Hessian times the slope, by the two loops."""
        out = -slope
        shares = {}
        # newest to oldest, then back: the inverse Hessian is never written out
        for slot in reversed(self.order):
            move, gradient_change = self.moves[slot], self.gradient_changes[slot]
            shares[slot] = _dot(move, out) / _dot(move, gradient_change)
            _add_scaled(out, -shares[slot], gradient_change)
        out *= self.diagonal
        if self.order:
            move, gradient_change = self.moves[self.order[-1]], self.gradient_changes[self.order[-1]]
            # scale the first guess by the curvature along the last move, so that a full step usually fits
            out *= _dot(move, gradient_change) / _dot(gradient_change, self.diagonal * gradient_change)
        for slot in self.order:
            move, gradient_change = self.moves[slot], self.gradient_changes[slot]
            _add_scaled(out, shares[slot] - _dot(gradient_change, out) / _dot(move, gradient_change), move)
        return out


@kernel(fastmath=True)
def _dot(first: Weights, second: Weights) -> float:
    """Return the inner product; numpy's own would start BLAS threads that compete with ours."""
    a, b = first.reshape(-1), second.reshape(-1)
    value = 0.0
    for i in range(len(a)):
        value += a[i] * b[i]
    return value


@kernel
def _add_scaled(out: Weights, factor: float, other: Weights) -> None:
    a, b = out.reshape(-1), other.reshape(-1)
    for i in range(len(a)):
        a[i] += factor * b[i]


def rprop(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Yield iterates of resilient propagation; a step that changed a sign is taken back if the objective rose."""
    shape = problem.shape
    weights = state.get("weights", np.zeros(shape)).copy()
    steps = state.get("steps", np.full(shape, STEP_START)).copy()
    slopes = state.get("slopes", np.zeros(shape)).copy()
    moved = state.get("moved", np.zeros(shape)).copy()
    before = float(state["objective"][0]) if "objective" in state else np.inf
    pieces = shares(shape[0])
    value, gradient = problem.smooth(weights)
    objective = value + problem.penalty(weights)
    while True:
        rose = objective > before
        problem.workers.map(
            lambda p, gradient=gradient, rose=rose: _rprop_step(
                weights[p], gradient[p], slopes[p], steps[p], moved[p], problem.rho1[p], rose
            ),
            pieces,
        )
        before = objective
        value, gradient = problem.smooth(weights)
        objective = value + problem.penalty(weights)
        state_arrays = {"weights": weights, "steps": steps, "slopes": slopes, "moved": moved}
        yield Iterate(weights, objective, state_arrays | {"objective": np.array([before])})


@kernel
def _rprop_step(
    weights: Weights,
    gradient: Weights,
    slopes: Weights,
    steps: Weights,
    moved: Weights,
    rho1: NDArray[np.float64],
    rose: bool,
) -> None:
    """Move every weight by its own step against the sign of its slope."""
    for f in range(weights.shape[0]):
        bound = rho1[f]
        for j in range(weights.shape[1]):
            w = weights[f, j]
            slope = pseudo_slope(w, gradient[f, j], bound)
            step = steps[f, j]
            turned = slope * slopes[f, j]
            move = 0.0
            if turned < 0.0:  # a minimum was jumped over
                step = max(step * STEP_DOWN, STEP_MIN)
                slope = 0.0
                if rose:  # iRprop+: a jump that still lowered the objective is kept
                    move = -moved[f, j]
            else:
                if turned > 0.0:
                    step = min(step * STEP_UP, STEP_MAX)
                move = -step if slope > 0.0 else (step if slope < 0.0 else 0.0)
            if bound > 0.0 and (w + move) * w < 0.0:
                move = -w
            weights[f, j] = w + move
            steps[f, j] = step
            slopes[f, j] = slope
            moved[f, j] = move


def sgd_l1(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Yield iterates of stochastic descent, rows in a new random order every pass: the last weights or an average.

    A step moves a row's score once per feature that the row fires, so with fifty of them the usual first step would
    overshoot: it is divided by how many times `USUAL_FEATURES` features a row fires on average. An average of the
    passes that weighs pass k by k is taken where its objective is lower; a weight that the penalty holds at zero in the
    last pass is zero in the average.

    Where rows are in several parts, each is passed over from a common point, and a feature's weights are then averaged
    over the parts, by the label mass that it has in each.
    """
    descents = problem.descents()
    is_single = len(descents) == 1
    rows = sum(part.rows for part in descents)
    first_step = first_rate(sum(part.fired for part in descents), rows)
    mass = problem.corpus.counts.sum(axis=1, keepdims=True)
    weights = state.get("point", np.zeros(problem.shape)).copy()
    average = state.get("average", np.zeros(problem.shape)).copy()
    applied = state.get("applied", np.zeros(problem.shape)).copy()
    budgets = state.get("budgets", np.zeros(problem.shape[0])).copy()
    passes = int(state["passes"][0]) if "passes" in state else 0
    budget = float(state["budget"][0]) if "budget" in state else 0.0
    while True:
        lazy = Lazy(problem.rho1, problem.rho2, weights, applied, budgets)
        results = problem.descend(Pass(lazy, budget, first_step, passes, rows, seed, is_single))
        if is_single:
            weights[descents[0].number], applied[descents[0].number], budget = results[0]
        else:
            weights, applied = np.zeros(problem.shape), np.zeros(problem.shape)
            for part, result in zip(descents, results, strict=True):
                weights[part.number] += part.mass * result.weights
                applied[part.number] += part.mass * result.applied
            # by label mass: a part that never fired a feature has no say in it
            weights /= mass
            applied /= mass
            budget = max(result.budget for result in results)
        budgets[:] = budget
        passes += 1
        average += 2 / (passes + 1) * (weights - average)
        average[weights == 0] = 0
        best = min((average, weights), key=problem.objective)
        arrays = {"weights": best, "average": average, "point": weights, "applied": applied, "budgets": budgets}
        scalars = {"passes": np.array([passes]), "budget": np.array([budget])}
        yield Iterate(best, problem.objective(best), arrays | scalars)


class TemplateBlock(NamedTuple):
    """The rows of each feature of one template: those of `features[i]` are `rows[starts[i] : starts[i + 1]]`."""

    features: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    def part(self, low: int, high: int) -> TemplateBlock:
        """Return the block of the features from `low` to before `high`."""
        return TemplateBlock(self.features[low:high], self.starts[low : high + 1], self.rows)


class BlockObjective(NamedTuple):
    """Arrays that block coordinate descent reads: labels of rows, label counts and penalties of features."""

    legal: NDArray[np.uint8]
    mass: NDArray[np.float32]
    masks: NDArray[np.float64]
    counts: Weights
    rho1: NDArray[np.float64]
    rho2: NDArray[np.float64]


def bcd(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Yield iterates of block coordinate descent, template by template."""
    ids, legal, mass = problem.corpus.rows()
    objective = BlockObjective(
        legal, mass, legal_masks(problem.labels), problem.corpus.counts, problem.rho1, problem.rho2
    )
    weights = state.get("weights", np.zeros(problem.shape)).copy()
    blocks = [_rows_by_feature(ids[:, t], problem.workers.threads) for t in range(ids.shape[1])]
    while True:
        scores = np.zeros((len(ids), problem.labels))
        for t in range(ids.shape[1]):
            fired = ids[:, t] >= 0
            scores[fired] += weights[ids[fired, t]]
        for block, cuts in blocks:
            problem.workers.map(
                lambda low, high, block=block, scores=scores: _bcd_block(
                    block.part(low, high), objective, scores, weights
                ),
                cuts[:-1],
                cuts[1:],
            )
        yield Iterate(weights, problem.objective(weights), {"weights": weights})


def _rows_by_feature(column: NDArray[np.int32], threads: int) -> tuple[TemplateBlock, list[int]]:
    """Return the rows of each feature in a template's column, and where each thread's share of features begins."""
    order = np.argsort(column, kind="stable").astype(np.int32)
    order = order[np.searchsorted(column[order], 0) :]
    features, starts = np.unique(column[order], return_index=True)
    starts = np.append(starts, len(order)).astype(np.int64)
    cuts = np.searchsorted(starts, np.linspace(0, len(order), threads + 1)).clip(0, len(features))
    return TemplateBlock(features, starts, order), [int(cut) for cut in cuts]


@kernel
def _bcd_block(block: TemplateBlock, objective: BlockObjective, scores: Weights, weights: Weights) -> None:
    """Take a soft-thresholded Newton step for the weights of each feature, its curvature stiffened to be safe.

    Keeps `scores`, the sums of the weights that each row fires, in step with `weights`.
    """
    starts, rows = block.starts, block.rows
    legal, mass, masks = objective.legal, objective.mass, objective.masks
    counts, rho1, rho2 = objective.counts, objective.rho1, objective.rho2
    labels = weights.shape[1]
    slope, bend, move, chance = np.zeros(labels), np.zeros(labels), np.zeros(labels), np.zeros(labels)
    for i in range(len(block.features)):
        feature = block.features[i]
        slope[:] = 0
        bend[:] = 0
        for position in range(starts[i], starts[i + 1]):
            row = rows[position]
            top = -1e300
            total = 0.0
            for j in range(labels):
                chance[j] = scores[row, j] + masks[legal[row], j]
                top = max(top, chance[j])
                total += mass[row, j]
            z = 0.0
            for j in range(labels):
                chance[j] = np.exp(chance[j] - top)
                z += chance[j]
            for j in range(labels):
                p = chance[j] / z
                slope[j] += total * p
                bend[j] += total * p * (1.0 - p)
        moved = False
        for j in range(labels):
            w = weights[feature, j]
            curve = STIFFNESS * bend[j] + rho2[feature] + 1e-9
            target = w - (slope[j] - counts[feature, j] + rho2[feature] * w) / curve
            edge = rho1[feature] / curve
            target = max(0.0, target - edge) if target > 0.0 else min(0.0, target + edge)
            # where hardly any row makes the label likely the curvature is next to nothing: bound the step
            move[j] = min(2.0, max(-2.0, target - w))
            weights[feature, j] = w + move[j]
            moved = moved or move[j] != 0.0
        if moved:
            for position in range(starts[i], starts[i + 1]):
                for j in range(labels):
                    scores[rows[position], j] += move[j]


OPTIMIZERS: dict[str, Callable[[Problem, State, int], Iterator[Iterate]]] = {
    "l-bfgs": l_bfgs,
    "rprop": rprop,
    "sgd-l1": sgd_l1,
    "bcd": bcd,
}
