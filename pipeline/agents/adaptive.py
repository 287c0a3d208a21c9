"""@adaptive: an equilibrium that switches to counter-strategies when the hands seen so far speak for it.

The agent holds a *portfolio*: the equilibrium (@teacher) first, then strategies that each win much from one kind of
opponent. After every few hands it evaluates them (`solving.hindsight`) and keeps two estimates:

- by model: the posterior over known opponents, and over a mixture that draws one of them anew for each hand (its shares
  are fitted to the hands), which stands for an unknown opponent. With each strategy's winnings from each known opponent
  this gives the winnings to expect from this one;
- by importance sampling: what each strategy would have won in the same hands, against any opponent. It needs no
  model and has a large variance over few hands.

A strategy's value is the mean of both estimates, weighted by their inverse variances. A strategy replaces the
equilibrium only where its value is higher by `CAUTION_STDS` standard deviations of the difference; of several the best
is played. So the agent starts with the equilibrium and keeps to it against an opponent that plays well. Older hands are
discounted (`HALF_LIFE_HANDS`), as opponents may change.

Heads-up limit hold'em has a portfolio that comes with the package (`tools/portfolio.py` makes it). In Kuhn and Leduc
the best responses to a few simple opponents are computed when the agent is made, exactly. With strategies of the user's
own (`@adaptive:out/a,out/b`) the known opponents stay the same, and what the strategies win from these is computed when
the agent is made, which takes up to a minute in hold'em.

Under a clock (`background`, set by `pipeline.arena.wire.player`) a thread does this while the next hands are played,
and no decision waits for it; in the arena it is done at once, so that the same seed gives the same match.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent, FinishedHands, Learner
from pipeline.agents.teacher import Teacher
from pipeline.dataset.decisions import observation
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array, Singles
from pipeline.runtime.errors import PipelineError
from pipeline.solving.buckets import deal_hands, with_rivers
from pipeline.solving.counter import Belief, respond, winnings
from pipeline.solving.groups import HandGroups, from_small_game, small_layout
from pipeline.solving.hindsight import (
    HindsightEstimator,
    ObservedHands,
    SketchCards,
    holdem_cards,
    pack_sketches,
    small_cards,
)
from pipeline.solving.layout import Layout, versus
from pipeline.solving.lookup import SmallTeacher, tabulate
from pipeline.solving.portfolio import Portfolio, load_portfolio
from pipeline.solving.strategy import StoredStrategy, dequantise

INTERVAL_HANDS = 20
"""hands between two assessments"""
HALF_LIFE_HANDS = 2_000.0
"""hands after which a hand counts half"""
CAUTION_STDS = 1.0
"""standard deviations that are subtracted from a difference"""
MODEL_STD_BB = 0.15
"""standard deviation, in big blinds per hand, of the winnings that the model predicts"""
MODEL_STD_SHARE = 0.3
"""the same as a share of what a strategy is predicted to win more than the equilibrium"""
MIN_HAND_STD_BB = 2.0
"""lower bound of the standard deviation of a single hand's estimate"""
MIXTURE_STD_BB = 0.3
"""standard deviation, in big blinds per hand, that is added for an opponent who is a mixture of known ones"""
MIXTURE_PENALTY_NATS = 0.1
"""nats per hand by which a mixture must explain the hands better than a known opponent"""
MIXTURE_PRIOR = 0.1
"""prior weight of the mixture; all known opponents together have 1"""
UNCOVERED_STD_BB = 4.0
"""standard deviation of what is won where a strategy does what was never done"""
MAX_ASSESSMENTS = 1_024
"""assessments that are kept: of a longer match every second one, then every fourth ..."""
SMOOTHING = 0.03
"""share of an opponent's mix that is uniform over legal actions, so that no single decision rules it out"""
EQUILIBRIUM_PRIOR = 0.5
"""prior probability that the opponent plays the equilibrium; the other known ones share the rest"""
SMALL_OPPONENTS = ("@call", "@raise", "@random", "@fold", "@chump:rock", "@chump:maniac", "@chump:gambler")
"""opponents to which best responses are computed in small games"""
OWN_DEALS = 4_000
"""deals over which the user's own strategies are measured against each known opponent"""


@dataclass(frozen=True)
class PlayingPortfolio:
    """Strategies to choose among, what each wins from known opponents, and how to judge them."""

    names: tuple[str, ...]
    members: tuple[Agent, ...]
    """the equilibrium first"""
    judge: HindsightEstimator = field(repr=False)
    opponents: tuple[str, ...]
    values: Array = field(repr=False)
    """(members, opponents): winnings of each member in big blinds per hand"""
    prior: Array = field(repr=False)
    """(opponents,) prior probabilities"""


