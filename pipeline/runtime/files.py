"""Writing files so that a killed run leaves either the old one or the new one, and checking what was written.

`replacing` gives a place beside the target; when the block ends well, what was written there takes the target's place
in one step of the file system. A file does so by an ordinary rename. A folder cannot be renamed onto a folder that has
files in it: the two are exchanged (`renameat2` on Linux, `renamex_np` on macOS) and the old one is deleted after. Where
the file system cannot exchange, the old folder is moved aside first; a run that was killed between the two moves is
mended by `recover`, which every later `replacing` of the same target calls. Nothing here waits for the disk itself:
after a loss of power the operating system decides what is there.
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

from pipeline.runtime.errors import PipelineError

_LEFT_BEHIND = re.compile(r"\.(.+)\.(\d+)\.(part|old)")
_AT_CURRENT_FOLDER, _EXCHANGE = -100, 2
"""arguments of `renameat2`; `renamex_np` has the same flag"""
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_left: dict[Path, set[str]] = {}
"""names with leftovers in folders that this process writes to, as found at its first write there"""


def check_name(path: Path) -> None:
    """Refuse a path without a name of its own, such as `.` or `/`: nothing can be put in the place of that."""
    if path.name in ("", ".."):
        raise PipelineError(
            f"nothing can be written in the place of {path}: name a file or folder, like {path / 'new'}"
        )


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """A path beside `path` to write a file or folder to; it takes `path`'s place when the block ends well."""
    path = Path(path)
    check_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent not in _left:
        found = (_LEFT_BEHIND.fullmatch(one.name) for one in path.parent.iterdir())
        _left[path.parent] = {one[1] for one in found if one}
    if path.name in _left[path.parent]:
        recover(path)
    beside = _beside(path, "part")
    try:
        yield beside
        if path.is_symlink() or not path.exists() or not (beside.is_dir() or path.is_dir()):
            beside.replace(path)
        elif not _exchange(beside, path):
            old = _beside(path, "old")
            path.rename(old)
            beside.rename(path)
            _remove(old)
    finally:
        _remove(beside)


def recover(path: Path | str) -> None:
    """Put back what a killed `replacing` had moved aside, and delete what ended processes left beside `path`.

    Leftovers carry the number of their process; those of a process that still runs are not touched.
    """
    path = Path(path)
    left = sorted(path.parent.glob(f".{_literal(path.name)}.*")) if path.parent.is_dir() else []
    for beside in left:
        found = _LEFT_BEHIND.fullmatch(beside.name)
        if found and found[1] == path.name and not _is_running(int(found[2])):
            if found[3] == "old" and not path.exists():
                beside.rename(path)
            else:
                _remove(beside)


def discard(path: Path | str) -> None:
    """Delete a file or folder, if it is there, and what ended processes left beside it when they replaced it.

    A folder is moved aside first: whoever is killed here leaves it whole or not at all under its name.
    """
    path = Path(path)
    recover(path)
    if path.is_dir() and not path.is_symlink():
        path = path.rename(_beside(path, "part"))
    _remove(path)


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{kind}")


def _literal(name: str) -> str:
    """A name as a pattern that matches nothing else."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where the system or the file system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(one), os.fsencode(other)
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
    """The file's SHA-256 in hexadecimal, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
