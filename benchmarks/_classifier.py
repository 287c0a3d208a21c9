"""The practical detector: a classifier that has seen thousands of hands of a player and of its copy.

The number of hands to tell (`hands_to_tell`) is that of a detector that knows both strategies exactly. This one knows
nothing but hands: gradient-boosted trees (LightGBM) learn from hands of each what tells them apart, and give every
other hand the log-odds that the copy played it. Hands are taken as independent, so the log-odds of a session are the
sum of its hands', and the area under the curve (AUC) says how often a session of the copy has a higher sum than one of
the source: .5 is chance, 1 always.

In go matches of source and copy against the same opponent as `HandRecords`, out come features of whole hands and the
AUC by number of hands. A hand's features are what a spectator has at its end: position, every action, actions and chips
by street, the board that was dealt, the result, and at a showdown the player's cards and what they were worth on each
street. Deals that the classifier learned from are never those that it is judged on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent
from pipeline.arena.adjusting import block_records
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.match import BLOCK_HANDS
from pipeline.arena.variance.records import HandRecords
from pipeline.poker.cards import NO_CARD, rank_hands
from pipeline.poker.game import Game, StateCache
from pipeline.poker.rules import RAISE
from pipeline.runtime.array_types import Array, Bools, Floats, Ints
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra

ACTIONS = 24
"""actions that have a feature each; later ones show in the counts only"""
HANDS = 20_000
"""hands of source and of copy that a detector learns from"""
SESSIONS = (1, 10, 100)
"""hands of a session"""
DRAWS = 20
"""how often the hands are divided anew into sessions"""
ROUNDS = 300
SETTINGS = {
    "objective": "binary",
    "num_leaves": 63,
    "learning_rate": 0.05,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.5,
    "lambda_l2": 5.0,
    "use_missing": False,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 2,
    "verbosity": -1,
}
"""settings of the trees for LightGBM; usual values, not tuned on any pair of players"""


class _Course(NamedTuple):
    """The course of a betting: what the actions alone say of a hand."""

    counts: Ints
    """(players, streets, 3) checks and calls, raises, folds of each position"""
    spent: tuple[int, ...]
    folded: tuple[bool, ...]
    street: int
    """the last one"""


def play_records(agents: Sequence[Agent], game: Game, hands: int, seed: int) -> HandRecords:
    """Play hands of a duplicate match in memory and return them as records."""
    order = seatings(game.players)
    deals = -(-hands // len(order))
    size = max(1, BLOCK_HANDS // len(order))
    parts = []
    for first in range(0, deals, size):
        block = HandBlock.dealt(game, seed, first, min(size, deals - first), order, False)
        block.play(agents)
        parts.append(block_records(block, seed))
    return parts[0] if len(parts) == 1 else _join(parts)


def _join(parts: Sequence[HandRecords]) -> HandRecords:
    """Join records of the same game; those with fewer actions are widened."""
    widest = max(part.labels.shape[1] for part in parts)

    def wide(values: Array) -> Array:
        return np.pad(values, ((0, 0), (0, widest - values.shape[1])))

    return HandRecords(
        game=parts[0].game,
        labels=np.concatenate([wide(part.labels) for part in parts]),
        sizes=np.concatenate([wide(part.sizes) for part in parts]),
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("hole", "board", "payoffs", "seats", "deals", "streams")
        },
    )


def hand_features(records: HandRecords, agent: int) -> Floats:
    """Return a row of numbers per hand: what a spectator knows of one agent's play at the end of it.

    Parameters: `agent` the number of the agent in `records.seats`. Returns (hands, features); -1 where there is none.
    """
    game, count = records.game, len(records)
    position = (records.seats == agent).argmax(axis=1)
    courses = _courses(records)
    street = np.array([course.street for course in courses])
    spent = np.array([course.spent for course in courses], float)
    folded = np.array([course.folded for course in courses], bool)
    rows = np.arange(count)
    actions = np.zeros((count, ACTIONS))
    width = min(ACTIONS, records.labels.shape[1])
    actions[:, :width] = records.labels[:, :width]
    counts = np.array([course.counts for course in courses], float)
    own = counts[rows, position].reshape(count, -1)
    others = counts.sum(axis=1).reshape(count, -1) - own
    showdown = ~folded[rows, position] & ((~folded).sum(axis=1) > 1)
    features = [
        *(position[:, None], street[:, None], spent[rows, position][:, None], spent.sum(axis=1)[:, None]),
        *(showdown[:, None], folded[rows, position][:, None], records.payoffs[rows, position][:, None]),
        *(actions, own, others, _board_features(records, street)),
        _shown_features(records, records.hole[rows, position], street, showdown),
    ]
    if game.nolimit:
        totals = np.zeros((count, ACTIONS))
        totals[:, :width] = records.sizes[:, :width]
        features.append(totals)
    return np.concatenate(features, axis=1).astype(np.float64)


def _courses(records: HandRecords) -> list[_Course]:
    """Return the course of each hand; each distinct betting is walked once."""
    walk, courses = StateCache(records.game), {}
    game = records.game
    ordered = []
    for labels, sizes in zip(records.labels, records.sizes, strict=True):
        key = labels.tobytes() + sizes.tobytes()
        if key not in courses:
            state, counts = walk.start, np.zeros((game.players, game.rounds, 3), np.int64)
            for label, size in zip(labels.tolist(), sizes.tolist(), strict=True):
                if label == 0:
                    break
                action = min(label - 1, RAISE)
                counts[state.actor, state.round, (2, 0, 1)[action]] += 1
                state = walk.after(state, action, size)
            courses[key] = _Course(counts, state.spent, state.folded, state.round)
        ordered.append(courses[key])
    return ordered


def _dealt_board(records: HandRecords, street: Ints) -> Array:
    """Return the boards with NO_CARD for cards of streets that were not reached."""
    visible = np.cumsum(records.game.board_cards)[street]
    return np.where(np.arange(5) < visible[:, None], records.board, np.uint8(NO_CARD))


def _board_features(records: HandRecords, street: Ints) -> Floats:
    """Return ranks of the board that was dealt, high first, and the number of its most frequent suit."""
    board = _dealt_board(records, street)
    is_card = board != NO_CARD
    ranks = -np.sort(-np.where(is_card, board >> 2, -1).astype(np.int64), axis=1)
    suits = np.stack([((board & 3) == suit) & is_card for suit in range(4)], axis=2).sum(axis=1)
    return np.concatenate([ranks, suits.max(axis=1, keepdims=True)], axis=1).astype(np.float64)


def _shown_features(records: HandRecords, hole: Array, street: Ints, showdown: Bools) -> Floats:
    """Return ranks and suits of hole cards that were shown, and in hold'em their values on flop, turn and river."""
    size = records.game.hole_cards
    cards = hole[:, :size].astype(np.int64)
    columns = [cards.max(axis=1) >> 2, cards.min(axis=1) >> 2, (cards & 3).max(axis=1) == (cards & 3).min(axis=1)]
    if records.game.is_holdem:
        for last, count in enumerate((3, 4, 5), start=1):
            value = np.full(len(hole), -1.0)
            reached = showdown & (street >= last)
            both = np.concatenate([hole[reached], records.board[reached, :count]], axis=1)
            value[reached] = rank_hands(np.ascontiguousarray(both))
            columns.append(value)
    return np.where(showdown[:, None], np.stack(columns, axis=1).astype(np.float64), -1.0)


