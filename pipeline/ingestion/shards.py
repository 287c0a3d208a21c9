"""Parts of a dataset: a few megabytes of log lines become one Parquet file per street.

A part's lines are scanned in chunks, side by side on a pool of threads (kernels run without the interpreter's lock).
When all are scanned, the agents of the part are numbered by name and every chunk's decisions go to their places among
the part's rows: by game, street and agent, and in the order of the lines. A part's files depend on its lines and on
the options alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, STREETS, is_validation
from pipeline.dataset.manifest import MAX_LISTED_NAMES, File, LogCounts
from pipeline.dataset.schema import decisions_folder
from pipeline.formats.acpc import REASONS
from pipeline.ingestion.hand_buffers import Lineups, scratch
from pipeline.ingestion.hand_tables import hand_table, rejected_table
from pipeline.ingestion.hands import (
    TAKEN,
    Destination,
    LogMatch,
    ScannedHands,
    count_rows,
    empty_hands,
    expand_hands,
    scan_lines,
)
from pipeline.ingestion.limit_automaton import automaton
from pipeline.ingestion.log_context import LogContext, header_resolver
from pipeline.ingestion.options import Options
from pipeline.ingestion.parquet import write
from pipeline.ingestion.scan import scan
from pipeline.ingestion.tables import decision_table
from pipeline.poker.game import Game, builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import is_compiled, prepare
from pipeline.runtime.numeric import hash_name


@dataclass
class PartLines:
    """PartLines of one file that belong to a part: their number in the file and what governs the first."""

    label: str
    file: int
    """the file's number in the part"""
    first_line: int
    governed: LogContext
    data: Array
    ahead: bytes
    """the lines after these, enough to see which game they hold"""
    decimals: int = -1
    """see `readers.LogPiece`"""


