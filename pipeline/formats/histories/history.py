"""A hand of a poker hand history (PHH) file as an object.

PHH is TOML: https://phh.readthedocs.io describes it, PokerKit is its reference program. Two of its variants are
hold'em as this package plays it, no-limit (`NT`) and fixed-limit (`FT`); hands of others are refused by name. `History`
holds what the file says, in the file's own order, with all amounts as integers: one is the smallest unit that occurs
in the source (`decimals` digits after the point: 2 where a source counts in cents).

Player 1 (index 0) is the first to act after the flop. With two players the lists of blinds and antes are written in
reverse, as PHH has it: player 2 has the button and posts the first of them. `posted` undoes this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.runtime.errors import PipelineError

VARIANTS = ("NT", "FT")
MOST_HISTORY_PLAYERS = 10
MAX_AMOUNT = (1 << 27) - 1
"""the largest amount in units: ten such stacks still fit the 32 bits of a row's pot"""
MAX_DECIMALS = 4
"""digits after the point that amounts may have"""


class HistoryError(PipelineError):
    """The reason why a text is no usable hand; `str` is what the table of rejected hands shows."""


class Action(NamedTuple):
    """One entry of a hand's `actions`.

    `kind` is PHH's word: `dh` and `db` deal to a player and to the board, `f`, `cc` and `cbr` fold, check or call, and
    bet or raise, `sm` shows or mucks; it is empty for an entry that is only a comment.
    """

    kind: str
    player: int = -1
    """its index, -1 for the dealer"""
    amount: int = 0
    """what `cbr` raises to on this street, in units"""
    cards: str = ""
    """as written: `AhKh`, `????`, `-` (show what was dealt) or nothing (muck)"""
    comment: str = ""


@dataclass(frozen=True)
class History:
    """A hand of no-limit or fixed-limit hold'em, as written in a file."""

    variant: str
    antes: tuple[int, ...]
    blinds: tuple[int, ...]
    """`blinds_or_straddles` as written; a negative one is posted out of turn and does not move who acts first"""
    stacks: tuple[int | None, ...]
    """at the start; None where the file says `inf`, which means that nobody knows"""
    actions: tuple[Action, ...]
    min_bet: int = 0
    """no-limit only"""
    small_bet: int = 0
    big_bet: int = 0
    """fixed-limit only"""
    trimmed: bool = False
    """`ante_trimming_status`: whether an ante that not everybody could pay makes side pots"""
    players: tuple[str, ...] = ()
    """names; empty where the file has none"""
    seats: tuple[int, ...] = ()
    winnings: tuple[int, ...] = ()
    finishing_stacks: tuple[int, ...] = ()
    venue: str = ""
    table: str = ""
    hand: str = ""
    decimals: int = 0
    other: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    """fields that are kept but mean nothing to the rules: dates, currency, author and those of users"""

    @property
    def nolimit(self) -> bool:
        """Return whether it is the variant `NT`."""
        return self.variant == "NT"

    @property
    def count(self) -> int:
        """Return the number of players."""
        return len(self.stacks)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the players' names, `p1`, `p2`, ... where the file has none."""
        return self.players or tuple(f"p{p + 1}" for p in range(self.count))

    @property
    def posted(self) -> tuple[tuple[int, int], ...]:
        """Return the ante and the blind of each player, in the players' order (a short stack may pay less).

        >>> History("NT", (1, 2), (5, 10), (100, 100), (), min_bet=10).posted
        ((2, 10), (1, 5))
        """
        pairs = tuple((ante, abs(blind)) for ante, blind in zip(self.antes, self.blinds, strict=True))
        return pairs[::-1] if self.count == 2 else pairs

    @property
    def big_blind(self) -> int:
        """Return the unit that amounts are compared in: the minimum bet, in fixed-limit the small bet."""
        return self.min_bet if self.nolimit else self.small_bet

    @property
    def date(self) -> str:
        """Return `year-month-day`, as much of it as the file has."""
        fields = dict(self.other)
        parts = []
        for name, width in (("year", 4), ("month", 2), ("day", 2)):
            value = fields.get(name)
            if not isinstance(value, int):
                break
            parts.append(f"{value:0{width}d}")
        return "-".join(parts)
