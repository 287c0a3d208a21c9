"""Players of few hands: everybody's model, a player's own, and the player's offset to everybody, on held-out deals.

In: the rows of a dataset of hand histories. A fifth of the deals is held out for the figures. Everybody's model
(betting alone) is trained on the other deals of all players. A player's own is trained on that player's rows twice: as
`train` does without a prior, stopped by some of the deals, and with penalties chosen by cross-fitting like those of the
offset. The offset has everybody's model as its prior. Players are divided in two halves by a hash of their names:
settings were chosen on one (`CHOSEN`), figures are of the other (`REPORTED`). The unit of the intervals is the player.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._figures import Figure
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.features.patterns import find_pattern
from pipeline.models.bundle import Model
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.models.prior import ModelPrior
from pipeline.runtime.parallel import Workers
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

CHOSEN, REPORTED = 0, 1
LEAST_HANDS, MOST_HANDS = 100, 1463
WAYS = ("everybody", "own rows", "own rows, chosen penalties", "offset")


@dataclass(frozen=True)
class Even:
    """A prior that says nothing: with it, penalties are chosen as they are for an offset."""

    name: str = "even"
    digest: str = "even"

    def predict(self, rows: Any) -> NDArray[np.float64]:
        return np.ones((len(rows), 7))

    def to_json(self) -> dict[str, Any]:
        return {}

    def to_arrays(self) -> dict[str, Any]:
        return {}


def _half(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] & 1


def chosen_players(streets: list[Decisions], half: int, most: int) -> list[int]:
    """Numbers of the players of one half with a number of hands in the range, at most so many of them."""
    first = streets[0]
    hands = np.unique(np.stack([first.agent, first.file, first.line]).astype(np.int64), axis=1)
    counts = np.bincount(hands[0], minlength=len(first.agents))
    fitting = [
        at for at in np.flatnonzero((counts >= LEAST_HANDS) & (counts <= MOST_HANDS)) if _half(first.agents[at]) == half
    ]
    luck = np.random.default_rng(1)
    return sorted(luck.permutation(fitting)[:most].tolist())


def _examples(found: Decisions, chosen: NDArray[np.bool_]) -> Examples:
    hand = np.unique(np.stack([found.file[chosen], found.line[chosen]]), axis=1, return_inverse=True)[1]
    return Examples(found.rows[chosen], found.action[chosen], hand.reshape(-1).astype(np.int64))


def _task(found: Decisions, street: int, chosen: NDArray[np.bool_], held: NDArray[np.bool_]) -> Task:
    labels = tuple(found.game.labels)
    pattern = find_pattern("betting")
    return Task(_examples(found, chosen), _examples(found, held), pattern, labels, (street,), workers=Workers(2))


def everybody(found: Decisions, street: int) -> Model:
    """The model of all players' training deals."""
    fold = _folds(found)
    return train_model("l-bfgs", _task(found, street, fold > 2, fold == 2)).model


def _folds(found: Decisions) -> NDArray[np.int64]:
    return (found.deal // np.uint64(10) % np.uint64(10)).astype(np.int64)


def player_losses(found: Decisions, street: int, player: int, population: Model) -> NDArray[np.float64]:
    """(rows, ways) log-loss of each way on the player's decisions in held-out deals."""
    fold, mine = _folds(found), found.agent == player
    test = mine & (fold < 2)
    if not test.any():
        return np.empty((0, len(WAYS)))
    rows = found.rows[test]
    task = _task(found, street, mine & (fold > 2), mine & (fold == 2))
    whole = replace(_task(found, street, mine & (fold > 1), mine & (fold < 0)), validation=None)
    answers = [population.predict(rows)]
    plain = task.is_learnable
    answers.append(train_model("l-bfgs", task).model.predict(rows) if plain else np.full_like(answers[0], np.nan))
    answers.append(train_model("l-bfgs", replace(whole, priors=(Even(),))).model.predict(rows))
    prior = ModelPrior("everybody", {street: population})
    answers.append(train_model("l-bfgs", replace(whole, priors=(prior,))).model.predict(rows))
    legal = (rows["legal"][:, None] >> np.arange(answers[0].shape[1])) & 1
    even = legal / legal.sum(axis=1, keepdims=True)
    taken = np.stack([np.where(np.isfinite(one), one, even) for one in answers], axis=1)
    taken = taken[np.arange(len(rows)), :, found.action[test]]
    return -np.log(np.maximum(taken, LEAST_PROBABILITY))


def player_figures(rows: Path, half: int = REPORTED, most: int = 120) -> list[Figure]:
    """The figures of one half of the players."""
    streets = [load_decisions(rows, None, [street]) for street in STREETS]
    populations = [everybody(found, street) for street, found in enumerate(streets)]
    names = streets[0].agents
    losses, owner = [], []
    for number, player in enumerate(chosen_players(streets, half, most)):
        for street, found in enumerate(streets):
            at = found.agents.index(names[player]) if names[player] in found.agents else -1
            part = player_losses(found, street, at, populations[street])
            losses.append(part)
            owner.append(np.full(len(part), number))
    loss, unit = np.concatenate(losses), np.concatenate(owner)
    means = loss.mean(axis=0)
    figures = []
    for way, theirs in list(zip(WAYS, means, strict=True))[:-1]:
        gain = loss[:, WAYS.index(way)] - loss[:, -1]
        sums = np.bincount(unit, gain - gain.mean(), most)
        width = 1.96 * np.sqrt((sums**2).sum()) / len(gain)
        name = f"few hands, {int(unit.max()) + 1} players: offset less {way} (± {width:.4f})"
        figures.append(Figure(name, -gain.mean(), "nats", way, theirs, means[-1] / theirs, "below 0"))
    return figures
