"""Batches: their sources are read, cut into parts, and the parts built, several at a time.

`BatchReader` reads the sources of a batch and cuts their lines into parts and chunks of bounded size; `ingest_batches`
builds the parts on threads while it reads on. What an earlier run has finished is taken from its notes. Parts and
batches end up under `.unfinished` in the dataset's folder, where `commit` puts them in place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.dataset.manifest import Batch, Part
from pipeline.ingestion.commit import DatasetFolder
from pipeline.ingestion.log_context import LogContext, context_after, first_context, history_context
from pipeline.ingestion.options import Options
from pipeline.ingestion.parts import PartLines, PartText, build_part
from pipeline.ingestion.plan import PlannedBatch
from pipeline.ingestion.readers import CountedStream, LogPiece, log_pieces, open_source
from pipeline.ingestion.sources import LogSource, SkippedFile, check_unchanged, confirm
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress

PART_BYTES, PART_LINES, PART_FILES = 12 << 20, 1 << 19, 1 << 12
"""of logs in a part: the others bound the memory that short lines and short logs take"""
CHUNK_BYTES, CHUNK_LINES = 1 << 20, 1 << 17
"""of logs scanned at a time"""
NAMED_SOURCES = 1_000
"""sources that the files of a part name in their metadata"""
MOST_SKIPPED = 100_000
"""files of a batch that are no logs"""
PARTS_BUILT = 2
"""at a time: while one is being written, the next is scanned and the one after that is read"""


class FinishedBatch(NamedTuple):
    """A batch whose parts have been written and noted."""

    key: str
    hands: int


@dataclass
class HandProgress:
    """Hands of finished parts, reported with an estimate of all hands."""

    report: Progress
    total_bytes: int
    """of all sources"""
    hands: int = 0

    def add(self, hands: int, bytes_read: int) -> None:
        """Report that so many more hands are finished, up to which so many bytes have been read."""
        self.hands += hands
        self.report(self.hands, round(self.hands * self.total_bytes / bytes_read) if bytes_read else 0)


@dataclass
class BatchReader:
    """The sources of a batch as parts."""

    batch: PlannedBatch
    options: Options
    skipped: list[list[str]] = field(default_factory=list)
    """files that are no logs, and why"""
    bytes_read: int = 0
    packed: list[list[str]] = field(default_factory=list)
    """logs since the last part that are compressed or in archives, each with the SHA-256 of its bytes"""
    piped_sha256: str = ""
    """of standard input, when it has been read"""

    def parts(self) -> Iterator[PartText]:
        """Cut the lines of the sources into parts and chunks; lines of several files may be in one."""
        part = _PartCutter()
        for member in self.batch.members:
            before = self.bytes_read
            for piece, lines in self._lines(confirm(member.source, member.sha256)):
                if part.is_full:
                    yield part.finish(self.bytes_read, self._take_packed())
                    part = _PartCutter()
                part.add(lines)
                self.bytes_read = before + min(piece.read, member.source.size)
            self.bytes_read = before + member.source.size
        if part.text.files:
            yield part.finish(self.bytes_read, self._take_packed())

    def _collect_packed(self, stream: CountedStream) -> None:
        """Take over the packed logs that a stream has seen the end of."""
        self.packed += stream.packed
        stream.packed.clear()

    def _take_packed(self) -> list[list[str]]:
        """Return the packed logs that have ended since this was called last."""
        packed, self.packed = self.packed, []
        return packed

    def _lines(self, source: LogSource) -> Iterator[tuple[LogPiece, PartLines]]:
        """Yield the pieces of a source's logs and hand histories, each with its lines and their context."""
        line = 1
        context: LogContext | None = None
        with open_source(source) as stream:
            for piece in log_pieces(source, stream):
                self._collect_packed(stream)
                if isinstance(piece, SkippedFile):
                    if source.explicit and piece.label == source.label:
                        raise PipelineError(f"{piece.label} {piece.reason}")
                    self.skipped.append([piece.label, piece.reason])
                    if len(self.skipped) > MOST_SKIPPED:  # each takes some hundred bytes here and in the manifest
                        raise PipelineError(
                            f"{source.label} has more than {MOST_SKIPPED:,} files that are no logs: unpack it and give "
                            "its logs alone"
                        )
                    continue
                line = 1 if piece.first else line
                if piece.decimals >= 0:
                    here = history_context(piece.label)
                else:
                    if piece.first or context is None:
                        line, context = 1, first_context(self.options, piece.label, piece.data, piece.ahead)
                    here = context
                data = np.frombuffer(piece.data, dtype=np.uint8)
                yield piece, PartLines(piece.label, 0, line, here, data, piece.ahead, piece.decimals, piece.site)
                line += piece.data.count(b"\n")
                if piece.decimals < 0:
                    context = context_after(self.options, here, piece.data, piece.ahead)
            self._collect_packed(stream)
            if source.is_piped:
                self.piped_sha256 = stream.fingerprint()
        check_unchanged(source)


