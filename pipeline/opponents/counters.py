"""Compute counter-strategies to anything that plays, and its exploitability: agents, bundles, and players of logs.

In: an agent, or a dataset and a player's name. Out: a counter-strategy in a folder that plays (`find_counter`), and
the most that a player who knows an agent can win from it (`exploitability`). The mathematics is in `pipeline.solving`;
here agents become strategies over its tables, logs become a copy of the player and counts of its actions, and responses
play their matches. Kuhn and Leduc are solved exactly, heads-up limit hold'em over the teacher's buckets.

An agent that does not play over these buckets is projected on them: it is asked how it plays `HANDS_PER_BUCKET` hands
of each. Responses are trained against the projection, but judged in matches against the agent itself: what wins from
the projection may lose to the agent, because hands of one bucket that the agent plays differently look like a mixture.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from pipeline.agents.lbr import LocalResponse
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent, Learner, draws_actions, estimated_mixes
from pipeline.agents.teacher import Teacher
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.manifest import data_fingerprint, read_manifest
from pipeline.models.bundle import load_bundle
from pipeline.models.measures import Estimate, half_width
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, dealer_of, with_rivers
from pipeline.solving.counter import (
    DEFAULT_HALF,
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
from pipeline.solving.layout import HeadToHead
from pipeline.solving.lookup import SmallTeacher, bucket_rows, project_on_buckets, tabulate
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
DRAWN_HANDS_PER_BUCKET = (8, 8, 8, 4)
"""the same of an agent that draws its actions itself: their mean is the estimate of its mix"""
SMALL_ASKED_TIMES = 400
"""how often such an agent is asked at each decision of a small game"""
LOCAL_HANDS = 2_000
"""hands that the local best response plays"""
TABLE_HANDS = 60_000
"""hands of a match that judges a strategy over buckets against an agent that does not play over them"""
CONFIDENCE = 0.95
"""how likely a lower bound is to hold, whichever of the responses it is that of"""


@dataclass(frozen=True)
class Search:
    """Settings of the search for a counter-strategy."""

    method: str = "rnr"
    share: float | None = None
    """trust in the model, 0 to 1; None chooses it by `risk`"""
    risk: float = 100.0
    """exploitability above the equilibrium's, in mbb/h or milli-antes"""
    half: float = DEFAULT_HALF
    """a decision that logs show n times is trusted at n / (n + half) of the times"""
    deals: int = 4_000_000
    """in hold'em, for each seat of each answer"""
    seed: int = 1
    workers: int = 2
    table_hands: int = TABLE_HANDS
    """in hold'em, of each match that measures winnings from an agent"""
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
    """exact, or what the response that surely wins most won from the agent"""
    unit: str
    exact: bool
    ci95: float
    method: str
    seconds: float
    at_least: float
    """the lower end of a one-sided interval that holds with `CONFIDENCE`, the choice of the response included; the
    value itself where it is exact, and 0 where nothing surely wins"""
    over_buckets: float | None = None
    """what the best response over buckets wins from the agent's projection, which bounds nothing; None where no such
    response was trained or the agent itself plays over the buckets"""
    over_buckets_ci95: float | None = None
    response: Agent | None = field(default=None, repr=False, compare=False)
    """who won that; None in small games and where nothing wins"""

    def json(self) -> dict[str, Any]:
        """Return the object that `counter --judge --json` prints; an infinite interval is null."""
        flat = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "response"}
        flat |= Estimate.around(self.exploitability, self.ci95).ends_json()
        half = math.inf if self.over_buckets_ci95 is None else self.over_buckets_ci95
        return flat | Estimate.around(self.over_buckets or 0.0, half).ends_json("over_buckets_")


@dataclass(frozen=True)
class _Judged:
    """A response and what it won from an agent."""

    response: Agent
    method: str
    won: HeadToHead

    def lower_end(self, responses: int) -> float:
        """Return the lower end of a one-sided interval that holds for all of the `responses` together."""
        if not math.isfinite(self.won.ci95):
            return -math.inf
        deviations = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / responses)  # Bonferroni's correction
        return self.won.mbb - self.won.ci95 * deviations / NormalDist().inv_cdf(0.975)


def against_agent(
    agent: Agent, search: Search, *, folder: Path | None = None, progress: Progress = no_progress
) -> Setting:
    """Return the setting of a counter to an agent, whose strategy is asked for at every decision."""
    _check_game(agent.game)
    _check_fixed(agent)
    if search.method == "dbr":
        raise PipelineError("a data-biased response is found from logs; an agent's strategy is known: name rnr or best")
    if agent.game.hole_cards == 1:
        return SmallSetting(agent.game, Evidence(_tabulated(agent)))
    teacher, tables = _teacher(agent.game)
    setting = _bucket_setting(teacher, tables, Evidence(_project(agent, teacher, tables, progress)), search, folder)
    if _plays_over_buckets(agent, teacher):
        return setting
    return replace(setting, at_table=partial(_at_table, teacher, agent, search.table_hands))


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
            steps = quantise(counter.strategy, 0.0)  # it has been rounded when it was measured
            save_strategy(target, setting.layout, steps, flop=stored.flop, turn=stored.turn, facts=about)
    return counter


