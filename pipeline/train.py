"""Decisions in, a bundle out: a model per street, or one for all streets after the flop, and a starting-hand chart.

`train_bundles` reads the rows of one agent, or of several together, from a dataset that `ingest` wrote, and trains
every algorithm asked for on every street asked for. With one algorithm the output folder is the bundle, with several
each has its own in a folder named after it. `train_text` does the same for text rows, which know neither streets nor
legal actions: one model.

Ctrl-C ends training with the best weights so far; what is finished is written. A run that was killed goes on from its
checkpoint, which lies beside the output folder until the run is done.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import dataset
from pipeline.charts import Chart, count_chart
from pipeline.decisions import OBSERVATION, STREETS
from pipeline.errors import PipelineError, nearest
from pipeline.features.patterns import Pattern, find_pattern
from pipeline.features.textrows import TextRows, read_rows
from pipeline.files import sha256
from pipeline.game import Game
from pipeline.models.bundle import Bundle, StreetModel, check_target, load_bundle, save_bundle
from pipeline.models.loglinear import LogLinear
from pipeline.parallel import Workers
from pipeline.policy import find_chart
from pipeline.training.loop import Settings, Step, scores
from pipeline.training.trainers import TRAINERS, WITHOUT_ROWS, Examples, Task, Trained, train

__all__ = ["ALL", "Request", "Result", "data_fingerprint", "score_text", "train_bundles", "train_text"]

ALL = "all"
STRONGEST = 300
SHOWN = 20_000
"""rows whose features may be among the strongest that are shown"""

Watch = Callable[[str, str, Step], None]
"""Called with street, algorithm and what is known after an iteration."""


@dataclass(frozen=True)
class Request:
    """What to train, and how."""

    data: Path
    out: Path
    agents: tuple[str, ...] = ()
    streets: tuple[str, ...] = ()
    """names of streets, or `all` for one model of all streets after the flop; none: each of those its own"""
    algorithms: tuple[str, ...] = ("l-bfgs",)
    pattern: Pattern = field(default_factory=lambda: find_pattern("default"))
    game: str | None = None
    """the game's name, where the data holds several"""
    chart: Path | None = None
    """a chart's file, the name of one that comes with the package, or a bundle with one; none: count it"""
    validation_file: Path | None = None
    """text rows to score on"""
    rho1: float = 0.5
    rho2: float = 1e-4
    threads: int = 2
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Result:
    """One trained model; `path` is its bundle."""

    street: str
    algorithm: str
    agents: tuple[str, ...]
    rows: int
    validation_rows: int
    seconds: float
    path: Path
    trained: Trained

    def to_json(self) -> dict[str, Any]:
        """The object that `train --json` prints."""
        found = self.trained
        return {
            "street": self.street,
            "algorithm": self.algorithm,
            "agents": list(self.agents),
            "rows": self.rows,
            "validation_rows": self.validation_rows,
            "objective": found.objective,
            "active": found.active,
            "error": found.error,
            "log_loss": found.log_loss,
            "iterations": found.iterations,
            "seconds": round(self.seconds, 3),
            "path": str(self.path),
            "best_error": found.best_error,
            "best_log_loss": found.best_log_loss,
            "interrupted": found.interrupted,
        }


def nobody(street: str, algorithm: str, step: Step) -> None:
    """Progress that nobody watches."""


def train_bundles(request: Request, watch: Watch = nobody) -> list[Result]:
    """Train every algorithm on every street; write the bundles. An interrupted result is the last."""
    _check(request)
    manifest = dataset.read_manifest(request.data)
    about = {"data": data_fingerprint(manifest), "options": manifest["options"]}
    preflop = dataset.load(request.data, request.agents or None, [STREETS[0]], "train", game=request.game)
    game, agents = preflop.game, preflop.agents
    chart = _chart(request, preflop)
    del preflop
    parts: dict[str, list[StreetModel]] = {algorithm: [] for algorithm in request.algorithms}
    names: dict[str, dict[str, str]] = {algorithm: {} for algorithm in request.algorithms}
    results: list[Result] = []
    for scope, streets in _scopes(request.streets, game).items():
        task = _task(request, streets, game)
        for result in _train(request, scope, agents, task, watch):
            results.append(result)
            parts[result.algorithm].append(StreetModel(scope, streets, result.trained.model, _about(result, request)))
            names[result.algorithm] |= _names(scope, result.trained, task)
        if results[-1].trained.interrupted:
            break
    for algorithm, found in parts.items():
        charts = [] if chart is None else [StreetModel("chart", (0,), chart, {"algorithm": "chart"})]
        bundle = Bundle(game, tuple(game.labels), agents, (*charts, *found), about)
        save_bundle(_path(request, algorithm), bundle, names[algorithm])
    return results


