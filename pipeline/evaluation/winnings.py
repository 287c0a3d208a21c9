"""Winnings of the players of logs, plain and adjusted by variance reduction.

A dataset goes in, and optionally a file of true probabilities; a row per game and player comes out. All hands of the
dataset count, whoever's decisions it has as rows. Results are adjusted (`pipeline.arena.variance`: the luck is taken
out) where all hole cards of a game's hands are known; hands of a deal are one sample of the interval.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.arena.variance.equities import is_adjustable
from pipeline.arena.variance.estimator import adjust
from pipeline.arena.variance.records import MISFIT_LIMIT, HandRecords, has_all_cards, misfit, records_of
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import hand_batches, translate_parquet_errors
from pipeline.evaluation.truth import TrueProbabilities, read_truth
from pipeline.formats.acpc import Hand
from pipeline.models.measures import Estimate, Winnings, mean_by_deal
from pipeline.poker.game import Game, StateCache, parse_game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

_COLUMNS = ("file", "hand", "game", "names", "betting", "cards", "payoffs", "deal", "stakes")
BATCH_HANDS = 16_384
"""hands that are Python objects at a time"""


class PlayerWinnings(NamedTuple):
    """Winnings of a player in the hands of one game, plain and adjusted."""

    game: str
    agent: str
    hands: int
    winnings: Winnings
    """not adjusted where hole cards are not known or the game is not one whose luck can be taken out"""
    misfit: float | None
    """standard errors between the actions and the probabilities said to be behind them; None without probabilities"""

    @property
    def doubtful(self) -> bool:
        """Return whether the probabilities cannot be those that were played: the adjusted result is then wrong."""
        return self.misfit is not None and self.misfit > MISFIT_LIMIT

    def json(self) -> dict[str, Any]:
        """Return the object that `match --from --json` prints; an infinite misfit is null."""
        misfit = self.misfit if self.misfit is not None and np.isfinite(self.misfit) else None
        return {
            "game": self.game,
            "agent": self.agent,
            "hands": self.hands,
            **self.winnings.json(),
            "misfit": misfit,
            "doubtful": self.doubtful,
        }

    def row(self) -> dict[str, Any]:
        """Return the result as flat cells."""
        return {**{key: value for key, value in self.json().items() if "interval" not in key}, **self.winnings.row()}


class _Hands(NamedTuple):
    """The hands of one game, with the log and number of each."""

    records: HandRecords
    names: list[str]
    files: list[str]
    file: Array
    number: Array
    complete: bool


def score_dataset(folder: Path | str, probabilities: Path | None = None, *, threads: int = 2) -> list[PlayerWinnings]:
    """Compute the winnings of every player in each game of a dataset, best first.

    Parameters: the dataset's folder; `probabilities`, a Parquet file as `match --probabilities` writes it.
    """
    folder = Path(folder)
    winnings = []
    for game, hands in _gather(folder).items():
        truth = read_truth(probabilities, game.labels) if probabilities is not None else None
        winnings += _score(hands, truth, threads)
    return winnings


def dataset_records(folder: Path | str, game: Game) -> tuple[HandRecords, list[str]]:
    """Return the hands of one game of a dataset as records, and the names of the players that their `seats` number."""
    hands = _gather(Path(folder), game.name)[game]
    return hands.records, hands.names


def _gather(folder: Path, only: str = "") -> dict[Game, _Hands]:
    """Return the hands, by game, that were played by the rules and stakes of the games; of one game where it is named.

    Hands become arrays a batch at a time: as Python objects they need twenty times the memory.
    """
    manifest = read_manifest(folder)
    gathered: dict[str, _Gathered] = {}
    for batch in hand_batches(folder, _COLUMNS, BATCH_HANDS):
        of_game: dict[str, list[dict[str, Any]]] = {}
        for row in batch.to_pylist():
            if row["stakes"] == "-" and only in ("", row["game"]):
                of_game.setdefault(row["game"], []).append(row)
        for name, rows in of_game.items():
            if name not in manifest.games:
                raise PipelineError(f"{folder} has hands of a game that its manifest lacks: ingest into a new folder")
            if name not in gathered:
                gathered[name] = _Gathered(parse_game(manifest.games[name], name), manifest.options.alias)
            with translate_parquet_errors(folder / "hands"):
                gathered[name].add(rows)
    if not gathered:
        raise PipelineError(f"{folder}: no hands{only and f' of {only}'}; ingest logs first")
    return {hands.game: hands.join() for hands in gathered.values()}


class _Gathered:
    """The hands of one game so far, in pieces."""

    def __init__(self, game: Game, alias: dict[str, str]) -> None:
        self.game, self.alias = game, alias
        self.names: dict[str, int] = {}
        self.files: dict[str, int] = {}
        self.pieces: dict[str, list[Array]] = {}
        """by column, those of `HandRecords` and the log and number of each hand"""

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Turn rows of the table of hands into arrays."""
        hands = []
        for row in rows:
            holes, *board = row["cards"].split("/")
            payoffs = tuple(float(word) for word in row["payoffs"].split("|"))
            players = tuple(self.alias.get(name, name) for name in row["names"].split("|"))
            hands.append(Hand(row["hand"], row["betting"], tuple(holes.split("|")), tuple(board), payoffs, players))
        records, _ = records_of(self.game, hands, np.array([row["deal"] for row in rows], np.uint64), self.names)
        columns = {name: value for name, value in vars(records).items() if isinstance(value, np.ndarray)}
        # totals have at most nine digits; in limit games there are none, and zeros that are not written take no memory
        columns["sizes"] = (records.sizes if records.sizes.any() else records.sizes[:, :0]).astype(np.int32)
        columns["file"] = np.array([self.files.setdefault(row["file"], len(self.files)) for row in rows], np.int32)
        columns["number"] = np.array([row["hand"] for row in rows], np.int64)
        for name, column in columns.items():
            self.pieces.setdefault(name, []).append(column)

    def join(self) -> _Hands:
        """Return all hands; a column's pieces are dropped once it is whole."""
        longest = max(piece.shape[1] for piece in self.pieces["labels"])
        sizes = _join(self.pieces.pop("sizes"), longest, np.int64)
        columns = {name: _join(self.pieces.pop(name), longest) for name in list(self.pieces)}
        file, number = columns.pop("file"), columns.pop("number")
        records = HandRecords(self.game, sizes=sizes, **columns)
        return _Hands(records, list(self.names), list(self.files), file, number, has_all_cards(records))


