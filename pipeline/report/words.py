"""Actions, betting and positions in the words that players use, for the page and for the terminal.

In go the one-letter labels of a game (`f`, `c`, `r`; in no-limit games `s`, `h`, `p`, `o`, `a` for sizes of a raise)
and the betting texts made of them; out come phrases such as "after call, raise". One module, so that the page, the
pictures and the terminal call the same thing by the same name.
"""

from __future__ import annotations

__all__ = ["WORDS", "betting_words", "position_words", "situation_words"]

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

SIZES = {"r": "", "s": "small ", "h": "half-pot ", "p": "pot-size ", "o": "over-pot "}


def betting_words(text: str, *, preflop: bool) -> str:
    """The betting of one street in words: the first raise after the flop is a bet, a call of nothing a check.

    >>> betting_words("crrc", preflop=False)
    'check, bet, raise, call'
    >>> betting_words("cp", preflop=True)
    'call, pot-size raise'
    """
    said = []
    open_bet = preflop  # before the flop the big blind is the first bet
    for place, letter in enumerate(text.replace("-", "")):
        if letter == "f":
            said.append("fold")
        elif letter == "c":
            checks = not open_bet or (preflop and place > 0 and set(text[:place]) <= {"c"})
            said.append("check" if checks else "call")
        else:
            said.append("all in" if letter == "a" else SIZES.get(letter, "") + ("raise" if open_bet else "bet"))
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
