"""What an adaptive agent plays with: strategies, known opponents, and what each wins from whom.

Heads-up limit hold'em has a portfolio that comes with the package (`tools/portfolio.py` makes it). In Kuhn and Leduc
the best responses to a few simple opponents are found when the agent is made, exactly. With strategies of one's own
(`@adaptive:out/a,out/b`) the known opponents stay the same, and what the strategies win from these is computed when the
agent is made, which takes up to a minute in hold'em.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from pipeline.agents.adaptive import Holdings
from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent, Learner
from pipeline.agents.teacher import SmallTeacher, Teacher
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import bit_table
from pipeline.solving.buckets import with_rivers
from pipeline.solving.coarse_hands import Groups, from_small, small_layout
from pipeline.solving.hindsight import Cards, Judge, holdem_cards, pack, small_cards
from pipeline.solving.layout import Floats, Layout, versus
from pipeline.solving.portfolio import Portfolio, load_portfolio
from pipeline.solving.response import tabulated
from pipeline.solving.small_counter import Belief, respond, winnings
from pipeline.solving.strategy import Stored, probabilities
from pipeline.solving.teacher import deal_hands

SLIP = 0.03
"""the share of an opponent's decisions that are any legal action, so that no single one rules it out"""
EQUILIBRIUM = 0.5
"""how likely the opponent is to play the equilibrium before the first hand; the other known ones share the rest"""
SMALL_OPPONENTS = ("@call", "@raise", "@random", "@fold", "@chump:rock", "@chump:maniac", "@chump:gambler")
"""those to which counters are found in small games"""
OWN_DEALS = 4_000
"""deals over which strategies of one's own are measured against each known opponent"""


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
        name, stored.layout.game, Stored(groups.layout, steps, stored.flop, stored.turn, "", {}), groups.grouped
    )


@cache
def typical_holdings(game: Game) -> Holdings:
    """The portfolio that comes with the package."""
    teacher, groups, portfolio = _shipped(game)
    agents = (teacher, *(member(n, groups, s) for n, s in zip(portfolio.members[1:], portfolio.steps, strict=True)))
    known = portfolio.opponents.index("teacher")
    shown = [portfolio.sketches[known], *(groups.outline(probabilities(steps)) for steps in portfolio.steps)]
    return _holdings(
        groups.bands,
        holdem_cards(groups),
        agents,
        shown,
        portfolio.opponents,
        list(portfolio.sketches),
        portfolio.values,
    )


@cache
def small_holdings(game: Game) -> Holdings:
    """The equilibrium of a small game, and the best responses to a few simple opponents."""
    opponents = ("@teacher", *SMALL_OPPONENTS)
    models = [tabulated(resolve(text, game).probabilities, game) for text in opponents]
    counters = [respond(game, Belief(model, hands=1.0)).strategy for model in models[1:]]
    names = ["teacher", *(plain_name(f"@counter:{text}") for text in SMALL_OPPONENTS)]
    agents = [SmallTeacher(name, game, table) for name, table in zip(names, [models[0], *counters], strict=True)]
    return _small(game, tuple(agents), opponents, models)


def _small(game: Game, agents: tuple[Agent, ...], opponents: tuple[str, ...], models: list[Array]) -> Holdings:
    """Holdings in a small game, where everything is exact."""
    layout = small_layout(game)
    tables = [tabulated(agent.probabilities, game) for agent in agents]
    values = np.array([[winnings(game, table, model) for model in models] for table in tables])
    shown, known = ([from_small(layout, one) for one in part] for part in (tables, models))
    names = tuple(plain_name(text) for text in opponents)
    return _holdings(layout, small_cards(layout), agents, shown, names, known, 1000 * values / game.big_blind)


def own_holdings(arguments: str, game: Game, *, trusted: bool = False) -> Holdings:
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
    return _holdings(groups.bands, holdem_cards(groups), members, shown, portfolio.opponents, known, values)


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


def _holdings(
    layout: Layout,
    cards: Cards,
    agents: tuple[Agent, ...],
    shown: list[Floats],
    opponents: tuple[str, ...],
    sketches: list[Floats],
    values_mbb: Array,
) -> Holdings:
    """Strategies with their sketches, known opponents with theirs, and what each wins from whom."""
    equal = bit_table(layout.legal, 3)
    equal = equal / equal.sum(axis=1, keepdims=True)
    known = pack([(1 - SLIP) * sketch + SLIP * equal for sketch in sketches])
    prior = np.full(len(opponents), (1 - EQUILIBRIUM) / max(len(opponents) - 1, 1))
    prior[opponents.index("teacher")] = EQUILIBRIUM
    names = tuple(agent.name for agent in agents)
    judge = Judge(layout, cards, known, pack(shown))
    return Holdings(names, agents, judge, opponents, values_mbb / 1000, prior)
