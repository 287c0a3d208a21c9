"""A solved spot: mixes, values and equities of every holding at every node, and its files.

In goes a `SpotSolver` whose run has ended; out comes a `SpotSolution` with the figures of the whole spot, and
`node(line, cards)` for one node: who acts, the actions, and for each holding of both players the probability to get
there, the value in chips, the equity and the mix. A value is what the player can expect to take from the pot from that
node on, less what it will put in: at every node the values of both players, weighed by how likely their hands are, sum
to the pot. An equity is the share of the pot if everybody checked from there on.

A solution is saved as a folder: `spot.safetensors` has the ranges, the strategies in steps of 1/65535 and the values
on the first street, `manifest.json` the spot, the menu, the figures and the SHA-256. Strategies of later streets are
stored where they fit in `MAX_STORED` bytes; where they do not, nodes of those streets cannot be asked for after
loading.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeline.models.artifacts import MANIFEST, check_replaceable, has_files, read_checked, read_files
from pipeline.poker.cards import card_text, cards_text, class_text, parse_cards, start_class
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.arrays import expect, finite_number, parse_json, read_arrays, whole_number, write_arrays
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.files import discard, replacing, sha256
from pipeline.runtime.kernels import seconds_compiling
from pipeline.solving.spot import MAX_MEMORY, LockedMix, PostflopSpot, SpotSolver, street_depth
from pipeline.solving.spot_cards import PAIRS, renamed
from pipeline.solving.spot_kernels import AVERAGE, Buffers, PassRule, forward, walk_river, walk_turn
from pipeline.solving.spot_tree import ALL_IN, DECISION, PLAYERS, STREETS, Menu, SpotTree

if TYPE_CHECKING:
    import pandas as pd

ARRAYS = "spot.safetensors"
VERSION = 1
MAX_STORED = 1 << 28
"""bytes of strategies that a saved solution may take beyond those of the first street"""
STEPS = 65535
"""a stored probability is a whole number from 0 to this"""
NO_HERO = 2
"""a hero who is none of the players: both play their averages"""


def holding_text(number: int) -> str:
    """Return the cards of a holding, such as `AhKd`."""
    high, low = PAIRS[number]
    return card_text(int(high)) + card_text(int(low))


class SpotNode(NamedTuple):
    """A node of a solved spot: arrays by player have an entry for each holding that the board leaves possible."""

    line: str
    """the betting since the spot began, as ACPC writes it"""
    board: tuple[int, ...]
    player: int | None
    """who acts: 0 out of position, 1 in position; None where a card comes next"""
    actions: list[str]
    """as ACPC writes them"""
    names: list[str]
    """in words"""
    pot: float
    holdings: tuple[Array, Array]
    """by player: numbers of holdings (`pair_index`)"""
    reach: tuple[Floats, Floats]
    """weight in the range times the probability that the player's own actions lead here"""
    values: tuple[Floats, Floats]
    """chips; nan where the other player never gets here"""
    equities: tuple[Floats, Floats]
    """shares of the pot if everybody checked from here on"""
    mix: Floats
    """(holdings of the player to act, actions); no rows where a card comes next or the hand is over"""

    def average(self, player: int, what: Array) -> float:
        """Return the mean of a player's values or equities over pairs of hands as likely as they are here."""
        weights = self.reach[player] * compatible(self, player)
        valid = weights > 0
        return float((weights * np.where(valid, what, 0.0)).sum() / weights.sum()) if valid.any() else math.nan

    def frequencies(self) -> Floats:
        """Return how often the player to act takes each action."""
        assert self.player is not None
        weights = self.reach[self.player] * compatible(self, self.player)
        total = weights.sum()
        return np.asarray(weights @ self.mix / total) if total > 0 else self.mix.mean(axis=0)

    def frame(self, player: int | None = None) -> pd.DataFrame:
        """Return a row per holding: hand, class, reach, equity, value, and the mix where the player acts."""
        import pandas as pd

        seat = player if player is not None else self.player or 0
        numbers = self.holdings[seat].tolist()
        columns: dict[str, Any] = {
            "hand": [holding_text(number) for number in numbers],
            "class": [class_text(start_class(int(PAIRS[number, 0]), int(PAIRS[number, 1]))) for number in numbers],
            "reach": self.reach[seat],
            "equity": self.equities[seat],
            "value": self.values[seat],
        }
        if seat == self.player:
            columns |= {name: self.mix[:, place] for place, name in enumerate(self.names)}
        return pd.DataFrame(columns)


