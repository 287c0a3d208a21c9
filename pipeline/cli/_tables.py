"""Printing of JSON, tables and sentences: in a terminal they keep to its width, in a file or pipe they do not.

In go values, cells or a sentence; JSON is printed, the others come back as text to print.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import click


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
