"""Standings in games of one hole card, by enumeration, and the products of standings that all games share.

Hole cards and board go in; equities, strengths and how their products moved come out.
`pipeline.arena.variance.standings` says what they are and estimates them in hold'em. The room is its own because
nothing here is drawn at random.
"""

from __future__ import annotations

import numpy as np

from pipeline.poker.card_sets import pot_share
from pipeline.poker.cards import Ranking
from pipeline.poker.rules import R_BOARD, R_PLAYERS, R_ROUNDS
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


@kernel(leaf=True)
def add_products(players: int, live: int, standing: Array, weight: float, out: Array) -> None:
    """Add `weight` times all products of two of a street's standings, from their middles, to `out`.

    The last player's equity is left out: it follows from the others.
    """
    count = 2 * players - 1
    at = 0
    for i in range(count):
        first = _centred(players, live, standing, i)
        for j in range(i, count):
            out[at] += weight * first * _centred(players, live, standing, j)
            at += 1


@kernel(leaf=True)
def _centred(players: int, live: int, standing: Array, i: int) -> float:
    """Number i of the standings: equities of all players but the last, then strengths, from their middles.

    It is zero for a player who has folded.
    """
    if i < players - 1:
        return float(standing[i] - 1.0 / players) if live >> i & 1 else 0.0
    return float(standing[i + 1] - 0.5) if live >> (i - players + 1) & 1 else 0.0


@kernel(leaf=True)
def _stand(
    rules: Array,
    deck: Array,
    hole: Array,
    live: int,
    card: int,
    tables: Ranking,
    boards: Array,
    values: Array,
    out: Array,
) -> None:
    """Equity and strength in a game of one hole card by enumeration; `card` is the open board card, -1 for none."""
    players = rules[R_PLAYERS]
    shown = 0
    for r in range(rules[R_ROUNDS]):
        shown += rules[R_BOARD + r]
    used = 0
    for p in range(players):
        used |= 1 << int(hole[p, 0])
    out[:] = 0.0
    ends = 0
    for b in range(len(deck) if shown > 0 and card < 0 else 1):
        boards[0] = deck[b] if shown > 0 and card < 0 else max(card, 0)
        if shown > 0 and used >> int(boards[0]) & 1:
            continue
        ends += 1
        best = -1
        winners = 0
        for p in range(players):
            if live >> p & 1:
                values[p] = showdown_value(hole[p], 1, boards, shown, tables)
                winners = 1 if values[p] > best else winners + 1 if values[p] == best else winners
                best = max(best, values[p])
        for p in range(players):
            if live >> p & 1 and values[p] == best:
                out[p] += 1.0 / winners
        met = 0
        for d in range(len(deck)):
            met += 0 if used >> int(deck[d]) & 1 or (shown > 0 and deck[d] == boards[0]) else 1
        for d in range(len(deck)):
            if used >> int(deck[d]) & 1 or (shown > 0 and deck[d] == boards[0]):
                continue
            other = showdown_value(deck[d : d + 1], 1, boards, shown, tables)
            for p in range(players):
                if live >> p & 1:
                    out[players + p] += pot_share(values[p], other) / met
    for i in range(2 * players):
        out[i] /= ends


@kernel
def stand_exactly(
    rules: Array,
    deck: Array,
    hole: Array,
    board: Array,
    live: Array,
    tables: Ranking,
    found: tuple[Array, Array, Array],
) -> None:
    """Fill the standings of games of one hole card and at most one board card: after a street, before it, products."""
    after, before, moved = found
    players = rules[R_PLAYERS]
    boards = np.zeros(1, np.uint8)
    values = np.empty(players, np.int64)
    standing = np.empty(2 * players)
    for i in range(hole.shape[0]):
        used = 0
        for p in range(players):
            used |= 1 << int(hole[i, p, 0])
        card = -1
        for street in range(live.shape[1]):
            mask = live[i, street]
            if mask == 0:
                break
            if street > 0:
                _stand(rules, deck, hole[i], mask, card, tables, boards, values, before[i, street])
            if rules[R_BOARD + street] > 0:
                left = len(deck) - players
                for d in range(len(deck)):
                    if used >> int(deck[d]) & 1 == 0:
                        _stand(rules, deck, hole[i], mask, int(deck[d]), tables, boards, values, standing)
                        add_products(players, mask, standing, -1.0 / left, moved[i, street])
                card = int(board[i, 0])
                _stand(rules, deck, hole[i], mask, card, tables, boards, values, standing)
                add_products(players, mask, standing, 1.0, moved[i, street])
            _stand(rules, deck, hole[i], mask, card, tables, boards, values, after[i, street])
