"""One run of ingest: log files and archives in, a dataset of validated decisions out, every line accounted for.

The run hashes its sources, plans which batches the dataset will have (`plan`), builds those that are not there yet
(`batches`), and commits the result (`commit`). It does not matter in how many runs the logs came, how many threads
worked or how often a run was killed: the bytes are the same. On a cluster a worker does a whole batch as a run with one
thread would, into the same folder; the manifest stays with the run that was started here.
"""

from __future__ import annotations

import errno
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pipeline.dataset.manifest import MANIFEST, Batch, Part
from pipeline.ingestion.batches import BatchReader, FinishedBatch, HandProgress, ingest_batches
from pipeline.ingestion.commit import DatasetFolder, locked_dataset
from pipeline.ingestion.options import Options, options
from pipeline.ingestion.parts import compile_kernels
from pipeline.ingestion.plan import HashedSource, PlannedBatch, batch_key, merge_sources, plan_batches
from pipeline.ingestion.sources import LogSource, find_sources, fingerprint
from pipeline.ingestion.summary import DatasetTotals, Summary
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors
from pipeline.runtime.progress import Progress, no_progress

TABLES_BYTES = 4 << 20
"""of logs, from which building the strength tables pays"""
PIPED = "piped"
"""the key of standard input's batch while it is read"""
HASHED = 256
"""files hashed in one task: of a million tasks each takes more memory than the file's name"""
DEFAULTS = Options()


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
    The dataset's totals, and what this run added or left out.
    """
    began = time.monotonic()
    workers = processors() if workers is None else workers
    if workers < 1:
        raise PipelineError(f"at least one worker is needed, not {workers}")
    out = Path(out)
    sources, left_out = find_sources(inputs, out)
    with _dataset_folder(out) as folder, ThreadPoolExecutor(workers) as pool:
        before = folder.open(options.settings)
        summary = Summary()
        hashed = _hash_sources(sources, folder, options, pool, progress, cluster)
        merged, added = merge_sources(hashed, before, summary)
        batches = plan_batches(merged, before, options.settings, folder.broken)
        ingested = before.batch_keys - folder.broken
        new = [batch for batch in batches if batch.key not in ingested]
        total = sum(batch.size for batch in new)
        use_tables = options.strength and total >= TABLES_BYTES
        if use_tables:
            ensure_tables(preparing)
        if new:
            compile_kernels()
        hand_progress = HandProgress(progress, total)
        if cluster:
            _spread_batches(new, folder, options, use_tables, hand_progress, cluster)
        else:
            ingest_batches([BatchReader(batch, options) for batch in new], folder, pool, hand_progress)
        totals = DatasetTotals(options, added)
        after = folder.next_manifest(before, batches, merged, options.settings, totals.add)
        totals.check(strict)
        folder.commit(before, after)
        totals.fill(summary, after)
    summary.skipped += [(skipped.label, skipped.reason) for skipped in left_out]
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


@contextmanager
def _dataset_folder(out: Path) -> Iterator[DatasetFolder]:
    """Make and lock a dataset's folder; a new one that stays empty is removed, errors of the disk are explained."""
    is_new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked_dataset(out) as folder:
            try:
                yield folder
            except FileNotFoundError:
                folder.check_place()
                raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise PipelineError(
                f"no space left for {out}: free some and run again (what was there before is unharmed)"
            ) from None
        if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EACCES, errno.EROFS, errno.ENAMETOOLONG):
            raise PipelineError(f"cannot write to {out}: {(error.strerror or '').lower()}") from None
        raise
    finally:
        if is_new and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _hash_sources(
    sources: Sequence[LogSource],
    folder: DatasetFolder,
    options: Options,
    pool: ThreadPoolExecutor,
    progress: Progress,
    cluster: Cluster | None,
) -> list[HashedSource]:
    """Return sources with their fingerprints; standard input is ingested to get its own."""
    files = [source for source in sources if not source.is_piped]
    some = [files[first : first + HASHED] for first in range(0, len(files), HASHED)]
    hashes = cluster.map(_hash_files, some) if cluster else pool.map(_hash_files, some)
    hashed = list(map(HashedSource, files, chain.from_iterable(hashes)))
    total = sum(source.size for source in files)
    return hashed + [
        _ingest_piped(source, folder, options, pool, HandProgress(progress, total))
        for source in sources
        if source.is_piped
    ]


