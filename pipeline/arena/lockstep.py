"""Hands played in lockstep: the kernels and the block of hands behind the arena.

All hands of a block advance together: for each agent in turn a kernel gathers what it sees in the hands where it is
to act, the agent is asked once, kernels choose a label and, where the agent names amounts, how much it bets, and apply
the rules, until the last hand is over.

Cards come from a hash of (seed, deal), the choice among an agent's probabilities from a hash of (seed, deal, seating,
number of the action), so a hand does not depend on the block it is played in. Who sits where is the matter of
`pipeline.arena.duplicate`: at position p of hand h sits the agent of seat (p + h) mod players.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, FinishedHands, amounts_of
from pipeline.dataset.decisions import OBSERVATION, extend, observe
from pipeline.models.sizes import drawn
from pipeline.poker.cards import NO_CARD, Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    R_BOARD,
    R_HOLE,
    R_NOLIMIT,
    R_PLAYERS,
    R_ROUNDS,
    RAISE,
    S_ACTIONS,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_ROUND,
    STATE_SIZE,
    amount_of,
    apply,
    is_showdown,
    legal_labels,
    settle,
    showdown,
    size_of,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

TWO_TO_53 = 9007199254740992.0


class HandsInPlay(NamedTuple):
    """Hands side by side; hand i is seating i % seatings of deal `first` + i // seatings."""

    keys: Array
    """where the agents' random numbers start"""
    hole: Array
    board: Array
    states: Array
    codes: Array
    """(hands, streets): the betting codes"""
    previous: Array
    """(hands, players): label + 1 of each player's last action"""
    labels: Array
    """(hands, actions): label + 1 of each action"""
    sizes: Array
    payoffs: Array
    """(hands, players): net chips by position"""


class Gathered(NamedTuple):
    """Room for what one agent sees of the hands in which it is to act."""

    live: Array
    """the hands that are not over yet"""
    rows: Array
    hand: Array
    """the hand of each row"""


