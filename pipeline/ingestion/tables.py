"""Decisions, hands and rejected lines as Arrow tables: where a stored column is written.

In go the hands of a part, with the rows of their decisions as they were played; out come tables with the columns that
`dataset.schema` describes, the same for all streets. Records become columns in one pass; texts are dictionary-encoded
straight from integer codes or taken from the log's own bytes, so no string is made per row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import (
    LETTERS_LIMIT,
    LETTERS_NOLIMIT,
    NO_AGGRESSOR,
    STREETS,
    betting_text,
    is_validation,
)
from pipeline.dataset.schema import CARD_TEXTS, CARDS
from pipeline.formats.acpc import REASONS
from pipeline.ingestion.hand_buffers import HandBuffer
from pipeline.ingestion.hands import FileHands, ScannedHands
from pipeline.ingestion.parquet import (
    arrow_table,
    coded,
    constant,
    dictionary,
    eights,
    nullable,
    number_column,
    repeated,
    spans_text,
)
from pipeline.ingestion.scan import RETURN
from pipeline.poker.cards import RANKS, class_text, name_text, pattern_text
from pipeline.poker.game import Game
from pipeline.poker.rules import R_RAISE, R_TRIMMED
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

KEPT_BYTES = 500
"""of a rejected line"""
_CARD_TEXTS = tuple(CARD_TEXTS)
_START_TEXTS = (*(class_text(i) for i in range(169)), "-")

# Where `spread` puts the fields. Coded columns hold numbers that each stand for a text
(B_POSITION, B_RAISES, B_LEGAL, B_PREVIOUS, B_HIGH, B_LOW, B_START, B_K, B_LABEL, B_VALIDATION, B_HOLE, B_BOARD) = (
    *range(11),
    12,
)
B_IN_HAND, B_TO_ACT, B_BEHIND, B_AGGRESSOR, B_PLAYERS = range(17, 22)
BYTES = 22
(I_TO_CALL, I_POT, I_STACK, I_LINE, I_HAND, I_FILE, I_EFFECTIVE, I_AMOUNT, I_BIG_BLIND) = range(9)
INTS = 9
(N_WORDS, N_RANKS, N_PATTERN, N_FLUSH, N_NAME, N_OPPONENTS, N_ACTION) = (0, *range(4, 10))
NUMBERS = 10
(F_BIG_BLINDS, F_TO_POT, F_FACED) = range(3)
FLOATS = 3


class Columns(NamedTuple):
    """Rows as columns: small numbers and codes, chips and places, numbers that stand for texts, ratios."""

    bytes: Array
    ints: Array
    numbers: Array
    floats: Array
    deals: Array
    results: Array


class RowOwners(NamedTuple):
    """Agents of a part by number, and which of them are held out."""

    agents: Array
    """(line-ups, positions): the agent's number, -1 if unwanted"""
    held_out: Array
    """(agents,) used where players are held out"""


@kernel(leaf=True)
def count_rows(buffer: HandBuffer, lineups: int, agents: Array, counts: Array) -> None:
    """Add the decisions of each street and agent to `counts` (streets, agents); `agents` as in `RowOwners`."""
    for i in range(buffer.records.shape[0]):
        hand = buffer.records[i]
        for k in range(hand.first, hand.first + hand.count):
            agent = agents[lineups + hand.lineup, buffer.places[k] >> 4]
            if agent >= 0:
                counts[(buffer.places[k] >> 2) & 3, agent] += 1


