"""Records of the rows that a bundle's models learned from: its own, those of its priors and of a borrowed chart.

A record has the split of the dataset, digests of its logs and of the players imitated. It is made from a dataset's
manifest in training, goes into the bundle (`trained_on.safetensors`) and with it into every bundle that takes it for a
prior or borrows its chart. `check_trained_on` is the one place that compares records with a dataset: before it becomes
a prior, and before it is scored. Where a bundle of an earlier version does not say, that is said instead.

A log is known by the first eight bytes of the SHA-256 of its content, so a million logs take 8 MB; of more than
`MAX_LOGS` the lowest digests are kept, which still meet those of any data that shares more than a few logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.manifest import IngestedLog, Manifest, data_fingerprint
from pipeline.dataset.split import Split
from pipeline.runtime.arrays import expect
from pipeline.runtime.errors import PipelineError

TRAINED_ON = "trained_on"
"""the key and file of the records in a bundle"""
MAX_LOGS = 1 << 21
MAX_RECORDS = 256
NAMED_LOGS = 3
"""logs that are named in a sentence"""

Digests = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class TrainedOn:
    """Rows that models learned from."""

    role: str = ""
    """`prior` or `chart`, whose rows they are; empty for a bundle's own"""
    name: str = ""
    """of the prior or the chart's lender, as it was typed"""
    data: str = ""
    """the dataset's fingerprint"""
    split: Split | None = None
    """None where it is unknown"""
    logs: Digests = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)
    """of logs on the training side, and of the files that they were in, ascending"""
    is_complete: bool = False
    """whether no log is missing there"""
    players: Digests = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)
    """of the players imitated, by their names in the logs, ascending"""

    @classmethod
    def of(cls, manifest: Manifest, agents: Iterable[str]) -> TrainedOn:
        """Return the record of a training with a dataset's rows of some agents."""
        split = manifest.options.split
        logs = [log for log in manifest.logs if split.held_out(log.label) != 1]
        digests = _digests(sha256 for log in logs for sha256 in (log.sha256, log.source_sha256))
        return cls(
            data=data_fingerprint(manifest),
            split=split,
            logs=digests[:MAX_LOGS],
            is_complete=manifest.knows_packed and len(digests) <= MAX_LOGS,
            players=name_digests(agents, manifest.options.alias),
        )

    @classmethod
    def of_text(cls, sha256: str) -> TrainedOn:
        """Return the record of a training with a file of text rows."""
        return cls(data=sha256, logs=_digests([sha256]), is_complete=True)

    @classmethod
    def of_earlier_version(cls, about: Mapping[str, Any], agents: Iterable[str], *, is_text: bool) -> TrainedOn:
        """Return what a bundle without records says of its own rows."""
        data, settings = str(about.get("data", "")), about.get("options")
        if is_text and len(data) == 64 and set(data) <= set("0123456789abcdef"):
            return cls.of_text(data)
        split = Split.read(settings)
        aliases = {} if split is None or settings is None else settings.get("alias") or {}
        return cls(data=data, split=split, players=name_digests(agents, aliases))

    def words(self, bundle: str) -> str:
        """Return the name of the models that learned from these rows, for a sentence about a bundle."""
        subject = f"the {self.role} {self.name}"
        return bundle if not self.role or bundle == subject else f"{subject} of {bundle}"

    def shared(self, logs: Sequence[IngestedLog], *, sources: bool = True) -> list[str]:
        """Return the labels of those logs that were learned from, if `sources` also of those in the same archive."""
        if not logs:
            return []
        digests = np.array([[_digest(log.sha256), _digest(log.source_sha256)] for log in logs], np.uint64)
        is_shared = np.isin(digests[:, : 1 + sources], self.logs).any(axis=1)
        return [logs[i].label for i in np.flatnonzero(is_shared).tolist()]

    def to_json(self) -> dict[str, Any]:
        """Return the record without its digests, for a bundle's manifest."""
        split = self.split
        return {
            "role": self.role,
            "name": self.name,
            "data": self.data,
            "split": None
            if split is None
            else {"validation": list(split.validation), "hold_out": split.hold_out, "alias": dict(split.aliases)},
            "logs": len(self.logs),
            "is_complete": self.is_complete,
        }

    def to_arrays(self) -> dict[str, Digests]:
        """Return its digests."""
        return {"logs": self.logs, "players": self.players}


class Exposure(NamedTuple):
    """Logs that a model has, or may have, learned from and is scored on."""

    shared: tuple[str, ...] = ()
    """labels of logs"""
    unknown: tuple[str, ...] = ()
    """sentences on what is unknown"""

    @property
    def overlap(self) -> int | None:
        """Return the number of logs that were learned from and are scored on; None where it is unknown."""
        return None if self.unknown and not self.shared else len(self.shared)


