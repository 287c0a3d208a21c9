"""Scale-out: a cluster of two single-thread workers on this machine beside the run here with two threads.

Logs are made here by self-play of @random, which is quick and whose betting differs more than that of real players; the
rows are those of `ingest` without strengths. Times leave out the start of the workers, which a real cluster has behind
it. At the end the measured rates are put together to a plan for 620 million hands on 64 cores. With `--quick`
everything is smaller, to try it out: figures of such a run mean nothing.

Logs, datasets (5 GB in all) and the figures of each stage are stored (`--stages`), so that a run that was stopped goes
on from there. A run that comes to its end forgets
the figures; the data stays, for the next one.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks._figures import Figure, Settings
from pipeline.agents.names import resolve
from pipeline.arena.match import ClusterTable, play_match
from pipeline.dataset.load import select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import builtin
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.runtime.dask_cluster import Cluster, connect
from pipeline.runtime.files import discard, replacing
from pipeline.runtime.progress import Callbacks, no_progress
from pipeline.training.config import TrainConfig
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles
from pipeline.training.sharded import PackedWeights

GAME = builtin("holdem.limit.2p.reverse_blinds")
QUICK = 0.02
"""share of everything that --quick measures"""
ROWS = 10_000_000
"""flop rows that an iteration is measured on; twice as many for the memory"""
MATCH = 100_000
"""hands of a match, two logs of some 4 MB"""
INGESTED = 3_000_000
"""hands that ingest is measured on: a dozen batches"""
PLAYED = 1_000_000
"""hands that the arena is measured on"""
FEATURES = 1_000_000
"""whose weights are sent"""
ITERATIONS = 8
HANDS, CORES, EVALUATIONS = 620_000_000, 64, 150
"""the plan: hands of the archive, cores, and evaluations of the objective that a model takes"""


def run(settings: Settings) -> list[Figure]:
    """Measure all figures."""
    ensure_tables(no_progress)
    folder, scale = settings.stage("cluster"), QUICK if settings.quick else 1.0
    rows, twice = _rows(folder, scale, 1), _rows(folder, scale, 2)
    stages: dict[str, Callable[[], Stage]] = {
        "ingest": lambda: _on_two(lambda cluster: _ingest(folder, cluster)),
        "arena": lambda: _on_two(lambda cluster: _arena(cluster, scale)),
        "iteration": lambda: _on_two(lambda cluster: _iteration(rows, folder, cluster)),
        "wire": lambda: _on_two(lambda cluster: _wire(cluster, scale)),
        "memory": lambda: Stage(_memory(twice, folder)),
    }
    found = {name: _kept(folder / f"figures-{name}.json", stage) for name, stage in stages.items()}
    figures = [figure for stage in found.values() for figure in stage.figures]
    figures += _plan(twice, found["ingest"].rate, found["iteration"])
    for name in stages:
        (folder / f"figures-{name}.json").unlink()
    return figures


class Stage(NamedTuple):
    """What was measured together."""

    figures: list[Figure]
    rate: float = 0
    other_rate: float = 0
    """per second on the cluster, for the plan"""


def _kept(file: Path, measure: Callable[[], Stage]) -> Stage:
    """Return a stage's figures, from its file where a run that was stopped has come so far."""
    if not file.is_file():
        made = measure()
        with replacing(file) as beside:
            beside.write_text(json.dumps(made), encoding="utf-8")
    figures, *rates = json.loads(file.read_text(encoding="utf-8"))
    return Stage([Figure(*figure) for figure in figures], *rates)


def _on_two(measure: Callable[[Cluster], Stage]) -> Stage:
    with connect("local:2,memory=3GB") as cluster:
        assert cluster is not None
        return measure(cluster)


def _rows(folder: Path, scale: float, times: int) -> Path:
    """Return a dataset of about `times` ROWS flop rows; logs and rows that are there already are not made again."""
    agents = [resolve("@random", GAME)] * 2
    wanted = round(ROWS * scale)
    matches = times * (max(2, round(wanted / 0.9 / MATCH)) if scale >= 0.1 else 2)
    hands = MATCH if scale >= 0.1 else max(200, round(wanted / 2))
    logs: list[Path] = []
    for seed in range(matches):
        made = sorted((folder / f"m{seed}").glob("*.log"))
        if not made:
            with replacing(folder / f"m{seed}") as beside:
                play_match(agents, GAME, hands=hands, seed=seed, log=beside / f"m{seed}")
            made = sorted((folder / f"m{seed}").glob("*.log"))
        logs += made
    out = folder / f"rows-{times}"
    ingest(logs, out, options(strength=False))
    return out


def _beside(name: str, unit: str, here: Callable[[], float], there: Callable[[], float], target: str) -> list[Figure]:
    """Measure the cluster beside the run here: medians of five alternating runs, after one to warm up."""
    here(), there()
    pairs = [(here(), there()) for _ in range(5)]
    own, other = median(one for one, _ in pairs), median(two for _, two in pairs)
    return [Figure(name, other, unit, "here with 2 threads", own, other / own, target)]


