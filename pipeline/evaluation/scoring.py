"""Scores: every measure of every model on an agent's decisions, street by street, beside its floor.

In go the decisions of agents (`DecisionSample`) and models that give probabilities for them (`Candidate`: anything with
`probabilities(rows)`, so also a rule or a solver). Out come `ModelScore`s: the measures of `pipeline.models.measures`
with 95% intervals over deals, the floors where the agent's probabilities are known, the estimate of the Brier floor
from repeats (`repeat_floor`) where they are not, and a bound where hardly anything repeats: in expectation nobody
scores better than somebody who knows the mix, so a floor is at most the best candidate's score.

All candidates see the same bootstrap draws of deals: `paired_differences` between them are free of the luck of the
deals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from pipeline.evaluation.hands_to_tell import HandsToTell, hands_to_tell
from pipeline.evaluation.repeat_floor import Disagreement, disagreement, floor_bounds, information_set_keys
from pipeline.evaluation.samples import DecisionSample, join_samples, street_slices
from pipeline.evaluation.sizing import SIZE_MEASURES, size_measures
from pipeline.models import measures
from pipeline.models.measures import Bins, Bootstrap, Estimate, Interval, Where
from pipeline.runtime.array_types import Array, Bools, Floats
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.tabular import flat_row

BASELINE = "baseline"
"""the algorithm of candidates that only count"""
BOUNDED = ("error", "log_loss", "brier")
"""measures whose floor is the least expected score that any probabilities have"""
MEASURES = ("error", "mismatch", "log_loss", "brier", "calibration", "frequency_gap")


class ScoredPlayer(Protocol):
    """Anything that gives probabilities for rows of decisions."""

    def probabilities(self, rows: Array) -> Array:
        """Return float64 (rows, labels), 0 on illegal labels, each row summing to 1."""


@dataclass(frozen=True)
class Candidate:
    """A model to score: its name, how it was trained and on whom."""

    name: str
    algorithm: str
    agents: tuple[str, ...]
    player: ScoredPlayer
    streets: tuple[int, ...] = (0, 1, 2, 3)
    """the streets it has a model for"""
    pattern: str = ""
    """the pattern of its features, where it has one"""
    overlap: int | None = 0
    """logs that it was trained on and is scored on; None where nobody knows"""


@dataclass(frozen=True)
class ModelScore:
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
    floors_at_most: dict[str, float] = field(default_factory=dict)
    """upper bounds of the floors of `BOUNDED` where they are not known: see `bound_floors`"""
    pattern: str = ""
    raises: int = 0
    """raises whose amounts were scored: those of no-limit games, all-in aside"""
    sizes: dict[str, Interval] = field(default_factory=dict)
    """size_hit, size_error, size_crps: how close the amounts are"""
    tell: HandsToTell | None = None
    """hands to tell of a model of all streets, on all of them together, where the agent's own mix is known"""
    tell_at_most: float | None = None
    """a bound of the hands to tell of copies from half of the deals"""
    overlap: int | None = 0
    """logs that the model was trained on and is scored on; None where nobody knows"""

    def row(self) -> dict[str, Any]:
        """Return values and the ends of intervals as plain numbers, one line of a CSV file."""
        written = self.json()
        ends_of_intervals = ("ci95", "interval", "hands_to_tell_interval")
        row = flat_row({key: value for key, value in written.items() if key not in ends_of_intervals})
        for name, ends in written["interval"].items():
            low, high = ends or (None, None)
            row |= {f"{name}_low": low, f"{name}_high": high}
        low, high = written["hands_to_tell_interval"] or (None, None)
        return row | {"hands_to_tell_low": low, "hands_to_tell_high": high}

    def json(self) -> dict[str, Any]:
        """Return the object that `evaluate --json` prints, its fixed keys first."""
        value = {name: interval.value for name, interval in self.measures.items()}
        intervals = {
            name: Estimate.of(item).ends_json()
            for name, item in {**self.measures, **self.distance, **self.sizes}.items()
        }
        fields: dict[str, Any] = {
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
            **{key: {name: ends[key] for name, ends in intervals.items()} for key in ("ci95", "interval")},
            "kl_by_pot": self.distance["kl_by_pot"].value if "kl_by_pot" in self.distance else None,
            "tv_by_pot": self.distance["tv_by_pot"].value if "tv_by_pot" in self.distance else None,
            "pattern": self.pattern or None,
            **{f"floor_{name}_at_most": self.floors_at_most.get(name) for name in BOUNDED},
            "raises": self.raises,
            **{name: self.sizes[name].value if name in self.sizes else None for name in SIZE_MEASURES},
            "hands_to_tell": None if self.tell is None else self.tell.hands,
            "hands_to_tell_interval": None if self.tell is None else [self.tell.low, self.tell.high],
            "hands_to_tell_at_most": self.tell_at_most,
            "overlap": self.overlap,
            "kl_per_hand": None if self.tell is None else self.tell.kl_per_hand.value,
        }
        if self.pairs is not None and self.pairs.coverage > 0:
            brier = self.pairs.brier
            fields["pair_floor_brier"] = {
                "value": brier.value,
                **Estimate.of(brier).ends_json(),
                "coverage": self.pairs.coverage,
                "brier_on_covered": self.pairs_brier,
                "error_bounds": list(floor_bounds(brier.value)["error"]),
                "log_loss_at_least": floor_bounds(brier.value)["log_loss"][0],
            }
        if self.alike is not None and self.alike.coverage > 0:
            brier = self.alike.brier
            fields["alike_floor_brier_at_most"] = {
                "value": brier.value,
                **Estimate.of(brier).ends_json(),
                "coverage": self.alike.coverage,
            }
        return fields


