"""Trainers: what they learn, and that each kind of model says the same after a trip through its file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from training_rows import decisions

from pipeline.dataset.decisions import OBSERVATION, betting_code
from pipeline.features.encoding import fit_features
from pipeline.features.patterns import find_pattern, parse_pattern
from pipeline.models.blend import RAREST, Blend, LineFrequencies
from pipeline.models.kinds import KINDS
from pipeline.models.loglinear import LogLinear
from pipeline.models.matrix import columns_for, read_matrix
from pipeline.models.softmax import softmax
from pipeline.models.trees import Trees
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks
from pipeline.training import boosting
from pipeline.training.config import LENGTHS, TrainConfig
from pipeline.training.exponents import fit_exponents, fit_slopes, used_exponents
from pipeline.training.inner import choose_inner
from pipeline.training.loop import Context
from pipeline.training.tasks import Corpora, Examples, Task
from pipeline.training.trainers import ALGORITHMS, train_model

FAST = {"boosting": 10, "blend": 10, "logistic": 50, "sgd-l1": 5, "bcd": 5}


def task(algorithm: str = "", street: int = 1, pattern: str = "thesis", **options: object) -> Task:
    """A task on some hundred decisions played at random."""
    game, rows, labels, hand = decisions(300)
    kept = np.flatnonzero(rows["street"] == street)
    cut = int(0.8 * len(kept))
    sides = [Examples(rows[part], labels[part], hand[part]) for part in (kept[:cut], kept[cut:])]
    lengths = dict.fromkeys(LENGTHS, FAST.get(algorithm, 20))
    config = TrainConfig(**lengths, patience=0, min_weight=0, **options)
    return Task(*sides, find_pattern(pattern), tuple(game.labels), (street,), config)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_algorithm_gives_legal_probabilities_that_survive_the_file(algorithm):
    work = task(algorithm)
    trained = train_model(algorithm, work)
    rows = work.validation.rows
    chances = trained.model.predict(rows)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (chances[(rows["legal"][:, None] >> np.arange(3)) & 1 == 0] == 0).all()
    assert 0 < trained.error < 1
    assert trained.log_loss > 0
    again = type(trained.model).load(trained.model.to_json(), trained.model.to_arrays())
    assert (again.predict(rows) == chances).all()
    alone = np.concatenate([trained.model.predict(rows[at : at + 1]) for at in range(20)])
    assert alone == pytest.approx(chances[:20], abs=1e-6)
    assert type(trained.model).__name__ in {name for _, name in KINDS.values()}


def drawn_from_known_policy(rows: np.ndarray, copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, actions drawn from a known log-linear policy of hole rank and betting, and its probabilities."""
    rows = np.repeat(rows, copies)
    luck = np.random.default_rng(7)
    facing = (rows["legal"] & 1).astype(float)
    scores = np.stack([1.0 - 0.2 * rows["high"], 0.5 * facing, 0.15 * rows["high"] - 1.2], axis=1)
    softmax(scores, rows["legal"])
    taken = (luck.random((len(rows), 1)) > scores.cumsum(axis=1)).sum(axis=1).astype(np.uint8)
    return rows, taken, scores


@pytest.mark.parametrize("algorithm", ["l-bfgs", "rprop", "sgd-l1", "bcd", "crf"])
def test_a_known_policy_is_recovered_from_its_own_decisions(algorithm):
    game, rows, _, _ = decisions(300)
    rows, taken, truth = drawn_from_known_policy(rows[rows["street"] == 1], 60)
    config = TrainConfig(rho1=0.0, rho2=0.1, patience=0, min_weight=0)
    work = Task(Examples(rows, taken), None, parse_pattern("high\nlegal"), tuple(game.labels), (1,), config)
    chances = train_model(algorithm, work).model.predict(rows)
    assert (truth * np.log(truth.clip(1e-9) / chances.clip(1e-9))).sum(axis=1).mean() < 0.003


def test_a_crf_of_single_decisions_is_the_max_ent_model():
    work = task()
    rows = work.examples.rows.copy()
    rows["legal"] = 7  # CRFsuite does not know what is legal
    config = replace(work.config, rho1=0.0, rho2=0.5, max_iterations=300)
    work = replace(work, examples=Examples(rows, work.examples.targets), validation=None, config=config)
    field, plain = (train_model(name, work).model for name in ("crf", "l-bfgs"))
    rows["betting_codes"][:, 1] = 0  # nothing done on this street yet: no pair of actions
    assert field.predict(rows) == pytest.approx(plain.predict(rows), abs=2e-3)


