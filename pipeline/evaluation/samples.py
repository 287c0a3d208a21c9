"""Decisions of agents as arrays to score models on.

In go a dataset's folder and files of true probabilities, out comes a `Sample` per agent: rows, labels taken, deals,
opponents, strength and, where known, the agent's own probabilities. `together` joins the samples of several agents.
Models and baselines are scored on samples only, so that a test can make one up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.raises import beyond
from pipeline.evaluation.truth import read_truth
from pipeline.models.measures import EVERY
from pipeline.models.sizes import of_histories
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError

ALL = "all"
"""the name of all streets together"""
EVERYBODY = "(all agents)"
"""the agent's name of a sample that holds the decisions of several agents"""


@dataclass(frozen=True)
class Sample:
    """Decisions of one agent, sorted by street."""

    agent: str
    game: Game
    rows: Array
    taken: Array
    deal: Array
    opponent: Array
    """number of the opponent in `opponents`"""
    opponents: tuple[str, ...]
    file: Array
    """number of the log in `files`"""
    files: tuple[str, ...]
    hand: Array
    k: Array
    """index of the decision among all actions of its hand"""
    strength: Array | None = None
    """expected hand strength, 0..1, where the data has it; NaN before the flop"""
    truth: Floats | None = None
    """the agent's own probabilities; NaN rows where unknown"""
    who: Array | None = None
    """number of the agent, where the decisions are those of several"""
    amount: Array | None = None
    """the total that a raise goes to, in chips; 0 for other actions"""
    line: Array | None = None
    """the hand's line in its log: numbers of hands may come twice"""
    beyond: Array | None = None
    """of hand histories: the chips that a raise goes beyond the highest bet, -1 for other actions"""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: Array) -> Sample:
        """Some of the rows, or the rows in another order."""
        by_row = (
            "rows",
            "taken",
            "deal",
            "opponent",
            "file",
            "hand",
            "k",
            "strength",
            "truth",
            "who",
            "amount",
            "line",
            "beyond",
        )
        arrays: dict[str, Any] = {name: getattr(self, name) for name in by_row if getattr(self, name) is not None}
        return replace(self, **{name: values[which] for name, values in arrays.items()})

    @property
    def labels(self) -> str:
        """The letters of the actions."""
        return self.game.labels


def streets(sample: Sample) -> list[tuple[str, slice]]:
    """The streets that have rows, then all of them together."""
    ends = np.searchsorted(sample.rows["street"], np.arange(len(STREETS) + 1))
    found = [(name, slice(int(ends[i]), int(ends[i + 1]))) for i, name in enumerate(STREETS) if ends[i] < ends[i + 1]]
    return [*found, (ALL, EVERY)] if len(found) > 1 else found


def together(samples: Sequence[Sample]) -> tuple[Sample, Array]:
    """The decisions of several agents as one sample, sorted by street.

    Returns the sample and the order of its rows in the concatenation of `samples`.
    """
    order = np.argsort(np.concatenate([sample.rows["street"] for sample in samples]), kind="stable")

    def joined(name: str) -> Array:
        return np.concatenate([getattr(sample, name) for sample in samples])[order]

    opponents = list(dict.fromkeys(name for sample in samples for name in sample.opponents))
    files = list(dict.fromkeys(name for sample in samples for name in sample.files))
    seen = [np.array([opponents.index(name) for name in sample.opponents])[sample.opponent] for sample in samples]
    read = [np.array([files.index(name) for name in sample.files])[sample.file] for sample in samples]
    unknown = np.full((1, len(samples[0].labels)), np.nan)
    truth = [np.repeat(unknown, len(one), axis=0) if one.truth is None else one.truth for one in samples]
    return (
        Sample(
            agent=EVERYBODY,
            game=samples[0].game,
            rows=joined("rows"),
            taken=joined("taken"),
            deal=joined("deal"),
            opponent=np.concatenate(seen)[order],
            opponents=tuple(opponents),
            file=np.concatenate(read)[order],
            files=tuple(files),
            hand=joined("hand"),
            k=joined("k"),
            strength=None if any(one.strength is None for one in samples) else joined("strength"),
            truth=None if all(one.truth is None for one in samples) else np.concatenate(truth)[order],
            amount=None if any(one.amount is None for one in samples) else joined("amount"),
            line=None if any(one.line is None for one in samples) else joined("line"),
            beyond=None if any(one.beyond is None for one in samples) else joined("beyond"),
            who=np.repeat(np.arange(len(samples)), [len(one) for one in samples])[order],
        ),
        order,
    )


def read_samples(
    data: Path,
    agents: Sequence[str] | None = None,
    *,
    side: str | None = "validation",
    truths: Sequence[Path] = (),
    game: str | None = None,
) -> list[Sample]:
    """Read the decisions of each agent of a dataset.

    Parameters: `agents` all by default; `side` of the split, `None` for both; `truths` Parquet files of true
    probabilities, the first that knows a decision counts; `game` the name of one of several games. Returns a `Sample`
    per agent that has decisions.
    """
    strength = read_manifest(data).options.strength
    found = load_decisions(data, agents, side=side, strength=strength, game=game)
    if len(found) == 0:
        raise PipelineError(f"{data} has no decisions{f' on the {side} side' if side else ''}; ingest more logs")
    truth = _find_truth(found, truths)
    further = beyond(data, found) if of_histories(found.game) else None
    samples = []
    for number, agent in enumerate(found.agents):
        rows = np.flatnonzero(found.agent == number)
        if len(rows) == 0:
            continue
        rows = rows[np.argsort(found.rows["street"][rows], kind="stable")]
        samples.append(
            Sample(
                agent=agent,
                game=found.game,
                rows=found.rows[rows],
                taken=found.action[rows],
                deal=found.deal[rows],
                opponent=found.opponent[rows],
                opponents=found.opponents,
                file=found.file[rows],
                files=found.files,
                hand=found.hand[rows],
                k=found.k[rows],
                strength=_strength(found, rows),
                amount=found.amount[rows],
                line=found.line[rows],
                beyond=None if further is None else further[rows],
                truth=None if truth is None or np.isnan(truth[rows]).any(axis=1).all() else truth[rows],
            )
        )
    return samples


def _strength(found: Decisions, rows: Array) -> Floats | None:
    """Expected strength on the street of the decision; NaN before the flop."""
    if found.strength is None:
        return None
    street = found.rows["street"][rows].astype(np.int64)
    value = found.strength["ehs"][rows, np.maximum(street - 1, 0)] / 65535.0
    return np.where(street > 0, value, np.nan)


def _find_truth(found: Decisions, paths: Sequence[Path]) -> Floats | None:
    """The true probabilities of the rows, from the first file that has them; NaN rows where none has."""
    if not paths:
        return None
    truth = np.full((len(found), len(found.game.labels)), np.nan)
    for path in paths:
        missing = np.isnan(truth).any(axis=1)
        known = read_truth(path, found.game.labels)
        truth[missing] = known.find(found.files, found.file[missing], found.hand[missing], found.k[missing])
    if np.isnan(truth).any(axis=1).all():
        named = next(iter(known.files), "no log")
        raise PipelineError(
            f"{path} has no probability for any of these decisions: it was written for other logs (such as {named}), "
            f"these come from logs such as {Path(found.files[0]).name}; name the file that was written beside these "
            "logs, or leave out --probabilities"
        )
    return truth
