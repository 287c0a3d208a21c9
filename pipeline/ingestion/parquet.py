"""Arrays as columns of Arrow tables, and tables as Parquet files.

In go numpy arrays of numbers, of codes that stand for texts, or of places in some bytes; out come Arrow columns on the
same memory, without a Python object per row. `write` then encodes a table's columns as suits each, divides it into row
groups, and returns the file's entry in the manifest with its checksums.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.manifest import MAX_LISTED_NAMES, File
from pipeline.dataset.schema import CARDS, SCHEMA_VERSION
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

_STEPS = frozenset(
    ("line", "hand", "k", "position", "raises", "to_call", "actions", "to_act", "relative_position", "aggressor")
)
"""columns kept as differences from row to row: written in half the time that a dictionary of their values takes"""

_PLAIN = frozenset(
    (
        *("deal", "cards", "text", "stack", "players", "big_blind", "in_hand", "faced"),
        *(f"{street}_{part}" for street in STREETS for part in (*(STRENGTH.names or ()), "ochs")),
    )
)
"""columns kept as they are: of too many values for a dictionary, or nearly all of one value, which compresses well"""

_PACKED = frozenset(
    (
        *("deal", "line", "hand", "k", "position", "action", "label", "previous", "name", "ranks", "pattern", "flush"),
        *("high", "low", "start", *CARDS),
    )
)
"""columns that compression would hardly make smaller: numbers of few bits, or all different"""

GROUP = 1 << 15
"""rows from which an agent's make a group of their own, so that they can be read alone"""

POOL = 1 << 18
"""rows of agents with fewer that make a group: every group has all names of its table, so there should be few"""

BUFFER = 1 << 20
"""bytes written at a time: Parquet has thousands of small pieces"""


# Columns


@kernel(leaf=True)
def _code(values: Array, keys: Array, numbers: Array, codes: Array, distinct: Array) -> int:
    """Number values as they first appear; -1 when there are too many of them for the hash table `keys`."""
    mask = keys.shape[0] - 1
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        slot = (value * -7046029254386353131) >> 32 & mask  # Fibonacci hashing: the golden ratio spreads near values
        while numbers[slot] >= 0 and keys[slot] != value:
            slot = (slot + 1) & mask
        if numbers[slot] < 0:
            if 2 * count > mask:  # half full: probes would grow long
                return -1
            keys[slot] = value
            numbers[slot] = count
            distinct[count] = value
            count += 1
        codes[i] = numbers[slot]
    return count


def coded(values: Array, text: Callable[[int], str], codes: Array | None = None) -> Any:
    """Make a column of texts from numbers that each stand for one; `codes` is int32 memory that the column may have."""
    slots = 1 << 10
    codes = np.empty(len(values), dtype=np.int32) if codes is None else codes
    while True:
        distinct = np.empty(slots, dtype=np.int64)
        keys, numbers = np.empty(slots, dtype=np.int64), np.full(slots, -1, dtype=np.int32)
        count = _code(values, keys, numbers, codes, distinct)
        if count >= 0:
            break
        slots *= 16
    texts = [text(value) for value in distinct[:count].tolist()]
    once = {word: i for i, word in enumerate(dict.fromkeys(texts))}
    if len(once) < len(texts):
        codes = np.array([once[word] for word in texts], dtype=np.int32)[codes]
    return dictionary(codes, list(once))


def number_column(values: Array) -> Any:
    """Make a column of numbers or truth values on the memory of `values`: `pyarrow.array` imports pandas, 0.4 s."""
    import pyarrow as pa

    if values.dtype == np.bool_:
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, packed])
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


@cache
def _fixed(texts: tuple[str, ...]) -> Any:
    """Make a column of texts that many tables share."""
    return strings(texts)


