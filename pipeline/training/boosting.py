"""Training of boosted trees by LightGBM, an optional package; the trees play without it (see `models.trees`).

Agents differ in what they look at: some in a few numbers, where every further column is one more chance to split by
accident, others in the whole distribution of a hand's strength. So several *forests* are grown, each from columns and
with a penalty of its own (`COLUMN_SETS`), and their scores are added, each times a power that is fitted on an inner
tenth of the training deals; a forest with hardly any power is left out. The sum is one model of trees, whose leaves are
multiplied by the powers.

A forest gets a tree per label and round until the log-loss on the same inner deals stops falling, so the validation
rows take no part in it. Leaves are shrunk (`lambda_l2`) and hold at least `min_data_in_leaf` rows: without that the
scores of labels that an agent hardly ever takes grow without end. Columns that say the same in all training rows and
those that no tree looks at are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.matrix import columns_for, read_matrix
from pipeline.models.softmax import softmax
from pipeline.models.trees import Trees
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.runtime.progress import Callbacks, Progress
from pipeline.training.exponents import used_exponents
from pipeline.training.inner import choose_inner
from pipeline.training.loop import Context
from pipeline.training.tasks import Corpora, Examples, Forest, Task, Trained, finish

MOST_ROUNDS = 600
PATIENCE = 15
"""rounds without a better score on the inner deals before a forest stops growing"""
FORECAST_ROUNDS, LAST_GAIN = 10, 2e-4
"""rounds from which on their number is forecast, and the gain in log-loss, in nats a round, at which forests stop"""
SETTINGS = {
    "objective": "multiclass",
    "num_leaves": 63,
    "learning_rate": 0.15,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.7,
    "use_missing": False,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
"""settings of every forest for LightGBM; docs/lab/experiments.md says how this and `COLUMN_SETS` were found"""
LIMIT_SETTINGS = {"learning_rate": 0.08, "feature_fraction": 0.3}
MANY_ROWS, MANY_ROUNDS = 100_000, 200
MANY_SETTINGS = {"learning_rate": 0.2, "num_leaves": 127, "feature_fraction": 0.3}
"""settings in limit games for two; from `MANY_ROWS` rows on a single forest of at most `MANY_ROUNDS` rounds is grown
there, by `MANY_SETTINGS`"""


class ColumnSet(NamedTuple):
    """The columns that the trees of a forest may read, and how strongly their leaves are shrunk."""

    name: str
    lambda_l2: float
    only: tuple[str, ...] = ()
    """names of columns; none: all of them"""

    def numbers(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """Return which of some columns are its own, by number."""
        return np.flatnonzero([not self.only or column.name in self.only for column in columns])


FEW_COLUMNS = (
    "position players in_hand raises bets to_call pot odds faced stack_to_pot aggressor previous act start ihs ehs ehs2"
)
COLUMN_SETS = (ColumnSet("all", 5.0), ColumnSet("few", 1.0, tuple(FEW_COLUMNS.split())))
"""the first one is grown by itself where no deals can be spared to fit powers"""


class Grown(NamedTuple):
    """A forest as LightGBM has it, with the numbers of its columns."""

    forest: Forest
    column_numbers: NDArray[np.int64]
    booster: Any


def train(task: Task, corpora: Corpora, context: Context) -> Trained:
    """Grow the forests and join them."""
    return boost(task, choose_inner(task.examples.groups), context.callbacks)


def boost(task: Task, inner: NDArray[np.bool_], callbacks: Callbacks, plan: Sequence[Forest] = ()) -> Trained:
    """Grow forests on the other rows until log-loss on the `inner` ones stops falling, and join them.

    Without inner rows, those of `plan` are grown, with the rounds and powers that an earlier training has found;
    without a plan, one of all columns.
    """
    task.check_decisions("boosting")
    callbacks.stage("reading columns")
    rows: Any = task.examples.rows
    columns = columns_for(rows, task.streets, quantiles=task.is_heads_up_limit)
    values: Any = read_matrix(rows, columns)
    varying = (values != values[:1]).any(axis=0)
    varying[0] |= not varying.any()  # trees of rows that are all alike have one leaf, but LightGBM wants a column
    columns, values = tuple(compress(columns, varying)), values[:, varying].astype(np.float32)
    has_many_rows = task.is_heads_up_limit and len(task.examples) >= MANY_ROWS
    single = not inner.any() or has_many_rows
    column_sets = {
        column_set.name: column_set for column_set in (COLUMN_SETS if plan or not single else COLUMN_SETS[:1])
    }
    rounds = task.config.rounds or (MANY_ROUNDS if has_many_rows else MOST_ROUNDS)
    grown = []
    for forest in plan or [Forest(name, rounds, 1.0) for name in column_sets]:
        column_set = column_sets[forest.columns]
        column_numbers = column_set.numbers(columns)
        if len(column_numbers) > 0:
            progress = callbacks.stage(f"boosting by {column_set.name} columns")
            booster = _grow(task, values[:, column_numbers], inner, column_set.lambda_l2, forest.rounds, progress)
            grown.append(Grown(forest._replace(rounds=_kept_rounds(booster)), column_numbers, booster))
    if inner.any():
        judges = task.examples.subset(inner)
        chances = [
            _predict(grown_forest, values[inner][:, grown_forest.column_numbers], judges) for grown_forest in grown
        ]
        powers = used_exponents(chances, judges).tolist()
        grown = [
            grown_forest._replace(forest=grown_forest.forest._replace(power=power))
            for grown_forest, power in zip(grown, powers, strict=True)
        ]
    model = _join_forests(
        [grown_forest for grown_forest in grown if grown_forest.forest.power > 0], columns, len(task.labels)
    )
    forests = tuple(grown_forest.forest for grown_forest in grown)
    return finish(task, model, max(grown_forest.rounds for grown_forest in forests), len(model.leaves))._replace(
        forests=forests, inner_rows=int(inner.sum())
    )


def _grow(
    task: Task,
    values: NDArray[np.float32],
    inner: NDArray[np.bool_],
    lambda_l2: float,
    rounds: int,
    progress: Progress,
) -> Any:
    """Grow a forest by LightGBM."""
    lightgbm, examples = import_extra("lightgbm"), task.examples

    def part(chosen: NDArray[np.bool_], **options: Any) -> Any:
        weight = None if examples.weights is None else examples.weights[chosen]
        return lightgbm.Dataset(values[chosen], examples.targets[chosen].astype(np.int32), weight=weight, **options)

    data = part(~inner)
    inner_data = [part(inner, reference=data)] if inner.any() else []
    settings_here = {"num_class": len(task.labels), "lambda_l2": lambda_l2}
    settings_here |= {"num_threads": task.workers.threads, "seed": task.config.seed}
    calls = _progress_calls(progress, rounds)
    calls += [lightgbm.early_stopping(PATIENCE, verbose=False)] if inner_data else []
    settings = SETTINGS | settings_here
    if task.is_heads_up_limit:
        settings |= LIMIT_SETTINGS if len(examples) < MANY_ROWS else MANY_SETTINGS
    return lightgbm.train(settings, data, rounds, valid_sets=inner_data, callbacks=calls)


def _progress_calls(progress: Progress, rounds: int) -> list[Any]:
    """Return callbacks for LightGBM that report the rounds done, and of how many: those expected till the early end."""
    losses: list[float] = []

    def begin(now: Any) -> None:
        if now.iteration == now.begin_iteration:  # columns are cut into bins before, which is not a part of the rounds
            progress(0, rounds)

    def report(now: Any) -> None:
        losses.extend(result[2] for result in now.evaluation_result_list or ())
        done = now.iteration + 1
        progress(done, max(done, expected_rounds(losses, rounds)))

    begin.before_iteration = True  # type: ignore[attr-defined]
    return [begin, report]


def expected_rounds(losses: Sequence[float], limit: int) -> int:
    """Return how many rounds a forest is expected to take, from the log-losses on the inner rows after each so far.

    The gain of a round is taken to shrink as it did from the first half of the rounds to the second, though half as
    fast from now on, down to `LAST_GAIN`; `PATIENCE` rounds follow. Without losses it is the limit.
    """
    count = len(losses)
    if count < FORECAST_ROUNDS:
        return limit
    middle = count // 2
    first, second = losses[0] - losses[middle], losses[middle] - losses[-1]
    if second <= 0:
        return min(limit, count + PATIENCE)
    shrinks_in = middle / math.log(max(first / second, 1.01))
    more = 2 * shrinks_in * math.log(max(second / (count - middle) / LAST_GAIN, 1.0))
    return min(limit, count + round(more) + PATIENCE)


def _kept_rounds(booster: Any) -> int:
    """Return how many rounds of a forest are kept."""
    return int(booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration())


def _predict(grown: Grown, values: NDArray[np.float32], judges: Examples) -> NDArray[np.float64]:
    """Return a forest's probabilities in the inner rows."""
    scores = np.asarray(grown.booster.predict(values, raw_score=True, num_iteration=grown.forest.rounds))
    softmax(scores, judges.legal)
    return scores


