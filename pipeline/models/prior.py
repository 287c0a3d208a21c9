"""A log-linear model against priors: p ~ product of prior^b x exp(w.f), over the legal labels.

A prior is somebody else's mix: a bundle's (a population of players, say) or a built-in agent's (a solved strategy).
The model keeps the weights w of its own features and a strength b per prior, street and betting, so that it says what
the priors say wherever its own rows said nothing. Of a bundle the models themselves are kept, as a copy; of a built-in
agent its name, some rows and what it answered there: an agent that answers otherwise today is refused.

Agents stand above models, so they announce how they are found (`offer_agents`) instead of being imported here.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import NO_START, NOBODY, OBSERVATION
from pipeline.features.rated import RatedRows
from pipeline.models.bundle import KINDS, Model
from pipeline.models.loglinear import LogLinear
from pipeline.models.softmax import softmax
from pipeline.poker.cards import NO_CARD, names
from pipeline.poker.game import Game, parse_game
from pipeline.poker.rules import CALL, MAX_PLAYERS
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import MAX_WEIGHT, expect, expect_ascending, whole_number
from pipeline.runtime.errors import PipelineError

LEAST = 0.001
"""the least probability of a legal label that a prior is taken to mean"""
PIECE = 1 << 16
"""rows that a prior is asked about at once"""
MOST_PRIORS, DEEPEST = 16, 4
"""priors of a model; priors of priors"""
PROBES = 32
"""rows on which an agent's answers are kept"""
SAME = 1e-6
"""how far two answers to the same question may differ"""
_offered: list[Callable[[str, Game], Any]] = []


def offer_agents(resolve: Callable[[str, Game], Any]) -> None:
    """Say how an agent is found by its name and game; `pipeline.agents` does when it is imported."""
    _offered[:] = [resolve]


def find_agent(text: str, game: Game) -> Any:
    """A built-in agent by its name."""
    if not _offered:
        import_module("pipeline.agents")  # which announces itself: nobody has needed an agent yet
    return _offered[0](text, game)


class Prior(Protocol):
    """Somebody's mix that a model starts from."""

    @property
    def name(self) -> str:
        """What the user called it."""

    @property
    def digest(self) -> str:
        """A hash of what it says."""

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """(rows, labels) probabilities, 0 on what is not legal or not known."""

    def to_json(self) -> dict[str, Any]:
        """What a manifest keeps."""

    def to_arrays(self) -> dict[str, Array]:
        """What a model's file keeps."""


@dataclass(frozen=True)
class ModelPrior:
    """The models of another bundle: those of each street, by its number."""

    name: str
    models: Mapping[int, Model] = field(repr=False)

    @cached_property
    def _distinct(self) -> list[tuple[Model, list[int]]]:
        """Each model once, with its streets."""
        found: dict[int, tuple[Model, list[int]]] = {}
        for street in sorted(self.models):
            found.setdefault(id(self.models[street]), (self.models[street], []))[1].append(street)
        return list(found.values())

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        for name, array in sorted(self.to_arrays().items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]

    def predict(self, rows: Any) -> NDArray[np.float64]:
        streets = rows["street"]
        first = int(streets[0]) if len(rows) else 0
        if (streets == first).all():
            return self.models[first].predict(rows)
        out = np.zeros((len(rows), next(iter(self.models.values())).width))
        for street, model in self.models.items():
            at = np.flatnonzero(streets == street)
            if len(at):
                out[at] = model.predict(rows[at])
        return out

    def inside(self, streets: Collection[int]) -> Iterator[tuple[Model, list[int]]]:
        """The models with the streets of each; one that is wanted and not there raises `ValueError`."""
        if not self.models.keys() >= set(streets):
            raise ValueError(f"the prior {self.name[:40]!r} has no model for a street that is asked of it")
        yield from self._distinct

    def to_json(self) -> dict[str, Any]:
        kinds = {name: kind for kind, (_, name) in KINDS.items()}
        models = [
            {"kind": kinds[type(model).__name__], "streets": streets, **model.to_json()}
            for model, streets in self._distinct
        ]
        return {"name": self.name, "hash": self.digest, "models": models}

    def to_arrays(self) -> dict[str, Array]:
        return {
            f"{at} {name}": array
            for at, (model, _) in enumerate(self._distinct)
            for name, array in model.to_arrays().items()
        }

    @classmethod
    def load(cls, kept: Mapping[str, Any], arrays: Mapping[str, Array]) -> ModelPrior:
        models: dict[int, Model] = {}
        for at, one in enumerate(kept["models"]):
            module, name = KINDS[one["kind"]]
            model = getattr(importlib.import_module(module), name).load(one, _named(arrays, str(at)))
            models |= {whole_number(street, "a prior's street", 0, 3): model for street in one["streets"]}
        return cls(_short(kept["name"]), models)


