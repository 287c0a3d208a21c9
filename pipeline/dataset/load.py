"""Decision rows read from a dataset, in the form in which models and policies take them.

`load` gives rows as `decisions.OBSERVATION`, with what was done and where it stands beside them. Every file is compared
with the size and SHA-256 that the manifest has of it before it is read; `verify` does this for the whole dataset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.cards import LETTERS, NO_CARD, RANKS, class_text, names
from pipeline.dataset.manifest import File, read_manifest
from pipeline.dataset.schema import CARD_TEXTS, CARDS, DECISIONS
from pipeline.decisions import LETTERS_LIMIT, LETTERS_NOLIMIT, NO_START, NOBODY, OBSERVATION, STREETS, word_code
from pipeline.errors import PipelineError, nearest
from pipeline.game import Game, parse_game
from pipeline.parallel import processors
from pipeline.strength import STRENGTH

__all__ = ["Decisions", "count", "load", "pieces", "verify"]

Array = npt.NDArray[Any]

PIECE = 1 << 15
FEW = 8
"""agents whose rows are read one after the other"""
BLOCK = 8192
"""rows turned into records at a time: they stay in the processor's cache"""


@dataclass(frozen=True, repr=False)
class Decisions:
    """Decision rows, agent by agent, street by street, in the order of the logs' lines.

    `agent`, `opponent` and `file` are numbers into `agents`, `opponents` and `files`.
    """

    game: Game
    rows: Array
    """OBSERVATION"""
    action: Array
    """the label's index in `game.labels`"""
    deal: Array
    validation: Array
    agent: Array
    opponent: Array
    file: Array
    line: Array
    hand: Array
    k: Array
    result: Array
    amount: Array
    """the total that a raise goes to, in chips; 0 for other actions"""
    known: Array
    """whether the agent's own cards are known"""
    agents: tuple[str, ...]
    opponents: tuple[str, ...]
    files: tuple[str, ...]
    strength: Array | None = None
    """(rows, 3) strength.STRENGTH on flop, turn and river, zeros beyond the row's street"""
    ochs: Array | None = None
    """(rows, 8) strength on the river against each of `clusters.starting_groups` (255 = 1), zeros before it"""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        few = ", ".join(self.agents[:5]) + (f" and {len(self.agents) - 5:,} more" if len(self.agents) > 5 else "")
        return f"<{len(self):,} decisions of {few} in {self.game.name}>"

    def frame(self) -> Any:
        """A pandas DataFrame with a readable row per decision (see `pipeline.frames`)."""
        from pipeline.frames import decisions_frame

        return decisions_frame(self)


_PLACES = {
    "line": np.int32,
    "hand": np.int32,
    "k": np.uint8,
    "deal": np.uint64,
    "result": np.float64,
    "amount": np.int32,
    "known": np.bool_,
    "validation": np.bool_,
    "action": np.uint8,
    "opponent": np.int32,
    "file": np.int32,
    "agent": np.int32,
}
"""what is beside the observation"""
_PLAIN = {
    "position": "position",
    "players": "players",
    "raises": "raises",
    "to_call": "to_call",
    "pot": "pot",
    "stack": "stack",
    "in_hand": "in_hand",
    "to_act": "to_act",
    "relative_position": "behind",
    "aggressor": "aggressor",
    "effective_stack": "effective",
    "big_blind": "big_blind",
}
"""columns of numbers and the fields of OBSERVATION that they fill"""
_MISSING = {"aggressor": NOBODY, "stack": 0, "effective_stack": 0, "amount": 0, "result": np.nan}
"""what stands for null"""
_UNREAD = ("street", "agent", "game", "action", "effective_stack_bb", "stack_to_pot", "faced")


class _Run(NamedTuple):
    """Rows of a file that are wanted, one after the other."""

    file: File
    first: int
    agents: dict[str, int]
    """rows of each agent, in order"""

    @property
    def rows(self) -> int:
        return sum(self.agents.values())


