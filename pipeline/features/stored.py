"""Features as a bundle keeps them: JSON and arrays back into columns, templates, edges of bins and centroids.

In: what a manifest and a safetensors file hold, which anybody may have written. Out: columns, templates, edges and
centroids that compiled code can use without looking at bounds; anything else raises `ValueError` with a sentence. It is
a room of its own so that all checks of stored features stand in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.features.columns import BEFORE, COLUMNS, CURRENT, Column
from pipeline.features.patterns import Cell, Template, Term
from pipeline.runtime.arrays import expect, expect_ascending, whole_number

BINS = 65535
STRENGTH = 1e9
"""no penalty of a pattern is larger"""


def template_to_json(template: Template) -> dict[str, Any]:
    """A template with everything that training it again needs; settings that are the usual ones are left out."""
    usual = Template("", ())
    kept: dict[str, Any] = {
        "name": template.name,
        "terms": [[*term.column, *term[1:]] for term in template.terms],
    }
    if template.streets:
        kept["streets"] = list(template.streets)
    for name in ("rho1", "rho2", "minimum", "unigram", "bigram"):
        if getattr(template, name) != getattr(usual, name):
            kept[name] = getattr(template, name)
    return kept


def template_from_json(kept: Mapping[str, Any]) -> Template:
    """The inverse of `template_to_json`."""
    if not isinstance(kept["name"], str):
        raise ValueError("a template has no name")
    return Template(
        kept["name"],
        tuple(_term(term) for term in kept["terms"]),
        _penalty(kept.get("rho1"), "rho1"),
        _penalty(kept.get("rho2"), "rho2"),
        whole_number(kept.get("minimum", 1), "minimum", 0, 1 << 40),
        tuple(whole_number(street, "a template's street", 0, 3) for street in kept.get("streets", ())),
        bool(kept.get("unigram", True)),
        bool(kept.get("bigram", False)),
    )


def _penalty(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= STRENGTH:
        raise ValueError(f"{name} is {str(value)[:40]}, not a number of zero or more")
    return float(value)


def _term(kept: Sequence[Any]) -> Term:
    """A term from its JSON: offset and number of a cell, or the fields of a column, then the bins."""
    if not isinstance(kept, list) or len(kept) not in (4, 6):
        raise ValueError("a template's term is neither a cell nor a column")
    column: Cell | Column
    if len(kept) == 4:
        column = Cell(
            whole_number(kept[0], "a cell's offset", -(10**6), 10**6),
            whole_number(kept[1], "a cell's number", 0, 10**6),
        )
    else:
        column = column_from_json(kept[:4])
    if not isinstance(kept[-1], bool):
        raise ValueError("a template's term does not say how its bins are cut")
    return Term(column, whole_number(kept[-2], "a term's number of bins", 0, BINS), kept[-1])


def column_from_json(kept: Sequence[Any]) -> Column:
    """A column from its four fields: name, street, argument, seed.

    >>> str(column_from_json(["act", 1, 2, 0]))
    'act(flop, 2)'
    """
    if not isinstance(kept, list) or len(kept) != 4 or not isinstance(kept[0], str) or kept[0] not in COLUMNS:
        raise ValueError(f"{str(kept)[:60]} is no column")
    name, street, argument, seed = kept
    kind = COLUMNS[name]
    low, high = kind.argument or (0, 0)
    return Column(
        name,
        whole_number(street, f"the street of {name}", *((BEFORE, 3) if kind.street else (CURRENT, CURRENT))),
        whole_number(argument, f"the argument of {name}", low, high),
        whole_number(seed, f"the seed of {name}", 0, BINS),
    )


def edges_from_arrays(arrays: Mapping[str, NDArray[Any]], templates: Sequence[Template]) -> dict[str, NDArray[Any]]:
    """The edges of the bins of every term that is cut, by the term's text: ascending, fewer than its bins."""
    cut = {str(term): term for template in templates for term in template.terms if term.bins}
    found = {}
    for name in arrays:
        if name.startswith("edges "):
            text = name.removeprefix("edges ")
            if text not in cut:
                raise ValueError(f"the edges {text[:40]!r} belong to no term of the pattern")
            found[text] = expect(arrays, name, np.int64, (None,))
            expect_ascending(found[text], name)
            if len(found[text]) >= cut[text].bins:
                raise ValueError(f"{name!r} has {len(found[text])} values for {cut[text].bins} bins")
    for text in cut:
        if text not in found:
            raise ValueError(f"the edges of {text[:40]!r} are missing")
    return found


def centroids_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The centroids by their street, number and seed: (clusters, 8) bytes, on the river (clusters, 1) words.

    The nearest one is looked for outwards from a point's own sum, so their sums must not descend.
    """
    found = {}
    for name in arrays:
        if name.startswith("centroids "):
            text = name.removeprefix("centroids ")
            river = text.startswith("river-")
            kept = expect(arrays, name, np.uint16 if river else np.uint8, (None, 1 if river else 8))
            sums = kept.sum(axis=1, dtype=np.int64)
            if not 1 <= len(kept) <= BINS or (sums[1:] < sums[:-1]).any():
                raise ValueError(f"{name!r} are not centroids in order of strength")
            found[text] = kept
    return found
