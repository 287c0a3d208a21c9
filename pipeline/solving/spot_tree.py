"""The betting tree of a spot: a menu of sizes to arrays that kernels walk.

In go the pot, the effective stack, the street and a `Menu`: sizes of bets and raises as shares of the pot, by player
and street. Out comes a `SpotTree`. It is cut in *segments*, a segment being the betting of one street after a given
betting of the streets before; it does not depend on the cards, so a segment is walked once for every board of its
street. Within a segment parents come before children and the children of a node are neighbours.

A raise of size s goes to the bet plus s times the pot after a call. Player 0 is out of position and acts first on every
street, player 1 is in position. Chips are those put in since the spot began; a line of betting is written as ACPC does:
`c` checks or calls, `f` folds, `r30` bets or raises to 30 chips in all, `/` begins a street. Where both are all-in the
streets that remain are segments of one node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

DECISION, FOLD, SHOWDOWN, DEAL = range(4)
"""kinds of nodes: a player acts, somebody folded, the hands are compared, a card is dealt"""
STREETS = ("preflop", "flop", "turn", "river")
PLAYERS = ("oop", "ip")
ALL_IN = math.inf
MAX_NODES = 100_000
BATCH_NODES = 96
"""nodes from which on a batch takes no more segments: its vectors should fit a cache"""
_FORMS = (
    "write shares of the pot like 0.33,0.75,1.5 or a for all-in, after oop:, ip:, flop:, turn: or river: if need be"
)

Sizes = tuple[float, ...]


class Menu(NamedTuple):
    """The bets and raises that the players choose from."""

    bets: Mapping[tuple[int, int], Sizes]
    """by player and street (1 flop, 2 turn, 3 river): shares of the pot, ascending; ALL_IN for the whole stack"""
    raises: Mapping[tuple[int, int], Sizes]
    max_raises: int = 2
    """raises of one street, the bet not counted"""
    all_in: float = 0.15
    """a bet that would leave at most this share of the pot (after a call) behind is all-in instead"""


def parse_menu(bets: Iterable[str], raises: Iterable[str] = (), max_raises: int = 2, all_in: float = 0.15) -> Menu:
    """Return a menu from texts such as `0.33,0.75`, `turn:0.5,a` or `ip:river:none`; later texts replace earlier ones.

    Without texts for raises they have the sizes of bets.

    >>> menu = parse_menu(["0.5,1", "ip:river:a"])
    >>> menu.bets[0, 3], menu.bets[1, 3], menu.raises[1, 2]
    ((0.5, 1.0), (inf,), (0.5, 1.0))
    """
    bet_sizes = _by_place(bets)
    raise_texts = list(raises)
    return Menu(bet_sizes, _by_place(raise_texts) if raise_texts else bet_sizes, max_raises, all_in)


def _by_place(texts: Iterable[str]) -> dict[tuple[int, int], Sizes]:
    """Return the sizes for each player and street."""
    places: dict[tuple[int, int], Sizes] = {(player, street): () for player in range(2) for street in (1, 2, 3)}
    for text in texts:
        *words, numbers = text.strip().split(":")
        if not set(words) <= {*PLAYERS, *STREETS[1:]}:
            raise PipelineError(f"{text!r} does not name sizes; {_FORMS}")
        sizes = _parse_sizes(numbers, text)
        for player, street in places:
            named_players, named_streets = set(words) & set(PLAYERS), set(words) & set(STREETS)
            if (not named_players or PLAYERS[player] in named_players) and (
                not named_streets or STREETS[street] in named_streets
            ):
                places[player, street] = sizes
    return places


def _parse_sizes(numbers: str, text: str) -> Sizes:
    """Return the sizes of one text, ascending."""
    if numbers.strip() in ("", "none"):
        return ()
    sizes = set()
    for word in numbers.split(","):
        if word.strip() == "a":
            sizes.add(ALL_IN)
        elif re.fullmatch(r"\d*\.?\d+", word.strip()) and 0 < float(word) <= 1000:
            sizes.add(float(word))
        else:
            raise PipelineError(f"{text!r} has the size {word.strip()!r}; {_FORMS}")
    return tuple(sorted(sizes))


class NodeArrays(NamedTuple):
    """All nodes of a tree, for kernels."""

    kind: Array
    """(nodes,) uint8"""
    player: Array
    """(nodes,) uint8: who acts, or who folded"""
    first: Array
    """(nodes,) int32: the first child"""
    branches: Array
    """(nodes,) int32: how many children a decision has"""
    vector: Array
    """(nodes,) int32: the first of a decision's action vectors, among those of its player in its segment"""
    vectors: Array
    """(nodes,) int32: how many action vectors that player has in that segment"""
    slot: Array
    """(nodes, 2) int32: place of each player's reach probabilities, shared by nodes where that player did the same"""
    stake: Array
    """(nodes,) float32: what the loser loses, in pots; half of the pot counts as each player's own"""
    locked: Array
    """(nodes,) uint8: 1 where the player's strategy is fixed"""


