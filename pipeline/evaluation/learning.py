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

from pipeline.evaluation.evaluation import Evaluation
from pipeline.evaluation.samples import DecisionSample
from pipeline.evaluation.scoring import Candidate, score_all
from pipeline.models.bundle import Bundle, StreetModel
from pipeline.models.kinds import Model
from pipeline.models.measures import Interval
from pipeline.models.prior import Prior, PriorTimesFeatures
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training.config import TrainConfig
from pipeline.training.prior import OpenPrior
from pipeline.training.rows import read_examples
from pipeline.training.run import pattern_of_model
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import ALGORITHMS, train_model

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
    """Train a bundle's models again, as they were trained, on the first parts of the deals in order of their hashes.

    The decisions of `sample` are those to score on: the bundle's agents' held-out ones. Where the dataset holds out
    players, parts are of players.
    """
    parts = [part for part in bundle.parts if part.about.get("algorithm") in ALGORITHMS]
    if not parts or bundle.game is None:
        raise PipelineError(f"{name} has no model that was trained on decisions: name another first")
    curves = []
    workers = Workers(threads)
    for number, part in enumerate(parts):
        algorithm, pattern = str(part.about["algorithm"]), pattern_of_model(part)
        config = replace(TrainConfig.from_json(part.about.get("parameters", {}), algorithm), workers=threads)
        examples, _ = read_examples(data, bundle.agents, part.streets, bundle.game.name, pattern=pattern)
        street_sample = sample.take(np.flatnonzero(np.isin(sample.rows["street"], part.streets)))
        rows, error, log_loss, floor = [], [], [], None
        for step, share in enumerate(shares):
            progress(number * len(shares) + step, len(parts) * len(shares))
            # a group is a hash: the lowest share of all hashes is that share of the groups, and holds the smaller ones
            shared = examples.subset(examples.groups.astype(np.float64) <= share * 2.0**64)
            task = Task(shared, None, pattern, bundle.labels, part.streets, config, workers)
            if not task.is_learnable:
                continue
            task = replace(task, priors=_priors(part, bundle.game, shared))
            candidate = Candidate(
                part.name, algorithm, (), _StreetModel(train_model(algorithm, task).model), part.streets
            )
            score = score_all([candidate], street_sample)[0].scores[-1]
            rows.append(len(shared))
            error.append(score.measures["error"])
            log_loss.append(score.measures["log_loss"])
            floor = score.floors.get("log_loss")
        curves.append(LearningCurve(name, sample.agent, part.name, rows, error, log_loss, floor))
    progress(1, 1)
    return curves


def _priors(part: StreetModel, game: Game, examples: Examples) -> tuple[Prior, ...]:
    """Return the priors that a model was trained against: a bundle's are inside of the model, agents answer again."""
    if isinstance(part.model, PriorTimesFeatures):
        return part.model.priors
    names = [str(prior["prior"]) for prior in part.about.get("priors", ())]
    return tuple(OpenPrior(name, game, None).on(part.streets, examples) for name in names if name.startswith("@"))


def first_bundle_curve(evaluation: Evaluation, progress: Progress = no_progress) -> list[LearningCurve]:
    """Return the learning curve of the first bundle of an evaluation."""
    evaluation.check_held_out("a learning curve")
    for opened in evaluation.models:
        for sample in evaluation.samples:
            if opened.bundle is not None and sample.agent in opened.bundle.agents:
                name = opened.candidate.name
                return learning_curve(opened.bundle, evaluation.data, sample, name=name, progress=progress)
    raise PipelineError("a learning curve needs a trained bundle, and decisions of the agent it imitates")
