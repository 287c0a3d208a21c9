"""The table of counter-calibrations: which calibrated player wins most from each style, by matches in the arena.

In: a game and a number of hands. Out: for every style of a grid (aggression and rationality in percent) the calibrated
player of the same grid that wins most from it, with what it wins: all of the grid play a first match, the best few a
longer one on other deals, whose figures are the table's. `@calibrated:auto` plays by it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents.calibrated import Calibrated
from pipeline.agents.countering import StyleCounter, read_styles
from pipeline.arena.match import play_match
from pipeline.poker.game import Game
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress

GRID = (10.0, 30.0, 50.0, 70.0, 90.0)
FINALISTS = 4
LONGER = 8
"""times as many hands the best few play again"""


def measure_styles(
    game: Game, *, hands: int, seed: int = 1, grid: Sequence[float] = GRID, progress: Progress = no_progress
) -> tuple[tuple[float, float], list[StyleCounter]]:
    """The calibration that wins most from all styles together, and the counter to each style.

    Parameters: `hands` of each first match.
    """
    styles = list(itertools.product(grid, grid))
    players = {style: Calibrated("calibrated-{:g}-{:g}".format(*style), game, *style) for style in styles}
    won = np.zeros((len(styles), len(styles)))  # by the row's player
    total = len(styles) * (len(styles) + 1) // 2
    pairs = list(itertools.combinations(range(len(styles)), 2))
    for done, (i, j) in enumerate(pairs, start=1):
        match = play_match([players[styles[i]], players[styles[j]]], game, hands=hands, seed=seed)
        won[i, j] = match.mbb_per_hand()
        won[j, i] = -won[i, j]
        progress(done, total)
    found = []
    for j, style in enumerate(styles):
        finals = []
        for i in np.argsort(-won[:, j], kind="stable")[:FINALISTS]:
            match = play_match([players[styles[i]], players[style]], game, hands=LONGER * hands, seed=seed + 1)
            finals.append((match.mbb_per_hand(), match.ci95(), styles[i]))
        best = max(finals)
        found.append(StyleCounter(*style, best[2], round(best[0], 1), round(best[1], 1)))
        progress(len(pairs) + j + 1, total)
    return styles[int(won.mean(axis=1).argmax())], found


def save_styles(
    file: Path, game: Game, first: tuple[float, float], found: list[StyleCounter], facts: dict[str, Any]
) -> None:
    """Write the table of a game into a file, beside those of other games that it has."""
    table: dict[str, Any] = {"version": 1, "games": {}}
    if file.is_file():
        table = read_styles(file)
    rows = [[one.aggression, one.rationality, *one.counter, one.mbb_per_hand, one.ci95] for one in found]
    columns = ["aggression", "rationality", "counter_aggression", "counter_rationality", "mbb_per_hand", "ci95"]
    table["games"][game.name] = {**facts, "first": list(first), "columns": columns, "counters": rows}
    with replacing(file) as beside:
        beside.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