def train_text(request: Request, watch: Watch = nobody) -> list[Result]:
    """Train every algorithm on text rows; write the bundles."""
    _check(request)
    if request.agents or request.streets:
        raise PipelineError("text rows know neither agents nor streets: leave out --agent and --street")
    rows = read_rows(request.data)
    held = read_rows(request.validation_file, rows.labels) if request.validation_file else None
    task = Task(
        Examples(rows, rows.action),
        None if held is None else Examples(held, held.action),
        request.pattern,
        rows.labels,
        (),
        request.settings,
        request.rho1,
        request.rho2,
        Workers(request.threads),
    )
    results = []
    for result in _train(request, ALL, (), task, watch):
        results.append(result)
        part = StreetModel(ALL, (), result.trained.model, _about(result, request))
        save_bundle(result.path, Bundle(None, rows.labels, (), (part,), {"data": sha256(request.data)}))
    return results


def score_text(data: Path, bundles: Sequence[Path]) -> list[dict[str, Any]]:
    """Error and log-loss of models of text rows on other text rows, as `evaluate --json` prints them."""
    found = []
    for path in bundles:
        bundle = load_bundle(path)
        if bundle.game is not None:
            raise PipelineError(f"{path} was trained on decision rows: it cannot read the text rows of {data}")
        rows = read_rows(data, bundle.labels)
        for part in bundle.parts:
            error, log_loss = scores(part.model.predict(rows), rows.action)
            known = {"model": str(path), "algorithm": part.about["algorithm"], "agent": None, "street": part.name}
            unknown = dict.fromkeys(("floor_error", "floor_log_loss", "kl", "tv"))
            found.append(known | {"rows": len(rows), "error": error, "log_loss": log_loss} | unknown)
    return found


def _check(request: Request) -> None:
    """Refuse what could only fail after hours."""
    for algorithm in request.algorithms:
        if algorithm not in TRAINERS:
            raise PipelineError(f"{algorithm!r} is no algorithm{nearest(algorithm, TRAINERS)}")
        check_target(_path(request, algorithm))


def data_fingerprint(manifest: Mapping[str, Any]) -> str:
    """A hash of what a dataset was made from."""
    kept = json.dumps([manifest["sources"], manifest["options"]], sort_keys=True)
    return hashlib.sha256(kept.encode()).hexdigest()[:32]


def _scopes(names: Sequence[str], game: Game) -> dict[str, tuple[int, ...]]:
    """The streets of each model to train."""
    known = STREETS[: game.rounds]
    for name in names:
        if name not in (*known, ALL):
            raise PipelineError(f"{game.name} has no street {name!r}{nearest(name, (*known, ALL))}")
    later = tuple(range(1, game.rounds))
    if not names and not later:
        names = STREETS[:1]
    return {name: later if name == ALL else (STREETS.index(name),) for name in names or STREETS[1 : game.rounds]}


def _chart(request: Request, preflop: dataset.Decisions) -> Chart | None:
    """The chart asked for, else one counted from the training rows."""
    if request.chart is None:
        return count_chart(preflop.rows, preflop.action, preflop.game.labels) if len(preflop) else None
    if not request.chart.is_dir() and request.chart.suffix != ".zip":
        return find_chart(request.chart)
    found = load_bundle(request.chart).chart
    if not isinstance(found, Chart):
        raise PipelineError(f"{request.chart} has no chart: name a chart's text file or a bundle with one")
    return found


