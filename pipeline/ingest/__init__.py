"""Log files and archives in, a dataset of validated decisions out, every line accounted for.

Sources (files on disk) are known by their path and the SHA-256 of their bytes. In the order of their paths they make
batches of some megabytes; where a batch ends depends on the paths near its end, so a new file changes one batch and not
those after it. A batch becomes one or more parts (see `parts`), whose files carry the hash of the batch's sources and
of the options. The dataset is therefore a function of its sources and options: it does not matter in how many runs
they came, how many threads worked or how often a run was killed.

New parts are written under `.unfinished` inside the dataset, where a killed run's finished parts are found again. When
all are there, the manifest is replaced; then files move to their places and those no longer named are removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pipeline.dataset import SCHEMA_VERSION, read_manifest
from pipeline.errors import PipelineError, nearest
from pipeline.files import Progress, quiet, replacing
from pipeline.game import find_game
from pipeline.ingest.readers import STANDARD_INPUT, Skipped, Source, find_sources, fingerprint, opened, pieces
from pipeline.ingest.shards import (
    FileCounts,
    Lines,
    Options,
    Saving,
    Shard,
    begin_shard,
    compile_kernels,
    first_match,
    next_match,
    save_shard,
)
from pipeline.parallel import processors
from pipeline.strength import ensure_tables

__all__ = ["Options", "Summary", "ingest", "options"]

SMALLEST, LARGEST = 6 << 20, 12 << 20
"""bytes of the sources of a batch (of more than one)"""
PART = 12 << 20
"""bytes of log lines in a part"""
CHUNK = 1 << 20
"""bytes of log lines scanned at a time"""
MANY_BYTES = 4 << 20
"""of logs, from which building the strength tables pays"""
UNFINISHED = ".unfinished"
PIPED = "piped"
"""the key of standard input while it is read"""
DEFAULTS = Options()
_OURS = re.compile(r"[0-9a-f]{16}-\d{3}(\..*)?\.parquet")
_NAMED = re.compile(r"(?:\d{4}\.)?\dp[ln]\.|\d{4}-\dp-(?:no)?limit\.", re.I)


@dataclass
class Summary:
    """What a dataset holds and what the run that gives this did."""

    files: int = 0
    lines: int = 0
    comments: int = 0
    scores: int = 0
    hands: int = 0
    decisions: int = 0
    rejected: int = 0
    rejected_by_reason: dict[str, int] = field(default_factory=dict)
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    """files left out because another has the same bytes"""
    truncated: list[str] = field(default_factory=list)
    misnamed: list[tuple[str, str]] = field(default_factory=list)
    """files whose name lacks one of the players"""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """files that are no logs, and why"""
    seconds: float = 0.0

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Known:
    """A source with its fingerprint."""

    source: Source
    sha256: str


@dataclass
class Batch:
    """Sources that are ingested together."""

    key: str
    members: list[Known]

    @property
    def labels(self) -> list[str]:
        return [member.source.label for member in self.members]


@dataclass
class Step:
    """A part of a batch on its way: scanned, then saved, or found done; None is the end of its batch."""

    batch: Batch
    entry: dict[str, Any]
    """what there is of the batch"""
    read: int
    """bytes of sources read up to here"""
    part: Shard | Saving | dict[str, Any] | None


def options(
    *,
    agents: Sequence[str] = (),
    aliases: Iterable[str] = (),
    validation: Sequence[str] = (),
    game: str | None = None,
    strength: bool = True,
) -> Options:
    """Options from what a user gives: aliases as `OLD=NEW`, the game as a file or a name."""
    pairs: dict[str, str] = {}
    for alias in aliases:
        old, equals, new = alias.partition("=")
        if not (old and equals and new):
            raise PipelineError(f"an alias is OLD=NEW, not {alias!r}")
        if pairs.setdefault(old, new) != new:
            raise PipelineError(f"two aliases for {old!r}: {pairs[old]!r} and {new!r}")
    for agent in agents:
        if agent in pairs:
            raise PipelineError(f"{agent!r} is renamed to {pairs[agent]!r} by an alias: ask for that")
    rules = find_game(game) if game else None
    return Options(
        agents=tuple(sorted(set(agents))),
        aliases=tuple(sorted(pairs.items())),
        validation=tuple(sorted(set(validation))),
        game=rules.text if rules else None,
        game_name=rules.name if rules else None,
        strength=strength,
    )


def ingest(
    inputs: Sequence[str | Path],
    out: Path | str,
    options: Options = DEFAULTS,
    *,
    workers: int | None = None,
    strict: bool = False,
    progress: Progress = quiet,
    preparing: Progress = quiet,
) -> Summary:
    """Add logs to the dataset at `out`, making it if need be; `preparing` tells of strength tables built before."""
    began = time.monotonic()
    workers = workers or processors()
    if workers < 1:
        raise PipelineError(f"at least one worker is needed, not {workers}")
    sources = find_sources(inputs)
    out = Path(out)
    fresh = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out), ThreadPoolExecutor(workers) as pool:
            summary = _Run(out, options, pool, progress, preparing).run(sources, strict)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise PipelineError(
                f"no space left for {out}: free some and run again (what was there before is unharmed)"
            ) from None
        raise
    finally:
        if fresh and out.is_dir() and not any(out.iterdir()):
            out.rmdir()
    summary.seconds = round(time.monotonic() - began, 3)
    return summary


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Only one run at a time writes to a dataset."""
    handle = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"another ingest is writing to {out}: wait for it or use another folder") from None
        yield
    finally:
        os.close(handle)


