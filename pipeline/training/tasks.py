"""One model to train: its rows, the features to read off them, and the corpora that optimisers work on.

A `Task` is a plain description and never changes. `Corpora` holds what is made from it on the way to the weights: the
features of all rows as numbers (`Encoded`), and the sorted and merged corpus (`Prepared`), each made once however many
algorithms share it. Numbering comes first for all algorithms, so that the rows themselves, which are much larger, can
be freed (`Task.sampled`) before the corpus is built, where no algorithm needs them any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.encoding import Features, Rows, fit_features
from pipeline.features.patterns import Pattern
from pipeline.features.textrows import TextRows
from pipeline.features.vocabulary import Numbering, Vocabulary
from pipeline.models.kinds import Model
from pipeline.models.prior import Prior
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import NO_CALLBACKS, Callbacks, Progress, no_progress
from pipeline.training.config import TrainConfig
from pipeline.training.corpus import Corpus, build_corpus
from pipeline.training.inner import RETRAINED_ROWS, choose_inner, inner_every
from pipeline.training.loop import ScoredRows, scores
from pipeline.training.objective import Problem
from pipeline.training.prior import PriorRows, prior_rows

LIMIT = ("f", "c", "r")
"""the labels of limit games"""
DESCRIBED_ROWS = 20_000
"""rows that are kept to describe features by"""


@dataclass(frozen=True)
class Examples:
    """Decisions and what was done: labels `(rows,)` or label distributions `(rows, labels)`."""

    rows: Rows
    targets: NDArray[Any]
    hand: NDArray[Any] | None = None
    """a number per hand; rows of a hand and agent follow one another"""
    weights: NDArray[np.float64] | None = None
    group: NDArray[np.uint64] | None = None
    """what is held out together, as a hash: the deal of each row, or its player where the dataset holds out players"""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Examples({len(self):,} rows)"

    @property
    def legal(self) -> NDArray[np.uint8]:
        """Legal labels as bits."""
        return self.rows.legal if isinstance(self.rows, TextRows) else np.ascontiguousarray(self.rows["legal"])

    @property
    def groups(self) -> NDArray[Any]:
        """Return what is held out together, a number per row: the group, else the hand, else each row by itself."""
        if self.group is not None:
            return self.group
        return np.arange(len(self)) if self.hand is None else self.hand

    def subset(self, chosen: NDArray[np.bool_]) -> Examples:
        """Return the rows of a mask, copied."""
        rows: Any = self.rows
        hand = None if self.hand is None else self.hand[chosen]
        weights = None if self.weights is None else self.weights[chosen]
        group = None if self.group is None else self.group[chosen]
        return Examples(rows[chosen], self.targets[chosen], hand, weights, group)

    def sampled(self, count: int) -> Examples:
        """Return about `count` of the rows, evenly spread, copied; all of text rows."""
        return self if isinstance(self.rows, TextRows) else self.strided(max(1, len(self) // count))

    def strided(self, step: int) -> Examples:
        """Return every `step`-th of decision rows, copied."""
        assert not isinstance(self.rows, TextRows)
        some = slice(None, None, step)
        weights = None if self.weights is None else self.weights[some].copy()
        return Examples(self.rows[some].copy(), self.targets[some].copy(), None, weights)


@dataclass(frozen=True)
class Task:
    """One model to train."""

    examples: Examples
    validation: Examples | None
    pattern: Pattern
    labels: tuple[str, ...]
    streets: tuple[int, ...]
    config: TrainConfig = field(default_factory=TrainConfig)
    workers: Workers = field(default_factory=lambda: Workers(1))
    priors: tuple[Prior, ...] = ()
    """other players' strategies, which the model starts from"""
    judges: Examples | None = None
    """rows that choose the iteration of max-ent without priors; None: some of `examples` are held out for that"""

    @property
    def is_learnable(self) -> bool:
        """Return whether there are rows with at least two labels."""
        return len(self.examples) > 0 and len(np.unique(self.examples.targets, axis=0)) > 1

    @property
    def is_heads_up_limit(self) -> bool:
        """Return whether the rows are of a limit game for two."""
        rows: Any = self.examples.rows
        return self.labels == LIMIT and int(rows["players"].max(initial=2)) == 2

    def sampled(self, count: int = DESCRIBED_ROWS) -> Task:
        """Return the task with a few of its training rows, to describe features by, and no other rows."""
        return replace(self, examples=self.examples.sampled(count), validation=None, judges=None)

    def inner_rows(self) -> NDArray[np.bool_] | None:
        """Return which training rows choose the iteration of max-ent; None if others do, or no early end is wanted."""
        if self.config.stall == 0 or self.judges is not None or len(self.examples) == 0:
            return None
        inner = choose_inner(self.examples.groups, inner_every(len(self.examples)))
        targets = self.examples.targets[~inner]
        mass = np.bincount(targets) if targets.ndim == 1 else targets.sum(axis=0)
        return inner if inner.any() and np.count_nonzero(mass) > 1 else None

    def check_decisions(self, algorithm: str) -> None:
        """Refuse examples other than decision rows with one action each."""
        if isinstance(self.examples.rows, TextRows) or self.examples.targets.ndim != 1:
            raise PipelineError(f"{algorithm} needs decision rows with one action each: train max-ent on these rows")
        self.check_labels()

    def check_labels(self) -> None:
        """Refuse examples without rows or with one label only."""
        if len(self.examples) == 0:
            raise PipelineError("there are no rows to train on: check the agent, the street and the split")
        if len(np.unique(self.examples.targets)) < 2:
            raise PipelineError(
                f"all {len(self.examples):,} rows have the same label: a model needs at least two to tell apart"
            )