def load(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    side: str | None = None,
    *,
    game: str | None = None,
    strength: bool = False,
) -> Decisions:
    """The decisions of a dataset, agent by agent, street by street, in the order of the logs' lines.

    Parameters
    ----------
    folder: the dataset.
    agents: whose decisions; everybody's by default.
    streets: of which streets (`preflop`, `flop`, `turn`, `river`); all by default.
    side: `train` or `validation`; both by default.
    game: which game, if the dataset has several and the agents leave more than one.
    strength: whether to read the hand strength columns, which hold'em has.

    Returns
    -------
    `Decisions`: `rows` (n,) of `decisions.OBSERVATION` and arrays (n,) of what was done and where it stands.
    """
    if side not in (None, "train", "validation"):
        raise PipelineError(f"side is 'train' or 'validation', not {side!r}")
    folder = Path(folder)
    rules, order, wanted = _select(folder, agents, streets, game)
    numbers = {agent: i for i, agent in enumerate(order)}
    if len(order) <= FEW:  # read each agent's rows to where they belong: sorting them later costs as much as reading
        files = {run.file.path: run.file for run in wanted}.values()
        wanted = [run for agent in order for file in files for run in _runs(file, {agent})]
    bounds = np.cumsum([0, *(run.rows for run in wanted)])
    strength = strength and rules.is_holdem
    try:
        rows = np.empty(bounds[-1], dtype=OBSERVATION)
        places = {name: np.empty(bounds[-1], dtype=dtype) for name, dtype in _PLACES.items()}
        strengths = np.zeros((bounds[-1], 3), dtype=STRENGTH) if strength else None
        ochs = np.zeros((bounds[-1], 8), dtype=np.uint8) if strength else None
    except (MemoryError, ValueError, OverflowError):
        raise PipelineError(f"no memory for the {bounds[-1]} rows of {folder}: name agents or streets") from None

    def read(i: int) -> tuple[list[str], list[str]]:
        run = wanted[i]
        part = slice(bounds[i], bounds[i + 1])
        street = STREETS.index(run.file.street or "")
        table = _read(folder, run, street if strength else 0)
        places["agent"][part] = _whose(run, numbers)
        with _of_our_making(folder / run.file.path):
            if strengths is not None:
                _fill_strength(table, street, strengths[part])
            if ochs is not None and street == 3:
                ochs[part] = _eights(table.column("river_ochs"))
            return _fill(table, street, rules, rows[part], {name: array[part] for name, array in places.items()})

    with ThreadPoolExecutor(processors()) as pool:
        texts = list(pool.map(read, range(len(wanted))))
    known: dict[str, dict[str, int]] = {"opponent": {}, "file": {}}
    for i, found in enumerate(texts):
        for (name, seen), words in zip(known.items(), found, strict=True):
            codes = places[name][bounds[i] : bounds[i + 1]]
            used = np.bincount(codes, minlength=len(words)) > 0  # a file's words are those of all its agents
            numbered = [seen.setdefault(word, len(seen)) if use else -1 for word, use in zip(words, used, strict=True)]
            codes[:] = np.array(numbered, dtype=np.int32)[codes]
    kept: Any = None
    if len(order) > FEW:
        kept = np.argsort(places["agent"], kind="stable")
    if side is not None:
        wanted_side = places["validation"] == (side == "validation")
        kept = np.flatnonzero(wanted_side) if kept is None else kept[wanted_side[kept]]
    if kept is not None:
        rows = rows[kept]
        places = {name: array[kept] for name, array in places.items()}
        strengths = strengths[kept] if strengths is not None else None
        ochs = ochs[kept] if ochs is not None else None
    return Decisions(
        game=rules,
        rows=rows,
        agents=tuple(order),
        opponents=tuple(known["opponent"]),
        files=tuple(known["file"]),
        strength=strengths,
        ochs=ochs,
        **places,
    )


def _whose(run: _Run, numbers: dict[str, int]) -> Array:
    """The number of the agent of each row of a run."""
    agents = np.array([numbers[agent] for agent in run.agents], dtype=np.int32)
    return np.repeat(agents, np.array(list(run.agents.values()), dtype=np.int64))


def _select(
    folder: Path, agents: Sequence[str] | None, streets: Sequence[str] | None, game: str | None
) -> tuple[Game, list[str], list[_Run]]:
    """The game, the agents in order, and the rows of the dataset's files that hold the decisions asked for."""
    manifest = read_manifest(folder)
    everyone = manifest.agents
    known = set(everyone)
    for agent in agents or ():
        if agent not in known:
            raise PipelineError(f"{folder} has no decisions of {agent!r}{nearest(agent, everyone)}")
    for street in streets or ():
        if street not in STREETS:
            raise PipelineError(f"no street {street!r}{nearest(street, STREETS)}")
    if game is not None and game not in manifest.games:
        raise PipelineError(f"{folder} has no decisions of game {game!r}{nearest(game, manifest.games)}")
    wanted = [
        run
        for file in manifest.decisions
        if (streets is None or file.street in streets) and (game is None or file.game == game)
        for run in _runs(file, None if agents is None else set(agents))
    ]
    games = sorted({str(run.file.game) for run in wanted} or manifest.games)
    if len(games) != 1:
        raise PipelineError(f"{folder} holds {len(games) or 'no'} games ({', '.join(games)}): name one")
    rules = parse_game(manifest.games[games[0]], games[0])
    order = everyone if agents is None else sorted(set(agents))
    wanted.sort(key=lambda run: STREETS.index(run.file.street or ""))
    return rules, order, wanted


