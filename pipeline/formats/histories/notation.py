"""Text of poker hand histories to `History` and back: any TOML that describes a hand of hold'em.

A file holds one hand, or many, each in a table `[1]`, `[2]`, ... `sections` cuts a file at the lines that open such a
table and each section is read by itself, so one damaged hand does not cost the others. This module is the definition
of what is accepted; the byte kernel of `scan` reads the common form of the same text some hundred times faster and
must come to the same answer.

What PokerKit repairs or lets pass with a warning is refused here, by reason: lists of different lengths, cards that
occur twice, amounts that are no plain numbers. Writing is in the form of the public collections, which the byte kernel
and PokerKit read: `parse_history` of what `history_text` writes is the same `History`.
"""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from pipeline.formats.ascii import (
    CLOSE,
    DOUBLE_QUOTE,
    HASH,
    LOW_A,
    LOW_Z,
    NEWLINE,
    NINE,
    OPEN,
    POINT,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    UNDERSCORE,
    ZERO,
)
from pipeline.formats.histories.history import (
    MAX_AMOUNT,
    MAX_DECIMALS,
    MOST_HISTORY_PLAYERS,
    VARIANTS,
    Action,
    History,
    HistoryError,
)
from pipeline.formats.histories.packing import MOST_ENTRIES
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel

MAX_SECTION = 1 << 18
"""bytes in a hand; real ones have about a thousand"""

_VARIANT = re.compile(rb"^[ \t]*variant[ \t]*=[ \t]*[\"']", re.MULTILINE)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,12})?")
_AMOUNT_FIELDS = tuple(
    int.from_bytes(word, "big")
    for word in (b"ante", b"blin", b"min_", b"smal", b"big_", b"star", b"acti", b"winn", b"fini")
)
_CARDS = re.compile(r"(?:[2-9TJQKA][cdhs]|\?\?)*")
_PLAYER = re.compile(r"p([1-9]\d?)")
_AMOUNTS = ("antes", "blinds_or_straddles", "starting_stacks", "winnings", "finishing_stacks")
_BETS = ("min_bet", "small_bet", "big_bet")
_PARSED = {
    *_AMOUNTS,
    *_BETS,
    "variant",
    "ante_trimming_status",
    "actions",
    "players",
    "seats",
    "venue",
    "table",
    "hand",
}


class Section(NamedTuple):
    """A hand's place in a source: the number of its table (0 when it has none) and where its bytes are."""

    number: int
    begin: int
    end: int


def is_history(head: bytes) -> bool:
    """Return whether the first bytes of a file look like a hand history: a line `variant = ...` among them."""
    return _VARIANT.search(head) is not None


def sections(data: bytes) -> list[Section]:
    """Return the hands of a source: the text before the first table, if it is more than comments, and each table."""
    return [Section(*place) for place in split_hands(np.frombuffer(data, dtype=np.uint8)).tolist()]


def split_hands(data: Array) -> Array:
    """Cut the bytes of a source into hands: (hands, 3) numbers, where their text begins and where it ends."""
    places = np.zeros((256, 3), dtype=np.int64)
    while (count := int(_fill_sections(data, places))) > len(places):
        places = np.zeros((count + 1, 3), dtype=np.int64)
    return places[:count]


@kernel(leaf=True)
def _header(data: Array, i: int) -> int:
    """Return the number in a line `[n]` that opens a table (spaces, quotes, a comment allowed); -1 if it is none."""
    end = data.shape[0]
    while i < end and (data[i] == SPACE or data[i] == TAB):
        i += 1
    if i >= end or data[i] != OPEN:
        return -1
    i += 1
    while i < end and (data[i] == SPACE or data[i] == TAB):
        i += 1
    quote = data[i] if i < end and (data[i] == DOUBLE_QUOTE or data[i] == QUOTE) else 0
    i += quote != 0
    first = i
    number = 0
    while i < end and ZERO <= data[i] <= NINE and i - first < 12:
        number = number * 10 + (data[i] - ZERO)
        i += 1
    if i == first:
        return -1
    if quote != 0:
        if i >= end or data[i] != quote:
            return -1
        i += 1
    while i < end and (data[i] == SPACE or data[i] == TAB):
        i += 1
    if i >= end or data[i] != CLOSE:
        return -1
    i += 1
    while i < end and (data[i] == SPACE or data[i] == TAB or data[i] == RETURN):
        i += 1
    return number if i >= end or data[i] == NEWLINE or data[i] == HASH else -1


