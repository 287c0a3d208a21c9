"""Reading logs as streams.

A source is a file on disk or standard input (`-`). It may be plain text, compressed (gzip, bzip2, xz, zstd) or an
archive (tar, zip) of any of these: what it is, is seen from its first bytes, not from its name. Everything is read as
a stream in pieces of bounded size; nothing is unpacked to disk and no name from an archive is used as a path.

`pieces` gives the logs inside a source, whole lines at a time, each with the beginning of those that follow. A line
longer than `acpc.MAX_LINE` is cut there (and will be rejected), so a line of a gigabyte costs no memory; archives that
need more than `MEMORY` to be unpacked are refused.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import re
import struct
import sys
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from pipeline.formats.acpc import MAX_LINE
from pipeline.ingestion.remote import open_remote
from pipeline.ingestion.sources import Skipped, Source, shown
from pipeline.runtime.errors import PipelineError

HEAD = 1 << 16
"""bytes looked at to see what a file is"""
BLOCK = 1 << 20
"""bytes read at a time"""
DEPTH = 4
"""layers of compression and archives that are opened"""
AHEAD = (1 << 16) + 1
"""bytes of the lines after a piece that come with it"""
WINDOW = 64 << 20
"""bytes of a hand history that are read before it is cut"""
MEMORY = 128 << 20
"""bytes that unpacking may take; the strongest usual setting of xz needs half of it"""
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}

_LOG = re.compile(rb"^(?:STATE:|SCORE:|# name/game/|[!-9;-{}~]{1,64}(?:\|[!-9;-{}~]{1,64})+:\d+:)", re.MULTILINE)
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_DAMAGE = (
    *(EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile),
    *(ValueError, NotImplementedError, RuntimeError, struct.error, OverflowError),
)
"""what the standard library raises for damaged archives"""


class Piece(NamedTuple):
    """Whole lines of a log: its label, whether these are its first, and the bytes of the source read so far."""

    label: str
    data: bytes
    first: bool
    read: int
    ahead: bytes = b""
    """the first `AHEAD` bytes of the log's lines after these"""
    decimals: int = -1
    """of whole hands of a hand history: the digits after the point of one unit; -1 for lines of ACPC logs"""


class _Text(NamedTuple):
    """A log inside a source."""

    label: str
    stream: IO[bytes]
    history: bool
    """hand histories, not ACPC lines"""


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
        return _Xz(stream)  # type: ignore[return-value]
    import pyarrow as pa

    opened: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    return opened


