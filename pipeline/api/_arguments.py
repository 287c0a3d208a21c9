"""Arguments of the public functions: one text or several, paths as texts, games by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.poker.game import Game, find_game

Texts = str | Sequence[str]
AnyPath = str | Path


def texts(given: Texts) -> tuple[str, ...]:
    """Return one text or several as a tuple.

    >>> texts("flop"), texts(["flop", "turn"])
    (('flop',), ('flop', 'turn'))
    """
    return (given,) if isinstance(given, str) else tuple(given)


def path_texts(given: AnyPath | Sequence[AnyPath]) -> list[str]:
    """Return one path or several as texts.

    >>> path_texts(Path("a")), path_texts(["a", Path("b")])
    (['a'], ['a', 'b'])
    """
    return [str(given)] if isinstance(given, str | Path) else [str(path) for path in given]


def named_game(given: Game | AnyPath) -> Game:
    """Return a game itself, or the one of this name."""
    return given if isinstance(given, Game) else find_game(given)
