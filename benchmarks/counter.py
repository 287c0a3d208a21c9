"""Counter-strategies: what they win from whom they were made against, and what they risk; three parts.

Leduc, exactly: `folding_more` makes an equilibrium fold more often than it should, and `leduc_figures` answers it with
full knowledge and from logs of different lengths.

Limit hold'em: six opponents play logs of 100,000 and 3,000 hands, half against themselves and half against others;
counters are learned from these, and play the opponents themselves in duplicate matches with the luck taken out, until
the 95 % interval is within 15 mbb/h. Beside them play @teacher and the best response that knows the opponent's
strategy. The ceiling is an estimate of the most that any strategy over the teacher's buckets, even one that knows the
opponent's strategy, wins at the default risk; it errs on the low side (`BucketSetting.ceiling`). Own exploitability is
that over the same buckets, a lower bound, by the same number of deals for @teacher and the counters.

slumbot19s, of which there are only logs (`slumbot19.tar.bz2` in the folder of corpora): two counters are learned from
matches of even number, at the default risk and the best response. They are judged twice on those of odd number: at the
table against a copy that was trained on them, beside @teacher over the same deals, and from the logged hands
themselves, in the place of slumbot19 (`pipeline.arena.offpolicy`; its strategy is stood for by a copy from the even
matches).

Every finished part is stored (`--stages`), so that a run that was stopped goes on from there. `--agent` names the
opponents instead of all, `--agent none` leaves them out; with `--quick` each answer is trained on few deals.
"""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._figures import Figure, Settings
from benchmarks._stages import stored_bundle, stored_figures
from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.arena.offpolicy import estimate_off_policy
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions
from pipeline.evaluation.winnings import dataset_records
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.measures import half_width
from pipeline.opponents.counters import Search, against_agent, against_player, find_counter
from pipeline.poker.game import Game, builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.files import replacing
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.counter import (
    FIRST_SHARE,
    Belief,
    BucketSetting,
    Response,
    Setting,
    SmallSetting,
    count_small,
    estimate_evidence,
    respond,
    winnings,
)
from pipeline.solving.lookup import SmallTeacher
from pipeline.solving.strategy import strategy_facts
from pipeline.training.requests import Request

# Leduc

LEDUC = builtin("leduc.limit.2p")
LEDUC_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
LEDUC_HANDS = (100, 1_000, 10_000, 100_000)
LEDUC_LOGS = 5
"""logs of each length"""
MILLI = 1000.0


def folding_more(mix: Array, times: float = 2.0) -> Array:
    """Return a strategy (rows, 3) that folds so many times as often, at the cost of its other actions in proportion.

    >>> folding_more(np.array([[0.25, 0.5, 0.25], [0.0, 1.0, 0.0]])).tolist()
    [[0.5, 0.3333333333333333, 0.16666666666666666], [0.0, 1.0, 0.0]]
    """
    fold = np.minimum(times * mix[:, 0], 1.0)
    rest = mix[:, 1:].sum(axis=1)
    scale = np.where(rest > 0, (1 - fold) / np.where(rest > 0, rest, 1.0), 0.0)
    return np.column_stack([np.where(rest > 0, fold, mix[:, 0]), mix[:, 1:] * scale[:, None]])


def _leduc_equilibrium(game: Game) -> Array:
    solver = ExactSolver(game)
    solver.run(3_000)
    return solver.strategy()


def _above(response: Response, ends: list[Response]) -> float:
    """Measure how far a response is above the straight line between equilibrium and best response, in milli-antes."""
    wide = ends[1].exploitability - ends[0].exploitability
    along = (response.exploitability - ends[0].exploitability) / wide
    return MILLI * (response.winnings - ends[0].winnings - along * (ends[1].winnings - ends[0].winnings))


def _learned(weak: Array, prior: Array, hands: int, seed: int) -> tuple[float, float, float]:
    """Return what a log's data-biased response wins, its exploitability, and that of the best response."""
    with tempfile.TemporaryDirectory() as folder:
        players = [SmallTeacher("weak", LEDUC, weak), resolve("@random", LEDUC)]
        match = play_match(players, LEDUC, hands=hands, seed=seed, log=Path(folder) / "match")
        ingest(match.logs, Path(folder) / "rows", options(agents=["weak"], strength=False), workers=1)
        rows = load_decisions(Path(folder) / "rows", ["weak"])
        setting = SmallSetting(LEDUC, estimate_evidence(count_small(LEDUC, rows.rows, rows.action), prior))
    best, biased = (setting.answer(method, 1.0) for method in ("best", "dbr"))
    exact = ExactSolver(LEDUC)
    return winnings(LEDUC, biased, weak), exact.exploitability(biased), exact.exploitability(best)


