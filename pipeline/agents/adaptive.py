"""@adaptive: an equilibrium that turns to counter-strategies when the hands it has seen say what the opponent is.

It holds a *portfolio*: the equilibrium (@teacher) first, and strategies that each take much from one kind of opponent.
After every few hands it looks back at them (`solving.hindsight`) and keeps two accounts:

- how likely each opponent that it knows would have played so, and how likely one who plays each hand like one of them,
  drawn anew (a mixture whose shares are fitted to the hands): the model of an opponent that it does not know. Together
  with what every strategy wins from each known opponent this foretells what a strategy would win from this one;
- what each strategy would have won in the very hands, whoever the opponent is: an estimate that needs no model, and is
  coarse over few hands.

What a strategy is worth is the mean of both, each weighed by how sure it is. A strategy is played in the next hands
only where it is worth more than the equilibrium by `CAUTION` times the uncertainty of the difference: the one of these
that is worth most. Else the equilibrium is: so it starts, and so it stays against an opponent that plays well. Older
hands count less and less (`HALF_LIFE`), as opponents may change.

Heads-up limit hold'em has a portfolio that comes with the package (`tools/portfolio.py` makes it). In Kuhn and Leduc
the best responses to a few simple opponents are found when the agent is made, exactly. With strategies of one's own
(`@adaptive:out/a,out/b`) the known opponents stay the same, and what the strategies win from these is computed when
the agent is made, which takes up to a minute in hold'em.

Under a clock (`background`, set by `pipeline.arena.wire.player`) the looking back is done by a thread while the next
hands are played, and no decision waits for it; in the arena it is done at once, so that the same seed gives the same
match.
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
from pipeline.agents.teacher import SmallTeacher, Teacher
from pipeline.dataset.decisions import observation
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import bit_table
from pipeline.solving.buckets import with_rivers
from pipeline.solving.coarse_hands import Groups, from_small, small_layout
from pipeline.solving.hindsight import Cards, Hands, Judge, holdem_cards, pack, small_cards
from pipeline.solving.layout import Floats, Layout, versus
from pipeline.solving.portfolio import Portfolio, load_portfolio
from pipeline.solving.response import tabulated
from pipeline.solving.small_counter import Belief, respond, winnings
from pipeline.solving.strategy import StoredStrategy, dequantise
from pipeline.solving.teacher import deal_hands

INTERVAL = 20
"""hands between two looks back"""
HALF_LIFE = 2_000.0
"""hands after which a hand counts half"""
CAUTION = 1.0
"""standard deviations that are taken off a difference"""
MISFIT = 0.15
"""standard deviation, in big blinds per hand, of what the nearest known opponent foretells"""
TRUST = 0.3
"""the same as a share of what a strategy is foretold to win more than the equilibrium"""
LEAST_SPREAD = 2.0
"""standard deviation of a single hand's estimate at least, in big blinds"""
STRANGE = 0.3
"""standard deviation, in big blinds per hand, that is added for an opponent who is a mixture of known ones"""
HANDICAP = 0.1
"""nats per hand by which a mixture must explain the hands better than a known opponent"""
MIXED = 0.1
"""how likely an opponent is a mixture before the first hand, beside 1 for all known ones"""
UNCOVERED = 4.0
"""standard deviation, in big blinds, of what is won where a strategy does what was never done"""
MOST_STEPS = 1_024
"""looks back that are remembered: of a longer match every second one, then every fourth ..."""
SLIP = 0.03
"""the share of an opponent's decisions that are any legal action, so that no single one rules it out"""
EQUILIBRIUM = 0.5
"""how likely the opponent is to play the equilibrium before the first hand; the other known ones share the rest"""
SMALL_OPPONENTS = ("@call", "@raise", "@random", "@fold", "@chump:rock", "@chump:maniac", "@chump:gambler")
"""those to which counters are found in small games"""
OWN_DEALS = 4_000
"""deals over which strategies of one's own are measured against each known opponent"""


@dataclass(frozen=True)
class PlayingPortfolio:
    """What an adaptive agent plays with."""

    names: tuple[str, ...]
    members: tuple[Agent, ...]
    """the equilibrium first"""
    judge: Judge = field(repr=False)
    opponents: tuple[str, ...]
    values: Array = field(repr=False)
    """(members, opponents): what each member wins, in big blinds per hand"""
    prior: Array = field(repr=False)
    """(opponents,) how likely each is before the first hand"""


