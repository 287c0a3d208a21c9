"""Training against priors: minimum relative entropy to other players' strategies, p ~ product of prior^b x exp(w.f).

In: encoded rows and, for each, the logarithms of the priors' probabilities (`PriorRows`). Out: weights w of the
features and strengths b of the priors, found together by the optimisers of plain max-ent.

Rows about which the priors say the same, after the same betting of their street, are a *cell*. A cell is one more
feature of its rows, whose weights are not free: they are the sum over the priors of b times their logarithms. So the
kernels of `objective` give the slope of each cell's weights, and the chain rule that of b. A strength is
1 / (number of priors) plus a part of the street plus, where it pays, a part of the betting, and never below 0;
both parts are penalised (rho2), so that without evidence a model plays what its priors play.

How strongly w is penalised and whether strengths are fixed, learned per street or per betting is decided by held-out
deals of the training rows, or players where the dataset holds out players (`choose_penalties`): by five-fold
cross-fitting where rows are few, by one fifth of them where there are more, and not at all where the rows decide by
their number.

Priors are bundles or built-in agents that a request names (`open_named_priors`); they must play the game of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import STREETS
from pipeline.features.reading import RatedRows
from pipeline.models.bundle import Bundle, load_bundle
from pipeline.models.policy import check_game
from pipeline.models.prior import (
    DEEPEST,
    AgentPrior,
    ModelPrior,
    Prior,
    Strengths,
    betting_keys,
    depth_of,
    find_agent,
    prior_logs,
)
from pipeline.models.softmax import probabilities
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import hash64
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import Weights, build_corpus
from pipeline.training.inner import LEAST_GROUPS
from pipeline.training.loop import ScoredRows, log_losses, scores
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS

if TYPE_CHECKING:
    from pipeline.training.tasks import Encoded, Examples

STREET_RHO, BETTING_RHO = 10.0, 20.0
"""the penalties of what strengths learn, by street and by betting; chosen on 60 players of few hands"""
FIXED = 1e9
"""the penalty of what is not to move"""
SCALES = (FIXED, 100.0, 30.0, 10.0, 3.0, 1.0)
"""what the pattern's penalties are multiplied by, tried in this order; the first: no features at all"""
FOLDS, FOLDED_ROWS, CHOSEN_ROWS = 5, 5_000, 100_000
"""folds; rows up to which each fold is held out in turn; rows up to which a choice is made"""
TRIAL_STEPS, TOLERANCE = 60, 1e-5
"""iterations of a trial, and the fall of its objective in five of them that ends it"""


class Choice(NamedTuple):
    """Penalties that decide how freely a model may leave its priors."""

    scale: float = 1.0
    """what the pattern's penalties are multiplied by"""
    by: str = "betting"
    """`fixed`, `street` or `betting`: what strengths are learned for"""
    log_loss: float | None = None
    """on held-out deals of the training rows"""


@dataclass(frozen=True)
class PriorRows:
    """Logarithms of the priors' probabilities at some rows, cell by cell."""

    logs: NDArray[np.float64]
    """(cells, priors, labels)"""
    street: NDArray[np.int64]
    """(cells,)"""
    key: NDArray[np.uint64]
    """(cells,) street and its betting, see `betting_keys`"""
    cell: NDArray[np.int32]
    """(rows,) the cell of each row"""

    @property
    def priors(self) -> int:
        return self.logs.shape[1]


def prior_rows(priors: Sequence[Prior], rows: Any, legal: NDArray[np.uint8]) -> PriorRows:
    """Ask the priors about rows."""
    logs = np.stack([prior_logs(prior, rows, legal) for prior in priors], axis=1).astype(np.float32)
    keys = betting_keys(rows)
    facts = np.concatenate([logs.reshape(len(rows), -1).view(np.uint32), keys.view(np.uint32).reshape(-1, 2)], axis=1)
    # a row's facts as one opaque value: equal rows are one cell
    whole = np.ascontiguousarray(facts).view(np.dtype((np.void, facts.shape[1] * 4)))[:, 0]
    _, first, cell = np.unique(whole, return_index=True, return_inverse=True)
    street = rows["street"][first].astype(np.int64)
    return PriorRows(logs[first].astype(np.float64), street, keys[first], cell.reshape(-1).astype(np.int32))


