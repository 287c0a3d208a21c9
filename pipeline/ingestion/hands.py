"""Checked hands of log lines, and their decisions as rows.

`scan_lines` drives the byte kernel over the lines of one file and collects the hands of each match; `expand` replays
them into rows, those of each (game, street, agent) together and in the order of the lines. Nothing here knows of files
or Parquet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.dataset.decisions import MOST_ACTIONS, OBSERVATION, is_validation, observe_actions
from pipeline.formats import acpc
from pipeline.ingestion.grammar import NEWLINE, card_codes
from pipeline.ingestion.hand_buffers import (
    ANY_NAMES,
    C_ACTIONS,
    C_AT,
    C_COMMENTS,
    C_HANDS,
    C_LINE,
    C_NAMES,
    C_REJECTED,
    C_SCORES,
    COUNTERS,
    NO_NAMES_YET,
    HandBuffer,
    KernelContext,
    LineScratch,
    Lineups,
    hand_buffer,
    scratch,
)
from pipeline.ingestion.limit_automaton import automaton
from pipeline.ingestion.scan import DONE, FULL, REJECTED, scan
from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import R_NOLIMIT, RULES_SIZE, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

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


Resolve: TypeAlias = Callable[[acpc.Header, Array], LogMatch]
"""what a header and the bytes after it mean"""


@dataclass
class ScannedHands:
    """The checked hands of a match, and the bytes they stand in."""

    match: LogMatch
    data: Array
    found: HandBuffer
    rejected: int = 0
    scores: int = 0
    facts: Any = None
    """`histories.HistoryFacts` of hands of histories, which have rules of their own"""

    @property
    def rules(self) -> Array:
        """(1 or hands, RULES_SIZE): the game's rules, or those of each hand."""
        assert self.match.game
        return self.match.game.rules[None] if self.facts is None else np.asarray(self.facts.rules)

    @property
    def records(self) -> Array:
        return self.found.records

    def keep_records(self) -> None:
        """Let go of what only `expand` needs."""
        self.found = HandBuffer(self.records, *(np.empty(0, dtype=np.uint8) for _ in range(5)))


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
_NO_RULES = np.zeros(RULES_SIZE, dtype=np.int64)


@cache
def _deck_bits(game: Game) -> int:
    """A bit per card of the game."""
    return sum(1 << int(card) for card in game.deck)


def _governing(match: LogMatch) -> KernelContext:
    """A match's game and seed as the kernel takes them."""
    game = match.game
    return KernelContext(
        rules=game.rules if game else _NO_RULES,
        deck=_deck_bits(game) if game else 0,
        seed=match.seed,
        betting=automaton(game),
        card_of=_CARD_OF,
        tables=ranking(),
    )


class _Scan:
    """A scan over the lines of one piece of a log."""

    def __init__(self, data: Array, first_line: int, lineups: Lineups, work: LineScratch | None) -> None:
        self.data = data
        self.lineups = lineups
        self.work = work or scratch()
        self.lines = int(np.count_nonzero(data == NEWLINE)) + 1
        self.first_line = first_line
        self.found = Scanned(rejected=np.empty(self.lines, dtype=REJECTED))
        self.counters = np.zeros(COUNTERS, dtype=np.int64)
        self.counters[C_LINE] = first_line
        self.room = hand_buffer(0, 0, 0)

    def run(self, match: LogMatch, names: int, resolve: Resolve) -> Scanned:
        """Scan everything; `match` and `names` govern the first line."""
        counters, found = self.counters, self.found
        counters[C_NAMES] = names
        header: acpc.Header | None = None
        while self._match(match) != DONE:
            at = int(counters[C_AT])
            line = self.data[at : at + acpc.MAX_LINE + 1].tobytes().partition(b"\n")[0]
            header = acpc.parse_header(line.decode("ascii", "replace"))
            if header:
                match = resolve(header, self.data[at + len(line) + 1 :])
                counters[C_NAMES] = NO_NAMES_YET
            counters[C_COMMENTS] += 1
            counters[C_LINE] += 1
            counters[C_AT] += len(line) + 1
        found.rejected = found.rejected[: counters[C_REJECTED]]
        found.lines = int(counters[C_LINE]) - self.first_line
        found.comments = int(counters[C_COMMENTS])
        found.scores = int(counters[C_SCORES])
        return found

    def _match(self, match: LogMatch) -> int:
        """Scan up to the next header (or what looks like one); why it stopped. Matches share the room for hands."""
        counters = self.counters
        before = counters.copy()
        players = match.game.players if match.game else 1
        if self.room.holes.shape[1] != players:
            left = self.lines - (int(counters[C_LINE]) - self.first_line)
            self.room = hand_buffer(left, players, len(self.data) - int(counters[C_AT]) + MOST_ACTIONS)
            counters[C_HANDS] = counters[C_ACTIONS] = before[C_HANDS] = 0
        governing = _governing(match)
        while True:
            status = int(
                scan(self.data, governing, self.lineups.table, counters, self.room, self.found.rejected, self.work)
            )
            if status != FULL:
                break
            self.lineups.grow()
        part = slice(int(before[C_HANDS]), int(counters[C_HANDS]))
        room = self.room
        hands = ScannedHands(
            match,
            self.data,
            HandBuffer(
                room.records[part], room.holes[part], room.boards[part], room.paid[part], room.places, room.totals
            ),
            rejected=int(counters[C_REJECTED] - before[C_REJECTED]),
            scores=int(counters[C_SCORES] - before[C_SCORES]),
        )
        if len(hands.records) or hands.rejected or hands.scores or match.header:
            self.found.matches.append(hands)
        return status


