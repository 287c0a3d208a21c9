"""The amounts an agent bets in no-limit games: the totals behind its raise labels, and their shares.

Rows and models have raises by the fixed labels `s h p o a`; a `Sizes` table has the amounts that the agent really bets
when it takes one of them. It is a set of *contexts*, from general (the label alone) to specific (the label, the whole
betting, pot and bet faced in chips), each with *atoms*: amounts in a unit that explains them best, and their shares.
The most specific context of a situation that the table has is used. In go OBSERVATION rows and labels, out come
`Amounts`.

An amount here is `by`: the chips beyond the highest bet, by which labels are classed; `rules.amount_of` makes
the total of it. Amounts stay inside the label's class, so that label and amount always agree. Players do not bet a few
chips short of all-in: `move_to_all_in` gives the share of such amounts to the label all-in, and `Sizes.amounts` leaves
them out.

Bundles store such a table, `training.sizing` makes it, policies, matches and evaluation ask it. Its arrays may come
from anybody's file, so `load` checks all that kernels rely on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.game import Game
from pipeline.poker.rules import ACPC, ALL_IN, CALL, CLASS_SIZES, NO_STACK, R_RULE_SET, RAISE, class_start
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import expect, expect_ascending, whole_number
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64, lower_bound

LEVELS = (
    "label",
    "street",
    "street, position, raises",
    "street, position, raises, bet faced",
    "street, position, betting of the street, bet faced",
    "betting of all streets",
    "betting of all streets, pot, chips to call",
)
"""the parts of a context, from general to specific, the label always included"""
UNITS = ("pot", "highest bet", "total in big blinds", "bet faced", "stack", "big blinds")
"""the units of an atom: the raise beyond the highest bet as a share of the pot after calling, of the highest
bet, of the chips to call, of the stack after calling; the raise's total in big blinds; the raise beyond the highest
bet in big blinds"""
POT, BASE, TOTAL, FACED, STACK, BLINDS = range(6)
LOG_UNITS, HISTORY_UNITS = (POT, BASE, TOTAL, FACED, STACK), (POT, FACED, STACK, BLINDS)
"""the units of tables from ACPC logs, and from hand histories: there the highest bet is not known from a row alone"""
HISTORY_LEVELS = len(LEVELS) - 1
"""levels of the tables of hand histories: chips mean something else at every stake"""
FACED_LIMITS = (0.15, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.05, 1.3, 1.7, 2.5, 5.0)
"""upper ends of classes of bets faced, as shares of the pot before the bet"""
MOST_AMOUNT = 1e9
"""no amount in any unit is larger"""
MOST_ATOMS = 1_000
"""no context has more: every row that is looked up gets all amounts of its context"""
LEAST_SHARE = 1e-12
"""no amount was bet more rarely: shares are divided by the sum of some of them"""


class Amounts(NamedTuple):
    """Amounts that an agent may bet with given labels: a few for each row, possibly none."""

    starts: Array
    """(rows + 1) int64: row i has the amounts `starts[i]` to `starts[i + 1]`"""
    by: Array
    """int64: chips beyond the highest bet"""
    share: Array
    """float64: relative frequencies; a row's sum to 1"""


@kernel(leaf=True)
def context_key(row: Any, label: int, level: int) -> Any:
    """Return the hash of a row's context of a level."""
    key = hash64(np.uint64(level * 8 + label))
    if level >= 5:
        for street in range(4):
            key = hash64(key ^ np.uint64(row.betting_codes[street]))
        if level == 6:
            key = hash64(hash64(key ^ np.uint64(row.pot)) ^ np.uint64(row.to_call))
        return key
    if level >= 1:
        key = hash64(key ^ np.uint64(row.street))
    if level >= 2:
        key = hash64(key ^ np.uint64(row.position))
        betting = row.betting_codes[row.street] if level == 4 else np.int64(min(row.raises, 3))
        key = hash64(key ^ np.uint64(betting))
    if level >= 3:
        faced = 0
        if row.to_call > 0:
            share = row.to_call / max(row.pot - row.to_call, 1)
            faced = 1
            for limit in FACED_LIMITS:
                faced += share >= limit
        key = hash64(key ^ np.uint64(faced))
    return key


