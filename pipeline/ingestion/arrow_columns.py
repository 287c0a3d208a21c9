"""Arrays as columns of Arrow tables, without a Python object per row.

In go numpy arrays of numbers, of codes that stand for texts, or of places in some bytes; out come Arrow columns on the
same memory. It is a room of its own because nothing here knows what the columns mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


@kernel(leaf=True)
def _code(values: Array, keys: Array, numbers: Array, codes: Array, distinct: Array) -> int:
    """Number values as they first appear; -1 when there are too many of them for the hash table `keys`."""
    mask = keys.shape[0] - 1
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        slot = (value * -7046029254386353131) >> 32 & mask
        while numbers[slot] >= 0 and keys[slot] != value:
            slot = (slot + 1) & mask
        if numbers[slot] < 0:
            if 2 * count > mask:
                return -1
            keys[slot] = value
            numbers[slot] = count
            distinct[count] = value
            count += 1
        codes[i] = numbers[slot]
    return count


def coded(values: Array, text: Callable[[int], str], codes: Array | None = None) -> Any:
    """A column of texts from numbers that each stand for one; `codes` is int32 memory that the column may have."""
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
    """A column of numbers or truth values on the memory of `values` (pyarrow's own `array` imports pandas: 0.4 s)."""
    import pyarrow as pa

    if values.dtype == np.bool_:
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, packed])
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


@cache
def _fixed(texts: tuple[str, ...]) -> Any:
    """A column of texts that many tables share."""
    return strings(texts)


def strings(texts: Sequence[str]) -> Any:
    """A column of texts."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def dictionary(codes: Array, texts: Sequence[str]) -> Any:
    """A column of texts from codes."""
    import pyarrow as pa

    words = _fixed(texts) if isinstance(texts, tuple) else strings(texts)
    return pa.DictionaryArray.from_arrays(number_column(codes), words)


_zeros = np.zeros(1 << 16, dtype=np.int32)


def constant(count: int, text: str, dtype: Any = np.int32) -> Any:
    """A column of one text; `dtype` is that of the codes which the column has on other streets."""
    global _zeros
    zeros = _zeros
    if len(zeros) < count:
        zeros = _zeros = np.zeros(2 * count, dtype=np.int32)  # all constants share it: nobody writes to it
    return dictionary(zeros.view(dtype)[:count], (text,))


def nullable(values: Array, there: Array | bool) -> Any:
    """A column of numbers that are null where they are not `there`."""
    import pyarrow as pa

    if there is True or (there is not False and there.all()):
        return number_column(values)
    if there is False:
        return pa.nulls(len(values), pa.from_numpy_dtype(values.dtype))
    mask = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [mask, pa.py_buffer(values)])


def repeated(counts: Iterable[int]) -> Array:
    """0 as often as the first count says, then 1, and so on."""
    times = np.array(list(counts), dtype=np.int64)
    return np.repeat(np.arange(len(times), dtype=np.int32), times)


def eights(rows: Array) -> Any:
    """A column of eight bytes a row."""
    import pyarrow as pa

    packed = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(rows), [None, packed])


def arrow_table(columns: dict[str, Any], nullable: Collection[str] = ()) -> Any:
    """A table without nulls but in the columns named."""
    import pyarrow as pa

    arrays = [number_column(column) if isinstance(column, np.ndarray) else column for column in columns.values()]
    fields = [
        pa.field(name, array.type, nullable=name in nullable) for name, array in zip(columns, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@kernel(leaf=True)
def _gather(data: Array, spans: Array, ends: Array, at: int, out: Array) -> None:
    """Copy pieces of `data` one after the other, the first to `at`, and note where each ends."""
    for i in range(spans.shape[0]):
        for j in range(spans[i, 0], spans[i, 1]):
            out[at] = data[j]
            at += 1
        ends[i] = at


def spans_text(pieces: Sequence[tuple[Array, Array]]) -> Any:
    """Spans (begin and end) of some bytes as a column of texts."""
    import pyarrow as pa

    total = sum(int((spans[:, 1] - spans[:, 0]).sum()) for _, spans in pieces)
    offsets = np.zeros(sum(len(spans) for _, spans in pieces) + 1, dtype=np.int32)
    text = np.empty(total, dtype=np.uint8)
    row = 0
    for data, spans in pieces:
        _gather(data, np.ascontiguousarray(spans), offsets[row + 1 :], int(offsets[row]), text)
        row += len(spans)
    if text.size and text.max() > 127:
        whole = text.tobytes()
        cuts = offsets.tolist()
        return strings([whole[i:j].decode("utf-8", "replace") for i, j in pairwise(cuts)])
    return pa.StringArray.from_buffers(row, pa.py_buffer(offsets), pa.py_buffer(text))