class Assessment(NamedTuple):
    """State of an adaptive agent after some hands of a match."""

    hands: int
    playing: int
    """the member that is played next"""
    weights: tuple[float, ...]
    """by member: probability that it is the one that wins most from this opponent"""
    gains: tuple[float, ...]
    """by member: estimate of what it wins more than the equilibrium, in mbb/h"""
    opponent: str
    """the most likely of the known ones"""
    likelihood: float
    """its posterior probability among them"""


class _Memory:
    """Evidence of one match, and the member of the portfolio that it speaks for."""

    def __init__(self, portfolio: PlayingPortfolio) -> None:
        self._portfolio = portfolio
        self.best = 0
        self.hands = 0
        self.steps: list[Assessment] = []
        self._record_interval = 1
        self._assessments = 0
        self._evidence = self._prior = np.log([*portfolio.prior, MIXTURE_PRIOR])
        """by opponent: log of prior times likelihood; the mixture comes last"""
        self._shares = np.array(portfolio.prior)
        """by opponent: expected number of the mixture's hands drawn from it; the prior counts as one hand"""
        self._sums = np.zeros((4, len(portfolio.members)))
        """by member: hands, sum and squares of its estimated winnings in big blinds, hands that it would play so too"""

    def learn(self, hands: ObservedHands, playing: int, big_blind: int) -> None:
        """Add finished hands that were played by one of the members to the evidence."""
        portfolio = self._portfolio
        likelihood, winnings, covered = portfolio.judge.estimate(hands, playing)
        # older hands count less, as opponents change; the prior does not fade
        discount = 0.5 ** (len(winnings) / HALF_LIFE_HANDS)
        likelihood = np.maximum(likelihood, 1e-30)  # rounded sketches must not rule an opponent out for ever
        mixture = 0.0
        for by_opponent in likelihood:  # one step of expectation maximisation per hand, in the order of the hands
            parts = self._shares / self._shares.sum() * by_opponent
            mixture += float(np.log(parts.sum())) - MIXTURE_PENALTY_NATS
            self._shares += parts / parts.sum()
        log_likelihood = np.append(np.log(likelihood).sum(axis=0), mixture)
        self._evidence = self._prior + discount * (self._evidence - self._prior) + log_likelihood
        self._shares = portfolio.prior + discount * (self._shares - portfolio.prior)
        won = winnings / big_blind
        sums = [np.full(won.shape[1], len(won)), won.sum(0), (won**2).sum(0), covered.sum(0)]
        self._sums = discount * self._sums + np.stack(sums)
        self.hands += len(winnings)
        self._choose()

    def _choose(self) -> None:
        """Choose the member to play next, and record the assessment."""
        portfolio = self._portfolio
        posterior = np.exp(self._evidence - self._evidence.max())
        posterior /= posterior.sum()
        is_mixture, posterior = posterior[-1], posterior[:-1] + posterior[-1] * self._shares / self._shares.sum()
        predicted = portfolio.values @ posterior
        model_std = MODEL_STD_BB + MODEL_STD_SHARE * np.maximum(predicted - predicted[0], 0.0)
        between = np.maximum((portfolio.values**2) @ posterior - predicted**2, 0.0)
        model_variance = model_std**2 + is_mixture * MIXTURE_STD_BB**2 + between
        count, total, squares, covered = self._sums
        mean = total / count
        variance = np.maximum(squares / count - mean**2, MIN_HAND_STD_BB**2) / count
        # where a strategy does what was never done, the hands say nothing of it: doubt grows with that share
        variance = variance + (UNCOVERED_STD_BB * (1 - covered / count)) ** 2
        # both estimates of a member's value, weighted by their inverse variances
        value = (predicted / model_variance + mean / variance) / (1 / model_variance + 1 / variance)
        value_variance = 1 / (1 / model_variance + 1 / variance)
        gain = value - value[0]
        # the equilibrium loses to no opponent, so another strategy has to be better by more than its likely error
        safe_gain = gain - CAUTION_STDS * np.sqrt(value_variance + value_variance[0])
        gain[0] = safe_gain[0] = 0.0
        self.best = int(np.argmax(np.where(safe_gain >= 0, gain, -np.inf)))
        weights = np.bincount(portfolio.values.argmax(axis=0), posterior, minlength=len(portfolio.members))
        self._assessments += 1
        if self._assessments % self._record_interval == 0:
            top = int(posterior.argmax())
            self.steps.append(
                Assessment(
                    self.hands,
                    self.best,
                    tuple(weights.tolist()),
                    tuple((1000 * gain).tolist()),
                    portfolio.opponents[top],
                    float(posterior[top]),
                )
            )
            if len(self.steps) == MAX_ASSESSMENTS:
                self.steps, self._record_interval = self.steps[1::2], 2 * self._record_interval


