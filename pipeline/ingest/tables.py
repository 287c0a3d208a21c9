"""Decision rows, hands and rejected lines as Arrow tables, and their Parquet files.

Records become columns in one pass; texts are dictionary-encoded straight from integer codes, so no string is made per
row. The columns are those that `dataset` describes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.acpc import REASONS
from pipeline.cards import RANKS, class_text, name_text, pattern_text
from pipeline.dataset import CARD_TEXTS, CARDS, SCHEMA_VERSION
from pipeline.decisions import LETTERS_LIMIT, LETTERS_NOLIMIT, STREETS, word_text
from pipeline.game import Game
from pipeline.ingest.grammar import RETURN
from pipeline.ingest.hands import ScannedHands
from pipeline.kernels import kernel
from pipeline.strength import STRENGTH, lookup

__all__ = ["decision_table", "hand_table", "legal_text", "rejected_table", "write"]

Array = npt.NDArray[Any]

_CARD_TEXTS = tuple(CARD_TEXTS)
_START_TEXTS = tuple(class_text(i) for i in range(169))
SHOWN = 500
"""bytes of a rejected line that are kept"""


# Rows to columns

# Where `spread` puts the fields. Coded columns hold numbers that each stand for a text
(B_POSITION, B_RAISES, B_LEGAL, B_PREVIOUS, B_HIGH, B_LOW, B_START, B_K, B_LABEL, B_VALIDATION, B_HOLE, B_BOARD) = (
    *range(11),
    12,
)
BYTES = 17
(I_TO_CALL, I_POT, I_STACK, I_LINE, I_HAND, I_FILE) = range(6)
INTS = 6
(N_WORDS, N_RANKS, N_PATTERN, N_FLUSH, N_NAME, N_OPPONENTS, N_ACTION) = (0, *range(4, 10))
NUMBERS = 10


@kernel(leaf=True)
def spread(
    seen: Array,
    taken: Array,
    players: int,
    base: int,
    bytes_: Array,
    ints: Array,
    numbers: Array,
    deals: Array,
    results: Array,
    at: int,
) -> None:
    """Write records to columns, from row `at` of these on; cards and ranks that are not there get the next number."""
    for i in range(seen.shape[0]):
        row = seen[i]
        other = taken[i]
        n = at + i
        bytes_[B_POSITION, n] = row.position
        bytes_[B_RAISES, n] = row.raises
        bytes_[B_LEGAL, n] = row.legal
        bytes_[B_PREVIOUS, n] = row.previous
        bytes_[B_HIGH, n] = row.high
        bytes_[B_LOW, n] = min(row.low, 13)
        bytes_[B_START, n] = row.start
        bytes_[B_K, n] = other.k
        bytes_[B_LABEL, n] = other.label
        bytes_[B_VALIDATION, n] = other.validation
        for j in range(2):
            bytes_[B_HOLE + j, n] = min(row.hole[j], 52)
        ranks = 1
        for j in range(5):
            bytes_[B_BOARD + j, n] = min(row.board[j], 52)
            if row.ranks[j] < 13:
                ranks = ranks * 13 + row.ranks[j]
        ints[I_TO_CALL, n] = row.to_call
        ints[I_POT, n] = row.pot
        ints[I_STACK, n] = row.stack
        ints[I_LINE, n] = other.line
        ints[I_HAND, n] = other.hand
        ints[I_FILE, n] = other.file
        for j in range(4):
            numbers[N_WORDS + j, n] = row.betting_codes[j]
        numbers[N_RANKS, n] = ranks
        numbers[N_PATTERN, n] = row.pattern
        numbers[N_FLUSH, n] = row.flush
        numbers[N_NAME, n] = row.name
        numbers[N_OPPONENTS, n] = (base + other.lineup) * players + row.position
        numbers[N_ACTION, n] = other.size if other.size > 0 else -1 - other.action
        deals[n] = other.deal
        results[n] = other.result


@kernel(leaf=True)
def _code(values: Array, keys: Array, numbers: Array, codes: Array, distinct: Array) -> int:
    """Number values as they first appear; -1 when there are too many of them for the hash table `keys`."""
    mask = keys.shape[0] - 1
    count = 0
    for i in range(values.shape[0]):
        value = values[i]
        slot = (value * -7046029254386353131) >> 32 & mask
        while numbers[slot] >= 0 and keys[slot] != value:
            slot = (slot + 1) & mask
        if numbers[slot] < 0:
            if 2 * count > mask:
                return -1
            keys[slot] = value
            numbers[slot] = count
            distinct[count] = value
            count += 1
        codes[i] = numbers[slot]
    return count


def _coded(values: Array, text: Callable[[int], str]) -> Any:
    """A column of texts from numbers that each stand for one."""
    slots = 1 << 10
    codes = np.empty(len(values), dtype=np.int32)
    while True:
        distinct = np.empty(slots, dtype=np.int64)
        keys, numbers = np.empty(slots, dtype=np.int64), np.full(slots, -1, dtype=np.int32)
        count = _code(values, keys, numbers, codes, distinct)
        if count >= 0:
            break
        slots *= 16
    texts = [text(value) for value in distinct[:count].tolist()]
    once = list(dict.fromkeys(texts))
    if len(once) < len(texts):
        codes = np.array([once.index(word) for word in texts], dtype=np.int32)[codes]
    return _dictionary(codes, once)


def _array(values: Array) -> Any:
    """A column of numbers or truth values on the memory of `values` (pyarrow's own `array` imports pandas: 0.4 s)."""
    import pyarrow as pa

    if values.dtype == np.bool_:
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, packed])
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


