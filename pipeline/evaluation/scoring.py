"""Scores: every measure of every model on an agent's decisions, street by street, beside its floor.

In go the decisions of agents (`Sample`) and models that give probabilities for them (`Candidate`: anything with
`probabilities(rows)`, so also a rule or a solver). Out come `Score` rows: the measures of `pipeline.models.measures`
with 95% intervals over deals, the floors where the agent's probabilities are known, the estimate of the Brier floor
from repeats (`repeat_floor`) where they are not, and a bound where hardly anything repeats: in expectation nobody
scores better than somebody who knows the mix, so a floor is at most what the best candidate reaches.

All candidates see the same draws of deals, so `paired` differences between them are free of the luck of the deals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from pipeline.evaluation.repeat_floor import Disagreement, disagreement, floor_bounds, information
from pipeline.evaluation.samples import Sample, streets, together
from pipeline.evaluation.sizing import SIZE_MEASURES, size_measures
from pipeline.models import measures
from pipeline.models.measures import Bins, Bootstrap, Interval, Where
from pipeline.runtime.array_types import Array, Bools, Floats
from pipeline.runtime.progress import Progress, no_progress

BASELINE = "baseline"
"""the algorithm of candidates that only count"""
BOUNDED = ("error", "log_loss", "brier")
"""measures whose floor is the least expected score that any probabilities have"""
MEASURES = ("error", "mismatch", "log_loss", "brier", "calibration", "frequency_gap")


class Player(Protocol):
    """Gives probabilities for what the acting player sees."""

    def probabilities(self, rows: Array) -> Array:
        """Float64 (rows, labels), 0 on illegal labels, each row summing to 1."""


@dataclass(frozen=True)
class Candidate:
    """A model to score: its name, how it was trained and on whom."""

    name: str
    algorithm: str
    agents: tuple[str, ...]
    player: Player
    streets: tuple[int, ...] = (0, 1, 2, 3)
    """the streets it has a model for"""
    pattern: str = ""
    """the pattern of its features, where it has one"""


def _ends(interval: Interval) -> list[float | None]:
    """The ends of an interval for JSON, which has no NaN: null where there were too few deals to tell."""
    return [None if math.isnan(end) else end for end in interval[1:]]


@dataclass(frozen=True)
class Score:
    """One model on one agent's decisions on one street."""

    model: str
    algorithm: str
    agent: str
    street: str
    rows: int
    measures: dict[str, Interval]
    perfect_calibration: float
    played: list[float]
    taken: list[float]
    known: int = 0
    """rows whose true probabilities are known: floors, KL and total variation are over these"""
    floors: dict[str, float] = field(default_factory=dict)
    distance: dict[str, Interval] = field(default_factory=dict)
    """kl, tv, excess, and kl_by_pot, tv_by_pot"""
    pairs: Disagreement | None = None
    """the estimate of the Brier floor where no probability is known"""
    pairs_brier: float | None = None
    """the model's own Brier score over the rows that have a partner, to compare with it"""
    alike: Disagreement | None = None
    """no-limit: pairs that are alike up to suits and size classes, which bound the Brier floor of these rows above"""
    at_most: dict[str, float] = field(default_factory=dict)
    """what the floors of `BOUNDED` are at most where they are not known: see `_bounded`"""
    pattern: str = ""
    raises: int = 0
    """raises whose amounts were scored: those of no-limit games, all-in aside"""
    sizes: dict[str, Interval] = field(default_factory=dict)
    """size_hit, size_error, size_crps: how close the amounts are"""

    def row(self) -> dict[str, Any]:
        """Return values and the ends of intervals as plain numbers, one line of a CSV file."""
        written = self.json()
        row = {key: value for key, value in written.items() if not isinstance(value, dict | list)}
        for name, (low, high) in written["ci95"].items():
            row |= {f"{name}_low": low, f"{name}_high": high}
        return row

    def json(self) -> dict[str, Any]:
        """Return the object that `evaluate --json` prints, its fixed keys first."""
        value = {name: interval.value for name, interval in self.measures.items()}
        found: dict[str, Any] = {
            "model": self.model,
            "algorithm": self.algorithm,
            "agent": self.agent,
            "street": self.street,
            "rows": self.rows,
            "error": value["error"],
            "log_loss": value["log_loss"],
            "floor_error": self.floors.get("error"),
            "floor_log_loss": self.floors.get("log_loss"),
            "kl": self.distance["kl"].value if "kl" in self.distance else None,
            "tv": self.distance["tv"].value if "tv" in self.distance else None,
            "mismatch": value["mismatch"],
            "brier": value["brier"],
            "floor_brier": self.floors.get("brier"),
            "calibration": value["calibration"],
            "calibration_if_perfect": self.perfect_calibration,
            "frequency_gap": value["frequency_gap"],
            "played": self.played,
            "taken": self.taken,
            "known_rows": self.known,
            "ci95": {name: _ends(one) for name, one in {**self.measures, **self.distance, **self.sizes}.items()},
            "kl_by_pot": self.distance["kl_by_pot"].value if "kl_by_pot" in self.distance else None,
            "tv_by_pot": self.distance["tv_by_pot"].value if "tv_by_pot" in self.distance else None,
            "pattern": self.pattern or None,
            **{f"floor_{name}_at_most": self.at_most.get(name) for name in BOUNDED},
            "raises": self.raises,
            **{name: self.sizes[name].value if name in self.sizes else None for name in SIZE_MEASURES},
        }
        if self.pairs is not None and self.pairs.coverage > 0:
            brier = self.pairs.brier
            found["pair_floor_brier"] = {
                "value": brier.value,
                "ci95": _ends(brier),
                "coverage": self.pairs.coverage,
                "brier_on_covered": self.pairs_brier,
                "error_bounds": list(floor_bounds(brier.value)["error"]),
                "log_loss_at_least": floor_bounds(brier.value)["log_loss"][0],
            }
        if self.alike is not None and self.alike.coverage > 0:
            brier = self.alike.brier
            found["alike_floor_brier_at_most"] = {
                "value": brier.value,
                "ci95": _ends(brier),
                "coverage": self.alike.coverage,
            }
        return found


