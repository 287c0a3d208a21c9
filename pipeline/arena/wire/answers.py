"""Read a player's answer as the official dealer does: a match state, compared as a state, and an action after it.

An answer need not repeat the line that was sent. It is to the state asked about when position, hand, betting, the
player's own cards and the board are the same, however they are written: `MATCHSTATE:00:+7:k:asks` is
`MATCHSTATE:0:7:c:AsKs|`. The rules are those of the dealer of the ACPC, found by asking it: separators may be missing
in the betting and the cards; `k` is a call, `b` a raise, letters may be capitals; blanks and a sign may stand before a
number. What follows the state is an action only behind a colon; everything else there, a surplus `/` or `|` too, is a
bad action, which becomes a call. A raise out of range is moved into it.

On purpose one thing differs: numbers keep their value. The official dealer reads them into 8 or 32 bits, where position
256 is 0 and a raise to 4,294,967,596 is one to 300 (which C leaves undefined); here the one is another player's answer
and the other becomes the largest raise.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.poker.game import State
from pipeline.poker.rules import CALL, FOLD, RAISE

_NUMBER = rb"\s*([+-]?)0*(\d{1,18})"
_HEAD = re.compile(rb"MATCHSTATE:%b:%b:([^:]*):" % (_NUMBER, _NUMBER))
_CARDS = re.compile(rb"(?:[2-9TJQKAtjqka][cdhsCDHS])*")
_BETTING = {
    # by whether raises carry a size; what is no action is the last alternative
    False: re.compile(rb"([fFcCkKrRbB])|[^/]"),
    True: re.compile(rb"([fFcCkK])|[rRbB]%b|[^/]" % _NUMBER),
}
_ACTION = {False: re.compile(rb":([fFcCkKrRbB])"), True: re.compile(rb":([fFcCkK])|:[rRbB]%b" % _NUMBER)}
_LETTERS = {**dict.fromkeys("fF", FOLD), **dict.fromkeys("cCkK", CALL), **dict.fromkeys("rRbB", RAISE)}


class _ReadState(NamedTuple):
    """A match state as an answer has it: what must be equal, and where it ends."""

    asked: tuple[int, int, list[tuple[int, int] | None], bytes, bytes]
    """position, hand, betting, the player's cards and the board"""
    end: int


def _read_betting(text: bytes, nolimit: bool) -> list[tuple[int, int] | None]:
    """Return the actions and sizes of a betting string, wherever its `/` are; None for what is no action."""
    found: list[tuple[int, int] | None] = []
    for part in _BETTING[nolimit].finditer(text):
        if part[1]:
            found.append((_LETTERS[part[1].decode()], 0))
        else:
            found.append((RAISE, int(part[2] + part[3])) if nolimit and part[3] else None)
    return found


def _read_state(line: bytes, state: State) -> _ReadState | None:
    """Return the match state that a line begins with, with a board of `state`'s street; None if there is none."""
    head = _HEAD.match(line)
    game = state.game
    if not head or not 0 <= (position := int(head[1] + head[2])) < game.players:
        return None
    streets = game.board_cards[: state.round + 1]
    cards, end = [], head.end()
    for index, count in enumerate((*(game.hole_cards,) * game.players, *streets)):
        is_board = index >= game.players
        if index not in (0, game.players) and line[end : end + 1] == (b"/" if is_board else b"|"):
            end += 1
        text = _CARDS.match(line, end, end + 2 * count)
        assert text is not None  # no card is a match too
        if len(text[0]) != 2 * count and (text[0] or is_board):
            return None
        cards.append(text[0].lower())
        end = text.end()
    betting = _read_betting(head[5], game.nolimit)
    hand = int(head[3] + head[4])
    return _ReadState((position, hand, betting, cards[position], b"".join(cards[game.players :])), end)


def after_state(line: bytes, asked: bytes, state: State) -> bytes | None:
    """Return what an answer adds to the state it answers; None if that is not the state asked about.

    Parameters: `line` as it came, without its line end; `asked`, the line that the player was sent; `state`, the
    betting of that line.
    """
    if line.startswith(asked) and line[len(asked) : len(asked) + 1] == b":":  # as sent, which is nearly always so
        return line[len(asked) :]
    answered, wanted = _read_state(line, state), _read_state(asked, state)
    return line[answered.end :] if answered and wanted and answered.asked == wanted.asked else None


class ParsedAnswer(NamedTuple):
    """The legal action that an answer comes to, and what had to be changed."""

    action: int
    size: int = 0
    warning: str = ""


def parse_answer(answer: bytes, state: State) -> ParsedAnswer:
    """Read the action after the state in an answer; what is not legal is changed as the official dealer does."""
    nolimit = state.game.nolimit
    parts = _ACTION[nolimit].match(answer)
    if not parts:
        return ParsedAnswer(CALL, warning=f"bad action {answer[:40]!r} changed to call")
    action = _LETTERS[parts[1].decode()] if parts[1] else RAISE
    size = int(parts[2] + parts[3]) if action == RAISE and nolimit else 0
    if state.is_legal(action, size):
        return ParsedAnswer(action, size)
    low, high = state.raise_range
    if action == RAISE and high > 0:
        nearest_size = min(max(size, low), high)
        return ParsedAnswer(RAISE, nearest_size, f"raise to {size} changed to {nearest_size}")
    return ParsedAnswer(CALL, warning=f"illegal action {answer[1:40]!r} changed to call")
