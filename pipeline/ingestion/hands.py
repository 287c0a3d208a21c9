"""Lines of a log in, checked hands with the rows of their decisions out: the driver of the byte kernel.

`scan_lines` takes the lines of (a piece of) one file and the context of the first, reads headers where the kernel stops
at them, and returns the hands of each match with their decisions as rows, and the rejected lines. Nothing here knows of
files or Parquet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.formats import acpc
from pipeline.formats.ascii import NEWLINE
from pipeline.ingestion.hand_buffers import (
    ANY_NAMES,
    NO_NAMES_YET,
    SCAN_STATE,
    HandBuffer,
    KernelContext,
    LineScratch,
    Lineups,
    hand_buffer,
    line_scratch,
)
from pipeline.ingestion.scan import AT_HEADER, BUFFER_FULL, LINEUPS_FULL, REJECTED, card_codes, scan
from pipeline.poker.cards import ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import RULES_SIZE
from pipeline.runtime.array_types import Array

BYTES_PER_ACTION = 8
"""of log lines, fewer than usual: buffers are rarely made twice for a piece"""


class LogMatch(NamedTuple):
    """Game (None when unknown), seed and header (if there is one) of the hands of a match."""

    game: Game | None
    seed: int
    header: acpc.Header | None = None


Resolve: TypeAlias = Callable[[acpc.Header, Array], LogMatch]
"""a function from a header and the bytes after it to the match it announces"""


@dataclass
class ScannedHands:
    """Checked hands of a match, and the bytes they stand in."""

    match: LogMatch
    data: Array
    buffer: HandBuffer
    rejected: int = 0
    scores: int = 0
    facts: Any = None
    """`histories.HistoryFacts` of hands of histories, which have rules of their own"""

    @property
    def records(self) -> Array:
        """Return the hands' records (HAND)."""
        return self.buffer.records


class FileHands(NamedTuple):
    """Hands of one file of a part."""

    hands: ScannedHands
    file: int
    """the file's number in the part"""
    side: int
    """1 on the validation side, 0 on the other; split.BY_DEAL or BY_PLAYER"""
    lineups: int = 0
    """the number in the part of line-up 0"""


@dataclass
class ScannedLines:
    """Content of (a piece of) a file's lines."""

    matches: list[ScannedHands] = field(default_factory=list)
    rejected: Array = field(default_factory=lambda: np.empty(0, dtype=REJECTED))
    lines: int = 0
    comments: int = 0
    scores: int = 0

    @property
    def hands(self) -> int:
        """Return the number of valid hands."""
        return sum(len(match.records) for match in self.matches)


_CARD_OF = card_codes()
_NO_RULES = np.zeros(RULES_SIZE, dtype=np.int64)


@cache
def _deck_bits(game: Game) -> int:
    """Return a bit per card of the game."""
    return sum(1 << int(card) for card in game.deck)


def _kernel_context(match: LogMatch) -> KernelContext:
    """Return a match's game and seed as the kernel takes them."""
    game = match.game
    return KernelContext(
        rules=game.rules if game else _NO_RULES,
        deck=_deck_bits(game) if game else 0,
        seed=match.seed,
        card_of=_CARD_OF,
        tables=ranking(),
    )


