"""A log-linear model against priors: p ~ product of prior^b x exp(w.f), over the legal labels.

A prior is the strategy of another player: a bundle's (a population of players, say) or a built-in agent's (a solved
strategy). The model has the weights w of its own features and a strength b per prior, street and betting, so that it
plays as the priors do wherever its own rows were silent. Of a bundle the models themselves are stored, as a copy; of a
built-in agent its name, some rows and its answers to them: an agent that answers otherwise today is refused.

Agents are a higher room than models, so they register how they are found (`offer_agents`) instead of being imported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import NO_AGGRESSOR, NO_START, OBSERVATION
from pipeline.features.reading import RatedRows
from pipeline.models.kinds import Model, add_prefix, kind_of, load_model, remove_prefix
from pipeline.models.loglinear import LogLinear
from pipeline.models.softmax import softmax
from pipeline.poker.cards import NO_CARD, hand_names
from pipeline.poker.game import Game, parse_game
from pipeline.poker.rules import CALL, MAX_PLAYERS
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import MAX_WEIGHT, expect, expect_ascending, whole_number
from pipeline.runtime.errors import PipelineError

LEAST_CHANCE = 0.001
"""lower probabilities of a prior on legal labels count as this"""
PIECE = 1 << 16
"""rows passed to a prior at once"""
MOST_PRIORS, DEEPEST = 16, 4
"""priors of a model; priors of priors"""
PROBES = 32
"""rows whose answers by an agent are stored"""
TOLERANCE = 1e-6
"""difference between two answers to the same row up to which they count as the same"""
_resolver: list[Callable[[str, Game], Any]] = []


def offer_agents(resolve: Callable[[str, Game], Any]) -> None:
    """Register how an agent is found by its name and game; `pipeline.agents.names` does when it is imported."""
    _resolver[:] = [resolve]


def find_agent(text: str, game: Game) -> Any:
    """Return a built-in agent by its name."""
    if not _resolver:
        import_module("pipeline.agents.names")  # it registers its resolver
    return _resolver[0](text, game)


class Prior(Protocol):
    """Probabilities of another player that a model starts from."""

    @property
    def name(self) -> str:
        """Name that the user gave it."""

    @property
    def digest(self) -> str:
        """Hash of its contents."""

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """Return probabilities (rows, labels), 0 for illegal labels and unknown rows."""

    def to_json(self) -> dict[str, Any]:
        """Return its entry in a manifest."""

    def to_arrays(self) -> dict[str, Array]:
        """Return its arrays in a model's file."""


@dataclass(frozen=True)
class ModelPrior:
    """Models of another bundle, by the number of the street."""

    name: str
    models: Mapping[int, Model] = field(repr=False)

    @cached_property
    def _distinct(self) -> list[tuple[Model, list[int]]]:
        """Each model once, with its streets."""
        distinct: dict[int, tuple[Model, list[int]]] = {}
        for street in sorted(self.models):
            distinct.setdefault(id(self.models[street]), (self.models[street], []))[1].append(street)
        return list(distinct.values())

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        for name, array in sorted(self.to_arrays().items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]

    def predict(self, rows: Any) -> NDArray[np.float64]:
        streets = rows["street"]
        first = int(streets[0]) if len(rows) else next(iter(self.models))
        if (streets == first).all():
            return self.models[first].predict(rows)
        out = np.zeros((len(rows), next(iter(self.models.values())).width))
        for street, model in self.models.items():
            chosen = np.flatnonzero(streets == street)
            if len(chosen):
                out[chosen] = model.predict(rows[chosen])
        return out

    def submodels(self, streets: Collection[int]) -> Iterator[tuple[Model, list[int]]]:
        """Yield the models with the streets of each; a street without a model raises `ValueError`."""
        if not self.models.keys() >= set(streets):
            raise ValueError(f"the prior {self.name[:40]!r} has no model for a street that is asked of it")
        yield from self._distinct

    def to_json(self) -> dict[str, Any]:
        models = [{"kind": kind_of(model), "streets": streets, **model.to_json()} for model, streets in self._distinct]
        return {"name": self.name, "hash": self.digest, "models": models}

    def to_arrays(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        for index, (model, _) in enumerate(self._distinct):
            arrays |= add_prefix(index, model.to_arrays())
        return arrays

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, Array]) -> ModelPrior:
        models: dict[int, Model] = {}
        for index, part in enumerate(entry["models"]):
            model = load_model(part["kind"], part, remove_prefix(index, arrays))
            models |= {whole_number(street, "a prior's street", 0, 3): model for street in part["streets"]}
        return cls(_checked_name(entry["name"]), models)