def check_trained_on(
    records: Sequence[TrainedOn],
    bundle: str,
    manifest: Manifest,
    data: Path,
    *,
    split_remedy: str,
    log_remedy: str,
    all_rows: bool = False,
    allow_overlap: bool = False,
) -> Exposure:
    """Refuse a bundle that has learned from rows which a dataset holds out, or with `all_rows` from any of its logs.

    Parameters: the bundle's records and its name in sentences; the dataset's manifest and name; what to do about
    another split and about logs that were learned from, which ends the sentences; `allow_overlap` to
    accept such logs. Returns what was accepted, and what the bundle does not say.
    """
    split = manifest.options.split
    logs = manifest.logs if all_rows or split.validation else []
    logs = [log for log in logs if all_rows or split.held_out(log.label) == 1]
    fingerprint = data_fingerprint(manifest) if logs else ""
    shared: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for record in records:
        subject = record.words(bundle)
        if not all_rows and record.split is None:
            unknown[f"It is unknown what was held out when {subject} was trained."] = None
        elif not all_rows and record.split != split:
            assert record.split is not None
            raise PipelineError(
                f"{subject} was trained with {record.split.words} held out, {data} holds out {split.words}: some of its"
                f" rows may have been trained on; {split_remedy}"
            )
        labels = record.shared(logs, sources=all_rows)
        if all_rows and record.data == fingerprint and not record.is_complete:
            labels = [log.label for log in logs]
        if labels and not allow_overlap:
            raise PipelineError(f"{subject} was trained on {name_logs(labels)} of {data}: {log_remedy}")
        shared |= dict.fromkeys(labels)
        if logs and record.data != fingerprint and not (record.is_complete and manifest.knows_packed):
            missing = subject if not record.is_complete else f"{data}, which has archives"
            unknown[f"It is unknown whether {subject} was trained on logs of {data}: {missing} does not say."] = None
    return Exposure(tuple(shared), tuple(unknown))


def name_logs(labels: Collection[str]) -> str:
    """Return the first of some logs by name, and how many more there are."""
    more = len(labels) - NAMED_LOGS
    return ", ".join(list(labels)[:NAMED_LOGS]) + (f" and {more:,} more logs" if more > 0 else "")


def name_digests(agents: Iterable[str], aliases: Mapping[str, str]) -> Digests:
    """Return hashes of players by their names in the logs, ascending; `agents` are names after aliases."""
    chosen = set(agents)
    names = {old for old, new in aliases.items() if new in chosen} | (chosen - set(aliases))
    return _digests(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest() for name in names)


def with_borrowed(own: TrainedOn, borrowed: Iterable[tuple[str, str, Sequence[TrainedOn]]]) -> tuple[TrainedOn, ...]:
    """Return all records of a bundle: its own, and those of each (role, name, records) that it takes along, once."""
    records = {_identity(own): own}
    for role, name, lent in borrowed:
        for record in lent_records(role, name, lent):
            records.setdefault(_identity(record), record)
    if len(records) > MAX_RECORDS:
        raise PipelineError(f"its priors have learned from {len(records)} sets of rows: name at most {MAX_RECORDS}")
    return tuple(records.values())


def lent_records(role: str, name: str, records: Iterable[TrainedOn]) -> tuple[TrainedOn, ...]:
    """Return a bundle's records as those of the prior or chart that it is to others."""
    return tuple(record if record.role else replace(record, role=role, name=name) for record in records)


def _identity(record: TrainedOn) -> tuple[Any, ...]:
    return record.data, record.split, record.is_complete, record.logs.tobytes(), record.players.tobytes()


def read_records(entries: Any, arrays: Mapping[str, NDArray[Any]]) -> tuple[TrainedOn, ...]:
    """Return the records of a bundle's manifest and file; anything else raises `ValueError`."""
    if not isinstance(entries, list) or not 0 < len(entries) <= MAX_RECORDS:
        raise ValueError("it does not say what it was trained on")
    return tuple(_read_record(entry, number, arrays) for number, entry in enumerate(entries))


def _read_record(entry: Mapping[str, Any], number: int, arrays: Mapping[str, NDArray[Any]]) -> TrainedOn:
    role, name, data = (entry[key] for key in ("role", "name", "data"))
    if role not in ("", "prior", "chart") or not all(isinstance(text, str) for text in (name, data)):
        raise ValueError("it does not say whose rows it was trained on")
    logs, players = (expect(arrays, f"{number} {key}", np.uint64, (None,)) for key in ("logs", "players"))
    if len(logs) > MAX_LOGS or any((digests[1:] <= digests[:-1]).any() for digests in (logs, players)):
        raise ValueError("the digests of its logs are not in order")
    if entry["split"] is not None and Split.read(entry["split"]) is None:
        raise ValueError("it does not say what was held out")
    if type(entry["is_complete"]) is not bool or entry["logs"] != len(logs):
        raise ValueError("it does not say how many logs it was trained on")
    return TrainedOn(role, name, data, Split.read(entry["split"]), logs, entry["is_complete"], players)


def _digest(sha256: str) -> int:
    return int(sha256[:16], 16)


def _digests(texts: Iterable[str]) -> Digests:
    return np.unique(np.array([_digest(text) for text in texts], np.uint64))


def own_logs(records: Iterable[TrainedOn], manifest: Manifest, agents: Iterable[str]) -> list[str]:
    """Return the labels of those logs of a dataset from which the records have learned one of the agents."""
    players, fingerprint = name_digests(agents, manifest.options.alias), data_fingerprint(manifest)
    logs = [log for log in manifest.logs if manifest.options.split.held_out(log.label) != 1]
    labels: dict[str, None] = {}
    for record in records:
        if np.isin(players, record.players).any():
            is_same_data = record.data == fingerprint
            labels |= dict.fromkeys([log.label for log in logs] if is_same_data else record.shared(logs))
    return list(labels)
