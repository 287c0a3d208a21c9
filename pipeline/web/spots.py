"""A spot of the betting as pages show it: what an agent does with every hand, by cell of the grid and by kind of hand.

In go names of a game and of agents, a betting and a board; out comes one object with the way there, the actions that go
on from there, all hands with their mixes and reach, and the same summed up. Sums are weighted by reach: what the agent
really holds when it gets there. Ranges that were asked for lately are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.predictions import label_word, raise_totals
from pipeline.agents.ranges import Range, difference, holdings, range_at, state_after
from pipeline.dataset.decisions import STREETS, observation
from pipeline.poker.cards import NO_CARD, RANKS, card_text, cards_text, class_text, parse_cards, start_class
from pipeline.poker.game import Game, State, actions
from pipeline.poker.made_hands import DRAWS, MADE, NO_CLASS, classify
from pipeline.poker.rules import FOLD, RAISE
from pipeline.poker.spoken import action_words, is_bet, on_street, sentence
from pipeline.report.words import position_words
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.web.shelf import Shelf
from pipeline.web.source import Source

MOST_KEPT = 128
"""ranges that are kept: about 60 kB each"""
DIGITS = 5
"""of probabilities in answers"""


class Cells(NamedTuple):
    """The grid of a game: which cell each holding belongs to."""

    names: tuple[str, ...]
    columns: int
    of: Array
    """cell of each holding of the whole deck"""
    cards: Array
    """the text of each"""


@lru_cache(maxsize=8)
def cells_of(game: Game) -> Cells:
    """The 169 starting classes, or in games of one card its ranks, the highest first."""
    every = holdings(game, np.zeros(0, np.uint8))
    texts = np.array([cards_text(hole) for hole in every])
    if game.hole_cards == 2:
        found = np.array([start_class(int(a), int(b)) for a, b in every], dtype=np.int64)
        return Cells(tuple(class_text(i) for i in range(169)), 13, found, texts)
    names = tuple(reversed(RANKS[13 - game.ranks :]))
    return Cells(names, len(names), 12 - (every[:, 0] >> 2).astype(np.int64), texts)


def street_name(game: Game, round_index: int) -> str:
    """What a round of the betting is called."""
    return STREETS[round_index] if game.is_holdem else f"round {round_index + 1}"


def board_cards(text: str) -> Array:
    """The cards of a request's board."""
    if len(text) > 20:
        raise PipelineError("a board has at most five cards")
    return parse_cards(text)


def action_text(state: State, action: int, size: int) -> str:
    """An action as a button says it, such as `raise to 60`."""
    return "".join(action_words(state, action, size))


def path_of(game: Game, betting: str) -> list[dict[str, Any]]:
    """The steps to a betting: each with who did what, and the betting before it."""
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
                "action": action_text(state, action, size),
            }
        )
        state = state.apply(action, size)
    return steps


def _rounded(values: Array) -> Any:
    return np.round(values, DIGITS).tolist()


def _summed(numbers: Array, count: int, one: Range) -> tuple[Array, Array, Array, Array]:
    """By group: hands, combos weighted by reach, mean reach, and mix (of all its hands alike where none gets here)."""
    hands = np.bincount(numbers, minlength=count).astype(float)
    combos = np.bincount(numbers, one.reach, minlength=count)
    plain = np.stack([np.bincount(numbers, column, minlength=count) for column in one.mix.T], axis=1)
    weighted = np.stack([np.bincount(numbers, column * one.reach, minlength=count) for column in one.mix.T], axis=1)
    mix = np.divide(plain, hands[:, None], out=np.zeros_like(plain), where=hands[:, None] > 0)
    np.divide(weighted, combos[:, None], out=mix, where=combos[:, None] > 0)
    return hands, combos, np.divide(combos, hands, out=np.zeros(count), where=hands > 0), mix