class _PartCutter:
    """A part that takes lines until it is full."""

    def __init__(self) -> None:
        self.text = PartText(chunks=[[]])
        self.bytes = self.lines = self.chunk_bytes = self.chunk_lines = 0

    @property
    def is_full(self) -> bool:
        """Return whether the next lines belong to another part."""
        return self.bytes >= PART_BYTES or self.lines >= PART_LINES or len(self.text.files) >= PART_FILES

    def add(self, lines: PartLines) -> None:
        """Add lines to the last chunk, or to a new one if that is full."""
        count = int(np.count_nonzero(lines.data == ord("\n")))
        text = self.text
        if self.chunk_bytes >= CHUNK_BYTES or self.chunk_lines >= CHUNK_LINES:
            text.chunks.append([])
            self.chunk_bytes = self.chunk_lines = 0
        if not text.files or text.files[-1] != lines.label:
            text.files.append(lines.label)
        text.chunks[-1].append(lines._replace(file=len(text.files) - 1))
        self.bytes += len(lines.data)
        self.chunk_bytes += len(lines.data)
        self.lines += count
        self.chunk_lines += count

    def finish(self, bytes_read: int, packed: list[list[str]]) -> PartText:
        """Return the part, up to whose end so many bytes of the batch have been read and these packed logs ended."""
        self.text.bytes_read, self.text.packed = bytes_read, packed
        return self.text


def ingest_batches(
    readers: Sequence[BatchReader], folder: DatasetFolder, pool: Executor, progress: HandProgress
) -> list[FinishedBatch]:
    """Read batches and build their parts; return them finished, in the same order."""
    finished: list[Future[FinishedBatch]] = []
    building: deque[tuple[Future[int], int]] = deque()
    bytes_before = 0

    def report_oldest() -> None:
        hands, bytes_read = building.popleft()
        progress.add(hands.result(), bytes_read)

    with ThreadPoolExecutor(PARTS_BUILT) as builders:
        for reader in readers:
            batch = reader.batch
            if noted := _read_notes(batch, folder):
                finished.append(builders.submit(lambda noted=noted: noted))  # type: ignore[misc]
                bytes_before += batch.size
                progress.add(noted.hands, bytes_before)
                continue
            parts: dict[str, Future[int]] = {}
            for number, text in enumerate(reader.parts()):
                name = f"{batch.key}-{number:03d}"
                parts[name] = builders.submit(_build_or_read_note, name, reader, text, folder, pool)
                building.append((parts[name], bytes_before + text.bytes_read))
                while len(building) > PARTS_BUILT:
                    report_oldest()
            bytes_before += batch.size
            # builders take work in order, so the parts are under way or done when this begins to wait for them
            finished.append(builders.submit(_finish_batch, reader, parts, folder))
        while building:
            report_oldest()
    return [batch.result() for batch in finished]


def _read_notes(batch: PlannedBatch, folder: DatasetFolder) -> FinishedBatch | None:
    """Return a batch that an earlier run finished; None if it or one of its parts is missing."""
    entry: Batch | None = folder.read_note(Batch, batch.key)
    parts = [folder.read_note(Part, name) for name in entry.parts] if entry else []
    return FinishedBatch(batch.key, sum(part.hands for part in parts)) if entry and all(parts) else None


def _build_or_read_note(name: str, reader: BatchReader, text: PartText, folder: DatasetFolder, pool: Executor) -> int:
    """Build a part and note that it is finished, unless an earlier run did; return its number of hands."""
    part: Part | None = folder.read_note(Part, name)
    if part is None:
        about = {
            "parameters": vars(reader.options.settings),
            "sources": [[member.source.label, member.sha256] for member in reader.batch.members[:NAMED_SOURCES]],
        }
        part = build_part(name, reader.batch.key, text, folder.staging, reader.options, about, pool)
        folder.write_note(part, part.name)
    return part.hands


def _finish_batch(reader: BatchReader, parts: dict[str, Future[int]], folder: DatasetFolder) -> FinishedBatch:
    """Wait for the parts of a batch that was read to its end and note that it is finished."""
    hands, batch = sum(part.result() for part in parts.values()), reader.batch
    folder.write_note(Batch(batch.key, batch.labels, reader.skipped, list(parts), []), batch.key)
    return FinishedBatch(batch.key, hands)
