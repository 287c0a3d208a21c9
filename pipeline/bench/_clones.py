"""Clones of the teacher at the table: part of `bench fidelity`.

A clone learns from a million hands of the teacher's logs, actions only, half of them self-play, half against other
agents; it uses no clusters. Beside it stand one that does (of other sizes and another seed than the teacher's), a
second from other logs, which shows how much is chance, and an upper bound: the same pattern taught the teacher's
probabilities in the states where the clone itself went.

Matches are duplicate and share the luck of mixing; against a third agent clone and teacher play the same deals, and the
figure is the difference. An equilibrium hardly punishes: so also distances from the teacher's mix (KL of the model,
total variation of what is played) where the clone goes and under uniform exploration, a best response in the teacher's
own buckets, and local best response in the full game, each for the teacher too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import dataset
from pipeline.agents import Agent, resolve
from pipeline.agents.teacher import Teacher
from pipeline.arena import MatchResult, play_match
from pipeline.bench import Figure
from pipeline.cards import ranking
from pipeline.decisions import STREETS
from pipeline.features.patterns import Pattern, find_pattern, parse_pattern
from pipeline.game import builtin
from pipeline.ingest import ingest, options
from pipeline.measures import played
from pipeline.parallel import Workers
from pipeline.policy import MODES, Policy
from pipeline.solve.buckets import deal
from pipeline.solve.layout import versus
from pipeline.solve.response import best_response, bucketed
from pipeline.solve.strategy import probabilities
from pipeline.solve.teacher import deal_hands
from pipeline.strength import river_strengths
from pipeline.strength.boards import boards
from pipeline.train import Request, train_bundles
from pipeline.training.config import TrainConfig
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

__all__ = ["DEFAULTS", "run"]

Array = npt.NDArray[Any]

HOLDEM = builtin("holdem.limit.2p.reverse_blinds")
OTHERS = ("@call", "@raise", "@random", "@equity")
DEFAULTS = TrainConfig()
"""as `train` has them"""
CLUSTERED = """
[rho1 = 0, rho2 = 5, streets = flop turn]
betting * cluster(100, 300, 3000)
word * cluster(300, 3000)
"""
"""what the clone with clusters knows beside the default"""


@dataclass(frozen=True)
class Sizes:
    """How much is played."""

    taught: int = 1_000_000
    headline: int = 6_400_000
    match: int = 800_000
    distance: int = 40_000
    local: int = 20_000
    response: int = 8_000_000
    """deals on which a best response is trained"""


@dataclass(frozen=True)
class Clone:
    """A policy, and the same without a threshold."""

    name: str
    plays: Policy

    @property
    def whole(self) -> Policy:
        return replace(self.plays, threshold=0.0)


def _logs(folder: Path, agent: Agent, hands: int, seed: int) -> Path:
    """Rows of an agent's decisions: half of the hands against the teacher, half against the others.

    In self-play the two seatings of a deal differ in the dice alone, so only one is kept, of twice as many deals.
    """
    logs: list[Path] = []
    names: set[str] = set()
    for at, (other, share) in enumerate((("@teacher", 0.5), *((name, 0.5 / len(OTHERS)) for name in OTHERS))):
        opponent = resolve(other, HOLDEM)
        same = opponent.name == agent.name
        log = folder / "logs" / f"{at}.{seed}"
        count = int(hands * share) * (2 if same else 1)
        match = play_match([agent, opponent], HOLDEM, hands=count, seed=seed + at, log=log)
        logs += match.logs[:1] if same else match.logs
        names |= set(match.names) if same else {match.names[0]}
    ingest(logs, folder / "rows", options(agents=sorted(names)))
    return folder / "rows"


def _trained(rows: Path, folder: Path, name: str, pattern: Pattern) -> Clone:
    train_bundles(Request(rows, folder / name, streets=STREETS, pattern=pattern, config=DEFAULTS))
    policy = resolve(str(folder / name), HOLDEM)
    assert isinstance(policy, Policy)
    return Clone(name, policy)


def _upper_bound(rows: Path, teacher: Teacher) -> Clone:
    """The default pattern taught the teacher's probabilities in another's states; a tenth of them says when to stop."""
    models = []
    draw = np.random.default_rng(1)
    for street, name in enumerate(STREETS):
        found = dataset.load(rows, streets=[name])
        mixes = teacher.probabilities(found.rows)
        held = found.validation
        taken = (mixes[held].cumsum(axis=1) < draw.random((int(held.sum()), 1))).sum(axis=1).astype(np.uint8)
        task = Task(
            Examples(found.rows[~held], mixes[~held]),
            Examples(found.rows[held], taken),
            find_pattern("default"),
            tuple(HOLDEM.labels),
            (street,),
            replace(DEFAULTS, rho1=0.0, rho2=0.0),
            Workers(2),
        )
        models.append(train_model("l-bfgs", task).model)
    return Clone("upper bound", Policy("upper-bound", HOLDEM, tuple(models), MODES["sample"]))


def _difference(one: MatchResult, two: MatchResult) -> tuple[float, float]:
    """The first agents' difference over the same deals in mbb per hand, and half its 95% interval."""
    gap = one.samples_mbb[:, 0] - two.samples_mbb[:, 0]
    return float(gap.mean()), float(1.96 * gap.std(ddof=1) / np.sqrt(len(gap)))


