"""Lines of ACPC logs and match states of the ACPC protocol, as text and as objects.

One documented regular expression per kind of line is its grammar. Ingest runs the byte kernel of `ingestion/scan.py`,
which returns the first fault of a line by grammar and rules; tests compare it with `tests/support/line_verdict.py`, the
same in plain Python. Formatting (`str`) is the inverse of parsing.

A log of 2011 or later (cards, payoffs and names in position order; no-limit raises are totals over the hand):

    STATE:<hand>:<betting>:<cards>:<payoffs>:<names>          STATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice

A log of 2009 or 2010 has the names first, blinds in the betting as `b<n>` and totals after calls as `c<n>`:

    <names>:<hand>:<betting>:<cards>:<payoffs>                Bob|Alice:5:b50b100c100r300f:2d3c|Js2s:-100|100

Both may carry what real files carry: ` 0` or ` 1` and ` # <time>` after the last field, and a carriage return. Other
lines are comments (`#`, `;` or blank; the header is one of them) and `SCORE:<totals>:<names>` in seat order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.poker.cards import parse_cards, ranking
from pipeline.poker.game import Game, State
from pipeline.poker.showdown import showdown_value
from pipeline.runtime.errors import PipelineError

MAX_LINE = 16_384
"""bytes in a line; real ones have a few hundred"""

# The grammar

CARD = r"[2-9TJQKA][cdhs]"
NAME = r"[!-9;-{}~]{1,64}"  # printable ASCII without ':' and '|'
NUMBER = r"-?\d{1,12}(?:\.\d{1,17})?"
CARDS = rf"(?P<cards>(?:{CARD})+(?:\|(?:{CARD})+)*(?:/(?:{CARD})+)*)"
PAYOFFS = rf"(?P<payoffs>{NUMBER}(?:\|{NUMBER})+)"
NAMES = rf"(?P<names>{NAME}(?:\|{NAME})+)"
SUFFIX = r"(?: [01])?(?: # ?\d{1,12}(?:\.\d{1,12})?)?\r?"

HAND = re.compile(
    rf"STATE:(?P<hand>\d{{1,9}}):(?P<betting>(?:[fc/]|r\d{{0,9}})*):{CARDS}:{PAYOFFS}:{NAMES}{SUFFIX}", re.A
)
"""a finished hand, 2011 and later"""

HAND_2009 = re.compile(
    rf"{NAMES}:(?P<hand>\d{{1,9}}):(?P<betting>(?:b\d{{1,9}})*(?:[f/]|[cr]\d{{0,9}})*):{CARDS}:{PAYOFFS}{SUFFIX}", re.A
)
"""a finished hand of 2009 or 2010"""

SCORE = re.compile(rf"SCORE:(?P<totals>{NUMBER}(?:\|{NUMBER})+):{NAMES}{SUFFIX}", re.A)
"""the totals at a match's end"""

HEADER = re.compile(r"# name/game/hands/seed (?P<name>.+) (?P<game>\S+) (?P<hands>\d{1,9}) (?P<seed>\d{1,19})\s*", re.A)
"""the comment that opens a match"""

MATCH_STATE = re.compile(
    r"MATCHSTATE:(?P<position>\d{1,2}):(?P<hand>\d{1,9}):(?P<betting>(?:[fc/]|r\d{0,9})*):"
    rf"(?P<cards>(?:{CARD})*(?:\|(?:{CARD})*)*(?:/(?:{CARD})+)*)",
    re.A,
)
"""what a dealer sends: cards the player does not see are empty"""

# Why a line is not a hand: the codes of the byte kernel
VALID, GRAMMAR, TOO_LONG, NO_GAME, PLAYERS, OTHER_NAMES, HOLE_COUNT, NOT_IN_DECK, CARD_TWICE = range(9)
BLINDS, SIZE, CALL_SIZE, STREETS, AFTER_END, ILLEGAL, TOO_MANY, UNFINISHED, BOARD_COUNT, PAYOFF = range(9, 19)

REASONS = (
    "",
    "grammar: not a hand, score or comment line",
    f"grammar: longer than {MAX_LINE:,} bytes",
    "game: no known game fits",
    "players: another number of players than the game's",
    "names: not those of the match so far",
    "cards: wrong number of hole cards",
    "cards: not in the game's deck",
    "cards: one occurs twice",
    "betting: blinds are not the game's",
    "betting: a raise with a size in limit or without one in no-limit",
    "betting: the total after an action is wrong",
    "betting: streets are not separated where the rules end them",
    "betting: goes on after the end of the hand",
    "betting: an illegal action",
    "betting: more than 256 actions",
    "betting: the hand is not finished",
    "cards: the board does not fit the street reached",
    "payoffs: not what betting and cards give",
)
MOST_ACTIONS = 256
"""actions in a hand; the official server keeps fewer"""
TOLERANCE = 1e-5
"""logs write payoffs with six decimals"""
EXPECTED_TOLERANCE = 0.5
"""chips by which an all-in expectation may differ from the exact one: some logs round it"""


