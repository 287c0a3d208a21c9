"""Logs to rows, rows to read, and logs again: `ingest`, `load`, `chart`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.api._arguments import AnyPath, Paths, Texts, texts
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.models.charts import Chart, read_chart_counts

if TYPE_CHECKING:
    from pipeline.dataset.export import Exported
    from pipeline.ingestion.summary import Summary


def ingest(
    logs: Paths,
    out: AnyPath,
    *,
    agent: Texts = (),
    alias: Texts = (),
    game: str | None = None,
    validation: Texts = (),
    hold_out: str = "deals",
    strength: bool = True,
    strict: bool = False,
    workers: int | None = None,
) -> Summary:
    """Turn ACPC logs into a dataset of decision rows; a second run adds only new and changed files.

    Parameters
    ----------
    logs : path or sequence of paths
        Files, folders, glob patterns or archives.
    out : path
        The dataset's folder; it may exist.
    agent : str or sequence of str
        Keep decisions of these agents only.
    alias : str or sequence of str
        `OLD=NEW` renames a player.
    game : str, optional
        A `.game` file or the name of a built-in game, for all logs.
    validation : str or sequence of str
        Glob patterns of files to hold out, instead of one deal in ten.
    hold_out : str
        `deals` holds out one deal in ten, `players` one player in ten.
    strength : bool
        Whether to store the hand strength columns.
    strict : bool
        Whether a rejected line is an error.
    workers : int, optional
        Threads; all processors by default.

    Returns
    -------
    Summary
        Counts of files, lines, hands, decisions and rejected lines.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@raise", hands=20, log=f"{folder}/logs/call.raise")
    >>> p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False).hands
    20
    """
    from pipeline.ingestion.options import options
    from pipeline.ingestion.run import ingest as run

    chosen = options(
        agents=texts(agent),
        aliases=texts(alias),
        validation=texts(validation),
        game=game,
        strength=strength,
        hold_out=hold_out,
    )
    return run(texts(logs), Path(out), chosen, workers=workers, strict=strict)


def load(
    data: AnyPath,
    agent: Texts = (),
    street: Texts = (),
    side: str | None = None,
    *,
    game: str | None = None,
    strength: bool = False,
) -> Decisions:
    """Read the decisions of a dataset.

    Parameters
    ----------
    data : path
        A dataset's folder.
    agent, street : str or sequence of str
        Whose decisions, and on which streets; all by default.
    side : {"train", "validation"}, optional
        Both by default.
    game : str, optional
        The game's name, where the dataset holds several.
    strength : bool
        Whether to read the strength columns too.

    Returns
    -------
    Decisions
        Arrays of n decisions: `rows` (n records of what the player saw), `action` (n label numbers), `deal`,
        `validation`, `result` and the place of each in the logs; `frame()` gives a pandas DataFrame.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@raise", hands=20, log=f"{folder}/logs/call.raise")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False)
    >>> p.load(f"{folder}/rows", "raise", "river").frame()["action"].value_counts().to_dict()
    {'r': 20}
    """
    return load_decisions(Path(data), texts(agent) or None, texts(street) or None, side, game=game, strength=strength)


def chart(data: AnyPath, agent: Texts = (), *, game: str | None = None) -> Chart:
    """Count what agents do before the flop, by betting situation and starting class, in the training rows.

    Parameters
    ----------
    data : path
        A dataset's folder.
    agent : str or sequence of str
        Whose chart; several are pooled, all by default.
    game : str, optional
        The game's name, where the dataset holds several.

    Returns
    -------
    Chart
        `counts` (situations, 169 classes, labels); `to_text()` is the file format.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@raise", hands=20, log=f"{folder}/logs/call.raise")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False)
    >>> p.chart(f"{folder}/rows", "call").counts.shape[1:]
    (169, 3)
    """
    return read_chart_counts(Path(data), texts(agent), game=game)[0]


def export(data: AnyPath, out: AnyPath, *, form: str) -> Exported:
    """Write the hands of a dataset as hand histories or as lines of ACPC logs.

    Parameters
    ----------
    data : path
        A dataset's folder.
    out : path
        The file to write.
    form : {"phh", "acpc"}
        Hand histories, or lines of ACPC logs.

    Returns
    -------
    Exported
        `hands` that were written, `files`, and `left_out`: how many hands the form has no place for, by reason.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@raise", hands=20, log=f"{folder}/logs/call.raise")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False)
    >>> p.export(f"{folder}/rows", f"{folder}/hands.phhs", form="phh").hands
    20
    """
    from pipeline.dataset.export import export_hands

    return export_hands(Path(data), form, Path(out))
