"""No-limit: how close copies come on held-out deals, how often they move all in, and how fast they play.

Needs the 2012 competition's logs (`--data`, folder `real`). For each agent and street after the preflop: log-loss
of counting betting, of the default and of its two parts, beside two references that LightGBM learns in the same run
from the same rows. `columns` are the plain ones of rows, action by action; `odds` are pot odds, stack-to-pot, size
faced, raises, strength, position, last aggressor and starting class. A copy is as good as the better reference if it is
within 3 %, or if the paired interval over deals holds 0.

The 2016 log and two logs of example bots, which bet at random, are small: their agents are scored on all streets after
the flop together, and only where a street has enough held-out rows.

Jams are moves all in where the stacks are more than five pots deep. Everything that was trained is stored
(`--stages`), so that a run that was stopped goes on from there. `--agent` names agents of 2012 instead of all, and
leaves out the small logs.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, Settings
from benchmarks._play import live_decision_us, match_speed
from benchmarks._stages import stored_bundle
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions
from pipeline.dataset.opening import list_agents
from pipeline.features.columns import Column
from pipeline.features.reading import RatedRows
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.models.matrix import read_matrix
from pipeline.models.measures import Bootstrap, Interval, percentile
from pipeline.models.softmax import softmax
from pipeline.models.trees import Trees
from pipeline.poker.game import builtin
from pipeline.runtime.array_types import Floats
from pipeline.runtime.extras import import_extra
from pipeline.runtime.files import replacing
from pipeline.training.config import TrainConfig
from pipeline.training.inner import choose_inner
from pipeline.training.requests import Request
from pipeline.training.streets import street_task
from pipeline.training.tasks import Task

GAME = builtin("holdem.nolimit.2p.reverse_blinds")
LOGS = "acpc2012_2pn_monotone_flops.tar.bz2"
CHOSEN = ("tartanian5", "hyperborean", "dcubot", "azure_sky")
"""the agents that features, penalties and the algorithm were chosen on"""
OTHERS = ("hugh", "neo_poker_lab", "little_rock", "lucky7_12", "sartre")
SMALL = {
    "2016": ("2016.2pn.act1_2pn_2016.hitcz_2pn_2016.0.1.log",),
    "example bots": (
        "examplebots.dmorrill10.2p.nolimit.h1000.r0.log",
        "examplebots.ethansbrown.matchName.2pn.log",
    ),
}
"""logs of few hands, all of whose agents are copied"""
FEWEST = 30
"""held-out rows that a street of them needs to be scored"""
KINDS = {"default": "default", "betting counts": "frequency"}
"""what is trained, and by which algorithm"""
PARTS = {"boosting": "boosting", "max-ent": "l-bfgs"}
"""what the default is a blend of, and by which algorithm: their scores are those that training kept, since a part
without a say is left out of the bundle"""
REFERENCES = ("columns", "odds")
SETTINGS = {
    "objective": "multiclass",
    "num_leaves": 63,
    "learning_rate": 0.08,
    "lambda_l2": 1.0,
    "feature_fraction": 0.7,
    "verbosity": -1,
    "seed": 0,
}
"""what the references tell LightGBM"""
DEEP = 5
"""all in is a jam where the stacks are at least so many pots"""
LEAST = 1e-6
ALL_IN = GAME.labels.index("a")
HANDS = 40_000
TABLE_HANDS = 20_000
"""of the speed of matches, and of those that jams are counted in"""
ROWS = 16_384
"""rows that the parts of a row are timed on"""


class Scored(NamedTuple):
    """A street's held-out rows and what each model says of them."""

    rows: Any
    taken: npt.NDArray[Any]
    deal: npt.NDArray[Any]
    chances: dict[str, Floats]
    alone: dict[str, float]
    """log-loss of the parts of the default"""

    def losses(self, name: str) -> Floats:
        """Return log-loss by row."""
        found = self.chances[name][np.arange(len(self.taken)), self.taken]
        return np.asarray(-np.log(np.maximum(found, LEAST)))