@kernel
def _deal(rules: Array, deck: Array, seed: int, first: int, seatings: int, shared: bool, hands: HandsInPlay) -> None:
    """Shuffle `hands.keys.size / seatings` deals from number `first` on; the seatings of a deal lie side by side."""
    players = rules[R_PLAYERS]
    shown = 0
    for r in range(rules[R_ROUNDS]):
        shown += rules[R_BOARD + r]
    cards = deck.copy()
    for i in range(hands.keys.size // seatings):
        stream = hash64(hash64(seed) ^ np.uint64(first + i))
        at = i * seatings
        drawn = players * rules[R_HOLE] + shown
        for k in range(drawn):
            left = np.uint64(cards.size - k)
            other = k + np.int64(((hash64(stream + np.uint64(k)) >> np.uint64(32)) * left) >> np.uint64(32))
            cards[k], cards[other] = cards[other], cards[k]
        hands.hole[at : at + seatings] = NO_CARD
        hands.board[at : at + seatings] = NO_CARD
        k = 0
        for p in range(players):
            for c in range(rules[R_HOLE]):
                hands.hole[at : at + seatings, p, c] = cards[k]
                k += 1
        for c in range(shown):
            hands.board[at : at + seatings, c] = cards[k]
            k += 1
        for r in range(seatings):
            hands.keys[at + r] = hash64(stream + np.uint64(64 if shared else 64 + r))
            start(rules, hands.states[at + r])
        cards[:] = deck


@kernel
def _gather(
    rules: Array, tables: Ranking, hands: HandsInPlay, order: Array, first: int, agent: int, count: int, found: Gathered
) -> tuple[int, int]:
    """Fill `found` with what `agent` sees where it is to act, in the first `count` hands of `found.live`.

    Returns how many rows there are and how many hands go on: those that are over leave `found.live`.
    """
    players = rules[R_PLAYERS]
    seatings = order.shape[0]
    rows = 0
    kept = 0
    for j in range(count):
        i = found.live[j]
        state = hands.states[i]
        if state[S_FINISHED] != 0:
            continue
        found.live[kept] = i
        kept += 1
        actor = state[S_ACTOR]
        if order[i % seatings, (actor + first + i // seatings) % players] == agent:
            previous, hole = hands.previous[i, actor], hands.hole[i, actor]
            observe(rules, state, hands.codes[i], previous, hole, hands.board[i], tables, found.rows, rows)
            found.hand[rows] = i
            rows += 1
    return rows, kept


@kernel
def _choose(rules: Array, hands: HandsInPlay, index: Array, probabilities: Array, chosen: Array, luck: Array) -> int:
    """Sample a label in each hand of `index`, and luck to choose an amount by.

    Returns the first row that is no mix of legal labels, or -1.
    """
    for j in range(index.size):
        i = index[j]
        state = hands.states[i]
        legal = legal_labels(rules, state)
        total = 0.0
        for label in range(probabilities.shape[1]):
            p = probabilities[j, label]
            if not p >= 0.0 or (p > 0.0 and (legal >> label) & 1 == 0):
                return j
            total += p
        if not abs(total - 1.0) < 1e-6:
            return j
        k = state[S_ACTIONS]
        dice = hash64(hands.keys[i] + np.uint64(k))
        left = np.float64(dice >> np.uint64(11)) / TWO_TO_53 * total
        chosen[j] = 0
        for label in range(probabilities.shape[1]):
            p = probabilities[j, label]
            if p > 0.0:
                chosen[j] = label
                left -= p
                if left < 0.0:
                    break
        luck[j] = np.float64(hash64(dice) >> np.uint64(11)) / TWO_TO_53
    return -1


@kernel
def _act(rules: Array, hands: HandsInPlay, index: Array, chosen: Array, by: Array) -> None:
    """Play the chosen labels; `by` has the chips beyond the highest bet, -1 or nothing at all for the fixed sizes."""
    for j in range(index.size):
        i, label = index[j], chosen[j]
        state = hands.states[i]
        size = 0
        if label >= RAISE and rules[R_NOLIMIT] != 0:
            named = by.size > 0 and by[j] >= 0
            size = amount_of(rules, state, label, by[j]) if named else size_of(rules, state, label)
        street, k = state[S_ROUND], state[S_ACTIONS]
        hands.codes[i, street] = extend(hands.codes[i, street], label)
        hands.previous[i, state[S_ACTOR]] = label + 1
        hands.labels[i, k] = label + 1
        hands.sizes[i, k] = size
        apply(rules, state, min(label, RAISE), size)


@kernel
def _settle(rules: Array, hands: HandsInPlay, tables: Ranking, values: Array) -> None:
    """Write down what every finished hand pays."""
    for i in range(hands.states.shape[0]):
        if is_showdown(rules, hands.states[i]):
            showdown(rules, hands.hole[i], hands.board[i], tables, values)
        settle(rules, hands.states[i], values, hands.payoffs[i])


@dataclass
class Block:
    """Hands played in lockstep."""

    game: Game
    first: int
    """the number of the first deal"""
    order: Array
    """(seatings, players): the agent in each seat"""
    hands: HandsInPlay
    answers: list[tuple[Array, Array, Array]] = field(default_factory=list)
    """(hands, action numbers, probabilities) of every answer, where they are kept"""

    @classmethod
    def dealt(cls, game: Game, seed: int, first: int, deals: int, order: Array, shared_luck: bool) -> Block:
        """Cards on the table, blinds posted."""
        players = game.players
        count = deals * len(order)
        hands = HandsInPlay(
            keys=np.empty(count, np.uint64),
            hole=np.empty((count, players, 2), np.uint8),
            board=np.empty((count, 5), np.uint8),
            states=np.empty((count, STATE_SIZE), np.int64),
            codes=np.zeros((count, 4), np.int64),
            previous=np.zeros((count, players), np.int64),
            labels=np.zeros((count, 32), np.uint8),
            sizes=np.zeros((count, 32), np.int64),
            payoffs=np.empty((count, players)),
        )
        _deal(game.rules, game.deck, seed, first, len(order), shared_luck, hands)
        return cls(game, first, order, hands)

    def __len__(self) -> int:
        return len(self.hands.keys)

    def play(self, agents: Sequence[Agent], keep: bool = False) -> None:
        """Play every hand to its end; `keep` the agents' probabilities."""
        rules, tables, players = self.game.rules, ranking(), self.game.players
        found = Gathered(np.arange(len(self)), np.zeros(len(self), OBSERVATION), np.empty(len(self), np.int64))
        left, turn = len(self), 0
        while left > 0:
            agent = turn % players
            count, left = _gather(rules, tables, self.hands, self.order, self.first, agent, left, found)
            if count > 0:
                played = np.ascontiguousarray(agents[agent].probabilities(found.rows[:count]), np.float64)
                if keep:
                    acted = found.hand[:count].copy()
                    self.answers.append((acted, self.hands.states[acted, S_ACTIONS], played))
                self._make_room(turn)
                self._act(agents[agent], found.rows[:count], found.hand[:count], played)
            turn += 1
        _settle(rules, self.hands, tables, np.zeros(players, np.int64))

    def _act(self, agent: Agent, rows: Array, index: Array, played: Array) -> None:
        """Choose labels and amounts of an agent in the hands of `index`, and play them."""
        rules = self.game.rules
        chosen, luck = np.empty(len(rows), np.int64), np.empty(len(rows))
        wrong = _choose(rules, self.hands, index, played, chosen, luck)
        if wrong >= 0:
            raise ValueError(f"{agent.name} gives {played[wrong]} for {rows[wrong]}")
        amounts = amounts_of(agent, rows, chosen)
        by = np.empty(0, np.int64) if amounts is None else drawn(amounts, luck)
        _act(rules, self.hands, index, chosen, by)

    def _make_room(self, actions: int) -> None:
        """Make room for one more action: no hand has had more than there were turns."""
        if actions >= self.hands.labels.shape[1]:
            wider = [np.hstack([part, np.zeros_like(part)]) for part in (self.hands.labels, self.hands.sizes)]
            self.hands = self.hands._replace(labels=wider[0], sizes=wider[1])

    @property
    def positions(self) -> Array:
        """(hands, agents): where each agent sat."""
        players = self.game.players
        seats = np.argsort(self.order, axis=1)
        deal, seating = np.divmod(np.arange(len(self)), len(self.order))
        return np.asarray((seats[seating] - self.first - deal[:, None]) % players)

    def by_agent(self) -> Array:
        """(deals, seatings, agents): net chips."""
        won = np.take_along_axis(self.hands.payoffs, self.positions, axis=1)
        return won.reshape(-1, len(self.order), self.game.players)

    def seen_by(self, agent: int) -> FinishedHands:
        """The hands as one of the agents saw them."""
        players, played = self.game.players, self.hands
        positions = self.positions
        mine = positions[:, agent]
        seats = (np.argsort(positions, axis=1) - agent) % players
        folded = played.states[:, S_FOLDED, None] >> np.arange(players) & 1 == 1
        hidden = (folded | (folded.sum(axis=1, keepdims=True) == players - 1)) & (seats != 0)
        visible = np.cumsum(self.game.board_cards)[played.states[:, S_ROUND], None]
        return FinishedHands(
            position=mine.astype(np.uint8),
            seats=seats.astype(np.uint8),
            states=played.states,
            labels=played.labels,
            sizes=played.sizes,
            hole=np.where(hidden[:, :, None], np.uint8(NO_CARD), played.hole),
            board=np.where(np.arange(5) < visible, played.board, np.uint8(NO_CARD)),
            payoffs=played.payoffs,
        )
