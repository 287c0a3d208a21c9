"""Decisions and rows of a strategy's table: the row that a decision stands for, and an agent's play at every row.

In: rows of OBSERVATION. Out: the row of each in a bucketed strategy (see `layout`) or in that of a small game (see
`small`). A decision is found by walking the betting tree along its betting codes, and by its cards. Agents that play a
strategy look it up this way, and counts of what an opponent did are kept by the same rows.

The other way round an agent is asked for its play: `tabulate` at every decision of a small game, `project_on_buckets`
with a few hands of every bucket at every node of the betting, of which it takes the mean, so that agents that see cards
can be written as a bucketed strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, extend_betting, observation, observe
from pipeline.poker.cards import NO_CARD, RANKS, Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import S_ACTOR, S_FINISHED, S_ROUND
from pipeline.runtime.array_types import Array, Singles
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, bucket_of_cards, find_buckets
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Layout, LayoutTables
from pipeline.solving.small import SmallGame


class LookupFields(NamedTuple):
    """The fields of rows that a strategy is looked up by, one entry per row."""

    words: Array
    hole: Array
    board: Array
    street: Array
    position: Array


def lookup_fields(rows: Array) -> LookupFields:
    """Take the fields of rows that decisions are looked up by."""
    fields = ("betting_codes", "hole", "board", "street", "position")
    return LookupFields(*(np.ascontiguousarray(rows[name]) for name in fields))


@kernel(leaf=True)
def _node(words: Array, child: Array) -> int:
    """Return the node that the betting codes of a row lead to; -1 if they are no betting of the game."""
    # a betting code has three bits an action, the first action highest: find the length, then read downwards
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


@kernel(leaf=True)
def bucket_row(i: int, rows: LookupFields, layout: LayoutTables, tables: Buckets, ranks: Ranking) -> int:
    """Return the row of decision `i` in a bucketed strategy; -1 if it is none of the game's."""
    # street and position are known twice; a row that contradicts its betting is refused, as it may come from anywhere
    node = _node(rows.words[i], layout.children)
    round_, player = int(rows.street[i]), int(rows.position[i])
    if node < 0 or layout.tree[node, T_ACTOR] != player or layout.tree[node, T_ROUND] != round_:
        return -1
    bucket = bucket_of_cards(round_, rows.hole[i], rows.board[i], tables, ranks)
    return int(layout.offsets[round_, player] + bucket * layout.counts[round_, player] + layout.tree[node, T_SLOT])


@kernel
def _bucket_rows(rows: LookupFields, layout: LayoutTables, tables: Buckets, ranks: Ranking, out: Array) -> None:
    for i in range(len(out)):
        out[i] = bucket_row(i, rows, layout, tables, ranks)


@kernel
def _small_rows(rows: LookupFields, child: Array, ranks: int, lowest: int, infos: int, out: Array) -> None:
    for i in range(len(out)):
        node = _node(rows.words[i], child)
        card = (int(rows.hole[i, 0]) >> 2) - lowest
        board = -1 if rows.board[i, 0] == NO_CARD else (int(rows.board[i, 0]) >> 2) - lowest
        inside = node >= 0 and 0 <= card < ranks and -1 <= board < ranks
        out[i] = node * infos + (board + 1) * ranks + card if inside else -1


def bucket_rows(layout: Layout, tables: Buckets, rows: Array) -> Array:
    """Find the row of each decision in a bucketed strategy."""
    out = np.empty(len(rows), np.int64)
    _bucket_rows(lookup_fields(rows), layout.tables, tables, ranking(), out)
    return _checked(out, layout.game.name)


def small_rows(small: SmallGame, rows: Array) -> Array:
    """Find the row of each decision in a small game's strategy."""
    out = np.empty(len(rows), np.int64)
    game = small.game
    _small_rows(lookup_fields(rows), small.tree.child, game.ranks, 13 - game.ranks, small.infos, out)
    return _checked(out, game.name)


def _checked(strategy_rows: Array, game: str) -> Array:
    """Refuse decisions that are none of the game's."""
    if (strategy_rows < 0).any():
        raise PipelineError(f"row {int(np.argmax(strategy_rows < 0))} is not a decision of {game}")
    return strategy_rows


@dataclass(frozen=True)
class SmallTeacher:
    """Plays a solution of a game with one hole card."""

    name: str
    game: Game
    strategy: Array = field(repr=False)
    """(decisions, 3), see `cfr`"""

    def probabilities(self, rows: Array) -> Array:
        return np.asarray(self.strategy[small_rows(SmallGame(self.game), rows)])


# Agents as strategies

BUCKET_SAMPLE = 200_000
"""random hands from which those of each bucket are taken"""
ROWS_AT_ONCE = 1 << 18
"""rows that an agent is asked for together"""


