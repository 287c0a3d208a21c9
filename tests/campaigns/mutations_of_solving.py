"""Harm done to what solving leaves behind: portfolios of the adaptive agent, and checkpoints.

Beside `mutations`, which runs these attacks and says what is allowed. A portfolio here is one of Leduc, so that it is
small; what is accepted of it is played by `@adaptive`. A checkpoint that is accepted is gone on from.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from bucketed_leduc import LAYOUT, LEDUC, deal_leduc
from mutations import harm_array, harm_bytes, harm_file, harm_json

from pipeline.agents.adaptive import Adaptive, _assemble
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.runtime.errors import PipelineError
from pipeline.solving.groups import small_layout
from pipeline.solving.hindsight import small_cards
from pipeline.solving.holdem import TABLES, BucketSolver, resume_checkpoint, save_checkpoint
from pipeline.solving.layout import fixed_strategy
from pipeline.solving.lookup import SmallTeacher, tabulate
from pipeline.solving.portfolio import Portfolio, load_portfolio
from pipeline.solving.strategy import dequantise, quantise
from tools.portfolio import save_portfolio

BANDS = small_layout(LEDUC)
GROUPS: Any = SimpleNamespace(layout=BANDS, bands=BANDS, stored=SimpleNamespace(digest="0" * 64))
MIXES = (1, 1, 1), (0, 1, 0), (0, 1, 1)


@cache
def portfolio() -> Portfolio:
    """A sound portfolio of Leduc: two strategies, three known opponents."""
    known = tuple(fixed_strategy(BANDS, mix) for mix in MIXES)
    values = np.array([[0.0, 30.0, 10.0], [-5.0, 80.0, 5.0]])
    return Portfolio(("teacher", "counter"), ("teacher", "call", "bold"), (quantise(known[1]),), known, values, {})


def harm_packed(folder: Path, luck: random.Random) -> None:
    """Harm a manifest, or the arrays inside its xz file with the checksum made again."""
    manifest = json.loads((folder / "manifest.json").read_text())
    if luck.random() < 0.4:
        manifest = harm_json(manifest, luck)
    else:
        packed = lzma.compress(harm_file(lzma.decompress((folder / "strategy.xz").read_bytes()), luck))
        (folder / "strategy.xz").write_bytes(harm_bytes(packed, luck) if luck.random() < 0.2 else packed)
        manifest["sha256"] = hashlib.sha256((folder / "strategy.xz").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def played(found: Portfolio) -> None:
    """Let an adaptive agent choose by a portfolio, over enough hands to look back several times."""
    agents: list[Agent] = []
    for number, name in enumerate(found.members):
        mix = ("@call", "@raise")[number % 2]
        agents.append(SmallTeacher(name, LEDUC, tabulate(resolve(mix, LEDUC).probabilities, LEDUC)))
    shown = [found.sketches[0], *(dequantise(steps) for steps in found.steps)]
    held = _assemble(
        BANDS, small_cards(BANDS), tuple(agents), shown, found.opponents, list(found.sketches), found.values
    )
    player = Adaptive("adaptive", LEDUC, held)
    play_match([player, resolve("@random", LEDUC)], LEDUC, hands=100, seed=1, workers=1)
    assert player.steps
    for step in player.steps:
        assert np.isfinite([*step.weights, *step.gains, step.likelihood]).all()


def attack_portfolio(luck: random.Random, folder: Path) -> str:
    """Harm a portfolio, and let the adaptive agent play what is accepted."""
    sound = portfolio()
    save_portfolio(folder, GROUPS, sound)
    harm_packed(folder, luck)
    try:
        found = load_portfolio(folder, GROUPS)
        played(found)
    except PipelineError:
        return "refused"
    equal = (found.members, found.opponents) == (sound.members, sound.opponents)
    equal = equal and all(map(np.array_equal, found.steps, sound.steps))
    return "equal" if equal and np.array_equal(found.values, sound.values) else "another portfolio"


@cache
def begun() -> BucketSolver:
    """A run of the solver that has come some way."""
    solver = BucketSolver(LAYOUT, deal_leduc, seed=1)
    solver.run(1, workers=1)
    return solver


def attack_checkpoint(luck: random.Random, folder: Path) -> str:
    """Harm a solver's checkpoint, its checksums made again or not, and go on from it."""
    place, about = folder / "checkpoint", {"opponent": "x"}
    save_checkpoint(begun(), place, about)
    known, name, again = json.loads((place / "checkpoint.json").read_text()), luck.choice(TABLES), luck.random() < 0.5
    if luck.random() < 0.3:
        known, again = harm_json(known, luck), True
    elif luck.random() < 0.3:
        (place / name).write_bytes(harm_bytes((place / name).read_bytes(), luck))
    else:
        np.save(place / name, harm_array(np.load(place / name), luck))
    sums = known.get("files") if isinstance(known, dict) else None
    if again and isinstance(sums, dict) and name in sums:
        sums[name] = hashlib.sha256((place / name).read_bytes()).hexdigest()
    (place / "checkpoint.json").write_text(json.dumps(known))
    solver = BucketSolver(LAYOUT, deal_leduc, seed=1)
    try:
        resume_checkpoint(solver, place, about)
    except PipelineError:
        return "refused"
    equal = np.array_equal(solver.regret, begun().regret) and np.array_equal(solver.average, begun().average)
    assert equal or again, "a damaged checkpoint was accepted"
    mix = solver.strategy()
    assert np.isfinite(mix).all()
    assert np.abs(mix.sum(axis=1) - 1).max() < 1e-3
    return "equal" if equal and solver.chunks == begun().chunks else "another run"