class PriorProblem(Problem):
    """The objective against priors: weights of the features first, in the caller's numbers, then parts of strengths.

    Each part of a strength is the first number of a row of its own, (street or betting, prior) in this order.
    """

    def __init__(
        self,
        inner: Problem,
        offsets: PriorRows,
        *,
        rho1: NDArray[np.float64],
        rho2: NDArray[np.float64],
        choice: Choice,
    ) -> None:
        """`inner` is a problem without penalties whose features are the caller's and, behind them, the cells."""
        features = len(rho1)
        self.inner, self.offsets = inner, offsets
        self.keys, self._betting = np.unique(offsets.key, return_inverse=True)
        count, labels = offsets.priors, inner.labels
        self._features, self._cells = inner.corpus.number[:features], inner.corpus.number[features:]
        parts = (4 + len(self.keys)) * count
        self.shape = features + parts, labels
        self.labels, self.workers = labels, inner.workers
        loose = {"fixed": (FIXED, FIXED), "street": (STREET_RHO, FIXED), "betting": (STREET_RHO, BETTING_RHO)}
        street_rho, betting_rho = loose[choice.by]
        strength_rho = np.repeat([street_rho] * 4 + [betting_rho] * len(self.keys), count)
        self.rho1 = np.concatenate([rho1 * choice.scale, np.zeros(parts)])
        self.rho2 = np.concatenate([rho2 * choice.scale, strength_rho])
        if choice.scale == FIXED:
            self.rho1, self.rho2[:features] = np.zeros(len(self.rho1)), FIXED
        template = np.concatenate([inner.corpus.template[self._features], np.full(parts, -1, np.int32)])
        self.corpus = replace(
            inner.corpus, counts=self._counts(features), number=np.arange(features, dtype=np.int32), template=template
        )
        self._point = np.empty(inner.shape)

    def _counts(self, features: int) -> Weights:
        """Return counts by which an optimiser guesses the objective's curvature: label counts, spreads of priors."""
        counts = np.zeros(self.shape)
        seen = self.inner.corpus.counts
        counts[:features] = seen[self._features]
        spread = seen[self._cells].sum(axis=1)[:, None] * self.offsets.logs.var(axis=2) * 4
        counts[features:, 0] = self._pooled(spread)
        return counts

    def _pooled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum numbers (cells, priors) over the cells of each street, then of each betting."""
        out = np.zeros((4 + len(self.keys), self.offsets.priors))
        for k, column in enumerate(values.T):
            out[:4, k] = np.bincount(self.offsets.street, column, 4)
            out[4:, k] = np.bincount(self._betting, column, len(self.keys))
        return out.reshape(-1)

    def parts(self, weights: Weights) -> NDArray[np.float64]:
        """Return (4 + bettings, priors): what streets and bettings add to the strengths."""
        strength_rows = weights[self.shape[0] - (4 + len(self.keys)) * self.offsets.priors :, 0]
        return strength_rows.reshape(4 + len(self.keys), self.offsets.priors)

    def strengths(self, weights: Weights) -> Strengths:
        """Return the strengths that weights stand for."""
        parts, start = self.parts(weights), 1 / self.offsets.priors
        street = np.zeros(len(self.keys), np.int64)
        street[self._betting] = self.offsets.street
        by_street = np.maximum(0, start + parts[:4]).astype(np.float32)
        by_betting = np.maximum(0, start + parts[street] + parts[4:]).astype(np.float32)
        has_own = (np.abs(parts[4:]) > 1e-6).any(axis=1)
        return Strengths(by_street, self.keys[has_own], by_betting[has_own])

    def played(self, weights: Weights, offsets: PriorRows) -> NDArray[np.float32]:
        """Return the weights of the features and, behind them, of the cells of any rows."""
        feature_weights, strengths = weights[: len(self.corpus.number)], self.strengths(weights)
        values = strengths.for_keys(offsets.street, offsets.key)
        return np.concatenate([feature_weights, np.einsum("ck,ckl->cl", values, offsets.logs)]).astype(np.float32)

    def smooth(self, weights: Weights) -> tuple[float, Weights]:
        """Negative log-likelihood plus the L2 penalty, and its gradient."""
        features, logs = len(self._features), self.offsets.logs
        parts = self.parts(weights)
        strengths = 1 / self.offsets.priors + parts[self.offsets.street] + parts[4 + self._betting]
        self._point[self._features] = weights[:features]
        self._point[self._cells] = np.einsum("ck,ckl->cl", np.maximum(strengths, 0), logs)
        value, slope = self.inner.smooth(self._point)
        gradient = np.zeros(self.shape)
        gradient[:features] = slope[self._features]
        # the chain rule: a cell's weights are strengths times logarithms; strengths at 0 are not pulled
        pull = np.einsum("cl,ckl->ck", slope[self._cells], logs)
        gradient[features:, 0] = self._pooled(np.where(strengths > 0, pull, 0.0))
        shrink = self.rho2[:, None] * weights
        gradient += shrink
        return value + 0.5 * float((shrink * weights).sum()), gradient


@dataclass(frozen=True)
class PriorScoredRows(ScoredRows):
    """Rows to score on; their ids have one more column: the number of their cell behind the features."""

    offsets: PriorRows | None = None

    def score(self, problem: Problem, weights: Weights) -> tuple[float, float]:
        assert isinstance(problem, PriorProblem)
        assert self.offsets is not None
        played = problem.played(weights, self.offsets)
        return scores(probabilities(self.ids, self.legal, played, problem.workers), self.targets)


def with_cells(ids: NDArray[np.int32], offsets: PriorRows, features: int) -> NDArray[np.int32]:
    """Append the rows' cells to feature ids, as one more column."""
    return np.column_stack([ids, features + offsets.cell]).astype(np.int32)