def compatible(node: SpotNode, player: int) -> Floats:
    """Return for each of a player's holdings the other's reach, holdings with a common card left out."""
    return compatible_reach(node.holdings[player], node.holdings[1 - player], node.reach[1 - player])


def compatible_reach(holdings: Array, others: Array, reach: Floats) -> Floats:
    """Return the summed reach of the other player's holdings that share no card, for each holding."""
    by_card = np.bincount(PAIRS[others].ravel(), np.repeat(reach, 2), minlength=52)
    own = np.zeros(len(PAIRS))
    own[others] = reach
    rest = reach.sum() - by_card[PAIRS[holdings]].sum(axis=1) + own[holdings]
    return np.where(rest > 1e-6 * max(reach.sum(), 1e-30), rest, 0.0)


@dataclass
class SpotSolution:
    """A solved spot."""

    spot: PostflopSpot
    iterations: int
    exploitability: float
    """half of what best responses win beyond a zero-sum game, as a share of the pot, locks observed"""
    value: tuple[float, float]
    """each player's share of the pot"""
    equity: tuple[float, float]
    """each player's share if everybody checked to the showdown"""
    seconds: float
    """compiling left out"""
    target: float
    locked: tuple[bool, bool] = (False, False)
    """players of whom decisions are fixed"""
    worst_case: tuple[float | None, float | None] = (None, None)
    """where the other player is locked: what the strategy is worth when that player answers it best, freely"""
    free_value: tuple[float, float] | None = None
    """with locks: the shares of the pot when no player is locked"""
    solver: SpotSolver = field(repr=False, kw_only=True)
    root_values: tuple[Array, Array] = field(repr=False, kw_only=True)
    """by player, (nodes of the first street, holdings) values in pots times the other's reach"""

    @property
    def risk(self) -> tuple[float | None, float | None]:
        """Return by player what the answer to a lock risks: the share of the pot that it can lose to free play."""
        if self.free_value is None:
            return None, None
        first, second = (
            None if worst is None else value - worst
            for value, worst in zip(self.free_value, self.worst_case, strict=True)
        )
        return first, second

    @property
    def stored_streets(self) -> int:
        """Return of how many streets the strategies are known."""
        return self.solver.depth

    def lines(self) -> list[str]:
        """Return the bettings of all decisions of the first street."""
        tree = self.solver.tree
        last = int(tree.segments.first[1])
        return [tree.lines[node] for node in range(last) if tree.nodes.kind[node] == DECISION]

    def node(self, line: str = "", cards: str = "") -> SpotNode:
        """Return the node after a betting; `cards` are those dealt since the spot began.

        Streets of a line are separated by `/`, and a line that ends in `/` is the start of a street.
        """
        return _NodeReader(self).read(line, parse_cards(cards).tolist())

    def frame(self, line: str = "", cards: str = "", player: int | None = None) -> pd.DataFrame:
        """Return a row per holding of the player to act, or of `player`, at a node; see `SpotNode.frame`."""
        return self.node(line, cards).frame(player)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the whole spot, for JSON."""
        about: dict[str, Any] = {
            "board": cards_text(self.spot.board),
            "pot": self.spot.pot,
            "stack": self.spot.stack,
            "iterations": self.iterations,
            "exploitability": self.exploitability,
            "target": self.target,
            "seconds": self.seconds,
            "value": list(self.value),
            "equity": list(self.equity),
        }
        if any(self.locked):
            about |= {
                "locked": list(self.locked),
                "worst_case": list(self.worst_case),
                "free_value": None if self.free_value is None else list(self.free_value),
                "risk": list(self.risk),
            }
        return about

    def save(self, path: Path | str) -> Path:
        """Write the solution to a folder; return it."""
        path = Path(path)
        check_solution_target(path)
        depth = street_depth(self.solver, MAX_STORED // 2)
        arrays = {
            "ranges": self.spot.ranges,
            "strategy": self.solver.strategy_steps(min(depth, self.solver.depth), STEPS),
            "locked": self.solver.tree.nodes.locked,
            "value.oop": self.root_values[0],
            "value.ip": self.root_values[1],
        }
        with replacing(path) as part:
            part.mkdir()
            write_arrays(part / ARRAYS, arrays)
            manifest = {
                "version": VERSION,
                "kind": "spot",
                **self.figures(),
                "menu": _menu_json(self.spot.menu),
                "chip": self.spot.chip,
                "min_bet": self.spot.min_bet,
                "played": dict(self.spot.played),
                "isomorphism": self.solver.isomorphism,
                "streets": min(depth, self.solver.depth),
                "sha256": {ARRAYS: sha256(part / ARRAYS)},
            }
            (part / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        return path


class _Path(NamedTuple):
    """Where a walk down to a node stands."""

    batch: int
    board: int
    street: int
    """counted from the first of the spot"""
    buffers: Buffers
    places: tuple[Array, Array]
    """by player: for each holding of the spot's first board its place in the list of this board, -1 if not there"""
    order: tuple[int, ...] = (0, 1, 2, 3)
    """the names that the suits have on this board"""


