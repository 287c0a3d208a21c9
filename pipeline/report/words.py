"""Actions, betting and positions in the words that players use, for the page and for the terminal.

In go the one-letter labels of a game (`f`, `c`, `r`; in no-limit games `s`, `h`, `p`, `o`, `a` for sizes of a raise)
and the betting texts made of them; out come phrases such as "after call, raise". One module, so that the page, the
pictures and the terminal call the same thing by the same name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.dataset.decisions import STREETS

WORDS = {
    "f": "fold",
    "c": "call or check",
    "r": "raise or bet",
    "s": "raise small",
    "h": "raise half the pot",
    "p": "raise the pot",
    "o": "raise more than the pot",
    "a": "all in",
}
"""what each label means where it is not known whether there is a bet to call"""

SHORT = {"f": "fold", "c": "call", "r": "raise", "s": "small", "h": "half", "p": "pot", "o": "over", "a": "all in"}
"""the same for the heads of narrow columns"""

SIZES = {"r": "", "s": "small ", "h": "half-pot ", "p": "pot-size ", "o": "over-pot "}


def betting_words(text: str, *, preflop: bool, totals: Sequence[int] = ()) -> str:
    """The betting of one street in words: the first raise after the flop is a bet, a call of nothing a check.

    `totals` are the chips over the whole hand that its raises go to, where they are known.

    >>> betting_words("crrc", preflop=False)
    'check, bet, raise, call'
    >>> betting_words("cp", preflop=True)
    'call, pot-size raise'
    >>> betting_words("cp", preflop=True, totals=[300])
    'call, pot-size raise to 300'
    """
    said = []
    left = list(totals)
    open_bet = preflop  # before the flop the big blind is the first bet
    for place, letter in enumerate(text.replace("-", "")):
        if letter == "f":
            said.append("fold")
        elif letter == "c":
            checks = not open_bet or (preflop and place > 0 and set(text[:place]) <= {"c"})
            said.append("check" if checks else "call")
        else:
            to = f" to {left.pop(0):,}" if left else ""
            said.append(("all in" if letter == "a" else SIZES.get(letter, "") + ("raise" if open_bet else "bet")) + to)
            open_bet = True
    return ", ".join(said)


def situation_words(text: str, *, preflop: bool = True) -> str:
    """What a player faces on a street: `first to act`, or `after` the betting so far.

    >>> situation_words("-"), situation_words("cr")
    ('first to act', 'after call, raise')
    """
    return "first to act" if text in ("", "-") else f"after {betting_words(text, preflop=preflop)}"


def position_words(position: int, players: int, holdem: bool = True) -> str:
    """Where a player sits: heads-up hold'em has a big blind and a button, other games number their positions.

    >>> position_words(1, 2), position_words(2, 3)
    ('button', 'position 3')
    """
    return ("big blind", "button")[position] if players == 2 and holdem else f"position {position + 1}"


def line_words(texts: Sequence[str]) -> str:
    """The betting of several streets, from the first on, in words.

    >>> line_words(["rc", "-"])
    'preflop raise, call; flop nothing yet'
    """
    said = [betting_words(text, preflop=street == 0) or "nothing yet" for street, text in enumerate(texts)]
    return "; ".join(f"{STREETS[street]} {words}" for street, words in enumerate(said))


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


def feature_words(text: str) -> str:
    """A feature as training lists it, in words.

    >>> feature_words("betting=rrc/cr ehs(bins=6)=4")
    'preflop raise, raise, call; flop check, bet; expected strength 67–83 %'
    >>> feature_words("pattern=egaa")
    'suits: 2 board cards of the suited hole cards\u2019 suit'
    """
    found = TERM.findall(text)
    if not found:
        return text
    ranks = [value for name, _, value in found if name == "rank" and value != "-"]
    said = [_term_words(*term) for term in found if term[0] != "rank"]
    return "; ".join(filter(None, [*said, f"board {' '.join(ranks)}" if ranks else ""]))


def _term_words(name: str, arguments: str, value: str) -> str:
    """One column's value in words; what is not known stays as it is."""
    words = [word.strip() for word in arguments.split(",") if word.strip()]
    street = next((word for word in words if word in STREETS or word == "before"), "")
    cut = next((word.partition("=") for word in words if "=" in word), None)
    at = {"before": " on the street before", "": ""}.get(street, f" on the {street}")
    if name == "betting":
        return line_words(value.split("/"))
    if name == "word":
        return "" if value == "-" else f"{street} {betting_words(value, preflop=street == STREETS[0])}"
    if name in ("pattern", "flush"):
        return f"suits: {_suit_words(value)}"
    if name == "position":
        return position_words(int(value), 2) if value.isdigit() else value
    if name == "cluster":
        return f"strength cluster {value}{f' of {words[-1]}' if words else ''}{at}"
    if name in SHAPES:
        return f"one shape of the strength at the river, in {words[-1] if words else 'some'} steps{at}"
    said = STRENGTHS.get(name, "")
    if not said and name not in PLAIN:
        return f"{name}{f'({arguments})' if arguments else ''} {value}"
    if cut is not None and value.isdigit() and cut[2].isdigit():
        place, count = int(value), int(cut[2])
        if cut[0] == "quantiles":
            value = f"in the {place + 1}. of {count} equally frequent parts"
        elif said:
            value = f"{100 * place / count:.0f}–{100 * (place + 1) / count:.0f} %"
        else:
            value = f"in part {place + 1} of {count}"
    return f"{said}{at} {value}" if said else PLAIN[name].format(value) + at


