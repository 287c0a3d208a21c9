"""Small problems and decision rows for the tests of models and training."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from played import play

from pipeline.dataset.decisions import OBSERVATION, observe_actions
from pipeline.poker.cards import ranking
from pipeline.poker.game import Game, actions, find_game
from pipeline.poker.rules import STATE_SIZE
from pipeline.runtime.parallel import Workers
from pipeline.training.corpus import Corpus, build_corpus

LIMIT = "holdem.limit.2p.reverse_blinds"


def problem_arrays(
    rows: int = 400, templates: int = 4, labels: int = 3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Feature ids with gaps and repeats, labels of a noisy log-linear rule, and legal bits that allow the labels."""
    luck = np.random.default_rng(seed)
    sizes = [3 + 5 * t for t in range(templates)]
    starts = np.cumsum([0, *sizes])
    values = np.stack([luck.integers(0, size, rows) for size in sizes], axis=1)
    values[:, 1:] = np.where(luck.random((rows, 1)) < 0.5, values[:, :1] % 3, values[:, 1:])
    ids = (values + starts[:-1]).astype(np.int32)
    ids[luck.random(ids.shape) < 0.1] = -1
    weights = luck.normal(size=(starts[-1] + 1, labels))
    weights[-1] = 0
    scores = weights[ids].sum(axis=1) + luck.gumbel(size=(rows, labels))
    legal = np.where(luck.random(rows) < 0.3, (1 << labels) - 2, (1 << labels) - 1).astype(np.uint8)
    scores[legal & 1 == 0, 0] = -np.inf
    return ids, scores.argmax(axis=1).astype(np.uint8), legal


def small_corpus(threads: int = 1, masked: bool = True, labels: int = 3, **options: int) -> Corpus:
    """The corpus of such arrays."""
    ids, taken, legal = problem_arrays(labels=labels, **options)
    return build_corpus(
        ids,
        taken,
        features=int(ids.max()) + 1,
        labels=labels,
        legal=legal if masked else None,
        workers=Workers(threads),
    )


@cache
def decisions(hands: int = 300, name: str = LIMIT, seed: int = 1) -> tuple[Game, np.ndarray, np.ndarray, np.ndarray]:
    """A game, all players' decisions in hands played at random, what they did, and a number per hand and player."""
    game = find_game(name)
    rng = random.Random(seed)
    rows, labels, owners = [], [], []
    state = np.zeros(STATE_SIZE, np.int64)
    for number in range(hands):
        taken = list(actions(play(game, rng).betting))
        moves = np.array([action for action, _ in taken], np.uint8)
        sizes = np.array([size for _, size in taken], np.int64)
        deck = rng.sample([int(card) for card in game.deck], game.players * game.hole_cards + sum(game.board_cards))
        hole = np.full((game.players, 2), 255, np.uint8)
        hole[:, : game.hole_cards] = np.reshape(deck[: game.players * game.hole_cards], (game.players, -1))
        board = np.full(5, 255, np.uint8)
        board[: sum(game.board_cards)] = deck[game.players * game.hole_cards :]
        seen, done = np.zeros(len(moves), OBSERVATION), np.zeros(len(moves), np.uint8)
        observe_actions(game.rules, moves, sizes, len(moves), hole, board, ranking(), state, seen, done)
        for position in range(game.players):
            mine = seen["position"] == position
            rows.append(seen[mine])
            labels.append(done[mine])
            owners.append(np.full(int(mine.sum()), number * game.players + position))
    return game, np.concatenate(rows), np.concatenate(labels), np.concatenate(owners)
