"""Errors of a scored model in detail, and a test of whether the agent it copies stays the same.

`breakdown` cuts a scored sample by betting situation, position, hand class, strength or opponent and gives each
part's error and log-loss with its floor, and its share of the model's whole loss: of the KL divergence where the
agent's probabilities are known, else of the log-loss. `worst_disagreements` finds the decisions that a model gets most
wrong. `stationarity` compares an agent's choices in the same information sets between the first and second half of its
matches, and between opponents. `starting_charts` counts the commonest preflop situations by starting class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.dataset.decisions import betting_text
from pipeline.evaluation.repeat_floor import BehaviourChange, behaviour_change, information_set_keys
from pipeline.evaluation.samples import ALL, DecisionSample, street_slices
from pipeline.evaluation.scoring import Scored
from pipeline.models import measures
from pipeline.models.measures import Bootstrap, Interval
from pipeline.poker.cards import CATEGORIES, NO_CARD, hand_names
from pipeline.poker.spoken import position_words
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
    """One comparison of an agent with itself: the names of the two sides, and the distance between them."""

    agent: str
    street: str
    between: str
    change: BehaviourChange


def _situation(sample: DecisionSample) -> tuple[Array, list[str]]:
    """Number rows by the betting of the current street so far."""
    now = sample.rows["betting_codes"][np.arange(len(sample)), sample.rows["street"].astype(np.int64)]
    codes, number = np.unique(now, return_inverse=True)
    return number, [betting_text(int(code), len(sample.labels) > 3) for code in codes]


def _position(sample: DecisionSample) -> tuple[Array, list[str]]:
    """Number rows by the position of the acting player."""
    players = int(sample.rows["players"].max(initial=2))
    names = [position_words(position, players, sample.game.is_holdem) for position in range(players)]
    return sample.rows["position"], names


def _hand(sample: DecisionSample) -> tuple[Array, list[str]]:
    """Number rows by category of the made hand; by pair, suited, off-suit before the flop; by card in small games."""
    if len(sample) and (sample.rows["low"] == NO_CARD).all():
        return sample.rows["high"], list("23456789TJQKA")
    of_name = np.concatenate([[0], np.repeat(np.arange(9) + 3, NAMES_BY_CATEGORY)])
    assert len(of_name) == len(hand_names())
    pair = sample.rows["high"] == sample.rows["low"]
    suited = sample.rows["hole"][:, 0] & 3 == sample.rows["hole"][:, 1] & 3
    start = np.where(pair, 0, np.where(suited, 1, 2))
    number = np.where(sample.rows["name"] == 0, start, of_name[sample.rows["name"]])
    return number, ["pocket pair", "suited", "off-suit", *CATEGORIES]


def _strength(sample: DecisionSample) -> tuple[Array, list[str]]:
    """Number rows by tenths of expected hand strength; -1 before the flop."""
    assert sample.strength is not None
    strength = np.nan_to_num(sample.strength, nan=-1.0)
    return np.where(strength < 0, -1, np.minimum((strength * 10).astype(np.int64), 9)), [
        f"{i / 10:.1f}–{(i + 1) / 10:.1f}" for i in range(10)
    ]


def _opponent(sample: DecisionSample) -> tuple[Array, list[str]]:
    """Number rows by opponent."""
    return sample.opponent, list(sample.opponents)


CUTS: dict[str, Callable[[DecisionSample], tuple[Array, list[str]]]] = {
    "situation": _situation,
    "position": _position,
    "hand": _hand,
    "strength": _strength,
    "opponent": _opponent,
}


def breakdown(scored: Scored, cut: str, draws: Bootstrap, *, min_rows: int = 20) -> list[Subset]:
    """Score a model's decisions in parts, street by street.

    Parameters: `cut` names one of `CUTS`, `draws` the bootstrap of the sample's deals; parts with fewer than `min_rows`
    rows are left out. Returns a `Subset` per street and part.
    """
    sample = scored.sample
    if cut == "strength" and sample.strength is None:
        return []
    number, part_names = CUTS[cut](sample)
    y = sample.taken
    floors = None if sample.truth is None else measures.floors(np.nan_to_num(sample.truth, nan=1.0))
    has_truth = None if sample.truth is None else ~np.asarray(np.isnan(sample.truth).any(axis=1))
    subsets = []
    loss = scored.by_row["log_loss"] if has_truth is None else np.where(has_truth, scored.by_row["kl"], 0.0)
    for street, street_rows in street_slices(sample):
        if street == ALL:
            continue
        total = float(loss[street_rows].sum())
        for part in np.unique(number[street_rows][number[street_rows] >= 0]):
            rows = street_rows.start + np.flatnonzero(number[street_rows] == part)
            if len(rows) < min_rows:
                continue
            has_floor = floors is not None and has_truth is not None and bool(has_truth[rows].all())
            played, taken = measures.frequencies(scored.played[rows], y[rows])
            intervals = draws.intervals({name: scored.by_row[name][rows] for name in ("error", "log_loss")}, rows)
            subsets.append(
                Subset(
                    street=street,
                    part=part_names[int(part)],
                    rows=len(rows),
                    error=intervals["error"],
                    log_loss=intervals["log_loss"],
                    floor_error=float(floors["error"][rows].mean()) if floors is not None and has_floor else None,
                    floor_log_loss=float(floors["log_loss"][rows].mean()) if floors is not None and has_floor else None,
                    share=float(loss[rows].sum()) / total if total > 0 else 0.0,
                    played=played.tolist(),
                    taken=taken.tolist(),
                )
            )
    return subsets


def worst_disagreements(scored: Scored, count: int = 4, *, by_pot: bool = True) -> Array:
    """Return the row numbers of the worst disagreements, `count` per street, each in another betting situation.

    By KL(agent || model) where the agent's probabilities are known, else by surprise at its action; with `by_pot` times
    the pot.
    """
    sample = scored.sample
    loss = scored.by_row["log_loss"]
    if sample.truth is not None:
        loss = np.where(np.isnan(sample.truth).any(axis=1), 0.0, scored.by_row["kl"])
    loss = loss * sample.rows["pot"] if by_pot else loss
    worst_rows: list[int] = []
    for street, street_rows in street_slices(sample):
        if street == ALL:
            continue
        rows = np.arange(street_rows.start, street_rows.stop)
        rows = rows[np.argsort(-loss[rows], kind="stable")]
        # `unique` gives the first row of each betting, which is its worst: the rows are sorted by loss
        _, first = np.unique(sample.rows["betting_codes"][rows], axis=0, return_index=True)
        worst_rows.extend(rows[np.sort(first)[:count]].tolist())
    return np.array(worst_rows, dtype=np.int64)


def stationarity(sample: DecisionSample) -> list[Stationarity]:
    """Compare early with late hands of each match, and each opponent with the others, on every street.

    Comparisons without a common information set are left out.
    """
    keys = information_set_keys(sample.rows)
    _, log = np.unique(sample.file, return_inverse=True)
    last = np.zeros(log.max(initial=0) + 1)
    np.maximum.at(last, log, sample.hand)
    sides = [("early and late hands", sample.hand > last[log] / 2)]
    opponents = np.unique(sample.opponent)
    # of two opponents one comparison says all; of more, each is compared with the others together
    for number in opponents[: 1 if len(opponents) == 2 else None] if len(opponents) > 1 else ():
        others = sample.opponents[opponents[1]] if len(opponents) == 2 else "the others"
        sides.append((f"{sample.opponents[number]} and {others}", sample.opponent == number))
    comparisons = []
    for street, rows in street_slices(sample):
        if street == ALL:
            continue
        for between, side in sides:
            difference = behaviour_change(
                keys[rows], sample.deal[rows], sample.taken[rows], late=side[rows], labels=len(sample.labels)
            )
            if difference.rows:
                comparisons.append(Stationarity(sample.agent, street, between, difference))
    return comparisons


class StartingChart(NamedTuple):
    """One preflop situation by starting class: the mixes of the agent and of a model on the same rows."""

    situation: str
    rows: int
    seen: Array
    agent: Array
    model: Array

    @property
    def distance(self) -> float:
        """Return the total variation between the two mixes, mean over the rows."""
        apart = np.abs(self.agent - self.model).sum(axis=1) / 2
        return float((apart * self.seen).sum() / max(self.rows, 1))


def starting_charts(scored: Scored, most: int = 8) -> list[StartingChart]:
    """Chart the commonest preflop situations of a hold'em game: the agent's true mix where known, else frequencies."""
    sample = scored.sample
    if not sample.game.is_holdem:
        return []
    count = len(sample.labels)
    taken = np.eye(count)[sample.taken.astype(np.int64)]
    if sample.truth is not None and not np.isnan(sample.truth).any():
        taken = sample.truth
    preflop = np.flatnonzero(sample.rows["street"] == 0)
    words, number, sizes = np.unique(sample.rows["betting_codes"][preflop, 0], return_inverse=True, return_counts=True)
    charts = []
    for index in np.argsort(-sizes, kind="stable")[:most]:
        rows = preflop[number == index]
        start = sample.rows["start"][rows].astype(np.int64)
        seen = np.bincount(start, minlength=169)
        agent, model = (
            np.stack([np.bincount(start, weights=values[rows, label], minlength=169) for label in range(count)], axis=1)
            for values in (taken, scored.played)
        )
        decisions = np.maximum(seen, 1)[:, None]
        situation = betting_text(int(words[index]), sample.game.nolimit)
        charts.append(StartingChart(situation, len(rows), seen, agent / decisions, model / decisions))
    return charts
