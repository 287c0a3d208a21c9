"""What whoever trains should read: sentences about results, and the baseline that they are measured by.

A result that is worse than counting, and algorithms that were clearly better on the same validation rows, are said in
one line each. It is a room of its own because `train` only trains and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.features.patterns import is_default
from pipeline.features.textrows import TextRows
from pipeline.training.requests import Request, Result
from pipeline.training.tasks import Task
from pipeline.training.trainers import ALGORITHMS, train_model

COUNTED = 200_000
"""rows that the baseline is counted on, at most"""
NOISE = 0.01
"""nats by which two scores may differ and mean the same"""
BASELINES = ("majority", "frequency")
"""algorithms that are trained to be worse than others"""
SMALL_DATA = 50_000
"""rows of a street under which boosted trees have been closer than max-ent with the default pattern"""


def counting(task: Task) -> float | None:
    """Validation log-loss of counting betting alone, on a part of the rows: what any model should be better than."""
    if task.validation is None or len(task.validation) == 0 or isinstance(task.examples.rows, TextRows):
        return None
    if task.priors and not task.is_learnable:
        return None
    some = replace(task, examples=task.examples.sampled(COUNTED), validation=task.validation.sampled(COUNTED), priors=())
    return train_model("frequency", some).log_loss


def remarks(result: Result, request: Request) -> tuple[str, ...]:
    """What to say about a result: worse than counting, or known to be improved by another algorithm."""
    found, baseline = result.trained.log_loss, result.baseline_log_loss
    said = []
    if found is not None and baseline is not None and found > baseline + NOISE and result.algorithm not in BASELINES:
        said.append(
            f"{result.street} {result.algorithm}: a validation log-loss of {found:.4f} is worse than the {baseline:.4f}"
            " of counting betting alone; more rows, fewer templates or larger penalties may help: do not play it"
        )
    default = ALGORITHMS[result.algorithm].previous is not None and is_default(request.pattern)
    if default and result.rows < SMALL_DATA and len(request.algorithms) == 1:
        said.append(
            f"with under {SMALL_DATA:,} rows a street boosted trees may be closer than {result.algorithm} with the"
            " default pattern, as they are on the bundled sample: compare with `--algorithm boosting`"
        )
    return tuple(said)


def compared(results: Sequence[Result]) -> list[Result]:
    """The results of a street, each with a remark if an algorithm that was trained beside it was clearly better."""
    known = {one.algorithm: one.trained.log_loss for one in results if one.trained.log_loss is not None}
    found = []
    for one in results:
        others = dict(one.trained.parts_log_loss) | known
        best = min(others, key=others.__getitem__, default=one.algorithm)
        mine = one.trained.log_loss
        if one.algorithm not in BASELINES and mine is not None and others and mine > others[best] + NOISE:
            said = (
                f"{one.street} {one.algorithm}: {best} was clearly better on the validation rows, with a log-loss of"
                f" {others[best]:.4f} against {mine:.4f}"
            )
            one = replace(one, remarks=(*one.remarks, said))
        found.append(one)
    return found
