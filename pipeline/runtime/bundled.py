"""Names of files that come with the package and work in any folder: `sample:`, the logs, and `teacher:`, the bundle.

A name stands wherever a path is read. `sample:` is the folder `resources/sample` of this package and `sample:/x.log` a
file in it. In a clone these folders are links to `data/sample` and `models/teacher`; a wheel holds the files.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from pipeline.runtime.errors import PipelineError

RESOURCES = Path(str(files("pipeline.runtime"))) / "resources"
_NAME = re.compile(r"(\w+):/*(.*)", re.DOTALL)


def locate(path: Path | str) -> Path:
    """Return the path that a name stands for; any other path as it is.

    >>> locate("sample:").name, locate("sample:/teacher.call.1.0.log").name, locate("out/rows").as_posix()
    ('sample', 'teacher.call.1.0.log', 'out/rows')
    """
    match = _NAME.fullmatch(str(path))
    return RESOURCES / match[1] / match[2] if match and (RESOURCES / match[1]).is_dir() else Path(path)


def name_path(path: Path) -> Path:
    """Return a path as people write it: by the name of what comes with the package, where it lies there.

    >>> name_path(locate("sample:teacher.call.1.0.log")).as_posix()
    'sample:/teacher.call.1.0.log'
    """
    if not path.is_relative_to(RESOURCES) or path == RESOURCES:
        return path
    name, *rest = path.relative_to(RESOURCES).parts
    return Path(f"{name}:", *rest)


def check_writable(path: Path) -> None:
    """Refuse to write among the files that come with the package."""
    if path.is_relative_to(RESOURCES):
        raise PipelineError(f"{name_path(path)} comes with the package and is only read: write somewhere else")
