"""Hold finished hands with all hole cards as arrays, the input of variance reduction, and test stated probabilities.

The arena makes `HandRecords` of its blocks (`pipeline.arena.adjusting`), `records_of` makes them of hands of logs.
`misfit` says whether probabilities that are said to be behind a player's actions can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from pipeline.formats.acpc import Hand
from pipeline.poker.cards import NO_CARD, parse_cards
from pipeline.poker.game import Game, StateCache
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import hash_rows

MISFIT_LIMIT = 5.0
"""standard errors beyond which stated probabilities are not those that were played: chance does it once in 10^6"""


@dataclass(frozen=True)
class HandRecords:
    """Finished hands; all arrays have a row per hand."""

    game: Game
    hole: Array
    """(hands, players, 2) uint8: all players' cards, by position"""
    board: Array
    """(hands, 5) uint8: the board cards that were dealt"""
    labels: Array
    """(hands, actions) uint8: label + 1 of each action in order, 0 beyond the last"""
    sizes: Array
    """(hands, actions) int64: the total each raise was to (0 in limit games)"""
    payoffs: Array
    """(hands, players) float64: net chips by position"""
    seats: Array
    """(hands, players) int64: the number of the agent at each position"""
    deals: Array
    """(hands,) uint64: hands with the same number share their cards and are never used to adjust each other"""
    streams: Array
    """(hands,) uint64: seeds of random numbers, independent of the board and of the play"""
    probabilities: Array | None = None
    """(hands, actions, labels): the actor's mix at each action, NaN where it is not known"""
    share: Array | None = None
    """(rows,): where rows are imagined holdings of a hand, how likely each is; those of a hand add up to 1"""
    hand_of: Array | None = None
    """(rows,) int64: the number of the hand that an imagined row belongs to; its rows lie side by side"""

    def __post_init__(self) -> None:
        players = self.game.players
        if self.hole.shape[1:] != (players, 2) or self.payoffs.shape != (len(self.hole), players):
            raise PipelineError(
                f"{self.game.name} has {players} players; the hole cards have shape {self.hole.shape} and the payoffs "
                f"{self.payoffs.shape}"
            )

    def __len__(self) -> int:
        return len(self.hole)

    @property
    def firsts(self) -> Array:
        """Return (hands,) int64 the first row of each hand; every row's number unless holdings are imagined."""
        if self.hand_of is None:
            return np.arange(len(self))
        return np.flatnonzero(np.diff(self.hand_of, prepend=-1))

    def take(self, rows: Any) -> HandRecords:
        """Return some of the hands: a slice, a mask or row numbers."""
        parts: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "game"}
        taken: dict[str, Any] = {name: part if part is None else part[rows] for name, part in parts.items()}
        return replace(self, **taken)


def card_arrays(game: Game, holes: Sequence[Sequence[str]], boards: Sequence[str]) -> tuple[Array, Array]:
    """Return (hands, players, 2) hole cards and (hands, 5) boards from their texts; NO_CARD where there is none."""
    hole, board = np.full((len(holes), game.players, 2), NO_CARD, np.uint8), np.full((len(holes), 5), NO_CARD, np.uint8)
    for i, (hand_holes, board_text) in enumerate(zip(holes, boards, strict=True)):
        for p, text in enumerate((*hand_holes, board_text)):
            cards = parse_cards(text)
            (hole[i, p] if p < game.players else board[i])[: len(cards)] = cards
    return hole, board


def betting_arrays(walk: StateCache, bettings: Sequence[str]) -> tuple[Array, Array, Array]:
    """Return (hands, actions) label + 1 and total of each action, 0 beyond the last, and (hands,) the last round."""
    read = lru_cache(maxsize=1 << 16)(walk.labels)  # few different bettings make up most hands
    played = [read(betting) for betting in bettings]
    longest = max((len(taken) for taken, _, _ in played), default=0)
    labels, sizes = np.zeros((len(played), longest), np.uint8), np.zeros((len(played), longest), np.int64)
    for i, (taken, totals, _) in enumerate(played):
        labels[i, : len(taken)], sizes[i, : len(taken)] = np.array(taken, np.uint8) + 1, totals
    return labels, sizes, np.array([state.round for _, _, state in played], np.int64)