class Step(NamedTuple):
    """What was thought after some hands of a match."""

    hands: int
    playing: int
    """the member that is played next"""
    weights: tuple[float, ...]
    """by member: how likely it is the one that wins most from this opponent"""
    gains: tuple[float, ...]
    """by member: how much more it is thought to win than the equilibrium, in mbb/h"""
    opponent: str
    """the most likely of the known ones"""
    likelihood: float
    """how likely that one is among them"""


class _Memory:
    """What is known in one match."""

    def __init__(self, portfolio: PlayingPortfolio) -> None:
        self._portfolio = portfolio
        self.best = 0
        self.hands = 0
        self.steps: list[Step] = []
        self._every = 1
        self._looks = 0
        self._evidence = self._prior = np.log([*portfolio.prior, MIXED])
        """by opponent: the logarithm of its prior times the likelihood of the hands; of a mixture of them last"""
        self._shares = np.array(portfolio.prior)
        """by opponent: how many hands of the mixture are like its own, with those of the prior counted as one"""
        self._sums = np.zeros((4, len(portfolio.members)))
        """by member: hands; what it would have won in them, in big blinds, and its squares; how often it was so"""

    def learn(self, hands: Hands, playing: int, big_blind: int) -> None:
        """Take in finished hands that were played by one of the members."""
        held = self._portfolio
        likelihood, worth, covered = held.judge.judge(hands, playing)
        kept = 0.5 ** (len(worth) / HALF_LIFE)
        likelihood = np.maximum(likelihood, 1e-30)
        mixed = 0.0
        for one in likelihood:
            parts = self._shares / self._shares.sum() * one
            mixed += float(np.log(parts.sum())) - HANDICAP
            self._shares += parts / parts.sum()
        likely = np.append(np.log(likelihood).sum(axis=0), mixed)
        self._evidence = self._prior + kept * (self._evidence - self._prior) + likely
        self._shares = held.prior + kept * (self._shares - held.prior)
        won = worth / big_blind
        more = [np.full(won.shape[1], len(won)), won.sum(0), (won**2).sum(0), covered.sum(0)]
        self._sums = kept * self._sums + np.stack(more)
        self.hands += len(worth)
        self._choose()

    def _choose(self) -> None:
        """Decide which member is played next."""
        held = self._portfolio
        share = np.exp(self._evidence - self._evidence.max())
        share /= share.sum()
        strange, share = share[-1], share[:-1] + share[-1] * self._shares / self._shares.sum()
        told = held.values @ share
        doubt = MISFIT + TRUST * np.maximum(told - told[0], 0.0)
        doubt = doubt**2 + strange * STRANGE**2 + np.maximum((held.values**2) @ share - told**2, 0.0)
        count, total, squares, covered = self._sums
        mean = total / count
        spread = np.maximum(squares / count - mean**2, LEAST_SPREAD**2) / count
        spread = spread + (UNCOVERED * (1 - covered / count)) ** 2
        worth = (told / doubt + mean / spread) / (1 / doubt + 1 / spread)
        left = 1 / (1 / doubt + 1 / spread)
        gain = worth - worth[0]
        sure = gain - CAUTION * np.sqrt(left + left[0])
        gain[0] = sure[0] = 0.0
        self.best = int(np.argmax(np.where(sure >= 0, gain, -np.inf)))
        weights = np.bincount(held.values.argmax(axis=0), share, minlength=len(held.members))
        self._looks += 1
        if self._looks % self._every == 0:
            top = int(share.argmax())
            self.steps.append(
                Step(
                    self.hands,
                    self.best,
                    tuple(weights.tolist()),
                    tuple((1000 * gain).tolist()),
                    held.opponents[top],
                    float(share[top]),
                )
            )
            if len(self.steps) == MOST_STEPS:
                self.steps, self._every = self.steps[1::2], 2 * self._every


