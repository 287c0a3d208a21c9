"""How to train: the one place where every default stands, for the command line and for Python alike.

`TrainConfig` says nothing about what is trained (`requests.Request` does), only how. It is written into each
model's entry of a bundle's manifest, so that a model can be trained again in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pipeline.runtime.errors import PipelineError

PATIENCE = 5


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a training.

    >>> TrainConfig(rho1=0.1).min_weight
    0.02
    """

    rho1: float = 0.5
    """strength of the L1 penalty, unless the pattern sets it"""
    rho2: float = 1e-4
    """strength of the L2 penalty, unless the pattern sets it"""
    iterations: int | None = None
    """at most so many; None: as many as the algorithm usually needs"""
    tolerance: float = 1e-6
    """stop when the objective has fallen by less than this part of itself in ten iterations"""
    patience: int | None = None
    """stop when validation log-loss has not improved for so many iterations, and keep the best; 0: never; None: 5 on
    decision rows, 0 on text rows"""
    min_weight: float = 0.02
    """features whose weights are all smaller are left out of the model; 0: keep all"""
    seed: int = 0
    workers: int = 2
    """threads: they change no result"""
    part_rows: int = 1 << 20
    """rows from which max-ent is trained in parts, of about so many each: what a worker of a cluster has in memory at a
    time; sums over features are those of a fixed tree of parts, whoever computes them"""
    checkpoint_seconds: float = 30.0
    """how often the state of an optimiser is written to disk, for a run that may be killed"""

    def __post_init__(self) -> None:
        for name in ("rho1", "rho2", "tolerance", "min_weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise PipelineError(f"{name} = {getattr(self, name)} is not a number of zero or more")
        if (
            self.workers < 1
            or self.part_rows < 1
            or (self.iterations is not None and self.iterations < 1)
            or (self.patience or 0) < 0
        ):
            raise PipelineError("workers, part_rows and iterations are at least 1, patience at least 0")

    @property
    def stall(self) -> int:
        """Return after how many iterations without improvement to stop; 0: never."""
        return PATIENCE if self.patience is None else self.patience

    def to_json(self) -> dict[str, Any]:
        """Return the settings that decide what is learned, for a manifest."""
        return {name: value for name, value in asdict(self).items() if name not in ("workers", "checkpoint_seconds")}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> TrainConfig:
        """Read what `to_json` wrote; names of earlier versions are understood, unknown ones are left out."""
        renamed = {"threads": "workers", "least": "min_weight"}
        names = {field.name for field in fields(cls)} - {"checkpoint_seconds"}
        renamed_settings = {renamed.get(name, name): value for name, value in settings.items()}
        return cls(**{name: value for name, value in renamed_settings.items() if name in names})
