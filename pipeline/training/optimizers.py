"""Four ways to minimise a `Problem`: l-bfgs, rprop (+ and -), sgd-l1, bcd.

Each is a generator: given a problem and a state (empty, or that of an earlier iterate), it yields an `Iterate` after
every pass over the rows, for ever; whoever drives it decides when to stop. An iterate's state, whose `weights` are
the iterate's own, is all that is needed to go on from there, so that an interrupted run ends as an undisturbed one. The
arrays in it belong to the optimiser and change with the next step: copy what you keep.

- l-bfgs: two-loop recursion (Nocedal 1980) with backtracking; orthant-wise (Andrew & Gao 2007) where there is L1.
- rprop: iRprop+ and iRprop- (Igel & Huesken 2000) on the pseudo-gradient. A weight that would cross zero stops
  there, and what holds it there is the pseudo-gradient of zero: so the L1 optimum is a fixed point.
- sgd-l1: one row at a time with the cumulative penalty of Tsuruoka et al. 2009, here with rho2 as well; the result is
  an average of the passes.
- bcd: block coordinate descent (Sokolovska et al. 2010; Lavergne et al. 2010), a block being the weights of a
  feature. Features of one template never share a row, so they are updated at once and exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.kernels import kernel
from pipeline.models.softmax import legal_masks
from pipeline.training.corpus import SHARE
from pipeline.training.objective import Problem, Weights, pseudo_slope

__all__ = ["OPTIMIZERS", "Iterate", "State"]

State = dict[str, NDArray[Any]]

HISTORY, SMOOTH_HISTORY = 10, 5
STEP_MIN, STEP_MAX, STEP_START, STEP_UP, STEP_DOWN = 1e-8, 50.0, 0.1, 1.2, 0.5
RATE, DECAY, FEW = 0.8, 0.85, 8.0
"""the first step of stochastic descent where rows fire few features, what is left of it after a pass, what few means"""
CURVATURE = 0.05
"""of a row's likelihood in a weight, typically"""
STIFFNESS = 1.5


class Iterate(NamedTuple):
    """Weights after an iteration, the objective there, and what is needed to go on."""

    weights: Weights
    objective: float
    state: State


