"""The user's cache folder: arrays and bytes that take long to make, stored between runs and checked when read.

Everything in it can be made again, so a file that is missing, of another version, damaged or out of bounds is treated
the same way: the reader gets None and builds it again. There are two forms:

- *arrays* (tables of hundreds of megabytes, opened memory-mapped): next to `x.npy` is `x.json` with a version, the
  SHA-256, and the file's status (size, inode, times of content and of change) at the last comparison. Any write changes
  the time of change, even one that sets the file's date back; then the checksum and the bounds are compared again.
  Otherwise opening takes milliseconds;
- *bytes* (compiled functions, clusters): one file whose first line has the version and the SHA-256 of the rest, which
  is compared at every reading.
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
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.runtime.arrays import parse_json, read_npy
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing, sha256

T = TypeVar("T")

CACHE_FOLDERS = {
    "kernels": "compiled code",
    "strength": "strength and quantile tables",
    "clusters": "clusters",
    "teacher": "the teacher's tables",
    "explorer": "hands of datasets, and where agents differ from them",
}
"""the folders of the cache, and the contents of each"""

_OURS = {
    "kernels": r"[0-9a-f]{16}/.+\.kernel",
    "strength": r"(fifths-)?(flop|turn)\.(npy|json)",
    "clusters": r"\w+-\d+-\d+\.clusters",
    "teacher": r"[0-9a-f]{16}/(flop|turn)\.(npy|json)|exploited-[^/]+\.json",
    "explorer": r"[0-9a-f]{24}((-\w+)?\.(npy|json)|\.texts)",
}
"""the names that the cache gives to files below each folder; `_AUXILIARY`: locks, and leftovers of `replacing`"""
_AUXILIARY = re.compile(r"lock|\..+\.\d+\.(part|old)")
TAG = "CACHEDIR.TAG"
"""the file that marks a folder as a cache of ours, by the convention of https://bford.info/cachedir (backups leave such
folders out)"""
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# the cache of acpc-pipeline: `pipeline cache clear` empties it\n"
)
_FIRST_LINE = re.compile(rb"acpc-pipeline (\d+) ([0-9a-f]{64})\n")


def cache_root() -> Path:
    """Return the user's cache folder: `$PIPELINE_CACHE`, else `acpc-pipeline` in `$XDG_CACHE_HOME` or `~/.cache`.

    Written by hand instead of taken from platformdirs: two lines against one more package in every shipped bot.
    """
    return _root(*map(os.environ.get, ("PIPELINE_CACHE", "XDG_CACHE_HOME", "HOME")))


@cache
def _root(named: str | None, base: str | None, home: str | None) -> Path:
    """Return the cache folder; memoised, because it is asked for at every decision."""
    return Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "acpc-pipeline"


def cache_sizes() -> dict[str, tuple[int, int]]:
    """Return the number of files and of bytes of each folder of the cache."""
    sizes = {}
    for name in CACHE_FOLDERS:
        paths = [path for path in (cache_root() / name).rglob("*") if path.is_file()]
        sizes[name] = len(paths), sum(path.stat().st_size for path in paths)
    return sizes


class ClearedCache(NamedTuple):
    """The files that were removed from the cache, and those in its folders that it did not make."""

    removed: dict[str, tuple[int, int]]
    """their number and bytes by folder"""
    foreign: list[Path]


def clear_cache() -> ClearedCache:
    """Delete the files of the cache by their names, in a folder that is marked as one, and nothing else in it."""
    root = cache_root()
    if os.environ.get("PIPELINE_CACHE") and root.exists() and not _is_marked(root) and any(root.iterdir()):
        raise PipelineError(
            f"{root} has no {TAG}, which marks what this program made: if it holds nothing else, remove it by hand; "
            "else name another folder in PIPELINE_CACHE"
        )
    removed, foreign = {}, []
    for name in CACHE_FOLDERS:
        files = size = 0
        if (root / name).is_symlink():
            foreign.append(root / name)
            continue
        for parent, _, names in os.walk(root / name, topdown=False):
            for path in (Path(parent, inside) for inside in sorted(names)):
                if path.is_symlink() or not path.is_file() or not _is_ours(name, path.relative_to(root / name)):
                    foreign.append(path)
                    continue
                files, size = files + 1, size + path.stat().st_size
                path.unlink()
            if not any(Path(parent).iterdir()):
                Path(parent).rmdir()
        removed[name] = files, size
    return ClearedCache(removed, foreign)


def _is_ours(folder: str, path: Path) -> bool:
    """Return whether a path below a folder of the cache has a name that the cache gives."""
    places = [path.as_posix()]
    if _AUXILIARY.fullmatch(path.name):  # as good as any file that may lie there
        places += [
            path.with_name(name).as_posix() for name in ("x.kernel", "flop.npy", "x-1-1.clusters", "0" * 24 + ".npy")
        ]
    return any(re.fullmatch(_OURS[folder], place) for place in places)


def _is_marked(root: Path) -> bool:
    """Return whether a folder has the tag that `_mark` writes."""
    try:
        return (root / TAG).read_text(encoding="utf-8") == _TAG_TEXT
    except (OSError, ValueError):
        return False


def _mark(path: Path) -> None:
    """Mark the cache that a path lies in, unless it is a folder that had other files before."""
    root = cache_root()
    if not path.is_relative_to(root) or _is_marked(root):
        return
    named = os.environ.get("PIPELINE_CACHE")
    if not named or not root.exists() or all(entry.name.startswith(f".{TAG}.") for entry in root.iterdir()):
        with replacing(root / TAG) as part:
            part.write_text(_TAG_TEXT, encoding="utf-8")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, so that one process at a time builds in it."""
    _mark(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # the system ends a lock of this kind with its process, so that a killed one leaves none behind
    with (folder / "lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load_or_build(folder: Path, load: Callable[[], T | None], build: Callable[[], T]) -> T:
    """Return `load()`; where that is None, `build()`, which one process at a time runs in `folder`.

    The first `load` takes no lock, so that a complete cache works where nothing can be written.
    """
    value = load()
    if value is None:
        with locked(folder):
            value = load()  # another process may have built it while this one waited
            if value is None:
                value = build()
    return value


# Arrays


def store_array(path: Path, array: npt.NDArray[Any], version: int) -> None:
    """Write an array to `path` (ending in .npy), and its version and checksum to the `.json` file of that name."""
    _mark(path)
    with replacing(path) as part, part.open("wb") as file:
        np.save(file, array, allow_pickle=False)
    _write_note(path, sha256(path), version)


@contextmanager
def writing_array(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, version: int) -> Iterator[npt.NDArray[Any]]:
    """Yield an array on disk to be filled, which is stored as `store_array` does when the block ends well."""
    _mark(path)
    with replacing(path) as part:
        array = np.lib.format.open_memmap(part, "w+", dtype, shape)
        yield array
        array.flush()
    _write_note(path, sha256(path), version)


def open_array(path: Path, version: int, fits: Callable[[npt.NDArray[Any]], bool]) -> npt.NDArray[Any] | None:
    """Return a stored array, memory-mapped and read-only; None if it is missing, damaged or of another version.

    `fits` tells whether its type, shape and values are possible; it is called when the checksum is compared.
    """
    try:
        note = parse_json(path.with_suffix(".json").read_bytes())
        if note["version"] != version:
            return None
        # the status is that of the last comparison: the file was not written since, so its checksum is the same
        checked = note["stamp"] == _stamp(path)
        if not checked and note["sha256"] != sha256(path):
            return None
        array = read_npy(path, mapped=True)
        if not checked:
            if not fits(array):
                return None
            _write_note(path, note["sha256"], version)
        return array
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamp(path: Path) -> list[int]:
    """Return the part of a file's status that changes with every write, even one that sets its date back."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _write_note(path: Path, digest: str, version: int) -> None:
    """Write the note that `open_array` compares; in a read-only folder the next run compares the checksum again."""
    try:
        with replacing(path.with_suffix(".json")) as part:
            part.write_text(
                json.dumps({"version": version, "sha256": digest, "stamp": _stamp(path)}) + "\n", encoding="utf-8"
            )
    except OSError:
        if not path.with_suffix(".json").exists():
            raise


# Bytes


def store_bytes(path: Path, data: bytes, version: int) -> None:
    """Write bytes with their version and checksum."""
    _mark(path)
    with replacing(path) as part:
        part.write_bytes(b"acpc-pipeline %d %s\n%s" % (version, hashlib.sha256(data).hexdigest().encode(), data))


def load_bytes(path: Path, version: int) -> bytes | None:
    """Return the bytes that `store_bytes` wrote; None if they are missing, damaged or of another version."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    header = _FIRST_LINE.match(text)
    if header is None or int(header[1]) != version:
        return None
    data = text[header.end() :]
    return data if hashlib.sha256(data).hexdigest().encode() == header[2] else None
