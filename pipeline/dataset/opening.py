"""Files of a dataset, opened, checked and read as Arrow tables.

Every file is compared with the size and CRC-32 in the manifest before anything of it is read; `verify` compares the
whole dataset with its SHA-256. `records` turns the tables into rows.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.manifest import File, read_manifest
from pipeline.dataset.records import column_names
from pipeline.dataset.schema import HANDS
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors

BATCH_ROWS = 1 << 15
"""rows of a batch"""


class RowRange(NamedTuple):
    """Rows of a file that follow one another in it."""

    file: File
    first: int
    agents: dict[str, int] | None
    """rows of each agent, in order; None for all that the file has"""

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.file.rows if self.agents is None else sum(self.agents.values())


def list_agents(folder: Path | str) -> list[str]:
    """Return the names of all agents who have decisions in a dataset, sorted."""
    return sorted({agent for file in read_manifest(folder).decisions for agent in agent_rows(Path(folder), file)})


def agent_rows(folder: Path, file: File) -> dict[str, int]:
    """Return the number of rows of each agent of a file of decisions, in the order in which they stand in it.

    Of files whose agents the manifest does not list, the column `agent` is read, and nothing else.
    """
    import pyarrow.parquet as pq

    if not file.unlisted:
        return file.agents
    path = folder / file.path
    if not path.is_file():
        raise PipelineError(f"{path} is missing: run the interrupted ingest again")
    counts: dict[str, int] = {}
    with translate_parquet_errors(path), path.open("rb") as opened:
        column = pq.read_table(opened, columns=["agent"], use_threads=False)["agent"]
        for chunk in column.chunks:
            codes, names = chunk.indices.to_numpy(), chunk.dictionary.to_pylist()
            first = np.flatnonzero(np.diff(codes, prepend=-1))
            for code, rows in zip(codes[first].tolist(), np.diff(first, append=len(codes)).tolist(), strict=True):
                name = names[code]
                if name in counts and name != next(reversed(counts)):
                    raise ValueError("the rows of an agent do not stand together")
                counts[name] = counts.get(name, 0) + rows
    if len(counts) != file.unlisted or sum(counts.values()) != file.rows:
        raise PipelineError(f"{path} has other agents than its manifest says: ingest the logs into a new folder")
    return counts


def verify(folder: Path | str) -> list[str]:
    """Return a sentence per file that is missing, cut short, altered or of other columns.

    Every byte is read. Nothing wrong gives an empty list; a damaged manifest raises `PipelineError`.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)

    def problem(file: File) -> str | None:
        try:
            with _open_file(folder, file, thorough=True):
                return None
        except PipelineError as error:
            return str(error)

    with ThreadPoolExecutor(processors()) as pool:
        problems = [sentence for sentence in pool.map(problem, manifest.files) if sentence]
    try:
        for _ in manifest.details():
            pass
    except PipelineError as error:
        problems.append(str(error))
    return problems


@contextmanager
def translate_parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a Parquet file into a sentence: its columns or values are not those of ingest."""
    import pyarrow as pa

    try:
        yield
    except (OSError, ArithmeticError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException) as error:
        raise PipelineError(f"{path} is not what ingest writes: ingest into a new folder ({error})") from None


@contextmanager
def _open_file(folder: Path, file: File, *, thorough: bool = False) -> Iterator[Any]:
    """Open a Parquet file of the dataset if its bytes are those that ingest wrote; `thorough` compares the SHA-256."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / file.path
    try:
        data = path.read_bytes()
        if len(data) != file.bytes or not _checksum_fits(data, file, thorough):
            raise PipelineError(
                f"{path} is damaged: it is not the file that ingest wrote ({len(data):,} bytes, not {file.bytes:,}, or "
                "other ones); restore it, or ingest the logs into a new folder"
            )
    except (FileNotFoundError, NotADirectoryError):
        raise PipelineError(f"{path} is missing: run the interrupted ingest again") from None
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    with translate_parquet_errors(path), pq.ParquetFile(pa.BufferReader(data)) as opened:
        if opened.metadata.num_rows != file.rows:
            raise PipelineError(
                f"{path} has {opened.metadata.num_rows} rows, not {file.rows}: ingest into a new folder"
            )
        yield opened