def find_node(spot: PostflopSpot, tree: SpotTree, line: str, cards: Sequence[int]) -> int:
    """Return the node after a betting and cards dealt; refuse what is not in a spot's tree."""
    if line not in tree.index:
        raise PipelineError(f"the line {line!r} is not in this spot's tree{nearest(line, tree.index)}")
    board = (*spot.board.tolist(), *cards)
    if line.count("/") != len(cards) or len(set(board)) < len(board):
        raise PipelineError(
            f"after {line!r} {line.count('/')} cards have come since {cards_text(spot.board)}, other ones than those: "
            f"{cards_text(cards) or 'none'} will not do"
        )
    return tree.index[line]


class _NodeReader:
    """Walks to a node, carrying both players' reach, and values it there."""

    def __init__(self, solution: SpotSolution) -> None:
        self.solution, self.solver, self.tree = solution, solution.solver, solution.solver.tree

    def read(self, line: str, cards: list[int]) -> SpotNode:
        """Return a node."""
        node = find_node(self.solution.spot, self.tree, line, cards)
        depth, board = len(cards), (*self.solution.spot.board.tolist(), *cards)
        if depth >= self.solution.stored_streets:
            raise PipelineError(
                f"only the strategies of the {STREETS[self.solution.spot.street]} are stored with this solution: solve "
                f"again to see the {STREETS[self.solution.spot.street + depth]}"
            )
        path = self._root()
        for card, segment in zip(cards, self._segments(node), strict=True):
            path = self._deal(path, card, segment)
        return self._node(node, path, board)

    def _segments(self, node: int) -> list[int]:
        """Return the segments of later streets on the way to a node."""
        segment, way = int(self.tree.segment_of[node]), []
        while segment:
            way.append(segment)
            segment = int(self.tree.segment_of[self.tree.segments.deal[segment]])
        return way[::-1]

    def _root(self) -> _Path:
        solver = self.solver
        for player in range(2):
            solver.buffers.reach[player, 0, : len(solver.root_reach[player])] = solver.root_reach[player]
        places = [np.arange(len(own)) for own in solver.root_reach]
        return self._played(_Path(0, 0, 0, solver.buffers, (places[0], places[1])))

    def _played(self, path: _Path) -> _Path:
        """Write both players' reach behind all decisions of a batch."""
        rule = PassRule(NO_HERO, AVERAGE, 1.0, 1.0, 1.0)
        forward(self.solver.tables, self.solver.boards[path.street], path.batch, path.board, rule, path.buffers)
        return path

    def _deal(self, path: _Path, card: int, segment: int) -> _Path:
        """Return the path after a card, at the start of a segment of the next street."""
        street, segments = path.street + 1, self.tree.segments
        boards, buffers = self.solver.boards[street], self.solver.buffers_of(street)
        child = self.solver.streets[street].children[path.board][renamed(card, path.order)]
        batch = int(np.searchsorted(segments.batches, segment, "right")) - 1
        places = []
        for player in range(2):
            size = int(self.solver.streets[path.street].sizes(player)[path.board])
            first = int(boards.maps_at[child.deal, player])
            here = boards.maps[first : first + size].astype(np.int64)
            for other in range(segments.batches[batch], segments.batches[batch + 1]):
                source = path.buffers.reach[player, self.tree.nodes.slot[segments.deal[other], player], :size]
                target = buffers.reach[player, self.tree.nodes.slot[segments.first[other], player]]
                target[here[here >= 0]] = source[here >= 0]
            before = path.places[player]
            places.append(np.where(before >= 0, here[before], -1))
        order = tuple(child.order[suit] for suit in path.order)
        return self._played(_Path(batch, child.board, street, buffers, (places[0], places[1]), order))

    def _values(self, path: _Path, hero: int, node: int) -> Array:
        """Return the values of the hero's holdings at a node, in pots times the other's reach."""
        if path.street == 0:
            return self.solution.root_values[hero][node].astype(np.float64)
        solver, rule = self.solver, PassRule(hero, AVERAGE, 1.0, 1.0, 1.0)
        boards = solver.boards[path.street]
        if path.street + self.solution.spot.street == 3:
            walk_river(solver.tables, boards, path.batch, path.board, rule, path.buffers)
        elif self.solution.stored_streets <= path.street + 1:
            return np.full(path.buffers.value.shape[1], np.nan)
        else:
            walk_turn(
                solver.tables,
                boards,
                solver.boards[2],
                solver.river_range,
                path.batch,
                path.board,
                rule,
                solver.chance(1),
                path.buffers,
                solver.buffers_of(2),
            )
        begin = int(self.tree.segments.first[self.tree.segments.batches[path.batch]])
        return path.buffers.value[node - begin].astype(np.float64)

    def _node(self, node: int, path: _Path, board: tuple[int, ...]) -> SpotNode:
        """Return what is known of a node."""
        nodes, solver, spot = self.tree.nodes, self.solver, self.solution.spot
        acting = int(nodes.player[node]) if nodes.kind[node] == DECISION else None
        own_places, numbers, reach = [], [], []
        for player in range(2):
            places = path.places[player]
            own_places.append(places[places >= 0])
            numbers.append(solver.streets[0].holdings(player, 0)[places >= 0])
            reach.append(path.buffers.reach[player, nodes.slot[node, player]][own_places[player]].astype(np.float64))
        pot = spot.pot + float(self.tree.chips[node].sum())
        values = []
        for player in range(2):
            others = compatible_reach(numbers[player], numbers[1 - player], reach[1 - player])
            counterfactual = self._values(path, player, node)[own_places[player]]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(others > 0, counterfactual / others, np.nan)
            values.append(spot.pot * (share + 0.5) + float(self.tree.chips[node, player]))
        mix = np.zeros((0, 0))
        if acting is not None:
            mix = normalised(solver.entries(path.board, node)).T[own_places[acting]]
        equities = node_equities(
            board, (numbers[0], numbers[1]), (reach[0], reach[1]), self.solution if not path.street else None
        )
        return SpotNode(
            line=self.tree.lines[node],
            board=board,
            player=acting,
            actions=self.tree.actions(node) if acting is not None else [],
            names=self.tree.describe(node) if acting is not None else [],
            pot=pot,
            holdings=(numbers[0], numbers[1]),
            reach=(reach[0], reach[1]),
            values=(values[0], values[1]),
            equities=equities,
            mix=mix,
        )