def _join(pieces: list[Array], longest: int, kind: Any = None) -> Array:
    """Join the pieces of a column; those of actions, whose width differs, get zeros up to the longest hand."""
    if len({piece.shape[1:] for piece in pieces}) == 1 and kind is None:
        return np.concatenate(pieces)
    column = np.zeros((sum(map(len, pieces)), longest), kind or pieces[0].dtype)
    begin = 0
    for piece in pieces:
        column[begin : begin + len(piece), : piece.shape[1]] = piece
        begin += len(piece)
    return column


def _score(hands: _Hands, truth: TrueProbabilities | None, threads: int) -> list[PlayerWinnings]:
    """Compute the winnings of the players of one game's hands."""
    records = hands.records
    misfits: dict[int, float] = {}
    if truth is not None:
        mixes = _mixes(hands, truth)
        records = HandRecords(**{**records.__dict__, "probabilities": mixes})
        misfits = _misfits(records, mixes)
    adjusted = adjust(records, threads=threads) if hands.complete and is_adjustable(records.game) else None
    unit = 1000.0 / records.game.big_blind
    results = []
    for agent, name in enumerate(hands.names):
        at_seat = records.seats == agent
        deals = np.broadcast_to(records.deals[:, None], at_seat.shape)[at_seat]
        won = [
            None if chips is None else Estimate.around(*mean_by_deal(chips[at_seat] * unit, deals))
            for chips in (records.payoffs, adjusted)
        ]
        results.append(PlayerWinnings(records.game.name, name, int(at_seat.sum()), Winnings(*won), misfits.get(agent)))
    return sorted(results, key=lambda result: -result.winnings.value)


def _mixes(hands: _Hands, truth: TrueProbabilities) -> Array:
    """Return the stated probabilities (hands, actions, labels), NaN where the file has none."""
    labels = hands.records.labels
    rows, k = np.nonzero(labels)
    mixes = np.full((*labels.shape, len(hands.records.game.labels)), np.nan)
    mixes[rows, k] = truth.find(hands.files, hands.file[rows], hands.number[rows], k)
    return mixes


def _misfits(records: HandRecords, mixes: Array) -> dict[int, float]:
    """Return by player the distance of its actions from the probabilities stated for them, in standard errors."""
    walk = StateCache(records.game)
    letters = {}
    rows, k = np.nonzero(~np.isnan(mixes[:, :, 0]))
    actors = np.empty(len(rows), np.int64)
    for i in np.unique(rows):
        # few bettings make up most hands: who acts when is worked out once for each
        key = records.labels[i].tobytes(), records.sizes[i].tobytes()
        if key not in letters:
            state, seen = walk.start, []
            for label, size in zip(records.labels[i], records.sizes[i], strict=True):
                if label > 0:
                    seen.append(state.actor)
                    state = walk.after(state, min(int(label) - 1, 2), int(size))
            letters[key] = np.array(seen, np.int64)
        hand_actions = slice(*np.searchsorted(rows, [i, i + 1]))
        actors[hand_actions] = letters[key][k[hand_actions]]
    agents = records.seats[rows, actors]
    taken = records.labels[rows, k].astype(np.int64) - 1
    return {int(agent): misfit(taken[agents == agent], mixes[rows, k][agents == agent]) for agent in np.unique(agents)}
