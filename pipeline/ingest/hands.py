"""Checked hands of log lines, and their decisions as columns.

`scan_lines` drives the byte kernel over the lines of one file and collects the hands of each match; `expand` replays
them into columns of codes, the rows of each (agent, street) together and in the order of the lines. Nothing here
knows of files or Parquet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline import acpc
from pipeline.cards import Ranking, ranking
from pipeline.decisions import MOST_ACTIONS, OBSERVATION, is_validation, replay
from pipeline.game import Game
from pipeline.ingest.grammar import NEWLINE, card_codes
from pipeline.ingest.hand_buffers import (
    C_ACTIONS,
    C_AT,
    C_COMMENTS,
    C_HANDS,
    C_LINE,
    C_NAMES,
    C_NAMES_END,
    C_REJECTED,
    C_SCORES,
    C_SET,
    COUNTERS,
    HAND,
    RING,
    RING_BYTES,
    Found,
    scratch,
)
from pipeline.ingest.limit_automaton import automaton
from pipeline.ingest.scan import AT_HEADER, AT_LINEUP, DONE, REJECTED, scan
from pipeline.kernels import kernel
from pipeline.rules import R_NOLIMIT, RULES_SIZE, STATE_SIZE

__all__ = ["TAKEN", "Lineups", "LogMatch", "Rows", "Scanned", "ScannedHands", "expand_hands", "scan_lines"]

Array = npt.NDArray[Any]

TAKEN = np.dtype(
    [
        ("deal", np.uint64),
        ("result", np.float64),
        ("line", np.int32),
        ("hand", np.int32),
        ("size", np.int32),  # the total a raise goes to, 0 for other actions
        ("file", np.int32),
        ("lineup", np.int32),
        ("k", np.uint8),
        ("action", np.uint8),
        ("label", np.uint8),
        ("validation", np.bool_),
    ],
    align=True,
)
"""what a decision row has beside the observation: where it stands and what was done"""


class LogMatch(NamedTuple):
    """What governs the hands after a header: the game (None when unknown), the seed and the header, if there is one."""

    game: Game | None
    seed: int
    header: acpc.Header | None = None


class Lineups:
    """The line-ups (names in position order) met so far, numbered as they come."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[bytes, int] = {}
        self._sets: dict[frozenset[bytes], int] = {}

    def number(self, text: bytes) -> tuple[int, int]:
        """A line-up's number and that of its set of names; the latter is -1 when two names are the same."""
        names = text.split(b"|")
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text.decode("ascii"))
        same = self._sets.setdefault(frozenset(names), len(self._sets))
        return self._numbers[text], same if len(set(names)) == len(names) else -1


@dataclass
class ScannedHands:
    """The checked hands between two headers, and the bytes they stand in."""

    match: LogMatch
    data: Array
    found: Found
    rejected: int = 0
    scores: int = 0

    @property
    def records(self) -> Array:
        return self.found.records

    def keep_records(self) -> None:
        """Let go of what only `expand` needs."""
        self.found = Found(self.records, *(np.empty(0, dtype=np.uint8) for _ in range(5)))


@dataclass
class Scanned:
    """What the lines of (a piece of) a file hold."""

    matches: list[ScannedHands] = field(default_factory=list)
    rejected: Array = field(default_factory=lambda: np.empty(0, dtype=REJECTED))
    lines: int = 0
    comments: int = 0
    scores: int = 0

    @property
    def hands(self) -> int:
        return sum(len(match.records) for match in self.matches)


_CARD_OF = card_codes()


@cache
def _deck_bits(game: Game) -> int:
    """A bit per card of the game."""
    return sum(1 << int(card) for card in game.deck)


_NO_RULES = np.zeros(RULES_SIZE, dtype=np.int64)


def scan_lines(
    data: Array, first_line: int, match: LogMatch, lineups: Lineups, resolve: Callable[[acpc.Header, Array], LogMatch]
) -> Scanned:
    """Check lines of one file (`data` is uint8), the first of them numbered `first_line` and governed by `match`.

    `resolve` says what a header and the lines after it mean.
    """
    lines = int(np.count_nonzero(data == NEWLINE)) + 1
    found = Scanned(rejected=np.empty(lines, dtype=REJECTED))
    counters = np.zeros(COUNTERS, dtype=np.int64)
    counters[C_LINE] = first_line
    counters[C_SET] = -1
    ring = np.zeros((RING, RING_BYTES), dtype=np.uint8)
    ring_info = np.full((RING, 3), -1, dtype=np.int64)
    work = scratch()
    slot = 0
    status = AT_HEADER
    while status != DONE:
        before = counters.copy()
        left = lines - (int(counters[C_LINE]) - first_line)
        room = len(data) - int(counters[C_AT]) + MOST_ACTIONS
        game = match.game
        players = game.players if game else 1
        room_for = Found(
            records=np.empty(left, dtype=HAND),
            holes=np.empty((left, players, 2), dtype=np.uint8),
            boards=np.empty((left, 5), dtype=np.uint8),
            paid=np.empty((left, players), dtype=np.float64),
            places=np.empty(room, dtype=np.uint8),
            totals=np.empty(room, dtype=np.int32),
        )
        counters[C_HANDS] = counters[C_ACTIONS] = 0
        while True:
            status = scan(
                data,
                game.rules if game else _NO_RULES,
                _deck_bits(game) if game else 0,
                match.seed,
                automaton(game),
                _CARD_OF,
                ranking(),
                ring,
                ring_info,
                counters,
                room_for,
                found.rejected,
                work,
            )
            if status != AT_LINEUP:
                break
            text = data[counters[C_NAMES] : counters[C_NAMES_END]].tobytes()
            ring[slot, : len(text)] = np.frombuffer(text, dtype=np.uint8)
            ring_info[slot] = len(text), *lineups.number(text)
            slot = (slot + 1) % RING
        count = int(counters[C_HANDS])
        hands = ScannedHands(
            match,
            data,
            room_for._replace(
                records=room_for.records[:count],
                holes=room_for.holes[:count],
                boards=room_for.boards[:count],
                paid=room_for.paid[:count],
            ),
            rejected=int(counters[C_REJECTED] - before[C_REJECTED]),
            scores=int(counters[C_SCORES] - before[C_SCORES]),
        )
        if count or hands.rejected or hands.scores or match.header:
            found.matches.append(hands)
        if status == AT_HEADER:
            at = int(counters[C_AT])
            line = data[at : at + acpc.MAX_LINE].tobytes().split(b"\n", 1)[0]
            read = acpc.parse_header(line.decode("ascii", "replace"))
            if read:
                match = resolve(read, data[at + len(line) :])
                counters[C_SET] = -1
            else:
                match = LogMatch(match.game, match.seed)
            counters[C_COMMENTS] += 1
            counters[C_LINE] += 1
            counters[C_AT] += len(line) + 1
    found.rejected = found.rejected[: counters[C_REJECTED]]
    found.lines = int(counters[C_LINE]) - first_line
    found.comments = int(counters[C_COMMENTS])
    found.scores = int(counters[C_SCORES])
    return found