def _reference_columns(name: str, street: int) -> tuple[Column, ...]:
    """Return the columns that a reference reads."""
    strengths = [Column(part, earlier) for earlier in range(street + 1) for part in ("ihs", "ehs")]
    if name == "odds":
        few = ("odds", "stack_to_pot", "faced", "raises", "bets", "to_call", "pot", "position", "aggressor", "start")
        return (*(Column(column) for column in (*few, "previous")), *strengths)
    plain = ("street", "position", "players", "raises", "bets", "to_call", "pot", "stack", "odds", "legal", "previous")
    columns = [Column(column) for column in (*plain, "high", "low", "pattern", "flush", "name")]
    columns += [Column("rank", argument=rank) for rank in range(1, 6)]
    for earlier in range(street + 1):
        columns += [Column("act", earlier, place) for place in range(1, 7)] + [Column("ehs2", earlier)]
        columns += [Column("eighth", earlier, part) for part in range(1, 9)] if 0 < earlier < 3 else []
    return (*columns, *strengths)


def _reference(task: Task, name: str, file: Path) -> Floats:
    """Return a reference's probabilities on the validation rows; stored in a file."""
    if file.is_file():
        return np.asarray(np.load(file))
    assert task.validation is not None
    lightgbm, columns = import_extra("lightgbm"), _reference_columns(name, task.streets[0])
    values = read_matrix(task.examples.rows, columns).astype(np.float32)
    inner = choose_inner(task.examples.groups)
    targets = task.examples.targets.astype(np.int32)
    data = lightgbm.Dataset(values[~inner], targets[~inner])
    judge = data.create_valid(values[inner], targets[inner])
    settings = SETTINGS | {"num_class": len(task.labels), "num_threads": task.workers.threads}
    stop = lightgbm.early_stopping(30, verbose=False)
    booster = lightgbm.train(settings, data, 2000, valid_sets=[judge], callbacks=[stop])
    rows: Any = task.validation.rows
    answers = booster.predict(read_matrix(rows, columns).astype(np.float32), raw_score=True)
    softmax(answers, rows["legal"])
    with replacing(file) as beside, beside.open("wb") as out:
        np.save(out, answers)
    return np.asarray(answers)


def _bundle(rows: Path, folder: Path, agent: str, kind: str, workers: int) -> Path:
    """Return a bundle of an agent by one of `KINDS`; a training that was stopped goes on."""
    config = TrainConfig(workers=workers)
    out = folder / agent / kind.replace(" ", "-")
    return stored_bundle(Request(rows, out, (agent,), algorithms=(KINDS[kind],), config=config))


def _scores(rows: Path, folder: Path, agent: str, workers: int) -> Iterator[tuple[str, Scored]]:
    """Yield what all models predict of an agent's held-out rows, street by street."""
    paths = {kind: _bundle(rows, folder, agent, kind, workers) for kind in KINDS}
    bundles = {kind: load_bundle(path) for kind, path in paths.items()}
    models = {kind: bundle.models for kind, bundle in bundles.items()}
    trained = {part.name: part.about for part in bundles["default"].parts}
    request = Request(rows, folder, (agent,), config=TrainConfig(workers=workers))
    for street in range(1, GAME.rounds):
        task = street_task(request, (street,), GAME)
        held_out = task.validation
        if held_out is None or len(held_out) < FEWEST or street not in models["default"]:
            continue
        assert held_out.group is not None
        chances = {kind: np.asarray(models[kind][street].predict(held_out.rows)) for kind in KINDS}
        for name in REFERENCES:
            chances[name] = _reference(task, name, folder / agent / f"{STREETS[street]}-{name}.npy")
        losses = trained[STREETS[street]]["parts_log_loss"]
        alone = {name: float(losses[algorithm]) for name, algorithm in PARTS.items()}
        yield STREETS[street], Scored(held_out.rows, held_out.targets.astype(np.int64), held_out.group, chances, alone)


