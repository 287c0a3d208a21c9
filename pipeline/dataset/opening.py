"""Files of a dataset opened, checked and read as Arrow tables.

Every file is compared with the size and CRC-32 that the manifest has of it before anything of it is read; `verify`
compares the whole dataset with its SHA-256. It is a room of its own because it alone touches the disk: `records` turns
the tables into rows, `load` says which rows are wanted.
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

PIECE = 1 << 15
"""rows of a batch"""


class Run(NamedTuple):
    """Rows of a file that are wanted and follow one another in it."""

    file: File
    first: int
    agents: dict[str, int] | None
    """rows of each agent, in order; None for all that the file has"""

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.file.rows if self.agents is None else sum(self.agents.values())


def everyone(folder: Path | str) -> list[str]:
    """Everybody who has decisions in a dataset, by name."""
    return sorted({agent for file in read_manifest(folder).decisions for agent in agents_in(Path(folder), file)})


def agents_in(folder: Path, file: File) -> dict[str, int]:
    """The rows of each agent of a file of decisions, in the order in which they stand in it.

    Of files whose agents the manifest does not list, the column `agent` is read, and nothing else.
    """
    import pyarrow.parquet as pq

    if not file.unlisted:
        return file.agents
    path = folder / file.path
    if not path.is_file():
        raise PipelineError(f"{path} is missing: run the interrupted ingest again")
    found: dict[str, int] = {}
    with of_our_making(path):
        column = pq.read_table(path, columns=["agent"], partitioning=None, use_threads=False)["agent"]
        for chunk in column.chunks:
            codes, names = chunk.indices.to_numpy(), chunk.dictionary.to_pylist()
            first = np.flatnonzero(np.diff(codes, prepend=-1))
            for code, rows in zip(codes[first].tolist(), np.diff(first, append=len(codes)).tolist(), strict=True):
                name = names[code]
                if name in found and name != next(reversed(found)):
                    raise ValueError("the rows of an agent do not stand together")
                found[name] = found.get(name, 0) + rows
    if len(found) != file.unlisted or sum(found.values()) != file.rows:
        raise PipelineError(f"{path} has other agents than its manifest says: ingest the logs into a new folder")
    return found


def verify(folder: Path | str) -> list[str]:
    """What is wrong with a dataset's files, a sentence each: missing, cut short, altered, of other columns.

    Every byte is read. Nothing wrong gives an empty list; a damaged manifest raises `PipelineError`.
    """
    folder = Path(folder)
    files = read_manifest(folder).files

    def problem(file: File) -> str | None:
        try:
            with _opened(folder, file, thorough=True):
                return None
        except PipelineError as error:
            return str(error)

    with ThreadPoolExecutor(processors()) as pool:
        return [said for said in pool.map(problem, files) if said]


@contextmanager
def of_our_making(path: Path) -> Iterator[None]:
    """Refuse a Parquet file whose columns or values ingest does not write."""
    import pyarrow as pa

    try:
        yield
    except (OSError, ArithmeticError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException) as error:
        raise PipelineError(f"{path} is not what ingest writes: ingest into a new folder ({error})") from None


@contextmanager
def _opened(folder: Path, file: File, *, thorough: bool = False) -> Iterator[Any]:
    """A Parquet file of the dataset, if its bytes are those that ingest wrote; `thorough` compares the SHA-256."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / file.path
    try:
        data = path.read_bytes()
        if len(data) != file.bytes or not _same(data, file, thorough):
            raise PipelineError(
                f"{path} is damaged: it is not the file that ingest wrote ({len(data):,} bytes, not {file.bytes:,}, or "
                "other ones); restore it, or ingest the logs into a new folder"
            )
    except (FileNotFoundError, NotADirectoryError):
        raise PipelineError(f"{path} is missing: run the interrupted ingest again") from None
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    with of_our_making(path), pq.ParquetFile(pa.BufferReader(data)) as opened:
        if opened.metadata.num_rows != file.rows:
            raise PipelineError(
                f"{path} has {opened.metadata.num_rows} rows, not {file.rows}: ingest into a new folder"
            )
        yield opened


