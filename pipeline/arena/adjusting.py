"""Make played hands ready for variance reduction: as records, and with imagined hole cards.

`block_records` turns a played block into `HandRecords`. `imagine` makes the imaginary observations of AIVAT: records
and one of their agents go in; out come the same hands once for every holding (pair of hole cards) that the agent could
have had. Each comes with its probability given the betting (the agent's reach probability: the product of its
probabilities of its actions), the payoffs that the holding would have had, and the agent's probabilities at its
decisions. `pipeline.arena.variance` takes their weighted mean in place of the hand, which leaves the expectation as it
is (Bowling and others, 2008), because the other players could not see which of the holdings it was.

Up to `count` holdings are used: all of them in small games, otherwise the real one and others drawn at random from the
cards that no other player holds and that are not on the board. An agent that draws its actions itself is not imagined:
its answer to a second question says nothing of its probabilities. Within such a set the probabilities are proportional
to the reach probabilities, so the mean is exact with few of them too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeline.agents.lbr import LocalResponse
from pipeline.agents.protocol import Agent, draws_actions
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.variance.records import HandRecords
from pipeline.dataset.decisions import OBSERVATION, extend_betting, observe
from pipeline.poker.card_sets import card_bits, draw, not_in_deck, run_outs, unseen
from pipeline.poker.cards import NO_CARD, Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    R_BOARD,
    R_HOLE,
    R_PLAYERS,
    R_RANKS,
    R_SUITS,
    RAISE,
    S_ACTOR,
    S_ROUND,
    STATE_SIZE,
    apply,
    pay,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

log = logging.getLogger(__name__)

STREAM_SALT = 0x6C75636B
"""makes the records' random streams differ from those of cards and actions"""


@kernel(leaf=True)
def _streams(seed: int, deals: Array, out: Array) -> None:
    for i in range(deals.shape[0]):
        out[i] = hash64(hash64(hash64(seed) ^ np.uint64(STREAM_SALT)) + deals[i])


def block_records(block: HandBlock, seed: int) -> HandRecords:
    """Return the hands of a block that has been played, with the agents' probabilities where the block kept them."""
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
DECISIONS_AT_ONCE = 1 << 15
"""decisions that an agent is asked about together"""


class PlayedHands(NamedTuple):
    """Finished hands as kernels take them."""

    hole: Array
    board: Array
    labels: Array
    sizes: Array
    position: Array
    """(hands,) int64: where the imagined agent sat"""