def test_a_crf_knows_the_last_action_of_its_sequence_only():
    work = task("crf")
    model = train_model("crf", work).model
    rows = work.examples.rows
    again = rows["betting_codes"][:, 1] >= 8  # two actions on the flop: one was ours
    changed = rows.copy()
    changed["previous"] = np.where(rows["previous"] == 2, 3, 2)
    moved = np.abs(model.predict(rows) - model.predict(changed)).max(axis=1) > 0
    assert moved[again].all()
    assert not moved[~again].any()


def test_a_memm_knows_the_previous_action_and_max_ent_does_not():
    work = task("memm")
    rows = work.validation.rows
    changed = rows.copy()
    changed["previous"] = np.where(rows["previous"] == 2, 3, 2)
    memm, plain = (train_model(name, work).model for name in ("memm", "l-bfgs"))
    assert (memm.predict(rows) != memm.predict(changed)).any()
    assert (plain.predict(rows) == plain.predict(changed)).all()


def test_baselines_are_the_frequencies():
    work = task()
    rows, taken = work.examples.rows, work.examples.targets
    free = rows["legal"] == 7
    expected = np.bincount(taken, minlength=3) / len(taken)
    assert train_model("majority", work).model.predict(rows)[free][0] == pytest.approx(expected, abs=0.01)
    node = (rows["betting_codes"][:, 0] == betting_code("cc")) & (rows["betting_codes"][:, 1] == 0)
    expected = np.bincount(taken[node], minlength=3) / node.sum()
    assert train_model("frequency", work).model.predict(rows)[node][0] == pytest.approx(expected, abs=0.05)


def test_strengths_come_from_the_pattern_where_it_gives_them():
    work = replace(task(), pattern=parse_pattern("street\n[rho1 = 7, rho2 = 0]\nbetting"))
    prepared = Corpora(work, [False]).get()
    problem = prepared.problem(work)
    betting = prepared.corpus.template == 1
    assert set(problem.rho1[betting]) == {7.0}
    assert set(problem.rho1[~betting]) == {0.5}
    assert set(problem.rho2[betting]) == {0.0}


@pytest.mark.parametrize("algorithm", ["l-bfgs", "crf", "boosting", "frequency"])
def test_one_label_or_no_rows_are_refused(algorithm):
    work = task(algorithm)
    full = work.examples
    work = replace(work, examples=Examples(full.rows, np.ones(len(full), np.uint8)))
    with pytest.raises(PipelineError, match="same label"):
        train_model(algorithm, work)
    if algorithm != "boosting":
        work = replace(work, examples=Examples(full.rows[:0], full.targets[:0]))
        with pytest.raises(PipelineError, match="no rows"):
            train_model(algorithm, work)


def test_an_unknown_algorithm_is_named_with_its_nearest():
    with pytest.raises(PipelineError, match="did you mean boosting"):
        train_model("bosting", task())


def test_the_strongest_features_have_rows_that_fire_them():
    work = task()
    model = train_model("l-bfgs", work).model
    assert isinstance(model, LogLinear)
    for feature, row, template in model.strongest(work.examples.rows, 10):
        fired = model.vocabulary.find(model.features.hashes(work.examples.rows[row : row + 1]))
        assert fired[0, template] == feature


def test_training_on_nothing_but_unseen_columns_is_an_error():
    work = task(street=1)
    with pytest.raises(PipelineError, match="no training row"):
        fit_features(parse_pattern("ehs(turn, bins=3)"), work.examples.rows)


NOLIMIT = "holdem.nolimit.2p.reverse_blinds"


