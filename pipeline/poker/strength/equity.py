"""Equity against any opponent: weighted ranges, potential, groups of starting hands, and Monte Carlo for the rest.

`outlook` sets the holdings of one opponent, each with a weight (uniform unless given), against the cards still to come:
how often one is ahead, tied or behind now, and then. From these nine counts follow (a = ahead, t = tied, b = behind)

    ihs  = (a + t/2) / all                                          immediate strength
    ppot = (b->a + b->t/2 + t->a/2) / (b + t/2)                     positive potential
    npot = (a->b + a->t/2 + t->b/2) / (a + t/2)                     negative potential
    ehs  = ihs + (1 - ihs) ppot                                     as in the thesis
    two-sided: ihs (1 - npot) + (1 - ihs) ppot, which is the equity

(Billings and others 2002). `group_strengths` is the river strength against each of several groups of starting hands
(opponent-cluster hand strength, Johanson and others 2013). These are exact. `simulate` samples: any number of
opponents, any cards unknown, for a time or a number of samples.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.poker.card_sets import card_bits, run_outs, unseen
from pipeline.poker.cards import NO_CARD, Ranking, cards_text, hand_value, holding_value, pair_index, ranking
from pipeline.poker.strength.boards import BOARD_CARDS
from pipeline.poker.strength.queries import check_deals
from pipeline.poker.strength.win_counts import FULL_STRENGTH, class_points, rank_holdings, win_points
from pipeline.runtime.array_types import Bytes, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import random_below
from pipeline.runtime.parallel import in_threads
from pipeline.runtime.progress import no_progress

# Against a range


@dataclass(frozen=True)
class Outlook:
    """Weighted counts of (ahead, tied, behind) now by the same then, per row."""

    counts: Floats
    """(n, 3, 3)"""

    @property
    def ihs(self) -> Floats:
        """Return the immediate strength."""
        return _share(self.counts.sum(2) @ TIES_HALF, self._all)

    @property
    def win(self) -> Floats:
        """Return the chance to be ahead in the end."""
        return _share(self.counts[:, :, 0].sum(1), self._all)

    @property
    def tie(self) -> Floats:
        """Return the chance to tie in the end."""
        return _share(self.counts[:, :, 1].sum(1), self._all)

    @property
    def equity(self) -> Floats:
        """Return the share of the pot in the end."""
        return _share(self.counts.sum(1) @ TIES_HALF, self._all)

    @property
    def ppot(self) -> Floats:
        """Return the positive potential: the chance to come from behind, ties half."""
        gained = self.counts[:, 2] @ TIES_HALF + self.counts[:, 1, 0] / 2
        return _share(gained, self.counts.sum(2) @ TIES_HALF[::-1])

    @property
    def npot(self) -> Floats:
        """Return the negative potential: the chance to fall behind, ties half."""
        lost = self.counts[:, 0] @ TIES_HALF[::-1] + self.counts[:, 1, 2] / 2
        return _share(lost, self.counts.sum(2) @ TIES_HALF)

    @property
    def ehs(self) -> Floats:
        """Return the effective strength as in the thesis: ihs + (1 - ihs) ppot."""
        return np.asarray(self.ihs + (1 - self.ihs) * self.ppot)

    @property
    def _all(self) -> Floats:
        return np.asarray(self.counts.sum((1, 2)))


TIES_HALF = np.array([1.0, 0.5, 0.0])


def _share(part: Floats, whole: Floats) -> Floats:
    """Divide part by whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


@kernel
def _standings(hole: Bytes, board: Bytes, count: int, tables: Ranking, out: npt.NDArray[np.int8]) -> None:
    """Write 0 (ahead), 1 (tied) or 2 (behind) against each of the 1,326 pairs, -1 where a card is taken."""
    deck = np.empty(52, np.uint8)
    values = np.empty(1326, np.uint16)
    deck_size = rank_holdings(board, count, tables, deck, values)
    mine = holding_value(hole, 2, board, count, tables)
    out[:] = -1
    pair = 0
    for i in range(1, deck_size):
        high = int(deck[i])
        free = high != hole[0] and high != hole[1]
        for j in range(i):
            low = int(deck[j])
            if free and low != hole[0] and low != hole[1]:
                out[pair_index(high, low)] = 2 - win_points(mine, int(values[pair]))
            pair += 1


