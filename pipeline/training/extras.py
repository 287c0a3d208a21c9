"""Packages that only some algorithms need: imported when they are, named with their remedy when they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pipeline.errors import PipelineError

__all__ = ["needed"]


def needed(module: str, algorithm: str) -> Any:
    """A module of a package of the extra `[train]`; a sentence where it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise PipelineError(
            f"{algorithm} needs the package {package}, which is not installed: pip install 'acpc-pipeline[train]'"
        ) from None
