"""All that one page shows of an evaluation, computed once: `pipeline.report.build` only renders it.

In goes an `Evaluation`, with matches, a tournament and learning curves where there are some; out come `Findings`: for
each agent its scores, the best model, where that model fails, its starting-hand charts, its worst decisions and whether
the agent itself changes; and the facts for the foot of the page.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents.adaptive import Adaptive, Assessment
from pipeline.agents.names import bundle_options
from pipeline.arena.rankings import Results
from pipeline.dataset.opening import hand_batches
from pipeline.evaluation.evaluation import Evaluation, Opened, best, trained
from pipeline.evaluation.inspection import (
    CUTS,
    StartingChart,
    Stationarity,
    Subset,
    breakdown,
    starting_charts,
    stationarity,
    worst,
)
from pipeline.evaluation.learning import Learning
from pipeline.evaluation.samples import Sample, read_samples, streets
from pipeline.evaluation.scoring import Pair, Scored
from pipeline.evaluation.sizing import SizeCurve, size_curves
from pipeline.models import measures
from pipeline.models.blend import learned_classes
from pipeline.models.measures import Bootstrap
from pipeline.runtime.array_types import Ints
from pipeline.runtime.arrays import parse_json
from pipeline.runtime.errors import PipelineError
from pipeline.solving.counter import Worth
from pipeline.solving.strategy import strategy_facts


@dataclass(frozen=True)
class Features:
    """The strongest features of one model for one action on one street."""

    model: str
    street: str
    label: str
    weights: list[tuple[str, float]]


@dataclass(frozen=True)
class Looks:
    """What tells the learned classes of hands of one model apart on one street."""

    model: str
    street: str
    weights: list[tuple[str, float]]
    """columns as patterns have them, the heaviest first, with shares of the largest weight"""


@dataclass(frozen=True)
class AgentFindings:
    """What the page shows of the copies of one agent."""

    scored: Sequence[Scored]
    """all candidates on the agent's decisions, baselines last"""
    best: Scored
    """the closest of them"""
    pairs: Sequence[Pair]
    parts: Mapping[str, Sequence[Subset]]
    """the best model's decisions by cut"""
    confusion: Mapping[str, Ints]
    """by street: counts of label taken (rows) and label most probable (columns) of the best model"""
    charts: Sequence[StartingChart]
    worst: Sequence[int]
    """row numbers of the best model's worst disagreements"""
    stationarity: Sequence[Stationarity] = ()
    sizes: Mapping[str, Sequence[SizeCurve]] = field(default_factory=dict)
    """by the name of a trained model: the sizes of raises, in games with amounts to choose"""
    bettings: Mapping[int, str] = field(default_factory=dict)
    """by row number: the hand's whole betting with amounts, of the worst decisions in no-limit games"""

    @property
    def sample(self) -> Sample:
        """The decisions scored on."""
        return self.best.sample


@dataclass(frozen=True)
class Tried:
    """The shares of trust that were tried for a counter-strategy."""

    against: str
    method: str
    unit: str
    kept: Worth
    curve: tuple[Worth, ...]


@dataclass(frozen=True)
class Thoughts:
    """What an adaptive agent thought in the course of a match."""

    name: str
    against: str
    members: tuple[str, ...]
    steps: tuple[Assessment, ...]


@dataclass(frozen=True)
class Findings:
    """All that the page may show; what is empty is left out."""

    title: str
    agents: Sequence[AgentFindings]
    together: Sequence[Scored] = ()
    """the candidates on the decisions of all agents, where there are several"""
    cross: Sequence[Scored] = ()
    learning: Sequence[Learning] = ()
    features: Sequence[Features] = ()
    looks: Sequence[Looks] = ()
    played_as: Mapping[str, str] = field(default_factory=dict)
    """by the name of a candidate: the text that named it, as matches have it"""
    matches: Sequence[Mapping[str, object]] = ()
    """as `match --json` prints them"""
    results: Results | None = None
    tried: Sequence[Tried] = ()
    """how counter-strategies were chosen"""
    thoughts: Sequence[Thoughts] = ()
    """of the adaptive agents in the matches"""
    facts: Sequence[str] = ()
    """sentences about data, settings and date for the foot of the page"""


