"""Hand histories on their way to rows: played hands in, the same `ScannedHands` as those of ACPC lines out.

`pipeline.formats.histories` reads and plays the text. Here each hand gets what rows need beside that: its line, the
line-up of its players, the deal it belongs to, and its betting, cards and results written in the letters of ACPC logs,
so that the table of hands has one form for both. The hands of a piece make one group per variant; each hand keeps its
own rules.

All no-limit hands are of one game, `holdem.nolimit.histories`, and all fixed-limit hands of another: the number of
players, stacks, blinds and antes are each hand's own and stand in its rows, amounts in units of the source.

The deal of a hand is the hash of all hole cards where they are known; else of venue, table and hand number; else of the
file and the hand's place in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pipeline.dataset.decisions import MOST_ACTIONS, OBSERVATION, deal_hash, observe_actions
from pipeline.formats.ascii import BAR, LOW_C, LOW_F, LOW_R, MINUS, NEWLINE, POINT, SLASH, ZERO
from pipeline.formats.histories.history import MOST_HISTORY_PLAYERS
from pipeline.formats.histories.notation import amount_text
from pipeline.formats.histories.packing import ANTES, BLINDS, STACKS, UNKNOWN
from pipeline.formats.histories.scan import HandArrays, Refused, ScannedHistories, scan_histories
from pipeline.formats.histories.sites import SiteHand, site_sections
from pipeline.ingestion.hand_buffers import HAND, HandBuffer
from pipeline.ingestion.hands import LogMatch, ScannedHands
from pipeline.ingestion.scan import REJECTED
from pipeline.poker.cards import NO_CARD, RANKS, SUITS, Ranking, ranking
from pipeline.poker.game import Game, parse_game
from pipeline.poker.rules import CALL, FOLD, NO_STACK, R_BIG_BLIND, R_NOLIMIT, R_PLAYERS, R_STACK, RAISE, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

# The texts of a hand, in this order
BETTING, CARDS, PAYOFFS, STACKS_TEXT, BLINDS_TEXT, ANTES_TEXT = range(6)
TEXTS = 6
_NUMBER = re.compile(
    rb"""^hand[ \t]*=[ \t]*(?:'([^'\r\n]{1,128})'|"([^"\\\r\n]{1,128})"|(\d{1,128})[ \t]*\r?$)""", re.M
)
"""a hand's number or name, in text of which anything else may be wrong"""
_CARDS = np.frombuffer("".join(rank + suit for rank in RANKS for suit in SUITS).encode(), dtype=np.uint8)


@dataclass
class HistoryFacts:
    """Columns of the table of hands that only histories have; a row per hand."""

    rules: Array
    """(hands, RULES_SIZE)"""
    spans: Array
    """(hands, TEXTS, 2): where the texts are in the bytes of the `ScannedHands`"""
    labels: Array
    """(hands, 3, 2): where venue, table and hand number are in `text`"""
    text: Array
    rake: Array
    partial: Array
    flagged: Array
    shown: Array
    settled: Array
    """whether anybody knows who won"""
    decimals: int


@cache
def history_game(nolimit: bool) -> Game:
    """Return the game that stands for all hands of histories of a variant."""
    players = MOST_HISTORY_PLAYERS
    sizes = "" if nolimit else "raiseSize = 100 100 200 200\nmaxRaises = 4 4 4 4\n"
    text = (
        f"# hands of histories: players, stacks, blinds and antes are each hand's own\n"
        f"GAMEDEF\n{'nolimit' if nolimit else 'limit'}\nnumPlayers = {players}\nnumRounds = 4\n"
        f"blind = 50 100{' 0' * (players - 2)}\nfirstPlayer = 3 1 1 1\n{sizes}"
        "numSuits = 4\nnumRanks = 13\nnumHoleCards = 2\nnumBoardCards = 0 3 1 1\nEND GAMEDEF\n"
    )
    return parse_game(text, f"holdem.{'nolimit' if nolimit else 'limit'}.histories")


@kernel(leaf=True)
def _write_digits(value: int, out: Array, end: int) -> int:
    """Write a whole number at `end`; return where it ends."""
    if value < 0:
        out[end] = MINUS
        end += 1
        value = -value
    count = 1
    rest = value
    while rest >= 10:
        rest //= 10
        count += 1
    for i in range(count - 1, -1, -1):
        out[end + i] = ZERO + value % 10
        value //= 10
    return end + count


