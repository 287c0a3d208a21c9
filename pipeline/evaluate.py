"""How close models come to an agent: every measure, by model, agent and street, beside its floor.

In go the decisions of agents (`Sample`) and models that give probabilities for them (`Candidate`: anything with
`probabilities(rows)`, so also a rule or a solver). Out come `Score` rows: the measures of `pipeline.measures` with 95%
intervals over deals, the floors where the agent's probabilities are known, the pair estimate of the Brier floor
where they are not, and three baselines counted on the training rows:

    uniform     every legal action alike
    frequency   how often the agent takes each action on this street
    betting     the same by street, position and whole betting so far: no cards

All candidates see the same draws of deals, so `paired` differences between them are free of the luck of the deals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline import measures
from pipeline.decisions import STREETS
from pipeline.files import Progress, quiet
from pipeline.game import Game
from pipeline.measures import EVERY, Bins, Bools, Bootstrap, Floats, Interval, Where
from pipeline.pairs import Disagreement, disagreement, floor_bounds, information

__all__ = [
    "ALL",
    "MEASURES",
    "Candidate",
    "Pair",
    "Player",
    "Sample",
    "Score",
    "Scored",
    "baselines",
    "legal_labels",
    "pair_floors",
    "paired",
    "score_all",
    "streets",
]

Array = npt.NDArray[Any]

ALL = "all"
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
    """expected hand strength, 0..1, where the data has it"""
    truth: Floats | None = None
    """the agent's own probabilities; NaN rows where unknown"""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: Array) -> Sample:
        """Some of the rows, or the rows in another order."""
        by_row = ("rows", "taken", "deal", "opponent", "file", "hand", "k", "strength", "truth")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in by_row if getattr(self, name) is not None}
        return replace(self, **{name: values[which] for name, values in arrays.items()})

    @property
    def labels(self) -> str:
        """The letters of the actions."""
        return self.game.labels


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

    def as_dict(self) -> dict[str, Any]:
        """For `--json`: the fixed keys first."""
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
            "ci95": {name: [one.low, one.high] for name, one in {**self.measures, **self.distance}.items()},
            "kl_by_pot": self.distance["kl_by_pot"].value if "kl_by_pot" in self.distance else None,
            "tv_by_pot": self.distance["tv_by_pot"].value if "tv_by_pot" in self.distance else None,
        }
        if self.pairs is not None and self.pairs.coverage > 0:
            brier = self.pairs.brier
            found["pair_floor_brier"] = {
                "value": brier.value,
                "ci95": [brier.low, brier.high],
                "coverage": self.pairs.coverage,
                "brier_on_covered": self.pairs_brier,
                "error_bounds": list(floor_bounds(brier.value)["error"]),
                "log_loss_at_least": floor_bounds(brier.value)["log_loss"][0],
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


def legal_labels(rows: Array, labels: int) -> Bools:
    """The bits of `legal` as a table (rows, labels)."""
    return (rows["legal"][:, None] >> np.arange(labels)[None, :] & 1).astype(bool)


def streets(sample: Sample) -> list[tuple[str, slice]]:
    """The streets that have rows, then all of them together."""
    ends = np.searchsorted(sample.rows["street"], np.arange(len(STREETS) + 1))
    found = [(name, slice(int(ends[i]), int(ends[i + 1]))) for i, name in enumerate(STREETS) if ends[i] < ends[i + 1]]
    return [*found, (ALL, EVERY)] if len(found) > 1 else found


@dataclass(frozen=True)
class _Shared:
    """What all candidates on a sample have in common."""

    draws: Bootstrap
    truth: Floats | None
    known: Bools
    floors: dict[str, Floats]
    pairs: dict[str, Disagreement]


def _share(sample: Sample, seed: int) -> _Shared:
    draws = Bootstrap(sample.deal, seed=seed)
    if sample.truth is None:
        return _Shared(draws, None, np.zeros(len(sample), dtype=bool), {}, pair_floors(sample))
    known = ~np.asarray(np.isnan(sample.truth).any(axis=1))
    truth = np.where(known[:, None], sample.truth, 1.0)
    return _Shared(draws, truth, known, measures.floors(truth), {})


def score_all(
    candidates: Sequence[Candidate], sample: Sample, *, seed: int = 0, progress: Progress = quiet
) -> list[Scored]:
    """Every measure of every candidate on a sample, by street, with the same draws of deals for all."""
    if (np.diff(sample.rows["street"].astype(np.int64)) < 0).any():
        sample = sample.take(np.argsort(sample.rows["street"], kind="stable"))
    shared = _share(sample, seed)
    found = []
    for done, candidate in enumerate(candidates):
        progress(done, len(candidates))
        found.append(_score(candidate, sample, shared))
    progress(len(candidates), len(candidates))
    return found


def _score(candidate: Candidate, sample: Sample, shared: _Shared) -> Scored:
    """Every measure of one candidate, by street."""
    draws, legal, y = shared.draws, sample.rows["legal"], sample.taken
    p = measures.played(candidate.player.probabilities(sample.rows), legal)
    by_row = measures.row_measures(p, y, shared.truth)
    scores, calibration = [], {}
    for street, at in streets(sample):
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
                agent=sample.agent,
                street=street,
                rows=len(y[at]),
                measures=found,
                perfect_calibration=float(np.mean([one.perfect for one in bins])) if bins else 0.0,
                played=played.tolist(),
                taken=taken.tolist(),
                **_beside(sample, shared, by_row, street, at),
            )
        )
    return Scored(candidate, sample, p, by_row, scores, calibration)


