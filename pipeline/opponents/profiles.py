"""Count in a dataset's decisions the statistics that players use to describe each other.

In: a dataset and the names of players. Out: a `Profile` for each, with a count, the number of chances and a 95%
interval for every rate, in all hands and by position, opponent, street or time. Cards are not looked at, so logs in
which they were never shown do as well.

A hand counts where the player had at least one decision. Rates of hands and rates of decisions:

    vpip                    hands in which it called or raised before the flop (checks and blinds do not count)
    pfr                     hands in which it raised before the flop
    three_bet               raises of those decisions before the flop that face exactly one raise
    fold_to_three_bet       folds of those that face a raise of its own raise
    c_bet                   bets on the flop by the player who raised last before it, before any other bet
    fold_to_c_bet           folds that face such a bet
    aggression_frequency    bets and raises on the flop and later, among all actions but checks
    wtsd                    hands that came to a showdown, of those in which it saw the flop
    wsd                     showdowns won; a tie counts half

Chances in hands of one deal are not independent: in a duplicate match a player meets its cards, or their other side, in
every seating, and a hand may have several decisions. So intervals and tests count fewer chances than there were: as
many as would be worth the same if they were independent (a design effect, by residuals summed over deals).

The aggression factor is bets and raises per call on the flop and later. In games of one round all that needs a flop is
empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.calibrated import Style, fit_style
from pipeline.dataset.decisions import NO_AGGRESSOR, STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.opening import hand_batches
from pipeline.models.measures import Estimate, Winnings, holm, mean_by_deal, wilson
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
"""Names of the rates, as players write them."""
GROUPS = ("position", "opponent", "time")
"""Ways to divide a player's hands."""
PARTS = 4
"""parts of equal size in which time is divided: of the hands against each opponent, in the order of the logs"""


class Rate(NamedTuple):
    """How often something happened, of a number of chances."""

    happened: float
    chances: int
    design: float = 1.0
    """the design effect, at least 1: the number of chances worth an independent one, because hands share deals"""

    @property
    def value(self) -> float | None:
        """Return the share, None without a chance."""
        return self.happened / self.chances if self.chances else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return Wilson's 95% interval, of as many chances as are worth independent ones.

        >>> [round(x, 3) for x in Rate(5, 10).interval]
        [0.237, 0.763]
        >>> Rate(10, 20, design=2.0).interval == Rate(5, 10).interval
        True
        """
        if not self.chances:
            return None
        return wilson(self.happened / self.chances, self.chances / self.design)

    def json(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        counts = {"happened": self.happened, "chances": self.chances, "effective_chances": self.chances / self.design}
        return {"value": self.value, "low": low, "high": high, **counts}


class StreetPlay(NamedTuple):
    """A player's rates on one street: with nothing to call (check, bet) and facing a bet (fold, call, raise)."""

    street: str
    bet: Rate
    fold: Rate
    call: Rate
    raise_: Rate

    def json(self) -> dict[str, Any]:
        names = ("bet", "fold", "call", "raise")
        return {"street": self.street, **{name: rate.json() for name, rate in zip(names, self[1:], strict=True)}}


