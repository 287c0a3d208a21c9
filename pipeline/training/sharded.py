"""Max-ent on more rows than are wanted in memory at once: in parts, here or on a cluster, with the same bytes.

The files of a dataset are divided into parts of about `TrainConfig.part_rows` rows, by the manifest alone. Each part is
read, encoded and sorted by itself (`parts`). The features of the whole are numbered by merging the parts' sorted
hashes: those of the first part in its order, then the new ones of the second, and so on; no one ever has all rows. From
then on a `ShardedProblem` is a `Problem` like any other: its sums come from `gathering` along a fixed tree of parts. A
single part is numbered, summed and scored exactly as a corpus in memory, so that small data has the bytes it always
had.

Stochastic descent passes over each part from a common point; each feature's weights are then averaged over the parts,
by how often each fired it. Algorithms that need all rows in one place (`IN_PARTS` lists those that do not) are not for
here.
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
from pipeline.dataset.load import wanted_files
from pipeline.features.encoding import fit_values
from pipeline.features.patterns import Pattern
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import discard
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import Callbacks
from pipeline.training import parts
from pipeline.training.corpus import Corpus
from pipeline.training.gathering import Gathering, Here, There
from pipeline.training.interrupts import Interrupts
from pipeline.training.iterates import Iterate, State
from pipeline.training.loop import Validation
from pipeline.training.objective import Problem, Weights
from pipeline.training.parts import Outline, PartRows, Pass
from pipeline.training.remarks import counting
from pipeline.training.requests import Request
from pipeline.training.stochastic import Lazy, after_pass, first_rate
from pipeline.training.tasks import Examples, Prepared, Task, penalties

IN_PARTS = ("l-bfgs", "rprop", "sgd-l1", "memm")
"""algorithms that can be trained in parts"""


def check_for_cluster(request: Request) -> None:
    """Refuse what cannot be trained on a cluster."""
    for name in request.algorithms:
        if name not in IN_PARTS:
            raise PipelineError(
                f"{name} needs all rows in one place, so no cluster can train it: leave out --cluster, or name an "
                f"--algorithm that learns in parts, such as l-bfgs (others: {', '.join(IN_PARTS[1:])})"
            )
    if request.priors:
        raise PipelineError("a prior is followed with all rows in one place: leave out --prior or --cluster")


def plan_parts(request: Request, streets: Sequence[int], labels: int) -> list[PartRows]:
    """The parts of the rows of some streets: whole files of the dataset, in the order of its own parts."""
    assert request.game is not None
    names = [STREETS[street] for street in streets]
    grouped: dict[str, list[tuple[str, int]]] = {}
    for path, rows in wanted_files(request.data, request.agents or None, names, game=request.game):
        grouped.setdefault(Path(path).name, []).append((path, rows))  # a part's files have one name on all streets
    found: list[list[str]] = []
    size = total = 0
    for files in grouped.values():
        if not found or size >= request.config.part_rows:
            found.append([])
            size = 0
        found[-1] += [path for path, _ in files]
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
            total if len(found) > 1 else None,
        )
        for files in found
    ]


@dataclass(frozen=True)
class Street:
    """What the models of a street are trained from."""

    task: Task
    """with a few training rows to show features by where nobody needs more, and then no validation rows"""
    corpora: Any
    """`tasks.Corpora`, or the like in parts"""
    rows: int
    held: int
    """validation rows"""
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
    gathering: Gathering = Here(workers) if cluster is None else There(cluster)
    pattern = request.pattern.on(streets).of_rows()
    asked = gathering.each(parts.survey, [(rows, pattern) for rows in planned], callbacks.stage("reading rows"))
    surveys = gathering.get(asked)
    gathering.let_go(asked)
    shown = joined([one.shown for one in surveys])
    train, held = (joined([one.counted[side] for one in surveys]) for side in range(2))
    rows, held_rows = sum(one.rows for one in surveys), sum(one.held for one in surveys)
    if rows == 0:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    task = Task(shown, None, request.pattern, tuple(labels), streets, request.config, workers)
    counted = Task(train, held if held_rows else None, request.pattern, tuple(labels), streets, request.config, workers)
    values = np.concatenate([one.values for one in surveys])
    discard(folder)
    try:
        corpora = ShardedCorpora(gathering, planned, task, values, held_rows, callbacks, interrupts, folder)
        yield Street(task, corpora, rows, held_rows, counting(counted))
    finally:
        discard(folder)


def joined(found: Sequence[Examples]) -> Examples:
    """Examples one after the other."""
    first: Any = found[0].rows
    rows: Any
    if isinstance(first, np.ndarray):
        rows = np.concatenate([one.rows for one in found])
    else:
        every: list[Any] = [one.rows for one in found]
        ochs = None if first.ochs is None else np.concatenate([one.ochs for one in every])
        strength = np.concatenate([one.strength for one in every])
        rows = type(first)(np.concatenate([one.rows for one in every]), strength, ochs)
    return Examples(rows, np.concatenate([one.targets for one in found]))


class ShardedCorpora:
    """The corpora of a street in parts, made when they are first asked for (see `tasks.Corpora`)."""

    against = None

    def __init__(
        self,
        gathering: Gathering,
        planned: Sequence[PartRows],
        task: Task,
        values: NDArray[np.int64],
        held: int,
        callbacks: Callbacks,
        interrupts: Interrupts,
        folder: Path,
    ) -> None:
        self.interrupts = interrupts
        self._gathering, self._planned, self._task, self._values = gathering, planned, task, values
        self._held, self._stage, self._folder = held, callbacks.stage, folder
        self._found: dict[bool, Prepared] = {}

    def get(self, previous: bool = False) -> Prepared:
        """The corpus, with the player's previous action among the features or without."""
        if previous not in self._found:
            task, there = self._task, self._gathering
            pattern = task.pattern.on(task.streets)
            chosen = pattern.with_previous() if previous else pattern.of_rows()
            told = self._stage("encoding features")
            features = fit_values(chosen, self._values, task.streets)
            encoded = there.each(parts.encode, [(rows, features, there.spill) for rows in self._planned], told)
            kept = self._kept(encoded, chosen)
            told = self._stage("sorting rows")
            pairs = zip(encoded, self._planned, strict=True)
            made = there.each(parts.sort, [(one, rows, kept, there.spill) for one, rows in pairs], told)
            asked = there.each(parts.outline, [(part,) for part in made])
            outlines = there.get(asked)
            there.let_go([*encoded, *asked])
            keys, counts, template, numbers = number_features(outlines, len(task.labels))
            path = self._save(f"keys-{int(previous)}", keys)
            placed = there.each(parts.place, [(part, path, there.spill) for part in made])
            there.let_go(made)
            same = np.arange(len(keys), dtype=np.int32)
            about = (len(chosen.templates), counts, same, template)
            whole = ShardedCorpus((), *about, gathering=there, placed=placed, outlines=outlines, numbers=numbers)
            validation = ShardedValidation() if self._held else None
            self._found[previous] = ShardedPrepared(features, keys, whole, validation)
        return self._found[previous]

    def _kept(self, encoded: Sequence[Any], pattern: Pattern) -> Path | None:
        """Where the hashes are of features that are fired often enough; None where every one is."""
        least = np.array([template.minimum for template in pattern.templates])
        if (least <= 1).all():
            return None
        asked = self._gathering.each(parts.seen_keys, [(one,) for one in encoded])
        keys, seen, template = self._gathering.get(asked[:1])[0]
        for one in asked[1:]:
            more = self._gathering.get([one])[0]
            both = [np.concatenate(pair) for pair in zip((keys, seen, template), more, strict=True)]
            order = np.argsort(both[0], kind="stable")
            keys, seen, template = (array[order] for array in both)
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            keys, seen, template = keys[starts], np.add.reduceat(seen, starts), template[starts]
        self._gathering.let_go(asked)
        return self._save("kept", keys[seen >= least[template]])

    def _save(self, name: str, array: NDArray[Any]) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder.resolve() / f"{name}.npy"
        np.save(path, array)
        return path


