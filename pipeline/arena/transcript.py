"""Write the files of a match: logs as the ACPC dealer writes them, and the true probabilities.

Played blocks go in, in order. A duplicate match `x` is one log per seating, x.0.log, x.1.log ...: the header's four
lines, a STATE line per hand with cards, payoffs and names in position order, and a SCORE line in seat order. Payoffs
are written as the dealer does: at most six decimals, no zeros at the end. x.probs.parquet has a row per decision: the
log's base name, the hand, k (the number of the action in its hand) and a column per label.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from pipeline.arena.duplicate import seating_logs
from pipeline.arena.lockstep import HandBlock, HandsInPlay
from pipeline.arena.wire.dealer import MatchPlan, header_lines
from pipeline.formats.acpc import Score
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    R_BOARD,
    R_HOLE,
    R_NOLIMIT,
    R_PLAYERS,
    RAISE,
    S_ACTIONS,
    S_ROUND,
    STATE_SIZE,
    apply,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.files import replacing
from pipeline.runtime.kernels import kernel

RANKS = np.frombuffer(b"23456789TJQKA", np.uint8)
SUITS = np.frombuffer(b"cdhs", np.uint8)
# as numbers, because kernels write bytes
STATE_WORD = tuple(b"STATE:")
LETTERS = tuple(b"fcr")
COLON, BAR, SLASH, MINUS, POINT, ZERO, NEWLINE = b":|/-.0\n"


class Letters(NamedTuple):
    """Bytes of the cards' ranks and suits and of the agents' names."""

    ranks: Array
    suits: Array
    names: Array
    """(agents, longest name)"""
    lengths: Array
    """of each agent's name"""


@kernel
def _write_number(out: Array, place: int, number: int, least: int) -> int:
    """Write a number that is not negative with at least `least` digits; return the place after it."""
    digits = 1
    power = 10
    while number >= power or digits < least:
        digits += 1
        power *= 10
    for i in range(digits - 1, -1, -1):
        out[place + i] = ZERO + number % 10
        number //= 10
    return place + digits


