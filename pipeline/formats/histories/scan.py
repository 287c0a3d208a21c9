"""The byte kernel: the bytes of a hand history source in, played hands out.

It reads the form in which the public collections are written: one field per line, `key = value`, strings in single
quotes, lists on one line. It fills the same arrays as `packing.pack` and plays them with the same kernel, without
making a Python object per hand. A section in any other form (comments, double quotes, letters beyond ASCII, unknown
fields, or anything wrong) is left to `notation`, so the answer is `notation`'s for every text.

`scan_histories` is the face: all hands of a source as arrays, and every section that is no hand with its reason.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipeline.formats.histories.fields import (
    F_HAND,
    F_SEEN,
    F_TABLE,
    F_VENUE,
    SEEN_PLAYERS,
    HistoryScratch,
    read_fields,
    scratch,
)
from pipeline.formats.histories.history import MOST_HISTORY_PLAYERS, History, HistoryError
from pipeline.formats.histories.notation import MAX_SECTION, decimals_of, parse_table, read_section, split
from pipeline.formats.histories.packing import (
    H_PLAYERS,
    MOST_ACTIONS,
    O_ACTIONS,
    O_FLAGGED,
    O_PARTIAL,
    O_POT,
    O_RAKE,
    O_SHOWDOWN,
    O_SHOWN,
    O_SOURCE,
    Outcome,
    Packed,
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


class ScannedHistories(NamedTuple):
    """The hands of a source; one row each, actions one after the other."""

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
    decimals: int
    """digits after the point of one unit"""
    texts: dict[int, str]
    """names by their hash"""
    text: Array
    """uint8: the bytes that `HAND.label` points into"""


class Refused(NamedTuple):
    """A section that is no hand: where, and why."""

    number: int
    begin: int
    end: int
    reason: str


@kernel(leaf=True)
def _keep(hand: Packed, out: Outcome, found: Any, at: int, action: int) -> int:
    """Put a played hand in its place; where the next hand's actions go."""
    facts, record = out.facts, found[0][at]
    n = out.rules[R_PLAYERS]
    record.players = n
    record.first = action
    record.count = facts[O_ACTIONS]
    record.partial = facts[O_PARTIAL] != 0
    record.showdown = facts[O_SHOWDOWN] != 0
    record.flagged = facts[O_FLAGGED] != 0
    record.source = facts[O_SOURCE]
    record.shown = facts[O_SHOWN]
    record.pot = facts[O_POT]
    record.rake = facts[O_RAKE]
    for k in range(RULES_SIZE):
        found[1][at, k] = out.rules[k]
    for p in range(MOST_HISTORY_PLAYERS):
        for c in range(2):
            found[2][at, p, c] = out.hole[p, c]
        found[4][at, p] = out.result[p]
        for row in range(3):
            found[7][at, row, p] = hand.chips[row, p] if p < n else 0
    for c in range(5):
        found[3][at, c] = out.board[c]
    for k in range(facts[O_ACTIONS]):
        found[5][action + k] = out.places[k]
        found[6][action + k] = out.totals[k]
    return action + facts[O_ACTIONS]


@kernel(leaf=True)
def _scan(data: Array, sections: Array, decimals: int, work: HistoryScratch, tables: Ranking, found: Any) -> int:
    """Read and play the sections (number, begin, end); the records tell how each ended. Returns the actions kept."""
    action = 0
    for at in range(sections.shape[0]):
        record = found[0][at]
        begin, end = sections[at, 1], sections[at, 2]
        record.number = sections[at, 0]
        record.begin = begin
        record.end = end
        record.code = NOT_READ
        if end - begin > MAX_SECTION or not read_fields(data, begin, end, decimals, work):
            continue
        fields = work.fields
        for k in range(3):
            record.label[k, 0] = fields[2 * k]
            record.label[k, 1] = fields[2 * k + 1]
        record.place = 0
        if fields[F_HAND + 1] > fields[F_HAND]:
            place = hash_text(data, fields[F_VENUE], fields[F_VENUE + 1], np.uint64(1))
            place = hash_text(data, fields[F_TABLE], fields[F_TABLE + 1], place)
            record.place = hash_text(data, fields[F_HAND], fields[F_HAND + 1], place)
        same = False
        n = work.hand.head[H_PLAYERS]
        for p in range(MOST_HISTORY_PLAYERS):
            record.names[p] = 0
            if fields[F_SEEN] & SEEN_PLAYERS != 0 and p < n:
                record.named[p, 0] = work.named[p, 0]
                record.named[p, 1] = work.named[p, 1]
                record.names[p] = hash_text(data, work.named[p, 0], work.named[p, 1], np.uint64(2))
                for q in range(p):
                    same = same or record.names[q] == record.names[p]
        if same or fields[F_SEEN] & SEEN_PLAYERS == 0:
            continue
        code = play(work.hand, work.out, tables)
        record.code = code
        if code == VALID:
            action = _keep(work.hand, work.out, found, at, action)
    return action


