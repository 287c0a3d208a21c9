"""Decisions of agents as arrays to score models on.

In go a dataset's folder and files of true probabilities, out comes a `DecisionSample` per agent: rows, labels taken,
deals, opponents, strength and, where known, the agent's own probabilities. `join_samples` joins several samples.
Models and baselines are scored on samples only, so that a test can make one up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.raises import raise_increments
from pipeline.evaluation.hands_to_tell import DealtHands, dealt_hands, join_dealt
from pipeline.evaluation.truth import read_truth
from pipeline.models.measures import ALL_ROWS
from pipeline.models.sizes import is_history_game
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array, Floats, Ints
from pipeline.runtime.errors import PipelineError

ALL = "all"
"""the name of all streets together"""
ALL_AGENTS = "(all agents)"
"""the agent's name of a sample that holds the decisions of several agents"""


@dataclass(frozen=True)
class DecisionSample:
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
    dealt: DealtHands | None = None
    """the hands dealt to the agent, where its own probabilities are known"""
    beyond: Array | None = None
    """of hand histories: the chips that a raise goes beyond the highest bet, -1 for other actions"""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: Array) -> DecisionSample:
        """Return some of the rows, or the rows in another order."""
        alone = ("agent", "game", "opponents", "files", "dealt")
        by_row = [field.name for field in fields(self) if field.name not in alone]
        arrays: dict[str, Any] = {name: getattr(self, name) for name in by_row if getattr(self, name) is not None}
        dealt = None if self.dealt is None else self.dealt.take(which)
        return replace(self, dealt=dealt, **{name: values[which] for name, values in arrays.items()})

    @property
    def labels(self) -> str:
        """Return the letters of the actions."""
        return self.game.labels


def street_slices(sample: DecisionSample) -> list[tuple[str, slice]]:
    """Return the streets that have rows with their slices, then all of them together."""
    ends = np.searchsorted(sample.rows["street"], np.arange(len(STREETS) + 1))
    slices = [(name, slice(int(ends[i]), int(ends[i + 1]))) for i, name in enumerate(STREETS) if ends[i] < ends[i + 1]]
    return [*slices, (ALL, ALL_ROWS)] if len(slices) > 1 else slices


def join_samples(samples: Sequence[DecisionSample]) -> tuple[DecisionSample, Array]:
    """Join the decisions of several agents into one sample, sorted by street.

    Returns the sample and the order of its rows in the concatenation of `samples`.
    """
    order = np.argsort(np.concatenate([sample.rows["street"] for sample in samples]), kind="stable")

    def joined(name: str) -> Array:
        return np.concatenate([getattr(sample, name) for sample in samples])[order]

    opponents, new_opponents = _number_names([sample.opponents for sample in samples])
    files, new_files = _number_names([sample.files for sample in samples])
    opponent_numbers = [numbers[sample.opponent] for numbers, sample in zip(new_opponents, samples, strict=True)]
    file_numbers = [numbers[sample.file] for numbers, sample in zip(new_files, samples, strict=True)]
    dealt = [sample.dealt for sample in samples if sample.dealt is not None]
    unknown = np.full((1, len(samples[0].labels)), np.nan)
    truth = [np.repeat(unknown, len(part), axis=0) if part.truth is None else part.truth for part in samples]
    return (
        DecisionSample(
            agent=ALL_AGENTS,
            game=samples[0].game,
            rows=joined("rows"),
            taken=joined("taken"),
            deal=joined("deal"),
            opponent=np.concatenate(opponent_numbers)[order],
            opponents=opponents,
            file=np.concatenate(file_numbers)[order],
            files=files,
            hand=joined("hand"),
            k=joined("k"),
            strength=None if any(part.strength is None for part in samples) else joined("strength"),
            truth=None if all(part.truth is None for part in samples) else np.concatenate(truth)[order],
            amount=None if any(part.amount is None for part in samples) else joined("amount"),
            line=None if any(part.line is None for part in samples) else joined("line"),
            beyond=None if any(part.beyond is None for part in samples) else joined("beyond"),
            dealt=join_dealt(dealt, new_files).take(order) if len(dealt) == len(samples) else None,
            who=np.repeat(np.arange(len(samples)), [len(part) for part in samples])[order],
        ),
        order,
    )


