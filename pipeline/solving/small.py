"""Small games as tables: the betting tree, all deals by rank with their probabilities, a row for each decision.

A decision is (betting node, own card's rank, board card's rank); `Spot` is how people write it. Suits do not matter in
these games, so a deal is one rank for each player and one for the board (-1 in games without), and rows are
node-major.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.betting_tree import BettingTree
from pipeline.poker.cards import RANKS
from pipeline.poker.game import Game, actions, kuhn
from pipeline.poker.rules import (
    NO_STACK,
    S_ACTOR,
    S_FINISHED,
    S_ROUND,
    settle,
)
from pipeline.poker.showdown import ranks_value
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel

MOST_DEALS = 10_000
"""more deals than this are not enumerated (Kuhn has 5,040 with 6 players, 40,320 with 7)"""
NO_BOARD = 99
"""the round of the board card in games without one"""
NAMES = "1" + RANKS
"""of ranks: Kuhn poker for 13 players has one more than a deck"""


class GameTables(NamedTuple):
    """A small game as kernels walk it."""

    rules: Array
    states: Array
    """(nodes, ...) the betting state at each node"""
    child: Array
    """(nodes, 3) where fold, call and raise lead; -1 where an action is not legal"""
    board_round: int
    """the round in which the board card is open, or `NO_BOARD`"""
    ranks: int


class Spot(NamedTuple):
    """A decision of a small game: the betting so far, the own card's rank and the board's."""

    betting: str
    card: str
    board: str = ""

    @classmethod
    def parse(cls, text: str) -> Spot:
        """Read `BETTING:CARD[BOARD]`.

        >>> Spot.parse("cr:K"), Spot.parse("cc/r:QA")
        (Spot(betting='cr', card='K', board=''), Spot(betting='cc/r', card='Q', board='A'))
        """
        betting, colon, cards = text.partition(":")
        if not colon or not 1 <= len(cards) <= 2:
            raise PipelineError(f"{text!r} is not BETTING:CARD[BOARD], like cr:K or cc/r:QA")
        return cls(betting, cards[0], cards[1:])

    def __str__(self) -> str:
        return f"{self.betting}:{self.card}{self.board}"


@dataclass(frozen=True)
class SmallGame:
    """A game's betting tree and deals by rank, as the kernels read them."""

    game: Game

    def __post_init__(self) -> None:
        if self.game.nolimit or self.game.hole_cards != 1 or sum(self.game.board_cards) > 1:
            raise PipelineError(
                f"{self.game.name}: only limit games with one hole card and at most one board card are solved here"
            )

    @cached_property
    def tree(self) -> BettingTree:
        """Grow the tree of every betting sequence of the game."""
        return self.game.betting_tree()

    @property
    def infos(self) -> int:
        """Count the information sets of a node: own card and board, if one may lie open."""
        return self.game.ranks * (self.game.ranks + 1 if sum(self.game.board_cards) else 1)

    @property
    def rows(self) -> int:
        """Count the rows of a strategy, those of finished nodes included."""
        return len(self.tree.states) * self.infos

    @cached_property
    def tables(self) -> GameTables:
        """Return the game as kernels walk it."""
        visible = [r for r in range(self.game.rounds) if self.game.visible(r)]
        board_round = visible[0] if visible else NO_BOARD
        return GameTables(self.game.rules, self.tree.states, self.tree.child, board_round, self.game.ranks)

    def seat_rows(self, player: int) -> Array:
        """Return (rows,) whether a decision is that player's."""
        return np.repeat(self.tree.states[:, S_ACTOR] == player, self.infos)

    @property
    def dealt(self) -> int:
        """Count the cards of a deal: one a player and the board."""
        return self.game.players + sum(self.game.board_cards)

    @cached_property
    def enumerable(self) -> bool:
        """Return whether all deals are few enough to be listed."""
        ways = self.game.ranks**self.dealt
        if self.game.suits == 1:
            ways = int(np.prod(np.arange(self.game.ranks, self.game.ranks - self.dealt, -1, dtype=float)))
        return ways <= MOST_DEALS

    @cached_property
    def deals(self) -> tuple[Array, Floats]:
        """List all deals as ranks (deals, players + 1), the board or -1 last, and their probabilities."""
        ranks, suits = self.game.ranks, self.game.suits
        ways = itertools.permutations(range(ranks), self.dealt) if suits == 1 else None
        rows, weights = [], []
        for row in ways or itertools.product(range(ranks), repeat=self.dealt):
            weight = 1
            for i, card in enumerate(row):
                weight *= suits - row[:i].count(card)
            if weight > 0:
                rows.append((*row, -1) if self.dealt == self.game.players else row)
                weights.append(weight)
        return np.array(rows, dtype=np.int64), np.array(weights) / np.sum(weights)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw `count` random deals."""
        deck = np.tile(np.arange(self.game.ranks * self.game.suits) // self.game.suits, (count, 1))
        out = np.full((count, self.game.players + 1), -1, dtype=np.int64)
        out[:, : self.dealt] = rng.permuted(deck, axis=1)[:, : self.dealt]
        return out

    def row(self, spot: Spot) -> int:
        """Return the row of a decision in the tables."""
        node, rounds = 0, 0
        for number, part in enumerate(spot.betting.split("/")):
            rounds = number
            for action, _ in actions(part):
                node = int(self.tree.child[node, action])
                if node < 0:
                    raise PipelineError(f"{spot.betting!r} is not a betting sequence of {self.game.name}")
        state = self.tree.states[node]
        if state[S_FINISHED] or state[S_ROUND] != rounds:
            raise PipelineError(f"after {spot.betting!r} no player acts in that round of {self.game.name}")
        names = NAMES[len(NAMES) - self.game.ranks :]
        for name in (spot.card, spot.board):
            if name and name not in names:
                raise PipelineError(f"{self.game.name} has no card {name!r}: its ranks are {names}")
        return int(self.row_at(node, names.index(spot.card), names.index(spot.board) if spot.board else -1))

    def row_at(self, node: Any, card: Any, board: Any = -1) -> Any:
        """Return the row of a betting node and of ranks counted from the game's lowest (no board: -1), or arrays."""
        return node * self.infos + (board + 1) * self.game.ranks + card

    def spots(self) -> list[Spot]:
        """List all decisions, in the order of the tree."""
        names = NAMES[len(NAMES) - self.game.ranks :]
        spots: list[Spot] = []
        pending = [(0, "")]
        while pending:
            node, text = pending.pop(0)
            state = self.tree.states[node]
            if state[S_FINISHED]:
                continue
            boards = names if self.game.visible(int(state[S_ROUND])) else ("",)
            spots.extend(Spot(text, card, board) for board in boards for card in names)
            for action, child in enumerate(self.tree.child[node]):
                if child >= 0:
                    over = self.tree.states[child][S_ROUND] > state[S_ROUND] and not self.tree.states[child][S_FINISHED]
                    pending.append((int(child), text + "fcr"[action] + ("/" if over else "")))
        return spots


