"""One run of ingest: log files and archives in, a dataset of validated decisions out, every line accounted for.

The run finds out what is new (`plan`), reads it in pieces (`readers`), lets threads turn these into parts (`shards`)
and makes the result the dataset's (`commit`). It does not matter in how many runs the logs came, how many threads
worked or how often a run was killed: the bytes are the same. On a cluster a worker does a whole batch as a run with one
thread would, into the same folder; the manifest stays with the run that was started here.
"""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pipeline.dataset.manifest import Batch, Manifest, Part
from pipeline.ingestion.commit import DatasetFolder, locked_dataset
from pipeline.ingestion.log_context import LogContext, context_after, first_context, history_context
from pipeline.ingestion.options import Options
from pipeline.ingestion.plan import HashedSource, PlannedBatch, batch_key, merge_sources, plan_batches
from pipeline.ingestion.readers import log_pieces, open_source
from pipeline.ingestion.shards import PartLines, RowRoom, Saving, Shard, begin_shard, compile_kernels, save_shard
from pipeline.ingestion.sources import LogSource, SkippedFile, check_unchanged, find_sources, fingerprint
from pipeline.ingestion.summary import Summary, check_dataset, fill_summary
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors
from pipeline.runtime.progress import Progress, no_progress

PART, PART_LINES = 12 << 20, 1 << 19
"""bytes and lines of logs in a part: the second bounds the memory that short lines take"""
CHUNK, CHUNK_LINES = 1 << 20, 1 << 17
"""bytes and lines of logs scanned at a time"""
MANY_BYTES = 4 << 20
"""of logs, from which building the strength tables pays"""
PIPED = "piped"
"""the key of standard input while it is read"""
DEFAULTS = Options()


@dataclass
class Done:
    """What there is of a batch."""

    batch: PlannedBatch
    skipped: list[list[str]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    @property
    def entry(self) -> Batch:
        """As the manifest has it."""
        return Batch(self.batch.key, self.batch.labels, self.skipped, [part.name for part in self.parts])


@dataclass
class Step:
    """A part of a batch on its way: scanned, then saved, or found done; None is the end of its batch."""

    done: Done
    read: int
    """bytes of sources read up to here"""
    part: Shard | Saving | Part | None


def ingest(
    inputs: Sequence[str | Path],
    out: Path | str,
    options: Options = DEFAULTS,
    *,
    workers: int | None = None,
    strict: bool = False,
    progress: Progress = no_progress,
    preparing: Progress = no_progress,
    cluster: Cluster | None = None,
) -> Summary:
    """Add logs to a dataset, making it if need be.

    Parameters
    ----------
    inputs: files, folders, patterns, URLs or `-` (standard input); plain, compressed or archives.
    out: the dataset's folder.
    options: what decides the rows (see `options`); those the dataset was made with if it exists.
    workers: threads; all processors by default.
    strict: whether a rejected line is an error.
    progress: called with hands so far and (estimated) hands in all.
    preparing: the same for strength tables, which may have to be built first.
    cluster: whose workers do the batches; they must see `inputs` and `out` under the same paths.

    Returns
    -------
    What the dataset holds and what this run did.
    """
    began = time.monotonic()
    workers = processors() if workers is None else workers
    if workers < 1:
        raise PipelineError(f"at least one worker is needed, not {workers}")
    sources, left_out = find_sources(inputs)
    out = Path(out)
    fresh = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked_dataset(out), ThreadPoolExecutor(workers) as pool:
            summary = _Run(out, options, pool, progress, preparing, cluster).run(sources, strict)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise PipelineError(
                f"no space left for {out}: free some and run again (what was there before is unharmed)"
            ) from None
        if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EACCES, errno.EROFS, errno.ENAMETOOLONG):
            raise PipelineError(f"cannot write to {out}: {(error.strerror or '').lower()}") from None
        raise
    finally:
        if fresh and out.is_dir() and not any(out.iterdir()):
            out.rmdir()
    summary.skipped += [(found.label, found.reason) for found in left_out]
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


