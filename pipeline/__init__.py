"""ACPC poker logs in, playable agents out: ingest, train, evaluate, play.

    import pipeline as p

    p.ingest("data/sample", "out/rows")
    p.train("out/rows", "out/teacher", agent="teacher")
    p.evaluate("out/rows", "out/teacher").frame()
    p.match("out/teacher", "@call", hands=20_000)

The public names stand in one list, the stub `__init__.pyi`: type checkers read it, and so does this module. Each name
is imported when it is first used, so that `import pipeline` takes milliseconds and loads neither numpy nor pandas.
`docs/python-api.md` has an example of each.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from pipeline.runtime.version import __version__ as __version__

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \2$", _STUB, re.MULTILINE)}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name, or the module `sklearn`, when it is first used."""
    if name == "sklearn":  # not in `__all__`: `from pipeline import *` must not need scikit-learn
        return importlib.import_module("pipeline.training.sklearn")
    if name not in _HOMES:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "sklearn"])
