"""Rows to feature ids: a pattern fitted to training rows, and the numbering of the features seen there.

A feature is known by a 64-bit hash of its template and values: splitmix64, started from a hash of the template's
text and stirred with each value in turn; 0 stands for a template that does not fire. Bulk rows and a live state go
the same way (`Features.hashes`), be they observations or text rows. In training `Numbering` gives each new hash the
next number; a model keeps its hashes sorted (`Vocabulary`), finds one by its leading bits, and takes a feature that
training did not see as absent.

What a pattern needs to learn from the training rows, edges of bins, or to fetch, centroids of clusters, is kept with
the model as arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PipelineError
from pipeline.features import columns
from pipeline.features.columns import ABSENT, Column, Cuts, Needs
from pipeline.features.patterns import PREVIOUS, THESIS_COLUMNS, Cell, Pattern, Term
from pipeline.features.stored import (
    centroids_from_arrays,
    edges_from_arrays,
    template_from_json,
    template_to_json,
)
from pipeline.features.textrows import TextRows
from pipeline.kernels import kernel
from pipeline.numeric import hash64

__all__ = ["Features", "Numbering", "Rows", "Vocabulary", "fit", "from_json", "read_only", "to_arrays", "to_json"]

VERSION = 1
PIECE = 1 << 16
Rows = NDArray[Any] | TextRows
"""OBSERVATION rows or text rows"""
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Features:
    """A pattern ready for rows: with edges of bins and centroids."""

    pattern: Pattern
    text: bool
    """for text rows"""
    edges: Mapping[str, NDArray[np.int64]]
    """edges of the bins of each term that is cut, by its text"""
    centroids: Mapping[str, NDArray[Any]]

    @cached_property
    def terms(self) -> list[Term]:
        """The different terms of all templates."""
        return list(dict.fromkeys(_known(term, self.text) for t in self.pattern.templates for term in t.terms))

    @cached_property
    def _columns(self) -> list[Column]:
        return [term.column for term in self.terms if isinstance(term.column, Column)]

    @cached_property
    def _needs(self) -> Needs:
        return Needs.of(self._columns)

    @cached_property
    def _cuts(self) -> Cuts:
        none = np.empty(0, np.int64)
        return columns.cuts(self._columns, [self.edges.get(str(term), none) for term in self.terms], self.centroids)

    @cached_property
    def _layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Hashes]:
        """Where each template's terms start, the terms, and the templates' seeds."""
        places = {term: at for at, term in enumerate(self.terms)}
        used = [[places[_known(term, self.text)] for term in t.terms] for t in self.pattern.templates]
        starts = np.cumsum([0, *map(len, used)]).astype(np.int64)
        seeds = np.array([t.seed for t in self.pattern.templates], np.uint64)
        return starts, np.array([place for places in used for place in places], np.int64), seeds

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that decides which features a row fires."""
        digest = hashlib.sha256(f"{VERSION} {self.text}".encode())
        for template in self.pattern.templates:
            digest.update(f"\n{template.name}".encode())
        for kept in (self.edges, self.centroids):
            for name in sorted(kept):
                digest.update(f"\n{name}".encode() + np.ascontiguousarray(kept[name]).tobytes())
        return digest.hexdigest()[:32]

    def codes(self, rows: Rows) -> NDArray[np.int64]:
        """(rows, terms) values."""
        if isinstance(rows, TextRows):
            if not self.text:
                raise PipelineError("the model was trained on decision rows: it cannot read text rows")
            cells = [self._text_column(rows, term.column) for term in self.terms]
            return np.stack(cells, axis=1) if cells else np.empty((len(rows), 0), np.int64)
        if self.text:
            raise PipelineError("the model was trained on text rows: it cannot read decision rows")
        return columns.codes(rows, self._columns, self._cuts, self._needs)

    def _text_column(self, rows: TextRows, column: Column | Cell) -> NDArray[np.int64]:
        if not isinstance(column, Cell):
            return rows.previous()
        if column.number >= rows.columns.shape[1]:
            raise PipelineError(
                f"the pattern names {column}, but the rows have only the columns 0 to {rows.columns.shape[1] - 1}"
            )
        return rows.cell(column.offset, column.number)

    def hashes(self, rows: Rows) -> Hashes:
        """(rows, templates) hashes of the features that rows fire; 0 where a template does not."""
        out = np.empty((len(rows), len(self.pattern.templates)), np.uint64)
        _hash(self.codes(rows), *self._layout, out)
        for at, template in enumerate(self.pattern.templates):
            if template.streets and not isinstance(rows, TextRows):
                out[~np.isin(rows["street"], template.streets), at] = 0
        return out

    def hash_codes(self, template: int, codes: NDArray[np.int64]) -> Hashes:
        """The hashes of one template's features for given values (features, terms)."""
        out = np.empty((len(codes), 1), np.uint64)
        seed = self._layout[2][template : template + 1]
        width = codes.shape[1]
        _hash(codes.astype(np.int64), np.array([0, width]), np.arange(width), seed, out)
        return out[:, 0]

    def pieces(self, rows: Rows) -> Iterator[tuple[slice, Hashes]]:
        """The hashes of many rows, a piece at a time."""
        if isinstance(rows, TextRows):  # sequences must not be cut
            yield slice(0, len(rows)), self.hashes(rows)
            return
        for low in range(0, len(rows), PIECE):
            part = slice(low, min(low + PIECE, len(rows)))
            yield part, self.hashes(rows[part])

    def describe(self, row: NDArray[Any], nolimit: bool = False) -> list[str]:
        """What one observation row fires in each template, as people write it; empty where it does not fire."""
        codes = dict(zip(self.terms, self.codes(row)[0], strict=True))
        out = []
        for template in self.pattern.templates:
            terms = [_known(term, self.text) for term in template.terms]
            if any(codes[term] == ABSENT for term in terms):
                out.append("")
                continue
            shown = [
                f"{term}={columns.text(row[0], term.column, int(codes[term]), nolimit)}"
                for term in terms
                if isinstance(term.column, Column)
            ]
            out.append(" ".join(shown) or template.name)
        return out


