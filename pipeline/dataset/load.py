"""Decision rows read from a dataset, in the form in which models and policies take them.

`load` gives rows as `decisions.OBSERVATION`, with what was done and where it stands beside them. `pieces` gives the
same some thousand rows at a time. Here is decided which rows are wanted and where they go; `opening` reads the files,
`records` turns their columns into rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, STREETS
from pipeline.dataset.manifest import File, read_manifest
from pipeline.dataset.opening import Run, agents_in, of_our_making, read_batches, read_run
from pipeline.dataset.records import PLACES, fill_ochs, fill_rows, fill_strength
from pipeline.poker.game import Game, parse_game
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.parallel import processors

FEW = 8
"""agents whose rows are read one after the other"""


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
    """(rows, 3) strength.STRENGTH on flop, turn and river, zeros beyond the row's street; `pieces` gives only the
    streets up to that of its rows"""
    ochs: Array | None = None
    """(rows, 8) strength on the river against each of `clusters.starting_groups` (255 = 1), zeros before it"""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        few = ", ".join(self.agents[:5]) + (f" and {len(self.agents) - 5:,} more" if len(self.agents) > 5 else "")
        return f"<{len(self):,} decisions of {few} in {self.game.name}>"

    def frame(self) -> Any:
        """A pandas DataFrame with a readable row per decision (see `pipeline.dataset.frames`)."""
        from pipeline.dataset.frames import decisions_frame

        return decisions_frame(self)


def load_decisions(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    side: str | None = None,
    *,
    game: str | None = None,
    strength: bool = False,
    files: Collection[str] | None = None,
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
    files: of which of the dataset's files, by their paths in it; all by default.

    Returns
    -------
    `Decisions`: `rows` (n,) of `decisions.OBSERVATION` and arrays (n,) of what was done and where it stands.
    """
    if side not in (None, "train", "validation"):
        raise PipelineError(f"side is 'train' or 'validation', not {side!r}")
    folder = Path(folder)
    rules, order, wanted = _select(folder, agents, streets, game, files)
    numbers = {agent: i for i, agent in enumerate(order)}
    if len(order) <= FEW:  # read each agent's rows to where they belong: sorting them later costs as much as reading
        sources = [(file, agents_in(folder, file)) for file in {run.file.path: run.file for run in wanted}.values()]
        wanted = [run for agent in order for file, whose in sources for run in _runs(file, {agent}, whose)]
    bounds = np.cumsum([0, *(run.rows for run in wanted)])
    try:
        found = _Records.empty(int(bounds[-1]), 3 if strength and rules.is_holdem else 0)
    except (MemoryError, ValueError, OverflowError):
        raise PipelineError(f"no memory for the {bounds[-1]} rows of {folder}: name agents or streets") from None

    def read(i: int) -> tuple[list[str], list[str]]:
        run = wanted[i]
        street = _street(run)
        table = read_run(folder, run, 0 if found.strength is None else street)
        part = found.take(slice(bounds[i], bounds[i + 1]))
        part.places["agent"][:] = _whose(folder, run, numbers)
        with of_our_making(folder / run.file.path):
            return part.fill(table, street, rules)

    # the first import registers Arrow's functions; threads that cast meanwhile would find some of them missing
    import pyarrow.compute  # noqa: F401

    with ThreadPoolExecutor(processors()) as pool:
        texts = list(pool.map(read, range(len(wanted))))
    opponents, files = (
        _number_words(found.places[name], bounds, [words[i] for words in texts])
        for i, name in enumerate(("opponent", "file"))
    )
    kept: Any = None
    if len(order) > FEW:
        kept = np.argsort(found.places["agent"], kind="stable")
    if side is not None:
        wanted_side = found.places["validation"] == (side == "validation")
        kept = np.flatnonzero(wanted_side) if kept is None else kept[wanted_side[kept]]
    if kept is not None:
        found = found.take(kept)
    return found.decisions(rules, order, opponents, files)


class _Records(NamedTuple):
    """The arrays that rows of a dataset are read into."""

    rows: Array
    places: dict[str, Array]
    strength: Array | None
    ochs: Array | None

    @classmethod
    def empty(cls, size: int, strength_streets: int = 0) -> _Records:
        """Room for so many rows, with their strengths on so many streets after the first."""
        return cls(
            np.empty(size, dtype=OBSERVATION),
            {name: np.empty(size, dtype=dtype) for name, dtype in PLACES.items()},
            np.zeros((size, strength_streets), dtype=STRENGTH) if strength_streets else None,
            np.zeros((size, 8), dtype=np.uint8) if strength_streets == 3 else None,
        )

    def take(self, which: Any) -> _Records:
        """The rows of a slice, on the same memory, or a copy of those at some places."""
        return _Records(
            # `take` copies whole records, 15 times as fast as an index, which goes field by field
            self.rows[which] if isinstance(which, slice) else self.rows.take(which),
            {name: array[which] for name, array in self.places.items()},
            None if self.strength is None else self.strength[which],
            None if self.ochs is None else self.ochs[which],
        )

    def fill(self, table: Any, street: int, game: Game) -> tuple[list[str], list[str]]:
        """Write a table's decisions; the texts that opponents and files are numbers into."""
        if self.strength is not None:
            fill_strength(table, street, self.strength)
        if self.ochs is not None and street == 3:
            fill_ochs(table, self.ochs)
        return fill_rows(table, street, game, self.rows, self.places)

    def decisions(self, game: Game, agents: list[str], opponents: list[str], files: list[str]) -> Decisions:
        """With the texts that agents, opponents and files are numbers into."""
        return Decisions(
            game=game,
            rows=self.rows,
            agents=tuple(agents),
            opponents=tuple(opponents),
            files=tuple(files),
            strength=self.strength,
            ochs=self.ochs,
            **self.places,
        )


