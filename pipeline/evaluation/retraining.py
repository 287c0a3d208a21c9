"""Models of a bundle trained again on parts of their deals: learning curves, and copies from disjoint halves.

In go an evaluation, whose first trained bundle is taken, and the dataset that it was trained on; out comes the
evaluation with what was asked for. A learning curve (error and log-loss by number of training rows) estimates the gain
from more logs. Copies from two halves bound the hands to tell where the source's probabilities are unknown (see
`hands_to_tell`, which derives the bound). Every model is trained by its own algorithm, settings and priors; a chart is
counted again. Both seatings of a deal have the same hash, so no deal is in two halves. This is the one place of
`evaluate` that trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.evaluation.evaluation import Evaluation, OpenedModel
from pipeline.evaluation.hands_to_tell import dealt_hands, hands_to_tell_at_most
from pipeline.evaluation.samples import DecisionSample
from pipeline.evaluation.scoring import Candidate, score_all
from pipeline.features.patterns import find_pattern
from pipeline.models.bundle import Bundle, StreetModel
from pipeline.models.charts import Chart, count_chart
from pipeline.models.kinds import Model
from pipeline.models.measures import Estimate, Interval, played
from pipeline.models.prior import Prior, PriorTimesFeatures
from pipeline.runtime.array_types import Floats
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
"""parts of the deals that a learning curve trains on"""
MIDDLE = np.uint64(1 << 63)
"""hashes of deals (of players, where players are held out) below this are of the first half"""


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

    def json(self) -> list[dict[str, Any]]:
        """Return a point for each number of training rows, as `evaluate --also learning --json` has."""
        points = []
        for rows, error, log_loss in zip(self.rows, self.error, self.log_loss, strict=True):
            point: dict[str, Any] = {"rows": rows, "error": error.value, "log_loss": log_loss.value}
            for name, interval in (("error", error), ("log_loss", log_loss)):
                point |= Estimate.of(interval).ends_json(f"{name}_")
            points.append(point)
        return points


@dataclass(frozen=True)
class _Player:
    """A street's model with the method that scoring calls."""

    model: Model

    def probabilities(self, rows: Any) -> Any:
        return self.model.predict(rows)


