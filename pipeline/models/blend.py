"""Several models as one: the product of their probabilities, each to a power of its own, over the legal labels.

With p_i the parts' probabilities and b_i their exponents, p_j is proportional to the product of p_i,j ** b_i: a
log-linear pool (Genest and Zidek 1986), whose exponents are fitted by `training.blend`. A part that knows one thing
well, such as a pattern with whole lines of betting, thus corrects another that generalises better, such as trees.

Where `lines` are known, exponents depend on how often the source was seen in the same line of betting: what was
learned for single lines counts for more in a common one, what is shared between lines in a rare one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.classes import Classes, number_contexts, read_hands
from pipeline.models.kinds import KINDS, add_prefix, kind_of, load_model, remove_prefix
from pipeline.models.softmax import softmax
from pipeline.poker.game import Game
from pipeline.runtime.arrays import expect, expect_ascending

LEAST_CHANCE = 1e-6
"""probabilities count as at least this: a part may doubt a label, but not forbid it"""
MOST_PARTS = 8
RAREST = 3.0
"""no line counts as rarer or more common than this"""


def floor_logs(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return logarithms of probabilities, none below that of `LEAST_CHANCE`."""
    return np.log(np.maximum(chances, LEAST_CHANCE))


@dataclass(frozen=True)
class LineFrequencies:
    """Frequency of each line of betting among the source's rows."""

    keys: NDArray[np.uint64]
    """hashes, ascending"""
    often: NDArray[np.float32]
    """the logarithm of 1 + the number of rows"""
    centre: float
    scale: float

    @classmethod
    def of(cls, rows: Any) -> LineFrequencies:
        """Count the lines of some rows."""
        keys, counts = np.unique(_betting(rows), return_counts=True)
        often = np.log1p(counts)
        centre = float(np.average(often, weights=counts))
        spread = float(np.sqrt(np.average((often - centre) ** 2, weights=counts)))
        return cls(keys, often.astype(np.float32), centre, max(spread, 0.1))

    def frequency(self, rows: Any) -> NDArray[np.float64]:
        """Return how common the line of each row (rows,) is, about -2 for rare ones to 1 for common ones."""
        index = number_contexts(self.keys, _betting(rows)[:, None])[:, 0]
        often = np.append(self.often, np.float32(0))[index]  # -1, a line that was never seen, is the last
        return np.clip((often - self.centre) / self.scale, -RAREST, RAREST)


def _betting(rows: Any) -> NDArray[np.uint64]:
    """Return hashes of the lines of betting of rows."""
    return read_hands(rows, (), ((Column("betting"),),)).contexts[:, 0]


@dataclass(frozen=True)
class Blend:
    """Product of other models' probabilities, each to a power."""

    parts: tuple[Any, ...]
    """models with the same labels"""
    exponents: NDArray[np.float64]
    lines: LineFrequencies | None = None
    slopes: NDArray[np.float64] | None = None
    """addend to the exponents for each unit of a line's frequency"""

    @property
    def width(self) -> int:
        return int(self.parts[0].width)

    def predict(self, rows: Any) -> NDArray[np.float64]:
        out = np.zeros((len(rows), self.width))
        powers = np.broadcast_to(self.exponents, (len(rows), len(self.parts)))
        if self.lines is not None and self.slopes is not None:
            powers = np.maximum(powers + np.outer(self.lines.frequency(rows), self.slopes), 0.0)
        for part, power in zip(self.parts, powers.T, strict=True):
            if power.any():  # else the part's answer would not count
                out += power[:, None] * floor_logs(part.predict(rows))
        softmax(out, rows["legal"])
        return out

    def submodels(self, _: Game, streets: Collection[int]) -> Iterator[tuple[Any, list[int]]]:
        """Return the parts with their streets."""
        return ((part, list(streets)) for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return the model's entry in the manifest: kind and entry of each part."""
        return {"parts": [{"kind": kind_of(part), "model": part.to_json()} for part in self.parts]}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the model's file: the parts' arrays under their number."""
        arrays: dict[str, NDArray[Any]] = {}
        for index, part in enumerate(self.parts):
            arrays |= add_prefix(index, part.to_arrays())
        arrays |= {"exponents": self.exponents}
        if self.lines is not None and self.slopes is not None:
            scale = np.array([self.lines.centre, self.lines.scale])
            arrays |= {"slopes": self.slopes, "lines": self.lines.keys, "often": self.lines.often, "frequency": scale}
        return arrays

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Blend:
        entries = entry["parts"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= MOST_PARTS:
            raise ValueError(f"a blend has 1 to {MOST_PARTS} parts")
        parts = []
        for index, part in enumerate(entries):
            if part["kind"] not in KINDS or part["kind"] in ("blend", "chart"):
                raise ValueError(f"{part['kind']!r} is no kind of model that a blend has")
            parts.append(load_model(part["kind"], part["model"], remove_prefix(index, arrays)))
        if len({part.width for part in parts}) != 1:
            raise ValueError("the parts of a blend have different labels")
        exponents = expect(arrays, "exponents", np.float64, (len(parts),), -100.0, 100.0)
        if "slopes" not in arrays:
            return cls(tuple(parts), exponents)
        keys = expect(arrays, "lines", np.uint64, (None,))
        expect_ascending(keys, "lines")
        often = expect(arrays, "often", np.float32, (len(keys),), 0.0, 100.0)
        centre, scale = expect(arrays, "frequency", np.float64, (2,), 1e-3, 100.0).tolist()
        slopes = expect(arrays, "slopes", np.float64, (len(parts),), -100.0, 100.0)
        return cls(tuple(parts), exponents, LineFrequencies(keys, often, centre, scale), slopes)


def learned_classes(model: Any) -> Classes | None:
    """Return the learned classes of hands in a model, or in a part of it; None where there are none."""
    parts = model.parts if isinstance(model, Blend) else (model,)
    return next((part for part in parts if isinstance(part, Classes)), None)
