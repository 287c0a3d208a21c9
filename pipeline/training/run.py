"""Decisions in, a bundle out: a model per street, or one for all streets after the flop, and a starting-hand chart.

`train_bundles` reads the rows of one agent, or of several together, from a dataset that `ingest` wrote, and trains
every requested algorithm on every requested street. With one algorithm the output folder is the bundle, with several
each has its own in a folder named after it. `train_text` does the same for text rows, which know neither streets nor
legal actions: one model.

Each finished street is kept on disk at once (see `training.growing`), and the state of an optimiser now and then (see
`training.loop`). Ctrl-C, a kill or a crash therefore lose little: the same request goes on where it was and ends with
the bytes of an undisturbed run. Ctrl-C also leaves a bundle with the finished streets, which names those that are
missing.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import select_rows
from pipeline.dataset.manifest import IngestedLog, Manifest, data_fingerprint, read_manifest
from pipeline.dataset.raises import raise_pieces
from pipeline.features.patterns import Pattern, is_default, parse_pattern, pattern_for
from pipeline.features.textrows import content_sha256, read_rows
from pipeline.models.bundle import CHART, Bundle, StreetModel, check_target, load_bundle, save_bundle
from pipeline.models.charts import Chart
from pipeline.models.loglinear import LogLinear
from pipeline.models.policy import chart_records, find_chart
from pipeline.models.prior import PriorTimesFeatures
from pipeline.models.sizes import Sizes, has_amounts, is_history_game
from pipeline.models.trained_on import (
    Digests,
    TrainedOn,
    check_trained_on,
    name_digests,
    name_logs,
    own_logs,
    with_borrowed,
)
from pipeline.poker.game import Game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.files import sha256
from pipeline.runtime.parallel import Workers
from pipeline.runtime.progress import NO_CALLBACKS, Callbacks
from pipeline.runtime.version import __version__
from pipeline.training.growing import GrowingBundle, resume_mark, strongest_features
from pipeline.training.loop import Context, Interrupts, discard_checkpoint, scores
from pipeline.training.maxent import WITH_PRIORS
from pipeline.training.prior import OpenPrior, merge_ranges, open_named_priors
from pipeline.training.requests import Request, Result, add_comparisons, remarks_on
from pipeline.training.rows import PreflopCounts, count_preflop
from pipeline.training.sizing import fit_history_sizes, fit_sizes, history_raises, raises_of
from pipeline.training.streets import OpenRequest, Street, check_for_cluster, openings
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import (
    DEFAULT,
    algorithm_for,
    check_algorithm,
    check_settings,
    corpora_for,
    train_model,
)

ALL = "all"
FOLDS_EXPECTED = 500
"""decisions before the flop from which on a player who never folds is remarked upon"""
MAX_WITHOUT = 6
"""agents from which on a sentence does not list them all as options"""
TEACHER, TEACHER_GAME = "@teacher", "holdem.limit.2p.reverse_blinds"
"""the agent whose play supports an agent's own few rows, and the game it plays"""


