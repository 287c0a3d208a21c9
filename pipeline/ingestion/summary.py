"""The summary of a run of ingest: the dataset's totals, what the run added or left out, and what it refuses.

The dataset's manifest goes in, a `Summary` comes out, which the command prints. `check_dataset` alone decides what
counts as an error.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pipeline.dataset.manifest import Batch, LogCounts, Manifest
from pipeline.ingestion.options import Options
from pipeline.ingestion.parts import FileCounts
from pipeline.ingestion.sources import STANDARD_INPUT
from pipeline.runtime.errors import PipelineError, nearest

_NAMED = re.compile(r"(?:\d{4}\.)?\dp[ln]\.|\d{4}-\dp-(?:no)?limit\.", re.I)


@dataclass
class Summary:
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


def check_dataset(manifest: Manifest, added: set[str], options: Options, strict: bool) -> None:
    """Refuse what was not asked for: rejected lines when strict, no hands at all, agents that are not there.

    `added` are the sources that are new or changed in this run.
    """
    logs = [(label, log) for part in manifest.parts for label, log in part.logs.items()]
    bad = next(((label, log) for label, log in logs if log.rejected), None)
    if strict and bad:
        total = sum(log.rejected for _, log in logs)
        reason = max(bad[1].reasons, key=bad[1].reasons.__getitem__)
        raise PipelineError(f"{total} lines rejected, which --strict forbids; first in {bad[0]} ({reason})")
    fresh = [log for label, log in logs if _lies_in(label, added) or label.startswith(STANDARD_INPUT)]
    if added and not any(log.hands for log in fresh):
        raise PipelineError(f"no hand found in {_shorten(sorted(added))}: {_why_no_hand(fresh, manifest.batches)}")
    players = {options.rename(name) for _, log in logs for name in log.names}
    for agent in options.agents:
        if agent not in players:
            raise PipelineError(f"no hand of agent {agent!r}{nearest(agent, players)}")


def _why_no_hand(logs: list[LogCounts], batches: list[Batch]) -> str:
    """Return why there is no hand: reasons of lines, else of files."""
    reasons: dict[str, int] = {}
    for log in logs:
        for reason, count in log.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + count
    by_line = "; ".join(f"{count:,} lines {reason}" for reason, count in sorted(reasons.items(), key=_by_count))
    skipped = [f"{label} {reason}" for batch in batches for label, reason in batch.skipped]
    return by_line or "; ".join(skipped[:3]) or "no lines"


def fill_summary(manifest: Manifest, summary: Summary) -> None:
    """Fill the summary from the dataset."""
    logs: dict[str, FileCounts] = {}
    for batch in manifest.batches:
        summary.skipped += [(label, reason) for label, reason in batch.skipped]
    for part in manifest.parts:
        summary.decisions += sum(file.rows for file in part.files if file.street)
        for label, log in part.logs.items():
            logs.setdefault(label, FileCounts()).add(log)
    total = FileCounts()
    for label, counts in sorted(logs.items()):
        total.add(counts)
        if counts.truncated:
            summary.truncated.append(label)
        base = PurePosixPath(label).name
        missing = [name for name in sorted(counts.names) if name not in base] if _NAMED.match(base) else []
        if missing:
            summary.misnamed.append((label, missing[0]))
    summary.files = len(logs)
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
