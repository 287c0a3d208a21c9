"""Copies from disjoint halves of the training deals, for a bound on the hands to tell where nobody knows the source.

In go a bundle, the dataset it was trained on and decisions that were held out; out comes `hands_to_tell_at_most` (see
`hands_to_tell`, which derives it). Each of the bundle's models is trained again by its own algorithm and settings, once
on the deals whose hash is below the middle and once on the others; its chart is counted again likewise. A deal's twin
has the same hash, so no deal is in both halves.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.evaluation.evaluation import Evaluation, OpenedModel
from pipeline.evaluation.hands_to_tell import dealt_hands, hands_to_tell_at_most
from pipeline.evaluation.samples import DecisionSample
from pipeline.models.bundle import Bundle, StreetModel
from pipeline.models.charts import Chart, count_chart
from pipeline.models.measures import played
from pipeline.runtime.array_types import Bools, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Progress, no_progress
from pipeline.training.config import TrainConfig
from pipeline.training.rows import read_examples
from pipeline.training.run import pattern_of_model
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

HALVES = 2
MIDDLE = np.uint64(1 << 63)
"""hashes of deals (of players, where players are held out) below this are of the first half"""


def half_mixes(
    bundle: Bundle,
    data: Path,
    sample: DecisionSample,
    *,
    name: str,
    threads: int = 2,
    progress: Progress = no_progress,
) -> tuple[Floats, Floats]:
    """Train a bundle again on each half of its deals; return what both would play (decisions, labels).

    Parameters: `data` the dataset that it was trained on, `sample` the decisions to answer, `name` of the bundle.
    """
    streets = {street for part in bundle.parts for street in part.streets}
    if not set(range(sample.game.rounds)) <= streets:
        raise PipelineError(f"{name} has no model for some street: its hands to tell have no bound")
    mixes = [np.zeros((len(sample), len(sample.labels))) for _ in range(HALVES)]
    for number, part in enumerate(bundle.parts):
        if part.about.get("priors"):
            raise PipelineError(f"{name} was trained against priors, which know all deals: name another model first")
        rows = np.flatnonzero(np.isin(sample.rows["street"], part.streets))
        examples, pattern = _read_part(bundle, part, data, sample)
        for half, is_first in enumerate((True, False)):
            progress(number * HALVES + half, len(bundle.parts) * HALVES)
            assert examples.group is not None
            chosen = (examples.group < MIDDLE) == is_first
            if not chosen.any():
                raise PipelineError(f"{data} has too few deals of {sample.agent} for two halves: ingest more logs")
            model = _train_half(part, examples, chosen, pattern, sample, threads)
            mixes[half][rows] = model.predict(sample.rows[rows])
    progress(1, 1)
    first, other = (played(mix, sample.rows["legal"]) for mix in mixes)
    return first, other


def _read_part(bundle: Bundle, part: StreetModel, data: Path, sample: DecisionSample) -> tuple[Examples, Any]:
    """Read the training rows of one of a bundle's models, and the pattern of its features (None: a chart)."""
    from pipeline.features.patterns import find_pattern

    pattern = None if isinstance(part.model, Chart) else pattern_of_model(part)
    reading = find_pattern("betting") if pattern is None else pattern
    examples, _ = read_examples(data, bundle.agents, part.streets, sample.game.name, pattern=reading)
    return examples, pattern


def _train_half(
    part: StreetModel, examples: Examples, chosen: Bools, pattern: Any, sample: DecisionSample, threads: int
) -> Any:
    """Train one of a bundle's models again on some of its rows."""
    half = examples.subset(chosen)
    if pattern is None:
        assert isinstance(half.rows, np.ndarray)
        return count_chart(half.rows, half.targets, sample.game.labels)
    algorithm = str(part.about["algorithm"])
    config = replace(TrainConfig.from_json(part.about.get("parameters", {}), algorithm), workers=threads)
    task = Task(half, None, pattern, tuple(sample.labels), part.streets, config, Workers(threads))
    return train_model(algorithm, task).model


def with_bound(evaluation: Evaluation, *, seed: int = 0, progress: Progress = no_progress) -> Evaluation:
    """Return an evaluation whose first bundle has the bound of its halves on its last row."""
    evaluation.check_held_out("the bound of --halves")
    for opened in evaluation.models:
        for number, scored in enumerate(evaluation.scored):
            sample = scored[0].sample
            if opened.bundle is None or sample.agent not in opened.bundle.agents:
                continue
            bound = bound_of(opened, evaluation.data, sample, seed=seed, progress=progress)
            rows = [
                replace(model, scores=[*model.scores[:-1], replace(model.scores[-1], tell_at_most=bound)])
                if model.candidate.name == opened.candidate.name
                else model
                for model in scored
            ]
            return replace(evaluation, scored=[*evaluation.scored[:number], rows, *evaluation.scored[number + 1 :]])
    raise PipelineError("a bound on the hands to tell needs a trained bundle, and decisions of the agent it imitates")


def bound_of(
    opened: OpenedModel, data: Path, sample: DecisionSample, *, seed: int = 0, progress: Progress = no_progress
) -> float | None:
    """Return the bound of a bundle's halves on held-out decisions of the agent it imitates."""
    assert opened.bundle is not None
    name = opened.candidate.name
    first, other = half_mixes(opened.bundle, data, sample, name=name, progress=progress)
    return hands_to_tell_at_most(first, other, sample.dealt or dealt_hands(data, sample), seed=seed)