def normalised(sums: Array) -> Floats:
    """Return probabilities from sums of strategies, (actions, holdings); equal ones where the sum is 0."""
    total = sums.sum(axis=0, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, sums / total, 1.0 / len(sums))


def node_equities(
    board: tuple[int, ...],
    holdings: tuple[Array, Array],
    reach: tuple[Floats, Floats],
    solution: SpotSolution | None = None,
) -> tuple[Floats, Floats]:
    """Return each holding's share of the pot if everybody checked, by player; nan where the other never gets here.

    Parameters: `solution`, where the board is the spot's first one, so that its lists of boards can be used again.
    """
    ranges = np.zeros((2, len(PAIRS)))
    for player in range(2):
        ranges[player, holdings[player]] = np.minimum(reach[player], 1.0)
    if not all(own.any() for own in ranges):
        return np.full(len(holdings[0]), np.nan), np.full(len(holdings[1]), np.nan)
    streets = solution.solver.streets if solution is not None else None
    spot = PostflopSpot(np.array(board, np.uint8), ranges, 1.0, 0.0, solution.spot.menu if solution else Menu({}, {}))
    solver = SpotSolver(spot, workers=1, streets=streets, possible=False)
    lists = [solver.streets[0].holdings(player, 0) for player in range(2)]
    equities = []
    for player in range(2):
        numbers, values = lists[player], np.full(len(PAIRS), np.nan)
        others = compatible_reach(numbers, lists[1 - player], ranges[1 - player][lists[1 - player]])
        with np.errstate(divide="ignore", invalid="ignore"):
            values[numbers] = np.where(others > 0, solver.values(player, AVERAGE)[0] / others + 0.5, np.nan)
        equities.append(values[holdings[player]])
    return equities[0], equities[1]