def auc(negative: Floats, positive: Floats) -> float:
    """Return how often a number of `positive` is larger than one of `negative`, ties shared (Mann and Whitney's U).

    >>> auc(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    0.875
    """
    values, number = np.unique(np.concatenate([negative, positive]), return_inverse=True)
    below = np.bincount(number[: len(negative)], minlength=len(values)).astype(np.float64)
    above = np.bincount(number[len(negative) :], minlength=len(values))
    smaller = below.cumsum() - below / 2
    return float((above * smaller).sum() / (len(negative) * len(positive)))


def detection_auc(
    source: HandRecords,
    copy: HandRecords,
    *,
    agent: int = 0,
    hands: int = HANDS,
    sessions: Sequence[int] = SESSIONS,
    seed: int = 0,
) -> dict[int, float]:
    """Train a detector on the first hands of source and copy; return its AUC on the others by hands of a session.

    Parameters: `source` and `copy` records of matches against the same opponents, in which the player is `agent`; twins
    of a deal must lie side by side, as `play_records` leaves them; `hands` of each to learn from; `seed` of the
    division into sessions. Sessions for which there are fewer than two of each are left out.
    """
    lightgbm = import_extra("lightgbm")
    twins = len(seatings(source.game.players))
    cut = -(-hands // twins) * twins
    if min(len(source), len(copy)) < cut + twins:
        raise PipelineError(
            f"a detector that learns from {hands:,} hands of each needs more to be judged on: "
            f"there are {len(source):,} and {len(copy):,}"
        )
    by_player = [hand_features(records, agent) for records in (source, copy)]
    learned = np.concatenate([features[:cut] for features in by_player])
    labels = np.repeat([0, 1], cut)
    data = lightgbm.Dataset(learned, labels, params={"verbosity": -1})
    booster: Any = lightgbm.train({**SETTINGS, "seed": seed}, data, ROUNDS)
    odds = [np.asarray(booster.predict(features[cut:], raw_score=True)) for features in by_player]
    random = np.random.default_rng(seed)
    areas = {}
    for size in sessions:
        if min(map(len, odds)) < 2 * size:
            continue
        sums = [np.concatenate([_session_sums(hand_odds, size, random) for _ in range(DRAWS)]) for hand_odds in odds]
        areas[size] = auc(*sums)
    return areas


def _session_sums(odds: Floats, size: int, random: np.random.Generator) -> Floats:
    """Return the sums of hands' log-odds, divided into sessions at random."""
    whole = len(odds) // size * size
    return np.asarray(random.permutation(odds)[:whole].reshape(-1, size).sum(axis=1))
