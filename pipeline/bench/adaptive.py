"""The adaptive agent: what it takes in 3,000 hands, what it loses to the equilibrium, and how fast it answers.

Beside it in the same run, on the same deals: the strategy of its own portfolio that wins most from the opponent, as if
it had been known from the first hand, and @teacher. Opponents come in two lots: those that the portfolio was made for,
and others that it does not know. Every match begins anew; results are adjusted (`pipeline.luck`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.agents import Agent, resolve
from pipeline.agents.adaptive import Adaptive
from pipeline.api.play import tournament
from pipeline.arena import play_match
from pipeline.arena.match import half_width
from pipeline.bench import Figure
from pipeline.bench.wire import match_on_wire
from pipeline.game import builtin

__all__ = ["run"]

GAME = builtin("holdem.limit.2p.reverse_blinds")
FOR = ("@bearl", "@equity", "@calibrated:70,70", "@calibrated:20,80", "@chump:rock", "@chump:maniac")
OTHERS = ("@calibrated:40,60", "@calibrated:90,30", "@random", "@raise", "@call")
HANDS = 3_000
MATCHES = 10
AGAINST_TEACHER = 200
FIELD = ("@adaptive", "@teacher", "@equity", "@bearl", "@calibrated:70,70", "@calibrated:20,80", "@calibrated:auto")
PREY = ("@chump:station", "@chump:rock", "@chump:maniac", "@chump:gambler", "@call", "@raise", "@random", "@fold")


def _won(agent: Agent, opponent: str, matches: int) -> tuple[float, float]:
    """What an agent wins in so many matches, each begun anew, in mbb/h, and half its interval over matches."""
    other = resolve(opponent, GAME)
    samples: list[Any] = []
    for seed in range(matches):
        match = play_match([agent, other], GAME, hands=HANDS, seed=1_000 + seed, adjusted=True)
        samples.append(match.best_samples_mbb[:, 0].mean())
    return float(np.mean(samples)), half_width(np.array(samples))


def _taken(agent: Adaptive, opponents: tuple[str, ...], what: str, target: str) -> list[Figure]:
    """What the agent takes from each opponent, and the mean of its shares of the best strategy's winnings."""
    figures, shares = [], []
    for opponent in opponents:
        mine, width = _won(agent, opponent, MATCHES)
        ranked = sorted(agent.holdings.members[1:], key=lambda one: -_won(one, opponent, 1)[0])
        best = max(_won(one, opponent, MATCHES)[0] for one in (ranked[0], agent.holdings.members[0]))
        equilibrium = _won(agent.holdings.members[0], opponent, MATCHES)[0]
        shares.append(mine / best)
        figures.append(
            Figure(
                f"@adaptive against {opponent}, ± {width:.0f}", mine, "mbb/h", "best of portfolio", best, mine / best
            )
        )
        figures.append(Figure(f"@teacher against {opponent}", equilibrium, "mbb/h"))
    figures.append(Figure(f"@adaptive: mean share, {what}", float(np.mean(shares)), "of best", target=target))
    return figures


def _ranked() -> list[Figure]:
    """Its places in a tournament of what comes with the package."""
    found = tournament(*FIELD, *PREY, hands=HANDS, seed=7)
    figures = []
    for ranking in (found.total_bankroll, found.instant_runoff):
        names = [one.name for one in ranking.standings]
        for name in ("adaptive", "teacher"):
            one = ranking.standings[names.index(name)]
            width = (one.won.high - one.won.low) / 2
            label = f"{ranking.rule}: place of @{name} ({one.won.value:+.0f} ± {width:.0f} mbb/h)"
            first = name == "adaptive" and ranking is found.total_bankroll
            figures.append(Figure(label, names.index(name) + 1, "place", target="1" if first else ""))
    return figures


def run() -> list[Figure]:
    """Winnings against known and unknown opponents, the loss to the equilibrium, answers on the wire, a tournament."""
    agent = resolve("@adaptive", GAME)
    assert isinstance(agent, Adaptive)
    figures = _taken(agent, FOR, "opponents of the portfolio", "at least 0.6")
    figures += _taken(agent, OTHERS, "opponents it does not know", "")
    won, width = _won(agent, "@teacher", AGAINST_TEACHER)
    figures.append(Figure(f"@adaptive against @teacher, ± {width:.1f}", won, "mbb/h", target="at least -10"))
    _, _, told = match_on_wire(("@adaptive", "@calibrated:70,70"), HANDS)
    figures.append(Figure("@adaptive on the wire: p99", told[0]["p99_ms"], "ms", target="under 10"))
    figures.append(Figure("@adaptive on the wire: longest", told[0]["longest_ms"], "ms", target="at most 500"))
    return figures + _ranked()
