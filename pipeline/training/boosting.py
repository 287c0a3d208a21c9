"""Training of boosted trees by LightGBM, an optional package; the trees play without it (see `models.trees`).

Agents differ in what they look at: some in a few numbers, where every further column is one more chance to split by
accident, others in the whole distribution of a hand's strength. So several *forests* are grown, each from columns and
with a penalty of its own (`LOOKS`), and their scores are added, each times a power that is fitted on an inner tenth of
the training deals; a forest with hardly any power is left out. The sum is one model of trees, whose leaves are
multiplied by the powers.

A forest gets a tree per label and round until the log-loss on the same inner deals stops falling, so the validation
rows take no part in it. Leaves are shrunk (`lambda_l2`) and hold at least `min_data_in_leaf` rows: without that the
scores of labels that an agent hardly ever takes grow without end. Columns that say the same in all training rows and
those that no tree looks at are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.matrix import columns_for, whole_numbers
from pipeline.models.softmax import softmax
from pipeline.models.trees import Trees
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.runtime.numeric import hash_rows
from pipeline.runtime.progress import Callbacks, Progress
from pipeline.training.exponents import used_exponents
from pipeline.training.tasks import Corpora, Examples, Forest, Task, Trained
from pipeline.training.trainers import finish

ROUNDS = 600
PATIENCE = 15
"""rounds without a better score on the inner deals before a forest stops growing"""
INNER = 10
"""one deal in so many decides when to stop"""
SALT = 1
"""in the hash that chooses these deals, which is another than the one that held out the validation rows"""
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
"""what LightGBM is told of every forest; docs/lab/experiments.md says how this and `LOOKS` were found"""
LIMIT_SETTINGS = {"learning_rate": 0.08, "feature_fraction": 0.3}
MANY, MANY_ROUNDS = 100_000, 200
MANY_SETTINGS = {"learning_rate": 0.2, "num_leaves": 127, "feature_fraction": 0.3}
"""in limit games for two, there also from so many rows on, where one forest of at most so many rounds is grown"""


class Look(NamedTuple):
    """What the trees of a forest may look at, and how strongly their leaves are shrunk."""

    name: str
    lambda_l2: float
    only: tuple[str, ...] = ()
    """names of columns; none: all of them"""

    def at(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The numbers of its columns."""
        return np.flatnonzero([not self.only or one.name in self.only for one in columns])


FEW = (
    "position players in_hand raises bets to_call pot odds faced stack_to_pot aggressor previous act start ihs ehs ehs2"
)
LOOKS = (Look("all", 5.0), Look("few", 1.0, tuple(FEW.split())))
"""the first one is grown by itself where no deals can be spared to fit powers"""


class Grown(NamedTuple):
    """A forest as LightGBM has it, with the numbers of its columns."""

    forest: Forest
    at: NDArray[np.int64]
    booster: Any


def train(task: Task, corpora: Corpora, callbacks: Callbacks) -> Trained:
    """Grow the forests and join them."""
    return boost(task, held_inside(task.examples), callbacks)


def boost(task: Task, inner: NDArray[np.bool_], callbacks: Callbacks, plan: Sequence[Forest] = ()) -> Trained:
    """Grow forests on the other rows until log-loss on the `inner` ones stops falling, and join them.

    Without inner rows, those of `plan` are grown, with the rounds and powers that an earlier training has found;
    without a plan, one of all columns.
    """
    task.check_decisions("boosting")
    callbacks.stage("reading columns")
    rows: Any = task.examples.rows
    columns = columns_for(rows, task.streets, quantiles=task.is_heads_up_limit)
    values: Any = whole_numbers(rows, columns)
    telling = (values != values[:1]).any(axis=0)
    telling[0] |= not telling.any()  # trees of rows that are all alike have one leaf, but LightGBM wants a column
    columns, values = tuple(compress(columns, telling)), values[:, telling].astype(np.float32)
    many = task.is_heads_up_limit and len(task.examples) >= MANY
    alone = not inner.any() or many
    looks = {look.name: look for look in (LOOKS if plan or not alone else LOOKS[:1])}
    rounds = task.config.iterations or (MANY_ROUNDS if many else ROUNDS)
    grown = []
    for forest in plan or [Forest(name, rounds, 1.0) for name in looks]:
        look = looks[forest.columns]
        at = look.at(columns)
        if len(at) > 0:
            progress = callbacks.stage(f"boosting by {look.name} columns")
            booster = _grow(task, values[:, at], inner, look.lambda_l2, forest.rounds, progress)
            grown.append(Grown(forest._replace(rounds=_rounds(booster)), at, booster))
    if inner.any():
        judges = task.examples.some(inner)
        said = [_chances(one, values[inner][:, one.at], judges) for one in grown]
        powers = used_exponents(said, judges).tolist()
        grown = [
            one._replace(forest=one.forest._replace(power=power)) for one, power in zip(grown, powers, strict=True)
        ]
    model = _joined([one for one in grown if one.forest.power > 0], columns, len(task.labels))
    forests = tuple(one.forest for one in grown)
    return finish(task, model, max(one.rounds for one in forests), len(model.leaves))._replace(forests=forests)


