"""An agent's raises in, the table of its amounts out (`pipeline.models.sizes`): which contexts are worth keeping.

Every context is described by atoms in one unit: the raises in it, sorted by their size in that unit, fall into clusters
whose members one number explains once it is rounded to chips (the fewest numbers that do, by going through the
intervals from left to right). Clusters with a small share are put together, so that amounts spread evenly over a range
become some thirty quantiles. Of the units the one with the lowest CRPS is taken.

A context is kept only where it foretells its raises better than the more general one that would be used instead. To
compare, the CRPS of a context of n raises counts (n / (n - 1))^2 times, which is exactly what leaving out the raise
that is foretold does to the CRPS of an empirical distribution. So a context seen once is never kept, and one whose
raises are alike is kept from the second on. The first to be compared with is the fixed size of the label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.load import Decisions
from pipeline.models.sizes import (
    BASE,
    BLINDS,
    FACED,
    HISTORY_LEVELS,
    HISTORY_UNITS,
    LEVELS,
    LOG_UNITS,
    POT,
    TOTAL,
    Sizes,
    SizeTable,
    atom_chips,
    clamp_to_class,
    context_key,
    fixed_amounts,
    raised_by,
    start_stacks,
)
from pipeline.poker.game import Game
from pipeline.poker.rules import ALL_IN, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

SMALL_SHARE = 1 / 32
"""clusters with a smaller share are put together until they have it"""
MOST_ATOMS = 68
"""a context cannot have more: those with a share of their own, and between them groups that have it nearly"""
LEAST_GAIN = 1e-9
"""a difference of scores that is more than rounding"""


class _Units(NamedTuple):
    """Units that raises may be multiples of."""

    start: Array
    """(players,) the stacks at the start of a hand, where units need them"""
    units: tuple[int, ...]


class _Contexts(NamedTuple):
    """Unit and atoms of the contexts of a level."""

    units: Array
    """(contexts,) the unit of each"""
    sizes: Array
    """(contexts,) how many atoms each has; 0 for one that is not kept"""
    values: Array
    """all atoms' values, context after context"""
    shares: Array


def raises_of(pieces: Iterable[Decisions]) -> tuple[Array, Array, Array]:
    """Select the raises among decisions, all-in aside: OBSERVATION rows, labels and totals."""
    pieces_found = []
    for piece in pieces:
        index = np.flatnonzero((piece.action >= RAISE) & (piece.action < ALL_IN) & ~piece.validation)
        pieces_found.append(
            (piece.rows[index], piece.action[index].astype(np.int64), piece.amount[index].astype(np.int64))
        )
    rows, labels, totals = (np.concatenate(parts) for parts in zip(*pieces_found, strict=True))
    return rows, labels, totals


def fit_sizes(game: Game, rows: Array, labels: Array, totals: Array) -> Sizes | None:
    """Fit the table of an agent's amounts.

    Parameters: `rows` OBSERVATION of the decisions in which it raised, `labels` (rows) of these raises, `totals` (rows)
    that it raised to. Returns none where no context is better than the fixed sizes.
    """
    return _fit_table(rows, labels, raised_by(game, rows, totals).astype(np.int64), start_stacks(game), LOG_UNITS)


def history_raises(pieces: Iterable[tuple[Decisions, Array]]) -> tuple[Array, Array, Array]:
    """Select the raises of hand histories, all-in aside: OBSERVATION rows, labels, chips beyond the bet."""
    pieces_found = []
    for piece, by in pieces:
        index = np.flatnonzero((piece.action >= RAISE) & (piece.action < ALL_IN) & ~piece.validation & (by > 0))
        pieces_found.append((piece.rows[index], piece.action[index].astype(np.int64), by[index]))
    rows, labels, beyond = (np.concatenate(parts) for parts in zip(*pieces_found, strict=True))
    return rows, labels, beyond


def fit_history_sizes(game: Game, rows: Array, labels: Array, by: Array) -> Sizes | None:
    """Fit the table as `fit_sizes` does, from hand histories: `by` (rows) are the chips beyond the highest bet."""
    return _fit_table(rows, labels, by, start_stacks(game), HISTORY_UNITS)