def _checksum_fits(data: bytes, file: File, thorough: bool) -> bool:
    """Return whether bytes have the checksum in the manifest."""
    if thorough or file.crc32 is None:
        return hashlib.sha256(data).hexdigest() == file.sha256
    return zlib.crc32(data) == file.crc32


def _row_groups(opened: Any, rows: RowRange) -> tuple[list[int], int]:
    """Return the Parquet row groups that hold a range, and how many of their rows come before it."""
    ends = np.cumsum([0, *(opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups))])
    first = int(np.searchsorted(ends, rows.first, side="right")) - 1
    last = int(np.searchsorted(ends, rows.first + rows.rows, side="left"))
    return list(range(first, last)), rows.first - int(ends[first])


def read_batches(folder: Path, rows: RowRange, strength_streets: int = 0) -> Iterator[Any]:
    """Yield the table of a range, some rows at a time, with the strength columns of so many streets."""
    import pyarrow as pa

    columns = column_names(strength_streets)
    with _open_file(folder, rows.file) as file:
        _check_columns(file, columns, folder, rows)
        groups, before = _row_groups(file, rows)
        remaining = rows.rows
        for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False):
            part = batch.slice(before, remaining)
            before = max(0, before - batch.num_rows)
            remaining -= part.num_rows
            if part.num_rows:
                yield pa.Table.from_batches([part])
    pa.default_memory_pool().release_unused()


def hand_batches(folder: Path | str, columns: Sequence[str], size: int = BATCH_ROWS) -> Iterator[Any]:
    """Yield the table of hands in the order of the logs: Arrow record batches of at most `size` hands.

    Parameters: the dataset's folder; the names of columns (`dataset.HANDS` lists them).
    """
    folder = Path(folder)
    for file in read_manifest(folder).files:
        if file.path.startswith("hands/"):
            with _open_file(folder, file) as table:
                for batch in table.iter_batches(size, columns=list(columns), use_threads=False):
                    _check_hands(batch, columns)
                    yield batch


def read_ranges(folder: Path, ranges: Sequence[RowRange], strength_streets: int = 0) -> Iterator[Any]:
    """Yield the whole table of each of some ranges of a file, with the strength columns of so many streets."""
    columns = column_names(strength_streets)
    with _open_file(folder, ranges[0].file) as file:
        _check_columns(file, columns, folder, ranges[0])
        for rows in ranges:
            groups, before = _row_groups(file, rows)
            yield file.read_row_groups(groups, columns=columns, use_threads=False).slice(before, rows.rows)


def read_columns(folder: Path, file: File, columns: list[str]) -> Any:
    """Return some columns of a whole file of hands."""
    with _open_file(folder, file) as opened:
        table = opened.read(columns=columns, use_threads=False)
        _check_hands(table, columns)
        return table


def _check_hands(table: Any, columns: Sequence[str]) -> None:
    """Refuse hands whose columns are not of the schema's types, with a value in every row."""
    import pyarrow as pa

    for name in columns:
        if table.schema.get_all_field_indices(name) == []:
            raise ValueError(f"the column {name} is missing")
        column = table.column(name)
        coded = pa.types.is_dictionary(column.type)
        kind = column.type.value_type if coded else column.type
        expected = HANDS[name].partition(":")[0]
        if str(kind) != ("string" if expected == "text" else expected) or column.null_count:
            raise ValueError(f"the column {name} has values of {kind}, or none")


def _check_columns(opened: Any, columns: list[str], folder: Path, rows: RowRange) -> None:
    """Refuse a file that lacks some of the columns."""
    present = set(opened.schema_arrow.names)
    missing = [name for name in columns if name not in present]
    if missing and set(missing).isdisjoint(column_names(0)):
        raise PipelineError(f"{folder} lacks strength columns: ingest into a new folder without --no-strength")
    if missing:
        raise PipelineError(f"{folder / rows.file.path} lacks columns: ingest into a new folder")