@kernel(leaf=True)
def fill_columns(
    buffer: HandBuffer,
    file: int,
    side: int,
    lineups: int,
    owners: RowOwners,
    street: int,
    players: int,
    nolimit: bool,
    next_row: Array,
    to: Columns,
) -> None:
    """Write the decisions of a street to columns, each agent's from `next_row` on, which is moved.

    File, side and number of the first line-up are those of `FileHands`. Missing cards and ranks get the next number.
    """
    bytes_, ints, numbers, floats = to.bytes, to.ints, to.numbers, to.floats
    for i in range(buffer.records.shape[0]):
        hand = buffer.records[i]
        by_deal = is_validation(hand.deal) if side == -1 else side == 1
        lineup = lineups + hand.lineup
        for k in range(hand.count):
            place = buffer.places[hand.first + k]
            agent = owners.agents[lineup, place >> 4]
            if (place >> 2) & 3 != street or agent < 0:
                continue
            n = next_row[agent]
            next_row[agent] = n + 1
            row = buffer.rows[hand.first + k]
            size = buffer.totals[hand.first + k]
            action = place & 3
            bytes_[B_POSITION, n] = row.position
            bytes_[B_RAISES, n] = row.raises
            bytes_[B_LEGAL, n] = row.legal
            bytes_[B_PREVIOUS, n] = row.previous
            bytes_[B_HIGH, n] = min(row.high, 13)
            bytes_[B_LOW, n] = min(row.low, 13)
            bytes_[B_START, n] = row.start
            bytes_[B_K, n] = k
            bytes_[B_LABEL, n] = buffer.labels[hand.first + k]
            bytes_[B_VALIDATION, n] = owners.held_out[agent] if side == -2 else by_deal
            for j in range(2):
                bytes_[B_HOLE + j, n] = min(row.hole[j], 52)
            ranks = 1
            for j in range(5):
                bytes_[B_BOARD + j, n] = min(row.board[j], 52)
                if row.ranks[j] < 13:
                    ranks = ranks * 13 + row.ranks[j]
            ints[I_STACK, n] = row.stack
            ints[I_TO_CALL, n] = row.to_call
            ints[I_POT, n] = row.pot
            ints[I_LINE, n] = hand.line
            ints[I_HAND, n] = hand.number
            ints[I_FILE, n] = file
            for j in range(4):
                numbers[N_WORDS + j, n] = row.betting_codes[j]
            numbers[N_RANKS, n] = ranks
            numbers[N_PATTERN, n] = row.pattern
            numbers[N_FLUSH, n] = row.flush
            numbers[N_NAME, n] = row.name
            bytes_[B_IN_HAND, n] = row.in_hand
            bytes_[B_TO_ACT, n] = row.to_act
            bytes_[B_BEHIND, n] = row.behind
            bytes_[B_AGGRESSOR, n] = row.aggressor
            bytes_[B_PLAYERS, n] = row.players
            pot, to_call, effective = int(row.pot), int(row.to_call), int(row.effective)
            if nolimit:
                floats[F_BIG_BLINDS, n] = effective / max(int(row.big_blind), 1)
                floats[F_TO_POT, n] = effective / max(pot, 1)
            floats[F_FACED, n] = to_call / max(pot - to_call, 1)
            ints[I_EFFECTIVE, n] = effective
            ints[I_AMOUNT, n] = size
            ints[I_BIG_BLIND, n] = row.big_blind
            numbers[N_OPPONENTS, n] = lineup * players + row.position
            numbers[N_ACTION, n] = size if size > 0 and nolimit else -1 - action
            to.deals[n] = hand.deal
            to.results[n] = buffer.paid[i, place >> 4]


def legal_text(bits: int, labels: str) -> str:
    """Return the letters of the labels whose bits are set."""
    return "".join(letter for i, letter in enumerate(labels) if bits >> i & 1)


@cache
def _ranks_text(code: int) -> str:
    """Return ranks from digits of base 13, with a 1 before them."""
    text = ""
    while code > 1:
        text = RANKS[code % 13] + text
        code //= 13
    return text or "-"


def _action_text(code: int) -> str:
    """Return an action as logs write it, from `N_ACTION`."""
    return f"r{code}" if code > 0 else "fcr"[-1 - code]


_reused = threading.local()


