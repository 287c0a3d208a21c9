"""Requests to train and their results.

A `Request` goes into `run.train_bundles`, a `Result` per model comes out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.features.patterns import Pattern, find_pattern
from pipeline.training.config import TrainConfig
from pipeline.training.tasks import Trained


@dataclass(frozen=True)
class Request:
    """A request to train: data, agents, streets, algorithms and settings; paths may be texts.

    >>> Request("out/rows", "out/copy", ("slumbot",), pattern=find_pattern("thesis"))
    <Request: out/rows (slumbot) -> out/copy by default, 8 templates>
    """

    data: Path
    out: Path
    agents: tuple[str, ...] = ()
    streets: tuple[str, ...] = ()
    """names of streets, or `all` for one model of all streets after the flop; none: each of those its own"""
    algorithms: tuple[str, ...] = ("default",)
    """`default`: blend in hold'em for two and in no-limit, unless a pattern is named; elsewhere l-bfgs"""
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
        trained = self.trained
        return {
            "street": self.street,
            "algorithm": self.algorithm,
            "agents": list(self.agents),
            "rows": self.rows,
            "validation_rows": self.validation_rows,
            "objective": trained.objective,
            "active": trained.active,
            "error": trained.error,
            "log_loss": trained.log_loss,
            "iterations": trained.iterations,
            "seconds": round(self.seconds, 3),
            "path": str(self.path),
            "best_error": trained.best_error,
            "best_log_loss": trained.best_log_loss,
            "interrupted": trained.interrupted,
            "baseline_log_loss": self.baseline_log_loss,
            "remarks": list(self.remarks),
            "priors": list(trained.priors),
            "kept_iteration": trained.kept_iteration,
            "parts_log_loss": dict(trained.parts_log_loss),
            "exponents": dict(trained.exponents),
            "forests": [forest._asdict() for forest in trained.forests],
            "looks_at": dict(trained.looks_at),
        }