class _Scan:
    """A scan over the lines of one piece of a log; matches share buffers."""

    def __init__(self, data: Array, first_line: int, lineups: Lineups, work: LineScratch | None) -> None:
        self.data = data
        self.lineups = lineups
        self.work = work or line_scratch()
        self.lines = int(np.count_nonzero(data == NEWLINE)) + 1
        self.first_line = first_line
        self.scanned = ScannedLines(rejected=np.empty(self.lines, dtype=REJECTED))
        self.state = np.zeros(1, dtype=SCAN_STATE)
        self.state["line"] = first_line
        self.buffer = hand_buffer(0, 0, 0)

    def run(self, match: LogMatch, names: int, resolve: Resolve) -> ScannedLines:
        """Scan everything; `match` and `names` are the context of the first line."""
        state, scanned = self.state, self.scanned
        state["names"] = names
        while self._scan_match(match) == AT_HEADER:
            first = int(state["place"][0])
            line = self.data[first : first + acpc.MAX_LINE + 1].tobytes().partition(b"\n")[0]
            header = acpc.parse_header(line.decode("ascii", "replace"))
            if header:
                match = resolve(header, self.data[first + len(line) + 1 :])
                state["names"] = NO_NAMES_YET
            state["comments"] += 1
            state["line"] += 1
            state["place"] += len(line) + 1
        scanned.rejected = scanned.rejected[: int(state["rejected"][0])].copy()
        scanned.lines = int(state["line"][0]) - self.first_line
        scanned.comments = int(state["comments"][0])
        scanned.scores = int(state["scores"][0])
        self._trim()
        return scanned

    def _trim(self) -> None:
        """Give back what the last buffer has too much: a part of thousands of short logs would take a gigabyte."""
        used, whole = int(self.state["actions"][0]), self.buffer
        if 2 * used > len(whole.rows):
            return
        names = ("places", "totals", "labels", "rows")
        short = {name: getattr(whole, name)[:used].copy() for name in names}
        for hands in self.scanned.matches:
            if hands.buffer.rows is whole.rows:
                hands.buffer = hands.buffer._replace(**short)

    def _scan_match(self, match: LogMatch) -> int:
        """Scan up to the next header (or what looks like one); return why the kernel stopped."""
        context = _kernel_context(match)
        if self.buffer.holes.shape[1] != _players(match):  # matches of as many players share a buffer
            self._make_buffer(match)
        while True:
            before = self.state.copy()[0]
            status = int(
                scan(
                    self.data,
                    context,
                    self.lineups.table,
                    self.state,
                    self.buffer,
                    self.scanned.rejected,
                    self.work,
                )
            )
            self._collect(match, before)
            if status == LINEUPS_FULL:
                self.lineups.grow()
            elif status == BUFFER_FULL:
                self._make_buffer(match)
            else:
                return status

    def _make_buffer(self, match: LogMatch) -> None:
        """Make an empty buffer for the rest of the lines."""
        state = self.state[0]
        lines = self.lines - (int(state["line"]) - self.first_line)
        actions = (len(self.data) - int(state["place"])) // BYTES_PER_ACTION + 2 * acpc.MOST_ACTIONS
        self.buffer = hand_buffer(lines, _players(match), actions)
        self.state["hands"] = self.state["actions"] = 0

    def _collect(self, match: LogMatch, before: Any) -> None:
        """Add the hands of a match since `before` (SCAN_STATE)."""
        after, buffer = self.state[0], self.buffer
        part = slice(int(before["hands"]), int(after["hands"]))
        hands = ScannedHands(
            match,
            self.data,
            buffer._replace(
                records=buffer.records[part],
                holes=buffer.holes[part],
                boards=buffer.boards[part],
                paid=buffer.paid[part],
            ),
            rejected=int(after["rejected"] - before["rejected"]),
            scores=int(after["scores"] - before["scores"]),
        )
        if len(hands.records) or hands.rejected or hands.scores or match.header:
            self.scanned.matches.append(hands)


def _players(match: LogMatch) -> int:
    """Return the number of players that a buffer is made for."""
    return match.game.players if match.game else 1


def scan_lines(
    data: Array,
    first_line: int,
    match: LogMatch,
    lineups: Lineups,
    resolve: Resolve,
    *,
    names: int = ANY_NAMES,
    work: LineScratch | None = None,
) -> ScannedLines:
    """Check lines of one file.

    Parameters
    ----------
    data: their bytes (uint8).
    first_line: the number of the first of them in the file.
    match: the match that line belongs to.
    lineups: the line-ups known so far; new ones are added.
    resolve: returns the match that a header announces.
    names: hash of the names of the match so far (see `log_context.LogContext`).
    work: working arrays of this thread.
    """
    return _Scan(data, first_line, lineups, work).run(match, names, resolve)


def no_hands(match: LogMatch) -> ScannedHands:
    """Return no hands of a match."""
    return ScannedHands(match, np.frombuffer(b"", dtype=np.uint8), hand_buffer(0, _players(match), 0))