class Drift(NamedTuple):
    """A chi-squared test that a rate is the same in all parts, for chances that share deals (Rao and Scott)."""

    statistic: str
    values: tuple[float | None, ...]
    """in each part"""
    p_value: float | None
    """of equal rates; None where there are too few chances"""
    adjusted_p_value: float | None = None
    """the same for all tests of the player together: adjusted by Holm's method"""

    def json(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class Profile:
    """Statistics of some of a player's hands."""

    agent: str
    group: str
    """`all`, or the part of the hands: `position 0`, `opponent calamari`, `part 2 of 4`"""
    hands: int
    winnings: Winnings
    """as played, of hands whose result is known"""
    aggression_factor: float | None
    rates: Mapping[str, Rate]
    streets: tuple[StreetPlay, ...]
    drift: tuple[Drift, ...] = ()
    style: Style | None = None
    """of all hands: the calibrated player that plays most like it, see `with_styles`"""

    def json(self) -> dict[str, Any]:
        """Return one flat value per statistic (`vpip`, `af` ...) and the counts and intervals below `rates`."""
        flat = {name: rate.value for name, rate in self.rates.items()}
        return {
            "agent": self.agent,
            "group": self.group,
            "hands": self.hands,
            **flat,
            "af": self.aggression_factor,
            **self.winnings.json(),
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
        low, high = flat["interval"] or (None, None)
        counts |= {"mbb_per_hand_low": low, "mbb_per_hand_high": high}
        nested = ("interval", "adjusted_interval", "capped_interval", "rates", "streets", "drift", "style")
        return {name: flat[name] for name in flat if name not in nested} | counts


class Events(NamedTuple):
    """Chances of an event: in which of the player's hands, and whether it happened."""

    hand: Array
    happened: Array
    deal: Array
    """of each chance"""

    def design(self) -> float:
        """Return the design effect: the variance of the rate with deals as samples, over that of independent chances.

        It is at least 1: few deals may show little variance by chance.
        """
        if not len(self.happened):
            return 1.0
        residuals = self.happened - self.happened.mean()
        _, number = np.unique(self.deal, return_inverse=True)
        by_deal, alone = (np.bincount(number.ravel(), residuals) ** 2).sum(), (residuals**2).sum()
        return max(1.0, float(by_deal / alone)) if alone > 0 else 1.0

    def rate(self, wanted: Array) -> Rate:
        """Return the rate over the hands that are wanted."""
        chosen = wanted[self.hand]
        happened = float(self.happened[chosen].sum())
        design = Events(self.hand[chosen], self.happened[chosen], self.deal[chosen]).design()
        return Rate(int(happened) if happened.is_integer() else happened, int(chosen.sum()), design)


class _PlayerHands(NamedTuple):
    """One player's hands and the events in them."""

    agent: str
    groups: dict[str, tuple[Array, list[str]]]
    """of each hand the number of its group, and the groups' names"""
    won: Array
    """thousandths of a big blind, NaN where it is unknown"""
    deal: Array
    events: dict[str, Events]
    acts: dict[tuple[int, str], Events]
    """by street and kind of action"""
    calls: Events
    """after the flop: 1 for a call, 0 for a bet or raise"""

    @property
    def size(self) -> int:
        return len(self.won)


def profiles(
    folder: Path | str, agents: Sequence[str] | None = None, *, by: Sequence[str] = (), game: str | None = None
) -> list[Profile]:
    """Return the profiles of players of a dataset.

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
    for grouping in by:
        if grouping not in GROUPS:
            raise PipelineError(f"hands are not divided by {grouping!r}{nearest(grouping, GROUPS)}")
    decisions = load_decisions(folder, agents, game=game)
    showdown = _showdowns(Path(folder), decisions)
    player_profiles = []
    order = np.argsort(-np.bincount(decisions.agent, minlength=len(decisions.agents)), kind="stable")
    for number in order.tolist():
        hands = _read_hands(decisions, np.flatnonzero(decisions.agent == number), showdown)
        player_profiles.append(_profile(hands, "all", np.ones(hands.size, bool), drift=_test_all_rates(hands)))
        for grouping in by:
            member, names = hands.groups[grouping]
            player_profiles += [_profile(hands, name, member == i) for i, name in enumerate(names)]
    return player_profiles


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
    """Return for each decision whether its hand came to a showdown."""
    import pyarrow as pa

    files = {name: i for i, name in enumerate(decisions.files)}
    keys, showdowns = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
    for batch in hand_batches(folder, ("file", "line", "showdown")):
        column = batch.column("file")
        column = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        number = np.array([files.get(name, -1) for name in column.dictionary.to_pylist()], np.int64)
        key = number[column.indices.to_numpy()] << 32 | batch.column("line").to_numpy()
        keys.append(key)
        showdowns.append(batch.column("showdown").to_numpy(zero_copy_only=False))
    key, flag = np.concatenate(keys), np.concatenate(showdowns)
    order = np.argsort(key, kind="stable")
    decision_keys = decisions.file.astype(np.int64) << 32 | decisions.line
    row = np.minimum(np.searchsorted(key, decision_keys, sorter=order), max(len(key) - 1, 0))
    if len(decision_keys) and (not len(key) or (key[order[row]] != decision_keys).any()):
        raise PipelineError(f"{folder} has decisions of hands that its table of hands lacks: ingest into a new folder")
    return np.asarray(flag[order[row]])


def _read_hands(decisions: Decisions, of_agent: Array, showdown: Array) -> _PlayerHands:
    """Return the hands of one player, given by its rows, with the events in them."""
    position = decisions.rows["position"]
    keys = (decisions.k, position, decisions.line, decisions.file)
    rows_of_agent = of_agent[np.lexsort([key[of_agent] for key in keys])]
    rows, action = decisions.rows[rows_of_agent], decisions.action[rows_of_agent]
    new = np.ones(len(rows_of_agent), bool)
    for key in keys[1:]:
        new[1:] &= key[rows_of_agent[1:]] == key[rows_of_agent[:-1]]
    new[1:] = ~new[1:]
    first = np.flatnonzero(new)
    hand = np.cumsum(new) - 1

    def ever(flag: Array) -> Array:
        """Return for each hand whether the flag holds for any of its decisions."""
        return np.logical_or.reduceat(flag, first)

    before, flop, later = rows["street"] == 0, rows["street"] == 1, rows["street"] >= 1
    raised, folded, called = action >= RAISE, action == FOLD, (action == CALL) & (rows["to_call"] > 0)
    faces, own_raise = rows["raises"], rows["previous"] > RAISE
    preflop_aggressor = _preflop_aggressor(rows, action, first, hand)[hand]
    mine = rows["position"] == preflop_aggressor
    decided = ever(before)
    hands = np.arange(len(first))
    result = decisions.result[rows_of_agent][first]
    finished = showdown[rows_of_agent][first] & ~ever(folded)
    saw_flop = ever(later) | (finished & (decisions.game.rounds > 1))

    deal = decisions.deal[rows_of_agent][first]

    def rows_of(chance: Array, happened: Array) -> Events:
        return Events(hand[chance], happened[chance], deal[hand[chance]])

    def hands_of(chance: Array, happened: Array) -> Events:
        return Events(hands[chance], happened[chance], deal[chance])

    continued = (
        flop & (faces == 1) & (rows["aggressor"] == preflop_aggressor) & ~mine & (preflop_aggressor != NO_AGGRESSOR)
    )
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
    return _PlayerHands(
        agent=decisions.agents[int(decisions.agent[rows_of_agent[0]])],
        groups=_groups(decisions, rows_of_agent[first]),
        won=result * 1000.0 / big_blind,
        deal=deal,
        events=events,
        acts=acts,
        calls=rows_of(later & (raised | called), called),
    )


def _preflop_aggressor(rows: Array, action: Array, first: Array, hand: Array) -> Array:
    """Return for each hand the position of the last raiser before the flop, by the player's last decision there."""
    count = np.bincount(hand, rows["street"] == 0, minlength=len(first)).astype(np.int64)
    last = first + np.maximum(count - 1, 0)
    aggressor = np.where(action[last] >= RAISE, rows["position"][last], rows["aggressor"][last])
    return np.where(count > 0, aggressor, NO_AGGRESSOR)


def _groups(decisions: Decisions, hands: Array) -> dict[str, tuple[Array, list[str]]]:
    """Return the ways to divide a player's hands, which are given by their first rows, in the order of the logs."""
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


def _profile(hands: _PlayerHands, group: str, wanted: Array, drift: tuple[Drift, ...] = ()) -> Profile:
    """Return the profile of some of a player's hands."""
    calls = hands.calls.rate(wanted)
    streets = sorted({street for street, _ in hands.acts})
    has_result = wanted & ~np.isnan(hands.won)
    won = mean_by_deal(hands.won[has_result], hands.deal[has_result]) if has_result.any() else None
    return Profile(
        agent=hands.agent,
        group=group,
        hands=int(wanted.sum()),
        winnings=Winnings(None if won is None else Estimate.around(*won)),
        aggression_factor=(calls.chances - calls.happened) / calls.happened if calls.happened else None,
        rates={name: events.rate(wanted) for name, events in hands.events.items()},
        streets=tuple(
            StreetPlay(STREETS[s], *(hands.acts[s, kind].rate(wanted) for kind in ("bet", "fold", "call", "raise")))
            for s in streets
        ),
        drift=drift,
    )


def _test_all_rates(hands: _PlayerHands) -> tuple[Drift, ...]:
    """Test every rate for drift over time; p-values are also adjusted for the number of tests."""
    member, names = hands.groups["time"]
    tests = [_test_drift(name, events, member, len(names)) for name, events in _testable(hands)]
    known = [index for index, drift in enumerate(tests) if drift.p_value is not None]
    for index, adjusted in zip(known, holm([tests[i].p_value or 0.0 for i in known]), strict=True):
        tests[index] = tests[index]._replace(adjusted_p_value=adjusted)
    return tuple(tests)


def _testable(hands: _PlayerHands) -> Iterator[tuple[str, Events]]:
    """Yield the rates with their events that are yes or no: a tie at showdown counts half, so it is not tested."""
    for name, events in hands.events.items():
        decided = events.happened != 0.5
        yield name, Events(events.hand[decided], events.happened[decided], events.deal[decided])


def _test_drift(name: str, events: Events, member: Array, parts: int) -> Drift:
    """Test one rate in all parts by Pearson's chi-squared; no p-value where less than 5 of a kind are expected."""
    from scipy.stats import chi2, chi2_contingency

    part = member[events.hand]
    chances = np.bincount(part, minlength=parts).astype(float)
    happened = np.bincount(part, events.happened, minlength=parts)
    values = tuple(float(h / c) if c else None for h, c in zip(happened, chances, strict=True))
    share = happened.sum() / max(chances.sum(), 1)
    if (chances * min(share, 1 - share)).min() < 5:
        return Drift(name, values, None)
    test = chi2_contingency(np.stack([happened, chances - happened]))
    return Drift(name, values, float(chi2.sf(test.statistic / events.design(), test.dof)))