def leduc_figures() -> list[Figure]:
    """Measure exact figures of counters in Leduc, in milli-antes per hand."""
    prior = _leduc_equilibrium(LEDUC)
    weak = folding_more(prior)
    ends = [respond(LEDUC, Belief(weak, hand_share=share)) for share in (0.0, 1.0)]
    least = min(_above(respond(LEDUC, Belief(weak, hand_share=share)), ends) for share in LEDUC_SHARES)
    unit = "milli-antes"
    zero = MILLI * ends[0].exploitability
    figures = [
        Figure("Leduc, trust 0: exploitability", zero, unit, target="at most 1"),
        Figure("Leduc, any trust: least above the straight line", least, unit, target="at least 0"),
    ]
    base = winnings(LEDUC, ends[0].strategy, weak)
    full = ends[1].winnings - base
    for hands in LEDUC_HANDS:
        results = [_learned(weak, prior, hands, seed) for seed in range(LEDUC_LOGS)]
        more = max(MILLI * (biased - best) for _, biased, best in results)
        title = f"Leduc, {hands:,} hands: most that data-biased is more exploitable than best, {LEDUC_LOGS} logs"
        figures.append(Figure(title, more, unit, target="at most 0"))
        gains = [won - base for won, _, _ in results]
        name = f"Leduc, {hands:,} hands: data-biased gain, mean of {LEDUC_LOGS} logs"
        worst = f" (least {min(gains) / full:.2f})"
        target = ("at least 0.5x" if hands == 1_000 else "") + worst
        share = float(np.mean(gains)) / full
        figures.append(Figure(name, MILLI * float(np.mean(gains)), unit, "full knowledge", MILLI * full, share, target))
    return figures


# Limit hold'em


GAME = builtin("holdem.limit.2p.reverse_blinds")
OPPONENTS = ("@bearl", "@equity", "@calibrated:70,70", "@calibrated:20,80", "@chump:rock", "@chump:maniac")
LOG_PARTNERS = ("@teacher", "@call", "@random")
"""who else plays in the logs"""
LONG, SHORT = 100_000, 3_000
QUICK_DEALS = 100_000
"""deals that each answer is trained on with --quick"""
WIDTH = 15.0
AT_ONCE, MOST = 40_000, 400_000
"""hands of a match, until the interval is narrow enough or so many were played"""


def _play(file: Path, agents: list[Agent], width: float = WIDTH) -> tuple[float, float]:
    """Measure what the first agent wins, and half its interval, at most `width` if hands allow; stored in a file."""
    if not file.is_file():
        samples: list[Any] = []
        while not samples or (half_width(np.concatenate(samples)) > width and len(samples) * AT_ONCE < MOST):
            match = play_match(agents, GAME, hands=AT_ONCE, seed=len(samples), adjusted=True)
            samples.append(match.best_samples_mbb[:, 0])
        every = np.concatenate(samples)
        with replacing(file) as beside:
            beside.write_text(json.dumps([float(every.mean()), half_width(every)]), encoding="utf-8")
    mean, half = json.loads(file.read_text(encoding="utf-8"))
    return float(mean), float(half)


def _rows(text: str, hands: int, folder: Path) -> Path:
    """Return a dataset of an opponent's decisions in so many hands, half of them against itself."""
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
def _setting(text: str, folder: Path, hands: int | None, deals: int) -> Setting:
    """Where counters are found: with full knowledge, or from logs of so many hands, which all methods share."""
    search = Search(deals=deals)
    if hands is None:
        return against_agent(resolve(text, GAME), search, folder=folder / "full.work")
    rows = _rows(text, hands, folder)
    return against_player(rows, plain_name(text), search, folder=folder / f"work-{hands}")


def _counter(text: str, out: Path, method: str, hands: int | None, deals: int) -> Path:
    """Return a stored counter: of full knowledge, or from logs of so many hands."""
    if not (out / "manifest.json").is_file():
        setting = _setting(text, out.parent, hands, deals)
        find_counter(setting, Search(method=method, deals=deals), out, facts={"against": text})
    return out