@kernel(leaf=True)
def _fill_sections(data: Array, places: Array) -> int:
    """Fill `places` as far as it goes; return the number of hands."""
    end = data.shape[0]
    count = 0
    inside = False
    i = 0
    while i < end:
        first = i
        while i < end and (data[i] == SPACE or data[i] == TAB or data[i] == RETURN):
            i += 1
        number = _header(data, first) if i < end and data[i] == OPEN else -1
        opens = not inside and i < end and data[i] != NEWLINE and data[i] != HASH
        while i < end and data[i] != NEWLINE:
            i += 1
        i += 1
        if number >= 0 or opens:
            if inside and count <= places.shape[0]:
                places[count - 1, 2] = first
            inside = True
            if count < places.shape[0]:
                places[count, 0] = max(number, 0)
                places[count, 1] = min(i, end) if number >= 0 else 0
                places[count, 2] = end
            count += 1
    return count


def decimals_of(data: bytes) -> int:
    """Return how many digits after the point the amounts of a text need, by the longest that ends in no zero.

    >>> decimals_of(b"min_bet = 0.50\\nstarting_stacks = [10.25, 7.00]\\ntable = 'No. 1.2345'")
    2
    """
    return int(_most_decimals(np.frombuffer(data, dtype=np.uint8)))


@kernel(leaf=True)
def _most_decimals(data: Array) -> int:
    """Return the most digits after a point in lines that open no field, or one of those with amounts."""
    most = 0
    i = 0
    end = data.shape[0]
    while i < end:
        while i < end and (data[i] == SPACE or data[i] == TAB):
            i += 1
        skip = False
        if i + 4 <= end and (data[i] == UNDERSCORE or LOW_A <= data[i] | 32 <= LOW_Z):
            word = (
                (np.uint32(data[i]) << 24)
                | (np.uint32(data[i + 1]) << 16)
                | (np.uint32(data[i + 2]) << 8)
                | data[i + 3]
            )
            skip = True
            for known in _AMOUNT_FIELDS:
                if word == known:
                    skip = False
        while i < end and data[i] != NEWLINE:
            if not skip and data[i] == POINT and i > 0 and ZERO <= data[i - 1] <= NINE:
                digits = 0
                while i + 1 < end and ZERO <= data[i + 1] <= NINE:
                    i += 1
                    digits += 1
                    if data[i] != ZERO:
                        most = max(most, digits)
            i += 1
        i += 1
    return min(most, MAX_DECIMALS)


def read_section(data: bytes) -> dict[str, Any]:
    """Read the fields of a hand as TOML, numbers with a point as `Decimal`."""
    if len(data) > MAX_SECTION:
        raise HistoryError(f"grammar: longer than {MAX_SECTION:,} bytes")
    try:
        return tomllib.loads(data.decode(), parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):
        raise HistoryError("grammar: not TOML") from None


def parse_history(text: str | bytes, decimals: int | None = None) -> History:
    """Parse a text with one hand.

    Parameters: the text; the digits after the point that one unit stands for (default: as many as the text needs).

    >>> parse_history(
    ...     "variant='NT'\\nantes=[0,0]\\nblinds_or_straddles=[1,2]\\nmin_bet=2\\nstarting_stacks=[9,inf]\\n"
    ...     "actions=['p2 cbr 5.5']"
    ... ).actions
    (Action(kind='cbr', player=1, amount=55, cards='', comment=''),)
    """
    data = text.encode() if isinstance(text, str) else text
    hands = list(sections(data))
    if len(hands) > 1:
        raise HistoryError(f"{len(hands)} hands where one is needed: `read_histories` takes many")
    if hands:
        data = data[hands[0].begin : hands[0].end]
    return parse_table(read_section(data), decimals_of(data) if decimals is None else decimals)


