"""Evaluation of models from their names: open models and data, refuse what does not fit, score.

In go a dataset's folder and the models' names, out comes an `Evaluation`: every model scored on the agents it imitates,
or on those named, with baselines beside. Where there are several agents their decisions are also scored together. With
all rows instead of the held-out ones, the data must not be what a model was trained on. On a cluster each worker scores
one model on one agent's decisions at a time, with the same draws; it opens both by their paths.

A model is written as everywhere: a bundle's folder or zip file, with options, or a built-in `@agent`; a folder of
bundles stands for all of them. Tables show a model under the name of its folder, with as much of the path before it as
tells it apart, beside what it was made with: pattern and algorithm. A bundle must be of the data's game and labels (its
features are checked as it is opened) and must have been trained with the same split, so that no row it is scored on was
ever trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.agents.names import bundle_options, comes_with_package, is_bundle, resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import with_absolute_path
from pipeline.dataset.manifest import Manifest, data_fingerprint, read_manifest
from pipeline.dataset.opening import list_agents
from pipeline.evaluation.baselines import baselines, count_baselines
from pipeline.evaluation.samples import DecisionSample, read_samples, with_known_cards
from pipeline.evaluation.scoring import (
    BASELINE,
    Candidate,
    ModelScore,
    PairedDifference,
    Scored,
    answers,
    bound_floors,
    paired_differences,
    pool_scores,
    score_all,
    sort_by_street,
)
from pipeline.features.patterns import parse_pattern, pattern_name
from pipeline.models.artifacts import MANIFEST
from pipeline.models.bundle import Bundle, load_bundle
from pipeline.models.policy import Policy, chart_records, check_game, load_policy
from pipeline.models.trained_on import TrainedOn, check_trained_on, lent_records, name_logs
from pipeline.poker.game import Game, parse_game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.extras import import_extra
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.tabular import Tabular

if TYPE_CHECKING:
    from pipeline.evaluation.retraining import LearningCurve
    from pipeline.runtime.pictures import Picture


@dataclass(frozen=True)
class OpenedModel:
    """A model ready to be scored; built-in agents have no bundle."""

    candidate: Candidate
    text: str
    """its name as typed"""
    bundle: Bundle | None = None
    trained_on: tuple[TrainedOn, ...] = ()
    """records of the rows behind it, those behind a chart that its options name included"""
    notes: tuple[str, ...] = ()
    """sentences on rows that it is scored on and has, or may have, learned from"""

    @property
    def reads_cards(self) -> bool:
        """Return whether a model of the bundle looks at cards."""
        patterns = [part.about.get("pattern") for part in self.bundle.parts] if self.bundle is not None else []
        return any(parse_pattern(str(pattern), self.text).reads_cards for pattern in patterns if pattern)


LISTED_AGENTS = 20
"""agents up to which each is scored by itself, unless they are named; of more the largest are, and all together"""
KNOWN_CARDS = (
    "Scored on {:,} of {:,} decisions, those whose cards are known: most were shown at the end of a hand, so they are"
    " no random sample."
)


def bundles_in(text: str) -> list[str]:
    """Return the path of each bundle in a folder of bundles, or any other model's name as it is."""
    path = Path(text)
    if text.startswith("@") or not path.is_dir() or (path / MANIFEST).is_file():
        return [text]
    bundles = sorted(str(inner) for inner in path.iterdir() if (inner / MANIFEST).is_file())
    if not bundles:
        raise PipelineError(f"{path} is no bundle and holds none: name what `train --out` wrote")
    return bundles


def algorithm_of(bundle: Bundle) -> str:
    """Return the algorithms of a bundle's models, such as `l-bfgs`; `chart` where it holds nothing else."""
    named = [str(part.about.get("algorithm", "?")) for part in bundle.parts if part.name != "chart"]
    return "+".join(dict.fromkeys(named)) or "chart"