@kernel
def _write_chips(out: Array, place: int, value: float) -> int:
    """Write chips with up to six decimals; return the place after them."""
    millionths = int(abs(value) * 1000000.0 + 0.5)
    if value < 0 and millionths > 0:
        out[place] = MINUS
        place += 1
    place = _write_number(out, place, millionths // 1000000, 1)
    part = millionths % 1000000
    if part > 0:
        out[place] = POINT
        place = _write_number(out, place + 1, part, 6)
        while out[place - 1] == ZERO:
            place -= 1
    return place


@kernel
def _write_card(out: Array, place: int, card: int, letters: Letters) -> int:
    """Write a card; return the place after it."""
    out[place] = letters.ranks[card >> 2]
    out[place + 1] = letters.suits[card & 3]
    return place + 2


@kernel
def _write_lines(
    rules: Array,
    hands: HandsInPlay,
    order: Array,
    first: int,
    seating: int,
    letters: Letters,
    out: Array,
) -> int:
    """Write the STATE lines of one seating; return how many bytes."""
    players = rules[R_PLAYERS]
    seatings = order.shape[0]
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    place = 0
    for i in range(seating, hands.states.shape[0], seatings):
        hand = first + i // seatings
        for letter in STATE_WORD:
            out[place] = letter
            place += 1
        place = _write_number(out, place, hand, 1)
        out[place] = COLON
        place += 1
        start(rules, state)
        for k in range(hands.states[i, S_ACTIONS]):
            action = min(hands.labels[i, k] - 1, RAISE)
            street = state[S_ROUND]
            out[place] = LETTERS[action]
            place += 1
            if action == RAISE and rules[R_NOLIMIT] != 0:
                place = _write_number(out, place, hands.sizes[i, k], 1)
            apply(rules, state, action, hands.sizes[i, k])
            for _ in range(state[S_ROUND] - street):
                out[place] = SLASH
                place += 1
        for p in range(players):
            out[place] = COLON if p == 0 else BAR
            place += 1
            for c in range(rules[R_HOLE]):
                place = _write_card(out, place, hands.hole[i, p, c], letters)
        dealt = 0
        for r in range(hands.states[i, S_ROUND] + 1):
            if r > 0:
                out[place] = SLASH
                place += 1
            for _ in range(rules[R_BOARD + r]):
                place = _write_card(out, place, hands.board[i, dealt], letters)
                dealt += 1
        for p in range(players):
            out[place] = COLON if p == 0 else BAR
            place = _write_chips(out, place + 1, hands.payoffs[i, p])
        for p in range(players):
            out[place] = COLON if p == 0 else BAR
            place += 1
            agent = order[seating, (p + hand) % players]
            for c in range(letters.lengths[agent]):
                out[place] = letters.names[agent, c]
                place += 1
        out[place] = NEWLINE
        place += 1
    return place


class RenderedBlock(NamedTuple):
    """Bytes and rows of a block, ready to be written."""

    lines: list[bytes]
    """of each seating"""
    totals: Array
    """(seatings, agents): net chips"""
    answers: Any
    """the Arrow table of the probabilities, None where not kept"""


class Transcript:
    """The files of one match, which take their names when the block of the `with` ends well."""

    def __init__(
        self,
        log: Path,
        game: Game,
        names: tuple[str, ...],
        order: Array,
        deals: int,
        seed: int,
        probabilities: Path | bool,
    ) -> None:
        self.game, self.names = game, names
        self.logs = seating_logs(log, len(order))
        default = log.with_name(f"{log.name.removesuffix('.log')}.probs.parquet") if probabilities else None
        self.probabilities = probabilities if isinstance(probabilities, Path) else default
        self._order = order
        self._headers = [header_lines(MatchPlan(game, names, deals, seed, title=path.stem)) for path in self.logs]
        self._totals = np.zeros(order.shape)
        written = [name.encode() for name in names]
        lengths = np.array([len(name) for name in written])
        self._letters = Letters(RANKS, SUITS, np.zeros((len(names), max(lengths)), np.uint8), lengths)
        for row, name in zip(self._letters.names, written, strict=True):
            row[: len(name)] = np.frombuffer(name, np.uint8)
        self._stack = ExitStack()

    def __enter__(self) -> Transcript:
        with ExitStack() as stack:
            opened = [stack.enter_context(replacing(path)) for path in self.logs]
            self._files = [stack.enter_context(path.open("wb")) for path in opened]
            for file, header in zip(self._files, self._headers, strict=True):
                file.write(header.encode())
            self._writer = None
            if self.probabilities:
                from pyarrow.parquet import ParquetWriter

                part = stack.enter_context(replacing(self.probabilities))
                file = stack.enter_context(part.open("wb"))  # by a path Arrow would refuse names that are not UTF-8
                self._writer = stack.enter_context(ParquetWriter(file, self._schema()))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for seats, totals, file in zip(self._order.tolist(), self._totals, self._files, strict=True):
                chips = tuple(round(float(totals[agent]), 6) for agent in seats)
                file.write(f"{Score(chips, tuple(self.names[agent] for agent in seats))}\n".encode())
        self._stack.__exit__(kind, value, trace)

    def render(self, block: HandBlock) -> RenderedBlock:
        """Return the bytes and rows of a block; may be called from any thread."""
        actions = int(block.hands.states[:, S_ACTIONS].max())
        names = int(self._letters.lengths.sum())
        room = 60 + actions * (12 if self.game.nolimit else 1) + 50 * self.game.players + names
        out = np.empty(room * (len(block) // len(self._order)), np.uint8)
        lines = []
        for seating in range(len(self._order)):
            size = _write_lines(self.game.rules, block.hands, self._order, block.first, seating, self._letters, out)
            lines.append(out[:size].tobytes())
        return RenderedBlock(lines, block.by_agent().sum(axis=0), self._table(block) if self.probabilities else None)

    def write(self, rendered: RenderedBlock) -> None:
        """Append a rendered block; blocks must come in order."""
        for file, text in zip(self._files, rendered.lines, strict=True):
            file.write(text)
        self._totals += rendered.totals
        if self._writer is not None:
            self._writer.write_table(rendered.answers)

    def _schema(self) -> Any:
        import pyarrow as pa

        labels = [(label, pa.float32()) for label in self.game.labels]
        return pa.schema([("file", pa.string()), ("hand", pa.int32()), ("k", pa.int16()), *labels])

    def _table(self, block: HandBlock) -> Any:
        """Return the Arrow table of a block's answers, by log, hand and action."""
        import pyarrow as pa

        seatings = len(self._order)
        index, action, played = (np.concatenate(parts) for parts in zip(*block.answers, strict=True))
        order = np.lexsort((action, index // seatings, index % seatings))
        index, action, played = index[order], action[order], played[order].astype(np.float32)
        files = pa.array([path.name for path in self.logs]).take(pa.array(index % seatings))
        columns = [files, (block.first + index // seatings).astype(np.int32), action.astype(np.int16), *played.T]
        return pa.table([pa.array(column) for column in columns], schema=self._schema())