# Objects


class Header(NamedTuple):
    """A match's name, game (a path as it was typed), hands and seed."""

    name: str
    game: str
    hands: int
    seed: int

    def __str__(self) -> str:
        return f"# name/game/hands/seed {self.name} {self.game} {self.hands} {self.seed}"


def check_player_names(names: Iterable[str]) -> None:
    """Refuse names that no line of a log can hold."""
    for name in names:
        if not re.fullmatch(NAME, name):
            raise PipelineError(
                f"{name!r} cannot stand in a log: a name is 1 to 64 visible characters of ASCII, none of them : or |"
            )


class Score(NamedTuple):
    """A match's totals and names, in seat order."""

    totals: tuple[float, ...]
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"SCORE:{_numbers(self.totals)}:{'|'.join(self.names)}"


@dataclass(frozen=True)
class Hand:
    """A finished hand of a log, in position order."""

    number: int
    betting: str
    holes: tuple[str, ...]
    board: tuple[str, ...]
    """the cards of each street that has been dealt, the first street left out"""
    payoffs: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def cards(self) -> str:
        return "/".join(("|".join(self.holes), *self.board))

    def __str__(self) -> str:
        return f"STATE:{self.number}:{self.betting}:{self.cards}:{_numbers(self.payoffs)}:{'|'.join(self.names)}"


class MatchState(NamedTuple):
    """A hand as the dealer shows it to one player: hole cards that the player may not see are empty."""

    position: int
    hand: int
    betting: str
    holes: tuple[str, ...]
    board: tuple[str, ...] = ()

    @property
    def cards(self) -> str:
        return "/".join(("|".join(self.holes), *self.board))

    def __str__(self) -> str:
        return f"MATCHSTATE:{self.position}:{self.hand}:{self.betting}:{self.cards}"

    def reply(self, action: str) -> str:
        """Return the answer that takes an action (`f`, `c`, `r` or `r<n>`)."""
        return f"{self}:{action}"


def _numbers(values: tuple[float, ...]) -> str:
    """Return chips as logs write them: `-80|80`, `2.5|-2.5`."""
    return "|".join(
        f"{value + 0.0:.0f}" if value.is_integer() else np.format_float_positional(value, trim="-") for value in values
    )


def _split_cards(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    holes, *board = text.split("/")
    return tuple(holes.split("|")), tuple(board)


def _floats(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split("|"))


def _hand_of_match(match: re.Match[str]) -> Hand:
    holes, board = _split_cards(match["cards"])
    return Hand(
        number=int(match["hand"]),
        betting=match["betting"],
        holes=holes,
        board=board,
        payoffs=_floats(match["payoffs"]),
        names=tuple(match["names"].split("|")),
    )


def parse_hand(line: str) -> Hand:
    """Parse a hand line of either form; the betting of 2009 keeps its blinds and totals.

    >>> parse_hand("STATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice").names
    ('Bob', 'Alice')
    """
    match = HAND.fullmatch(line) or HAND_2009.fullmatch(line)
    if not match:
        raise PipelineError(f"not a hand of an ACPC log: {line[:80]!r}")
    return _hand_of_match(match)


def parse_header(line: str) -> Header | None:
    """Parse a comment that is a header; None for any other."""
    match = HEADER.fullmatch(line)
    return Header(match["name"], match["game"], int(match["hands"]), int(match["seed"])) if match else None


def parse_match_state(line: str) -> MatchState:
    """Parse a match state, with or without its line end.

    >>> str(parse_match_state("MATCHSTATE:0:3:cr:9s8h|"))
    'MATCHSTATE:0:3:cr:9s8h|'
    """
    match = MATCH_STATE.fullmatch(line.rstrip("\r\n"))
    if not match:
        raise PipelineError(f"not a match state: {line[:80]!r}")
    position, hand, betting, cards = match.groups()
    holes, *board = cards.split("/")
    return MatchState(int(position), int(hand), betting, tuple(holes.split("|")), tuple(board))


# Results


def hand_values(game: Game, holes: tuple[str, ...], board: tuple[str, ...]) -> list[int]:
    """Return the rank of each player's hand at showdown, on a full board."""
    table, opened, count = ranking(), parse_cards("".join(board)), game.hole_cards
    return [showdown_value(parse_cards(hole, count), count, opened, len(opened), table) for hole in holes]


def due_payoffs(hand: Hand, state: State) -> tuple[float, ...]:
    """Return the payoffs that a hand's cards and its finished betting give."""
    values = hand_values(state.game, hand.holes, hand.board) if state.showdown else [0] * state.game.players
    return state.payoffs(values)
