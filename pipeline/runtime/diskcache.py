"""What is kept on this machine between runs: one folder, and one way to write and read it safely.

Everything kept can be made again, so a file that is missing, of another version, damaged or out of bounds is treated
the same way: the reader gets None and makes it again. There are two forms:

- *arrays* (tables of hundreds of megabytes, opened memory-mapped): beside `x.npy` lies `x.json` with a version, the
  SHA-256, and what the file system says of the file (size, inode, times of content and of change) at the last
  comparison. Any write changes the time of change, even one that sets the file's date back; then the checksum and the
  bounds are compared again. Otherwise opening takes milliseconds;
- *bytes* (compiled functions, clusters): one file whose first line has the version and the SHA-256 of the rest, which
  is compared at every reading.

This is below everything that keeps something: compiled code, strength and quantile tables, clusters, the teacher's
tables.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.runtime.arrays import parse_json, read_npy
from pipeline.runtime.files import replacing, sha256

T = TypeVar("T")

KEPT = {
    "kernels": "compiled code",
    "strength": "strength and quantile tables",
    "clusters": "clusters",
    "teacher": "the teacher's tables",
    "explorer": "where agents differ from logs",
}
"""The folders of what is kept, and what is in each."""

_FIRST_LINE = re.compile(rb"acpc-pipeline (\d+) ([0-9a-f]{64})\n")


def cache_root() -> Path:
    """The user's cache folder: `$PIPELINE_CACHE`, else `acpc-pipeline` in `$XDG_CACHE_HOME` or `~/.cache`.

    Written by hand instead of taken from platformdirs: two lines against one more package in every shipped bot.
    """
    return _root(*map(os.environ.get, ("PIPELINE_CACHE", "XDG_CACHE_HOME", "HOME")))


@cache
def _root(named: str | None, base: str | None, home: str | None) -> Path:
    """Found once: it is asked for at every decision."""
    return Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "acpc-pipeline"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One builder at a time in a folder; the others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def found_or_made(folder: Path, find: Callable[[], T | None], make: Callable[[], T]) -> T:
    """What `find` gives; where that is None, what `make` gives, which one process at a time makes in a folder.

    It is looked for without the lock first, so that what is complete can be used where nothing can be written.
    """
    found = find()
    if found is None:
        with locked(folder):
            found = find()  # another process may have made it while this one waited
            if found is None:
                found = make()
    return found


# Arrays


def keep(path: Path, array: npt.NDArray[Any], version: int) -> None:
    """Write an array to `path` (ending in .npy) and the note beside it."""
    with replacing(path) as beside, beside.open("wb") as file:
        np.save(file, array, allow_pickle=False)
    _write_note(path, sha256(path), version)


def open_kept(path: Path, version: int, fits: Callable[[npt.NDArray[Any]], bool]) -> npt.NDArray[Any] | None:
    """The array, memory-mapped and read-only; None if there is none, or it is of another version or damaged.

    `fits` says whether its type, shape and values are possible; it is asked when the checksum is compared.
    """
    try:
        note = parse_json(path.with_suffix(".json").read_bytes())
        if note["version"] != version:
            return None
        checked = note["stamp"] == _stamp(path)
        if not checked and note["sha256"] != sha256(path):
            return None
        found = read_npy(path, mapped=True)
        if not checked:
            if not fits(found):
                return None
            _write_note(path, note["sha256"], version)
        return found
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamp(path: Path) -> list[int]:
    """What changes when a file is written, whatever date it is given afterwards."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _write_note(path: Path, digest: str, version: int) -> None:
    """Write what `open_kept` compares; a folder that cannot be written only means comparing again next time."""
    try:
        with replacing(path.with_suffix(".json")) as beside:
            beside.write_text(json.dumps({"version": version, "sha256": digest, "stamp": _stamp(path)}) + "\n")
    except OSError:
        if not path.with_suffix(".json").exists():
            raise


# Bytes


def keep_bytes(path: Path, data: bytes, version: int) -> None:
    """Write bytes with their version and checksum."""
    with replacing(path) as beside:
        beside.write_bytes(b"acpc-pipeline %d %s\n%s" % (version, hashlib.sha256(data).hexdigest().encode(), data))


def kept_bytes(path: Path, version: int) -> bytes | None:
    """What `keep_bytes` wrote; None if there is nothing, or it is of another version or damaged."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    found = _FIRST_LINE.match(text)
    if found is None or int(found[1]) != version:
        return None
    data = text[found.end() :]
    return data if hashlib.sha256(data).hexdigest().encode() == found[2] else None
