"""A person's hands against agents, action by action: what a table in the terminal and one in a browser have in common.

The person sits at seat 0; the other seats are agents behind the same `Player` that plays them on the wire, so they see
match states and nothing else. Cards come from the dealer's generator. In go the person's actions; out come the state,
what the others did and how likely each of their actions was. Finished hands are kept as an ACPC log, written anew after
each, which can be ingested like any other. Nothing here knows of words or of a screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.arena.variance.estimator import adjust
from pipeline.arena.variance.logs import records_of
from pipeline.arena.variance.standings import supports
from pipeline.arena.wire.dealing import Deal, MatchPlan, deals, finished_hand, header_lines, view
from pipeline.arena.wire.player import Player
from pipeline.formats.acpc import Hand, Score
from pipeline.poker.game import Game, State, actions
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing


class Move(NamedTuple):
    """An action of a hand."""

    name: str
    """whose; the person is `you`"""
    state: State
    """before it"""
    action: int
    size: int
    mix: list[float]
    """the agent's probabilities by label; empty for the person"""


class LiveHand:
    """A hand that is being played."""

    def __init__(self, number: int, deal: Deal, game: Game, names: Sequence[str]) -> None:
        players = game.players
        self.number, self.deal = number, deal
        self.seats = [(position + number) % players for position in range(players)]
        """who sits at each position"""
        self.me = self.seats.index(0)
        """the person's position"""
        self.names = ["you" if seat == 0 else names[seat] for seat in self.seats]
        """by position"""
        self.order = [self.seats.index(seat) for seat in range(players)]
        """positions in seat order: the person first, whoever is the dealer"""
        self.state = game.start()
        self.moves: list[Move] = []

    def add(self, action: int, size: int, mix: list[float]) -> Move:
        """The player to act does this."""
        after = self.state.apply(action, size)
        move = Move(self.names[self.state.actor], self.state, action, size, mix)
        self.moves.append(move)
        self.state = after
        return move


class Sitting:
    """Hands of one person against agents, one after the other.

    Parameters: `names` in seat order, the person first; `seed` decides the cards and the agents' dice; `log_file`
    where finished hands are kept, which must not exist yet.
    """

    def __init__(
        self, game: Game, bots: Sequence[Agent], names: tuple[str, ...], seed: int, log_file: Path | None = None
    ) -> None:
        if len(bots) != game.players - 1:
            raise PipelineError(f"{game.name} seats {game.players - 1} agents beside you")
        if log_file and log_file.exists():
            raise PipelineError(f"{log_file} exists; name another log to keep what is in it")
        self.game, self.names, self.seed, self.log_file = game, names, seed, log_file
        self.hands: list[Hand] = []
        self.totals = [0.0] * game.players
        self.hand: LiveHand | None = None
        self._deals = deals(game, seed)
        self._players = [Player(bot, seed + seat) for seat, bot in enumerate(bots, 1)]
        for player in self._players:
            player.warm_up()

    @property
    def score(self) -> Score:
        """What everybody has won so far."""
        return Score(tuple(round(total, 6) for total in self.totals), self.names)

    def next_hand(self) -> LiveHand:
        """Deal a new hand; one that is not finished is not counted."""
        self.hand = LiveHand(len(self.hands), next(self._deals), self.game, self.names)
        return self.hand

    def others_act(self) -> list[Move]:
        """Let the agents act until it is the person's turn or the hand is over, which is then counted."""
        hand = self._begun()
        if len(self.hands) > hand.number:
            return []
        made = []
        while True:
            state = hand.state
            heard = {
                p: self._players[seat - 1].hear(view(hand.number, hand.deal, state, p))
                for p, seat in enumerate(hand.seats)
                if p != hand.me
            }
            if state.finished or state.actor == hand.me:
                break
            turn, player = heard[state.actor], self._players[hand.seats[state.actor] - 1]
            assert turn is not None
            ((action, size),) = actions(player.decide(turn).rpartition(":")[2])
            made.append(hand.add(action, size, player.mix))
        if hand.state.finished:
            self._count(hand)
        return made

    def act(self, action: int, size: int) -> Move:
        """The person's action; one that is not legal is an error."""
        hand = self._begun()
        if hand.state.finished or hand.state.actor != hand.me:
            raise PipelineError("it is not your turn")
        return hand.add(action, size, [])

    def _begun(self) -> LiveHand:
        if self.hand is None:
            raise PipelineError("no hand has been dealt yet")
        return self.hand

    def _count(self, hand: LiveHand) -> None:
        """Add the results of a finished hand, and write the log of the hands so far."""
        line = finished_hand(hand.number, hand.deal, hand.state, [self.names[seat] for seat in hand.seats])
        for seat, position in enumerate(hand.order):
            self.totals[seat] += line.payoffs[position]
        self.hands.append(line)
        if self.log_file is not None:
            match = MatchPlan(self.game, self.names, len(self.hands), self.seed, title=self.log_file.stem)
            with replacing(self.log_file) as path:
                path.write_text(header_lines(match) + "".join(f"{line}\n" for line in (*self.hands, self.score)))


@dataclass(frozen=True)
class Winnings:
    """What the person has won per hand, in thousandths of the big blind (of the ante in games of one card)."""

    hands: int
    mbb: float
    half: float | None
    """half of the 95% interval; None for fewer than two hands"""
    adjusted: float | None = field(default=None)
    """the same without the luck of the cards; None where that is not known"""
    adjusted_half: float | None = field(default=None)


def winnings(sitting: Sitting, *, adjusted: bool = True) -> Winnings:
    """The person's result so far, plain and, with `adjusted`, without the luck of the cards."""
    game, hands = sitting.game, sitting.hands
    won = np.array([hand.payoffs[hand.names.index(sitting.names[0])] for hand in hands]) / game.big_blind
    if len(hands) < 2:
        return Winnings(len(hands), 1000 * float(won.sum()), None)
    plain = Winnings(len(hands), 1000 * float(won.mean()), _half(won))
    if not adjusted or not supports(game):
        return plain
    records, names = records_of(game, hands, np.arange(len(hands), dtype=np.uint64))
    mine = (adjust(records) / game.big_blind)[records.seats == names.index(sitting.names[0])]
    return Winnings(plain.hands, plain.mbb, plain.half, 1000 * float(mine.mean()), _half(mine))


def _half(values: np.ndarray) -> float:
    """Half of the 95% interval of the mean, in thousandths."""
    return float(1960 * values.std(ddof=1) / len(values) ** 0.5)