@kernel
def _write_holdings(rules: Array, hands: PlayedHands, board_counts: Array, streams: Array, holdings: Array) -> None:
    """Write the holdings (hands, count, 2) that the agent could have had, the real one first; NO_CARD beyond the last.

    `board_counts` are the numbers of open board cards. All holdings are written if they fit, else random ones.
    """
    players, size, count = rules[R_PLAYERS], rules[R_HOLE], holdings.shape[1]
    cards = np.empty(52, np.uint8)
    for i in range(holdings.shape[0]):
        holdings[i] = NO_CARD
        position = hands.position[i]
        taken = not_in_deck(rules[R_RANKS], rules[R_SUITS]) | card_bits(hands.board[i], board_counts[i])
        for p in range(players):
            if p != position:
                taken |= card_bits(hands.hole[i, p], size)
        card_count = unseen(taken, cards)
        first, second = hands.hole[i, position, 0], hands.hole[i, position, 1]
        holdings[i, 0, 0], holdings[i, 0, 1] = first, second
        written = 1
        # the real holding is first and is not repeated
        if (card_count if size == 1 else card_count * (card_count - 1) // 2) <= count:
            possible = run_outs(taken, size)
            for k in range(len(possible)):
                high, low = possible[k, 0], possible[k, size - 1]
                is_real = high == first and (size == 1 or low == second)
                if not is_real and not (size == 2 and high == second and low == first):
                    holdings[i, written, :size] = possible[k]
                    written += 1
            continue
        stream = hash64(streams[i] + np.uint64(0x686F6C64))
        while written < count:
            stream = draw(stream, cards, card_count, size)
            holdings[i, written, :size] = cards[:size]
            written += 1


@kernel
def _write_observations(
    rules: Array, hands: PlayedHands, holdings: Array, tables: Ranking, rows: Array, decisions: Array
) -> int:
    """Write the agent's observations with each holding at each of its decisions to `rows`.

    `decisions` gets the (hand, action, holding) of each row. Returns how many rows there are; only counts them if
    `rows` is empty.
    """
    state = np.zeros(STATE_SIZE, np.int64)
    words = np.zeros(4, np.int64)
    count = 0
    for i in range(holdings.shape[0]):
        start(rules, state)
        words[:] = 0
        previous = 0
        for k in range(hands.labels.shape[1]):
            if hands.labels[i, k] == 0:
                break
            label, street = int(hands.labels[i, k]) - 1, state[S_ROUND]
            if state[S_ACTOR] == hands.position[i]:
                for m in range(holdings.shape[1]):
                    if holdings[i, m, 0] != NO_CARD:
                        if rows.shape[0] > 0:
                            observe(rules, state, words, previous, holdings[i, m], hands.board[i], tables, rows, count)
                            decisions[count, 0], decisions[count, 1], decisions[count, 2] = i, k, m
                        count += 1
                previous = label + 1
            words[street] = extend_betting(words[street], label)
            apply(rules, state, min(label, RAISE), hands.sizes[i, k])
    return count


@kernel
def _weigh_holdings(hands: PlayedHands, holdings: Array, decisions: Array, mixes: Array, weights: Array) -> None:
    """Write the agent's reach probability with each holding (hands, count); 0 where there is none."""
    for i in range(holdings.shape[0]):
        for m in range(holdings.shape[1]):
            weights[i, m] = 0.0 if holdings[i, m, 0] == NO_CARD else 1.0
    for j in range(decisions.shape[0]):
        weights[decisions[j, 0], decisions[j, 2]] *= mixes[j, hands.labels[decisions[j, 0], decisions[j, 1]] - 1]


@kernel(leaf=True)
def _replay(rules: Array, labels: Array, sizes: Array, state: Array) -> None:
    """Write the state after all actions of a hand."""
    start(rules, state)
    for k in range(labels.shape[0]):
        if labels[k] == 0:
            break
        apply(rules, state, min(int(labels[k]) - 1, RAISE), sizes[k])


@kernel
def _write_payoffs(rules: Array, hands: PlayedHands, tables: Ranking, payoffs: Array) -> None:
    """Write the payoffs of every hand by position."""
    state = np.zeros(STATE_SIZE, np.int64)
    values = np.zeros(payoffs.shape[1], np.int64)
    for i in range(payoffs.shape[0]):
        _replay(rules, hands.labels[i], hands.sizes[i], state)
        pay(rules, state, hands.hole[i], hands.board[i], tables, values, payoffs[i])


@kernel
def _count_open_cards(rules: Array, hands: PlayedHands, board_counts: Array) -> None:
    """Write how many board cards lay open at the end of each hand."""
    state = np.zeros(STATE_SIZE, np.int64)
    for i in range(board_counts.shape[0]):
        _replay(rules, hands.labels[i], hands.sizes[i], state)
        board_counts[i] = 0
        for street in range(state[S_ROUND] + 1):
            board_counts[i] += rules[R_BOARD + street]


def select_imagined(agents: Sequence[Agent], adjusted: bool | int) -> tuple[int, int]:
    """Return the agent whose holdings are imagined in a match, and how many of them (1: only the real one).

    It is the last agent, with as many holdings as `adjusted` says. Where that is True none are imagined, except those
    of the opponent of @lbr in limit games. An agent that draws its actions is not imagined, which a warning says.
    """
    others = [i for i, agent in enumerate(agents) if not isinstance(agent, LocalResponse)]
    if isinstance(adjusted, bool):
        responds = adjusted and len(agents) == 2 and len(others) == 1 and not agents[0].game.nolimit
        return _imaginable(agents, others[0], HOLDINGS) if responds else (0, 1)
    if adjusted > 1 and agents[0].game.nolimit:
        raise PipelineError("imagined hands are for limit games: how an amount depends on the cards is not known")
    return _imaginable(agents, others[-1] if others else len(agents) - 1, adjusted)


def _imaginable(agents: Sequence[Agent], number: int, count: int) -> tuple[int, int]:
    """Return the agent to imagine and how many holdings, or none of one whose probabilities are not known."""
    if count > 1 and draws_actions(agents[number]):
        log.warning("%s gives no probabilities: its results are not averaged over imagined hands", agents[number].name)
        return 0, 1
    return number, count


def _ask(agent: Agent, hands: PlayedHands, holdings: Array) -> tuple[Array, Array]:
    """Return (rows, 3) the hand, action and holding of every decision, and (rows, labels) the agent's probabilities."""
    rules, tables, no_decisions = agent.game.rules, ranking(), np.zeros((0, 3), np.int64)
    count = _write_observations(rules, hands, holdings, tables, np.zeros(0, OBSERVATION), no_decisions)
    rows, decisions = np.zeros(count, OBSERVATION), np.empty((count, 3), np.int64)
    if count > 0:
        _write_observations(rules, hands, holdings, tables, rows, decisions)
    mixes = np.empty((count, len(agent.game.labels)))
    for first in range(0, count, DECISIONS_AT_ONCE):
        part = slice(first, first + DECISIONS_AT_ONCE)
        mixes[part] = agent.probabilities(rows[part])
    return decisions, mixes


def draw_holdings(records: HandRecords, number: int, count: int) -> tuple[PlayedHands, Array]:
    """Return the hands as kernels take them, and (hands, count, 2) an agent's possible holdings, the real one first.

    Parameters: `number`, the agent's in the records' seats; `count`, holdings for each hand at most.
    """
    position = np.argmax(records.seats == number, axis=1)
    hands = PlayedHands(records.hole, records.board, records.labels, records.sizes, position)
    board_counts = np.empty(len(records), np.int64)
    _count_open_cards(records.game.rules, hands, board_counts)
    cards = np.empty((len(records), count, 2), np.uint8)
    _write_holdings(records.game.rules, hands, board_counts, records.streams, cards)
    return hands, cards


def reach_probabilities(agent: Agent, hands: PlayedHands, holdings: Array) -> Array:
    """Return (hands, count) the probability that an agent acts as the hands say, by holding; 0 where there is none."""
    decisions, mixes = _ask(agent, hands, holdings)
    weights = np.empty(holdings.shape[:2])
    _weigh_holdings(hands, holdings, decisions, mixes, weights)
    return weights


def holding_payoffs(game: Game, hands: PlayedHands, holdings: Array) -> Array:
    """Return (hands, count, players) the hands' payoffs with each holding of the agent; 0 where there is none."""
    hand, holding = np.nonzero(holdings[:, :, 0] != NO_CARD)
    position = hands.position[hand]
    hole = hands.hole[hand]
    hole[np.arange(len(hand)), position] = holdings[hand, holding]
    paid = np.empty((len(hand), game.players))
    copies = PlayedHands(hole, hands.board[hand], hands.labels[hand], hands.sizes[hand], position)
    _write_payoffs(game.rules, copies, ranking(), paid)
    out = np.zeros((*holdings.shape[:2], game.players))
    out[hand, holding] = paid
    return out


def imagine(records: HandRecords, agent: Agent, number: int, count: int) -> HandRecords:
    """Return records of the hands with other holdings of one of their agents.

    Parameters: `agent`, which played as `number` in the records' seats; `count`, holdings for each hand at most.
    Returns: records of more hands, with `share` and `hand_of`: see `HandRecords`.
    """
    game, rules = records.game, records.game.rules
    hands, holdings = draw_holdings(records, number, count)
    position = hands.position
    decisions, mixes = _ask(agent, hands, holdings)
    weights = np.empty((len(records), count))
    _weigh_holdings(hands, holdings, decisions, mixes, weights)
    if (weights.sum(axis=1) <= 0).any():
        raise PipelineError(
            f"{agent.name} gives other probabilities when it is asked again about what it did: "
            "leave out imagined hands, or let it say that it draws (an attribute draws = True)"
        )
    hand, holding = np.nonzero(weights)
    # given the betting, holdings are as likely as the agent would have bet so with them: all are dealt equally often
    share = (weights / weights.sum(axis=1, keepdims=True))[hand, holding]
    row_of = np.full(weights.shape, -1, np.int64)
    row_of[hand, holding] = np.arange(len(hand))
    copies = replace(records, share=None, hand_of=None).take(hand)
    hole = copies.hole.copy()
    hole[np.arange(len(hand)), position[hand]] = holdings[hand, holding]
    probabilities = np.full((len(hand), records.labels.shape[1], len(game.labels)), np.nan)
    if copies.probabilities is not None:
        probabilities[:, : copies.probabilities.shape[1]] = copies.probabilities
    row = row_of[decisions[:, 0], decisions[:, 2]]
    probabilities[row[row >= 0], decisions[row >= 0, 1]] = mixes[row >= 0]
    paid = np.empty(copies.payoffs.shape)
    _write_payoffs(rules, PlayedHands(hole, copies.board, copies.labels, copies.sizes, position[hand]), ranking(), paid)
    return replace(copies, hole=hole, probabilities=probabilities, payoffs=paid, share=share, hand_of=hand)
