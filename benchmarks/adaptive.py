"""The adaptive agent: what it takes in 3,000 hands, what it loses to the equilibrium, and how fast it answers.

Beside it in the same run, on the same deals: the strategy of its own portfolio that wins most from the opponent, as if
it had been known from the first hand, and @teacher. Opponents come in three lots: those that the portfolio was made
for; others that it does not know, but that were in sight when the rules of its choice were settled; and others that
nobody had looked at then. The bundle `models/teacher` is one of these where the command runs beside it, and so are
those of `--bundle`. Every match begins anew; results are adjusted
(`pipeline.arena.variance`), and matches go on until the 95 % interval is within 15 mbb/h.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._figures import Figure, Settings
from benchmarks.wire import match_on_wire
from pipeline.agents.adaptive import Adaptive
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.api.play import tournament
from pipeline.arena.match import play_match
from pipeline.models.measures import half_width
from pipeline.poker.game import builtin

GAME = builtin("holdem.limit.2p.reverse_blinds")
FOR = ("@equity", "@calibrated:70,70", "@calibrated:20,80", "@chump:rock", "@chump:maniac", "@bearl")
SEEN = ("@calibrated:40,60", "@calibrated:90,30", "@random", "@raise", "@call")
UNSEEN = ("@calibrated:30,30", "@calibrated:60,90", "@chump:40,40,20", "@chump:15,70,15", "@chump:30,10,60")
BUNDLE = "models/teacher"
HANDS = 3_000
FEWEST, MOST = 10, 50
"""matches against one opponent"""
WIDTH = 15.0
"""half an interval that is narrow enough"""
AGAINST_TEACHER = 100
FIELD = ("@adaptive", "@teacher", "@equity", "@bearl", "@calibrated:70,70", "@calibrated:20,80")
PREY = ("@chump:station", "@chump:rock", "@chump:maniac", "@chump:gambler", "@call", "@raise", "@random", "@fold")


def _samples(agent: Agent, opponent: Agent, matches: range) -> list[float]:
    """Measure what an agent wins in each of the matches of these seeds, all begun anew, in mbb/h."""
    winnings = []
    for seed in matches:
        match = play_match([agent, opponent], GAME, hands=HANDS, seed=1_000 + seed, adjusted=True)
        winnings.append(float(match.best_samples_mbb[:, 0].mean()))
    return winnings


def _until_narrow(agent: Agent, opponent: Agent) -> list[float]:
    """Measure what an agent wins in as many matches as make the interval over matches narrow."""
    winnings: list[float] = []
    while len(winnings) < FEWEST or (half_width(np.array(winnings)) > WIDTH and len(winnings) < MOST):
        winnings += _samples(agent, opponent, range(len(winnings), len(winnings) + FEWEST))
    return winnings


def _taken(agent: Adaptive, opponents: Sequence[str], what: str, target: str) -> list[Figure]:
    """Measure what the agent takes from each opponent, and the mean of its shares of the best strategy's winnings."""
    figures, shares, gained = [], [], []
    equilibrium, *counters = agent.portfolio.members
    for text in opponents:
        opponent = resolve(text, GAME)
        won = _until_narrow(agent, opponent)
        # chosen in a match that is not among those it is judged in: the largest of several noisy results flatters
        ranked = sorted(counters, key=lambda counter: -_samples(counter, opponent, range(-1, 0))[0])
        everyone = range(len(won))
        base = float(np.mean(_samples(equilibrium, opponent, everyone)))
        best = max(base, float(np.mean(_samples(ranked[0], opponent, everyone))))
        mine, width = float(np.mean(won)), half_width(np.array(won))
        shares.append(mine / best)
        gained.append(mine - base)
        label = f"@adaptive against {text}, {len(won)} matches"
        figures.append(Figure(label, mine, f"mbb/h ± {width:.0f}", "best of portfolio", best, mine / best))
        figures.append(Figure("the same, more than @teacher", mine - base, "mbb/h", "@teacher", base))
    figures.append(Figure(f"@adaptive: mean share, {what}", float(np.mean(shares)), "of best", target=target))
    figures.append(Figure(f"@adaptive: least more than @teacher, {what}", min(gained), "mbb/h"))
    return figures


def _ranked() -> list[Figure]:
    """Measure its places in a tournament of what comes with the package."""
    played = tournament(*FIELD, *PREY, hands=HANDS, seed=7)
    figures = []
    for ranking in (played.total_bankroll, played.instant_runoff):
        names = [standing.name for standing in ranking.standings]
        for name in ("adaptive", "teacher"):
            standing = ranking.standings[names.index(name)]
            width = (standing.won.high - standing.won.low) / 2
            label = f"{ranking.rule}: place of @{name} ({standing.won.value:+.0f} ± {width:.0f} mbb/h)"
            first = name == "adaptive" and ranking is played.total_bankroll
            figures.append(Figure(label, names.index(name) + 1, "place", target="1" if first else ""))
    return figures


def _to_the_equilibrium(agent: Adaptive) -> list[Figure]:
    """Measure what is lost to @teacher."""
    won = _samples(agent, resolve("@teacher", GAME), range(AGAINST_TEACHER))
    label, width = f"@adaptive against @teacher, {AGAINST_TEACHER} matches", half_width(np.array(won))
    return [Figure(label, float(np.mean(won)), f"mbb/h ± {width:.1f}", target="at least -10")]


def _on_the_wire() -> list[Figure]:
    """Measure how fast it answers."""
    _, _, timings = match_on_wire(("@adaptive", "@calibrated:70,70"), HANDS)
    return [
        Figure("@adaptive on the wire: p99", timings[0]["p99_ms"], "ms", target="under 10"),
        Figure("@adaptive on the wire: longest", timings[0]["longest_ms"], "ms", target="at most 500"),
    ]


def run(settings: Settings) -> list[Figure]:
    """Measure losses to the equilibrium, places in a tournament, speed, winnings from known and unknown opponents."""
    agent = resolve("@adaptive", GAME)
    assert isinstance(agent, Adaptive)
    figures = [*_to_the_equilibrium(agent), *_ranked(), *_on_the_wire()]
    figures += _taken(agent, FOR, "opponents of the portfolio", "at least 0.6")
    bundles = [*([BUNDLE] if Path(BUNDLE).is_dir() else []), *settings.bundles]
    figures += _taken(agent, [*UNSEEN, *bundles], "others that nobody had looked at", "")
    return figures + _taken(agent, SEEN, "others in sight when its rules were settled", "")
