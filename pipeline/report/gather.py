"""From names on the command line to scores: opens models and data, refuses what does not fit, runs the evaluation.

A model is a bundle's folder or zip file (with options, as everywhere), a folder of bundles, or a built-in `@agent`. It
is scored on the agents it imitates, or on those named. A bundle must be of the data's game and labels (its features
are checked as it is opened) and must have been trained with the same split, so that no validation row was ever trained
on; with all rows, the data must not be what it was trained on.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents import bundle_options, resolve
from pipeline.dataset import load, read_manifest
from pipeline.errors import PipelineError, nearest
from pipeline.evaluate import Candidate, Pair, Scored, paired, score_all
from pipeline.evaluate.baselines import baselines
from pipeline.evaluate.inspection import CUTS, Stationarity, breakdown, stationarity
from pipeline.evaluate.samples import Sample, read_samples
from pipeline.files import Progress, quiet
from pipeline.game import Game, parse_game
from pipeline.measures import Bootstrap
from pipeline.models.bundle import MANIFEST, Bundle, load_bundle
from pipeline.policy import Policy, check_game, load_policy
from pipeline.report.build import Features, Findings, best
from pipeline.report.learning import Learning, learning_curve
from pipeline.selection import Entry
from pipeline.tournament import Results
from pipeline.train import data_fingerprint

__all__ = [
    "Evaluation",
    "Opened",
    "curve_of",
    "entries",
    "evaluate_models",
    "findings",
    "measures_of",
    "open_models",
    "strongest",
]


@dataclass(frozen=True)
class Opened:
    """A model ready to be scored; built-in agents have no bundle."""

    candidate: Candidate
    text: str
    bundle: Bundle | None = None


@dataclass(frozen=True)
class Evaluation:
    """All scores, agent by agent."""

    data: Path
    models: list[Opened]
    scored: list[list[Scored]]
    pairs: list[Pair] = field(default_factory=list)

    @property
    def samples(self) -> list[Sample]:
        """The decisions scored on, by agent."""
        return [scored[0].sample for scored in self.scored]


def _bundles(text: str) -> list[str]:
    """A bundle, or all bundles in a folder of them."""
    path = Path(text)
    if text.startswith("@") or not path.is_dir() or (path / MANIFEST).is_file():
        return [text]
    found = sorted(str(inner) for inner in path.iterdir() if (inner / MANIFEST).is_file())
    if not found:
        raise PipelineError(f"{path} is no bundle and holds none: name what `train --out` wrote")
    return found


def algorithm_of(bundle: Bundle) -> str:
    """How a bundle's models were trained."""
    named = [str(part.about.get("algorithm", "?")) for part in bundle.parts if part.name != "chart"]
    return "+".join(dict.fromkeys(named)) or "chart"


def _open(text: str, game: Game) -> Opened:
    if text.startswith("@"):
        return Opened(Candidate(text, text, (), resolve(text, game)), text)
    path, options = bundle_options(text)
    bundle = load_bundle(path)
    check_game(bundle, path, game)
    streets = tuple(sorted({street for part in bundle.parts for street in part.streets}))
    if not streets:
        raise PipelineError(f"{path} holds no model: train it again")
    if len(streets) == game.rounds or options:
        player = load_policy(path, options, game=game)
        if not {"mode", "threshold"} & set(options):  # the whole mix, thin labels included
            player = replace(player, threshold=0.0)
    else:
        some = bundle.models[streets[0]]
        player = Policy(path.name, game, tuple(bundle.models.get(street, some) for street in range(game.rounds)))
    return Opened(Candidate(text, algorithm_of(bundle), bundle.agents, player, streets), text, bundle)


def _name(opened: Sequence[Opened]) -> list[Opened]:
    """Short names that tell the models apart: the algorithm, else the folder, else what was typed."""
    for name in (
        lambda one: one.candidate.algorithm,
        lambda one: Path(one.text.partition(":")[0]).name + "".join(one.text.partition(":")[1:]),
        lambda one: one.text,
    ):
        names = [name(one) for one in opened]
        if len(set(names)) == len(names):
            break
    else:
        raise PipelineError(f"{next(name for name in names if names.count(name) > 1)} is given twice")
    return [
        Opened(
            Candidate(name, one.candidate.algorithm, one.candidate.agents, one.candidate.player, one.candidate.streets),
            one.text,
            one.bundle,
        )
        for name, one in zip(names, opened, strict=True)
    ]


