"""The algorithms by name: each takes a task and gives a trained model.

`train_model` is the one way in. `ALGORITHMS` says of each algorithm how it trains, which corpus it works on and
whether it needs the rows themselves. Those that end as a log-linear model share the corpora of the task:

    l-bfgs rprop sgd-l1 bcd             max-ent by our own optimisers
    memm                                max-ent by l-bfgs that also knows the player's previous action
    crf                                 sequences by CRFsuite
    boosting                            trees by LightGBM
    classes                             classes of hands learned from the source, with a strategy for each
    blend                               a product of several of these, to powers fitted on held-out deals (see `blend`)
    majority frequency logistic         baselines: action frequencies, those by betting, scikit-learn's regression
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from pipeline.features.columns import Column
from pipeline.features.patterns import Pattern, Template, Term
from pipeline.features.textrows import TextRows
from pipeline.models.loglinear import LogLinear
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.extras import explain_missing, import_extra
from pipeline.runtime.progress import NO_CALLBACKS, Callbacks
from pipeline.training.config import ALGORITHM_SETTINGS, TrainConfig
from pipeline.training.loop import Context
from pipeline.training.maxent import ALWAYS, train_maxent
from pipeline.training.optimizers import OPTIMIZERS
from pipeline.training.tasks import Corpora, Task, Trained, encode, finish, prepare_corpus

DEFAULT = "default"
"""the algorithm of a request that leaves the choice to the game and its pattern"""


class Algorithm(NamedTuple):
    """A trainer, and the corpus and rows that it needs."""

    train: Callable[[Task, Corpora, Context], Trained]
    previous: bool | None = None
    """the corpus it works on: with the player's previous action or without; None: on none"""
    rows: bool = True
    """whether it needs the rows as well"""
    package: str | None = None
    """the optional package that it needs"""
    settings: tuple[str, ...] = ()
    """which of `config.ALGORITHM_SETTINGS` it reads"""
    chooses: bool = False
    """whether inner rows choose its iteration (see `training.inner`)"""


def train_model(
    algorithm: str,
    task: Task,
    corpora: Corpora | None = None,
    context: Context | None = None,
) -> Trained:
    """Train one model.

    Parameters: `corpora` of the same task, where several algorithms share them (see `corpora_for`); `context` callbacks
    and checkpoint, none by default. Returns the model with its scores on the validation rows.
    """
    check_algorithm(algorithm)
    context = context or Context()
    if corpora is None:
        corpora = corpora_for([algorithm], task, context.callbacks)
    return ALGORITHMS[algorithm].train(task, corpora, context)


def check_algorithm(name: str) -> None:
    """Refuse a name that is no algorithm, and one whose package is not installed: parts left out are other bytes."""
    if name not in ALGORITHMS:
        raise PipelineError(f"{name!r} is no algorithm{nearest(name, [*ALGORITHMS, DEFAULT])}")
    package = ALGORITHMS[name].package
    if package is not None and find_spec(package) is None:
        raise PipelineError(f"--algorithm {name}: {explain_missing(package)} (or name --algorithm l-bfgs)")


def check_settings(algorithms: Sequence[str], config: TrainConfig, game: Game | None, pattern: Pattern) -> None:
    """Refuse a setting that none of the algorithms reads, with this pattern and in this game (None: text rows)."""
    has_classes = game is not None and game.is_holdem and not game.nolimit and game.players == 2
    for name in (name for name in ALGORITHM_SETTINGS if getattr(config, name) != getattr(TrainConfig, name)):
        readers = [algorithm for algorithm, entry in ALGORITHMS.items() if name in entry.settings]
        chosen, reason = {*algorithms} & {*readers}, ""
        if not chosen:
            reason = f"{', '.join(readers)} have it"
        elif name == "passes" and chosen == {"blend"} and not has_classes:
            reason = "blend has no classes in this game"
        elif not chosen & {"crf", "logistic"} and all(
            getattr(one, name, None) is not None for one in pattern.templates
        ):
            reason = "each template of the pattern sets it"  # crf and logistic have one penalty for all features
        if reason:
            option = name.replace("_", "-")
            raise PipelineError(f"{', '.join(algorithms)}: there is no --{option} to set ({reason}): leave it out")


def algorithm_for(name: str, game: Game | None, is_free: bool = True) -> str:
    """Return the algorithm that a name stands for in a game (None: text rows); `default`: the closest on new deals.

    This is the blend in hold'em: in no-limit games, where sizes and stacks matter that no list of templates exhausts,
    and at tables of three, where lines of betting are many, trees are far closer than max-ent; in limit hold'em for two
    learned classes of hands and trees make max-ent closer. Unless the request `is_free` (if it names a
    pattern or priors, which max-ent follows) and in other games it is max-ent by l-bfgs.

    >>> from pipeline.poker.game import builtin
    >>> algorithm_for("default", builtin("holdem.nolimit.2p.reverse_blinds"))
    'blend'
    >>> algorithm_for("default", builtin("holdem.limit.2p.reverse_blinds"))
    'blend'
    >>> algorithm_for("default", builtin("holdem.limit.3p"))
    'blend'
    >>> algorithm_for("default", builtin("leduc.limit.2p"))
    'l-bfgs'
    """
    if name != DEFAULT:
        return name
    return "blend" if game is not None and game.is_holdem and is_free else "l-bfgs"


