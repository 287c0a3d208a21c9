"""How close an imitator comes to its source: held-out decisions, clones of the teacher at the table, clones in Leduc.

- slumbot19 (needs `bench_data`): the default pattern trained on 108 matches, scored on the 12 held out; Wapiti with the
  thesis's pattern beside.
- The teacher cloned from its own logs, actions only: half self-play, half against other agents. Matches are duplicate
  and share the luck of mixing; against a third agent the clone and the teacher play the same deals, and the figure is
  the difference. Distances are means over the clone's decisions in those matches.
- Leduc: frequencies counted in logs of an equilibrium, and what a best response wins against them. Self-play alone
  never visits what a deviating opponent reaches: it stands here as a warning.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import dataset
from pipeline.agents import Agent, resolve
from pipeline.arena import Match, play_match
from pipeline.bench import Figure, bench_data
from pipeline.cards import NO_CARD, RANKS
from pipeline.decisions import word_text
from pipeline.game import builtin
from pipeline.ingest import ingest, options
from pipeline.measures import played
from pipeline.models.fitting import Settings
from pipeline.solve.cfr import Solver
from pipeline.solve.small import SmallGame, Spot
from pipeline.train import Request, train_bundles

__all__ = ["run"]

Floats = npt.NDArray[np.float64]

HOLDEM = builtin("holdem.limit.2p.reverse_blinds")
LEDUC = builtin("leduc.limit.2p")
STREETS = ("preflop", "flop", "turn", "river")
ASKED = {"preflop": (0.213, None), "flop": (0.34, 15.0), "turn": (0.31, 13.5), "river": (0.21, 8.8)}
WAPITI = {"preflop": (None, None), "flop": (0.4584, 18.86), "turn": (0.5296, 23.01), "river": (0.5056, 20.07)}
OTHERS = ("@call", "@raise", "@random", "@equity")
PATIENCE = Settings(patience=5)
TEACHER_HANDS = 1_000_000
MATCH_HANDS = 400_000
BACK_OFF = 15
"""how many decisions the street's betting alone, with the same cards, is worth beside the whole betting, in Leduc"""


def _held_out(archive: Path, folder: Path) -> list[Figure]:
    """Scores of the default pattern on the held-out matches."""
    ingest([archive], folder / "rows", options(agents=["slumbot19"], validation=["*0.[01].log"]))
    began = time.perf_counter()
    results = train_bundles(Request(folder / "rows", folder / "model", streets=STREETS, settings=PATIENCE))
    seconds = time.perf_counter() - began
    figures = []
    for found in results:
        asked, wapiti = ASKED[found.street], WAPITI[found.street]
        loss, error = found.trained.log_loss or 0.0, 100 * (found.trained.error or 0.0)
        figures.append(_figure(f"slumbot19 {found.street} log-loss", loss, "nats", wapiti[0], asked[0]))
        figures.append(_figure(f"slumbot19 {found.street} error", error, "%", wapiti[1], asked[1]))
    return [*figures, Figure("slumbot19 training, all streets", seconds, "s", asked="180")]


def _figure(name: str, value: float, unit: str, wapiti: float | None, asked: float | None) -> Figure:
    ratio = None if wapiti is None else value / wapiti
    return Figure(
        name, value, unit, "" if wapiti is None else "Wapiti", wapiti, ratio, "" if asked is None else f"{asked}"
    )


# The teacher's clone


def _teacher_logs(folder: Path, hands: int, seed: int) -> None:
    """Rows of the teacher's decisions: half of the hands against itself, half against the others."""
    teacher = resolve("@teacher", HOLDEM)
    logs: list[Path] = []
    names: set[str] = set()
    for at, (other, share) in enumerate((("@teacher", 0.5), *((name, 0.5 / len(OTHERS)) for name in OTHERS))):
        agents = [teacher, resolve(other, HOLDEM)]
        log = folder / "logs" / f"{at}.{seed}"
        match = play_match(agents, HOLDEM, hands=int(hands * share), seed=seed + at, log=log)
        logs += match.logs
        names |= set(match.names) if other == "@teacher" else {match.names[0]}
    ingest(logs, folder / "rows", options(agents=sorted(names)))


def _clone(folder: Path, hands: int, seed: int) -> Agent:
    _teacher_logs(folder, hands, seed)
    train_bundles(Request(folder / "rows", folder / "clone", streets=STREETS, settings=PATIENCE))
    return resolve(str(folder / "clone"), HOLDEM)


def _difference(one: Match, two: Match) -> tuple[float, float]:
    """The first agents' difference over the same deals in mbb per hand, and half its 95% interval."""
    gap = one.samples_mbb[:, 0] - two.samples_mbb[:, 0]
    return float(gap.mean()), float(1.96 * gap.std(ddof=1) / np.sqrt(len(gap)))


