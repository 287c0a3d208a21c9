"""`History` in, text of a poker hand history out: the inverse of `notation`.

The text is in the form of the public collections, so the byte kernel and PokerKit read it: `parse_history` of what
`history_text` writes is the same `History`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from pipeline.formats.histories.history import Action, History
from pipeline.runtime.errors import PipelineError


def amount_text(units: int | None, decimals: int) -> str:
    """An amount in units as PHH writes it.

    >>> amount_text(2050, 2), amount_text(700, 2), amount_text(None, 2)
    ('20.5', '7', 'inf')
    """
    if units is None:
        return "inf"
    sign = "-" if units < 0 else ""
    whole, part = divmod(abs(units), 10**decimals)
    return f"{sign}{whole}.{part:0{decimals}d}".rstrip("0").rstrip(".") if part else f"{sign}{whole}"


def action_text(action: Action, decimals: int) -> str:
    """One entry of `actions`.

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


def _quoted(text: str) -> str:
    """Text as a TOML string."""
    if text.isascii() and text.isprintable() and "'" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    """Any TOML value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
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
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_name(key)} = {_value(entry)}" for key, entry in value.items()) + "}"
    raise PipelineError(f"{value!r} cannot be written as TOML")


def _name(key: str) -> str:
    """A key as TOML writes it."""
    plain = key and key.isascii() and all(letter.isalnum() or letter in "-_" for letter in key)
    return key if plain else json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f")


def _label(text: str) -> str:
    """The name of a table or hand: a number where it is one."""
    number = text.isascii() and text.isdigit() and len(text) < 18 and str(int(text)) == text
    return text if number else _quoted(text)


def _lines(history: History) -> Iterator[str]:
    """The lines of a hand."""

    def amounts(units: Iterable[int | None]) -> str:
        return f"[{', '.join(amount_text(unit, history.decimals) for unit in units)}]"

    yield f"variant = '{history.variant}'"
    yield f"ante_trimming_status = {_value(history.trimmed)}"
    yield f"antes = {amounts(history.antes)}"
    yield f"blinds_or_straddles = {amounts(history.blinds)}"
    for name in ("min_bet",) if history.nolimit else ("small_bet", "big_bet"):
        yield f"{name} = {amount_text(getattr(history, name), history.decimals)}"
    yield f"starting_stacks = {amounts(history.stacks)}"
    yield f"actions = {_value([action_text(action, history.decimals) for action in history.actions])}"
    if history.venue:
        yield f"venue = {_quoted(history.venue)}"
    for key, value in history.other:
        yield f"{_name(key)} = {_value(value)}"
    for key in ("hand", "table"):
        if getattr(history, key):
            yield f"{key} = {_label(getattr(history, key))}"
    if history.seats:
        yield f"seats = {_value(history.seats)}"
    if history.players:
        yield f"players = {_value(history.players)}"
    if history.finishing_stacks:
        yield f"finishing_stacks = {amounts(history.finishing_stacks)}"
    if history.winnings:
        yield f"winnings = {amounts(history.winnings)}"


def history_text(history: History) -> str:
    """A hand as the text of a `.phh` file."""
    return "".join(f"{line}\n" for line in _lines(history))


def histories_text(histories: Iterable[History], first: int = 1) -> Iterator[str]:
    """Hands as the text of a `.phhs` file, a table each, numbered from `first`."""
    for number, history in enumerate(histories, first):
        yield f"[{number}]\n{history_text(history)}\n"
