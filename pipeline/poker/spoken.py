"""Actions, positions and hands in the words that players use: bets and raises, names with kickers, wrapped lines.

The protocol writes a raise as a total over the whole hand; at a table one bets or raises on a street. `on_street` and
`over_hand` go from one to the other. `wrap_items` breaks lines between items, so that a narrow terminal does not
break them in the middle of a word.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import RANKS, hand_name, hand_names, name_text, ranking
from pipeline.poker.game import State, actions
from pipeline.poker.rules import CALL, FOLD, S_RAISES

KICKERS = {"Pair of": 3, "Two Pair": 1, "Three of": 2, "Four of": 1}
"""cards of the five that the name of the hand leaves out"""
PLURALS = [name.removeprefix("Pair of ") for name in hand_names() if name.startswith("Pair of ")]
"""the ranks as names of hands have them, twos first"""


def spent_before(state: State) -> int:
    """Return what a player who is still in has put in before this street; on the first one its ante, if it posts one.

    >>> from pipeline.poker.game import builtin
    >>> flop = builtin("holdem.nolimit.2p.reverse_blinds").start().apply(2, 300).apply(1)
    >>> spent_before(flop), on_street(flop, 900), over_hand(flop, 600)
    (300, 600, 900)
    """
    if state.round == 0:
        blinds = state.game.blinds
        return blinds[0] if len(set(blinds)) == 1 else 0
    before = state.game.start()
    for action, size in actions("".join(state.rounds[:-1])):
        before = before.apply(action, size)
    return max(before.spent)


def on_street(state: State, total: int) -> int:
    """Convert a total over the whole hand to an amount of this street."""
    return total - spent_before(state)


def over_hand(state: State, amount: int) -> int:
    """Convert an amount of this street to a total over the whole hand."""
    return amount + spent_before(state)


def is_bet(state: State) -> bool:
    """Return whether a raise would be the first chips of its street: a bet."""
    blinds = state.round == 0 and len(set(state.game.blinds)) > 1
    return int(state.vector[S_RAISES]) == 0 and state.to_call == 0 and not blinds


def action_words(state: State, action: int, size: int) -> tuple[str, str]:
    """Return an action in the words of a table: the verb and the rest.

    >>> from pipeline.poker.game import builtin
    >>> flop = builtin("holdem.nolimit.2p.reverse_blinds").start().apply(2, 300).apply(1)
    >>> action_words(flop, 2, 900), action_words(flop.apply(2, 900), 2, 20000), action_words(flop, 1, 0)
    (('bet', ' 600'), ('raise', ' to 19,700, all-in'), ('check', ''))
    """
    if action == FOLD:
        return "fold", ""
    if action == CALL:
        return ("call", f" {state.to_call:,}") if state.to_call else ("check", "")
    total = size if state.game.nolimit else state.raise_range[0]
    all_in = ", all-in" if total == state.game.stacks[state.actor] else ""
    amount = f"{on_street(state, total):,}{all_in}"
    return ("bet", f" {amount}") if is_bet(state) else ("raise", f" to {amount}")


def sentence(who: str, verb: str, rest: str) -> str:
    """Make a sentence about a player, who may be `you`."""
    return f"you {verb}{rest}" if who == "you" else f"{who} {verb}{'es' if verb.endswith('s') else 's'}{rest}"


def position_words(position: int, players: int, holdem: bool = True) -> str:
    """Name a position: heads-up hold'em has a big blind and a button, other games number their positions.

    >>> position_words(1, 2), position_words(2, 3)
    ('button', 'position 3')
    """
    return ("big blind", "button")[position] if players == 2 and holdem else f"position {position + 1}"


def name_with_kickers(hole: npt.NDArray[np.uint8], board: npt.NDArray[np.uint8]) -> str:
    """Return the name of the best five cards of a hold'em hand, with the kickers that decide between equal names.

    >>> from pipeline.poker.cards import parse_cards
    >>> name_with_kickers(parse_cards("AsKd"), parse_cards("Ah7c5d9s2c"))
    'Pair of Aces, kickers K 9 7'
    >>> name_with_kickers(parse_cards("AsKs"), parse_cards("2s7s9s"))
    'Ace-High Flush, with K 9 7 2'
    """
    name = name_text(hand_name(hole, board, len(board), ranking()))
    cards = [int(card) for card in (*hole, *board)]
    if "Flush" in name and "Straight" not in name and "Royal" not in name:
        suits = [card & 3 for card in cards]
        mine = sorted((card >> 2 for card in cards if suits.count(card & 3) >= 5), reverse=True)[1:5]
        return f"{name}, with {_ranks(mine)}"
    if name.endswith(" High"):
        return f"{name}, with {_ranks(sorted((card >> 2 for card in cards), reverse=True)[1:5])}"
    count = next((count for start, count in KICKERS.items() if name.startswith(start)), 0)
    if count == 0:
        return name
    named = {rank for rank, plural in enumerate(PLURALS) if plural in name.split(" ") or f"{plural}," in name}
    left = sorted({card >> 2 for card in cards} - named, reverse=True)[: min(count, len(cards) - 2)]
    return f"{name}, kicker{'s' if len(left) > 1 else ''} {_ranks(left)}"


def _ranks(ranks: Sequence[int]) -> str:
    return " ".join(RANKS[rank] for rank in ranks)


def wrap_items(items: Iterable[str], width: int, indent: str = "   ", gap: str = "   ") -> str:
    """Put items side by side, as many in a line as `width` columns hold; each line begins with `indent`.

    An item that alone is too wide is broken between its words.

    >>> print(wrap_items(["one", "two", "three"], 14))
       one   two
       three
    """
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(gap) + len(item) <= width:
            lines[-1] += gap + item
        elif len(indent) + len(item) <= width:
            lines.append(indent + item)
        else:
            lines += [indent + part for part in textwrap.wrap(item, max(width - len(indent), 10))]
    return "\n".join(lines)
