"""True probabilities of decisions, from a Parquet file beside the logs.

The file has a row per decision: `file` (the log's base name, with or without `.log`), `hand`, `k` (the number of the
action in its hand, from 0) and a column per label of the game (`f`, `c`, `r` in limit games). `match --probabilities`
and `match --sample` write such files. Two columns `match` and `perm` may stand for `file`: they then mean the log whose
name ends in `.<match>.<perm>.log`. Label columns may be named `pf`, `pc`, ... Rows of the same decision twice are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError, nearest


class TrueProbabilities:
    """Probabilities by file, hand and action."""

    def __init__(self, path: Path, files: Sequence[str], number: Array, hand: Array, k: Array, values: Floats) -> None:
        self.path, self.files = path, {name: i for i, name in enumerate(files)}
        keys = _pack(number, hand, k)
        order = np.argsort(keys, kind="stable")
        self.keys, self.values = keys[order], values[order]
        same = np.flatnonzero(self.keys[1:] == self.keys[:-1])
        if len(same):
            row = order[same[0]]
            raise PipelineError(
                f"{path}: action {int(k[row])} of hand {int(hand[row])} of {files[int(number[row])]} comes twice; "
                "keys must be unique"
            )

    def find(self, files: Sequence[str], file: Array, hand: Array, k: Array) -> Floats:
        """Return the probabilities of decisions (rows, labels); NaN where the file has none."""
        numbers = self._match(files)
        is_known = numbers[file] >= 0
        keys = _pack(np.where(is_known, numbers[file], 0), hand, k)
        places = np.searchsorted(self.keys, keys).clip(0, max(len(self.keys) - 1, 0))
        is_known &= self.keys[places] == keys if len(self.keys) else False
        return np.where(is_known[:, None], self.values[places], np.nan)

    def _match(self, files: Sequence[str]) -> Array:
        """Return the number of each log in this file of probabilities, -1 where this file does not know it."""
        stems = [_stem(name) for name in files]
        if not all(re.fullmatch(r"\d+\.\d+", name) for name in self.files):
            return np.array([self.files.get(stem, -1) for stem in stems])
        ends = [".".join(stem.split(".")[-2:]) for stem in stems]
        shared = sorted({end for end in ends if ends.count(end) > 1 and end in self.files})
        if shared:
            both = [name for name, end in zip(files, ends, strict=True) if end == shared[0]]
            raise PipelineError(
                f"{self.path}: match and perm {shared[0]} could be {both[0]} or {both[1]}; name logs in a column file"
            )
        return np.array([self.files.get(end, -1) for end in ends])


def _stem(name: str) -> str:
    """Return a log's base name without its extensions (.log, and those of compression)."""
    return re.sub(r"(\.log)?(\.(gz|bz2|xz))?$", "", name.rsplit("/", 1)[-1])


def _pack(number: Array, hand: Array, k: Array) -> npt.NDArray[np.int64]:
    """Pack file, hand and action in one number, so that a decision is found by one binary search."""
    return (number.astype(np.int64) << 40) + (hand.astype(np.int64) << 10) + k.astype(np.int64)


def read_truth(path: Path, labels: str) -> TrueProbabilities:
    """Read the probabilities of a Parquet file for a game with these labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise PipelineError(f"{path}: no such file of probabilities")
    try:
        with path.open("rb") as file:  # by a path Arrow would refuse names that are not UTF-8
            table = pq.read_table(file)
    except pa.ArrowInvalid as error:
        raise PipelineError(f"{path}: not a Parquet file ({error})") from None
    label_columns = [label if label in table.column_names else f"p{label}" for label in labels]
    by_match = "file" not in table.column_names and {"match", "perm"} <= set(table.column_names)
    for name in ["hand", "k", *label_columns, *(("match", "perm") if by_match else ("file",))]:
        if name not in table.column_names:
            of = f"; the game's actions are {', '.join(labels)}" if name in label_columns else ""
            raise PipelineError(
                f"{path}: no column {name}{nearest(name, table.column_names)}{of}: is it of other logs?"
            )
    values = np.stack([table[name].to_numpy().astype(np.float64) for name in label_columns], axis=1)
    total = values.sum(axis=1)
    bad = np.flatnonzero(~((values >= -1e-6).all(axis=1) & (np.abs(total - 1.0) < 1e-3)))
    if len(bad):
        raise PipelineError(f"{path}: row {bad[0]} holds {values[bad[0]].tolist()}, which is no distribution")
    if by_match:
        pairs = table["match"].to_numpy().astype(np.int64) << 20 | table["perm"].to_numpy().astype(np.int64)
        unique_pairs, number = np.unique(pairs, return_inverse=True)
        files = [f"{pair >> 20}.{pair & 0xFFFFF}" for pair in unique_pairs]
    else:
        column = table["file"].combine_chunks().dictionary_encode()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        stems = [_stem(name) for name in column.dictionary.to_pylist()]
        files = sorted(set(stems))
        number = np.array([files.index(stem) for stem in stems], dtype=np.int64)[column.indices.to_numpy()]
    return TrueProbabilities(path, files, number, table["hand"].to_numpy(), table["k"].to_numpy(), values)
