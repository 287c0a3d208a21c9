"""Packages beyond the core install: which extra brings each, and a sentence with the remedy where one is missing.

The core (click, numpy, numba, safetensors) is what a shipped bot needs. Everything else is imported inside the function
that uses it; the command line turns the `ModuleNotFoundError` of a missing one into `explanation`'s sentence.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pipeline.errors import PipelineError

__all__ = ["EXTRAS", "explanation", "needed"]

EXTRAS = {
    "pandas": "data",
    "pyarrow": "data",
    "lightgbm": "train",
    "pycrfsuite": "train",
    "scipy": "train",
    "sklearn": "train",
    "duckdb": "query",
    "starlette": "web",
    "uvicorn": "web",
    "pokerkit": "histories",
}
"""the extra that installs each package"""


def explanation(module: str | None) -> str | None:
    """What to say when a module cannot be found; None for one that no extra brings.

    >>> explanation("pyarrow.parquet")
    "this needs the package pyarrow, which is not installed: pip install 'acpc-pipeline[data]'"
    """
    package = (module or "").split(".")[0]
    if package not in EXTRAS:
        return None
    return f"this needs the package {package}, which is not installed: pip install 'acpc-pipeline[{EXTRAS[package]}]'"


def needed(module: str) -> Any:
    """A module of an extra's package; `PipelineError` where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        said = explanation(error.name)
        if said is None:
            raise
        raise PipelineError(said) from None
