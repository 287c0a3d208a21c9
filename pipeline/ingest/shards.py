"""Parts of a dataset: a few megabytes of log lines become one Parquet file per agent and street.

A part's lines are scanned in chunks, side by side on a pool of threads (kernels run without the interpreter's lock),
and put together in the order of the lines: a part's files depend on its lines and options alone.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from pipeline.acpc import REASONS, SAME_NAME, Header, parse_header
from pipeline.dataset import decisions_folder
from pipeline.decisions import STREETS
from pipeline.errors import PipelineError
from pipeline.game import Game, builtin, find_game, game_names, kuhn, parse_game
from pipeline.ingest.grammar import NEWLINE
from pipeline.ingest.hands import Lineups, LogMatch, Rows, ScannedHands, empty_hands, expand_hands, scan_lines
from pipeline.ingest.limit_automaton import automaton
from pipeline.ingest.tables import decision_table, hand_table, rejected_table, write
from pipeline.kernels import is_kept

__all__ = ["FileCounts", "Lines", "Options", "Shard", "begin_shard", "first_match", "next_match", "save_shard"]

Array = npt.NDArray[Any]

SAMPLE = 1 << 16
"""bytes of a file without a header that are tried to see which game it holds"""


@dataclass(frozen=True)
class Options:
    """What decides a dataset's rows, beside the logs."""

    agents: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    validation: tuple[str, ...] = ()
    game: str | None = None
    """the text of a game definition, for all logs"""
    game_name: str | None = None
    strength: bool = True

    def rename(self, name: str) -> str:
        return dict(self.aliases).get(name, name)

    def wants(self, agent: str) -> bool:
        return not self.agents or agent in self.agents

    def held_out(self, label: str) -> int:
        """Whether a file is on the validation side (0 or 1); -1 when the deals decide."""
        if not self.validation:
            return -1
        base = PurePosixPath(label).name
        return int(any(fnmatchcase(base, glob) or fnmatchcase(label, glob) for glob in self.validation))