@kernel(leaf=True)
def _context(keys: Array, row: Any, label: int) -> int:
    """Return the most specific context of a row in the table, -1 if there is none."""
    # from specific to general: the first level that has the context is the one that was worth keeping
    for level in range(6, -1, -1):
        key = context_key(row, label, level)
        place = lower_bound(keys, key)
        if place < keys.size and keys[place] == key:
            return int(place)
    return -1


@kernel(leaf=True)
def clamp_to_class(row: Any, label: int, by: float) -> int:
    """Return the nearest whole number of chips to `by` in the label's class; the smallest raise is not checked."""
    after = int(row.pot) + int(row.to_call)
    last = int(row.stack) - int(row.to_call) - 1 if row.stack > 0 else 2**31
    if label + 1 < ALL_IN:
        last = min(last, class_start(after, label + 1) - 1)
    return max(min(int(np.floor(by + 0.5)), last), class_start(after, label))


@kernel(leaf=True)
def atom_chips(row: Any, unit: int, value: float, base: int) -> float:
    """Return an atom as chips beyond the highest bet, which is `base`."""
    if unit == POT:
        return value * (np.int64(row.pot) + row.to_call)
    if unit == BASE:
        return value * base
    if unit == TOTAL:
        return value * row.big_blind - base
    if unit == FACED:
        return value * row.to_call
    if unit == BLINDS:
        return value * row.big_blind
    return value * (row.stack - row.to_call)