def about_agent(
    scored: Sequence[Scored],
    *,
    pairs: Sequence[Pair] = (),
    stationary: Sequence[Stationarity] = (),
    seed: int = 0,
    data: Path | None = None,
) -> AgentFindings:
    """What the page shows of one agent, from its candidates' scores; `data` is where amounts of bettings are read."""
    top = best(scored)
    draws = Bootstrap(top.sample.deal, seed=seed)
    furthest = [int(row) for row in worst(top)]
    return AgentFindings(
        scored=scored,
        best=top,
        pairs=[pair for pair in pairs if pair.agent == top.sample.agent],
        parts={cut: breakdown(top, cut, draws) for cut in CUTS},
        confusion={
            street: measures.confusion(top.played[at], top.sample.taken[at]) for street, at in streets(top.sample)
        },
        charts=starting_charts(top),
        worst=furthest,
        stationarity=[one for one in stationary if one.agent == top.sample.agent],
        sizes={
            one.candidate.name: curves
            for one in trained(scored)
            if (curves := size_curves(one.candidate.player, one.played, one.sample))
        },
        bettings=bettings_of(data, top.sample, furthest) if data is not None and top.sample.game.nolimit else {},
    )


def bettings_of(data: Path, sample: Sample, rows: Sequence[int]) -> dict[int, str]:
    """The betting of some decisions' hands, as their logs have it; several decisions may be of one hand."""
    if sample.line is None:
        return {}
    wanted: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        wanted.setdefault((sample.files[int(sample.file[row])], int(sample.line[row])), []).append(row)
    found = {}
    for batch in hand_batches(data, ["file", "line", "betting"]):
        columns = (batch.column(name).to_pylist() for name in ("file", "line", "betting"))
        for file, line, betting in zip(*columns, strict=True):
            found.update(dict.fromkeys(wanted.get((file, line), ()), betting))
    return found


def findings(
    found: Evaluation,
    *,
    cross: Evaluation | None = None,
    learning: Sequence[Learning] = (),
    matches: Sequence[Path] = (),
    counters: Sequence[Path] = (),
    results: Results | None = None,
    title: str | None = None,
    settings: Sequence[str] = (),
    seed: int = 0,
) -> Findings:
    """All that the page shows of an evaluation.

    Parameters: `cross` the same models on every agent, `learning` curves, `matches` files that `match --json` printed,
    `counters` folders that `counter` wrote, `results` a tournament, `settings` sentences for the foot of the page (date
    and command), `seed` of the bootstrap.
    """
    stationary = changes(found)
    played = [read_match(path) for path in matches]
    facts = [
        f"{len(sample):,} decisions of {sample.agent} in {len(set(sample.file.tolist())):,} logs, "
        f"{len(set(sample.deal.tolist())):,} deals, {sample.game.name}."
        for sample in found.samples
    ]
    facts.append(f"Data {found.fingerprint}, bootstrap seed {seed}.")
    return Findings(
        title=title or f"Copies of {' and '.join(sample.agent for sample in found.samples)}",
        agents=[
            about_agent(row, pairs=found.pairs, stationary=stationary, seed=seed, data=found.data)
            for row in found.scored
        ],
        together=found.together,
        cross=[] if cross is None else [one for row in cross.scored for one in row],
        learning=learning,
        features=[one for opened in found.models for one in strongest(opened)],
        looks=[one for opened in found.models for one in looked_at(opened)],
        played_as={opened.candidate.name: opened.text for opened in found.models},
        matches=played,
        tried=[read_tried(path) for path in counters],
        thoughts=[one for match in played for one in read_thoughts(match)],
        results=results,
        facts=[*facts, *settings],
    )


def changes(found: Evaluation) -> list[Stationarity]:
    """Whether the agents play the same early and late and against everyone, over all their decisions, both sides."""
    agents = [sample.agent for sample in found.samples]
    everything = read_samples(found.data, agents, side=None, game=found.samples[0].game.name)
    return [one for sample in everything for one in stationarity(sample)]


