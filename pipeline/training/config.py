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
LENGTHS = ("max_iterations", "rounds", "passes")
"""settings of how long is trained"""
ALGORITHM_SETTINGS = (*LENGTHS, "rho1", "rho2", "tolerance", "patience", "min_weight")
"""settings that not every algorithm reads; `trainers.ALGORITHMS` says which of them an algorithm does"""
ITERATIONS_MEANT = {"boosting": ("rounds",), "classes": ("passes",), "blend": LENGTHS, "majority": (), "frequency": ()}
"""what `iterations` in the parameters of bundles of earlier versions meant, where it was not `max_iterations`"""


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
    max_iterations: int | None = None
    """iterations of an optimiser at most; None: 1000 of l-bfgs and rprop, 100 of bcd, 50 of sgd-l1 (each is a pass
    over the rows), 200 of crf and logistic"""
    rounds: int | None = None
    """trees of each label at most, of boosting; None: 600, or 200 where rows of limit hold'em for two are many"""
    passes: int | None = None
    """passes over the rows, of classes; None: 8"""
    tolerance: float = 1e-6
    """stop when the objective has fallen by less than this part of itself in ten iterations"""
    patience: int | None = None
    """iterations without a better log-loss on the inner rows after which to stop; the model is then trained on all rows
    for the best number of iterations (see `inner`); 0: never stop so, and leave no row out; None: 5 on decision rows, 0
    on text rows"""
    min_weight: float = 0.02
    """features whose weights are all smaller are left out of the model; 0: keep all"""
    seed: int = 0
    workers: int = 2
    """threads: they change no result"""
    part_rows: int = 1 << 20
    """rows from which max-ent is trained in parts, and about the rows of a part: what a worker of a cluster has in
    memory at a time; sums over features follow a fixed tree of parts, so that they do not depend on the workers"""
    checkpoint_seconds: float = 30.0
    """how often the state of an optimiser is written to disk, for a run that may be killed"""

    def __post_init__(self) -> None:
        for name in ("rho1", "rho2", "tolerance", "min_weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise PipelineError(f"{name} = {getattr(self, name)} is not a number of zero or more")
        for name, least in {**dict.fromkeys(("workers", "part_rows", *LENGTHS), 1), "patience": 0}.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__") or value < least):
                raise PipelineError(f"{name} = {value!r} is not a whole number of {least} or more")

    @property
    def stall(self) -> int:
        """Return after how many iterations without improvement to stop; 0: never."""
        return PATIENCE if self.patience is None else self.patience

    def to_json(self) -> dict[str, Any]:
        """Return the settings that decide what is learned, for a manifest."""
        return {name: value for name, value in asdict(self).items() if name not in ("workers", "checkpoint_seconds")}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any], algorithm: str = "") -> TrainConfig:
        """Read what `to_json` wrote; names of earlier versions are understood, unknown ones are left out.

        `algorithm` is the one that was trained: `iterations` of earlier versions meant another thing to each.

        >>> TrainConfig.from_json({"iterations": 40}, "boosting").rounds
        40
        """
        renamed = {"threads": "workers", "least": "min_weight"}
        lengths: dict[str, Any] = dict.fromkeys(
            ITERATIONS_MEANT.get(algorithm, ("max_iterations",)), settings.get("iterations")
        )
        settings = lengths | dict(settings)
        names = {field.name for field in fields(cls)} - {"checkpoint_seconds"}
        renamed_settings = {renamed.get(name, name): value for name, value in settings.items()}
        return cls(**{name: value for name, value in renamed_settings.items() if name in names})
