"""@lbr:AGENT: the local best response to an agent whose strategy it knows (Lisy and Bowling, 2017).

What it wins is a lower bound of what the agent can be made to lose. At each decision it holds a range for its
opponent: `HOLDINGS` hands drawn at random, each weighed by how likely the agent would have bet as it did with it. It
then takes the best of folding, calling and raising, as if both only checked and called from there on: with w the
chance to win at the showdown against that range, c to call and b the raise beyond it,

    call    w (pot + c) - c
    raise   f pot + (1 - f) (w' (pot + c + 2 b) - c - b)     f the chance that the agent folds, w' against the rest

The agent is asked for its probabilities with all of these hands, so a match is some hundred times slower than others.
Heads-up limit hold'em only. Draws depend on what the player sees alone: the same match comes out the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.agents import Agent, plain_name, resolve
from pipeline.cards import FLUSH_BITS, NO_CARD, NO_SUITS, Ranking, flush_suit, ranking, sum_value
from pipeline.decisions import OBSERVATION, extend, observe
from pipeline.errors import PipelineError
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.numeric import hash64
from pipeline.rules import CALL, FOLD, RAISE, S_ACTOR, STATE_SIZE, apply, start

__all__ = ["LocalResponse", "make"]

Array = npt.NDArray[Any]

HOLDINGS = 128
"""hands in the opponent's range"""
BOARDS = 96
"""ways drawn to complete the board"""
AT_ONCE = 256
"""decisions whose ranges are asked for together"""
RESPONSE = 255
"""marks the rows in which the agent answers a raise"""


@kernel(leaf=True)
def _draw(stream: Any, cards: Array, first: int, last: int) -> Any:
    """Shuffle `cards[first:last]` to the front from all of `cards[first:]`; the stream goes on."""
    for k in range(first, last):
        stream = hash64(stream + np.uint64(1))
        other = k + np.int64(((stream >> np.uint64(32)) * np.uint64(len(cards) - k)) >> np.uint64(32))
        cards[k], cards[other] = cards[other], cards[k]
    return stream


@kernel(leaf=True)
def _unseen(row: Any, known: int, deck: Array) -> int:
    """Write the cards that are neither in the row's hand nor among `known` board cards to `deck`; returns how many."""
    left = 0
    for card in range(52):
        free = card != row.hole[0] and card != row.hole[1]
        for k in range(known):
            free = free and card != row.board[k]
        if free:
            deck[left] = card
            left += 1
    return left


@kernel
def _holdings(rows: Array, held: Array) -> None:
    """Draw `HOLDINGS` hands of the opponent for each row; they depend on what the player sees alone."""
    deck = np.empty(52, dtype=np.uint8)
    for i in range(len(rows)):
        row = rows[i]
        left = _unseen(row, 5, deck)
        stream = np.uint64(row.hole[0]) * np.uint64(64) + np.uint64(row.hole[1])
        for k in range(5):
            stream = hash64(stream ^ np.uint64(row.board[k]))
        for street in range(4):
            stream = hash64(stream ^ np.uint64(row.betting_codes[street]))
        for m in range(HOLDINGS):
            stream = _draw(stream, deck[:left], 0, 2)
            held[i, m, 0] = deck[0]
            held[i, m, 1] = deck[1]


@kernel
def _ranges(rules: Array, rows: Array, tables: Ranking, held: Array, asked: Array, taken: Array, turns: Array) -> int:
    """Fill what the opponent saw with each holding at each of its decisions; returns how many decisions there are.

    `asked` is (decisions, holdings) of OBSERVATION, row after row; if it is empty they are only counted. `taken`
    (rows, turns) are the labels; the last turn may be its answer to a raise (`RESPONSE`). `turns` counts them by row.
    """
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    words = np.zeros(4, dtype=np.int64)
    fills = len(asked) > 0
    total = 0
    for i in range(len(rows)):
        row = rows[i]
        words[:] = 0
        previous = 0
        count = 0
        start(rules, state)
        for street in range(row.street + 1):
            word = row.betting_codes[street]
            length = 0
            while word >> (3 * length) != 0:
                length += 1
            for k in range(length - 1, -1, -1):
                label = ((word >> (3 * k)) & 7) - 1
                if state[S_ACTOR] != row.position:
                    if fills:
                        for m in range(HOLDINGS):
                            observe(rules, state, words, previous, held[i, m], row.board, tables, asked[total], m)
                    taken[i, count] = label
                    count += 1
                    total += 1
                    previous = label + 1
                words[street] = extend(words[street], label)
                apply(rules, state, label, 0)
        if (row.legal >> RAISE) & 1 == 1:
            words[row.street] = extend(words[row.street], RAISE)
            apply(rules, state, RAISE, 0)
            if fills:
                for m in range(HOLDINGS):
                    observe(rules, state, words, previous, held[i, m], row.board, tables, asked[total], m)
            taken[i, count] = RESPONSE
            count += 1
            total += 1
        turns[i] = count
    return total


@kernel(leaf=True)
def _key(card: int, tables: Ranking) -> tuple[int, int]:
    """A card's key, and its place in a set of ranks by suit."""
    return tables.keys[card], 1 << (16 * (int(card) & 3) + (int(card) >> 2))


@kernel(leaf=True)
def _value(total: int, ranks: int, tables: Ranking) -> int:
    """The value of seven cards from their keys and their ranks by suit."""
    if total & FLUSH_BITS:
        return int(tables.flushes[(ranks >> (16 * flush_suit(total))) & 0x1FFF])
    return sum_value(total, tables)