def number_features(
    outlines: Sequence[Outline], labels: int
) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.int32], list[NDArray[np.int32]]]:
    """By the features' numbers: hashes, label counts and templates; and the numbers in the order of each part."""
    known, numbers = np.empty(0, np.uint64), np.empty(0, np.int32)
    ordered: list[NDArray[np.uint64]] = []
    count = 0
    for one in outlines:
        at = np.minimum(np.searchsorted(known, one.keys), max(0, len(known) - 1))
        new = one.keys[known[at] != one.keys] if len(known) else one.keys
        ordered.append(new)
        both = np.concatenate([known, new])
        numbers = np.concatenate([numbers, np.arange(count, count + len(new), dtype=np.int32)])
        order = np.argsort(both, kind="stable")
        known, numbers = both[order], numbers[order]
        count += len(new)
    counts, template = np.zeros((count, labels)), np.full(count, -1, np.int32)
    by_part = [numbers[np.searchsorted(known, one.keys)] for one in outlines]
    for one, number in zip(outlines, by_part, strict=True):
        counts[number] += one.counts
        template[number] = one.template
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
        found = problem.corpus.gathering.scores(problem.corpus.placed, weights)
        rows, wrong, loss = (sum(column) for column in zip(*found, strict=True))
        return wrong / rows, loss / rows


