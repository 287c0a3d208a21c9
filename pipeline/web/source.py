"""What the players of a dataset really did at a spot of the betting: counts.

In goes a dataset; its decisions are read once, in the background, and kept as a few bytes each: a number for the
betting, the starting hand, the made hand, the board and the label. A spot is found again by its betting in labels, as
models see it; on which board does not matter except for the one count of exactly this board, since after the flop a
board hardly ever comes twice.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.decisions import NO_START, STREETS, extend_betting
from pipeline.dataset.load import decision_pieces, select_rows
from pipeline.dataset.opening import list_agents
from pipeline.poker.game import Game, State, actions
from pipeline.poker.made_hands import MADE, NO_CLASS, classify
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.numeric import hash_rows
from pipeline.runtime.progress import Progress

PLAYERS_KEPT = 4
"""players whose decisions are kept at a time: about 20 bytes a decision"""


class Counted(NamedTuple):
    """A player's decisions, sorted by betting."""

    line: Array
    """uint64: hash of the betting words and the position, ascending"""
    board: Array
    """uint64: hash of the open cards, in any order of the flop"""
    start: Array
    made: Array
    label: Array


class Source:
    """Counts of a dataset's decisions."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.players = list_agents(data)
        self._read: dict[tuple[str, str], Counted] = {}
        self._lock = threading.Lock()

    def read(self, game: Game, player: str, progress: Progress) -> Counted:
        """A player's decisions, read now if they were not yet."""
        if player not in self.players:
            raise PipelineError(f"the dataset has no decisions of {player[:80]!r}{nearest(player[:80], self.players)}")
        with self._lock:
            key = (game.name, player)
            if key not in self._read:
                while len(self._read) >= PLAYERS_KEPT:
                    self._read.pop(next(iter(self._read)))
                self._read[key] = _read(self.data, game, player, progress)
            return self._read[key]

    def is_read(self, game: Game, player: str) -> bool:
        """Whether counts of a player can be given at once."""
        return (game.name, player) in self._read

    def counts(self, game: Game, player: str, state: State, board: Array) -> dict[str, Any]:
        """What a player did at a spot: by label, by starting hand and by made hand on any board, and on this board."""
        found = self._read.get((game.name, player))
        if found is None:
            return {"player": player, "reading": True}
        key = _line_hash(np.array([_words(state)]), state.actor, state.round)[0]
        here = slice(np.searchsorted(found.line, key, "left"), np.searchsorted(found.line, key, "right"))
        labels = len(game.labels)
        label = found.label[here].astype(np.int64)
        start, made = found.start[here].astype(np.int64), found.made[here].astype(np.int64)
        cells = 169 if game.hole_cards == 2 else game.ranks
        by_cell = np.zeros((cells, labels), dtype=np.int64)
        known = start != NO_START
        place = start[known] if game.hole_cards == 2 else 12 - start[known]
        np.add.at(by_cell, (place, label[known]), 1)
        by_made = np.zeros((len(MADE), labels), dtype=np.int64)
        grouped = made != NO_CLASS
        np.add.at(by_made, (made[grouped], label[grouped]), 1)
        same = found.board[here] == _board_hash(board[None])[0] if len(board) else np.ones(len(label), dtype=bool)
        return {
            "player": player,
            "reading": False,
            "counts": np.bincount(label, minlength=labels).tolist(),
            "this_board": np.bincount(label[same], minlength=labels).tolist(),
            "cells": by_cell.tolist(),
            "made": by_made.tolist(),
        }


def _words(state: State) -> list[int]:
    """The betting words of a state, as rows have them."""
    words = [0] * len(STREETS)
    at = state.game.start()
    for action, size in actions(state.betting):
        words[at.round] = int(extend_betting(words[at.round], at.label_of(action, size)))
        at = at.apply(action, size)
    return words


def _line_hash(words: Array, actor: Any, street: Any) -> Array:
    """A number for each line of betting (n, streets), with who acts and on which street."""
    found = np.zeros((len(words), 3 + words.shape[1]), np.uint64)
    found[:, 1], found[:, 2], found[:, 3:] = actor, street, words
    return hash_rows(found)


def _board_hash(boards: Array) -> Array:
    """A number for each board (n, cards): the flop's cards in any order."""
    sets = np.full((len(boards), 6), 255, dtype=np.uint64)
    sets[:, 1 : 1 + boards.shape[1]] = boards
    sets[:, 1:4] = np.sort(sets[:, 1:4], axis=1)
    return hash_rows(sets)


def _read(data: Path, game: Game, player: str, progress: Progress) -> Counted:
    """A player's decisions of a game, from the dataset."""
    total, done = select_rows(data, [player], game=game.name).size, 0
    parts: list[Counted] = []
    for piece in decision_pieces(data, [player], game=game.name):
        rows = piece.rows
        lines = _line_hash(rows["betting_codes"], rows["position"], rows["street"])
        made = np.full(len(rows), NO_CLASS, dtype=np.uint8)
        if game.is_holdem and len(rows) and rows["street"][0] > 0:
            made, _ = classify(rows["hole"], rows["board"])
        start = rows["start"].copy()
        parts.append(Counted(lines, _board_hash(rows["board"]), start, made, piece.action))
        done += len(rows)
        progress(done, total)
    if not parts:
        empty = np.zeros(0, dtype=np.uint64)
        return Counted(empty, empty, *(np.zeros(0, dtype=np.uint8) for _ in range(3)))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return Counted(*(column[order] for column in joined))