class _Run:
    """One run of ingest into a dataset."""

    def __init__(
        self,
        out: Path,
        options: Options,
        pool: ThreadPoolExecutor,
        progress: Progress = no_progress,
        preparing: Progress = no_progress,
        cluster: Cluster | None = None,
    ) -> None:
        self.folder = DatasetFolder(out)
        self.options = options
        self.settings = options.settings
        self.pool = pool
        self.room = RowRoom()
        self.progress = progress
        self.preparing = preparing
        self.cluster = cluster
        self.hands = self.read = self.total = 0
        self.piped_print = ""

    def run(self, sources: list[LogSource], strict: bool) -> Summary:
        """Do everything."""
        before = self.folder.open(self.settings)
        files = [source for source in sources if not source.is_piped]
        prints = self.cluster.map(fingerprint, files) if self.cluster else list(self.pool.map(fingerprint, files))
        given = [HashedSource(source, sha256) for source, sha256 in zip(files, prints, strict=True)]
        self.total = sum(known.source.size for known in given)
        given += [self._piped(source) for source in sources if source.is_piped]
        summary = Summary()
        taken, added = merge_sources(given, before, summary)
        batches = plan_batches(taken, before, self.settings)
        kept = self._kept(before)
        new = [batch for batch in batches if batch.key not in kept]
        self.total = sum(batch.size for batch in new)
        if self.options.strength and self.total >= MANY_BYTES:
            ensure_tables(self.preparing)
        if new:
            compile_kernels()
        kept |= {
            done.batch.key: (done.entry, done.parts) for done in (self._spread if self.cluster else self._work)(new)
        }
        after = self.folder.next_manifest([kept[batch.key] for batch in batches], taken, self.settings)
        check_dataset(after, added, self.options, strict)
        self.folder.commit(before, after)
        fill_summary(after, summary)
        return summary

    def _kept(self, before: Manifest) -> dict[str, tuple[Batch, list[Part]]]:
        """The batches that are in the dataset already, by key."""
        parts = {part.name: part for part in before.parts}
        return {batch.key: (batch, [parts[name] for name in batch.parts]) for batch in before.batches}

    def _work(self, batches: list[PlannedBatch]) -> list[Done]:
        """Ingest the sources of batches into parts, or find them done.

        While a part is being written, the next is scanned and the one after that is read.
        """
        finished: list[Done] = []
        for step in _ahead(map(self._save, _ahead(self._begin(batches)))):
            if step.part is None:
                self.folder.write_note(step.done.entry, step.done.batch.key)
                finished.append(step.done)
                continue
            part = self._finish(step.part, step.done.batch) if isinstance(step.part, Saving) else step.part
            assert isinstance(part, Part)
            step.done.parts.append(part)
            self.hands += sum(log.hands for log in part.logs.values())
            self.progress(self.hands, round(self.hands * self.total / step.read) if step.read else 0)
        return finished

    def _spread(self, batches: list[PlannedBatch]) -> list[Done]:
        """What `_work` does, on the workers of a cluster: a batch each, the largest first."""
        assert self.cluster
        out = self.folder.out.resolve()

        def count(done: Done) -> None:
            self.hands += sum(log.hands for part in done.parts for log in part.logs.values())
            self.read += done.batch.size
            self.progress(self.hands, round(self.hands * self.total / self.read) if self.read else 0)

        order = sorted(range(len(batches)), key=lambda at: -batches[at].size)
        items = [(out, self.options, batches[at], self.total >= MANY_BYTES) for at in order]
        found = dict(zip(order, self.cluster.map(_ingest_batch, items, progress=count), strict=True))
        return [found[at] for at in range(len(batches))]

    def _begin(self, batches: list[PlannedBatch]) -> Iterator[Step]:
        """Read the parts of batches and start to scan them."""
        for batch in batches:
            done = Done(batch)
            entry: Batch | None = self.folder.read_note(Batch, batch.key)
            parts = [self.folder.read_note(Part, name) for name in entry.parts] if entry else [None]
            if entry and all(parts):
                done.skipped = entry.skipped
                self.read += batch.size
                for part in parts:
                    yield Step(done, self.read, part)
            else:
                for number, (files, chunks) in enumerate(self._parts(batch, done.skipped)):
                    name = f"{batch.key}-{number:03d}"
                    part = self.folder.read_note(Part, name)
                    yield Step(done, self.read, part or begin_shard(name, files, chunks, self.options, self.pool))
            yield Step(done, self.read, None)

    def _save(self, step: Step) -> Step:
        """Start to write a part when it has been scanned."""
        if isinstance(step.part, Shard):
            about = {
                "parameters": vars(self.settings),
                "sources": [[known.source.label, known.sha256] for known in step.done.batch.members],
            }
            step.part = save_shard(step.part, self.folder.staging, self.options, about, self.pool, self.room)
        return step

    def _finish(self, saving: Saving, batch: PlannedBatch) -> Part:
        """Wait until a part is written, and write that down."""
        files = [file.result() for file in saving.files]
        self.room.give_back(saving.memory)
        part = Part(saving.name, batch.key, files, saving.games, saving.logs)
        self.folder.write_note(part, part.name)
        return part

    def _piped(self, source: LogSource) -> HashedSource:
        """Ingest standard input, which is known by its bytes: its parts get their names when it has been read."""
        staging = self.folder.staging
        for path in sorted(staging.rglob(f"{PIPED}*")):
            path.unlink()
        (done,) = self._work([PlannedBatch(PIPED, [HashedSource(source, "")])])
        known = HashedSource(replace(source, label=f"{source.label} {self.piped_print[:8]}"), self.piped_print)
        key = batch_key(self.settings, [known])
        renamed: list[Part] = []
        for part in done.parts:
            (staging / f"{part.name}.json").unlink()
            files = []
            for file in part.files:
                new = file.path.replace(PIPED, key)
                (staging / file.path).rename(staging / new)
                files.append(replace(file, path=new))
            renamed.append(replace(part, name=part.name.replace(PIPED, key), batch=key, files=files))
            self.folder.write_note(renamed[-1], renamed[-1].name)
        (staging / f"{PIPED}.json").unlink()
        self.folder.write_note(Done(PlannedBatch(key, [known]), done.skipped, renamed).entry, key)
        return known

    def _parts(
        self, batch: PlannedBatch, skipped: list[list[str]]
    ) -> Iterator[tuple[list[str], list[list[PartLines]]]]:
        """The lines of a batch, cut into parts and chunks."""
        part = _Cut()
        for known in batch.members:
            before = self.read
            for lines, read in self._lines(known.source, skipped):
                if part.bytes >= PART or part.lines >= PART_LINES:
                    yield part.files, part.chunks
                    part = _Cut()
                part.add(lines)
                self.read = before + min(read, known.source.size)
            self.read = before + known.source.size
        if part.files:
            yield part.files, part.chunks

    def _lines(self, source: LogSource, skipped: list[list[str]]) -> Iterator[tuple[PartLines, int]]:
        """The lines of a source with what governs them, and how many of its bytes have been read."""
        line = 1
        governed: LogContext | None = None
        with open_source(source) as stream:
            for found in log_pieces(source, stream):
                if isinstance(found, SkippedFile):
                    if source.explicit and found.label == source.label:
                        raise PipelineError(f"{found.label} {found.reason}")
                    skipped.append([found.label, found.reason])
                    continue
                if found.decimals >= 0:
                    line = 1 if found.first else line
                    hands = np.frombuffer(found.data, dtype=np.uint8)
                    whose = history_context(found.label)
                    yield PartLines(found.label, 0, line, whose, hands, b"", found.decimals), found.read
                    line += found.data.count(b"\n")
                    continue
                if found.first or governed is None:
                    line, governed = 1, first_context(self.options, found.label, found.data, found.ahead)
                data = np.frombuffer(found.data, dtype=np.uint8)
                yield PartLines(found.label, 0, line, governed, data, found.ahead), found.read
                line += found.data.count(b"\n")
                governed = context_after(self.options, governed, found.data, found.ahead)
            if source.is_piped:
                self.piped_print = stream.fingerprint()
        check_unchanged(source)


