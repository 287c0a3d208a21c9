"""Opening a street: its rows, whole in memory or in parts, as the task and corpora from which models are trained.

In: a request whose dataset and priors are open, and the algorithms to train on some streets. Out: a `Street` for those
that are trained in parts (`PARTWISE`, if the rows are more than one part or a cluster has them) and one for the others.

The rows in memory are not handled as a single part, because a part is made to be thrown away and made again: it is read
twice (to survey, then to encode), keeps hashes of its validation rows, and copies weights to an order of its own and
sums back in every evaluation; a pass of stochastic descent writes its rows out again. What both share is shared below
this module: numbering, corpora, the kernels of the objective and of stochastic descent, and the optimisers, for which
parts are a `Problem` like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import select_rows
from pipeline.poker.game import Game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import discard
from pipeline.runtime.kernels import is_compiled, prepare
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training import parts
from pipeline.training.inner import RETRAINED_ROWS, inner_every, split_inner
from pipeline.training.loop import Context
from pipeline.training.prior import OpenPrior
from pipeline.training.requests import Request
from pipeline.training.rows import plan_parts, read_examples
from pipeline.training.sharded import ClusterParts, Gathering, LocalParts, ShardedCorpora
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import baseline_log_loss, corpora_for, needs_rows, train_model

PARTWISE = ("l-bfgs", "rprop", "sgd-l1", "memm")
"""algorithms that can be trained in parts"""
REHEARSAL_ROWS = 200
"""rows to train on for the sake of compiling what training needs"""
REHEARSED_MODULES = (
    *("pipeline.features.encoding", "pipeline.features.reading", "pipeline.features.vocabulary"),
    *("pipeline.training.corpus", "pipeline.training.objective"),
)
"""modules whose compiled functions every max-ent training calls"""


@dataclass(frozen=True)
class OpenRequest:
    """A request with what was opened for it, the same for all of its streets."""

    request: Request
    game: Game
    priors: Sequence[OpenPrior]
    context: Context
    cluster: Cluster | None = None
    """whose workers hold the rows"""


@dataclass(frozen=True)
class Street:
    """A street's task and corpora, from which its models are trained."""

    task: Task
    """with a few training rows to describe features by if no algorithm needs more, and then no validation rows"""
    corpora: Any
    """`tasks.Corpora`, or the like in parts"""
    rows: int
    validation_rows: int
    baseline: float | None = None
    """validation log-loss of counting betting alone"""


def openings(
    opened: OpenRequest, scope: str, streets: tuple[int, ...], algorithms: Sequence[str]
) -> list[tuple[list[str], AbstractContextManager[Street]]]:
    """Divide algorithms by how they need the rows; return the names of each group and what opens the street for it."""
    request, is_local = opened.request, opened.cluster is None
    in_parts = [name for name in algorithms if name in PARTWISE and not opened.priors]
    if in_parts and is_local and len(plan_parts(request, streets, len(opened.game.labels))) == 1:
        in_parts = []
    whole = [name for name in algorithms if name not in in_parts]
    both = [(in_parts, _open_parts(opened, scope, streets)), (whole, _open_whole(opened, scope, streets, whole))]
    return [(names, opening) for names, opening in both if names]


def check_for_cluster(request: Request) -> None:
    """Refuse what cannot be trained on a cluster."""
    for name in request.algorithms:
        if name not in PARTWISE:
            raise PipelineError(
                f"{name} needs all rows in one place, so no cluster can train it: leave out --cluster, or name an "
                f"--algorithm that learns in parts, such as l-bfgs (others: {', '.join(PARTWISE[1:])})"
            )
    if request.priors:
        raise PipelineError("a prior is followed with all rows in one place: leave out --prior or --cluster")


@contextmanager
def _open_whole(
    opened: OpenRequest, scope: str, streets: tuple[int, ...], algorithms: Sequence[str]
) -> Iterator[Street]:
    """Read all rows of a street into memory."""
    callbacks = opened.context.callbacks.of(scope)
    task = street_task(opened.request, streets, opened.game, partial(callbacks.stage, "reading rows"))
    task = replace(task, priors=tuple(prior.on(streets, task.examples) for prior in opened.priors))
    sizes = len(task.examples), 0 if task.validation is None else len(task.validation)
    _compile(task, algorithms)
    baseline = baseline_log_loss(task)
    corpora = corpora_for(algorithms, task, callbacks)
    if not needs_rows(algorithms):
        task = task.sampled()
    yield Street(task, corpora, *sizes, baseline)


