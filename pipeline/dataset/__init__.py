"""The dataset on disk.

`schema` names its columns, `manifest` says what belongs to it, `opening` reads its files as tables, `records` turns
these into rows, `load` gives the rows that are wanted, and `raises` says how far raises of hand histories went.
"""

from pipeline.dataset.load import Decisions, count, load, pieces, players_of, wanted_files
from pipeline.dataset.manifest import (
    MANIFEST,
    MOST_LISTED,
    Batch,
    File,
    LogCounts,
    Manifest,
    Part,
    Settings,
    SourceFile,
    as_json,
    check_part,
    read_manifest,
    read_record,
)
from pipeline.dataset.opening import agents_in, everyone, hand_batches, of_our_making, verify
from pipeline.dataset.raises import beyond, raise_pieces
from pipeline.dataset.schema import (
    CARD_TEXTS,
    CARDS,
    DECISIONS,
    HANDS,
    REJECTED,
    SCHEMA_VERSION,
    STRENGTH_COLUMNS,
    decisions_folder,
)

__all__ = [
    "CARDS",
    "CARD_TEXTS",
    "DECISIONS",
    "HANDS",
    "MANIFEST",
    "MOST_LISTED",
    "REJECTED",
    "SCHEMA_VERSION",
    "STRENGTH_COLUMNS",
    "Batch",
    "Decisions",
    "File",
    "LogCounts",
    "Manifest",
    "Part",
    "Settings",
    "SourceFile",
    "agents_in",
    "as_json",
    "beyond",
    "check_part",
    "count",
    "decisions_folder",
    "everyone",
    "hand_batches",
    "load",
    "of_our_making",
    "pieces",
    "players_of",
    "raise_pieces",
    "read_manifest",
    "read_record",
    "verify",
    "wanted_files",
]
