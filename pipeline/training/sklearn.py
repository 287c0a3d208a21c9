"""The max-ent optimisers for people who never saw a card: a scikit-learn classifier of categorical columns.

In: rows of categories (texts, whole numbers, anything that can be compared) and a class each. Out: class probabilities.
Each column, or each combination of columns that `templates` names, gives a feature per value; a row's score for a class
is the sum of its features' weights. The objective is that of `pipeline.training.objective`: sum of -log p + rho1 |w| +
rho2/2 w², and the optimisers are those of `pipeline train`. It needs scikit-learn (the extra `[train]`).

    from pipeline.training.sklearn import MaxEntClassifier
    MaxEntClassifier(rho1=0.1).fit([["red", "small"], ["blue", "large"]], ["apple", "plum"]).predict([["red", "large"]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.models.softmax import probabilities
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.runtime.parallel import Workers
from pipeline.training.config import TrainConfig
from pipeline.training.corpus import ALL_LEGAL, build_corpus
from pipeline.training.loop import minimise
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS

_base: Any = import_extra("sklearn.base")
_validation: Any = import_extra("sklearn.utils.validation")
_multiclass: Any = import_extra("sklearn.utils.multiclass")

EXPECTED_FAILED_CHECKS: dict[str, str] = {}
"""checks of scikit-learn's `check_estimator` that a classifier of categories cannot pass, and why"""