def train_bundles(
    request: Request, callbacks: Callbacks = NO_CALLBACKS, cluster: Cluster | None = None
) -> list[Result]:
    """Train every algorithm on every street and write the bundles.

    Parameters: `callbacks` are called after each iteration and when reading, encoding or writing begins; `cluster`
    whose workers hold the rows: the bundles are the same to the byte (see `training.sharded`). Returns a
    result per model, in the order of streets and algorithms. A Ctrl-C within an iteration gives an interrupted result
    as the last; elsewhere `KeyboardInterrupt` goes on to the caller. In both cases what is finished is on disk, and the
    same request goes on from there.
    """
    _check_request(request)
    manifest = read_manifest(request.data)
    callbacks.of(STREETS[0]).stage("reading rows")
    selected = select_rows(request.data, request.agents or None, [STREETS[0]], game=request.game)
    game, agents = selected.game, selected.agents
    if request.without:
        agents = _leave_out(request, agents)
        request = replace(request, agents=agents, without=())
    request = _with_teacher(_resolve_defaults(replace(request, game=game.name), game), request, agents)
    if cluster is not None:
        check_for_cluster(request)
    open_priors = open_named_priors(request.priors, game)
    borrowed = _borrowed(request, open_priors)
    unknown = _check_borrowed(borrowed, request, manifest, agents)
    preflop = count_preflop(request, game, cluster)
    chart = _chart(request, preflop)
    unseen = (*_unknown_cards_remark(request, preflop), *_no_fold_remark(game, preflop), *unknown)
    played = merge_ranges(preflop.range(game), open_priors)
    scopes = _streets_by_scope(request.streets or (STREETS[: game.rounds] if chart is None else ()), game)
    charts = () if chart is None else (StreetModel(CHART, (0,), chart, {"algorithm": "chart"}),)
    about = {"data": data_fingerprint(manifest), "options": asdict(manifest.options), **played}
    amounts = _fit_amounts(request, game, callbacks.of(ALL))
    records = with_borrowed(TrainedOn.of(manifest, agents), borrowed)
    head = Bundle(game, tuple(game.labels), agents, charts, about, sizes=amounts, trained_on=records)
    growing = {
        name: GrowingBundle(
            _path(request, name), head, tuple(scopes), _resume_mark(request, name, head, chart, open_priors)
        )
        for name in request.algorithms
    }
    results: list[Result] = []
    with Interrupts() as interrupts:
        try:
            opened = OpenRequest(request, game, open_priors, Context(callbacks, interrupts), cluster)
            for scope, streets in scopes.items():
                for result in _train_street(opened, scope, streets, growing):
                    results.append(replace(result, remarks=(*result.remarks, *unseen)))
                    if result.trained.interrupted:
                        return results
            with interrupts.hold():
                for bundle in growing.values():
                    callbacks.of(ALL).stage("writing")
                    bundle.finish()
        except KeyboardInterrupt:
            for bundle in growing.values():
                bundle.interrupt()
            raise
    return results


def _train_street(
    opened: OpenRequest, scope: str, streets: tuple[int, ...], growing: Mapping[str, GrowingBundle]
) -> list[Result]:
    """Train a street's model by each algorithm that has not finished it yet, until one is interrupted."""
    request, interrupts = opened.request, opened.context.interrupts
    results = {
        name: Result.from_account(bundle.finished[scope], bundle.head.agents, bundle.path)
        for name, bundle in growing.items()
        if scope in bundle.finished
    }
    results = {name: replace(result, remarks=remarks_on(result, request)) for name, result in results.items()}
    pending = [name for name in request.algorithms if name not in results]
    is_interrupted = False
    for names, opening in openings(opened, scope, streets, pending):
        with opening as street:
            for name in names:
                bundle = growing[name]
                callbacks = opened.context.callbacks.of(scope, name)
                context = Context(callbacks, interrupts, bundle.checkpoint(scope))
                result = _train(name, scope, street, bundle.head.agents, bundle.path, context)
                results[name] = replace(result, remarks=remarks_on(result, request))
                part = StreetModel(scope, streets, result.trained.model, result.account(request))
                texts = strongest_features(scope, result.trained, street.task)
                is_interrupted = result.trained.interrupted
                with interrupts.hold():
                    callbacks.stage("writing")
                    if is_interrupted:
                        bundle.interrupt(part, texts)
                        break
                    bundle.add(part, texts)
                if interrupts.requested:
                    raise KeyboardInterrupt
        if is_interrupted:
            break
    return add_comparisons([results[name] for name in request.algorithms if name in results])


def _train(name: str, scope: str, street: Street, agents: tuple[str, ...], path: Path, context: Context) -> Result:
    """Train one model of a street and time it."""
    start = time.perf_counter()
    trained = train_model(name, street.task, street.corpora, context)
    seconds, sizes = time.perf_counter() - start, (street.rows, street.validation_rows)
    return Result(scope, name, agents, *sizes, seconds, path, trained, street.baseline)


