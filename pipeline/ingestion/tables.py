"""Decisions, hands and rejected lines as Arrow tables: where a stored column is written.

In go the hands of a part, with the rows of their decisions as they were played; out come tables with the columns that
`dataset.schema` describes, the same for all streets. Records become columns in one pass; texts are dictionary-encoded
straight from integer codes or taken from the log's own bytes, so no string is made per row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import (
    LETTERS_LIMIT,
    LETTERS_NOLIMIT,
    NO_AGGRESSOR,
    STREETS,
    betting_text,
    is_validation,
)
from pipeline.dataset.schema import CARD_TEXTS, CARDS
from pipeline.dataset.split import BY_DEAL, BY_PLAYER
from pipeline.formats.acpc import REASONS
from pipeline.formats.ascii import RETURN
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
from pipeline.ingestion.scan import REJECTED
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


class Columns(NamedTuple):
    """Decisions as columns, an array each: Arrow takes their memory as it is. Coded ones hold numbers of texts."""

    position: NDArray[np.uint8]
    raises: NDArray[np.uint8]
    legal: NDArray[np.uint8]
    previous: NDArray[np.uint8]
    high: NDArray[np.uint8]
    low: NDArray[np.uint8]
    start: NDArray[np.uint8]
    k: NDArray[np.uint8]
    label: NDArray[np.uint8]
    validation: NDArray[np.uint8]
    players: NDArray[np.uint8]
    in_hand: NDArray[np.uint8]
    to_act: NDArray[np.uint8]
    behind: NDArray[np.uint8]
    aggressor: NDArray[np.uint8]
    cards: NDArray[np.uint8]
    """(7, rows): hole cards and board"""
    to_call: NDArray[np.int32]
    pot: NDArray[np.int32]
    stack: NDArray[np.int32]
    line: NDArray[np.int32]
    hand: NDArray[np.int32]
    file: NDArray[np.int32]
    effective: NDArray[np.int32]
    amount: NDArray[np.int32]
    big_blind: NDArray[np.int32]
    betting: NDArray[np.int64]
    """(4, rows): the betting code of each street"""
    ranks: NDArray[np.int64]
    """digits of base 13 with a 1 before them"""
    pattern: NDArray[np.int64]
    flush: NDArray[np.int64]
    name: NDArray[np.int64]
    opponents: NDArray[np.int64]
    """line-up * players + position"""
    action: NDArray[np.int64]
    """the total that a no-limit raise goes to, -1 - action for any other"""
    effective_bb: NDArray[np.float32]
    stack_to_pot: NDArray[np.float32]
    faced: NDArray[np.float32]
    deal: NDArray[np.uint64]
    result: NDArray[np.float64]


_ROWS = {"cards": 7, "betting": 4}
"""columns of `Columns` that are several"""


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
    for i in range(buffer.records.shape[0]):
        hand = buffer.records[i]
        by_deal = is_validation(hand.deal) if side == BY_DEAL else side == 1
        lineup = lineups + hand.lineup
        for k in range(hand.count):
            place = buffer.places[hand.first + k]
            agent = owners.agents[lineup, place >> 4]
            if (place >> 2) & 3 != street or agent < 0:
                continue
            # a counting sort: the agents' rows have been counted, so each row goes straight to its place
            n = next_row[agent]
            next_row[agent] = n + 1
            row = buffer.rows[hand.first + k]
            size = buffer.totals[hand.first + k]
            action = place & 3
            to.position[n] = row.position
            to.raises[n] = row.raises
            to.legal[n] = row.legal
            to.previous[n] = row.previous
            to.high[n] = min(row.high, 13)
            to.low[n] = min(row.low, 13)
            to.start[n] = row.start
            to.k[n] = k
            to.label[n] = buffer.labels[hand.first + k]
            to.validation[n] = owners.held_out[agent] if side == BY_PLAYER else by_deal
            for j in range(2):
                to.cards[j, n] = min(row.hole[j], 52)
            ranks = 1  # before the digits, so that leading deuces count
            for j in range(5):
                to.cards[2 + j, n] = min(row.board[j], 52)
                if row.ranks[j] < 13:
                    ranks = ranks * 13 + row.ranks[j]
            to.stack[n] = row.stack
            to.to_call[n] = row.to_call
            to.pot[n] = row.pot
            to.line[n] = hand.line
            to.hand[n] = hand.number
            to.file[n] = file
            for j in range(4):
                to.betting[j, n] = row.betting_codes[j]
            to.ranks[n] = ranks
            to.pattern[n] = row.pattern
            to.flush[n] = row.flush
            to.name[n] = row.name
            to.in_hand[n] = row.in_hand
            to.to_act[n] = row.to_act
            to.behind[n] = row.behind
            to.aggressor[n] = row.aggressor
            to.players[n] = row.players
            pot, to_call, effective = int(row.pot), int(row.to_call), int(row.effective)
            if nolimit:
                to.effective_bb[n] = effective / max(int(row.big_blind), 1)
                to.stack_to_pot[n] = effective / max(pot, 1)
            to.faced[n] = to_call / max(pot - to_call, 1)
            to.effective[n] = effective
            to.amount[n] = size
            to.big_blind[n] = row.big_blind
            to.opponents[n] = lineup * players + row.position
            to.action[n] = size if size > 0 and nolimit else -1 - action
            to.deal[n] = hand.deal
            to.result[n] = buffer.paid[i, place >> 4]


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
    """Return an action as logs write it, from `Columns.action`."""
    return f"r{code}" if code > 0 else "fcr"[-1 - code]


_memory = threading.local()


def _reused(name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array whose memory the thread uses again and again (fresh pages cost as much as filling them)."""
    size = prod(shape)
    array: Array | None = getattr(_memory, name, None)
    if array is None or array.size < size:
        array = np.empty(2 * size, dtype=dtype)  # what is never touched costs nothing
        setattr(_memory, name, array)
    return array[:size].reshape(shape)