@kernel(leaf=True)
def _fixed(row: Any, label: int) -> int:
    """Return the label's fixed size in chips beyond the highest bet, as `rules.size_of`."""
    after = np.int64(row.pot) + row.to_call
    by = max(CLASS_SIZES[label - RAISE] * after // 4, class_start(after, label))
    behind = np.int64(row.stack) - row.to_call
    return by if row.stack == 0 or by < behind else (class_start(after, label) + behind - 1) // 2


@kernel(leaf=True)
def _is_short(row: Any, by: int) -> bool:
    """Return whether a raise would leave less than a big blind behind: such a player goes all-in."""
    least = max(np.int64(row.big_blind), np.int64(row.to_call))
    return row.stack > 0 and row.stack - row.to_call - max(by, least) < row.big_blind


@kernel(leaf=True)
def _atom(row: Any, label: int, unit: int, value: float, base: int) -> tuple[int, bool]:
    """Return an atom's chips beyond the highest bet, clamped to the label's class, and whether it becomes all-in."""
    chips = atom_chips(row, unit, value, base)
    clamped = clamp_to_class(row, label, chips)
    return clamped, _is_short(row, max(int(chips), clamped))


@kernel(leaf=True)
def _may_be_short(row: Any, label: int) -> bool:
    """Return whether the largest amount of a class leaves less than a big blind behind."""
    if label + 1 == ALL_IN:
        return True
    return _is_short(row, class_start(np.int64(row.pot) + row.to_call, label + 1) - 1)


@kernel
def _amounts(
    rows: Array, labels: Array, start: Array, table: Any, whole_mix: bool, starts: Array, by: Array, share: Array
) -> None:
    """Fill in the amounts of each row; with empty `by` only `starts` is filled."""
    counted = by.size == 0
    end = 0
    for i in range(rows.shape[0]):
        starts[i] = end
        row, label = rows[i], int(labels[i])
        context = _context(table.keys, row, label) if RAISE <= label < ALL_IN else -1
        if context < 0:
            continue
        base = start[row.position] - row.stack + row.to_call
        first, total = end, 0.0
        for j in range(table.starts[context], table.starts[context + 1]):
            chips, short = _atom(row, label, table.units[context], table.values[j], base)
            if short and not whole_mix:
                continue
            if not counted:
                by[end] = chips
                share[end] = table.shares[j]
            total += table.shares[j]
            end += 1
        if not counted:
            for j in range(first, end):
                share[j] /= total
    starts[rows.shape[0]] = end


@kernel
def _commit(rows: Array, start: Array, table: Any, mix: Array) -> None:
    """Move the part of each raise label that would leave next to nothing behind to all-in, in place."""
    for i in range(rows.shape[0]):
        row = rows[i]
        if (row.legal >> ALL_IN) & 1 == 0 or row.stack == 0:
            continue
        for label in range(RAISE, ALL_IN):
            if mix[i, label] == 0.0 or not _may_be_short(row, label):
                continue
            context = _context(table.keys, row, label)
            short = 0.0
            if context < 0:
                after = np.int64(row.pot) + row.to_call
                short = 1.0 if _is_short(row, CLASS_SIZES[label - RAISE] * after // 4) else 0.0
            else:
                base = start[row.position] - row.stack + row.to_call
                for j in range(table.starts[context], table.starts[context + 1]):
                    if _atom(row, label, table.units[context], table.values[j], base)[1]:
                        short += table.shares[j]
            moved = mix[i, label] if short > 1.0 - 1e-9 else mix[i, label] * short
            mix[i, ALL_IN] += moved
            mix[i, label] -= moved


@kernel
def _draw(starts: Array, by: Array, share: Array, draws: Array, out: Array) -> None:
    """Fill in one amount for each row by the inverse of its cumulative shares; -1 where a row has none."""
    for i in range(out.shape[0]):
        out[i] = -1
        remaining = draws[i]
        for j in range(starts[i], starts[i + 1]):
            out[i] = by[j]
            remaining -= share[j]
            if remaining < 0:
                break


@kernel
def _fix(rows: Array, labels: Array, out: Array) -> None:
    """Fill in the fixed size of each row's label."""
    for i in range(rows.shape[0]):
        out[i] = _fixed(rows[i], labels[i]) if RAISE <= labels[i] < ALL_IN else 0


class SizeTable(NamedTuple):
    """Contexts and their atoms as arrays for kernels."""

    keys: Array
    """(contexts) uint64, ascending"""
    starts: Array
    """(contexts + 1) int64: the atoms of each"""
    units: Array
    """(contexts) uint8"""
    values: Array
    """(atoms) float64, ascending within a context"""
    shares: Array
    """(atoms) float64, of each context 1 together"""


@dataclass(frozen=True, repr=False)
class Sizes:
    """Amounts of one agent in one game."""

    table: SizeTable
    start: Array
    """(players) int64: the stacks at the start of a hand"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """raises it was made from, contexts of each level"""

    def __repr__(self) -> str:
        return f"<Sizes: {len(self.table.keys):,} contexts, {len(self.table.values):,} amounts>"

    def amounts(self, rows: Array, labels: Array, *, whole_mix: bool = False) -> Amounts:
        """Return the amounts bet with each row's label.

        Parameters: `rows` OBSERVATION, `labels` (rows) the raise labels; other labels and unknown situations have no
        amounts. `whole_mix` includes amounts that leave less than a big blind behind, which are played
        as all-in.
        """
        chosen = np.ascontiguousarray(labels, np.int64)
        starts, none, no_share = np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0)
        _amounts(rows, chosen, self.start, self.table, whole_mix, starts, none, no_share)
        by, share = np.zeros(starts[-1], np.int64), np.zeros(starts[-1])
        if len(by) > 0:
            _amounts(rows, chosen, self.start, self.table, whole_mix, starts, by, share)
        return Amounts(starts, by, share)

    def for_game(self, game: Game) -> Sizes:
        """Return the same amounts for another game: one that a bundle of hand histories plays."""
        return replace(self, start=start_stacks(game))

    def to_json(self) -> dict[str, Any]:
        """Return its entry in a manifest."""
        return {"levels": len(LEVELS), "units": len(UNITS), "about": dict(self.about)}

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays of the file."""
        return self.table._asdict()

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, Array], game: Game | None) -> Sizes:
        """Restore it from a manifest's entry and a file's arrays; unsound ones raise `ValueError`."""
        if game is None or not (has_amounts(game) or is_history_game(game)):
            raise ValueError("it has amounts for a game without them")
        whole_number(entry["levels"], "the levels of its amounts", len(LEVELS), len(LEVELS))
        whole_number(entry["units"], "the units of its amounts", len(LOG_UNITS), len(UNITS))
        if not isinstance(entry["about"], dict):
            raise ValueError("it says nothing about its amounts")
        keys = expect(arrays, "keys", np.uint64, (None,))
        expect_ascending(keys, "keys")
        starts = expect(arrays, "starts", np.int64, (len(keys) + 1,), 0, 1 << 40)
        values = expect(arrays, "values", np.float64, (None,), 0, MOST_AMOUNT)
        shares = expect(arrays, "shares", np.float64, (len(values),), LEAST_SHARE, 1)
        expect_ascending(starts, "starts")
        if np.diff(starts).max(initial=0) > MOST_ATOMS:
            raise ValueError(f"one of its contexts has more than {MOST_ATOMS} amounts")
        if starts[0] != 0 or starts[-1] != len(values):
            raise ValueError("its contexts do not divide its amounts")
        if len(keys) and not np.allclose(np.add.reduceat(shares, starts[:-1]), 1.0, atol=1e-6):
            raise ValueError("the shares of its amounts do not sum to 1")
        units = expect(arrays, "units", np.uint8, (len(keys),), 0, len(UNITS) - 1)
        if not np.isin(units, HISTORY_UNITS if is_history_game(game) else LOG_UNITS).all():
            raise ValueError("its amounts are in units that its game does not have")
        return cls(SizeTable(keys, starts, units, values, shares), start_stacks(game), entry["about"])