class SegmentArrays(NamedTuple):
    """All segments of a tree, street by street, for kernels.

    A batch is a run of segments that follow deals of one batch: they are walked together, because terminals are
    valued many at a time. Slots for reach probabilities are counted within a batch.
    """

    first: Array
    """(segments + 1,) int32: the first node, which is the root"""
    deal: Array
    """(segments,) int32: the node of the street before that it follows"""
    street: Array
    """(segments,) int8"""
    vectors: Array
    """(segments, 2) int32: action vectors by player"""
    batches: Array
    """(batches + 1,) int32: the first segment of a batch"""
    children: Array
    """(batches, 2) int32: the first batch that follows a batch, and the one after the last"""
    slots: Array
    """(batches, 2) int32: places for reach probabilities by player"""


@dataclass(frozen=True)
class SpotTree:
    """The betting tree of a spot."""

    nodes: NodeArrays
    segments: SegmentArrays
    lines: list[str]
    """the betting that leads to each node"""
    chips: Array
    """(nodes, 2) float64: chips put in since the spot began"""
    segment_of: Array
    """(nodes,) int32"""
    index: dict[str, int] = field(repr=False)
    """decision nodes and deals by betting; a betting that ends a street is the deal's, with `/` what follows"""

    def actions(self, node: int) -> list[str]:
        """Return the actions of a decision as a betting writes them."""
        first, count = int(self.nodes.first[node]), int(self.nodes.branches[node])
        return [self.lines[child][len(self.lines[node]) :] for child in range(first, first + count)]

    def describe(self, node: int) -> list[str]:
        """Return the actions of a decision in words, such as `fold`, `check` or `bet 33`."""
        player = int(self.nodes.player[node])
        behind = self.chips[node, 1 - player] > self.chips[node, player]
        street_began = self.chips[node].min() if not behind else None
        names = []
        for action in self.actions(node):
            if action == "f":
                names.append("fold")
            elif action == "c":
                names.append("call" if behind else "check")
            else:
                names.append(("raise to " if street_began is None else "bet ") + action[1:])
        return names


@dataclass
class _State:
    """A node under construction."""

    line: str
    chips: tuple[float, float]
    player: int
    kind: int = DECISION
    bets: int = 0
    """bets and raises on this street"""
    step: float = 0.0
    """the last bet or raise beyond what it answered: a raise adds at least as much"""
    checked: bool = False
    slots: tuple[int, int] = (0, 0)


def chips_text(amount: float) -> str:
    """Return an amount without needless digits."""
    return f"{amount:.10g}"


