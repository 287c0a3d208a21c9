"""Compiling before a match: the agents play a few hands first, so that a first run compiles everything in one go.

Agents and a game go in, nothing comes out. The room is its own because playing needs to know nothing of compiling: who
plays many hands behind a progress bar rehearses them here, and the bar's estimates are those of playing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.agents.guests import Guest, Program
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.arena.variance.standings import supports
from pipeline.poker.game import Game
from pipeline.runtime.kernels import is_kept, prepare

HANDS = 200
"""enough to see every street, and to fit weights that take luck out of results"""
PLAYING = ("pipeline.arena.lockstep",)
WRITING = ("pipeline.arena.transcript",)
ADJUSTING = ("pipeline.arena.adjusting", "pipeline.arena.variance.terms", "pipeline.arena.variance.regression")
STRENGTHS = ("pipeline.poker.strength.queries",)
MODELS = ("pipeline.features.encoding", "pipeline.features.reading", "pipeline.features.vocabulary")
AGENTS = {
    "pipeline.agents.adaptive": ("pipeline.agents.teacher", "pipeline.solving.hindsight"),
    "pipeline.agents.bearl": ("pipeline.agents.bearl", "pipeline.agents.staking"),
    "pipeline.agents.calibrated": ("pipeline.agents.calibrated", "pipeline.agents.staking"),
    "pipeline.agents.equity": STRENGTHS,
    "pipeline.agents.lbr": ("pipeline.agents.lbr",),
    "pipeline.agents.teacher": ("pipeline.agents.teacher",),
    "pipeline.models.policy": (*MODELS, "pipeline.models.softmax"),
}
"""modules whose compiled functions agents call, by the module of the agent's class"""


def _agent_modules(agents: Sequence[Agent]) -> Iterator[str]:
    """The modules of compiled functions that agents are known to call."""
    for agent in agents:
        yield from AGENTS.get(type(agent).__module__, ())


def rehearse(agents: Sequence[Agent], game: Game, *, adjusted: bool | int = False, logged: bool = False) -> None:
    """Play a few hands where something that a match needs has not been compiled yet.

    Parameters: as for `play_match`, with `logged` where it writes logs. Bots from outside are not asked: they may keep
    what they see, so somebody else sits in for them. Learners forget when the match begins.
    """
    adjusted = adjusted if supports(game) else False
    modules = [*PLAYING, *(ADJUSTING if adjusted else ()), *(WRITING if logged else ()), *_agent_modules(agents)]
    if len(agents) != game.players or all(map(is_kept, modules)):
        return
    seated = [resolve("@random", game) if isinstance(agent, (Guest, Program)) else agent for agent in agents]

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "rehearsal" if logged else None
            play_match(seated, game, hands=HANDS, adjusted=adjusted, log=log, threads=1)

    prepare(work, modules)