def read_histories(text: str | bytes) -> list[History]:
    """Parse a text with any number of hands, amounts of all in the same unit; a damaged one is an error.

    >>> hand = (
    ...     "variant='NT'\\nantes=[0,0]\\nblinds_or_straddles=[1,2]\\nmin_bet=2\\nstarting_stacks=[9,9]\\nactions=[]\\n"
    ... )
    >>> [history.blinds for history in read_histories(f"[1]\\n{hand}[2]\\n{hand.replace('1,2', '0.5,2')}")]
    [(10, 20), (5, 20)]
    """
    data = text.encode() if isinstance(text, str) else text
    decimals = decimals_of(data)
    return [parse_table(read_section(data[hand.begin : hand.end]), decimals) for hand in sections(data)]


def parse_table(table: dict[str, Any], decimals: int) -> History:
    """Make a hand of the fields of a TOML table."""
    variant = table.get("variant")
    if not isinstance(variant, str):
        raise HistoryError("fields: no variant")
    if variant not in VARIANTS:
        raise HistoryError(f"variant {variant[:12]}")
    stacks = _list(table, "starting_stacks", None)
    count = len(stacks)
    if not 2 <= count <= MOST_HISTORY_PLAYERS:
        raise HistoryError(f"players: 2 to {MOST_HISTORY_PLAYERS} are possible")
    trimmed = table.get("ante_trimming_status", False)
    if not isinstance(trimmed, bool):
        raise HistoryError("fields: ante_trimming_status is neither true nor false")
    antes = tuple(_amount(x, decimals, "antes") for x in _list(table, "antes", count))
    blinds = tuple(
        _amount(x, decimals, "blinds_or_straddles", True) for x in _list(table, "blinds_or_straddles", count)
    )
    if not any(antes) and not any(blinds):
        raise HistoryError("fields: neither antes nor blinds")
    bets = {
        name: _bet(table, name, decimals) for name in (("min_bet",) if variant == "NT" else ("small_bet", "big_bet"))
    }
    return History(
        variant=variant,
        antes=antes,
        blinds=blinds,
        stacks=tuple(_stack(x, decimals) for x in stacks),
        actions=_actions(table, count, decimals),
        trimmed=trimmed,
        players=_names(table, count),
        seats=_seats(table, count),
        winnings=tuple(_amount(x, decimals, "winnings", True) for x in _list(table, "winnings", count, ())),
        finishing_stacks=tuple(
            _amount(x, decimals, "finishing_stacks") for x in _list(table, "finishing_stacks", count, ())
        ),
        venue=_words(table, "venue"),
        table=_words(table, "table"),
        hand=_words(table, "hand"),
        decimals=decimals,
        other=tuple((key, value) for key, value in table.items() if key not in _PARSED),
        **bets,
    )


def _list(table: dict[str, Any], name: str, count: int | None, default: tuple[Any, ...] | None = None) -> list[Any]:
    """Return a field that is a list of `count` entries."""
    value = table.get(name, default)
    if value is None:
        raise HistoryError(f"fields: no {name}")
    if value == default:
        return []
    if not isinstance(value, list):
        raise HistoryError(f"fields: {name} is no list")
    if count is not None and len(value) != count:
        raise HistoryError(f"fields: {name} has another number of entries than starting_stacks")
    return value


