"""Text that poker sites let their players save, as hand histories: recognised, cut into hands, converted, checked.

`site_of` recognises a site by its first bytes; `site_sections` turns the bytes of some hands into the text of a PHH
file, which the same kernel reads as any other, and says where each hand was. PokerKit's parsers (the extra
`[histories]`) read the lines. What they lose is read here: who collected how much, and the rake that the text states,
by which the results of a hand are checked. What they would mend in silence (an action that is missing, antes, blinds
posted out of turn) is refused by name.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from pipeline.formats.histories.history import History, HistoryError
from pipeline.formats.histories.notation import MAX_SECTION, history_text, parse_history
from pipeline.runtime.extras import import_extra

_MARK = rb"^(?:\xef\xbb\xbf)?[ \t]*"
_STARTS = {
    "pokerstars": re.compile(_MARK + rb"PokerStars (?:[\w']+ ){0,3}(?:Hand|Game) #\d", re.M),
    "full_tilt_poker": re.compile(_MARK + rb"Full Tilt Poker Game #\d", re.M),
    "absolute_poker": re.compile(_MARK + rb"Stage #\d", re.M),
    "ipoker_network": re.compile(_MARK + rb'<game gamecode="', re.M),
    "ongame_network": re.compile(_MARK + rb"\*{5} History for hand ", re.M),
    "partypoker": re.compile(
        _MARK + rb"(?:Game #\d+ starts\.?\s{1,8}(?:#Game No : \d+\s{1,8})?)?\*{5} Hand History for Game \d", re.M
    ),
}
"""how a hand begins, by site"""
SITES = tuple(_STARTS)
_PARSERS = ("PokerStars", "FullTiltPoker", "AbsolutePoker", "IPokerNetwork", "OngameNetwork", "PartyPoker")
"""PokerKit's names, in the order of `SITES`"""
_UNREAD = {
    "GGPoker": re.compile(_MARK + rb"Poker Hand #\w", re.M),
    "Winamax": re.compile(_MARK + rb"Winamax Poker - ", re.M),
    "888poker": re.compile(_MARK + rb"(?:\*{5} 888|#Game No : \d+\s{1,8}\*{5} (?:888|Cassava|Pacific))", re.M),
    "the Winning Poker Network": re.compile(_MARK + rb"(?:Game )?Hand #\d+ - ", re.M),
    "Bovada": re.compile(_MARK + rb"(?:Bovada|Ignition|Bodog) Hand #", re.M),
    "Open Hand History": re.compile(rb'\{\s{0,64}"ohh"\s{0,8}:'),
}
_COLLECTED = {
    "pokerstars": re.compile(r"^(?P<player>.+) collected \D?(?P<won>[0-9.,]+) from (?:\w+ )?(?:side )?pot", re.M),
    "full_tilt_poker": re.compile(
        r"^(?P<player>.+?) (?:wins|ties for) (?:the )?(?:main |side )?pot(?: #?\d+)? \(\D?(?P<won>[0-9.,]+)\)", re.M
    ),
}
"""lines by which a player takes chips, where PokerKit looks at a summary in which positions follow the names"""
_RAKE = re.compile(r"\bRake(?: taken)?:? ?\(?[^\w\s(]{0,3}(?P<rake>[0-9][0-9.,]*)", re.I)
_REFUSED = (
    (re.compile(r"posts (?:the )?ante\b| - Ante ", re.I), "fields: antes, which are not read from this site's text"),
    (re.compile(r"posts (?:small & big|small and big|a dead|dead)\b", re.I), "fields: blinds posted out of turn"),
)
_AMOUNT = re.compile(rb"\d\.\d\d(?!\d)")
_lock = threading.Lock()
"""PokerKit warns, and warnings are switched off for all threads at once"""


class SiteHand(NamedTuple):
    """A hand in a site's text: where it is, and its PHH text or why it has none."""

    begin: int
    end: int
    text: str
    reason: str
    rake: int
    """in units as the text states it; -1 where it says nothing"""


def site_of(head: bytes) -> str | None:
    """Return which of `SITES` a file is from, by its first bytes; None for others."""
    return next((site for site, start in _STARTS.items() if start.search(head)), None)