def _known(term: Term, text: bool) -> Term:
    """The term for the rows at hand: a cell of the thesis's columns by name; for text rows, a name as its cell."""
    column = term.column
    if isinstance(column, Cell) and not text:
        if column.offset or column.number >= len(THESIS_COLUMNS):
            raise PipelineError(
                f"decision rows stand alone and have the thesis's {len(THESIS_COLUMNS)} columns: the pattern's {column}"
                " is none of them"
            )
        return Term(THESIS_COLUMNS[column.number])
    if isinstance(column, Column) and text and term != PREVIOUS:
        if term.bins or column not in THESIS_COLUMNS:
            raise PipelineError(f"text rows have no column {term}: write it as %x[0,number]")
        return Term(Cell(0, THESIS_COLUMNS.index(column)))
    return term


def to_json(features: Features) -> dict[str, Any]:
    """All of the features but their arrays (see `to_arrays`)."""
    return {
        "text": features.text,
        "fingerprint": features.fingerprint,
        "templates": [template_to_json(template) for template in features.pattern.templates],
    }


def to_arrays(features: Features) -> dict[str, NDArray[Any]]:
    """Edges and centroids under their names."""
    edges = {f"edges {name}": array for name, array in features.edges.items()}
    return edges | {f"centroids {name}": array for name, array in features.centroids.items()}