@dataclass(frozen=True)
class Scored:
    """A candidate on a sample: its scores by street and what they were made from."""

    candidate: Candidate
    sample: Sample
    played: Floats
    by_row: dict[str, Floats]
    scores: list[Score]
    calibration: dict[str, list[Bins]]


@dataclass(frozen=True)
class Pair:
    """How much more one model loses than another on the same decisions."""

    agent: str
    street: str
    measure: str
    model: str
    other: str
    difference: Interval


@dataclass(frozen=True)
class _Shared:
    """What does not depend on the candidate: draws of deals, true probabilities, floors, repeated situations."""

    draws: Bootstrap
    truth: Floats | None
    known: Bools
    floors: dict[str, Floats]
    pairs: dict[str, Disagreement]
    alike: dict[str, Disagreement]


def _share(sample: Sample, seed: int) -> _Shared:
    draws = Bootstrap(sample.deal, seed=seed)
    if sample.truth is None:
        alike = repeat_floors(sample, alike=True) if sample.game.nolimit else {}
        return _Shared(draws, None, np.zeros(len(sample), dtype=bool), {}, repeat_floors(sample), alike)
    known = ~np.asarray(np.isnan(sample.truth).any(axis=1))
    truth = np.where(known[:, None], sample.truth, 1.0)
    return _Shared(draws, truth, known, measures.floors(truth), {}, {})


def by_street(sample: Sample) -> Sample:
    """A sample in the order of the streets."""
    if (np.diff(sample.rows["street"].astype(np.int64)) < 0).any():
        return sample.take(np.argsort(sample.rows["street"], kind="stable"))
    return sample