class BackgroundQueue:
    """Tasks that run in order in a thread while play goes on; the thread ends when none is left.

    A task must replace what decisions read in one assignment, because decisions are made while it runs.
    """

    def __init__(self) -> None:
        self._tasks: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, task: Callable[[], None]) -> None:
        """Queue a task behind those that were put before."""
        with self._lock:
            self._tasks.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Drop the tasks that have not been begun."""
        with self._lock:
            self._tasks.clear()

    def wait(self) -> None:
        """Return when no task is left."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._tasks:
                    self._thread = None
                    return
                task = self._tasks.popleft()
            try:
                task()
            except BaseException:
                with self._lock:
                    self._thread = None  # the next `put` starts another thread
                raise


@dataclass
class Adaptive:
    """Plays the member of its portfolio that the hands of the match speak for."""

    name: str
    game: Game
    portfolio: PlayingPortfolio
    interval: int = INTERVAL_HANDS
    background: bool = False
    """assess in a thread while play goes on"""
    playing: int = 0
    """the member in use"""

    def __post_init__(self) -> None:
        no_hands = ObservedHands(*(np.empty(shape, np.uint8) for shape in ((0,), (0, 1), (0, 2, 2), (0, 5))))
        self.portfolio.judge.estimate(no_hands, 0)  # compile now what the first assessment and every member need
        hole = self.game.deck[: self.game.hole_cards]
        for member in self.portfolio.members:
            member.probabilities(observation(self.game, "", self.game.start().actor, hole))
        self._queue = BackgroundQueue()
        self.begin()

    @property
    def steps(self) -> list[Assessment]:
        """Return the assessments of this match so far."""
        return list(self._memory.steps)

    def begin(self) -> None:
        self._queue.clear()
        self._memory = _Memory(self.portfolio)
        self.playing = 0

    def probabilities(self, rows: Array) -> Array:
        return self.portfolio.members[self.playing].probabilities(rows)

    def seen(self, hands: FinishedHands) -> None:
        task = partial(self._memory.learn, ObservedHands.of(hands), self.playing, self.game.big_blind)
        if self.background:
            self._queue.put(task)
        else:
            task()
        self.playing = self._memory.best

    def wait(self) -> None:
        """Return when all hands that were seen have been learned from."""
        self._queue.wait()


@cache
def _load_shipped(game: Game) -> tuple[Teacher, HandGroups, Portfolio]:
    teacher = resolve("@teacher", game)
    assert isinstance(teacher, Teacher)
    groups = HandGroups(teacher.stored, teacher.tables)
    return teacher, groups, load_portfolio(Path(str(files("pipeline.agents"))) / "resources" / "portfolio", groups)


def member(name: str, groups: HandGroups, steps: Array) -> Teacher:
    """Return an agent that plays a strategy over groups of hands."""
    stored = groups.stored
    return Teacher(
        name, stored.layout.game, StoredStrategy(groups.layout, steps, stored.flop, stored.turn, "", {}), groups.grouped
    )


@cache
def shipped_portfolio(game: Game) -> PlayingPortfolio:
    """Return the portfolio that comes with the package."""
    teacher, groups, portfolio = _load_shipped(game)
    agents = (teacher, *(member(n, groups, s) for n, s in zip(portfolio.members[1:], portfolio.steps, strict=True)))
    equilibrium = portfolio.opponents.index("teacher")
    tables = [
        portfolio.sketches[equilibrium],
        *(groups.sketch_strategy(dequantise(steps)) for steps in portfolio.steps),
    ]
    return _assemble(
        groups.bands,
        holdem_cards(groups),
        agents,
        tables,
        portfolio.opponents,
        list(portfolio.sketches),
        portfolio.values,
    )


@cache
def small_portfolio(game: Game) -> PlayingPortfolio:
    """Return the equilibrium of a small game, and the best responses to a few simple opponents."""
    opponents = ("@teacher", *SMALL_OPPONENTS)
    models = [tabulate(resolve(text, game).probabilities, game) for text in opponents]
    counters = [respond(game, Belief(model, hand_share=1.0)).strategy for model in models[1:]]
    names = ["teacher", *(plain_name(f"@counter:{text}") for text in SMALL_OPPONENTS)]
    agents = [SmallTeacher(name, game, table) for name, table in zip(names, [models[0], *counters], strict=True)]
    return _small_game_portfolio(game, tuple(agents), opponents, models)