def _amount(value: Any, decimals: int, name: str, negative: bool = False) -> int:
    """Return an amount in units."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise HistoryError(f"amounts: {name} is no number")
    exact = Decimal(value)
    if not exact.is_finite():
        raise HistoryError(f"amounts: {name} is no finite number")
    if exact != 0 and not -32 < exact.adjusted() < 16:
        raise HistoryError(f"amounts: {name} is beyond {MAX_AMOUNT:,} units")
    scaled = exact.scaleb(decimals)
    if scaled != int(scaled):
        raise HistoryError(f"amounts: {name} has more than {decimals} decimals")
    if abs(scaled) > MAX_AMOUNT:
        raise HistoryError(f"amounts: {name} is beyond {MAX_AMOUNT:,} units")
    if scaled < 0 and not negative:
        raise HistoryError(f"amounts: {name} is negative")
    return int(scaled)


def _stack(value: Any, decimals: int) -> int | None:
    """Return a starting stack; None for `inf`."""
    if isinstance(value, Decimal) and value.is_infinite() and value > 0:
        return None
    stack = _amount(value, decimals, "starting_stacks")
    if stack == 0:
        raise HistoryError("amounts: a starting stack is empty")
    return stack


def _bet(table: dict[str, Any], name: str, decimals: int) -> int:
    if name not in table:
        raise HistoryError(f"fields: no {name}")
    bet = _amount(table[name], decimals, name)
    if bet == 0:
        raise HistoryError(f"amounts: {name} is zero")
    return bet


def _names(table: dict[str, Any], count: int) -> tuple[str, ...]:
    """Return the players' names: different, not empty, at most 64 printable characters each."""
    names = _list(table, "players", count, ())
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= 64 or not name.isprintable() or "|" in name:
            raise HistoryError("names: a name is no line of 1 to 64 printable characters without |")
    if len(set(names)) < len(names):
        raise HistoryError("names: two players have the same name")
    return tuple(names)


def _seats(table: dict[str, Any], count: int) -> tuple[int, ...]:
    seats = _list(table, "seats", count, ())
    if not all(isinstance(seat, int) and not isinstance(seat, bool) and 0 <= seat <= 99 for seat in seats):
        raise HistoryError("fields: seats are no numbers up to 99")
    return tuple(seats)


def _words(table: dict[str, Any], name: str) -> str:
    """Return a field that names something: text or a number."""
    value = table.get(name, "")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**18:
        return str(value)
    if not isinstance(value, str) or len(value) > 128:
        raise HistoryError(f"fields: {name} is neither text of at most 128 characters nor a number")
    return value


def _actions(table: dict[str, Any], count: int, decimals: int) -> tuple[Action, ...]:
    given = _list(table, "actions", None)
    if len(given) > MOST_ENTRIES:
        raise HistoryError(f"betting: more than {MOST_ENTRIES} entries")
    return tuple(_action(entry, count, decimals) for entry in given)


def _action(entry: Any, count: int, decimals: int) -> Action:
    """Parse an entry of `actions`."""
    if not isinstance(entry, str) or len(entry) > 4096:
        raise HistoryError("actions: an entry is no line of text")
    words, comment = entry.split(), ""
    if "#" in words:  # a remark begins with a # that stands alone
        words, comment = words[: words.index("#")], entry.partition("#")[2].strip()
    match words:
        case []:
            return Action("", comment=comment)
        case ["d", "db", cards] if _CARDS.fullmatch(cards):
            if "?" in cards:
                raise HistoryError("cards: a board card is not known")
            return Action("db", cards=cards, comment=comment)
        case ["d", "dh", player, cards] if _CARDS.fullmatch(cards):
            return Action("dh", _player(player, count), cards=cards, comment=comment)
        case [player, "f" | "cc" as kind]:
            return Action(kind, _player(player, count), comment=comment)
        case [player, "cbr", amount] if _NUMBER.fullmatch(amount):
            value = _amount(Decimal(amount), decimals, "a raise")
            return Action("cbr", _player(player, count), amount=value, comment=comment)
        case [player, "sm"]:
            return Action("sm", _player(player, count), comment=comment)
        case [player, "sm", cards] if cards == "-" or _CARDS.fullmatch(cards):
            return Action("sm", _player(player, count), cards=cards, comment=comment)
    raise HistoryError("actions: an entry is not understood")


def _player(text: str, count: int) -> int:
    match = _PLAYER.fullmatch(text)
    if not match or int(match[1]) > count:
        raise HistoryError("actions: a player who is not in the hand")
    return int(match[1]) - 1


# Writing