def _same(data: bytes, file: File, thorough: bool) -> bool:
    """Whether bytes have the checksum that the manifest names."""
    if thorough or file.crc32 is None:
        return hashlib.sha256(data).hexdigest() == file.sha256
    return zlib.crc32(data) == file.crc32


def _groups(opened: Any, run: Run) -> tuple[list[int], int]:
    """The row groups that hold a run, and how many rows of these come before it."""
    ends = np.cumsum([0, *(opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups))])
    first = int(np.searchsorted(ends, run.first, side="right")) - 1
    last = int(np.searchsorted(ends, run.first + run.rows, side="left"))
    return list(range(first, last)), run.first - int(ends[first])


def read_batches(folder: Path, run: Run, strength_streets: int = 0) -> Iterator[Any]:
    """The table of a run, some rows at a time, with the strength columns of so many streets."""
    import pyarrow as pa

    columns = column_names(strength_streets)
    with _opened(folder, run.file) as file:
        _check_columns(file, columns, folder, run)
        groups, before = _groups(file, run)
        left = run.rows
        for batch in file.iter_batches(PIECE, row_groups=groups, columns=columns, use_threads=False):
            part = batch.slice(before, left)
            before = max(0, before - batch.num_rows)
            left -= part.num_rows
            if part.num_rows:
                yield pa.Table.from_batches([part])
    pa.default_memory_pool().release_unused()


def hand_batches(folder: Path | str, columns: Sequence[str], size: int = PIECE) -> Iterator[Any]:
    """The table of hands, in the order of the logs: Arrow record batches of at most `size` hands.

    Parameters: the dataset's folder; the names of columns (`dataset.HANDS` lists them).
    """
    folder = Path(folder)
    for file in read_manifest(folder).files:
        if file.path.startswith("hands/"):
            with _opened(folder, file) as table:
                for batch in table.iter_batches(size, columns=list(columns), use_threads=False):
                    _check_hands(batch, columns)
                    yield batch


def read_run(folder: Path, run: Run, strength_streets: int = 0) -> Any:
    """The whole table of a run, with the strength columns of so many streets."""
    columns = column_names(strength_streets)
    with _opened(folder, run.file) as file:
        _check_columns(file, columns, folder, run)
        groups, before = _groups(file, run)
        return file.read_row_groups(groups, columns=columns, use_threads=False).slice(before, run.rows)


def read_columns(folder: Path, file: File, columns: list[str]) -> Any:
    """Some columns of a whole file of hands."""
    with _opened(folder, file) as opened:
        table = opened.read(columns=columns, use_threads=False)
        _check_hands(table, columns)
        return table


def _check_hands(table: Any, columns: Sequence[str]) -> None:
    """Refuse hands whose columns are not those of the schema, with a value in every row."""
    import pyarrow as pa

    for name in columns:
        if table.schema.get_all_field_indices(name) == []:
            raise ValueError(f"the column {name} is missing")
        column = table.column(name)
        coded = pa.types.is_dictionary(column.type)
        found = column.type.value_type if coded else column.type
        wanted = HANDS[name].partition(":")[0]
        if str(found) != ("string" if wanted == "text" else wanted) or column.null_count:
            raise ValueError(f"the column {name} has values of {found}, or none")


def _check_columns(opened: Any, columns: list[str], folder: Path, run: Run) -> None:
    """Refuse a file without some columns."""
    there = set(opened.schema_arrow.names)
    missing = [name for name in columns if name not in there]
    if missing and set(missing).isdisjoint(column_names(0)):
        raise PipelineError(f"{folder} lacks strength columns: ingest into a new folder without --no-strength")
    if missing:
        raise PipelineError(f"{folder / run.file.path} lacks columns: ingest into a new folder")
