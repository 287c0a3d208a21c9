"""Training of a blend: other algorithms each by itself, then the exponents that join them.

In no-limit games and at tables of more than two the parts are boosted trees and max-ent by the pattern. In limit
hold'em for two they are max-ent, the source's own classes of hands (from `CLASSES_ROWS` rows on), boosted trees and the
built-in agents among the task's priors; with many rows their exponents depend on how common the line of betting is.

Parts are trained without some of the training deals, the inner ones, which tell each of them when to stop, and on which
the exponents are fitted afterwards; the validation rows take no part. In limit games with up to
`RETRAINED_ROWS` rows the parts are then trained once more on all deals, for as many iterations as the inner deals had
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.blend import Blend, LineFrequencies
from pipeline.models.classes import Classes
from pipeline.models.prior import AgentPrior
from pipeline.training import boosting, classes
from pipeline.training.exponents import fit_slopes, used_exponents
from pipeline.training.inner import FEWER_INNER, INNER_EVERY, RETRAINED_ROWS, choose_inner
from pipeline.training.loop import Context, scores
from pipeline.training.tasks import LIMIT, Corpora, Task, Trained, finish
from pipeline.training.trainers import train_model

TREES, MAXENT, CLASSES = "boosting", "l-bfgs", "classes"
CLASSES_ROWS = 15_000
"""rows from which on classes of hands are learned"""
SLOPE_ROWS = 1_000
"""rows of inner deals from which on the exponents are made to depend on the line of betting"""
FEW_ROWS, MANY_ROWS = 4_000, 200_000
"""rows up to which the parts are scored on one group in four, and from which on one in twenty, instead of one in ten"""


def parts_for(task: Task) -> tuple[str, ...]:
    """Return the algorithms that are blended for a task."""
    if not task.is_heads_up_limit:
        return TREES, MAXENT
    names = [MAXENT]
    names += [CLASSES] if len(task.examples) >= CLASSES_ROWS and classes.is_possible(task) else []
    return (*names, TREES)


def train(task: Task, corpora: Corpora, context: Context) -> Trained:
    """Train the parts, then fit their exponents on the deals that the parts have not seen."""
    task.check_decisions("blend")
    names = parts_for(task)
    priors = [
        trained for trained in task.priors if isinstance(trained, AgentPrior) and len(task.examples) <= RETRAINED_ROWS
    ]
    task = replace(task, priors=())
    inner = choose_inner(task.examples.groups, _judge_every(task))
    judges = task.examples.subset(inner)
    inner_task = replace(task, examples=task.examples.subset(~inner), validation=None, judges=judges)
    if not inner.any() or not inner_task.is_learnable:  # too few rows to leave some out
        inner, judges = np.zeros(len(task.examples), bool), task.examples
        inner_task = replace(task, validation=None, judges=judges)
    context = replace(context, checkpoint=None)  # one file cannot hold the states of several optimisers
    learned = {name: _train_part(name, task, inner_task, inner, context) for name in names}
    context.callbacks.stage("joining")
    models: list[Any] = [*(trained.model for trained in learned.values()), *priors]
    chances = [trained.predict(judges.rows) for trained in models]
    exponents = used_exponents(chances, judges)
    interrupted = any(trained.interrupted for trained in learned.values())
    if task.labels == LIMIT and inner.any() and len(task.examples) <= RETRAINED_ROWS and not interrupted:
        whole = replace(task, validation=None)
        chosen = [name for name, power in zip(names, exponents, strict=False) if power > 0]
        learned |= {name: _retrain_part(name, whole, learned[name], context) for name in chosen}
    models = [*(trained.model for trained in learned.values()), *priors]
    used_parts = np.flatnonzero(exponents > 0)
    model = Blend(tuple(models[number] for number in used_parts), exponents[used_parts])
    if task.is_heads_up_limit and inner.any() and len(judges) >= SLOPE_ROWS:
        lines = LineFrequencies.of(inner_task.examples.rows)
        powers, slopes = fit_slopes([chances[number] for number in used_parts], lines.frequency(judges.rows), judges)
        model = replace(model, exponents=powers, lines=lines, slopes=slopes)
    rounds, active = (
        max(trained.iterations for trained in learned.values()),
        sum(trained.active for trained in learned.values()),
    )
    result = finish(task, model, rounds, active)._replace(
        interrupted=interrupted,
        inner_rows=int(inner.sum()),
        kept_iteration=learned[MAXENT].kept_iteration,
        exponents=tuple(zip([*names, *(trained.name for trained in priors)], exponents.tolist(), strict=True)),
        priors=_prior_summary(priors, exponents[len(names) :].tolist()),
    )
    if TREES in learned:
        result = result._replace(forests=learned[TREES].forests)
    if CLASSES in learned and isinstance(learned[CLASSES].model, Classes):
        result = result._replace(looks_at=learned[CLASSES].looks_at)
    if result.log_loss is None or task.validation is None:
        return result
    alone = [
        scores(trained.model.predict(task.validation.rows), task.validation.targets)[1] for trained in learned.values()
    ]
    return result._replace(parts_log_loss=tuple(zip(names, alone, strict=True)))


def _judge_every(task: Task) -> int:
    """Return k, where the parts are scored on one deal in k: fewer where all rows are learned from in the end."""
    rows = len(task.examples)
    return FEWER_INNER if rows >= MANY_ROWS else 4 if rows < FEW_ROWS and task.labels == LIMIT else INNER_EVERY


def _train_part(name: str, task: Task, inner_task: Task, inner: NDArray[np.bool_], context: Context) -> Trained:
    """Train a part without the inner deals, which tell it when to stop."""
    if name == TREES:
        return boosting.boost(replace(task, validation=None), inner, context.callbacks)
    return train_model(name, inner_task, context=context)


def _retrain_part(name: str, task: Task, before: Trained, context: Context) -> Trained:
    """Train a part on all deals, for as many iterations as the inner deals chose."""
    if name == TREES:
        plan = [forest for forest in before.forests if forest.power > 0]
        return boosting.boost(task, np.zeros(len(task.examples), bool), context.callbacks, plan)
    if name == MAXENT:  # classes have a fixed number of passes
        iterations = max(1, before.kept_iteration or before.iterations)
        task = replace(task, config=replace(task.config, max_iterations=iterations, patience=0))
    return train_model(name, task, context=context)


def _prior_summary(priors: Sequence[AgentPrior], exponents: Sequence[float]) -> tuple[dict[str, Any], ...]:
    """Return name, hash and exponent of each prior, in the form of results with `--prior`."""
    return tuple(
        {"prior": prior.name, "hash": prior.digest, "strength": power, "by": "blend", "penalties": None}
        for prior, power in zip(priors, exponents, strict=True)
    )