def open_models(texts: Sequence[str], game: Game) -> list[Opened]:
    """The models that are named, each with a short name of its own."""
    return _name([_open(bundle, game) for text in texts for bundle in _bundles(text)])


def check_split(opened: Opened, manifest: dict[str, Any], data: Path, all_rows: bool) -> None:
    """Refuse a bundle that may have been trained on the rows to score."""
    if opened.bundle is None:
        return
    about = opened.bundle.about
    if all_rows:
        if about.get("data") == data_fingerprint(manifest):
            raise PipelineError(f"{opened.text} was trained on {data}: leave out --all-rows to score the held-out rows")
        return
    split = manifest["options"].get("validation") or []
    trained = about.get("options", {}).get("validation") or []
    if trained != split:
        raise PipelineError(
            f"{opened.text} was trained with {_said(trained)} held out, {data} holds out {_said(split)}: "
            "some of its rows may have been trained on; ingest with the same --validation, or add --all-rows if the "
            "model has never seen these logs"
        )


def _said(split: Sequence[str]) -> str:
    return f"the files {', '.join(split)}" if split else "one deal in ten"


def evaluate_models(
    data: Path,
    texts: Sequence[str],
    *,
    agents: Sequence[str] = (),
    all_rows: bool = False,
    probabilities: Sequence[Path] = (),
    game: str | None = None,
    cross: bool = False,
    with_baselines: bool = True,
    seed: int = 0,
    progress: Progress = quiet,
) -> Evaluation:
    """Score every model on the decisions of the agents it imitates (or of all agents, with `cross`)."""
    manifest = read_manifest(data)
    played = _game(manifest, data, game)
    models = open_models(texts, played)
    known = sorted({file["agent"] for part in manifest["parts"] for file in part["files"] if "agent" in file})
    for one in models:
        check_split(one, manifest, data, all_rows)
    wanted = list(agents) or _imitated(models, known, data, cross)
    samples = read_samples(
        data, wanted, side=None if all_rows else "validation", truths=probabilities, game=played.name
    )
    scored = []
    for done, sample in enumerate(samples):
        progress(done, len(samples))
        mine = [
            one.candidate
            for one in models
            if cross or agents or not one.candidate.agents or sample.agent in one.candidate.agents
        ]
        if with_baselines:
            rows, taken = sample.rows[:0], sample.taken[:0]
            if not all_rows:  # counts need rows that are not scored on
                side = load(data, [sample.agent], side="train", game=played.name)
                rows, taken = side.rows, side.action
            mine += baselines(sample.agent, sample.labels, rows, taken)
        scored.append(score_all(mine, sample, seed=seed))
    progress(len(samples), len(samples))
    trained = [[one for one in row if one.candidate.algorithm != "baseline"] for row in scored]
    return Evaluation(data, models, scored, [pair for row in trained for pair in paired(row, seed=seed)])


def strongest(opened: Opened, count: int = 8) -> list[Features]:
    """What speaks loudest for each action, from the lists that training leaves beside log-linear models.

    A feature speaks for an action as much as its weight there exceeds the mean of its weights.
    """
    if opened.bundle is None:
        return []
    path, _ = bundle_options(opened.text)
    found = []
    for part in opened.bundle.parts:
        text = _beside(path, f"{part.name}.features.txt")
        lines = [line.split("\t") for line in text.splitlines()]
        if len(lines) < 2:
            continue
        named = [(line[0], np.array([float(word) for word in line[1:]])) for line in lines[1:]]
        for label, letter in enumerate(lines[0][1:]):
            loud = sorted(((name, float(w[label] - w.mean())) for name, w in named), key=lambda pair: -pair[1])
            found.append(Features(opened.candidate.name, part.name, letter, loud[:count]))
    return found


def findings(
    found: Evaluation,
    *,
    cross: Evaluation | None = None,
    learning: Sequence[Learning] = (),
    matches: Sequence[Path] = (),
    results: Results | None = None,
    title: str | None = None,
    seed: int = 0,
) -> Findings:
    """All that the page shows of an evaluation."""
    agents = " and ".join(sample.agent for sample in found.samples)
    top = best(found.scored[0])
    draws = Bootstrap(top.sample.deal, seed=seed)
    facts = [
        f"{len(sample):,} decisions of {sample.agent} in {len(set(sample.file.tolist())):,} logs, "
        f"{len(set(sample.deal.tolist())):,} deals."
        for sample in found.samples
    ]
    return Findings(
        title=title or f"Copies of {agents}",
        scored=found.scored,
        pairs=found.pairs,
        parts={cut: breakdown(top, cut, draws) for cut in CUTS},
        cross=[] if cross is None else [one for row in cross.scored for one in row],
        stationarity=changes(found),
        learning=learning,
        features=[one for opened in found.models for one in strongest(opened)],
        matches=[_match(path) for path in matches],
        results=results,
        facts=facts,
    )


