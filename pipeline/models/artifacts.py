"""Folders and zip files that play, whatever is in them: read within bounds, compared with checksums, copied.

Bundles, stored strategies and portfolios have a `manifest.json` in the folder of their arrays, with the SHA-256 of each
file. They may come from anybody: a checksum only proves that a file arrived whole, and a zip file that would unpack to
many times its size is refused before it is unpacked. Files are memory-mapped, so that opening takes milliseconds. A
copy has the files, a README and scripts; a copy as a zip file is not compressed, so that it opens as fast as a folder.
The same files under the same name give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pipeline.models.wheel import PYTHON, REQUIREMENTS, WHEEL_NAME, core_wheel
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import check_name, recover, replacing

MANIFEST = "manifest.json"
README = "README.md"
MOST_UNPACKED, SMALL_BYTES = 20, 1 << 26
"""a zip file may unpack to this many times its size, or to this many bytes where that is more"""


class Shipped(NamedTuple):
    """Number and bytes of the files copied."""

    files: int
    size: int


def has_files(path: Path, names: Collection[str]) -> bool:
    """Return whether a folder or zip file has all files of these names."""
    if not path.exists():
        recover(path)
    if not zipfile.is_zipfile(path):
        return all((path / name).is_file() for name in names)
    try:
        with zipfile.ZipFile(path) as archive:
            return set(names) <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def read_files(path: Path, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield name and bytes of those files of a folder or zip file that are among `names`."""
    if not path.exists():
        with suppress(OSError):
            recover(path)
    if not path.exists():
        raise PipelineError(f"there is no bundle at {path}: `train --out {path}` makes one")
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if file.is_file() and not file.name.startswith(".") and file.name in names:
                yield file.name, _map_file(file)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            wanted = [entry for entry in archive.infolist() if PurePosixPath(entry.filename).name in names]
            if sum(entry.file_size for entry in wanted) > max(SMALL_BYTES, MOST_UNPACKED * path.stat().st_size):
                raise PipelineError(f"{path} would unpack to over {MOST_UNPACKED} times its size: no bundle does that")
            for entry in wanted:
                yield PurePosixPath(entry.filename).name, _unpack_entry(archive, entry)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error) as error:
        raise PipelineError(f"{path} is not a bundle's folder or zip file: {error}") from None


def _unpack_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Read one file of an archive, never more than the archive names as its size."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename[:40]!r} is compressed in a way that bundles are not")
    with archive.open(entry) as file:
        data = file.read(entry.file_size)
        while len(data) < entry.file_size and (more := file.read(entry.file_size - len(data))):
            data += more
    if len(data) != entry.file_size:
        raise ValueError(f"{entry.filename[:40]!r} is cut short")
    return data


def _map_file(path: Path) -> Any:
    """Return a file's bytes, memory-mapped."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def read_checked(path: Path, digests: Mapping[str, str], remedy: str) -> dict[str, Any]:
    """Read the files that a manifest names and compare their SHA-256; `remedy` ends the sentence of an error."""
    files = dict(read_files(path, set(digests)))
    for name in digests:
        if name not in files:
            raise PipelineError(f"{path} lacks {name}: {remedy}")
    order = sorted(digests, key=lambda name: len(files[name]), reverse=True)  # so that both threads end together
    with ThreadPoolExecutor(2) as pool:
        actual = dict(zip(order, pool.map(lambda name: hashlib.sha256(files[name]).hexdigest(), order), strict=True))
    for name, expected in digests.items():
        if actual[name] != expected:
            raise PipelineError(f"{path / name} is damaged or foreign (its checksum differs): {remedy}")
    return files


def check_replaceable(target: Path, kind: str, is_kind: Callable[[Path], bool], *sources: Path) -> None:
    """Refuse to write an artifact in the place of anything but an empty folder or one of its own kind.

    Parameters: `sources`, what it is made from; none of them may be `target` or inside it.
    """
    check_name(target)
    if not target.exists():
        return
    for source in sources:
        if source.resolve() == target.resolve():
            raise PipelineError(f"{target} cannot be written onto itself: name another place with --out")
        if source.resolve().is_relative_to(target.resolve()):
            raise PipelineError(f"{target} cannot be written over {source}, from which it is made: name another place")
    is_empty = target.is_dir() and not any(target.iterdir())
    if not is_empty and not is_kind(target):
        raise PipelineError(f"{target} is there and is not a {kind}: name another place or remove it")


def write_copy(target: Path, files: Mapping[str, bytes], scripts: Mapping[str, str]) -> Shipped:
    """Write files, the core's wheel and scripts that can be run to a folder, or to a zip file by its name."""
    files = {**files, WHEEL_NAME: core_wheel()}
    with replacing(target) as part:
        if target.suffix == ".zip":
            _write_zip(part, files, scripts)
        else:
            part.mkdir()
            for name, data in files.items():
                (part / name).write_bytes(data)
            for name, text in scripts.items():
                (part / name).write_text(text, encoding="utf-8")
                (part / name).chmod(0o755)
    size = sum(map(len, files.values())) + sum(len(text.encode()) for text in scripts.values())
    return Shipped(len(files) + len(scripts), size)


