"""ACPC poker logs in, playable agents out: ingest, train, evaluate, play.

    import pipeline as p

    p.ingest("data/sample", "out/rows")
    p.train("out/rows", "out/teacher", agent="teacher")
    p.evaluate("out/rows", "out/teacher").frame()
    p.match("out/teacher", "@call", hands=20_000)

Every name of `__all__` is imported when it is first used, so that `import pipeline` takes milliseconds and loads
neither numpy nor pandas. `docs/python-api.md` has an example of each.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pipeline.runtime.version import __version__

if TYPE_CHECKING:
    from pipeline.agents.protocol import Agent as Agent
    from pipeline.api.bundles import OpenBundle as OpenBundle
    from pipeline.api.bundles import Training as Training
    from pipeline.api.bundles import load_bundle as load_bundle
    from pipeline.api.bundles import ship as ship
    from pipeline.api.bundles import train as train
    from pipeline.api.data import chart as chart
    from pipeline.api.data import ingest as ingest
    from pipeline.api.data import load as load
    from pipeline.api.games import hand_strength as hand_strength
    from pipeline.api.games import solve as solve
    from pipeline.api.overview import describe as describe
    from pipeline.api.play import agent as agent
    from pipeline.api.play import find_game as find_game
    from pipeline.api.play import match as match
    from pipeline.api.play import predict as predict
    from pipeline.api.play import tournament as tournament
    from pipeline.api.scores import evaluate as evaluate
    from pipeline.api.scores import write_report as write_report
    from pipeline.arena.duplicate import MatchResult as MatchResult
    from pipeline.arena.rankings import Tournament as Tournament
    from pipeline.dataset.load import Decisions as Decisions
    from pipeline.dataset.sql import query as query
    from pipeline.evaluation.evaluation import Evaluation as Evaluation
    from pipeline.models.charts import Chart as Chart
    from pipeline.poker.game import Game as Game
    from pipeline.runtime.errors import PipelineError as PipelineError
    from pipeline.training import sklearn as sklearn

_HOMES = {
    "pipeline.agents.protocol": ["Agent"],
    "pipeline.api.bundles": ["OpenBundle", "Training", "load_bundle", "ship", "train"],
    "pipeline.api.data": ["chart", "ingest", "load"],
    "pipeline.api.games": ["hand_strength", "solve"],
    "pipeline.api.play": ["agent", "find_game", "match", "predict", "tournament"],
    "pipeline.api.scores": ["evaluate", "write_report"],
    "pipeline.evaluation.evaluation": ["Evaluation"],
    "pipeline.arena.duplicate": ["MatchResult"],
    "pipeline.arena.rankings": ["Tournament"],
    "pipeline.models.charts": ["Chart"],
    "pipeline.dataset.load": ["Decisions"],
    "pipeline.runtime.errors": ["PipelineError"],
    "pipeline.poker.game": ["Game"],
    "pipeline.api.overview": ["describe"],
    "pipeline.dataset.sql": ["query"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "Chart",
    "Decisions",
    "Evaluation",
    "Game",
    "MatchResult",
    "OpenBundle",
    "PipelineError",
    "Tournament",
    "Training",
    "__version__",
    "agent",
    "chart",
    "describe",
    "evaluate",
    "find_game",
    "hand_strength",
    "ingest",
    "load",
    "load_bundle",
    "match",
    "predict",
    "query",
    "ship",
    "solve",
    "tournament",
    "train",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a public name, or the module `sklearn`, when it is first used."""
    if name == "sklearn":
        return importlib.import_module("pipeline.training.sklearn")
    if name not in _HOME:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "sklearn"])
