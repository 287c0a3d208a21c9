"""A dataset's `manifest.json` as objects: its files with their checksums, sources, options and games.

What it says of each log stands in it while there are at most `LISTED_LOGS`; of more, in pieces beside it, which
`Manifest.details` reads one at a time. The rest is small and asked often: options, games, the Parquet files.

Manifests travel with datasets between people, so nothing in one is trusted: every field's type is checked, names of
files must be those that `ingest` gives (no path leads out of the dataset), and what refers to something else must find
it. Whatever is wrong ends in one sentence. This module imports nothing that reads rows: ingest starts without it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.schema import SCHEMA_VERSION
from pipeline.dataset.split import HELD_OUT, Split
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

MANIFEST = "manifest.json"
MAX_LISTED_NAMES = 64
"""names that the manifest lists of a file or a log; hand histories of people have thousands in every part, too many to
keep in memory until the end of a run"""
LISTED_LOGS = 1_000
"""logs up to which `manifest.json` lists them itself, and of which a piece of a larger manifest tells"""
_NAME = r"[0-9a-f]{16}-\d{3,}"
_PIECE = re.compile(r"manifest/[0-9a-f]{16}\.jsonl", re.A)
_FILE = re.compile(rf"(?:hands|rejected)/{_NAME}\.parquet|decisions/street=(\w+)/{_NAME}\.[\w.%~-]+\.parquet", re.A)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_AGAIN = "ingest the logs into a new folder"


@dataclass(frozen=True)
class Settings:
    """Options that a dataset was made with."""

    agent: list[str]
    alias: dict[str, str]
    validation: list[str]
    game: list[str] | None
    """name and text of the definition given for all logs"""
    strength: bool
    hold_out: str = "deals"
    """what the validation side is made of, unless files are named: one in ten of `deals` or of `players`"""

    @property
    def split(self) -> Split:
        """Return what is held out."""
        return Split(tuple(self.validation), self.hold_out, tuple(self.alias.items()))


@dataclass(frozen=True)
class SourceFile:
    """A file that was ingested; the path is empty for standard input."""

    file: str
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class File:
    """A Parquet file of the dataset; game, street and agents only of decisions."""

    path: str
    rows: int
    bytes: int = 0
    sha256: str = ""
    crc32: int | None = None
    """compared at every reading, in less than half the time of the SHA-256; None in older datasets"""
    game: str | None = None
    street: str | None = None
    agents: dict[str, int] = field(default_factory=dict)
    """rows of each agent, in the order in which they stand in the file; empty for more than MAX_LISTED_NAMES"""
    unlisted: int = 0
    """how many agents there are where they are not listed: `opening.agent_rows` finds them in the file"""


@dataclass
class LogCounts:
    """Counts of the lines, hands, matches and players of a log, or of some of its lines."""

    lines: int = 0
    comments: int = 0
    scores: int = 0
    hands: int = 0
    rejected: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    matches: dict[str, list[int]] = field(default_factory=dict)
    """per header: hands announced, hand lines found, scores found"""
    names: list[str] = field(default_factory=list)
    """its players, sorted; of more than MAX_LISTED_NAMES only those whose decisions were wanted by name"""
    histories: dict[str, int] = field(default_factory=dict)
    """of hand histories: hands of which something is not known or not as the rules have it, by what it is"""
    big_blinds: dict[str, int] = field(default_factory=dict)
    """of hand histories: hands by the big blind, as the source writes amounts"""

    def add(self, other: LogCounts) -> None:
        """Add the counts of other lines of the same log."""
        for name in ("lines", "comments", "scores", "hands", "rejected"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("reasons", "histories", "big_blinds"):
            own = getattr(self, name)
            for word, count in getattr(other, name).items():
                own[word] = own.get(word, 0) + count
        for header, (announced, hands, scores) in other.matches.items():
            _, old_hands, old_scores = self.matches.get(header, (announced, 0, 0))
            self.matches[header] = [announced, old_hands + hands, old_scores + scores]
        self.names = sorted({*self.names, *other.names})

    @property
    def truncated(self) -> bool:
        """Return whether a match has no score and fewer hands than its header announced."""
        return any(scores == 0 and hands < announced for announced, hands, scores in self.matches.values())


@dataclass(frozen=True)
class Part:
    """Some megabytes of log lines and the files made from them."""

    name: str
    batch: str
    files: list[File]
    games: dict[str, str]
    """definitions by name"""
    logs: dict[str, LogCounts]
    """empty where the manifest is in pieces"""
    packed_logs: list[list[str]] = field(default_factory=list)
    """in the note of a finished part: logs that ended in it as `Batch.packed` has them"""

    @property
    def hands(self) -> int:
        """Return the number of hands."""
        return sum(file.rows for file in self.files if file.path.startswith("hands/"))


@dataclass(frozen=True)
class Batch:
    """Sources that were ingested together, the parts made from them, and what in them is no log."""

    key: str
    sources: list[str]
    skipped: list[list[str]]
    parts: list[str]
    packed: list[list[str]] | None = None
    """logs that were compressed or in archives, each with the SHA-256 of its bytes; None in older datasets"""


@dataclass(frozen=True)
class PartDetails:
    """Facts about the logs of a part, a line of a piece; facts about a batch stand with its first part."""

    batch: str
    part: str
    """empty in a batch in which nothing was a log"""
    sources: list[SourceFile]
    skipped: list[list[str]]
    packed: list[list[str]] | None
    logs: dict[str, LogCounts]

    def check(self, where: str) -> None:
        """Refuse what no `ingest` writes."""
        if any(len(pair) != 2 for pair in self.skipped):
            raise PipelineError(f"{where}: batch {self.batch!r} has a file left out without a reason: {_AGAIN}")
        if any(len(pair) != 2 or not _SHA256.fullmatch(pair[1]) for pair in self.packed or []):
            raise PipelineError(f"{where}: batch {self.batch!r} has a log in an archive without a checksum: {_AGAIN}")
        if any(len(match) != 3 for counts in self.logs.values() for match in counts.matches.values()):
            raise PipelineError(f"{where}: a match needs three numbers: {_AGAIN}")


@dataclass(frozen=True)
class Piece:
    """A file of `PartDetails`, one a line."""

    path: str
    bytes: int
    sha256: str
    batches: list[str]
    """of which it tells, in order"""


class IngestedLog(NamedTuple):
    """A log with the SHA-256 of its bytes and of the file that it was in, the same where it is a file itself."""

    label: str
    sha256: str
    source_sha256: str


@dataclass(frozen=True)
class Manifest:
    """The contents of a dataset's manifest."""

    schema: int
    fingerprint: str
    """a hash of the options and of the bytes of all sources"""
    options: Settings
    games: dict[str, str]
    sources: list[SourceFile]
    batches: list[Batch]
    parts: list[Part]
    pieces: list[Piece] = field(default_factory=list)
    """where there are any, `sources`, `batches` and the logs of parts stand in them"""
    data: str = ""
    """with pieces: see `data_fingerprint`"""
    folder: Path | None = field(default=None, compare=False)
    """in which the pieces are"""

    def details(self) -> Iterator[PartDetails]:
        """Yield what is said of each part's logs, batch by batch; of a manifest in pieces, one piece is in memory."""
        for piece in self.pieces:
            yield from self._read(piece)
        if not self.pieces:
            sources, parts = {source.file: source for source in self.sources}, {part.name: part for part in self.parts}
            for batch in self.batches:
                packed: list[list[str]] | None = None if batch.packed is None else []
                facts = [sources[label] for label in batch.sources], batch.skipped, batch.packed
                for name in batch.parts or [""]:
                    yield PartDetails(batch.key, name, *facts, parts[name].logs if name else {})
                    facts = [], [], packed

    @property
    def batch_keys(self) -> set[str]:
        """Return the keys of all batches."""
        return {key for piece in self.pieces for key in piece.batches} or {batch.key for batch in self.batches}

    def batch_details(self, key: str) -> list[PartDetails]:
        """Return what is said of one batch."""
        pieces = (self._read(piece) for piece in self.pieces if key in piece.batches)
        lines = (line for piece in pieces for line in piece) if self.pieces else self.details()
        return [line for line in lines if line.batch == key]

    def _read(self, piece: Piece) -> tuple[PartDetails, ...]:
        assert self.folder is not None
        return _read_piece(self.folder / piece.path, piece.sha256)

    @property
    def files(self) -> list[File]:
        """Return all files of the dataset."""
        return [file for part in self.parts for file in part.files]

    @property
    def decisions(self) -> list[File]:
        """Return the files of decisions."""
        return [file for file in self.files if file.street is not None]

    @property
    def hands(self) -> int:
        """Return the number of hands."""
        return sum(part.hands for part in self.parts)

    @property
    def knows_packed(self) -> bool:
        """Return whether it has the SHA-256 of every log in an archive; older datasets have those of archives alone."""
        return all(line.packed is not None for line in self.details())

    @property
    def logs(self) -> list[IngestedLog]:
        """Return every log that was ingested; where those in an archive are not known, the archive in their place."""
        logs = []
        for _, batch in groupby(self.details(), lambda line: line.batch):
            digests: dict[str, str] = {}
            skipped: set[str] = set()
            opened: set[str] = set()
            for line in batch:
                digests |= {source.file: source.sha256 for source in line.sources}
                skipped |= {label for label, _ in line.skipped}
                if line.packed and not digests:
                    raise PipelineError(f"{self.folder}: batch {line.batch!r} has logs and no source: {_AGAIN}")
                for label, sha256 in line.packed or []:
                    source = _source_of(label, digests)
                    opened.add(source)
                    logs.append(IngestedLog(label, sha256, digests[source]))
            whole = [source for source in digests if source not in skipped and source not in opened]
            logs += [IngestedLog(source, digests[source], digests[source]) for source in whole]
        return logs

    def write(self, folder: Path) -> None:
        """Write this as the manifest of the dataset in `folder`."""
        with replacing(folder / MANIFEST) as beside:
            beside.write_text(as_json(self), encoding="utf-8")


