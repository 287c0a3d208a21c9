"""Records of a training that a bundle has beside the models: an account of each, its strongest features for people.

In: results of `train`. Out: the entry of a model in the manifest, the result that can be read from it when a later run
finds the street finished, and the text of `STREET.features.txt`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.features.textrows import TextRows
from pipeline.models.blend import Blend
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import PriorTimesFeatures
from pipeline.training.growing import GrowingBundle
from pipeline.training.remarks import remarks_on
from pipeline.training.requests import Request, Result
from pipeline.training.tasks import Forest, Task, Trained

STRONGEST = 300
"""most features in the file"""


def model_account(result: Result, request: Request) -> dict[str, Any]:
    """Return the account of a model's training, for the manifest."""
    trained = result.trained
    return {
        "algorithm": result.algorithm,
        "rows": result.rows,
        "validation_rows": result.validation_rows,
        "objective": trained.objective,
        "active": trained.active,
        "error": trained.error,
        "log_loss": trained.log_loss,
        "best_error": trained.best_error,
        "best_log_loss": trained.best_log_loss,
        "baseline_log_loss": result.baseline_log_loss,
        "parts_log_loss": dict(trained.parts_log_loss),
        "exponents": dict(trained.exponents),
        "kept_iteration": trained.kept_iteration,
        "forests": [forest._asdict() for forest in trained.forests],
        "looks_at": dict(trained.looks_at),
        "iterations": trained.iterations,
        "interrupted": trained.interrupted,
        "parameters": request.config.to_json(),
        "pattern": request.pattern.source,
        **({"priors": list(trained.priors)} if request.priors else {}),
    }


def read_finished(growing: GrowingBundle, algorithm: str, request: Request, scope: str) -> Result:
    """Read the result of a street that an earlier run of the same request finished."""
    part = growing.finished[scope]
    about = part.about
    names = ("iterations", "objective", "active", "error", "log_loss", "best_error", "best_log_loss", "interrupted")
    trained = Trained(
        part.model,
        **{name: about[name] for name in names},
        priors=tuple(about.get("priors", ())),
        parts_log_loss=tuple(about.get("parts_log_loss", {}).items()),
        exponents=tuple(about.get("exponents", {}).items()),
        kept_iteration=about.get("kept_iteration"),
        forests=tuple(Forest(**forest) for forest in about.get("forests", ())),
        looks_at=tuple(about.get("looks_at", {}).items()),
    )
    sizes = about["rows"], about["validation_rows"]
    result = Result(
        scope, algorithm, growing.head.agents, *sizes, 0.0, growing.path, trained, about["baseline_log_loss"]
    )
    return replace(result, remarks=remarks_on(result, request))


def strongest_features(scope: str, trained: Trained, task: Task) -> dict[str, str]:
    """Return a text file for people with the strongest features and their weights."""
    model, rows = trained.model, task.examples.sampled(20_000).rows
    if isinstance(model, Blend):
        model = next((part for part in model.parts if isinstance(part, LogLinear)), model)
    model = model.own if isinstance(model, PriorTimesFeatures) else model
    if not isinstance(model, LogLinear) or isinstance(rows, TextRows):
        return {}
    lines = ["\t".join(["feature", *task.labels])]
    for feature, row, template in model.strongest(rows, STRONGEST):
        description = model.features.describe(rows[row : row + 1], len(task.labels) > 3)[template]
        lines.append("\t".join([description, *(f"{weight:.4f}" for weight in model.weights[feature])]))
    return {f"{scope}.features.txt": "\n".join(lines) + "\n"}
