"""What the public functions accept: one text or several, paths as texts, games by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.poker.game import Game, find_game

Texts = str | Sequence[str]
AnyPath = str | Path


def texts(given: Texts) -> tuple[str, ...]:
    """One text or several, as several.

    >>> texts("flop"), texts(["flop", "turn"])
    (('flop',), ('flop', 'turn'))
    """
    return (given,) if isinstance(given, str) else tuple(given)


def paths(given: AnyPath | Sequence[AnyPath]) -> list[str]:
    """One path or several, as texts.

    >>> paths(Path("a")), paths(["a", Path("b")])
    (['a'], ['a', 'b'])
    """
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def game_of(given: Game | AnyPath) -> Game:
    """A game, or the one of this name."""
    return given if isinstance(given, Game) else find_game(given)