def _beside(sample: Sample, shared: _Shared, by_row: dict[str, Floats], street: str, at: slice) -> dict[str, Any]:
    """Floors and distances from the true probabilities where known, else the pair estimate."""
    if street in shared.pairs:
        pairs = shared.pairs[street]
        brier = float(by_row["brier"][at][pairs.covered].mean()) if pairs.coverage else None
        return {"pairs": pairs, "pairs_brier": brier}
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


def paired(scored: Sequence[Scored], names: Sequence[str] = ("error", "log_loss"), seed: int = 0) -> list[Pair]:
    """On each street, every model's difference from the one with the lowest mean; intervals are paired by deal."""
    if len(scored) < 2:
        return []
    sample = scored[0].sample
    draws = Bootstrap(sample.deal, seed=seed)
    found = []
    for street, at in streets(sample):
        for name in names:
            means, drawn = draws.mean([one.by_row[name][at] for one in scored], at)
            best = int(np.argmin(means))
            for i, one in enumerate(scored):
                if i != best:
                    difference = measures.percentile(float(means[i] - means[best]), drawn[:, i] - drawn[:, best])
                    other = scored[best].candidate.name
                    found.append(Pair(sample.agent, street, name, one.candidate.name, other, difference))
    return found


def pair_floors(sample: Sample) -> dict[str, Disagreement]:
    """The pair estimate of the Brier floor, by street."""
    keys = information(sample.rows)
    return {
        street: disagreement(keys[at], sample.deal[at], sample.taken[at], labels=len(sample.labels))
        for street, at in streets(sample)
    }


# Baselines


@dataclass(frozen=True)
class _Uniform:
    labels: int

    def probabilities(self, rows: Array) -> Array:
        legal = legal_labels(rows, self.labels)
        return np.asarray(legal / legal.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Counted:
    """Frequencies by key; a key not seen is played as its street is, and a street not seen evenly."""

    keys: Array
    mix: Floats
    by_street: Floats
    betting: bool

    def probabilities(self, rows: Array) -> Array:
        found = self.by_street[rows["street"]]
        if self.betting:
            keys = _betting(rows)
            at = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
            found = np.where((self.keys[at] == keys)[:, None], self.mix[at], found)
        kept = found * legal_labels(rows, self.mix.shape[1])
        total = kept.sum(axis=1, keepdims=True)
        even = _Uniform(self.mix.shape[1]).probabilities(rows)
        return np.asarray(np.where(total > 0, kept / np.where(total > 0, total, 1.0), even))


def _betting(rows: Array) -> npt.NDArray[np.uint64]:
    """A number for street, position and the whole betting so far."""
    value = rows["street"].astype(np.uint64) * np.uint64(64) + rows["position"].astype(np.uint64)
    for street in range(rows["words"].shape[1]):
        value = (value ^ rows["words"][:, street].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(29)
    return np.asarray(value)


def baselines(agent: str, labels: str, rows: Array, taken: Array) -> list[Candidate]:
    """Uniform play, and what counting the training rows without looking at the cards gives."""
    count = len(labels)
    found = [Candidate("uniform", "baseline", (agent,), _Uniform(count))]
    if len(rows) == 0:
        return found
    hot = np.eye(count)[taken.astype(np.int64)]
    by_street = np.zeros((len(STREETS), count))
    np.add.at(by_street, rows["street"], hot)
    by_street = (by_street + 1.0 / count) / (by_street + 1.0 / count).sum(axis=1, keepdims=True)
    keys, inverse = np.unique(_betting(rows), return_inverse=True)
    mix = np.stack([np.bincount(inverse, weights=hot[:, label]) for label in range(count)], axis=1)
    first = np.zeros(len(keys), dtype=np.int64)
    first[inverse] = rows["street"]
    mix = (mix + by_street[first]) / (mix.sum(axis=1, keepdims=True) + 1.0)
    for name, betting in (("frequency", False), ("betting", True)):
        found.append(Candidate(name, "baseline", (agent,), _Counted(keys, mix, by_street, betting)))
    return found