def _small_game_portfolio(
    game: Game, agents: tuple[Agent, ...], opponents: tuple[str, ...], models: list[Array]
) -> PlayingPortfolio:
    """Return a portfolio of a small game, where everything is exact."""
    layout = small_layout(game)
    tables = [tabulate(agent.probabilities, game) for agent in agents]
    values = np.array([[winnings(game, table, model) for model in models] for table in tables])
    members = [from_small_game(layout, table) for table in tables]
    known = [from_small_game(layout, model) for model in models]
    names = tuple(plain_name(text) for text in opponents)
    return _assemble(layout, small_cards(layout), agents, members, names, known, 1000 * values / game.big_blind)


def own_portfolio(arguments: str, game: Game, *, trusted: bool = False) -> PlayingPortfolio:
    """Return the equilibrium and the strategies that the user names, separated by commas."""
    texts = split_names(arguments)
    agents = [resolve(text, game, trusted=trusted) for text in texts]
    for text, agent in zip(texts, agents, strict=True):
        if isinstance(agent, Learner) or not hasattr(agent, "probabilities"):
            raise PipelineError(f"@adaptive chooses among strategies that stay as they are; {text} does not")
    if game.hole_cards == 1:
        opponents = ("@teacher", *SMALL_OPPONENTS)
        models = [tabulate(resolve(text, game).probabilities, game) for text in opponents]
        return _small_game_portfolio(game, (resolve("@teacher", game), *agents), opponents, models)
    teacher, groups, portfolio = _load_shipped(game)
    tables = [portfolio.sketches[portfolio.opponents.index("teacher")]]
    tables += [groups.sketch(agent.probabilities, samples=4) for agent in agents]
    deals = deal_hands(with_rivers(groups.banded), 1, OWN_DEALS)
    values = np.empty((len(tables), len(portfolio.opponents)))
    for i, mine in enumerate(tables):
        for j, theirs in enumerate(portfolio.sketches):
            values[i, j] = versus(groups.bands, deals, mine, theirs).mbb
    members = (teacher, *agents)
    known = list(portfolio.sketches)
    return _assemble(groups.bands, holdem_cards(groups), members, tables, portfolio.opponents, known, values)


def split_names(arguments: str) -> list[str]:
    """Split a list of agents' names at its commas, where a name may have commas in its own arguments.

    >>> split_names("out/a,@calibrated:70,20,out/b:mode=argmax,chart=selby,@equity")
    ['out/a', '@calibrated:70,20', 'out/b:mode=argmax,chart=selby', '@equity']
    """
    names: list[str] = []
    for part in arguments.split(","):
        if names and re.match(r"\s*(\d|\w+=)", part) and ":" in names[-1]:
            names[-1] += f",{part}"
        elif part.strip():
            names.append(part.strip())
    if not names:
        raise PipelineError("@adaptive: takes strategies separated by commas, like @adaptive:out/a,out/b")
    return names


def _assemble(
    layout: Layout,
    cards: SketchCards,
    agents: tuple[Agent, ...],
    tables: list[Singles],
    opponents: tuple[str, ...],
    opponent_tables: list[Singles],
    values_mbb: Array,
) -> PlayingPortfolio:
    """Return the portfolio of agents with their tables of probabilities, and of known opponents with theirs."""
    smoothed = pack_sketches([(1 - SMOOTHING) * table + SMOOTHING * layout.equal_mix for table in opponent_tables])
    prior = np.full(len(opponents), (1 - EQUILIBRIUM_PRIOR) / max(len(opponents) - 1, 1))
    prior[opponents.index("teacher")] = EQUILIBRIUM_PRIOR
    names = tuple(agent.name for agent in agents)
    judge = HindsightEstimator(layout, cards, smoothed, pack_sketches(tables))
    return PlayingPortfolio(names, agents, judge, opponents, values_mbb / 1000, prior)


def make(name: str, arguments: str, game: Game, *, trusted: bool = False) -> Adaptive:
    """Return @adaptive, or @adaptive:AGENT,AGENT,... with strategies of the user's own and the equilibrium."""
    if game.players != 2 or game.nolimit or not (game.is_holdem or game.hole_cards == 1):
        raise PipelineError(f"@adaptive plays limit hold'em, Kuhn and Leduc for two players, not {game.name}")
    text = plain_name(f"@{name}:{arguments}")
    if arguments:
        return Adaptive(text, game, own_portfolio(arguments, game, trusted=trusted))
    return Adaptive(text, game, small_portfolio(game) if game.hole_cards == 1 else shipped_portfolio(game))