def strings(texts: Sequence[str]) -> Any:
    """Make a column of texts."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def dictionary(codes: Array, texts: Sequence[str]) -> Any:
    """Make a column of texts from codes."""
    import pyarrow as pa

    words = _fixed(texts) if isinstance(texts, tuple) else strings(texts)
    return pa.DictionaryArray.from_arrays(number_column(codes), words)


_zeros = np.zeros(1 << 16, dtype=np.int32)


def constant(count: int, text: str, dtype: Any = np.int32) -> Any:
    """Make a column of one text; `dtype` is that of the codes which the column has on other streets."""
    global _zeros
    zeros = _zeros
    if len(zeros) < count:
        zeros = _zeros = np.zeros(2 * count, dtype=np.int32)  # all constants share it: nobody writes to it
    return dictionary(zeros.view(dtype)[:count], (text,))


def nullable(values: Array, there: Array | bool) -> Any:
    """Make a column of numbers that are null where they are not `there`."""
    import pyarrow as pa

    if there is True or (there is not False and there.all()):
        return number_column(values)
    if there is False:
        return pa.nulls(len(values), pa.from_numpy_dtype(values.dtype))
    mask = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [mask, pa.py_buffer(values)])


def repeated(counts: Iterable[int]) -> Array:
    """Return 0 as often as the first count says, then 1, and so on."""
    times = np.array(list(counts), dtype=np.int64)
    return np.repeat(np.arange(len(times), dtype=np.int32), times)


def eights(rows: Array) -> Any:
    """Make a column of eight bytes a row."""
    import pyarrow as pa

    packed = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(rows), [None, packed])


def arrow_table(columns: dict[str, Any], nullable: Collection[str] = ()) -> Any:
    """Make a table; only the columns named may have nulls."""
    import pyarrow as pa

    arrays = [number_column(column) if isinstance(column, np.ndarray) else column for column in columns.values()]
    fields = [
        pa.field(name, array.type, nullable=name in nullable) for name, array in zip(columns, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@kernel(leaf=True)
def _gather(data: Array, spans: Array, ends: Array, end: int, out: Array) -> None:
    """Copy pieces of `data` one after the other, the first to place `end`, and note where each ends."""
    for i in range(spans.shape[0]):
        for j in range(spans[i, 0], spans[i, 1]):
            out[end] = data[j]
            end += 1
        ends[i] = end


def spans_text(pieces: Sequence[tuple[Array, Array]]) -> Any:
    """Make a column of texts from spans (begin and end) of some bytes."""
    import pyarrow as pa

    total = sum(int((spans[:, 1] - spans[:, 0]).sum()) for _, spans in pieces)
    offsets = np.zeros(sum(len(spans) for _, spans in pieces) + 1, dtype=np.int32)
    text = np.empty(total, dtype=np.uint8)
    row = 0
    for data, spans in pieces:
        _gather(data, np.ascontiguousarray(spans), offsets[row + 1 :], int(offsets[row]), text)
        row += len(spans)
    if text.size and text.max() > 127:  # names in histories may be UTF-8, lines of damaged logs anything
        whole = text.tobytes()
        cuts = offsets.tolist()
        return strings([whole[i:j].decode("utf-8", "replace") for i, j in pairwise(cuts)])
    return pa.StringArray.from_buffers(row, pa.py_buffer(offsets), pa.py_buffer(text))


# Files


def _group_bounds(agents: Iterable[int]) -> list[int]:
    """Return where row groups begin and end: agents with many rows apart, those with few together."""
    bounds = [0]
    end = 0
    for rows in agents:
        if rows >= GROUP and end > bounds[-1]:
            bounds.append(end)
        end += rows
        if rows >= GROUP or end - bounds[-1] >= POOL:
            bounds.append(end)
    return bounds if bounds[-1] == end else [*bounds, end]


class _ChecksummedFile(io.FileIO):
    """A file that computes checksums as it is written, so that no copy of the whole has to be in memory."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w")
        self.size = self.crc32 = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: Any, /) -> int:
        """Write all of `data`."""
        view = memoryview(data)
        self.sha256.update(view)
        self.crc32 = zlib.crc32(view, self.crc32)
        self.size += len(view)
        rest = view
        while len(rest):
            rest = rest[super().write(rest) :]
        return len(view)


def write(table: Any, folder: Path, file: File, about: dict[str, Any]) -> File:
    """Write a table as one Parquet file below `folder`, `about` into its metadata.

    Returns the file as the manifest has it: with size and checksums, without the names of its agents if they are many.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    note = json.dumps({"schema": SCHEMA_VERSION, **about}, sort_keys=True)
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    table = table.replace_schema_metadata({"pipeline": note})
    with (
        _ChecksummedFile(path) as sums,
        pa.BufferedOutputStream(pa.PythonFile(sums, "w"), BUFFER) as sink,
        pq.ParquetWriter(
            sink,
            table.schema,
            compression={name: "none" if name in _PACKED else "lz4" for name in table.column_names},
            use_dictionary=[name for name in table.column_names if name not in _STEPS and name not in _PLAIN],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in table.column_names if name in _STEPS},
            write_statistics=False,
        ) as writer,
    ):
        bounds = _group_bounds(file.agents.values()) if file.agents else [0, table.num_rows]
        for first, last in pairwise(bounds):
            writer.write_table(table.slice(first, last - first), row_group_size=max(1, last - first))
    many = len(file.agents) > MAX_LISTED_NAMES
    return replace(
        file,
        bytes=sums.size,
        sha256=sums.sha256.hexdigest(),
        crc32=sums.crc32,
        agents={} if many else file.agents,
        unlisted=len(file.agents) if many else 0,
    )