@kernel
def _chances(row: Any, held: Array, tables: Ranking, won: Array, tried: Array) -> None:
    """How often the row's hand wins against each holding over random boards, ties half."""
    won[:] = 0.0
    tried[:] = 0.0
    open_ = 0
    while open_ < 5 and row.board[open_] != NO_CARD:
        open_ += 1
    deck = np.empty(52, dtype=np.uint8)
    left = _unseen(row, open_, deck)
    board, shown = NO_SUITS, 0
    for k in range(open_):
        key, bit = _key(row.board[k], tables)
        board += key
        shown |= bit
    mine, cards = board, shown
    totals, ranks = np.empty(HOLDINGS, np.int64), np.empty(HOLDINGS, np.int64)
    for c in range(2):
        key, bit = _key(row.hole[c], tables)
        mine += key
        cards |= bit
    for m in range(HOLDINGS):
        first, second = _key(held[m, 0], tables), _key(held[m, 1], tables)
        totals[m] = board + first[0] + second[0]
        ranks[m] = first[1] | second[1]
    stream = hash64(
        np.uint64(row.hole[0]) * np.uint64(4096) + np.uint64(row.hole[1]) * np.uint64(64) + np.uint64(open_)
    )
    for _ in range(BOARDS if open_ < 5 else 1):
        stream = _draw(stream, deck[:left], 0, 5 - open_)
        more, bits = 0, 0
        for k in range(5 - open_):
            key, bit = _key(deck[k], tables)
            more += key
            bits |= bit
        value = _value(mine + more, cards | bits, tables)
        for m in range(HOLDINGS):
            if ranks[m] & bits == 0:
                theirs = _value(totals[m] + more, ranks[m] | shown | bits, tables)
                won[m] += 1.0 if value > theirs else 0.5 if value == theirs else 0.0
                tried[m] += 1.0


@kernel
def _respond(
    rows: Array, held: Array, taken: Array, turns: Array, mixes: Array, bets: Array, tables: Ranking, out: Array
) -> None:
    """Choose the action with the largest gain for each row; `mixes` are the agent's (decisions, holdings, labels)."""
    won = np.empty(HOLDINGS)
    tried = np.empty(HOLDINGS)
    first = 0
    for i in range(len(rows)):
        row = rows[i]
        _chances(row, held[i], tables, won, tried)
        all_, ahead, staying, ahead_staying = 1e-12, 0.0, 1e-12, 0.0
        for m in range(HOLDINGS):
            weight = 1.0
            stays = 1.0
            for t in range(turns[i]):
                if taken[i, t] == RESPONSE:
                    stays = 1.0 - mixes[first + t, m, FOLD]
                else:
                    weight *= mixes[first + t, m, taken[i, t]]
            if tried[m] > 0:
                chance = won[m] / tried[m]
                all_ += weight
                ahead += weight * chance
                staying += weight * stays
                ahead_staying += weight * stays * chance
        first += turns[i]
        pot, call = float(row.pot), float(row.to_call)
        best = FOLD
        gain = 0.0
        if ahead / all_ * (pot + call) - call > gain or (row.legal >> FOLD) & 1 == 0:
            best = CALL
            gain = ahead / all_ * (pot + call) - call
        if (row.legal >> RAISE) & 1 == 1:
            bet = float(bets[row.street])
            folds = 1.0 - staying / all_
            raised = ahead_staying / staying * (pot + call + 2 * bet) - call - bet
            if folds * pot + (1.0 - folds) * raised > gain:
                best = RAISE
        out[i, :] = 0.0
        out[i, best] = 1.0


@dataclass(frozen=True)
class LocalResponse:
    """Plays the local best response to `agent`."""

    name: str
    game: Game
    agent: Agent

    def probabilities(self, rows: Array) -> Array:
        out = np.empty((len(rows), len(self.game.labels)))
        for at in range(0, len(rows), AT_ONCE):
            out[at : at + AT_ONCE] = self._answer(np.ascontiguousarray(rows[at : at + AT_ONCE]))
        return out

    def _answer(self, rows: Array) -> Array:
        count, tables, rules = len(rows), ranking(), self.game.rules
        most = sum(raises // 2 + 2 for raises in self.game.max_raises) + 1  # decisions of one player, and an answer
        taken = np.zeros((count, most), np.uint8)
        turns = np.zeros(count, np.int64)
        held = np.zeros((count, HOLDINGS, 2), np.uint8)
        _holdings(rows, held)
        nothing = np.zeros((0, HOLDINGS), OBSERVATION)
        asked = np.zeros((_ranges(rules, rows, tables, held, nothing, taken, turns), HOLDINGS), OBSERVATION)
        if len(asked):
            _ranges(rules, rows, tables, held, asked, taken, turns)
        mixes = np.zeros((*asked.shape, len(self.game.labels)))
        if len(asked):
            mixes[:] = self.agent.probabilities(asked.ravel()).reshape(mixes.shape)
        out = np.empty((count, len(self.game.labels)))
        bets = np.array(self.game.raise_sizes, np.int64)
        _respond(rows, held, taken, turns, mixes, bets, tables, out)
        return out


def make(name: str, arguments: str, game: Game, *, trusted: bool = False) -> LocalResponse:
    """@lbr:AGENT, for example @lbr:@teacher or @lbr:out/bundle."""
    if game.nolimit or game.players != 2 or not game.is_holdem:
        raise PipelineError(f"@lbr plays heads-up limit hold'em, not {game.name}")
    if not arguments:
        raise PipelineError("@lbr needs the agent it answers: @lbr:@teacher or @lbr:out/bundle")
    return LocalResponse(plain_name(f"@{name}:{arguments}"), game, resolve(arguments, game, trusted=trusted))
