"""Contents of the page that shows an evaluation, computed once: `pipeline.report.pages` only renders them.

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
from pipeline.evaluation.evaluation import Evaluation, OpenedModel, best_model, trained_models
from pipeline.evaluation.inspection import (
    CUTS,
    StartingChart,
    Stationarity,
    Subset,
    breakdown,
    starting_charts,
    stationarity,
    worst_disagreements,
)
from pipeline.evaluation.retraining import LearningCurve
from pipeline.evaluation.samples import DecisionSample, read_samples, street_slices
from pipeline.evaluation.scoring import PairedDifference, Scored, StoredProbabilities
from pipeline.evaluation.sizing import SizeCurve, size_curves
from pipeline.models import measures
from pipeline.models.blend import learned_classes
from pipeline.models.measures import Bootstrap
from pipeline.runtime.array_types import Ints
from pipeline.runtime.arrays import parse_json
from pipeline.runtime.errors import PipelineError
from pipeline.solving.counter import AGENT, MEASURED_AT, Tradeoff
from pipeline.solving.strategy import strategy_facts


@dataclass(frozen=True)
class StrongestFeatures:
    """The strongest features of one model for one action on one street."""

    model: str
    street: str
    label: str
    weights: list[tuple[str, float]]
    players: int = 2
    """of the game, which positions are named by"""


@dataclass(frozen=True)
class ClassColumns:
    """The columns by which one model with learned classes of hands distinguishes them on one street."""

    model: str
    street: str
    weights: list[tuple[str, float]]
    """columns as patterns have them, the heaviest first, with shares of the largest weight"""


@dataclass(frozen=True)
class AgentFindings:
    """Results of the copies of one agent: scores, the best model's failures, charts and worst disagreements."""

    scored: Sequence[Scored]
    """all candidates on the agent's decisions, baselines last"""
    best: Scored
    """the closest of them"""
    pairs: Sequence[PairedDifference]
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
    def sample(self) -> DecisionSample:
        """Return the decisions scored on."""
        return self.best.sample


@dataclass(frozen=True)
class CounterChoice:
    """The shares of trust that were tried for a counter-strategy, and the one that was chosen."""

    against: str
    method: str
    unit: str
    kept: Tradeoff
    curve: tuple[Tradeoff, ...]


@dataclass(frozen=True)
class AdaptationCourse:
    """Beliefs and choices of an adaptive agent in the course of a match."""

    name: str
    against: str
    members: tuple[str, ...]
    steps: tuple[Assessment, ...]

    def json(self) -> dict[str, Any]:
        """Return its entry in the output of `match --json`, which `read_adaptation` reads."""
        return {"name": self.name, "members": self.members, "steps": [step._asdict() for step in self.steps]}


@dataclass(frozen=True)
class Findings:
    """Contents of the page; empty fields are left out."""

    title: str
    agents: Sequence[AgentFindings]
    pooled: Sequence[Scored] = ()
    """the candidates on the decisions of all agents, where there are several"""
    largest: Sequence[Sequence[Scored]] = ()
    """the candidates on the decisions of each of the largest players, where there are many"""
    cross: Sequence[Scored] = ()
    learning: Sequence[LearningCurve] = ()
    features: Sequence[StrongestFeatures] = ()
    class_columns: Sequence[ClassColumns] = ()
    played_as: Mapping[str, str] = field(default_factory=dict)
    """by the name of a candidate: the text that named it, as matches have it"""
    matches: Sequence[Mapping[str, object]] = ()
    """as `match --json` prints them"""
    results: Results | None = None
    counter_choices: Sequence[CounterChoice] = ()
    """how counter-strategies were chosen"""
    adaptations: Sequence[AdaptationCourse] = ()
    """of the adaptive agents in the matches"""
    facts: Sequence[str] = ()
    """sentences about data, settings and date for the foot of the page"""


def agent_findings(
    scored: Sequence[Scored],
    *,
    pairs: Sequence[PairedDifference] = (),
    stationary: Sequence[Stationarity] = (),
    seed: int = 0,
    data: Path | None = None,
) -> AgentFindings:
    """Collect the results of one agent from its candidates' scores; `data` is where amounts of bettings are read."""
    best_scored = best_model(scored)
    draws = Bootstrap(best_scored.sample.deal, seed=seed)
    furthest = [int(row) for row in worst_disagreements(best_scored)]
    return AgentFindings(
        scored=scored,
        best=best_scored,
        pairs=[pair for pair in pairs if pair.agent == best_scored.sample.agent],
        parts={cut: breakdown(best_scored, cut, draws) for cut in CUTS},
        confusion={
            street: measures.confusion(best_scored.played[rows], best_scored.sample.taken[rows])
            for street, rows in street_slices(best_scored.sample)
        },
        charts=starting_charts(best_scored),
        worst=furthest,
        stationarity=[model for model in stationary if model.agent == best_scored.sample.agent],
        sizes={
            model.candidate.name: curves
            for model in trained_models(scored)
            if not isinstance(model.candidate.player, StoredProbabilities)
            if (curves := size_curves(model.candidate.player, model.played, model.sample))
        },
        bettings=bettings_of(data, best_scored.sample, furthest)
        if data is not None and best_scored.sample.game.nolimit
        else {},
    )