def _opponent(text: str, folder: Path, deals: int) -> list[Figure]:
    """Measure what counters to one opponent win and risk."""
    agent = resolve(text, GAME)
    made = {
        "full knowledge": _counter(text, folder / "full", "best", None, deals),
        f"best, {LONG:,} hands": _counter(text, folder / f"best-{LONG}", "best", LONG, deals),
        f"default risk, {LONG:,} hands": _counter(text, folder / f"dbr-{LONG}", "dbr", LONG, deals),
        f"default risk, {SHORT:,} hands": _counter(text, folder / f"dbr-{SHORT}", "dbr", SHORT, deals),
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
            facts = strategy_facts(out)["counter"]
            risk = facts["exploitability"] - facts["equilibrium"]["exploitability"]
            unit = f"mbb/h, trust {facts['share']:g}"
            figures.append(Figure(f"{text}: {name}, exploitable above @teacher", risk, unit, target="at most 100"))
            share = share or facts["share"]
    return [*figures, _ceiling(text, folder, made["full knowledge"], share or FIRST_SHARE, deals)]


def _ceiling(text: str, folder: Path, best: Path, share: float, deals: int) -> Figure:
    """Estimate the most that any strategy over buckets adds over @teacher at the default risk; stored in a file."""
    file = folder / "ceiling.json"
    if not file.is_file():
        setting = _setting(text, folder, None, deals)
        assert isinstance(setting, BucketSetting)
        with replacing(file) as beside:
            beside.write_text(json.dumps(setting.ceiling(share, Search().risk)), encoding="utf-8")
    most, half = json.loads(file.read_text(encoding="utf-8"))
    facts = strategy_facts(best)["counter"]
    base = facts["equilibrium"]["winnings"]
    title, full = f"{text}: estimated ceiling of strategies at the default risk, added", facts["winnings"] - base
    unit = f"mbb/h ± {half:.1f}"
    return Figure(title, most - base, unit, "full knowledge", full, (most - base) / full)


# slumbot19


ARCHIVE = "slumbot19.tar.bz2"
OPPONENT, PARTNER = "slumbot19s", "slumbot19"
BOLD = 25
"""times as many deals for the best response: against an agent near the equilibrium little tells actions apart"""
SLUMBOT_WIDTH = 6.0
"""half of an interval that is narrow enough at the table"""
ESTIMATED = 20_000
"""logged hands of the estimate"""

SLUMBOT_COUNTERS = {"counter": "counter at the default risk", "best": "best response to the copy"}
MORE = "at least 30"


def _halves(archive: Path, folder: Path) -> dict[str, Path]:
    """Return the logs of matches of even and odd number as datasets."""
    datasets = {}
    for remainder, half in enumerate(("even", "odd")):
        datasets[half] = folder / half / "rows"
        if (datasets[half] / "manifest.json").is_file():
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
        ingest([folder / half / "logs"], datasets[half])
    return datasets


def _slumbot_counters(rows: Path, folder: Path, search: Search) -> dict[str, Path]:
    """Return the counters from one half of the matches, by name; stored."""
    made = {"counter": ("dbr", 1), "best": ("best", BOLD)}
    setting: Setting | None = None
    for name, (method, times) in made.items():
        if not (folder / name / "manifest.json").is_file():
            setting = setting or against_player(rows, OPPONENT, search, folder=folder / "work")
            assert isinstance(setting, BucketSetting)
            longer = replace(setting, deals=times * search.deals)
            find_counter(longer, replace(search, method=method), folder / name, facts={"against": OPPONENT})
    return {name: folder / name for name in made}


def slumbot_figures(archive: Path, folder: Path, search: Search) -> list[Figure]:
    """Measure what counters from one half of the matches win on the other half."""
    rows = _halves(archive, folder)
    agents = {name: resolve(str(path), GAME) for name, path in _slumbot_counters(rows["even"], folder, search).items()}
    agents["teacher"] = resolve("@teacher", GAME)
    judge = resolve(str(stored_bundle(Request(rows["odd"], folder / "judge", (OPPONENT,), streets=STREETS))), GAME)
    won = {name: _play(folder / f"{name}.json", [agent, judge], SLUMBOT_WIDTH) for name, agent in agents.items()}
    base, figures = won["teacher"], []
    for name, label in SLUMBOT_COUNTERS.items():
        mean, half = won[name]
        width = (half**2 + base[1] ** 2) ** 0.5
        title = f"{OPPONENT}'s copy from other matches: {label}"
        figures.append(Figure(title, mean, f"mbb/h ± {half:.1f}", "@teacher", base[0]))
        figures.append(Figure("the same, more than @teacher", mean - base[0], f"mbb/h ± {width:.1f}", target=MORE))
    stands = resolve(str(stored_bundle(Request(rows["even"], folder / "partner", (PARTNER,), streets=STREETS))), GAME)
    records, names = dataset_records(rows["odd"], GAME)
    judged_records: Any = records.take(slice(0, ESTIMATED))
    for name, agent in (*agents.items(), ("partner", stands)):
        label = SLUMBOT_COUNTERS.get(name, {"teacher": "@teacher", "partner": f"{PARTNER}'s copy"}.get(name, name))
        measure = partial(_estimated, judged_records, names.index(PARTNER), label, agent, stands)
        figures += stored_figures(folder / f"estimate-{name}.json", measure)
    return figures


def _estimated(records: Any, number: int, label: str, agent: Agent, stands: Agent) -> list[Figure]:
    """Measure what an agent would have won in the logged hands."""
    estimate = estimate_off_policy(records, number, agent, stands)
    text = f"mbb/h ± {estimate.normalised_ci95:.1f}, {estimate.effective:,.0f} of {estimate.hands:,} hands count"
    return [
        Figure(f"from held-out hands of {OPPONENT}: {label}", estimate.normalised, text),
        Figure(f"the same, mean weight of {label}", estimate.weight, "", target="1 if covered"),
    ]


# All figures


def run(settings: Settings) -> list[Figure]:
    """Measure counters in Leduc and hold'em."""
    figures = leduc_figures()
    folder, deals = settings.stage("counter"), QUICK_DEALS if settings.quick else Search().deals
    for text in settings.agents or OPPONENTS:
        if text != "none":
            figures += _opponent(text, folder / plain_name(text), deals)
    archive = settings.corpus(ARCHIVE)
    if archive is not None:
        figures += slumbot_figures(archive, folder / "slumbot", Search(method="dbr", deals=deals))
    return figures
