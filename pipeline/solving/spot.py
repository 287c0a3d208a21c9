"""A spot solved: two ranges on a flop, turn or river, a pot, stacks and a menu of sizes; no sampling, no abstraction.

In goes a `PostflopSpot` and, if a player's strategy is to be fixed, locks. `SpotSolver` runs discounted counterfactual
regret minimisation (Brown and Sandholm 2019; alternating updates, alpha 1.5, beta 0 and gamma 3: on rivers and turns it
needs half of the iterations of CFR+ and no more than with the paper's gamma 2) over vectors of holdings, with every
card dealt, until the exploitability, which a best response of each player measures exactly, is at most a
target; `SpotSolution` of `spot_solution` is what comes out. Everything counts in pots: exploitability is half of what
the two best responses win beyond a zero-sum game, as a share of the pot.

A *lock* fixes a player's strategy at a decision. The solution is then an equilibrium of the game in which that player
has no choice there: with all of a player's decisions locked it is the other's best response. What such an answer risks
is measured by a best response of the locked player with its locks taken off.

Locks are functions; `lock_numbers` makes one of mixes by line (the betting since the spot began, as ACPC writes it),
which `read_lock` reads from a JSON object. A mix is a list of probabilities, one per action in the tree's order, or an
object of such lists by range (`{"random": [0.5, 0.5], "AA,KK": [0, 1]}`), later ranges replacing earlier ones. A line
of a later street is locked alike on every board; lines that are not named stay free. Mixes of an agent come from
`pipeline.agents.spots`.

Deals from the first street are shared by threads: a task is what follows one deal of one card, and writes to places of
its own; what the tasks found is added in their order, so that any number of workers gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from pipeline.poker.cards import cards_text
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.arrays import parse_json, whole_number
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.files import replacing
from pipeline.runtime.parallel import Workers
from pipeline.solving.ranges_text import parse_range
from pipeline.solving.spot_cards import PAIRS, BoardArrays, BoardSet, check_ranges, list_boards, without_board
from pipeline.solving.spot_kernels import (
    AVERAGE,
    BEST,
    BEST_FREE,
    UPDATE,
    Buffers,
    PassRule,
    SpotTables,
    backward,
    collect_deals,
    entries_at,
    forward,
    make_buffers,
    terminals,
    walk_deals_river,
    walk_deals_turn,
    write_steps,
)
from pipeline.solving.spot_tree import DEAL, DECISION, PLAYERS, Menu, SpotTree, TreeBuilder

GIGABYTE = 1e9
MAX_MEMORY = 8.0
"""gigabytes that a solve may take unless told otherwise"""
SYMMETRIES = 6
"""no board with three cards has more renamings of suits that leave it as it is"""
CHECKPOINT_VERSION = 1
ALPHA, GAMMA = 1.5, 3.0
"""exponents of the discounts of positive regrets and of sums of strategies"""
TASK_CHUNKS = 32
"""pieces that a pass is cut in, whatever the number of threads"""
FIRST_CHECK, CHECK_STEP, CHECK_GROWTH = 10, 5, 1.15
"""iterations until the exploitability is first measured, then the least and the relative distance of measurements"""

LockedMix = Callable[[SpotTree, int, tuple[int, ...], Array], "Array | None"]
"""called with tree, decision, board and holdings; returns (holdings, actions) probabilities, None where not locked"""


@dataclass(frozen=True)
class PostflopSpot:
    """A spot of a heads-up hand from a flop, turn or river on."""

    board: Array
    """3 to 5 cards"""
    ranges: Floats
    """(2, 1326) weights from 0 to 1, the player out of position first"""
    pot: float
    stack: float
    """what the shorter player has behind"""
    menu: Menu
    chip: float = 0.0
    """amounts are multiples of it; 0 for any amount"""
    min_bet: float = 0.0
    played: Mapping[str, float] = field(default_factory=dict)
    """amounts that were bet after certain lines of betting, which are on the menu there"""

    def __post_init__(self) -> None:
        """Refuse what cannot be dealt or bet."""
        if len(self.board) not in (3, 4, 5):
            raise PipelineError(
                f"the board {cards_text(self.board) or '(none)'} has {len(self.board)} cards: a spot has 3 to 5 cards, "
                "those of a flop, turn or river"
            )
        if not (0 < self.pot < 1e12 and 0 <= self.stack < 1e12):
            raise PipelineError(f"a pot of {self.pot:g} and a stack of {self.stack:g}: the pot must be above 0")
        if not ((self.ranges >= 0) & (self.ranges <= 1)).all():
            raise PipelineError("weights of a range go from 0 to 1")
        object.__setattr__(self, "ranges", np.stack([without_board(own, self.board) for own in self.ranges]))

    @property
    def street(self) -> int:
        """Return the street of the open board: 1 flop, 2 turn, 3 river."""
        return len(self.board) - 2

    def tree(self) -> SpotTree:
        """Return the betting tree."""
        return TreeBuilder(
            self.menu,
            street=self.street,
            pot=self.pot,
            stack=self.stack,
            chip=self.chip,
            min_bet=self.min_bet,
            played=self.played,
        ).grow()


class Measured(NamedTuple):
    """Values of a strategy and of the best responses to it, in pots."""

    value: tuple[float, float]
    """each player's share of the pot"""
    best: tuple[float, float]
    """the share each could have by a best response to the other, locks observed"""

    @property
    def exploitability(self) -> float:
        """Return half of what the best responses gain together."""
        return (sum(self.best) - sum(self.value)) / 2