def _number_names(lists: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], list[Ints]]:
    """Return the distinct names of some lists, and for each list the number of each of its names among them.

    Samples of one dataset share a list, which is numbered once.
    """
    numbers: dict[str, int] = {}
    by_list: dict[int, Ints] = {}
    for names in lists:
        if id(names) not in by_list:
            by_list[id(names)] = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    return tuple(numbers), [by_list[id(names)] for names in lists]


def read_samples(
    data: Path,
    agents: Sequence[str] | None = None,
    *,
    side: str | None = "validation",
    truths: Sequence[Path] = (),
    game: str | None = None,
) -> list[DecisionSample]:
    """Read the decisions of each agent of a dataset.

    Parameters: `agents` all by default; `side` of the split, `None` for both; `truths` Parquet files of true
    probabilities, the first that knows a decision counts; `game` the name of one of several games. Returns a
    `DecisionSample` per agent that has decisions.
    """
    strength = read_manifest(data).options.strength
    decisions = load_decisions(data, agents, side=side, strength=strength, game=game)
    if len(decisions) == 0:
        raise PipelineError(f"{data} has no decisions{f' on the {side} side' if side else ''}; ingest more logs")
    truth = _find_truth(decisions, truths)
    chips_beyond = raise_increments(data, decisions) if is_history_game(decisions.game) else None
    samples = []
    bounds = np.searchsorted(decisions.agent, np.arange(len(decisions.agents) + 1))  # rows stand agent by agent
    for agent, (first, end) in zip(decisions.agents, pairwise(bounds), strict=True):
        if first == end:
            continue
        rows = np.arange(first, end)
        rows = rows[np.argsort(decisions.rows["street"][rows], kind="stable")]
        sample = DecisionSample(
            agent=agent,
            game=decisions.game,
            rows=decisions.rows[rows],
            taken=decisions.action[rows],
            deal=decisions.deal[rows],
            opponent=decisions.opponent[rows],
            opponents=decisions.opponents,
            file=decisions.file[rows],
            files=decisions.files,
            hand=decisions.hand[rows],
            k=decisions.k[rows],
            strength=_strength(decisions, rows),
            amount=decisions.amount[rows],
            line=decisions.line[rows],
            beyond=None if chips_beyond is None else chips_beyond[rows],
            truth=None if truth is None or np.isnan(truth[rows]).any(axis=1).all() else truth[rows],
        )
        if sample.truth is not None:
            sample = replace(sample, dealt=dealt_hands(Path(data), sample, side=side))
        samples.append(sample)
    return samples


def with_known_cards(samples: Sequence[DecisionSample]) -> list[DecisionSample]:
    """Return the decisions of samples whose players' own cards are known, without samples that have none."""
    masks = [sample.rows["hole"][:, 0] != NO_CARD for sample in samples]
    return [
        sample if mask.all() else sample.take(np.flatnonzero(mask))
        for sample, mask in zip(samples, masks, strict=True)
        if mask.any()
    ]


def _strength(decisions: Decisions, rows: Array) -> Floats | None:
    """Return expected strength on the street of the decision; NaN before the flop."""
    if decisions.strength is None:
        return None
    street = decisions.rows["street"][rows].astype(np.int64)
    value = decisions.strength["ehs"][rows, np.maximum(street - 1, 0)] / 65535.0
    return np.where(street > 0, value, np.nan)


def _find_truth(decisions: Decisions, paths: Sequence[Path]) -> Floats | None:
    """Look up the true probabilities of the rows in the first file that has them; NaN rows where none has."""
    if not paths:
        return None
    truth = np.full((len(decisions), len(decisions.game.labels)), np.nan)
    for path in paths:
        missing = np.isnan(truth).any(axis=1)
        file_truth = read_truth(path, decisions.game.labels)
        truth[missing] = file_truth.find(
            decisions.files, decisions.file[missing], decisions.hand[missing], decisions.k[missing]
        )
    if np.isnan(truth).any(axis=1).all():
        named = next(iter(file_truth.files), "no log")
        raise PipelineError(
            f"{path} has no probability for any of these decisions: it was written for other logs (such as {named}), "
            f"these come from logs such as {Path(decisions.files[0]).name}; name the file that was written beside "
            "these logs, or leave out --probabilities"
        )
    return truth