def unread_site(head: bytes) -> str | None:
    """Return the name of a form of hand histories that is recognised, and not read; None for others."""
    return next((name for name, start in _UNREAD.items() if start.search(head)), None)


def site_decimals(data: bytes) -> int:
    """Return the digits after the point of one unit: 2 where amounts are in cents."""
    return 2 if _AMOUNT.search(data) else 0


def hand_starts(data: bytes, site: str) -> list[int]:
    """Return where the hands of a text begin."""
    return [match.start() for match in _STARTS[site].finditer(data)]


def site_sections(data: bytes, site: str, decimals: int) -> Iterator[SiteHand]:
    """Yield the hands of a text, in its order."""
    starts = hand_starts(data, site)
    for begin, end in zip(starts, [*starts[1:], len(data)], strict=True):
        text, reason, rake = "", "", -1
        try:
            history, rake = _convert(data[begin:end], site, decimals)
            text = history_text(history)
        except HistoryError as error:
            reason = str(error)
        yield SiteHand(begin, end, text, reason, rake)


def _convert(data: bytes, site: str, decimals: int) -> tuple[History, int]:
    """Return a hand of a site's text and the rake that it states; raise `HistoryError` for what cannot be read."""
    if len(data) > MAX_SECTION:
        raise HistoryError(f"grammar: longer than {MAX_SECTION:,} bytes")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    for pattern, reason in _REFUSED:
        if pattern.search(text):
            raise HistoryError(reason)
    parser = _parser(site)
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # not the public call, which prints a traceback for every hand that it cannot read
            parsed = parser._parse(text, _number)
            phh = parsed.dumps()
        except HistoryError:
            raise
        except Exception as error:  # of a library that stumbles over damaged text in many ways
            raise HistoryError(f"grammar: PokerKit cannot read it ({type(error).__name__})") from None
    history = parse_history(phh, decimals)
    taken = Counter(action.kind for action in history.actions if action.kind in ("f", "cc", "cbr"))
    if taken.total() != _count_actions(parser, text):
        raise HistoryError("betting: an action is missing or too much")
    won = _collected(text, site, history, decimals)
    if any(won):
        history = replace(history, winnings=won, finishing_stacks=())
    stated = _RAKE.search(text)
    return history, _units(stated["rake"], decimals) if stated else -1


def _parser(site: str) -> Any:
    """Return PokerKit's parser for a site."""
    notation = import_extra("pokerkit.notation")
    return getattr(notation, f"{_PARSERS[SITES.index(site)]}Parser")()


def _count_actions(parser: Any, text: str) -> int:
    """Return how many lines of a text say that somebody folds, checks, calls, bets or raises."""
    posts = parser.BLIND_OR_STRADDLE_POSTING
    kinds = parser.FOLDING, parser.CHECKING_OR_CALLING, parser.COMPLETION_BETTING_OR_RAISING
    dealt = parser.HOLE_DEALING, parser.BOARD_DEALING
    return sum(
        any(kind.search(line) for kind in kinds)
        for line in text.splitlines()
        if not posts.search(line) and not any(deal.search(line) for deal in dealt)
    )


def _collected(text: str, site: str, history: History, decimals: int) -> tuple[int, ...]:
    """Return what each player took out of the pot, as PokerKit has it where it looks at the right lines."""
    if site not in _COLLECTED:
        return history.winnings
    won = dict.fromkeys(history.names, 0)
    for match in _COLLECTED[site].finditer(text):
        if match["player"] in won:
            won[match["player"]] += _units(match["won"], decimals)
    return tuple(won.values())


def _number(text: str) -> Any:
    """Return an amount as PokerKit's parsers take it."""
    plain = text.rstrip(".,").replace(",", "")
    return int(plain) if plain.isdigit() else Decimal(plain)


def _units(text: str, decimals: int) -> int:
    """Return an amount in units; what is no amount is refused."""
    with suppress(InvalidOperation, ValueError, OverflowError):
        exact = Decimal(_number(text)).scaleb(decimals)
        if exact == int(exact):
            return int(exact)
    raise HistoryError("amounts: one is no number of the text's units")
