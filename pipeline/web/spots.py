"""Spots of the betting: what an agent does with every hand, and what a player of the dataset really did.

In go names of a game and of agents, a betting and a board; out comes one object with the way there, the actions that go
on from there, all hands with their mixes and reach probabilities, and the same summed up by cell of the grid and by
kind of hand. Sums are weighted by reach: the range that the agent really holds there. Ranges that were asked for lately
are cached.

`DecisionCounts` counts a player's decisions. They are read once, in the background, and stored as a few bytes each: a
hash of the betting, the starting hand, the made hand, the board and the label. A spot is found again by its betting in
labels, as models see it, on any board; one count is of exactly this board, since after the flop a board hardly ever
comes twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.predictions import label_word, raise_totals
from pipeline.agents.ranges import Range, difference, holdings, range_at, state_after
from pipeline.dataset.decisions import NO_START, STREETS, extend_betting, observation
from pipeline.dataset.load import select_rows
from pipeline.dataset.opening import list_agents
from pipeline.evaluation.hand_story import street_name
from pipeline.poker.cards import NO_CARD, RANKS, card_text, cards_text, class_text, parse_cards, start_class
from pipeline.poker.game import Game, State, actions
from pipeline.poker.made_hands import DRAWS, MADE, NO_CLASS, classify
from pipeline.poker.rules import FOLD, RAISE
from pipeline.poker.spoken import action_words, is_bet, on_street, position_words, sentence
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.numeric import hash_rows
from pipeline.runtime.progress import Progress
from pipeline.web.roster import Roster

MAX_CACHED_PLAYERS = 4
"""players whose decisions are cached at a time: about 20 bytes a decision"""


class PlayerDecisions(NamedTuple):
    """A player's decisions, sorted by betting."""

    line: Array
    """uint64: hash of the betting words and the position, ascending"""
    board: Array
    """uint64: hash of the open cards, in any order of the flop"""
    start: Array
    made: Array
    label: Array


class DecisionCounts:
    """Counts of a dataset's decisions, by player."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.players = list_agents(data)
        self._read: dict[tuple[str, str], PlayerDecisions] = {}
        self._lock = threading.Lock()

    def read(self, game: Game, player: str, progress: Progress) -> PlayerDecisions:
        """Return a player's decisions; read them now if they are not cached."""
        if player not in self.players:
            raise PipelineError(f"the dataset has no decisions of {player[:80]!r}{nearest(player[:80], self.players)}")
        with self._lock:
            key = (game.name, player)
            if key not in self._read:
                while len(self._read) >= MAX_CACHED_PLAYERS:
                    self._read.pop(next(iter(self._read)))
                self._read[key] = _read(self.data, game, player, progress)
            return self._read[key]

    def is_read(self, game: Game, player: str) -> bool:
        """Return whether counts of a player can be given at once."""
        return (game.name, player) in self._read

    def counts(self, game: Game, player: str, state: State, board: Array) -> dict[str, Any]:
        """Count a player's actions at a spot: by label, starting hand and made hand on any board, and on this board."""
        decisions = self._read.get((game.name, player))
        if decisions is None:
            return {"player": player, "reading": True}
        key = _line_hash(np.array([_words(state)]), state.actor, state.round)[0]
        here = slice(np.searchsorted(decisions.line, key, "left"), np.searchsorted(decisions.line, key, "right"))
        labels = len(game.labels)
        label = decisions.label[here].astype(np.int64)
        start, made = decisions.start[here].astype(np.int64), decisions.made[here].astype(np.int64)
        cells = 169 if game.hole_cards == 2 else game.ranks
        by_cell = np.zeros((cells, labels), dtype=np.int64)
        has_start = start != NO_START
        place = start[has_start] if game.hole_cards == 2 else 12 - start[has_start]
        np.add.at(by_cell, (place, label[has_start]), 1)
        by_made = np.zeros((len(MADE), labels), dtype=np.int64)
        grouped = made != NO_CLASS
        np.add.at(by_made, (made[grouped], label[grouped]), 1)
        same = decisions.board[here] == _board_hash(board[None])[0] if len(board) else np.ones(len(label), dtype=bool)
        return {
            "player": player,
            "reading": False,
            "counts": np.bincount(label, minlength=labels).tolist(),
            "this_board": np.bincount(label[same], minlength=labels).tolist(),
            "cells": by_cell.tolist(),
            "made": by_made.tolist(),
        }


