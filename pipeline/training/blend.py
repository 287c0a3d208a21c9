"""Training of a blend: other algorithms each by itself, then the exponents that join them.

In no-limit games and at tables of more than two the parts are boosted trees and max-ent by the pattern. In limit
hold'em for two they are max-ent, the source's own classes of hands (from `CLASSES_FROM` rows on), boosted trees and the
built-in agents among the task's priors; with many rows their exponents depend on how common the line of betting is.

Parts are trained without some of the training deals, the inner ones, which tell each of them when to stop, and on which
the exponents are fitted afterwards; the validation rows take no part. In limit games with up to `AGAIN` rows the parts
are then trained once more on all deals, for as many iterations as the inner deals had chosen. It is a room of its own
because it trains by other algorithms instead of an optimiser.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.blend import Blend, Lines
from pipeline.models.classes import Classes
from pipeline.models.prior import AgentPrior
from pipeline.runtime.progress import Callbacks
from pipeline.training import boosting, classes
from pipeline.training.boosting import held_inside
from pipeline.training.exponents import fit_slopes, used_exponents
from pipeline.training.loop import scores
from pipeline.training.tasks import LIMIT, Corpora, Task, Trained
from pipeline.training.trainers import corpora_for, finish, train_model

TREES, MAXENT, CLASSES = "boosting", "l-bfgs", "classes"
CLASSES_FROM, AGAIN = 15_000, 100_000
"""rows"""
MANY_JUDGES = 1_000
"""rows of inner deals from which they tell how exponents depend on the line of betting"""
SMALL, LARGE = 4_000, 200_000
"""rows up to which one deal in four judges the parts, and from which one in twenty is enough, instead of one in ten"""


def parts_for(task: Task) -> tuple[str, ...]:
    """The algorithms that are blended for a task."""
    if not task.is_heads_up_limit:
        return TREES, MAXENT
    found = [MAXENT]
    found += [CLASSES] if len(task.examples) >= CLASSES_FROM and classes.is_possible(task) else []
    found += [TREES] if importlib.util.find_spec("lightgbm") else []
    return tuple(found)


def train(task: Task, corpora: Corpora, callbacks: Callbacks) -> Trained:
    """Train the parts, then fit their exponents on the deals that the parts have not seen."""
    task.check_decisions("blend")
    names = parts_for(task)
    priors = [one for one in task.priors if isinstance(one, AgentPrior) and len(task.examples) <= AGAIN]
    task = replace(task, priors=())
    inner = held_inside(task.examples, _one_in(task))
    less = replace(task, examples=task.examples.some(~inner), validation=task.examples.some(inner))
    if not inner.any() or not less.is_learnable:  # too few rows to leave some out
        inner = np.zeros(len(task.examples), bool)
        less = replace(task, validation=task.examples)
    judges = less.validation
    assert judges is not None
    learned = {name: _part(name, task, less, inner, corpora, callbacks) for name in names}
    callbacks.stage("joining")
    asked: list[Any] = [*(one.model for one in learned.values()), *priors]
    said = [one.predict(judges.rows) for one in asked]
    exponents = used_exponents(said, judges)
    interrupted = any(one.interrupted for one in learned.values())
    if task.labels == LIMIT and inner.any() and len(task.examples) <= AGAIN and not interrupted:
        whole = replace(task, validation=None)
        chosen = [name for name, power in zip(names, exponents, strict=False) if power > 0]
        learned |= {name: _again(name, whole, learned[name], corpora, callbacks) for name in chosen}
    asked = [*(one.model for one in learned.values()), *priors]
    used = np.flatnonzero(exponents > 0)
    model = Blend(tuple(asked[at] for at in used), exponents[used])
    if task.is_heads_up_limit and inner.any() and len(judges) >= MANY_JUDGES:
        lines = Lines.of(less.examples.rows)
        powers, slopes = fit_slopes([said[at] for at in used], lines.frequency(judges.rows), judges)
        model = replace(model, exponents=powers, lines=lines, slopes=slopes)
    rounds, active = max(one.iterations for one in learned.values()), sum(one.active for one in learned.values())
    found = finish(task, model, rounds, active)._replace(
        interrupted=interrupted,
        kept=learned[MAXENT].kept,
        exponents=tuple(zip([*names, *(one.name for one in priors)], exponents.tolist(), strict=True)),
        priors=_told(priors, exponents[len(names) :].tolist()),
    )
    if TREES in learned:
        found = found._replace(forests=learned[TREES].forests)
    if CLASSES in learned and isinstance(learned[CLASSES].model, Classes):
        found = found._replace(looks_at=learned[CLASSES].looks_at)
    if found.log_loss is None or task.validation is None:
        return found
    alone = [scores(one.model.predict(task.validation.rows), task.validation.targets)[1] for one in learned.values()]
    return found._replace(parts=tuple(zip(names, alone, strict=True)))


def _one_in(task: Task) -> int:
    """One deal in how many judges the parts: more of them where rows are few and all are learned from in the end."""
    rows = len(task.examples)
    return 20 if rows >= LARGE else 4 if rows < SMALL and task.labels == LIMIT else 10


def _part(
    name: str, task: Task, less: Task, inner: NDArray[np.bool_], corpora: Corpora, callbacks: Callbacks
) -> Trained:
    """A part, trained without the inner deals, which tell it when to stop."""
    if name == TREES:
        return boosting.boost(replace(task, validation=None), inner, callbacks)
    if name == CLASSES:
        return train_model(name, replace(less, validation=None), callbacks=callbacks)
    return train_model(name, less, corpora_for([name], less, callbacks, corpora.interrupts), callbacks=callbacks)


def _again(name: str, task: Task, before: Trained, corpora: Corpora, callbacks: Callbacks) -> Trained:
    """A part trained on all deals, for as many iterations as the inner deals chose."""
    chosen = before.kept or before.iterations
    longer = replace(task, config=replace(task.config, iterations=max(1, chosen), patience=0))
    if name == TREES:
        plan = [forest for forest in before.forests if forest.power > 0]
        return boosting.boost(task, np.zeros(len(task.examples), bool), callbacks, plan)
    if name == CLASSES:
        return train_model(name, task, callbacks=callbacks)
    return train_model(name, longer, corpora_for([name], longer, callbacks, corpora.interrupts), callbacks=callbacks)


def _told(priors: Sequence[AgentPrior], exponents: Sequence[float]) -> tuple[dict[str, Any], ...]:
    """What a result says of each prior, as with `--prior`."""
    return tuple(
        {"prior": one.name, "hash": one.digest, "strength": power, "by": "blend", "penalties": None}
        for one, power in zip(priors, exponents, strict=True)
    )