def empty_hands(match: LogMatch) -> ScannedHands:
    """No hands of a match."""
    players = match.game.players if match.game else 1
    nothing = Found(
        records=np.empty(0, dtype=HAND),
        holes=np.empty((0, players, 2), dtype=np.uint8),
        boards=np.empty((0, 5), dtype=np.uint8),
        paid=np.empty((0, players), dtype=np.float64),
        places=np.empty(0, dtype=np.uint8),
        totals=np.empty(0, dtype=np.int32),
    )
    return ScannedHands(match, np.frombuffer(b"", dtype=np.uint8), nothing)


# Decisions


class Rows(NamedTuple):
    """Decisions; those of group g (4 * agent + street) lie between `bounds[g]` and `bounds[g + 1]`."""

    seen: Array
    """OBSERVATION"""
    taken: Array
    """TAKEN"""
    bounds: Array


@kernel(leaf=True)
def count_rows(records: Array, places: Array, agents: Array, counts: Array) -> None:
    """Add the decisions of each agent and street to `counts`; `agents[lineup, position]` is -1 if unwanted."""
    for i in range(records.shape[0]):
        lineup = records[i].lineup
        first = records[i].first
        for k in range(first, first + records[i].count):
            agent = agents[lineup, places[k] >> 4]
            if agent >= 0:
                counts[4 * agent + ((places[k] >> 2) & 3)] += 1


@kernel
def expand(
    rules: Array,
    found: Found,
    agents: Array,
    file: int,
    held_out: int,
    tables: Ranking,
    at: Array,
    seen: Array,
    taken: Array,
) -> None:
    """Write the decisions of checked hands to rows; `at` holds the next row of each group.

    `held_out` is 0 or 1 for a file on one side, -1 to go by the deal.
    """
    rows = np.zeros(MOST_ACTIONS, dtype=OBSERVATION)
    labels = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    moves = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    sizes = np.zeros(MOST_ACTIONS, dtype=np.int64)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    for i in range(found.records.shape[0]):
        hand = found.records[i]
        count = hand.count
        for k in range(count):
            moves[k] = found.places[hand.first + k] & 3
            sizes[k] = found.totals[hand.first + k] if rules[R_NOLIMIT] != 0 else 0
        replay(rules, moves, sizes, count, found.holes[i], found.boards[i], tables, state, rows, labels, 0)
        validation = is_validation(hand.deal) if held_out < 0 else held_out == 1
        for k in range(count):
            position = rows[k].position
            agent = agents[hand.lineup, position]
            if agent < 0:
                continue
            group = 4 * agent + rows[k].street
            n = at[group]
            at[group] = n + 1
            seen[n] = rows[k]
            row = taken[n]
            row.deal = hand.deal
            row.result = found.paid[i, position]
            row.line = hand.line
            row.hand = hand.number
            row.size = sizes[k]
            row.file = file
            row.lineup = hand.lineup
            row.k = k
            row.action = moves[k]
            row.label = labels[k]
            row.validation = validation


def expand_hands(pieces: list[tuple[ScannedHands, int, int]], agents: list[Array], count: int) -> Rows:
    """The decisions of scanned hands, each with its file's number and side; `agents[i]` belongs to piece i."""
    counts = np.zeros(4 * count, dtype=np.int64)
    for (hands, _, _), group in zip(pieces, agents, strict=True):
        count_rows(hands.records, hands.found.places, group, counts)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    rows = Rows(np.empty(bounds[-1], dtype=OBSERVATION), np.empty(bounds[-1], dtype=TAKEN), bounds)
    at = bounds[:-1].copy()
    for (hands, file, held_out), group in zip(pieces, agents, strict=True):
        assert hands.match.game
        expand(
            hands.match.game.rules,
            hands.found,
            group,
            file,
            held_out,
            ranking(),
            at,
            rows.seen,
            rows.taken,
        )
    return rows
