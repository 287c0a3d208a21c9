"""Counter-strategies: what they win from whom they were made against, and what they risk.

In Leduc everything is exact. In limit hold'em six opponents play logs of 100,000 and 3,000 hands, half against
themselves and half against others; counters are learned from these, and play the opponents themselves in duplicate
matches with the luck taken out, until the 95 % interval is within 15 mbb/h. Beside them play @teacher and the best
response that knows the opponent's strategy. The ceiling is about the most that any strategy over the teacher's buckets,
even one that knows the opponent's strategy, wins at the default risk (`BucketSetting.ceiling`). Own exploitability is
that over the same buckets, a lower bound, by the same number of deals for @teacher and the counters. Last comes an
agent of which there are only logs (`_slumbot`).

Every stage is kept in a folder (`PIPELINE_BENCH_SCRATCH`, else one under the temporary directory), so that a run that
was stopped goes on from there. `PIPELINE_BENCH_AGENTS` names other opponents than all, with a space between them;
`PIPELINE_BENCH_DEALS` the deals that each answer is trained on.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._figures import Figure, bench_data
from benchmarks._slumbot import ARCHIVE, slumbot_figures
from benchmarks._stages import scratch_folder
from benchmarks._weak import leduc_figures
from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import half_width, play_match
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.opponents.counters import Search, against_agent, against_player, find_counter
from pipeline.poker.game import builtin
from pipeline.runtime.files import replacing
from pipeline.solving.bucket_counter import BucketSetting
from pipeline.solving.counter import FIRST, Setting
from pipeline.solving.strategy import strategy_facts

GAME = builtin("holdem.limit.2p.reverse_blinds")
OPPONENTS = ("@bearl", "@equity", "@calibrated:70,70", "@calibrated:20,80", "@chump:rock", "@chump:maniac")
LOG_PARTNERS = ("@teacher", "@call", "@random")
"""who else plays in the logs"""
LONG, SHORT = 100_000, 3_000
WIDTH = 15.0
AT_ONCE, MOST = 40_000, 400_000
"""hands of a match, until the interval is narrow enough or so many were played"""


def _play(file: Path, agents: list[Agent], width: float = WIDTH) -> tuple[float, float]:
    """What the first agent wins, and half its interval, `width` or less if enough hands are allowed; kept in a file."""
    if not file.is_file():
        samples: list[Any] = []
        while not samples or (half_width(np.concatenate(samples)) > width and len(samples) * AT_ONCE < MOST):
            match = play_match(agents, GAME, hands=AT_ONCE, seed=len(samples), adjusted=True)
            samples.append(match.best_samples_mbb[:, 0])
        every = np.concatenate(samples)
        with replacing(file) as beside:
            beside.write_text(json.dumps([float(every.mean()), half_width(every)]))
    mean, half = json.loads(file.read_text())
    return float(mean), float(half)


def _rows(text: str, hands: int, folder: Path) -> Path:
    """A dataset of an opponent's decisions in so many hands, half of them against itself."""
    rows = folder / f"rows-{hands}"
    if not (rows / "manifest.json").is_file():
        logs: list[Path] = []
        shares = {text: hands // 2} | {partner: hands // 2 // len(LOG_PARTNERS) for partner in LOG_PARTNERS}
        for seed, (partner, count) in enumerate(shares.items()):
            players = [resolve(text, GAME), resolve(partner, GAME)]
            log = folder / f"logs-{hands}" / plain_name(partner)
            logs += play_match(players, GAME, hands=count, seed=1_000 + seed, log=log).logs
        ingest(logs, rows, options(agents=[plain_name(text)], aliases=[f"{plain_name(text)}-2={plain_name(text)}"]))
    return rows


@lru_cache(maxsize=1)
def _setting(text: str, folder: Path, hands: int | None) -> Setting:
    """Where counters are found: with full knowledge, or from logs of so many hands, which all methods share."""
    search = Search(deals=_deals())
    if hands is None:
        return against_agent(resolve(text, GAME), search, folder=folder / "full.work")
    rows = _rows(text, hands, folder)
    return against_player(rows, plain_name(text), search, folder=folder / f"work-{hands}")


def _counter(text: str, out: Path, method: str, hands: int | None) -> Path:
    """A stored counter: of full knowledge, or from logs of so many hands."""
    if not (out / "manifest.json").is_file():
        setting = _setting(text, out.parent, hands)
        find_counter(setting, Search(method=method, deals=_deals()), out, facts={"against": text})
    return out


def _deals() -> int:
    return int(os.environ.get("PIPELINE_BENCH_DEALS", Search().deals))


def _opponent(text: str, folder: Path) -> list[Figure]:
    """What counters to one opponent win and risk."""
    agent = resolve(text, GAME)
    made = {
        "full knowledge": _counter(text, folder / "full", "best", None),
        f"best, {LONG:,} hands": _counter(text, folder / f"best-{LONG}", "best", LONG),
        f"default risk, {LONG:,} hands": _counter(text, folder / f"dbr-{LONG}", "dbr", LONG),
        f"default risk, {SHORT:,} hands": _counter(text, folder / f"dbr-{SHORT}", "dbr", SHORT),
    }
    base = _play(folder / "teacher.json", [resolve("@teacher", GAME), agent])
    won = {name: _play(out.with_suffix(".json"), [resolve(str(out), GAME), agent]) for name, out in made.items()}
    full = won["full knowledge"][0] - base[0]
    figures = [Figure(f"{text}: @teacher", base[0], f"mbb/h ± {base[1]:.1f}")]
    wanted = {f"best, {LONG:,} hands": "at least 0.8x", f"default risk, {LONG:,} hands": "at least 0.6x"}
    for name, (mean, half) in won.items():
        more, unit = mean - base[0], f"mbb/h ± {half:.1f}"
        target = wanted.get(name, "")
        if str(SHORT) in name.replace(",", ""):
            target = f"not under @teacher: {'met' if more + np.hypot(half, base[1]) >= 0 else 'missed'}"
        figures.append(Figure(f"{text}: {name}, added", more, unit, "full knowledge", full, more / full, target))
    share = 0.0
    for name, out in made.items():
        if "default risk" in name:
            found = strategy_facts(out)["counter"]
            risk = found["exploitability"] - found["equilibrium"]["exploitability"]
            said = f"mbb/h, trust {found['share']:g}"
            figures.append(Figure(f"{text}: {name}, exploitable above @teacher", risk, said, target="at most 100"))
            share = share or found["share"]
    return [*figures, _ceiling(text, folder, made["full knowledge"], share or FIRST)]


def _ceiling(text: str, folder: Path, best: Path, share: float) -> Figure:
    """The most that any strategy adds over @teacher at the default risk, over buckets; kept in a file."""
    file = folder / "ceiling.json"
    if not file.is_file():
        setting = _setting(text, folder, None)
        assert isinstance(setting, BucketSetting)
        with replacing(file) as beside:
            beside.write_text(json.dumps(setting.ceiling(share, Search().risk)))
    most, half = json.loads(file.read_text())
    known = strategy_facts(best)["counter"]
    base = known["equilibrium"]["winnings"]
    said, full = f"{text}: ceiling of any strategy at the default risk, added over buckets", known["winnings"] - base
    unit = f"mbb/h ± {half:.1f}"
    return Figure(said, most - base, unit, "full knowledge over buckets", full, (most - base) / full)


def run() -> list[Figure]:
    """Measure counters in Leduc and hold'em."""
    figures = leduc_figures()
    folder, named = scratch_folder("counter"), os.environ.get("PIPELINE_BENCH_AGENTS")
    for text in named.split() if named is not None else OPPONENTS:
        figures += _opponent(text, folder / plain_name(text))
    data = bench_data()
    if data is not None and (data / ARCHIVE).is_file():
        figures += slumbot_figures(data, folder / "slumbot", Search(method="dbr", deals=_deals()), _play)
    return figures