def _join_forests(grown: Sequence[Grown], columns: Sequence[Column], labels: int) -> Trees:
    """Join forests to one: leaves are multiplied by the powers, and only columns that a node reads are kept."""
    arrays_by_name: dict[str, list[NDArray[Any]]] = {}
    nodes = leaves = 0
    for grown_forest in grown:
        trees = grown_forest.booster.dump_model(num_iteration=grown_forest.forest.rounds)["tree_info"]
        arrays = _flatten_trees([tree["tree_structure"] for tree in trees])
        arrays["column"] = grown_forest.column_numbers[arrays["column"]].astype(np.int32)
        for name in ("roots", "children"):
            places = arrays[name]
            arrays[name] = np.where(places < 0, places - leaves, places + nodes).astype(np.int32)
        arrays["leaves"] = arrays["leaves"] * grown_forest.forest.power
        nodes, leaves = nodes + len(arrays["column"]), leaves + len(arrays["leaves"])
        for name, array in arrays.items():
            arrays_by_name.setdefault(name, []).append(array)
    joined = {name: np.concatenate(parts) for name, parts in arrays_by_name.items()}
    used = np.unique(joined["column"]) if nodes else np.zeros(1, np.int64)
    joined["column"] = np.searchsorted(used, joined["column"]).astype(np.int32)
    return Trees(tuple(columns[at] for at in used.tolist()), labels=labels, **joined)


def _flatten_trees(structures: list[dict[str, Any]]) -> dict[str, Any]:
    """Write LightGBM's nested trees as arrays."""
    roots: list[int] = []
    column: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    leaves: list[float] = []
    for structure in structures:
        pending: list[tuple[dict[str, Any], int, int]] = [(structure, -1, 0)]
        while pending:
            node, parent, side = pending.pop()
            if "leaf_value" in node:
                leaves.append(node["leaf_value"])
                place = -len(leaves)
            else:
                if node["decision_type"] != "<=":
                    raise PipelineError(
                        f"LightGBM made a split {node['decision_type']!r} that this version cannot play"
                    )
                place = len(column)
                column.append(node["split_feature"])
                threshold.append(node["threshold"])
                children.append([0, 0])
                pending += [(node["right_child"], place, 1), (node["left_child"], place, 0)]
            if parent < 0:
                roots.append(place)
            else:
                children[parent][side] = place
    return {
        "roots": np.array(roots, np.int32),
        "column": np.array(column, np.int32),
        "threshold": np.array(threshold, np.float64),
        "children": np.array(children, np.int32).reshape(-1, 2),
        "leaves": np.array(leaves, np.float64),
    }
