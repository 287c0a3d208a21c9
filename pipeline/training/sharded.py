"""Max-ent on more rows than are wanted in memory at once: in parts, here or on a cluster, with the same bytes.

The files of a dataset are divided into parts of about `TrainConfig.part_rows` rows, by the manifest alone. Each part is
read, encoded and sorted by itself (`parts`). The features of the whole are numbered by merging the parts' sorted
hashes: those of the first part in its order, then the new ones of the second, and so on; no process has all rows. From
then on a `ShardedProblem` is a `Problem` like any other: its sums come from `gathering` along a fixed tree of parts. A
single part is numbered, summed and scored exactly as a corpus in memory, so that small data has the bytes it always
had.

Stochastic descent passes over each part from a common point; each feature's weights are then averaged over the parts,
by how often each fired it. `PARTWISE` lists the algorithms that can be trained so;
the others need all rows in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import select_rows
from pipeline.features.encoding import fit_values
from pipeline.features.patterns import Pattern
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import discard
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Callbacks
from pipeline.training import parts
from pipeline.training.corpus import Corpus
from pipeline.training.gathering import ClusterParts, Gathering, LocalParts
from pipeline.training.interrupts import Interrupts
from pipeline.training.iterates import Iterate, State
from pipeline.training.loop import Validation
from pipeline.training.objective import Problem, Weights
from pipeline.training.parts import Outline, PartRows, Pass
from pipeline.training.remarks import baseline_log_loss
from pipeline.training.requests import Request
from pipeline.training.stochastic import Lazy, after_pass, first_rate
from pipeline.training.tasks import Examples, Prepared, Task, penalties

PARTWISE = ("l-bfgs", "rprop", "sgd-l1", "memm")
"""algorithms that can be trained in parts"""


def check_for_cluster(request: Request) -> None:
    """Refuse what cannot be trained on a cluster."""
    for name in request.algorithms:
        if name not in PARTWISE:
            raise PipelineError(
                f"{name} needs all rows in one place, so no cluster can train it: leave out --cluster, or name an "
                f"--algorithm that learns in parts, such as l-bfgs (others: {', '.join(PARTWISE[1:])})"
            )
    if request.priors:
        raise PipelineError("a prior is followed with all rows in one place: leave out --prior or --cluster")


def plan_parts(request: Request, streets: Sequence[int], labels: int) -> list[PartRows]:
    """Divide the rows of some streets into parts: whole files of the dataset, in the order of its own parts."""
    assert request.game is not None
    names = [STREETS[street] for street in streets]
    grouped: dict[str, list[tuple[str, int]]] = {}
    for path, rows in select_rows(request.data, request.agents or None, names, game=request.game).by_file().items():
        grouped.setdefault(Path(path).name, []).append((path, rows))  # a part's files have one name on all streets
    grouped_files: list[list[str]] = []
    size = total = 0
    for files in grouped.values():
        if not grouped_files or size >= request.config.part_rows:
            grouped_files.append([])
            size = 0
        grouped_files[-1] += [path for path, _ in files]
        size += sum(rows for _, rows in files)
        total += sum(rows for _, rows in files)
    return [
        PartRows(
            request.data.resolve(),
            tuple(files),
            request.agents,
            tuple(streets),
            request.game,
            request.pattern,
            labels,
            total if len(grouped_files) > 1 else None,
        )
        for files in grouped_files
    ]


@dataclass(frozen=True)
class Street:
    """A street's task and corpora, from which its models are trained."""

    task: Task
    """with a few training rows to describe features by if no algorithm needs more, and then no validation rows"""
    corpora: Any
    """`tasks.Corpora`, or the like in parts"""
    rows: int
    validation_rows: int
    baseline: float | None
    """validation log-loss of counting betting alone"""


@contextmanager
def open_street(
    request: Request,
    streets: tuple[int, ...],
    labels: Sequence[str],
    cluster: Cluster | None,
    callbacks: Callbacks,
    interrupts: Interrupts,
    folder: Path,
) -> Iterator[Street]:
    """Survey the parts of a street; `folder` is for arrays that all workers read, and goes at the end."""
    planned = plan_parts(request, streets, len(labels))
    if not planned:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    workers = Workers(request.config.workers)
    gathering: Gathering = LocalParts(workers) if cluster is None else ClusterParts(cluster)
    pattern = request.pattern.on(streets).of_rows()
    handles = gathering.map(parts.survey_part, [(rows, pattern) for rows in planned], callbacks.stage("reading rows"))
    surveys = gathering.results(handles)
    gathering.release(handles)
    described = concatenate_examples([survey.described for survey in surveys])
    train, validation = (concatenate_examples([survey.counted[side] for survey in surveys]) for side in range(2))
    rows, validation_rows = sum(survey.rows for survey in surveys), sum(survey.validation_rows for survey in surveys)
    if rows == 0:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    task = Task(described, None, request.pattern, tuple(labels), streets, request.config, workers)
    counted = Task(
        train, validation if validation_rows else None, request.pattern, tuple(labels), streets, request.config, workers
    )
    values = np.concatenate([survey.values for survey in surveys])
    discard(folder)
    try:
        corpora = ShardedCorpora(gathering, planned, task, values, validation_rows, callbacks, interrupts, folder)
        yield Street(task, corpora, rows, validation_rows, baseline_log_loss(counted))
    finally:
        discard(folder)