@lru_cache(maxsize=2)
def _read_piece(path: Path, sha256: str) -> tuple[PartDetails, ...]:
    """Read and check a piece of a manifest; the last ones are remembered, as neighbours are asked for in turn."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise PipelineError(f"{path} is damaged: restore it, or ingest the logs into a new folder")
    details = []
    for line in data.splitlines():
        try:
            details.append(read_record(PartDetails, json.loads(line), str(path)))
        except (ValueError, RecursionError) as error:
            raise PipelineError(f"cannot read {path}: {error}") from None
        details[-1].check(str(path))
    return tuple(details)


def _source_of(label: str, sources: dict[str, str]) -> str:
    """Return the source that a log lies in: its label begins with that of the source."""
    places = [label, *(label[: slash.start()] for slash in re.finditer("/", label))]
    first = next(iter(sources))  # standard input, the only source of its batch, has another name while it is read
    return next((place for place in places if place in sources), first)


def data_fingerprint(manifest: Manifest) -> str:
    """Hash the sources, by their paths and bytes, and the options that a dataset was made from."""
    return manifest.data or fingerprint_sources(manifest.sources, manifest.options)


def fingerprint_sources(sources: Iterable[SourceFile], options: Settings) -> str:
    """Return `data_fingerprint` of these sources and options."""
    digest = hashlib.sha256(b"[[")  # the JSON of all, never in memory at once
    for number, source in enumerate(sources):
        digest.update((", " if number else "").encode() + json.dumps(vars(source), sort_keys=True).encode())
    digest.update(b"], " + json.dumps(asdict(options), sort_keys=True).encode() + b"]")
    return digest.hexdigest()[:32]


_LEFT_OUT = {"folder"}
_UNLESS_EMPTY = {"pieces", "data", "packed_logs"}


def _fields_to_write(record: Any) -> dict[str, Any]:
    """Return the fields of a record; those that most datasets lack are left out where they are empty."""
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _LEFT_OUT and (value or name not in _UNLESS_EMPTY)
    }


def as_json(record: Any) -> str:
    """Return a record as a line of JSON; the same record gives the same bytes."""
    return json.dumps(record, default=_fields_to_write, sort_keys=True) + "\n"  # `asdict` would copy all of it


def read_manifest(folder: Path | str) -> Manifest:
    """Read and check the manifest of the dataset in `folder`.

    Raises `PipelineError` with a sentence when there is no dataset of this version in `folder`, or a manifest that
    no `ingest` wrote.
    """
    folder = Path(folder)
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise PipelineError(f"{folder} is no dataset: it has no manifest.json (make one with `ingest`)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise PipelineError(f"cannot read {path}: {error}") from None
    if isinstance(content, dict) and "schema" not in content:
        what = (
            "a bundle, not a dataset: name a folder that `ingest` made, or a new one to ingest into"
            if "models" in content
            else "no dataset"
        )
        raise PipelineError(f"{folder} is {what}")
    version = content.get("schema") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise PipelineError(
            f"{folder} has rows of version {str(version)[:20]}, and this program reads version {SCHEMA_VERSION}: "
            f"ingest the logs again, {_ingest_command(content, folder)}"
        )
    content.pop("folder", None)
    manifest = read_record(Manifest, content, str(path))
    _check(manifest, path)
    return replace(manifest, folder=folder)


def read_record(kind: Any, value: Any, where: str) -> Any:
    """Make a dataclass (or list, dict, number, text) of a JSON value, types checked all the way down.

    `where` is what the sentence about a misfit begins with: the file, to which the place inside it is added.
    """
    try:
        return _reader(kind)(value)
    except _MisfitError as misfit:
        raise PipelineError(f"{where}{''.join(reversed(misfit.place))} {misfit.what}") from None


class _MisfitError(Exception):
    """A value that is not of its type; `place` grows from the inside out: no cost where all is well."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.place: list[str] = []

    def inside(self, place: str) -> _MisfitError:
        """Add the place around the ones so far."""
        self.place.append(place)
        return self


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return a function from a JSON value to a `kind`, types checked; made once per type, since manifests are long."""
    origin, inside = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _record_reader(kind)
    if origin in (Union, types.UnionType):
        read = _reader(inside[0])
        return lambda value: None if value is None else read(value)
    if origin is list:
        return _list_reader(_reader(inside[0]))
    if origin is dict:
        return _dict_reader(inside[1])

    def plain(value: Any) -> Any:
        if type(value) is not kind:
            raise _not_a(kind)
        return value

    return plain


def _not_a(kind: Any) -> _MisfitError:
    called = {int: "a whole number", str: "text", bool: "true or false", list: "a list", dict: "an object"}
    return _MisfitError(f"is not {called[kind]}: {_AGAIN}")


def _record_reader(kind: Any) -> Callable[[Any], Any]:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    needed = {part.name for part in fields(kind) if part.default is MISSING and part.default_factory is MISSING}

    def record(value: Any) -> Any:
        if not isinstance(value, dict) or not readers.keys() >= value.keys() or not needed <= value.keys():
            raise _MisfitError(f"is not what ingest writes: it needs the fields {', '.join(readers)}")
        values = {}
        for name, part in value.items():
            try:
                values[name] = readers[name](part)
            except _MisfitError as misfit:
                raise misfit.inside(f": {name}") from None
        return kind(**values)

    return record


def _list_reader(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def items(value: Any) -> Any:
        if not isinstance(value, list):
            raise _not_a(list)
        values = []
        for i, part in enumerate(value):
            try:
                values.append(read(part))
            except _MisfitError as misfit:
                raise misfit.inside(f", {i}") from None
        return values

    return items


def _dict_reader(kind: Any) -> Callable[[Any], Any]:
    read = _reader(kind)

    def items(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _not_a(dict)
        if kind in (int, str) and all(type(part) is kind for part in value.values()):
            return value
        values = {}
        for name, part in value.items():
            try:
                values[name] = read(part)
            except _MisfitError as misfit:
                raise misfit.inside(f", {name[:80]!r}") from None
        return values

    return items


def _check(manifest: Manifest, path: Path) -> None:
    """Refuse a manifest whose parts refer to nothing, lead out of the dataset or contradict each other."""

    def wrong(what: str) -> PipelineError:
        return PipelineError(f"{path}: {what}: {_AGAIN}")

    parts = {part.name for part in manifest.parts}
    sources = {source.file for source in manifest.sources}
    if len(parts) < len(manifest.parts) or len(sources) < len(manifest.sources):
        raise wrong("two parts or two sources have the same name")
    for batch in manifest.batches:
        if not sources.issuperset(batch.sources) or not parts.issuperset(batch.parts):
            raise wrong(f"batch {batch.key!r} names a source or part that is not there")
        if batch.packed and not batch.sources:
            raise wrong(f"batch {batch.key!r} has logs and no source")
    for piece in manifest.pieces:
        if not _PIECE.fullmatch(piece.path) or not _SHA256.fullmatch(piece.sha256) or piece.bytes < 0:
            raise wrong(f"{piece.path[:200]!r} is not a piece that ingest writes")
    if manifest.pieces and (manifest.sources or manifest.batches):
        raise wrong("it has logs of its own beside those in pieces")
    if manifest.options.hold_out not in HELD_OUT:
        raise wrong(f"it holds out {manifest.options.hold_out[:40]!r}, neither deals nor players")
    if not manifest.pieces and sorted(name for batch in manifest.batches for name in batch.parts) != sorted(parts):
        raise wrong("a part is in no batch, or in two")
    if manifest.options.game is not None and len(manifest.options.game) != 2:
        raise wrong("the game given needs a name and a definition")
    for part in manifest.parts:
        check_part(part, manifest.games, str(path))
    for line in manifest.details() if not manifest.pieces else ():
        line.check(str(path))
    if len({file.path for file in manifest.files}) < len(manifest.files):
        raise wrong("a file is named twice")


def check_part(part: Part, games: dict[str, str], where: str) -> None:
    """Refuse a part whose files are not named as ingest names them."""
    for file in part.files:
        match = _FILE.fullmatch(file.path)
        agents_fit = sum(file.agents.values()) == file.rows if file.unlisted == 0 else not file.agents
        decisions_fit = file.street in STREETS and file.game in games and agents_fit
        if (
            not match
            or not file.path.split("/")[-1].startswith(f"{part.name}.")
            or match[1] != file.street
            or not (decisions_fit if file.street else file.game is None and not file.agents and not file.unlisted)
            or not 0 <= file.unlisted <= file.rows
            or min(file.rows, file.bytes, *file.agents.values()) < 0
            or not _SHA256.fullmatch(file.sha256)
        ):
            raise PipelineError(f"{where}: {file.path[:200]!r} is not a file that ingest writes: {_AGAIN}")


def _ingest_command(content: Any, folder: Path) -> str:
    """Return the command that makes a dataset of another version again, from the content of its manifest."""
    try:
        paths = [str(source["path"]) for source in content["sources"] if source["path"]]
        settings = content["options"]
        words = [word for name in ("agent", "validation") for value in settings[name] for word in (f"--{name}", value)]
        words += [word for pair in settings["alias"].items() for word in ("--alias", "=".join(pair))]
        words += [] if settings["strength"] else ["--no-strength"]
        words += ["--game", settings["game"][0]] if settings["game"] else []
        places = paths if len(paths) <= 3 else sorted({str(Path(path).parent) for path in paths})
        given = [shlex.quote(word) for word in places[:3]] + (["..."] if len(places) > 3 or not places else [])
        return " ".join(["pipeline ingest", *given, *map(shlex.quote, words), "--out", shlex.quote(f"{folder}-new")])
    except (KeyError, TypeError, AttributeError, IndexError):
        return f"pipeline ingest LOGS --out {shlex.quote(f'{folder}-new')}"
