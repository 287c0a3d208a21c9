"""Training: objectives on the synthetic corpus, speed beside CRFsuite, memory, errors of the thesis's pattern, play.

The corpora (`--data`) are `synthetic.*.txt.xz` (text rows with labels of a hidden rule) and
`slumbot19.tar.bz2` (logs; validation is every tenth match). Wapiti's figures on these very rows are in `WAPITI`.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks._figures import Figure, Settings, seconds
from benchmarks._play import live_decision_us
from pipeline.agents.names import resolve
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.models.softmax import probabilities
from pipeline.poker.game import builtin
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import no_progress
from pipeline.training.config import TrainConfig
from pipeline.training.corpus import build_corpus
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles, train_text
from pipeline.training.streets import street_task
from pipeline.training.tasks import encode
from pipeline.training.trainers import corpora_for

TARGET = {"l-bfgs": 107_900, "rprop": 107_900, "bcd": 108_700, "sgd-l1": 108_700}
WAPITI = {
    "flop": {"l-bfgs": 0.1889, "rprop": 0.1886, "sgd-l1": 0.1886},
    "turn": {"l-bfgs": 0.2323, "rprop": 0.2347, "sgd-l1": 0.2301},
    "river": {"l-bfgs": 0.2145, "rprop": 0.2109, "sgd-l1": 0.2007},
}
"""validation error of the thesis's pattern after 50 iterations"""
THESIS = "thesis"
HOLDEM = builtin("holdem.limit.2p.reverse_blinds")


def run(settings: Settings) -> list[Figure]:
    """Measure all figures; those on real rows only where the corpora are."""
    archive = settings.corpus("slumbot19.tar.bz2")
    if archive is None:
        return []
    ensure_tables(no_progress)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = folder / "rows"
        ingest(
            [archive],
            rows,
            options(agents=["slumbot19"], validation=["*0.[01].log"], strength=False),
        )
        return [
            *_synthetic(archive.parent, folder),
            *_speed(rows, folder),
            *_errors(rows, folder),
            *_size(),
            *_play(folder),
        ]


def _synthetic(data: Path, folder: Path) -> list[Figure]:
    """Measure objective and error of each optimiser on the synthetic corpus, by default settings."""
    request = Request(
        data / "synthetic.train.txt.xz",
        folder / "synthetic",
        algorithms=tuple(TARGET),
        pattern=find_pattern(THESIS),
        config=TrainConfig(min_weight=0),
        validation_file=data / "synthetic.devel.txt.xz",
    )
    figures = []
    for result in train_text(request):
        trained, title = result.trained, f"synthetic, {result.algorithm}"
        assert trained.objective is not None
        assert trained.error is not None
        figures += [
            Figure(
                f"{title}: objective after {trained.iterations}",
                trained.objective,
                "",
                target=f"<= {TARGET[result.algorithm]:,}",
            ),
            Figure(f"{title}: error at the end", 100 * trained.error, "%", target="<= 28.25"),
        ]
    return figures


def _speed(rows: Path, folder: Path) -> list[Figure]:
    """Iterations, time to the first one and memory on the flop rows, in a process of its own; CRFsuite in another."""
    own = json.loads(_alone("_flop", str(rows)))
    peer = json.loads(_alone("_crfsuite", str(rows)))
    return [
        Figure("flop rows: rprop iteration", own["iteration_s"], "s", "crfsuite lbfgs iteration", peer["iteration_s"],
               peer["iteration_s"] / own["iteration_s"], ">= 10x"),
        Figure("flop rows: stored rows to first iteration", own["first_s"], "s", target="<= 2.5 s"),
        Figure("flop rows: memory growth by the ids' size", own["growth"] / own["ids"], "x", target="<= 6"),
        Figure("twice the rows: gradient", own["twice"], "x time of 1x", target="linear"),
        Figure("four times the rows: gradient", own["fourfold"], "x time of 1x", target="linear"),
        Figure("prediction from feature ids", own["predicted"] / 1e6, "M rows/s", target=">= 1"),
    ]  # fmt: skip


