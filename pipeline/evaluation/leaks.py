"""Where a player loses: what its actions earn in each spot, compared with the actions of a reference agent there.

In go the decisions of one player of a dataset and an agent to compare with; out come `Leaks`: a `Leak` per spot, that
is street, position, raises before the street and betting on it, with the chips won in its hands, both players' actions
and the chips by which they differ, the worst spot first. No solver is needed, and nobody's hidden cards are looked at.

The difference is what the hands of the log say of one decision at a time. Within a spot, hands are grouped by strength
(equal shares of the spot's decisions; by card in Kuhn and Leduc). In a group, p(a) is how often the player took action
a, r(a) how often the reference would have, and Q(a) the mean of what hands won from a on, counted from folding, which
is worth 0. Then

    difference = sum over groups and actions of (p(a) - r(a)) Q(a)

is what the player won more than if it had chosen as the reference at this decision and gone on as it did. It is an
estimate with two limits. Hands of a group are taken to be alike, so that a group in which strong hands raise and weak
ones call makes raising look better than it is: more decisions make finer groups. And an action that the player never
took in a group has no Q: the share of the reference's choices that fall there is `untried` and counts as no difference
(folding heads-up is always known). Intervals are by deal, p-values adjusted for the number of spots by Holm's method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.dataset.decisions import STREETS, betting_text
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.models.measures import STANDARD_ERRORS_95, Estimate, holm
from pipeline.poker.game import Game
from pipeline.poker.rules import FOLD
from pipeline.poker.spoken import position_words
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.tabular import Tabular

MIN_DECISIONS = 100
"""decisions that a spot needs to be listed"""
GROUP_DECISIONS = 50
"""decisions that a group of hands has at least"""
MAX_GROUPS = 10
"""groups of hands that a spot is divided into at most"""
TRIED = 5
"""times that the player must have taken an action in a group for its mean result to be used"""
EXAMPLES = 3
"""hands that are listed for a spot"""
CERTAIN = 0.05
"""a leak is certain where its p-value, adjusted for the number of spots, is below this"""
ASKED_ROWS = 100_000
"""decisions that the reference is asked about at once"""


class DecisionSpot(NamedTuple):
    """Where decisions are made."""

    street: str
    position: str
    earlier_raises: int
    """raises on the streets before"""
    betting: str
    """of the street so far, `-` for none"""


class HandGroup(NamedTuple):
    """The hands of one group of a spot: strengths, or the card in games of one card, and the difference there."""

    hands: str
    decisions: int
    difference: Estimate
    """mbb per hand of all hands"""


@dataclass(frozen=True)
class Leak:
    """One spot: results of its hands, both players' actions, and the chips by which they differ."""

    spot: DecisionSpot
    decisions: int
    hands: int
    won: Estimate
    """mbb per hand that came to the spot"""
    difference: Estimate
    """mbb per hand of all hands: below 0 where the reference's actions would have won more"""
    p_value: float
    """of no difference, adjusted for the number of spots"""
    played: dict[str, float]
    """share of each label"""
    reference: dict[str, float]
    untried: float
    """share of the reference's choices whose result is unknown"""
    groups: tuple[HandGroup, ...]
    """the worst first"""
    examples: tuple[tuple[str, int, int], ...]
    """log, line and number of hands to replay: actions that the reference avoids and that lost most"""

    @property
    def is_certain(self) -> bool:
        """Return whether chips are lost here by more than chance among all spots."""
        return self.difference.value < 0 and self.p_value < CERTAIN

    def row(self) -> dict[str, Any]:
        """Return the values of a line of a table."""
        whole = self.json()
        return {name: value for name, value in whole.items() if name not in ("groups", "examples")}

    def json(self) -> dict[str, Any]:
        """Return the object that `leaks --json` prints for a spot."""
        return {
            **self.spot._asdict(),
            "decisions": self.decisions,
            "hands": self.hands,
            "mbb_per_hand": self.won.value,
            **self.won.ends_json(),
            "difference_mbb_per_hand": self.difference.value,
            **self.difference.ends_json("difference_"),
            "p_value": self.p_value,
            "certain": self.is_certain,
            "played": self.played,
            "reference": self.reference,
            "untried": self.untried,
            "groups": [
                {
                    "hands": group.hands,
                    "decisions": group.decisions,
                    "difference_mbb_per_hand": group.difference.value,
                    **group.difference.ends_json("difference_"),
                }
                for group in self.groups
            ],
            "examples": [{"file": file, "line": line, "hand": hand} for file, line, hand in self.examples],
        }


