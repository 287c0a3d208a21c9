"""How close copies come to their sources, as `train` makes them without options.

- slumbot19 (needs `bench_data`): copies from 648,000, 54,000, 12,000 and 3,000 hands, scored on matches that were held
  out; from few hands three times, each time of other matches. Beside each stands max-ent, one of its parts, alone.
- The logs that come with the package.
- The teacher: how far copies from 4,000 to a million hands are from it, and why (`_gap`); what they win at the table
  and what players who know them win (`_copies`).
- Two solved sources on which nothing was chosen (`_sources`), likewise.
- Leduc: counting copies of an equilibrium (`_leduc`).

Every stage is kept (`_stages`), so a run that was stopped goes on. The small form (`--quick`) shows in some minutes
that everything works; its figures are of small copies and short matches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._copies import GAME, logged_rows, responses, table_figures
from benchmarks._figures import Figure, bench_data
from benchmarks._gap import gap_figures
from benchmarks._leduc import leduc_figures
from benchmarks._sources import SOURCES, solved_source
from benchmarks._stages import kept_bundle, kept_figures, kept_rows, scratch_folder
from pipeline.agents.names import resolve
from pipeline.agents.teacher import Teacher
from pipeline.dataset.decisions import STREETS
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

ARCHIVE, AGENT = "slumbot19.tar.bz2", "slumbot19"
SAMPLE = Path("data/sample")


@dataclass(frozen=True)
class Part:
    """Matches of slumbot19 that a copy learns from and is scored on, and what is aimed at on flop, turn and river."""

    hands: str
    learned: tuple[Sequence[str], ...]
    """by repetition: what the names of the logs end with"""
    held: Sequence[str]
    targets: tuple[float, float, float] | None


def _names(*matches: int, seatings: str = "01") -> list[str]:
    return [f".{match}.{seating}.log" for match in matches for seating in seatings]


LARGE = Part("648,000", (_names(*(m for m in range(120) if m % 10)),), _names(*range(0, 120, 10)), (0.275, 0.275, 0.19))
MIDDLE = Part("54,000", (_names(*range(11, 20)),), _names(*range(0, 60, 10)), (0.355, 0.345, 0.245))
SMALL = Part("12,000", (_names(1, 2), _names(33, 34), _names(77, 78)), _names(*range(0, 60, 10)), (0.41, 0.4, 0.3))
SINGLE = Part("3,000", tuple(_names(m, seatings="0") for m in (1, 33, 77)), _names(*range(0, 60, 10)), None)


@dataclass(frozen=True)
class Scale:
    """How much is learned from and played."""

    parts: tuple[Part, ...] = (LARGE, MIDDLE, SMALL, SINGLE)
    taught: tuple[int, ...] = (1_000_000, 100_000, 20_000, 4_000)
    judged: int = 60_000
    played: int = 400_000
    """hands against the source; half as many against each of the others"""
    response: int = 8_000_000
    """deals on which a best response is trained"""
    solved: int = 8_000_000
    """deals that a source is solved with"""
    source: int = 330_000
    """hands that a source is copied from"""
    logs: int = 5
    """of Leduc"""


QUICK = Scale((SINGLE,), (4_000,), 4_000, 8_000, 100_000, 100_000, 4_000, 1)


# slumbot19


def _slumbot(data: Path, folder: Path, part: Part) -> list[Figure]:
    """Scores of copies from a part of the matches."""
    scored: dict[str, list[dict[str, Any]]] = {}
    for at, learned in enumerate(part.learned):
        place = folder / f"{part.hands.replace(',', '')}-{at}"
        names = (*learned, *part.held)
        rows = kept_rows(
            place / "rows",
            partial(_unpacked, data / ARCHIVE, place / "logs", names, part.held),
            agents=[AGENT],
            validation="held.*",
        )
        for found in _timed_training(rows, place / "copy"):
            scored.setdefault(found["street"], []).append(found)
    figures = []
    for at, street in enumerate(STREETS[1:]):
        losses = [found["log_loss"] for found in scored[street]]
        alone = float(np.mean([found["max_ent"] for found in scored[street]]))
        title = f"{AGENT} from {part.hands} hands, {street}"
        unit = f"nats, {min(losses):.3f} to {max(losses):.3f} of {len(losses)}" if len(losses) > 1 else "nats"
        loss, target = float(np.mean(losses)), f"{part.targets[at]}" if part.targets else ""
        figures.append(Figure(f"{title}: log-loss", loss, unit, "max-ent alone", alone, loss / alone, target))
        errors = [100 * found["error"] for found in scored[street]]
        figures.append(Figure(f"{title}: error", float(np.mean(errors)), "%"))
    longest = max(found["seconds_in_all"] for found in scored["flop"])
    most = max(found["peak_gb"] for found in scored["flop"])
    figures.append(Figure(f"{AGENT} from {part.hands} hands: training, all streets", longest, "s", target="180"))
    figures.append(Figure(f"{AGENT} from {part.hands} hands: memory", most, "GB", target="4"))
    return figures


def _unpacked(archive: Path, folder: Path, names: Sequence[str], held: Sequence[str]) -> list[Path]:
    """The logs of some matches; `held.` is put before the names of those that are held out."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    with tarfile.open(archive) as logs:
        for member in logs:
            name = Path(member.name).name
            if not name.endswith(tuple(names)):
                continue
            file = folder / (f"held.{name}" if name.endswith(tuple(held)) else name)
            content = logs.extractfile(member)
            assert content is not None
            file.write_bytes(content.read())
            found.append(file)
    return found


