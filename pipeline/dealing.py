"""What a dealer deals and writes down, without any network: the plan of a match, its cards, states, log lines.

In goes a `MatchPlan` (a game, names, a number of hands and a seed). Out come the cards of every hand, the same as the
official ACPC dealer's for the same seed (its generator, the Mersenne Twister, is numpy's first one), the match state
that each player may see, and the lines of the log. The dealer on the network and the table in the terminal share it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.acpc import Hand, Header, hand_values
from pipeline.cards import card_text
from pipeline.game import Game, State
from pipeline.time_limits import Limits

__all__ = ["Deal", "Limits", "MatchPlan", "Views", "deals", "finished_hand", "header_lines", "view"]


class MatchPlan(NamedTuple):
    """What is played: names are in seat order; positions rotate with each hand unless `fixed`."""

    game: Game
    names: tuple[str, ...]
    hands: int
    seed: int
    title: str = "match"
    fixed: bool = False
    limits: Limits = Limits()


class Deal(NamedTuple):
    """The cards of a hand: hole cards by position, and the board's cards of each street after the first."""

    holes: tuple[str, ...]
    board: tuple[str, ...]


def deals(game: Game, seed: int) -> Iterator[Deal]:
    """The hands that the official dealer deals from this seed, without end."""
    ranks, suits = range(13 - game.ranks, 13), range(4 - game.suits, 4)
    fresh = [card_text(4 * rank + suit) for suit in suits for rank in ranks]
    streets = (*(game.hole_cards,) * game.players, *game.board_cards[1:])
    ends = list(itertools.accumulate(streets))

    def deal(numbers: list[int]) -> Deal:
        deck, drawn = fresh.copy(), []
        for number in numbers:
            place = number % len(deck)
            drawn.append(deck[place])
            deck[place] = deck[-1]
            deck.pop()
        groups = tuple("".join(drawn[end - count : end]) for count, end in zip(streets, ends, strict=True))
        return Deal(groups[: game.players], groups[game.players :])

    generator = np.random.RandomState(seed)  # seeded by one number: init_genrand of the 2002 reference code
    while True:  # 64 at a time: in the middle of a match one alone takes as long as five
        numbers = generator.randint(0, 1 << 32, size=(64, ends[-1]), dtype=np.uint32).tolist()
        yield from [deal(drawn) for drawn in numbers]


def view(number: int, deal: Deal, state: State, position: int) -> str:
    """The match state of hand `number` as one player may see it."""
    if state.showdown:
        shown = "|".join(hole if p == position or not state.folded[p] else "" for p, hole in enumerate(deal.holes))
    else:
        shown = "|" * position + deal.holes[position] + "|" * (len(deal.holes) - 1 - position)
    return f"MATCHSTATE:{position}:{number}:{state.betting}:{'/'.join((shown, *deal.board[: state.round]))}"


class Views:
    """What the players of one hand are sent, as bytes: only the betting changes from state to state.

    >>> from pipeline.game import builtin
    >>> views = Views(3, Deal(("AsKd", "2c2d"), ("7h8h9h", "Tc", "Jc")))
    >>> views.line(builtin("holdem.limit.2p.reverse_blinds").start(), 1)
    b'MATCHSTATE:1:3::|2c2d'
    """

    def __init__(self, number: int, deal: Deal) -> None:
        self._number, self._deal = number, deal
        players = range(len(deal.holes))
        self._heads = [b"MATCHSTATE:%d:%d:" % (position, number) for position in players]
        boards = ["/".join(("", *deal.board[:street])) for street in range(len(deal.board) + 1)]
        shown = ["|" * position + deal.holes[position] + "|" * (players[-1] - position) for position in players]
        self._tails = [[f":{cards}{board}".encode() for board in boards] for cards in shown]

    def line(self, state: State, position: int) -> bytes:
        """The match state as the player at `position` may see it, without a line end."""
        if state.showdown:
            return view(self._number, self._deal, state, position).encode()
        return self._heads[position] + state.betting.encode() + self._tails[position][state.round]


def header_lines(match: MatchPlan) -> str:
    """The comment lines that open a log."""
    limits = match.limits
    header = Header(match.title, f"{match.game.name}.game", match.hands, match.seed)
    times = ("response", limits.response_ms), ("hand", limits.hand_ms), ("per_hand", limits.per_hand_ms)
    return "".join([f"{header}\n", *(f"#--t_{name} {time_ms}\n" for name, time_ms in times)])


def finished_hand(number: int, deal: Deal, state: State, names: Sequence[str]) -> Hand:
    """The log's line of a finished hand; `names` by position."""
    values = hand_values(state.game, deal.holes, deal.board) if state.showdown else [0] * state.game.players
    payoffs = tuple(round(value, 6) for value in state.payoffs(values))
    return Hand(number, state.betting, deal.holes, deal.board[: state.round], payoffs, tuple(names))