def _reused_matrix(name: str, columns: int, rows: int, dtype: Any) -> Array:
    """Return a matrix whose memory the thread uses again and again (fresh pages cost as much as filling them)."""
    matrix: Array | None = getattr(_reused, name, None)
    if matrix is None or matrix.size < columns * rows:
        matrix = np.empty(2 * columns * rows, dtype=dtype)  # what is never touched costs nothing
        setattr(_reused, name, matrix)
    return matrix[: columns * rows].reshape(columns, rows)


def decision_table(
    hands: Sequence[FileHands],
    owners: RowOwners,
    agents: dict[str, int],
    sizes: Array,
    game: Game,
    street: int,
    files: Sequence[str],
    lineups: Sequence[Sequence[str]],
    strength: bool = False,
) -> Any:
    """Return the decisions of one game and street as an Arrow table, sorted by agent and in the order of the hands.

    `agents` says how many rows each agent has in the table, `sizes` the same by number; `lineups` are names in position
    order. The table is good until the same thread makes its next.
    """
    count = int(sizes.sum())
    (deals,), (results,) = _reused_matrix("deals", 1, count, np.uint64), _reused_matrix("results", 1, count, np.float64)
    bytes_ = _reused_matrix("bytes", BYTES, count, np.uint8)
    ints = _reused_matrix("ints", INTS, count, np.int32)
    numbers = _reused_matrix("numbers", NUMBERS, count, np.int64)
    floats = _reused_matrix("floats", FLOATS, count, np.float32)
    codes = _reused_matrix("codes", NUMBERS, count, np.int32)
    target = Columns(bytes_, ints, numbers, floats, deals, results)
    next_row = np.cumsum(sizes) - sizes
    for piece in hands:
        fill_columns(
            piece.hands.buffer,
            piece.file,
            piece.side,
            piece.lineups,
            owners,
            street,
            game.players,
            game.nolimit,
            next_row,
            target,
        )
    labels = game.labels

    def opponents(code: int) -> str:
        names, position = lineups[code // game.players], code % game.players
        return "|".join((*names[position + 1 :], *names[:position]))

    columns: dict[str, Any] = {
        "agent": dictionary(repeated(agents.values()), list(agents)),
        "file": dictionary(ints[I_FILE], files),
        "line": ints[I_LINE],
        "hand": ints[I_HAND],
        "k": bytes_[B_K],
        "game": constant(count, game.name),
        "opponents": coded(numbers[N_OPPONENTS], opponents, codes[N_OPPONENTS]),
        "position": bytes_[B_POSITION],
        "deal": deals,
    }
    for i, name in enumerate(STREETS):
        columns[name] = (
            coded(numbers[N_WORDS + i], lambda word: betting_text(word, game.nolimit), codes[N_WORDS + i])
            if i <= street
            else constant(count, "-")
        )
    columns |= {
        "raises": bytes_[B_RAISES],
        "to_call": ints[I_TO_CALL],
        "pot": ints[I_POT],
        "stack": nullable(ints[I_STACK], ints[I_STACK] > 0 if game.nolimit else True),
        "legal": dictionary(bytes_[B_LEGAL], tuple(legal_text(bits, labels) for bits in range(1 << len(labels)))),
        "previous": dictionary(bytes_[B_PREVIOUS], tuple(LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT)),
    }
    columns |= _card_columns(bytes_, numbers, codes, game, street)
    columns |= _situation_columns(bytes_, ints, floats, game)
    columns |= {
        "action": coded(numbers[N_ACTION], _action_text, codes[N_ACTION]),
        "label": dictionary(bytes_[B_LABEL], tuple(labels)),
        "amount": nullable(ints[I_AMOUNT], ints[I_AMOUNT] > 0),
        "result": nullable(results, ~np.isnan(results)),
        "known": bytes_[B_HOLE] < 52,
        "validation": bytes_[B_VALIDATION].view(np.bool_),
    }
    if strength:
        columns |= _strength_columns(bytes_[B_HOLE : B_HOLE + 7], street if game.is_holdem else 0)
    return arrow_table(columns, _NULLABLE)


_NULLABLE = {"aggressor", "stack", "effective_stack", "effective_stack_bb", "stack_to_pot", "amount", "result"} | {
    f"{street}_{part}" for street in STREETS[1:] for part in (*(STRENGTH.names or ()), "ochs")
}


def _card_columns(bytes_: Array, numbers: Array, codes: Array, game: Game, street: int) -> dict[str, Any]:
    """Return the columns of cards, in words and as dealt."""
    ranks = (*RANKS, "-")
    columns = {
        "high": dictionary(bytes_[B_HIGH], ranks),
        "low": dictionary(bytes_[B_LOW], ranks),
        "start": dictionary(bytes_[B_START], _START_TEXTS if game.hole_cards == 2 else ranks),
        "ranks": coded(numbers[N_RANKS], _ranks_text, codes[N_RANKS]),
        "pattern": coded(numbers[N_PATTERN], pattern_text, codes[N_PATTERN]),
        "flush": coded(numbers[N_FLUSH], pattern_text, codes[N_FLUSH]),
        "name": coded(numbers[N_NAME], name_text, codes[N_NAME]),
    }
    for i in range(7):
        dealt = i < 2 or i - 2 < game.visible(street)
        columns[CARDS[i]] = (
            dictionary(bytes_[B_HOLE + i], _CARD_TEXTS) if dealt else constant(bytes_.shape[1], "-", np.uint8)
        )
    return columns


def _situation_columns(bytes_: Array, ints: Array, floats: Array, game: Game) -> dict[str, Any]:
    """Return the columns of players left and of what they play for."""
    effective = ints[I_EFFECTIVE]
    has_stacks = effective > 0 if game.nolimit else False
    return {
        "players": bytes_[B_PLAYERS],
        "big_blind": ints[I_BIG_BLIND],
        "in_hand": bytes_[B_IN_HAND],
        "to_act": bytes_[B_TO_ACT],
        "relative_position": bytes_[B_BEHIND],
        "aggressor": nullable(bytes_[B_AGGRESSOR], bytes_[B_AGGRESSOR] != NO_AGGRESSOR),
        "effective_stack": nullable(effective, has_stacks),
        "effective_stack_bb": nullable(floats[F_BIG_BLINDS], has_stacks),
        "stack_to_pot": nullable(floats[F_TO_POT], has_stacks),
        "faced": floats[F_FACED],
    }


def _strength_columns(cards: Array, street: int) -> dict[str, Any]:
    """Return the strength of each row's hole cards on the streets after the first, null after this one.

    `cards` is (7, rows).
    """
    import pyarrow as pa

    from pipeline.poker.strength.hand_clusters import ochs

    columns: dict[str, Any] = {}
    count = cards.shape[1]
    known = cards[0] < 52
    if not known.all():
        return _strength_where(cards, street, known)
    hole, board = np.ascontiguousarray(cards[:2].T), np.ascontiguousarray(cards[2:].T)
    for i in range(1, 4):
        strengths = find_strengths(i, hole, board) if i <= street else None
        for part in ("ihs", "ehs", "ehs2"):
            columns[f"{STREETS[i]}_{part}"] = (
                pa.nulls(count, pa.uint16()) if strengths is None else np.ascontiguousarray(strengths[part])
            )
        columns[f"{STREETS[i]}_q"] = pa.nulls(count, pa.binary(8)) if strengths is None else eights(strengths["q"])
    columns["river_ochs"] = pa.nulls(count, pa.binary(8)) if street < 3 else eights(ochs(hole, board))
    return columns


def _strength_where(cards: Array, street: int, has_cards: Array) -> dict[str, Any]:
    """Return `_strength_columns` of rows whose own cards are not all known: null where they are not."""
    import pyarrow as pa

    strengths = _strength_columns(np.ascontiguousarray(cards[:, has_cards]), street)
    places = np.where(has_cards, np.cumsum(has_cards) - 1, -1).tolist()
    order = pa.array([place if place >= 0 else None for place in places], pa.int64())
    arrays = {
        name: number_column(column) if isinstance(column, np.ndarray) else column for name, column in strengths.items()
    }
    return {name: column.take(order) for name, column in arrays.items()}


# Hands and rejected lines


@kernel
def _hands_held_out(deals: Array, sides: Array) -> Array:
    """Return whether each hand is held out: as its file is, or by its deal (side -1)."""
    out = np.empty(deals.shape[0], dtype=np.bool_)
    for i in range(deals.shape[0]):
        out[i] = is_validation(deals[i]) if sides[i] == -1 else sides[i] == 1
    return out


def hand_table(pieces: Sequence[FileHands], files: Sequence[str], lineups: Sequence[str]) -> Any:
    """Return hands as an Arrow table."""
    all_hands = [piece.hands for piece in pieces]

    def column(of: Callable[[ScannedHands, int, int, int], Array], dtype: Any) -> Array:
        parts = [np.asarray(of(*piece), dtype=dtype) for piece in pieces]
        return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)

    def field(name: str, dtype: Any) -> Array:
        return column(lambda hands, file, side, base: hands.records[name], dtype)

    games = list(dict.fromkeys(hands.match.game.name for hands in all_hands if hands.match.game))
    deal = field("deal", np.uint64)
    side = column(lambda hands, file, side, base: np.full(len(hands.records), side), np.int8)
    return arrow_table(
        {
            "file": dictionary(
                column(lambda hands, file, side, base: np.full(len(hands.records), file), np.int32), files
            ),
            "line": field("line", np.int32),
            "hand": field("number", np.int32),
            "game": dictionary(
                column(
                    lambda hands, file, side, base: np.full(
                        len(hands.records), games.index(hands.match.game.name if hands.match.game else "")
                    ),
                    np.int32,
                ),
                games,
            ),
            "names": coded(
                column(lambda hands, file, side, base: hands.records["lineup"] + base, np.int64), lambda i: lineups[i]
            ),
            "betting": spans_text([(hands.data, hands.records["betting"]) for hands in all_hands]),
            "cards": spans_text([(hands.data, hands.records["cards"]) for hands in all_hands]),
            "payoffs": spans_text([(hands.data, hands.records["payoffs"]) for hands in all_hands]),
            "deal": deal,
            "actions": field("count", np.int32),
            "showdown": field("showdown", np.bool_),
            "expected": field("expected", np.bool_),
            "validation": _hands_held_out(deal, side),
            **_history_columns(all_hands),
        }
    )