def train_text(request: Request, callbacks: Callbacks = NO_CALLBACKS) -> list[Result]:
    """Train every algorithm on text rows; write the bundles, each as soon as it is finished."""
    _check_request(request)
    if set(request.priors) - {"none"}:
        raise PipelineError("text rows do not say what happened, so no prior can be asked: leave out --prior")
    if request.agents or request.without or request.streets:
        raise PipelineError("text rows know neither agents nor streets: leave out --agent, --without and --street")
    request = _resolve_defaults(request, None)
    request = replace(request, config=replace(request.config, patience=request.config.patience or 0))
    callbacks = callbacks.of(ALL)
    callbacks.stage("reading rows")
    rows = read_rows(request.data)
    validation_rows = read_rows(request.validation_file, rows.labels) if request.validation_file else None
    validation = None if validation_rows is None else Examples(validation_rows, validation_rows.action)
    config = request.config
    task = Task(
        Examples(rows, rows.action, rows.first),
        validation,
        request.pattern,
        rows.labels,
        (),
        config,
        Workers(config.workers),
    )
    results = []
    with Interrupts() as interrupts:
        corpora = corpora_for(request.algorithms, task, callbacks)
        street = Street(task, corpora, len(rows), 0 if validation_rows is None else len(validation_rows))
        for name in request.algorithms:
            path = _path(request, name)
            checkpoint = path.with_name(f".{path.name}.{ALL}.checkpoint")
            results.append(
                _train(name, ALL, street, (), path, Context(callbacks.of(ALL, name), interrupts, checkpoint))
            )
            part = StreetModel(ALL, (), results[-1].trained.model, results[-1].account(request))
            with interrupts.hold():
                callbacks.stage("writing")
                data = content_sha256(request.data)
                records = (TrainedOn.of_text(data),)
                save_bundle(path, Bundle(None, rows.labels, (), (part,), {"data": data}, trained_on=records))
            if results[-1].trained.interrupted:
                break
            discard_checkpoint(checkpoint)
    return results


def score_text(data: Path, bundles: Sequence[Path], *, allow_overlap: bool = False) -> list[dict[str, Any]]:
    """Score models of text rows on other text rows, in the form that `evaluate --json` prints.

    A model that was trained on the very rows, compressed or not, is refused, unless `allow_overlap`; `overlap` says so
    then.
    """
    scored = []
    file = IngestedLog(str(data), content_sha256(data), sha256(data))  # bundles of earlier versions have the latter
    for path in bundles:
        bundle = load_bundle(path)
        if bundle.game is not None:
            raise PipelineError(f"{path} was trained on decision rows: it cannot read the text rows of {data}")
        is_shared = any(record.shared([file]) for record in bundle.trained_on)
        if is_shared and not allow_overlap:
            raise PipelineError(
                f"{path} was trained on {data}: score it on other rows, or add --allow-overlap to score it all the same"
            )
        is_known = is_shared or all(record.is_complete for record in bundle.trained_on)
        rows = read_rows(data, bundle.labels)
        for part in bundle.parts:
            error, log_loss = scores(part.model.predict(rows), rows.action)
            facts = {"model": str(path), "algorithm": part.about["algorithm"], "agent": None, "street": part.name}
            nulls = dict.fromkeys(("floor_error", "floor_log_loss", "kl", "tv"))
            overlap = int(is_shared) if is_known else None
            scored.append(facts | {"rows": len(rows), "error": error, "log_loss": log_loss, "overlap": overlap} | nulls)
    return scored


def pattern_of_model(part: StreetModel) -> Pattern:
    """Return the pattern that a model of a bundle was trained with, to train the model again."""
    if part.about.get("pattern"):
        return parse_pattern(str(part.about["pattern"]), part.name)
    model = part.model.own if isinstance(part.model, PriorTimesFeatures) else part.model
    if isinstance(model, LogLinear):
        return model.features.pattern
    raise PipelineError(f"the model {part.name} does not say which pattern it was trained with")


def _check_request(request: Request) -> None:
    """Refuse what could only fail after hours."""
    for algorithm in request.algorithms:
        if algorithm == DEFAULT:
            continue
        check_algorithm(algorithm)
        if set(request.priors) - {"none"} and algorithm not in WITH_PRIORS:
            raise PipelineError(f"{algorithm} cannot start from a prior: {', '.join(WITH_PRIORS)} can")
        check_target(_path(request, algorithm))