@dataclass(frozen=True)
class Scored:
    """A candidate on a sample: its scores by street, and the probabilities and losses by row behind them."""

    candidate: Candidate
    sample: DecisionSample
    played: Floats
    by_row: dict[str, Floats]
    scores: list[ModelScore]
    calibration: dict[str, list[Bins]]


@dataclass(frozen=True)
class PairedDifference:
    """The excess of one model's loss over another's on the same decisions."""

    agent: str
    street: str
    measure: str
    model: str
    other: str
    difference: Interval


@dataclass(frozen=True)
class _SampleContext:
    """The parts of a score that do not depend on the candidate: draws, true probabilities, floors, repeats."""

    seed: int
    draws: Bootstrap
    truth: Floats | None
    known: Bools
    floors: dict[str, Floats]
    pairs: dict[str, Disagreement]
    alike: dict[str, Disagreement]


def _sample_context(sample: DecisionSample, seed: int) -> _SampleContext:
    """Compute the parts of a score that do not depend on the candidate."""
    draws = Bootstrap(sample.deal, seed=seed)
    if sample.truth is None:
        alike = repeat_floors(sample, alike=True) if sample.game.nolimit else {}
        return _SampleContext(seed, draws, None, np.zeros(len(sample), dtype=bool), {}, repeat_floors(sample), alike)
    has_truth = ~np.asarray(np.isnan(sample.truth).any(axis=1))
    # ones where nothing is known: no logarithm fails on them, and `known` leaves the values out
    truth = np.where(has_truth[:, None], sample.truth, 1.0)
    return _SampleContext(seed, draws, truth, has_truth, measures.floors(truth), {}, {})


def sort_by_street(sample: DecisionSample) -> DecisionSample:
    """Sort a sample by street, if it is not sorted."""
    if (np.diff(sample.rows["street"].astype(np.int64)) < 0).any():
        return sample.take(np.argsort(sample.rows["street"], kind="stable"))
    return sample


def score_all(
    candidates: Sequence[Candidate], sample: DecisionSample, *, seed: int = 0, progress: Progress = no_progress
) -> list[Scored]:
    """Score candidates on a sample.

    Parameters: `seed` of the bootstrap; all candidates see the same draws of deals. Returns a `Scored` per candidate:
    every measure by street, then over all streets.
    """
    sample = sort_by_street(sample)
    shared = _sample_context(sample, seed)
    scored = []
    for index, candidate in enumerate(candidates):
        progress(index, len(candidates))
        scored.append(_score(candidate, sample, shared))
    progress(len(candidates), len(candidates))
    return bound_floors(scored)


def answers(candidates: Sequence[Candidate], sample: DecisionSample) -> list[Scored]:
    """Return what candidates play on a sample, with the errors of amounts but without scores: for `pool_scores`."""
    sample = sort_by_street(sample)
    return [
        Scored(candidate, sample, _played(candidate, sample), size_measures(candidate.player, sample), [], {})
        for candidate in candidates
    ]