def concatenate_examples(pieces: Sequence[Examples]) -> Examples:
    """Join examples, one after the other."""
    first: Any = pieces[0].rows
    rows: Any
    if isinstance(first, np.ndarray):
        rows = np.concatenate([piece.rows for piece in pieces])
    else:
        rated: list[Any] = [piece.rows for piece in pieces]
        ochs = None if first.ochs is None else np.concatenate([piece.ochs for piece in rated])
        strength = np.concatenate([piece.strength for piece in rated])
        rows = type(first)(np.concatenate([piece.rows for piece in rated]), strength, ochs)
    return Examples(rows, np.concatenate([piece.targets for piece in pieces]))


class ShardedCorpora:
    """The corpora of a street in parts, made when they are first asked for (see `tasks.Corpora`)."""

    prior_predictions = None

    def __init__(
        self,
        gathering: Gathering,
        planned: Sequence[PartRows],
        task: Task,
        values: NDArray[np.int64],
        validation_rows: int,
        callbacks: Callbacks,
        interrupts: Interrupts,
        folder: Path,
    ) -> None:
        self.interrupts = interrupts
        self._gathering, self._planned, self._task, self._values = gathering, planned, task, values
        self._validation_rows, self._stage, self._folder = validation_rows, callbacks.stage, folder
        self._prepared: dict[bool, Prepared] = {}

    def get(self, previous: bool = False) -> Prepared:
        """Return the corpus, with the player's previous action among the features or without."""
        if previous not in self._prepared:
            task, gathering = self._task, self._gathering
            pattern = task.pattern.on(task.streets)
            chosen = pattern.with_previous() if previous else pattern.of_rows()
            progress = self._stage("encoding features")
            features = fit_values(chosen, self._values, task.streets)
            encoded = gathering.map(
                parts.encode_part, [(rows, features, gathering.on_disk) for rows in self._planned], progress
            )
            wanted_path = self._save_wanted(encoded, chosen)
            progress = self._stage("sorting rows")
            pairs = zip(encoded, self._planned, strict=True)
            made = gathering.map(
                parts.sort_part, [(one, rows, wanted_path, gathering.on_disk) for one, rows in pairs], progress
            )
            handles = gathering.map(parts.outline_part, [(part,) for part in made])
            outlines = gathering.results(handles)
            gathering.release([*encoded, *handles])
            keys, counts, template, numbers = number_features(outlines, len(task.labels))
            path = self._save(f"keys-{int(previous)}", keys)
            placed = gathering.map(parts.place_part, [(part, path, gathering.on_disk) for part in made])
            gathering.release(made)
            identity = np.arange(len(keys), dtype=np.int32)
            about = (len(chosen.templates), counts, identity, template)
            whole = ShardedCorpus((), *about, gathering=gathering, placed=placed, outlines=outlines, numbers=numbers)
            validation = ShardedValidation() if self._validation_rows else None
            self._prepared[previous] = ShardedPrepared(features, keys, whole, validation)
        return self._prepared[previous]

    def _save_wanted(self, encoded: Sequence[Any], pattern: Pattern) -> Path | None:
        """Save the hashes of features fired often enough and return the path; None if the pattern has no minimum."""
        least = np.array([template.minimum for template in pattern.templates])
        if (least <= 1).all():
            return None
        handles = self._gathering.map(parts.seen_keys, [(handle,) for handle in encoded])
        keys, seen, template = self._gathering.results(handles[:1])[0]
        for handle in handles[1:]:
            more = self._gathering.results([handle])[0]
            both = [np.concatenate(pair) for pair in zip((keys, seen, template), more, strict=True)]
            order = np.argsort(both[0], kind="stable")
            keys, seen, template = (array[order] for array in both)
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            keys, seen, template = keys[starts], np.add.reduceat(seen, starts), template[starts]
        self._gathering.release(handles)
        return self._save("kept", keys[seen >= least[template]])

    def _save(self, name: str, array: NDArray[Any]) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder.resolve() / f"{name}.npy"
        np.save(path, array)
        return path


