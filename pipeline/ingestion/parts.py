"""Parts of a dataset: a few megabytes of log lines become one Parquet file per street.

A part's lines are scanned in chunks, side by side on a pool of threads (kernels run without the interpreter's lock).
When all are scanned, the agents of the part are numbered by name, and each game and street becomes a table of the
decisions sorted by agent and in the order of the lines. A part's files depend on its lines and on the options alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from pipeline.dataset.decisions import STREETS, is_validation
from pipeline.dataset.manifest import MAX_LISTED_NAMES, File, LogCounts, Part
from pipeline.dataset.schema import decisions_folder
from pipeline.formats.acpc import REASONS
from pipeline.ingestion.hand_buffers import Lineups, line_scratch
from pipeline.ingestion.hands import FileHands, LogMatch, ScannedLines, no_hands, scan_lines
from pipeline.ingestion.log_context import LogContext, header_resolver
from pipeline.ingestion.options import Options
from pipeline.ingestion.parquet import write
from pipeline.ingestion.scan import scan
from pipeline.ingestion.tables import RowOwners, count_rows, decision_table, hand_table, rejected_table
from pipeline.poker.game import Game, builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import is_compiled, prepare
from pipeline.runtime.numeric import hash_name


class PartLines(NamedTuple):
    """Lines of one file that belong to a part, and the context of the first."""

    label: str
    file: int
    """the file's number in the part"""
    first_line: int
    context: LogContext
    data: Array
    ahead: bytes
    """the lines after these, enough to see which game they hold"""
    decimals: int = -1
    """see `readers.LogPiece`"""
    site: str = ""
    """the same"""


@dataclass
class PartText:
    """The lines of a part: its files, and chunks of lines that are scanned side by side."""

    files: list[str] = field(default_factory=list)
    chunks: list[list[PartLines]] = field(default_factory=list)
    bytes_read: int = 0
    """of the batch's sources, up to the end of the part"""
    packed: list[list[str]] = field(default_factory=list)
    """see `Part.packed_logs`"""


# Chunks


class RejectedLines(NamedTuple):
    """Lines of a file that are no hands."""

    file: int
    data: Array
    records: Array
    """scan.REJECTED"""
    reasons: Sequence[str]
    """texts that the records' codes stand for"""


@dataclass
class Chunk:
    """Content of some lines of a part."""

    counts: dict[str, LogCounts] = field(default_factory=dict)
    hands: list[FileHands] = field(default_factory=list)
    lineups: list[str] = field(default_factory=list)
    rejected: list[RejectedLines] = field(default_factory=list)

    def count(self, label: str) -> LogCounts:
        """Return the counts of a file, to be added to."""
        return self.counts.setdefault(label, LogCounts())

    @property
    def games(self) -> dict[str, Game]:
        """Return the games of the hands by name."""
        return {piece.hands.match.game.name: piece.hands.match.game for piece in self.hands if piece.hands.match.game}


def scan_chunk(lines: Sequence[PartLines], options: Options) -> Chunk:
    """Scan some lines."""
    chunk, lineups, work = Chunk(), Lineups(), line_scratch()
    of_histories: list[str] = []
    seen: list[tuple[str, list[int]]] = []
    for piece in lines:
        if piece.decimals >= 0:
            of_histories += _scan_histories(piece, options, chunk, len(of_histories))
            continue
        resolve = header_resolver(options, piece.ahead)
        match, names = piece.context
        scanned = scan_lines(piece.data, piece.first_line, match, lineups, resolve, names=names, work=work)
        side = options.split.held_out(piece.label)
        chunk.hands += [FileHands(hands, piece.file, side) for hands in scanned.matches if len(hands.records)]
        if len(scanned.rejected):
            chunk.rejected.append(RejectedLines(piece.file, piece.data, scanned.rejected, REASONS))
        chunk.count(piece.label).add(_line_counts(scanned))
        seen += [(piece.label, np.unique(hands.records["lineup"]).tolist()) for hands in scanned.matches]
    texts = lineups.texts()
    for label, numbers in seen:
        chunk.count(label).add(LogCounts(names=[name for number in numbers for name in texts[number].split("|")]))
    for hands, *_ in chunk.hands:  # line-ups of histories are numbered behind those of all ACPC lines of the chunk
        if hands.facts is not None:
            hands.records["lineup"] += len(texts)
    chunk.lineups = texts + of_histories
    return chunk