@kernel(leaf=True)
def _write_chips(value: float, out: Array, end: int) -> int:
    """Write a net result with two decimals where it is no whole number; return where it ends."""
    hundredths = int(np.rint(value * 100))  # shares of a split pot are no whole units
    whole = abs(hundredths) // 100
    if hundredths < 0:
        out[end] = MINUS
        end += 1
    end = _write_digits(whole, out, end)
    part = abs(hundredths) % 100
    if part != 0:
        out[end] = POINT
        out[end + 1] = ZERO + part // 10
        out[end + 2] = ZERO + part % 10
        end += 3
    return end


@kernel(leaf=True)
def _write_amounts(values: Array, n: int, out: Array, end: int) -> int:
    """Write amounts between bars, `inf` for those that are not known; return where they end."""
    for p in range(n):
        if p > 0:
            out[end] = BAR
            end += 1
        if values[p] == NO_STACK:
            out[end], out[end + 1], out[end + 2] = 105, 110, 102  # inf
            end += 3
        else:
            end = _write_digits(values[p], out, end)
    return end


@kernel(leaf=True)
def _write_texts(arrays: HandArrays, buffer: HandBuffer, letters: Array, out: Array, spans: Array) -> None:
    """Write the texts of all hands one after the other, and note where each is."""
    records, rules, chips = arrays.records, arrays.rules, arrays.chips
    end = 0
    for i in range(records.shape[0]):
        n = rules[i, R_PLAYERS]
        spans[i, BETTING, 0] = end
        street = 0
        for k in range(records[i].first, records[i].first + records[i].count):
            place = buffer.places[k]
            while street < (place >> 2) & 3:
                out[end] = SLASH
                end += 1
                street += 1
            action = place & 3
            out[end] = LOW_F if action == FOLD else LOW_C if action == CALL else LOW_R
            end += 1
            if action == RAISE and rules[i, R_NOLIMIT] != 0:
                end = _write_digits(buffer.totals[k] + 0, out, end)
        spans[i, BETTING, 1] = end
        spans[i, CARDS, 0] = end
        for p in range(n):
            if p > 0:
                out[end] = BAR
                end += 1
            for c in range(2):
                card = buffer.holes[i, p, c]
                if card != NO_CARD:
                    out[end], out[end + 1] = letters[2 * card], letters[2 * card + 1]
                    end += 2
        for c in range(5):
            card = buffer.boards[i, c]
            if card != NO_CARD:
                if c == 0 or c >= 3:
                    out[end] = SLASH
                    end += 1
                out[end], out[end + 1] = letters[2 * card], letters[2 * card + 1]
                end += 2
        spans[i, CARDS, 1] = end
        spans[i, PAYOFFS, 0] = end
        if records[i].source != UNKNOWN:
            for p in range(n):
                if p > 0:
                    out[end] = BAR
                    end += 1
                end = _write_chips(buffer.paid[i, p], out, end)
        spans[i, PAYOFFS, 1] = end
        for which in range(3):
            spans[i, STACKS_TEXT + which, 0] = end
            end = _write_amounts(chips[i, STACKS - which], n, out, end)
            spans[i, STACKS_TEXT + which, 1] = end


@kernel(leaf=True)
def _hash_deals(rules: Array, holes: Array, places: Array, numbers: Array, seed: int, deals: Array) -> None:
    """Fill in the hash that identifies each hand's deal."""
    for i in range(deals.shape[0]):
        # People's cards are mostly hidden: then the hand itself must be its deal, or all would share one hash
        all_known = True
        for p in range(rules[i, R_PLAYERS]):
            all_known = all_known and holes[i, p, 0] != NO_CARD
        if all_known:
            deals[i] = deal_hash(rules[i], holes[i], seed, 0)
        elif places[i] != 0:
            deals[i] = hash64(places[i])
        else:
            deals[i] = hash64(hash64(np.uint64(seed)) ^ np.uint64(numbers[i]))


@kernel
def _fill_rows(rules: Array, buffer: HandBuffer, tables: Ranking) -> None:
    """Write the decisions of all hands to the buffer; raises of limit hands become the totals that they go to."""
    moves = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    sizes = np.zeros(MOST_ACTIONS, dtype=np.int64)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    for i in range(buffer.records.shape[0]):
        first, count = buffer.records[i].first, buffer.records[i].count
        for k in range(count):
            moves[k] = buffer.places[first + k] & 3
            sizes[k] = buffer.totals[first + k] if rules[i, R_NOLIMIT] != 0 else 0
        rows, labels = buffer.rows[first:], buffer.labels[first:]
        observe_actions(rules[i], moves, sizes, count, buffer.holes[i], buffer.boards[i], tables, state, rows, labels)
        for k in range(count):
            buffer.totals[first + k] = sizes[k]


