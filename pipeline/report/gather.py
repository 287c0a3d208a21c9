"""From names on the command line to scores: opens models and data, refuses what does not fit, runs the evaluation.

A model is a bundle's folder or zip file (with options, as everywhere), a folder of bundles, or a built-in `@agent`. It
is scored on the agents it imitates, or on those named. A bundle must be of the data's game and labels (its features
are checked as it is opened) and must have been trained with the same split, so that no validation row was ever trained
on; with all rows, the data must not be what it was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.agents import bundle_options, resolve
from pipeline.baselines import baselines
from pipeline.dataset import load, read_manifest
from pipeline.errors import PipelineError, nearest
from pipeline.evaluate import Candidate, Pair, Scored, paired, score_all
from pipeline.files import Progress, quiet
from pipeline.game import Game
from pipeline.models.bundle import MANIFEST, Bundle, load_bundle
from pipeline.policy import Policy, check_game
from pipeline.samples import Sample, read_samples

__all__ = ["Evaluation", "Opened", "evaluate_models", "open_models"]


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
        player = resolve(text, game)
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
        mine = manifest.get("fingerprint")
        if mine and about.get("data") == mine:
            raise PipelineError(f"{opened.text} was trained on {data}: leave out --all-rows to score the held-out rows")
        return
    split = manifest["options"].get("validation") or []
    trained = about.get("split") or []
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
    cross: bool = False,
    with_baselines: bool = True,
    seed: int = 0,
    progress: Progress = quiet,
) -> Evaluation:
    """Score every model on the decisions of the agents it imitates (or of all agents, with `cross`)."""
    manifest = read_manifest(data)
    game = load(data, agents or None, ["preflop"], "train").game
    models = open_models(texts, game)
    known = sorted({file["agent"] for part in manifest["parts"] for file in part["files"] if "agent" in file})
    for one in models:
        check_split(one, manifest, data, all_rows)
    wanted = list(agents) or _imitated(models, known, data, cross)
    samples = read_samples(data, wanted, side=None if all_rows else "validation", truths=probabilities)
    scored = []
    for done, sample in enumerate(samples):
        progress(done, len(samples))
        mine = [
            one.candidate
            for one in models
            if cross or agents or not one.candidate.agents or sample.agent in one.candidate.agents
        ]
        if with_baselines:
            side = load(data, [sample.agent], side="train")
            mine += baselines(sample.agent, sample.labels, side.rows, side.action)
        scored.append(score_all(mine, sample, seed=seed))
    progress(len(samples), len(samples))
    trained = [[one for one in row if one.candidate.algorithm != "baseline"] for row in scored]
    return Evaluation(data, models, scored, [pair for row in trained for pair in paired(row, seed=seed)])


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
