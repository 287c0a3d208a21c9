"""Winnings of the players of logs, plain and adjusted by variance reduction.

A dataset goes in, and optionally a file of true probabilities; a row per game and player comes out. All hands of the
dataset count, whoever's decisions it has as rows. Results are adjusted (`pipeline.arena.variance`: the luck is taken
out) where all hole cards of a game's hands are known; hands of a deal are one sample of the interval.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    manifest = read_manifest(folder)
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(folder):
        rows.setdefault(row["game"], []).append(row)
    if not rows:
        raise PipelineError(f"{folder}: no hands; ingest logs first")
    winnings = []
    for name, of_game in rows.items():
        if name not in manifest.games:
            raise PipelineError(f"{folder} has hands of a game that its manifest lacks: ingest into a new folder")
        game = parse_game(manifest.games[name], name)
        truth = read_truth(probabilities, game.labels) if probabilities is not None else None
        with translate_parquet_errors(folder / "hands"):
            gathered = _gather(game, of_game, manifest.options.alias)
        winnings += _score(gathered, truth, threads)
    return winnings


def dataset_records(folder: Path | str, game: Game) -> tuple[HandRecords, list[str]]:
    """Return the hands of one game of a dataset as records, and the names of the players that their `seats` number."""
    folder = Path(folder)
    rows = [row for row in _rows(folder) if row["game"] == game.name]
    if not rows:
        raise PipelineError(f"{folder}: no hands of {game.name}; ingest logs first")
    gathered = _gather(game, rows, read_manifest(folder).options.alias)
    return gathered.records, gathered.names


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the hands of a dataset that were played by the rules and stakes of its games."""
    for batch in hand_batches(folder, _COLUMNS):
        yield from (row for row in batch.to_pylist() if row["stakes"] == "-")


def _gather(game: Game, rows: list[dict[str, Any]], alias: dict[str, str]) -> _Hands:
    """Turn the rows of one game's hands into arrays."""
    files: dict[str, int] = {}
    hands = []
    for row in rows:
        holes, *board = row["cards"].split("/")
        payoffs = tuple(float(word) for word in row["payoffs"].split("|"))
        players = tuple(alias.get(name, name) for name in row["names"].split("|"))
        hands.append(Hand(row["hand"], row["betting"], tuple(holes.split("|")), tuple(board), payoffs, players))
    deals = np.array([row["deal"] for row in rows], np.uint64)
    records, names = records_of(game, hands, deals)
    file = np.array([files.setdefault(row["file"], len(files)) for row in rows], np.int64)
    number = np.array([row["hand"] for row in rows], np.int64)
    return _Hands(records, names, list(files), file, number, has_all_cards(records))


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
