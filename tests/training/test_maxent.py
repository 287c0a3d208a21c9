"""Corpora and the objective of log-linear models, against plain loops and other people's solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from training_rows import problem_arrays, small_corpus

from pipeline.models.softmax import legal_masks, probabilities, softmax
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import build_corpus
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS


def plain_objective(ids, masses, legal, weights, rho1, rho2):
    """The objective as the book writes it, row by row."""
    padded = np.concatenate([weights, np.zeros((1, weights.shape[1]))])
    scores = padded[ids].sum(axis=1)
    softmax(scores, legal)
    nll = -(masses * np.log(np.where(masses > 0, scores, 1.0))).sum()
    return nll + rho1 * np.abs(weights).sum() + rho2 / 2 * (weights**2).sum()


def minimum(problem, algorithm, iterations):
    """Objective and weights after so many iterations."""
    for _, iterate in zip(range(iterations), OPTIMIZERS[algorithm](problem, {}, 0), strict=False):
        found = iterate
    return found.objective, found.weights


def split_minimum(problem):
    """The minimum by scipy's bounded solver, the weights being the difference of two positive vectors."""
    size = problem.shape[0] * problem.shape[1]
    rho1 = np.broadcast_to(problem.rho1[:, None], problem.shape).ravel()

    def value(point):
        smooth, gradient = problem.smooth((point[:size] - point[size:]).reshape(problem.shape))
        gradient = gradient.ravel()
        return smooth + rho1 @ (point[:size] + point[size:]), np.concatenate([gradient + rho1, rho1 - gradient])

    found = minimize(value, np.zeros(2 * size), jac=True, bounds=[(0, None)] * 2 * size, method="L-BFGS-B",
                     options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-8})  # fmt: skip
    return found.fun


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 60), templates=st.integers(1, 5), threads=st.integers(1, 3))
def test_merged_rows_are_the_rows(seed, rows, templates, threads):
    ids, taken, legal = problem_arrays(rows, templates, seed=seed)
    if len(np.unique(taken)) < 2:
        return
    corpus = build_corpus(ids, taken, features=200, labels=3, legal=legal, workers=Workers(threads))
    merged, bits, mass = corpus.rows()
    number = np.append(corpus.number, -1)
    before = sorted(
        (*sorted(number[row]), int(bit), int(label)) for row, bit, label in zip(ids, legal, taken, strict=True)
    )
    after = sorted(
        (*sorted(row), int(bit), label)
        for row, bit, masses in zip(merged.tolist(), bits, mass, strict=True)
        for label in range(3)
        for _ in range(int(masses[label]))
    )
    assert before == after
    counts = np.zeros((201, 3))
    for row, label in zip(number[ids], taken, strict=True):
        np.add.at(counts, (row, label), 1)
    assert (corpus.counts == counts[:200]).all()


@pytest.mark.parametrize(("labels", "threads"), [(2, 1), (3, 2), (7, 1)])
def test_the_objective_and_its_gradient_are_those_of_a_plain_loop(labels, threads):
    ids, _, legal = problem_arrays(300, labels=labels)
    luck = np.random.default_rng(3)
    masses = luck.dirichlet(np.ones(labels), len(ids))
    masses[legal & 1 == 0, 0] = 0
    weights = luck.random(len(ids)) * 3
    corpus = build_corpus(
        ids, masses, features=int(ids.max()) + 1, labels=labels, legal=legal, weights=weights, workers=Workers(threads)
    )
    problem = Problem(corpus, rho1=0.3, rho2=0.2, workers=Workers(threads))
    point = luck.normal(size=problem.shape)
    rows = (ids, masses.astype(np.float32) * weights.astype(np.float32)[:, None], legal)
    found = problem.objective(point)
    assert found == pytest.approx(plain_objective(*rows, point[corpus.number], 0.3, 0.2), rel=1e-6)
    _, gradient = problem.smooth(point)
    for feature, label in zip(luck.integers(0, len(point), 30), luck.integers(0, labels, 30), strict=True):
        step = np.zeros_like(point)
        step[feature, label] = 1e-4
        slope = (problem.smooth(point + step)[0] - problem.smooth(point - step)[0]) / 2e-4
        assert gradient[feature, label] == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("templates", [255, 256, 300])
def test_a_pattern_may_have_hundreds_of_templates(templates):
    """A corpus once counted templates in bytes, and 256 of them ended the program."""
    luck = np.random.default_rng(1)
    values = np.repeat(luck.integers(0, 2, (40, templates)), 2, axis=0)
    ids = (values + 2 * np.arange(templates)).astype(np.int32)
    taken = luck.integers(0, 3, len(ids)).astype(np.uint8)
    corpus = build_corpus(ids, taken, features=2 * templates, labels=3)
    weights = luck.normal(size=(2 * templates, 3)) / templates
    plain = plain_objective(corpus.number[ids], np.eye(3)[taken], np.full(len(ids), 255, np.uint8), weights, 0.5, 0.1)
    assert Problem(corpus, rho1=0.5, rho2=0.1).objective(weights) == pytest.approx(plain)
    objective, _ = minimum(Problem(corpus), "l-bfgs", 5)
    assert objective < Problem(corpus).objective(np.zeros((2 * templates, 3)))


def test_more_templates_than_can_be_told_apart_are_refused():
    with pytest.raises(PipelineError, match="70,000 templates"):
        build_corpus(np.zeros((2, 70_000), np.int32), np.array([0, 1]), features=1, labels=2)