def _played(candidate: Candidate, sample: DecisionSample) -> Floats:
    """Return the mixes of a candidate (rows, labels), zeros on streets that it has no model for."""
    able = np.isin(sample.rows["street"], candidate.streets)
    probabilities = np.zeros((len(sample), len(sample.labels)))
    probabilities[able] = candidate.player.probabilities(sample.rows if able.all() else sample.rows[able])
    return measures.played(probabilities, sample.rows["legal"])


def bound_floors(scored: list[Scored]) -> list[Scored]:
    """Add upper bounds of unknown floors to scores: the lowest upper end of any candidate's 95 % interval."""
    ends: dict[tuple[str, str], list[float]] = {}
    for score in (score for model in scored for score in model.scores):
        for name in BOUNDED:
            high = score.measures[name].high
            ends.setdefault((score.street, name), []).extend([] if math.isnan(high) else [high])
    lowest = {key: min(highs) for key, highs in ends.items() if highs}
    return [
        replace(
            model,
            scores=[
                replace(
                    score,
                    floors_at_most={
                        name: lowest[score.street, name]
                        for name in BOUNDED
                        if name not in score.floors and (score.street, name) in lowest
                    },
                )
                for score in model.scores
            ],
        )
        for model in scored
    ]


def _score(candidate: Candidate, sample: DecisionSample, shared: _SampleContext) -> Scored:
    """Score one candidate by every measure, by street."""
    draws, legal, y = shared.draws, sample.rows["legal"], sample.taken
    able = np.isin(sample.rows["street"], candidate.streets)
    p = _played(candidate, sample)
    by_row = measures.row_measures(p, y, shared.truth)
    player = candidate.player
    by_row |= player.by_row if isinstance(player, StoredProbabilities) else size_measures(player, sample)
    scores, calibration = [], {}
    for street, rows in street_slices(sample):
        if not able[rows].all():
            continue
        bins = measures.calibration_bins(p[rows], y[rows], legal[rows], group=draws.group[rows], groups=draws.groups)
        calibration[street] = bins
        measured = draws.intervals({name: by_row[name][rows] for name in MEASURES[:4]}, rows)
        measured["calibration"] = draws.calibration(bins)
        measured["frequency_gap"] = draws.frequency_gap(p[rows], y[rows], rows)
        played, taken = measures.frequencies(p[rows], y[rows])
        scores.append(
            ModelScore(
                model=candidate.name,
                algorithm=candidate.algorithm,
                pattern=candidate.pattern,
                overlap=candidate.overlap,
                agent=sample.agent,
                street=street,
                rows=len(y[rows]),
                measures=measured,
                perfect_calibration=float(np.mean([bin_.perfect for bin_ in bins])) if bins else 0.0,
                played=played.tolist(),
                taken=taken.tolist(),
                **_sizes(draws, by_row, rows, len(sample)),
                **_floors_and_distances(sample, shared, by_row, street, rows),
            )
        )
    if (
        scores
        and sample.dealt is not None
        and "kl" in by_row
        and set(range(sample.game.rounds)) <= set(candidate.streets)
    ):
        tell = hands_to_tell(by_row["kl"], sample.dealt, shared.known, seed=shared.seed)
        scores[-1] = replace(scores[-1], tell=tell)
    return Scored(candidate, sample, p, by_row, scores, calibration)


def _sizes(draws: Bootstrap, by_row: dict[str, Floats], rows_slice: slice, rows: int) -> dict[str, Any]:
    """Return the measures of amounts over the raises among some rows."""
    if SIZE_MEASURES[0] not in by_row:
        return {}
    raised = np.zeros(rows, dtype=bool)
    raised[rows_slice] = ~np.isnan(by_row[SIZE_MEASURES[0]][rows_slice])
    if not raised.any():
        return {}
    measured = draws.intervals({name: by_row[name][raised] for name in SIZE_MEASURES}, raised)
    return {"raises": int(raised.sum()), "sizes": measured}


