"""Warnings about results, and the baseline that results are compared with.

In: results of a training. Out: a sentence for each that is worse than counting actions by betting, and for each that
another algorithm clearly beat on the same validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.features.patterns import is_default
from pipeline.features.textrows import TextRows
from pipeline.training.requests import Request, Result
from pipeline.training.tasks import Task
from pipeline.training.trainers import ALGORITHMS, train_model

BASELINE_ROWS = 200_000
"""rows that the baseline is counted on, at most"""
NOISE = 0.01
"""nats by which two scores may differ and mean the same"""
BASELINES = ("majority", "frequency")
"""algorithms that are trained to be worse than others"""
SMALL_DATA = 50_000
"""rows of a street under which boosted trees have been closer than max-ent with the default pattern"""


def baseline_log_loss(task: Task) -> float | None:
    """Return the validation log-loss of action frequencies by betting, which any model should beat."""
    if task.validation is None or len(task.validation) == 0 or isinstance(task.examples.rows, TextRows):
        return None
    if task.priors and not task.is_learnable:
        return None
    sampled = replace(
        task,
        examples=task.examples.sampled(BASELINE_ROWS),
        validation=task.validation.sampled(BASELINE_ROWS),
        priors=(),
    )
    return train_model("frequency", sampled).log_loss


def remarks_on(result: Result, request: Request) -> tuple[str, ...]:
    """Return warnings about a result: worse than the baseline, or likely to be beaten by another algorithm."""
    loss, baseline = result.trained.log_loss, result.baseline_log_loss
    sentences = []
    if loss is not None and baseline is not None and loss > baseline + NOISE and result.algorithm not in BASELINES:
        sentences.append(
            f"{result.street} {result.algorithm}: a validation log-loss of {loss:.4f} is worse than the {baseline:.4f}"
            " of counting betting alone; more rows, fewer templates or larger penalties may help: do not play it"
        )
    default = ALGORITHMS[result.algorithm].previous is not None and is_default(request.pattern)
    if default and result.rows < SMALL_DATA and len(request.algorithms) == 1:
        sentences.append(
            f"with under {SMALL_DATA:,} rows a street boosted trees may be closer than {result.algorithm} with the"
            " default pattern, as they are on the bundled sample: compare with `--algorithm boosting`"
        )
    return tuple(sentences)


def add_comparisons(results: Sequence[Result]) -> list[Result]:
    """Add a remark to each result of a street that an algorithm trained beside it clearly beat."""
    log_losses = {
        result.algorithm: result.trained.log_loss for result in results if result.trained.log_loss is not None
    }
    compared = []
    for result in results:
        others = dict(result.trained.parts_log_loss) | log_losses
        best = min(others, key=others.__getitem__, default=result.algorithm)
        loss = result.trained.log_loss
        if result.algorithm not in BASELINES and loss is not None and others and loss > others[best] + NOISE:
            sentence = (
                f"{result.street} {result.algorithm}: {best} was clearly better on the validation rows, with a log-loss"
                f" of {others[best]:.4f} against {loss:.4f}"
            )
            result = replace(result, remarks=(*result.remarks, sentence))
        compared.append(result)
    return compared