def strongest(opened: Opened, count: int = 8) -> list[Features]:
    """The features that speak loudest for each action, from the lists that training leaves beside log-linear models.

    A feature speaks for an action as much as its weight there exceeds the mean of its weights.
    """
    if opened.bundle is None:
        return []
    path, _ = bundle_options(opened.text)
    found = []
    for part in opened.bundle.parts:
        text = _text_beside(path, f"{part.name}.features.txt")
        lines = [line.split("\t") for line in text.splitlines()]
        if len(lines) < 2:
            continue
        named = [(line[0], np.array([float(word) for word in line[1:]])) for line in lines[1:]]
        for label, letter in enumerate(lines[0][1:]):
            loud = sorted(((name, float(w[label] - w.mean())) for name, w in named), key=lambda pair: -pair[1])
            found.append(Features(opened.candidate.name, part.name, letter, loud[:count]))
    return found


def looked_at(opened: Opened) -> list[Looks]:
    """What tells classes of hands apart in the models of a bundle that learned some."""
    parts = opened.bundle.parts if opened.bundle is not None else ()
    return [
        Looks(opened.candidate.name, part.name, classes.looks_at())
        for part in parts
        if (classes := learned_classes(part.model)) is not None
    ]


def read_match(path: Path) -> dict[str, Any]:
    """What `match --json` printed, from a file."""
    try:
        said = parse_json(path.read_bytes())
    except (OSError, ValueError):
        said = None
    if isinstance(said, dict) and "ci95" in said and said["ci95"] is None:
        raise PipelineError(f"{path} is a match of one deal, which has no interval: play more hands")
    kinds = {"a": str, "b": str, "hands": int, "mbb_per_hand": int | float, "ci95": int | float}
    wrong = PipelineError(f"{path} is not what `match --json` prints: write that to a file and name it with --match")
    if not isinstance(said, dict) or not all(isinstance(said.get(key), kind) for key, kind in kinds.items()):
        raise wrong
    try:
        read_thoughts(said)
    except ValueError:
        raise wrong from None
    return said


def read_tried(folder: Path) -> Tried:
    """How a stored counter-strategy was chosen, from its manifest."""
    facts = strategy_facts(folder)
    try:
        found = facts["counter"]
        curve = tuple(_worth(one) for one in found["curve"])
        return Tried(str(facts["against"]), str(found["method"]), str(facts["unit"]), _worth(found), curve)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise PipelineError(f"{folder} is a strategy, but not one that `counter` found") from None


def read_thoughts(said: Mapping[str, Any]) -> list[Thoughts]:
    """What the adaptive agents of a match thought, from what `match --json` printed; `ValueError` if it is damaged."""
    found = []
    try:
        players = [one["name"] for one in said.get("agents", [])]
        for one in said.get("adaptation", []):
            members = tuple(str(name) for name in one["members"])
            steps = tuple(_step(step, len(members)) for step in one["steps"])
            others = [str(name) for name in players if name != one["name"]]
            found.append(Thoughts(str(one["name"]), ", ".join(others), members, steps))
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError("its adaptation is of another kind") from None
    return found


def thoughts_of(agent: Adaptive, players: Sequence[str]) -> Thoughts:
    """What an adaptive agent thought in the match that it has just played with players of these names."""
    others = ", ".join(name for name in players if name != agent.name)
    return Thoughts(agent.name, others, agent.portfolio.names, tuple(agent.steps))


def _worth(one: Mapping[str, Any]) -> Worth:
    return Worth(*(_number(one[name]) for name in Worth._fields))


def _step(one: Mapping[str, Any], members: int) -> Assessment:
    """What was thought once, from its JSON."""
    weights, gains = (tuple(_number(value) for value in one[name]) for name in ("weights", "gains"))
    step = Assessment(
        int(_number(one["hands"])),
        int(_number(one["playing"])),
        weights,
        gains,
        str(one["opponent"]),
        _number(one["likelihood"]),
    )
    if not 0 <= step.playing < members or {len(weights), len(gains)} != {members}:
        raise ValueError("its steps are not about its members")
    return step


def _number(value: Any) -> float:
    """A finite number."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]} is no number")
    return float(value)


def _text_beside(path: Path, name: str) -> str:
    """A text file of a bundle's folder or zip file, empty where there is none."""
    if path.is_dir():
        return (path / name).read_text(encoding="utf-8") if (path / name).is_file() else ""
    with zipfile.ZipFile(path) as archive:
        inside = next((entry for entry in archive.namelist() if Path(entry).name == name), None)
        return archive.read(inside).decode() if inside else ""