def amount_text(units: int | None, decimals: int) -> str:
    """Return an amount in units as PHH writes it.

    >>> amount_text(2050, 2), amount_text(700, 2), amount_text(None, 2)
    ('20.5', '7', 'inf')
    """
    if units is None:
        return "inf"
    sign = "-" if units < 0 else ""
    whole, part = divmod(abs(units), 10**decimals)
    return f"{sign}{whole}.{part:0{decimals}d}".rstrip("0").rstrip(".") if part else f"{sign}{whole}"


def action_text(action: Action, decimals: int) -> str:
    """Return an entry of `actions` as text.

    >>> action_text(Action("cbr", 2, amount=1550), 2)
    'p3 cbr 15.5'
    """
    words = [] if not action.kind else [f"p{action.player + 1}", action.kind]
    if action.kind == "db":
        words = ["d", "db"]
    elif action.kind == "dh":
        words = ["d", "dh", words[0]]
    elif action.kind == "cbr":
        words.append(amount_text(action.amount, decimals))
    if action.cards:
        words.append(action.cards)
    if action.comment:
        words += ["#", action.comment]
    return " ".join(words)


def _toml_string(text: str) -> str:
    """Return text as a TOML string."""
    if text.isascii() and text.isprintable() and "'" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(value: Any) -> str:
    """Return any value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal | float):
        number = Decimal(value)
        if not number.is_finite():
            return "nan" if number.is_nan() else "inf" if number > 0 else "-inf"
        text = str(value)
        return text if set(text) & {".", "e", "E"} else f"{text}.0"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml_value(entry)}" for key, entry in value.items()) + "}"
    raise PipelineError(f"{value!r} cannot be written as TOML")


def _toml_key(key: str) -> str:
    """Return a key as TOML writes it."""
    plain = key and key.isascii() and all(letter.isalnum() or letter in "-_" for letter in key)
    return key if plain else json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f")


def _label_text(text: str) -> str:
    """Return the name of a table or hand as TOML: a number where it is one."""
    number = text.isascii() and text.isdigit() and len(text) < 18 and str(int(text)) == text
    return text if number else _toml_string(text)


def _history_lines(history: History) -> Iterator[str]:
    """Yield the lines of a hand."""

    def amounts(units: Iterable[int | None]) -> str:
        return f"[{', '.join(amount_text(unit, history.decimals) for unit in units)}]"

    yield f"variant = '{history.variant}'"
    yield f"ante_trimming_status = {_toml_value(history.trimmed)}"
    yield f"antes = {amounts(history.antes)}"
    yield f"blinds_or_straddles = {amounts(history.blinds)}"
    for name in ("min_bet",) if history.nolimit else ("small_bet", "big_bet"):
        yield f"{name} = {amount_text(getattr(history, name), history.decimals)}"
    yield f"starting_stacks = {amounts(history.stacks)}"
    yield f"actions = {_toml_value([action_text(action, history.decimals) for action in history.actions])}"
    if history.venue:
        yield f"venue = {_toml_string(history.venue)}"
    for key, value in history.other:
        yield f"{_toml_key(key)} = {_toml_value(value)}"
    for key in ("hand", "table"):
        if getattr(history, key):
            yield f"{key} = {_label_text(getattr(history, key))}"
    if history.seats:
        yield f"seats = {_toml_value(history.seats)}"
    if history.players:
        yield f"players = {_toml_value(history.players)}"
    if history.finishing_stacks:
        yield f"finishing_stacks = {amounts(history.finishing_stacks)}"
    if history.winnings:
        yield f"winnings = {amounts(history.winnings)}"


def history_text(history: History) -> str:
    """Return a hand as the text of a `.phh` file."""
    return "".join(f"{line}\n" for line in _history_lines(history))


def histories_text(histories: Iterable[History], first: int = 1) -> Iterator[str]:
    """Yield the text of a `.phhs` file, a table per hand, numbered from `first`."""
    for number, history in enumerate(histories, first):
        yield f"[{number}]\n{history_text(history)}\n"
