"""Decision rows of a dataset, in the form in which models and policies take them.

In go a dataset's folder, agents and streets. `load_decisions` returns all their rows as `decisions.OBSERVATION` with
arrays of their metadata (place, action, result); `select_rows` only finds and counts them, and `SelectedRows.pieces`
yields them some thousand at a time. `Decisions.frame` makes a pandas DataFrame with texts in place of codes; pandas
(of the extra `[data]`) is imported only then. Files are read by `opening`, their columns become rows in `records`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from pipeline.dataset.decisions import NO_AGGRESSOR, NO_START, OBSERVATION, STREETS
from pipeline.dataset.hands import (
    Decision,
    PlayedHand,
    betting_texts,
    card_texts,
    iterate_decisions,
    iterate_hands,
    list_decisions,
)
from pipeline.dataset.manifest import File, Settings, read_manifest
from pipeline.dataset.opening import RowRange, agent_rows, read_batches, read_ranges, translate_parquet_errors
from pipeline.dataset.records import METADATA, fill_ochs, fill_rows, fill_strength
from pipeline.poker.cards import class_text, hand_names
from pipeline.poker.game import Game, parse_game
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.parallel import processors
from pipeline.runtime.tabular import SHOWN_ROWS, html_table

if TYPE_CHECKING:
    import pandas as pd

MAX_AGENT_READS = 8
"""agents up to whom each one's rows are read straight to their place instead of being sorted afterwards"""


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
    """(rows, 3) strength.STRENGTH on flop, turn and river, zeros beyond the row's street; `pieces` gives only
    the streets up to that of its rows"""
    ochs: Array | None = None
    """(rows, 8) strength on the river against each of `clusters.starting_groups` (255 = 1), zeros before it"""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        agents = ", ".join(self.agents[:5]) + (f" and {len(self.agents) - 5:,} more" if len(self.agents) > 5 else "")
        return f"<{len(self):,} decisions of {agents} in {self.game.name}>"

    @overload
    def __getitem__(self, which: int) -> Decision: ...
    @overload
    def __getitem__(self, which: slice | Array) -> Decisions: ...
    def __getitem__(self, which: int | slice | Array) -> Decision | Decisions:
        """Return the decision of a number, or those of a slice, of a mask or of an array of numbers."""
        if not isinstance(which, slice) and np.ndim(which) == 0:
            place = range(len(self))[which]  # an IndexError ends a loop over numbers
            return list_decisions(self[place : place + 1])[0]
        names = ("rows", *METADATA, *(name for name in ("strength", "ochs") if getattr(self, name) is not None))
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def __iter__(self) -> Iterator[Decision]:
        return iterate_decisions(self)

    def hands(self) -> Iterator[PlayedHand]:
        """Yield each player's hands, every one with the decisions there are of it, in the order of the logs."""
        return iterate_hands(self)

    def _repr_html_(self) -> str:
        shown = [decision._asdict() for decision in self[:SHOWN_ROWS]]
        return html_table(repr(self), shown, len(self))

    def frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with a readable row per decision.

        Its columns are `agent`, `opponents`, `street`, `position`, `hole`, `board`, `start` (the starting class,
        `AKs`, `-` for unknown cards), the betting of each street (`preflop`, `flop`, `turn`, `river`; `-` for none),
        `raises`, `to_call`, `pot`, `stack` (chips), `in_hand`, `to_act` (players), `relative_position` (players
        behind), `aggressor` (a position, missing when nobody raised), `name` (of the hand), `action` (the label's
        letter), `amount` (chips a raise goes to, else missing), `result` (the hand's net chips for the agent), `known`
        (whether the agent's cards are known), `validation`, and `file`, `line`, `hand`, `k`, `deal` for its place in
        the logs. If strengths were loaded, those of the row's street from the flop on, 0 to 1, missing for unknown
        cards: `ihs` (now), `ehs` (mean at the river), `ehs2` (mean of its square), `q1` to `q8` (means of the eighths
        of its distribution), and on the river `ochs1` to `ochs8` (against eight groups of starting hands).
        """
        import pandas as pd

        rows, game = self.rows, self.game
        labels = np.array(list(game.labels), dtype=object)
        holdem = game.hole_cards == 2
        columns: dict[str, Any] = {
            "agent": pd.Categorical.from_codes(self.agent, categories=list(self.agents)),
            "opponents": pd.Categorical.from_codes(self.opponent, categories=list(self.opponents)),
            "street": pd.Categorical.from_codes(rows["street"].astype(np.int8), categories=list(STREETS), ordered=True),
            "position": rows["position"],
            "hole": card_texts(rows["hole"]),
            "board": card_texts(rows["board"]),
        }
        if holdem:
            starts = [*(class_text(i) for i in range(NO_START)), "-"]  # the last for cards that are not known
            columns["start"] = np.array(starts, dtype=object)[rows["start"]]
        for i, street in enumerate(STREETS[: game.rounds]):
            columns[street] = betting_texts(rows["betting_codes"][:, i], game.nolimit)
        columns |= {name: rows[name] for name in ("raises", "to_call", "pot", "stack", "in_hand", "to_act")}
        columns |= {
            "relative_position": rows["behind"],
            "aggressor": pd.array(rows["aggressor"], "Int16"),
            "name": pd.Categorical.from_codes(rows["name"].astype(np.int16), categories=list(hand_names())),
            "action": labels[self.action],
            "amount": pd.array(self.amount, "Int32"),
            "result": self.result,
            "known": self.known,
            "validation": self.validation,
            "file": pd.Categorical.from_codes(self.file, categories=list(self.files)),
            "line": self.line,
            "hand": self.hand,
            "k": self.k,
            "deal": self.deal,
        }
        frame = pd.DataFrame(columns)
        frame.loc[rows["aggressor"] == NO_AGGRESSOR, "aggressor"] = pd.NA
        frame.loc[self.amount == 0, "amount"] = pd.NA
        if self.strength is not None:
            street_number = rows["street"].astype(np.int64)
            now = self.strength[np.arange(len(rows)), np.maximum(street_number - 1, 0)]
            columns = {name: now[name] / 65535 for name in ("ihs", "ehs", "ehs2")}
            columns |= {f"q{i + 1}": now["q"][:, i] / 255 for i in range(8)}
            after = dict.fromkeys(columns, 0)
            if self.ochs is not None:
                columns |= {f"ochs{i + 1}": self.ochs[:, i] / 255 for i in range(8)}
            for name, values in columns.items():
                frame[name] = np.where(self.known & (street_number > after.get(name, 2)), values, np.nan)
        return frame


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
    """Return the decisions of a dataset, agent by agent, street by street, in the order of the logs' lines.

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
    return select_rows(folder, agents, streets, game=game, files=files).load(side, strength=strength)


class _Records(NamedTuple):
    """Arrays that rows of a dataset are read into."""

    rows: Array
    metadata: dict[str, Array]
    strength: Array | None
    ochs: Array | None

    @classmethod
    def empty(cls, size: int, strength_streets: int = 0) -> _Records:
        """Return arrays for so many rows, with their strengths on so many streets after the first."""
        return cls(
            np.empty(size, dtype=OBSERVATION),
            {name: np.empty(size, dtype=dtype) for name, dtype in METADATA.items()},
            np.zeros((size, strength_streets), dtype=STRENGTH) if strength_streets else None,
            np.zeros((size, 8), dtype=np.uint8) if strength_streets == 3 else None,
        )

    def take(self, which: Any) -> _Records:
        """Return the rows of a slice, on the same memory, or a copy of those at some indices."""
        return _Records(
            # `take` copies whole records, 15 times as fast as an index, which goes field by field
            self.rows[which] if isinstance(which, slice) else self.rows.take(which),
            {name: array[which] for name, array in self.metadata.items()},
            None if self.strength is None else self.strength[which],
            None if self.ochs is None else self.ochs[which],
        )

    def fill(self, table: Any, street: int, game: Game) -> tuple[list[str], list[str]]:
        """Write a table's decisions; return the texts that opponents and files are numbers into."""
        if self.strength is not None:
            fill_strength(table, street, self.strength)
        if self.ochs is not None and street == 3:
            fill_ochs(table, self.ochs)
        return fill_rows(table, street, game, self.rows, self.metadata)

    def decisions(self, game: Game, agents: tuple[str, ...], opponents: list[str], files: list[str]) -> Decisions:
        """Return these rows as `Decisions`, with the texts that agents, opponents and files are numbers into."""
        return Decisions(
            game=game,
            rows=self.rows,
            agents=agents,
            opponents=tuple(opponents),
            files=tuple(files),
            strength=self.strength,
            ochs=self.ochs,
            **self.metadata,
        )


def _street(source: RowRange) -> int:
    """Return the number of the street of a range's rows."""
    return STREETS.index(source.file.street or "")


def _number_texts(codes: Array, bounds: Array, texts: Sequence[Sequence[str]]) -> list[str]:
    """Replace each file's own numbers of texts by common ones; return the texts in use, by number."""
    seen: dict[str, int] = {}
    for i, own in enumerate(texts):
        part = codes[bounds[i] : bounds[i + 1]]
        used = np.bincount(part, minlength=len(own)) > 0  # a file lists the texts of all its agents
        numbered = [seen.setdefault(text, len(seen)) if use else -1 for text, use in zip(own, used, strict=True)]
        part[:] = np.array(numbered, dtype=np.int32)[part]
    return list(seen)


class _Segment(NamedTuple):
    """Rows of a range that are read to one place."""

    range_index: int
    agents: Array
    """their numbers"""
    counts: Array
    """rows of each"""


class SelectedRows(NamedTuple):
    """The rows of a dataset that hold the decisions of some agents on some streets."""

    folder: Path
    options: Settings
    """with which the dataset was made"""
    game: Game
    agents: tuple[str, ...]
    """sorted by name"""
    ranges: list[RowRange]
    """street by street"""

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return sum(rows.rows for rows in self.ranges)

    def by_part(self) -> dict[str, SelectedRows]:
        """Return the rows of each of the dataset's parts, whose files have one name on all streets."""
        grouped: dict[str, list[RowRange]] = {}
        for rows in self.ranges:
            grouped.setdefault(Path(rows.file.path).name, []).append(rows)
        return {name: self._replace(ranges=ranges) for name, ranges in grouped.items()}

    def _segments(self, by_agent: bool) -> list[_Segment]:
        """Divide the ranges into segments, by agent or as they are; those of an agent follow one another."""
        numbers = {agent: i for i, agent in enumerate(self.agents)}
        segments = []
        for index, rows in enumerate(self.ranges):
            counts = agent_rows(self.folder, rows.file) if rows.agents is None else rows.agents
            agents = np.array([numbers[agent] for agent in counts], dtype=np.int32)
            sizes = np.array(list(counts.values()), dtype=np.int64)
            some = [slice(i, i + 1) for i in range(len(agents))] if by_agent else [slice(None)]
            segments += [_Segment(index, agents[part], sizes[part]) for part in some]
        return sorted(segments, key=lambda segment: segment.agents[0]) if by_agent else segments

    def load(self, side: str | None = None, *, strength: bool = False) -> Decisions:
        """Return the rows as `load_decisions` does, each file read once."""
        if side not in (None, "train", "validation"):
            raise PipelineError(f"side is 'train' or 'validation', not {side!r}")
        if side is not None:
            return self._load_side(side == "validation", 3 if strength and self.game.is_holdem else 0)
        folder, rules = self.folder, self.game
        by_agent = len(self.agents) <= MAX_AGENT_READS
        # an agent's rows go straight to where they belong: sorting them later costs as much as reading
        segments = self._segments(by_agent)
        bounds = np.cumsum([0, *(int(segment.counts.sum()) for segment in segments)])
        try:
            records = _Records.empty(int(bounds[-1]), 3 if strength and rules.is_holdem else 0)
        except (MemoryError, ValueError, OverflowError):
            raise PipelineError(f"no memory for the {bounds[-1]} rows of {folder}: name agents or streets") from None
        by_range: list[list[int]] = [[] for _ in self.ranges]
        for i, segment in enumerate(segments):
            by_range[segment.range_index].append(i)
        by_file: dict[str, list[int]] = {}
        for index, rows in enumerate(self.ranges):
            by_file.setdefault(rows.file.path, []).append(index)
        texts: list[tuple[list[str], list[str]]] = [([], [])] * len(segments)

        def read(indexes: list[int]) -> None:
            street = _street(self.ranges[indexes[0]])
            tables = read_ranges(
                folder, [self.ranges[index] for index in indexes], 0 if records.strength is None else street
            )
            for index, table in zip(indexes, tables, strict=True):
                first = 0
                for i in sorted(by_range[index]):
                    part = records.take(slice(bounds[i], bounds[i + 1]))
                    part.metadata["agent"][:] = np.repeat(segments[i].agents, segments[i].counts)
                    with translate_parquet_errors(folder / self.ranges[index].file.path):
                        texts[i] = part.fill(table.slice(first, len(part.rows)), street, rules)
                    first += len(part.rows)

        # the first import registers Arrow's functions; threads that cast meanwhile would find some of them missing
        import pyarrow.compute  # noqa: F401

        with ThreadPoolExecutor(processors()) as pool:
            list(pool.map(read, by_file.values()))
        opponents, logs = (
            _number_texts(records.metadata[name], bounds, [pair[i] for pair in texts])
            for i, name in enumerate(("opponent", "file"))
        )
        row_order: Any = None if by_agent else np.argsort(records.metadata["agent"], kind="stable")
        if row_order is not None:
            records = records.take(row_order)
        return records.decisions(rules, self.agents, opponents, logs)

    def _load_side(self, is_validation: bool, strength_streets: int) -> Decisions:
        """Return the rows on one side of the split; of the other side only a piece is ever in memory."""
        parts = [_Records.empty(0, strength_streets)]
        opponents, logs = [list[str]()], [list[str]()]
        for _, piece in self.pieces(strength=strength_streets > 0):
            chosen = np.flatnonzero(piece.validation == is_validation)
            part = _Records.empty(len(chosen), strength_streets)
            np.take(piece.rows, chosen, out=part.rows)
            for name, values in part.metadata.items():
                np.take(getattr(piece, name), chosen, out=values)
            if part.strength is not None and piece.strength is not None:
                part.strength[:, : piece.strength.shape[1]] = piece.strength[chosen]
            if part.ochs is not None and piece.ochs is not None:
                part.ochs[:] = piece.ochs[chosen]
            parts.append(part)
            opponents.append(list(piece.opponents))
            logs.append(list(piece.files))
        bounds = np.cumsum([0, *(len(part.rows) for part in parts)], dtype=np.int64)
        records = _Records(
            np.concatenate([part.rows for part in parts]),
            {name: np.concatenate([part.metadata[name] for part in parts]) for name in METADATA},
            np.concatenate([part.strength for part in parts if part.strength is not None])
            if strength_streets
            else None,
            np.concatenate([part.ochs for part in parts if part.ochs is not None]) if strength_streets == 3 else None,
        )
        del parts
        texts = (("opponent", opponents), ("file", logs))
        names = [_number_texts(records.metadata[name], bounds, of_pieces) for name, of_pieces in texts]
        if (np.diff(records.metadata["agent"]) < 0).any():  # pieces come street by street and file by file
            records = records.take(np.argsort(records.metadata["agent"], kind="stable"))
        return records.decisions(self.game, self.agents, *names)

    def pieces(self, *, strength: bool = False) -> Iterator[tuple[File, Decisions]]:
        """Yield the rows some at a time, for data too large to be in memory twice, each piece with its file."""
        segments = self._segments(by_agent=False)
        for source, segment in zip(self.ranges, segments, strict=True):
            street = _street(source)
            agents = np.repeat(segment.agents, segment.counts)
            first = 0
            with_strength = street if strength and self.game.is_holdem else 0
            for table in read_batches(self.folder, source, with_strength):
                records = _Records.empty(table.num_rows, with_strength)
                records.metadata["agent"][:] = agents[first : first + table.num_rows]
                first += table.num_rows
                with translate_parquet_errors(self.folder / source.file.path):
                    opponents, logs = records.fill(table, street, self.game)
                yield source.file, records.decisions(self.game, self.agents, opponents, logs)


def select_rows(
    folder: Path | str,
    agents: Sequence[str] | None = None,
    streets: Sequence[str] | None = None,
    *,
    game: str | None = None,
    files: Collection[str] | None = None,
) -> SelectedRows:
    """Find the rows that `load_decisions` with the same arguments would return, without reading them."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    everybody: set[str] = set()
    ranges: list[RowRange] = []
    for file in manifest.decisions:
        counts = agent_rows(folder, file)
        everybody.update(counts)
        ranges += [RowRange(file, 0, None)] if agents is None else _agent_ranges(file, set(agents), counts)
    for agent in agents or ():
        if agent not in everybody:
            raise PipelineError(f"{folder} has no decisions of {agent!r}{nearest(agent, everybody)}")
    for street in streets or ():
        if street not in STREETS:
            raise PipelineError(f"no street {street!r}{nearest(street, STREETS)}")
    if game is not None and game not in manifest.games:
        raise PipelineError(f"{folder} has no decisions of game {game!r}{nearest(game, manifest.games)}")
    if game is not None and agents and not any(rows.file.game == game for rows in ranges):
        raise PipelineError(
            f"{folder} has no decisions of {' or '.join(map(repr, agents))} in {game}: name another game"
        )
    ranges = [
        rows
        for rows in ranges
        if (streets is None or rows.file.street in streets)
        and (game is None or rows.file.game == game)
        and (files is None or rows.file.path in files)
    ]
    games = sorted({str(rows.file.game) for rows in ranges} or ([game] if game is not None else manifest.games))
    if len(games) != 1:
        raise PipelineError(f"{folder} holds {len(games) or 'no'} games ({', '.join(games)}): name one")
    rules = parse_game(manifest.games[games[0]], games[0])
    order = tuple(sorted(everybody if agents is None else set(agents)))
    return SelectedRows(folder, manifest.options, rules, order, sorted(ranges, key=_street))


def _agent_ranges(file: File, agents: set[str], counts: Mapping[str, int]) -> Iterator[RowRange]:
    """Yield the ranges of a file that belong to the agents, neighbours joined; `counts` is that of `agent_rows`."""
    end = first = 0
    wanted: dict[str, int] = {}
    for agent, rows in counts.items():
        if agent in agents:
            wanted[agent] = rows
        elif wanted:
            yield RowRange(file, first, wanted)
            wanted = {}
        end += rows
        first = first if wanted else end
    if wanted:
        yield RowRange(file, first, wanted)