@dataclass(frozen=True)
class Leaks(Tabular):
    """A player's spots, the one that loses most first."""

    agent: str
    reference: str
    game: str
    hands: int
    won: Estimate
    """mbb per hand"""
    difference: Estimate
    """all listed spots together"""
    left_out: int
    """decisions whose cards or results are not known"""
    spots: tuple[Leak, ...]

    def __len__(self) -> int:
        return len(self.spots)

    @property
    def certain(self) -> int:
        """Return the number of spots that lose by more than chance."""
        return sum(leak.is_certain for leak in self.spots)

    def rows(self) -> list[dict[str, Any]]:
        """Return a line of flat values per spot."""
        return [leak.row() for leak in self.spots]

    def json(self) -> dict[str, Any]:
        """Return the object that `leaks --json` prints."""
        return {
            "agent": self.agent,
            "reference": self.reference,
            "game": self.game,
            "hands": self.hands,
            "mbb_per_hand": self.won.value,
            **self.won.ends_json(),
            "difference_mbb_per_hand": self.difference.value,
            **self.difference.ends_json("difference_"),
            "certain": self.certain,
            "left_out": self.left_out,
            "spots": [leak.json() for leak in self.spots],
        }


class _Rows(NamedTuple):
    """A player's decisions, one row each, and what is summed over them."""

    decisions: Decisions
    mixes: Floats
    """of the reference"""
    gained: Floats
    """mbb that the hand won, counted from folding where that is known"""
    won: Floats
    """mbb that the hand won"""
    strength: Floats
    hand: Array
    """number of the hand"""
    deal: Array
    """number of the deal"""
    hands: int
    deals: int

    def per_hand(self, influence: Floats, rows: Array, value: float) -> Estimate:
        """Return a sum over decisions per hand of the player; the decisions of a deal are one sample."""
        sums = np.bincount(self.deal[rows], influence, minlength=self.deals)
        variance = float(np.square(sums - sums.mean()).sum()) * self.deals / max(self.deals - 1, 1)
        half = STANDARD_ERRORS_95 * math.sqrt(variance) / self.hands
        return Estimate.around(value / self.hands, half if self.deals > 1 else float("inf"))


def find_leaks(
    data: Path | str,
    agent: str,
    reference: Agent,
    *,
    min_decisions: int = MIN_DECISIONS,
    progress: Progress = no_progress,
) -> Leaks:
    """Compare a player's decisions with those of a reference agent, spot by spot.

    Parameters: the dataset, the player's name in it, the reference (which gives probabilities: agents that draw their
    actions are refused), and the decisions that a spot needs to be listed.
    """
    if getattr(reference, "draws", False):
        raise PipelineError(f"{reference.name} draws its actions: a reference must give probabilities")
    game = reference.game
    decisions = load_decisions(data, [agent], game=game.name, strength=game.is_holdem)
    usable = np.flatnonzero(decisions.known & np.isfinite(decisions.result))
    if not len(usable):
        raise PipelineError(f"{data}: no decision of {agent} has both its cards and the result of the hand")
    rows = _prepare(decisions, usable, reference, progress)
    judged = [
        (*_judge(rows, spot, which), which) for spot, which in _spots(rows.decisions) if len(which) >= min_decisions
    ]
    if not judged:
        raise PipelineError(
            f"{data}: {agent} has fewer than {min_decisions} decisions in every spot; add logs, or list rarer spots"
        )
    p_values = holm([_p_value(leak.difference) for leak, _, _ in judged])
    leaks = [replace(leak, p_value=p_value) for (leak, _, _), p_value in zip(judged, p_values, strict=True)]
    everywhere = np.concatenate([which for _, _, which in judged])
    influence = np.concatenate([of_rows for _, of_rows, _ in judged])
    total = sum(leak.difference.value for leak in leaks) * rows.hands
    first = np.unique(rows.hand, return_index=True)[1]
    return Leaks(
        agent=agent,
        reference=reference.name,
        game=game.name,
        hands=rows.hands,
        won=rows.per_hand(rows.won[first], first, float(rows.won[first].sum())),
        difference=rows.per_hand(influence, everywhere, total),
        left_out=len(decisions) - len(usable),
        spots=tuple(sorted(leaks, key=lambda leak: leak.difference.value)),
    )


