"""What the page shows of opponents: how a counter-strategy was chosen, and what an adaptive agent thought in a match.

In: the folder or zip file of a counter-strategy, and what `match --json` printed, both checked; or the same things in
memory. Out: `Tried` and `Thoughts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.agents.adaptive import Adaptive, Step
from pipeline.runtime.errors import PipelineError
from pipeline.solving.counter import Worth
from pipeline.solving.strategy import strategy_facts


@dataclass(frozen=True)
class Tried:
    """The shares of trust that were tried for a counter-strategy."""

    against: str
    method: str
    unit: str
    kept: Worth
    curve: tuple[Worth, ...]


@dataclass(frozen=True)
class Thoughts:
    """What an adaptive agent thought in the course of a match."""

    name: str
    against: str
    members: tuple[str, ...]
    steps: tuple[Step, ...]


def read_tried(folder: Path) -> Tried:
    """How a stored counter-strategy was chosen, from its manifest."""
    facts = strategy_facts(folder)
    try:
        found = facts["counter"]
        curve = tuple(_worth(one) for one in found["curve"])
        return Tried(str(facts["against"]), str(found["method"]), str(facts["unit"]), _worth(found), curve)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise PipelineError(f"{folder} is a strategy, but not one that `counter` found") from None


def read_thoughts(said: Mapping[str, Any]) -> list[Thoughts]:
    """What the adaptive agents of a match thought, from what `match --json` printed; `ValueError` if it is damaged."""
    found = []
    try:
        players = [one["name"] for one in said.get("agents", [])]
        for one in said.get("adaptation", []):
            members = tuple(str(name) for name in one["members"])
            steps = tuple(_step(step, len(members)) for step in one["steps"])
            others = [str(name) for name in players if name != one["name"]]
            found.append(Thoughts(str(one["name"]), ", ".join(others), members, steps))
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError("its adaptation is of another kind") from None
    return found


def thoughts_of(agent: Adaptive, players: Sequence[str]) -> Thoughts:
    """What an adaptive agent thought in the match that it has just played with players of these names."""
    others = ", ".join(name for name in players if name != agent.name)
    return Thoughts(agent.name, others, agent.holdings.names, tuple(agent.steps))


def _worth(one: Mapping[str, Any]) -> Worth:
    return Worth(*(_number(one[name]) for name in Worth._fields))


def _step(one: Mapping[str, Any], members: int) -> Step:
    """What was thought once, from its JSON."""
    weights, gains = (tuple(_number(value) for value in one[name]) for name in ("weights", "gains"))
    step = Step(
        int(_number(one["hands"])),
        int(_number(one["playing"])),
        weights,
        gains,
        str(one["opponent"]),
        _number(one["likelihood"]),
    )
    if not 0 <= step.playing < members or {len(weights), len(gains)} != {members}:
        raise ValueError("its steps are not about its members")
    return step


def _number(value: Any) -> float:
    """A finite number."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]} is no number")
    return float(value)