def _against_teacher(agent: Agent, teacher: Teacher, hands: int, name: str, target: str = "") -> Figure:
    match = play_match([agent, teacher], HOLDEM, hands=hands, seed=50, shared_luck=True)
    return Figure(f"{name} against @teacher", match.mbb_per_hand(), f"mbb/h +- {match.ci95():.1f}", target=target)


def _against_others(agent: Agent, teacher: Teacher, hands: int, name: str) -> list[Figure]:
    figures = []
    for text in OTHERS:
        other = resolve(text, HOLDEM)
        ours, theirs = (
            play_match([one, other], HOLDEM, hands=hands, seed=60, shared_luck=True) for one in (agent, teacher)
        )
        gap, half = _difference(ours, theirs)
        unit, scored = f"mbb/h +- {half:.1f}", theirs.mbb_per_hand()
        figures.append(Figure(f"{name} less teacher against {text}", gap, unit, "teacher", scored, target="within 25"))
    return figures


def _states(folder: Path, one: Agent, other: Agent, hands: int) -> Array:
    """The decisions of `one` in a match."""
    match = play_match([one, other], HOLDEM, hands=hands, seed=77, log=folder / "match")
    ingest(match.logs, folder / "rows", options(agents=[match.names[0]]))
    return dataset.load(folder / "rows").rows


def _distances(clone: Clone, teacher: Teacher, rows: Array, where: str) -> list[Figure]:
    truth = teacher.probabilities(rows)
    model = played(clone.whole.probabilities(rows), rows["legal"])
    kl = (truth * np.log(np.where(truth > 0, truth, 1) / np.where(truth > 0, model, 1))).sum(axis=1).mean()
    variation = 0.5 * np.abs(truth - clone.plays.probabilities(rows)).sum(axis=1).mean()
    return [
        Figure(f"{clone.name}, {where}: KL from the teacher", float(kl), "nats"),
        Figure(f"{clone.name}, {where}: total variation", float(variation), ""),
    ]


def _local(agent: Agent, text: str, hands: int, name: str) -> Figure:
    match = play_match([resolve(f"@lbr:{text}", HOLDEM), agent], HOLDEM, hands=hands, seed=70)
    return Figure(f"local best response wins from {name}", match.mbb_per_hand(), f"mbb/h +- {match.ci95():.0f}")


def _responses(clones: Sequence[Clone], teacher: Teacher, deals: int) -> list[Figure]:
    """What best responses in the teacher's buckets win."""
    layout = teacher.stored.layout
    tables = teacher.tables._replace(river=river_strengths(), river_boards=boards(3).find)
    strategies = {"teacher": probabilities(teacher.stored.steps)}
    for clone in clones:
        strategies[clone.name] = bucketed(clone.plays.probabilities, layout, tables, each=2)
    fresh = deal_hands(tables, 99, 100_000)
    ranks = ranking()

    def dealer(random: Array, rows: Array) -> None:
        deal(random, tables, ranks, rows)

    figures = []
    for name, strategy in strategies.items():
        found = versus(layout, fresh, best_response(layout, dealer, strategy, deals=deals), strategy)
        unit = f"mbb/h +- {found.ci95:.0f}"
        figures.append(Figure(f"best response in the teacher's buckets wins from {name}", found.mbb, unit))
    return figures


def run(folder: Path, sizes: Sizes | None = None) -> list[Figure]:
    """Measure the clones."""
    size = sizes or Sizes()
    teacher, random = resolve("@teacher", HOLDEM), resolve("@random", HOLDEM)
    assert isinstance(teacher, Teacher)
    default = find_pattern("default")
    rows = _logs(folder / "one", teacher, size.taught, 1)
    clone = _trained(rows, folder, "clone", default)
    purified = resolve(f"{folder / 'clone'}:mode=purify", HOLDEM)
    figures = [
        _against_teacher(clone.plays, teacher, size.headline, "clone", "lower end above -10"),
        *_against_others(clone.plays, teacher, size.match, "clone"),
        _against_teacher(clone.whole, teacher, size.match, "clone, threshold 0"),
        _against_teacher(purified, teacher, size.match, "clone, threshold 15 %"),
    ]
    second = _trained(_logs(folder / "two", teacher, size.taught, 1001), folder, "second clone", default)
    clustered = _trained(rows, folder, "clone with clusters", parse_pattern(default.source + CLUSTERED))
    bound = _upper_bound(_logs(folder / "own", clone.plays, size.taught, 2001), teacher)
    for other in (second, clustered, bound):
        figures.append(_against_teacher(other.plays, teacher, size.match, other.name))
        figures += _against_others(other.plays, teacher, size.match // 4, other.name)
    states = {
        "against @teacher": _states(folder / "a", clone.plays, teacher, size.distance),
        "against @random": _states(folder / "b", clone.plays, random, size.distance),
        "uniform exploration": _states(folder / "c", random, random, size.distance),
    }
    for where, met in states.items():
        for other in (clone, second, clustered, bound):
            figures += _distances(other, teacher, met, where)
    figures += [
        _local(teacher, "@teacher", size.local, "teacher"),
        _local(clone.plays, str(folder / "clone"), size.local, "clone"),
    ]
    return [*figures, *_responses((clone, bound), teacher, size.response)]
