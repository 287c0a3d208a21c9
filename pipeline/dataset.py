"""The dataset on disk: its schema, and decision rows read from it.

A dataset is a folder that `ingest` writes: `hands/` (a row per hand), `decisions/agent=A/street=S/` (a row per
decision), `rejected/` (a row per line that is no hand) and `manifest.json`, which names every file, source, game and
option; only files named there belong to the dataset. `HANDS`, `DECISIONS`, `STRENGTH_COLUMNS` and `REJECTED` below
are where the schema is written down; texts are dictionary-encoded.

`load` gives the rows as `decisions.OBSERVATION`, the form in which models and policies take them, with what was done
and where it stands beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from pipeline.cards import LETTERS, NO_CARD, RANKS, SUITS, class_text, names
from pipeline.decisions import LETTERS_LIMIT, LETTERS_NOLIMIT, OBSERVATION, STREETS, word_code
from pipeline.errors import PipelineError, nearest
from pipeline.game import Game, parse_game
from pipeline.parallel import processors
from pipeline.strength import STRENGTH

__all__ = [
    "DECISIONS",
    "HANDS",
    "REJECTED",
    "SCHEMA_VERSION",
    "STRENGTH_COLUMNS",
    "Decisions",
    "decisions_folder",
    "load",
    "read_manifest",
]

Array = npt.NDArray[Any]

SCHEMA_VERSION = 2

HANDS = {
    "file": "text: the log, an archive's path before it",
    "line": "int32: its line in the log, from 1",
    "hand": "int32: the hand's number in the log",
    "game": "text: name of the game's definition",
    "names": "text: players in position order, as the log names them",
    "betting": "text: as in the log",
    "cards": "text: hole cards in position order and the board, as in the log",
    "payoffs": "text: net chips in position order, as in the log",
    "deal": "uint64: hash of all hole cards in position order (of seed and hand in one-card games)",
    "actions": "int32: how many there were",
    "showdown": "bool: not decided by folds",
    "expected": "bool: payoffs are all-in expectations",
    "validation": "bool: held out",
}

DECISIONS = {
    "agent": "partition: who acts, after aliases",
    "street": "partition: preflop flop turn river",
    "file": "text: the log",
    "line": "int32: the hand's line in it",
    "hand": "int32: the hand's number",
    "k": "uint8: index among all the hand's actions",
    "game": "text",
    "opponents": "text: the others from the next position on, joined by |",
    "position": "uint8: 0 is first after the button (heads-up the big blind)",
    "deal": "uint64: as in hands; a deal's rows are all on one side",
    "preflop": "text: the betting of the street so far; limit f c r, no-limit f c s h p o a; - for none",
    "flop": "text",
    "turn": "text",
    "river": "text",
    "raises": "uint8: on this street so far",
    "to_call": "int32: chips",
    "pot": "int32: chips in the middle, this street's bets included",
    "stack": "int32: own chips left; 0 in limit",
    "legal": "text: letters of the labels that may be chosen",
    "previous": "text: own last label in this hand, - for none",
    "high": "text: higher hole rank",
    "low": "text: lower hole rank",
    "start": "text: starting class, AKs",
    "ranks": "text: board ranks, high first, - for none",
    "pattern": "text: suit pattern",
    "flush": "text: coarser suit pattern",
    "name": "text: hand name, - before the flop",
    "hole1": "text: exact cards as dealt, - for none",
    "hole2": "text",
    "board1": "text",
    "board2": "text",
    "board3": "text",
    "board4": "text",
    "board5": "text",
    "action": "text: f c r, in no-limit r with the total it goes to",
    "label": "text: the action's class (see game.py)",
    "result": "double: the hand's net chips for the agent",
    "validation": "bool: held out: one deal in ten, or by file",
}

STRENGTH_COLUMNS = {
    "<street>_ihs": "uint16: strength now (65535 = 1), for each street from the flop up to this one",
    "<street>_ehs": "uint16: mean strength at the river",
    "<street>_ehs2": "uint16: mean of its square",
    "<street>_q": "8 bytes: means of the eighths of its distribution (255 = 1)",
    "river_ochs": "8 bytes, on the river: strength against each of 8 groups of starting hands, weakest first (255 = 1)",
}

REJECTED = {
    "file": "text: the log",
    "line": "int32: from 1",
    "text": "text: the line's first 500 characters",
    "reason": "text: see acpc.REASONS",
}

CARDS = ("hole1", "hole2", "board1", "board2", "board3", "board4", "board5")
CARD_TEXTS = [rank + suit for rank in RANKS for suit in SUITS] + ["-"]
PIECE = 1 << 15
BLOCK = 8192
"""rows turned into records at a time: they stay in the processor's cache"""