def _fit_table(rows: Array, labels: Array, by: Array, start: Array, units: tuple[int, ...]) -> Sizes | None:
    """Fit the table of raises `by` a number of chips, trying each of `units`."""
    after = (rows["pot"] + rows["to_call"]).astype(np.float64)
    score = np.abs(fixed_amounts(rows, labels) - by) / after
    levels = []
    keys = np.empty(len(rows), np.uint64)
    depth = len(LEVELS) if units == LOG_UNITS else HISTORY_LEVELS
    for level in range(depth):
        _keys(rows, labels, level, keys)
        order = np.argsort(keys, kind="stable")
        bounds = np.append(np.flatnonzero(np.diff(keys[order], prepend=keys[order][:1] + np.uint64(1))), len(rows))
        levels.append(_fit_level(rows, labels, by, _Units(start, units), keys, order, bounds, score))
    parts = [np.concatenate(columns) for columns in zip(*levels, strict=True)]
    keys_kept, sizes, chosen_units, values, shares = parts
    if len(keys_kept) == 0:
        return None
    order = np.argsort(keys_kept)
    begins = np.append(0, np.cumsum(sizes))
    chosen = np.concatenate([np.arange(begins[i], begins[i + 1]) for i in order])
    starts = np.append(0, np.cumsum(sizes[order])).astype(np.int64)
    table = SizeTable(keys_kept[order], starts, chosen_units[order], values[chosen], shares[chosen])
    kept_contexts = dict(zip(LEVELS[:depth], (len(columns[0]) for columns in levels), strict=True))
    return Sizes(table, start, {"raises": len(rows), "contexts": kept_contexts})


