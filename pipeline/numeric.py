"""Hashes of numbers for compiled code: one definition that features, deals and random streams share."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.kernels import kernel

__all__ = ["hash64"]


@kernel(leaf=True)
def hash64(value: Any) -> Any:
    """A 64-bit hash of a 64-bit number (the splitmix64 finaliser)."""
    z = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