def kuhn_game(players: int) -> Game:
    """Return Kuhn poker for 2 to 13 players; 13 need a 14th rank, which no deck has: that game can only be solved."""
    if not 2 <= players <= 13:
        raise PipelineError(f"Kuhn poker can be solved for 2 to 13 players, not {players}")
    if players != 13:
        return kuhn(players)
    ones = (1,) * players
    return replace(kuhn(12), name="kuhn.limit.13p", players=13, ranks=14, blinds=ones, stacks=(NO_STACK,) * players)


@kernel(leaf=True)
def actor_row(node: int, states: Array, deal: Array, board_round: int, ranks: int) -> int:
    """Return the row of the decision at `node` for its actor."""
    # the row depends on what the actor sees alone, so deals that it cannot tell apart share one information set
    card = deal[states[node, S_ACTOR]]
    if board_round == NO_BOARD:
        return node * ranks + card
    board = deal[len(deal) - 1] if states[node, S_ROUND] >= board_round else -1
    return node * ranks * (ranks + 1) + (board + 1) * ranks + card


@kernel(leaf=True)
def settle_deal(rules: Array, state: Array, deal: Array, hands: Array, result: Floats) -> None:
    """Write the net chips of a finished hand to `result`, and the values of the players' cards to `hands`."""
    last = len(deal) - 1
    board = deal[last]
    for p in range(last):
        hands[p] = ranks_value(deal[p], 1) if board < 0 else ranks_value(deal[p] | board << 4, 2)
    settle(rules, state, hands, result)
