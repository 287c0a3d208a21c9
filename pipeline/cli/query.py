"""`query`: SQL over a dataset's Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeline.cli._options import data_option, format_option, json_option
from pipeline.cli._output import print_json, table_text


@click.command()
@click.argument("sql", metavar="SELECT")
@data_option()
@format_option("table", "csv")
@click.option("--seconds", type=click.IntRange(1, 10**6), default=300, show_default=True, help="Time limit.")
@json_option
def command(sql: str, data: Path, form: str, seconds: int, as_json: bool) -> None:
    """Answer one SQL query about a dataset, whose views are decisions, hands and rejected.

    The columns are listed in docs/formats.md, or by the query "DESCRIBE decisions". The query can read the dataset's
    own files and nothing else. Needs the extra [query].

    Example: pipeline query "SELECT agent, street, count(*) AS n FROM decisions GROUP BY ALL" --data out/rows
    """
    from pipeline.dataset.sql import query
    from pipeline.report.text import TextTable

    answer = query(data, sql, seconds=seconds)
    if as_json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], default=_plain)
    elif form == "csv":
        click.echo(TextTable(answer.columns, answer.rows).csv(), nl=False)
    else:
        click.echo(table_text(answer.columns, [[_cell(value) for value in row] for row in answer.rows]))
        click.echo(f"({len(answer.rows):,} row{'' if len(answer.rows) == 1 else 's'})", err=True)


def _plain(value: Any) -> Any:
    """Return a value that JSON has no form for: bytes as a list of numbers, everything else as text."""
    return list(value) if isinstance(value, bytes) else str(value)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