class Spots:
    """Answers about spots."""

    def __init__(self, shelf: Shelf, source: Source | None = None) -> None:
        self.shelf, self.source = shelf, source
        self._kept: OrderedDict[tuple[str, str, str, bytes, int], Range] = OrderedDict()
        self._lock = threading.Lock()

    def range_at(self, game: Game, name: str, betting: str, board: Array, position: int) -> Range:
        """An agent's range, from those kept if it was asked for lately."""
        key = (game.name, name, betting, board.tobytes(), position)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = range_at(self.shelf.agent(name, game), betting, board, position)
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def spot(
        self, game_name: str, agent: str, betting: str, board_text: str, other: str = "", whose: str = ""
    ) -> dict[str, Any]:
        """Everything that the strategy page shows of a spot.

        Parameters: `other` a second agent to compare with, `whose` a player of the dataset whose decisions to count.
        """
        game = self.shelf.game(game_name)
        entry = self.shelf.entry(agent, game)
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
        if whose and self.source is not None:
            answer["source"] = self.source.counts(game, whose, state, board[:wanted])
        return answer

    def _usual_sizes(self, name: str, state: State, board: Array) -> dict[int, int]:
        """The total that an agent most often raises to here, by label; amounts do not depend on its cards."""
        game = state.game
        row = observation(game, state.betting, state.actor, holdings(game, board)[0], board)
        found = {}
        for label in range(RAISE, len(game.labels)):
            if state.legal_labels >> label & 1:
                totals = raise_totals(self.shelf.agent(name, game), row, state, label)
                found[label] = max(totals, key=totals.__getitem__)
        return found

    def _hands(self, game: Game, name: str, state: State, board: Array) -> dict[str, Any]:
        """All hands of the player to act, and their sums."""
        found = self.range_at(game, name, state.betting, board, state.actor)
        cells = cells_of(game)
        every = holdings(game, np.zeros(0, np.uint8))
        possible = ~np.isin(every, board).any(axis=1)
        cell = cells.of[possible]
        hands, combos, reach, mix = _summed(cell, len(cells.names), found)
        total = float(found.reach.sum())
        played = (found.mix * found.reach[:, None]).sum(axis=0)
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
                "reach": _rounded(found.reach),
                "mix": _rounded(found.mix),
            },
            "combos": round(total, 3),
            "possible": len(found.holes),
            "frequency": _rounded(played / total) if total > 0 else None,
        }
        if game.is_holdem and len(board) >= 3:
            made, draws = self._groups(found, board)
            answer["groups"] = {
                "made": _group_rows(made, MADE, found),
                "draws": _group_rows(draws, DRAWS, found) if len(board) < 5 else [],
            }
            answer["hands"]["made"] = made.tolist()
            answer["hands"]["draw"] = draws.tolist()
        return answer

    def _groups(self, found: Range, board: Array) -> tuple[Array, Array]:
        shown = np.full((1, 5), NO_CARD, dtype=np.uint8)
        shown[0, : len(board)] = board
        return classify(found.holes, shown)

    def _other(self, game: Game, name: str, other: str, state: State, board: Array) -> dict[str, Any]:
        """A second agent's mixes, and how far the two are apart."""
        entry = self.shelf.entry(other, game)
        mine, theirs = (self.range_at(game, who, state.betting, board, state.actor) for who in (name, entry.name))
        apart, mean = difference(mine, theirs)
        answer = self._hands(game, entry.name, state, board)
        cell = np.array(answer["hands"]["cell"])
        count = len(answer["cells"]["names"])
        weight = np.bincount(cell, mine.reach, minlength=count)
        plain = np.bincount(cell, apart, minlength=count) / np.maximum(1, np.bincount(cell, minlength=count))
        by_cell = np.divide(np.bincount(cell, apart * mine.reach, minlength=count), weight, out=plain, where=weight > 0)
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
                "hands": _rounded(apart),
            },
        }


def _group_rows(numbers: Array, names: tuple[str, ...], found: Range) -> list[dict[str, Any]]:
    """The groups that any hand belongs to: how much of the range, and what is done with it."""
    kept = numbers != NO_CLASS
    one = Range(found.holes[kept], found.reach[kept], found.mix[kept])
    hands, combos, _, mix = _summed(numbers[kept].astype(np.int64), len(names), one)
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
    """The game's labels in order: what each is called here, and whether it is legal."""
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
    """What the player to act can do: one action per legal label, with the betting that it leads to.

    Parameters: `sizes` the totals to raise to by label; those that the labels stand for where it has none.
    """
    found = []
    for number, letter in enumerate(state.game.labels):
        if not state.legal_labels >> number & 1:
            continue
        action, size = state.choose(number)
        if action == RAISE and sizes and number in sizes:
            size = sizes[number]
        after = state.apply(action, size)
        amount = on_street(state, size or state.raise_range[0]) if action == RAISE else 0
        found.append(
            {
                "label": letter,
                "number": number,
                "action": "fcr"[action],
                "amount": amount,
                "text": action_text(state, action, size),
                "bet": is_bet(state),
                "betting": after.betting,
                "ends": after.finished,
                "folds": action == FOLD,
                "cards": state.game.visible(after.round),
            }
        )
    return found
