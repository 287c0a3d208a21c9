"""Third-party packages of the core and of the extras, and a sentence with the remedy where one is missing.

The core is what a shipped bot needs. Everything else is imported inside the function that uses it; the command line
turns the `ModuleNotFoundError` of a missing one into the sentence of `explain_missing`. A core package is missing where
the sources are run by a Python that this package was never installed for.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

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
    "matplotlib": "plot",
    "dask": "cluster",
    "distributed": "cluster",
    "fsspec": "cluster",
}
"""the extra that installs each package"""


def install_command(extra: str, package: Distribution | None = None) -> str:
    """Return the command that installs an extra from where this package came from, as no index of packages has it.

    That is the folder, file or repository that pip noted at the installation, else the address of the repository that
    a released wheel names; where neither is known, the folder of the sources.
    """
    try:
        package = package or distribution("acpc-pipeline")
        origin = json.loads(package.read_text("direct_url.json") or "{}")
        addresses = [text.partition(", ")[2] for text in package.metadata.get_all("Project-URL", [])]
    except (PackageNotFoundError, ValueError):
        origin, addresses = {}, []
    url = origin.get("url", "")
    path = Path(unquote(urlsplit(url).path))
    if url.startswith("file:") and path.exists():
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}'{path}[{extra}]'"
    repository = url if "vcs_info" in origin else next(iter(addresses), "")
    if repository:
        return f"pip install 'acpc-pipeline[{extra}] @ git+{repository}'"
    return f"pip install '.[{extra}]' in the folder of the sources"


def explain_missing(module: str | None) -> str | None:
    """Return a sentence on how to install a module; None for one that neither the core nor an extra brings.

    >>> explain_missing("pyarrow.parquet")
    "this needs the package pyarrow, which is not installed: pip install ...[data]..."
    """
    package = (module or "").split(".")[0]
    if package in CORE:
        remedy = "make setup, then . .venv/bin/activate (or pip install '.[all]')"
    elif package in EXTRAS:
        remedy = install_command(EXTRAS[package])
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