@kernel
def _outlook_row(
    hole: Bytes, board: Bytes, count: int, cards: int, weights: Floats, tables: Ranking, out: Floats
) -> None:
    """Add the weight of every opponent's holding and runout to out[now, then]."""
    now = np.empty(1326, np.int8)
    then = np.empty(1326, np.int8)
    full = np.empty(count + cards, np.uint8)
    full[:count] = board[:count]
    _standings(hole, board, count, tables, now)
    runouts = run_outs(card_bits(hole, 2) | card_bits(board, count), cards)
    for k in range(len(runouts)):
        full[count:] = runouts[k]
        _standings(hole, full, count + cards, tables, then)
        for pair in range(1326):
            if then[pair] >= 0:
                out[now[pair], then[pair]] += weights[pair]


def outlook(
    street: int, hole: Bytes, board: Bytes, *, weights: Floats | None = None, cards: int | None = None
) -> Outlook:
    """Compute the outlook of each row of 2 hole and 5 board cards, `cards` board cards ahead (or to the river).

    `weights` are of the opponent's 1,326 holdings in order of `cards.pair_index`: one range, or one per row.
    """
    hole, board = check_deals(street, hole, board)
    if street == 0:
        raise PipelineError(
            "an outlook needs a board; before the flop see the match-ups of starting hands, or simulate"
        )
    count = BOARD_CARDS[street]
    ahead = 5 - count if cards is None else cards
    if not 0 <= ahead <= 5 - count:
        raise PipelineError(f"{cards} more cards do not fit on a board of {count}; ask for 0 to {5 - count}")
    ranges = np.ones(1326) if weights is None else np.asarray(weights, np.float64)
    if ranges.shape not in ((1326,), (len(hole), 1326)) or not (ranges >= 0).all():
        raise PipelineError(f"a range is 1326 weights of at least 0, for all rows or for each, not {ranges.shape}")
    ranges = np.ascontiguousarray(np.broadcast_to(ranges, (len(hole), 1326)))
    out = np.zeros((len(hole), 3, 3))

    def work(first: int, last: int) -> None:
        for row in range(first, last):
            _outlook_row(hole[row], board[row], count, ahead, ranges[row], ranking(), out[row])

    in_threads(work, len(hole), 4, no_progress)
    return Outlook(out)


# Against groups of starting hands


@kernel
def _group_rows(
    hole: Bytes, board: Bytes, count: int, groups: Bytes, tables: Ranking, out: npt.NDArray[np.uint16]
) -> None:
    class_sums = np.empty((169, 2), np.int64)
    sums = np.empty((out.shape[1], 2), np.int64)
    full = np.empty(5, np.uint8)
    for row in range(len(hole)):
        class_sums[:] = 0
        sums[:] = 0
        full[:count] = board[row, :count]
        runouts = run_outs(card_bits(hole[row], 2) | card_bits(board[row], count), 5 - count)
        for k in range(len(runouts)):
            full[count:] = runouts[k]
            class_points(hole[row], full, tables, class_sums)
        for index in range(169):
            sums[groups[index]] += class_sums[index]
        for group in range(len(sums)):
            won, met = sums[group]
            out[row, group] = (2 * FULL_STRENGTH * won + met) // (2 * met) if met else 0


def group_strengths(street: int, hole: Bytes, board: Bytes, groups: Bytes) -> npt.NDArray[np.uint16]:
    """Compute the mean river strength against each group of starting classes: (n, groups), 65535 for 1.

    Parameters: `groups`, (169,) the group of each starting class.
    """
    hole, board = check_deals(street, hole, board)
    if street == 0:
        raise PipelineError(
            "strength against groups needs a board; before the flop see the match-ups of starting hands"
        )
    if groups.shape != (169,):
        raise PipelineError(f"groups number the 169 starting classes, not an array of shape {groups.shape}")
    groups = np.ascontiguousarray(groups, np.uint8)
    out = np.empty((len(hole), int(groups.max()) + 1), np.uint16)

    def work(first: int, last: int) -> None:
        _group_rows(hole[first:last], board[first:last], BOARD_CARDS[street], groups, ranking(), out[first:last])

    in_threads(work, len(hole), (4, 4, 100, 5_000)[street], no_progress)
    return out