def _floors_and_distances(
    sample: DecisionSample, shared: _SampleContext, by_row: dict[str, Floats], street: str, rows: slice
) -> dict[str, Any]:
    """Return floors and distances from the true probabilities where known, else the estimate from repeats."""
    if street in shared.pairs:
        pairs = shared.pairs[street]
        brier = float(by_row["brier"][rows][pairs.covered].mean()) if pairs.coverage else None
        return {"pairs": pairs, "pairs_brier": brier, "alike": shared.alike.get(street)}
    known_rows: Where = rows
    if not shared.known[rows].all():
        known_rows = np.zeros(len(sample), dtype=bool)
        known_rows[rows] = shared.known[rows]
    pot = sample.rows["pot"][known_rows].astype(np.float64)
    if len(pot) == 0:
        return {}
    values = {name: by_row[name][known_rows] for name in ("kl", "tv", "excess")}
    distance = shared.draws.intervals(values, known_rows)
    weighted = shared.draws.intervals({name: values[name] for name in ("kl", "tv")}, known_rows, pot)
    distance |= {f"{name}_by_pot": interval for name, interval in weighted.items()}
    floors = {name: float(floor[known_rows].mean()) for name, floor in shared.floors.items()}
    return {"known": len(pot), "floors": floors, "distance": distance}


@dataclass(frozen=True)
class StoredProbabilities:
    """Probabilities computed before, for the same rows in the same order, and measures of amounts likewise."""

    played: Floats
    by_row: dict[str, Floats]

    def probabilities(self, rows: Array) -> Array:
        assert len(rows) == len(self.played)
        return self.played


def pool_scores(scored: Sequence[Sequence[Scored]], *, seed: int = 0) -> list[Scored]:
    """Score the candidates that were scored on every agent, on all agents' decisions together.

    Parameters: `scored` the candidates by agent. A baseline is each agent's own. Returns a `Scored` per candidate on
    a sample of `ALL_AGENTS`; a deal that several agents played is drawn as one.
    """
    shared = [scored_model.candidate.name for scored_model in scored[0]]
    by_name = [{scored_model.candidate.name: scored_model for scored_model in row} for row in scored]
    sample, order = join_samples([row[0].sample for row in scored])
    candidates = []
    for name in (name for name in shared if all(name in row for row in by_name)):
        by_agent = [row[name] for row in by_name]
        played = np.concatenate([scored_model.played for scored_model in by_agent])[order]
        common_streets = tuple(
            sorted(set.intersection(*(set(scored_model.candidate.streets) for scored_model in by_agent)))
        )
        able = np.isin(sample.rows["street"], common_streets)
        amounts = {
            name: np.concatenate([scored_model.by_row[name] for scored_model in by_agent])[order]
            for name in SIZE_MEASURES
            if all(name in scored_model.by_row for scored_model in by_agent)
        }
        candidate = replace(
            by_agent[0].candidate, player=StoredProbabilities(played[able], amounts), streets=common_streets
        )
        candidates.append(candidate)
    return score_all(candidates, sample, seed=seed)


def paired_differences(
    scored: Sequence[Scored], names: Sequence[str] = ("error", "log_loss"), seed: int = 0
) -> list[PairedDifference]:
    """Compare every model with the one that has the lowest mean, on each street.

    Parameters: `scored` models on one sample, `names` of the measures, `seed` of the bootstrap. Returns a
    `PairedDifference` per street, measure and model but the best; its interval draws the same deals for both models.
    """
    if len(scored) < 2:
        return []
    sample = scored[0].sample
    draws = Bootstrap(sample.deal, seed=seed)
    differences = []
    for street, rows in street_slices(sample):
        able = [model for model in scored if any(score.street == street for score in model.scores)]
        for name in names if len(able) > 1 else ():
            means, drawn = draws.mean([model.by_row[name][rows] for model in able], rows)
            best_index = int(np.argmin(means))
            for i, model in enumerate(able):
                if i != best_index:
                    difference = measures.percentile(
                        float(means[i] - means[best_index]), drawn[:, i] - drawn[:, best_index]
                    )
                    other = able[best_index].candidate.name
                    differences.append(
                        PairedDifference(sample.agent, street, name, model.candidate.name, other, difference)
                    )
    return differences


def repeat_floors(sample: DecisionSample, *, alike: bool = False) -> dict[str, Disagreement]:
    """Estimate the Brier floor from pairs of decisions in the same situation, by street.

    With `alike` amounts may differ inside size classes. Two mixes q and r then differ with probability 1 - sum q r, the
    mean of both floors plus sum (q - r)^2 / 2: a bound from above, not an estimate.
    """
    keys = information_set_keys(sample.rows, amounts=not alike)
    if sample.who is not None:  # decisions of different agents are no pairs
        keys = keys ^ (sample.who.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return {
        street: disagreement(keys[rows], sample.deal[rows], sample.taken[rows], labels=len(sample.labels))
        for street, rows in street_slices(sample)
    }
