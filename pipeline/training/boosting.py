"""Training of boosted trees by LightGBM, an optional package; the trees play without it (see `models.trees`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.errors import PipelineError
from pipeline.extras import needed
from pipeline.models.matrix import matrix, matrix_columns
from pipeline.models.trees import Trees
from pipeline.training.tasks import Corpora, Task, Trained, Watch
from pipeline.training.trainers import finish

__all__ = ["train"]

ROUNDS = 300
PATIENCE = 20


def train(task: Task, corpora: Corpora, watch: Watch) -> Trained:
    """Boost trees until validation log-loss stops falling."""
    lightgbm = needed("lightgbm")
    task.check_decisions("boosting")
    examples = task.examples
    watch.stage("reading columns")
    rows: Any = examples.rows
    columns = matrix_columns(task.streets, bool((rows["hole"][0] != 255).all()))
    data = lightgbm.Dataset(
        matrix(examples.rows, columns), examples.targets.astype(np.int32), weight=examples.weights, free_raw_data=True
    )
    held = []
    if task.validation is not None and len(task.validation):
        values = matrix(task.validation.rows, columns)
        held = [data.create_valid(values, task.validation.targets.astype(np.int32))]
    settings = {
        "objective": "multiclass",
        "num_class": len(task.labels),
        "num_leaves": 127,
        "learning_rate": 0.1,
        "min_data_in_leaf": 20,
        "use_missing": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": task.workers.threads,
        "seed": task.config.seed,
        "verbosity": -1,
    }
    progress, rounds = watch.stage("boosting"), task.config.iterations or ROUNDS
    calls: list[Any] = [lambda now: progress(now.iteration, rounds)]
    calls += [lightgbm.early_stopping(PATIENCE, verbose=False)] if held else []
    booster = lightgbm.train(settings, data, rounds, valid_sets=held, callbacks=calls)
    rounds = booster.best_iteration or booster.current_iteration()
    structures = [tree["tree_structure"] for tree in booster.dump_model(num_iteration=rounds)["tree_info"]]
    model = Trees(columns, labels=len(task.labels), **_arrays(structures))
    return finish(task, model, rounds, len(model.leaves))


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