def _resolve_defaults(request: Request, game: Game | None) -> Request:
    """Replace `default` by the algorithms and the pattern that it stands for in a game (None: text rows)."""
    priors = tuple(name for name in request.priors if name != "none")
    is_free = is_default(request.pattern) and not priors
    named = (algorithm_for(name, game, is_free) for name in request.algorithms)
    pattern = request.pattern if game is None else pattern_for(request.pattern, game)
    resolved = replace(request, algorithms=tuple(dict.fromkeys(named)), pattern=pattern, priors=priors)
    check_settings(resolved.algorithms, resolved.config, game, pattern)
    _check_request(resolved)
    return resolved


def _with_teacher(request: Request, asked: Request, agents: Sequence[str]) -> Request:
    """Add the built-in teacher as a prior to the default of limit hold'em for two, unless the teacher is imitated."""
    is_default_blend = asked.algorithms == (DEFAULT,) and request.algorithms == ("blend",) and not asked.priors
    if is_default_blend and request.game == TEACHER_GAME and TEACHER.removeprefix("@") not in agents:
        return replace(request, priors=(TEACHER,))
    return request


def _resume_mark(
    request: Request, algorithm: str, head: Bundle, chart: Chart | None, open_priors: Sequence[OpenPrior]
) -> str:
    """Hash what must be the same for a run to go on where another was interrupted."""
    counts = None if chart is None else [chart.words.tolist(), hashlib.sha256(chart.counts.tobytes()).hexdigest()]
    return resume_mark(
        {
            "version": __version__,
            "algorithm": algorithm,
            "about": head.about,
            "game": head.game.text if head.game else None,
            "agents": head.agents,
            "streets": request.streets,
            "templates": repr(request.pattern.templates),
            "chart": counts,
            "config": request.config.to_json(),
            **({"priors": [[one.name, one.digest] for one in open_priors]} if open_priors else {}),
        }
    )


def _streets_by_scope(names: Sequence[str], game: Game) -> dict[str, tuple[int, ...]]:
    """Return the streets of each model to train, by the model's name."""
    names_known = STREETS[: game.rounds]
    for name in names:
        if name not in (*names_known, ALL):
            raise PipelineError(f"{game.name} has no street {name!r}{nearest(name, (*names_known, ALL))}")
    later = tuple(range(1, game.rounds))
    if not names and not later:
        names = STREETS[:1]
    return {name: later if name == ALL else (STREETS.index(name),) for name in names or STREETS[1 : game.rounds]}


def _leave_out(request: Request, agents: Sequence[str]) -> tuple[str, ...]:
    """Return the agents to imitate but those that the request leaves out."""
    for name in request.without:
        if name not in agents:
            raise PipelineError(f"--without {name}: there are no decisions of {name!r}{nearest(name, agents)}")
    chosen = tuple(name for name in agents if name not in request.without)
    if not chosen:
        raise PipelineError(f"--without {' --without '.join(request.without)} leaves no agent to imitate")
    return chosen


def _borrowed(request: Request, open_priors: Sequence[OpenPrior]) -> list[tuple[str, str, tuple[TrainedOn, ...]]]:
    """Return role, name and records of all that the request takes from others' rows: priors, and a named chart."""
    borrowed = [("prior", prior.name, prior.bundle.trained_on) for prior in open_priors if prior.bundle is not None]
    if request.chart is not None:
        borrowed += [("chart", str(request.chart), chart_records(request.chart))]
    return [(role, name, records) for role, name, records in borrowed if records]