class Forest(NamedTuple):
    """Boosted trees that look at some of the columns (see `training.boosting`)."""

    columns: str
    """the name of the choice of columns"""
    rounds: int
    power: float
    """what their scores are multiplied by; 0: they are left out"""


class Trained(NamedTuple):
    """A trained model, and how its training went; scores are on the validation rows, none without any.

    Validation rows choose nothing. What was chosen (an iteration, rounds, powers) was chosen on `inner_rows` of the
    training rows, and `best_error` and `best_log_loss` are scores on these.
    """

    model: Model
    iterations: int
    objective: float | None
    active: int
    error: float | None
    log_loss: float | None
    best_error: float | None = None
    """on the inner rows, at the iteration that they chose; None if they chose none"""
    best_log_loss: float | None = None
    interrupted: bool = False
    priors: tuple[dict[str, Any], ...] = ()
    """the priors it was trained against: name, hash, mean strength, and what was decided about it"""
    parts_log_loss: tuple[tuple[str, float], ...] = ()
    """validation log-loss of the algorithms that a blend is made of"""
    exponents: tuple[tuple[str, float], ...] = ()
    """the powers of a blend's parts"""
    kept_iteration: int | None = None
    """the iteration whose weights were kept, of max-ent: the one that the inner rows chose, else the last"""
    inner_rows: int = 0
    """training rows that iteration, rounds and powers were chosen on; 0: nothing was chosen"""
    forests: tuple[Forest, ...] = ()
    """the forests that boosted trees are joined from"""
    looks_at: tuple[tuple[str, float], ...] = ()
    """columns that tell learned classes of hands apart, with their weights as shares of the largest"""

    def to_json(self) -> dict[str, Any]:
        """Return all but the model, for a manifest or `train --json`."""
        facts = self._asdict() | {name: dict(getattr(self, name)) for name in PAIRS}
        del facts["model"]
        return facts | {"priors": list(self.priors), "forests": [forest._asdict() for forest in self.forests]}

    @classmethod
    def from_json(cls, model: Model, facts: Mapping[str, Any]) -> Trained:
        """Read what `to_json` wrote; other entries of `facts` are left out."""
        values = {name: facts[name] for name in cls._fields if name in facts}
        values |= {name: tuple(facts[name].items()) for name in PAIRS}
        values |= {
            "priors": tuple(facts.get("priors", ())),
            "forests": tuple(Forest(**one) for one in facts["forests"]),
        }
        return cls(model, **values)


PAIRS = ("parts_log_loss", "exponents", "looks_at")
"""fields of `Trained` that are pairs of a name and a number"""


def finish(task: Task, model: Model, iterations: int, active: int) -> Trained:
    """Score a model that an algorithm has made on the validation rows."""
    validation_scores: tuple[float | None, float | None] = None, None
    if task.validation is not None and len(task.validation):
        validation_scores = scores(model.predict(task.validation.rows), task.validation.targets)
    return Trained(model, iterations, None, active, *validation_scores)


class Encoded(NamedTuple):
    """Training rows as feature ids, with the hash of each id; other rows in the same numbers."""

    features: Features
    keys: NDArray[np.uint64]
    ids: NDArray[np.int32]
    legal: NDArray[np.uint8]
    targets: NDArray[Any]
    weights: NDArray[np.float64] | None
    validation: ScoredRows | None
    judges: ScoredRows | None