@dataclass(frozen=True)
class AgentPrior:
    """A built-in agent, asked by its name; `rows` and `answers` are what it said when the model was trained."""

    name: str
    game: Game
    rows: Array = field(repr=False)
    """(probes,) OBSERVATION"""
    answers: Array = field(repr=False)
    """(probes, labels) float32"""

    @classmethod
    def of(cls, name: str, game: Game, rows: Array) -> AgentPrior:
        """The agent, with its answers at some of the rows that a model is trained on."""
        some = np.ascontiguousarray(rows[:: max(1, len(rows) // PROBES)][:PROBES])
        return cls(name, game, some, find_agent(name, game).probabilities(some).astype(np.float32))

    @property
    def width(self) -> int:
        """The number of labels."""
        return int(self.answers.shape[1])

    def inside(self, game: Game, streets: Collection[int]) -> Iterator[tuple[Model, list[int]]]:
        """No other models; an agent of another game raises `ValueError`."""
        if not np.array_equal(self.game.rules, game.rules):
            raise ValueError(f"the prior {self.name[:40]!r} is for another game")
        return iter(())

    @cached_property
    def agent(self) -> Any:
        """The agent of today, if it answers as it did."""
        found = find_agent(self.name, self.game)
        if len(self.rows) and np.abs(found.probabilities(self.rows) - self.answers).max() > SAME:
            raise PipelineError(
                f"{self.name} answers otherwise than when this bundle was trained on it: train it again"
            )
        return found

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.name.encode() + np.round(self.answers, 5).tobytes()).hexdigest()[:32]

    def predict(self, rows: Any) -> NDArray[np.float64]:
        bare = rows.rows if isinstance(rows, RatedRows) else rows
        if len(bare) <= PIECE:
            return np.asarray(self.agent.probabilities(bare), np.float64)
        parts = [self.agent.probabilities(bare[low : low + PIECE]) for low in range(0, len(bare), PIECE)]
        return np.concatenate(parts)

    def to_json(self) -> dict[str, Any]:
        game = {"name": self.game.name, "text": self.game.text}
        return {"name": self.name, "hash": self.digest, "agent": game, "row": str(OBSERVATION.descr)}

    def to_arrays(self) -> dict[str, Array]:
        raw = np.frombuffer(self.rows.tobytes(), np.uint8).reshape(len(self.rows), OBSERVATION.itemsize)
        return {"rows": raw, "answers": self.answers}

    @classmethod
    def load(cls, kept: Mapping[str, Any], arrays: Mapping[str, Array]) -> AgentPrior:
        name, game = _short(kept["name"]), parse_game(str(kept["agent"]["text"]), str(kept["agent"]["name"]))
        if not name.startswith("@"):
            raise ValueError(f"the prior {name!r} is no built-in agent")
        answers = expect(arrays, "answers", np.float32, (None, None), 0, 1)
        if kept["row"] != str(OBSERVATION.descr):  # rows of another version cannot be asked about
            return cls(name, game, np.empty(0, OBSERVATION), answers[:0])
        raw = expect(arrays, "rows", np.uint8, (len(answers), OBSERVATION.itemsize))
        rows = np.frombuffer(raw.tobytes(), OBSERVATION)
        if len(rows) > PROBES or not _are_possible(rows, game):
            raise ValueError(
                f"the rows on which the prior {name[:40]!r} was asked are no decisions of {game.name[:40]}"
            )
        return cls(name, game, rows, answers)


@dataclass(frozen=True)
class Strengths:
    """The exponent of each prior: by street, and for bettings that have one of their own."""

    streets: NDArray[np.float32]
    """(4, priors)"""
    keys: NDArray[np.uint64]
    """(bettings,) ascending, see `betting_keys`"""
    values: NDArray[np.float32]
    """(bettings, priors)"""

    def at(self, rows: Any) -> NDArray[np.float64]:
        """(rows, priors)"""
        return self.of_keys(rows["street"], betting_keys(rows) if len(self.keys) else np.empty(0, np.uint64))

    def of_keys(self, streets: Array, wanted: NDArray[np.uint64]) -> NDArray[np.float64]:
        """(situations, priors) of situations given by street and key (see `betting_keys`)."""
        out = self.streets[streets].astype(np.float64)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
            known = self.keys[places] == wanted
            out[known] = self.values[places[known]]
        return out

    def of(self, priors: Sequence[int]) -> Strengths:
        """Those of some of the priors."""
        return Strengths(self.streets[:, priors], self.keys, self.values[:, priors])


def betting_keys(rows: Any) -> NDArray[np.uint64]:
    """A number per row that says its street and the betting on it."""
    street = rows["street"].astype(np.int64)
    words = rows["betting_codes"][np.arange(len(rows)), street].astype(np.uint64)
    with np.errstate(over="ignore"):
        return words + street.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def prior_logs(prior: Prior, rows: Any, legal: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(rows, labels) logarithms of a prior's probabilities over the legal labels, none below `LEAST`; 0 elsewhere.

    Where a prior knows nothing it says the same of every legal label.
    """
    chances = prior.predict(rows)
    allowed = (legal[:, None] >> np.arange(chances.shape[1], dtype=np.uint8)) & 1 == 1
    chances = np.where(allowed & (chances > 0), chances, 0.0)
    total = chances.sum(axis=1, keepdims=True)
    unknown = ~((total > 0) & np.isfinite(total))
    chances = np.where(unknown, allowed, chances)
    total = np.where(unknown, allowed.sum(axis=1, keepdims=True), total)
    return np.where(allowed, np.log(np.maximum(chances / np.maximum(total, 1e-300), LEAST)), 0.0)


@dataclass(frozen=True)
class Tilted:
    """Priors, each to the power of its strength, times what the features say."""

    own: LogLinear
    priors: tuple[Prior, ...]
    strengths: Strengths

    @property
    def width(self) -> int:
        """The number of labels."""
        return self.own.width

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """(rows, labels) probabilities, 0 for what is not legal."""
        legal = np.ascontiguousarray(rows["legal"])
        scores = np.log(np.maximum(self.own.predict(rows), 1e-300))
        strengths = self.strengths.at(rows)
        for k, prior in enumerate(self.priors):
            scores += strengths[:, k : k + 1] * prior_logs(prior, rows, legal)
        softmax(scores, legal)
        return scores

    def inside(self, game: Game, streets: Collection[int]) -> Iterator[tuple[Model, list[int]]]:
        """The models it is made of with the streets of each; priors of another game raise `ValueError`."""
        for prior in self.priors:
            if isinstance(prior, AgentPrior):
                yield from prior.inside(game, streets)
            elif isinstance(prior, ModelPrior):
                yield from prior.inside(streets)

    def told(self, row: Any) -> list[tuple[str, NDArray[np.float64]]]:
        """What each prior adds to the scores of one row: strength times logarithms."""
        strengths = self.strengths.at(row)[0]
        return [
            (f"prior {prior.name} x {strength:.2f}", strength * prior_logs(prior, row, row["legal"])[0])
            for prior, strength in zip(self.priors, strengths, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {**self.own.to_json(), "priors": [prior.to_json() for prior in self.priors]}

    def to_arrays(self) -> dict[str, Array]:
        """What the model's file keeps."""
        kept: dict[str, Array] = {
            "strengths of streets": self.strengths.streets,
            "strengths of bettings": self.strengths.values,
            "bettings": self.strengths.keys,
        }
        for k, prior in enumerate(self.priors):
            kept |= {f"prior {k} {name}": array for name, array in prior.to_arrays().items()}
        return self.own.to_arrays() | kept

    @classmethod
    def load(cls, kept: Mapping[str, Any], arrays: Mapping[str, Array]) -> Tilted:
        """The inverse of `to_json` and `to_arrays`; what does not fit raises `ValueError`."""
        _check_depth(kept)
        own = LogLinear.load(kept, arrays)
        count = len(kept["priors"])
        if not 1 <= count <= MOST_PRIORS:
            raise ValueError(f"a model has {count} priors, not 1 to {MOST_PRIORS}")
        keys = expect(arrays, "bettings", np.uint64, (None,))
        expect_ascending(keys, "bettings")
        strengths = Strengths(
            expect(arrays, "strengths of streets", np.float32, (4, count), -MAX_WEIGHT, MAX_WEIGHT),
            keys,
            expect(arrays, "strengths of bettings", np.float32, (len(keys), count), -MAX_WEIGHT, MAX_WEIGHT),
        )
        priors = tuple(
            (AgentPrior if "agent" in one else ModelPrior).load(one, _named(arrays, f"prior {k}"))
            for k, one in enumerate(kept["priors"])
        )
        for prior in priors:
            widths = [model.width for model in prior.models.values()] if isinstance(prior, ModelPrior) else []
            if isinstance(prior, AgentPrior):
                widths = [prior.answers.shape[1]]
            if any(width != own.width for width in widths):
                raise ValueError(f"the prior {prior.name!r} has other labels than its model")
        return cls(own, priors, strengths)


def _are_possible(rows: Array, game: Game) -> bool:
    """Whether all numbers of rows are such as decisions of a game have: agents take them as numbers into tables."""
    cards = np.concatenate([rows["hole"], rows["board"]], axis=1)
    seats, players = ("position", "to_act", "behind"), rows["players"]
    return bool(
        all((rows[name] >= 0).all() for name in ("to_call", "pot", "stack", "effective", "big_blind"))
        and (rows["betting_codes"] >= 0).all()
        and (rows["street"] < game.rounds).all()
        and ((cards < 52) | (cards == NO_CARD)).all()
        and all(((rows[name] < 13) | (rows[name] == NO_CARD)).all() for name in ("high", "low", "ranks"))
        and (rows["start"] <= NO_START).all()
        and (rows["name"] < len(names())).all()
        and ((rows["legal"] >> CALL) & 1 == 1).all()
        and (rows["legal"] < 1 << len(game.labels)).all()
        and (rows["previous"] <= len(game.labels)).all()
        and ((players >= 2) & (players <= MAX_PLAYERS)).all()
        and ((rows["in_hand"] >= 2) & (rows["in_hand"] <= players)).all()
        and all((rows[name] < players).all() for name in seats)
        and ((rows["aggressor"] < players) | (rows["aggressor"] == NOBODY)).all()
    )


def _named(arrays: Mapping[str, Array], start: str) -> dict[str, Array]:
    """The arrays whose names begin so, under the rest of their names."""
    return {name.removeprefix(f"{start} "): array for name, array in arrays.items() if name.startswith(f"{start} ")}


def _short(name: Any) -> str:
    if not isinstance(name, str) or len(name) > 4096:
        raise ValueError("a prior has no name")
    return name


def depth_of(model: Any) -> int:
    """How many priors of priors a model has; 0 for one without a prior."""
    if isinstance(model, Tilted):
        below = [one for prior in model.priors if isinstance(prior, ModelPrior) for one in prior.models.values()]
        return 1 + max((depth_of(one) for one in below), default=0)
    return max((depth_of(part) for part in getattr(model, "parts", ())), default=0)


def _check_depth(kept: Mapping[str, Any]) -> None:
    """Refuse priors of priors of priors without end, those of a blend's parts included."""
    level: list[Any] = [kept]
    for _ in range(DEEPEST + 1):
        models = [model for one in level for prior in one.get("priors", []) for model in prior.get("models", [])]
        level = [part for one in models for part in (one, *(within["model"] for within in one.get("parts", [])))]
        if not level:
            return
    raise ValueError(f"its priors have priors more than {DEEPEST} deep")