def _street(run: Run) -> int:
    """The number of the street of a run's rows."""
    return STREETS.index(run.file.street or "")


def _number_words(codes: Array, bounds: Array, words: Sequence[Sequence[str]]) -> list[str]:
    """Number the words of several files together, in place of each file's own numbers; the words that are used."""
    seen: dict[str, int] = {}
    for i, own in enumerate(words):
        part = codes[bounds[i] : bounds[i + 1]]
        used = np.bincount(part, minlength=len(own)) > 0  # a file's words are those of all its agents
        numbered = [seen.setdefault(word, len(seen)) if use else -1 for word, use in zip(own, used, strict=True)]
        part[:] = np.array(numbered, dtype=np.int32)[part]
    return list(seen)


def _whose(folder: Path, run: Run, numbers: dict[str, int]) -> Array:
    """The number of the agent of each row of a run."""
    whose = agents_in(folder, run.file) if run.agents is None else run.agents
    agents = np.array([numbers[agent] for agent in whose], dtype=np.int32)
    return np.repeat(agents, np.array(list(whose.values()), dtype=np.int64))


def _select(
    folder: Path,
    agents: Sequence[str] | None,
    streets: Sequence[str] | None,
    game: str | None,
    files: Collection[str] | None = None,
) -> tuple[Game, list[str], list[Run]]:
    """The game, the agents in order, and the rows of the dataset's files that hold the wanted decisions."""
    manifest = read_manifest(folder)
    known: set[str] = set()
    runs: list[Run] = []
    for file in manifest.decisions:
        whose = agents_in(folder, file)
        known.update(whose)
        runs += [Run(file, 0, None)] if agents is None else _runs(file, set(agents), whose)
    for agent in agents or ():
        if agent not in known:
            raise PipelineError(f"{folder} has no decisions of {agent!r}{nearest(agent, known)}")
    for street in streets or ():
        if street not in STREETS:
            raise PipelineError(f"no street {street!r}{nearest(street, STREETS)}")
    if game is not None and game not in manifest.games:
        raise PipelineError(f"{folder} has no decisions of game {game!r}{nearest(game, manifest.games)}")
    wanted = [
        run
        for run in runs
        if (streets is None or run.file.street in streets)
        and (game is None or run.file.game == game)
        and (files is None or run.file.path in files)
    ]
    if game is not None and agents and not any(run.file.game == game for run in runs):
        raise PipelineError(
            f"{folder} has no decisions of {' or '.join(map(repr, agents))} in {game}: name another game"
        )
    games = sorted({str(run.file.game) for run in wanted} or ([game] if game is not None else manifest.games))
    if len(games) != 1:
        raise PipelineError(f"{folder} holds {len(games) or 'no'} games ({', '.join(games)}): name one")
    rules = parse_game(manifest.games[games[0]], games[0])
    order = sorted(known if agents is None else set(agents))
    wanted.sort(key=_street)
    return rules, order, wanted


def _runs(file: File, agents: set[str], whose: Mapping[str, int]) -> Iterator[Run]:
    """The rows of a file that belong to the agents, neighbours together; `whose` is what `agents_in` gives."""
    at = first = 0
    found: dict[str, int] = {}
    for agent, rows in whose.items():
        if agent in agents:
            found[agent] = rows
        elif found:
            yield Run(file, first, found)
            found = {}
        at += rows
        first = first if found else at
    if found:
        yield Run(file, first, found)


def count_decisions(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> int:
    """How many decisions `load` would give."""
    return sum(run.rows for run in _select(Path(folder), agents, streets, game)[2])


def players_of(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> tuple[Game, tuple[str, ...]]:
    """The game and the agents of the decisions that `load` would give."""
    rules, order, _ = _select(Path(folder), agents, streets, game)
    return rules, tuple(order)


def wanted_files(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
) -> list[tuple[str, int]]:
    """The paths of the files that hold the decisions which `load` would give, and how many of them each has."""
    found: dict[str, int] = {}
    for run in _select(Path(folder), agents, streets, game)[2]:
        found[run.file.path] = found.get(run.file.path, 0) + run.rows
    return list(found.items())


def decision_pieces(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
    strength: bool = False,
    files: Collection[str] | None = None,
) -> Iterator[Decisions]:
    """What `load` gives, some rows at a time and file by file, for data too large to be in memory twice."""
    for _, piece in run_pieces(folder, agents, streets, game=game, strength=strength, files=files):
        yield piece


def run_pieces(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
    strength: bool = False,
    files: Collection[str] | None = None,
) -> Iterator[tuple[File, Decisions]]:
    """What `pieces` gives, each piece with the file of the dataset that it is from."""
    folder = Path(folder)
    rules, order, wanted = _select(folder, agents, streets, game, files)
    numbers = {agent: i for i, agent in enumerate(order)}
    for run in wanted:
        street = _street(run)
        whose = _whose(folder, run, numbers)
        at = 0
        with_strength = street if strength and rules.is_holdem else 0
        for table in read_batches(folder, run, with_strength):
            found = _Records.empty(table.num_rows, with_strength)
            found.places["agent"][:] = whose[at : at + table.num_rows]
            at += table.num_rows
            with of_our_making(folder / run.file.path):
                opponents, logs = found.fill(table, street, rules)
            yield run.file, found.decisions(rules, order, opponents, logs)
