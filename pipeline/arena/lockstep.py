"""Play a block of hands in lockstep: agents and a seed go in, finished hands as arrays come out.

All hands of a block advance together: for each agent in turn a kernel gathers its observations in the hands where it
is to act, the agent is asked once, and kernels sample a label (and an amount where the agent names amounts) and apply
the rules, until the last hand is over.

Cards come from a hash of (seed, deal), the choice among an agent's probabilities from a hash of (seed, deal, seating,
number of the action), so a hand does not depend on the block it is played in. `pipeline.arena.duplicate` decides who
sits where: at position p of hand h sits the agent of seat (p + h) mod players.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, FinishedHands, amounts_of
from pipeline.arena.duplicate import by_agent, positions
from pipeline.dataset.decisions import OBSERVATION, extend_betting, observe
from pipeline.models.sizes import draw_amounts
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
    legal_labels,
    pay,
    size_of,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bits_below, hash64

TWO_TO_53 = 9007199254740992.0


class HandsInPlay(NamedTuple):
    """Hands side by side; hand i is seating i % seatings of deal `first` + i // seatings."""

    keys: Array
    """(hands,) uint64: seed of the agents' random numbers"""
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
    """Buffers for the observations of one agent in the hands in which it is to act."""

    live: Array
    """the hands that are not over yet, in the first places"""
    rows: Array
    hand: Array
    """the hand of each row"""