def _hash_files(files: Sequence[LogSource]) -> list[str]:
    """Return the fingerprints of some files."""
    return list(map(fingerprint, files))


def _ingest_piped(
    source: LogSource, folder: DatasetFolder, options: Options, pool: ThreadPoolExecutor, progress: HandProgress
) -> HashedSource:
    """Ingest standard input and return it with its fingerprint, which gives its batch and parts their names then."""
    staging = folder.staging
    for path in sorted(staging.rglob(f"{PIPED}*")):
        path.unlink()
    reader = BatchReader(PlannedBatch(PIPED, [HashedSource(source, "")]), options)
    ingest_batches([reader], folder, pool, progress)
    sha256 = reader.piped_sha256
    hashed = HashedSource(replace(source, label=f"{source.label} {sha256[:8]}"), sha256)
    key = batch_key(options.settings, [hashed])
    entry: Batch = folder.read_note(Batch, PIPED)
    names = []
    for piped_name in entry.parts:
        part: Part = folder.read_note(Part, piped_name, trusted=True)
        (staging / f"{part.name}.json").unlink()
        files = []
        for file in part.files:
            name = file.path.replace(PIPED, key)
            (staging / file.path).rename(staging / name)
            files.append(replace(file, path=name))
        names.append(part.name.replace(PIPED, key))
        folder.write_note(replace(part, name=names[-1], batch=key, files=files), names[-1])
    (staging / f"{PIPED}.json").unlink()
    folder.write_note(replace(entry, key=key, sources=[hashed.source.label], parts=names), key)
    return hashed


def _spread_batches(
    batches: Sequence[PlannedBatch],
    folder: DatasetFolder,
    options: Options,
    use_tables: bool,
    progress: HandProgress,
    cluster: Cluster,
) -> list[FinishedBatch]:
    """Ingest batches on the workers of a cluster, one each, the largest first."""
    sizes = {batch.key: batch.size for batch in batches}
    bytes_read = 0

    def count(finished: FinishedBatch) -> None:
        nonlocal bytes_read
        bytes_read += sizes[finished.key]
        progress.add(finished.hands, bytes_read)

    out = folder.out.resolve()
    largest_first = sorted(batches, key=lambda batch: -batch.size)
    return cluster.map(_ingest_batch, [(out, options, batch, use_tables) for batch in largest_first], progress=count)


def _ingest_batch(item: tuple[Path, Options, PlannedBatch, bool]) -> FinishedBatch:
    """Ingest one batch into the folder of a run that was started elsewhere."""
    out, options, batch, use_tables = item
    if use_tables:
        ensure_tables(no_progress)
    with ThreadPoolExecutor(1) as pool:
        (finished,) = ingest_batches(
            [BatchReader(batch, options)], DatasetFolder(out), pool, HandProgress(no_progress, 0)
        )
    return finished


@contextmanager
def opened_dataset(
    logs: Sequence[str | Path], game: str | None = None, *, workers: int | None = None
) -> Iterator[Path]:
    """Yield the dataset that is named, or one of the logs, without strengths, that is removed afterwards."""
    if len(logs) == 1 and (Path(logs[0]) / MANIFEST).is_file():
        yield Path(logs[0])
        return
    with tempfile.TemporaryDirectory(prefix="dataset-") as folder:
        ingest(logs, Path(folder) / "rows", options(game=game, strength=False), workers=workers)
        yield Path(folder) / "rows"