class BackgroundQueue:
    """Work that is done while play goes on: one piece after the other, in a thread while there is any.

    The work must keep to what it was given and swap its result in at one stroke, because decisions are made while it
    runs.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, work: Callable[[], None]) -> None:
        """Queue work behind all that was put before."""
        with self._lock:
            self._waiting.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Drop the work that has not been begun."""
        with self._lock:
            self._waiting.clear()

    def wait(self) -> None:
        """Return when nothing is left to do."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                work = self._waiting.popleft()
            try:
                work()
            except BaseException:
                with self._lock:
                    self._thread = None  # so that what comes next is begun by another thread
                raise


@dataclass
class Adaptive:
    """Plays the member of its portfolio that the hands of the match speak for."""

    name: str
    game: Game
    portfolio: PlayingPortfolio
    interval: int = INTERVAL
    background: bool = False
    """look back in a thread while play goes on"""
    playing: int = 0
    """the member in use"""

    def __post_init__(self) -> None:
        none = Hands(*(np.empty(shape, np.uint8) for shape in ((0,), (0, 1), (0, 2, 2), (0, 5))))
        self.portfolio.judge.judge(none, 0)  # compiles now what the first look back and every member need
        hole = self.game.deck[: self.game.hole_cards]
        for member in self.portfolio.members:
            member.probabilities(observation(self.game, "", self.game.start().actor, hole))
        self._queue = BackgroundQueue()
        self.begin()

    @property
    def steps(self) -> list[Step]:
        """What was thought in this match so far."""
        return list(self._memory.steps)

    def begin(self) -> None:
        self._queue.clear()
        self._memory = _Memory(self.portfolio)
        self.playing = 0

    def probabilities(self, rows: Array) -> Array:
        return self.portfolio.members[self.playing].probabilities(rows)

    def seen(self, hands: FinishedHands) -> None:
        told = Hands(*(np.ascontiguousarray(getattr(hands, part), np.uint8) for part in Hands._fields))
        work = partial(self._memory.learn, told, self.playing, self.game.big_blind)
        if self.background:
            self._queue.put(work)
        else:
            work()
        self.playing = self._memory.best

    def wait(self) -> None:
        """Return when all hands that were seen have been taken in."""
        self._queue.wait()


@cache
def _shipped(game: Game) -> tuple[Teacher, Groups, Portfolio]:
    teacher = resolve("@teacher", game)
    assert isinstance(teacher, Teacher)
    groups = Groups(teacher.stored, teacher.tables)
    return teacher, groups, load_portfolio(Path(str(files("pipeline.agents"))) / "resources" / "portfolio", groups)


def member(name: str, groups: Groups, steps: Array) -> Teacher:
    """An agent that plays a strategy over groups."""
    stored = groups.stored
    return Teacher(
        name, stored.layout.game, StoredStrategy(groups.layout, steps, stored.flop, stored.turn, "", {}), groups.grouped
    )


@cache
def shipped_portfolio(game: Game) -> PlayingPortfolio:
    """The portfolio that comes with the package."""
    teacher, groups, portfolio = _shipped(game)
    agents = (teacher, *(member(n, groups, s) for n, s in zip(portfolio.members[1:], portfolio.steps, strict=True)))
    known = portfolio.opponents.index("teacher")
    shown = [portfolio.sketches[known], *(groups.outline(dequantise(steps)) for steps in portfolio.steps)]
    return _with_opponents(
        groups.bands,
        holdem_cards(groups),
        agents,
        shown,
        portfolio.opponents,
        list(portfolio.sketches),
        portfolio.values,
    )


@cache
def small_portfolio(game: Game) -> PlayingPortfolio:
    """The equilibrium of a small game, and the best responses to a few simple opponents."""
    opponents = ("@teacher", *SMALL_OPPONENTS)
    models = [tabulated(resolve(text, game).probabilities, game) for text in opponents]
    counters = [respond(game, Belief(model, hands=1.0)).strategy for model in models[1:]]
    names = ["teacher", *(plain_name(f"@counter:{text}") for text in SMALL_OPPONENTS)]
    agents = [SmallTeacher(name, game, table) for name, table in zip(names, [models[0], *counters], strict=True)]
    return _small(game, tuple(agents), opponents, models)


def _small(game: Game, agents: tuple[Agent, ...], opponents: tuple[str, ...], models: list[Array]) -> PlayingPortfolio:
    """Return a portfolio of a small game, where everything is exact."""
    layout = small_layout(game)
    tables = [tabulated(agent.probabilities, game) for agent in agents]
    values = np.array([[winnings(game, table, model) for model in models] for table in tables])
    shown, known = ([from_small(layout, one) for one in part] for part in (tables, models))
    names = tuple(plain_name(text) for text in opponents)
    return _with_opponents(layout, small_cards(layout), agents, shown, names, known, 1000 * values / game.big_blind)


def own_portfolio(arguments: str, game: Game, *, trusted: bool = False) -> PlayingPortfolio:
    """The equilibrium and strategies that somebody names, separated by commas."""
    texts = split_names(arguments)
    agents = [resolve(text, game, trusted=trusted) for text in texts]
    for text, agent in zip(texts, agents, strict=True):
        if isinstance(agent, Learner) or not hasattr(agent, "probabilities"):
            raise PipelineError(f"@adaptive chooses among strategies that stay as they are; {text} does not")
    if game.hole_cards == 1:
        opponents = ("@teacher", *SMALL_OPPONENTS)
        models = [tabulated(resolve(text, game).probabilities, game) for text in opponents]
        return _small(game, (resolve("@teacher", game), *agents), opponents, models)
    teacher, groups, portfolio = _shipped(game)
    shown = [portfolio.sketches[portfolio.opponents.index("teacher")]]
    shown += [groups.sketch(agent.probabilities, each=4) for agent in agents]
    deals = deal_hands(with_rivers(groups.banded), 1, OWN_DEALS)
    values = np.empty((len(shown), len(portfolio.opponents)))
    for i, mine in enumerate(shown):
        for j, theirs in enumerate(portfolio.sketches):
            values[i, j] = versus(groups.bands, deals, mine, theirs).mbb
    members = (teacher, *agents)
    known = list(portfolio.sketches)
    return _with_opponents(groups.bands, holdem_cards(groups), members, shown, portfolio.opponents, known, values)


def split_names(arguments: str) -> list[str]:
    """The agents' names in a list with commas, where a name may have commas in its own arguments.

    >>> split_names("out/a,@calibrated:70,20,out/b:mode=argmax,chart=selby,@equity")
    ['out/a', '@calibrated:70,20', 'out/b:mode=argmax,chart=selby', '@equity']
    """
    found: list[str] = []
    for part in arguments.split(","):
        if found and re.match(r"\s*(\d|\w+=)", part) and ":" in found[-1]:
            found[-1] += f",{part}"
        elif part.strip():
            found.append(part.strip())
    if not found:
        raise PipelineError("@adaptive: takes strategies separated by commas, like @adaptive:out/a,out/b")
    return found


def _with_opponents(
    layout: Layout,
    cards: Cards,
    agents: tuple[Agent, ...],
    shown: list[Floats],
    opponents: tuple[str, ...],
    sketches: list[Floats],
    values_mbb: Array,
) -> PlayingPortfolio:
    """Strategies with their sketches, known opponents with theirs, and what each wins from whom."""
    equal = bit_table(layout.legal, 3)
    equal = equal / equal.sum(axis=1, keepdims=True)
    known = pack([(1 - SLIP) * sketch + SLIP * equal for sketch in sketches])
    prior = np.full(len(opponents), (1 - EQUILIBRIUM) / max(len(opponents) - 1, 1))
    prior[opponents.index("teacher")] = EQUILIBRIUM
    names = tuple(agent.name for agent in agents)
    judge = Judge(layout, cards, known, pack(shown))
    return PlayingPortfolio(names, agents, judge, opponents, values_mbb / 1000, prior)


def make(name: str, arguments: str, game: Game, *, trusted: bool = False) -> Adaptive:
    """@adaptive, or @adaptive:AGENT,AGENT,... with strategies of one's own beside the equilibrium."""
    if game.players != 2 or game.nolimit or not (game.is_holdem or game.hole_cards == 1):
        raise PipelineError(f"@adaptive plays limit hold'em, Kuhn and Leduc for two players, not {game.name}")
    text = plain_name(f"@{name}:{arguments}")
    if arguments:
        return Adaptive(text, game, own_portfolio(arguments, game, trusted=trusted))
    return Adaptive(text, game, small_portfolio(game) if game.hole_cards == 1 else shipped_portfolio(game))