def bettings_of(data: Path, sample: DecisionSample, rows: Sequence[int]) -> dict[int, str]:
    """Return the betting of some decisions' hands, as their logs have it; several decisions may be of one hand."""
    if sample.line is None:
        return {}
    wanted: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        wanted.setdefault((sample.files[int(sample.file[row])], int(sample.line[row])), []).append(row)
    bettings = {}
    for batch in hand_batches(data, ["file", "line", "betting"]):
        columns = (batch.column(name).to_pylist() for name in ("file", "line", "betting"))
        for file, line, betting in zip(*columns, strict=True):
            bettings.update(dict.fromkeys(wanted.get((file, line), ()), betting))
    return bettings


def collect_findings(
    evaluation: Evaluation,
    *,
    cross: Evaluation | None = None,
    matches: Sequence[Path] = (),
    counters: Sequence[Path] = (),
    results: Results | None = None,
    title: str | None = None,
    settings: Sequence[str] = (),
    seed: int = 0,
) -> Findings:
    """Collect the contents of the page that shows an evaluation.

    Parameters: `cross` the same models on every agent, `matches` files that `match --json` printed,
    `counters` folders that `counter` wrote, `results` a tournament, `settings` sentences for the foot of the page (date
    and command), `seed` of the bootstrap.
    """
    many = evaluation.is_population  # then the page is about all of them together
    rows = [evaluation.pooled] if many else evaluation.scored
    names = [row[0].sample.agent for row in rows]
    stationary = [] if many else stationarity_of_agents(evaluation)
    match_results = [read_match(path) for path in matches]
    facts = [
        f"{len(sample):,} decisions of {sample.agent} in {len(set(sample.file.tolist())):,} logs, "
        f"{len(set(sample.deal.tolist())):,} deals, {sample.game.name}."
        for sample in (row[0].sample for row in rows)
    ]
    facts = [*evaluation.notes, *facts]
    facts.append(f"Data {evaluation.fingerprint}, bootstrap seed {seed}.")
    return Findings(
        title=title or f"Copies of {f'{evaluation.players:,} players' if many else ' and '.join(names)}",
        agents=[
            agent_findings(row, pairs=evaluation.pairs, stationary=stationary, seed=seed, data=evaluation.data)
            for row in rows
        ],
        pooled=() if many else evaluation.pooled,
        largest=evaluation.scored if many else (),
        cross=[] if cross is None else [item for row in cross.scored for item in row],
        learning=evaluation.learning,
        features=[item for opened in evaluation.models for item in heaviest_features(opened)],
        class_columns=[item for opened in evaluation.models for item in class_columns(opened)],
        played_as={opened.candidate.name: opened.text for opened in evaluation.models},
        matches=match_results,
        counter_choices=[read_counter_choice(path) for path in counters],
        adaptations=[item for match in match_results for item in read_adaptation(match)],
        results=results,
        facts=[*facts, *settings],
    )


def stationarity_of_agents(evaluation: Evaluation) -> list[Stationarity]:
    """Compare each agent early and late and between opponents, over all its decisions on both sides of the split."""
    agents = [row[0].sample.agent for row in evaluation.scored]
    everything = read_samples(evaluation.data, agents, side=None, game=evaluation.samples[0].game.name)
    return [comparison for sample in everything for comparison in stationarity(sample)]


def heaviest_features(opened: OpenedModel, count: int = 8) -> list[StrongestFeatures]:
    """Return the features with the largest weights for each action, from the lists beside log-linear models.

    A feature's weight for an action is taken less the mean of its weights, which a softmax ignores.
    """
    if opened.bundle is None:
        return []
    path, _ = bundle_options(opened.text)
    players = 2 if opened.bundle.game is None else opened.bundle.game.players
    features = []
    for part in opened.bundle.parts:
        text = _text_beside(path, f"{part.name}.features.txt")
        lines = [line.split("\t") for line in text.splitlines()]
        if len(lines) < 2:
            continue
        named = [(line[0], np.array([float(word) for word in line[1:]])) for line in lines[1:]]
        for label, letter in enumerate(lines[0][1:]):
            heaviest = sorted(((name, float(w[label] - w.mean())) for name, w in named), key=lambda pair: -pair[1])
            features.append(StrongestFeatures(opened.candidate.name, part.name, letter, heaviest[:count], players))
    return features


