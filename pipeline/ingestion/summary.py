"""The summary of a run of ingest: the dataset's totals, what the run added or left out, and what it refuses.

What the manifest says of each part's logs goes in, a `Summary` comes out, which the command prints.
`DatasetTotals.check` alone decides what counts as an error.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pipeline.dataset.manifest import LogCounts, Manifest, PartDetails
from pipeline.ingestion.options import Options
from pipeline.ingestion.sources import STANDARD_INPUT
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.tabular import Tabular

_NAMED = re.compile(r"(?:\d{4}\.)?\dp[ln]\.|\d{4}-\dp-(?:no)?limit\.", re.I)


@dataclass(repr=False)
class Summary(Tabular):
    """Totals of a dataset, and the sources that a run added, changed or left out."""

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
    """files that are no logs, and folders that were not looked into, and why"""
    histories: dict[str, int] = field(default_factory=dict)
    """hands of hand histories of which something is not known or odd: see `ingestion.histories.count_peculiar`"""
    big_blinds: dict[str, int] = field(default_factory=dict)
    """hands of hand histories by big blind, as their sources write amounts"""
    seconds: float = 0.0

    def json(self) -> dict[str, Any]:
        """Return the JSON object that the command prints."""
        return asdict(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per count: what was counted, of rejected lines and odd hands also the reason."""
        plain = ("files", "lines", "comments", "scores", "hands", "decisions", "rejected", "new", "changed")
        rows = [{"counted": name, "reason": "", "count": getattr(self, name)} for name in (*plain, "unchanged")]
        reasons = {"rejected": self.rejected_by_reason, "history": self.histories}
        rows += [
            {"counted": name, "reason": reason, "count": count}
            for name, counts in reasons.items()
            for reason, count in counts.items()
        ]
        return rows

    def __repr__(self) -> str:
        return f"<Dataset of {self.hands:,} hands, {self.decisions:,} decisions; {self.rejected:,} rejected lines>"


class DatasetTotals:
    """Totals of a dataset, added up part by part, and the check of what was not asked for."""

    def __init__(self, options: Options, added: set[str]) -> None:
        """Begin at nothing; `added` are the sources that are new or changed in this run."""
        self.options, self.added = options, added
        self.total, self.fresh = LogCounts(), LogCounts()
        self.skipped: list[tuple[str, str]] = []
        self.logs = 0
        self.first_rejected: tuple[str, LogCounts] | None = None
        self.players: set[str] = set()
        self.truncated: list[str] = []
        self.misnamed: dict[str, str] = {}
        self._batch = ""
        self._part_logs: Container[str] = ()
        """of the part before: a log may go on in the next"""
        self._unfinished: dict[str, LogCounts] = {}
        """logs of the batch that are cut short unless they go on in another part"""

    def add(self, line: PartDetails) -> None:
        """Add the logs of a part."""
        if line.batch != self._batch:
            self._end_batch()
            self._batch, self._part_logs = line.batch, ()
        self.skipped += [(label, reason) for label, reason in line.skipped]
        for label, log in line.logs.items():
            self.logs += label not in self._part_logs
            self.total.add(log)
            self.total.names.clear()
            if _lies_in(label, self.added) or label.startswith(STANDARD_INPUT):
                self.fresh.add(log)
                self.fresh.names.clear()
            if log.rejected and self.first_rejected is None:
                self.first_rejected = label, log
            if self.options.agents:
                self.players.update(map(self.options.rename, log.names))
            self._check_log(label, log)
        self.total.matches.clear()
        self.fresh.matches.clear()
        self._part_logs = line.logs

    def _check_log(self, label: str, log: LogCounts) -> None:
        """Note whether a log is cut short, and whether its name lacks one of the players."""
        counts = self._unfinished.pop(label, None) or LogCounts()
        counts.add(log)
        if counts.truncated:
            self._unfinished[label] = counts
        base = PurePosixPath(label).name
        missing = [name for name in log.names if name not in base] if _NAMED.match(base) else []
        if missing:
            self.misnamed[label] = min([*missing, self.misnamed.get(label, missing[0])])

    def _end_batch(self) -> None:
        """Take it that no log of the batch goes on."""
        self.truncated += self._unfinished
        self._unfinished.clear()

    def check(self, strict: bool) -> None:
        """Refuse what was not asked for: rejected lines when strict, no hands at all, agents that are not there."""
        if strict and self.first_rejected:
            label, log = self.first_rejected
            reason = max(log.reasons, key=log.reasons.__getitem__)
            raise PipelineError(
                f"{self.total.rejected} lines rejected, which --strict forbids; first in {label} ({reason})"
            )
        if self.added and not self.fresh.hands:
            raise PipelineError(f"no hand found in {_shorten(sorted(self.added))}: {self._why_no_hand()}")
        for agent in self.options.agents:
            if agent not in self.players:
                raise PipelineError(f"no hand of agent {agent!r}{nearest(agent, self.players)}")

    def _why_no_hand(self) -> str:
        """Return why there is no hand: reasons of lines, else of files."""
        reasons = sorted(self.fresh.reasons.items(), key=_by_count)
        by_line = "; ".join(f"{count:,} lines {reason}" for reason, count in reasons)
        return by_line or "; ".join(f"{label} {reason}" for label, reason in self.skipped[:3]) or "no lines"

    def fill(self, summary: Summary, manifest: Manifest) -> None:
        """Fill the summary."""
        self._end_batch()
        total = self.total
        summary.skipped += self.skipped
        summary.decisions = sum(file.rows for file in manifest.decisions)
        summary.files, summary.truncated, summary.misnamed = (
            self.logs,
            sorted(self.truncated),
            sorted(self.misnamed.items()),
        )
        for name in ("lines", "comments", "scores", "hands", "rejected"):
            setattr(summary, name, getattr(total, name))
        summary.histories = total.histories
        summary.big_blinds = dict(sorted(total.big_blinds.items(), key=lambda item: float(item[0])))
        summary.rejected_by_reason = dict(sorted(total.reasons.items(), key=_by_count))


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    """Return the key by which reasons are sorted, the most frequent first."""
    return -item[1], item[0]


def _lies_in(label: str, sources: set[str]) -> bool:
    """Return whether a log is one of the sources or lies in one of them."""
    return label in sources or any(label[: slash.start()] in sources for slash in re.finditer("/", label))


def _shorten(labels: list[str]) -> str:
    """Return the first three of many labels, and how many more there are."""
    return ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