def _write_zip(path: Path, files: Mapping[str, bytes], scripts: Mapping[str, str]) -> None:
    """Write a zip file without times of day."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [*sorted(files.items()), *((name, text.encode()) for name, text in sorted(scripts.items()))]:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | (0o755 if name in scripts else 0o644)) << 16
            archive.writestr(entry, data)


def start_script() -> str:
    """Return a shell script for a bot's folder, called as the competition calls its players: HOST PORT."""
    modules = [requirement.partition(">")[0] for requirement in REQUIREMENTS]
    needed = ", ".join(modules)
    version = ".".join(map(str, PYTHON))
    install = f"python3 -m venv .venv && .venv/bin/pip install ./{WHEEL_NAME}"
    return f"""#!/bin/sh
# Plays the bot beside this file on an ACPC dealer: HOST PORT [options of `pipeline connect`]
cd "$(dirname "$0")" || exit 1
[ -n "$PYTHON" ] || {{ [ -x .venv/bin/python ] && PYTHON=.venv/bin/python || PYTHON=python3; }}
"$PYTHON" -c '
import importlib.util, sys
if sys.version_info < {PYTHON}:
    sys.exit("this bot needs Python {version} or later, and " + sys.executable + " is " + sys.version.split()[0])
lacks = [name for name in {json.dumps([*modules, "pipeline"])} if importlib.util.find_spec(name) is None]
if lacks:
    sys.exit(sys.executable + " lacks " + ", ".join(lacks) + "; the bot needs {needed} and pipeline. "
             "In this folder: {install}")
' >/dev/null || exit 1
exec "$PYTHON" -m pipeline connect "$@" .
"""


def describe_start() -> list[str]:
    """Return lines of a README on the requirements and the start of a bot."""
    python, *names = ".".join(map(str, PYTHON)), *(requirement.partition(">")[0] for requirement in REQUIREMENTS)
    return [
        "## Start",
        "",
        f"On a machine with Python {python} or later, in this folder (unpack the zip file first):",
        "",
        f"    python3 -m venv .venv && .venv/bin/pip install ./{WHEEL_NAME}",
        "    ./start.sh HOST PORT",
        "",
        "The first command installs the program that plays from the wheel in this folder, with the packages that it"
        f" needs ({', '.join(names)}) from the index of your pip. The second one plays on an ACPC dealer that waits on"
        " HOST and PORT (`sh start.sh HOST PORT` where unpacking has lost that it can be run).",
        "",
        "`PYTHON=/path/to/python ./start.sh HOST PORT` takes another Python in which the wheel is installed.",
        "",
        "Without a dealer:",
        "",
        "    .venv/bin/pipeline match . @call --hands 10000",
        "    .venv/bin/pipeline play .",
        "",
        "The first start compiles for a minute; compiled code is kept in your cache folder.",
        "",
    ]
