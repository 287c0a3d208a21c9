"""Stored portfolios: counter-strategies over groups of hands, sketches of opponents, and a table of winnings.

In: counter-strategies over the groups of a solved strategy (see `groups`), sketches of known opponents, and
what each strategy wins from each of them. Out: one xz file with a safetensors image inside and a manifest, stored
and checked like a strategy (see `strategy`), and read back as a `Portfolio`. The first strategy is always the solved
one itself, whose file is not repeated; a portfolio belongs to the very strategy that its manifest names by checksum.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.runtime.array_types import Array, Bytes, Singles
from pipeline.runtime.arrays import expect, read_arrays
from pipeline.runtime.errors import PipelineError
from pipeline.solving.groups import HandGroups
from pipeline.solving.strategy import (
    HEADER,
    LEVELS,
    dequantise,
    is_portfolio,
    read_packed,
    strategy_facts,
    transposed,
    unpack,
)

EQUILIBRIUM = "teacher"
"""the opponent that plays the solved strategy"""
MOST_MEMBERS = 200
"""strategies of a portfolio at most, and as many opponents"""


@dataclass(frozen=True)
class Portfolio:
    """Counter-strategies, sketches of opponents, and what each strategy wins from each opponent."""

    members: tuple[str, ...]
    """names of the strategies, the solved one first"""
    opponents: tuple[str, ...]
    steps: tuple[Bytes, ...]
    """of every strategy but the first: (rows over groups, 2), see `strategy.quantise`"""
    sketches: tuple[Singles, ...]
    """of every opponent: (rows over bands, 3)"""
    values: Array
    """(strategies, opponents): what each strategy wins, in mbb/h"""
    facts: dict[str, Any]
    """how it was made"""


def load_portfolio(folder: Path, groups: HandGroups) -> Portfolio:
    """Read a portfolio; one that is damaged or belongs to another strategy is refused."""
    if not is_portfolio(folder):
        raise PipelineError(f"{folder} does not hold a portfolio: make it again or reinstall")
    manifest = strategy_facts(folder)
    data = read_packed(folder, manifest, "make it again or reinstall")
    try:
        members, opponents = (tuple(str(name) for name in manifest[key]) for key in ("members", "opponents"))
        if not (1 < len(members) <= MOST_MEMBERS and 0 < len(opponents) <= MOST_MEMBERS):
            raise ValueError("its lists are of another kind")
        if EQUILIBRIUM not in opponents or len(set(opponents)) < len(opponents):
            raise ValueError(f"its opponents are not all different, or {EQUILIBRIUM} is not among them")
        if manifest["strategy"] != groups.stored.digest:
            raise ValueError("it belongs to another strategy")
        layout, bands = groups.layout, groups.bands
        most = (
            2 * layout.rows * len(members) + 2 * bands.rows * len(opponents) + 4 * MOST_MEMBERS * MOST_MEMBERS + HEADER
        )
        arrays = read_arrays(unpack(data, most))
        counters = expect(arrays, "counters", np.uint8, (len(members) - 1, 2, layout.rows), 0, LEVELS)
        sketches = expect(arrays, "opponents", np.uint8, (len(opponents), 2, bands.rows), 0, LEVELS)
        values = expect(arrays, "values", np.float32, (len(members), len(opponents)), -1e6, 1e6)
        for part in (counters, sketches):
            if (part[:, 0] > LEVELS - part[:, 1]).any():
                raise ValueError("its probabilities sum to more than 1")
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError) as error:
        raise PipelineError(f"{folder} does not hold a portfolio ({error}): make it again or reinstall") from None
    steps = tuple(transposed(layout, np.ascontiguousarray(table.T), back=True) for table in counters)
    mixes = tuple(dequantise(transposed(bands, np.ascontiguousarray(table.T), back=True)) for table in sketches)
    taken = ("version", "game", "sizes", "levels", "strategy", "members", "opponents", "sha256")
    facts = {key: value for key, value in manifest.items() if key not in taken}
    return Portfolio(members, opponents, steps, mixes, values.astype(np.float64), facts)
