"""What a match leaves on disk: logs as the ACPC dealer writes them, and the true probabilities beside them.

A duplicate match `x` is one log per seating, x.0.log, x.1.log ...: the header's four lines, a STATE line per hand with
cards, payoffs and names in position order, and a SCORE line in seat order. Payoffs are written as the dealer
does: at most six decimals, no zeros at the end. x.probs.parquet has a row per decision: the log's base name, the
hand, k (the number of the action in its hand) and a column per label.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.arena.lockstep import Block
from pipeline.files import replacing
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.rules import R_BOARD, R_HOLE, R_NOLIMIT, R_PLAYERS, RAISE, S_ACTIONS, S_ROUND, STATE_SIZE, apply, start

__all__ = ["Pages", "Transcript"]

Array = npt.NDArray[Any]

HEADER = "# name/game/hands/seed {} {}.game {} {}\n#--t_response 600000\n#--t_hand 600000\n#--t_per_hand 7000\n"
RANK_BYTES = np.frombuffer(b"23456789TJQKA", np.uint8)
SUIT_BYTES = np.frombuffer(b"cdhs", np.uint8)


@kernel
def _digits(out: Array, at: int, number: int, least: int) -> int:
    """Write a number that is not negative with at least `least` digits; returns the place after it."""
    digits = 1
    power = 10
    while number >= power or digits < least:
        digits += 1
        power *= 10
    for i in range(digits - 1, -1, -1):
        out[at + i] = 48 + number % 10
        number //= 10
    return at + digits


@kernel
def _chips(out: Array, at: int, value: float) -> int:
    """Write chips with up to six decimals."""
    millionths = int(abs(value) * 1000000.0 + 0.5)
    if value < 0 and millionths > 0:
        out[at] = 45
        at += 1
    at = _digits(out, at, millionths // 1000000, 1)
    part = millionths % 1000000
    if part > 0:
        out[at] = 46
        at = _digits(out, at + 1, part, 6)
        while out[at - 1] == 48:
            at -= 1
    return at


@kernel
def _card(out: Array, at: int, card: int, rank_bytes: Array, suit_bytes: Array) -> int:
    out[at] = rank_bytes[card >> 2]
    out[at + 1] = suit_bytes[card & 3]
    return at + 2


@kernel
def _lines(
    rules: Array,
    first: int,
    seating: int,
    states: Array,
    labels: Array,
    sizes: Array,
    hole: Array,
    board: Array,
    payoffs: Array,
    names: Array,
    lengths: Array,
    rank_bytes: Array,
    suit_bytes: Array,
    out: Array,
) -> int:
    """Write the STATE lines of one seating; returns how many bytes."""
    players = rules[R_PLAYERS]
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    at = 0
    for i in range(seating, states.shape[0], players):
        hand = first + i // players
        for letter in (83, 84, 65, 84, 69, 58):
            out[at] = letter
            at += 1
        at = _digits(out, at, hand, 1)
        out[at] = 58
        at += 1
        start(rules, state)
        for k in range(states[i, S_ACTIONS]):
            action = min(labels[i, k] - 1, RAISE)
            street = state[S_ROUND]
            out[at] = 102 if action == 0 else 99 if action == 1 else 114
            at += 1
            if action == RAISE and rules[R_NOLIMIT] != 0:
                at = _digits(out, at, sizes[i, k], 1)
            apply(rules, state, action, sizes[i, k])
            for _ in range(state[S_ROUND] - street):
                out[at] = 47
                at += 1
        for p in range(players):
            out[at] = 58 if p == 0 else 124
            at += 1
            for c in range(rules[R_HOLE]):
                at = _card(out, at, hole[i, p, c], rank_bytes, suit_bytes)
        shown = 0
        for r in range(states[i, S_ROUND] + 1):
            if r > 0:
                out[at] = 47
                at += 1
            for _ in range(rules[R_BOARD + r]):
                at = _card(out, at, board[i, shown], rank_bytes, suit_bytes)
                shown += 1
        for p in range(players):
            out[at] = 58 if p == 0 else 124
            at = _chips(out, at + 1, payoffs[i, p])
        for p in range(players):
            out[at] = 58 if p == 0 else 124
            at += 1
            agent = (p + hand + seating) % players
            for c in range(lengths[agent]):
                out[at] = names[agent, c]
                at += 1
        out[at] = 10
        at += 1
    return at


def _value(chips: float) -> str:
    """Chips as the dealer writes them."""
    out = np.zeros(40, np.uint8)
    return out[: _chips(out, 0, float(chips))].tobytes().decode()


class Pages(NamedTuple):
    """A block of hands ready to be written."""

    lines: list[bytes]
    """of each seating"""
    totals: Array
    """(seatings, agents): net chips"""
    asked: Any
    """the Arrow table of the probabilities, None where not kept"""


class Transcript:
    """The files of one match, which take their names when the block of the `with` ends well."""

    def __init__(
        self, log: Path, game: Game, names: tuple[str, ...], deals: int, seed: int, probabilities: bool
    ) -> None:
        base = log.name.removesuffix(".log")
        self.game, self.names, self.probabilities = game, names, probabilities
        self.logs = tuple(log.with_name(f"{base}.{seating}.log") for seating in range(game.players))
        self.asked = log.with_name(f"{base}.probs.parquet")
        self._headers = [HEADER.format(path.stem, game.name, deals, seed) for path in self.logs]
        self._totals = np.zeros((game.players, game.players))
        self._lengths = np.array([len(name) for name in names])
        self._names = np.zeros((len(names), max(self._lengths)), np.uint8)
        for row, name in zip(self._names, names, strict=True):
            row[: len(name)] = np.frombuffer(name.encode(), np.uint8)
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

                part = stack.enter_context(replacing(self.asked))
                self._writer = stack.enter_context(ParquetWriter(part, self._schema()))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            players = self.game.players
            for seating, file in enumerate(self._files):
                seats = [(seat + seating) % players for seat in range(players)]
                totals = "|".join(_value(self._totals[seating, agent]) for agent in seats)
                file.write(f"SCORE:{totals}:{'|'.join(self.names[agent] for agent in seats)}\n".encode())
        self._stack.__exit__(kind, value, trace)

    def render(self, block: Block) -> Pages:
        """The bytes and rows of a block; may be called from any thread."""
        players = self.game.players
        actions = int(block.states[:, S_ACTIONS].max())
        room = 60 + actions * (12 if self.game.nolimit else 1) + 50 * players + int(self._lengths.sum())
        out = np.empty(room * (len(block.keys) // players), np.uint8)
        lines = []
        for seating in range(players):
            size = _lines(
                self.game.rules,
                block.first,
                seating,
                block.states,
                block.labels,
                block.sizes,
                block.hole,
                block.board,
                block.payoffs,
                self._names,
                self._lengths,
                RANK_BYTES,
                SUIT_BYTES,
                out,
            )
            lines.append(out[:size].tobytes())
        return Pages(lines, block.by_agent().sum(axis=0), self._table(block) if self.probabilities else None)

    def write(self, pages: Pages) -> None:
        """Append a rendered block; blocks must come in order."""
        for file, text in zip(self._files, pages.lines, strict=True):
            file.write(text)
        self._totals += pages.totals
        if self._writer is not None:
            self._writer.write_table(pages.asked)

    def _schema(self) -> Any:
        import pyarrow as pa

        labels = [(label, pa.float32()) for label in self.game.labels]
        return pa.schema([("file", pa.string()), ("hand", pa.int32()), ("k", pa.int16()), *labels])

    def _table(self, block: Block) -> Any:
        """The answers of a block by log, hand and action."""
        import pyarrow as pa

        players = self.game.players
        index, action, played = (np.concatenate(parts) for parts in zip(*block.asked, strict=True))
        order = np.lexsort((action, index // players, index % players))
        index, action, played = index[order], action[order], played[order].astype(np.float32)
        files = pa.array([path.name for path in self.logs]).take(pa.array(index % players))
        columns = [files, (block.first + index // players).astype(np.int32), action.astype(np.int16), *played.T]
        return pa.table([pa.array(column) for column in columns], schema=self._schema())