def _ingest_batch(item: tuple[Path, Options, PlannedBatch, bool]) -> Done:
    """Ingest one batch into the folder of a run that was started elsewhere."""
    out, options, batch, many = item
    if options.strength and many:
        ensure_tables(no_progress)
    with ThreadPoolExecutor(1) as pool:
        (done,) = _Run(out, options, pool)._work([batch])
    return done


class _Cut:
    """A part's files and the chunks of their lines, as they come."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.chunks: list[list[PartLines]] = [[]]
        self.bytes = self.lines = self.chunk_bytes = self.chunk_lines = 0

    def add(self, lines: PartLines) -> None:
        """Take some lines more."""
        count = int(np.count_nonzero(lines.data == 10))
        if self.chunk_bytes >= CHUNK or self.chunk_lines >= CHUNK_LINES:
            self.chunks.append([])
            self.chunk_bytes = self.chunk_lines = 0
        if not self.files or self.files[-1] != lines.label:
            self.files.append(lines.label)
        lines.file = len(self.files) - 1
        self.chunks[-1].append(lines)
        self.bytes += len(lines.data)
        self.chunk_bytes += len(lines.data)
        self.lines += count
        self.chunk_lines += count


def _ahead(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps, each as soon as the next part is under way."""
    held: deque[Step] = deque()
    for step in steps:
        held.append(step)
        while sum(one.part is not None for one in held) > 1:
            yield held.popleft()
    yield from held
