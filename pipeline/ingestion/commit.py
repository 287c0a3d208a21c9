"""The dataset's folder while ingest writes to it: one run at a time, and at any moment the old state or the new one.

New parts are written under `.unfinished` inside the dataset, each with a note (its entry of the manifest as JSON) when
it is finished, where the next run finds them if this one is killed. When all are there, the manifest is replaced; then
files move to their places and those no longer named are removed: `settle` does this, or finishes it if a run was killed
at it. A folder that was removed or moved in mid-run is not written to again, and a file of the manifest that is missing
is made again from its logs. Nothing outside the folder is ever touched, whatever a manifest or note says and wherever
links inside the folder lead.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pipeline.dataset.manifest import (
    LISTED_LOGS,
    MANIFEST,
    Batch,
    File,
    Manifest,
    Part,
    PartDetails,
    Piece,
    Settings,
    as_json,
    check_part,
    fingerprint_sources,
    read_manifest,
    read_record,
)
from pipeline.dataset.schema import SCHEMA_VERSION
from pipeline.ingestion.plan import HashedSource, PlannedBatch, recorded_source
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

UNFINISHED = ".unfinished"
_OURS = re.compile(r"[0-9a-f]{16}(-\d{3,}(\..*)?\.parquet|\.jsonl)")
_FOLDERS = ("hands", "decisions", "rejected", "manifest")


@contextmanager
def locked_dataset(out: Path) -> Iterator[DatasetFolder]:
    """Lock a dataset's folder: only one run at a time writes to it; a second one is refused."""
    handle = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"another ingest is writing to {out}: wait for it or use another folder") from None
        yield DatasetFolder(out, handle)
    finally:
        os.close(handle)


