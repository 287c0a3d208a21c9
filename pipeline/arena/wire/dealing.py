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

from pipeline.arena.wire.time_limits import Limits
from pipeline.formats.acpc import Hand, Header, hand_values
from pipeline.poker.cards import card_text, ranking
from pipeline.poker.game import Game, State
from pipeline.poker.showdown import showdown_values

AT_ONCE = 64
"""hands that are dealt at once: one alone takes as long as five"""


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
    values: tuple[int, ...] = ()
    """what each player's cards are worth on the whole board; none where nobody has looked yet"""


def deals(game: Game, seed: int) -> Iterator[Deal]:
    """The hands that the official dealer deals from this seed, without end."""
    ranks, suits = range(13 - game.ranks, 13), range(4 - game.suits, 4)
    fresh = np.array([4 * rank + suit for suit in suits for rank in ranks], dtype=np.uint8)
    texts = np.array([card_text(card) for card in range(52)])
    streets = (*(game.hole_cards,) * game.players, *game.board_cards[1:])
    starts = [0, *itertools.accumulate(streets)]
    held = game.players * game.hole_cards
    generator = np.random.RandomState(seed)  # seeded by one number: init_genrand of the 2002 reference code
    every = np.arange(AT_ONCE)
    while True:
        numbers = generator.randint(0, 1 << 32, size=(AT_ONCE, starts[-1]), dtype=np.uint32)
        decks, drawn = np.tile(fresh, (AT_ONCE, 1)), np.empty(numbers.shape, dtype=np.uint8)
        for card, left in enumerate(range(len(fresh), len(fresh) - starts[-1], -1)):
            place = numbers[:, card] % left
            drawn[:, card] = decks[every, place]
            decks[every, place] = decks[:, left - 1]
        worth = np.empty((AT_ONCE, game.players), dtype=np.int64)
        showdown_values(drawn[:, :held], game.hole_cards, drawn[:, held:], ranking(), worth)
        for words, values in zip(texts[drawn].tolist(), worth.tolist(), strict=True):
            groups = tuple("".join(words[start:end]) for start, end in itertools.pairwise(starts))
            yield Deal(groups[: game.players], groups[game.players :], tuple(values))


def view(number: int, deal: Deal, state: State, position: int) -> str:
    """The match state of hand `number` as one player may see it."""
    if state.showdown:
        shown = "|".join(hole if p == position or not state.folded[p] else "" for p, hole in enumerate(deal.holes))
    else:
        shown = "|" * position + deal.holes[position] + "|" * (len(deal.holes) - 1 - position)
    return f"MATCHSTATE:{position}:{number}:{state.betting}:{'/'.join((shown, *deal.board[: state.round]))}"


class Views:
    """What the players of one hand are sent, as bytes: only the betting changes from state to state.

    >>> from pipeline.poker.game import builtin
    >>> views = Views(3, Deal(("AsKd", "2c2d"), ("7h8h9h", "Tc", "Jc")))
    >>> views.line(builtin("holdem.limit.2p.reverse_blinds").start(), 1)
    b'MATCHSTATE:1:3::|2c2d'
    """

    def __init__(self, number: int, deal: Deal) -> None:
        self._number, self._deal = number, deal
        last = len(deal.holes) - 1
        boards = [b"", *(b"/" + street.encode() for street in deal.board)]
        self._heads, self._tails = [], []
        for position, hole in enumerate(deal.holes):
            self._heads.append(b"MATCHSTATE:%d:%d:" % (position, number))
            shown = b":" + b"|" * position + hole.encode() + b"|" * (last - position)
            self._tails.append([shown := shown + board for board in boards])

    def line(self, state: State, position: int) -> bytes:
        """The match state as the player at `position` may see it, without a line end."""
        if state.showdown:
            return view(self._number, self._deal, state, position).encode()
        return self._heads[position] + state.written + self._tails[position][state.round]


def header_lines(match: MatchPlan) -> str:
    """The comment lines that open a log."""
    limits = match.limits
    header = Header(match.title, f"{match.game.name}.game", match.hands, match.seed)
    times = ("response", limits.response_ms), ("hand", limits.hand_ms), ("per_hand", limits.per_hand_ms)
    return "".join([f"{header}\n", *(f"#--t_{name} {time_ms}\n" for name, time_ms in times)])


def finished_hand(number: int, deal: Deal, state: State, names: Sequence[str]) -> Hand:
    """The log's line of a finished hand; `names` by position."""
    values: Sequence[int] = [0] * state.game.players
    if state.showdown:
        values = deal.values or hand_values(state.game, deal.holes, deal.board)
    payoffs = tuple([round(value, 6) for value in state.payoffs(values)])
    return Hand(number, state.betting, deal.holes, deal.board[: state.round], payoffs, tuple(names))
