"""Training rows, sorted and merged so that the gradient of a log-linear model costs little.

In: feature ids `(rows, templates)`, -1 where a template does not fire, and what was done: labels or label
distributions, legal labels as bits, row weights. Out: a `Corpus`.

A row fires at most one feature per template, and templates repeat each other (the hole ranks, the hole ranks with
the board, ...). Templates are put in an order where the one with most features comes first, each followed by those
it implies; rows are sorted by that order. Equal rows become neighbours and are merged, their label masses added;
other rows repeat their predecessor's features up to some template: `change` says which is the first that differs
and `stream` holds only the ids from there on. A pass keeps partial sums per template and so touches about a third
of the weights that a plain loop would, most in order of address: features are renumbered by first appearance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import Workers

Weights = NDArray[np.float64]
"""(features, labels) numbers: weights of a model, label counts, gradients"""
ALL_LEGAL = 255
MOST_TEMPLATES = 65_535
"""as many as the numbers in `RowChunk.change` can tell apart"""
PLAN_ROWS = 100_000
SHARE_FEATURES = 100_000
"""features of a share: sums over features are added share by share, so that they do not depend on threads"""
CHUNKS = 4
"""chunks of a corpus, each the work of one thread: their number is fixed, so that sums do not depend on threads"""


@dataclass(frozen=True)
class RowChunk:
    """A run of merged rows that one thread walks; its first row gives all its features."""

    stream: NDArray[np.int32]
    change: NDArray[np.uint16]
    legal: NDArray[np.uint8]
    mass: NDArray[np.float32]
    """of each label"""
    total: NDArray[np.float32]
    """of all labels"""


@dataclass(frozen=True)
class Corpus:
    """Merged rows in chunks, the label counts of each feature; features are numbered anew."""

    chunks: tuple[RowChunk, ...]
    templates: int
    counts: NDArray[np.float64]
    number: NDArray[np.int32]
    """The new number of each of the caller's features."""
    template: NDArray[np.int32]
    """The template of each feature in its new number, -1 for one that no row fires."""

    def rows(self) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]]:
        """Write out all merged rows in full: ids, legal bits, label masses."""
        ids = np.empty((sum(len(chunk.change) for chunk in self.chunks), self.templates), np.int32)
        start = 0
        for chunk in self.chunks:
            _expand(chunk.stream, chunk.change, ids[start : start + len(chunk.change)])
            start += len(chunk.change)
        legal = np.concatenate([chunk.legal for chunk in self.chunks])
        return ids, legal, np.concatenate([chunk.mass for chunk in self.chunks])


def build_corpus(
    ids: NDArray[np.int32],
    targets: NDArray[Any],
    *,
    features: int,
    labels: int,
    legal: NDArray[np.uint8] | None = None,
    weights: NDArray[Any] | None = None,
    workers: Workers | None = None,
    last: int = 0,
    whole: bool = True,
) -> Corpus:
    """Sort and merge rows; `targets` are label numbers `(rows,)` or label distributions `(rows, labels)`.

    The `last` templates come last in the order by which rows are sorted, for those that tell nearly all rows apart.
    Unless the rows are the `whole` of what is learned from, they may all have one label.
    """
    workers = workers or Workers(1)
    rows, templates = ids.shape
    if rows == 0:
        raise PipelineError("there are no rows to train on: check the agent, the street and the split")
    if templates > MOST_TEMPLATES:
        raise PipelineError(f"the pattern has {templates:,} templates: at most {MOST_TEMPLATES:,} can be trained")
    if legal is None:
        legal = np.full(rows, ALL_LEGAL, np.uint8)
    mass = _label_masses(targets, labels, weights, whole)
    wrong = _first_illegal(legal, mass)
    if wrong >= 0:
        raise PipelineError(f"row {wrong} has a label that its legal actions exclude: ingest the data again")
    plan = np.append(_order_templates(ids[:, : templates - last]), np.arange(templates - last, templates))
    # a radix sort: stable sorts from the least key to the first; rows that differ in legal labels only are never merged
    order = _counting_sort(legal.astype(np.int32), np.arange(rows, dtype=np.int32), 256)
    for template in plan[::-1]:
        order = _counting_sort(np.ascontiguousarray(ids[:, template]), order, features)
    # cut by rows into a fixed number of chunks: threads may be more or fewer, sums are the same
    parts = workers.map(
        lambda part: _merge_rows(ids, order[part], plan, legal, mass),
        workers.slices(rows, parts=CHUNKS),
    )
    chunks = tuple(RowChunk(*part, part[3].sum(axis=1)) for part in parts)
    number = np.full(features, -1, np.int32)
    # numbers by first appearance: a pass over the rows then reads weights nearly in order of address
    used = 0
    for chunk in chunks:
        used = _renumber(chunk.stream, number, used)
    number[number < 0] = np.arange(used, features, dtype=np.int32)
    counts = np.zeros((features, labels))
    template = np.full(features, -1, np.int32)
    for chunk in chunks:
        _count_labels(chunk.stream, chunk.change, chunk.mass, plan, counts, template)
    return Corpus(chunks, templates, counts, number, template)