def _suit_words(pattern: str) -> str:
    """A suit pattern of `pipeline.poker.cards` in words: how many board cards share the suits of the hole cards."""
    if pattern in ("a", "bc"):
        return "suited" if pattern == "a" else "of two suits"
    owners = {"a": "the suited hole cards’ suit", "b": "the high card’s suit", "c": "the low card’s suit"}
    said = []
    for letter, owner in owners.items():
        count = pattern.count(letter)
        if count:
            said.append(f"{count} board card{'s' if count > 1 else ''} of {owner}")
    others = max((pattern.count(letter) for letter in "egi"), default=0)
    if others > 2 or (others == 2 and not said):
        said.append(f"{others} of one other suit")
    return ", ".join(said) or "no flush possible"


HEAVY = 0.5
"""share of the heaviest weight from which a column is named in the sentence"""
QUANTILES = (10, 30, 50, 70, 90)
STRENGTH_COLUMNS = {"ihs": "strength now", "ehs": "expected strength", "ehs2": "expected square of strength"}
COLUMN = re.compile(r"(\w+?)(?:\((.*)\))?")


def _read_column(shown: str, street: str) -> tuple[str, str]:
    """What kind of measure a column is, seen from a street, and which one of its kind."""
    found = COLUMN.fullmatch(shown)
    name, inside = (found[1], found[2] or "") if found else (shown, "")
    words = [word.strip() for word in inside.split(",") if word.strip()]
    other = next((word for word in words if not word.isdigit() and word != street), "")
    seen = {"": "", "preflop": " (before the flop)"}.get(other, f" (on the {other})")
    part = next((int(word) for word in words if word.isdigit()), 0)
    if name == "river_quantile":
        return f"quantile of river strength{seen}", f"{QUANTILES[part - 1]} %"
    if name == "river_octile":
        return f"eighth of river strength{seen}", f"{part}."
    if name == "ochs":
        return "strength against a group of hands", f"{part}."
    return STRENGTH_COLUMNS.get(name, name) + seen, ""


def column_words(shown: str, street: str) -> str:
    """A column of hands in words, as seen on a street.

    >>> column_words("river_quantile(flop, 3)", "flop"), column_words("ehs(turn)", "river")
    ('50 % quantile of river strength', 'expected strength (on the turn)')
    """
    kind, which = _read_column(shown, street)
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
    phrases = [f"{_joined(sorted(which, key=_number))} {kind}".strip() for kind, which in kinds.items()]
    return f"On the {street} it tells hands apart by {'; '.join(phrases)}."


def _number(which: str) -> int:
    return int(re.sub(r"\D", "", which) or 0)


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
