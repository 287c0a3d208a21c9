"""Logs as streams: sources in, pieces of whole lines out.

A source is a file on disk, a URL or standard input (`-`). It may be plain text, compressed (gzip, bzip2, xz, zstd) or
an archive (tar, zip) of any of these: its kind is seen from its first bytes, not from its name. Everything is read as a
stream in pieces of bounded size; nothing is unpacked to disk and no name from an archive is used as a path.

`log_pieces` yields the logs inside a source, whole lines at a time, each piece with the beginning of those that follow.
A line longer than `acpc.MAX_LINE` is cut there (and will be rejected), so a line of a gigabyte costs no memory;
archives that need more than `MEMORY` to be unpacked are refused.
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
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np

from pipeline.formats.acpc import MAX_LINE
from pipeline.ingestion.sources import LogSource, SkippedFile, open_remote, path_at, printable
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
HEADERS = 1 << 20
"""bytes of the headers of one member of a tar archive: long names, attributes, maps of sparse files"""
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}

_LOG = re.compile(rb"^(?:STATE:|SCORE:|# name/game/|[!-9;-{}~]{1,64}(?:\|[!-9;-{}~]{1,64})+:\d+:)", re.MULTILINE)
_LONG_NUMBER = re.compile(rb"[0-9]{256}")
"""`tarfile` of Python before 3.11.10 looks for attributes in a time that grows with the square of such numbers"""
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
"""exceptions of the standard library for damaged archives"""


class LogPiece(NamedTuple):
    """Whole lines of a log: its label, whether these are its first, and the bytes of the source read so far."""

    label: str
    data: bytes
    first: bool
    read: int
    ahead: bytes = b""
    """the first `AHEAD` bytes of the log's lines after these"""
    decimals: int = -1
    """of whole hands of a hand history: the digits after the point of one unit; -1 for lines of ACPC logs"""
    site: str = ""
    """of text of a poker site: which, see `sites.SITES`"""


class _LogStream(NamedTuple):
    """A log inside a source."""

    label: str
    stream: IO[bytes]
    history: str
    """`phh` or a poker site for hand histories, nothing for ACPC lines"""
    packed: bool
    """compressed or in an archive"""


class _PeekedStream(io.RawIOBase):
    """A stream whose first bytes have been read already, and are read again."""

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


def _read_head(stream: IO[bytes]) -> bytes:
    """Return the first bytes of a stream, `HEAD` of them if there are so many."""
    head = b""
    while len(head) < HEAD:
        more = stream.read(HEAD - len(head))
        if not more:
            break
        head += more
    return head


def _file_kind(head: bytes) -> str:
    """Return the kind of a file by its first bytes: an entry of `_MAGIC`, `tar` or `text`."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return "tar" if head[257:262] == b"ustar" else "text"


def _decompress(kind: str, stream: IO[bytes]) -> IO[bytes]:
    """Open a compressed stream."""
    if kind == "gzip":
        return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]
    if kind == "bzip2":
        return bz2.BZ2File(stream)
    if kind == "xz":
        return _XzStream(stream)  # type: ignore[return-value]
    import pyarrow as pa

    decompressed: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    return decompressed


class _XzStream(io.RawIOBase):
    """A stream of xz that refuses headers which ask for gigabytes: lzma's own file object would take them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size == 0:
            return b""
        while True:
            packed = b""
            if self._decoder.eof:  # another stream may follow, after zeros that fill a block
                packed = self._decoder.unused_data.lstrip(b"\0")
                while not packed:
                    more = self._stream.read(BLOCK)
                    if not more:
                        return b""
                    packed = more.lstrip(b"\0")
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
            elif self._decoder.needs_input:
                packed = self._stream.read(BLOCK)
                if not packed:
                    raise EOFError("the stream ends before its end marker")
            data = self._decoder.decompress(packed, size if size > 0 else BLOCK)
            if data:
                return data


def _history_kind(label: str, head: bytes) -> str | SkippedFile:
    """Return which hand history a file that is no ACPC log begins like: `phh` or a poker site; why it is none."""
    from pipeline.formats.histories import sites  # only now: logs alone start faster without it
    from pipeline.formats.histories.notation import is_history

    if is_history(head):
        return "phh"
    if site := sites.site_of(head):
        return site
    if name := sites.unread_site(head):
        read = ", ".join(sites.SITES)
        return SkippedFile(label, f"is a hand history of {name}, which is not read (those of {read} are)")
    return SkippedFile(label, "holds no line of an ACPC log and no hand history")


