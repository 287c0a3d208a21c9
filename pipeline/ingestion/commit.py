"""The dataset's folder while ingest writes to it: one run at a time, and at any moment the old state or the new one.

New parts are written under `.unfinished` inside the dataset, each with a note (its entry of the manifest as JSON) when
it is finished, where the next run finds them if this one is killed. When all are there, the manifest is replaced; then
files move to their places and those no longer named are removed: `settle` does this, or finishes it if a run was killed
at it. Nothing outside the folder is ever touched, whatever a manifest or note says and wherever links inside the folder
lead.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.dataset.manifest import (
    MANIFEST,
    Batch,
    Manifest,
    Part,
    Settings,
    as_json,
    check_part,
    read_manifest,
    read_record,
)
from pipeline.dataset.schema import SCHEMA_VERSION
from pipeline.ingestion.plan import HashedSource
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

UNFINISHED = ".unfinished"
_OURS = re.compile(r"[0-9a-f]{16}-\d{3,}(\..*)?\.parquet")
_TABLES = ("hands", "decisions", "rejected")


@contextmanager
def locked_dataset(out: Path) -> Iterator[None]:
    """Only one run at a time writes to a dataset; a second one is refused."""
    handle = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"another ingest is writing to {out}: wait for it or use another folder") from None
        yield
    finally:
        os.close(handle)


class DatasetFolder:
    """A dataset's folder, locked by this run: finished files and those being written."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.staging = out / UNFINISHED

    def open(self, settings: Settings) -> Manifest:
        """Return the folder's manifest, an empty one if new; refuse other options, clear leftovers of a killed run."""
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
        self.settle(manifest)
        return manifest

    def settle(self, manifest: Manifest) -> None:
        """Put every file that the manifest names in its place and remove those it does not."""
        named = {file.path: file for file in manifest.files}
        for name, file in sorted(named.items()):
            target, staged = self._inside(name), self._inside(f"{UNFINISHED}/{name}")
            if not target.exists():
                if not staged.exists():
                    raise PipelineError(f"{target} is missing: restore it, or ingest the logs into another folder")
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.rename(target)
            if target.stat().st_size != file.bytes:
                raise PipelineError(
                    f"{target} is damaged ({target.stat().st_size:,} bytes, not {file.bytes:,}): restore it, or ingest "
                    "the logs into another folder"
                )
        for folder in _TABLES:
            for path in sorted(self._inside(folder).rglob("*.parquet")):
                if _OURS.fullmatch(path.name) and path.relative_to(self.out).as_posix() not in named:
                    path.unlink()
            for path in sorted((self.out / folder).rglob("*"), reverse=True):
                if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
                    path.rmdir()

    def _inside(self, path: str) -> Path:
        """Return a path below the dataset; refuse it if a link leads out of the dataset."""
        target = self.out / path
        if not target.parent.resolve().is_relative_to(self.out.resolve()) or target.is_symlink():
            raise PipelineError(f"{target} is a link or lies behind one, which ingest never makes: remove it")
        return target

    # Notes of finished parts

    def write_note(self, record: Part | Batch, name: str) -> None:
        """Record that a part or batch is finished."""
        with replacing(self.staging / f"{name}.json") as temporary:
            temporary.write_text(as_json(record))

    def read_note(self, kind: type[Any], name: str) -> Any:
        """Return the record of a part or batch that an earlier run finished, None if there is none."""
        path = self.staging / f"{name}.json"
        if not path.exists():
            return None
        try:
            record = read_record(kind, json.loads(path.read_bytes()), str(path))
        except (OSError, ValueError, RecursionError) as error:
            raise PipelineError(f"{path} is damaged ({error}): remove {self.staging}") from None
        if isinstance(record, Part):
            check_part(record, record.games, str(path))
        return record

    # Commit

    def next_manifest(
        self, batches: list[tuple[Batch, list[Part]]], sources: list[HashedSource], settings: Settings
    ) -> Manifest:
        """Return the manifest of a dataset of these batches and sources."""
        parts = [part for _, batch_parts in batches for part in batch_parts]
        about = [asdict(settings), sorted(source.sha256 for source in sources)]
        return Manifest(
            schema=SCHEMA_VERSION,
            fingerprint=hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest(),
            options=settings,
            games=dict(sorted({name: text for part in parts for name, text in part.games.items()}.items())),
            sources=[source.entry for source in sources],
            batches=[batch for batch, _ in batches],
            parts=parts,
        )

    def commit(self, before: Manifest, after: Manifest) -> None:
        """Replace the manifest, move files to their places and remove what is no longer needed."""
        if after != before:
            after.write(self.out)
            self.settle(after)
        shutil.rmtree(self.staging, ignore_errors=True)
