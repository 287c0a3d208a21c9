"""@teacher: a solved strategy as an agent: bucketed limit hold'em for two and three, Kuhn and Leduc poker.

Limit hold'em is played from the strategies that come with the package (see `solving.strategy`; `@teacher:FOLDER` plays
another that `solve holdem --out FOLDER` made). A decision is found by walking the betting tree along the betting codes
of its row, and by the bucket of its cards. All flop and turn holdings are assigned to their clusters on this machine at
first use and stored in the cache, under the checksum of the centroids, which the counters to many opponents share; a
river bucket comes from the exact strength. Small games are solved by CFR when the agent is made (two players: to an
exploitability under a thousandth of an ante).
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from pipeline.agents.names import plain_name
from pipeline.poker.cards import Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.strength.boards import HOLDINGS, boards
from pipeline.poker.strength.hand_clusters import STREETS, HandClusters
from pipeline.runtime.array_types import Array
from pipeline.runtime.diskcache import cache_root, load_or_build, open_array, store_array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress
from pipeline.solving.buckets import Buckets, make_buckets, without_rivers
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.layout import LayoutTables
from pipeline.solving.lookup import LookupFields, SmallTeacher, bucket_row, lookup_fields
from pipeline.solving.strategy import LEVELS, StoredStrategy, load_small_strategy, load_strategy

log = logging.getLogger(__name__)

VERSION = 1
"""format version of the cached tables; those of another version are made again"""
BUNDLED = {2: "teacher", 3: "teacher3"}
"""folders of limit hold'em's strategies, by players"""
ITERATIONS = {2: ("plus", 2_000), 3: ("plus", 500)}
"""method and iterations that solve a small game, by players; with more, external sampling"""


@kernel
def _look_up(
    rows: LookupFields, layout: LayoutTables, steps: Array, tables: Buckets, ranks: Ranking, out: Array
) -> int:
    """Write the probabilities of each row; return the number of the first row that is none of the game's, or -1."""
    for i in range(len(out)):
        place = bucket_row(i, rows, layout, tables, ranks)
        if place < 0:
            return i
        fold, raise_ = int(steps[place, 0]), int(steps[place, 1])
        out[i, 0] = fold / LEVELS
        out[i, 1] = (LEVELS - fold - raise_) / LEVELS
        out[i, 2] = raise_ / LEVELS
    return -1


@dataclass(frozen=True)
class Teacher:
    """Plays a stored strategy."""

    name: str
    game: Game
    stored: StoredStrategy = field(repr=False)
    tables: Buckets = field(repr=False)

    def probabilities(self, rows: Array) -> Array:
        out = np.empty((len(rows), 3))
        layout = self.stored.layout.tables
        bad = _look_up(lookup_fields(rows), layout, self.stored.steps, self.tables, ranking(), out)
        if bad >= 0:
            raise PipelineError(f"row {bad} is not a decision of {self.game.name}, the game that {self.name} plays")
        return out


def _open_table(folder: Path, street: int, clusters: int) -> Array | None:
    """Open the cached cluster of every flop or turn holding; None if it must be assigned (again)."""
    entries = len(boards(street).cards) * HOLDINGS[street]

    def fits(table: Array) -> bool:
        return table.dtype == np.uint16 and table.shape == (entries,) and int(table.max()) < clusters

    return open_array(folder / f"{STREETS[street]}.npy", VERSION, fits)


def _cached_buckets(stored: StoredStrategy, progress: Progress) -> Buckets:
    """Return the clusters of all flop and turn holdings: from the cache, else assigned now."""
    sizes = stored.layout.sizes
    centroids = hashlib.sha256(stored.flop.tobytes() + stored.turn.tobytes()).hexdigest()
    folder = cache_root() / "teacher" / centroids[:16]

    def open_cached() -> Buckets | None:
        flop, turn = (_open_table(folder, street, sizes[street]) for street in (1, 2))
        return None if flop is None or turn is None else without_rivers(flop, turn, sizes[3])

    def assign() -> Buckets:
        flop_clusters, turn_clusters = HandClusters(1, stored.flop, 0, 0.0), HandClusters(2, stored.turn, 0, 0.0)
        buckets = make_buckets(flop_clusters, turn_clusters, sizes[3], rivers=False, progress=progress)
        for street, table in ((1, buckets.flop), (2, buckets.turn)):
            store_array(folder / f"{STREETS[street]}.npy", table, VERSION)
        return buckets

    return load_or_build(folder, open_cached, assign)


@cache
def _open_strategy(folder: Path, game: Game) -> tuple[StoredStrategy, Buckets]:
    stored = load_strategy(folder, game)
    quarters = 0

    def progress(done: int, total: int) -> None:
        nonlocal quarters
        if 4 * done // total >= quarters < 4:
            log.warning("preparing @teacher on this machine (first use only, about a minute) ... %d%%", 25 * quarters)
            quarters += 1

    return stored, _cached_buckets(stored, progress)


@cache
def _solve_small(game: Game) -> Array:
    method, iterations = ITERATIONS.get(game.players, ("external", 50_000))
    solver = ExactSolver(game, method)
    solver.run(iterations)
    return solver.strategy()


def make(name: str, arguments: str, game: Game) -> Teacher | SmallTeacher:
    """Return @teacher, or @teacher:FOLDER for another stored strategy."""
    text = plain_name(f"@{name}:{arguments}")
    return play_stored(Path(arguments), game, text) if arguments else _bundled(text, game)


def play_stored(folder: Path, game: Game, name: str) -> Teacher | SmallTeacher:
    """Return an agent that plays the strategy stored in a folder."""
    if game.hole_cards == 1:
        return SmallTeacher(name, game, load_small_strategy(folder, game))
    return Teacher(name, game, *_open_strategy(folder, game))


def _bundled(name: str, game: Game) -> Teacher | SmallTeacher:
    """Return the teacher of a game: hold'em's comes with the package, small games are solved at once."""
    if game.hole_cards == 1:
        return SmallTeacher(name, game, _solve_small(game))
    if game.nolimit or game.players not in BUNDLED or not game.is_holdem:
        raise PipelineError(
            f"@teacher plays limit hold'em for two or three, Kuhn and Leduc, not {game.name}; try @equity"
        )
    return play_stored(Path(str(files("pipeline.agents"))) / "resources" / BUNDLED[game.players], game, name)
