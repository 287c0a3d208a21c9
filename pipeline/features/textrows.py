"""Decision rows in the thesis's text form, which Wapiti and CRF++ read.

A line is a decision: columns separated by blanks, the action taken last. An empty line ends a sequence. Files may
be compressed (.gz, .bz2, .xz). A value is known by a 64-bit hash of its bytes (FNV-1a): models of text rows compare
values, they do not read them, so any columns will do, not only the thesis's fifteen.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel

OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
START, FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@dataclass(frozen=True)
class TextRows:
    """Rows of a text file: hashed columns, the action, and the first row of each row's sequence."""

    columns: NDArray[np.int64]
    action: NDArray[np.uint8]
    """number of the action in `labels`"""
    labels: tuple[str, ...]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, part: slice) -> TextRows:
        """Return a slice of rows; those of one sequence must stay together, or offsets point outside."""
        low = part.indices(len(self))[0]
        return TextRows(self.columns[part], self.action[part], self.labels, np.maximum(self.first[part] - low, 0))

    @property
    def legal(self) -> NDArray[np.uint8]:
        """Return every action as legal: text rows do not say which are."""
        return np.full(len(self), 255, np.uint8)

    def cell(self, offset: int, number: int) -> NDArray[np.int64]:
        """Return a column in the row `offset` away in its sequence; outside of it, the offset itself."""
        column = self.columns[:, number]
        if offset == 0:
            return column
        rows = np.arange(len(self))
        target = (rows + offset).clip(0, len(self) - 1)
        inside = (rows + offset == target) & (self.first[target] == self.first)
        return np.where(inside, column[target], np.int64(offset))

    def previous(self) -> NDArray[np.int64]:
        """Return one more than the action of the row before in the sequence, 0 for the first."""
        before = np.append(np.int64(0), self.action[:-1].astype(np.int64) + 1)
        return np.where(self.first == np.arange(len(self)), 0, before)


def is_text(path: Path) -> bool:
    """Return whether a path is a file of text rows (a folder is a dataset)."""
    return path.is_file()


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's rows, whatever it is compressed with."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file of rows; a damaged or missing one is refused in a sentence."""
    try:
        with OPEN.get(path.suffix, open)(path, "rb") as file:
            yield file
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, OSError) as error:
        raise PipelineError(f"{path} cannot be read: {error}") from None


def read_rows(path: Path, labels: tuple[str, ...] = ()) -> TextRows:
    """Read the rows of a file; `labels` fixes the numbers of actions to those of other rows."""
    with _opened(path) as file:
        data = np.frombuffer(file.read(), np.uint8)
    lines, width = _size(data)
    if lines == 0:
        raise PipelineError(f"{path} has no rows: a row is a line of columns with the action last")
    if width < 2:
        raise PipelineError(f"{path}:1: a row needs at least one column and the action")
    columns = np.empty((lines, width - 1), np.int64)
    action, first = np.empty((lines, 2), np.int64), np.empty(lines, np.int64)
    bad = _parse(data, columns, action, first)
    if bad >= 0:
        raise PipelineError(f"{path}:{bad + 1}: the row has not {width} columns like the first one")
    numbers, names = _label_numbers(data, action, labels, path)
    return TextRows(columns, numbers, names, first)


def _label_numbers(
    data: NDArray[np.uint8], action: NDArray[np.int64], labels: tuple[str, ...], path: Path
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return each row's label as a number, and the labels: fold, call and raise first, others by the alphabet."""
    _, example, inverse = np.unique(action[:, 0], return_index=True, return_inverse=True)
    words = [data[start : start + 80].tobytes().split()[0].decode("utf-8", "replace") for start in action[example, 1]]
    if not labels:
        usual = "fcshpoa"
        labels = tuple(sorted(words, key=lambda word: (usual.find(word) if word in usual else len(usual), word)))
    if len(labels) > 200:
        raise PipelineError(f"{path} has {len(labels)} different actions in its last column: at most 200 make sense")
    for word in words:
        if word not in labels:
            raise PipelineError(f"{path} has the action {word!r}, the other rows have only {', '.join(labels)}")
    return np.array([labels.index(word) for word in words], np.uint8)[inverse.ravel()], labels


@kernel
def _size(data: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the number of rows, and of words in the first."""
    lines = words = width = 0
    inside = False
    for i in range(len(data) + 1):
        byte = data[i] if i < len(data) else np.uint8(10)
        blank = byte == 32 or byte == 9 or byte == 10 or byte == 13
        if not blank and not inside:
            words += 1
        inside = not blank
        if byte == 10:
            if words > 0:
                lines += 1
                if lines == 1:
                    width = words
            words = 0
    return lines, width


@kernel
def _parse(
    data: NDArray[np.uint8], columns: NDArray[np.int64], action: NDArray[np.int64], first: NDArray[np.int64]
) -> int:
    """Fill the rows; return the line (from 0) of a row with another number of words than the first, or -1."""
    width = columns.shape[1]
    row = word = line = sequence = start = 0
    inside = False
    code = START
    for i in range(len(data) + 1):
        byte = data[i] if i < len(data) else np.uint8(10)
        if byte == 32 or byte == 9 or byte == 10 or byte == 13:
            if inside:
                if word < width:
                    columns[row, word] = np.int64(code)
                elif word == width:
                    action[row, 0] = np.int64(code)
                    action[row, 1] = start
                word += 1
                inside = False
            if byte == 10:
                if word > 0:
                    if word != width + 1:
                        return line
                    first[row] = sequence
                    row += 1
                else:
                    sequence = row
                word = 0
                line += 1
        else:
            if not inside:
                inside = True
                start = i
                code = START
            code = (code ^ np.uint64(byte)) * FACTOR
    return -1
