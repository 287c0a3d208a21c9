"""@equity: exact equity against random cards, and pot odds; it maximises the gain against a player who always calls.

With e the chance to win against one random holding (ties half; `pipeline.poker.strength`, exact), m players in the hand
and e^(m-1) taken as the chance against all of them, the gain from here on is

    fold    0
    call    e (pot + to_call) - to_call
    raise   the same + x (m e - 1)      x beyond the call, called by all

so it raises when e > 1/m, else calls when e is above the pot odds. In no-limit games that rule alone would always
go all-in; it raises by the largest class of at most the Kelly share (m e - 1) / (m - 1) of its stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from pipeline.agents.names import plain_name
from pipeline.poker.allin import board_counts
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL, FOLD, RAISE
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.win_counts import FULL_STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

POTS = (0.25, 0.5, 1.0, 2.0)
"""sizes of the no-limit raises s, h, p and o, in pots"""


@dataclass(frozen=True)
class Equity:
    """Plays by equity against random cards and pot odds."""

    name: str
    game: Game

    def probabilities(self, rows: Array) -> Array:
        players = players_left(rows)
        win_chance = equities(self.game, rows) ** (players - 1)
        edge = players * win_chance - 1
        to_call, pot = rows["to_call"].astype(np.float64), rows["pot"].astype(np.float64)
        calls = (win_chance * (pot + to_call) > to_call) | (rows["legal"] >> FOLD & 1 == 0)
        choice = np.where(calls, CALL, FOLD)
        raises = calls & (edge > 0)
        if not self.game.nolimit:
            choice[raises & (rows["legal"] >> RAISE & 1 == 1)] = RAISE
            return np.eye(len(self.game.labels))[choice]
        stack = rows["stack"] - to_call
        for label in range(RAISE, len(self.game.labels)):
            by = POTS[label - RAISE] * (pot + to_call) if label - RAISE < len(POTS) else stack
            choice[raises & (by <= edge / (players - 1) * stack) & (rows["legal"] >> label & 1 == 1)] = label
        return np.eye(len(self.game.labels))[choice]


def players_left(rows: Array) -> Array:
    """Count the players who have not folded, the actor included."""
    if (rows["players"] == 2).all():
        return np.full(len(rows), 2.0)
    # three bits an action (see `decisions.extend_betting`): count the folds among up to 21 of each street
    digits = rows["betting_codes"][:, :, None] >> (3 * np.arange(21)) & 7
    return np.asarray(rows["players"] - (digits == FOLD + 1).sum(axis=(1, 2)), dtype=np.float64)


def equities(game: Game, rows: Array) -> Array:
    """Return the chance of each row's cards to win against one random holding, ties half."""
    if not game.is_holdem:
        cards = [(tuple(map(int, row["hole"])), tuple(map(int, row["board"]))) for row in rows]
        return np.array([_count_equity(game, *row_cards) for row_cards in cards])
    if len(rows) == 1:  # as on the wire
        return np.asarray(find_strengths(int(rows["street"][0]), rows["hole"], rows["board"])["ehs"] / FULL_STRENGTH)
    chances = np.empty(len(rows))
    for street in set(rows["street"].tolist()):
        mine = np.flatnonzero(rows["street"] == street)
        chances[mine] = find_strengths(street, rows["hole"][mine], rows["board"][mine])["ehs"] / FULL_STRENGTH
    return chances


@cache
def _count_equity(game: Game, hole: tuple[int, ...], board: tuple[int, ...]) -> float:
    """Return the chance to win in a game of few cards, by trying all of them."""
    open_cards = [card for card in board if card != NO_CARD]
    own_cards = hole[: game.hole_cards]
    unseen = [int(card) for card in game.deck if card not in (*own_cards, *open_cards)]
    counts = [board_counts(game, own_cards, other, open_cards) for other in combinations(unseen, game.hole_cards)]
    wins, ties, losses = np.sum(counts, axis=0)
    return float((wins + ties / 2) / (wins + ties + losses))


def make(name: str, arguments: str, game: Game) -> Equity:
    """Return @equity, which takes no arguments."""
    if arguments:
        raise PipelineError(f"@equity takes no arguments; leave out {arguments!r}")
    if not game.is_holdem and game.suits * game.ranks > 16:
        raise PipelineError(f"@equity plays hold'em and games of few cards, not {game.name}")
    return Equity(plain_name(f"@{name}"), game)