def score_all(
    candidates: Sequence[Candidate], sample: Sample, *, seed: int = 0, progress: Progress = no_progress
) -> list[Scored]:
    """Score candidates on a sample.

    Parameters: `seed` of the bootstrap; all candidates see the same draws of deals. Returns a `Scored` per candidate:
    every measure by street, then over all streets.
    """
    sample = by_street(sample)
    shared = _share(sample, seed)
    found = []
    for done, candidate in enumerate(candidates):
        progress(done, len(candidates))
        found.append(_score(candidate, sample, shared))
    progress(len(candidates), len(candidates))
    return bounded(found)


def bounded(scored: list[Scored]) -> list[Scored]:
    """The scores with what the floors are at most: the lowest upper end of any candidate's 95 % interval."""
    ends: dict[tuple[str, str], list[float]] = {}
    for score in (score for one in scored for score in one.scores):
        for name in BOUNDED:
            high = score.measures[name].high
            ends.setdefault((score.street, name), []).extend([] if math.isnan(high) else [high])
    lowest = {key: min(found) for key, found in ends.items() if found}
    return [
        replace(
            one,
            scores=[
                replace(
                    score,
                    at_most={
                        name: lowest[score.street, name]
                        for name in BOUNDED
                        if name not in score.floors and (score.street, name) in lowest
                    },
                )
                for score in one.scores
            ],
        )
        for one in scored
    ]


def _score(candidate: Candidate, sample: Sample, shared: _Shared) -> Scored:
    """Every measure of one candidate, by street."""
    draws, legal, y = shared.draws, sample.rows["legal"], sample.taken
    able = np.isin(sample.rows["street"], candidate.streets)
    said = np.zeros((len(sample), len(sample.labels)))
    said[able] = candidate.player.probabilities(sample.rows if able.all() else sample.rows[able])
    p = measures.played(said, legal)
    by_row = measures.row_measures(p, y, shared.truth)
    player = candidate.player
    by_row |= player.by_row if isinstance(player, _Answers) else size_measures(player, sample)
    scores, calibration = [], {}
    for street, at in streets(sample):
        if not able[at].all():
            continue
        bins = measures.calibration_bins(p[at], y[at], legal[at], group=draws.group[at], groups=draws.groups)
        calibration[street] = bins
        found = draws.intervals({name: by_row[name][at] for name in MEASURES[:4]}, at)
        found["calibration"] = draws.calibration(bins)
        found["frequency_gap"] = draws.frequency_gap(p[at], y[at], at)
        played, taken = measures.frequencies(p[at], y[at])
        scores.append(
            Score(
                model=candidate.name,
                algorithm=candidate.algorithm,
                pattern=candidate.pattern,
                agent=sample.agent,
                street=street,
                rows=len(y[at]),
                measures=found,
                perfect_calibration=float(np.mean([one.perfect for one in bins])) if bins else 0.0,
                played=played.tolist(),
                taken=taken.tolist(),
                **_sizes(draws, by_row, at, len(sample)),
                **_beside(sample, shared, by_row, street, at),
            )
        )
    return Scored(candidate, sample, p, by_row, scores, calibration)


def _sizes(draws: Bootstrap, by_row: dict[str, Floats], at: slice, rows: int) -> dict[str, Any]:
    """The measures of amounts over the raises among some rows."""
    if SIZE_MEASURES[0] not in by_row:
        return {}
    raised = np.zeros(rows, dtype=bool)
    raised[at] = ~np.isnan(by_row[SIZE_MEASURES[0]][at])
    if not raised.any():
        return {}
    found = draws.intervals({name: by_row[name][raised] for name in SIZE_MEASURES}, raised)
    return {"raises": int(raised.sum()), "sizes": found}