def train_again(
    evaluation: Evaluation,
    *,
    halves: bool = False,
    learning: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Evaluation:
    """Return an evaluation with what training its first bundle again tells.

    Parameters: `halves` adds `tell_at_most` to the bundle's last score, `learning` the bundle's learning curve; `seed`
    of the bootstrap. Without both the evaluation is returned as it is.
    """
    if not halves and not learning:
        return evaluation
    option = "--also halves" if halves else "--also learning"
    if evaluation.all_rows:
        raise PipelineError(f"{option} trains models on rows of {evaluation.data}: leave out --all-rows")
    opened, number = _first_bundle(evaluation, option)
    assert opened.bundle is not None
    sample, name = evaluation.samples[number], opened.candidate.name
    if halves:
        mixes = half_mixes(opened.bundle, evaluation.data, sample, name=name, progress=progress)
        bound = hands_to_tell_at_most(*mixes, sample.dealt or dealt_hands(evaluation.data, sample), seed=seed)
        scored = [
            replace(model, scores=[*model.scores[:-1], replace(model.scores[-1], tell_at_most=bound)])
            if model.candidate.name == name
            else model
            for model in evaluation.scored[number]
        ]
        evaluation = replace(evaluation, scored=[*evaluation.scored[:number], scored, *evaluation.scored[number + 1 :]])
    if learning:
        curves = learning_curve(opened.bundle, evaluation.data, sample, name=name, progress=progress)
        evaluation = replace(evaluation, learning=curves)
    return evaluation


def _first_bundle(evaluation: Evaluation, option: str) -> tuple[OpenedModel, int]:
    """Return the first bundle of an evaluation and the number of an agent that it imitates and was scored on."""
    for opened in evaluation.models:
        for number, sample in enumerate(evaluation.samples):
            if opened.bundle is not None and sample.agent in opened.bundle.agents:
                return opened, number
    raise PipelineError(f"{option} needs a trained bundle, and decisions of the agent it imitates")


def half_mixes(
    bundle: Bundle, data: Path, sample: DecisionSample, *, name: str, threads: int = 2, progress: Progress = no_progress
) -> tuple[Floats, Floats]:
    """Train a bundle again on each half of its deals; return what both would play (decisions, labels).

    Parameters: `data` the dataset that it was trained on, `sample` the decisions to answer, `name` of the bundle.
    """
    streets = {street for part in bundle.parts for street in part.streets}
    if not set(range(sample.game.rounds)) <= streets:
        raise PipelineError(f"{name} has no model for some street: its hands to tell have no bound")
    _check_priors(bundle, data, name)
    mixes = [np.zeros((len(sample), len(sample.labels))) for _ in range(2)]
    for number, part in enumerate(bundle.parts):
        rows = np.flatnonzero(np.isin(sample.rows["street"], part.streets))
        examples = _read_examples(bundle, part, data)
        assert examples.group is not None
        is_first = examples.group < MIDDLE
        for mix, chosen in zip(mixes, (is_first, ~is_first), strict=True):
            progress(number, len(bundle.parts))
            if not chosen.any():
                raise PipelineError(f"{data} has too few deals of {sample.agent} for two halves: ingest more logs")
            mix[rows] = _retrain(bundle, part, _task(bundle, part, examples.subset(chosen), threads)).predict(
                sample.rows[rows]
            )
    progress(1, 1)
    first, other = (played(mix, sample.rows["legal"]) for mix in mixes)
    return first, other


def _check_priors(bundle: Bundle, data: Path, name: str) -> None:
    """Refuse a bundle whose prior has, or may have, learned from logs of the dataset: it would join both halves."""
    logs = read_manifest(data).logs
    for record in bundle.trained_on:
        if record.role == "prior" and (record.shared(logs) or not record.is_complete):
            raise PipelineError(
                f"{name} starts from the prior {record.name}, which knows or may know deals of both halves of {data}:"
                " train it with --prior none, or name another model first"
            )
    is_recorded = {record.name for record in bundle.trained_on}
    for prior in (str(prior["prior"]) for part in bundle.parts for prior in part.about.get("priors", ())):
        if not prior.startswith("@") and prior not in is_recorded:
            raise PipelineError(f"{name} does not say which logs its prior {prior} knows: name another model first")


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
    for number, part in enumerate(parts):
        examples = _read_examples(bundle, part, data)
        street_sample = sample.take(np.flatnonzero(np.isin(sample.rows["street"], part.streets)))
        curve = LearningCurve(name, sample.agent, part.name, [], [], [])
        for step, share in enumerate(shares):
            progress(number * len(shares) + step, len(parts) * len(shares))
            # a group is a hash: the lowest share of all hashes is that share of the groups, and holds the smaller ones
            task = _task(bundle, part, examples.subset(examples.groups.astype(np.float64) <= share * 2.0**64), threads)
            if not task.is_learnable:
                continue
            player = _Player(_retrain(bundle, part, task))
            score = score_all([Candidate(part.name, "", (), player, part.streets)], street_sample)[0].scores[-1]
            curve.rows.append(len(task.examples))
            curve.error.append(score.measures["error"])
            curve.log_loss.append(score.measures["log_loss"])
            curve = replace(curve, floor=score.floors.get("log_loss"))
        curves.append(curve)
    progress(1, 1)
    return curves


def _read_examples(bundle: Bundle, part: StreetModel, data: Path) -> Examples:
    """Read the training rows of one of a bundle's models."""
    assert bundle.game is not None
    names = [STREETS[street] for street in part.streets]
    selected = select_rows(data, bundle.agents or None, names, game=bundle.game.name)
    examples, _ = read_examples(selected, part.streets, _pattern(part))
    return examples


def _pattern(part: StreetModel) -> Any:
    """Return the pattern of a model's features; a chart's rows are read by one that looks at no cards."""
    return find_pattern("betting") if isinstance(part.model, Chart) else pattern_of_model(part)


def _task(bundle: Bundle, part: StreetModel, examples: Examples, threads: int) -> Task:
    """Return the task to train one of a bundle's models again on some rows, without its priors."""
    settings = TrainConfig.from_json(part.about.get("parameters", {}), str(part.about["algorithm"]))
    config = replace(settings, workers=threads)
    return Task(examples, None, _pattern(part), bundle.labels, part.streets, config, Workers(threads))


def _retrain(bundle: Bundle, part: StreetModel, task: Task) -> Model:
    """Train one of a bundle's models again."""
    if isinstance(part.model, Chart):
        rows: Any = task.examples.rows
        return count_chart(rows, task.examples.targets, "".join(bundle.labels))
    return train_model(str(part.about["algorithm"]), replace(task, priors=_priors(bundle, part, task.examples))).model


def _priors(bundle: Bundle, part: StreetModel, examples: Examples) -> tuple[Prior, ...]:
    """Return the priors that a model was trained against: a bundle's are inside of the model, agents answer again."""
    if isinstance(part.model, PriorTimesFeatures):
        return part.model.priors
    assert bundle.game is not None
    names = [str(prior["prior"]) for prior in part.about.get("priors", ())]
    return tuple(OpenPrior(name, bundle.game, None).on(part.streets, examples) for name in names if name[0] == "@")
