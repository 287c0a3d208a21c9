"""Context of a log's lines: the game, match and players in force at every place where a log may be cut.

A log is read in pieces that are scanned side by side, so the context at the beginning of a piece must be known without
scanning the lines before it: `context_after` takes it from the text (the last header, the last score, the first hand
line after it), by the same rules as the byte kernel. The verdict on a line therefore never depends on where a piece
ends.

The game is the one given for all logs, else the header's, else the one that most of the next 64 KiB of lines fit; they
may reach into the pieces that come after (`ahead`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from pipeline.formats.acpc import HAND, HAND_2009, MAX_LINE, SCORE, Header, parse_header
from pipeline.formats.ascii import NEWLINE
from pipeline.ingestion.hand_buffers import ANY_NAMES, NO_NAMES_YET, Lineups, names_hash
from pipeline.ingestion.hands import LogMatch, Resolve, scan_lines
from pipeline.ingestion.options import Options
from pipeline.poker.game import Game, builtin, find_game, game_names, kuhn
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

SAMPLE = 1 << 16
"""bytes of lines without a known game that are tried to see which one they hold"""
_HEADER = b"# name/game/hands/seed "


class LogContext(NamedTuple):
    """Game, seed, header and players in force at a line."""

    match: LogMatch
    names: int
    """hash of the names of the match so far, or NO_NAMES_YET or ANY_NAMES"""


def first_context(options: Options, label: str, data: bytes, ahead: bytes) -> LogContext:
    """Return the context of a log's first line; the log begins with `data` and `ahead`."""
    game = options.rules
    first = data[:MAX_LINE].partition(b"\n")[0]
    if game is None and parse_header(first.decode("ascii", "replace")) is None:
        game = _fitting_game(_sample(data, 0, ahead))
    return LogContext(LogMatch(game, _seed_of(PurePosixPath(label).name)), ANY_NAMES)


def history_context(label: str) -> LogContext:
    """Return the context of a hand history: only a seed, as its hands bring their own rules."""
    return LogContext(LogMatch(None, _seed_of(PurePosixPath(label).name)), ANY_NAMES)


def context_after(options: Options, before: LogContext, data: bytes, ahead: bytes) -> LogContext:
    """Return the context of the line after `data`, given that of its first line and the lines `ahead`."""
    match, names = before
    begin = 0
    last = _last_header(data)
    if last:
        header, begin = last
        match, names = (
            header_resolver(options, ahead)(header, np.frombuffer(data, dtype=np.uint8)[begin:]),
            NO_NAMES_YET,
        )
    if match.header is None or match.game is None:
        return LogContext(match, names)
    score = _last_score(data, begin)
    if score:
        names, begin = NO_NAMES_YET, score
    if names == NO_NAMES_YET:
        names = _first_names(data, begin, match.game.players)
    return LogContext(match, names)


def header_resolver(options: Options, ahead: bytes) -> Resolve:
    """Return a function from a header to its match: the game given, else the header's, else the one that lines fit."""

    def resolve(header: Header, rest: Array) -> LogMatch:
        game = (
            options.rules or _game_named(header.game) or _fitting_game(_sample(rest[: SAMPLE + 1].tobytes(), 0, ahead))
        )
        return LogMatch(game, header.seed % 2**63, header)

    return resolve


# Reading backwards


def _last_line(data: bytes, begin: int, opening: bytes, read: Callable[[bytes], Any]) -> tuple[Any, int] | None:
    """Find the last line from `begin` on with this opening that `read` takes; return its value and where it ends."""
    end = len(data)
    while True:
        first = data.rfind(opening, begin, end)
        if first < 0:
            return None
        end = first + len(opening) - 1  # the next search ends here, one byte short of finding this one again
        if first > begin and data[first - 1] != NEWLINE:
            continue
        stop = data.find(b"\n", first)
        stop = len(data) if stop < 0 else stop
        value = read(data[first:stop]) if stop - first <= MAX_LINE else None
        if value is not None:
            return value, min(stop + 1, len(data))


def _last_header(data: bytes) -> tuple[Header, int] | None:
    return _last_line(data, 0, _HEADER, lambda line: parse_header(line.decode("ascii", "replace")))


def _last_score(data: bytes, begin: int) -> int | None:
    last = _last_line(data, begin, b"SCORE:", lambda line: SCORE.fullmatch(line.decode("latin-1")))
    return last[1] if last else None


def _first_names(data: bytes, begin: int, players: int) -> int:
    """Return the hash of the names in the first hand line of so many players; NO_NAMES_YET when there is none."""
    while begin < len(data):
        stop = data.find(b"\n", begin)
        stop = len(data) if stop < 0 else stop
        line = data[begin:stop].decode("latin-1") if stop - begin <= MAX_LINE else ""
        hand = HAND.fullmatch(line) or HAND_2009.fullmatch(line)
        fields = (hand["cards"].split("/")[0], hand["payoffs"], hand["names"]) if hand else ()
        if hand and all(field.count("|") + 1 == players for field in fields):
            named = np.frombuffer(hand["names"].encode("latin-1"), dtype=np.uint8)
            return int(names_hash(named, 0, len(named)))
        begin = stop + 1
    return NO_NAMES_YET


# Which game


def _seed_of(text: str) -> int:
    """Return a seed for a file without a header."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


@cache
def _game_named(text: str) -> Game | None:
    """Return the game that a header names, if it comes with the package."""
    base = PurePosixPath(text.replace("\\", "/")).name
    try:
        return find_game(base) if not Path(base).is_file() else builtin(base.removesuffix(".game"))
    except (PipelineError, OSError, ValueError):
        return None


def _sample(data: bytes, begin: int, ahead: bytes) -> bytes:
    """Return whole lines from `begin` on, at most SAMPLE bytes of them."""
    sample = data[begin : begin + SAMPLE + 1]
    sample += ahead[: SAMPLE + 1 - len(sample)]
    return sample if len(sample) <= SAMPLE else sample[: sample.rfind(b"\n", 0, SAMPLE) + 1]


@cache
def _games(players: int) -> list[Game]:
    """Return the games of so many players that lines are tried with."""
    games = [game for name in game_names() if (game := builtin(name)).players == players]
    return [*games, kuhn(players)] if 4 <= players <= 12 else games


def _fitting_game(sample: bytes) -> Game | None:
    """Return the game that most of these lines fit."""
    # bars after the last colon stand between names, or between payoffs in logs of 2009: one fewer than players
    players = {line.count(b"|", line.rfind(b":")) + 1 for line in sample.splitlines()[:50]}
    data = np.frombuffer(sample, dtype=np.uint8)
    best, most = None, 0
    for game in (game for count in sorted(players) for game in _games(count)):
        match = LogMatch(game, 0)
        scanned = scan_lines(data, 1, match, Lineups(), lambda header, rest, match=match: match)  # type: ignore[misc]
        if scanned.hands > most:
            best, most = game, scanned.hands
    return best
