"""The table that `train` prints of its models, and the sentences on how each was chosen.

In go the results of a training, out come rows of cells below `HEAD`, and sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.training.requests import Result
from pipeline.training.tasks import Trained

HEAD = ("street", "algorithm", "rows", "active", "iterations", "error", "log-loss", "seconds")
MAX_COLUMNS = 6
"""most columns that are named as those by which classes of hands differ"""


def summary_rows(results: Sequence[Result]) -> list[list[str]]:
    """Return a row per trained model; scores are on the validation rows."""
    rows = []
    for result in results:
        trained = result.trained
        scored = trained.error is not None and trained.log_loss is not None
        scores = [f"{trained.error:.2%}", f"{trained.log_loss:.4f}"] if scored else ["-", "-"]
        counts = [f"{result.rows:,}", f"{trained.active:,}", str(trained.iterations)]
        rows.append([result.street, result.algorithm, *counts, *scores, f"{result.seconds:.1f}"])
    return rows


def choice_sentences(results: Sequence[Result]) -> list[str]:
    """Return how each model came about: its priors, then the iteration, powers and columns that were chosen."""
    sentences = [
        f"{result.street}: {prior['prior']} with strength {prior['strength']:.2f}, {_prior_words(prior)}"
        for result in results
        for prior in result.trained.priors
    ]
    for result in results:
        trained = result.trained
        forests = [(forest.columns, forest.power) for forest in trained.forests]
        sentences += [] if trained.kept_iteration is None else [f"{result.street}: {_kept_words(trained)}"]
        for words, numbers in (
            ("powers of the parts:", trained.exponents),
            ("powers of trees by the columns they look at:", forests),
            ("classes of hands differ most by", trained.looks_at[:MAX_COLUMNS]),
        ):
            listed = ", ".join(f"{name} {value:.2f}" for name, value in numbers)
            sentences += [f"{result.street}: {words} {listed}"] if listed else []
    return sentences


def _prior_words(prior: Mapping[str, Any]) -> str:
    """Return the use of a prior that training chose, in words."""
    if prior["by"] == "blend":
        return "blended in"
    by = {"fixed": "as it is", "street": "one strength", "betting": "a strength per betting"}[prior["by"]]
    scale = prior["penalties"]
    return f"{by}, {'no features' if scale is None else f'penalties of features times {scale:g}'}"


def _kept_words(trained: Trained) -> str:
    """Return which iteration of max-ent was kept, and which rows chose it."""
    words = f"the max-ent weights are those of iteration {trained.kept_iteration}"
    if trained.inner_rows == 0:
        return f"{words}, the last"
    scored = "" if trained.best_log_loss is None else f" (log-loss {trained.best_log_loss:.4f} on these)"
    return f"{words}, chosen on {trained.inner_rows:,} inner training rows{scored}"