def exploitability(
    agent: Agent,
    *,
    deals: int = MAX_RESPONSE_DEALS,
    hands: int = LOCAL_HANDS,
    table_hands: int = TABLE_HANDS,
    seed: int = 1,
    workers: int = 2,
    progress: Progress = no_progress,
) -> Exploitability:
    """Compute what a player who knows an agent can win from it: exactly in small games, a lower bound in hold'em.

    Parameters
    ----------
    deals: on which the best response over buckets is trained, in limit hold'em.
    hands: that the local best response plays.
    table_hands: that the best response over buckets plays against an agent that does not play over them.
    workers: threads of the training; with 1 the same seed gives the same result.

    Returns
    -------
    The winnings of the response whose lower bound is highest, and that bound.
    """
    began, game = time.monotonic(), agent.game
    _check_fixed(agent)
    if game.players != 2:
        raise PipelineError(f"{game.name}: what can be won from an agent is found in games of two players")
    if game.hole_cards == 1:
        setting = SmallSetting(game, Evidence(_tabulated(agent)))
        if draws_actions(agent):
            answer = SmallTeacher(f"response-{agent.name}", game, setting.answer("best", 1.0))
            chips = game.big_blind  # a match is in parts of the big blind
            won = HeadToHead(*(chips * value for value in _match(answer, agent, table_hands, seed)))
            judged = [_Judged(answer, "best response to its frequencies", won)]
            return _surely_best(agent, judged, None, setting.unit, began)
        worth = setting.measure(setting.evidence.model, 0.0)
        value = worth.exploitability
        return Exploitability(
            *(agent.name, game.name, value, setting.unit, True, 0.0, "best response", time.monotonic() - began),
            at_least=value,
        )
    local = LocalResponse.to(agent, f"lbr-{agent.name}")
    judged = [_Judged(local, "local best response", _match(local, agent, hands, seed))]
    over_buckets: HeadToHead | None = None
    if not game.nolimit:
        by_buckets, over_buckets = _bucket_best_response(agent, deals, table_hands, seed, workers, progress)
        judged.append(by_buckets)
    return _surely_best(agent, judged, over_buckets, "mbb/h", began)


def _surely_best(
    agent: Agent, judged: list[_Judged], over_buckets: HeadToHead | None, unit: str, began: float
) -> Exploitability:
    """Return what the response won that surely wins most, and the lower bound that follows."""
    # of several responses the one that surely wins most: few hands may show much by chance
    best = max(judged, key=lambda one: (one.lower_end(len(judged)), one.won.mbb))
    found = Exploitability(
        *(agent.name, agent.game.name, best.won.mbb, unit, False, best.won.ci95, best.method),
        seconds=time.monotonic() - began,
        at_least=max(0.0, best.lower_end(len(judged))),
        over_buckets=None if over_buckets is None else over_buckets.mbb,
        over_buckets_ci95=None if over_buckets is None else over_buckets.ci95,
        response=best.response,
    )
    if found.exploitability >= 0:
        return found
    # a player who would lose need not play
    return replace(found, exploitability=0.0, ci95=0.0, method="no response that wins was found", response=None)


def _match(response: Agent, agent: Agent, hands: int, seed: int) -> HeadToHead:
    """Measure what a response wins from an agent in a match, with the luck taken out."""
    samples = play_match([response, agent], agent.game, hands=hands, seed=seed, adjusted=True).best_samples_mbb[:, 0]
    return HeadToHead(float(samples.mean()), half_width(samples))


def _player(strategy: Array, teacher: Teacher, name: str) -> Teacher:
    """Return an agent that plays a strategy over the teacher's buckets, as it would be stored."""
    stored = teacher.stored
    return Teacher(
        name,
        teacher.game,
        StoredStrategy(stored.layout, quantise(strategy, 0.0), stored.flop, stored.turn, "", {}),
        teacher.tables,
    )


def _at_table(teacher: Teacher, agent: Agent, hands: int, strategy: Array, seed: int) -> HeadToHead:
    """Measure what a strategy over the teacher's buckets wins from an agent in a match."""
    return _match(_player(strategy, teacher, "counter"), agent, hands, seed)


def _bucket_best_response(
    agent: Agent, deals: int, table_hands: int, seed: int, workers: int, progress: Progress
) -> tuple[_Judged, HeadToHead | None]:
    """Return a best response over the teacher's buckets as it is judged, and what it wins from a projected agent."""
    teacher, tables = _teacher(agent.game)
    strategy = _project(agent, teacher, tables, progress)
    setting = _bucket_setting(teacher, tables, Evidence(strategy), Search(seed=seed, workers=workers), None)
    answer, won = setting.exploit(strategy, deals, progress)
    player = _player(answer, teacher, f"response-{agent.name}")
    method = "best response over buckets"
    if _plays_over_buckets(agent, teacher):  # then these deals were played against the agent itself
        return _Judged(player, method, won), None
    return _Judged(player, method, _match(player, agent, table_hands, seed)), won


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
    if _plays_over_buckets(agent, teacher):
        assert isinstance(agent, Teacher)
        return dequantise(agent.stored.steps)
    samples = DRAWN_HANDS_PER_BUCKET if draws_actions(agent) else HANDS_PER_BUCKET
    return project_on_buckets(agent.probabilities, teacher.stored.layout, tables, samples=samples, progress=progress)


def _tabulated(agent: Agent) -> Array:
    """Return an agent's play in a small game as a strategy, by its frequencies where it draws its actions itself."""
    return tabulate(estimated_mixes(agent, SMALL_ASKED_TIMES).probabilities, agent.game)


def _plays_over_buckets(agent: Agent, teacher: Teacher) -> bool:
    """Return whether an agent plays a strategy over the teacher's buckets, so that its projection is itself."""
    if type(agent) is not Teacher:  # what is derived from it may play otherwise
        return False
    first, second = agent.stored, teacher.stored
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