# Solving


def run_spot(
    spot: PostflopSpot,
    *,
    target: float = 0.005,
    locks: Sequence[LockedMix | None] = (None, None),
    workers: int = 2,
    max_memory: float = MAX_MEMORY,
    max_iterations: int = 10_000,
    isomorphism: bool = True,
    report: Callable[[int, float], None] = lambda iteration, exploitability: None,
    checkpoint: Path | None = None,
    interval: float = 300.0,
) -> SpotSolution:
    """Solve a spot until its exploitability is at most `target` pots.

    Parameters: `locks`, by player; with any, the spot is solved once more without them, so that the risk of the answer
    is known. `checkpoint` is a file from which an interrupted run goes on, and which is deleted at the end.
    """
    began, compiled = time.monotonic(), seconds_compiling()
    free_value = None
    if any(locks):
        free_value = run_spot(
            spot, target=target, workers=workers, max_memory=max_memory, max_iterations=max_iterations, report=report
        ).value
    solver = SpotSolver(spot, locks=locks, workers=workers, max_memory=max_memory, isomorphism=isomorphism)
    if checkpoint is not None and checkpoint.exists():
        solver.resume(checkpoint)
    exploitability = solver.run(target, max_iterations, report, checkpoint, interval)
    solution = describe_solution(solver, exploitability, target, free_value)
    solution.seconds = max(time.monotonic() - began - (seconds_compiling() - compiled), 0.0)
    if checkpoint is not None:
        discard(checkpoint)
    return solution


def describe_solution(
    solver: SpotSolver,
    exploitability: float,
    target: float,
    free_value: tuple[float, float] | None = None,
) -> SpotSolution:
    """Return what is known of a solver's average strategies."""
    spot = solver.spot
    values = (solver.values(0, AVERAGE).copy(), solver.values(1, AVERAGE).copy())
    share = float(values[0][0].astype(np.float64) @ solver.root_reach[0].astype(np.float64)) / solver.pairs + 0.5
    nodes = solver.tree.nodes
    own_locks = [bool((nodes.locked[nodes.player == player] > 0).any()) for player in range(2)]
    worst = [solver.worst_case(player) if own_locks[1 - player] else None for player in range(2)]
    solution = SpotSolution(
        spot,
        solver.iteration,
        exploitability,
        (share, 1.0 - share),
        (0.5, 0.5),
        0.0,
        target,
        (own_locks[0], own_locks[1]),
        (worst[0], worst[1]),
        free_value,
        solver=solver,
        root_values=values,
    )
    root = solution.node()
    equity = root.average(0, root.equities[0])
    solution.equity = (equity, 1.0 - equity)
    return solution


# Files


def check_solution_target(path: Path) -> None:
    """Refuse to save a solution in the place of anything else."""
    check_replaceable(path, "solution of a spot", is_solution)


def is_solution(path: Path) -> bool:
    """Return whether a folder holds a solution of a spot."""
    return has_files(path, (MANIFEST, ARRAYS))


