"""Finding logs: the files that paths, folders, patterns and URLs stand for, and whether they stay as they were found.

In go paths, folders, glob patterns, `-` and URLs (`s3://`, `gs://`, `https://`, `file://`, ...); out come `LogSource`s
sorted by label, and the files of folders that were left out (hidden, a link, unreadable), each with the reason. URLs
are read through fsspec (the extra `[cluster]`; `s3://` and the like need the package that fsspec names when it is
missing) as streams in blocks: nothing is copied to disk. Labels are names for people: bytes of a file's name that are
no text, and control characters, are escaped in them.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, NamedTuple

from pipeline.runtime.bundled import locate, name_path
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.extras import import_extra

STANDARD_INPUT = "standard input"
OWN_FILES = "belongs to the dataset that is written"
REMOTE_BLOCK = 4 << 20
"""bytes of a URL fetched at a time"""


@dataclass(frozen=True, slots=True)
class LogSource:
    """A file to read: its path as it was given, and where it really is."""

    label: str
    place: str
    """the URL, or the path's bytes as UTF-8 whatever the locale (there may be millions, and a `Path` takes a kilobyte);
    nothing for standard input"""
    size: int
    explicit: bool
    """named by the user, not found in a folder or by a pattern"""
    changed: int = 0
    """when it was last written to, in nanoseconds; a stamp of a URL's state"""

    @property
    def is_piped(self) -> bool:
        """Return whether this is standard input, which can be read once only."""
        return not self.place

    @property
    def url(self) -> str:
        """Return the URL of a file that is read through fsspec; nothing for others."""
        return self.place if is_url(self.place) else ""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that is no log, and why."""

    label: str
    reason: str


def find_sources(
    inputs: Iterable[str | Path], written: Path | None = None
) -> tuple[list[LogSource], list[SkippedFile]]:
    """Return the files that inputs stand for, each once, sorted by label, and the files left out of folders.

    Files of the dataset that is `written` are no logs, wherever it lies.
    """
    own = None if written is None else written.resolve()
    sources: dict[str, LogSource] = {}
    left_out: dict[str, SkippedFile] = {}

    def add(path: Path, explicit: bool) -> None:
        label = printable(name_path(path))
        if not explicit and own is not None and path.resolve().is_relative_to(own):
            left_out[label] = SkippedFile(label, OWN_FILES)
            return
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise PipelineError(f"{label} is neither a file nor a folder")
            with path.open("rb"):
                pass
        except OSError as error:
            raise PipelineError(f"cannot read {label}: {(error.strerror or str(error)).lower()}") from None
        if not (explicit is False and label in sources):
            place = os.fsencode(path.resolve()).decode("utf-8", "surrogateescape")
            sources[label] = LogSource(label, place, status.st_size, explicit, status.st_mtime_ns)

    for given in inputs:
        path = locate(given)
        text = str(given)
        if not text:
            raise PipelineError("an empty path names no logs: give a file, a folder, a pattern or -")
        if "\0" in text:
            raise PipelineError(f"no file or folder {text!r}")
        if text == "-":
            sources["-"] = LogSource(STANDARD_INPUT, "", 0, True)
        elif is_url(text):
            for remote in find_remote(text):
                label = printable(remote.url)
                sources[label] = LogSource(label, remote.url, remote.size, remote.explicit, remote.stamp)
        elif path.is_dir():
            for child in _below(path, left_out, own):
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
    if not sources:
        reasons = "; ".join(f"{skipped.label} {skipped.reason}" for skipped in list(left_out.values())[:3])
        names = ", ".join(printable(given) for given in inputs)
        raise PipelineError(f"no files in {names}" + (f": {reasons}" if reasons else ""))
    return sorted(sources.values(), key=lambda source: source.label), list(left_out.values())


def _below(folder: Path, left_out: dict[str, SkippedFile], own: Path | None) -> Iterator[Path]:
    """List the files below a folder; what is hidden, a link, unreadable or the dataset itself goes to `left_out`."""

    def leave_out(path: Path | str, reason: str) -> None:
        label = printable(path)
        left_out[label] = SkippedFile(label, reason)

    def unreadable(error: OSError) -> None:
        leave_out(error.filename, f"cannot be read: {(error.strerror or str(error)).lower()}")

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders.sort()
        for name in list(folders):
            if name.startswith(".") or Path(parent, name).is_symlink():
                why = "is hidden" if name.startswith(".") else "is a link to a folder"
                leave_out(Path(parent, name), f"{why}: give it by name to read it")
                folders.remove(name)
            elif own is not None and Path(parent, name).resolve() == own:
                leave_out(Path(parent, name), OWN_FILES)
                folders.remove(name)
        for name in sorted(files):
            if name.startswith("."):
                leave_out(Path(parent, name), "is hidden: give it by name to read it")
            elif not name.endswith(".probs.parquet"):  # true probabilities, which the arena writes beside logs
                yield Path(parent, name)


def printable(text: str | Path) -> str:
    """Return a path or name as it can be printed: bytes that are no UTF-8 and control characters escaped.

    >>> printable("a\\x1b[31m.log"), printable(os.fsdecode(b"caf\\xe9.log"))
    ('a\\\\x1b[31m.log', 'caf\\\\xe9.log')
    """
    words = (text.as_posix() if isinstance(text, Path) else text).encode("utf-8", "surrogateescape")
    plain = words.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def path_at(place: str) -> Path:
    """Return the path that a manifest has as `LogSource.place`.

    >>> path_at("logs/a.log").name
    'a.log'
    """
    try:
        return Path(os.fsdecode(place.encode("utf-8", "surrogateescape")))
    except UnicodeEncodeError:  # half of a character, which no path of ours has
        return Path(place)


def fingerprint(source: LogSource) -> str:
    """Return the SHA-256 of a file's bytes."""
    try:
        with open_remote(source.url) if source.url else path_at(source.place).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError as error:
        raise PipelineError(f"cannot read {source.label}: {(error.strerror or str(error)).lower()}") from None
    check_unchanged(source)
    return digest