class DatasetFolder:
    """A dataset's folder, locked by this run: finished files and those being written."""

    def __init__(self, out: Path, handle: int | None = None) -> None:
        self.out = out
        self.staging = out / UNFINISHED
        self._handle = handle
        """the open folder whose lock this run holds; None where another process holds it for this one"""
        self.broken: set[str] = set()
        """keys of batches of which a file is missing"""

    def check_place(self) -> None:
        """Refuse to go on if the folder that was locked is no longer the one that has this name."""
        if self._handle is None:
            return
        try:
            is_same = os.path.samestat(os.fstat(self._handle), self.out.stat())
        except OSError:
            is_same = False
        if not is_same:
            raise PipelineError(
                f"{self.out} was removed or moved while ingest wrote to it: run again when nothing else changes it"
            )

    def open(self, settings: Settings) -> Manifest:
        """Return the folder's manifest, an empty one if new; refuse other options, clear leftovers of a killed run.

        Batches of which a file is missing are `broken` then: they are ingested again.
        """
        self.check_place()
        for leftover in self.out.glob(f".{MANIFEST}.*"):
            leftover.unlink()
        if self.staging.is_symlink() or (self.staging.exists() and not self.staging.is_dir()):
            raise PipelineError(f"{self.staging} is not the folder that ingest makes: remove it")
        if not (self.out / MANIFEST).exists():
            stray = sorted(path.name for path in self.out.iterdir() if path.name != UNFINISHED)
            if stray:
                raise PipelineError(f"{self.out} is not empty and no dataset (it has {stray[0]}): use another folder")
            return Manifest(SCHEMA_VERSION, "", settings, {}, [], [], [])
        manifest = read_manifest(self.out)
        made = asdict(manifest.options)
        for name, value in asdict(settings).items():
            if made[name] != value:
                raise PipelineError(
                    f"{self.out} was made with {name} = {json.dumps(made[name])}, not {json.dumps(value)}: "
                    "give the same options or use another folder"
                )
        self._find_broken(manifest, self.settle(manifest))
        return manifest

    def settle(self, manifest: Manifest) -> list[str]:
        """Put every file that the manifest names in its place and remove those it does not; return the missing ones."""
        named: dict[str, File | Piece] = {file.path: file for file in manifest.files}
        named |= {piece.path: piece for piece in manifest.pieces}
        missing = []
        for name, file in sorted(named.items()):
            target, staged = self._inside(name), self._inside(f"{UNFINISHED}/{name}")
            if not target.exists():
                if not staged.exists():
                    missing.append(name)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.rename(target)
            if target.stat().st_size != file.bytes:
                raise PipelineError(
                    f"{target} is damaged ({target.stat().st_size:,} bytes, not {file.bytes:,}): restore it, or ingest "
                    "the logs into another folder"
                )
        for folder in _FOLDERS:
            for path in sorted(self._inside(folder).rglob("*.*")):
                if _OURS.fullmatch(path.name) and path.relative_to(self.out).as_posix() not in named:
                    path.unlink()
            for path in sorted((self.out / folder).rglob("*"), reverse=True):
                if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
                    path.rmdir()
        return missing

    def _find_broken(self, manifest: Manifest, missing: list[str]) -> None:
        """Note the batches that have missing files; refuse the dataset where their logs are gone."""
        for piece in manifest.pieces:
            if piece.path in missing:
                raise PipelineError(
                    f"{self.out / piece.path} is missing: restore it, or ingest the logs into another folder"
                )
        self.broken = {part.batch for part in manifest.parts if any(file.path in missing for file in part.files)}
        for line in manifest.details() if self.broken else ():
            for entry in line.sources if line.batch in self.broken else ():
                if not recorded_source(entry).still_there:
                    raise PipelineError(
                        f"{self.out / missing[0]} is missing, and so is {entry.file}, from which it could be made "
                        "again: restore one of them, or ingest the logs into another folder"
                    )

    def _inside(self, path: str) -> Path:
        """Return a path below the dataset; refuse it if a link leads out of the dataset."""
        target = self.out / path
        if not target.parent.resolve().is_relative_to(self.out.resolve()) or target.is_symlink():
            raise PipelineError(f"{target} is a link or lies behind one, which ingest never makes: remove it")
        return target

    # Notes of finished parts

    def write_note(self, record: Part | Batch, name: str) -> None:
        """Record that a part or batch is finished."""
        self.check_place()
        with replacing(self.staging / f"{name}.json") as temporary:
            temporary.write_text(as_json(record), encoding="utf-8")

    def read_note(self, kind: type[Any], name: str, trusted: bool = False) -> Any:
        """Return the record of a part or batch that is finished; None without it or without its files.

        Notes that this run has written may be `trusted`; parts of standard input have no lasting names yet in theirs.
        """
        path = self.staging / f"{name}.json"
        if not path.exists():
            return None
        try:
            record = read_record(kind, json.loads(path.read_bytes()), str(path))
        except (OSError, ValueError, RecursionError) as error:
            raise PipelineError(f"{path} is damaged ({error}): remove {self.staging}") from None
        if isinstance(record, Part) and not trusted:
            check_part(record, record.games, str(path))
            if not all(self._is_there(file) for file in record.files):
                return None
        return record

    def _is_there(self, file: File | Piece) -> bool:
        """Return whether a file is in its place or among those that are finished, with as many bytes as it should."""
        paths = self._inside(file.path), self._inside(f"{UNFINISHED}/{file.path}")
        return any(path.is_file() and path.stat().st_size == file.bytes for path in paths)

    # Commit

    def next_manifest(
        self,
        before: Manifest,
        batches: Sequence[PlannedBatch],
        sources: Sequence[HashedSource],
        settings: Settings,
        count: Callable[[PartDetails], None],
    ) -> Manifest:
        """Return the manifest of a dataset of these batches and sources; large ones are written in pieces.

        `count` is called with what it says of each part's logs.
        """
        parts: list[Part] = []
        waiting: list[PartDetails] = []
        pieces: list[Piece] = []
        logs = waiting_logs = 0
        for line in self._details(before, batches, parts):
            count(line)
            waiting.append(line)
            size = max(len(line.logs), len(line.sources))
            logs, waiting_logs = logs + size, waiting_logs + size
            if logs > LISTED_LOGS and waiting_logs >= LISTED_LOGS:
                pieces.append(self._write_piece(waiting))
                waiting, waiting_logs = [], 0
        is_listed = logs <= LISTED_LOGS
        if waiting and not is_listed:
            pieces.append(self._write_piece(waiting))
            waiting = []
        listed = {line.part: line.logs for line in waiting}
        about = [asdict(settings), sorted(source.sha256 for source in sources)]
        return Manifest(
            schema=SCHEMA_VERSION,
            fingerprint=hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest(),
            options=settings,
            games=dict(sorted({name: text for part in parts for name, text in part.games.items()}.items())),
            sources=[source.entry for source in sources] if is_listed else [],
            batches=[_batch_of(key, list(lines)) for key, lines in groupby(waiting, lambda line: line.batch)],
            parts=[replace(part, logs=listed.get(part.name, {}), packed_logs=[]) for part in parts],
            pieces=pieces,
            data="" if is_listed else fingerprint_sources((source.entry for source in sources), settings),
            folder=self.out,
        )

    def _details(self, before: Manifest, batches: Sequence[PlannedBatch], parts: list[Part]) -> Iterator[PartDetails]:
        """Yield what is known of the logs of batches, from the last manifest or notes; add their parts to `parts`."""
        ingested = before.batch_keys - self.broken
        old = {part.name: part for part in before.parts}
        for batch in batches:
            if batch.key in ingested:
                lines = before.batch_details(batch.key)
                parts += [replace(old[line.part], logs={}) for line in lines if line.part]
                yield from lines
                continue
            self.check_place()
            lost = PipelineError(f"{self.out} lacks what was written there: run again")
            entry: Batch | None = self.read_note(Batch, batch.key, trusted=True)
            if entry is None:
                raise lost
            sources, skipped = [member.entry for member in batch.members], entry.skipped
            packed = entry.packed or []
            for name in entry.parts or [""]:
                part: Part | None = self.read_note(Part, name, trusted=True) if name else None
                if name and part is None:
                    raise lost
                if part:
                    parts.append(replace(part, logs={}, packed_logs=[]))
                packed += part.packed_logs if part else []
                yield PartDetails(batch.key, name, sources, skipped, packed, part.logs if part else {})
                sources, skipped, packed = [], [], []

    def _write_piece(self, lines: Sequence[PartDetails]) -> Piece:
        """Write a piece of the manifest among the finished files, unless it is in its place."""
        data = "".join(map(as_json, lines)).encode()
        digest = hashlib.sha256(data).hexdigest()
        piece = Piece(f"manifest/{digest[:16]}.jsonl", len(data), digest, list(dict.fromkeys(ln.batch for ln in lines)))
        if not self._is_there(piece):
            self.check_place()
            with replacing(self.staging / piece.path) as temporary:
                temporary.write_bytes(data)
        return piece

    def commit(self, before: Manifest, after: Manifest) -> None:
        """Replace the manifest, move files to their places and remove what is no longer needed."""
        self.check_place()
        if after != before or self.broken:
            written: list[File | Piece] = [*after.files, *after.pieces]
            for file in written:
                if not self._is_there(file):
                    raise PipelineError(f"{self.out / file.path} is gone though it was written: run again")
            after.write(self.out)
            if missing := self.settle(after):
                raise PipelineError(f"{self.out / missing[0]} is gone though it was written: run again")
        shutil.rmtree(self.staging, ignore_errors=True)


def _batch_of(key: str, lines: Sequence[PartDetails]) -> Batch:
    """Return the entry of a batch in a manifest that lists its logs itself."""
    packed = None if lines[0].packed is None else [pair for line in lines for pair in line.packed or []]
    labels = [source.file for source in lines[0].sources]
    return Batch(key, labels, lines[0].skipped, [line.part for line in lines if line.part], packed)
