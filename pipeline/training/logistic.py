"""scikit-learn's multinomial logistic regression on a task's features: a baseline for our own optimisers.

It knows neither L1 nor which actions are legal. It ends as a log-linear model and plays without scikit-learn.
"""

from __future__ import annotations

import warnings

import numpy as np

from pipeline.models.loglinear import LogLinear
from pipeline.runtime.extras import import_extra
from pipeline.runtime.progress import Callbacks
from pipeline.training.tasks import Corpora, Task, Trained
from pipeline.training.trainers import finish


def train(task: Task, corpora: Corpora, callbacks: Callbacks) -> Trained:
    """Train with scikit-learn's default solver."""
    csr_matrix = import_extra("scipy.sparse").csr_matrix
    LogisticRegression = import_extra("sklearn.linear_model").LogisticRegression

    prepared = corpora.get()
    ids, _, mass = prepared.corpus.rows()
    row, label = np.nonzero(mass)
    fired = ids[row] >= 0
    ends = np.append(0, np.cumsum(fired.sum(axis=1)))
    data = csr_matrix((np.ones(ends[-1]), ids[row][fired], ends), shape=(len(row), len(prepared.keys)))
    strength = 1 / max(task.config.rho2, 1e-6)
    fitted = LogisticRegression(C=strength, fit_intercept=False, max_iter=task.config.iterations or 200)
    callbacks.stage("optimising")
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
