"""What governs a line of a log: which game, which match, whose names; known at every place where a log may be cut.

A log is read in pieces that are scanned side by side, so what the lines before a piece say about it must be known
without scanning them: `following` takes it from the text (the last header, the last score, the first hand line after
it), by the same rules as the byte kernel. The verdict on a line therefore never depends on where a piece ends.

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
from pipeline.ingestion.grammar import NEWLINE
from pipeline.ingestion.hand_buffers import ANY_NAMES, NO_NAMES_YET, Lineups, names_hash
from pipeline.ingestion.hands import LogMatch, Resolve, scan_lines
from pipeline.ingestion.options import Options
from pipeline.poker.game import Game, builtin, find_game, game_names, kuhn
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

SAMPLE = 1 << 16
"""bytes of lines without a known game that are tried to see which one they hold"""
_HEADER = b"# name/game/hands/seed "


class Governed(NamedTuple):
    """What governs the lines of a log from some place on."""

    match: LogMatch
    names: int
    """hash of the names of the match so far, or NO_NAMES_YET or ANY_NAMES"""


def first_lines(options: Options, label: str, data: bytes, ahead: bytes) -> Governed:
    """What governs a log's first lines, `data` and `ahead`."""
    game = options.rules
    first = data[:MAX_LINE].partition(b"\n")[0]
    if game is None and parse_header(first.decode("ascii", "replace")) is None:
        game = _fitting(_sample(data, 0, ahead))
    return Governed(LogMatch(game, _seed(PurePosixPath(label).name)), ANY_NAMES)


def of_histories(label: str) -> Governed:
    """What governs the hands of a history: they say themselves how they are played."""
    return Governed(LogMatch(None, _seed(PurePosixPath(label).name)), ANY_NAMES)


def following(options: Options, before: Governed, data: bytes, ahead: bytes) -> Governed:
    """What governs the lines after `data`, if `before` governs its first; `ahead` are the lines after it."""
    match, names = before
    begin = 0
    found = _last_header(data)
    if found:
        header, begin = found
        match, names = resolver(options, ahead)(header, np.frombuffer(data, dtype=np.uint8)[begin:]), NO_NAMES_YET
    if match.header is None or match.game is None:
        return Governed(match, names)
    score = _last_score(data, begin)
    if score:
        names, begin = NO_NAMES_YET, score
    if names == NO_NAMES_YET:
        names = _first_names(data, begin, match.game.players)
    return Governed(match, names)


def resolver(options: Options, ahead: bytes) -> Resolve:
    """How headers are read: the game given, else the header's, else the one that the lines after it fit."""

    def resolve(header: Header, rest: Array) -> LogMatch:
        game = options.rules or _named(header.game) or _fitting(_sample(rest[: SAMPLE + 1].tobytes(), 0, ahead))
        return LogMatch(game, header.seed % 2**63, header)

    return resolve


# Reading backwards


def _last(data: bytes, begin: int, opening: bytes, reads: Callable[[bytes], Any]) -> tuple[Any, int] | None:
    """The last line from `begin` on that begins so and that `reads` takes, and the place after it."""
    end = len(data)
    while True:
        at = data.rfind(opening, begin, end)
        if at < 0:
            return None
        end = at + len(opening) - 1
        if at > begin and data[at - 1] != NEWLINE:
            continue
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        found = reads(data[at:stop]) if stop - at <= MAX_LINE else None
        if found is not None:
            return found, min(stop + 1, len(data))


def _last_header(data: bytes) -> tuple[Header, int] | None:
    return _last(data, 0, _HEADER, lambda line: parse_header(line.decode("ascii", "replace")))


def _last_score(data: bytes, begin: int) -> int | None:
    found = _last(data, begin, b"SCORE:", lambda line: SCORE.fullmatch(line.decode("latin-1")))
    return found[1] if found else None


def _first_names(data: bytes, begin: int, players: int) -> int:
    """The hash of the names of the first hand line of so many players; NO_NAMES_YET when there is none."""
    while begin < len(data):
        stop = data.find(b"\n", begin)
        stop = len(data) if stop < 0 else stop
        line = data[begin:stop].decode("latin-1") if stop - begin <= MAX_LINE else ""
        found = HAND.fullmatch(line) or HAND_2009.fullmatch(line)
        if found and players == _count(found["cards"].split("/")[0]) == _count(found["payoffs"]) == _count(
            found["names"]
        ):
            named = np.frombuffer(found["names"].encode("latin-1"), dtype=np.uint8)
            return int(names_hash(named, 0, len(named)))
        begin = stop + 1
    return NO_NAMES_YET


def _count(text: str) -> int:
    return text.count("|") + 1


# Which game


def _seed(text: str) -> int:
    """A seed for a file without a header."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


@cache
def _named(text: str) -> Game | None:
    """The game that a header names, if it comes with the package."""
    base = PurePosixPath(text.replace("\\", "/")).name
    try:
        return find_game(base) if not Path(base).is_file() else builtin(base.removesuffix(".game"))
    except (PipelineError, OSError, ValueError):
        return None


def _sample(data: bytes, begin: int, ahead: bytes) -> bytes:
    """Whole lines from `begin` on, at most SAMPLE bytes of them."""
    sample = data[begin : begin + SAMPLE + 1]
    sample += ahead[: SAMPLE + 1 - len(sample)]
    return sample if len(sample) <= SAMPLE else sample[: sample.rfind(b"\n", 0, SAMPLE) + 1]


@cache
def _games(players: int) -> list[Game]:
    """The games of so many players that are tried."""
    games = [game for name in game_names() if (game := builtin(name)).players == players]
    return [*games, kuhn(players)] if 4 <= players <= 12 else games


def _fitting(sample: bytes) -> Game | None:
    """The game that most of these lines fit."""
    players = {line.count(b"|", line.rfind(b":")) + 1 for line in sample.splitlines()[:50]}
    data = np.frombuffer(sample, dtype=np.uint8)
    best, most = None, 0
    for game in (game for count in sorted(players) for game in _games(count)):
        match = LogMatch(game, 0)
        found = scan_lines(data, 1, match, Lineups(), lambda header, rest, match=match: match)  # type: ignore[misc]
        if found.hands > most:
            best, most = game, found.hands
    return best
