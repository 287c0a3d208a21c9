"""Print and write results: JSON, tables, sentences and drawings on stdout, charts and logs of hands in files.

In go values, cells, sentences and charts; JSON and drawings are printed, tables and sentences come back as text that
keeps to the width of a terminal. Names and texts of bundles, logs and datasets may come from anybody: `EscapedStream`
is the one place where all output passes, and no control character leaves it but newlines, tabs and, by `echo_drawing`,
the colours of our own drawings. `one_line` escapes newlines too, so that no text from outside forges a line.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import check_name, write_text

if TYPE_CHECKING:
    from pipeline.models.charts import Chart
    from pipeline.poker.game import Game
    from pipeline.report.text import TextTable

CHART_KINDS = (".svg", ".txt", ".chart", ".json")
"""kinds of files of a chart: a picture, the text that `parse_chart` reads (two endings), an object"""
HISTORIES = ".phhs"
"""the ending of hand histories; a log that is called so is written as one"""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """Return a text whose control characters and marks of direction, newlines and tabs aside, are escaped."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return a text from outside as a part of one line: newlines and tabs are escaped as well."""
    return escaped(text).replace("\n", r"\n").replace("\t", r"\t")


class EscapedStream:
    """A text stream that writes what `escaped` returns; in all else it is the stream that it is made from."""

    def __init__(self, stream: TextIO) -> None:
        self.plain = stream

    def write(self, text: str) -> int:
        """Write a text, escaped."""
        return self.plain.write(escaped(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def echo_drawing(text: str = "") -> None:
    """Print a drawing of ours with its colours; every name in it has gone through `one_line`."""
    click.echo(text, file=sys.stdout.plain if isinstance(sys.stdout, EscapedStream) else None)


def print_json(value: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Print one JSON value; `default` converts what JSON has no form for."""
    click.echo(json.dumps(value, default=default))


def terminal_width() -> int | None:
    """Return the terminal's width; None where stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def terminal_table(table: TextTable) -> str:
    """Return a table as aligned text; one wider than the terminal is broken between columns."""
    rows = [[one_line(cell) if isinstance(cell, str) else cell for cell in row] for row in table.rows]
    return replace(table, head=list(map(one_line, table.head)), rows=rows).text(terminal_width())


def table_text(head: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1) -> str:
    """Return an aligned table of cells; the first `words` columns lie on the left."""
    from pipeline.report.text import TextTable

    return terminal_table(TextTable(head, rows, range(words)))


def sentence_text(text: str, indent: str = "") -> str:
    """Return a sentence, broken between words at the terminal's width, with `indent` before later lines."""
    text, width = one_line(text), terminal_width()
    if width is None:
        return text
    return textwrap.fill(
        text, max(width - 1, 20), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def file_kind(path: Path, *kinds: str, option: str = "--out") -> str:
    """Return the extension of a file to write, in small letters; one that the command cannot write is refused.

    >>> file_kind(Path("out/x.SVG"), ".svg", ".txt")
    '.svg'
    """
    kind = path.suffix.lower()
    if kind not in kinds:
        endings = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        problem = f"{kind} is not a kind of file that this command writes" if kind else "the name has no extension"
        raise PipelineError(f"{option} {path}: {problem}; end the name in {endings}")
    return kind


def check_chart_file(path: Path | None) -> None:
    """Refuse a file that a chart cannot be written to, before any work is done."""
    if path is not None:
        file_kind(path, *CHART_KINDS)


def write_chart(chart: Chart, path: Path, situations: Sequence[int], *, title: str) -> None:
    """Write a chart as its file's extension says; a picture has the named situations, other kinds have all."""
    from pipeline.report.grids import chart_picture

    kind = file_kind(path, *CHART_KINDS)
    if kind == ".svg":
        text = chart_picture(chart, situations, title=title)
    elif kind == ".json":
        text = json.dumps(chart.json(range(len(chart.words)))) + "\n"
    else:
        text = chart.to_text()
    write_text(path, text)


def draw_situations(chart: Chart, situations: Sequence[int], reached: Sequence[bool] | None = None) -> None:
    """Draw the grids of situations in the terminal, below each other."""
    from pipeline.report.grids import chart_text

    colour, columns = sys.stdout.isatty(), shutil.get_terminal_size((80, 24)).columns
    flags = [True] * len(situations) if reached is None else reached
    grids = [
        chart_text(chart, situation, colour=colour, columns=columns, reached=is_reached)
        for situation, is_reached in zip(situations, flags, strict=True)
    ]
    echo_drawing("\n\n".join(grids))


def log_base(log: Path | None, game: Game) -> Path | None:
    """Return the start of the names of a match's logs; hand histories, which `.phhs` asks for, need hold'em."""
    if log is None:
        return None
    check_name(log)
    if log.suffix != HISTORIES:
        return log
    if not game.is_holdem:
        raise PipelineError(
            f"--log {log}: hand histories ({HISTORIES}) are of hold'em, not {game.name}; end it in .log"
        )
    return log.with_suffix("")


def written_logs(logs: Sequence[Path], asked: Path | None, game: Game) -> list[Path]:
    """Return the logs of a match whose `--log` was `asked`: where that is a hand history, ACPC logs become such."""
    if asked is None or asked.suffix != HISTORIES:
        return list(logs)
    from pipeline.formats.histories.convert import convert_log

    histories = []
    for log in logs:
        histories.append(log.with_suffix(HISTORIES))
        convert_log(log, game, histories[-1])
        if histories[-1] != log:  # a log that is called .phhs has become its own history
            log.unlink()
    return histories
