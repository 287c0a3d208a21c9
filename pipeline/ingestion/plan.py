"""What a run of ingest has to do: which sources the dataset will have, and in which batches they are ingested.

Sources (files on disk) are known by their path and the SHA-256 of their bytes. In the order of their paths they make
batches of some megabytes; where a batch ends depends on the paths near its end, so a new file changes one batch and not
those after it. A batch's key is the hash of its sources and of the options: the dataset is a function of both, however
many runs they came in.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.dataset.manifest import Manifest, Settings, SourceFile
from pipeline.dataset.schema import SCHEMA_VERSION
from pipeline.ingestion.remote import is_url, stamp_of
from pipeline.ingestion.sources import Source
from pipeline.ingestion.summary import Summary
from pipeline.runtime.errors import PipelineError

SMALLEST, LARGEST = 6 << 20, 12 << 20
"""bytes of the sources of a batch (of more than one)"""


@dataclass(frozen=True)
class Known:
    """A source with its fingerprint."""

    source: Source
    sha256: str

    @property
    def entry(self) -> SourceFile:
        """As the manifest has it."""
        return SourceFile(self.source.label, self.source.place, self.source.size, self.sha256)

    @property
    def still_there(self) -> bool:
        """Whether the source can be read again as it was; its size stands for its bytes here."""
        try:
            if self.source.url:
                return stamp_of(self.source.url)[0] == self.source.size
            return self.source.path is not None and self.source.path.stat().st_size == self.source.size
        except (OSError, ValueError, PipelineError):
            return False


@dataclass(frozen=True)
class Work:
    """A batch to be ingested: its key and its sources."""

    key: str
    members: list[Known]

    @property
    def labels(self) -> list[str]:
        return [member.source.label for member in self.members]

    @property
    def size(self) -> int:
        """Bytes of all sources."""
        return sum(member.source.size for member in self.members)


def _source(entry: SourceFile) -> Source:
    """A source as a manifest has it."""
    if is_url(entry.path):
        return Source(entry.file, None, entry.bytes, False, url=entry.path)
    return Source(entry.file, Path(entry.path) if entry.path else None, entry.bytes, False)


def take_sources(given: list[Known], manifest: Manifest, summary: Summary) -> tuple[list[Known], set[str]]:
    """The sources of the dataset after this run, and which of them are new or changed; counted in the summary."""
    added: set[str] = set()
    taken = {entry.file: Known(_source(entry), entry.sha256) for entry in manifest.sources}
    owners = {known.sha256: label for label, known in taken.items() if known.source.size}
    for known in given:
        label, sha256 = known.source.label, known.sha256
        old = taken.get(label)
        if old is not None and old.source.place != known.source.place:
            raise PipelineError(
                f"{label} ({known.source.place}) has the name of {old.source.place}, which is in the dataset: "
                "give a longer path"
            )
        if old is not None and old.sha256 == sha256:
            summary.unchanged += 1
        elif known.source.size and owners.get(sha256, label) != label:
            summary.duplicates.append((label, owners[sha256]))
        else:
            summary.changed += old is not None
            summary.new += old is None
            added.add(label)
            taken[label] = known
            owners[sha256] = label
    return sorted(taken.values(), key=lambda known: known.source.label), added


def batch_key(settings: Settings, members: list[Known]) -> str:
    """The name of the batch that these sources make with these options."""
    about = [SCHEMA_VERSION, asdict(settings), [[known.source.label, known.sha256] for known in members]]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def plan_batches(taken: list[Known], manifest: Manifest, settings: Settings) -> list[Work]:
    """Batches of all sources. What was ingested and is gone now stays in the batch it is in."""
    by_label = {known.source.label: known for known in taken}
    fixed: list[Work] = []
    for entry in manifest.batches:
        members = [by_label[label] for label in entry.sources]
        gone = [known for known in members if not known.still_there]
        if gone:
            if batch_key(settings, members) != entry.key:
                raise PipelineError(
                    f"{gone[0].source.label} is gone, and is needed again since files beside it changed: "
                    "restore it, or ingest into another folder"
                )
            fixed.append(Work(entry.key, members))
    held = {label for batch in fixed for label in batch.labels}
    loose: list[list[Known]] = [[]]
    size = 0
    for known in taken:
        if known.source.label in held:
            continue
        if known.source.is_piped:
            fixed.append(Work(batch_key(settings, [known]), [known]))
            continue
        loose[-1].append(known)
        size += known.source.size
        ends = int(hashlib.sha256(known.source.label.encode()).hexdigest()[:4], 16) % 16 == 0
        if size >= LARGEST or (size >= SMALLEST and ends):
            loose.append([])
            size = 0
    return [*(Work(batch_key(settings, members), members) for members in loose if members), *fixed]
