"""SQL over a dataset, answered by DuckDB (the extra `[query]`).

In goes a dataset's folder and one SELECT; out come the names of its columns and its rows. The statement sees three
views: `decisions` (with the columns `agent` and `street`), `hands` and `rejected`. DuckDB may open the Parquet files
that the dataset's manifest names and nothing else on the machine, may not load extensions, and takes a single
SELECT, so a query that somebody else wrote can neither change the dataset nor read another file; and it has limits of
time, memory and rows, so that it can neither hold up the machine nor fill it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.dataset.manifest import read_manifest
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.runtime.tabular import SHOWN_ROWS, html_table

if TYPE_CHECKING:
    import pandas as pd

SECONDS, MEMORY_MB, ROWS = 300, 4_000, 1_000_000
"""the limits of a query unless others are given"""
FETCHED = 10_000
"""rows of the answer that are taken at a time"""
VIEWS = ("decisions", "hands", "rejected")


class QueryResult(NamedTuple):
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def _repr_html_(self) -> str:
        cells = [dict(zip(self.columns, row, strict=True)) for row in self.rows[:SHOWN_ROWS]]
        return html_table("QueryResult", cells, len(self.rows))

    def frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with the same columns."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(self.columns))


def query(
    folder: Path | str, sql: str, *, seconds: float = SECONDS, memory_mb: int = MEMORY_MB, rows: int = ROWS
) -> QueryResult:
    """Ask a dataset one SELECT over the views `decisions`, `hands` and `rejected`.

    Parameters
    ----------
    folder : str or Path
        A dataset that `ingest` wrote.
    sql : str
        One SELECT in DuckDB's SQL (`DESCRIBE decisions` and `SUMMARIZE decisions` count as such).
    seconds : float
        How long it may take.
    memory_mb : int
        Megabytes of memory that DuckDB may take for it.
    rows : int
        Rows that the answer may have.

    Returns
    -------
    QueryResult
        `columns`, `rows`, and `frame()` for a pandas DataFrame.

    Examples
    --------
    >>> query("out/rows", "SELECT agent, count(*) FROM decisions GROUP BY ALL").rows  # doctest: +SKIP
    [('teacher', 71094), ...]
    """
    duckdb = import_extra("duckdb")
    paths = _paths(Path(folder))
    with duckdb.connect(":memory:") as connection:
        for view in VIEWS:
            _create_view(connection, view, paths[view])
        connection.execute(f"SET memory_limit = '{memory_mb}MB'")
        _lock(connection, [path for files in paths.values() for path in files])
        timer = threading.Timer(seconds, connection.interrupt)
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise PipelineError("a query is one SELECT over decisions, hands and rejected")
            timer.start()
            result = connection.execute(statements[0])
            columns = tuple(column[0] for column in result.description or ())
            answer: list[tuple[Any, ...]] = []
            while piece := result.fetchmany(min(FETCHED, rows + 1 - len(answer))):
                answer += piece
                if len(answer) > rows:
                    raise PipelineError(
                        f"the query has more than {rows:,} rows: add a LIMIT, or give p.query more `rows`"
                    )
            return QueryResult(columns, answer)
        except duckdb.InterruptException:
            raise PipelineError(
                f"the query took more than {seconds:g} s: ask for less, or allow more (--seconds)"
            ) from None
        except (duckdb.OutOfMemoryException, MemoryError):
            raise PipelineError(
                f"the query needs more than {memory_mb:,} MB of memory: ask for less, or give p.query more `memory_mb`"
            ) from None
        except duckdb.Error as error:
            raise PipelineError(f"the query failed: {_first_line(error)}") from None
        finally:
            timer.cancel()


def _paths(folder: Path) -> dict[str, list[str]]:
    """Return the Parquet files of each view."""
    if not str(folder.resolve()).isprintable():
        raise PipelineError(f"DuckDB cannot open {str(folder)!r}: its path has characters that are no text; move it")
    listed = [file.path for file in read_manifest(folder).files]
    root = folder.resolve()
    paths: dict[str, list[str]] = {view: [] for view in VIEWS}
    for name in sorted(listed):
        view = name.partition("/")[0]
        path = root / name
        if view in paths and path.resolve().is_relative_to(root):
            paths[view].append(str(path))
    if not paths["decisions"] or not paths["hands"]:
        raise PipelineError(f"{folder} holds no decisions: ingest some logs into it")
    return paths


def _create_view(connection: Any, view: str, paths: list[str]) -> None:
    import duckdb

    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    partitions = "hive_partitioning = true, hive_types_autocast = false" if view == "decisions" else ""
    options = ", ".join(part for part in ("union_by_name = true", partitions) if part)
    try:
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet([{listed}], {options})")
    except duckdb.Error as error:
        raise PipelineError(f"cannot read the {view} of the dataset: {_first_line(error)}") from None


def _lock(connection: Any, paths: list[str]) -> None:
    """Forbid the connection everything but reading these files; the last setting makes the others final."""
    connection.execute("SET allowed_paths = [" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET temp_directory = ''")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())