def decisions_folder(agent: str, street: int) -> str:
    """Where the rows of an agent and street lie in the dataset."""
    return f"decisions/agent={quote(agent, safe='')}/street={STREETS[street]}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a dataset says of itself."""
    path = folder / "manifest.json"
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise PipelineError(f"{folder} is no dataset: it has no manifest.json (make one with `ingest`)") from None
    except (OSError, ValueError) as error:
        raise PipelineError(f"cannot read {path}: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA_VERSION:
        raise PipelineError(f"{folder} was made by another version of ingest: ingest the logs again into a new folder")
    return found


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
        return f"<{len(self):,} decisions of {', '.join(self.agents)} in {self.game.name}>"

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
    "validation": np.bool_,
    "action": np.uint8,
    "opponent": np.int32,
    "file": np.int32,
    "agent": np.int32,
}
"""what is beside the observation"""
_PLAIN = ("position", "raises", "to_call", "pot", "stack")


def load(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    side: str | None = None,
    *,
    game: str | None = None,
    strength: bool = False,
) -> Decisions:
    """The decisions of a dataset: of all agents and streets unless named, of both sides unless `train` or `validation`.

    A dataset of several games needs the name of one, unless only one is left by the agents named. Strength is that of
    hold'em; for other games it is None.
    """
    if side not in (None, "train", "validation"):
        raise PipelineError(f"side is 'train' or 'validation', not {side!r}")
    folder = Path(folder)
    rules, order, wanted = _select(folder, agents, streets, game)
    bounds = np.cumsum([0, *(file["rows"] for file in wanted)])
    rows = np.empty(bounds[-1], dtype=OBSERVATION)
    places = {name: np.empty(bounds[-1], dtype=dtype) for name, dtype in _PLACES.items()}
    strength = strength and rules.is_holdem
    strengths = np.zeros((bounds[-1], 3), dtype=STRENGTH) if strength else None
    ochs = np.zeros((bounds[-1], 8), dtype=np.uint8) if strength else None

    def read(i: int) -> tuple[list[str], list[str]]:
        file = wanted[i]
        part = slice(bounds[i], bounds[i + 1])
        street = STREETS.index(file["street"])
        table = _read(folder / file["path"], file["rows"], street if strength else 0)
        places["agent"][part] = order.index(file["agent"])
        if strengths is not None:
            _fill_strength(table, street, strengths[part])
        if ochs is not None and street == 3:
            ochs[part] = _eights(table.column("river_ochs"))
        return _fill(table, street, rules, rows[part], {name: array[part] for name, array in places.items()})

    with ThreadPoolExecutor(processors()) as pool:
        texts = list(pool.map(read, range(len(wanted))))
    numbers: dict[str, dict[str, int]] = {"opponent": {}, "file": {}}
    for i, found in enumerate(texts):
        for (name, known), words in zip(numbers.items(), found, strict=True):
            table = np.array([known.setdefault(word, len(known)) for word in words], dtype=np.int32)
            codes = places[name][bounds[i] : bounds[i + 1]]
            codes[:] = table[codes]
    if side is not None:
        kept = places["validation"] == (side == "validation")
        rows = rows[kept]
        places = {name: array[kept] for name, array in places.items()}
        strengths = strengths[kept] if strengths is not None else None
        ochs = ochs[kept] if ochs is not None else None
    return Decisions(
        game=rules,
        rows=rows,
        agents=tuple(order),
        opponents=tuple(numbers["opponent"]),
        files=tuple(numbers["file"]),
        strength=strengths,
        ochs=ochs,
        **places,
    )


