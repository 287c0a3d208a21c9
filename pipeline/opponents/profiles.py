"""The statistics that players use to describe each other, counted in a dataset's decisions.

In: a dataset and the names of players. Out: a `Profile` for each, with a count, the number of chances and a 95%
interval for every rate, in all hands and by position, opponent, street or time. Cards are not looked at, so logs in
which they were never shown do as well.

A hand counts where the player had at least one decision. Rates of hands and rates of decisions:

    vpip                    hands in which it called or raised before the flop (checks and blinds do not count)
    pfr                     hands in which it raised before the flop
    three_bet               raises of those decisions before the flop that face exactly one raise
    fold_to_three_bet       folds of those that face a raise of its own raise
    c_bet                   bets on the flop by whoever raised last before it, where nobody has bet
    fold_to_c_bet           folds that face such a bet
    aggression_frequency    bets and raises on the flop and later, among all actions but checks
    wtsd                    hands that came to a showdown, of those in which it saw the flop
    wsd                     showdowns won; a tie counts half

The aggression factor is bets and raises per call on the flop and later. In games of one round all that needs a flop is
empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.calibrated import Style, fit_style
from pipeline.dataset.decisions import NOBODY, STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.opening import hand_batches
from pipeline.models.measures import mean_by_deal
from pipeline.poker.rules import CALL, FOLD, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.progress import Progress, no_progress

STATISTICS = {
    "vpip": "VPIP",
    "pfr": "PFR",
    "three_bet": "3-bet",
    "fold_to_three_bet": "fold to 3-bet",
    "c_bet": "c-bet",
    "fold_to_c_bet": "fold to c-bet",
    "aggression_frequency": "AFq",
    "wtsd": "WTSD",
    "wsd": "W$SD",
}
"""The rates and how players write them."""
GROUPS = ("position", "opponent", "time")
"""What the hands of a player can be divided by."""
PARTS = 4
"""Time is divided into so many parts: of the hands against each opponent, in the order of the logs."""


class Rate(NamedTuple):
    """How often something happened, of so many chances."""

    happened: float
    chances: int

    @property
    def value(self) -> float | None:
        """The share, None without a chance."""
        return self.happened / self.chances if self.chances else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95% interval.

        >>> [round(x, 3) for x in Rate(5, 10).interval]
        [0.237, 0.763]
        """
        if not self.chances:
            return None
        n, p, z = self.chances, self.happened / self.chances, 1.96
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def json(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {"value": self.value, "low": low, "high": high, "happened": self.happened, "chances": self.chances}


class StreetPlay(NamedTuple):
    """What a player does on one street: with nothing to call (check, bet) and facing a bet (fold, call, raise)."""

    street: str
    bet: Rate
    fold: Rate
    call: Rate
    raise_: Rate

    def json(self) -> dict[str, Any]:
        names = ("bet", "fold", "call", "raise")
        return {"street": self.street, **{name: rate.json() for name, rate in zip(names, self[1:], strict=True)}}


class Drift(NamedTuple):
    """Whether a rate is the same in all parts of the logs: a chi-squared test."""

    statistic: str
    values: tuple[float | None, ...]
    """in each part"""
    p_value: float | None
    """of equal rates; None where there are too few chances"""

    def json(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class Profile:
    """How a player plays in some of its hands."""

    agent: str
    group: str
    """`all`, or what sets these hands apart: `position 0`, `opponent calamari`, `part 2 of 4`"""
    hands: int
    mbb_per_hand: float | None
    ci95: float | None
    aggression_factor: float | None
    rates: Mapping[str, Rate]
    streets: tuple[StreetPlay, ...]
    drift: tuple[Drift, ...] = ()
    style: Style | None = None
    """of all hands: the calibrated player that plays most like it, see `with_styles`"""

    def json(self) -> dict[str, Any]:
        """One flat value per statistic (`vpip`, `af` ...) and the counts and intervals below `rates`."""
        flat = {name: rate.value for name, rate in self.rates.items()}
        return {
            "agent": self.agent,
            "group": self.group,
            "hands": self.hands,
            **flat,
            "af": self.aggression_factor,
            "mbb_per_hand": self.mbb_per_hand,
            "ci95": self.ci95,
            "rates": {name: rate.json() for name, rate in self.rates.items()},
            "streets": [street.json() for street in self.streets],
            "drift": [drift.json() for drift in self.drift],
            "aggression": self.style and self.style.aggression,
            "rationality": self.style and self.style.rationality,
            "style": self.style and self.style.json(),
        }

    def row(self) -> dict[str, Any]:
        """Return values, and the counts and intervals behind each rate, one line of a CSV file."""
        flat = self.json()
        counts = {
            f"{name}_{key}": rate[key]
            for name, rate in flat["rates"].items()
            for key in ("low", "high", "happened", "chances")
        }
        return {name: flat[name] for name in flat if name not in ("rates", "streets", "drift", "style")} | counts


class _Events(NamedTuple):
    """Chances for something: in which of the player's hands, and whether it happened."""

    hand: Array
    happened: Array

    def rate(self, wanted: Array) -> Rate:
        """Over the hands that are wanted."""
        chosen = wanted[self.hand]
        happened = float(self.happened[chosen].sum())
        return Rate(int(happened) if happened.is_integer() else happened, int(chosen.sum()))


class _Play(NamedTuple):
    """One player's hands and all that happened in them."""

    agent: str
    groups: dict[str, tuple[Array, list[str]]]
    """of each hand the number of its group, and the groups' names"""
    won: Array
    """thousandths of a big blind, NaN where nobody knows"""
    deal: Array
    events: dict[str, _Events]
    acts: dict[tuple[int, str], _Events]
    """by street and kind of action"""
    calls: _Events
    """after the flop: 1 for a call, 0 for a bet or raise"""

    @property
    def size(self) -> int:
        return len(self.won)


def profiles(
    folder: Path | str, agents: Sequence[str] | None = None, *, by: Sequence[str] = (), game: str | None = None
) -> list[Profile]:
    """The profiles of players of a dataset.

    Parameters
    ----------
    folder: the dataset.
    agents: whose profiles; everybody's by default, the most decisions first.
    by: further profiles of some hands of each player (`position`, `opponent`, `time`).
    game: which game, if the dataset has several.

    Returns
    -------
    For each player the profile of all hands, with tests of drift, followed by those of the groups.
    """
    for word in by:
        if word not in GROUPS:
            raise PipelineError(f"hands are not divided by {word!r}{nearest(word, GROUPS)}")
    decisions = load_decisions(folder, agents, game=game)
    showdown = _showdowns(Path(folder), decisions)
    found = []
    order = np.argsort(-np.bincount(decisions.agent, minlength=len(decisions.agents)), kind="stable")
    for number in order.tolist():
        play = _play(decisions, np.flatnonzero(decisions.agent == number), showdown)
        found.append(_profile(play, "all", np.ones(play.size, bool), drift=_drift(play)))
        for word in by:
            member, names = play.groups[word]
            found += [_profile(play, name, member == i) for i, name in enumerate(names)]
    return found


def with_styles(
    described: Sequence[Profile], folder: Path | str, *, game: str | None = None, progress: Progress = no_progress
) -> list[Profile]:
    """Add to the profiles of all hands the style fitted to the decisions whose cards are known, in hold'em games."""
    wholes = [profile.agent for profile in described if profile.group == "all"]
    styles: dict[str, Style | None] = {}
    for index, agent in enumerate(wholes):
        progress(index, len(wholes))
        decisions = load_decisions(folder, [agent], game=game)
        if decisions.game.hole_cards == 2:
            known = decisions.known
            styles[agent] = fit_style(decisions.game, decisions.rows[known], decisions.action[known])
    progress(len(wholes), len(wholes))
    return [
        replace(profile, style=styles.get(profile.agent)) if profile.group == "all" else profile
        for profile in described
    ]


def _showdowns(folder: Path, decisions: Decisions) -> Array:
    """For each decision, whether its hand came to a showdown."""
    import pyarrow as pa

    files = {name: i for i, name in enumerate(decisions.files)}
    keys, shown = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
    for batch in hand_batches(folder, ("file", "line", "showdown")):
        column = batch.column("file")
        column = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        number = np.array([files.get(name, -1) for name in column.dictionary.to_pylist()], np.int64)
        key = number[column.indices.to_numpy()] << 32 | batch.column("line").to_numpy()
        keys.append(key)
        shown.append(batch.column("showdown").to_numpy(zero_copy_only=False))
    key, flag = np.concatenate(keys), np.concatenate(shown)
    order = np.argsort(key, kind="stable")
    wanted = decisions.file.astype(np.int64) << 32 | decisions.line
    at = np.minimum(np.searchsorted(key, wanted, sorter=order), max(len(key) - 1, 0))
    if len(wanted) and (not len(key) or (key[order[at]] != wanted).any()):
        raise PipelineError(f"{folder} has decisions of hands that its table of hands lacks: ingest into a new folder")
    return np.asarray(flag[order[at]])


def _play(decisions: Decisions, of_agent: Array, showdown: Array) -> _Play:
    """What happened in the hands of one player, given by its rows."""
    position = decisions.rows["position"]
    keys = (decisions.k, position, decisions.line, decisions.file)
    at = of_agent[np.lexsort([key[of_agent] for key in keys])]
    rows, action = decisions.rows[at], decisions.action[at]
    new = np.ones(len(at), bool)
    for key in keys[1:]:
        new[1:] &= key[at[1:]] == key[at[:-1]]
    new[1:] = ~new[1:]
    first = np.flatnonzero(new)
    hand = np.cumsum(new) - 1

    def ever(flag: Array) -> Array:
        """Of each hand, whether any of its decisions is so."""
        return np.logical_or.reduceat(flag, first)

    before, flop, later = rows["street"] == 0, rows["street"] == 1, rows["street"] >= 1
    raised, folded, called = action >= RAISE, action == FOLD, (action == CALL) & (rows["to_call"] > 0)
    faces, own_raise = rows["raises"], rows["previous"] > RAISE
    preflop_aggressor = _preflop_aggressor(rows, action, first, hand)[hand]
    mine = rows["position"] == preflop_aggressor
    decided = ever(before)
    hands = np.arange(len(first))
    result = decisions.result[at][first]
    finished = showdown[at][first] & ~ever(folded)
    saw_flop = ever(later) | (finished & (decisions.game.rounds > 1))

    def rows_of(chance: Array, happened: Array) -> _Events:
        return _Events(hand[chance], happened[chance])

    def hands_of(chance: Array, happened: Array) -> _Events:
        return _Events(hands[chance], happened[chance])

    continued = flop & (faces == 1) & (rows["aggressor"] == preflop_aggressor) & ~mine & (preflop_aggressor != NOBODY)
    events = {
        "vpip": hands_of(decided, ever(before & (raised | called))),
        "pfr": hands_of(decided, ever(before & raised)),
        "three_bet": rows_of(before & (faces == 1), raised),
        "fold_to_three_bet": rows_of(before & (faces == 2) & own_raise, folded),
        "c_bet": rows_of(flop & (faces == 0) & mine, raised),
        "fold_to_c_bet": rows_of(continued, folded),
        "aggression_frequency": rows_of(later & (raised | called | folded), raised),
        "wtsd": hands_of(saw_flop, finished),
        "wsd": hands_of(finished & ~np.isnan(result), np.where(result > 0, 1.0, np.where(result == 0, 0.5, 0.0))),
    }
    acts = {}
    for street in range(decisions.game.rounds):
        here = rows["street"] == street
        facing = here & (rows["to_call"] > 0)
        acts[street, "bet"] = rows_of(here & ~facing, raised)
        for kind, flag in (("fold", folded), ("call", called), ("raise", raised)):
            acts[street, kind] = rows_of(facing, flag)
    big_blind = np.maximum(rows["big_blind"][first], 1)
    return _Play(
        agent=decisions.agents[int(decisions.agent[at[0]])],
        groups=_groups(decisions, at[first]),
        won=result * 1000.0 / big_blind,
        deal=decisions.deal[at][first],
        events=events,
        acts=acts,
        calls=rows_of(later & (raised | called), called),
    )


def _preflop_aggressor(rows: Array, action: Array, first: Array, hand: Array) -> Array:
    """Of each hand the position of whoever raised last before the flop, as the player's last decision there shows."""
    count = np.bincount(hand, rows["street"] == 0, minlength=len(first)).astype(np.int64)
    last = first + np.maximum(count - 1, 0)
    found = np.where(action[last] >= RAISE, rows["position"][last], rows["aggressor"][last])
    return np.where(count > 0, found, NOBODY)


def _groups(decisions: Decisions, hands: Array) -> dict[str, tuple[Array, list[str]]]:
    """The ways to divide a player's hands, which are given by their first rows, in the order of the logs."""
    position = decisions.rows["position"][hands]
    seats, seat = np.unique(position, return_inverse=True)
    others, other = np.unique(decisions.opponent[hands], return_inverse=True)
    size = np.bincount(other)
    place = np.empty(len(hands), np.int64)  # among the hands against the same opponent
    place[np.argsort(other, kind="stable")] = np.arange(len(hands)) - np.repeat(np.cumsum(size) - size, size)
    part = place * PARTS // size[other]
    return {
        "position": (seat, [f"position {p}" for p in seats]),
        "opponent": (other, [f"opponent {decisions.opponents[o]}" for o in others]),
        "time": (part, [f"part {i + 1} of {PARTS}" for i in range(PARTS)]),
    }


def _profile(play: _Play, group: str, wanted: Array, drift: tuple[Drift, ...] = ()) -> Profile:
    """The profile of some of a player's hands."""
    calls = play.calls.rate(wanted)
    streets = sorted({street for street, _ in play.acts})
    known = wanted & ~np.isnan(play.won)
    mean, half = mean_by_deal(play.won[known], play.deal[known]) if known.any() else (None, None)
    return Profile(
        agent=play.agent,
        group=group,
        hands=int(wanted.sum()),
        mbb_per_hand=mean,
        ci95=half if half is not None and math.isfinite(half) else None,
        aggression_factor=(calls.chances - calls.happened) / calls.happened if calls.happened else None,
        rates={name: events.rate(wanted) for name, events in play.events.items()},
        streets=tuple(
            StreetPlay(STREETS[s], *(play.acts[s, kind].rate(wanted) for kind in ("bet", "fold", "call", "raise")))
            for s in streets
        ),
        drift=drift,
    )


def _drift(play: _Play) -> tuple[Drift, ...]:
    """Tests of every rate over time."""
    member, names = play.groups["time"]
    return tuple(_test(name, events, member, len(names)) for name, events in _tested(play))


def _tested(play: _Play) -> Iterator[tuple[str, _Events]]:
    """The rates of yes and no: a tie at showdown counts half, so it is left out of tests."""
    for name, events in play.events.items():
        decided = events.happened != 0.5
        yield name, _Events(events.hand[decided], events.happened[decided])


def _test(name: str, events: _Events, member: Array, parts: int) -> Drift:
    """Pearson's chi-squared test of one rate in all parts; too few where less than 5 of a kind are expected."""
    from scipy.stats import chi2_contingency

    part = member[events.hand]
    chances = np.bincount(part, minlength=parts).astype(float)
    happened = np.bincount(part, events.happened, minlength=parts)
    values = tuple(float(h / c) if c else None for h, c in zip(happened, chances, strict=True))
    share = happened.sum() / max(chances.sum(), 1)
    if (chances * min(share, 1 - share)).min() < 5:
        return Drift(name, values, None)
    return Drift(name, values, float(chi2_contingency(np.stack([happened, chances - happened])).pvalue))
