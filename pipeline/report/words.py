"""Put actions, betting and features in the words that players use, for the page and for the terminal.

In go the one-letter labels of a game (`f`, `c`, `r`; in no-limit games `s`, `h`, `p`, `o`, `a` for sizes of a raise)
and the betting texts made of them; out come phrases such as "after call, raise".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.dataset.decisions import STREETS
from pipeline.poker.spoken import position_words

WORDS = {
    "f": "fold",
    "c": "call or check",
    "r": "raise or bet",
    "s": "raise about 25 % of the pot",
    "h": "raise about 50 %",
    "p": "raise about 100 %",
    "o": "raise about 200 %",
    "a": "all in",
}
"""meaning of each label where it is not known whether there is a bet to call"""

SHORT = {"f": "fold", "c": "call", "r": "raise", "s": "25 %", "h": "50 %", "p": "100 %", "o": "200 %", "a": "all in"}
"""the same for the heads of narrow columns"""

SIZES = {"s": " about 25 %", "h": " about 50 %", "p": " about 100 %", "o": " about 200 %"}
"""the share of the pot that a raise of each class is near, where its amount is not known"""


def betting_words(text: str, *, preflop: bool, totals: Sequence[int] = ()) -> str:
    """Describe the betting of one street: the first raise after the flop is a bet, a call of nothing a check.

    `totals` are the chips over the whole hand that its raises go to, where they are known.

    >>> betting_words("crrc", preflop=False)
    'check, bet, raise, call'
    >>> betting_words("cp", preflop=True)
    'call, raise about 100 %'
    >>> betting_words("cp", preflop=True, totals=[300])
    'call, raise to 300'
    """
    phrases = []
    next_totals = list(totals)
    open_bet = preflop  # before the flop the big blind is the first bet
    for place, letter in enumerate(text.replace("-", "")):
        if letter == "f":
            phrases.append("fold")
        elif letter == "c":
            checks = not open_bet or (preflop and place > 0 and set(text[:place]) <= {"c"})
            phrases.append("check" if checks else "call")
        else:
            size = f" to {next_totals.pop(0):,}" if next_totals else SIZES.get(letter, "")
            phrases.append(("all in" if letter == "a" else "raise" if open_bet else "bet") + size)
            open_bet = True
    return ", ".join(phrases)


def situation_words(text: str, *, preflop: bool = True) -> str:
    """Describe the situation of a player on a street: `first to act`, or `after` the betting so far.

    >>> situation_words("-"), situation_words("cr")
    ('first to act', 'after call, raise')
    """
    return "first to act" if text in ("", "-") else f"after {betting_words(text, preflop=preflop)}"


def line_words(texts: Sequence[str]) -> str:
    """Describe the betting of several streets, from the first on.

    >>> line_words(["rc", "-"])
    'preflop raise, call; flop nothing yet'
    """
    phrases = [betting_words(text, preflop=street == 0) or "nothing yet" for street, text in enumerate(texts)]
    return "; ".join(f"{STREETS[street]} {words}" for street, words in enumerate(phrases))


TERM = re.compile(r"(\w+)(?:\(([^)]*)\))?=(.*?)(?=\s\w+(?:\([^)]*\))?=|$)")
"""one term of a feature's text: column, arguments, value"""
PLAIN = {
    "street": "{}",
    "players": "{} players",
    "bets": "{} raises in the hand",
    "raises": "{} raises on the street",
    "to_call": "{} to call",
    "pot": "pot {}",
    "stack": "stack {}",
    "odds": "pot odds {}",
    "legal": "legal actions {}",
    "previous": "own last action {}",
    "high": "high card {}",
    "low": "low card {}",
    "start": "hand {}",
    "ranks": "board {}",
    "name": "{}",
}
STRENGTHS = {
    "ihs": "strength now",
    "ehs": "expected strength",
    "ehs2": "expected squared strength",
    "eighth": "an eighth of the strengths at the river",
    "fifth": "a fifth of the strengths at the river",
    "ochs": "strength against a group of hands",
}
SHAPES = {"shape", "fifths", "river_octiles", "river_quantiles"}


def feature_words(text: str, players: int = 2) -> str:
    """Describe a feature as training lists it, of a game for so many players.

    >>> feature_words("betting=rrc/cr ehs(bins=6)=4")
    'preflop raise, raise, call; flop check, bet; expected strength 67–83 %'
    >>> feature_words("pattern=egaa")
    'suits: 2 board cards of the suited hole cards\u2019 suit'
    >>> feature_words("position=2 high=12", players=3)
    'position 3; high card 12'
    """
    terms = TERM.findall(text)
    if not terms:
        return text
    ranks = [value for name, _, value in terms if name == "rank" and value != "-"]
    phrases = [_term_words(name, arguments, value, players) for name, arguments, value in terms if name != "rank"]
    return "; ".join(filter(None, [*phrases, f"board {' '.join(ranks)}" if ranks else ""]))