def _words(state: State) -> list[int]:
    """Return the betting words of a state, as rows have them."""
    words = [0] * len(STREETS)
    walked = state.game.start()
    for action, size in actions(state.betting):
        words[walked.round] = int(extend_betting(words[walked.round], walked.label_of(action, size)))
        walked = walked.apply(action, size)
    return words


def _line_hash(words: Array, actor: Any, street: Any) -> Array:
    """Return a hash for each line of betting (n, streets), with who acts and on which street."""
    # the first column is 0 in all rows: `hash_rows` combines the first two words by an exclusive or alone
    keys = np.zeros((len(words), 3 + words.shape[1]), np.uint64)
    keys[:, 1], keys[:, 2], keys[:, 3:] = actor, street, words
    return hash_rows(keys)


def _board_hash(boards: Array) -> Array:
    """Return a hash for each board (n, cards): the flop's cards in any order."""
    sets = np.full((len(boards), 6), 255, dtype=np.uint64)
    sets[:, 1 : 1 + boards.shape[1]] = boards
    sets[:, 1:4] = np.sort(sets[:, 1:4], axis=1)
    return hash_rows(sets)


def _read(data: Path, game: Game, player: str, progress: Progress) -> PlayerDecisions:
    """Read a player's decisions of a game from the dataset."""
    selected, rows_read = select_rows(data, [player], game=game.name), 0
    parts: list[PlayerDecisions] = []
    for _, piece in selected.pieces():
        rows = piece.rows
        lines = _line_hash(rows["betting_codes"], rows["position"], rows["street"])
        made = np.full(len(rows), NO_CLASS, dtype=np.uint8)
        if game.is_holdem and len(rows) and rows["street"][0] > 0:
            made, _ = classify(rows["hole"], rows["board"])
        start = rows["start"].copy()
        parts.append(PlayerDecisions(lines, _board_hash(rows["board"]), start, made, piece.action))
        rows_read += len(rows)
        progress(rows_read, selected.size)
    if not parts:
        empty = np.zeros(0, dtype=np.uint64)
        return PlayerDecisions(empty, empty, *(np.zeros(0, dtype=np.uint8) for _ in range(3)))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return PlayerDecisions(*(column[order] for column in joined))


MAX_CACHED_RANGES = 128
"""ranges that are cached: about 60 kB each"""
DIGITS = 5
"""decimals of probabilities in answers"""


class Cells(NamedTuple):
    """The grid of a game, and the cell of each holding."""

    names: tuple[str, ...]
    columns: int
    of: Array
    """cell of each holding of the whole deck"""
    cards: Array
    """the text of each"""


@lru_cache(maxsize=8)
def cells_of(game: Game) -> Cells:
    """Return the 169 starting classes, or in games of one card its ranks, the highest first."""
    holes = holdings(game, np.zeros(0, np.uint8))
    texts = np.array([cards_text(hole) for hole in holes])
    if game.hole_cards == 2:
        classes = np.array([start_class(int(a), int(b)) for a, b in holes], dtype=np.int64)
        return Cells(tuple(class_text(i) for i in range(169)), 13, classes, texts)
    names = tuple(reversed(RANKS[13 - game.ranks :]))
    return Cells(names, len(names), 12 - (holes[:, 0] >> 2).astype(np.int64), texts)


def board_cards(text: str) -> Array:
    """Parse the cards of a request's board."""
    if len(text) > 20:
        raise PipelineError("a board has at most five cards")
    return parse_cards(text)


def board_row(board: Array) -> Array:
    """Return a board as one row of five cards, NO_CARD where not dealt."""
    row = np.full((1, 5), NO_CARD, dtype=np.uint8)
    row[0, : len(board)] = board
    return row


def button_text(state: State, action: int, size: int) -> str:
    """Return an action as a button says it, such as `raise to 60`."""
    return "".join(action_words(state, action, size))


def path_of(game: Game, betting: str) -> list[dict[str, Any]]:
    """Return the steps to a betting: each with who did what, and the betting before it."""
    steps = []
    state = game.start()
    for action, size in actions(betting):
        who = position_words(state.actor, game.players, game.is_holdem)
        steps.append(
            {
                "street": street_name(game, state.round),
                "round": state.round,
                "actor": state.actor,
                "betting": state.betting,
                "text": sentence(who, *action_words(state, action, size)),
                "action": button_text(state, action, size),
            }
        )
        state = state.apply(action, size)
    return steps


def _rounded(values: Array) -> Any:
    return np.round(values, DIGITS).tolist()