def _scan_histories(piece: PartLines, options: Options, chunk: Chunk, first_lineup: int) -> list[str]:
    """Add the hands of a piece of a history to a chunk, hands standing for lines in its counts; return line-ups."""
    # most logs hold none: start-up is shorter
    from pipeline.ingestion.histories import count_peculiar, scan_history_piece

    groups, lineups, bad, reasons = scan_history_piece(
        piece.data, piece.first_line, piece.decimals, piece.context.match.seed, piece.site
    )
    for group in groups:
        group.records["lineup"] += first_lineup
    chunk.hands += [FileHands(group, piece.file, options.split.held_out(piece.label)) for group in groups]
    if len(bad):
        chunk.rejected.append(RejectedLines(piece.file, piece.data, bad, reasons))
    peculiar, big_blinds = count_peculiar(groups)
    counts = LogCounts(
        lines=len(lineups) + len(bad),
        hands=len(lineups),
        rejected=len(bad),
        reasons=_count_reasons(bad, reasons),
        names=[name for lineup in lineups for name in lineup.split("|")],
        histories=peculiar,
        big_blinds=big_blinds,
    )
    chunk.count(piece.label).add(counts)
    return lineups


def _line_counts(scanned: ScannedLines) -> LogCounts:
    """Return the counts of scanned lines, but for the names of players."""
    counts = LogCounts(
        lines=scanned.lines,
        comments=scanned.comments,
        scores=scanned.scores,
        hands=scanned.hands,
        rejected=len(scanned.rejected),
        reasons=_count_reasons(scanned.rejected, REASONS),
    )
    for hands in scanned.matches:
        if header := hands.match.header:
            totals = counts.matches.setdefault(str(header), [header.hands, 0, 0])
            totals[1] += len(hands.records) + hands.rejected
            totals[2] += hands.scores
    return counts


def _count_reasons(rejected: Array, reasons: Sequence[str]) -> dict[str, int]:
    """Return how many lines were rejected for each reason."""
    return {reasons[code]: int(count) for code, count in enumerate(np.bincount(rejected["code"])) if count}


# Rows of a part


class _PartRows:
    """The decisions of a part's chunks: agents numbered in the order of their names, rows counted."""

    def __init__(self, chunks: Sequence[Chunk], options: Options) -> None:
        self.games = dict(sorted((name, game) for chunk in chunks for name, game in chunk.games.items()))
        self.lineups = [
            [options.rename(name) for name in text.split("|")] for chunk in chunks for text in chunk.lineups
        ]
        """names in position order, after aliases, of all chunks"""
        self.hands: list[FileHands] = []
        first = 0
        for chunk in chunks:
            self.hands += [piece._replace(lineups=first) for piece in chunk.hands]
            first += len(chunk.lineups)
        self.agents, numbers = self._number_agents(options)
        held_out = np.array([is_validation(np.uint64(hash_name(agent))) for agent in self.agents], dtype=np.bool_)
        self.owners = RowOwners(numbers, held_out)
        self.sizes = {name: np.zeros((len(STREETS), len(self.agents)), dtype=np.int64) for name in self.games}
        """(streets, agents) rows by game"""
        for piece in self.hands:
            assert piece.hands.match.game
            count_rows(piece.hands.buffer, piece.lineups, numbers, self.sizes[piece.hands.match.game.name])

    def _number_agents(self, options: Options) -> tuple[list[str], Array]:
        """Return all agents, and the number of the agent at each position of each line-up (-1: unwanted)."""
        names = {name for lineup in self.lineups for name in lineup}
        agents = sorted(names & set(options.agents) if options.agents else names)
        numbers = {name: number for number, name in enumerate(agents)}
        wide = max((len(lineup) for lineup in self.lineups), default=1)
        table = np.full((len(self.lineups) + 1, wide), -1, dtype=np.int64)
        for i, lineup in enumerate(self.lineups):
            for position, name in enumerate(lineup):
                table[i, position] = numbers.get(name, -1)
        return agents, table

    def table(self, game: Game, street: int, files: Sequence[str], strength: bool) -> Any:
        """Return the decisions of a game's street as an Arrow table."""
        hands = [piece for piece in self.hands if piece.hands.match.game and piece.hands.match.game.name == game.name]
        sizes, agents = self.sizes[game.name][street], self.agents_of(game.name, street)
        return decision_table(hands, self.owners, agents, sizes, game, street, files, self.lineups, strength)

    def agents_of(self, game: str, street: int) -> dict[str, int]:
        """Return how many rows each agent has in the table of a game's street, in their order."""
        sizes = self.sizes[game][street]
        return {self.agents[i]: int(sizes[i]) for i in np.flatnonzero(sizes)}


