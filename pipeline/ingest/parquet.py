"""Tables as Parquet files: how columns are encoded, where row groups end, and the checksum that the manifest keeps.

An Arrow table goes in, a file and its entry in the manifest come out. It is a room of its own because nothing here
knows what the columns mean.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipeline.dataset import SCHEMA_VERSION, File
from pipeline.decisions import STREETS
from pipeline.strength import STRENGTH

__all__ = ["write"]

_STEPS = (
    *("line", "hand", "k", "position", "raises", "to_call", "stack", "actions"),
    *("players", "big_blind", "in_hand", "to_act", "relative_position"),
)
"""columns kept as differences from row to row: written in half the time that a dictionary of their values takes"""

_MANY = (
    "deal",
    "cards",
    "text",
    *(f"{street}_{part}" for street in STREETS for part in (*(STRENGTH.names or ()), "ochs")),
)
"""columns of too many values for a dictionary"""

GROUP = 1 << 15
"""rows from which an agent's make a group of their own, so that they can be read alone"""

POOL = 1 << 18
"""rows of agents with fewer that make a group: every group has all names of its table, so there should be few"""


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


def write(table: Any, folder: Path, file: File, about: dict[str, Any]) -> File:
    """Write a table as one Parquet file below `folder`, `about` into its metadata; the file with size and checksum."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    note = json.dumps({"schema": SCHEMA_VERSION, **about}, sort_keys=True)
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    table = table.replace_schema_metadata({"pipeline": note})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression={name: "none" if name == "deal" else "lz4" for name in table.column_names},
        use_dictionary=[name for name in table.column_names if name not in _STEPS and name not in _MANY],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in table.column_names if name in _STEPS},
        write_statistics=False,
    ) as writer:
        bounds = _group_bounds(file.agents.values()) if file.agents else [0, table.num_rows]
        for first, last in pairwise(bounds):
            writer.write_table(table.slice(first, last - first), row_group_size=max(1, last - first))
    data = memoryview(sink.getvalue())
    path.write_bytes(data)
    return replace(file, bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), crc32=zlib.crc32(data))