def class_columns(opened: OpenedModel) -> list[ClassColumns]:
    """Return the columns that distinguish classes of hands in the models of a bundle that learned some."""
    parts = opened.bundle.parts if opened.bundle is not None else ()
    return [
        ClassColumns(opened.candidate.name, part.name, classes.column_shares())
        for part in parts
        if (classes := learned_classes(part.model)) is not None
    ]


def read_match(path: Path) -> dict[str, Any]:
    """Read a file with the output of `match --json`."""
    try:
        result = parse_json(path.read_bytes())
    except (OSError, ValueError):
        result = None
    if isinstance(result, dict) and "ci95" in result and result["ci95"] is None:
        raise PipelineError(f"{path} is a match of one deal, which has no interval: play more hands")
    kinds = {"a": str, "b": str, "hands": int, "mbb_per_hand": int | float, "ci95": int | float}
    wrong = PipelineError(f"{path} is not what `match --json` prints: write that to a file and name it with --match")
    if not isinstance(result, dict) or not all(isinstance(result.get(key), kind) for key, kind in kinds.items()):
        raise wrong
    try:
        read_adaptation(result)
    except ValueError:
        raise wrong from None
    return result


def read_counter_choice(folder: Path) -> CounterChoice:
    """Read from the manifest of a stored counter-strategy how it was chosen."""
    facts = strategy_facts(folder)
    try:
        counter = facts["counter"]
        curve = tuple(_read_worth(point) for point in counter["curve"])
        return CounterChoice(
            str(facts["against"]), str(counter["method"]), str(facts["unit"]), _read_worth(counter), curve
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise PipelineError(f"{folder} is a strategy, but not one that `counter` found") from None


def read_adaptation(result: Mapping[str, Any]) -> list[AdaptationCourse]:
    """Read the courses of a match's adaptive agents from the output of `match --json`; `ValueError` if damaged."""
    courses = []
    try:
        players = [agent["name"] for agent in result.get("agents", [])]
        for agent in result.get("adaptation", []):
            members = tuple(str(name) for name in agent["members"])
            steps = tuple(_read_step(step, len(members)) for step in agent["steps"])
            others = [str(name) for name in players if name != agent["name"]]
            courses.append(AdaptationCourse(str(agent["name"]), ", ".join(others), members, steps))
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError("its adaptation is of another kind") from None
    return courses


def adaptation_course(agent: Adaptive, players: Sequence[str]) -> AdaptationCourse:
    """Return the course of an adaptive agent in the match that it has just played with players of these names."""
    others = ", ".join(name for name in players if name != agent.name)
    return AdaptationCourse(agent.name, others, agent.portfolio.names, tuple(agent.steps))


def _read_worth(written: Mapping[str, Any]) -> Tradeoff:
    measured_at = written.get("measured_at", AGENT)  # absent from manifests of earlier versions, as are the last two
    if measured_at not in MEASURED_AT:
        raise ValueError(f"measured_at is {str(measured_at)[:40]}")
    share, won, won_half, lost, lost_half = (_finite(written[name]) for name in Tradeoff._fields[:5])
    later = [None if written.get(name) is None else _finite(written[name]) for name in Tradeoff._fields[6:]]
    return Tradeoff(share, won, won_half, lost, lost_half, measured_at, *later)


def _read_step(written: Mapping[str, Any], members: int) -> Assessment:
    """Read one step of an adaptive agent of `members` strategies from its JSON."""
    weights, gains = (tuple(_finite(value) for value in written[name]) for name in ("weights", "gains"))
    step = Assessment(
        int(_finite(written["hands"])),
        int(_finite(written["playing"])),
        weights,
        gains,
        str(written["opponent"]),
        _finite(written["likelihood"]),
    )
    if not 0 <= step.playing < members or {len(weights), len(gains)} != {members}:
        raise ValueError("its steps are not about its members")
    return step


def _finite(value: Any) -> float:
    """Return a finite number, or raise `ValueError`."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]} is no number")
    return float(value)


def _text_beside(path: Path, name: str) -> str:
    """Read a text file of a bundle's folder or zip file; empty where there is none."""
    if path.is_dir():
        return (path / name).read_text(encoding="utf-8") if (path / name).is_file() else ""
    with zipfile.ZipFile(path) as archive:
        inside = next((entry for entry in archive.namelist() if Path(entry).name == name), None)
        return archive.read(inside).decode() if inside else ""
