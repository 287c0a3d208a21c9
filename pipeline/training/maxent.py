"""Max-ent by our own optimisers, plain or against priors: a task in, a log-linear or tilted model out. `tasks`
numbers the features, `prior` chooses how far a model may leave its priors, `loop` drives the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.features.encoding import Features
from pipeline.features.patterns import Pattern, Template
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import Prior, PriorTimesFeatures, Strengths
from pipeline.runtime.errors import PipelineError
from pipeline.training.corpus import Weights
from pipeline.training.loop import Context, Validation, minimise
from pipeline.training.objective import Problem
from pipeline.training.prior import (
    FIXED,
    Choice,
    PriorRows,
    PriorValidation,
    choose_penalties,
    prior_problem,
    with_cells,
)
from pipeline.training.tasks import Corpora, Task, Trained, count_features, finish, penalties

ALWAYS = Template("always", ())
WITH_PRIORS = ("l-bfgs", "rprop", "memm")
"""algorithms that can start from priors: their optimisers use the problem alone, not its corpus"""
LEAST_STRENGTH = 0.005
"""the mean strength under which a prior is left out of the model"""


def train_maxent(
    task: Task,
    corpora: Corpora,
    context: Context,
    *,
    optimizer: str,
    previous: bool = False,
) -> Trained:
    """Train a model by one of our optimisers."""
    if task.priors:
        return _train_against_priors(task, corpora, context, optimizer, previous)
    prepared = corpora.get(previous)
    problem = prepared.problem(task)
    weights, trained = _minimise_problem(problem, prepared.validation, task, optimizer, context)
    return trained._replace(model=LogLinear.of(prepared.features, prepared.keys, weights[prepared.corpus.number]))


def _train_against_priors(task: Task, corpora: Corpora, context: Context, optimizer: str, previous: bool) -> Trained:
    """Train max-ent against priors; with nothing to learn from, return the priors themselves."""
    if optimizer not in WITH_PRIORS:
        raise PipelineError(f"{optimizer} cannot start from a prior: {', '.join(WITH_PRIORS)} can")
    if corpora.prior_predictions is None:
        return _priors_alone(task)
    encoded, predictions = corpora.encoded(previous), corpora.prior_predictions
    rho = penalties(encoded.features, count_features(encoded.ids, len(encoded.keys))[1], task.config)
    shared: dict[str, Any] = {"labels": len(task.labels), "workers": task.workers}
    context.callbacks.stage("deciding how far to follow the prior")
    choice = choose_penalties(encoded, predictions.train, predictions.group, rho, **shared)
    problem = prior_problem(encoded, predictions.train, rho, choice=choice, **shared)
    validation = None
    if encoded.validation is not None and predictions.validation is not None:
        ids = with_cells(encoded.validation.ids, predictions.validation, len(encoded.keys))
        validation = PriorValidation(ids, encoded.validation.legal, encoded.validation.targets, predictions.validation)
    if choice.log_loss is not None and task.config.patience is None:  # chosen penalties need no early end
        task = replace(task, config=replace(task.config, patience=0))
    weights, trained = _minimise_problem(problem, validation, task, optimizer, context)
    own = LogLinear.of(encoded.features, encoded.keys, weights[problem.corpus.number])
    strengths = problem.strengths(weights)
    summaries = _prior_summary(task.priors, strengths, predictions.train, choice)
    used_priors = [k for k, summary in enumerate(summaries) if summary["strength"] >= LEAST_STRENGTH]
    if not used_priors:
        return trained._replace(model=own, priors=summaries)
    return trained._replace(
        model=PriorTimesFeatures(own, tuple(task.priors[k] for k in used_priors), strengths.select(used_priors)),
        priors=summaries,
    )


def _priors_alone(task: Task) -> Trained:
    """Return a model that plays what its priors play, in equal shares."""
    own = LogLinear(
        Features(Pattern((ALWAYS,), ""), False, {}, {}),
        np.empty(0, np.uint64),
        np.empty((0, len(task.labels)), np.float32),
    )
    count = len(task.priors)
    share = np.full((4, count), 1 / count, np.float32)
    strengths = Strengths(share, np.empty(0, np.uint64), np.empty((0, count), np.float32))
    model = PriorTimesFeatures(own, task.priors, strengths)
    summaries = _prior_summary(task.priors, strengths, None, Choice(FIXED, "fixed"))
    return finish(task, model, 0, 0)._replace(priors=summaries)


def _prior_summary(
    priors: Sequence[Prior], strengths: Strengths, rows: PriorRows | None, choice: Choice
) -> tuple[dict[str, Any], ...]:
    """Return name, hash and mean strength over the rows of each prior, and what was decided about it."""
    strengths_of_rows = strengths.streets if rows is None else strengths.for_keys(rows.street, rows.key)[rows.cell]
    scale = None if choice.scale == FIXED else choice.scale
    return tuple(
        {"prior": prior.name, "hash": prior.digest, "strength": float(strength), "by": choice.by, "penalties": scale}
        for prior, strength in zip(priors, strengths_of_rows.mean(axis=0), strict=True)
    )


def _minimise_problem(
    problem: Problem, validation: Validation | None, task: Task, optimizer: str, context: Context
) -> tuple[Weights, Trained]:
    """Minimise a problem and drop the smallest weights; return weights and scores, the model still to be set."""
    context.callbacks.stage("optimising")
    fitted = minimise(problem, optimizer, task.config, validation, context)
    weights, chosen, best = fitted.weights, fitted.chosen, fitted.best
    min_weight = task.config.min_weight
    if min_weight > 0:
        small: Any = (np.abs(weights) < min_weight).all(axis=1)
        small[len(problem.corpus.number) :] = False  # parts of strengths stay as they are
        weights = np.where(small[:, None], 0.0, weights)
        rescored = validation.score(problem, weights) if validation else (None, None)
        chosen = chosen._replace(active=int(np.count_nonzero(weights)), error=rescored[0], log_loss=rescored[1])
    model: Any = None
    return weights, Trained(
        model,
        len(fitted.steps),
        chosen.objective,
        chosen.active,
        chosen.error,
        chosen.log_loss,
        best.error,
        best.log_loss,
        fitted.interrupted,
        kept_iteration=chosen.iteration,
    )