def from_json(kept: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Features:
    """The inverse of `to_json` and `to_arrays`; what no training could have written raises `ValueError`."""
    templates = tuple(template_from_json(one) for one in kept["templates"])
    edges, centroids = edges_from_arrays(arrays, templates), centroids_from_arrays(arrays)
    features = Features(Pattern(templates, ""), bool(kept["text"]), edges, centroids)
    if not features.terms and not templates:
        raise ValueError("a model needs at least one template")
    if features.fingerprint != kept["fingerprint"]:
        raise PipelineError(
            "the model's features are not those it was trained with: it was made by another version; train again"
        )
    return features


def fit(pattern: Pattern, rows: Rows, streets: Sequence[int] = (0, 1, 2, 3)) -> Features:
    """Learn the edges of bins on training rows and fetch the centroids that the pattern names."""
    text = isinstance(rows, TextRows)
    bare = Features(pattern, text, {}, {})
    centroids: dict[str, NDArray[Any]] = {}
    cut = [term for term in bare.terms if term.bins and isinstance(term.column, Column)]
    if not isinstance(rows, TextRows):
        for term in bare.terms:
            if isinstance(term.column, Column) and term.column.name == "cluster":
                centroids |= _centroids(term.column, streets)
    if not cut or isinstance(rows, TextRows):
        return Features(pattern, text, {}, centroids)
    sample = rows[:: max(1, len(rows) // 500_000)]
    named = [term.column for term in cut if isinstance(term.column, Column)]
    values = columns.codes(sample, named, columns.cuts(named, [np.empty(0, np.int64)] * len(named), {}))
    edges = {}
    for term, value in zip(cut, values.T, strict=True):
        seen = value[value != ABSENT]
        if len(seen) == 0:
            raise PipelineError(f"no training row has a value for {term}: leave it out of the pattern")
        if term.quantile:
            found = np.quantile(seen, np.arange(1, term.bins) / term.bins, method="higher")
        else:
            top = _full_scale(term) or int(seen.max())
            found = np.arange(1, term.bins) * (top + 1) / term.bins
        edges[str(term)] = np.unique(np.ceil(found)).astype(np.int64)
    return Features(pattern, text, edges, centroids)


def _full_scale(term: Term) -> int:
    """The greatest value of a strength, 0 for what has none."""
    name = term.column.name if isinstance(term.column, Column) else ""
    return {"ihs": 65535, "ehs": 65535, "ehs2": 65535, "eighth": 255, "ochs": 255}.get(name, 0)


def _centroids(column: Column, streets: Sequence[int]) -> dict[str, NDArray[Any]]:
    """The centroids a cluster column needs on these streets."""
    from pipeline.clusters import clusters

    if column.street >= 0:
        wanted = {column.street}
    else:
        wanted = {street + column.street + 1 for street in streets if street + column.street + 1 >= 0}
    found = {}
    for street in sorted(wanted):
        size = min(column.argument, 169) if street == 0 else column.argument
        found[columns.centroid_name(column, street)] = clusters(street, size, column.seed).centroids
    return found


@kernel
def _hash(
    codes: NDArray[np.int64], starts: NDArray[np.int64], terms: NDArray[np.int64], seeds: Hashes, out: Hashes
) -> None:
    for row in range(len(codes)):
        for t in range(len(seeds)):
            value = hash64(seeds[t])
            for at in range(starts[t], starts[t + 1]):
                code = codes[row, terms[at]]
                if code == ABSENT:
                    value = np.uint64(0)
                    break
                value = hash64(value ^ np.uint64(code))
            out[row, t] = value


class Numbering:
    """Numbers features in order of appearance, in a hash table with open addresses."""

    def __init__(self) -> None:
        self._slots = np.zeros(1 << 16, np.uint64)
        self._numbers = np.zeros(1 << 16, np.int32)
        self.size = 0

    def __call__(self, hashes: Hashes, out: NDArray[np.int32]) -> None:
        """Write the numbers of hashes (rows, templates) to `out`, -1 for 0; unseen ones get new numbers."""
        row = 0
        while True:
            row, self.size = _number(hashes, row, self._slots, self._numbers, self.size, out)
            if row == len(hashes):
                return
            slots, numbers = self._slots, self._numbers
            self._slots, self._numbers = np.zeros(2 * len(slots), np.uint64), np.zeros(2 * len(slots), np.int32)
            _move(slots, numbers, self._slots, self._numbers)

    def keys(self) -> Hashes:
        """The hash of each number."""
        used = self._slots != 0
        keys = np.empty(self.size, np.uint64)
        keys[self._numbers[used]] = self._slots[used]
        return keys


@kernel
def _number(
    hashes: Hashes, row: int, slots: Hashes, numbers: NDArray[np.int32], size: int, out: NDArray[np.int32]
) -> tuple[int, int]:
    """Number rows from `row` on; stops when the table is half full. Returns the next row and the size."""
    mask = len(slots) - 1
    while row < len(hashes):
        if 2 * (size + hashes.shape[1]) > len(slots):
            return row, size
        for t in range(hashes.shape[1]):
            key = hashes[row, t]
            if key == 0:
                out[row, t] = -1
                continue
            at = np.int64(key) & mask
            while slots[at] != 0 and slots[at] != key:
                at = (at + 1) & mask
            if slots[at] == 0:
                slots[at] = key
                numbers[at] = size
                size += 1
            out[row, t] = numbers[at]
        row += 1
    return row, size


@kernel
def _move(slots: Hashes, numbers: NDArray[np.int32], new_slots: Hashes, new_numbers: NDArray[np.int32]) -> None:
    mask = len(new_slots) - 1
    for i in range(len(slots)):
        if slots[i] != 0:
            at = np.int64(slots[i]) & mask
            while new_slots[at] != 0:
                at = (at + 1) & mask
            new_slots[at] = slots[i]
            new_numbers[at] = numbers[i]


class Vocabulary:
    """Sorted hashes of the features a model knows; `find` gives their numbers."""

    def __init__(self, keys: Hashes) -> None:
        self.keys = read_only(keys)
        bits = max(1, len(keys).bit_length())
        self._shift = 64 - bits
        self._starts = np.empty((1 << bits) + 1, np.int32)
        _index(self.keys, np.uint64(self._shift), self._starts)

    def find(self, hashes: Hashes) -> NDArray[np.int32]:
        """The numbers of hashes, -1 for what the model does not know."""
        out = np.empty(hashes.shape, np.int32)
        _find(hashes, self.keys, np.uint64(self._shift), self._starts, out)
        return out


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: kernels are compiled once for arrays that are made and that are mapped."""
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def _index(keys: Hashes, shift: Any, starts: NDArray[np.int32]) -> None:
    """Where the hashes with the same leading bits start."""
    at = 0
    for bucket in range(len(starts) - 1):
        while at < len(keys) and np.int64(keys[at] >> shift) < bucket:
            at += 1
        starts[bucket] = at
    starts[-1] = len(keys)


@kernel
def _find(hashes: Hashes, keys: Hashes, shift: Any, starts: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    for row in range(hashes.shape[0]):
        for t in range(hashes.shape[1]):
            key = hashes[row, t]
            found = -1
            bucket = np.int64(key >> shift)
            for at in range(starts[bucket], starts[bucket + 1]):
                if keys[at] == key:
                    found = at
                    break
            out[row, t] = found