def _acpc_columns(pieces: Sequence[ScannedHands]) -> dict[str, Any]:
    """Return the columns of `_history_columns` for ACPC hands alone: constants, made without looking at each hand."""
    count = sum(len(hands.records) for hands in pieces)
    blinds = [np.full(len(h.records), h.match.game.big_blind if h.match.game else 1, np.int32) for h in pieces]
    return {
        "big_blind": np.concatenate([np.empty(0, np.int32), *blinds]),
        **{name: constant(count, "-") for name in ("stakes", "stacks", "blinds", "antes")},
        "decimals": np.zeros(count, np.uint8),
        **{name: constant(count, "") for name in ("venue", "table", "number")},
        "rake": np.zeros(count, np.int32),
        "partial": np.zeros(count, np.bool_),
        "flagged": np.zeros(count, np.bool_),
        "shown": np.zeros(count, np.uint16),
    }


def _history_columns(pieces: Sequence[ScannedHands]) -> dict[str, Any]:
    """Return the columns that hand histories add; `-`, nothing, 0 and false in the rows of ACPC hands."""
    if all(hands.facts is None for hands in pieces):
        return _acpc_columns(pieces)

    def fact(of: Callable[[Any], Array], dtype: Any) -> Array:
        parts = [
            np.zeros(len(hands.records), dtype=dtype) if hands.facts is None else np.asarray(of(hands.facts), dtype)
            for hands in pieces
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)

    def texts(which: int, label: bool) -> Any:
        """Return a text of each history: venue, table or number (a label), or stacks, blinds or antes."""
        none = b"" if label else b"-"
        spans = []
        for hands in pieces:
            if hands.facts is None:
                spans.append((np.frombuffer(none, np.uint8), np.tile([0, len(none)], (len(hands.records), 1))))
            elif label:
                spans.append((hands.facts.text, hands.facts.labels[:, which]))
            else:
                spans.append((hands.data, hands.facts.spans[:, 3 + which]))
        return spans_text(spans).dictionary_encode()

    blinds = [np.full(len(h.records), h.match.game.big_blind if h.match.game else 1, np.int32) for h in pieces]
    for i, hands in enumerate(pieces):
        if hands.facts is not None:
            blinds[i] = hands.facts.rules[:, R_RAISE].astype(np.int32)
    stakes = [text for hands in pieces for text in _stakes(hands)]
    words = {text: i for i, text in enumerate(dict.fromkeys(stakes))}
    columns: dict[str, Any] = {
        "big_blind": np.concatenate([np.empty(0, np.int32), *blinds]),
        "stakes": dictionary(np.array([words[text] for text in stakes], dtype=np.int32), list(words)),
    }
    for i, name in enumerate(("stacks", "blinds", "antes")):
        columns[name] = texts(i, label=False)
    columns["decimals"] = fact(lambda facts: np.full(len(facts.rake), facts.decimals), np.uint8)
    for i, name in enumerate(("venue", "table", "number")):
        columns[name] = texts(i, label=True)
    return columns | {
        "rake": fact(lambda facts: facts.rake, np.int32),
        "partial": fact(lambda facts: facts.partial, np.bool_),
        "flagged": fact(lambda facts: facts.flagged, np.bool_),
        "shown": fact(lambda facts: facts.shown, np.uint16),
    }