def _fit_level(
    rows: Array, labels: Array, by: Array, units_tried: _Units, keys: Array, order: Array, bounds: Array, score: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the kept contexts of a level: keys, numbers of atoms, units, and all atoms' values and shares in turn."""
    groups = len(bounds) - 1
    room = int(np.minimum(np.diff(bounds), MOST_ATOMS).sum())
    contexts = _Contexts(np.zeros(groups, np.uint8), np.zeros(groups, np.int64), np.zeros(room), np.zeros(room))
    filled = _fit(rows, labels, by, units_tried, order, bounds, score, contexts)
    used = np.flatnonzero(contexts.sizes)
    return (
        keys[order[bounds[used]]],
        contexts.sizes[used],
        contexts.units[used],
        contexts.values[:filled],
        contexts.shares[:filled],
    )


@kernel
def _keys(rows: Array, labels: Array, level: int, out: Array) -> None:
    for i in range(rows.shape[0]):
        out[i] = context_key(rows[i], labels[i], level)


@kernel(leaf=True)
def _measured(row: Any, by: int, base: int, unit: int) -> tuple[float, float]:
    """Return a raise in a unit, and half a chip in that unit; negative if the unit does not apply."""
    amount = float(by)
    if unit == POT:
        whole = float(row.pot) + row.to_call
    elif unit == BASE:
        whole = float(base)
    elif unit == TOTAL:
        whole = float(row.big_blind)
        amount += base
    elif unit == FACED:
        whole = float(row.to_call)
    elif unit == BLINDS:
        whole = float(row.big_blind)
    else:
        whole = float(row.stack) - row.to_call
    if whole <= 0:
        return -1.0, 0.0
    return amount / whole, 0.5 / whole


@kernel(leaf=True)
def _clusters(sizes: Array, halves: Array, values: Array, shares: Array) -> int:
    """Write the atoms of ascending sizes, each known to `halves`; returns how many."""
    n = sizes.size
    count, first = 0, 0
    group_share, group_first = 0.0, 0
    while first < n:
        # as many raises as one number explains: going on from the left gives the fewest numbers for all intervals
        low, high = sizes[first] - halves[first], sizes[first] + halves[first]
        last = first + 1
        while last < n and sizes[last] - halves[last] < high:
            low = max(low, sizes[last] - halves[last])
            high = min(high, sizes[last] + halves[last])
            if low >= high:
                break
            last += 1
        share = (last - first) / n
        if share >= SMALL_SHARE or group_share + share >= SMALL_SHARE or last == n:
            if group_share > 0 and share >= SMALL_SHARE:
                values[count] = sizes[(group_first + first) // 2]
                shares[count] = group_share
                count += 1
                group_share = 0.0
            if group_share > 0:
                values[count] = sizes[(group_first + last) // 2]
                shares[count] = group_share + share
            else:
                middle = sizes[(first + last) // 2]
                low, high = sizes[first] - halves[first], sizes[first] + halves[first]
                for i in range(first + 1, last):
                    low = max(low, sizes[i] - halves[i])
                    high = min(high, sizes[i] + halves[i])
                values[count] = middle if low < middle < high else (low + high) / 2
                shares[count] = share
            count += 1
            group_share = 0.0
        else:
            if group_share == 0.0:
                group_first = first
            group_share += share
        first = last
    return count


@kernel(leaf=True)
def _crps(row: Any, label: int, by: int, base: int, unit: int, values: Array, shares: Array, count: int) -> float:
    """Return the CRPS of a raise under atoms, in pots: mean distance less half the mean distance between two draws."""
    distance, spread, below, weighted = 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        chips = float(clamp_to_class(row, label, atom_chips(row, unit, values[j], base)))
        distance += shares[j] * abs(chips - by)
        spread += shares[j] * (chips * below - weighted)
        below += shares[j]
        weighted += shares[j] * chips
    return (distance - spread) / (float(row.pot) + row.to_call)


@kernel
def _fit(
    rows: Array,
    labels: Array,
    by: Array,
    units_tried: _Units,
    order: Array,
    bounds: Array,
    score: Array,
    contexts: _Contexts,
) -> int:
    """Describe each context, keep it where it is better than `score`, which is brought up to date; returns atoms."""
    units, sizes, all_values, all_shares = contexts
    start = units_tried.start
    filled = 0
    values, shares = np.zeros(MOST_ATOMS), np.zeros(MOST_ATOMS)
    for group in range(bounds.size - 1):
        first, last = bounds[group], bounds[group + 1]
        n = last - first
        if n < 2:
            continue
        before = 0.0
        for i in range(first, last):
            before += score[order[i]]
        measured, halves = np.empty(n), np.empty(n)
        best_score, best_unit = before - LEAST_GAIN, -1
        for unit in units_tried.units:
            sound = True
            for i in range(n):
                row_number = order[first + i]
                row = rows[row_number]
                base = start[row.position] - row.stack + row.to_call
                measured[i], halves[i] = _measured(row, by[row_number], base, unit)
                sound = sound and measured[i] >= 0
            if not sound:
                continue
            ascending = np.argsort(measured)
            count = _clusters(measured[ascending], halves[ascending], values, shares)
            total = 0.0
            for i in range(first, last):
                row_number = order[i]
                row = rows[row_number]
                base = start[row.position] - row.stack + row.to_call
                total += _crps(row, labels[row_number], by[row_number], base, unit, values, shares, count)
            total *= (n / (n - 1)) ** 2  # as if each raise had been left out of what foretells it
            if total < best_score:
                best_score, best_unit = total - LEAST_GAIN, unit
                sizes[group] = count
                all_values[filled : filled + count] = values[:count]
                all_shares[filled : filled + count] = shares[:count]
        if best_unit < 0:
            continue
        units[group] = best_unit
        count = sizes[group]
        values[:count] = all_values[filled : filled + count]
        shares[:count] = all_shares[filled : filled + count]
        for i in range(first, last):
            row_number = order[i]
            row = rows[row_number]
            base = start[row.position] - row.stack + row.to_call
            own = _crps(row, labels[row_number], by[row_number], base, best_unit, values, shares, count)
            score[row_number] = own * (n / (n - 1)) ** 2
        filled += count
    return filled
