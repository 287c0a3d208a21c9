"""Printing of JSON, tables and sentences: in a terminal they keep to its width, in a file or pipe they do not.

In go values, cells or a sentence; JSON is printed, the others come back as text to print. Names and texts of bundles,
logs and datasets may come from anybody: `EscapedStream` is the one place where all output passes, and no control
character of theirs leaves it.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import click

_CONTROL = re.compile(
    r"(\x1b\[(?:[01]|[39][0-7])m)"  # the colours that this program writes, and what click adds for them
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def escaped(text: str) -> str:
    """Return a text whose control characters and marks of direction, newlines, tabs and colours aside, are escaped."""
    return _CONTROL.sub(lambda match: match[1] or match[0].encode("unicode_escape").decode(), text)


class EscapedStream:
    """A text stream that writes what `escaped` returns; in all else it is the stream that it is made from."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, escaped."""
        return self._stream.write(escaped(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_json(value: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Print one JSON value; `default` converts what JSON has no form for."""
    click.echo(json.dumps(value, default=default))


def terminal_width() -> int | None:
    """Return the terminal's width; None where stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """Return an aligned table; one wider than the terminal is broken between columns.

    The first `words` columns lie on the left.
    """
    from pipeline.report.text import TextTable

    return TextTable(head, rows, range(words)).text(terminal_width())


def sentence_text(text: str, indent: str = "") -> str:
    """Return a sentence, broken between words at the terminal's width, with `indent` before later lines."""
    width = terminal_width()
    if width is None:
        return text
    return textwrap.fill(
        text, max(width - 1, 20), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