def _prepare(decisions: Decisions, usable: Array, reference: Agent, progress: Progress) -> _Rows:
    """Ask the reference about the usable decisions, and count their hands and deals."""
    mixes = np.empty((len(usable), len(decisions.game.labels)))
    for begin in range(0, len(usable), ASKED_ROWS):
        progress(begin, len(usable))
        part = usable[begin : begin + ASKED_ROWS]
        mixes[begin : begin + len(part)] = reference.probabilities(decisions.rows[part])
    progress(len(usable), len(usable))
    chosen = decisions[usable]
    observed = chosen.rows
    unit = 1000.0 / observed["big_blind"].astype(np.float64)
    won = chosen.result * unit
    # heads-up both have put in the same but for what is to call, so folding now loses exactly that
    paid = np.where(observed["players"] == 2, (observed["pot"] - observed["to_call"].astype(np.float64)) / 2, 0.0)
    _, hand = np.unique(chosen.file.astype(np.int64) << 32 | chosen.line, return_inverse=True)
    _, deal = np.unique(chosen.deal, return_inverse=True)
    return _Rows(
        decisions=chosen,
        mixes=mixes,
        gained=won + paid * unit,
        won=won,
        strength=_strengths(chosen),
        hand=hand,
        deal=deal,
        hands=int(hand.max()) + 1,
        deals=int(deal.max()) + 1,
    )


def _strengths(decisions: Decisions) -> Floats:
    """Return how strong each decision's hand is; in games of one card a number per private and public card."""
    rows = decisions.rows
    if decisions.strength is None:
        return rows["high"] + 16.0 * rows["board"][:, 0]
    street = rows["street"].astype(np.int64)
    preflop = preflop_rows().view(STRENGTH).ravel()["ehs"][np.minimum(rows["start"], 168)]
    later = decisions.strength["ehs"][np.arange(len(rows)), np.maximum(street - 1, 0)]
    return np.where(street == 0, preflop, later) / 65535.0


def _spots(decisions: Decisions) -> Iterator[tuple[DecisionSpot, Array]]:
    """Yield the spots with the numbers of their decisions."""
    rows, game = decisions.rows, decisions.game
    street = rows["street"].astype(np.int64)
    raises = np.zeros((len(rows), 4), np.int64)
    for i in range(game.rounds):
        codes, inverse = np.unique(rows["betting_codes"][:, i], return_inverse=True)
        words = [betting_text(int(code), game.nolimit) for code in codes]
        raises[:, i] = np.array([sum(letter not in "fc-" for letter in word) for word in words])[inverse]
    before = np.where(np.arange(4) < street[:, None], raises, 0).sum(axis=1)
    now = rows["betting_codes"][np.arange(len(rows)), street]
    keys = np.stack([street, rows["position"].astype(np.int64), before, now, rows["players"].astype(np.int64)], axis=1)
    values, inverse = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    bounds = np.searchsorted(inverse.ravel()[order], np.arange(len(values) + 1))
    for i, (round_index, position, earlier, code, players) in enumerate(values.tolist()):
        spot = DecisionSpot(
            STREETS[round_index],
            position_words(position, players, game.is_holdem),
            earlier,
            betting_text(code, game.nolimit),
        )
        yield spot, order[bounds[i] : bounds[i + 1]]


def _judge(rows: _Rows, spot: DecisionSpot, which: Array) -> tuple[Leak, Floats]:
    """Return a spot's result, its p-value not yet adjusted, and the influence of each decision on the difference."""
    decisions, labels = rows.decisions, rows.decisions.game.labels
    heads_up = int(decisions.rows["players"][which[0]]) == 2
    influence, untried = np.zeros(len(which)), 0.0
    groups = []
    for text, members in _groups(rows.strength[which], decisions.game):
        inside = which[members]
        parts = _compare(decisions.action[inside], rows.mixes[inside], rows.gained[inside], heads_up)
        influence[members] = parts.influence
        untried += parts.untried * len(inside)
        estimate = rows.per_hand(parts.influence, inside, parts.difference * len(inside))
        groups.append(HandGroup(text, len(inside), estimate))
    total = sum(group.difference.value for group in groups) * rows.hands
    first = which[np.unique(rows.hand[which], return_index=True)[1]]
    won = rows.won[first]
    sums = np.bincount(rows.deal[first], won - won.mean())
    half = STANDARD_ERRORS_95 * math.sqrt(float(np.square(sums).sum())) / len(first)
    difference = rows.per_hand(influence, which, total)
    taken = np.bincount(decisions.action[which], minlength=len(labels)) / len(which)
    mix = rows.mixes[which].mean(axis=0)
    leak = Leak(
        spot=spot,
        decisions=len(which),
        hands=len(first),
        won=Estimate.around(float(won.mean()), half if len(first) > 1 else float("inf")),
        difference=difference,
        p_value=1.0,
        played={label: float(share) for label, share in zip(labels, taken, strict=True)},
        reference={label: float(share) for label, share in zip(labels, mix, strict=True)},
        untried=untried / len(which),
        groups=tuple(sorted(groups, key=lambda group: group.difference.value)),
        examples=_examples(rows, which),
    )
    return leak, influence