class MaxEntClassifier(_base.ClassifierMixin, _base.BaseEstimator):  # type: ignore[misc]
    """Maximum-entropy (multinomial logistic) classifier of categorical columns with L1 and L2 penalties.

    Parameters
    ----------
    optimizer : str
        `l-bfgs`, `rprop`, `sgd-l1` or `bcd`. With an L1 penalty on many categories scikit-learn's
        `LogisticRegression(solver="saga")` is the better choice: on 100,000 one-hot rows `l-bfgs`, orthant-wise there,
        took 13.8 seconds to an objective of 78,069.4, saga 5.3 seconds to 78,061.2; `bcd` takes minutes. What is here
        are the optimisers of `pipeline train`, with templates and penalties as there.
    rho1, rho2 : float
        Strengths of the L1 and the L2 penalty on the sum over rows; the intercept has none.
    templates : sequence of sequences of int, optional
        Combinations of columns that are features together, such as `[(0,), (1,), (0, 1)]`; each column alone by
        default.
    max_iter : int, optional
        Iterations at most; by default as many as the optimiser usually needs.
    tol : float
        Stop when the objective has fallen by less than this part of itself in ten iterations.
    random_state : int
        Decides the order of rows in `sgd-l1`.
    n_jobs : int
        Threads; results depend on their number, not on their timing.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    coef_ : array of shape (classes, features), in the order of the templates and of their values
    intercept_ : array of shape (classes,)
    n_iter_ : int
    objective_ : float

    Examples
    --------
    >>> X = [["red", "small"], ["red", "large"], ["blue", "small"], ["blue", "large"]] * 5
    >>> y = ["apple", "apple", "plum", "plum"] * 5
    >>> model = MaxEntClassifier(rho1=0.1).fit(X, y)
    >>> model.predict([["red", "small"], ["blue", "huge"]]).tolist()
    ['apple', 'plum']
    >>> model.score(X, y)
    1.0
    """

    def __init__(
        self,
        optimizer: str = "l-bfgs",
        *,
        rho1: float = TrainConfig.rho1,
        rho2: float = TrainConfig.rho2,
        templates: Sequence[Sequence[int]] | None = None,
        max_iter: int | None = None,
        tol: float = TrainConfig.tolerance,
        random_state: int = TrainConfig.seed,
        n_jobs: int = 1,
    ) -> None:
        self.optimizer = optimizer
        self.rho1 = rho1
        self.rho2 = rho2
        self.templates = templates
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxEntClassifier:
        """Learn from rows X (rows, columns) of categories and a class each; `sample_weight` (rows,) weighs them."""
        X, y = _validation.validate_data(self, X, y, dtype=None)
        _multiclass.check_classification_targets(y)
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"{self.optimizer!r} is no optimizer: one of {', '.join(OPTIMIZERS)}")
        if sample_weight is not None:
            sample_weight = _validation._check_sample_weight(sample_weight, X)
            seen = sample_weight > 0
            X, y, sample_weight = X[seen], y[seen], sample_weight[seen]
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"MaxEntClassifier needs at least 2 classes, the data has {len(self.classes_)} class")
        self.categories_ = [_categories(column) for column in X.T]
        chosen = self.templates or [(column,) for column in range(X.shape[1])]
        self.templates_ = [tuple(int(column) for column in template) for template in chosen]
        codes = self._codes(X)
        self.values_ = [np.unique(key[key >= 0]) for key in self._keys(codes)]
        ids = self._ids(codes)
        features = sum(map(len, self.values_)) + 1
        workers = Workers(self.n_jobs or 1)
        try:
            config = TrainConfig(
                rho1=self.rho1,
                rho2=self.rho2,
                max_iterations=self.max_iter,
                tolerance=self.tol,
                patience=0,
                seed=self.random_state or 0,
                workers=workers.threads,
            )
            corpus = build_corpus(
                ids,
                labels.astype(np.int64),
                features=features,
                labels=len(self.classes_),
                legal=np.full(len(ids), ALL_LEGAL, np.uint8),
                weights=sample_weight,
                workers=workers,
            )
            penalised = corpus.template > 0
            rho1, rho2 = (np.where(penalised, strength, 0.0) for strength in (self.rho1, self.rho2))
            problem = Problem(corpus, rho1=rho1, rho2=rho2, workers=workers)
            fitted = minimise(problem, self.optimizer, config)
        except PipelineError as error:
            raise ValueError(str(error)) from None
        weights = fitted.weights[corpus.number]
        self.intercept_, self.coef_ = weights[0], np.ascontiguousarray(weights[1:].T)
        self.n_iter_, self.objective_ = len(fitted.steps), fitted.chosen.objective
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (rows, classes) probabilities; a value that training did not see is ignored."""
        _validation.check_is_fitted(self)
        X = _validation.validate_data(self, X, dtype=None, reset=False)
        ids = self._ids(self._codes(X))
        weights = np.concatenate([self.intercept_[None], self.coef_.T]).astype(np.float32)
        return probabilities(ids, np.full(len(ids), ALL_LEGAL, np.uint8), weights)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (rows, classes) logarithms of the probabilities."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return (rows,) the likeliest class of each row."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def _codes(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Return (rows, columns) each value's place among its column's categories, -1 for a value that is not there."""
        out = np.empty(X.shape, np.int64)
        for number, (column, categories) in enumerate(zip(X.T, self.categories_, strict=True)):
            if column.dtype.kind == "O" or not isinstance(categories, np.ndarray):
                places = {_key(value): place for place, value in enumerate(categories)}
                out[:, number] = [places.get(_key(value), -1) for value in column]
            else:
                place = np.searchsorted(categories, column).clip(0, len(categories) - 1)
                out[:, number] = np.where(categories[place] == column, place, -1)
        return out

    def _keys(self, codes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return a number per row for each template: the same for the same values, -1 where one of them is unknown."""
        keys = []
        for template in self.templates_:
            key = np.zeros(len(codes), np.int64)
            for column in template:
                key = key * len(self.categories_[column]) + codes[:, column]
            keys.append(np.where((codes[:, list(template)] < 0).any(axis=1), -1, key))
        return keys

    def _ids(self, codes: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return (rows, templates + 1) feature numbers: the intercept, then each template's, -1 for unknown values."""
        out = np.zeros((len(codes), len(self.templates_) + 1), np.int32)
        first = 1
        for number, (key, values) in enumerate(zip(self._keys(codes), self.values_, strict=True), start=1):
            place = np.searchsorted(values, key).clip(0, max(0, len(values) - 1))
            is_known = values[place] == key if len(values) else np.zeros(len(key), bool)
            out[:, number] = np.where(is_known, first + place, -1)
            first += len(values)
        return out


def _key(value: Any) -> tuple[str, Any]:
    """Return a key to look a value up by: numbers by their size, whatever their type."""
    if isinstance(value, str):
        return "text", value
    if isinstance(value, int | float | np.number | np.bool_) or value is None:
        return "number", value
    raise TypeError(f"argument must be a string or a number, not {type(value).__name__!r}")


def _categories(column: NDArray[Any]) -> Any:
    """Return the different values of a column, in order."""
    if column.dtype.kind != "O":
        return np.unique(column)
    return [value for _, value in sorted({_key(value) for value in column}, key=lambda key: (key[0], str(key[1])))]
