"""Max-ent by our own optimisers, plain or against priors: a task in, a log-linear or tilted model out.

It is a room of its own because it puts together what the others do: `tasks` numbers features, `prior` says how far a
model may leave what others play, `loop` drives the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.features.encoding import Features
from pipeline.features.patterns import Pattern, Template
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import Prior, Strengths, Tilted
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks
from pipeline.training.loop import Validation, minimise, scores
from pipeline.training.objective import Problem, Weights
from pipeline.training.prior import (
    FIXED,
    Choice,
    PriorRows,
    TiltedValidation,
    choose,
    tilted_problem,
    with_cells,
)
from pipeline.training.tasks import Corpora, Task, Trained, penalties

ALWAYS = Template("always", ())
WITH_PRIORS = ("l-bfgs", "rprop", "memm")
"""algorithms whose optimisers ask the problem alone, not its corpus"""
USED = 0.005
"""the mean strength under which a prior is left out of the model"""


def train_maxent(
    task: Task,
    corpora: Corpora,
    callbacks: Callbacks,
    checkpoint: Path | None,
    *,
    optimizer: str,
    previous: bool = False,
) -> Trained:
    """Train a model by one of our optimisers."""
    if task.priors:
        return _against_priors(task, corpora, callbacks, checkpoint, optimizer, previous)
    prepared = corpora.get(previous)
    problem = prepared.problem(task)
    weights, found = _minimised(problem, prepared.validation, task, corpora, callbacks, checkpoint, optimizer)
    return found._replace(model=LogLinear.of(prepared.features, prepared.keys, weights[prepared.corpus.number]))


def _against_priors(
    task: Task, corpora: Corpora, callbacks: Callbacks, checkpoint: Path | None, optimizer: str, previous: bool
) -> Trained:
    """Max-ent against priors; where there is nothing to learn from, the priors themselves."""
    if optimizer not in WITH_PRIORS:
        raise PipelineError(f"{optimizer} cannot start from a prior: {', '.join(WITH_PRIORS)} can")
    if corpora.against is None:
        return _priors_alone(task)
    encoded, against = corpora.encoded(previous), corpora.against
    rho = penalties(encoded.features, _templates(encoded.ids, len(encoded.keys)), task.config)
    shared: dict[str, Any] = {"labels": len(task.labels), "workers": task.workers}
    callbacks.stage("deciding how far to follow the prior")
    choice = choose(encoded, against.train, against.hand, rho, **shared)
    problem = tilted_problem(encoded, against.train, rho, choice=choice, **shared)
    held = None
    if encoded.validation is not None and against.validation is not None:
        ids = with_cells(encoded.validation.ids, against.validation, len(encoded.keys))
        held = TiltedValidation(ids, encoded.validation.legal, encoded.validation.targets, against.validation)
    if choice.log_loss is not None and task.config.patience is None:  # chosen penalties need no early end
        task = replace(task, config=replace(task.config, patience=0))
    weights, found = _minimised(problem, held, task, corpora, callbacks, checkpoint, optimizer)
    own = LogLinear.of(encoded.features, encoded.keys, weights[problem.corpus.number])
    strengths = problem.strengths(weights)
    told = _told(task.priors, strengths, against.train, choice)
    used = [k for k, one in enumerate(told) if one["strength"] >= USED]
    if not used:
        return found._replace(model=own, priors=told)
    return found._replace(model=Tilted(own, tuple(task.priors[k] for k in used), strengths.of(used)), priors=told)


def _priors_alone(task: Task) -> Trained:
    """A model that plays what its priors play, in equal shares."""
    own = LogLinear(
        Features(Pattern((ALWAYS,), ""), False, {}, {}),
        np.empty(0, np.uint64),
        np.empty((0, len(task.labels)), np.float32),
    )
    count = len(task.priors)
    share = np.full((4, count), 1 / count, np.float32)
    strengths = Strengths(share, np.empty(0, np.uint64), np.empty((0, count), np.float32))
    model = Tilted(own, task.priors, strengths)
    error = log_loss = None
    if task.validation is not None and len(task.validation):
        error, log_loss = scores(model.predict(task.validation.rows), task.validation.targets)
    told = _told(task.priors, strengths, None, Choice(FIXED, "fixed"))
    return Trained(model, 0, None, 0, error, log_loss, error, log_loss, priors=told)


def _templates(ids: Any, features: int) -> Any:
    """The template of each feature."""
    out = np.zeros(features, np.int64)
    for template, column in enumerate(ids.T):
        out[column[column >= 0]] = template
    return out


def _told(
    priors: Sequence[Prior], strengths: Strengths, rows: PriorRows | None, choice: Choice
) -> tuple[dict[str, Any], ...]:
    """What a result says of each prior: name, hash, its mean strength over the rows, and what was decided."""
    every = strengths.streets if rows is None else strengths.of_keys(rows.street, rows.key)[rows.cell]
    scale = None if choice.scale == FIXED else choice.scale
    return tuple(
        {"prior": one.name, "hash": one.digest, "strength": float(b), "by": choice.by, "penalties": scale}
        for one, b in zip(priors, every.mean(axis=0), strict=True)
    )


def _minimised(
    problem: Problem,
    validation: Validation | None,
    task: Task,
    corpora: Corpora,
    callbacks: Callbacks,
    checkpoint: Path | None,
    optimizer: str,
) -> tuple[Weights, Trained]:
    """Weights that minimise a problem, the smallest left out, and what is known of them; the model is yet to come."""
    callbacks.stage("optimising")
    found = minimise(
        problem,
        optimizer,
        task.config,
        validation,
        on_step=callbacks.step,
        checkpoint=checkpoint,
        interrupts=corpora.interrupts,
    )
    weights, kept, best = found.weights, found.chosen, found.best
    least = task.config.min_weight
    if least > 0:
        small: Any = (np.abs(weights) < least).all(axis=1)
        small[len(problem.corpus.number) :] = False  # parts of strengths stay as they are
        weights = np.where(small[:, None], 0.0, weights)
        left = validation.score(problem, weights) if validation else (None, None)
        kept = kept._replace(active=int(np.count_nonzero(weights)), error=left[0], log_loss=left[1])
    model: Any = None
    return weights, Trained(
        model,
        len(found.steps),
        kept.objective,
        kept.active,
        kept.error,
        kept.log_loss,
        best.error,
        best.log_loss,
        found.interrupted,
        kept_iteration=kept.iteration,
    )