def pattern_of(bundle: Bundle) -> str:
    """Return the name of the pattern of a bundle's features: one that comes with the package, else `its own`."""
    texts = [str(part.about["pattern"]) for part in bundle.parts if part.about.get("pattern")]
    return "+".join(dict.fromkeys(pattern_name(text) for text in texts))


def _open(text: str | Agent, game: Game, trusted: bool) -> OpenedModel:
    """Open one model, a bundle or a built-in agent, as a candidate for scores in `game`."""
    if not isinstance(text, str):
        if isinstance(text, Policy):
            raise PipelineError(
                f"{text.name} does not say which logs its bundle was trained on: name the bundle's path, with its "
                "options behind it, as in `out/copy:mode=argmax`"
            )
        if not np.array_equal(text.game.rules, game.rules):
            raise PipelineError(f"{text.name} plays {text.game.name}, and these decisions are of {game.name}")
        return OpenedModel(Candidate(text.name, text.name, (), text), text.name)
    if not is_bundle(text):
        return OpenedModel(Candidate(text, text, (), resolve(text, game, trusted=trusted)), text)
    path, options = bundle_options(text)
    bundle = load_bundle(path)
    check_game(bundle, path, game)
    if bundle.missing:
        raise PipelineError(bundle.describe_missing(path))
    streets = tuple(sorted({street for part in bundle.parts for street in part.streets}))
    if not streets:
        raise PipelineError(f"{path} holds no model: train it again")
    if len(streets) == game.rounds or options:
        player = load_policy(path, options, game=game)
        if not {"mode", "threshold"} & set(options):  # the whole mix, as the models have it
            player = replace(player, threshold=0.0, all_in=None)
    else:
        # any model stands in for the streets without one: their rows are not scored (`Candidate.streets`)
        any_model = bundle.models[streets[0]]
        order = tuple(bundle.models.get(street, any_model) for street in range(game.rounds))
        player = Policy(path.name, game, order, sizes=bundle.sizes)
    candidate = Candidate(text, algorithm_of(bundle), bundle.agents, player, streets, pattern_of(bundle))
    chart = options.get("chart", "own")
    lent = () if chart in ("own", "model") else lent_records("chart", chart, chart_records(Path(chart)))
    return OpenedModel(candidate, text, bundle, (*bundle.trained_on, *lent))


def short_names(texts: Sequence[str]) -> list[str]:
    """Shorten each path to its last parts, as few as distinguish all of them; options and @agents stay as they are."""
    for count in range(1, 1 + max(len(Path(text).parts) for text in texts)):
        names = []
        for text in texts:
            path, colon, options = ("", "", text) if not is_bundle(text) else text.partition(":")
            short = "/".join(Path(path).parts[-count:]).removesuffix(".zip") if path else ""
            names.append(short + colon + options if options or not path else short)
        if len(set(names)) == len(names):
            return names
    raise PipelineError(f"{next(name for name in names if names.count(name) > 1)} is given twice")


def open_models(texts: Sequence[str | Agent], game: Game, trusted: bool = False) -> list[OpenedModel]:
    """Open the models that are named; a folder of bundles gives all of them.

    Parameters: `texts` as typed, or agents themselves, `game` the game of the decisions to score on, `trusted` where a
    person wrote the names on the command line (see `agents.resolve`). Returns the models in that order.
    """
    named = [bundle for text in texts for bundle in (bundles_in(text) if isinstance(text, str) else [text])]
    opened = [_open(model, game, trusted) for model in named]
    names = short_names([model.text for model in opened])
    return [
        replace(model, candidate=replace(model.candidate, name=name)) for name, model in zip(names, opened, strict=True)
    ]