def _find_logs(label: str, stream: IO[bytes], depth: int) -> Iterator[_LogStream | SkippedFile]:
    """Yield the logs in a stream, which may be a log itself, an archive or compressed."""
    head = _read_head(stream)
    kind = _file_kind(head)
    if kind == "text":
        if not head:
            yield SkippedFile(label, "is empty")
        elif b"\0" in head and (head.count(b"\0") > head.count(b"\n") or not _LOG.search(head)):
            yield SkippedFile(label, "is a binary file, not a log")  # a few zeros in a log are damaged lines
        else:
            history = "" if _LOG.search(head) else _history_kind(label, head)
            log: Any = _PeekedStream(head, stream)
            yield history if isinstance(history, SkippedFile) else _LogStream(label, log, history, depth < DEPTH)
        return
    if depth == 0:
        yield SkippedFile(label, f"lies under more than {DEPTH} layers of archives")
        return
    whole: Any = _PeekedStream(head, stream)
    if kind == "zip":
        if not stream.seekable():
            yield SkippedFile(label, "is a zip archive inside another archive or pipe, where it cannot be read")
            return
        stream.seek(0)
        with zipfile.ZipFile(stream) as archive:
            for member in sorted(archive.infolist(), key=lambda info: info.header_offset):
                name = f"{label}/{printable(member.filename)}"
                if member.is_dir():
                    continue
                if member.flag_bits & 1:
                    yield SkippedFile(name, "is encrypted")
                    continue
                if member.compress_type not in _ZIP_METHODS:
                    yield SkippedFile(name, f"is packed by zip method {member.compress_type}: unpack it first")
                    continue
                with archive.open(member) as inner:
                    yield from _find_logs(name, _ForwardStream(inner), depth - 1)  # type: ignore[arg-type]
    elif kind == "tar":
        with _TarArchive(fileobj=_TarStream(whole), mode="r") as tar:
            while (entry := tar.next()) is not None:
                name = f"{label}/{printable(entry.name)}"
                if entry.issparse():
                    yield SkippedFile(name, "is a sparse file in an archive: unpack it first")
                    continue
                file = tar.extractfile(entry) if entry.isreg() else None
                if file is not None:
                    yield from _find_logs(name, _ForwardStream(file), depth - 1)  # type: ignore[arg-type]
    else:
        yield from _find_logs(label, _ForwardStream(_decompress(kind, whole)), depth - 1)  # type: ignore[arg-type]


class _TarStream(io.RawIOBase):
    """The bytes of a tar archive, read forward only, in which the headers of a member are bounded.

    `tarfile` reads a long name or the attributes of a member whole at whatever size their header claims, and a map of
    holes as long as it goes on.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._position = 0
        self.header_bytes: int | None = None
        """read of the headers of the next member; None while its contents are read"""
        self.last_header = b""

    def read(self, size: int = -1) -> bytes:
        if self.header_bytes is not None:
            self.header_bytes += size
            if not 0 <= self.header_bytes <= HEADERS:
                raise tarfile.ReadError(f"the headers of a member take more than {HEADERS >> 20} MB")
        pieces = []
        while size > 0 and (piece := self._stream.read(min(size, BLOCK))):
            pieces.append(piece)
            size -= len(piece)
            self._position += len(piece)
        data = b"".join(pieces)
        if self.header_bytes is not None:
            self.last_header = data
            if _LONG_NUMBER.search(data):
                raise tarfile.ReadError("a number in the headers of a member has more than 255 digits")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence or offset < self._position:
            raise tarfile.StreamError("a member begins before the end of the one before it")
        while self._position < offset and (piece := self._stream.read(min(offset - self._position, BLOCK))):
            self._position += len(piece)
        return self._position

    def tell(self) -> int:
        return self._position


class _TarArchive(tarfile.TarFile):
    """A tar archive that remembers no member but the last, reads bounded headers and ends at zeros alone."""

    fileobj: _TarStream
    firstmember: tarfile.TarInfo | None
    members: list[tarfile.TarInfo]

    def next(self) -> tarfile.TarInfo | None:
        if self.firstmember is not None:  # read when the archive was opened
            return super().next()
        self.members = []
        self.fileobj.header_bytes = 0
        member = super().next()
        self.fileobj.header_bytes = None
        if member is None and self.fileobj.last_header.strip(b"\0"):  # `tarfile` takes a damaged header for the end
            raise tarfile.ReadError("a header is damaged")
        if sum(len(name) + len(value) for name, value in self.pax_headers.items()) > HEADERS:
            raise tarfile.ReadError(f"the attributes of all members take more than {HEADERS >> 20} MB")
        return member


class _ForwardStream(io.RawIOBase):
    """A stream without seek: libraries would go back in what cannot be read twice."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(self._stream.read(size))


