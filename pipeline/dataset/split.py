"""The split: which decisions are held out for validation, one contract for ingest, training and evaluation.

One deal in ten is held out, or one player in ten, or the logs whose names match patterns. A row's side follows from
these settings and from the row alone, so two datasets with the same split never hold out what the other trains on.
Where players are held out, aliases are a part of it: a player's side is decided by the name after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

BY_DEAL, BY_PLAYER = -1, -2
"""values of `Split.held_out`: the row's deal, or its player, decides on which side it is"""
HELD_OUT = ("deals", "players")
MAX_WORDS = 5
"""aliases that are spelled out in a sentence"""


@dataclass(frozen=True)
class Split:
    """Settings that decide which rows are held out; two splits are equal if they hold out the same ones.

    >>> Split(hold_out="players", aliases=(("Slumbot_2012", "slumbot"),)).words
    'one player in ten (with the alias Slumbot_2012=slumbot)'
    """

    validation: tuple[str, ...] = ()
    """patterns of the names of logs"""
    hold_out: str = "deals"
    """`deals` or `players`, unless logs are named"""
    aliases: tuple[tuple[str, str], ...] = ()
    """old and new names of players, where these are held out"""

    def __post_init__(self) -> None:
        by_player = self.hold_out == "players" and not self.validation
        object.__setattr__(self, "validation", tuple(sorted(set(self.validation))))
        object.__setattr__(self, "hold_out", "players" if by_player else "deals")
        object.__setattr__(self, "aliases", tuple(sorted(self.aliases)) if by_player else ())

    @classmethod
    def read(cls, settings: Any) -> Split | None:
        """Return the split in a dataset's settings as a bundle has them; None if they do not say."""
        if not isinstance(settings, Mapping) or "validation" not in settings:
            return None
        validation, aliases = settings["validation"] or [], settings.get("alias") or {}
        hold_out = settings.get("hold_out", "deals")  # the only choice before players could be held out
        if not isinstance(validation, list) or not isinstance(aliases, dict) or hold_out not in HELD_OUT:
            return None
        if not all(isinstance(text, str) for text in (*validation, *aliases, *aliases.values())):
            return None
        return cls(tuple(validation), hold_out, tuple(aliases.items()))

    @property
    def words(self) -> str:
        """Return what is held out, for a sentence."""
        if self.validation:
            return f"the files {', '.join(self.validation)}"
        if self.hold_out == "deals":
            return "one deal in ten"
        pairs = [f"{old}={new}" for old, new in self.aliases]
        listed = ", ".join(pairs[:MAX_WORDS]) + (
            f" and {len(pairs) - MAX_WORDS} more" if len(pairs) > MAX_WORDS else ""
        )
        with_aliases = f" (with the alias{'es' * (len(pairs) > 1)} {listed})" if pairs else ""
        return f"one player in ten{with_aliases}"

    def held_out(self, label: str) -> int:
        """Return 1 if a log is on the validation side, 0 if not, or BY_DEAL or BY_PLAYER when these decide."""
        if not self.validation:
            return BY_PLAYER if self.hold_out == "players" else BY_DEAL
        base = PurePosixPath(label).name
        return int(any(fnmatchcase(base, glob) or fnmatchcase(label, glob) for glob in self.validation))