def _distances(folder: Path, clone: Agent, teacher: Agent, other: Agent, hands: int) -> tuple[float, float]:
    """Mean KL from the teacher in nats, and total variation, over the clone's decisions against another agent."""
    match = play_match([clone, other], HOLDEM, hands=hands, seed=77, log=folder / "match")
    ingest(match.logs, folder / "rows", options(agents=[match.names[0]]))
    rows = dataset.load(folder / "rows").rows
    q = played(clone.probabilities(rows), rows["legal"])
    p = teacher.probabilities(rows)
    ratio = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return float((p * np.log(ratio)).sum(1).mean()), float(0.5 * np.abs(p - q).sum(1).mean())


def _teacher(folder: Path) -> list[Figure]:
    """The clone at the table, beside the teacher."""
    clone, teacher = _clone(folder, TEACHER_HANDS, 1), resolve("@teacher", HOLDEM)
    purified = resolve(f"{folder / 'clone'}:mode=purify", HOLDEM)
    figures = []
    for name, agent in (("clone", clone), ("purified clone", purified)):
        match = play_match([agent, teacher], HOLDEM, hands=MATCH_HANDS, seed=5, shared_luck=True)
        unit = f"mbb/h +- {match.ci95():.1f}"
        figures.append(Figure(f"{name} against @teacher", match.mbb_per_hand(), unit, asked="lower end above -10"))
    for name in OTHERS:
        other = resolve(name, HOLDEM)
        ours, theirs = (
            play_match([agent, other], HOLDEM, hands=MATCH_HANDS, seed=6, shared_luck=True)
            for agent in (clone, teacher)
        )
        gap, half = _difference(ours, theirs)
        unit, scored = f"mbb/h +- {half:.1f}", theirs.mbb_per_hand()
        figures.append(Figure(f"clone less teacher against {name}", gap, unit, "teacher", scored, asked="within 25"))
    for name in ("@teacher", "@random"):
        kl, tv = _distances(folder / name[1:], clone, teacher, resolve(name, HOLDEM), 40_000)
        figures += [
            Figure(f"clone against {name}: KL from the teacher", kl, "nats"),
            Figure(f"clone against {name}: total variation", tv, ""),
        ]
    return figures


# Leduc


def _counted(rows: npt.NDArray[Any], action: npt.NDArray[Any]) -> Floats:
    """How often each action was taken at each decision of Leduc, in the solver's order; rare ones lean on like ones."""
    small = SmallGame(LEDUC)
    out = np.zeros((len(small.tree.states) * small.infos, 3))
    board = np.where(rows["board"][:, 0] == NO_CARD, 13, rows["board"][:, 0] >> 2)
    keys = np.column_stack([rows["words"][:, :2], rows["street"], rows["hole"][:, 0] >> 2, board])
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


def _leduc_clone(folder: Path, opponents: Sequence[str], hands: int) -> float:
    """What a best response wins against frequencies counted in the equilibrium's logs, in milli-antes per hand."""
    teacher = resolve("@teacher", LEDUC)
    logs: list[Path] = []
    names: set[str] = set()
    for at, other in enumerate(opponents):
        agents = [teacher, resolve(other, LEDUC)]
        match = play_match(agents, LEDUC, hands=hands // len(opponents), seed=at, log=folder / "logs" / str(at))
        logs += match.logs
        names |= set(match.names) if other == "@teacher" else {match.names[0]}
    ingest(logs, folder / "rows", options(agents=sorted(names)))
    found = dataset.load(folder / "rows")
    return 1000 * Solver(LEDUC).exploitability(_counted(found.rows, found.action))


def _leduc(folder: Path) -> list[Figure]:
    figures: list[Figure] = []
    both, alone = ("@teacher", "@random"), ("@teacher",)
    for name, opponents, hands, asked in (
        ("half against @random, 100,000 hands", both, 100_000, "60"),
        ("half against @random, 400,000 hands", both, 400_000, "25"),
        ("self-play only, 100,000 hands", alone, 100_000, ""),
    ):
        lost = _leduc_clone(folder / f"{len(figures)}", opponents, hands)
        figures.append(Figure(f"Leduc clone, {name}: exploitability", lost, "milli-antes", asked=asked))
    return figures


def run() -> list[Figure]:
    """Measure clones; slumbot19 only where the corpus is."""
    data = bench_data()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = _leduc(folder / "leduc")
        figures += _teacher(folder / "teacher")
        if data is not None and (data / "slumbot19.tar.bz2").is_file():
            figures += _held_out(data / "slumbot19.tar.bz2", folder / "slumbot19")
    return figures