def _ingest(folder: Path, cluster: Cluster) -> Stage:
    """Measure ingest of some of the logs; the hands per second of the cluster too."""
    logs = sorted(folder.glob("m*/*.log"))[: max(2, 2 * INGESTED // MATCH)]
    hands = 0

    def timed(where: Cluster | None) -> float:
        nonlocal hands
        out = folder / "ingested"
        discard(out)
        began = time.perf_counter()
        hands = ingest(logs, out, options(strength=False), workers=2, cluster=where).hands
        return time.perf_counter() - began

    figures = _beside("ingest, 2 workers", "s", lambda: timed(None), lambda: timed(cluster), "<= 1.25x")
    discard(folder / "ingested")
    return Stage(figures, hands / figures[0].value)


def _arena(cluster: Cluster, scale: float) -> Stage:
    """Measure a match of two agents that look at their cards."""
    texts = ["@equity", "@equity"]
    agents = [resolve(text, GAME) for text in texts]
    count = max(4000, round(PLAYED * scale))

    def timed(where: Cluster | None) -> float:
        return play_match(agents, GAME, hands=count, workers=ClusterTable.of(where, texts) or 2).seconds

    name = "match @equity @equity, 2 workers"
    found = _beside(name, "s", lambda: timed(None), lambda: timed(cluster), "<= 1.25x")
    return Stage(found, count / found[0].value)


class Training(NamedTuple):
    """How long a training took, in seconds."""

    rows: int
    iteration: float
    """the median"""
    rest: float
    """reading, encoding, sorting, and scores of validation rows: all but the iterations"""


def _trained(rows: Path, out: Path, cluster: Cluster | None, iterations: int) -> Training:
    """Measure a training of l-bfgs on the flop rows."""
    seconds: list[float] = []
    config = TrainConfig(max_iterations=iterations, patience=0, tolerance=0, workers=2, checkpoint_seconds=1e9)
    request = Request(rows, out, (), ("flop",), algorithms=("l-bfgs",), pattern=find_pattern("thesis"), config=config)
    began = time.perf_counter()
    results = train_bundles(
        request, Callbacks(lambda street, name, step: seconds.append(step.seconds)), cluster=cluster
    )
    whole = time.perf_counter() - began
    shutil.rmtree(out)
    return Training(results[0].rows, median(seconds[1:]), whole - sum(seconds))


def _iteration(rows: Path, folder: Path, cluster: Cluster) -> Stage:
    """Measure an iteration of l-bfgs with the thesis's pattern and what goes before; the cluster's rows per second."""
    own = _trained(rows, folder / "here", None, ITERATIONS)
    other = _trained(rows, folder / "there", cluster, ITERATIONS)
    name, here = f"thesis pattern, {own.rows:,} rows", "here with 2 threads"
    ratios = other.iteration / own.iteration, other.rest / own.rest
    figures = [
        Figure(f"l-bfgs iteration, {name}", other.iteration, "s", here, own.iteration, ratios[0], "<= 2x"),
        Figure(f"rest of a training, {name}", other.rest, "s", here, own.rest, ratios[1]),
    ]
    return Stage(figures, own.rows / other.iteration, own.rows / other.rest)


def _wire(cluster: Cluster, scale: float) -> Stage:
    """Measure an evaluation where features are many and rows few: weights to each worker, as many sums back."""
    weights = np.random.default_rng(1).random((round(FEATURES * scale), 3))

    def timed() -> float:
        began = time.perf_counter()
        sent = cluster.broadcast(PackedWeights.of(weights))
        tasks = [cluster.submit(PackedWeights.unpack, sent, workers=[worker]) for worker in cluster.workers()]
        cluster.results(tasks)
        cluster.release([*tasks, sent])
        return time.perf_counter() - began

    timed()
    seconds = median(timed() for _ in range(5))
    name = f"weights of {len(weights):,} features to 2 workers and sums back"
    return Stage([Figure(name, seconds, "s")], 4 * weights.nbytes / seconds)


def _peak() -> int:
    """Bytes of memory that this process has had at the most; what the process had that started it is left out."""
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def _memory(rows: Path, folder: Path) -> list[Figure]:
    """Measure the largest memory of a worker while a model of twice the rows is trained, with a cap of 3 GB each."""
    figures = []
    for workers in (2, 1):
        with connect(f"local:{workers},memory=3GB") as cluster:
            assert cluster is not None
            count = _trained(rows, folder / "there", cluster, 3).rows
            peak = max(cluster.client.run(_peak).values()) / 1e9
        name = f"training on {count:,} rows, {workers} worker{'s' if workers > 1 else ''}: the largest"
        figures.append(Figure(name, peak, "GB", target="< 3"))
    return figures


def _plan(rows: Path, ingested: float, trained: Stage) -> list[Figure]:
    """620 million hands on 64 cores at the measured rates of two, as if cores were all that it takes."""
    manifest: Any = read_manifest(rows)
    hands, share = manifest.hands, CORES / 2
    stored = sum(file.bytes for file in manifest.files) / hands
    read = sum(source.bytes for line in manifest.details() for source in line.sources) / hands
    flop = HANDS * select_rows(rows, None, ["flop"]).size / hands
    plan = f"plan, {HANDS / 1e6:.0f} million hands on {CORES} cores:"
    return [
        Figure(f"{plan} logs", HANDS * read / 1e9, "GB"),
        Figure(f"{plan} dataset without strengths", HANDS * stored / 1e9, "GB"),
        Figure(f"{plan} flop rows", flop / 1e6, "million"),
        Figure(f"{plan} ingest", HANDS / (ingested * share) / 60, "min"),
        Figure(f"{plan} disk meanwhile", (read + stored) * ingested * share / 1e9, "GB/s"),
        Figure(f"{plan} {EVALUATIONS} evaluations", EVALUATIONS * flop / (trained.rate * share) / 60, "min"),
        Figure(f"{plan} rest of training", flop / (trained.other_rate * share) / 60, "min"),
    ]