def _runs(file: File, agents: set[str] | None) -> Iterator[_Run]:
    """The rows of a file that belong to the agents, neighbours together."""
    at = first = 0
    found: dict[str, int] = {}
    for agent, rows in file.agents.items():
        if agents is None or agent in agents:
            found[agent] = rows
        elif found:
            yield _Run(file, first, found)
            found = {}
        at += rows
        first = first if found else at
    if found:
        yield _Run(file, first, found)


def count(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> int:
    """How many decisions `load` would give."""
    return sum(run.rows for run in _select(Path(folder), agents, streets, game)[2])


def pieces(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> Iterator[Decisions]:
    """What `load` gives, some rows at a time and file by file, for data too large to be in memory twice."""
    folder = Path(folder)
    rules, order, wanted = _select(folder, agents, streets, game)
    numbers = {agent: i for i, agent in enumerate(order)}
    for run in wanted:
        street = STREETS.index(run.file.street or "")
        whose = _whose(run, numbers)
        at = 0
        for table in _batches(folder, run):
            rows = np.empty(table.num_rows, dtype=OBSERVATION)
            places = {name: np.empty(table.num_rows, dtype=dtype) for name, dtype in _PLACES.items()}
            places["agent"][:] = whose[at : at + len(rows)]
            at += len(rows)
            with _of_our_making(folder / run.file.path):
                opponents, files = _fill(table, street, rules, rows, places)
            yield Decisions(rules, rows, **places, agents=tuple(order), opponents=tuple(opponents), files=tuple(files))


def verify(folder: Path | str) -> list[str]:
    """What is wrong with a dataset's files, a sentence each: missing, cut short, altered, of other columns.

    Every byte is read. Nothing wrong gives an empty list; a damaged manifest raises `PipelineError`.
    """
    folder = Path(folder)
    files = read_manifest(folder).files

    def problem(file: File) -> str | None:
        try:
            with _opened(folder, file):
                return None
        except PipelineError as error:
            return str(error)

    with ThreadPoolExecutor(processors()) as pool:
        return [said for said in pool.map(problem, files) if said]


# Files


def _columns(strength_streets: int) -> list[str]:
    """The columns that `_fill` reads, and those of strength."""
    columns = [name for name in DECISIONS if name not in _UNREAD]
    columns += [f"{street}_{part}" for street in STREETS[1 : strength_streets + 1] for part in STRENGTH.names or ()]
    return columns + (["river_ochs"] if strength_streets == 3 else [])


@contextmanager
def _of_our_making(path: Path) -> Iterator[None]:
    """Refuse a Parquet file whose columns or values ingest does not write."""
    import pyarrow as pa

    try:
        yield
    except (OSError, ArithmeticError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException) as error:
        raise PipelineError(f"{path} is not what ingest writes: ingest into a new folder ({error})") from None


@contextmanager
def _opened(folder: Path, file: File) -> Iterator[Any]:
    """A Parquet file of the dataset, if its bytes are those that ingest wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / file.path
    try:
        data = path.read_bytes()
        if len(data) != file.bytes or hashlib.sha256(data).hexdigest() != file.sha256:
            raise PipelineError(
                f"{path} is damaged: it is not the file that ingest wrote ({len(data):,} bytes, not {file.bytes:,}, or "
                "other ones); restore it, or ingest the logs into a new folder"
            )
    except (FileNotFoundError, NotADirectoryError):
        raise PipelineError(f"{path} is missing: run the interrupted ingest again") from None
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    with _of_our_making(path), pq.ParquetFile(pa.BufferReader(data)) as opened:
        if opened.metadata.num_rows != file.rows:
            raise PipelineError(
                f"{path} has {opened.metadata.num_rows} rows, not {file.rows}: ingest into a new folder"
            )
        yield opened


def _groups(opened: Any, run: _Run) -> tuple[list[int], int]:
    """The row groups that hold a run, and how many rows of these come before it."""
    ends = np.cumsum([0, *(opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups))])
    first = int(np.searchsorted(ends, run.first, side="right")) - 1
    last = int(np.searchsorted(ends, run.first + run.rows, side="left"))
    return list(range(first, last)), run.first - int(ends[first])


def _batches(folder: Path, run: _Run) -> Iterator[Any]:
    """The table of a run, some rows at a time."""
    import pyarrow as pa

    with _opened(folder, run.file) as file:
        groups, before = _groups(file, run)
        left = run.rows
        for batch in file.iter_batches(PIECE, row_groups=groups, columns=_columns(0), use_threads=False):
            part = batch.slice(before, left)
            before = max(0, before - batch.num_rows)
            left -= part.num_rows
            if part.num_rows:
                yield pa.Table.from_batches([part])
    pa.default_memory_pool().release_unused()


def _read(folder: Path, run: _Run, strength_streets: int) -> Any:
    """The table of a run, with the strength columns of so many streets."""
    columns = _columns(strength_streets)
    with _opened(folder, run.file) as file:
        groups, before = _groups(file, run)
        table = file.read_row_groups(groups, columns=columns, use_threads=False).slice(before, run.rows)
    if table.num_columns < len(columns):
        if strength_streets and table.num_columns == len(_columns(0)):
            raise PipelineError(f"{folder} lacks strength columns: ingest into a new folder without --no-strength")
        raise PipelineError(f"{folder / run.file.path} lacks columns: ingest into a new folder")
    return table


# Columns


def _array(column: Any, missing: float | None = None) -> Array:
    """A column of numbers, not copied if it has no nulls; Arrow's own `to_numpy` would import pandas: a second."""
    import pyarrow as pa

    if not (pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ValueError(f"a column of {column.type} where numbers belong")
    if column.null_count:
        if missing is None:
            raise ValueError(f"{column.null_count} rows without a value where each has one")
        column = column.fill_null(missing)
    found: Array = np.from_dlpack(column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column)
    return found


def _lookup(column: Any, code: Callable[[str], int], dtype: Any) -> Array:
    """The codes of a dictionary column."""
    table = np.array([code(text) for text in column.dictionary.to_pylist()], dtype=dtype)
    found: Array = table[_array(column.indices)]
    return found


def _pattern_code(text: str) -> int:
    """The packed form of a suit pattern."""
    return int("".join(str(LETTERS.index(letter)) for letter in text), 8)


def _fill(table: Any, street: int, game: Game, rows: Array, places: dict[str, Array]) -> tuple[list[str], list[str]]:
    """Write a table's decisions to records and arrays; the texts that opponents and files are numbers into."""
    letters = LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT
    ranks = {**{rank: i for i, rank in enumerate(RANKS)}, "-": NO_CARD}
    cards = {**{text: i for i, text in enumerate(CARD_TEXTS[:-1])}, "-": NO_CARD}
    starts = {**{class_text(i): i for i in range(169)}, "-": NO_START} if game.hole_cards == 2 else ranks
    hand_names = {text: i for i, text in enumerate(names())}
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name in ("line", "hand", "k", "deal", "result", "amount", "known", "validation"):
        places[name][:] = _array(column[name], _MISSING.get(name))
    places["action"][:] = _lookup(column["label"], game.labels.index, np.uint8)
    places["opponent"][:] = _array(column["opponents"].indices)
    places["file"][:] = _array(column["file"].indices)
    fields = {to: _array(column[name], _MISSING.get(name)) for name, to in _PLAIN.items()}
    for name, code, dtype in (
        ("legal", lambda text: sum(1 << game.labels.index(letter) for letter in text), np.uint8),
        ("previous", letters.index, np.uint8),
        ("high", ranks.__getitem__, np.uint8),
        ("low", ranks.__getitem__, np.uint8),
        ("start", starts.__getitem__, np.uint8),
        ("pattern", _pattern_code, np.uint16),
        ("flush", _pattern_code, np.uint16),
        ("name", hand_names.__getitem__, np.uint16),
    ):
        fields[name] = _lookup(column[name], code, dtype)
    words = [_lookup(column[name], lambda text: word_code(text, game.nolimit), np.int64) for name in STREETS]
    dealt = [_lookup(column[name], cards.__getitem__, np.uint8) for name in CARDS]
    boards = column["ranks"].dictionary.to_pylist()
    board_ranks = np.full((len(boards), 5), NO_CARD, dtype=np.uint8)
    for i, text in enumerate(boards):
        for j, rank in enumerate(text.strip("-")):
            board_ranks[i, j] = ranks[rank]
    board = _array(column["ranks"].indices)
    for first in range(0, len(rows), BLOCK):
        part = slice(first, first + BLOCK)
        block = rows[part]
        block["street"] = street
        for name, values in fields.items():
            block[name] = values[part]
        for i in range(4):
            block["betting_codes"][:, i] = words[i][part]
        for i in range(2):
            block["hole"][:, i] = dealt[i][part]
        for i in range(5):
            block["board"][:, i] = dealt[i + 2][part]
        block["ranks"] = board_ranks[board[part]]
    return column["opponents"].dictionary.to_pylist(), column["file"].dictionary.to_pylist()


def _fill_strength(table: Any, street: int, out: Array) -> None:
    """Write the strength columns of the streets up to this one to records."""
    for i, name in enumerate(STREETS[1 : street + 1]):
        for part in ("ihs", "ehs", "ehs2"):
            out[part][:, i] = _array(table.column(f"{name}_{part}").combine_chunks())
        out["q"][:, i] = _eights(table.column(f"{name}_q"))


def _eights(column: Any) -> Array:
    """A column of eight bytes a row."""
    packed = column.combine_chunks()
    return np.frombuffer(packed.buffers()[1], dtype=np.uint8)[: 8 * len(packed)].reshape(-1, 8)
