"""The priors that a request names, opened and checked: bundles and built-in agents.

From a bundle come the models of the streets that are trained; a built-in agent is found by its name. Both must play the
game of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.dataset.decisions import STREETS
from pipeline.features.reading import RatedRows
from pipeline.models.bundle import Bundle, load_bundle
from pipeline.models.policy import check_game
from pipeline.models.prior import DEEPEST, AgentPrior, ModelPrior, Prior, depth_of, find_agent
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError
from pipeline.training.tasks import Examples


@dataclass(frozen=True)
class OpenPrior:
    """A prior before it is known which streets it is asked about."""

    name: str
    game: Game
    bundle: Bundle | None
    """none for a built-in agent"""

    @property
    def digest(self) -> str:
        """Return a hash of a bundle's models; empty for agents, which the name identifies."""
        return "" if self.bundle is None else ModelPrior(self.name, self.bundle.models).digest

    def on(self, streets: Sequence[int], examples: Examples) -> Prior:
        """Return the prior of some streets; `examples` are the rows that a model will be trained on."""
        if self.bundle is None:
            rows: Any = examples.rows
            return AgentPrior.of(self.name, self.game, rows.rows if isinstance(rows, RatedRows) else rows)
        models = self.bundle.models
        missing = [STREETS[street] for street in streets if street not in models]
        if missing:
            raise PipelineError(f"the prior {self.name} has no model for the {missing[0]}: train one or leave it out")
        return ModelPrior(self.name, {street: models[street] for street in streets})


def open_named_priors(names: Sequence[str], game: Game) -> list[OpenPrior]:
    """Open the priors that a user named, for a game."""
    priors = []
    for name in names:
        if name.startswith(("python:", "exec:")):
            raise PipelineError(f"{name} cannot be a prior: a bundle cannot take somebody's own bot along")
        if name.startswith("@"):
            find_agent(name, game)
            priors.append(OpenPrior(name, game, None))
            continue
        path = Path(name)
        bundle = load_bundle(path)
        if bundle.missing:
            raise PipelineError(bundle.describe_missing(path))
        check_game(bundle, path, game)
        if max(map(depth_of, bundle.models.values()), default=0) >= DEEPEST:
            raise PipelineError(f"the prior {name} has priors of priors, {DEEPEST} deep: name one of those instead")
        priors.append(OpenPrior(name, game, bundle))
    if len({prior.name for prior in priors}) != len(priors):
        raise PipelineError(f"a prior is named twice: {', '.join(names)}")
    return priors


def merge_ranges(own: Mapping[str, Any], priors: Sequence[OpenPrior]) -> dict[str, Any]:
    """Return the games that a bundle of hand histories may play: those of its rows and those that a prior knows."""
    ranges = [
        about["range"]
        for about in (own, *(known_range.bundle.about for known_range in priors if known_range.bundle))
        if "range" in about
    ]
    if not ranges or "range" not in own:
        return dict(own)
    stacks = [known_range["stacks_bb"] for known_range in ranges]
    players = [known_range["players"] for known_range in ranges]
    return {
        "range": {
            "players": [min(low for low, _ in players), max(high for _, high in players)],
            "stacks_bb": None if None in stacks else [min(low for low, _ in stacks), max(high for _, high in stacks)],
        }
    }
