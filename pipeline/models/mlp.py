"""A small neural net that plays: dense layers with rectified units, in numpy.

Rows go in, probabilities of the labels come out. The inputs are the columns of `matrix`: one with few different values
in training becomes an indicator per value, any other is centred and scaled. `training.mlp_train` finds the weights;
playing needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import Column
from pipeline.models.matrix import from_json, matrix, to_json
from pipeline.models.softmax import softmax
from pipeline.runtime.arrays import LARGEST, expect, whole

VALUES = 1e11
"""no column that a net reads has larger values, nor is further from its centre"""


@dataclass(frozen=True)
class Net:
    """Probabilities by a softmax over the last layer."""

    columns: tuple[Column, ...]
    source: NDArray[np.int32]
    """the column each input comes from"""
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    """0 for an indicator of the value `centre`"""
    weights: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]

    @property
    def width(self) -> int:
        """The number of labels."""
        return len(self.biases[-1])

    def inputs(self, rows: Any) -> NDArray[np.float32]:
        """(rows, inputs)."""
        values = matrix(rows, self.columns)[:, self.source]
        indicator = self.scale == 0
        scaled = (values - self.centre) * self.scale
        return np.where(indicator, (values == self.centre).astype(np.float32), scaled)

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """(rows, labels) probabilities, 0 for what is not legal."""
        out = np.empty((len(rows), len(self.biases[-1])))
        for low in range(0, len(rows), 1 << 16):
            part = slice(low, low + (1 << 16))
            layer = self.inputs(rows[part])
            for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                layer = np.maximum(layer @ weights + bias, 0)
            out[part] = layer @ self.weights[-1] + self.biases[-1]
        softmax(out, rows["legal"])
        return out

    def to_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {"columns": to_json(self.columns), "layers": len(self.weights)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What the model's file keeps."""
        layers = {f"weights {at}": array for at, array in enumerate(self.weights)}
        layers |= {f"bias {at}": array for at, array in enumerate(self.biases)}
        return {"source": self.source, "centre": self.centre, "scale": self.scale, **layers}

    @classmethod
    def load(cls, kept: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Net:
        """The inverse of `to_json` and `to_arrays`; layers that do not follow from each other raise `ValueError`."""
        columns = from_json(kept["columns"])
        source = expect(arrays, "source", np.int32, (None,), 0, len(columns) - 1)
        centre = expect(arrays, "centre", np.float32, (len(source),), -VALUES, VALUES)
        scale = expect(arrays, "scale", np.float32, (len(source),), -LARGEST, LARGEST)
        weights, biases = [], []
        width: int = len(source)
        reach = max(1.0, VALUES * float(np.abs(scale).max(initial=0.0)))
        for at in range(whole(kept["layers"], "layers", 1, 32)):
            layer = expect(arrays, f"weights {at}", np.float32, (width, None), -LARGEST, LARGEST)
            bias = expect(arrays, f"bias {at}", np.float32, (layer.shape[1],), -LARGEST, LARGEST)
            reach = reach * float(np.abs(layer).sum(axis=0).max(initial=0.0)) + LARGEST
            width = layer.shape[1]
            weights.append(layer)
            biases.append(bias)
        if not reach < float(np.finfo(np.float32).max):
            raise ValueError("the net's weights are so large that its outputs would not be finite")
        return cls(columns, source, centre, scale, tuple(weights), tuple(biases))