@cache
def _fixed(texts: tuple[str, ...]) -> Any:
    """A column of texts that many tables share."""
    return _strings(texts)


def _strings(texts: Sequence[str]) -> Any:
    """A column of texts."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def _dictionary(codes: Array, texts: Sequence[str]) -> Any:
    """A column of texts from codes."""
    import pyarrow as pa

    words = _fixed(texts) if isinstance(texts, tuple) else _strings(texts)
    return pa.DictionaryArray.from_arrays(_array(codes), words)


def _constant(count: int, text: str) -> Any:
    return _dictionary(np.zeros(count, dtype=np.int8), (text,))


def legal_text(bits: int, labels: str) -> str:
    """The letters of the labels whose bits are set."""
    return "".join(letter for i, letter in enumerate(labels) if bits >> i & 1)


@cache
def _ranks_text(code: int) -> str:
    """Ranks from digits of base 13, with a 1 before them."""
    text = ""
    while code > 1:
        text = RANKS[code % 13] + text
        code //= 13
    return text or "-"


def _action_text(code: int) -> str:
    return f"r{code}" if code > 0 else "fcr"[-1 - code]


_kept = threading.local()


def _room(name: str, columns: int, rows: int, dtype: Any) -> Array:
    """A matrix whose memory the thread uses again and again (fresh pages cost as much as filling them)."""
    kept: Array | None = getattr(_kept, name, None)
    if kept is None or kept.size < columns * rows:
        kept = np.empty(columns * (rows + rows // 4), dtype=dtype)
        setattr(_kept, name, kept)
    return kept[: columns * rows].reshape(columns, rows)


def decision_table(
    pieces: Sequence[tuple[Array, Array, int]],
    game: Game,
    street: int,
    files: Sequence[str],
    opponents: Array,
    strength: bool = False,
) -> Any:
    """Decision rows of one agent and street as an Arrow table.

    `pieces` are OBSERVATION and hands.TAKEN rows and the number of their line-up 0; `opponents` are texts by line-up
    and position. The table is good until the same thread makes its next.
    """
    count = sum(len(seen) for seen, _, _ in pieces)
    bytes_ = _room("bytes", BYTES, count, np.uint8)
    ints = _room("ints", INTS, count, np.int32)
    numbers = _room("numbers", NUMBERS, count, np.int64)
    (deals,), (results,) = _room("deals", 1, count, np.uint64), _room("results", 1, count, np.float64)
    at = 0
    for seen, taken, base in pieces:
        spread(seen, taken, game.players, base, bytes_, ints, numbers, deals, results, at)
        at += len(seen)
    labels = game.labels
    letters = tuple(LETTERS_NOLIMIT if game.nolimit else LETTERS_LIMIT)
    ranks = (*RANKS, "-")
    starts = _START_TEXTS if game.hole_cards == 2 else ranks
    legal = tuple(legal_text(bits, labels) for bits in range(1 << len(labels)))
    columns: dict[str, Any] = {
        "file": _dictionary(ints[I_FILE], files),
        "line": ints[I_LINE],
        "hand": ints[I_HAND],
        "k": bytes_[B_K],
        "game": _constant(count, game.name),
        "opponents": _coded(numbers[N_OPPONENTS], lambda code: str(opponents.flat[code])),
        "position": bytes_[B_POSITION],
        "deal": deals,
    }
    for i, name in enumerate(STREETS):
        columns[name] = (
            _coded(numbers[N_WORDS + i], lambda word: word_text(word, game.nolimit))
            if i <= street
            else _constant(count, "-")
        )
    columns |= {
        "raises": bytes_[B_RAISES],
        "to_call": ints[I_TO_CALL],
        "pot": ints[I_POT],
        "stack": ints[I_STACK],
        "legal": _dictionary(bytes_[B_LEGAL], legal),
        "previous": _dictionary(bytes_[B_PREVIOUS], letters),
        "high": _dictionary(bytes_[B_HIGH], ranks),
        "low": _dictionary(bytes_[B_LOW], ranks),
        "start": _dictionary(bytes_[B_START], starts),
        "ranks": _coded(numbers[N_RANKS], _ranks_text),
        "pattern": _coded(numbers[N_PATTERN], pattern_text),
        "flush": _coded(numbers[N_FLUSH], pattern_text),
        "name": _coded(numbers[N_NAME], name_text),
    }
    for i in range(7):
        dealt = i < 2 or i - 2 < game.visible(street)
        columns[CARDS[i]] = _dictionary(bytes_[B_HOLE + i], _CARD_TEXTS) if dealt else _constant(count, "-")
    columns |= {
        "action": _coded(numbers[N_ACTION], _action_text),
        "label": _dictionary(bytes_[B_LABEL], tuple(labels)),
        "result": results,
        "validation": bytes_[B_VALIDATION].view(np.bool_),
    }
    if strength and game.is_holdem:
        columns |= _strength_columns(bytes_[B_HOLE : B_HOLE + 7], street)
    return _table(columns)


def _strength_columns(cards: Array, street: int) -> dict[str, Any]:
    """The strength of each row's holding on the streets from the flop up to this one; `cards` is (7, rows)."""
    from pipeline.clusters import ochs

    columns: dict[str, Any] = {}
    hole, board = np.ascontiguousarray(cards[:2].T), np.ascontiguousarray(cards[2:].T)
    for i in range(1, street + 1):
        found = lookup(i, hole, board)
        for part in ("ihs", "ehs", "ehs2"):
            columns[f"{STREETS[i]}_{part}"] = np.ascontiguousarray(found[part])
        columns[f"{STREETS[i]}_q"] = _eights(found["q"])
    if street == 3:
        columns["river_ochs"] = _eights(ochs(hole, board))
    return columns


