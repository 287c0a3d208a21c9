"""A counter to an agent that cannot be played here: slumbot19s, from its logs alone.

Needs the logs of `bench_data` (`slumbot19.tar.bz2`). Two counters are learned from matches of even number: at the
default risk, and the best response. They are judged twice on those of odd number: at the table against a copy that was
trained on them, beside @teacher over the same deals, and from the logged hands themselves, in the place of slumbot19
(`pipeline.arena.offpolicy`; its strategy is stood for by a copy from the even matches).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._figures import Figure
from benchmarks._stages import kept_figures
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.offpolicy import estimate
from pipeline.dataset.decisions import STREETS
from pipeline.evaluation.winnings import dataset_records
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.opponents.counters import Search, against_player, find_counter
from pipeline.poker.game import builtin
from pipeline.runtime.files import replacing
from pipeline.solving.bucket_counter import BucketSetting
from pipeline.solving.counter import Setting
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

GAME = builtin("holdem.limit.2p.reverse_blinds")
ARCHIVE = "slumbot19.tar.bz2"
OPPONENT, PARTNER = "slumbot19s", "slumbot19"
BOLD = 25
"""times as many deals for the best response: against an agent near the equilibrium little tells actions apart"""
WIDTH = 6.0
"""half of an interval that is narrow enough at the table"""
ESTIMATED = 20_000
"""logged hands of the estimate"""

SAID = {"counter": "counter at the default risk", "best": "best response to the copy"}
MORE = "at least 30"

Play = Callable[[Path, list[Agent], float], tuple[float, float]]
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


def _counters(rows: Path, folder: Path, search: Search) -> dict[str, Path]:
    """The counters from one half of the matches, by name; kept."""
    made = {"counter": ("dbr", 1), "best": ("best", BOLD)}
    setting: Setting | None = None
    for name, (method, times) in made.items():
        if not (folder / name / "manifest.json").is_file():
            setting = setting or against_player(rows, OPPONENT, search, folder=folder / "work")
            assert isinstance(setting, BucketSetting)
            longer = replace(setting, deals=times * search.deals)
            find_counter(longer, replace(search, method=method), folder / name, facts={"against": OPPONENT})
    return {name: folder / name for name in made}


def slumbot_figures(data: Path, folder: Path, search: Search, play: Play) -> list[Figure]:
    """What counters from one half of the matches win on the other half."""
    rows = _halves(data / ARCHIVE, folder)
    agents = {name: resolve(str(path), GAME) for name, path in _counters(rows["even"], folder, search).items()}
    agents["teacher"] = resolve("@teacher", GAME)
    judge = _copy(rows["odd"], OPPONENT, folder / "judge")
    won = {name: play(folder / f"{name}.json", [agent, judge], WIDTH) for name, agent in agents.items()}
    base, figures = won["teacher"], []
    for name, told in SAID.items():
        mean, half = won[name]
        width = (half**2 + base[1] ** 2) ** 0.5
        said = f"{OPPONENT}'s copy from other matches: {told}"
        figures.append(Figure(said, mean, f"mbb/h ± {half:.1f}", "@teacher", base[0]))
        figures.append(Figure("the same, more than @teacher", mean - base[0], f"mbb/h ± {width:.1f}", target=MORE))
    stands = _copy(rows["even"], PARTNER, folder / "partner")
    records, names = dataset_records(rows["odd"], GAME)
    some: Any = records.take(slice(0, ESTIMATED))
    for name, agent in (*agents.items(), ("partner", stands)):
        told = SAID.get(name, {"teacher": "@teacher", "partner": f"{PARTNER}'s copy"}.get(name, name))
        measure = partial(_estimated, some, names.index(PARTNER), told, agent, stands)
        figures += kept_figures(folder / f"estimate-{name}.json", measure)
    return figures


def _estimated(records: Any, number: int, told: str, agent: Agent, stands: Agent) -> list[Figure]:
    """What an agent would have won in the logged hands."""
    found = estimate(records, number, agent, stands)
    text = f"mbb/h ± {found.normalised_ci95:.1f}, {found.effective:,.0f} of {found.hands:,} hands count"
    return [
        Figure(f"from held-out hands of {OPPONENT}: {told}", found.normalised, text),
        Figure(f"the same, mean weight of {told}", found.weight, "", target="1 if covered"),
    ]
