"""Training of boosted trees by LightGBM, an optional package; the trees play without it (see `models.trees`).

A tree per label and round is added until the log-loss on an inner tenth of the training deals stops falling, so the
validation rows take no part in it. Leaves are shrunk (`lambda_l2`) and hold at least `min_data_in_leaf` rows: without
that the scores of labels that an agent hardly ever takes grow without end. Columns that say the same in all training
rows are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PipelineError
from pipeline.extras import needed
from pipeline.models.matrix import columns_for, whole_numbers
from pipeline.models.trees import Trees
from pipeline.numeric import hash_rows
from pipeline.training.tasks import Corpora, Examples, Task, Trained, Watch
from pipeline.training.trainers import finish

__all__ = ["SETTINGS", "boost", "held_inside", "train"]

ROUNDS = 600
PATIENCE = 30
"""rounds without a better score on the inner deals before boosting stops"""
INNER = 10
"""one deal in so many decides when to stop"""
SALT = 1
"""in the hash that chooses these deals, which is another than the one that held out the validation rows"""
SETTINGS = {
    "objective": "multiclass",
    "num_leaves": 127,
    "learning_rate": 0.06,
    "min_data_in_leaf": 20,
    "lambda_l2": 5.0,
    "feature_fraction": 0.7,
    "use_missing": False,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
"""what LightGBM is told; docs/experiments.md says how it was found"""


def train(task: Task, corpora: Corpora, watch: Watch) -> Trained:
    """Boost trees until log-loss on the inner deals stops falling."""
    return boost(task, held_inside(task.examples), watch)


def boost(task: Task, inner: NDArray[np.bool_], watch: Watch) -> Trained:
    """Boost trees on the other rows until log-loss on the `inner` ones stops falling; without those, all rounds."""
    lightgbm = needed("lightgbm")
    task.check_decisions("boosting")
    examples = task.examples
    watch.stage("reading columns")
    rows: Any = examples.rows
    columns = columns_for(rows, task.streets)
    values = whole_numbers(rows, columns)
    telling = np.flatnonzero((values != values[:1]).any(axis=0))
    columns, values = tuple(columns[at] for at in telling), values[:, telling]

    def part(chosen: NDArray[np.bool_], **options: Any) -> Any:
        weight = None if examples.weights is None else examples.weights[chosen]
        targets = examples.targets[chosen].astype(np.int32)
        return lightgbm.Dataset(values[chosen].astype(np.float32), targets, weight=weight, **options)

    data = part(~inner)
    held = [part(inner, reference=data)] if inner.any() else []
    settings = SETTINGS | {
        "num_class": len(task.labels),
        "num_threads": task.workers.threads,
        "seed": task.config.seed,
    }
    progress, rounds = watch.stage("boosting"), task.config.iterations or ROUNDS
    calls: list[Any] = [lambda now: progress(now.iteration, rounds)]
    calls += [lightgbm.early_stopping(PATIENCE, verbose=False)] if held else []
    booster = lightgbm.train(settings, data, rounds, valid_sets=held, callbacks=calls)
    rounds = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
    structures = [tree["tree_structure"] for tree in booster.dump_model(num_iteration=rounds)["tree_info"]]
    model = Trees(columns, labels=len(task.labels), **_arrays(structures))
    return finish(task, model, rounds, len(model.leaves))


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
