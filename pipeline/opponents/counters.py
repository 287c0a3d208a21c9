"""Compute counter-strategies to anything that plays, and its exploitability: agents, bundles, and players of logs.

In: an agent, or a dataset and a player's name. Out: a counter-strategy in a folder that plays (`find_counter`), and
the most that a player who knows an agent can win from it (`exploitability`). The mathematics is in `pipeline.solving`;
here agents become strategies over its tables, logs become a copy of the player and counts of its actions, and the local
best response plays its matches. Kuhn and Leduc are solved exactly, heads-up limit hold'em over the teacher's buckets.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent, Learner
from pipeline.agents.teacher import Teacher
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.manifest import data_fingerprint, read_manifest
from pipeline.models.bundle import load_bundle
from pipeline.models.measures import half_width
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, dealer_of, with_rivers
from pipeline.solving.counter import (
    HALF,
    MAX_RESPONSE_DEALS,
    BucketSetting,
    Counter,
    Evidence,
    Setting,
    SmallSetting,
    check_method,
    choose_counter,
    count_small,
    estimate_evidence,
    join_with_equilibrium,
)
from pipeline.solving.holdem import ClusterWorkers, Dealer
from pipeline.solving.lookup import bucket_rows, project_on_buckets, tabulate
from pipeline.solving.strategy import (
    StoredStrategy,
    check_strategy_target,
    dequantise,
    quantise,
    save_small_strategy,
    save_strategy,
)
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

MIN_HANDS = 50
"""hands of a player that its logs must have"""
HANDS_PER_BUCKET = (2, 2, 2, 1)
"""hands of each bucket, by street, with which an agent is asked for its play: those of a river bucket are alike"""
LOCAL_HANDS = 2_000
"""hands that the local best response plays"""


@dataclass(frozen=True)
class Search:
    """Settings of the search for a counter-strategy."""

    method: str = "rnr"
    share: float | None = None
    """trust in the model, 0 to 1; None chooses it by `risk`"""
    risk: float = 100.0
    """exploitability above the equilibrium's, in mbb/h or milli-antes"""
    half: float = HALF
    """a decision that logs show n times is trusted at n / (n + half) of the times"""
    deals: int = 4_000_000
    """in hold'em, for each seat of each answer"""
    seed: int = 1
    workers: int = 2
    cluster: Cluster | None = None
    """whose workers learn in hold'em, instead of threads here"""

    def __post_init__(self) -> None:
        check_method(self.method, self.share)


@dataclass(frozen=True)
class Exploitability:
    """The most that a player who knows an agent can win from it."""

    agent: str
    game: str
    exploitability: float
    """exact, or the larger of the lower bounds"""
    unit: str
    exact: bool
    ci95: float
    method: str
    seconds: float

    def json(self) -> dict[str, Any]:
        """Return the object that `exploit --json` prints; an infinite interval is null."""
        return asdict(self) | {"ci95": self.ci95 if math.isfinite(self.ci95) else None}


def against_agent(
    agent: Agent, search: Search, *, folder: Path | None = None, progress: Progress = no_progress
) -> Setting:
    """Return the setting of a counter to an agent, whose strategy is asked for at every decision."""
    _check_game(agent.game)
    _check_fixed(agent)
    if search.method == "dbr":
        raise PipelineError("a data-biased response is found from logs; an agent's strategy is known: name rnr or best")
    if agent.game.hole_cards == 1:
        return SmallSetting(agent.game, Evidence(tabulate(agent.probabilities, agent.game)))
    teacher, tables = _teacher(agent.game)
    return _bucket_setting(teacher, tables, Evidence(_project(agent, teacher, tables, progress)), search, folder)