def check_unchanged(source: LogSource) -> None:
    """Refuse a source that something wrote to since it was found: its rows would not be those of its fingerprint."""
    if not source.is_piped and _state(source) != (source.size, source.changed):
        raise PipelineError(
            f"{source.label} changed while it was read: run again when nothing writes to it "
            "(what was there before is unharmed)"
        )


def confirm(source: LogSource, sha256: str) -> LogSource:
    """Return a source with the time of its last change; one that the dataset had must have the bytes that it had."""
    if source.is_piped or source.changed:
        return source
    source = replace(source, changed=_state(source)[1])
    if fingerprint(source) != sha256:
        raise PipelineError(f"{source.label} has changed since it was ingested: name it again among the logs")
    return source


def _state(source: LogSource) -> tuple[int, int]:
    """Return a source's size and the time or stamp of its last change."""
    try:
        if source.url:
            return remote_state(source.url)
        status = path_at(source.place).stat()
        return status.st_size, status.st_mtime_ns
    except OSError as error:
        raise PipelineError(f"cannot read {source.label}: {(error.strerror or str(error)).lower()}") from None


# URLs


class RemoteFile(NamedTuple):
    """A file behind a URL."""

    url: str
    size: int
    stamp: int
    """of its time, tag or whatever the store tells of its state"""
    explicit: bool
    """named itself, not found in a folder or by a pattern"""


def is_url(text: str) -> bool:
    """Return whether a text names logs by URL.

    >>> is_url("s3://bucket/logs"), is_url("logs/a.log"), is_url("C://x")
    (True, False, False)
    """
    scheme, separator, _ = text.partition("://")
    return bool(separator) and len(scheme) > 1 and scheme.replace("+", "").isalnum()


def find_remote(text: str) -> list[RemoteFile]:
    """Return the files that a URL stands for, in the order of their URLs."""
    with translate_errors(text):
        store, path = _open_store(text)
        if has_magic(path):
            explicit, paths = False, sorted(store.glob(path))
        elif store.isdir(path):
            explicit, paths = False, sorted(store.find(path))
        else:
            explicit, paths = True, [path]
        files = []
        for place in paths:
            info = store.info(place)
            name = str(place).rpartition("/")[2]
            if info["type"] != "file" or (not explicit and (name.startswith(".") or name.endswith(".probs.parquet"))):
                continue
            files.append(
                RemoteFile(store.unstrip_protocol(place), int(info["size"] or 0), _stamp(store, place), explicit)
            )
    if not files:
        raise PipelineError(f"no files in {text}")
    return files


def remote_state(url: str) -> tuple[int, int]:
    """Return the size and the stamp of a file behind a URL, asked for anew."""
    with translate_errors(url):
        store, path = _open_store(url)
        store.invalidate_cache()
        return int(store.info(path)["size"] or 0), _stamp(store, path)


@contextmanager
def open_remote(url: str) -> Iterator[IO[bytes]]:
    """Open the bytes of a file behind a URL."""
    with translate_errors(url):
        store, path = _open_store(url)
        file = store.open(path, "rb", block_size=REMOTE_BLOCK)
    with file:
        yield file


def _open_store(text: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL and the path in it."""
    store: tuple[Any, str] = import_extra("fsspec.core").url_to_fs(text)
    return store


def _stamp(store: Any, path: str) -> int:
    """Return a number of 62 bits that changes when the store says that a file changed."""
    return int(hashlib.sha256(str(store.ukey(path)).encode()).hexdigest()[:15], 16) | 1


@contextmanager
def translate_errors(text: str) -> Iterator[None]:
    """Raise what a store reports as a `PipelineError` of one sentence."""
    try:
        yield
    except (PipelineError, MemoryError):
        raise
    except FileNotFoundError:
        raise PipelineError(f"no file or folder {text!r}") from None
    except ImportError as error:
        raise PipelineError(f"{text}: {' '.join(str(error).split())}") from None
    except Exception as error:  # every store has errors of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PipelineError(f"cannot read {text}: {reason[:300]}") from None