def test_illegal_labels_have_no_probability_and_push_no_weight():
    ids, _, legal = problem_arrays()
    corpus = small_corpus()
    chances = probabilities(ids, legal, np.ones((len(corpus.counts), 3), np.float32))
    assert (chances[legal & 1 == 0, 0] == 0).all()
    assert chances.sum(axis=1) == pytest.approx(1)
    assert legal_masks(9)[255].tolist() == [0] * 9


@pytest.mark.parametrize("algorithm", ["l-bfgs", "rprop", "bcd"])
def test_every_optimiser_finds_the_minimum_of_an_independent_solver(algorithm):
    problem = Problem(small_corpus(), rho1=0.5, rho2=0.01)
    objective, weights = minimum(problem, algorithm, 400)
    assert objective == pytest.approx(split_minimum(problem), rel=2e-5)
    _, gradient = problem.smooth(weights)
    zero = weights == 0
    assert 0.1 < zero.mean() < 0.9
    assert np.abs(gradient[zero]).max() <= 0.5 + 0.02  # what holds a weight at zero
    assert np.abs(gradient + 0.5 * np.sign(weights))[~zero].max() < 0.05


@pytest.mark.parametrize(("rho1", "rho2"), [(0.5, 0.0), (0.5, 5.0), (0.0, 20.0)])
def test_sgd_comes_close_to_the_minimum_under_both_penalties(rho1, rho2):
    problem = Problem(small_corpus(rows=4000), rho1=rho1, rho2=rho2)
    assert minimum(problem, "sgd-l1", 100)[0] == pytest.approx(split_minimum(problem), rel=2e-3)


def test_sgd_recovers_where_rows_fire_many_features():
    """With a step that ignored the number of templates, forty of them left a model worse than none at all."""
    luck = np.random.default_rng(5)
    values = np.repeat(luck.integers(0, 6, (800, 8)), 5, axis=1)  # templates that repeat each other, as patterns do
    ids = (values + 6 * np.arange(40)).astype(np.int32)
    truth = luck.normal(size=(240, 3)) / 5
    taken = (truth[ids].sum(axis=1) + luck.gumbel(size=(800, 3))).argmax(axis=1).astype(np.uint8)
    problem = Problem(build_corpus(ids[:600], taken[:600], features=240, labels=3), rho1=0.1, rho2=0.1)
    number = problem.corpus.number

    def held_out(weights):
        chances = probabilities(number[ids[600:]], np.full(200, 255, np.uint8), weights.astype(np.float32))
        return -np.log(chances[np.arange(200), taken[600:]]).mean()

    good = held_out(minimum(problem, "l-bfgs", 50)[1])
    assert good < 1.0 < np.log(3)
    found = [held_out(minimum(problem, "sgd-l1", passes)[1]) for passes in (1, 5, 30)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < good + 0.05, (good, found)


@pytest.mark.parametrize("algorithm", ["l-bfgs", "rprop"])
def test_without_l1_the_model_is_scikit_learns_logistic_regression(algorithm):
    corpus = small_corpus(masked=False)
    problem = Problem(corpus, rho1=0.0, rho2=1.0)
    objective, weights = minimum(problem, algorithm, 300)
    ids, _, mass = corpus.rows()
    data = np.zeros((len(ids), len(weights)))
    for row, features in zip(data, ids, strict=True):
        row[features[features >= 0]] = 1
    row, label = np.nonzero(mass)
    oracle = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000)
    oracle.fit(data[row], label, mass[row, label])
    assert weights == pytest.approx(oracle.coef_.T, abs=2e-3)
    assert objective <= problem.objective(np.ascontiguousarray(oracle.coef_.T)) + 1e-3


def test_unpenalised_features_match_their_frequencies():
    corpus = small_corpus(masked=False, templates=2)
    free = corpus.template == 0
    problem = Problem(corpus, rho1=0.0, rho2=np.where(free, 0.0, 5.0))
    _, weights = minimum(problem, "l-bfgs", 300)
    _, gradient = problem.smooth(weights)
    assert np.abs(gradient[free]).max() < 1e-2


@pytest.mark.parametrize("algorithm", list(OPTIMIZERS))
def test_the_same_seed_and_threads_give_the_same_weights(algorithm):
    problems = [Problem(small_corpus(2), workers=Workers(2)) for _ in range(2)]
    first, second = (minimum(problem, algorithm, 12)[1] for problem in problems)
    assert (first == second).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids, taken: (ids[:0], taken[:0]), "no rows"),
        (lambda ids, taken: (ids, taken * 0 + 1), "same label"),
        (lambda ids, taken: (ids, np.full((len(ids), 3), np.nan)), "non-finite"),
        (lambda ids, taken: (ids, -np.eye(3)[taken]), "negative"),
    ],
)
def test_rows_that_cannot_be_learned_are_refused(change, message):
    ids, taken, _ = problem_arrays()
    ids, targets = change(ids, taken)
    with pytest.raises(PipelineError, match=message):
        build_corpus(ids, targets, features=100, labels=3)


def test_a_label_that_is_not_legal_is_refused():
    ids, taken, legal = problem_arrays()
    with pytest.raises(PipelineError, match="legal actions exclude"):
        build_corpus(ids, taken, features=100, labels=3, legal=np.where(taken == 0, 6, legal).astype(np.uint8))
