"""Raise increments in hand histories: the chips by which a raise goes beyond the highest bet before it.

In ACPC games a row alone tells them, as every hand begins with the same stacks. A hand of a history has stacks of its
own, often unknown ones, so decisions are joined with the table of hands: the bet before a raise is read from the
betting of the hand, or, where nobody has raised before, from its blinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.dataset.load import Decisions, select_rows
from pipeline.dataset.manifest import File, read_manifest
from pipeline.dataset.opening import read_columns, translate_parquet_errors
from pipeline.formats.ascii import STREET_END, read_betting
from pipeline.poker.rules import RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel


@kernel(leaf=True)
def _find_increments(
    text: Array, ends: Array, hands: Array, k: Array, blinds: Array, moves: Array, sizes: Array, out: Array
) -> None:
    """Fill `out` with the increment of action `k` of each hand; -1 where it is no raise.

    The betting of hand i is `text` from `ends[i]` to `ends[i + 1]`; `blinds` are the highest bets at the start.
    `moves` and `sizes` have room for the longest betting.
    """
    for i in range(hands.shape[0]):
        out[i] = -1
        count, _ = read_betting(text, ends[hands[i]], ends[hands[i] + 1], False, moves, sizes)
        highest, action = int(blinds[hands[i]]), 0
        for token in range(count):
            if moves[token] == STREET_END:
                continue
            if moves[token] == RAISE:
                total = max(0, sizes[token])  # limit raises have no size
                if action == k[i]:
                    out[i] = total - highest
                highest = max(highest, total)
            action += 1


def _highest_blind(blinds: str, antes: str, stacks: str) -> int:
    """Return the highest bet before anybody acts, in chips; a blind cannot exceed what its player has after the ante.

    >>> _highest_blind("50|-100|0", "0|0|0", "inf|70|300"), _highest_blind("5|10", "1|1", "inf|inf")
    (70, 10)
    """
    limits = [float(stack) - float(ante) for stack, ante in zip(stacks.split("|"), antes.split("|"), strict=True)]
    return max(int(min(abs(float(blind)), limit)) for blind, limit in zip(blinds.split("|"), limits, strict=True))


class _Betting(NamedTuple):
    """The betting of the hands in one file."""

    logs: list[str]
    log: Array
    """(hands,) numbers into `logs`"""
    line: Array
    text: Array
    """the bytes of all betting, hand after hand"""
    ends: Array
    """(hands + 1,) where each ends in `text`"""
    blinds: Array
    """(hands,) the highest bet before anybody acts; 0 where a hand is not one of a history"""


def _read_betting(folder: Path, file: File) -> _Betting:
    """Read the betting of the hands in a file of a dataset."""
    table = read_columns(folder, file, ["file", "line", "betting", "stacks", "blinds", "antes"])
    with translate_parquet_errors(folder / file.path):
        logs = table.column("file").combine_chunks()
        betting = [str(text).encode() for text in table.column("betting").to_pylist()]
        highest: dict[tuple[str, ...], int] = {}
        blinds = np.zeros(table.num_rows, np.int64)
        columns = (table.column(name).to_pylist() for name in ("blinds", "antes", "stacks"))
        for i, amounts in enumerate(zip(*columns, strict=True)):
            if amounts[0] != "-":
                if amounts not in highest:
                    highest[amounts] = _highest_blind(*amounts)
                blinds[i] = highest[amounts]
        return _Betting(
            logs.dictionary.to_pylist(),
            np.asarray(logs.indices.to_pylist(), np.int64),
            np.asarray(table.column("line").to_pylist(), np.int64),
            np.frombuffer(b"".join(betting), np.uint8),
            np.cumsum([0, *map(len, betting)], dtype=np.int64),
            blinds,
        )


def _fill_increments(hands: _Betting, decisions: Decisions, out: Array) -> None:
    """Fill in the increments of the raises whose hands are among these."""
    numbers = {name: i for i, name in enumerate(decisions.files)}
    hand_keys = np.array([numbers.get(name, -1) for name in hands.logs], np.int64)[hands.log] << 32 | hands.line
    order = np.argsort(hand_keys, kind="stable")
    raises = np.flatnonzero(decisions.amount > 0)
    keys = decisions.file[raises].astype(np.int64) << 32 | decisions.line[raises].astype(np.int64)
    place = np.minimum(np.searchsorted(hand_keys[order], keys), len(hand_keys) - 1)
    matched = hand_keys[order][place] == keys
    rows = raises[matched]
    increments = np.empty(len(rows), np.int64)
    longest = int(np.diff(hands.ends).max(initial=0))
    moves, sizes = np.empty(longest, np.uint8), np.empty(longest, np.int64)
    actions = order[place[matched]], decisions.k[rows].astype(np.int64)
    _find_increments(hands.text, hands.ends, *actions, hands.blinds, moves, sizes, increments)
    out[rows] = increments


def _hand_files(folder: Path) -> list[File]:
    """Return the files of a dataset that hold hands."""
    return [file for file in read_manifest(folder).files if file.path.startswith("hands/") and file.rows > 0]


def raise_increments(folder: Path | str, decisions: Decisions) -> Array:
    """Return by how many chips each raise of hand histories goes beyond the highest bet before it.

    Parameters: the dataset that the decisions come from, and the decisions. Returns (rows,) int64: chips, -1 for
    decisions that are no raises.
    """
    folder = Path(folder)
    out = np.full(len(decisions), -1, np.int64)
    for file in _hand_files(folder):
        _fill_increments(_read_betting(folder, file), decisions, out)
    return out


def raise_pieces(
    folder: Path | str, agents: Sequence[str] | None = None, *, game: str | None = None
) -> Iterator[tuple[Decisions, Array]]:
    """Yield the decisions of hand histories in pieces, each with the raise increments of its rows."""
    folder = Path(folder)
    files = {Path(file.path).stem: file for file in _hand_files(folder)}
    part, hands = "", None
    for file, piece in select_rows(folder, agents, game=game).pieces():
        name = Path(file.path).name.partition(".")[0]
        if hands is None or name != part:
            part, hands = name, _read_betting(folder, files[name])
        out = np.full(len(piece), -1, np.int64)
        _fill_increments(hands, piece, out)
        yield piece, out