def against_player(
    data: Path, name: str, search: Search, *, folder: Path, game: str | None = None, progress: Progress = no_progress
) -> Setting:
    """Return the setting of a counter to a player of logs: by counts in small games, by a trained copy in hold'em.

    Parameters: `game` names one where the player's logs are of several.
    """
    rows = load_decisions(data, [name], game=game)
    _check_game(rows.game)
    hands = len(np.unique(np.stack([rows.file.astype(np.int64), rows.line.astype(np.int64)]), axis=1).T)
    if hands < MIN_HANDS:
        raise PipelineError(f"{data} has {hands} hands of {name}: at least {MIN_HANDS} are needed to say how it plays")
    if rows.game.hole_cards == 2:
        _check_streets(data, name, rows)
    if rows.game.hole_cards == 1:
        prior = tabulate(resolve("@teacher", rows.game).probabilities, rows.game)
        counted = estimate_evidence(count_small(rows.game, rows.rows, rows.action), prior)
        return SmallSetting(rows.game, replace(counted, half=search.half))
    teacher, tables = _teacher(rows.game)
    agent_copy = _train_copy(data, name, rows, folder / "copy")
    copy_strategy, stored, is_known = _project(agent_copy, teacher, tables, progress), teacher.stored, rows.known
    places = bucket_rows(stored.layout, tables, rows.rows[is_known])
    evidence = join_with_equilibrium(
        stored.layout, copy_strategy, dequantise(stored.steps), places, rows.action[is_known], rows.validation[is_known]
    )
    return _bucket_setting(teacher, tables, replace(evidence, half=search.half), search, folder / "work")


def find_counter(
    setting: Setting,
    search: Search,
    out: Path,
    *,
    facts: dict[str, Any],
    progress: Progress = no_progress,
) -> Counter:
    """Choose a counter-strategy and store it in `out`, a folder that plays; `facts` go into its manifest.

    Nothing but an empty folder or a stored strategy is replaced.
    """
    check_strategy_target(out)
    counter = choose_counter(setting, search.method, share=search.share, risk=search.risk, progress=progress)
    about = {**facts, "counter": counter.json(), "unit": setting.unit, "equilibrium_added": setting.evidence.added}
    with replacing(out) as target:
        if isinstance(setting, SmallSetting):
            save_small_strategy(target, setting.game, counter.strategy, about)
        else:
            assert isinstance(setting, BucketSetting)
            stored = _teacher(setting.layout.game)[0].stored
            steps = quantise(counter.strategy)
            save_strategy(target, setting.layout, steps, flop=stored.flop, turn=stored.turn, facts=about)
    return counter


def exploitability(
    agent: Agent,
    text: str,
    *,
    deals: int = MAX_RESPONSE_DEALS,
    hands: int = LOCAL_HANDS,
    seed: int = 1,
    progress: Progress = no_progress,
) -> Exploitability:
    """Compute what a player who knows an agent can win from it: exactly in small games, lower bounds in hold'em.

    Parameters: `text`, the agent's name as the local best response resolves it; `deals` on which the best response over
    buckets is trained; `hands` that the local best response plays.
    """
    began, game = time.monotonic(), agent.game
    _check_fixed(agent)
    if game.players != 2:
        raise PipelineError(f"{game.name}: what can be won from an agent is found in games of two players")
    exact = game.hole_cards == 1
    if exact:
        setting = SmallSetting(game, Evidence(tabulate(agent.probabilities, game)))
        worth = setting.measure(setting.evidence.model, 0.0)
        bounds = [(worth.exploitability, 0.0, "best response")]
    else:
        bounds = [_local_best_response(agent, text, hands, seed)]
        if not game.nolimit:
            bounds.append(_bucket_best_response(agent, deals, seed, progress))
    value, half, method = max(bounds, key=lambda bound: bound[0] - bound[1])  # few hands may show much by chance
    if value < 0:  # nobody need play who would lose
        value, half, method = 0.0, 0.0, "no response that wins was found"
    unit = setting.unit if exact else "mbb/h"
    return Exploitability(agent.name, game.name, value, unit, exact, half, method, time.monotonic() - began)


def _local_best_response(agent: Agent, text: str, hands: int, seed: int) -> tuple[float, float, str]:
    """Return the local best response's win in a match, with half its interval."""
    response = resolve(f"@lbr:{text}", agent.game, trusted=True)
    samples = play_match([response, agent], agent.game, hands=hands, seed=seed, adjusted=True).best_samples_mbb[:, 0]
    return float(samples.mean()), half_width(samples), "local best response"