def _eights(rows: Array) -> Any:
    """A column of eight bytes a row."""
    import pyarrow as pa

    packed = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(rows), [None, packed])


def _table(columns: dict[str, Any]) -> Any:
    """A table without nulls."""
    import pyarrow as pa

    arrays = [_array(column) if isinstance(column, np.ndarray) else column for column in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


# Hands


@kernel(leaf=True)
def _gather(data: Array, spans: Array, ends: Array, at: int, out: Array) -> None:
    """Copy pieces of `data` one after the other, the first to `at`, and note where each ends."""
    for i in range(spans.shape[0]):
        for j in range(spans[i, 0], spans[i, 1]):
            out[at] = data[j]
            at += 1
        ends[i] = at


def _texts(pieces: Sequence[tuple[Array, Array]]) -> Any:
    """Spans (begin and end) of some bytes as a column of texts."""
    import pyarrow as pa

    total = sum(int((spans[:, 1] - spans[:, 0]).sum()) for _, spans in pieces)
    offsets = np.zeros(sum(len(spans) for _, spans in pieces) + 1, dtype=np.int32)
    text = np.empty(total, dtype=np.uint8)
    row = 0
    for data, spans in pieces:
        _gather(data, np.ascontiguousarray(spans), offsets[row + 1 :], int(offsets[row]), text)
        row += len(spans)
    if text.size and text.max() > 127:
        whole = text.tobytes()
        cuts = offsets.tolist()
        return _strings([whole[i:j].decode("utf-8", "replace") for i, j in pairwise(cuts)])
    return pa.StringArray.from_buffers(row, pa.py_buffer(offsets), pa.py_buffer(text))


def hand_table(
    pieces: Sequence[tuple[ScannedHands, int, int, int]], files: Sequence[str], lineups: Sequence[str]
) -> Any:
    """Hands as an Arrow table; each piece has its file's number, side (see `expand`) and its line-up 0's number."""
    all_hands = [hands for hands, _, _, _ in pieces]

    def column(of: Callable[[ScannedHands, int, int, int], Array], dtype: Any) -> Array:
        found = [np.asarray(of(*piece), dtype=dtype) for piece in pieces]
        return np.concatenate(found) if found else np.empty(0, dtype=dtype)

    def field(name: str, dtype: Any) -> Array:
        return column(lambda hands, file, side, base: hands.records[name], dtype)

    games = list(dict.fromkeys(hands.match.game.name for hands in all_hands if hands.match.game))
    deal = field("deal", np.uint64)
    side = column(lambda hands, file, side, base: np.full(len(hands.records), side), np.int8)
    return _table(
        {
            "file": _dictionary(
                column(lambda hands, file, side, base: np.full(len(hands.records), file), np.int32), files
            ),
            "line": field("line", np.int32),
            "hand": field("number", np.int32),
            "game": _dictionary(
                column(
                    lambda hands, file, side, base: np.full(
                        len(hands.records), games.index(hands.match.game.name if hands.match.game else "")
                    ),
                    np.int32,
                ),
                games,
            ),
            "names": _coded(
                column(lambda hands, file, side, base: hands.records["lineup"] + base, np.int64), lambda i: lineups[i]
            ),
            "betting": _texts([(hands.data, hands.records["betting"]) for hands in all_hands]),
            "cards": _texts([(hands.data, hands.records["cards"]) for hands in all_hands]),
            "payoffs": _texts([(hands.data, hands.records["payoffs"]) for hands in all_hands]),
            "deal": deal,
            "actions": field("count", np.int32),
            "showdown": field("showdown", np.bool_),
            "expected": field("expected", np.bool_),
            "validation": np.where(side < 0, deal % np.uint64(10) == 0, side == 1),
        }
    )


def rejected_table(pieces: Sequence[tuple[int, Array, Array]], files: Sequence[str]) -> Any:
    """Rejected lines as an Arrow table; each piece has its file's number, its bytes and scan.REJECTED records."""
    codes = [bad["code"] for _, _, bad in pieces]
    spans = []
    for _, data, bad in pieces:
        ends = np.minimum(bad["end"], bad["begin"] + SHOWN)
        ends -= (ends > bad["begin"]) & (data[np.maximum(ends, 1) - 1] == RETURN)
        spans.append((data, np.stack([bad["begin"], ends], axis=1)))
    numbers = [np.full(len(bad), file, dtype=np.int32) for file, _, bad in pieces]
    return _table(
        {
            "file": _dictionary(np.concatenate([np.empty(0, np.int32), *numbers]), files),
            "line": np.concatenate([np.empty(0, np.int32), *(bad["line"] for _, _, bad in pieces)]),
            "text": _texts(spans),
            "reason": _dictionary(np.concatenate([np.empty(0, np.int32), *codes]), REASONS),
        }
    )


_STEPS = ("line", "hand", "k", "position", "raises", "to_call", "stack", "actions")
"""columns kept as differences from row to row"""
_MANY = (
    "deal",
    "cards",
    "text",
    *(f"{street}_{part}" for street in STREETS for part in (*(STRENGTH.names or ()), "ochs")),
)
"""columns of too many values for a dictionary"""


def write(table: Any, path: Path, about: dict[str, Any]) -> None:
    """Write a table as one Parquet file; `about` goes into its metadata."""
    import pyarrow.parquet as pq

    note = json.dumps({"schema": SCHEMA_VERSION, **about}, sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        table.replace_schema_metadata({"pipeline": note}),
        path,
        compression={name: "none" if name == "deal" else "lz4" for name in table.column_names},
        use_dictionary=[name for name in table.column_names if name not in _STEPS and name not in _MANY],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in table.column_names if name in _STEPS},
        write_statistics=False,
    )
