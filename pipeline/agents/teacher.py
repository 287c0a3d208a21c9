"""@teacher: a solved strategy as an agent: bucketed heads-up limit hold'em, Kuhn and Leduc poker.

Heads-up limit hold'em is played from the strategy that comes with the package (see `solve.strategy`;
`@teacher:FOLDER` plays another that `solve holdem --out FOLDER` made). A decision is found by walking the betting
tree along the words of its row and by the bucket of its cards. All flop and turn holdings are assigned to their
clusters on this machine at first use and kept in the cache, under the checksum of the strategy's file; a river
bucket comes from the exact strength. Small games are solved by CFR when the agent is made (two players: to an
exploitability under a thousandth of an ante).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.agents import plain_name
from pipeline.cards import NO_CARD, Ranking, ranking
from pipeline.clusters import STREETS, Clusters
from pipeline.diskcache import cache_root, keep, locked, open_kept
from pipeline.errors import PipelineError
from pipeline.files import Progress
from pipeline.game import Game
from pipeline.kernels import kernel
from pipeline.solve.buckets import Buckets, bucket_of_cards, make_buckets, without_rivers
from pipeline.solve.cfr import Solver
from pipeline.solve.layout import T_ACTOR, T_ROUND, T_SLOT
from pipeline.solve.small import SmallGame
from pipeline.solve.strategy import LEVELS, Stored, load_strategy
from pipeline.strength.boards import HOLDINGS, boards

__all__ = ["SmallTeacher", "Teacher", "make"]

Array = npt.NDArray[Any]
log = logging.getLogger(__name__)

VERSION = 1
"""of the kept tables; those of another version are made again"""
ITERATIONS = {2: ("plus", 2_000), 3: ("plus", 500)}
"""How small games are solved, by players; with more, by external sampling."""


@kernel(leaf=True)
def _node(words: Array, child: Array) -> int:
    """The node that the betting words of a row lead to; -1 if they are no betting of the game."""
    node = 0
    for street in range(4):
        word = words[street]
        shift = 0
        while word >> shift > 0:
            shift += 3
        while shift > 0:
            shift -= 3
            action = (word >> shift & 7) - 1
            if action < 0 or action > 2:
                return -1
            node = child[node, action]
            if node < 0:
                return -1
    return node


class Situations(NamedTuple):
    """The fields of rows that a stored strategy is looked up by, one entry per row."""

    words: Array
    hole: Array
    board: Array
    street: Array
    position: Array


class Entries(NamedTuple):
    """A stored strategy with its layout (see `solve.layout`) as the kernel reads them."""

    tree: Array
    child: Array
    offsets: Array
    counts: Array
    steps: Array


@kernel
def _look_up(rows: Situations, kept: Entries, tables: Buckets, ranks: Ranking, out: Array) -> int:
    """Write the probabilities of each row; the number of the first row that is none of the game's, or -1."""
    for i in range(len(rows.words)):
        node = _node(rows.words[i], kept.child)
        round_, player = int(rows.street[i]), int(rows.position[i])
        if node < 0 or kept.tree[node, T_ACTOR] != player or kept.tree[node, T_ROUND] != round_:
            return i
        bucket = bucket_of_cards(round_, rows.hole[i], rows.board[i], tables, ranks)
        at = kept.offsets[round_, player] + bucket * kept.counts[round_, player] + kept.tree[node, T_SLOT]
        fold, raise_ = int(kept.steps[at, 0]), int(kept.steps[at, 1])
        out[i, 0] = fold / LEVELS
        out[i, 1] = (LEVELS - fold - raise_) / LEVELS
        out[i, 2] = raise_ / LEVELS
    return -1


@dataclass(frozen=True)
class Teacher:
    """Plays a stored strategy."""

    name: str
    game: Game
    stored: Stored = field(repr=False)
    tables: Buckets = field(repr=False)

    def probabilities(self, rows: Array) -> Array:
        layout = self.stored.layout
        fields = ("betting_codes", "hole", "board", "street", "position")
        situations = Situations(*(np.ascontiguousarray(rows[name]) for name in fields))
        kept = Entries(layout.tree, layout.children, layout.offsets, layout.counts, self.stored.steps)
        out = np.empty((len(rows), 3))
        bad = _look_up(situations, kept, self.tables, ranking(), out)
        if bad >= 0:
            raise PipelineError(f"row {bad} is not a decision of {self.game.name}, the game that {self.name} plays")
        return out


@dataclass(frozen=True)
class SmallTeacher:
    """Plays a solution of a game with one hole card."""

    name: str
    game: Game
    strategy: Array = field(repr=False)
    """(decisions, 3), see `solve.cfr`"""

    def probabilities(self, rows: Array) -> Array:
        small = SmallGame(self.game)
        out = np.empty((len(rows), 3))
        for i, row in enumerate(rows):
            node = _node(np.ascontiguousarray(row["betting_codes"]), small.tree.child)
            lowest = 13 - self.game.ranks
            board = int(row["board"][0])
            out[i] = self.strategy[
                small.row_at(node, int(row["hole"][0] >> 2) - lowest, -1 if board == NO_CARD else (board >> 2) - lowest)
            ]
        return out


def _open_table(folder: Path, street: int, clusters: int) -> Array | None:
    """The kept cluster of every flop or turn holding; None if it must be assigned (again)."""
    entries = len(boards(street).cards) * HOLDINGS[street]

    def fits(table: Array) -> bool:
        return table.dtype == np.uint16 and table.shape == (entries,) and int(table.max()) < clusters

    return open_kept(folder / f"{STREETS[street]}.npy", VERSION, fits)


def _kept_buckets(stored: Stored, progress: Progress) -> Buckets:
    """The clusters of all flop and turn holdings: kept in the cache, else assigned now."""
    folder = cache_root() / "teacher" / stored.digest[:16]
    sizes = stored.layout.sizes
    with locked(folder):
        flop, turn = (_open_table(folder, street, sizes[street]) for street in (1, 2))
        if flop is not None and turn is not None:
            return without_rivers(flop, turn, sizes[3])
        near, far = Clusters(1, stored.flop, 0, 0.0), Clusters(2, stored.turn, 0, 0.0)
        made = make_buckets(near, far, sizes[3], rivers=False, progress=progress)
        for street, table in ((1, made.flop), (2, made.turn)):
            keep(folder / f"{STREETS[street]}.npy", table, VERSION)
    return made


@cache
def _opened(folder: Path, game: Game) -> tuple[Stored, Buckets]:
    stored = load_strategy(folder, game)
    shown = 0

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if 4 * done // total >= shown < 4:
            log.warning("preparing @teacher on this machine (first use only, about a minute) ... %d%%", 25 * shown)
            shown += 1

    return stored, _kept_buckets(stored, progress)


@cache
def _solved(game: Game) -> Array:
    method, iterations = ITERATIONS.get(game.players, ("external", 50_000))
    solver = Solver(game, method)
    solver.run(iterations)
    return solver.strategy()


def make(name: str, arguments: str, game: Game) -> Teacher | SmallTeacher:
    """@teacher, or @teacher:FOLDER for another stored strategy."""
    text = plain_name(f"@{name}:{arguments}")
    if game.hole_cards == 1 and not arguments:
        return SmallTeacher(text, game, _solved(game))
    bundled = Path(str(files("pipeline"))) / "resources" / "teacher"
    if not arguments and (game.nolimit or game.players != 2 or not game.is_holdem):
        raise PipelineError(f"@teacher plays heads-up limit hold'em, Kuhn and Leduc, not {game.name}; try @equity")
    return Teacher(text, game, *_opened(Path(arguments) if arguments else bundled, game))