def _bucket_best_response(agent: Agent, deals: int, seed: int, progress: Progress) -> tuple[float, float, str]:
    """Return the win of a best response over the teacher's buckets, with half its interval."""
    teacher, tables = _teacher(agent.game)
    strategy = _project(agent, teacher, tables, progress)
    setting = _bucket_setting(teacher, tables, Evidence(strategy), Search(seed=seed), None)
    loss = setting.exploited(strategy, deals, progress)
    return loss.mbb, loss.ci95, "best response over buckets"


def _check_game(game: Game) -> None:
    """Raise an error for a game in which no counters are computed."""
    if game.players != 2 or game.nolimit or not (game.is_holdem or game.hole_cards == 1):
        raise PipelineError(
            f"{game.name}: counter-strategies are found in Kuhn, Leduc and limit hold'em for two players, not here"
        )


def _check_fixed(agent: Agent) -> None:
    """Raise an error for an agent that learns in a match: its first play is not its strategy."""
    if isinstance(agent, Learner):
        raise PipelineError(
            f"{agent.name} learns from hand to hand: only an agent that plays one strategy can be answered"
        )


def _check_streets(data: Path, name: str, rows: Decisions) -> None:
    """Raise an error for logs that train no copy: a street that was never seen or always played alike."""
    for number, street in enumerate(STREETS[: rows.game.rounds]):
        where = f"on the {street}" if number else "before the flop"
        actions = rows.action[rows.known & (rows.rows["street"] == number)]
        if len(actions) == 0:
            raise PipelineError(f"{data} shows no decision of {name} {where}: a copy of it needs every street")
        if (actions == actions[0]).all():
            raise PipelineError(
                f"{name} does the same in all {len(actions):,} decisions {where} that {data} shows: "
                "no copy can be trained from that"
            )


def _teacher(game: Game) -> tuple[Teacher, Buckets]:
    """Return the solved strategy whose buckets are used, and these with the rivers that dealing needs."""
    teacher = resolve("@teacher", game)
    assert isinstance(teacher, Teacher)
    return teacher, with_rivers(teacher.tables)


def _project(agent: Agent, teacher: Teacher, tables: Buckets, progress: Progress) -> Array:
    """Return an agent's play as a strategy over the teacher's buckets."""
    if isinstance(agent, Teacher) and _same_buckets(agent.stored, teacher.stored):
        return dequantise(agent.stored.steps)
    return project_on_buckets(
        agent.probabilities, teacher.stored.layout, tables, samples=HANDS_PER_BUCKET, progress=progress
    )


def _same_buckets(first: StoredStrategy, second: StoredStrategy) -> bool:
    """Return whether two strategies are over the same buckets."""
    same = np.array_equal(first.flop, second.flop) and np.array_equal(first.turn, second.turn)
    return same and first.layout.sizes == second.layout.sizes


def _bucket_setting(
    teacher: Teacher, tables: Buckets, evidence: Evidence, search: Search, folder: Path | None
) -> BucketSetting:
    stored, cluster = teacher.stored, search.cluster
    return BucketSetting(
        stored.layout,
        tables,
        evidence,
        dequantise(stored.steps),
        (stored.flop, stored.turn),
        search.deals,
        search.seed,
        search.workers if cluster is None else ClusterWorkers(cluster, dealer_for, (teacher.game,)),
        folder,
    )


def dealer_for(game: Game) -> Dealer:
    """Return the dealer of the buckets in which counters are computed, as a worker of a cluster makes it."""
    return dealer_of(_teacher(game)[1])


def _train_copy(data: Path, name: str, rows: Decisions, folder: Path) -> Agent:
    """Train a copy of a player as `train` does by default; take one as it is that an earlier run finished."""
    if not _is_copy(folder, data, name, rows.game):
        train_bundles(Request(data, folder, agents=(name,), streets=STREETS, game=rows.game.name))
    return resolve(str(folder), rows.game)


def _is_copy(folder: Path, data: Path, name: str, game: Game) -> bool:
    """Return whether a folder holds a finished copy of a player from the same data."""
    if not (folder / "manifest.json").is_file():
        return False
    bundle = load_bundle(folder)
    same_data = bundle.about.get("data") == data_fingerprint(read_manifest(data))
    return same_data and bundle.game == game and bundle.agents == (name,) and not bundle.missing
