"""Atomic replacement of files and folders: a killed run leaves either the old one or the new one.

`replacing` gives a path in the target's folder; when the block ends well, the file or folder written there takes the
target's place in one step of the file system. A file does so by an ordinary rename. A folder cannot be renamed onto a
folder that has files in it: the two are exchanged (`renameat2` on Linux, `renamex_np` on macOS) and the old one is
deleted after. Where the file system cannot exchange, the old folder is moved aside first; a run that was killed between
the two moves is mended by `recover`, which every later `replacing` of the same target calls. Nothing here waits for the
disk itself: after a loss of power the operating system decides what is there.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.runtime.bundled import check_writable
from pipeline.runtime.errors import PipelineError

_LEFT_BEHIND = re.compile(r"\.(.+)\.(\d+)\.(part|old)")
_AT_CURRENT_FOLDER, _EXCHANGE = -100, 2
"""arguments of `renameat2`; `renamex_np` has the same flag"""
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_leftovers: dict[Path, set[str]] = {}
"""names with leftovers in folders that this process writes to, as found at its first write there"""


def check_name(path: Path) -> None:
    """Refuse a path without a name of its own, such as `.` or `/`, and the files that come with the package."""
    check_writable(path)
    if path.name in ("", ".."):
        raise PipelineError(
            f"nothing can be written in the place of {path}: name a file or folder, like {path / 'new'}"
        )


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a path in the same folder for a file or folder, which takes `path`'s place when the block ends well."""
    path = Path(path)
    check_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # looking for leftovers lists the folder, which is slow for thousands of files: once per process and folder
    if path.parent not in _leftovers:
        matches = (_LEFT_BEHIND.fullmatch(file.name) for file in path.parent.iterdir())
        _leftovers[path.parent] = {match[1] for match in matches if match}
    if path.name in _leftovers[path.parent]:
        recover(path)
    part = _sibling(path, "part")
    try:
        yield part
        # a rename will do, except where a folder stands at one of the two places
        if path.is_symlink() or not path.exists() or not (part.is_dir() or path.is_dir()):
            part.replace(path)
        elif not _exchange(part, path):
            old = _sibling(path, "old")
            path.rename(old)
            part.rename(path)
            _remove(old)
    finally:
        _remove(part)


def refuse_folder(path: Path | str) -> None:
    """Refuse a folder as the place of a file: what lies in it would be lost."""
    if Path(path).is_dir():
        raise PipelineError(f"{path} is a folder: name a file to write")


def write_text(path: Path | str, text: str) -> None:
    """Write a text file in one step, in the place of an old one; bytes of names that are no text are escaped."""
    refuse_folder(path)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


def recover(path: Path | str) -> None:
    """Put back what a killed `replacing` had moved aside, and delete the leftovers of ended processes in its folder.

    Leftovers carry the number of their process; those of a process that still runs are not touched.
    """
    path = Path(path)
    siblings = sorted(path.parent.glob(f".{_literal(path.name)}.*")) if path.parent.is_dir() else []
    for sibling in siblings:
        match = _LEFT_BEHIND.fullmatch(sibling.name)
        if match and match[1] == path.name and not _is_running(int(match[2])):
            if match[3] == "old" and not path.exists():
                sibling.rename(path)
            else:
                _remove(sibling)


def discard(path: Path | str) -> None:
    """Delete a file or folder, if it is there, and the leftovers of ended processes that were replacing it.

    A folder is moved aside first, so that a killed run leaves it whole or not at all under its name.
    """
    path = Path(path)
    recover(path)
    if path.is_dir() and not path.is_symlink():
        path = path.rename(_sibling(path, "part"))
    _remove(path)


def _sibling(path: Path, kind: str) -> Path:
    """Return a hidden name in the folder of `path` with the number of this process."""
    return path.with_name(f".{path.name}.{os.getpid()}.{kind}")


def _literal(name: str) -> str:
    """Return a glob pattern that matches a name and nothing else."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _exchange(path: Path, other: Path) -> bool:
    """Exchange two paths in one step; return False where the system or the file system cannot."""
    # by the C library's functions: Python has no name for them
    library = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(path), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(a, b, _EXCHANGE)
        else:
            failed = library.renameat2(_AT_CURRENT_FOLDER, a, _AT_CURRENT_FOLDER, b, _EXCHANGE)
    except AttributeError:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _remove(path: Path) -> None:
    """Delete a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