def _groups(strength: Floats, game: Game) -> Iterator[tuple[str, Array]]:
    """Yield the groups of a spot's hands: each card of games of one card, else equal shares by strength."""
    if not game.is_holdem:
        for value in np.unique(strength):
            card, board = int(value) % 16, int(value) // 16 // 4
            ranks = "23456789TJQKA"
            public = f" on {ranks[board]}" if board < len(ranks) else ""
            yield f"{ranks[card]}{public}", np.flatnonzero(strength == value)
        return
    count = max(1, min(MAX_GROUPS, len(strength) // GROUP_DECISIONS))
    order = np.argsort(strength, kind="stable")
    for members in np.array_split(order, count):
        low, high = strength[members[0]], strength[members[-1]]
        yield f"strength {low:.2f}-{high:.2f}", np.sort(members)


class _Comparison(NamedTuple):
    """The difference per decision of a group, each decision's part in its sum, and the share that is unknown."""

    difference: float
    influence: Floats
    untried: float


def _compare(taken: Array, mixes: Floats, gained: Floats, fold_is_known: bool) -> _Comparison:
    """Compare the actions of a group of decisions with the reference's.

    The influence of a decision is the derivative of the sum of differences by its weight (the infinitesimal jackknife):
    sums of it over deals give the variance, with the noise of the means of each action in it.

    >>> taken, mixes = np.array([1, 1, 2, 2] * 5), np.tile([0.0, 1.0, 0.0], (20, 1))
    >>> round(_compare(taken, mixes, np.where(taken == 2, -3.0, 1.0), True).difference, 6)
    -2.0
    """
    count = len(taken)
    times = np.bincount(taken, minlength=mixes.shape[1])
    tried = times >= TRIED
    means = np.divide(np.bincount(taken, gained, minlength=len(times)), times, out=np.zeros(len(times)), where=tried)
    if fold_is_known:
        tried = tried | (np.arange(len(times)) == FOLD)
        means[FOLD] = 0.0
    mean = float(gained.mean())
    chosen = mixes.mean(axis=0)
    by_row = np.where(tried, mixes, 0.0)
    unknown = 1.0 - by_row.sum(axis=1)
    untried = float(unknown.mean())
    difference = (1.0 - untried) * mean - float(by_row.mean(axis=0) @ means)
    ratio = np.divide(chosen * count, times, out=np.zeros(len(times)), where=tried & (times > 0))
    if fold_is_known:
        ratio[FOLD] = 0.0
    influence = (
        difference
        + (1.0 - untried) * (gained - mean)
        - (unknown - untried) * mean
        - (by_row - by_row.mean(axis=0)) @ means
        - np.where(tried, ratio, 0.0)[taken] * (gained - means[taken])
    )
    return _Comparison(difference, influence, untried)


def _p_value(difference: Estimate) -> float:
    """Return the two-sided p-value of no difference, by the normal distribution of its estimate."""
    if not difference.ci95:
        return 1.0 if difference.ci95 is None or difference.value == 0 else 0.0
    return math.erfc(abs(difference.value) / difference.ci95 * STANDARD_ERRORS_95 / math.sqrt(2))


def _examples(rows: _Rows, which: Array) -> tuple[tuple[str, int, int], ...]:
    """Return hands to replay: those that lost most by actions that the reference would rather not have taken."""
    decisions = rows.decisions
    avoided = 1.0 - rows.mixes[which, decisions.action[which].astype(np.int64)]
    order = which[np.argsort(avoided * np.minimum(rows.gained[which], 0.0), kind="stable")]
    return tuple(
        (decisions.files[int(decisions.file[i])], int(decisions.line[i]), int(decisions.hand[i]))
        for i in order[:EXAMPLES]
    )