@contextmanager
def _open_parts(opened: OpenRequest, scope: str, streets: tuple[int, ...]) -> Iterator[Street]:
    """Survey the parts of a street; a folder of arrays that all workers read is there while it is open."""
    request, labels, callbacks = opened.request, tuple(opened.game.labels), opened.context.callbacks.of(scope)
    planned = plan_parts(request, streets, len(labels))
    workers = Workers(request.config.workers)
    gathering: Gathering = LocalParts(workers) if opened.cluster is None else ClusterParts(opened.cluster)
    pattern = request.pattern.on(streets).of_rows()
    handles = gathering.map(parts.survey_part, [(rows, pattern) for rows in planned], callbacks.stage("reading rows"))
    surveys = gathering.results(handles)
    gathering.release(handles)
    rows, validation_rows = (
        (sum(sizes) for sizes in zip(*(survey.sizes for survey in surveys), strict=True)) if surveys else (0, 0)
    )
    if rows == 0:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    described = concatenate_examples([survey.described for survey in surveys])
    train, validation = (concatenate_examples([survey.counted[side] for survey in surveys]) for side in range(2))
    task = Task(described, None, request.pattern, labels, streets, request.config, workers)
    counted = replace(task, examples=train, validation=validation if validation_rows else None)
    values = np.concatenate([survey.values for survey in surveys])
    folder = request.out.with_name(f".{request.out.name}.{scope}.parts")
    discard(folder)
    try:
        corpora = ShardedCorpora(
            *(gathering, planned, task, values, validation_rows, callbacks, folder),
            split=split_inner([survey.inner for survey in surveys], inner_every(rows)) if task.config.stall else None,
            retrains=rows <= RETRAINED_ROWS,
        )
        yield Street(task, corpora, rows, validation_rows, baseline_log_loss(counted))
    finally:
        discard(folder)


def concatenate_examples(pieces: Sequence[Examples]) -> Examples:
    """Join examples, one after the other."""
    first: Any = pieces[0].rows
    rows: Any
    if isinstance(first, np.ndarray):
        rows = np.concatenate([piece.rows for piece in pieces])
    else:
        rated: list[Any] = [piece.rows for piece in pieces]
        ochs = None if first.ochs is None else np.concatenate([piece.ochs for piece in rated])
        strength = np.concatenate([piece.strength for piece in rated])
        rows = type(first)(np.concatenate([piece.rows for piece in rated]), strength, ochs)
    return Examples(rows, np.concatenate([piece.targets for piece in pieces]))


def street_task(
    request: Request, streets: tuple[int, ...], game: Game, stage: Callable[[], Progress] = lambda: no_progress
) -> Task:
    """Read the task of one model: the decisions of these streets, divided in training and validation rows."""
    names = [STREETS[street] for street in streets]
    selected = select_rows(request.data, request.agents or None, names, game=request.game)
    examples, validation = read_examples(selected, streets, request.pattern, stage())
    workers = Workers(request.config.workers)
    return Task(examples, validation, request.pattern, tuple(game.labels), streets, request.config, workers)


def _compile(task: Task, algorithms: Sequence[str]) -> None:
    """Train on a few rows for one iteration on a first run, so that all kernels are compiled in one go."""
    names = [name for name in algorithms if not needs_rows([name])]
    if not names or all(map(is_compiled, REHEARSED_MODULES)):
        return
    few = task.sampled(REHEARSAL_ROWS)
    few = replace(few, validation=few.examples, config=replace(task.config, max_iterations=1), priors=())

    def rehearse() -> None:
        for name in names:
            with suppress(PipelineError):  # few rows may have one label only: then compiling waits for the real ones
                train_model(name, few)

    prepare(rehearse, REHEARSED_MODULES)
