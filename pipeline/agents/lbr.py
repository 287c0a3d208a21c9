"""@lbr:AGENT: the local best response to an agent whose strategy it knows (Lisy and Bowling, 2017).

What it wins is a lower bound of what the agent can be made to lose. At each decision it holds a range for its
opponent: `HOLDINGS` hands drawn at random, weighted by their reach probabilities under the agent's strategy. It
then takes the best of folding, calling and raising, as if both only checked and called from there on: with w the
chance to win at the showdown against that range, c to call and b the raise beyond it,

    call    w (pot + c) - c
    raise   f pot + (1 - f) (w' (pot + c + 2 b) - c - b)     f the chance that the agent folds, w' against the rest

In no-limit games it tries a raise of every class (see `rules`), by the amount that the class stands for. Of earlier
raises a row tells the class alone, so the agent is asked what it would have done as if these had been by such amounts
too; the chips in front of both players now are the real ones. Whatever it believes, what it wins is really won.

The agent is asked for its probabilities with all of these hands, so a match is some hundred times slower than others.
One that draws its actions itself is asked repeatedly (see `protocol`), and no hand is ruled out by what it never drew.
Heads-up hold'em only. Draws depend on what the player sees alone: the same match comes out the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent, draws_actions, estimated_mixes
from pipeline.dataset.decisions import OBSERVATION, extend_betting, observe
from pipeline.poker.card_sets import add_up, card_bits, draw, pot_share, set_value, unseen
from pipeline.poker.cards import NO_CARD, NO_SUITS, Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import (
    CALL,
    FOLD,
    R_BIG_BLIND,
    R_DEAD,
    R_NOLIMIT,
    R_STACK,
    RAISE,
    S_ACTOR,
    S_MAX_SPENT,
    S_MIN_RAISE_TO,
    S_SPENT,
    STATE_SIZE,
    apply,
    is_legal,
    size_of,
    start,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

HOLDINGS = 128
"""hands in the opponent's range"""
BOARDS = 96
"""random completions of the board"""
BATCH_ROWS = 256
"""decisions whose ranges are asked for together"""
ANSWER = 128
"""added to the label of a raise where `taken` holds the agent's answer to it"""
MIN_PROBABILITY = 1e-3
"""lower bound of the agent's probabilities of what it did, where amounts are guessed or probabilities estimated"""
MAX_STREET_DECISIONS = 11
"""decisions of one player on a street, of the 21 actions that a betting code keeps"""


@kernel
def _draw_holdings(rows: Array, holdings: Array) -> None:
    """Draw `HOLDINGS` hands of the opponent for each row; they depend on what the player sees alone."""
    deck = np.empty(52, dtype=np.uint8)
    for i in range(len(rows)):
        row = rows[i]
        size = unseen(card_bits(row.hole, 2) | card_bits(row.board, 5), deck)
        # seeded by what the player sees, so that the same decision is answered alike in any order or batch
        stream = np.uint64(row.hole[0]) * np.uint64(64) + np.uint64(row.hole[1])
        for k in range(5):
            stream = hash64(stream ^ np.uint64(row.board[k]))
        for street in range(4):
            stream = hash64(stream ^ np.uint64(row.betting_codes[street]))
        for m in range(HOLDINGS):
            stream = draw(stream, deck, size, 2)
            holdings[i, m, 0] = deck[0]
            holdings[i, m, 1] = deck[1]


@kernel(leaf=True)
def _restore_chips(rules: Array, row: Any, state: Array) -> None:
    """Set the chips of a state whose raises were guessed to those of the row."""
    me = int(row.position)
    own_spent = rules[R_STACK + me] - row.stack
    other_spent = row.pot - rules[R_DEAD] - own_spent
    state[S_SPENT + me] = own_spent
    state[S_SPENT + 1 - me] = other_spent
    state[S_MAX_SPENT] = max(own_spent, other_spent)
    state[S_MIN_RAISE_TO] = state[S_MAX_SPENT] + max(rules[R_BIG_BLIND], row.to_call)


