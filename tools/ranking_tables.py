"""Make the tables that rank hands from the rules of poker: run when they change, never by a command.

Nothing goes in but a seed, `cards.Ranking` comes out: every multiset of five to seven ranks and every set of ranks of a
flush is scored by the plain rules, and the sums that stand for them are put into a perfect hash. It is apart from
`cards`, which everything imports, because only a test needs it: it makes the bundled tables again and compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import HIGH_MASK, SLOT_BITS, SLOT_MASK, Ranking, names, score_name

__all__ = ["build_ranking", "scores"]


def _score(counts: tuple[int, ...]) -> tuple[int, ...]:
    """(category, ranks that break ties...) of the best five cards among these counts per rank, suits aside."""
    descending = range(12, -1, -1)
    held = [rank for rank in descending if counts[rank]]
    pairs = [rank for rank in descending if counts[rank] >= 2]
    trips = [rank for rank in descending if counts[rank] >= 3]
    quads = [rank for rank in descending if counts[rank] == 4]
    if quads:
        return 7, quads[0], next(rank for rank in held if rank != quads[0])
    if trips and len(pairs) > 1:
        return 6, trips[0], next(rank for rank in pairs if rank != trips[0])
    top = _straight(held)
    if top is not None:
        return 4, top
    if trips:
        return 3, trips[0], *[rank for rank in held if rank != trips[0]][:2]
    if len(pairs) > 1:
        return 2, pairs[0], pairs[1], next(rank for rank in held if rank not in pairs[:2])
    if pairs:
        return 1, pairs[0], *[rank for rank in held if rank != pairs[0]][:3]
    return 0, *held[:5]


def _straight(held: list[int]) -> int | None:
    """The top rank of the best straight in these ranks; the ace also counts below the two."""
    present = {*held, *([-1] if 12 in held else [])}
    return next((top for top in range(12, 2, -1) if all(top - i in present for i in range(5))), None)


def _flush_score(held: list[int]) -> tuple[int, ...]:
    """(category, ranks that break ties...) of the flush these ranks of one suit make."""
    top = _straight(held)
    return (5, *held[:5]) if top is None else (8, top)


def _multisets(cards: int, ranks: int = 13) -> Iterator[tuple[int, ...]]:
    """All counts per rank that add up to `cards`, at most four of a rank."""
    if ranks == 0:
        if cards == 0:
            yield ()
        return
    for count in range(min(4, cards) + 1):
        for rest in _multisets(cards - count, ranks - 1):
            yield (count, *rest)


def _rank_sets() -> Iterator[tuple[int, list[int]]]:
    """(bit set, ranks high first) of every set of at least five ranks."""
    for held in range(1 << 13):
        if held.bit_count() >= 5:
            yield held, [rank for rank in range(12, -1, -1) if held >> rank & 1]


@cache
def scores() -> tuple[tuple[int, ...], ...]:
    """The 7,462 different five-card hands, weakest first."""
    scores = {_score(counts) for counts in _multisets(5)} | {_flush_score(held) for _, held in _rank_sets()}
    return tuple(sorted(scores))


def build_ranking(seed: int = 1) -> Ranking:
    """Make the ranking tables from the rules of poker; the same seed gives the same tables."""
    value_of = {score: value for value, score in enumerate(scores(), start=1)}
    name_of = {name: number for number, name in enumerate(names())}
    hands = [counts for cards in (5, 6, 7) for counts in _multisets(cards)]
    hand_values = np.array([value_of[_score(counts)] for counts in hands], np.uint16)
    rng = np.random.default_rng(seed)
    while True:
        rank_keys = rng.integers(0, 1 << 32, 13)
        sums = np.array(hands) @ rank_keys & HIGH_MASK
        if len(np.unique(sums)) == len(sums):
            break
    keys = np.array([(int(rank_keys[card // 4]) << 32) + (1 << (4 * (card % 4))) for card in range(52)], np.uint64)
    displacements, slots = _displace(sums)
    values = np.zeros(1 << SLOT_BITS, np.uint16)
    values[slots] = hand_values
    flushes = np.zeros(1 << 13, np.uint16)
    for held, held_ranks in _rank_sets():
        flushes[held] = value_of[_flush_score(held_ranks)]
    name_ids = np.array([0, *(name_of[score_name(score)] for score in scores())], np.uint16)
    return Ranking(keys.view(np.int64), displacements, values, flushes, name_ids)


def _displace(sums: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[Any]]:
    """A displacement per bucket that puts every sum in a slot of its own; fullest buckets choose first."""
    buckets = sums >> SLOT_BITS
    order = np.argsort(buckets, kind="stable")
    starts = np.searchsorted(buckets[order], np.arange((1 << 32 - SLOT_BITS) + 1))
    displacements = np.zeros(1 << 32 - SLOT_BITS, np.uint16)
    slots = np.zeros(len(sums), np.int64)
    taken = np.zeros(1 << SLOT_BITS, np.bool_)
    for bucket in np.argsort(-np.diff(starts), kind="stable"):
        members = order[starts[bucket] : starts[bucket + 1]]
        if len(members) == 0:
            break
        low = sums[members] & SLOT_MASK
        for step in range(0, 1 << 16, 64):
            tried = (low + np.arange(step, step + 64)[:, None]) & SLOT_MASK
            free = ~taken[tried].any(axis=1)
            if free.any():
                shift = int(free.argmax())
                displacements[bucket], slots[members] = step + shift, tried[shift]
                taken[tried[shift]] = True
                break
        else:
            raise ValueError("no displacement fits; try another seed")
    return displacements, slots