# Parts


def build_part(
    name: str, batch: str, text: PartText, folder: Path, options: Options, about: dict[str, Any], pool: Executor
) -> Part:
    """Scan the lines of a part and write its files under `folder`; return its entry in the manifest.

    Chunks and files are made side by side on the pool; `about` goes into the metadata of the files.
    """
    chunks = list(pool.map(lambda lines: scan_chunk(lines, options), text.chunks))
    counts: dict[str, LogCounts] = {}
    for chunk in chunks:
        for label, count in chunk.counts.items():
            counts.setdefault(label, LogCounts()).add(count)
    rows = _PartRows(chunks, options)
    work: list[tuple[File, Callable[[], Any]]] = []
    for game in rows.games.values():
        for street in range(game.rounds):
            if agents := rows.agents_of(game.name, street):
                path = f"{decisions_folder(street)}/{name}.{quote(game.name, safe='')}.parquet"
                file = File(path, sum(agents.values()), game=game.name, street=STREETS[street], agents=agents)
                work.append((file, partial(rows.table, game, street, text.files, options.strength)))
    if rows.hands:
        lineups = [lineup for chunk in chunks for lineup in chunk.lineups]
        file = File(f"hands/{name}.parquet", sum(len(piece.hands.records) for piece in rows.hands))
        work.append((file, partial(hand_table, rows.hands, text.files, lineups)))
    rejected = [lines for chunk in chunks for lines in chunk.rejected]
    file = File(f"rejected/{name}.parquet", sum(len(lines.records) for lines in rejected))
    work.append((file, partial(rejected_table, rejected, text.files)))
    files = list(pool.map(lambda item: write(item[1](), folder, item[0], about), work))
    games = {game.name: game.text for game in rows.games.values()}
    for count in counts.values():
        if len(count.names) > MAX_LISTED_NAMES:
            count.names = [player for player in count.names if options.rename(player) in options.agents]
    return Part(name, batch, files, games, counts, text.packed)


# Compiling


def compile_kernels() -> None:
    """On a first run, compile the kernels in two processes side by side (numba compiles one at a time in each)."""
    if is_compiled(scan.__module__):
        return
    code = "from pipeline.ingestion.parts import compile_tables; compile_tables()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        match, nothing = LogMatch(None, 0), np.frombuffer(b"", dtype=np.uint8)
        prepare(lambda: scan_lines(nothing, 1, match, Lineups(), lambda header, rest: match), [scan.__module__])


def compile_tables() -> None:
    """Compile the kernels that work after the scan."""
    game = builtin("holdem.limit.2p.reverse_blinds")
    chunk = Chunk(hands=[FileHands(no_hands(LogMatch(game, 0)), 0, -1)], lineups=["a|b"])
    rows = _PartRows([chunk], Options())
    rows.table(game, 0, [], strength=False)
    hand_table(rows.hands, [], [])