def _alone(function: str, *arguments: str) -> str:
    """Return what a function of this module prints in a new process."""
    code = f"import sys; from benchmarks import train; train.{function}(*sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def _status(field: str) -> float:
    """Return a field of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * float(line.split()[1]) for line in lines if line.startswith(field))


def _task(rows: Path) -> Any:
    request = Request(rows, rows, ("slumbot19",), pattern=find_pattern(THESIS))
    return street_task(request, (1,), HOLDEM)


def _flop(rows: str) -> None:
    """Measure training on the flop rows; prints JSON."""
    for _ in range(2):  # once to have the kernels in memory, which is part of importing
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        before, begun = _status("VmRSS"), time.perf_counter()
        task = _task(Path(rows))
        size = len(task.examples) * 8 * 4
        corpora = corpora_for(["rprop"], task)
        task = task.sampled()
        prepared = corpora.get()
        steps = OPTIMIZERS["rprop"](prepared.problem(task), {}, 0)
        next(steps)
        first = time.perf_counter() - begun
        times = [seconds(lambda steps=steps: next(steps)) for _ in range(30)]  # type: ignore[misc]
        growth = _status("VmHWM") - before
        del task, steps
    ids, legal, mass = prepared.corpus.rows()
    scaled = {}
    for step in (4, 2, 1):
        workers, part = Workers(2), slice(None, None, step)
        corpus = build_corpus(
            ids[part], mass[part], features=len(prepared.keys), labels=3, legal=legal[part].copy(), workers=workers
        )
        problem = Problem(corpus, workers=workers)
        weights = np.zeros(problem.shape)
        scaled[step] = median(seconds(lambda p=problem, w=weights: p.smooth(w)) for _ in range(15))  # type: ignore[misc]
    weights32 = np.zeros(problem.shape, np.float32)
    spent = median(seconds(lambda: probabilities(ids, legal, weights32)) for _ in range(5))
    measured = {
        "iteration_s": median(times),
        "first_s": first,
        "growth": growth,
        "ids": size,
        "twice": scaled[2] / scaled[4],
        "fourfold": scaled[1] / scaled[4],
        "predicted": len(ids) / spent,
    }
    print(json.dumps(measured))


def _crfsuite(rows: str) -> None:
    """Return the median iteration of CRFsuite's lbfgs on the same rows; prints JSON."""
    from pycrfsuite import Trainer

    times: list[float] = []

    class Watched(Trainer):  # type: ignore[misc]
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            times.append(float(info["time"]))

    task = _task(Path(rows))
    encoded = encode(task, task.pattern.on(task.streets).of_rows())
    trainer = Watched(
        algorithm="lbfgs", params={"c1": 0.5, "c2": 5e-5, "max_iterations": 15, "feature.possible_states": True}
    )
    for words, label in zip(encoded.ids.astype("U").tolist(), encoded.targets.astype("U").tolist(), strict=True):
        trainer.append([words], [label])
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        trainer.train(str(Path(folder) / "model"))
    print(json.dumps({"iteration_s": median(times[1:])}))


def _errors(rows: Path, folder: Path) -> list[Figure]:
    """Validation error of the thesis's pattern by street and algorithm, beside Wapiti's."""
    request = Request(
        rows,
        folder / "thesis",
        ("slumbot19",),
        algorithms=("l-bfgs", "rprop", "sgd-l1"),
        pattern=find_pattern(THESIS),
        config=TrainConfig(max_iterations=50, patience=0, min_weight=0),
    )
    figures = []
    for result in train_bundles(request):
        assert result.trained.error is not None
        theirs = WAPITI[result.street][result.algorithm]
        figures.append(
            Figure(
                f"thesis pattern, {result.street}, {result.algorithm}: error",
                100 * result.trained.error,
                "%",
                "Wapiti",
                100 * theirs,
                result.trained.error / theirs,
                f"<= {100 * theirs + 0.3:.2f}",
            )
        )
    return figures


def _size() -> list[Figure]:
    """Peak memory of ten million rows by eight templates, in a process of its own."""
    return [Figure("10 M rows x 8 templates: peak memory", float(_alone("_large")) / 1e9, "GB", target="<= 8")]


def _large() -> None:
    """Build a corpus of ten million rows and take three steps; prints the peak in bytes."""
    luck = np.random.default_rng(0)
    sizes = (4, 100, 91, 6000, 300_000, 300, 24_000, 290)
    starts = np.cumsum([0, *sizes])
    ids = np.stack(
        [
            luck.integers(0, size, 10_000_000, dtype=np.int32) + np.int32(start)
            for size, start in zip(sizes, starts, strict=False)
        ],
        axis=1,
    )
    taken = luck.integers(0, 3, len(ids)).astype(np.uint8)
    workers = Workers(2)
    corpus = build_corpus(ids, taken, features=int(starts[-1]), labels=3, workers=workers)
    del ids
    steps = OPTIMIZERS["rprop"](Problem(corpus, workers=workers), {}, 0)
    for _ in range(3):
        next(steps)
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _play(folder: Path) -> list[Figure]:
    """Measure a live decision, strength included, and opening a bundle."""
    strong = folder / "strong"
    request = Request(
        folder / "rows",
        strong,
        ("slumbot19",),
        config=TrainConfig(max_iterations=15, patience=0),
        pattern=find_pattern("default"),
    )
    train_bundles(request)
    figures = []
    for pattern, bundle in (("thesis", folder / "thesis" / "rprop"), ("default", strong)):
        opened = median(seconds(lambda bundle=bundle: load_bundle(bundle)) for _ in range(9))  # type: ignore[misc]
        size = sum(file.stat().st_size for file in bundle.iterdir()) / 1e6
        figures += [
            Figure(f"a bundle opens, {pattern} pattern, {size:.0f} MB", 1e3 * opened, "ms", target="<= 50 ms"),
            Figure(
                f"a live decision, {pattern} pattern",
                live_decision_us(resolve(str(bundle), HOLDEM), ("rc/", "rc/cc/", "rc/cc/cc/")),
                "us",
                target="<= 300 us",
            ),
        ]
    return figures