class _Run:
    """One run of ingest into a dataset."""

    def __init__(
        self, out: Path, options: Options, pool: ThreadPoolExecutor, progress: Progress, preparing: Progress
    ) -> None:
        self.out = out
        self.staging = out / UNFINISHED
        self.options = options
        self.pool = pool
        self.progress = progress
        self.preparing = preparing
        self.hands = self.read = self.total = 0
        self.piped_print = ""

    def run(self, sources: list[Source], strict: bool) -> Summary:
        manifest = self._manifest()
        self._settle(manifest)
        before = {entry["file"]: entry for entry in manifest["sources"]}
        files = [source for source in sources if source.path is not None]
        prints = list(self.pool.map(fingerprint, files))
        given = [Known(source, sha256) for source, sha256 in zip(files, prints, strict=True)]
        self.total = sum(known.source.size for known in given)
        given += [self._piped(source) for source in sources if source.path is None]
        summary = Summary()
        taken, added = self._sort(given, before, summary)
        parts = {part["name"]: part for part in manifest["parts"]}
        kept = {
            batch["key"]: {**batch, "parts": [parts[name] for name in batch["parts"]]} for batch in manifest["batches"]
        }
        batches = self._plan(taken, manifest)
        self.total = sum(member.source.size for batch in batches if batch.key not in kept for member in batch.members)
        if self.options.strength and self.total >= MANY_BYTES:
            ensure_tables(self.preparing)
        if any(batch.key not in kept for batch in batches):
            compile_kernels()
        kept |= {entry["key"]: entry for entry in self._work([batch for batch in batches if batch.key not in kept])}
        done = [kept[batch.key] for batch in batches]
        self._check(done, added, strict)
        self._commit(done, taken, manifest)
        self._describe(done, summary)
        return summary

    # The dataset before the run

    def _manifest(self) -> dict[str, Any]:
        """What is there, if it was made with the same options."""
        settings = self._settings()
        if not (self.out / "manifest.json").exists():
            stray = [path.name for path in self.out.iterdir() if path.name != UNFINISHED]
            if stray:
                raise PipelineError(f"{self.out} is not empty and no dataset (it has {stray[0]}): use another folder")
            return {
                "schema": SCHEMA_VERSION,
                "options": settings,
                "games": {},
                "sources": [],
                "batches": [],
                "parts": [],
            }
        manifest = read_manifest(self.out)
        for name, value in settings.items():
            made = manifest["options"].get(name)
            if made != value:
                raise PipelineError(
                    f"{self.out} was made with {name} = {json.dumps(made)}, not {json.dumps(value)}: "
                    "give the same options or use another folder"
                )
        return manifest

    def _settings(self) -> dict[str, Any]:
        """The options as they are written down."""
        return {
            "agent": list(self.options.agents),
            "alias": dict(self.options.aliases),
            "validation": list(self.options.validation),
            "game": [self.options.game_name, self.options.game] if self.options.game else None,
            "strength": self.options.strength,
        }

    def _settle(self, manifest: dict[str, Any]) -> None:
        """Put every file that the manifest names in its place and remove those it does not."""
        named = {file["path"] for part in manifest["parts"] for file in part["files"]}
        for path in sorted(named):
            target, staged = self.out / path, self.staging / path
            if not target.exists():
                if not staged.exists():
                    raise PipelineError(f"{target} is missing: restore it, or ingest the logs into another folder")
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.rename(target)
        for folder in ("hands", "decisions", "rejected"):
            for found in sorted((self.out / folder).rglob("*.parquet")):
                if _OURS.fullmatch(found.name) and found.relative_to(self.out).as_posix() not in named:
                    found.unlink()
            for found in sorted((self.out / folder).rglob("*"), reverse=True):
                if found.is_dir() and not any(found.iterdir()):
                    found.rmdir()

    # The plan

    def _sort(self, given: list[Known], before: dict[str, Any], summary: Summary) -> tuple[list[Known], set[str]]:
        """The sources of the dataset after this run, and which of them are new or changed."""
        added: set[str] = set()
        taken = {
            entry["file"]: Known(
                Source(entry["file"], Path(entry["path"]) if entry["path"] else None, entry["bytes"], False),
                entry["sha256"],
            )
            for entry in before.values()
        }
        owners = {known.sha256: label for label, known in taken.items() if known.source.size}
        for known in given:
            label, sha256 = known.source.label, known.sha256
            old = taken.get(label)
            if old is not None and old.source.path != known.source.path:
                raise PipelineError(
                    f"{label} ({known.source.path}) has the name of {old.source.path}, which is in the dataset: "
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

    def _key(self, members: list[Known]) -> str:
        about = [SCHEMA_VERSION, self._settings(), [[known.source.label, known.sha256] for known in members]]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]

    def _plan(self, taken: list[Known], manifest: dict[str, Any]) -> list[Batch]:
        """Batches of all sources. What was ingested and is gone now stays in the batch it is in."""
        by_label = {known.source.label: known for known in taken}
        fixed: list[Batch] = []
        for entry in manifest["batches"]:
            members = [by_label[label] for label in entry["sources"]]
            gone = [known for known in members if not _still_there(known)]
            if gone:
                if self._key(members) != entry["key"]:
                    raise PipelineError(
                        f"{gone[0].source.label} is gone, and is needed again since files beside it changed: "
                        "restore it, or ingest into another folder"
                    )
                fixed.append(Batch(entry["key"], members))
        held = {label for batch in fixed for label in batch.labels}
        loose: list[list[Known]] = [[]]
        size = 0
        for known in taken:
            if known.source.label in held:
                continue
            if known.source.path is None:
                fixed.append(Batch(self._key([known]), [known]))
                continue
            loose[-1].append(known)
            size += known.source.size
            ends = int(hashlib.sha256(known.source.label.encode()).hexdigest()[:4], 16) % 16 == 0
            if size >= LARGEST or (size >= SMALLEST and ends):
                loose.append([])
                size = 0
        return [*(Batch(self._key(members), members) for members in loose if members), *fixed]

    # The work

    def _work(self, batches: list[Batch]) -> list[dict[str, Any]]:
        """Ingest the sources of batches into parts, or find them done; what there is of each batch.

        While a part is being written, the next is scanned and the one after that is read.
        """
        done: list[dict[str, Any]] = []
        for step in _ahead(map(self._save, _ahead(self._begin(batches)))):
            if step.part is None:
                _note(self.staging / f"{step.batch.key}.json", step.entry)
                done.append(step.entry)
                continue
            part = self._finish(step.part, step.batch) if isinstance(step.part, Saving) else step.part
            assert isinstance(part, dict)
            step.entry["parts"].append(part)
            self.hands += sum(log["hands"] for log in part["logs"].values())
            self.progress(self.hands, round(self.hands * self.total / step.read) if step.read else 0)
        return done

    def _begin(self, batches: list[Batch]) -> Iterator[Step]:
        """Read the parts of batches and start to scan them."""
        for batch in batches:
            note = self.staging / f"{batch.key}.json"
            if note.exists():
                entry = json.loads(note.read_text())
                self.read += sum(known.source.size for known in batch.members)
                self.hands += sum(log["hands"] for part in entry["parts"] for log in part["logs"].values())
            else:
                entry = {"key": batch.key, "sources": batch.labels, "skipped": [], "parts": []}
                for number, (files, chunks) in enumerate(self._parts(batch, entry["skipped"])):
                    name = f"{batch.key}-{number:03d}"
                    part_note = self.staging / f"{name}.json"
                    if part_note.exists():
                        yield Step(batch, entry, self.read, json.loads(part_note.read_text()))
                    else:
                        part = begin_shard(name, files, chunks, self.options, self.pool)
                        yield Step(batch, entry, self.read, part)
            yield Step(batch, entry, self.read, None)

    def _save(self, step: Step) -> Step:
        """Start to write a part when it has been scanned."""
        if isinstance(step.part, Shard):
            about = {
                "parameters": self._settings(),
                "sources": [[known.source.label, known.sha256] for known in step.batch.members],
            }
            step.part = save_shard(step.part, self.staging, self.options, about, self.pool)
        return step

    def _finish(self, part: Saving, batch: Batch) -> dict[str, Any]:
        """Wait until a part is written, and write that down."""
        for file in part.saved:
            file.result()
        entry = {
            "name": part.name,
            "batch": batch.key,
            "files": part.files,
            "games": part.games,
            "logs": {label: asdict(count) for label, count in part.counts.items()},
        }
        _note(self.staging / f"{part.name}.json", entry)
        return entry

    def _piped(self, source: Source) -> Known:
        """Ingest standard input, which is known by its bytes: its parts get their names when it has been read."""
        for path in sorted(self.staging.rglob(f"{PIPED}*")):
            path.unlink()
        (entry,) = self._work([Batch(PIPED, [Known(source, "")])])
        known = Known(replace(source, label=f"{source.label} {self.piped_print[:8]}"), self.piped_print)
        key = self._key([known])
        for part in entry["parts"]:
            (self.staging / f"{part['name']}.json").unlink()
            part["name"], part["batch"] = part["name"].replace(PIPED, key), key
            for file in part["files"]:
                path = file["path"].replace(PIPED, key)
                (self.staging / file["path"]).rename(self.staging / path)
                file["path"] = path
        (self.staging / f"{PIPED}.json").unlink()
        _note(self.staging / f"{key}.json", {**entry, "key": key, "sources": [known.source.label]})
        return known

    def _parts(self, batch: Batch, skipped: list[list[str]]) -> Iterator[tuple[list[str], list[list[Lines]]]]:
        """The lines of a batch, cut into parts and chunks."""
        files: list[str] = []
        chunks: list[list[Lines]] = [[]]
        part_size = chunk_size = 0
        for known in batch.members:
            source = known.source
            before = self.read
            line, match = 1, None
            with opened(source) as stream:
                for found in pieces(source, stream):
                    if isinstance(found, Skipped):
                        if source.explicit and found.label == source.label:
                            raise PipelineError(f"{found.label} {found.reason}")
                        skipped.append([found.label, found.reason])
                        continue
                    if part_size >= PART:
                        yield files, chunks
                        files, chunks, part_size, chunk_size = [], [[]], 0, 0
                    elif chunk_size >= CHUNK:
                        chunks.append([])
                        chunk_size = 0
                    data = np.frombuffer(found.data, dtype=np.uint8)
                    if found.first or match is None:
                        line, match = 1, first_match(self.options, found.label, data)
                    if not files or files[-1] != found.label:
                        files.append(found.label)
                    chunks[-1].append(Lines(found.label, len(files) - 1, line, match, data))
                    line += found.data.count(b"\n")
                    match = next_match(self.options, match, found.data)
                    part_size += len(data)
                    chunk_size += len(data)
                    self.read = before + min(found.read, source.size)
                if source.path is None:
                    self.piped_print = stream.fingerprint()
            self.read = before + source.size
        if files:
            yield files, chunks

    # The end

    def _check(self, done: list[dict[str, Any]], added: set[str], strict: bool) -> None:
        """Refuse what was not asked for: rejected lines when strict, no hands at all, agents that are not there."""
        logs = [(label, log) for batch in done for part in batch["parts"] for label, log in part["logs"].items()]
        bad = next(((label, log) for label, log in logs if log["rejected"]), None)
        if strict and bad:
            total = sum(log["rejected"] for _, log in logs)
            reason = max(bad[1]["reasons"], key=bad[1]["reasons"].__getitem__)
            raise PipelineError(f"{total} lines rejected, which --strict forbids; first in {bad[0]} ({reason})")
        fresh = [(label, log) for label, log in logs if _source(label, added) or label.startswith(STANDARD_INPUT)]
        if added and not any(log["hands"] for _, log in fresh):
            reasons: dict[str, int] = {}
            for _, log in fresh:
                for reason, count in log["reasons"].items():
                    reasons[reason] = reasons.get(reason, 0) + count
            said = "; ".join(f"{count:,} lines {reason}" for reason, count in sorted(reasons.items(), key=_by_count))
            skipped = [f"{label} {reason}" for batch in done for label, reason in batch["skipped"]]
            raise PipelineError(
                f"no hand found in {_some(sorted(added))}: {said or '; '.join(skipped[:3]) or 'no lines'}"
            )
        players = {self.options.rename(name) for _, log in logs for name in log["names"]}
        for agent in self.options.agents:
            if agent not in players:
                raise PipelineError(f"no hand of agent {agent!r}{nearest(agent, players)}")

    def _commit(self, done: list[dict[str, Any]], taken: list[Known], manifest: dict[str, Any]) -> None:
        """Make the new state the dataset's."""
        parts = [part for batch in done for part in batch["parts"]]
        after = {
            "schema": SCHEMA_VERSION,
            "fingerprint": hashlib.sha256(
                json.dumps([self._settings(), sorted(known.sha256 for known in taken)], sort_keys=True).encode()
            ).hexdigest(),
            "options": self._settings(),
            "games": dict(sorted({name: text for part in parts for name, text in part["games"].items()}.items())),
            "sources": [
                {
                    "file": known.source.label,
                    "path": str(known.source.path or ""),
                    "bytes": known.source.size,
                    "sha256": known.sha256,
                }
                for known in taken
            ],
            "batches": [{**batch, "parts": [part["name"] for part in batch["parts"]]} for batch in done],
            "parts": parts,
        }
        if after != manifest:
            with replacing(self.out / "manifest.json") as beside:
                beside.write_text(json.dumps(after, sort_keys=True) + "\n")
            self._settle(after)
        shutil.rmtree(self.staging, ignore_errors=True)

    def _describe(self, done: list[dict[str, Any]], summary: Summary) -> None:
        """Fill the summary from the dataset."""
        logs: dict[str, FileCounts] = {}
        for batch in done:
            summary.skipped += [(label, reason) for label, reason in batch["skipped"]]
            for part in batch["parts"]:
                summary.decisions += sum(file["rows"] for file in part["files"] if "agent" in file)
                for label, log in part["logs"].items():
                    logs.setdefault(label, FileCounts()).add(FileCounts(**log))
        total = FileCounts()
        for label, log in sorted(logs.items()):
            total.add(log)
            if log.truncated:
                summary.truncated.append(label)
            base = PurePosixPath(label).name
            missing = [name for name in log.names if name not in base] if _NAMED.match(base) else []
            if missing:
                summary.misnamed.append((label, missing[0]))
        summary.files = len(logs)
        for name in ("lines", "comments", "scores", "hands", "rejected"):
            setattr(summary, name, getattr(total, name))
        summary.rejected_by_reason = dict(sorted(total.reasons.items(), key=_by_count))


def _ahead(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps, each as soon as the next part is under way."""
    held: deque[Step] = deque()
    for step in steps:
        held.append(step)
        while sum(one.part is not None for one in held) > 1:
            yield held.popleft()
    yield from held


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _source(label: str, sources: set[str]) -> bool:
    """Whether a log is one of the sources or lies in one of them."""
    return label in sources or any(label[: slash.start()] in sources for slash in re.finditer("/", label))


def _some(labels: list[str]) -> str:
    """A few names out of many."""
    return ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")


def _still_there(known: Known) -> bool:
    """Whether a source can be read again as it was; its size stands for its bytes here."""
    try:
        return known.source.path is not None and known.source.path.stat().st_size == known.source.size
    except OSError:
        return False


def _note(path: Path, entry: dict[str, Any]) -> None:
    """Write down that something is finished."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(entry, sort_keys=True) + "\n")
