"""Columns read off many observations at once; a live decision is an array of one row.

In go rows and columns (`columns.Column`), out come whole numbers (rows, columns): values, numbers of bins where a
column is cut, numbers of clusters. A compiled loop carries out each column's operation (see `columns`) row by row;
strengths are looked up before it, by street, and only those that the columns read, unless the rows bring those that
their dataset has stored (`RatedRows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import NO_AGGRESSOR, STREETS
from pipeline.features.columns import (
    ABSENT,
    ACT,
    AGGRESSOR,
    ALL_BYTES,
    BEFORE,
    BETS,
    BETTING,
    CURRENT,
    EFFECTIVE_BLINDS,
    FACED,
    FIELD,
    GROUPS,
    OCTILES,
    ODDS,
    POT_BLINDS,
    POT_DEPTH,
    PREVIOUS,
    QUANTILES,
    RIVER,
    STRENGTH_BYTE,
    STRENGTH_BYTES,
    STRENGTH_WORD,
    WORD,
    Column,
)
from pipeline.poker.cards import NO_CARD
from pipeline.poker.strength import quantiles
from pipeline.poker.strength.hand_clusters import nearest_centroid as nearest_centroid
from pipeline.poker.strength.hand_clusters import ochs
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Bytes
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64, lower_bound, upper_bound

if TYPE_CHECKING:  # playing needs no datasets
    from pipeline.dataset.load import Decisions

COLUMN = np.dtype(
    [
        ("street", np.int64),  # its number, CURRENT or BEFORE
        ("argument", np.int64),
        ("is_strength", np.int64),
        ("operation", np.int64),  # see `columns`, with two numbers for it
        ("first", np.int64),
        ("second", np.int64),
    ]
)


# Strengths


@dataclass(frozen=True)
class RatedRows:
    """Observations with the strengths that a dataset has stored, so that features need not compute these again.

    They are sliced and indexed like observation rows. Strength before the flop and quantiles are never stored.
    """

    rows: NDArray[Any]
    """OBSERVATION"""
    strength: NDArray[Any]
    """(rows, streets) STRENGTH by street from the flop on, zeros beyond the row's street"""
    ochs: NDArray[Any] | None = None
    """(rows, 8) strength on the river against groups of opponents, zeros before it"""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """Return a field by its name; otherwise the rows of a slice, a mask or indices."""
        if isinstance(key, str):
            return self.rows[key]
        return RatedRows(self.rows[key], self.strength[key], None if self.ochs is None else self.ochs[key])

    def copy(self) -> RatedRows:
        """Return a copy in memory of its own."""
        return RatedRows(self.rows.copy(), self.strength.copy(), None if self.ochs is None else self.ochs.copy())


def rated(decisions: Decisions) -> NDArray[Any] | RatedRows:
    """Return the rows of decisions, with their strengths if these were loaded."""
    if decisions.strength is None:
        return decisions.rows
    return RatedRows(decisions.rows, decisions.strength, decisions.ochs)


