"""Programs that make the tables shipped in `resources/` again: `python -m tools.tables NAME --out FILE`.

- `ranking`: the value of every hand of five to seven cards, from the plain rules of poker (`pipeline.poker.cards`);
- `headsup`: any two starting hands against each other, by walking over all boards (five minutes);
- `preflop`: the 169 x 169 starting classes and their strengths (half a minute), both of
  `pipeline.poker.starting_hands`;
- `variance`, `variance_nolimit`: weights of control variates among typical agents of limit and no-limit hold'em for
  two, from which adjusted results start (some minutes; see `pipeline.arena.variance.terms`).

They run when the rules or the estimators change, never by a command of the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.agents.names import resolve
from pipeline.arena.adjusting import block_records
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.variance.estimator import LEFT_OUT, PENALTY, cross_fit
from pipeline.arena.variance.terms import LUCK, build_terms, join_terms
from pipeline.poker.card_sets import add_up, card_bits, rank_bit, set_value, unseen
from pipeline.poker.cards import (
    FLUSH_BITS,
    HIGH_MASK,
    NO_SUITS,
    SLOT_BITS,
    SLOT_MASK,
    Ranking,
    class_combos,
    hand_names,
    ranking,
    score_name,
    start_class,
    sum_value,
)
from pipeline.poker.game import builtin
from pipeline.poker.starting_hands import matchup_code, suit_names
from pipeline.poker.strength.boards import boards
from pipeline.poker.strength.rows import STRENGTH, summarise
from pipeline.poker.strength.win_counts import count_below, rank_holdings, sort_holdings
from pipeline.runtime.array_types import Array, Counts
from pipeline.runtime.files import replacing
from pipeline.runtime.kernels import kernel
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import Progress, no_progress

MATCHUPS_PER_TASK = 100
"""match-ups that a thread plays at a time"""
RIVERS_PER_TASK = 2_000
"""canonical rivers that a thread plays at a time"""


class Typical(NamedTuple):
    """Matches from which the weights of a game are made that adjusted results start from."""

    game: str
    hands: int
    """of each pair"""
    penalty: float
    """of large weights: pots of no-limit games differ by so much that few hands decide about all weights"""
    pairs: tuple[tuple[str, str], ...]


TYPICAL_LIMIT = Typical(
    "holdem.limit.2p.reverse_blinds",
    150_000,
    PENALTY,
    (("@teacher", "@teacher"), ("@equity", "@equity"), ("@teacher", "@random"), ("@equity", "@calibrated:50,50")),
)
TYPICAL_NOLIMIT = Typical(
    "holdem.nolimit.2p.reverse_blinds",
    60_000,
    10 * PENALTY,
    (
        ("@equity", "@equity"),
        ("@bearl", "@bearl"),
        ("@calibrated:50,100", "@calibrated:50,100"),
        ("@bearl", "@calibrated:70,70"),
        ("@equity", "@calibrated:80,100"),
        ("@calibrated:70,70", "@calibrated:70,70"),
    ),
)


# Ranking


def _score(counts: tuple[int, ...]) -> tuple[int, ...]:
    """(category, ranks that break ties...) of the best five cards among these counts per rank, suits aside."""
    descending = range(12, -1, -1)
    ranks = [rank for rank in descending if counts[rank]]
    pairs = [rank for rank in descending if counts[rank] >= 2]
    trips = [rank for rank in descending if counts[rank] >= 3]
    quads = [rank for rank in descending if counts[rank] == 4]
    if quads:
        return 7, quads[0], next(rank for rank in ranks if rank != quads[0])
    if trips and len(pairs) > 1:
        return 6, trips[0], next(rank for rank in pairs if rank != trips[0])
    top = _straight(ranks)
    if top is not None:
        return 4, top
    if trips:
        return 3, trips[0], *[rank for rank in ranks if rank != trips[0]][:2]
    if len(pairs) > 1:
        return 2, pairs[0], pairs[1], next(rank for rank in ranks if rank not in pairs[:2])
    if pairs:
        return 1, pairs[0], *[rank for rank in ranks if rank != pairs[0]][:3]
    return 0, *ranks[:5]


def _straight(ranks: list[int]) -> int | None:
    """Return the top rank of the best straight in these ranks; the ace also counts below the two."""
    present = {*ranks, *([-1] if 12 in ranks else [])}
    return next((top for top in range(12, 2, -1) if all(top - i in present for i in range(5))), None)


def _flush_score(ranks: list[int]) -> tuple[int, ...]:
    """(category, ranks that break ties...) of the flush these ranks of one suit make."""
    top = _straight(ranks)
    return (5, *ranks[:5]) if top is None else (8, top)


def _multisets(cards: int, ranks: int = 13) -> Iterator[tuple[int, ...]]:
    """Return all counts per rank that add up to `cards`, at most four of a rank."""
    if ranks == 0:
        if cards == 0:
            yield ()
        return
    for count in range(min(4, cards) + 1):
        for rest in _multisets(cards - count, ranks - 1):
            yield (count, *rest)


def _rank_sets() -> Iterator[tuple[int, list[int]]]:
    """(bit set, ranks high first) of every set of at least five ranks."""
    for bits in range(1 << 13):
        if bits.bit_count() >= 5:
            yield bits, [rank for rank in range(12, -1, -1) if bits >> rank & 1]


@cache
def scores() -> tuple[tuple[int, ...], ...]:
    """Return the 7,462 different five-card hands, weakest first."""
    scores = {_score(counts) for counts in _multisets(5)} | {_flush_score(ranks) for _, ranks in _rank_sets()}
    return tuple(sorted(scores))


def ranking_tables(seed: int = 1) -> dict[str, Any]:
    """Make the arrays of `poker/resources/ranking.npz` (fields of `cards.Ranking`) from the rules of poker.

    The same seed gives the same tables.
    """
    value_of = {score: value for value, score in enumerate(scores(), start=1)}
    name_of = {name: number for number, name in enumerate(hand_names())}
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
    tables = Ranking(keys.view(np.int64), displacements, values, flushes, name_ids)
    return dict(tables._asdict())


def _displace(sums: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[Any]]:
    """Return a displacement per bucket that puts every sum in a slot of its own; fullest buckets choose first."""
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


# Two starting hands against each other


@kernel
def matchup_codes(suits: Array, out: Array) -> int:
    """Write the code of every match-up of two starting hands, in order; return how many there are."""
    count = 0
    for a0 in range(1, 52):
        for a1 in range(a0):
            for b0 in range(1, 52):
                for b1 in range(b0):
                    if b0 in (a0, a1) or b1 in (a0, a1):
                        continue
                    code = (a0 * 64 + a1) * 4096 + b0 * 64 + b1
                    if matchup_code(a0, a1, b0, b1, suits)[0] == code:
                        out[count] = code
                        count += 1
    return count


@kernel
def play_matchups(codes: Array, first: int, last: int, tables: Ranking, wins: Array, ties: Array) -> None:
    """Count the boards of some match-ups that the first hand wins and that are split."""
    deck = np.empty(52, np.uint8)
    cards = np.empty(4, np.uint8)
    keys = np.empty(48, np.int64)
    bits = np.empty(48, np.int64)
    for number in range(first, last):
        for i in range(4):
            cards[i] = codes[number] >> (18 - 6 * i) & 63
        first_sum, first_ranks = add_up(cards[:2], 2, tables)
        second_sum, second_ranks = add_up(cards[2:], 2, tables)
        for i in range(unseen(card_bits(cards, 4), deck)):
            keys[i] = tables.keys[deck[i]]
            bits[i] = rank_bit(deck[i])
        won = split = 0
        for i in range(4, 48):
            for j in range(3, i):
                for k in range(2, j):
                    for m in range(1, k):
                        four = NO_SUITS + keys[i] + keys[j] + keys[k] + keys[m]
                        four_ranks = bits[i] | bits[j] | bits[k] | bits[m]
                        for n in range(m):
                            a = first_sum + four + keys[n]
                            b = second_sum + four + keys[n]
                            if (a | b) & FLUSH_BITS:
                                ranks = four_ranks | bits[n]
                                mine = set_value(a, first_ranks | ranks, tables)
                                other = set_value(b, second_ranks | ranks, tables)
                            else:
                                mine = sum_value(a, tables)
                                other = sum_value(b, tables)
                            if mine > other:
                                won += 1
                            elif mine == other:
                                split += 1
        wins[number] = won
        ties[number] = split


def headsup_tables(progress: Progress = no_progress) -> dict[str, Any]:
    """Make the arrays of `poker/resources/headsup.npz`: `codes`, `wins` and `ties` (fields of `HeadsUp`)."""
    buffer = np.empty(1 << 16, np.int64)
    codes = buffer[: matchup_codes(suit_names(), buffer)].copy()
    wins, ties = np.zeros(len(codes), np.uint32), np.zeros(len(codes), np.uint32)
    in_threads(
        lambda first, last: play_matchups(codes, first, last, ranking(), wins, ties),
        len(codes),
        MATCHUPS_PER_TASK,
        progress,
    )
    return {"codes": codes.astype(np.uint32), "wins": wins, "ties": ties}


# Starting classes against each other


@kernel
def play_rivers(
    cards: npt.NDArray[np.uint8],
    weights: Counts,
    first: int,
    last: int,
    tables: Ranking,
    results: Counts,
    sums: Counts,
    histograms: Counts,
) -> None:
    """Add to `results` (2, 169, 169: beaten, not better) and to each class's sums and histogram of strength."""
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    items = np.empty(1326, np.uint32)
    spare = np.empty(1326, np.uint32)
    strengths = np.empty(1326, np.uint16)
    counted = np.empty((2, 169, 169), np.int16)
    for number in range(first, last):
        free_cards = rank_holdings(cards[number], 5, tables, deck, values)
        sort_holdings(values, free_cards, items, spare)
        count_below(items, free_cards, strengths)
        pairs = free_cards * (free_cards - 1) // 2
        below = np.zeros(169, np.int16)
        below_with = np.zeros((52, 169), np.int16)
        counted[:] = 0
        start = 0
        while start < pairs:
            end = start
            while end < pairs and items[end] >> 12 == items[start] >> 12:
                end += 1
            for side in range(2):
                for k in range(start, end):
                    high = int(items[k] >> 6 & 63)
                    low = int(items[k] & 63)
                    mine = start_class(int(deck[high]), int(deck[low]))
                    row = counted[side, mine]
                    with_high = below_with[high]
                    with_low = below_with[low]
                    for other in range(169):
                        row[other] += below[other] - with_high[other] - with_low[other]
                    row[mine] += side  # itself, taken off twice
                if side == 0:
                    for k in range(start, end):
                        high = int(items[k] >> 6 & 63)
                        low = int(items[k] & 63)
                        mine = start_class(int(deck[high]), int(deck[low]))
                        below[mine] += 1
                        below_with[high, mine] += 1
                        below_with[low, mine] += 1
            start = end
        for side in range(2):
            for mine in range(169):
                for other in range(169):
                    results[side, mine, other] += weights[number] * counted[side, mine, other]
        pair = 0
        for high in range(1, free_cards):
            for low in range(high):
                mine = start_class(int(deck[high]), int(deck[low]))
                strength = int(strengths[pair])
                sums[mine, 0] += weights[number] * strength
                sums[mine, 1] += weights[number] * strength * strength
                histograms[mine, (strength + 128) // 257] += weights[number]
                pair += 1


def preflop_tables(progress: Progress = no_progress) -> dict[str, Any]:
    """Make the arrays of `poker/resources/preflop.npz`: `win`, `tie` and `strength` of the 169 classes (half a minute).

    Every canonical river is ranked once. Going up through its holdings by value, with a count per class of the
    holdings passed and, per card, of those that hold it, gives for each holding how many of each class it beats: those
    passed less those that share a card. Summed over boards, times the boards each stands for, these are exact counts
    over all pairs of holdings that share no card and all 1,712,304 boards.
    """
    rivers = boards(3)
    step = RIVERS_PER_TASK
    pieces = -(-len(rivers.cards) // step)
    results = np.zeros((pieces, 2, 169, 169), np.int64)
    sums = np.zeros((pieces, 169, 2), np.int64)
    histograms = np.zeros((pieces, 169, 256), np.int64)

    def play(first: int, last: int) -> None:
        piece = first // step
        play_rivers(
            *(rivers.cards, rivers.weights, first, last, ranking()),
            *(results[piece], sums[piece], histograms[piece]),
        )

    in_threads(play, len(rivers.cards), step, progress)
    beaten, not_better = results.sum(0)
    strength = np.zeros((169, STRENGTH.itemsize // 2), np.uint16)
    for index in range(169):
        count = class_combos(index) * comb(50, 5)
        total, squares = (int(part) for part in sums.sum(0)[index])
        summarise(total, squares, histograms.sum(0)[index], 0, 255, count, strength[index])
    strength[:, 0] = strength[:, 1]
    return {
        "win": beaten.astype(np.uint32),
        "tie": (not_better - beaten).astype(np.uint32),
        "strength": strength,
    }


# Weights of control variates


def variance_tables(typical: Typical, progress: Progress = no_progress) -> dict[str, Any]:
    """Make the arrays of `arena/resources/variance*.npz`: weights of terms from the matches of `typical`."""
    game, order, pieces = builtin(typical.game), seatings(2), []
    for seed, pair in enumerate(typical.pairs):
        progress(seed, len(typical.pairs))
        block = HandBlock.dealt(game, 1000 + seed, 0, typical.hands // 2, order, False)
        block.play([resolve(text, game) for text in pair], keep=True)
        pieces.append(build_terms(block_records(block, 1000 + seed), np.zeros(len(block), np.int64), typical=False))
    joined, shares = join_terms(pieces), np.ones((len(LEFT_OUT), LUCK))
    weights = cross_fit(joined, np.arange(joined.hands, dtype=np.uint64), shares, penalty=typical.penalty)
    progress(len(typical.pairs), len(typical.pairs))
    widths = np.diff([*weights.places, weights.values.shape[1]])
    columns = np.repeat(weights.groups - weights.places, widths) + np.arange(weights.values.shape[1])
    return {"columns": columns.astype(np.int32), "weights": weights.values[LEFT_OUT.index(())].astype(np.float32)}


# The program


MAKERS: dict[str, Callable[[Progress], dict[str, Any]]] = {
    "ranking": lambda _: ranking_tables(),
    "headsup": headsup_tables,
    "preflop": preflop_tables,
    "variance": partial(variance_tables, TYPICAL_LIMIT),
    "variance_nolimit": partial(variance_tables, TYPICAL_NOLIMIT),
}


def write(name: str, out: Path, progress: Progress = no_progress) -> None:
    """Make the arrays of a table and write them to an `.npz` file."""
    arrays = MAKERS[name](progress)
    with replacing(out) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)


def main() -> None:
    """Make one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=MAKERS)
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    options = parser.parse_args()

    def progress(done: int, total: int) -> None:
        sys.stderr.write(f"\r{options.name}: {100 * done // total} %")

    write(options.name, options.out, progress)
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