class _Xz(io.RawIOBase):
    """A stream of xz, whose header may ask for gigabytes: lzma's own file object would take them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size == 0:
            return b""
        while True:
            given = b""
            if self._decoder.eof:  # another stream may follow, after zeros that fill a block
                given = self._decoder.unused_data.lstrip(b"\0")
                while not given:
                    more = self._stream.read(BLOCK)
                    if not more:
                        return b""
                    given = more.lstrip(b"\0")
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
            elif self._decoder.needs_input:
                given = self._stream.read(BLOCK)
                if not given:
                    raise EOFError("the stream ends before its end marker")
            data = self._decoder.decompress(given, size if size > 0 else BLOCK)
            if data:
                return data


def _is_history(head: bytes) -> bool:
    """Whether the beginning of a file that is no ACPC log is that of a hand history."""
    from pipeline.formats.histories.notation import is_history  # only now: logs alone start faster without it

    return is_history(head)


def _inside(label: str, stream: IO[bytes], depth: int) -> Iterator[_Text | Skipped]:
    """The logs in a stream, which may be a log itself."""
    head = _head(stream)
    kind = _kind(head)
    if kind == "text":
        if not head:
            yield Skipped(label, "is empty")
        elif b"\0" in head and (head.count(b"\0") > head.count(b"\n") or not _LOG.search(head)):
            yield Skipped(label, "is a binary file, not a log")  # a few zeros in a log are damaged lines
        elif not (_LOG.search(head) or _is_history(head)):
            yield Skipped(label, "holds no line of an ACPC log and no hand history")
        else:
            yield _Text(label, _Peeked(head, stream), not _LOG.search(head))  # type: ignore[arg-type]
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
                name = f"{label}/{shown(member.filename)}"
                if member.is_dir():
                    continue
                if member.flag_bits & 1:
                    yield Skipped(name, "is encrypted")
                    continue
                if member.compress_type not in _ZIP_METHODS:
                    yield Skipped(name, f"is packed by zip method {member.compress_type}: unpack it first")
                    continue
                with archive.open(member) as inner:
                    yield from _inside(name, _Forward(inner), depth - 1)  # type: ignore[arg-type]
    elif kind == "tar":
        with tarfile.open(fileobj=whole, mode="r|", bufsize=BLOCK) as tar:
            for entry in tar:
                file = tar.extractfile(entry) if entry.isreg() else None
                if file is not None:
                    yield from _inside(f"{label}/{shown(entry.name)}", _Forward(file), depth - 1)  # type: ignore[arg-type]
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
    if source.is_piped:
        yield Counted(sys.stdin.buffer, hashed=True)
    elif source.url:
        with open_remote(source.url) as stream:
            yield Counted(stream, hashed=False)
    else:
        with Path(source.place).open("rb", buffering=0) as file:
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
            cut = _whole_hands if found.history else _with_ahead
            yield from cut(label, found.stream, stream, size)
    except lzma.LZMAError as error:
        if "Memory" in str(error):
            raise PipelineError(
                f"{label} needs more than {MEMORY >> 20} MB of memory to be unpacked: unpack it first"
            ) from None
        raise PipelineError(f"{label} is damaged or cut short: restore it or leave it out ({error})") from None
    except OSError as error:
        if error.errno is None:  # so bz2 and gzip report damage
            raise PipelineError(f"{label} is damaged or cut short: restore it or leave it out ({error})") from None
        raise PipelineError(f"cannot read {label}: {(error.strerror or str(error)).lower()}") from None
    except _DAMAGE as error:
        raise PipelineError(f"{label} is damaged or cut short: restore it or leave it out ({error})") from None


def _with_ahead(label: str, log: IO[bytes], source: Counted, size: int) -> Iterator[Piece]:
    """The pieces of a log, each as soon as enough of those after it has been read."""
    held: deque[Piece] = deque()
    behind = 0
    first = True
    for data in blocks(log, size):
        held.append(Piece(label, data, first, source.count))
        behind += len(data) if len(held) > 1 else 0
        first = False
        while len(held) > 1 and behind >= AHEAD:
            yield _completed(held)
            behind -= len(held[0].data)
    while held:
        yield _completed(held)


def _whole_hands(label: str, log: IO[bytes], source: Counted, size: int) -> Iterator[Piece]:
    """The hands of a history in pieces of about `size` bytes.

    Amounts are counted in the smallest unit that occurs in the file; in a file of more than `WINDOW` bytes, in each
    such part of it.
    """
    from pipeline.formats.histories.notation import decimals_of, split  # see `_is_history`

    rest, first, more = b"", True, True
    while more:
        data = [rest]
        have = len(rest)
        while have < WINDOW and (block := log.read(BLOCK)):
            data.append(block)
            have += len(block)
        more = have >= WINDOW
        window = b"".join(data)
        ends = split(np.frombuffer(window, dtype=np.uint8))[:, 2]
        last = int(ends[-2]) if more and len(ends) > 1 else len(window)
        rest = window[last:]
        decimals = decimals_of(window[:last])
        begin = 0
        for end in (*ends[ends < last].tolist(), last):
            if end - begin >= size or end == last:
                yield Piece(label, window[begin:end], first, source.count, decimals=decimals)
                begin, first = end, False


def _completed(held: deque[Piece]) -> Piece:
    """The first of some pieces with what comes after it."""
    piece = held.popleft()
    ahead = b""
    for later in held:
        ahead += later.data[: AHEAD - len(ahead)]
        if len(ahead) >= AHEAD:
            break
    return piece._replace(ahead=ahead)


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