@kernel
def _deal(rules: Array, deck: Array, seed: int, first: int, seatings: int, shared: bool, hands: HandsInPlay) -> None:
    """Shuffle `hands.keys.size / seatings` deals from number `first` on; the seatings of a deal lie side by side.

    A deal's cards are the first ones of a Fisher-Yates shuffle whose steps are hashes of the deal's own stream.
    """
    players = rules[R_PLAYERS]
    board_size = 0
    for r in range(rules[R_ROUNDS]):
        board_size += rules[R_BOARD + r]
    cards = deck.copy()
    for i in range(hands.keys.size // seatings):
        stream = hash64(hash64(seed) ^ np.uint64(first + i))
        row = i * seatings
        card_count = players * rules[R_HOLE] + board_size
        for k in range(card_count):
            # a hash of k, as the dice below are of 64 and more: no number depends on how many were drawn before
            other = k + bits_below(hash64(stream + np.uint64(k)), cards.size - k)
            cards[k], cards[other] = cards[other], cards[k]
        hands.hole[row : row + seatings] = NO_CARD
        hands.board[row : row + seatings] = NO_CARD
        k = 0
        for p in range(players):
            for c in range(rules[R_HOLE]):
                hands.hole[row : row + seatings, p, c] = cards[k]
                k += 1
        for c in range(board_size):
            hands.board[row : row + seatings, c] = cards[k]
            k += 1
        for r in range(seatings):
            # with shared luck all seatings of a deal throw the same dice
            hands.keys[row + r] = hash64(stream + np.uint64(64 if shared else 64 + r))
            start(rules, hands.states[row + r])
        cards[:] = deck


@kernel
def _gather(
    rules: Array,
    tables: Ranking,
    hands: HandsInPlay,
    order: Array,
    first: int,
    agent: int,
    count: int,
    gathered: Gathered,
) -> tuple[int, int]:
    """Fill `gathered` with the observations of `agent` in the first `count` hands of `gathered.live` where it acts.

    Returns how many rows there are and how many hands go on: those that are over leave `gathered.live`.
    """
    players = rules[R_PLAYERS]
    seatings = order.shape[0]
    rows = 0
    live_count = 0
    for j in range(count):
        i = gathered.live[j]
        state = hands.states[i]
        # hands that are over drop out of `live`, so that late steps cost only what still goes on
        if state[S_FINISHED] != 0:
            continue
        gathered.live[live_count] = i
        live_count += 1
        actor = state[S_ACTOR]
        if order[i % seatings, (actor + first + i // seatings) % players] == agent:
            previous, hole = hands.previous[i, actor], hands.hole[i, actor]
            observe(rules, state, hands.codes[i], previous, hole, hands.board[i], tables, gathered.rows, rows)
            gathered.hand[rows] = i
            rows += 1
    return rows, live_count


@kernel
def _choose(
    rules: Array, hands: HandsInPlay, index: Array, probabilities: Array, chosen: Array, uniforms: Array
) -> int:
    """Sample a label in each hand of `index`, and a uniform number to draw an amount with.

    Returns the first row that is no distribution over legal labels, or -1.
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
        # a hash of the action's number: neither other hands nor the block's size can shift the dice
        dice = hash64(hands.keys[i] + np.uint64(k))
        remaining = np.float64(dice >> np.uint64(11)) / TWO_TO_53 * total
        chosen[j] = 0  # rounding may leave a rest after the last label: that label stays chosen
        for label in range(probabilities.shape[1]):
            p = probabilities[j, label]
            if p > 0.0:
                chosen[j] = label
                remaining -= p
                if remaining < 0.0:
                    break
        uniforms[j] = np.float64(hash64(dice) >> np.uint64(11)) / TWO_TO_53
    return -1


@kernel
def _act(rules: Array, hands: HandsInPlay, index: Array, chosen: Array, raise_by: Array) -> None:
    """Play the chosen labels; `raise_by` has the chips beyond the highest bet, -1 or nothing at all for fixed sizes."""
    for j in range(index.size):
        i, label = index[j], chosen[j]
        state = hands.states[i]
        size = 0
        if label >= RAISE and rules[R_NOLIMIT] != 0:
            named = raise_by.size > 0 and raise_by[j] >= 0
            size = amount_of(rules, state, label, raise_by[j]) if named else size_of(rules, state, label)
        street, k = state[S_ROUND], state[S_ACTIONS]
        hands.codes[i, street] = extend_betting(hands.codes[i, street], label)
        hands.previous[i, state[S_ACTOR]] = label + 1
        hands.labels[i, k] = label + 1
        hands.sizes[i, k] = size
        apply(rules, state, min(label, RAISE), size)


@kernel
def _settle(rules: Array, hands: HandsInPlay, tables: Ranking, values: Array) -> None:
    """Write the payoffs of every finished hand."""
    for i in range(hands.states.shape[0]):
        pay(rules, hands.states[i], hands.hole[i], hands.board[i], tables, values, hands.payoffs[i])


@dataclass
class HandBlock:
    """Hands that are played in lockstep."""

    game: Game
    first: int
    """the number of the first deal"""
    order: Array
    """(seatings, players): the agent in each seat"""
    hands: HandsInPlay
    answers: list[tuple[Array, Array, Array]] = field(default_factory=list)
    """(hands, action numbers, probabilities) of every answer, where they are kept"""

    @classmethod
    def dealt(cls, game: Game, seed: int, first: int, deals: int, order: Array, shared_luck: bool) -> HandBlock:
        """Return a block whose cards are dealt and whose blinds are posted."""
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
        """Play every hand to its end; `keep` the agents' probabilities in `answers`."""
        rules, tables, players = self.game.rules, ranking(), self.game.players
        gathered = Gathered(np.arange(len(self)), np.zeros(len(self), OBSERVATION), np.empty(len(self), np.int64))
        live_count, step = len(self), 0
        while live_count > 0:
            # each agent is asked once about all the hands in which it is to act: the cost is per question, not per hand
            agent = step % players
            count, live_count = _gather(rules, tables, self.hands, self.order, self.first, agent, live_count, gathered)
            if count > 0:
                played = np.ascontiguousarray(agents[agent].probabilities(gathered.rows[:count]), np.float64)
                if keep:
                    acted = gathered.hand[:count].copy()
                    self.answers.append((acted, self.hands.states[acted, S_ACTIONS], played))
                self._make_room(step)
                self._act(agents[agent], gathered.rows[:count], gathered.hand[:count], played)
            step += 1
        _settle(rules, self.hands, tables, np.zeros(players, np.int64))

    def _act(self, agent: Agent, rows: Array, index: Array, played: Array) -> None:
        """Choose labels and amounts of an agent in the hands of `index`, and play them."""
        rules = self.game.rules
        chosen, uniforms = np.empty(len(rows), np.int64), np.empty(len(rows))
        bad_row = _choose(rules, self.hands, index, played, chosen, uniforms)
        if bad_row >= 0:
            raise ValueError(f"{agent.name} gives {played[bad_row]} for {rows[bad_row]}")
        amounts = amounts_of(agent, rows, chosen)
        raise_by = np.empty(0, np.int64) if amounts is None else draw_amounts(amounts, uniforms)
        _act(rules, self.hands, index, chosen, raise_by)

    def _make_room(self, actions: int) -> None:
        """Widen the arrays for one more action where needed: no hand has more actions than there were steps."""
        if actions >= self.hands.labels.shape[1]:
            # doubled, because no-limit betting has no useful bound; most hands need far less than 32
            doubled = [np.hstack([part, np.zeros_like(part)]) for part in (self.hands.labels, self.hands.sizes)]
            self.hands = self.hands._replace(labels=doubled[0], sizes=doubled[1])

    @property
    def positions(self) -> Array:
        """Return (hands, agents) the position of each agent."""
        return positions(self.order, self.first, len(self))

    def by_agent(self) -> Array:
        """Return (deals, seatings, agents) net chips."""
        return by_agent(self.hands.payoffs, self.order, self.first)

    def seen_by(self, agent: int) -> FinishedHands:
        """Return the hands as one of the agents saw them: cards that were not shown are `NO_CARD`."""
        players, played = self.game.players, self.hands
        by_position = self.positions
        seats = (np.argsort(by_position, axis=1) - agent) % players
        folded = played.states[:, S_FOLDED, None] >> np.arange(players) & 1 == 1
        hidden = (folded | (folded.sum(axis=1, keepdims=True) == players - 1)) & (seats != 0)
        visible = np.cumsum(self.game.board_cards)[played.states[:, S_ROUND], None]
        return FinishedHands(
            position=by_position[:, agent].astype(np.uint8),
            seats=seats.astype(np.uint8),
            states=played.states,
            labels=played.labels,
            sizes=played.sizes,
            hole=np.where(hidden[:, :, None], np.uint8(NO_CARD), played.hole),
            board=np.where(np.arange(5) < visible, played.board, np.uint8(NO_CARD)),
            payoffs=played.payoffs,
        )