def number_features(
    outlines: Sequence[Outline], labels: int
) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.int32], list[NDArray[np.int32]]]:
    """Number the features of all parts; return hashes, label counts and templates, and each part's numbers."""
    sorted_keys, numbers = np.empty(0, np.uint64), np.empty(0, np.int32)
    ordered: list[NDArray[np.uint64]] = []
    count = 0
    for outline in outlines:
        place = np.minimum(np.searchsorted(sorted_keys, outline.keys), max(0, len(sorted_keys) - 1))
        new = outline.keys[sorted_keys[place] != outline.keys] if len(sorted_keys) else outline.keys
        ordered.append(new)
        both = np.concatenate([sorted_keys, new])
        numbers = np.concatenate([numbers, np.arange(count, count + len(new), dtype=np.int32)])
        order = np.argsort(both, kind="stable")
        sorted_keys, numbers = both[order], numbers[order]
        count += len(new)
    counts, template = np.zeros((count, labels)), np.full(count, -1, np.int32)
    by_part = [numbers[np.searchsorted(sorted_keys, outline.keys)] for outline in outlines]
    for outline, number in zip(outlines, by_part, strict=True):
        counts[number] += outline.counts
        template[number] = outline.template
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        raise PipelineError("all rows have the same label: a model needs at least two to tell apart")
    return np.concatenate(ordered), counts, template, by_part


@dataclass(frozen=True)
class ShardedCorpus(Corpus):
    """A corpus whose chunks are in parts elsewhere."""

    gathering: Gathering
    placed: Sequence[Any]
    outlines: Sequence[Outline]
    numbers: Sequence[NDArray[np.int32]]
    """of each part's features in the whole"""


class ShardedPrepared(Prepared):
    """A corpus in parts, with what its feature numbers mean."""

    def problem(self, task: Task) -> Problem:
        rho1, rho2 = penalties(self.features, self.corpus.template, task.config)
        assert isinstance(self.corpus, ShardedCorpus)
        return ShardedProblem(self.corpus, rho1=rho1, rho2=rho2, workers=task.workers)


class ShardedValidation(Validation):
    """Validation rows that lie beside the training rows of their parts."""

    def __init__(self) -> None:
        super().__init__(np.empty((0, 0), np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))

    def score(self, problem: Problem, weights: Weights) -> tuple[float, float]:
        assert isinstance(problem, ShardedProblem)
        part_scores = problem.corpus.gathering.scores(problem.corpus.placed, weights)
        rows, wrong, loss = (sum(column) for column in zip(*part_scores, strict=True))
        return wrong / rows, loss / rows


class ShardedProblem(Problem):
    """The objective of rows in parts."""

    corpus: ShardedCorpus

    def smooth(self, weights: Weights) -> tuple[float, Weights]:
        """Negative log-likelihood plus the L2 penalty, and its gradient."""
        gathering, placed = self.corpus.gathering, self.corpus.placed
        loss, expected = gathering.sums(placed, weights, self._is_plain(weights))
        return self._collected(loss, expected[None], weights)

    def averaged_passes(self, state: State, seed: int) -> Iterator[Iterate]:
        """Yield iterates of stochastic descent: passes over each part from a common point, and their average.

        A feature's weights count as much from a part as the part fired it. One part alone is plain descent.
        """
        outlines = self.corpus.outlines
        rows = sum(outline.rows for outline in outlines)
        first_step = first_rate(sum(outline.fired for outline in outlines), rows)
        is_single = len(outlines) == 1
        weights = state.get("point", np.zeros(self.shape)).copy()
        average = state.get("average", np.zeros(self.shape)).copy()
        applied = state.get("applied", np.zeros(self.shape)).copy()
        budgets = state.get("budgets", np.zeros(self.shape[0])).copy()
        passes = int(state["passes"][0]) if "passes" in state else 0
        budget = float(state["budget"][0]) if "budget" in state else 0.0
        numbers = self.corpus.numbers
        while True:
            lazy = Lazy(self.rho1, self.rho2, weights, applied, budgets)
            arguments = Pass(lazy, budget, first_step, passes, rows, seed, is_single)
            results = self.corpus.gathering.passes(self.corpus.placed, arguments)
            if is_single:
                weights[numbers[0]], applied[numbers[0]], budget = results[0]
            else:
                weights, applied = np.zeros(self.shape), np.zeros(self.shape)
                for outline, number, (part_weights, part_applied, _) in zip(outlines, numbers, results, strict=True):
                    share = outline.counts.sum(axis=1, keepdims=True)
                    weights[number] += share * part_weights
                    applied[number] += share * part_applied
                total = self.corpus.counts.sum(axis=1, keepdims=True)
                weights /= total
                applied /= total
                budget = max(result[2] for result in results)
            budgets[:] = budget
            passes += 1
            next_state = {"average": average, "point": weights, "applied": applied, "budgets": budgets}
            yield after_pass(self, next_state | {"passes": np.array([passes]), "budget": np.array([budget])})
