"""Finished hands of the arena made ready for `pipeline.arena.variance`: as records, and with imagined hole cards.

`block_records` turns a played block into `HandRecords`. `imagine` makes imaginary observations of them: finished hands
as they would have gone with other cards of an agent whose mixes are known. Records of hands go in, and one of the
agents; out come the same hands once for every holding that the agent could have had, each with how likely it is given
the betting (the agent's reach probability: the product of its probabilities of its actions), with the payoffs that the
holding would have had, and with the agent's mixes at its decisions. `pipeline.arena.variance` takes their weighted mean
in place of the hand: the mean over many hands stays the same (Bowling and others, 2008; the "imaginary observations" of
AIVAT), because nobody else could see which of the holdings it was.

Up to `count` holdings are used: all of them in small games, otherwise the one that was held and others drawn at random
from the cards that nobody else holds and that do not lie open. Among such a set each is as likely as its weight says,
so the mean is exact with few of them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeline.agents.lbr import LocalResponse
from pipeline.agents.protocol import Agent
from pipeline.arena.lockstep import Block
from pipeline.arena.variance.records import HandRecords
from pipeline.dataset.decisions import OBSERVATION, extend, observe
from pipeline.poker.cards import NO_CARD, Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    R_BOARD,
    R_HOLE,
    R_PLAYERS,
    RAISE,
    S_ACTOR,
    S_ROUND,
    STATE_SIZE,
    apply,
    is_showdown,
    settle,
    showdown,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

OWN_LUCK = 0x6C75636B
"""apart from the seeds that cards and actions come from"""


@kernel(leaf=True)
def _streams(seed: int, deals: Array, out: Array) -> None:
    for i in range(deals.shape[0]):
        out[i] = hash64(hash64(hash64(seed) ^ np.uint64(OWN_LUCK)) + deals[i])


def block_records(block: Block, seed: int) -> HandRecords:
    """The hands of a block that has been played; with the agents' probabilities where the block kept them."""
    hands, count = block.hands, len(block)
    mixes = None
    if block.answers:
        mixes = np.full((count, hands.labels.shape[1], len(block.game.labels)), np.nan)
        for rows, numbers, played in block.answers:
            mixes[rows, numbers] = played
    deals = (block.first + np.arange(count) // len(block.order)).astype(np.uint64)
    streams = np.empty(count, np.uint64)
    _streams(seed, deals, streams)
    return HandRecords(
        game=block.game,
        hole=hands.hole,
        board=hands.board,
        labels=hands.labels,
        sizes=hands.sizes,
        payoffs=hands.payoffs,
        seats=np.argsort(block.positions, axis=1),
        deals=deals,
        streams=streams,
        probabilities=mixes,
    )


# Imagined hole cards

HOLDINGS = 16
"""holdings of an opponent of @lbr: it asks about 128 of them at each decision, so these cost little"""
AT_ONCE = 1 << 15
"""decisions that an agent is asked about together"""


class Hands(NamedTuple):
    """Hands as kernels take them."""

    hole: Array
    board: Array
    labels: Array
    sizes: Array
    position: Array
    """(hands,) int64: where the imagined agent sat"""


@kernel
def _holdings(rules: Array, deck: Array, hands: Hands, shown: Array, streams: Array, held: Array) -> None:
    """Write the holdings (hands, count, 2) that the agent could have had, the real one first; NO_CARD beyond the last.

    `shown` are the open board cards of each hand. All holdings if there is room for them, else random ones.
    """
    players, size, count = rules[R_PLAYERS], rules[R_HOLE], held.shape[1]
    cards = np.empty(52, np.uint8)
    for i in range(held.shape[0]):
        held[i] = NO_CARD
        position = hands.position[i]
        left = 0
        for card in deck:
            free = True
            for p in range(players):
                for c in range(size):
                    free = free and (p == position or hands.hole[i, p, c] != card)
            for k in range(shown[i]):
                free = free and hands.board[i, k] != card
            if free:
                cards[left] = card
                left += 1
        first, second = hands.hole[i, position, 0], hands.hole[i, position, 1]
        held[i, 0, 0], held[i, 0, 1] = first, second
        at = 1
        if (left if size == 1 else left * (left - 1) // 2) <= count:
            for a in range(left):
                for b in range(a if size == 2 else 1):
                    other = cards[b] if size == 2 else second
                    same = cards[a] == first and (size == 1 or other == second)
                    if not same and not (size == 2 and cards[a] == second and other == first):
                        held[i, at, 0], held[i, at, 1] = cards[a], other
                        at += 1
            continue
        stream = hash64(streams[i] + np.uint64(0x686F6C64))
        while at < count:
            for k in range(size):
                stream = hash64(stream + np.uint64(1))
                other = k + int(((stream >> np.uint64(32)) * np.uint64(left - k)) >> np.uint64(32))
                cards[k], cards[other] = cards[other], cards[k]
            held[i, at, 0], held[i, at, 1] = cards[0], cards[1] if size == 2 else second
            at += 1


@kernel
def _asked(rules: Array, hands: Hands, held: Array, tables: Ranking, rows: Array, turn: Array) -> int:
    """Fill `rows` with what the agent would have seen with each holding at each of its decisions, and `turn` with the
    (hand, action, holding) of each row; returns how many rows there are. Without room (`rows` empty) it only counts.
    """
    state = np.zeros(STATE_SIZE, np.int64)
    words = np.zeros(4, np.int64)
    count = 0
    for i in range(held.shape[0]):
        start(rules, state)
        words[:] = 0
        previous = 0
        for k in range(hands.labels.shape[1]):
            if hands.labels[i, k] == 0:
                break
            label, street = int(hands.labels[i, k]) - 1, state[S_ROUND]
            if state[S_ACTOR] == hands.position[i]:
                for m in range(held.shape[1]):
                    if held[i, m, 0] != NO_CARD:
                        if rows.shape[0] > 0:
                            observe(rules, state, words, previous, held[i, m], hands.board[i], tables, rows, count)
                            turn[count, 0], turn[count, 1], turn[count, 2] = i, k, m
                        count += 1
                previous = label + 1
            words[street] = extend(words[street], label)
            apply(rules, state, min(label, RAISE), hands.sizes[i, k])
    return count


@kernel
def _weigh(hands: Hands, held: Array, turn: Array, mixes: Array, weights: Array) -> None:
    """The chance that the agent would have acted as it did, for each holding (hands, count); 0 where there is none."""
    for i in range(held.shape[0]):
        for m in range(held.shape[1]):
            weights[i, m] = 0.0 if held[i, m, 0] == NO_CARD else 1.0
    for j in range(turn.shape[0]):
        weights[turn[j, 0], turn[j, 2]] *= mixes[j, hands.labels[turn[j, 0], turn[j, 1]] - 1]


@kernel
def _pay(rules: Array, hands: Hands, tables: Ranking, payoffs: Array) -> None:
    """What every hand pays, by position."""
    state = np.zeros(STATE_SIZE, np.int64)
    values = np.zeros(payoffs.shape[1], np.int64)
    for i in range(payoffs.shape[0]):
        start(rules, state)
        for k in range(hands.labels.shape[1]):
            if hands.labels[i, k] == 0:
                break
            apply(rules, state, min(int(hands.labels[i, k]) - 1, RAISE), hands.sizes[i, k])
        if is_showdown(rules, state):
            showdown(rules, hands.hole[i], hands.board[i], tables, values)
        settle(rules, state, values, payoffs[i])


@kernel
def _open_cards(rules: Array, hands: Hands, shown: Array) -> None:
    """How many board cards lay open at the end of each hand."""
    state = np.zeros(STATE_SIZE, np.int64)
    for i in range(shown.shape[0]):
        start(rules, state)
        for k in range(hands.labels.shape[1]):
            if hands.labels[i, k] == 0:
                break
            apply(rules, state, min(int(hands.labels[i, k]) - 1, RAISE), hands.sizes[i, k])
        shown[i] = 0
        for street in range(state[S_ROUND] + 1):
            shown[i] += rules[R_BOARD + street]


def imagined_hands(agents: Sequence[Agent], adjusted: bool | int) -> tuple[int, int]:
    """Whose holdings are imagined in a match and how many: the last agent's, as many as `adjusted` says; none if that
    is True, but in limit games the opponent's of an agent that answers it (@lbr).
    """
    others = [i for i, agent in enumerate(agents) if not isinstance(agent, LocalResponse)]
    if isinstance(adjusted, bool):
        responds = adjusted and len(agents) == 2 and len(others) == 1 and not agents[0].game.nolimit
        return (others[0], HOLDINGS) if responds else (0, 1)
    if adjusted > 1 and agents[0].game.nolimit:
        raise PipelineError("imagined hands are for limit games: how an amount depends on the cards is not known")
    return (others[-1] if others else len(agents) - 1), adjusted


def _ask(agent: Agent, hands: Hands, held: Array) -> tuple[Array, Array]:
    """(rows, 3) the hand, action and holding of every decision, and (rows, labels) what the agent would have done."""
    rules, tables, nothing = agent.game.rules, ranking(), np.zeros((0, 3), np.int64)
    count = _asked(rules, hands, held, tables, np.zeros(0, OBSERVATION), nothing)
    rows, turn = np.zeros(count, OBSERVATION), np.empty((count, 3), np.int64)
    if count > 0:
        _asked(rules, hands, held, tables, rows, turn)
    mixes = np.empty((count, len(agent.game.labels)))
    for first in range(0, count, AT_ONCE):
        mixes[first : first + AT_ONCE] = agent.probabilities(rows[first : first + AT_ONCE])
    return turn, mixes


def holdings(records: HandRecords, number: int, count: int) -> tuple[Hands, Array]:
    """The hands as kernels take them, and (hands, count, 2) what an agent could have held, the real cards first.

    Parameters: `number`, the agent's in the records' seats; `count`, holdings for each hand at most.
    """
    position = np.argmax(records.seats == number, axis=1)
    hands = Hands(records.hole, records.board, records.labels, records.sizes, position)
    shown = np.empty(len(records), np.int64)
    _open_cards(records.game.rules, hands, shown)
    held = np.empty((len(records), count, 2), np.uint8)
    _holdings(records.game.rules, records.game.deck, hands, shown, records.streams, held)
    return hands, held


def chances(agent: Agent, hands: Hands, held: Array) -> Array:
    """(hands, count) how likely an agent would have acted as the hands say with each holding; 0 where there is none."""
    turn, mixes = _ask(agent, hands, held)
    weights = np.empty(held.shape[:2])
    _weigh(hands, held, turn, mixes, weights)
    return weights


def payoffs(game: Game, hands: Hands, held: Array) -> Array:
    """(hands, count, players) what the hands would have paid with each holding of the agent; 0 where there is none."""
    of, which = np.nonzero(held[:, :, 0] != NO_CARD)
    position = hands.position[of]
    hole = hands.hole[of]
    hole[np.arange(len(of)), position] = held[of, which]
    paid = np.empty((len(of), game.players))
    _pay(game.rules, Hands(hole, hands.board[of], hands.labels[of], hands.sizes[of], position), ranking(), paid)
    out = np.zeros((*held.shape[:2], game.players))
    out[of, which] = paid
    return out


def imagine(records: HandRecords, agent: Agent, number: int, count: int) -> HandRecords:
    """The hands with other holdings of one of their agents.

    Parameters: `agent`, which played as `number` in the records' seats; `count`, holdings for each hand at most.
    Returns: records of more hands, with `share` and `of`: see `HandRecords`.
    """
    game, rules = records.game, records.game.rules
    hands, held = holdings(records, number, count)
    position = hands.position
    turn, mixes = _ask(agent, hands, held)
    weights = np.empty((len(records), count))
    _weigh(hands, held, turn, mixes, weights)
    of, which = np.nonzero(weights)
    share = (weights / weights.sum(axis=1, keepdims=True))[of, which]
    place = np.full(weights.shape, -1, np.int64)
    place[of, which] = np.arange(len(of))
    copies = replace(records, share=None, of=None).take(of)
    hole = copies.hole.copy()
    hole[np.arange(len(of)), position[of]] = held[of, which]
    mixed = np.full((len(of), records.labels.shape[1], len(game.labels)), np.nan)
    if copies.probabilities is not None:
        mixed[:, : copies.probabilities.shape[1]] = copies.probabilities
    at = place[turn[:, 0], turn[:, 2]]
    mixed[at[at >= 0], turn[at >= 0, 1]] = mixes[at >= 0]
    paid = np.empty(copies.payoffs.shape)
    _pay(rules, Hands(hole, copies.board, copies.labels, copies.sizes, position[of]), ranking(), paid)
    return replace(copies, hole=hole, probabilities=mixed, payoffs=paid, share=share, of=of)