def _sum_by_group(numbers: Array, count: int, range_: Range) -> tuple[Array, Array, Array, Array]:
    """Sum a range by group: hands, combos weighted by reach, mean reach, and mix (unweighted where reach is 0)."""
    hands = np.bincount(numbers, minlength=count).astype(float)
    combos = np.bincount(numbers, range_.reach, minlength=count)
    plain = np.stack([np.bincount(numbers, column, minlength=count) for column in range_.mix.T], axis=1)
    weighted = np.stack(
        [np.bincount(numbers, column * range_.reach, minlength=count) for column in range_.mix.T], axis=1
    )
    mix = np.divide(plain, hands[:, None], out=np.zeros_like(plain), where=hands[:, None] > 0)
    np.divide(weighted, combos[:, None], out=mix, where=combos[:, None] > 0)
    return hands, combos, np.divide(combos, hands, out=np.zeros(count), where=hands > 0), mix


class Spots:
    """Answers about spots of the loaded agents."""

    def __init__(self, roster: Roster, decision_counts: DecisionCounts | None = None) -> None:
        self.roster, self.decision_counts = roster, decision_counts
        self._ranges: OrderedDict[tuple[str, str, str, bytes, int], Range] = OrderedDict()
        self._lock = threading.Lock()

    def range_at(self, game: Game, name: str, betting: str, board: Array, position: int) -> Range:
        """Return an agent's range, from the cache if it was asked for lately."""
        key = (game.name, name, betting, board.tobytes(), position)
        with self._lock:
            if key in self._ranges:
                self._ranges.move_to_end(key)
                return self._ranges[key]
        result = range_at(self.roster.agent(name, game), betting, board, position)
        with self._lock:
            self._ranges[key] = result
            if len(self._ranges) > MAX_CACHED_RANGES:
                self._ranges.popitem(last=False)
        return result

    def spot(
        self, game_name: str, agent: str, betting: str, board_text: str, other: str = "", whose: str = ""
    ) -> dict[str, Any]:
        """Return everything that the strategy page shows of a spot.

        Parameters: `other` a second agent to compare with, `whose` a player of the dataset whose decisions to count.
        """
        game = self.roster.game(game_name)
        entry = self.roster.entry(agent, game)
        state = state_after(game, betting)
        board = board_cards(board_text)
        wanted = game.visible(state.round)
        foreign = np.setdiff1d(board, game.deck)
        if len(foreign):
            raise PipelineError(f"{card_text(int(foreign[0]))} is not in the deck of {game.name}")
        answer: dict[str, Any] = {
            "game": game.name,
            "agent": entry.name,
            "betting": state.betting,
            "board": [card_text(int(card)) for card in board[:wanted]],
            "board_cards": wanted,
            "missing_cards": max(0, wanted - len(board)),
            "street": street_name(game, state.round),
            "round": state.round,
            "finished": state.finished,
            "pot": state.pot,
            "to_call": 0 if state.finished else state.to_call,
            "actor": state.actor,
            "position": "" if state.finished else position_words(state.actor, game.players, game.is_holdem),
            "path": path_of(game, betting),
            "labels": [] if state.finished else labels_of(state),
            "actions": [] if state.finished else next_actions(state),
        }
        if state.finished or len(board) < wanted:
            return answer
        answer.update(self._hands(game, entry.name, state, board[:wanted]))
        if game.nolimit:
            answer["actions"] = next_actions(state, self._usual_sizes(entry.name, state, board[:wanted]))
        if other:
            answer["other"] = self._other(game, entry.name, other, state, board[:wanted])
        if whose and self.decision_counts is not None:
            answer["source"] = self.decision_counts.counts(game, whose, state, board[:wanted])
        return answer

    def _usual_sizes(self, name: str, state: State, board: Array) -> dict[int, int]:
        """Return the total that an agent most often raises to here, by label; amounts do not depend on its cards."""
        game = state.game
        row = observation(game, state.betting, state.actor, holdings(game, board)[0], board)
        sizes = {}
        for label in range(RAISE, len(game.labels)):
            if state.legal_labels >> label & 1:
                totals = raise_totals(self.roster.agent(name, game), row, state, label)
                sizes[label] = max(totals, key=totals.__getitem__)
        return sizes

    def _hands(self, game: Game, name: str, state: State, board: Array) -> dict[str, Any]:
        """Return all hands of the player to act, and their sums."""
        held_range = self.range_at(game, name, state.betting, board, state.actor)
        cells = cells_of(game)
        holes = holdings(game, np.zeros(0, np.uint8))
        possible = ~np.isin(holes, board).any(axis=1)
        cell = cells.of[possible]
        hands, combos, reach, mix = _sum_by_group(cell, len(cells.names), held_range)
        total = float(held_range.reach.sum())
        played = (held_range.mix * held_range.reach[:, None]).sum(axis=0)
        answer: dict[str, Any] = {
            "columns": cells.columns,
            "cells": {
                "names": list(cells.names),
                "hands": hands.astype(int).tolist(),
                "combos": _rounded(combos),
                "reach": _rounded(reach),
                "mix": _rounded(mix),
            },
            "hands": {
                "cards": cells.cards[possible].tolist(),
                "cell": cell.tolist(),
                "reach": _rounded(held_range.reach),
                "mix": _rounded(held_range.mix),
            },
            "combos": round(total, 3),
            "possible": len(held_range.holes),
            "frequency": _rounded(played / total) if total > 0 else None,
        }
        if game.is_holdem and len(board) >= 3:
            made, draws = classify(held_range.holes, board_row(board))
            answer["groups"] = {
                "made": _group_rows(made, MADE, held_range),
                "draws": _group_rows(draws, DRAWS, held_range) if len(board) < 5 else [],
            }
            answer["hands"]["made"] = made.tolist()
            answer["hands"]["draw"] = draws.tolist()
        return answer

    def _other(self, game: Game, name: str, other: str, state: State, board: Array) -> dict[str, Any]:
        """Return a second agent's mixes, and how far the two are apart."""
        entry = self.roster.entry(other, game)
        mine, theirs = (self.range_at(game, who, state.betting, board, state.actor) for who in (name, entry.name))
        distances, mean = difference(mine, theirs)
        answer = self._hands(game, entry.name, state, board)
        cell = np.array(answer["hands"]["cell"])
        count = len(answer["cells"]["names"])
        weight = np.bincount(cell, mine.reach, minlength=count)
        plain = np.bincount(cell, distances, minlength=count) / np.maximum(1, np.bincount(cell, minlength=count))
        by_cell = np.divide(
            np.bincount(cell, distances * mine.reach, minlength=count), weight, out=plain, where=weight > 0
        )
        return {
            "agent": entry.name,
            "cells": answer["cells"],
            "hands": {key: answer["hands"][key] for key in ("reach", "mix")},
            "groups": answer.get("groups"),
            "frequency": answer["frequency"],
            "combos": answer["combos"],
            "difference": {
                "mean": None if mean is None else round(mean, DIGITS),
                "cells": _rounded(by_cell),
                "hands": _rounded(distances),
            },
        }