def _place(history: History) -> int:
    """The hash of venue, table and hand, as the kernel computes it."""
    if not history.hand:
        return 0
    value = np.uint64(1)
    for text in (history.venue, history.table, history.hand):
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        value = np.uint64(hash_text(data, 0, len(data), value))
    return int(value)


def scan_histories(data: bytes, decimals: int | None = None) -> tuple[ScannedHistories, list[Refused]]:
    """All hands of a source, played by the rules, and the sections that are none with their reasons.

    Parameters: the bytes of a source; the digits after the point of one unit (default: as many as its amounts need).

    Returns the accepted hands in the order of the source, and the refused sections.
    """
    decimals = decimals_of(data) if decimals is None else decimals
    view = np.frombuffer(data, dtype=np.uint8)
    found = split(view)
    count = len(found)
    # an entry of `actions` has at least six bytes ('p1 f'), and a hand no more than MOST_ACTIONS
    most = int(np.minimum((found[:, 2] - found[:, 1]) // 6, MOST_ACTIONS).sum())
    arrays: tuple[Array, ...] = (
        np.zeros(count, dtype=HAND),
        np.zeros((count, RULES_SIZE), dtype=np.int64),
        np.zeros((count, MOST_HISTORY_PLAYERS, 2), dtype=np.uint8),
        np.zeros((count, 5), dtype=np.uint8),
        np.zeros((count, MOST_HISTORY_PLAYERS), dtype=np.float64),
        np.zeros(most, dtype=np.uint8),
        np.zeros(most, dtype=np.int64),
        np.zeros((count, 3, MOST_HISTORY_PLAYERS), dtype=np.int64),
    )
    work, tables = scratch(), ranking()
    used = _scan(view, found, decimals, work, tables, arrays)
    texts: dict[int, str] = {}
    more = bytearray()
    refused: list[Refused] = []
    records = arrays[0]
    for at in np.flatnonzero(records["code"] != VALID):
        record = records[at]
        section = int(record["number"]), int(record["begin"]), int(record["end"])
        if record["code"] != NOT_READ:
            refused.append(Refused(*section, REASONS[record["code"]]))
            continue
        try:
            history = parse_table(read_section(data[section[1] : section[2]]), decimals)
            code = play(pack(history, work.hand), work.out, tables)
            if code != VALID:
                raise HistoryError(REASONS[code])
        except HistoryError as error:
            refused.append(Refused(*section, str(error)))
            continue
        record["code"] = VALID
        record["place"] = _place(history)
        record["named"] = -1
        for p, name in enumerate(history.names):
            record["names"][p] = hash_name(name)
            texts[int(record["names"][p])] = name
        for k, word in enumerate((history.venue, history.table, history.hand)):
            record["label"][k] = len(data) + len(more), len(data) + len(more) + len(word.encode())
            more += word.encode()
        if used + MOST_ACTIONS > len(arrays[5]):
            wider = [np.resize(array, 2 * used + 1024) for array in arrays[5:7]]
            arrays = (*arrays[:5], wider[0], wider[1], arrays[7])
        used = _keep(work.hand, work.out, arrays, int(at), used)
    fine = records["code"] == VALID
    _read_names(data, records[fine], texts)
    records, rules, holes, boards, results = (array[fine] for array in arrays[:5])
    places, totals = arrays[5][:used], arrays[6][:used]
    text = np.frombuffer(data + bytes(more), dtype=np.uint8) if more else view
    chips = arrays[7][fine]
    return ScannedHistories(
        records, rules, holes, boards, chips, results, places, totals, decimals, texts, text
    ), refused


def _read_names(data: bytes, records: Array, texts: dict[int, str]) -> None:
    """Add the names that stand in the bytes to `texts`."""
    there = (records["named"][:, :, 1] > 0) & (records["names"] != 0)
    hashes, first = np.unique(records["names"][there], return_index=True)
    spans = records["named"][there][first]
    for value, (begin, end) in zip(hashes.tolist(), spans.tolist(), strict=True):
        texts[value] = data[begin:end].decode()
