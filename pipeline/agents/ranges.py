"""Ranges: the mixes and reach probabilities of all hands that an agent may hold at a spot of the betting.

In go an agent, the betting so far (as ACPC writes it) and the open board; out comes a `Range`: for each possible
holding (1,326 pairs less those that the board excludes; single cards in games of one) the agent's mix, and its *reach
probability*, the product of the agent's own probabilities of what it did on the way. The agent is asked once, in bulk,
through the same rows that it is asked with in play.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.dataset.decisions import MOST_ACTIONS, OBSERVATION, observe_hands
from pipeline.poker.cards import NO_CARD, ranking
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import MOST_CHIPS, S_ACTOR, S_FINISHED, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError


class Range(NamedTuple):
    """All hands that a player may hold at a spot."""

    holes: Array
    """(n, hole cards) uint8, in order of card numbers, the higher card first"""
    reach: Array
    """(n,) the product of its own probabilities on the way here; 1 where it has not acted yet"""
    mix: Array
    """(n, labels) probabilities; no rows where the player is not to act"""


def state_after(game: Game, betting: str) -> State:
    """Return the state after a betting string; streets must be separated as ACPC writes them.

    >>> from pipeline.poker.game import builtin
    >>> state_after(builtin("holdem.limit.2p.reverse_blinds"), "rc/").round
    1
    """
    state = game.start()
    if len(betting) > 16 * MOST_ACTIONS:
        raise PipelineError(f"a betting of {len(betting):,} letters is none of {game.name}")
    for action, size in actions(betting):
        if size > MOST_CHIPS:
            raise PipelineError(f"{str(size)[:20]} chips are too many: {MOST_CHIPS:,} is the most")
        if state.finished:
            raise PipelineError(f"{betting!r} goes on after the hand is over in {game.name}")
        state = state.apply(action, size)
    if state.betting != betting:
        raise PipelineError(f"{betting!r} is not how a betting of {game.name} is written; this is: {state.betting!r}")
    return state


@lru_cache(maxsize=8)
def _all_holdings(game: Game) -> Array:
    deck = game.deck.tolist()
    pairs = combinations(deck, game.hole_cards)
    return np.array([hole[::-1] for hole in sorted(pairs, key=lambda hole: hole[::-1])], dtype=np.uint8)


def holdings(game: Game, board: Array) -> Array:
    """Return all hole cards that are possible with a board, (n, hole cards).

    >>> from pipeline.poker.cards import parse_cards
    >>> from pipeline.poker.game import builtin
    >>> game = builtin("holdem.limit.2p.reverse_blinds")
    >>> len(holdings(game, parse_cards(""))), len(holdings(game, parse_cards("AsKd7c2h2d")))
    (1326, 1081)
    """
    holes = _all_holdings(game)
    return holes[~np.isin(holes, board).any(axis=1)]


def own_rows(game: Game, betting: str, position: int, holes: Array, board: Array) -> tuple[Array, Array]:
    """Return a player's own decisions along a betting, for each of its hands.

    Returns OBSERVATION rows (decisions, hands), and the labels taken, one fewer where the player is to act now.
    """
    betting_actions = list(actions(betting))
    hole_cards = np.full((len(holes), 2), NO_CARD, dtype=np.uint8)
    hole_cards[:, : game.hole_cards] = holes
    open_cards = np.full(5, NO_CARD, dtype=np.uint8)
    open_cards[: len(board)] = board
    max_decisions = len(betting_actions) + 1
    rows = np.zeros((max_decisions, len(holes)), dtype=OBSERVATION)
    labels = np.zeros(max_decisions, dtype=np.uint8)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    moves = np.array([action for action, _ in betting_actions], dtype=np.uint8)
    sizes = np.array([size for _, size in betting_actions], dtype=np.int64)
    count = observe_hands(game.rules, moves, sizes, position, hole_cards, open_cards, ranking(), state, rows, labels)
    if count < 0:
        raise PipelineError(f"{betting!r} has an action that is not legal in {game.name}")
    to_act = state[S_FINISHED] == 0 and state[S_ACTOR] == position
    return rows[:count], labels[: count - to_act]


def range_at(agent: Agent, betting: str, board: Array, position: int | None = None) -> Range:
    """Return an agent's range after a betting, on a board of at least the cards that are open there.

    Parameters: `position` whose range; that of the player to act by default.
    """
    game = agent.game
    state = state_after(game, betting)
    if len(board) < game.visible(state.round):
        raise PipelineError(f"after {betting!r} {game.visible(state.round)} board cards are open, not {len(board)}")
    board = board[: game.visible(state.round)]
    seat = state.actor if position is None else position
    if not 0 <= seat < game.players:
        raise PipelineError(f"after {betting!r} no player is to act: the hand is over")
    holes = holdings(game, board)
    rows, labels = own_rows(game, betting, seat, holes, board)
    reach, mix = np.ones(len(holes)), np.zeros((0, len(game.labels)))
    for decision, decision_rows in enumerate(rows):
        probabilities = np.asarray(agent.probabilities(decision_rows))
        if decision < len(labels):
            reach *= probabilities[:, labels[decision]]
        else:
            mix = probabilities
    return Range(holes, reach, mix)


def difference(first: Range, other: Range) -> tuple[Array, float | None]:
    """Return the distance of two agents' mixes: total variation of each hand, and its mean over the first's range.

    The mean weighs each hand by the first agent's reach; None where that agent never gets here.

    >>> hands = np.zeros((2, 2), np.uint8)
    >>> distances, mean = difference(
    ...     Range(hands, np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]])),
    ...     Range(hands, np.array([1.0, 1.0]), np.array([[0.2, 0.8], [0.0, 1.0]])),
    ... )
    >>> distances.round(3).tolist(), round(mean, 3)
    ([0.3, 1.0], 0.3)
    """
    distances = np.abs(first.mix - other.mix).sum(axis=1) / 2
    weight = float(first.reach.sum())
    return distances, float((distances * first.reach).sum() / weight) if weight > 0 else None
