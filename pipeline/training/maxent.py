"""Max-ent by our own optimisers, plain or against priors: a task in, a log-linear or tilted model out. `tasks`
numbers the features, `prior` chooses how far a model may leave its priors, `loop` drives the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pipeline.features.encoding import Features
from pipeline.features.patterns import Pattern, Template
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import Prior, PriorTimesFeatures, Strengths
from pipeline.runtime.errors import PipelineError
from pipeline.training.corpus import Weights
from pipeline.training.loop import Context, ScoredRows, minimise
from pipeline.training.objective import Problem
from pipeline.training.prior import (
    FIXED,
    Choice,
    PriorProblem,
    PriorRows,
    PriorScoredRows,
    choose_penalties,
    prior_problem,
    with_cells,
)
from pipeline.training.tasks import Corpora, Prepared, Task, Trained, count_features, finish, penalties

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
    choosing = corpora.choosing(previous)
    whole = corpora.get(previous) if choosing is None or corpora.retrains else None

    def fitting(prepared: Prepared | None) -> _Fitting | None:
        return None if prepared is None else _Fitting(prepared.problem(task), prepared.validation, prepared.judges)

    problem, weights, trained = _fit_weights(fitting(choosing), fitting(whole), task, optimizer, context)
    used = choosing if choosing is not None and problem.corpus is choosing.corpus else whole
    assert used is not None
    return trained._replace(model=LogLinear.of(used.features, used.keys, weights[used.corpus.number]))


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
    validation, whole, choosing = None, None, None
    if encoded.validation is not None and predictions.validation is not None:
        ids = with_cells(encoded.validation.ids, predictions.validation, len(encoded.keys))
        validation = PriorScoredRows(ids, encoded.validation.legal, encoded.validation.targets, predictions.validation)
    is_free = choice.log_loss is None or task.config.patience is not None
    inner = corpora.inner if is_free else None  # chosen penalties need no early end
    if inner is not None:
        others = prior_problem(encoded, predictions.train, rho, choice=choice, chosen=~inner, **shared)
        ids = with_cells(encoded.ids, predictions.train, len(encoded.keys))[inner]
        judges = PriorScoredRows(ids, encoded.legal[inner], encoded.targets[inner], predictions.train)
        choosing = _Fitting(others, validation, judges)
    if inner is None or corpora.retrains:
        whole = _Fitting(prior_problem(encoded, predictions.train, rho, choice=choice, **shared), validation, None)
    if not is_free:
        task = replace(task, config=replace(task.config, patience=0))
    problem, weights, trained = _fit_weights(choosing, whole, task, optimizer, context)
    assert isinstance(problem, PriorProblem)
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


class _Fitting(NamedTuple):
    """A problem, the rows that choose an iteration of it, and those that its result is scored on."""

    problem: Problem
    validation: ScoredRows | None
    judges: ScoredRows | None


def _fit_weights(
    choosing: _Fitting | None, whole: _Fitting | None, task: Task, optimizer: str, context: Context
) -> tuple[Problem, Weights, Trained]:
    """Choose an iteration on the judges, then minimise the problem of all rows for as many, and drop small weights.

    Without `choosing` there is nothing to choose; without `whole` the weights of the chosen iteration are kept. Returns
    the problem that the weights are of, the weights and the scores, the model still to be set.
    """
    context.callbacks.stage("optimising")
    fitting = choosing or whole
    assert fitting is not None
    first = minimise(
        fitting.problem, optimizer, task.config, fitting.judges, context if choosing is None else context.inner
    )
    fitted = first
    if choosing is not None and whole is not None and not first.interrupted:
        context.callbacks.stage("optimising on all rows")
        config = replace(task.config, max_iterations=first.chosen.iteration, patience=0)
        try:
            fitted, fitting = minimise(whole.problem, optimizer, config, None, context), whole
        except KeyboardInterrupt:  # before the first iteration: the weights that were judged are the best so far
            fitted = replace(first, interrupted=True)
    weights, chosen, min_weight = fitted.weights, fitted.chosen, task.config.min_weight
    if min_weight > 0:
        small: Any = (np.abs(weights) < min_weight).all(axis=1)
        small[len(fitting.problem.corpus.number) :] = False  # parts of strengths stay as they are
        weights = np.where(small[:, None], 0.0, weights)
    error, log_loss = (None, None) if fitting.validation is None else fitting.validation.score(fitting.problem, weights)
    judges = (choosing or fitting).judges
    model: Any = None
    return (
        fitting.problem,
        weights,
        Trained(
            model,
            len(fitted.steps),
            chosen.objective,
            int(np.count_nonzero(weights)),
            error,
            log_loss,
            first.best.error,
            first.best.log_loss,
            fitted.interrupted,
            kept_iteration=chosen.iteration,
            inner_rows=0 if judges is None else len(judges),
        ),
    )
