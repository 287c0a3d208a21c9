"""Where a model fails, on which hands most, and whether the agent it copies stays the same.

`breakdown` cuts a scored sample by betting situation, position, hand class, strength or opponent and gives each
part's error and log-loss with its floor, and its share of what the model loses: of the KL divergence where the
agent's probabilities are known, else of the log-loss. `worst` finds the decisions that a model gets most wrong.
`stationarity` compares an agent's choices in the same information sets between the first and second half of its
matches, and between opponents. `starting_charts` are the commonest preflop situations by starting class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.dataset.decisions import word_text
from pipeline.evaluation.repeat_floor import Change, change, information
from pipeline.evaluation.samples import ALL, Sample, streets
from pipeline.evaluation.scoring import Scored
from pipeline.models import measures
from pipeline.models.measures import Bootstrap, Interval
from pipeline.poker.cards import CATEGORIES, NO_CARD, names
from pipeline.runtime.array_types import Array

NAMES_BY_CATEGORY = (8, 13, 78, 13, 10, 8, 156, 13, 10)
"""How many hand names each category has; names are numbered from 1, category by category."""


@dataclass(frozen=True)
class Subset:
    """One part of a model's decisions on a street."""

    street: str
    part: str
    rows: int
    error: Interval
    log_loss: Interval
    floor_error: float | None
    floor_log_loss: float | None
    share: float
    """the part of the street's whole loss that falls on these rows"""
    played: list[float]
    taken: list[float]


class Stationarity(NamedTuple):
    """One comparison of an agent with itself: between which two sides, and how far apart they are."""

    agent: str
    street: str
    between: str
    change: Change


def _situation(sample: Sample) -> tuple[Array, list[str]]:
    """The betting of the current street so far."""
    now = sample.rows["betting_codes"][np.arange(len(sample)), sample.rows["street"].astype(np.int64)]
    codes, number = np.unique(now, return_inverse=True)
    return number, [word_text(int(code), len(sample.labels) > 3) for code in codes]


def _position(sample: Sample) -> tuple[Array, list[str]]:
    players = int(sample.rows["players"].max(initial=2))
    said = ["big blind", "button"] if players == 2 else [f"position {i}" for i in range(players)]
    return sample.rows["position"], said


def _hand(sample: Sample) -> tuple[Array, list[str]]:
    """Category of the hand made so far; before the flop pairs, suited and off-suit hands; the card in small games."""
    if len(sample) and (sample.rows["low"] == NO_CARD).all():
        return sample.rows["high"], list("23456789TJQKA")
    of_name = np.concatenate([[0], np.repeat(np.arange(9) + 3, NAMES_BY_CATEGORY)])
    assert len(of_name) == len(names())
    pair = sample.rows["high"] == sample.rows["low"]
    suited = sample.rows["hole"][:, 0] & 3 == sample.rows["hole"][:, 1] & 3
    start = np.where(pair, 0, np.where(suited, 1, 2))
    number = np.where(sample.rows["name"] == 0, start, of_name[sample.rows["name"]])
    return number, ["pocket pair", "suited", "off-suit", *CATEGORIES]


def _strength(sample: Sample) -> tuple[Array, list[str]]:
    """Tenths of expected hand strength; -1 before the flop."""
    assert sample.strength is not None
    known = np.nan_to_num(sample.strength, nan=-1.0)
    return np.where(known < 0, -1, np.minimum((known * 10).astype(np.int64), 9)), [
        f"{i / 10:.1f}–{(i + 1) / 10:.1f}" for i in range(10)
    ]


def _opponent(sample: Sample) -> tuple[Array, list[str]]:
    return sample.opponent, list(sample.opponents)


CUTS: dict[str, Callable[[Sample], tuple[Array, list[str]]]] = {
    "situation": _situation,
    "position": _position,
    "hand": _hand,
    "strength": _strength,
    "opponent": _opponent,
}


