"""The columns that patterns name: each is an integer read off an observation.

A column is a kind (an entry of the registry `COLUMNS`) with a street and an argument where it takes them:
`word(flop)`, `rank(2)`, `ehs(turn)`, `cluster(300)`. A column that has no value in a row (the turn's strength on the
flop) is `ABSENT` there. `reading` reads columns in bulk; `text` formats a value for people.

Strength columns are those of `pipeline.poker.strength`, as 16-bit or 8-bit numbers; `cluster` is the number of the
nearest centroid of `pipeline.poker.strength.hand_clusters`. Both exist in hold'em only.

A new column is one entry of `COLUMNS`: a field of the observation, or a word or byte of the strengths, needs nothing
else; anything else needs an operation of its own in `reading`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from pipeline.dataset.decisions import OBSERVATION, STREETS, betting_text
from pipeline.poker.cards import NO_CARD, RANKS, class_text, name_text, pattern_text
from pipeline.poker.strength.win_counts import FULL_STRENGTH

ABSENT = -(2**63)
CURRENT = -1
BEFORE = -2
RIVER = 3

# How a column is read off a row: an operation of `reading`, and two numbers for it
(
    FIELD,
    WORD,
    ACT,
    BETTING,
    BETS,
    ODDS,
    PREVIOUS,
    FACED,
    POT_DEPTH,
    EFFECTIVE_BLINDS,
    POT_BLINDS,
    AGGRESSOR,
    RANKS_TOGETHER,
    STRENGTH_WORD,
    STRENGTH_BYTE,
    STRENGTH_BYTES,
    CLUSTER,
) = range(17)

# Where the strengths of a street stand in their row of bytes (see `reading.strengths`)
OCTILES, QUANTILES, GROUPS, ALL_BYTES = 6, 14, 20, 28
"""after `ihs`, `ehs` and `ehs2`: 8 means of eighths, 5 medians of fifths and a byte to spare, 8 strengths by group"""

Operation: TypeAlias = tuple[int, int, int]
Reading: TypeAlias = "Callable[[Column], Operation]"
Text: TypeAlias = "Callable[[Any, Column, bool], str]"


class Column(NamedTuple):
    """A column of a pattern: `street` is a street's number, CURRENT or BEFORE (the one before the row's)."""

    name: str
    street: int = CURRENT
    argument: int = 0
    seed: int = 0

    @property
    def kind(self) -> Kind:
        """Return its entry of the registry."""
        return COLUMNS[self.name]

    @property
    def operation(self) -> Operation:
        """Return the operation, with its two numbers, by which `reading` reads this column."""
        return self.kind.read(self)

    def __str__(self) -> str:
        """Return the column as bundles store it and as its features are hashed."""
        return self._format(self.name)

    @property
    def written(self) -> str:
        """Return the column as patterns write it."""
        return self._format(self.kind.word or self.name)

    def _format(self, name: str) -> str:
        inside = [{CURRENT: "", BEFORE: "before"}.get(self.street, STREETS[self.street])] if self.kind.street else []
        inside += [str(self.argument)] if self.kind.argument else []
        inside += [f"seed={self.seed}"] if self.seed else []
        arguments = ", ".join(part for part in inside if part)
        return f"{name}({arguments})" if arguments else name


class Kind(NamedTuple):
    """A kind of column: how it is read and formatted, and which arguments it takes."""

    read: Reading
    street: bool = False
    """takes a street"""
    argument: tuple[int, int] | None = None
    """the range of the number it takes"""
    numeric: bool = False
    """may be cut into bins"""
    top: int = 0
    """the greatest value, where bins of equal width are to reach up to it; 0: up to the greatest that was seen"""
    strength: str = ""
    """which strengths it reads: `moments`, `quantiles` or `groups`; empty for none"""
    text: Text | None = None
    """a row's value as people write it; None: the number itself"""
    word: str = ""
    """what patterns call it, if that is not its name: the name is in bundles, and features are hashed by it"""


def _operation(number: int, first: int = 0, second: int = 0) -> Reading:
    return lambda column: (number, first, second)


def _field(name: str) -> Reading:
    """Return a reader of a field of the observation, never negative; an argument picks one of several numbers."""
    assert OBSERVATION.fields is not None
    kind, place = OBSERVATION.fields[name][:2]
    width = kind.base.itemsize
    return lambda column: (FIELD, place + width * max(0, column.argument - 1), width)


def _strength_byte(first: int) -> Reading:
    """Return a reader of a byte of the strengths: the one that the argument counts to, from `first` on."""
    return lambda column: (STRENGTH_BYTE, first + column.argument - 1, 0)


def _rank_text(rank: int) -> str:
    return "-" if rank == NO_CARD else RANKS[rank]


def _word_text(row: Any, column: Column, nolimit: bool) -> str:
    street = column.street if column.street >= 0 else int(row["street"]) + column.street + 1
    return betting_text(row["betting_codes"][street], nolimit)


def _betting_text(row: Any, column: Column, nolimit: bool) -> str:
    return "/".join(betting_text(word, nolimit) for word in row["betting_codes"][: int(row["street"]) + 1])


