"""A counter to an agent that cannot be played here: slumbot19s, from its logs alone.

Needs the logs of `bench_data` (`slumbot19.tar.bz2`). The counter is learned from matches of even number. It is judged
twice on those of odd number: at the table against a copy that was trained on them, beside @teacher over the same deals,
and from the logged hands themselves, in the place of slumbot19 (`pipeline.arena.offpolicy`; its strategy is stood for
by a copy from the even matches).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.agents import Agent, resolve
from pipeline.arena.offpolicy import estimate
from pipeline.bench import Figure
from pipeline.counters import Search, against_player, find_counter
from pipeline.decisions import STREETS
from pipeline.evaluate.winnings import dataset_records
from pipeline.files import replacing
from pipeline.game import builtin
from pipeline.ingest import ingest
from pipeline.models.bundle import load_bundle
from pipeline.train import Request, train_bundles

__all__ = ["ARCHIVE", "slumbot_figures"]

GAME = builtin("holdem.limit.2p.reverse_blinds")
ARCHIVE = "slumbot19.tar.bz2"
OPPONENT, PARTNER = "slumbot19s", "slumbot19"
ESTIMATED = 20_000
"""logged hands of the estimate"""

Play = Callable[[Path, list[Agent]], tuple[float, float]]
"""plays two agents and keeps the result in a file: mbb/h and half its interval"""


def _halves(archive: Path, folder: Path) -> dict[str, Path]:
    """The logs of matches of even and odd number as datasets."""
    found = {}
    for remainder, half in enumerate(("even", "odd")):
        found[half] = folder / half / "rows"
        if (found[half] / "manifest.json").is_file():
            continue
        with replacing(folder / half / "logs") as beside:
            beside.mkdir()
            with tarfile.open(archive) as logs:
                for member in logs:
                    name = Path(member.name).name
                    number = re.fullmatch(r".*\.(\d+)\.\d+\.log", name)
                    content = logs.extractfile(member) if number else None
                    if number and content and int(number[1]) % 2 == remainder:
                        (beside / name).write_bytes(content.read())
        ingest([folder / half / "logs"], found[half])
    return found


def _copy(rows: Path, agent: str, folder: Path) -> Agent:
    """A copy of a player; kept."""
    if not (folder / "manifest.json").is_file() or load_bundle(folder).missing:
        train_bundles(Request(rows, folder, (agent,), streets=STREETS))
    return resolve(str(folder), GAME)


def slumbot_figures(data: Path, folder: Path, search: Search, play: Play) -> list[Figure]:
    """What a counter from one half of the matches wins on the other half."""
    rows = _halves(data / ARCHIVE, folder)
    out = folder / "counter"
    if not (out / "manifest.json").is_file():
        setting = against_player(rows["even"], OPPONENT, search, folder=folder / "work")
        find_counter(setting, search, out, facts={"against": OPPONENT})
    counter, teacher = resolve(str(out), GAME), resolve("@teacher", GAME)
    judge = _copy(rows["odd"], OPPONENT, folder / "judge")
    won = {name: play(folder / f"{name}.json", [agent, judge]) for name, agent in _both(counter, teacher)}
    more = won["counter"][0] - won["teacher"][0]
    width = (won["counter"][1] ** 2 + won["teacher"][1] ** 2) ** 0.5
    name = f"{OPPONENT}'s copy from other matches: counter"
    figures = [
        Figure(name, won["counter"][0], f"mbb/h ± {won['counter'][1]:.1f}", "@teacher", won["teacher"][0]),
        Figure("the same, more than @teacher", more, f"mbb/h ± {width:.1f}", target="at least 30"),
    ]
    stands = _copy(rows["even"], PARTNER, folder / "partner")
    records, names = dataset_records(rows["odd"], GAME)
    some: Any = records.take(slice(0, ESTIMATED))
    for said, agent in (*_both(counter, teacher), ("slumbot19's copy", stands)):
        found = estimate(some, names.index(PARTNER), agent, stands)
        text = f"mbb/h ± {found.normalised_ci95:.1f}, {found.effective:,.0f} of {found.hands:,} hands count"
        figures.append(Figure(f"from held-out hands of {OPPONENT}: {said}", found.normalised, text))
        figures.append(Figure(f"the same, mean weight of {said}", found.weight, "", target="1 if covered"))
    return figures


def _both(counter: Agent, teacher: Agent) -> tuple[tuple[str, Agent], tuple[str, Agent]]:
    return ("counter", counter), ("teacher", teacher)
