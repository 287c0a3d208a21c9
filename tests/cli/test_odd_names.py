"""Names that are no text, or no names: what is written and read under them, and the sentence where they are refused."""

from __future__ import annotations

import io
import json
import os
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pipeline.cli._output import EscapedStream, echo_drawing, escaped, one_line
from pipeline.cli.main import group, main

ROOT = Path(__file__).parents[2]
NOT_TEXT = os.fsdecode(b"caf\xe9")
MATCH = ["match", "@call", "@fold", "--hands", "20", "--no-adjusted"]


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The sentence with which a command refuses."""
    with pytest.raises(SystemExit) as end:
        main([*map(str, words)])
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    return error


@pytest.mark.parametrize("name", ["", ".", "/", "..", "x/..", "./"])
def test_a_log_needs_a_name_of_its_own(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "nothing can be written in the place of" in refused(capsys, *MATCH, "--log", name)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_not_written_beside_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert "/dev/full is a device" in refused(capsys, *MATCH, "--log", "/dev/full")
    assert not Path("/dev/full.0.log").exists()


@pytest.mark.parametrize("name", [NOT_TEXT, "a\nb", "a\x1b[31m"])
def test_a_log_whose_name_cannot_be_printed_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "cannot be printed" in refused(capsys, *MATCH, "--log", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a\nb", "a|b", "a:b", "é", "x" * 65, ""])
def test_a_name_that_no_log_can_hold_is_refused_before_anything_is_played(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["play", "@call", "--hands", "1", "--name", name, "--log", tmp_path / "x.log"]
    assert "cannot stand in a log" in refused(capsys, *words)
    assert "cannot stand in a log" in refused(capsys, "deal", "kuhn.limit.2p", name, "Bob", "--hands", "1")
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_plays_under_a_path_with_a_newline(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "models" / "teacher", tmp_path / "a\nb")
    words = ["match", str(tmp_path / "a\nb"), "@call", "--hands", "20", "--no-adjusted", "--log", str(tmp_path / "m")]
    shown = CliRunner().invoke(group, words)
    assert shown.exit_code == 0, shown.output
    assert "\na-b " in f"\n{shown.stdout}"
    assert (tmp_path / "m.0.log").read_text(encoding="utf-8").splitlines()[-1].endswith(":a-b|call")


@pytest.mark.parametrize(
    "words",
    [
        ["match", "@call", "@fold"],
        ["predict", "@call", "MATCHSTATE:0:0::2c3c|"],
        ["ingest", "data/sample", "--out", "out"],
        ["show", "hand", "STATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice"],
    ],
    ids=lambda words: words[0],
)
def test_an_empty_name_of_a_game_is_no_game(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "no game file ''" in refused(capsys, *words, "--game", "")


def test_files_whose_names_are_no_text_are_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["match", "--sample", f"logs-{NOT_TEXT}", "--hands", "60"])
    main(["ingest", f"logs-{NOT_TEXT}", "--out", NOT_TEXT, "--no-strength", "--format", "wapiti"])
    main(["info", NOT_TEXT, "--verify"])
    words = ["--algorithm", "majority", "--pattern", "thesis", "--quiet"]
    main(["train", "--data", NOT_TEXT, "--agent", "teacher", "--out", f"b-{NOT_TEXT}", *words])
    table = ["--probabilities", f"logs-{NOT_TEXT}/sample.probs.parquet"]
    main(["evaluate", "--data", NOT_TEXT, f"b-{NOT_TEXT}", *table])
    main(["report", "--data", NOT_TEXT, f"b-{NOT_TEXT}", "--out", f"{NOT_TEXT}.html"])
    main(["ship", f"b-{NOT_TEXT}", "--out", f"s-{NOT_TEXT}.zip"])
    main(["match", f"s-{NOT_TEXT}.zip", "@call", "--hands", "20", "--json", "--no-adjusted"])
    assert "caf" in capsys.readouterr().out
    assert "cannot open" in refused(capsys, "query", "SELECT 1", "--data", NOT_TEXT)
    alias = f"teacher={NOT_TEXT}"
    assert "cannot be printed" in refused(capsys, "ingest", f"logs-{NOT_TEXT}", "--out", "x", "--alias", alias)


ESCAPES = "\x1b]0;owned\x07\r\x9b1A\u202e\x1b[31m\nforged"
ESCAPED = r"\x1b]0;owned\x07\r\x9b1A\u202e\x1b[31m\nforged"


def test_no_terminal_escape_of_a_bundle_reaches_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "models" / "teacher", tmp_path / "b")
    file = tmp_path / "b" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest |= {"version": ESCAPES, "agents": [f"Bob{ESCAPES}"], "missing": [ESCAPES]}
    manifest["models"][1]["about"]["algorithm"] = ESCAPES
    file.write_text(json.dumps(manifest), encoding="utf-8")
    main(["info", str(tmp_path / "b")])
    shown = capsys.readouterr().out
    assert shown.count(ESCAPED) == 4
    assert not set(shown) & set("\x1b\x07\r\x9b\u202e")
    assert not any(line.startswith("forged") for line in shown.splitlines())
    file.write_text(json.dumps(manifest | {"format": ESCAPES}), encoding="utf-8")
    assert r"the bundle format \x1b]0;owned" in refused(capsys, "info", tmp_path / "b")


def test_no_terminal_escape_of_a_rejected_line_reaches_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*MATCH, "--log", str(tmp_path / "x")])
    with (tmp_path / "x.0.log").open("a", encoding="utf-8") as log:
        escapes = ESCAPES.replace("\n", "")
        log.write(f"STATE:0:{escapes}:x|y\n")
    main(["ingest", str(tmp_path / "x.0.log"), "--out", str(tmp_path / "rows"), "--no-strength"])
    capsys.readouterr()
    for form in ([], ["--format", "csv"], ["--json"]):
        main(["query", "SELECT text FROM rejected", "--data", str(tmp_path / "rows"), *form])
        shown = capsys.readouterr().out
        assert "owned" in shown
        assert "\x1b" not in shown


def test_drawings_have_colours_and_no_other_text_has() -> None:
    assert escaped("\x1b[8m\x1b[31mK\x1b[0m") == r"\x1b[8m\x1b[31mK\x1b[0m"
    stream = EscapedStream(io.StringIO())
    with redirect_stdout(stream):
        echo_drawing("\x1b[31mK♥\x1b[0m\tx")
        click.echo("\x1b[31mK", color=True)
    assert stream.getvalue() == "K♥\tx\n" + r"\x1b[31mK" + "\n"
    assert one_line("a\nb\tc\x1b[0m") == r"a\nb\tc\x1b[0m"


@pytest.mark.parametrize("words", [["connect", "a\nb", "18791", "@call"], ["info", "a\nb"], ["match", "a\nb", "@call"]])
def test_a_newline_that_was_typed_does_not_make_a_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, *words)
    assert error.count("\n") == 1
    assert r"a\nb" in error
