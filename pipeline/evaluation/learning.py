"""Learning curves: a bundle's models trained again on a growing share of the deals, to estimate the gain from more
logs.

In go a bundle, the dataset it was trained on and the held-out decisions; out come error and log-loss by number of
training rows, one `LearningCurve` per model of the bundle. This is the one place of `evaluate` that trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions
from pipeline.evaluation.evaluation import Evaluation
from pipeline.evaluation.samples import DecisionSample
from pipeline.evaluation.scoring import Candidate, score_all
from pipeline.models.bundle import Bundle
from pipeline.models.kinds import Model
from pipeline.models.loglinear import LogLinear
from pipeline.models.measures import Interval
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training.config import TrainConfig
from pipeline.training.run import pattern_of_model
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""parts of the deals that are trained on"""


@dataclass(frozen=True)
class LearningCurve:
    """Scores of one algorithm by the number of training rows, on one street."""

    model: str
    agent: str
    street: str
    rows: list[int]
    error: list[Interval]
    log_loss: list[Interval]
    floor: float | None = None


@dataclass(frozen=True)
class _StreetModel:
    """A street's model with the method that scoring calls."""

    model: Model

    def probabilities(self, rows: Any) -> Any:
        return self.model.predict(rows)


def learning_curve(
    bundle: Bundle,
    data: Path,
    sample: DecisionSample,
    *,
    name: str,
    shares: Sequence[float] = SHARES,
    threads: int = 2,
    progress: Progress = no_progress,
) -> list[LearningCurve]:
    """Train a bundle's log-linear models again on the first parts of the deals, in the order of their hashes.

    The decisions of `sample` are those to score on: the bundle's agents' held-out ones.
    """
    parts = [part for part in bundle.parts if isinstance(part.model, LogLinear)]
    if not parts:
        raise PipelineError(f"{name} has no log-linear model to train again: name another first")
    curves = []
    workers = Workers(threads)
    for number, part in enumerate(parts):
        config = TrainConfig.from_json(part.about.get("parameters", {}))
        config = replace(config, iterations=part.about.get("iterations") or None, patience=0, workers=threads)
        pattern = pattern_of_model(part)
        names = [STREETS[street] for street in part.streets]
        decisions = load_decisions(data, bundle.agents, names, "train")
        street_sample = sample.take(np.flatnonzero(np.isin(sample.rows["street"], part.streets)))
        rows, error, log_loss, floor = [], [], [], None
        for step, share in enumerate(shares):
            progress(number * len(shares) + step, len(parts) * len(shares))
            # a deal is a hash: the lowest share of all hashes is that share of the deals, and holds the smaller shares
            rows_used = np.flatnonzero(decisions.deal.astype(np.float64) <= share * 2.0**64)
            if len(rows_used) == 0:
                continue
            hand = decisions.file[rows_used].astype(np.int64) << 32 | decisions.line[rows_used]
            task = Task(
                Examples(decisions.rows[rows_used], decisions.action[rows_used], hand),
                None,
                pattern,
                tuple(decisions.game.labels),
                part.streets,
                config,
                workers,
            )
            model = train_model(str(part.about["algorithm"]), task).model
            candidate = Candidate(part.name, str(part.about["algorithm"]), (), _StreetModel(model), part.streets)
            score = score_all([candidate], street_sample)[0].scores[-1]
            rows.append(len(rows_used))
            error.append(score.measures["error"])
            log_loss.append(score.measures["log_loss"])
            floor = score.floors.get("log_loss")
        curves.append(LearningCurve(name, sample.agent, part.name, rows, error, log_loss, floor))
    progress(1, 1)
    return curves


def first_bundle_curve(evaluation: Evaluation, progress: Progress = no_progress) -> list[LearningCurve]:
    """Return the learning curve of the first bundle of an evaluation."""
    for opened in evaluation.models:
        for sample in evaluation.samples:
            if opened.bundle is not None and sample.agent in opened.bundle.agents:
                name = opened.candidate.name
                return learning_curve(opened.bundle, evaluation.data, sample, name=name, progress=progress)
    raise PipelineError("a learning curve needs a trained bundle, and decisions of the agent it imitates")