def _label_masses(targets: NDArray[Any], labels: int, weights: NDArray[Any] | None, whole: bool) -> NDArray[np.float32]:
    """Return the label mass of each row, checked."""
    if targets.ndim == 1:
        mass = np.zeros((len(targets), labels), np.float32)
        mass[np.arange(len(targets)), targets] = 1
    else:
        mass = targets.astype(np.float32)
    if weights is not None:
        mass *= weights.astype(np.float32)[:, None]
    total = mass.sum(axis=0, dtype=np.float64)
    if not np.isfinite(total).all() or mass.min() < 0:
        raise PipelineError("row weights or label distributions hold a negative or non-finite value: mend the rows")
    if whole and np.count_nonzero(total) < 2:
        raise PipelineError(f"all {len(mass):,} rows have the same label: a model needs at least two to tell apart")
    return mass


def _order_templates(ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Order templates: most features first, each followed by those it implies (judged on a sample)."""
    sample = np.ascontiguousarray(ids[:: max(1, len(ids) // PLAN_ROWS)].T).astype(np.int64)
    pending = sorted(range(len(sample)), key=lambda t: -len(np.unique(sample[t])))
    group = np.zeros(sample.shape[1], np.int64)
    plan: list[int] = []
    while pending:
        plan.append(pending.pop(0))
        # rows that agree in all templates of the plan so far have one group number: pairs as one integer
        group = np.unique(group * (1 << 32) + sample[plan[-1]], return_inverse=True)[1].astype(np.int64)
        seen = np.empty(len(group), np.int64)
        implied = [t for t in pending if _is_implied(group, sample[t], seen)]
        plan += implied
        pending = [t for t in pending if t not in implied]
    return np.array(plan, np.int64)


@kernel
def _is_implied(group: NDArray[np.int64], column: NDArray[np.int64], seen: NDArray[np.int64]) -> bool:
    """Return whether rows of the same group always have the same value in the column."""
    seen[:] = -2
    for i in range(len(group)):
        if seen[group[i]] == -2:
            seen[group[i]] = column[i]
        elif seen[group[i]] != column[i]:
            return False
    return True


@kernel
def _first_illegal(legal: NDArray[np.uint8], mass: NDArray[np.float32]) -> int:
    """Return the first row with mass on a label that is not legal, -1 if there is none."""
    for i in range(len(legal)):
        for j in range(mass.shape[1]):
            if mass[i, j] > 0 and legal[i] != 255 and (legal[i] >> j) & 1 == 0:
                return i
    return -1


@kernel
def _counting_sort(column: NDArray[np.int32], order: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """Sort `order` again by the values (-1 to size - 1) of the column; equal ones stay as they were (a stable sort)."""
    # start[k + 1] becomes the first place of value k; values begin at -1
    start = np.zeros(size + 2, np.int64)
    for i in range(len(column)):
        start[column[i] + 2] += 1
    for k in range(size + 1):
        start[k + 1] += start[k]
    out = np.empty_like(order)
    for i in range(len(order)):
        k = column[order[i]] + 1
        out[start[k]] = order[i]
        start[k] += 1
    return out


@kernel
def _merge_rows(
    ids: NDArray[np.int32],
    order: NDArray[np.int32],
    plan: NDArray[np.int64],
    legal: NDArray[np.uint8],
    mass: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.uint8], NDArray[np.float32]]:
    """Merge equal neighbours of the sorted rows and keep of each row only what differs from the one before."""
    templates, labels = len(plan), mass.shape[1]
    # a first pass only counts, so that memory for the merged rows is taken once and exactly
    rows = stream_size = 0
    for i in range(len(order)):
        same = 0 if i == 0 else _shared_templates(ids, order[i], order[i - 1], plan)
        if i == 0 or same < templates or legal[order[i]] != legal[order[i - 1]]:
            rows += 1
            stream_size += templates - same
    stream = np.empty(stream_size, np.int32)
    change = np.empty(rows, np.uint16)
    new_legal = np.empty(rows, np.uint8)
    new_mass = np.zeros((rows, labels), np.float32)
    written_rows = -1
    stream_end = 0
    for i in range(len(order)):
        row = order[i]
        same = 0 if i == 0 else _shared_templates(ids, row, order[i - 1], plan)
        if i == 0 or same < templates or legal[row] != legal[order[i - 1]]:
            written_rows += 1
            change[written_rows] = same
            new_legal[written_rows] = legal[row]
            for q in range(same, templates):
                stream[stream_end] = ids[row, plan[q]]
                stream_end += 1
        for j in range(labels):
            new_mass[written_rows, j] += mass[row, j]
    return stream, change, new_legal, new_mass


@kernel(leaf=True)
def _shared_templates(ids: NDArray[np.int32], a: int, b: int, plan: NDArray[np.int64]) -> int:
    """Count the templates, in the order of the plan, that give two rows the same feature before one differs."""
    q = 0
    while q < len(plan) and ids[a, plan[q]] == ids[b, plan[q]]:
        q += 1
    return q


@kernel
def _renumber(stream: NDArray[np.int32], number: NDArray[np.int32], used: int) -> int:
    """Number features by first appearance and rewrite the stream."""
    for i in range(len(stream)):
        k = stream[i]
        if k >= 0:
            if number[k] < 0:
                number[k] = used
                used += 1
            stream[i] = number[k]
    return used


@kernel
def _expand(stream: NDArray[np.int32], change: NDArray[np.uint16], ids: NDArray[np.int32]) -> None:
    """Write out every row in full."""
    position = 0
    for row in range(len(change)):
        for q in range(change[row]):
            ids[row, q] = ids[row - 1, q]
        for q in range(change[row], ids.shape[1]):
            ids[row, q] = stream[position]
            position += 1


@kernel
def _count_labels(
    stream: NDArray[np.int32],
    change: NDArray[np.uint16],
    mass: NDArray[np.float32],
    plan: NDArray[np.int64],
    counts: NDArray[np.float64],
    template: NDArray[np.int32],
) -> None:
    """Add each row's label masses to the counts of its features."""
    current = np.empty(len(plan), np.int32)
    position = 0
    for row in range(len(change)):
        for q in range(change[row], len(plan)):
            current[q] = stream[position]
            position += 1
            if current[q] >= 0:
                template[current[q]] = plan[q]
        for q in range(len(plan)):
            if current[q] >= 0:
                for j in range(mass.shape[1]):
                    counts[current[q], j] += mass[row, j]
