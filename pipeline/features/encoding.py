"""Rows to hashes of features, by a pattern fitted to training rows.

A feature is known by a 64-bit hash of its template and values: splitmix64, started from a hash of the template's text
and stirred with each value in turn; 0 stands for a template that does not fire. Many rows and a single live decision go
the same way (`Features.hashes`), as observations or as text rows; `vocabulary` numbers the hashes.

What a pattern learns from the training rows (the edges of bins) or fetches (the centroids of clusters) is stored with
the model as arrays; `to_json` and `to_arrays` write it to a bundle, `from_json` reads and checks it.
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
from pipeline.features.columns import ABSENT, BEFORE, COLUMNS, CURRENT, Column
from pipeline.features.patterns import PREVIOUS, THESIS_COLUMNS, Cell, Pattern, Template, Term
from pipeline.features.reading import Cuts, Needs, RatedRows
from pipeline.features.textrows import TextRows
from pipeline.features.vocabulary import Hashes
from pipeline.runtime.arrays import expect, expect_ascending, finite_number, whole_number
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

VERSION = 1
MAX_BINS = 65535
MAX_PENALTY = 1e9
"""no penalty of a pattern is larger"""
PIECE_ROWS = 1 << 16
FITTED_ROWS = 500_000
"""rows, about, from which the edges of bins are learned"""
Rows = NDArray[Any] | RatedRows | TextRows
"""OBSERVATION rows, the same with stored strengths, or text rows"""


@dataclass(frozen=True)
class Features:
    """A pattern with its edges of bins and centroids, ready to read rows."""

    pattern: Pattern
    text: bool
    """for text rows"""
    edges: Mapping[str, NDArray[np.int64]]
    """edges of the bins of each term that is cut, by its text"""
    centroids: Mapping[str, NDArray[Any]]

    @cached_property
    def terms(self) -> list[Term]:
        """Return the different terms of all templates."""
        return list(dict.fromkeys(_resolve(term, self.text) for t in self.pattern.templates for term in t.terms))

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
        """Return where each template's terms start, the terms by number, and the templates' seeds."""
        places = {term: i for i, term in enumerate(self.terms)}
        used = [[places[_resolve(term, self.text)] for term in t.terms] for t in self.pattern.templates]
        starts = np.cumsum([0, *map(len, used)]).astype(np.int64)
        seeds = np.array([t.seed for t in self.pattern.templates], np.uint64)
        return starts, np.array([place for places in used for place in places], np.int64), seeds

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all that decides which features a row fires."""
        digest = hashlib.sha256(f"{VERSION} {self.text}".encode())
        for template in self.pattern.templates:
            digest.update(f"\n{template.name}".encode())
        for arrays in (self.edges, self.centroids):
            for name in sorted(arrays):
                digest.update(f"\n{name}".encode() + np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()[:32]

    def codes(self, rows: Rows) -> NDArray[np.int64]:
        """Return the values (rows, terms) of rows."""
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
        """Return the hashes (rows, templates) of the features that rows fire; 0 where a template does not."""
        out = np.empty((len(rows), len(self.pattern.templates)), np.uint64)
        _hash(self.codes(rows), *self._layout, out)
        for column, template in enumerate(self.pattern.templates):
            if template.streets and not isinstance(rows, TextRows):
                out[~np.isin(rows["street"], template.streets), column] = 0
        return out

    def hash_codes(self, template: int, codes: NDArray[np.int64]) -> Hashes:
        """Return the hashes of one template's features for given values (features, terms)."""
        out = np.empty((len(codes), 1), np.uint64)
        seed = self._layout[2][template : template + 1]
        width = codes.shape[1]
        _hash(codes.astype(np.int64), np.array([0, width]), np.arange(width), seed, out)
        return out[:, 0]

    def pieces(self, rows: Rows) -> Iterator[tuple[slice, Hashes]]:
        """Yield the hashes of many rows, a piece at a time."""
        if isinstance(rows, TextRows):  # sequences must not be cut
            yield slice(0, len(rows)), self.hashes(rows)
            return
        for low in range(0, len(rows), PIECE_ROWS):
            part = slice(low, min(low + PIECE_ROWS, len(rows)))
            yield part, self.hashes(rows[part])

    def describe(self, row: NDArray[Any] | RatedRows, nolimit: bool = False) -> list[str]:
        """Return the feature that one row fires in each template, as people write it; empty where it fires none."""
        codes = dict(zip(self.terms, self.codes(row)[0], strict=True))
        out = []
        for template in self.pattern.templates:
            terms = [_resolve(term, self.text) for term in template.terms]
            if any(codes[term] == ABSENT for term in terms):
                out.append("")
                continue
            texts = [
                f"{term.written}={columns.text(row[0], term.column, int(codes[term]), nolimit)}"
                for term in terms
                if isinstance(term.column, Column)
            ]
            out.append(" ".join(texts) or template.name)
        return out


def _resolve(term: Term, text: bool) -> Term:
    """Return the term for decision rows, cells as the thesis's columns, or for text rows, such columns as cells."""
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


# Features in a bundle: anybody may have written one, so all is checked before compiled code uses it without bounds


def to_json(features: Features) -> dict[str, Any]:
    """Return all of the features but their arrays (see `to_arrays`)."""
    return {
        "text": features.text,
        "fingerprint": features.fingerprint,
        "templates": [template_to_json(template) for template in features.pattern.templates],
    }


def to_arrays(features: Features) -> dict[str, NDArray[Any]]:
    """Return edges and centroids under their names."""
    edges = {f"edges {name}": array for name, array in features.edges.items()}
    return edges | {f"centroids {name}": array for name, array in features.centroids.items()}


def from_json(content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Features:
    """Make features of the results of `to_json` and `to_arrays`; raise `ValueError` for what no training writes."""
    templates = tuple(template_from_json(template) for template in content["templates"])
    edges, centroids = edges_from_arrays(arrays, templates), centroids_from_arrays(arrays)
    features = Features(Pattern(templates, ""), bool(content["text"]), edges, centroids)
    if not features.terms and not templates:
        raise ValueError("a model needs at least one template")
    if features.fingerprint != content["fingerprint"]:
        raise PipelineError(
            "the model's features are not those it was trained with: it was made by another version; train again"
        )
    return features


def template_to_json(template: Template) -> dict[str, Any]:
    """Return a template with everything that training it again needs; settings with their default are left out."""
    default = Template("", ())
    content: dict[str, Any] = {
        "name": template.name,
        "terms": [[*term.column, *term[1:]] for term in template.terms],
    }
    if template.streets:
        content["streets"] = list(template.streets)
    for name in ("rho1", "rho2", "minimum", "unigram", "bigram"):
        if getattr(template, name) != getattr(default, name):
            content[name] = getattr(template, name)
    return content


def template_from_json(content: Mapping[str, Any]) -> Template:
    """Make a template of the result of `template_to_json`."""
    if not isinstance(content["name"], str):
        raise ValueError("a template has no name")
    return Template(
        content["name"],
        tuple(_term(term) for term in content["terms"]),
        _penalty(content.get("rho1"), "rho1"),
        _penalty(content.get("rho2"), "rho2"),
        whole_number(content.get("minimum", 1), "minimum", 0, 1 << 40),
        tuple(whole_number(street, "a template's street", 0, 3) for street in content.get("streets", ())),
        bool(content.get("unigram", True)),
        bool(content.get("bigram", False)),
    )


def _penalty(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if not 0 <= finite_number(value, name) <= MAX_PENALTY:
        raise ValueError(f"{name} is {value:g}, not a number from 0 to {MAX_PENALTY:g}")
    return float(value)


def _term(fields: Sequence[Any]) -> Term:
    """Make a term of its JSON: offset and number of a cell, or the fields of a column, then the bins."""
    if not isinstance(fields, list) or len(fields) not in (4, 6):
        raise ValueError("a template's term is neither a cell nor a column")
    column: Cell | Column
    if len(fields) == 4:
        column = Cell(
            whole_number(fields[0], "a cell's offset", -(10**6), 10**6),
            whole_number(fields[1], "a cell's number", 0, 10**6),
        )
    else:
        column = column_from_json(fields[:4])
    if not isinstance(fields[-1], bool):
        raise ValueError("a template's term does not say how its bins are cut")
    return Term(column, whole_number(fields[-2], "a term's number of bins", 0, MAX_BINS), fields[-1])


def column_from_json(fields: Sequence[Any]) -> Column:
    """Make a column of its four fields: name, street, argument, seed.

    >>> str(column_from_json(["act", 1, 2, 0]))
    'act(flop, 2)'
    """
    if not isinstance(fields, list) or len(fields) != 4 or not isinstance(fields[0], str) or fields[0] not in COLUMNS:
        raise ValueError(f"{str(fields)[:60]} is no column")
    name, street, argument, seed = fields
    kind = COLUMNS[name]
    low, high = kind.argument or (0, 0)
    return Column(
        name,
        whole_number(street, f"the street of {name}", *((BEFORE, 3) if kind.street else (CURRENT, CURRENT))),
        whole_number(argument, f"the argument of {name}", low, high),
        whole_number(seed, f"the seed of {name}", 0, MAX_BINS),
    )


def edges_from_arrays(arrays: Mapping[str, NDArray[Any]], templates: Sequence[Template]) -> dict[str, NDArray[Any]]:
    """Return the edges of the bins of every term that is cut, by the term's text: ascending, fewer than its bins."""
    cut = {str(term): term for template in templates for term in template.terms if term.bins}
    edges = {}
    for name in arrays:
        if name.startswith("edges "):
            text = name.removeprefix("edges ")
            if text not in cut:
                raise ValueError(f"the edges {text[:40]!r} belong to no term of the pattern")
            edges[text] = expect(arrays, name, np.int64, (None,))
            expect_ascending(edges[text], name)
            if len(edges[text]) >= cut[text].bins:
                raise ValueError(f"{name!r} has {len(edges[text])} values for {cut[text].bins} bins")
    for text in cut:
        if text not in edges:
            raise ValueError(f"the edges of {text[:40]!r} are missing")
    return edges


def centroids_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the centroids by their street, number and seed: (clusters, 8) bytes, on the river (clusters, 1) words.

    The nearest one is searched outwards from a point's own sum, so their sums must not descend.
    """
    centroids = {}
    for name in arrays:
        if name.startswith("centroids "):
            text = name.removeprefix("centroids ")
            river = text.startswith("river-")
            points = expect(arrays, name, np.uint16 if river else np.uint8, (None, 1 if river else 8))
            sums = points.sum(axis=1, dtype=np.int64)
            if not 1 <= len(points) <= MAX_BINS or (sums[1:] < sums[:-1]).any():
                raise ValueError(f"{name!r} are not centroids in order of strength")
            centroids[text] = points
    return centroids


# Fitting


def fit_features(pattern: Pattern, rows: Rows, streets: Sequence[int] = (0, 1, 2, 3)) -> Features:
    """Learn the edges of bins on training rows and fetch the centroids that the pattern names."""
    if isinstance(rows, TextRows):
        return Features(pattern, True, {}, {})
    return fit_values(pattern, cut_values(pattern, rows[:: max(1, len(rows) // FITTED_ROWS)]), streets)


def _cut_terms(pattern: Pattern) -> list[Term]:
    """Return the terms of a pattern that are cut into bins."""
    return [term for term in Features(pattern, False, {}, {}).terms if term.bins and isinstance(term.column, Column)]


def cut_values(pattern: Pattern, rows: NDArray[Any] | RatedRows) -> NDArray[np.int64]:
    """Return the values (rows, terms) of the terms that are cut into bins."""
    named = [term.column for term in _cut_terms(pattern) if isinstance(term.column, Column)]
    if not named:
        return np.empty((len(rows), 0), np.int64)
    return reading.codes(rows, named, reading.cuts(named, [np.empty(0, np.int64)] * len(named), {}))


def fit_values(pattern: Pattern, values: NDArray[np.int64], streets: Sequence[int] = (0, 1, 2, 3)) -> Features:
    """Do as `fit_features`, given the `cut_values` of a sample of the training rows."""
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
        if len(seen) == 0:  # such as unknown stacks: the templates with it never fire
            bounds = np.empty(0)
        elif term.quantile:
            bounds = np.quantile(seen, np.arange(1, term.bins) / term.bins, method="higher")
        else:
            top = (term.column.kind.top if isinstance(term.column, Column) else 0) or int(seen.max())
            bounds = np.arange(1, term.bins) * (top + 1) / term.bins
        edges[str(term)] = np.unique(np.ceil(bounds)).astype(np.int64)
    empty = {term for term, value in zip(cut, values.T, strict=True) if (value == ABSENT).all()}
    silent = [next((term for term in template.terms if term in empty), None) for template in pattern.templates]
    if silent and None not in silent:
        raise PipelineError(f"no training row has a value for {silent[0]}: leave it out of the pattern")
    return Features(pattern, text, edges, centroids)


def _centroids(column: Column, streets: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Return the centroids that a cluster column needs on these streets."""
    from pipeline.poker.strength.hand_clusters import load_clusters

    if column.street >= 0:
        needed = {column.street}
    else:
        needed = {street + column.street + 1 for street in streets if street + column.street + 1 >= 0}
    centroids = {}
    for street in sorted(needed):
        size = min(column.argument, 169) if street == 0 else column.argument
        centroids[reading.centroid_name(column, street)] = load_clusters(street, size, column.seed).centroids
    return centroids


@kernel
def _hash(
    codes: NDArray[np.int64], starts: NDArray[np.int64], terms: NDArray[np.int64], seeds: Hashes, out: Hashes
) -> None:
    for row in range(len(codes)):
        for t in range(len(seeds)):
            value = hash64(seeds[t])
            for i in range(starts[t], starts[t + 1]):
                code = codes[row, terms[i]]
                if code == ABSENT:
                    value = np.uint64(0)
                    break
                value = hash64(value ^ np.uint64(code))  # a chain, so that the order of values counts
            out[row, t] = value