def _timed_training(rows: Path, out: Path) -> list[dict[str, Any]]:
    """What `train` says of each street, with its time and memory in all: run as a user does, kept beside the bundle."""
    file = out.with_suffix(".json")
    if not file.is_file():
        command = [sys.executable, "-m", "pipeline", "train", "--data", str(rows), "--agent", AGENT, "--out", str(out)]
        began = time.perf_counter()
        with subprocess.Popen([*command, "--quiet", "--json"], stdout=subprocess.PIPE) as training:
            assert training.stdout is not None
            results = json.loads(training.stdout.read())
            _, status, used = os.wait4(training.pid, 0)
            training.returncode = os.waitstatus_to_exitcode(status)
        seconds, peak = time.perf_counter() - began, 1024 * used.ru_maxrss / 1e9
        for found in results:
            found |= {"seconds_in_all": seconds, "peak_gb": peak, "max_ent": found["parts_log_loss"]["l-bfgs"]}
        file.write_text(json.dumps(results))
    return list(json.loads(file.read_text()))


def _sample(folder: Path) -> list[Figure]:
    """A copy from the logs that come with the package."""
    rows = kept_rows(folder / "rows", lambda: [SAMPLE], agents=["teacher"])
    figures = []
    for found, target in zip(train_bundles(Request(rows, folder / "copy")), (0.386, 0.407, 0.325), strict=True):
        loss, alone = found.trained.log_loss or 0.0, dict(found.trained.parts)["l-bfgs"]
        title = f"bundled logs, {found.street}: log-loss"
        figures.append(Figure(title, loss, "nats", "max-ent alone", alone, loss / alone, f"{target}"))
    return figures


# Solved sources


def _teacher(folder: Path, scale: Scale) -> list[Figure]:
    """Copies of the teacher from more and from fewer hands."""
    teacher = resolve("@teacher", GAME)
    assert isinstance(teacher, Teacher)
    figures: list[Figure] = []
    for hands in scale.taught:
        place, title = folder / str(hands), f"teacher's copy from {hands:,} hands"
        rows = logged_rows(teacher, hands, scale.judged, place)
        copy = kept_bundle(Request(rows, place / "copy", streets=STREETS))
        figures += kept_figures(place / "gap.json", partial(gap_figures, rows, copy, teacher, title))
        if hands < 100_000 and hands != scale.taught[0]:
            continue
        targets = ("lower end above -5" if hands >= 1_000_000 else "lower end above -20", "within 15")
        measure = partial(_at_the_table, copy, teacher, title, scale, targets)
        figures += kept_figures(place / "table.json", measure)
    place = folder / str(scale.taught[0])
    before = kept_bundle(Request(place / "rows", place / "max-ent", streets=STREETS, algorithms=("l-bfgs",)))
    return figures + kept_figures(place / "responses.json", partial(_responses, place / "copy", before, teacher, scale))


def _at_the_table(copy: Path, source: Teacher, title: str, scale: Scale, targets: tuple[str, str]) -> list[Figure]:
    others = ("@call", "@random", "@raise", "@equity")
    return table_figures(resolve(str(copy), GAME), source, title, scale.played, others, targets)


def _responses(copy: Path, before: Path, teacher: Teacher, scale: Scale) -> list[Figure]:
    """What players who know the teacher, its copy, and the copy by max-ent alone win."""
    asked = {
        "the teacher": None,
        "its copy (target: 80)": resolve(str(copy), GAME).probabilities,
        "its copy by max-ent alone": resolve(str(before), GAME).probabilities,
    }
    return responses(asked, teacher, scale.response)


def _sources(folder: Path, scale: Scale) -> list[Figure]:
    """Copies of solved sources on which nothing was chosen."""
    figures: list[Figure] = []
    for one in SOURCES:
        place, title = folder / one.name, f"copy of {one.name} from {scale.source:,} hands"
        source = solved_source(one, scale.solved, folder)
        rows = logged_rows(source, scale.source, scale.judged, place)
        copy = kept_bundle(Request(rows, place / "copy", streets=STREETS))
        figures += kept_figures(place / "gap.json", partial(gap_figures, rows, copy, source, title))
        measure = partial(_at_the_table, copy, source, title, scale, ("lower end above -15", "within 30"))
        figures += kept_figures(place / "table.json", measure)
    return figures


def run(quick: bool = False) -> list[Figure]:
    """Measure copies; slumbot19 only where the corpus is."""
    scale = QUICK if quick else Scale()
    folder = scratch_folder("fidelity-quick" if quick else "fidelity")
    figures: list[Figure] = []
    data = bench_data()
    if data is not None and (data / ARCHIVE).is_file():
        for part in scale.parts:
            file = folder / "slumbot19" / f"{part.hands.replace(',', '')}.json"
            figures += kept_figures(file, partial(_slumbot, data, folder / "slumbot19", part))
    else:
        print(f"skipped: no {ARCHIVE} in the folder of corpora", file=sys.stderr)
    if SAMPLE.is_dir():
        figures += kept_figures(folder / "sample.json", partial(_sample, folder / "sample"))
    else:
        print(f"skipped: no {SAMPLE} here", file=sys.stderr)
    figures += _teacher(folder / "teacher", scale)
    figures += _sources(folder / "sources", scale)
    return figures + kept_figures(folder / "leduc.json", partial(leduc_figures, folder / "leduc", scale.logs))
