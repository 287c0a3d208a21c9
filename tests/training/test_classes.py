"""Classes of hands that are learned: slopes, a partition that is found again, bytes, blends, and what is refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from training_rows import decisions

from pipeline.features.patterns import parse_pattern
from pipeline.models.blend import Blend
from pipeline.models.classes import NEAREST, Classes, find_nearest, spread_centroids
from pipeline.models.prior import AgentPrior
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import Workers
from pipeline.training import blend
from pipeline.training.blend import parts_for
from pipeline.training.classes import Parameters, Sample, codebook_sizes, hand_columns, slopes, used_cells
from pipeline.training.config import TrainConfig
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

PATTERN = parse_pattern("[rho1 = 0, rho2 = 1]\nbetting\nbetting * ihs(bins=8)\n")
LABELS = ("f", "c", "r")


def small(seed: int = 0) -> tuple[Sample, Parameters]:
    """Two codebooks over three columns, in two contexts a row."""
    luck = np.random.default_rng(seed)
    sizes = (5, 7)
    metric = luck.uniform(0.5, 1.5, (2, 3)).astype(np.float32)
    centroids = luck.normal(size=(12, 3)).astype(np.float32)
    points = luck.normal(size=(40, 3)).astype(np.float32)
    near, _ = find_nearest(points, metric, *spread_centroids(metric, centroids, sizes))
    legal = np.where(luck.random(40) < 0.3, 6, 7).astype(np.uint8)
    contexts = np.stack([luck.integers(0, 2, 40), luck.integers(2, 5, 40)], axis=1).astype(np.int32)
    weights = luck.normal(size=(5, 13, 3)).astype(np.float32)
    sample = Sample(points, near, contexts, legal, luck.integers(1, 3, 40))
    return sample, Parameters(metric, centroids, weights)


def test_nearest_classes_are_those_of_all_distances() -> None:
    sample, found = small()
    each = np.repeat(found.metric, (5, 7), axis=0)
    away = (((sample.points[:, None] - found.centroids) * each) ** 2).sum(axis=2)
    assert (sample.near[:, :NEAREST] == np.argsort(away[:, :5], axis=1)[:, :NEAREST]).all()
    assert (sample.near[:, NEAREST:] == 5 + np.argsort(away[:, 5:], axis=1)[:, :NEAREST]).all()


def test_the_used_cells_are_taken_without_a_copy_of_all_weights() -> None:
    luck = np.random.default_rng(1)
    weights = np.zeros((6_001, 250, 3), np.float32)
    weights[luck.integers(0, 6_001, 40_000), luck.integers(0, 250, 40_000)] = luck.normal(size=(40_000, 3))
    expected = (np.abs(weights) >= 0.5).any(axis=2)
    tracemalloc.start()
    try:
        starts, members, kept = used_cells(weights, 0.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * weights.nbytes
    assert (np.diff(starts) == expected.sum(axis=1)).all()
    assert (members == np.nonzero(expected)[1]).all()
    assert (kept == weights[expected]).all()


def test_slopes_are_those_of_finite_differences() -> None:
    sample, found = small(1)
    centroid, metric, weight = (
        np.zeros(part.shape, np.float32) for part in (found.centroids, found.metric, found.weights)
    )
    slopes(sample, found, centroid, metric, weight)

    def loss(which: str, at: tuple[int, ...], by: float) -> float:
        moved = {name: array.astype(np.float64) for name, array in found._asdict().items()}
        moved[which][at] *= np.exp(by) if which == "metric" else 1.0
        moved[which][at] += 0.0 if which == "metric" else by
        return float(_exact_loss(sample, **moved))

    luck = np.random.default_rng(2)
    for which, slope in (("centroids", centroid), ("metric", metric), ("weights", weight)):
        for _ in range(12):
            at = tuple(int(luck.integers(size)) for size in slope.shape)
            measured = (loss(which, at, 1e-4) - loss(which, at, -1e-4)) / 2e-4
            assert slope[at] == pytest.approx(measured, abs=2e-3, rel=2e-3), (which, at)


def _exact_loss(
    sample: Sample, metric: NDArray[np.float64], centroids: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """The log-loss, written once more with arrays in double precision."""
    rows = np.arange(len(sample.points))
    books = np.repeat([0, 1], NEAREST)
    gaps = (sample.points[:, None].astype(np.float64) - centroids[sample.near]) * metric[books]
    powers = np.exp(-(gaps**2).sum(axis=2)).reshape(len(rows), 2, NEAREST)
    shares = (powers / powers.sum(axis=2, keepdims=True)).reshape(len(rows), -1)
    scores = np.zeros((len(rows), 3))
    for place in range(sample.contexts.shape[1]):
        context = sample.contexts[:, place]
        scores += weights[context, -1]
        scores += np.einsum("rm,rmj->rj", shares, weights[context[:, None], sample.near])
    scores[(sample.legal[:, None] >> np.arange(3)) & 1 == 0] = -np.inf
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-scores[rows, sample.targets].sum())


def examples(hands: int, seed: int) -> Examples:
    """Decisions on the river by a source that looks at the strength alone, in four steps."""
    _, rows, _, hand = decisions(hands, seed=seed)
    chosen = rows["street"] == 3
    rows, hand = rows[chosen], hand[chosen]
    from pipeline.poker.strength.queries import find_strengths

    strength = find_strengths(3, rows["hole"], rows["board"])["ihs"] / 65535
    taken = np.where(strength > 0.75, 2, np.where(strength > 0.5, 1, np.where(strength > 0.25, 2, 1)))
    taken = np.where((rows["legal"] >> taken) & 1, taken, 1)
    return Examples(rows, taken.astype(np.uint8), hand)


def task(hands: int = 3000) -> Task:
    return Task(examples(hands, 1), examples(500, 2), PATTERN, LABELS, (3,), TrainConfig(workers=1), Workers(1))


def test_a_source_that_looks_at_one_strength_is_found_out() -> None:
    found = train_model("classes", task())
    assert isinstance(found.model, Classes)
    assert found.looks_at[0] == ("ihs(river)", 1.0)
    assert found.looks_at[1][1] < 0.8
    counted = train_model("frequency", task())
    assert found.log_loss is not None
    assert counted.log_loss is not None
    assert found.log_loss < 0.5 * counted.log_loss


def test_columns_that_tell_nothing_are_left_out() -> None:
    model = train_model("classes", task()).model
    assert isinstance(model, Classes)
    assert "ihs(river)" in [column.written for column in model.columns]
    assert len(model.columns) < len(hand_columns(3))


def test_the_same_seed_gives_the_same_arrays_whatever_the_threads() -> None:
    here = task(300)
    one, two = (train_model("classes", replace(here, workers=Workers(count))).model for count in (1, 2))
    other = train_model("classes", replace(here, config=TrainConfig(seed=1))).model
    for name, array in one.to_arrays().items():
        assert array.tobytes() == two.to_arrays()[name].tobytes(), name
    assert one.to_arrays()["centroids"].tobytes() != other.to_arrays()["centroids"].tobytes()


def test_a_model_comes_back_from_its_arrays_and_damaged_ones_are_refused() -> None:
    here = task(300)
    model = train_model("classes", here).model
    kept, arrays = model.to_json(), model.to_arrays()
    back = Classes.load(kept, arrays)
    assert back.predict(here.examples.rows).tobytes() == model.predict(here.examples.rows).tobytes()
    assert back.nearest_class(here.examples.rows).max() < sum(back.sizes)
    for name, wrong in (
        ("members", arrays["members"] + sum(back.sizes)),
        ("overlap", arrays["starts"][::-1].copy()),
        ("centroids", arrays["centroids"][:-1]),
        ("weights", np.full_like(arrays["weights"], np.nan)),
    ):
        with pytest.raises(ValueError, match=name):
            Classes.load(kept, {**arrays, "starts" if name == "overlap" else name: wrong})
    with pytest.raises(ValueError, match="codebook"):
        Classes.load({**kept, "sizes": [3]}, arrays)


def test_classes_are_of_one_street_after_the_flop() -> None:
    with pytest.raises(PipelineError, match="--street"):
        train_model("classes", replace(task(50), streets=(1, 2, 3)))


def test_more_rows_teach_more_classes() -> None:
    assert [codebook_sizes(rows)[-1] for rows in (100, 14_000, 10**7)] == [30, 257, 6000]


def test_a_blend_takes_parts_by_the_number_of_rows_and_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    here = task(300)
    assert parts_for(here) == ("l-bfgs", "boosting")
    assert parts_for(replace(here, labels=("f", "c", "h", "p", "d", "a"))) == ("boosting", "l-bfgs")
    three = here.examples.rows.copy()
    three["players"] = 3
    assert parts_for(replace(here, examples=replace(here.examples, rows=three))) == ("boosting", "l-bfgs")
    monkeypatch.setattr(blend, "CLASSES_ROWS", 10)
    assert parts_for(here) == ("l-bfgs", "classes", "boosting")
    prior = AgentPrior.of("@call", builtin("holdem.limit.2p.reverse_blinds"), here.examples.rows)
    found = train_model("blend", replace(here, priors=(prior,)))
    assert isinstance(found.model, Blend)
    assert [name for name, _ in found.exponents] == ["l-bfgs", "classes", "boosting", "@call"]
    assert found.looks_at[0][0] == "ihs(river)"
    assert found.kept_iteration is not None
    assert [one["prior"] for one in found.priors] == ["@call"]
    back = Blend.load(found.model.to_json(), found.model.to_arrays())
    rows = here.examples.rows[:50]
    assert back.predict(rows) == pytest.approx(found.model.predict(rows), abs=1e-12)


def test_no_scale_of_a_crafted_codebook_makes_a_probability_that_is_none() -> None:
    model = train_model("classes", task(300)).model
    assert isinstance(model, Classes)
    rows = examples(40, 3).rows
    tiny, large = np.full_like(model.scale, 1e-6), np.full_like(model.metric, 1e6)
    crafted = Classes.load(model.to_json(), model.to_arrays() | {"scale": tiny, "metric": large})
    found = crafted.predict(rows)
    assert np.isfinite(found).all()
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-9