def _beside(sample: Sample, shared: _Shared, by_row: dict[str, Floats], street: str, at: slice) -> dict[str, Any]:
    """Floors and distances from the true probabilities where known, else the estimate from repeated situations."""
    if street in shared.pairs:
        pairs = shared.pairs[street]
        brier = float(by_row["brier"][at][pairs.covered].mean()) if pairs.coverage else None
        return {"pairs": pairs, "pairs_brier": brier, "alike": shared.alike.get(street)}
    known: Where = at
    if not shared.known[at].all():
        known = np.zeros(len(sample), dtype=bool)
        known[at] = shared.known[at]
    pot = sample.rows["pot"][known].astype(np.float64)
    if len(pot) == 0:
        return {}
    values = {name: by_row[name][known] for name in ("kl", "tv", "excess")}
    distance = shared.draws.intervals(values, known)
    weighted = shared.draws.intervals({name: values[name] for name in ("kl", "tv")}, known, pot)
    distance |= {f"{name}_by_pot": interval for name, interval in weighted.items()}
    floors = {name: float(floor[known].mean()) for name, floor in shared.floors.items()}
    return {"known": len(pot), "floors": floors, "distance": distance}


@dataclass(frozen=True)
class _Answers:
    """Probabilities that lie beside the rows they are for, in the same order, and measures of amounts likewise."""

    played: Floats
    by_row: dict[str, Floats]

    def probabilities(self, rows: Array) -> Array:
        assert len(rows) == len(self.played)
        return self.played


def pooled(scored: Sequence[Sequence[Scored]], *, seed: int = 0) -> list[Scored]:
    """The candidates that were scored on every agent, on all agents' decisions together.

    Parameters: `scored` the candidates by agent. A baseline is each agent's own. Returns a `Scored` per candidate on
    a sample of `EVERYBODY`; a deal that several agents played is drawn as one.
    """
    shared = [one.candidate.name for one in scored[0]]
    by_name = [{one.candidate.name: one for one in row} for row in scored]
    sample, order = together([row[0].sample for row in scored])
    found = []
    for name in (name for name in shared if all(name in row for row in by_name)):
        mine = [row[name] for row in by_name]
        played = np.concatenate([one.played for one in mine])[order]
        streets = tuple(sorted(set.intersection(*(set(one.candidate.streets) for one in mine))))
        able = np.isin(sample.rows["street"], streets)
        amounts = {
            name: np.concatenate([one.by_row[name] for one in mine])[order]
            for name in SIZE_MEASURES
            if all(name in one.by_row for one in mine)
        }
        candidate = replace(mine[0].candidate, player=_Answers(played[able], amounts), streets=streets)
        found.append(candidate)
    return score_all(found, sample, seed=seed)


def paired(scored: Sequence[Scored], names: Sequence[str] = ("error", "log_loss"), seed: int = 0) -> list[Pair]:
    """On each street, every model's difference from the one with the lowest mean.

    Parameters: `scored` models on one sample, `names` of the measures, `seed` of the bootstrap. Returns a `Pair` per
    street, measure and model but the best; its interval draws the same deals for both models.
    """
    if len(scored) < 2:
        return []
    sample = scored[0].sample
    draws = Bootstrap(sample.deal, seed=seed)
    found = []
    for street, at in streets(sample):
        able = [one for one in scored if any(score.street == street for score in one.scores)]
        for name in names if len(able) > 1 else ():
            means, drawn = draws.mean([one.by_row[name][at] for one in able], at)
            best = int(np.argmin(means))
            for i, one in enumerate(able):
                if i != best:
                    difference = measures.percentile(float(means[i] - means[best]), drawn[:, i] - drawn[:, best])
                    other = able[best].candidate.name
                    found.append(Pair(sample.agent, street, name, one.candidate.name, other, difference))
    return found


def repeat_floors(sample: Sample, *, alike: bool = False) -> dict[str, Disagreement]:
    """The estimate of the Brier floor from pairs of decisions in the same situation, by street.

    With `alike` amounts may differ inside size classes. Two mixes q and r then differ with probability 1 - sum q r, the
    mean of both floors plus sum (q - r)^2 / 2: a bound from above, not an estimate.
    """
    keys = information(sample.rows, amounts=not alike)
    if sample.who is not None:  # decisions of different agents are no pairs
        keys = keys ^ (sample.who.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return {
        street: disagreement(keys[at], sample.deal[at], sample.taken[at], labels=len(sample.labels))
        for street, at in streets(sample)
    }