def breakdown(scored: Scored, cut: str, draws: Bootstrap, *, least: int = 20) -> list[Subset]:
    """A model's decisions in parts, street by street.

    Parameters: `cut` names one of `CUTS`, `draws` the bootstrap of the sample's deals; parts with fewer than `least`
    rows are left out. Returns a `Subset` per street and part.
    """
    sample = scored.sample
    if cut == "strength" and sample.strength is None:
        return []
    number, said = CUTS[cut](sample)
    y = sample.taken
    floors = None if sample.truth is None else measures.floors(np.nan_to_num(sample.truth, nan=1.0))
    known = None if sample.truth is None else ~np.asarray(np.isnan(sample.truth).any(axis=1))
    found = []
    above = scored.by_row["log_loss"] if known is None else np.where(known, scored.by_row["kl"], 0.0)
    for street, at in streets(sample):
        if street == ALL:
            continue
        total = float(above[at].sum())
        for part in np.unique(number[at][number[at] >= 0]):
            rows = at.start + np.flatnonzero(number[at] == part)
            if len(rows) < least:
                continue
            floored = floors is not None and known is not None and bool(known[rows].all())
            played, taken = measures.frequencies(scored.played[rows], y[rows])
            lost = draws.intervals({name: scored.by_row[name][rows] for name in ("error", "log_loss")}, rows)
            found.append(
                Subset(
                    street=street,
                    part=said[int(part)],
                    rows=len(rows),
                    error=lost["error"],
                    log_loss=lost["log_loss"],
                    floor_error=float(floors["error"][rows].mean()) if floors is not None and floored else None,
                    floor_log_loss=float(floors["log_loss"][rows].mean()) if floors is not None and floored else None,
                    share=float(above[rows].sum()) / total if total > 0 else 0.0,
                    played=played.tolist(),
                    taken=taken.tolist(),
                )
            )
    return found


def worst(scored: Scored, count: int = 4, *, by_pot: bool = True) -> Array:
    """Row numbers of the worst disagreements, `count` per street, each in another betting situation.

    By KL(agent || model) where the agent's probabilities are known, else by surprise at what it did; times the pot
    unless told otherwise.
    """
    sample = scored.sample
    loss = scored.by_row["log_loss"]
    if sample.truth is not None:
        loss = np.where(np.isnan(sample.truth).any(axis=1), 0.0, scored.by_row["kl"])
    loss = loss * sample.rows["pot"] if by_pot else loss
    found: list[int] = []
    for street, at in streets(sample):
        if street == ALL:
            continue
        rows = np.arange(at.start, at.stop)
        rows = rows[np.argsort(-loss[rows], kind="stable")]
        _, first = np.unique(sample.rows["betting_codes"][rows], axis=0, return_index=True)
        found.extend(rows[np.sort(first)[:count]].tolist())
    return np.array(found, dtype=np.int64)


def stationarity(sample: Sample) -> list[Stationarity]:
    """Early against late hands of each match, and each opponent against the others, on every street.

    Comparisons without a common information set are left out.
    """
    keys = information(sample.rows)
    _, log = np.unique(sample.file, return_inverse=True)
    last = np.zeros(log.max(initial=0) + 1)
    np.maximum.at(last, log, sample.hand)
    sides = [("early and late hands", sample.hand > last[log] / 2)]
    opponents = np.unique(sample.opponent)
    for number in opponents[: 1 if len(opponents) == 2 else None] if len(opponents) > 1 else ():
        others = sample.opponents[opponents[1]] if len(opponents) == 2 else "the others"
        sides.append((f"{sample.opponents[number]} and {others}", sample.opponent == number))
    found = []
    for street, at in streets(sample):
        if street == ALL:
            continue
        for between, side in sides:
            changed = change(keys[at], sample.deal[at], sample.taken[at], late=side[at], labels=len(sample.labels))
            if changed.rows:
                found.append(Stationarity(sample.agent, street, between, changed))
    return found


class StartingChart(NamedTuple):
    """One preflop situation by starting class: what the agent does and what a model plays on the same rows."""

    situation: str
    rows: int
    seen: Array
    agent: Array
    model: Array


def starting_charts(scored: Scored, most: int = 8) -> list[StartingChart]:
    """The commonest preflop situations of a hold'em game; the agent's true mix where known, else how often it did."""
    sample = scored.sample
    if not sample.game.is_holdem:
        return []
    count = len(sample.labels)
    taken = np.eye(count)[sample.taken.astype(np.int64)]
    if sample.truth is not None and not np.isnan(sample.truth).any():
        taken = sample.truth
    preflop = np.flatnonzero(sample.rows["street"] == 0)
    words, number, sizes = np.unique(sample.rows["betting_codes"][preflop, 0], return_inverse=True, return_counts=True)
    found = []
    for which in np.argsort(-sizes, kind="stable")[:most]:
        rows = preflop[number == which]
        start = sample.rows["start"][rows].astype(np.int64)
        seen = np.bincount(start, minlength=169)
        agent, model = (
            np.stack([np.bincount(start, weights=values[rows, label], minlength=169) for label in range(count)], axis=1)
            for values in (taken, scored.played)
        )
        each = np.maximum(seen, 1)[:, None]
        said = word_text(int(words[which]), sample.game.nolimit)
        found.append(StartingChart(said, len(rows), seen, agent / each, model / each))
    return found
