"""How close an imitator comes to its source: held-out decisions, clones of the teacher at the table, clones in Leduc.

- slumbot19 (needs `bench_data`): the default pattern trained on 108 matches, scored on the 12 held out; Wapiti with the
  thesis's pattern beside. Then what each family of features brings, models of other kinds, and their page, `PAGE`.
- The teacher cloned from its own logs: see `_clones`.
- Leduc: frequencies counted in logs of an equilibrium, and what a best response wins against them, over several logs
  (one alone is luck). Self-play alone never visits what a deviating opponent reaches: it stands here as a warning.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import dataset
from pipeline.agents import resolve
from pipeline.arena import play_match
from pipeline.bench import Figure, _clones, bench_data
from pipeline.cards import NO_CARD, RANKS
from pipeline.decisions import STREETS, word_text
from pipeline.errors import PipelineError
from pipeline.evaluate.evaluation import Scope, evaluate_models
from pipeline.evaluate.findings import findings
from pipeline.features.patterns import find_pattern, parse_pattern
from pipeline.files import replacing
from pipeline.game import builtin
from pipeline.ingest import ingest, options
from pipeline.report.build import build
from pipeline.solve.cfr import ExactSolver
from pipeline.solve.small import SmallGame, Spot
from pipeline.train import Request, train_bundles

__all__ = ["run"]

Floats = npt.NDArray[np.float64]

LEDUC = builtin("leduc.limit.2p")
TARGET = {"preflop": (0.213, None), "flop": (0.34, 15.0), "turn": (0.31, 13.5), "river": (0.21, 8.8)}
WAPITI = {"preflop": (None, None), "flop": (0.4584, 18.86), "turn": (0.5296, 23.01), "river": (0.5056, 20.07)}
FAMILIES = {
    "quantiles of the strength at the river": (r"river_quantiles\(", ("flop", "turn")),
    "octiles of the strength at the river": (r"river_octiles\(", ("flop", "turn")),
    "strength expected on the turn": (r"ehs\(turn", ("river",)),
    "sharing between lines of betting": ("^word|^pot", ("flop", "turn", "river")),
    "all strength": ("bins=|river_", ("flop", "turn", "river")),
}
"""what a line of the default pattern holds that belongs to a family, and where it matters"""
KINDS = ("boosting", "net")
PAGE = Path("out/fidelity.html")
BACK_OFF = 5
"""how many decisions the street's betting alone, with the same cards, is worth beside the whole betting, in Leduc"""
LOGS = 5
"""logs of Leduc that are learned from, each by itself"""


def _held_out(data: Path, folder: Path) -> list[Figure]:
    """Scores of the default pattern on the held-out matches, of parts of it, and of other kinds of models."""
    rows = folder / "rows"
    ingest([data / "slumbot19.tar.bz2"], rows, options(agents=["slumbot19"], validation=["*0.[01].log"]))
    command = [
        sys.executable,
        "-m",
        "pipeline",
        "train",
        "--data",
        str(rows),
        "--agent",
        "slumbot19",
        "--quiet",
        "--json",
    ]
    command += ["--out", str(folder / "max-ent"), *(word for street in STREETS for word in ("--street", street))]
    began = time.perf_counter()
    results = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    seconds = time.perf_counter() - began
    figures = []
    whole = {}
    for found in results:
        street, loss, error = found["street"], found["log_loss"], 100 * found["error"]
        target, wapiti = TARGET[street], WAPITI[street]
        whole[street] = loss
        figures.append(_figure(f"slumbot19 {street} log-loss", loss, "nats", wapiti[0], target[0]))
        figures.append(_figure(f"slumbot19 {street} error", error, "%", wapiti[1], target[1]))
    figures.append(Figure("slumbot19 training, all streets", seconds, "s", target="180"))
    peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    figures.append(Figure("slumbot19 training, memory", peak / 1e9, "GB", target="4"))
    figures += _ablation(rows, folder, whole)
    figures += _kinds(rows, folder, whole)
    truth = data / "slumbot19.validation.probs.parquet"
    models = [str(folder / name) for name in ("max-ent", *KINDS)]
    scored = evaluate_models(rows, models, Scope(probabilities=[truth] if truth.is_file() else []))
    page = build(findings(scored, title="slumbot19 and its imitators"))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    with replacing(PAGE) as beside:
        beside.write_text(page, encoding="utf-8")
    return figures


def _ablation(rows: Path, folder: Path, whole: Mapping[str, float]) -> list[Figure]:
    """Log-loss without each family of features."""
    figures = []
    source = find_pattern("default").source
    for family, (text, streets) in FAMILIES.items():
        found = re.compile(text)
        lines = source.splitlines()
        left = [line for line in lines if line.startswith("#") or not found.search(line)]
        if len(left) == len(lines):
            raise PipelineError(f"no line of the default pattern belongs to the family {family}")
        request = Request(
            rows, folder / "less", streets=streets, pattern=parse_pattern("\n".join(left)), config=_clones.DEFAULTS
        )
        for result in train_bundles(request):
            loss = result.trained.log_loss or 0.0
            name = f"slumbot19 {result.street} log-loss without {family}"
            figures.append(Figure(name, loss, "nats", "with", whole[result.street], loss / whole[result.street]))
    return figures