def corpora_for(algorithms: Collection[str], task: Task, callbacks: Callbacks = NO_CALLBACKS) -> Corpora:
    """Encode the corpora that some algorithms share."""
    chosen = [algorithm for name in algorithms if (algorithm := ALGORITHMS[name]).previous is not None]
    previous = {bool(algorithm.previous) for algorithm in chosen}
    return Corpora(task, previous, callbacks, needs_whole=not all(algorithm.chooses for algorithm in chosen))


def needs_rows(algorithms: Collection[str]) -> bool:
    """Return whether any of the algorithms needs more than its corpus."""
    return any(ALGORITHMS[name].rows for name in algorithms)


BASELINE_ROWS = 200_000
"""rows that the baseline is counted on, at most"""
BETTING = Template("betting", tuple(Term(Column("word", street=street)) for street in range(4)))


def _train_counts(task: Task, corpora: Corpora, context: Context, *, templates: tuple[Template, ...]) -> Trained:
    """Train log frequencies by the last template's features, over those of the one before."""
    encoded = encode(task, Pattern(templates, ""), context.callbacks.stage("counting"))
    prepared = prepare_corpus(encoded, len(task.labels), task.workers)
    template_column, counts = prepared.corpus.template[:, None], prepared.corpus.counts
    overall = counts[template_column[:, 0] == 0].sum(axis=0) + 0.5
    overall /= overall.sum()
    smoothed = counts + 0.5 * overall
    logs = np.log(smoothed / smoothed.sum(axis=1, keepdims=True)) - np.where(template_column > 0, np.log(overall), 0.0)
    model = LogLinear.of(prepared.features, prepared.keys, logs[prepared.corpus.number])
    return finish(task, model, 0, int(np.count_nonzero(model.weights)))


def _train_logistic(task: Task, corpora: Corpora, context: Context) -> Trained:
    """Train scikit-learn's multinomial logistic regression, which knows neither L1 nor which actions are legal."""
    csr_matrix = import_extra("scipy.sparse").csr_matrix
    LogisticRegression = import_extra("sklearn.linear_model").LogisticRegression

    prepared = corpora.get()
    ids, _, mass = prepared.corpus.rows()
    row, label = np.nonzero(mass)
    fired = ids[row] >= 0
    ends = np.append(0, np.cumsum(fired.sum(axis=1)))
    data = csr_matrix((np.ones(ends[-1]), ids[row][fired], ends), shape=(len(row), len(prepared.keys)))
    strength = 1 / max(task.config.rho2, 1e-6)
    fitted = LogisticRegression(C=strength, fit_intercept=False, max_iter=task.config.max_iterations or 200)
    context.callbacks.stage("optimising")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge shows in the number of iterations
        fitted.fit(data, label, mass[row, label])
    weights = np.zeros((len(prepared.keys), len(task.labels)))
    two = len(fitted.classes_) == 2
    weights[:, fitted.classes_] = (np.concatenate([-fitted.coef_, fitted.coef_]) / 2 if two else fitted.coef_).T
    absent = np.setdiff1d(np.arange(len(task.labels)), fitted.classes_)
    weights[:, absent] = -20.0
    model = LogLinear.of(prepared.features, prepared.keys, weights[prepared.corpus.number])
    return finish(task, model, int(fitted.n_iter_.max()), int(np.count_nonzero(model.weights)))


def _imported_trainer(module: str) -> Callable[[Task, Corpora, Context], Trained]:
    """Return a trainer that imports its module when it is called."""

    def trainer(task: Task, corpora: Corpora, context: Context) -> Trained:
        trained: Trained = import_module(f"pipeline.training.{module}").train(task, corpora, context)
        return trained

    return trainer


def _maxent(optimizer: str, previous: bool = False) -> Algorithm:
    trainer = partial(train_maxent, optimizer=optimizer, previous=previous)
    settings = ("rho1", "rho2", "max_iterations", "tolerance", "patience", "min_weight")
    return Algorithm(trainer, previous=previous, rows=False, settings=settings, chooses=True)


ALGORITHMS: Mapping[str, Algorithm] = {
    **{name: _maxent(name) for name in OPTIMIZERS},
    "memm": _maxent("l-bfgs", previous=True),
    "crf": Algorithm(_imported_trainer("crf"), package="pycrfsuite", settings=("rho1", "rho2", "max_iterations")),
    "boosting": Algorithm(_imported_trainer("boosting"), package="lightgbm", settings=("rounds",)),
    "blend": Algorithm(_imported_trainer("blend"), package="lightgbm", settings=ALGORITHM_SETTINGS),
    "classes": Algorithm(_imported_trainer("classes"), settings=("passes", "min_weight")),
    "majority": Algorithm(partial(_train_counts, templates=(ALWAYS,))),
    "frequency": Algorithm(partial(_train_counts, templates=(ALWAYS, BETTING))),
    "logistic": Algorithm(_train_logistic, previous=False, package="sklearn", settings=("rho2", "max_iterations")),
}


def baseline_log_loss(task: Task) -> float | None:
    """Return the validation log-loss of action frequencies by betting, which any model should beat."""
    if task.validation is None or len(task.validation) == 0 or isinstance(task.examples.rows, TextRows):
        return None
    if task.priors and not task.is_learnable:
        return None
    sampled = replace(
        task,
        examples=task.examples.sampled(BASELINE_ROWS),
        validation=task.validation.sampled(BASELINE_ROWS),
        priors=(),
    )
    return train_model("frequency", sampled).log_loss