def _lines(data: Array, begins: Array, first_line: int, site: str = "") -> Array:
    """Return the line on which each section begins (its header's, if it has one, as in all text but a site's)."""
    newlines = np.flatnonzero(data == NEWLINE)
    return first_line + np.maximum(np.searchsorted(newlines, begins) - ((begins > 0) & (not site)), 0)


def scan_history_piece(
    data: Array, first_line: int, decimals: int, seed: int, site: str = ""
) -> tuple[list[ScannedHands], list[str], Array, list[str]]:
    """Read and play the hands of a piece of a history file.

    Parameters: its bytes (uint8), its first line's number, the digits after the point of one unit, a seed for the deals
    of hands that have no number, the poker site if the text is of one.

    Returns the hands by variant, the line-ups (one per hand, names joined by |), records `scan.REJECTED` of the
    sections that are no hands, and their reasons, which the records' codes are numbers into.
    """
    if site:
        hands, refused, begins = _scan_site(data.tobytes(), site, decimals, first_line)
    else:
        hands, refused = scan_histories(data.tobytes(), decimals)
        begins = hands.records["begin"]
    lineups = _lineups(hands)
    lines = _lines(data, begins, first_line, site)
    groups: list[ScannedHands] = []
    for nolimit in (True, False):
        chosen = np.flatnonzero((hands.arrays.rules[:, R_NOLIMIT] != 0) == nolimit)
        if len(chosen):
            groups.append(_group(hands, chosen, lines, LogMatch(history_game(nolimit), seed)))
    reasons = sorted({entry.reason for entry in refused})
    return groups, lineups, _rejected(data, refused, first_line, reasons, site), reasons


def _scan_site(data: bytes, site: str, decimals: int, first_line: int) -> tuple[ScannedHistories, list[Refused], Array]:
    """Read the hands of a poker site's text: those that it holds, those that are refused, and where each begins.

    A hand's number is the line that it begins on. Results that do not leave the rake that the text states are flagged.
    """
    texts: list[str] = []
    places: list[SiteHand] = []
    refused: list[Refused] = []
    line, last = first_line, 0
    for hand in site_sections(data, site, decimals):
        line, last = line + data.count(b"\n", last, hand.begin), hand.begin
        if hand.reason:
            refused.append(Refused(line, hand.begin, hand.end, hand.reason))
        else:
            texts.append(f"[{line}]\n{hand.text}")
            places.append(hand)
    starts = np.cumsum([0, *(len(text.encode()) for text in texts)])
    hands, others = scan_histories("".join(texts).encode(), decimals)
    owners = np.searchsorted(starts, hands.records["begin"], side="right") - 1
    for entry in others:
        place = places[int(np.searchsorted(starts, entry.begin, side="right")) - 1]
        refused.append(entry._replace(begin=place.begin, end=place.end))
    stated = np.array([place.rake for place in places], dtype=np.int64)[owners]
    hands.records["flagged"] |= (stated >= 0) & (hands.records["source"] != UNKNOWN) & (stated != hands.records["rake"])
    begins = np.array([place.begin for place in places], dtype=np.int64)[owners]
    return hands, sorted(refused, key=lambda entry: entry.begin), begins


def count_peculiar(groups: Sequence[ScannedHands]) -> tuple[dict[str, int], dict[str, int]]:
    """Count the hands of a piece with something unknown or odd, by what it is, and all hands by big blind.

    Big blinds are written as the source writes amounts, so that files of different units can be compared.
    """
    peculiar: Counter[str] = Counter()
    big_blinds: Counter[str] = Counter()
    for group in groups:
        facts = group.facts
        if facts is None:
            continue
        dealt = np.arange(MOST_HISTORY_PLAYERS) < facts.rules[:, R_PLAYERS, None]
        hidden = group.buffer.holes[:, :MOST_HISTORY_PLAYERS, 0] == NO_CARD
        stacks = facts.rules[:, R_STACK : R_STACK + MOST_HISTORY_PLAYERS] == NO_STACK
        peculiar.update(
            unknown_cards=int((dealt & hidden).any(axis=1).sum()),
            unknown_stacks=int((dealt & stacks).any(axis=1).sum()),
            unknown_result=int((~facts.settled).sum()),
            partial=int(facts.partial.sum()),
            rake=int((facts.rake > 0).sum()),
            flagged=int(facts.flagged.sum()),
        )
        sizes, counts = np.unique(facts.rules[:, R_BIG_BLIND], return_counts=True)
        for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
            big_blinds[amount_text(size, facts.decimals)] += count
    return {what: count for what, count in peculiar.items() if count}, dict(big_blinds)


