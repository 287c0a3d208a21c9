"""Rows to hashes of features: a pattern fitted to training rows.

A feature is known by a 64-bit hash of its template and values: splitmix64, started from a hash of the template's text
and stirred with each value in turn; 0 stands for a template that does not fire. Many rows and a single live decision go
the same way (`Features.hashes`), as observations or as text rows; `vocabulary` numbers the hashes.

What a pattern learns from the training rows (the edges of bins) or fetches (the centroids of clusters) is kept with the
model as arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features import columns, reading
from pipeline.features.columns import ABSENT, Column
from pipeline.features.patterns import PREVIOUS, THESIS_COLUMNS, Cell, Pattern, Term
from pipeline.features.rated import RatedRows
from pipeline.features.reading import Cuts, Needs
from pipeline.features.stored import (
    centroids_from_arrays,
    edges_from_arrays,
    template_from_json,
    template_to_json,
)
from pipeline.features.textrows import TextRows
from pipeline.features.vocabulary import Hashes
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

VERSION = 1
PIECE = 1 << 16
FITTED = 500_000
"""rows that the edges of bins are learned from, about"""
Rows = NDArray[Any] | RatedRows | TextRows
"""OBSERVATION rows, the same with stored strengths, or text rows"""


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
        return reading.cuts(self._columns, [self.edges.get(str(term), none) for term in self.terms], self.centroids)

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
        return reading.codes(rows, self._columns, self._cuts, self._needs)

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

    def describe(self, row: NDArray[Any] | RatedRows, nolimit: bool = False) -> list[str]:
        """What one observation row fires in each template, as people write it; empty where it does not fire."""
        codes = dict(zip(self.terms, self.codes(row)[0], strict=True))
        out = []
        for template in self.pattern.templates:
            terms = [_known(term, self.text) for term in template.terms]
            if any(codes[term] == ABSENT for term in terms):
                out.append("")
                continue
            shown = [
                f"{term.shown}={columns.text(row[0], term.column, int(codes[term]), nolimit)}"
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
    if isinstance(rows, TextRows):
        return Features(pattern, True, {}, {})
    return fit_values(pattern, cut_values(pattern, rows[:: max(1, len(rows) // FITTED)]), streets)


def _cut_terms(pattern: Pattern) -> list[Term]:
    """The terms of a pattern that are cut into bins."""
    return [term for term in Features(pattern, False, {}, {}).terms if term.bins and isinstance(term.column, Column)]


def cut_values(pattern: Pattern, rows: NDArray[Any] | RatedRows) -> NDArray[np.int64]:
    """(rows, terms) what the terms that are cut into bins say of rows."""
    named = [term.column for term in _cut_terms(pattern) if isinstance(term.column, Column)]
    if not named:
        return np.empty((len(rows), 0), np.int64)
    return reading.codes(rows, named, reading.cuts(named, [np.empty(0, np.int64)] * len(named), {}))


def fit_values(pattern: Pattern, values: NDArray[np.int64], streets: Sequence[int] = (0, 1, 2, 3)) -> Features:
    """What `fit` gives, from the `cut_values` of a sample of the training rows."""
    text = False
    centroids: dict[str, NDArray[Any]] = {}
    for term in Features(pattern, text, {}, {}).terms:
        if isinstance(term.column, Column) and term.column.name == "cluster":
            centroids |= _centroids(term.column, streets)
    cut = _cut_terms(pattern)
    if not cut:
        return Features(pattern, text, {}, centroids)
    edges = {}
    for term, value in zip(cut, values.T, strict=True):
        seen = value[value != ABSENT]
        if len(seen) == 0:  # such as stacks that nobody knows: the templates with it never fire
            found = np.empty(0)
        elif term.quantile:
            found = np.quantile(seen, np.arange(1, term.bins) / term.bins, method="higher")
        else:
            top = (term.column.kind.top if isinstance(term.column, Column) else 0) or int(seen.max())
            found = np.arange(1, term.bins) * (top + 1) / term.bins
        edges[str(term)] = np.unique(np.ceil(found)).astype(np.int64)
    empty = {term for term, value in zip(cut, values.T, strict=True) if (value == ABSENT).all()}
    silent = [next((term for term in template.terms if term in empty), None) for template in pattern.templates]
    if silent and None not in silent:
        raise PipelineError(f"no training row has a value for {silent[0]}: leave it out of the pattern")
    return Features(pattern, text, edges, centroids)


def _centroids(column: Column, streets: Sequence[int]) -> dict[str, NDArray[Any]]:
    """The centroids a cluster column needs on these streets."""
    from pipeline.poker.strength.hand_clusters import clusters

    if column.street >= 0:
        wanted = {column.street}
    else:
        wanted = {street + column.street + 1 for street in streets if street + column.street + 1 >= 0}
    found = {}
    for street in sorted(wanted):
        size = min(column.argument, 169) if street == 0 else column.argument
        found[reading.centroid_name(column, street)] = clusters(street, size, column.seed).centroids
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