def nolimit_task(street: int = 1) -> Task:
    """A task on decisions played at random in no-limit, with deals in which two hands each belong together."""
    game, rows, labels, hand = decisions(300, NOLIMIT)
    kept = np.flatnonzero(rows["street"] == street)
    cut = int(0.8 * len(kept))
    sides = [
        Examples(rows[part], labels[part], hand[part], group=(hand[part] // 2).astype(np.uint64))
        for part in (kept[:cut], kept[cut:])
    ]
    pattern = parse_pattern("word\nstack_to_pot(quantiles=4)\nlegal * high")
    config = TrainConfig(max_iterations=8, rounds=8, patience=0, min_weight=0)
    return Task(*sides, pattern, tuple(game.labels), (street,), config)


def test_trees_play_what_lightgbm_predicts():
    lightgbm = pytest.importorskip("lightgbm")
    work = nolimit_task()
    columns = columns_for(work.examples.rows, (1,))
    values = read_matrix(work.examples.rows, columns).astype(np.float32)
    settings = {"objective": "multiclass", "num_class": 7, "num_leaves": 15, "min_data_in_leaf": 2, "verbosity": -1}
    data = lightgbm.Dataset(values, work.examples.targets.astype(int))
    booster = lightgbm.train(settings | {"use_missing": False, "num_threads": 1}, data, 12)
    structures = [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]
    model = Trees(columns, labels=7, **boosting._flatten_trees(structures))
    for rows in (work.validation.rows, work.validation.rows[:3]):
        scores = booster.predict(read_matrix(rows, columns).astype(np.float32), raw_score=True)
        softmax(scores, rows["legal"])
        assert model.predict(rows) == pytest.approx(scores, abs=1e-9)


def grown(luck: np.random.Generator, columns: int, trees: int, splits: int) -> dict[str, np.ndarray]:
    """Trees that were split at random; some are a single leaf."""
    roots, column, threshold, children, leaves = [], [], [], [], []
    for _ in range(trees):
        open_ends: list[tuple[int, int]] = [(-1, 0)]
        roots.append(0)
        for _ in range(luck.integers(splits)):
            parent, side = open_ends.pop(luck.integers(len(open_ends)))
            if parent < 0:
                roots[-1] = len(column)
            else:
                children[parent][side] = len(column)
            open_ends += [(len(column), 0), (len(column), 1)]
            column.append(luck.integers(columns))
            threshold.append(luck.choice([-0.5, 0.5, 1e30, -1e30, luck.normal(100, 80)]))
            children.append([0, 0])
        for parent, side in open_ends:
            leaves.append(luck.normal())
            if parent < 0:
                roots[-1] = -len(leaves)
            else:
                children[parent][side] = -len(leaves)
    return {
        "roots": np.array(roots, np.int32),
        "column": np.array(column, np.int32),
        "threshold": np.array(threshold, np.float64),
        "children": np.array(children, np.int32).reshape(-1, 2),
        "leaves": np.array(leaves, np.float64),
    }


@pytest.mark.parametrize(
    ("rows", "trees", "splits"), [(1, 50, 9), (15, 3, 40), (40, 60, 20), (700, 21, 9), (700, 20, 1)]
)
def test_trees_end_in_the_leaves_that_a_walk_by_hand_ends_in(rows, trees, splits):
    played = decisions(300)[1]
    played = np.tile(played, 1 + rows // len(played))[:rows]
    columns = columns_for(played, (3,))
    model = Trees(columns, labels=3, **grown(np.random.default_rng(rows + trees), len(columns), trees, splits))
    values, scores = read_matrix(played, columns), np.zeros((rows, 3))
    for t, root in enumerate(model.roots):
        for row in range(rows):
            node = root
            while node >= 0:
                node = model.children[node, int(values[row, model.column[node]] > model.threshold[node])]
            scores[row, t % 3] += model.leaves[-1 - node]
    softmax(scores, played["legal"])
    assert (model.predict(played) == scores).all()
    again = Trees.load(model.to_json(), model.to_arrays())
    assert (again.predict(played) == scores).all()


def test_a_part_of_a_blend_without_a_say_is_not_asked():
    class Silent:
        width = 3

        def predict(self, rows: object) -> np.ndarray:
            raise AssertionError("it was asked")

    rows = decisions(50)[1]
    counts = train_model("frequency", task()).model
    assert Blend((counts, Silent()), np.array([1.0, 0.0])).predict(rows) == pytest.approx(
        counts.predict(rows), abs=1e-5
    )


def test_the_deals_that_stop_boosting_are_whole_and_about_a_tenth():
    deal = np.repeat(np.arange(5000, dtype=np.uint64), 4)
    examples = Examples(np.zeros(len(deal), OBSERVATION), np.zeros(len(deal), np.uint8), group=deal)
    inner = choose_inner(examples.groups).reshape(-1, 4)
    assert (inner == inner[:, :1]).all()
    assert inner.mean() == pytest.approx(0.1, abs=0.02)


def test_the_rounds_of_a_forest_are_forecast_from_its_losses():
    def losses(rounds: int, decay: float) -> list[float]:
        return [0.4 + 0.6 * np.exp(-number / decay) for number in range(rounds)]

    assert boosting.expected_rounds([], 600) == boosting.expected_rounds(losses(5, 10), 600) == 600
    # the gain of a round falls to 2e-4 after 80 and 156 rounds
    for decay, last in ((15.0, 80), (35.0, 156)):
        forecasts = [boosting.expected_rounds(losses(rounds, decay), 600) for rounds in (20, 40, 60)]
        assert all(last < forecast < 2 * last + 30 for forecast in forecasts)
    assert boosting.expected_rounds([*losses(50, 15), *np.linspace(0.5, 0.6, 60)], 600) == 110 + boosting.PATIENCE
    assert boosting.expected_rounds(losses(60, 35.0), 70) == 70


def test_boosting_reports_no_round_before_the_first_and_ends_near_its_forecast():
    reports: list[tuple[int, int]] = []
    work = replace(task(), config=TrainConfig(rounds=600))
    callbacks = Callbacks(on_stage=lambda street, name: lambda done, total: reports.append((done, total)))
    train_model("boosting", work, context=Context(callbacks))
    begins = [index for index, (done, _) in enumerate(reports) if done == 0]
    assert begins[0] == 0
    for begin, end in zip(begins, [*begins[1:], len(reports)], strict=True):
        assert reports[begin] == (0, 600)
        assert [done for done, _ in reports[begin:end]] == list(range(end - begin))
        assert reports[end - 1][1] < 2 * reports[end - 1][0] + 60


def test_boosting_leaves_out_columns_that_never_change():
    work = nolimit_task()
    model = train_model("boosting", work).model
    names = {column.name for column in model.columns}
    assert {"street", "players"}.isdisjoint(names)
    assert {"pot", "ehs"} <= names
    assert sorted(set(model.column.tolist())) == list(range(len(model.columns)))


def test_forests_are_joined_with_their_powers():
    work = nolimit_task()
    trained = train_model("boosting", work)
    assert [forest.columns for forest in trained.forests] == [look.name for look in boosting.COLUMN_SETS]
    assert all(forest.power > 0 and forest.rounds > 0 for forest in trained.forests)
    nobody = np.zeros(len(work.examples), bool)
    alone = [boosting.boost(work, nobody, Callbacks(), [forest]).model for forest in trained.forests]
    both = boosting.boost(work, nobody, Callbacks(), trained.forests).model
    rows = work.validation.rows
    product = np.log(np.maximum(alone[0].predict(rows), 1e-300)) + np.log(np.maximum(alone[1].predict(rows), 1e-300))
    softmax(product, rows["legal"])
    assert both.predict(rows) == pytest.approx(product, abs=1e-9)
    few = {column.name for column in alone[1].columns}
    assert few <= set(boosting.COLUMN_SETS[1].only)


def test_boosting_of_rows_that_are_all_alike_gives_their_shares():
    work = nolimit_task()
    one = work.examples.rows[:1]
    targets = np.where(np.arange(400) % 4 == 0, 6, 1).astype(np.uint8)
    work = replace(work, examples=Examples(np.repeat(one, 400), targets), validation=None)
    assert train_model("boosting", work).model.predict(one)[0, [1, 6]] == pytest.approx([0.75, 0.25], abs=0.05)


def test_exponents_find_the_part_that_knows():
    rows = decisions(300)[1]
    rows, taken, truth = drawn_from_known_policy(rows[rows["street"] == 1], 40)
    wrong = np.roll(truth, 7 * 40, axis=0)
    found = fit_exponents([truth, wrong], Examples(rows, taken))
    assert found == pytest.approx([1.0, 0.0], abs=0.1)


def test_slopes_find_where_each_part_knows():
    rows = decisions(300)[1]
    rows, taken, truth = drawn_from_known_policy(rows[rows["street"] == 1], 40)
    wrong = np.roll(truth, 7 * 40, axis=0)
    common = np.arange(len(rows)) % 2 == 0
    here, there = (np.where(which[:, None], truth, wrong) for which in (common, ~common))
    exponents, slopes = fit_slopes([here, there], np.where(common, 1.0, -1.0), Examples(rows, taken))
    assert exponents == pytest.approx([0.5, 0.5], abs=0.1)
    assert slopes == pytest.approx([0.5, -0.5], abs=0.1)


def test_lines_that_were_never_seen_are_rarer_than_those_that_were():
    rows = decisions(300)[1]
    rows = rows[rows["street"] == 1]
    betting = rows["legal"] == 7
    lines = LineFrequencies.of(rows[betting])
    seen, unseen = lines.frequency(rows[betting]), lines.frequency(rows[~betting])
    assert unseen.max() < seen.min()
    assert seen.mean() == pytest.approx(0.0, abs=1e-3)
    assert np.abs(seen).max() <= RAREST


def test_a_blend_with_lines_comes_back_and_damaged_ones_are_refused():
    work = task()
    parts = tuple(train_model(name, work).model for name in ("majority", "frequency"))
    lines = LineFrequencies.of(work.examples.rows)
    blend = Blend(parts, np.array([0.5, 0.5]), lines, np.array([-0.4, 0.4]))
    rows = work.examples.rows[:200]
    back = Blend.load(blend.to_json(), blend.to_arrays())
    assert back.predict(rows) == pytest.approx(blend.predict(rows), abs=1e-12)
    plain = replace(blend, lines=None, slopes=None)
    assert np.abs(plain.predict(rows) - blend.predict(rows)).max() > 1e-3
    arrays = blend.to_arrays()
    for name, wrong in (
        ("lines", arrays["lines"][::-1].copy()),
        ("often", arrays["often"][:-1]),
        ("frequency", np.array([1.0, 0.0])),
        ("slopes", np.array([np.nan, 0.0])),
    ):
        with pytest.raises(ValueError, match=name):
            Blend.load(blend.to_json(), {**arrays, name: wrong})


def test_parts_that_all_judges_contradict_have_one_share_each():
    rows = decisions(300)[1]
    rows = rows[(rows["street"] == 1) & (rows["legal"] == 7)][:40]
    wrong = np.tile([0.98, 0.01, 0.01], (len(rows), 1))
    judges = Examples(rows, np.ones(len(rows), np.uint8))
    assert fit_exponents([wrong, wrong], judges) == pytest.approx([0.0, 0.0])
    assert used_exponents([wrong, wrong], judges).tolist() == [0.5, 0.5]


def test_a_blend_is_at_least_as_close_as_its_parts_where_it_was_fitted():
    work = nolimit_task()
    inner = choose_inner(work.examples.groups)
    trained = train_model("blend", replace(work, validation=work.examples.subset(inner)))
    assert dict(trained.parts_log_loss).keys() == {"boosting", "l-bfgs"}
    assert trained.log_loss <= min(dict(trained.parts_log_loss).values()) + 1e-3


def test_a_blend_of_few_rows_leaves_none_out():
    work = nolimit_task()
    may_jam = np.flatnonzero(work.examples.legal >> 6 & 1)
    examples = work.examples.subset(np.isin(np.arange(len(work.examples)), may_jam[:8]))
    rare = np.ones(8, np.uint8)
    rare[[0, *np.flatnonzero(choose_inner(examples.groups))]] = 6
    trained = train_model("blend", replace(work, examples=replace(examples, targets=rare), validation=None))
    assert trained.model.predict(work.validation.rows).sum(axis=1) == pytest.approx(1)


def test_a_blend_of_blends_or_of_different_labels_is_refused():
    model = train_model("blend", nolimit_task()).model
    kept, arrays = model.to_json(), model.to_arrays()
    nested = {"parts": [kept["parts"][0], {"kind": "blend", "model": kept}]}
    with pytest.raises(ValueError, match="no kind of model that a blend has"):
        Blend.load(nested, arrays)
    with pytest.raises(ValueError, match="1 to 8 parts"):
        Blend.load({"parts": []}, arrays)
    mixed = Blend((model.parts[0], train_model("majority", task()).model), model.exponents)
    with pytest.raises(ValueError, match="different labels"):
        Blend.load(mixed.to_json(), mixed.to_arrays())