def records_of(
    game: Game, hands: Sequence[Hand], deals: Array, names: dict[str, int] | None = None
) -> tuple[HandRecords, list[str]]:
    """Return the records of a log's hands, and the names of the players that their `seats` number.

    Parameters: `deals` (hands,) uint64, the same for hands of the same cards; `names`, the numbers of players that
    earlier hands had, to which new ones are added.

    Raises `ValueError` for hands that cannot have been dealt: kernels take the cards as numbers into tables.
    """
    count, players = len(hands), game.players
    names = {} if names is None else names
    seats = np.zeros((count, players), np.int64)
    for i, hand in enumerate(hands):
        if len(hand.names) != players or len(hand.holes) != players:
            raise ValueError(f"hand {hand.number} is not one of {players} players")
        seats[i] = [names.setdefault(name, len(names)) for name in hand.names]
    hole, board = card_arrays(game, [hand.holes for hand in hands], ["".join(hand.board) for hand in hands])
    labels, sizes, rounds = betting_arrays(StateCache(game), [hand.betting for hand in hands])
    dealt, visible = (board != NO_CARD).sum(axis=1), np.cumsum(game.board_cards)[rounds]
    if (dealt < visible).any():
        i = int(np.argmax(dealt < visible))
        raise ValueError(f"hand {hands[i].number} has {dealt[i]} cards on the board where {visible[i]} were seen")
    dealt_cards = np.sort(np.concatenate([hole.reshape(count, -1), board], axis=1), axis=1)
    is_twice = (dealt_cards[:, 1:] == dealt_cards[:, :-1]) & (dealt_cards[:, 1:] != NO_CARD)
    if is_twice.any():
        raise ValueError(f"a card of hand {hands[int(np.argmax(is_twice.any(axis=1)))].number} was dealt twice")
    numbers = np.array([hand.number for hand in hands], np.int64).astype(np.uint64)
    payoffs = np.array([hand.payoffs for hand in hands], np.float64).reshape(count, players)
    if not np.isfinite(payoffs).all():
        raise ValueError("a hand has results that are no numbers")
    records = HandRecords(
        game=game,
        hole=hole,
        board=board,
        labels=labels,
        sizes=sizes,
        payoffs=payoffs,
        seats=seats,
        deals=deals,
        streams=hash_rows(np.stack([deals, numbers], axis=1)),
    )
    return records, list(names)


def has_all_cards(records: HandRecords) -> bool:
    """Return whether all hole cards are known in all hands."""
    return bool((records.hole[:, :, : records.game.hole_cards] != NO_CARD).all())


def misfit(labels: Array, probabilities: Array) -> float:
    """Return how many standard errors the actions are from the probabilities that are said to be behind them.

    It is infinite if an action was taken that had no chance. Under the stated probabilities p each of these sums has
    mean zero: of 1[taken = a] - p(a) for every label a, and of log p(taken) - sum p log p, which notices rows that
    belong to other decisions. The largest in standard errors is returned; chance does not reach `MISFIT_LIMIT`.

    Parameters: `labels` (decisions,), the label taken, from 0; `probabilities` (decisions, labels), without NaN.

    >>> mixes = np.tile([0.25, 0.5, 0.25], (400, 1))
    >>> round(misfit(np.array([0, 1, 1, 2] * 100), mixes), 6)
    0.0
    >>> misfit(np.array([0, 0, 1, 2] * 100), mixes) > MISFIT_LIMIT
    True
    """
    if len(labels) == 0:
        return 0.0
    mixes = np.asarray(probabilities, np.float64)
    taken_probability = mixes[np.arange(len(labels)), labels]
    if bool((taken_probability <= 1e-12).any()):
        return float("inf")
    z_scores = [0.0]
    for label in range(mixes.shape[1]):
        spread = (mixes[:, label] * (1.0 - mixes[:, label])).sum()
        if spread > 1.0:
            z_scores.append(((labels == label) - mixes[:, label]).sum() / np.sqrt(spread))
    logs = np.log(np.maximum(mixes, 1e-12))
    mean = (mixes * logs).sum(axis=1)
    spread = (mixes * logs**2).sum(axis=1) - mean**2
    if spread.sum() > 0.1:
        z_scores.append((np.log(taken_probability) - mean).sum() / np.sqrt(spread.sum()))
    return float(np.abs(z_scores).max())
