"""Requests to train and their results.

A `Request` goes into `run.train_bundles`, a `Result` per model comes out; a bundle's manifest has an account of each.
A result has remarks for the user: it is worse than counting actions by betting, or another algorithm clearly beat it on
the same validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.features.patterns import Pattern, find_pattern, is_default
from pipeline.models.bundle import StreetModel
from pipeline.training.config import TrainConfig
from pipeline.training.tasks import Trained
from pipeline.training.trainers import ALGORITHMS

NOISE = 0.01
"""nats by which two scores may differ and mean the same"""
BASELINES = ("majority", "frequency")
"""algorithms that are trained to be worse than others"""
SMALL_DATA = 50_000
"""rows of a street under which boosted trees have been closer than max-ent with the default pattern"""


@dataclass(frozen=True)
class Request:
    """A request to train: data, agents, streets, algorithms and settings; paths may be texts.

    >>> Request("out/rows", "out/copy", ("slumbot",), pattern=find_pattern("thesis"))
    <Request: out/rows (slumbot) -> out/copy by default, 8 templates>
    """

    data: Path
    out: Path
    agents: tuple[str, ...] = ()
    """whom to imitate, pooled; none: everyone"""
    streets: tuple[str, ...] = ()
    """names of streets, or `all` for one model of all streets after the flop; none: each of those its own"""
    algorithms: tuple[str, ...] = ("default",)
    """`default`: blend in hold'em, unless a pattern or a prior is named; elsewhere l-bfgs"""
    pattern: Pattern = field(default_factory=lambda: find_pattern("default"))
    game: str | None = None
    """the game's name, where the data holds several"""
    chart: Path | None = None
    """a chart's file, the name of one that comes with the package, or a bundle with one; none: count it"""
    validation_file: Path | None = None
    """text rows to score on"""
    config: TrainConfig = field(default_factory=TrainConfig)
    priors: tuple[str, ...] = ()
    """strategies that the models start from: bundles, or built-in agents by `@name`; `none` alone is none, where the
    default would take one"""
    without: tuple[str, ...] = ()
    """agents to leave out of those to imitate"""

    def __post_init__(self) -> None:
        for name in ("data", "out", "chart", "validation_file"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        priors = tuple(dict.fromkeys(name for name in self.priors if name != "none"))
        object.__setattr__(self, "priors", priors or self.priors[:1])

    def __repr__(self) -> str:
        who = ", ".join(self.agents) or "everyone"
        how = f"by {', '.join(self.algorithms)}, {len(self.pattern.templates)} templates"
        return f"<Request: {self.data} ({who}) -> {self.out} {how}>"


@dataclass(frozen=True)
class Result:
    """One trained model; `path` is its bundle."""

    street: str
    algorithm: str
    agents: tuple[str, ...]
    rows: int
    validation_rows: int
    seconds: float
    path: Path
    trained: Trained
    baseline_log_loss: float | None = None
    """of counting betting alone, on the same validation rows"""
    remarks: tuple[str, ...] = ()
    """warnings for the user"""

    def __repr__(self) -> str:
        trained = self.trained
        scored = "" if trained.log_loss is None else f", log-loss {trained.log_loss:.4f}, error {trained.error:.2%}"
        return f"<Result: {self.street} {self.algorithm}, {self.rows:,} rows{scored}: {self.path}>"

    def to_json(self) -> dict[str, Any]:
        """Return the object that `train --json` prints."""
        return {
            "street": self.street,
            "algorithm": self.algorithm,
            "agents": list(self.agents),
            "rows": self.rows,
            "validation_rows": self.validation_rows,
            **self.trained.to_json(),
            "seconds": round(self.seconds, 3),
            "path": str(self.path),
            "baseline_log_loss": self.baseline_log_loss,
            "remarks": list(self.remarks),
        }

    def account(self, request: Request) -> dict[str, Any]:
        """Return the account of a model's training, for the manifest; `from_account` reads it."""
        facts = self.to_json()
        how = {"parameters": request.config.to_json(), "pattern": request.pattern.source}
        priors = {"priors": facts["priors"]} if request.priors else {}
        return {name: facts[name] for name in ACCOUNT} | how | priors

    @classmethod
    def from_account(cls, part: StreetModel, agents: tuple[str, ...], path: Path) -> Result:
        """Return the result of a model that an earlier run finished, from its account."""
        names = ("algorithm", "rows", "validation_rows", "baseline_log_loss")
        facts: dict[str, Any] = {name: part.about[name] for name in names}
        trained = Trained.from_json(part.model, part.about)
        return cls(street=part.name, agents=agents, seconds=0.0, path=path, trained=trained, **facts)


ACCOUNT = (
    *("algorithm", "rows", "validation_rows", "objective", "active", "error", "log_loss", "best_error"),
    *("best_log_loss", "baseline_log_loss", "parts_log_loss", "exponents", "kept_iteration", "inner_rows", "forests"),
    *("looks_at", "iterations", "interrupted"),
)
"""entries of a model's account in a manifest, in their order"""


def remarks_on(result: Result, request: Request) -> tuple[str, ...]:
    """Return warnings about a result: worse than the baseline, or likely to be beaten by another algorithm."""
    loss, baseline = result.trained.log_loss, result.baseline_log_loss
    sentences = []
    if loss is not None and baseline is not None and loss > baseline + NOISE and result.algorithm not in BASELINES:
        sentences.append(
            f"{result.street} {result.algorithm}: a validation log-loss of {loss:.4f} is worse than the {baseline:.4f}"
            " of counting betting alone; more rows, fewer templates or larger penalties may help: do not play it"
        )
    default = ALGORITHMS[result.algorithm].previous is not None and is_default(request.pattern)
    if default and result.rows < SMALL_DATA and len(request.algorithms) == 1:
        sentences.append(
            f"with under {SMALL_DATA:,} rows a street boosted trees may be closer than {result.algorithm} with the"
            " default pattern, as they are on the bundled sample: compare with `--algorithm boosting`"
        )
    return tuple(sentences)


def add_comparisons(results: Sequence[Result]) -> list[Result]:
    """Add a remark to each result of a street that another algorithm of the request clearly beat."""
    log_losses = {
        result.algorithm: result.trained.log_loss for result in results if result.trained.log_loss is not None
    }
    compared = []
    for result in results:
        others = dict(result.trained.parts_log_loss) | log_losses
        best = min(others, key=others.__getitem__, default=result.algorithm)
        loss = result.trained.log_loss
        if result.algorithm not in BASELINES and loss is not None and others and loss > others[best] + NOISE:
            sentence = (
                f"{result.street} {result.algorithm}: {best} was clearly better on the validation rows, with a log-loss"
                f" of {others[best]:.4f} against {loss:.4f}"
            )
            result = replace(result, remarks=(*result.remarks, sentence))
        compared.append(result)
    return compared