def _kinds(rows: Path, folder: Path, whole: Mapping[str, float]) -> list[Figure]:
    """Log-loss and error of models of other kinds."""
    figures = []
    for kind in KINDS:
        for result in train_bundles(Request(rows, folder / kind, algorithms=(kind,))):
            loss, error = result.trained.log_loss or 0.0, 100 * (result.trained.error or 0.0)
            name = f"slumbot19 {result.street} {kind}"
            figures.append(
                Figure(f"{name} log-loss", loss, "nats", "max-ent", whole[result.street], loss / whole[result.street])
            )
            figures.append(Figure(f"{name} error", error, "%"))
    return figures


def _figure(name: str, value: float, unit: str, wapiti: float | None, target: float | None) -> Figure:
    ratio = None if wapiti is None else value / wapiti
    return Figure(
        name, value, unit, "" if wapiti is None else "Wapiti", wapiti, ratio, "" if target is None else f"{target}"
    )


# Leduc


def _counted(rows: npt.NDArray[Any], action: npt.NDArray[Any]) -> Floats:
    """How often each action was taken at each decision of Leduc, in the solver's order; rare ones lean on like ones."""
    small = SmallGame(LEDUC)
    out = np.zeros((len(small.tree.states) * small.infos, 3))
    board = np.where(rows["board"][:, 0] == NO_CARD, 13, rows["board"][:, 0] >> 2)
    keys = np.column_stack([rows["betting_codes"][:, :2], rows["street"], rows["hole"][:, 0] >> 2, board])
    spots, inverse = np.unique(keys, axis=0, return_inverse=True)
    counts = np.zeros((len(spots), 3))
    np.add.at(counts, (inverse.ravel(), action), 1)
    alike = np.column_stack([np.where(spots[:, 2] == 0, spots[:, 0], spots[:, 1]), spots[:, 2:]])
    groups, member = np.unique(alike, axis=0, return_inverse=True)
    together = np.zeros((len(groups), 3))
    np.add.at(together, member.ravel(), counts)
    counts += BACK_OFF * (together / together.sum(axis=1, keepdims=True))[member.ravel()]
    for (first, second, street, card, open_card), count in zip(spots.tolist(), counts, strict=True):
        betting = "/".join("" if not word else word_text(word) for word in (first, second)[: street + 1])
        out[small.row(Spot(betting, RANKS[card], RANKS[open_card] if street else ""))] = count
    return out


def _leduc_clone(folder: Path, opponents: Sequence[str], hands: int, seed: int) -> float:
    """What a best response wins against frequencies counted in the equilibrium's logs, in milli-antes per hand."""
    teacher = resolve("@teacher", LEDUC)
    logs: list[Path] = []
    names: set[str] = set()
    for at, other in enumerate(opponents):
        agents = [teacher, resolve(other, LEDUC)]
        log = folder / "logs" / str(at)
        match = play_match(agents, LEDUC, hands=hands // len(opponents), seed=10 * seed + at, log=log)
        logs += match.logs
        names |= set(match.names) if other == "@teacher" else {match.names[0]}
    ingest(logs, folder / "rows", options(agents=sorted(names)))
    found = dataset.load(folder / "rows")
    return 1000 * ExactSolver(LEDUC).exploitability(_counted(found.rows, found.action))


def _leduc(folder: Path) -> list[Figure]:
    figures: list[Figure] = []
    both, alone = ("@teacher", "@random"), ("@teacher",)
    for name, opponents, hands, target in (
        ("half against @random, 100,000 hands", both, 100_000, "60"),
        ("half against @random, 400,000 hands", both, 400_000, "25"),
        ("self-play only, 100,000 hands", alone, 100_000, ""),
    ):
        lost = [_leduc_clone(folder / f"{len(figures)}-{seed}", opponents, hands, seed) for seed in range(LOGS)]
        unit = f"milli-antes, {min(lost):.0f} to {max(lost):.0f} in {LOGS} logs"
        figures.append(Figure(f"Leduc clone, {name}: exploitability", float(np.mean(lost)), unit, target=target))
    return figures


def run() -> list[Figure]:
    """Measure clones; slumbot19 only where the corpus is."""
    data = bench_data()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = _leduc(folder / "leduc")
        figures += _clones.run(folder / "teacher")
        if data is not None and (data / "slumbot19.tar.bz2").is_file():
            figures += _held_out(data, folder / "slumbot19")
    return figures