def prior_problem(
    encoded: Encoded,
    offsets: PriorRows,
    rho: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    labels: int,
    workers: Workers,
    choice: Choice,
    chosen: NDArray[np.bool_] | None = None,
) -> PriorProblem:
    """Make the problem of all rows, or of the chosen ones; `rho` are the pattern's penalties of each feature."""
    rows = slice(None) if chosen is None else chosen
    features = len(encoded.keys)
    corpus = build_corpus(
        with_cells(encoded.ids, offsets, features)[rows],
        encoded.targets[rows],
        features=features + len(offsets.logs),
        labels=labels,
        legal=encoded.legal[rows],
        weights=None if encoded.weights is None else encoded.weights[rows],
        workers=workers,
        last=1,
    )
    inner = Problem(corpus, rho1=0.0, rho2=0.0, workers=workers)
    return PriorProblem(inner, offsets, rho1=rho[0], rho2=rho[1], choice=choice)


def choose_penalties(
    encoded: Encoded,
    offsets: PriorRows,
    group: NDArray[Any],
    rho: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    labels: int,
    workers: Workers,
) -> Choice:
    """Choose how freely a model may leave its priors, by held-out groups of its training rows."""
    rows = len(encoded.ids)
    if rows > CHOSEN_ROWS:
        return Choice()
    distinct, inverse = np.unique(group, return_inverse=True)
    if len(distinct) < LEAST_GROUPS:
        return Choice(FIXED, "fixed")
    # folds by a hash of the group: they do not depend on the order of rows
    fold = np.array([int(hash64(np.uint64(number))) for number in distinct], np.uint64) % FOLDS
    fold = fold[inverse.reshape(-1)]
    losses: dict[Choice, float] = {}
    trials = [
        _Trial(encoded, offsets, rho, fold == held_fold, labels, workers)
        for held_fold in range(FOLDS if rows <= FOLDED_ROWS else 1)
        if 0 < (fold == held_fold).sum() < rows and len(np.unique(encoded.targets[fold != held_fold], axis=0)) > 1
    ]
    if not trials:
        return Choice(FIXED, "fixed")

    def tried(scale: float, by: str) -> float:
        losses_of_rows = np.concatenate([trial.losses(Choice(scale, by)) for trial in trials])
        losses[Choice(scale, by)] = float(losses_of_rows.mean())
        return float(losses_of_rows.mean())

    averages: list[float] = []
    for scale in SCALES:
        averages.append(tried(scale, "street"))
        if len(averages) > 2 and averages[-1] > averages[-3]:
            break
    scale = SCALES[int(np.argmin(averages))]
    tried(scale, "betting")
    if scale == FIXED:
        tried(scale, "fixed")
    best = min(losses, key=lambda choice: losses[choice])
    return best._replace(log_loss=losses[best])