def _grow(
    task: Task,
    values: NDArray[np.float32],
    inner: NDArray[np.bool_],
    lambda_l2: float,
    rounds: int,
    progress: Progress,
) -> Any:
    """LightGBM's forest."""
    lightgbm, examples = import_extra("lightgbm"), task.examples

    def part(chosen: NDArray[np.bool_], **options: Any) -> Any:
        weight = None if examples.weights is None else examples.weights[chosen]
        return lightgbm.Dataset(values[chosen], examples.targets[chosen].astype(np.int32), weight=weight, **options)

    data = part(~inner)
    held = [part(inner, reference=data)] if inner.any() else []
    told = {"num_class": len(task.labels), "lambda_l2": lambda_l2}
    told |= {"num_threads": task.workers.threads, "seed": task.config.seed}
    calls: list[Any] = [lambda now: progress(now.iteration, rounds)]
    calls += [lightgbm.early_stopping(PATIENCE, verbose=False)] if held else []
    settings = SETTINGS | told
    if task.is_heads_up_limit:
        settings |= LIMIT_SETTINGS if len(examples) < MANY else MANY_SETTINGS
    return lightgbm.train(settings, data, rounds, valid_sets=held, callbacks=calls)


def _rounds(booster: Any) -> int:
    """The rounds that are kept of a forest."""
    return int(booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration())


def _chances(one: Grown, values: NDArray[np.float32], judges: Examples) -> NDArray[np.float64]:
    """What a forest says of the inner rows."""
    scores = np.asarray(one.booster.predict(values, raw_score=True, num_iteration=one.forest.rounds))
    softmax(scores, judges.legal)
    return scores


def _joined(grown: Sequence[Grown], columns: Sequence[Column], labels: int) -> Trees:
    """The forests as one, with leaves times the powers, and the columns that its nodes look at."""
    found: dict[str, list[NDArray[Any]]] = {}
    nodes = leaves = 0
    for one in grown:
        told = one.booster.dump_model(num_iteration=one.forest.rounds)["tree_info"]
        arrays = _arrays([tree["tree_structure"] for tree in told])
        arrays["column"] = one.at[arrays["column"]].astype(np.int32)
        for name in ("roots", "children"):
            places = arrays[name]
            arrays[name] = np.where(places < 0, places - leaves, places + nodes).astype(np.int32)
        arrays["leaves"] = arrays["leaves"] * one.forest.power
        nodes, leaves = nodes + len(arrays["column"]), leaves + len(arrays["leaves"])
        for name, array in arrays.items():
            found.setdefault(name, []).append(array)
    joined = {name: np.concatenate(parts) for name, parts in found.items()}
    used = np.unique(joined["column"]) if nodes else np.zeros(1, np.int64)
    joined["column"] = np.searchsorted(used, joined["column"]).astype(np.int32)
    return Trees(tuple(columns[at] for at in used.tolist()), labels=labels, **joined)


def held_inside(examples: Examples, one_in: int = INNER) -> NDArray[np.bool_]:
    """Which training rows decide when to stop: one deal in so many, or one hand where deals are unknown."""
    key = examples.deal if examples.deal is not None else examples.hand
    if key is None:
        key = np.arange(len(examples))
    words = np.column_stack([np.full(len(key), SALT, np.uint64), key.astype(np.uint64)])
    found: NDArray[np.bool_] = (hash_rows(words) >> np.uint64(32)) % np.uint64(one_in) == 0
    return found if found.any() and not found.all() else np.zeros(len(examples), bool)


def _arrays(structures: list[dict[str, Any]]) -> dict[str, Any]:
    """LightGBM's nested trees as arrays."""
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
