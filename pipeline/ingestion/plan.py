"""The plan of a run of ingest: which sources the dataset will have, and in which batches they are ingested.

Sources (files on disk) are known by their path and the SHA-256 of their bytes. In the order of their paths they make
batches of some megabytes; where a batch ends depends on the paths near its end, so a new file changes one batch and not
those after it. A batch's key is the hash of its sources and of the options: the dataset is a function of both, however
many runs they came in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from itertools import groupby

from pipeline.dataset.manifest import Manifest, Settings, SourceFile
from pipeline.dataset.schema import SCHEMA_VERSION
from pipeline.ingestion.sources import LogSource, path_at, printable, remote_state
from pipeline.ingestion.summary import Summary
from pipeline.runtime.errors import PipelineError

SMALLEST, LARGEST = 6 << 20, 12 << 20
"""bytes of the sources of a batch (of more than one)"""
FEWEST, MOST = 1 << 13, 1 << 14
"""sources of a batch that would be smaller"""


@dataclass(frozen=True, slots=True)
class HashedSource:
    """A source with its fingerprint."""

    source: LogSource
    sha256: str

    @property
    def entry(self) -> SourceFile:
        """Return the source's entry in the manifest."""
        return SourceFile(self.source.label, self.source.place, self.source.size, self.sha256)

    @property
    def still_there(self) -> bool:
        """Return whether the source can be read again as it was, judged by its size."""
        try:
            if self.source.url:
                return remote_state(self.source.url)[0] == self.source.size
            return not self.source.is_piped and path_at(self.source.place).stat().st_size == self.source.size
        except (OSError, ValueError, PipelineError):
            return False


@dataclass(frozen=True)
class PlannedBatch:
    """A batch of sources and the key that its parts are named by."""

    key: str
    members: list[HashedSource]

    @property
    def labels(self) -> list[str]:
        """Return the labels of its sources."""
        return [member.source.label for member in self.members]

    @property
    def size(self) -> int:
        """Return the bytes of all sources."""
        return sum(member.source.size for member in self.members)


def recorded_source(entry: SourceFile) -> HashedSource:
    """Make a source from its entry in a manifest."""
    return HashedSource(LogSource(entry.file, entry.path, entry.bytes, False), entry.sha256)


def merge_sources(
    given: list[HashedSource], manifest: Manifest, summary: Summary
) -> tuple[list[HashedSource], set[str]]:
    """Merge given sources into those of the dataset; return all, and the labels of new or changed ones.

    The summary counts which are new, changed, unchanged or have the bytes of another.
    """
    added: set[str] = set()
    merged = {entry.file: recorded_source(entry) for line in manifest.details() for entry in line.sources}
    owners = {hashed.sha256: label for label, hashed in merged.items() if hashed.source.size}
    for hashed in given:
        label, sha256 = hashed.source.label, hashed.sha256
        old = merged.get(label)
        if old is not None and old.source.place != hashed.source.place:
            raise PipelineError(
                f"{label} ({printable(hashed.source.place)}) has the name of {printable(old.source.place)}, which is "
                "in the dataset: give a longer path"
            )
        if old is not None and old.sha256 == sha256:
            summary.unchanged += 1
            merged[label] = hashed  # with the time of its last change, should it be read again
        elif hashed.source.size and owners.get(sha256, label) != label:
            summary.duplicates.append((label, owners[sha256]))
        else:
            summary.changed += old is not None
            summary.new += old is None
            added.add(label)
            merged[label] = hashed
            owners[sha256] = label
    return sorted(merged.values(), key=lambda hashed: hashed.source.label), added


def batch_key(settings: Settings, members: list[HashedSource]) -> str:
    """Return the name of the batch that these sources make with these options."""
    about = [SCHEMA_VERSION, asdict(settings), [[hashed.source.label, hashed.sha256] for hashed in members]]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def plan_batches(
    sources: list[HashedSource], manifest: Manifest, settings: Settings, broken: Collection[str] = ()
) -> list[PlannedBatch]:
    """Divide all sources into batches; what was ingested and is gone now stays in the batch it is in.

    Parameters: `broken` are the keys of batches that have to be ingested again.
    """
    by_label = {hashed.source.label: hashed for hashed in sources}
    fixed: list[PlannedBatch] = []
    for key, lines in groupby(manifest.details(), lambda line: line.batch):
        members = [by_label[entry.file] for line in lines for entry in line.sources]
        gone = [hashed for hashed in members if not hashed.still_there] if key not in broken else []
        if gone:
            if batch_key(settings, members) != key:
                raise PipelineError(
                    f"{gone[0].source.label} is gone, and is needed again since files beside it changed: "
                    "restore it, or ingest into another folder"
                )
            fixed.append(PlannedBatch(key, members))
    fixed_labels = {label for batch in fixed for label in batch.labels}
    loose: list[list[HashedSource]] = [[]]
    size = 0
    for hashed in sources:
        if hashed.source.label in fixed_labels:
            continue
        if hashed.source.is_piped:
            fixed.append(PlannedBatch(batch_key(settings, [hashed]), [hashed]))
            continue
        loose[-1].append(hashed)
        size += hashed.source.size
        # by the label alone, so that a new file moves the ends of the batch it falls in and no others
        is_boundary = int(hashlib.sha256(hashed.source.label.encode()).hexdigest()[:4], 16) % 16 == 0
        many = len(loose[-1])
        if size >= LARGEST or many >= MOST or ((size >= SMALLEST or many >= FEWEST) and is_boundary):
            loose.append([])
            size = 0
    return [*(PlannedBatch(batch_key(settings, members), members) for members in loose if members), *fixed]
