"""Hands played in lockstep: the kernels and the block of hands behind the arena.

All hands of a block advance together: for each agent in turn a kernel gathers what it sees in the hands where it is
to act, the agent is asked once, and a kernel samples, applies the rules and goes on until the last hand is over.

Cards come from a hash of (seed, deal), the choice among an agent's probabilities from a hash of (seed, deal, seating,
number of the action), so a hand does not depend on the block it is played in. At position p of hand h in seating r
sits agent (p + h + r) mod players, as in ACPC matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.agents import Agent, FinishedHands
from pipeline.cards import NO_CARD, Ranking, ranking
from pipeline.decisions import OBSERVATION, extend, observe
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.numeric import hash64
from pipeline.rules import (
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
    apply,
    is_showdown,
    legal_labels,
    settle,
    showdown,
    size_of,
    start,
)

__all__ = ["Block"]

Array = npt.NDArray[Any]


@kernel
def _deal(
    rules: Array,
    deck: Array,
    seed: int,
    first: int,
    seatings: int,
    shared: bool,
    keys: Array,
    hole: Array,
    board: Array,
) -> None:
    """Shuffle `keys.size / seatings` deals from number `first` on; the seatings of a deal lie side by side."""
    players = rules[R_PLAYERS]
    shown = 0
    for r in range(rules[R_ROUNDS]):
        shown += rules[R_BOARD + r]
    cards = deck.copy()
    for i in range(keys.size // seatings):
        stream = hash64(hash64(seed) ^ np.uint64(first + i))
        at = i * seatings
        drawn = players * rules[R_HOLE] + shown
        for k in range(drawn):
            left = np.uint64(cards.size - k)
            other = k + np.int64(((hash64(stream + np.uint64(k)) >> np.uint64(32)) * left) >> np.uint64(32))
            cards[k], cards[other] = cards[other], cards[k]
        hole[at : at + seatings] = NO_CARD
        board[at : at + seatings] = NO_CARD
        k = 0
        for p in range(players):
            for c in range(rules[R_HOLE]):
                hole[at : at + seatings, p, c] = cards[k]
                k += 1
        for c in range(shown):
            board[at : at + seatings, c] = cards[k]
            k += 1
        for r in range(seatings):
            keys[at + r] = hash64(stream + np.uint64(64 if shared else 64 + r))
        cards[:] = deck


@kernel
def _start(rules: Array, states: Array) -> None:
    for i in range(states.shape[0]):
        start(rules, states[i])


@kernel
def _gather(
    rules: Array,
    agent: int,
    first: int,
    seatings: int,
    live: Array,
    count: int,
    states: Array,
    words: Array,
    previous: Array,
    hole: Array,
    board: Array,
    tables: Ranking,
    rows: Array,
    index: Array,
) -> tuple[int, int]:
    """Fill `rows` where `agent` is to act, `index` with their hands; drops finished hands from `live`."""
    players = rules[R_PLAYERS]
    found = 0
    kept = 0
    for j in range(count):
        i = live[j]
        if states[i, S_FINISHED] != 0:
            continue
        live[kept] = i
        kept += 1
        actor = states[i, S_ACTOR]
        if (actor + first + i // seatings + i % seatings) % players == agent:
            observe(rules, states[i], words[i], previous[i, actor], hole[i, actor], board[i], tables, rows, found)
            index[found] = i
            found += 1
    return found, kept


@kernel
def _act(
    rules: Array,
    states: Array,
    words: Array,
    previous: Array,
    keys: Array,
    index: Array,
    count: int,
    probabilities: Array,
    labels: Array,
    sizes: Array,
) -> int:
    """Sample a label in each hand of `index` and play it; returns the first row that is no mix of legal ones, or -1."""
    for j in range(count):
        i = index[j]
        state = states[i]
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
        luck = np.float64(hash64(keys[i] + np.uint64(k)) >> np.uint64(11)) / 9007199254740992.0 * total
        chosen = 0
        for label in range(probabilities.shape[1]):
            p = probabilities[j, label]
            if p > 0.0:
                chosen = label
                luck -= p
                if luck < 0.0:
                    break
        size = size_of(rules, state, chosen) if chosen >= RAISE and rules[R_NOLIMIT] != 0 else 0
        street = state[S_ROUND]
        words[i, street] = extend(words[i, street], chosen)
        previous[i, state[S_ACTOR]] = chosen + 1
        labels[i, k] = chosen + 1
        sizes[i, k] = size
        apply(rules, state, min(chosen, RAISE), size)
    return -1


@kernel
def _settle(
    rules: Array, states: Array, hole: Array, board: Array, tables: Ranking, values: Array, payoffs: Array
) -> None:
    for i in range(states.shape[0]):
        if is_showdown(rules, states[i]):
            showdown(rules, hole[i], board[i], tables, values)
        settle(rules, states[i], values, payoffs[i])


@dataclass
class Block:
    """Hands played in lockstep; hand i is seating i % players of deal `first` + i // players."""

    game: Game
    first: int
    keys: Array
    hole: Array
    board: Array
    states: Array
    words: Array
    previous: Array
    labels: Array
    """label + 1 of each action of each hand"""
    sizes: Array
    payoffs: Array
    """net chips by position"""
    asked: list[tuple[Array, Array, Array]] = field(default_factory=list)
    """(hands, action numbers, probabilities) of every answer, where they are kept"""

    @classmethod
    def dealt(cls, game: Game, seed: int, first: int, deals: int, shared_luck: bool) -> Block:
        """Cards on the table, blinds posted."""
        players = game.players
        count = deals * players
        block = cls(
            game=game,
            first=first,
            keys=np.empty(count, np.uint64),
            hole=np.empty((count, players, 2), np.uint8),
            board=np.empty((count, 5), np.uint8),
            states=np.empty((count, STATE_SIZE), np.int64),
            words=np.zeros((count, 4), np.int64),
            previous=np.zeros((count, players), np.int64),
            labels=np.zeros((count, 32), np.uint8),
            sizes=np.zeros((count, 32), np.int64),
            payoffs=np.empty((count, players)),
        )
        _deal(game.rules, game.deck, seed, first, players, shared_luck, block.keys, block.hole, block.board)
        _start(game.rules, block.states)
        return block

    def play(self, agents: Sequence[Agent], keep: bool = False) -> None:
        """Play every hand to its end; `keep` the agents' probabilities."""
        rules, tables, players = self.game.rules, ranking(), self.game.players
        rows = np.zeros(len(self.keys), OBSERVATION)
        index = np.empty(len(self.keys), np.int64)
        live = np.arange(len(self.keys))
        count, turn = len(live), 0
        seen = self.states, self.words, self.previous
        while count > 0:
            agent = turn % players
            found, count = _gather(
                rules, agent, self.first, players, live, count, *seen, self.hole, self.board, tables, rows, index
            )
            if found > 0:
                played = np.ascontiguousarray(agents[agent].probabilities(rows[:found]), np.float64)
                if keep:
                    acted = index[:found].copy()
                    self.asked.append((acted, self.states[acted, S_ACTIONS], played))
                self._room(turn)
                wrong = _act(rules, *seen, self.keys, index, found, played, self.labels, self.sizes)
                if wrong >= 0:
                    raise ValueError(f"{agents[agent].name} gives {played[wrong]} for {rows[wrong]}")
            turn += 1
        values = np.zeros(players, np.int64)
        _settle(rules, self.states, self.hole, self.board, tables, values, self.payoffs)

    def _room(self, actions: int) -> None:
        """Make room for one more action: no hand has had more than there were turns."""
        if actions >= self.labels.shape[1]:
            self.labels = np.hstack([self.labels, np.zeros_like(self.labels)])
            self.sizes = np.hstack([self.sizes, np.zeros_like(self.sizes)])

    @property
    def positions(self) -> Array:
        """(hands, agents): where each agent sat."""
        players = self.game.players
        hand = np.arange(len(self.keys))[:, None]
        return np.asarray((np.arange(players) - self.first - hand // players - hand % players) % players)

    def by_agent(self) -> Array:
        """(deals, seatings, agents): net chips."""
        players = self.game.players
        return np.take_along_axis(self.payoffs, self.positions, axis=1).reshape(-1, players, players)

    def seen_by(self, agent: int) -> FinishedHands:
        """The hands as one of the agents saw them."""
        players = self.game.players
        positions = self.positions
        mine = positions[:, agent]
        seats = (np.argsort(positions, axis=1) - agent) % players
        folded = self.states[:, S_FOLDED, None] >> np.arange(players) & 1 == 1
        hidden = (folded | (folded.sum(axis=1, keepdims=True) == players - 1)) & (seats != 0)
        visible = np.cumsum(self.game.board_cards)[self.states[:, S_ROUND], None]
        return FinishedHands(
            position=mine.astype(np.uint8),
            seats=seats.astype(np.uint8),
            states=self.states,
            labels=self.labels,
            sizes=self.sizes,
            hole=np.where(hidden[:, :, None], np.uint8(NO_CARD), self.hole),
            board=np.where(np.arange(5) < visible, self.board, np.uint8(NO_CARD)),
            payoffs=self.payoffs,
        )