def _lineups(hands: ScannedHistories) -> list[str]:
    """Return the names of each hand's players, joined by |."""
    texts = hands.texts
    names, counts = hands.records["names"].tolist(), hands.records["players"].tolist()
    return ["|".join([texts[name] for name in row[:count]]) for row, count in zip(names, counts, strict=True)]


def _group(hands: ScannedHistories, chosen: Array, lines: Array, match: LogMatch) -> ScannedHands:
    """Return the chosen hands in the form of those of ACPC lines."""
    arrays = hands.arrays.chosen(chosen)
    old, actions = arrays.records, len(arrays.places)
    buffer = HandBuffer(
        records=np.zeros(len(chosen), dtype=HAND),
        holes=arrays.holes,
        boards=arrays.boards,
        paid=arrays.results,
        places=arrays.places,
        totals=arrays.totals.astype(np.int32),
        labels=np.empty(actions, dtype=np.uint8),
        rows=np.empty(actions, dtype=OBSERVATION),
    )
    buffer.paid[old["source"] == UNKNOWN] = np.nan
    new = buffer.records
    new["first"], new["count"], new["showdown"] = old["first"], old["count"], old["showdown"]
    new["line"], new["lineup"] = lines[chosen], chosen
    new["number"] = np.minimum(old["number"], 2**31 - 1)
    deals = np.zeros(len(chosen), dtype=np.uint64)
    _hash_deals(arrays.rules, buffer.holes, old["place"], old["begin"], match.seed, deals)
    new["deal"] = deals
    # digits of a raise, a letter and a bar each; four letters a hole; three rows of amounts and the results
    room = int(new["count"].sum()) * 12 + len(chosen) * (MOST_HISTORY_PLAYERS * (5 + 4 * 16) + 32)
    text, spans = np.zeros(room, dtype=np.uint8), np.zeros((len(chosen), TEXTS, 2), dtype=np.int32)
    _write_texts(arrays, buffer, _CARDS, text, spans)
    _fill_rows(arrays.rules, buffer, ranking())
    new["betting"], new["cards"], new["payoffs"] = spans[:, BETTING], spans[:, CARDS], spans[:, PAYOFFS]
    facts = HistoryFacts(
        rules=arrays.rules,
        spans=spans,
        labels=old["label"],
        text=hands.text,
        rake=old["rake"].astype(np.int32),
        partial=old["partial"],
        flagged=old["flagged"],
        shown=old["shown"],
        settled=old["source"] != UNKNOWN,
        decimals=hands.decimals,
    )
    return ScannedHands(match, text, buffer, facts=facts)


def _rejected(data: Array, refused: list[Refused], first_line: int, reasons: list[str], site: str) -> Array:
    """Return refused sections as records of rejected lines: their text begins with the header of their table."""
    records = np.zeros(len(refused), dtype=REJECTED)
    whole = data.tobytes() if refused else b""
    for i, entry in enumerate(refused):
        begin = entry.begin
        if begin > 0 and not site:  # take in the header's line
            before = data[max(0, begin - 80) : max(0, begin - 1)]
            ends = np.flatnonzero(before == NEWLINE)
            begin = max(0, begin - 80) + (int(ends[-1]) + 1 if len(ends) else 0)
        records[i]["begin"], records[i]["end"] = begin, entry.end
        records[i]["code"] = reasons.index(entry.reason)
        records[i]["hand"] = min(entry.number, 2**31 - 1) if entry.number else -1
        if named := _NUMBER.search(whole, entry.begin, entry.end):
            records[i]["number"] = named.span(named.lastindex or 0)
    if len(records):
        records["line"] = _lines(data, np.array([entry.begin for entry in refused]), first_line, site)
    return records


assert (ANTES, BLINDS, STACKS) == (0, 1, 2)  # `_write_texts` counts down from stacks