@dataclass
class FileCounts:
    """What has been found in a file."""

    lines: int = 0
    comments: int = 0
    scores: int = 0
    hands: int = 0
    rejected: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    matches: dict[str, list[int]] = field(default_factory=dict)
    """per header: hands announced, hand lines found, scores found"""
    names: set[str] = field(default_factory=set)
    histories: dict[str, int] = field(default_factory=dict)
    big_blinds: dict[str, int] = field(default_factory=dict)
    """see `LogCounts`"""

    def add(self, other: FileCounts | LogCounts) -> None:
        """Count what another part of the same file holds."""
        for name in ("lines", "comments", "scores", "hands", "rejected"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("reasons", "histories", "big_blinds"):
            own = getattr(self, name)
            for word, count in getattr(other, name).items():
                own[word] = own.get(word, 0) + count
        for header, (announced, hands, scores) in other.matches.items():
            known = self.matches.setdefault(header, [announced, 0, 0])
            known[1] += hands
            known[2] += scores
        self.names.update(other.names)

    @property
    def truncated(self) -> bool:
        """A match that has no score and fewer hands than its header announced."""
        return any(scores == 0 and hands < announced for announced, hands, scores in self.matches.values())

    def entry(self, options: Options) -> LogCounts:
        """As the manifest has it: of too many names only those of the agents that the options name."""
        few = len(self.names) <= MAX_LISTED_NAMES
        names = sorted(name for name in self.names if few or options.rename(name) in options.agents)
        return LogCounts(**{**vars(self), "names": names})


# Compiling


def compile_kernels() -> None:
    """On a first run, compile the kernels in two processes side by side (numba compiles one at a time in each)."""
    if is_compiled(ScannedHands.__module__):
        return
    code = "from pipeline.ingestion.shards import compile_expansion; compile_expansion()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        match, nothing = LogMatch(None, 0), np.frombuffer(b"", dtype=np.uint8)
        prepare(lambda: scan_lines(nothing, 1, match, Lineups(), lambda header, rest: match), [scan.__module__])


def compile_expansion() -> None:
    """Compile what comes before and after scanning."""
    game = builtin("holdem.limit.2p.reverse_blinds")
    chunk = Chunk({}, [(empty_hands(LogMatch(game, 0)), 0, -1)], ["a|b"], [], {game.name: game})
    rows = _Rows([chunk], Options(), RowRoom())
    rows.expand(0)
    automaton(game)
    decision_table(rows.seen, rows.taken, game, 0, {}, [], rows.lineups)
    hand_table([(*chunk.hands[0], 0)], [], [])


# Chunks


class Chunk(NamedTuple):
    """What some lines hold."""

    counts: dict[str, FileCounts]
    hands: list[tuple[ScannedHands, int, int]]
    """with the file's number and side"""
    lineups: list[str]
    rejected: list[tuple[int, Array, Array, Sequence[str]]]
    """file, bytes and scan.REJECTED of lines that are no hands, and the reasons that their codes stand for"""
    games: dict[str, Game]


def scan_chunk(lines: list[PartLines], options: Options) -> Chunk:
    """Scan some lines."""
    lineups, work = Lineups(), scratch()
    counts: dict[str, FileCounts] = {}
    scanned: list[tuple[ScannedHands, int, int]] = []
    rejected: list[tuple[int, Array, Array, Sequence[str]]] = []
    of_histories: list[str] = []
    used: list[tuple[str, set[int]]] = []
    for piece in lines:
        match, names = piece.governed
        if piece.decimals >= 0:
            # most logs hold none: start-up is shorter
            from pipeline.ingestion.histories import count_peculiar, scan_history_piece

            groups, more, bad, reasons = scan_history_piece(piece.data, piece.first_line, piece.decimals, match.seed)
            for group in groups:
                group.records["lineup"] += len(of_histories)
            of_histories += more
            scanned += [(group, piece.file, options.held_out(piece.label)) for group in groups]
            if len(bad):
                rejected.append((piece.file, piece.data, bad, reasons))
            counts.setdefault(piece.label, FileCounts()).add(
                _history_counts(count_peculiar(groups), more, bad, reasons)
            )
            continue
        resolve = header_resolver(options, piece.ahead)
        found = scan_lines(piece.data, piece.first_line, match, lineups, resolve, names=names, work=work)
        held_out = options.held_out(piece.label)
        scanned += [(hands, piece.file, held_out) for hands in found.matches if len(hands.records)]
        if len(found.rejected):
            rejected.append((piece.file, piece.data, found.rejected.copy(), REASONS))
        count = FileCounts(
            lines=found.lines,
            comments=found.comments,
            scores=found.scores,
            hands=found.hands,
            rejected=len(found.rejected),
            reasons={REASONS[code]: int(n) for code, n in enumerate(np.bincount(found.rejected["code"])) if n},
        )
        for hands in found.matches:
            used.append((piece.label, set(np.unique(hands.records["lineup"]).tolist())))
            if header := hands.match.header:
                known = count.matches.setdefault(str(header), [header.hands, 0, 0])
                known[1] += len(hands.records) + hands.rejected
                known[2] += hands.scores
        counts.setdefault(piece.label, FileCounts()).add(count)
    texts = lineups.texts()
    for hands, _, _ in scanned:
        if hands.facts is not None:
            hands.records["lineup"] += len(texts)
    texts += of_histories
    for label, numbers in used:
        counts[label].names.update(name for number in numbers for name in texts[number].split("|"))
    games = {hands.match.game.name: hands.match.game for hands, _, _ in scanned if hands.match.game}
    return Chunk(counts, scanned, texts, rejected, games)


def _history_counts(
    counted: tuple[dict[str, int], dict[str, int]], lineups: Sequence[str], bad: Array, reasons: Sequence[str]
) -> FileCounts:
    """What a piece of a history holds; hands stand for lines. `counted` is what `count_peculiar` gives."""
    peculiar, big_blinds = counted
    return FileCounts(
        lines=len(lineups) + len(bad),
        hands=len(lineups),
        rejected=len(bad),
        reasons={reasons[code]: int(n) for code, n in enumerate(np.bincount(bad["code"])) if n},
        names={name for lineup in lineups for name in lineup.split("|")},
        histories=peculiar,
        big_blinds=big_blinds,
    )


# Rows of a part


class RowRoom:
    """Memory for the rows of parts, used for one after the other: fresh pages cost as much as filling them.

    What `take` gave belongs to its part until it is given back; only one thread may ask.
    """

    def __init__(self) -> None:
        self._free: list[tuple[Array, Array]] = []

    def take(self, rows: int) -> tuple[Array, Array]:
        """OBSERVATION and TAKEN records, at least `rows` of each, with anything in them."""
        for i, (seen, _) in enumerate(self._free):
            if len(seen) >= rows:
                return self._free.pop(i)
        if self._free:
            self._free.pop()
        room = 2 * rows  # what is never touched costs nothing
        return np.empty(room, dtype=OBSERVATION), np.empty(room, dtype=TAKEN)

    def give_back(self, memory: tuple[Array, Array]) -> None:
        """Let other parts use what a finished one had."""
        self._free.append(memory)


class _Rows:
    """The decisions of a part's chunks: rows of one game and street together, agents in the order of their names."""

    def __init__(self, chunks: Sequence[Chunk], options: Options, room: RowRoom) -> None:
        self.chunks = chunks
        self.games = dict(sorted((name, game) for chunk in chunks for name, game in chunk.games.items()))
        self.lineups = [
            [options.rename(name) for name in text.split("|")] for chunk in chunks for text in chunk.lineups
        ]
        """names in position order, after aliases, of all chunks"""
        self.agents, self.numbers = self._number(options)
        self.held = np.array([is_validation(np.uint64(hash_name(agent))) for agent in self.agents], dtype=np.bool_)
        counts = [self._count(chunk, i) for i, chunk in enumerate(chunks)]
        nothing = np.zeros((len(STREETS), len(self.agents)), dtype=np.int64)
        self.sizes = {name: sum((found.get(name, nothing) for found in counts), nothing) for name in self.games}
        """(streets, agents) rows by game"""
        self.places: list[dict[str, Array]] = [{} for _ in chunks]
        self.first: dict[str, Array] = {}
        """(streets + 1) first row of each street by game"""
        total = 0
        for name, sizes in self.sizes.items():
            after = np.cumsum(sizes).reshape(sizes.shape) + total
            at = after - sizes
            self.first[name] = np.append(at[:, 0] if len(self.agents) else np.full(len(STREETS), total), 0)
            total = int(after[-1, -1]) if sizes.size else total
            self.first[name][-1] = total
            for chunk_places, found in zip(self.places, counts, strict=True):
                if name in found:
                    chunk_places[name] = at.copy()
                    at += found[name]
        self.memory = room.take(total)
        self.seen, self.taken = self.memory[0][:total], self.memory[1][:total]

    def _number(self, options: Options) -> tuple[list[str], list[Array]]:
        """All agents, and per chunk the number of the agent at each position of each line-up (-1: unwanted)."""
        found: dict[str, int] = {}
        unwanted = {name for lineup in self.lineups for name in lineup} - set(options.agents) if options.agents else ()
        numbers: dict[str, int] = dict.fromkeys(unwanted, -1)
        wide = max((len(lineup) for lineup in self.lineups), default=1)
        table = np.full((len(self.lineups) + 1, wide), -1, dtype=np.int64)
        for i, lineup in enumerate(self.lineups):
            for p, name in enumerate(lineup):
                number = numbers.get(name)
                if number is None:
                    number = numbers[name] = found[name] = len(found)
                table[i, p] = number
        agents = sorted(found)
        rank = np.full(len(agents) + 1, -1, dtype=np.int64)  # the last stands for -1
        for new, name in enumerate(agents):
            rank[found[name]] = new
        table = rank[table]
        self.bases = np.cumsum([0, *(len(chunk.lineups) for chunk in self.chunks)]).tolist()
        return agents, [table[base:] for base in self.bases[:-1]]

    def _count(self, chunk: Chunk, i: int) -> dict[str, Array]:
        """(streets, agents) rows of a chunk by game."""
        counts: dict[str, Array] = {}
        for hands, _, _ in chunk.hands:
            assert hands.match.game
            name = hands.match.game.name
            if name not in counts:
                counts[name] = np.zeros((len(STREETS), len(self.agents)), dtype=np.int64)
            count_rows(hands.records, hands.found.places, self.numbers[i], counts[name])
        return counts

    def expand(self, i: int) -> None:
        """Write the rows of a chunk."""
        for hands, file, held_out in self.chunks[i].hands:
            assert hands.match.game
            at = self.places[i][hands.match.game.name]
            to = Destination(self.seen, self.taken, at, self.numbers[i], self.bases[i], self.held)
            expand_hands(hands, file, held_out, to)
            hands.keep_records()

    def of_street(self, game: str, street: int) -> tuple[Array, Array, dict[str, int]]:
        """OBSERVATION and TAKEN rows of a game's street, and how many each agent has, in their order."""
        part = slice(self.first[game][street], self.first[game][street + 1])
        sizes = self.sizes[game][street]
        agents = {self.agents[i]: int(sizes[i]) for i in np.flatnonzero(sizes)}
        return self.seen[part], self.taken[part], agents


# Parts


@dataclass
class Shard:
    """A part under way."""

    name: str
    files: list[str]
    chunks: list[Future[Chunk]]


def begin_shard(name: str, files: list[str], chunks: list[list[PartLines]], options: Options, pool: Executor) -> Shard:
    """Start to scan a part's chunks."""
    return Shard(name, files, [pool.submit(scan_chunk, chunk, options) for chunk in chunks])


@dataclass
class Saving:
    """A part that is being written: its files to be, and what its logs hold."""

    name: str
    games: dict[str, str]
    logs: dict[str, LogCounts]
    files: list[Future[File]]
    memory: tuple[Array, Array]
    """of its rows, to be given back when all files are there"""


def save_shard(
    part: Shard, folder: Path, options: Options, about: dict[str, Any], pool: Executor, room: RowRoom
) -> Saving:
    """Wait for a part's chunks and start to write its files under `folder`; its rows take their memory from `room`."""
    chunks = [future.result() for future in part.chunks]
    counts: dict[str, FileCounts] = {}
    for chunk in chunks:
        for label, count in chunk.counts.items():
            counts.setdefault(label, FileCounts()).add(count)
    rows = _Rows(chunks, options, room)
    list(pool.map(rows.expand, range(len(chunks))))
    files: list[Future[File]] = []

    def save(file: File, make: Callable[[], Any]) -> File:
        return write(make(), folder, file, about)

    for name, game in rows.games.items():
        for street in range(game.rounds):
            seen, taken, agents = rows.of_street(name, street)
            if agents:
                path = f"{decisions_folder(street)}/{part.name}.{quote(name, safe='')}.parquet"
                file = File(path, len(seen), game=name, street=STREETS[street], agents=agents)

                def decisions(seen=seen, taken=taken, game=game, street=street, agents=agents) -> Any:  # type: ignore[no-untyped-def]
                    return decision_table(seen, taken, game, street, agents, part.files, rows.lineups, options.strength)

                files.append(pool.submit(save, file, decisions))
    hands = [(*piece, base) for chunk, base in zip(chunks, rows.bases, strict=False) for piece in chunk.hands]
    if hands:
        lineups = [text for chunk in chunks for text in chunk.lineups]
        file = File(f"hands/{part.name}.parquet", sum(len(piece[0].records) for piece in hands))
        files.append(pool.submit(save, file, lambda: hand_table(hands, part.files, lineups)))
    rejected = [bad for chunk in chunks for bad in chunk.rejected]
    file = File(f"rejected/{part.name}.parquet", sum(len(bad) for _, _, bad, _ in rejected))
    files.append(pool.submit(save, file, lambda: rejected_table(rejected, part.files)))
    return Saving(
        part.name,
        {name: game.text for name, game in rows.games.items()},
        {label: count.entry(options) for label, count in counts.items()},
        files,
        rows.memory,
    )
