"""Large arrays kept on disk and opened memory-mapped: checked against damage and age, made by one process at a time.

Beside `x.npy` lies `x.json` with a version, the file's SHA-256 and its size and time at the last comparison; the
checksum is compared again when these change, so that opening takes milliseconds. A damaged or old array is treated
as missing: whoever needs it makes it again.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.files import replacing, sha256

__all__ = ["keep", "locked", "open_kept"]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One builder at a time in a folder; the others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(path: Path, array: npt.NDArray[Any], version: int) -> None:
    """Write an array and its note."""
    with replacing(path) as beside, beside.open("wb") as file:
        np.save(file, array, allow_pickle=False)
    _write_note(path, sha256(path), version)


def open_kept(path: Path, version: int) -> npt.NDArray[Any] | None:
    """The array, memory-mapped and read-only; None if there is none, or it is of another version or damaged."""
    try:
        note = json.loads(path.with_suffix(".json").read_text())
        if note["version"] != version:
            return None
        if note["stamp"] != _stamp(path):
            if note["sha256"] != sha256(path):
                return None
            _write_note(path, note["sha256"], version)
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _write_note(path: Path, digest: str, version: int) -> None:
    with replacing(path.with_suffix(".json")) as beside:
        beside.write_text(json.dumps({"version": version, "sha256": digest, "stamp": _stamp(path)}) + "\n")