def _stakes(hands: ScannedHands) -> list[str]:
    """Return the variant and bets of each hand of a history, `-` for ACPC hands."""
    if hands.facts is None:
        return ["-"] * len(hands.records)
    nolimit = hands.match.game is None or hands.match.game.nolimit
    bets = hands.facts.rules[:, [R_RAISE, R_RAISE + 2, R_TRIMMED]].tolist()
    return [
        f"{f'NT {small}' if nolimit else f'FT {small} {big}'}{' trimmed' if trimmed else ''}"
        for small, big, trimmed in bets
    ]


def rejected_table(pieces: Sequence[tuple[int, Array, Array, Sequence[str]]], files: Sequence[str]) -> Any:
    """Return rejected lines as an Arrow table.

    Each piece has its file's number, its bytes, scan.REJECTED records and the reasons that their codes stand for.
    """
    words = {reason: i for i, reason in enumerate(REASONS)}
    codes = []
    for _, _, bad, reasons in pieces:
        numbers = [words.setdefault(reason, len(words)) for reason in reasons]
        codes.append(np.array(numbers, dtype=np.int32)[bad["code"]])
    spans = []
    for _, data, bad, _ in pieces:
        ends = np.minimum(bad["end"], bad["begin"] + KEPT_BYTES)
        ends -= (ends > bad["begin"]) & (data[np.maximum(ends, 1) - 1] == RETURN)
        spans.append((data, np.stack([bad["begin"], ends], axis=1)))
    places = [np.full(len(bad), file, dtype=np.int32) for file, _, bad, _ in pieces]
    hand = np.concatenate([np.empty(0, np.int32), *(bad["hand"] for _, _, bad, _ in pieces)])
    return arrow_table(
        {
            "file": dictionary(np.concatenate([np.empty(0, np.int32), *places]), files),
            "line": np.concatenate([np.empty(0, np.int32), *(bad["line"] for _, _, bad, _ in pieces)]),
            "hand": nullable(hand, hand >= 0),
            "number": spans_text([(data, bad["number"]) for _, data, bad, _ in pieces]),
            "text": spans_text(spans),
            "reason": dictionary(np.concatenate([np.empty(0, np.int32), *codes]), tuple(words)),
        },
        nullable=("hand",),
    )
