"""Rows in, a model out: the trainers, one protocol for all.

A `Task` is one model to train: examples, validation, pattern, penalties. `TRAINERS` names the algorithms; each takes
a task and gives a `Trained`. Those that fit a log-linear model share the corpus that the task builds once:

    l-bfgs rprop rprop- sgd-l1 bcd      max-ent by our own optimisers
    memm                                max-ent by l-bfgs that also knows the player's previous action
    crf crf-l2sgd crf-ap crf-pa crf-arow    sequences by CRFsuite
    boosting net                        trees by LightGBM, a small net by scikit-learn
    majority frequency logistic         baselines: action frequencies, those by betting, scikit-learn's regression
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PipelineError, nearest
from pipeline.features import Features, Numbering, Rows, Vocabulary, fit
from pipeline.features.columns import Column
from pipeline.features.patterns import Pattern, Template, Term
from pipeline.features.textrows import TextRows
from pipeline.models.bundle import Model
from pipeline.models.loglinear import LogLinear
from pipeline.parallel import Workers
from pipeline.training.corpus import Corpus, build
from pipeline.training.loop import Settings, Step, Validation, run, scores
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS

__all__ = ["TRAINERS", "WITHOUT_ROWS", "Examples", "Prepared", "Task", "Trained", "finish", "train"]


@dataclass(frozen=True)
class Examples:
    """Decisions and what was done: labels `(rows,)` or label distributions `(rows, labels)`."""

    rows: Rows
    targets: NDArray[Any]
    hand: NDArray[Any] | None = None
    """a number per hand; rows of a hand and agent follow one another"""
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def legal(self) -> NDArray[np.uint8]:
        """Legal labels as bits."""
        return self.rows.legal if isinstance(self.rows, TextRows) else np.ascontiguousarray(self.rows["legal"])


class Encoded(NamedTuple):
    """Training rows as feature ids, with the hash of each id; validation rows in the same numbers."""

    features: Features
    keys: NDArray[np.uint64]
    ids: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[Any]
    weights: NDArray[np.float64] | None
    validation: Validation | None


class Prepared(NamedTuple):
    """Training rows as a corpus, with what its feature numbers mean, and validation rows in the same numbers."""

    features: Features
    keys: NDArray[np.uint64]
    corpus: Corpus
    validation: Validation | None


@dataclass
class Task:
    """One model to train."""

    examples: Examples
    validation: Examples | None
    pattern: Pattern
    labels: tuple[str, ...]
    streets: tuple[int, ...]
    settings: Settings
    rho1: float = 0.5
    rho2: float = 1e-4
    workers: Workers = field(default_factory=lambda: Workers(1))
    watch: Callable[[Step], None] = lambda step: None
    _encoded: dict[bool, Encoded] = field(default_factory=dict)
    _prepared: dict[bool, Prepared] = field(default_factory=dict)

    def encode(self, previous: bool) -> None:
        """Number the features of the rows, with the previous action or without; done once."""
        if previous not in self._encoded and previous not in self._prepared:
            pattern = self.pattern.on(self.streets)
            self._encoded[previous] = encode(self, pattern.with_previous() if previous else pattern.of_rows())

    def prepared(self, previous: bool = False) -> Prepared:
        """The corpus of the pattern's features; made once."""
        if previous not in self._prepared:
            self.encode(previous)
            self._prepared[previous] = prepare(self, self._encoded.pop(previous))
        return self._prepared[previous]

    def forget_rows(self, algorithms: Collection[str], kept: int = 20_000) -> None:
        """Encode the rows for algorithms that need no more than that; of the rows keep a few to show features by."""
        for previous in {algorithm == "memm" for algorithm in algorithms}:
            self.encode(previous)
        rows = self.examples.rows
        if not isinstance(rows, TextRows):
            some = slice(None, None, max(1, len(rows) // kept))
            self.examples = Examples(rows[some].copy(), self.examples.targets[some].copy())
            self.validation = None

    def problem(self, prepared: Prepared) -> Problem:
        """The objective on a prepared corpus, with the pattern's own strengths where it gives any."""
        templates = prepared.features.pattern.templates
        of = prepared.corpus.template
        rho1 = np.array([self.rho1 if t.rho1 is None else t.rho1 for t in templates])[of]
        rho2 = np.array([self.rho2 if t.rho2 is None else t.rho2 for t in templates])[of]
        return Problem(prepared.corpus, rho1=rho1, rho2=rho2, workers=self.workers)


class Trained(NamedTuple):
    """A model and what is known of its training; scores are on the validation rows, none without any."""

    model: Model
    iterations: int
    objective: float | None
    active: int
    error: float | None
    log_loss: float | None
    best_error: float | None
    """at the best iteration: the one with the lowest validation log-loss"""
    best_log_loss: float | None
    interrupted: bool = False


def number_rows(features: Features, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Feature ids of training rows and the hash of each id; features under their template's minimum are left out."""
    numbering = Numbering()
    ids = np.empty((len(rows), len(features.pattern.templates)), np.int32)
    for part, hashes in features.pieces(rows):
        numbering(hashes, ids[part])
    keys = numbering.keys()
    least = np.array([template.minimum for template in features.pattern.templates])
    if (least > 1).any():
        kept = np.ones(len(keys), bool)
        for column, minimum in zip(ids.T, least, strict=True):
            seen = np.bincount(column[column >= 0], minlength=len(keys))
            kept &= (seen == 0) | (seen >= minimum)
        number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)
        ids, keys = number[ids], keys[kept]
    return ids, keys


def find_rows(features: Features, keys: NDArray[np.uint64], rows: Rows) -> NDArray[np.int32]:
    """Feature ids of other rows in the same numbers."""
    order = np.argsort(keys).astype(np.int32)
    vocabulary = Vocabulary(keys[order])
    ids = np.empty((len(rows), len(features.pattern.templates)), np.int32)
    for part, hashes in features.pieces(rows):
        found = vocabulary.find(hashes)
        ids[part] = np.where(found < 0, -1, order[found])
    return ids


def encode(task: Task, pattern: Pattern) -> Encoded:
    """Fit the pattern to the training rows and number the features they fire."""
    examples, validation = task.examples, task.validation
    if len(examples) == 0:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    features = fit(pattern, examples.rows, task.streets)
    ids, keys = number_rows(features, examples.rows)
    held = None
    if validation is not None and len(validation):
        found = find_rows(features, keys, validation.rows)
        held = Validation(found, validation.legal, validation.targets.copy())
    return Encoded(features, keys, ids, examples.legal, examples.targets.copy(), examples.weights, held)


def prepare(task: Task, encoded: Encoded) -> Prepared:
    """Build the corpus of encoded rows."""
    corpus = build(
        encoded.ids,
        encoded.targets,
        features=len(encoded.keys),
        labels=len(task.labels),
        legal=encoded.legal,
        weights=encoded.weights,
        workers=task.workers,
    )
    return Prepared(encoded.features, encoded.keys, corpus, encoded.validation)


def train(algorithm: str, task: Task) -> Trained:
    """Train one model."""
    if algorithm not in TRAINERS:
        raise PipelineError(f"{algorithm!r} is no algorithm{nearest(algorithm, TRAINERS)}")
    return TRAINERS[algorithm](task)


def finish(task: Task, model: Model, iterations: int, active: int) -> Trained:
    """A model trained elsewhere, scored on the validation rows."""
    found: tuple[float | None, float | None] = None, None
    if task.validation is not None and len(task.validation):
        found = scores(model.predict(task.validation.rows), task.validation.targets)
    return Trained(model, iterations, None, active, *found, *found)


def _maxent(task: Task, optimizer: str, previous: bool = False) -> Trained:
    prepared = task.prepared(previous)
    settings = replace(task.settings, algorithm=optimizer)
    problem = task.problem(prepared)
    found = run(problem, settings, prepared.validation, task.watch)
    weights, kept, best = found.weights, found.kept, found.best
    if settings.least > 0:
        weights = np.where((np.abs(weights) >= settings.least).any(axis=1, keepdims=True), weights, 0.0)
        left = prepared.validation.score(problem, weights) if prepared.validation else (None, None)
        kept = kept._replace(active=int(np.count_nonzero(weights)), error=left[0], log_loss=left[1])
    model = LogLinear.of(prepared.features, prepared.keys, weights[prepared.corpus.number])
    return Trained(
        model,
        len(found.steps),
        kept.objective,
        kept.active,
        kept.error,
        kept.log_loss,
        best.error,
        best.log_loss,
        found.interrupted,
    )


ALWAYS = Template("always", ())
BETTING = Template("betting", tuple(Term(Column("word", street=street)) for street in range(4)))


def _counted(task: Task, templates: tuple[Template, ...]) -> Trained:
    """Log frequencies by the last template's features, over those of the one before."""
    prepared = prepare(task, encode(task, Pattern(templates, "")))
    of, counts = prepared.corpus.template[:, None], prepared.corpus.counts
    overall = counts[of[:, 0] == 0].sum(axis=0) + 0.5
    overall /= overall.sum()
    smoothed = counts + 0.5 * overall
    logs = np.log(smoothed / smoothed.sum(axis=1, keepdims=True)) - np.where(of > 0, np.log(overall), 0.0)
    model = LogLinear.of(prepared.features, prepared.keys, logs[prepared.corpus.number])
    return finish(task, model, 0, int(np.count_nonzero(model.weights)))


def _logistic(task: Task) -> Trained:
    """scikit-learn's multinomial logistic regression on the same features; it knows neither L1 nor legal actions."""
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    prepared = task.prepared()
    ids, _, mass = prepared.corpus.rows()
    row, label = np.nonzero(mass)
    fired = ids[row] >= 0
    ends = np.append(0, np.cumsum(fired.sum(axis=1)))
    data = csr_matrix((np.ones(ends[-1]), ids[row][fired], ends), shape=(len(row), len(prepared.keys)))
    fitted = LogisticRegression(
        C=1 / max(task.rho2, 1e-6), fit_intercept=False, max_iter=task.settings.iterations or 200
    )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged after all iterations: said by their number
        fitted.fit(data, label, mass[row, label])
    weights = np.zeros((len(prepared.keys), len(task.labels)))
    two = len(fitted.classes_) == 2
    weights[:, fitted.classes_] = (np.concatenate([-fitted.coef_, fitted.coef_]) / 2 if two else fitted.coef_).T
    absent = np.setdiff1d(np.arange(len(task.labels)), fitted.classes_)
    weights[:, absent] = -20.0
    model = LogLinear.of(prepared.features, prepared.keys, weights[prepared.corpus.number])
    return finish(task, model, int(fitted.n_iter_.max()), int(np.count_nonzero(model.weights)))


def _elsewhere(module: str, **options: Any) -> Callable[[Task], Trained]:
    """A trainer in a module of its own, imported when called: it needs packages that play does not."""

    def trainer(task: Task) -> Trained:
        found: Trained = import_module(f"pipeline.training.{module}").fit_model(task, **options)
        return found

    return trainer


WITHOUT_ROWS = {*OPTIMIZERS, "memm"}
"""algorithms that need only a task's corpora"""
TRAINERS: Mapping[str, Callable[[Task], Trained]] = {
    **{name: partial(_maxent, optimizer=name) for name in OPTIMIZERS},
    "memm": partial(_maxent, optimizer="l-bfgs", previous=True),
    "crf": _elsewhere("crf", algorithm="lbfgs"),
    **{f"crf-{name}": _elsewhere("crf", algorithm=name) for name in ("l2sgd", "ap", "pa", "arow")},
    "boosting": _elsewhere("boosting"),
    "net": _elsewhere("mlp_train"),
    "majority": partial(_counted, templates=(ALWAYS,)),
    "frequency": partial(_counted, templates=(ALWAYS, BETTING)),
    "logistic": _logistic,
}