def _task(request: Request, streets: tuple[int, ...], game: Game) -> Task:
    """The decisions of these streets, divided in training and validation rows."""
    asked = (request.data, request.agents or None, [STREETS[street] for street in streets])
    if len(streets) == 1:
        size, pieces = dataset.count(*asked, game=request.game), dataset.pieces(*asked, game=request.game)
        examples, validation = _sides(size, pieces)
    else:  # a hand's decisions after one another
        found = dataset.load(*asked, game=request.game)
        order = np.lexsort((found.k, found.line, found.file, found.agent))
        examples, validation = _sides(len(found), [found], order)
    return Task(
        examples,
        validation,
        request.pattern,
        tuple(game.labels),
        streets,
        request.settings,
        request.rho1,
        request.rho2,
        Workers(request.threads),
    )


def _sides(size: int, pieces: Iterable[dataset.Decisions], order: Any = slice(None)) -> tuple[Examples, Examples]:
    """Training and validation rows of decisions, with a number per hand; validation fills the arrays from behind."""
    rows, taken, hand = np.empty(size, OBSERVATION), np.empty(size, np.uint8), np.empty(size, np.int32)
    low, high, hands = 0, size, 0
    for piece in pieces:
        places = [place[order] for place in (piece.agent, piece.file, piece.line)]
        new = np.append(True, np.any([np.diff(place) != 0 for place in places], axis=0))[: len(piece)]
        number = np.cumsum(new, dtype=np.int32) + np.int32(hands)
        hands += int(new.sum())
        validation = piece.validation[order]
        held = int(validation.sum())
        for kept, part in (
            (~validation, slice(low, low + len(piece) - held)),
            (validation, slice(high - held, high)),
        ):
            rows[part], taken[part], hand[part] = piece.rows[order][kept], piece.action[order][kept], number[kept]
        low, high = low + len(piece) - held, high - held
    return Examples(rows[:low], taken[:low], hand[:low]), Examples(rows[low:], taken[low:], hand[low:])


def _train(request: Request, scope: str, agents: tuple[str, ...], task: Task, watch: Watch) -> Iterator[Result]:
    """Train a task's model by each algorithm, until one is interrupted."""
    sizes = len(task.examples), 0 if task.validation is None else len(task.validation)
    for algorithm in request.algorithms:
        path = _path(request, algorithm)
        checkpoint = path.with_name(f".{path.name}.{scope}.checkpoint")
        task.settings = replace(request.settings, checkpoint=checkpoint)
        task.watch = partial(watch, scope, algorithm)
        start = time.perf_counter()
        if set(request.algorithms) <= WITHOUT_ROWS:
            task.forget_rows(algorithms=request.algorithms)
        trained = train(algorithm, task)
        yield Result(scope, algorithm, agents, *sizes, time.perf_counter() - start, path, trained)
        if trained.interrupted:
            return


def _path(request: Request, algorithm: str) -> Path:
    return request.out / algorithm if len(request.algorithms) > 1 else request.out


def _about(result: Result, request: Request) -> dict[str, Any]:
    """What a manifest keeps of a model's training."""
    trained = result.trained
    return {
        "algorithm": result.algorithm,
        "rows": result.rows,
        "validation_rows": result.validation_rows,
        "objective": trained.objective,
        "error": trained.error,
        "log_loss": trained.log_loss,
        "iterations": trained.iterations,
        "interrupted": trained.interrupted,
        "parameters": {
            "rho1": request.rho1,
            "rho2": request.rho2,
            "seed": request.settings.seed,
            "threads": request.threads,
            "tolerance": request.settings.tolerance,
            "patience": request.settings.patience,
            "least": request.settings.least,
        },
        "pattern": request.pattern.source,
    }


def _names(scope: str, trained: Trained, task: Task) -> dict[str, str]:
    """A text file for people with the strongest features: what they are, and their weights."""
    model, rows = trained.model, task.examples.rows
    if not isinstance(model, LogLinear) or isinstance(rows, TextRows):
        return {}
    rows = rows[:: max(1, len(rows) // SHOWN)]
    lines = ["\t".join(["feature", *task.labels])]
    for feature, row, template in model.strongest(rows, STRONGEST):
        shown = model.features.describe(rows[row : row + 1], len(task.labels) > 3)[template]
        lines.append("\t".join([shown, *(f"{weight:.4f}" for weight in model.weights[feature])]))
    return {f"{scope}.features.txt": "\n".join(lines) + "\n"}