def _check_borrowed(
    borrowed: Sequence[tuple[str, str, tuple[TrainedOn, ...]]],
    request: Request,
    manifest: Manifest,
    agents: Sequence[str],
) -> tuple[str, ...]:
    """Refuse priors and charts that know rows which they must not know; return remarks on what they do not say."""
    remarks: list[str] = []
    for role, name, records in borrowed:
        subject = f"the {role} {name}"
        leave_out = f"or leave out --{role} {name}"
        exposure = check_trained_on(
            *(records, subject, manifest, request.data),
            split_remedy=f"ingest its logs with the same --validation, --hold-out and --alias, {leave_out}",
            log_remedy=f"these are held out here, train it on others {leave_out}",
        )
        remarks += exposure.unknown
        if role != "prior":
            continue
        players = name_digests(agents, manifest.options.alias)
        imitated = ", ".join(agents[:3]) + (f" and {len(agents) - 3:,} more" if len(agents) > 3 else "")
        if logs := own_logs(records, manifest, agents):
            names = _own_names(Path(name), players)
            words = " ".join(f"--without {shlex.quote(agent)}" for agent in names)
            others = any(not np.isin(record.players, players).all() for record in records)
            raise PipelineError(
                f"{subject} has learned from the rows of {imitated} in {name_logs(logs)}, and the folds that choose its"
                " strength would hold out hands that it knows: train it "
                + (f"again with {words}" if others and 0 < len(names) < MAX_WITHOUT else "on other logs")
            )
        if any(not record.is_complete and np.isin(players, record.players).any() for record in records):
            remarks.append(f"It is unknown whether {subject} has learned from these rows of {imitated}.")
    return tuple(remarks)


def _own_names(path: Path, players: Digests) -> list[str]:
    """Return the agents of a bundle who are some players, by the names that its own dataset gives them."""
    bundle = load_bundle(path)
    aliases = (bundle.about.get("options") or {}).get("alias")
    aliases = aliases if isinstance(aliases, dict) else {}
    return [agent for agent in bundle.agents if np.isin(name_digests([agent], aliases), players).any()]


def _chart(request: Request, preflop: PreflopCounts) -> Chart | None:
    """Return the chart that the request names, else the one counted from the training rows."""
    if request.chart is None:
        return preflop.chart
    if not request.chart.is_dir() and request.chart.suffix != ".zip":
        return find_chart(request.chart)
    chart = load_bundle(request.chart).chart
    if not isinstance(chart, Chart):
        raise PipelineError(f"{request.chart} has no chart: name a chart's text file or a bundle with one")
    return chart


def _fit_amounts(request: Request, game: Game, callbacks: Callbacks) -> Sizes | None:
    """Fit the amounts that the agents bet, from the training rows of all streets."""
    if is_history_game(game):
        callbacks.stage("reading amounts")
        raises = history_raises(raise_pieces(request.data, request.agents or None, game=request.game))
        return fit_history_sizes(game, *raises)
    if not has_amounts(game):
        return None
    callbacks.stage("reading amounts")
    pieces = select_rows(request.data, request.agents or None, game=request.game).pieces()
    return fit_sizes(game, *raises_of(piece for _, piece in pieces))


def _unknown_cards_remark(request: Request, preflop: PreflopCounts) -> tuple[str, ...]:
    """Return a remark if a pattern reads cards that are unknown in a part of the rows."""
    if not request.pattern.reads_cards or preflop.known == preflop.rows:
        return ()
    share = preflop.known / preflop.rows
    return (
        f"cards are known in {share:.1%} of the preflop decisions, most of them shown at the end of a hand: the rows"
        " used are no random sample, folded hands are missing; `--pattern betting` uses all rows",
    )


def _no_fold_remark(game: Game, preflop: PreflopCounts) -> tuple[str, ...]:
    """Warn of hold'em logs without a fold before the flop, which may hold only hands that saw one."""
    chart = preflop.chart if game.is_holdem else None  # Kuhn and Leduc have no flop by which hands are selected
    if chart is None or preflop.rows < FOLDS_EXPECTED or chart.counts[..., chart.labels.index("f")].any():
        return ()
    return (
        f"there is no fold in {preflop.rows:,} decisions before the flop: where the logs hold only hands that saw one,"
        " the copy never folds there and its winnings say little",
    )


def _path(request: Request, algorithm: str) -> Path:
    return request.out / algorithm if len(request.algorithms) > 1 else request.out