def _select(
    folder: Path, agents: Sequence[str] | None, streets: Sequence[str] | None, game: str | None
) -> tuple[Game, list[str], list[dict[str, Any]]]:
    """The game, the agents in order, and the files of a dataset that hold the decisions asked for."""
    manifest = read_manifest(folder)
    listed = [file for part in manifest["parts"] for file in part["files"] if "agent" in file]
    everyone = sorted({file["agent"] for file in listed})
    for agent in agents or ():
        if agent not in everyone:
            raise PipelineError(f"{folder} has no decisions of {agent!r}{nearest(agent, everyone)}")
    for street in streets or ():
        if street not in STREETS:
            raise PipelineError(f"no street {street!r}{nearest(street, STREETS)}")
    if game is not None and game not in manifest["games"]:
        raise PipelineError(f"{folder} has no decisions of game {game!r}{nearest(game, manifest['games'])}")
    wanted = [
        file
        for file in listed
        if (agents is None or file["agent"] in agents)
        and (streets is None or file["street"] in streets)
        and (game is None or file["game"] == game)
    ]
    games = sorted({file["game"] for file in wanted} or manifest["games"])
    if len(games) != 1:
        raise PipelineError(f"{folder} holds {len(games) or 'no'} games ({', '.join(games)}): name one")
    rules = parse_game(manifest["games"][games[0]], games[0])
    order = everyone if agents is None else sorted(set(agents))
    wanted.sort(key=lambda file: (order.index(file["agent"]), STREETS.index(file["street"])))
    return rules, order, wanted


def count(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> int:
    """How many decisions `load` would give."""
    return sum(file["rows"] for file in _select(Path(folder), agents, streets, game)[2])


def pieces(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> Iterator[Decisions]:
    """What `load` gives, some rows at a time, for more than one would hold twice."""
    folder = Path(folder)
    rules, order, wanted = _select(folder, agents, streets, game)
    for file in wanted:
        street = STREETS.index(file["street"])
        for table in _batches(folder / file["path"], file["rows"]):
            rows = np.empty(table.num_rows, dtype=OBSERVATION)
            places = {name: np.empty(table.num_rows, dtype=dtype) for name, dtype in _PLACES.items()}
            places["agent"][:] = order.index(file["agent"])
            opponents, files = _fill(table, street, rules, rows, places)
            yield Decisions(rules, rows, **places, agents=tuple(order), opponents=tuple(opponents), files=tuple(files))


def _columns(strength_streets: int) -> list[str]:
    """The columns that `_fill` reads, and those of strength."""
    columns = [name for name in DECISIONS if name not in ("agent", "street", "game", "action")]
    columns += [f"{street}_{part}" for street in STREETS[1 : strength_streets + 1] for part in STRENGTH.names or ()]
    return columns + (["river_ochs"] if strength_streets == 3 else [])


@contextmanager
def _opened(path: Path, rows: int) -> Iterator[Any]:
    """A Parquet file of so many rows."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows != rows:
                raise PipelineError(f"{path} has {file.metadata.num_rows} rows, not {rows}: ingest into a new folder")
            yield file
    except FileNotFoundError:
        raise PipelineError(f"{path} is missing: run the interrupted ingest again") from None
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path} is damaged: ingest into a new folder ({error})") from None


def _batches(path: Path, rows: int) -> Iterator[Any]:
    """A file's table, some rows at a time."""
    import pyarrow as pa

    with _opened(path, rows) as file:
        for batch in file.iter_batches(PIECE, columns=_columns(0), use_threads=False):
            yield pa.Table.from_batches([batch])
    pa.default_memory_pool().release_unused()


def _read(path: Path, rows: int, strength_streets: int) -> Any:
    """A file's table, with the strength columns of so many streets."""
    columns = _columns(strength_streets)
    with _opened(path, rows) as file:
        table = file.read(columns=columns, use_threads=False)
    if table.num_columns < len(columns):
        raise PipelineError(f"{path} lacks strength columns: ingest into a new folder without --no-strength")
    return table


def _array(column: Any) -> Array:
    """A column of numbers without gaps, not copied; Arrow's own `to_numpy` would import pandas: a second."""
    import pyarrow as pa

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
    starts = {class_text(i): i for i in range(169)} if game.hole_cards == 2 else ranks
    hand_names = {text: i for i, text in enumerate(names())}
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name in ("line", "hand", "k", "deal", "result", "validation"):
        places[name][:] = _array(column[name])
    places["action"][:] = _lookup(column["label"], game.labels.index, np.uint8)
    places["opponent"][:] = _array(column["opponents"].indices)
    places["file"][:] = _array(column["file"].indices)
    fields = {name: _array(column[name]) for name in _PLAIN}
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
        block["players"] = game.players
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
