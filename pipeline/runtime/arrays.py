"""Arrays in safetensors and `.npy` files: written in one order, read without copying, checked before anybody uses them.

In: named arrays, or the bytes of a safetensors file. Out: those bytes, or read-only views of them. Compiled code does
not check bounds, so every reader validates each array with `expect` (type, shape, range) before a kernel sees it; a
number that is not finite is out of every range. An array that fails raises `ValueError` with a sentence; the caller,
who knows the file's name, turns that into a `PipelineError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import as_file, files
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8", "I32": "<i4", "U32": "<u4", "U16": "<u2", "U8": "u1"}
MAX_WEIGHT = 1e6
"""no weight of a sound model comes near this size; sums of them stay far from the score of an illegal label"""
MOST_FLOAT = float(np.finfo(np.float64).max)


def parse_json(data: Any) -> Any:
    """Parse a JSON text; a text that is not JSON, or is nested too deeply, raises `ValueError`.

    >>> parse_json(b'{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(bytes(data))
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def whole_number(value: Any, name: str, low: int, high: int) -> int:
    """Return a value of a JSON text if it is a whole number from `low` to `high`; otherwise raise `ValueError`.

    >>> whole_number(3, "layers", 1, 8)
    3
    """
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} is {str(value)[:40]}, not a whole number from {low} to {high}")
    return value


def finite_number(value: Any, name: str) -> float:
    """Return a value of a JSON text if it is a number that a float can hold; otherwise raise `ValueError`.

    >>> finite_number(3, "pot")
    3.0
    """
    if type(value) not in (int, float) or not -MOST_FLOAT <= value <= MOST_FLOAT:
        raise ValueError(f"{name} is {str(value)[:40]}, not a number")
    return float(value)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a safetensors file, names in alphabetical order: the same arrays give the same bytes."""
    from safetensors.numpy import save

    path.write_bytes(save({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}))


def read_arrays(data: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays in a safetensors file's bytes as read-only views; other bytes raise `ValueError`."""
    # the format: the length of the header in eight bytes, the header as JSON, then the arrays
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise ValueError("not a safetensors file")
    header = parse_json(data[8 : 8 + size])
    if not isinstance(header, dict):
        raise ValueError("not a safetensors file")
    arrays, spans = {}, []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            (low, high), shape, kind = entry["data_offsets"], entry["shape"], np.dtype(TYPES[entry["dtype"]])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"the array {name[:40]!r} has no type, shape and place") from None
        if type(low) is not int or type(high) is not int or not isinstance(shape, list):
            raise ValueError(f"the array {name[:40]!r} has no type, shape and place")
        count = prod(whole_number(side, "a side of an array", 0, 1 << 40) for side in shape)
        if not 0 <= low <= high <= len(data) - 8 - size or high - low != count * kind.itemsize:
            raise ValueError(f"the array {name[:40]!r} does not lie within the file")
        view = np.frombuffer(data, kind, count, 8 + size + low).reshape(shape)
        arrays[name] = view if view.flags.aligned else _aligned(view)
        spans.append((low, high, name))
    # bytes that two arrays share could make a small file stand for arrays of any number and size
    filled = sorted(span for span in spans if span[1] > span[0])
    for (_, end, first), (begin, _, second) in pairwise(filled):
        if begin < end:
            raise ValueError(f"the arrays {first[:40]!r} and {second[:40]!r} overlap")
    return arrays


def read_npy(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """Read the array of a `.npy` file, memory-mapped and read-only if `mapped`; another file raises `ValueError`.

    numpy takes the header for Python source, and a damaged one may raise whatever Python's parser does.
    """
    try:
        return np.asarray(np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False))
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path.name} is no array of numbers ({error})") from None


def bundled_arrays(package: str, name: str) -> dict[str, NDArray[Any]]:
    """Read all arrays of `resources/NAME`, an `.npz` file shipped with `package`."""
    with as_file(files(package).joinpath("resources", name)) as path, np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy at an address that suits the type: kernels are compiled for such arrays only."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def expect(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    kind: type[np.generic],
    shape: tuple[int | None, ...],
    low: float | None = None,
    high: float | None = None,
) -> NDArray[Any]:
    """Return the array of a name if it has this type and shape and all of its values are from `low` to `high`.

    Parameters: `shape` has None where any length will do; without `low` and `high` numbers need only be finite.
    Returns the array itself. Raises `ValueError` with a sentence that names the actual and the expected.

    >>> expect({"roots": np.array([0, 3], np.int32)}, "roots", np.int32, (None,), 0, 3).tolist()
    [0, 3]
    """
    if name not in arrays:
        raise ValueError(f"the array {name!r} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        side in (None, length) for side, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.dtype(kind) or not fits:
        wanted = " x ".join("any" if side is None else str(side) for side in shape)
        actual = " x ".join(map(str, array.shape))
        raise ValueError(f"{name!r} is {array.dtype} of {actual}, not {np.dtype(kind)} of {wanted}")
    if array.size and (low is not None or high is not None or array.dtype.kind == "f"):
        limit = float(np.finfo(array.dtype).max) if array.dtype.kind == "f" else np.inf
        least, most = array.min(), array.max()  # of a NaN among them both are NaN, and no comparison holds
        bottom, top = -limit if low is None else low, limit if high is None else high
        if not (bottom <= least and most <= top):
            raise ValueError(f"{name!r} has values from {least} to {most}, outside of {bottom:g} to {top:g}")
    return array


def expect_ascending(array: NDArray[Any], name: str) -> None:
    """Raise `ValueError` unless each value of a one-dimensional array is greater than the one before."""
    if not (array[1:] > array[:-1]).all():
        raise ValueError(f"the values of {name!r} do not ascend")