@kernel
def _observe_nodes(
    rules: Array, states: Array, words: Array, previous: Array, hole: Array, board: Array, ranks: Ranking, rows: Array
) -> None:
    """Write what the actor of each node observes with each hand, node by node."""
    row = 0
    for node in range(len(states)):
        for i in range(len(hole)):
            observe(rules, states[node], words[node], int(previous[node]), hole[i], board[i], ranks, rows, row)
            row += 1


def betting_paths(layout: Layout) -> tuple[Array, Array, Array]:
    """Return the state, the betting codes and the actor's last action (as in the codes, 0 for none) at each node."""
    betting = layout.game.betting_tree()
    words = np.zeros((len(betting.states), 4), np.int64)
    last = np.zeros((len(betting.states), 2), np.int64)
    for node in range(len(betting.states)):  # parents come first
        street, actor = int(betting.states[node, S_ROUND]), int(betting.states[node, S_ACTOR])
        for label, child in enumerate(betting.child[node].tolist()):
            if child >= 0:
                words[child], last[child] = words[node], last[node]
                words[child, street] = extend_betting(int(words[node, street]), label)
                last[child, actor] = label + 1
    actors = np.where(betting.states[:, S_FINISHED] == 0, betting.states[:, S_ACTOR], 0)
    return betting.states, words, last[np.arange(len(last)), actors]


def _bucket_hands(layout: Layout, tables: Buckets, samples: Sequence[int], seed: int) -> list[tuple[Array, Array]]:
    """Deal for each street the hole cards and boards of `samples` hands of every bucket, bucket by bucket."""
    dealt = np.random.default_rng(seed).random((BUCKET_SAMPLE, 52)).argsort(axis=1)[:, :7].astype(np.uint8)
    hole, board = np.ascontiguousarray(dealt[:, :2]), np.ascontiguousarray(dealt[:, 2:])
    hands = []
    for street, size in enumerate(layout.sizes):
        member = find_buckets(street, hole, board, tables)
        order = np.argsort(member, kind="stable")
        first, past = (np.searchsorted(member[order], np.arange(size), side) for side in ("left", "right"))
        # a bucket with fewer hands repeats them; one with none borrows its neighbour's
        pick = first[:, None] + np.arange(samples[street]) % np.maximum(past - first, 1)[:, None]
        chosen = order[np.minimum(pick, BUCKET_SAMPLE - 1)].ravel()
        hands.append((hole[chosen], board[chosen]))
    return hands


def project_on_buckets(
    probabilities: Callable[[Array], Array],
    layout: Layout,
    tables: Buckets,
    *,
    samples: int | Sequence[int] = 4,
    seed: int = 1,
    progress: Progress = no_progress,
) -> Singles:
    """Write an agent's play as a bucketed strategy: the mean over `samples` hands of every bucket."""
    states, words, previous = betting_paths(layout)
    counts = [samples] * layout.game.rounds if isinstance(samples, int) else samples
    hands = _bucket_hands(layout, tables, counts, seed)
    out = np.zeros((layout.rows, 3), np.float32)
    tree = layout.tree

    def ask(nodes: Array) -> None:
        street, player = int(tree[nodes[0], T_ROUND]), int(tree[nodes[0], T_ACTOR])
        hole, board = hands[street]
        rows = np.zeros(len(nodes) * len(hole), OBSERVATION)
        _observe_nodes(layout.game.rules, states[nodes], words[nodes], previous[nodes], hole, board, ranking(), rows)
        mixes = probabilities(rows).reshape(len(nodes), layout.sizes[street], counts[street], 3).mean(axis=2)
        start, step = int(layout.offsets[street, player]), int(layout.counts[street, player])
        out[start + np.arange(layout.sizes[street]) * step + tree[nodes, T_SLOT][:, None]] = mixes

    jobs = []
    for block in layout.blocks:
        nodes, size = np.sort(block.nodes), max(1, ROWS_AT_ONCE // len(hands[block.street][0]))
        jobs += [nodes[a : a + size] for a in range(0, len(nodes), size)]
    with ThreadPoolExecutor(2) as pool:
        for done, _ in enumerate(pool.map(ask, jobs)):
            progress(done + 1, len(jobs))
    return out


def tabulate(probabilities: Callable[[Array], Array], game: Game) -> Array:
    """Write an agent's play in a small game as a strategy: (rows, 3), see `small`."""
    small = SmallGame(game)
    rows, asked = [], []
    for spot in small.spots():
        row = small.row(spot)
        actor = int(small.tree.states[row // small.infos, S_ACTOR])
        hole, board = (_card(game, name, copy) for copy, name in enumerate((spot.card, spot.board)))
        rows.append(row)
        asked.append(observation(game, spot.betting, actor, hole, board))
    out = np.zeros((small.rows, 3))
    out[np.array(rows)] = probabilities(np.concatenate(asked))
    return out


def _card(game: Game, name: str, copy: int) -> list[int]:
    """Return a card of a rank, the first or second of its suits; none for no name."""
    if not name:
        return []
    alike = [int(card) for card in game.deck if RANKS[int(card) >> 2] == name]
    return alike[copy % len(alike) :][:1]