@cache
def _column_types() -> dict[str, Any]:
    """Return the number type of each of `Columns`, from its annotation."""
    return {name: get_args(get_args(hint)[1])[0] for name, hint in get_type_hints(Columns).items()}


def _reused_columns(count: int) -> Columns:
    """Return columns of so many rows on the thread's memory."""
    return Columns(
        **{
            name: _reused(name, (_ROWS[name], count) if name in _ROWS else (count,), dtype)
            for name, dtype in _column_types().items()
        }
    )


def _coded(name: str, values: Array, text: Callable[[int], str]) -> Any:
    """Return a column of texts from the numbers that stand for them, on the thread's memory."""
    return coded(values, text, _reused(f"codes of {name}", values.shape, np.int32))


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
    to = _reused_columns(count)
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
            to,
        )
    labels = game.labels

    def opponents(code: int) -> str:
        names, position = lineups[code // game.players], code % game.players
        return "|".join((*names[position + 1 :], *names[:position]))

    columns: dict[str, Any] = {
        "agent": dictionary(repeated(agents.values()), list(agents)),
        "file": dictionary(to.file, files),
        "line": to.line,
        "hand": to.hand,
        "k": to.k,
        "game": constant(count, game.name),
        "opponents": _coded("opponents", to.opponents, opponents),
        "position": to.position,
        "deal": to.deal,
    }
    for i, name in enumerate(STREETS):
        columns[name] = (
            _coded(name, to.betting[i], lambda code: betting_text(code, game.nolimit))
            if i <= street
            else constant(count, "-")
        )
    columns |= {
        "raises": to.raises,
        "to_call": to.to_call,
        "pot": to.pot,
        "stack": nullable(to.stack, to.stack > 0 if game.nolimit else True),
        "legal": dictionary(to.legal, tuple(legal_text(bits, labels) for bits in range(1 << len(labels)))),
        "previous": dictionary(to.previous, tuple(LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT)),
    }
    columns |= _card_columns(to, game, street)
    columns |= _situation_columns(to, game)
    columns |= {
        "action": _coded("action", to.action, _action_text),
        "label": dictionary(to.label, tuple(labels)),
        "amount": nullable(to.amount, to.amount > 0),
        "result": nullable(to.result, ~np.isnan(to.result)),
        "known": to.cards[0] < 52,
        "validation": to.validation.view(np.bool_),
    }
    if strength:
        columns |= _strength_columns(to.cards, street if game.is_holdem else 0)
    return arrow_table(columns, _NULLABLE)


_NULLABLE = {"aggressor", "stack", "effective_stack", "effective_stack_bb", "stack_to_pot", "amount", "result"} | {
    f"{street}_{part}" for street in STREETS[1:] for part in (*(STRENGTH.names or ()), "ochs")
}


def _card_columns(to: Columns, game: Game, street: int) -> dict[str, Any]:
    """Return the columns of cards, in words and as dealt."""
    ranks = (*RANKS, "-")
    columns = {
        "high": dictionary(to.high, ranks),
        "low": dictionary(to.low, ranks),
        "start": dictionary(to.start, _START_TEXTS if game.hole_cards == 2 else ranks),
        "ranks": _coded("ranks", to.ranks, _ranks_text),
        "pattern": _coded("pattern", to.pattern, pattern_text),
        "flush": _coded("flush", to.flush, pattern_text),
        "name": _coded("name", to.name, name_text),
    }
    for i, cards in enumerate(to.cards):
        dealt = i < 2 or i - 2 < game.visible(street)
        columns[CARDS[i]] = dictionary(cards, _CARD_TEXTS) if dealt else constant(len(cards), "-", np.uint8)
    return columns


def _situation_columns(to: Columns, game: Game) -> dict[str, Any]:
    """Return the columns of players left and of what they play for."""
    has_stacks = to.effective > 0 if game.nolimit else False
    return {
        "players": to.players,
        "big_blind": to.big_blind,
        "in_hand": to.in_hand,
        "to_act": to.to_act,
        "relative_position": to.behind,
        "aggressor": nullable(to.aggressor, to.aggressor != NO_AGGRESSOR),
        "effective_stack": nullable(to.effective, has_stacks),
        "effective_stack_bb": nullable(to.effective_bb, has_stacks),
        "stack_to_pot": nullable(to.stack_to_pot, has_stacks),
        "faced": to.faced,
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


@kernel(leaf=True)
def _fill_held_out(deals: Array, sides: Array, out: Array) -> None:
    """Fill in whether each hand is held out: as its file is, or by its deal."""
    for i in range(deals.shape[0]):
        out[i] = is_validation(deals[i]) if sides[i] == BY_DEAL else sides[i] == 1


def hand_table(pieces: Sequence[FileHands], files: Sequence[str], lineups: Sequence[str]) -> Any:
    """Return hands as an Arrow table."""
    all_hands = [piece.hands for piece in pieces]

    def field(name: str, dtype: Any) -> Array:
        return np.concatenate([np.empty(0, dtype), *(hands.records[name].astype(dtype) for hands in all_hands)])

    games = list(dict.fromkeys(hands.match.game.name for hands in all_hands if hands.match.game))
    numbers = [games.index(hands.match.game.name) for hands in all_hands if hands.match.game]
    deal = field("deal", np.uint64)
    held_out = np.empty(len(deal), dtype=np.bool_)
    _fill_held_out(deal, _per_hand(all_hands, [piece.side for piece in pieces], np.int8), held_out)
    lineup = field("lineup", np.int64) + _per_hand(all_hands, [piece.lineups for piece in pieces], np.int64)
    return arrow_table(
        {
            "file": dictionary(_per_hand(all_hands, [piece.file for piece in pieces], np.int32), files),
            "line": field("line", np.int32),
            "hand": field("number", np.int32),
            "game": dictionary(_per_hand(all_hands, numbers, np.int32), games),
            "names": coded(lineup, lambda i: lineups[i]),
            **{
                name: spans_text([(hands.data, hands.records[name]) for hands in all_hands])
                for name in ("betting", "cards", "payoffs")
            },
            "deal": deal,
            "actions": field("count", np.int32),
            "showdown": field("showdown", np.bool_),
            "expected": field("expected", np.bool_),
            "validation": held_out,
            **_history_columns(all_hands),
        }
    )


def _per_hand(pieces: Sequence[ScannedHands], values: Sequence[int], dtype: Any) -> Array:
    """Return a value of each piece once for every hand in it."""
    return np.repeat(np.array(values, dtype), np.array([len(hands.records) for hands in pieces], np.int64))


def _big_blinds(pieces: Sequence[ScannedHands]) -> Array:
    """Return the big blind of each hand: its game's, or a history's own."""
    blinds = [
        np.full(len(hands.records), hands.match.game.big_blind if hands.match.game else 1, np.int32)
        if hands.facts is None
        else hands.facts.rules[:, R_RAISE].astype(np.int32)
        for hands in pieces
    ]
    return np.concatenate([np.empty(0, np.int32), *blinds])


def _acpc_columns(pieces: Sequence[ScannedHands]) -> dict[str, Any]:
    """Return the columns of `_history_columns` for ACPC hands alone: constants, made without looking at each hand."""
    count = sum(len(hands.records) for hands in pieces)
    return {
        "big_blind": _big_blinds(pieces),
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
        return np.concatenate(parts)

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

    stakes = [text for hands in pieces for text in _stakes(hands)]
    words = {text: i for i, text in enumerate(dict.fromkeys(stakes))}
    columns: dict[str, Any] = {
        "big_blind": _big_blinds(pieces),
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
    counts = np.array([len(bad) for _, _, bad, _ in pieces], np.int64)
    places = np.repeat(np.array([file for file, *_ in pieces], np.int32), counts)
    records = np.concatenate([np.empty(0, REJECTED), *(bad for _, _, bad, _ in pieces)])
    hand = np.ascontiguousarray(records["hand"])
    return arrow_table(
        {
            "file": dictionary(places, files),
            "line": np.ascontiguousarray(records["line"]),
            "hand": nullable(hand, hand >= 0),
            "number": spans_text([(data, bad["number"]) for _, data, bad, _ in pieces]),
            "text": spans_text(spans),
            "reason": dictionary(np.concatenate([np.empty(0, np.int32), *codes]), tuple(words)),
        },
        nullable=("hand",),
    )
