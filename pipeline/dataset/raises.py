"""How far the raises of hand histories go beyond the highest bet, read from the betting of their hands.

In ACPC games that follows from a row alone, as every hand begins with the same stacks. A hand of a history has stacks
of its own, often unknown ones, so the bet before a raise is looked up where it stands: in the betting of the hand, or,
where nobody has raised before, in its blinds. It is a room of its own because it alone joins decisions with hands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.dataset.load import Decisions, run_pieces
from pipeline.dataset.manifest import File, read_manifest
from pipeline.dataset.opening import of_our_making, read_columns
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel

_NINE, _ZERO, _RAISE, _SLASH = ord("9"), ord("0"), ord("r"), ord("/")


@kernel
def _find(text: Array, ends: Array, hands: Array, k: Array, blinds: Array, out: Array) -> None:
    """Write by how much action `k` of each hand goes beyond the bet before it; -1 where it is no raise.

    The betting of hand i is `text` from `ends[i]` to `ends[i + 1]`; `blinds` are the highest bets at the start.
    """
    for i in range(hands.shape[0]):
        out[i] = -1
        at, last = ends[hands[i]], ends[hands[i] + 1]
        highest, action = int(blinds[hands[i]]), 0
        while at < last:
            letter = text[at]
            at += 1
            if letter == _SLASH:
                continue
            total = 0
            while at < last and _ZERO <= text[at] <= _NINE and total < 1 << 40:
                total = total * 10 + int(text[at]) - _ZERO
                at += 1
            if action == k[i]:
                out[i] = total - highest if letter == _RAISE else -1
                break
            if letter == _RAISE:
                highest = max(highest, total)
            action += 1


def _highest_blind(blinds: str, antes: str, stacks: str) -> int:
    """The highest bet before anybody acts, in chips: blinds cannot exceed what a player has after the ante.

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
    table = read_columns(folder, file, ["file", "line", "betting", "stacks", "blinds", "antes"])
    with of_our_making(folder / file.path):
        logs = table.column("file").combine_chunks()
        betting = [str(text).encode() for text in table.column("betting").to_pylist()]
        known: dict[tuple[str, ...], int] = {}
        blinds = np.zeros(table.num_rows, np.int64)
        columns = (table.column(name).to_pylist() for name in ("blinds", "antes", "stacks"))
        for i, words in enumerate(zip(*columns, strict=True)):
            if words[0] != "-":
                if words not in known:
                    known[words] = _highest_blind(*words)
                blinds[i] = known[words]
        return _Betting(
            logs.dictionary.to_pylist(),
            np.asarray(logs.indices.to_pylist(), np.int64),
            np.asarray(table.column("line").to_pylist(), np.int64),
            np.frombuffer(b"".join(betting), np.uint8),
            np.cumsum([0, *map(len, betting)], dtype=np.int64),
            blinds,
        )


def _fill(hands: _Betting, found: Decisions, out: Array) -> None:
    """Write what `beyond` says of the raises whose hands are among these."""
    numbers = {name: i for i, name in enumerate(found.files)}
    own = np.array([numbers.get(name, -1) for name in hands.logs], np.int64)[hands.log] << 32 | hands.line
    order = np.argsort(own, kind="stable")
    wanted = np.flatnonzero(found.amount > 0)
    keys = found.file[wanted].astype(np.int64) << 32 | found.line[wanted].astype(np.int64)
    place = np.minimum(np.searchsorted(own[order], keys), len(own) - 1)
    there = own[order][place] == keys
    at = wanted[there]
    answers = np.empty(len(at), np.int64)
    _find(hands.text, hands.ends, order[place[there]], found.k[at].astype(np.int64), hands.blinds, answers)
    out[at] = answers


def _hand_files(folder: Path) -> list[File]:
    return [file for file in read_manifest(folder).files if file.path.startswith("hands/") and file.rows > 0]


def beyond(folder: Path | str, found: Decisions) -> Array:
    """By how many chips the raises among decisions of a hand history go beyond the highest bet before them.

    Parameters: the dataset that the decisions come from, and the decisions. Returns (rows,) int64: chips, -1 for
    decisions that are no raises.
    """
    folder = Path(folder)
    out = np.full(len(found), -1, np.int64)
    for file in _hand_files(folder):
        _fill(_read_betting(folder, file), found, out)
    return out


def raise_pieces(
    folder: Path | str, agents: Sequence[str] | None = None, *, game: str | None = None
) -> Iterator[tuple[Decisions, Array]]:
    """The decisions of hand histories as `pieces` gives them, each piece with what `beyond` says of its rows."""
    folder = Path(folder)
    files = {Path(file.path).stem: file for file in _hand_files(folder)}
    part, hands = "", None
    for file, piece in run_pieces(folder, agents, game=game):
        name = Path(file.path).name.partition(".")[0]
        if hands is None or name != part:
            part, hands = name, _read_betting(folder, files[name])
        out = np.full(len(piece), -1, np.int64)
        _fill(hands, piece, out)
        yield piece, out
