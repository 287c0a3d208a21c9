"""Writing files so that a killed run leaves either the old one or the new one, and checking what was written."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Progress", "quiet", "replacing", "sha256"]

Progress = Callable[[int, int], None]
"""Called with (done, total) as long work goes on."""


def quiet(done: int, total: int) -> None:
    """Progress that nobody watches."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write a file or folder to; it takes `path`'s place when the block ends well."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield beside
        if beside.is_dir() and path.is_dir():
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            path.rename(old)
            beside.rename(path)
            shutil.rmtree(old)
        else:
            beside.replace(path)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