class Prepared(NamedTuple):
    """Training rows as a corpus, with what its feature numbers mean, and other rows in the same numbers."""

    features: Features
    keys: NDArray[np.uint64]
    corpus: Corpus
    validation: ScoredRows | None
    judges: ScoredRows | None = None
    """rows that are not in the corpus and choose the iteration"""
    kind: type[Problem] = Problem

    def problem(self, task: Task) -> Problem:
        """Return the objective, with the pattern's own penalties where it gives any."""
        rho1, rho2 = penalties(self.features, self.corpus.template, task.config)
        return self.kind(self.corpus, rho1=rho1, rho2=rho2, workers=task.workers)


def penalties(
    features: Features, template: NDArray[Any], config: TrainConfig
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rho1 and rho2 of features given by their templates: the pattern's own where it gives any."""
    templates = features.pattern.templates
    rho1 = np.array([config.rho1 if t.rho1 is None else t.rho1 for t in templates])[template]
    rho2 = np.array([config.rho2 if t.rho2 is None else t.rho2 for t in templates])[template]
    return rho1, rho2


class PriorPredictions(NamedTuple):
    """Predictions of a task's priors for its training and its validation rows, and the group of each training row."""

    train: PriorRows
    validation: PriorRows | None
    group: NDArray[Any]


class CorpusPair(NamedTuple):
    """The corpus of all training rows, and the one without the inner rows, which judge it; None what is not needed."""

    whole: Prepared | None
    choosing: Prepared | None


class Corpora:
    """The corpora of a task's features, with the player's previous action among them or without."""

    def __init__(
        self,
        task: Task,
        previous: Collection[bool],
        callbacks: Callbacks = NO_CALLBACKS,
        needs_whole: bool = True,
    ) -> None:
        """Number the features of the rows.

        Parameters: `previous` for which corpora; `needs_whole` whether a corpus of all rows is needed even where the
        model of those that are not inner is kept.
        """
        self._labels, self._workers, self._stage = len(task.labels), task.workers, callbacks.stage
        self.retrains = len(task.examples) <= RETRAINED_ROWS
        """whether max-ent is trained on all rows once an iteration was chosen"""
        self.inner = task.inner_rows()
        self._needs_whole = needs_whole or self.retrains or self.inner is None
        pattern = task.pattern.on(task.streets)
        chosen = {which: pattern.with_previous() if which else pattern.of_rows() for which in sorted(previous)}
        self.prior_predictions: PriorPredictions | None = None
        self._corpora: dict[bool, Encoded | CorpusPair] = {}
        if task.priors and chosen:
            if not task.is_learnable:
                return
            callbacks.stage("asking priors")
            self.prior_predictions = _ask_priors(task)
        self._corpora |= {
            which: encode(task, one, callbacks.stage("encoding features")) for which, one in chosen.items()
        }

    def encoded(self, previous: bool = False) -> Encoded:
        """Return the numbers that a corpus would be built from."""
        encoded = self._corpora[previous]
        assert isinstance(encoded, Encoded)
        return encoded

    def get(self, previous: bool = False) -> Prepared:
        """Return the corpus of all rows."""
        whole = self._pair(previous).whole
        assert whole is not None
        return whole

    def choosing(self, previous: bool = False) -> Prepared | None:
        """Return the corpus without the inner rows, which judge it; None if no iteration is to be chosen on them."""
        return self._pair(previous).choosing

    def _pair(self, previous: bool) -> CorpusPair:
        """Return both corpora; they are built when first asked for, in the place of what they are built from."""
        corpus = self._corpora[previous]
        if isinstance(corpus, Encoded):
            self._stage("sorting rows")
            del self._corpora[previous]
            pair = CorpusPair(
                prepare_corpus(corpus, self._labels, self._workers) if self._needs_whole else None,
                None if self.inner is None else prepare_choosing(corpus, self.inner, self._labels, self._workers),
            )
            corpus = self._corpora[previous] = pair
        return corpus


def _ask_priors(task: Task) -> PriorPredictions:
    """Ask a task's priors about its rows."""
    examples, validation_rows = task.examples, task.validation
    if isinstance(examples.rows, TextRows) or examples.hand is None:
        raise PipelineError("a prior needs decision rows: text rows do not say what happened")
    validation = None
    if validation_rows is not None and len(validation_rows):
        validation = prior_rows(task.priors, validation_rows.rows, validation_rows.legal)
    return PriorPredictions(prior_rows(task.priors, examples.rows, examples.legal), validation, examples.groups)


def number_all_rows(
    features: Features, rows: Rows, progress: Progress = no_progress
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Return feature ids of training rows, numbered by first appearance, and each id's hash."""
    numbering = Numbering()
    ids = np.empty((len(rows), len(features.pattern.templates)), np.int32)
    for part, hashes in features.pieces(rows):
        numbering(hashes, ids[part])
        progress(part.stop, len(rows))
    return ids, numbering.keys()


def number_rows(
    features: Features, rows: Rows, progress: Progress = no_progress
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Return feature ids of training rows and each id's hash; features under their template's minimum are left out."""
    ids, keys = number_all_rows(features, rows, progress)
    minimums = feature_minimums(features.pattern)
    if (minimums > 1).any():
        seen, template = count_features(ids, len(keys))
        ids, keys = keep_features(ids, keys, seen >= minimums[template])
    return ids, keys


def feature_minimums(pattern: Pattern) -> NDArray[np.int64]:
    """Return how many training rows must fire a feature of each template for it to count."""
    return np.array([template.minimum for template in pattern.templates])


def count_features(ids: NDArray[np.int32], features: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return how many rows fire each feature, and its template: a feature's hash names one."""
    seen, template = np.zeros(features, np.int64), np.zeros(features, np.int32)
    for number, column in enumerate(ids.T):
        fired = column[column >= 0]
        seen += np.bincount(fired, minlength=features)
        template[fired] = number
    return seen, template


def keep_features(
    ids: NDArray[np.int32], keys: NDArray[np.uint64], is_kept: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Number the kept features anew, in their order; the others become -1."""
    number = np.append(np.where(is_kept, np.cumsum(is_kept) - 1, -1), -1).astype(np.int32)
    return number[ids], keys[is_kept]


class FeatureNumbers:
    """The numbers of features, found by their hashes."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        """`keys` are the hashes in the order of the numbers."""
        self._order = np.argsort(keys).astype(np.int32)
        self._vocabulary = Vocabulary(keys[self._order])

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the number of each hash, -1 where it is unknown."""
        places = self._vocabulary.find(hashes)
        return np.where(places < 0, -1, self._order[places]).astype(np.int32)


def find_rows(features: Features, keys: NDArray[np.uint64], rows: Rows) -> NDArray[np.int32]:
    """Return feature ids of other rows in the same numbers."""
    numbers = FeatureNumbers(keys)
    ids = np.empty((len(rows), len(features.pattern.templates)), np.int32)
    for part, hashes in features.pieces(rows):
        ids[part] = numbers.find(hashes)
    return ids


def encode(task: Task, pattern: Pattern, progress: Progress = no_progress) -> Encoded:
    """Fit the pattern to the training rows and number the features they fire."""
    examples, validation = task.examples, task.validation
    if len(examples) == 0:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    features = fit_features(pattern, examples.rows, task.streets)
    ids, keys = number_rows(features, examples.rows, progress)

    def scored(others: Examples | None) -> ScoredRows | None:
        if others is None or len(others) == 0:
            return None
        return ScoredRows(find_rows(features, keys, others.rows), others.legal, others.targets.copy())

    targets = examples.targets.copy()
    return Encoded(
        features, keys, ids, examples.legal, targets, examples.weights, scored(validation), scored(task.judges)
    )


def prepare_corpus(encoded: Encoded, labels: int, workers: Workers) -> Prepared:
    """Build the corpus of encoded rows."""
    corpus = build_corpus(
        encoded.ids,
        encoded.targets,
        features=len(encoded.keys),
        labels=labels,
        legal=encoded.legal,
        weights=encoded.weights,
        workers=workers,
    )
    return Prepared(encoded.features, encoded.keys, corpus, encoded.validation, encoded.judges)


def prepare_choosing(encoded: Encoded, inner: NDArray[np.bool_], labels: int, workers: Workers) -> Prepared:
    """Build the corpus of the rows that are not inner, from the features that these fire; the inner ones judge it."""
    others = encoded.ids[~inner]
    is_fired = np.zeros(len(encoded.keys), bool)
    is_fired[others[others >= 0]] = True

    def numbered(ids: NDArray[np.int32]) -> NDArray[np.int32]:
        return keep_features(ids, encoded.keys, is_fired)[0]

    weights, validation = encoded.weights, encoded.validation
    learned = encoded._replace(
        keys=encoded.keys[is_fired],
        ids=numbered(others),
        legal=encoded.legal[~inner],
        targets=encoded.targets[~inner],
        weights=None if weights is None else weights[~inner],
        validation=None if validation is None else replace(validation, ids=numbered(validation.ids)),
        judges=ScoredRows(numbered(encoded.ids[inner]), encoded.legal[inner], encoded.targets[inner]),
    )
    return prepare_corpus(learned, labels, workers)
