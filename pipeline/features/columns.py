"""The columns that patterns name: each is an integer read off an observation.

A column is a kind (`COLUMNS`) with a street and an argument where it takes them: `word(flop)`, `rank(2)`,
`ehs(turn)`, `cluster(300)`. `codes` reads columns in bulk, a live state being an array of one row; a column that
says nothing in a row (the turn's strength on the flop) is `ABSENT` there. `text` writes a value as people do.

Strength columns are those of `pipeline.strength`, as 16-bit or 8-bit numbers; `cluster` is the number of the
nearest centroid of `pipeline.clusters`. Both exist in hold'em only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.cards import NO_CARD, RANKS, class_text, name_text, pattern_text
from pipeline.clusters import nearest as nearest_centroid
from pipeline.clusters import ochs
from pipeline.decisions import STREETS, word_text
from pipeline.errors import PipelineError
from pipeline.kernels import kernel
from pipeline.numeric import hash64
from pipeline.strength import lookup, quantiles

__all__ = [
    "ABSENT",
    "BEFORE",
    "COLUMNS",
    "CURRENT",
    "Column",
    "Cuts",
    "Kind",
    "Needs",
    "centroid_name",
    "codes",
    "cuts",
    "text",
]

ABSENT = -(2**63)
CURRENT = -1
BEFORE = -2
WORDS = 7
ALL_WORDS = 10
"""with the medians of fifths; strengths against groups of opponents come after them, if they are needed"""
GROUPS = 4
"""words of the strengths against eight groups"""

(
    STREET,
    POSITION,
    PLAYERS,
    WORD,
    ACT,
    BETTING,
    BETS,
    RAISES,
    TO_CALL,
    POT,
    STACK,
    ODDS,
    LEGAL,
    PREVIOUS,
    HIGH,
    LOW,
    START,
    RANK,
    BOARD,
    PATTERN,
    FLUSH,
    NAME,
    IHS,
    EHS,
    EHS2,
    EIGHTH,
    SHAPE,
    FIFTH,
    FIFTHS,
    CLUSTER,
    OCHS,
) = range(31)


class Kind(NamedTuple):
    """What a column's name stands for and what may follow it in parentheses."""

    number: int
    street: bool = False
    argument: tuple[int, int] | None = None
    """the range of the number it takes"""
    numeric: bool = False
    """may be cut into bins"""
    strength: bool = False


COLUMNS = {
    "street": Kind(STREET),
    "position": Kind(POSITION),
    "players": Kind(PLAYERS),
    "word": Kind(WORD, street=True),
    "act": Kind(ACT, street=True, argument=(1, 12), numeric=True),
    "betting": Kind(BETTING),
    "bets": Kind(BETS, numeric=True),
    "raises": Kind(RAISES, numeric=True),
    "to_call": Kind(TO_CALL, numeric=True),
    "pot": Kind(POT, numeric=True),
    "stack": Kind(STACK, numeric=True),
    "odds": Kind(ODDS, numeric=True),
    "legal": Kind(LEGAL),
    "previous": Kind(PREVIOUS, street=True),
    "high": Kind(HIGH, numeric=True),
    "low": Kind(LOW, numeric=True),
    "start": Kind(START),
    "rank": Kind(RANK, argument=(1, 5), numeric=True),
    "ranks": Kind(BOARD),
    "pattern": Kind(PATTERN),
    "flush": Kind(FLUSH),
    "name": Kind(NAME),
    "ihs": Kind(IHS, street=True, numeric=True, strength=True),
    "ehs": Kind(EHS, street=True, numeric=True, strength=True),
    "ehs2": Kind(EHS2, street=True, numeric=True, strength=True),
    "eighth": Kind(EIGHTH, street=True, argument=(1, 8), numeric=True, strength=True),
    "shape": Kind(SHAPE, street=True, argument=(2, 128), strength=True),
    "fifth": Kind(FIFTH, street=True, argument=(1, 5), numeric=True, strength=True),
    "fifths": Kind(FIFTHS, street=True, argument=(2, 128), strength=True),
    "cluster": Kind(CLUSTER, street=True, argument=(2, 65535), strength=True),
    "ochs": Kind(OCHS, argument=(1, 8), numeric=True, strength=True),
}
"""`act(flop, 2)` is the second action on the flop, 0 for none; `betting` all words together; `bets` counts raises
in the whole hand, `raises` on the street; `odds` is to_call / (pot + to_call) in thousandths; `previous` is one's
own last action in the hand, `previous(flop)` the same if taken since the flop; `eighth(i)` the mean of the i-th
eighth of the strengths at the river; `shape(k)` all eighths together, each cut into k bins of equal width;
`fifth(i)` and `fifths(k)` the same of the medians of the fifths; `ochs(i)`, on the river, strength against the i-th
of 8 groups of starting hands, weakest first"""


