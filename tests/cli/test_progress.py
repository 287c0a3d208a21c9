"""What a terminal shows while a command works."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from pipeline.cli import _progress
from pipeline.cli._output import sentence_text, table_text
from pipeline.cli._progress import COMPILING, WORKING, CompilingNote, StatusLine, bar

AGAIN = "\r\x1b[K"
"""goes back to the beginning of the line and clears it"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_a_line_is_drawn_again_while_nothing_changes(pipe: tuple[int, int]) -> None:
    line = StatusLine(pipe[1], interval=0.001)
    line.show(WORKING, "reading rows")
    found = ""
    while found.count("reading rows") < 3:
        found += os.read(pipe[0], 1).decode()
    line.clear(WORKING)
    assert found == f"{AGAIN}reading rows" * 3


def test_compiling_hides_the_work_until_it_is_done(pipe: tuple[int, int]) -> None:
    line = StatusLine(pipe[1], interval=3600)
    line.show(WORKING, "42 %")
    line.show(COMPILING, "compiling 1")
    line.show(WORKING, "43 %")
    line.clear(COMPILING)
    line.clear(WORKING)
    assert os.read(pipe[0], 1000).decode().split(AGAIN)[1:] == ["42 %", "compiling 1", "compiling 1", "43 %", ""]


def test_compiled_code_is_called_kept_only_where_it_could_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    for kept in (True, False):
        compiling = CompilingNote()
        if not kept:
            compiling.emit(logging.makeLogRecord({"msg": "compiled code cannot be kept", "kept": False}))
        compiling.emit(logging.makeLogRecord({"msg": "compiled", "count": 3, "seconds": 5.0, "ended": True}))
        compiling.close()
        assert capsys.readouterr().err.endswith(f"in 5 s{' (kept)' if kept else ''}\n")


def test_a_line_never_wraps(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    StatusLine(pipe[1], interval=3600).show(WORKING, "flop l-bfgs    1  objective      13295.3")
    assert os.read(pipe[0], 1000).decode() == f"{AGAIN}flop l-bfgs    1  o"


def test_tables_and_sentences_keep_to_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    head, row = ["agent", "street", *(f"model {i}" for i in range(9))], ["slumbot", "river", *["12.34 ±0.56"] * 9]
    monkeypatch.setenv("COLUMNS", "60")
    wide = table_text(head, [row], words=2)
    assert wide.count("\n") == 1
    assert "\n" not in sentence_text("word " * 50)
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb"), os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        narrow, sentence = table_text(head, [row], words=2), sentence_text("word " * 50)
        monkeypatch.undo()
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.count("slumbot  river") == narrow.count("agent") > 1
    assert narrow.split().count("±0.56") == 9
    assert max(map(len, sentence.splitlines())) < 60


def test_what_goes_before_the_work_is_not_counted_in_its_estimate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with bar("match", "hands") as progress:
        for seconds, done in ((100, 0), (111, 110), (122, 220)):  # players need 100 seconds to start
            now[0] = seconds
            progress(done, 1100)
    assert capsys.readouterr().err.splitlines() == [
        "match    0%",
        "match   10%  10 hands/s  1:39 left",
        "match   20%  10 hands/s  1:28 left",
    ]