class Needs(NamedTuple):
    """The strengths that columns read."""

    streets: frozenset[int]
    """street numbers, CURRENT, BEFORE"""
    quantiles: bool
    groups: bool

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Needs:
        """Return the needs of some columns."""
        read = frozenset(_street(column) for column in columns if column.kind.strength)
        kinds = {column.kind.strength for column in columns}
        return cls(read, "quantiles" in kinds, "groups" in kinds)

    def mask(self, street: int, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a mask of the rows whose strength on a street is read."""
        now = rows["street"]
        if street in self.streets:
            return np.asarray(now >= street)
        return np.asarray((now == street) & (CURRENT in self.streets) | (now == street + 1) & (BEFORE in self.streets))


def _street(column: Column) -> int:
    """Return the street that a column is read on; strengths against groups exist on the river only."""
    return RIVER if column.kind.strength == "groups" else column.street


def strengths(rows: NDArray[Any] | RatedRows, needs: Needs) -> Bytes:
    """Return the strengths that are needed as (rows, streets, bytes), the others 0.

    Those that a dataset has stored (`RatedRows`) are taken from there, the rest is looked up.
    """
    if not needs.streets:
        return np.zeros((len(rows), 0, GROUPS), np.uint8)
    stored = rows if isinstance(rows, RatedRows) else None
    bare = rows.rows if isinstance(rows, RatedRows) else rows
    if len(bare) and bare["hole"][:, 0].max() == NO_CARD:
        raise PipelineError(
            "these rows include players whose cards are unknown: take a pattern without cards, such as `betting`"
        )
    if len(bare) and (bare["hole"][0] == NO_CARD).any():
        raise PipelineError(
            "hand strength is known for hold'em only: take a pattern without ihs, ehs, ehs2, river_octiles, "
            "river_quantiles, cluster and ochs"
        )
    words = np.zeros(
        (len(bare), 4, (ALL_BYTES if needs.groups else GROUPS) // 2), np.uint16
    )  # twice as fast to fill as bytes
    out = words.view(np.uint8)
    if len(bare) == 1:  # a live state: quicker than by masks
        now = int(bare["street"][0])
        streets = {now + street + 1 if street < 0 else street for street in needs.streets}
        for street in streets:
            if 0 <= street <= now:
                _fill(street, bare, stored, needs, words[:, street])
        return out
    for street in range(4):
        indices = np.flatnonzero(needs.mask(street, bare))
        if len(indices) == len(bare):
            _fill(street, bare, stored, needs, words[:, street])
        elif len(indices):
            part = words[indices, street]
            _fill(street, bare[indices], stored[indices] if stored is not None else None, needs, part)
            words[indices, street] = part
    return out


def _fill(street: int, rows: NDArray[Any], stored: RatedRows | None, needs: Needs, out: NDArray[np.uint16]) -> None:
    """Write a street's strengths as words of two bytes."""
    hole, board = rows["hole"], rows["board"]
    is_stored = stored is not None and 0 < street <= stored.strength.shape[1]
    values = stored.strength[:, street - 1] if stored is not None and is_stored else None
    moments = np.ascontiguousarray(values) if values is not None else find_strengths(street, hole, board)
    out[:, : QUANTILES // 2] = moments.view("<u2").reshape(-1, STRENGTH.itemsize // 2)
    if needs.quantiles and street > 0:
        medians = np.zeros((len(rows), GROUPS - QUANTILES), np.uint8)
        medians[:, : quantiles.FIFTHS] = quantiles.find_quantiles(street, hole, board)
        out[:, QUANTILES // 2 : GROUPS // 2] = medians.view("<u2")
    if needs.groups and street == RIVER:
        groups = stored.ochs if stored is not None else None
        out[:, GROUPS // 2 :] = (np.ascontiguousarray(groups) if groups is not None else ochs(hole, board)).view("<u2")


# Cuts


class Cuts(NamedTuple):
    """Columns as the kernel reads them, with edges of bins and centroids of clusters, column after column."""

    columns: NDArray[Any]
    """(columns,) COLUMN"""
    edge_spans: NDArray[np.int64]
    """where each column's edges start and end; nowhere for a column that is not cut"""
    edges: NDArray[np.int64]
    cluster_spans: NDArray[np.int64]
    """where the centroids of each column and street start and end; the river's are in `river_cuts`"""
    centroids: Bytes
    sums: NDArray[np.int64]
    river_cuts: NDArray[np.int64]


def cuts(columns: Sequence[Column], edges: Sequence[NDArray[np.int64]], centroids: Mapping[str, NDArray[Any]]) -> Cuts:
    """Return the plan by which the kernel reads these columns; `edges` of a column that is not cut are empty."""
    ends = np.cumsum([0, *map(len, edges)])
    spans = np.zeros((len(columns), 4, 2), np.int64)
    flat: list[Bytes] = [np.empty((0, 8), np.uint8)]
    river: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    for i, column in enumerate(columns):
        for street in range(4):
            points = centroids.get(centroid_name(column, street)) if column.name == "cluster" else None
            if points is None:
                continue
            pieces: list[Any] = river if street == RIVER else flat
            start = sum(map(len, pieces))
            middle = points[:, 0].astype(np.int64)
            pieces.append(middle[:-1] + middle[1:] if street == RIVER else points)
            spans[i, street] = start, start + len(pieces[-1])
    all_centroids = np.concatenate(flat)
    plans = [(_street(c), c.argument, c.kind.strength != "", *c.operation) for c in columns]
    return Cuts(
        np.array(plans, COLUMN),
        np.stack([ends[:-1], ends[1:]], axis=1),
        np.concatenate([np.empty(0, np.int64), *edges]),
        spans,
        all_centroids,
        all_centroids.sum(axis=1, dtype=np.int64),
        np.concatenate(river),
    )


def centroid_name(column: Column, street: int) -> str:
    """Return the name under which a cluster column's centroids of a street are stored."""
    return f"{STREETS[street]}-{column.argument}-{column.seed}"


# Reading


def codes(
    rows: NDArray[Any] | RatedRows, columns: Sequence[Column], how: Cuts, needs: Needs | None = None
) -> NDArray[np.int64]:
    """Return values (rows, columns), numbers of bins and of clusters; `needs` are by default those of the columns."""
    out = np.empty((len(rows), len(columns)), np.int64)
    strength_bytes = strengths(rows, needs or Needs.of(columns))
    bare = np.ascontiguousarray(rows.rows if isinstance(rows, RatedRows) else rows)
    _read(bare, bare.view(np.uint8).reshape(len(bare), bare.dtype.itemsize), strength_bytes, how, out)
    return out


@kernel
def _read(rows: NDArray[Any], raw: Bytes, strengths: Bytes, how: Cuts, out: NDArray[np.int64]) -> None:
    point = np.empty(8, np.uint8)
    for i in range(len(rows)):
        row = rows[i]
        for c in range(len(how.columns)):
            plan = how.columns[c]
            since, operation = plan.street, plan.operation
            street = since if since >= 0 else int(row.street) + since + 1
            if plan.is_strength != 0:
                if street < 0 or street > row.street:
                    value = np.int64(ABSENT)
                else:
                    value = np.int64(_strength_value(strengths[i, street], street, c, how, point))
            elif operation == FIELD:
                value = np.int64(_field(raw, i, plan.first, plan.second))
            else:
                value = np.int64(_plain_value(row, operation, since, street, plan.argument))
            low, high = how.edge_spans[c, 0], how.edge_spans[c, 1]
            if high > low and value != ABSENT:
                value = np.int64(upper_bound(how.edges[low:high], value))
            out[i, c] = value


@kernel(leaf=True)
def _field(raw: Bytes, row: int, place: int, width: int) -> int:
    """Return the number in some bytes of a row, the lowest first.

    It is signed: numba makes a float of unsigned and signed numbers together.
    """
    value = np.int64(raw[row, place])
    for i in range(1, width):
        value |= np.int64(raw[row, place + i]) << np.int64(8 * i)
    return int(value)


@kernel(leaf=True)
def _word(raw: Bytes, number: int) -> int:
    """Return a word of two bytes."""
    return int(np.int64(raw[2 * number]) | np.int64(raw[2 * number + 1]) << np.int64(8))


@kernel(leaf=True)
def _packed(raw: Bytes, first: int, count: int, bins: int) -> int:
    """Return some bytes as one number, each cut into bins of equal width: seven bits each."""
    packed = np.int64(0)
    for at in range(count):
        packed = packed << 7 | np.int64(raw[first + at]) * bins >> 8
    return int(packed)


@kernel
def _strength_value(raw: Bytes, street: int, column: int, how: Cuts, point: Bytes) -> int:
    plan = how.columns[column]
    operation, first = plan.operation, plan.first
    if operation == STRENGTH_BYTES:
        if plan.second == 8:  # a number that is known when compiling: twice as fast
            return _packed(raw, first, 8, plan.argument)
        return _packed(raw, first, plan.second, plan.argument)
    if operation == STRENGTH_WORD:
        return _word(raw, first)
    if operation == STRENGTH_BYTE:
        return int(raw[first])
    low, high = how.cluster_spans[column, street, 0], how.cluster_spans[column, street, 1]
    if street == RIVER:
        return lower_bound(how.river_cuts[low:high], 2 * _word(raw, 1))
    for at in range(8):
        point[at] = raw[OCTILES + at]
    return int(nearest_centroid(point, how.centroids[low:high], how.sums[low:high]))


@kernel(leaf=True)
def _has_acted(row: Any, since: int) -> bool:
    """Return whether the player has acted since a street began: everybody has when it is over, else by turns."""
    if since != row.street:
        return bool(since < row.street)
    waiting = int(row.players)  # less those who folded before and those who have acted since
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
    """Return an action of a betting code by its place from 1, 0 if there is none."""
    length = 0
    while word >> (3 * length) != 0:
        length += 1
    return int(word >> (3 * (length - which))) & 7 if which <= length else 0


@kernel(leaf=True)
def _bets(row: Any) -> int:
    """Return the number of raises in the whole hand."""
    count = 0
    for street in range(4):
        word = row.betting_codes[street]
        while word != 0:
            count += 1 if word & 7 >= 3 else 0
            word >>= 3
    return count


@kernel(leaf=True)
def _plain_value(row: Any, operation: int, since: int, street: int, argument: int) -> int:
    if operation == WORD:
        return int(row.betting_codes[street]) if 0 <= street <= 3 else ABSENT
    if operation == ACT:
        return _act(row.betting_codes[street], argument) if 0 <= street <= 3 else ABSENT
    if operation == BETTING:  # four codes do not fit 63 bits: their hash, without its sign
        code = np.uint64(0)
        for i in range(4):
            code = hash64(code ^ np.uint64(row.betting_codes[i]))
        return int(code >> np.uint64(1))
    if operation == BETS:
        return _bets(row)
    if operation == ODDS:
        return 1000 * int(row.to_call) // max(1, int(row.pot) + int(row.to_call))
    if operation == FACED:
        return 100 * int(row.to_call) // max(1, int(row.pot) - int(row.to_call))
    if operation == POT_DEPTH:
        return 100 * int(row.effective) // max(1, int(row.pot)) if row.effective > 0 else ABSENT
    if operation == EFFECTIVE_BLINDS:
        return 10 * int(row.effective) // max(1, int(row.big_blind)) if row.effective > 0 else ABSENT
    if operation == POT_BLINDS:
        return 10 * int(row.pot) // max(1, int(row.big_blind))
    if operation == AGGRESSOR:
        seats = int(row.aggressor) - int(row.position)
        return seats % max(1, int(row.players)) if row.aggressor != NO_AGGRESSOR else ABSENT
    if operation == PREVIOUS:
        return int(row.previous) if since < 0 or _has_acted(row, since) else ABSENT
    code = np.uint64(0)  # RANKS_TOGETHER
    for i in range(5):
        code = (code << np.uint64(8)) | np.uint64(row.ranks[i])
    return int(code)
