"""Bulk reader of hand histories: the bytes of a source in, played hands out.

It reads the form in which the public collections are written: one field per line, `key = value`, strings in single
quotes, lists on one line. It fills the same arrays as `packing.pack` and plays them with the same kernel, without
making a Python object per hand. A section in any other form (comments, double quotes, letters beyond ASCII, unknown
fields, or anything wrong) is left to `notation`, so the answer is `notation`'s for every text.

`scan_histories` returns all hands of a source as arrays, and every section that is no hand with its reason.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.formats.acpc import MOST_ACTIONS
from pipeline.formats.histories.fields import (
    HAND_NAME,
    SEEN_PLAYERS,
    TABLE,
    VENUE,
    HistoryScratch,
    history_scratch,
    read_fields,
)
from pipeline.formats.histories.history import MOST_HISTORY_PLAYERS, History, HistoryError
from pipeline.formats.histories.notation import MAX_SECTION, decimals_of, parse_table, read_section, split_hands
from pipeline.formats.histories.packing import (
    Outcome,
    PackedHand,
    pack,
)
from pipeline.formats.histories.replay import REASONS, VALID, play
from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.rules import R_PLAYERS, RULES_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash_name, hash_text

NOT_READ = 255
"""the code of a section that the kernel leaves to `notation`"""

HAND = np.dtype(
    [
        ("number", np.int64),  # of its table, 0 for none
        ("begin", np.int64),  # where its bytes are
        ("end", np.int64),
        ("place", np.uint64),  # hash of venue, table and hand number; 0 when the hand has no number
        ("names", np.uint64, (MOST_HISTORY_PLAYERS,)),  # `hash_name` of each player's name
        ("label", np.int32, (3, 2)),  # where venue, table and hand number are in `text`
        ("named", np.int32, (MOST_HISTORY_PLAYERS, 2)),  # where the names are in the bytes, -1: in `texts`
        ("first", np.int64),  # of its actions in `places` and `totals`
        ("count", np.int32),
        ("players", np.uint8),
        ("code", np.uint8),  # index of `replay.REASONS`, or NOT_READ
        ("partial", np.bool_),
        ("showdown", np.bool_),
        ("flagged", np.bool_),
        ("source", np.uint8),  # of the result: `replay.UNKNOWN`, `BY_RULES`, `BY_SOURCE`
        ("shown", np.uint16),  # a bit per player who showed cards
        ("pot", np.int64),
        ("rake", np.int64),
    ],
    align=True,
)


class HandArrays(NamedTuple):
    """Arrays of played hands, a row each; `places` and `totals` hold the actions of all, one hand after the other."""

    records: Array
    """HAND"""
    rules: Array
    """(hands, RULES_SIZE): the rules vector of each"""
    holes: Array
    """(hands, MOST_HISTORY_PLAYERS, 2) uint8"""
    boards: Array
    """(hands, 5) uint8"""
    chips: Array
    """(hands, 3, MOST_HISTORY_PLAYERS) int64: antes, blinds and starting stacks as written, `NO_STACK` where unknown"""
    results: Array
    """(hands, MOST_HISTORY_PLAYERS) float64"""
    places: Array
    """action | street << 2 | actor << 4"""
    totals: Array
    """what no-limit raises go to over the whole hand"""

    def chosen(self, hands: Array) -> HandArrays:
        """Return the hands of a mask or of indices; the actions stay those of all."""
        return self._replace(**{name: getattr(self, name)[hands] for name in self._fields[:6]})


class ScannedHistories(NamedTuple):
    """The hands of a source."""

    arrays: HandArrays
    decimals: int
    """digits after the point of one unit"""
    texts: dict[int, str]
    """names by their hash"""
    text: Array
    """uint8: the bytes that `HAND.label` points into"""

    @property
    def records(self) -> Array:
        """Return the hands' records (HAND)."""
        return self.arrays.records


class Refused(NamedTuple):
    """A section that is no hand: its place and the reason."""

    number: int
    begin: int
    end: int
    reason: str


@kernel(leaf=True)
def _store(hand: PackedHand, out: Outcome, arrays: HandArrays, row: int, action: int) -> int:
    """Write a played hand to row `row`, its actions from `action` on; return where the next hand's actions go."""
    facts, record = out.facts[0], arrays.records[row]
    n = out.rules[R_PLAYERS]
    record.players = n
    record.first = action
    record.count = facts.actions
    record.partial = facts.partial != 0
    record.showdown = facts.showdown != 0
    record.flagged = facts.flagged != 0
    record.source = facts.source
    record.shown = facts.shown
    record.pot = facts.pot
    record.rake = facts.rake
    for k in range(RULES_SIZE):
        arrays.rules[row, k] = out.rules[k]
    for p in range(MOST_HISTORY_PLAYERS):
        for c in range(2):
            arrays.holes[row, p, c] = out.hole[p, c]
        arrays.results[row, p] = out.result[p]
        for kind in range(3):
            arrays.chips[row, kind, p] = hand.chips[kind, p] if p < n else 0
    for c in range(5):
        arrays.boards[row, c] = out.board[c]
    for k in range(facts.actions):
        arrays.places[action + k] = out.places[k]
        arrays.totals[action + k] = out.totals[k]
    return action + facts.actions


