"""Lower bounds of exploitability beside what the responses win in matches that the bounds were not measured in.

Each attempt perturbs @teacher at random (see `perturbed`), computes the agent's exploitability as `counter --judge`
does, and lets the response that gave the bound play the agent again, on other deals. A bound above what it wins there
by more than two intervals is an error. Beside it is counted how often winnings over buckets, from the projection that
the response was trained against, would have been such a bound: those are why responses are judged at the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from perturbed import KINDS, Perturbed

from pipeline.agents.lbr import LocalResponse
from pipeline.agents.names import resolve
from pipeline.agents.teacher import Teacher
from pipeline.arena.match import play_match
from pipeline.models.measures import half_width
from pipeline.opponents.counters import exploitability
from pipeline.poker.game import builtin

GAME = builtin("holdem.limit.2p.reverse_blinds")
LOCAL_HANDS, LOCAL_HANDS_AGAIN = 200, 4_000
"""hands of the local best response, which takes its time, and when it plays again"""


def campaign(count: int, seed: int, deals: int, hands: int, note: Any = lambda text: None) -> dict[str, Any]:
    """Return how many of `count` bounds were positive, and how many winnings over buckets were no bounds."""
    random, teacher = np.random.default_rng(seed), resolve("@teacher", GAME)
    assert isinstance(teacher, Teacher)
    found = {"bounds": 0, "positive": 0, "over buckets": 0, "over buckets: no bound": 0}
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        strength = float(np.round(random.uniform(0.02, 0.4) if "mixed" in kind else random.uniform(0.3, 2.0), 2))
        agent = Perturbed(teacher, kind, strength, int(random.integers(1 << 30)))
        result = exploitability(agent, deals=deals, hands=LOCAL_HANDS, table_hands=hands, seed=seed + number)
        again, interval = 0.0, 0.0
        if result.response is not None:
            local = isinstance(result.response, LocalResponse)
            rematch_hands = min(hands, LOCAL_HANDS_AGAIN) if local else hands
            players, other_deals = [result.response, agent], seed + 1_000 + number
            match = play_match(players, GAME, hands=rematch_hands, seed=other_deals, adjusted=True)
            samples = match.best_samples_mbb[:, 0]
            again, interval = float(samples.mean()), half_width(samples)
        assert result.over_buckets is not None
        assert result.over_buckets_ci95 is not None
        over_buckets = result.over_buckets - result.over_buckets_ci95
        words = f"seed {seed}, {agent.name}: at least {result.at_least:.1f}, again {again:.1f} ± {interval:.1f}"
        note(f"{words} ({result.method}); over buckets {result.over_buckets:.1f} ± {result.over_buckets_ci95:.1f}")
        assert result.at_least <= again + 2 * interval, words
        found["bounds"] += 1
        found["positive"] += result.at_least > 0
        found["over buckets"] += over_buckets > 0
        found["over buckets: no bound"] += over_buckets > again + 2 * interval
    return found
