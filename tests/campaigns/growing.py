"""Logs that something writes to while `ingest` reads them.

Run by `python tests/campaigns/torture.py growing --count N --seed S`. One of three logs is changed at a moment drawn at
random: when it has been found, hashed, or at one of the reads of its lines. It grows by whole lines or by half a line,
is cut short, written anew with as many bytes, or replaced by another file. Such a run must be refused with its
sentence and leave what was there before, or have the hands that the log held before or after the change; and the next
run, when nothing changes any more, must have the bytes of a new dataset.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import played
import pyarrow.dataset as ds

from pipeline.ingestion import readers, sources
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import find_game
from pipeline.runtime.errors import PipelineError

BARE = options(strength=False)
GAME = find_game("holdem.limit.2p.reverse_blinds")
HOW = ("whole lines", "half a line", "cut short", "as many bytes", "another file")
WHEN = ("found", "hashed", "read")


def campaign(count: int, seed: int) -> dict[str, Any]:
    """Return how many runs were refused and how many were accepted, by what happened and when."""
    found: Counter[str] = Counter()
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        how, when, has_older = draw.choice(HOW), draw.choice(WHEN), draw.random() < 0.5
        with tempfile.TemporaryDirectory() as folder:
            ending = _run(Path(folder), draw, how, when, has_older)
        found[f"{how}, when {when}: {ending}"] += 1
    return dict(sorted(found.items()))


def _run(folder: Path, draw: random.Random, how: str, when: str, has_older: bool) -> str:
    logs, rows = folder / "logs", folder / "rows"
    logs.mkdir()
    for i in range(3):
        (logs / f"{i}.log").write_text(_lines(draw, 150))
    if has_older:
        ingest([logs / "0.log"], rows, BARE)
    before = _tree(rows)
    path = logs / f"{draw.randrange(3)}.log"
    _fresh(logs, folder / "before")
    ending = "refused"
    with _changing(path, when, draw, _change(path, how, draw)):
        try:
            ingest([logs], rows, BARE)
            ending = "accepted"
        except PipelineError as error:
            refusal = str(error)
    if ending == "refused":
        assert "changed while it was read" in refusal, refusal
        assert {name: data for name, data in _tree(rows).items() if ".unfinished" not in name} == before
    after = _fresh(logs, folder / "after")
    if ending == "accepted":  # a log that was in the dataset already may stay in a batch of its own
        states = [_hands(folder / "before"), _hands(folder / "after")]
        assert _hands(rows) in states, f"rows of neither state of the log: {how}, {when}, {path.name}"
    ingest([logs], rows, BARE)
    assert _tree(rows) == after, "the next run ends with other bytes"
    return ending


def _lines(draw: random.Random, hands: int) -> str:
    return "".join(f"{played.hand(GAME, draw, i, ('Ann', 'Bob'))}\n" for i in range(hands))


def _fresh(logs: Path, out: Path) -> dict[str, bytes]:
    ingest([logs], out, BARE)
    return _tree(out)


def _tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _hands(folder: Path) -> list[dict[str, Any]]:
    """Return the hands of a dataset in the order of logs and lines."""
    columns = ["file", "line", "betting", "cards", "payoffs"]
    table = ds.dataset(folder / "hands").to_table(columns=columns)
    return sorted(table.to_pylist(), key=lambda hand: (hand["file"], hand["line"]))


def _change(path: Path, how: str, draw: random.Random) -> Callable[[], None]:
    """Return a function that changes a file, once."""
    more = _lines(draw, 20)
    changes = [how]

    def change() -> None:
        if not changes:
            return
        changes.clear()
        text = path.read_text()
        if how == "another file":
            beside = path.with_suffix(".new")
            beside.write_text(more)
            shutil.move(beside, path)
        elif how == "as many bytes":
            path.write_text((more * (len(text) // len(more) + 1))[: len(text)])
        elif how == "cut short":
            path.write_text(text[: len(text) // 3])
        else:
            with path.open("a") as file:
                file.write(more if how == "whole lines" else more[: len(more) // 2])

    return change


@contextmanager
def _changing(path: Path, when: str, draw: random.Random, change: Callable[[], None]) -> Iterator[None]:
    """Change a file, inside the context, when ingest has found or hashed it, or at one of its reads."""
    hashed, nth = sources.fingerprint, draw.randrange(4)

    def fingerprint(source: sources.LogSource) -> str:
        if Path(source.place) == path and when == "found":
            change()
        digest = hashed(source)
        if Path(source.place) == path and when == "hashed":
            change()
        return digest

    class Changing(readers.CountedStream):
        reads = 0

        def read(self, size: int = -1) -> bytes:
            self.reads += 1
            if when == "read" and self.reads > nth and Path(str(getattr(self._stream, "name", ""))) == path:
                change()
            return super().read(size if size < 0 else min(size, 1 << 13))

    with (
        patch("pipeline.ingestion.readers.CountedStream", Changing),
        patch("pipeline.ingestion.run.fingerprint", fingerprint),
    ):
        yield