@dataclass(frozen=True)
class Scope:
    """Which decisions of a dataset to score on: by default the held-out ones of the agents that the models imitate."""

    agents: Sequence[str] = ()
    """score on the decisions of these agents instead"""
    all_rows: bool = False
    """score on both sides of the split: for data that no model was trained on"""
    probabilities: Sequence[Path] = ()
    """files of the agents' true probabilities"""
    game: str | None = None
    """the name of one of several games"""
    allow_overlap: bool = False
    """score on logs that a model was trained on all the same, and say so"""


def check_split(opened: OpenedModel, manifest: Manifest, data: Path, scope: Scope) -> OpenedModel:
    """Refuse a bundle that may have been trained on the rows to score; return it with notes on what was accepted."""
    if opened.bundle is None and not comes_with_package(opened.text):
        note = f"It is unknown whether {opened.text} was made from logs of {data}."
        return replace(opened, candidate=replace(opened.candidate, overlap=None), notes=(note,))
    exposure = check_trained_on(
        opened.trained_on,
        opened.text,
        manifest,
        data,
        split_remedy="ingest with the same --validation, --hold-out and --alias, or add --all-rows if the model has"
        " never seen these logs",
        log_remedy=("leave out --all-rows to score the held-out rows" if scope.all_rows else "hold out other files")
        + ", or add --allow-overlap to score it all the same",
        all_rows=scope.all_rows,
        allow_overlap=scope.allow_overlap,
    )
    notes = exposure.unknown
    if exposure.shared:
        logs = name_logs(exposure.shared)
        notes = (f"{opened.text} was trained on {logs} of {data}, which it is scored on: it looks too good.", *notes)
    return replace(opened, candidate=replace(opened.candidate, overlap=exposure.overlap), notes=notes)