class ShardedProblem(Problem):
    """The objective of rows in parts."""

    corpus: ShardedCorpus

    def smooth(self, weights: Weights) -> tuple[float, Weights]:
        """Negative log-likelihood plus the L2 penalty, and its gradient."""
        there, placed = self.corpus.gathering, self.corpus.placed
        loss, expected = there.sums(placed, weights, self._is_plain(weights))
        return self._collected(loss, expected[None], weights)

    def averaged_passes(self, state: State, seed: int) -> Iterator[Iterate]:
        """Stochastic descent: a pass over each part from a common point, then the average of what they found.

        A feature's weights count as much from a part as the part fired it. One part alone is plain descent.
        """
        outlines = self.corpus.outlines
        rows = sum(one.rows for one in outlines)
        first = first_rate(sum(one.fired for one in outlines), rows)
        alone = len(outlines) == 1
        weights = state.get("point", np.zeros(self.shape)).copy()
        average = state.get("average", np.zeros(self.shape)).copy()
        applied = state.get("applied", np.zeros(self.shape)).copy()
        budgets = state.get("budgets", np.zeros(self.shape[0])).copy()
        done = int(state["passes"][0]) if "passes" in state else 0
        budget = float(state["budget"][0]) if "budget" in state else 0.0
        numbers = self.corpus.numbers
        while True:
            lazy = Lazy(self.rho1, self.rho2, weights, applied, budgets)
            given = Pass(lazy, budget, first, done, rows, seed, alone)
            found = self.corpus.gathering.passes(self.corpus.placed, given)
            if alone:
                weights[numbers[0]], applied[numbers[0]], budget = found[0]
            else:
                weights, applied = np.zeros(self.shape), np.zeros(self.shape)
                for one, number, (mine, taken, _) in zip(outlines, numbers, found, strict=True):
                    share = one.counts.sum(axis=1, keepdims=True)
                    weights[number] += share * mine
                    applied[number] += share * taken
                total = self.corpus.counts.sum(axis=1, keepdims=True)
                weights /= total
                applied /= total
                budget = max(one[2] for one in found)
            budgets[:] = budget
            done += 1
            kept = {"average": average, "point": weights, "applied": applied, "budgets": budgets}
            yield after_pass(self, kept | {"passes": np.array([done]), "budget": np.array([budget])})