@kernel(leaf=True)
def _scan(
    data: Array, sections: Array, decimals: int, work: HistoryScratch, tables: Ranking, arrays: HandArrays
) -> int:
    """Read and play the sections (number, begin, end); the records hold their codes. Return the number of actions."""
    action = 0
    for i in range(sections.shape[0]):
        record = arrays.records[i]
        begin, end = sections[i, 1], sections[i, 2]
        record.number = sections[i, 0]
        record.begin = begin
        record.end = end
        record.code = NOT_READ
        if end - begin > MAX_SECTION or not read_fields(data, begin, end, decimals, work):
            continue
        spans = work.spans
        for k in range(3):
            record.label[k, 0] = spans[k, 0]
            record.label[k, 1] = spans[k, 1]
        record.place = 0
        if spans[HAND_NAME, 1] > spans[HAND_NAME, 0]:
            place = hash_text(data, spans[VENUE, 0], spans[VENUE, 1], np.uint64(1))
            place = hash_text(data, spans[TABLE, 0], spans[TABLE, 1], place)
            record.place = hash_text(data, spans[HAND_NAME, 0], spans[HAND_NAME, 1], place)
        same = False
        n = work.hand.head[0].players
        for p in range(MOST_HISTORY_PLAYERS):
            record.names[p] = 0
            if work.progress[0].seen & SEEN_PLAYERS != 0 and p < n:
                record.named[p, 0] = work.named[p, 0]
                record.named[p, 1] = work.named[p, 1]
                record.names[p] = hash_text(data, work.named[p, 0], work.named[p, 1], np.uint64(2))
                for q in range(p):
                    same = same or record.names[q] == record.names[p]
        if same or work.progress[0].seen & SEEN_PLAYERS == 0:
            continue
        code = play(work.hand, work.out, tables)
        record.code = code
        if code == VALID:
            action = _store(work.hand, work.out, arrays, i, action)
    return action


def _place(history: History) -> int:
    """Return the hash of venue, table and hand, as `_scan` computes it; 0 for a hand without a number."""
    if not history.hand:
        return 0
    value = np.uint64(1)
    for text in (history.venue, history.table, history.hand):
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        value = np.uint64(hash_text(data, 0, len(data), value))
    return int(value)


def scan_histories(data: bytes, decimals: int | None = None) -> tuple[ScannedHistories, list[Refused]]:
    """Read all hands of a source and play them by the rules.

    Parameters: the bytes of a source; the digits after the point of one unit (default: as many as its amounts need).

    Returns the accepted hands in the order of the source, and the refused sections with their reasons.
    """
    decimals = decimals_of(data) if decimals is None else decimals
    view = np.frombuffer(data, dtype=np.uint8)
    sections = split_hands(view)
    count = len(sections)
    # an entry of `actions` has at least six bytes ('p1 f'), and a hand no more than MOST_ACTIONS
    most = int(np.minimum((sections[:, 2] - sections[:, 1]) // 6, MOST_ACTIONS).sum())
    arrays = HandArrays(
        records=np.zeros(count, dtype=HAND),
        rules=np.zeros((count, RULES_SIZE), dtype=np.int64),
        holes=np.zeros((count, MOST_HISTORY_PLAYERS, 2), dtype=np.uint8),
        boards=np.zeros((count, 5), dtype=np.uint8),
        chips=np.zeros((count, 3, MOST_HISTORY_PLAYERS), dtype=np.int64),
        results=np.zeros((count, MOST_HISTORY_PLAYERS), dtype=np.float64),
        places=np.zeros(most, dtype=np.uint8),
        totals=np.zeros(most, dtype=np.int64),
    )
    work, tables = history_scratch(), ranking()
    used = _scan(view, sections, decimals, work, tables, arrays)
    texts: dict[int, str] = {}
    appended = bytearray()
    refused: list[Refused] = []
    records = arrays.records
    for i in np.flatnonzero(records["code"] != VALID):
        record = records[i]
        place = int(record["number"]), int(record["begin"]), int(record["end"])
        if record["code"] != NOT_READ:
            refused.append(Refused(*place, REASONS[record["code"]]))
            continue
        try:
            history = parse_table(read_section(data[place[1] : place[2]]), decimals)
            code = play(pack(history, work.hand), work.out, tables)
            if code != VALID:
                raise HistoryError(REASONS[code])
        except HistoryError as error:
            refused.append(Refused(*place, str(error)))
            continue
        record["code"] = VALID
        record["place"] = _place(history)
        record["named"] = -1
        for p, name in enumerate(history.names):
            record["names"][p] = hash_name(name)
            texts[int(record["names"][p])] = name
        for k, word in enumerate((history.venue, history.table, history.hand)):
            record["label"][k] = len(data) + len(appended), len(data) + len(appended) + len(word.encode())
            appended += word.encode()
        if used + MOST_ACTIONS > len(arrays.places):
            places, totals = (np.resize(array, 2 * used + 1024) for array in (arrays.places, arrays.totals))
            arrays = arrays._replace(places=places, totals=totals)
        used = _store(work.hand, work.out, arrays, int(i), used)
    fine = records["code"] == VALID
    _read_names(data, records[fine], texts)
    hands = arrays._replace(places=arrays.places[:used], totals=arrays.totals[:used]).chosen(fine)
    text = np.frombuffer(data + bytes(appended), dtype=np.uint8) if appended else view
    return ScannedHistories(hands, decimals, texts, text), refused


def _read_names(data: bytes, records: Array, texts: dict[int, str]) -> None:
    """Add the names that are written in the bytes to `texts`."""
    written = (records["named"][:, :, 1] > 0) & (records["names"] != 0)
    hashes, first = np.unique(records["names"][written], return_index=True)
    spans = records["named"][written][first]
    for value, (begin, end) in zip(hashes.tolist(), spans.tolist(), strict=True):
        texts[value] = data[begin:end].decode()
