"""Hands and rejected lines as Arrow tables, one row for each line of a log that holds a hand or cannot be read.

Texts such as the betting are taken from the log's own bytes, so no string is made per row. Decisions, of which a hand
has several, are the matter of `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipeline.dataset.decisions import is_validation
from pipeline.formats.acpc import REASONS
from pipeline.ingestion.arrow_columns import arrow_table, coded, constant, dictionary, nullable, spans_text
from pipeline.ingestion.grammar import RETURN
from pipeline.ingestion.hands import ScannedHands
from pipeline.poker.rules import R_RAISE, R_TRIMMED
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

SHOWN = 500
"""bytes of a rejected line that are kept"""


@kernel
def _held_out(deals: Array, sides: Array) -> Array:
    """Whether each hand is held out: where its file is on one side, that; else by its deal (side -1)."""
    out = np.empty(deals.shape[0], dtype=np.bool_)
    for i in range(deals.shape[0]):
        out[i] = is_validation(deals[i]) if sides[i] == -1 else sides[i] == 1
    return out


def hand_table(
    pieces: Sequence[tuple[ScannedHands, int, int, int]], files: Sequence[str], lineups: Sequence[str]
) -> Any:
    """Hands as an Arrow table; each piece has its file's number, side (see `expand`) and its line-up 0's number."""
    all_hands = [hands for hands, _, _, _ in pieces]

    def column(of: Callable[[ScannedHands, int, int, int], Array], dtype: Any) -> Array:
        found = [np.asarray(of(*piece), dtype=dtype) for piece in pieces]
        return np.concatenate(found) if found else np.empty(0, dtype=dtype)

    def field(name: str, dtype: Any) -> Array:
        return column(lambda hands, file, side, base: hands.records[name], dtype)

    games = list(dict.fromkeys(hands.match.game.name for hands in all_hands if hands.match.game))
    deal = field("deal", np.uint64)
    side = column(lambda hands, file, side, base: np.full(len(hands.records), side), np.int8)
    return arrow_table(
        {
            "file": dictionary(
                column(lambda hands, file, side, base: np.full(len(hands.records), file), np.int32), files
            ),
            "line": field("line", np.int32),
            "hand": field("number", np.int32),
            "game": dictionary(
                column(
                    lambda hands, file, side, base: np.full(
                        len(hands.records), games.index(hands.match.game.name if hands.match.game else "")
                    ),
                    np.int32,
                ),
                games,
            ),
            "names": coded(
                column(lambda hands, file, side, base: hands.records["lineup"] + base, np.int64), lambda i: lineups[i]
            ),
            "betting": spans_text([(hands.data, hands.records["betting"]) for hands in all_hands]),
            "cards": spans_text([(hands.data, hands.records["cards"]) for hands in all_hands]),
            "payoffs": spans_text([(hands.data, hands.records["payoffs"]) for hands in all_hands]),
            "deal": deal,
            "actions": field("count", np.int32),
            "showdown": field("showdown", np.bool_),
            "expected": field("expected", np.bool_),
            "validation": _held_out(deal, side),
            **_history_columns(all_hands),
        }
    )


def _acpc_columns(pieces: Sequence[ScannedHands]) -> dict[str, Any]:
    """The columns of `_history_columns` for ACPC hands alone: constants, made without looking at each hand."""
    count = sum(len(hands.records) for hands in pieces)
    blinds = [np.full(len(h.records), h.match.game.big_blind if h.match.game else 1, np.int32) for h in pieces]
    return {
        "big_blind": np.concatenate([np.empty(0, np.int32), *blinds]),
        **{name: constant(count, "-") for name in ("stakes", "stacks", "blinds", "antes")},
        "decimals": np.zeros(count, np.uint8),
        **{name: constant(count, "") for name in ("venue", "table", "number")},
        "rake": np.zeros(count, np.int32),
        "partial": np.zeros(count, np.bool_),
        "flagged": np.zeros(count, np.bool_),
        "shown": np.zeros(count, np.uint16),
    }


def _history_columns(pieces: Sequence[ScannedHands]) -> dict[str, Any]:
    """What hand histories have beside what ACPC logs have; `-`, nothing, 0 and false in the rows of the latter."""
    if all(hands.facts is None for hands in pieces):
        return _acpc_columns(pieces)

    def fact(of: Callable[[Any], Array], dtype: Any) -> Array:
        found = [
            np.zeros(len(hands.records), dtype=dtype) if hands.facts is None else np.asarray(of(hands.facts), dtype)
            for hands in pieces
        ]
        return np.concatenate(found) if found else np.empty(0, dtype=dtype)

    def texts(which: int, label: bool) -> Any:
        """A text of each history: venue, table and number, or stacks, blinds and antes; one text for ACPC hands."""
        none = b"" if label else b"-"
        spans = []
        for hands in pieces:
            if hands.facts is None:
                spans.append((np.frombuffer(none, np.uint8), np.tile([0, len(none)], (len(hands.records), 1))))
            elif label:
                spans.append((hands.facts.text, hands.facts.labels[:, which]))
            else:
                spans.append((hands.data, hands.facts.spans[:, 3 + which]))
        return spans_text(spans).dictionary_encode()

    blinds = [np.full(len(h.records), h.match.game.big_blind if h.match.game else 1, np.int32) for h in pieces]
    for i, hands in enumerate(pieces):
        if hands.facts is not None:
            blinds[i] = hands.facts.rules[:, R_RAISE].astype(np.int32)
    stakes = [text for hands in pieces for text in _stakes(hands)]
    words = {text: i for i, text in enumerate(dict.fromkeys(stakes))}
    columns: dict[str, Any] = {
        "big_blind": np.concatenate([np.empty(0, np.int32), *blinds]),
        "stakes": dictionary(np.array([words[text] for text in stakes], dtype=np.int32), list(words)),
    }
    for i, name in enumerate(("stacks", "blinds", "antes")):
        columns[name] = texts(i, label=False)
    columns["decimals"] = fact(lambda facts: np.full(len(facts.rake), facts.decimals), np.uint8)
    for i, name in enumerate(("venue", "table", "number")):
        columns[name] = texts(i, label=True)
    return columns | {
        "rake": fact(lambda facts: facts.rake, np.int32),
        "partial": fact(lambda facts: facts.partial, np.bool_),
        "flagged": fact(lambda facts: facts.flagged, np.bool_),
        "shown": fact(lambda facts: facts.shown, np.uint16),
    }


def _stakes(hands: ScannedHands) -> list[str]:
    """The variant and bets of each hand of a history, `-` for ACPC hands."""
    if hands.facts is None:
        return ["-"] * len(hands.records)
    nolimit = hands.match.game is None or hands.match.game.nolimit
    bets = hands.facts.rules[:, [R_RAISE, R_RAISE + 2, R_TRIMMED]].tolist()
    return [
        f"{f'NT {small}' if nolimit else f'FT {small} {big}'}{' trimmed' if trimmed else ''}"
        for small, big, trimmed in bets
    ]


def rejected_table(pieces: Sequence[tuple[int, Array, Array, Sequence[str]]], files: Sequence[str]) -> Any:
    """Rejected lines as an Arrow table.

    Each piece has its file's number, its bytes, scan.REJECTED records and the reasons that their codes stand for.
    """
    words = {reason: i for i, reason in enumerate(REASONS)}
    codes = []
    for _, _, bad, reasons in pieces:
        numbers = [words.setdefault(reason, len(words)) for reason in reasons]
        codes.append(np.array(numbers, dtype=np.int32)[bad["code"]])
    spans = []
    for _, data, bad, _ in pieces:
        ends = np.minimum(bad["end"], bad["begin"] + SHOWN)
        ends -= (ends > bad["begin"]) & (data[np.maximum(ends, 1) - 1] == RETURN)
        spans.append((data, np.stack([bad["begin"], ends], axis=1)))
    places = [np.full(len(bad), file, dtype=np.int32) for file, _, bad, _ in pieces]
    hand = np.concatenate([np.empty(0, np.int32), *(bad["hand"] for _, _, bad, _ in pieces)])
    return arrow_table(
        {
            "file": dictionary(np.concatenate([np.empty(0, np.int32), *places]), files),
            "line": np.concatenate([np.empty(0, np.int32), *(bad["line"] for _, _, bad, _ in pieces)]),
            "hand": nullable(hand, hand >= 0),
            "number": spans_text([(data, bad["number"]) for _, data, bad, _ in pieces]),
            "text": spans_text(spans),
            "reason": dictionary(np.concatenate([np.empty(0, np.int32), *codes]), tuple(words)),
        },
        nullable=("hand",),
    )
