"""Finding logs and reading them as streams.

A source is a file on disk or standard input (`-`). It may be plain text, compressed (gzip, bzip2, xz, zstd) or an
archive (tar, zip) of any of these: what it is, is seen from its first bytes, not from its name. Everything is read as
a stream in pieces of bounded size; nothing is unpacked to disk and no name from an archive is used as a path.

`pieces` gives the logs inside a source, whole lines at a time. A line longer than `acpc.MAX_LINE` is cut there (and
will be rejected), so a line of a gigabyte costs no memory.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import re
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, NamedTuple

from pipeline.acpc import MAX_LINE
from pipeline.errors import PipelineError, nearest

__all__ = ["STANDARD_INPUT", "Piece", "Skipped", "Source", "blocks", "find_sources", "fingerprint", "pieces"]

HEAD = 1 << 16
"""bytes looked at to see what a file is"""
BLOCK = 1 << 20
"""bytes read at a time"""
STANDARD_INPUT = "standard input"
DEPTH = 4
"""layers of compression and archives that are opened"""

_LOG = re.compile(rb"^(?:STATE:|SCORE:|# name/game/|[!-9;-{}~]{1,64}(?:\|[!-9;-{}~]{1,64})+:\d+:)", re.MULTILINE)
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, ValueError)


@dataclass(frozen=True)
class Source:
    """A file to read: its path as it was given, and where it really is (None for standard input)."""

    label: str
    path: Path | None
    size: int
    explicit: bool
    """named by the user, not found in a folder or by a pattern"""


class Piece(NamedTuple):
    """Whole lines of a log: its label, whether these are its first, and the bytes of the source read so far."""

    label: str
    data: bytes
    first: bool
    read: int


class _Text(NamedTuple):
    """A log inside a source."""

    label: str
    stream: IO[bytes]


@dataclass(frozen=True)
class Skipped:
    """A file that is no log, and why."""

    label: str
    reason: str


def find_sources(inputs: Iterable[str | Path]) -> list[Source]:
    """The files that paths, folders and patterns stand for, each once, in order of their labels."""
    found: dict[str, Source] = {}

    def add(path: Path, explicit: bool) -> None:
        label = path.as_posix()
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise PipelineError(f"{label} is neither a file nor a folder")
            with path.open("rb"):
                pass
        except OSError as error:
            raise PipelineError(f"cannot read {label}: {(error.strerror or str(error)).lower()}") from None
        if not (explicit is False and label in found):
            found[label] = Source(label, path.resolve(), status.st_size, explicit)

    for given in inputs:
        text = str(given)
        path = Path(text)
        if text == "-":
            found["-"] = Source(STANDARD_INPUT, None, 0, True)
        elif path.is_dir():
            for child in sorted(path.rglob("*")):
                inside = child.relative_to(path).parts
                ours = child.name.endswith(".probs.parquet")  # true probabilities, which the arena writes beside logs
                if not any(part.startswith(".") for part in inside) and not child.is_dir() and not ours:
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
        raise PipelineError("no files in " + ", ".join(str(given) for given in inputs))
    return sorted(found.values(), key=lambda source: source.label)


def fingerprint(source: Source) -> str:
    """The SHA-256 of a file's bytes."""
    assert source.path
    try:
        with source.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PipelineError(f"cannot read {source.label}: {(error.strerror or str(error)).lower()}") from None


class _Peeked(io.RawIOBase):
    """A stream whose first bytes have been looked at."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        head, self._head = self._head, b""
        if 0 <= size < len(head):
            head, self._head = head[:size], head[size:]
            return head
        return head + self._stream.read(size - len(head) if size >= 0 else -1)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _head(stream: IO[bytes]) -> bytes:
    """The first bytes of a stream, as many as `HEAD` if there are so many."""
    head = b""
    while len(head) < HEAD:
        more = stream.read(HEAD - len(head))
        if not more:
            break
        head += more
    return head


def _kind(head: bytes) -> str:
    """What a file is, by its first bytes."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return "tar" if head[257:262] == b"ustar" else "text"


def _decompressed(kind: str, stream: IO[bytes]) -> IO[bytes]:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]
    if kind == "bzip2":
        return bz2.BZ2File(stream)
    if kind == "xz":
        return lzma.LZMAFile(stream)
    import pyarrow as pa

    opened: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    return opened


def _label(text: str) -> str:
    """A member's name made printable; it is only ever shown."""
    return "".join(c if c.isprintable() else "?" for c in text.encode("utf-8", "replace").decode())