class Discounts(NamedTuple):
    """The factors by which regrets above and below 0 and sums of strategies shrink before an iteration."""

    positive: float
    negative: float
    average: float


def discounted(iteration: int) -> Discounts:
    """Return the factors of discounted regret minimisation before an iteration, counted from 1.

    >>> [round(factor, 3) for factor in discounted(2)]
    [0.5, 0.5, 0.125]
    """
    before = (iteration - 1) ** ALPHA
    return Discounts(before / (before + 1), 0.5, ((iteration - 1) / iteration) ** GAMMA)


def linear_plus(iteration: int) -> Discounts:
    """Return the factors of CFR+ with linear averages."""
    return Discounts(1.0, 0.0, (iteration - 1) / iteration)


def street_depth(solver: SpotSolver, most: int) -> int:
    """Return the number of streets whose tables have at most `most` entries; one at least."""
    fitting = [depth for depth in range(1, solver.depth + 1) if solver.entries_of(depth) <= most]
    return max(fitting, default=1)


def memory_needed(tree: SpotTree, hands: Sequence[Sequence[int]]) -> float:
    """Return how many gigabytes a run takes; `hands` are each street's and player's holdings over all its boards."""
    segments = tree.segments
    entries = 0
    for street, of_players in enumerate(hands, start=4 - len(hands)):
        counts = segments.vectors[segments.street == street].sum(axis=0, dtype=np.int64)
        entries += sum(int(count) * own for count, own in zip(counts, of_players, strict=True))
    deals = int((tree.nodes.kind[: segments.first[1]] == DEAL).sum())
    results = deals * max(hands[1]) if len(hands) > 1 else 0
    return (8 * entries + 10 * sum(map(sum, hands)) + 4 * results) / GIGABYTE


def _most_hands(spot: PostflopSpot) -> list[list[int]]:
    """Return the holdings of each street and player over all boards, suits told apart and cards in the way counted."""
    counts = [int((own > 0).sum()) for own in spot.ranges]
    boards, hands = 1, []
    for opened in range(len(spot.board), 6):
        hands.append([boards * count for count in counts])
        boards *= 52 - opened
    return hands


def _refuse_above(needed: float, limit: float) -> None:
    if needed > limit:
        raise PipelineError(
            f"this spot needs {needed:.1f} GB and {limit:g} GB are allowed: name fewer sizes, fewer raises or narrower "
            "ranges, or allow more with --memory"
        )