class CountedStream(io.RawIOBase):
    """A source's bytes, counted and (for standard input) hashed as they are read."""

    def __init__(self, stream: IO[bytes], hashed: bool) -> None:
        self._stream = stream
        self._digest = hashlib.sha256() if hashed else None
        self.count = 0
        self.packed: list[list[str]] = []
        """logs that were compressed or in archives, each with the SHA-256 of its bytes: see `log_pieces`"""

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
        """Read what is left; return the SHA-256 of all bytes."""
        while self.read(BLOCK):
            pass
        return self._digest.hexdigest() if self._digest else ""


@contextmanager
def open_source(source: LogSource) -> Iterator[CountedStream]:
    """Open the bytes of a source."""
    if source.is_piped:
        yield CountedStream(sys.stdin.buffer, hashed=True)
    elif source.url:
        with open_remote(source.url) as stream:
            yield CountedStream(stream, hashed=False)
    else:
        with path_at(source.place).open("rb", buffering=0) as file:
            yield CountedStream(file, hashed=False)


def log_pieces(source: LogSource, stream: CountedStream, size: int = BLOCK) -> Iterator[LogPiece | SkippedFile]:
    """Yield the logs inside a source in pieces of about `size` bytes, and the files in it that are no logs.

    A log that was compressed or in an archive is added to `stream.packed` when all of it has been read.
    """
    label = source.label
    try:
        for log in _find_logs(label, stream, DEPTH):  # type: ignore[arg-type]
            label = log.label
            if isinstance(log, SkippedFile):
                yield log
                continue
            cut = partial(_cut_history, log.history) if log.history else _cut_lines
            if not log.packed:  # its bytes are the source's, whose SHA-256 is known
                yield from cut(label, log.stream, stream, size)
                continue
            hashed: Any = CountedStream(log.stream, hashed=True)
            yield from cut(label, hashed, stream, size)
            stream.packed.append([label, hashed.fingerprint()])
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


def _cut_lines(label: str, log: IO[bytes], source: CountedStream, size: int) -> Iterator[LogPiece]:
    """Yield the pieces of a log, each as soon as enough of those after it has been read."""
    waiting: deque[LogPiece] = deque()
    behind = 0
    first = True
    for data in line_blocks(log, size):
        waiting.append(LogPiece(label, data, first, source.count))
        behind += len(data) if len(waiting) > 1 else 0
        first = False
        while len(waiting) > 1 and behind >= AHEAD:
            yield _pop_with_ahead(waiting)
            behind -= len(waiting[0].data)
    while waiting:
        yield _pop_with_ahead(waiting)


def _cut_history(kind: str, label: str, log: IO[bytes], source: CountedStream, size: int) -> Iterator[LogPiece]:
    """Yield the hands of a history in pieces of about `size` bytes.

    Amounts are counted in the smallest unit that occurs in the file; in a file of more than `WINDOW` bytes, in each
    such part of it.
    """
    from pipeline.formats.histories.notation import decimals_of, split_hands  # see `_history_kind`
    from pipeline.formats.histories.sites import hand_starts, site_decimals

    site = "" if kind == "phh" else kind
    rest, first, more = b"", True, True
    while more:
        data = [rest]
        have = len(rest)
        while have < WINDOW and (block := log.read(BLOCK)):
            data.append(block)
            have += len(block)
        more = have >= WINDOW
        window = b"".join(data)
        if site:
            ends = np.array([*hand_starts(window, site)[1:], len(window)], dtype=np.int64)
        else:
            ends = split_hands(np.frombuffer(window, dtype=np.uint8))[:, 2]
        last = int(ends[-2]) if more and len(ends) > 1 else len(window)
        rest = window[last:]
        decimals = site_decimals(window[:last]) if site else decimals_of(window[:last])
        begin = 0
        for end in (*ends[ends < last].tolist(), last):
            if end - begin >= size or end == last:
                yield LogPiece(label, window[begin:end], first, source.count, decimals=decimals, site=site)
                begin, first = end, False


def _pop_with_ahead(waiting: deque[LogPiece]) -> LogPiece:
    """Take the first of some pieces and give it the beginning of those after it."""
    piece = waiting.popleft()
    ahead = b""
    for later in waiting:
        ahead += later.data[: AHEAD - len(ahead)]
        if len(ahead) >= AHEAD:
            break
    return piece._replace(ahead=ahead)


def line_blocks(stream: IO[bytes], size: int = BLOCK) -> Iterator[bytes]:
    """Yield whole lines of a stream in pieces of about `size` bytes; lines that are too long are cut one byte after."""
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