def has_amounts(game: Game) -> bool:
    """Return whether raises of a game have sizes to choose and its rows have stacks, so that totals can be computed."""
    return game.nolimit and max(game.stacks) < NO_STACK and game.rules[R_RULE_SET] == ACPC and not is_history_game(game)


def is_history_game(game: Game) -> bool:
    """Return whether a game is that of all no-limit hand histories, whose stacks and blinds differ by hand."""
    return game.name == "holdem.nolimit.histories"


def start_stacks(game: Game) -> Array:
    """Return the stacks at the start of a hand, for kernels."""
    return np.array(game.stacks, dtype=np.int64)


def no_sizes(game: Game) -> Sizes:
    """Return a table without contexts: only the labels' fixed sizes remain."""
    empty = SizeTable(np.zeros(0, np.uint64), np.zeros(1, np.int64), np.zeros(0, np.uint8), np.zeros(0), np.zeros(0))
    return Sizes(empty, start_stacks(game))


def move_to_all_in(sizes: Sizes, rows: Array, mix: Array) -> Array:
    """Return a mix (rows, labels) in which raises that would leave less than a big blind behind are all-in."""
    played = np.array(mix, dtype=np.float64)
    _commit(rows, sizes.start, sizes.table, played)
    return played


def draw_amounts(amounts: Amounts, draws: Array) -> Array:
    """Choose one amount for each row by uniform `draws` from [0, 1); -1 where a row has none."""
    out = np.empty(len(amounts.starts) - 1, np.int64)
    _draw(amounts.starts, amounts.by, amounts.share, draws, out)
    return out


def fixed_amounts(rows: Array, labels: Array) -> Array:
    """Return the labels' fixed sizes in chips beyond the highest bet, for agents that name no amounts."""
    out = np.zeros(len(rows), np.int64)
    _fix(rows, np.ascontiguousarray(labels, np.int64), out)
    return out


def label_of_amount(row: Any, by: int) -> int:
    """Return the label of a raise by `by` chips beyond the highest bet: the nearest legal one, smaller ones first."""
    after, behind = int(row["pot"]) + int(row["to_call"]), int(row["stack"]) - int(row["to_call"])
    wanted = ALL_IN if by >= behind else max(label for label in range(RAISE, ALL_IN) if by >= class_start(after, label))
    legal = [label for label in range(RAISE, ALL_IN + 1) if int(row["legal"]) >> label & 1]
    return min(legal, key=lambda label: abs(label - wanted) + 0.5 * (label > wanted), default=CALL)


def raised_by(game: Game, rows: Array, totals: Array | int) -> Array:
    """Return the chips beyond the highest bet of raises to `totals`, by row; a single row gives a single number."""
    return np.asarray(totals) - (start_stacks(game)[rows["position"]] - rows["stack"] + rows["to_call"])
