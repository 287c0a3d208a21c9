"""Kernels as plain Python functions, for a debugger: what `NUMBA_DISABLE_JIT=1` turns `@kernel` into.

Compiled code widens the bytes and words of arrays to 64 bits before it calculates, wraps what is stored, and reads the
fields of a row as attributes; plain numpy does none of this (`1 << np.uint8(12)` is 0). So a kernel's arguments are
passed as `Stepped` views of the same memory, which behave as compiled code does. Arrays that a kernel makes itself are
plain: where it calculates with their elements it says `int(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


class Stepped(np.ndarray[Any, Any]):
    """An array whose elements are read as Python numbers and stored modulo the size of its type."""

    def __getitem__(self, key: Any) -> Any:
        return _read(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, _Row):
            value = value._void
        super().__setitem__(key, _stored(value, self.dtype))


class _Row:
    """A row of a structured array, its fields as attributes."""

    _void: Any

    def __init__(self, void: Any) -> None:
        object.__setattr__(self, "_void", void)

    def __getattr__(self, name: str) -> Any:
        return _read(self._void[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._void[name] = _stored(value, self._void.dtype[name])


def _read(value: Any) -> Any:
    """Return an element as compiled code reads it: a 64-bit number; unsigned ones of 64 bits keep their arithmetic."""
    if isinstance(value, np.void):
        return _Row(value)
    if isinstance(value, np.ndarray):
        return value.view(Stepped)
    if isinstance(value, np.integer) and not isinstance(value, np.uint64):
        return int(value)
    return value


def _stored(value: Any, kind: np.dtype[Any]) -> Any:
    """Wrap a number to the size of an array of whole numbers; return anything else unchanged."""
    if kind.kind not in "iu" or isinstance(value, np.ndarray) or not np.isscalar(value):
        return value
    bits = 8 * kind.itemsize
    wrapped = int(value) & ((1 << bits) - 1)  # type: ignore[arg-type]
    return wrapped - (1 << bits) if kind.kind == "i" and wrapped >> (bits - 1) else wrapped


def _argument(value: Any) -> Any:
    """Return an argument for a stepped function; tuples and named tuples of arrays are converted field by field."""
    if isinstance(value, np.ndarray):
        return value.view(Stepped)
    if isinstance(value, tuple):
        parts = map(_argument, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return _read(value)


def stepped(function: F) -> F:
    """Wrap a function so that its arguments behave as in compiled code."""

    @wraps(function)
    def step(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # 64-bit hashes wrap
            return function(*map(_argument, arguments))

    step.py_func = function  # type: ignore[attr-defined]
    return step  # type: ignore[return-value]