@dataclass(frozen=True, repr=False)
class Evaluation(Tabular):
    """Scores of models on the held-out decisions of agents."""

    data: Path
    models: list[OpenedModel]
    scored: list[list[Scored]]
    """by agent: every candidate on its decisions"""
    pairs: list[PairedDifference] = field(default_factory=list)
    pooled: list[Scored] = field(default_factory=list)
    """every candidate on the decisions of all agents; empty where there is only one"""
    fingerprint: str = ""
    """a hash of the logs and options that the data was made from"""
    all_rows: bool = False
    """of both sides of the split"""
    learning: Sequence[LearningCurve] = ()
    """of the first bundle, where that was asked for"""
    remarks: tuple[str, ...] = ()
    """sentences on the rows that were scored"""
    players: int = 0
    """agents whose decisions are in `pooled`"""

    @property
    def notes(self) -> list[str]:
        """Return sentences on the rows scored on: which are left out, which a model has, or may have, learned from."""
        return list(dict.fromkeys([*self.remarks, *(note for model in self.models for note in model.notes)]))

    @property
    def is_population(self) -> bool:
        """Return whether there are too many players to score each by itself: `scored` has the largest of them."""
        return self.players > len(self.scored)

    def shown(self, by_player: bool = False) -> list[list[Scored]]:
        """Return the scores to print: those on all agents together, then by agent; of a population only `by_player`."""
        return [*([self.pooled] if self.pooled else []), *(self.scored if by_player or not self.is_population else [])]

    @property
    def samples(self) -> list[DecisionSample]:
        """Return the decisions scored on, by agent."""
        return [scored[0].sample for scored in self.scored]

    @property
    def scores(self) -> list[ModelScore]:
        """Return a score per model, agent and street, agent by agent; those of all agents together last."""
        return [
            score for agent_scores in (*self.scored, self.pooled) for model in agent_scores for score in model.scores
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat dictionary per score: values and the ends of intervals."""
        return [score.row() for score in self.scores]

    def plot(self) -> Picture:
        """Return a picture: per agent error and log-loss with intervals and floors, calibration, learning curves."""
        import_extra("matplotlib")
        from pipeline.evaluation.pictures import draw_evaluation

        return draw_evaluation(self)

    def json(self) -> list[dict[str, Any]]:
        """Return the list that `evaluate --json` prints."""
        curves = {(curve.model, curve.agent, curve.street): curve.json() for curve in self.learning}
        rows = [score.json() for score in self.scores]
        return [row | {"learning_curve": curves.get((row["model"], row["agent"], row["street"]))} for row in rows]

    def __repr__(self) -> str:
        models = dict.fromkeys(score.model for score in self.scores)
        agents = dict.fromkeys(score.agent for score in self.scores)
        return f"<Evaluation of {', '.join(models)} on {', '.join(agents)}: {len(self.scores)} scores>"


def trained_models(scored: Sequence[Scored]) -> list[Scored]:
    """Return the candidates that are no baselines."""
    return [model for model in scored if model.candidate.algorithm != BASELINE]


def best_model(scored: Sequence[Scored]) -> Scored:
    """Return the model with the lowest log-loss over all its rows; a baseline only where there is nothing else."""
    return min(trained_models(scored) or scored, key=lambda model: model.scores[-1].measures["log_loss"].value)


def evaluate_models(
    data: Path,
    texts: Sequence[str | Agent],
    scope: Scope | None = None,
    *,
    cross: bool = False,
    with_baselines: bool = True,
    seed: int = 0,
    trusted: bool = False,
    cluster: Cluster | None = None,
    progress: Progress = no_progress,
) -> Evaluation:
    """Score every model on the held-out decisions of the agents it imitates, or on those of `scope`.

    Parameters: `data` a dataset's folder, `texts` the models as typed or objects that play, `scope` which decisions,
    `cross` to score every model on every agent, `with_baselines` to score guesses from counts beside the models, `seed`
    of the bootstrap, `trusted` where a person wrote the models' names on the command line (see `agents.resolve`),
    `cluster` whose workers score models, with the same result. Returns an `Evaluation`.
    """
    scope = scope or Scope()
    manifest = read_manifest(data)
    game = _game(manifest, data, scope.game)
    models = open_models(texts, game, trusted)
    agents_of_data = list_agents(data)
    models = [check_split(model, manifest, data, scope) for model in models]
    agents = list(scope.agents) or _imitated(models, agents_of_data, data, cross)
    side = None if scope.all_rows else "validation"
    samples = read_samples(data, agents, side=side, truths=scope.probabilities, game=game.name)
    rows = sum(map(len, samples))
    reads_cards = any(model.reads_cards for model in models)
    if reads_cards:
        samples = with_known_cards(samples)
    known_rows = sum(map(len, samples))
    if known_rows == 0:
        raise PipelineError(f"{data} has no decisions with known cards: train with --pattern betting to use the others")
    remarks = () if known_rows == rows else (KNOWN_CARDS.format(known_rows, rows),)
    chosen = [
        [
            model
            for model in models
            if cross or scope.agents or not model.candidate.agents or sample.agent in model.candidate.agents
        ]
        for sample in samples
    ]
    task = _ScoringTask(
        data.resolve(), side, tuple(path.resolve() for path in scope.probabilities), game, seed, reads_cards
    )
    remote = None if cluster is None else _score_on_cluster(cluster, task, samples, chosen, trusted)
    names = [sample.agent for sample in samples] if with_baselines else []
    if scope.all_rows and with_baselines:  # counts need rows that are not scored on
        counted = [baselines(sample.agent, game.labels, sample.rows[:0], sample.taken[:0]) for sample in samples]
    else:
        counted = count_baselines(data, names, game, with_cards=reads_cards) if names else []
    listed = set(range(len(samples)))
    if len(samples) > LISTED_AGENTS and not scope.agents:
        listed = set(sorted(listed, key=lambda number: -len(samples[number]))[:LISTED_AGENTS])
    rows_of_scores, steps = [], len(samples) + (len(samples) > 1)
    for index, sample in enumerate(samples):
        progress(index, steps)
        candidates = [model.candidate for model in chosen[index]] if remote is None else []
        candidates += counted[index] if counted else []
        scores = score_all(candidates, sample, seed=seed) if index in listed else answers(candidates, sample)
        rows_of_scores.append(scores if remote is None else bound_floors([*remote[index], *scores]))
    progress(len(samples), steps)
    pooled_scores = pool_scores(rows_of_scores, seed=seed) if len(samples) > 1 else []
    progress(steps, steps)
    scored = [rows_of_scores[index] for index in sorted(listed)]
    pairs = [pair for agent_scores in scored for pair in paired_differences(trained_models(agent_scores), seed=seed)]
    fingerprint = data_fingerprint(manifest)
    return Evaluation(
        data, models, scored, pairs, pooled_scores, fingerprint, scope.all_rows, remarks=remarks, players=len(samples)
    )


@dataclass(frozen=True)
class _ScoringTask:
    """The data, side, true probabilities and seed that a worker of a cluster scores models with."""

    data: Path
    side: str | None
    truths: tuple[Path, ...]
    game: Game
    seed: int
    reads_cards: bool


def _score_on_cluster(
    cluster: Cluster,
    task: _ScoringTask,
    samples: Sequence[DecisionSample],
    chosen: Sequence[Sequence[OpenedModel]],
    trusted: bool,
) -> list[list[Scored]]:
    """Score the models chosen for each sample on the workers of a cluster."""
    items = [
        (task, sample.agent, with_absolute_path(model.text), model.candidate.name, model.candidate.overlap, trusted)
        for sample, models in zip(samples, chosen, strict=True)
        for model in models
    ]
    answers = iter(cluster.map(_score_one, items))
    return [
        [replace(next(answers), candidate=model.candidate, sample=sort_by_street(sample)) for model in models]
        for sample, models in zip(samples, chosen, strict=True)
    ]


@lru_cache(maxsize=1)
def _sample(task: _ScoringTask, agent: str) -> DecisionSample:
    """Read the decisions of one agent, once in this process for all models."""
    samples = read_samples(task.data, [agent], side=task.side, truths=task.truths, game=task.game.name)
    (sample,) = with_known_cards(samples) if task.reads_cards else samples
    return sample


def _score_one(item: tuple[_ScoringTask, str, str, str, int | None, bool]) -> Scored:
    """Score one model on a worker; sample and model are left out of the answer, because the caller has them."""
    task, agent, text, name, overlap, trusted = item
    (opened,) = open_models([text], task.game, trusted)
    sample = _sample(task, agent)
    (scored,) = score_all([replace(opened.candidate, name=name, overlap=overlap)], sample, seed=task.seed)
    placeholder = Candidate(name, "", (), None)  # type: ignore[arg-type]
    return replace(scored, candidate=placeholder, sample=sample.take(np.arange(0)))


def _game(manifest: Manifest, data: Path, name: str | None) -> Game:
    """Return the game of a dataset; one of several must be named."""
    games = manifest.games
    if name is None and len(games) != 1:
        raise PipelineError(f"{data} holds {len(games)} games ({', '.join(sorted(games))}): name one with --game")
    chosen = name or next(iter(games))
    if chosen not in games:
        raise PipelineError(f"{data} has no decisions of game {chosen!r}{nearest(chosen, games)}")
    return parse_game(games[chosen], chosen)


def _imitated(models: Sequence[OpenedModel], agents_of_data: Sequence[str], data: Path, cross: bool) -> list[str]:
    """Return the agents of the data that the models imitate; all of them for built-in agents and cross tables."""
    if cross:
        return list(agents_of_data)
    imitated = {agent for model in models for agent in model.candidate.agents}
    present = [agent for agent in agents_of_data if agent in imitated]
    if present or not imitated:
        return present or list(agents_of_data)
    missing = sorted(imitated)[0]
    raise PipelineError(
        f"{data} has no decisions of {missing}{nearest(missing, agents_of_data)}: name an agent with --agent"
    )