class Column(NamedTuple):
    """A column of a pattern: `street` is a street's number, CURRENT or BEFORE (the one before the row's)."""

    name: str
    street: int = CURRENT
    argument: int = 0
    seed: int = 0

    @property
    def kind(self) -> Kind:
        return COLUMNS[self.name]

    def __str__(self) -> str:
        inside = [{CURRENT: "", BEFORE: "before"}.get(self.street, STREETS[self.street])] if self.kind.street else []
        inside += [str(self.argument)] if self.kind.argument else []
        inside += [f"seed={self.seed}"] if self.seed else []
        shown = ", ".join(part for part in inside if part)
        return f"{self.name}({shown})" if shown else self.name


class Needs(NamedTuple):
    """Which strengths columns read."""

    streets: frozenset[int]
    """street numbers, CURRENT, BEFORE"""
    fifths: bool
    ochs: bool

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Needs:
        """Those of some columns."""
        kinds = {column.kind.number for column in columns}
        read = frozenset(column.street for column in columns if column.kind.strength)
        return cls(read, FIFTH in kinds or FIFTHS in kinds, OCHS in kinds)

    def at(self, street: int, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """The rows whose strength on a street is read."""
        now = rows["street"]
        if street in self.streets:
            return np.asarray(now >= street)
        return np.asarray((now == street) & (CURRENT in self.streets) | (now == street + 1) & (BEFORE in self.streets))


def strengths(rows: NDArray[Any], needs: Needs) -> NDArray[np.uint16]:
    """(rows, streets, words) of the strengths that are needed; the others are left 0."""
    if not needs.streets:
        return np.zeros((len(rows), 0, ALL_WORDS), np.uint16)
    hole, board = rows["hole"], rows["board"]
    if len(rows) and (hole[0] == NO_CARD).any():
        raise PipelineError(
            "hand strength is known for hold'em only: take a pattern without ihs, ehs, eighth, fifth, cluster, ochs"
        )
    out = np.zeros((len(rows), 4, ALL_WORDS + (GROUPS if needs.ochs else 0)), np.uint16)
    if len(rows) == 1:  # a live state: quicker than by masks
        now = int(rows["street"][0])
        wanted = {now + street + 1 if street < 0 else street for street in needs.streets}
        for street in wanted:
            if 0 <= street <= now:
                _fill(street, hole, board, needs, out[:, street])
        return out
    for street in range(4):
        at = np.flatnonzero(needs.at(street, rows))
        if len(at) == len(rows):
            _fill(street, hole, board, needs, out[:, street])
        elif len(at):
            some = out[at, street]
            _fill(street, hole[at], board[at], needs, some)
            out[at, street] = some
    return out


def _fill(
    street: int, hole: NDArray[np.uint8], board: NDArray[np.uint8], needs: Needs, out: NDArray[np.uint16]
) -> None:
    """Write the words of a street's strengths."""
    out[:, :WORDS] = lookup(street, hole, board).view("<u2").reshape(-1, WORDS)
    if needs.fifths and street > 0:
        medians = np.zeros((len(hole), 2 * (ALL_WORDS - WORDS)), np.uint8)
        medians[:, : quantiles.FIFTHS] = quantiles.lookup(street, hole, board)
        out[:, WORDS:ALL_WORDS] = medians.view("<u2")
    if needs.ochs and street == 3:
        out[:, ALL_WORDS:] = ochs(hole, board).view("<u2")


class Cuts(NamedTuple):
    """How numbers become codes: edges of bins, and centroids of clusters, of all columns one after the other."""

    columns: NDArray[np.int64]
    """kind, street, argument of each column"""
    edge_spans: NDArray[np.int64]
    """where each column's edges start and end; nowhere for a column that is not cut"""
    edges: NDArray[np.int64]
    cluster_spans: NDArray[np.int64]
    """where the centroids of each column and street start and end; the river's are in `river_cuts`"""
    centroids: NDArray[np.uint8]
    sums: NDArray[np.int64]
    river_cuts: NDArray[np.int64]


def cuts(columns: Sequence[Column], edges: Sequence[NDArray[np.int64]], centroids: Mapping[str, NDArray[Any]]) -> Cuts:
    """What the kernel needs for these columns; `edges` of a column that is not cut are empty."""
    ends = np.cumsum([0, *map(len, edges)])
    spans = np.zeros((len(columns), 4, 2), np.int64)
    flat: list[NDArray[np.uint8]] = [np.empty((0, 8), np.uint8)]
    river: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    for at, column in enumerate(columns):
        for street in range(4):
            found = centroids.get(centroid_name(column, street)) if column.name == "cluster" else None
            if found is None:
                continue
            pieces: list[Any] = river if street == 3 else flat
            start = sum(map(len, pieces))
            middle = found[:, 0].astype(np.int64)
            pieces.append(middle[:-1] + middle[1:] if street == 3 else found)
            spans[at, street] = start, start + len(pieces[-1])
    together = np.concatenate(flat)
    return Cuts(
        np.array([(c.kind.number, c.street, c.argument) for c in columns], np.int64).reshape(-1, 3),
        np.stack([ends[:-1], ends[1:]], axis=1),
        np.concatenate([np.empty(0, np.int64), *edges]),
        spans,
        together,
        together.sum(axis=1, dtype=np.int64),
        np.concatenate(river),
    )


def centroid_name(column: Column, street: int) -> str:
    """The name under which a cluster column's centroids of a street are kept."""
    return f"{STREETS[street]}-{column.argument}-{column.seed}"


def codes(rows: NDArray[Any], columns: Sequence[Column], how: Cuts, needs: Needs | None = None) -> NDArray[np.int64]:
    """(rows, columns): values, bin numbers where a column is cut, cluster numbers; `needs` are the columns' own."""
    out = np.empty((len(rows), len(columns)), np.int64)
    _read(rows, strengths(rows, needs or Needs.of(columns)), how, out)
    return out


@kernel
def _read(rows: NDArray[Any], words: NDArray[np.uint16], how: Cuts, out: NDArray[np.int64]) -> None:
    point = np.empty(8, np.uint8)
    for i in range(len(rows)):
        row = rows[i]
        for c in range(len(how.columns)):
            kind, since = how.columns[c, 0], how.columns[c, 1]
            street = since if since >= 0 else int(row.street) + since + 1
            if kind >= IHS:
                if street < 0 or street > row.street:
                    value = np.int64(ABSENT)
                else:
                    value = np.int64(_strength_value(words[i, street], kind, street, c, how, point))
            else:
                value = np.int64(_plain_value(row, kind, since, street, how.columns[c, 2]))
            low, high = how.edge_spans[c, 0], how.edge_spans[c, 1]
            if high > low and value != ABSENT:
                value = np.int64(np.searchsorted(how.edges[low:high], value, "right"))
            out[i, c] = value


@kernel
def _byte(words: NDArray[np.uint16], at: int) -> int:
    """A byte of a row of words; signed, since an unsigned value beside signed ones makes all of them floats."""
    return int(np.int64(words[at >> 1]) >> np.int64(8 * (at & 1)) & 255)


@kernel
def _strength_value(
    words: NDArray[np.uint16], kind: int, street: int, column: int, how: Cuts, point: NDArray[np.uint8]
) -> int:
    if kind in (EIGHTH, FIFTH):
        return _byte(words, how.columns[column, 2] - 1 + (6 if kind == EIGHTH else 2 * WORDS))
    if kind in (SHAPE, FIFTHS):
        start, count = (6, 8) if kind == SHAPE else (2 * WORDS, 5)
        packed = np.int64(0)
        for at in range(start, start + count):
            packed = packed << 7 | _byte(words, at) * how.columns[column, 2] >> 8
        return int(packed)
    if kind == OCHS:
        return _byte(words, 2 * ALL_WORDS + how.columns[column, 2] - 1) if street == 3 else ABSENT
    if kind == CLUSTER:
        low, high = how.cluster_spans[column, street, 0], how.cluster_spans[column, street, 1]
        if street == 3:
            return int(np.searchsorted(how.river_cuts[low:high], 2 * int(words[1]), "left"))
        for at in range(8):
            point[at] = _byte(words, 6 + at)
        return int(nearest_centroid(point, how.centroids[low:high], how.sums[low:high]))
    return int(np.int64(words[kind - IHS]))


@kernel(leaf=True)
def _has_acted(row: Any, since: int) -> bool:
    """Whether the player has acted since a street began: all do in a street that is over, each once in turn before."""
    if since != row.street:
        return bool(since < row.street)
    waiting = int(row.players)
    for street in range(since):
        word = row.betting_codes[street]
        while word != 0:
            waiting -= 1 if word & 7 == 1 else 0
            word >>= 3
    word = row.betting_codes[since]
    while word != 0:
        waiting -= 1
        word >>= 3
    return waiting <= 0


@kernel(leaf=True)
def _act(word: int, which: int) -> int:
    """An action of a betting word by its place from 1, 0 if there is none."""
    length = 0
    while word >> (3 * length) != 0:
        length += 1
    return int(word >> (3 * (length - which))) & 7 if which <= length else 0


@kernel(leaf=True)
def _bets(row: Any) -> int:
    """How many raises the whole hand has had."""
    count = 0
    for street in range(4):
        word = row.betting_codes[street]
        while word != 0:
            count += 1 if word & 7 >= 3 else 0
            word >>= 3
    return count


@kernel(leaf=True)
def _plain_value(row: Any, kind: int, since: int, street: int, argument: int) -> int:
    if kind == STREET:
        return int(row.street)
    if kind == POSITION:
        return int(row.position)
    if kind == PLAYERS:
        return int(row.players)
    if kind == WORD:
        return int(row.betting_codes[street]) if 0 <= street <= 3 else ABSENT
    if kind == ACT:
        return _act(row.betting_codes[street], argument) if 0 <= street <= 3 else ABSENT
    if kind == BETS:
        return _bets(row)
    if kind == BETTING:
        code = np.uint64(0)
        for i in range(4):
            code = hash64(code ^ np.uint64(row.betting_codes[i]))
        return int(code >> np.uint64(1))
    if kind == RAISES:
        return int(row.raises)
    if kind == TO_CALL:
        return int(row.to_call)
    if kind == POT:
        return int(row.pot)
    if kind == STACK:
        return int(row.stack)
    if kind == ODDS:
        return 1000 * int(row.to_call) // max(1, int(row.pot) + int(row.to_call))
    if kind == LEGAL:
        return int(row.legal)
    if kind == PREVIOUS:
        return int(row.previous) if since < 0 or _has_acted(row, since) else ABSENT
    if kind == HIGH:
        return int(row.high)
    if kind == LOW:
        return int(row.low)
    if kind == START:
        return int(row.start)
    if kind == RANK:
        return int(row.ranks[argument - 1])
    if kind == BOARD:
        code = np.uint64(0)
        for i in range(5):
            code = (code << np.uint64(8)) | np.uint64(row.ranks[i])
        return int(code)
    if kind == PATTERN:
        return int(row.pattern)
    if kind == FLUSH:
        return int(row.flush)
    return int(row.name)


def _rank_text(rank: int) -> str:
    return "-" if rank == NO_CARD else RANKS[rank]


_TEXT: dict[str, Callable[[Any, Column, bool], str]] = {
    "street": lambda row, _, __: STREETS[row["street"]],
    "word": lambda row, column, nolimit: word_text(row["betting_codes"][_street(row, column)], nolimit),
    "betting": lambda row, _, nolimit: "/".join(
        word_text(word, nolimit) for word in row["betting_codes"][: int(row["street"]) + 1]
    ),
    "previous": lambda row, _, nolimit: word_text(row["previous"], nolimit),
    "high": lambda row, _, __: _rank_text(row["high"]),
    "low": lambda row, _, __: _rank_text(row["low"]),
    "start": lambda row, _, __: class_text(row["start"]),
    "rank": lambda row, column, __: _rank_text(row["ranks"][column.argument - 1]),
    "ranks": lambda row, _, __: "".join(_rank_text(rank) for rank in row["ranks"] if rank != NO_CARD) or "-",
    "pattern": lambda row, _, __: pattern_text(row["pattern"]),
    "flush": lambda row, _, __: pattern_text(row["flush"]),
    "name": lambda row, _, __: name_text(row["name"]),
}


def _street(row: Any, column: Column) -> int:
    return column.street if column.street >= 0 else int(row["street"]) + column.street + 1


def text(row: Any, column: Column, code: int, nolimit: bool = False) -> str:
    """A column of one row as people write it; `code` is what `codes` gave."""
    return _TEXT[column.name](row, column, nolimit) if column.name in _TEXT else str(code)