@kernel
def _list_decisions(
    rules: Array,
    rows: Array,
    tables: Ranking,
    holdings: Array,
    asked: Array,
    taken: Array,
    counts: Array,
    bets: Array,
) -> int:
    """Fill what the opponent saw with each holding at each of its decisions; return the number of decisions.

    `asked` is (decisions, holdings) of OBSERVATION, row after row; if it is empty they are only counted. `taken`
    (rows, decisions) are the labels; the last may be its answers to raises (`ANSWER`). `counts` are decisions by row.
    `bets` (rows, labels) are the chips of a raise beyond a call.
    """
    state, raised = np.zeros(STATE_SIZE, dtype=np.int64), np.zeros(STATE_SIZE, dtype=np.int64)
    words = np.zeros(4, dtype=np.int64)
    fills = len(asked) > 0
    total = 0
    for i in range(len(rows)):
        row = rows[i]
        words[:] = 0
        previous = 0
        count = 0
        followed = True
        start(rules, state)
        for street in range(row.street + 1):
            word = row.betting_codes[street]
            length = 0
            while length < 21 and word >> (3 * length) != 0:
                length += 1
            for k in range(length - 1, -1, -1):
                label = ((word >> (3 * k)) & 7) - 1
                action = min(label, RAISE)
                size = size_of(rules, state, label) if action == RAISE else 0
                followed = followed and is_legal(rules, state, action, size)
                if not followed:  # the size classes cannot reproduce the amounts: keep to the decisions so far
                    break
                if state[S_ACTOR] != row.position:
                    if fills:
                        for m in range(HOLDINGS):
                            observe(rules, state, words, previous, holdings[i, m], row.board, tables, asked[total], m)
                    taken[i, count] = label
                    count += 1
                    total += 1
                    previous = label + 1
                words[street] = extend_betting(words[street], label)
                apply(rules, state, action, size)
        if followed and rules[R_NOLIMIT] != 0:
            _restore_chips(rules, row, state)
        for label in range(RAISE, bets.shape[1]):
            raised[:] = state
            size = size_of(rules, state, label) if followed and (row.legal >> label) & 1 == 1 else 0
            if size == 0 or not is_legal(rules, state, RAISE, size):
                continue
            apply(rules, raised, RAISE, size)
            if raised[S_ACTOR] < 0:
                continue
            bets[i, label] = size - state[S_MAX_SPENT]
            before = words[row.street]
            words[row.street] = extend_betting(before, label)
            # ask what the agent would do facing this raise: how often it folds is worth the pot
            if fills:
                for m in range(HOLDINGS):
                    observe(rules, raised, words, previous, holdings[i, m], row.board, tables, asked[total], m)
            words[row.street] = before
            taken[i, count] = ANSWER + label
            count += 1
            total += 1
        counts[i] = count
    return total


@kernel
def _win_shares(row: Any, holdings: Array, tables: Ranking, won: Array, tried: Array) -> None:
    """Add up the row's pots won against each holding over random boards, ties half, and the boards tried."""
    won[:] = 0.0
    tried[:] = 0.0
    open_cards = 0
    while open_cards < 5 and row.board[open_cards] != NO_CARD:
        open_cards += 1
    deck = np.empty(52, dtype=np.uint8)
    size = unseen(card_bits(row.hole, 2) | card_bits(row.board, open_cards), deck)
    board, board_ranks = add_up(row.board, open_cards, tables)
    board += NO_SUITS
    mine, my_ranks = add_up(row.hole, 2, tables)
    totals, ranks = np.empty(HOLDINGS, np.int64), np.empty(HOLDINGS, np.int64)
    for m in range(HOLDINGS):
        totals[m], ranks[m] = add_up(holdings[m], 2, tables)
    # the same boards for all holdings (common random numbers): their differences vary less than their values
    stream = hash64(
        np.uint64(row.hole[0]) * np.uint64(4096) + np.uint64(row.hole[1]) * np.uint64(64) + np.uint64(open_cards)
    )
    for _ in range(BOARDS if open_cards < 5 else 1):
        stream = draw(stream, deck, size, 5 - open_cards)
        drawn, drawn_ranks = add_up(deck, 5 - open_cards, tables)
        total, all_ranks = board + drawn, board_ranks | drawn_ranks
        value = set_value(total + mine, all_ranks | my_ranks, tables)
        for m in range(HOLDINGS):
            if ranks[m] & drawn_ranks == 0:
                won[m] += pot_share(value, set_value(total + totals[m], all_ranks | ranks[m], tables))
                tried[m] += 1.0


