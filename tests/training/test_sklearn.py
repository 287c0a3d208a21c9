"""The max-ent optimisers behind scikit-learn's interface."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import pipeline as p
from pipeline.training.optimizers import OPTIMIZERS
from pipeline.training.sklearn import EXPECTED_FAILED_CHECKS, MaxEntClassifier


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([MaxEntClassifier()], expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS)
def test_it_passes_scikit_learns_checks(estimator, check):
    check(estimator)


def fruit(rows: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Colours, sizes and a class that follows both, with noise."""
    luck = np.random.default_rng(seed)
    colour, size = luck.choice(["red", "blue", "green"], rows), luck.choice(["small", "large"], rows)
    score = np.stack([(colour == "red") * 2.0, (colour == "blue") * 1.5 + (size == "large"), np.ones(rows)], axis=1)
    taken = (score + luck.gumbel(size=score.shape)).argmax(axis=1)
    return np.stack([colour, size], axis=1).astype(object), np.array(["apple", "plum", "pear"])[taken]


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_every_optimizer_gives_scikit_learns_own_probabilities(optimizer):
    X, y = fruit()
    ours = MaxEntClassifier(optimizer, rho1=0.0, rho2=1.0, max_iter=200).fit(X, y)
    one_hot = OneHotEncoder().fit(X)
    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=2000).fit(one_hot.transform(X), y)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(one_hot.transform(X)), abs=0.02)
    assert ours.score(X, y) == pytest.approx(theirs.score(one_hot.transform(X), y), abs=0.02)
    assert ours.coef_.shape == (3, 5)


def test_l1_drops_what_says_nothing():
    X, y = fruit()
    noise = np.random.default_rng(1).integers(0, 50, len(X)).astype(object)
    model = MaxEntClassifier(rho1=8.0).fit(np.column_stack([X, noise]), y)
    assert (model.coef_[:, 5:] == 0).mean() > 0.95
    assert (model.coef_[:, :5] != 0).any()


def test_templates_join_columns():
    X = np.array([["a", 0], ["a", 1], ["b", 0], ["b", 1]] * 20, dtype=object)
    y = np.array([0, 1, 1, 0] * 20)
    assert MaxEntClassifier().fit(X, y).score(X, y) <= 0.5
    joined = MaxEntClassifier(templates=[(0,), (0, 1)]).fit(X, y)
    assert joined.score(X, y) == 1.0
    assert joined.predict_proba([["c", 0]])[0] == pytest.approx([0.5, 0.5])


def test_the_package_has_it_without_an_import_of_its_own():
    assert p.sklearn.MaxEntClassifier is MaxEntClassifier


def test_it_can_be_cross_validated_and_says_what_is_wrong():
    X, y = fruit()
    assert cross_val_score(MaxEntClassifier(), X, y, cv=3).mean() > 0.5
    with pytest.raises(ValueError, match="is no optimizer: one of l-bfgs"):
        MaxEntClassifier("newton").fit(X, y)
    with pytest.raises(ValueError, match="rho1 = -1"):
        MaxEntClassifier(rho1=-1).fit(X, y)