@dataclass(frozen=True)
class AgentPrior:
    """A built-in agent; `rows` and `answers` are some of its answers when the model was trained."""

    name: str
    game: Game
    rows: Array = field(repr=False)
    """(probes,) OBSERVATION"""
    answers: Array = field(repr=False)
    """(probes, labels) float32"""

    @classmethod
    def of(cls, name: str, game: Game, rows: Array) -> AgentPrior:
        """Make the prior of an agent, with its answers to some of the rows that a model is trained on."""
        probes = np.ascontiguousarray(rows[:: max(1, len(rows) // PROBES)][:PROBES])
        return cls(name, game, probes, find_agent(name, game).probabilities(probes).astype(np.float32))

    @property
    def width(self) -> int:
        return int(self.answers.shape[1])

    def submodels(self, game: Game, streets: Collection[int]) -> Iterator[tuple[Model, list[int]]]:
        """Return no submodels; an agent of another game raises `ValueError`."""
        if not np.array_equal(self.game.rules, game.rules):
            raise ValueError(f"the prior {self.name[:40]!r} is for another game")
        return iter(())

    @cached_property
    def agent(self) -> Any:
        """The agent, once it has answered the stored rows as it did before."""
        agent = find_agent(self.name, self.game)
        if len(self.rows) and np.abs(agent.probabilities(self.rows) - self.answers).max() > TOLERANCE:
            raise PipelineError(
                f"{self.name} answers otherwise than when this bundle was trained on it: train it again"
            )
        return agent

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
        records = np.zeros(len(self.rows), OBSERVATION)  # the bytes between fields are zeros, not what memory held
        for name in OBSERVATION.names or ():
            records[name] = self.rows[name]
        return {"rows": records.view(np.uint8).reshape(len(records), OBSERVATION.itemsize), "answers": self.answers}

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, Array]) -> AgentPrior:
        name, game = _checked_name(entry["name"]), parse_game(str(entry["agent"]["text"]), str(entry["agent"]["name"]))
        if not name.startswith("@"):
            raise ValueError(f"the prior {name!r} is no built-in agent")
        answers = expect(arrays, "answers", np.float32, (None, None), 0, 1)
        if entry["row"] != str(OBSERVATION.descr):  # rows of another version cannot be compared
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
    """Exponent of each prior: by street, and for bettings that have one of their own."""

    streets: NDArray[np.float32]
    """(4, priors)"""
    keys: NDArray[np.uint64]
    """(bettings,) ascending, see `betting_keys`"""
    values: NDArray[np.float32]
    """(bettings, priors)"""

    def for_rows(self, rows: Any) -> NDArray[np.float64]:
        """Return exponents (rows, priors)."""
        return self.for_keys(rows["street"], betting_keys(rows) if len(self.keys) else np.empty(0, np.uint64))

    def for_keys(self, streets: Array, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return exponents (situations, priors) of situations given by street and key (see `betting_keys`)."""
        out = self.streets[streets].astype(np.float64)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            own = self.keys[places] == keys
            out[own] = self.values[places[own]]
        return out

    def select(self, priors: Sequence[int]) -> Strengths:
        """Return the strengths of some of the priors."""
        return Strengths(self.streets[:, priors], self.keys, self.values[:, priors])


def betting_keys(rows: Any) -> NDArray[np.uint64]:
    """Return a number per row that stands for its street and the betting on it."""
    street = rows["street"].astype(np.int64)
    words = rows["betting_codes"][np.arange(len(rows)), street].astype(np.uint64)
    with np.errstate(over="ignore"):
        return words + street.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def prior_logs(prior: Prior, rows: Any, legal: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return logarithms (rows, labels) of a prior's probabilities, none below `LEAST_CHANCE`; 0 for illegal labels.

    Where a prior knows nothing it is uniform over the legal labels.
    """
    chances = prior.predict(rows)
    allowed = (legal[:, None] >> np.arange(chances.shape[1], dtype=np.uint8)) & 1 == 1
    chances = np.where(allowed & (chances > 0), chances, 0.0)
    total = chances.sum(axis=1, keepdims=True)
    unknown = ~((total > 0) & np.isfinite(total))
    chances = np.where(unknown, allowed, chances)
    total = np.where(unknown, allowed.sum(axis=1, keepdims=True), total)
    return np.where(allowed, np.log(np.maximum(chances / np.maximum(total, 1e-300), LEAST_CHANCE)), 0.0)


@dataclass(frozen=True)
class PriorTimesFeatures:
    """Priors, each to the power of its strength, times a log-linear model of the features."""

    own: LogLinear
    priors: tuple[Prior, ...]
    strengths: Strengths

    @property
    def width(self) -> int:
        return self.own.width

    def predict(self, rows: Any) -> NDArray[np.float64]:
        legal = np.ascontiguousarray(rows["legal"])
        scores = np.log(np.maximum(self.own.predict(rows), 1e-300))
        strengths = self.strengths.for_rows(rows)
        for k, prior in enumerate(self.priors):
            scores += strengths[:, k : k + 1] * prior_logs(prior, rows, legal)
        softmax(scores, legal)
        return scores

    def submodels(self, game: Game, streets: Collection[int]) -> Iterator[tuple[Model, list[int]]]:
        """Yield the models of its priors with the streets of each; priors of another game raise `ValueError`."""
        for prior in self.priors:
            if isinstance(prior, AgentPrior):
                yield from prior.submodels(game, streets)
            elif isinstance(prior, ModelPrior):
                yield from prior.submodels(streets)

    def prior_scores(self, row: Any) -> list[tuple[str, NDArray[np.float64]]]:
        """Return the addend of each prior to the scores of one row: strength times logarithms."""
        strengths = self.strengths.for_rows(row)[0]
        return [
            (f"prior {prior.name} x {strength:.2f}", strength * prior_logs(prior, row, row["legal"])[0])
            for prior, strength in zip(self.priors, strengths, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        return {**self.own.to_json(), "priors": [prior.to_json() for prior in self.priors]}

    def to_arrays(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {
            "strengths of streets": self.strengths.streets,
            "strengths of bettings": self.strengths.values,
            "bettings": self.strengths.keys,
        }
        for k, prior in enumerate(self.priors):
            arrays |= add_prefix(f"prior {k}", prior.to_arrays())
        return self.own.to_arrays() | arrays

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, Array]) -> PriorTimesFeatures:
        _check_depth(entry)
        own = LogLinear.load(entry, arrays)
        count = len(entry["priors"])
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
            (AgentPrior if "agent" in part else ModelPrior).load(part, remove_prefix(f"prior {k}", arrays))
            for k, part in enumerate(entry["priors"])
        )
        for prior in priors:
            widths = [model.width for model in prior.models.values()] if isinstance(prior, ModelPrior) else []
            if isinstance(prior, AgentPrior):
                widths = [prior.answers.shape[1]]
            if any(width != own.width for width in widths):
                raise ValueError(f"the prior {prior.name!r} has other labels than its model")
        return cls(own, priors, strengths)


def _are_possible(rows: Array, game: Game) -> bool:
    """Return whether all fields of rows are in the range of a game's decisions: agents index tables by them."""
    cards = np.concatenate([rows["hole"], rows["board"]], axis=1)
    seats, players = ("position", "to_act", "behind"), rows["players"]
    return bool(
        all((rows[name] >= 0).all() for name in ("to_call", "pot", "stack", "effective", "big_blind"))
        and (rows["betting_codes"] >= 0).all()
        and (rows["street"] < game.rounds).all()
        and ((cards < 52) | (cards == NO_CARD)).all()
        and all(((rows[name] < 13) | (rows[name] == NO_CARD)).all() for name in ("high", "low", "ranks"))
        and (rows["start"] <= NO_START).all()
        and (rows["name"] < len(hand_names())).all()
        and ((rows["legal"] >> CALL) & 1 == 1).all()
        and (rows["legal"] < 1 << len(game.labels)).all()
        and (rows["previous"] <= len(game.labels)).all()
        and ((players >= 2) & (players <= MAX_PLAYERS)).all()
        and ((rows["in_hand"] >= 2) & (rows["in_hand"] <= players)).all()
        and all((rows[name] < players).all() for name in seats)
        and ((rows["aggressor"] < players) | (rows["aggressor"] == NO_AGGRESSOR)).all()
    )


def _checked_name(name: Any) -> str:
    """Return a prior's name if it is a text of a sensible length; otherwise raise `ValueError`."""
    if not isinstance(name, str) or len(name) > 4096:
        raise ValueError("a prior has no name")
    return name


def depth_of(model: Any) -> int:
    """Return how deep priors of priors go in a model; 0 for one without a prior."""
    if isinstance(model, PriorTimesFeatures):
        below = [inner for prior in model.priors if isinstance(prior, ModelPrior) for inner in prior.models.values()]
        return 1 + max((depth_of(inner) for inner in below), default=0)
    return max((depth_of(part) for part in getattr(model, "parts", ())), default=0)


def _check_depth(entry: Mapping[str, Any]) -> None:
    """Refuse priors nested more than `DEEPEST` deep, those of a blend's parts included."""
    level: list[Any] = [entry]
    for _ in range(DEEPEST + 1):
        models = [model for item in level for prior in item.get("priors", []) for model in prior.get("models", [])]
        level = [part for model in models for part in (model, *(inner["model"] for inner in model.get("parts", [])))]
        if not level:
            return
    raise ValueError(f"its priors have priors more than {DEEPEST} deep")


def fired_features(model: Model, row: Any, nolimit: bool = False) -> list[tuple[str, list[float] | None]]:
    """Return the features that one row fires in a model, each with a weight per label; None for one never trained.

    Priors come last, with their addends to the scores; models that are not log-linear have no features of their own.
    """
    fired: list[tuple[str, list[float] | None]] = []
    own = model.own if isinstance(model, PriorTimesFeatures) else model
    if isinstance(own, LogLinear):
        ids = own.vocabulary.find(own.features.hashes(row))[0]
        for text, feature in zip(own.features.describe(row, nolimit), ids, strict=True):
            if text:
                fired.append((text, own.weights[feature].tolist() if feature >= 0 else None))
    if isinstance(model, PriorTimesFeatures):
        fired += [(text, logs.tolist()) for text, logs in model.prior_scores(row)]
    return fired