COLUMNS = {
    "street": Kind(_field("street"), text=lambda row, _, __: STREETS[row["street"]]),
    "position": Kind(_field("position")),
    "players": Kind(_field("players")),
    # a street's betting; one action of it, 0 for none; all streets together; raises in the whole hand, on the street
    "word": Kind(_operation(WORD), street=True, text=_word_text),
    "act": Kind(_operation(ACT), street=True, argument=(1, 12), numeric=True),
    "betting": Kind(_operation(BETTING), text=_betting_text),
    "bets": Kind(_operation(BETS), numeric=True),
    "raises": Kind(_field("raises"), numeric=True),
    "to_call": Kind(_field("to_call"), numeric=True),
    "pot": Kind(_field("pot"), numeric=True),
    "stack": Kind(_field("stack"), numeric=True),
    # to_call / (pot + to_call) in thousandths
    "odds": Kind(_operation(ODDS), numeric=True),
    # the bet faced in hundredths of the pot before it; what can still be won or lost in hundredths of the pot; the same
    # and the pot in tenths of a big blind: comparable between stakes
    "faced": Kind(_operation(FACED), numeric=True),
    "stack_to_pot": Kind(_operation(POT_DEPTH), numeric=True),
    "effective_bb": Kind(_operation(EFFECTIVE_BLINDS), numeric=True),
    "pot_bb": Kind(_operation(POT_BLINDS), numeric=True),
    # players left in the hand, who still act on this street, who act after this one on the last street
    "in_hand": Kind(_field("in_hand"), numeric=True),
    "to_act": Kind(_field("to_act"), numeric=True),
    "behind": Kind(_field("behind"), numeric=True, word="relative_position"),
    # how many seats after the actor the last player sits who raised; 0 for the actor
    "aggressor": Kind(_operation(AGGRESSOR), numeric=True),
    "legal": Kind(_field("legal")),
    # one's own last action in the hand; with a street, the same if taken since that street
    "previous": Kind(
        _operation(PREVIOUS), street=True, text=lambda row, _, nolimit: betting_text(row["previous"], nolimit)
    ),
    "high": Kind(_field("high"), numeric=True, text=lambda row, _, __: _rank_text(row["high"])),
    "low": Kind(_field("low"), numeric=True, text=lambda row, _, __: _rank_text(row["low"])),
    "start": Kind(_field("start"), text=lambda row, _, __: class_text(row["start"])),
    # the i-th highest rank of the board; all of them together
    "rank": Kind(
        _field("ranks"),
        argument=(1, 5),
        numeric=True,
        text=lambda row, column, __: _rank_text(row["ranks"][column.argument - 1]),
    ),
    "ranks": Kind(
        _operation(RANKS_TOGETHER),
        text=lambda row, _, __: "".join(_rank_text(rank) for rank in row["ranks"] if rank != NO_CARD) or "-",
    ),
    "pattern": Kind(_field("pattern"), text=lambda row, _, __: pattern_text(row["pattern"])),
    "flush": Kind(_field("flush"), text=lambda row, _, __: pattern_text(row["flush"])),
    "name": Kind(_field("name"), text=lambda row, _, __: name_text(row["name"])),
    # strength now, its mean at the river, the mean of its square
    "ihs": Kind(_operation(STRENGTH_WORD, 0), street=True, numeric=True, top=FULL_STRENGTH, strength="moments"),
    "ehs": Kind(_operation(STRENGTH_WORD, 1), street=True, numeric=True, top=FULL_STRENGTH, strength="moments"),
    "ehs2": Kind(_operation(STRENGTH_WORD, 2), street=True, numeric=True, top=FULL_STRENGTH, strength="moments"),
    # the mean of the i-th eighth of the strengths at the river; all eighths together, each in k bins of equal width
    "eighth": Kind(
        _strength_byte(OCTILES),
        street=True,
        argument=(1, 8),
        numeric=True,
        top=255,
        strength="moments",
        word="river_octile",
    ),
    "shape": Kind(
        _operation(STRENGTH_BYTES, OCTILES, 8),
        street=True,
        argument=(2, 128),
        strength="moments",
        word="river_octiles",
    ),
    # the same of the medians of the fifths: the quantiles at 10, 30, 50, 70 and 90 %
    "fifth": Kind(
        _strength_byte(QUANTILES),
        street=True,
        argument=(1, 5),
        numeric=True,
        strength="quantiles",
        word="river_quantile",
    ),
    "fifths": Kind(
        _operation(STRENGTH_BYTES, QUANTILES, 5),
        street=True,
        argument=(2, 128),
        strength="quantiles",
        word="river_quantiles",
    ),
    "cluster": Kind(_operation(CLUSTER), street=True, argument=(2, 65535), strength="moments"),
    # on the river: strength against the i-th of 8 groups of starting hands, weakest first
    "ochs": Kind(_strength_byte(GROUPS), argument=(1, 8), numeric=True, top=255, strength="groups"),
}

OWN_CARDS = {"high", "low", "start", "pattern", "flush", "name"} | {n for n, kind in COLUMNS.items() if kind.strength}
"""columns that read the player's own cards"""

WORDS = {kind.word or name: name for name, kind in COLUMNS.items()}
"""columns by the word that patterns use for them; patterns may use the names too"""


def text(row: Any, column: Column, code: int, nolimit: bool = False) -> str:
    """Return a column of one row as people write it; `code` is its value from `reading.codes`."""
    return str(code) if column.kind.text is None else column.kind.text(row, column, nolimit)
