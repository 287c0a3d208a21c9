"""Tables as Parquet files: how columns are encoded, where row groups end, and the checksum that the manifest keeps.

An Arrow table goes in, a file and its entry in the manifest come out. It is a room of its own because nothing here
knows what the columns mean.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.manifest import MAX_LISTED_NAMES, File
from pipeline.dataset.schema import CARDS, SCHEMA_VERSION
from pipeline.poker.strength.rows import STRENGTH

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


def _group_bounds(agents: Iterable[int]) -> list[int]:
    """Where row groups begin and end: agents with many rows apart, those with few together."""
    bounds = [0]
    at = 0
    for rows in agents:
        if rows >= GROUP and at > bounds[-1]:
            bounds.append(at)
        at += rows
        if rows >= GROUP or at - bounds[-1] >= POOL:
            bounds.append(at)
    return bounds if bounds[-1] == at else [*bounds, at]


class _Summed(io.FileIO):
    """A file that sums up what is written to it, so that no copy of the whole has to be held in memory."""

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
        left = view
        while len(left):
            left = left[super().write(left) :]
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
        _Summed(path) as sums,
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