def _inside(label: str, stream: IO[bytes], depth: int) -> Iterator[_Text | Skipped]:
    """The logs in a stream, which may be a log itself."""
    head = _head(stream)
    kind = _kind(head)
    if kind == "text":
        if not head:
            yield Skipped(label, "is empty")
        elif b"\0" in head:
            yield Skipped(label, "is a binary file, not a log")
        elif not _LOG.search(head):
            yield Skipped(label, "holds no line of an ACPC log")
        else:
            yield _Text(label, _Peeked(head, stream))  # type: ignore[arg-type]
        return
    if depth == 0:
        yield Skipped(label, f"lies under more than {DEPTH} layers of archives")
        return
    whole: Any = _Peeked(head, stream)
    if kind == "zip":
        if not stream.seekable():
            yield Skipped(label, "is a zip archive inside another archive or pipe, where it cannot be read")
            return
        stream.seek(0)
        with zipfile.ZipFile(stream) as archive:
            for member in sorted(archive.infolist(), key=lambda info: info.header_offset):
                name = f"{label}/{_label(member.filename)}"
                if member.is_dir():
                    continue
                if member.flag_bits & 1:
                    yield Skipped(name, "is encrypted")
                    continue
                with archive.open(member) as inner:
                    yield from _inside(name, _Forward(inner), depth - 1)  # type: ignore[arg-type]
    elif kind == "tar":
        with tarfile.open(fileobj=whole, mode="r|", bufsize=BLOCK) as tar:
            for entry in tar:
                file = tar.extractfile(entry) if entry.isreg() else None
                if file is not None:
                    yield from _inside(f"{label}/{_label(entry.name)}", _Forward(file), depth - 1)  # type: ignore[arg-type]
    else:
        yield from _inside(label, _Forward(_decompressed(kind, whole)), depth - 1)  # type: ignore[arg-type]


class _Forward(io.RawIOBase):
    """A stream that is only read forward, whatever lies behind it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(self._stream.read(size))


class Counted(io.RawIOBase):
    """The bytes of a source, counted and (for standard input) hashed as they are read."""

    def __init__(self, stream: IO[bytes], hashed: bool) -> None:
        self._stream = stream
        self._digest = hashlib.sha256() if hashed else None
        self.count = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._digest is None and self._stream.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size) or b""
        self.count += len(data)
        if self._digest:
            self._digest.update(data)
        return data

    def fingerprint(self) -> str:
        """The SHA-256 of all bytes, reading what is left."""
        while self.read(BLOCK):
            pass
        return self._digest.hexdigest() if self._digest else ""


@contextmanager
def opened(source: Source) -> Iterator[Counted]:
    """The bytes of a source."""
    if source.path is None:
        yield Counted(sys.stdin.buffer, hashed=True)
    else:
        with source.path.open("rb", buffering=0) as file:
            yield Counted(file, hashed=False)


def pieces(source: Source, stream: Counted, size: int = BLOCK) -> Iterator[Piece | Skipped]:
    """The logs inside a source, in pieces of about `size` bytes, and what is no log."""
    label = source.label
    try:
        for found in _inside(label, stream, DEPTH):  # type: ignore[arg-type]
            label = found.label
            if isinstance(found, Skipped):
                yield found
                continue
            first = True
            for data in blocks(found.stream, size):
                yield Piece(label, data, first, stream.count)
                first = False
    except OSError as error:
        if error.errno is None:  # so bz2 and gzip report damage
            raise PipelineError(f"{label} is damaged or cut short: restore it or leave it out ({error})") from None
        raise PipelineError(f"cannot read {label}: {(error.strerror or str(error)).lower()}") from None
    except _DAMAGE as error:
        raise PipelineError(f"{label} is damaged or cut short: restore it or leave it out ({error})") from None


def blocks(stream: IO[bytes], size: int = BLOCK) -> Iterator[bytes]:
    """Whole lines of a stream in pieces of about `size` bytes; lines that are too long are cut one byte after."""
    rest = b""
    skipping = False
    while True:
        piece = stream.read(size)
        if not piece:
            if rest:
                yield rest
            return
        if skipping:
            end = piece.find(b"\n")
            if end < 0:
                continue
            piece = piece[end:]
            skipping = False
        data = rest + piece
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > MAX_LINE:
            rest = rest[: MAX_LINE + 1]
            skipping = True
        if cut:
            yield data[:cut]