def load_solution(path: Path | str) -> SpotSolution:
    """Open a solution that was saved."""
    path, remedy = Path(path), "solve the spot again"
    if not is_solution(path):
        raise PipelineError(f"there is no solution of a spot at {path}: `solve spot --out {path}` makes one")
    try:
        manifest = parse_json(dict(read_files(path, {MANIFEST}))[MANIFEST][:])
        if not isinstance(manifest, dict) or (manifest.get("kind"), manifest.get("version")) != ("spot", VERSION):
            raise ValueError("it is of another kind or version")
        spot, depth = _read_spot(manifest), whole_number(manifest["streets"], "the number of streets", 1, 3)
        files = read_checked(path, {ARRAYS: str(manifest["sha256"][ARRAYS])}, remedy)
        arrays = read_arrays(files[ARRAYS])
        ranges = expect(arrays, "ranges", np.float64, (2, len(PAIRS)), 0, 1)
        spot = replace(spot, ranges=ranges)
        solver = SpotSolver(spot, isomorphism=bool(manifest["isomorphism"]), depth=depth, workers=1)
        steps = expect(arrays, "strategy", np.uint16, (len(solver.tables.average),), 0, STEPS)
        solver.tables.average[:] = steps
        solver.tree.nodes.locked[:] = expect(arrays, "locked", np.uint8, solver.tree.nodes.locked.shape, 0, 1)
        last = int(solver.tree.segments.first[1])
        values = [
            expect(arrays, f"value.{name}", np.float32, (last, len(solver.root_reach[player])))
            for player, name in enumerate(PLAYERS)
        ]
        figures = [finite_number(manifest[name], name) for name in ("exploitability", "seconds", "target")]
        value, equity = (
            [finite_number(manifest[name][place], name) for place in range(2)] for name in ("value", "equity")
        )
        locked = manifest.get("locked", [False, False])
        worst, free = manifest.get("worst_case", [None, None]), manifest.get("free_value")
        return SpotSolution(
            spot,
            whole_number(manifest["iterations"], "the iterations", 0, 1 << 40),
            figures[0],
            (value[0], value[1]),
            (equity[0], equity[1]),
            figures[1],
            figures[2],
            (bool(locked[0]), bool(locked[1])),
            (_number_or_none(worst, 0), _number_or_none(worst, 1)),
            None if free is None else (finite_number(free[0], "free_value"), finite_number(free[1], "free_value")),
            solver=solver,
            root_values=(values[0], values[1]),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise PipelineError(f"{path} does not hold the solution of a spot ({error}): {remedy}") from None


def _number_or_none(values: Any, place: int) -> float | None:
    """Return a finite number of a JSON text, or None where it has none."""
    return None if values[place] is None else finite_number(values[place], str(place))


def _read_spot(manifest: Mapping[str, Any]) -> PostflopSpot:
    """Return the spot of a manifest, with every holding in both ranges."""
    menu = manifest["menu"]
    places = [_sizes_by_place(menu[name]) for name in ("bets", "raises")]
    return PostflopSpot(
        parse_cards(str(manifest["board"])),
        np.ones((2, len(PAIRS))),
        finite_number(manifest["pot"], "pot"),
        finite_number(manifest["stack"], "stack"),
        Menu(
            places[0],
            places[1],
            whole_number(menu["max_raises"], "the raises", 0, 100),
            finite_number(menu["all_in"], "all_in"),
        ),
        finite_number(manifest["chip"], "chip"),
        finite_number(manifest["min_bet"], "min_bet"),
        {str(line): float(amount) for line, amount in manifest["played"].items()},
    )


def _menu_json(menu: Menu) -> dict[str, Any]:
    """Return a menu for JSON, `a` for all-in."""

    def texts(sizes: Mapping[tuple[int, int], tuple[float, ...]]) -> dict[str, list[float | str]]:
        return {
            f"{PLAYERS[player]}:{STREETS[street]}": ["a" if size == ALL_IN else size for size in own]
            for (player, street), own in sizes.items()
        }

    return {
        "bets": texts(menu.bets),
        "raises": texts(menu.raises),
        "max_raises": menu.max_raises,
        "all_in": menu.all_in,
    }


def _sizes_by_place(texts: Mapping[str, list[float | str]]) -> dict[tuple[int, int], tuple[float, ...]]:
    """Return sizes by player and street as `_menu_json` wrote them."""
    places = {}
    for name, sizes in texts.items():
        player, street = name.split(":")
        places[PLAYERS.index(player), STREETS.index(street)] = tuple(
            ALL_IN if size == "a" else finite_number(size, "a size") for size in sizes
        )
    return places
