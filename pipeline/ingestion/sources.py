"""Finding logs: the files that paths, folders, patterns and URLs stand for, and whether they stay as they were found.

What is left out of a folder (hidden, a link, unreadable) is told, never passed over in silence. Labels are names for
people: bytes of a file's name that are no text, and control characters, are shown escaped.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from pipeline.ingestion.remote import find_remote, is_url, open_remote, stamp_of
from pipeline.runtime.errors import PipelineError, nearest

STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Source:
    """A file to read: its path as it was given, and where it really is (None for URLs and standard input)."""

    label: str
    path: Path | None
    size: int
    explicit: bool
    """named by the user, not found in a folder or by a pattern"""
    changed: int = 0
    """when it was last written to, in nanoseconds; a stamp of a URL's state"""
    url: str = ""
    """of a file that is read through fsspec"""

    @property
    def is_piped(self) -> bool:
        """Whether this is standard input, which can be read once only."""
        return self.path is None and not self.url

    @property
    def place(self) -> str:
        """Where it is, as the manifest has it."""
        return self.url or str(self.path or "")


@dataclass(frozen=True)
class Skipped:
    """A file that is no log, and why."""

    label: str
    reason: str


def find_sources(inputs: Iterable[str | Path]) -> tuple[list[Source], list[Skipped]]:
    """The files that paths, folders and patterns stand for, each once, in order of their labels; what was left out."""
    found: dict[str, Source] = {}
    left_out: dict[str, Skipped] = {}

    def add(path: Path, explicit: bool) -> None:
        label = shown(path)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise PipelineError(f"{label} is neither a file nor a folder")
            with path.open("rb"):
                pass
        except OSError as error:
            raise PipelineError(f"cannot read {label}: {(error.strerror or str(error)).lower()}") from None
        if not (explicit is False and label in found):
            found[label] = Source(label, path.resolve(), status.st_size, explicit, status.st_mtime_ns)

    for given in inputs:
        text = str(given)
        path = Path(text)
        if not text:
            raise PipelineError("an empty path names no logs: give a file, a folder, a pattern or -")
        if "\0" in text:
            raise PipelineError(f"no file or folder {text!r}")
        if text == "-":
            found["-"] = Source(STANDARD_INPUT, None, 0, True)
        elif is_url(text):
            for one in find_remote(text):
                label = shown(one.url)
                found[label] = Source(label, None, one.size, one.explicit, one.stamp, one.url)
        elif path.is_dir():
            for child in _below(path, left_out):
                add(child, explicit=False)
        elif path.exists() or path.is_symlink():
            add(path, explicit=True)
        elif has_magic(text):
            matched = [Path(name) for name in sorted(glob(text, recursive=True))]  # noqa: PTH207 (it may be absolute)
            files = [name for name in matched if not name.is_dir()]
            if not files:
                raise PipelineError(f"no file matches {text!r}")
            for name in files:
                add(name, explicit=False)
        else:
            near = nearest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
            raise PipelineError(f"no file or folder {text!r}{near if 'mean' in near else ''}")
    if not found:
        why = "; ".join(f"{skipped.label} {skipped.reason}" for skipped in list(left_out.values())[:3])
        raise PipelineError("no files in " + ", ".join(shown(given) for given in inputs) + (f": {why}" if why else ""))
    return sorted(found.values(), key=lambda source: source.label), list(left_out.values())


def _below(folder: Path, left_out: dict[str, Skipped]) -> Iterator[Path]:
    """The files in a folder and its subfolders; what is hidden, a link to a folder or unreadable is left out."""

    def leave(path: Path | str, reason: str) -> None:
        label = shown(path)
        left_out[label] = Skipped(label, reason)

    def unreadable(error: OSError) -> None:
        leave(error.filename, f"cannot be read: {(error.strerror or str(error)).lower()}")

    for at, folders, files in os.walk(folder, onerror=unreadable):
        folders.sort()
        for name in list(folders):
            if name.startswith(".") or Path(at, name).is_symlink():
                why = "is hidden" if name.startswith(".") else "is a link to a folder"
                leave(Path(at, name), f"{why}: give it by name to read it")
                folders.remove(name)
        for name in sorted(files):
            if name.startswith("."):
                leave(Path(at, name), "is hidden: give it by name to read it")
            elif not name.endswith(".probs.parquet"):  # true probabilities, which the arena writes beside logs
                yield Path(at, name)


def shown(text: str | Path) -> str:
    """A path or name as it can be printed: bytes that are no UTF-8 and control characters escaped.

    >>> shown("a\\x1b[31m.log"), shown(os.fsdecode(b"caf\\xe9.log"))
    ('a\\\\x1b[31m.log', 'caf\\\\xe9.log')
    """
    words = (text.as_posix() if isinstance(text, Path) else text).encode("utf-8", "surrogateescape")
    plain = words.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def fingerprint(source: Source) -> str:
    """The SHA-256 of a file's bytes."""
    try:
        with open_remote(source.url) if source.url else Path(source.place).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError as error:
        raise PipelineError(f"cannot read {source.label}: {(error.strerror or str(error)).lower()}") from None
    unchanged(source)
    return found


def unchanged(source: Source) -> None:
    """Refuse a source that something wrote to since it was found: its rows would not be those of its fingerprint."""
    if source.is_piped or not source.changed:
        return
    try:
        if source.url:
            found = stamp_of(source.url)
        else:
            status = Path(source.place).stat()
            found = status.st_size, status.st_mtime_ns
    except OSError as error:
        raise PipelineError(f"cannot read {source.label}: {(error.strerror or str(error)).lower()}") from None
    if found != (source.size, source.changed):
        raise PipelineError(
            f"{source.label} changed while it was read: run again when nothing writes to it "
            "(what was there before is unharmed)"
        )