def _group_rows(numbers: Array, names: tuple[str, ...], held_range: Range) -> list[dict[str, Any]]:
    """Return the groups that any hand belongs to: their share of the range, and the mix of actions."""
    grouped = numbers != NO_CLASS
    members = Range(held_range.holes[grouped], held_range.reach[grouped], held_range.mix[grouped])
    hands, combos, _, mix = _sum_by_group(numbers[grouped].astype(np.int64), len(names), members)
    total = float(combos.sum())
    return [
        {
            "name": name,
            "group": number,
            "hands": int(hands[number]),
            "combos": round(float(combos[number]), 3),
            "share": round(float(combos[number]) / total, DIGITS) if total > 0 else 0.0,
            "mix": _rounded(mix[number]),
        }
        for number, name in enumerate(names)
        if hands[number] > 0
    ]


def labels_of(state: State) -> list[dict[str, Any]]:
    """Return the game's labels in order: the word for each here, and whether it is legal."""
    game = state.game
    return [
        {
            "label": letter,
            "text": label_word(letter, game, state.to_call),
            "legal": bool(state.legal_labels >> number & 1),
        }
        for number, letter in enumerate(game.labels)
    ]


def next_actions(state: State, sizes: Mapping[int, int] | None = None) -> list[dict[str, Any]]:
    """Return the legal actions of the player to act: one per legal label, with the betting that it leads to.

    Parameters: `sizes` the totals to raise to by label; those that the labels stand for where it has none.
    """
    choices = []
    for number, letter in enumerate(state.game.labels):
        if not state.legal_labels >> number & 1:
            continue
        action, size = state.choose(number)
        if action == RAISE and sizes and number in sizes:
            size = sizes[number]
        after = state.apply(action, size)
        amount = on_street(state, size or state.raise_range[0]) if action == RAISE else 0
        choices.append(
            {
                "label": letter,
                "number": number,
                "action": "fcr"[action],
                "amount": amount,
                "text": button_text(state, action, size),
                "bet": is_bet(state),
                "betting": after.betting,
                "ends": after.finished,
                "folds": action == FOLD,
                "cards": state.game.visible(after.round),
            }
        )
    return choices