@kernel
def _respond(
    rows: Array,
    holdings: Array,
    taken: Array,
    counts: Array,
    mixes: Array,
    least: float,
    bets: Array,
    tables: Ranking,
    out: Array,
) -> None:
    """Choose the action with the largest gain for each row; `mixes` are the agent's (decisions, holdings, labels).

    `least` is the lower bound of the agent's probabilities of what it did.
    """
    won = np.empty(HOLDINGS)
    tried = np.empty(HOLDINGS)
    staying, ahead_staying = np.empty(out.shape[1]), np.empty(out.shape[1])
    first = 0
    for i in range(len(rows)):
        row = rows[i]
        _win_shares(row, holdings[i], tables, won, tried)
        all_, ahead = 1e-12, 0.0
        staying[:] = 1e-12
        ahead_staying[:] = 0.0
        for m in range(HOLDINGS):
            if tried[m] == 0:
                continue
            chance = won[m] / tried[m]
            # Bayes: a holding is as likely as the agent's own actions so far are with it
            weight = 1.0
            for t in range(counts[i]):
                if taken[i, t] < ANSWER:
                    weight *= max(mixes[first + t, m, taken[i, t]], least)
            all_ += weight
            ahead += weight * chance
            for t in range(counts[i]):
                if taken[i, t] >= ANSWER:
                    stays = weight * (1.0 - mixes[first + t, m, FOLD])
                    staying[taken[i, t] - ANSWER] += stays
                    ahead_staying[taken[i, t] - ANSWER] += stays * chance
        first += counts[i]
        pot, call = float(row.pot), float(row.to_call)
        best = FOLD
        gain = 0.0
        if ahead / all_ * (pot + call) - call > gain or (row.legal >> FOLD) & 1 == 0:
            best = CALL
            gain = ahead / all_ * (pot + call) - call
        for label in range(RAISE, out.shape[1]):
            bet = float(bets[i, label])
            if bet > 0:
                folds = 1.0 - staying[label] / all_
                raised = ahead_staying[label] / staying[label] * (pot + call + 2 * bet) - call - bet
                if folds * pot + (1.0 - folds) * raised > gain:
                    best = label
                    gain = folds * pot + (1.0 - folds) * raised
        out[i, :] = 0.0
        out[i, best] = 1.0


@dataclass(frozen=True)
class LocalResponse:
    """Plays the local best response to `agent`."""

    name: str
    game: Game
    agent: Agent

    @classmethod
    def to(cls, agent: Agent, name: str) -> LocalResponse:
        """Return the local best response to an agent; the probabilities of one that draws its actions are estimated."""
        return cls(name, agent.game, estimated_mixes(agent))

    @property
    def draws(self) -> bool:
        """Return whether it may answer otherwise when it is asked again, because it answers estimates."""
        return draws_actions(self.agent)

    def probabilities(self, rows: Array) -> Array:
        out = np.empty((len(rows), len(self.game.labels)))
        for first in range(0, len(rows), BATCH_ROWS):
            out[first : first + BATCH_ROWS] = self._answer(np.ascontiguousarray(rows[first : first + BATCH_ROWS]))
        return out

    def _answer(self, rows: Array) -> Array:
        row_count, tables, rules, labels = len(rows), ranking(), self.game.rules, len(self.game.labels)
        taken = np.zeros((row_count, MAX_STREET_DECISIONS * self.game.rounds + labels), np.uint8)
        counts = np.zeros(row_count, np.int64)
        bets = np.zeros((row_count, labels), np.int64)
        holdings = np.zeros((row_count, HOLDINGS, 2), np.uint8)
        _draw_holdings(rows, holdings)
        only_count = np.zeros((0, HOLDINGS), OBSERVATION)
        decisions = _list_decisions(rules, rows, tables, holdings, only_count, taken, counts, bets)
        asked = np.zeros((decisions, HOLDINGS), OBSERVATION)
        if len(asked):
            _list_decisions(rules, rows, tables, holdings, asked, taken, counts, bets)
        mixes = np.zeros((*asked.shape, labels))
        if len(asked):
            mixes[:] = self.agent.probabilities(asked.ravel()).reshape(mixes.shape)
        out = np.empty((row_count, labels))
        least = MIN_PROBABILITY if self.game.nolimit or self.draws else 0.0
        _respond(rows, holdings, taken, counts, mixes, least, bets, tables, out)
        return out


def make(name: str, arguments: str, game: Game, *, trusted: bool = False) -> LocalResponse:
    """Return @lbr:AGENT, for example @lbr:@teacher or @lbr:out/bundle."""
    if game.players != 2 or not game.is_holdem:
        raise PipelineError(f"@lbr plays hold'em for two players, not {game.name}")
    if not arguments:
        raise PipelineError("@lbr needs the agent it answers: @lbr:@teacher or @lbr:out/bundle")
    return LocalResponse.to(resolve(arguments, game, trusted=trusted), plain_name(f"@{name}:{arguments}"))