class TreeBuilder:
    """Grows a tree, segment by segment."""

    def __init__(
        self,
        menu: Menu,
        *,
        street: int,
        pot: float,
        stack: float,
        chip: float = 0.0,
        min_bet: float = 0.0,
        played: Mapping[str, float] | None = None,
    ) -> None:
        """Set the rules: amounts are multiples of `chip` if that is not 0, bets at least `min_bet`.

        Parameters: `played` has amounts that stand on the menu after certain bettings only (those of a real hand).
        """
        self.menu, self.street, self.pot, self.stack = menu, street, pot, stack
        self.chip, self.min_bet, self.played = chip, min_bet, played or {}

    def amounts(self, node: _State, street: int) -> list[float]:
        """Return the totals to which the player to act may bet or raise."""
        level = max(node.chips)
        if level >= self.stack:
            return []
        totals = {min(self.played[node.line], self.stack)} if node.line in self.played else set()
        sizes: Sizes = ()
        if node.bets <= self.menu.max_raises:
            sizes = (self.menu.raises if node.bets else self.menu.bets)[node.player, street]
        for total in (level + size * (self.pot + 2 * level) for size in sizes):
            if self.chip and math.isfinite(total):
                total = round(total / self.chip) * self.chip
            total = max(total, level + max(node.step, self.min_bet))
            if total >= self.stack or self.stack - total <= self.menu.all_in * (self.pot + 2 * total):
                total = self.stack
            totals.add(total)
        return sorted(total for total in totals if total > level)

    def children(self, node: _State, street: int) -> list[_State]:
        """Return the nodes after each action of a decision, without their slots."""
        mine, theirs = node.chips[node.player], node.chips[1 - node.player]
        children = []
        if theirs > mine:
            children.append(_State(node.line + "f", node.chips, node.player, FOLD))
        if theirs > mine or node.checked:
            level = max(mine, theirs)
            kind = SHOWDOWN if street == 3 else DEAL
            children.append(_State(node.line + "c", (level, level), 0, kind))
        else:
            children.append(_State(node.line + "c", node.chips, 1 - node.player, checked=True))
        for total in self.amounts(node, street):
            chips = (total, theirs) if node.player == 0 else (theirs, total)
            line = f"{node.line}r{chips_text(total)}"
            step = total - max(node.chips)
            children.append(_State(line, chips, 1 - node.player, bets=node.bets + 1, step=step, checked=True))
        return children

    def grow(self) -> SpotTree:
        """Return the whole tree; too large a one is refused."""
        roots = [(self.street, -1, 0, _State("", (0.0, 0.0), 0))]  # street, batch before, deal before, first state
        columns: list[tuple[int, ...]] = []
        stakes: list[float] = []
        lines: list[str] = []
        chips: list[tuple[float, float]] = []
        firsts, batches, slots = [0], [0], [[0, 0]]
        vectors: list[list[int]] = []
        for segment, (street, parent, _, root) in enumerate(roots):  # grows as segments that follow are met
            if segment and (parent != roots[segment - 1][1] or len(lines) - firsts[batches[-1]] > BATCH_NODES):
                batches.append(segment)
                slots.append([0, 0])
            if root.chips[0] >= self.stack:
                root.kind = SHOWDOWN if street == 3 else DEAL
            root.slots = (slots[-1][0], slots[-1][1])
            slots[-1] = [slots[-1][0] + 1, slots[-1][1] + 1]
            queue, counts = [root], [0, 0]
            for node in queue:
                first = count = vector = 0
                if node.kind == DECISION:
                    children = self.children(node, street)
                    first, count, vector = firsts[-1] + len(queue), len(children), counts[node.player]
                    counts[node.player] += count
                    for child in children:
                        own = list(node.slots)
                        own[node.player] = slots[-1][node.player]
                        slots[-1][node.player] += 1
                        child.slots = (own[0], own[1])
                    queue += children
                elif node.kind == DEAL:
                    following = _State(node.line + "/", node.chips, 0)
                    roots.append((street + 1, len(batches) - 1, len(lines), following))
                columns.append((node.kind, node.player, first, count, vector, *node.slots, segment))
                stakes.append(0.5 + min(node.chips) / self.pot)
                lines.append(node.line)
                chips.append(node.chips)
                if len(lines) > MAX_NODES:
                    raise PipelineError(
                        f"the betting tree has over {MAX_NODES:,} nodes: name fewer sizes or fewer raises, or raise "
                        "the all-in threshold"
                    )
            firsts.append(len(lines))
            vectors.append(counts)
        table, vector_counts = np.array(columns, np.int32), np.array(vectors, np.int32)
        segment_of, parents = table[:, 7].copy(), np.array([parent for _, parent, _, _ in roots], np.int32)
        nodes = NodeArrays(
            kind=table[:, 0].astype(np.uint8),
            player=table[:, 1].astype(np.uint8),
            first=table[:, 2].copy(),
            branches=table[:, 3].copy(),
            vector=table[:, 4].copy(),
            vectors=vector_counts[segment_of, table[:, 1]],
            slot=table[:, 5:7].copy(),
            stake=np.array(stakes, np.float32),
            locked=np.zeros(len(lines), np.uint8),
        )
        of_batch = parents[batches]
        numbers = np.arange(len(batches))
        segments = SegmentArrays(
            first=np.array(firsts, np.int32),
            deal=np.array([deal for _, _, deal, _ in roots], np.int32),
            street=np.array([street for street, _, _, _ in roots], np.int8),
            vectors=vector_counts,
            batches=np.array([*batches, len(roots)], np.int32),
            children=np.stack([np.searchsorted(of_batch, numbers, side) for side in ("left", "right")], axis=1).astype(
                np.int32
            ),
            slots=np.array(slots, np.int32),
        )
        index = {line: node for node, line in enumerate(lines) if nodes.kind[node] in (DECISION, DEAL)}
        return SpotTree(nodes, segments, lines, np.array(chips), segment_of, index)
