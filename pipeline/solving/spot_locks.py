"""Strategies that a player is held to in a spot: numbers from a file or from Python.

In go mixes by line of betting, for all holdings alike or by range; out comes a function that a `SpotSolver` takes as a
lock. Mixes of an agent come from `pipeline.agents.spots`. The file is a JSON object: for each line (the betting since
the spot began, as ACPC writes it) either a list of probabilities, one per action in the tree's order, or an object of
such lists by range (`{"random": [0.5, 0.5], "AA,KK": [0, 1]}`), later ranges replacing earlier ones. A line of a later
street is locked alike on every board; lines that are not named stay free.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import parse_json
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.solving.ranges_text import parse_range
from pipeline.solving.spot import LockedMix
from pipeline.solving.spot_cards import PAIRS
from pipeline.solving.spot_tree import DECISION, PLAYERS, SpotTree


def lock_numbers(mixes: Mapping[str, Any]) -> LockedMix:
    """Return a lock from mixes by line: arrays (actions,) or (1326, actions), or objects of lists by range."""

    def locked(tree: SpotTree, node: int, board: tuple[int, ...], holdings: Array) -> Array | None:
        line = tree.lines[node]
        if line not in mixes:
            return None
        mix = _by_holding(mixes[line], int(tree.nodes.branches[node]), line)[holdings]
        if np.isnan(mix).any():
            raise PipelineError(f"the lock after {line!r} does not name all holdings: begin with the range `random`")
        return mix

    return locked


def _by_holding(mix: Any, actions: int, line: str) -> Array:
    """Return a mix for each of the 1,326 holdings, nan for those that it does not name."""
    table = np.full((len(PAIRS), actions), np.nan)
    try:
        if isinstance(mix, Mapping):
            for text, numbers in mix.items():
                table[parse_range(text) > 0] = np.asarray(numbers, np.float64)
        else:
            table[:] = np.asarray(mix, np.float64)
    except (TypeError, ValueError):
        raise PipelineError(f"the lock after {line!r} is not {actions} probabilities, one per action") from None
    return table


def check_lines(mixes: Mapping[str, Any], tree: SpotTree, player: int) -> None:
    """Refuse a lock with a line at which the player does not act."""
    own = [
        line
        for line, node in tree.index.items()
        if tree.nodes.kind[node] == DECISION and tree.nodes.player[node] == player
    ]
    for line in mixes:
        if line not in own:
            raise PipelineError(
                f"{PLAYERS[player]} does not act after {line!r} in this spot's tree{nearest(line, own)}"
            )


def read_lock(path: Path) -> dict[str, Any]:
    """Read mixes by line from a JSON file."""
    form = 'write JSON like {"c": [0.5, 0.5]}, a mix for each line of betting'
    try:
        mixes = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path} is not a lock ({error}): {form}") from None
    if not isinstance(mixes, dict) or not mixes:
        raise PipelineError(f"{path} is not a lock: {form}")
    return mixes