# Monte Carlo


class EquityEstimate(NamedTuple):
    """Chances of the first player as sampling estimates them."""

    equity: float
    """share of the pot, ties shared"""
    error: float
    """standard error of the equity"""
    win: float
    """chance to win alone"""
    tie: float
    """chance to share the pot"""
    samples: int


@kernel
def _sample(
    holes: Bytes, board: Bytes, samples: int, tables: Ranking, random: npt.NDArray[np.uint64], out: Floats
) -> None:
    """Deal the unknown cards `samples` times; add shares, their squares, wins and ties to `out`."""
    players = len(holes)
    taken = card_bits(board, 5)
    for player in range(players):
        taken |= card_bits(holes[player], 2)
    deck = np.empty(52, np.uint8)
    deck_size = unseen(taken, deck)
    hand = np.empty(7, np.uint8)
    for _ in range(samples):
        dealt = 0
        best = 0
        winners = 0
        mine = 0
        for i in range(5):
            hand[i] = board[i]
            if board[i] == NO_CARD:
                hand[i] = _draw_card(deck, dealt, deck_size, random)
                dealt += 1
        for player in range(players):
            for i in range(2):
                hand[5 + i] = holes[player, i]
                if holes[player, i] == NO_CARD:
                    hand[5 + i] = _draw_card(deck, dealt, deck_size, random)
                    dealt += 1
            value = hand_value(hand, 7, tables)
            if player == 0:
                mine = value
            if value > best:
                best = value
                winners = 1
            elif value == best:
                winners += 1
        if mine == best:
            out[0] += 1 / winners
            out[1] += 1 / (winners * winners)
            out[2 if winners == 1 else 3] += 1


@kernel(leaf=True)
def _draw_card(deck: Bytes, dealt: int, deck_size: int, random: npt.NDArray[np.uint64]) -> int:
    """Return the next card of an incremental Fisher-Yates shuffle."""
    place = dealt + random_below(random, deck_size - dealt)
    deck[dealt], deck[place] = deck[place], deck[dealt]
    return int(deck[dealt])


def simulate(
    holes: Bytes,
    board: Bytes | None = None,
    *,
    seconds: float | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> EquityEstimate:
    """Estimate the first player's chances by dealing unknown cards at random.

    `holes` has a row of two cards per player and `board` up to five cards; NO_CARD marks an unknown card. Give a
    time, a number of samples, or both (whichever ends first); the same seed and number give the same estimate.
    """
    open_board = np.full(5, NO_CARD, np.uint8)
    if board is not None:
        open_board[: len(board)] = board
    holes = np.ascontiguousarray(holes, np.uint8)
    if holes.ndim != 2 or holes.shape[1] != 2 or not 2 <= len(holes) <= 22:
        raise PipelineError(f"simulation takes 2 to 22 rows of two hole cards, not an array of shape {holes.shape}")
    known = [int(card) for card in (*holes.ravel(), *open_board) if card != NO_CARD]
    if len(set(known)) < len(known) or any(card > 51 for card in known):
        raise PipelineError(f"the cards {cards_text(card for card in known if card < 52)} repeat or are not all cards")
    if (seconds is None and samples is None) or (seconds or 1) <= 0 or (samples or 1) <= 0:
        raise PipelineError("say how long to simulate: seconds or samples above 0")
    end = time.monotonic() + seconds if seconds is not None else np.inf
    wanted = samples if samples is not None else 1 << 62
    random = np.random.default_rng(seed).integers(1, 1 << 63, 1).astype(np.uint64)
    sums = np.zeros(4)
    drawn = 0
    while drawn < wanted and (drawn == 0 or time.monotonic() < end):
        batch = min(2_000, wanted - drawn)
        _sample(holes, open_board, batch, ranking(), random, sums)
        drawn += batch
    mean = float(sums[0] / drawn)
    spread = max(float(sums[1] / drawn) - mean * mean, 0.0)
    return EquityEstimate(
        mean, (spread / max(drawn - 1, 1)) ** 0.5, float(sums[2] / drawn), float(sums[3] / drawn), drawn
    )