class SpotSolver:
    """A run: the tree, the boards, the tables of regrets and sums of strategies, and the threads."""

    def __init__(
        self,
        spot: PostflopSpot,
        *,
        locks: Sequence[LockedMix | None] = (None, None),
        workers: int = 2,
        max_memory: float = MAX_MEMORY,
        isomorphism: bool = True,
        discounts: Callable[[int], Discounts] = discounted,
        streets: list[BoardSet] | None = None,
        depth: int = 3,
        possible: bool = True,
    ) -> None:
        """Prepare a run; a spot that would take over `max_memory` gigabytes is refused before anything is allocated.

        Parameters: `locks`, by player; with any, boards that differ only in suits are solved one by one, because a
        fixed strategy may tell suits apart. `streets` are the boards, where they are known already. `depth` is the
        number of streets that get tables: with fewer than all, nothing can be solved. Ranges that cannot be dealt
        together are refused if `possible`.
        """
        self.spot, self.discounts = spot, discounts
        self.pairs = check_ranges(spot.board, spot.ranges) if possible else 0.0
        self.tree = spot.tree()
        self.isomorphism = isomorphism and not any(locks)
        _refuse_above(memory_needed(self.tree, _most_hands(spot)) / (SYMMETRIES if self.isomorphism else 1), max_memory)
        self.streets = streets or list_boards(spot.board, spot.ranges, isomorphism=self.isomorphism)
        self.boards: list[BoardArrays] = [street.arrays for street in self.streets]
        self._check_memory(max_memory)
        self.iteration = 0
        self.depth = min(depth, len(self.streets))
        base, size = self._places(self.depth)
        self.tables = SpotTables(
            np.zeros(size, np.float32), np.zeros(size, np.float32), base, self.tree.nodes, self.tree.segments
        )
        self.workers = Workers(workers)
        self.root_reach = [
            spot.ranges[player][self.streets[0].holdings(player, 0)].astype(np.float32) for player in range(2)
        ]
        self.buffers = self.buffers_of(0)
        self._prepare_deals(workers)
        for player, lock in enumerate(locks):
            if lock is not None:
                self._fix(player, lock)

    # Memory

    def _check_memory(self, limit: float) -> None:
        """Refuse a spot whose tables, boards and values of deals take over `limit` gigabytes."""
        needed = memory_needed(
            self.tree, [[int(street.sizes(player).sum()) for player in range(2)] for street in self.streets]
        )
        _refuse_above(needed, limit)

    def _places(self, depth: int) -> tuple[Array, int]:
        """Return where the entries of each node's segment and player begin, and how many `depth` streets have."""
        segments, nodes = self.tree.segments, self.tree.nodes
        base = np.zeros((len(segments.street), 2), np.int64)
        size = 0
        for segment, street in enumerate(segments.street):
            if street - self.spot.street >= depth:
                break  # segments stand in order of their streets
            for player in range(2):
                base[segment, player] = size
                hands = int(self.streets[street - self.spot.street].sizes(player).sum())
                size += int(segments.vectors[segment, player]) * hands
        return base[self.tree.segment_of, nodes.player], size

    def buffers_of(self, street: int) -> Buffers:
        """Return buffers for the batches of a street, counted from the first of the spot."""
        segments = self.tree.segments
        of_street = segments.street[segments.batches[:-1]] == street + self.spot.street
        hands = max(int(self.streets[street].sizes(player).max()) for player in range(2))
        nodes = np.diff(segments.first[segments.batches])[of_street].max(initial=1)
        return make_buffers(int(segments.slots[of_street].max(initial=1)), int(nodes), hands)

    def _prepare_deals(self, workers: int) -> None:
        """List the tasks of a pass: every batch that follows the first segment, with every card."""
        segments, later = self.tree.segments, len(self.streets) > 1
        boards = len(self.streets[1].boards) if later else 0
        tasks, rows = [], 0
        for board in range(boards):
            for batch in range(*segments.children[0]):
                tasks.append((batch, board, rows))
                rows += int(segments.batches[batch + 1] - segments.batches[batch])
        self.tasks = np.array(tasks, np.int32).reshape(-1, 3)
        width = max(int(self.streets[1].sizes(player).max()) for player in range(2)) if later else 0
        self.results = np.zeros((rows, width), np.float32)
        self.free: SimpleQueue[list[Buffers]] = SimpleQueue()
        for _ in range(workers if later else 0):
            self.free.put([self.buffers_of(street) for street in range(1, len(self.streets))])
        self.river_range = (
            np.searchsorted(self.boards[2].parent, np.arange(boards + 1)).astype(np.int32)
            if len(self.streets) == 3
            else np.zeros(1, np.int32)
        )

    # Passes

    def walk(self, rule: PassRule) -> Array:
        """Make a pass; return the hero's values at the nodes of the first segment, (nodes, holdings): a buffer."""
        for player in range(2):
            self.buffers.reach[player, 0, : len(self.root_reach[player])] = self.root_reach[player]
        forward(self.tables, self.boards[0], 0, 0, rule, self.buffers)
        terminals(self.tables, self.boards[0], 0, 0, rule, self.buffers)
        if len(self.tasks):
            parts = self.workers.slices(len(self.tasks), parts=TASK_CHUNKS)
            self.workers.map(lambda part: self._walk_tasks(part, rule), parts)
            chance = self.chance(0)
            collect_deals(
                self.tables, self.boards[0], self.boards[1], self.tasks, rule, chance, self.results, self.buffers
            )
        backward(self.tables, self.boards[0], 0, 0, rule, self.buffers)
        size = len(self.root_reach[rule.hero])
        return self.buffers.value[: self.tree.segments.first[1], :size]

    def chance(self, street: int) -> float:
        """Return the chance of a card after a street: neither the board nor the four hole cards can come."""
        return 1.0 / (52 - 4 - len(self.spot.board) - street)

    def _walk_tasks(self, part: slice, rule: PassRule) -> None:
        """Walk what follows some deals of the first segment."""
        free = self.free.get()
        try:
            reach = self.buffers.reach
            first, last = int(part.start), int(part.stop)
            if len(self.streets) == 2:
                walk_deals_river(
                    self.tables,
                    self.boards[0],
                    self.boards[1],
                    self.tasks,
                    first,
                    last,
                    rule,
                    reach,
                    free[0],
                    self.results,
                )
            else:
                walk_deals_turn(
                    self.tables,
                    self.boards[0],
                    self.boards[1],
                    self.boards[2],
                    self.river_range,
                    self.tasks,
                    first,
                    last,
                    rule,
                    self.chance(1),
                    reach,
                    free[0],
                    free[1],
                    self.results,
                )
        finally:
            self.free.put(free)

    def iterate(self) -> None:
        """Run an iteration: update the tables of player 0, then of player 1."""
        self.iteration += 1
        factors = self.discounts(self.iteration)
        for hero in range(2):
            self.walk(PassRule(hero, UPDATE, *factors))

    def values(self, hero: int, mode: int) -> Array:
        """Return the hero's values in a mode at the nodes of the first segment, (nodes, holdings)."""
        return self.walk(PassRule(hero, mode, 1.0, 1.0, 1.0))

    def share(self, hero: int, mode: int) -> float:
        """Return the hero's share of the pot, in a mode."""
        total = self.values(hero, mode)[0].astype(np.float64) @ self.root_reach[hero].astype(np.float64)
        return float(total / self.pairs + 0.5)

    def measure(self) -> Measured:
        """Measure the average strategies by best responses."""
        first = self.share(0, AVERAGE)
        return Measured((first, 1.0 - first), (self.share(0, BEST), self.share(1, BEST)))

    def exploitability(self) -> float:
        """Return half of what best responses to the averages would win beyond a zero-sum game, locks observed."""
        return (self.share(0, BEST) + self.share(1, BEST) - 1.0) / 2

    def worst_case(self, player: int) -> float:
        """Return what a player's average is worth when the other answers it best, without its locks."""
        return 1.0 - self.share(1 - player, BEST_FREE)

    def run(
        self,
        target: float,
        max_iterations: int = 10_000,
        report: Callable[[int, float], None] = lambda iteration, exploitability: None,
        checkpoint: Path | None = None,
        interval: float = 300.0,
    ) -> float:
        """Iterate until the exploitability is at most `target`, or for `max_iterations`; return it.

        Parameters: `report` is called with iteration and exploitability whenever it was measured. `checkpoint` is
        written every `interval` seconds, and at the end.
        """
        stored, measured = time.monotonic(), self.exploitability()
        check = self._next_check()
        while measured > target and self.iteration < max_iterations:
            self.iterate()
            if self.iteration >= min(check, max_iterations):
                measured, check = self.exploitability(), self._next_check()
                report(self.iteration, measured)
            if checkpoint is not None and time.monotonic() - stored > interval:
                self.store(checkpoint)
                stored = time.monotonic()
        if checkpoint is not None and self.iteration:
            self.store(checkpoint)
        return measured

    def _next_check(self) -> int:
        """Return the iteration after which the exploitability is measured next: always the same ones."""
        check = FIRST_CHECK
        while check <= self.iteration:
            check = max(check + CHECK_STEP, int(check * CHECK_GROWTH))
        return check

    # Strategies

    def entries_of(self, depth: int) -> int:
        """Return how many entries the tables of `depth` streets have."""
        return self._places(depth)[1]

    def strategy_steps(self, depth: int, steps: int) -> Array:
        """Return the strategies of `depth` streets, laid out like the tables, in whole numbers of 1 / `steps`."""
        out = np.zeros(self.entries_of(depth), np.uint16)
        segments = self.tree.segments
        for batch in range(len(segments.batches) - 1):
            street = int(segments.street[segments.batches[batch]]) - self.spot.street
            if street >= depth:
                break
            for board in range(len(self.streets[street].boards)):
                write_steps(self.tables, self.boards[street], batch, board, steps, out)
        return out

    # Locks

    def _fix(self, player: int, lock: LockedMix) -> None:
        """Write what a lock says to the player's decisions, and mark them."""
        nodes = self.tree.nodes
        for node in np.flatnonzero((nodes.kind == DECISION) & (nodes.player == player)).tolist():
            street = self.street_of(node)
            for board, cards in enumerate(self.streets[street].boards):
                holdings = self.streets[street].holdings(player, board)
                mix = lock(self.tree, node, cards, holdings)
                if mix is None:
                    break
                self.entries(board, node)[:] = _checked_mix(
                    mix, (len(holdings), int(nodes.branches[node])), self.tree.lines[node]
                ).T
                nodes.locked[node] = 1

    def street_of(self, node: int) -> int:
        """Return the street of a node, counted from the first of the spot."""
        return int(self.tree.segments.street[self.tree.segment_of[node]]) - self.spot.street

    def entries(self, board: int, node: int) -> Array:
        """Return the sums of strategies of a decision on a board, (actions, holdings), a view."""
        nodes, street = self.tree.nodes, self.street_of(node)
        player, count = int(nodes.player[node]), int(nodes.branches[node])
        size = int(self.streets[street].sizes(player)[board])
        first = entries_at(self.tables, self.boards[street], node, board)
        return np.asarray(self.tables.average[first : first + count * size].reshape(count, size))

    # Checkpoints

    def fingerprint(self) -> str:
        """Hash everything that a run depends on."""
        digest = hashlib.sha256()
        spot, nodes = self.spot, self.tree.nodes
        about = [spot.board.tolist(), spot.pot, spot.stack, self.tree.lines, self.isomorphism, self.discounts.__name__]
        digest.update(json.dumps(about).encode())
        digest.update(spot.ranges.tobytes())
        digest.update(nodes.locked.tobytes())
        if nodes.locked.any():
            for node in np.flatnonzero(nodes.locked).tolist():
                for board in range(len(self.streets[self.street_of(node)].boards)):
                    digest.update(self.entries(board, int(node)).tobytes())
        return digest.hexdigest()

    def store(self, path: Path) -> None:
        """Write the iteration and the tables; a killed run leaves the old file or the new one."""
        parts = [self.tables.regret, self.tables.average]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.data)
        head = {
            "version": CHECKPOINT_VERSION,
            "spot": self.fingerprint(),
            "iteration": self.iteration,
            "sha256": digest.hexdigest(),
        }
        with replacing(path) as beside, beside.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            for part in parts:
                part.tofile(file)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint, which must be of the same spot, menu and locks."""
        remedy = "remove it or name another file with --checkpoint"
        try:
            with path.open("rb") as file:
                head = parse_json(file.readline(10_000))
                if not isinstance(head, dict) or head.get("version") != CHECKPOINT_VERSION:
                    raise ValueError("it has another version")
                iteration = whole_number(head.get("iteration"), "the iteration", 1, 1 << 40)
                if head.get("spot") != self.fingerprint():
                    raise PipelineError(f"{path} is the checkpoint of another spot, menu or lock: {remedy}")
                size = len(self.tables.regret)
                parts = [np.fromfile(file, np.float32, size) for _ in range(2)]
                digest = hashlib.sha256()
                for part in parts:
                    digest.update(part.data)
                if file.read(1) or digest.hexdigest() != head.get("sha256"):
                    raise ValueError("its checksum differs")
        except ValueError as error:
            raise PipelineError(f"{path} is no checkpoint of a spot ({error}): {remedy}") from None
        self.tables.regret[:], self.tables.average[:] = parts
        self.iteration = iteration


def _checked_mix(mix: Array, shape: tuple[int, int], line: str) -> Array:
    """Return a locked strategy if it has this shape and its rows are probabilities."""
    mix = np.asarray(mix, np.float64)
    if mix.shape != shape or not np.isfinite(mix).all() or (mix < 0).any() or (abs(mix.sum(axis=1) - 1) > 1e-4).any():
        raise PipelineError(
            f"the lock after {line!r} is not {shape[1]} probabilities that sum to 1 for each of {shape[0]} holdings"
        )
    return mix


# Locks as numbers from a file or from Python


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
