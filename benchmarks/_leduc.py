"""Copies of an equilibrium of Leduc by counting, and what a best response wins from them: part of `bench fidelity`.

Frequencies are counted in logs of an equilibrium, over several logs (one alone is luck). Self-play alone never visits
what a deviating opponent reaches: it stands here as a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import word_text
from pipeline.dataset.load import load_decisions
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.cards import NO_CARD, RANKS
from pipeline.poker.game import builtin
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.small import SmallGame, Spot

Floats = npt.NDArray[np.float64]

LEDUC = builtin("leduc.limit.2p")
BACK_OFF = 5
"""how many decisions the street's betting alone, with the same cards, is worth beside the whole betting"""


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


def _leduc_copy(folder: Path, opponents: Sequence[str], hands: int, seed: int) -> float:
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
    found = load_decisions(folder / "rows")
    return 1000 * ExactSolver(LEDUC).exploitability(_counted(found.rows, found.action))


def leduc_figures(folder: Path, logs: int) -> list[Figure]:
    """The mean exploitability of copies from so many logs each."""
    figures: list[Figure] = []
    both, alone = ("@teacher", "@random"), ("@teacher",)
    for name, opponents, hands, target in (
        ("half against @random, 100,000 hands", both, 100_000, "60"),
        ("half against @random, 400,000 hands", both, 400_000, "25"),
        ("self-play only, 100,000 hands", alone, 100_000, ""),
    ):
        lost = [_leduc_copy(folder / f"{len(figures)}-{seed}", opponents, hands, seed) for seed in range(logs)]
        unit = f"milli-antes, {min(lost):.0f} to {max(lost):.0f} in {logs} logs"
        figures.append(Figure(f"Leduc copy, {name}: exploitability", float(np.mean(lost)), unit, target=target))
    return figures