def _term_words(name: str, arguments: str, value: str, players: int) -> str:
    """Describe one column's value; leave an unknown column as it is."""
    words = [word.strip() for word in arguments.split(",") if word.strip()]
    street = next((word for word in words if word in STREETS or word == "before"), "")
    cut = next((word.partition("=") for word in words if "=" in word), None)
    where = {"before": " on the street before", "": ""}.get(street, f" on the {street}")
    if name == "betting":
        return line_words(value.split("/"))
    if name == "word":
        return "" if value == "-" else f"{street} {betting_words(value, preflop=street == STREETS[0])}"
    if name in ("pattern", "flush"):
        return f"suits: {_suit_words(value)}"
    if name == "position":
        return position_words(int(value), players) if value.isdigit() else value
    if name == "cluster":
        return f"strength cluster {value}{f' of {words[-1]}' if words else ''}{where}"
    if name in SHAPES:
        return f"one shape of the strength at the river, in {words[-1] if words else 'some'} steps{where}"
    measure = STRENGTHS.get(name, "")
    if not measure and name not in PLAIN:
        return f"{name}{f'({arguments})' if arguments else ''} {value}"
    if cut is not None and value.isdigit() and cut[2].isdigit():
        place, count = int(value), int(cut[2])
        if cut[0] == "quantiles":
            value = f"in the {place + 1}. of {count} equally frequent parts"
        elif measure:
            value = f"{100 * place / count:.0f}–{100 * (place + 1) / count:.0f} %"
        else:
            value = f"in part {place + 1} of {count}"
    return f"{measure}{where} {value}" if measure else PLAIN[name].format(value) + where


def _suit_words(pattern: str) -> str:
    """Describe a suit pattern of `pipeline.poker.cards`: how many board cards share the suits of the hole cards."""
    if pattern in ("a", "bc"):
        return "suited" if pattern == "a" else "of two suits"
    owners = {"a": "the suited hole cards’ suit", "b": "the high card’s suit", "c": "the low card’s suit"}
    phrases = []
    for letter, owner in owners.items():
        count = pattern.count(letter)
        if count:
            phrases.append(f"{count} board card{'s' if count > 1 else ''} of {owner}")
    others = max((pattern.count(letter) for letter in "egi"), default=0)
    if others > 2 or (others == 2 and not phrases):
        phrases.append(f"{others} of one other suit")
    return ", ".join(phrases) or "no flush possible"


HEAVY = 0.5
"""share of the heaviest weight from which a column is named in the sentence"""
QUANTILES = (10, 30, 50, 70, 90)
STRENGTH_COLUMNS = {"ihs": "strength now", "ehs": "expected strength", "ehs2": "expected square of strength"}
COLUMN = re.compile(r"(\w+?)(?:\((.*)\))?")


def _read_column(column: str, street: str) -> tuple[str, str]:
    """Return the kind of measure that a column is, seen from a street, and which one of its kind."""
    match = COLUMN.fullmatch(column)
    name, inside = (match[1], match[2] or "") if match else (column, "")
    words = [word.strip() for word in inside.split(",") if word.strip()]
    other = next((word for word in words if not word.isdigit() and word != street), "")
    street_note = {"": "", "preflop": " (before the flop)"}.get(other, f" (on the {other})")
    part = next((int(word) for word in words if word.isdigit()), 0)
    if name == "river_quantile":
        return f"quantile of river strength{street_note}", f"{QUANTILES[part - 1]} %"
    if name == "river_octile":
        return f"eighth of river strength{street_note}", f"{part}."
    if name == "ochs":
        return "strength against a group of hands", f"{part}."
    return STRENGTH_COLUMNS.get(name, name) + street_note, ""


def column_words(column: str, street: str) -> str:
    """Describe a column of hands, as seen on a street.

    >>> column_words("river_quantile(flop, 3)", "flop"), column_words("ehs(turn)", "river")
    ('50 % quantile of river strength', 'expected strength (on the turn)')
    """
    kind, which = _read_column(column, street)
    return f"{which} {kind}" if which else kind


def looks_words(weights: Sequence[tuple[str, float]], street: str) -> str:
    """Return a sentence on which columns tell hands apart on a street; those of a kind together.

    >>> looks_words([("river_quantile(flop, 5)", 1.0), ("ehs(flop)", 0.7), ("ihs(flop)", 0.1)], "flop")
    'On the flop it tells hands apart by 90 % quantile of river strength; expected strength.'
    """
    kinds: dict[str, list[str]] = {}
    for name, share in weights:
        if share >= HEAVY:
            kind, which = _read_column(name, street)
            kinds.setdefault(kind, []).append(which)
    phrases = [f"{_enumerate_words(sorted(which, key=_number))} {kind}".strip() for kind, which in kinds.items()]
    return f"On the {street} it tells hands apart by {'; '.join(phrases)}."


def _number(which: str) -> int:
    return int(re.sub(r"\D", "", which) or 0)


def _enumerate_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