def changes(found: Evaluation) -> list[Stationarity]:
    """Whether the agents play the same early and late and against everyone, over all their decisions, both sides."""
    agents = [sample.agent for sample in found.samples]
    everything = read_samples(found.data, agents, side=None, game=found.samples[0].game.name)
    return [one for sample in everything for one in stationarity(sample)]


def curve_of(found: Evaluation, progress: Progress = quiet) -> list[Learning]:
    """The learning curve of the first bundle."""
    for opened in found.models:
        for sample in found.samples:
            if opened.bundle is not None and sample.agent in opened.bundle.agents:
                name = opened.candidate.name
                return learning_curve(opened.bundle, found.data, sample, name=name, progress=progress)
    raise PipelineError("a learning curve needs a trained bundle, and decisions of the agent it imitates")


def _match(path: Path) -> dict[str, Any]:
    """What `match --json` printed."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        said = None
    if not isinstance(said, dict) or not {"a", "b", "hands", "mbb_per_hand", "ci95"} <= set(said):
        raise PipelineError(f"{path} is not what `match --json` prints")
    return said


def _beside(path: Path, name: str) -> str:
    """A text file of a bundle's folder or zip file, empty where there is none."""
    if path.is_dir():
        return (path / name).read_text(encoding="utf-8") if (path / name).is_file() else ""
    with zipfile.ZipFile(path) as archive:
        inside = next((entry for entry in archive.namelist() if Path(entry).name == name), None)
        return archive.read(inside).decode() if inside else ""


def _game(manifest: dict[str, Any], data: Path, name: str | None) -> Game:
    """The game of a dataset; one of several must be named."""
    games = manifest["games"]
    if name is None and len(games) != 1:
        raise PipelineError(f"{data} holds {len(games)} games ({', '.join(sorted(games))}): name one with --game")
    chosen = name or next(iter(games))
    if chosen not in games:
        raise PipelineError(f"{data} has no decisions of game {chosen!r}{nearest(chosen, games)}")
    return parse_game(games[chosen], chosen)


def _imitated(models: Sequence[Opened], known: Sequence[str], data: Path, cross: bool) -> list[str]:
    """The agents of the data that the models imitate; all of them for built-in agents and cross tables."""
    if cross:
        return list(known)
    imitated = {agent for one in models for agent in one.candidate.agents}
    found = [agent for agent in known if agent in imitated]
    if found or not imitated:
        return found or list(known)
    missing = sorted(imitated)[0]
    raise PipelineError(f"{data} has no decisions of {missing}{nearest(missing, known)}: name an agent with --agent")


def entries(texts: Sequence[str]) -> list[Entry]:
    """The bundles that take part in a selection."""
    found = []
    for text in (bundle for given in texts for bundle in _bundles(given)):
        if text.startswith("@"):
            raise PipelineError(f"{text} is no trained model: name it with --weak if it is to be exploited")
        path, given = bundle_options(text)
        bundle = load_bundle(path)
        joint = any(len(part.streets) > 1 for part in bundle.parts)
        patterns = sorted({str(part.about.get("pattern", "")) for part in bundle.parts})
        found.append(Entry(text, bundle.agents, algorithm_of(bundle), joint, variant=f"{given} {patterns}"))
    return found


def measures_of(
    data: Path, texts: Sequence[str], probabilities: Sequence[Path], all_rows: bool, seed: int
) -> dict[str, dict[str, float]]:
    """Every measure by model, over all streets, averaged over the agents that any of the models imitates."""
    agents = sorted({agent for entry in entries(texts) for agent in entry.corpus})
    found = evaluate_models(
        data,
        texts,
        agents=agents,
        all_rows=all_rows,
        probabilities=probabilities,
        with_baselines=False,
        seed=seed,
    )
    text = {one.candidate.name: one.text for one in found.models}
    values: dict[str, dict[str, list[float]]] = {}
    for one in (scored for row in found.scored for scored in row):
        last = one.scores[-1]
        for name, interval in {**last.measures, **last.distance}.items():
            values.setdefault(name, {}).setdefault(text[one.candidate.name], []).append(interval.value)
    return {name: {model: float(np.mean(each)) for model, each in by.items()} for name, by in values.items()}
