"""Third-party packages of the core and of the extras, and a sentence with the remedy where one is missing.

The core is what a shipped bot needs. Everything else is imported inside the function that uses it; the command line
turns the `ModuleNotFoundError` of a missing one into the sentence of `explain_missing`. A core package is missing where
the sources are run by a Python that this package was never installed for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pipeline.runtime.errors import PipelineError

CORE = ("click", "numpy", "numba", "safetensors")
"""the packages that a shipped bot needs"""

EXTRAS = {
    "jinja2": "data",
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
    "dask": "cluster",
    "distributed": "cluster",
    "fsspec": "cluster",
}
"""the extra that installs each package"""


def explain_missing(module: str | None) -> str | None:
    """Return a sentence on how to install a module; None for one that neither the core nor an extra brings.

    >>> explain_missing("pyarrow.parquet")
    "this needs the package pyarrow, which is not installed: pip install 'acpc-pipeline[data]'"
    """
    package = (module or "").split(".")[0]
    if package in CORE:
        remedy = "make setup, then . .venv/bin/activate (or pip install '.[all]')"
    elif package in EXTRAS:
        remedy = f"pip install 'acpc-pipeline[{EXTRAS[package]}]'"
    else:
        return None
    return f"this needs the package {package}, which is not installed: {remedy}"


def import_extra(module: str) -> Any:
    """Import a module of an extra's package; `PipelineError` where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        sentence = explain_missing(error.name)
        if sentence is None:
            raise
        raise PipelineError(sentence) from None