def l_bfgs(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Limited-memory BFGS; orthant-wise where a weight has an L1 penalty."""
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
    """The last moves and the turns of the gradient over them, in arrays used again and again.

    Without L1 the first guess of the inverse Hessian is its diagonal, as far as counts of features tell it: with
    features seen from once to in every row this takes a third of the iterations.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self.size = HISTORY if problem.rho1.any() else SMOOTH_HISTORY
        self.moves = state.get("moves", np.zeros((self.size, *problem.shape)))
        self.turns = state.get("turns", np.zeros((self.size, *problem.shape)))
        self.order: list[int] = state.get("order", np.empty(0, np.int64)).tolist()
        """the slots in use, oldest first"""
        self.templates = problem.corpus.templates
        self.guess = np.ones((problem.shape[0], 1))
        if not problem.rho1.any():
            self.guess /= problem.rho2[:, None] + CURVATURE * problem.corpus.counts.sum(axis=1, keepdims=True) + 1e-9

    def state(self) -> State:
        return {"moves": self.moves, "turns": self.turns, "order": np.array(self.order, np.int64)}

    def first_length(self, slope: Weights) -> float:
        return 1.0 / max(1.0, _dot(self.guess * slope, self.guess * slope) ** 0.5)

    def add(self, move: Weights, turn: Weights) -> None:
        """Keep a step, unless the gradient did not turn with it."""
        if _dot(move, turn) > 1e-12 * _dot(turn, turn):
            slot = self.order.pop(0) if len(self.order) == self.size else len(self.order)
            self.moves[slot], self.turns[slot] = move, turn
            self.order.append(slot)

    def descent(self, slope: Weights) -> Weights:
        """Minus the inverse Hessian times the slope, by the two loops."""
        out = -slope
        shares = {}
        for slot in reversed(self.order):
            move, turn = self.moves[slot], self.turns[slot]
            shares[slot] = _dot(move, out) / _dot(move, turn)
            _add_scaled(out, -shares[slot], turn)
        out *= self.guess
        if self.order:
            move, turn = self.moves[self.order[-1]], self.turns[self.order[-1]]
            out *= _dot(move, turn) / _dot(turn, self.guess * turn)
        for slot in self.order:
            move, turn = self.moves[slot], self.turns[slot]
            _add_scaled(out, shares[slot] - _dot(turn, out) / _dot(move, turn), move)
        return out


@kernel(fastmath=True)
def _dot(one: Weights, other: Weights) -> float:
    """The inner product; the threads of numpy's own would spin beside ours."""
    a, b = one.reshape(-1), other.reshape(-1)
    value = 0.0
    for i in range(len(a)):
        value += a[i] * b[i]
    return value


@kernel
def _add_scaled(out: Weights, factor: float, other: Weights) -> None:
    a, b = out.reshape(-1), other.reshape(-1)
    for i in range(len(a)):
        a[i] += factor * b[i]


def rprop_plus(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Resilient propagation; a step that changed a sign is taken back if the objective rose."""
    return _rprop(problem, state, takes_back=True)


def rprop_minus(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Resilient propagation without taking steps back."""
    return _rprop(problem, state, takes_back=False)


def _rprop(problem: Problem, state: State, takes_back: bool) -> Iterator[Iterate]:
    shape = problem.shape
    weights = state.get("weights", np.zeros(shape)).copy()
    steps = state.get("steps", np.full(shape, STEP_START)).copy()
    slopes = state.get("slopes", np.zeros(shape)).copy()
    moved = state.get("moved", np.zeros(shape if takes_back else (0, shape[1]))).copy()
    before = float(state["objective"][0]) if "objective" in state else np.inf
    pieces = problem.workers.slices(shape[0], SHARE)
    value, gradient = problem.smooth(weights)
    objective = value + problem.penalty(weights)
    while True:
        rose = objective > before
        problem.workers.map(
            lambda p, gradient=gradient, rose=rose: _rprop_step(
                weights[p], gradient[p], slopes[p], steps[p], moved[p], problem.rho1[p], takes_back, rose
            ),
            pieces,
        )
        before = objective
        value, gradient = problem.smooth(weights)
        objective = value + problem.penalty(weights)
        kept = {"weights": weights, "steps": steps, "slopes": slopes, "objective": np.array([before])}
        yield Iterate(weights, objective, kept | ({"moved": moved} if takes_back else {}))


@kernel
def _rprop_step(
    weights: Weights,
    gradient: Weights,
    slopes: Weights,
    steps: Weights,
    moved: Weights,
    rho1: NDArray[np.float64],
    takes_back: bool,
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
            if turned < 0.0:
                step = max(step * STEP_DOWN, STEP_MIN)
                slope = 0.0
                if takes_back and rose:
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
            if takes_back:
                moved[f, j] = move


def sgd_l1(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Stochastic gradient descent, rows in a new random order every pass; yields the last weights or an average.

    A step moves a row's score once per feature that the row fires, so with fifty of them the usual first step would
    overshoot: it is divided by how many times `FEW` features a row fires on average. An average of the passes that
    weighs pass k by k is taken where its objective is lower; a weight that the penalty holds at zero in the last pass
    is zero in the average.
    """
    masks = legal_masks(problem.labels)
    ids, legal, mass = problem.corpus.rows()
    copies = np.maximum(1, np.ceil(mass.sum(1))).astype(np.int64)
    mass /= copies[:, None].astype(np.float32)
    order = np.repeat(np.arange(len(ids), dtype=np.int32), copies)
    first = RATE / max(1.0, float((ids >= 0).sum(axis=1) @ copies) / len(order) / FEW)
    weights = state.get("point", np.zeros(problem.shape)).copy()
    average = state.get("average", np.zeros(problem.shape)).copy()
    applied = state.get("applied", np.zeros(problem.shape)).copy()
    budgets = state.get("budgets", np.zeros(problem.shape[0])).copy()
    done = int(state["passes"][0]) if "passes" in state else 0
    budget = float(state["budget"][0]) if "budget" in state else 0.0
    while True:
        turn = np.random.default_rng([seed, done]).permutation(order)
        rates = first * DECAY ** (done + np.arange(len(order)) / len(order))
        lazy = _Lazy(problem.rho1, problem.rho2, weights, applied, budgets)
        budget = _sgd_pass(ids, legal, mass, turn, rates, masks, lazy, budget)
        done += 1
        average += 2 / (done + 1) * (weights - average)
        average[weights == 0] = 0
        best = min((average, weights), key=problem.objective)
        kept = {"weights": best, "average": average, "point": weights, "applied": applied, "budgets": budgets}
        kept |= {"passes": np.array([done]), "budget": np.array([budget])}
        yield Iterate(best, problem.objective(best), kept)


class _Lazy(NamedTuple):
    """Weights whose penalties are taken only when a row fires them: what was taken and what is still owed.

    The budget is the sum of all steps so far divided by the number of rows. The L1 penalty that a weight could have had
    is rho1 times the budget (Tsuruoka et al. 2009), `applied` is what it had; the L2 penalty shrinks a weight by
    exp(-rho2 x budget since `budgets`, when the weight was last looked at).
    """

    rho1: NDArray[np.float64]
    rho2: NDArray[np.float64]
    weights: Weights
    applied: Weights
    budgets: NDArray[np.float64]


@kernel
def _settle(lazy: _Lazy, feature: int, budget: float) -> None:
    """Take the penalties that a feature's weights owe."""
    owed = budget * lazy.rho1[feature]
    shrink = np.exp(-lazy.rho2[feature] * (budget - lazy.budgets[feature]))
    lazy.budgets[feature] = budget
    for j in range(lazy.weights.shape[1]):
        w = lazy.weights[feature, j] * shrink
        kept = w
        if w > 0.0:
            kept = max(0.0, w - (owed + lazy.applied[feature, j]))
        elif w < 0.0:
            kept = min(0.0, w + (owed - lazy.applied[feature, j]))
        lazy.weights[feature, j] = kept
        lazy.applied[feature, j] += kept - w


@kernel
def _sgd_pass(
    ids: NDArray[np.int32],
    legal: NDArray[np.uint8],
    mass: NDArray[np.float32],
    order: NDArray[np.int32],
    rates: NDArray[np.float64],
    masks: NDArray[np.float64],
    lazy: _Lazy,
    budget: float,
) -> float:
    """One pass over the rows; at its end no weight owes a penalty. Returns the new budget."""
    weights = lazy.weights
    labels = weights.shape[1]
    chance = np.zeros(labels)
    for i in range(len(order)):
        row = order[i]
        total = 0.0
        for j in range(labels):
            chance[j] = masks[legal[row], j]
            total += mass[row, j]
        for t in range(ids.shape[1]):
            feature = ids[row, t]
            if feature >= 0:
                _settle(lazy, feature, budget)
                for j in range(labels):
                    chance[j] += weights[feature, j]
        top = chance.max()
        z = 0.0
        for j in range(labels):
            chance[j] = np.exp(chance[j] - top)
            z += chance[j]
        budget += rates[i] / len(order)
        for j in range(labels):
            chance[j] = rates[i] * (total * chance[j] / z - mass[row, j])
        for t in range(ids.shape[1]):
            feature = ids[row, t]
            if feature >= 0:
                for j in range(labels):
                    weights[feature, j] -= chance[j]
                _settle(lazy, feature, budget)
    for feature in range(weights.shape[0]):
        _settle(lazy, feature, budget)
    return budget


class Block(NamedTuple):
    """The rows of each feature of one template: those of `features[i]` are `rows[starts[i] : starts[i + 1]]`."""

    features: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    def part(self, low: int, high: int) -> Block:
        """The block of the features from `low` to before `high`."""
        return Block(self.features[low:high], self.starts[low : high + 1], self.rows)


class BlockObjective(NamedTuple):
    """What block coordinate descent reads: the rows' labels, and by feature the labels' counts and the penalties."""

    legal: NDArray[np.uint8]
    mass: NDArray[np.float32]
    masks: NDArray[np.float64]
    counts: Weights
    rho1: NDArray[np.float64]
    rho2: NDArray[np.float64]


def bcd(problem: Problem, state: State, seed: int = 0) -> Iterator[Iterate]:
    """Block coordinate descent, template by template."""
    ids, legal, mass = problem.corpus.rows()
    given = BlockObjective(legal, mass, legal_masks(problem.labels), problem.corpus.counts, problem.rho1, problem.rho2)
    weights = state.get("weights", np.zeros(problem.shape)).copy()
    blocks = [_rows_by_feature(ids[:, t], problem.workers.threads) for t in range(ids.shape[1])]
    while True:
        scores = np.zeros((len(ids), problem.labels))
        for t in range(ids.shape[1]):
            fired = ids[:, t] >= 0
            scores[fired] += weights[ids[fired, t]]
        for block, cuts in blocks:
            problem.workers.map(
                lambda low, high, block=block, scores=scores: _bcd_block(block.part(low, high), given, scores, weights),
                cuts[:-1],
                cuts[1:],
            )
        yield Iterate(weights, problem.objective(weights), {"weights": weights})


def _rows_by_feature(column: NDArray[np.int32], threads: int) -> tuple[Block, list[int]]:
    """The rows of each feature in a template's column, and where the features of each thread's share begin and end."""
    order = np.argsort(column, kind="stable").astype(np.int32)
    order = order[np.searchsorted(column[order], 0) :]
    features, starts = np.unique(column[order], return_index=True)
    starts = np.append(starts, len(order)).astype(np.int64)
    cuts = np.searchsorted(starts, np.linspace(0, len(order), threads + 1)).clip(0, len(features))
    return Block(features, starts, order), [int(cut) for cut in cuts]


@kernel
def _bcd_block(block: Block, given: BlockObjective, scores: Weights, weights: Weights) -> None:
    """A soft-thresholded Newton step for the weights of each feature, its curvature stiffened to be safe.

    Keeps `scores`, the sums of the weights that each row fires, in step with `weights`.
    """
    starts, rows = block.starts, block.rows
    legal, mass, masks = given.legal, given.mass, given.masks
    counts, rho1, rho2 = given.counts, given.rho1, given.rho2
    labels = weights.shape[1]
    slope, bend, move, chance = np.zeros(labels), np.zeros(labels), np.zeros(labels), np.zeros(labels)
    for i in range(len(block.features)):
        feature = block.features[i]
        slope[:] = 0
        bend[:] = 0
        for at in range(starts[i], starts[i + 1]):
            row = rows[at]
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
            move[j] = min(2.0, max(-2.0, target - w))
            weights[feature, j] = w + move[j]
            moved = moved or move[j] != 0.0
        if moved:
            for at in range(starts[i], starts[i + 1]):
                for j in range(labels):
                    scores[rows[at], j] += move[j]


OPTIMIZERS: dict[str, Callable[[Problem, State, int], Iterator[Iterate]]] = {
    "l-bfgs": l_bfgs,
    "rprop": rprop_plus,
    "rprop-": rprop_minus,
    "sgd-l1": sgd_l1,
    "bcd": bcd,
}