@dataclass
class Lines:
    """Lines of one file that belong to a part: their number in the file and what governs the first."""

    label: str
    file: int
    """the file's number in the part"""
    first_line: int
    match: LogMatch
    data: Array


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
    names: list[str] = field(default_factory=list)

    def add(self, other: FileCounts) -> None:
        for name in ("lines", "comments", "scores", "hands", "rejected"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + count
        for header, (announced, hands, scores) in other.matches.items():
            known = self.matches.setdefault(header, [announced, 0, 0])
            known[1] += hands
            known[2] += scores
        self.names = sorted({*self.names, *other.names})

    @property
    def truncated(self) -> bool:
        """A match that has no score and fewer hands than its header announced."""
        return any(scores == 0 and hands < announced for announced, hands, scores in self.matches.values())


# Which game


@cache
def _given(name: str, text: str) -> Game:
    return parse_game(text, name)


def _seed(text: str) -> int:
    """A seed for a file without a header."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def _named(header: Header) -> Game | None:
    """The game that a header names, if it comes with the package."""
    base = PurePosixPath(header.game.replace("\\", "/")).name
    try:
        return find_game(base) if not Path(base).is_file() else builtin(base.removesuffix(".game"))
    except (PipelineError, OSError):
        return None


def _fitting(data: Array) -> Game | None:
    """The game that most of the first lines fit."""
    sample = data[:SAMPLE]
    if len(data) > SAMPLE:
        sample = sample[: SAMPLE - int(np.argmax(sample[::-1] == NEWLINE))]
    players = {line.count(b"|", line.rfind(b":")) + 1 for line in sample.tobytes().splitlines()[:50]}
    games = [builtin(name) for name in game_names()]
    games += [kuhn(n) for n in sorted(players) if 4 <= n <= 12]
    best, most = None, 0
    for game in games:
        found = scan_lines(sample, 1, LogMatch(game, 0), Lineups(), lambda header, rest, game=game: LogMatch(game, 0))  # type: ignore[misc]
        if found.hands > most:
            best, most = game, found.hands
        elif best is None and SAME_NAME in found.rejected["code"]:
            best = game  # so that this is what the lines are rejected for
    return best


def first_match(options: Options, label: str, data: Array) -> LogMatch:
    """What governs a file's first lines."""
    game = _given(options.game_name or "game", options.game) if options.game else None
    head = data[:1024].tobytes()
    if game is None and not head.startswith(b"# name/game"):
        game = _fitting(data)
    return LogMatch(game, _seed(PurePosixPath(label).name))


def resolver(options: Options) -> Callable[[Header, Array], LogMatch]:
    """How headers are read: the game given, else the header's, else the one that the lines fit."""

    def resolve(header: Header, rest: Array) -> LogMatch:
        if options.game:
            game: Game | None = _given(options.game_name or "game", options.game)
        else:
            game = _named(header) or _fitting(rest)
        return LogMatch(game, header.seed % 2**63, header)

    return resolve


def next_match(options: Options, match: LogMatch, data: bytes) -> LogMatch:
    """What governs the lines after `data`, if `match` governs its first."""
    at = data.rfind(b"\n# name/game/") + 1
    if at == 0 and not data.startswith(b"# name/game/"):
        return match
    line, _, rest = data[at:].partition(b"\n")
    header = parse_header(line.decode("ascii", "replace"))
    return resolver(options)(header, np.frombuffer(rest, dtype=np.uint8)) if header else match


# Compiling


def compile_kernels() -> None:
    """On a first run, compile the kernels in two processes side by side (numba compiles one at a time in each)."""
    if is_kept(ScannedHands.__module__):
        return
    code = "from pipeline.ingest.shards import compile_expansion; compile_expansion()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        match = LogMatch(None, 0)
        scan_lines(np.frombuffer(b"", dtype=np.uint8), 1, match, Lineups(), lambda header, rest: match)


def compile_expansion() -> None:
    """Compile what comes before and after scanning."""
    game = builtin("holdem.limit.2p.reverse_blinds")
    none = empty_hands(LogMatch(game, 0))
    rows = expand_hands([(none, 0, -1)], [np.zeros((1, 2), dtype=np.int64)], 1)
    automaton(game)
    decision_table([(rows.seen, rows.taken, 0)], game, 0, [], np.array([], dtype=object))
    hand_table([(none, 0, -1, 0)], [], [])


# Chunks


@dataclass
class Chunk:
    """What some lines hold."""

    counts: dict[str, FileCounts]
    hands: list[tuple[ScannedHands, int, int]]
    lineups: list[str]
    groups: list[tuple[str, str]]
    """game and agent of each group of four streets in `rows`"""
    rows: Rows
    rejected: list[tuple[int, Array, Array]]
    """file, bytes and scan.REJECTED of lines that are no hands"""
    games: dict[str, Game]


def scan_chunk(lines: list[Lines], options: Options) -> Chunk:
    """Scan and expand some lines."""
    lineups = Lineups()
    counts: dict[str, FileCounts] = {}
    pieces: list[tuple[ScannedHands, int, int]] = []
    rejected: list[tuple[int, Array, Array]] = []
    resolve = resolver(options)
    for piece in lines:
        found = scan_lines(piece.data, piece.first_line, piece.match, lineups, resolve)
        held_out = options.held_out(piece.label)
        pieces += [(hands, piece.file, held_out) for hands in found.matches if len(hands.records)]
        if len(found.rejected):
            rejected.append((piece.file, piece.data, found.rejected.copy()))
        names = {
            name
            for hands in found.matches
            for number in np.unique(hands.records["lineup"])
            for name in lineups.texts[number].split("|")
        }
        count = FileCounts(
            lines=found.lines,
            comments=found.comments,
            scores=found.scores,
            hands=found.hands,
            rejected=len(found.rejected),
            reasons={REASONS[code]: int(n) for code, n in enumerate(np.bincount(found.rejected["code"])) if n},
            names=sorted(names),
        )
        for hands in found.matches:
            if header := hands.match.header:
                known = count.matches.setdefault(str(header), [header.hands, 0, 0])
                known[1] += len(hands.records) + hands.rejected
                known[2] += hands.scores
        counts.setdefault(piece.label, FileCounts()).add(count)
    numbers: dict[tuple[str, str], int] = {}
    games: dict[str, Game] = {}
    agents = []
    for hands, _, _ in pieces:
        game = hands.match.game
        assert game
        games[game.name] = game
        table = np.full((max(1, len(lineups.texts)), game.players), -1, dtype=np.int64)
        for number, text in enumerate(lineups.texts):
            renamed = [options.rename(name) for name in text.split("|")]
            if len(renamed) == game.players:
                if len(set(renamed)) < len(set(text.split("|"))):
                    raise PipelineError(f"the aliases give two players of {text} the same name")
                for position, agent in enumerate(renamed):
                    if options.wants(agent):
                        table[number, position] = numbers.setdefault((game.name, agent), len(numbers))
        agents.append(table)
    rows = expand_hands(pieces, agents, len(numbers))
    for hands, _, _ in pieces:
        hands.keep_records()
    return Chunk(counts, pieces, lineups.texts, list(numbers), rows, rejected, games)


# Parts


@dataclass
class Shard:
    """A part under way."""

    name: str
    files: list[str]
    chunks: list[Future[Chunk]]


def begin_shard(name: str, files: list[str], chunks: list[list[Lines]], options: Options, pool: Executor) -> Shard:
    """Start to scan a part's chunks."""
    return Shard(name, files, [pool.submit(scan_chunk, chunk, options) for chunk in chunks])


@dataclass
class Saving:
    """A part that is being written: its files with their rows, and what its logs hold."""

    name: str
    files: list[dict[str, Any]]
    counts: dict[str, FileCounts]
    games: dict[str, str]
    saved: list[Future[None]]


def save_shard(part: Shard, folder: Path, options: Options, about: dict[str, Any], pool: Executor) -> Saving:
    """Wait for a part's chunks and start to write its files under `folder`."""
    chunks = [future.result() for future in part.chunks]
    counts: dict[str, FileCounts] = {}
    games: dict[str, Game] = {}
    bases: list[int] = []
    lineups: list[str] = []
    rejected = []
    for chunk in chunks:
        bases.append(len(lineups))
        lineups += chunk.lineups
        rejected += chunk.rejected
        games |= chunk.games
        for label, count in chunk.counts.items():
            counts.setdefault(label, FileCounts()).add(count)
    tasks: list[tuple[dict[str, Any], Callable[[], Any]]] = []
    for game_name, agent in sorted({group for chunk in chunks for group in chunk.groups}):
        game = games[game_name]
        others = np.array([_others(text, game.players, options) for text in lineups], dtype=object)
        for street in range(game.rounds):
            pieces = []
            for chunk, base in zip(chunks, bases, strict=True):
                if (game_name, agent) in chunk.groups:
                    group = 4 * chunk.groups.index((game_name, agent)) + street
                    first, last = chunk.rows.bounds[group : group + 2]
                    if first < last:
                        pieces.append((chunk.rows.seen[first:last], chunk.rows.taken[first:last], base))
            if pieces:
                path = f"{decisions_folder(agent, street)}/{part.name}.{quote(game_name, safe='')}.parquet"
                rows = sum(len(seen) for seen, _, _ in pieces)
                file = {"path": path, "rows": rows, "game": game_name, "agent": agent, "street": STREETS[street]}

                def make(pieces: Any = pieces, game: Game = game, street: int = street, others: Array = others) -> Any:
                    return decision_table(pieces, game, street, part.files, others, options.strength)

                tasks.append((file, make))
    every = [(*piece, base) for chunk, base in zip(chunks, bases, strict=True) for piece in chunk.hands]
    if every:
        file = {"path": f"hands/{part.name}.parquet", "rows": sum(len(piece[0].records) for piece in every)}
        tasks.append((file, lambda: hand_table(every, part.files, lineups)))
    file = {"path": f"rejected/{part.name}.parquet", "rows": sum(len(bad) for _, _, bad in rejected)}
    tasks.append((file, lambda: rejected_table(rejected, part.files)))

    def save(task: tuple[dict[str, Any], Callable[[], Any]]) -> None:
        file, make = task
        write(make(), folder / file["path"], about)

    largest_first = sorted(tasks, key=lambda task: -task[0]["rows"])
    return Saving(
        part.name,
        [file for file, _ in tasks],
        counts,
        {name: game.text for name, game in games.items()},
        [pool.submit(save, task) for task in largest_first],
    )


def _others(lineup: str, players: int, options: Options) -> list[str]:
    """The opponents of each position, from the next one on."""
    names = [options.rename(name) for name in lineup.split("|")]
    if len(names) != players:
        return [""] * players
    return ["|".join(names[(p + i) % players] for i in range(1, players)) for p in range(players)]