class _Trial:
    """Training on the other folds and scoring on the rows of one; each fit starts where the last ended."""

    def __init__(
        self,
        encoded: Encoded,
        offsets: PriorRows,
        rho: tuple[NDArray[np.float64], NDArray[np.float64]],
        held_out: NDArray[np.bool_],
        labels: int,
        workers: Workers,
    ) -> None:
        problem = prior_problem(
            encoded, offsets, rho, labels=labels, workers=workers, choice=Choice(), chosen=~held_out
        )
        self._problem, self._offsets, self._rho = problem, offsets, rho
        self._ids = with_cells(encoded.ids, offsets, len(encoded.keys))[held_out]
        self._legal, self._targets = encoded.legal[held_out], encoded.targets[held_out]
        self._weights = np.zeros(problem.shape)

    def losses(self, choice: Choice) -> NDArray[np.float64]:
        """Return the log-loss of each held-out row."""
        inner = self._problem.inner
        problem = PriorProblem(inner, self._offsets, rho1=self._rho[0], rho2=self._rho[1], choice=choice)
        start = self._weights.copy()
        start[problem.rho2 == FIXED] = 0
        objectives: list[float] = []
        for iterate in OPTIMIZERS["l-bfgs"](problem, {"weights": start}, 0):
            self._weights = iterate.weights
            objectives.append(iterate.objective)
            slow = len(objectives) > 5 and objectives[-6] - objectives[-1] < TOLERANCE * abs(objectives[-1])
            if slow or len(objectives) == TRIAL_STEPS:
                break
        chances = probabilities(self._ids, self._legal, problem.played(self._weights, self._offsets), problem.workers)
        return log_losses(chances, self._targets)


@dataclass(frozen=True)
class OpenPrior:
    """A prior before it is known which streets it is asked about."""

    name: str
    game: Game
    bundle: Bundle | None
    """none for a built-in agent"""

    @property
    def digest(self) -> str:
        """Return a hash of a bundle's models; empty for agents, which the name identifies."""
        return "" if self.bundle is None else ModelPrior(self.name, self.bundle.models).digest

    def on(self, streets: Sequence[int], examples: Examples) -> Prior:
        """Return the prior of some streets; `examples` are the rows that a model will be trained on."""
        if self.bundle is None:
            rows: Any = examples.rows
            return AgentPrior.of(self.name, self.game, rows.rows if isinstance(rows, RatedRows) else rows)
        models = self.bundle.models
        missing = [STREETS[street] for street in streets if street not in models]
        if missing:
            raise PipelineError(f"the prior {self.name} has no model for the {missing[0]}: train one or leave it out")
        return ModelPrior(self.name, {street: models[street] for street in streets})


def open_named_priors(names: Sequence[str], game: Game) -> list[OpenPrior]:
    """Open the priors that a user named, for a game."""
    priors = []
    for name in names:
        if name.startswith(("python:", "exec:")):
            raise PipelineError(f"{name} cannot be a prior: a bundle cannot take somebody's own bot along")
        if name.startswith("@"):
            find_agent(name, game)
            priors.append(OpenPrior(name, game, None))
            continue
        path = Path(name)
        bundle = load_bundle(path)
        if bundle.missing:
            raise PipelineError(bundle.describe_missing(path))
        check_game(bundle, path, game)
        if max(map(depth_of, bundle.models.values()), default=0) >= DEEPEST:
            raise PipelineError(f"the prior {name} has priors of priors, {DEEPEST} deep: name one of those instead")
        priors.append(OpenPrior(name, game, bundle))
    if len({prior.name for prior in priors}) != len(priors):
        raise PipelineError(f"a prior is named twice: {', '.join(names)}")
    return priors


def merge_ranges(own: Mapping[str, Any], priors: Sequence[OpenPrior]) -> dict[str, Any]:
    """Return the games that a bundle of hand histories may play: those of its rows and those that a prior knows."""
    ranges = [
        about["range"]
        for about in (own, *(known_range.bundle.about for known_range in priors if known_range.bundle))
        if "range" in about
    ]
    if not ranges or "range" not in own:
        return dict(own)
    stacks = [known_range["stacks_bb"] for known_range in ranges]
    players = [known_range["players"] for known_range in ranges]
    return {
        "range": {
            "players": [min(low for low, _ in players), max(high for _, high in players)],
            "stacks_bb": None if None in stacks else [min(low for low, _ in stacks), max(high for _, high in stacks)],
        }
    }
