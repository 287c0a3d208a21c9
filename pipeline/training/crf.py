"""Conditional random fields by CRFsuite: one sequence per hand and agent.

CRFsuite learns state weights of the pattern's features and a weight for each pair of successive actions. A decision
is played without hindsight: p(a_t | own past actions, observations up to t) is the softmax of state weights plus
the weight of the pair (own last action, a), since nothing later has been seen. So the model is kept as a log-linear
one whose pattern also has the player's last action within the model's streets; CRFsuite's own file is read once, here,
and not kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.features.encoding import Features, fit_features
from pipeline.features.patterns import PREVIOUS, Template, Term
from pipeline.features.textrows import TextRows
from pipeline.models.loglinear import LogLinear
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.training.loop import Context
from pipeline.training.tasks import Corpora, Examples, Task, Trained, finish, number_rows


def train(task: Task, corpora: Corpora, context: Context) -> Trained:
    """Train by CRFsuite's l-bfgs, with the penalties of max-ent; its c2 stands without the half of rho2 / 2."""
    crfsuite = import_extra("pycrfsuite")
    examples = task.examples
    if examples.targets.ndim != 1:
        raise PipelineError("CRFsuite takes one action per row, not a distribution: train max-ent on these rows")
    task.check_labels()
    features = fit_features(task.pattern.on(task.streets).of_rows(), examples.rows, task.streets)
    ids, keys = number_rows(features, examples.rows, context.callbacks.stage("encoding features"))
    context.callbacks.stage("optimising")
    settings: dict[str, Any] = {"feature.possible_states": True, "feature.possible_transitions": True}
    settings |= {
        "c1": task.config.rho1,
        "c2": task.config.rho2 / 2,
        "max_iterations": task.config.max_iterations or 200,
    }
    trainer = crfsuite.Trainer(algorithm="lbfgs", params=settings, verbose=False)
    for words, labels in _sequences(ids, examples, task.labels):
        trainer.append(words, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        trainer.train(str(path))
        tagger = crfsuite.Tagger()
        tagger.open(str(path))
        crf_model = tagger.info()
        tagger.close()
    number = {label: place for place, label in enumerate(task.labels)}
    weights = np.zeros((len(keys), len(number)))
    for (word, label), weight in crf_model.state_features.items():
        weights[int(word), number[label]] = weight
    with_last = _with_last_action(features, task)
    pairs = np.zeros((len(number), len(number)))
    for (before, label), weight in crf_model.transitions.items():
        pairs[number[before], number[label]] = weight
    model = LogLinear.of(
        with_last, np.append(keys, _pair_keys(with_last, len(number))), np.concatenate([weights, pairs])
    )
    logged = trainer.logparser.last_iteration
    return finish(task, model, int(logged["num"]) if logged else 0, int(np.count_nonzero(model.weights)))


def _sequences(
    ids: NDArray[np.int32], examples: Examples, labels: tuple[str, ...]
) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield, for each hand, its rows' feature ids as words and its actions."""
    if isinstance(examples.rows, TextRows):
        hand = examples.rows.first
    else:
        hand = np.arange(len(ids)) if examples.hand is None else examples.hand
    cuts = np.flatnonzero(np.append(True, hand[1:] != hand[:-1]))
    words = ids.astype("U").tolist()
    actions = np.array(labels)[examples.targets].tolist()
    for low, high in pairwise([*cuts.tolist(), len(ids)]):
        yield [[word for word in row if word != "-1"] for row in words[low:high]], actions[low:high]


def _with_last_action(features: Features, task: Task) -> Features:
    """Add one template to the features: the last action within the sequence."""
    text = isinstance(task.examples.rows, TextRows)
    last = PREVIOUS if text else Term(Column("previous", street=min(task.streets)))
    template = Template("last action", (last,))
    return replace(features, pattern=replace(features.pattern, templates=(*features.pattern.templates, template)))


def _pair_keys(features: Features, labels: int) -> NDArray[np.uint64]:
    """Hash the last template for each action before."""
    return features.hash_codes(len(features.pattern.templates) - 1, np.arange(1, labels + 1)[:, None])