def _difference(scored: Scored, name: str, other: str) -> Interval:
    """Return the mean difference of two models' log-loss with its 95 % interval over deals."""
    means, drawn = Bootstrap(scored.deal).mean([scored.losses(name), scored.losses(other)])
    return percentile(float(means[0] - means[1]), drawn[:, 0] - drawn[:, 1])


def _street(agent: str, street: str, scored: Scored) -> list[Figure]:
    """Return a figure per model, beside the better reference."""
    losses = {name: float(scored.losses(name).mean()) for name in scored.chances}
    best = min(REFERENCES, key=losses.__getitem__)
    figures = []
    for name in (*KINDS, *REFERENCES):
        apart = _difference(scored, name, best) if name != best else Interval(0.0, 0.0, 0.0)
        unit = f"nats {apart.value:+.4f} [{apart.low:+.4f}, {apart.high:+.4f}]"
        met = name != "default" or losses[name] <= 1.03 * losses[best] or apart.low <= 0
        target = ("at most 1.03, or 0 in the interval: " + ("met" if met else "missed")) if name == "default" else ""
        title = f"{agent} {street} {name}{'' if agent in CHOSEN else ' (not chosen on)'}"
        figures.append(Figure(title, losses[name], unit, best, losses[best], losses[name] / losses[best], target))
    for name, loss in scored.alone.items():
        title = f"{agent} {street} {name} alone"
        figures.append(Figure(title, loss, "nats", best, losses[best], loss / losses[best]))
    return figures


def _small(data: Path, folder: Path, workers: int) -> list[Figure]:
    """Measure the agents of the small logs, all streets after the flop together."""
    figures = []
    for name, logs in SMALL.items():
        paths = [data / log for log in logs]
        here = folder / name.replace(" ", "-")
        if not all(path.is_file() for path in paths):
            continue
        if not (here / "rows" / "manifest.json").is_file():
            ingest(paths, here / "rows")
        for agent in list_agents(here / "rows"):
            parts = [scored for _, scored in _scores(here / "rows", here, agent, workers)]
            if parts:
                figures += _street(f"{name}: {agent}", "after the flop", _together(parts))
    return figures


def _together(parts: list[Scored]) -> Scored:
    """Return the held-out rows of several streets as one."""
    chances = {name: np.concatenate([part.chances[name] for part in parts]) for name in parts[0].chances}
    taken, deal = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    rows = [len(part.taken) for part in parts]
    alone = {name: float(np.average([part.alone[name] for part in parts], weights=rows)) for name in PARTS}
    return Scored(None, taken, deal, chances, alone)


def _is_deep(rows: Any) -> npt.NDArray[np.bool_]:
    """Return rows where stacks are more than `DEEP` pots and all in may be chosen."""
    deep = rows["effective"].astype(np.int64) > DEEP * rows["pot"].astype(np.int64)
    return np.asarray(deep & (rows["legal"] >> ALL_IN & 1 == 1))


def _jams(parts: list[Scored]) -> Figure:
    """Measure all-in mass that the default predicts on held-out deep states, beside how often the agents did it."""
    deep = [_is_deep(scored.rows) for scored in parts]
    predicted = np.concatenate(
        [scored.chances["default"][rows, ALL_IN] for scored, rows in zip(parts, deep, strict=True)]
    )
    jammed = np.concatenate([scored.taken[rows] == ALL_IN for scored, rows in zip(parts, deep, strict=True)]).astype(
        float
    )
    deal = np.concatenate([scored.deal[rows] for scored, rows in zip(parts, deep, strict=True)])
    interval = Bootstrap(deal).interval(jammed)
    share, real = 100 * float(predicted.mean()), 100 * float(jammed.mean())
    unit = f"% of {len(jammed):,} [agents {100 * interval.low:.2f} to {100 * interval.high:.2f}]"
    target = "0.5 to 2 times the agents'"
    return Figure("jams on held-out deep states", share, unit, "the agents", real, share / max(real, 1e-9), target)


