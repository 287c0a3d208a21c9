"""Inner rows: the training rows that a choice is made on, such as when to stop, so that validation rows decide nothing.

Training rows are divided as the dataset is, by what is held out together (`tasks.Examples.group`): by player where
players are held out, else by deal. Files that were held out by name do not carry over to the inside: the twins of a
duplicate match stand in different files, so files would put the same cards on both sides.

In: the groups of rows. Out: an `InnerSplit`, which says of each row whether it is an inner one. Rows that are read in
parts are counted part by part (`count_inner`), so that all parts are divided by the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.numeric import hash_rows

INNER_EVERY = 10
"""k, where one group in k is inner"""
RETRAINED_ROWS, FEWER_INNER = 100_000, 20
"""rows up to which a model is trained once more on all of them, with what the inner ones chose; of more rows, one group
in `FEWER_INNER` is inner, and the model that was trained without these is kept"""
LEAST_GROUPS = 10
"""groups from which on at least one is inner"""
SALT = 1
"""in the hash that chooses inner groups, which is another than the one that held out the validation rows"""

Numbers = NDArray[np.uint32]


@dataclass(frozen=True)
class InnerSplit:
    """The rule by which a group is an inner one."""

    one_in: int
    lowest: int | None = None
    """the number of the single inner group where the rule would choose none"""

    def chosen(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Return which rows are inner, by `hash_groups`."""
        if self.lowest is not None:
            return numbers == np.uint32(self.lowest)
        return numbers % np.uint32(self.one_in) == 0


class InnerCounts(NamedTuple):
    """Rows of a part, and how many of them each rule would choose."""

    rows: int
    inside: dict[int, int]
    """by `InnerSplit.one_in`"""
    lowest: int
    """the lowest number of a group"""
    has_many: bool
    """whether a rule chooses none though there are `LEAST_GROUPS`"""


def hash_groups(group: NDArray[Any]) -> Numbers:
    """Return a random number for each group, the same for the same group."""
    # the upper half of a salted hash: independent of the bits by which validation deals were chosen
    words = np.column_stack([np.full(len(group), SALT, np.uint64), group.astype(np.uint64)])
    return (hash_rows(words) >> np.uint64(32)).astype(np.uint32)


def count_inner(numbers: Numbers, one_in: Sequence[int] = (INNER_EVERY, FEWER_INNER)) -> InnerCounts:
    """Count the inner rows of a part by each rule."""
    inside = {every: int(np.count_nonzero(InnerSplit(every).chosen(numbers))) for every in one_in}
    # sorting all numbers is spared where every rule chooses some
    has_many = min(inside.values()) == 0 and len(np.unique(numbers)) >= LEAST_GROUPS
    return InnerCounts(len(numbers), inside, int(numbers.min(initial=2**32 - 1)), has_many)


def split_inner(counts: Sequence[InnerCounts], one_in: int) -> InnerSplit | None:
    """Return how the rows of all parts are divided; None where no group can be spared."""
    rows, inside = sum(part.rows for part in counts), sum(part.inside[one_in] for part in counts)
    if 0 < inside < rows:
        return InnerSplit(one_in)
    if inside == 0 and any(part.has_many for part in counts):
        return InnerSplit(one_in, min(part.lowest for part in counts))
    return None


def choose_inner(group: NDArray[Any], one_in: int = INNER_EVERY) -> NDArray[np.bool_]:
    """Return which rows are inner: one group in `one_in`; no row where there are too few groups."""
    numbers = hash_groups(group)
    split = split_inner([count_inner(numbers, (one_in,))], one_in)
    return np.zeros(len(group), bool) if split is None else split.chosen(numbers)


def inner_every(rows: int) -> int:
    """Return k, where one group in k chooses when max-ent stops, for a number of training rows."""
    return INNER_EVERY if rows <= RETRAINED_ROWS else FEWER_INNER
