"""Learning curves: a model's algorithm and pattern trained again on a growing share of the deals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.dataset import load
from pipeline.decisions import STREETS
from pipeline.errors import PipelineError
from pipeline.evaluate import Candidate, score_all
from pipeline.files import Progress, quiet
from pipeline.measures import Interval
from pipeline.models.bundle import Model
from pipeline.models.corpus import Workers
from pipeline.models.fitting import Settings
from pipeline.models.loglinear import LogLinear
from pipeline.models.training import Examples, Task, train
from pipeline.report.gather import Evaluation

__all__ = ["SHARES", "Learning", "learning_curve"]

SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Learning:
    """Scores of one algorithm by the number of training rows, on one street."""

    model: str
    agent: str
    street: str
    rows: list[int]
    error: list[Interval]
    log_loss: list[Interval]
    floor: float | None = None


@dataclass(frozen=True)
class _Model:
    """A street's model as a player."""

    model: Model

    def probabilities(self, rows: Any) -> Any:
        return self.model.predict(rows)


def learning_curve(
    found: Evaluation, shares: Sequence[float] = SHARES, *, threads: int = 2, progress: Progress = quiet
) -> list[Learning]:
    """For the first bundle: each of its street models trained on the first part of the deals, in order of their hash.

    Scores are on the same decisions as those of the evaluation.
    """
    opened = next((one for one in found.models if one.bundle is not None), None)
    if opened is None or opened.bundle is None:
        raise PipelineError("a learning curve needs a trained bundle among the models")
    parts = [(part, part.model) for part in opened.bundle.parts if isinstance(part.model, LogLinear)]
    if not parts:
        raise PipelineError(f"{opened.text} has no model with a pattern to train again")
    sample = next(row[0].sample for row in found.scored if row[0].sample.agent in opened.bundle.agents)
    curves = []
    workers = Workers(threads)
    for number, (part, old) in enumerate(parts):
        names = [STREETS[street] for street in part.streets]
        data = load(found.data, opened.bundle.agents, names, "train")
        here = sample.take(np.flatnonzero(np.isin(sample.rows["street"], part.streets)))
        rows, error, log_loss, floor = [], [], [], None
        for step, share in enumerate(shares):
            progress(number * len(shares) + step, len(parts) * len(shares))
            kept = np.flatnonzero(data.deal.astype(np.float64) <= share * 2.0**64)
            if len(kept) == 0:
                continue
            hand = data.file[kept].astype(np.int64) << 32 | data.line[kept]
            task = Task(
                Examples(data.rows[kept], data.action[kept], hand),
                None,
                old.features.pattern,
                tuple(data.game.labels),
                part.streets,
                Settings(),
                float(part.about.get("rho1", 0.5)),
                float(part.about.get("rho2", 1e-4)),
                workers,
            )
            model = train(str(part.about["algorithm"]), task).model
            candidate = Candidate(part.name, str(part.about["algorithm"]), (), _Model(model), part.streets)
            score = score_all([candidate], here)[0].scores[-1]
            rows.append(len(kept))
            error.append(score.measures["error"])
            log_loss.append(score.measures["log_loss"])
            floor = score.floors.get("log_loss", math.nan)
        known = None if floor is None or math.isnan(floor) else floor
        curves.append(Learning(opened.candidate.name, sample.agent, part.name, rows, error, log_loss, known))
    progress(1, 1)
    return curves