def _jams_at_the_table(bundle: Path, agent: str, folder: Path) -> Figure:
    """Measure how often a copy moves all in when the stacks are deep, against @call."""
    shutil.rmtree(folder, ignore_errors=True)
    players = [resolve(str(bundle), GAME), resolve("@call", GAME)]
    match = play_match(players, GAME, hands=TABLE_HANDS, log=folder / "logs" / "match")
    ingest(match.logs, folder / "rows")
    found = load_decisions(folder / "rows", [match.names[0]], list(STREETS[1:]))
    deep = _is_deep(found.rows)
    share = 100 * float((found.action[deep] == ALL_IN).mean())
    return Figure(f"jams against @call, {agent}", share, f"% of {int(deep.sum()):,}", target="at most 0.3 %")


def _bare(rows: Any) -> Any:
    """Return rows as the arena has them, without the strengths that a dataset stores."""
    return rows.rows if isinstance(rows, RatedRows) else rows


def _by_row(bundle: Path, rows: Any) -> list[Figure]:
    """Measure CPU time of one core that a row of the river takes in each part of the default."""
    model: Any = load_bundle(bundle).models[GAME.rounds - 1]
    trees = next(part for part in model.parts if isinstance(part, Trees))
    work: dict[str, Callable[[], Any]] = {
        "columns of the trees": lambda: read_matrix(rows, trees.columns),
        "trees, columns included": lambda: trees.predict(rows),
        "the blend with max-ent": lambda: model.predict(rows),
    }
    figures = []
    for name, ask in work.items():
        ask()
        spent = []
        for _ in range(5):
            began = time.process_time()
            ask()
            spent.append(time.process_time() - began)
        figures.append(Figure(f"a river row: {name}", 1e6 * min(spent) / len(rows), "us of one core"))
    return figures


def _speed(bundle: Path, counts: Path, rows: Any) -> list[Figure]:
    """Measure hands per second of two copies beside two that count betting, the parts of a row, and a live decision."""
    (fastest, spent), (plain, plain_spent) = (
        match_speed([resolve(str(path), GAME)] * 2, GAME, HANDS) for path in (bundle, counts)
    )
    title, beside = "match of two default bundles", "two bundles that count betting"
    return [
        Figure(title, fastest, "hands/s", beside, plain, fastest / plain, "20,000 hands/s"),
        Figure("the same, per CPU second", spent, "hands/CPU s", beside, plain_spent, spent / plain_spent),
        *_by_row(bundle, rows),
        Figure(
            "a live decision, median",
            live_decision_us(resolve(str(bundle), GAME), ("r300c/", "r300c/cc/", "r300c/cc/cc/")),
            "us",
            target="500 us",
        ),
    ]


def run(settings: Settings) -> list[Figure]:
    """Measure copies of the 2012 agents, where their logs are."""
    logs = settings.corpus("real", LOGS)
    if logs is None:
        return []
    folder, workers = settings.stage("nolimit"), settings.workers
    rows = folder / "rows"
    if not (rows / "manifest.json").is_file():
        ingest([logs], rows)
    agents = settings.agents or (*CHOSEN, *OTHERS)
    figures: list[Figure] = []
    parts: list[Scored] = []
    for agent in agents:
        for street, scored in _scores(rows, folder, agent, workers):
            figures += _street(agent, street, scored)
            parts.append(scored)
        figures.append(_jams_at_the_table(folder / agent / "default", agent, folder / agent / "table"))
    if not settings.agents:
        figures += _small(logs.parent, folder, workers)
    first = folder / agents[0]
    return [*figures, _jams(parts), *_speed(first / "default", first / "betting-counts", _bare(parts[2].rows)[:ROWS])]
