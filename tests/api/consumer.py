"""A program over the public functions: mypy in strict mode checks that each result has a type."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import pipeline as p
from pipeline.agents.predictions import Mix, Prediction
from pipeline.dataset.hands import Decision, PlayedHand
from pipeline.opponents.profiles import Profile


def use() -> None:
    bundle = p.load_bundle("copy")
    decisions = p.load("rows")
    agents: list[p.Agent] = [bundle, p.solve("kuhn.limit.2p").agent()]
    played = p.match(bundle, "@call", Path("other"), *agents)
    assert_type(played.mbb_per_hand(), float)
    assert_type(bundle.predict("MATCHSTATE:0:0::AsKs|"), Mix)
    assert_type(bundle.predict("MATCHSTATE:0:0::AsKs|").fold, float)
    assert_type([*p.predict(bundle, "MATCHSTATE:0:0::AsKs|")], list[Prediction])
    assert_type(decisions[0], Decision)
    assert_type(decisions[1:3], p.Decisions)
    assert_type(decisions.hands(), Iterator[PlayedHand])
    assert_type(p.profile("rows")[0], Profile)
    assert_type(p.hand_strength("AsKs").equity, float)
    assert_type(p.train("rows", "out", patience=3, rho1=0.1).paths, list[Path])
    assert_type(p.describe(bundle).agents, tuple[str, ...])
    assert_type(p.exploit("@call").at_least, float)
    assert_type(p.score("logs")[0].hands, int)
    assert_type(p.counter("out", against=bundle).counter.tradeoff.winnings, float)
    assert_type(p.identify("logs", bundle, "@call")[0].posterior, dict[str, float])
    assert_type(p.ship(bundle, "bot.zip"), Path)