def scan_lines(
    data: Array,
    first_line: int,
    match: LogMatch,
    lineups: Lineups,
    resolve: Resolve,
    *,
    names: int = ANY_NAMES,
    work: LineScratch | None = None,
) -> Scanned:
    """Check lines of one file.

    Parameters
    ----------
    data: their bytes (uint8).
    first_line: the number of the first of them in the file.
    match: what governs that line.
    lineups: the line-ups known so far; new ones are added.
    resolve: what a header and the bytes after it mean.
    names: the names of the match so far (see `governing.LogContext`).
    work: working arrays of this thread.
    """
    return _Scan(data, first_line, lineups, work).run(match, names, resolve)


def empty_hands(match: LogMatch) -> ScannedHands:
    """No hands of a match."""
    players = match.game.players if match.game else 1
    return ScannedHands(match, np.frombuffer(b"", dtype=np.uint8), hand_buffer(0, players, 0))


# Decisions


@kernel(leaf=True)
def count_rows(records: Array, places: Array, agents: Array, counts: Array) -> None:
    """Add the decisions of each street and agent to `counts` (streets, agents).

    `agents[lineup, position]` is the agent's number, -1 if unwanted.
    """
    for i in range(records.shape[0]):
        lineup = records[i].lineup
        first = records[i].first
        for k in range(first, first + records[i].count):
            agent = agents[lineup, places[k] >> 4]
            if agent >= 0:
                counts[(places[k] >> 2) & 3, agent] += 1


class Destination(NamedTuple):
    """Where the decisions of some hands go, and what their rows say beside the hand."""

    seen: Array
    """OBSERVATION"""
    taken: Array
    """TAKEN"""
    at: Array
    """(streets, agents): the next row of each"""
    agents: Array
    """(line-ups, positions): agents' numbers, -1 if unwanted"""
    base: int
    """added to a line-up's number"""
    held: Array
    """(agents,) which are held out where players are"""


@kernel
def expand(every: Array, found: HandBuffer, file: int, held_out: int, tables: Ranking, to: Destination) -> None:
    """Write the decisions of checked hands to rows.

    `every` are the rules of each hand, or of all of them in one row; `held_out` is 0 or 1 for a file on one side, -1 to
    go by the deal, -2 by the player.
    """
    rows = np.zeros(MOST_ACTIONS, dtype=OBSERVATION)
    labels = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    moves = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    sizes = np.zeros(MOST_ACTIONS, dtype=np.int64)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    for i in range(found.records.shape[0]):
        hand = found.records[i]
        count = hand.count
        rules = every[min(i, every.shape[0] - 1)]
        for k in range(count):
            moves[k] = found.places[hand.first + k] & 3
            sizes[k] = found.totals[hand.first + k] if rules[R_NOLIMIT] != 0 else 0
        observe_actions(rules, moves, sizes, count, found.holes[i], found.boards[i], tables, state, rows, labels)
        validation = is_validation(hand.deal) if held_out == -1 else held_out == 1
        for k in range(count):
            position = rows[k].position
            agent = to.agents[hand.lineup, position]
            if agent < 0:
                continue
            n = to.at[rows[k].street, agent]
            to.at[rows[k].street, agent] = n + 1
            to.seen[n] = rows[k]
            row = to.taken[n]
            row.deal = hand.deal
            row.result = found.paid[i, position]
            row.line = hand.line
            row.hand = hand.number
            row.size = sizes[k]
            row.file = file
            row.lineup = to.base + hand.lineup
            row.k = k
            row.action = moves[k]
            row.label = labels[k]
            row.validation = to.held[agent] if held_out == -2 else validation


def expand_hands(hands: ScannedHands, file: int, held_out: int, to: Destination) -> None:
    """Write the decisions of scanned hands of a file to rows (see `expand`)."""
    assert hands.match.game
    expand(hands.rules, hands.found, file, held_out, ranking(), to)
